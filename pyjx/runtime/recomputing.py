"""Programs that need less memory because they compute values again: which, and where.

A value that is made long before it is read need not be in memory in between. The equations behind
the step where most waits to be read fall into parts that read about as many bytes of what was made
before, and for each part, the last one first, a minimum cut (as in core/passes/recompute.py) says
which of these values stay in memory for it, at a price for a byte, and which it computes again:

    source --work to compute v--> v.in --price * bytes of v--> v.out --inf--> part
                                    ^
                       u.out --inf--+   for each operand u of v

What stays for one part is there for those before it for nothing; what a part computes again it does
just before it is read, and lets go of. So many parts need less memory and more work than few.
A barrier stands before each part, of what it computes values of and of what was made before it, so
that XLA neither finds both computations to be one nor does other parts at the same time. A loop
whose stacked results another loop of as many iterations reads is cut with it as one program, whose
early part is the body of one and whose late part that of the other.

The price is the least at which the program fits, by some numbers of parts. Only the last parts pay
it, for whom values wait longest, while those before pay the next lower one. Where no price is
enough, the search goes on with the best program found: what waits at its own highest step is made
again. A higher price is taken where memory itself costs more than what is done again for it: new
pages on the CPU.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

from pyjx.core.effects import join_effects, no_effects
from pyjx.core.evaluation import holds_jaxprs, map_jaxprs, program_of
from pyjx.core.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from pyjx.core.lifetimes import Liveness, Machine, jaxprs_of
from pyjx.core.passes.dce import dce, dce_jaxpr
from pyjx.core.passes.recompute import NEVER, Network
from pyjx.core.places import MEMORY_KINDS, Space
from pyjx.core.records import Record
from pyjx.core.source_info import SourceInfo
from pyjx.engine.calls import jit_p
from pyjx.engine.decompose import put_in_place
from pyjx.engine.moves import moved_eqn
from pyjx.engine.primitives import optimization_barrier_p
from pyjx.engine.remat_calls import remat_p
from pyjx.runtime.costs import arithmetic

Work = Callable[..., float]  # of an equation, and whether its results are written to memory
# An equation that is done again, the bytes that need not stay for that, and its work.
Again = tuple[JaxprEqn, int, float]
# The cuts that make a program, one after the other: (border, number of parts, price of each part),
# or the paths of the programs inside the equation that needs most.
Path = Sequence[Any]

HOST = MEMORY_KINDS[Space.Host]

# What a byte of a result costs to make, in arithmetic operations: those of a vector unit in the
# time in which memory takes a byte.
_PER_BYTE = {"cpu": 4.0}
_PER_BYTE_ELSEWHERE = 64.0
_TRANSCENDENTAL = 8.0
_FIRST, _STEP = 16.0, 5.0  # the first price that is tried, and how many times it the next one is
_DEAREST = 1e5  # products of 10,000 numbers an element, some of them in a row
_ROUNDS = 12
_NEARLY = 1.15  # times the budget, from where on values are made again one by one
_LESS = 0.95  # of the peak, for which a program is divided into parts again
_WAITING = 8  # places that read what waits at the highest step, of which one is a part's start
_RELIEVING = (16.0, 80.0, 400.0, 2000.0)  # prices of what waits there
_FUSED = 1e4  # what a fused value costs at least to be in memory, which it is not otherwise
_RECENT = 60  # equations before one, of which a value is recent for it
_PARTS = (6, 8, 11, 14, 20, 32)  # into which what comes behind the highest step is divided
_REFINED = 2  # of these numbers, for which the price is found more closely
_SMALL = 2500  # equations, of which all numbers of parts are tried, otherwise the last ones
_MOST_OFTEN = 3  # times at most that everything is done again
_MOVED = 1 << 16  # bytes of an iteration that are worth a transfer to the host
_NEAR = 16  # equations for which what is fused is computed once


def work_on(platform: str) -> Work:
    """What it costs to compute the results of an equation again, on a platform; of one that holds
    programs, the whole of it."""
    rate = _PER_BYTE.get(platform, _PER_BYTE_ELSEWHERE)

    def work(eqn: JaxprEqn, written: bool = True) -> float:
        primitive, unknown = eqn.primitive, set[str]()
        inner = jaxprs_of(eqn) if eqn.params and holds_jaxprs(eqn) else ()
        if inner:
            times = primitive.holder.times(eqn.params)
            if eqn.effects or times is None or primitive is remat_p:
                return NEVER
            return min(times * max([sum(map(work, p.eqns)) for p in inner]), NEVER)
        flops, transcendentals = arithmetic(eqn, unknown)
        if unknown or eqn.effects or primitive.effects is not None:
            return NEVER
        made = sum([v.aval.size * v.aval.dtype.itemsize for v in eqn.outvars
                    if hasattr(v.aval, "size")]) if written else 0
        return 1.0 + flops + _TRANSCENDENTAL * transcendentals + rate * made

    return work


def flattened(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with what its calls call in their places, but for what is rematerialized."""
    eqns: list[JaxprEqn] = []
    values: dict[Var, Any] = {}
    inlined = False
    for eqn in closed.jaxpr.eqns:
        if values:
            eqn = eqn.replace(invars=_read(eqn.invars, values))
        program = _called(eqn)
        if program is None:
            eqns.append(eqn)
        else:
            inlined = True
            put_in_place(eqn, flattened(program).jaxpr, eqns, values, eqn.source_info.name_stack)
    if not inlined:
        return closed
    return ClosedJaxpr(closed.jaxpr.replace(
        eqns=eqns, outvars=_read(closed.jaxpr.outvars, values), effects=join_effects(eqns)),
        closed.consts)


