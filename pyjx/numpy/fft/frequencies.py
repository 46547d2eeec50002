"""Which frequencies the numbers of a transform belong to, and their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyjx import configuration, lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, DTypeLike
from pyjx.core.avals import get_aval
from pyjx.core.integers import as_truncated_int
from pyjx.numpy.axes import all_axes, canonical_axis
from pyjx.numpy.dispatch import numpy_function
from pyjx.numpy.promotion import operands
from pyjx.runtime.device_put import device_put
from pyjx.runtime.operations import op_jit


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
        out = jnp.asarray(out, _float_dtype(name, dtype))
    return out if device is None else device_put(out, device)


def _float_dtype(name: str, dtype: DTypeLike) -> Any:
    return dtypes.to_inexact_dtype(dtypes.check_and_canonicalize_user_dtype(dtype, name))


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
def fftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """The array with the frequency 0 in the middle: each axis, of size n, is rolled by n // 2.

    Args:
      x: array.
      axes: the axes; by default all.

    >>> import pyjx as jax
    >>> jax.numpy.fft.fftshift(jax.numpy.fft.fftfreq(4)).tolist()
    [-0.5, -0.25, 0.0, 0.25]
    """
    return _halves("fftshift", x, axes, 1)


@numpy_function(static_argnames=("axes",))
def ifftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """The inverse of `fftshift`. Takes the same arguments.

    >>> import pyjx as jax
    >>> jax.numpy.fft.ifftshift(jax.numpy.arange(3)).tolist()
    [1, 2, 0]
    """
    return _halves("ifftshift", x, axes, -1)
