"""How the dimensions of an array lie along the axes of a mesh, by name."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from pyjx import configuration
from pyjx.core.records import Field, Frozen, Value, filled, of_field, put_field, refuse_unknown
from pyjx.core.value_texts import shortened

Axes = frozenset[Any]
NO_AXES: Axes = frozenset()


class UnreducedKind(enum.Enum):
    """The reduction that values along unreduced mesh axes are yet to go through."""

    sum = 1
    max = 2
    min = 3


class UnconstrainedSingleton:
    """The type of `PartitionSpec.UNCONSTRAINED`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> Any:
        return getattr, (PartitionSpec, "UNCONSTRAINED")


class PartitionSpec(Frozen):
    """For each dimension the mesh axes that it is cut along: a name, a tuple of names, or None.

    Args:
      *partitions: the entries; dimensions beyond them are not cut.
      unreduced, reduced: mesh axes along which the values are yet to be (have been) reduced.
      unreduced_kind: by what reduction; by default sums.

    Raises:
      ValueError: an axis is in two of `partitions`, `unreduced` and `reduced`.
      TypeError: `unreduced` or `reduced` is no set.

    >>> import pyjx as jax
    >>> jax.P("x", None, ("y", "z"))
    P('x', None, ('y', 'z'))
    """

    __slots__ = ("_partitions", "reduced", "unreduced", "unreduced_kind")
    UNCONSTRAINED: Any = UnconstrainedSingleton()

    _partitions: tuple[Any, ...]
    unreduced: Axes
    reduced: Axes
    unreduced_kind: UnreducedKind | None

    def __new__(cls, *partitions: Any, unreduced: Any = NO_AXES, reduced: Any = NO_AXES,
                unreduced_kind: UnreducedKind | None = None) -> PartitionSpec:
        self = object.__new__(cls)
        if partitions:
            partitions = tuple([_canonical_partition(p) for p in partitions])
        unreduced = _checked_axes("unreduced", partitions, unreduced)
        reduced = _checked_axes("reduced", partitions, reduced)
        if not unreduced.isdisjoint(reduced):
            raise ValueError("`unreduced` and `reduced` argument to PartitionSpec cannot overlap. "
                             f"Got unreduced: {unreduced} and reduced: {reduced}")
        put_field(self, "_partitions", partitions)
        put_field(self, "unreduced", unreduced)
        put_field(self, "reduced", reduced)
        put_field(self, "unreduced_kind", checked_kind(unreduced_kind, unreduced))
        return self

    partitions: Field[tuple[Any, ...]] = of_field("_partitions", "The entries.")

    def __repr__(self) -> str:
        parts = [repr(p) for p in self._partitions]
        for name in ("unreduced", "reduced"):
            axes = getattr(self, name)
            if axes:
                parts.append(f"{name}={{{', '.join(map(repr, sorted(axes, key=str)))}}}")
        if self.unreduced_kind is not None:
            parts.insert(len(self._partitions) + 1, f"unreduced_kind={self.unreduced_kind.name}")
        inner = ", ".join(parts)
        return f"P({inner},)" if len(self._partitions) == 1 == len(parts) else f"P({inner})"

    def __len__(self) -> int:
        return len(self._partitions)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._partitions)

    def __getitem__(self, index: Any) -> Any:
        return self._partitions[index]

    def _fields(self) -> tuple[Any, ...]:
        return self._partitions, self.unreduced, self.reduced, self.unreduced_kind

    def __eq__(self, other: Any) -> Any:
        return isinstance(other, PartitionSpec) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __add__(self, other: Any) -> PartitionSpec:
        if isinstance(other, PartitionSpec):
            if self.unreduced_kind is not other.unreduced_kind:
                raise TypeError("PartitionSpec can't be added if the unreduced_kind differs in "
                                f"self and other. Got self={self} and other={other}")
            return PartitionSpec(*self._partitions, *other._partitions,
                                 unreduced=self.unreduced | other.unreduced,
                                 reduced=self.reduced | other.reduced,
                                 unreduced_kind=self.unreduced_kind)
        if isinstance(other, tuple):
            return self.update(partitions=(*self._partitions, *other))
        return NotImplemented

    def __radd__(self, other: Any) -> PartitionSpec:
        if not isinstance(other, tuple):
            return NotImplemented
        return self.update(partitions=(*other, *self._partitions))

    def __reduce__(self) -> Any:
        if not (self.unreduced or self.reduced):
            return PartitionSpec, self._partitions
        told: dict[str, Any] = {"unreduced": self.unreduced, "reduced": self.reduced}
        if self.unreduced_kind not in (None, UnreducedKind.sum):
            told["unreduced_kind"] = self.unreduced_kind
        return partial(PartitionSpec, **told), self._partitions

    def index(self, value: Any) -> int:
        """The first dimension with this entry."""
        return self._partitions.index(_canonical_partition(value))

    def count(self, value: Any) -> int:
        """How many dimensions have this entry."""
        return self._partitions.count(_canonical_partition(value))

    def update(self, partitions: Any = None, unreduced: Any = None, reduced: Any = None,
               **kwargs: Any) -> PartitionSpec:
        """The spec with `partitions`, `unreduced`, `reduced` or `unreduced_kind` replaced."""
        kind = kwargs.pop("unreduced_kind", self.unreduced_kind)
        refuse_unknown("PartitionSpec.update()", kwargs)
        return PartitionSpec(*(self._partitions if partitions is None else partitions),
                             unreduced=self.unreduced if unreduced is None else unreduced,
                             reduced=self.reduced if reduced is None else reduced,
                             unreduced_kind=kind)

    def to_tangent_spec(self) -> PartitionSpec:
        """The spec of tangents of values with this one."""
        return self

    def to_ct_spec(self) -> PartitionSpec:
        """The spec of cotangents: what is yet to be summed has been, and the other way round."""
        return PartitionSpec(*self._partitions, unreduced=self.reduced, reduced=self.unreduced)

    def to_lo(self) -> list[PartitionSpec]:
        """The specs of the arrays that a value is made of."""
        return [self]


