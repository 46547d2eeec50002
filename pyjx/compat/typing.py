"""`jax._src.typing`: what annotations are made of."""

from __future__ import annotations

from pyjx.core.array_type import Array, ArrayLike, DTypeLike, SupportsDType
from pyjx.core.dtypes import ExtendedDType

__all__ = ["Array", "ArrayLike", "DTypeLike", "ExtendedDType", "SupportsDType"]
