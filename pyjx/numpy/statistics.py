"""Averages, variances and correlations, and the reductions that leave out nan."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pyjx import configuration, lax
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, AxisLike, DTypeLike
from pyjx.core.avals import get_aval
from pyjx.core.scalars import greatest, least
from pyjx.lax.elementwise import stretch
from pyjx.numpy import reductions, ufuncs
from pyjx.numpy.contractions import matmul
from pyjx.numpy.manipulation import at_least_2d, permuted
from pyjx.numpy.operands import axes_and_names, canonical_axes, numpy_function
from pyjx.numpy.promotion import (
    any_ranks,
    convert,
    literal,
    no_out,
    numbers,
    operands,
    promote_dtypes,
    promote_dtypes_inexact,
    promote_shapes,
    size_literal,
    strong,
)
from pyjx.runtime.operations import body_of

# -- averages and variances ------------------------------------------------------------------------

_sum = body_of(reductions.sum)
_real_part_error = (
    "jax.numpy.var does not yet support real dtype parameters when computing the variance of an "
    "array of complex values. Leave `dtype` out, and convert the result, which is real.")


def user_dtype(name: str, dtype: DTypeLike) -> Any:
    """What the user gave the function `name` as a dtype, of which one that it is made of asks no
    more; None is left."""
    return None if dtype is None else dtypes.check_and_canonicalize_user_dtype(dtype, name)


def variance_dtypes(name: str, given: np.dtype, dtype: DTypeLike | None) -> tuple[Any, Any]:
    """The dtypes to compute a variance in and of the result, for the function `name`."""
    inexact = dtypes.to_inexact_dtype(dtypes.canonicalize_dtype(given))
    if dtype is not None:
        dtype = dtypes.check_and_canonicalize_user_dtype(dtype, name)
        if given in dtypes.complex_dtypes and dtype not in dtypes.complex_dtypes:
            raise ValueError(_real_part_error)
        if not dtypes.issubdtype(dtype, np.inexact):
            return dtype, dtype  # as in JAX, what is computed is rounded to integers on the way
        if dtypes.itemsize_bits(inexact) <= 8:  # with which no dtype is common
            return _at_least_single(dtype), dtype
        with configuration.numpy_dtype_promotion("standard"):
            return _at_least_single(dtypes.promote_types(inexact, dtype)), dtype
    return _at_least_single(inexact), dtypes.to_floating_dtype(inexact)


def _at_least_single(dtype: DTypeLike) -> Any:
    return np.dtype(np.float32) if dtypes.itemsize_bits(dtype) == 16 else dtype


def squared(x: ArrayLike) -> Any:
    """The squared absolute value."""
    if get_aval(x).dtype in dtypes.complex_dtypes:
        return lax.real(lax.mul(x, lax.conj(x)))
    return lax.square(x)


def _degrees(ddof: Any, correction: Any) -> Any:
    """What is subtracted from the number of elements."""
    if correction is None:
        return ddof
    if not isinstance(ddof, int) or ddof != 0:
        raise ValueError("ddof and correction can't be provided simultaneously.")
    return correction


def _variance(a: ArrayLike, axis: AxisLike, dtype: np.dtype[Any], ddof: ArrayLike, keepdims: bool,
              where: Any, mean: Any, name: str = "var") -> Any:
    a = numbers(name, a)
    where = reductions.check_where(name, where)
    aval = get_aval(a)
    computed, result = variance_dtypes(name, aval.dtype, dtype)
    axes, names = axes_and_names(axis, aval.ndim)
    x = convert(a, computed)
    if mean is None:
        mean = reductions.mean_of(x, axis, computed, True, where)
    else:
        mean = convert(operands(name, mean)[0], computed)
    parts = squared(ufuncs.subtract(x, mean))
    real = get_aval(parts).dtype
    total = _sum(parts, axis, dtype=real, keepdims=keepdims, where=where)
    number = (size_literal(reductions.count_of(aval, axes, names), real) if where is None else
              _sum(stretch(where, aval.shape), axis, dtype=real, keepdims=keepdims))
    free = _difference(number, convert(operands(f"{name}(ddof=...)", ddof)[0], real))
    quotient = convert(lax.div(*promote_shapes(name, total, free)), result)
    if isinstance(free, np.inexact) and free > 0:
        return quotient
    return ufuncs.where(ufuncs.greater(free, 0), quotient, np.nan)  # which makes integers floats


def _difference(x: ArrayLike, y: ArrayLike) -> Any:
    """x - y, known where both are."""
    if isinstance(x, np.generic) and isinstance(y, np.generic):
        return literal(np.subtract(x, y), x.dtype)
    return ufuncs.subtract(x, y)


def _deviation(a: Array, axis: AxisLike, dtype: np.dtype[Any], ddof: ArrayLike, keepdims: bool,
               where: ArrayLike | None, mean: ArrayLike) -> Any:
    return lax.sqrt(_variance(a, axis, dtype, ddof, keepdims, where, mean, "std"))


def _compiled(body: Callable[..., Any]) -> Callable[..., Any]:
    """The body compiled for each `ddof` that is a number, which costs nothing then, and once for
    all arrays."""
    of_number = numpy_function(body, static_argnames=("axis", "dtype", "keepdims", "ddof"))
    of_array = numpy_function(body, static_argnames=("axis", "dtype", "keepdims"))

    def call(a: ArrayLike, axis: AxisLike, dtype: DTypeLike, ddof: ArrayLike, *args: Any) -> Any:
        of_kind = of_number if isinstance(ddof, (int, float, np.number)) else of_array
        return of_kind(a, axis, dtype, ddof, *args)

    return call


_compiled_variance, _compiled_deviation = _compiled(_variance), _compiled(_deviation)


def var(a: ArrayLike, axis: AxisLike = None, dtype: DTypeLike | None = None, out: None = None,
        ddof: ArrayLike = 0, keepdims: bool = False, *, where: ArrayLike | None = None,
        mean: ArrayLike | None = None, correction: Any = None) -> Array:
    """The variance: the mean of squared distances from the mean.

    Args:
      a: array.
      axis: int or sequence of ints; all axes by default.
      dtype: of the result.
      out: not supported.
      ddof: the sum of squares is divided by the number of elements less this; number or array.
      keepdims: whether the axes stay, with size 1.
      where: boolean mask, broadcast against `a`, of the elements to include.
      mean: the mean, with size 1 along the axes, if it is known.
      correction: another name of `ddof`.

    Raises:
      ValueError: `ddof` and `correction` are both given.

    >>> import pyjx as jax
    >>> float(jax.numpy.var(jax.numpy.array([1.0, 3.0])))
    1.0
    """
    no_out("var", out)
    ddof = _degrees(ddof, correction)
    return _compiled_variance(a, axis, dtype, ddof, keepdims, where, mean)


def std(a: ArrayLike, axis: AxisLike = None, dtype: DTypeLike | None = None, out: None = None,
        ddof: ArrayLike = 0, keepdims: bool = False, *, where: ArrayLike | None = None,
        mean: ArrayLike | None = None, correction: Any = None) -> Array:
    """The standard deviation, the square root of the variance; arguments as for `var`.

    >>> import pyjx as jax
    >>> float(jax.numpy.std(jax.numpy.array([1.0, 3.0])))
    1.0
    """
    no_out("std", out)
    if dtype is not None and not dtypes.issubdtype(
            dtype := dtypes.check_and_canonicalize_user_dtype(dtype, "std"), np.inexact):
        raise ValueError(f"dtype argument to jnp.std must be inexact; got {dtype}")
    ddof = _degrees(ddof, correction)
    return _compiled_deviation(a, axis, dtype, ddof, keepdims, where, mean)


@numpy_function(static_argnames=("axis", "returned", "keepdims"))
def average(a: ArrayLike, axis: AxisLike = None, weights: ArrayLike | None = None,
            returned: bool = False, keepdims: bool = False) -> Any:
    """The weighted mean.

    Args:
      a: array.
      axis: int or sequence of ints; all axes by default.
      weights: array of the shape of `a`, or of the sizes of the axes; ones by default.
      returned: whether to return (average, sum of weights).
      keepdims: whether the axes stay, with size 1.

    Raises:
      ValueError: the shape of `weights` does not fit.

    >>> import pyjx as jax
    >>> float(jax.numpy.average(jax.numpy.array([1.0, 2.0]), weights=jax.numpy.array([3.0, 1.0])))
    1.25
    """
    if weights is None:
        a = promote_dtypes_inexact(*operands("average", a))[0]
        mean = reductions.mean_of(a, axis, None, keepdims, None)
        if not returned:
            return mean
        aval = get_aval(mean)
        count = reductions.count_of(get_aval(a), canonical_axes(axis, get_aval(a).ndim))
        return mean, lax.full(aval.shape, count, aval.dtype)
    a, weights = promote_dtypes_inexact(*operands("average", a, weights))
    shape, weighing = get_aval(a).shape, get_aval(weights).shape
    if shape != weighing:
        weights = _spread_weights(weights, shape, axis)
    total = _sum(weights, axis, keepdims=keepdims)
    out = lax.div(_sum(ufuncs.multiply(a, weights), axis, keepdims=keepdims), total)
    return (out, stretch(total, get_aval(out).shape)) if returned else out


def _spread_weights(weights: ArrayLike, shape: tuple[int, ...], axis: AxisLike) -> Any:
    """Weights along `axis` only, with the other axes, of any size, added."""
    if axis is None:
        raise ValueError("Axis must be specified when shapes of a and weights differ.")
    axes = canonical_axes(axis, len(shape))
    old = get_aval(weights).shape
    if old != tuple([shape[i] for i in axes]):
        raise ValueError("Shape of weights must be consistent with shape of a along specified "
                         "axis.")
    order = sorted(range(len(axes)), key=lambda k: axes[k])
    return lax.broadcast_in_dim(permuted(weights, tuple(order)), shape, sorted(axes))


# -- covariance ------------------------------------------------------------------------------------


def _rows(x: ArrayLike, rowvar: bool) -> Any:
    vector = get_aval(x).ndim < 2  # which is one variable either way
    x = at_least_2d(x)
    return x if rowvar or vector else permuted(x, (1, 0))


@numpy_function(static_argnames=("rowvar", "bias", "ddof", "dtype"))
@any_ranks
def cov(m: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, bias: bool = False,
        ddof: int | None = None, fweights: Any = None, aweights: Any = None, dtype: Any = None
       ) -> Array:
    """The covariance matrix of variables.

    Args:
      m: matrix whose rows are variables and whose columns are observations.
      y: more variables, of the same form.
      rowvar: if false, columns are variables.
      bias: divide by the number n of observations and not by n - 1.
      ddof: divide by n - ddof.
      fweights: how often each observation counts; integers.
      aweights: the weight of each observation.
      dtype: of the result.

    Returns:
      A float or complex array (n, n) for n variables, and an array of no axes for one.

    Raises:
      ValueError: `m` has more than two axes.
      TypeError: weights of another form than one number for each observation.

    >>> import pyjx as jax
    >>> jax.numpy.cov(jax.numpy.array([[1.0, 2.0], [2.0, 4.0]])).tolist()
    [[0.5, 1.0], [1.0, 2.0]]
    """
    given = [m] if y is None else [m, y]
    parts = promote_dtypes_inexact(*operands("cov", *given))
    if any(get_aval(x).ndim > 2 for x in parts):
        raise ValueError(f"{'m' if get_aval(parts[0]).ndim > 2 else 'y'} has more than 2 "
                         "dimensions")
    if dtype is not None:
        given = dtype
        dtype = dtypes.check_and_canonicalize_user_dtype(dtype, "cov")
        if not dtypes.issubdtype(dtype, np.inexact):
            raise ValueError("cov: dtype must be a subclass of float or complex; got "
                             f"dtype={given}")
        parts = [convert(x, dtype) for x in parts]
    x = _rows(parts[0], rowvar)
    if y is not None:
        x = lax.concatenate([x, _rows(parts[1], rowvar)], 0)
    if not get_aval(x).shape[0]:
        return lax.full((0, 0), 0, get_aval(x).dtype)
    rows, columns = get_aval(x).shape
    if not columns:
        return lax.full((rows, rows) if rows > 1 else (), math.nan, get_aval(x).dtype)
    ddof = int(bias == 0) if ddof is None else ddof
    weights, aweights = _observation_weights(x, fweights, aweights)
    count = get_aval(x).shape[1]
    if weights is None:
        center = reductions.mean_of(x, 1, None, True, None)
        free: Any = count - ddof
    else:
        total = _sum(weights)
        center = ufuncs.divide(_sum(ufuncs.multiply(x, weights), 1, keepdims=True), total)
        free = ufuncs.subtract(total, ddof)
        if aweights is not None and ddof:
            free = ufuncs.subtract(total, ufuncs.divide(
                ufuncs.multiply(ddof, _sum(ufuncs.multiply(weights, aweights))), total))
    x = ufuncs.subtract(x, center)
    turned = permuted(x if weights is None else ufuncs.multiply(x, weights), (1, 0))
    out = ufuncs.divide(body_of(matmul)(x, ufuncs.conj(turned)), free)
    return lax.squeeze(out, [i for i, n in enumerate(get_aval(out).shape) if n == 1])


def _observation_weights(x: ArrayLike, fweights: Any, aweights: Any) -> tuple[Any, Any]:
    """The product of both kinds of weights, and those of the second kind; None where there are
    none. The sign of weights does not count."""
    count = get_aval(x).shape[1]
    weights = None
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is None:
            continue
        (given,) = operands("cov", given)
        aval = get_aval(given)
        if name == "fweights" and not dtypes.issubdtype(aval.dtype, np.integer):
            raise TypeError("fweights must be integer.")
        if aval.ndim > 1:
            raise RuntimeError(f"cannot handle multidimensional {name}")
        if aval.shape != (count,):
            raise RuntimeError(f"incompatible numbers of samples and {name}")
        given = ufuncs.abs(given)
        if name == "aweights":  # integers go with the numbers that they weigh
            given = aweights = promote_dtypes(strong(given), x)[0]
        elif aval.weak_type:
            given = promote_dtypes(given, x)[0]
        weights = given if weights is None else ufuncs.multiply(weights, given)
    return weights, aweights


@numpy_function(static_argnames=("rowvar", "dtype"))
def corrcoef(x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True,
             dtype: Any = None) -> Array:
    """The Pearson correlation matrix: covariances divided by both standard deviations.

    Returns:
      A float or complex array (n, n) for n variables, and an array of no axes for one.

    >>> import pyjx as jax
    >>> jax.numpy.corrcoef(jax.numpy.array([[1.0, 2.0], [4.0, 2.0]])).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    c = body_of(cov)(x, y, rowvar, dtype=user_dtype("corrcoef", dtype))
    aval = get_aval(c)
    if not aval.ndim:
        return ufuncs.divide(c, c)
    n = aval.shape[0]
    index = np.dtype(np.int32)
    same = lax.eq(lax.broadcasted_iota(index, (n, n), 0), lax.broadcasted_iota(index, (n, n), 1))
    diagonal = lax.reduce_sum(lax.select(same, c, lax.full_like(c, 0)), (0,))
    deviation = convert(lax.sqrt(ufuncs.real(diagonal)), aval.dtype)
    c = ufuncs.divide(c, lax.broadcast_in_dim(deviation, (n, n), (0,)))
    c = ufuncs.divide(c, lax.broadcast_in_dim(deviation, (n, n), (1,)))
    if aval.dtype in dtypes.complex_dtypes:
        return lax.complex(ufuncs.clip(lax.real(c), -1, 1), ufuncs.clip(lax.imag(c), -1, 1))
    return ufuncs.clip(c, -1, 1)


