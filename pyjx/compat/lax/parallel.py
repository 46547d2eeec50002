"""`jax._src.lax.parallel`: collective operations, and their primitives."""

from __future__ import annotations

from typing import Any

import pyjx.lax
from pyjx.lax import collectives, exchanges


def __getattr__(name: str) -> Any:
    if name.endswith("_p"):
        for module in (collectives, exchanges):
            if hasattr(module, name):
                return getattr(module, name)
    return getattr(pyjx.lax, name)
