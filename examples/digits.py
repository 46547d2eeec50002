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
# # Handwritten digits
#
# A small multilayer perceptron learns the 1,797 real 8x8 digits that scikit-learn ships. The
# model is written for one image; `vmap` makes it one for a batch, `value_and_grad` gives the
# gradient of the loss and `jit` compiles the whole training step. On the way we look at what the
# step becomes: a jaxpr, StableHLO text, an executable.

# %%
import math
import sys
import time

import numpy as np
from sklearn.datasets import load_digits

import pyjx as jax
import pyjx.numpy as jnp

try:
    from tqdm import tqdm
except ImportError:
    tqdm = None

SEED = 0
EPOCHS = 60
BATCH = 64
LAYERS = (64, 256, 128, 10)
PEAK_LEARNING_RATE = 3e-3
NOISE = 0.15  # standard deviation of the noise on training pixels, which lie in [0, 1]
STARTED = time.perf_counter()


def stopwatch(action):
    """Runs `action` and returns its result and the seconds it took."""
    start = time.perf_counter()
    result = action()
    return result, time.perf_counter() - start


# %% [markdown]
# ## Data
# A fifth of the images, drawn at random, is held out and never trained on.

# %%
digits = load_digits()
key = jax.random.key(SEED)
key, split_key, init_key = jax.random.split(key, 3)

order = np.asarray(jax.random.permutation(split_key, len(digits.target)))
held_out, kept = np.split(order, [len(order) // 5])
pixels = (digits.data / 16).astype(np.float32)
classes = digits.target.astype(np.int32)
train_images, train_labels = jnp.array(pixels[kept]), jnp.array(classes[kept])
test_images, test_labels = jnp.array(pixels[held_out]), jnp.array(classes[held_out])
print(f"{len(kept)} digits to train on, {len(held_out)} held out")


# %% [markdown]
# ## Model and loss


# %%
def init_layer(key, inputs, outputs):
    """He initialisation: variance 2 / inputs keeps the scale through relu."""
    weights = jax.random.normal(key, (inputs, outputs)) * (2 / inputs) ** 0.5
    return {"weights": weights, "bias": jnp.zeros(outputs)}


def init(key):
    keys = jax.random.split(key, len(LAYERS) - 1)
    return [init_layer(*args) for args in zip(keys, LAYERS[:-1], LAYERS[1:], strict=True)]


def logits_of_one(params, image):
    """The scores of the ten classes for one image of 64 pixels."""
    hidden = image
    for layer in params[:-1]:
        hidden = jax.nn.relu(hidden @ layer["weights"] + layer["bias"])
    return hidden @ params[-1]["weights"] + params[-1]["bias"]


logits_of_batch = jax.vmap(logits_of_one, in_axes=(None, 0))


def loss(params, images, labels):
    """Mean cross entropy."""
    log_probabilities = jax.nn.log_softmax(logits_of_batch(params, images))
    targets = jax.nn.one_hot(labels, LAYERS[-1])
    return -jnp.mean(jnp.sum(targets * log_probabilities, axis=-1))


@jax.jit
def accuracy(params, images, labels):
    return jnp.mean(jnp.argmax(logits_of_batch(params, images), axis=-1) == labels)


# %% [markdown]
# ## The training step
# Adam (Kingma and Ba, 2015) on noisy copies of the images.


# %%
def train_step(params, moments, count, learning_rate, key, images, labels):
    images = images + NOISE * jax.random.normal(key, images.shape)
    value, grads = jax.value_and_grad(loss)(params, images, labels)
    count = count + 1
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], grads)
    second = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, moments[1], grads)
    rate = learning_rate * jnp.sqrt(1 - 0.99**count) / (1 - 0.9**count)
    params = jax.tree.map(
        lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8), params, first, second
    )
    return params, (first, second), count, value


params = init(init_key)
zeros = jax.tree.map(jnp.zeros_like, params)
moments, count = (zeros, zeros), jnp.array(0.0)
example = (params, moments, count, 0.0, key, train_images[:BATCH], train_labels[:BATCH])

# %% [markdown]
# ## From Python to an executable

# %% tags=["varies"]
traced, trace_seconds = stopwatch(lambda: jax.jit(train_step).trace(*example))
lowered, lower_seconds = stopwatch(traced.lower)
compiled, compile_seconds = stopwatch(lowered.compile)
_, step_seconds = stopwatch(lambda: jax.block_until_ready(compiled(*example)))

text = lowered.as_text()
print(f"the train step's jaxpr has {len(traced.jaxpr.eqns)} equations and begins:")
print("\n".join(line[:96] for line in str(traced.jaxpr).splitlines()[:8]))
print("its StableHLO begins:")
print("\n".join(line[:96] for line in text.splitlines()[:8]))
print(f"... {len(text.splitlines())} lines in all")
print(f"trace    {1e3 * trace_seconds:8.1f} ms")
print(f"lower    {1e3 * lower_seconds:8.1f} ms")
print(f"compile  {1e3 * compile_seconds:8.1f} ms")
print(f"1st step {1e3 * step_seconds:8.1f} ms")

# %% [markdown]
# ## Training
# The learning rate falls along half a cosine. Each epoch sees the images in a new order; what does
# not fill a last batch is left out. The loss that is shown is the mean over an epoch's batches,
# with their noise.

# %% tags=["varies"]
batches = len(kept) // BATCH
with_bar = tqdm is not None and sys.stderr.isatty()  # else a line every ten epochs
epochs = tqdm(range(EPOCHS), unit="epoch") if with_bar else range(EPOCHS)
training_started = time.perf_counter()
for epoch in epochs:
    rate = PEAK_LEARNING_RATE * 0.5 * (1 + math.cos(math.pi * epoch / EPOCHS))
    key, order_key = jax.random.split(key)
    epoch_order = jax.random.permutation(order_key, len(kept))[: batches * BATCH]
    noise_keys = jax.random.split(order_key, batches)
    losses = []
    for noise_key, batch in zip(noise_keys, epoch_order.reshape(batches, BATCH), strict=True):
        params, moments, count, value = compiled(
            params, moments, count, rate, noise_key, train_images[batch], train_labels[batch]
        )
        losses.append(value)
    if with_bar:
        epochs.set_postfix(loss=f"{np.mean(losses):.4f}")
    elif epoch % 10 == 9:
        print(f"epoch {epoch + 1:3d}  mean training loss {np.mean(losses):.4f}")
jax.block_until_ready(params)
training_seconds = time.perf_counter() - training_started

# %%
print(f"train accuracy {float(accuracy(params, train_images, train_labels)):.2%}")
print(f"test accuracy  {float(accuracy(params, test_images, test_labels)):.2%}")

# %% tags=["varies"]
print(f"step     {1e3 * training_seconds / (EPOCHS * batches):8.3f} ms on average, in training")
print(f"{time.perf_counter() - STARTED:.1f} s in all")
