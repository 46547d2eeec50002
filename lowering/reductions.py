"""Reductions: over axes, over sliding windows, and cumulative ones."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lowering.builder import Block, out_aval
from lowering.elementwise import combined
from lowering.module import write_in_place
from lowering.rules import rule
from lowering.shapes import pad, reshape, slice_
from lowering.shardings import cut_again, whole_along
from lowering.types import i64_array, int_list, tensor_type, tensor_types
from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray
from pyjx.core.jaxpr import JaxprEqn
from pyjx.core.scalars import greatest, least

# -- over axes -------------------------------------------------------------------------------------

# What CPUs accumulate sums and products of narrow floats in: XLA rounds every one of them there,
# by code that is not vectorised.
ACCUMULATED: dict[Any, Any] = {
    np.dtype(np.float16): np.float32, np.dtype(dtypes.bfloat16): np.float32,
}
# So few are reduced in less time as they are.
_FEW = 8


def reduce_to(b: Block, op: str, x: str, aval: ShapedArray, init: Any, axes: Sequence[int]) -> str:
    """One of StableHLO's binary operations applied across axes."""
    shape = tuple([n for i, n in enumerate(aval.shape) if i not in axes])
    scalar = ShapedArray((), aval.dtype)
    start = b.constant(init, scalar)
    return b.line(
        f"stablehlo.reduce({x} init: {start}) applies {op} across dimensions = "
        f"{int_list(axes)} : ({tensor_type(aval)}, {tensor_type(scalar)}) -> "
        f"{tensor_type(ShapedArray(shape, aval.dtype))}")


IDENTITIES: dict[str, tuple[str, Any]] = {
    "reduce_sum": ("stablehlo.add", lambda dtype: 0),
    "reduce_prod": ("stablehlo.multiply", lambda dtype: 1),
    "reduce_max": ("stablehlo.maximum", least),
    "reduce_min": ("stablehlo.minimum", greatest),
    "reduce_and": ("stablehlo.and", lambda dtype: np.invert(np.zeros((), dtype))),
    "reduce_or": ("stablehlo.or", lambda dtype: 0),
    "reduce_xor": ("stablehlo.xor", lambda dtype: 0),
}


@rule("reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_and", "reduce_or",
      "reduce_xor")
def _reduction(b: Block, eqn: JaxprEqn, x: str) -> str:
    op, identity = IDENTITIES[eqn.primitive.name]
    aval = eqn.invars[0].aval
    axes = eqn.params["axes"]
    if not axes:
        return x
    if dtypes.issubdtype(aval.dtype, np.complexfloating) and op[10:] in ("maximum", "minimum"):
        return _complex_extremum(b, op, whole_along(b, x, aval, axes), aval, axes)
    if op == "stablehlo.xor" or (op[10:] in ("and", "or") and aval.dtype != np.bool_):
        x = whole_along(b, x, aval, axes)  # devices have no such collective
    wide = _accumulated(b, op, aval, axes)
    x = reduce_to(b, op, b.convert(x, aval, wide), wide, identity(aval.dtype), axes)
    out = out_aval(eqn)
    return b.convert(x, out.update(dtype=wide.dtype), out)


def _accumulated(b: Block, op: str, aval: ShapedArray, axes: Sequence[int]) -> ShapedArray:
    """The operand's type as it is reduced."""
    if b.module.platform != "cpu" or op[10:] not in ("add", "multiply"):
        return aval
    count = math.prod([n for i in axes if type(n := aval.shape[i]) is int])
    return aval if count < _FEW else aval.update(dtype=ACCUMULATED.get(aval.dtype, aval.dtype))


def _complex_extremum(b: Block, op: str, x: str, aval: ShapedArray, axes: Sequence[int]) -> str:
    scalar = ShapedArray((), aval.dtype)
    out = ShapedArray([n for i, n in enumerate(aval.shape) if i not in axes], aval.dtype)
    init = b.constant((least if op.endswith("maximum") else greatest)(aval.dtype), scalar)
    return combining(b, f'"stablehlo.reduce"({x}, {init})', op, aval.dtype,
                     f"{{dimensions = {i64_array(axes)}}} : ({tensor_types([aval, scalar])}) -> "
                     f"{tensor_type(out)}")


def combining(b: Block, head: str, op: str, dtype: Any, tail: str) -> str:
    """An operation with a region in which one of StableHLO's combines two elements to one."""
    scalar = ShapedArray((), dtype)
    return b.with_region(
        head, [scalar, scalar],
        lambda left, right: ([combined(b, op, left, right, scalar)], [scalar]), tail, 1)[0]


