"""What `checkpoint` saves within a budget: what costs most to compute again of the values that a
backward pass reads.

At a price for a byte that is saved a minimum cut of the function's program (runtime/cuts.py)
says what is saved and what is computed again. The price is the least at which what is saved fits.
As layers that repeat would all change at one price, values that are made early pay that or more,
and those that are made later one below. In loops a byte and the work for it are as many times more,
so their bodies are cut at the same price.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pyjx.core.effects import keeps_alive
from pyjx.core.evaluation import jaxprs_of, map_jaxprs
from pyjx.core.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn
from pyjx.core.lifetimes import device_bytes
from pyjx.core.passes.dce import dce
from pyjx.core.places import Space
from pyjx.engine.residuals import Chosen, Policy, Within, cut_jaxpr, kept_by, results_of
from pyjx.engine.subjaxprs import selected
from pyjx.runtime import backends
from pyjx.runtime.budgets import bytes_on
from pyjx.runtime.cuts import Values, Work, flattened, work_on

# Of a byte, in arithmetic operations: what is not worth that is never computed again, nor saved.
_PRICES = (0.0, *[4 * 1.25**k for k in range(150)])
# How far above and below the least price at which all fits those are that values pay which are made
# early and late. What is computed again for one is there for others, so the nearest do not suffice.
_APART = ((0, 1), (3, 4))
_FORBIDDEN, _UNKNOWN = 1 << 60, 1 << 56  # what a value costs that may not stay; that nobody knows


def within(closed: ClosedJaxpr, n: int, given: Within) -> tuple[ClosedJaxpr, Chosen]:
    """A program to cut, and the policy that says where, so that what is saved fits into a budget.

    Args:
      closed: a program whose results from the n-th one on a backward pass reads.
      given: the budget, and what may be saved at all.
    """
    device = backends.default_device()
    budget, work = bytes_on(given.budget, device), _whole(work_on(device.platform))
    flat = _flat(closed)
    fitting: list[tuple[float, Chosen]] = []  # with what each computes again

    def fits(level: int, cheaper: int = 0, split: int = sys.maxsize) -> bool:
        """Whether what is saved fits at a price, or at two, of which values pay the cheaper one
        that are not made by the first equations."""
        dear, cheap = _PRICES[min(level, len(_PRICES) - 1)], _PRICES[cheaper]
        policy = Chosen(given.policy, _Cut(given.policy, work, lambda jaxpr, i: (
            cheap if jaxpr is flat.jaxpr and i >= split else dear)).stays)
        cut = cut_jaxpr(flat, policy, *results_of(flat, n))
        fit = sum([device_bytes(v.aval) for v in dict.fromkeys(cut.known.jaxpr.outvars[n:])
                   if getattr(v.aval, "memory_space", Space.Device) is Space.Device]) <= budget
        if fit:
            fitting.append((sum(map(work, cut.again.eqns)), policy))
        return fit

    least = bisect_left(range(len(_PRICES) - 1), True, key=fits)
    for above, below in _APART if least else ():
        bisect_left(range(len(flat.eqns)), True, key=partial(
            fits, least + above, max(least - below, 0)))
    policy = min(fitting, key=lambda f: f[0])[1] if fitting else Chosen(
        given.policy, lambda jaxpr, wanted: set())
    return flat, policy


def _flat(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program and those of its loops with what they call in their places."""
    flat = dce(flattened(closed))
    eqns = [e.replace(params=map_jaxprs(e.params, _flat, lambda j: j))
            if e.primitive.holder.loops else e for e in flat.eqns]
    return ClosedJaxpr(flat.jaxpr.replace(eqns=eqns), flat.consts)


def _whole(work: Work) -> Work:
    """What equations cost, with the programs in them."""
    def of(eqn: JaxprEqn) -> float:
        inner = [sum(map(of, p.eqns)) for p in jaxprs_of(eqn)]
        own = (eqn.primitive.holder.times(eqn.params) or 1) * max(inner) if inner else work(eqn)
        return min(own, _UNKNOWN)

    return of


class _Cut:
    """Cuts of programs at a price for a byte of what each equation makes, given by its number."""

    def __init__(self, policy: Policy, work: Work, price: Callable[[Jaxpr, int], float]) -> None:
        self._policy = policy
        self._work = work
        self._price = price

    def stays(self, jaxpr: Jaxpr, wanted: Sequence[Atom]) -> set[Any]:
        """The values that are saved where they are read."""
        reads, inside = self._read(jaxpr, wanted)
        values = Values(jaxpr.eqns, [len(jaxpr.eqns)], jaxpr.all_invars)
        allowed = [kept_by(self._policy, e) for e in jaxpr.eqns]

        def keep(v: Any) -> float:
            i = values.made[v]
            if i < 0 or v in inside or jaxpr.eqns[i].effects:
                return 0.0
            if allowed[i] is True:
                return self._price(jaxpr, i) * device_bytes(v.aval)
            return 0.0 if allowed[i] else _FORBIDDEN

        again = values.cut(reads, keep, self._work)
        return {v for e in jaxpr.eqns for v in e.outvars} - again - inside

    def _read(self, jaxpr: Jaxpr, wanted: Sequence[Atom]) -> tuple[list[Any], set[Any]]:
        """What is read by the backward pass, loops that are cut inside and effects that are had
        again; and the results of these loops."""
        reads, inside = dict.fromkeys(wanted), set()
        policy = Chosen(self._policy, self.stays)
        for eqn in reversed(jaxpr.eqns):
            holder, effects = eqn.primitive.holder, keeps_alive(eqn.effects)
            if holder.cut is not None and holder.held is not None:
                n = holder.held(eqn.params).carry
                used = tuple([i >= n and v in reads for i, v in enumerate(eqn.outvars)])
                again = holder.cut(eqn, policy, used).again if any(used) or effects else None
                inside.update(selected(eqn.outvars, used))
                reads.update(dict.fromkeys([] if again is None else again.invars))
            elif effects and not kept_by(self._policy, eqn):
                reads.update(dict.fromkeys(eqn.invars))
        return list(reads), inside
