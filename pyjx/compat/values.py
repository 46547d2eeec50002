"""Values as XLA takes them, and the tables in which libraries register types of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pyjx import jaxlib_api
from pyjx.core import dtypes

Backend = jaxlib_api.Client


def _canonical(x: Any) -> Any:
    """A NumPy array of a dtype that programs take."""
    array = np.asarray(x)
    return array.astype(dtypes.canonicalize_dtype(array.dtype), copy=False)


# What makes a value of a type one of a canonical dtype. Nothing reads what libraries put here:
# arrays have such a dtype from the start, and other types of operands are those that
# `pytype_aval_mappings` knows.
canonicalize_dtype_handlers: dict[type, Callable[[Any], Any]] = {np.ndarray: _canonical}
