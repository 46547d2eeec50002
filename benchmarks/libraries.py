"""Programs of libraries built on jax, as their users write them: what `programs.py --libraries`
compares, those whose library both Pythons have."""

from importlib import import_module

import numpy as np
from small import called

ARM = """<mujoco><option timestep="0.002" iterations="4"/><worldbody>
  <body pos="0 0 1"><joint type="hinge" axis="0 1 0" damping="0.1"/>
    <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.03" contype="0" conaffinity="0"/>
    <body pos="0.4 0 0"><joint type="hinge" axis="0 1 0" damping="0.1"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03" contype="0" conaffinity="0"/>
      <body pos="0.3 0 0"><joint type="hinge" axis="1 0 0" damping="0.1"/>
        <geom type="capsule" fromto="0 0 0 0.2 0 0" size="0.03" contype="0" conaffinity="0"/>
</body></body></body></worldbody></mujoco>"""


def diffrax(jax, jnp, rng):
    """Prey and hunters by Tsitouras' method with adaptive steps, and the gradient of their end."""
    solvers = import_module("diffrax")

    def end(rates):
        def field(t, y, rates):
            return jnp.stack([rates[0] * y[0] - rates[1] * y[0] * y[1],
                              rates[2] * y[0] * y[1] - rates[3] * y[1]])
        found = solvers.diffeqsolve(
            solvers.ODETerm(field), solvers.Tsit5(), 0.0, 20.0, 0.1, jnp.array([10.0, 5.0]), rates,
            stepsize_controller=solvers.PIDController(rtol=1e-4, atol=1e-4))
        return jnp.sum(found.ys)

    return called(jax, jax.value_and_grad(end), np.float32([1.5, 0.1, 0.1, 1.0]))


def numpyro(jax, jnp, rng):
    """Fifty draws by NUTS from the posterior of eight schools."""
    sampling, draws = import_module("numpyro"), import_module("numpyro.distributions")
    hmc = import_module("numpyro.infer.hmc")
    effects = np.float32([28, 8, -3, 7, -1, 1, 18, 12])
    errors = np.float32([15, 10, 16, 11, 9, 11, 10, 18])

    def model():
        mean = sampling.sample("mean", draws.Normal(0, 5))
        scale = sampling.sample("scale", draws.HalfNormal(5))
        with sampling.plate("schools", 8):
            school = sampling.sample("school", draws.Normal(0, 1))
            sampling.sample("seen", draws.Normal(mean + scale * school, errors), obs=effects)

    kernel = hmc.NUTS(model, max_tree_depth=6)
    start = kernel.init(jax.random.key(0), 0, None, (), {})

    def drawn(state):
        def draw(state, _):
            return kernel.sample(state, (), {}), state.z["mean"]
        return jax.lax.scan(draw, state, None, 50)[1]

    return called(jax, drawn, start)


def mjx(jax, jnp, rng):
    """A hundred steps of an arm of three links."""
    mujoco, simulator = import_module("mujoco"), import_module("mujoco.mjx")
    model = simulator.put_model(mujoco.MjModel.from_xml_string(ARM))
    start = simulator.make_data(model).replace(qvel=jnp.array([1.0, -2.0, 3.0]))

    def moved(data):
        return jax.lax.scan(lambda d, _: (simulator.step(model, d), d.qpos), data, None, 100)[1]

    return called(jax, moved, start)


NEEDED = {"diffrax": "diffrax", "numpyro": "numpyro", "mjx": "mujoco.mjx"}
PROGRAMS = [diffrax, numpyro, mjx]
