"""Transforms of complex numbers."""

from __future__ import annotations

from collections.abc import Sequence

from pyjx.core.array_type import Array, ArrayLike
from pyjx.numpy.dispatch import numpy_function
from pyjx.numpy.fft.along_axes import FFT, IFFT, transformed, transformed_2, transformed_n


@numpy_function(static_argnames=("n", "axis", "norm"))
def fft(a: ArrayLike, n: int | None = None, axis: int | None = -1, norm: str | None = None
       ) -> Array:
    """The discrete Fourier transform along an axis: y_k = sum_j a_j exp(-2 pi i j k / n).

    Args:
      a: array.
      n: how many numbers are transformed; more than there are are zeros. By default all.
      axis: the axis; None transforms along all of them, or with `n` along the last.
      norm: "backward", which is the default, "ortho" or "forward": the result is divided by
        1, sqrt(n) or n.

    Returns:
      A complex array whose size along the axis is n: complex128 for 64-bit numbers, else complex64,
      where NumPy gives complex128.

    Raises:
      ValueError: n is not positive, there is no such axis or norm, or several axes are given.

    >>> import pyjx as jax
    >>> jax.numpy.fft.fft(jax.numpy.array([1.0, 2.0])).tolist()
    [(3+0j), (-1+0j)]
    """
    return transformed("fft", FFT, a, n, axis, norm)


@numpy_function(static_argnames=("n", "axis", "norm"))
def ifft(a: ArrayLike, n: int | None = None, axis: int | None = -1, norm: str | None = None
        ) -> Array:
    """The inverse of `fft`: 1/n sum_k a_k exp(2 pi i j k / n). Takes the same arguments.

    With norm "ortho" the sum is divided by sqrt(n), with "forward" by 1.

    >>> import pyjx as jax
    >>> jax.numpy.fft.ifft(jax.numpy.array([3.0, -1.0])).tolist()
    [(1+0j), (2+0j)]
    """
    return transformed("ifft", IFFT, a, n, axis, norm)


@numpy_function(static_argnames=("s", "axes", "norm"))
def fft2(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1),
         norm: str | None = None) -> Array:
    """The discrete Fourier transform along two axes: see `fftn`.

    >>> import pyjx as jax
    >>> jax.numpy.fft.fft2(jax.numpy.ones((2, 2))).tolist()
    [[(4+0j), 0j], [0j, 0j]]
    """
    return transformed_2("fft2", FFT, a, s, axes, norm)


@numpy_function(static_argnames=("s", "axes", "norm"))
def ifft2(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1),
          norm: str | None = None) -> Array:
    """The inverse of `fft2`. Takes the same arguments.

    >>> import pyjx as jax
    >>> jax.numpy.fft.ifft2(jax.numpy.ones((2, 2))).tolist()
    [[(1+0j), 0j], [0j, 0j]]
    """
    return transformed_2("ifft2", IFFT, a, s, axes, norm)


@numpy_function(static_argnames=("s", "axes", "norm"))
def fftn(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None,
         norm: str | None = None) -> Array:
    """The discrete Fourier transform along several axes.

    Args:
      a: array.
      s: how many numbers are transformed along each of the axes; more than there are are zeros.
      axes: the axes, each once; by default the last `len(s)`, or all.
      norm: "backward", which is the default, "ortho" or "forward": the result is divided by
        1, sqrt(n) or n, the product of `s`.

    Returns:
      A complex array whose sizes along the axes are `s`.

    Raises:
      ValueError: a length is not positive, or lengths and axes do not agree.

    >>> import pyjx as jax
    >>> jax.numpy.fft.fftn(jax.numpy.ones((2, 2)), norm="forward").tolist()
    [[(1+0j), 0j], [0j, 0j]]
    """
    return transformed_n("fftn", FFT, a, s, axes, norm)


@numpy_function(static_argnames=("s", "axes", "norm"))
def ifftn(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None,
          norm: str | None = None) -> Array:
    """The inverse of `fftn`. Takes the same arguments.

    >>> import pyjx as jax
    >>> jax.numpy.fft.ifftn(jax.numpy.ones((2, 2))).tolist()
    [[(1+0j), 0j], [0j, 0j]]
    """
    return transformed_n("ifftn", IFFT, a, s, axes, norm)
