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

# A run stays where more than one in so many equations is for several results: it is no map over
# them but a chain, such as the steps of an unrolled loop, each of which has a result besides.
MOST_SHARED = 4
_SHARED = -1


def by_result(jaxpr: Jaxpr, at_least: int) -> Jaxpr:
    """The jaxpr with each run of `at_least` fusible equations ordered by the results that they are
    for; what is for several comes first."""
    eqns = list(jaxpr.eqns)
    barriers = [i for i, e in enumerate(eqns) if e.primitive.cost is None]
    for before, end in pairwise([-1, *barriers, len(eqns)]):
        if end - before > at_least:
            eqns[before + 1:end] = _ordered(eqns[before + 1:end])
    return jaxpr.replace(eqns=eqns) if any(map(is_not, eqns, jaxpr.eqns)) else jaxpr


def _ordered(run: list[JaxprEqn]) -> list[JaxprEqn]:
    """A result is made by an equation whose values no other one of the run reads. An equation for
    one result reads what is for the same one or for several, so values are made before they are
    read in the order by results, too."""
    of_value: dict[Atom, int] = {}  # the place of the result that a value is for, or _SHARED
    of_eqn = [0] * len(run)
    for i in range(len(run) - 1, -1, -1):
        results = {of_value[v] for v in run[i].outvars if v in of_value}
        of_eqn[i] = result = i if not results else results.pop() if len(results) == 1 else _SHARED
        for v in run[i].invars:
            if type(v) is not Literal and of_value.setdefault(v, result) != result:
                of_value[v] = _SHARED
    if of_eqn.count(_SHARED) * MOST_SHARED > len(run):
        return run
    return [run[i] for i in sorted(range(len(run)), key=of_eqn.__getitem__)]
