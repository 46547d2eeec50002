"""Exceptions that leave the library show the user's frames only."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from opcode import opmap
from types import FrameType, TracebackType
from typing import Any

from pyjx import configuration
from pyjx.core.frames import is_internal, is_of_foundation, tracebacks_of
from pyjx.guards import is_guarded, leaving
from pyjx.jaxlib_api import JaxRuntimeError
from pyjx.lazy import deferred

advice = deferred("pyjx.core.advice")  # for errors alone
call_notes = deferred("pyjx.core.call_notes")


class UnfilteredStackTrace(Exception):
    """Carries the whole traceback of an exception whose own traceback was filtered.

    Ways out: it is only the cause of another error; `JAX_TRACEBACK_FILTERING=off` shows all frames
    in that one.
    """


_REMOVED_NOTE = (
    "Frames inside the library are not shown; JAX_TRACEBACK_FILTERING=off brings them back.")


_put = BaseException.__setattr__  # classes of users' errors may refuse it, or do more


def leave_guarded(exc: BaseException) -> None:
    """What the handler of a public function does (`pyjx.guards`), as it is left by `exc`: this then
    shows the user's frames only. What exactly happens to the other frames is up to the flag
    `jax_traceback_filtering`. Of guarded functions in each other the outermost one acts; what a
    function of the user's calls that is traced is told of there, too."""
    tb = exc.__traceback__
    if (isinstance(exc, AttributeError) and tb is not None and tb.tb_next is None
            and tb.tb_frame.f_code.co_name != "__call__"  # nobody has asked for an attribute
            and tb.tb_frame.f_code.co_code[tb.tb_lasti] == opmap["RAISE_VARARGS"]
            and _filtering_mode() == "quiet_remove_frames"):
        _put(exc, "__traceback__", None)  # at once, as `hasattr` asks so, too
        return
    frame = sys._getframe(2).f_back  # what called the function
    while frame is not None and is_internal(frame.f_code.co_filename):
        if is_guarded(frame.f_code):
            return
        frame = frame.f_back
    if isinstance(exc, Exception):  # no call is at fault where the user has interrupted the program
        _advise(exc)
        call_notes.note_call(exc, None, (), {})
    if not _is_within(frame):
        filter_exception(exc)


def _advise(exc: Exception) -> None:
    for advise in (advice.complete, advice.note_leaf, advice.note_body):
        with suppress(Exception):  # of a class of the user's, or of a function without a signature
            advise(exc)


_OF_CALLS = (TypeError, ValueError, AttributeError, RuntimeError, JaxRuntimeError)


def _show_uncaught(kind: type[BaseException], exc: BaseException, tb: TracebackType | None) -> None:
    """What Python and C++ raise before a function of this package begins passes no handler."""
    if kind in _OF_CALLS:
        _advise(exc)  # type: ignore[arg-type]
        if _filtering_mode() == "quiet_remove_frames":
            tb = _before_alias(exc, tb)
    frame = sys._getframe().f_back
    file = "" if frame is None or _show is not sys.__excepthook__ else frame.f_code.co_filename
    if frame is not None and file.endswith(_CONSOLES) and is_of_foundation(file):
        _show_in_console(frame, tb)
    else:
        _show(kind, exc, tb)


_CONSOLES = (os.sep + "code.py", os.path.join("idlelib", "run.py"))


def _show_in_console(frame: FrameType, tb: TracebackType | None) -> None:
    """As Python's consoles show errors where nobody has put in a hook: they are asked again."""
    code, names = frame.f_code, frame.f_globals
    sys.excepthook = sys.__excepthook__
    try:
        if "print_exception" in names:  # IDLE
            names["print_exception"]()
        else:
            given = {**frame.f_locals, "tb": tb}
            getattr(names["InteractiveInterpreter"], code.co_name)(
                *map(given.get, code.co_varnames[:code.co_argcount]))
    finally:
        sys.excepthook = _show_uncaught


