"""The types of results beside the oracle's, over all tuples of dtypes and scalars.

    python -m tests.oracle.result_types --oracle PYTHON [--oracle PYTHON] [--mode off ...]
                                        [--only PATTERN] [--every N]

Each expression of `typed_calls` is called with every tuple of operands, once a mode: 64-bit types
off and on, and either with strict promotion. Nothing is computed; the results are traced. A call
counts where no oracle agrees with this side: the first one is asked about every call, any other
about those that differ. What oracles answer is kept.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

MODES = {"off": (False, "standard"), "on": (True, "standard"),
         "strict": (False, "strict"), "strict64": (True, "strict")}
OTHERS = "PYJX_OTHER_ORACLES"  # Pythons, as in PATH
SHAPES = {"vectors": (3,), "matrices": (3, 3)}
Table = dict[str, dict[str, Any]]  # of a table's name, for each expression what was asked or found


# -- one side --------------------------------------------------------------------------------------


def words(text: str) -> list[str]:
    return text.split()


SOME = words("bool int8 int32 uint8 bfloat16 float16 float32 complex64")
MORE = words("int4 int16 uint4 uint16 uint32 float8_e4m3fn float8_e5m2")
RARE = words("float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fnuz "
             "float8_e5m2fnuz float8_e8m0fnu float4_e2m1fn")
WIDE = words("int64 float64 uint64 complex128")


def operands(jnp: Any, shape: tuple[int, ...], x64: bool, arity: int) -> dict[str, Any]:
    """Arrays, weakly typed ones, and scalars of Python and NumPy, by what they are called."""
    names = [*SOME, *MORE * (arity < 3), *RARE * (arity < 2)]
    names += WIDE[:2 if arity == 3 else 4] * x64
    found: dict[str, Any] = {d: jnp.ones(shape, d) for d in names if hasattr(jnp, d) or d == "bool"}
    for number in (1, 1.0, 1j)[:5 - arity]:
        weak = jnp.broadcast_to(number, shape)
        found[f"weak {weak.dtype}"] = weak
    for scalar in (True, 1, 1.0, 1j, 2**31)[:4 if arity == 3 else 5]:
        found[f"Python {'2**31' if scalar == 2**31 else type(scalar).__name__}"] = scalar
    numpy = (np.int64(1), np.float64(1), np.bool_(True), np.int8(1), np.float32(1),
             np.complex128(1), np.float16(1), np.uint32(1))
    for scalar in numpy[:(8, 6, 2)[arity - 1]]:
        found[f"NumPy {scalar.dtype}"] = scalar
    for dtype in words("float64 int64 bool complex128")[:(4, 2, 1)[arity - 1]]:
        found[f"NumPy {dtype}[{'x'.join(map(str, shape))}]"] = np.ones(shape, dtype)
    for dtype in words("float32 bfloat16 int32 int8 bool")[:(5, 3, 0)[arity - 1]]:
        found[f"{dtype}[]"] = jnp.ones((), dtype)
    if arity < 3:
        found["weak float[]"] = jnp.asarray(1.0)
    return found


def described(jax: Any, result: Any) -> str:
    """The structure of a result with dtypes, weak types and shapes."""
    leaves = []
    for leaf in jax.tree.leaves(result):
        if isinstance(leaf, str | type | np.dtype) or leaf is NotImplemented:
            leaves.append(str(leaf))
            continue
        aval = jax.typeof(leaf)
        weak = "~" if getattr(aval, "weak_type", False) else ""
        leaves.append(f"{weak}{aval.dtype}{list(aval.shape)}")
    return " ".join(leaves)


def names_in(expression: str) -> list[str]:
    return [name for name in "xyz" if re.search(rf"\b{name}\b", expression)]


def tuples(values: dict[str, Any], arity: int, expression: str, every: int) -> list[list[str]]:
    """All tuples of operands; of pairs and triples one in so many, drawn for each expression."""
    found = [list(t) for t in itertools.product(values, repeat=arity)]
    return found if arity == 1 else random.Random(expression).sample(found, len(found) // every)


def out_of_time(*_: object) -> None:
    raise TimeoutError


class Side:
    """One package, in one mode."""

    def __init__(self, package: str, mode: str) -> None:
        def module(name: str) -> Any:
            return importlib.import_module(f"{package}.{name}")

        self.jax = importlib.import_module(package)
        self.x64, promotion = MODES[mode]
        self.jax.config.update("jax_enable_x64", self.x64)
        self.jax.config.update("jax_numpy_dtype_promotion", promotion)
        for name in words("cluster.vq fft integrate interpolate linalg ndimage optimize signal "
                          "spatial.transform sparse.linalg special stats"):
            module(f"scipy.{name}")
        self.names = {"jax": self.jax, "jnp": module("numpy"), "lax": module("lax"),
                      "nn": module("nn"), "ops": module("ops"), "image": module("image"),
                      "jsp": module("scipy"), "np": np}
        lax = module("lax")
        self.names |= {"FIRST": np.array([[0]], "int32"),
                       "PLAIN": lax.ScatterDimensionNumbers((), (0,), (0,))}
        module("lax.linalg")

    def types(self, table: str, expression: str, asked: int | list[list[str]]) -> dict[str, str]:
        """What the calls give; `asked` is which tuples of operands, or each how many."""
        names = names_in(expression)
        values = operands(self.names["jnp"], SHAPES[table], self.x64, len(names))
        if isinstance(asked, int):
            asked = tuples(values, len(names), expression, asked)
        code, found = compile(expression, expression, "eval"), {}
        traced = {k: v for k, v in values.items() if isinstance(v, self.jax.Array)}

        def calls(traced: dict[str, Any]) -> None:
            known = values | traced
            for chosen in asked:
                given = dict(zip(names, (known[c] for c in chosen), strict=True))
                signal.alarm(60)
                try:
                    result = described(self.jax, eval(code, {**self.names, **given}))
                except Exception as error:
                    result = f"raises {type(error).__name__}"
                signal.alarm(0)
                found[", ".join(chosen)] = result

        self.jax.eval_shape(calls, traced)
        return found


def work(package: str, mode: str) -> None:
    """Answer on standard output what is asked on standard input, an expression a line."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_DATA, (4 << 30, 4 << 30))  # for constants of 2**31 numbers
    signal.signal(signal.SIGALRM, out_of_time)
    side = Side(package, mode)
    asked: Table = json.load(sys.stdin)
    for table, expressions in asked.items():
        for expression, which in expressions.items():
            print(json.dumps([table, expression, side.types(table, expression, which)]), flush=True)


