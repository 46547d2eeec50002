"""Values of quax in place of arrays: low rank updates of a layer, and units through loops."""

import json

import equinox as eqx
import jax
import jax.numpy as jnp
import quax
from quax.examples import lora, unitful

layer = eqx.nn.Linear(10, 12, key=jax.random.key(0))
small = eqx.tree_at(lambda m: m.weight, layer,
                    lora.LoraArray(layer.weight, rank=2, key=jax.random.key(1)))
x = jnp.arange(10.0)
loss = eqx.filter_grad(lambda m: jnp.sum(quax.quaxify(lambda m: m(x))(m) ** 2))
length = unitful.Unitful(jnp.array([1.0, 2.0]), {unitful.meters: 1})


def loops(u):
    (doubled, _), sums = jax.lax.scan(lambda c, _: ((c[0] + u, c[1] + 1), c[0]), (u, 0), None, 3)
    grown, _ = jax.lax.while_loop(
        lambda c: c[1] < 3, lambda c: (c[0] + c[0], c[1] + 1), (doubled, 0))
    return jax.jit(lambda a: a * a)(grown), sums


area, sums = quax.quaxify(loops)(length)
print(json.dumps({
    "layer": quax.quaxify(lambda m: m(x))(small).tolist(), "slope": loss(small).weight.b.tolist(),
    "area": area.array.tolist(), "unit": area.units[unitful.meters],
    "sums": sums.array.tolist()}))
