"""What users write: no type checker may find fault with it."""

from collections.abc import Callable
from functools import partial
from typing import Any, assert_type

import numpy as np

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax, nn, random
from pyjx.typing import ArrayLike, DTypeLike

jax.config.update("jax_enable_x64", False)
assert_type(jax.config.read("jax_enable_x64"), Any)
print(jax.config.jax_enable_x64, jax.__version__)

key = random.key(0)
x = jnp.ones((2, 3), dtype=jnp.float32)
y: jax.Array = random.normal(key, (2, 3))
table: dict[str, jnp.ndarray] = {"x": x, "y": y}

# Functions of arrays give arrays.
assert_type(x, jax.Array)
assert_type(jnp.sum(x, axis=0, keepdims=True), jax.Array)
assert_type(jnp.add(x, 1), jax.Array)
assert_type(jnp.sin(x), jax.Array)
assert_type(jnp.maximum(x, y), jax.Array)
assert_type(jnp.equal(x, y), jax.Array)
assert_type(jnp.logical_and(x, y), jax.Array)
assert_type(jnp.where(x > 0, x, y), jax.Array)
assert_type(jnp.where(x > 0), tuple[jax.Array, ...])
assert_type(jnp.concatenate([x, y], axis=0), jax.Array)
assert_type(jnp.split(x, 2), list[jax.Array])
assert_type(jnp.divmod(x, 2), tuple[jax.Array, jax.Array])
assert_type(nn.softmax(x, axis=-1), jax.Array)
assert_type(nn.relu(x), jax.Array)
assert_type(random.uniform(key, (3,), minval=-1.0), jax.Array)
assert_type(random.split(key, 3), jax.Array)
assert_type(lax.add(x, y), jax.Array)
assert_type(lax.dot(x, y.T), jax.Array)
initial = nn.initializers.he_normal()(key, (2, 3), jnp.float32)

