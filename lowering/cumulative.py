"""Cumulative reductions.

On CPU they are a loop along the axis, whose body works on whole slices: it reads and writes each
element once, which measured several times faster there than windowed or tree forms. Elsewhere
slices are combined in log2(n) doubling steps, all elements at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lowering.builder import Block
from lowering.reductions import ACCUMULATED, combined
from lowering.rules import rule
from lowering.shapes import pad
from lowering.shardings import cut_again, whole_along
from lowering.types import tensor_type, tensor_types
from pyjx.core.avals import ShapedArray
from pyjx.core.jaxpr import JaxprEqn
from pyjx.core.scalars import greatest, least

# What a sum is accumulated in: the loop costs the same, and long sums keep their precision.
_WIDER: dict[Any, Any] = {
    np.dtype(np.float32): np.float64, np.dtype(np.complex64): np.complex128, **ACCUMULATED,
}
_IDENTITY: dict[str, Callable[[Any], Any]] = {
    "cumsum": lambda dtype: 0, "cumprod": lambda dtype: 1, "cummax": least, "cummin": greatest,
}
_BINARY = {"cumsum": "stablehlo.add", "cumprod": "stablehlo.multiply",
           "cummax": "stablehlo.maximum", "cummin": "stablehlo.minimum"}

# How many elements of a long vector an iteration takes: it costs more than a step does.
_UNROLLED = 8

index = ShapedArray((), np.int32)


_NAMES = tuple(_IDENTITY)
Combine = Callable[[Sequence[str], Sequence[str], ShapedArray], list[str]]


def _combine(b: Block, name: str) -> Combine:
    """What joins the total of some elements with that of those after them."""
    def combine(left: Sequence[str], right: Sequence[str], of: ShapedArray) -> list[str]:
        return [combined(b, _BINARY[name], left[0], right[0], of)]

    return combine


@rule(*_NAMES, platform="cpu")
def _cumulative_on_cpu(b: Block, eqn: JaxprEqn, x: str) -> str:
    name, aval = eqn.primitive.name, eqn.invars[0].aval
    if aval.shape[eqn.params["axis"]] == 1:
        return x
    combine = _combine(b, name)
    carried = _WIDER.get(aval.dtype, aval.dtype) if name == "cumsum" else aval.dtype
    return _loop(b, eqn, [x], _IDENTITY[name](aval.dtype), carried,
                 lambda total, items, of: combine([total], items, of)[0])


@rule(*_NAMES)
def _cumulative(b: Block, eqn: JaxprEqn, x: str) -> str:
    name = eqn.primitive.name
    return _doubling(b, eqn, [x], [_IDENTITY[name](eqn.invars[0].aval.dtype)], _combine(b, name))


def _given(eqn: JaxprEqn) -> tuple[ShapedArray, int, bool]:
    return eqn.invars[-1].aval.strip_weak_type(), eqn.params["axis"], eqn.params["reverse"]


def _step(b: Block, total: str, items: Sequence[str], of: ShapedArray) -> str:
    """factor * total + x"""
    return b.binary("stablehlo.add", b.binary("stablehlo.multiply", items[0], total, of),
                    items[1], of)


@rule("linear_recurrence", platform="cpu")
def _linear_recurrence_on_cpu(b: Block, eqn: JaxprEqn, factor: str, x: str) -> str:
    return _loop(b, eqn, [factor, x], 0, eqn.invars[1].aval.dtype,
                 lambda total, items, of: _step(b, total, items, of))


@rule("linear_recurrence")
def _linear_recurrence(b: Block, eqn: JaxprEqn, factor: str, x: str) -> str:
    def combine(left: Sequence[str], right: Sequence[str], of: ShapedArray) -> list[str]:
        return [b.binary("stablehlo.multiply", left[0], right[0], of),
                _step(b, left[1], right, of)]

    return _doubling(b, eqn, [factor, x], [1, 0], combine)


def _loop(b: Block, eqn: JaxprEqn, operands: Sequence[str], init: Any, carried: Any,
          step: Callable[[str, Sequence[str], ShapedArray], str]) -> str:
    """Step through the slices along the axis; each result is written in its place."""
    aval, axis, reverse = _given(eqn)
    if aval.size == 0:
        return operands[-1]
    n = aval.shape[axis]
    row = aval.update(shape=[1 if i == axis else m for i, m in enumerate(aval.shape)])
    total = row.update(dtype=carried)
    avals = [index, total, aval, *[aval for _ in operands]]
    whole = [whole_along(b, x, aval, (axis,), apart=True) for x in operands]
    zero = b.constant(0, index)
    start_types = ", ".join(["tensor<i32>"] * aval.ndim)
    sizes = ", ".join(map(str, row.shape))

    def slice_done(place: str, acc: str, out: str, xs: Sequence[str]) -> tuple[str, str]:
        starts = ", ".join([place if d == axis else zero for d in range(aval.ndim)])
        items = [b.line(
            f"stablehlo.dynamic_slice {v}, {starts}, sizes = [{sizes}] : ({tensor_type(aval)}, "
            f"{start_types}) -> {tensor_type(row)}") for v in xs]
        acc = step(acc, [b.convert(v, row, total) for v in items], total)
        return acc, b.line(
            f"stablehlo.dynamic_update_slice {out}, {b.convert(acc, total, row)}, {starts} : "
            f"({tensor_type(aval)}, {tensor_type(row)}, {start_types}) -> {tensor_type(aval)}")

    long = type(n) is int and row.size == 1 and n > 100
    unrolled = _UNROLLED if long else 1
    rest = n % unrolled
    acc, out = b.constant(init, total), b.constant(0, aval)
    for k in range(rest):
        place = b.constant(n - 1 - k if reverse else k, index)
        acc, out = slice_done(place, acc, out, whole)
    result = b.name()
    types = f"({tensor_types(avals)}) -> ({tensor_types(avals)})"
    inits = [b.constant(rest, index), acc, out, *whole]
    b.opening(f'{result}:{len(avals)} = "stablehlo.while"({", ".join(inits)}) ({{')
    args = b.parameters(avals)
    with b.region():
        more = b.compare("LT", args[0], b.constant(n, index), index)
        b.raw(f"stablehlo.return {more} : tensor<i1>")
    b.opening("}, {")
    i, acc, out, *xs = b.parameters(avals)
    with b.region():
        one = b.constant(1, index)
        for _ in range(unrolled):
            place = i
            if reverse:
                place = b.binary("stablehlo.subtract", b.constant(n - 1, index), i, index)
            acc, out = slice_done(place, acc, out, xs)
            i = b.binary("stablehlo.add", i, one, index)
        values = ", ".join([i, acc, out, *xs])
        b.raw(f"stablehlo.return {values} : {tensor_types(avals)}")
    b.raw(f"}}) : {types}")
    return cut_again(b, f"{result}#2", operands[-1], aval, (axis,))


def _doubling(b: Block, eqn: JaxprEqn, operands: Sequence[str], identities: Sequence[Any],
              combine: Combine) -> str:
    """Combine each element with the one 1, 2, 4, ... places before it."""
    aval, axis, reverse = _given(eqn)
    scalar = ShapedArray((), aval.dtype)
    totals = list(operands)
    distance = 1
    while aval.size != 0 and distance < aval.shape[axis]:
        config = [(0, 0, 0)] * aval.ndim
        config[axis] = (-distance, distance, 0) if reverse else (distance, -distance, 0)
        before = [pad(b, t, aval, b.constant(v, scalar), config)[0]
                  for t, v in zip(totals, identities, strict=True)]
        totals = combine(before, totals, aval)
        distance *= 2
    return totals[-1]
