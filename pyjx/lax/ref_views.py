"""Parts of references, and other looks at them: how an index is understood, and a part of a value
read, replaced, added to.

An indexer has an entry for each axis: `(start, size, stride)` for a slice, None for an integer or
an array of integers, which is an operand. Arrays of integers go together as NumPy's do. What is
out of bounds is moved to the nearest place that is not; negative integers count from the end.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from pyjx import errors
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, DTypeLike
from pyjx.core.avals import AbstractRef, canonical_shape, get_aval
from pyjx.core.integers import Slice as DynamicSlice
from pyjx.core.jaxpr import JaxprEqn, Literal
from pyjx.core.records import Alike, Record
from pyjx.core.trace import Tracer
from pyjx.engine.axes import broadcast_in_dim, transpose
from pyjx.lax import indexing, joining, scattering, slicing
from pyjx.lax.compare import clamp, lt, select
from pyjx.lax.convert import convert_element_type, full
from pyjx.lax.elementwise import add
from pyjx.lax.shapes import bitcast_convert_type, expand_dims, reshape

# -- transforms ------------------------------------------------------------------------------------



class Transform(Alike):
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


# -- views -----------------------------------------------------------------------------------------

Shape = tuple[int, ...]
Slice = tuple[int | None, int, int]  # start, None where it is an operand, size, stride
Indexer = tuple[Slice | None, ...]
Indexers = tuple[Indexer | Transform, ...]  # the part of a part ...


# -- indices as users give them --------------------------------------------------------------------


def parse(index: Any, shape: Shape) -> list[tuple[Indexer, list[Any]]]:
    """The indexers that `index` stands for, one after the other, each with the integers in it: none
    for all of the value. Slices that start at traced places are taken before what is beside them.

    Raises:
      ValueError: there are too many indices, or one that is known is out of bounds.
      TypeError: an index is no integer, slice or array of these.
      NonConcreteBooleanIndexError: a mask is traced.
    """
    if index is None or index is Ellipsis:
        return []
    parts = _expanded(index if type(index) is tuple else (index,), shape)
    steps, whole = [], [slice(None)] * len(shape)
    if any([getattr(part, "ndim", 0) for part in parts]):
        for i in [i for i, part in enumerate(parts) if _is_dynamic(part)]:
            steps += _step([*whole[:i], parts[i], *whole[i + 1:]], shape)
            shape = (*shape[:i], parts[i].size, *shape[i + 1:])
            parts[i] = slice(None)
    return [*steps, *_step(parts, shape)]


def _step(parts: list[Any], shape: Shape) -> list[tuple[Indexer, list[Any]]]:
    """The indexer of an index for each axis; none if that takes all."""
    entries: list[Slice | None] = []
    integers = []
    for part, size in zip(_without_strides(parts, shape), shape, strict=True):
        if type(part) is slice:
            entries.append(_slice(part, size))
        elif type(part) is DynamicSlice:
            entries.append((None, part.size, 1))
            integers.append(_integer(part.start, size))
        else:
            entries.append(None)
            integers.append(_integer(part, size))
    if all(e == (0, n, 1) for e, n in zip(entries, shape, strict=True)):
        return []
    return [(tuple(entries), integers)]


def _expanded(index: tuple[Any, ...], shape: Shape) -> list[Any]:
    """An index for each axis."""
    parts: list[Any] = []
    for part in index:
        if getattr(part, "dtype", None) == np.bool_ and part.ndim:
            if isinstance(part, Tracer):
                raise errors.NonConcreteBooleanIndexError(part)
            parts += np.nonzero(np.asarray(part))
        else:
            parts.append(part)
    gaps = [i for i, part in enumerate(parts) if part is Ellipsis]
    if len(gaps) > 1:
        raise ValueError("Only one ellipsis is supported.")
    missing = len(shape) - len(parts) + len(gaps)
    if missing < 0:
        raise ValueError(
            f"`indices` must not be longer than `shape`: indices={index}, shape={shape}")
    at = gaps[0] if gaps else len(parts)
    parts[at:at + 1] = [slice(None)] * missing
    return parts


def _without_strides(parts: list[Any], shape: Shape) -> list[Any]:
    """An index whose `ds` are slices where they start at a known place, and the places where their
    elements are apart."""
    for i, (part, n) in enumerate(zip(parts, shape, strict=True)):
        if type(part) is not DynamicSlice:
            continue
        if not _is_dynamic(part):
            end = part.start + (part.size - 1) * part.stride + 1 if part.size else part.start
            if not 0 <= part.start <= end <= n:
                raise ValueError(f"Out of bound slice: start={part.start}, size={part.size}, "
                                 f"stride={part.stride}, dim={n}.")
            parts[i] = slice(part.start, end, part.stride)
        elif part.stride < 1:
            raise NotImplementedError("A reference is indexed by a `ds` whose start is traced and "
                                      f"whose stride is positive, got {part}.")
        else:
            last = n - (part.size - 1) * part.stride - 1
            if last < 0:
                raise ValueError(f"Out of bound slice: size={part.size}, stride={part.stride} is "
                                 f"longer than the axis, dim={n}.")
            if part.stride == 1:
                continue
            start = convert_element_type(part.start, np.int32)
            if not dtypes.issubdtype(get_aval(part.start).dtype, np.unsignedinteger):
                start = select(lt(start, np.int32(0)), add(start, np.int32(n)), start)
            start = clamp(np.int32(0), start, np.int32(last))
            places = np.arange(part.size, dtype=np.int32) * np.int32(part.stride)
            parts[i] = add(broadcast_in_dim(start, places.shape, ()), places)
    return parts


def _is_dynamic(part: Any) -> bool:
    return type(part) is DynamicSlice and not isinstance(part.start, (int, np.integer))


def _slice(part: slice, n: int) -> Slice:
    start, stop, step = part.indices(n)
    if step < 1:
        raise ValueError(f"slice must have a step >= 1 (found: {step})")
    if part.start is not None and start >= n > 0:
        raise ValueError(f"Out of bound slice: start={part.start}, dim={n}.")
    return start, max(0, -((start - stop) // step)), step


def _integer(part: Any, n: int) -> Any:
    if isinstance(part, (int, np.integer)) and not isinstance(part, bool):
        if not -n <= part < n:
            raise ValueError(f"Out of bound indexer: idx={part}, dim={n}. An axis of "
                             f"that size is indexed from -{n} to {n}, the latter left out.")
        return np.int32(part % n)
    dtype = getattr(part, "dtype", None)
    if dtype is None or not dtypes.issubdtype(dtype, np.integer):
        raise TypeError(f"A reference is indexed by integers, slices and arrays of integers, got "
                        f"{part!r} of type {type(part)}.")
    return part


# -- shapes and text -------------------------------------------------------------------------------


def takes_operand(entry: Slice | None) -> bool:
    """Whether there is an operand for an entry of an indexer."""
    return entry is None or entry[0] is None


def count_integers(indexers: Indexers) -> int:
    """How many operands there are for an index."""
    return sum([takes_operand(e) for step in indexers if not isinstance(step, Transform)
                for e in step])


class _View(Record):
    """An indexer at a value: the integers by axis, None for slices whose start is known."""

    entries: Indexer
    integers: list[Any]
    shape: Shape

    @property
    def axes(self) -> list[int]:
        """Those that are indexed by integers."""
        return [i for i, e in enumerate(self.entries) if e is None]

    @property
    def int_shape(self) -> Shape:
        return np.broadcast_shapes(*[self.integers[axis].shape for axis in self.axes])

    @property
    def place(self) -> int:
        """The axis of the part where those of the integers begin."""
        axes = self.axes
        return axes[0] if axes and axes[-1] - axes[0] == len(axes) - 1 else 0

    @property
    def part_shape(self) -> Shape:
        sizes = tuple([e[1] for e in self.entries if e is not None])
        return (*sizes[:self.place], *self.int_shape, *sizes[self.place:])


def _steps(indexers: Indexers, integers: Sequence[Any]
           ) -> Iterator[tuple[Indexer | Transform, list[Any]]]:
    """Each of them with its integers by axis."""
    given = iter(integers)
    for step in indexers:
        yield step, [] if isinstance(step, Transform) else [
            next(given) if takes_operand(e) else None for e in step]


def part_type(ref: AbstractRef, indexers: Indexers, integers: Sequence[Any]) -> AbstractRef:
    """The type of a reference to the part; of `integers` only the avals count."""
    for step, by_axis in _steps(indexers, integers):
        if isinstance(step, Transform):
            ref = step.type_of(ref)
        else:
            shape = _View(step, by_axis, ref.shape).part_shape
            ref = ref if shape == ref.shape else ref.with_shape(shape)
    return ref


def check_differentiated(indexers: Indexers) -> None:
    """Raise NotImplementedError where tangents have no part of that name."""
    for step in indexers:
        if isinstance(step, Transform) and not step.linear:
            raise NotImplementedError(f"{step} of a reference that is differentiated: the bits of "
                                      "a tangent are no tangent.")


def text(ref: AbstractRef, indexers: Indexers, integers: Sequence[Any], names: Iterable[str]
         ) -> str:
    """An index as jaxprs show it; of `integers` only the shapes count."""
    shown = iter(names)
    parts = []
    for i, (step, _) in enumerate(_steps(indexers, integers)):
        if isinstance(step, Transform):
            parts.append(f"{{{step}}}")
        else:
            whole = part_type(ref, indexers[:i], integers).shape
            shown_entries = [next(shown) if e is None else _slice_text(
                next(shown) if e[0] is None else e[0], *e[1:], n)
                for e, n in zip(step, whole, strict=True)]
            parts.append(f"[{','.join(shown_entries)}]")
    return "".join(parts) or "[...]"


def _part_text(eqn: JaxprEqn, operands: Sequence[str], first: int) -> str:
    """`a[...]`, where the integers of the index are the operands from `first` on."""
    ref: Any = eqn.invars[0].aval
    atoms = eqn.invars[first:]
    names = [str(a.val) if type(a) is Literal else name
             for a, name in zip(atoms, operands[first:], strict=True)]
    index = text(ref, eqn.params["indexers"], [a.aval for a in atoms], names)
    return f"{operands[0]}{index}"


def get_text(eqn: JaxprEqn, operands: Sequence[str], results: Sequence[str]) -> str:
    return f"{results[0]} <- {_part_text(eqn, operands, 1)}"


def swap_text(eqn: JaxprEqn, operands: Sequence[str], results: Sequence[str]) -> str:
    part = _part_text(eqn, operands, 2)
    if results[0].startswith("_"):
        return f"{part} <- {operands[1]}"
    return f"{results[0]}, {part} <- {part}, {operands[1]}"


def addupdate_text(eqn: JaxprEqn, operands: Sequence[str], results: Sequence[str]) -> str:
    return f"{_part_text(eqn, operands, 2)} += {operands[1]}"


def _slice_text(start: int | str, size: int, stride: int, n: int) -> str:
    if isinstance(start, str):
        return f"{start}:{start}+{size}"
    stop = start + (size - 1) * stride + 1 if size else start
    return (f"{start or ''}:{'' if stop + stride > n and stop <= n and size else stop}"
            f"{f':{stride}' if stride != 1 else ''}")


# -- values ----------------------------------------------------------------------------------------


def read(x: ArrayLike, indexers: Indexers, integers: Sequence[Any]) -> Any:
    """The part of x."""
    for step, by_axis in _steps(indexers, integers):
        x = _step_read(step, by_axis, x)
    return x


def _step_read(step: Indexer | Transform, by_axis: list[Any], x: ArrayLike) -> Any:
    if isinstance(step, Transform):
        return step.read(x)
    return _read(_View(step, by_axis, get_aval(x).shape), x)


def _step_written(step: Indexer | Transform, by_axis: list[Any], x: ArrayLike, part: Any,
                  adding: bool) -> Any:
    if isinstance(step, Transform):
        return step.undo(x, add(step.read(x), part) if adding else part)
    return _written(_View(step, by_axis, get_aval(x).shape), x, part, adding)


def write(x: ArrayLike, part: Any, indexers: Indexers, integers: Sequence[Any],
          adding: bool = False) -> Any:
    """x with another value for the part, or with it added to the part."""
    steps = list(_steps(indexers, integers))
    if not steps:
        return add(x, part) if adding else part
    wholes = [x]
    for step in steps[:-1]:
        wholes.append(_step_read(*step, wholes[-1]))
    new = _step_written(*steps[-1], wholes[-1], part, adding)
    for step, whole in zip(steps[-2::-1], wholes[-2::-1], strict=True):
        new = _step_written(*step, whole, new, False)
    return new


def _read(view: _View, x: ArrayLike) -> Array:
    thinned = _thinned(view)
    if thinned is not None:
        x = joining.slice(x, *thinned)
        view = _of_thinned(view)
    if not any(map(takes_operand, view.entries)):
        starts: Any = [e[0] for e in view.entries]  # type: ignore[index]
        return joining.slice(x, starts, [s + n for s, n in zip(starts, view.part_shape,
                                                               strict=True)])
    if not view.int_shape:
        found = slicing.dynamic_slice(x, _starts(view), _sizes(view))
        return reshape(found, view.part_shape)
    return indexing.gather(x, _vectors(view), indexing.GatherDimensionNumbers(*_dims(view)),
                           _sizes(view), mode="clip")


def _written(view: _View, x: ArrayLike, part: ArrayLike, adding: bool) -> ArrayLike:
    thinned = _thinned(view)
    if thinned is not None:
        new = _written(_of_thinned(view), joining.slice(x, *thinned), part, adding)
        return _interleaved(x, new, *thinned)
    if view.int_shape:
        scatter = indexing.scatter_add if adding else scattering.scatter
        return scatter(x, _vectors(view), part, indexing.ScatterDimensionNumbers(*_dims(view)),
                       mode="drop")
    if adding:
        part = add(_read(view, x), part)
    if 0 in view.part_shape:
        return x
    return slicing.dynamic_update_slice(x, reshape(part, _sizes(view)), _starts(view))


def _sizes(view: _View) -> list[int]:
    return [1 if e is None else e[1] for e in view.entries]


def _starts(view: _View) -> list[Any]:
    """The starts of a dynamic slice, which counts negative ones from the end itself."""
    return [np.int32(e[0]) if e is not None and e[0] is not None else
            np.int32(i) if isinstance(i, np.integer) else convert_element_type(i, np.int32)
            for e, i in zip(view.entries, view.integers, strict=True)]


def _counted(i: ArrayLike, n: int, given: ArrayLike) -> ArrayLike:
    """Integers, int32 now, that count from the start."""
    if isinstance(i, np.integer):
        return np.int32(i + n if i < 0 else i)
    if not dtypes.issubdtype(get_aval(given).dtype, np.signedinteger):
        return i
    shape = get_aval(i).shape
    zero, length = full(shape, 0, np.int32), full(shape, n, np.int32)
    return select(lt(i, zero), add(i, length), i)


def _dims(view: _View) -> tuple[Shape, Shape, Shape]:
    """The axes that a part is cut from the whole along: those of the part that are those of
    slices, and those of the whole that are indexed by integers, and that an index vector counts
    along."""
    n = len(view.int_shape)
    windows = [i if i < view.place else i + n for i in range(len(view.shape) - len(view.axes))]
    return tuple(windows), tuple(view.axes), _counting(view)


def _counting(view: _View) -> Shape:
    return tuple([i for i, (e, n) in enumerate(zip(view.entries, view.shape, strict=True))
                  if e is None or e[1] != n])


def _vectors(view: _View) -> Array:
    """The index vectors, along the last axis."""
    shape = view.int_shape
    starts = _starts(view)
    columns = []
    for axis in _counting(view):
        column = _counted(starts[axis], view.shape[axis], view.integers[axis])
        own = get_aval(column).shape
        at = tuple(range(len(shape) - len(own), len(shape)))
        kept = [k for k, n in enumerate(own) if n == shape[at[k]]]
        if len(kept) < len(own):
            column = reshape(column, [own[k] for k in kept])
        columns.append(expand_dims(
            broadcast_in_dim(column, shape, [at[k] for k in kept]), (len(shape),)))
    return joining.concatenate(columns, len(shape))


def _thinned(view: _View) -> tuple[list[int], list[int], list[int]] | None:
    """Starts, limits and strides of the slices that leave elements out; None if none does."""
    if all(e is None or e[2] == 1 for e in view.entries):
        return None
    bounds = [(0, n, 1) if e is None or e[0] is None or e[2] == 1 else
              (e[0], min(n, e[0] + e[1] * e[2]), e[2])
              for e, n in zip(view.entries, view.shape, strict=True)]
    starts, limits, strides = zip(*bounds, strict=True)
    return list(starts), list(limits), list(strides)


def _of_thinned(view: _View) -> _View:
    """What is left to do after these."""
    entries = tuple([e if e is None or e[2] == 1 else (0, e[1], 1) for e in view.entries])
    shape = tuple([n if e is None or e[2] == 1 else e[1]
                   for e, n in zip(view.entries, view.shape, strict=True)])
    return _View(entries, view.integers, shape)


def _interleaved(x: ArrayLike, part: Any, starts: list[int], limits: list[int], strides: list[int]
                 ) -> Any:
    """x with the elements of the slice replaced: the part, spread out, where these are."""
    sizes = get_aval(part).shape
    if 0 in sizes:
        return x
    spread = [(a, n - a - (k - 1) * s - 1, s - 1)
              for a, n, k, s in zip(starts, get_aval(x).shape, sizes, strides, strict=True)]
    filler = reshape(joining.slice(part, [0] * len(sizes), [1] * len(sizes)), ())
    spread_part = joining.pad(part, filler, spread)
    there = joining.pad(full(sizes, True, np.bool_), np.bool_(False), spread)
    return select(there, spread_part, x)
