"""Programs that need less memory because they compute values again: which, and where.

A value that is made long before it is read need not be in memory in between. At the step where the
program needs most its equations fall into early and late ones, and a minimum cut (as in
core/passes/recompute.py) says which early values stay in memory for the late ones and which are
computed again, at a price for a byte that stays:

    source --work to compute v--> v.in --price * bytes of v--> v.out --inf--> late equations
                                    ^
                       u.out --inf--+   for each operand u of v

A byte counts less that is needed soon behind the border. What is computed again stands
just before it is read, behind a barrier that also waits for a value made shortly before, so that
XLA neither finds both computations to be one nor does it earlier. A loop whose stacked results
another loop of as many iterations reads is cut with it as one program, whose early part is the body
of one and whose late part that of the other.

The price is the least at which the program fits; and only the early part of the program pays it, up
to where it fits, while the rest pays the next lower one. Where it does not fit at any price, the
search goes on with the best program found, at its own highest step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from pyjx.core.effects import join_effects, no_effects
from pyjx.core.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from pyjx.core.lifetimes import Liveness, Machine
from pyjx.core.nested import holds_jaxprs, map_jaxprs, program_of
from pyjx.core.passes.dce import dce, dce_jaxpr
from pyjx.core.passes.recompute import NEVER, Network
from pyjx.core.records import Record
from pyjx.engine.calls import jit_p
from pyjx.engine.decompose import put_in_place
from pyjx.engine.primitives import optimization_barrier_p
from pyjx.engine.remat_calls import remat_p
from pyjx.runtime.costs import arithmetic

Work = Callable[[JaxprEqn], float]
# An equation that is done again, the bytes that need not stay for that, and its work.
Again = tuple[JaxprEqn, int, float]
Price = Callable[[int, Any], float]  # of what an equation, by its number, makes to stay in memory

# What a byte of a result costs to make, in arithmetic operations: those of a vector unit in the
# time in which memory takes a byte.
_PER_BYTE = {"cpu": 4.0}
_PER_BYTE_ELSEWHERE = 64.0
_TRANSCENDENTAL = 8.0
_STEPS = 7  # prices that are tried, each six times the one before; and halvings between two
_ROUNDS = 4
_FUSED = 1e4  # what a fused value costs at least to be in memory, which it is not otherwise
_RECENT = 60  # equations before one, of which a value is recent for it
_NEAR = 16  # equations for which what is fused is computed once
_CUTS = 4  # of which each knows better when values are needed
# What is needed within this part of the steps without room is not worth all its price.
_SOON = 0.125


def work_on(platform: str) -> Work:
    """What it costs to compute the results of an equation again, on a platform."""
    rate = _PER_BYTE.get(platform, _PER_BYTE_ELSEWHERE)

    def work(eqn: JaxprEqn) -> float:
        unknown: set[str] = set()
        flops, transcendentals = arithmetic(eqn, unknown)
        if unknown or eqn.effects or holds_jaxprs(eqn) or eqn.primitive.effects is not None:
            return NEVER
        made = sum([v.aval.size * v.aval.dtype.itemsize for v in eqn.outvars
                    if hasattr(v.aval, "size")])
        return 1.0 + flops + _TRANSCENDENTAL * transcendentals + rate * made

    return work


def flattened(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with what its calls call in their places, but for what is rematerialized."""
    eqns: list[JaxprEqn] = []
    values: dict[Var, Any] = {}
    for eqn in closed.jaxpr.eqns:
        if values:
            eqn = eqn.replace(invars=_read(eqn.invars, values))
        program = _called(eqn)
        if program is None:
            eqns.append(eqn)
        else:
            put_in_place(eqn, flattened(program).jaxpr, eqns, values, eqn.source_info.name_stack)
    if len(eqns) == len(closed.jaxpr.eqns) and not values:
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
      again: what is done again.
    """

    jaxpr: Jaxpr
    live: Liveness
    work: float
    again: list[Again]


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
        self.work = _remembered(work)
        self._donated = donated

    def plan(self, jaxpr: Jaxpr, work: float = 0.0, again: Sequence[Again] = (),
             loop: bool = False) -> Plan:
        live = Liveness(jaxpr, self.machine, self._donated, loop=loop)
        return Plan(jaxpr, live, work, list(again))

    def run(self, jaxpr: Jaxpr, budget: float, loop: bool = False) -> Plan:
        """The program with the least work that fits, or the one with the lowest peak."""
        best = self.plan(jaxpr, loop=loop)
        for _ in range(_ROUNDS):
            if best.live.peak <= budget:
                break
            inner = self._inside(best, budget, loop)
            found = self._at_peak(best, budget, loop) if inner is None else inner
            if found.live.peak >= best.live.peak * 0.995:
                break
            best = found
        return best

    def _inside(self, plan: Plan, budget: float, loop: bool) -> Plan | None:
        """The program where it needs most because of a program inside an equation."""
        live = plan.live
        i = live.at_peak
        needed = live.inside.get(i, 0)
        if 2 * needed < live.live[i]:
            return None
        eqn = live.eqns[i]
        room = budget - (live.peak - needed)
        inner = Search(self.machine, self.work)
        works: list[Plan] = []

        def within(closed: ClosedJaxpr) -> ClosedJaxpr:
            flat = dce(flattened(closed))
            bare = _Bare(inner, bool(eqn.primitive.holder.loops))
            works.append(bare.run(flat.jaxpr, room))
            return ClosedJaxpr(works[-1].jaxpr, flat.consts)

        params = map_jaxprs(eqn.params, within, lambda j: j)
        if not any([p.work for p in works]):
            return None
        eqns = list(live.eqns)
        eqns[i] = eqn.replace(params=params)
        times = eqn.primitive.holder.times(eqn.params) or 1
        return self.plan(plan.jaxpr.replace(eqns=eqns),
                         plan.work + times * sum([p.work for p in works]),
                         [*plan.again, *[a for p in works for a in p.again]], loop)

    def _at_peak(self, plan: Plan, budget: float, loop: bool) -> Plan:
        """The program cut at its highest step."""
        live, jaxpr = plan.live, plan.jaxpr
        border = live.at_peak
        made = sum([live.size.get(v, 0) for v in live.eqns[border].outvars])
        if made > sum([n for v, n in live.size.items() if live.last[v] == border]):
            border += 1
        over = [0, *accumulate([live.fixed + n > budget for n in live.live[border:]])]
        soon = max(over[-1] * _SOON, 1.0)

        def gain(need: int) -> float:
            return min(over[min(need - border, len(over) - 1)] / soon, 1.0)

        values = _Values(jaxpr.eqns, border, ())
        fused = {v for e in jaxpr.eqns for v in e.outvars if v not in live.size}

        def at(dear: float, cheap: float, split: int) -> Plan:
            cut = _Cut(self, jaxpr, values, fused, border, gain,
                       lambda i: dear if i < split else cheap)
            program, work, again = cut.rewritten()
            return self.plan(program, plan.work + work, [*plan.again, *again], loop)

        cheap, dear, best = 0.0, 1.0, plan
        for _ in range(_STEPS):
            found = at(dear, dear, border)
            if found.live.peak < best.live.peak:
                best = found
            if found.live.peak <= budget:
                break
            cheap, dear = dear, dear * 6
        else:
            return best
        # What loops stack has one price, as it is made at one place.
        for _ in range(6 if any([e.primitive.holder.loops for e in jaxpr.eqns]) else 2):
            middle = (cheap * dear) ** 0.5 or dear / 6
            found = at(middle, middle, border)
            if found.live.peak <= budget:
                dear, best = middle, min(best, found, key=lambda p: p.work)
            else:
                cheap = middle
        low, high = 0, border
        while high - low > max(border // 24, 1):
            split = (low + high) // 2
            found = at(dear, cheap, split)
            if found.live.peak <= budget:
                high, best = split, min(best, found, key=lambda p: p.work)
            else:
                low = split
        return best


class _Bare:
    """A search for a program whose inputs and results are not counted."""

    def __init__(self, search: Search, loop: bool) -> None:
        self._search = search
        self._loop = loop

    def run(self, jaxpr: Jaxpr, room: float) -> Plan:
        live = Liveness(jaxpr, self._search.machine, loop=self._loop)
        return self._search.run(jaxpr, room + live.fixed, self._loop)


class _Cut:
    """A program cut before an equation.

    `gain(j)` is the part of its price that a byte is worth which equation j needs again; `price(i)`
    is that of a byte that equation i makes.
    """

    def __init__(self, search: Search, jaxpr: Jaxpr, values: _Values, fused: set[Any], border: int,
                 gain: Callable[[int], float], price: Callable[[int], float]) -> None:
        self._search = search
        self._jaxpr = jaxpr
        self._values = values
        self._fused = fused
        self._border = border
        self._gain = gain
        self._price = price
        self._work = 0.0
        self._again: list[Again] = []

    def rewritten(self) -> tuple[Jaxpr, float, list[Again]]:
        """The program, the work that it does again, and what that is."""
        jaxpr, border = self._jaxpr, self._border
        eqns = list(jaxpr.eqns)
        self._cut_loops(eqns)
        size = self._search.machine.sizes
        stays = {*jaxpr.outvars}
        values = self._values if eqns == jaxpr.eqns else _Values(eqns, border, ())

        def keep(v: Any) -> float:
            made = values.made[v]
            worth = self._price(made) * size(v.aval) * self._gain(values.need[v])
            if v in self._fused:
                return max(worth, _FUSED)
            return 0.0 if v in stays else worth

        def work(eqn: JaxprEqn) -> float:
            # What is fused XLA computes again in any case.
            return 0.0 if eqn.outvars[0] in self._fused else self._search.work(eqn)

        for _ in range(_CUTS):
            again = values.cut(keep, work)
            early = values.wanting_early(again, self._fused)
            if early <= stays:
                break
            stays |= early
        self._leave_fused(again, values)
        if not again and eqns == jaxpr.eqns:
            return jaxpr, 0.0, []
        late, copies = values.late(again, self._fused, barred=True)
        self._note([e for e in copies if e.outvars[0] not in self._fused], 1)
        program = jaxpr.replace(eqns=[*eqns[:border], *late])
        return (dce_jaxpr(program, (True,) * len(program.outvars)), self._work, self._again)

    def _leave_fused(self, again: set[Any], values: _Values) -> None:
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

    def _note(self, copies: Sequence[JaxprEqn], times: int) -> None:
        work, size = self._search.work, self._search.machine.sizes
        self._work += times * sum(map(work, copies))
        self._again += [(e, times * sum([size(v.aval) for v in e.outvars]), times * work(e))
                        for e in copies]

    def _cut_loops(self, eqns: list[JaxprEqn]) -> None:
        """Cut each pair of loops of which the late one reads what the early one stacks."""
        made = {v: i for i, e in enumerate(eqns[:self._border]) if e.primitive.holder.loops
                for v in e.outvars}
        reads: dict[Any, int] = {}
        for e in eqns:
            for x in e.invars:
                if x in made:
                    reads[x] = reads.get(x, 0) + 1
        for x in self._jaxpr.outvars:
            reads[x] = 2
        for j in range(self._border, len(eqns)):
            late = eqns[j]
            sources = {made[x] for x in late.invars if x in made}
            for i in sources if late.primitive.holder.loops else ():
                pair = _LoopPair(eqns[i], late, {v for v in eqns[i].outvars if reads.get(v) == 1},
                                 set(self._jaxpr.all_invars))
                if pair.fits():
                    cut = pair.cut(self._price(i) * self._gain(j + 1), self._search)
                    if cut is not None:
                        eqns[i], eqns[j], copies = cut
                        self._note(copies, late.primitive.holder.times(late.params))


class _Values:
    """The values that equations before a border make, and what those behind it read of them.

    Attributes:
      made: the number of the equation that makes a value; -1 for those that are given.
      need: the first equation behind the border for which a value may be wanted again.
      read: the values that equations behind the border read.
    """

    def __init__(self, eqns: Sequence[JaxprEqn], border: int, given: Sequence[Any]) -> None:
        self._eqns = eqns
        self._border = border
        self.made: dict[Any, int] = dict.fromkeys(given, -1)
        self.made.update((v, i) for i, e in enumerate(eqns[:border]) for v in e.outvars)
        self.need: dict[Any, int] = {}
        for j in range(len(eqns) - 1, border - 1, -1):
            for x in eqns[j].invars:
                if x in self.made:
                    self.need[x] = j
        self.read = set(self.need)
        for i in range(border - 1, -1, -1):
            wanted = min([self.need[v] for v in eqns[i].outvars if v in self.need],
                         default=len(eqns))
            for x in eqns[i].invars:
                if x in self.made and x not in self.read and wanted < self.need.get(
                        x, len(eqns)):
                    self.need[x] = wanted

    def wanting_early(self, again: set[Any], fused: set[Any]) -> set[Any]:
        """Of the values that are computed again those for which others are, which are read only
        much later: these would be in memory in between."""
        need = {v: self.need[v] for v in again}
        by: dict[Any, Any] = {}
        for v in sorted(again, key=self.made.__getitem__, reverse=True):
            source = v if v in self.read and v not in fused else by.get(v, v)
            for x in self._eqns[self.made[v]].invars:
                if x in again and need[x] > need[v]:
                    need[x], by[x] = need[v], source
        return {by[v] for v, j in need.items()
                if v in self.read and 2 * (j - self._border) < self.need[v] - self._border}

    def cut(self, keep: Callable[[Any], float], work: Work) -> set[Any]:
        """The values to compute again."""
        keeps = {v: int(keep(v)) for v in self.need}
        source, sink = 0, 1
        # A value that stays for nothing is none; one that is read has one node, what it is made of
        # another, which stands for both where it cannot be computed again.
        number = {v: 2 * k + 2 for k, v in enumerate([v for v, n in keeps.items() if n > 0])}
        network = Network(2 * len(number) + 4)
        read, again = self.read, []
        for v, node in number.items():
            i, kept = self.made[v], keeps[v]
            cost = NEVER if i < 0 else work(self._eqns[i])
            out = sink if v in read else node + 1
            if cost >= NEVER:
                network.edge(source, out, kept)
                continue
            again.append(v)
            flow = min(int(cost), kept) if out == sink else 0
            if cost:
                network.edge(source, node, int(cost), flow)
            network.edge(node, out, kept, flow)
            for x in self._eqns[i].invars:
                if x in number and x not in read:
                    network.edge(number[x] + 1, node, NEVER)
        near = network.sink_side(source, sink)
        return {v for v in again if near[number[v]]}

    def late(self, again: set[Any], fused: set[Any], barred: bool
             ) -> tuple[list[JaxprEqn], list[JaxprEqn]]:
        """The equations behind the border, with those before them that compute values again; and
        these alone. If `barred` they are behind barriers. What is `fused` is computed again for
        each part of the program that reads it."""
        eqns = self._eqns
        now: dict[Any, Any] = {}  # what is read in the place of a value
        late: list[JaxprEqn] = []
        copies: list[JaxprEqn] = []
        last: dict[Any, int] = {x: j for j in range(self._border, len(eqns))
                                for x in eqns[j].invars if type(x) is Var}
        made: dict[Any, int] = {}  # behind the border
        near: dict[Any, int] = {}  # where what is fused was computed last
        for j in range(self._border, len(eqns)):
            eqn = eqns[j]
            for v in [v for v, i in near.items() if j > i + _NEAR]:
                del near[v], now[v]
            missing = self._missing(eqn, again, now)
            if missing:
                if barred:
                    late.append(self._barrier(missing, now, self._recent(j, made, last)))
                for copy in [eqns[i] for i in missing]:
                    outs = [Var(v.aval) for v in copy.outvars]
                    late.append(copy.replace(invars=_read(copy.invars, now), outvars=outs))
                    now.update(zip(copy.outvars, outs, strict=True))
                    near.update((v, j) for v in copy.outvars if v in fused)
                    copies.append(copy)
            late.append(eqn.replace(invars=_read(eqn.invars, now))
                        if any([x in now for x in eqn.invars if type(x) is Var]) else eqn)
            made.update(dict.fromkeys(eqn.outvars, j))
        return late, copies

    def _recent(self, j: int, made: Mapping[Any, int], last: Mapping[Any, int]) -> Any:
        """A value that is made shortly before an equation behind the border, and is read by it or
        later; rather one that is in memory in any case. None if there is none."""
        found: list[Any] = [v for i in range(j - 1, max(j - _RECENT, self._border) - 1, -1)
                 for v in self._eqns[i].outvars if last.get(v, -1) >= j]
        found = [*[v for v in found if self._eqns[made[v]].primitive.cost is None],
                 *[x for x in self._eqns[j].invars if x in made], *found]
        return found[0] if found else None

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

    def _barrier(self, missing: Sequence[int], now: dict[Any, Any], recent: Any) -> JaxprEqn:
        """A barrier before equations that are done again: of what they read, and of a recent
        value."""
        own = {v for i in missing for v in self._eqns[i].outvars}
        read = dict.fromkeys([x for i in missing for x in self._eqns[i].invars
                              if type(x) is not Literal and x not in own])
        if recent is not None:
            read[recent] = None
        behind = [Var(x.aval) for x in read]
        barrier = JaxprEqn(optimization_barrier_p, _read(list(read), now), behind, {}, no_effects,
                           self._eqns[missing[0]].source_info)
        now.update(zip(read, behind, strict=True))
        return barrier


def _variables(eqn: JaxprEqn) -> list[Any]:
    return [x for x in eqn.invars if type(x) is not Literal]


def _read(atoms: Sequence[Atom], now: Mapping[Any, Any]) -> list[Atom]:
    return [x if type(x) is Literal else now.get(x, x) for x in atoms]


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
            ) -> tuple[JaxprEqn, JaxprEqn, list[JaxprEqn]] | None:
        """Both with fewer values stacked, and what the late one computes again; None: all stay."""
        early, late, holder = self._early, self._late, self._early.primitive.holder
        n = holder.times(early.params)
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
        eqns = [*body.eqns, *[e.replace(invars=_read(e.invars, same)) for e in body_late.eqns]]
        outer = dict(zip(body.invars, zip(early.invars, held.ins, strict=True), strict=True))
        values = _Values(eqns, len(body.eqns), body.invars)
        always: set[Any] = {v for v, (x, role) in outer.items() if role == holder.constant
                  or (role == sliced and x in self._always)}
        always |= {v for v, x in zip(body.outvars, early.outvars, strict=True)
                   if x not in self._alone and x in late.invars}
        size = search.machine.sizes

        def keep(v: Any) -> float:
            return 0.0 if v in always else price * size(holder.outside(
                v.aval, sliced, early.params))

        again = values.cut(keep, search.work)
        if not again:
            return None
        eqns_late, copies = values.late(again, set(), barred=False)
        read = dict.fromkeys([x for e in eqns_late for x in e.invars if x in values.made])
        read.update(dict.fromkeys([same[x] for x in body_late.outvars if x in same]))
        return (*self._rebuilt(body, body_late, eqns_late, list(read), same, outer, sliced, n),
                copies)

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
        places = [k for k, x in enumerate(early.outvars)
                  if x not in self._alone or held.outs[k] != sliced or id(x) in kept
                  or x not in late.invars]
        first = body.replace(outvars=[*[body.outvars[k] for k in places], *[v for v, _ in more]])
        first = dce_jaxpr(first, (True,) * len(first.outvars))
        new_early = holder.eqn(early, [ClosedJaxpr(first, [])], early.invars, held.ins,
                               [*[early.outvars[k] for k in places], *[x for _, x in more]],
                               [*[held.outs[k] for k in places], *[sliced] * len(more)])
        return new_early, new_late
