"""Twelve training steps within a memory budget: estimates, peaks and times.

    python benchmarks/memory.py [--platform tpu:v5e:2x2] [--only gpt6,lstm] [--policies]

For each step the peak that the compiler tells, without a budget and with three quarters, a half and
35 % of it, beside what pyjx expects; on CPU also by how much it takes longer, and how far gradients
differ. With `--policies` the same of JAX's policies, put around each layer by hand, on the library
that `BENCHMARK_LIBRARY` names.
"""

import argparse
import functools
import itertools
import json
import os
import time

import models
import numpy as np
from models import jax, jnp, training
from small import normal

# Batches are so many times larger: small values lie in a TPU's other memory, which nobody counts.
SCALE = int(os.environ.get("BENCHMARK_SCALE", "1"))
SHARES = (0.75, 0.5, 0.35)
POLICIES = ("nothing_saveable", "dots_saveable", "dots_with_no_batch_dims_saveable")


def layered(layer, blocks, x, scan=False):
    if scan:
        return jax.lax.scan(lambda x, block: (layer(block, x), None), x, blocks)[0]
    for block in blocks:
        x = layer(block, x)
    return x


def gpt(wrap, layers=6, scan=False):
    rng = np.random.default_rng(0)
    width, heads, length, batch, vocabulary = 128, 4, 128, 8, 512
    blocks = [models.init_block(rng, width) for _ in range(layers)]
    if scan:
        blocks = jax.tree.map(lambda *each: np.stack(each), *blocks)
    params = {"tokens": normal(rng, vocabulary, width), "blocks": blocks,
              "norm": models.init_norm(width), "out": normal(rng, width, vocabulary)}

    def layer(block, x):
        x = x + models.attention(block, models.layer_norm(block["norm1"], x), heads)
        return x + models.mlp(block, models.layer_norm(block["norm2"], x))

    def loss(params, text):
        x = layered(wrap(layer), params["blocks"], params["tokens"][text[:, :-1]], scan)
        return models.cross_entropy(models.layer_norm(params["norm"], x) @ params["out"],
                                    text[:, 1:])

    return training(loss, params, rng.integers(0, vocabulary, (SCALE * batch, length + 1)))


def resnet50(wrap):
    rng = np.random.default_rng(0)
    _, (params, _, _, _) = models.resnet50(1, 32)
    layer = wrap(models.bottleneck, static_argnums=(2,))

    def loss(params, images, labels):
        x = models.max_pool(jax.nn.relu(models.conv_norm(params["stem"], images, stride=2)))
        for stage, (_, _, stride) in zip(params["stages"], models.STAGES, strict=True):
            for i, block in enumerate(stage):
                x = layer(block, x, 1 if i else stride)
        return models.cross_entropy(jnp.mean(x, axis=(1, 2)) @ params["out"], labels)

    n = 16 * SCALE
    return training(loss, params, normal(rng, n, 64, 64, 3), rng.integers(0, 100, n))


