"""Devices that need not be there, to compile for.

    topology = topologies.get_topology_desc("v5e:2x2", "tpu")
    jax.jit(f).trace(x).lower(lowering_platforms=("tpu",)).compile(
        device_assignment=topology.devices[:1])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyjx import jaxlib_api
from pyjx.configuration import known_platforms, platform_meant
from pyjx.core.meshes import Mesh, device_array
from pyjx.lazy import directory
from pyjx.runtime import backends

__all__ = ["Device", "TopologyDescription", "get_attached_topology", "get_topology_desc",
           "make_mesh"]

Device = jaxlib_api.Device


class TopologyDescription:
    """Some devices, attached or only described.

    >>> from pyjx.experimental import topologies
    >>> len(topologies.get_attached_topology("cpu").devices) > 0
    True
    """

    def __init__(self, devices: Sequence[Any]) -> None:
        self.devices = list(devices)

    def serialize(self) -> bytes:
        """The topology of the devices as bytes.

        Raises:
          NotImplementedError: this jaxlib, or the platform, cannot write it.
        """
        return jaxlib_api.serialize_topology(self.devices)

    @classmethod
    def deserialize(cls, serialized: bytes) -> TopologyDescription:
        """The topology that `serialize` wrote.

        Raises:
          ValueError: the bytes are none.
          NotImplementedError: this jaxlib cannot read it.
        """
        return cls(jaxlib_api.deserialize_topology(serialized)._make_compile_only_devices())


def get_attached_topology(platform: str | None = None) -> TopologyDescription:
    """The devices of a platform that are there; by default of the default one.

    Raises:
      RuntimeError: there is none.
    """
    return TopologyDescription(backends.devices(platform))


def get_topology_desc(topology_name: str = "", platform: str | None = None, **kwargs: Any
                      ) -> TopologyDescription:
    """Devices of a platform that need not be there.

    Args:
      topology_name: as the platform's plugin knows it, such as `v5e:2x2` of TPUs.
      platform: `tpu` (default) or `cuda`.
      kwargs: options of the plugin, such as `target_config` for `cuda`.

    Raises:
      NotImplementedError: the platform has no topologies, as the CPU.
      RuntimeError: the plugin is not installed.
    """
    name = "tpu" if platform is None else platform
    name = "cuda" if name == "gpu" else name
    if name not in ("tpu", "cuda", "rocm"):
        raise NotImplementedError(f"topology not implemented for {name}"
                                  f"{'' if name in known_platforms else platform_meant(name)}")
    if backends.plugin_library(name) is None:
        raise RuntimeError(f"get_topology_desc: the PJRT plugin of {name} is not installed; it is "
                           "needed to compile for that platform, though no device is.")
    try:
        topology = jaxlib_api.make_topology(backends.load_compiler(name), topology_name, kwargs)
        return TopologyDescription(topology._make_compile_only_devices())
    except jaxlib_api.JaxRuntimeError as error:
        if str(error).startswith("UNIMPLEMENTED"):
            raise NotImplementedError(str(error)) from error
        raise


def make_mesh(topo: TopologyDescription, mesh_shape: Sequence[int], axis_names: tuple[str, ...], *,
              contiguous_submeshes: bool = False) -> Mesh:
    """A mesh of the devices of a topology, in their order.

    Args:
      topo: the topology.
      mesh_shape: the sizes of the axes.
      axis_names: their names.
      contiguous_submeshes: accepted; devices in their order are contiguous.

    Raises:
      ValueError: the topology has another number of devices.

    >>> from pyjx.experimental import topologies
    >>> topology = topologies.TopologyDescription(
    ...     topologies.get_attached_topology("cpu").devices[:1])
    >>> dict(topologies.make_mesh(topology, (1, 1), ("x", "y")).shape)
    {'x': 1, 'y': 1}
    """
    n = int(np.prod(mesh_shape))
    if n != len(topo.devices):
        raise ValueError(f"Number of devices {len(topo.devices)} must equal the product of "
                         f"mesh_shape {tuple(mesh_shape)}")
    return Mesh(device_array(topo.devices, tuple(mesh_shape)), axis_names)


__dir__ = directory(__name__, __all__)
