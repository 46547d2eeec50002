"""`jax._src.layout`: in which order elements stand in memory."""

from __future__ import annotations

from typing import Any

import pyjx.experimental.layout
from pyjx.core.layouts import AutoLayout

__all__ = ["AutoLayout"]


def __getattr__(name: str) -> Any:
    return getattr(pyjx.experimental.layout, name)
