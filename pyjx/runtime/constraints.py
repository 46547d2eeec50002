"""Constraints on how the values inside a program lie on its devices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import numpy as np

from pyjx import configuration, tree_util
from pyjx.core.array_type import Array
from pyjx.core.avals import get_aval, is_valid_value
from pyjx.core.explicit import entries_of
from pyjx.core.layouts import AutoLayout, Format, Layout
from pyjx.core.meshes import AbstractMesh
from pyjx.core.places import explicit_sharding, names_no_mesh
from pyjx.core.prefixes import broadcast_argument
from pyjx.core.specs import PartitionSpec, axes_of
from pyjx.core.trace import Tracer
from pyjx.engine.batching import BatchTrace
from pyjx.engine.moves import sharding_constraint_p as sharding_constraint_p
from pyjx.engine.types import Dims, Value, Values
from pyjx.runtime.array import ArrayImpl, DataArray
from pyjx.runtime.device_put import device_put
from pyjx.runtime.meshes import get_abstract_mesh
from pyjx.runtime.sharding import (
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
    check_annotation,
    check_duplicates,
)

if TYPE_CHECKING:
    from pyjx.core.avals import AbstractRef, ShapedArray
    from pyjx.core.meshes import Mesh

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
