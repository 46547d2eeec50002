"""A model of penzai: named axes, a layer replaced, gradients."""

import json

import jax
import jax.numpy as jnp
from penzai import pz
from penzai.models import simple_mlp

model = simple_mlp.MLP.from_config(
    name="mlp", init_base_rng=jax.random.key(0), feature_sizes=[4, 8, 2])
x = pz.nx.wrap(jnp.arange(12.0).reshape(3, 4), "batch", "features")
doubled = pz.select(model).at_instances_of(pz.nn.Elementwise).apply(
    lambda layer: pz.nn.Sequential([layer, pz.nn.Elementwise(lambda v: 2 * v)]))


def loss(parameters, fixed):
    return (pz.bind_variables(fixed, parameters)(x) ** 2).untag("batch", "features").unwrap().sum()


unbound, parameters = pz.unbind_params(model, freeze=True)
gradient = jax.grad(loss)(parameters, unbound)
print(json.dumps({
    "plain": model(x).untag("batch", "features").unwrap().sum(0).tolist(),
    "doubled": doubled(x).untag("batch", "features").unwrap().sum(0).tolist(),
    "gradient": float(sum(jnp.abs(g).sum() for g in jax.tree.leaves(gradient)))}))
