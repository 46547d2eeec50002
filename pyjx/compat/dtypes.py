"""`jax._src.dtypes`: NumPy's dtypes, and those that programs have besides."""

from __future__ import annotations

from typing import Any

import numpy as np

import pyjx.dtypes
from pyjx.core import dtypes
from pyjx.core.dtypes import (
    ExtendedDType,
    TypePromotionError,
    dtype,
    extended,
    issubdtype,
    result_type,
    to_complex_dtype,
    to_inexact_dtype,
)
from pyjx.numpy import finfo, iinfo

__all__ = [
    "DType", "ExtendedDType", "TypePromotionError", "dtype", "extended", "finfo", "iinfo",
    "issubdtype", "result_type", "supports_inf", "to_complex_dtype", "to_inexact_dtype",
]

DType = np.dtype
_jax_types = list(dtypes.all_dtypes)


def supports_inf(of: Any) -> bool:
    """Whether a dtype of floating-point numbers has infinities.

    >>> supports_inf("float32"), supports_inf(dtypes.dtype("float8_e4m3fn"))
    (True, False)
    """
    name = np.dtype(of).name
    return not (name.endswith(("fn", "fnuz")) or name.startswith(("float4", "float6")))


def __getattr__(name: str) -> Any:
    for public in (pyjx.dtypes, dtypes):
        if hasattr(public, name):
            return getattr(public, name)
    raise AttributeError(f"module 'jax._src.dtypes' has no attribute {name!r} here")
