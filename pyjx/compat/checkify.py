"""`jax._src.checkify`: checks as errors that functions return."""

from __future__ import annotations

from typing import Any, TypeVar

from pyjx.experimental import checkify as _public  # whose function `checkify` is meant here

Out = TypeVar("Out")


def __getattr__(name: str) -> Any:
    return getattr(_public, name)
