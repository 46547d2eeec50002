"""Dead code elimination."""

from __future__ import annotations

from collections.abc import Sequence

from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var


def dce(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The jaxpr without equations whose results nobody needs; its arguments stay.

    Constants that are no longer used go too.
    """
    jaxpr = dce_jaxpr(closed.jaxpr, (True,) * len(closed.jaxpr.outvars))
    if jaxpr is closed.jaxpr:
        return closed
    used = {v for e in jaxpr.eqns for v in e.invars if type(v) is not Literal}
    used.update(v for v in jaxpr.outvars if type(v) is not Literal)
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
        if not any(used) and not eqn.effects:
            changed = True
            continue
        if eqn.primitive.name == "jit":
            call = _live_call(eqn, tuple(used))
            changed = changed or call is not eqn
            eqn = call
        eqns.append(eqn)
        live.update([v for v in eqn.invars if type(v) is not Literal])  # type: ignore[misc]
    if not changed:
        return jaxpr
    return jaxpr.replace(outvars=outvars, eqns=eqns[::-1])


def _live_call(eqn: JaxprEqn, used: tuple[bool, ...]) -> JaxprEqn:
    """The call of a jaxpr that computes only the results that are used, from what they need."""
    closed: ClosedJaxpr = eqn.params["jaxpr"]
    key = "dce", used
    if key not in closed.memo:
        jaxpr = dce_jaxpr(closed.jaxpr, used)
        needed = {v for e in jaxpr.eqns for v in e.invars if type(v) is not Literal}
        needed.update(v for v in jaxpr.outvars if type(v) is not Literal)
        keep = [v in needed for v in jaxpr.invars]
        invars = [v for v, k in zip(jaxpr.invars, keep, strict=True) if k]
        same = jaxpr is closed.jaxpr and all(keep)
        closed.memo[key] = (
            closed if same else ClosedJaxpr(jaxpr.replace(invars=invars), closed.consts), keep)
    pruned, keep = closed.memo[key]
    if pruned is closed:
        return eqn
    donated = [d for d, k in zip(eqn.params["donated_invars"], keep, strict=True) if k]
    return eqn.replace(
        invars=[v for v, k in zip(eqn.invars, keep, strict=True) if k],
        outvars=[v for v, u in zip(eqn.outvars, used, strict=True) if u],
        params={**eqn.params, "jaxpr": pruned, "donated_invars": tuple(donated)},
    )
