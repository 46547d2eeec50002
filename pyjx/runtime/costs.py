"""What a traced program costs, operation by operation: an estimate from its jaxpr alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pyjx.core.arithmetic import Amounts, Runs, elementwise
from pyjx.core.avals import nbytes
from pyjx.core.dtypes import issubdtype
from pyjx.core.evaluation import holds_jaxprs, program_of
from pyjx.core.frames import own_line
from pyjx.core.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from pyjx.core.passes.dce import used_variables
from pyjx.core.records import Record
from pyjx.engine.decompose import decomposition_of
from pyjx.runtime.counted_loops import Carried, Known, Number, trips
from pyjx.runtime.touched import touched


class Cost(Record):
    """What some operations cost.

    Attributes:
      name: of the operation, or the user's line.
      times: how often it runs.
      flops: additions, multiplications and the like.
      transcendentals: exponentials, logarithms, sines and the like.
      bytes: what the operations read and write, if each does it by itself. XLA fuses them, so it is
        an upper bound.
    """

    name: str
    times: int
    flops: float
    transcendentals: float
    bytes: float

    def __str__(self) -> str:
        return (f"{self.name:28} {self.times:8} {_number(self.flops):>9} "
                f"{_number(self.transcendentals):>9} {_number(self.bytes):>9}")


class Costs:
    """What a traced program costs.

    Attributes:
      total: the sum, a `Cost`.
      by_operation, by_line: costs of each primitive, and of each of the user's lines; the one with
        the most operations first.
      exact: whether it is known how often each operation runs: a `while` loop that does not count
        from one number to another counts once, and a `cond` as its dearest branch.
      unknown: operations whose arithmetic is not estimated, such as foreign functions.
      devices: on how many devices it runs, as far as is known: those of `shard_map`. What all of
        them do counts, together.
    """

    __slots__ = ("_guesses", "_one_by_xla", "_xla", "by_line", "by_operation", "devices", "exact",
                 "total", "unknown")

    def __init__(self, closed: ClosedJaxpr, xla: Callable[[], Mapping[str, float] | None],
                 devices: int = 1) -> None:
        """`devices` are those that XLA's estimates are of one of."""
        found = counted(closed)
        self._xla, self._one_by_xla = xla, devices > 1
        self.devices = max(devices, found.devices)
        self.by_operation = _rows(found.operations)
        self.by_line = _rows(found.lines)
        rows = self.by_operation
        self.total = Cost("total", sum([c.times for c in rows]), sum([c.flops for c in rows]),
                          sum([c.transcendentals for c in rows]), sum([c.bytes for c in rows]))
        self.exact, self._guesses = not found.guesses, ", ".join(sorted(found.guesses))
        self.unknown = tuple(sorted(found.unknown))

    def xla(self) -> dict[str, float]:
        """XLA's estimates of the lowered program, where it has them: `flops`, `transcendentals` and
        `bytes`. It counts the body of a loop once."""
        found = self._xla() or {}
        names = {"flops": "flops", "transcendentals": "transcendentals", "bytes": "bytes accessed"}
        return {name: float(found[key]) for name, key in names.items() if key in found}

    def __str__(self) -> str:
        head = f"{'operation':28} {'times':>8} {'flops':>9} {'transc.':>9} {'bytes':>9}"
        lines = [head, *map(str, self.by_operation), str(self.total)]
        if xla := self.xla():
            cells = [_number(xla[k]) if k in xla else "" for k in (
                "flops", "transcendentals", "bytes")]
            by = "by XLA, on one device" if self._one_by_xla else "by XLA"
            lines.append(f"{by:28} {'':8} {cells[0]:>9} {cells[1]:>9} {cells[2]:>9}")
        if self.devices > 1:
            lines.append(f"what all {self.devices} devices do, together")
        if self._guesses:
            lines.append(self._guesses)
        if self.unknown:
            lines.append(f"not estimated: {', '.join(self.unknown)}")
        return "\n".join(lines)

    __repr__ = __str__


