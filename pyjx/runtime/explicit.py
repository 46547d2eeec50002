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
from pyjx.core.specs import PartitionSpec
from pyjx.runtime.constraints import UNCONSTRAINED, sharding_constraint_p
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
        results: list[Var] = []
        constraints: list[JaxprEqn] = []
        for v in eqn.outvars:
            out = v
            if v.aval.explicit_sharding is not None:
                out = new[v] = Var(retyped(v.aval, None))
            placed = eqn.primitive.placed is not None and eqn.primitive.within is None
            results.append(out if placed or (eqn.primitive.placed and out is v)
                           else _constrained(mesh, v.aval, out, eqn, constraints))
        operands = [v if type(v) is Literal else new.get(v, v) for v in eqn.invars]
        if eqn.primitive.placed is not None and eqn.primitive.within is None:
            operands = _closed_before(eqn, operands, eqns)
        eqns.append(JaxprEqn(
            eqn.primitive, operands, results, params, eqn.effects, eqn.source_info))
        eqns += constraints
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


def _constraint(x: Any, out: Var, sharding: Any, eqn: JaxprEqn, free: Any = frozenset()
                ) -> JaxprEqn:
    return JaxprEqn(sharding_constraint_p, [x], [out], {
        "sharding": sharding, "layout": None, "context_mesh": sharding.mesh,
        "unconstrained_dims": free}, no_effects, eqn.source_info)


def _constrained(mesh: Any, aval: Any, out: Var, eqn: JaxprEqn, eqns: list[JaxprEqn]) -> Var:
    """Append the constraint that makes `out` what its type says; the variable that it is put on."""
    if type(aval) is not ShapedArray or aval.dtype == dtypes.float0:
        return out
    sharding = aval.explicit_sharding
    spec = PartitionSpec(*[None] * aval.ndim) if sharding is None else sharding.spec
    free: frozenset[int] = frozenset()
    if mesh.auto_axes:  # the compiler may cut along these, too
        free = frozenset(range(aval.ndim))
        spec = spec.update(partitions=[UNCONSTRAINED if e is None else e for e in spec])
    before = Var(out.aval)
    eqns.append(_constraint(before, out, NamedSharding(mesh, spec), eqn, free))
    return before
