"""Places: what types say of where values are, besides their shapes and dtypes.

- `sharding`: how dimensions are cut along the Explicit axes of a mesh; None where none is.
- `mat`, in a program for each device (`shard_map`): along which axes of the mesh the devices may
  hold different values. A value varies along an axis if an operand that it is computed from does.
  What does not vary is the same on all devices along the axis, and so is its cotangent: where a
  program takes such a value for one that varies (`pvary`), the transposed one adds up the
  cotangents of all devices. What is `unreduced` is a part of a sum that is yet to be taken over the
  devices; it may go through linear operations. What is `reduced` is the same on all devices, as
  the cotangent of what is unreduced is; its own cotangent is unreduced, so the sum of `pvary` is
  left to the user. Outside of such programs the sharding says the same.
- `space`: the memory.

Places are interned: equal ones are one object. Nearly all types have the same, `HERE`. Shape rules
know nothing of places; those of results come from those of operands (core/explicit.py).
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Sequence
from typing import Any

from pyjx import configuration
from pyjx.core.bounded import kept
from pyjx.core.meshes import AbstractMesh, AnyMesh, AxisType
from pyjx.core.records import Frozen, filled
from pyjx.core.specs import NO_AXES, Axes, ManualAxisType, PartitionSpec, axes_of
from pyjx.interning import Interned
from pyjx.jaxlib_api import NamedSharding, Sharding


class Space(enum.Enum):
    """A memory: that of the device, that of its host, or either."""

    Device = enum.auto()
    Host = enum.auto()
    Any = enum.auto()

    def __repr__(self) -> str:
        return f"MemorySpace.{self.name}"

    __str__ = __repr__

    @property
    def memory_kind(self) -> str | None:
        """What devices call it; None where any will do."""
        return MEMORY_KINDS.get(self)


MEMORY_KINDS = {Space.Host: "pinned_host", Space.Device: "device"}
UNIFORM = ManualAxisType()  # the same on all devices
_WHOLE = PartitionSpec()


class Place(Frozen):
    """Where values of a type are.

    >>> Place() is HERE, Place(memory_space=Space.Host).update(memory_space=None) is HERE
    (True, True)
    """

    __slots__ = ("__weakref__", "mat", "sharding", "space", "spec")

    mat: ManualAxisType
    sharding: Any  # a NamedSharding, or None
    space: Space
    spec: PartitionSpec  # of the sharding

    def __new__(cls, sharding: Sharding | None = None,
                manual_axis_type: ManualAxisType | None = None,
                memory_space: Space | None = None) -> Place:
        if sharding is not None and names_no_mesh(sharding):
            sharding = None  # that of a type which says nothing
        if manual_axis_type is None or manual_axis_type.empty:
            manual_axis_type = UNIFORM
        return _places.of((sharding, manual_axis_type, memory_space or Space.Device), _made)  # type: ignore[no-any-return]

    def __reduce__(self) -> Any:
        return Place, (self.sharding, self.mat, self.space)

    def update(self, **fields: Any) -> Place:
        """The place with some of what makes it replaced."""
        return Place(**{"sharding": self.sharding, "manual_axis_type": self.mat,
                        "memory_space": self.space, **fields})

    @property
    def memory_kind(self) -> str | None:
        """What devices call the memory; None for their own."""
        return None if self.space is Space.Device else self.space.memory_kind

    def along(self, mesh: AnyMesh | None, ndim: int) -> Place:
        """The place of a whole array, naming the mesh that the array lies along, or none. It is for
        readers: in programs nothing is said of whole arrays."""
        return _places.of((HERE.sharding_along(mesh, ndim), self.mat, self.space), _made)  # type: ignore[no-any-return]

    def sharding_along(self, mesh: AnyMesh | None, ndim: int) -> Any:
        """The sharding; of values that have none that of copies along the mesh."""
        return self.sharding or NamedSharding(mesh, PartitionSpec(*[None] * ndim))

    def on(self, sharding: Sharding | None, ndim: int) -> Place:
        """The place of an array that lies as `sharding` says, in the memory that it names."""
        found, space = None, self.space
        if sharding is not None:
            if sharding._memory_kind is not None:
                space = space_called(sharding._memory_kind)
            if type(sharding) is NamedSharding:
                found = explicit_sharding(sharding.mesh.abstract_mesh, sharding.spec, ndim)
        if found is self.sharding and space is self.space:
            return self
        return Place(found, self.mat, space)

    def of_part(self, mesh: AnyMesh, spec: PartitionSpec, manual: Axes, typed: bool,
                ndim: int) -> Place:
        """The place of the part that each device has, in a program along the `manual` axes of the
        mesh, of a value cut as `spec` says. Axes of the mesh that are Explicit and not among those
        stay in types. `typed`: whether types say what varies."""
        place = self
        if self.sharding is not None:
            rest = frozenset(mesh.axis_names) - manual
            inner = self.sharding.mesh.abstract_mesh.update_axis_types(
                dict.fromkeys(manual, AxisType.Manual))
            place = self.update(sharding=explicit_sharding(
                inner, spec_along(self.spec, rest), ndim))
        if not typed or spec == _WHOLE:
            return place
        mat = self.mat
        return place.update(manual_axis_type=manual_type(
            mat.varying.union(names_in_types(mesh, axes_of(spec))), mat.unreduced | spec.unreduced,
            mat.reduced | spec.reduced))

    def of_whole(self, mesh: AnyMesh, spec: PartitionSpec, manual: Axes, ndim: int) -> Place:
        """The place of the value that devices have parts in this place of."""
        inner, mat = self.spec, self.mat
        entries = [tuple(axes_of((e,))) for e in (*inner, *[None] * (ndim - len(inner)))]
        for i, entry in enumerate(spec):
            entries[i] = (*axes_of((entry,)), *entries[i])
        whole = PartitionSpec(*entries, unreduced=spec.unreduced | inner.unreduced,
                              reduced=spec.reduced | inner.reduced,
                              unreduced_kind=spec.unreduced_kind or inner.unreduced_kind)
        return Place(explicit_sharding(mesh.abstract_mesh, whole, ndim),
                     manual_type(mat.varying - manual, mat.unreduced - manual,
                                 mat.reduced - manual), self.space)

    def of_cotangent(self) -> Place:
        """The place of cotangents: what is yet to be summed has been, and the other way round."""
        spec, mat = self.spec, self.mat
        if not (spec.unreduced or spec.reduced or mat.unreduced or mat.reduced):
            return self
        return Place(self.sharding and self.sharding.update(spec=spec.to_ct_spec()),
                     mat.to_ct_mat(), self.space)

    @property
    def is_open(self) -> bool:
        """Whether values are yet to be summed over a mesh."""
        return bool(self.mat.unreduced or self.spec.unreduced)


_places = Interned()


def _made(sharding: Any, mat: ManualAxisType, space: Space) -> Place:
    return filled(object.__new__(Place), sharding=sharding, mat=mat, space=space,  # type: ignore[no-any-return]
                  spec=_WHOLE if sharding is None else sharding.spec)


HERE = Place()  # whole, the same on all devices, in the device's own memory


def place_of(x: object) -> Place:
    """Where the type of a value says that it is; `HERE` for what is no array."""
    return getattr(getattr(x, "aval", None), "place", HERE)


@kept(1024)
def manual_type(varying: Axes, unreduced: Axes = NO_AXES, reduced: Axes = NO_AXES
                ) -> ManualAxisType:
    """What a type says of a value that varies, is unreduced, and is reduced along these axes."""
    return ManualAxisType(varying=varying, unreduced=unreduced, reduced=reduced)


def joined(avals: Sequence[Any]) -> Axes:
    """The axes along which some of the types vary."""
    return NO_AXES.union(*[a.place.mat.varying for a in avals])


def are_elsewhere(avals: Sequence[Any]) -> bool:
    """Whether a type among these is that of values in another memory than the device's."""
    return any([a.place.space is not Space.Device for a in avals])


