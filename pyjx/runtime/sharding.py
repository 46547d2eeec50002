"""Shardings: how the elements of an array lie on devices.

The classes for one device and for a mesh are jaxlib's own, which C++ dispatch knows; they get
their methods here.
"""

from __future__ import annotations

import enum
import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from pyjx import jaxlib_api
from pyjx.jaxlib_api import (
    DeviceList,
    GSPMDSharding,
    HloSharding,
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
)

__all__ = [
    "AxisType", "DuplicateSpecError", "GSPMDSharding", "IndivisibleError", "Mesh",
    "NamedSharding", "P", "PartitionSpec", "Sharding", "SingleDeviceSharding",
]

Index = tuple[slice, ...]
Shape = tuple[int, ...]


class IndivisibleError(ValueError):
    """A dimension is not a multiple of the number of shards it is cut into."""


class DuplicateSpecError(ValueError):
    """A spec names an axis of the mesh twice."""


class AxisType(enum.Enum):
    """Who decides how arrays lie along an axis of a mesh: the compiler, the types, the user."""

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self) -> str:
        return self.name


class Space(enum.Enum):
    """A memory: that of the device, that of its host, or either."""

    Device = enum.auto()
    Host = enum.auto()
    Any = enum.auto()

    def __repr__(self) -> str:
        return f"MemorySpace.{self.name}"


# ---- partition specs ----------------------------------------------------------------------


