"""The clients of the platforms."""

from __future__ import annotations

from pyjx.lazy import attach

FAMILIES: dict[str, str] = {
    "pyjx.compat.ifrt": "ifrt_proxy",
    "pyjx.runtime.backends": "get_default_device=default_device",
    "pyjx.runtime.jit": "clear_in_memory_compilation_cache=clear_caches",
    "pyjx.compat.clients": (
        "backend_xla_version backends clear_backends get_backend get_compile_options "
        "register_backend_cache register_backend_factory"
    ),
}

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES)
