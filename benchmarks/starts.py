"""Whole processes beside jax: a program's first run, and its second one with what is on disk.

    python benchmarks/starts.py --jax-python PATH [--pyjx-python PATH] [--only gpt,cnn]
        [--rounds N] [--json FILE] [SCRIPT ...]

Each of the twelve programs of `programs.py` makes three steps in a process of its own; a SCRIPT,
such as one of `tests/ecosystem/programs`, runs as it is, with jax by its own Python and with pyjx
by `python -m pyjx`. First runs have empty caches, pyjx's as a user has it, jax's none; second ones
have what the run before kept, jax's cache with every entry. Times are the least over rounds that
alternate: seconds from start to end, and of the processors.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

import numpy as np
from functions import PLATFORMS, geometric_mean
from programs import PROGRAMS

HERE = Path(__file__).resolve()
KINDS = ("first", "second")


def run(name, library):
    """Three steps of a program, as a user's process makes them."""
    os.environ["BENCHMARK_LIBRARY"] = library
    jax, jnp = import_module(library), import_module(f"{library}.numpy")
    make = next(p for p in PROGRAMS if p.__name__ == name)
    program = make(jax, jnp, np.random.default_rng(0))
    state = program.state
    for _ in range(3):
        state = program.step(state)
    jax.block_until_ready(state)


def command(python, library, name):
    if not name.endswith(".py"):
        return [python, HERE, "--run", name, library]
    return [python, *(["-m", "pyjx"] if library == "pyjx" else []), name]


def seconds(words, kept):
    """The time that a process takes, and that of the processors; what it keeps is in a folder."""
    caches = {"PYJX_CACHE_DIR": kept} if kept else {}
    if kept and "pyjx" not in words:
        caches = {"JAX_COMPILATION_CACHE_DIR": kept,
                  "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
                  "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    env = {**os.environ, "JAX_PLATFORMS": PLATFORMS, **caches}
    subprocess.run(list(map(str, words)), check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, env=env)
    took, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compared(name, pythons, rounds):
    """The least seconds of both libraries: {kind: [(whole, of the processors) of each]}."""
    found = {kind: [[], []] for kind in KINDS}
    with tempfile.TemporaryDirectory() as folder:
        for k in range(rounds):
            for i, (python, library) in enumerate(pythons):
                words, kept = command(python, library, name), f"{folder}/{library}{k}"
                found["first"][i].append(seconds(words, kept if library == "pyjx" else None))
                if library == "jax":
                    seconds(words, kept)
                found["second"][i].append(seconds(words, kept))
    return {kind: [[min(column) for column in zip(*times, strict=True)] for times in both]
            for kind, both in found.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jax-python")
    parser.add_argument("--pyjx-python", default=sys.executable)
    parser.add_argument("--only", default="", help="names of programs, separated by commas")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("scripts", nargs="*")
    options = parser.parse_args()
    if options.run:
        run(*options.run)
        return
    if not options.jax_python:
        parser.error("--jax-python: a Python that has jax")
    pythons = [(options.pyjx_python, "pyjx"), (options.jax_python, "jax")]
    names = options.only.split(",") if options.only else [p.__name__ for p in PROGRAMS]
    figures = {}
    for name in options.scripts or names:
        figures[name] = compared(name, pythons, options.rounds)
        print(f"{Path(name).stem:18s}", *(
            f"{kind} {ours[0]:6.2f} {theirs[0]:6.2f} s {ours[0] / theirs[0]:5.2f} "
            f"(processors {ours[1] / theirs[1]:5.2f})  "
            for kind, (ours, theirs) in figures[name].items()), flush=True)
    for kind in KINDS:
        ratios = [ours[0] / theirs[0] for ours, theirs in (f[kind] for f in figures.values())]
        print(f"{kind} runs: {geometric_mean(ratios):.2f} of jax's in the geometric mean, worst "
              f"{max(ratios):.2f}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