class Counted:
    """What programs do, summed over their equations: of the names of operations, and of the user's
    lines, how often they run, arithmetic operations, transcendental ones and bytes."""

    def __init__(self) -> None:
        self.operations: dict[str, list[float]] = {}
        self.lines: dict[str, list[float]] = {}
        self.unknown: set[str] = set()
        self.guesses: set[str] = set()  # where it is not known how often operations run
        self.devices = 1

    @property
    def amounts(self) -> Amounts:
        """Arithmetic operations and transcendental ones."""
        rows = self.operations.values()
        return sum([c[1] for c in rows], 0.0), sum([c[2] for c in rows], 0.0)

    def add(self, other: Counted, times: float = 1) -> None:
        """Add what was counted of something that runs so often."""
        for mine, theirs in ((self.operations, other.operations), (self.lines, other.lines)):
            for name, cost in theirs.items():
                known = mine.setdefault(name, [0, 0.0, 0.0, 0.0])
                for i, x in enumerate(cost):
                    known[i] += times * x
        self.unknown |= other.unknown
        self.guesses |= other.guesses
        self.devices = max(self.devices, other.devices)

    def as_one(self, name: str, line: str, moved: float) -> Counted:
        """All of it as one operation, which reads and writes so many bytes."""
        cost = [1.0, *self.amounts, moved]
        self.operations, self.lines = {name: cost}, {line: cost}
        return self


_Memo = dict[tuple[ClosedJaxpr | Jaxpr, str], Counted]


def counted(program: ClosedJaxpr | Jaxpr, line: str = "?", memo: _Memo | None = None) -> Counted:
    """What one run of a program does, where `line` is that of the operation around. The memo has
    what programs inside do that are run before."""
    memo = {} if memo is None else memo
    if (program, line) in memo:
        return memo[program, line]
    found, constants = memo.setdefault((program, line), Counted()), constants_of(program)
    used = used_variables(program.jaxpr)
    for eqn in program.eqns:
        at, runs = own_line(eqn.source_info.traceback) or line, runs_of(eqn, constants)
        _add_runs(found, eqn, runs, at, memo)
        if not runs:
            found.add(_operation(eqn, at, used))
    return found


def _add_runs(found: Counted, eqn: JaxprEqn, runs: Sequence[Run], line: str, memo: _Memo) -> None:
    """Add what an equation runs: of several programs that with the most operations; what runs
    nobody knows how often, once."""
    for run in runs:
        of_each = [counted(p, line, memo) for p in run.programs]
        dearest = max(of_each, key=lambda c: sum(c.amounts))
        found.add(dearest, 1 if run.times is None else run.times)
        if run.times is None:
            found.guesses.add("loops that nobody can count run once")
        if len(of_each) > 1:
            found.guesses.add("of branches the dearest one runs")
        found.devices = max(
            found.devices, dearest.devices * eqn.primitive.holder.devices(eqn.params))


class Run(NamedTuple):
    """Programs of which an equation runs one, and how often; None where nobody knows."""

    programs: Sequence[ClosedJaxpr | Jaxpr]
    times: float | None


def runs_of(eqn: JaxprEqn, constants: Mapping[Var, Any]) -> list[Run]:
    """The programs that an equation runs, on all devices, and not those that it only holds, such as
    for its derivative; none of an operation. The constants are those of the program around."""
    if not holds_jaxprs(eqn):
        return []
    holder, params = eqn.primitive.holder, eqn.params
    if (program := program_of(eqn.primitive, params)) is not None:
        return [Run([program], 1)]
    if holder.held is None:
        return []
    times = _times(eqn, constants)
    asked = None if times is None else times + 1  # the last time in vain
    return [*[Run([c], asked) for c in holder.conditions(params)],
            Run(holder.held(params).programs, times)]


def _times(eqn: JaxprEqn, constants: Mapping[Var, Any]) -> float | None:
    """How often the programs run that an equation holds. That of a loop with a condition is known
    where it counts from one number to another."""
    holder, params = eqn.primitive.holder, eqn.params
    times = holder.times(params)
    if times is not None or not holder.loops:
        return times
    (test,), held = holder.conditions(params), holder.held(params)
    body, first = held.programs[0], held.head + held.first
    before = partial(_known, inside=constants)

    def inside(program: ClosedJaxpr, given: Sequence[Any]) -> dict[Var, Any]:
        taken = program.jaxpr.invars
        return {**constants_of(program), **dict(zip(taken, map(before, given), strict=False)),
                **{v: Carried(k) for k, v in enumerate(taken[len(given):])}}

    asked, run = inside(test, eqn.invars[:held.head]), inside(body, eqn.invars[held.head:first])
    return trips(_known(test.jaxpr.outvars[0], asked, test.eqns),
                 [*zip(eqn.invars[first:], body.jaxpr.outvars, strict=True)],
                 before, partial(_known, inside=run, eqns=body.eqns))


def constants_of(program: ClosedJaxpr | Jaxpr) -> dict[Var, Any]:
    """The values of the constants of a program, where it has them."""
    values = program.consts if isinstance(program, ClosedJaxpr) else ()
    return dict(zip(program.constvars, values, strict=False))


