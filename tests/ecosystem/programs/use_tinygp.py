"""A Gaussian process with tinygp: its likelihood, dense and quasiseparable; predictions."""

import json

import jax
import jax.numpy as jnp
from tinygp import GaussianProcess, kernels

x = jnp.sort(jax.random.uniform(jax.random.key(0), (20,), maxval=5.0))
y = jnp.sin(2 * x)


def loss(theta, kernel):
    gp = GaussianProcess(jnp.exp(theta[0]) * kernel(jnp.exp(theta[1])), x, diag=0.01)
    return -gp.log_probability(y)


theta = jnp.array([0.1, 0.2])
gp = GaussianProcess(kernels.Matern32(1.0), x, diag=0.01)
_, conditioned = gp.condition(y, jnp.array([2.5]))
print(json.dumps({
    "dense": float(loss(theta, kernels.Matern32)),
    "quasiseparable": float(loss(theta, kernels.quasisep.Matern32)),
    "gradient": jax.grad(loss)(theta, kernels.quasisep.Matern32).tolist(),
    "mean": float(conditioned.loc[0]), "variance": float(conditioned.variance[0])}))
