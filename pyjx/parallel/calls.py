"""`shard_map` as a primitive: a call of the program of each device along some axes of a mesh.

At its border values change shape: a spec for each operand and result says which axes of the mesh
cut which of its dimensions. Inside there are the named axes of the mesh. What is derived from the
program is derived there, and gets specs from those that there are: a tangent that of its primal, a
cotangent that of its value. A residual of the derivative gets all axes along which it may vary,
along its first dimension, so that each device finds its own again.

Without the types that say what varies (`check_vma=False`) all values may vary. A result whose spec
leaves an axis out has then the same value on all devices along it, whose cotangent they share; and
the cotangents of an operand whose spec leaves an axis out are added up along it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from pyjx import lax
from pyjx.core.array_type import Array
from pyjx.core.avals import AbstractValue, get_aval
from pyjx.core.bounded import BoundedDict
from pyjx.core.contents import contents
from pyjx.core.derived import derived
from pyjx.core.effects import Effects, NamedAxisEffect
from pyjx.core.evaluation import jaxpr_as_fun
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.meshes import AbstractMesh, Mesh
from pyjx.core.named_axes import Axis, mesh_axes, spmd_names
from pyjx.core.primitive import Primitive, register
from pyjx.core.records import Record
from pyjx.core.specs import HiPspec, PartitionSpec, axes_of
from pyjx.core.trace import trace_to_jaxpr
from pyjx.engine.batching import BatchTrace
from pyjx.engine.calls import call
from pyjx.engine.holders import Held, Holder, Programs, Roles
from pyjx.engine.own_types import each_part
from pyjx.engine.subjaxprs import (
    TransposedJaxpr,
    batch_jaxpr,
    consts_as_inputs,
    nonzero_flags,
    selected,
    transpose_jaxpr,
)
from pyjx.engine.types import Dims, Flags, Params, Tangents, Values
from pyjx.lax.collectives import psum_p
from pyjx.runtime.array import ArrayImpl
from pyjx.runtime.device_put import device_put
from pyjx.runtime.dispatch import single_eqn_jaxpr
from pyjx.runtime.sharding import NamedSharding, check_spec

Specs = tuple[PartitionSpec, ...]
WHOLE = PartitionSpec()


# -- types at the border ---------------------------------------------------------------------------


def ordered(mesh: Mesh | AbstractMesh, names: Any) -> tuple[Any, ...]:
    """Axes of a mesh in the order that they have there."""
    return tuple([n for n in mesh.axis_names if n in names])


def _within(params: Params) -> AbstractContextManager[None]:
    mesh = params["mesh"]
    names = ordered(mesh, params["newly_manual_axes"])
    return mesh_axes(mesh.abstract_mesh, names, params["check_vma"])


def _unmentioned(spec: PartitionSpec, params: Params) -> tuple[Any, ...]:
    """The manual axes that a spec leaves out, and no mapped axis lies along. All parts of a value
    of a library's type leave the same out."""
    each = {frozenset(axes_of(part)) for part in spec.to_lo()}
    if len(each) > 1:
        raise NotImplementedError(
            f"shard_map: a value that lies as {spec} is differentiated with check_vma=False, and "
            "its parts lie along other axes each. Have its type say along which they vary.")
    return ordered(params["mesh"], params["newly_manual_axes"].difference(spmd_names(), *each))


@derived
def _with_vectors(closed: ClosedJaxpr, inputs: Flags, outputs: Flags) -> ClosedJaxpr:
    """The program with those scalars of its inputs and outputs that have a flag as vectors of one
    element, which a spec may cut."""
    def fun(*args: Any) -> list[Any]:
        outs = jaxpr_as_fun(closed)(*[lax.reshape(x, ()) if flag else x
                                      for x, flag in zip(args, inputs, strict=True)])
        return [lax.reshape(x, (1,)) if flag else x for x, flag in zip(outs, outputs, strict=True)]

    avals = [a.update(shape=(1,)) if flag else a
             for a, flag in zip(closed.in_avals, inputs, strict=True)]
    return trace_to_jaxpr(fun, avals, closed.debug_info)


class _Vector(Record):
    """The role of a scalar that a spec cuts: outside it is a vector."""

    spec: PartitionSpec


# -- reverse mode ----------------------------------------------------------------------------------


@derived
def _transposed_untyped(closed: ClosedJaxpr, linear: Flags, ct_nonzero: Flags,
                        shares: tuple[int, ...], sums: tuple[tuple[Any, ...], ...]
                        ) -> TransposedJaxpr:
    """The transposed program without types that say what varies.

    Args:
      shares: for each cotangent that is given, among how many devices it is shared.
      sums: for each linear operand the axes along which its cotangent is added up.
    """
    pulled = transpose_jaxpr(closed, linear, ct_nonzero)
    first = len(pulled.jaxpr.in_avals) - len(shares)
    axes = selected(sums, pulled.nonzero)

    def fun(*args: Any) -> list[Any]:
        cts = [each_part(partial(_share, k), ct) if k > 1 else ct
               for ct, k in zip(args[first:], shares, strict=True)]
        outs = jaxpr_as_fun(pulled.jaxpr)(*args[:first], *cts)
        return [each_part(partial(psum_p.bind, axes=names, axis_index_groups=None), x,
                          frozenset(map(NamedAxisEffect, names))) if names else x
                for x, names in zip(outs, axes, strict=True)]

    program = trace_to_jaxpr(fun, pulled.jaxpr.in_avals, closed.debug_info)
    return TransposedJaxpr(program, pulled.nonzero)


