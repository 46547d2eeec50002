"""Window functions: weights that go down to the ends of a signal."""

from __future__ import annotations

import math
from typing import Any

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.scalars import scalar_constant
from pyjx.core.trace import concrete_or_error
from pyjx.numpy.promotion import operands, promote_dtypes_inexact
from pyjx.runtime.operations import op_jit


def _size(name: str, M: ArrayLike) -> int:
    size = int(concrete_or_error(int, M, f"M argument of jnp.{name}"))
    if size < 0:
        raise TypeError(f"jnp.{name}: M, the number of points, must be nonnegative, got {size}.")
    return size


@op_jit(static_argnames=("size",))
def _triangle(size: int) -> Any:
    dtype = dtypes.default_float_dtype()
    if size <= 1:
        return jnp.ones(size, dtype)
    return 1 - jnp.abs(2 * lax.iota(dtype, size) / (size - 1) - 1)


@op_jit(static_argnames=("size", "weights"))
def _cosines(size: int, weights: tuple[float, ...]) -> Any:
    """w_0 - w_1 cos(t) + w_2 cos(2 t) - ..., where t goes from 0 to 2 pi."""
    dtype = dtypes.default_float_dtype()
    if size <= 1:
        return jnp.ones(size, dtype)
    turns = lax.mul(lax.iota(dtype, size), scalar_constant(2 * math.pi / (size - 1), dtype))
    mean, *others = weights
    out: Any = mean
    for k, weight in enumerate(others, 1):
        term = weight * lax.cos(k * turns)
        out = out - term if k % 2 else out + term
    return out


def bartlett(M: int) -> Array:
    """The triangular window of M points that ends in zeros, 1 - |2 n / (M - 1) - 1|.

    Args:
      M: the number of points, of the result and of the formula.

    Returns:
      An array of the default float dtype.

    Raises:
      TypeError: M is negative or traced.

    >>> import pyjx as jax
    >>> jax.numpy.bartlett(5).tolist()
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    return _triangle(_size("bartlett", M))


def blackman(M: int) -> Array:
    """The window 0.42 - 0.5 cos(2 pi n / (M - 1)) + 0.08 cos(4 pi n / (M - 1)) of M points.

    Returns:
      A float array (M,).

    >>> import pyjx as jax
    >>> jax.numpy.blackman(5).round(2).tolist()
    [-0.0, 0.3400000035762787, 1.0, 0.3400000035762787, -0.0]
    """
    return _cosines(_size("blackman", M), (0.42, 0.5, 0.08))


def hamming(M: int) -> Array:
    """The window 0.54 - 0.46 cos(2 pi n / (M - 1)) of M points.

    Returns:
      A float array (M,).

    >>> import pyjx as jax
    >>> jax.numpy.hamming(3).round(2).tolist()
    [0.07999999821186066, 1.0, 0.07999999821186066]
    """
    return _cosines(_size("hamming", M), (0.54, 0.46))


def hanning(M: int) -> Array:
    """The window 0.5 - 0.5 cos(2 pi n / (M - 1)) of M points, named for von Hann.

    Returns:
      A float array (M,).

    >>> import pyjx as jax
    >>> jax.numpy.hanning(3).tolist()
    [0.0, 1.0, 0.0]
    """
    return _cosines(_size("hanning", M), (0.5, 0.5))


@op_jit(static_argnames=("size",))
def _kaiser(size: int, beta: ArrayLike) -> Any:
    dtype = dtypes.default_float_dtype()
    if size <= 1:
        return jnp.ones(size, dtype)
    (beta,) = promote_dtypes_inexact(*operands("kaiser", beta))
    half = 0.5 * (size - 1)
    x = (lax.iota(dtype, size) - half) / half
    return jnp.i0(beta * lax.sqrt(1 - x * x)) / jnp.i0(beta)


def kaiser(M: int, beta: ArrayLike) -> Array:
    """The window I0(beta sqrt(1 - (2 n / (M - 1) - 1)^2)) / I0(beta) of M points.

    I0 is the modified Bessel function of order 0. A greater `beta` makes it narrower.

    Args:
      M: the number of points.
      beta: a number, which may be traced.

    Returns:
      A float array (M,).

    >>> import pyjx as jax
    >>> jax.numpy.kaiser(3, 0.0).tolist()
    [1.0, 1.0, 1.0]
    """
    return _kaiser(_size("kaiser", M), beta)
