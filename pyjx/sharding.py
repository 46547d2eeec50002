"""Shardings: how the elements of an array lie on devices, and meshes of devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyjx.core.meshes import AbstractDevice, AbstractMesh, AxisType, Mesh
from pyjx.core.primitive import no_collectives
from pyjx.core.specs import ManualAxisType, PartitionSpec, UnreducedKind
from pyjx.lazy import directory, refuse
from pyjx.runtime.meshes import get_abstract_mesh, get_mesh, set_mesh, use_abstract_mesh
from pyjx.runtime.resharding import auto_axes, explicit_axes, reshard
from pyjx.runtime.sharding import NamedSharding, Sharding, SingleDeviceSharding

__all__ = [
    "AbstractDevice", "AbstractMesh", "AxisType", "ManualAxisType", "Mesh", "NamedSharding",
    "PartitionSpec", "Sharding", "SingleDeviceSharding", "UnreducedKind", "auto_axes",
    "explicit_axes", "get_abstract_mesh", "get_mesh", "make_single_device_sharding",
    "no_collectives", "reshard", "set_mesh", "use_abstract_mesh",
]
__dir__ = directory(__name__, __all__)

if not TYPE_CHECKING:
    __getattr__ = refuse(__name__)


def make_single_device_sharding(device: Any, *, memory_kind: str | None = None) -> Any:
    """The sharding of arrays on one device, in one of its memories.

    >>> import pyjx as jax
    >>> jax.sharding.make_single_device_sharding(jax.devices()[0]).num_devices
    1
    """
    return SingleDeviceSharding(device, memory_kind=memory_kind)
