"""Where an equation was made: the Python frames and the name stack.

Recording must cost next to nothing, since every traced operation does it: `current()` takes a
jaxlib traceback (code objects and instruction offsets, no frames kept alive) and a reference to the
thread's name stack. Everything that needs thought, such as which frame is the user's or what the
line and column are, happens when an error, a printed jaxpr or a lowered program asks for it.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from functools import wraps
from types import CodeType, TracebackType
from typing import Any, NamedTuple, TypeVar

from pyjx.jaxlib_api import Traceback

_F = TypeVar("_F", bound=Callable[..., Any])
_get_traceback = Traceback.get_traceback
_addr2location = Traceback.code_addr2location


# Name stacks


class Scope(str):
    """An entry of a name stack: the name of a part of the program."""

    __slots__ = ()


class Transform(str):
    """An entry of a name stack: a transformation, which encloses the entry after it."""

    __slots__ = ()


class NameStack:
    """An immutable stack of scopes and transformations, outermost first.

    >>> print(NameStack().extend("outer").transform("jvp").extend("inner").extend("mlp"))
    outer/jvp(inner)/mlp
    """

    __slots__ = ("_text", "entry", "parent")

    def __init__(self, parent: NameStack | None = None, entry: str | None = None) -> None:
        self.parent = parent
        self.entry = entry
        self._text: str | None = None

    def extend(self, name: str) -> NameStack:
        """The stack with a scope called `name` at its end."""
        return NameStack(self, Scope(name))

    def transform(self, name: str) -> NameStack:
        """The stack with the transformation `name` at its end; it encloses what follows."""
        return NameStack(self, Transform(name))

    @property
    def stack(self) -> tuple[str, ...]:
        entries: list[str] = []
        node: NameStack | None = self
        while node is not None and node.entry is not None:
            entries.append(node.entry)
            node = node.parent
        return tuple(reversed(entries))

    def relative_to(self, base: NameStack) -> NameStack:
        """The stack without the entries of `base`, if it starts with them; otherwise itself.

        The backward pass names what it makes `base.transform("transpose") + this`, which puts the
        transposition inside the scopes that surround the call of grad and around those within.
        """
        prefix = base.stack
        stack = self.stack
        if prefix and stack[: len(prefix)] == prefix:
            return _from_entries(NameStack(), stack[len(prefix) :])
        return self

    def __add__(self, other: NameStack) -> NameStack:
        if other.entry is None:
            return self
        if self.entry is None:
            return other
        return _from_entries(self, other.stack)

    def __str__(self) -> str:
        if self._text is None:
            parts: list[str] = []  # innermost first
            for entry in reversed(self.stack):
                if isinstance(entry, Transform):
                    parts.append(f"{entry}({parts.pop() if parts else ''})")
                else:
                    parts.append(entry)
            self._text = "/".join(reversed(parts))
        return self._text

    def __len__(self) -> int:
        return len(self.stack)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, NameStack) and _typed(self) == _typed(other)

    def __hash__(self) -> int:
        return hash(self.stack)

    def __repr__(self) -> str:
        entries = ", ".join(f"{type(e).__name__}({str(e)!r})" for e in self.stack)
        return f"NameStack({entries})"


def _typed(stack: NameStack) -> list[tuple[type, str]]:
    return [(type(entry), entry) for entry in stack.stack]


def _from_entries(base: NameStack, entries: tuple[str, ...]) -> NameStack:
    for entry in entries:
        base = NameStack(base, entry)
    return base


empty_name_stack = NameStack()


class _ThreadState(threading.local):
    name_stack: NameStack = empty_name_stack
    traceback: Any = None  # set while an equation recorded earlier is replayed
    source: Any = None  # set while all operations made have one SourceInfo


_state = thread_state = _ThreadState()


def new_name_stack(name: str = "") -> NameStack:
    """A stack with the one scope `name`, or an empty one."""
    return empty_name_stack.extend(name) if name else empty_name_stack


def current_name_stack() -> NameStack:
    """The calling thread's name stack."""
    return _state.name_stack


