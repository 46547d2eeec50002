"""How long XLA's passes took, as its own profiler tells."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from pyjx import jaxlib_api
from pyjx.core.records import Record


class PassTime(Record):
    """A pass of XLA's: how often it ran, and the seconds of all its runs.

    Passes hold others, so the sum of all is more than the compilation took.
    """

    name: str
    times: int
    seconds: float


def recorded(work: Callable[[], Any]) -> tuple[Any, list[Any]]:
    """The result of `work`, and the events that XLA's profiler told meanwhile; none where somebody
    else profiles already."""
    profiler, data = jaxlib_api.profiler(), jaxlib_api.profile_data()
    options = profiler.ProfileOptions()
    options.python_tracer_level = 0
    options.host_tracer_level = 2
    try:
        session = profiler.ProfilerSession(options)
    except RuntimeError:
        return work(), []
    told = None
    try:
        result = work()
    finally:
        with contextlib.suppress(RuntimeError):  # which tells only now that there is another one
            told = session.stop()
    if told is None:
        return result, []
    return result, [event for plane in data.ProfileData.from_serialized_xspace(told).planes
                    for line in plane.lines for event in line.events]


def watched(work: Callable[[], Any]) -> tuple[Any, list[PassTime]]:
    """The result of `work`, and the passes that XLA ran meanwhile, the longest first."""
    result, events = recorded(work)
    found: dict[str, tuple[int, float]] = {}
    for event in events:
        times, seconds = found.get(event.name, (0, 0.0))
        found[event.name] = times + 1, seconds + event.duration_ns / 1e9
    rows = [PassTime(name, *counted) for name, counted in found.items()]
    return result, sorted(rows, key=lambda r: (-r.seconds, r.name))
