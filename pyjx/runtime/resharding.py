"""Values that are to lie otherwise: constraints on those inside a program, `reshard` along the
Explicit axes of a mesh, and axes of other types.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial, wraps
from itertools import takewhile
from typing import Any

import numpy as np

from pyjx import configuration, tree_util
from pyjx.core.array_type import Array
from pyjx.core.avals import AbstractRef, ShapedArray, get_aval, is_valid_value
from pyjx.core.explicit import (
    along_the_mesh_that_is_set,
    check_out_sharding,
    entries_of,
    resolved_sharding,
)
from pyjx.core.forbidden import no_collectives
from pyjx.core.layouts import AutoLayout, Format, Layout, ShardingLike
from pyjx.core.meshes import AbstractMesh, AxisType, Mesh
from pyjx.core.places import HERE, explicit_sharding, names_no_mesh, place_of
from pyjx.core.prefixes import broadcast_argument, of_each_with
from pyjx.core.specs import PartitionSpec, axes_of
from pyjx.core.trace import Tracer, eager_trace, state
from pyjx.engine.batching import BatchTrace
from pyjx.engine.functions import with_at
from pyjx.engine.moves import reshard_p
from pyjx.engine.moves import sharding_constraint_p as sharding_constraint_p
from pyjx.engine.types import Dims, Value, Values
from pyjx.jaxlib_api import Device, DeviceList
from pyjx.runtime.array import ArrayImpl, DataArray
from pyjx.runtime.device_put import device_put
from pyjx.runtime.meshes import get_abstract_mesh
from pyjx.runtime.sharding import (
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
    check_annotation,
    check_duplicates,
    devices_of,
)

# -- constraints inside programs -------------------------------------------------------------------

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
    for i, leaf in enumerate(tree_util.tree_leaves(x)):
        if not is_valid_value(leaf):
            raise TypeError("with_sharding_constraint requires arrays, got "
                            f"{type(leaf)} at position {i}.")
    return of_each_with(_lying_so, "x", x, "with_sharding_constraint shardings", shardings)


def _lying_so(x: Any, target: Any) -> Any:
    if target is None:
        return x
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
            raise RuntimeError(f"{caller} requires a non-empty mesh in context if you are passing "
                               f"`PartitionSpec`s to {argument}. You can define a context mesh via "
                               "`jax.set_mesh(mesh)`. Alternatively, provide `Sharding`s to "
                               f"{argument} and then the mesh context manager is not required.")
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
        raise ValueError(f"with_sharding_constraint: {spec} contains manual axes, which shard_map "
                         f"maps over here: {sorted(map(str, manual))}. Inside of shard_map "
                         "constraints may only name axes of the mesh that are not manual.")


def _check_is_auto(sharding: Sharding) -> None:
    """Along other axes than Auto ones a value lies as its type says, whatever is asked for here."""
    if not set(sharding.mesh.auto_axes).issuperset(axes_of(sharding.spec)):
        raise ValueError("The spec of NamedSharding passed to with_sharding_constraint can only "
                         f"refer to Auto axes of the mesh. Got spec={sharding.spec} and "
                         f"mesh={sharding.mesh}. You probably meant to use `reshard` API?")


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
        raise AssertionError("`with_sharding_constraint` acts as an assert when all axes of mesh "
                             f"are of type `Explicit`. The array sharding: {spec} did not match "
                             f"the sharding provided: {wanted}. Please use `jax.sharding.reshard` "
                             "to shard your input to the sharding you want.")
    return x


def _constrained_now(x: Value, *, sharding: Sharding, layout: Layout | None, **params: Any
                     ) -> Array:
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
        raise TypeError("The sharding on the input must be a `NamedSharding` since the target "
                        f"sharding has an `AbstractMesh` in it. Got sharding type {type(own)} for "
                        f"shape {get_aval(x).str_short()}. Put it there by jax.device_put, or pass "
                        "a NamedSharding over a Mesh.")
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
    impl=_constrained_now,
    placed=_placed,
    physical=lambda avals, x, **params: sharding_constraint_p.bind(x, **params),
)


# -- resharding ------------------------------------------------------------------------------------


def reshard(xs: Any, out_shardings: Any) -> Any:
    """Arrays that lie as their new types say, along the Explicit axes of a mesh.

    Args:
      xs: a pytree of arrays.
      out_shardings: a NamedSharding or, along the mesh that is set, a PartitionSpec, or a pytree
        prefix of `xs` of them. None leaves an array as it is.

    Raises:
      ValueError: no mesh is set, a sharding does not fit its array or names an axis that is not
        Explicit, or `out_shardings` is no prefix of `xs`.

    >>> import pyjx as jax
    >>> with jax.set_mesh(jax.make_mesh((1,), ("x",))):
    ...     jax.typeof(jax.reshard(jax.numpy.ones(3), jax.P("x")))
    ...
    ShapedArray(float32[3@x])
    """
    return of_each_with(_reshard, "xs", xs, "reshard out_shardings", out_shardings)


def _reshard(x: Any, target: Any) -> Any:
    if target is None:
        return x
    sharding = resolved_sharding(target, get_aval(x).shape, "reshard", of_context=False)
    if sharding is None:
        raise ValueError("Reshard should only be used with out_shardings which are non-None and "
                         f"have a non-empty mesh. Got sharding {target}.")
    if sharding.mesh.manual_axes and sharding.spec.unreduced - get_aval(x).place.spec.unreduced:
        raise NotImplementedError(  # XLA aborts
            f"reshard: an open sum ({sharding.spec}) inside a shard_map over "
            f"{sharding.mesh.manual_axes} alone. Map over all axes, or call it outside.")
    mesh = getattr(target, "mesh", None)
    return reshard_p.bind(x, dst_sharding=sharding,
                          concrete_mesh=mesh if isinstance(mesh, Mesh) else None)


def _mesh_of(x: Any) -> Mesh | None:
    """The mesh to put an array on: the one that is set, or else its own."""
    mesh = configuration.mesh.value or getattr(getattr(x, "sharding", None), "mesh", None)
    return mesh if isinstance(mesh, Mesh) else None


def _impl(x: Value, *, dst_sharding: Any, concrete_mesh: Any) -> Array:
    if no_collectives.value:
        reshard_p.out_avals((get_aval(x),), {"dst_sharding": dst_sharding,
                                             "concrete_mesh": concrete_mesh})
    mesh = concrete_mesh or _mesh_of(x)
    if mesh is None:
        raise ValueError("reshard: there are no devices to put an array on. Set the mesh via "
                         f"`jax.set_mesh`, or pass a NamedSharding over one. Got {dst_sharding}")
    mesh = mesh.update(axis_types=dst_sharding.mesh.axis_types)
    return device_put(x, NamedSharding(mesh, _kept_along_auto_axes(x, dst_sharding)))


def _kept_along_auto_axes(x: Any, target: Any) -> PartitionSpec:
    """The spec to move a known value by: along Auto axes of the target's mesh it may lie as it
    does, as the compiler would choose inside a program."""
    own: Any = getattr(x, "sharding", None)
    spec = target.spec
    free = set(target.mesh.auto_axes).difference(axes_of(spec))
    if not free or type(own) is not NamedSharding or own.mesh.shape_tuple != (
            target.mesh.shape_tuple):
        return spec  # type: ignore[no-any-return]
    entries = [new if new is not None else tuple([a for a in axes_of((old,)) if a in free])
               for new, old in zip(spec, (*own.spec, *[None] * len(spec)), strict=False)]
    while entries and not entries[-1] and not target.mesh.explicit_axes:
        entries.pop()
    return spec.update(partitions=entries)  # type: ignore[no-any-return]


reshard_p.define(impl=_impl)


# -- axes of other types ---------------------------------------------------------------------------


def auto_axes(f: Any = None, /, *, axes: str | tuple[str, ...] | None = None,
              out_sharding: ShardingLike = None) -> Any:
    """A function in which the compiler decides how values lie along axes that are Explicit here.

    Args:
      f: the function; without it, a decorator is returned.
      axes: names of the axes; all by default.
      out_sharding: how the results lie, a pytree prefix of them of PartitionSpecs or
        NamedShardings. A call may give another one by this keyword.

    Raises:
      TypeError: neither this nor the call gives `out_sharding`.

    >>> import pyjx as jax
    >>> with jax.set_mesh(jax.make_mesh((1,), ("x",))):
    ...     row = jax.sharding.auto_axes(lambda x: x[0], out_sharding=jax.P())
    ...     row(jax.numpy.ones((3, 2), out_sharding=jax.P("x"))).tolist()
    ...
    [1.0, 1.0]
    """
    if f is None:
        return partial(auto_axes, axes=axes, out_sharding=out_sharding)

    @wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        target = kwargs.pop("out_sharding", out_sharding)
        if target is None:
            raise TypeError("Missing required keyword argument: 'out_sharding'")
        outer = _mesh_around(target, (args, kwargs))
        if outer is None:
            return f(*args, **kwargs)
        inner = _with_types(outer, axes, AxisType.Auto, "auto_axes")
        if inner is outer:  # the compiler decides already
            return f(*args, **kwargs)
        given = getattr(target, "mesh", None)
        devices = given if isinstance(given, Mesh) else None
        args, kwargs = tree_util.tree_map(lambda x: onto(x, inner, devices), (args, kwargs))
        with configuration.abstract_mesh(inner):
            outs = f(*args, **kwargs)
        leaves, tree = tree_util.tree_flatten(outs)
        targets = broadcast_argument("auto_axes out_sharding", target, outs)
        return tree_util.tree_unflatten(tree, [
            _reshard_to(x, resolved_sharding(
                NamedSharding(outer, s) if isinstance(s, PartitionSpec) else s,
                get_aval(x).shape, "auto_axes", of_context=False))
            for x, s in zip(leaves, targets, strict=True)])

    return wrapped


def _mesh_around(target: Any, args: Any) -> AbstractMesh | None:
    """The mesh that is named, or set, or that of the types of arguments."""
    mesh = get_abstract_mesh()
    if type(target) is NamedSharding:
        named = target.mesh.abstract_mesh
        if mesh.axis_types != named.axis_types and mesh.shape_tuple == named.shape_tuple:
            raise ValueError(f"Context mesh {mesh} must match the mesh passed to shardings "
                             f"{named}. Pass a PartitionSpec, which is along the mesh that is set.")
        return named  # type: ignore[no-any-return]
    if not mesh.empty:
        return mesh
    for x in tree_util.tree_leaves(args):
        sharding = place_of(x).sharding
        if sharding is not None:
            return sharding.mesh.abstract_mesh  # type: ignore[no-any-return]
    return None


def in_auto_mode(f: Callable[..., Any], out_sharding: ShardingLike, caller: str
                ) -> Callable[..., Any]:
    """The function with the compiler deciding inside, on arguments that are arrays or not, whose
    result lies as the `out_sharding` of `caller` says."""
    for leaf in tree_util.tree_leaves(out_sharding, is_leaf=lambda x: isinstance(
            x, PartitionSpec)):
        check_out_sharding(leaf, caller)
    if names_no_mesh(out_sharding):
        return f
    if isinstance(out_sharding, PartitionSpec):
        out_sharding = along_the_mesh_that_is_set(out_sharding, caller)

    def wrapped(*args: Any) -> Any:
        leaves, tree = tree_util.tree_flatten(args)
        arrays = [i for i, x in enumerate(leaves) if hasattr(x, "aval")]

        def on_arrays(*given: Any) -> Any:
            return f(*tree_util.tree_unflatten(tree, with_at(leaves, arrays, given)))

        return auto_axes(on_arrays, out_sharding=out_sharding)(*[leaves[i] for i in arrays])

    return wrapped


def placed(x: Any, target: Any) -> Any:
    """`x` where a device, a sharding or a PartitionSpec says; None leaves it where it is."""
    if target is None:
        return x
    mesh = get_abstract_mesh() if isinstance(target, PartitionSpec) else \
        getattr(target, "mesh", None)
    if mesh and mesh.explicit_axes:
        if isinstance(mesh, Mesh) and state.dynamic is eager_trace and not isinstance(x, Tracer):
            return device_put(x, target)  # whose spec is to be the one given
        return _reshard(x, target)
    if isinstance(mesh, AbstractMesh) and not isinstance(target, PartitionSpec):
        target = target.spec  # along the mesh that is set
        if not any(target):
            return x
    return x if names_no_mesh(target) else device_put(x, target)


def placed_result(x: Any, out_sharding: ShardingLike, caller: str) -> Any:
    """As `placed`, for what was given to `caller` as an `out_sharding`."""
    if out_sharding is None:
        return x
    check_out_sharding(out_sharding, caller)
    check_mesh_is_set(out_sharding, caller)
    return placed(x, out_sharding)


def check_mesh_is_set(out_sharding: ShardingLike, caller: str) -> None:
    """Check that what is made of nothing is to lie along the mesh that is set, where types say how
    it lies: a program names its devices by its arguments or by that mesh.

    Raises:
      ValueError: no mesh is set.
    """
    mesh = getattr(out_sharding, "mesh", None)
    if isinstance(mesh, Mesh) and mesh.explicit_axes and configuration.abstract_mesh.value is None:
        raise ValueError(f"{caller} got an out_sharding over a mesh of {mesh.size} devices, which "
                         "types speak of, and no mesh is set. Enter `jax.set_mesh(mesh)` around "
                         f"the call. Got {out_sharding}")


def placed_array(x: Any, target: Any, caller: str) -> Any:
    """As `placed`, of an array that the user gave.

    Raises:
      ValueError: it was put on other devices; `device_put` moves it.
    """
    if type(x) is ArrayImpl and x._committed and isinstance(target, (Device, Sharding)):
        wanted = DeviceList((target,)) if isinstance(target, Device) else devices_of(target)
        has = x._sharding._internal_device_list
        if wanted is not None and len(wanted) and has != wanted:
            raise ValueError("Received incompatible devices for jitted computation. Got argument "
                             f"of {caller} with shape {x.aval.str_short()} and with device ids "
                             f"{[d.id for d in has]}, and device={target!r}. {caller} does not "
                             "move an array that was put somewhere: use jax.device_put.")
    return placed(x, target)


def lying(x: Any, sharding: ShardingLike) -> Any:
    """A value inside a program that is to lie as a sharding says."""
    mesh = getattr(sharding, "mesh", None)
    if mesh is not None and not mesh.empty and mesh.are_all_axes_explicit:
        return _reshard(x, sharding)
    return constrained(x, sharding)


def sharding_like(x: Any, shape: Any, asked: Any) -> Any:
    """The sharding of arrays of this shape that are made like `x`: that of an array which was put
    somewhere, or of its type, if no shape was asked for; None leaves it open."""
    if tuple(shape) != np.shape(x):
        return None
    aval = getattr(x, "aval", None)
    if aval is None:
        return getattr(x, "sharding", None)
    in_type = getattr(aval, "place", HERE).sharding
    if type(x) is ArrayImpl and (in_type or (x._committed and not x.weak_type)):
        return x._sharding
    if state.dynamic is eager_trace and configuration.mesh.value is None:
        return None  # nobody knows the devices of an example's mesh here
    return in_type if asked is None else None


def explicit_axes(f: Any = None, /, *, axes: str | tuple[str, ...] | None = None,
                  in_sharding: Any = None) -> Any:
    """A function in which types say how values lie along axes that are Auto here.

    Args:
      f: the function; without it, a decorator is returned.
      axes: names of the axes; all by default.
      in_sharding: how the arguments lie, a pytree prefix of them of PartitionSpecs or
        NamedShardings. A call may give another one by this keyword.

    Raises:
      TypeError: neither this nor the call gives `in_sharding`.

    >>> import pyjx as jax
    >>> Auto = jax.sharding.AxisType.Auto
    >>> with jax.set_mesh(jax.make_mesh((1,), ("x",), (Auto,))):
    ...     twice = jax.sharding.explicit_axes(lambda x: 2 * x, in_sharding=jax.P("x"))
    ...     jax.jit(twice)(jax.numpy.ones(2)).tolist()
    ...
    [2.0, 2.0]
    """
    if f is None:
        return partial(explicit_axes, axes=axes, in_sharding=in_sharding)

    @wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        given = kwargs.pop("in_sharding", in_sharding)
        if given is None:
            raise TypeError("Missing required keyword argument: 'in_sharding'")
        outer = get_abstract_mesh()
        if outer.empty:
            raise ValueError("Context mesh cannot be empty. Please use `jax.set_mesh` to set a "
                             "mesh before you call what `explicit_axes` returns.")
        inner = _with_types(outer, axes, AxisType.Explicit, "explicit_axes")
        with configuration.abstract_mesh(inner):
            leaves, tree = tree_util.tree_flatten(args)
            targets = broadcast_argument(
                "explicit_axes in_sharding",
                given if len(args) != 1 or isinstance(given, tuple) else (given,), args)
            args = tree_util.tree_unflatten(tree, [
                _reshard_to(x, resolved_sharding(s, get_aval(x).shape, "explicit_axes"))
                for x, s in zip(leaves, targets, strict=True)])
            outs = f(*args, **kwargs)
        return tree_util.tree_map(lambda x: onto(x, outer), outs)

    return wrapped


def onto(x: Any, mesh: AbstractMesh, devices: Mesh | None = None) -> Any:
    """The same value along a mesh whose axes have other types; `devices` is it with its devices."""
    return _reshard_to(x, NamedSharding(mesh, PartitionSpec(*entries_of(get_aval(x)))), devices)


def _reshard_to(x: Any, sharding: ShardingLike, devices: Mesh | None = None) -> Any:
    return reshard_p.bind(x, dst_sharding=sharding, concrete_mesh=devices)


def _with_types(mesh: AbstractMesh, axes: Any, kind: AxisType, caller: str) -> AbstractMesh:
    names = mesh.axis_names if axes is None else axes if isinstance(axes, tuple) else (axes,)
    unknown = [name for name in names if name not in mesh.axis_names]
    if unknown:
        raise ValueError(f"{caller}: axes={axes!r} names {unknown[0]!r}, which is no axis of the "
                         f"mesh: these are {mesh.axis_names}.")
    return mesh.update_axis_types(dict.fromkeys(names, kind))