@rule("argmax", "argmin")
def _arg_extremum(b: Block, eqn: JaxprEqn, x: str) -> str:
    # The least position among those where the extremum, or a NaN, stands.
    is_max = eqn.primitive.name == "argmax"
    aval, out = eqn.invars[0].aval, out_aval(eqn)
    axis, = eqn.params["axes"]
    positions = aval.update(dtype=eqn.params["index_dtype"], weak_type=False)
    op, identity = ("stablehlo.maximum", least) if is_max else ("stablehlo.minimum", greatest)
    extremum = reduce_to(b, op, x, aval, identity(aval.dtype), (axis,))
    kept = [i for i in range(aval.ndim) if i != axis]
    reduced = ShapedArray(out.shape, aval.dtype)
    here = b.compare("EQ", x, b.broadcast(extremum, reduced, aval, kept), aval)
    if dtypes.issubdtype(aval.dtype, np.floating):
        nan = b.compare("NE", x, x, aval)
        here = b.binary("stablehlo.or", here, nan, aval.update(dtype=np.bool_))
    index = b.iota(positions, axis)
    last = aval.shape[axis] - 1
    nowhere = b.constant(min(last, dtypes.iinfo(out.dtype).max), positions)
    place = b.select(here, index, nowhere, positions)
    return reduce_to(b, "stablehlo.minimum", place, positions, greatest(out.dtype), (axis,))


@rule("reduce")
def _reduce(b: Block, eqn: JaxprEqn, *operands: str) -> list[str]:
    avals = [v.aval for v in eqn.invars]
    outs = [v.aval for v in eqn.outvars]
    n, axes = len(outs), eqn.params["dimensions"]
    operands = (*[whole_along(b, x, a, axes) for x, a in zip(operands[:n], avals[:n], strict=True)],
                *operands[n:])
    return b.with_region(
        f'"stablehlo.reduce"({", ".join(operands)})', avals[len(outs):] * 2,
        reducer(b, eqn, avals[len(outs):]),
        f"{{dimensions = {i64_array(eqn.params['dimensions'])}}} : ({tensor_types(avals)}) -> "
        f"({tensor_types(outs)})", len(outs),
    )


def reducer(b: Block, eqn: JaxprEqn, avals: Sequence[Any], key: str = "jaxpr") -> Any:
    """The body of a region that runs a jaxpr of an equation on scalars."""
    return lambda *args: (write_in_place(b, eqn.params[key], args, eqn), avals)


# -- over windows ----------------------------------------------------------------------------------

# On CPU a small window is taken apart: the elements at each place of the window are a strided slice
# of the operand, and slices combine elementwise, which compiles to vector code where the windowed
# operations compile to loops over single elements.

# The largest number of elements in a window that is taken apart.
UNROLLED_WINDOW = 32


def _pairs(padding: Sequence[tuple[int, int]]) -> str:
    rows = ", ".join([f"[{low}, {high}]" for low, high in padding])
    return f"dense<[{rows}]> : tensor<{len(padding)}x2xi64>" if padding else \
        "dense<> : tensor<0x2xi64>"


def _attributes(b: Block, name: str, params: dict[str, Any]) -> str:
    b.check_known(name, params, ("window_dimensions", "window_strides", "base_dilation",
                                 "window_dilation", "padding"))
    parts = [*[f"{name}s = {i64_array(params[name])}"
               for name in ("base_dilation", "window_dilation") if name in params],
             f"padding = {_pairs(params['padding'])}",
             *[f"{name} = {i64_array(params[name])}"
               for name in ("window_dimensions", "window_strides")]]
    return f"<{{{', '.join(parts)}}}>"


def _takes_apart(b: Block, params: dict[str, Any], out: ShapedArray) -> bool:
    elements = math.prod(params["window_dimensions"])
    return (b.module.platform == "cpu" and out.size != 0
            and type(elements) is int and elements <= UNROLLED_WINDOW)


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


