"""Pictures of programs: a page with all forms side by side, and graphs for Graphviz."""

from __future__ import annotations

from pyjx.lazy import attach

FAMILIES: dict[str, str] = {
    "pyjx.viewer.document": "page show",
    "pyjx.viewer.graphs": "dot",
}

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES)
