"""`jax._src.monitoring`: events, and who listens to them."""

from __future__ import annotations

from typing import Any

import pyjx.monitoring
from pyjx.monitoring import Listener

__all__ = ["get_event_duration_listeners", "get_event_listeners", "get_event_time_span_listeners",
           "get_scalar_listeners"]


def get_event_listeners() -> list[Listener]:
    """Who hears of events."""
    return list(pyjx.monitoring._events)


def get_event_duration_listeners() -> list[Listener]:
    """Who hears of durations."""
    return list(pyjx.monitoring._durations)


def get_event_time_span_listeners() -> list[Listener]:
    """Who hears of time spans."""
    return list(pyjx.monitoring._spans)


def get_scalar_listeners() -> list[Listener]:
    """Who hears of numbers."""
    return list(pyjx.monitoring._scalars)


def __getattr__(name: str) -> Any:
    return getattr(pyjx.monitoring, name)
