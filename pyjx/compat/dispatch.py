"""`jax._src.dispatch`: running single operations."""

from __future__ import annotations

from pyjx.compat.open_primitives import apply_primitive
from pyjx.runtime.tokens import effects_barrier as wait_for_tokens

__all__ = ["apply_primitive", "wait_for_tokens"]
