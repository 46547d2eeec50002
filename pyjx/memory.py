"""The memories that an array may lie in."""

from __future__ import annotations

from pyjx.core.spaces import Space
from pyjx.lazy import directory

__all__ = ["Space"]
__dir__ = directory(__name__, __all__)