class set_name_stack:
    """A context in which the calling thread's name stack is the given one."""

    __slots__ = ("_previous", "_stack")

    def __init__(self, stack: NameStack) -> None:
        self._stack = stack

    def __enter__(self) -> NameStack:
        self._previous = _state.name_stack
        _state.name_stack = self._stack
        return self._stack

    def __exit__(self, *exc: object) -> None:
        _state.name_stack = self._previous


def reset_name_stack() -> set_name_stack:
    """A context with an empty name stack: that of a jaxpr that is traced on its own."""
    return set_name_stack(empty_name_stack)


def transform_name_stack(name: str) -> set_name_stack:
    """A context whose operations are named as made by the transformation `name`."""
    return set_name_stack(_state.name_stack.transform(name))


class extend_name_stack:
    """A context, or a decorator, whose operations are named `name/...`. It may be reused."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> NameStack:
        stack = _state.name_stack = _state.name_stack.extend(self._name)
        return stack

    def __exit__(self, *exc: object) -> None:
        # the parent, not a saved stack: one object may be entered twice, or by two threads
        _state.name_stack = _state.name_stack.parent or empty_name_stack

    def __call__(self, fun: _F) -> _F:
        @wraps(fun)
        def scoped(*args: Any, **kwargs: Any) -> Any:
            with self:
                return fun(*args, **kwargs)

        return scoped  # type: ignore[return-value]


def named_scope(name: str) -> extend_name_stack:
    """Names the operations made inside: a context manager and a decorator.

    The name appears in jaxprs, in the lowered program and in profiles.

    Args:
      name: any string; `/` separates levels.

    Raises:
      TypeError: `name` is not a string.

    >>> with named_scope("layer_1"):
    ...     print(current_name_stack())
    layer_1
    """
    if not isinstance(name, str):
        raise TypeError(
            f"named_scope name argument must be a string, got {name!r} of type "
            f"{type(name).__name__}."
        )
    return extend_name_stack(name)


# Source information


class SourceInfo:
    """Where an operation was made: a jaxlib traceback (or None) and a name stack."""

    __slots__ = ("name_stack", "traceback")

    def __init__(self, traceback: Any, name_stack: NameStack) -> None:
        self.traceback = traceback
        self.name_stack = name_stack

    def replace(self, *, traceback: Any = None, name_stack: NameStack | None = None) -> SourceInfo:
        return SourceInfo(
            self.traceback if traceback is None else traceback,
            self.name_stack if name_stack is None else name_stack,
        )

    def __repr__(self) -> str:
        name = str(self.name_stack)
        return f"SourceInfo({summarize(self)}{', ' if name else ''}{name})"


no_source_info = SourceInfo(None, empty_name_stack)


def new_source_info() -> SourceInfo:
    """Source information that knows nothing."""
    return no_source_info


def current() -> SourceInfo:
    """The source information of an operation made now by the calling thread."""
    state = _state
    source = state.source
    if source is not None:
        return source  # type: ignore[no-any-return]
    traceback = state.traceback
    return SourceInfo(_get_traceback() if traceback is None else traceback, state.name_stack)


class user_context:
    """A context whose operations are recorded as made at `traceback`.

    For whoever replays equations: what jvp, vmap or the backward pass makes for an equation is
    attributed to the user's line that made the equation. An exception that leaves the context gets
    a note that names that line.
    """

    __slots__ = ("_name_stack", "_previous", "_traceback")

    def __init__(self, traceback: Any, *, name_stack: NameStack | None = None) -> None:
        self._traceback = traceback
        self._name_stack = name_stack

    def __enter__(self) -> None:
        state = _state
        self._previous = state.traceback, state.name_stack, state.source
        state.source = None
        if self._traceback is not None:
            state.traceback = self._traceback
        if self._name_stack is not None:
            state.name_stack = self._name_stack

    def __exit__(self, kind: Any, exc: BaseException | None, tb: Any) -> None:
        _state.traceback, _state.name_stack, _state.source = self._previous
        if exc is not None and isinstance(exc, Exception):
            self._annotate(exc)

    def _annotate(self, exc: Exception) -> None:
        frame = user_frame(self._traceback)
        notes: list[str] = getattr(exc, "__notes__", [])
        if frame is not None and not any(note.startswith(_ORIGIN_NOTE) for note in notes):
            exc.add_note(f"{_ORIGIN_NOTE} {frame}")


_ORIGIN_NOTE = "The error arose while transforming the operation made at"


class replaying:
    """A context for loops that replay equations: set `.source` to each equation's in turn.

    Operations made after that carry its traceback, and its name stack below the caller's (or,
    with `transpose`, below the caller's and `transpose`). Cheaper an equation than `user_context`.
    """

    __slots__ = ("_base", "_pinned", "_previous", "_stacks")

    def __init__(self, transpose: bool = False) -> None:
        stack = _state.name_stack
        self._base = stack.transform("transpose") if transpose else stack
        self._stacks: dict[int, tuple[NameStack, NameStack]] = {}
        self._pinned: dict[int, tuple[SourceInfo, SourceInfo]] = {}

    def __enter__(self) -> replaying:
        self._previous = _state.traceback, _state.name_stack, _state.source
        return self

    def pin(self, source: SourceInfo) -> None:
        """As setting `.source`, for operations that open no name scopes; cheaper."""
        known = self._pinned.get(id(source))
        if known is None:
            self._set_source(source)
            here = SourceInfo(_state.traceback, _state.name_stack)
            known = self._pinned[id(source)] = source, here
        _state.source = known[1]

    def _set_source(self, source: SourceInfo) -> None:
        state = _state
        stack = source.name_stack
        known = self._stacks.get(id(stack))
        if known is None:  # keeps `stack` alive, so that its id stays its own
            known = self._stacks[id(stack)] = stack, self._base + stack
        state.name_stack = known[1]
        state.traceback = source.traceback
        state.source = None

    source = property(None, _set_source)

    def __exit__(self, kind: Any, exc: BaseException | None, tb: Any) -> None:
        _state.traceback, _state.name_stack, _state.source = self._previous


# Frames


class Frame(NamedTuple):
    """A position in the user's program. Lines count from 1 and columns from 0."""

    file_name: str
    function_name: str
    start_line: int
    start_column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.file_name}:{self.start_line}:{self.start_column} ({self.function_name})"


