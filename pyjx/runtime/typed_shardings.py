"""Shardings and open sums in types, as the compiler is to see them: constraints on values, and
programs for each device.

Of sums over a mesh that are yet to be taken (core/open_sums.py) the partitioner knows less than the
types: it takes any operation for one on parts whose result is to be a part, and refuses many on
parts. So an operation on open sums becomes a program for each device along their axes, which
computes its part; and what makes an open sum of whole values makes a whole one first."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pyjx.core import dtypes
from pyjx.core.avals import AbstractRef, ShapedArray
from pyjx.core.derived import derived_structure
from pyjx.core.effects import no_effects
from pyjx.core.evaluation import holds_jaxprs, map_jaxprs
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from pyjx.core.meshes import AbstractMesh, Mesh
from pyjx.core.primitive import Primitive, register
from pyjx.core.source_info import SourceInfo, no_source_info
from pyjx.core.specs import NO_AXES, Axes, PartitionSpec, axes_of
from pyjx.engine.axes import broadcast_in_dim_p, reduce_sum_p
from pyjx.engine.moves import device_put_p, reshard_p, sharding_constraint_p
from pyjx.jaxlib_api import (
    ABORTS_AT_OPEN_RESULTS,
    JAXLIB_RELEASE,
    LOSES_OPEN_SUMS,
    OPENS_SUMS,
    Sharding,
)
from pyjx.runtime.sharding import NamedSharding, summed


def _shape_rule(*avals: Any, jaxpr: ClosedJaxpr, out_avals: Any, **params: Any) -> list[Any]:
    return list(out_avals)


# Made where types become constraints, to be lowered.
on_parts_p: Primitive = register(Primitive(
    "on_parts", multiple_results=True, cached=False, shape_rule=_shape_rule, outlined=False))


# What makes of a whole value a part of a sum on one device, and zeros on the others.
open_sum_p: Primitive = register(Primitive("open_sum", shape_rule=lambda x, **params: x))


def spec_in_full(mesh: Mesh | AbstractMesh, aval: ShapedArray | AbstractRef) -> PartitionSpec:
    """What a type says of all dimensions; the compiler may cut them along Auto axes, too."""
    spec = aval.place.spec
    entries = [*spec, *[None] * (aval.ndim - len(spec))]
    if mesh.auto_axes:
        entries = [PartitionSpec.UNCONSTRAINED if e is None else e for e in entries]
    return spec.update(partitions=entries)


def _open_axes(avals: Any) -> Axes:
    return NO_AXES.union(*[a.place.spec.unreduced for a in avals])


def _adds_up(eqn: JaxprEqn) -> bool:
    """Whether open sums come of an operation because it is one of what devices have."""
    return eqn.primitive.contracts or eqn.primitive is reduce_sum_p


def made_types(eqn: JaxprEqn, aval: ShapedArray | AbstractRef) -> list[Any]:
    """The types that a result of type `aval` takes one after the other: that which the operation
    gives it first, if it is not the last one as it opens sums or closes them."""
    found = _open_axes([v.aval for v in eqn.invars])
    if found == aval.place.spec.unreduced or holds_jaxprs(eqn) or (
            not found and _adds_up(eqn)):
        return [aval]
    spec = aval.place.spec
    entries = [tuple([a for a in axes_of((e,)) if a not in found]) for e in spec]
    entries += [()] * (aval.ndim - len(entries))
    mesh = next(s.mesh for v in (*eqn.invars, *eqn.outvars)
                if (s := v.aval.place.sharding) is not None)
    return [aval.placed(sharding=NamedSharding(
        mesh, PartitionSpec(*entries, unreduced=found))), aval]


def on_parts(mesh: Mesh | AbstractMesh, eqn: JaxprEqn, made: JaxprEqn) -> list[JaxprEqn]:
    """The equations that take the place of one, `eqn`, that has become `made`, whose types tell
    nothing of the mesh."""
    axes = _open_axes([v.aval for v in eqn.invars])
    if holds_jaxprs(eqn):
        if axes and LOSES_OPEN_SUMS and eqn.primitive.name in ("scan", "while", "cond"):
            raise NotImplementedError(
                f"{eqn.primitive.name}: jaxlib {JAXLIB_RELEASE} takes operands that are sums along "
                f"{sorted(axes)} twice. Use 0.8, or take these sums before, by `jax.reshard`.")
        return _with_stacked_parts(mesh, eqn, made)
    if not axes or eqn.primitive.placed is not None:
        return [made]
    types = {v: old.aval for v, old in zip(made.invars, eqn.invars, strict=True)
             if type(v) is not Literal}
    inner: dict[Any, Any] = {v: Var(v.aval) for v in types}
    outs = [Var(v.aval) for v in made.outvars]
    body = made.replace([inner.get(v, v) if type(v) is not Literal else v for v in made.invars],
                        outs)
    program = ClosedJaxpr(Jaxpr([], list(inner.values()), outs, [body]), [])
    return [_region(mesh, axes, program, list(types), made.outvars,
                    [spec_in_full(mesh, a) for a in types.values()],
                    [spec_in_full(mesh, made_types(eqn, v.aval)[0]) for v in eqn.outvars],
                    eqn.source_info)]


def _region(mesh: Mesh | AbstractMesh | None, axes: Axes, program: ClosedJaxpr, operands: Any,
            results: Any, in_specs: Any, out_specs: Any, source_info: SourceInfo) -> JaxprEqn:
    """What each device along these axes does."""
    return JaxprEqn(on_parts_p, operands, results, {
        "jaxpr": program, "mesh": mesh, "newly_manual_axes": axes, "in_specs": tuple(in_specs),
        "out_specs": tuple(out_specs), "out_avals": tuple([v.aval for v in results]),
    }, no_effects, source_info)


def with_open_results(closed: ClosedJaxpr, types: Any, shardings: Any) -> ClosedJaxpr:
    """The program with constraints on results that are to be open sums by their shardings and are
    not by their `types`. A compiler that cannot give such results takes them for whole values, of
    which each device has its own."""
    outs: list[Any] = list(closed.jaxpr.outvars)
    eqns = list(closed.jaxpr.eqns)
    info = no_source_info
    for i, (aval, sharding) in enumerate(zip(types, shardings, strict=False)):
        spec = getattr(sharding, "spec", None)
        if spec is None or not spec.unreduced:
            continue
        if not spec.unreduced <= aval.place.spec.unreduced:
            whole = spec.update(unreduced=aval.place.spec.unreduced, unreduced_kind=None)
            x, closed_one, outs[i] = outs[i], Var(outs[i].aval), Var(outs[i].aval)
            eqns += [_constraint(x, closed_one, sharding.update(spec=whole), info),
                     _open_sum(closed_one, outs[i], sharding, info)]
        if ABORTS_AT_OPEN_RESULTS:
            x, part, outs[i] = outs[i], Var(outs[i].aval), Var(outs[i].aval)
            eqns.append(_region(
                sharding.mesh, spec.unreduced, ClosedJaxpr(Jaxpr([], [part], [part], []), []), [x],
                [outs[i]], [spec], [summed(sharding).spec], info))
    if len(eqns) == len(closed.jaxpr.eqns):
        return closed
    return ClosedJaxpr(closed.jaxpr.replace(outvars=outs, eqns=eqns), closed.consts)


# -- stacks of open sums, which loops cut slices of and write slices to ----------------------------


def _with_stacked_parts(mesh: Mesh | AbstractMesh, eqn: JaxprEqn, made: JaxprEqn) -> list[JaxprEqn]:
    """An equation that holds programs. Open sums that it takes slices of, or stacks, come and go as
    arrays that have the devices' parts along a dimension."""
    program = made.params.get("jaxpr")
    if not isinstance(program, ClosedJaxpr) or eqn.primitive.holder.within is not None or (
            len(program.in_avals) != len(eqn.invars)):
        return [made]
    inside = program.jaxpr
    before: list[JaxprEqn] = []
    after: list[JaxprEqn] = []
    first: list[JaxprEqn] = []
    last: list[JaxprEqn] = []
    invars, given = list(made.invars), list(inside.invars)
    outvars, results = list(made.outvars), list(inside.outvars)
    for i, (old, v) in enumerate(zip(eqn.invars, inside.invars, strict=True)):
        if _open_axes([old.aval]) and old.aval.shape != v.aval.shape:
            invars[i] = _as_cut(mesh, old.aval, made.invars[i], 1, eqn, before)
            given[i] = _cut_var(old.aval, v.aval, 0)
            _as_part(mesh, old.aval, given[i], v, 0, eqn, first)
    for i, (old, x) in enumerate(zip(eqn.outvars, inside.outvars, strict=False)):
        if _open_axes([old.aval]) and old.aval.shape != x.aval.shape:
            outvars[i] = _cut_var(old.aval, made.outvars[i].aval, 1)
            _as_part(mesh, old.aval, outvars[i], made.outvars[i], 1, eqn, after)
            results[i] = _as_cut(mesh, old.aval, x, 0, eqn, last)
    if not before and not after:
        return [made]
    body = inside.replace(invars=given, outvars=results, eqns=[*first, *inside.eqns, *last])
    params = {**made.params, "jaxpr": ClosedJaxpr(body, program.consts)}
    return [*before, made.replace(invars, outvars, params=params), *after]


