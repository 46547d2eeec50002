"""Sampling with blackjax: NUTS with adaptation, HMC, MALA, sequential Monte Carlo."""

import json

import blackjax
import jax
import jax.numpy as jnp


def logdensity(x):
    return -0.5 * jnp.sum((x - jnp.array([1.0, -1.0])) ** 2 / jnp.array([1.0, 0.25]))


def run(kernel, state, key, n):
    def step(state, key):
        state, _ = kernel(key, state)
        return state, state.position

    return jax.lax.scan(step, state, jax.random.split(key, n))[1]


key = jax.random.key(0)
warmup = blackjax.window_adaptation(blackjax.nuts, logdensity)
(state, parameters), _ = warmup.run(key, jnp.zeros(2), num_steps=100)
nuts = run(jax.jit(blackjax.nuts(logdensity, **parameters).step), state, jax.random.key(1), 200)
hmc = blackjax.hmc(logdensity, 0.2, jnp.ones(2), 10)
h = run(hmc.step, hmc.init(jnp.zeros(2)), jax.random.key(2), 200)
mala = blackjax.mala(logdensity, 0.1)
m = run(mala.step, mala.init(jnp.zeros(2)), jax.random.key(3), 200)
rm = blackjax.rmh(logdensity, blackjax.mcmc.random_walk.normal(0.5 * jnp.eye(2)))
r = run(rm.step, rm.init(jnp.zeros(2)), jax.random.key(4), 200)
print(json.dumps({
    "nuts": [float(v) for v in nuts.mean(0)], "hmc": [float(v) for v in h.mean(0)],
    "mala": [float(v) for v in m.mean(0)], "rmh": [float(v) for v in r.mean(0)],
    "step": float(parameters["step_size"])}))
