"""Shardings: how the elements of an array lie on devices.

The classes for one device and for a mesh are jaxlib's own, which C++ dispatch knows; they get
their methods here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, NoReturn

import numpy as np

from pyjx import jaxlib_api
from pyjx.core.bounded import kept
from pyjx.core.meshes import AbstractMesh, Mesh
from pyjx.core.specs import PartitionSpec, axes_of
from pyjx.guards import guard
from pyjx.jaxlib_api import (
    DeviceList,
    GSPMDSharding,
    HloSharding,
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
)

__all__ = [
    "DuplicateSpecError", "GSPMDSharding", "IndivisibleError", "NamedSharding", "Sharding",
    "SingleDeviceSharding",
]

Index = tuple[slice, ...]
Shape = tuple[int, ...]


class IndivisibleError(ValueError):
    """A dimension is not a multiple of the number of shards it is cut into.

    Ways out: pad the array, or cut it along other dimensions, or along axes of the mesh whose sizes
    divide the dimension's; `P()` leaves it whole on each device.
    """


def check_annotation(what: Callable[[], str], annotation: Any, shape: tuple[Any, ...],
                     kind: str = "sharding", divides: bool = False, function: str = "") -> None:
    """Check that a sharding or a layout is for arrays of this rank and, if it `divides` them, of
    these sizes; `what` says whose annotation it is, and `function` of what function, if of one.

    Raises:
      ValueError: it is for arrays of more dimensions.
      IndivisibleError: a dimension cannot be cut into so many parts.
    """
    behind = f" The function is {function}." if function else ""
    try:
        annotation.check_compatible_aval(shape)
        if divides:
            annotation.shard_shape(shape)
    except IndivisibleError as error:
        why = str(error).replace(" implies that", ", which implies that", 1)
        raise IndivisibleError(f"{what()} was given the sharding {why}{behind}") from None
    except ValueError as error:
        raise ValueError(f"{what()} is incompatible with its {kind} annotation {annotation}: "
                         f"{error}{behind}") from None


class DuplicateSpecError(ValueError):
    """A spec names an axis of the mesh twice.

    Ways out: a device has one part of an array, so each axis cuts one dimension, as in `P("x",
    "y")`; several axes may cut one dimension together, as in `P(("x", "y"))`.
    """


# ---- meshes -------------------------------------------------------------------------------


@guard
def _check_spec(mesh: Mesh | AbstractMesh, spec: Any, *_: Any) -> None:
    """Raise ValueError unless every axis exists and is used once, TypeError where it is no spec.
    C++ asks for each NamedSharding.
    """
    if not isinstance(spec, PartitionSpec):
        _raise_no_spec(spec)
    names = getattr(mesh, "axis_names", ())
    check_duplicates(spec, "NamedSharding spec")
    for axis in axes_of(spec):
        if axis not in names:
            raise ValueError(f"Resource axis: {axis} of {spec} is not found in mesh: {names}. "
                             "A spec names axes of its mesh, or None.")
    if spec.unreduced or spec.reduced:
        _check_summed(mesh, spec, names)
    if PartitionSpec.UNCONSTRAINED in spec.partitions and not mesh.auto_axes:
        raise ValueError(
            f"{spec} cannot contain `P.UNCONSTRAINED` when no mesh axis_types are `Auto`. Got mesh "
            f"axis_types: {mesh.axis_types}. Along Explicit axes a type says how a value lies.")


check_spec = _check_spec  # without a name that users call, which errors would show


def check_duplicates(spec: PartitionSpec, what: str) -> None:
    """Raise DuplicateSpecError if the spec that was given as `what` names an axis twice."""
    axes = axes_of(spec)
    if len(set(axes)) < len(axes):
        twice = next(axis for axis in axes if axes.count(axis) > 1)
        raise DuplicateSpecError(
            f"A single {what} specification can map every mesh axis to at most one positional "
            f"dimension, but {spec} has duplicate entries for `{twice}`")


def _check_summed(mesh: Mesh | AbstractMesh, spec: Any, names: tuple[Any, ...]) -> None:
    for what, axes in (("Unreduced", spec.unreduced), ("Reduced", spec.reduced)):
        unknown = [a for a in axes if a not in names]
        if unknown:
            raise ValueError(f"{what} axes {unknown[0]} is not found in mesh.axis_names={names}. "
                             f"Got pspec={spec}")
        if not axes.issubset(mesh.explicit_axes):
            raise ValueError(f"{what} axes can only refer to mesh axes that is of type `Explicit`. "
                             f"Got {what.lower()} axes: {axes} and mesh: {mesh}. Types of sums "
                             "that are yet to be taken are carried along Explicit axes alone.")


def _raise_no_spec(given: Any) -> NoReturn:
    if isinstance(given, dict) or (isinstance(given, (tuple, list)) and len(given) > 1 and any(
            [isinstance(x, (PartitionSpec, dict)) for x in given])):
        raise TypeError("A NamedSharding has one PartitionSpec. Of a tree of specs, each leaf has "
                        "its own: jax.tree.map(lambda s: NamedSharding(mesh, s), specs); got "
                        f"{given!r} of type {type(given)}.")
    entries = given if isinstance(given, (tuple, list)) else (
        given.axis_names[:1] if isinstance(given, (Mesh, AbstractMesh)) else (given,))
    meant = entries[0] if len(entries) == 1 and isinstance(entries[0], PartitionSpec) else (
        f"jax.P({', '.join(map(repr, entries))})")
    raise TypeError(f"The spec of a NamedSharding is a PartitionSpec, such as {meant}; got "
                    f"{given!r} of type {type(given)}.")


jaxlib_api.set_check_pspec(check_spec, PartitionSpec())


# ---- methods of every sharding ------------------------------------------------------------


def devices_of(place: Any) -> Any:
    """The devices of a sharding or a mesh; None where it has names of axes alone."""
    if isinstance(getattr(place, "mesh", place), AbstractMesh):
        return None
    return place._internal_device_list


def _device_tuple(self: Sharding) -> tuple[Any, ...]:
    devices = devices_of(self)
    if devices is None:
        raise ValueError("_device_assignment is not implemented for `jax.sharding.AbstractMesh`. "
                         f"Name the devices by a Mesh. Got {self}")
    return tuple(devices)


def _device_set(self: Sharding) -> set[Any]:
    """All devices of the sharding."""
    return set(self._internal_device_list)


def _addressable_device_tuple(self: Sharding) -> tuple[Any, ...]:
    return tuple(self._internal_device_list.addressable_device_list)


def _shard_shape(self: Sharding, global_shape: Sequence[int]) -> Shape:
    """The shape of the part of each device."""
    return _shard_shape_of(self._to_xla_hlo_sharding(len(global_shape)), self, tuple(global_shape))


def _shard_shape_of(hlo: Any, sharding: Sharding | None, shape: Shape) -> Shape:
    if hlo.is_replicated() or hlo.is_manual():
        return shape
    tiles = partitions(hlo)
    for axis, (size, count) in enumerate(zip(shape, tiles, strict=False)):
        if size % count:
            raise IndivisibleError(
                f"{sharding} implies that array axis {axis} is partitioned {count} times, "
                f"but the dimension size is {size} (full shape: {shape}, per-dimension tiling "
                f"factors: {tuple(tiles)} should evenly divide the shape). Pad the array, or "
                "cut it along other dimensions or mesh axes.")
    return tuple(s // t for s, t in zip(shape, tiles, strict=False))


def partitions(hlo: Any) -> Sequence[int]:
    """In how many parts each dimension is cut."""
    tiles = list(hlo.tile_assignment_dimensions())
    extra = len(hlo.subgroup_types()) or int(hlo.replicate_on_last_tile_dim())
    return tiles[:len(tiles) - extra] if extra else tiles


def parts_along(sharding: Sharding, ndim: int) -> Shape:
    """In how many parts each dimension of values of this rank is cut."""
    hlo = sharding._to_xla_hlo_sharding(ndim)
    return (1,) * ndim if hlo.is_replicated() else tuple(partitions(hlo))


@kept(4096)
def _index_list(self: Sharding, shape: Shape) -> tuple[Index, ...]:
    """The part of each device, in the order of the sharding's devices."""
    return indices_of(self._to_xla_hlo_sharding(len(shape)), shape,
                      len(self._internal_device_list), self)


