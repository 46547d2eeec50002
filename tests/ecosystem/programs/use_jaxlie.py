"""Lie groups with jaxlie: exponentials, logarithms, derivatives on the manifold."""

import json

import jax
import jax.numpy as jnp
import jaxlie
from jaxlie import manifold

pose = jaxlie.SE3.exp(jnp.array([1.0, 2.0, 3.0, 0.1, -0.2, 0.3]))
turn = jaxlie.SO3.from_rpy_radians(0.1, 0.2, 0.3)


def loss(pair):
    return jnp.sum((pair[0].inverse() @ jaxlie.SE3.identity()).log() ** 2) + pair[1] ** 2


gradient = manifold.grad(loss)((pose, jnp.array(2.0)))
moved = manifold.rplus((pose, jnp.array(2.0)), jax.tree.map(lambda g: -0.1 * g, gradient))
print(json.dumps({
    "log": pose.log().tolist(), "turned": (turn @ jnp.array([1.0, 0.0, 0.0])).tolist(),
    "gradient": gradient[0].tolist() + [float(gradient[1])], "moved": moved[0].log().tolist(),
    "jacobian": float(jnp.abs(jaxlie.SE3.jlog(pose)).sum())}))
