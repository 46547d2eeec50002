"""`jax._src.checkify`: checks as errors that functions return."""

from __future__ import annotations

from typing import Any, TypeVar

from pyjx.experimental import checkify

Out = TypeVar("Out")


def __getattr__(name: str) -> Any:
    return getattr(checkify, name)
