"""The transform of an array along given axes: padding, order of axes, normalization.

XLA transforms the last axes, at most three at once. As transforms along different axes commute,
more are several transforms; where numbers are real, that of the last axis comes first, or last in
the inverse.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core import dtypes
from pyjx.core.array_type import ArrayLike
from pyjx.core.avals import get_aval
from pyjx.core.scalars import scalar_constant
from pyjx.engine.axes import transpose
from pyjx.lax.fourier import MAX_AXES, FftType
from pyjx.numpy.axes import canonical_axis
from pyjx.numpy.promotion import operands

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
        s = [operator.index(n) for n in s]
        if any(n <= 0 for n in s):
            raise ValueError("Shape should be positive.")
        if axes is not None and len(s) != len(axes):
            raise ValueError("Shape and axes have different lengths.")
    if axes is None:
        count = len(shape) if s is None else len(s)
        if count > len(shape):
            raise ValueError(f"{full}: s has {count} lengths, the array {len(shape)} axes.")
        axes = range(len(shape) - count, len(shape))
    places = [canonical_axis(axis, len(shape)) for axis in axes]
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
        raise ValueError(f"jax.numpy.fft.{name} only supports 2 axes. Got axes = {tuple(axes)}.")
    return transformed_n(name, kind, a, s, axes, norm)


def _scaled(x: ArrayLike, kind: FftType, s: Sequence[int], norm: str | None) -> Any:
    power = _POWERS[norm or "backward"][kind in (IFFT, IRFFT)]
    if not power or not math.prod(s):
        return x
    return lax.mul(x, scalar_constant(math.prod(s) ** power, get_aval(x).dtype))


def _transform(kind: FftType, a: ArrayLike, s: Sequence[int], places: Sequence[int]) -> Any:
    if kind == RFFT and get_aval(a).dtype in dtypes.complex_dtypes:
        raise ValueError("only real valued inputs supported for rfft")
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
