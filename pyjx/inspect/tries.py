"""Programs tried in processes of their own, with limits of time and memory: they may crash, abort,
hang or run out of memory.

A server process loads the package and starts no backend. Each try is a fork of it, which has the
state that the package has after its import, and needs a tenth of a second.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import pkgutil
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from multiprocessing import spawn
from typing import Any, BinaryIO

import numpy as np

from pyjx.core import frames
from pyjx.core.records import Record
from pyjx.lazy import deferred
from pyjx.runtime.shield import environment_of_child

resource = deferred("resource")  # of Unix
jax = deferred("pyjx")
numbers = deferred("pyjx.inspect.numpy_interpreter")

_WORDS = 2000  # characters of what a process said last that are kept


class Outcome(Record):
    """What came of a try.

    Attributes:
      kind: `fine`, `true` (what the user's function says), `raised`, `signal`, `time`, `memory`;
        of the user's function `unfound`, which has not been imported, and `broken`, an error that
        is its own.
      detail: the type of the exception, the name of the signal, or what takes the time; of the
        user's function the whole error.
      words: what the process said last.
      values: the results, where they were asked for.
    """

    kind: str
    detail: str = ""
    words: str = ""
    values: Any = None

    @property
    def key(self) -> tuple[str, str]:
        """What two failures of one cause share."""
        return self.kind, self.detail

    @property
    def fails(self) -> bool:
        return self.kind != "fine"

    def __str__(self) -> str:
        return {"fine": "it runs", "true": "it does what was asked for",
                "raised": f"it raises {self.detail}", "memory": "it runs out of memory",
                "signal": f"the process ends by {self.detail}",
                "unfound": f"fails is not found: {self.detail}",
                "broken": f"fails raises {self.detail}",
                "time": f"{self.detail or 'it'} does not end in time"}[self.kind]


class Tries:
    """The server, and what is asked of it. A context, at the end of which the server ends.

    Args:
      fails: `(program, args) -> bool`, a function of a module, or of a script that has a file;
        None where a program fails that does not come to its end.
      memory: bytes that a try may take.
    """

    def __init__(self, fails: Callable[..., Any] | None, memory: int) -> None:
        self.fails = fails
        self._fails = None if fails is None else _reference(fails)
        self._memory = memory
        self._server: Any = None
        self.count = 0

    def __enter__(self) -> Tries:
        if _is_try:
            raise RuntimeError("it calls inspect.reduce as it is loaded")
        if not hasattr(os, "fork"):
            raise NotImplementedError("inspect.reduce tries programs in forks of a process, which "
                                      f"{sys.platform} has not. Run it on Linux or macOS.")
        self._server = subprocess.Popen(
            [sys.executable, "-c", "from pyjx.inspect import tries; tries.serve()"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            start_new_session=True,  # a Ctrl-C is for this process alone
            env=environment_of_child(*sys.path))
        return self

    def __exit__(self, *exc: object) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._server.stdin.close()  # which ends what is being tried, too
        self._server.stdout.close()  # it may be writing what nobody reads
        self._server.wait()

    def run(self, source: str, args: Sequence[Any], seconds: float, running: float,
            how: str = "fails") -> Outcome:
        """Try the text of a file that has a function `program`, on NumPy arrays.

        Args:
          seconds: for all; `running` for what comes after compiling.
          how: `fails`; `values` for the results; `numpy` for those of NumPy in double precision.
        """
        self.count += 1
        pickle.dump((source, list(args), self._fails, how, seconds, running, self._memory),
                    self._server.stdin)
        self._server.stdin.flush()
        return pickle.load(self._server.stdout)  # type: ignore[no-any-return]  # of our own child


# What a process needs to find a function: what is the script, if it is of one, and its pickle.
_Reference = tuple[dict[str, Any], bytes]


def _reference(fails: Callable[..., Any]) -> _Reference:
    pickled = pickle.dumps(fails)
    if b"__main__" not in pickled:
        return {}, pickled
    known = spawn.get_preparation_data("")
    script = {name: known[name] for name in known if name.startswith("init_main_from")}
    if not script:
        raise ValueError("it is of the program that runs, which has no file")
    return script, pickled


# ---- in the server ------------------------------------------------------------------------


def serve() -> None:
    """Answer the requests that come until there are no more."""
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    for name in ("as_jax", "numpy", "nn", "random", "runtime.lower", "runtime.compile", "viewer",
                 "inspect.numpy_interpreter", "extend.core.primitives"):
        pkgutil.resolve_name(f"pyjx.{name}")
    # Pipes end while a request is awaited, came in part, is tried, or its answer is written.
    with contextlib.suppress(EOFError, pickle.UnpicklingError, BrokenPipeError):
        while True:
            pickle.dump(_tried(*pickle.load(requests)), answers)
            answers.flush()
    os._exit(0)  # Python would write the rest of an answer


def _tried(source: str, args: list[Any], fails: _Reference | None, how: str, seconds: float,
           running: float, memory: int) -> Outcome:
    reads, writes = os.pipe()
    with tempfile.TemporaryFile() as words:
        pid = os.fork()
        if not pid:
            os.close(reads)
            _child(source, args, fails, how, memory, writes, words.fileno())
        try:
            os.close(writes)
            with contextlib.suppress(OSError):
                os.setpgid(pid, pid)  # the child does so, too: whoever is first
            with os.fdopen(reads, "rb") as pipe:
                answer, late = _read(pipe, seconds, running)
                if late == _FIRST and fails is not None and how == "fails":
                    return Outcome("unfound", "loading it does not end in time")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            os.kill(pid, signal.SIGKILL)  # it may have no group yet
        _, status = os.waitpid(pid, 0)
        words.seek(0)
        said = words.read().decode(errors="replace")[-_WORDS:]
    with contextlib.suppress(EOFError, pickle.UnpicklingError):  # none, or not the whole
        found: Outcome = pickle.loads(answer)  # of our own child
        return found._replace(words=said + found.words)
    if late:
        return Outcome("time", late, said)
    if re.search("bad_alloc|RESOURCE_EXHAUSTED|[Oo]ut of memory|MemoryError", said):
        return Outcome("memory", words=said)
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    return Outcome("signal", signal.Signals(number).name if number else
                   f"exit {os.WEXITSTATUS(status)}", said)


_COMPILED = b"\0"  # comes before an answer, where that is of a program that is compiled first
_FIRST = "compiling it"  # what goes on before


def _read(pipe: BinaryIO, seconds: float, running: float) -> tuple[bytes, str]:
    """What comes from a pipe until its end, and what did not end in time. EOFError: nobody waits
    for it any more."""
    found, what = b"", _FIRST
    end = time.monotonic() + seconds
    while True:
        ready, _, _ = select.select([pipe, sys.stdin], [], [], max(end - time.monotonic(), 0))
        if sys.stdin in ready:  # one request comes at a time, so this is the end of them
            raise EOFError
        if not ready:
            return b"", what
        part = os.read(pipe.fileno(), 1 << 20)
        if not part:
            return found.lstrip(_COMPILED), ""
        if not found and part.startswith(_COMPILED):
            end, what = min(end, time.monotonic() + running), "it"
        found += part


_is_try = False


def _child(source: str, args: list[Any], fails: _Reference | None, how: str, memory: int, out: int,
           words: int) -> None:
    """The process of a try, which does not return."""
    global _is_try
    _is_try = True
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)
    for descriptor in (1, 2):
        os.dup2(words, descriptor)
    try:
        _limit(memory)
        found = _ran(source, args, fails, how, out)
    except MemoryError:
        found = Outcome("memory")
    except BaseException as error:
        text = str(error)
        kind = "memory" if "RESOURCE_EXHAUSTED" in text or "bad_alloc" in text else "raised"
        found = Outcome(kind, "" if kind == "memory" else type(error).__name__, text[:_WORDS])
    with os.fdopen(out, "wb") as pipe:
        pickle.dump(found, pipe)
    os._exit(0)


def _limit(memory: int) -> None:
    """Bound what this process may take besides what it has, where Linux tells that."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(FileNotFoundError), open("/proc/self/statm", "rb") as sizes:
        present = int(sizes.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (present + memory,) * 2)


_SOURCE = "program.py"  # of the code that is tried


def _ran(source: str, args: list[Any], fails: _Reference | None, how: str, out: int) -> Outcome:
    jax.config.update("jax_enable_compilation_cache", False)
    names: dict[str, Any] = {"__name__": "program"}
    exec(compile(source, _SOURCE, "exec"), names)
    program = names["program"]
    if how == "numpy":
        closed = jax.make_jaxpr(program)(*args)
        return Outcome("fine", values=list(map(np.asarray, numbers.evaluate(
            closed.jaxpr, closed.consts, args, numbers.Account()))))
    if how == "fails" and fails is not None:
        try:
            asked = _found(*fails)
        except BaseException as error:  # a script that is loaded may end the process
            return Outcome("unfound", f"{type(error).__name__}: {error}")
        os.write(out, _COMPILED)  # who knows what it does when
        return _asked(asked, program, args)
    compiled = jax.jit(program).lower(*args).compile()
    os.write(out, _COMPILED)
    outs = [np.asarray(x) for x in compiled(*args)]
    return Outcome("fine", values=outs if how == "values" else None)


def _found(script: dict[str, Any], pickled: bytes) -> Callable[..., Any]:
    if script:
        spawn.prepare(script)
    return pickle.loads(pickled)  # type: ignore[no-any-return]


def _asked(fails: Callable[..., Any], program: Callable[..., Any], args: list[Any]) -> Outcome:
    """What the user's function says of a program, whose errors it may let through."""
    try:
        return Outcome("true" if fails(program, args) else "fine")
    except (Exception, SystemExit) as error:
        passed = [(tb.tb_frame.f_code.co_filename, tb.tb_lineno)
                  for tb in frames.tracebacks_of(error)]
        if _SOURCE in [file for file, _ in passed] or type(error) is _alone(program, args):
            raise
        places = [f" at {frames.shown_path(file)}:{line}" for file, line in passed
                  if not (frames.is_internal(file) or frames.is_of_foundation(file))]
        return Outcome("broken", f"{type(error).__name__}{(places or [''])[-1]}: {error}")


def _alone(program: Callable[..., Any], args: list[Any]) -> type | None:
    """The type of the error that a program raises by itself."""
    try:
        list(map(np.asarray, jax.jit(program)(*args)))
    except Exception as error:
        return type(error)
    return None
