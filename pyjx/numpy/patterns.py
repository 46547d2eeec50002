"""Indices as data: what `x[index]` selects, apart from the values that may differ.

An index is parsed into a static pattern, one entry for each axis, and values: integers, starts of
slices, index arrays. A pattern with its values makes a plan, the arguments of a gather or scatter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyjx import errors
from pyjx import lax as ops
from pyjx.core import dtypes, integers
from pyjx.core.array_type import ArrayLike, DTypeLike
from pyjx.core.avals import SymbolicDim, canonical_shape, get_aval
from pyjx.core.integers import index, range_size, slice_indices
from pyjx.core.records import Record
from pyjx.core.scalars import scalar_constant, wrapped_constant
from pyjx.core.trace import Tracer, eager_trace, state
from pyjx.core.value_texts import shortened
from pyjx.engine.axes import broadcast_in_dim
from pyjx.lax.common import broadcast_shapes, misfit
from pyjx.numpy.creation import host_sequence, of_sequence
from pyjx.numpy.promotion import as_operand, convert, is_arraylike


class Slice(Record):
    """Every `step`-th element of an axis, `size` in all; the start is a value.

    A start that `wraps` may be negative, to count from the end when the elements are read.
    """

    size: int
    step: int
    wraps: bool = False


# The other entries of a pattern. NEW, BOOL and APART make an axis, the others stand for one.
FULL = ":"
NEW = "new"
INTEGER = "i"  # its value is an int, counted from the front
ARRAY = "a"  # its value is an array of integers of any rank
BOOL = "b"  # a mask of rank 0: its value is an index array into the new axis
APART = "|"  # `...` of no axes between index arrays; its value is 0

Entry = Any  # Slice or one of the strings


# -- parsing ---------------------------------------------------------------------------------------


def parse(shape: tuple[int, ...], index: object, wrap: bool = True
          ) -> tuple[tuple[Entry, ...], list[Any]]:
    """The pattern of an index into an array of `shape`, and its values.

    With `wrap` negative integers count from the end.

    Raises:
      IndexError: too many indices, or indices of a wrong kind.
      TypeError: a list, a string or an array of floats is no index.
    """
    items = index if type(index) is tuple else (index,)
    pattern: list[Entry] = []
    values: list[Any] = []
    axis = 0
    rank = len(shape)
    for position, item in enumerate(items):
        kind = type(item)
        if kind is int or kind is slice:
            if axis >= rank:
                _raise_too_many(shape, items)
            n = shape[axis]
            axis += 1
            if kind is int:
                pattern.append(INTEGER)
                values.append(item + n if item < 0 and wrap else item)
            else:
                _parse_slice(item, n, position, pattern, values)
        elif item is None:
            pattern.append(NEW)
        elif item is Ellipsis:
            rest = rank - axis - _axes_used(items[position + 1:])
            if rest < 0:
                _raise_too_many(shape, items)
            pattern += [FULL] * rest or [APART]
            values += [] if rest else [0]
            axis += rest
        else:
            if (kind is list or kind is tuple) and type(index) is tuple:
                item = _array_of(item)
            axis = _parse_other(shape, items, item, axis, wrap, pattern, values)
    pattern += [FULL] * (rank - axis)
    if axis > rank:
        _raise_too_many(shape, items)
    if APART in pattern and not _keeps_apart(pattern):
        at = pattern.index(APART)
        del values[len([e for e in pattern[:at] if e not in (FULL, NEW)])], pattern[at]
    return tuple(pattern), values


def _keeps_apart(pattern: list[Entry]) -> bool:
    """Whether index arrays, and integers beside them, are on both sides of `...`."""
    at = pattern.index(APART)
    sides = [[e for e in side if e in (INTEGER, ARRAY, BOOL)]
             for side in (pattern[:at], pattern[at + 1:])]
    return all(sides) and any([e != INTEGER for side in sides for e in side])


def _array_of(sequence: Any) -> Any:
    """The index array, or mask, that a sequence within an index stands for."""
    array = host_sequence(sequence, None)
    if array is None:
        array = of_sequence(sequence, None)
    return array if get_aval(array).size else np.zeros(array.shape, np.int32)


def _axes_used(items: tuple[Any, ...]) -> int:
    used = 0
    for item in items:
        if item is Ellipsis:
            raise IndexError("an index can only have a single ellipsis ('...')")
        if item is None or isinstance(item, (bool, np.bool_)):
            continue
        used += len(item.shape) if _is_mask(item) else 1
    return used


def _raise_too_many(shape: tuple[int, ...], items: tuple[Any, ...]) -> None:
    used = _axes_used(tuple([x for x in items if x is not Ellipsis]))
    masked = any([_is_mask(x) and len(x.shape) > 1 for x in items])
    places = not any([x is None or x is Ellipsis or isinstance(x, slice) for x in items])
    cure = _OF_MASK if masked else _OF_NUMBER if not shape else _SEVERAL if places else _OF_AXES
    raise IndexError(f"Too many indices: array is {len(shape)}-dimensional, but {used} were "
                     f"indexed.{cure}")


_SEVERAL = " Several elements along one axis are one index: x[jnp.array([i, j])]."
_OF_NUMBER = " It is one number, under vmap that of one example: leave the index out."
_OF_AXES = " Leave those out that are too many, or give it more axes first, as x[:, None] has."
_OF_MASK = " A mask counts for as many axes as it has."


def _fitting(shape: tuple[int, ...], axis: int, mask_shape: tuple[int, ...]) -> str:
    """Where a mask fits that does not at an axis; else how one is made that does."""
    n = len(mask_shape)
    for i in range(len(shape) - n + 1):
        if shape[i:i + n] == mask_shape and not axis:
            return f". It fits along axis {i}: x[{':, ' * i}mask]."
    return ". Make it of the array that it is for, as in x[x > 0]."


def _parse_slice(item: slice, n: int, position: int, pattern: list[Entry], values: list[Any]
                 ) -> None:
    try:
        start, stop, step = item.indices(n)
        size = len(range(start, stop, step))
    except TypeError:
        item = _concrete_slice(item, position)
        symbolic = any([isinstance(x, SymbolicDim) for x in (n, item.start, item.stop, item.step)])
        start, stop, step = slice_indices(item, n) if symbolic else item.indices(n)
        size = range_size(start, stop, step)
    if step == 1 and size == n:
        pattern.append(FULL)
    else:
        pattern.append(Slice(size, step, False))
        values.append(start if size else 0)


def _concrete_slice(item: slice, position: int) -> slice:
    parts = []
    for x in (item.start, item.stop, item.step):
        if isinstance(x, Tracer) and x.to_concrete_value() is None:
            x._check_alive()
            raise IndexError(
                "Array slice indices must have static start/stop/step to be used with NumPy "
                "indexing syntax. Slice entries must be static integers. Got "
                f"slice({item.start}, {item.stop}, {item.step}) at position {position}. "
                f"The shape of the result would depend on a value.{x._origin_msg()}\nFor a part of "
                "known size use lax.dynamic_slice_in_dim(x, start, size, axis), to write to it "
                "lax.dynamic_update_slice_in_dim. " + errors.cure_of_known(
                    x, "Python's int"))
        if x is not None and not hasattr(x, "__index__") and not isinstance(x, SymbolicDim):
            raise TypeError(f"slice indices must be integers, got {shortened(x)}: "
                            f"'{type(x).__name__}' object cannot be interpreted as an integer")
        parts.append(None if x is None else index(x))
    return slice(*parts)


def _is_mask(x: object) -> bool:
    return getattr(x, "dtype", None) == np.bool_ and not isinstance(x, type)


def _parse_other(shape: tuple[int, ...], items: tuple[Any, ...], item: Any, axis: int,
                 wrap: bool, pattern: list[Entry], values: list[Any]) -> int:
    """An index array, mask, NumPy integer or Python bool; returns the next axis."""
    if isinstance(item, (bool, np.bool_)):
        pattern.append(BOOL)
        values.append(np.zeros(int(item), np.int32))
        return axis
    if type(item) is integers.Slice:
        return _parse_dynamic_slice(shape, items, item, axis, pattern, values)
    if isinstance(item, np.integer) or not is_arraylike(item):
        return _parse_integer(shape, items, item, axis, wrap, pattern, values)
    item = as_operand(item)
    aval = get_aval(item)
    if aval.dtype == np.bool_:
        return _parse_mask(shape, item, aval.shape, axis, pattern, values)
    if aval.dtype not in dtypes.integer_dtypes:
        found = getattr(item, "dtype", np.dtype(type(item)))
        raise TypeError("Indexer must have integer or boolean type, got indexer with type "
                        f"{found}. Round it and make it integers: i.astype(int), or int(i) for a "
                        "number.")
    if axis >= len(shape):
        _raise_too_many(shape, items)
    pattern.append(ARRAY)
    values.append(item)
    return axis + 1


def _parse_dynamic_slice(shape: tuple[int, ...], items: tuple[Any, ...], item: integers.Slice,
                         axis: int, pattern: list[Entry], values: list[Any]) -> int:
    """A slice made by `ds`; returns the next axis."""
    if axis >= len(shape):
        _raise_too_many(shape, items)
    n, start = shape[axis], item.start
    (size,) = canonical_shape((item.size,))
    if isinstance(start, (int, np.integer)):
        _parse_slice(slice(start, start + size, item.stride), n, axis, pattern, values)
        return axis + 1
    start = as_operand(start) if is_arraylike(start) else start
    aval = get_aval(start)
    if aval.dtype not in dtypes.integer_dtypes:
        raise TypeError("index arguments to dynamic_slice must be integers of the same type, got: "
                        f"{dtypes.name(aval.dtype)}. The start of a slice made by ds is one.")
    if aval.shape:
        raise TypeError("start_indices arguments to dynamic_slice must be scalars, got a start of "
                        f"shape {aval.shape} for a slice made by ds.")
    if not 0 <= size <= n:
        raise TypeError("slice slice_sizes must be less than or equal to operand shape, got a "
                        f"slice made by ds of size {size} for axis {axis} of size {n}.")
    if item.stride == 1:
        pattern.append(Slice(size, 1, True))
        values.append(start)
    else:
        pattern.append(ARRAY)
        values.append(offset(start, np.arange(size, dtype=np.int32) * np.int32(item.stride),
                             np.dtype(np.int32)))
    return axis + 1


def _parse_integer(shape: tuple[int, ...], items: tuple[Any, ...], item: object, axis: int,
                   wrap: bool, pattern: list[Entry], values: list[Any]) -> int:
    if isinstance(item, Sequence) and not isinstance(item, str):
        raise TypeError("Using a non-tuple sequence for multidimensional indexing is not allowed; "
                        "use `arr[array(seq)]` instead of `arr[seq]`. See "
                        "https://github.com/jax-ml/jax/issues/4564 for more information.")
    if isinstance(item, str):
        raise TypeError(f"JAX does not support string indexing; got idx={item!r}. An array "
                        "has positions alone: keep named arrays in a dictionary, d[name][i].")
    if not hasattr(item, "__index__") and not isinstance(item, SymbolicDim):
        raise IndexError("only integers, slices (`:`), ellipsis (`...`), newaxis (`None`) and "
                         f"integer or boolean arrays are valid indices. Got {item}")
    if axis >= len(shape):
        _raise_too_many(shape, items)
    value = index(item)
    pattern.append(INTEGER)
    values.append(value + shape[axis] if value < 0 and wrap else value)
    return axis + 1


def _parse_mask(shape: tuple[int, ...], mask: ArrayLike, mask_shape: tuple[int, ...], axis: int,
                pattern: list[Entry], values: list[Any]) -> int:
    """A mask stands for one index array for each of its axes."""
    if isinstance(mask, Tracer):
        known = mask.to_concrete_value()
        if known is None:
            raise errors.NonConcreteBooleanIndexError(
                mask, max(len(shape) - axis - len(mask_shape), 0))
        mask = known
    host = np.asarray(mask)
    if not mask_shape:
        pattern.append(BOOL)
        values.append(np.zeros(int(host), np.int32))
        return axis
    own = shape[axis:axis + len(mask_shape)]
    if len(own) < len(mask_shape):
        raise IndexError(f"Too many indices: array is {len(shape)}-dimensional, but "
                         f"{axis + len(mask_shape)} were indexed.{_OF_MASK}")
    for i, (n, m) in enumerate(zip(own, mask_shape, strict=True)):
        if m not in (0, n):
            raise IndexError(f"boolean index did not match shape of indexed array in index "
                             f"{axis + i}: got {mask_shape}, expected {list(own)}"
                             f"{_fitting(shape, axis, mask_shape)}")
    for indices in host.nonzero():
        pattern.append(ARRAY)
        values.append(indices.astype(np.int32))
    return axis + len(mask_shape)


def check_bounds(shape: tuple[int, ...], pattern: tuple[Entry, ...], values: list[Any],
                 integers_only: bool = False) -> None:
    """Raise IndexError for integers, and arrays of them, that are known to be out of bounds."""
    axis = position = 0
    for entry in pattern:
        if entry == NEW:
            continue
        if entry != FULL:
            value = values[position]
            position += 1
            if entry in (BOOL, APART):
                continue
            n = shape[axis]
            if entry == INTEGER and not 0 <= value < n:
                asked = value if value >= 0 else value - n
                raise IndexError(f"index {asked} is out of bounds for axis {axis} with size {n}")
            if entry == ARRAY and not integers_only and not isinstance(value, Tracer) and np.any(
                    (np.asarray(value) >= n) | (np.asarray(value) < -n)):
                raise IndexError(f"an index is out of bounds for axis {axis} with size {n}")
        axis += 1


# -- where a pattern reads and writes --------------------------------------------------------------


class Plan(Record):
    """A pattern as a gather: which axes have an index, and what the result's axes are.

    The index vectors have components for the axes `indexed`; `indices` is the array of them, its
    last axis being the component. Axes in `window` are kept, with the given `slice_sizes`. The
    result's axes are in the order of `layout`: "w" for window axes, "b" for those of the indices.
    """

    indices: Any
    indexed: tuple[int, ...]
    collapsed: tuple[int, ...]
    slice_sizes: tuple[int, ...]
    offset_dims: tuple[int, ...]
    shape: tuple[int, ...]
    reversed_dims: tuple[int, ...]
    single: bool  # there is one index vector


def index_dtype(values: list[Any], shape: tuple[int, ...]) -> Any:
    """int32, or int64 where that is asked for or needed."""
    wide = any(get_aval(v).dtype.itemsize == 8 for v in values) or any(
        n > np.iinfo(np.int32).max for n in shape)
    return dtypes.canonicalize_dtype(np.int64 if wide else np.int32)


def check_fits(index: int) -> None:
    """Raise OverflowError for an integer that no index array could hold."""
    limits = np.iinfo(dtypes.default_int_dtype())
    if not limits.min <= index <= limits.max:
        raise OverflowError(f"Python int {index} too large to convert to {limits.dtype}: it is no "
                            "index into an array")


def as_index(i: ArrayLike, dtype: np.dtype[Any]) -> Any:
    """Indices in the dtype of a program's; unsigned ones beyond it are its largest, and thus out of
    bounds as before."""
    own = get_aval(i).dtype
    if dtypes.issubdtype(own, np.unsignedinteger) and own.itemsize >= dtype.itemsize:
        largest = scalar_constant(np.iinfo(dtype).max, own)
        i = np.minimum(i, largest) if isinstance(i, np.ndarray) else ops.min(
            i, ops.full(get_aval(i).shape, largest, own))
    return i.astype(dtype) if isinstance(i, np.ndarray) else convert(i, dtype)


def roomy(i: ArrayLike) -> Any:
    """Indices in a type which the sizes of arrays fit, so that they can be computed with."""
    return i if get_aval(i).dtype.itemsize >= 4 else as_index(i, np.dtype(np.int32))


def wrapped(i: ArrayLike, n: int, dtype: np.dtype[Any], wrap: bool) -> Any:
    """Index array with negative entries counted from the end."""
    unsigned = dtypes.issubdtype(get_aval(i).dtype, np.unsignedinteger)
    if isinstance(i, np.ndarray):
        if wrap and not unsigned:
            i = i.astype(np.int64)
            i = np.where(i < 0, i + n, i)
        return as_index(i, dtype)
    i = as_index(i, dtype)
    if not wrap or unsigned:
        return i
    size = scalar_constant(n, dtype)
    return ops.select(ops.lt(i, scalar_constant(0, dtype)), ops.add(i, size), i)


class _Layout:
    """Which axis of the result each entry of a pattern makes."""

    __slots__ = ("block_dims", "collapsed", "offset_dims", "reversed_dims", "shape", "sizes",
                 "strided")

    def __init__(self, shape: tuple[int, ...], pattern: tuple[Entry, ...],
                 block: tuple[int, ...] | None) -> None:
        """`block` is the shape to which the index arrays broadcast, if there are any."""
        self.shape: list[int] = []  # of the result
        self.offset_dims: list[int] = []  # result axes of axes that are kept
        self.reversed_dims: list[int] = []
        self.block_dims: list[int] = []  # result axes of the index arrays
        self.strided: dict[int, int] = {}  # axis -> result axis, for slices with other steps
        self.sizes = [1] * len(shape)
        self.collapsed: list[int] = []
        first = -1
        if block is not None:
            # Integers beside arrays are arrays too; what stands apart goes to the front.
            places = [i for i, e in enumerate(pattern) if e in (ARRAY, INTEGER)]
            together = places[-1] - places[0] == len(places) - 1
            first = places[0] if together else 0
        for i, (entry, n) in enumerate(zip(pattern, shape, strict=True)):
            if i == first and block is not None:
                self.block_dims = list(range(len(self.shape), len(self.shape) + len(block)))
                self.shape += block
            self._add(i, entry, n)

    def _add(self, axis: int, entry: Entry, n: int) -> None:
        is_slice = type(entry) is Slice
        if entry == FULL or (is_slice and abs(entry.step) == 1):
            self.sizes[axis] = n if entry == FULL else entry.size
            if is_slice and entry.step < 0:
                self.reversed_dims.append(len(self.shape))
            self.offset_dims.append(len(self.shape))
            self.shape.append(self.sizes[axis])
            return
        self.collapsed.append(axis)
        self.sizes[axis] = min(1, n)
        if is_slice:
            self.strided[axis] = len(self.shape)
            self.shape.append(entry.size)


def _block_shape(shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    try:
        return broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(
            f"Incompatible shapes for broadcasting: shapes={shapes}, those of the arrays of an "
            f"index{misfit(shapes)} For each of one with each of the others, index by jnp.ix_(i, "
            "j).") from None


def make_plan(shape: tuple[int, ...], pattern: tuple[Entry, ...], bound: list[Any], wrap: bool
              ) -> Plan:
    """The plan of a pattern whose entries each stand for an axis; `bound` are their values."""
    dtype = index_dtype([v for v in bound if v is not None], shape)
    arrays = {i: wrapped(v, shape[i], dtype, wrap)
              for i, (entry, v) in enumerate(zip(pattern, bound, strict=True)) if entry == ARRAY}
    block = _block_shape([get_aval(a).shape for a in arrays.values()]) if arrays else None
    layout = _Layout(shape, pattern, block)
    batch_dims = sorted([*layout.block_dims, *layout.strided.values()])
    place = {d: k for k, d in enumerate(batch_dims)}
    batch_shape = [layout.shape[d] for d in batch_dims]
    components = []
    for i, (entry, value) in enumerate(zip(pattern, bound, strict=True)):
        if entry == FULL:
            continue
        if entry == INTEGER and type(value) is int:
            if arrays:
                check_fits(value)
            value = wrapped_constant(value, dtype)
        dims: list[int] = []
        if entry == ARRAY:
            value = arrays[i]
            rank = get_aval(value).ndim
            dims = [place[d] for d in layout.block_dims[len(layout.block_dims) - rank:]]
        elif i in layout.strided:
            steps = _steps(entry, dtype)
            value = offset(value, steps, dtype)
            dims = [place[layout.strided[i]]]
        elif type(entry) is Slice and entry.step < 0:
            value = offset(value, scalar_constant(1 - entry.size, dtype), dtype)
        components.append(_along(as_index(value, dtype), batch_shape, dims))
    return Plan(indices=_stack_last(components, batch_shape, dtype),
                indexed=tuple([i for i, e in enumerate(pattern) if e != FULL]),
                collapsed=tuple(layout.collapsed), slice_sizes=tuple(layout.sizes),
                offset_dims=tuple(layout.offset_dims), shape=tuple(layout.shape),
                reversed_dims=tuple(layout.reversed_dims), single=not batch_dims)


def _steps(entry: Slice, dtype: DTypeLike) -> Any:
    """The multiples of a slice's step."""
    if type(entry.size) is int:
        return np.arange(entry.size, dtype=dtype) * np.asarray(entry.step, dtype)
    count = ops.iota(dtype, entry.size)
    return ops.mul(count, ops.full_like(count, entry.step))


