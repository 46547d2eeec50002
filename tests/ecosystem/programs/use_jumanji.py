"""Games of jumanji, played at random under vmap and scan."""

import json

import jax
import jumanji


def played(name, steps=15):
    env = jumanji.make(name)

    def step(state, key):
        action = env.action_spec.sample(key) if hasattr(env.action_spec, "sample") else 0
        state, timestep = env.step(state, jax.numpy.asarray(action))
        return state, timestep.reward.sum()

    def play(key):
        state, _ = env.reset(key)
        return jax.lax.scan(step, state, jax.random.split(key, steps))[1]

    return float(jax.jit(jax.vmap(play))(jax.random.split(jax.random.key(0), 4)).sum())


print(json.dumps({name: played(name) for name in ("Game2048-v1", "Snake-v1", "Maze-v0")}))
