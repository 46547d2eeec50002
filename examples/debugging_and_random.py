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
# # Looking inside, and random numbers
#
# First: how to see values inside compiled and mapped functions. Then: why random numbers come from
# keys here.

# %%
import logging

import numpy as np

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import random

# %% [markdown]
# ## Printing
# Python's `print` runs while a function is traced and shows tracers. That is right for shapes and
# types; values are printed by `jax.debug.print`, whenever the program runs.


# %%
@jax.jit
def f(x):
    print("print(x) ->", x)
    jax.debug.print("debug.print(x) -> {x}", x=x)
    y = jnp.sin(x)
    print("print(y) ->", y)
    jax.debug.print("debug.print(y) -> {y}", y=y)
    return y


result = f(2.0)
jax.effects_barrier()

# %% [markdown]
# A second call prints values alone:

# %%
result = f(3.0)
jax.effects_barrier()

# %% [markdown]
# Under `vmap` it prints for each example; under `lax.map`, which goes through them one after the
# other, both lines of one example come before those of the next.


# %%
def f(x):
    jax.debug.print("x -> {}", x)
    y = jnp.sin(x)
    jax.debug.print("y -> {}", y)
    return y


xs = jnp.arange(3.0)
result = jax.vmap(f)(xs)
jax.effects_barrier()

# %% tags=["varies"]
result = jax.lax.map(f, xs)
jax.effects_barrier()

# %% [markdown]
# Under `grad` it prints in the forward pass.


# %%
def f(x):
    jax.debug.print("x -> {}", x)
    return x**2


result = jax.grad(f)(1.0)
jax.effects_barrier()

# %% [markdown]
# A compiled program may print independent lines in another order. Where that matters, ask for it:


# %%
@jax.jit
def f(x, y):
    jax.debug.print("x -> {}", x, ordered=True)
    jax.debug.print("y -> {}", y, ordered=True)
    return x + y


print(f(1, 2))
jax.effects_barrier()

# %% [markdown]
# ## Stopping
# `jax.debug.breakpoint()` halts a running program and opens a prompt like that of `pdb`, with the
# values of the frames that led there. A condition on values is a `lax.cond`. Nothing halts here,
# because this division is fine; `f(2.0, 0.0)` would halt and wait for you.


# %%
def breakpoint_if_nonfinite(x):
    def true_fn(x):
        pass

    def false_fn(x):
        jax.debug.breakpoint()

    jax.lax.cond(jnp.isfinite(x).all(), true_fn, false_fn, x)


@jax.jit
def f(x, y):
    z = x / y
    breakpoint_if_nonfinite(z)
    return z


print(f(2.0, 1.0))

# %% [markdown]
# ## Any function of yours
# Both are made of `jax.debug.callback`, which calls a Python function with the values.

# %%
seen = []


def log_value(x):
    logging.info("Logged value: %s", x)
    seen.append(float(x))


@jax.jit
def f(x):
    jax.debug.callback(log_value, x)
    return x


f(1.0)
jax.vmap(f)(jnp.arange(5.0))
jax.grad(f)(1.0)
jax.effects_barrier()
print(sorted(seen))

# %% [markdown]
# Two flags help as well: `jax_debug_nans` stops at the first NaN and names the line that made it,
# and `jax_disable_jit` runs everything in Python, one operation after the other.

# %% tags=["varies"]
with jax.debug_nans(True):
    try:
        jax.jit(lambda x: jnp.log(x) * 0)(-1.0)
    except FloatingPointError as error:
        print(type(error).__name__)

# %% [markdown]
# ## Random numbers in NumPy
# NumPy keeps a hidden state, which every draw changes.


# %%
def print_truncated_random_state():
    state = np.random.get_state()
    print(state[0], state[1][:4], "...", "position", state[2])


np.random.seed(0)
print_truncated_random_state()
np.random.uniform()
print_truncated_random_state()

# %% [markdown]
# So three draws of one number are the same as one draw of three:

# %%
np.random.seed(0)
print(np.random.uniform(size=3))

np.random.seed(0)
print("individually:", np.stack([np.random.uniform() for _ in range(3)]))
np.random.seed(0)
print("all at once: ", np.random.uniform(size=3))

# %% [markdown]
# That rests on an order of execution. In the program below the result depends on which of the two
# functions runs first; Python settles it, but a compiler that reorders, and devices that run side
# by side, would all have to agree on one state.

# %%
np.random.seed(0)


def bar():
    return np.random.uniform()


def baz():
    return np.random.uniform()


def foo():
    return bar() + 2 * baz()


print(foo())

# %% [markdown]
# ## Keys
# Here the state is a value, a *key*, that is given to each function that draws. Drawing does not
# change it, so the same key draws the same numbers, whatever else runs, in whatever order, on any
# number of devices.

# %%
key = random.key(42)
print(key.dtype, random.key_data(key))
print(random.normal(key))
print(random.normal(key))

# %% [markdown]
# The rule: use a key once. For the next draw, split it. Which part is called `key` and which
# `subkey` is a matter of taste; the old one is not used again.

# %%
for i in range(3):
    new_key, subkey = random.split(key)
    del key  # it was used by split
    val = random.normal(subkey)
    del subkey  # it was used by normal
    print(f"draw {i}: {val}")
    key = new_key

# %%
key, subkey = random.split(key)
key, *forty_two_subkeys = random.split(key, num=43)
print(len(forty_two_subkeys))

# %% [markdown]
# Nor does a vector of draws equal single draws: each element is computed by itself, which is what
# makes it fast.

# %%
key = random.key(42)
subkeys = random.split(key, 3)
sequence = np.stack([random.normal(subkey) for subkey in subkeys])
print("individually:", sequence)
print("all at once: ", random.normal(key, shape=(3,)))

# %% [markdown]
# To draw for many keys at once, map:

# %%
print("vectorized:  ", jax.vmap(random.normal)(subkeys))

# %% [markdown]
# A key that is used twice by mistake is found by the flag `jax_debug_key_reuse`.
