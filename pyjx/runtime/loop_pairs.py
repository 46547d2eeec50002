"""Loops of which one reads what the other stacks, cut as one program: its early part is the body of
one, and its late part that of the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pyjx.core.evaluation import replaced
from pyjx.core.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Var
from pyjx.core.lifetimes import Liveness
from pyjx.core.passes.dce import dce, dce_jaxpr
from pyjx.core.places import MEMORY_KINDS, Space
from pyjx.core.source_info import SourceInfo
from pyjx.engine.moves import moved_eqn
from pyjx.runtime.cuts import Costs, Values, flattened

_HOST = MEMORY_KINDS[Space.Host]
_MOVED = 1 << 16  # bytes of an iteration that are worth a transfer to the host


def cut_loops(eqns: list[JaxprEqn], border: int, results: Sequence[Atom], always: set[Any],
               price: float, costs: Costs) -> list[tuple[JaxprEqn, int, float]]:
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
            cut = pair.cut(price, costs) if pair.fits() else None
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

    def cut(self, price: float, costs: Costs
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
        size = costs.machine.sizes

        def moves(v: Any) -> bool:
            return price > costs.machine.to_host and v not in always and size(v.aval) >= _MOVED

        def keep(v: Any) -> float:
            return 0.0 if v in always else (costs.machine.to_host if moves(v) else price) * size(
                holder.outside(v.aval, sliced, early.params))

        live = Liveness(body, costs.machine, loop=True)

        def work(eqn: JaxprEqn) -> float:
            return costs.work(eqn) if eqn.outvars[0] in live.size else costs.fused_work(eqn)

        border, times = len(body.eqns), holder.times(early.params)
        wanted = replaced(body_late.outvars, same)
        whole = [*body.eqns, *[e.replace(invars=replaced(e.invars, same)) for e in body_late.eqns]]
        inside = list(whole)
        deeper = cut_loops(inside, border, [*wanted, *[
            v for x, v in zip(early.outvars, body.outvars, strict=True) if x not in of]], always,
            price, costs)
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
        eqns_late = [*back, *[e.replace(invars=replaced(e.invars, now)) for e in eqns_late]]
        done = [*done, *[(e, 1, costs.machine.to_host * size(e.outvars[0].aval)) for e in back]]
        return (*self._rebuilt(
            body.replace(eqns=[*eqns_early, *there.values()]),
            body_late.replace(outvars=replaced(replaced(body_late.outvars, same), now)), eqns_late,
            [there[v].outvars[0] if v in there else v for v in read], same, outer, sliced),
            done) if done else None

    def _staying(self, body: Jaxpr, outer: Mapping[Any, tuple[Any, Any]], sliced: Any) -> set[Any]:
        """The values of the early body that are in memory whatever the late one reads."""
        return {v for v, (x, role) in outer.items()
                if role == self._early.primitive.holder.constant
                or (role == sliced and x in self._always)} | {
            v for v, x in zip(body.outvars, self._early.outvars, strict=True)
            if x not in self._alone and x in self._late.invars}

    def _rebuilt(self, body: Jaxpr, body_late: Jaxpr, eqns: list[JaxprEqn], read: list[Any],
                 same: Mapping[Any, Any], outer: Mapping[Any, tuple[Any, Any]], sliced: Any
                 ) -> tuple[JaxprEqn, JaxprEqn]:
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
                      replaced(replaced(body_late.outvars, same), inner),
                      [e.replace(invars=replaced(e.invars, inner)) for e in eqns],
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
    there = {v: moved_eqn(v, Var(v.aval.placed(memory_space=Space.Host)), _HOST, info)
             for v in values}
    return there, [moved_eqn(e.outvars[0], Var(v.aval), "device", info) for v, e in there.items()]
