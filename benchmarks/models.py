"""The programs that are measured, written for clarity: plain functions over nested lists and dicts.

They are written for JAX's API and run on whichever library `BENCHMARK_LIBRARY` names. Parameters
and data are drawn with numpy, so that both libraries start from the same numbers.
"""

import importlib
import itertools
import os

import numpy as np

LIBRARY = os.environ.get("BENCHMARK_LIBRARY", "pyjx")
jax = importlib.import_module(LIBRARY)
jnp = importlib.import_module(f"{LIBRARY}.numpy")


def momentum_step(loss, rate=1e-2, decay=0.9):
    """The training step `(params, velocity, *batch) -> (params, velocity, loss)`."""

    def step(params, velocity, *batch):
        value, grads = jax.value_and_grad(loss)(params, *batch)
        velocity = jax.tree.map(lambda v, g: decay * v + g, velocity, grads)
        params = jax.tree.map(lambda p, v: p - rate * v, params, velocity)
        return params, velocity, value

    return step


def training(loss, params, *batch):
    """A training step and its first arguments: parameters, velocities of zero and a batch."""
    params = jax.tree.map(jnp.asarray, params)
    velocity = jax.tree.map(jnp.zeros_like, params)
    return momentum_step(loss), (params, velocity, *map(jnp.asarray, batch))


def scaled_normal(rng, *shape, fan_in=None):
    scale = (1 / (fan_in or shape[0])) ** 0.5
    return (rng.standard_normal(shape) * scale).astype(np.float32)


def cross_entropy(logits, labels):
    targets = jax.nn.one_hot(labels, logits.shape[-1])
    return -jnp.mean(jnp.sum(targets * jax.nn.log_softmax(logits), axis=-1))


# A decoder-only transformer: pre-norm blocks of causal attention and a gelu MLP, unrolled.


def over_devices():
    """A mesh of all devices, and functions that put arrays on it: whole, or cut along an axis."""
    kinds = jax.sharding
    mesh = kinds.Mesh(np.array(jax.devices()), ("data",))

    def cut(x, axis=0):
        spec = kinds.PartitionSpec(*[None] * axis, "data")
        return jax.device_put(x, kinds.NamedSharding(mesh, spec))

    def whole(x):
        return jax.device_put(x, kinds.NamedSharding(mesh, kinds.PartitionSpec()))

    return mesh, cut, whole


def transformer(layers=12, width=96, heads=4, length=64, batch=8, vocabulary=256, remat=False,
                scan=False, sharded=False):
    rng = np.random.default_rng(0)
    params = {
        "tokens": scaled_normal(rng, vocabulary, width, fan_in=width),
        "positions": scaled_normal(rng, length, width, fan_in=width),
        "blocks": [init_block(rng, width) for _ in range(layers)],
        "norm": init_norm(width),
        "out": scaled_normal(rng, width, vocabulary),
    }
    text = rng.integers(0, vocabulary, (batch, length + 1)).astype(np.int32)

    def apply(hidden, block):
        hidden = hidden + attention(block, layer_norm(block["norm1"], hidden), heads)
        return hidden + mlp(block, layer_norm(block["norm2"], hidden))

    if remat:
        apply = jax.checkpoint(apply)
    if scan:
        params["blocks"] = jax.tree.map(lambda *each: np.stack(each), *params["blocks"])

    def loss(params, inputs, targets):
        hidden = params["tokens"][inputs] + params["positions"]
        if scan:
            hidden, _ = jax.lax.scan(lambda h, b: (apply(h, b), None), hidden, params["blocks"])
        else:
            for block in params["blocks"]:
                hidden = apply(hidden, block)
        return cross_entropy(layer_norm(params["norm"], hidden) @ params["out"], targets)

    inputs, targets = text[:, :-1], text[:, 1:]
    if sharded:
        _, cut, whole = over_devices()
        params, inputs, targets = jax.tree.map(whole, params), cut(inputs), cut(targets)
    return training(loss, params, inputs, targets)


def init_norm(width):
    return {"scale": np.ones(width, np.float32), "shift": np.zeros(width, np.float32)}


def init_block(rng, width):
    return {
        "norm1": init_norm(width),
        "qkv": scaled_normal(rng, width, 3 * width),
        "proj": scaled_normal(rng, width, width),
        "norm2": init_norm(width),
        "up": scaled_normal(rng, width, 4 * width),
        "up_bias": np.zeros(4 * width, np.float32),
        "down": scaled_normal(rng, 4 * width, width),
        "down_bias": np.zeros(width, np.float32),
    }


