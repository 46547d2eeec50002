"""Mistakes that a type checker must find: each line with a comment `# wrong` and no other."""

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax, nn, random
from pyjx.extend.core import ClosedJaxpr

x = jnp.ones((2, 3))
key = random.key(0)

# Misspelt keywords.
jnp.sum(x, axes=0)  # wrong
jnp.mean(x, keep_dims=True)  # wrong
jnp.add(x, x, output=None)  # wrong
jnp.concatenate([x, x], axes=0)  # wrong
jnp.sin(x, axis=0)  # wrong
jnp.zeros((2,), dtpe=jnp.float32)  # wrong
nn.softmax(x, axes=-1)  # wrong
nn.relu(x, inplace=True)  # wrong
random.normal(key, shpae=(2,))  # wrong
random.uniform(key, (2,), min=0)  # wrong
lax.add(x, x, precision=None)  # wrong
x.sum(axes=0)  # wrong
x.at[0].set(1, mod="drop")  # wrong
jax.jit(jnp.sin, static_argnum=0)  # wrong
jax.grad(jnp.sum, argnum=0)  # wrong
jax.vmap(jnp.sin, in_axis=0)  # wrong


def loss(w: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.mean(x @ w)


jax.grad(loss)(x, y=x)  # wrong
jax.value_and_grad(loss)(x)  # wrong
jax.vmap(loss)(x, x, x)  # wrong
jax.checkpoint(loss)("w", x)  # wrong
jax.hessian(loss)(x, scale=1.0)  # wrong
print(jax.jvp(loss, (x, x), (x, x))[0].shappe)  # wrong
jax.vjp(loss, x, x)[0].no_such_method()  # wrong
primal, tangent, extra = jax.jvp(loss, (x, x), (x, x))  # wrong


@jax.jit(static_argname="n")  # wrong
def scaled(x: jax.Array, n: int) -> jax.Array:
    return x * n


@jax.jit
def doubled(x: jax.Array, *, by: float = 2.0) -> jax.Array:
    return x * by


class Model:
    @jax.jit
    def apply(self, x: jax.Array) -> jax.Array:
        return x


# Wrong calls of jitted functions.
doubled(x, 3.0)  # wrong
doubled(x, by="3")  # wrong
doubled()  # wrong
doubled.lower(x, b=2)  # wrong
doubled.lowered(x)  # wrong
print(doubled(x).shpae)  # wrong
jax.jit(doubled)(x, bye=3.0)  # wrong
Model().apply(x, x)  # wrong
Model().apply("x")  # wrong

# Wrong names.
print(x.shapes)  # wrong
x.set(0)  # wrong
x.at[0].put(1)  # wrong
x.T.summ()  # wrong
print(jnp.sum(x).dtipe)  # wrong
jnp.summ(x)  # wrong
nn.softmaxx(x)  # wrong
random.gaussian(key)  # wrong
jax.gradient(jnp.sum)  # wrong

# Wrong operands.
x + "1"  # wrong
x[0] @ None  # wrong
number: int = jnp.sum(x)  # wrong
x.astype(3)  # wrong
shape: list[int] = x.shape  # wrong

# Loops, branches and rules.


def body(carry: jax.Array, row: jax.Array) -> tuple[jax.Array, jax.Array]:
    return carry + row, row


@jax.custom_jvp
def square(x: jax.Array) -> jax.Array:
    return x * x


@jax.custom_vjp
def clipped(x: jax.Array) -> jax.Array:
    return x


def no_pair(x: jax.Array) -> jax.Array:
    return x


pair = x, x
lax.scan(lambda c, row: c + row, x[0], x)  # wrong
lax.scan(lambda c, row: ((c, c), row), x[0], x)  # wrong
lax.scan(lambda c, row: (c, row, row), x[0], x)  # wrong
lax.scan(lambda c, row: (c[0], row), pair, x)  # wrong
lax.scan(body, pair, x)  # wrong
lax.scan(no_pair, x, x)  # wrong
lax.while_loop(lambda c: (c < 3, c), lambda c: c, x)  # wrong
lax.while_loop(lambda c: c < 3, lambda c: (c, c), x)  # wrong
lax.while_loop(lambda c: c[0] < 3, lambda c: c[0], pair)  # wrong
lax.fori_loop(0, 3, lambda i, c: (c, c), x)  # wrong
lax.fori_loop(0, 3, lambda c: c, x)  # wrong
lax.fori_loop((0,), 3, lambda i, c: c, x)  # wrong
lax.cond(lambda: True, jnp.sin, jnp.cos, x)  # wrong
lax.cond(True, x, jnp.cos(x), x)  # wrong
lax.map(x, jnp.sin)  # wrong
square.defjvp(no_pair)  # wrong
square.defvjp(no_pair, no_pair)  # wrong
clipped.defvpj(no_pair, no_pair)  # wrong
clipped.defvjp(no_pair, lambda _, g: (g,))  # wrong
clipped.defvjp(lambda x: (x, None), lambda _, g: jnp.sin(g))  # wrong
print(square(x).shappe)  # wrong
jnp.sin("x")  # wrong
jnp.equal(x, x, where=x)  # wrong

# Shardings.
mesh = jax.make_mesh((1,), ("x",))
jax.NamedSharding(jax.P("x"), mesh)  # wrong
jax.sharding.NamedSharding(1, 2, 3)  # wrong
jax.NamedSharding(mesh, "x")  # wrong
print(jax.NamedSharding(mesh, jax.P("x")).specs)  # wrong
jax.sharding.SingleDeviceSharding()  # wrong

# Keys.
random.normal(0.5)  # wrong
random.split(3)  # wrong
random.fold_in(3, key)  # wrong
random.normal((2, 3), key)  # wrong
random.uniform("key")  # wrong
random.bernoulli(0.5, key)  # wrong
random.choice(3, key)  # wrong
nn.initializers.normal()(0.5, (2,))  # wrong

# What is read only.
mesh = jax.make_mesh((1,), ("x",))
mesh.axis_sizes = (3,)  # wrong
mesh.abstract_mesh = mesh.abstract_mesh  # wrong
mesh.abstract_mesh.axis_sizes = (3,)  # wrong
jax.P("x").partitions = ()  # wrong
lax.DotAlgorithmPreset.DEFAULT.supported_rhs_types = None  # wrong


def change(closed: ClosedJaxpr, ref: jax.Ref) -> None:
    closed.eqns = []  # wrong
    ref.committed = True  # wrong
