"""Discrete Fourier transforms along given axes, of complex and real numbers; their frequencies.

XLA transforms the last axes, at most three at once. As transforms along different axes commute,
more are several transforms; where numbers are real, that of the last axis comes first, or last in
the inverse.

The transform y of n real numbers has y_(n-k) = conj(y_k), so k = 0 .. n // 2 says all. Which n that
was, 2 m - 2 or 2 m - 1 for m numbers, the inverse must be told; it takes the even one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pyjx import configuration, lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, AxisLike, DTypeLike
from pyjx.core.avals import entries, get_aval
from pyjx.core.integers import as_int, as_truncated_int
from pyjx.core.scalars import scalar_constant
from pyjx.core.value_texts import shortened
from pyjx.engine.axes import transpose
from pyjx.lax.fourier import MAX_AXES, FftType
from pyjx.numpy import creation
from pyjx.numpy.operands import all_axes, canonical_axis, is_complex, numpy_function
from pyjx.numpy.promotion import operands
from pyjx.runtime.device_put import device_put
from pyjx.runtime.operations import op_jit

FFT, IFFT, RFFT, IRFFT = FftType.FFT, FftType.IFFT, FftType.RFFT, FftType.IRFFT

# The power of the number of elements that the result is multiplied with, by direction.
_POWERS: dict[str, tuple[float, float]] = {
    "backward": (0, 0), "ortho": (-0.5, 0.5), "forward": (-1, 1),
}


def transformed_n(name: str, kind: FftType, a: ArrayLike, s: Sequence[int] | None,
                  axes: Sequence[int] | None, norm: str | None) -> Any:
    """The body of the public function `name`: a transform along several axes."""
    full = f"jax.numpy.fft.{name}"
    (a,) = operands(full, a)
    shape = get_aval(a).shape
    if norm not in (None, *_POWERS):
        raise ValueError(f'Invalid norm value {norm}; should be "backward","ortho" or "forward".')
    if s is not None:
        s = [as_int(name, "n" if len(s) == 1 else "s", n) for n in entries(s)]
        if any(n <= 0 for n in s):
            raise ValueError(f"Shape should be positive, got {s}.")
        if axes is not None and len(s) != len(axes):
            raise ValueError("Shape and axes have different lengths.")
    if axes is None:
        count = len(shape) if s is None else len(s)
        if count > len(shape):
            raise ValueError(f"{full}: s has {count} lengths, the array {len(shape)} axes.")
        axes = range(len(shape) - count, len(shape))
    places = [canonical_axis(axis, len(shape)) for axis in entries(axes)]
    if len(set(places)) != len(places):
        raise ValueError(f"{full} does not support repeated axes. Got axes {axes}.")
    if s is None:
        s = [shape[i] for i in places]
        if kind == IRFFT and s:
            s[-1] = max(2 * (s[-1] - 1), 0)
    return _scaled(_transform(kind, a, s, places), kind, s, norm)


def transformed(name: str, kind: FftType, a: ArrayLike, n: Any, axis: Any, norm: str | None) -> Any:
    """The body of the public function `name`: a transform along one axis; None is all of them, or
    with a length the last."""
    if isinstance(axis, (tuple, list)):
        raise ValueError(f"jax.numpy.fft.{name} does not support multiple axes. Please use "
                         f"jax.numpy.fft.{name}n. Got axis = {axis!r}.")
    return transformed_n(name, kind, a, None if n is None else [n],
                         None if axis is None else [axis], norm)


def transformed_2(name: str, kind: FftType, a: ArrayLike, s: Sequence[int] | None,
                  axes: Sequence[int], norm: str | None) -> Any:
    """The body of the public function `name`: a transform along two axes."""
    if len(axes) != 2:
        raise ValueError(f"jax.numpy.fft.{name} only supports 2 axes. Got axes = "
                         f"{shortened(axes)}.")
    return transformed_n(name, kind, a, s, axes, norm)


def _scaled(x: ArrayLike, kind: FftType, s: Sequence[int], norm: str | None) -> Any:
    power = _POWERS[norm or "backward"][kind in (IFFT, IRFFT)]
    if not power or not math.prod(s):
        return x
    return lax.mul(x, scalar_constant(math.prod(s) ** power, get_aval(x).dtype))


def _transform(kind: FftType, a: ArrayLike, s: Sequence[int], places: Sequence[int]) -> Any:
    ndim = get_aval(a).ndim
    a = resized(a, [n // 2 + 1 if kind == IRFFT and i == len(s) - 1 else n
                    for i, n in enumerate(s)], places)
    order = [*[i for i in range(ndim) if i not in places], *places]
    in_place = order == list(range(ndim))
    if not in_place:
        a = transpose(a, order)
    a = _transform_last(kind, a, tuple(s))
    return a if in_place else transpose(a, np.argsort(order).tolist())


def _transform_last(kind: FftType, a: ArrayLike, s: tuple[int, ...]) -> Any:
    """The transform of the last axes."""
    if len(s) <= MAX_AXES:
        return lax.fft(a, kind, s)
    first, last = s[:-MAX_AXES], s[-MAX_AXES:]
    if kind == IRFFT:  # the last axis is made real last
        return _transform_last(kind, _transform_others(IFFT, a, first), last)
    return _transform_others(IFFT if kind == IFFT else FFT, _transform_last(kind, a, last), first)


def _transform_others(kind: FftType, a: ArrayLike, s: tuple[int, ...]) -> Any:
    """The transform of the axes in front of the last MAX_AXES."""
    ndim = get_aval(a).ndim
    split = ndim - MAX_AXES
    outer = split - len(s)
    there = [*range(outer), *range(split, ndim), *range(outer, split)]
    return transpose(_transform_last(kind, transpose(a, there), s), np.argsort(there).tolist())


def resized(a: ArrayLike, sizes: Sequence[int], axes: Sequence[int]) -> Any:
    """The array with other sizes along some axes: its end is cut off, or zeros follow it."""
    aval = get_aval(a)
    config = [(0, 0, 0)] * aval.ndim
    for size, axis in zip(sizes, axes, strict=True):
        config[axis] = (0, size - aval.shape[axis], 0)
    if not any(config_of_axis[1] for config_of_axis in config):
        return a
    return lax.pad(a, scalar_constant(0, aval.dtype), config)


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
    >>> spectrum = jax.numpy.fft.fft(jax.numpy.cos(2 * jax.numpy.pi * jax.numpy.arange(8) / 8))
    >>> jax.numpy.round(abs(spectrum)).tolist()
    [0.0, 4.0, 0.0, 0.0, 0.0, 0.0, 0.0, 4.0]
    """
    return transformed("fft", FFT, a, n, axis, norm)


