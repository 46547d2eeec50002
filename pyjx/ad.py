"""Where gradients go: what the method `with_refs` of what `vjp` returns takes and gives."""

from __future__ import annotations

from pyjx.lazy import attach

FAMILIES: dict[str, str] = {
    "pyjx.transforms.vjp": "DidntWant DontWant GradRef GradValue",
}

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES)
