"""Quantiles, percentiles and medians."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import get_aval
from pyjx.lax.nary import stretch
from pyjx.numpy import reductions, ufuncs
from pyjx.numpy.dispatch import numpy_function
from pyjx.numpy.manipulation import moved
from pyjx.numpy.operands import canonical_axes
from pyjx.numpy.promotion import (
    any_ranks,
    convert,
    literal,
    narrowed,
    operands,
    promote_dtypes_inexact,
    size_literal,
)
from pyjx.numpy.reductions import masked, restore_axes
from pyjx.numpy.statistics import present
from pyjx.runtime.operations import body_of
from pyjx.runtime.resharding import in_auto_mode

if TYPE_CHECKING:
    from pyjx.core.layouts import ShardingLike

_methods = ("linear", "lower", "higher", "midpoint", "nearest")
_static = ("axis", "overwrite_input", "method", "keepdims")


def _check(name: str, a: ArrayLike, q: ArrayLike, out: object, overwrite_input: bool, method: str,
           weights: ArrayLike | None) -> tuple[Any, Any, Any]:
    if out is not None or overwrite_input:
        raise ValueError(f"jax.numpy.{name} does not support overwrite_input=True or out != None: "
                         "arrays are immutable. Use what the function returns.")
    a, q = operands(name, a, q)
    if weights is None:
        (a,) = promote_dtypes_inexact(a)
    else:
        (weights,) = operands(name, weights)
        if get_aval(weights).dtype in dtypes.complex_dtypes:
            raise ValueError(f"{name}: Weights cannot be complex types. Give jnp.real(weights).")
        a, weights = promote_dtypes_inexact(a, weights)
    a = narrowed(a)
    if get_aval(q).dtype in dtypes.complex_dtypes:
        raise TypeError(f"{name}: q must be real, got dtype {get_aval(q).dtype}")
    if get_aval(a).dtype in dtypes.complex_dtypes:
        raise ValueError(f"jax.numpy.{name}: quantile does not support complex input, as the "
                         "operation is poorly defined. Give jnp.real(a) or jnp.abs(a).")
    if weights is not None:
        if method != "inverted_cdf":
            raise NotImplementedError(f"{method} doesn't support weights. Only method "
                                      "'inverted_cdf' supports weights.")
    elif method not in (*_methods, "inverted_cdf"):
        raise ValueError(f"{name}: method can only be 'linear', 'lower', 'higher', 'midpoint', "
                         f"'nearest' or 'inverted_cdf', got {method!r}")
    if get_aval(q).ndim > 1:
        raise ValueError(f"{name}: q must be have rank <= 1, got shape {get_aval(q).shape}. Give "
                         "q.ravel() and reshape the result.")
    return a, q, weights


def _along(weights: ArrayLike | None, shape: tuple[int, ...], axis: int | Sequence[int] | None,
           axes: tuple[int, ...]) -> Any:
    """Weights of each element, given as such or as those along the axes of the quantiles."""
    own = get_aval(weights).shape
    if own == shape:
        return weights
    if axis is None:
        raise ValueError(f"Weights shape must match 'a' shape when axis is None. Got {own} and "
                         f"{shape}.")
    if own != tuple([shape[i] for i in axes]):
        raise ValueError(f"Weights shape {own} must match reduction axes "
                         f"{tuple([shape[i] for i in axes])}, or the shape of 'a', {shape}.")
    order = sorted(range(len(axes)), key=axes.__getitem__)
    return lax.broadcast_in_dim(lax.transpose(weights, order), shape, sorted(axes))


def _flattened(x: ArrayLike, axes: tuple[int, ...]) -> Any:
    """`x` with the axes merged into one, the last."""
    shape = get_aval(x).shape
    x = moved(x, axes, tuple(range(len(shape) - len(axes), len(shape))))
    if len(axes) == 1:
        return x
    kept = get_aval(x).shape[:len(shape) - len(axes)]
    size = 1
    for i in axes:
        size *= shape[i]
    return lax.reshape(x, (*kept, size))


@any_ranks
def _quantile(name: str, a: ArrayLike, q: ArrayLike, axis: int | Sequence[int] | None, out: object,
              overwrite_input: bool, method: str, keepdims: bool, skip_nan: bool,
              weights: ArrayLike | None) -> Any:
    a, q, weights = _check(name, a, q, out, overwrite_input, method, weights)
    ndim = get_aval(a).ndim
    axes = canonical_axes(axis, ndim)
    given = get_aval(a).dtype
    # Between elements of 16 bits there are places that only single precision tells apart.
    dtype = np.dtype(np.float32) if dtypes.itemsize_bits(given) == 16 else given
    a = a if given == dtype else convert(a, dtype)
    q = q if get_aval(q).dtype == dtype else convert(q, dtype)
    if weights is not None:
        weights = _flattened(_along(convert(weights, dtype), get_aval(a).shape, axis, axes), axes)
    x = _flattened(a, axes)
    last = get_aval(x).ndim - 1
    sound = present(x)
    if not skip_nan:  # one nan makes the whole slice nan
        sound = restore_axes(lax.reduce_and(sound, (last,)), (last,), last + 1)
    if not skip_nan or get_aval(x).weak_type:  # which the result, and its derivative, is not
        x = masked(sound, x, np.nan)
    if skip_nan and not get_aval(x).shape[last]:
        found = lax.full((*get_aval(x).shape[:last], *get_aval(q).shape), np.nan, dtype)
    elif method == "inverted_cdf":
        found = _by_weights(x, q, weights, skip_nan)
    else:
        x = lax.sort(x, dimension=last, is_stable=False)
        found = _interpolated(x, q, method, skip_nan)
    # The axes of the quantiles come first, then those of `a` that are left.
    found = moved(found, -1, 0) if get_aval(q).ndim else found
    if keepdims and axes:
        extra = get_aval(q).ndim
        found = restore_axes(found, tuple([i + extra for i in axes]), ndim + extra)
    return convert(found, given)


def _interpolated(x: ArrayLike, q: ArrayLike, method: str, skip_nan: bool) -> Any:
    """The quantiles of slices along the last axis, sorted; quantiles go along the last axis."""
    aval = get_aval(x)
    last, dtype = aval.ndim - 1, aval.dtype
    many = get_aval(q).ndim
    lead = aval.shape[:last]
    size = size_literal(aval.shape[-1], dtype)
    if skip_nan:
        size = body_of(reductions.sum)(present(x), last, dtype=dtype, keepdims=bool(many))
        q = stretch(q, (*lead, get_aval(q).shape[0])) if many else q
    top = ufuncs.subtract(size, literal(1.0, dtype))
    place = lax.mul(q, top)  # of strong type, as `top` is
    low, high = lax.floor(place), lax.ceil(place)
    weight = lax.sub(place, low)
    low_value, high_value = (
        _taken(x, ufuncs.maximum(ufuncs.minimum(i, top), literal(0.0, dtype)), skip_nan)
        for i in (low, high))
    if method == "linear":
        rest = ufuncs.subtract(literal(1.0, dtype), weight)
        return ufuncs.add(ufuncs.multiply(low_value, rest), ufuncs.multiply(high_value, weight))
    if method == "lower":
        return low_value
    if method == "higher":
        return high_value
    if method == "nearest":
        return ufuncs.where(ufuncs.less_equal(weight, literal(0.5, dtype)), low_value, high_value)
    return lax.mul(lax.add(low_value, high_value), literal(0.5, dtype))


def _taken(x: ArrayLike, place: ArrayLike, per_slice: bool) -> Any:
    """The elements at `place` along the last axis, which each slice has of its own or all share."""
    index = convert(place, dtypes.default_int_dtype())
    last = get_aval(x).ndim - 1
    if not per_slice:
        return jnp.indexing.take(x, index, axis=last, mode="clip")
    shape = get_aval(x).shape[:last]
    single = get_aval(index).shape == shape
    if single:
        index = lax.reshape(index, (*shape, 1))
    out = jnp.indexing.take_along_axis(x, index, axis=last)
    return lax.squeeze(out, (last,)) if single else out


def _by_weights(x: ArrayLike, q: ArrayLike, weights: ArrayLike | None, skip_nan: bool) -> Any:
    """The least values whose cumulative weight is at least q of the total."""
    aval = get_aval(x)
    last, dtype = aval.ndim - 1, aval.dtype
    if weights is None:
        weights = lax.full(aval.shape, 1, dtype)
    if skip_nan:
        weights = masked(present(x), weights, 0)
    x, weights = lax.sort((x, weights), dimension=last, num_keys=1)
    total = lax.cumsum(weights, last)
    levels = q if get_aval(q).ndim else lax.reshape(q, (1,))
    count, n = get_aval(levels).shape[0], aval.shape[-1]
    shape = (*aval.shape[:-1], count, n)
    running = lax.broadcast_in_dim(total, shape, (*range(last), last + 1))
    whole = lax.slice_in_dim(running, n - 1, n, axis=last + 1)
    level = lax.broadcast_in_dim(levels, (*shape[:-1], 1), (last,))
    below = lax.lt(running, stretch(lax.mul(level, whole), shape))
    index = body_of(reductions.sum)(below, last + 1)
    out = _taken(x, ufuncs.minimum(index, n - 1), True)
    return out if get_aval(q).ndim else lax.squeeze(out, (last,))


@numpy_function(static_argnames=_static)
def quantile(a: ArrayLike, q: ArrayLike, axis: int | Sequence[int] | None = None, out: None = None,
             overwrite_input: bool = False, method: str = "linear", keepdims: bool = False, *,
             weights: ArrayLike | None = None) -> Array:
    """The values below which given shares of the elements lie; nan if one element is nan.

    Args:
      a: array of real numbers.
      q: share or one-dimensional array of shares, from 0 to 1.
      axis: int or sequence of ints; all axes by default.
      out, overwrite_input: not supported.
      method: between two elements, "linear" interpolates, "lower" and "higher" take one of them,
        "nearest" the nearer one, "midpoint" their mean; "inverted_cdf" takes the least element
        with the share.
      keepdims: whether the axes stay, with size 1.
      weights: of the elements, or one for each along the axes; with "inverted_cdf" only.

    Returns:
      Array with the axis of `q`, if it has one, in front of the axes of `a` that are left.

    Raises:
      ValueError: complex numbers, an unknown method, or `q` of more than one axis.

    >>> import pyjx as jax
    >>> float(jax.numpy.quantile(jax.numpy.array([1.0, 2.0, 4.0]), 0.75))
    3.0
    """
    return _quantile("quantile", a, q, axis, out, overwrite_input, method, keepdims, False, weights)


@numpy_function(static_argnames=_static)
def nanquantile(a: ArrayLike, q: ArrayLike, axis: int | Sequence[int] | None = None,
                out: None = None, overwrite_input: bool = False, method: str = "linear",
                keepdims: bool = False, *, weights: ArrayLike | None = None) -> Array:
    """The quantiles of the elements that are not nan; arguments as for `quantile`.

    Returns:
      A float array: the axes of `q`, then those that are not reduced, or with size 1 where they are
      if `keepdims`.

    >>> import pyjx as jax
    >>> float(jax.numpy.nanquantile(jax.numpy.array([1.0, float("nan"), 3.0]), 0.5))
    2.0
    """
    return _quantile("nanquantile", a, q, axis, out, overwrite_input, method, keepdims, True,
                     weights)


def _share(name: str, a: ArrayLike, q: ArrayLike) -> Any:
    """The percentages as parts of one; `a` is checked first, as the first argument."""
    _, q = operands(name, a, q)
    (q,) = promote_dtypes_inexact(q)
    return ufuncs.divide(q, 100)


@numpy_function(static_argnames=(*_static, "out_sharding"))
def percentile(a: ArrayLike, q: ArrayLike, axis: int | Sequence[int] | None = None,
               out: None = None, overwrite_input: bool = False, method: str = "linear",
               keepdims: bool = False, *, weights: ArrayLike | None = None,
               out_sharding: ShardingLike = None) -> Array:
    """The values below which given percentages of the elements lie; otherwise as `quantile`.

    Returns:
      A float array: the axes of `q`, then those that are not reduced, or with size 1 where they are
      if `keepdims`.

    >>> import pyjx as jax
    >>> float(jax.numpy.percentile(jax.numpy.array([1.0, 2.0, 4.0]), 75))
    3.0
    """
    if out_sharding is not None:
        return in_auto_mode(lambda a, q, weights: percentile(
            a, q, axis, out, overwrite_input, method, keepdims, weights=weights),
            out_sharding, "percentile")(a, q, weights)
    return _quantile("percentile", a, _share("percentile", a, q), axis, out, overwrite_input,
                     method, keepdims, False, weights)


@numpy_function(static_argnames=_static)
def nanpercentile(a: ArrayLike, q: ArrayLike, axis: int | Sequence[int] | None = None,
                  out: None = None, overwrite_input: bool = False, method: str = "linear",
                  keepdims: bool = False, *, weights: ArrayLike | None = None) -> Array:
    """The percentiles of the elements that are not nan; otherwise as `quantile`.

    Returns:
      A float array: the axes of `q`, then those that are not reduced, or with size 1 where they are
      if `keepdims`.

    >>> import pyjx as jax
    >>> float(jax.numpy.nanpercentile(jax.numpy.array([1.0, float("nan"), 3.0]), 50))
    2.0
    """
    return _quantile("nanpercentile", a, _share("nanpercentile", a, q), axis, out,
                     overwrite_input, method, keepdims, True, weights)


@numpy_function(static_argnames=("axis", "overwrite_input", "keepdims"))
def median(a: ArrayLike, axis: int | Sequence[int] | None = None, out: None = None,
           overwrite_input: bool = False, keepdims: bool = False) -> Array:
    """The middle element, or the mean of the two middle ones; nan if one element is nan.

    Returns:
      A float array without the axes that are reduced, or with size 1 there if `keepdims`.

    Raises:
      ValueError: there are no elements.

    >>> import pyjx as jax
    >>> float(jax.numpy.median(jax.numpy.array([1.0, 5.0, 2.0])))
    2.0
    """
    (a,) = operands("median", a)
    shape = get_aval(a).shape
    if 0 in [shape[i] for i in canonical_axes(axis, len(shape))]:
        raise ValueError("jax.numpy.median reduction axis must be non-empty")
    return _quantile("median", a, 0.5, axis, out, overwrite_input, "midpoint", keepdims, False,
                     None)


@numpy_function(static_argnames=("axis", "overwrite_input", "keepdims"))
def nanmedian(a: ArrayLike, axis: int | Sequence[int] | None = None, out: None = None,
              overwrite_input: bool = False, keepdims: bool = False) -> Array:
    """The median of the elements that are not nan.

    Returns:
      A float array without the axes that are reduced, or with size 1 there if `keepdims`.

    >>> import pyjx as jax
    >>> float(jax.numpy.nanmedian(jax.numpy.array([1.0, float("nan"), 3.0])))
    2.0
    """
    return _quantile("nanmedian", a, 0.5, axis, out, overwrite_input, "midpoint", keepdims, True,
                     None)
