"""A recurrent network with normalization and dropout, trained with state."""

import json

import haiku as hk
import jax
import jax.numpy as jnp
import optax


def forward(x, is_training):
    x = hk.Linear(16, with_bias=False)(x)
    x = hk.BatchNorm(True, True, 0.9)(x, is_training)
    x = jax.nn.gelu(x)
    if is_training:
        x = hk.dropout(hk.next_rng_key(), 0.1, x)
    core = hk.LSTM(8)
    outs, _ = hk.dynamic_unroll(core, x[:, None, :], core.initial_state(1))
    h = hk.LayerNorm(-1, True, True)(outs[:, 0])
    h = hk.MultiHeadAttention(2, 4, w_init=hk.initializers.VarianceScaling(1.0))(h, h, h)
    h = hk.nets.MLP([16, 1])(h)
    return h[:, 0]


net = hk.transform_with_state(forward)
x = jax.random.normal(jax.random.key(0), (20, 5))
y = jnp.cumsum(x[:, 0]) * 0.1
params, state = net.init(jax.random.PRNGKey(42), x, True)
opt = optax.adam(1e-2)
opt_state = opt.init(params)


@jax.jit
def step(params, state, opt_state, key):
    def loss(params):
        out, new = net.apply(params, state, key, x, True)
        return jnp.mean((out - y) ** 2), new

    (value, new), grads = jax.value_and_grad(loss, has_aux=True)(params)
    updates, opt_state = opt.update(grads, opt_state)
    return optax.apply_updates(params, updates), new, opt_state, value


values = []
for i in range(12):
    params, state, opt_state, value = step(params, state, opt_state, jax.random.PRNGKey(i))
    values.append(float(value))
out, _ = net.apply(params, state, None, x, False)


layers = hk.without_apply_rng(hk.transform(
    lambda x: hk.experimental.layer_stack(3)(lambda h: hk.Linear(5)(jnp.tanh(h)))(x)))
stacked = layers.init(jax.random.PRNGKey(1), x)
remat = hk.transform(lambda x: hk.remat(hk.Linear(3))(x).sum())
p = remat.init(jax.random.PRNGKey(2), x)
g = jax.grad(remat.apply)(p, None, x)
print(json.dumps({
    "first": values[0], "last": values[-1], "eval": float(jnp.mean((out - y) ** 2)),
    "count": hk.data_structures.tree_size(params),
    "stack": float(layers.apply(stacked, x).sum()), "grad": float(g["linear"]["b"].sum())}))
