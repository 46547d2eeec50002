"""The two worker processes: started, fed, watched and started again."""

from __future__ import annotations

import hashlib
import json
import os
import select
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from tests.oracle.language import Program

Outcome = dict[str, Any]

WORKER = Path(__file__).with_name("worker.py")
ROOT = WORKER.parents[2]
VARIABLE = "PYJX_ORACLE_PYTHON"
FRESH_AFTER = 3000  # programs; compiled programs pile up in a process
# A third of the compile time goes; both sides get the same code from it.
CHEAP = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
DEVICES = "--xla_force_host_platform_device_count=8"


def cache_folder() -> Path:
    return Path(tempfile.gettempdir()) / f"oracle-cache-{os.getuid()}"


class Worker:
    """A process that runs programs with one package.

    A program that takes longer than `limit` seconds or ends the process is an outcome as well; the
    process is then started again and goes on with the next program.
    """

    def __init__(self, python: str, package: str, limit: float = 60.0) -> None:
        self.python, self.package, self.limit = python, package, limit
        self.process: subprocess.Popen[bytes] | None = None
        self.names: dict[str, Any] = {}
        self.version = ""
        self.waiting: list[tuple[int, Program]] = []
        self.ran = 0

    # -- the process -------------------------------------------------------------------------------

    def start(self) -> None:
        environment = {
            **os.environ, "JAX_PLATFORMS": "cpu", "JAX_TRACEBACK_FILTERING": "off",
            "JAX_COMPILATION_CACHE_DIR": str(cache_folder() / self.package),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
            "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": str(ROOT),
            "PYTHONFAULTHANDLER": "1",
            "XLA_FLAGS": f"{CHEAP} {DEVICES}",
        }
        self.log = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the process)
        self.process = subprocess.Popen(
            [self.python, str(WORKER), self.package], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self.log, env=environment, cwd=tempfile.gettempdir())
        self.buffer = b""
        self.ran = 0
        ready = self.line(120.0)
        if ready is None:
            raise RuntimeError(f"{self.package} does not start in {self.python}:\n{self.tail()}")
        answer = json.loads(ready)
        self.names, self.version = answer["ready"], answer["version"]

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def tail(self) -> str:
        self.log.seek(0)
        return self.log.read().decode(errors="replace")[-3000:]

    def line(self, limit: float) -> bytes | None:
        """The next line of the answer; None where the time is up or the process has ended."""
        assert self.process is not None and self.process.stdout is not None
        pipe = self.process.stdout.fileno()
        end = time.monotonic() + limit
        while b"\n" not in self.buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([pipe], [], [], left)[0]:
                return None
            chunk = os.read(pipe, 1 << 16)
            if not chunk:
                return None
            self.buffer += chunk
        found, _, self.buffer = self.buffer.partition(b"\n")
        return found

    # -- programs ----------------------------------------------------------------------------------

    def send(self, programs: Sequence[Program]) -> None:
        """Hand programs over; `collect` gets the outcomes."""
        if self.process is not None and self.ran > FRESH_AFTER:
            self.stop()
        if self.process is None:
            self.start()
        self.waiting = list(enumerate(programs))
        self.post()

    def post(self) -> None:
        assert self.process is not None and self.process.stdin is not None
        request = [[i, p.source(), p.x64] for i, p in self.waiting]
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # seen when the answer is read

    def collect(self) -> list[Outcome]:
        found: list[Outcome] = []
        while self.waiting:
            answer = self.line(self.limit)
            found.append(self.lost() if answer is None else json.loads(answer))
            self.waiting.pop(0)
            self.ran += 1
            if answer is None and self.waiting:
                self.start()
                self.post()
        return found

    def lost(self) -> Outcome:
        """What became of the process that did not answer."""
        assert self.process is not None
        try:
            code = self.process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            self.stop()
            return {"is": "hang", "message": f"no answer within {self.limit:.0f} s"}
        self.process = None
        name = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        return {"is": "crash", "message": name, "log": self.tail()[:2000]}


class Recorded(Worker):
    """A worker whose package stays the same: what a program gave is kept in a file.

    So the same seeds cost half on code of ours that was mended. Crashes and hangs are not kept.
    """

    store: sqlite3.Connection | None = None

    def start(self) -> None:
        super().start()
        if self.store is None:
            file = cache_folder() / f"{self.package}-{self.version}.sqlite"
            file.parent.mkdir(exist_ok=True)
            self.store = sqlite3.connect(file, timeout=60, isolation_level=None)
            self.store.execute("create table if not exists outcomes (program primary key, outcome)")

    def send(self, programs: Sequence[Program]) -> None:
        self.sent = [hashlib.sha256(f"{p.x64}\n{p.source()}".encode()).hexdigest()
                     for p in programs]
        if self.store is None:
            self.start()
        assert self.store is not None
        marks = ", ".join("?" * len(self.sent))
        rows = self.store.execute(f"select * from outcomes where program in ({marks})", self.sent)
        self.known = {key: json.loads(text) for key, text in rows}
        super().send([p for p, key in zip(programs, self.sent, strict=True)
                      if key not in self.known])

    def collect(self) -> list[Outcome]:
        new = [key for key in self.sent if key not in self.known]
        found = dict(zip(new, super().collect(), strict=True))
        assert self.store is not None
        self.store.executemany("insert or ignore into outcomes values (?, ?)", [
            (key, json.dumps(o)) for key, o in found.items() if o["is"] in ("value", "error")])
        found.update(self.known)
        return [found[key] for key in self.sent]


class Pair:
    """pyjx in this interpreter and the oracle in its own, fed side by side."""

    def __init__(self, oracle: str, limit: float = 60.0) -> None:
        self.ours = Worker(sys.executable, "pyjx", limit)
        self.theirs = Recorded(oracle, "jax", limit)

    def run(self, programs: Sequence[Program], limit: float | None = None
            ) -> list[tuple[Outcome, Outcome]]:
        """The outcomes on both sides; `limit` is another time limit for these programs."""
        if not programs:
            return []
        usual = self.ours.limit
        self.ours.limit = self.theirs.limit = limit or usual
        self.ours.send(programs)
        self.theirs.send(programs)
        found = list(zip(self.ours.collect(), self.theirs.collect(), strict=True))
        self.ours.limit = self.theirs.limit = usual
        return found

    def __enter__(self) -> Self:
        self.ours.start()
        self.theirs.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ours.stop()
        self.theirs.stop()
