"""Transforms from and to real numbers.

The transform y of n real numbers has y_(n-k) = conj(y_k), so k = 0 .. n // 2 says all. Which n that
was, 2 m - 2 or 2 m - 1 for m numbers, the inverse must be told; it takes the even one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyjx import lax
from pyjx.core.array_type import Array, ArrayLike
from pyjx.numpy import creation
from pyjx.numpy.dispatch import numpy_function
from pyjx.numpy.fft.along_axes import IRFFT, RFFT, transformed, transformed_2, transformed_n
from pyjx.numpy.operands import is_complex
from pyjx.numpy.promotion import operands

# The other normalization: y = hfft(a) is n times the inverse transform of conj(a).
_SWAPPED = {None: "forward", "backward": "forward", "forward": "backward"}


@numpy_function(static_argnames=("n", "axis", "norm"))
def rfft(a: ArrayLike, n: int | None = None, axis: int | None = -1, norm: str | None = None
        ) -> Array:
    """The discrete Fourier transform of real numbers along an axis, up to k = n // 2: see `fft`.

    Args:
      a: array of real numbers; float16 and bfloat16 are refused.
      n: how many numbers are transformed; more than there are are zeros. By default all.
      axis: the axis; None transforms along all of them, or with `n` along the last.
      norm: "backward", which is the default, "ortho" or "forward": the result is divided by
        1, sqrt(n) or n.

    Returns:
      A complex array of size n // 2 + 1 along the axis.

    Raises:
      ValueError: the array is complex, n is not positive, there is no such axis or norm.

    >>> import pyjx as jax
    >>> jax.numpy.fft.rfft(jax.numpy.ones(4)).tolist()
    [(4+0j), 0j, 0j]
    """
    return transformed("rfft", RFFT, a, n, axis, norm)


@numpy_function(static_argnames=("n", "axis", "norm"))
def irfft(a: ArrayLike, n: int | None = None, axis: int | None = -1, norm: str | None = None
         ) -> Array:
    """The inverse of `rfft`: n real numbers, by default 2 (m - 1) of m. Takes the same arguments.

    >>> import pyjx as jax
    >>> jax.numpy.fft.irfft(jax.numpy.array([4.0, 0.0, 0.0])).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    return transformed("irfft", IRFFT, a, n, axis, norm)


@numpy_function(static_argnames=("s", "axes", "norm"))
def rfft2(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1),
          norm: str | None = None) -> Array:
    """The discrete Fourier transform of real numbers along two axes: see `rfftn`.

    >>> import pyjx as jax
    >>> jax.numpy.fft.rfft2(jax.numpy.ones((2, 2))).tolist()
    [[(4+0j), 0j], [0j, 0j]]
    """
    return transformed_2("rfft2", RFFT, a, s, axes, norm)


@numpy_function(static_argnames=("s", "axes", "norm"))
def irfft2(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1),
           norm: str | None = None) -> Array:
    """The inverse of `rfft2`; see `irfftn`.

    >>> import pyjx as jax
    >>> jax.numpy.fft.irfft2(jax.numpy.ones((2, 2))).tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    return transformed_2("irfft2", IRFFT, a, s, axes, norm)


@numpy_function(static_argnames=("s", "axes", "norm"))
def rfftn(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None,
          norm: str | None = None) -> Array:
    """The discrete Fourier transform of real numbers along several axes, halved along the last.

    Args:
      a: array of real numbers.
      s: how many numbers are transformed along each of the axes; more than there are are zeros.
      axes: the axes, each once; by default the last `len(s)`, or all.
      norm: as for `fftn`.

    Returns:
      A complex array whose sizes along the axes are `s`, but n // 2 + 1 along the last of them.

    Raises:
      ValueError: the array is complex, or lengths and axes do not agree.

    >>> import pyjx as jax
    >>> jax.numpy.fft.rfftn(jax.numpy.ones((2, 4))).shape
    (2, 3)
    """
    return transformed_n("rfftn", RFFT, a, s, axes, norm)


@numpy_function(static_argnames=("s", "axes", "norm"))
def irfftn(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None,
           norm: str | None = None) -> Array:
    """The inverse of `rfftn`: real numbers of shape `s` along the axes. Takes the same arguments.

    Without `s`, the size along the last of the axes is 2 (m - 1) for m numbers.

    >>> import pyjx as jax
    >>> jax.numpy.fft.irfftn(jax.numpy.ones((2, 3))).shape
    (2, 4)
    """
    return transformed_n("irfftn", IRFFT, a, s, axes, norm)


def _conjugate(a: ArrayLike) -> Any:
    return lax.conj(a) if is_complex(a) else a


def _check_axis(name: str, n: Any, axis: int | Sequence[int] | None) -> None:
    """These two have no form for several axes; with `n`, None is the last one, as for `rfft`."""
    if axis is None and n is None:
        raise TypeError(f"jax.numpy.fft.{name} needs an axis; give axis=-1 for the last one.")


@numpy_function(static_argnames=("n", "axis", "norm"))
def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The discrete Fourier transform of numbers with a_(n-j) = conj(a_j), which is real.

    Args:
      a: the numbers a_0 .. a_(n // 2) along the axis.
      n: how many numbers there are in all, which is the result's size; by default 2 (m - 1) of m.
      axis: the axis.
      norm: "backward", which is the default, "ortho" or "forward": the result is divided by
        1, sqrt(n) or n.

    Raises:
      TypeError: the axis is None, and `n` is not given.
      ValueError: n is not positive, there is no such axis or norm.

    >>> import pyjx as jax
    >>> jax.numpy.fft.hfft(jax.numpy.ones(3)).tolist()
    [4.0, 0.0, 0.0, 0.0]
    """
    _check_axis("hfft", n, axis)
    (a,) = operands("jax.numpy.fft.hfft", a)
    return transformed("hfft", IRFFT, _conjugate(a), n, axis, _SWAPPED.get(norm, norm))


@numpy_function(static_argnames=("n", "axis", "norm"))
def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `hfft`: of n real numbers the first n // 2 + 1. Takes the same arguments.

    >>> import pyjx as jax
    >>> jax.numpy.fft.ihfft(jax.numpy.array([4.0, 0.0, 0.0, 0.0])).tolist()
    [(1-0j), (1-0j), (1-0j)]
    """
    _check_axis("ihfft", n, axis)
    a = creation.of_list(a)  # of the transforms this one alone takes lists, as in JAX
    return _conjugate(transformed("ihfft", RFFT, a, n, axis, _SWAPPED.get(norm, norm)))