@rule("reduce_window_sum", "reduce_window_max", "reduce_window_min")
def _reduce_window_monoid(b: Block, eqn: JaxprEqn, x: str) -> str:
    aval, out, params = eqn.invars[0].aval, out_aval(eqn), eqn.params
    op, identity = IDENTITIES[eqn.primitive.name.replace("_window", "")]
    init = identity(aval.dtype)
    if b.module.platform == "cpu" and op == "stablehlo.add" and aval.dtype == dtypes.bfloat16:
        x = b.convert(x, aval, aval.update(dtype=np.float32))  # each addition would be rounded
        aval, out = (a.update(dtype=np.float32) for a in (aval, out))
    scalar = ShapedArray((), aval.dtype)
    if aval.dtype not in ACCUMULATED and _takes_apart(b, params, out):
        total, *rest = _elements(b, x, aval, init, params, out.shape)
        for element in rest:
            total = combined(b, op, total, element, out)
    else:
        attributes = _attributes(b, eqn.primitive.name, params)
        total = combining(
            b, f'"stablehlo.reduce_window"({x}, {b.constant(init, scalar)}) {attributes}',
            op, aval.dtype, f": ({tensor_types([aval, scalar])}) -> {tensor_type(out)}")
    return b.convert(total, out, out_aval(eqn))


