"""Measures compiled functions and their gradients beside jax, function by function.

    python benchmarks/functions.py --jax-python PATH [--pyjx-python PATH] [--only PATTERN]
        [--sizes small,large,long] [--rounds N] [--all] [--json FILE]

Each function of the public modules that computes is compiled with arrays as arguments, in one
process for each library, and so is the pullback of a cotangent to its floating arrays.
A figure is the least time of a call over rounds that alternate between the two processes; what is
slower than `SLOWER` times jax's is measured again, so that what remains is not what else ran on the
machine. It prints those, the geometric mean of all ratios, and with `--all` every ratio. On a busy
machine `taskset -c 0` before it leaves out how many cores were free for either process. The
processor is measured unless JAX_PLATFORMS names others.
"""

import argparse
import importlib
import json
import math
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve()
SLOWER = 1.1
PLATFORMS = os.environ.get("JAX_PLATFORMS", "cpu")
# Names and the shapes that they stand for: elements in a row, and many short rows.
SIZES = {"small": (100,), "large": (100_000,), "long": (20_000, 5)}


def calls(shape):
    """Families and texts of calls, such as `numpy.sin(u)`, for arrays of this shape."""
    found = []
    for line in HERE.with_suffix(".tsv").read_text().splitlines():
        if not line.startswith("#"):
            family, names, template = line.split("\t")
            found += [(family, template.replace("{}", name).replace("SHAPE", str(shape)))
                      for name in names.split()]
    return list(dict.fromkeys(found))


