"""`jax._src.config`: the flags."""

from __future__ import annotations

from typing import Any

from pyjx import configuration

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    return getattr(configuration, name)
