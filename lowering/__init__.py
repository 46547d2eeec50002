"""Jaxpr in, StableHLO text out: a pure function that knows neither tracers nor devices."""

import pyjx.core  # noqa: F401  (first: the rooms above core import modules of this package)
from lowering.program import LoweredProgram, lower

__all__ = ["LoweredProgram", "lower"]


def __getattr__(name: str) -> object:
    raise AttributeError(f"module 'lowering' has no attribute {name!r}. It is pyjx's package "
                         f"({__file__}); a module of your own needs another name beside pyjx.")
