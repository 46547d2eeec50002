"""Where values of a program come from, in words: for lists of what backward passes keep."""

from __future__ import annotations

from pyjx.core import source_info
from pyjx.core.jaxpr import Atom, Jaxpr, JaxprEqn
from pyjx.engine.checkpoint_names import name_p

Place = tuple[int, ...]


def origin(jaxpr: Jaxpr, v: Atom) -> tuple[Place, str]:
    """Where a value of a program comes from: constants come first, then arguments, then results."""
    if v in jaxpr.invars:
        i = jaxpr.invars.index(v)  # type: ignore[arg-type]
        names = jaxpr.debug_info.arg_names
        return (1, i), f"from the argument {names[i] if names else i}"
    for i, eqn in enumerate(jaxpr.eqns):
        if v not in eqn.outvars:
            continue
        where = source_info.summarize(eqn.source_info)
        if eqn.primitive.holder.runs is not None and not eqn.primitive.is_call:
            place, text = _inside(jaxpr, eqn, eqn.outvars.index(v))
            return (place if place[0] < 2 else (2, i, *place)), text
        for j, e in enumerate(jaxpr.eqns):
            if e.primitive is name_p and v in (*e.outvars, *e.invars):
                where = source_info.summarize(e.source_info)
                return (2, j), f"named '{e.params['name']}' from {where}"
        what = (f"jitted function '{eqn.params['name']}'" if eqn.primitive.is_call
                else eqn.primitive.name)
        return (2, i, eqn.outvars.index(v)), f"output of {what} from {where}"
    return (0, 0), "from a constant"


def _inside(jaxpr: Jaxpr, eqn: JaxprEqn, position: int) -> tuple[Place, str]:
    """The origin of a result of a call, such as the forward pass of a `checkpoint` function."""
    assert eqn.primitive.holder.runs is not None
    called = eqn.primitive.holder.runs(eqn.params).jaxpr
    v = called.outvars[position]
    if v in called.invars:
        return origin(jaxpr, eqn.invars[called.invars.index(v)])
    return origin(called, v)
