"""Quantities with units: arithmetic, conversions, updates and transformations."""

import json

import jax
import quaxed.numpy as jnp
import unxt as u

way, time = u.Quantity([1.0, 2.0, 3.0], "km"), u.Quantity([1.0, 2.0, 4.0], "s")
far = jnp.where(way > u.Quantity(1500.0, "m"), way, 2 * way)
print(json.dumps({
    "speed": (way / time).uconvert("m/s").value.tolist(), "far": far.value.tolist(),
    "sum": float(jnp.sum(way).value), "unit": str(jax.jit(lambda q: q * q)(way).unit),
    "set": way.at[0].set(u.Quantity(5.0, "km")).value.tolist(),
    "twice": jax.vmap(lambda q: 2 * q)(way).value.tolist(),
    "vectorized": jnp.vectorize(lambda a: 2 * a)(way).value.tolist(),
    "slope": float(u.experimental.grad(lambda q: q ** 2, units=("km",))(way[2]).value),
    "joined": jnp.concatenate([way, way]).value.tolist()}))
