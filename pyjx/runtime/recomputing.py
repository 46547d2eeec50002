"""Programs that need less memory because they compute values again: which, and where.

A value that is made long before it is read need not be in memory in between. The equations behind
the step where most waits to be read fall into parts that read about as many bytes of what was made
before, and for each part, the last one first, a minimum cut (runtime/cuts.py) says which of these
values stay in memory for it, at a price for a byte, and which it computes again.

What stays for one part is there for those before it for nothing; what a part computes again it does
just before it is read, and lets go of. So many parts need less memory and more work than few.
A barrier stands before each part, of what it computes values of and of what was made before it, so
that XLA neither finds both computations to be one nor does other parts at the same time. Loops
are cut in pairs (runtime/loop_pairs.py).

The price is the least at which the program fits, by some numbers of parts; of more only where that
needs clearly less, unless nothing fits otherwise. Only the last parts pay
it, for whom values wait longest, while those before pay the next lower one. Where no price is
enough, the search goes on with the best program found: what waits at its own highest step is made
again. A higher price is taken where memory itself costs more than what is done again for it: new
pages on the CPU.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

from pyjx.core.evaluation import map_jaxprs, replaced, variables
from pyjx.core.flows import NEVER
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal
from pyjx.core.lifetimes import Liveness, Machine
from pyjx.core.passes.dce import dce, dce_jaxpr
from pyjx.core.records import Record
from pyjx.engine.primitives import optimization_barrier_p
from pyjx.runtime.cuts import Costs, Values, Work, flattened
from pyjx.runtime.loop_pairs import cut_loops

# An equation that is done again, the bytes that need not stay for that, and its work.
Again = tuple[JaxprEqn, int, float]
# The cuts that make a program, one after the other: (border, number of parts, price of each part),
# or the paths of the programs inside the equation that needs most.
Path = Sequence[Any]

_FIRST, _STEP = 16.0, 5.0  # the first price that is tried, and how many times it the next one is
_DEAREST = 1e5  # products of 10,000 numbers an element, some of them in a row
_ROUNDS = 12
_NEARLY = 1.15  # times the budget, from where on values are made again one by one
_LESS = 0.95  # of the peak, for which a program is divided into parts again
_WAITING = 8  # places that read what waits at the highest step, of which one is a part's start
_RELIEVING = (16.0, 80.0, 400.0, 2000.0)  # prices of what waits there
_FUSED = 1e4  # what a fused value costs at least to be in memory, which it is not otherwise
_PARTS = (6, 8, 11, 14, 20, 32)  # into which what comes behind the highest step is divided
_REFINED = 2  # of these numbers, for which the price is found more closely
_SMALL = 2500  # equations, of which all numbers of parts are tried, otherwise the last ones
_MOST_OFTEN = 3  # times at most that everything is done again


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


class Search(Costs):
    """The search for a program within a budget of bytes.

    Args:
      machine: what becomes of values in memory.
      work: what equations cost.
      donated: which inputs results may take the place of.
    """

    def __init__(self, machine: Machine, work: Work, donated: Sequence[bool] = ()) -> None:
        super().__init__(machine, work)
        self._work = work
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
            if not step:
                plan = self.in_order(plan)
            elif len(step) == 1:
                paths = iter(step[0])
                inner = self._inside(plan, loop, lambda search, body, _, repeats: search.follow(
                    body, next(paths), repeats))  # noqa: B023
                plan = plan if inner is None else inner
            else:
                starts, prices = step
                plan = self._cut(plan, starts, loop).priced(tuple(prices))
        return plan

    @staticmethod
    def in_order(plan: Plan) -> Plan:
        """The program with barriers by which XLA keeps to its order, for which the estimate is."""
        eqns = plan.jaxpr.eqns
        written, results = Values(eqns, (len(eqns),)).in_order(plan.live, plan.jaxpr.outvars)
        return plan._replace(jaxpr=plan.jaxpr.replace(eqns=written, outvars=results),
                             path=(*plan.path, ()))

    def run(self, jaxpr: Jaxpr, budget: float, loop: bool = False) -> Plan:
        """The program of the least cost that fits, or the one with the lowest peak."""
        first = self._plans.get(id(jaxpr))
        if first is None:
            first = self._plans[id(jaxpr)] = self.plan(jaxpr, loop=loop)
        large = len(jaxpr.eqns) > _SMALL
        best = self._found(first, budget, loop, large)
        return best if best.live.peak <= budget or large else min(
            best, self._found(first, budget, loop, True),
            key=lambda p: (max(p.live.peak, budget), p.cost))

    def _found(self, best: Plan, budget: float, loop: bool, thorough: bool) -> Plan:
        """As `run`, from a program on; `thorough`: with as many parts as there may be, even where
        more of them do not need clearly less."""
        for _ in range(_ROUNDS):
            if best.live.peak <= budget or not best.live.eqns:  # there is nothing to do again
                break
            inner = self._inside(best, loop, lambda search, body, more, repeats: search.run(
                body, budget + more, repeats))
            near = best.work and best.live.peak <= _NEARLY * budget
            found = inner or (self._relieved(best, budget, loop) if near else
                              self._at_peak(best, budget, loop, thorough))
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

    def _at_peak(self, plan: Plan, budget: float, loop: bool, thorough: bool) -> Plan:
        """The program cut at its highest step, or at the one before it at which most waits to be
        read: the least work of some numbers of parts."""
        best, borders = plan, self._borders.get(id(plan))
        if borders is None:
            borders = self._borders[id(plan)] = _borders(plan.live)
        small = len(plan.jaxpr.eqns) <= _SMALL
        for border in borders:
            found, lowest = [], math.inf
            for n in _PARTS if small else _PARTS[-2:]:
                cut = self._cut(plan, _starts(plan.jaxpr.eqns, border, n, self.machine.sizes), loop)
                found.append((*self._risen(cut, budget), cut))
                peak = found[-1][0].live.peak
                if peak <= budget and not small:
                    break
                if peak > max(budget, _LESS * lowest) and not thorough:
                    break
                lowest = min(lowest, peak)
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
        all that comes from the first that reads it on, or only up to the last."""
        live = plan.live
        step, room = live.at_peak, budget - live.fixed
        reads = _next_reads(live, step)

        def height(p: Plan) -> tuple[float, float, float]:
            return (max(p.live.peak, budget), sum([n - room for n in p.live.live if n > room]),
                    p.cost)

        waiting = [v for v in live.alive(step) if reads.get(v, 0) > step + 1][:_WAITING]
        cuts: list[tuple[tuple[int, ...], tuple[float, ...]]] = [
            ((step + 1, reads[v]), (0.0, price)) for v in waiting for price in _RELIEVING]
        cuts += [((step + 1, reads[v], max(live.last[v], reads[v]) + 1),
                  (0.0, _RELIEVING[-1], 0.0)) for v in waiting]
        return min([plan, *[self._cut(plan, starts, loop).priced(prices)
                            for starts, prices in cuts]], key=height)

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
        for x in variables(eqn.invars):
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
        read = [r for x in variables(eqn.invars) for r in made_of.get(x, (x,))]
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
        self._programs: dict[Any, Plan] = {}  # the same, by what their parts compute again
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
        done = cut_loops(eqns, self._starts[0], self._jaxpr.outvars, {*self._jaxpr.all_invars},
                          prices[-1], self._search) if self.loops else []
        same = not self.loops or eqns == self._jaxpr.eqns
        values = self._values if same else Values(eqns, self._starts)
        agains = self._agains(values, eqns, prices, self._known if same else {})
        if same and not any(agains):
            return plan
        key = tuple(map(frozenset, agains)) if same else prices  # other prices may say the same
        found = self._programs.get(key)
        if found is None:
            found = self._programs[key] = self._program(eqns, values, agains, done, prices)
        return found

    def _program(self, eqns: Sequence[JaxprEqn], values: Values, agains: Sequence[set[Any]],
                 done: Sequence[Again], prices: tuple[float, ...]) -> Plan:
        """The program in which each part computes some values again, and of loops what is `done`
        already."""
        plan, work, size = self._plan, self._search.work, self._search.machine.sizes
        done = list(done)
        late: list[JaxprEqn] = []
        behind: dict[Any, Any] = {}
        for part, again in enumerate(agains):
            more, copies = values.late(part, again, self._fused, behind)
            late += more
            done += [(e, 1, work(e)) for e in copies if e.outvars[0] not in self._fused]
        program = self._jaxpr.replace(eqns=[*eqns[:self._starts[0]], *late],
                                      outvars=replaced(self._jaxpr.outvars, behind))
        found = [(e, n * sum([size(v.aval) for v in e.outvars]), n * w) for e, n, w in done]
        return self._search.plan(dce_jaxpr(program, (True,) * len(program.outvars)),
                                 plan.work + sum([w for _, _, w in found]), [*plan.again, *found],
                                 self._loop, (*plan.path, (self._starts, prices)))

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
            stays.update([x for v in again for x in variables(eqns[values.made[v]].invars)
                          if x not in again and x not in fused])
            stays.update([x for x in reads if x not in again and x not in fused])
        return agains

    def _leave_fused(self, again: set[Any], values: Values) -> None:
        """Leave to XLA what it computes again where it is read, of what stays."""
        eqns, made = self._jaxpr.eqns, values.made
        order = sorted(again, key=made.__getitem__)
        other: set[Any] = set()  # what is made of values that were in memory
        for v in order:
            if v not in self._fused or not other.isdisjoint(variables(eqns[made[v]].invars)):
                other.add(v)
        for v in reversed(order):
            if v in other:
                other.update([x for x in variables(eqns[made[v]].invars) if x in again])
        again &= other
