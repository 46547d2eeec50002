"""Jaxpr in, StableHLO text out: a pure function that knows neither tracers nor devices."""

from lowering.module import Lowered, lower

__all__ = ["Lowered", "lower"]
