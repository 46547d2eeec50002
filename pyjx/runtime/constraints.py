"""Constraints on how the values inside a program lie on its devices: those that users ask for, and
what shardings in types become.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import numpy as np

from pyjx import configuration, tree_util
from pyjx.core import dtypes
from pyjx.core.array_type import Array
from pyjx.core.avals import ShapedArray, get_aval, is_valid_value
from pyjx.core.derived import derived_structure
from pyjx.core.effects import no_effects
from pyjx.core.explicit import entries_of
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from pyjx.core.layouts import AutoLayout, Format, Layout
from pyjx.core.meshes import AbstractMesh
from pyjx.core.nested import holds_jaxprs, map_jaxprs
from pyjx.core.places import explicit_sharding, names_no_mesh
from pyjx.core.prefixes import broadcast_argument
from pyjx.core.primitive import Primitive, register
from pyjx.core.source_info import SourceInfo, no_source_info
from pyjx.core.specs import NO_AXES, Axes, PartitionSpec, axes_of
from pyjx.core.trace import Tracer
from pyjx.engine.axes import broadcast_in_dim_p, reduce_sum_p
from pyjx.engine.batching import BatchTrace
from pyjx.engine.moves import device_put_p, reshard_p
from pyjx.engine.moves import sharding_constraint_p as sharding_constraint_p
from pyjx.engine.types import Dims, Value, Values
from pyjx.jaxlib_api import ABORTS_AT_OPEN_RESULTS, JAXLIB_RELEASE, LOSES_OPEN_SUMS, OPENS_SUMS
from pyjx.runtime.array import ArrayImpl, DataArray
from pyjx.runtime.device_put import device_put
from pyjx.runtime.meshes import get_abstract_mesh
from pyjx.runtime.sharding import (
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
    check_annotation,
    check_duplicates,
    summed,
)

if TYPE_CHECKING:
    from pyjx.core.avals import AbstractRef, ShapedArray
    from pyjx.core.meshes import AbstractMesh, Mesh
    from pyjx.jaxlib_api import Sharding


UNCONSTRAINED = PartitionSpec.UNCONSTRAINED


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """Say how arrays lie on the devices of the program that they are computed in.

    Args:
      x: a pytree of arrays.
      shardings: a Sharding or, for the mesh that is set, a PartitionSpec, or a Format, which says
        how elements stand in memory, too; or a pytree prefix of `x` of them. Dimensions that are
        `PartitionSpec.UNCONSTRAINED` are left to XLA.

    Returns:
      `x`; outside of jit, put there.

    Raises:
      RuntimeError: a PartitionSpec is given and no mesh is set.
      ValueError: a sharding has more dimensions than its array, or outside of jit does not
        divide it; or it names an axis of a mesh that is not Auto, along which `reshard` moves.
      AssertionError: all axes of the mesh that is set are Explicit, and the array does not lie so.

    >>> import pyjx as jax
    >>> from pyjx.sharding import AxisType, NamedSharding, PartitionSpec
    >>> mesh = jax.make_mesh((1,), ("x",), axis_types=(AxisType.Auto,))
    >>> rows = NamedSharding(mesh, PartitionSpec("x"))
    >>> jax.jit(lambda x: jax.lax.with_sharding_constraint(2 * x, rows))(jax.numpy.ones(3)).tolist()
    [2.0, 2.0, 2.0]
    """
    leaves, tree = tree_util.tree_flatten(x)
    for i, leaf in enumerate(leaves):
        if not is_valid_value(leaf):
            raise TypeError("with_sharding_constraint requires arrays, got "
                            f"{type(leaf)} at position {i}.")
    targets = broadcast_argument("with_sharding_constraint shardings", shardings, x)
    return tree_util.tree_unflatten(tree, [
        leaf if s is None else _lying_so(leaf, s) for leaf, s in zip(leaves, targets, strict=True)])


def _lying_so(x: Any, target: Any) -> Any:
    given, layout = (target.sharding, target.layout) if isinstance(target, Format) else (
        target, None)
    sharding = resolved(given, "with_sharding_constraint", mesh=configuration.entered_mesh.value)
    _check_is_not_manual(sharding)
    if getattr(sharding, "mesh", None) is not None and not _asserts(sharding.mesh):
        _check_is_auto(sharding)
    return constrained(x, sharding, layout if isinstance(layout, Layout) else None)


def resolved(sharding: Any, caller: str, argument: str = "shardings",
             mesh: Mesh | AbstractMesh | None = None) -> Any:
    """The sharding that was given as `argument`, or stands for a spec along the mesh that is set,
    or else along `mesh`.

    Raises:
      RuntimeError: no mesh is set.
      TypeError: it is neither.
      ValueError: it is over the empty mesh.
    """
    if isinstance(sharding, PartitionSpec):
        known = get_abstract_mesh()
        mesh = known if mesh is None or not known.empty else mesh
        if mesh.empty:
            raise RuntimeError(
                f"{caller} requires a non-empty mesh in context if you are passing "
                f"`PartitionSpec`s to {argument}. You can define a context mesh via "
                f"`jax.set_mesh(mesh)`. Alternatively, provide `Sharding`s to {argument} and then "
                "the mesh context manager is not required.")
        check_duplicates(sharding, argument)
        return NamedSharding(mesh, sharding)
    if names_no_mesh(sharding):
        raise ValueError(f"One of {argument} leaf specifications got an empty NamedSharding: "
                         f"{sharding}, which is not allowed. Leave it out, or name a mesh.")
    if isinstance(sharding, Sharding):
        return sharding
    check_no_layout(sharding)
    raise TypeError(f"{caller}: shardings are of type Sharding or PartitionSpec, got {sharding!r} "
                    f"of type {type(sharding)}.")


def check_no_layout(given: Any) -> None:
    """ValueError for a layout where a sharding or a Format should be."""
    if isinstance(given, (Layout, AutoLayout)):
        raise ValueError(
            "`jax.jit` does not accept device-local layouts directly. Create a `Format` instance "
            f"wrapping this device-local layout and pass that to `jit` instead. Got {given}")


def constrained(x: Any, sharding: Sharding, layout: Layout | None = None) -> Any:
    """A value that is to lie as `sharding` says, its elements as `layout`."""
    aval = get_aval(x)
    known = not isinstance(x, Tracer) and all([type(n) is int for n in aval.shape])

    def what() -> str:
        return "One of with_sharding_constraint arguments"

    check_annotation(what, sharding, aval.shape, divides=known)
    if layout is not None:
        check_annotation(what, layout, aval.shape, "layout")
    mesh = getattr(sharding, "mesh", None)
    if mesh is not None and _asserts(mesh):
        return _asserted(x, aval, sharding)
    free = frozenset([i for i, p in enumerate(getattr(sharding, "spec", ())) if p is UNCONSTRAINED])
    if mesh is not None and aval.place.sharding is not None and (
            mesh.abstract_mesh == aval.place.sharding.mesh):
        sharding = _with_types_axes(sharding, aval)
    return sharding_constraint_p.bind(x, sharding=sharding, layout=layout,
                                      context_mesh=get_abstract_mesh(), unconstrained_dims=free)


def _asserts(mesh: Mesh | AbstractMesh) -> bool:
    return bool(mesh.explicit_axes and mesh.are_all_axes_explicit
                and get_abstract_mesh().explicit_axes)


def _check_is_not_manual(sharding: Sharding | None) -> None:
    """Along Manual axes a value is that of one device, inside the program of which this is."""
    spec = getattr(sharding, "spec", None)
    manual = set(get_abstract_mesh().manual_axes)
    if spec is not None and not manual.isdisjoint(axes_of(spec)):
        raise ValueError(
            f"with_sharding_constraint: {spec} contains manual axes, which shard_map maps over "
            f"here: {sorted(map(str, manual))}. Inside of shard_map constraints may only name axes "
            "of the mesh that are not manual.")


def _check_is_auto(sharding: Sharding) -> None:
    """Along other axes than Auto ones a value lies as its type says, whatever is asked for here."""
    if not set(sharding.mesh.auto_axes).issuperset(axes_of(sharding.spec)):
        raise ValueError(
            "The spec of NamedSharding passed to with_sharding_constraint can only refer to Auto "
            f"axes of the mesh. Got spec={sharding.spec} and mesh={sharding.mesh}. You probably "
            "meant to use `reshard` API?")


def _with_types_axes(sharding: Sharding, aval: ShapedArray | AbstractRef) -> Any:
    """The constraint along Auto axes, with the Explicit ones that the value's type names."""
    given = [*sharding.spec, *[None] * (aval.ndim - len(sharding.spec))]
    entries = [p if e is None else e if p is UNCONSTRAINED or p is None else
               (*axes_of((e,)), *[a for a in axes_of((p,)) if a not in axes_of((e,))])
               for p, e in zip(given, entries_of(aval), strict=True)]
    return sharding.update(spec=sharding.spec.update(partitions=entries))


