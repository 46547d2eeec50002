"""Which values that are made before a border stay in memory for what is behind it, and which are
computed again: the cheapest cut between both, and the equations that it takes.

    source --work to compute v--> v.in --price * bytes of v--> v.out --inf--> reader
                                    ^
                       u.out --inf--+   for each operand u of v
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from pyjx.core.avals import nbytes
from pyjx.core.effects import join_effects
from pyjx.core.evaluation import holds_jaxprs, jaxprs_of, program_of, replaced, variables
from pyjx.core.flows import NEVER, Network
from pyjx.core.jaxpr import ClosedJaxpr, JaxprEqn, Var
from pyjx.core.lifetimes import Liveness, Machine, machine_of
from pyjx.core.places import Space
from pyjx.engine.calls import jit_p
from pyjx.engine.decompose import put_in_place
from pyjx.engine.primitives import barrier_eqn, optimization_barrier_p
from pyjx.engine.remat_calls import remat_p
from pyjx.runtime.costs import arithmetic

Work = Callable[..., float]  # of an equation, and whether its results are written to memory

_TRANSCENDENTAL = 8.0
_RECENT = 60  # equations before one, of which a value is recent for it
_NEAR = 16  # equations for which what is fused is computed once
_LARGE = 32  # values are large from this part of the peak on, and wait in barriers from that of it


def work_on(platform: str) -> Work:
    """What it costs to compute the results of an equation again, on a platform; of one that holds
    programs, the whole of it."""
    rate = machine_of(platform).per_byte

    def work(eqn: JaxprEqn, written: bool = True) -> float:
        primitive = eqn.primitive
        inner = jaxprs_of(eqn) if eqn.params and holds_jaxprs(eqn) else ()
        if inner:
            times = primitive.holder.times(eqn.params)
            if eqn.effects or times is None or primitive is remat_p:
                return NEVER
            return min(times * max([sum(map(work, p.eqns)) for p in inner]), NEVER)
        found = arithmetic(eqn)
        if found.unknown or eqn.effects or primitive.effects is not None:
            return NEVER
        flops, transcendentals = found.amounts
        made = sum([nbytes(v.aval) for v in eqn.outvars]) if written else 0
        return 1.0 + flops + _TRANSCENDENTAL * transcendentals + rate * made

    return work


def flattened(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with what its calls call in their places, but for what is rematerialized."""
    eqns: list[JaxprEqn] = []
    values: dict[Var, Any] = {}
    inlined = False
    for eqn in closed.jaxpr.eqns:
        if values:
            eqn = eqn.replace(invars=replaced(eqn.invars, values))
        program = _called(eqn)
        if program is None:
            eqns.append(eqn)
        else:
            inlined = True
            put_in_place(eqn, flattened(program).jaxpr, eqns, values, eqn.source_info.name_stack)
    if not inlined:
        return closed
    return ClosedJaxpr(closed.jaxpr.replace(
        eqns=eqns, outvars=replaced(closed.jaxpr.outvars, values), effects=join_effects(eqns)),
        closed.consts)


def _called(eqn: JaxprEqn) -> ClosedJaxpr | None:
    primitive = eqn.primitive
    if primitive is remat_p or (primitive is not jit_p and primitive.holder.stands_for is None):
        return None
    if primitive is jit_p and eqn.params["inline"] not in (False, True):
        return None
    program = program_of(primitive, eqn.params)
    return None if program is None or program.consts else program


