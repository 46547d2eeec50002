"""Looking at values inside compiled programs."""

from __future__ import annotations

from pyjx.lazy import attach

FAMILIES: dict[str, str] = {
    "pyjx.debug.debugger": "breakpoint",
    "pyjx.debug.printing": "callback log print",
    "pyjx.debug.shardings": "inspect_array_sharding visualize_array_sharding visualize_sharding",
    "pyjx.experimental.checkify.transformation": "bounds_check",
    "pyjx.lax.callbacks": "DebugEffect OrderedDebugEffect",
}

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES)
