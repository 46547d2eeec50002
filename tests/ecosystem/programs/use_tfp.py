"""Distributions, bijectors, sampling and optimizers of TensorFlow Probability on JAX."""

import json

import jax
import jax.numpy as jnp
from tensorflow_probability.substrates import jax as tfp

tfd, tfb = tfp.distributions, tfp.bijectors
key = jax.random.PRNGKey(0)
joint = tfd.JointDistributionSequential([
    tfd.Gamma(2.0, 1.0), lambda s: tfd.Normal(0.0, s), lambda m, s: tfd.Poisson(jnp.exp(m))])
draws = joint.sample(seed=key)
flow = tfd.TransformedDistribution(tfd.Normal(0.0, 1.0), tfb.Chain([tfb.Exp(), tfb.Scale(0.5)]))


@jax.jit
def sample(key):
    kernel = tfp.mcmc.HamiltonianMonteCarlo(
        lambda x: -0.5 * jnp.sum((x - 1.0) ** 2), step_size=0.3, num_leapfrog_steps=5)
    return tfp.mcmc.sample_chain(100, jnp.zeros(2), kernel=kernel, num_burnin_steps=50,
                                 trace_fn=None, seed=key)


gp = tfd.GaussianProcess(tfp.math.psd_kernels.ExponentiatedQuadratic(),
                         jnp.linspace(0, 1, 5)[:, None], observation_noise_variance=0.1)
bfgs = tfp.optimizer.bfgs_minimize(jax.value_and_grad(lambda x: jnp.sum((x - 2.0) ** 4 + x ** 2)),
                                   initial_position=jnp.zeros(3))
print(json.dumps({
    "log": float(joint.log_prob(draws)), "flow": float(flow.log_prob(1.3)),
    "hmc": [float(v) for v in sample(key).mean(0)], "gp": float(gp.log_prob(jnp.ones(5))),
    "bfgs": [float(v) for v in bfgs.position],
    "kl": float(tfd.kl_divergence(tfd.Normal(0.0, 1.0), tfd.Normal(1.0, 2.0))),
    "beta": float(tfp.math.special.betainc(2.0, 3.0, 0.4) if hasattr(tfp.math, "special") else 0),
    "wishart": float(tfd.WishartTriL(5.0, jnp.eye(2)).log_prob(jnp.eye(2)))}))
