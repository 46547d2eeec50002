"""`jax._src.mesh`: meshes, and the one that this thread has entered."""

from __future__ import annotations

from typing import Any

import pyjx.core.meshes
from pyjx.compat.devices import thread_resources

__all__ = ["thread_resources"]


def __getattr__(name: str) -> Any:
    return getattr(pyjx.core.meshes, name)
