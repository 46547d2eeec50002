"""Meshes: arrays of devices whose axes have names, and their shapes without devices."""

from __future__ import annotations

import enum
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ContextDecorator
from functools import lru_cache, partial
from typing import Any, TypeAlias

import numpy as np

from pyjx import configuration
from pyjx.core.frames import warn
from pyjx.core.records import Field, Frozen, Value, filled, of_field, refuse_unknown
from pyjx.core.value_texts import MADE_MESH, shortened
from pyjx.interning import Interned
from pyjx.jaxlib_api import DeviceList

Shape = tuple[int, ...]


class AxisType(enum.Enum):
    """Who decides how arrays lie along an axis of a mesh: the compiler, the types, the user."""

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self) -> str:
        return self.name


class AbstractDevice(Value):
    """The kind of a mesh's devices.

    >>> import pyjx as jax
    >>> jax.sharding.AbstractDevice("TPU v5e", 1, "tpu").platform
    'tpu'
    """

    __slots__ = ("device_kind", "num_cores", "platform")

    device_kind: str
    num_cores: int | None
    platform: str | None

    def __init__(self, device_kind: str, num_cores: int | None, platform: str | None) -> None:
        filled(self, device_kind=device_kind, num_cores=num_cores, platform=platform)

    def __repr__(self) -> str:
        return f"AbstractDevice({self._text()})"

    def _text(self) -> str:
        return (f"device_kind={self.device_kind}, num_cores={self.num_cores}, "
                f"platform={self.platform}")


