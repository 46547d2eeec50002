"""`jax._src.api`: transformations, by their public names, and the dtype that values will have."""

from __future__ import annotations

from typing import Any

import pyjx
from pyjx.core.dtypes import dtype as _dtype

__all__ = ["_dtype"]


def __getattr__(name: str) -> Any:
    if name in pyjx.__all__:
        return getattr(pyjx, name)
    raise AttributeError(f"module 'jax._src.api' has no attribute {name!r} here")
