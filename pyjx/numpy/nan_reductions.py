"""Reductions that leave out nan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import get_aval
from pyjx.lax.nary import stretch
from pyjx.numpy import reductions, ufuncs
from pyjx.numpy.dispatch import numpy_function
from pyjx.numpy.promotion import convert, literal, numbers, strong
from pyjx.numpy.reductions import arg_extremum, masked, no_out
from pyjx.numpy.statistics import squared, user_dtype, variance_dtypes
from pyjx.runtime.operations import body_of

_sum = body_of(reductions.sum)
_all = body_of(reductions.all)


def has_nan(x: ArrayLike) -> bool:
    """Whether the dtype of `x` has a nan."""
    return dtypes.issubdtype(get_aval(x).dtype, np.inexact)


def present(x: ArrayLike) -> Any:
    """The mask of the elements that are not nan."""
    return lax.eq(x, x)


def _without_nan(x: ArrayLike, fill: ArrayLike) -> Any:
    return masked(present(x), strong(x), fill) if has_nan(x) else x


def _vector_without_nan(name: str, a: ArrayLike, fill: ArrayLike) -> Any:
    """What is accumulated: a scalar of weak type is an array of one number."""
    a = numbers(name, a)
    x, aval = _without_nan(a, fill), get_aval(a)
    return lax.expand_dims(x, (0,)) if aval.weak_type and not aval.ndim else x


@numpy_function(static_argnames=("axis", "dtype", "keepdims"))
def nansum(a: ArrayLike, axis: int | Sequence[int] | None = None, dtype: Any = None,
           out: None = None, keepdims: bool = False, initial: ArrayLike | None = None,
           where: ArrayLike | None = None) -> Array:
    """The sum of the elements that are not nan; arguments as for `sum`.

    >>> import pyjx as jax
    >>> float(jax.numpy.nansum(jax.numpy.array([1.0, float("nan")])))
    1.0
    """
    no_out("nansum", out)
    return _sum(_without_nan(numbers("nansum", a), 0), axis, user_dtype("nansum", dtype), None,
                keepdims, initial, where)


@numpy_function(static_argnames=("axis", "dtype", "keepdims"))
def nanprod(a: ArrayLike, axis: int | Sequence[int] | None = None, dtype: Any = None,
            out: None = None, keepdims: bool = False, initial: ArrayLike | None = None,
            where: ArrayLike | None = None) -> Array:
    """The product of the elements that are not nan; arguments as for `prod`.

    >>> import pyjx as jax
    >>> float(jax.numpy.nanprod(jax.numpy.array([3.0, float("nan")])))
    3.0
    """
    no_out("nanprod", out)
    return body_of(reductions.prod)(_without_nan(numbers("nanprod", a), 1), axis,
                                    user_dtype("nanprod", dtype), None, keepdims, initial, where)


def _nan_extremum(name: str, reduce: Callable[..., Any], unit: Callable[[Any], Any], a: ArrayLike,
                  axis: int | Sequence[int] | None, out: object, keepdims: bool,
                  initial: ArrayLike | None, where: ArrayLike | None) -> Any:
    no_out(name, out)
    a = numbers(name, a)
    if not has_nan(a):
        return reduce(a, axis, None, keepdims, initial, where)
    found = reduce(_without_nan(a, unit(get_aval(a).dtype)), axis, None, keepdims, initial, where)
    if initial is not None:
        return found
    empty = _all(lax.ne(a, a), axis, None, keepdims)
    return ufuncs.where(empty, literal(np.nan, get_aval(found).dtype), found)


@numpy_function(static_argnames=("axis", "keepdims"))
def nanmax(a: ArrayLike, axis: int | Sequence[int] | None = None, out: None = None,
           keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None
          ) -> Array:
    """The largest of the elements that are not nan; nan if all are. Arguments as for `max`.

    >>> import pyjx as jax
    >>> float(jax.numpy.nanmax(jax.numpy.array([1.0, float("nan")])))
    1.0
    """
    return _nan_extremum("nanmax", body_of(reductions.max), reductions.lowest, a, axis, out,
                         keepdims, initial, where)


@numpy_function(static_argnames=("axis", "keepdims"))
def nanmin(a: ArrayLike, axis: int | Sequence[int] | None = None, out: None = None,
           keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None
          ) -> Array:
    """The smallest of the elements that are not nan; nan if all are. Arguments as for `max`.

    >>> import pyjx as jax
    >>> float(jax.numpy.nanmin(jax.numpy.array([1.0, float("nan")])))
    1.0
    """
    return _nan_extremum("nanmin", body_of(reductions.min), reductions.highest, a, axis, out,
                         keepdims, initial, where)


def _nan_arg(name: str, find: Callable[..., Any], worst: float, a: ArrayLike,
             axis: int | Sequence[int] | None, out: object, keepdims: bool | None) -> Any:
    if out is not None:
        raise NotImplementedError(f"The 'out' argument to jnp.{name} is not supported.")
    a = numbers(name, a)
    if not has_nan(a):
        return arg_extremum(name[3:], find, a, axis, out, keepdims)
    place = arg_extremum(name[3:], find, _without_nan(a, worst), axis, out, keepdims)
    empty = _all(lax.ne(a, a), axis, None, bool(keepdims))
    return ufuncs.where(empty, -1, place)


@numpy_function(static_argnames=("axis", "keepdims"))
def nanargmax(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
              ) -> Array:
    """The position of the largest element that is not nan; -1 if all are. As `argmax` otherwise.

    Returns:
      An array of integers without the axis, or with size 1 there if `keepdims`; the first place
      where there are several.

    >>> import pyjx as jax
    >>> int(jax.numpy.nanargmax(jax.numpy.array([1.0, float("nan"), 3.0])))
    2
    """
    return _nan_arg("nanargmax", lax.argmax, -np.inf, a, axis, out, keepdims)


@numpy_function(static_argnames=("axis", "keepdims"))
def nanargmin(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
              ) -> Array:
    """The position of the smallest element that is not nan; -1 if all are. As `argmin` otherwise.

    Returns:
      An array of integers without the axis, or with size 1 there if `keepdims`; the first place
      where there are several.

    >>> import pyjx as jax
    >>> int(jax.numpy.nanargmin(jax.numpy.array([float("nan"), 3.0])))
    1
    """
    return _nan_arg("nanargmin", lax.argmin, np.inf, a, axis, out, keepdims)


@numpy_function(static_argnames=("axis", "dtype"))
def nancumsum(a: ArrayLike, axis: int | None = None, dtype: Any = None, out: None = None) -> Array:
    """The running sum, nan taken as 0; arguments as for `cumsum`.

    Returns:
      An array of the argument's shape, or without an axis a one-dimensional one. Narrow integers
      keep their dtype, which NumPy widens.

    >>> import pyjx as jax
    >>> jax.numpy.nancumsum(jax.numpy.array([1.0, float("nan"), 2.0])).tolist()
    [1.0, 1.0, 3.0]
    """
    return body_of(reductions.cumsum)(_vector_without_nan("nancumsum", a, 0), axis,
                                      user_dtype("nancumsum", dtype), out)


@numpy_function(static_argnames=("axis", "dtype"))
def nancumprod(a: ArrayLike, axis: int | None = None, dtype: Any = None, out: None = None) -> Array:
    """The running product, nan taken as 1; arguments as for `cumprod`.

    Returns:
      An array of the argument's shape, or without an axis a one-dimensional one. Narrow integers
      keep their dtype, which NumPy widens.

    >>> import pyjx as jax
    >>> jax.numpy.nancumprod(jax.numpy.array([3.0, float("nan"), 2.0])).tolist()
    [3.0, 3.0, 6.0]
    """
    return body_of(reductions.cumprod)(_vector_without_nan("nancumprod", a, 1), axis,
                                       user_dtype("nancumprod", dtype), out)


@numpy_function(static_argnames=("axis", "dtype", "keepdims"))
def nanmean(a: ArrayLike, axis: int | Sequence[int] | None = None, dtype: Any = None,
            out: None = None, keepdims: bool = False, where: ArrayLike | None = None) -> Array:
    """The mean of the elements that are not nan; nan if all are. Arguments as for `mean`.

    >>> import pyjx as jax
    >>> float(jax.numpy.nanmean(jax.numpy.array([1.0, float("nan"), 3.0])))
    2.0
    """
    no_out("nanmean", out)
    a, dtype = numbers("nanmean", a), user_dtype("nanmean", dtype)
    if not has_nan(a):
        return reductions.mean_of(a, axis, dtype, keepdims, where, "nanmean")
    total = _sum(_without_nan(a, 0), axis, dtype=dtype, keepdims=keepdims, where=where)
    count = _sum(present(a), axis, dtype=get_aval(total).dtype, keepdims=keepdims, where=where)
    return lax.div(total, convert(count, get_aval(total).dtype))


def _nan_variance(name: str, a: ArrayLike, axis: int | Sequence[int] | None, dtype: np.dtype[Any],
                  ddof: ArrayLike, keepdims: bool, where: ArrayLike | None, mean: Any) -> Any:
    a = numbers(name, a)
    where = reductions.check_where(name, where)
    if where is not None and get_aval(where).shape and not get_aval(a).shape:
        # as many values as the mask has, each alone
        axis = () if axis is None else axis
        a = stretch(a, get_aval(where).shape)
    aval = get_aval(a)
    computed, result = variance_dtypes(name, aval.dtype, dtype)
    x = convert(a, computed)
    kept = present(x) if where is None else lax.bitwise_and(present(x), stretch(where, aval.shape))
    if mean is None:
        mean = body_of(nanmean)(x, axis, computed, None, True, where)
    # Masked before they are squared, so that no derivative is nan.
    parts = squared(masked(kept, ufuncs.subtract(x, convert(mean, computed)), 0))
    real = get_aval(parts).dtype
    total = _sum(parts, axis, dtype=real, keepdims=keepdims)
    free = ufuncs.subtract(_sum(kept, axis, dtype=real, keepdims=keepdims), ddof)
    some = ufuncs.greater(free, 0)
    out = ufuncs.divide(ufuncs.where(some, total, np.nan), masked(some, free, 1))
    return convert(out, result)


@numpy_function(static_argnames=("axis", "dtype", "keepdims"))
def nanvar(a: ArrayLike, axis: int | Sequence[int] | None = None, dtype: Any = None,
           out: None = None, ddof: ArrayLike = 0, keepdims: bool = False, where: Any = None,
           mean: ArrayLike | None = None) -> Array:
    """The variance of the elements that are not nan; arguments as for `var`.

    >>> import pyjx as jax
    >>> float(jax.numpy.nanvar(jax.numpy.array([1.0, float("nan"), 3.0])))
    1.0
    """
    no_out("nanvar", out)
    return _nan_variance("nanvar", a, axis, dtype, ddof, keepdims, where, mean)


@numpy_function(static_argnames=("axis", "dtype", "keepdims"))
def nanstd(a: ArrayLike, axis: int | Sequence[int] | None = None, dtype: Any = None,
           out: None = None, ddof: ArrayLike = 0, keepdims: bool = False, where: Any = None,
           mean: ArrayLike | None = None) -> Array:
    """The standard deviation of the elements that are not nan; arguments as for `var`.

    >>> import pyjx as jax
    >>> float(jax.numpy.nanstd(jax.numpy.array([1.0, float("nan"), 3.0])))
    1.0
    """
    no_out("nanstd", out)
    return lax.sqrt(_nan_variance("nanstd", a, axis, dtype, ddof, keepdims, where, mean))
