"""What the universal functions of pairs reduce, accumulate and scatter with.

Each table gives the options of `ufunc`: the identity, and operations of arrays that combine all
elements at once where the function is associative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, DTypeLike
from pyjx.core.avals import get_aval
from pyjx.numpy.axes import canonical_axes, canonical_axis
from pyjx.numpy.dispatch import numpy_function
from pyjx.numpy.operands import as_bool, dtype_of, is_inexact, is_integer
from pyjx.numpy.promotion import convert, promote_dtypes, promote_dtypes_inexact

Parts = dict[str, Any]


def _cast(a: ArrayLike, dtype: DTypeLike) -> Any:
    return a if dtype is None else jnp.asarray(a, dtype)


# Sums and products of booleans, which are numbers 0 and 1, are the greatest and the least of them.
_OF_BOOLS = {"add": "max", "multiply": "min"}


def _scattered(method: str) -> Callable[..., Any]:
    def at(a: Any, indices: Any, b: Any) -> Any:
        if dtype_of(a) == dtypes.bool_dtype and method in _OF_BOOLS:
            b = convert(jnp.asarray(b), dtypes.bool_dtype)
            return getattr(a.at[indices], _OF_BOOLS[method])(b)
        return getattr(a.at[indices], method)(b)

    return at


def _widened(method: str) -> Callable[..., Any]:
    """Like `_scattered`, in the dtype of both."""
    def at(a: Any, indices: Any, b: Any) -> Any:
        a, b = [convert(x, dtype_of(x)) for x in promote_dtypes(a, jnp.asarray(b))]
        return getattr(a.at[indices], method)(b)

    return at


def _sum(a: Array, *, axis: Any, dtype: np.dtype[Any], keepdims: bool, initial: Any, where: Any
        ) -> Any:
    return jnp.sum(a, axis, dtype, None, keepdims, initial, where)


def _prod(a: ArrayLike, *, axis: int | Sequence[int] | None, dtype: DTypeLike, keepdims: bool,
          initial: ArrayLike | None, where: ArrayLike | None) -> Any:
    return jnp.prod(a, axis, dtype, None, keepdims, initial, where)


def _max(a: ArrayLike, *, axis: int | Sequence[int] | None, dtype: DTypeLike, keepdims: bool,
         initial: ArrayLike | None, where: ArrayLike | None) -> Any:
    return jnp.max(_cast(a, dtype), axis, None, keepdims, initial, where)


def _min(a: ArrayLike, *, axis: int | Sequence[int] | None, dtype: DTypeLike, keepdims: bool,
         initial: ArrayLike | None, where: ArrayLike | None) -> Any:
    return jnp.min(_cast(a, dtype), axis, None, keepdims, initial, where)


def _all(a: ArrayLike, *, axis: int | Sequence[int] | None, dtype: DTypeLike, keepdims: bool,
         initial: ArrayLike | None, where: ArrayLike | None) -> Any:
    out = jnp.all(a, axis, None, keepdims, where=where)
    if initial is not None:
        out = jnp.logical_and(out, as_bool(jnp.asarray(initial)))
    return _cast(out, dtype)


def _any(a: ArrayLike, *, axis: int | Sequence[int] | None, dtype: DTypeLike, keepdims: bool,
         initial: ArrayLike | None, where: ArrayLike | None) -> Any:
    out = jnp.any(a, axis, None, keepdims, where=where)
    if initial is not None:
        out = jnp.logical_or(out, as_bool(jnp.asarray(initial)))
    return _cast(out, dtype)


def _odd(a: ArrayLike, *, axis: int | Sequence[int] | None, dtype: DTypeLike, keepdims: bool,
         initial: ArrayLike | None, where: ArrayLike | None) -> Any:
    return _bits("logical_xor", as_bool(jnp.asarray(a)), axis, dtype, keepdims, initial, where)


_BITS: dict[str, tuple[Callable[..., Any], int]] = {
    "bitwise_and": (lambda x, axes: lax.reduce_and(x, axes), -1),
    "bitwise_or": (lambda x, axes: lax.reduce_or(x, axes), 0),
    "bitwise_xor": (lambda x, axes: lax.reduce_xor(x, axes), 0),
    "logical_xor": (lambda x, axes: lax.reduce_xor(x, axes), 0),
}


@numpy_function(static_argnames=("name", "axis", "dtype", "keepdims"))
def _bits(name: str, a: ArrayLike, axis: int | Sequence[int] | None, dtype: DTypeLike,
          keepdims: bool, initial: ArrayLike | None, where: ArrayLike | None) -> Any:
    x = _cast(a, dtype)
    if not (is_integer(x) or dtype_of(x) == dtypes.bool_dtype):
        raise ValueError(f"{name}.reduce: integer argument required; got dtype={dtype_of(x)}")
    shape = get_aval(x).shape
    axes = canonical_axes(axis, len(shape))
    reduce, unit = _BITS[name]
    if where is not None:
        x = jnp.where(where, x, np.asarray(unit).astype(dtype_of(x)))
    out = reduce(x, axes)
    if initial is not None:
        out = getattr(jnp, name)(convert(jnp.asarray(initial), dtype_of(x)), out)
    return jnp.reshape(out, [1 if i in axes else n for i, n in enumerate(shape)]) \
        if keepdims else out


def _bitwise(name: str) -> Callable[..., Any]:
    def reduce(a: ArrayLike, *, axis: int | Sequence[int] | None, dtype: DTypeLike, keepdims: bool,
               initial: ArrayLike | None, where: ArrayLike | None) -> Any:
        return _bits(name, a, axis, dtype, keepdims, initial, where)

    return reduce


# -- logarithms of sums ----------------------------------------------------------------------------


@numpy_function(static_argnames=("name", "axis", "dtype", "keepdims"))
def _log_sum(name: str, a: ArrayLike, axis: int | Sequence[int] | None, dtype: DTypeLike,
             keepdims: bool, initial: ArrayLike | None, where: ArrayLike | None) -> Any:
    """log sum exp(a) to the base of the function `name`, as m + log sum exp(a - m)."""
    x = _cast(a, dtype)
    if name == "logaddexp":
        exp, log = jnp.exp, jnp.log
        (x,) = promote_dtypes_inexact(x)
    else:
        exp, log = jnp.exp2, jnp.log2
        x = x if is_inexact(x) else convert(x, dtypes.default_float_dtype())
    if where is not None:
        x = jnp.where(where, x, -np.inf)
    top = jnp.max(jnp.real(x), axis, keepdims=True, initial=-np.inf)
    top = convert(lax.stop_gradient(jnp.where(jnp.isfinite(top), top, 0)), dtype_of(x))
    total = jnp.sum(exp(x - top), axis, keepdims=True)
    out = log(total) + top
    if not keepdims:
        out = jnp.squeeze(out, canonical_axes(axis, get_aval(x).ndim))
    return out if initial is None else getattr(jnp, name)(initial, out)


def _log_sums(name: str) -> Callable[..., Any]:
    def reduce(a: ArrayLike, *, axis: int | Sequence[int] | None, dtype: DTypeLike, keepdims: bool,
               initial: ArrayLike | None, where: ArrayLike | None) -> Any:
        return _log_sum(name, a, axis, dtype, keepdims, initial, where)

    return reduce


# -- accumulation ----------------------------------------------------------------------------------


def _cumsum(a: Array, *, axis: Any, dtype: np.dtype[Any]) -> Any:
    return jnp.cumsum(a, axis, dtype)


def _cumprod(a: Array, *, axis: Any, dtype: np.dtype[Any]) -> Any:
    return jnp.cumprod(a, axis, dtype)


def _prefixes(scan: Callable[..., Any]) -> Callable[..., Any]:
    def accumulate(a: ArrayLike, *, axis: int | Sequence[int] | None, dtype: DTypeLike) -> Any:
        if axis is None or isinstance(axis, (tuple, list)):
            raise ValueError("accumulate does not allow multiple axes")
        a = jnp.asarray(a) if dtype is None else jnp.asarray(a, dtype)
        out = scan(a, canonical_axis(axis, get_aval(a).ndim))
        return convert(out, dtype_of(out))

    return accumulate


def _cummax(a: ArrayLike, axis: int) -> Any:
    return lax.cummax(a, axis)


def _cummin(a: ArrayLike, axis: int) -> Any:
    return lax.cummin(a, axis)


def _on_bools_too(scan: Callable[..., Any]) -> Callable[..., Any]:
    def prefixes(a: ArrayLike, axis: int) -> Any:
        if dtype_of(a) != dtypes.bool_dtype:
            return scan(a, axis)
        return convert(scan(convert(a, np.dtype(np.int8)), axis), dtypes.bool_dtype)

    return prefixes


def _cumlogsumexp(a: ArrayLike, axis: int) -> Any:
    return lax.cumlogsumexp(promote_dtypes_inexact(a)[0], axis)


# -- the tables ------------------------------------------------------------------------------------


ADD: Parts = {"identity": 0, "reduce": _sum, "accumulate": _cumsum, "at": _scattered("add")}
MULTIPLY: Parts = {"identity": 1, "reduce": _prod, "accumulate": _cumprod,
                   "at": _scattered("multiply")}
SUBTRACT: Parts = {"at": _scattered("subtract")}
MAXIMUM: Parts = {"reduce": _max, "accumulate": _prefixes(_on_bools_too(_cummax)),
                  "at": _widened("max")}
MINIMUM: Parts = {"reduce": _min, "accumulate": _prefixes(_on_bools_too(_cummin)),
                  "at": _widened("min")}
LOGICAL_AND: Parts = {"identity": True, "reduce": _all}
LOGICAL_OR: Parts = {"identity": False, "reduce": _any}
LOGICAL_XOR: Parts = {"identity": False, "reduce": _odd}
BITWISE_AND: Parts = {"identity": -1, "reduce": _bitwise("bitwise_and")}
BITWISE_OR: Parts = {"identity": 0, "reduce": _bitwise("bitwise_or")}
BITWISE_XOR: Parts = {"identity": 0, "reduce": _bitwise("bitwise_xor")}
LOGADDEXP: Parts = {"identity": -np.inf, "reduce": _log_sums("logaddexp"),
                    "accumulate": _prefixes(_cumlogsumexp)}
LOGADDEXP2: Parts = {"identity": -np.inf, "reduce": _log_sums("logaddexp2")}
