"""The memories that an array may lie in."""

from __future__ import annotations

from pyjx.lazy import directory
from pyjx.runtime.sharding import Space

__all__ = ["Space"]
__dir__ = directory(__name__, __all__)