def indices_of(hlo: Any, shape: Shape, count: int, sharding: Sharding | None = None
              ) -> tuple[Index, ...]:
    """The part of each of `count` devices; `sharding` is what errors name, by default `hlo`."""
    if hlo.is_replicated():
        return ((slice(None),) * len(shape),) * count
    part = _shard_shape_of(hlo, hlo if sharding is None else sharding, shape)
    tiles = partitions(hlo)
    order = np.asarray(hlo.tile_assignment_devices()).reshape(*tiles, -1)
    indices: list[Any] = [None] * count
    for coordinates in np.ndindex(*tiles):
        index = tuple(slice(None) if n == 1 else slice(c * k, (c + 1) * k) for c, n,
                      k in zip(coordinates, tiles, part, strict=True))
        for device in order[coordinates]:
            indices[device] = index
    return tuple(indices)


def _devices_indices_map(self: Sharding, global_shape: Sequence[int]) -> dict[Any, Index]:
    """The part of the array on each device, as a tuple of slices."""
    shape = tuple(global_shape)
    return dict(zip(_device_tuple(self), _index_list(self, shape), strict=True))


def _addressable_devices_indices_map(self: Sharding, global_shape: Sequence[int]
                                     ) -> dict[Any, Index]:
    """The part of the array on each device of this process."""
    everywhere = self.devices_indices_map(global_shape)
    return {d: everywhere[d] for d in _addressable_device_tuple(self)}


