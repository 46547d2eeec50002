"""Sorting.

XLA's CPU sort is several times faster with a plain integer comparison than with one that brings
floats into a total order. So there, with one key of up to 32 bits, key and position are packed into
one 64-bit integer, these are sorted, and all operands are gathered by position: stable, and with
the same bits (NaNs, signs of zeros) as a stable sort of the operands themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from lowering import rules
from lowering.builder import Block
from lowering.elementwise import comparison_kind, part_aval, parts
from lowering.shapes import reshape, transpose
from lowering.types import int_list, tensor_type, tensor_types
from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray
from pyjx.core.jaxpr import JaxprEqn

rule = partial(rules.rule, apart=True)

_INTS = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}


@rule("sort")
def _sort(b: Block, eqn: JaxprEqn, *operands: str) -> list[str]:
    avals = [v.aval.strip_weak_type() for v in eqn.invars]
    axis, num_keys = eqn.params["dimension"], eqn.params["num_keys"]
    key = avals[0]
    if key.size == 0 or key.shape[axis] == 1:
        return list(operands)
    wide, wide_avals = b.in_bytes(operands, avals)
    out = _sorted(b, wide, wide_avals, axis, eqn.params["is_stable"], num_keys)
    return [b.convert(*x) for x in zip(out, wide_avals, avals, strict=True)]


def _sorted(b: Block, operands: Sequence[str], avals: Sequence[Any], axis: int, stable: bool,
            num_keys: int) -> list[str]:
    key = avals[0]
    if b.module.platform == "cpu" and num_keys == 1 and _is_orderable(key.dtype):
        bits = dtypes.itemsize_bits(key.dtype)
        if len(operands) == 1 and key.dtype.kind in "biu":
            return [_sort_integers(b, operands[0], key, axis)]
        if bits <= 32:
            order = _packed_order(b, operands[0], key, axis)
            return [_take(b, x, order, a, axis) for x, a in zip(operands, avals, strict=True)]
        if len(operands) > 1 or key.dtype.kind == "f":
            order = _order_by_pair(b, operands[0], key, axis)
            return [_take(b, x, order, a, axis) for x, a in zip(operands, avals, strict=True)]
    return _general(b, operands, avals, axis, stable, num_keys)


def _is_orderable(dtype: Any) -> bool:
    """Whether there is an integer comparison that orders the dtype."""
    if dtype == np.bool_:
        return True
    if dtypes.issubdtype(dtype, np.integer):
        return dtypes.itemsize_bits(dtype) >= 8
    return dtypes.issubdtype(dtype, np.floating) and dtypes.itemsize_bits(dtype) >= 16


def _sort_op(b: Block, operands: Sequence[str], avals: Sequence[Any], axis: int, stable: bool,
             before: Any) -> list[str]:
    """`stablehlo.sort` with a comparator `(names) -> name`, on the pairs of elements in turn."""
    params = [ShapedArray((), a.dtype) for a in avals for _ in range(2)]
    flag = ShapedArray((), np.bool_)
    attributes = f"<{{dimension = {axis} : i64, is_stable = {str(stable).lower()}}}>"
    types = tensor_types(avals)
    return b.with_region(
        f'"stablehlo.sort"({", ".join(operands)}) {attributes}', params,
        lambda *args: ([before(*args)], [flag]), f": ({types}) -> ({types})", len(operands))


def _less(b: Block, aval: ShapedArray) -> Any:
    scalar = ShapedArray((), aval.dtype)
    return lambda x, y, *_: b.compare("LT", x, y, scalar, comparison_kind(aval))


def _sort_integers(b: Block, x: str, aval: ShapedArray, axis: int) -> str:
    return _sort_op(b, [x], [aval], axis, False, _less(b, aval))[0]


def _integer_key(b: Block, x: str, aval: ShapedArray) -> tuple[str, ShapedArray]:
    """Integers in the order of the operand's elements: equal ones for equal elements.

    The bits of a float, read as a signed integer, are in its order from 0 up; below, flipping all
    but the sign puts them in it. Zeros are made 0.0 and NaNs the greatest one.
    """
    if not dtypes.issubdtype(aval.dtype, np.floating):
        return x, aval
    bits = dtypes.itemsize_bits(aval.dtype)
    out = aval.update(dtype=_INTS[bits])
    zero = b.constant(0, aval)
    x = b.select(b.compare("EQ", x, zero, aval), zero, x, aval)
    raw = b.line(f"stablehlo.bitcast_convert {x} : ({tensor_type(aval)}) -> {tensor_type(out)}")
    ordered = _flip_negative(b, raw, out)
    greatest = b.constant(2 ** (bits - 1) - 1, out)
    return b.select(b.compare("NE", x, x, aval), greatest, ordered, out), out


def _flip_negative(b: Block, x: str, aval: ShapedArray) -> str:
    """Signed integers, all bits but the sign flipped in the negative ones."""
    last = dtypes.itemsize_bits(aval.dtype) - 1
    sign = b.binary("stablehlo.shift_right_arithmetic", x, b.constant(last, aval), aval)
    mask = b.binary("stablehlo.and", sign, b.constant(2 ** last - 1, aval), aval)
    return b.binary("stablehlo.xor", x, mask, aval)


def _packed_order(b: Block, x: str, aval: ShapedArray, axis: int) -> str:
    """The positions of the elements in ascending order, as 64-bit integers."""
    key, key_aval = _integer_key(b, x, aval)
    unsigned = key_aval.dtype.kind == "u"
    wide = aval.update(dtype=np.uint64 if unsigned else np.int64)
    high = b.binary("stablehlo.shift_left", b.convert(key, key_aval, wide),
                    b.constant(32, wide), wide)
    packed = b.binary("stablehlo.or", high, b.iota(wide, axis), wide)
    packed = _sort_integers(b, packed, wide, axis)
    order = b.binary("stablehlo.and", packed, b.constant(2 ** 32 - 1, wide), wide)
    return b.convert(order, wide, aval.update(dtype=np.int64))


def _order_by_pair(b: Block, x: str, aval: ShapedArray, axis: int) -> str:
    """As `_packed_order`, for keys that leave no room for the position."""
    key, key_aval = _integer_key(b, x, aval)
    wide = aval.update(dtype=np.int64)
    less = _less(b, key_aval)
    return _sort_op(b, [key, b.iota(wide, axis)], [key_aval, wide], axis, True, less)[1]


def _take(b: Block, x: str, order: str, aval: ShapedArray, axis: int) -> str:
    """The elements at positions along an axis, which are known to be in range."""
    shape = (*aval.shape, 1)
    places = ShapedArray(shape, np.int64)
    order = reshape(b, order, aval.update(dtype=np.int64), shape)
    others = [i for i in range(aval.ndim) if i != axis]
    batching = (f"operand_batching_dims = {int_list(others)}, "
                f"start_indices_batching_dims = {int_list(others)}, ") if others else ""
    sizes = ", ".join(["1"] * aval.ndim)
    return b.line(
        f'"stablehlo.gather"({x}, {order}) <{{dimension_numbers = #stablehlo.gather<'
        f"collapsed_slice_dims = [{axis}], {batching}start_index_map = [{axis}], "
        f"index_vector_dim = {aval.ndim}>, indices_are_sorted = false, "
        f"slice_sizes = array<i64: {sizes}>}}> : ({tensor_type(aval)}, {tensor_type(places)}) -> "
        f"{tensor_type(aval)}")


# -- any keys --------------------------------------------------------------------------------------


def _general(b: Block, operands: Sequence[str], avals: Sequence[Any], axis: int, stable: bool,
             num_keys: int) -> list[str]:
    def before(*args: str) -> str:
        keys = []
        for i in range(num_keys):
            scalar = ShapedArray((), avals[i].dtype)
            left, right = (_comparable(b, args[2 * i + j], scalar) for j in range(2))
            keys += [(x, y, aval) for (x, aval), (y, _) in zip(left, right, strict=True)]
        return _lexicographic(b, keys)

    return _sort_op(b, operands, avals, axis, stable, before)


def _comparable(b: Block, x: str, aval: ShapedArray) -> list[tuple[str, ShapedArray]]:
    """A scalar as parts to compare in turn, where zeros are one value and so are NaNs."""
    if dtypes.issubdtype(aval.dtype, np.complexfloating):
        return [p for part in parts(b, x, aval) for p in _comparable(b, part, part_aval(aval))]
    if not dtypes.issubdtype(aval.dtype, np.floating):
        return [(x, aval)]
    zero = b.constant(0, aval)
    value = b.select(b.compare("EQ", x, zero, aval), zero, x, aval)
    is_nan = b.compare("NE", x, x, aval)
    return [(b.select(is_nan, b.constant(np.nan, aval), value, aval), aval)]


def _lexicographic(b: Block, keys: Sequence[tuple[str, str, ShapedArray]]) -> str:
    flag = ShapedArray((), np.bool_)
    result = ""
    for x, y, aval in reversed(keys):
        kind = comparison_kind(aval, total_order=True)
        less = b.compare("LT", x, y, aval, kind)
        if result:
            tie = b.binary("stablehlo.and", b.compare("EQ", x, y, aval, kind), result, flag)
            less = b.binary("stablehlo.or", less, tie, flag)
        result = less
    return result


# -- top_k -----------------------------------------------------------------------------------------


@rule("top_k")
def _top_k(b: Block, eqn: JaxprEqn, x: str) -> list[str]:
    aval = eqn.invars[0].aval.strip_weak_type()
    values, indices = (v.aval for v in eqn.outvars)
    axis, k = eqn.params["axis"], eqn.params["k"]
    last = aval.ndim - 1
    order = [i for i in range(aval.ndim) if i != axis] + [axis]
    moved = axis != last

    if moved:
        x = transpose(b, x, aval, order)
        aval, values, indices = (a.update(shape=[a.shape[i] for i in order])
                                 for a in (aval, values, indices))
    single = b.module.platform == "cpu" and dtypes.itemsize_bits(aval.dtype) <= 32
    if single:  # XLA's CPU kernel takes float32 only; anything else is sorted whole
        x = _to_float32(b, x, aval)
    kind = np.float32 if single else aval.dtype
    names = b.multi(
        f"chlo.top_k({x}, k = {k}) : {tensor_type(aval.update(dtype=kind))} -> "
        f"({tensor_type(values.update(dtype=kind))}, {tensor_type(indices)})", 2)
    if single:
        names = [_from_float32(b, names[0], values), names[1]]
    if moved:
        back = [order.index(i) for i in range(aval.ndim)]
        names = [transpose(b, names[0], values, back), transpose(b, names[1], indices, back)]
    return names


def _to_float32(b: Block, x: str, aval: ShapedArray) -> str:
    """Values of up to 32 bits as floats in the same total order.

    A 32-bit integer becomes the float whose bits have its place in the total order. The barrier
    keeps XLA from comparing what narrow floats were before they were rounded.
    """
    out = aval.update(dtype=np.float32)
    if dtypes.issubdtype(aval.dtype, np.floating) and dtypes.itemsize_bits(aval.dtype) < 32:
        x = b.line(f"stablehlo.optimization_barrier {x} : {tensor_type(aval)}")
    if aval.dtype not in (np.int32, np.uint32):
        return b.convert(x, aval, out)
    bits = aval.update(dtype=np.int32)
    if aval.dtype == np.uint32:
        x = b.binary("stablehlo.xor", x, b.constant(2 ** 31, aval), aval)
        x = b.line(f"stablehlo.bitcast_convert {x} : ({tensor_type(aval)}) -> {tensor_type(bits)}")
    x = _flip_negative(b, x, bits)
    return b.line(f"stablehlo.bitcast_convert {x} : ({tensor_type(bits)}) -> {tensor_type(out)}")


def _from_float32(b: Block, x: str, aval: ShapedArray) -> str:
    """The inverse of `_to_float32`."""
    wide = aval.update(dtype=np.float32)
    if aval.dtype not in (np.int32, np.uint32):
        return b.convert(x, wide, aval)
    bits = aval.update(dtype=np.int32)
    x = b.line(f"stablehlo.bitcast_convert {x} : ({tensor_type(wide)}) -> {tensor_type(bits)}")
    x = _flip_negative(b, x, bits)
    if aval.dtype == np.uint32:
        x = b.line(f"stablehlo.bitcast_convert {x} : ({tensor_type(bits)}) -> {tensor_type(aval)}")
        x = b.binary("stablehlo.xor", x, b.constant(2 ** 31, aval), aval)
    return x
