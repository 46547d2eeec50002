"""`jax._src.state.types`: the types of references."""

from __future__ import annotations

from pyjx.core.avals import AbstractRef

__all__ = ["AbstractRef"]