def _called(eqn: JaxprEqn) -> ClosedJaxpr | None:
    primitive = eqn.primitive
    if primitive is remat_p or (primitive is not jit_p and primitive.holder.stands_for is None):
        return None
    if primitive is jit_p and eqn.params["inline"] not in (False, True):
        return None
    program = program_of(primitive, eqn.params)
    return None if program is None or program.consts else program


class Plan(Record):
    """A program, and what it needs.

    Attributes:
      jaxpr: the program.
      live: when its values are alive.
      work: the work that is done again, as `work_on` counts it.
      cost: that, and what its temporaries cost.
      again: what is done again.
      path: how it was found, as `Search.follow` takes it.
    """

    jaxpr: Jaxpr
    live: Liveness
    work: float
    cost: float
    again: list[Again]
    path: Path


def _remembered(fun: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of objects, asked once for each."""
    known: dict[int, tuple[Any, Any]] = {}

    def of(x: Any) -> Any:
        found = known.get(id(x))
        if found is None:
            found = known[id(x)] = x, fun(x)  # which keeps x, and so its id
        return found[1]

    return of


class Search:
    """The search for a program within a budget of bytes.

    Args:
      machine: what becomes of values in memory.
      work: what equations cost.
      donated: which inputs results may take the place of.
    """

    def __init__(self, machine: Machine, work: Work, donated: Sequence[bool] = ()) -> None:
        self.machine = machine._replace(sizes=_remembered(machine.sizes))
        self._work = work
        self.work = _remembered(work)
        self.fused_work = _remembered(partial(work, written=False))
        self._donated = donated
        self._plans: dict[Any, Plan] = {}
        self._cuts: dict[Any, _Cut] = {}
        self._borders: dict[int, list[int]] = {}

    def plan(self, jaxpr: Jaxpr, work: float = 0.0, again: Sequence[Again] = (),
             loop: bool = False, path: Path = ()) -> Plan:
        live = Liveness(jaxpr, self.machine, self._donated, loop=loop)
        cost = work + self.machine.upkeep(live.peak - live.fixed)
        return Plan(jaxpr, live, work, cost, list(again), path)

    def follow(self, jaxpr: Jaxpr, path: Path, loop: bool = False) -> Plan:
        """The program that a search found before, by its path."""
        plan = self.plan(jaxpr, loop=loop)
        for step in path:
            if len(step) == 1:
                paths = iter(step[0])
                inner = self._inside(plan, loop, lambda search, body, _, repeats: search.follow(
                    body, next(paths), repeats))  # noqa: B023
                plan = plan if inner is None else inner
            else:
                starts, prices = step
                plan = self._cut(plan, starts, loop).priced(tuple(prices))
        return plan

    def run(self, jaxpr: Jaxpr, budget: float, loop: bool = False) -> Plan:
        """The program of the least cost that fits, or the one with the lowest peak."""
        best = self._plans.get(id(jaxpr))
        if best is None:
            best = self._plans[id(jaxpr)] = self.plan(jaxpr, loop=loop)
        for _ in range(_ROUNDS):
            if best.live.peak <= budget or not best.live.eqns:  # there is nothing to do again
                break
            inner = self._inside(best, loop, lambda search, body, more, repeats: search.run(
                body, budget + more, repeats))
            near = best.work and best.live.peak <= _NEARLY * budget
            found = inner or (self._relieved if near else self._at_peak)(best, budget, loop)
            if found is best or (not near and found.live.peak >= _LESS * best.live.peak):
                break
            best = found
        return best

    def _inside(self, plan: Plan, loop: bool, find: Callable[[Search, Jaxpr, float, bool], Plan]
                ) -> Plan | None:
        """The program where it needs most because of a program inside an equation, for which
        `find(search, jaxpr, more, loop)` finds one that needs so much more than the budget."""
        live = plan.live
        i = live.at_peak
        needed = live.inside.get(i, 0)
        if 2 * needed < live.live[i]:
            return None
        eqn = live.eqns[i]
        inner = Search(self.machine._replace(new_page=0.0), self._work)
        works: list[Plan] = []

        def within(closed: ClosedJaxpr) -> ClosedJaxpr:
            flat = dce(flattened(closed))
            repeats = bool(eqn.primitive.holder.loops)
            # Its inputs and results are not counted there.
            fixed = Liveness(flat.jaxpr, inner.machine, loop=repeats).fixed
            works.append(find(inner, flat.jaxpr, fixed + needed - live.peak, repeats))
            return ClosedJaxpr(works[-1].jaxpr, flat.consts)

        params = map_jaxprs(eqn.params, within, lambda j: j)
        if not any([p.work for p in works]):
            return None
        eqns = list(live.eqns)
        eqns[i] = eqn.replace(params=params)
        times = eqn.primitive.holder.times(eqn.params) or 1
        return self.plan(plan.jaxpr.replace(eqns=eqns),
                         plan.work + times * sum([p.work for p in works]),
                         [*plan.again, *[a for p in works for a in p.again]], loop,
                         (*plan.path, ([p.path for p in works],)))

    def _at_peak(self, plan: Plan, budget: float, loop: bool) -> Plan:
        """The program cut at its highest step, or at the one before it at which most waits to be
        read: the least work of some numbers of parts."""
        best, borders = plan, self._borders.get(id(plan))
        if borders is None:
            borders = self._borders[id(plan)] = _borders(plan.live)
        small = len(plan.jaxpr.eqns) <= _SMALL
        for border in borders:
            found = []
            for n in _PARTS if small else _PARTS[-2:]:
                cut = self._cut(plan, _starts(
                    plan.jaxpr.eqns, border, n, self.machine.sizes), loop)
                found.append((*self._risen(cut, budget), cut))
                if found[-1][0].live.peak <= budget and not small:
                    break
            found.sort(key=lambda f: (max(f[0].live.peak, budget), f[0].cost))
            different = list({(f[0].live.peak, f[0].work): f for f in found}.values())
            for risen, cheap, dear, cut in different[:_REFINED]:
                refined = self._refined(cut, budget, risen, cheap, dear)
                best = min(best, refined, key=lambda p: (max(p.live.peak, budget), p.cost))
            if best.live.peak <= budget:
                break
        return best

    def _cut(self, plan: Plan, starts: Sequence[int], loop: bool) -> _Cut:
        """A program in parts that start at some equations."""
        key = id(plan), *starts
        known = self._cuts.get(key)
        if known is None:
            known = self._cuts[key] = _Cut(self, plan, starts, loop)
        return known

    def _relieved(self, plan: Plan, budget: float, loop: bool) -> Plan:
        """The program where what waits at its highest step, of what is large, is made again for
        the next part that reads it."""
        live = plan.live
        step, room = live.at_peak, budget - live.fixed
        reads = _next_reads(live, step)

        def height(p: Plan) -> tuple[float, float, float]:
            return (max(p.live.peak, budget), sum([n - room for n in p.live.live if n > room]),
                    p.cost)

        starts = dict.fromkeys([reads.get(v, 0) for v in live.alive(step)])
        return min([plan, *[self._cut(plan, (step + 1, start), loop).priced((0.0, price))
                            for start in [j for j in starts if j > step + 1][:_WAITING]
                            for price in _RELIEVING]], key=height)

    def _risen(self, cut: _Cut, budget: float) -> tuple[Plan, float, float]:
        """The program at the first of some prices at which it fits, the price before that, and
        that one; else the program with the lowest peak, and the last price twice."""
        cheap, dear, worse = 0.0, _FIRST, 0
        best = found = cut.at_least(dear, budget)
        while found.live.peak > budget:
            cheap, dear = dear, dear * _STEP
            found = cut.at_least(dear, budget)
            if found.work > cut.most or dear > _DEAREST or worse > 1:
                return best, dear, dear
            if found.live.peak <= 0.99 * best.live.peak:  # else it is too little for the next thing
                best, worse = found, 0
            elif found.work > best.work:
                worse += 1
        return found, cheap, dear

    def _refined(self, cut: _Cut, budget: float, best: Plan, cheap: float, dear: float) -> Plan:
        """The program of the least cost at which it fits: with the least price between two, or
        with a higher one if it needs new pages."""
        if best.live.peak > budget:
            return best
        new_page = self.machine.new_page
        for price in (new_page, _STEP * new_page):
            found = cut.at_least(price, budget) if price > dear and best.cost > best.work else best
            if found.live.peak <= budget:
                best = min(best, found, key=lambda p: p.cost)
        # What loops stack has one price, as it is made at one place.
        for _ in range(6 if cut.loops else 2):
            middle = (cheap * dear) ** 0.5 or dear / _STEP
            found = cut.at_least(middle, budget)
            if found.live.peak <= budget:
                dear, best = middle, min(best, found, key=lambda p: p.cost)
            else:
                cheap = middle
        low, high = 0, cut.parts
        while high - low > 1:
            split = (low + high) // 2
            found = cut.at(dear, cheap, split)
            if found.live.peak <= budget:
                low, best = split, min(best, found, key=lambda p: p.cost)
            else:
                high = split
        return best


def _borders(live: Liveness) -> list[int]:
    """Before which equations to cut a program: where most waits, and the highest step."""
    peak, size = live.at_peak, live.size
    waiting = [0] * (len(live.eqns) + 1)
    before = dict(live.first)  # where a value was made or read before
    gaps: dict[Any, tuple[int, int]] = {}
    for j, eqn in enumerate(live.eqns):
        for x in _variables(eqn):
            if x in before:
                start, end = gaps.get(x, (0, 0))
                if j - before[x] > end - start:
                    gaps[x] = before[x], j
                before[x] = j
    for v, (start, end) in gaps.items():
        end = min(end, live.last[v])
        if start < end:
            waiting[start + 1] += size[v]
            waiting[end + 1] -= size[v]
    waiting = list(accumulate(waiting))
    made = sum([size.get(v, 0) for v in live.eqns[peak].outvars])
    freed = sum([n for v, n in size.items() if live.last[v] == peak])
    return list(dict.fromkeys([max(range(1, peak + 1), key=waiting.__getitem__, default=0),
                               peak + (made > freed) or 1]))


def _next_reads(live: Liveness, step: int) -> dict[Any, int]:
    """The first equations behind a step that read values in memory."""
    found: dict[Any, int] = {}
    made_of: dict[Any, list[Any]] = {}  # in memory, of what is not
    for j, eqn in enumerate(live.eqns):
        read = [r for x in _variables(eqn) for r in made_of.get(x, (x,))]
        if eqn.outvars and eqn.outvars[0] not in live.size:
            each = [read] * len(eqn.outvars) if eqn.primitive is not optimization_barrier_p else [
                made_of.get(x, [x]) for x in eqn.invars]
            made_of.update(zip(eqn.outvars, each, strict=True))
        elif j > step:
            for r in read:
                found.setdefault(r, j)
    return found


def _starts(eqns: Sequence[JaxprEqn], border: int, parts: int, sizes: Callable[[Any], int]
            ) -> list[int]:
    """Where parts of the equations behind a border start that read about as many bytes of what is
    made before it, each where little passes that others have made."""
    late = {v for e in eqns[border:] for v in e.outvars}
    last: dict[Any, int] = {}
    for j in range(border, len(eqns)):
        last.update((x, j) for x in eqns[j].invars if type(x) is not Literal)
    read, passing = [0] * (len(eqns) + 1), [0] * (len(eqns) + 1)
    for v, j in last.items():
        if v not in late:
            read[j + 1] += sizes(v.aval)
    read = list(accumulate(read))
    end = max([j for v, j in last.items() if v not in late], default=border)
    for j in range(border, end):
        for v in eqns[j].outvars:
            if v in last and last[v] <= end:
                n = sizes(v.aval)
                passing[j + 1] += n
                passing[last[v] + 1] -= n
    passing = list(accumulate(passing))
    starts = [border]
    for k in range(1, parts):
        low, high = [bisect_left(read, (k + d) * read[-1] / parts, border) for d in (-0.5, 0.5)]
        low = max(low, starts[-1] + 1)
        if low < min(high, end):
            starts.append(min(range(low, min(high, end)), key=passing.__getitem__))
    return starts


class _Cut:
    """A program in parts, each of which keeps values that are made before the first one starts, or
    computes them again. Its variants are known by the prices of a byte that stays."""

    def __init__(self, search: Search, plan: Plan, starts: Sequence[int], loop: bool) -> None:
        eqns = plan.jaxpr.eqns
        self._search = search
        self._plan = plan
        self._jaxpr = plan.jaxpr
        self._fused = {v for e in eqns for v in e.outvars if v not in plan.live.size}
        self._starts = starts
        self._loop = loop
        self._values = Values(eqns, starts)
        self._known: dict[Any, set[Any]] = {}  # what the last parts compute again, by their prices
        self._variants: dict[Any, Plan] = {}
        self.parts = len(starts)
        self.loops = any([e.primitive.holder.loops for e in eqns])
        self.most = plan.work + _MOST_OFTEN * sum(
            [work for e in eqns[:starts[0]] if (work := search.work(e)) < NEVER])

    def at_least(self, price: float, budget: float) -> Plan:
        """The program at one price but for the first parts, as what is read soon is computed again
        for little: for few of them if that is needed to fit."""
        few = self.at(price, 0.0, self.parts // 4)
        return few if few.live.peak <= budget else min(
            few, self.at(price, 0.0, int(self.parts > 2)), key=lambda p: p.live.peak)

    def at(self, dear: float, cheap: float, split: int) -> Plan:
        """The program where the parts from one on pay a price for a byte, and those before it
        another one."""
        return self.priced((*[cheap] * split, *[dear] * (self.parts - split)))

    def priced(self, prices: tuple[float, ...]) -> Plan:
        """The program where each part pays a price for a byte."""
        found = self._variants.get(prices)
        if found is None:
            found = self._variants[prices] = self._at(prices)
        return found

    def _at(self, prices: tuple[float, ...]) -> Plan:
        plan, eqns = self._plan, list(self._jaxpr.eqns)
        work, size = self._search.work, self._search.machine.sizes
        done = _cut_loops(eqns, self._starts[0], self._jaxpr.outvars, {*self._jaxpr.all_invars},
                          prices[-1], self._search) if self.loops else []
        same = not self.loops or eqns == self._jaxpr.eqns
        values = self._values if same else Values(eqns, self._starts)
        agains = self._agains(values, eqns, prices, self._known if same else {})
        if same and not any(agains):
            return plan
        late: list[JaxprEqn] = []
        behind: dict[Any, Any] = {}
        for part, again in enumerate(agains):
            more, copies = values.late(part, again, self._fused, behind)
            late += more
            done += [(e, 1, work(e)) for e in copies if e.outvars[0] not in self._fused]
        program = self._jaxpr.replace(eqns=[*eqns[:self._starts[0]], *late],
                                      outvars=_read(self._jaxpr.outvars, behind))
        found = [(e, n * sum([size(v.aval) for v in e.outvars]), n * w) for e, n, w in done]
        return self._search.plan(
            dce_jaxpr(program, (True,) * len(program.outvars)),
            plan.work + sum([w for _, _, w in found]), [*plan.again, *found], self._loop,
            (*plan.path, (self._starts, prices)))

    def _agains(self, values: Values, eqns: Sequence[JaxprEqn], prices: Sequence[float],
                known: dict[Any, set[Any]]) -> list[set[Any]]:
        """What each part computes again; the last one first, as what stays for one is there for
        those before it, too."""
        fused, size = self._fused, self._search.machine.sizes
        stays = {*self._jaxpr.outvars}

        def keep(v: Any) -> float:
            if v in stays:
                return 0.0
            worth = price * size(v.aval)
            return max(worth, _FUSED) if v in fused else worth

        def work(eqn: JaxprEqn) -> float:
            # What is fused XLA computes again in any case.
            return 0.0 if eqn.outvars[0] in fused else self._search.work(eqn)

        agains: list[set[Any]] = []
        for part in reversed(range(self.parts)):
            price, reads = prices[part], values.reads[part]
            again = known.get(prices[part:])
            if again is None:
                again = known[prices[part:]] = values.cut(reads, keep, work) if price else set()
                self._leave_fused(again, values)
            agains.insert(0, again)
            stays.update([x for v in again for x in _variables(eqns[values.made[v]])
                          if x not in again and x not in fused])
            stays.update([x for x in reads if x not in again and x not in fused])
        return agains

    def _leave_fused(self, again: set[Any], values: Values) -> None:
        """Leave to XLA what it computes again where it is read, of what stays."""
        eqns, made = self._jaxpr.eqns, values.made
        order = sorted(again, key=made.__getitem__)
        other: set[Any] = set()  # what is made of values that were in memory
        for v in order:
            if v not in self._fused or not other.isdisjoint(_variables(eqns[made[v]])):
                other.add(v)
        for v in reversed(order):
            if v in other:
                other.update([x for x in _variables(eqns[made[v]]) if x in again])
        again &= other


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
        self._last = {x: j for j in range(starts[0], len(eqns)) for x in _variables(eqns[j])}
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
                for x in _variables(self._eqns[i]):
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
                late.append(copy.replace(invars=_read(copy.invars, now), outvars=outs))
                now.update(zip(copy.outvars, outs, strict=True))
                near.update((v, j) for v in copy.outvars if v in fused)
                copies.append(copy)
            late.append(eqn.replace(invars=_read(eqn.invars, now))
                        if any([x in now for x in eqn.invars if type(x) is Var]) else eqn)
        return late, copies

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
        read = dict.fromkeys([x for i in places for x in _variables(self._eqns[i])
                              if x not in again])
        if part:
            read.update((v, None) for e in self._eqns[self._ends[part - 1]:start]
                        for v in e.outvars if self._last.get(v, -1) >= start)
        else:
            read.update((x, None) for x in self.reads[0] if self.made[x] >= start - _RECENT
                        and x not in again and x not in fused)
        read.update((x, None) for e in self._eqns[start:end] for x in _variables(e)
                    if x not in self.made and x not in self._late)
        read = {x: None for x in read if getattr(x.aval, "memory_space", None) is not Space.Host}
        after = [Var(x.aval) for x in read]
        barrier = JaxprEqn(optimization_barrier_p, _read(list(read), behind), after, {},
                           no_effects, self._eqns[start].source_info)
        behind.update(zip(read, after, strict=True))
        return barrier


def _variables(eqn: JaxprEqn) -> list[Any]:
    return [x for x in eqn.invars if type(x) is not Literal]


def _read(atoms: Sequence[Atom], now: Mapping[Any, Any]) -> list[Atom]:
    return [x if type(x) is Literal else now.get(x, x) for x in atoms]


def _cut_loops(eqns: list[JaxprEqn], border: int, results: Sequence[Atom], always: set[Any],
               price: float, search: Search) -> list[tuple[JaxprEqn, int, float]]:
    """Cut each pair of loops of which the late one, behind a border, reads what the early one
    stacks; what is done again, how often, and its work. `always` are values that stay for others.
    """
    made = {v: i for i, e in enumerate(eqns[:border]) if e.primitive.holder.loops
            for v in e.outvars}
    reads = Counter[Any]([x for e in eqns for x in e.invars if x in made])
    reads.update(dict.fromkeys(results, 2))
    again: list[tuple[JaxprEqn, int, float]] = []
    for j in range(border, len(eqns)):
        sources = [] if not eqns[j].primitive.holder.loops else dict.fromkeys(
            [made[x] for x in eqns[j].invars if x in made])
        for i in sources:
            late = eqns[j]
            pair = _LoopPair(eqns[i], late, {v for v in eqns[i].outvars if reads[v] == 1}, always)
            cut = pair.cut(price, search) if pair.fits() else None
            if cut is not None:
                eqns[i], eqns[j], copies = cut
                reads.update({*eqns[j].invars} - {*late.invars})
                times = late.primitive.holder.times(late.params)
                again += [(e, times * n, work) for e, n, work in copies]
    return again


class _LoopPair:
    """Two loops, of which the late one reads results that the early one stacks; `alone` are those
    of its results that nothing else reads."""

    def __init__(self, early: JaxprEqn, late: JaxprEqn, alone: set[Any], always: set[Any]) -> None:
        self._early = early
        self._late = late
        self._alone = alone
        self._always = always

    def fits(self) -> bool:
        """Whether an iteration of one is an iteration of the other."""
        early, late = self._early, self._late
        times = [e.primitive.holder.times(e.params) for e in (early, late)]
        return (early.primitive is late.primitive and times[0] is not None and times[0] == times[1]
                and len(early.primitive.holder.held(early.params).programs) == 1
                and not early.effects and not late.effects)

    def cut(self, price: float, search: Search
            ) -> tuple[JaxprEqn, JaxprEqn, list[tuple[JaxprEqn, int, float]]] | None:
        """Both with fewer values stacked, and what the late one computes again; None: all stay.
        Loops in them are such pairs, too, unless it is better to do them again as a whole."""
        early, late, holder = self._early, self._late, self._early.primitive.holder
        held, held_late = holder.held(early.params), holder.held(late.params)
        flat, later = [dce(flattened(h.programs[0])) for h in (held, held_late)]
        body, body_late = flat.jaxpr, later.jaxpr
        if flat.consts or later.consts:
            return None
        sliced = holder.residual_roles([None], early.params)[0]
        # The results of the early body that slices of the late one are, by the latter.
        of: dict[Any, Any] = {x: v for x, v, role in zip(
            early.outvars, body.outvars, held.outs, strict=True)
            if role == sliced and x in self._alone and type(v) is Var}
        same = {v: of[x] for x, v, role in zip(late.invars, body_late.invars, held_late.ins,
                                               strict=True) if role == sliced and x in of}
        outer = dict(zip(body.invars, zip(early.invars, held.ins, strict=True), strict=True))
        always = self._staying(body, outer, sliced)
        size = search.machine.sizes

        def moves(v: Any) -> bool:
            return (price > search.machine.to_host and v not in always
                    and size(v.aval) >= _MOVED)

        def keep(v: Any) -> float:
            return 0.0 if v in always else (search.machine.to_host if moves(v) else price) * size(
                holder.outside(v.aval, sliced, early.params))

        live = Liveness(body, search.machine, loop=True)

        def work(eqn: JaxprEqn) -> float:
            return search.work(eqn) if eqn.outvars[0] in live.size else search.fused_work(eqn)

        border, times = len(body.eqns), holder.times(early.params)
        wanted = _read(body_late.outvars, same)
        whole = [*body.eqns, *[e.replace(invars=_read(e.invars, same)) for e in body_late.eqns]]
        inside = list(whole)
        deeper = _cut_loops(inside, border, [*wanted, *[
            v for x, v in zip(early.outvars, body.outvars, strict=True) if x not in of]], always,
            price, search)
        found = []
        for eqns, done in ((whole, []), (inside, deeper))[:2 if deeper else 1]:
            values = Values(eqns, [border], body.invars)
            again = values.cut(values.reads[0], keep, lambda e: times * work(e))
            eqns_late, copies = values.late(0, again, set(), None)
            done = [*done, *[(e, 1, work(e)) for e in copies]]
            read = dict.fromkeys([x for x in [*[x for e in eqns_late for x in e.invars], *wanted]
                                  if x in values.made])
            found.append((sum(map(keep, read)) + times * sum([n * w for _, n, w in done]),
                          eqns[:border], eqns_late, read, done))
        _, eqns_early, eqns_late, read, done = min(found, key=lambda f: f[0])
        away: list[Any] = [v for v in read if moves(v)]
        there, back = _moved(away, late.source_info)
        now = {v: e.outvars[0] for v, e in zip(away, back, strict=True)}
        eqns_late = [*back, *[e.replace(invars=_read(e.invars, now)) for e in eqns_late]]
        done = [*done, *[(e, 1, search.machine.to_host * size(e.outvars[0].aval)) for e in back]]
        return (*self._rebuilt(
            body.replace(eqns=[*eqns_early, *there.values()]),
            body_late.replace(outvars=_read(_read(body_late.outvars, same), now)), eqns_late,
            [there[v].outvars[0] if v in there else v for v in read], same, outer, sliced, times),
            done) if done else None

    def _staying(self, body: Jaxpr, outer: Mapping[Any, tuple[Any, Any]], sliced: Any) -> set[Any]:
        """The values of the early body that are in memory whatever the late one reads."""
        return {v for v, (x, role) in outer.items()
                if role == self._early.primitive.holder.constant
                or (role == sliced and x in self._always)} | {
            v for v, x in zip(body.outvars, self._early.outvars, strict=True)
            if x not in self._alone and x in self._late.invars}

    def _rebuilt(self, body: Jaxpr, body_late: Jaxpr, eqns: list[JaxprEqn], read: list[Any],
                 same: Mapping[Any, Any], outer: Mapping[Any, tuple[Any, Any]], sliced: Any,
                 n: int) -> tuple[JaxprEqn, JaxprEqn]:
        """The loops, where the late one does `eqns` and reads these values of the early body."""
        early, late, holder = self._early, self._late, self._early.primitive.holder
        held, held_late = holder.held(early.params), holder.held(late.params)
        stacked = dict(zip(body.outvars, zip(early.outvars, held.outs, strict=True), strict=True))
        inner = {v: Var(v.aval) for v in read}
        operands, roles = [], []
        more: list[Any] = []  # what the early loop stacks besides
        for v in read:
            x, role = outer.get(v, (None, None))
            if role not in (holder.constant, sliced):
                x, role = stacked.get(v, (None, None))
                if role != sliced:
                    x, role = Var(holder.outside(v.aval, sliced, early.params)), sliced
                    more.append((v, x))
            operands.append(x)
            roles.append(role)
        gone = set(same)
        left = [k for k, v in enumerate(body_late.invars) if v not in gone]
        later = Jaxpr([], [*[body_late.invars[k] for k in left], *inner.values()],
                      _read(_read(body_late.outvars, same), inner),
                      [e.replace(invars=_read(e.invars, inner)) for e in eqns],
                      debug_info=body_late.debug_info)
        new_late = holder.eqn(late, [ClosedJaxpr(later, [])],
                              [*[late.invars[k] for k in left], *operands],
                              [*[held_late.ins[k] for k in left], *roles],
                              late.outvars, held_late.outs)
        kept = {id(x) for x in operands}
        inside = {x for x, v in zip(late.invars, body_late.invars, strict=True) if v in gone}
        places = [k for k, x in enumerate(early.outvars) if id(x) in kept or x not in inside]
        first = body.replace(outvars=[*[body.outvars[k] for k in places], *[v for v, _ in more]])
        first = dce_jaxpr(first, (True,) * len(first.outvars))
        new_early = holder.eqn(early, [ClosedJaxpr(first, [])], early.invars, held.ins,
                               [*[early.outvars[k] for k in places], *[x for _, x in more]],
                               [*[held.outs[k] for k in places], *[sliced] * len(more)])
        return new_early, new_late


def _moved(values: Sequence[Any], info: SourceInfo) -> tuple[dict[Any, JaxprEqn], list[JaxprEqn]]:
    """The equations that move values to the host's memory, and those that move them back."""
    there = {v: moved_eqn(v, Var(v.aval.placed(memory_space=Space.Host)), HOST, info)
             for v in values}
    return there, [moved_eqn(e.outvars[0], Var(v.aval), "device", info) for v, e in there.items()]