def _before_alias(exc: BaseException, tb: TracebackType | None) -> TracebackType | None:
    """The traceback of an uncaught error; where pyjx cannot answer to the name jax, it ends where
    Python began to search for that, by the module that `install-alias` wrote or this package."""
    items = list(tracebacks_of(exc))
    files = [item.tb_frame.f_code.co_filename for item in items]
    if not any([file.endswith(_ALIAS) for file in files]):
        return tb
    first = next(i for i, file in enumerate(files)
                 if is_internal(file) or os.path.basename(file) == "_pyjx_as_jax.py")
    while first and (files[first - 1].startswith("<frozen importlib")
                     or is_of_foundation(files[first - 1])):
        first -= 1
    _put(exc, "__traceback__", _linked(items[:first]))
    return exc.__traceback__


def _show_in_shell(shell: Any, kind: type[Exception], exc: Exception, tb: TracebackType | None,
                   tb_offset: int | None = None) -> None:
    """As `_show_uncaught`; IPython does not ask that."""
    _advise(exc)
    shell.showtraceback((kind, exc, tb), tb_offset=tb_offset)


_ALIAS = os.path.join("pyjx", "as_jax.py")  # which puts the alias in force

leaving.work = leave_guarded
_show, sys.excepthook = sys.excepthook, _show_uncaught
with suppress(AttributeError):  # nobody has loaded it, or it does not run this program
    _shell: Any = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if not _shell.custom_exceptions:
        _shell.set_custom_exc(_OF_CALLS, _show_in_shell)


def _is_within(frame: FrameType | None) -> bool:
    while frame is not None and not is_guarded(frame.f_code):
        frame = frame.f_back
    return frame is not None


def filter_exception(exc: BaseException) -> None:
    """Takes internal frames out of the traceback of `exc`, as `jax_traceback_filtering` says.

    To be called in an `except` clause that ends with a bare `raise`.
    """
    mode = _filtering_mode()
    filtered, removed = _without_internal_frames(exc)
    if mode == "off" or not removed:
        return
    if mode == "tracebackhide":
        for item in tracebacks_of(exc):
            if is_internal(item.tb_frame.f_code.co_filename):
                item.tb_frame.f_locals["__tracebackhide__"] = True
        return
    if mode == "remove_frames":
        cause = UnfilteredStackTrace(_text(exc)).with_traceback(exc.__traceback__)
        cause.__cause__, cause.__context__ = exc.__cause__, exc.__context__
        cause.__suppress_context__ = exc.__suppress_context__
        _put(exc, "__cause__", cause)
    else:
        _filter_chain(exc)
        if _REMOVED_NOTE not in getattr(exc, "__notes__", ()):
            with suppress(Exception):
                exc.add_note(_REMOVED_NOTE)
    _put(exc, "__traceback__", filtered)


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
        filtered, removed = _without_internal_frames(earlier)
        if filtered is None and removed and cause is None:
            _put(exc, "__context__", earlier.__context__)
        else:
            _put(earlier, "__traceback__", filtered)
            exc = earlier


def _filtering_mode() -> str:
    mode: str = configuration.traceback_filtering.value
    return "quiet_remove_frames" if mode == "auto" else mode


def _without_internal_frames(exc: BaseException) -> tuple[TracebackType | None, bool]:
    items = list(tracebacks_of(exc))
    kept, within = [], False
    for item in items:
        file_name = item.tb_frame.f_code.co_filename
        generated = file_name == "<string>" and str(  # such as `__init__` of a dataclass
            item.tb_frame.f_globals.get("__name__")).startswith("pyjx.")
        within = is_internal(file_name) or generated or (within and is_of_foundation(file_name))
        if not within:
            kept.append(item)
    return _linked(kept), len(kept) < len(items)


def _linked(items: list[TracebackType]) -> TracebackType | None:
    """A traceback of these places alone."""
    result: TracebackType | None = None
    for item in reversed(items):
        result = TracebackType(result, item.tb_frame, item.tb_lasti, item.tb_lineno)
    return result
