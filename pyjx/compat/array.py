"""`jax._src.array`: the class of arrays."""

from __future__ import annotations

from pyjx.runtime.array import ArrayImpl

__all__ = ["ArrayImpl"]
