"""Reductions over sliding windows.

On CPU a small window is taken apart: the elements at each place of the window are a strided slice
of the operand, and slices combine elementwise, which compiles to vector code where the windowed
operations compile to loops over single elements.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from lowering.builder import Block, out_aval
from lowering.reductions import ACCUMULATED, combined, reducer
from lowering.rules import rule
from lowering.shapes import pad, reshape, slice_
from lowering.types import i64_array, tensor_type, tensor_types
from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray
from pyjx.core.jaxpr import JaxprEqn
from pyjx.core.scalars import greatest, least

# The largest number of elements in a window that is taken apart.
UNROLLED_WINDOW = 32


def _pairs(padding: Sequence[tuple[int, int]]) -> str:
    rows = ", ".join([f"[{low}, {high}]" for low, high in padding])
    return f"dense<[{rows}]> : tensor<{len(padding)}x2xi64>" if padding else \
        "dense<> : tensor<0x2xi64>"


def _attributes(params: dict[str, Any]) -> str:
    parts = [f"{name}s = {i64_array(params[name])}"
             for name in ("base_dilation", "window_dilation") if name in params]
    parts.append(f"padding = {_pairs(params['padding'])}")
    parts += [f"{name} = {i64_array(params[name])}"
              for name in ("window_dimensions", "window_strides")]
    return f"<{{{', '.join(parts)}}}>"


def _takes_apart(b: Block, params: dict[str, Any], out: ShapedArray) -> bool:
    return (b.module.platform == "cpu" and out.size != 0
            and math.prod(params["window_dimensions"]) <= UNROLLED_WINDOW)


def _starts(params: dict[str, Any]) -> list[list[int]]:
    """Where the elements of the first window are, in the padded operand."""
    holes = params.get("window_dilation") or (1,) * len(params["window_dimensions"])
    return [[i * d for i, d in zip(place, holes, strict=True)]
            for place in itertools.product(*map(range, params["window_dimensions"]))]


def _elements(b: Block, x: str, aval: ShapedArray, fill: Any, params: dict[str, Any],
              counts: Sequence[int]) -> list[str]:
    """For each place in the window, the elements that stand there."""
    base = params.get("base_dilation") or (1,) * aval.ndim
    value = b.constant(fill, ShapedArray((), aval.dtype))
    config = [(low, high, d - 1) for (low, high), d in zip(params["padding"], base, strict=True)]
    padded, in_aval = pad(b, x, aval, value, config)
    steps = params["window_strides"]
    return [slice_(b, padded, in_aval, start, [
        i + (n - 1) * s + 1 for i, n, s in zip(start, counts, steps, strict=True)], steps)
        for start in _starts(params)]


def _identity(name: str, dtype: Any) -> tuple[str, Any]:
    if name.endswith("sum"):
        return "stablehlo.add", 0
    return ("stablehlo.maximum", least(dtype)) if name.endswith("max") else \
        ("stablehlo.minimum", greatest(dtype))


@rule("reduce_window_sum", "reduce_window_max", "reduce_window_min")
def _reduce_window_monoid(b: Block, eqn: JaxprEqn, x: str) -> str:
    aval, out, params = eqn.invars[0].aval, out_aval(eqn), eqn.params
    op, init = _identity(eqn.primitive.name, aval.dtype)
    if b.module.platform == "cpu" and op == "stablehlo.add" and aval.dtype == dtypes.bfloat16:
        x = b.convert(x, aval, aval.update(dtype=np.float32))  # each addition would be rounded
        aval, out = (a.update(dtype=np.float32) for a in (aval, out))
    scalar = ShapedArray((), aval.dtype)
    if aval.dtype not in ACCUMULATED and _takes_apart(b, params, out):
        total, *rest = _elements(b, x, aval, init, params, out.shape)
        for element in rest:
            total = combined(b, op, total, element, out)
    else:
        (total,) = b.with_region(
            f'"stablehlo.reduce_window"({x}, {b.constant(init, scalar)}) {_attributes(params)}',
            [scalar, scalar],
            lambda left, right: ([combined(b, op, left, right, scalar)], [scalar]),
            f": ({tensor_types([aval, scalar])}) -> {tensor_type(out)}", 1)
    return b.convert(total, out, out_aval(eqn))


@rule("reduce_window")
def _reduce_window(b: Block, eqn: JaxprEqn, *operands: str) -> list[str]:
    avals = [v.aval for v in eqn.invars]
    outs = [v.aval for v in eqn.outvars]
    scalars = avals[len(outs):]
    return b.with_region(
        f'"stablehlo.reduce_window"({", ".join(operands)}) {_attributes(eqn.params)}',
        scalars * 2, reducer(b, eqn.params["jaxpr"], scalars),
        f": ({tensor_types(avals)}) -> ({tensor_types(outs)})", len(outs),
    )


def _preference(eqn: JaxprEqn) -> tuple[str, Any]:
    """The comparison that says a value stays selected, and the value that never is."""
    name = eqn.params["select_prim"].name
    dtype = eqn.invars[1].aval.dtype
    return ("GE", least(dtype)) if name == "ge" else ("LE", greatest(dtype))


@rule("select_and_gather_add")
def _select_and_gather_add(b: Block, eqn: JaxprEqn, tangents: str, x: str) -> str:
    t_aval, aval = (v.aval for v in eqn.invars)
    out, params = out_aval(eqn), eqn.params
    direction, fill = _preference(eqn)

    def choose(left: tuple[str, str], right: tuple[str, str], shape: Any) -> tuple[str, str]:
        of, t_of = aval.update(shape=shape), t_aval.update(shape=shape)
        stays = b.compare(direction, left[0], right[0], of)
        return b.select(stays, left[0], right[0], of), b.select(stays, left[1], right[1], t_of)

    if _takes_apart(b, params, out):
        best, *rest = zip(_elements(b, x, aval, fill, params, out.shape),
                          _elements(b, tangents, t_aval, 0, params, out.shape), strict=True)
        for other in rest:
            best = choose(best, other, out.shape)
        return best[1]
    scalars = [ShapedArray((), aval.dtype), ShapedArray((), t_aval.dtype)]
    inits = [b.constant(fill, scalars[0]), b.constant(0, scalars[1])]
    outs = [out.update(dtype=aval.dtype), out]
    return b.with_region(
        f'"stablehlo.reduce_window"({x}, {tangents}, {", ".join(inits)}) {_attributes(params)}',
        scalars * 2, lambda v, t, w, u: (choose((v, t), (w, u), ()), scalars),
        f": ({tensor_types([aval, t_aval, *scalars])}) -> ({tensor_types(outs)})", 2)[1]


@rule("select_and_scatter_add")
def _select_and_scatter_add(b: Block, eqn: JaxprEqn, source: str, x: str) -> str:
    s_aval, aval = (v.aval for v in eqn.invars)
    params = eqn.params
    if s_aval.size == 0:
        return b.constant(0, out_aval(eqn))
    direction, fill = _preference(eqn)
    config = [(low, high, 0) for low, high in params["padding"]]
    if _takes_apart(b, params, s_aval):
        total = _scatter_places(b, eqn, source, x, direction, fill)
        shape = tuple([n + low + high
                       for n, (low, high, _) in zip(aval.shape, config, strict=True)])
    else:
        padded, in_aval = pad(b, x, aval, b.constant(fill, ShapedArray((), aval.dtype)), config)
        shape = in_aval.shape
        scalar, zero = ShapedArray((), aval.dtype), ShapedArray((), s_aval.dtype)
        total = _scattered(
            b, {**params, "padding": [(0, 0)] * aval.ndim},
            (padded, source, b.constant(0, zero)), (in_aval, s_aval, zero),
            lambda v, w: b.compare(direction, v, w, scalar),
            lambda v, w: b.binary("stablehlo.add", v, w, zero))
    crop = [(-low, -high, 0) for low, high, _ in config]
    zero_name = b.constant(0, ShapedArray((), s_aval.dtype))
    return pad(b, total, ShapedArray(shape, s_aval.dtype), zero_name, crop)[0]


def _scatter_places(b: Block, eqn: JaxprEqn, source: str, x: str, direction: str, fill: Any
                    ) -> str:
    """The sum, over places in the window, of the source where that place is selected.

    The result has the padded operand's shape.
    """
    s_aval, aval = (v.aval for v in eqn.invars)
    params = eqn.params
    counts, strides = s_aval.shape, params["window_strides"]
    window = aval.update(shape=counts)
    place = ShapedArray(counts, np.int32)
    elements = _elements(b, x, aval, fill, params, counts)
    best, where = elements[0], b.constant(0, place)
    for i, element in enumerate(elements[1:], 1):
        stays = b.compare(direction, best, element, window)
        best = b.select(stays, best, element, window)
        where = b.select(stays, where, b.constant(i, place), place)
    zero = b.constant(0, s_aval)
    scalar = b.constant(0, ShapedArray((), s_aval.dtype))
    sizes = [n + low + high for n, (low, high) in zip(aval.shape, params["padding"], strict=True)]
    total = ""
    for i, start in enumerate(_starts(params)):
        here = b.compare("EQ", where, b.constant(i, place), place)
        part = b.select(here, source, zero, s_aval)
        config = [(a, m - a - (n - 1) * s - 1, s - 1)
                  for a, m, n, s in zip(start, sizes, counts, strides, strict=True)]
        spread, padded = pad(b, part, s_aval, scalar, config)
        total = b.binary("stablehlo.add", total, spread, padded) if total else spread
    return total


def _scattered(b: Block, params: dict[str, Any], operands: Sequence[str],
               avals: Sequence[ShapedArray], select: Any, scatter: Any) -> str:
    """`stablehlo.select_and_scatter` of an operand, a source and an initial value.

    For TPUs XLA wants two dimensions along which windows are one element: they are added.
    """
    x, source, init = operands
    x_aval, s_aval, scalar = avals
    shape = x_aval.shape
    if b.module.platform == "tpu":
        windows = zip(params["window_dimensions"], params["window_strides"], strict=True)
        ones = (1,) * (2 - min(2, list(windows).count((1, 1))))
        params = {"padding": [*params["padding"], *[(0, 0)] * len(ones)],
                  **{name: (*params[name], *ones)
                     for name in ("window_dimensions", "window_strides")}}
        x, source = (reshape(b, name, aval, (*aval.shape, *ones))
                     for name, aval in ((x, x_aval), (source, s_aval)))
        x_aval, s_aval = (aval.update(shape=(*aval.shape, *ones)) for aval in (x_aval, s_aval))
    out = x_aval.update(dtype=scalar.dtype)
    result = b.name()
    b.opening(f'{result} = "stablehlo.select_and_scatter"({x}, {source}, {init}) '
              f"{_attributes(params)} ({{")
    for aval, body, dtype in ((ShapedArray((), x_aval.dtype), select, np.bool_),
                              (scalar, scatter, scalar.dtype)):
        names = b.parameters([aval, aval])
        with b.region():
            b.raw(f"stablehlo.return {body(*names)} : {tensor_type(ShapedArray((), dtype))}")
        if body is select:
            b.opening("}, {")
    b.raw(f"}}) : ({tensor_types([x_aval, s_aval, scalar])}) -> {tensor_type(out)}")
    return reshape(b, result, out, shape)


@rule("select_and_scatter")
def _select_and_scatter(b: Block, eqn: JaxprEqn, x: str, source: str, init: str) -> str:
    avals = [v.aval for v in eqn.invars]
    params = eqn.params
    select = reducer(b, params["select_jaxpr"], [])
    scatter = reducer(b, params["scatter_jaxpr"], [])
    return _scattered(b, params, (x, source, init), avals, lambda v, w: select(v, w)[0][0],
                      lambda v, w: scatter(v, w)[0][0])
