"""`jax._src.sharding_impls`: shardings. C++ asks for `make_single_device_sharding`."""

from __future__ import annotations

from typing import Any

from pyjx.core.explicit import abstract_sharding
from pyjx.core.specs import PartitionSpec
from pyjx.runtime.sharding import (
    GSPMDSharding,
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
)

__all__ = [
    "GSPMDSharding", "NamedSharding", "PartitionSpec", "Sharding", "SingleDeviceSharding",
    "canonicalize_sharding", "make_single_device_sharding",
]

make_single_device_sharding = SingleDeviceSharding


def canonicalize_sharding(sharding: Any, api_name: str, check_mesh_consistency: bool = True
                          ) -> NamedSharding | None:
    """The sharding over an abstract mesh; None for None, and for one that names no mesh.

    Args:
      sharding: a NamedSharding, a PartitionSpec along the mesh that is set, or None.
      api_name: whose argument errors say it is.
      check_mesh_consistency: no meaning here: the mesh is checked where the sharding is used.

    Raises:
      ValueError: no mesh is set, or it names an axis that is not Explicit.
      TypeError: it is neither.
    """
    return None if sharding is None else abstract_sharding(sharding, api_name)
