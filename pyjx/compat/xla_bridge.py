"""`jax._src.xla_bridge`: the clients of the platforms."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from pyjx.compat.clients import (
    _backends,
    backend_xla_version,
    backends,
    register_backend_cache,
    register_backend_factory,
)
from pyjx.runtime import backends as clients
from pyjx.runtime.backends import (
    default_backend,
    device_count,
    devices,
    local_device_count,
    process_index,
)

__all__ = [
    "_backends", "backend_xla_version", "backends", "backends_are_initialized",
    "canonicalize_platform", "default_backend", "device_count", "devices", "expand_platform_alias",
    "get_backend", "get_device_backend", "is_known_platform", "known_platforms",
    "local_device_count", "local_devices", "process_count", "process_index", "process_indices",
    "register_backend_cache", "register_backend_factory",
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


def process_indices(backend: Any = None) -> list[int]:
    """The numbers of all processes."""
    return list(range(process_count(backend)))


def get_device_backend(device: Any = None) -> Any:
    """The client of a device, by default the preferred one."""
    return get_backend() if device is None else device.client


def known_platforms() -> set[str]:
    """The names of platforms, here or not."""
    return clients.known_platforms()


def is_known_platform(platform: str) -> bool:
    """Whether there is a platform of this name, here or not."""
    return platform in known_platforms()


def expand_platform_alias(platform: str) -> list[str]:
    """The platforms that a name may mean.

    >>> expand_platform_alias("gpu"), expand_platform_alias("cpu")
    (['cuda', 'rocm'], ['cpu'])
    """
    return list(clients.ALIASES.get(platform, (platform,)))


def canonicalize_platform(platform: str) -> str:
    """The platform that a name means here.

    Raises:
      RuntimeError: none of those that it may mean is here.

    >>> canonicalize_platform("cpu")
    'cpu'
    """
    if platform not in clients.ALIASES:
        return platform
    return str(get_backend(platform).platform)
