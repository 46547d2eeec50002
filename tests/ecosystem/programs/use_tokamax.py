"""Fused operations of tokamax, in the implementation that XLA compiles."""

import json

import jax
import jax.numpy as jnp
import tokamax

q, k, v = jax.random.normal(jax.random.key(0), (3, 2, 16, 4, 8))
x = jax.random.normal(jax.random.key(1), (16, 32))
scale = jnp.linspace(0.5, 1.5, 32)
lhs = jax.random.normal(jax.random.key(2), (12, 8))
rhs = jax.random.normal(jax.random.key(3), (3, 8, 4))


def attend(q):
    return tokamax.dot_product_attention(q, k, v, is_causal=True, implementation="xla").sum()


def normed(x):
    return tokamax.layer_norm(x, scale=scale, offset=None, implementation="xla")


gated = tokamax.gated_linear_unit(
    x, jax.random.normal(jax.random.key(4), (32, 2, 8)), activation=jax.nn.silu,
    implementation="xla")
ragged = tokamax.ragged_dot(lhs, rhs, group_sizes=jnp.array([4, 2, 6]), implementation="xla")
try:
    tokamax.dot_product_attention(q, k, v, implementation="mosaic")
    refused = ""
except Exception as error:
    refused = type(error).__name__
print(json.dumps({
    "attended": float(attend(q)), "gradient": float(jnp.abs(jax.grad(attend)(q)).sum()),
    "default": float(tokamax.dot_product_attention(q, k, v).mean()),
    "normed": float(jax.jit(normed)(x)[0, :4].sum()), "gated": float(gated.mean()),
    "ragged": float(ragged.sum()), "refused": refused}))
