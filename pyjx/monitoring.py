"""Events that listeners hear of: how long tracing, lowering and compiling took, and users' own.

Events have names like paths, with keywords that say more: the times of compilation are
`/jax/core/compile/jaxpr_trace_duration`, `/jax/core/compile/jaxpr_to_mlir_module_duration` and
`/jax/core/compile/backend_compile_duration`, each with `fun_name`. `/pyjx/jit/call_miss` is a call
of a compiled function or operation that C++ hands to Python: each of a new signature, the first
eight or so of an operation, and each under a transformation.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from pyjx.lazy import directory

__all__ = [
    "clear_event_listeners", "record_event", "record_event_duration_secs",
    "record_event_time_span", "record_scalar", "register_event_duration_secs_listener",
    "register_event_listener", "register_event_time_span_listener", "register_scalar_listener",
    "unregister_event_duration_listener", "unregister_event_listener",
    "unregister_event_time_span_listener", "unregister_scalar_listener",
]


Listener = Callable[..., None]


class _Listeners(list[Listener]):
    """The listeners of one kind of event."""

    def tell(self, *args: Any, **kwargs: Any) -> None:
        for listener in list(self):
            listener(*args, **kwargs)

    def unregister(self, callback: Listener) -> None:
        if callback not in self:
            raise ValueError(f"{callback} is not registered as a listener of this kind.")
        self.remove(callback)


_events, _durations, _spans, _scalars = [_Listeners() for _ in range(4)]


def record_event(event: str, **kwargs: str | int) -> None:
    """Tell the listeners of events that something happened.

    >>> from pyjx import monitoring
    >>> monitoring.register_event_listener(print)
    >>> monitoring.record_event("/mine/started")
    /mine/started
    >>> monitoring.unregister_event_listener(print)
    """
    _events.tell(event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Tell the listeners of durations how many seconds something took.

    >>> from pyjx import monitoring
    >>> monitoring.register_event_duration_secs_listener(print)
    >>> monitoring.record_event_duration_secs("/mine/step", 0.5)
    /mine/step 0.5
    >>> monitoring.unregister_event_duration_listener(print)
    """
    _durations.tell(event, duration, **kwargs)


def record_event_time_span(event: str, start_time: float, end_time: float,
                           **kwargs: str | int) -> None:
    """Tell the listeners of time spans when something began and ended, in seconds.

    >>> from pyjx import monitoring
    >>> monitoring.register_event_time_span_listener(print)
    >>> monitoring.record_event_time_span("/mine/step", 1.0, 2.5)
    /mine/step 1.0 2.5
    >>> monitoring.unregister_event_time_span_listener(print)
    """
    _spans.tell(event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Tell the listeners of scalars a number.

    >>> from pyjx import monitoring
    >>> monitoring.register_scalar_listener(print)
    >>> monitoring.record_scalar("/mine/loss", 0.25)
    /mine/loss 0.25
    >>> monitoring.unregister_scalar_listener(print)
    """
    _scalars.tell(event, value, **kwargs)


def register_event_listener(callback: Listener) -> None:
    """Have `callback(event, **kwargs)` called for each event: see `record_event`.

    >>> from pyjx import monitoring
    >>> monitoring.register_event_listener(print)
    >>> monitoring.unregister_event_listener(print)
    """
    _events.append(callback)


def register_event_duration_secs_listener(callback: Listener) -> None:
    """Have `callback(event, seconds, **kwargs)` called for each duration.

    >>> from pyjx import monitoring
    >>> monitoring.register_event_duration_secs_listener(print)
    >>> monitoring.unregister_event_duration_listener(print)
    """
    _durations.append(callback)


def register_event_time_span_listener(callback: Listener) -> None:
    """Have `callback(event, start, end, **kwargs)` called for each time span.

    >>> from pyjx import monitoring
    >>> monitoring.register_event_time_span_listener(print)
    >>> monitoring.unregister_event_time_span_listener(print)
    """
    _spans.append(callback)


def register_scalar_listener(callback: Listener) -> None:
    """Have `callback(event, value, **kwargs)` called for each scalar.

    >>> from pyjx import monitoring
    >>> monitoring.register_scalar_listener(print)
    >>> monitoring.unregister_scalar_listener(print)
    """
    _scalars.append(callback)


def unregister_event_listener(callback: Listener) -> None:
    """The inverse of `register_event_listener`.

    Raises:
      ValueError: it is not registered.

    >>> from pyjx import monitoring
    >>> monitoring.register_event_listener(print)
    >>> monitoring.unregister_event_listener(print)
    """
    _events.unregister(callback)


def unregister_event_duration_listener(callback: Listener) -> None:
    """The inverse of `register_event_duration_secs_listener`.

    Raises:
      ValueError: it is not registered.

    >>> from pyjx import monitoring
    >>> monitoring.register_event_duration_secs_listener(print)
    >>> monitoring.unregister_event_duration_listener(print)
    """
    _durations.unregister(callback)


def unregister_event_time_span_listener(callback: Listener) -> None:
    """The inverse of `register_event_time_span_listener`.

    Raises:
      ValueError: it is not registered.

    >>> from pyjx import monitoring
    >>> monitoring.register_event_time_span_listener(print)
    >>> monitoring.unregister_event_time_span_listener(print)
    """
    _spans.unregister(callback)


def unregister_scalar_listener(callback: Listener) -> None:
    """The inverse of `register_scalar_listener`.

    Raises:
      ValueError: it is not registered.

    >>> from pyjx import monitoring
    >>> monitoring.register_scalar_listener(print)
    >>> monitoring.unregister_scalar_listener(print)
    """
    _scalars.unregister(callback)


def clear_event_listeners() -> None:
    """Forget all listeners.

    >>> from pyjx import monitoring
    >>> monitoring.clear_event_listeners()
    """
    for listeners in (_events, _durations, _spans, _scalars):
        listeners.clear()


class timed:
    """A context that records how long its body takes, as a duration and as a time span.

    Afterwards `seconds` says it.
    """

    __slots__ = ("_event", "_fun_name", "_start", "seconds")

    def __init__(self, event: str, fun_name: str) -> None:
        self._event = event
        self._fun_name = fun_name
        self.seconds = 0.0

    def __enter__(self) -> timed:
        self._start = time.time()
        return self

    def __exit__(self, *exc: object) -> None:
        end = time.time()
        self.seconds = end - self._start
        if _durations or _spans:
            record_event_duration_secs(self._event, self.seconds, fun_name=self._fun_name)
            record_event_time_span(self._event, self._start, end, fun_name=self._fun_name)


__dir__ = directory(__name__, __all__)
