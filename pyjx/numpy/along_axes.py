"""Functions applied along axes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from pyjx import lax
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import get_aval
from pyjx.numpy.axes import canonical_axis
from pyjx.numpy.creation import asarray
from pyjx.numpy.promotion import operands
from pyjx.transforms.vmap import vmap


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: ArrayLike, *args: Any,
                     **kwargs: Any) -> Array:
    """A function of vectors applied to those along an axis, all at once by `vmap`.

    Args:
      func1d: takes an array of rank 1 and `args` and `kwargs`; returns an array.
      axis: the axis, which the axes of the results replace.
      arr: array.
      *args, **kwargs: what the function gets besides.

    Returns:
      An array of the axes of `arr`, but that those of one result stand in the place of `axis`.

    Raises:
      ValueError: there is no such axis.

    >>> import pyjx as jax
    >>> jax.numpy.apply_along_axis(jax.numpy.sum, 1, jax.numpy.ones((2, 3))).tolist()
    [3.0, 3.0]
    """
    (arr,) = operands("apply_along_axis", arr)
    ndim = get_aval(arr).ndim
    axis = canonical_axis(axis, ndim)
    function: Any = functools.partial(_call, func1d, args, kwargs)
    for _ in range(ndim - axis - 1):
        function = vmap(function, in_axes=-1, out_axes=-1)
    for _ in range(axis):
        function = vmap(function)
    return function(arr)  # type: ignore[no-any-return]


def _call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], x: ArrayLike
          ) -> Any:
    return function(x, *args, **kwargs)


def apply_over_axes(func: Callable[[Any, int], Any], a: Array, axes: Sequence[int]) -> Array:
    """A function of an array and an axis applied for one axis after the other.

    Args:
      func: takes an array and an axis; returns an array with or without that axis. One that went
        comes again with size 1.
      a: array.
      axes: the axes.

    Returns:
      What the last call of the function gives: an array of as many axes as `a`.

    Raises:
      ValueError: a result has another rank.

    >>> import pyjx as jax
    >>> jax.numpy.apply_over_axes(jax.numpy.sum, jax.numpy.ones((2, 3)), [0, 1]).tolist()
    [[6.0]]
    """
    (a,) = operands("apply_over_axes", a)
    ndim = get_aval(a).ndim
    for axis in axes:
        out = func(a, axis)
        if get_aval(out).ndim == ndim - 1:
            out = lax.expand_dims(out, (axis,))
        elif get_aval(out).ndim != ndim:
            raise ValueError("function is not returning an array of the correct shape")
        a = out
    return asarray(a)
