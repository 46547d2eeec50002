"""The cache of compiled programs on disk."""

from __future__ import annotations

from pyjx.lazy import attach

FAMILIES: dict[str, str] = {}

SUBMODULES = "compilation_cache"

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES, SUBMODULES)
