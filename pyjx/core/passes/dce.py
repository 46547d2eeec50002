"""Dead code elimination."""

from __future__ import annotations

from collections.abc import Sequence

from pyjx.core.effects import join_effects, keeps_alive
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var


def dce(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The jaxpr without equations whose results nobody needs; its arguments stay.

    Constants that are no longer used go too.
    """
    jaxpr = dce_jaxpr(closed.jaxpr, (True,) * len(closed.jaxpr.outvars))
    if jaxpr is closed.jaxpr:
        return closed
    used = used_variables(jaxpr)
    kept = [(v, c) for v, c in zip(jaxpr.constvars, closed.consts, strict=True) if v in used]
    return ClosedJaxpr(jaxpr.replace(constvars=[v for v, _ in kept]), [c for _, c in kept])


def dce_jaxpr(jaxpr: Jaxpr, used_outputs: Sequence[bool]) -> Jaxpr:
    """The jaxpr with the outputs where `used_outputs`, and only the equations they need."""
    outvars = [v for v, used in zip(jaxpr.outvars, used_outputs, strict=True) if used]
    live: set[Var] = {v for v in outvars if type(v) is not Literal}  # type: ignore[misc]
    eqns: list[JaxprEqn] = []
    changed = len(outvars) < len(jaxpr.outvars)
    for eqn in reversed(jaxpr.eqns):
        used = [v in live for v in eqn.outvars]
        if not any(used) and not (eqn.effects and keeps_alive(eqn.effects)):
            changed = True
            continue
        if eqn.primitive.dce is not None:
            live_eqn = eqn.primitive.dce(eqn, tuple(used))
            changed = changed or live_eqn is not eqn
            eqn = live_eqn
        eqns.append(eqn)
        live.update([v for v in eqn.invars if type(v) is not Literal])  # type: ignore[misc]
    if not changed:
        return jaxpr
    eqns.reverse()
    return jaxpr.replace(outvars=outvars, eqns=eqns, effects=join_effects(eqns))


def used_variables(jaxpr: Jaxpr) -> set[Var]:
    """The variables that an equation or the results read."""
    used = {v for e in jaxpr.eqns for v in e.invars if type(v) is not Literal}
    used.update([v for v in jaxpr.outvars if type(v) is not Literal])
    return used  # type: ignore[return-value]
