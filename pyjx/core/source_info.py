"""Where an equation was made: the Python traceback and the name stack.

Recording must cost next to nothing, since every traced operation does it: `current()` takes a
jaxlib traceback (code objects and instruction offsets, no frames kept alive) and a reference to the
thread's name stack. Everything that needs thought, such as which frame is the user's or what the
line and column are, happens when an error, a printed jaxpr or a lowered program asks for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

from pyjx.core.frames import (
    Frame,
    is_internal,
    is_of_foundation,
    tracebacks_of,
    user_frame,
    user_frames,
)
from pyjx.core.name_stack import NameStack, empty_name_stack
from pyjx.core.name_stack import thread_state as _names
from pyjx.jaxlib_api import Traceback

_get_traceback = Traceback.get_traceback


class SourceInfo:
    """Where an operation was made: a jaxlib traceback (or None) and a name stack."""

    __slots__ = ("name_stack", "traceback")

    def __init__(self, traceback: Traceback | None, name_stack: NameStack) -> None:
        self.traceback = traceback
        self.name_stack = name_stack

    def replace(self, *, traceback: Traceback | None = None, name_stack: NameStack | None = None
                ) -> SourceInfo:
        """A copy with another traceback, or another name stack."""
        return SourceInfo(self.traceback if traceback is None else traceback,
                          self.name_stack if name_stack is None else name_stack)

    def __repr__(self) -> str:
        name = str(self.name_stack)
        return f"SourceInfo({summarize(self)}{', ' if name else ''}{name})"


def summarize(source_info: SourceInfo, num_frames: int = 1) -> str:
    """`file.py:12:3 (function)`, one line for each of `num_frames` frames; `unknown` if none."""
    frames = user_frames(source_info.traceback, num_frames)
    return "\n".join(map(str, frames)) if frames else "unknown"


def raised_at(exc: BaseException) -> str:
    """`file.py:12 (function)`: where the operation was made that an exception is of, or else the
    innermost place of the user's that it passed."""
    if (origin := origin_of(exc)) is not None:
        return str(origin)
    found = [tb for tb in tracebacks_of(exc) if not is_internal(
        name := tb.tb_frame.f_code.co_filename) and not is_of_foundation(name)]
    if not found:
        return "unknown"
    code = found[-1].tb_frame.f_code
    return f"{code.co_filename}:{found[-1].tb_lineno} ({code.co_qualname})"


def origin_of(exc: BaseException) -> Frame | None:
    """The user's line that made the operation that an exception is of, where a note names it."""
    return getattr(exc, "_pyjx_origin", None)


no_source_info = SourceInfo(None, empty_name_stack)
NOWHERE: Any = object()  # in the place of a traceback: that operations made now have none


class _ThreadState(threading.local):
    # Set while an equation recorded earlier is replayed: its own, or NOWHERE.
    traceback: Traceback | None = None
    source: SourceInfo | None = None  # set while all operations made have one SourceInfo


thread_state = _state = _ThreadState()


def current() -> SourceInfo:
    """The source information of an operation made now by the calling thread."""
    state = _state
    source = state.source
    if source is not None:
        return source
    traceback = state.traceback
    if traceback is None:
        return SourceInfo(_get_traceback(), _names.name_stack)
    return SourceInfo(None if traceback is NOWHERE else traceback, _names.name_stack)


class nowhere:
    """A context for what traces a program in the stead of an operation, or derives it of another:
    what it makes has no place but for what it replays, since the same program may stand for several
    operations, and whoever asks first is none of them. Who reads it gives the place of the
    operation around.
    """

    __slots__ = ("_previous",)

    def __enter__(self) -> None:
        self._previous = _state.traceback, _state.source
        _state.traceback, _state.source = NOWHERE, None

    def __exit__(self, *exc: object) -> None:
        _state.traceback, _state.source = self._previous


def from_here(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """`fun(*args, **kwargs)`, all of whose operations have the source information of this call, or
    of the one around it that asks for the same."""
    state = _state
    if state.source is not None:
        return fun(*args, **kwargs)
    state.source = current()
    try:
        return fun(*args, **kwargs)
    finally:
        state.source = None


def at_own_lines(rule: Callable[..., Any], *args: Any) -> Any:
    """`rule(*args)`, a rule that the user gave: its operations are made at its own lines, also
    where the operation that it is the rule of is replayed. A rule of the library's has that one's.
    """
    state = _state
    code = getattr(rule, "__code__", None)
    before = state.traceback, state.source
    if before == (None, None) or code is None or is_internal(code.co_filename):
        return rule(*args)
    state.traceback = state.source = None
    try:
        return rule(*args)
    finally:
        state.traceback, state.source = before


_ORIGIN_NOTE = "The error arose while transforming the operation made at"
VALUE_NOTE = "The value is the result of the operation made at"


class replaying:
    """A context for loops that replay equations: set `.source` to each equation's in turn.

    Operations made after that carry its traceback, and below the caller's name stack (with
    `transform`, below that transformation there) the part of its own that was made inside `outer`.
    An exception that leaves the loop gets a note that names the user's line which made the
    equation. An equation without a traceback has that of the operation which is replayed around.
    """

    __slots__ = ("_around", "_base", "_outer", "_pinned", "_previous", "_stacks")

    def __init__(self, outer: NameStack = empty_name_stack, transform: str = "") -> None:
        stack = _names.name_stack
        self._base = stack.transform(transform) if transform else stack
        self._outer = outer
        self._stacks: dict[int, tuple[NameStack, NameStack]] = {}
        self._pinned: dict[int, tuple[SourceInfo, SourceInfo]] = {}

    def __enter__(self) -> replaying:
        self._previous = around, _, pinned = _state.traceback, _names.name_stack, _state.source
        self._around = around if pinned is None else pinned.traceback
        return self

    def pin(self, source: SourceInfo) -> None:
        """As setting `.source`, for operations that open no name scopes; cheaper."""
        known = self._pinned.get(id(source))
        if known is None:
            self._set_source(source)
            here = SourceInfo(source.traceback or _known(self._around), _names.name_stack)
            known = self._pinned[id(source)] = source, here
        _state.source = known[1]

    def _set_source(self, source: SourceInfo) -> None:
        state = _state
        stack = source.name_stack
        known = self._stacks.get(id(stack))
        if known is None:  # keeps `stack` alive, so that its id stays its own
            known = self._stacks[id(stack)] = stack, self._base + stack.inside(self._outer)
        _names.name_stack = known[1]
        traceback = source.traceback
        state.traceback = self._around if traceback is None else traceback
        state.source = None

    source = property(None, _set_source)

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None,
                 tb: TracebackType | None) -> None:
        if isinstance(exc, Exception):
            pinned = _state.source
            note_origin(exc, _known(_state.traceback) if pinned is None else pinned.traceback)
        _state.traceback, _names.name_stack, _state.source = self._previous


def _known(traceback: Traceback | None) -> Traceback | None:
    return None if traceback is NOWHERE else traceback


def note_origin(exc: Exception, traceback: Traceback | None) -> None:
    """Name the user's line that made the operation of which an error came, unless that does."""
    frame = user_frame(traceback)
    notes: list[str] = getattr(exc, "__notes__", [])
    note = VALUE_NOTE if isinstance(exc, FloatingPointError) else _ORIGIN_NOTE
    if frame is not None and str(frame) not in str(exc) and not any(
            known.startswith(note) for known in notes):
        exc.add_note(f"{note} {frame}")
        if note is _ORIGIN_NOTE:
            vars(exc)["_pyjx_origin"] = frame
