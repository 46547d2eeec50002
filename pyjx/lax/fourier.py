"""Discrete Fourier transforms over the last one to three axes.

With w = exp(-2 pi i / n) the transform of n numbers is y_k = sum_j x_j w^(jk), its inverse
x_j = 1/n sum_k y_k w^(-jk); over several axes it is the transform along each. That of real numbers
keeps k = 0 .. n // 2 along the last axis, as y_(n-k) is the conjugate of y_k.

All are linear. The matrix w^(jk) is symmetric, so the complex transforms are their own transposes.
Each y_k that stands for y_(n-k) too counts twice in the inverse; where x is real that gives

  transpose of rfft    x_j = n irfft(conj(y) / c)_j
  transpose of irfft   y_k = c_k / n conj(rfft(x))_k

with c_k = 1 for k = 0 and k = n / 2, and 2 otherwise.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core import dtypes
from pyjx.core.arithmetic import TOGETHER, size
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.explicit import resized
from pyjx.core.integers import as_ints
from pyjx.core.jaxpr import JaxprEqn
from pyjx.core.primitive import Primitive, register
from pyjx.engine.axes import broadcast_in_dim, moveaxis
from pyjx.engine.moves import constant_beside
from pyjx.engine.types import BatchDims, Operand, Tangents, Value, Values
from pyjx.lax.common import operand as _operand
from pyjx.lax.elementwise import complex_dtype, real_dtype

MAX_AXES = 3  # of one transform, in XLA


class FftType(enum.IntEnum):
    """Which Fourier transform: of complex or real numbers, and in which direction."""

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


def _fft_shape(x: ShapedArray, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> ShapedArray:
    axes, lengths = len(fft_lengths), f"fft_lengths {fft_lengths}"
    if axes > x.ndim:
        raise ValueError(f"FFT input shape {x.shape} must have at least as many input dimensions "
                         f"as {lengths}.")
    if not 1 <= axes <= MAX_AXES:
        raise ValueError(f"fft: transforms are over one to {MAX_AXES} axes, got {lengths}. Use "
                         "jnp.fft for more, which makes several transforms of them.")
    minor, rest = x.shape[x.ndim - axes:], x.shape[:x.ndim - axes]
    if fft_type == FftType.RFFT:
        if x.dtype not in (np.float32, np.float64):
            raise ValueError(f"RFFT input must be float32 or float64, got {dtypes.name(x.dtype)}")
        if minor != fft_lengths:
            raise ValueError(f"RFFT input shape {x.shape} minor dimensions must be equal to "
                             f"{lengths}")
        halved = fft_lengths[-1] // 2 + 1
        return ShapedArray((*rest, *fft_lengths[:-1], halved), complex_dtype(x.dtype))
    if x.dtype not in dtypes.complex_dtypes:
        raise ValueError(f"{fft_type.name} input must be complex64 or complex128, got "
                         f"{dtypes.name(x.dtype)}")
    if fft_type == FftType.IRFFT:
        if minor[:-1] != fft_lengths[:-1] or minor[-1] != fft_lengths[-1] // 2 + 1:
            raise ValueError(f"IRFFT input shape {x.shape} minor dimensions must be equal to all "
                             "except the last fft_length, and that of the last axis to half of it "
                             f"plus one, got {fft_lengths=}")
        return ShapedArray((*rest, *fft_lengths), real_dtype(x.dtype))
    if minor != fft_lengths:
        raise ValueError(f"FFT input shape {x.shape} minor dimensions must be equal to {lengths}")
    return ShapedArray(x.shape, x.dtype)


def _weights(aval: ShapedArray, n: int, alone: float, paired: float) -> Any:
    """A weight for each of the n // 2 + 1 numbers along the last axis of `aval`: whether it stands
    for itself alone or for its mirror image too."""
    size = n // 2 + 1
    k = lax.iota(np.int32, size)
    once = lax.eq(k, np.int32(0))
    if n % 2 == 0:
        once = lax.bitwise_or(once, lax.eq(k, np.int32(n // 2) if type(n) is int else n // 2))
    single, double = (lax.full((size,), value, aval.dtype) for value in (alone, paired))
    return broadcast_in_dim(lax.select(once, single, double), aval.shape, (aval.ndim - 1,))


def _fft_transpose(ct: Value, x: Operand, *, fft_type: FftType, fft_lengths: tuple[int, ...]
                   ) -> Tangents:
    size = math.prod(fft_lengths)
    if fft_type == FftType.RFFT:
        aval = get_aval(ct)
        weights = constant_beside(_weights(aval, fft_lengths[-1], size, size / 2), aval)
        return (fft_p.bind(lax.mul(lax.conj(ct), weights), fft_type=FftType.IRFFT,
                           fft_lengths=fft_lengths),)
    if fft_type == FftType.IRFFT:
        y = fft_p.bind(ct, fft_type=FftType.RFFT, fft_lengths=fft_lengths)
        aval = get_aval(y)
        share = 1 / size if size else 1
        weights = constant_beside(_weights(aval, fft_lengths[-1], share, 2 * share), aval)
        return (lax.mul(lax.conj(y), weights),)
    return (fft_p.bind(ct, fft_type=fft_type, fft_lengths=fft_lengths),)


def _fft_batch(operands: Values, dims: BatchDims, *, fft_type: FftType,
               fft_lengths: tuple[int, ...]) -> tuple[Value, int]:
    (x,), (d,) = operands, dims
    if d >= get_aval(x).ndim - len(fft_lengths):
        x, d = moveaxis(x, d, 0), 0
    return fft_p.bind(x, fft_type=fft_type, fft_lengths=fft_lengths), d


def _fft_arithmetic(eqn: JaxprEqn) -> tuple[float, float]:
    """5 n log2(n) for each transform of length n."""
    return 5 * size(eqn.outvars[0]) * math.log2(max(math.prod(eqn.params["fft_lengths"]), 2)), 0.0


fft_p = register(Primitive("fft", arithmetic=_fft_arithmetic, shape_rule=_fft_shape,
                           sharding_rule=resized("fft"),
                           transpose=_fft_transpose, batch=_fft_batch, linear=TOGETHER, asked=True))


def as_fft_type(value: Any) -> FftType:
    """The transform that `value`, a member of FftType or its name, stands for.

    Raises:
      ValueError: there is none of this name.
      TypeError: it is something else.

    >>> as_fft_type("rfft").name
    'RFFT'
    """
    if isinstance(value, FftType):
        return value
    if isinstance(value, str):
        if value.upper() in FftType.__members__:
            return FftType[value.upper()]
        raise ValueError(f"Unknown FFT type '{value}'; there are {list(FftType.__members__)}")
    raise TypeError(f"Unknown FFT type value '{value}'")


def fft(x: ArrayLike, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Array:
    """The discrete Fourier transform over the last axes.

    Args:
      x: an array; of real numbers for RFFT, and otherwise made complex.
      fft_type: FFT, IFFT, RFFT or IRFFT; a member of `FftType` or its name.
      fft_lengths: for each of the last axes, at most three, how many numbers are transformed.

    Returns:
      An array of the same shape but for the last axis: RFFT keeps n // 2 + 1 of n numbers, and
      IRFFT makes n of these. It is real for IRFFT, and complex otherwise.

    Raises:
      ValueError: the lengths are not those of the axes, or the operand of RFFT is complex.

    >>> import pyjx as jax
    >>> jax.lax.fft(jax.numpy.ones(4), "rfft", (4,)).tolist()
    [(4+0j), 0j, 0j]
    """
    kind = as_fft_type(fft_type)
    lengths = as_ints("fft", "fft_lengths", fft_lengths)
    x = _operand("fft", x)
    dtype = get_aval(x).dtype
    if kind == FftType.RFFT:
        if dtype in dtypes.complex_dtypes:
            raise ValueError("only real valued inputs supported for rfft")
        x = lax.convert_element_type(x, dtypes.to_inexact_dtype(dtype))
    else:
        x = lax.convert_element_type(x, dtypes.to_complex_dtype(dtype))
    return fft_p.bind(x, fft_type=kind, fft_lengths=lengths) if lengths else x