class UnconstrainedSingleton:
    """The type of `PartitionSpec.UNCONSTRAINED`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> Any:
        return _unconstrained, ()


def _unconstrained() -> Any:
    return PartitionSpec.UNCONSTRAINED


def _canonical_partition(partition: Any) -> Any:
    if isinstance(partition, (tuple, list)):
        if not partition:
            return None
        return partition[0] if len(partition) == 1 else tuple(partition)
    return partition


# The C++ NamedSharding of old versions takes specs of this class only; it holds their fields.
_SpecBase: Any = jaxlib_api.PartitionSpecBase


class PartitionSpec(_SpecBase):
    """For each dimension the mesh axes that it is cut along: a name, a tuple of names, or None.

    Args:
      *partitions: the entries; dimensions beyond them are not cut.
      unreduced, reduced: mesh axes along which the values are yet to be (have been) summed.

    >>> import pyjx as jax
    >>> jax.P("x", None, ("y", "z"))
    P('x', None, ('y', 'z'))
    """

    __slots__ = ("_partitions", "reduced", "unreduced") if _SpecBase is object else ()
    UNCONSTRAINED: Any = UnconstrainedSingleton()

    def __init__(self, *partitions: Any, unreduced: Any = frozenset(), reduced: Any = frozenset()
                 ) -> None:
        if partitions:
            partitions = tuple(_canonical_partition(p) for p in partitions)
        unreduced = _checked_axes("unreduced", partitions, unreduced)
        reduced = _checked_axes("reduced", partitions, reduced)
        if _SpecBase is object:
            self._partitions = partitions
            self.unreduced = unreduced
            self.reduced = reduced
        else:
            super().__init__(*partitions, unreduced=unreduced, reduced=reduced)

    @property
    def partitions(self) -> tuple[Any, ...]:
        return self._partitions

    def __repr__(self) -> str:
        parts = [repr(p) for p in self._partitions]
        for name in ("unreduced", "reduced"):
            axes = getattr(self, name)
            if axes:
                parts.append(f"{name}={{{', '.join(repr(a) for a in sorted(axes, key=str))}}}")
        inner = ", ".join(parts)
        if len(self._partitions) == 1 and len(parts) == 1:
            inner += ","
        return f"P({inner})"

    def __len__(self) -> int:
        return len(self._partitions)

    def __iter__(self) -> Any:
        return iter(self._partitions)

    def __getitem__(self, index: Any) -> Any:
        return self._partitions[index]

    def __eq__(self, other: Any) -> Any:
        if not isinstance(other, PartitionSpec):
            return False
        return (self._partitions == other._partitions and self.unreduced == other.unreduced
                and self.reduced == other.reduced)

    def __hash__(self) -> int:
        return hash((self._partitions, self.unreduced, self.reduced))

    def __add__(self, other: Any) -> PartitionSpec:
        if isinstance(other, PartitionSpec):
            return PartitionSpec(*self._partitions, *other._partitions,
                                 unreduced=self.unreduced | other.unreduced,
                                 reduced=self.reduced | other.reduced)
        if isinstance(other, tuple):
            return PartitionSpec(*self._partitions, *other, unreduced=self.unreduced,
                                 reduced=self.reduced)
        return NotImplemented

    def __radd__(self, other: Any) -> PartitionSpec:
        if not isinstance(other, tuple):
            return NotImplemented
        return PartitionSpec(*other, *self._partitions, unreduced=self.unreduced,
                             reduced=self.reduced)

    def __reduce__(self) -> Any:
        return _make_spec, (self._partitions, self.unreduced, self.reduced)

    def index(self, value: Any) -> int:
        return self._partitions.index(_canonical_partition(value))

    def count(self, value: Any) -> int:
        return self._partitions.count(_canonical_partition(value))

    def update(self, **changes: Any) -> PartitionSpec:
        """The spec with `partitions`, `unreduced` or `reduced` replaced."""
        return PartitionSpec(*changes.get("partitions", self._partitions),
                             unreduced=changes.get("unreduced", self.unreduced),
                             reduced=changes.get("reduced", self.reduced))


def _checked_axes(what: str, partitions: tuple[Any, ...], names: Any) -> frozenset[Any]:
    if not names:
        return frozenset()
    if not isinstance(names, (set, frozenset)):
        raise TypeError(f"`{what}` argument of PartitionSpec should be of type `frozenset` or "
                        f"`set`. Got type {type(names)}")
    names = frozenset(names)
    for name in _axes_of(partitions):
        if name in names:
            raise ValueError(f"partitions cannot overlap with {what} axes passed to "
                             f"PartitionSpec. Got partitions: {partitions} and "
                             f"{what} axes: {names}")
    return names


def _make_spec(partitions: tuple[Any, ...], unreduced: Any, reduced: Any) -> PartitionSpec:
    return PartitionSpec(*partitions, unreduced=unreduced, reduced=reduced)


P = PartitionSpec


def _axes_of(partitions: Sequence[Any]) -> list[Any]:
    axes: list[Any] = []
    for p in partitions:
        if p is None or p is PartitionSpec.UNCONSTRAINED:
            continue
        axes += p if isinstance(p, tuple) else (p,)
    return axes


# ---- meshes -------------------------------------------------------------------------------


class Mesh:
    """An array of devices whose axes have names.

    Args:
      devices: array (or nested sequence) of devices.
      axis_names: a name for each axis.
      axis_types: an `AxisType` for each axis, by default Auto.

    Raises:
      ValueError: the number of names is not the number of axes.
    """

    devices: np.ndarray[Any, Any]
    axis_names: tuple[Any, ...]
    axis_types: tuple[AxisType, ...]
    size: int
    _internal_device_list: Any

    def __new__(cls, devices: Any, axis_names: Any, axis_types: Any = None) -> Mesh:
        devices = np.asarray(devices, dtype=object)
        if isinstance(axis_names, (str, bytes)) or not isinstance(axis_names, Sequence):
            axis_names = (axis_names,)
        axis_names = tuple(axis_names)
        if any(name is None for name in axis_names):
            raise ValueError(f"Mesh axis names cannot be None. Got: {axis_names}")
        if devices.ndim != len(axis_names):
            raise ValueError(
                "Mesh requires the ndim of its first argument (`devices`) to equal the length of "
                f"its second argument (`axis_names`), but got devices.ndim == {devices.ndim} and "
                f"len(axis_names) == {len(axis_names)}."
            )
        if axis_types is None:
            types = (AxisType.Auto,) * devices.ndim
        else:
            types = (axis_types,) if isinstance(axis_types, AxisType) else tuple(axis_types)
            if len(types) != len(axis_names):
                raise ValueError(
                    "Number of axis names should match the number of axis_types. Got "
                    f"axis_names={axis_names} and axis_types={types}"
                )
        make: Any = cls
        return _mesh(make, tuple(devices.flat), devices.shape, axis_names, types)

    def __reduce__(self) -> Any:
        return Mesh, (self.devices, self.axis_names, self.axis_types)

    @property
    def shape(self) -> Mapping[Any, int]:
        """The size of each axis by its name."""
        return OrderedDict(self.shape_tuple)

    @property
    def shape_tuple(self) -> tuple[tuple[Any, int], ...]:
        return tuple(zip(self.axis_names, self.devices.shape, strict=True))

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        return self.devices.shape

    @property
    def empty(self) -> bool:
        return self.size == 0

    @property
    def device_ids(self) -> np.ndarray[Any, Any]:
        return np.array([d.id for d in self.devices.flat]).reshape(self.devices.shape)

    @property
    def local_devices(self) -> list[Any]:
        return [d for d in self.devices.flat if d.process_index == d.client.process_index()]

    @property
    def is_multi_process(self) -> bool:
        return len(self.local_devices) != self.size

    @property
    def local_mesh(self) -> Mesh:
        """The mesh of this process's devices."""
        local = self.local_devices
        if len(local) == self.size:
            return self
        mask = np.vectorize(lambda d: d in local, otypes=[bool])(self.devices)
        kept = [np.unique(i) for i in np.nonzero(mask)]
        return Mesh(self.devices[np.ix_(*kept)], self.axis_names, self.axis_types)

    def __repr__(self) -> str:
        return (f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names}, "
                f"axis_types={self.axis_types})")

    def __str__(self) -> str:
        axes = ", ".join(f"{n!r}: {k}" for n, k in self.shape_tuple)
        return f"Mesh({axes}{', ' if axes else ''}axis_types={self.axis_types})"