def _remembered(fun: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of objects, asked once for each."""
    known: dict[int, tuple[Any, Any]] = {}

    def of(x: Any) -> Any:
        found = known.get(id(x))
        if found is None:
            found = known[id(x)] = x, fun(x)  # which keeps x, and so its id
        return found[1]

    return of


class Costs:
    """What values take in memory, and what equations take to compute again.

    Attributes:
      machine: what becomes of values in memory.
      work: what an equation costs; `fused_work`: if its results are not written to memory.
    """

    def __init__(self, machine: Machine, work: Work) -> None:
        self.machine = machine._replace(sizes=_remembered(machine.sizes))
        self.work = _remembered(work)
        self.fused_work = _remembered(partial(work, written=False))


class Values:
    """The values that equations before a border make, and what parts behind it read of them.

    Attributes:
      made: the number of the equation that makes a value; -1 for those that are given.
      reads: the values that each part reads.
    """

    def __init__(self, eqns: Sequence[JaxprEqn], starts: Sequence[int], given: Sequence[Any] = ()
                 ) -> None:
        self._eqns = eqns
        self._ends = [*starts, len(eqns)]
        self.made: dict[Any, int] = dict.fromkeys(given, -1)
        self.made.update((v, i) for i, e in enumerate(eqns[:starts[0]]) for v in e.outvars)
        self.reads = [list(dict.fromkeys([x for e in eqns[a:b] for x in e.invars
                                          if x in self.made])) for a, b in pairwise(self._ends)]
        self._last = {x: j for j in range(starts[0], len(eqns)) for x in variables(eqns[j].invars)}
        self._late = {v for e in eqns[starts[0]:] for v in e.outvars}

    def cut(self, reads: Sequence[Any], keep: Callable[[Any], float], work: Work) -> set[Any]:
        """The values to compute again for a part that reads some."""
        keeps: dict[Any, int] = {}
        costs: dict[int, int] = {}  # of equations
        readers: dict[Any, list[int]] = {}
        queue = deque(reads)
        while queue:
            v = queue.popleft()
            if v in keeps or v not in self.made:
                continue
            kept, i = int(keep(v)), self.made[v]
            if kept <= 0:  # it is there for nothing
                continue
            keeps[v] = kept
            if i in costs:
                continue
            cost = NEVER if i < 0 else work(self._eqns[i])
            costs[i] = int(cost) if cost < NEVER and cost <= sum(
                map(keep, self._eqns[i].outvars)) else NEVER
            if costs[i] < NEVER:
                for x in variables(self._eqns[i].invars):
                    readers.setdefault(x, []).append(i)
                    queue.append(x)
        read, made = set(reads), self.made
        # What makes nothing but one value, which costs no more to keep, is one with it.
        part_of: dict[int, int] = {}
        for v in sorted(keeps, key=made.__getitem__, reverse=True):
            by = {part_of.get(r, r) for r in readers.get(v, ())}
            if v not in read and len(by) == 1 and self._makes_one(i := made[v]):
                (whole,) = by
                if self._makes_one(whole) and keeps[v] >= keeps[self._eqns[whole].outvars[0]]:
                    part_of[i] = whole
                    costs[whole] = min(costs[whole] + costs[i], NEVER)
        near = self._sink_side(keeps, costs, readers, part_of, read)
        return {v for v in keeps if part_of.get(made[v], made[v]) in near}

    def _makes_one(self, i: int) -> bool:
        return i >= 0 and len(self._eqns[i].outvars) == 1

    def _sink_side(self, keeps: Mapping[Any, int], costs: Mapping[int, int],
                   readers: Mapping[Any, Sequence[int]], part_of: Mapping[int, int],
                   read: set[Any]) -> set[int]:
        """The equations to do again, without those that are one with others. Each has a node, and
        so has what it makes, but for what is read, of which no reader is asked."""
        source, sink, made = 0, 1, self.made
        values = [v for v in keeps if made[v] not in part_of]
        number = {made[v]: 2 * k + 2 for k, v in enumerate(values)}
        out = {v: sink if v in read else 2 * k + 3 for k, v in enumerate(values)}
        network = Network(2 * len(values) + 2)
        for i, node in number.items():
            if 0 < costs[i] < NEVER:
                network.edge(source, node, costs[i])
        for v in values:
            network.edge(number[made[v]] if costs[made[v]] < NEVER else source, out[v], keeps[v])
            for whole in dict.fromkeys([part_of.get(r, r) for r in readers.get(v, ())
                                        if v not in read]):
                if costs[whole] < NEVER:
                    network.edge(out[v], number[whole], NEVER)
        near = network.sink_side(source, sink)
        return {i for i, node in number.items() if costs[i] < NEVER and near[node]}

    def late(self, part: int, again: set[Any], fused: set[Any], behind: dict[Any, Any] | None
             ) -> tuple[list[JaxprEqn], list[JaxprEqn]]:
        """The equations of a part, with those that compute values again; and these alone. It begins
        with a barrier, if `behind` is there: what is read in the place of values that barriers
        have passed. What is `fused` is computed again for each part of the program that reads it.
        """
        eqns, again_here = self._eqns, bool(again)
        late: list[JaxprEqn] = []
        copies: list[JaxprEqn] = []
        if again_here and behind is not None:
            late.append(self._barrier(part, again, fused, behind))
        now = dict(behind or ())  # what is read in the place of a value
        near: dict[Any, int] = {}  # where what is fused was computed last
        for j in range(*self._ends[part:part + 2]):
            eqn = eqns[j]
            for v in [v for v, i in near.items() if j > i + _NEAR]:
                del near[v], now[v]
            for copy in [eqns[i] for i in self._missing(eqn, again, now)]:
                outs = [Var(v.aval) for v in copy.outvars]
                late.append(copy.replace(invars=replaced(copy.invars, now), outvars=outs))
                now.update(zip(copy.outvars, outs, strict=True))
                near.update((v, j) for v in copy.outvars if v in fused)
                copies.append(copy)
            late.append(eqn.replace(invars=replaced(eqn.invars, now))
                        if any([x in now for x in eqn.invars if type(x) is Var]) else eqn)
        return late, copies

    def in_order(self, live: Liveness, results: Sequence[Any]) -> tuple[list[JaxprEqn], list[Any]]:
        """The equations before the border, and results of theirs, where products of large values
        wait for all that is in memory then, so that XLA keeps to the order. What is fused is
        computed again behind each."""
        eqns, size, least = self._eqns, live.size, max(live.live) / _LARGE
        fused = {v for e in eqns for v in e.outvars
                 if v not in size and e.primitive is not optimization_barrier_p}
        written: list[JaxprEqn] = []
        alive: list[Any] = []
        first: dict[Any, Any] = {}  # what barriers of the program passed
        now: dict[Any, Any] = {}  # what is read in the place of a value

        def read(values: Sequence[Any]) -> list[Any]:
            return replaced(replaced(values, first), now)

        for j, eqn in enumerate(eqns):
            if not fused.isdisjoint(eqn.outvars):
                continue
            if eqn.primitive.contracts and least <= max([
                    nbytes(x.aval) for x in (*variables(eqn.invars), *eqn.outvars)]):
                alive = [v for v in alive if live.last[v] >= j]
                now = {x: y for x, y in now.items() if x not in fused}
                written.append(barrier_eqn(alive, now, eqn.source_info))
            for copy in [eqns[i] for i in self._missing(eqn, fused, now)]:
                outs = [Var(v.aval) for v in copy.outvars]
                written.append(copy.replace(invars=read(copy.invars), outvars=outs))
                now.update(zip(copy.outvars, outs, strict=True))
            written.append(eqn.replace(invars=read(eqn.invars)))
            if eqn.primitive is optimization_barrier_p:
                for x, v in zip(replaced(eqn.invars, first), eqn.outvars, strict=True):
                    if x in size:
                        first[v], now[x] = x, v
            alive += [v for v in eqn.outvars if size.get(v, 0) >= least / _LARGE]
        return written, read(results)

    def _missing(self, eqn: JaxprEqn, again: set[Any], now: Mapping[Any, Any]) -> list[int]:
        """The equations before the border to do again for one behind it, in order."""
        found: set[int] = set()
        stack = [x for x in eqn.invars if x in again and x not in now]
        while stack:
            i = self.made[stack.pop()]
            if i not in found:
                found.add(i)
                stack += [x for x in self._eqns[i].invars if x in again and x not in now]
        return sorted(found)

    def _barrier(self, part: int, again: set[Any], fused: set[Any], behind: dict[Any, Any]
                 ) -> JaxprEqn:
        """A barrier before a part: of what is read to compute values again, of the arguments that
        the part reads, and of what was made since the one before and is read later."""
        start, end = self._ends[part:part + 2]
        places = sorted({self.made[v] for v in again})
        read: dict[Any, None] = dict.fromkeys([
            x for i in places for x in variables(self._eqns[i].invars) if x not in again])
        if part:
            read.update((v, None) for e in self._eqns[self._ends[part - 1]:start]
                        for v in e.outvars if self._last.get(v, -1) >= start)
        else:
            read.update((x, None) for x in self.reads[0] if self.made[x] >= start - _RECENT
                        and x not in again and x not in fused)
        read.update((x, None) for e in self._eqns[start:end] for x in variables(e.invars)
                    if x not in self.made and x not in self._late)
        read = {x: None for x in read if getattr(x.aval, "memory_space", None) is not Space.Host}
        return barrier_eqn(list(read), behind, self._eqns[start].source_info)
