"""Whether a difference is no more than rounding amplified: the oracle is run on inputs nearby."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from tests.oracle.comparison import elements, gap, unit
from tests.oracle.language import Assign, Data, Expr, Form, Function, Program, Statement, Text
from tests.oracle.processes import Outcome, Worker

VARIANTS = 4
AMPLIFIED = 32.0  # how far beyond the oracle's own spread a result may lie
FARTHER = 8.0  # how much farther from the exact result than the oracle's
# Units in the last place that are near enough in any case, by kind of program: roundings add up.
CLOSE = dict.fromkeys(("programs", "devices", "rules", "references"), 2048.0)


def moved(value: Any, step: float, salt: int) -> Any:
    """The value times 1 + step or 1 - step; equal values stay equal."""
    if isinstance(value, complex):
        return complex(moved(value.real, step, salt), moved(value.imag, step, salt + 1))
    if not isinstance(value, float) or not math.isfinite(value):
        return value
    sign = 1 if zlib.crc32(f"{abs(value)}/{salt}".encode()) & 1 else -1
    return value * (1 + sign * step)


def nearby(e: Expr, salt: int) -> Expr:
    if isinstance(e, Data):
        if not any(isinstance(v, (float, complex)) for v in e.values):
            return e
        step = unit(np.dtype(e.dtype))
        return replace(e, values=tuple(moved(v, step, salt) for v in e.values))
    return e.rebuilt(tuple(nearby(p, salt) for p in e.parts))


def nearby_statement(s: Statement, salt: int) -> Statement:
    if isinstance(s, Assign):
        return Assign(s.name, nearby(s.value, salt))
    if isinstance(s, Function):
        return replace(s, body=tuple(nearby_statement(b, salt) for b in s.body),
                       result=nearby(s.result, salt))
    return s


def arrays(x: dict[str, Any]) -> Iterator[np.ndarray]:
    """The arrays of a described value, in order."""
    if x["is"] in ("dict", "sequence"):
        for item in x["items"]:
            yield from arrays(item[1] if x["is"] == "dict" else item)
    elif x["is"] in ("array", "ndarray", "npscalar") and x["dtype"] != "object":
        yield elements(x)


def widened(program: Program) -> Program:
    """The program with 64-bit floats in the place of 32-bit ones."""
    body = tuple(wider_statement(s) for s in program.body)
    return replace(program, body=body, x64=True)


def wider_text(code: str) -> str:
    return code.replace("float32", "float64").replace("complex64", "complex128")


def wider(e: Expr) -> Expr:
    if isinstance(e, Text):
        return Text(wider_text(e.code))
    if isinstance(e, Data):
        return replace(e, dtype=wider_text(e.dtype))
    if isinstance(e, Form):
        return Form(wider_text(e.pattern), tuple(map(wider, e.parts)))
    return e.rebuilt(tuple(map(wider, e.parts)))


def wider_statement(s: Statement) -> Statement:
    if isinstance(s, Assign):
        return Assign(s.name, wider(s.value))
    if isinstance(s, Function):
        return replace(s, body=tuple(map(wider_statement, s.body)), result=wider(s.result))
    return s


def grain(program: Program) -> float:
    """A unit in the last place of the coarsest floats in the program: all were rounded to them."""
    named = re.findall(r"\b(bfloat16|float16|float32|complex64)\b", program.source())
    return max((unit(np.dtype(name)) for name in named), default=0.0)


def as_precise(worker: Worker, program: Program, ours: Outcome, theirs: Outcome) -> bool:
    """Ours are about as close as theirs to the results with 64-bit floats."""
    worker.send([widened(program)])
    (exact,) = worker.collect()
    if exact["is"] != "value":
        return False
    triples = list(zip(arrays(ours["value"]), arrays(theirs["value"]), arrays(exact["value"]),
                       strict=False))
    near = CLOSE.get(program.kind, 4.0)
    return bool(triples) and all(
        x.shape == z.shape and no_farther(x, y, z, near * max(unit(x.dtype), grain(program)))
        if x.dtype.kind in "fcV" else np.array_equal(x, y) or np.array_equal(x, z)
        for x, y, z in triples)


def vanishing(ours: Worker, theirs: Worker, program: Program, mine: Outcome,
              other: Outcome) -> bool:
    """The distance goes with the unit of the floats: what is left where numbers cancel out."""
    for worker in (ours, theirs):
        worker.send([widened(program)])
    (a,), (b,) = ours.collect(), theirs.collect()
    if a["is"] != "value" or b["is"] != "value":
        return False
    near = CLOSE.get(program.kind, 4.0) * grain(program)
    return all(before <= near and after <= before * 1e-6 for before, after in zip(
        distances(mine, other), distances(a, b), strict=True))


def distances(a: Outcome, b: Outcome) -> list[float]:
    return [farthest(x, y) for x, y in zip(arrays(a["value"]), arrays(b["value"]), strict=True)]


def farthest(x: np.ndarray, y: np.ndarray) -> float:
    if x.shape != y.shape or x.dtype.kind not in "fcV":
        return 0.0 if np.array_equal(x, y) else math.inf
    with np.errstate(all="ignore"):
        a, b = x.astype(np.complex128), y.astype(np.complex128)
        apart = ~((a == b) | (np.isnan(a) & np.isnan(b)))
        return float(np.abs(a[apart] - b[apart]).max(initial=0.0))


def no_farther(ours: np.ndarray, theirs: np.ndarray, exact: np.ndarray, close: float) -> bool:
    """`close` is a distance that is near enough in any case, relative to the largest element."""
    with np.errstate(all="ignore"):
        a, b, c = (v.astype(np.complex128) for v in (ours, theirs, exact))
        apart = ~((a == b) | (np.isnan(a) & np.isnan(b)))
        a, b, c = a[apart], b[apart], c[apart]
        if not (np.isfinite(a) == np.isfinite(c)).all():
            return False
        good = np.isfinite(c) & np.isfinite(b)
        mine, other = np.abs(a - c)[good], np.abs(b - c)[good]
        floor = close * max(float(np.abs(c[good]).max(initial=0.0)), 1e-30)
        return bool(mine.max(initial=0.0) <= max(FARTHER * other.max(initial=0.0), floor))


def ill_conditioned(worker: Worker, program: Program, ours: Outcome, theirs: Outcome) -> bool:
    """The oracle's own results spread as far when its inputs move by a unit in the last place."""
    variants = [replace(program, body=tuple(nearby_statement(s, salt) for s in program.body))
                for salt in range(VARIANTS)]
    if variants[0].source() == program.source():
        return False
    worker.send(variants)
    found = [list(arrays(o["value"])) for o in worker.collect() if o["is"] == "value"]
    a, b = list(arrays(ours["value"])), list(arrays(theirs["value"]))
    if len(a) != len(b):
        return False
    for i, (x, y) in enumerate(zip(a, b, strict=True)):
        if x.shape != y.shape or x.dtype != y.dtype:
            return False
        same = [f[i] for f in found if len(f) == len(a) and f[i].shape == y.shape]
        spread = max((gap(z, y) for z in same), default=0.0)
        if gap(x, y) > max(AMPLIFIED * spread, AMPLIFIED):
            return False
    return True
