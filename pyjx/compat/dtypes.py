"""`jax._src.dtypes`: NumPy's dtypes, and those that programs have besides."""

from __future__ import annotations

from typing import Any

import numpy as np

import pyjx.dtypes
from pyjx.core import dtypes
from pyjx.core.dtypes import (
    ExtendedDType,
    TypePromotionError,
    canonicalize_dtype,
    dtype,
    extended,
    float0,
    is_python_scalar,
    issubdtype,
    python_scalar_dtype,
    result_type,
    to_complex_dtype,
    to_inexact_dtype,
)
from pyjx.core.dtypes import tangent_dtype as primal_tangent_dtype
from pyjx.numpy import finfo, iinfo

DType = np.dtype

__all__ = [
    "DType", "ExtendedDType", "TypePromotionError", "canonicalize_dtype", "dtype", "extended",
    "finfo", "float0", "iinfo", "is_python_scalar", "issubdtype", "primal_tangent_dtype",
    "python_scalar_dtype", "result_type", "supports_inf", "to_complex_dtype", "to_inexact_dtype",
]


def supports_inf(of: Any) -> bool:
    """Whether a dtype of floating-point numbers has infinities."""
    name = np.dtype(of).name
    return not (name.endswith(("fn", "fnuz")) or name.startswith(("float4", "float6")))


def __getattr__(name: str) -> Any:
    for public in (pyjx.dtypes, dtypes):
        if hasattr(public, name):
            return getattr(public, name)
    raise AttributeError(f"module 'jax._src.dtypes' has no attribute {name!r} here")
