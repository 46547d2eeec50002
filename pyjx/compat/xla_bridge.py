"""`jax._src.xla_bridge`: the clients of the platforms."""

from __future__ import annotations

from pyjx.compat.clients import _backends, get_backend

__all__ = ["_backends", "backends_are_initialized", "get_backend"]


def backends_are_initialized() -> bool:
    """Whether a client has started."""
    return bool(_backends)
