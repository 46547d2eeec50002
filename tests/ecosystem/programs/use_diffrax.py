"""Differential equations: adaptive, stiff, adjoint, stochastic, with events."""

import json

import diffrax
import jax
import jax.numpy as jnp


def lotka(t, y, args):
    a, b, c, d = args
    return jnp.array([a * y[0] - b * y[0] * y[1], -c * y[1] + d * y[0] * y[1]])


args = jnp.array([1.1, 0.4, 0.4, 0.1])
y0 = jnp.array([10.0, 5.0])


@jax.jit
def solve(args):
    return diffrax.diffeqsolve(
        diffrax.ODETerm(lotka), diffrax.Tsit5(), 0.0, 5.0, 0.1, y0, args,
        stepsize_controller=diffrax.PIDController(rtol=1e-5, atol=1e-5),
        saveat=diffrax.SaveAt(ts=jnp.linspace(0, 5, 4)))


solution = solve(args)
grad = jax.jit(jax.grad(lambda a: solve(a).ys[-1].sum()))(args)
adjoint = jax.jit(jax.grad(lambda a: diffrax.diffeqsolve(
    diffrax.ODETerm(lotka), diffrax.Dopri5(), 0.0, 1.0, 0.05, y0, a,
    adjoint=diffrax.BacksolveAdjoint()).ys[-1].sum()))(args)
stiff = diffrax.diffeqsolve(
    diffrax.ODETerm(lambda t, y, a: -50.0 * (y - jnp.cos(t))), diffrax.Kvaerno5(), 0.0, 1.0, 0.01,
    jnp.array([0.0]), stepsize_controller=diffrax.PIDController(rtol=1e-4, atol=1e-6))
path = diffrax.VirtualBrownianTree(0.0, 1.0, tol=1e-2, shape=(), key=jax.random.key(0))
sde = diffrax.diffeqsolve(
    diffrax.MultiTerm(diffrax.ODETerm(lambda t, y, a: -y),
                      diffrax.ControlTerm(lambda t, y, a: 0.3, path)),
    diffrax.Heun(), 0.0, 1.0, 0.05, jnp.array(1.0))
event = diffrax.diffeqsolve(
    diffrax.ODETerm(lambda t, y, a: jnp.array([y[1], -9.8])), diffrax.Tsit5(), 0.0, 10.0, 0.01,
    jnp.array([5.0, 0.0]), event=diffrax.Event(lambda t, y, a, **k: y[0] < 0))
batch = jax.vmap(lambda a: solve(a).ys[-1, 0])(jnp.stack([args, 1.1 * args]))
print(json.dumps({
    "ys": [float(v) for v in solution.ys[-1]], "steps": int(solution.stats["num_accepted_steps"]),
    "grad": [float(v) for v in grad], "adjoint": [float(v) for v in adjoint],
    "stiff": float(stiff.ys[-1, 0]), "sde": float(sde.ys[-1]), "event": float(event.ts[-1]),
    "batch": [float(v) for v in batch]}))
