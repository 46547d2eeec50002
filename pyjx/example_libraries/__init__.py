"""Small libraries for examples: optimizers, and layers of neural networks."""

from __future__ import annotations

from pyjx.lazy import attach

FAMILIES: dict[str, str] = {}

SUBMODULES = "optimizers stax"

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES, SUBMODULES)
