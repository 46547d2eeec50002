"""`jax._src.dlpack`: arrays that are shared with other libraries."""

from __future__ import annotations

from typing import Any

import numpy as np

import pyjx.dlpack
import pyjx.numpy as jnp
from pyjx.core import dtypes
from pyjx.dlpack import is_supported_dtype

__all__ = ["SUPPORTED_DTYPES", "SUPPORTED_DTYPES_SET"]

SUPPORTED_DTYPES_SET = frozenset(filter(is_supported_dtype, map(np.dtype, dtypes.all_dtypes)))
SUPPORTED_DTYPES = frozenset(
    getattr(jnp, "bool_" if d.name == "bool" else d.name) for d in SUPPORTED_DTYPES_SET)


def __getattr__(name: str) -> Any:
    return getattr(pyjx.dlpack, name)
