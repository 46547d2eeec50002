"""Where output goes: files replaced as a whole, devices and pipes written to, the terminal with its
colours, by rich where it is installed."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import time
from typing import Any

import emit_hlo
from emit_hlo.tables import NAMED
from pyjx.cli.emit.messages import CommandError, is_terminal
from pyjx.lazy import deferred

console = deferred("rich.console")  # an optional package
rich_text = deferred("rich.text")

_unfinished: set[str] = set()  # files that an interrupt must not leave


def write(data: str | bytes, path: str | None) -> None:
    """Write to the file `path`, or to the standard output where that is None or `-`.

    A regular file, or the one that a link leads to, is replaced as a whole or not at all and keeps
    its mode. Devices and pipes are written to.

    Raises:
      CommandError: it cannot be written, by the name that the user gave.
    """
    content = data.encode() if isinstance(data, str) else data
    if path is None or path == "-":
        return to_stdout(content)
    try:
        found = None
        try:
            descriptor = os.open(path, os.O_WRONLY)  # neither makes nor empties it
        except FileNotFoundError:
            return _replace(path, content, None)
        with open(descriptor, "wb") as file:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                with contextlib.suppress(BrokenPipeError):
                    file.write(content)
                    file.flush()
                return None
        # It may be where the output goes anyway, as /dev/stdout in `emit-hlo ... > file`.
        if not _is_stdout(found):
            return _replace(path, content, found)
    except BrokenPipeError:
        return None
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}.") from None
    return to_stdout(content)


def _is_stdout(found: os.stat_result) -> bool:
    try:
        return os.path.samestat(found, os.fstat(1))
    except OSError:  # it is closed
        return False


def to_stdout(content: bytes) -> None:
    """Write to the standard output; that nobody reads it is no error."""
    try:
        if hasattr(sys.stdout, "buffer"):
            sys.stdout.flush()
            sys.stdout.buffer.write(content)
        else:
            sys.stdout.write(content.decode(errors="replace"))
        sys.stdout.flush()
    except (OSError, ValueError, AttributeError) as error:
        emit_hlo.silence_stdout()
        # `emit-hlo ... | head`, and `emit-hlo ... >&-`, are as they should be
        if isinstance(error, OSError) and not isinstance(error, BrokenPipeError) \
                and error.errno != 9:
            raise CommandError(f"standard output: {error.strerror}.") from None


def _replace(path: str, content: bytes, found: os.stat_result | None) -> None:
    """Put a file where `path` leads, with the owner and mode of the one that was `found` there."""
    target = os.path.realpath(path)
    temporary = os.path.join(os.path.dirname(target), f".emit-hlo-{os.getpid()}-{time.time_ns()}")
    _unfinished.add(temporary)
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            made = os.fstat(file.fileno())
        if found is not None:
            if (made.st_uid, made.st_gid) != (found.st_uid, found.st_gid):
                with contextlib.suppress(PermissionError):
                    os.chown(temporary, found.st_uid, found.st_gid)
            os.chmod(temporary, stat.S_IMODE(found.st_mode))
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    finally:
        _unfinished.discard(temporary)


def check_writable(path: str | None) -> None:
    """Say that a file cannot be written before anything is computed for it.

    Raises:
      CommandError: it cannot.
    """
    if path is None or path == "-":
        return
    if os.path.isdir(path):
        raise CommandError(f"{path}: it is a folder.")
    if os.path.exists(path):
        if not os.access(path, os.W_OK):
            raise CommandError(f"{path}: permission denied.")
        return
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise CommandError(f"{path}: there is no folder {os.path.dirname(path) or folder}.")
    if not os.access(folder, os.W_OK):
        raise CommandError(f"{path}: permission denied for its folder.")


def make_folder(path: str) -> None:
    """Make a folder, if it is not there.

    Raises:
      CommandError: it cannot be made, or written to.
    """
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}.") from None
    if not os.access(path, os.W_OK):
        raise CommandError(f"{path}: permission denied.")


def path_in_folder(folder: str, kind: str, program: str) -> str:
    """Where a form of a program goes, among the others."""
    name = "".join([c if c.isalnum() or c in "-_." else "_" for c in program]).strip("_.")
    place = list(NAMED).index(kind) + 1
    return os.path.join(folder, f"{place:02}-{name or 'program'}{NAMED[kind].suffixes[0]}")


def clean_up() -> None:
    """Take away files that were being written."""
    for path in tuple(_unfinished):
        with contextlib.suppress(OSError):
            os.unlink(path)


_PATTERNS = {
    "comment": r"^\s*(//|;|#).*$",
    "string": r"\"[^\"\n]*\"",
    "value": r"%[\w.$-]+(#\d+)?",
    "type": r"\b(tensor<[^>\n]*>?>|(f|bf|i|u|c|s|pred)\d*\[[\d,A-Za-z*+-]*\](\{[\d,]*\})?)",
    "operation": r"\b(stablehlo|chlo|sdy|func)\.\w+|(?<= = )[a-z_]\w*(?=[ \[(])",
    "symbol": r"@[\w.$]+",
    "added": r"^\+.*$",
    "removed": r"^-.*$",
}
_STYLES = {"comment": "dim", "string": "green", "value": "cyan", "type": "yellow",
           "operation": "bold blue", "symbol": "magenta", "added": "green", "removed": "red"}


def is_colored(color: str, stream: Any) -> bool:
    """Whether text for a stream is coloured."""
    if color != "auto":
        return color == "always"
    return is_terminal(stream) and "NO_COLOR" not in os.environ and (
        os.environ.get("TERM") != "dumb")


def colored(text: str, kinds: tuple[str, ...]) -> str:
    """The text with the colours of a terminal; as it is where rich is not installed."""
    try:
        made = rich_text.Text(text)
    except ImportError:
        return text
    for kind in kinds:
        made.highlight_regex(f"(?m){_PATTERNS[kind]}", _STYLES[kind])
    terminal = console.Console(force_terminal=True, color_system="standard", highlight=False,
                               soft_wrap=True, file=sys.stdout)
    with terminal.capture() as capture:
        terminal.print(made, end="")
    return str(capture.get())


PROGRAM = ("operation", "type", "value", "symbol", "string", "comment")
DIFF = ("removed", "added")
