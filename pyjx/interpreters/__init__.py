"""The interpreters of programs, and the rules that primitives have there."""

from __future__ import annotations

from pyjx.lazy import attach

FAMILIES: dict[str, str] = {}

SUBMODULES = "ad batching mlir partial_eval pxla xla"

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES, SUBMODULES)
