"""Values of an image between its pixels."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike
from pyjx.numpy.dispatch import numpy_function


def _reflected(index: Array, size: int) -> Array:
    # d c b a | a b c d | d c b a
    return jnp.floor_divide(_mirrored(2 * index + 1, 2 * size + 1), 2)


def _mirrored(index: Array, size: int) -> Array:
    # d c b | a b c d | c b a
    last = size - 1
    return jnp.abs((index + last) % (2 * last) - last) if last else jnp.zeros_like(index)


def _clamped(index: Array, size: int) -> Array:
    # a a a | a b c d | d d d
    return jnp.clip(index, 0, size - 1)


# Which pixel stands for an index outside of the image.
_OUTSIDE: dict[str, Callable[[Array, int], Array]] = {
    "constant": lambda index, size: index,
    "nearest": _clamped,
    "wrap": lambda index, size: index % size,
    "mirror": _mirrored,
    "reflect": _reflected,
}


def _rounded(x: Array) -> Array:
    """To the nearest integer, halves away from 0."""
    if jnp.issubdtype(x.dtype, jnp.integer):
        return x
    return jnp.trunc(x + jnp.copysign(jnp.asarray(0.5, x.dtype), x))


def _nearest(x: Array) -> list[tuple[Array, Any]]:
    return [(_rounded(x).astype(int), 1)]


def _neighbours(x: Array) -> list[tuple[Array, Any]]:
    low = jnp.floor(x)
    above = x - low
    index = low.astype(int)
    return [(index, 1 - above), (index + 1, above)]


@numpy_function(static_argnames=("order", "mode"))
def map_coordinates(input: ArrayLike, coordinates: Sequence[Any], order: int,
                    mode: str = "constant", cval: ArrayLike = 0.0) -> Array:
    """The values of an image at any coordinates, by interpolation.

    Args:
      input: array.
      coordinates: a sequence of arrays of one shape, one for each axis of `input`, or an array of
        which they are the slices.
      order: 0 for the nearest pixel, 1 for linear interpolation. SciPy has splines too.
      mode: what lies outside: "constant" (`cval`), "nearest" (the edge), "wrap" (the image again,
        after its last pixel), "mirror" (mirrored about the centre of the edge pixel) or "reflect"
        (about its outer end).
      cval: the value outside for the mode "constant".

    Returns:
      An array of the shape of a coordinate and the dtype of `input`.

    Raises:
      NotImplementedError: another `order` or `mode`.
      ValueError: there are not as many coordinates as axes.

    >>> import pyjx as jax
    >>> x = jax.numpy.arange(4.0)
    >>> jax.scipy.ndimage.map_coordinates(x, [jax.numpy.array([0.5, 5.0])], 1).tolist()
    [0.5, 0.0]
    """
    image = jnp.asarray(input)
    places = [jnp.asarray(c) for c in coordinates]
    cval = jnp.asarray(cval, image.dtype)
    if len(places) != image.ndim:
        raise ValueError("coordinates must be a sequence of length input.ndim, but "
                         f"{len(places)} != {image.ndim}")
    if mode not in _OUTSIDE:
        raise NotImplementedError(
            f"jax.scipy.ndimage.map_coordinates does not yet support mode {mode}. Currently "
            f"supported modes are {set(_OUTSIDE)}.")
    if order not in (0, 1):
        raise NotImplementedError("jax.scipy.ndimage.map_coordinates currently requires order<=1")
    along = []
    for place, size in zip(places, image.shape, strict=True):
        parts = _nearest(place) if order == 0 else _neighbours(place)
        along.append([(_OUTSIDE[mode](index, size), (index >= 0) & (index < size), weight)
                      for index, weight in parts])
    total: Any = None
    for corner in itertools.product(*along):
        value = image[tuple(index for index, _, _ in corner)]
        if mode == "constant":
            inside = functools.reduce(operator.and_, [valid for _, valid, _ in corner])
            value = jnp.where(inside, value, cval)
        term = functools.reduce(operator.mul, [weight for _, _, weight in corner], value)
        total = term if total is None else total + term
    return (_rounded(total) if jnp.issubdtype(image.dtype, jnp.integer) else total).astype(
        image.dtype)