def _cut_var(typed: Any, aval: ShapedArray, at: int) -> Var:
    """A variable for the parts that devices have of an open sum of type `typed`, or of a slice of
    it, along dimension `at`; `aval` is the type of one part."""
    sizes = typed.place.sharding.mesh.shape
    count = math.prod([sizes[a] for a in typed.place.spec.unreduced])
    return Var(aval.update(shape=(*aval.shape[:at], count, *aval.shape[at:])))


def _specs(mesh: Mesh | AbstractMesh, typed: Any, ndim: int, at: int
          ) -> tuple[PartitionSpec, PartitionSpec]:
    """Those of an open sum of rank `ndim` and of its parts along dimension `at`; slices have the
    last dimensions of the whole."""
    spec = spec_in_full(mesh, typed)
    entries = list(spec)[typed.ndim - ndim:]
    axes = tuple([a for a in mesh.axis_names if a in spec.unreduced])
    return spec.update(partitions=entries), PartitionSpec(*entries[:at], axes, *entries[at:])


def _as_cut(mesh: Mesh | AbstractMesh, typed: Any, x: Any, at: int, eqn: JaxprEqn,
            eqns: list[JaxprEqn]) -> Var:
    """Append what makes of an open sum the array of its parts, which is cut."""
    aval = x.aval
    cut = _cut_var(typed, aval, at)
    given, out = Var(aval), Var(aval.update(shape=(*aval.shape[:at], 1, *aval.shape[at:])))
    body = JaxprEqn(broadcast_in_dim_p, [given], [out], {
        "shape": out.aval.shape, "sharding": None,
        "broadcast_dimensions": tuple([i + (i >= at) for i in range(aval.ndim)]),
    }, no_effects, eqn.source_info)
    own, parts = _specs(mesh, typed, aval.ndim, at)
    eqns.append(_region(mesh, typed.place.spec.unreduced, ClosedJaxpr(Jaxpr(
        [], [given], [out], [body]), []), [x], [cut], [own], [parts],
        eqn.source_info))
    return cut


