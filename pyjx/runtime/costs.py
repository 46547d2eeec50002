"""What a traced program costs, operation by operation: an estimate from its jaxpr alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyjx.core.arithmetic import elementwise
from pyjx.core.arithmetic import unknown as of_foreign
from pyjx.core.avals import nbytes
from pyjx.core.evaluation import holds_jaxprs, program_of, runs_programs
from pyjx.core.frames import user_line
from pyjx.core.jaxpr import ClosedJaxpr, JaxprEqn
from pyjx.core.records import Record
from pyjx.engine.decompose import decomposition_of


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
      exact: whether it is known how often each operation runs: a `while` loop counts once, and a
        `cond` as its dearest branch.
      unknown: operations whose arithmetic is not estimated, such as foreign functions.
      devices: on how many devices it runs, as far as is known: those of `shard_map`. What all of
        them do counts, together.
    """

    __slots__ = ("_one_by_xla", "_xla", "by_line", "by_operation", "devices", "exact", "total",
                 "unknown")

    def __init__(self, closed: ClosedJaxpr, xla: Callable[[], Mapping[str, float] | None],
                 devices: int = 1) -> None:
        """`devices` are those that XLA's estimates are of one of."""
        counted = _Counted()
        counted.program(closed, 1, "?")
        self._xla, self._one_by_xla = xla, devices > 1
        self.devices = max(devices, counted.devices)
        self.by_operation = _sorted(counted.operations)
        self.by_line = _sorted(counted.lines)
        rows = self.by_operation
        self.total = Cost("total", sum([c.times for c in rows]), sum([c.flops for c in rows]),
                          sum([c.transcendentals for c in rows]), sum([c.bytes for c in rows]))
        self.exact = counted.exact
        self.unknown = tuple(sorted(counted.unknown))

    def xla(self) -> dict[str, float]:
        """XLA's estimates of the lowered program, where it has them: `flops`, `transcendentals` and
        `bytes`. It counts the body of a loop once."""
        found = self._xla() or {}
        names = {"flops": "flops", "transcendentals": "transcendentals", "bytes": "bytes accessed"}
        return {name: float(found[key]) for name, key in names.items() if key in found}

    def __str__(self) -> str:
        head = f"{'operation':28} {'times':>8} {'flops':>9} {'transc.':>9} {'bytes':>9}"
        lines = [head, *map(str, self.by_operation), str(self.total)]
        xla = self.xla()
        if xla:
            cells = [_number(xla[k]) if k in xla else "" for k in (
                "flops", "transcendentals", "bytes")]
            by = "by XLA, on one device" if self._one_by_xla else "by XLA"
            lines.append(f"{by:28} {'':8} {cells[0]:>9} {cells[1]:>9} {cells[2]:>9}")
        if self.devices > 1:
            lines.append(f"what all {self.devices} devices do, together")
        if not self.exact:
            lines.append("while loops count once, branches as the dearest one")
        if self.unknown:
            lines.append(f"not estimated: {', '.join(self.unknown)}")
        return "\n".join(lines)

    __repr__ = __str__


class _Counted:
    """Sums over the equations of programs."""

    def __init__(self) -> None:
        self.operations: dict[str, list[float]] = {}
        self.lines: dict[str, list[float]] = {}
        self.unknown: set[str] = set()
        self.exact = True
        self.devices = 1

    def flops(self) -> float:
        return sum([c[1] + c[2] for c in self.operations.values()])

    def add(self, other: _Counted) -> None:
        for mine, theirs in ((self.operations, other.operations), (self.lines, other.lines)):
            for name, cost in theirs.items():
                _add(mine, name, cost)
        self.unknown |= other.unknown
        self.exact &= other.exact
        self.devices = max(self.devices, other.devices)

    def program(self, closed: Any, times: int, line: str) -> None:
        """Add a program that runs so often, where `line` is that of the operation around."""
        for eqn in closed.eqns:
            primitive, params = eqn.primitive, eqn.params
            if holds_jaxprs(eqn) and (inner := program_of(primitive, params)) is not None:
                self.program(inner, times, _line(eqn, line))
            elif primitive.holder.held is not None:
                self.held(primitive.holder, params, times, _line(eqn, line))
            else:
                self.operation(eqn, times, _line(eqn, line))

    def held(self, holder: Any, params: dict[str, Any], times: int, line: str) -> None:
        """Add what programs do that are held: of several, that with the most operations; what runs
        nobody knows how often, once."""
        programs, runs = holder.held(params).programs, holder.times(params)
        self.exact &= runs is not None and len(programs) == 1
        for condition in holder.conditions(params):
            self.program(condition, times, line)
        counted = [_counted(p, times * (1 if runs is None else runs), line) for p in programs]
        dearest = max(counted, key=_Counted.flops)
        dearest.devices *= devices_of(holder, params)
        self.add(dearest)

    def operation(self, eqn: JaxprEqn, times: int, line: str) -> None:
        one = _cost(eqn, self.unknown)
        cost = [times, *[times * x for x in one]]
        _add(self.operations, eqn.primitive.name, cost)
        _add(self.lines, line, cost)


