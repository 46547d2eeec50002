"""`jax._src.compiler`: programs compiled by XLA."""

from __future__ import annotations

from typing import Any

import pyjx.runtime.compile
from pyjx.compat.clients import get_compile_options

__all__ = ["get_compile_options"]


def __getattr__(name: str) -> Any:
    return getattr(pyjx.runtime.compile, name)
