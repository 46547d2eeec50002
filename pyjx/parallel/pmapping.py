"""`pmap`: one device of a new mesh for each example.

It is `jit` of `shard_map` over a mesh of one axis. A `pmap` in a function that is mapped so is
`vmap` on each device, as the devices are those of the outer one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from pyjx import lax
from pyjx.core.avals import get_aval
from pyjx.core.bounded import BoundedDict
from pyjx.core.meshes import Mesh
from pyjx.core.prefixes import broadcast_argument, is_none
from pyjx.core.records import Record
from pyjx.core.specs import PartitionSpec
from pyjx.core.trace import eager_trace, state
from pyjx.engine.axes import moveaxis
from pyjx.engine.functions import check_values, flatten, name_of
from pyjx.engine.types import AxisName, TreeDef
from pyjx.parallel.mapping import shard_map
from pyjx.runtime import backends, signature
from pyjx.runtime.abstract import described
from pyjx.runtime.device_put import device_put
from pyjx.runtime.jit import jit
from pyjx.runtime.meshes import get_abstract_mesh
from pyjx.runtime.placement import Described, committed_sharding
from pyjx.runtime.sharding import NamedSharding
from pyjx.runtime.stages import taking
from pyjx.transforms.arguments import check_callable, wraps
from pyjx.transforms.vmap import in_dims_of, mapped_size, vmap

NO_NAME = "_internal_pmap_axis_name"


def pmap(fun: Callable[..., Any], axis_name: AxisName = None, *, in_axes: Any = 0,
         out_axes: Any = 0, static_broadcasted_argnums: Any = (),
         devices: Sequence[Any] | None = None, backend: str | None = None,
         axis_size: int | None = None, donate_argnums: Any = ()) -> Any:
    """Map a function over axes of its arguments, an example on each of as many devices.

    Args:
      fun: a function of one example; arguments and results are pytrees of arrays.
      axis_name: a name for the axis, which collective operations in `fun` may use.
      in_axes: which axis of each argument to map over: an int, None for an argument that is the
        same on all devices, or a tuple with one entry for each positional argument. An entry may
        be a tree that is a prefix of the argument. Keyword arguments are mapped over their first
        axis.
      out_axes: where the mapped axis is in the results; None for what is the same on all devices.
      static_broadcasted_argnums: arguments that are compile-time constants; hashable.
      devices: the devices, in turn; by default the first ones of the backend.
      backend: by default the default one.
      axis_size: the length of the axis, which is that of the mapped arguments.
      donate_argnums: arguments whose memory results may take over.

    Returns:
      The mapped function. Inside another one it maps on each device, as `vmap` does.

    Raises:
      TypeError: `fun` is not callable.
      ValueError: axes do not fit the arguments or have different lengths, no argument is mapped,
        or there are fewer devices than examples.

    >>> import pyjx as jax
    >>> jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")(jax.numpy.ones((1, 2)))
    Array([[1., 1.]], dtype=float32)
    """
    check_callable(fun)
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    for what, axes in (("in_axes", in_axes), ("out_axes", out_axes)):
        if any([type(a) is not int for a in flatten(axes)[0]]):
            raise TypeError(f"pmap {what} must be an int, None, or (nested) container with those "
                            f"types as leaves, but got {axes}.")
    static = signature.argument_sets(fun, static_broadcasted_argnums, None)[0]
    donated = signature.argument_sets(fun, donate_argnums, None, "donate")[0]
    if devices is not None and not devices:
        raise ValueError("'devices' argument to pmap must be non-empty, or None.")
    mapped = _Mapped(fun, axis_name, in_axes, out_axes, static, donated,
                     None if devices is None else tuple(devices), backend, axis_size,
                     BoundedDict(256, "calls of pmap"))

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        call, leaves, _ = mapped.prepared(args, kwargs)
        return call(*leaves)

    def lower(*args: Any, **kwargs: Any) -> Any:
        """The StableHLO program for arguments like these."""
        call, leaves, tree = mapped.prepared(args, kwargs, described)
        return taking(call.trace(*leaves), tree).lower()

    result: Any = wraps(fun, wrapped)
    result.lower = lower
    return result


class _Mapped(Record):
    """A function with what `pmap` is to know of it."""

    fun: Callable[..., Any]
    axis_name: Any
    in_axes: Any
    out_axes: Any
    static: tuple[int, ...]
    donated: tuple[int, ...]
    devices: tuple[Any, ...] | None
    backend: str | None
    axis_size: int | None
    calls: Any  # what is called for arguments of a kind

    def prepared(self, args: tuple[Any, ...], kwargs: dict[str, Any],
                 seen: Callable[[Any], Any] | None = None) -> tuple[Any, list[Any], TreeDef]:
        """What is to be called for these arguments, their leaves as `seen` gives them, and how
        these stand in the arguments that are not static."""
        n = len(args)
        static = signature.static_positions(self.static, n)
        if any([i >= n for i in static]):
            raise ValueError(
                f"pmapped function has static_broadcasted_argnums={tuple(sorted(static))} but was "
                f"called with only {n} positional arguments. All static broadcasted arguments must "
                "be passed positionally.")
        constants = tuple([(i, args[i], type(args[i])) for i in sorted(static) if i < n])
        dynamic = tuple([x for i, x in enumerate(args) if i not in static])
        leaves, tree = flatten((dynamic, kwargs))
        if seen is not None:
            leaves = list(map(seen, leaves))
        inside = bool(get_abstract_mesh().manual_axes)
        key = tree, constants, inside, tuple([np.ndim(x) if isinstance(x, (int, float, complex))
                                              else getattr(x, "shape", ()) for x in leaves])
        try:
            found = self.calls.get(key)
        except TypeError:
            self._raise_unhashable(constants)
        if found is None:
            check_values(leaves)
            size, axes = self._size(args, kwargs, leaves, static)
            found = self.calls[key] = self._call(tree, axes, size, constants, inside, n)
        call, shardings = found
        if not inside and state.dynamic is eager_trace:
            leaves = [x if (at := committed_sharding(x)) is None or type(x) is Described
                      or at._internal_device_list == s._internal_device_list else device_put(x, s)
                      for x, s in zip(leaves, shardings, strict=True)]
        return call, leaves, tree

    def _size(self, args: tuple[Any, ...], kwargs: dict[str, Any], leaves: Sequence[Any],
              static: Any) -> tuple[int, tuple[int | None, ...]]:
        """The length of the mapped axes, and these for each leaf, counted from the front."""
        axes, n = self.in_axes, len(args)
        if isinstance(axes, tuple) and len(axes) == n - len(static):
            given = iter(axes)
            axes = tuple([None if i in static else next(given) for i in range(n)])
        args = tuple([None if i in static else x for i, x in enumerate(args)])
        dims = in_dims_of("pmap", axes, args, kwargs, flatten((args, kwargs))[1], leaves)
        if all([d is None for d in dims]):
            raise ValueError("pmap requires at least one argument with a mapped axis.")
        size, found = mapped_size("pmap", self.fun, leaves, dims, args, kwargs)
        if self.axis_size is not None and self.axis_size != size:
            raise ValueError(f"Specified axis_size {self.axis_size} doesn't match received "
                             f"axis_size {size}.")
        return size, tuple(found)

    def _mesh(self, size: int) -> Mesh:
        devices = self.devices or tuple(backends.local_devices(backend=self.backend))
        if not size:
            raise ValueError("pmap maps over at least one example; got arguments whose mapped axes "
                             "have the size 0.")
        if self.devices is not None and len(devices) < size:
            raise ValueError("Leading axis size of input to pmapped function must equal the number "
                             f"of local devices passed to pmap. Got axis_size={size}, "
                             f"num_local_devices={len(devices)}.")
        if len(devices) < size:
            raise ValueError(
                f"compiling computation that requires {size} logical devices, but only "
                f"{len(devices)} XLA devices are available (num_replicas={size}). Map over fewer "
                "examples, or use vmap, which maps on one device"
                f"{backends.for_more(devices, size)}")
        return _mesh_of(devices[:size], NO_NAME if self.axis_name is None else self.axis_name)

    def _call(self, tree: TreeDef, axes: tuple[int | None, ...], size: int, constants: Any,
              inside: bool, n: int) -> tuple[Any, Sequence[Any]]:
        """The function of leaves for arguments like these, and how they are to lie."""
        def of_leaves(*leaves: Any) -> Any:
            args, kwargs = tree.unflatten(leaves)
            return self.fun(*signature.with_static(args, constants), **kwargs)

        of_leaves.__name__ = name_of(self.fun)
        if inside:
            return vmap(of_leaves, axes, self.out_axes, self.axis_name, size), ()
        mesh = self._mesh(size)
        name = mesh.axis_names[0]
        specs = tuple([PartitionSpec() if a is None else PartitionSpec(*[None] * a, name)
                       for a in axes])
        out_leaves, out_tree = flatten(self.out_axes, is_none)
        out_specs = out_tree.unflatten(
            [PartitionSpec() if a is None else PartitionSpec(name) for a in out_leaves])

        def on_device(*leaves: Any) -> Any:
            outs, result_tree = flatten(of_leaves(*[
                x if a is None else lax.squeeze(x, (a,))
                for x, a in zip(leaves, axes, strict=True)]))
            check_values(outs)
            wanted = self._out_axes(result_tree)
            return result_tree.unflatten([x if a is None else lax.expand_dims(x, (0,))
                                          for x, a in zip(outs, wanted, strict=True)])

        mapped = shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=out_specs,
                           check_vma=False)

        def run(*leaves: Any) -> Any:
            outs, result_tree = flatten(mapped(*leaves))
            return result_tree.unflatten([
                x if not a else moveaxis(x, 0, _checked(a, get_aval(x).ndim))
                for x, a in zip(outs, self._out_axes(result_tree), strict=True)])

        run.__name__ = run.__qualname__ = name_of(self.fun)
        donated = signature.static_positions(self.donated, n)
        absent = {i for i, _, _ in constants}
        places: list[int] = []
        leaf = 0
        for i, child in zip([i for i in range(n) if i not in absent],
                            tree.children()[0].children(), strict=True):
            if i in donated:
                places += range(leaf, leaf + child.num_leaves)
            leaf += child.num_leaves
        shardings = [NamedSharding(mesh, s) for s in specs]
        return jit(run, donate_argnums=tuple(places)), shardings

    def _out_axes(self, result_tree: TreeDef) -> list[Any]:
        result = result_tree.unflatten([0] * result_tree.num_leaves)
        return broadcast_argument("pmap out_axes", self.out_axes, result)

    def _raise_unhashable(self, constants: Any) -> NoReturn:
        raise ValueError(
            "Non-hashable static arguments are used in static_broadcasted_argnums of pmap: "
            f"{[x for _, x, _ in constants]}. Static arguments are part of a cache's key: make "
            "them hashable, such as a tuple in place of a list.")


def _checked(axis: int, ndim: int) -> int:
    if not -ndim <= axis < ndim:
        raise ValueError(f"pmap out_axes: axis {axis} is out of bounds for array of dimension "
                         f"{ndim}")
    return axis % ndim


def _mesh_of(devices: tuple[Any, ...], name: Any) -> Mesh:
    array = np.empty(len(devices), dtype=object)
    array[:] = devices
    return Mesh(array, (name,))
