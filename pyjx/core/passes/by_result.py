"""Runs of operations that XLA fuses, in the order of what they make.

An optimizer that maps each of its steps over all parameters leaves a program that goes step by
step, while XLA makes one kernel for each parameter: it fuses all steps of one. Blocks are cut from
neighbouring equations, so those of one kernel must be neighbours, or each step of each layer ends
up in a function of its own with kernels of its own.
"""

from __future__ import annotations

from itertools import pairwise
from operator import is_not

from pyjx.core.jaxpr import Atom, Jaxpr, JaxprEqn, Literal


def by_result(jaxpr: Jaxpr, at_least: int) -> Jaxpr:
    """The jaxpr with each run of `at_least` fusible equations ordered by the results that they are
    for, where its values then live half as long or less; what is for several results stands before
    the first of these."""
    eqns = list(jaxpr.eqns)
    barriers = [i for i, e in enumerate(eqns) if e.primitive.cost is None]
    for before, end in pairwise([-1, *barriers, len(eqns)]):
        if end - before > at_least:
            run = eqns[before + 1:end]
            ordered = _ordered(run)
            if 2 * _lifetimes(ordered) <= _lifetimes(run):
                eqns[before + 1:end] = ordered
    return jaxpr.replace(eqns=eqns) if any(map(is_not, eqns, jaxpr.eqns)) else jaxpr


def _ordered(run: list[JaxprEqn]) -> list[JaxprEqn]:
    """A result is made by an equation whose values no other one of the run reads. What an equation
    reads is for the same result or for several, of which none comes before the equation's, so in
    the order by results, too, values are made before they are read."""
    first: dict[Atom, int] = {}  # by value, the place of the first result that it is for
    shared: set[Atom] = set()  # values for several results
    order: list[tuple[int, bool]] = [(0, False)] * len(run)
    for i in range(len(run) - 1, -1, -1):
        eqn = run[i]
        results = {first[v] for v in eqn.outvars if v in first}
        result = min(results, default=i)
        for_several = len(results) > 1 or not shared.isdisjoint(eqn.outvars)
        order[i] = result, not for_several
        for v in eqn.invars:
            if type(v) is not Literal:
                known = first.setdefault(v, result)
                if for_several or known != result:
                    shared.add(v)
                    first[v] = min(known, result)
    return [run[i] for i in sorted(range(len(run)), key=order.__getitem__)]


def _lifetimes(run: list[JaxprEqn]) -> int:
    """Over how many equations values wait to be read for the last time in the run, in all."""
    made = {v: i for i, e in enumerate(run) for v in e.outvars}
    last = {v: i for i, e in enumerate(run) for v in e.invars if v in made}
    return sum([i - made[v] for v, i in last.items()])
