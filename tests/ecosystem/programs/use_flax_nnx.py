"""A network of flax.nnx with state, trained and split into graph and arrays."""

import json

import jax
import jax.numpy as jnp
import optax
from flax import nnx


class Net(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.first = nnx.Linear(3, 16, rngs=rngs)
        self.norm = nnx.BatchNorm(16, rngs=rngs)
        self.drop = nnx.Dropout(0.1, rngs=rngs)
        self.last = nnx.Linear(16, 1, rngs=rngs)
        self.calls = nnx.Variable(jnp.array(0))

    def __call__(self, x):
        self.calls[...] = self.calls[...] + 1
        return self.last(self.drop(nnx.relu(self.norm(self.first(x)))))[:, 0]


net = Net(nnx.Rngs(0))
optimizer = nnx.Optimizer(net, optax.adam(1e-2), wrt=nnx.Param)
x = jax.random.normal(jax.random.key(0), (32, 3))
y = x[:, 0] * x[:, 1]


@nnx.jit
def step(net, optimizer):
    def loss(net):
        return jnp.mean((net(x) - y) ** 2)

    value, grads = nnx.value_and_grad(loss)(net)
    optimizer.update(net, grads)
    return value


net.train()
values = [float(step(net, optimizer)) for _ in range(30)]
net.eval()
graph, state = nnx.split(net)
again = nnx.merge(graph, state)


@nnx.vmap(in_axes=0, out_axes=0)
def many(seed):
    return nnx.Linear(2, 3, rngs=nnx.Rngs(seed))


ensemble = many(jax.random.split(jax.random.key(5), 4))


@nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
def through(h, layer):
    return jnp.tanh(h @ layer.kernel[...][:, :2])


print(json.dumps({
    "first": values[0], "last": values[-1], "calls": int(net.calls[...]),
    "same": float(jnp.abs(again(x) - net(x)).max()),
    "ensemble": list(ensemble.kernel[...].shape),
    "scan": float(through(jnp.ones(2), ensemble).sum())}))
