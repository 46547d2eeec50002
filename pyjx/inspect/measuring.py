"""Where a program spends its time: the runtime's own record of each operation, by source line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyjx.core.records import Record
from pyjx.inspect.figures import recorded
from pyjx.inspect.program import TracedProgram, UnsupportedError
from pyjx.inspect.running import runner
from pyjx.viewer.hlo import Computation, Instruction, computations
from pyjx.viewer.listing import Places


class OperationTime(Record):
    """An operation of the compiled program.

    Attributes:
      name: in the optimised HLO.
      times: how often it ran.
      seconds: of all that, on all devices.
      lines: the places in the source that it computes for; a fusion may have many.
    """

    name: str
    times: int
    seconds: float
    lines: tuple[str, ...]


class LineTime(Record):
    """A line of the source.

    Attributes:
      line: file and number; empty for what XLA added.
      seconds: of operations that are of this line alone.
      shared: of those that compute for other lines as well, which count for each of these.
    """

    line: str
    seconds: float
    shared: float


class Measurement(Record):
    """Where the time of some runs went.

    Attributes:
      runs: how many.
      operations: the longest first.
    """

    runs: int
    operations: list[OperationTime]

    @property
    def seconds(self) -> float:
        """Of all operations of all runs."""
        return sum([o.seconds for o in self.operations])

    @property
    def by_line(self) -> list[LineTime]:
        """The lines, that with the most time first."""
        alone: dict[str, float] = {}
        shared: dict[str, float] = {}
        for o in self.operations:
            counted = alone if len(o.lines) < 2 else shared
            for line in o.lines or ("",):
                counted[line] = counted.get(line, 0.0) + o.seconds
        rows = [LineTime(line, alone.get(line, 0.0), shared.get(line, 0.0))
                for line in {**alone, **shared}]
        return sorted(rows, key=lambda r: (-r.seconds - r.shared, r.line))


def measure(program: TracedProgram, args: Sequence[Any] | None = None, runs: int = 10
            ) -> Measurement:
    """Run a program on this machine while XLA's profiler watches.

    Args:
      program: the program.
      args: its flat arguments; by default random ones.
      runs: how often, after one run that does not count.

    Raises:
      TypeError: there are more or fewer arguments than the program takes.
      ValueError: it is to run less than once.
      UnsupportedError: the runtime does not tell of operations, or something else profiles.

    >>> import pyjx as jax
    >>> from pyjx import inspect
    >>> def f(x):
    ...     return jax.numpy.sort(x)
    ...
    >>> program = inspect.trace(f, jax.ShapeDtypeStruct((1000,), "float32"))
    >>> measured = inspect.measure(program, runs=3)
    >>> measured.seconds > 0, measured.runs
    (True, 3)
    """
    modules = program.executable.hlo_modules()
    once = runner("measure", program, args, runs)
    once()
    _, events = recorded(lambda: [once() for _ in range(runs)],
                         lambda event: (dict(event.stats), event.duration_ns))
    found: dict[str, dict[str, tuple[int, float]]] = {m.name: {} for m in modules}
    for told, duration in events:
        of_module = found.get(told.get("hlo_module", ""))
        if of_module is not None and "hlo_op" in told:
            times, seconds = of_module.get(told["hlo_op"], (0, 0.0))
            of_module[told["hlo_op"]] = times + 1, seconds + duration / 1e9
    if not any(found.values()):
        raise UnsupportedError("XLA's profiler told of no operations: this platform does not, or "
                               "the process is profiled already")
    places = Places()
    rows = [row for m in modules for row in _attributed(
        found.pop(m.name, {}), computations(m.to_string(), places), places)]
    program.measured = {r.name: r.seconds for r in rows}
    return Measurement(runs, sorted(rows, key=lambda r: (-r.seconds, r.name)))


def _attributed(found: Mapping[str, tuple[int, float]], known: Mapping[str, Computation],
                places: Places) -> list[OperationTime]:
    """The operations of a module with their lines. Loops and branches are left out where what they
    run is there itself."""
    instructions = {i.name: i for c in known.values() for i in c.body}
    rows = []
    for name, (times, seconds) in found.items():
        instruction = instructions.get(name)
        inner = [] if instruction is None else list(_inside(instruction, known))
        if any([i.name in found for i in inner]):
            continue
        own = [] if instruction is None else [instruction]
        at = [places.position(i.place) for i in (*own, *inner)]
        lines = dict.fromkeys([f"{p[0]}:{p[1]}" for p in at if p is not None])
        rows.append(OperationTime(name, times, seconds, tuple(lines)))
    return rows


def _inside(instruction: Instruction, known: Mapping[str, Computation]) -> Iterator[Instruction]:
    """What an instruction's computations hold."""
    for name in instruction.called:
        for i in known[name].body if name in known else ():
            yield i
            yield from _inside(i, known)
