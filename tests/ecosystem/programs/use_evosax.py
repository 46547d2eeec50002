"""Minimizing by evolution with evosax."""

import json

import jax
import jax.numpy as jnp
from evosax.algorithms import CMA_ES, Open_ES, SimpleGA


def best(kind, **options):
    method = kind(population_size=16, solution=jnp.zeros(4), **options)
    params = method.default_params
    key = jax.random.key(0)
    start = jnp.ones((16, 4)) + jax.random.normal(key, (16, 4))

    def distance(x):
        return jnp.sum((x - 0.5) ** 2, -1)

    state = method.init(key, start, distance(start), params) if kind is SimpleGA else (
        method.init(key, jnp.ones(4), params))

    def step(state, key):
        population, state = method.ask(key, state, params)
        fitness = distance(population)
        state, _ = method.tell(key, population, fitness, state, params)
        return state, fitness.min()

    return jax.lax.scan(step, state, jax.random.split(key, 20))[1]


print(json.dumps({kind.__name__: [float(v) for v in best(kind)[::5]]
                  for kind in (CMA_ES, Open_ES, SimpleGA)}))
