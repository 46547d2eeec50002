"""What a program costs: arithmetic, memory, what bounds it on a device, times of XLA's passes."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from pyjx import jaxlib_api
from pyjx.core.evaluation import all_eqns
from pyjx.core.frames import shown_path
from pyjx.core.jaxpr import Jaxpr
from pyjx.core.records import Record
from pyjx.runtime.costs import Cost
from pyjx.viewer.hlo import FREE, Instruction, computations, trips_said
from pyjx.viewer.listing import Places


class Loop(Record):
    """A loop of a program that XLA has compiled for a CPU.

    Attributes:
      line: of the user's source, empty where it is not known.
      name: what it comes from, such as `scan`.
      iterations: how many, where XLA knows.
      kernels: how many operations an iteration starts; 0 where the whole loop is one kernel.
      apart: what of these no kernel can hold, by name and line, such as `dot` or a call of LAPACK.
    """

    line: str
    name: str
    iterations: int | None
    kernels: int
    apart: tuple[str, ...]

    def __str__(self) -> str:
        times = "" if self.iterations is None else f"{self.iterations:,}"
        each = "one kernel for all" if not self.kernels else str(self.kernels)
        apart = f" with {', '.join(dict.fromkeys(self.apart))}" if self.apart else ""
        what = f"{shown_path(self.line, 59 - len(self.name))} {self.name}".strip()
        return f"{what:60} {times:>8} {each}{apart}"


_STEPS = frozenset(("call", "conditional", "copy", "fusion", "while"))  # what kernels are


def loops(hlo: str) -> tuple[Loop, ...]:
    """The loops of an optimised program, each before those inside it."""
    places = Places()
    found = computations(hlo, places)
    whole = {name for c in found.values() for i in c.body.values() if "xla_cpu_small_call" in i.text
             for name in i.called}

    def line(i: Instruction) -> str:
        at = places.position(i.place)
        return "" if at is None else f"{at[0]}:{at[1]}"

    def loop(i: Instruction, in_one: bool) -> Loop:
        body = [x for x in found[i.called[-1]].body.values() if x.opcode not in FREE]
        apart = [x for x in body if x.opcode not in _STEPS or "kind=kCustom" in x.text]
        trips = trips_said(i)
        return Loop(line(i), i.op_name.rpartition("/")[2], None if trips is None else int(trips),
                    0 if in_one else len(body), () if in_one else tuple([
                        f"{x.op_name.rpartition('/')[2] or x.opcode} ({shown_path(line(x))})"
                        for x in apart]))

    return tuple([loop(i, c.name in whole) for c in reversed(found.values())
                  for i in c.body.values()
                  if i.opcode == "while"])


class Bound(Record):
    """What bounds some operations on a device.

    Attributes:
      name: of the operation, or the line.
      flops, bytes: of all its runs.
      intensity: operations a byte.
      seconds: the least they can take.
      bound: `compute` or `memory`.
    """

    name: str
    flops: float
    bytes: float
    intensity: float
    seconds: float
    bound: str


def roofline(costs: Iterable[Cost], flops: float, bandwidth: float) -> list[Bound]:
    """The least time that operations can take on a device that does so many operations and moves
    so many bytes a second; the longest first.

    Bytes are those of each operation by itself. XLA fuses operations, so memory bounds less than
    this says.

    >>> import pyjx as jax
    >>> from pyjx import inspect
    >>> program = inspect.trace(lambda x, y: x @ y, jax.numpy.ones((64, 64)), jax.numpy.ones(64))
    >>> inspect.roofline(program.cost.by_operation, 1e12, 1e9)[0].bound
    'memory'
    """
    bounds = []
    for cost in costs:
        work = cost.flops + cost.transcendentals
        compute, memory = work / flops, cost.bytes / bandwidth
        bounds.append(Bound(cost.name, work, cost.bytes, work / cost.bytes if cost.bytes else 0.0,
                            max(compute, memory), "compute" if compute > memory else "memory"))
    return sorted(bounds, key=lambda b: (-b.seconds, b.name))


def counted_jaxpr(jaxpr: Jaxpr) -> Counter[str]:
    """How many equations there are of each primitive, nested ones included."""
    return Counter([eqn.primitive.name for eqn in all_eqns(jaxpr)])


_MLIR_OPERATION = re.compile(r"^\s*(?:%[^=]*= )?\"?((?:stablehlo|chlo|func|sdy|mhlo|shape)\.\w+)",
                             re.MULTILINE)


def counted_text(text: str) -> Counter[str]:
    """How many operations of each kind there are in StableHLO or HLO."""
    if text.lstrip().startswith("HloModule"):
        return Counter([i.opcode for c in computations(text, Places()).values()
                        for i in c.body.values()])
    return Counter([name for name in _MLIR_OPERATION.findall(text) if name != "func.func"])


T = TypeVar("T")


class PassTime(Record):
    """A pass of XLA's: how often it ran, and the seconds of all its runs.

    Passes hold others, so the sum of all is more than the compilation took.
    """

    name: str
    times: int
    seconds: float


def recorded(work: Callable[[], Any], read: Callable[[Any], T]) -> tuple[Any, list[T]]:
    """The result of `work`, and what `read` gives of the events that XLA's profiler told meanwhile;
    none where somebody else profiles already. Events live as long as the profile that has them."""
    profiler, data = jaxlib_api.profiler(), jaxlib_api.profile_data()
    options = profiler.ProfileOptions()
    options.python_tracer_level = 0
    options.host_tracer_level = 2
    try:
        session = profiler.ProfilerSession(options)
    except RuntimeError:
        return work(), []
    told = None
    try:
        result = work()
    finally:
        with contextlib.suppress(RuntimeError):  # which tells only now that there is another one
            told = session.stop()
    if told is None:
        return result, []
    profile = data.ProfileData.from_serialized_xspace(told)
    with warnings.catch_warnings():
        # of how jaxlib's C++ makes a type; as an error it would end the process
        warnings.simplefilter("ignore", DeprecationWarning)
        return result, [read(event) for plane in profile.planes
                        for line in plane.lines for event in line.events]


def watched(work: Callable[[], Any]) -> tuple[Any, list[PassTime]]:
    """The result of `work`, and the passes that XLA ran meanwhile, the longest first."""
    result, events = recorded(work, lambda event: (event.name, event.duration_ns))
    found: dict[str, tuple[int, float]] = {}
    for name, duration in events:
        times, seconds = found.get(name, (0, 0.0))
        found[name] = times + 1, seconds + duration / 1e9
    rows = [PassTime(name, *counted) for name, counted in found.items()]
    return result, sorted(rows, key=lambda r: (-r.seconds, r.name))