def _is_equivalent_to(self: Sharding, other: Any, ndim: int) -> bool:
    """Whether both put the same elements of every array of rank `ndim` on the same devices."""
    return self is other or (_place(self) == _place(other) and is_cut_alike(self, other, ndim))


def _place(sharding: Sharding) -> Any:
    """Its devices or, where it has none, the shape that they are to have."""
    devices = devices_of(sharding)
    return sharding.mesh if devices is None else devices


def is_cut_alike(a: Any, b: Any, ndim: int) -> bool:
    """Whether both cut every array of rank `ndim` into the same parts, on whatever devices."""
    return bool(a.memory_kind == b.memory_kind and open_sums(a) == open_sums(b)
                and same_hlo(a._to_xla_hlo_sharding(ndim), b._to_xla_hlo_sharding(ndim)))


def open_sums(sharding: Sharding) -> Any:
    """The axes along which what the devices hold is yet to be summed."""
    return sharding.spec.unreduced if type(sharding) is NamedSharding else frozenset()


def summed(sharding: Sharding) -> Any:
    """The sharding of the same values once such sums have been taken."""
    if not open_sums(sharding):
        return sharding
    return sharding.update(spec=sharding.spec.update(unreduced=frozenset(), unreduced_kind=None))


def same_hlo(a: Any, b: Any) -> bool:
    return bool(a == b) or (is_replicated_hlo(a) and is_replicated_hlo(b))


def is_replicated_hlo(hlo: Any) -> bool:
    if hlo.is_replicated():
        return True
    return not hlo.is_manual() and bool(hlo.is_tiled()) and math.prod(partitions(hlo)) == 1


def _check_compatible_aval(self: Sharding, aval_shape: Shape) -> None:
    """ValueError if the sharding names more dimensions than the array has."""


def _with_memory_kind(self: Sharding, kind: str) -> Any:
    """The sharding in another memory of its devices."""
    raise NotImplementedError(f"{type(self).__name__} has no with_memory_kind")


def _is_fully_replicated(self: Sharding) -> bool:
    """Whether each device has the whole array."""
    raise NotImplementedError(f"{type(self).__name__} has no is_fully_replicated")


_COMMON: dict[str, Any] = {
    "_device_assignment": property(_device_tuple),
    "_addressable_device_assignment": property(_addressable_device_tuple),
    "_is_concrete": property(lambda self: True),
    "device_set": property(_device_set),
    "addressable_devices": property(lambda self: set(_addressable_device_tuple(self))),
    "has_addressable_devices": property(lambda self: bool(_addressable_device_tuple(self))),
    "num_devices": property(lambda self: len(self._internal_device_list)),
    "is_fully_addressable": property(
        lambda self: bool(self._internal_device_list.is_fully_addressable)),
    "memory_kind": property(lambda self: self._memory_kind),
    "shard_shape": _shard_shape,
    "devices_indices_map": _devices_indices_map,
    "addressable_devices_indices_map": _addressable_devices_indices_map,
    "is_equivalent_to": _is_equivalent_to,
    "check_compatible_aval": _check_compatible_aval,
    "is_fully_replicated": property(_is_fully_replicated),
    "with_memory_kind": _with_memory_kind,
}


def _extend(cls: Any, **methods: Any) -> None:
    for name, method in methods.items():
        if callable(method):
            method.__name__ = name
            method.__qualname__ = f"{cls.__name__}.{name}"
        setattr(cls, name, guard(method))