@numpy_function(static_argnames=("n", "axis", "norm"))
def ifft(a: ArrayLike, n: int | None = None, axis: int | None = -1, norm: str | None = None
        ) -> Array:
    """The inverse of `fft`: 1/n sum_k a_k exp(2 pi i j k / n). Takes the same arguments.

    With norm "ortho" the sum is divided by sqrt(n), with "forward" by 1.

    Args:
      a: an array.
      n: how many numbers along the axis are transformed: `a` is cut, or followed by zeros.
      axis: the axis.
      norm: where the transform is scaled: None or "backward", "ortho" or "forward".

    Returns:
      A complex array: complex64, unless 64-bit types are on.

    >>> import pyjx as jax
    >>> jax.numpy.fft.ifft(jax.numpy.array([3.0, -1.0])).tolist()
    [(1+0j), (2+0j)]
    """
    return transformed("ifft", IFFT, a, n, axis, norm)


@numpy_function(static_argnames=("s", "axes", "norm"))
def fft2(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1),
         norm: str | None = None) -> Array:
    """The discrete Fourier transform along two axes: see `fftn`.

    Returns:
      A complex array: complex64, unless 64-bit types are on.

    >>> import pyjx as jax
    >>> jax.numpy.fft.fft2(jax.numpy.ones((2, 2))).tolist()
    [[(4+0j), 0j], [0j, 0j]]
    """
    return transformed_2("fft2", FFT, a, s, axes, norm)


