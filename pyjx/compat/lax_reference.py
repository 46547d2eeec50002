"""`jax._src.lax_reference`: the operations of `lax` in NumPy and SciPy, to test others against.

An operation that NumPy has is NumPy's. Others keep dtypes as `lax` does; those with few bits are
computed in float32. Starts of slices that are not inside the array are moved inside.
"""

from __future__ import annotations

import builtins
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.special

from pyjx.core.dtypes import issubdtype, itemsize_bits

__all__ = [
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bessel_i0e",
    "bessel_i1e", "betainc", "bitcast_convert_type", "bitwise_and", "bitwise_not", "bitwise_or",
    "bitwise_xor", "broadcast", "broadcast_in_dim", "cbrt", "ceil", "clamp", "clz", "complex",
    "concatenate", "conj", "conv", "conv_general_dilated", "conv_with_general_padding",
    "convert_element_type", "cos", "cosh", "digamma", "div", "dot", "dot_general",
    "dynamic_slice", "dynamic_update_slice", "eq", "erf", "erf_inv", "erfc", "exp", "exp2",
    "expm1", "floor", "ge", "gt", "igamma", "igammac", "imag", "is_finite", "le", "lgamma", "log",
    "log1p", "log2", "logistic", "lt", "max", "min", "mul", "mulhi", "ne", "neg", "nextafter",
    "pad", "padtype_to_pads", "population_count", "pow", "ragged_dot", "real", "reciprocal",
    "reduce", "reduce_window", "rem", "reshape", "rev", "round", "rsqrt", "select", "shift_left",
    "shift_right_arithmetic", "sign", "sin", "sinh", "slice", "sort", "sort_key_val", "sqrt",
    "square", "squeeze", "sub", "sum", "tan", "tanh", "top_k", "transpose",
]

Array = np.ndarray[Any, Any]
Pads = Sequence[tuple[int, int]]

# -- elements --------------------------------------------------------------------------------------

abs, neg, sign = np.abs, np.negative, np.sign
floor, ceil, is_finite, nextafter = np.floor, np.ceil, np.isfinite, np.nextafter
exp, exp2, expm1, log, log2, log1p = np.exp, np.exp2, np.expm1, np.log, np.log2, np.log1p
sin, cos, tan, asin, acos, atan = np.sin, np.cos, np.tan, np.arcsin, np.arccos, np.arctan
sinh, cosh, tanh = np.sinh, np.cosh, np.tanh
asinh, acosh, atanh, atan2 = np.arcsinh, np.arccosh, np.arctanh, np.arctan2
sqrt, cbrt, square, reciprocal = np.sqrt, np.cbrt, np.square, np.reciprocal
real, imag = np.real, np.imag
add, sub, pow, max, min = np.add, np.subtract, np.power, np.maximum, np.minimum
eq, ne, ge, gt, le, lt = (
    np.equal, np.not_equal, np.greater_equal, np.greater, np.less_equal, np.less)
bitwise_not, bitwise_and, bitwise_or, bitwise_xor = (
    np.bitwise_not, np.bitwise_and, np.bitwise_or, np.bitwise_xor)
shift_left, shift_right_arithmetic = np.left_shift, np.right_shift


def _wide(x: Any) -> Array:
    """Numbers as NumPy computes with them: real ones of less than 32 bits in float32."""
    array = np.asarray(x)
    narrow = array.dtype.kind in "fV" and array.dtype.itemsize < 4
    return array.astype(np.float32) if narrow else array


