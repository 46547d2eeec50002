"""Exceptions that leave the library show the user's frames only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import wraps
from types import CodeType, FrameType, TracebackType
from typing import Any, TypeVar

from pyjx import configuration
from pyjx.core.call_notes import note_call, public_name
from pyjx.core.frames import is_internal
from pyjx.guards import is_guarded, leaving

_F = TypeVar("_F", bound=Callable[..., Any])


class UnfilteredStackTrace(Exception):
    """Carries the whole traceback of an exception whose own traceback was filtered."""


_REMOVED_NOTE = (
    "Frames inside the library are not shown; JAX_TRACEBACK_FILTERING=off brings them back."
)


def api_boundary(fun: _F) -> _F:
    """Decorates an entry of the public API: exceptions that leave it show the user's frames only,
    and the call where they do not name the function.

    For functions of other packages, or with two names; others are guarded (`pyjx.guards`). What
    exactly happens to the other frames is up to the flag `jax_traceback_filtering`. Of nested
    entries only the outermost one acts. A call that succeeds pays for one more Python call.
    """
    name = public_name(fun)

    @wraps(fun)
    def boundary(*args: Any, **kwargs: Any) -> Any:
        try:
            return fun(*args, **kwargs)
        except Exception as e:
            note_call(e, name, args, kwargs)
            leave_boundary(e)
            raise  # a bare raise adds no frame of its own

    return mark_boundary(boundary)  # type: ignore[return-value]


_boundary_codes: set[CodeType] = set()


def mark_boundary(fun: _F) -> _F:
    """For a function that itself calls `leave_boundary` in an `except` clause: as `api_boundary`,
    without the Python call."""
    _boundary_codes.add(fun.__code__)  # type: ignore[attr-defined]
    return fun


def leave_boundary(exc: Exception) -> None:
    """Filter the traceback of `exc` unless the caller was itself called from within a boundary."""
    if not _is_within(sys._getframe(1).f_back):
        filter_exception(exc)


def leave_guarded(exc: Exception) -> None:
    """What the handler of a public function does (`pyjx.guards`), as it is left by `exc`."""
    handler = sys._getframe(1)
    tb = exc.__traceback__
    if (isinstance(exc, AttributeError) and tb is not None and tb.tb_next is None
            and _filtering_mode() == "quiet_remove_frames"):
        exc.__traceback__ = None  # at once, as `hasattr` asks so, too
    elif handler.f_back is not None and not _is_within(handler.f_back.f_back):
        note_call(exc, None, (), {})
        filter_exception(exc)


leaving.work = leave_guarded


def _is_within(frame: FrameType | None) -> bool:
    while frame is not None:
        if is_guarded(frame.f_code) or frame.f_code in _boundary_codes:
            return True
        frame = frame.f_back
    return False


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
        cause = UnfilteredStackTrace(_text(exc)).with_traceback(whole)
        cause.__cause__, cause.__context__ = exc.__cause__, exc.__context__
        cause.__suppress_context__ = exc.__suppress_context__
        exc.__cause__ = cause
    else:
        _filter_chain(exc)
        if _REMOVED_NOTE not in getattr(exc, "__notes__", ()):
            exc.add_note(_REMOVED_NOTE)
    exc.__traceback__ = filtered


def _text(exc: BaseException) -> str:
    try:
        return f"{type(exc).__name__}: {exc}"
    except Exception:  # of the user's own __str__
        return type(exc).__name__


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