def _known(v: Any, inside: Mapping[Var, Any], eqns: Sequence[JaxprEqn] = (), deep: bool = True
           ) -> Known:
    """What is known of a variable among equations, where something is of those from outside."""
    made = next((e for e in eqns if v in e.outvars), None)
    if made is not None and made.primitive.name == "convert_element_type" and (
            made.invars[0].aval.dtype == v.aval.dtype):  # only its type becomes strong
        return _known(made.invars[0], inside, eqns, deep)
    if made is not None:
        return (made.primitive.name, *[_known(x, inside, eqns, False) for x in made.invars]) \
            if deep else None
    value = v.val if isinstance(v, Literal) else inside.get(v)
    if value is None or isinstance(value, (Carried, Number)):
        return value
    try:
        return Number(int(value), v.aval.dtype.name) if (
            issubdtype(v.aval.dtype, np.integer) and not v.aval.shape) else None
    except (TypeError, RuntimeError):  # constants may be traced, deleted, or of other processes
        return None


def unsized(eqn: JaxprEqn) -> Any:
    """The type of an operand or result whose size is not a number; None if there is none."""
    return next((a for a in [v.aval for v in (*eqn.invars, *eqn.outvars)]
                 if type(getattr(a, "size", 0)) is not int), None)


def _operation(eqn: JaxprEqn, line: str = "?", used: Set[Atom] | None = None) -> Counted:
    if (found := unsized(eqn)) is not None:
        raise TypeError(f"cost: the sizes of {found.str_short()} in {eqn.primitive.name} are "
                        "not known. Trace the function with numbers in their place.")
    return arithmetic(eqn).as_one(eqn.primitive.name, line, moved(eqn, used))


# Their results are their operands.
FREE = frozenset(("copy", "name", "optimization_barrier", "preduced", "pvary", "reduced_vary_cast",
                  "stop_gradient", "vary_unreduced_cast"))


def moved(eqn: JaxprEqn, used: Set[Atom] | None = None) -> float:
    """The bytes that one run of an equation reads and writes by itself. What was stored before is
    read where that is used, or nobody knows what is."""
    name = eqn.primitive.name
    if name in FREE:
        return 0.0
    results = [v for v in eqn.outvars if name != "swap" or used is None or v in used]
    reads, writes = touched(name, [float(nbytes(v.aval)) for v in eqn.invars],
                            float(sum([nbytes(v.aval) for v in results])))
    return sum(reads) + writes


def cost_of(eqn: JaxprEqn) -> Cost:
    """What one run of an equation costs; nothing where only the programs say so that it holds."""
    name = eqn.primitive.name
    if eqn.primitive.arithmetic is None and holds_jaxprs(eqn):
        return Cost(name, 1, 0.0, 0.0, 0.0)
    return _rows(_operation(eqn).operations)[0]


def _rows(costs: dict[str, list[float]]) -> tuple[Cost, ...]:
    rows = [Cost(name, int(c[0]), *c[1:]) for name, c in costs.items()]
    return tuple(sorted(rows, key=lambda c: (-c.flops - c.transcendentals, -c.bytes, c.name)))


def arithmetic(eqn: JaxprEqn) -> Counted:
    """What one run of an equation computes."""
    found, runs = Counted(), () if eqn.primitive.arithmetic else runs_of(eqn, {})
    if runs:
        _add_runs(found, eqn, runs, "?", {})
        return found
    said = _said(eqn)
    if isinstance(said, list):
        for program, times in said:
            found.add(counted(program), times)
    elif said is not None:
        found.operations[eqn.primitive.name] = [1.0, *said, 0.0]
    else:
        found.unknown.add(eqn.primitive.name)
    return found


def _said(eqn: JaxprEqn) -> Amounts | list[Runs] | None:
    """What is known of how much an equation computes. What its operation says comes first: a
    scatter only moves values, but for that of `scatter_apply`, whose function computes."""
    primitive = eqn.primitive
    if primitive.arithmetic is not None:
        return primitive.arithmetic(eqn)
    if primitive.moves or not eqn.outvars:
        return 0.0, 0.0
    if primitive.effects is not None:  # foreign functions
        return None
    made_of = None if primitive.of_elements else decomposition_of(eqn)
    return elementwise(eqn) if made_of is None else [Runs(made_of, 1.0)]


def _number(x: float) -> str:
    if x < 1e4:
        return f"{x:.0f}"
    for unit, size in (("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12)):
        if x < 1e3 * size:
            return f"{x / size:.3g} {unit}"
    return f"{x:.3g}"
