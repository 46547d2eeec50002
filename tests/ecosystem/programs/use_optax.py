"""Fits a small network with several optimizers, schedules and clipping."""

import json

import jax
import jax.numpy as jnp
import optax

key = jax.random.key(0)
x = jax.random.normal(key, (64, 4))
y = jnp.sin(x @ jnp.array([1.0, -2.0, 0.5, 0.0]))


def init(key):
    a, b = jax.random.split(key)
    return {"w1": jax.random.normal(a, (4, 16)) * 0.5, "b1": jnp.zeros(16),
            "w2": jax.random.normal(b, (16,)) * 0.25}


def loss(params):
    h = jnp.tanh(x @ params["w1"] + params["b1"])
    return jnp.mean(optax.l2_loss(h @ params["w2"], y))


schedule = optax.warmup_cosine_decay_schedule(0.0, 1e-2, 10, 100)
optimizers = {
    "adamw": optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule)),
    "lion": optax.lion(1e-3),
    "sgd": optax.sgd(1e-1, momentum=0.9, nesterov=True),
    "multi": optax.multi_transform(
        {"slow": optax.sgd(1e-3), "fast": optax.adam(1e-2)},
        {"w1": "fast", "b1": "slow", "w2": "fast"}),
    "accumulated": optax.MultiSteps(optax.rmsprop(1e-2), 3),
    "injected": optax.inject_hyperparams(optax.adam)(learning_rate=schedule),
}
figures = {}
for name, optimizer in optimizers.items():
    params = init(jax.random.key(1))
    state = optimizer.init(params)

    @jax.jit
    def step(params, state):
        value, grads = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(grads, state, params)  # noqa: B023
        return optax.apply_updates(params, updates), state, value

    for _ in range(60):
        params, state, value = step(params, state)
    figures[name] = float(value)

solver = optax.lbfgs()
params = init(jax.random.key(1))
state = solver.init(params)
value_and_grad = optax.value_and_grad_from_state(loss)
for _ in range(8):
    value, grad = value_and_grad(params, state=state)
    updates, state = solver.update(grad, state, params, value=value, grad=grad, value_fn=loss)
    params = optax.apply_updates(params, updates)
figures["lbfgs"] = float(loss(params))
print(json.dumps(figures))