def _canonical_partition(partition: Any) -> Any:
    several = isinstance(partition, (tuple, list))
    try:
        hash(tuple(partition) if several else partition)
    except TypeError:
        if not (several and any([isinstance(x, list) for x in partition])):  # as below
            raise TypeError("PartitionSpec: each entry must be the name of a mesh axis, a tuple of "
                            f"names or None, got {shortened(partition)}.") from None
    if not several:
        return partition
    for nested in partition:
        if isinstance(nested, (tuple, list)):
            raise ValueError("A tuple inside PartitionSpec cannot contain a nested tuple. Got "
                             f"partition: {partition} and the nested tuple: {nested}")
    if not partition:
        return None
    return partition[0] if len(partition) == 1 else tuple(partition)


def checked_kind(kind: Any, unreduced: Axes) -> UnreducedKind | None:
    """The reduction of unreduced axes, by default sums.

    Raises:
      TypeError: it is no UnreducedKind.
      ValueError: there are no such axes.
    """
    if kind is None:
        return UnreducedKind.sum if unreduced else None
    if not isinstance(kind, UnreducedKind):
        raise TypeError("Expected unreduced_kind to be of type `jax.sharding.UnreducedKind` but "
                        f"got {type(kind)}")
    if not unreduced:
        raise ValueError("`unreduced_kind` should be `None` when `unreduced` is an empty set. Got "
                         f"unreduced_kind={kind!r} and unreduced={unreduced}")
    return kind


def _checked_axes(what: str, partitions: tuple[Any, ...], names: Any) -> Axes:
    if not names:
        return NO_AXES
    if not isinstance(names, (set, frozenset)):
        raise TypeError(f"{what} argument of PartitionSpec should of type `frozenset` or `set`. "
                        f"Got type {type(names)}")
    names = frozenset(names)
    for name in axes_of(partitions):
        if name in names:
            raise ValueError(f"partitions cannot overlap with {what} axes passed to PartitionSpec. "
                             f"Got partitions: {partitions} and {what} axes: {names}")
    return names


P = PartitionSpec