# -- both sides ------------------------------------------------------------------------------------


def started(python: str, package: str, mode: str, asked: Table) -> subprocess.Popen[str]:
    root = str(Path(__file__).parents[2])
    question = tempfile.TemporaryFile("w+")  # noqa: SIM115  (closed with the process)
    json.dump(asked, question)
    question.seek(0)
    return subprocess.Popen(
        [python, __file__, "work", package, mode], stdin=question, stdout=subprocess.PIPE,
        text=True, env={**os.environ, "XLA_FLAGS": "", "PYTHONPATH": root,
                        "JAX_PLATFORMS": "cpu", "JAX_TRACEBACK_FILTERING": "off"})


def kind(ours: str, theirs: str) -> str:
    """In what the results differ; empty where they do not."""
    if ours.startswith("raises") or theirs.startswith("raises"):
        same = ours.startswith("raises") and theirs.startswith("raises")
        return "" if same else "raises on one side"
    if ours == theirs:
        return ""
    return "weak type" if ours.replace("~", "") == theirs.replace("~", "") else "dtype"


Difference = tuple[str, str, str, str, str]  # its kind, the expression, operands, ours, theirs


def differences(mode: str, ours: Iterable[Any], theirs: Iterable[Any], ran: Counter[str]
                ) -> Iterator[tuple[str, Difference]]:
    from tests.oracle.typed_calls import explanation

    for (table, expression, mine), (_, again, others) in zip(ours, theirs, strict=True):
        assert expression == again
        ran["xyz"[len(names_in(expression)) - 1]] += len(mine)
        for given, result in mine.items():
            what = kind(result, others[given])
            call = f"{mode}: {expression} ({given})"
            if what and not explanation(call, result, others[given]):
                yield table, (what, expression, given, result, others[given])


