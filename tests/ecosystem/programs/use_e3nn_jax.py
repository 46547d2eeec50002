"""Equivariant functions with e3nn-jax: harmonics, products, and what a turn does to them."""

import json

import e3nn_jax as e3nn
import jax
import jax.numpy as jnp

x = jax.random.normal(jax.random.key(0), (5, 3))
turn = e3nn.rand_matrix(jax.random.key(1))
harmonics = e3nn.spherical_harmonics("0e + 1o + 2e", x, normalize=True)
turned = e3nn.spherical_harmonics("0e + 1o + 2e", x @ turn.T, normalize=True)
product = e3nn.tensor_product(harmonics, e3nn.IrrepsArray("1o", x))
print(json.dumps({
    "harmonics": harmonics.array.sum(0).tolist(),
    "turned": float(jnp.abs(harmonics.transform_by_matrix(turn).array - turned.array).max() < 1e-5),
    "product": [str(product.irreps), float(jnp.abs(product.array).sum())],
    "coefficients": float(jnp.abs(e3nn.clebsch_gordan(1, 2, 3)).sum()),
    "gradient": jax.grad(lambda v: e3nn.norm(e3nn.spherical_harmonics("2e", v, False)).array.sum())(
        x)[0].tolist()}))
