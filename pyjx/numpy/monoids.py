"""What the universal functions of pairs reduce, accumulate and scatter with: operations of arrays
that combine all elements at once, where the function is associative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, AxisLike, DTypeLike
from pyjx.core.avals import get_aval
from pyjx.numpy import reductions, ufuncs
from pyjx.numpy.creation import asarray
from pyjx.numpy.operands import (
    as_bool,
    canonical_axes,
    canonical_axis,
    dtype_of,
    is_integer,
    numpy_function,
)
from pyjx.numpy.promotion import convert, promote_dtypes
from pyjx.numpy.universal import BinaryUfunc


def cast(a: ArrayLike, dtype: DTypeLike) -> Any:
    return a if dtype is None else asarray(a, dtype)


# -- scattering ------------------------------------------------------------------------------------

# Sums and products of booleans, which are numbers 0 and 1, are the greatest and the least of them.
_OF_BOOLS = {"add": "max", "multiply": "min"}


def _scattered(method: str) -> Callable[..., Any]:
    def at(a: Array, indices: object, b: ArrayLike) -> Any:
        if dtype_of(a) == dtypes.bool_dtype and method in _OF_BOOLS:
            b = convert(asarray(b), dtypes.bool_dtype)
            return getattr(a.at[indices], _OF_BOOLS[method])(b)
        return getattr(a.at[indices], method)(b)

    return at


def _widened(method: str) -> Callable[..., Any]:
    """Like `_scattered`, in the dtype of both."""
    def at(a: Array, indices: object, b: ArrayLike) -> Any:
        a, b = [convert(x, dtype_of(x)) for x in promote_dtypes(a, asarray(b))]
        return getattr(a.at[indices], method)(b)

    return at


# -- reductions ------------------------------------------------------------------------------------


def _extremum(reduce: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, *, dtype, **options: reduce(cast(a, dtype), **options)


def _logical(reduce: Callable[..., Any], function: BinaryUfunc) -> Callable[..., Any]:
    def reduced(a: ArrayLike, *, dtype: DTypeLike, initial: ArrayLike | None, **options: Any
                ) -> Any:
        out = reduce(a, **options)
        if initial is not None:
            out = function(out, as_bool(asarray(initial)))
        return cast(out, dtype)

    return reduced


@numpy_function(static_argnames=("function", "reduce", "unit", "axis", "dtype", "keepdims"))
def _bits(function: BinaryUfunc, reduce: Callable[..., Any], unit: int, a: ArrayLike,
          axis: AxisLike, dtype: DTypeLike, keepdims: bool, initial: ArrayLike | None,
          where: ArrayLike | None) -> Any:
    x = cast(a, dtype)
    if not (is_integer(x) or dtype_of(x) == dtypes.bool_dtype):
        raise ValueError(f"{function.__name__}.reduce: integer argument required; got "
                         f"dtype={dtype_of(x)}")
    shape = get_aval(x).shape
    axes = canonical_axes(axis, len(shape))
    if where is not None:
        x = ufuncs.where(where, x, np.asarray(unit).astype(dtype_of(x)))
    out = reduce(x, axes)
    if initial is not None:
        out = function(convert(asarray(initial), dtype_of(x)), out)
    return lax.reshape(out, [1 if i in axes else n for i, n in enumerate(shape)]) \
        if keepdims else out


def _bitwise(function: BinaryUfunc, reduce: Callable[..., Any], unit: int) -> Callable[..., Any]:
    return lambda a, **options: _bits(function, reduce, unit, a, **options)


def _odd(a: ArrayLike, **options: Any) -> Any:
    return _bits(ufuncs.logical_xor, lax.reduce_xor, 0, as_bool(asarray(a)), **options)


# -- accumulation ----------------------------------------------------------------------------------


def prefixes(scan: Callable[..., Any]) -> Callable[..., Any]:
    """`accumulate` by a cumulative operation of one axis."""
    def accumulate(a: ArrayLike, *, axis: AxisLike, dtype: DTypeLike) -> Any:
        if axis is None or isinstance(axis, (tuple, list)):
            raise ValueError("accumulate does not allow multiple axes")
        a = asarray(a, dtype)
        out = scan(a, canonical_axis(axis, get_aval(a).ndim))
        return convert(out, dtype_of(out))

    return accumulate


def _on_bools_too(scan: Callable[..., Any]) -> Callable[..., Any]:
    def whole(a: ArrayLike, axis: int) -> Any:
        if dtype_of(a) != dtypes.bool_dtype:
            return scan(a, axis)
        return convert(scan(convert(a, np.dtype(np.int8)), axis), dtypes.bool_dtype)

    return whole


# -- who has which ---------------------------------------------------------------------------------

ufuncs.add.define(identity=0, reduce=reductions.sum, accumulate=reductions.cumsum,
                  at=_scattered("add"))
ufuncs.multiply.define(identity=1, reduce=reductions.prod, accumulate=reductions.cumprod,
                       at=_scattered("multiply"))
ufuncs.subtract.define(at=_scattered("subtract"))
ufuncs.maximum.define(reduce=_extremum(reductions.max), at=_widened("max"),
                      accumulate=prefixes(_on_bools_too(lambda a, axis: lax.cummax(a, axis))))
ufuncs.minimum.define(reduce=_extremum(reductions.min), at=_widened("min"),
                      accumulate=prefixes(_on_bools_too(lambda a, axis: lax.cummin(a, axis))))
ufuncs.logical_and.define(identity=True, reduce=_logical(reductions.all, ufuncs.logical_and))
ufuncs.logical_or.define(identity=False, reduce=_logical(reductions.any, ufuncs.logical_or))
ufuncs.logical_xor.define(identity=False, reduce=_odd)
ufuncs.bitwise_and.define(identity=-1, reduce=_bitwise(
    ufuncs.bitwise_and, lambda x, axes: lax.reduce_and(x, axes), -1))
ufuncs.bitwise_or.define(identity=0, reduce=_bitwise(
    ufuncs.bitwise_or, lambda x, axes: lax.reduce_or(x, axes), 0))
ufuncs.bitwise_xor.define(identity=0, reduce=_bitwise(
    ufuncs.bitwise_xor, lambda x, axes: lax.reduce_xor(x, axes), 0))
