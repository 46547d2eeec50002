# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Thinking in pyjx
#
# What to know in order to use it well: arrays that do not change, the layers of the interface, when
# to compile, and what a traced function can see.

# %%
from functools import partial
from timeit import timeit

import matplotlib.pyplot as plt
import numpy as np

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import jit, lax, make_jaxpr

# %% [markdown]
# ## NumPy's interface
# Most of what is written with `np` runs with `jnp`, and gives the same curve.

# %%
x_np = np.linspace(0, 10, 1000)
y_np = 2 * np.sin(x_np) * np.cos(x_np)
x_jnp = jnp.linspace(0, 10, 1000)
y_jnp = 2 * jnp.sin(x_jnp) * jnp.cos(x_jnp)

fig, axes = plt.subplots(1, 2, figsize=(9, 3), sharey=True)
axes[0].plot(x_np, y_np)
axes[1].plot(x_jnp, y_jnp)
plt.show()

# %% [markdown]
# The types differ, though either is accepted nearly everywhere that the other is.

# %%
print(type(x_np).__name__, type(x_jnp).__name__)

# %% [markdown]
# One difference is always felt: these arrays cannot be written to. NumPy's can.

# %%
x = np.arange(10)
x[0] = 10
print(x)

# %% tags=["pyjx"]
x = jnp.arange(10)
try:
    x[0] = 10
except TypeError as error:
    print(error)

# %% [markdown]
# In place of an assignment there is an expression for the changed array. Inside `jit` it costs no
# copy where the old array is not used again.

# %%
x = jnp.arange(10)
y = x.at[0].set(10)
print(x)
print(y)

# %% [markdown]
# ## Two layers
# `jnp` is the comfortable layer: it promotes types and broadcasts shapes. Underneath is `lax`,
# whose functions are close to the compiler's operations. They do more, and convert nothing.

# %%
print(repr(jnp.add(1, 1.0)))
print(repr(lax.add(jnp.float32(1), 1.0)))
try:
    lax.add(1, 1.0)
except TypeError as error:
    print(type(error).__name__)

# %% [markdown]
# A convolution in both: `lax` has batches, channels, strides and dilations, and wants to be told
# about them.

# %%
x = jnp.array([1, 2, 1])
y = jnp.ones(10)
print(repr(jnp.convolve(x, y)))

result = lax.conv_general_dilated(
    x.reshape(1, 1, 3).astype(float),  # no promotion here
    y.reshape(1, 1, 10),
    window_strides=(1,),
    padding=[(len(y) - 1, len(y) - 1)])  # "full" in NumPy's words
print(repr(result[0, 0]))

# %% [markdown]
# Every function of `jnp` becomes operations of `lax`, and each of those one or a few of XLA, the
# compiler. That is what lets whole functions be compiled.

# %% [markdown]
# ## To compile or not
# Without `jit` each operation is a call of a compiled program of its own. With it, the function is
# one program: operations are fused, and no intermediate array need exist.


# %%
def norm(rows):
    rows = rows - rows.mean(0)
    return rows / rows.std(0)


norm_compiled = jit(norm)
np.random.seed(1701)
rows = jnp.array(np.random.rand(10000, 10))
print(np.allclose(norm(rows), norm_compiled(rows), atol=1e-6))

# %% [markdown]
# Calls return before the result is there, so what is timed must wait for it.

# %% tags=["varies"]
for name, function in (("one by one", norm), ("compiled", norm_compiled)):
    seconds = timeit(lambda function=function: function(rows).block_until_ready(), number=200) / 200
    print(f"{name:10} {seconds * 1e6:6.0f} us")

# %% [markdown]
# A compiled program has fixed shapes. Where the shape of a result depends on values, there is none
# to compile:


# %%
def get_negatives(x):
    return x[x < 0]


x = jnp.array(np.random.randn(10))
print(repr(get_negatives(x)))
try:
    jit(get_negatives)(x)
except jax.errors.NonConcreteBooleanIndexError as error:
    print(type(error).__name__)

# %% [markdown]
# Keep the shape instead, and mark what is meant: `jnp.where(x < 0, x, 0)`.

# %%
print(repr(jit(lambda x: jnp.where(x < 0, x, 0))(x)))

# %% [markdown]
# ## Tracing
# `jit` calls the Python function once, with stand-ins that know shape and dtype but no values, and
# records what is done to them. `print` shows the stand-ins, called *tracers*.


# %%
@jit
def f(x, y):
    print("Running f():")
    print(f"  x = {x}")
    print(f"  y = {y}")
    result = jnp.dot(x + 1, y + 1)
    print(f"  result = {result}")
    return result


x = np.random.randn(3, 4)
y = np.random.randn(4)
print(repr(f(x, y)))

# %% [markdown]
# For other values of the same shapes the recorded program runs, and Python does not:

# %%
x2 = np.random.randn(3, 4)
y2 = np.random.randn(4)
print(repr(f(x2, y2)))

# %% [markdown]
# The record is a *jaxpr*. Here it is:


# %%
def f(x, y):
    return jnp.dot(x + 1, y + 1)


print(make_jaxpr(f)(x, y))

# %% [markdown]
# Python decides nothing by a value that is not known yet. The message says which argument it was:

# %% tags=["pyjx"]
@jit
def g(x, neg):
    return -x if neg else x


try:
    g(1, True)
except jax.errors.TracerBoolConversionError as error:
    print(error)

# %% [markdown]
# An argument that takes few values may be *static*: known when tracing, and a new program for each
# value.


# %%
@partial(jit, static_argnums=(1,))
def g(x, neg):
    return -x if neg else x


print(repr(g(1, True)), repr(g(1, False)))

# %% [markdown]
# ## Static and traced operations
# Shapes are known when tracing, but an operation of `jnp` on a shape is recorded like any other,
# and its result is a tracer:


# %%
@jit
def flat(x):
    print("x =", x)
    print("x.shape =", x.shape)
    print("jnp.array(x.shape).prod() =", jnp.array(x.shape).prod())
    return x.reshape(jnp.array(x.shape).prod())


x = jnp.ones((2, 3))
try:
    flat(x)
except TypeError as error:
    print(type(error).__name__)

# %% [markdown]
# So compute what must be static with NumPy, which runs while tracing, and everything else with
# `jnp`. This is why programs import both.


# %%
@jit
def flat(x):
    return x.reshape((np.prod(x.shape),))


print(repr(flat(x)))

# %% [markdown]
# ## Pytrees and control flow
# Arguments and results are nests of tuples, lists and dictionaries; functions such as
# `jax.tree.map` go over their leaves. Loops and branches on traced values are functions of `lax`,
# and can be differentiated and mapped as everything else.


# %%
@jit
def steps_to_one(n):
    """Collatz: half of n if it is even, else 3 n + 1, until it is 1."""
    def step(state):
        n, count = state
        return lax.cond(n % 2 == 0, lambda n: n // 2, lambda n: 3 * n + 1, n), count + 1

    return lax.while_loop(lambda state: state[0] != 1, step, (n, 0))[1]


print({n: int(steps_to_one(n)) for n in (1, 6, 7, 27)})

state = {"position": jnp.zeros(2), "velocity": jnp.array([1.0, 2.0])}
print(jax.tree.map(lambda x: x + 1, state))
