"""Values as XLA takes them."""

from __future__ import annotations

from pyjx.lazy import attach

FAMILIES: dict[str, str] = {
    "pyjx.compat.values": "Backend canonicalize_dtype_handlers",
    "pyjx.compat.open_primitives": "apply_primitive",
    "pyjx.core.avals": "pytype_aval_mappings=aval_makers",
}

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES)
