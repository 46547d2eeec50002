"""Scalars of a type that 64-bit types being on, or off, would change.

Where they are off a user's NumPy scalar is narrowed, and where they are on Python's are wide. But
arrays that were made while it was the other way keep their type, and the constants beside them,
which the library makes, must have it too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pyjx import configuration
from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray, aval_makers, get_aval


class WideInt(np.int64):
    """An int64 that is not narrowed."""


class WideUint(np.uint64):
    """A uint64 that is not narrowed."""


class WideFloat(np.float64):
    """A float64 that is not narrowed."""


class WideComplex(np.complex128):
    """A complex128 that is not narrowed."""


class WeakInt32(np.int32):
    """A weakly typed int32."""


class WeakInt64(np.int64):
    """A weakly typed int64."""


class WeakFloat32(np.float32):
    """A weakly typed float32."""


class WeakFloat64(np.float64):
    """A weakly typed float64."""


class WeakComplex64(np.complex64):
    """A weakly typed complex64."""


class WeakComplex128(np.complex128):
    """A weakly typed complex128."""


_python_types = frozenset((int, float, complex))
_wide: dict[Any, Any] = {np.dtype(kind.__base__): kind
                         for kind in (WideInt, WideUint, WideFloat, WideComplex)}
_weak: dict[Any, Any] = {np.dtype(kind.__base__): kind for kind in (
    WeakInt32, WeakInt64, WeakFloat32, WeakFloat64, WeakComplex64, WeakComplex128)}
kinds = frozenset((*_wide.values(), *_weak.values()))
for _kind in _wide.values():
    aval_makers[_kind] = lambda x: ShapedArray((), x.dtype)
for _kind in _weak.values():
    aval_makers[_kind] = lambda x: ShapedArray((), x.dtype, True)
    _kind.aval = property(aval_makers[_kind])


def unnarrowed(scalar: Any) -> Any:
    """A NumPy scalar as one that has its own dtype everywhere.

    >>> type(unnarrowed(np.float64(1))).__name__, type(unnarrowed(np.float32(1))).__name__
    ('WideFloat', 'float32')
    """
    if configuration.enable_x64.value:
        return scalar
    kind = _wide.get(scalar.dtype)
    return scalar if kind is None else kind(scalar)


def weakly_typed(scalar: Any) -> Any:
    """A NumPy scalar as a weakly typed one of its dtype: Python's, where that has it.

    >>> weakly_typed(np.float32(1)), type(weakly_typed(np.float64(1))).__name__
    (1.0, 'WeakFloat64')
    """
    value = scalar.item()
    if type(value) in _python_types and dtypes.python_scalar_dtype(type(value)) == scalar.dtype:
        return value
    kind = _weak.get(scalar.dtype)
    return unnarrowed(scalar) if kind is None else kind(scalar)


def kept(scalar: Any, aval: ShapedArray) -> Any:
    """A scalar that was of this type when it was recorded as one of this type now."""
    if get_aval(scalar).dtype == aval.dtype:
        return scalar
    found = np.asarray(scalar, aval.dtype)[()]
    return weakly_typed(found) if aval.weak_type else unnarrowed(found)
