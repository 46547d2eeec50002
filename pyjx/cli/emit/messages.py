"""What users are told on stderr: errors on one screen, with what was wrong, where, and a cure; and
what is being done, where that takes long."""

from __future__ import annotations

import contextlib
import linecache
import os
import re
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from typing import Any

from pyjx import errors
from pyjx.core import advice, frames, source_info
from pyjx.core.evaluation import all_eqns
from pyjx.core.jaxpr import ClosedJaxpr

LINES = 24  # of a message
_WIDEST = 1000  # characters of a line: errors of this library have more than 400, cures at the end
_STDLIB = os.path.dirname(os.__file__) + os.sep

USAGE, IMPORT, LOWERING, XLA, PLATFORM = 2, 3, 4, 5, 6


class CommandError(Exception):
    """An error with its exit status, and no traceback."""

    def __init__(self, message: str, status: int = USAGE) -> None:
        super().__init__(message)
        self.status = status


def say(message: str, quiet: bool = False) -> None:
    """A message for the user, unless fewer are wanted."""
    if not quiet:
        _write(f"emit-hlo: {message}\n")


def _write(text: str) -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(text)
        sys.stderr.flush()


_PATIENCE = {True: (2.0, 1.0), False: (10.0, 30.0)}  # seconds before the first word, and between
_CLEAR = "\r\x1b[2K"


@contextlib.contextmanager
def working(what: str, quiet: bool) -> Iterator[None]:
    """Say on stderr what is being done where it takes long: on a line of its own that stays until
    it is done on a terminal, and now and then elsewhere."""
    if quiet:
        yield
        return
    done = threading.Event()
    ticker = threading.Thread(target=_tick, args=(what, done), daemon=True)
    ticker.start()
    try:
        yield
    finally:
        done.set()
        ticker.join()


def _tick(what: str, done: threading.Event) -> None:
    start, shown = time.perf_counter(), False
    live = is_terminal(sys.stderr) and os.environ.get("TERM") != "dumb"
    wait, between = _PATIENCE[live]
    while not done.wait(wait):
        text = f"emit-hlo: {what}, for {time.perf_counter() - start:.0f} s"
        _write(f"{_CLEAR}{text}" if live else f"{text}\n")
        wait, shown = between, True
    if live and shown:
        _write(_CLEAR)


def is_terminal(stream: Any) -> bool:
    """Whether a stream is shown as it is written; a closed one, or None, is not."""
    try:
        return bool(stream.isatty())
    except (ValueError, AttributeError):
        return False


def pointing(line: str, column: int) -> str:
    """A line with a caret below a place in it."""
    line = line.expandtabs(1)
    return f"  {line}\n  {' ' * min(column, len(line))}^"


def described(error: BaseException, doing: str, traced: ClosedJaxpr | None = None) -> str:
    """An error of the user's program, with the line of it where it arose, or that of the operation
    it is of, or else the first function of the user's that was traced."""
    text = _short(told(error)).strip()
    kind = type(error).__name__
    lines = [f"{kind} while {doing}: {text}" if text else f"{kind} while {doing}"]
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        lines = [f"SyntaxError while {doing}: {error.msg}"]
        shown = _source(error.filename, error.lineno, (error.offset or 1) - 1,
                        (error.end_offset or 0) - 1)
        return "\n".join([*lines, shown])
    frame = _place(error)
    shown = _shown(frame) if frame else _definition(traced) if traced else ""
    if shown:
        lines.append(shown)
    for note in getattr(error, "__notes__", []):
        if not note.startswith(("-----", "Frames inside the library")) \
                and not (frame and note.endswith(f" {frame}")):
            lines.append(_short(note, 4))
    return "\n".join(lines)


# Those that tell of a mistake of the program's.
_MISTAKES = (TypeError, ValueError, errors.JAXIndexError, errors.ShardingTypeError,
             errors.InconclusiveDimensionOperation)


def is_mistake(error: BaseException) -> bool:
    """Whether an error of lowering is of the program: by its class, or as code of the user's raised
    it. Else the library lacks something, or has a fault, as a KeyError tells."""
    *_, last = frames.tracebacks_of(error)
    return isinstance(error, _MISTAKES) or (is_users(last.tb_frame.f_code.co_filename)
                                            and not isinstance(error, NotImplementedError))


def told(error: BaseException) -> str:
    """The message of an error, with what pyjx or Python says at the end of a program."""
    if isinstance(error, Exception):
        with contextlib.suppress(Exception):  # of a class of the user's
            advice.complete(error)
    return str(traceback.TracebackException.from_exception(error))


def _short(text: str, most: int = LINES) -> str:
    """A text without what is too long for a screen."""
    lines = [line if len(line) <= _WIDEST else f"{line[:_WIDEST - 3]}..."
             for line in text.splitlines()]
    if len(lines) > most:
        lines = [*lines[:most - 1], f"... ({len(lines) - most + 1} more lines; -v shows all)"]
    return "\n".join(lines)


def is_users(file: str) -> bool:
    """Whether a file is of the user's program, and no library of Python's."""
    of_python = file.startswith(_STDLIB) and not frames.INSTALLED.search(file)
    return not (frames.is_internal(file) or of_python or file.startswith("<")) \
        and os.path.isfile(file)


def _place(error: BaseException) -> frames.Frame | None:
    """Where in the user's code an error arose, or else the operation was made that it is of."""
    users = [tb for tb in frames.tracebacks_of(error) if is_users(tb.tb_frame.f_code.co_filename)]
    if users:
        return frames.frame_at(users[-1].tb_frame.f_code, users[-1].tb_lasti)
    made = source_info.origin_of(error)
    return made if made and is_users(made.file_name) else None


def _shown(frame: frames.Frame) -> str:
    """The line of a place, with carets."""
    return _source(frame.file_name, frame.start_line,
                   frame.start_column if frame.end_column else None,  # python -X no_debug_ranges
                   frame.end_column if frame.start_line == frame.end_line else None)


def _definition(traced: ClosedJaxpr) -> str:
    """The first line of the user's function that made the first operations of a program."""
    for eqn in all_eqns(traced.jaxpr):
        codes = [code for code, _ in frames.user_code(eqn.source_info.traceback)]
        if codes and is_users(codes[-1].co_filename):
            return _source(codes[-1].co_filename, codes[-1].co_firstlineno, None, None)
    return ""


def _source(file: str, line: int, start: int | None, stop: int | None) -> str:
    source = linecache.getline(file, line).rstrip("\n").expandtabs(1)
    head = f"  --> {frames.shown_path(file)}:{line}" + ("" if start is None else f":{start + 1}")
    if not source.strip():
        return head
    indent = len(source) - len(source.lstrip())
    number = str(line)
    lines = [head, f"{'':{len(number) + 1}}|", f"{number} | {source[indent:]}"]
    if start is not None:
        width = (stop if stop and stop > start else start + 1) - start
        lines.append(f"{'':{len(number) + 1}}| {' ' * max(start - indent, 0)}{'^' * width}")
    return "\n".join(lines)


_NOISE = re.compile(r"^(INVALID_ARGUMENT|INTERNAL|UNIMPLEMENTED|NOT_FOUND|FAILED_PRECONDITION): ")


def of_xla(error: BaseException) -> str:
    """What XLA says, without its stack."""
    text = str(error).partition("\nSTACK TRACE")[0]
    return _short(_NOISE.sub("", text))