def _asserted(x: Any, aval: ShapedArray | AbstractRef, sharding: Sharding) -> Any:
    """Along axes that are all Explicit the type says how a value lies."""
    if (type(x) is ArrayImpl and not isinstance(x.sharding, NamedSharding)
            and not isinstance(sharding.mesh, AbstractMesh)):
        return device_put(x, sharding)
    found = explicit_sharding(sharding.mesh.abstract_mesh, sharding.spec, aval.ndim)
    entries = [None] * aval.ndim if found is None else found.spec
    sums, own = sharding.spec, aval.place.spec
    wanted = PartitionSpec(*entries, unreduced=sums.unreduced, reduced=sums.reduced)
    spec = PartitionSpec(*entries_of(aval), unreduced=own.unreduced, reduced=own.reduced)
    if wanted != spec:
        raise AssertionError(
            "`with_sharding_constraint` acts as an assert when all axes of mesh are of type "
            f"`Explicit`. The array sharding: {spec} did not match the "
            f"sharding provided: {wanted}. Please use `jax.sharding.reshard` to shard your input "
            "to the sharding you want.")
    return x


def _impl(x: Value, *, sharding: Sharding, layout: Layout | None, **params: Any) -> Array:
    if isinstance(getattr(sharding, "mesh", None), AbstractMesh):
        sharding = sharding.update(mesh=_devices_for(x, sharding))
    out = device_put(x, _dividing(x, _fully_constrained(x, sharding)))
    return out if layout is None else device_put(out, Format(layout, out.sharding))


