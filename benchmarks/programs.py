"""Twelve programs as users write them, beside jax: the time of a later step, and memory.

    python benchmarks/programs.py --jax-python PATH [--pyjx-python PATH] [--only gpt,cnn]
        [--small | --libraries] [--rounds N] [--json FILE]

A later step is the least over rounds that alternate between a process of each library; memory is
what XLA reserves for the temporary values of the compiled function, where a program has one. With
`--small` they are those of `small.py`, and with `--libraries` those of `libraries.py` whose
library both Pythons have; the time to trace and compile is compared, too.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import libraries
import numpy as np
import small
from functions import Process, geometric_mean
from small import Program, normal

HERE = Path(__file__).resolve()


def sgd(jax, loss, rate=1e-2):
    def update(params, *batch):
        value, grads = jax.value_and_grad(loss)(params, *batch)
        return jax.tree.map(lambda p, g: p - rate * g, params, grads), value
    return update


def trained(jax, update, params, *batch):
    """The program of a jitted update of parameters by one batch."""
    params = jax.tree.map(jax.numpy.asarray, params)
    batch = [jax.numpy.asarray(b) for b in batch]
    compiled = jax.jit(update)
    return Program(lambda params: compiled(params, *batch)[0], params, (compiled, params, *batch))


def gpt_parts():
    import models  # which needs the library's name

    _, (params, _, inputs, targets) = models.transformer(layers=6)
    heads = 4

    def loss(params, inputs, targets):
        hidden = params["tokens"][inputs] + params["positions"]
        for block in params["blocks"]:
            normed = models.layer_norm(block["norm1"], hidden)
            hidden = hidden + models.attention(block, normed, heads)
            hidden = hidden + models.mlp(block, models.layer_norm(block["norm2"], hidden))
        hidden = models.layer_norm(params["norm"], hidden)
        return models.cross_entropy(hidden @ params["out"], targets)

    return loss, params, inputs, targets


def gpt(jax, jnp, rng):
    """A transformer of six layers with SGD."""
    loss, params, inputs, targets = gpt_parts()
    return trained(jax, sgd(jax, loss), params, inputs, targets)


def gpt_adam(jax, jnp, rng):
    """The same with Adam."""
    loss, params, inputs, targets = gpt_parts()
    zeros = jax.tree.map(jnp.zeros_like, params)

    def update(state, inputs, targets):
        params, mean, square, count = state
        value, grads = jax.value_and_grad(loss)(params, inputs, targets)
        count = count + 1
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, grads)
        square = jax.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, square, grads)

        def moved(p, m, s):
            m, s = m / (1 - 0.9**count), s / (1 - 0.999**count)
            return p - 1e-3 * m / (jnp.sqrt(s) + 1e-8)

        return (jax.tree.map(moved, params, mean, square), mean, square, count), value

    return trained(jax, update, (params, zeros, zeros, jnp.float32(0)), inputs, targets)


def convolved(jax, x, kernel, stride=1):
    return jax.lax.conv_general_dilated(x, kernel, (stride, stride), "SAME",
                                        dimension_numbers=("NHWC", "HWIO", "NHWC"))


def cnn_loss(jax, jnp, report=None):
    def loss(params, images, labels):
        x = images
        for kernel in params["convs"]:
            x = jax.nn.relu(convolved(jax, x, kernel))
            x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")
        logits = x.reshape(x.shape[0], -1) @ params["out"] + params["bias"]
        value = -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(len(labels)), labels])
        if report is not None:
            jax.debug.callback(report, value)
        return value
    return loss


def cnn_data(rng):
    params = {"convs": [normal(rng, 3, 3, 1, 16), normal(rng, 3, 3, 16, 32)],
              "out": normal(rng, 7 * 7 * 32, 10), "bias": normal(rng, 10)}
    return params, normal(rng, 32, 28, 28, 1), rng.integers(0, 10, 32)


def cnn(jax, jnp, rng):
    """Two convolutions with pooling over 32 pictures of 28 x 28."""
    return trained(jax, sgd(jax, cnn_loss(jax, jnp)), *cnn_data(rng))


def cnn_reports(jax, jnp, rng):
    """The same, which reports its loss to Python in each step."""
    losses = []
    return trained(jax, sgd(jax, cnn_loss(jax, jnp, losses.append)), *cnn_data(rng))


def unet(jax, jnp, rng):
    """Two levels down and up, with skips, over 4 pictures of 32 x 32."""
    params = {"in": normal(rng, 3, 3, 3, 16), "down": normal(rng, 3, 3, 16, 32),
              "mid": normal(rng, 3, 3, 32, 32), "up": normal(rng, 3, 3, 48, 16),
              "out": normal(rng, 1, 1, 16, 3)}

    def loss(params, noisy, clean):
        first = jax.nn.silu(convolved(jax, noisy, params["in"]))
        x = jax.nn.silu(convolved(jax, first, params["down"], 2))
        x = jax.nn.silu(convolved(jax, x, params["mid"])) + x
        x = jax.image.resize(x, (*first.shape[:3], 32), "nearest")
        x = jax.nn.silu(convolved(jax, jnp.concatenate([x, first], -1), params["up"]))
        return jnp.mean((convolved(jax, x, params["out"]) - clean) ** 2)

    noisy, clean = normal(rng, 4, 32, 32, 3), normal(rng, 4, 32, 32, 3)
    return trained(jax, sgd(jax, loss), params, noisy, clean)


def mlp(jax, jnp, rng):
    """Sixteen layers of width 128."""
    params = [(normal(rng, 128, 128), normal(rng, 128)) for _ in range(16)]

    def loss(params, x, y):
        for weights, bias in params:
            x = x + jnp.tanh(x @ weights + bias)
        return jnp.mean((x - y) ** 2)

    return trained(jax, sgd(jax, loss), params, normal(rng, 64, 128), normal(rng, 64, 128))


def lstm(jax, jnp, rng):
    """A cell of width 64 scanned over 50 steps."""
    params = {"in": normal(rng, 32, 256), "state": normal(rng, 64, 256), "bias": normal(rng, 256),
              "out": normal(rng, 64, 1)}

    def loss(params, sequence, y):
        def cell(carry, x):
            h, c = carry
            i, f, g, o = jnp.split(x @ params["in"] + h @ params["state"] + params["bias"], 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), None
        zeros = jnp.zeros((sequence.shape[1], 64))
        (h, _), _ = jax.lax.scan(cell, (zeros, zeros), sequence)
        return jnp.mean((h @ params["out"] - y) ** 2)

    return trained(jax, sgd(jax, loss), params, normal(rng, 50, 16, 32), normal(rng, 16, 1))


def gnn(jax, jnp, rng):
    """Three rounds of messages over a graph of 500 nodes and 2,000 edges."""
    params = [(normal(rng, 64, 32), normal(rng, 64, 32)) for _ in range(3)]
    ends = rng.integers(0, 500, (2, 2000))

    def loss(params, nodes, senders, receivers):
        for message, update in params:
            pairs = jnp.concatenate([nodes[senders], nodes[receivers]], -1)
            sent = jax.nn.relu(pairs @ message)
            received = jax.ops.segment_sum(sent, receivers, 500)
            nodes = nodes + jax.nn.relu(jnp.concatenate([nodes, received], -1) @ update)
        return jnp.mean(nodes**2)

    return trained(jax, sgd(jax, loss), params, normal(rng, 500, 32), *ends)


def vae(jax, jnp, rng):
    """A variational autoencoder whose updates run outside jit."""
    params = {"in": normal(rng, 784, 128), "mean": normal(rng, 128, 16),
              "scale": normal(rng, 128, 16), "up": normal(rng, 16, 128),
              "out": normal(rng, 128, 784)}
    images = jnp.asarray(rng.random((100, 784)) > 0.5, "float32")

    def loss(params, key, images):
        hidden = jax.nn.softplus(images @ params["in"])
        mean, scale = hidden @ params["mean"], hidden @ params["scale"]
        code = mean + jnp.exp(0.5 * scale) * jax.random.normal(key, mean.shape)
        logits = jax.nn.softplus(code @ params["up"]) @ params["out"]
        fit = jnp.sum(jax.nn.softplus(logits) - images * logits, -1)
        gap = -0.5 * jnp.sum(1 + scale - mean**2 - jnp.exp(scale), -1)
        return jnp.mean(fit + gap)

    gradient = jax.jit(jax.grad(loss))

    def step(state):
        params, key = state
        key, now = jax.random.split(key)
        grads = gradient(params, now, images)
        return jax.tree.map(lambda p, g: p - 1e-3 * g, params, grads), key

    params = jax.tree.map(jnp.asarray, params)
    key = jax.random.key(0)
    return Program(step, (params, key), (gradient, params, key, images))


def hmc(jax, jnp, rng):
    """Ten leapfrog steps of a logistic regression, accepted or not."""
    x, y = jnp.asarray(normal(rng, 200, 10)), jnp.asarray(rng.random(200) > 0.5, "float32")

    def energy(w):
        logits = x @ w
        return jnp.sum(jax.nn.softplus(logits) - y * logits) + 0.5 * jnp.sum(w**2)

    def sample(w, key):
        key, draw, accept = jax.random.split(key, 3)
        start = momentum = jax.random.normal(draw, w.shape)

        def leap(_, state):
            w, m = state
            m = m - 0.01 * jax.grad(energy)(w)
            w = w + 0.02 * m
            return w, m - 0.01 * jax.grad(energy)(w)

        moved, momentum = jax.lax.fori_loop(0, 10, leap, (w, momentum))
        gain = energy(w) - energy(moved) + 0.5 * jnp.sum(start**2 - momentum**2)
        return jnp.where(jnp.log(jax.random.uniform(accept)) < gain, moved, w), key

    compiled = jax.jit(sample)
    state = jnp.zeros(10), jax.random.key(0)
    return Program(lambda state: compiled(*state), state, (compiled, *state))


def ode(jax, jnp, rng):
    """An adaptive solution of the Lotka-Volterra equations, and its gradient."""
    odeint = import_module(f"{jax.__name__}.experimental.ode").odeint

    def field(y, t, rates):
        prey, hunters = y
        return jnp.stack([rates[0] * prey - rates[1] * prey * hunters,
                          rates[2] * prey * hunters - rates[3] * hunters])

    def loss(rates, times):
        return jnp.sum(odeint(field, jnp.array([10.0, 5.0]), times, rates)[-1] ** 2)

    return trained(jax, sgd(jax, loss, 1e-9), np.float32([1.5, 0.1, 0.1, 1.0]),
                   np.float32([0.0, 1.0, 2.0, 5.0]))


def newton(jax, jnp, rng):
    """A step of Newton's method with the Hessian of a small network's loss."""
    x, y = normal(rng, 64, 8), normal(rng, 64, 1)

    def loss(w, x, y):
        hidden = jnp.tanh(x @ w[:64].reshape(8, 8))
        return jnp.mean((hidden @ w[64:].reshape(8, 1) - y) ** 2) + 0.1 * jnp.sum(w**2)

    def update(w, x, y):
        slope, curvature = jax.grad(loss)(w, x, y), jax.hessian(loss)(w, x, y)
        return w - jnp.linalg.solve(curvature + 0.1 * jnp.eye(72), slope), loss(w, x, y)

    return trained(jax, update, normal(rng, 72), x, y)


PROGRAMS = [gpt, gpt_adam, cnn, cnn_reports, unet, mlp, lstm, gnn, vae, hmc, ode, newton]


def serve(name, library):
    """Answer each request with the least seconds of a step in so many; the first one, for none,
    with the bytes of temporary memory and the seconds to trace and compile."""
    os.environ["BENCHMARK_LIBRARY"] = library
    answers, sys.stdout = sys.stdout, sys.stderr  # which libraries may write to
    if name in libraries.NEEDED and library == "pyjx":
        import_module("pyjx.as_jax")
        library = "jax"
    jax, jnp = import_module(library), import_module(f"{library}.numpy")
    make = next(p for p in [*PROGRAMS, *small.PROGRAMS, *libraries.PROGRAMS] if p.__name__ == name)
    program = make(jax, jnp, np.random.default_rng(0))
    compiled, *arguments = program.main
    jax.jit(lambda x: x + 1)(1.0)  # what the first program loads is not of this one
    start = time.perf_counter()
    executable = compiled.lower(*arguments).compile()
    first = executable.memory_analysis().temp_size_in_bytes, time.perf_counter() - start
    state = program.step(program.state)
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        (seconds,) = json.loads(line)
        end, least = time.perf_counter() + seconds, math.inf
        while time.perf_counter() < end:
            start = time.perf_counter()
            state = jax.block_until_ready(program.step(state))
            least = min(least, time.perf_counter() - start)
        print(json.dumps(least if seconds else first), file=answers, flush=True)


def compared(name, pythons, rounds):
    """The least seconds of a later step, the bytes of memory, and the seconds to trace and compile,
    of both libraries."""
    both = [Process(python, HERE, "--serve", name, library) for python, library in pythons]
    memory, compiling = zip(*[process.ask(0) for process in both], strict=True)
    least = [math.inf, math.inf]
    for _ in range(rounds):
        least = [min(t, process.ask(0.4)) for t, process in zip(least, both, strict=True)]
    for process in both:
        process.end()
    return least, memory, compiling


def has_library(name, python):
    """Whether a Python has the library that a program needs, if it needs one."""
    module = libraries.NEEDED.get(name)
    finds = f"from importlib.util import find_spec; exit(find_spec({module!r}) is None)"
    return module is None or not subprocess.run([python, "-c", finds], capture_output=True,
                                                check=False).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jax-python")
    parser.add_argument("--pyjx-python", default=sys.executable)
    parser.add_argument("--only", default="", help="names of programs, separated by commas")
    parser.add_argument("--small", action="store_true", help="the programs of small.py")
    parser.add_argument("--libraries", action="store_true", help="those of libraries.py")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(*options.serve)
        return
    if not options.jax_python:
        parser.error("--jax-python: a Python that has jax")
    pythons = [(options.pyjx_python, "pyjx"), (options.jax_python, "jax")]
    programs = (small.PROGRAMS if options.small else
                libraries.PROGRAMS if options.libraries else PROGRAMS)
    wanted = options.only.split(",") if options.only else [p.__name__ for p in programs]
    figures = {}
    for name in wanted:
        if not all(has_library(name, python) for python, _ in pythons):
            print(f"{name:12s} skipped: {libraries.NEEDED[name]} is not installed")
            continue
        figures[name] = compared(name, pythons, options.rounds)
        (ours, theirs), (held, held_by_jax), (compiling, by_jax) = figures[name]
        print(f"{name:12s} step {1e3 * ours:8.3f} {1e3 * theirs:8.3f} ms {ours / theirs:5.2f}   "
              f"temporary {held / 1e3:9.1f} {held_by_jax / 1e3:9.1f} kB "
              f"{(held + 1) / (held_by_jax + 1):5.2f}   compiling {compiling / by_jax:5.2f}",
              flush=True)
    # one byte more, as there are programs without any
    kinds = (("a later step", 0, 0), ("temporary memory", 1, 1), ("compiling", 0, 2))
    for what, least, i in kinds if figures else ():
        ratios = [(ours[i][0] + least) / (ours[i][1] + least) for ours in figures.values()]
        print(f"{what}: {geometric_mean(ratios):.2f} of jax's in the geometric mean, worst "
              f"{max(ratios):.2f}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
