"""Molecular dynamics with jax-md: soft spheres, minimized and at constant temperature."""

import json

import jax
import jax.numpy as jnp
from jax_md import energy, minimize, quantity, simulate, space

displacement, shift = space.periodic(6.0)
energy_fn = energy.soft_sphere_pair(displacement)
start = jax.random.uniform(jax.random.key(0), (64, 2), maxval=6.0)
init, apply = minimize.fire_descent(energy_fn, shift)
state = jax.lax.fori_loop(0, 50, lambda i, s: apply(s), init(start))
neighbors = energy.soft_sphere_neighbor_list(displacement, 6.0)
neighbor_fn, by_neighbors = neighbors
nbrs = neighbor_fn.allocate(state.position)
init, apply = simulate.nvt_nose_hoover(energy_fn, shift, 1e-3, 0.3)
hot = jax.lax.fori_loop(0, 100, lambda i, s: jax.jit(apply)(s), init(jax.random.key(1), start))
lj = energy.lennard_jones_pair(displacement)
print(json.dumps({
    "before": float(energy_fn(start)), "after": float(energy_fn(state.position)),
    "by_neighbors": float(by_neighbors(state.position, neighbor=nbrs)),
    "force": float(jnp.abs(quantity.force(energy_fn)(start)).mean()),
    "temperature": float(quantity.temperature(momentum=hot.momentum)),
    "lennard_jones": float(lj(jnp.array([[0.0, 0.0], [1.2, 0.0], [0.0, 1.1]])))}))