def _share(k: int, x: Array) -> Array:
    return lax.div(x, lax.full_like(x, k))


# -- batching --------------------------------------------------------------------------------------


def _batch(trace: BatchTrace, operands: Values, dims: Dims, **params: Any) -> Any:
    axis = trace.axis
    spmd = axes_of(axis.sharding.spec if axis.sharding is not None else
                   axis.spmd_name if isinstance(axis.spmd_name, tuple) else (axis.spmd_name,))
    check_spec(params["mesh"], PartitionSpec(tuple(spmd)))
    names = tuple([n for n in spmd if n in params["newly_manual_axes"]])
    if names:
        for where in ("in_specs", "out_specs"):
            if any([not set(axes_of(s)).isdisjoint(names) for s in params[where]]):
                raise ValueError(f"vmap spmd_axis_name cannot appear in shard_map {where}, got "
                                 f"{tuple(names)} and {params[where]}")
        parts = math.prod([params["mesh"].shape[n] for n in names])
        if axis.size % parts:
            raise ValueError(f"vmap: the mapped axis of size {axis.size} cannot be cut into "
                             f"{parts} parts along {names}")
        rest = tuple([n for n in spmd if n not in params["newly_manual_axes"]])
        axis = Axis(axis.name, axis.size // parts, sharding=axis.sharding.update(
            spec=PartitionSpec(rest)) if rest and axis.sharding is not None else None)
    with _within(params):
        batched = batch_jaxpr(params["jaxpr"], tuple(dims), axis, None,
                              frozenset(names if params["check_vma"] else ()))
    results = _holder.bind(
        [batched.jaxpr], operands, params,
        [_inserted(s, d, names) for s, d in zip(params["in_specs"], dims, strict=True)],
        [_inserted(s, d, names) for s, d in zip(params["out_specs"], batched.dims, strict=True)])
    return results, batched.dims


def _inserted(spec: Any, dim: int | None, names: tuple[Any, ...]) -> Any:
    """A spec of examples as that of batches."""
    if isinstance(spec, HiPspec) and dim is not None:
        raise NotImplementedError(f"vmap of shard_map: a value that lies as {spec} is mapped, and "
                                  "nobody knows how its batch lies. Map inside of shard_map.")
    if dim is None or (len(spec) <= dim and not names):
        return spec
    entries = [*spec, *[None] * (dim - len(spec))]
    entries.insert(dim, names or None)
    return spec.update(partitions=entries)


# -- on values -------------------------------------------------------------------------------------

# By what they compute: each call of a mapped function traces it anew.
_programs = BoundedDict(256, "programs of mapped functions")


def _impl(*operands: Any, **params: Any) -> list[Any]:
    closed: ClosedJaxpr = params["jaxpr"]
    avals = tuple(map(get_aval, operands))
    key = avals, contents(closed), *[params[k] for k in _BORDER]
    program = None if key[1] is None else _programs.get(key)
    if program is None:
        _check_places(operands, params["mesh"])
        program = single_eqn_jaxpr(shard_map_p, avals, params)
        if key[1] is not None:
            _programs[key] = program
    outs = call(program, "shard_map", *operands)
    return [_named(x, params["mesh"], s) for x, s in zip(outs, params["out_specs"], strict=True)]


def _check_places(operands: Sequence[Any], mesh: Mesh | AbstractMesh) -> None:
    """Raise ValueError for an array that has been put on one device of several."""
    for x in operands:
        if type(x) is ArrayImpl and x._committed and x.sharding.num_devices == 1 < mesh.size:
            raise ValueError(
                "device_put with explicit device not allowed within shard_map-decorated functions, "
                f"nor what it has made among their arguments, but got {x.aval.str_short()} on "
                f"{next(iter(x.sharding.device_set))}, while the function is for the devices of "
                f"{mesh}. Call device_put without a device, or with a sharding over the mesh.")


def _named(x: Array, mesh: Any, spec: PartitionSpec) -> Any:
    """The result, whose sharding has the spec as it was given."""
    if type(x) is not ArrayImpl:
        return x
    found = x.sharding
    if found.spec == spec or (
            mesh.abstract_mesh != found.mesh.abstract_mesh):
        return x
    named = NamedSharding(found.mesh, spec, memory_kind=found.memory_kind)
    return device_put(x, named) if named.is_equivalent_to(found, x.ndim) else x


_BORDER = ("mesh", "in_specs", "out_specs", "check_vma", "newly_manual_axes")


# -- the primitive ---------------------------------------------------------------------------------

