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
# # A transformer, on as many devices as there are
#
# A small language model, written with nothing but arrays: attention, a feed-forward network, layer
# normalization, Adam. It learns to write arithmetic: `37+48=85`. Each device has a part of every
# batch; the program is the same for one CPU, for eight, and for the cores of a TPU.
#
# On a machine without accelerators, `JAX_NUM_CPU_DEVICES=8` makes eight devices of one CPU.

# %%
import matplotlib.pyplot as plt
import numpy as np
from tqdm import tqdm

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.sharding import AxisType, NamedSharding
from pyjx.sharding import PartitionSpec as P

print(jax.device_count() >= 1, "device" if jax.device_count() == 1 else "devices")

# %% [markdown]
# ## Data
# Sums of numbers below one hundred, as text. The model reads a prefix and predicts the next
# character; only what comes after the `=` counts.

# %%
LETTERS = "0123456789+= "
LENGTH = 9  # "99+99=198"
rng = np.random.default_rng(0)


def sums(count):
    """Lines as numbers of letters."""
    a, b = rng.integers(0, 100, (2, count))
    lines = [f"{i}+{j}={i + j}".ljust(LENGTH) for i, j in zip(a, b, strict=True)]
    return np.array([[LETTERS.index(c) for c in line] for line in lines], np.int32)


def text(row):
    return "".join(LETTERS[i] for i in row)


print([text(row) for row in sums(3)])

# %% [markdown]
# ## The model
# For one line; `vmap` will make it one for a batch.

# %%
WIDTH, HEADS, LAYERS = 64, 4, 2


def init_block(key):
    keys = jax.random.split(key, 4)

    def matrix(key, n, m):
        return jax.random.normal(key, (n, m)) / n**0.5

    return {"attend": matrix(keys[0], WIDTH, 3 * WIDTH), "mix": matrix(keys[1], WIDTH, WIDTH),
            "up": matrix(keys[2], WIDTH, 4 * WIDTH), "down": matrix(keys[3], 4 * WIDTH, WIDTH)}


def init(key):
    first, second, *rest = jax.random.split(key, 2 + LAYERS)
    return {"letters": 0.5 * jax.random.normal(first, (len(LETTERS), WIDTH)),
            "places": 0.5 * jax.random.normal(second, (LENGTH, WIDTH)),
            "blocks": [init_block(k) for k in rest]}


def normalize(x):
    return jax.nn.standardize(x, axis=-1)


def attention(block, x):
    """softmax(q k^T / sqrt(d)) v for each head, of what came before."""
    q, k, v = jnp.moveaxis((x @ block["attend"]).reshape(len(x), 3, HEADS, -1), 0, 2)
    scores = jnp.einsum("hid,hjd->hij", q, k) / q.shape[-1] ** 0.5
    before = jnp.tril(jnp.ones((len(x), len(x)), bool))
    weights = jax.nn.softmax(jnp.where(before, scores, -jnp.inf))
    heads = jnp.einsum("hij,hjd->ihd", weights, v)
    return heads.reshape(len(x), WIDTH) @ block["mix"]


def logits(params, line):
    x = params["letters"][line] + params["places"][: len(line)]
    for block in params["blocks"]:
        x = x + attention(block, normalize(x))
        x = x + jax.nn.gelu(normalize(x) @ block["up"]) @ block["down"]
    return normalize(x) @ params["letters"].T


def loss(params, lines):
    """Cross entropy of the letters behind the sign of equality, the space at the end included."""
    scores = jax.vmap(logits, (None, 0))(params, lines[:, :-1])
    wanted = lines[:, 1:]
    likely = jnp.take_along_axis(jax.nn.log_softmax(scores), wanted[..., None], axis=-1)[..., 0]
    counts = jnp.cumsum(lines == LETTERS.index("="), axis=1)[:, :-1]
    return -jnp.sum(likely * counts) / jnp.sum(counts)


# %% [markdown]
# ## Training on all devices
# The devices form a *mesh* with one axis. A batch is cut along that axis, parameters are on every
# device. Nothing else says that there are several: XLA sees where the arrays are, and adds the
# gradients up over the devices.

# %%
mesh = jax.make_mesh((jax.device_count(),), ("data",), axis_types=(AxisType.Auto,))
cut, everywhere = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())

BATCH, STEPS, RATE = 128, 1000, 3e-3


@jax.jit
def step(params, first, second, count, lines):
    """Adam, with a rate that rises for 100 steps and falls linearly to zero."""
    value, gradient = jax.value_and_grad(loss)(params, lines)
    count = count + 1
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
    second = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, second, gradient)
    rate = RATE * jnp.minimum(count / 100, 1 - count / (STEPS + 1))
    rate = rate * jnp.sqrt(1 - 0.99**count) / (1 - 0.9**count)
    params = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8),
                          params, first, second)
    return params, first, second, count, value


params = jax.device_put(init(jax.random.key(0)), everywhere)
print(f"{sum(x.size for x in jax.tree.leaves(params)):,} parameters")
zeros = jax.tree.map(jnp.zeros_like, params)
state = params, zeros, zeros, 0.0
history = []
for _ in tqdm(range(STEPS), unit="step", leave=False):
    lines = jax.device_put(sums(BATCH), cut)  # the first part on the first device, and so on
    *state, value = step(*state, lines)
    history.append(value)
params = state[0]
history = np.array(jax.device_get(history))

print("parts of a batch:", {shard.data.shape for shard in lines.addressable_shards}
      == {(BATCH // jax.device_count(), LENGTH)})
print(f"loss {history[0]:.1f} at first")

# %%
plt.figure(figsize=(6, 3))
plt.semilogy(history)
plt.xlabel("step")
plt.ylabel("loss")
plt.show()

# %% [markdown]
# ## Writing
# Letter by letter, the likeliest each time. The loop is in the program (`fori_loop`), and so is the
# batch.


# %%
@jax.jit
def answers(params, lines):
    """Each line with all behind the sign of equality written by the model."""
    def write(i, lines):
        scores = jax.vmap(logits, (None, 0))(params, lines)[:, i - 1]
        written = jnp.any(lines[:, :] == LETTERS.index("="), axis=1)
        done = jnp.cumsum(lines == LETTERS.index("="), axis=1)[:, i - 1] > 0
        letter = jnp.where(written & done, jnp.argmax(scores, -1), lines[:, i])
        return lines.at[:, i].set(letter)

    return jax.lax.fori_loop(1, LENGTH, write, lines)


examples = sums(512)
behind = np.cumsum(examples == LETTERS.index("="), axis=1) - (examples == LETTERS.index("=")) > 0
questions = np.where(behind, LETTERS.index(" "), examples)
written = np.asarray(answers(params, jax.device_put(questions, cut)))
right = (written == examples).all(axis=1).mean()
print(f"more than 90 % of 512 sums are right: {right > 0.9}")

# %% tags=["varies"]
print(f"loss {history[-1]:.4f}, {right:.1%} right")
for row in written[:5]:
    print(text(row))
