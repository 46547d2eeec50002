"""`jax._src.compiler`: programs compiled by XLA."""

from __future__ import annotations

from typing import Any

import pyjx.runtime.compile


def __getattr__(name: str) -> Any:
    return getattr(pyjx.runtime.compile, name)