# -- without nan -----------------------------------------------------------------------------------

_all = body_of(reductions.all)


def has_nan(x: ArrayLike) -> bool:
    """Whether the dtype of `x` has a nan."""
    return dtypes.issubdtype(get_aval(x).dtype, np.inexact)


def present(x: ArrayLike) -> Any:
    """The mask of the elements that are not nan."""
    return lax.eq(x, x)


def _without_nan(x: ArrayLike, fill: ArrayLike) -> Any:
    return reductions.masked(present(x), strong(x), fill) if has_nan(x) else x


def _accumulated_without_nan(accumulate: Any, name: str, a: ArrayLike, fill: int,
                             axis: int | None, dtype: Any, out: None) -> Array:
    """What `accumulate` makes: of a scalar of weak type, that of an array of one number."""
    a = numbers(name, a, out)
    x = lax.expand_dims(a, (0,)) if (aval := get_aval(a)).weak_type and not aval.ndim else a
    return body_of(accumulate)(_without_nan(x, fill), axis, user_dtype(name, dtype))


@numpy_function(static_argnames=("axis", "dtype", "keepdims"))
def nansum(a: ArrayLike, axis: AxisLike = None, dtype: Any = None, out: None = None,
           keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None
          ) -> Array:
    """The sum of the elements that are not nan; arguments as for `sum`.

    >>> import pyjx as jax
    >>> float(jax.numpy.nansum(jax.numpy.array([1.0, float("nan")])))
    1.0
    """
    return _sum(_without_nan(numbers("nansum", a, out), 0), axis, user_dtype("nansum", dtype), None,
                keepdims, initial, where)