@numpy_function(static_argnames=("s", "axes", "norm"))
def ifft2(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1),
          norm: str | None = None) -> Array:
    """The inverse of `fft2`. Takes the same arguments.

    Returns:
      A complex array: complex64, unless 64-bit types are on.

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

    Returns:
      A complex array: complex64, unless 64-bit types are on.

    >>> import pyjx as jax
    >>> jax.numpy.fft.ifftn(jax.numpy.ones((2, 2))).tolist()
    [[(1+0j), 0j], [0j, 0j]]
    """
    return transformed_n("ifftn", IFFT, a, s, axes, norm)


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

    Args:
      a: an array: the first half of a spectrum.
      n: the size of the result along the axis; by default 2 (m - 1) of m numbers.
      axis: the axis.
      norm: where the transform is scaled: None or "backward", "ortho" or "forward".

    Returns:
      A real array: float32, unless 64-bit types are on.

    >>> import pyjx as jax
    >>> jax.numpy.fft.irfft(jax.numpy.array([4.0, 0.0, 0.0])).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    return transformed("irfft", IRFFT, a, n, axis, norm)


@numpy_function(static_argnames=("s", "axes", "norm"))
def rfft2(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1),
          norm: str | None = None) -> Array:
    """The discrete Fourier transform of real numbers along two axes: see `rfftn`.

    Returns:
      A complex array: complex64, unless 64-bit types are on.

    >>> import pyjx as jax
    >>> jax.numpy.fft.rfft2(jax.numpy.ones((2, 2))).tolist()
    [[(4+0j), 0j], [0j, 0j]]
    """
    return transformed_2("rfft2", RFFT, a, s, axes, norm)


@numpy_function(static_argnames=("s", "axes", "norm"))
def irfft2(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1),
           norm: str | None = None) -> Array:
    """The inverse of `rfft2`; see `irfftn`.

    Returns:
      A real array: float32, unless 64-bit types are on.

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
      A complex array whose sizes along the axes are `s`, but n // 2 + 1 along the last of them. Of
      an operand that is cut over devices along another of the axes each device has all of it, as of
      that of `irfftn`; `fftn` leaves it cut.

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

    Returns:
      A real array: float32, unless 64-bit types are on.

    >>> import pyjx as jax
    >>> jax.numpy.fft.irfftn(jax.numpy.ones((2, 3))).shape
    (2, 4)
    """
    return transformed_n("irfftn", IRFFT, a, s, axes, norm)


def _conjugate(a: ArrayLike) -> Any:
    return lax.conj(a) if is_complex(a) else a


