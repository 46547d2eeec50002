"""Programs within a budget of memory, and what is said where memory does not suffice.

`jit(f, memory_budget=...)` and the flag `jax_memory_budget` bound what a compiled program needs at
its peak: arguments, results and temporaries, less what is in the same place. A program that is
expected to need more is planned (runtime/recomputing.py) before it is lowered. Then the compiler's
own word counts: where it says more, the plan is made anew for as much less.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

from lowering.program import LoweredProgram
from pyjx import jaxlib_api
from pyjx.configuration import Budget
from pyjx.core.derived import derived_structure
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr
from pyjx.core.lifetimes import Liveness, Sizes, as_it_is_read, machine_of
from pyjx.core.options import MEMORY_BUDGET
from pyjx.core.passes.dce import dce
from pyjx.core.records import Record
from pyjx.core.value_texts import size_text
from pyjx.engine.one_cpu import with_updates_at_once
from pyjx.runtime import backends, cache
from pyjx.runtime.compile import compile_lowered
from pyjx.runtime.cuts import flattened, work_on
from pyjx.runtime.executable import Executable
from pyjx.runtime.lower import as_lowered, in_own_operations, lower_closed
from pyjx.runtime.memory import (
    CURES,
    LiveArray,
    largest,
    memory_of,
    memory_of_device,
    place_of,
    table_of,
)
from pyjx.runtime.placement import Placement
from pyjx.runtime.recomputing import Plan, Search
from pyjx.version import __version__

_NOTHING = (" Nothing was found to give up. For what is differentiated later, put the budget on "
            "the derivative: jax.grad(f, memory_budget=...). A branch of cond or switch is "
            "cut where its derivative is in it; else put jax.checkpoint around its parts.")
# Beyond so much above the budget an estimate is believed without compiling.
_SURELY = 2.0
# A program that needs less than this part of its budget is tried to do less again.
_WELL = 0.8
_TRIES = 7
# How much more an estimate is taken to be wrong by where a leaner program needed no less.
_MORE = 1.25
# Operations wait where that needs so much less: estimates are not exact enough to tell finer.
_CLEARLY = 0.9
# XLA's CPU compiler puts operations in an order in which many may run at a time, for which all that
# is made of arguments alone comes first; or, asked for it, in one for memory. Before 0.10 there is
# no such option.
_ORDERS: Sequence[dict[str, str]] = [{}, {
    "xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"}][:1 + (
        jaxlib_api.JAXLIB_VERSION >= (0, 10))]


def bytes_on(budget: Budget, device: Any) -> int:
    """A budget in bytes.

    Raises:
      ValueError: it is a part of the memory of a device that does not tell how much that is.
    """
    if isinstance(budget, int):
        return budget
    total = memory_of_device(device)
    if total is None:
        raise ValueError(f"memory_budget={budget}: how much memory {device} has is not known; give "
                         "the budget in bytes, such as '12GiB'.")
    return int(budget * total)


# -- planning --------------------------------------------------------------------------------------


class Fit(Record):
    """A program within a budget, and how it came to be.

    Attributes:
      closed: the program.
      budget: bytes, infinitely many where there is no budget.
      before, after: when its values are alive without the budget and with it.
      plan: what is computed again; None where nothing is.
      sizes: the bytes of values.
      n_devices: for how many devices it is, whose memory `before` and `after` count together.
      fitter: what found it.
      scale: what estimates were multiplied by.
      room: what the estimate of its peak may be.
    """

    closed: ClosedJaxpr
    budget: float
    before: Liveness
    after: Liveness
    plan: Plan | None
    sizes: Sizes
    n_devices: int
    fitter: Fitter
    scale: float
    room: float

    @property
    def work(self) -> float:
        return 0.0 if self.plan is None else self.plan.work

    @property
    def cost(self) -> float:
        return 0.0 if self.plan is None else self.plan.cost

    def beyond(self, name: str, peak: float, whose: str = "by the estimate") -> Exception:
        """The error for a program that needs more at its peak than its budget, by whose count."""
        where = f"{on_all}," if (on_all := _on_all(self.n_devices)) else ""
        hint = "" if self.work else _NOTHING
        return jaxlib_api.JaxRuntimeError(
            f"RESOURCE_EXHAUSTED: {name} does not fit in its memory_budget of "
            f"{size_text(self.budget)}: the least that was found is {size_text(peak)} {whose}. "
            f"The largest arrays then{where} are\n"
            f"{table_of(largest(self.closed.jaxpr, self.after, self.sizes))}\n{CURES}{hint}")

    def __str__(self) -> str:
        before, after = size_text(self.before.peak), size_text(self.after.peak)
        if self.plan is None:
            return f"memory budget {size_text(self.budget)}: about {before}, nothing is given up"
        return (f"memory budget {size_text(self.budget)}: about {after} in place of {before}; "
                f"{len(self.plan.again)} operations are done again")


class Fitter:
    """Makes programs of one jaxpr that are expected to need no more than a budget.

    Attributes:
      budget: bytes of each device.
      scale: what the estimates are to be multiplied by.
      known: whether the last program was found by another process.
      in_order: whether XLA is to keep to the order of operations.
      as_it_is: whether nothing is to be done again, whatever the estimate.
    """

    def __init__(self, budget: float) -> None:
        self.budget = budget
        # When values are alive, the flat program, that in the order in which it needs least, and
        # what was found for other budgets.
        self._prepared: tuple[Liveness, ClosedJaxpr, Jaxpr, Search] | None = None
        self._entry: cache.Entry | None = None
        self.scale = 1.0
        self.known = self.in_order = self.as_it_is = False

    def forget(self) -> None:
        """Free what is kept to find other programs sooner."""
        self._prepared = None

    def keep(self, fit: Fit) -> None:
        """Let other processes find a program without a search."""
        if self._entry is not None and fit.plan is not None and not self.known:
            self._entry.write(json.dumps([fit.scale, fit.plan.path]).encode())

    def __call__(self, closed: ClosedJaxpr, lowered: ClosedJaxpr, name: str, *,
                 donated: Sequence[bool], platform: str, n_devices: int = 1,
                 text: Callable[[], str] | None = None) -> Fit:
        """A program that is expected to fit.

        Args:
          closed: the program, in operations that the platform has rules for.
          lowered: what is lowered if that fits.
          n_devices: the devices that it is cut for; the budget is that of each.
          text: gives the text of `lowered`, by which other processes know what was found.

        Raises:
          JaxRuntimeError: nothing that is found needs as little.
        """
        budget, machine = self.budget, machine_of(platform)
        first = self._prepared is None
        if self._prepared is None:
            flat = dce(flattened(closed))
            ordered = with_updates_at_once(flat.jaxpr, donated) if platform == "cpu" else flat.jaxpr
            program = flattened(lowered).jaxpr
            live = Liveness(program, machine, donated)
            if machine.reorders:
                late = Liveness(as_it_is_read(program), machine, donated)
                if late.peak < _CLEARLY * live.peak:
                    live, ordered = late, as_it_is_read(ordered)
            self._prepared = live, flat, ordered, Search(machine, work_on(platform), donated)
        before, flat, ordered, search = self._prepared
        # What arguments and results need is known.
        fixed = min(before.fixed, budget * n_devices)
        room = fixed + (budget * n_devices - fixed) / self.scale
        if before.peak <= room or self.as_it_is:
            return Fit(closed, budget, before, before, None, machine.sizes, n_devices, self,
                       self.scale, room)
        plan = None
        if first and text is not None:
            self._entry = cache.entry_of("plan", __version__, jaxlib_api.JAXLIB_RELEASE, platform,
                                         str(budget), str(n_devices), text())
            plan = self._kept(ordered, search)
        self.known = plan is not None
        if plan is None:
            plan = search.run(ordered, room)
            plan = search.in_order(plan) if self.in_order else plan
        fit = Fit(ClosedJaxpr(plan.jaxpr, flat.consts), budget, before, plan.live,
                  None if plan.jaxpr is flat.jaxpr else plan, machine.sizes, n_devices, self,
                  self.scale, room)
        peak = plan.live.peak
        if not self.known and peak > _SURELY * room and (platform == "cpu" or self.scale != 1.0):
            raise fit.beyond(name, (fixed + (peak - fixed) * self.scale) / n_devices)
        return fit

    def _kept(self, jaxpr: Jaxpr, search: Search) -> Plan | None:
        """The program that another process has found."""
        blob = None if self._entry is None else self._entry.read()
        if blob is None:
            return None
        try:
            scale, path = json.loads(blob)
            plan = search.follow(jaxpr, path)
        except (LookupError, TypeError, ValueError, StopIteration):  # of another search
            return None
        self.scale = scale
        return plan


def planned(closed: ClosedJaxpr, name: str, options: Any) -> tuple[ClosedJaxpr, Any]:
    """A part of a program, within the budget among its compiler options, and the other options."""
    given = dict(options)
    device = backends.default_device()
    budget = bytes_on(given.pop(MEMORY_BUDGET), device)
    return _planned(closed, name, budget, device.platform), tuple(given.items())


@derived_structure
def _planned(closed: ClosedJaxpr, name: str, budget: int, platform: str) -> ClosedJaxpr:
    return Fitter(budget)(closed, closed, name, donated=(), platform=platform).closed


def compiled_within(budget: int, closed: ClosedJaxpr, name: str, options: Any,
                    placement: Placement, lowered: LoweredProgram | None, **how: Any
                    ) -> tuple[LoweredProgram, Executable]:
    """The program and executable of a jaxpr that needs no more than a budget by the compiler's
    word. `lowered` is the program that is expected to; `how` is as for `lower_closed`.

    Raises:
      JaxRuntimeError: it needs more whatever is done.
    """
    fitter = Fitter(budget) if lowered is None or lowered.fit is None else lowered.fit.fitter
    source = None if fitter.budget != budget or lowered is None else lowered
    best: tuple[LoweredProgram, Executable] | None = None
    least: tuple[int, Fit] | None = None
    known: list[Plan | None] = []
    for _ in range(_TRIES):
        try:
            source = source or lower_closed(closed, name, placement=placement, fitted=fitter, **how)
        except jaxlib_api.JaxRuntimeError:
            if best is None and least is None:
                raise
            break
        fit = source.fit
        if fit.plan in known:  # nothing needs less, or is worth more
            if best is not None or fitter.known:
                break
            fitter.scale, source = _MORE * fitter.scale, None
            continue
        known.append(fit.plan)
        executable, peak = _in_some_order(source, closed, name, options, placement, budget)
        fits = peak is None or peak <= budget
        if fits and (best is None or fit.cost < best[0].fit.cost):
            best = source, executable
        if peak is None or (fits and (not fit.work or peak > _WELL * budget or fitter.known
                                      or fit.after.peak < _WELL * fit.room)):  # as it costs less
            break
        helped = not fits and (least is None or peak < least[0])
        if helped:
            least = peak, fit
        if not fits and fit.after.peak > fit.room:  # nothing was found that needs less
            break
        if best is None and not fitter.in_order and placement.platform == "cpu" and fit.work:
            fitter.in_order, source = True, None
            continue
        fixed = fit.after.fixed
        wrong = 1.02 * max(peak * fit.n_devices - fixed, 1) / max(fit.after.peak - fixed, 1)
        tighter = (1.06 if helped else _MORE) * fitter.scale
        fitter.scale, source = wrong if fits else max(wrong, tighter), None
    if best is None and None not in known:  # where XLA computes again what it fuses by itself
        fitter.as_it_is = True
        source = lower_closed(closed, name, placement=placement, fitted=fitter, **how)
        executable, peak = _in_some_order(source, closed, name, options, placement, budget)
        if peak is not None and peak <= budget:
            best = source, executable
    fitter.forget()
    if best is None:
        assert least is not None
        estimate = size_text(least[1].after.peak / least[1].n_devices)
        raise least[1].beyond(name, least[0], f"by XLA's count; the estimate was {estimate}")
    fitter.keep(best[0].fit)
    if best[1].from_disk is not None:  # what would be compiled anew is to fit, too
        given, flags = best[1].from_disk
        best[1].from_disk = {**given, MEMORY_BUDGET: budget}, flags
    return best


def _in_some_order(source: LoweredProgram, closed: ClosedJaxpr, name: str, options: Any,
                   placement: Placement, budget: int) -> tuple[Executable, int | None]:
    """The executable with its operations in the first of the orders that XLA's compiler for CPUs
    knows in which it fits, or in that in which it needs least; and what it needs."""
    least: tuple[Executable, int] | None = None
    for order in _ORDERS if placement.platform == "cpu" else _ORDERS[:1]:
        executable = compile_lowered(source, closed, name, {**order, **dict(options)}, placement)
        memory = memory_of(executable.loaded)
        if memory is None:
            return executable, None
        if memory.in_all <= budget:
            return executable, memory.in_all
        if least is None or memory.in_all < least[1]:
            least = executable, memory.in_all
    assert least is not None
    return least


class GivenUp(Record):
    """What is not kept in memory.

    Attributes:
      operation, place: what computes it again, and the user's line.
      times: how many such values there are.
      bytes: what they take together.
      work: arithmetic operations, about, that it costs.
    """

    operation: str
    place: str
    times: int
    bytes: int
    work: float

    def __str__(self) -> str:
        return (f"{size_text(self.bytes):>12} {self.times:5} x {self.operation:24} "
                f"{self.work:10.3g} {self.place}".rstrip())


class MemoryProfile(Record):
    """What a program is expected to need of memory, without a budget and within one: an estimate
    from the jaxpr. When it is compiled, XLA's count decides whether it fits.

    Attributes:
      budget: bytes; None where there is none.
      before, after: bytes on each device while each operation runs, arguments and results among
        them.
      largest: the arrays at the peak within the budget, the largest first.
      given_up: what is computed again, the largest first.
      n_devices: how many devices these two are of together.
    """

    budget: int | None
    before: list[int]
    after: list[int]
    largest: list[LiveArray]
    given_up: list[GivenUp]
    n_devices: int = 1

    @property
    def peaks(self) -> tuple[int, int]:
        """The peak without the budget and within it."""
        return max(self.before), max(self.after)

    def __str__(self) -> str:
        before, after = self.peaks
        head = f"at its peak about {size_text(before)} by the estimate"
        if self.budget is not None and after > self.budget:
            head += (f", which is more than the memory_budget of {size_text(self.budget)}: the "
                     f"least that was found is about {size_text(after)}")
        elif self.budget is not None:
            head += f", within {size_text(self.budget)} about {size_text(after)}"
        head += "; when it is compiled XLA's count decides" * (self.budget is not None)
        lines = [head, *[f"{name:>9} |{_drawn(curve, before)}|" for name, curve in (
            ("without", self.before), ("within", self.after))[:1 if self.budget is None else 2]],
            f"the largest arrays then{_on_all(self.n_devices)}:", table_of(self.largest)]
        if self.given_up:
            moved = any([g.operation == "device_put" for g in self.given_up])
            lines += [f"computed again{', or moved to the host and back (device_put)' * moved}:",
                      *[f"  {g}" for g in self.given_up]]
        return "\n".join(lines)


def _on_all(n_devices: int) -> str:
    return f", on all {n_devices} devices together" if n_devices > 1 else ""


def _drawn(curve: Sequence[int], peak: int, width: int = 64) -> str:
    """A curve as a line of text: nine heights, each of the highest of some steps."""
    step = max(-(-len(curve) // width), 1)
    return "".join([" 12345678"[8 * max(curve[i:i + step]) // max(peak, 1)]
                    for i in range(0, len(curve), step)])


def profile(closed: ClosedJaxpr, name: str, budget: int | None, donated: Sequence[bool],
            platform: str, n_devices: int = 1) -> MemoryProfile:
    """What a program needs, and what it needs within a budget, on each of so many devices."""
    closed = in_own_operations(closed, None, platform, True)
    lowered, _ = as_lowered(closed, platform, True, True)
    fit = Fitter(math.inf if budget is None else budget)(
        closed, lowered, name, donated=donated, platform=platform, n_devices=n_devices)
    return profile_of(fit)


def profile_of(fit: Fit) -> MemoryProfile:
    """What a program that was found needs."""
    found: dict[tuple[str, str], list[float]] = {}
    for eqn, n, work in fit.plan.again if fit.plan else ():
        row = found.setdefault((eqn.primitive.name, place_of(eqn)), [0, 0, 0.0])
        for k, x in enumerate((1, n, work)):
            row[k] += x
    before, after = [[(live.fixed + n) // fit.n_devices for n in live.live or [0]]
                     for live in (fit.before, fit.after)]
    budget = None if fit.budget == math.inf else int(fit.budget)
    return MemoryProfile(
        budget, before, after, largest(fit.closed.jaxpr, fit.after, fit.sizes),
        sorted([GivenUp(*key, int(t), int(n), w) for key, (t, n, w) in found.items()],
               key=lambda g: -g.bytes), fit.n_devices)
