"""Shardings in types, as the compiler is to see them: constraints on values."""

from __future__ import annotations

from typing import Any

from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray
from pyjx.core.derived import derived_structure
from pyjx.core.effects import no_effects
from pyjx.core.explicit import retyped
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from pyjx.core.nested import map_jaxprs
from pyjx.core.open_sums import OUTSIDE
from pyjx.core.specs import PartitionSpec
from pyjx.engine.axes import broadcast_in_dim_p
from pyjx.engine.explicit import reshard_p
from pyjx.runtime.constraints import sharding_constraint_p
from pyjx.runtime.open_sums import made_types, on_parts, open_sum_p, spec_in_full
from pyjx.runtime.sharding import NamedSharding


@derived_structure
def types_as_constraints(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program without shardings in types: constraints say how values lie. The same one if its
    types have none.

    The passes and the lowering know nothing of shardings in types, then.
    """
    jaxpr = _rewritten(closed.jaxpr)
    return closed if jaxpr is closed.jaxpr else ClosedJaxpr(jaxpr, closed.consts)


def _rewritten(jaxpr: Jaxpr) -> Jaxpr:
    new: dict[Any, Any] = {}  # for each variable whose type has a sharding one without
    eqns: list[JaxprEqn] = []
    for v in jaxpr.all_invars:
        if v.aval.explicit_sharding is not None:
            new[v] = Var(retyped(v.aval, None))
    changed = bool(new)
    for eqn in jaxpr.eqns:
        params = map_jaxprs(eqn.params, types_as_constraints, _rewritten)
        mesh = _mesh_of(eqn)
        if mesh is None:
            changed = changed or params is not eqn.params
            eqns.append(eqn if params is eqn.params else eqn.replace(params=params))
            continue
        changed = True
        invars = [v if type(v) is Literal else new.get(v, v) for v in eqn.invars]
        if eqn.primitive is reshard_p and _opens(eqn):
            (old,), (out,) = eqn.invars, eqn.outvars
            new[out] = Var(retyped(out.aval, None))
            opening: list[JaxprEqn] = []
            whole = _opened(mesh, out.aval, new[out], eqn, opening)
            given = _constrained(mesh, old.aval, whole, eqn, opening)
            eqns += [e.replace(invars if e.invars[0] is given else None) for e in opening[::-1]]
            continue
        results: list[Var] = []
        constraints: list[JaxprEqn] = []
        for v in eqn.outvars:
            out = v
            if v.aval.explicit_sharding is not None:
                out = new[v] = Var(retyped(v.aval, None))
            placed = eqn.primitive.placed is not None and eqn.primitive.within is None
            if not placed and not (eqn.primitive.placed and out is v):
                made = made_types(eqn, v.aval)
                if len(made) > 1 and OUTSIDE.unreduced(v.aval) - OUTSIDE.unreduced(made[0]):
                    out = _opened(mesh, v.aval, out, eqn, constraints)
                    made = made[:1]
                for aval in made[::-1]:
                    out = _constrained(mesh, aval, out, eqn, constraints)
            results.append(out)
        if eqn.primitive.placed is not None and eqn.primitive.within is None:
            invars = _closed_before(eqn, invars, eqns)
        elif len(results) == 1 and any([type(v) is Literal for v in invars]):
            invars = _numbers_at_shape(mesh, eqn, invars, eqns)
        new_eqn = JaxprEqn(eqn.primitive, invars, results, params, eqn.effects, eqn.source_info)
        eqns += on_parts(mesh, eqn, new_eqn)
        eqns += constraints[::-1]
    if not changed:
        return jaxpr
    return Jaxpr([new.get(v, v) for v in jaxpr.constvars], [new.get(v, v) for v in jaxpr.invars],
                 [v if type(v) is Literal else new.get(v, v) for v in jaxpr.outvars], eqns,
                 jaxpr.effects, jaxpr.debug_info)


def _mesh_of(eqn: JaxprEqn) -> Any:
    """The mesh in the types of an equation; None if there is none."""
    for v in (*eqn.outvars, *eqn.invars):
        sharding = v.aval.explicit_sharding
        if sharding is not None:
            return sharding.mesh
    return None


def _closed_before(eqn: JaxprEqn, operands: list[Any], eqns: list[JaxprEqn]) -> list[Any]:
    """The operands of what makes parts of sums of values: the compiler would take these for such
    parts, too, and leave a copy with each device, unless constraints say that they are whole."""
    out = list(operands)
    for i, (v, result) in enumerate(zip(eqn.invars, eqn.outvars, strict=False)):
        sharding = result.aval.explicit_sharding
        own = v.aval.explicit_sharding
        if sharding is not None and sharding.spec.unreduced and not (own and own.spec.unreduced):
            spec = PartitionSpec(*[None] * v.aval.ndim) if own is None else own.spec
            out[i] = Var(retyped(v.aval, None))
            eqns.append(_constraint(operands[i], out[i], NamedSharding(sharding.mesh, spec), eqn))
    return out


def _numbers_at_shape(mesh: Any, eqn: JaxprEqn, operands: list[Any], eqns: list[JaxprEqn]
                      ) -> list[Any]:
    """The operands, with arrays that lie as the result does for the numbers that an elementwise
    operation takes beside arrays."""
    wide = eqn.outvars[0].aval
    p = eqn.primitive
    if not p.cached or p.multiple_results or p.sharding_rule is not None or not wide.ndim or (
            wide.explicit_sharding is None or OUTSIDE.unreduced(wide)
            or any([v.aval.shape not in ((), wide.shape) for v in eqn.invars])):
        return operands
    out = list(operands)
    for i, v in enumerate(operands):
        if type(v) is Literal and not v.aval.ndim:
            out[i] = Var(v.aval.update(shape=wide.shape, weak_type=False))
            made: list[JaxprEqn] = []
            before = _constrained(mesh, wide.update(dtype=v.aval.dtype), out[i], eqn, made)
            eqns.append(JaxprEqn(broadcast_in_dim_p, [v], [before], {
                "shape": wide.shape, "broadcast_dimensions": (), "sharding": None,
            }, no_effects, eqn.source_info))
            eqns += made
    return out


def _constraint(x: Any, out: Var, sharding: Any, eqn: JaxprEqn, free: Any = frozenset()
                ) -> JaxprEqn:
    return JaxprEqn(sharding_constraint_p, [x], [out], {
        "sharding": sharding, "layout": None, "context_mesh": sharding.mesh,
        "unconstrained_dims": free}, no_effects, eqn.source_info)


def _opens(eqn: JaxprEqn) -> bool:
    """Whether an equation makes an open sum of a value that is none along some axis."""
    (x,), (out,) = eqn.invars, eqn.outvars
    return not OUTSIDE.unreduced(out.aval) <= OUTSIDE.unreduced(x.aval)


def _opened(mesh: Any, aval: Any, out: Var, eqn: JaxprEqn, eqns: list[JaxprEqn]) -> Var:
    """Append what makes `out` an open sum of this type; the variable of the whole value."""
    before = Var(out.aval)
    eqns.append(JaxprEqn(open_sum_p, [before], [out], {
        "sharding": NamedSharding(mesh, spec_in_full(mesh, aval))}, no_effects, eqn.source_info))
    return before


def _constrained(mesh: Any, aval: Any, out: Var, eqn: JaxprEqn, eqns: list[JaxprEqn]) -> Var:
    """Append the constraint that makes `out` what its type says; the variable that it is put on."""
    if type(aval) is not ShapedArray or aval.dtype == dtypes.float0:
        return out
    before = Var(out.aval)
    free = frozenset(range(aval.ndim)) if mesh.auto_axes else frozenset()
    eqns.append(_constraint(before, out, NamedSharding(mesh, spec_in_full(mesh, aval)), eqn, free))
    return before
