"""`jax._src.xla_bridge`: the clients of the platforms."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from pyjx.compat.clients import _backends, backends, register_backend_cache
from pyjx.runtime import backends as clients
from pyjx.runtime.backends import (
    default_backend,
    device_count,
    devices,
    local_device_count,
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


def _clearable(fun: Callable[..., Any]) -> Any:
    """The function with the `cache_clear` that it has in JAX: it looks anew at each call."""
    @wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        return fun(*args, **kwargs)

    call.cache_clear = lambda: None  # type: ignore[attr-defined]
    return call


get_backend = _clearable(clients.get_backend)
local_devices = _clearable(clients.local_devices)
process_count = _clearable(clients.process_count)