def offset(start: ArrayLike, steps: ArrayLike, dtype: np.dtype[Any]) -> Any:
    """start + steps."""
    if isinstance(start, (int, np.integer)) and isinstance(steps, (np.ndarray, np.generic)):
        return np.asarray(start, dtype) + steps
    steps = steps[()] if isinstance(steps, np.ndarray) and not steps.ndim else steps
    return ops.add(as_index(start, dtype), steps)


def _along(x: ArrayLike, shape: list[int], dims: list[int]) -> Any:
    """`x` with its axes at `dims` of `shape`, where it is stretched over the other axes."""
    if isinstance(x, (np.ndarray, np.generic, int)) and all([type(n) is int for n in shape]):
        host = np.asarray(x)
        wide = np.reshape(host, [host.shape[dims.index(d)] if d in dims else 1
                                 for d in range(len(shape))])
        return np.broadcast_to(wide, shape)
    return x if get_aval(x).shape == tuple(shape) else stretched_along(x, shape, dims)


def stretched_along(x: ArrayLike, shape: Sequence[int], dims: Sequence[int]) -> Any:
    """An array whose axes, stretched where they are of size 1, are those of a shape at `dims`."""
    old = get_aval(x).shape
    kept = [i for i, d in enumerate(dims) if old[i] == shape[d]]
    if len(kept) < len(old):
        x = ops.squeeze(x, [i for i in range(len(old)) if i not in kept])
    return broadcast_in_dim(x, shape, [dims[i] for i in kept])


def _stack_last(components: list[Any], shape: list[int], dtype: np.dtype[Any]) -> Any:
    if not components:
        return np.zeros((*shape, 0), dtype)
    literals = not shape and state.dynamic is not eager_trace  # shown inline in jaxprs
    if all(isinstance(c, np.ndarray) for c in components) and not literals:
        return np.stack(components, -1).astype(dtype)
    columns = [broadcast_in_dim(dtype.type(c) if isinstance(c, np.ndarray) and not shape else c,
                                (*shape, 1), range(len(shape))) for c in components]
    return columns[0] if len(columns) == 1 else ops.concatenate(columns, len(shape))