_extend(Sharding, **_COMMON)
Sharding.__doc__ = """How the elements of an array lie on devices.

`x.sharding` tells it, `jax.device_put(x, sharding)` lays an array so. There are `NamedSharding`,
over a mesh of devices, and `SingleDeviceSharding`.
"""

_REPLICATED = HloSharding.replicate()


# ---- one device ---------------------------------------------------------------------------


def _single_eq(self: Sharding, other: Any) -> Any:
    if self is other:
        return True
    if type(other) is not SingleDeviceSharding:
        return NotImplemented
    return self._device is other._device and self._memory_kind == other._memory_kind


def _single_index(self: Sharding, global_shape: Sequence[int]) -> dict[Any, Index]:
    return {self._device: (slice(None),) * len(global_shape)}


_extend(
    SingleDeviceSharding,
    __eq__=_single_eq,
    __hash__=lambda self: hash((self._device, self._memory_kind)),
    __repr__=lambda self: (f"SingleDeviceSharding(device={self._device!r}, "
                           f"memory_kind={self._memory_kind})"),
    __reduce__=lambda self: (SingleDeviceSharding, (self._device, self._memory_kind)),
    device_set=property(lambda self: {self._device}),
    is_fully_replicated=property(lambda self: True),
    shard_shape=lambda self, global_shape: tuple(global_shape),
    devices_indices_map=_single_index,
    _to_xla_hlo_sharding=lambda self, num_dimensions: _REPLICATED,
    with_memory_kind=lambda self, kind: SingleDeviceSharding(self._device, memory_kind=kind),
)
SingleDeviceSharding.__doc__ = """A sharding that puts whole arrays on one device.

Args:
  device: the device, such as `jax.devices()[0]`.
  memory_kind: which memory of it; by default its own.

>>> import pyjx as jax
>>> jax.sharding.SingleDeviceSharding(jax.devices()[0]).num_devices
1
"""


def only_device(sharding: Sharding) -> Any:
    """The device that all of an array is on; None if it is on several."""
    if type(sharding) is SingleDeviceSharding:
        return sharding._device
    devices = sharding.device_set
    return next(iter(devices)) if len(devices) == 1 else None


@cache  # for good: by its identity one that nobody asked for is known
def single_device_sharding(device: Any, memory_kind: str | None = None) -> Any:
    """The sharding of arrays on one device."""
    return SingleDeviceSharding(device, memory_kind=memory_kind)


# ---- a mesh -------------------------------------------------------------------------------


@kept(4096)
def _named_hlo(mesh: Mesh | AbstractMesh, spec: Any, ndim: int) -> Any:
    return _hlo_of(mesh.axis_names, mesh.axis_sizes, spec, ndim)


def _hlo_of(names: tuple[Any, ...], sizes: Shape, spec: Any, ndim: int) -> Any:
    """The V2 form: the mesh's devices, axes transposed so that each dimension's come first."""
    entries = (*spec, *(None,) * (ndim - len(spec)))
    order: list[int] = []
    tiles: list[int] = []
    for entry in entries:
        axes = [names.index(a) for a in axes_of((entry,))]
        tiles.append(math.prod(sizes[i] for i in axes))
        order += axes
    if math.prod(tiles) == 1:
        return _REPLICATED
    rest = [i for i in range(len(names)) if i not in order]
    copies = math.prod(sizes[i] for i in rest)
    subgroups = []
    if copies > 1:
        tiles.append(copies)
        subgroups.append(jaxlib_api.OpSharding.Type.REPLICATED)
    return HloSharding.iota_tile(tiles, sizes, order + rest, subgroups)


def _named_eq(self: Sharding, other: Any) -> Any:
    if self is other:
        return True
    if type(other) is not NamedSharding:
        return NotImplemented
    return (self.mesh == other.mesh and self.spec == other.spec
            and self._memory_kind == other._memory_kind
            and self._logical_device_ids == other._logical_device_ids)


def _named_repr(self: Sharding) -> str:
    kind = "" if self.memory_kind is None else f", memory_kind={self.memory_kind}"
    ids = self._logical_device_ids
    logical = "" if ids is None else f", logical_device_ids={ids}"
    return f"NamedSharding(mesh={self.mesh}, spec={self.spec}{kind}{logical})"


def _named_is_replicated(self: Sharding) -> bool:
    sizes = self.mesh.shape
    return not self.spec.unreduced and all(sizes[a] == 1 for a in axes_of(self.spec))