def layer_norm(params, x):
    mean = jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.var(x, axis=-1, keepdims=True)
    return (x - mean) / jnp.sqrt(variance + 1e-5) * params["scale"] + params["shift"]


def attention(params, x, heads):
    batch, length, width = x.shape
    qkv = (x @ params["qkv"]).reshape(batch, length, 3, heads, width // heads)
    query, key, value = qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / (width // heads) ** 0.5
    causal = jnp.tril(jnp.ones((length, length), bool))
    weights = jax.nn.softmax(jnp.where(causal, scores, -1e9), axis=-1)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, value)
    return mixed.reshape(batch, length, width) @ params["proj"]


def mlp(params, x):
    hidden = jax.nn.gelu(x @ params["up"] + params["up_bias"])
    return hidden @ params["down"] + params["down_bias"]


# ResNet-50 (He et al., 2015), with batch statistics, on small images.

STAGES = ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2))  # blocks, width, stride of the first


def resnet50(batch=4, size=32, classes=100):
    rng = np.random.default_rng(0)
    params = {"stem": init_conv(rng, 7, 3, 64), "stages": []}
    channels = 64
    for blocks, width, _ in STAGES:
        stage = []
        for _ in range(blocks):
            stage.append(init_bottleneck(rng, channels, width))
            channels = 4 * width
        params["stages"].append(stage)
    params["out"] = scaled_normal(rng, channels, classes)
    images = rng.standard_normal((batch, size, size, 3)).astype(np.float32)
    labels = rng.integers(0, classes, batch).astype(np.int32)

    def loss(params, images, labels):
        x = max_pool(jax.nn.relu(conv_norm(params["stem"], images, stride=2)))
        for stage, (_, _, stride) in zip(params["stages"], STAGES, strict=True):
            x = bottleneck(stage[0], x, stride)
            for block in stage[1:]:
                x = bottleneck(block, x, 1)
        return cross_entropy(jnp.mean(x, axis=(1, 2)) @ params["out"], labels)

    return training(loss, params, images, labels)


def init_conv(rng, size, inputs, outputs):
    kernel = scaled_normal(rng, size, size, inputs, outputs, fan_in=size * size * inputs / 2)
    return {"kernel": kernel, **init_norm(outputs)}


def init_bottleneck(rng, inputs, width):
    params = {
        "reduce": init_conv(rng, 1, inputs, width),
        "conv": init_conv(rng, 3, width, width),
        "expand": init_conv(rng, 1, width, 4 * width),
    }
    if inputs != 4 * width:
        params["shortcut"] = init_conv(rng, 1, inputs, 4 * width)
    return params


def bottleneck(params, x, stride):
    hidden = jax.nn.relu(conv_norm(params["reduce"], x))
    hidden = jax.nn.relu(conv_norm(params["conv"], hidden, stride))
    hidden = conv_norm(params["expand"], hidden)
    shortcut = conv_norm(params["shortcut"], x, stride) if "shortcut" in params else x
    return jax.nn.relu(hidden + shortcut)


