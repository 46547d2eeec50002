"""Ranges of numbers: `arange`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pyjx import configuration
from pyjx import lax as ops
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, DTypeLike
from pyjx.core.avals import SymbolicDim
from pyjx.core.integers import range_size
from pyjx.core.layouts import DeviceLike, ShardingLike
from pyjx.core.scalars import scalar_constant
from pyjx.core.trace import Tracer, concrete_or_error, eager_trace, state
from pyjx.numpy.creation import MOST_FROM_HOST, MOST_FROM_SAME_MEMORY, of_host, target_of
from pyjx.runtime.array import ArrayImpl
from pyjx.runtime.resharding import placed

__all__ = ["arange"]


def arange(start: ArrayLike, stop: ArrayLike | None = None, step: ArrayLike | None = None,
           dtype: Any = None, *, device: DeviceLike = None,
           out_sharding: ShardingLike = None) -> Array:
    """Numbers from `start` (by default 0) up to, but without, `stop`, in steps.

    Args:
      start: the first number; where it is the only one, it is the end, and 0 the first.
      stop: the end, which is not reached.
      step: the distance between two numbers, which may be negative.
      dtype: of the result; None for the one that follows from the arguments.
      device: the device or sharding of the result.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    Returns:
      A one-dimensional array of ceil((stop - start) / step) numbers. Its dtype is that to which the
      arguments promote: int32 for Python integers and float32 for floats, unless 64-bit types are
      on.

    Raises:
      ConcretizationTypeError: an argument is traced: the shape would depend on it.
      ValueError: an argument is complex or nan.
      OverflowError: an argument is infinite.
      TypeError: the dtype is bool.
      ZeroDivisionError: the step is 0.

    >>> import pyjx as jax
    >>> jax.numpy.arange(2, 8, 3)
    Array([2, 5], dtype=int32)
    """
    if type(start) is int and stop is step is dtype is None and (
            state.dynamic is eager_trace and start <= MOST_FROM_HOST
            and configuration.transfer_guard_host_to_device.value is None):
        dtype = dtypes.default_int_dtype()
        return placed(of_host(np.arange(start, dtype=dtype), dtype),
                      target_of("arange", device, out_sharding))
    if dtype is not None:
        dtype = dtypes.check_and_canonicalize_user_dtype(dtype, "arange")
    named = (("stop" if stop is None else "start", start), ("stop", stop), ("step", step))
    bounds = [_concrete("arange", key, value) for key, value in named if value is not None]
    if not bounds or start is None:
        raise TypeError("arange requires a start or stop value, got None")
    if any(isinstance(v, SymbolicDim) for v in bounds):
        return placed(_symbolic_range(*_bounds(start, stop, step, bounds), dtype),
                      target_of("arange", device, out_sharding))
    if any(isinstance(v, complex) or getattr(v, "dtype", np.dtype(int)).kind == "c"
           for v in bounds):
        raise ValueError("Passing complex start/stop/step to jnp.arange is no longer supported. "
                         "Give real numbers, and cast the result.")
    if dtype is None:
        try:
            dtype = dtypes.result_type(*[x for x in (start, stop, step) if x is not None])
        except TypeError:
            raise TypeError("arange: start, stop and step must be numbers, got "
                            f"{', '.join(map(repr, bounds))}.") from None
    if dtype == np.bool_ or dtype not in dtypes.all_dtypes:
        raise TypeError(f"iota does not accept dtype {dtypes.name(dtype)}. Accepted dtypes are "
                        "subtypes of integer, complexfloating, floating.")
    target = target_of("arange", device, out_sharding)
    low, high, by = _bounds(start, stop, step, bounds)
    if by == 0:
        raise ZeroDivisionError("arange: step must not be 0: division by zero")
    if dtype in dtypes.integer_dtypes and all(
            isinstance(v, (int, np.integer)) for v in (low, high, by)):
        low, high, by = int(low), int(high), int(by)
        if state.dynamic is not eager_trace or (high - low) // by > MOST_FROM_SAME_MEMORY:
            return placed(_traced_range(low, high, by, dtype), target)
    if any(isinstance(v, float) and math.isinf(v) for v in (low, high, by)):
        raise OverflowError("cannot convert float infinity to integer")
    if stop is step is None and configuration.transfer_guard_host_to_device.value is not None:
        return placed(ops.iota(dtype, max(math.ceil(high), 0)), target)  # nothing is the user's
    native = dtype.kind == "f" and dtype.itemsize >= 4  # steps are added up in it, as by NumPy
    if any(isinstance(x, np.generic) and x.dtype.kind == "V" for x in (low, high, by)):
        low, high, by = map(float, (low, high, by))  # NumPy has no ranges of ml_dtypes' types
    host = np.arange(low, high, by, dtype=dtype if native else None)
    if dtype in dtypes.integer_dtypes and host.dtype.kind == "f":
        host = _whole_steps(low, by, len(host), dtype)
    return placed(of_host(host, dtype), target)


def _whole_steps(low: float, by: float, count: int, dtype: DTypeLike) -> np.ndarray:
    """`count` numbers from `low`; both it and the step are integers of the dtype, as in JAX."""
    least = np.iinfo(dtype).min if dtypes.itemsize_bits(dtype) >= 8 else -math.inf
    first, step = (int(max(x, least) if isinstance(x, float) else x) for x in (low, by))
    return first + step * np.arange(count) if count > 1 else np.asarray([first])[:count]


def _concrete(function: str, argument: str, value: object) -> Any:
    if isinstance(value, (Tracer, ArrayImpl)):
        value = concrete_or_error(np.asarray, value,
                                  f"It arose in the jnp.{function} argument '{argument}'")
    if isinstance(value, np.ndarray):
        if value.ndim:
            raise ValueError(f"jax.numpy.{function}: arguments must be scalars; got "
                             f"{argument}={value}, of shape {value.shape}")
        return value[()]
    return value


def _bounds(start: object, stop: object, step: object, bounds: list[Any]) -> tuple[Any, Any, Any]:
    if stop is None:
        return 0, bounds[0], 1 if step is None else bounds[-1]
    return bounds[0], bounds[1], 1 if step is None else bounds[2]


def _symbolic_range(low: ArrayLike, high: ArrayLike, by: ArrayLike, dtype: DTypeLike) -> Any:
    """A range between symbolic dimensions."""
    if not all(isinstance(x, (int, np.integer, SymbolicDim)) for x in (low, high)):
        cure = "Let stop be a size, and compute with the numbers: start + step * jnp.arange(n)."
        if isinstance(high, SymbolicDim) and isinstance(low, float) and by == 1:
            size: Any = high
            cure = (f"Add the start to as many numbers: {low} + "
                    f"jnp.arange({size - math.floor(low)}).")
        raise ValueError("jnp.arange: start and stop of a range between symbolic dimensions must "
                         f"be integers, got {low} and {high}. {cure}")
    if type(by) is not int or by == 0:
        raise ValueError("jnp.arange: the step of a range between symbolic dimensions must be an "
                         f"int that is not 0, got {by!r}.")
    dtype = dtypes.python_scalar_dtype(int) if dtype is None else dtype
    return _traced_range(low, high, by, dtype)


def _traced_range(low: Any, high: Any, by: int, dtype: DTypeLike) -> Any:
    """The integers from one to another, of which either may be a symbolic dimension."""
    out = ops.iota(dtype, range_size(low, high, by))
    if by != 1:
        out = ops.mul(out, scalar_constant(by, dtype))
    if isinstance(low, (int, np.integer)):
        return ops.add(out, scalar_constant(int(low), dtype)) if low else out
    return ops.add(out, ops.broadcast(ops.convert_element_type(low, dtype), out.shape))
