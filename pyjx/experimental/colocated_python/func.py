"""Functions beside devices, which are those of this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

import numpy as np

from pyjx.core.meshes import Mesh
from pyjx.lazy import directory
from pyjx.runtime import backends

__all__ = ["colocated_cpu_devices", "colocated_python", "colocated_python_class"]
__dir__ = directory(__name__, __all__)

_F = TypeVar("_F", bound=Callable[..., Any])


def colocated_cpu_devices(devices_or_mesh: Sequence[Any] | Mesh) -> Any:
    """A device of the host for each device; of a mesh the mesh of these.

    >>> import pyjx as jax
    >>> from pyjx.experimental import colocated_python
    >>> colocated_python.colocated_cpu_devices(jax.devices()) == jax.devices("cpu")
    True
    """
    if isinstance(devices_or_mesh, Mesh):
        mesh = devices_or_mesh
        beside = np.array(colocated_cpu_devices(list(mesh.devices.flat)), object)
        return Mesh(beside.reshape(mesh.devices.shape), mesh.axis_names,
                    axis_types=mesh.axis_types)
    devices = devices_or_mesh
    hosts = backends.devices("cpu")
    return [d if d.platform == "cpu" else hosts[i % len(hosts)] for i, d in enumerate(devices)]


def colocated_python(fun: _F) -> _F:
    """The function itself: this process is the one beside its devices.

    >>> from pyjx.experimental import colocated_python
    >>> colocated_python.colocated_python(abs)(-1)
    1
    """
    return fun


def colocated_python_class(cls: type) -> NoReturn:
    """Raises NotImplementedError: objects that live on other hosts are not there."""
    raise NotImplementedError(f"colocated_python_class: {cls.__name__} would live on other hosts, "
                              "which pyjx does not control; use the class itself")