def answers(process: subprocess.Popen[str]) -> Iterator[Any]:
    assert process.stdout is not None
    yield from map(json.loads, process.stdout)
    if process.wait():
        raise RuntimeError(f"{process.args} ended with {process.returncode}")


def recorded(python: str, mode: str, asked: Table) -> Iterator[Any]:
    """What an oracle answers, which is kept in a file: it stays the same."""
    from tests.oracle.processes import cache_folder

    cache_folder().mkdir(exist_ok=True)
    name = f"types-{python.strip('/').replace('/', '-')}-{mode}.jsonl"
    with (cache_folder() / name).open("a+") as file:
        file.seek(0)
        known = {(*of, json.dumps(which)): found
                 for *of, which, found in map(json.loads, file)}

        def left(table: str, expression: str, which: Any) -> bool:
            return (table, expression, json.dumps(which)) not in known

        new = answers(started(python, "jax", mode, {
            t: {e: w for e, w in calls.items() if left(t, e, w)} for t, calls in asked.items()}))
        for table, calls in asked.items():
            for expression, which in calls.items():
                if left(table, expression, which):
                    found = next(new)[2]
                    file.write(json.dumps([table, expression, which, found]) + "\n")
                else:
                    found = known[table, expression, json.dumps(which)]
                yield table, expression, found


def compared(pythons: list[str], mode: str, asked: Table, ran: Counter[str]) -> list[Difference]:
    """The calls about which no oracle agrees with this side."""
    mine = {}

    def kept(answer: Any) -> Any:
        mine[answer[0], answer[1]] = answer[2]
        return answer

    ours = started(sys.executable, "pyjx", mode, asked)
    theirs = recorded(pythons[0], mode, asked)
    found = list(differences(mode, map(kept, answers(ours)), theirs, ran))
    for oracle in pythons[1:]:
        again: Table = {}
        for table, (_, expression, given, *_) in found:
            again.setdefault(table, {}).setdefault(expression, []).append(given.split(", "))
        left = set()
        for table, expression, others in recorded(oracle, mode, again):
            left |= {(table, expression, given) for given, result in others.items()
                     if kind(mine[table, expression][given], result)}
        found = [(t, d) for t, d in found if (t, d[1], d[2]) in left]
    return [d for _, d in found]


def asked(only: str, every: int) -> Table:
    from tests.oracle.typed_calls import CALLS

    return {table: {e: every for e in expressions if re.search(only, e)}
            for table, expressions in CALLS.items()}


def oracles() -> list[str]:
    """The Pythons with jax that the environment names."""
    from tests.oracle.processes import VARIABLE

    named = [os.environ.get(VARIABLE, ""), *os.environ.get(OTHERS, "").split(os.pathsep)]
    return [python for python in named if python]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.result_types",
                                     description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--oracle", action="append",
                        help="a Python with jax; by default those that PYJX_ORACLE_PYTHON and "
                             f"{OTHERS} name")
    parser.add_argument("--mode", action="append", choices=MODES, help="all by default")
    parser.add_argument("--only", default="", help="expressions that have this pattern")
    parser.add_argument("--every", type=int, default=1, help="each n-th tuple of operands")
    parser.add_argument("--show", type=int, default=3, help="calls to show of an expression")
    options = parser.parse_args()
    pythons = options.oracle or oracles()
    if not pythons:
        parser.error("no oracle is given")
    total = 0
    for mode in options.mode or MODES:
        ran: Counter[str] = Counter()
        found = compared(pythons, mode, asked(options.only, options.every), ran)
        by_expression: dict[str, list[Difference]] = {}
        for difference in found:
            by_expression.setdefault(difference[1], []).append(difference)
        for expression, those in sorted(by_expression.items(), key=lambda item: -len(item[1])):
            print(f"{mode}: {expression}: {len(those)}")
            for what, _, given, ours, theirs in those[:options.show]:
                print(f"    ({given}) {what}: {ours}; oracle {theirs}")
        for count, name in enumerate("xyz", 1):
            kinds = Counter(d[0] for d in found if len(names_in(d[1])) == count)
            print(f"{mode}, {count} operands: {ran[name]} calls; {dict(kinds)}", flush=True)
        total += len(found)
    return 1 if total else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["work"]:
        work(*sys.argv[2:])
    else:
        sys.exit(main())