@lru_cache(maxsize=4096)
def _mesh(cls: Any, devices: tuple[Any, ...], shape: Shape, names: tuple[Any, ...],
          types: tuple[AxisType, ...]) -> Mesh:
    """Meshes are interned: C++ compares those of two shardings by identity."""
    self: Mesh = object.__new__(cls)
    array = np.empty(len(devices), dtype=object)
    array[:] = devices
    self.devices = array.reshape(shape)
    self.devices.flags.writeable = False
    self.axis_names = names
    self.axis_types = types
    self.size = len(devices)
    self._internal_device_list = DeviceList(devices)
    return self


def _check_pspec(mesh: Any, spec: Any, *_: Any) -> None:
    """Called by C++ for each NamedSharding: every axis exists and is used once."""
    seen = set()
    names = getattr(mesh, "axis_names", ())
    for axis in _axes_of(spec):
        if axis not in names:
            raise ValueError(f"Resource axis: {axis} of {spec} is not found in mesh: {names}.")
        if axis in seen:
            raise DuplicateSpecError(
                "A single NamedSharding spec specification can map every mesh axis to at most one "
                f"positional dimension, but {spec} has duplicate entries for `{axis}`"
            )
        seen.add(axis)


jaxlib_api.refuse_jax()
jaxlib_api.set_check_pspec(_check_pspec, PartitionSpec())


# ---- methods of every sharding ------------------------------------------------------------


def _device_tuple(sharding: Any) -> tuple[Any, ...]:
    return tuple(sharding._internal_device_list)


def _device_set(sharding: Any) -> set[Any]:
    """All devices of the sharding."""
    return set(sharding._internal_device_list)


def _addressable_device_tuple(sharding: Any) -> tuple[Any, ...]:
    return tuple(sharding._internal_device_list.addressable_device_list)


def _shard_shape(sharding: Any, global_shape: Sequence[int]) -> Shape:
    """The shape of the part of each device."""
    return _shard_shape_of(sharding._to_xla_hlo_sharding(len(global_shape)), sharding,
                           tuple(global_shape))


