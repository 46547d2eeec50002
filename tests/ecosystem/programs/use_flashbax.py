"""Replay buffers of flashbax: of items, trajectories and by priority."""

import json

import flashbax as fbx
import jax
import jax.numpy as jnp

item = {"obs": jnp.zeros(3), "reward": jnp.zeros(())}
steps = {"obs": jnp.arange(60.0).reshape(20, 3), "reward": jnp.arange(20.0)}

flat = fbx.make_flat_buffer(max_length=32, min_length=2, sample_batch_size=4)
state = flat.init(item)
for i in range(20):
    state = jax.jit(flat.add)(state, {name: x[i] for name, x in steps.items()})
pairs = jax.jit(flat.sample)(state, jax.random.key(0)).experience

rows = fbx.make_prioritised_trajectory_buffer(
    add_batch_size=2, sample_batch_size=4, sample_sequence_length=3, period=1,
    min_length_time_axis=3, max_length_time_axis=16, priority_exponent=0.6, device="cpu")
state = rows.init(item)
state = rows.add(state, jax.tree.map(lambda x: x.reshape(2, 10, *x.shape[1:]), steps))
sample = jax.jit(rows.sample)
first = sample(state, jax.random.key(1))
state = rows.set_priorities(state, first.indices, jnp.arange(1.0, 5.0))
second = sample(state, jax.random.key(2))
print(json.dumps({
    "pairs": pairs.first["reward"].tolist() + pairs.second["reward"].tolist(),
    "first": first.experience["reward"].tolist(), "second": second.experience["reward"].tolist(),
    "probabilities": second.probabilities.tolist()}))
