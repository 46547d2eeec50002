"""Jaxpr in, StableHLO text out: a pure function that knows neither tracers nor devices.

Nothing of it loads before the first program is lowered.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import pyjx.core  # noqa: F401  (pyjx loads modules of this package, so it goes first)

if TYPE_CHECKING:
    from lowering.program import LoweredProgram, lower

__all__ = ["LoweredProgram", "lower"]


def __getattr__(name: str) -> object:
    if name in __all__:
        return getattr(importlib.import_module("lowering.program"), name)
    raise AttributeError(f"module 'lowering' has no attribute {name!r}. It is pyjx's package "
                         f"({__file__}); a module of your own needs another name beside pyjx.")
