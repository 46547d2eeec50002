"""`jax._src.numpy.array_methods`: what `x.at` and `x.at[index]` are, for arrays of libraries."""

from __future__ import annotations

from pyjx.numpy.indexing import IndexUpdateHelper as _IndexUpdateHelper
from pyjx.numpy.indexing import IndexUpdateRef as _IndexUpdateRef

__all__ = ["_IndexUpdateHelper", "_IndexUpdateRef"]