# Attributes, methods and operators of arrays.
assert_type(x.shape, tuple[int, ...])
assert_type(x.ndim, int)
assert_type(x.T, jax.Array)
assert_type(x.at[0].set(1.0, mode="drop"), jax.Array)
assert_type(x.at[0, 1:].get(mode="fill", fill_value=0), jax.Array)
assert_type(x.astype(jnp.bfloat16), jax.Array)
assert_type(x.sum(axis=(0, 1)).item(), Any)
assert_type(x.reshape(3, 2).reshape((6,)), jax.Array)
assert_type(-x + 1 * x / 2.0 - 1j, jax.Array)
assert_type(2 ** x // np.float32(3), jax.Array)
assert_type(x @ y.T, jax.Array)
assert_type((x > 0) & (y != 1) | ~(x == y), jax.Array)
assert_type(x[0, ..., None], jax.Array)
assert_type(float(x.mean()), float)
assert_type(x.block_until_ready(), jax.Array)
total = sum(row for row in x)
host = np.asarray(x)
if isinstance(x, jax.Array) and x.dtype == jnp.float32:
    print(x.devices(), x.sharding, x.weak_type)
if isinstance(x, jax.core.Tracer):
    print(x.aval.shape)


# jit keeps the signature, in all its forms.
def scaled(x: jax.Array, n: int = 2) -> jax.Array:
    return x * n


@jax.jit
def doubled(x: jax.Array, *, by: float = 2.0) -> jax.Array:
    return x * by


@partial(jax.jit, static_argnames=("n",))
def tripled(x: ArrayLike, n: int = 3) -> jax.Array:
    return jnp.multiply(x, n)


@jax.jit(static_argnums=(1,), donate_argnums=0)
def halved(x: jax.Array, n: int) -> jax.Array:
    return x / n


@jax.tree_util.register_static
class Model:
    @jax.jit
    def __call__(self, x: jax.Array) -> jax.Array:
        return x

    @partial(jax.jit, static_argnums=0)
    def apply(self, x: jax.Array, *, train: bool = False) -> jax.Array:
        return x


assert_type(jax.jit(scaled, static_argnums=1)(x, 3), jax.Array)
assert_type(doubled(x, by=3.0), jax.Array)
tripled(x, n=2)
assert_type(halved(x, 2), jax.Array)
assert_type(Model()(x), jax.Array)
Model().apply(x, train=True)
lowered = doubled.lower(x)
print(lowered.as_text(), lowered.compile().as_text(), doubled.trace(x).jaxpr)
doubled.clear_cache()


# Transformations.
def loss(w: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.mean(jnp.tanh(x @ w) ** 2)


value, grads = jax.value_and_grad(loss)(x.T, x)
mapped: Callable[..., Any] = jax.vmap(jax.grad(loss), in_axes=(None, 0))
outs, tangents = jax.jvp(loss, (x.T, x), (x.T, x))
assert_type(value, jax.Array)
assert_type(outs, jax.Array)
assert_type(tangents, jax.Array)
assert_type(jax.vmap(loss, in_axes=(None, 0))(jnp.ones(3), x), jax.Array)
assert_type(jax.checkpoint(loss)(x.T, x), jax.Array)
assert_type(jax.vjp(loss, x.T, x)[0], jax.Array)
output, pull_back = jax.vjp(loss, x.T, x)
assert_type(pull_back(output), Any)
linear_output, push = jax.linearize(loss, x.T, x)
assert_type(push(x.T, x), jax.Array)
jax.hessian(loss)(x.T, x=x)
jax.jacrev(jax.jacfwd(loss, argnums=1))(x.T, x)


def loss_and_data(w: jax.Array, scale: float = 1.0) -> tuple[jax.Array, dict[str, int]]:
    return jnp.sum(w) * scale, {"n": 1}


(value, data), grads = jax.value_and_grad(loss_and_data, has_aux=True)(x, scale=2.0)
assert_type(data, dict[str, int])
primal, tangent, extra = jax.jvp(loss_and_data, (x,), (x,), has_aux=True)
assert_type(tangent, jax.Array)
assert_type(extra, dict[str, int])
jax.grad(partial(loss_and_data, scale=3.0), has_aux=True)(x)
step = jax.jit(jax.grad(loss))
step(x.T, x)
shapes = jax.eval_shape(loss, x.T, x)
leaves = jax.tree_util.tree_leaves({"a": x})
doubled_tree = jax.tree.map(lambda leaf: leaf * 2, {"a": x})


def cast(x: ArrayLike, dtype: DTypeLike) -> jax.Array:
    return jnp.asarray(x, dtype=dtype)


print(cast(1.0, "float32"), cast(x, jnp.int32), cast(True, np.dtype("int8")))


# Loops and branches have the type of what they carry; one array may begin as a number.
pair = x[0], 1


def body(carry: jax.Array, row: jax.Array) -> tuple[jax.Array, None]:
    return carry + row, None


class State:
    """A pytree of the user's."""

    def __init__(self, total: jax.Array) -> None:
        self.total = total


jax.tree_util.register_pytree_node(
    State, lambda s: ((s.total,), None), lambda _, children: State(*children))


def advance(state: State, row: jax.Array) -> tuple[State, jax.Array]:
    return State(state.total + row), row


assert_type(lax.scan(body, x[0], x), tuple[jax.Array, None])
assert_type(lax.scan(body, 0.0, np.ones(3))[0], jax.Array)
assert_type(lax.scan(lambda c, row: (c + row, c), 0.0, x[0])[1], jax.Array)
lax.scan(jax.checkpoint(body), x[0], x)
lax.scan(partial(body), x[0], x)
lax.scan(lambda c, _: (c * 2, None), x, None, length=3)
lax.scan(lambda c, _: (c * 2, None), x, length=3)
lax.scan(lambda c, row: ((c[0] + row, c[1] + 1), row), pair, x)
lax.scan(lambda c, rows: ({"a": c["a"] + rows[0]}, rows[1]), {"a": x[0]}, (x, x))
lax.scan(lambda k, _: (random.split(k)[0], random.normal(k)), key, length=3)
assert_type(lax.scan(advance, State(x[0]), x), tuple[State, jax.Array])
assert_type(lax.while_loop(lambda c: c[0, 0] < 3, lambda c: c + 1, x), jax.Array)
lax.while_loop(lambda c: c < 3, lambda c: c + 1, 0)
lax.while_loop(lambda c: c[1] < 3, lambda c: (c[0] * 2, c[1] + 1), pair)
assert_type(lax.fori_loop(0, 3, lambda i, c: c + i, x), jax.Array)
lax.fori_loop(0, jnp.asarray(3), lambda i, c: (c[0] * 2, c[1] + 1), pair)
assert_type(lax.cond(x[0, 0] > 1, lambda: x[0, 0], lambda: 0.0), jax.Array)
assert_type(lax.cond(True, jnp.sin, jnp.cos, x), jax.Array)
lax.cond(True, lambda y: (y, y), lambda y: (y, y + 1), x)
lax.cond(True, x, lambda y: y + 1, x, lambda y: y)
lax.switch(1, [jnp.sin, lambda y: y + 1], x)
lax.map(lambda row: row + 1, x, batch_size=2)


@partial(jax.custom_vjp, nondiff_argnums=(1,))
def clipped(x: jax.Array, bound: float) -> jax.Array:
    return x


clipped.defvjp(lambda x, bound: (x, None), lambda bound, _, g: (jnp.clip(g, -bound, bound),))
assert_type(clipped(x, 1.0), jax.Array)


@jax.custom_jvp
def square(x: jax.Array) -> jax.Array:
    return x * x


@square.defjvp
def square_jvp(primals: tuple[jax.Array], tangents: tuple[jax.Array]
               ) -> tuple[jax.Array, jax.Array]:
    return square(primals[0]), 2 * primals[0] * tangents[0]


assert_type(square(x), jax.Array)
print(square.__name__, square.__qualname__, square.__doc__, square.__module__, square.fun)
print(square.__wrapped__, clipped.__wrapped__(x, 1.0), clipped.nondiff_argnums)

mesh = jax.make_mesh((1,), ("x",))
rows = jax.NamedSharding(mesh, jax.P("x", None))
assert_type(rows.shard_shape((2, 3)), tuple[int, ...])
print(rows.mesh.axis_names, rows.spec, rows.device_set, rows.memory_kind, rows.update(spec=jax.P()))
print(jax.sharding.NamedSharding(mesh.abstract_mesh, jax.P(), memory_kind="pinned_host"))
jax.device_put(x, rows).sharding.is_equivalent_to(rows, 2)
jax.device_put(x, jax.sharding.SingleDeviceSharding(jax.devices()[0]))
jax.vmap(random.normal)(random.split(key))
random.normal(np.zeros(2, np.uint32))
assert_type(jax.make_mesh((1,), ("x",)).axis_sizes, tuple[int, ...])
assert_type(jax.P("x").partitions, tuple[Any, ...])