def _as_part(mesh: Mesh | AbstractMesh, typed: Any, cut: Var, out: Var, at: int, eqn: JaxprEqn,
             eqns: list[JaxprEqn]) -> None:
    """Append what makes of the array of its parts the open sum `out`."""
    aval = out.aval
    given, part = Var(aval.update(shape=(*aval.shape[:at], 1, *aval.shape[at:]))), Var(aval)
    body = JaxprEqn(reduce_sum_p, [given], [part], {"axes": (at,), "out_sharding": None},
                    no_effects, eqn.source_info)
    own, parts = _specs(mesh, typed, aval.ndim, at)
    eqns.append(_region(mesh, typed.place.spec.unreduced, ClosedJaxpr(Jaxpr(
        [], [given], [part], [body]), []), [cut], [out], [parts], [own],
        eqn.source_info))


@derived_structure
def types_as_constraints(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program without shardings in types: constraints say how values lie. The same one if its
    types have none.

    The passes and the lowering know nothing of shardings in types, then.
    """
    return closed.with_jaxpr(_rewritten(closed.jaxpr))


def _rewritten(jaxpr: Jaxpr) -> Jaxpr:
    new: dict[Any, Any] = {}  # for each variable whose type has a sharding one without
    eqns: list[JaxprEqn] = []
    for v in jaxpr.all_invars:
        if v.aval.place.sharding is not None:
            new[v] = Var(v.aval.placed(sharding=None))
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
        results: list[Var] = []
        constraints: list[JaxprEqn] = []
        for v in eqn.outvars:
            out = v
            if v.aval.place.sharding is not None:
                out = new[v] = Var(v.aval.placed(sharding=None))
            placed = eqn.primitive.placed is not None and eqn.primitive.holder.within is None
            if not placed and not (eqn.primitive.placed and out is v):
                made = made_types(eqn, v.aval)
                if len(made) > 1 and v.aval.place.spec.unreduced - made[0].place.spec.unreduced:
                    out = _opened(mesh, v.aval, out, eqn, constraints)
                    made = made[:1]
                for aval in made[::-1]:
                    out = _constrained(mesh, aval, out, eqn, constraints)
            results.append(out)
        if eqn.primitive in (device_put_p, reshard_p):
            params, results = _put_closed(mesh, eqn, params, results, constraints)
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
        sharding = v.aval.place.sharding
        if sharding is not None:
            return sharding.mesh
    return None


def _put_closed(mesh: Mesh | AbstractMesh, eqn: JaxprEqn, params: Any, results: list[Var],
                eqns: list[JaxprEqn]) -> tuple[Any, list[Var]]:
    """The parameters and results of what puts values somewhere. What is to be an open sum is put as
    it comes, and opened behind: the compiler would leave a copy with each device."""
    puts = eqn.primitive is device_put_p
    places = list(params["devices"] if puts else (params["dst_sharding"],))
    outs = list(results)
    for i, (v, result) in enumerate(zip(eqn.invars, eqn.outvars, strict=True)):
        before = v.aval.place.spec.unreduced
        if not result.aval.place.spec.unreduced <= before:
            outs[i] = _opened(mesh, result.aval, results[i], eqn, eqns)
            own = None if puts or not OPENS_SUMS else v.aval.place.sharding
            places[i] = own or places[i].update(spec=places[i].spec.update(
                unreduced=before, unreduced_kind=None))
    return {**params, **({"devices": tuple(places)} if puts else {"dst_sharding": places[0]})}, outs


def _numbers_at_shape(mesh: Mesh | AbstractMesh, eqn: JaxprEqn, operands: list[Any],
                      eqns: list[JaxprEqn]) -> list[Any]:
    """The operands, with arrays that lie as the result does for the numbers that an elementwise
    operation takes beside arrays."""
    wide = eqn.outvars[0].aval
    p = eqn.primitive
    if not p.cached or p.multiple_results or p.sharding_rule is not None or not wide.ndim or (
            wide.place.sharding is None or wide.place.spec.unreduced
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


def _constraint(x: Any, out: Var, sharding: Sharding, source_info: SourceInfo,
                free: Any = frozenset()) -> JaxprEqn:
    return JaxprEqn(sharding_constraint_p, [x], [out], {
        "sharding": sharding, "layout": None, "context_mesh": sharding.mesh,
        "unconstrained_dims": free}, no_effects, source_info)


def _open_sum(x: Any, out: Var, sharding: Sharding, source_info: SourceInfo) -> JaxprEqn:
    told = OPENS_SUMS and not dtypes.issubdtype(x.aval.dtype, np.complexfloating)
    return JaxprEqn(open_sum_p, [x], [out], {"sharding": sharding, "told": told}, no_effects,
                    source_info)


def _opened(mesh: Mesh | AbstractMesh, aval: ShapedArray | AbstractRef, out: Var, eqn: JaxprEqn,
            eqns: list[JaxprEqn]) -> Var:
    """Append what makes `out` an open sum of this type; the variable of the whole value."""
    before = Var(out.aval)
    eqns.append(_open_sum(before, out, NamedSharding(mesh, spec_in_full(mesh, aval)),
                          eqn.source_info))
    return before


def _constrained(mesh: Mesh | AbstractMesh, aval: ShapedArray | AbstractRef, out: Var,
                 eqn: JaxprEqn, eqns: list[JaxprEqn]) -> Var:
    """Append the constraint that makes `out` what its type says; the variable that it is put on."""
    if type(aval) is not ShapedArray or aval.dtype == dtypes.float0:
        return out
    before = Var(out.aval)
    free = frozenset(range(aval.ndim)) if mesh.auto_axes else frozenset()
    eqns.append(_constraint(before, out, NamedSharding(mesh, spec_in_full(mesh, aval)),
                            eqn.source_info, free))
    return before
