"""A physics environment of brax, stepped and differentiated."""

import json

import jax
import jax.numpy as jnp
from brax import envs

env = envs.get_environment("inverted_pendulum", backend="generalized")
state = jax.jit(env.reset)(jax.random.PRNGKey(0))


@jax.jit
def rollout(state, actions):
    def step(state, action):
        state = env.step(state, action)
        return state, state.reward

    return jax.lax.scan(step, state, actions)


last, rewards = rollout(state, 0.1 * jnp.ones((20, env.action_size)))
print(json.dumps({"q": [float(v) for v in last.pipeline_state.q], "reward": float(rewards.sum()),
                  "obs": [float(v) for v in last.obs]}))
