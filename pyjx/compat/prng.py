"""`jax._src.random.prng`, and `jax._src.prng` of JAX before 0.12: generators and their keys."""

from __future__ import annotations

from typing import Any

import pyjx.extend.random
from pyjx.random.implementations import PRNGImpl
from pyjx.random.keys import KeyTy, PRNGKeyArray

__all__ = ["KeyTy", "PRNGImpl", "PRNGKeyArray"]


def __getattr__(name: str) -> Any:
    return getattr(pyjx.extend.random, name)