class _Axes(Frozen):
    """What meshes with and without devices say of their axes."""

    __slots__ = ()

    axis_names: tuple[Any, ...]
    axis_types: tuple[AxisType, ...]
    size: int

    @property
    def axis_sizes(self) -> Shape:
        """The size of each axis."""
        raise NotImplementedError

    @property
    def shape(self) -> Mapping[Any, int]:
        """The size of each axis by its name."""
        return OrderedDict(self.shape_tuple)

    @property
    def shape_tuple(self) -> tuple[tuple[Any, int], ...]:
        """Pairs of the name and the size of each axis."""
        return tuple(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def empty(self) -> bool:
        """Whether it has no devices."""
        return self.size == 0

    def _axes_of_type(self, wanted: AxisType) -> tuple[Any, ...]:
        return tuple([n for n, t in zip(self.axis_names, self.axis_types, strict=True)
                      if t is wanted])

    @property
    def auto_axes(self) -> tuple[Any, ...]:
        """The axes along which the compiler decides."""
        return self._axes_of_type(AxisType.Auto)

    @property
    def explicit_axes(self) -> tuple[Any, ...]:
        """The axes along which types decide."""
        return self._axes_of_type(AxisType.Explicit)

    @property
    def manual_axes(self) -> tuple[Any, ...]:
        """The axes along which the user decides."""
        return self._axes_of_type(AxisType.Manual)

    @property
    def are_all_axes_auto(self) -> bool:
        return all([t is AxisType.Auto for t in self.axis_types])

    @property
    def are_all_axes_explicit(self) -> bool:
        return all([t is AxisType.Explicit for t in self.axis_types])

    @property
    def are_all_axes_manual(self) -> bool:
        return all([t is AxisType.Manual for t in self.axis_types])

    @property
    def are_all_axes_explicit_or_manual(self) -> bool:
        return AxisType.Auto not in self.axis_types

    def _text(self) -> str:
        axes = ", ".join([f"'{n}': {k}" for n, k in self.shape_tuple])
        return f"{axes}, axis_types={self.axis_types}"


def _types_of(what: str, names: tuple[Any, ...], given: Any, default: AxisType
              ) -> tuple[AxisType, ...]:
    if given is None:
        return (default,) * len(names)
    types = given if isinstance(given, tuple) else (given,)
    if not all([isinstance(t, AxisType) for t in types]):
        raise TypeError(f"axis_types passed to {what} must be of type `jax.sharding.AxisType`. Got "
                        f"{types} of type {tuple(map(type, types))}. Give one of AxisType.Auto, "
                        ".Explicit and .Manual for each axis.")
    if len(types) != len(names):
        raise ValueError("Number of axis names should match the number of axis_types. Got "
                         f"axis_names={names} and axis_types={types}. For all axes alike give "
                         f"(AxisType.{types[0].name if types else 'Auto'},) * {len(names)}.")
    return types


def _names_of(given: Any) -> tuple[Any, ...]:
    if isinstance(given, (str, bytes)):
        given = (given,)
    if not isinstance(given, Iterable):
        raise TypeError("Mesh: axis_names must be a sequence of names, such as ('x', 'y'), got "
                        f"{shortened(given)}")
    names = tuple(given)
    if None in names:
        raise ValueError(f"Mesh axis names cannot be None. Got: {names}")
    return names


# -- without devices -------------------------------------------------------------------------------


class AbstractMesh(_Axes):
    """The shape of a mesh, for programs that are traced before their devices are known.

    Args:
      axis_sizes: the size of each axis.
      axis_names: a name for each axis.
      axis_types: an `AxisType` for each axis, by default Explicit.
      abstract_device: the kind of the devices.

    Raises:
      ValueError: the numbers of sizes, names and types differ.

    >>> import pyjx as jax
    >>> jax.sharding.AbstractMesh((2, 4), ("x", "y")).shape["y"]
    4
    """

    __slots__ = ("__weakref__", "_axis_sizes", "abstract_device", "axis_names", "axis_types",
                 "size")

    abstract_device: AbstractDevice | None
    _axis_sizes: Shape
    _internal_device_list = None  # for C++

    def __new__(cls, axis_sizes: Any = None, axis_names: Any = None, axis_types: Any = None, *,
                abstract_device: AbstractDevice | None = None) -> AbstractMesh:
        if axis_sizes is axis_names is None:  # a pickle, which has the state of one without them
            return object.__new__(cls)
        names = _names_of(axis_names)
        sizes = tuple(axis_sizes)
        if len(sizes) != len(names):
            raise ValueError(f"AbstractMesh requires a name for each axis, but got {len(sizes)} "
                             f"axis_sizes {sizes} and {len(names)} axis_names {names}.")
        types = _types_of("AbstractMesh", names, axis_types, AxisType.Explicit)
        key = cls, sizes, names, types, abstract_device
        return _abstract_meshes.of(key, _new_abstract)  # type: ignore[no-any-return]

    def __init__(self, axis_sizes: Sequence[int], axis_names: object, axis_types: object = None, *,
                 abstract_device: AbstractDevice | None = None) -> None:
        """Whoever calls the class gives sizes and names; pickles do not call this."""

    __new__.__wrapped__ = __init__  # type: ignore[attr-defined]  # what `help` tells

    def __reduce__(self) -> Any:
        device = self.abstract_device
        made = AbstractMesh if device is None else partial(AbstractMesh, abstract_device=device)
        return made, (self._axis_sizes, self.axis_names, self.axis_types)

    axis_sizes: Field[Shape] = of_field("_axis_sizes", "The size of each axis.")

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The mesh itself."""
        return self

    def update(self, axis_sizes: Any = None, axis_names: Any = None, axis_types: Any = None,
               **kwargs: Any) -> AbstractMesh:
        """The mesh with some of its arguments replaced."""
        device = kwargs.pop("abstract_device", self.abstract_device)
        refuse_unknown("AbstractMesh.update()", kwargs)
        return AbstractMesh(
            self.axis_sizes if axis_sizes is None else axis_sizes,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types, abstract_device=device)

    def update_axis_types(self, name_to_type: Mapping[Any, AxisType]) -> AbstractMesh:
        """The mesh with other types of the axes of these names."""
        types = [name_to_type.get(n, t)
                 for n, t in zip(self.axis_names, self.axis_types, strict=True)]
        return self.update(axis_types=tuple(types))

    def __repr__(self) -> str:
        device = "" if self.abstract_device is None else f", {self.abstract_device._text()}"
        text = self._text() if self.axis_names else "(), axis_types=()"
        return f"AbstractMesh({text}{device})"

    __str__ = __repr__


def _unknown(name: str) -> Any:
    def get(self: AbstractMesh) -> Any:
        """Only a mesh of devices has it."""
        raise ValueError(f"AbstractMesh does not implement {name}")

    return get


for _name in ("devices", "device_ids", "local_devices", "local_mesh", "is_multi_process"):
    setattr(AbstractMesh, _name, property(_unknown(_name)))
for _name in ("__enter__", "__exit__"):
    setattr(AbstractMesh, _name, lambda self, *_, name=_name: _unknown(name)(self))


_abstract_meshes = Interned()  # as they are in keys of caches


def _new_abstract(cls: Any, sizes: Shape, names: tuple[Any, ...], types: tuple[AxisType, ...],
                  device: AbstractDevice | None) -> AbstractMesh:
    size = int(np.prod(sizes, dtype=np.int64)) if sizes else 0
    return filled(object.__new__(cls), _axis_sizes=sizes, axis_names=names,  # type: ignore[no-any-return]
                  axis_types=types, abstract_device=device, size=size)


# -- with devices ----------------------------------------------------------------------------------


class Mesh(_Axes, ContextDecorator):
    """An array of devices whose axes have names.

    As a context it is the mesh of the specs of `with_sharding_constraint` in its body, and of
    nothing else: that is deprecated, and `jax.set_mesh(mesh)` sets it for all.

    Args:
      devices: array (or nested sequence) of devices.
      axis_names: a name for each axis.
      axis_types: an `AxisType` for each axis, by default Auto.

    `Mesh(np.empty((), object), ())` is the mesh of no devices.

    Raises:
      ValueError: the number of names is not the number of axes.
      TypeError: a type is no `AxisType`.
    """

    devices: np.ndarray[Any, Any]
    _internal_device_list: Any
    _abstract: AbstractMesh

    def __new__(cls, devices: Any, axis_names: Any, axis_types: Any = None) -> Mesh:
        devices = np.asarray(devices, dtype=object)
        names = _names_of(axis_names)
        if devices.size and isinstance(devices.flat[0], (int, str)):
            raise TypeError("Mesh: devices must be an array of devices, got "
                            f"{shortened(devices.tolist())}. "
                            f"{MADE_MESH}")
        if devices.ndim != len(names):
            raise ValueError("Mesh requires the ndim of its first argument (`devices`) to equal "
                             "the length of its second argument (`axis_names`), but got "
                             f"devices.ndim == {devices.ndim} and len(axis_names) == {len(names)}. "
                             "jax.make_mesh takes the sizes of the axes.")
        if not names and devices.item() is None:  # as an empty array of objects is
            return empty_mesh()
        types = _types_of("Mesh", names, axis_types, AxisType.Auto)
        key = cls, tuple(devices.flat), devices.shape, names, types
        return _meshes.of(key, _new_mesh)  # type: ignore[no-any-return]

    def __reduce__(self) -> Any:
        return type(self), (self.devices, self.axis_names, self.axis_types)

    def __enter__(self) -> Mesh:
        if configuration.disallow_mesh_context_manager.value:
            raise RuntimeError("Mesh context manager is disabled. Use `with jax.set_mesh(mesh):`.")
        warn("`with mesh:` context manager has been deprecated. Please use "
             "`with jax.set_mesh(mesh):` instead.", DeprecationWarning)
        _entered.around.append(configuration.entered_mesh.swap_local(self))
        return self

    def __exit__(self, *_: object) -> None:
        configuration.entered_mesh.set_local(_entered.around.pop())

    axis_sizes: Field[Shape] = of_field("devices.shape", "The size of each axis.")

    abstract_mesh: Field[AbstractMesh] = of_field("_abstract", "The mesh without its devices.")

    @property
    def is_scalar(self) -> bool:
        """Whether it is one device without axes."""
        return self.size == 1 and not self.axis_names

    @property
    def device_ids(self) -> np.ndarray[Any, Any]:
        """The numbers of the devices, as an array of the mesh's shape."""
        if self.empty:
            return np.empty(0, int)
        return np.array([d.id for d in self.devices.flat], int).reshape(self.devices.shape)

    @property
    def local_devices(self) -> list[Any]:
        """The devices of this process."""
        return [d for d in self._internal_device_list
                if d.process_index == d.client.process_index()]

    @property
    def is_multi_process(self) -> bool:
        """Whether some of its devices are of other processes."""
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

    def update(self, devices: Any = None, axis_names: Any = None, axis_types: Any = None) -> Mesh:
        """The mesh with some of its arguments replaced."""
        return Mesh(self.devices if devices is None else devices,
                    self.axis_names if axis_names is None else axis_names,
                    self.axis_types if axis_types is None else axis_types)

    def __repr__(self) -> str:
        types = "" if self.empty else f", axis_types={self.axis_types}"
        return f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names}{types})"

    def __str__(self) -> str:
        return "Mesh()" if self.empty else f"Mesh({self._text()})"


