"""Which interpreter is active: for libraries that look at it or bring their own."""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Iterable, Iterator
from contextlib import ExitStack
from typing import Any

from pyjx import configuration
from pyjx.core.named_axes import named_axes
from pyjx.core.records import Alike
from pyjx.core.trace import (
    DynamicJaxprTrace,
    Trace,
    Tracer,
    as_dynamic,
    check_leaks,
    eager_trace,
    new_level,
    state,
)


class OpaqueTraceState(Alike):
    """Which interpreters are active. Equal to another one where the same are.

    >>> import pyjx as jax
    >>> here = jax.core.get_opaque_trace_state()
    >>> here == jax.core.get_opaque_trace_state()
    True
    >>> jax.eval_shape(lambda x: here == jax.core.get_opaque_trace_state() or x, 1.).dtype
    dtype('float32')
    """

    __slots__ = ("_innermost",)

    def __init__(self, innermost: Trace) -> None:
        self._innermost = weakref.ref(innermost)  # a trace keeps its values alive

    def __repr__(self) -> str:
        return f"OpaqueTraceState({self._innermost()!r})"


def get_opaque_trace_state(convention: str | None = None) -> OpaqueTraceState:
    """What to compare to know whether the same transformations are active."""
    return OpaqueTraceState(state.innermost)


def trace_state_clean() -> bool:
    """Whether no transformation is active."""
    return state.innermost is eager_trace


def find_top_trace(_: Iterable[Any]) -> Trace:
    """The interpreter that an operation on these values would go to."""
    top = state.dynamic
    for x in _:
        if isinstance(x, Tracer) and x._trace.level > top.level:
            top = x._trace
    return top


class take_current_trace:
    """A context with the interpreter of operations on plain values, which runs them at once in the
    block."""

    __slots__ = ("_inside", "prev")

    prev: Trace  # the interpreter, once it is entered

    def __enter__(self) -> Trace:
        self.prev = state.dynamic
        self._inside = as_dynamic(eager_trace)
        self._inside.__enter__()
        return self.prev

    def __exit__(self, *exc: Any) -> None:
        self._inside.__exit__(*exc)


class set_current_trace:
    """A context in which operations on plain values go to an interpreter. One that is not active
    becomes the innermost.

    Args:
      trace: the interpreter; None changes nothing.
      check_leaks: raise where a value of the interpreter outlives the context, if the flag
        `jax_check_tracer_leaks` says so.
    """

    __slots__ = ("_inside", "check_leaks", "prev", "trace")

    prev: Trace  # the interpreter around it, once it is entered

    def __init__(self, trace: Trace | None, check_leaks: bool = False) -> None:
        self.trace = trace
        self.check_leaks = check_leaks

    def __enter__(self) -> None:
        self.prev = state.dynamic
        trace = self.trace
        with ExitStack() as inside:
            if trace is not None:
                if trace is not eager_trace and not getattr(trace, "alive", False):
                    inside.enter_context(new_level(trace))
                inside.enter_context(as_dynamic(trace))
            self._inside = inside.pop_all()

    def __exit__(self, *exc: Any) -> None:
        self._inside.__exit__(*exc)
        if self.check_leaks and exc[0] is None and self.trace is not None and (
                configuration.check_tracer_leaks.value):
            check_leaks(self.trace)


class TracingContext:
    """A view of what is active in this thread."""

    @property
    def trace(self) -> Trace:
        """The innermost interpreter."""
        return state.innermost

    @property
    def axis_env(self) -> AxisEnv:
        """The named axes."""
        return AxisEnv()


class AxisEnv:
    """The named axes of this thread, as they were when it was made."""

    def __init__(self) -> None:
        self.axis_sizes = {axis.name: axis.size for axis in named_axes()}

    def axis_names(self) -> list[Any]:
        return list(self.axis_sizes)

    def axis_size(self, name: Hashable) -> int:
        """Raises KeyError where there is no axis of the name."""
        return self.axis_sizes[name]


trace_ctx = TracingContext()


def _active() -> Iterator[Trace]:
    trace = state.innermost
    while trace is not eager_trace:
        yield trace
        trace = trace.parent


def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool:
    """Whether a function is being traced to a program."""
    return any([isinstance(trace, DynamicJaxprTrace) for trace in _active()])


def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool:
    """Whether a function is being mapped."""
    return any([hasattr(trace, "axis") for trace in _active()])


def unsafe_get_axis_names_DO_NOT_USE() -> list[Any]:
    """The names of the axes that are active."""
    return [axis.name for axis in named_axes() if axis.name is not None]


def nonempty_axis_env_DO_NOT_USE() -> bool:
    """Whether a named axis is active."""
    return bool(unsafe_get_axis_names_DO_NOT_USE())


class TraceTag:
    """What tracers of one transformation have in common."""

    __slots__ = ()