_package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_stdlib = os.path.dirname(os.__file__)
_excluded: list[str] = [
    _package + os.sep,
    os.path.join(os.path.dirname(_package), "lowering") + os.sep,
    os.path.join(_stdlib, "contextlib.py"),  # frames of decorators and context managers
]
_is_internal_file: dict[str, bool] = {}


def register_exclusion(path: str) -> None:
    """Treats frames of the file `path`, or of files below the folder `path`, as internal.

    For libraries built on top, so that locations and tracebacks name the line of their user.
    """
    if os.path.isdir(path):
        path = os.path.join(path, "")
    _excluded.append(path)
    _is_internal_file.clear()


def is_internal(file_name: str) -> bool:
    """Whether frames of this file are left out of what users see."""
    internal = _is_internal_file.get(file_name)
    if internal is None:
        internal = any(
            file_name.startswith(path) if path.endswith(os.sep) else file_name == path
            for path in _excluded
        )
        _is_internal_file[file_name] = internal
    return internal


def _user_code(traceback: Any) -> Iterator[tuple[CodeType, int]]:
    if traceback is not None:
        codes, offsets = traceback.raw_frames()
        for code, offset in zip(codes, offsets, strict=True):
            if not is_internal(code.co_filename):
                yield code, offset


def _frame(code: CodeType, offset: int) -> Frame:
    line, column, end_line, end_column = _addr2location(code, offset)
    if column < 0:  # python -X no_debug_ranges
        end_line, column, end_column = line, 0, 0
    return Frame(code.co_filename, code.co_qualname, line, column, end_line, end_column)


def user_frames(traceback: Any, limit: int | None = None) -> list[Frame]:
    """The user's frames of a jaxlib traceback, innermost first, at most `limit` of them."""
    frames: list[Frame] = []
    for code, offset in _user_code(traceback):
        if limit is not None and len(frames) >= limit:
            break
        frames.append(_frame(code, offset))
    return frames