shard_map_p: Primitive = register(Primitive(
    "shard_map", multiple_results=True, cached=False, batch_axis=_batch,
    impl=_impl, placed=lambda params: (params["mesh"],),
    physical=lambda avals, *operands, **params: shard_map_p.bind(*operands, **params),
))


class _ShardMap(Holder):
    """The role of a value is its spec. Constants are the same on all devices; so is a token, as
    each goes through its effects in order. New values of references lie as these do."""

    constant = WHOLE
    lacks = ("accumulate",)
    within = staticmethod(_within)

    def held(self, params: Params) -> Held:
        return Held((params["jaxpr"],), 0, params["in_specs"], params["out_specs"], 0, 0)

    def derived_params(self, params: Params, programs: Programs, ins: Roles, outs: Roles,
                       linear: bool = False) -> Params:
        return {**params, "jaxpr": programs[0], "in_specs": tuple(ins), "out_specs": tuple(outs)}

    def roles_of_parts(self, roles: Roles, counts: Sequence[int]) -> Roles:
        return [part for role, n in zip(roles, counts, strict=True)
                for part in (role.to_lo() if isinstance(role, HiPspec) else (role,) * n)]

    def tangent_roles(self, roles: Roles) -> Roles:
        return [r.to_tangent_spec() if isinstance(r, HiPspec) else r for r in roles]

    def devices(self, params: Params) -> int:
        return math.prod([params["mesh"].shape[name] for name in params["newly_manual_axes"]])

    def times(self, params: Params) -> int:
        """Each of the devices runs the program."""
        return self.devices(params)

    def outside(self, aval: Any, role: Any, params: Params) -> Any:
        if type(role) is _Vector:
            aval, role = aval.update(shape=(1,)), role.spec
        if aval.is_high:
            return aval if role is WHOLE else aval.unshard(
                params["mesh"], params["check_vma"], role)
        return aval.unshard(params["mesh"], True, role, params["newly_manual_axes"])

    def derived(self, params: Params, derive: Callable[..., Any], *args: Any) -> Any:
        with _within(params):
            return derive(*args)

    def residual_roles(self, avals: Sequence[Any], params: Params) -> Roles:
        names = params["newly_manual_axes"]
        roles: list[Any] = []
        for aval in avals:
            if aval.is_high:
                roles.append(aval.nospec(params["mesh"], params["check_vma"],
                                         ordered(params["mesh"], names)))
                continue
            axes = ordered(params["mesh"], aval.place.mat.varying & names if params["check_vma"]
                           else names - spmd_names())
            mat = aval.place.mat
            spec = PartitionSpec(*[axes] if axes else (), unreduced=mat.unreduced & names,
                                 reduced=mat.reduced & names)
            roles.append(_Vector(spec) if axes and not aval.shape else spec)
        return roles

    def cotangent_roles(self, roles: Roles) -> Roles:
        return [spec.to_ct_spec() for spec in roles]

    def written_role(self, role: Any, aval: AbstractValue, params: Params) -> Any:
        beyond = (aval.place.mat.varying & params["newly_manual_axes"]).difference(axes_of(role))
        if params["check_vma"] and beyond:
            raise ValueError(
                f"shard_map: a reference that is cut as {role} is written a value of type "
                f"{aval.str_short()}, which varies along {sorted(map(str, beyond))}, too. Name "
                "these axes in the spec of the reference, or reduce the value over them.")
        return role

    def closed_over(self, programs: Programs) -> tuple[Programs, Sequence[Any]]:
        return [consts_as_inputs(programs[0])], programs[0].consts

    def arranged(self, programs: Programs, operands: Sequence[Any], ins: Roles, outs: Roles,
                 params: Params) -> Any:
        inputs, outputs = [tuple([type(role) is _Vector for role in roles])
                           for roles in (ins, outs)]
        if True in inputs or True in outputs:
            programs = [self.derived(params, _with_vectors, programs[0], inputs, outputs)]
            ins, outs = [[role.spec if type(role) is _Vector else role for role in roles]
                         for roles in (ins, outs)]
        return programs, operands, ins, outs, None

    def transposed(self, params: Params, closed: ClosedJaxpr, linear: Flags, cts: Tangents,
                   added: Flags | None) -> TransposedJaxpr:
        nonzero = nonzero_flags(cts)
        if params["check_vma"]:
            return transpose_jaxpr(closed, linear, nonzero)
        sizes = params["mesh"].shape
        given, linear_specs = [self.cotangent_roles(selected(params[name], flags))
                               for name, flags in (("out_specs", nonzero), ("in_specs", linear))]
        return _transposed_untyped(  # type: ignore[no-any-return]
            closed, linear, nonzero,
            tuple([math.prod([sizes[a] for a in _unmentioned(s, params)]) for s in given]),
            tuple([_unmentioned(s, params) for s in linear_specs]))

    def effects(self, params: Params) -> Effects:
        own = params["newly_manual_axes"]
        return frozenset([e for e in params["jaxpr"].effects
                          if not (type(e) is NamedAxisEffect and e.name in own)])


_holder = _ShardMap(shard_map_p)
