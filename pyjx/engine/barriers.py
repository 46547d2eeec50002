"""The primitive `optimization_barrier`: values that XLA may not see through; and where loops get
barriers."""

from __future__ import annotations

from typing import Any

from pyjx.core.derived import derived_structure
from pyjx.core.effects import no_effects
from pyjx.core.explicit import entries_of
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var
from pyjx.core.linearity import APART
from pyjx.core.nested import holders_in, map_jaxprs
from pyjx.core.primitive import Primitive, register
from pyjx.engine.tangents import Zero
from pyjx.engine.types import Dims, Operand, Tangents, Values


def _jvp(primals: Values, tangents: Tangents) -> Any:
    return optimization_barrier_p.bind(*primals), _barred(tangents)


def _transpose(cts: Tangents, *operands: Operand) -> list[Any]:
    return _barred(cts)


def _barred(tangents: Tangents) -> list[Any]:
    """Tangents or cotangents behind a barrier of their own, which holds up no primals."""
    known = [t for t in tangents if type(t) is not Zero]
    behind = iter(optimization_barrier_p.bind(*known) if known else ())
    return [t if type(t) is Zero else next(behind) for t in tangents]


def _batch(operands: Values, dims: Dims) -> Any:
    return optimization_barrier_p.bind(*operands), dims


optimization_barrier_p = register(Primitive(
    "optimization_barrier", moves=True, shape_rule=lambda *avals: avals,
    sharding_rule=lambda outs, *xs: list(map(entries_of, xs)), multiple_results=True, jvp=_jvp,
    transpose=_transpose, batch=_batch, linear=APART,
))


# -- reads before updates --------------------------------------------------------------------------


@derived_structure
def with_reads_first(closed: ClosedJaxpr, repeated: bool = False) -> ClosedJaxpr:
    """The program with the reads of what a loop carries before its update in place, and a barrier
    between them; `repeated` says that it is the body of one.

    XLA's CPU compiler computes a read again wherever its value is wanted. Where that is behind the
    update, it copies the carry, whole, in each iteration.
    """
    jaxpr = _reads_first(closed.jaxpr, repeated)
    return closed if jaxpr is closed.jaxpr else ClosedJaxpr(jaxpr, closed.consts)


def _reads_first(jaxpr: Jaxpr, repeated: bool) -> Jaxpr:
    eqns = [_with_reads_first_inside(e, repeated) for e in holders_in(jaxpr)]
    inside = {id(old): new for old, new in zip(holders_in(jaxpr), eqns, strict=True)
              if new is not old}
    if inside:
        jaxpr = jaxpr.replace(eqns=[inside.get(id(e), e) for e in jaxpr.eqns])
    if repeated and any([e.primitive.in_place for e in jaxpr.eqns]):
        for carried in [e.invars[0] for e in jaxpr.eqns if e.primitive.in_place]:
            if type(carried) is Var and carried in jaxpr.invars and _is_large(carried.aval):
                jaxpr = _with_barrier(jaxpr, carried)
    return jaxpr


def _with_reads_first_inside(eqn: JaxprEqn, repeated: bool) -> JaxprEqn:
    inside = eqn.primitive.holder.loops or (repeated and eqn.primitive.is_call)
    params = map_jaxprs(eqn.params, lambda closed: with_reads_first(closed, inside),
                        lambda jaxpr: _reads_first(jaxpr, inside))
    return eqn if params is eqn.params else eqn.replace(params=params)


_COPIED = 256  # elements, from which on a copy counts beside a barrier


def _is_large(aval: Any) -> bool:
    return all([type(n) is int for n in aval.shape]) and aval.size >= _COPIED


def _with_barrier(jaxpr: Jaxpr, carried: Var) -> Jaxpr:
    """The program with a barrier between the reads of one value and its update, if both are all
    that becomes of it and no read needs what the update makes."""
    users = [e for e in jaxpr.eqns if carried in e.invars]
    reads = [e for e in users if e.primitive.accumulate is not None]
    updates = [e for e in users if e.primitive.in_place]
    held = [v for e in reads for v in e.outvars]
    if (len(updates) != 1 or not reads or len(users) > len(reads) + 1 or carried in jaxpr.outvars
            or any([type(n) is not int for v in held for n in v.aval.shape])
            or 4 * sum([v.aval.size for v in held]) > carried.aval.size):
        return jaxpr
    needed: set[Any] = set(held)
    first: list[JaxprEqn] = []
    for eqn in reversed(jaxpr.eqns):
        if not needed.isdisjoint(eqn.outvars):
            first.append(eqn)
            needed.update([v for v in eqn.invars if type(v) is Var])
    if updates[0] in first or any([e.effects for e in first]):
        return jaxpr
    behind: dict[Any, Var] = {v: Var(v.aval) for v in (carried, *held)}
    barrier = JaxprEqn(optimization_barrier_p, list(behind), list(behind.values()), {}, no_effects,
                       updates[0].source_info)
    before = set(map(id, first))
    rest = [e.replace(invars=[behind.get(v, v) if type(v) is Var else v for v in e.invars])
            for e in jaxpr.eqns if id(e) not in before]
    return jaxpr.replace(eqns=[*reversed(first), barrier, *rest],
                         outvars=[behind.get(v, v) if type(v) is Var else v
                                  for v in jaxpr.outvars])
