"""The user's frames in jaxlib's tracebacks: those of files that are not the library's own.

A jaxlib traceback holds code objects and instruction offsets and keeps no frame alive; lines and
columns are looked up when someone asks.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, MutableSequence, Sequence
from types import CodeType, FrameType, TracebackType
from typing import Any

import numpy as np

from pyjx.core.bounded import BoundedDict
from pyjx.core.records import Record
from pyjx.jaxlib_api import Traceback
from pyjx.lazy import deferred

signal = deferred("signal")

_addr2location = Traceback.code_addr2location


class Frame(Record):
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
_foundation = (_stdlib + os.sep, *[
    os.path.join(os.path.dirname(os.path.dirname(np.__file__)), name) + os.sep
    for name in ("numpy", "scipy", "ml_dtypes", "opt_einsum", "jaxlib")])
_TOOL = re.compile(rf"{re.escape(_package)}[/\\](inspect|viewer)[/\\]")
INSTALLED = re.compile(r"[/\\](?:site|dist)-packages[/\\]")
_is_internal_file = BoundedDict(4096, "which files are internal")


class Exclusions(MutableSequence[str]):
    """Paths of internal files, and of folders of such, which end with the separator.

    Whoever adds or removes one changes what is known of files.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = list(paths)

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, index: Any) -> Any:
        return self._paths[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._paths[index] = value
        _is_internal_file.clear()

    def __delitem__(self, index: Any) -> None:
        del self._paths[index]
        _is_internal_file.clear()

    def insert(self, index: int, value: str) -> None:
        self._paths.insert(index, value)
        _is_internal_file.clear()


excluded = Exclusions([
    _package + os.sep,
    os.path.join(os.path.dirname(_package), "lowering") + os.sep,
    os.path.join(_stdlib, "contextlib.py"),  # frames of decorators and context managers
])


def register_exclusion(path: str) -> None:
    """Treats frames of the file `path`, or of files below the folder `path`, as internal.

    For libraries built on top, so that locations and tracebacks name the line of their user.
    """
    if os.path.isdir(path):
        path = os.path.join(path, "")
    if path not in excluded:  # tracebacks and locations share the list: one removal is to do
        excluded.append(path)


def is_internal(file_name: str) -> bool:
    """Whether frames of this file are left out of what users see."""
    internal = _is_internal_file.get(file_name)
    if internal is None:
        internal = any(
            file_name.startswith(path) if path.endswith(os.sep) else file_name == path
            for path in excluded)
        _is_internal_file[file_name] = internal
    return internal


def is_of_foundation(file_name: str) -> bool:
    """Whether a file is of Python's library, or of a package that this one is built on, which may
    be compiled: what is called from here there is no business of the user's."""
    if file_name.endswith(".pyx"):  # they tell no folder
        return file_name.startswith(("numpy/", "scipy/"))
    return file_name.startswith(_foundation) and (
        "site-packages" not in file_name or file_name.startswith(_foundation[1:]))


def tracebacks_of(exc: BaseException) -> Iterator[TracebackType]:
    """Where an exception passed, the outermost place first."""
    tb = exc.__traceback__
    while tb is not None:
        yield tb
        tb = tb.tb_next


def is_of_handler(exc: BaseException) -> bool:
    """Whether a handler of a signal has raised it: it says nothing of what ran as that came."""
    codes = [getattr(signal.getsignal(x), "__code__", None) for x in signal.valid_signals()]
    return any([tb.tb_frame.f_code in codes for tb in tracebacks_of(exc)])


def shown_path(path: str, most: int = 0) -> str:
    """A path as outputs show it: from the working directory where it is below that, and its end
    where `most` letters may stand.

    >>> shown_path(os.path.abspath("model.py"))
    'model.py'
    >>> shown_path("/folder/of/model.py:12", 16)
    '.../model.py:12'
    """
    relative = os.path.relpath(path) if os.sep in path else path
    shown = path if relative.startswith("..") else relative
    if not 0 < most < len(shown):
        return shown
    end = shown[3 - most:]
    return f"...{end[max(end.find(os.sep), 0):]}"


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warns at the user's line: the innermost frame outside the library, however deep this is."""
    frame: FrameType | None = sys._getframe(0)
    level = 1
    while frame is not None and is_internal(frame.f_code.co_filename):
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)


def user_code(traceback: Traceback | None) -> Iterator[tuple[CodeType, int]]:
    """The user's frames of a jaxlib traceback, innermost first, as code and offset into it."""
    if traceback is not None:
        internal = _is_internal_file
        for code, offset in zip(*traceback.raw_frames(), strict=True):
            file_name = code.co_filename
            if not (internal[file_name] if file_name in internal else is_internal(file_name)):
                yield code, offset


def called_by_user(traceback: Traceback | None) -> CodeType | None:
    """The library's function that the innermost of the user's frames has called; None if that runs
    no Python code."""
    called = None
    for code in traceback.raw_frames()[0] if traceback is not None else ():
        if not is_internal(code.co_filename):
            break
        called = code
    return called


def tool_around(traceback: Traceback) -> str:
    """`inspect.find`, the tool within which a function is traced, that it may look at it; empty if
    the program calls the function."""
    for code in reversed(traceback.raw_frames()[0]):
        if found := _TOOL.match(code.co_filename):
            return f"{found[1]}.{code.co_name}"
    return ""


def frame_at(code: CodeType, offset: int) -> Frame:
    """The position of an instruction."""
    line, column, end_line, end_column = _addr2location(code, offset)
    if column < 0:  # python -X no_debug_ranges
        end_line, column, end_column = line, 0, 0
    return Frame(code.co_filename, code.co_qualname, line, column, end_line, end_column)


def user_frames(traceback: Traceback | None, limit: int | None = None) -> list[Frame]:
    """The user's frames of a jaxlib traceback, innermost first, at most `limit` of them."""
    frames: list[Frame] = []
    for code, offset in user_code(traceback):
        if limit is not None and len(frames) >= limit:
            break
        frames.append(frame_at(code, offset))
    return frames


def own_line(traceback: Traceback | None) -> str:
    """`file:line` of `own_frame`; empty if there is none."""
    frame = own_frame(traceback)
    return "" if frame is None else f"{frame.file_name}:{frame.start_line}"


def own_frame(traceback: Traceback | None) -> Frame | None:
    """As `user_frame`, of the innermost frame that is of no installed package, if there is one:
    layers of a model are told by the lines that call them."""
    for code, offset in user_code(traceback):
        if not INSTALLED.search(code.co_filename):
            return frame_at(code, offset)
    return user_frame(traceback)


def own_frames(frames: Sequence[Any]) -> Sequence[Any]:
    """Those of no installed package, or all if there are no such; each begins with its file."""
    return [f for f in frames if not INSTALLED.search(f[0])] or frames


def user_frame(traceback: Traceback | None) -> Frame | None:
    """The innermost frame of a jaxlib traceback that is the user's; None if there is none."""
    for code, offset in user_code(traceback):
        return frame_at(code, offset)
    return None
