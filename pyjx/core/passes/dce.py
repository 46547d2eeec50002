"""Dead code elimination."""

from __future__ import annotations

from collections.abc import Sequence

from pyjx.core.derived import derived_structure
from pyjx.core.effects import join_effects, keeps_alive
from pyjx.core.evaluation import map_jaxprs
from pyjx.core.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn


def dce(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The jaxpr without equations whose results nobody needs; its arguments stay.

    Constants that are no longer used go too.
    """
    jaxpr = dce_jaxpr(closed.jaxpr, (True,) * len(closed.jaxpr.outvars))
    if jaxpr is closed.jaxpr:
        return closed
    if not closed.consts:
        return ClosedJaxpr(jaxpr, [])
    return with_used(jaxpr, closed.consts)


def with_used(jaxpr: Jaxpr, consts: Sequence[object]) -> ClosedJaxpr:
    """The program with those of its constants that it uses."""
    used = used_variables(jaxpr)
    kept = [(v, c) for v, c in zip(jaxpr.constvars, consts, strict=True) if v in used]
    return ClosedJaxpr(jaxpr.replace(constvars=[v for v, _ in kept]), [c for _, c in kept])


def dce_jaxpr(jaxpr: Jaxpr, used_outputs: Sequence[bool]) -> Jaxpr:
    """The jaxpr with the outputs where `used_outputs`, and only the equations they need."""
    outvars = [v for v, used in zip(jaxpr.outvars, used_outputs, strict=True) if used]
    live: set[Atom] = set(outvars)  # literals do no harm
    eqns: list[JaxprEqn] = []
    changed = len(outvars) < len(jaxpr.outvars)
    for eqn in reversed(jaxpr.eqns):
        if live.isdisjoint(eqn.outvars) and not (eqn.effects and keeps_alive(eqn.effects)):
            changed = True
            continue
        if eqn.primitive.holder.dce is not None:
            live_eqn = eqn.primitive.holder.dce(eqn, tuple([v in live for v in eqn.outvars]))
            changed = changed or live_eqn is not eqn
            eqn = live_eqn
        eqns.append(eqn)
        live.update(eqn.invars)
    if not changed:
        return jaxpr
    eqns.reverse()
    return jaxpr.replace(outvars=outvars, eqns=eqns, effects=join_effects(eqns))


@derived_structure
def without_effects(closed: ClosedJaxpr, missing: tuple[bool, ...] | None = None) -> ClosedJaxpr:
    """The program without what it does only for its effects: all that, or what depends on the
    inputs that are `missing`."""
    jaxpr = closed.jaxpr
    if not keeps_alive(jaxpr.effects):
        return closed
    absent: set[Atom] = set()
    if missing is not None:
        absent.update([v for v, flag in zip(jaxpr.invars, missing, strict=True) if flag])
    eqns = []
    for eqn in jaxpr.eqns:
        depends = missing is None or not absent.isdisjoint(eqn.invars)
        if depends:
            absent.update(eqn.outvars)
            if eqn.effects and keeps_alive(eqn.effects):
                eqn = eqn.replace(
                    effects=frozenset([e for e in eqn.effects if e.droppable]),
                    params=map_jaxprs(eqn.params, without_effects, lambda j: j))
        eqns.append(eqn)
    return dce(ClosedJaxpr(jaxpr.replace(eqns=eqns, effects=join_effects(eqns)), closed.consts))


def used_variables(jaxpr: Jaxpr) -> set[Atom]:
    """The variables that an equation or the results read, and literals."""
    used = set(jaxpr.outvars)
    for eqn in jaxpr.eqns:
        used.update(eqn.invars)
    return used