def _check_axis(name: str, n: Any, axis: AxisLike) -> None:
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

    Returns:
      A real array: float32, unless 64-bit types are on.

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

    Args:
      a: an array.
      n: how many numbers along the axis are transformed: `a` is cut, or followed by zeros.
      axis: the axis.
      norm: where the transform is scaled: None or "backward", "ortho" or "forward".

    Returns:
      A complex array: complex64, unless 64-bit types are on.

    >>> import pyjx as jax
    >>> jax.numpy.fft.ihfft(jax.numpy.array([4.0, 0.0, 0.0, 0.0])).tolist()
    [(1-0j), (1-0j), (1-0j)]
    """
    _check_axis("ihfft", n, axis)
    a = creation.of_list(a)  # of the transforms this one alone takes lists, as in JAX
    return _conjugate(transformed("ihfft", RFFT, a, n, axis, _SWAPPED.get(norm, norm)))


def _over_duration(name: str, k: ArrayLike, n: ArrayLike, d: Any, dtype: DTypeLike, device: Any
                  ) -> Array:
    """k / (n d)"""
    if isinstance(d, (list, tuple)):
        raise ValueError(f"The d argument of jax.numpy.fft.{name} only takes a single value. "
                         f"Got d = {d}.")
    if type(d) is not float:
        real = isinstance(d, (int, np.integer, np.floating))
        d = float(d) if real else jnp.asarray(d, float)
    out = _quotient(k, n, d)
    if dtype is not None:
        kind = dtypes.check_and_canonicalize_user_dtype(dtype, name)
        out = jnp.asarray(out, dtypes.to_inexact_dtype(kind))
    return out if device is None else device_put(out, device)


@op_jit
def _quotient(k: ArrayLike, n: ArrayLike, d: ArrayLike) -> Any:
    with configuration.numpy_dtype_promotion("standard"):
        return jnp.divide(jnp.asarray(k, float), jnp.multiply(d, n))


def _count(name: str, n: ArrayLike) -> int:
    if isinstance(n, (list, tuple)):
        raise ValueError(f"The n argument of jax.numpy.fft.{name} only takes an int. Got n = {n}.")
    size = as_truncated_int(name, "n", n)
    if size != n:
        raise TypeError(f"{name}: n must be a whole number, got {n!r}.")
    return size


def fftfreq(n: int, d: Any = 1.0, *, dtype: Any = None, device: Any = None) -> Array:
    """The frequencies of `fft`, in its order: 0, 1, ..., and then the negative ones, over n d.

    Args:
      n: how many numbers are transformed.
      d: the time between two of them.
      dtype: of the result; by default that of floats.
      device: where to put it.

    Returns:
      A float array (n,).

    Raises:
      ValueError: n or d is a sequence.

    >>> import pyjx as jax
    >>> jax.numpy.fft.fftfreq(4).tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    size = _count("fftfreq", n)
    k = jnp.arange(size)
    k = jnp.where(k < (size + 1) // 2, k, k - size)
    return _over_duration("fftfreq", k, size, d, dtype, device)


def rfftfreq(n: int, d: Any = 1.0, *, dtype: Any = None, device: Any = None) -> Array:
    """The frequencies of `rfft`: 0, 1, ..., n // 2, over n d. Takes the arguments of `fftfreq`.

    Args:
      n: the number of samples.
      d: the distance between samples.
      dtype: of the result; None for the default float dtype.
      device: the device or sharding of the result.

    Returns:
      A float array (n // 2 + 1,).

    >>> import pyjx as jax
    >>> jax.numpy.fft.rfftfreq(4).tolist()
    [0.0, 0.25, 0.5]
    """
    size = _count("rfftfreq", n)
    return _over_duration("rfftfreq", jnp.arange(size // 2 + 1), size, d, dtype, device)


def _halves(name: str, x: ArrayLike, axes: Any, sign: int) -> Any:
    x = jnp.ufuncs.as_array(*operands(name, x))
    shape = get_aval(x).shape
    if axes is None:
        places = all_axes(len(shape))
    elif isinstance(axes, Sequence):
        places = tuple([canonical_axis(i, len(shape)) for i in axes])
    else:
        places = (canonical_axis(axes, len(shape)),)
    for i in places:
        size, step = shape[i], shape[i] // 2
        if type(size) is not int or size > 1:
            split = size - step if sign > 0 else step
            x = lax.concatenate([lax.slice_in_dim(x, split, size, axis=i),
                                 lax.slice_in_dim(x, 0, split, axis=i)], i)
    return x


@numpy_function(static_argnames=("axes",))
def fftshift(x: ArrayLike, axes: AxisLike = None) -> Array:
    """The array with the frequency 0 in the middle: each axis, of size n, is rolled by n // 2.

    Args:
      x: array.
      axes: the axes; by default all.

    Returns:
      An array of the shape and dtype of the argument.

    >>> import pyjx as jax
    >>> jax.numpy.fft.fftshift(jax.numpy.fft.fftfreq(4)).tolist()
    [-0.5, -0.25, 0.0, 0.25]
    """
    return _halves("fftshift", x, axes, 1)


@numpy_function(static_argnames=("axes",))
def ifftshift(x: ArrayLike, axes: AxisLike = None) -> Array:
    """The inverse of `fftshift`. Takes the same arguments.

    Returns:
      An array of the shape and dtype of the argument.

    >>> import pyjx as jax
    >>> jax.numpy.fft.ifftshift(jax.numpy.arange(3)).tolist()
    [1, 2, 0]
    """
    return _halves("ifftshift", x, axes, -1)
