"""Modules, filtered transformations, runtime errors and loops of equinox."""

import json

import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import optax

key = jax.random.key(0)
x = jax.random.normal(key, (40, 2))
y = jnp.sin(3 * x[:, 0]) * x[:, 1]


class Net(eqx.Module):
    mlp: eqx.nn.MLP
    scale: jax.Array
    name: str = eqx.field(static=True)

    def __init__(self, key):
        self.mlp = eqx.nn.MLP(2, "scalar", 16, 2, key=key)
        self.scale = jnp.ones(())
        self.name = "net"

    def __call__(self, x):
        return self.scale * self.mlp(x)


@eqx.filter_jit
def step(net, state):
    def loss(net):
        return jnp.mean((jax.vmap(net)(x) - y) ** 2)

    value, grads = eqx.filter_value_and_grad(loss)(net)
    updates, state = opt.update(grads, state, eqx.filter(net, eqx.is_array))
    return eqx.apply_updates(net, updates), state, value


net = Net(jax.random.key(1))
opt = optax.adam(1e-2)
state = opt.init(eqx.filter(net, eqx.is_array))
values = []
for _ in range(40):
    net, state, value = step(net, state)
    values.append(float(value))


@eqx.filter_jit
def positive(x):
    return eqx.error_if(x, x < 0, "x must be >= 0") * 2


try:
    positive(jnp.array(-1.0))
    caught = ""
except RuntimeError as error:
    caught = "x must be >= 0" if "x must be >= 0" in str(error) else str(error)


def newton(a):
    def body(carry):
        i, v = carry
        return i + 1, 0.5 * (v + a / v)

    return eqxi.while_loop(lambda c: c[0] < 8, body, (0, a), max_steps=10, kind="checkpointed")[1]


attention = eqx.nn.MultiheadAttention(2, 8, key=key)
h = jax.random.normal(key, (5, 8))
gru = eqx.nn.GRUCell(3, 4, key=key)
conv = eqx.nn.Conv2d(1, 2, 3, key=key)
norm, norm_state = eqx.nn.make_with_state(eqx.nn.BatchNorm)(8, "batch", mode="batch")
out, norm_state = jax.vmap(norm, axis_name="batch", in_axes=(0, None), out_axes=(0, None))(
    h, norm_state)
tangent = eqx.filter_jvp(net, (x[0],), (jnp.ones(2),))[1]
closed, out_shape, _ = eqx.filter_make_jaxpr(net)(x[0])
print(json.dumps({
    "first": values[0], "last": values[-1], "caught": caught, "ok": float(positive(jnp.array(2.0))),
    "root": float(newton(2.0)), "slope": float(jax.grad(newton)(2.0)),
    "attention": float(attention(h, h, h).sum()), "gru": float(gru(jnp.ones(3), jnp.ones(4)).sum()),
    "conv": float(conv(jnp.ones((1, 6, 6))).sum()), "norm": float(jnp.abs(out).sum()),
    "tangent": float(tangent), "shape": list(out_shape.shape),
    "batched": float(jax.vmap(jax.grad(newton))(jnp.array([2.0, 3.0])).sum())}))
