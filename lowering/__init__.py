"""Jaxpr in, StableHLO text out: a pure function that knows neither tracers nor devices."""

from lowering.module import Lowered, lower

__all__ = ["Lowered", "lower"]


def __getattr__(name: str) -> object:
    raise AttributeError(f"module 'lowering' has no attribute {name!r}. It is pyjx's package "
                         f"({__file__}); a module of your own needs another name beside pyjx.")
