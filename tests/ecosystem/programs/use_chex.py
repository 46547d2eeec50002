"""Dataclasses as pytrees, assertions under jit, variants and fake jit."""

import json

import chex
import jax
import jax.numpy as jnp


@chex.dataclass
class State:
    position: chex.Array
    velocity: chex.Array


@jax.jit
def step(state: State, dt: float) -> State:
    chex.assert_equal_shape([state.position, state.velocity])
    chex.assert_rank(state.position, 1)
    return State(position=state.position + dt * state.velocity,
                 velocity=state.velocity - dt * state.position)


state = State(position=jnp.array([1.0, 0.0]), velocity=jnp.array([0.0, 1.0]))
for _ in range(100):
    state = step(state, 0.01)
chex.assert_tree_all_finite(state)
chex.assert_trees_all_equal_structs(state, step(state, 0.1))

traced = chex.assert_max_traces(lambda x: x + 1, n=1)
jitted = jax.jit(traced)
jitted(1.0)
jitted(2.0)
try:
    jitted(jnp.ones(3))
    refused = 0
except AssertionError:
    refused = 1


def safe(x):
    chex.assert_trees_all_close(x, jnp.ones(3))
    return x.sum()


checked = chex.chexify(jax.jit(safe), async_check=False)
total = float(checked(jnp.ones(3)))
try:
    checked(jnp.zeros(3))
    failed = 0
except AssertionError:
    failed = 1
with chex.fake_jit():
    eager = float(jax.jit(lambda x: x * 2)(3.0))
leaves = jax.tree.leaves(jax.vmap(lambda s: s.position.sum())(
    State(position=jnp.ones((3, 2)), velocity=jnp.ones((3, 2)))))
print(json.dumps({
    "position": [float(v) for v in state.position], "refused": refused, "total": total,
    "failed": failed, "eager": eager, "sums": [float(v) for v in leaves[0]]}))
