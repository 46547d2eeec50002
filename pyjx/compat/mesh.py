"""`jax._src.mesh`: meshes, and those that are set."""

from __future__ import annotations

from typing import Any

import pyjx.core.meshes
from pyjx.compat.devices import thread_resources
from pyjx.core.meshes import empty_mesh
from pyjx.runtime.meshes import get_abstract_mesh, set_mesh, use_abstract_mesh
from pyjx.runtime.meshes import get_mesh as get_concrete_mesh

__all__ = ["empty_abstract_mesh", "empty_concrete_mesh", "get_abstract_mesh", "get_concrete_mesh",
           "set_mesh", "thread_resources", "use_abstract_mesh"]

empty_concrete_mesh = empty_mesh()
empty_abstract_mesh = empty_concrete_mesh.abstract_mesh


def __getattr__(name: str) -> Any:
    return getattr(pyjx.core.meshes, name)
