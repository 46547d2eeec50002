"""Convolutions and correlations of arrays of any rank."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike
from pyjx.numpy.dispatch import numpy_function
from pyjx.numpy.operands import canonical_axis
from pyjx.numpy.promotion import check_arraylike, promote_dtypes_as_floats
from pyjx.numpy.ufuncs import as_array

if TYPE_CHECKING:
    from pyjx.lax.contractions import PrecisionLike

MODES = ("full", "same", "valid")


def _check_mode(mode: str) -> None:
    if mode not in MODES:
        raise ValueError(f"mode must be one of ['full', 'same', 'valid'], got {mode!r}")


def _operands(name: str, in1: ArrayLike, in2: ArrayLike) -> tuple[Array, Array]:
    check_arraylike(name, in1, in2)
    x, y = (as_array(a) for a in promote_dtypes_as_floats(in1, in2))
    if x.ndim != y.ndim:
        raise ValueError("in1 and in2 must have the same number of dimensions: in1 and in2 should "
                         f"have the same dimensionality, got shapes {x.shape} and {y.shape}")
    if not x.size or not y.size:
        raise ValueError("zero-size arrays not supported in convolutions, got shapes "
                         f"{x.shape} and {y.shape}.")
    return x, y


def _ordered(x: Array, y: Array, mode: str) -> tuple[Array, Array]:
    """For the mode "valid" the larger array first."""
    if mode != "valid":
        return x, y
    pairs = list(zip(x.shape, y.shape, strict=True))
    if all(m >= n for m, n in pairs):
        return x, y
    if all(m <= n for m, n in pairs):
        return y, x
    raise ValueError("For 'valid' mode one input must be smaller than the other in every "
                     f"dimension, got shapes {x.shape} and {y.shape}.")


def _direct(name: str, in1: ArrayLike, in2: ArrayLike, mode: str, precision: PrecisionLike
           ) -> Array:
    _check_mode(mode)
    x, y = _ordered(*_operands(name, in1, in2), mode)
    if not x.ndim:
        return x * y
    pads = {"full": [(n - 1, n - 1) for n in y.shape],
            "same": [(n // 2, (n - 1) // 2) for n in y.shape],
            "valid": [(0, 0)] * y.ndim}[mode]
    out = lax.conv_general_dilated(x[None, None], jnp.flip(y)[None, None], (1,) * x.ndim, pads,
                                   precision=precision)
    return out[0, 0]


def _flipped(in2: ArrayLike) -> Array:
    return jnp.conj(jnp.flip(in2))


def _check_method(method: str) -> None:
    if method not in ("auto", "direct", "fft"):
        raise ValueError(f"Got method='{method}'; expected 'auto', 'fft', or 'direct'.")


@numpy_function(static_argnames=("mode", "method", "precision"))
def convolve(in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto",
             precision: PrecisionLike = None) -> Array:
    """The convolution of two arrays of the same rank.

    Args:
      in1, in2: arrays.
      mode: "full", "same" (the shape of `in1`, from the middle) or "valid" (where the smaller one
        lies within the larger one).
      method: "auto" or "direct", or "fft" for `fftconvolve`.
      precision: of the products.

    Returns:
      An array of float or complex dtype.

    Raises:
      ValueError: the ranks differ, an array is empty, or the mode or method is unknown.

    >>> import pyjx as jax
    >>> x = jax.numpy.array([1.0, 2.0])
    >>> jax.scipy.signal.convolve(x, x).tolist()
    [1.0, 4.0, 4.0]
    """
    _check_method(method)
    if method == "fft":
        return fftconvolve(in1, in2, mode)
    return _direct("convolve", in1, in2, mode, precision)


@numpy_function(static_argnames=("mode", "method", "precision"))
def correlate(in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto",
              precision: PrecisionLike = None) -> Array:
    """The cross-correlation: the convolution with the conjugate of `in2`, backwards.

    Arguments and errors are those of `convolve`.

    Args:
      in1, in2: arrays with the same number of axes.
      mode: "full", "valid" or "same", as for `convolve`.
      method: "auto", "direct" or "fft", as for `convolve`.
      precision: what accelerators compute with, as for `convolve`.

    >>> import pyjx as jax
    >>> x = jax.numpy.array([1.0, 2.0])
    >>> jax.scipy.signal.correlate(x, x).tolist()
    [2.0, 5.0, 2.0]
    """
    check_arraylike("correlate", in1, in2)
    return convolve(in1, _flipped(in2), mode, method, precision)


def _check_two(name: str, in1: ArrayLike, in2: ArrayLike, boundary: str, fillvalue: ArrayLike
              ) -> None:
    if boundary != "fill" or fillvalue != 0:
        raise NotImplementedError(f"{name}() only supports boundary='fill', fillvalue=0")
    if jnp.ndim(in1) != 2 or jnp.ndim(in2) != 2:
        raise ValueError(f"{name}() only supports 2-dimensional inputs.")


@numpy_function(static_argnames=("mode", "boundary", "fillvalue", "precision"))
def convolve2d(in1: ArrayLike, in2: ArrayLike, mode: str = "full", boundary: str = "fill",
               fillvalue: ArrayLike = 0, precision: PrecisionLike = None) -> Array:
    """The convolution of two arrays of rank 2; arguments as for `convolve`.

    Args:
      in1, in2: arrays of two axes.
      mode: "full" for all places where the two overlap, "valid" for those where one is inside the
        other, "same" for the middle of "full", with the shape of `in1`.
      boundary: "fill" alone.
      fillvalue: 0 alone.
      precision: what accelerators compute with: None, a `lax.Precision` or its name, such as
        "highest".

    Raises:
      NotImplementedError: another `boundary` than zeros.
      ValueError: the ranks are others.

    >>> import pyjx as jax
    >>> jax.scipy.signal.convolve2d(jax.numpy.ones((2, 2)), jax.numpy.ones((1, 2))).tolist()
    [[1.0, 2.0, 1.0], [1.0, 2.0, 1.0]]
    """
    check_arraylike("convolve2d", in1, in2)
    _check_two("convolve2d", in1, in2, boundary, fillvalue)
    return _direct("convolve2d", in1, in2, mode, precision)


@numpy_function(static_argnames=("mode", "boundary", "fillvalue", "precision"))
def correlate2d(in1: ArrayLike, in2: ArrayLike, mode: str = "full", boundary: str = "fill",
                fillvalue: ArrayLike = 0, precision: PrecisionLike = None) -> Array:
    """The cross-correlation of two arrays of rank 2; arguments as for `convolve2d`.

    Args:
      in1, in2: arrays of two axes.
      mode: "full" for all places where the two overlap, "valid" for those where one is inside the
        other, "same" for the middle of "full", with the shape of `in1`.
      boundary: "fill" alone.
      fillvalue: 0 alone.
      precision: what accelerators compute with: None, a `lax.Precision` or its name, such as
        "highest".

    >>> import pyjx as jax
    >>> jax.scipy.signal.correlate2d(jax.numpy.ones((2, 2)), jax.numpy.ones((1, 2))).tolist()
    [[1.0, 2.0, 1.0], [1.0, 2.0, 1.0]]
    """
    check_arraylike("correlate2d", in1, in2)
    _check_two("correlate2d", in1, in2, boundary, fillvalue)
    _check_mode(mode)
    x, y = _operands("correlate2d", in1, in2)
    # SciPy gives, where `in2` is the larger one, the result of the other order backwards
    turned = mode == "valid" and _ordered(x, y, mode)[0] is not x
    if not turned and mode != "same":
        return _direct("correlate2d", x, _flipped(y), mode, precision)
    if turned:
        return jnp.flip(_direct("correlate2d", y, _flipped(x), mode, precision))
    full = _direct("correlate2d", x, _flipped(y), "full", precision)
    return full[tuple(slice(n // 2, n // 2 + m) for m, n in zip(x.shape, y.shape, strict=True))]


@numpy_function(static_argnames=("mode", "axes"))
def fftconvolve(in1: ArrayLike, in2: ArrayLike, mode: str = "full",
                axes: Sequence[int] | int | None = None) -> Array:
    """The convolution of two arrays by Fourier transforms.

    Args:
      in1, in2: arrays of the same rank.
      mode: as for `convolve`.
      axes: along which; all by default. Along others the arrays are broadcast, which the mode
        "same" takes the middle of, too.

    Raises:
      ValueError: the ranks differ, other axes do not broadcast, or the mode is unknown.

    >>> import pyjx as jax
    >>> x = jax.numpy.array([1.0, 2.0])
    >>> [round(float(y), 3) for y in jax.scipy.signal.fftconvolve(x, x)]
    [1.0, 4.0, 4.0]
    """
    _check_mode(mode)
    x, y = _operands("fftconvolve", in1, in2)
    if axes is None:
        along = list(range(x.ndim))
    else:
        along = [canonical_axis(operator.index(a), x.ndim)
                 for a in ((axes,) if isinstance(axes, int) else axes)]
        if len(set(along)) != len(along):
            raise ValueError("all axes must be unique")
    for i in range(x.ndim):
        if i not in along and x.shape[i] != y.shape[i] and 1 not in (x.shape[i], y.shape[i]):
            raise ValueError(f"incompatible shapes for in1 and in2: {x.shape} and {y.shape}")
    if mode == "valid":
        larger = [all(a.shape[i] >= b.shape[i] for i in along) for a, b in ((x, y), (y, x))]
        if not any(larger):
            raise ValueError("For 'valid' mode, One input must be at least as large as the other "
                             "in every dimension.")
        x, y = (x, y) if larger[0] else (y, x)
    if not along:
        return x * y
    m, n = x.shape, y.shape
    # One number along an axis is a factor: nan and infinities stay where they are.
    transformed = [i for i in along if 1 not in (m[i], n[i])]
    sizes = [m[i] + n[i] - 1 for i in transformed]
    real = not jnp.issubdtype(x.dtype, jnp.complexfloating)
    forward, backward = ((jnp.fft.rfftn, jnp.fft.irfftn) if real
                         else (jnp.fft.fftn, jnp.fft.ifftn))
    out = (backward(forward(x, sizes, transformed) * forward(y, sizes, transformed), sizes,
                    transformed) if transformed else x * y)
    for i, size in enumerate(out.shape):
        start, length = {"full": (0, size), "same": ((size - m[i]) // 2, m[i]),
                         "valid": (n[i] - 1, m[i] - n[i] + 1) if i in along else (0, size)}[mode]
        out = lax.slice_in_dim(out, start, start + length, axis=i)
    return out.astype(x.dtype)
