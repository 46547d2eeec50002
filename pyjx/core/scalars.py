"""Scalars: the numbers that jaxprs write at their use."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray
from pyjx.core.trace import literal_types
from pyjx.core.wide import unnarrowed


def is_scalar_constant(x: Any) -> bool:
    """Whether `x` becomes a literal, which elementwise operations take beside any shape."""
    return type(x) in literal_types


def scalar_constant(value: Any, dtype: Any) -> Any:
    """A NumPy scalar, which jaxprs show inline."""
    return unnarrowed(np.asarray(value, dtype)[()])


_python_types = {"f": float, "c": complex, "i": int}


def scalar_of(aval: ShapedArray, value: Any) -> Any:
    """One element of an aval: a Python scalar where the aval is weakly typed, or a NumPy one."""
    if aval.weak_type:
        python_type = _python_types.get(aval.dtype.kind)
        if python_type is not None and dtypes.python_scalar_dtype(python_type) == aval.dtype:
            return python_type(value)
    return scalar_constant(value, aval.dtype)
