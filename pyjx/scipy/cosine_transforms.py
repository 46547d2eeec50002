"""Discrete cosine transforms of the second type, y_k = 2 sum_j x_j cos(pi k (2 j + 1) / (2 n)).

With v the even elements of x followed by the odd ones in reverse, and V its Fourier transform,

  W_k = exp(-i pi k / (2 n)) V_k,    y_k = 2 Re W_k,    y_(n-k) = -2 Im W_k

(J. Makhoul, "A fast cosine transform in one and two dimensions", IEEE Trans. ASSP 28, 1980).
V is the transform of real numbers, so its first half gives all of y; and the inverse makes that
half from y, 2 V_k = exp(i pi k / (2 n)) (y_k - i y_(n-k)) with y_n = 0. Complex numbers are
transformed part by part.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike, AxisLike, DTypeLike
from pyjx.core.avals import get_aval
from pyjx.core.scalars import scalar_constant
from pyjx.lax.elementwise import complex_dtype, real_dtype
from pyjx.numpy.fft.transforms import resized
from pyjx.numpy.operands import as_tuple, canonical_axis, is_complex, numpy_function
from pyjx.numpy.promotion import convert, operands, promote_dtypes_inexact


def _checked(name: str, x: ArrayLike, kind: int, norm: str | None) -> Any:
    if kind != 2:
        raise NotImplementedError("Only DCT type 2 is implemented.")
    if norm not in (None, "backward", "ortho"):
        raise ValueError(f"jax.scipy.fft.{name}: norm={norm!r} is not implemented")
    (x,) = promote_dtypes_inexact(*operands(name, x))
    return convert(x, np.promote_types(get_aval(x).dtype, np.float32))


def _by_parts(transform: Callable[..., Any], x: ArrayLike, *args: Any) -> Any:
    if is_complex(x):
        return lax.complex(transform(lax.real(x), *args), transform(lax.imag(x), *args))
    return transform(x, *args)


def _along_one(name: str, transform: Callable[..., Any], x: ArrayLike, kind: int, n: int | None,
               axis: int, norm: str | None) -> Any:
    x = _checked(name, x, kind, norm)
    axis = canonical_axis(axis, get_aval(x).ndim)
    size = get_aval(x).shape[axis] if n is None else operator.index(n)
    if size < 1:
        raise ValueError(f"{name}: n, the number of data points, must be positive, got {size}.")
    return _by_parts(transform, resized(x, [size], [axis]), axis, norm)


def _along_several(name: str, transform: Callable[..., Any], x: ArrayLike, kind: int,
                   s: int | Sequence[int] | None, axes: AxisLike, norm: str | None) -> Any:
    shape = get_aval(*operands(name, x)).shape
    axes = None if axes is None else as_tuple(axes)
    if not shape and not axes:
        return jnp.asarray(x)  # of no axes the number itself
    x = _checked(name, x, kind, norm)
    if s is not None:
        s = [operator.index(n) for n in (s if isinstance(s, (list, tuple)) else (s,))]
    if axes is None:
        axes = range(len(shape) - len(s or shape), len(shape))
    places = [canonical_axis(axis, len(shape)) for axis in axes]
    if len(set(places)) != len(places):
        raise ValueError(f"repeated axis: {tuple(axes)}")
    sizes = [shape[i] for i in places] if s is None else s
    if len(sizes) != len(places):
        raise ValueError(f"{name}: s has {len(sizes)} lengths for {len(places)} axes.")
    if min(sizes, default=1) < 1:
        raise ValueError(f"{name}: s, the numbers of data points, must be positive, got {sizes}.")
    x = resized(x, sizes, places)
    for axis in places:
        x = _by_parts(transform, x, axis, norm)
    return x


def _along(values: ArrayLike, ndim: int, axis: int) -> Any:
    """Numbers along one axis, to stand beside an array of `ndim` axes."""
    shape = [1] * ndim
    shape[axis] = -1
    return jnp.reshape(values, shape)


def _angles(size: int, count: int, dtype: DTypeLike) -> Any:
    """pi k / (2 size) for k < count."""
    return lax.mul(lax.iota(dtype, count), scalar_constant(math.pi / (2 * size), dtype))


def _unit_scale(size: int, ndim: int, axis: int, dtype: DTypeLike) -> Any:
    """What makes the transform orthogonal: 1 / sqrt(4 n) for k = 0, 1 / sqrt(2 n) for others."""
    first = lax.eq(lax.iota(np.int32, size), np.int32(0))
    return _along(lax.select(first, lax.full((size,), (4 * size) ** -0.5, dtype),
                             lax.full((size,), (2 * size) ** -0.5, dtype)), ndim, axis)


def _cosine(x: ArrayLike, axis: int, norm: str | None) -> Any:
    aval = get_aval(x)
    n = aval.shape[axis]
    evens = lax.slice_in_dim(x, 0, n, 2, axis)
    odds = lax.slice_in_dim(x, 1, n, 2, axis) if n > 1 else lax.slice_in_dim(x, 1, 1, 1, axis)
    v = lax.concatenate([evens, lax.rev(odds, (axis,))], axis)
    transform = jnp.fft.rfft(v, axis=axis)
    half = n // 2 + 1
    angles = _along(_angles(n, half, aval.dtype), aval.ndim, axis)
    turned = transform * lax.complex(lax.cos(angles), lax.neg(lax.sin(angles)))
    start = lax.mul(lax.real(turned), scalar_constant(2, aval.dtype))
    tail = lax.slice_in_dim(lax.imag(turned), 1, n - half + 1, axis=axis)
    end = lax.mul(lax.rev(tail, (axis,)), scalar_constant(-2, aval.dtype))
    y = lax.concatenate([start, end], axis)
    return y * _unit_scale(n, aval.ndim, axis, aval.dtype) if norm == "ortho" else y


def _inverse_cosine(y: ArrayLike, axis: int, norm: str | None) -> Any:
    aval = get_aval(y)
    n = aval.shape[axis]
    if norm == "ortho":
        y = y / _unit_scale(n, aval.ndim, axis, aval.dtype)
    half = n // 2 + 1
    start = lax.slice_in_dim(y, 0, half, axis=axis)
    # y_n = 0, y_(n-1), ..., y_(n - n // 2)
    config = [(0, 0, 0)] * aval.ndim
    config[axis] = (1, 0, 0)
    end = lax.pad(lax.rev(lax.slice_in_dim(y, n - half + 1, n, axis=axis), (axis,)),
                  scalar_constant(0, aval.dtype), config)
    angles = _along(_angles(n, half, aval.dtype), aval.ndim, axis)
    turn = lax.complex(lax.cos(angles), lax.sin(angles))
    spectrum = lax.complex(start, lax.neg(end)) * turn * scalar_constant(
        0.5, complex_dtype(real_dtype(aval.dtype)))
    v = jnp.fft.irfft(spectrum, n, axis)
    return _interleaved(lax.slice_in_dim(v, 0, (n + 1) // 2, axis=axis),
                        lax.rev(lax.slice_in_dim(v, (n + 1) // 2, n, axis=axis), (axis,)), axis)


def _interleaved(evens: Any, odds: Any, axis: int) -> Any:
    """x_0 of the first, x_0 of the second, x_1 of the first, ..."""
    aval, n = get_aval(evens), get_aval(evens).shape[axis] + get_aval(odds).shape[axis]
    zero = scalar_constant(0, aval.dtype)
    config = [(0, 0, 0)] * aval.ndim
    config[axis] = (0, 1 - n % 2, 1)
    spread = lax.pad(evens, zero, config)
    config[axis] = (1, n % 2, 1) if n > 1 else (1, 0, 0)
    return lax.add(spread, lax.pad(odds, zero, config))


@numpy_function(static_argnames=("type", "n", "axis", "norm"))
def dct(x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
        ) -> Array:
    """The discrete cosine transform along an axis: y_k = 2 sum_j x_j cos(pi k (2 j + 1) / (2 n)).

    Args:
      x: array.
      type: 2, the only one there is.
      n: how many numbers are transformed; more than there are are zeros. By default all.
      axis: the axis.
      norm: None or "backward" for the sum above; "ortho" scales it to an orthogonal transform.

    Returns:
      An array of size n along the axis: float64 for 64-bit numbers, else float32, and the complex
      dtype of that for complex numbers.

    Raises:
      NotImplementedError: another type.
      ValueError: another norm, or n is not positive.

    >>> import pyjx as jax
    >>> jax.scipy.fft.dct(jax.numpy.ones(2)).tolist()
    [4.0, 0.0]
    """
    return _along_one("dct", _cosine, x, type, n, axis, norm)


@numpy_function(static_argnames=("type", "n", "axis", "norm"))
def idct(x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
         ) -> Array:
    """The inverse of `dct`. Takes the same arguments.

    Args:
      x: an array.
      type: the kind of transform: 2 alone.
      n: the number of coefficients: `x` is cut or followed by zeros to it.
      axis: the axis.
      norm: None or "ortho", as for `dct`.

    >>> import pyjx as jax
    >>> jax.scipy.fft.idct(jax.numpy.array([4.0, 0.0])).tolist()
    [1.0, 1.0]
    """
    return _along_one("idct", _inverse_cosine, x, type, n, axis, norm)


@numpy_function(static_argnames=("type", "s", "axes", "norm"))
def dctn(x: ArrayLike, type: int = 2, s: int | Sequence[int] | None = None, axes: AxisLike = None,
         norm: str | None = None) -> Array:
    """The discrete cosine transform along several axes: see `dct`.

    Args:
      x: array.
      type: 2, the only one there is.
      s: how many numbers are transformed along each of the axes; more than there are are zeros.
      axes: the axes, each once; by default the last `len(s)`, or all.
      norm: as for `dct`.

    Raises:
      ValueError: a length is not positive, or lengths and axes do not agree.

    >>> import pyjx as jax
    >>> jax.scipy.fft.dctn(jax.numpy.ones((2, 2))).tolist()
    [[16.0, 0.0], [0.0, 0.0]]
    """
    return _along_several("dctn", _cosine, x, type, s, axes, norm)


@numpy_function(static_argnames=("type", "s", "axes", "norm"))
def idctn(x: ArrayLike, type: int = 2, s: int | Sequence[int] | None = None, axes: AxisLike = None,
          norm: str | None = None) -> Array:
    """The inverse of `dctn`. Takes the same arguments.

    Args:
      x: an array.
      type: the kind of transform: 2 alone.
      s: the numbers of coefficients along the axes.
      axes: the axes; None for all, or for the last ones with `s`.
      norm: None or "ortho", as for `dctn`.

    >>> import pyjx as jax
    >>> jax.scipy.fft.idctn(jax.numpy.array([[16.0, 0.0], [0.0, 0.0]])).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    return _along_several("idctn", _inverse_cosine, x, type, s, axes, norm)
