"""`jax._src.abstract_arrays`: the types of arrays, and the classes of values that have them."""

from __future__ import annotations

import numpy as np

from pyjx.core import AbstractToken, abstract_token, dtypes
from pyjx.core.avals import ShapedArray
from pyjx.core.avals import canonical_shape as canonicalize_shape

__all__ = ["AbstractToken", "ShapedArray", "abstract_token", "array_types", "canonicalize_shape",
           "numpy_scalar_types"]

numpy_scalar_types = set(dtypes.numpy_scalar_types)
array_types = {np.ndarray, *numpy_scalar_types}