def _shard_shape_of(hlo: Any, sharding: Any, shape: Shape) -> Shape:
    if hlo.is_replicated() or hlo.is_manual():
        return shape
    tiles = _partitions(hlo)
    for axis, (size, count) in enumerate(zip(shape, tiles, strict=False)):
        if size % count:
            raise IndivisibleError(
                f"{sharding} implies that array axis {axis} is partitioned {count} times, "
                f"but the dimension size is {size} (full shape: {shape}, per-dimension tiling "
                f"factors: {tuple(tiles)} should evenly divide the shape)"
            )
    return tuple(s // t for s, t in zip(shape, tiles, strict=False))


def _partitions(hlo: Any) -> Sequence[int]:
    """In how many parts each dimension is cut."""
    tiles = list(hlo.tile_assignment_dimensions())
    extra = len(hlo.subgroup_types()) or int(hlo.replicate_on_last_tile_dim())
    return tiles[:len(tiles) - extra] if extra else tiles


@lru_cache(maxsize=4096)
def _index_list(sharding: Any, shape: Shape) -> tuple[Index, ...]:
    """The part of each device, in the order of the sharding's devices."""
    hlo = sharding._to_xla_hlo_sharding(len(shape))
    count = len(sharding._internal_device_list)
    if hlo.is_replicated():
        return ((slice(None),) * len(shape),) * count
    part = _shard_shape_of(hlo, sharding, shape)
    tiles = _partitions(hlo)
    order = np.asarray(hlo.tile_assignment_devices()).reshape(*tiles, -1)
    indices: list[Any] = [None] * count
    for coordinates in np.ndindex(*tiles):
        index = tuple(
            slice(None) if n == 1 else slice(c * k, (c + 1) * k)
            for c, n, k in zip(coordinates, tiles, part, strict=True)
        )
        for device in order[coordinates]:
            indices[device] = index
    return tuple(indices)


def _devices_indices_map(sharding: Any, global_shape: Sequence[int]) -> dict[Any, Index]:
    """The part of the array on each device, as a tuple of slices."""
    shape = tuple(global_shape)
    return dict(zip(_device_tuple(sharding), _index_list(sharding, shape), strict=True))


def _addressable_devices_indices_map(sharding: Any, global_shape: Sequence[int]
                                     ) -> dict[Any, Index]:
    """The part of the array on each device of this process."""
    everywhere = sharding.devices_indices_map(global_shape)
    return {d: everywhere[d] for d in _addressable_device_tuple(sharding)}


def _is_fully_addressable(sharding: Any) -> bool:
    return bool(sharding._internal_device_list.is_fully_addressable)


def _is_equivalent_to(sharding: Any, other: Any, ndim: int) -> bool:
    """Whether both put the same elements of every array of rank `ndim` on the same devices."""
    if sharding is other:
        return True
    return bool(
        sharding._internal_device_list == other._internal_device_list
        and sharding.memory_kind == other.memory_kind
        and _same_hlo(sharding._to_xla_hlo_sharding(ndim), other._to_xla_hlo_sharding(ndim))
    )


def _same_hlo(a: Any, b: Any) -> bool:
    return bool(a == b) or (_is_replicated_hlo(a) and _is_replicated_hlo(b))


def _is_replicated_hlo(hlo: Any) -> bool:
    if hlo.is_replicated():
        return True
    return not hlo.is_manual() and bool(hlo.is_tiled()) and math.prod(_partitions(hlo)) == 1


def _check_compatible_aval(sharding: Any, shape: Shape) -> None:
    """ValueError if the sharding names more dimensions than the array has."""


_COMMON: dict[str, Any] = {
    "_device_assignment": property(_device_tuple),
    "_addressable_device_assignment": property(_addressable_device_tuple),
    "_is_concrete": property(lambda self: True),
    "device_set": property(_device_set),
    "addressable_devices": property(lambda self: set(_addressable_device_tuple(self))),
    "has_addressable_devices": property(lambda self: bool(_addressable_device_tuple(self))),
    "num_devices": property(lambda self: len(self._internal_device_list)),
    "is_fully_addressable": property(_is_fully_addressable),
    "memory_kind": property(lambda self: self._memory_kind),
    "shard_shape": _shard_shape,
    "devices_indices_map": _devices_indices_map,
    "addressable_devices_indices_map": _addressable_devices_indices_map,
    "is_equivalent_to": _is_equivalent_to,
    "check_compatible_aval": _check_compatible_aval,
}


def _extend(cls: Any, **methods: Any) -> None:
    for name, method in methods.items():
        if callable(method):
            method.__name__ = name
            method.__qualname__ = f"{cls.__name__}.{name}"
        setattr(cls, name, method)


_extend(Sharding, **_COMMON)

_REPLICATED = HloSharding.replicate()


# ---- one device ---------------------------------------------------------------------------


def _single_eq(self: Any, other: Any) -> Any:
    if self is other:
        return True
    if type(other) is not SingleDeviceSharding:
        return NotImplemented
    return self._device is other._device and self._memory_kind == other._memory_kind


def _single_index(self: Any, global_shape: Sequence[int]) -> dict[Any, Index]:
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


@lru_cache(maxsize=256)
def single_device_sharding(device: Any, memory_kind: str | None = None) -> Any:
    """The sharding of arrays on one device; always the same object."""
    return SingleDeviceSharding(device, memory_kind=memory_kind)


# ---- a mesh -------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def _named_hlo(mesh: Any, spec: Any, ndim: int) -> Any:
    """The V2 form: the mesh's devices, axes transposed so that each dimension's come first."""
    names, sizes = mesh.axis_names, mesh.axis_sizes
    entries = (*spec, *(None,) * (ndim - len(spec)))
    order: list[int] = []
    tiles: list[int] = []
    for entry in entries:
        axes = [names.index(a) for a in _axes_of((entry,))]
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


def _named_eq(self: Any, other: Any) -> Any:
    if self is other:
        return True
    if type(other) is not NamedSharding:
        return NotImplemented
    return (self.mesh == other.mesh and self.spec == other.spec
            and self._memory_kind == other._memory_kind
            and self._logical_device_ids == other._logical_device_ids)


def _named_repr(self: Any) -> str:
    kind = "" if self.memory_kind is None else f", memory_kind={self.memory_kind}"
    ids = self._logical_device_ids
    logical = "" if ids is None else f", logical_device_ids={ids}"
    return f"NamedSharding(mesh={self.mesh}, spec={self.spec}{kind}{logical})"


def _named_is_replicated(self: Any) -> bool:
    sizes = self.mesh.shape
    return all(sizes[a] == 1 for a in _axes_of(self.spec))


def _named_check_aval(self: Any, shape: Shape) -> None:
    if len(shape) < len(self.spec):
        hint = " For scalars the PartitionSpec should be P()" if not shape else ""
        raise ValueError(
            f"Sharding {self} is only valid for values of rank at least {len(self.spec)}, but was "
            f"applied to a value of rank {len(shape)}.{hint}"
        )


def _named_shard_shape(self: Any, global_shape: Sequence[int]) -> Shape:
    _named_check_aval(self, tuple(global_shape))
    return _shard_shape(self, global_shape)


def _named_update(self: Any, **changes: Any) -> Any:
    return NamedSharding(
        changes.get("mesh", self.mesh), changes.get("spec", self.spec),
        memory_kind=changes.get("memory_kind", self._memory_kind),
        _logical_device_ids=changes.get("_logical_device_ids", self._logical_device_ids),
    )


_extend(
    NamedSharding,
    __eq__=_named_eq,
    __hash__=lambda self: hash((self.mesh, self.spec, self._memory_kind)),
    __repr__=_named_repr,
    __reduce__=lambda self: (_make_named, (self.mesh, self.spec, self._memory_kind,
                                           self._logical_device_ids)),
    is_fully_replicated=property(_named_is_replicated),
    shard_shape=_named_shard_shape,
    check_compatible_aval=_named_check_aval,
    _to_xla_hlo_sharding=lambda self, num_dimensions: _named_hlo(self.mesh, self.spec,
                                                                 num_dimensions),
    update=_named_update,
    with_memory_kind=lambda self, kind: self.update(memory_kind=kind),
)


def _make_named(mesh: Any, spec: Any, memory_kind: Any, logical_device_ids: Any) -> Any:
    return NamedSharding(mesh, spec, memory_kind=memory_kind,
                         _logical_device_ids=logical_device_ids)


# ---- XLA's own form -----------------------------------------------------------------------


def _gspmd_eq(self: Any, other: Any) -> Any:
    if self is other:
        return True
    if type(other) is not GSPMDSharding:
        return NotImplemented
    return (self._internal_device_list == other._internal_device_list
            and _same_hlo(self._hlo_sharding, other._hlo_sharding)
            and self._memory_kind == other._memory_kind)


def _gspmd_repr(self: Any) -> str:
    kind = "" if self.memory_kind is None else f", memory_kind={self.memory_kind}"
    return f"GSPMDSharding({self._hlo_sharding!r}{kind})"


def _get_replicated(devices: Any, memory_kind: str | None = None) -> Any:
    """The sharding that puts a copy on each of `devices`."""
    if not isinstance(devices, DeviceList):
        devices = DeviceList(tuple(devices))
    return GSPMDSharding(devices, _REPLICATED, memory_kind=memory_kind)


_extend(
    GSPMDSharding,
    __eq__=_gspmd_eq,
    __hash__=lambda self: hash((self._internal_device_list, self._memory_kind)),
    __repr__=_gspmd_repr,
    __reduce__=lambda self: (_make_gspmd, (_device_tuple(self), self._hlo_sharding.to_proto(),
                                           self._memory_kind)),
    is_fully_replicated=property(lambda self: _is_replicated_hlo(self._hlo_sharding)),
    _to_xla_hlo_sharding=lambda self, num_dimensions: self._hlo_sharding,
    with_memory_kind=lambda self, kind: GSPMDSharding(self._internal_device_list,
                                                      self._hlo_sharding, memory_kind=kind),
)
GSPMDSharding.get_replicated = staticmethod(_get_replicated)


def _make_gspmd(devices: tuple[Any, ...], proto: Any, memory_kind: Any) -> Any:
    return GSPMDSharding(devices, proto, memory_kind=memory_kind)
