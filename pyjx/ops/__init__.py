"""Reductions over segments of an array."""

from __future__ import annotations

from pyjx.lazy import attach

FAMILIES: dict[str, str] = {
    "pyjx.ops.segments": "segment_max segment_min segment_prod segment_sum",
}

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES)