@numpy_function(static_argnames=("axis", "dtype", "keepdims"))
def nanprod(a: ArrayLike, axis: AxisLike = None, dtype: Any = None, out: None = None,
            keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None
           ) -> Array:
    """The product of the elements that are not nan; arguments as for `prod`.

    >>> import pyjx as jax
    >>> float(jax.numpy.nanprod(jax.numpy.array([3.0, float("nan")])))
    3.0
    """
    return body_of(reductions.prod)(_without_nan(numbers("nanprod", a, out), 1), axis,
                                    user_dtype("nanprod", dtype), None, keepdims, initial, where)


def _nan_extremum(name: str, reduce: Callable[..., Any], unit: Callable[[Any], Any], a: ArrayLike,
                  axis: AxisLike, out: object, keepdims: bool, initial: ArrayLike | None,
                  where: ArrayLike | None) -> Any:
    a = numbers(name, a, out)
    if not has_nan(a):
        return reduce(a, axis, None, keepdims, initial, where)
    found = reduce(_without_nan(a, unit(get_aval(a).dtype)), axis, None, keepdims, initial, where)
    if initial is not None:
        return found
    empty = _all(lax.ne(a, a), axis, None, keepdims)
    return ufuncs.where(empty, literal(np.nan, get_aval(found).dtype), found)


