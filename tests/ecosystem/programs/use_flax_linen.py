"""A convolutional network and a transformer block of flax.linen."""

import json

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training import train_state


class Net(nn.Module):
    @nn.compact
    def __call__(self, x, train: bool):
        x = nn.Conv(8, (3, 3))(x)
        x = nn.BatchNorm(use_running_average=not train)(x)
        x = nn.relu(x)
        x = nn.avg_pool(x, (2, 2), (2, 2))
        x = x.reshape(x.shape[0], -1, 8)
        x = nn.MultiHeadDotProductAttention(num_heads=2)(nn.LayerNorm()(x))
        x = nn.Dropout(0.1, deterministic=not train)(x)
        return nn.Dense(3)(x.mean(1))


class State(train_state.TrainState):
    batch_stats: dict


x = jax.random.normal(jax.random.key(0), (16, 8, 8, 1))
y = jnp.arange(16) % 3
net = Net()
variables = net.init(jax.random.key(1), x, False)
state = State.create(apply_fn=net.apply, params=variables["params"], tx=optax.adam(1e-2),
                     batch_stats=variables["batch_stats"])


@jax.jit
def step(state, key):
    def loss(params):
        logits, updates = state.apply_fn(
            {"params": params, "batch_stats": state.batch_stats}, x, True,
            mutable=["batch_stats"], rngs={"dropout": key})
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), updates

    (value, updates), grads = jax.value_and_grad(loss, has_aux=True)(state.params)
    return state.apply_gradients(grads=grads, batch_stats=updates["batch_stats"]), value


values = []
for i in range(20):
    state, value = step(state, jax.random.key(i))
    values.append(float(value))


class Stack(nn.Module):
    @nn.compact
    def __call__(self, x):
        cell = nn.scan(nn.remat(Block), variable_axes={"params": 0}, split_rngs={"params": True},
                       length=3)
        return cell(name="blocks")(x, None)[0]


class Block(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        return x + nn.Dense(6)(nn.tanh(x)), None


h = jnp.ones((2, 6))
stack = Stack()
params = stack.init(jax.random.key(3), h)
rnn = nn.RNN(nn.GRUCell(5))
rp = rnn.init(jax.random.key(4), jnp.ones((2, 7, 3)))
table = nn.tabulate(net, jax.random.key(0), console_kwargs={"force_terminal": False})(x, False)
print(json.dumps({
    "first": values[0], "last": values[-1], "stack": float(stack.apply(params, h).sum()),
    "kernel": list(params["params"]["blocks"]["Dense_0"]["kernel"].shape),
    "rnn": float(rnn.apply(rp, jnp.ones((2, 7, 3))).sum()), "table": "Conv_0" in table}))
