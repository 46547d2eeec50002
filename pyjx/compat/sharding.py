"""`jax._src.sharding`: how arrays are cut into parts."""

from __future__ import annotations

from pyjx.runtime.sharding import Sharding

__all__ = ["Sharding"]