def _named_check_aval(self: Sharding, aval_shape: Shape) -> None:
    if len(aval_shape) < len(self.spec):
        hint = " For scalars the PartitionSpec should be P()." if not aval_shape else (
            " Its spec must have no more entries than that.")
        raise ValueError(
            f"Sharding {self} is only valid for values of rank at least {len(self.spec)}, but was "
            f"applied to a value of rank {len(aval_shape)}.{hint}")


def _named_shard_shape(self: Sharding, global_shape: Sequence[int]) -> Shape:
    _named_check_aval(self, tuple(global_shape))
    return _shard_shape(self, global_shape)


def _of_devices(name: str) -> property:
    """A property that only a sharding over devices has."""
    known = _COMMON[name].fget

    def get(self: Any) -> Any:
        if isinstance(self.mesh, AbstractMesh):
            raise ValueError(f"{name} is not implemented for `jax.sharding.AbstractMesh`.")
        return known(self)

    return property(get, doc=known.__doc__)


def _replicated_axes(self: Sharding) -> frozenset[Any]:
    """The mesh axes along which all devices hold the same."""
    return frozenset(self.mesh.axis_names) - {
        *axes_of(self.spec), *self.spec.unreduced, *self.spec.reduced}


def _named_update(self: Sharding, **changes: Any) -> Any:
    return NamedSharding(
        changes.get("mesh", self.mesh), changes.get("spec", self.spec),
        memory_kind=changes.get("memory_kind", self._memory_kind),
        _logical_device_ids=changes.get("_logical_device_ids", self._logical_device_ids),
    )


def _named_reduce(self: Sharding) -> Any:
    told = {"memory_kind": self._memory_kind, "_logical_device_ids": self._logical_device_ids}
    return partial(NamedSharding, **{k: v for k, v in told.items() if v is not None}), (
        self.mesh, self.spec)


_extend(
    NamedSharding,
    __eq__=_named_eq,
    __hash__=lambda self: hash((self.mesh, self.spec, self._memory_kind)),
    __repr__=_named_repr,
    __reduce__=_named_reduce,
    is_fully_replicated=property(_named_is_replicated),
    shard_shape=_named_shard_shape,
    check_compatible_aval=_named_check_aval,
    _to_xla_hlo_sharding=lambda self, num_dimensions: _named_hlo(self.mesh, self.spec,
                                                                 num_dimensions),
    update=_named_update,
    num_devices=property(lambda self: self.mesh.size),
    replicated_axes=property(_replicated_axes),
    **{name: _of_devices(name) for name in (
        "device_set", "addressable_devices", "has_addressable_devices", "is_fully_addressable")},
    with_memory_kind=lambda self, kind: self.update(memory_kind=kind),
)


NamedSharding.__doc__ = """A sharding over a mesh: which axes of it cut each dimension of an array.

Args:
  mesh: the mesh, as `jax.make_mesh` gives it; or an abstract one.
  spec: a `PartitionSpec`, with the name of an axis, a tuple of names or None for each dimension.
  memory_kind: which memory of the devices, such as "pinned_host"; by default their own.

Raises:
  ValueError: the spec names an axis that the mesh has not, or one twice.
  TypeError: it is no `PartitionSpec`, or the mesh is none.

>>> import pyjx as jax
>>> mesh = jax.make_mesh((1,), ("x",))
>>> jax.NamedSharding(mesh, jax.P("x", None)).shard_shape((4, 3))
(4, 3)
"""


# ---- XLA's own form -----------------------------------------------------------------------


def _gspmd_eq(self: Sharding, other: Any) -> Any:
    if self is other:
        return True
    if type(other) is not GSPMDSharding:
        return NotImplemented
    return (self._internal_device_list == other._internal_device_list
            and same_hlo(self._hlo_sharding, other._hlo_sharding)
            and self._memory_kind == other._memory_kind)


def _gspmd_repr(self: Sharding) -> str:
    kind = "" if self.memory_kind is None else f", memory_kind={self.memory_kind}"
    return f"GSPMDSharding({self._hlo_sharding!r}{kind})"


def _get_replicated(device_assignment: Any, memory_kind: str | None = None) -> Any:
    """The sharding that puts a copy on each of these devices."""
    if not isinstance(device_assignment, DeviceList):
        device_assignment = DeviceList(tuple(device_assignment))
    return GSPMDSharding(device_assignment, _REPLICATED, memory_kind=memory_kind)


