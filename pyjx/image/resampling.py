"""Images at another size: along each axis a matrix of weights, which a kernel gives.

Pixel j covers [j, j + 1], so its centre is at j + 1/2.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.integers import as_sizes
from pyjx.lax.contractions import PrecisionLike
from pyjx.numpy.operands import canonical_axis, numpy_function
from pyjx.numpy.promotion import check_arraylike, promote_dtypes_inexact
from pyjx.numpy.ufuncs import as_array


class ResizeMethod(enum.Enum):
    """How `resize` and `scale_and_translate` find values between pixels.

    >>> import pyjx as jax
    >>> jax.image.ResizeMethod.from_string("bilinear")
    <ResizeMethod.LINEAR: 1>
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method of a name.

        Raises:
          ValueError: there is none.
        """
        for method, names in _NAMES.items():
            if s in names:
                return method
        known = ", ".join([repr(name) for names in _NAMES.values() for name in names])
        raise ValueError(f'Unknown resize method "{s}". The methods are {known}.')


_NAMES = {
    ResizeMethod.NEAREST: ("nearest",),
    ResizeMethod.LINEAR: ("linear", "bilinear", "trilinear", "triangle"),
    ResizeMethod.LANCZOS3: ("lanczos3",),
    ResizeMethod.LANCZOS5: ("lanczos5",),
    ResizeMethod.CUBIC: ("cubic", "bicubic", "tricubic"),
    ResizeMethod.CUBIC_PYTORCH: ("cubic-pytorch", "bicubic-pytorch"),
    ResizeMethod.AREA: ("area",),
}


# -- kernels: the weight of a pixel at a distance x >= 0 -------------------------------------------


def _cubic(x: Array, a: float) -> Array:
    # R. G. Keys, Cubic convolution interpolation for digital image processing (1981)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = a * (((x - 5) * x + 8) * x - 4)
    return jnp.where(x < 1, near, jnp.where(x < 2, far, 0))


def _kernel(method: ResizeMethod, antialias: bool, x: Array) -> Array:
    if method is ResizeMethod.LINEAR:
        return jnp.maximum(0, 1 - x)
    if method in (ResizeMethod.LANCZOS3, ResizeMethod.LANCZOS5):
        radius = 3.0 if method is ResizeMethod.LANCZOS3 else 5.0
        return jnp.where(x < radius, jnp.sinc(x) * jnp.sinc(x / radius), 0)
    return _cubic(x, -0.75 if method is ResizeMethod.CUBIC_PYTORCH and not antialias else -0.5)


# -- weights along an axis -------------------------------------------------------------------------


def _weights(size: int, new_size: int, scale: Array, translation: Array, method: ResizeMethod,
             antialias: bool) -> Array:
    """The matrix of shape (size, new_size) along an axis."""
    dtype = jnp.result_type(scale, translation)
    inverse = 1 / scale
    # the sample of pixel i of the result, where centres of pixels are integers
    sample = ((jnp.arange(new_size, dtype=dtype) + 0.5) * inverse - translation * inverse - 0.5)
    inside = ((sample >= -0.5) & (sample <= size - 0.5))[None, :]
    if method is ResizeMethod.AREA:
        return jnp.where(inside, _overlaps(size, new_size, inverse, translation), 0)
    width = jnp.maximum(inverse, 1) if antialias else 1
    pad = 2 if method is ResizeMethod.CUBIC_PYTORCH and not antialias else 0
    place = jnp.arange(-pad, size + pad, dtype=dtype)
    weights = _kernel(method, antialias, jnp.abs(sample[None, :] - place[:, None]) / width)
    if pad:  # pixels beyond an edge are like the one on it
        weights = jnp.concatenate([
            weights[:pad + 1].sum(0, keepdims=True), weights[pad + 1:pad + size - 1],
            weights[pad + size - 1:].sum(0, keepdims=True),
        ]) if size > 1 else weights.sum(0, keepdims=True)
    total = weights.sum(0, keepdims=True)
    big = jnp.abs(total) > 1000 * float(dtypes.finfo(np.dtype(np.float32)).eps)
    weights = jnp.where(big, weights / jnp.where(total != 0, total, 1), 0)
    return weights if pad else jnp.where(inside, weights, 0)


def _overlaps(size: int, new_size: int, inverse: Array, translation: Array) -> Array:
    """The part of each pixel of the result that each pixel of the image covers."""
    dtype = jnp.result_type(inverse, translation)
    start = (jnp.arange(new_size, dtype=dtype)[None] - translation) * inverse
    place = jnp.arange(size, dtype=dtype)[:, None]
    covered = jnp.minimum(start + inverse, place + 1) - jnp.maximum(start, place)
    covered = jnp.maximum(covered, 0)
    total = covered.sum(0, keepdims=True)
    return jnp.where(total > 0, covered / jnp.where(total > 0, total, 1), 0)


def _resample(x: Array, shape: tuple[int, ...], axes: Sequence[int], scale: Sequence[Array],
              translation: Sequence[Array], method: ResizeMethod, antialias: bool,
              precision: PrecisionLike) -> Array:
    work = list(zip(axes, scale, translation, strict=True))
    if all([type(x.shape[axis]) is type(shape[axis]) is int for axis in axes]):
        work.sort(key=lambda of: shape[of[0]] / x.shape[of[0]])  # what shrinks most goes first
    for axis, s, t in work:
        weights = _weights(x.shape[axis], shape[axis], s, t, method, antialias).astype(x.dtype)
        out = lax.dot_general(x, weights, (((axis,), (0,)), ((), ())), precision=precision)
        x = jnp.moveaxis(out, -1, axis)
    return x


def _method(method: Any) -> ResizeMethod:
    if isinstance(method, str):
        return ResizeMethod.from_string(method)
    if not isinstance(method, ResizeMethod):
        raise TypeError(f"expected a ResizeMethod or its name, got {method!r}")
    return method


def _check_shape(name: str, x: Array, shape: Any) -> tuple[int, ...]:
    shape = as_sizes(name, "shape", shape)
    if len(shape) != x.ndim:
        raise ValueError("shape must have length equal to the number of dimensions of x;  "
                         f"{shape} vs {x.shape}")
    if 0 in x.shape and 0 not in shape:
        raise ValueError(f"{name}: expected an image that has pixels, got shape {x.shape}.")
    return shape


# -- public functions ------------------------------------------------------------------------------


@numpy_function(static_argnames=("shape", "spatial_dims", "method", "antialias", "precision"))
def scale_and_translate(image: Any, shape: Sequence[int], spatial_dims: Sequence[int], scale: Any,
                        translation: Any, method: str | ResizeMethod, antialias: bool = True,
                        precision: Any = lax.Precision.HIGHEST) -> Array:
    """An image, scaled and moved: what was at x along an axis is at x * scale + translation.

    Pixels that come from outside of the image are 0.

    Args:
      image: array.
      shape: of the result, as long as that of the image.
      spatial_dims: the K axes that are scaled.
      scale, translation: arrays of shape (K,).
      method: `ResizeMethod` or its name, such as "linear", "cubic", "lanczos3"; not "nearest".
      antialias: whether the kernel widens where the image shrinks.
      precision: of the products with the weights.

    Raises:
      ValueError: the lengths do not match, or the method is unknown or "nearest".

    >>> import pyjx as jax
    >>> x = jax.numpy.arange(3.0)
    >>> one = jax.numpy.ones(1)
    >>> jax.image.scale_and_translate(x, (3,), (0,), one, one, "linear").tolist()
    [0.0, 0.0, 1.0]
    """
    check_arraylike("scale_and_translate", image, scale, translation)
    (x,) = (as_array(a) for a in promote_dtypes_inexact(image))
    shape = _check_shape("scale_and_translate", x, shape)
    method = _method(method)
    if method is ResizeMethod.NEAREST:
        raise ValueError("Nearest neighbor resampling is not currently supported for "
                         "scale_and_translate.")
    axes = [canonical_axis(axis, x.ndim) for axis in spatial_dims]
    scale, translation = (as_array(a) for a in promote_dtypes_inexact(scale, translation))
    for name, a in (("scale", scale), ("translation", translation)):
        if a.shape != (len(axes),):
            raise ValueError(f"scale_and_translate: expected {name} of shape ({len(axes)},), one "
                             f"for each of the axes {tuple(spatial_dims)}, got {a.shape}")
    return _resample(x, shape, axes, list(scale), list(translation), method, antialias, precision)


def _nearest(x: Array, shape: tuple[int, ...]) -> Array:
    for axis, (old, new) in enumerate(zip(x.shape, shape, strict=True)):
        if old != new:
            numbers = np.arange(new) if type(old) is type(new) is int else jnp.arange(new)
            place = (2 * numbers + 1) * old // (2 * new)  # floor((i + 1/2) old/new)
            at = (slice(None),) * axis + (place,)
            x = x.at[at].get(mode="promise_in_bounds", wrap_negative_indices=False)
    return x


@numpy_function(static_argnames=("shape", "method", "antialias", "precision"))
def resize(image: ArrayLike, shape: Sequence[int], method: str | ResizeMethod,
           antialias: bool = True, precision: PrecisionLike = lax.Precision.HIGHEST) -> Array:
    """An image at another size.

    Args:
      image: array.
      shape: of the result, as long as that of the image; axes whose size stays are not touched.
      method: `ResizeMethod` or its name: "nearest", "linear", "cubic", "cubic-pytorch", "lanczos3",
        "lanczos5" or "area".
      antialias: whether the kernel widens where the image shrinks.
      precision: of the products with the weights.

    Returns:
      An array of that shape; of float dtype, unless the method is "nearest".

    Raises:
      ValueError: the length of `shape` does not match, or the method is unknown.

    >>> import pyjx as jax
    >>> jax.image.resize(jax.numpy.array([0.0, 2.0]), (4,), "linear").tolist()
    [0.0, 0.5, 1.5, 2.0]
    """
    check_arraylike("resize", image)
    x = as_array(image)
    shape = _check_shape("resize", x, shape)
    method = _method(method)
    if method is ResizeMethod.NEAREST:
        return _nearest(x, shape)
    (x,) = promote_dtypes_inexact(x)
    x = as_array(x)
    axes = [i for i in range(x.ndim) if x.shape[i] != shape[i]]
    if not math.prod(shape) or not x.size:
        return jnp.zeros(shape, x.dtype)
    wide = np.float64 if x.dtype in (np.float64, np.complex128) else np.float32
    scale = [jnp.asarray(shape[i] / x.shape[i], wide) for i in axes]
    return _resample(x, shape, axes, scale, [jnp.zeros((), wide)] * len(axes), method, antialias,
                     precision)
