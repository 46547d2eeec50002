"""`jax._src.typing`: what annotations are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyjx.core.array_type import Array, ArrayLike, DTypeLike, SupportsDType
from pyjx.core.dtypes import ExtendedDType

__all__ = ["Array", "ArrayLike", "DType", "DTypeLike", "DimSize", "ExtendedDType", "Shape",
           "SupportsDType"]

DType = np.dtype
DimSize = int | Any  # Any is a dimension with variables
Shape = Sequence[DimSize]