@numpy_function(static_argnames=("axis", "keepdims"))
def nanmax(a: ArrayLike, axis: AxisLike = None, out: None = None, keepdims: bool = False,
           initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
    """The largest of the elements that are not nan; nan if all are. Arguments as for `max`.

    >>> import pyjx as jax
    >>> float(jax.numpy.nanmax(jax.numpy.array([1.0, float("nan")])))
    1.0
    """
    return _nan_extremum("nanmax", body_of(reductions.max), least, a, axis, out,
                         keepdims, initial, where)


@numpy_function(static_argnames=("axis", "keepdims"))
def nanmin(a: ArrayLike, axis: AxisLike = None, out: None = None, keepdims: bool = False,
           initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
    """The smallest of the elements that are not nan; nan if all are. Arguments as for `max`.

    >>> import pyjx as jax
    >>> float(jax.numpy.nanmin(jax.numpy.array([1.0, float("nan")])))
    1.0
    """
    return _nan_extremum("nanmin", body_of(reductions.min), greatest, a, axis, out,
                         keepdims, initial, where)


def _nan_arg(name: str, find: Callable[..., Any], worst: float, a: ArrayLike, axis: AxisLike,
             out: object, keepdims: bool | None) -> Any:
    a = numbers(name, a, out)
    if not has_nan(a):
        return reductions.arg_extremum(name[3:], find, a, axis, out, keepdims)
    place = reductions.arg_extremum(name[3:], find, _without_nan(a, worst), axis, out, keepdims)
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
    return _accumulated_without_nan(reductions.cumsum, "nancumsum", a, 0, axis, dtype, out)


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
    return _accumulated_without_nan(reductions.cumprod, "nancumprod", a, 1, axis, dtype, out)


@numpy_function(static_argnames=("axis", "dtype", "keepdims"))
def nanmean(a: ArrayLike, axis: AxisLike = None, dtype: Any = None, out: None = None,
            keepdims: bool = False, where: ArrayLike | None = None) -> Array:
    """The mean of the elements that are not nan; nan if all are. Arguments as for `mean`.

    >>> import pyjx as jax
    >>> float(jax.numpy.nanmean(jax.numpy.array([1.0, float("nan"), 3.0])))
    2.0
    """
    a, dtype = numbers("nanmean", a, out), user_dtype("nanmean", dtype)
    if not has_nan(a):
        return reductions.mean_of(a, axis, dtype, keepdims, where, "nanmean")
    total = _sum(_without_nan(a, 0), axis, dtype=dtype, keepdims=keepdims, where=where)
    count = _sum(present(a), axis, dtype=get_aval(total).dtype, keepdims=keepdims, where=where)
    return lax.div(total, convert(count, get_aval(total).dtype))


def _nan_variance(name: str, a: ArrayLike, axis: AxisLike, dtype: np.dtype[Any], ddof: ArrayLike,
                  keepdims: bool, where: ArrayLike | None, mean: Any) -> Any:
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
    parts = squared(reductions.masked(kept, ufuncs.subtract(x, convert(mean, computed)), 0))
    real = get_aval(parts).dtype
    total = _sum(parts, axis, dtype=real, keepdims=keepdims)
    free = ufuncs.subtract(_sum(kept, axis, dtype=real, keepdims=keepdims), ddof)
    some = ufuncs.greater(free, 0)
    out = ufuncs.divide(ufuncs.where(some, total, np.nan), reductions.masked(some, free, 1))
    return convert(out, result)


@numpy_function(static_argnames=("axis", "dtype", "keepdims"))
def nanvar(a: ArrayLike, axis: AxisLike = None, dtype: Any = None, out: None = None,
           ddof: ArrayLike = 0, keepdims: bool = False, where: Any = None,
           mean: ArrayLike | None = None) -> Array:
    """The variance of the elements that are not nan; arguments as for `var`.

    >>> import pyjx as jax
    >>> float(jax.numpy.nanvar(jax.numpy.array([1.0, float("nan"), 3.0])))
    1.0
    """
    no_out("nanvar", out)
    return _nan_variance("nanvar", a, axis, dtype, ddof, keepdims, where, mean)


@numpy_function(static_argnames=("axis", "dtype", "keepdims"))
def nanstd(a: ArrayLike, axis: AxisLike = None, dtype: Any = None, out: None = None,
           ddof: ArrayLike = 0, keepdims: bool = False, where: Any = None,
           mean: ArrayLike | None = None) -> Array:
    """The standard deviation of the elements that are not nan; arguments as for `var`.

    >>> import pyjx as jax
    >>> float(jax.numpy.nanstd(jax.numpy.array([1.0, float("nan"), 3.0])))
    1.0
    """
    no_out("nanstd", out)
    return lax.sqrt(_nan_variance("nanstd", a, axis, dtype, ddof, keepdims, where, mean))
