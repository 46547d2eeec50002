"""Arrays from other libraries, and to them, without copies, through DLPack."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyjx import numpy as jnp
from pyjx.core.array_type import Array
from pyjx.lazy import directory

__all__ = ["from_dlpack", "is_supported_dtype"]

_SUPPORTED = frozenset((
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "bfloat16", "float32", "float64", "complex64", "complex128",
))


def from_dlpack(external_array: Any, device: Any = None, copy: bool | None = None) -> Array:
    """The array of an object that exports itself through DLPack, sharing its memory if it can.

    Args:
      external_array: has the methods `__dlpack__` and `__dlpack_device__`.
      device: the Device or Sharding to put the array on.
      copy: whether to copy: always, never, or if need be.

    Raises:
      TypeError: the object has no such methods.

    >>> import pyjx as jax
    >>> import numpy as np
    >>> jax.dlpack.from_dlpack(np.arange(3, dtype="int32")).tolist()
    [0, 1, 2]
    """
    return jnp.from_dlpack(external_array, device=device, copy=copy)


def is_supported_dtype(dtype: Any) -> bool:
    """Whether arrays of a dtype can be exported.

    >>> import pyjx as jax
    >>> jax.dlpack.is_supported_dtype("bfloat16"), jax.dlpack.is_supported_dtype("int4")
    (True, False)
    """
    try:
        return np.dtype(dtype).name in _SUPPORTED
    except TypeError:  # of no array
        return False


__dir__ = directory(__name__, __all__)
