"""Environments for several agents of JaxMARL, under vmap and scan."""

import json

import jax
import jaxmarl


def played(name, steps=20):
    env = jaxmarl.make(name)

    def step(carry, key):
        obs, state = carry
        keys = dict(zip(env.agents, jax.random.split(key, len(env.agents)), strict=True))
        actions = {a: env.action_space(a).sample(keys[a]) for a in env.agents}
        obs, state, reward, _, _ = env.step(key, state, actions)
        return (obs, state), sum(reward.values())

    def play(key):
        (obs, _), rewards = jax.lax.scan(
            step, env.reset(key), jax.random.split(jax.random.fold_in(key, 1), steps))
        return rewards, sum(jax.tree.leaves(jax.tree.map(lambda x: x.sum(), obs)))

    rewards, seen = jax.jit(jax.vmap(play))(jax.random.split(jax.random.key(0), 3))
    return [float(rewards.sum()), *map(float, seen)]


print(json.dumps({name: played(name) for name in (
    "MPE_simple_spread_v3", "switch_riddle", "hanabi")}))
