"""Exceptions that leave the library show the user's frames only."""

from __future__ import annotations

import re
import reprlib
import sys
from collections.abc import Callable, Iterator
from functools import wraps
from inspect import CO_VARARGS
from types import CodeType, FrameType, TracebackType
from typing import Any, TypeVar

from pyjx import configuration
from pyjx.core.frames import is_internal

_F = TypeVar("_F", bound=Callable[..., Any])


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
    return wraps(fun)(unnamed_boundary(fun, fun))  # type: ignore[return-value]


def unnamed_boundary(fun: Callable[..., Any], called: Callable[..., Any] | None = None
                     ) -> Callable[..., Any]:
    """`api_boundary` of a function whose name and documentation the caller gives; errors show
    calls of `called`, as `leave_boundary` says."""

    def boundary(*args: Any, **kwargs: Any) -> Any:
        try:
            return fun(*args, **kwargs)
        except Exception as e:
            leave_boundary(e, called, args, kwargs)
            raise  # a bare raise adds no frame of its own

    _boundary_codes.add(boundary.__code__)
    return boundary


_boundary_codes: set[CodeType] = set()


def mark_boundary(fun: _F) -> _F:
    """For a function that itself calls `leave_boundary` in an `except` clause: as `api_boundary`,
    without the Python call."""
    _boundary_codes.add(fun.__code__)  # type: ignore[attr-defined]
    return fun


def leave_boundary(exc: Exception, called: Callable[..., Any] | None = None,
                   args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> None:
    """Filter the traceback of `exc` unless the caller was itself called from within a boundary.

    With the function `called`, and what it was called with, a note on the exception shows the
    user's call, of that function or of one which calls it, where the message does not name it.
    """
    frame = sys._getframe(1).f_back
    if called is not None and frame is not None:
        if not is_internal(frame.f_code.co_filename):
            _note_call(exc, called.__name__, [*map(_shown, args), *_by_name(kwargs or {})])
        else:
            _note_frame(exc, frame)
    while frame is not None:
        if frame.f_code in _boundary_codes:
            return
        frame = frame.f_back
    filter_exception(exc)


_CALL_NOTE = "The call was"


def _note_frame(exc: Exception, frame: FrameType) -> None:
    """As `_note_call`, of the function that the user called to come to the frame."""
    while frame.f_back is not None and is_internal(frame.f_back.f_code.co_filename):
        frame = frame.f_back
    code = frame.f_code
    if code not in _boundary_codes and frame.f_back is not None:
        names, known = code.co_varnames, frame.f_locals
        given = {name: known[name] for name in names[:code.co_argcount] if name in known}
        last = code.co_argcount + code.co_kwonlyargcount
        options = {name: known[name] for name in names[code.co_argcount:last]
                   if known.get(name) is not None}
        if code.co_flags & CO_VARARGS:
            shown = [_shown(x) for x in (*given.values(), *known.get(names[last], ()))]
        else:
            shown = _by_name(given)
        _note_call(exc, code.co_name, shown + _by_name(options))


def _note_call(exc: Exception, name: str, given: list[str]) -> None:
    noted = any(note.startswith(_CALL_NOTE) for note in getattr(exc, "__notes__", ()))
    public = name.isidentifier() and not name.startswith("_")  # operators are named by messages
    if not public or noted or re.search(rf"\b{name}\b", str(exc)):
        return
    if not all(is_internal(t.tb_frame.f_code.co_filename) for t in _frames_of(exc.__traceback__)):
        return  # a function of the user's, or of another package, was running
    exc.add_note(f"{_CALL_NOTE} {name}({', '.join(given)}).")


def _by_name(given: dict[str, Any]) -> list[str]:
    return [f"{name}={_shown(x)}" for name, x in given.items()]


def _shown(x: Any) -> str:
    """An argument by its type if it is an array, else its representation, cut to a few words."""
    if isinstance(x, type):
        return x.__qualname__
    shape = getattr(x, "shape", None)
    if isinstance(shape, tuple) and hasattr(x, "dtype"):
        return f"{x.dtype}[{','.join(map(str, shape))}]"
    if callable(x) and hasattr(x, "__qualname__"):
        return str(x.__qualname__)
    if isinstance(x, (list, tuple)) and any(hasattr(y, "dtype") for y in x):
        inner = ", ".join([_shown(y) for y in x[:6]] + ["..."] * (len(x) > 6))
        return f"[{inner}]" if isinstance(x, list) else f"({inner})"
    return reprlib.repr(x)


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
    else:
        _filter_chain(exc)
        if _REMOVED_NOTE not in getattr(exc, "__notes__", ()):
            exc.add_note(_REMOVED_NOTE)
    exc.__traceback__ = filtered


def _filter_chain(exc: BaseException) -> None:
    """Filter what was being handled when `exc` was raised; what the library had raised for itself
    alone goes."""
    seen = {id(exc)}
    while True:
        cause = exc.__cause__
        earlier = exc.__context__ if cause is None and not exc.__suppress_context__ else cause
        if earlier is None or id(earlier) in seen:
            return
        seen.add(id(earlier))
        filtered, removed = _without_internal_frames(earlier.__traceback__)
        if filtered is None and removed and cause is None:
            exc.__context__ = earlier.__context__
        else:
            earlier.__traceback__ = filtered
            exc = earlier


def _filtering_mode() -> str:
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
