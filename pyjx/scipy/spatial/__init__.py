"""Space. Modules load when they are first used."""

from __future__ import annotations

from pyjx.lazy import attach

FAMILIES: dict[str, str] = {}

SUBMODULES = "transform"

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES, SUBMODULES)