def arrays(shape):
    """The arrays that calls take, for arrays of this shape."""
    rng = np.random.default_rng(0)
    count = math.prod(shape)
    side = 10 if count < 1000 else 40
    batch = max(1, count // side**2)

    def f32(x):
        return np.asarray(x, np.float32)

    matrices = f32(rng.standard_normal((batch, side, side)) + 3 * np.eye(side))
    width = max(8, int((count / 8) ** 0.5))
    return {
        "x": f32(rng.standard_normal(shape)), "y": f32(rng.standard_normal(shape)),
        "p": f32(rng.uniform(0.5, 2, shape)), "q": f32(rng.uniform(0.5, 2, shape)),
        "u": f32(rng.uniform(0.01, 0.99, shape)),
        "i": np.asarray(rng.integers(-50, 50, shape), np.int32),
        "n": np.asarray(rng.integers(0, 20, shape), np.int32),
        "z": np.asarray(rng.standard_normal(shape) + 1j * rng.standard_normal(shape), np.complex64),
        "w": np.asarray(rng.standard_normal(shape) + 1j * rng.standard_normal(shape), np.complex64),
        "at": np.asarray(rng.integers(0, shape[0], shape[:1]), np.int32),
        "ids": np.asarray(rng.integers(0, 50, shape[:1]), np.int32),
        "ordered": f32(np.sort(rng.standard_normal(max(20, count // 10)))),
        "rows3": f32(rng.standard_normal((max(10, count // 3), 3))),
        "rows3b": f32(rng.standard_normal((max(10, count // 3), 3))),
        "rows8": f32(rng.standard_normal((8, max(10, count // 8)))),
        "shares": f32(rng.dirichlet(np.ones(4), max(10, count // 4)).T),
        "M": matrices, "S": f32(matrices @ matrices.transpose(0, 2, 1) + np.eye(side)),
        "B": f32(rng.standard_normal((batch, side, 3))),
        "S3": f32([[2, 0.3, 0.1], [0.3, 1, 0.2], [0.1, 0.2, 1.5]]),
        "images": f32(rng.standard_normal((2, 4, width, width))),
        "kernels": f32(rng.standard_normal((6, 4, 3, 3))),
        "heads": f32(rng.standard_normal((2, max(4, count // 512), 4, 16))),
    }


# -- the process of one library --------------------------------------------------------------------


class Library:
    """The compiled functions of one library, by their names."""

    def __init__(self, name, shape):
        jax = importlib.import_module(name)
        self.jax = jax
        self.modules = {m: getattr(jax, m) for m in ("lax", "nn", "random", "ops", "image")}
        self.modules["numpy"] = importlib.import_module(f"{name}.numpy")
        for m in ("linalg", "stats", "special", "signal", "fft", "integrate", "ndimage"):
            importlib.import_module(f"{name}.scipy.{m}")
        importlib.import_module(f"{name}.scipy.cluster.vq")
        self.modules["scipy"] = jax.scipy
        self.arrays = {k: jax.device_put(v) for k, v in arrays(shape).items()}
        self.arrays["key"] = jax.random.key(0)
        self.compiled = {}

    def compile(self, text, gradient):
        """The seconds that it took; raises what the library raises."""
        jax = self.jax
        names = [n for n in self.arrays if re.search(rf"(?<![\w.]){n}(?!\w)", text)]
        function = eval(f"lambda {', '.join(names)}: {text}", dict(self.modules))
        values = [self.arrays[n] for n in names]
        if gradient:
            floats = tuple(k for k, v in enumerate(values)
                           if jax.numpy.issubdtype(v.dtype, jax.numpy.floating))
            if not floats:
                raise TypeError("nothing to differentiate by")

            def inexact(*args):
                outs = jax.tree_util.tree_leaves(function(*args))
                return [o for o in outs if jax.numpy.issubdtype(o.dtype, jax.numpy.inexact)]

            rng = np.random.default_rng(1)
            cotangents = [jax.device_put(np.asarray(rng.uniform(0.5, 1, o.shape), o.dtype))
                          for o in jax.eval_shape(inexact, *values)]
            if not cotangents:
                raise TypeError("nothing to differentiate")

            def total(*args):
                outs = inexact(*args[:len(names)])
                return sum([jax.numpy.vdot(ct, o).real for ct, o in zip(
                    args[len(names):], outs, strict=True)])

            compiled = jax.jit(jax.grad(total, floats))
            values += cotangents
        else:
            compiled = jax.jit(function)
        start = time.perf_counter()
        jax.block_until_ready(compiled(*values))
        elapsed = time.perf_counter() - start
        self.compiled[text, gradient] = compiled, values
        return elapsed

    def drop(self):
        self.compiled.clear()

    def microseconds(self, text, gradient, seconds=0.02):
        compiled, values = self.compiled[text, gradient]
        wait = self.jax.block_until_ready
        least, end = math.inf, time.perf_counter() + seconds
        while time.perf_counter() < end or least == math.inf:
            start = time.perf_counter()
            wait(compiled(*values))
            least = min(least, time.perf_counter() - start)
        return 1e6 * least


def serve(library, shape):
    """Answer requests, one in a line of JSON: what to compile, measure or drop."""
    import warnings

    warnings.simplefilter("ignore")
    made = Library(library, shape)
    print("ready", flush=True)
    for line in sys.stdin:
        action, *arguments = json.loads(line)
        try:
            answer = getattr(made, action)(*arguments)
        except Exception as error:  # any error of a library is an answer
            answer = f"{type(error).__name__}: {str(error)[:120]}"
        print(json.dumps(answer), flush=True)


# -- the comparison --------------------------------------------------------------------------------


class Process:
    """A process of one library, which says that it is ready and answers requests."""

    def __init__(self, *command):
        self.child = subprocess.Popen(
            list(map(str, command)), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, "JAX_PLATFORMS": PLATFORMS, "PYJX_CACHE": "0"})
        if self.child.stdout.readline() != "ready\n":
            raise RuntimeError(f"{command} did not start")

    def ask(self, *request):
        self.child.stdin.write(json.dumps(request) + "\n")
        self.child.stdin.flush()
        return json.loads(self.child.stdout.readline())

    def end(self):
        self.child.stdin.close()
        self.child.wait()


def compared(both, work, rounds):
    """The least times of both libraries for each piece of work that both compile."""
    figures = {}
    for piece in work:
        answers = [p.ask("compile", *piece) for p in both]
        if not any(isinstance(a, str) for a in answers):
            figures[piece] = [math.inf, math.inf]
        elif isinstance(answers[0], str) and not isinstance(answers[1], str):
            print(f"{piece}: only jax compiles it: {answers[0]}")

    def again(pieces):
        for piece in pieces:
            figures[piece] = [min(f, p.ask("microseconds", *piece))
                              for f, p in zip(figures[piece], both, strict=True)]

    for _ in range(rounds):
        again(figures)
    for _ in range(4 * rounds):
        again([k for k, (ours, theirs) in figures.items() if ours > SLOWER * theirs])
    for p in both:
        p.ask("drop")
    return figures


def geometric_mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / max(1, len(ratios)))


def measured(options, size):
    both = [Process(python, HERE, "--serve", library, "--sizes", size)
            for python, library in ((options.pyjx_python, "pyjx"), (options.jax_python, "jax"))]
    work = [(text, gradient) for family, text in calls(SIZES[size]) for gradient in (False, True)
            if re.search(options.only, f"{family} {text}")]
    figures = {}
    for at in range(0, len(work), 20):
        found = compared(both, work[at:at + 20], options.rounds)
        figures.update(found)
        for (text, gradient), (ours, theirs) in found.items():
            if options.all or ours > SLOWER * theirs:
                print(f"{ours / theirs:7.2f} {ours:10.1f} {theirs:10.1f} us  "
                      f"{'gradient of ' * gradient}{text}", flush=True)
    for p in both:
        p.end()
    ratios = [ours / theirs for ours, theirs in figures.values()]
    print(f"{size}: {len(ratios)} functions and gradients, {geometric_mean(ratios):.3f} of jax's "
          f"time in the geometric mean, {sum(r > SLOWER for r in ratios)} over {SLOWER}, worst "
          f"{max(ratios, default=0):.2f}")
    return {f"{'gradient of ' * g}{t}": f for (t, g), f in figures.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jax-python")
    parser.add_argument("--pyjx-python", default=sys.executable)
    parser.add_argument("--only", default="", help="a pattern of families and calls")
    parser.add_argument("--sizes", default="large", help=f"of {', '.join(SIZES)}")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--all", action="store_true", help="print every ratio")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, SIZES[options.sizes])
        return
    if not options.jax_python:
        parser.error("--jax-python: a Python that has jax")
    figures = {size: measured(options, size) for size in options.sizes.split(",")}
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