def space_called(kind: str | None) -> Space:
    """The memory that devices call `kind`: that of the host, or else their own."""
    return Space.Host if kind == MEMORY_KINDS[Space.Host] else Space.Device


# -- shardings -------------------------------------------------------------------------------------


def explicit_sharding(mesh: AbstractMesh, spec: PartitionSpec, ndim: int) -> Any:
    """What the types of values of this rank say that lie along `mesh` like `spec`: the Explicit
    axes; None if there is none."""
    return _explicit_sharding(mesh, spec, ndim, names_in_types(mesh, mesh.explicit_axes))


def names_in_types(mesh: AnyMesh, names: Iterable[Any]) -> tuple[Any, ...]:
    """Those among these axes that types speak of; a flag leaves out the ones of size 1."""
    if configuration.remove_size_one_mesh_axis_from_type.value:
        names = [name for name in names if mesh.shape[name] > 1]
    return tuple(names)


@kept(4096)
def _explicit_sharding(mesh: AbstractMesh, spec: PartitionSpec, ndim: int,
                       explicit: tuple[Any, ...]) -> Any:
    if not explicit:
        return None
    full = spec_along(spec, frozenset(explicit))
    full = full.update(partitions=[*full, *[None] * (ndim - len(full))])
    if not axes_of(full) and not full.unreduced and not full.reduced:
        return None
    return NamedSharding(mesh, full)


def spec_along(spec: PartitionSpec, names: Axes) -> PartitionSpec:
    """What a spec says of the axes of these names."""
    unreduced = spec.unreduced & names
    return PartitionSpec(
        *[tuple([a for a in axes_of((p,)) if a in names]) for p in spec], unreduced=unreduced,
        reduced=spec.reduced & names, unreduced_kind=spec.unreduced_kind if unreduced else None)


def names_no_mesh(sharding: Sharding) -> bool:
    """Whether it is over the empty mesh, as the shardings of types are where no mesh is set. Such a
    one leaves a value where it is."""
    return type(sharding) is NamedSharding and sharding.mesh.empty


def parts_along(mesh: AnyMesh, entry: Any) -> int:
    """Into how many parts a dimension with this entry is cut."""
    return math.prod([mesh.shape[a] for a in axes_of((entry,))])


# -- as types show it ------------------------------------------------------------------------------


def dims_text(shape: Sequence[Any], spec: PartitionSpec) -> str:
    """The dimensions, such as `2@x,3`."""
    entries = spec if len(spec) == len(shape) else [None] * len(shape)
    return ",".join([str(n) if p is None else f"{n}@{axes_text(p)}"
                     for n, p in zip(shape, entries, strict=True)])


def axes_text(entry: Any) -> str:
    return f"({','.join(map(str, entry))})" if isinstance(entry, tuple) else str(entry)


def axis_types_text(mesh: AnyMesh) -> str:
    """Such as `({Explicit: ('x', 'y')})`; nothing for the empty mesh."""
    kinds = [(name, axes) for name, axes in (
        ("Auto", mesh.auto_axes), ("Explicit", mesh.explicit_axes),
        ("Manual", mesh.manual_axes)) if axes]
    inner = ", ".join([f"{name}: {axes}" for name, axes in kinds])
    return f"({{{inner}}})" if kinds else ""
