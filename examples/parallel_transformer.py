"""A transformer over a mesh of devices: data, tensors and sequences in parallel.

    python examples/parallel_transformer.py

trains a small one on eight devices, which the CPU plays, and on one; both must agree. The mesh has
two axes. Along `data` each device has other examples. Along `model` weights are cut, so that each
device has some heads and some columns of the hidden layers, and between these, where every position
is on its own, the positions. The program says only how values lie: which devices talk to which,
when, XLA finds. `scale_table.py` compiles the same program for hundreds of devices.
"""

import os
from functools import partial

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

import numpy as np

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.lax import with_sharding_constraint
from pyjx.sharding import AxisType, Mesh, NamedSharding
from pyjx.sharding import PartitionSpec as P

LEARNING_RATE = 0.1
POSITIONS = P("data", "model", None)  # (batch, length, width): sequences are cut along `model`
WHOLE = P("data", None, None)
# How the weights of a block lie.
BLOCK = {
    "norms": P(), "query": P(None, "model", None), "key": P(None, "model", None),
    "value": P(None, "model", None), "out": P("model", None, None),
    "up": P(None, "model"), "down": P("model", None),
}


def specs(layers):
    """How all weights lie."""
    return {"embedding": P(None, "model"), "norm": P(), "blocks": [BLOCK] * layers}


def shapes(layers, width, heads, vocabulary):
    """The shapes of all weights."""
    block = {"norms": (2, width), **dict.fromkeys(("query", "key", "value"),
                                                  (width, heads, width // heads)),
             "out": (heads, width // heads, width), "up": (width, 4 * width),
             "down": (4 * width, width)}
    return {"embedding": (vocabulary, width), "norm": (width,), "blocks": [block] * layers}


def is_shape(x):
    return isinstance(x, tuple)


def init(key, **sizes):
    """Weights of the variance 1 / inputs, and norms of one."""
    tree = shapes(**sizes)
    keys = iter(jax.random.split(key, len(jax.tree.leaves(tree, is_leaf=is_shape))))

    def weight(path, shape):
        key = next(keys)
        if path[-1].key.startswith("norm"):
            return jnp.ones(shape)
        inputs = sizes["width"] * (4 if path[-1].key == "down" else 1)
        return jax.random.normal(key, shape) / inputs ** 0.5

    return jax.tree.map_with_path(weight, tree, is_leaf=is_shape)


def norm(scale, x):
    return x * scale * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)


def attention(block, x):
    q, k, v = (jnp.einsum("blw,whd->blhd", x, block[name]) for name in ("query", "key", "value"))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
    past = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    weights = jax.nn.softmax(jnp.where(past, scores, -1e9))
    return jnp.einsum("bhqk,bkhd,hdw->bqw", weights, v, block["out"])


def feed_forward(block, x):
    return jax.nn.gelu(x @ block["up"]) @ block["down"]


def logits(params, tokens):
    x = with_sharding_constraint(params["embedding"][tokens], POSITIONS)
    for block in params["blocks"]:
        for scale, layer in zip(block["norms"], (attention, feed_forward), strict=True):
            inside = with_sharding_constraint(norm(scale, x), WHOLE)
            x = x + with_sharding_constraint(layer(block, inside), POSITIONS)
    return norm(params["norm"], x) @ params["embedding"].T


def loss(params, tokens):
    """Mean cross entropy of the next token."""
    log_probabilities = jax.nn.log_softmax(logits(params, tokens[:, :-1]))
    return -jnp.mean(jnp.take_along_axis(log_probabilities, tokens[:, 1:, None], axis=-1))


@partial(jax.jit, donate_argnums=0)
def step(params, tokens):
    value, grads = jax.value_and_grad(loss)(params, tokens)
    return jax.tree.map(lambda p, g: p - LEARNING_RATE * g, params, grads), value


def train(mesh, steps=20, batch=8, length=17, **sizes):
    """The losses of training on a task: each sequence counts up from a random number."""
    put = jax.tree.map(lambda spec: NamedSharding(mesh, spec), specs(sizes["layers"]))
    rng = np.random.default_rng(0)
    losses = []
    with jax.set_mesh(mesh):
        params = jax.device_put(init(jax.random.key(0), **sizes), put)
        for _ in range(steps):
            first = rng.integers(sizes["vocabulary"], size=(batch, 1))
            tokens = ((first + np.arange(length)) % sizes["vocabulary"]).astype("i4")
            params, value = step(params, jax.device_put(tokens, NamedSharding(mesh, P("data"))))
            losses.append(float(value))
    return losses


def main():
    sizes = {"layers": 2, "width": 32, "heads": 4, "vocabulary": 16}
    devices = np.array(jax.devices())
    types = (AxisType.Auto,) * 2
    meshes = [Mesh(devices[:1].reshape(1, 1), ("data", "model"), types),
              Mesh(devices.reshape(-1, 4 if len(devices) % 4 == 0 else 1), ("data", "model"),
                   types)]
    curves = []
    for mesh in meshes:
        losses = train(mesh, **sizes)
        print(f"{mesh.size} devices {dict(mesh.shape)}: loss {losses[0]:.4f} -> {losses[-1]:.4f}")
        curves.append(losses)
    np.testing.assert_allclose(*curves, rtol=1e-3)


if __name__ == "__main__":
    main()