AnyMesh: TypeAlias = Mesh | AbstractMesh
_meshes = Interned()  # C++ compares those of two shardings by identity


class _Entered(threading.local):
    """What to go back to from the meshes that this thread has entered."""

    def __init__(self) -> None:
        self.around: list[Any] = []


_entered = _Entered()


def device_array(devices: Sequence[Any], shape: Sequence[int] = (-1,)) -> np.ndarray[Any, Any]:
    """Devices, or what stands for them, as an array of objects."""
    array = np.empty(len(devices), dtype=object)
    array[:] = devices
    return array.reshape(shape)


def _new_mesh(cls: Any, devices: tuple[Any, ...], shape: Shape, names: tuple[Any, ...],
              types: tuple[AxisType, ...]) -> Mesh:
    return _filled_mesh(object.__new__(cls), device_array(devices, shape), names, types,
                        DeviceList(devices),
                        AbstractMesh(shape, names, types, abstract_device=_kind_of(devices)))


def _filled_mesh(mesh: Mesh, devices: np.ndarray[Any, Any], names: tuple[Any, ...],
                 types: tuple[AxisType, ...], device_list: Any, abstract: AbstractMesh) -> Mesh:
    devices.flags.writeable = False
    return filled(mesh, devices=devices, axis_names=names, axis_types=types,  # type: ignore[no-any-return]
                  size=len(device_list), _internal_device_list=device_list, _abstract=abstract)


@lru_cache(maxsize=1)
def empty_mesh() -> Mesh:
    """The mesh where none has been set: of no axes, and without a device."""
    return _filled_mesh(object.__new__(Mesh), np.empty((), dtype=object), (), (), DeviceList(()),
                        AbstractMesh((), ()))


def _kind_of(devices: Sequence[Any]) -> AbstractDevice | None:
    if not devices or not hasattr(devices[0], "platform"):  # what stands for devices in tests
        return None
    first = devices[0]
    cores = getattr(first, "num_cores", None) if first.platform == "tpu" else None
    return AbstractDevice(first.device_kind, cores, first.platform)