def lstm(wrap):
    rng = np.random.default_rng(0)
    width, steps, batch = 64, 1000, 16 * SCALE
    params = {"in": normal(rng, 32, 4 * width), "state": normal(rng, width, 4 * width),
              "bias": np.zeros(4 * width, np.float32), "out": normal(rng, width, 1)}

    def loss(params, sequence, y):
        def cell(carry, x):
            h, c = carry
            i, f, g, o = jnp.split(x @ params["in"] + h @ params["state"] + params["bias"], 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

        zeros = jnp.zeros((batch, width))
        (h, _), _ = jax.lax.scan(wrap(cell), (zeros, zeros), sequence)
        return jnp.mean((h @ params["out"] - y) ** 2)

    return training(loss, params, normal(rng, steps, batch, 32), normal(rng, batch, 1))


def conv(x, kernel, stride=1):
    return jax.lax.conv_general_dilated(x, kernel, (stride, stride), "SAME",
                                        dimension_numbers=("NHWC", "HWIO", "NHWC"))


def unet(wrap):
    rng = np.random.default_rng(0)
    sizes = (16, 32, 64, 128)
    params = {"in": normal(rng, 3, 3, 3, 16), "out": normal(rng, 1, 1, 16, 3),
              "down": [[normal(rng, 3, 3, a, b), normal(rng, 3, 3, b, b)]
                       for a, b in itertools.pairwise(sizes)],
              "up": [[normal(rng, 3, 3, a + b, a), normal(rng, 3, 3, a, a)]
                     for a, b in itertools.pairwise(sizes)][::-1]}

    def down(kernels, x):
        return jax.nn.silu(conv(jax.nn.silu(conv(x, kernels[0], 2)), kernels[1]))

    def up(kernels, x, skip):
        n, h, w, c = x.shape
        x = jnp.broadcast_to(x[:, :, None, :, None], (n, h, 2, w, 2, c)).reshape(n, 2 * h, 2 * w, c)
        x = jax.nn.silu(conv(jnp.concatenate([x, skip], -1), kernels[0]))
        return jax.nn.silu(conv(x, kernels[1]))

    def loss(params, noisy, clean):
        skips = [jax.nn.silu(conv(noisy, params["in"]))]
        for kernels in params["down"]:
            skips.append(wrap(down)(kernels, skips[-1]))
        x = skips.pop()
        for kernels in params["up"]:
            x = wrap(up)(kernels, x, skips.pop())
        return jnp.mean((conv(x, params["out"]) - clean) ** 2)

    n = 8 * SCALE
    return training(loss, params, normal(rng, n, 64, 64, 3), normal(rng, n, 64, 64, 3))


def moe(wrap):
    rng = np.random.default_rng(0)
    width, experts, layers, tokens = 128, 4, 4, 1024 * SCALE
    params = [{"norm": models.init_norm(width), "gate": normal(rng, width, experts),
               "up": normal(rng, experts, width, 2 * width),
               "down": normal(rng, experts, 2 * width, width)} for _ in range(layers)]

    def layer(block, x):
        y = models.layer_norm(block["norm"], x)
        weight, chosen = jax.lax.top_k(jax.nn.softmax(y @ block["gate"]), 1)
        place = jax.nn.one_hot(chosen[:, 0], experts)
        order = jnp.cumsum(place, 0) * place - place
        room = jax.nn.one_hot(order.astype(int), tokens // 2) * place[..., None]
        given = jnp.einsum("tec,td->ecd", room, y)
        made = jax.nn.gelu(jnp.einsum("ecd,edf->ecf", given, block["up"]))
        made = jnp.einsum("ecf,efd->ecd", made, block["down"])
        return x + jnp.einsum("tec,ecd->td", room, made) * weight

    def loss(params, x, y):
        return jnp.mean((layered(wrap(layer), params, x) - y) ** 2)

    return training(loss, params, normal(rng, tokens, width), normal(rng, tokens, width))


def vit(wrap):
    rng = np.random.default_rng(0)
    width, layers = 96, 8
    params = {"patch": normal(rng, 192, width), "place": normal(rng, 64, width),
              "blocks": [models.init_block(rng, width) for _ in range(layers)],
              "norm": models.init_norm(width), "out": normal(rng, width, 10)}

    def layer(block, x):
        x = x + models.attention(block, models.layer_norm(block["norm1"], x), 4)
        return x + models.mlp(block, models.layer_norm(block["norm2"], x))

    def loss(params, images, labels):
        n = images.shape[0]
        x = images.reshape(n, 8, 8, 8, 8, 3).transpose(0, 1, 3, 2, 4, 5).reshape(n, 64, 192)
        x = layered(wrap(layer), params["blocks"], x @ params["patch"] + params["place"])
        return models.cross_entropy(
            models.layer_norm(params["norm"], x.mean(1)) @ params["out"], labels)

    n = 16 * SCALE
    return training(loss, params, normal(rng, n, 64, 64, 3), rng.integers(0, 10, n))


def ode(wrap):
    rng = np.random.default_rng(0)
    params = [normal(rng, 64, 128), normal(rng, 128, 128), normal(rng, 128, 64)]

    def field(params, y):
        return jnp.tanh(jnp.tanh(y @ params[0]) @ params[1]) @ params[2]

    def loss(params, y, wanted):
        def step(y, _):
            a = field(params, y)
            b = field(params, y + 0.05 * a)
            c = field(params, y + 0.05 * b)
            d = field(params, y + 0.1 * c)
            return y + (a + 2 * b + 2 * c + d) / 60, None

        return jnp.mean((jax.lax.scan(wrap(step), y, None, length=40)[0] - wanted) ** 2)

    return training(loss, params, normal(rng, 128 * SCALE, 64), normal(rng, 128 * SCALE, 64))


def gnn(wrap):
    rng = np.random.default_rng(0)
    params = [(normal(rng, 64, 32), normal(rng, 64, 32)) for _ in range(6)]
    ends = rng.integers(0, 2000 * SCALE, (2, 16000 * SCALE))

    def layer(block, nodes, senders, receivers):
        pairs = jnp.concatenate([nodes[senders], nodes[receivers]], -1)
        received = jax.ops.segment_sum(jax.nn.relu(pairs @ block[0]), receivers, 2000 * SCALE)
        return nodes + jax.nn.relu(jnp.concatenate([nodes, received], -1) @ block[1])

    def loss(params, nodes, senders, receivers):
        for block in params:
            nodes = wrap(layer)(block, nodes, senders, receivers)
        return jnp.mean(nodes**2)

    return training(loss, params, normal(rng, 2000 * SCALE, 32), *ends)


def mlp(wrap):
    rng = np.random.default_rng(0)
    params = [normal(rng, 128, 128) for _ in range(16)]

    def loss(params, x, y):
        return jnp.mean((layered(wrap(lambda w, x: x + jnp.tanh(jax.nn.silu(x @ w))), params, x)
                         - y) ** 2)

    return loss, params, rng


def hvp(wrap):
    loss, params, rng = mlp(wrap)
    params, x, y = jax.tree.map(jnp.asarray, (params, normal(rng, 2048 * SCALE, 128),
                                              normal(rng, 2048 * SCALE, 128)))

    def product(params, direction, x, y):
        return jax.jvp(jax.grad(loss), (params, x, y), (
            direction, jnp.zeros_like(x), jnp.zeros_like(y)))[1]

    return product, (params, jax.tree.map(jnp.ones_like, params), x, y)


def per_example(wrap):
    loss, params, rng = mlp(wrap)

    def norms(params, x, y):
        grads = jax.vmap(jax.grad(loss), (None, 0, 0))(params, x, y)
        return [jnp.sum(g**2, (1, 2)) for g in grads]

    return norms, tuple(jax.tree.map(jnp.asarray, (
        params, normal(rng, 8, 512 * SCALE, 128), normal(rng, 8, 512 * SCALE, 128))))


STEPS = {
    "gpt6": gpt, "gpt24": functools.partial(gpt, layers=24),
    "gpt6 scanned": functools.partial(gpt, scan=True),
    "gpt24 scanned": functools.partial(gpt, layers=24, scan=True),
    "resnet50": resnet50, "lstm": lstm, "unet": unet, "moe": moe, "vit": vit, "ode": ode,
    "gnn": gnn, "hvp": hvp, "per example": per_example,
}


def plain(fun, **_):
    return fun


def peak(compiled):
    m = compiled.memory_analysis()
    return (m.argument_size_in_bytes + m.output_size_in_bytes + m.temp_size_in_bytes
            - m.alias_size_in_bytes)


def donated(step):
    """The arguments that a step may overwrite: parameters and velocities of a training step."""
    return (0, 1) if step.__name__ == "step" else ()


def described(jitted, args, name):
    """What was traced for a device that need not be here."""
    from pyjx.inspect.platforms import platform

    if name == "cpu":
        return jitted.trace(*args)
    sharding = jax.sharding.SingleDeviceSharding(platform(name).devices[0])
    return jitted.trace(*jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding), args))


