"""`debug.breakpoint`: a command line inside a running program.

What the Python frames around it held when the function was traced becomes operands of a callback;
when the program comes to it the callback shows the frames with the values that these have then.
"""

from __future__ import annotations

import cmd
import linecache
import pprint
import sys
import threading
import traceback
from collections.abc import Sequence
from types import FrameType
from typing import IO, Any, NamedTuple

from pyjx.core.array_type import Array
from pyjx.core.frames import is_internal
from pyjx.core.trace import Tracer
from pyjx.debug.printing import Parted
from pyjx.lax.callbacks import call_for_debugging

_AROUND = 5  # lines of source shown before and after the current one


class Frame(NamedTuple):
    """A Python frame: its place, and what its names stand for."""

    filename: str
    lineno: int
    func_name: str
    first_line: int
    last_line: int
    locals: dict[str, Any]
    globals: dict[str, Any]


def breakpoint(*, backend: str | None = None, filter_frames: bool = True,
               num_frames: int | None = None, ordered: bool = False, token: Any = None,
               **kwargs: Any) -> Any:
    """Stop the program where it comes to this, and let the user look around on the command line.

    `help` lists the commands: p and pp print an expression, l lists the source, u and d go up and
    down the stack, w shows it, c goes on, q ends the program with an error.

    Args:
      backend: which debugger; None or "cli".
      filter_frames: whether frames inside libraries of traces are left out.
      num_frames: how many frames can be looked at, by default all.
      ordered: whether it comes after all ordered effects before it.
      token: given back, for code that orders its own effects.
      kwargs: `stdin` and `stdout`, files in place of the terminal.

    Raises:
      ValueError: an unknown backend.

    >>> import io
    >>> import pyjx as jax
    >>> @jax.jit
    ... def f(x):
    ...     y = x * 2
    ...     jax.debug.breakpoint(stdin=io.StringIO("p y\\nc\\n"))
    ...     return y
    ...
    >>> f(1.0), jax.effects_barrier()  # doctest: +ELLIPSIS
    Entering jdb:
    (jdb) Array(2., dtype=float32...)
    (jdb) (Array(2., dtype=float32...), None)
    """
    if backend not in (None, "cli"):
        raise ValueError(f"Invalid debugger: {backend!r}. The backends are 'cli'.")
    frames = _frames(sys._getframe(1), filter_frames)[:num_frames]
    arrays: list[Any] = []
    held = [_KeptFrame(frame, arrays) for frame in frames]
    call_for_debugging(_Session(held, kwargs.get("stdin"), kwargs.get("stdout")), arrays, ordered,
                       False)
    return token


def _frames(frame: FrameType | None, only_users: bool) -> list[Frame]:
    """The frames from here outwards."""
    found = []
    while frame is not None:
        code = frame.f_code
        if not (only_users and is_internal(code.co_filename)):
            lines = [n for _, _, n in code.co_lines() if n]
            found.append(Frame(code.co_filename, frame.f_lineno, code.co_name, code.co_firstlineno,
                               max(lines, default=frame.f_lineno), dict(frame.f_locals),
                               frame.f_globals))
        frame = frame.f_back
    return found


class _KeptFrame:
    """A frame without the arrays among its locals, which a program computes."""

    def __init__(self, frame: Frame, arrays: list[Any]) -> None:
        self._frame = frame
        self._parted: dict[str, Parted] = {}
        for name, value in list(frame.locals.items()):
            try:
                parted = Parted(value, _is_array, arrays)
            except Exception:  # what is no tree, such as a dictionary with keys of several types
                continue
            if any([at is not None for at in parted.places]):
                self._parted[name] = parted
                del frame.locals[name]

    def with_values(self, arrays: Sequence[Any]) -> Frame:
        values = {name: parted.joined(arrays) for name, parted in self._parted.items()}
        return self._frame._replace(locals={**self._frame.locals, **values})


def _is_array(x: Any) -> bool:
    return isinstance(x, (Tracer, Array))


_one_at_a_time = threading.RLock()  # an expression may come to a breakpoint itself


class _Session:
    """The callback: a command line over the frames, with the arrays that it is called with."""

    def __init__(self, held: Sequence[_KeptFrame], stdin: IO[str] | None, stdout: IO[str] | None
                 ) -> None:
        self._held = held
        self._stdin = stdin
        self._stdout = stdout

    def __call__(self, *arrays: Any) -> None:
        frames = [h.with_values(arrays) for h in self._held]
        with _one_at_a_time:
            Debugger(frames, self._stdin, self._stdout).cmdloop()


class Debugger(cmd.Cmd):
    """The commands of the debugger."""

    prompt = "(jdb) "
    intro = "Entering jdb:"

    def __init__(self, frames: Sequence[Frame], stdin: IO[str] | None = None,
                 stdout: IO[str] | None = None) -> None:
        super().__init__(stdin=stdin, stdout=stdout)
        self.use_rawinput = stdin is None and stdout is None
        self._frames = frames
        self._at = 0

    @property
    def frame(self) -> Frame:
        return self._frames[self._at]

    def _say(self, text: str) -> None:
        print(text, file=self.stdout)

    def emptyline(self) -> bool:
        """An empty line does nothing."""
        return False

    def _evaluate(self, expression: str) -> Any:
        return eval(expression, self.frame.globals, self.frame.locals)

    def _show(self, expression: str, text: Any) -> None:
        try:
            self._say(text(self._evaluate(expression)))
        except Exception as error:
            self._say("*** " + traceback.format_exception_only(error)[-1].rstrip())

    def default(self, line: str) -> None:
        """What is no command is an expression."""
        self._show(line, repr)

    def do_p(self, line: str) -> None:
        """p EXPRESSION: print its value."""
        self._show(line, repr)

    def do_pp(self, line: str) -> None:
        """pp EXPRESSION: print its value over several lines."""
        self._show(line, pprint.pformat)

    def do_list(self, line: str) -> None:
        """l, list: the source around the current line."""
        frame = self.frame
        self._say(f"> {frame.filename}({frame.lineno})")
        first = max(frame.first_line, frame.lineno - _AROUND)
        for n in range(first, min(frame.last_line, frame.lineno + _AROUND) + 1):
            mark = "->" if n == frame.lineno else "  "
            self._say(f"{mark}  {linecache.getline(frame.filename, n).rstrip()}".rstrip())

    def do_up(self, line: str) -> None:
        """u, up: go to the frame that called this one."""
        self._move(1, "At topmost frame.")

    def do_down(self, line: str) -> None:
        """d, down: go to the frame that this one called."""
        self._move(-1, "At bottommost frame.")

    def _move(self, step: int, at_end: str) -> None:
        if 0 <= self._at + step < len(self._frames):
            self._at += step
        else:
            self._say(at_end)
        self.do_list("")

    def do_where(self, line: str) -> None:
        """w, where, bt: the stack, the innermost frame last."""
        self._say("Traceback:")
        for frame in reversed(self._frames):
            self._say(f'  File "{frame.filename}", line {frame.lineno}, in {frame.func_name}')
            source = linecache.getline(frame.filename, frame.lineno).strip()
            if source:
                self._say(f"    {source}")

    def do_continue(self, line: str) -> bool:
        """c, cont, continue: go on."""
        return True

    def do_quit(self, line: str) -> bool:
        """q, quit, exit: end the program with an error."""
        raise SystemExit("the debugger was left with quit")

    do_l = do_list
    do_u, do_d = do_up, do_down
    do_w = do_bt = do_where
    do_c = do_cont = do_continue
    do_q = do_exit = do_EOF = do_quit
