"""Mutable references to arrays. Names load their module when they are first used."""

from __future__ import annotations

from pyjx.lazy import attach

FAMILIES: dict[str, str] = {
    "pyjx.core.avals": "AbstractRef",
    "pyjx.core.references": "Ref",
    "pyjx.lax.references": "addupdate empty_ref free_ref freeze get new_ref set swap",
}

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES)