def user_frame(traceback: Any) -> Frame | None:
    """The innermost frame of a jaxlib traceback that is the user's; None if there is none."""
    for code, offset in _user_code(traceback):
        return _frame(code, offset)
    return None


def summarize(source_info: SourceInfo, num_frames: int = 1) -> str:
    """`file.py:12:3 (function)`, one line for each of `num_frames` frames; `unknown` if none."""
    frames = user_frames(source_info.traceback, num_frames)
    return "\n".join(map(str, frames)) if frames else "unknown"


# Tracebacks of exceptions


class UnfilteredStackTrace(Exception):
    """Carries the whole traceback of an exception whose own traceback was filtered."""


_REMOVED_NOTE = (
    "Frames inside the library are not shown; JAX_TRACEBACK_FILTERING=off brings them back."
)


def api_boundary(fun: _F) -> _F:
    """Decorates an entry of the public API: exceptions that leave it show the user's frames only.

    What exactly happens to the other frames is up to the flag `jax_traceback_filtering`. Of nested
    entries only the outermost one acts. A call that succeeds pays for one more Python call.
    """

    @wraps(fun)
    def boundary(*args: Any, **kwargs: Any) -> Any:
        try:
            return fun(*args, **kwargs)
        except Exception as e:
            leave_boundary(e)
            raise  # a bare raise adds no frame of its own

    _boundary_codes.add(boundary.__code__)  # type: ignore[attr-defined]
    return boundary  # type: ignore[return-value]


_boundary_codes: set[CodeType] = set()


def mark_boundary(fun: _F) -> _F:
    """For a function that itself calls `leave_boundary` in an `except` clause: as `api_boundary`,
    without the Python call."""
    _boundary_codes.add(fun.__code__)  # type: ignore[attr-defined]
    return fun


def leave_boundary(exc: Exception) -> None:
    """Filter the traceback of `exc` unless the caller was itself called from within a boundary."""
    frame = sys._getframe(1).f_back
    while frame is not None:
        if frame.f_code in _boundary_codes:
            return
        frame = frame.f_back
    filter_exception(exc)


def filter_exception(exc: BaseException) -> None:
    """Takes internal frames out of the traceback of `exc`, as `jax_traceback_filtering` says.

    To be called in an `except` clause that ends with a bare `raise`.
    """
    mode = _filtering_mode()
    if mode == "off":
        return
    if mode == "tracebackhide":
        _hide_internal_frames(exc.__traceback__)
        return
    whole = exc.__traceback__
    filtered, removed = _without_internal_frames(whole)
    if not removed:
        return
    if mode == "remove_frames":
        cause = UnfilteredStackTrace(f"{type(exc).__name__}: {exc}").with_traceback(whole)
        cause.__cause__, cause.__context__ = exc.__cause__, exc.__context__
        cause.__suppress_context__ = exc.__suppress_context__
        exc.__cause__ = cause
    elif _REMOVED_NOTE not in getattr(exc, "__notes__", ()):
        exc.add_note(_REMOVED_NOTE)
    exc.__traceback__ = filtered


def _filtering_mode() -> str:
    from pyjx import configuration

    mode: str = configuration.traceback_filtering.value
    if mode != "auto":
        return mode
    ipython = sys.modules.get("IPython")
    if ipython is not None and ipython.get_ipython() is not None:
        return "tracebackhide"  # notebooks fold hidden frames and let the user unfold them
    return "quiet_remove_frames"


def _frames_of(tb: TracebackType | None) -> Iterator[TracebackType]:
    while tb is not None:
        yield tb
        tb = tb.tb_next


def _hide_internal_frames(tb: TracebackType | None) -> None:
    for item in _frames_of(tb):
        if is_internal(item.tb_frame.f_code.co_filename):
            item.tb_frame.f_locals["__tracebackhide__"] = True


def _without_internal_frames(tb: TracebackType | None) -> tuple[TracebackType | None, bool]:
    items = list(_frames_of(tb))
    kept = [t for t in items if not is_internal(t.tb_frame.f_code.co_filename)]
    result: TracebackType | None = None
    for item in reversed(kept):
        result = TracebackType(result, item.tb_frame, item.tb_lasti, item.tb_lineno)
    return result, len(kept) < len(items)
