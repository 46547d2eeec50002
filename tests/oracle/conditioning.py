"""Whether a difference is no more than rounding amplified: the oracle is run on inputs nearby."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from tests.oracle.comparison import elements, gap, unit
from tests.oracle.language import Assign, Data, Expr, Function, Program, Statement
from tests.oracle.processes import Outcome, Worker

VARIANTS = 4
AMPLIFIED = 32.0  # how far beyond the oracle's own spread a result may lie


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
