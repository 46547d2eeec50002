"""Classic control with gymnax, under vmap and scan."""

import json

import gymnax
import jax


def played(name, steps=60):
    env, params = gymnax.make(name)

    def step(state, key):
        obs, state, reward, done, _ = env.step(
            key, state, env.action_space(params).sample(key), params)
        return state, (obs.sum(), reward, done)

    def play(key):
        _, state = env.reset(key, params)
        return jax.lax.scan(step, state, jax.random.split(key, steps))[1]

    played = jax.jit(jax.vmap(play))(jax.random.split(jax.random.key(0), 3))
    return [float(x.sum()) for x in played]


print(json.dumps({name: played(name) for name in (
    "CartPole-v1", "Pendulum-v1", "Catch-bsuite", "Breakout-MinAtar")}))
