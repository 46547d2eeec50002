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
# # Quickstart
#
# pyjx turns Python functions over arrays into programs: it differentiates them, maps them over
# batches and compiles them for CPU, GPU or TPU. The names are those of JAX, so by habit it is
# imported as `jax`. At the end of this notebook a small network has learned two spirals.

# %%
import matplotlib.pyplot as plt
import numpy as np
from tqdm import tqdm

import pyjx as jax
import pyjx.numpy as jnp

# %% [markdown]
# ## Arrays
# `jnp` has the functions of NumPy. Its arrays lie on a device, are 32 bits wide unless asked
# otherwise, and never change: `x.at[...]` gives a changed copy.

# %%
x = jnp.arange(6.0).reshape(2, 3)
print(x @ x.T)
print(x.at[0].set(-1.0))
print(x.dtype, x.shape)

# %% [markdown]
# ## Three transformations
# Each takes a function and returns one. `grad` gives the derivative of a scalar function, `vmap`
# applies a function of one example to many, and `jit` compiles.


# %%
def polynomial(x):
    return x**3 - 2 * x


slope = jax.grad(polynomial)
curvature = jax.grad(slope)
print("at 2:", polynomial(2.0), slope(2.0), curvature(2.0))
print("at four points:", jax.vmap(slope)(jnp.arange(4.0)))
print("compiled:", jax.jit(jax.vmap(slope))(jnp.arange(4.0)))

# %% [markdown]
# They nest in any order, because each reads the function as a program, a *jaxpr*, and writes
# another one:

# %% tags=["varies"]
print(jax.make_jaxpr(slope)(2.0))

# %% [markdown]
# ## Random numbers
# Randomness comes from keys. The same key gives the same numbers, on every device; `split` makes
# new keys of one.

# %%
key = jax.random.key(0)
data_key, init_key = jax.random.split(key)
print(jax.random.normal(data_key, (3,)))
print(jax.random.normal(data_key, (3,)), "again")

# %% [markdown]
# ## Two spirals
# Two arms of points, wound around each other; a network is to tell which arm a point is on.

# %%
POINTS = 400

angle = jnp.linspace(0.5, 3.5 * jnp.pi, POINTS)
arm = jnp.stack([angle * jnp.cos(angle), angle * jnp.sin(angle)], axis=1) / 10
noise = 0.03 * jax.random.normal(data_key, (2, POINTS, 2))
points = jnp.concatenate([arm + noise[0], -arm + noise[1]])
labels = jnp.repeat(jnp.array([0.0, 1.0]), POINTS)
print(points.shape, labels.shape)

# %% [markdown]
# Parameters are any nest of lists and dictionaries (a *pytree*). The network is written for one
# point; `vmap` makes it one for all of them.

# %%
SIZES = (2, 64, 64, 1)


def init(key):
    keys = jax.random.split(key, len(SIZES) - 1)
    return [{"weights": jax.random.normal(k, (n, m)) * (2 / n) ** 0.5, "bias": jnp.zeros(m)}
            for k, n, m in zip(keys, SIZES[:-1], SIZES[1:], strict=True)]


def score(params, point):
    """Above zero: the second arm."""
    hidden = point
    for layer in params[:-1]:
        hidden = jnp.tanh(hidden @ layer["weights"] + layer["bias"])
    return (hidden @ params[-1]["weights"] + params[-1]["bias"])[0]


scores = jax.vmap(score, in_axes=(None, 0))


def loss(params, points, labels):
    """Cross entropy: log(1 + exp(-s)) for the right sign of the score s."""
    sign = 2 * labels - 1
    return jnp.mean(jax.nn.softplus(-sign * scores(params, points)))


# %% [markdown]
# One step of gradient descent with momentum, compiled as one program.

# %%
RATE, MOMENTUM, STEPS = 0.1, 0.9, 1500


@jax.jit
def step(params, velocity, points, labels):
    value, gradient = jax.value_and_grad(loss)(params, points, labels)
    velocity = jax.tree.map(lambda v, g: MOMENTUM * v - RATE * g, velocity, gradient)
    return jax.tree.map(jnp.add, params, velocity), velocity, value


params = init(init_key)
velocity = jax.tree.map(jnp.zeros_like, params)
history = []
for _ in tqdm(range(STEPS), unit="step", leave=False):
    params, velocity, value = step(params, velocity, points, labels)
    history.append(value)
history = np.asarray(jnp.stack(history))

right = (scores(params, points) > 0) == (labels > 0.5)
print(f"loss {history[0]:.2f} at first, below 0.1 at last: {history[-1] < 0.1}")
print(f"more than 98 % right: {bool(jnp.mean(right) > 0.98)}")

# %%
grid = jnp.linspace(-1.3, 1.3, 120)
plane = jnp.stack(jnp.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
where = jax.nn.sigmoid(jax.jit(scores)(params, plane)).reshape(120, 120)

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
left.semilogy(history)
left.set(xlabel="step", ylabel="loss")
right.contourf(grid, grid, where, levels=20, cmap="RdBu")
right.scatter(*points.T, c=labels, s=4, cmap="gray")
plt.show()

# %% [markdown]
# ## What happened?
# A jitted function tells what it was traced for and what that cost. A second run of this notebook
# finds the compiled programs on disk.

# %% tags=["pyjx"]
print(step.explain())

# %% [markdown]
# From here: *Thinking in pyjx* says what tracing can and cannot see, *From Python to a TPU program*
# shows each stage of compilation, and *A transformer* trains on as many devices as there are.
