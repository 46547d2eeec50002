"""`jax._src.xla_bridge`: the clients of the platforms."""

from __future__ import annotations

from pyjx.compat.clients import _backends, backends, register_backend_cache
from pyjx.runtime.backends import (
    default_backend,
    device_count,
    devices,
    get_backend,
    local_device_count,
    local_devices,
    process_count,
    process_index,
)

__all__ = [
    "_backends", "backends", "backends_are_initialized", "default_backend", "device_count",
    "devices", "get_backend", "local_device_count", "local_devices",
    "process_count", "process_index", "register_backend_cache",
]


def backends_are_initialized() -> bool:
    """Whether a client has started."""
    return bool(_backends)
