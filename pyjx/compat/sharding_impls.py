"""`jax._src.sharding_impls`: shardings. C++ asks for `make_single_device_sharding`."""

from __future__ import annotations

from pyjx.core.specs import PartitionSpec
from pyjx.runtime.sharding import (
    GSPMDSharding,
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
)

__all__ = [
    "GSPMDSharding", "NamedSharding", "PartitionSpec", "Sharding", "SingleDeviceSharding",
    "make_single_device_sharding",
]

make_single_device_sharding = SingleDeviceSharding