def _line(eqn: JaxprEqn, around: str) -> str:
    return user_line(eqn.source_info.traceback) or around


def devices_of(holder: Any, params: dict[str, Any]) -> int:
    """On how many devices a holder of programs runs each of them."""
    return max((holder.times(params) or 1) // (holder.repeats(params) or 1), 1)


def unsized(eqn: JaxprEqn) -> Any:
    """The type of an operand or result whose size is not a number; None if there is none."""
    return next((a for a in [v.aval for v in (*eqn.invars, *eqn.outvars)]
                 if type(getattr(a, "size", 0)) is not int), None)


def _cost(eqn: JaxprEqn, unknown: set[str]) -> tuple[float, float, float]:
    found = unsized(eqn)
    if found is not None:
        raise TypeError(f"cost: the sizes of {found.str_short()} in {eqn.primitive.name} are "
                        "not known. Trace the function with numbers in their place.")
    flops, transcendentals = arithmetic(eqn, unknown)
    return flops, transcendentals, float(sum([nbytes(v.aval) for v in (*eqn.invars, *eqn.outvars)]))


def cost_of(eqn: JaxprEqn) -> Cost:
    """What one run of an equation costs; nothing where it runs programs, whose equations do."""
    if runs_programs(eqn):
        return Cost(eqn.primitive.name, 1, 0.0, 0.0, 0.0)
    return Cost(eqn.primitive.name, 1, *_cost(eqn, set()))


def _counted(closed: ClosedJaxpr, times: int, line: str = "?") -> _Counted:
    counted = _Counted()
    counted.program(closed, times, line)
    return counted


def _add(costs: dict[str, list[float]], name: str, cost: list[float]) -> None:
    known = costs.setdefault(name, [0, 0.0, 0.0, 0.0])
    for i, x in enumerate(cost):
        known[i] += x


def _sorted(costs: dict[str, list[float]]) -> tuple[Cost, ...]:
    rows = [Cost(name, int(c[0]), *c[1:]) for name, c in costs.items()]
    return tuple(sorted(rows, key=lambda c: (-c.flops - c.transcendentals, -c.bytes, c.name)))


def arithmetic(eqn: JaxprEqn, unknown: set[str]) -> tuple[float, float]:
    """Arithmetic operations and transcendental ones of an equation."""
    primitive = eqn.primitive
    if primitive.holder.counted_by is not None:
        return _of_programs(primitive.holder.counted_by(eqn), unknown)
    if primitive.moves or not eqn.outvars:
        return 0.0, 0.0
    rule = primitive.arithmetic
    if rule is None and primitive.effects is not None:
        rule = of_foreign
    elif rule is None:
        of_elements = primitive.of_elements or primitive.decomposition is None
        if not of_elements and (program := decomposition_of(eqn)) is not None:
            return _of_programs([(program, 1.0)], unknown)
        rule = elementwise
    found: tuple[float, float] | None = rule(eqn)
    if found is None:
        unknown.add(primitive.name)
        return 0.0, 0.0
    return found


def _of_programs(programs: Sequence[tuple[Any, float]], unknown: set[str]) -> tuple[float, float]:
    """The arithmetic of programs, each of which runs so often."""
    flops = transcendentals = 0.0
    for program, times in programs:
        counted = _counted(program, 1)
        unknown |= counted.unknown
        for _, one, other, _ in counted.operations.values():
            flops += times * one
            transcendentals += times * other
    return flops, transcendentals


def _number(x: float) -> str:
    if x < 1e4:
        return f"{x:.0f}"
    for unit, size in (("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12)):
        if x < 1e3 * size:
            return f"{x / size:.3g} {unit}"
    return f"{x:.3g}"
