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
# # Flax and Optax, as they are
#
# Libraries that were written for `jax` run on pyjx unmodified. After `import pyjx.as_jax`, in this
# process `jax` *is* pyjx: the same modules, classes and functions by another name. An installed jax
# is neither loaded nor touched. The libraries are not pyjx's: `pip install flax optax` brings them.

# %% tags=["pyjx"]
import pyjx.as_jax  # noqa: I001 - before anything imports jax

# %%
from importlib.util import find_spec

needed = {"flax": "flax", "optax": "optax", "sklearn": "scikit-learn", "matplotlib": "matplotlib",
          "tqdm": "tqdm"}
missing = [package for module, package in needed.items() if find_spec(module) is None]
if missing:
    raise ModuleNotFoundError("This example needs libraries that pyjx does not bring: "
                              f"pip install {' '.join(missing)}")

# %%
import flax.linen as nn
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm import tqdm

# %% tags=["pyjx"]
import pyjx

print(jax is pyjx, jax.__version__, "from", jax.__file__.rpartition("/")[0].rpartition("/")[2])

# %% [markdown]
# ## Data
# The 1,797 handwritten digits of scikit-learn, 8 by 8 pixels.

# %%
digits = load_digits()
pictures = (digits.images / 16).astype(np.float32)[..., None]
train_x, test_x, train_y, test_y = train_test_split(
    pictures, digits.target.astype(np.int32), test_size=0.2, random_state=0)
print(train_x.shape, test_x.shape)

fig, axes = plt.subplots(1, 8, figsize=(10, 2))
for ax, picture, label in zip(axes, train_x, train_y, strict=False):
    ax.imshow(picture[..., 0], cmap="gray_r")
    ax.set_title(label)
    ax.axis("off")
plt.show()


# %% [markdown]
# ## Model
# Two convolutions and two layers, in Flax's words.


# %%
class Network(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        for features in (16, 32):
            x = nn.relu(nn.Conv(features, (3, 3))(x))
        x = nn.max_pool(x, (2, 2), strides=(2, 2))
        x = x.reshape(len(x), -1)
        x = nn.relu(nn.Dense(64)(x))
        x = nn.Dropout(0.2, deterministic=not train)(x)
        return nn.Dense(10)(x)


network = Network()
params = network.init(jax.random.key(0), train_x[:1], train=False)
print(jax.tree.map(jnp.shape, params))

# %% [markdown]
# ## Training
# Optax brings the optimizer: AdamW with a cosine schedule, and gradients clipped by their norm.

# %%
EPOCHS, BATCH = 20, 64
steps = EPOCHS * (len(train_x) // BATCH)
optimizer = optax.chain(optax.clip_by_global_norm(1.0),
                        optax.adamw(optax.cosine_decay_schedule(3e-3, steps), weight_decay=1e-3))


def loss(params, x, y, key):
    logits = network.apply(params, x, train=True, rngs={"dropout": key})
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


@jax.jit
def step(params, state, x, y, key):
    value, gradient = jax.value_and_grad(loss)(params, x, y, key)
    updates, state = optimizer.update(gradient, state, params)
    return optax.apply_updates(params, updates), state, value


@jax.jit
def accuracy(params, x, y):
    return jnp.mean(jnp.argmax(network.apply(params, x, train=False), -1) == y)


state = optimizer.init(params)
order = np.random.default_rng(0)
key = jax.random.key(1)
history = []
for _ in tqdm(range(EPOCHS), unit="epoch", leave=False):
    shuffled = order.permutation(len(train_x))
    for start in range(0, len(train_x) - BATCH + 1, BATCH):
        batch = shuffled[start:start + BATCH]
        key, dropout_key = jax.random.split(key)
        params, state, value = step(params, state, train_x[batch], train_y[batch], dropout_key)
        history.append(value)
history = np.array(jax.device_get(history))
print(f"loss {history[0]:.2f} at first")
print(f"more than 97 % right: {bool(accuracy(params, test_x, test_y) > 0.97)}")

# %%
plt.figure(figsize=(6, 3))
plt.semilogy(history)
plt.xlabel("step")
plt.ylabel("loss")
plt.show()

# %% [markdown]
# ## Programs, not only notebooks
# `python -m pyjx train.py` runs a whole program that way, and in an environment where `python -m
# pyjx install-alias` was run, `PYJX_AS_JAX=1` does it for every process.
