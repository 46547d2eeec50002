"""What guards processes from a compiler that ends them.

Before a program is compiled that the disk cache is to keep, a note goes there, and is removed
after. Who finds a note whose process is dead compiles the program in a child first: if that dies
too, there is an error in place of a crash. Without notes that costs the making of a small file.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from pyjx import configuration as config
from pyjx import jaxlib_api
from pyjx.core.frames import warn
from pyjx.core.jaxpr import ClosedJaxpr

_DAY = 86400.0
_refused: set[str] = set()  # notes of programs that ended a child of this process


class Subject(NamedTuple):
    """A program that is compiled, for messages: its name, and its jaxpr, if it has one."""

    name: str
    closed: ClosedJaxpr | None

    def __str__(self) -> str:
        if self.closed is None:
            return self.name
        return f"{self.name}, of {self.closed.jaxpr.debug_info.func_src_info}"

    @property
    def cure(self) -> str:
        """What finds the smallest part of the program that does so."""
        if self.closed is None:
            return "emit-hlo shows what XLA is given."
        debug = self.closed.jaxpr.debug_info
        types = " ".join([f"'{a.str_short(short_dtypes=True)}'" for a in self.closed.in_avals])
        return ("jax.inspect.reduce(f, args) finds the smallest part of the program that does so, "
                f"or: emit-hlo {debug.func_filename}:{debug.func_name} {types} --reduce crash")


def guarded(path: str | None, subject: Subject, compile: Callable[[], Any],
            request: Callable[[], dict[str, Any]]) -> Any:
    """What `compile` gives, while a note is at `path`; in a child first where a process has ended
    that left one, or a flag says so.

    Args:
      request: makes what the child needs: what `compile_alone` reads.

    Raises:
      JaxRuntimeError: the compiler ends the child.
    """
    fresh = path is not None and _leave(path, subject)
    found = "" if path is None or fresh else _of_the_dead(path)
    asked = request() if found or config.compile_in_child.value else None
    alone = asked is not None and asked["platform"] != "tpu"  # which one process can use
    if found:
        warn(f"{found} " + ("Compiling it in a process of its own first." if alone else
                            f"Compiling it again. {subject.cure}"))
    if asked is not None and alone:
        _try_in_child(asked, subject, path)
    try:
        return compile()
    finally:
        if path is not None and (fresh or found):
            with contextlib.suppress(OSError):
                os.unlink(path)


def _host() -> str:
    return os.uname().nodename if hasattr(os, "uname") else ""


def _leave(path: str, subject: Subject) -> bool:
    """Leave a note; False where there is one."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError:  # there is one, or none can be
        return False
    try:
        os.write(descriptor, f"{os.getpid()} {_host()}\n{subject.name}\n".encode())
    finally:
        os.close(descriptor)
    return True


def _of_the_dead(path: str) -> str:
    """What is known of the process that left a note, if it is dead; empty if it may be alive."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            who, name, *_ = [*file.read().split("\n"), ""]
        pid, _, host = who.partition(" ")
        age = time.time() - os.stat(path).st_mtime
    except OSError:
        return ""
    if path not in _refused and age < _DAY and (  # a note without words has just been made
            not pid.isdigit() or host != _host() or _is_alive(int(pid))):
        return ""
    return f"The process {pid} ended while XLA compiled {name or 'a program'}."


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is another user's
        pass
    return True


# ---- the child ----------------------------------------------------------------------------


def environment_of_child(*folders: str) -> dict[str, str]:
    """The environment of a process that is to import this package, and what is in these folders."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    paths = filter(None, [root, *folders, os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def _try_in_child(request: dict[str, Any], subject: Subject, path: str | None) -> None:
    """Raise JaxRuntimeError if compiling the program ends a process."""
    done = subprocess.run(
        [sys.executable, "-c", "from pyjx.runtime import compile; compile.compile_alone()"],
        input=pickle.dumps(request), capture_output=True, env={
            **environment_of_child(*sys.path), "PYJX_CACHE": "0",
            "TF_CPP_MIN_LOG_LEVEL": "0", "TF_CPP_VMODULE": "hlo_pass_pipeline=1",
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false", "PYTHONFAULTHANDLER": "",
            "JAX_NUM_CPU_DEVICES": str(request["n_devices"])})
    if done.returncode >= 0:  # an error of the compiler is raised in this process, too
        return
    if path is not None:
        _refused.add(path)
    said = done.stderr.decode(errors="replace")
    passes = re.findall(r"HLO pass ([\w.-]+)\s*$", said, re.MULTILINE)
    where = f" in its pass {passes[-1]}" if passes else ""
    raise jaxlib_api.JaxRuntimeError(
        f"INTERNAL: XLA ends the process that compiles {subject} "
        f"({signal.Signals(-done.returncode).name}){where}: {_last_words(said)}\nIt was compiled "
        f"in a process of its own, which is gone. {subject.cure}")


_WORDS = re.compile(r"Check failed|LLVM ERROR|what\(\)|terminate called|Assertion|^F\d{4} ")


def _last_words(said: str) -> str:
    """The line of what a process said that tells why it ended."""
    lines = [line.strip() for line in said.splitlines() if line.strip() and "HLO pass" not in line
             and not line.startswith(("    @", "***", "\t"))]
    telling = [line for line in lines if _WORDS.search(line)]
    return re.sub(r"^F\d{4} \S+\s+\d+ ", "", (telling or lines or ["it said nothing"])[-1])[:500]