def _as_given(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function with the results in the dtype of the first argument."""
    @functools.wraps(f, assigned=["__doc__"])
    def of(*args: Any) -> Any:
        return f(*map(_wide, args)).astype(np.asarray(args[0]).dtype)

    return of


erf, erfc, erf_inv = map(_as_given, (scipy.special.erf, scipy.special.erfc, scipy.special.erfinv))
lgamma, digamma = map(_as_given, (scipy.special.gammaln, scipy.special.digamma))
igamma, igammac = map(_as_given, (scipy.special.gammainc, scipy.special.gammaincc))
betainc = _as_given(scipy.special.betainc)
bessel_i0e, bessel_i1e = map(_as_given, (scipy.special.i0e, scipy.special.i1e))
logistic = _as_given(lambda x: 1 / (1 + np.exp(-x)))
rsqrt = _as_given(lambda x: 1 / np.sqrt(x))


@_as_given
def round(x: Any) -> Any:
    """The nearest integers; of two that are as near, the one that is further from zero."""
    rest, whole = np.modf(x)
    return whole + np.where(np.abs(rest) >= 0.5, np.sign(x), 0)


def div(lhs: Any, rhs: Any) -> Any:
    """The quotient, of integers rounded towards zero."""
    if not issubdtype(np.asarray(lhs).dtype, np.integer):
        return np.divide(lhs, rhs)
    down, rest = np.divmod(lhs, rhs)
    return down + ((rest != 0) & ((rest < 0) != (lhs < 0))).astype(down.dtype)


def rem(lhs: Any, rhs: Any) -> Any:
    """What the quotient of `div` leaves: its sign is that of `lhs`."""
    return np.fmod(lhs, rhs)


def mul(x: Any, y: Any, /, *, out_dtype: Any = None) -> Any:
    """The product, computed in `out_dtype` if there is one."""
    if out_dtype is None:
        return np.multiply(x, y)
    return np.multiply(np.asarray(x).astype(out_dtype), np.asarray(y).astype(out_dtype))


def mulhi(x: Any, y: Any) -> Any:
    """The upper half of the bits of the product of integers.

    >>> int(mulhi(np.int8(100), np.int8(-100)))  # 0xd8f0
    -40
    """
    dtype = np.asarray(x).dtype
    product = np.multiply(*[np.asarray(of).astype(object) for of in (x, y)])
    return np.asarray(product >> itemsize_bits(dtype)).astype(dtype)


def complex(x: Any, y: Any) -> Any:
    """The complex number of two parts."""
    x, y = np.broadcast_arrays(x, y)
    z = np.empty(x.shape, np.result_type(x.dtype, np.complex64))
    z.real, z.imag = x, y
    return z


def conj(x: Any) -> Any:
    """The complex conjugate, which is complex for real numbers too."""
    return np.conj(x).astype(np.result_type(x, np.complex64))


def clamp(min: Any, operand: Any, max: Any) -> Any:
    """The numbers, those outside of the bounds moved there."""
    dtype = np.asarray(operand).dtype
    return np.minimum(np.maximum(operand, min), max).astype(dtype)


select = np.where


def _bits(x: Any) -> list[Array]:
    """The bits of integers, from the lowest, as arrays of 0 and 1."""
    dtype = np.asarray(x).dtype
    return [(x >> dtype.type(k)) & dtype.type(1) for k in range(itemsize_bits(dtype))]


def population_count(x: Any) -> Any:
    """How many bits of integers are set.

    >>> population_count(np.array([-1, 5], np.int8)).tolist()
    [8, 2]
    """
    return functools.reduce(np.add, _bits(x))


def clz(x: Any) -> Any:
    """How many bits of integers are zero above the highest one.

    >>> clz(np.array([0, 5], np.int8)).tolist()
    [8, 5]
    """
    dtype = np.asarray(x).dtype
    found = np.zeros(np.shape(x), dtype)
    for bit in _bits(x):
        found = np.where(bit, dtype.type(0), found + dtype.type(1))
    return found


# -- dtypes and shapes -----------------------------------------------------------------------------


def convert_element_type(operand: Any, dtype: Any) -> Any:
    """The array in another dtype."""
    return np.asarray(operand).astype(dtype)


def bitcast_convert_type(operand: Any, dtype: Any) -> Any:
    """The bits of the array in another dtype. One of fewer bits adds an axis, with the lowest bits
    first; one of more takes the last axis.

    >>> bitcast_convert_type(np.array([0x21, 0x43], np.uint8), np.uint16).tolist()
    17185
    """
    operand, dtype = np.asarray(operand), np.dtype(dtype)
    old, new = itemsize_bits(operand.dtype), itemsize_bits(dtype)
    if old < 8 <= new:
        parts = operand.astype(np.int8).view(np.uint8) & (2 ** old - 1)
        whole = np.bitwise_or.reduce(parts << np.arange(0, 8, old, dtype=np.uint8), axis=-1)
        return whole.view(dtype)
    if new < 8 <= old:
        parts = operand[..., None].view(np.uint8) >> np.arange(0, 8, new, dtype=np.uint8)
        return (parts & (2 ** new - 1)).astype(f"uint{new}").view(dtype)
    if old == new:
        return operand.view(dtype)
    if old > new:
        return operand[..., None].view(dtype)
    return np.ascontiguousarray(operand).view(dtype)[..., 0]


def broadcast(operand: Any, sizes: Sequence[int]) -> Any:
    """The array repeated along new axes in front."""
    return np.broadcast_to(operand, (*sizes, *np.shape(operand)))


def broadcast_in_dim(operand: Any, shape: Sequence[int], broadcast_dimensions: Sequence[int]
                     ) -> Any:
    """The array repeated to a shape in which its axes are those that are named."""
    sizes = [1] * len(shape)
    for axis, size in zip(broadcast_dimensions, np.shape(operand), strict=True):
        sizes[axis] = size
    return np.broadcast_to(np.reshape(operand, sizes), shape)


def reshape(operand: Any, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None
            ) -> Any:
    """The elements in another shape, the axes ordered as `dimensions` before."""
    ordered = operand if dimensions is None else np.transpose(operand, dimensions)
    return np.reshape(ordered, new_sizes)


transpose, squeeze = np.transpose, np.squeeze


def rev(operand: Any, dimensions: Sequence[int]) -> Any:
    """The array the other way round along some axes."""
    return np.flip(operand, tuple(dimensions))


def concatenate(operands: Sequence[Any], dimension: int) -> Any:
    """Arrays one after the other."""
    return np.concatenate(operands, axis=dimension)


def slice(operand: Any, start_indices: Sequence[int], limit_indices: Sequence[int],
          strides: Sequence[int] | None = None) -> Any:
    """A part of the array."""
    steps = (1,) * np.ndim(operand) if strides is None else strides
    return operand[tuple(map(builtins.slice, start_indices, limit_indices, steps))]


def _part(shape: tuple[int, ...], starts: Sequence[Any], sizes: Sequence[int]) -> Any:
    """The index of a part, moved inside of the array; starts below zero count from its end."""
    firsts = [builtins.min(builtins.max(int(at) + n * (int(at) < 0), 0), n - size)
              for at, n, size in zip(starts, shape, sizes, strict=True)]
    return tuple([builtins.slice(at, at + size) for at, size in zip(firsts, sizes, strict=True)])


def dynamic_slice(operand: Any, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> Any:
    """The part of given sizes."""
    return operand[_part(operand.shape, start_indices, slice_sizes)]


def dynamic_update_slice(operand: Any, update: Any, start_indices: Sequence[Any]) -> Any:
    """The array with another part."""
    result = np.array(operand)
    result[_part(result.shape, start_indices, np.shape(update))] = update
    return result


def pad(operand: Any, padding_value: Any, padding_config: Sequence[tuple[int, int, int]]) -> Any:
    """The array with a value around it and between its elements; less than none takes away.

    >>> pad(np.array([1, 2, 3]), 0, [(-1, 1, 1)]).tolist()
    [0, 2, 0, 3, 0]
    """
    operand = np.asarray(operand)
    between = [n + builtins.max(n - 1, 0) * within
               for n, (_, _, within) in zip(operand.shape, padding_config, strict=True)]
    sizes = [n + builtins.max(low, 0) + builtins.max(high, 0)
             for n, (low, high, _) in zip(between, padding_config, strict=True)]
    result = np.full(sizes, padding_value, operand.dtype)
    result[tuple([builtins.slice(builtins.max(low, 0), builtins.max(low, 0) + n, within + 1)
                  for n, (low, _, within) in zip(between, padding_config, strict=True)])] = operand
    return result[tuple([builtins.slice(builtins.max(-low, 0), size - builtins.max(-high, 0))
                         for size, (low, high, _) in zip(sizes, padding_config, strict=True)])]


# -- sorting ---------------------------------------------------------------------------------------

sort = np.sort


def sort_key_val(keys: Any, values: Any, dimension: int = -1) -> tuple[Any, Any]:
    """Keys in ascending order, and values in theirs."""
    order = np.argsort(keys, axis=dimension, kind="stable")
    return (np.take_along_axis(keys, order, dimension),
            np.take_along_axis(values, order, dimension))


def top_k(operand: Any, k: int, axis: int = -1, *, is_stable: bool = True) -> tuple[Any, Any]:
    """The greatest elements along an axis, and where they are; nan is greater than any."""
    backward = np.argsort(np.flip(operand, axis), axis=axis, kind="stable")  # equal ones too
    order = np.take(operand.shape[axis] - 1 - np.flip(backward, axis), range(k), axis)
    return np.take_along_axis(operand, order, axis), order.astype(np.int32)


# -- reductions ------------------------------------------------------------------------------------

sum = np.sum
Computation = Callable[[Any, Any], Any]


def reduce(operand: Any, init_value: Any, computation: Computation, dimensions: Sequence[int]
           ) -> Any:
    """The elements along some axes folded with a function of two arrays.

    >>> reduce(np.array([[1, 2], [3, 4]], np.int8), 0, add, (1,)).tolist()
    [3, 7]
    """
    operand = np.asarray(operand)
    axes = tuple(range(len(dimensions)))
    rows = np.moveaxis(operand, tuple(dimensions), axes)
    rest = rows.shape[len(axes):]
    start = np.full(rest, init_value, operand.dtype)
    rows = rows.reshape(math.prod(rows.shape[:len(axes)]), *rest)
    if isinstance(computation, np.ufunc):
        return computation.reduce(np.concatenate([start[None], rows]), axis=0,
                                  dtype=operand.dtype)
    return np.asarray(functools.reduce(computation, rows, start), operand.dtype)


def padtype_to_pads(in_shape: Sequence[int], filter_shape: Sequence[int],
                    window_strides: Sequence[int], padding: str) -> list[tuple[int, int]]:
    """How much is added before and after each axis, from "VALID", "SAME" or "SAME_LOWER".

    >>> padtype_to_pads((5, 6), (2, 3), (2, 2), "SAME")
    [(0, 1), (0, 1)]
    """
    kind = padding.upper()
    if kind == "VALID":
        return [(0, 0)] * len(in_shape)
    if kind not in ("SAME", "SAME_LOWER"):
        raise ValueError(f"padding must be VALID, SAME or SAME_LOWER, got {padding!r}")
    missing = [builtins.max((-(-n // step) - 1) * step + size - n, 0)
               for n, size, step in zip(in_shape, filter_shape, window_strides, strict=True)]
    before = [(n + (kind == "SAME_LOWER")) // 2 for n in missing]
    return [(low, n - low) for low, n in zip(before, missing, strict=True)]


def _padded(operand: Any, value: Any, padding: str | Pads, sizes: Sequence[int],
            strides: Sequence[int], dilation: Sequence[int] | None) -> Array:
    """The array, its elements apart, with what windows of the sizes need around it."""
    apart = dilation or (1,) * operand.ndim
    operand = pad(operand, value, [(0, 0, n - 1) for n in apart])
    if isinstance(padding, str):
        padding = padtype_to_pads(operand.shape, sizes, strides, padding)
    return pad(operand, value, [(low, high, 0) for low, high in padding])


def _windows(operand: Array, sizes: Sequence[int], strides: Sequence[int]) -> Array:
    """The windows of an array: the axes are those of the places, and those within."""
    if any(n < size for n, size in zip(operand.shape, sizes, strict=True)):
        counts = [builtins.max(n - size + step, 0) // step
                  for n, size, step in zip(operand.shape, sizes, strides, strict=True)]
        return np.empty((*counts, *sizes), operand.dtype)
    views = np.lib.stride_tricks.sliding_window_view(operand, tuple(sizes))
    return views[tuple([builtins.slice(None, None, step) for step in strides])]


def reduce_window(operand: Any, init_value: Any, computation: Computation,
                  window_dimensions: Sequence[int], window_strides: Sequence[int],
                  padding: str | Pads, base_dilation: Sequence[int] | None) -> Any:
    """The elements of each window folded, where padding is of the value that folds begin with.

    >>> reduce_window(np.arange(4), 0, add, (2,), (1,), "VALID", None).tolist()
    [1, 3, 5]
    """
    operand = np.asarray(operand)
    padded = _padded(operand, init_value, padding, window_dimensions, window_strides,
                     base_dilation)
    windows = _windows(padded, window_dimensions, window_strides)
    return reduce(windows, init_value, computation, range(operand.ndim, 2 * operand.ndim))


# -- products --------------------------------------------------------------------------------------

dot = np.dot


def dot_general(lhs: Any, rhs: Any, dimension_numbers: Any) -> Any:
    """Products of arrays summed along pairs of axes, for each index of other pairs.

    >>> x = np.arange(6).reshape(2, 3)
    >>> dot_general(x, x, (((1,), (1,)), ((0,), (0,)))).tolist()
    [5, 50]
    """
    (lhs_summed, rhs_summed), (lhs_batch, rhs_batch) = dimension_numbers
    dtype = np.result_type(lhs, rhs)
    left, right = np.arange(np.ndim(lhs)), np.ndim(lhs) + np.arange(np.ndim(rhs))
    right[[*rhs_batch, *rhs_summed]] = left[[*lhs_batch, *lhs_summed]]
    kept = [*left[list(lhs_batch)], *np.delete(left, [*lhs_batch, *lhs_summed]),
            *np.delete(right, [*rhs_batch, *rhs_summed])]
    summed = np.einsum(_wide(lhs), left.tolist(), _wide(rhs), right.tolist(),
                       [int(axis) for axis in kept])
    return np.asarray(summed).astype(dtype)


def ragged_dot(lhs: Any, rhs: Any, group_sizes: Any) -> Any:
    """Rows times the matrix of the group that they are in; zero for rows that are in none."""
    result = np.zeros((lhs.shape[0], rhs.shape[2]), np.result_type(lhs, rhs))
    ends = np.cumsum(group_sizes)
    for first, end, matrix in zip(ends - group_sizes, ends, rhs, strict=True):
        result[first:end] = _wide(lhs[first:end]) @ _wide(matrix)
    return result


def conv(lhs: Any, rhs: Any, window_strides: Sequence[int], padding: str | Pads) -> Any:
    """Convolution of images of axes NC... with filters of axes OI..."""
    return conv_with_general_padding(lhs, rhs, window_strides, padding, None, None)


def conv_with_general_padding(lhs: Any, rhs: Any, window_strides: Sequence[int],
                              padding: str | Pads, lhs_dilation: Sequence[int] | None,
                              rhs_dilation: Sequence[int] | None) -> Any:
    """As `conv`, of images and filters whose elements are apart."""
    sums = np.result_type(lhs, rhs)
    rhs = pad(rhs, 0, [(0, 0, 0)] * 2 + [(0, 0, n - 1)
                                         for n in rhs_dilation or (1,) * (rhs.ndim - 2)])
    sizes = rhs.shape[2:]
    pads = padding if isinstance(padding, str) else [(0, 0), (0, 0), *padding]
    lhs = _padded(lhs, 0, pads, (1, 1, *sizes), (1, 1, *window_strides),
                  lhs_dilation and (1, 1, *lhs_dilation))
    places = _windows(lhs, (1, 1, *sizes), (1, 1, *window_strides))
    rank = len(sizes)
    within = range(rank + 4, 2 * rank + 4)
    summed = np.tensordot(_wide(places), _wide(rhs), ([1, *within], [1, *range(2, rank + 2)]))
    return np.moveaxis(summed, -1, 1).reshape(
        lhs.shape[0], rhs.shape[0], *places.shape[2:rank + 2]).astype(sums)


def conv_general_dilated(lhs: Any, rhs: Any, window_strides: Sequence[int], padding: str | Pads,
                         lhs_dilation: Sequence[int] | None, rhs_dilation: Sequence[int] | None,
                         dimension_numbers: tuple[str, str, str] | None) -> Any:
    """As `conv_with_general_padding`, with the axes named: ("NHWC", "HWIO", "NHWC")."""
    if dimension_numbers is None:
        return conv_with_general_padding(lhs, rhs, window_strides, padding, lhs_dilation,
                                         rhs_dilation)
    images, filters, results = dimension_numbers
    space = [c for c in filters if c not in "OI"]
    summed = conv_with_general_padding(
        np.transpose(lhs, [images.index(c) for c in ["N", "C", *space]]),
        np.transpose(rhs, [filters.index(c) for c in ["O", "I", *space]]),
        window_strides, padding, lhs_dilation, rhs_dilation)
    return np.transpose(summed, [["N", "C", *space].index(c) for c in results])