def _dividing(x: Any, sharding: Sharding | None) -> Any:
    """The sharding without what does not divide the value, which is that of all examples of a
    constraint's operand: a program leaves it to the compiler."""
    if not isinstance(sharding, NamedSharding):
        return sharding
    entries = [e if n % math.prod([sharding.mesh.shape[a] for a in axes_of((e,))]) == 0 else None
               for n, e in zip(np.shape(x), sharding.spec, strict=False)]
    if entries == list(sharding.spec):
        return sharding
    return sharding.update(spec=sharding.spec.update(partitions=entries))


def _devices_for(x: Any, sharding: Sharding) -> Any:
    """The mesh of an array that is to lie as a sharding over its shape says, or else the one that
    is set, with devices.

    Raises:
      ValueError: it is no array, or over a mesh of another shape.
      TypeError: it lies along no mesh.
    """
    known = configuration.mesh.value
    if not isinstance(x, (ArrayImpl, DataArray)):
        if known is not None:
            return known
        raise ValueError(
            "Target sharding contains a `jax.sharding.AbstractMesh` which requires the input to be "
            f"a `jax.Array`. Got {type(x)}. Pass a NamedSharding over a Mesh.")
    own = x.sharding
    if not isinstance(own, NamedSharding):
        if known is not None:
            return known
        raise TypeError(
            "The sharding on the input must be a `NamedSharding` since the target sharding has an "
            f"`AbstractMesh` in it. Got sharding type {type(own)} for shape "
            f"{get_aval(x).str_short()}. Put it there by jax.device_put, or pass a NamedSharding "
            "over a Mesh.")
    if own.mesh.shape_tuple != sharding.mesh.shape_tuple:
        raise ValueError(
            f"Mesh shape of the input {own.mesh.shape_tuple} does not match the mesh shape of the "
            f"target sharding {sharding.mesh.shape_tuple} for shape {get_aval(x).str_short()}")
    return own.mesh


def _fully_constrained(x: Any, sharding: Sharding) -> Any:
    """Where it leaves a choice the value stays cut as it is, if that is along this mesh."""
    spec = sharding if isinstance(sharding, PartitionSpec) else getattr(sharding, "spec", None)
    if spec is None or UNCONSTRAINED not in spec:
        return sharding
    own = getattr(x, "sharding", None)
    has: Any = ()
    if isinstance(own, NamedSharding) and own.mesh == getattr(sharding, "mesh", None):
        has = own.spec
    used = axes_of(spec)
    entries = []
    for i, entry in enumerate(spec):
        if entry is UNCONSTRAINED:
            own = axes_of((has[i] if i < len(has) else None,))
            entry = tuple(takewhile(lambda name: name not in used, own))
        entries.append(entry)
    spec = PartitionSpec(*entries)
    return spec if isinstance(sharding, PartitionSpec) else sharding.update(spec=spec)


def _batch(trace: BatchTrace, operands: Values, dims: Dims, *, sharding: Sharding,
           layout: Layout | None, unconstrained_dims: Any, **params: Any) -> tuple[Value, Any]:
    (x,), (dim,) = operands, dims
    assert dim is not None  # the rule is asked for operands that are mapped
    if layout is not None:
        layout = layout.mapped(dim)
    spec = getattr(sharding, "spec", None)
    if spec is not None:
        name = trace.axis.spmd_name
        along = entries_of(get_aval(x))[dim] or (UNCONSTRAINED if name is None else name)
        entries = [*spec, *[None] * (dim - len(spec))]
        entries.insert(dim, along)
        sharding = sharding.update(spec=spec.update(partitions=entries))
        unconstrained_dims = frozenset([i for i, p in enumerate(entries) if p is UNCONSTRAINED])
    return sharding_constraint_p.bind(
        x, sharding=sharding, layout=layout, unconstrained_dims=unconstrained_dims,
        **params), dim


def _placed(params: dict[str, Any]) -> Sequence[Any]:
    sharding = params["sharding"]
    return () if type(sharding) is SingleDeviceSharding else (sharding,)


sharding_constraint_p.define(
    transpose=lambda ct, x, **params: [sharding_constraint_p.bind(ct, **params)],
    batch_axis=_batch,
    impl=_impl,
    placed=_placed,
    physical=lambda avals, x, **params: sharding_constraint_p.bind(x, **params),
)


# -- shardings in types ----------------------------------------------------------------------------

# Of sums over a mesh that are yet to be taken (core/open_sums.py) the partitioner knows less than
# the types: it takes any operation for one on parts whose result is to be a part, and refuses many
# on parts. So an operation on open sums becomes a program for each device along their axes, which
# computes its part; and what makes an open sum of whole values makes a whole one first.


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
    jaxpr = _rewritten(closed.jaxpr)
    return closed if jaxpr is closed.jaxpr else ClosedJaxpr(jaxpr, closed.consts)


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