def conv_norm(params, x, stride=1):
    x = jax.lax.conv_general_dilated(
        x, params["kernel"], (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    mean = jnp.mean(x, axis=(0, 1, 2))
    variance = jnp.var(x, axis=(0, 1, 2))
    return (x - mean) / jnp.sqrt(variance + 1e-5) * params["scale"] + params["shift"]


def max_pool(x):
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")


# An LSTM (Hochreiter and Schmidhuber, 1997), its time steps a Python loop or a scan.


def lstm(steps=48, width=128, inputs=32, batch=16, scan=False):
    rng = np.random.default_rng(0)
    params = {
        "input": scaled_normal(rng, inputs, 4 * width),
        "hidden": scaled_normal(rng, width, 4 * width),
        "bias": np.zeros(4 * width, np.float32),
        "out": scaled_normal(rng, width, inputs),
    }
    signal = rng.standard_normal((steps + 1, batch, inputs)).astype(np.float32)

    def loss(params, inputs, targets):
        def advance(carry, now):
            (hidden, cell), (given, wanted) = carry, now
            gates = given @ params["input"] + hidden @ params["hidden"] + params["bias"]
            into, forget, candidate, out = jnp.split(gates, 4, axis=-1)
            cell = jax.nn.sigmoid(forget) * cell + jax.nn.sigmoid(into) * jnp.tanh(candidate)
            hidden = jax.nn.sigmoid(out) * jnp.tanh(cell)
            return (hidden, cell), jnp.mean((hidden @ params["out"] - wanted) ** 2)

        carry = jnp.zeros((batch, width)), jnp.zeros((batch, width))
        if scan:
            return jnp.mean(jax.lax.scan(advance, carry, (inputs, targets))[1])
        total = 0.0
        for t in range(steps):
            carry, error = advance(carry, (inputs[t], targets[t]))
            total = total + error
        return total / steps

    return training(loss, params, signal[:-1], signal[1:])


# Hessians of a scalar network with respect to its input, for a batch: forward over reverse.


def hessian(dimension=24, width=64, batch=64):
    rng = np.random.default_rng(0)
    sizes = (dimension, width, width, 1)
    params = [scaled_normal(rng, *pair) for pair in itertools.pairwise(sizes)]
    points = rng.standard_normal((batch, dimension)).astype(np.float32)

    def energy(params, x):
        for weights in params[:-1]:
            x = jnp.tanh(x @ weights)
        return jnp.sum(x @ params[-1])

    def hessian_at(params, x):
        gradient = jax.grad(lambda x: energy(params, x))
        column = jax.vmap(lambda direction: jax.jvp(gradient, (x,), (direction,))[1])
        return column(jnp.eye(dimension))

    def hessians(params, points):
        return jax.vmap(hessian_at, in_axes=(None, 0))(params, points)

    return hessians, (jax.tree.map(jnp.asarray, params), jnp.asarray(points))


# Gradients of each example's loss, and products of the loss's Hessian with a direction.


def network(sizes, batch):
    rng = np.random.default_rng(0)
    params = [scaled_normal(rng, *pair) for pair in itertools.pairwise(sizes)]
    points = rng.standard_normal((batch, sizes[0])).astype(np.float32)
    labels = rng.integers(0, sizes[-1], batch).astype(np.int32)

    def loss(params, x, label):
        for weights in params[:-1]:
            x = jnp.tanh(x @ weights)
        return cross_entropy(x @ params[-1], label)

    return loss, tuple(jax.tree.map(jnp.asarray, (params, points, labels)))


def per_example(sizes=(64, 128, 128, 10), batch=64):
    loss, args = network(sizes, batch)
    return jax.vmap(jax.grad(loss), in_axes=(None, 0, 0)), args


def hessian_product(sizes=(64, 128, 128, 10), batch=64):
    loss, (params, points, labels) = network(sizes, batch)

    def product(params, direction):
        gradient = jax.grad(lambda params: loss(params, points, labels))
        return jax.jvp(gradient, (params,), (direction,))[1]

    return product, (params, jax.tree.map(jnp.ones_like, params))


# Loops whose steps are small: what an iteration costs.


def while_loop(steps=2000, size=64):
    def run(x):
        return jax.lax.while_loop(
            lambda state: state[0] < steps,
            lambda state: (state[0] + 1, jnp.sin(state[1]) * 1.1), (0, x))[1]

    return run, (jnp.ones((size,)),)


def batched_cond(batch=100, size=1000):
    def choose(index, x):
        return jax.lax.switch(index, [jnp.sin, jnp.cos, lambda x: x * x], x)

    x = np.random.default_rng(0).standard_normal((batch, size)).astype(np.float32)
    return jax.vmap(choose), (jnp.arange(batch) % 3, jnp.asarray(x))


def long_scan(steps=1000, size=512):
    """The gradient of a scan whose carry is kept at each step."""
    def run(x):
        return jnp.sum(jax.lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=steps)[0])

    return jax.grad(run), (jnp.ones((size, size)),)


def chain(equations):
    """A function of about so many equations, all alike and small, and its argument."""

    def run(x):
        for _ in range(equations // 2):
            x = jnp.sin(x) * 0.5
        return x

    return run, (jnp.zeros((8, 8)),)


MODELS = {
    "transformer": transformer,
    "resnet50": resnet50,
    "lstm": lstm,
    "hessian": hessian,
    "per_example": per_example,
    "hessian_product": hessian_product,
    "while_loop": while_loop,
    "batched_cond": batched_cond,
    "long_scan": long_scan,
}
