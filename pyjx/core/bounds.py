"""The least and the greatest value of a dtype: the identities of maximum and minimum."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyjx.core import dtypes
from pyjx.core.wide import unnarrowed


def least(dtype: Any) -> Any:
    """The maximum of nothing, as a NumPy scalar.

    >>> least(np.float32), least(np.int8)
    (np.float32(-inf), np.int8(-128))
    """
    return _bound(np.dtype(dtype), -np.inf, "min")


def greatest(dtype: Any) -> Any:
    """The minimum of nothing, as a NumPy scalar.

    >>> greatest(np.float32), greatest(np.int8)
    (np.float32(inf), np.int8(127))
    """
    return _bound(np.dtype(dtype), np.inf, "max")


def _bound(dtype: np.dtype[Any], infinity: float, name: str) -> Any:
    if dtype == np.bool_:
        return np.bool_(name == "max")
    if dtypes.issubdtype(dtype, np.integer):
        return unnarrowed(np.asarray(getattr(dtypes.iinfo(dtype), name), dtype)[()])
    if dtypes.issubdtype(dtype, np.complexfloating):
        return unnarrowed(np.asarray(complex(infinity, infinity), dtype)[()])
    with np.errstate(all="ignore"):
        value = unnarrowed(np.asarray(infinity, dtype)[()])
    # Some of the small types have no infinity.
    return value if np.isinf(value) else getattr(dtypes.finfo(dtype), name)