_extend(
    GSPMDSharding,
    __eq__=_gspmd_eq,
    __hash__=lambda self: hash((self._internal_device_list, self._memory_kind)),
    __repr__=_gspmd_repr,
    __reduce__=lambda self: (_make_gspmd, (_device_tuple(self), self._hlo_sharding.to_proto(),
                                           self._memory_kind)),
    is_fully_replicated=property(lambda self: is_replicated_hlo(self._hlo_sharding)),
    _to_xla_hlo_sharding=lambda self, num_dimensions: self._hlo_sharding,
    with_memory_kind=lambda self, kind: GSPMDSharding(self._internal_device_list,
                                                      self._hlo_sharding, memory_kind=kind),
)
GSPMDSharding.get_replicated = staticmethod(_get_replicated)


def _make_gspmd(devices: tuple[Any, ...], proto: Any, memory_kind: Any) -> Any:
    return GSPMDSharding(devices, proto, memory_kind=memory_kind)


# ---- from XLA's form to names -------------------------------------------------------------


def named_sharding(sharding: Sharding, mesh: Any, ndim: int) -> Any:
    """A sharding of values of this rank by the names of axes of `mesh`, whose devices it has."""
    if type(sharding) is NamedSharding:
        return sharding
    hlo = sharding._to_xla_hlo_sharding(ndim)
    spec = spec_of_hlo(hlo, mesh.axis_names, mesh.axis_sizes, ndim)
    if spec is None:  # it cuts across the axes: name the prime factors of the number of devices
        factors = tuple(prime_factors(mesh.size))
        mesh = Mesh(mesh.devices.reshape(factors), tuple([f"_axis_{i}" for i in
                                                          range(len(factors))]))
        spec = spec_of_hlo(hlo, mesh.axis_names, mesh.axis_sizes, ndim)
    if spec is None:
        raise NotImplementedError(f"The sharding {sharding} does not follow the axes of any mesh. "
                                  "Put the array into a NamedSharding with device_put.")
    return NamedSharding(mesh, spec, memory_kind=sharding.memory_kind)


def prime_factors(n: int) -> list[int]:
    found, d = [], 2
    while n > 1:
        while n % d == 0:
            found.append(d)
            n //= d
        d += 1
    return found


def spec_of_hlo(hlo: Any, names: tuple[Any, ...], sizes: Shape, ndim: int) -> Any:
    """The spec by which values of this rank lie as `hlo` says on a mesh of devices 0, 1, 2 ...;
    None if there is none."""
    if is_replicated_hlo(hlo):
        return PartitionSpec()
    if not hlo.is_tiled():
        return None
    tiles = partitions(hlo)
    # The lowest device of each part; further copies of it do not matter.
    order = np.asarray(hlo.tile_assignment_devices()).reshape(*tiles, -1)
    strides = {math.prod(sizes[i + 1:]): i for i, k in enumerate(sizes) if k > 1}
    entries: list[Any] = []
    for dim, count in enumerate(tiles):
        along = np.moveaxis(order.min(axis=-1), dim, 0).reshape(count, -1)[:, 0]
        axes: list[Any] = []
        step = 1  # between devices along the axes that are found, the innermost first
        while step < count:
            axis = strides.get(int(along[step] - along[0]))
            if axis is None or count % (step * sizes[axis]):
                return None
            axes.insert(0, names[axis])
            step *= sizes[axis]
        entries.append(tuple(axes) if axes else None)
    while entries and entries[-1] is None:
        entries.pop()
    spec = PartitionSpec(*entries)
    used = axes_of(spec)
    if len(set(used)) < len(used) or not _same_parts(hlo, _hlo_of(names, sizes, spec, ndim)):
        return None
    return spec


def _same_parts(a: Any, b: Any) -> bool:
    """Whether each device has the same part in both."""
    if bool(a == b):
        return True
    tiles = partitions(a)
    if a.is_replicated() or b.is_replicated() or list(tiles) != list(partitions(b)):
        return False
    orders = [np.sort(np.asarray(h.tile_assignment_devices()).reshape(*tiles, -1), axis=-1)
              for h in (a, b)]
    return bool((orders[0] == orders[1]).all())


def make_single_device_sharding(device: Any, *, memory_kind: str | None = None) -> Any:
    """The sharding of arrays on one device, in one of its memories.

    >>> import pyjx as jax
    >>> jax.sharding.make_single_device_sharding(jax.devices()[0]).num_devices
    1
    """
    return SingleDeviceSharding(device, memory_kind=memory_kind)