class InferFromArgs:
    """The type of `jax.sharding.Infer`, which leaves it to the arguments how they are cut."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "jax.sharding.Infer"

    def __reduce__(self) -> str:
        return "Infer"


Infer = InferFromArgs()


def axes_of(partitions: Iterable[Any]) -> list[Any]:
    """The mesh axes in the entries of a spec."""
    axes: list[Any] = []
    for p in partitions:
        if p is None or p is PartitionSpec.UNCONSTRAINED:
            continue
        axes += p if isinstance(p, tuple) else (p,)
    return axes


def marks_text(**marks: Axes) -> str:
    """How types show sets of axes, such as `{V:(x,y), R:z}`."""
    parts = []
    for letter, axes in marks.items():
        names = ",".join(sorted(map(str, axes)))
        if axes:
            parts.append(f"{letter}:({names})" if len(axes) > 1 else f"{letter}:{names}")
    return f"{{{', '.join(parts)}}}" if parts else ""


class ManualAxisType(Value):
    """Of a value inside a program for each device: the mesh axes along which devices hold other
    values (`varying`), values that are yet to be reduced, and values that have been.

    >>> import pyjx as jax
    >>> jax.sharding.ManualAxisType(varying={"x"}).varying
    frozenset({'x'})
    """

    __slots__ = ("reduced", "unreduced", "unreduced_kind", "varying")

    varying: Axes
    unreduced: Axes
    reduced: Axes
    unreduced_kind: UnreducedKind | None

    def __new__(cls, *, varying: Any = NO_AXES, unreduced: Any = NO_AXES, reduced: Any = NO_AXES,
                unreduced_kind: UnreducedKind | None = None) -> ManualAxisType:
        self = object.__new__(cls)
        for name, axes in (("varying", varying), ("unreduced", unreduced), ("reduced", reduced)):
            if not isinstance(axes, (set, frozenset)):
                raise TypeError(f"{name} argument of ManualAxisType should of type `frozenset` or "
                                f"`set`. Got type {type(axes)}")
            filled(self, **{name: frozenset(axes)})
        for name, axes in (("unreduced", self.unreduced), ("reduced", self.reduced)):
            if not axes.isdisjoint(self.varying):
                raise ValueError(f"varying and {name} cannot have common mesh axes. Got "
                                 f"varying={self.varying} and {name}={axes}")
        return filled(self, unreduced_kind=checked_kind(unreduced_kind, self.unreduced))  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return (f"ManualAxisType(varying={self.varying}, unreduced={self.unreduced}, "
                f"reduced={self.reduced}, unreduced_kind={self.unreduced_kind})")

    def text(self) -> str:
        """How types show it, such as `{V:x}`."""
        return marks_text(V=self.varying, U=self.unreduced, R=self.reduced)

    @property
    def vur(self) -> Axes:
        """All axes that it names."""
        return self.varying | self.unreduced | self.reduced

    @property
    def empty(self) -> bool:
        """Whether it names no axis."""
        return not self.vur

    def invarying(self, mesh: Any) -> Axes:
        """The manual axes of a mesh along which all devices hold the same value."""
        return frozenset(mesh.manual_axes) - self.vur

    def to_ct_mat(self) -> ManualAxisType:
        """That of cotangents: what is yet to be reduced has been, and the other way round."""
        return ManualAxisType(varying=self.varying, unreduced=self.reduced, reduced=self.unreduced)


def spec_to_give(spec: PartitionSpec | str = "P(...)") -> str:
    """For messages: a sharding as it is to be given here. A spec alone is along the mesh that is
    set, and names none where none is."""
    is_set = configuration.abstract_mesh.value is not None
    return f"{spec}" if is_set else f"NamedSharding(mesh, {spec})"


def reshard_first(what: str = "it") -> str:
    """For messages: that an operand is to lie otherwise."""
    return f"Call jax.reshard on {what} before, with {spec_to_give()}."


# -- of values of types that libraries bring -------------------------------------------------------


class MappingSpec:
    """How a batch of values of a type is made: base of what types bring. It is an entry of the
    `in_axes` and `out_axes` of `vmap`, compared and hashed."""

    __slots__ = ()


class HiPspec:
    """How a value of a type lies on a mesh: base of what types bring. It is an entry of the
    `in_specs` and `out_specs` of `shard_map`."""

    def to_lo(self) -> Sequence[Any]:
        """The specs of the values that it is made of."""
        raise NotImplementedError(f"{type(self).__name__} must override to_lo")

    def to_tangent_spec(self) -> HiPspec:
        """That of its tangents."""
        raise NotImplementedError(f"{type(self).__name__} must override to_tangent_spec")

    def to_ct_spec(self) -> HiPspec:
        """That of its cotangents."""
        raise NotImplementedError(f"{type(self).__name__} must override to_ct_spec")
