"""Scalars: the numbers that jaxprs write at their use."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyjx.core.array_type import Array
from pyjx.core.avals import ShapedArray, SymbolicDim
from pyjx.core.trace import Tracer, literal_types
from pyjx.core.wide import unnarrowed, weakly_typed


def is_scalar_constant(x: Any) -> bool:
    """Whether `x` becomes a literal, which elementwise operations take beside any shape."""
    return type(x) in literal_types


def stands_for_constant(x: Any) -> bool:
    """Whether `x` is a tracer of a value of Python or NumPy, which was not made an array yet."""
    value = x.to_concrete_value() if isinstance(x, Tracer) else None
    return value is not None and not isinstance(value, Array)


def scalar_constant(value: Any, dtype: Any) -> Any:
    """A NumPy scalar, which jaxprs show inline; of a symbolic dimension the traced value."""
    if isinstance(value, SymbolicDim):
        return value.as_scalar(dtype)
    return unnarrowed(np.asarray(value, dtype)[()])


def wrapped_int(value: int, dtype: Any) -> Any:
    """A NumPy scalar of the low bits of a Python int of up to 64 bits.

    Raises:
      OverflowError: it has more.
    """
    return unnarrowed(np.asarray(value).astype(dtype)[()])


def scalar_of(aval: ShapedArray, value: Any) -> Any:
    """One element of an aval: a weakly typed scalar where that is, or a NumPy one."""
    if aval.weak_type:
        return weakly_typed(np.asarray(value, aval.dtype)[()])
    return scalar_constant(value, aval.dtype)
