"""How long XLA's passes took, as its own profiler tells."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from pyjx import jaxlib_api
from pyjx.core.records import Record

T = TypeVar("T")


class PassTime(Record):
    """A pass of XLA's: how often it ran, and the seconds of all its runs.

    Passes hold others, so the sum of all is more than the compilation took.
    """

    name: str
    times: int
    seconds: float


def recorded(work: Callable[[], Any], read: Callable[[Any], T]) -> tuple[Any, list[T]]:
    """The result of `work`, and what `read` gives of the events that XLA's profiler told meanwhile;
    none where somebody else profiles already. Events live as long as the profile that has them."""
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
    profile = data.ProfileData.from_serialized_xspace(told)
    with warnings.catch_warnings():
        # of how jaxlib's C++ makes a type; as an error it would end the process
        warnings.simplefilter("ignore", DeprecationWarning)
        return result, [read(event) for plane in profile.planes
                        for line in plane.lines for event in line.events]


def watched(work: Callable[[], Any]) -> tuple[Any, list[PassTime]]:
    """The result of `work`, and the passes that XLA ran meanwhile, the longest first."""
    result, events = recorded(work, lambda event: (event.name, event.duration_ns))
    found: dict[str, tuple[int, float]] = {}
    for name, duration in events:
        times, seconds = found.get(name, (0, 0.0))
        found[name] = times + 1, seconds + duration / 1e9
    rows = [PassTime(name, *counted) for name, counted in found.items()]
    return result, sorted(rows, key=lambda r: (-r.seconds, r.name))
