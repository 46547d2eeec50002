"""Numbers between two: at equal distances, or each the same multiple of the one before."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from pyjx import configuration
from pyjx import lax as ops
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, DTypeLike
from pyjx.core.avals import get_aval
from pyjx.core.integers import as_int
from pyjx.core.scalars import scalar_constant
from pyjx.core.trace import concrete_or_error
from pyjx.engine.axes import broadcast_in_dim, moveaxis
from pyjx.lax.common import broadcast_shapes
from pyjx.lax.elementwise import stretch
from pyjx.numpy.creation import asarray, filled
from pyjx.numpy.operands import canonical_axis, constant_like, numpy_function
from pyjx.numpy.promotion import check_ranks, convert, narrowed, operands
from pyjx.runtime.device_put import device_put

if TYPE_CHECKING:
    from pyjx.core.layouts import DeviceLike


def _interpolated(start: Array, stop: Array, num: int, endpoint: bool, dtype: np.dtype[Any],
                  axis: int) -> Any:
    """start * (1 - i/n) + (stop/n) * i, where n is num - 1 with the end point.

    (stop/n) * i is exact for most whole steps from 0, stop * (i/n) often is not.
    """
    common = _at_least_single(_common_dtype(start, stop, dtype))
    wide = dtypes.canonicalize_dtype(dtypes.promote_types(common, _at_least_single(dtype)))
    shape = broadcast_shapes(get_aval(start).shape, get_aval(stop).shape)
    start, stop = (stretch(convert(x, wide), shape) for x in (start, stop))
    real = dtypes.to_floating_dtype(wide)
    pieces = num - 1 if endpoint else num
    rows = num - 1 if endpoint and num > 1 else num
    n = scalar_constant(max(pieces, 1), real)
    i = ops.iota(real, rows)
    rest = convert(ops.sub(constant_like(i, 1), ops.div(i, n)), wide)
    step = ops.div(stop, constant_like(stop, max(pieces, 1)))
    dims = tuple(range(1, len(shape) + 1))
    i, rest = (broadcast_in_dim(x, (rows, *shape), (0,)) for x in (convert(i, wide), rest))
    first, step = (broadcast_in_dim(x, (rows, *shape), dims) for x in (start, step))
    out = ops.add(ops.mul(first, rest), ops.mul(step, i))
    if rows < num:
        out = ops.concatenate([out, broadcast_in_dim(stop, (1, *shape), dims)], 0)
    if wide in dtypes.complex_dtypes and dtype not in dtypes.complex_dtypes:
        out = ops.real(out)
    if dtype in dtypes.integer_dtypes:
        out = ops.floor(out)
    return convert(_moved(out, axis), dtype)


def _common_dtype(start: ArrayLike, stop: Array, dtype: DTypeLike) -> Any:
    """The dtype that both have in common, or that of the result, to which each is converted."""
    try:
        return dtypes.result_type(start, stop)
    except dtypes.TypePromotionError:
        return dtype


def _at_least_single(dtype: DTypeLike) -> Any:
    """The dtype of floats, of no fewer than 32 bits, to compute with."""
    dtype = dtypes.to_inexact_dtype(dtype)
    return np.dtype(np.float32) if dtypes.itemsize_bits(dtype) < 32 else dtype


def _moved(x: ArrayLike, axis: int) -> Any:
    return moveaxis(x, 0, canonical_axis(axis, get_aval(x).ndim))


def linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False,
             dtype: Any = None, axis: int = 0, *, device: DeviceLike = None) -> Any:
    """`num` numbers at equal distances from `start` to `stop`.

    Args:
      start, stop: arrays or numbers; the values stand along the new axis `axis`.
      endpoint: whether `stop` is the last number.
      retstep: whether to return the pair of the numbers and their distance.
      num: how many numbers.
      dtype: of the result; by default the float dtype to which `start` and `stop` promote.
      axis: the axis of the result along which the numbers are, where `start` or `stop` is an array.
      device: the device or sharding of the result.

    Returns:
      An array with an axis of `num` numbers; with `retstep` a pair of that and the distance. It is
      of a float dtype where none is asked for.

    >>> import pyjx as jax
    >>> jax.numpy.linspace(0, 1, 3).tolist()
    [0.0, 0.5, 1.0]
    """
    out = _linspace(start, stop, num, endpoint, retstep, dtype, axis)
    if device is None:
        return out
    return (device_put(out[0], device), out[1]) if retstep else device_put(out, device)


@numpy_function(static_argnames=("num", "endpoint", "retstep", "dtype", "axis"))
def _linspace(start: Array, stop: Array, num: SupportsIndex, endpoint: bool, retstep: bool,
              dtype: np.dtype[Any], axis: SupportsIndex) -> Any:
    start, stop = operands("linspace", start, stop)
    num = _count("linspace", num)
    dtype = dtypes.to_inexact_dtype(dtypes.result_type(start, stop)) if dtype is None else \
        dtypes.check_and_canonicalize_user_dtype(dtype, "linspace")
    if num > 1:
        check_ranks("linspace", [get_aval(start).shape, get_aval(stop).shape])
    with configuration.numpy_dtype_promotion("standard"):
        out = _interpolated(start, stop, num, bool(endpoint), dtype, operator.index(axis))
    if not retstep:
        return out
    pieces = num - 1 if endpoint else num
    wide = dtypes.to_inexact_dtype(dtype)
    step = jnp.true_divide(jnp.subtract(convert(stop, wide), convert(start, wide)),
                           float(pieces)) if pieces > 0 else filled((), np.nan, wide)
    return out, step


def _count(name: str, num: object) -> int:
    count = as_int(name, "num", concrete_or_error(None, num, f"'num' argument of jnp.{name}"))
    if count < 0:
        raise ValueError(f"{name}: Number of samples, {num}, must be non-negative.")
    return count


@numpy_function(static_argnames=("num", "endpoint", "dtype", "axis"))
def logspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True,
             base: ArrayLike = 10.0, dtype: DTypeLike | None = None, axis: int = 0) -> Array:
    """`base` to the powers `linspace(start, stop, num)`.

    Args:
      start, stop: the exponents of the first and the last number, or arrays of such, which
        broadcast.
      num: how many numbers.
      endpoint: whether the power of `stop` is the last number.
      base: what is raised to the exponents.
      dtype: of the result; None for the one that follows from the arguments.
      axis: the axis of the result along which the numbers are, where `start` or `stop` is an array.

    Returns:
      An array with an axis of `num` numbers, of a float dtype where none is asked for.

    >>> import pyjx as jax
    >>> jax.numpy.logspace(0.0, 2.0, 3).round(2).tolist()
    [1.0, 10.0, 100.0]
    """
    start, stop, target, wide = _ends("logspace", start, stop, dtype)
    powers = linspace(start, stop, _count("logspace", num), endpoint, axis=axis, dtype=wide)
    return convert(jnp.float_power(base, powers), target)


def _ends(name: str, start: ArrayLike, stop: ArrayLike, dtype: DTypeLike | None
          ) -> tuple[Array, Array, np.dtype[Any], np.dtype[Any]]:
    """The ends of a range, the dtype of the result, and that of the arithmetic, that of the ends:
    inexact, and of 32 bits at least."""
    start, stop = map(narrowed, operands(name, start, stop))
    target = dtypes.to_inexact_dtype(dtypes.result_type(start, stop)) if dtype is None else \
        dtypes.check_and_canonicalize_user_dtype(dtype, name)
    inexact = dtypes.to_inexact_dtype(target)
    wide = inexact if inexact.itemsize >= 4 else np.dtype(np.float32)
    return asarray(convert(start, wide)), asarray(convert(stop, wide)), target, wide


@numpy_function(static_argnames=("num", "endpoint", "dtype", "axis"))
def geomspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True,
              dtype: DTypeLike | None = None, axis: int = 0) -> Array:
    """`num` numbers from `start` to `stop`, each the same multiple of the one before.

    Args:
      start, stop: the first and the last number, or arrays of such, which broadcast; none is 0.
      num: how many numbers.
      endpoint: whether `stop` is the last number.
      dtype: of the result; None for the one that follows from the arguments.
      axis: the axis of the result along which the numbers are, where `start` or `stop` is an array.

    Returns:
      An array with an axis of `num` numbers, of a float dtype where none is asked for.

    >>> import pyjx as jax
    >>> jax.numpy.geomspace(1.0, 4.0, 3).round(4).tolist()
    [1.0, 2.0, 4.0]
    """
    start, stop, target, wide = _ends("geomspace", start, stop, dtype)
    if wide in dtypes.complex_dtypes:
        signs = jnp.sign(start)
        low, high = jnp.divide(start, signs), jnp.divide(stop, signs)
    else:
        signs = jnp.sign(start)
        low, high = jnp.multiply(start, signs), jnp.multiply(stop, signs)
    # of 10, whose powers are then exact, not of e
    num = _count("geomspace", num)
    powers = linspace(jnp.log10(low), jnp.log10(high), num, endpoint, axis=0)
    out = jnp.multiply(jnp.power(10.0, powers), stretch(signs, get_aval(powers).shape))
    if endpoint and num > 1:  # the ends are exact
        out = out.at[-1].set(stop)
    if num > 0:
        out = out.at[0].set(start)
    return convert(_moved(out, axis), target)