def seconds(compiled, args):
    """The least of five runs; results are thrown away, arguments copied where they are donated."""
    found = []
    for _ in range(5):
        given = jax.block_until_ready(jax.tree.map(jnp.copy, args))
        start = time.perf_counter()
        jax.block_until_ready(compiled(*given))
        found.append(time.perf_counter() - start)
    return min(found)


def difference(results, wanted):
    pairs = zip(jax.tree.leaves(results), jax.tree.leaves(wanted), strict=True)
    return max([float(jnp.max(jnp.abs(a - b)) / (jnp.max(jnp.abs(b)) + 1e-12)) for a, b in pairs])


def budgeted(name, make, platform):
    step, args = make(plain)
    jitted = functools.partial(jax.jit, step, donate_argnums=donated(step))
    free = described(jitted(), args, platform).lower().compile()
    whole = peak(free)
    row = {"step": name, "peak": whole}
    copied = functools.partial(jax.tree.map, jnp.copy)
    if platform == "cpu":
        wanted, row["seconds"] = free(*copied(args)), seconds(free, args)
    for share in (1.0, *SHARES):
        start = time.perf_counter()
        try:
            lowered = described(jitted(memory_budget=int(share * whole * (1 if share < 1 else 2))),
                                args, platform).lower()
            planned = time.perf_counter() - start
            compiled = lowered.compile()
        except jax.errors.JaxRuntimeError as error:
            row[share] = str(error).partition(". ")[0]
            continue
        fit = lowered._program.fit
        row[share] = {"expected": fit.after.peak, "peak": peak(compiled), "planned": planned,
                      "work": 0.0 if fit.plan is None else fit.plan.work}
        if platform == "cpu":
            row[share] |= {"difference": difference(compiled(*copied(args)), wanted),
                           "seconds": seconds(compiled, args)}
    return row


def by_hand(name, make):
    row = {"step": name}
    for policy in (None, *POLICIES):
        def wrap(fun, static_argnums=(), policy=policy):
            return fun if policy is None else jax.checkpoint(
                fun, policy=getattr(jax.checkpoint_policies, policy),
                static_argnums=static_argnums)
        step, args = make(wrap)
        compiled = jax.jit(step, donate_argnums=donated(step)).lower(*args).compile()
        row[policy or "free"] = {"peak": peak(compiled), "seconds": seconds(compiled, args)}
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--platform", default="cpu")
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(STEPS))
    parser.add_argument("--policies", action="store_true")
    options = parser.parse_args()
    for name in options.only:
        row = by_hand(name, STEPS[name]) if options.policies else budgeted(
            name, STEPS[name], options.platform)
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
