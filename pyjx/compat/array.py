"""`jax._src.array`: arrays, and those that are made of parts."""

from __future__ import annotations

import pyjx
from pyjx.runtime.array import ArrayImpl

__all__ = [
    "ArrayImpl", "Shard", "make_array_from_callback", "make_array_from_process_local_data",
    "make_array_from_single_device_arrays",
]

Shard = pyjx.Shard
make_array_from_callback = pyjx.make_array_from_callback
make_array_from_process_local_data = pyjx.make_array_from_process_local_data
make_array_from_single_device_arrays = pyjx.make_array_from_single_device_arrays
