"""Reductions over axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from lowering.builder import Block, out_aval
from lowering.module import write_in_place
from lowering.rules import rule
from lowering.shardings import whole_along
from lowering.types import i64_array, int_list, tensor_type, tensor_types
from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray
from pyjx.core.jaxpr import ClosedJaxpr, JaxprEqn
from pyjx.core.scalars import greatest, least

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
        f"{tensor_type(ShapedArray(shape, aval.dtype))}"
    )


def _all_ones(dtype: Any) -> Any:
    return np.invert(np.zeros((), dtype))


_IDENTITIES: dict[str, tuple[str, Any]] = {
    "reduce_sum": ("stablehlo.add", lambda dtype: 0),
    "reduce_prod": ("stablehlo.multiply", lambda dtype: 1),
    "reduce_max": ("stablehlo.maximum", least),
    "reduce_min": ("stablehlo.minimum", greatest),
    "reduce_and": ("stablehlo.and", _all_ones),
    "reduce_or": ("stablehlo.or", lambda dtype: 0),
    "reduce_xor": ("stablehlo.xor", lambda dtype: 0),
}


@rule("reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_and", "reduce_or",
      "reduce_xor")
def _reduction(b: Block, eqn: JaxprEqn, x: str) -> str:
    op, identity = _IDENTITIES[eqn.primitive.name]
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


def combined(b: Block, op: str, x: str, y: str, aval: ShapedArray) -> str:
    """A binary operation of StableHLO; the greater or the lesser of two complex numbers is that
    with such a real part, of one such part that with such an imaginary one."""
    if op[10:] not in ("maximum", "minimum") or aval.dtype.kind != "c":
        return b.binary(op, x, y, aval)
    part = ShapedArray(aval.shape, np.float32 if aval.dtype == np.complex64 else np.float64)
    types = f"({tensor_type(aval)}) -> {tensor_type(part)}"
    x_re, y_re = (b.line(f"stablehlo.real {v} : {types}") for v in (x, y))
    x_im, y_im = (b.line(f"stablehlo.imag {v} : {types}") for v in (x, y))
    direction = "GT" if op.endswith("maximum") else "LT"
    by_real = b.compare(direction, x_re, y_re, part, "FLOAT")
    by_imag = b.compare(direction, x_im, y_im, part, "FLOAT")
    tie = b.compare("EQ", x_re, y_re, part, "FLOAT")
    flag = ShapedArray(aval.shape, np.bool_)
    return b.select(b.select(tie, by_imag, by_real, flag), x, y, aval)


def _complex_extremum(b: Block, op: str, x: str, aval: ShapedArray, axes: Sequence[int]) -> str:
    scalar = ShapedArray((), aval.dtype)
    out = ShapedArray([n for i, n in enumerate(aval.shape) if i not in axes], aval.dtype)
    init = b.constant((least if op.endswith("maximum") else greatest)(aval.dtype), scalar)
    return b.with_region(
        f'"stablehlo.reduce"({x}, {init})', [scalar, scalar],
        lambda left, right: ([combined(b, op, left, right, scalar)], [scalar]),
        f"{{dimensions = {i64_array(axes)}}} : ({tensor_types([aval, scalar])}) -> "
        f"{tensor_type(out)}", 1)[0]


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
        reducer(b, eqn.params["jaxpr"], avals[len(outs):]),
        f"{{dimensions = {i64_array(eqn.params['dimensions'])}}} : ({tensor_types(avals)}) -> "
        f"({tensor_types(outs)})", len(outs),
    )


def reducer(b: Block, closed: ClosedJaxpr, avals: Sequence[Any]) -> Any:
    """The body of a region that runs a jaxpr on scalars."""
    return lambda *args: (write_in_place(b, closed, args), avals)
