"""Scalars: the numbers that jaxprs write at their use, of the types that they are made with.

Where 64-bit types are off a user's NumPy scalar is narrowed, and where they are on Python's are
wide. But arrays that were made while it was the other way keep their type, and the constants beside
them, which the library makes, must have it too: where neither Python nor NumPy has a scalar of the
type now, it is a `Constant`.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from pyjx import configuration
from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray, SymbolicDim, aval_makers, get_aval


class Constant:
    """A NumPy scalar that has its own dtype whatever the flag is, or a weak type of that dtype.
    There is a subclass for each type, which derives from NumPy's too."""

    __slots__ = ()


def _aval_of(weak_type: bool, x: Any) -> ShapedArray:
    return ShapedArray((), x.dtype, weak_type)


_constants: dict[tuple[np.dtype[Any], bool], Any] = {}
_WIDE, _NARROW = ("int64", "float64", "complex128"), ("int32", "float32", "complex64")
for _weak, _names in ((False, ("uint64", *_WIDE)), (True, (*_NARROW, *_WIDE))):
    for _dtype in map(np.dtype, _names):
        _made = type(f"{'Weak' if _weak else 'Wide'}{_dtype.type.__name__.capitalize()}",
                     (_dtype.type, Constant), {})
        _constants[_dtype, _weak] = _made
        aval_makers[_made] = partial(_aval_of, _weak)
        if _weak:
            _made.aval = property(aval_makers[_made])  # type: ignore[attr-defined]

_python_types = frozenset((int, float, complex))
literal_types = frozenset(aval_makers) - {np.ndarray}


def is_minus_zero(x: object) -> bool:
    """Whether it is the zero of floats that keys, which are compared by ==, take for another."""
    return isinstance(x, (float, np.inexact)) and not x and math.copysign(1, x) < 0


def typed(scalar: Any, weak_type: bool = False) -> Any:
    """A NumPy scalar as one that has its own dtype here; a weakly typed one of that dtype, where
    there is such a type, if `weak_type`: Python's if it has it.

    >>> typed(np.float32(1)), type(typed(np.float64(1))).__name__
    (np.float32(1.0), 'WideFloat64')
    >>> typed(np.float32(1), True), type(typed(np.float64(1), True)).__name__
    (1.0, 'WeakFloat64')
    """
    if weak_type:
        value = scalar.item()
        if type(value) in _python_types and (
                dtypes.python_scalar_dtype(type(value)) == scalar.dtype):
            return value
        kind = _constants.get((scalar.dtype, True))
        if kind is not None:
            return kind(scalar)
    if configuration.enable_x64.value:
        return scalar
    kind = _constants.get((scalar.dtype, False))
    return scalar if kind is None else kind(scalar)


def scalar_constant(value: Any, dtype: Any, weak_type: bool = False) -> Any:
    """A number as a scalar of a dtype, which jaxprs show inline; of a symbolic dimension the traced
    value."""
    if isinstance(value, SymbolicDim):
        return value.as_scalar(dtype)
    return typed(np.asarray(value, dtype)[()], weak_type)


def wrapped_constant(value: Any, dtype: Any, weak_type: bool = False) -> Any:
    """As `scalar_constant`, of the low bits of an integer that the dtype does not hold.

    Raises:
      OverflowError: it has more than 64.
    """
    if isinstance(value, SymbolicDim):
        return value.as_scalar(dtype)
    return typed(np.asarray(value).astype(dtype)[()], weak_type)


def scalar_of(aval: ShapedArray, value: Any) -> Any:
    """A number as one element of an aval."""
    return scalar_constant(value, aval.dtype, aval.weak_type)


def as_recorded(scalar: Any, aval: ShapedArray) -> Any:
    """A scalar that was of this type when it was recorded as one of this type now."""
    return scalar if get_aval(scalar).dtype == aval.dtype else scalar_of(aval, scalar)


def is_scalar_constant(x: Any) -> bool:
    """Whether `x` becomes a literal, which elementwise operations take beside any shape."""
    return type(x) in literal_types


def int_fits(x: int, aval: ShapedArray) -> bool:
    """Whether the dtype of a Python int can hold it."""
    bound = 1 << (8 * aval.dtype.itemsize - 1)
    return -bound <= x < bound


def check_int_fits(x: int, aval: ShapedArray) -> None:
    """Raise OverflowError for a Python int that its dtype cannot hold."""
    if not int_fits(x, aval):
        raise OverflowError(f"Python int {x} too large to convert to {aval.dtype}")


# -- the least and the greatest value of a dtype ---------------------------------------------------


def least(dtype: Any) -> Any:
    """The maximum of nothing.

    >>> least(np.float32), least(np.int8)
    (np.float32(-inf), np.int8(-128))
    """
    return _bound(np.dtype(dtype), -np.inf, "min")


def greatest(dtype: Any) -> Any:
    """The minimum of nothing.

    >>> greatest(np.float32), greatest(np.int8)
    (np.float32(inf), np.int8(127))
    """
    return _bound(np.dtype(dtype), np.inf, "max")


def _bound(dtype: np.dtype[Any], infinity: float, name: str) -> Any:
    if dtype == np.bool_:
        return np.bool_(name == "max")
    if dtypes.issubdtype(dtype, np.integer):
        return scalar_constant(getattr(dtypes.iinfo(dtype), name), dtype)
    if dtypes.issubdtype(dtype, np.complexfloating):
        return scalar_constant(complex(infinity, infinity), dtype)
    with np.errstate(all="ignore"):
        value = scalar_constant(infinity, dtype)
    # Some of the small types have no infinity.
    return value if np.isinf(value) else getattr(dtypes.finfo(dtype), name)
