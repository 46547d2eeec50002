"""`jax._src.ad_checkpoint`: rematerialization, and what is kept for a backward pass."""

from __future__ import annotations

from typing import Any

import pyjx.ad_checkpoint
from pyjx.transforms.checkpointing import saved_residuals

__all__ = ["saved_residuals"]


def __getattr__(name: str) -> Any:
    return getattr(pyjx.ad_checkpoint, name)
