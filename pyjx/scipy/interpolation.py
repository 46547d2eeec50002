"""Interpolation: between the points of a rectangular grid, and between the pixels of an image."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike
from pyjx.numpy.operands import numpy_function
from pyjx.numpy.promotion import check_arraylike, operands, promote_dtypes_inexact
from pyjx.numpy.ufuncs import as_array
from pyjx.tree_util import register_pytree_node_class

# -- between the points of a grid ------------------------------------------------------------------


@register_pytree_node_class
class RegularGridInterpolator:
    """Interpolates values that are given on a rectangular grid: a pytree of its arrays.

    Args:
      points: sequence of n arrays: the coordinates of the grid along each axis, increasing.
      values: array of shape (m_1, ..., m_n, ...).
      method: "linear" or "nearest".
      bounds_error: false; errors cannot depend on values.
      fill_value: what is returned outside of the grid; None extrapolates.

    Raises:
      NotImplementedError: `bounds_error` is true.
      ValueError: the shapes do not match, or the method is unknown.

    >>> import pyjx as jax
    >>> grid = (jax.numpy.arange(3.0), jax.numpy.arange(2.0))
    >>> f = jax.scipy.interpolate.RegularGridInterpolator(grid, jax.numpy.arange(6.0).reshape(3, 2))
    >>> f(jax.numpy.array([[0.5, 0.5]])).tolist()
    [1.5]
    """

    def __init__(self, points: Sequence[Any], values: ArrayLike, method: str = "linear",
                 bounds_error: bool = False, fill_value: ArrayLike = math.nan) -> None:
        if method not in ("linear", "nearest"):
            raise ValueError(f"method {method!r} is not defined; 'linear' and 'nearest' are")
        if bounds_error:
            raise NotImplementedError("`bounds_error` takes no effect under JIT")
        check_arraylike("RegularGridInterpolator", values, *points)
        self.method, self.fill_value = method, fill_value
        self.bounds_error: bool = bounds_error
        (self.values,) = map(as_array, promote_dtypes_inexact(*operands(
            "RegularGridInterpolator", values)))
        if len(points) > self.values.ndim:
            raise ValueError(f"there are {len(points)} point arrays, but values has "
                             f"{self.values.ndim} dimensions")
        if fill_value is not None:
            check_arraylike("RegularGridInterpolator", fill_value)
            if not jnp.can_cast(jnp.asarray(fill_value).dtype, self.values.dtype, "same_kind"):
                raise ValueError("fill_value must be either 'None' or of a type compatible with "
                                 "values")
        self.grid = tuple(jnp.asarray(p) for p in points)
        for i, p in enumerate(self.grid):
            if p.ndim != 1:
                raise ValueError(f"the points in dimension {i} must be 1-dimensional")
            if self.values.shape[i] != len(p):
                raise ValueError(f"there are {len(p)} points and {self.values.shape[i]} values in "
                                 f"dimension {i}")

    def tree_flatten(self) -> tuple[tuple[Any, Any, Any], tuple[str, bool]]:
        return (self.grid, self.values, self.fill_value), (self.method, self.bounds_error)

    @classmethod
    def tree_unflatten(cls, aux: tuple[str, bool], children: tuple[Any, Any, Any]
                       ) -> RegularGridInterpolator:
        new = object.__new__(cls)
        new.method, new.bounds_error = aux
        new.grid, new.values, new.fill_value = children
        return new

    def __call__(self, xi: Any, method: str | None = None) -> Array:
        """The values at points: an array of shape (..., n), or a sequence of n arrays.

        A vector holds the coordinates of one point after those of another.

        Returns:
          An array of shape (..., *values.shape[n:]).
        """
        method = self.method if method is None else method
        if method not in ("linear", "nearest"):
            raise ValueError(f"method {method!r} is not defined; 'linear' and 'nearest' are")
        n = len(self.grid)
        vector = not isinstance(xi, (tuple, list)) or (n == 1 != len(xi))
        xi = jnp.asarray(xi) if vector else jnp.stack(
            jnp.broadcast_arrays(*map(jnp.asarray, xi)), -1)
        if vector and xi.ndim == 1 and xi.size % n == 0:
            xi = xi.reshape(-1, n)
        if xi.shape[-1:] != (n,):
            raise ValueError(f"the requested sample points xi have dimension {xi.shape[-1]}, but "
                             f"this RegularGridInterpolator has dimension {n}")
        x = [xi[..., i] for i in range(n)]
        indices, fractions = zip(*map(self._place, self.grid, x), strict=True)
        if method == "nearest":
            nearest = tuple(jnp.where(f <= 0.5, i, i + 1)
                            for i, f in zip(indices, fractions, strict=True))
            out = self.values[tuple(jnp.minimum(i, len(p) - 1)
                                    for i, p in zip(nearest, self.grid, strict=True))]
        else:
            out = self._between(indices, fractions)
        if self.fill_value is not None:
            outside = jnp.zeros(x[0].shape, bool)
            for p, y in zip(self.grid, x, strict=True):
                outside = outside | (y < p[0]) | (y > p[-1])
            outside = outside.reshape(outside.shape + (1,) * (out.ndim - outside.ndim))
            out = jnp.where(outside, self.fill_value, out)
        return out

    @staticmethod
    def _place(grid: Array, x: Array) -> tuple[Array, Array]:
        """The cell of each coordinate, and how far it is through that cell."""
        if len(grid) == 1:
            return jnp.zeros(x.shape, int), jnp.zeros(x.shape, jnp.result_type(x, float))
        i = jnp.clip(jnp.searchsorted(grid, x) - 1, 0, len(grid) - 2)
        return i, (x - grid[i]) / (grid[i + 1] - grid[i])

    def _between(self, indices: Sequence[Array], fractions: Sequence[Array]) -> Array:
        total: Any = 0
        for corner in itertools.product((0, 1), repeat=len(indices)):
            weight: Any = 1
            for side, f in zip(corner, fractions, strict=True):
                weight = weight * (f if side else 1 - f)
            at = tuple(jnp.minimum(i + side, len(p) - 1)
                       for i, side, p in zip(indices, corner, self.grid, strict=True))
            value = self.values[at]
            total = total + value * weight.reshape(weight.shape + (1,) * (value.ndim - weight.ndim))
        return total


# -- between the pixels of an image ----------------------------------------------------------------


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
    if jnp.iscomplexobj(cval) and not jnp.iscomplexobj(image):
        raise TypeError(f"map_coordinates: cval must be a real number for an image of dtype "
                        f"{image.dtype}, got a complex one. Take its real part first.")
    cval = jnp.asarray(cval, image.dtype)
    if len(places) != image.ndim:
        raise ValueError("coordinates must be a sequence of length input.ndim, but "
                         f"{len(places)} != {image.ndim}")
    if mode not in _OUTSIDE:
        raise NotImplementedError("jax.scipy.ndimage.map_coordinates does not yet support mode "
                                  f"{mode}. Currently supported modes are {set(_OUTSIDE)}.")
    if order not in (0, 1):
        raise NotImplementedError("jax.scipy.ndimage.map_coordinates currently requires order<=1")
    along = []
    for place, size in zip(places, image.shape, strict=True):
        parts = [(_rounded(place).astype(int), 1)] if order == 0 else _neighbours(place)
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