@rule("reduce_window")
def _reduce_window(b: Block, eqn: JaxprEqn, *operands: str) -> list[str]:
    avals = [v.aval for v in eqn.invars]
    outs = [v.aval for v in eqn.outvars]
    scalars = avals[len(outs):]
    attributes = _attributes(b, eqn.primitive.name, eqn.params)
    return b.with_region(
        f'"stablehlo.reduce_window"({", ".join(operands)}) {attributes}',
        scalars * 2, reducer(b, eqn, scalars),
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
    attributes = _attributes(b, eqn.primitive.name, params)
    return b.with_region(
        f'"stablehlo.reduce_window"({x}, {tangents}, {", ".join(inits)}) {attributes}',
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


def _scatter_places(b: Block, eqn: JaxprEqn, source: str, x: str, direction: str, fill: Any) -> str:
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
              f"{_attributes(b, 'select_and_scatter', params)} ({{")
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
    select = reducer(b, eqn, [], "select_jaxpr")
    scatter = reducer(b, eqn, [], "scatter_jaxpr")
    return _scattered(b, params, (x, source, init), avals, lambda v, w: select(v, w)[0][0],
                      lambda v, w: scatter(v, w)[0][0])


# -- cumulative reductions -------------------------------------------------------------------------

# On CPU they are a loop along the axis, whose body works on whole slices: it reads and writes each
# element once, which measured several times faster there than windowed or tree forms. Elsewhere
# slices are combined in log2(n) doubling steps, all elements at once; where a symbol stands for n,
# a loop takes these steps.

# What a sum is accumulated in: the loop costs the same, and long sums keep their precision.
_WIDER: dict[Any, Any] = {
    np.dtype(np.float32): np.float64, np.dtype(np.complex64): np.complex128, **ACCUMULATED,
}

# How many elements of a long vector an iteration takes: it costs more than a step does.
_UNROLLED = 8

index = ShapedArray((), np.int32)
long_index = ShapedArray((), np.int64)


_NAMES = ("cumsum", "cumprod", "cummax", "cummin")
Combine = Callable[[Sequence[str], Sequence[str], ShapedArray], list[str]]


def _monoid(b: Block, eqn: JaxprEqn) -> tuple[Combine, Any]:
    """What joins the total of some elements with that of those after them, and that of none."""
    op, identity = IDENTITIES[eqn.primitive.name.replace("cum", "reduce_")]
    return (lambda left, right, of: [combined(b, op, left[0], right[0], of)],
            identity(eqn.invars[0].aval.dtype))


@rule(*_NAMES, platform="cpu")
def _cumulative_on_cpu(b: Block, eqn: JaxprEqn, x: str) -> str:
    name, aval = eqn.primitive.name, eqn.invars[0].aval
    if aval.shape[eqn.params["axis"]] == 1:
        return x
    combine, first = _monoid(b, eqn)
    carried = _WIDER.get(aval.dtype, aval.dtype) if name == "cumsum" else aval.dtype
    return _loop(b, eqn, [x], first, carried,
                 lambda total, items, of: combine([total], items, of)[0])


@rule(*_NAMES)
def _cumulative(b: Block, eqn: JaxprEqn, x: str) -> str:
    combine, first = _monoid(b, eqn)
    return _doubling(b, eqn, [x], [first], combine)


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
    return _doubling(b, eqn, [factor, x], [1, 0], lambda left, right, of: [
        b.binary("stablehlo.multiply", left[0], right[0], of), _step(b, left[1], right, of)])


def _loop(b: Block, eqn: JaxprEqn, operands: Sequence[str], init: Any, carried: Any,
          step: Callable[[str, Sequence[str], ShapedArray], str]) -> str:
    """Step through the slices along the axis; each result is written in its place."""
    aval, axis, reverse = _given(eqn)
    if aval.size == 0:
        return operands[-1]
    n = aval.shape[axis]
    row = aval.update(shape=[1 if i == axis else m for i, m in enumerate(aval.shape)])
    total = row.update(dtype=carried)
    whole = [whole_along(b, x, aval, (axis,), apart=True) for x in operands]
    zero = b.constant(0, index)
    start_types = ", ".join([tensor_type(index)] * aval.ndim)

    def sliced(place: str, acc: str, out: str) -> list[str]:
        if reverse:
            place = b.binary("stablehlo.subtract", b.constant(n - 1, index), place, index)
        starts = ", ".join([place if d == axis else zero for d in range(aval.ndim)])
        items = [b.line(
            f"stablehlo.dynamic_slice {v}, {starts}, sizes = {int_list(row.shape)} : "
            f"({tensor_type(aval)}, {start_types}) -> {tensor_type(row)}") for v in whole]
        acc = step(acc, [b.convert(v, row, total) for v in items], total)
        return [acc, b.line(
            f"stablehlo.dynamic_update_slice {out}, {b.convert(acc, total, row)}, {starts} : "
            f"({tensor_type(aval)}, {tensor_type(row)}, {start_types}) -> {tensor_type(aval)}")]

    def body(state: Sequence[str]) -> list[str]:
        i, *state = state
        for k in range(unrolled):
            state = sliced(b.plus(i, k, index), *state)
        return [b.plus(i, unrolled, index), *state]

    long = type(n) is int and row.size == 1 and n > 100
    unrolled = _UNROLLED if long else 1
    rest = n % unrolled
    state = [b.constant(init, total), b.constant(0, aval)]
    for k in range(rest):
        state = sliced(b.constant(k, index), *state)
    _, _, out = b.loop([b.constant(rest, index), *state], [index, total, aval],
                       lambda state: b.compare("LT", state[0], b.constant(n, index), index), body)
    return cut_again(b, out, operands[-1], aval, (axis,))


def _doubling(b: Block, eqn: JaxprEqn, operands: Sequence[str], identities: Sequence[Any],
              combine: Combine) -> str:
    """Combine each element with the one 1, 2, 4, ... places before it."""
    aval, axis, _ = _given(eqn)
    n, totals, distance = aval.shape[axis], list(operands), 1
    if type(n) is not int:
        return _doubling_loop(b, eqn, operands, identities, combine)
    while aval.size != 0 and distance < n:
        before = _moved(b, eqn, totals, identities, distance, -distance)
        totals = combine([v for v, _ in before], totals, aval)
        distance *= 2
    return totals[-1]


def _doubling_loop(b: Block, eqn: JaxprEqn, operands: Sequence[str], identities: Sequence[Any],
                   combine: Combine) -> str:
    """The same where a symbol stands for the number of elements, and so of the steps."""
    aval, axis, reverse = _given(eqn)
    n = aval.shape[axis]

    def body(state: Sequence[str]) -> list[str]:
        distance, *totals = state
        start = distance if reverse else b.binary("stablehlo.subtract", b.constant(n, long_index),
                                                  distance, long_index)
        starts = [start if d == axis else b.constant(0, long_index) for d in range(aval.ndim)]
        before = [b.line(
            f"stablehlo.dynamic_slice {v}, {', '.join(starts)}, sizes = {int_list(aval.shape)} : "
            f"({tensor_types([of, *[long_index] * aval.ndim])}) -> {tensor_type(aval)}")
            for v, of in _moved(b, eqn, totals, identities, n, 0)]
        # Of a distance added to itself XLA 0.10 takes the second for a constant, and aborts.
        twice = b.binary("stablehlo.multiply", distance, b.constant(2, long_index), long_index)
        return [twice, *combine(before, totals, aval)]

    return b.loop(
        [b.constant(1, long_index), *operands], [long_index, *[aval] * len(operands)],
        lambda state: b.compare("LT", state[0], b.constant(n, long_index), long_index), body)[-1]


def _moved(b: Block, eqn: JaxprEqn, totals: Sequence[str], identities: Sequence[Any], low: Any,
           high: Any) -> list[tuple[str, ShapedArray]]:
    """The totals behind so many of no elements, and before so many; fewer than none cut them."""
    aval, axis, reverse = _given(eqn)
    config = [(0, 0, 0)] * aval.ndim
    config[axis] = (high, low, 0) if reverse else (low, high, 0)
    return [pad(b, t, aval, b.constant(v, ShapedArray((), aval.dtype)), config)
            for t, v in zip(totals, identities, strict=True)]
