"""Summaries of samples: the mode, ranks, the standard error of the mean."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import get_aval
from pyjx.numpy import reductions
from pyjx.numpy.dispatch import numpy_function
from pyjx.numpy.operands import canonical_axis, is_complex
from pyjx.numpy.promotion import any_ranks, check_arraylike, promote_inexact, strong
from pyjx.numpy.ufuncs import as_array


class ModeResult(NamedTuple):
    """The most frequent values, and how often they occur."""

    mode: Any
    count: Any


def _check_policy(name: str, nan_policy: str, allowed: tuple[str, ...]) -> None:
    if nan_policy not in ("propagate", "omit", "raise"):
        raise ValueError(f"Illegal nan_policy value {nan_policy!r}: {nan_policy} is not supported; "
                         "expected one of {'propagate', 'omit', 'raise'}")
    if nan_policy not in allowed:
        raise NotImplementedError(f"Logic for `nan_policy` of {nan_policy} is not implemented in "
                                  f"{name}.")


def _flat(x: Array, axis: int | None) -> tuple[Array, int]:
    return (x.reshape(-1), 0) if axis is None else (x, canonical_axis(axis, x.ndim))


@numpy_function(static_argnames=("axis", "nan_policy", "keepdims"))
@any_ranks
def mode(a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False
         ) -> ModeResult:
    """The most frequent value along an axis, the smallest of several, and its count.

    Args:
      a: array.
      axis: int, or None to flatten.
      nan_policy: "propagate": nan is a value like others, and the largest.
      keepdims: whether the axis stays, with size 1.

    Returns:
      A named tuple `(mode, count)`. Along an empty axis they are nan and 0.

    Raises:
      NotImplementedError: another `nan_policy`.

    >>> import pyjx as jax
    >>> [int(y) for y in jax.scipy.stats.mode(jax.numpy.array([2, 4, 1, 1]))]
    [1, 2]
    """
    check_arraylike("mode", a)
    _check_policy("mode", nan_policy, ("propagate",))
    x = as_array(a)
    ndim = max(x.ndim, 1)
    x, place = _flat(x if x.ndim else x.reshape(1), axis)
    if x.shape[place] == 0:
        shape = (*x.shape[:place], *x.shape[place + 1:])
        values, counts = jnp.full(shape, math.nan, float), jnp.zeros(shape)
    else:
        ordered = jnp.moveaxis(jnp.sort(x, place), place, -1)
        size = ordered.shape[-1]
        index = jnp.arange(size)
        # the length of the run of equal values up to each place, nan being one of them
        differs = (ordered[..., 1:] != ordered[..., :-1]) & ~(
            jnp.isnan(ordered[..., 1:]) & jnp.isnan(ordered[..., :-1]))
        begins = jnp.concatenate([jnp.ones_like(ordered[..., :1], bool), differs], -1)
        starts = jnp.maximum.accumulate(jnp.where(begins, index, 0), axis=-1)
        lengths = index - starts + 1
        best = jnp.argmax(lengths, -1)[..., None]
        values = jnp.take_along_axis(ordered, best, -1)[..., 0]
        counts = jnp.take_along_axis(lengths, best, -1)[..., 0]
        if is_complex(x):
            values = strong(values)
    if keepdims:
        axes = tuple(range(ndim)) if axis is None else (place,)
        values, counts = jnp.expand_dims(values, axes), jnp.expand_dims(counts, axes)
    return ModeResult(values, counts)


@numpy_function(static_argnames=("method", "axis", "nan_policy"))
def rankdata(a: ArrayLike, method: str = "average", *, axis: int | None = None,
             nan_policy: str = "propagate") -> Array:
    """The ranks of the elements, from 1.

    Args:
      a: array.
      method: what equal elements get: the "average", "min" or "max" of their ranks, "dense" ranks
        without gaps, or "ordinal" ranks in order of place.
      axis: int, or None for the ranks among all elements, flattened.
      nan_policy: "propagate": a slice with nan gives nan.

    Returns:
      An array of the default float dtype.

    Raises:
      NotImplementedError: another `nan_policy`.
      ValueError: an unknown method.

    >>> import pyjx as jax
    >>> jax.scipy.stats.rankdata(jax.numpy.array([0, 2, 2, 5])).tolist()
    [1.0, 2.5, 2.5, 4.0]
    """
    check_arraylike("rankdata", a)
    _check_policy("rankdata", nan_policy, ("propagate",))
    if method not in (known := ("average", "min", "max", "dense", "ordinal")):
        raise ValueError(f"unknown method '{method}'; there are {known}")
    x = as_array(a)
    x, place = _flat(x, axis)
    x = jnp.moveaxis(x, place, -1)
    order = jnp.argsort(x, -1)
    ordered = jnp.take_along_axis(x, order, -1)
    size = x.shape[-1]
    index = jnp.broadcast_to(jnp.arange(size), x.shape)
    back = jnp.argsort(order, -1)
    if method == "ordinal" or size == 0:
        ranks = index + 1
    else:
        differs = ordered[..., 1:] != ordered[..., :-1]
        edge = jnp.ones_like(ordered[..., :1], bool)
        begins = jnp.concatenate([edge, differs], -1)
        first = jnp.maximum.accumulate(jnp.where(begins, index, 0), axis=-1)
        ends = jnp.concatenate([differs, edge], -1)
        last = jnp.flip(jnp.minimum.accumulate(
            jnp.flip(jnp.where(ends, index, size), -1), axis=-1), -1)
        ranks = {"min": lambda: first + 1, "max": lambda: last + 1,
                 "dense": lambda: jnp.cumsum(begins, -1),
                 "average": lambda: (first + last) / 2 + 1}[method]()
    ranks = jnp.take_along_axis(ranks, back, -1)
    ranks = jnp.where(jnp.isnan(x).any(-1, keepdims=True), math.nan, ranks.astype(float))
    return jnp.moveaxis(ranks, -1, place)


@numpy_function(static_argnames=("axis", "ddof", "nan_policy", "keepdims"))
def sem(a: ArrayLike, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *,
        keepdims: bool = False) -> Array:
    """The standard error of the mean: the standard deviation over the root of the number.

    Args:
      a: array.
      axis: int, or None for all elements.
      ddof: what is taken from the number of elements in the variance.
      nan_policy: "propagate", or "omit" to leave out nan.
      keepdims: whether the axis stays, with size 1.

    Raises:
      NotImplementedError: `nan_policy` is "raise".

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.sem(jax.numpy.array([2.0, 4.0, 1.0, 1.0]))), 4)
    0.7071
    """
    check_arraylike("sem", a)
    _check_policy("sem", nan_policy, ("propagate", "omit"))
    x = as_array(promote_inexact("sem", a))
    where = ~jnp.isnan(x) if nan_policy == "omit" else None
    size = (reductions.count_of(get_aval(x), *((tuple(range(x.ndim)), ()) if axis is None
                                               else ((canonical_axis(axis, x.ndim),), ())))
            if where is None else where.sum(axis, keepdims=keepdims))
    deviation = jnp.std(x, axis, ddof=ddof, keepdims=keepdims, where=where)
    return deviation / jnp.sqrt(jnp.asarray(size, x.dtype))
