"""Other looks at the value of a reference: its elements in another shape or order, its bits as
another dtype. Each can be undone, so that what is written through it has its place in the value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pyjx.core import dtypes
from pyjx.core.array_type import ArrayLike, DTypeLike
from pyjx.core.avals import AbstractRef, canonical_shape, get_aval
from pyjx.engine.axes import transpose
from pyjx.lax.shapes import bitcast_convert_type, reshape

Shape = tuple[int, ...]


class Transform:
    """One that gives values the shape, order, dtype or memory `to`."""

    __slots__ = ("to",)

    linear = True  # whether tangents are looked at in the same way

    def __init__(self, to: Any) -> None:
        self.to = to

    def type_of(self, ref: AbstractRef) -> AbstractRef:
        """The type of a reference that is looked at like this."""
        inner = ref.inner_aval
        return ref.update(inner.update(shape=self.shape(ref.shape, inner.dtype), weak_type=False))

    def shape(self, shape: Shape, dtype: Any) -> Shape:
        return shape

    def read(self, x: ArrayLike) -> Any:
        """What is seen of `x`."""
        return x

    def undo(self, x: ArrayLike, new: Any) -> Any:
        """The value in the place of `x` of which `new` is seen."""
        return new

    def batched(self, dim: int, size: int) -> tuple[Transform, int] | None:
        """The same for each example of a batch along `dim`, and where its axis is then; None where
        it cannot be told."""
        return self, dim

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.to == other.to  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self), self.to))

    def __repr__(self) -> str:
        return f"{type(self).__name__.lower()}({self.to})"


class Reshape(Transform):
    """The elements in another shape."""

    __slots__ = ()

    def shape(self, shape: Shape, dtype: Any) -> Shape:
        return self.to  # type: ignore[no-any-return]

    def read(self, x: ArrayLike) -> Any:
        return reshape(x, self.to)

    def undo(self, x: ArrayLike, new: Any) -> Any:
        return reshape(new, get_aval(x).shape)

    def batched(self, dim: int, size: int) -> tuple[Transform, int] | None:
        return (Reshape((size, *self.to)), 0) if dim == 0 else None

    def __repr__(self) -> str:
        return f"reshape({list(self.to)})"


class Transpose(Transform):
    """The axes in another order."""

    __slots__ = ()

    def shape(self, shape: Shape, dtype: Any) -> Shape:
        return tuple([shape[i] for i in self.to])

    def read(self, x: ArrayLike) -> Any:
        return transpose(x, self.to)

    def undo(self, x: ArrayLike, new: Any) -> Any:
        return transpose(new, [self.to.index(i) for i in range(len(self.to))])

    def batched(self, dim: int, size: int) -> tuple[Transform, int] | None:
        return Transpose((dim, *[i + (i >= dim) for i in self.to])), 0

    def __repr__(self) -> str:
        return f"transpose({list(self.to)})"


class Bitcast(Transform):
    """The bits as another dtype. Where that is narrower or wider, elements that lie below each
    other, along the last axis but one, are one element of the wider dtype, lowest bits first."""

    __slots__ = ()

    linear = False

    def type_of(self, ref: AbstractRef) -> AbstractRef:
        looked_at = super().type_of(ref)
        return looked_at.update(looked_at.inner_aval.update(dtype=self.to))

    def shape(self, shape: Shape, dtype: Any) -> Shape:
        old, new = dtypes.itemsize_bits(dtype), dtypes.itemsize_bits(self.to)
        if old == new:
            return shape
        if len(shape) < 2:
            raise NotImplementedError(
                f"bitcast of a reference of shape {shape} and dtype {dtypes.name(dtype)} to "
                f"{dtypes.name(self.to)}: with another width it has at least two axes.")
        rows, rest = divmod(shape[-2] * old, new)
        if rest:
            raise ValueError(
                f"bitcast of a reference of shape {shape} and dtype {dtypes.name(dtype)} to "
                f"{dtypes.name(self.to)}: the last axis but one holds no whole elements.")
        return (*shape[:-2], rows, shape[-1])

    def read(self, x: ArrayLike) -> Any:
        return _as_dtype(x, self.to, self.shape(get_aval(x).shape, get_aval(x).dtype))

    def undo(self, x: ArrayLike, new: Any) -> Any:
        return _as_dtype(new, get_aval(x).dtype, get_aval(x).shape)

    def batched(self, dim: int, size: int) -> tuple[Transform, int] | None:
        return (self, 0) if dim == 0 else None

    def __repr__(self) -> str:
        return f"bitcast({dtypes.name(self.to)})"


def _as_dtype(x: ArrayLike, dtype: DTypeLike, shape: Shape) -> Any:
    old = get_aval(x).shape
    if old == shape:
        return bitcast_convert_type(x, dtype)
    outer, n = len(shape) - 2, shape[-1]
    swapped = (*range(outer + 1), outer + 2, outer + 1)
    if shape[-2] > old[-2]:
        parts = bitcast_convert_type(x, dtype)  # the parts of an element along the last axis
        return reshape(transpose(parts, swapped), shape)
    parts = reshape(x, (*shape[:-1], old[-2] // max(shape[-2], 1), n))
    return bitcast_convert_type(transpose(parts, swapped), dtype)


class MemorySpaceCast(Transform):
    """The value in another memory, by the type of the reference."""

    __slots__ = ()

    def type_of(self, ref: AbstractRef) -> AbstractRef:
        return ref.update(memory_space=self.to)

    def __repr__(self) -> str:
        return f"memory_space_cast({self.to})"


# -- made for a reference of a type ----------------------------------------------------------------


def reshape_of(shape: Shape, to: Sequence[Any]) -> Reshape:
    """The transform that `ref.reshape(*to)` stands for, where one size may be -1.

    Raises:
      ValueError: there are more elements in one shape than in the other.
    """
    given = to[0] if len(to) == 1 and isinstance(to[0], (tuple, list)) else to
    sizes = canonical_shape(tuple(given))
    size = math.prod(shape)
    if sizes.count(-1) == 1:
        rest = -math.prod(sizes)
        sizes = tuple([(size // rest if rest else 0) if n == -1 else n for n in sizes])
    if math.prod(sizes) != size or any(n < 0 for n in sizes):
        raise ValueError(f"cannot reshape shape {shape} into shape {tuple(given)}")
    return Reshape(sizes)


def transpose_of(shape: Shape, permutation: Sequence[int]) -> Transpose:
    """The transform that `ref.transpose(permutation)` stands for.

    Raises:
      ValueError: it is no permutation of the axes.
    """
    axes = tuple(permutation)
    if sorted(axes) != list(range(len(shape))):
        raise ValueError("transpose of a reference: permutation must have each axis of shape "
                         f"{shape} once, got {axes}")
    return Transpose(axes)


def bitcast_of(shape: Shape, dtype: Any, to: Any) -> Bitcast:
    """The transform that `ref.bitcast(to)` stands for; NotImplementedError or ValueError where
    there is none.

    Raises:
      TypeError: the dtypes differ, and one has no bits to look at: bool, complex, keys.
    """
    new = dtypes.check_and_canonicalize_user_dtype(to, "bitcast")
    transform = Bitcast(new)
    extended = dtypes.is_extended(dtype) or dtypes.is_extended(new)
    if not extended:
        transform.shape(shape, dtype)
    if new != dtype and (extended or dtype.kind in "bc" or new.kind in "bc"):
        raise TypeError(f"bitcast of a reference of dtype {dtypes.name(dtype)} to "
                        f"{dtypes.name(new)}: both must be dtypes of real numbers; read the "
                        "reference and convert its value instead.")
    return transform
