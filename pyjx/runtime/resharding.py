"""Values that are to lie otherwise along the Explicit axes of a mesh, and axes of other types."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy as np

from pyjx import configuration, tree_util
from pyjx.core.array_type import Array
from pyjx.core.avals import get_aval
from pyjx.core.explicit import (
    along_the_mesh_that_is_set,
    check_out_sharding,
    entries_of,
    resolved_sharding,
)
from pyjx.core.forbidden import no_collectives
from pyjx.core.layouts import ShardingLike
from pyjx.core.meshes import AbstractMesh, AxisType, Mesh
from pyjx.core.places import HERE, names_no_mesh, place_of
from pyjx.core.prefixes import broadcast_argument
from pyjx.core.specs import PartitionSpec, axes_of
from pyjx.core.trace import Tracer, eager_trace, state
from pyjx.engine.moves import reshard_p
from pyjx.engine.types import Value
from pyjx.jaxlib_api import Device, DeviceList
from pyjx.runtime.array import ArrayImpl
from pyjx.runtime.constraints import constrained
from pyjx.runtime.device_put import device_put
from pyjx.runtime.meshes import get_abstract_mesh, mesh_known_as
from pyjx.runtime.sharding import NamedSharding, Sharding, devices_of


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
    leaves, tree = tree_util.tree_flatten(xs)
    targets = broadcast_argument("reshard out_shardings", out_shardings, xs)
    return tree_util.tree_unflatten(tree, [
        x if s is None else _reshard(x, s) for x, s in zip(leaves, targets, strict=True)])


def _reshard(x: Any, target: Any) -> Any:
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
                         "`jax.set_mesh`, or pass a NamedSharding over one. Got "
                         f"{dst_sharding}")
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
        with mesh_known_as(inner):
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
            raise ValueError(
                f"Context mesh {mesh} must match the mesh passed to shardings {named}. Pass a "
                "PartitionSpec, which is along the mesh that is set.")
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
            every = list(leaves)
            for i, x in zip(arrays, given, strict=True):
                every[i] = x
            return f(*tree_util.tree_unflatten(tree, every))

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
        raise ValueError(
            f"{caller} got an out_sharding over a mesh of {mesh.size} devices, which types speak "
            "of, and no mesh is set. Enter `jax.set_mesh(mesh)` around the call. Got "
            f"{out_sharding}")


def placed_array(x: Any, target: Any, caller: str) -> Any:
    """As `placed`, of an array that the user gave.

    Raises:
      ValueError: it was put on other devices; `device_put` moves it.
    """
    if type(x) is ArrayImpl and x._committed and isinstance(target, (Device, Sharding)):
        wanted = DeviceList((target,)) if isinstance(target, Device) else devices_of(target)
        has = x._sharding._internal_device_list
        if wanted is not None and len(wanted) and has != wanted:
            raise ValueError(
                f"Received incompatible devices for jitted computation. Got argument of {caller} "
                f"with shape {x.aval.str_short()} and with device ids {[d.id for d in has]}, and "
                f"device={target!r}. {caller} does not move an array that was put somewhere: use "
                "jax.device_put.")
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
        outer = _context_mesh("explicit_axes")
        inner = _with_types(outer, axes, AxisType.Explicit, "explicit_axes")
        with mesh_known_as(inner):
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


def _context_mesh(caller: str) -> AbstractMesh:
    mesh = get_abstract_mesh()
    if mesh.empty:
        raise ValueError(f"Context mesh cannot be empty. Please use `jax.set_mesh` to set a mesh "
                         f"before you call what `{caller}` returns.")
    return mesh


def _with_types(mesh: AbstractMesh, axes: Any, kind: AxisType, caller: str) -> AbstractMesh:
    names = mesh.axis_names if axes is None else axes if isinstance(axes, tuple) else (axes,)
    unknown = [name for name in names if name not in mesh.axis_names]
    if unknown:
        raise ValueError(f"{caller}: axes={axes!r} names {unknown[0]!r}, which is no axis of the "
                         f"mesh: these are {mesh.axis_names}.")
    return mesh.update_axis_types(dict.fromkeys(names, kind))
