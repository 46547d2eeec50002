"""Signals: convolutions and correlations of arrays of any rank; spectra.

P. D. Welch, The use of the fast Fourier transform for the estimation of power spectra, IEEE Trans.
Audio Electroacoust. 15 (1967), 70-73.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from pyjx import configuration, lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import ShapedArray
from pyjx.core.frames import warn
from pyjx.core.integers import as_truncated_int
from pyjx.lax.contractions import PrecisionLike
from pyjx.lazy import deferred
from pyjx.numpy.differences import check_mode
from pyjx.numpy.operands import as_tuple, canonical_axis, numpy_function
from pyjx.numpy.promotion import (
    any_ranks,
    check_arraylike,
    check_promotion,
    operands,
    promote_dtypes_as_floats,
    promote_dtypes_inexact,
    promote_inexact,
)
from pyjx.numpy.ufuncs import as_array
from pyjx.runtime.operations import body_of, op_jit
from pyjx.scipy.special.operands import weak_as
from pyjx.transforms.linearize import linear_transpose
from pyjx.transforms.vmap import vmap

# -- convolutions ----------------------------------------------------------------------------------


def _operands(name: str, in1: ArrayLike, in2: ArrayLike) -> tuple[Array, Array]:
    x, y = map(as_array, promote_dtypes_as_floats(*operands(name, in1, in2)))
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
    check_mode(mode)
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
    if method not in ("auto", "direct", "fft"):
        raise ValueError(f"Got method='{method}'; expected 'auto', 'fft', or 'direct'.")
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
    check_mode(mode)
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
    check_mode(mode)
    x, y = _operands("fftconvolve", in1, in2)
    if axes is None:
        along = list(range(x.ndim))
    else:
        along = [canonical_axis(a, x.ndim) for a in as_tuple(axes)]
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
    forward, backward = ((jnp.fft.rfftn, jnp.fft.irfftn) if real else (jnp.fft.fftn, jnp.fft.ifftn))
    out = (backward(forward(x, sizes, transformed) * forward(y, sizes, transformed), sizes,
                    transformed) if transformed else x * y)
    for i, size in enumerate(out.shape):
        start, length = {"full": (0, size), "same": ((size - m[i]) // 2, m[i]),
                         "valid": (n[i] - 1, m[i] - n[i] + 1) if i in along else (0, size)}[mode]
        out = lax.slice_in_dim(out, start, start + length, axis=i)
    return out.astype(x.dtype)


# -- spectra ---------------------------------------------------------------------------------------

signal = deferred("scipy.signal")  # windows by name need it, and it loads slowly


@numpy_function(static_argnames=("axis", "type", "bp", "overwrite_data"))
def detrend(data: ArrayLike, axis: int = -1, type: str = "linear", bp: Any = 0,
            overwrite_data: None = None) -> Array:
    """An array less its trend along an axis.

    Args:
      data: array.
      axis: int.
      type: "linear" takes the line of least squares away, "constant" the mean.
      bp: places where one line ends and the next begins.
      overwrite_data: not supported.

    Raises:
      NotImplementedError: `overwrite_data` is given.
      ValueError: the type is unknown, or a place is outside of the data.

    >>> import pyjx as jax
    >>> jax.scipy.signal.detrend(jax.numpy.array([1.0, 3.0]), type="constant").tolist()
    [-1.0, 1.0]
    """
    if overwrite_data is not None:
        raise NotImplementedError("overwrite_data argument not implemented.")
    if type not in ("constant", "linear"):
        raise ValueError(f"Trend type must be 'linear' or 'constant', got {type!r}.")
    x = as_array(promote_inexact("detrend", jnp.asarray(data)))
    if type == "constant":
        return x - x.mean(axis, keepdims=True)
    axis = canonical_axis(axis, x.ndim)
    size = x.shape[axis]
    places = np.unique(np.concatenate([[0], np.ravel(bp), [size]]).astype(int))
    if places[0] < 0 or places[-1] > size:
        raise ValueError("Breakpoints must be non-negative and less than length of data along "
                         "given axis.")
    x = jnp.moveaxis(x, axis, -1)
    parts = []
    for start, end in itertools.pairwise(places):
        part = x[..., start:end]
        line = np.stack([np.ones(end - start), np.arange(end - start)], 1)
        basis = jnp.asarray(np.linalg.qr(line[:, :end - start])[0], x.dtype)
        fitted = jnp.matmul(jnp.matmul(part, basis, precision=lax.Precision.HIGHEST), basis.T,
                            precision=lax.Precision.HIGHEST)
        # The line is of strong type; what is left of weakly typed data is weakly typed.
        parts.append(weak_as(part - fitted, x))
    return jnp.moveaxis(jnp.concatenate(parts, -1), -1, axis)


_BOUNDARIES: dict[str | None, dict[str, Any]] = {
    "even": {"mode": "reflect"}, "odd": {"mode": "reflect", "reflect_type": "odd"},
    "constant": {"mode": "edge"}, "zeros": {"mode": "constant"}, None: {},
}


_length = partial(as_truncated_int, "scipy.signal")


def _window(window: Any, nperseg: int | None, length: int | None) -> tuple[Any, int]:
    """The window as an array, and the length of segments."""
    if nperseg is not None and _length("nperseg", nperseg) < 1:
        raise ValueError(f"nperseg must be a positive integer, got {nperseg}")
    if isinstance(window, (str, tuple)):
        size = _length("nperseg", length if nperseg is None else nperseg)
        if length is not None and size > length:
            warn(f"nperseg={size} is greater than input_length={length}, using nperseg={length}")
            size = length
        return signal.get_window(window, size), size
    window = jnp.asarray(window)
    if window.ndim != 1:
        raise ValueError("window must be 1-D")
    if length is not None and length < window.shape[0]:
        raise ValueError("window is longer than input signal")
    if nperseg is not None and nperseg != window.shape[0]:
        raise ValueError("value specified for nperseg is different from length of window")
    return window, int(window.shape[0])


def _lengths(nperseg: int, noverlap: int | None, nfft: int | None) -> tuple[int, int]:
    noverlap = nperseg // 2 if noverlap is None else _length("noverlap", noverlap)
    nfft = nperseg if nfft is None else _length("nfft", nfft)
    if nfft < nperseg:
        raise ValueError("nfft must be greater than or equal to nperseg: FFT length "
                         f"({nfft}) must be longer than nperseg ({nperseg}).")
    if noverlap >= nperseg:
        raise ValueError("noverlap must be less than nperseg.")
    return noverlap, nfft


def _remover(kind: Any) -> Callable[[Array], Array]:
    """What takes the trend out of segments, given the argument `detrend` of the spectra."""
    if not kind:
        return lambda x: x
    return kind if callable(kind) else lambda x: detrend(x, type=kind)


def _segments(x: Array, size: int, step: int, count: int) -> Array:
    """The segments that start `step` apart: (..., count, size). XLA copies what lies together as
    one, so they are slices of all rows in a row."""
    *batch, n = x.shape
    starts = jnp.arange(math.prod(batch))[:, None] * n + jnp.arange(count) * step
    flat = x.reshape(-1)
    parts = vmap(lambda start: lax.dynamic_slice_in_dim(flat, start, size))(starts.reshape(-1))
    return parts.reshape(*batch, count, size)


def _overlap_added(parts: Array, step: int) -> Array:
    """The sum of segments that start `step` apart, which `_segments` reads."""
    *batch, count, size = parts.shape
    total = ShapedArray((*batch, size + (count - 1) * step), parts.dtype)
    (added,) = linear_transpose(lambda x: _segments(x, size, step, count), total)(parts)
    return added  # type: ignore[no-any-return]


def _transforms(x: Array, window: ArrayLike, nperseg: int, noverlap: int, nfft: int, trend: Any,
                onesided: bool) -> Array:
    """The spectra of the segments along the last axis: (..., segments, frequencies)."""
    step = nperseg - noverlap
    count = (x.shape[-1] - noverlap) // step
    parts = trend(_segments(x, nperseg, step, count)) * window
    return jnp.fft.rfft(parts, nfft) if onesided else jnp.fft.fft(parts, nfft)


def _spectra_of_nothing(x: Array, y: Array, axis: int, real: bool) -> tuple[Array, Array, Array]:
    """Frequencies, times and spectra where there are no data: as SciPy has it, of their shape."""
    first, second = (jnp.moveaxis(a, axis, -1).shape for a in (x, y))
    shape = (*jnp.broadcast_shapes(first[:-1], second[:-1]), min(first[-1], second[-1]))
    freqs = jnp.moveaxis(jnp.zeros(shape, x.real.dtype), -1, axis)
    return freqs, freqs, freqs if real else lax.complex(freqs, freqs)


def _spectral(x: Array, y: Array | None, fs: Any, window: Any, nperseg: int | None,
              noverlap: int | None, nfft: int | None, detrend: Any, onesided: bool, scaling: str,
              axis: int, boundary: str | None, padded: bool, average: str | None = None,
              real: bool = False) -> tuple[Array, Array, Array]:
    """Frequencies, times, and the spectra of x, or the `average` of their products with those of y.

    The last axis of spectra is the segments'; frequencies stand where the data did.
    """
    if boundary not in _BOUNDARIES:
        raise ValueError(f"Unknown boundary option '{boundary}', must be one of: "
                         f"{list(_BOUNDARIES)}")
    if scaling not in ("density", "spectrum"):
        raise ValueError(f"Unknown scaling: {scaling}; there are 'density' and 'spectrum'")
    axis = canonical_axis(axis, x.ndim)
    if x.size == 0 or (y is not None and y.size == 0):
        return _spectra_of_nothing(x, x if y is None else y, axis, real)
    length = max(x.shape[axis], 0 if y is None else y.shape[axis])
    window, nperseg = _window(window, nperseg, length)
    noverlap, nfft = _lengths(nperseg, noverlap, nfft)
    if onesided and (jnp.iscomplexobj(x) or jnp.iscomplexobj(y)):
        warn("Input data is complex, switching to return_onesided=False")
    if average not in ("mean", "median", None):
        raise ValueError(f"average must be \"median\" or \"mean\", got {average}")
    call: Callable[..., Any] = _spectra
    if callable(detrend):  # which may be a new one, and promotes as the user has it
        call, promotion = body_of(_spectra), configuration.numpy_dtype_promotion
        detrend = promotion(promotion.value)(detrend)
    check_promotion(x.real, fs)  # frequencies and times are of both
    if scaling == "density":  # powers are divided by it
        check_promotion(x, fs)
    if isinstance(fs, np.integer | np.bool_):
        fs = np.float64(fs)  # times are quotients as NumPy has them
    second = () if y is None else (y,)
    with configuration.numpy_dtype_promotion("standard"):  # the signals are promoted
        return call(nperseg, noverlap, nfft, detrend, onesided, scaling, axis, boundary, padded,
                    average, real, fs, window, x, *second)


@op_jit(static_argnames=("nperseg", "noverlap", "nfft", "detrend", "onesided", "scaling", "axis",
                         "boundary", "padded", "average", "real"))
@any_ranks
def _spectra(nperseg: int, noverlap: int, nfft: int, detrend: Any, onesided: bool, scaling: str,
             axis: int, boundary: str | None, padded: bool, average: str | None, real: bool,
             fs: Any, window: ArrayLike, *signals: Any) -> tuple[Any, Any, Any]:
    arrays = [jnp.moveaxis(a, axis, -1) for a in signals]
    length = max(a.shape[-1] for a in arrays)
    arrays = [_padded(a, 0, length - a.shape[-1]) for a in arrays]
    dtype = jnp.zeros((), arrays[0].dtype).real.dtype
    window = jnp.asarray(window, dtype)
    if boundary is not None:
        half = nperseg // 2
        arrays = [_padded(a, half, half, **_BOUNDARIES[boundary]) for a in arrays]
    if padded:
        step = nperseg - noverlap
        rest = -(arrays[0].shape[-1] - nperseg) % step % nperseg
        arrays = [_padded(a, 0, rest) for a in arrays]
    onesided = onesided and not any(jnp.iscomplexobj(a) for a in arrays)
    transforms = [_transforms(a, window, nperseg, noverlap, nfft, _remover(detrend), onesided)
                  for a in arrays]
    scale = 1 / (fs * (window * window).sum()) if scaling == "density" else 1 / window.sum() ** 2
    if not jnp.iscomplexobj(scale):  # of the precision of the signals, whatever that of fs is
        scale = scale.astype(dtype)
    out = (transforms[0] * jnp.sqrt(scale) if average is None
           else _powers(transforms[0], transforms[-1] * scale, nfft, onesided))
    frequencies = np.fft.rfftfreq(nfft) if onesided else np.fft.fftfreq(nfft)
    total = arrays[0].shape[-1]
    times = np.arange(nperseg / 2, total - nperseg / 2 + 1, nperseg - noverlap)
    if boundary is not None:
        times = times - nperseg / 2
    out = _averaged(jnp.moveaxis(out, -1, axis), average)
    rate = 1 / (1 / fs).real if jnp.iscomplexobj(fs) else fs  # frequencies are real
    return ((jnp.asarray(frequencies, dtype) * rate).astype(dtype), jnp.asarray(times, dtype) / fs,
            out.real.astype(dtype) if real else out)


def _powers(first: Array, second: Array, nfft: int, onesided: bool) -> Array:
    out = jnp.conj(first) * second
    if not onesided:
        return out
    # Each frequency but the first, and the last of an even number, stands twice.
    place = np.arange(out.shape[-1])
    last = out.shape[-1] - (1 if nfft % 2 == 0 else 0)
    return out * np.where((place > 0) & (place < last), 2, 1).astype(out.real.dtype)


def _averaged(out: Array, average: str | None) -> Array:
    if average is None:
        return out
    if average == "mean":
        return out.mean(-1)
    # the median of a chi-squared variable is below its mean
    places = 2 * np.arange(1, (out.shape[-1] - 1) // 2 + 1)
    bias = 1 + np.sum(1 / (places + 1) - 1 / places)
    middle = jnp.median(out.real, -1)
    if jnp.iscomplexobj(out):
        middle = middle + 1j * jnp.median(out.imag, -1)
    return middle / bias


def _padded(x: Array, before: int, after: int, **options: Any) -> Array:
    if not before and not after:
        return x
    return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(before, after)], **options)


def stft(x: Array, fs: Any = 1.0, window: Any = "hann", nperseg: int = 256,
         noverlap: int | None = None, nfft: int | None = None, detrend: Any = False,
         return_onesided: bool = True, boundary: str | None = "zeros", padded: bool = True,
         axis: int = -1) -> tuple[Array, Array, Array]:
    """The short-time Fourier transform.

    Args:
      x: array.
      fs: the sampling frequency.
      window: the name of a window (or a tuple of it and its parameters), or an array.
      nperseg: the length of segments; that of the window if it is an array.
      noverlap: how many elements neighbouring segments share; half of them by default.
      nfft: the length of transforms, if segments are to be padded with zeros.
      detrend: "constant", "linear" or a function, applied to each segment; or False.
      return_onesided: whether, for real data, only frequencies from 0 on are returned.
      boundary: how the signal is continued by half a segment at both ends: "even", "odd",
        "constant", "zeros" or None.
      padded: whether zeros fill the last segment.
      axis: int.

    Returns:
      `(frequencies, times, Z)`: the last axis of Z is that of times; that of frequencies stands in
      the place of `axis`.

    Raises:
      ValueError: lengths do not match, or an option is unknown.

    >>> import pyjx as jax
    >>> f, t, Z = jax.scipy.signal.stft(jax.numpy.ones(16), nperseg=8)
    >>> Z.shape, f.shape, t.shape
    ((5, 5), (5,), (5,))
    """
    (x,) = map(as_array, promote_dtypes_inexact(*operands("stft", x)))
    size = None if not isinstance(window, (str, tuple)) and nperseg == 256 else nperseg
    return _spectral(x, None, fs, window, size, noverlap, nfft, detrend, return_onesided,
                     "spectrum", axis, boundary, padded)


def csd(x: ArrayLike, y: ArrayLike, fs: Any = 1.0, window: Any = "hann", nperseg: int | None = None,
        noverlap: int | None = None, nfft: int | None = None, detrend: Any = "constant",
        return_onesided: bool = True, scaling: str = "density", axis: int = -1,
        average: str = "mean") -> tuple[Array, Array]:
    """The cross power spectral density, by Welch's method.

    Args:
      x: array.
      y: array, or None for `x` itself, whose density is real.
      fs, window, noverlap, nfft, detrend, return_onesided, axis: as for `stft`.
      nperseg: the length of segments; by default that of the signal, where SciPy takes 256, or that
        of the window if it is an array.
      scaling: "density" for powers per frequency, "spectrum" for powers.
      average: "mean" or "median" of the segments.

    Returns:
      `(frequencies, P)`: the axis of frequencies stands in the place of `axis`.

    >>> import pyjx as jax
    >>> x = jax.numpy.array([1.0, -1.0, 1.0, -1.0])
    >>> f, P = jax.scipy.signal.csd(x, x, nperseg=4, window=jax.numpy.ones(4))
    >>> P.real.round(3).tolist()
    [0.0, 0.0, 4.0]
    """
    return _density(x, y, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling,
                    axis, average)


def _density(x: Any, y: Any, fs: Any, window: Any, nperseg: int | None, noverlap: int | None,
             nfft: int | None, detrend: Any, return_onesided: bool, scaling: str, axis: int,
             average: str) -> tuple[Array, Array]:
    if average is None:  # by which `stft` asks for the segments
        raise ValueError('average must be "median" or "mean", got None')
    if y is None:
        (x,) = map(as_array, promote_dtypes_inexact(*operands("welch", x)))
    else:
        x, y = map(as_array, promote_dtypes_inexact(*operands("csd", x, y)))
        if x.ndim != y.ndim:
            raise ValueError("x and y must have the same number of dimensions, got shapes "
                             f"{x.shape} and {y.shape}")
    freqs, _, out = _spectral(x, y, fs, window, nperseg, noverlap, nfft, detrend, return_onesided,
                              scaling, axis, None, False, average, y is None)
    return freqs, out


def welch(x: object, fs: Any = 1.0, window: Any = "hann", nperseg: int | None = None,
          noverlap: int | None = None, nfft: int | None = None, detrend: Any = "constant",
          return_onesided: bool = True, scaling: str = "density", axis: int = -1,
          average: str = "mean") -> tuple[Array, Array]:
    """The power spectral density, by Welch's method; arguments and results as for `csd`.

    Args:
      x: an array.
      fs, window, noverlap, nfft, detrend, return_onesided, axis: as for `stft`.
      nperseg: the length of segments; by default that of the signal, where SciPy takes 256, or that
        of the window if it is an array.
      scaling: "density" for powers per frequency, "spectrum" for powers.
      average: "mean" or "median" of the segments.

    >>> import pyjx as jax
    >>> x = jax.numpy.array([1.0, -1.0, 1.0, -1.0])
    >>> f, P = jax.scipy.signal.welch(x, nperseg=4, window=jax.numpy.ones(4))
    >>> P.round(3).tolist()
    [0.0, 0.0, 4.0]
    """
    return _density(x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling,
                    axis, average)


def istft(Zxx: ArrayLike, fs: Any = 1.0, window: Any = "hann", nperseg: int | None = None,
          noverlap: int | None = None, nfft: int | None = None, input_onesided: bool = True,
          boundary: bool = True, time_axis: int = -1, freq_axis: int = -2) -> tuple[Array, Array]:
    """The signal whose `stft` is given, of the least squares.

    Args:
      Zxx: array.
      fs, window, nperseg, noverlap, nfft: as they were for `stft`.
      input_onesided: whether there are only frequencies from 0 on.
      boundary: whether the signal was continued at both ends.
      time_axis, freq_axis: ints.

    Returns:
      `(times, x)`; the times are those of the axis of times, unlike SciPy's where there are others.

    Raises:
      ValueError: there are fewer than two axes, or lengths do not match.

    >>> import pyjx as jax
    >>> _, _, Z = jax.scipy.signal.stft(jax.numpy.arange(16.0), nperseg=8)
    >>> t, x = jax.scipy.signal.istft(Z, nperseg=8)
    >>> [round(float(y), 3) for y in x[:4]]
    [0.0, 1.0, 2.0, 3.0]
    """
    check_arraylike("istft", Zxx)
    Z = as_array(Zxx)
    if Z.ndim < 2:
        raise ValueError("Input stft must be at least 2d!")
    freq_axis, time_axis = canonical_axis(freq_axis, Z.ndim), canonical_axis(time_axis, Z.ndim)
    if freq_axis == time_axis:
        raise ValueError("Must specify differing time and frequency axes!")
    default = 2 * (Z.shape[freq_axis] - 1) if input_onesided else Z.shape[freq_axis]
    size = default if nperseg is None else _length("nperseg", nperseg)
    if size < 1:
        raise ValueError("nperseg must be a positive integer")
    if nfft is None:
        nfft = size if input_onesided and size == default + 1 else default
    noverlap, nfft = _lengths(size, noverlap, nfft)
    window, length = _window(window, size, None)
    if length != size:
        raise ValueError(f"window must have length of {size}")
    return _overlapped(Z, fs, window, size, noverlap, nfft, input_onesided, boundary, time_axis,
                       freq_axis)


@op_jit(static_argnames=("size", "noverlap", "nfft", "onesided", "boundary", "time_axis",
                         "freq_axis"))
@any_ranks
def _overlapped(Z: Any, fs: Any, window: ArrayLike, size: int, noverlap: int, nfft: int,
                onesided: bool, boundary: bool, time_axis: int, freq_axis: int) -> tuple[Any, Any]:
    """The segments of which `Z` are the spectra, overlapped and added."""
    Z = Z.astype(dtypes.to_complex_dtype(dtypes.to_inexact_dtype(Z.dtype)))
    Z = jnp.moveaxis(Z, (time_axis, freq_axis), (-2, -1))
    parts = (jnp.fft.irfft if onesided else jnp.fft.ifft)(Z, nfft)[..., :size]
    window = jnp.asarray(window, parts.real.dtype)
    step, count = size - noverlap, parts.shape[-2]
    total = size + (count - 1) * step
    # The windows' squares are what each element counts
    x = _overlap_added(parts * (window * window.sum()).astype(parts.dtype), step)
    weight = _overlap_added(jnp.broadcast_to(window * window, (count, size)), step)
    if boundary:
        x, weight = (a[..., size // 2:total - size // 2] for a in (x, weight))
    x = x / jnp.where(weight > 1e-10, weight, 1).astype(x.dtype)
    times = jnp.arange(x.shape[-1], dtype=window.dtype) / fs
    if x.ndim > 1 and time_axis != Z.ndim - 1:
        x = jnp.moveaxis(x, -1, time_axis - 1 if freq_axis < time_axis else time_axis)
    return times, x
