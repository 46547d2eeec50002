"""Indexing: `x[i]`, `x.at[i]`, `take`.

An index is parsed into a static pattern, one entry for each axis, and the values that may differ
from call to call: integers, starts of slices, index arrays. On concrete arrays each pattern is one
compiled program of the array and those values, so `x[0]` and `x[5]`, or `x[0:8]` and `x[8:16]`,
share it. While tracing, integers and slices that are known make static slices.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pyjx import configuration
from pyjx import lax as ops
from pyjx.core import dtypes
from pyjx.core.avals import aval_makers, get_aval
from pyjx.core.trace import Tracer, eager_trace, state
from pyjx.lax.common import broadcast_shapes
from pyjx.numpy.dispatch import array_function
from pyjx.numpy.promotion import as_operand, check_arraylike, convert, is_arraylike, operands
from pyjx.runtime.array import ArrayImpl
from pyjx.runtime.jit import op_jit
from pyjx.transforms.structural import broadcast_in_dim


class Slice(NamedTuple):
    """Every `step`-th element of an axis, `size` in all; the start is a value."""

    size: int
    step: int


# The other entries of a pattern. NEW and BOOL make an axis, the others stand for one.
FULL = ":"
NEW = "new"
INTEGER = "i"  # its value is an int, and not negative
ARRAY = "a"  # its value is an array of integers of any rank
BOOL = "b"  # a mask of rank 0: its value is an index array into the new axis

Entry = Any  # Slice or one of the strings


class Options(NamedTuple):
    """What `at[]` and `take` let users choose."""

    mode: Any = None
    fill_value: Any = None
    indices_are_sorted: bool = False
    unique_indices: bool = False
    wrap_negative_indices: bool = True


_default = Options()


# -- parsing ---------------------------------------------------------------------------------------


def parse(shape: tuple[int, ...], index: Any) -> tuple[tuple[Entry, ...], list[Any]]:
    """The pattern of an index into an array of `shape`, and its values.

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
                values.append(item + n if item < 0 else item)
            else:
                _parse_slice(item, n, position, pattern, values)
        elif item is None:
            pattern.append(NEW)
        elif item is Ellipsis:
            rest = rank - axis - _axes_used(items[position + 1:])
            if rest < 0:
                _raise_too_many(shape, items)
            pattern += [FULL] * rest
            axis += rest
        else:
            if kind is list and type(index) is tuple:
                item = _values_of(item)
            axis = _parse_other(shape, items, item, axis, position, pattern, values)
    pattern += [FULL] * (rank - axis)
    if axis > rank:
        _raise_too_many(shape, items)
    return tuple(pattern), values


def _axes_used(items: tuple[Any, ...]) -> int:
    used = 0
    for item in items:
        if item is Ellipsis:
            raise IndexError("an index can only have a single ellipsis ('...')")
        if item is None or isinstance(item, (bool, np.bool_)):
            continue
        used += _rank_of_mask(item) if _is_mask(item) else 1
    return used


def _raise_too_many(shape: tuple[int, ...], items: tuple[Any, ...]) -> None:
    used = _axes_used(tuple([x for x in items if x is not Ellipsis]))
    raise IndexError(f"Too many indices: array is {len(shape)}-dimensional, but {used} were "
                     "indexed")


def _parse_slice(item: slice, n: int, position: int, pattern: list[Entry], values: list[Any]
                 ) -> None:
    try:
        start, stop, step = item.indices(n)
    except TypeError:
        start, stop, step = _concrete_slice(item, position).indices(n)
    size = len(range(start, stop, step))
    if step == 1 and size == n:
        pattern.append(FULL)
    else:
        pattern.append(Slice(size, step))
        values.append(start if size else 0)


def _concrete_slice(item: slice, position: int) -> slice:
    parts = []
    for x in (item.start, item.stop, item.step):
        if isinstance(x, Tracer) and x.to_concrete_value() is None:
            raise IndexError("Slice entries must be static integers. Got "
                             f"slice({item.start}, {item.stop}, {item.step}) at position "
                             f"{position}")
        if x is not None and not hasattr(x, "__index__"):
            raise TypeError(f"'{type(x).__name__}' object cannot be interpreted as an integer")
        parts.append(None if x is None else x.__index__())
    return slice(*parts)


def _is_mask(x: Any) -> bool:
    return getattr(x, "dtype", None) == np.bool_ and not isinstance(x, type)


def _rank_of_mask(x: Any) -> int:
    return len(x.shape)


def _parse_other(shape: tuple[int, ...], items: tuple[Any, ...], item: Any, axis: int,
                 position: int, pattern: list[Entry], values: list[Any]) -> int:
    """An index array, mask, NumPy integer or Python bool; returns the next axis."""
    if isinstance(item, (bool, np.bool_)):
        pattern.append(BOOL)
        values.append(np.zeros(int(item), np.int32))
        return axis
    if isinstance(item, np.integer) or not is_arraylike(item):
        return _parse_integer(shape, items, item, axis, pattern, values)
    item = as_operand(item)
    aval = get_aval(item)
    if aval.dtype == np.bool_:
        return _parse_mask(shape, item, aval.shape, axis, pattern, values)
    if aval.dtype not in dtypes.integer_dtypes:
        found = getattr(item, "dtype", np.dtype(type(item)))
        raise TypeError("Indexer must have integer or boolean type, got indexer with type "
                        f"{found}")
    if axis >= len(shape):
        _raise_too_many(shape, items)
    pattern.append(ARRAY)
    values.append(item)
    return axis + 1


def _parse_integer(shape: tuple[int, ...], items: tuple[Any, ...], item: Any, axis: int,
                   pattern: list[Entry], values: list[Any]) -> int:
    if isinstance(item, (list, tuple)):
        raise TypeError(
            "Using a non-tuple sequence for multidimensional indexing is not allowed; use "
            "`arr[array(seq)]` instead of `arr[seq]`. See "
            "https://github.com/jax-ml/jax/issues/4564 for more information."
        )
    if isinstance(item, str):
        raise TypeError(f"JAX does not support string indexing; got idx={item!r}")
    if not hasattr(item, "__index__"):
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), newaxis (`None`) and integer or "
            f"boolean arrays are valid indices. Got {item}"
        )
    if axis >= len(shape):
        _raise_too_many(shape, items)
    value = item.__index__()
    pattern.append(INTEGER)
    values.append(value + shape[axis] if value < 0 else value)
    return axis + 1


def _parse_mask(shape: tuple[int, ...], mask: Any, mask_shape: tuple[int, ...], axis: int,
                pattern: list[Entry], values: list[Any]) -> int:
    """A mask stands for one index array for each of its axes."""
    if isinstance(mask, Tracer):
        known = mask.to_concrete_value()
        if known is None:
            from pyjx import errors

            raise errors.NonConcreteBooleanIndexError(mask)
        mask = known
    host = np.asarray(mask)
    if not mask_shape:
        pattern.append(BOOL)
        values.append(np.zeros(int(host), np.int32))
        return axis
    own = shape[axis:axis + len(mask_shape)]
    if len(own) < len(mask_shape):
        raise IndexError(f"Too many indices: array is {len(shape)}-dimensional, but "
                         f"{axis + len(mask_shape)} were indexed")
    for i, (n, m) in enumerate(zip(own, mask_shape, strict=True)):
        if n != m:
            raise IndexError(f"boolean index did not match shape of indexed array in index "
                             f"{axis + i}: got {mask_shape}, expected {list(own)}")
    for indices in host.nonzero():
        pattern.append(ARRAY)
        values.append(indices.astype(np.int32))
    return axis + len(mask_shape)


def _check_bounds(shape: tuple[int, ...], pattern: tuple[Entry, ...], values: list[Any]) -> None:
    """Raise IndexError for integers that are known to be out of bounds."""
    axis = position = 0
    for entry in pattern:
        if entry == NEW:
            continue
        if entry != FULL:
            value = values[position]
            position += 1
            if entry == BOOL:
                continue
            n = shape[axis]
            if entry == INTEGER and not 0 <= value < n:
                asked = value if value >= 0 else value - n
                raise IndexError(f"index {asked} is out of bounds for axis {axis} with size {n}")
            if entry == ARRAY and isinstance(value, np.ndarray) and bool(
                    np.any((value >= n) | (value < -n))):
                raise IndexError(f"an index is out of bounds for axis {axis} with size {n}")
        axis += 1


# -- where a pattern reads and writes --------------------------------------------------------------


class Plan(NamedTuple):
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


def _index_dtype(values: list[Any], shape: tuple[int, ...]) -> Any:
    wide = any(get_aval(v).dtype.itemsize == 8 for v in values) or any(
        n > np.iinfo(np.int32).max for n in shape)
    return dtypes.canonicalize_dtype(np.int64 if wide else np.int32)


def _wrapped(i: Any, n: int, dtype: Any, wrap: bool) -> Any:
    """Index array with negative entries counted from the end."""
    unsigned = dtypes.issubdtype(get_aval(i).dtype, np.unsignedinteger)
    if isinstance(i, np.ndarray):
        i = i.astype(dtype)
        return np.where(i < 0, i + np.asarray(n, dtype), i) if wrap else i
    i = convert(i, dtype)
    if not wrap or unsigned:
        return i
    size = np.asarray(n, dtype)[()]
    return ops.select(ops.lt(i, np.asarray(0, dtype)[()]), ops.add(i, size), i)


def _plan(shape: tuple[int, ...], pattern: tuple[Entry, ...], bound: list[Any], wrap: bool) -> Plan:
    """The gather of a pattern whose entries each stand for an axis."""
    dtype = _index_dtype([v for v in bound if v is not None], shape)
    arrays = {i: _wrapped(v, shape[i], dtype, wrap)
              for i, (entry, v) in enumerate(zip(pattern, bound, strict=True)) if entry == ARRAY}
    advanced = [i for i, e in enumerate(pattern) if e == ARRAY or (e == INTEGER and arrays)]
    block = broadcast_shapes(*[get_aval(a).shape for a in arrays.values()]) if arrays else ()
    contiguous = not advanced or advanced[-1] - advanced[0] == len(advanced) - 1
    first = (advanced[0] if contiguous else 0) if advanced else -1
    out_shape: list[int] = []
    offset_dims: list[int] = []
    reversed_dims: list[int] = []
    batch_dims: list[int] = []  # result axes that the index arrays go along
    strided: dict[int, int] = {}  # axis -> its result axis
    block_dims: list[int] = []
    slice_sizes = [1] * len(shape)
    collapsed = []
    if arrays and not contiguous:
        block_dims = list(range(len(block)))
        out_shape += block
    for i, entry in enumerate(pattern):
        if i == first and contiguous and arrays:
            block_dims = list(range(len(out_shape), len(out_shape) + len(block)))
            out_shape += block
        if entry == FULL or (type(entry) is Slice and abs(entry.step) == 1):
            slice_sizes[i] = shape[i] if entry == FULL else entry.size
            if entry != FULL and entry.step < 0:
                reversed_dims.append(len(out_shape))
            offset_dims.append(len(out_shape))
            out_shape.append(slice_sizes[i])
            continue
        collapsed.append(i)
        slice_sizes[i] = min(1, shape[i])
        if type(entry) is Slice:
            strided[i] = len(out_shape)
            out_shape.append(entry.size)
    batch_dims = sorted([*block_dims, *strided.values()])
    place = {d: k for k, d in enumerate(batch_dims)}
    batch_shape = [out_shape[d] for d in batch_dims]
    components = []
    indexed = []
    for i, entry in enumerate(pattern):
        if entry == FULL:
            continue
        value = bound[i]
        if entry == ARRAY:
            value = arrays[i]
            rank = get_aval(value).ndim
            dims = [place[d] for d in block_dims[len(block_dims) - rank:]]
            value = _along(value, batch_shape, dims)
        elif i in strided:
            steps = np.arange(entry.size, dtype=dtype) * np.asarray(entry.step, dtype)
            value = _offset(value, steps, dtype)
            value = _along(value, batch_shape, [place[strided[i]]])
        else:
            if type(entry) is Slice and entry.step < 0:
                value = _offset(value, np.asarray(1 - entry.size, dtype), dtype)
            value = _along(convert(value, dtype), batch_shape, [])
        indexed.append(i)
        components.append(value)
    return Plan(_stack_last(components, batch_shape, dtype), tuple(indexed), tuple(collapsed),
                tuple(slice_sizes), tuple(offset_dims), tuple(out_shape), tuple(reversed_dims),
                not batch_dims)


def _offset(start: Any, steps: np.ndarray[Any, Any], dtype: Any) -> Any:
    if isinstance(start, (int, np.integer)):
        return np.asarray(start, dtype) + steps
    return ops.add(convert(start, dtype), steps if steps.ndim else steps[()])


def _along(x: Any, shape: list[int], dims: list[int]) -> Any:
    """`x` with its axes at `dims` of `shape`, where it is stretched over the other axes."""
    if isinstance(x, (np.ndarray, np.generic, int)):
        host = np.asarray(x)
        wide = np.reshape(host, [host.shape[dims.index(d)] if d in dims else 1
                                 for d in range(len(shape))])
        return np.broadcast_to(wide, shape)
    old = get_aval(x).shape
    if old == tuple(shape):
        return x
    kept = [i for i, d in enumerate(dims) if old[i] == shape[d]]
    if len(kept) < len(old):
        x = ops.squeeze(x, [i for i in range(len(old)) if i not in kept])
    return broadcast_in_dim(x, shape, [dims[i] for i in kept])


def _stack_last(components: list[Any], shape: list[int], dtype: Any) -> Any:
    if not components:
        return np.zeros((*shape, 0), dtype)
    literals = not shape and state.dynamic is not eager_trace  # shown inline in jaxprs
    if all(isinstance(c, np.ndarray) for c in components) and not literals:
        return np.stack(components, -1).astype(dtype)
    columns = [broadcast_in_dim(dtype.type(c) if isinstance(c, np.ndarray) and not shape else c,
                                (*shape, 1), range(len(shape))) for c in components]
    return columns[0] if len(columns) == 1 else ops.concatenate(columns, len(shape))


# -- reading ---------------------------------------------------------------------------------------


def _with_axes(x: Any, pattern: tuple[Entry, ...]
               ) -> tuple[Any, tuple[Entry, ...], tuple[int, ...]]:
    """`x` with the axes that the pattern makes, the pattern on it, and those axes."""
    if NEW not in pattern and BOOL not in pattern:
        return x, pattern, ()
    made = tuple([i for i, e in enumerate(pattern) if e in (NEW, BOOL)])
    plain = tuple([FULL if e == NEW else ARRAY if e == BOOL else e for e in pattern])
    return ops.expand_dims(x, made), plain, made


def read(x: Any, pattern: tuple[Entry, ...], values: Any, options: Options = _default) -> Any:
    """The elements of `x` at an index, in operations on values of any kind."""
    x, pattern, _ = _with_axes(x, pattern)
    shape = get_aval(x).shape
    supply = iter(values)
    bound: list[Any] = [None if e == FULL else next(supply) for e in pattern]
    _check_not_empty(shape, pattern, bound)
    if options.mode is None:
        if ARRAY not in pattern and all(type(v) is int for v in values) and all(
                e != INTEGER or v < n for e, v, n in zip(pattern, bound, shape, strict=True)):
            return _static_read(x, shape, pattern, bound)
        if all(e != ARRAY or not get_aval(v).shape
                for e, v in zip(pattern, bound, strict=True)):
            return _dynamic_read(x, shape, pattern, bound, options)
    return _gather(x, shape, pattern, bound, options)


def _check_not_empty(shape: tuple[int, ...], pattern: tuple[Entry, ...], bound: list[Any]) -> None:
    if 0 in shape:
        for axis, (n, entry, value) in enumerate(zip(shape, pattern, bound, strict=True)):
            if n == 0 and (entry == INTEGER or (entry == ARRAY and get_aval(value).size)):
                raise IndexError(f"index is out of bounds for axis {axis} with size 0")


def _extent(entry: Slice) -> int:
    """How many elements a slice spans."""
    return (entry.size - 1) * abs(entry.step) + 1 if entry.size else 0


def _first(entry: Slice, start: Any) -> Any:
    """Where the span of a slice begins."""
    return start if entry.step > 0 or not entry.size else start + (entry.size - 1) * entry.step


def _static_read(x: Any, shape: tuple[int, ...], pattern: tuple[Entry, ...], bound: list[Any]
                 ) -> Any:
    starts, limits, strides = [], [], []
    for n, entry, value in zip(shape, pattern, bound, strict=True):
        if entry == FULL:
            start, limit, stride = 0, n, 1
        elif entry == INTEGER:
            start, limit, stride = value, value + 1, 1
        else:
            start = _first(entry, value)
            limit, stride = start + _extent(entry), abs(entry.step) if entry.size > 1 else 1
        starts.append(start)
        limits.append(limit)
        strides.append(stride)
    if any(starts) or tuple(limits) != shape or any(s != 1 for s in strides):
        x = ops.slice(x, starts, limits, strides if any(s != 1 for s in strides) else None)
    return _finish_read(x, pattern)


def _finish_read(x: Any, pattern: tuple[Entry, ...]) -> Any:
    """Turn the axes of slices with negative step, and drop those of integers."""
    turned = [i for i, e in enumerate(pattern) if type(e) is Slice and e.step < 0 and e.size > 1]
    if turned:
        x = ops.rev(x, turned)
    dropped = [i for i, e in enumerate(pattern) if e in (INTEGER, ARRAY)]
    return ops.squeeze(x, dropped) if dropped else x


def _dynamic_read(x: Any, shape: tuple[int, ...], pattern: tuple[Entry, ...], bound: list[Any],
                  options: Options) -> Any:
    dtype = _index_dtype([v for v in bound if v is not None], shape)
    starts, sizes, strides = [], [], []
    for n, entry, value in zip(shape, pattern, bound, strict=True):
        stride = 1
        if entry == FULL:
            start, size = 0, n
        elif type(entry) is Slice:
            size = _extent(entry)
            start = value
            if entry.step < 0 and size:
                start = _offset(value, np.asarray((entry.size - 1) * entry.step, dtype), dtype)
            stride = abs(entry.step) if entry.size > 1 else 1
        else:
            start, size = value, 1
            if entry == ARRAY:
                start = _wrapped(value, n, dtype, options.wrap_negative_indices)
        starts.append(convert(start, dtype))
        sizes.append(size)
        strides.append(stride)
    x = ops.dynamic_slice(x, starts, sizes, allow_negative_indices=False)
    if any(s != 1 for s in strides):
        x = ops.slice(x, [0] * len(sizes), sizes, strides)
    return _finish_read(x, pattern)


def _gather(x: Any, shape: tuple[int, ...], pattern: tuple[Entry, ...], bound: list[Any],
            options: Options) -> Any:
    plan = _plan(shape, pattern, bound, options.wrap_negative_indices)
    if 0 in plan.shape:
        return ops.full(plan.shape, 0, get_aval(x).dtype)
    numbers = ops.GatherDimensionNumbers(
        offset_dims=plan.offset_dims, collapsed_slice_dims=plan.collapsed,
        start_index_map=plan.indexed,
    )
    mode = options.mode
    out = ops.gather(
        x, plan.indices, numbers, plan.slice_sizes,
        indices_are_sorted=options.indices_are_sorted or plan.single,
        unique_indices=options.unique_indices or plan.single,
        mode=ops.GatherScatterMode.PROMISE_IN_BOUNDS if mode is None else mode,
        fill_value=options.fill_value,
    )
    return ops.rev(out, plan.reversed_dims) if plan.reversed_dims else out


# -- writing ---------------------------------------------------------------------------------------


def write(method: str, x: Any, y: Any, pattern: tuple[Entry, ...], values: Any,
          options: Options = _default, function: Any = None) -> Any:
    """`x` with the elements at an index set to, or combined with, `y`."""
    if method == "divide" or method == "power":
        from pyjx import numpy as jnp

        factors = write("multiply", jnp.ones_like(x), y, pattern, values, options)
        return getattr(jnp, method)(x, factors)
    old = get_aval(x)
    wide, pattern, made = _with_axes(x, pattern)
    shape = get_aval(wide).shape
    supply = iter(values)
    bound: list[Any] = [None if e == FULL else next(supply) for e in pattern]
    _check_not_empty(shape, pattern, bound)
    plan = _plan(shape, pattern, bound, options.wrap_negative_indices)
    mode = ops.GatherScatterMode.FILL_OR_DROP if options.mode is None else options.mode
    numbers = ops.ScatterDimensionNumbers(
        update_window_dims=plan.offset_dims, inserted_window_dims=plan.collapsed,
        scatter_dims_to_operand_dims=plan.indexed,
    )
    flags = {"indices_are_sorted": options.indices_are_sorted or plan.single,
             "unique_indices": options.unique_indices or plan.single, "mode": mode}
    if 0 in plan.shape:
        return x
    if method == "apply":
        out = ops.scatter_apply(wide, plan.indices, function, numbers, update_shape=plan.shape,
                                **flags)
    else:
        y = _update(y, old, plan)
        out = _scatters[method](wide, plan.indices, y, numbers, **flags)
    return ops.squeeze(out, made) if made else out


_scatters: dict[str, Callable[..., Any]] = {
    "set": lambda *args, **flags: ops.scatter(*args, **flags),
    "add": lambda *args, **flags: ops.scatter_add(*args, **flags),
    "subtract": lambda *args, **flags: ops.scatter_sub(*args, **flags),
    "multiply": lambda *args, **flags: ops.scatter_mul(*args, **flags),
    "min": lambda *args, **flags: ops.scatter_min(*args, **flags),
    "max": lambda *args, **flags: ops.scatter_max(*args, **flags),
}


def _update(y: Any, x: Any, plan: Plan) -> Any:
    """The new values as the scatter wants them: of the array's dtype and the plan's shape."""
    dtype, _ = dtypes.lattice_result_type(y, _StandsFor(x))
    if dtype != x.dtype:
        warnings.warn(
            "scatter inputs have incompatible types: cannot safely cast value from "
            f"dtype={get_aval(y).dtype.name} to dtype={x.dtype.name} with "
            f"jax_numpy_dtype_promotion={configuration.numpy_dtype_promotion.value}. In future "
            "JAX releases this will result in an error.", FutureWarning, stacklevel=5,
        )
    y = convert(y, x.dtype, x.weak_type)
    own = get_aval(y).shape
    try:
        fits = broadcast_shapes(own, plan.shape) == plan.shape
    except ValueError:
        fits = False
    if not fits:
        extra = len(own) - len(plan.shape)
        if extra > 0 and own[:extra] == (1,) * extra:  # NumPy drops leading axes of size 1
            return _update(ops.squeeze(y, range(extra)), x, plan)
        name = dtypes.name(x.dtype)
        raise ValueError(
            "Incompatible types for broadcasting: input type="
            f"{name}[{','.join(map(str, own))}] and requested "
            f"type={name}[{','.join(map(str, plan.shape))}]"
        )
    dims = list(range(len(plan.shape) - len(own), len(plan.shape)))
    y = _along_any(y, plan.shape, dims)
    return ops.rev(y, plan.reversed_dims) if plan.reversed_dims else y


def _along_any(y: Any, shape: tuple[int, ...], dims: list[int]) -> Any:
    old = get_aval(y).shape
    kept = [i for i, d in enumerate(dims) if old[i] == shape[d]]
    if len(kept) < len(old):
        y = ops.squeeze(y, [i for i in range(len(old)) if i not in kept])
    return broadcast_in_dim(y, shape, [dims[i] for i in kept])


class _StandsFor:
    """An object with an aval."""

    __slots__ = ("aval",)

    def __init__(self, aval: Any) -> None:
        self.aval = aval


# -- programs, one for each pattern ----------------------------------------------------------------

_readers: dict[Any, Callable[..., Any]] = {}
_writers: dict[Any, Callable[..., Any]] = {}


def reader(pattern: tuple[Entry, ...], options: Options = _default) -> Callable[..., Any]:
    """The program that reads a pattern: a function of the array and the values."""

    def getitem(x: Any, *values: Any) -> Any:
        return read(x, pattern, values, options)

    fn = _readers[pattern, options] = op_jit(getitem)
    return fn


def _writer(method: str, pattern: tuple[Entry, ...], options: Options) -> Callable[..., Any]:
    def scatter(x: Any, y: Any, *values: Any) -> Any:
        return write(method, x, y, pattern, values, options)

    scatter.__name__ = f"scatter_{method}"
    fn = _writers[method, pattern, options] = op_jit(scatter)
    return fn


def _small_ints(values: list[Any]) -> bool:
    """Whether the integers fit int32, the type in which they go to a program."""
    return all(type(v) is not int or -2147483648 <= v <= 2147483647 for v in values)


def getitem(x: Any, index: Any, options: Options = _default) -> Any:
    """`x[index]` for an array or tracer, by NumPy's rules, but that

    an integer or index array that is out of bounds reads some element of the array, unless
    the flag `jax_pyjx_strict_indices` is set and the index is known, which raises IndexError.

    Raises:
      IndexError: more indices than axes, or an index of a kind that is none.
      TypeError: a list or a string as index, or an index array of floats.
      NonConcreteBooleanIndexError: a traced mask.
    """
    aval = x.aval
    pattern, values = parse(aval.shape, index)
    if configuration.strict_indices.value:
        _check_bounds(aval.shape, pattern, values)
    if type(x) is not ArrayImpl or state.dynamic is not eager_trace:
        return read(x, pattern, values, options)
    try:
        fn = _readers[pattern, options]
    except KeyError:
        if not values and all(e == FULL for e in pattern):
            return x
        fn = reader(pattern, options)
    except TypeError:  # an array as fill value
        return read(x, pattern, values, options)
    return fn(x, *values) if _small_ints(values) else read(x, pattern, values, options)


# -- x.at[index] -----------------------------------------------------------------------------------


class IndexUpdateHelper:
    """What `x.at` is: index it, then call a method of the result, as in `x.at[i].set(y)`."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array

    def __getitem__(self, index: Any) -> IndexUpdateRef:
        return IndexUpdateRef(self.array, index)

    def __repr__(self) -> str:
        return f"_IndexUpdateHelper({self.array!r})"


def _options(mode: Any, fill_value: Any, indices_are_sorted: bool, unique_indices: bool,
             wrap_negative_indices: bool) -> Options:
    if mode is not None:
        mode = ops.GatherScatterMode.from_any(mode)
    return Options(mode, fill_value, bool(indices_are_sorted), bool(unique_indices),
                   bool(wrap_negative_indices))


class IndexUpdateRef:
    """`x.at[index]`: reads, and updates that return a new array.

    The methods take `indices_are_sorted` and `unique_indices`, promises that may make them
    faster; `mode`, what to do with indices out of bounds: "fill" or "drop" (updates are dropped),
    "clip", or "promise_in_bounds"; and `wrap_negative_indices`, whether negative indices count
    from the end.
    """

    __slots__ = ("array", "index")

    def __init__(self, array: Any, index: Any) -> None:
        self.array = array
        self.index = index

    def __repr__(self) -> str:
        return f"_IndexUpdateRef({self.array!r}, {self.index!r})"

    def get(self, *, indices_are_sorted: bool = False, unique_indices: bool = False,
            mode: Any = None, fill_value: Any = None, out_sharding: Any = None,
            wrap_negative_indices: bool = True) -> Any:
        """`x[index]`, where `mode="fill"` gives `fill_value` for indices out of bounds."""
        options = _options(mode, fill_value, indices_are_sorted, unique_indices,
                           wrap_negative_indices)
        return getitem(as_operand(self.array), self.index, options)

    def _write(self, method: str, y: Any, indices_are_sorted: bool, unique_indices: bool,
               mode: Any, wrap_negative_indices: bool) -> Any:
        x = self.array
        if mode is None and not indices_are_sorted and not unique_indices and (
                wrap_negative_indices):
            options = _default
        else:
            options = _options(mode, None, indices_are_sorted, unique_indices,
                               wrap_negative_indices)
        if type(y) not in aval_makers and not isinstance(y, Tracer):
            y = _values_of(y)
        pattern, values = parse(x.aval.shape, self.index)
        if configuration.strict_indices.value:
            _check_bounds(x.aval.shape, pattern, values)
        if type(x) is not ArrayImpl or state.dynamic is not eager_trace or not (
                _small_ints(values)):
            return write(method, x, y, pattern, values, options)
        fn = _writers.get((method, pattern, options)) or _writer(method, pattern, options)
        return fn(x, y, *values)

    def apply(self, func: Callable[[Any], Any], *, indices_are_sorted: bool = False,
              unique_indices: bool = False, mode: Any = None, out_sharding: Any = None,
              wrap_negative_indices: bool = True) -> Any:
        """The array with `func` applied to the elements at the index, as often as they occur."""
        options = _options(mode, None, indices_are_sorted, unique_indices, wrap_negative_indices)
        pattern, values = parse(self.array.aval.shape, self.index)
        return write("apply", self.array, None, pattern, values, options, func)


def _values_of(y: Any) -> Any:
    from pyjx.numpy.creation import asarray

    return asarray(y)


def _update_method(name: str, method: str, doc: str) -> Any:
    def update(self: IndexUpdateRef, values: Any, *, indices_are_sorted: bool = False,
               unique_indices: bool = False, mode: Any = None, out_sharding: Any = None,
               wrap_negative_indices: bool = True) -> Any:
        return self._write(method, values, indices_are_sorted, unique_indices, mode,
                           wrap_negative_indices)

    update.__name__ = name
    update.__qualname__ = f"IndexUpdateRef.{name}"
    update.__doc__ = doc
    return update


for _name, _method, _what in (
    ("set", "set", "set to `values`"),
    ("add", "add", "increased by `values`"),
    ("subtract", "subtract", "decreased by `values`"),
    ("sub", "subtract", "decreased by `values`"),
    ("multiply", "multiply", "multiplied by `values`"),
    ("mul", "multiply", "multiplied by `values`"),
    ("divide", "divide", "divided by `values`"),
    ("div", "divide", "divided by `values`"),
    ("power", "power", "raised to the power `values`"),
    ("min", "min", "replaced by `values` where these are smaller"),
    ("max", "max", "replaced by `values` where these are larger"),
):
    _doc = f"The array with the elements at the index {_what}, which broadcast to them."
    setattr(IndexUpdateRef, _name, _update_method(_name, _method, _doc))


# -- take ------------------------------------------------------------------------------------------


@array_function(static_argnames=("axis", "out", "mode", "unique_indices", "indices_are_sorted",
                                 "fill_value"))
def take(a: Any, indices: Any, axis: int | None = None, out: None = None, mode: str | None = None,
         unique_indices: bool = False, indices_are_sorted: bool = False, fill_value: Any = None
         ) -> Any:
    """The elements of `a` at `indices` along `axis`.

    Args:
      a: array; without `axis`, it is flattened first.
      indices: integers; negative ones count from the end.
      out: must be None.
      mode: for indices out of bounds: "fill" (the default) gives `fill_value`, or nan, or for
        integers the least or, if unsigned, the greatest one; "clip" the nearest element, negative
        indices being out of bounds; "wrap" the index modulo the size; "promise_in_bounds" any.

    Raises:
      ValueError: `indices` are no integers, or the mode is none of these.

    >>> import pyjx as jax
    >>> jax.numpy.take(jax.numpy.arange(5) * 2, jax.numpy.array([1, 3])).tolist()
    [2, 6]
    """
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.take is not supported.")
    x, i = operands("take", a, indices)
    if get_aval(i).dtype not in dtypes.integer_dtypes:
        raise ValueError("indices must have an integer type")
    if axis is None:
        x = ops.reshape(x, (get_aval(x).size,))
        axis = 0
    rank = get_aval(x).ndim
    axis = canonical_axis(axis, rank)
    n = get_aval(x).shape[axis]
    wrap = mode != "clip"
    if mode == "raise":
        raise NotImplementedError("The 'raise' mode to jnp.take is not supported.")
    if mode == "wrap":
        from pyjx import numpy as jnp

        i = jnp.remainder(i, n)
        mode = "promise_in_bounds"
    elif mode not in (None, "fill", "clip", "promise_in_bounds"):
        raise ValueError(f"Invalid mode '{mode}' for np.take")
    options = _options("fill" if mode is None else mode, fill_value, indices_are_sorted,
                       unique_indices, wrap)
    pattern = (FULL,) * axis + (ARRAY,) + (FULL,) * (rank - axis - 1)
    return read(x, pattern, (i,), options)


def canonical_axis(axis: Any, rank: int) -> int:
    """The axis counted from the front.

    Raises:
      ValueError: there is no such axis.
    """
    axis = axis.__index__()
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {rank}")
    return int(axis + rank if axis < 0 else axis)


def _aligned(name: str, arr: Any, indices: Any, axis: int | None) -> tuple[Any, Any, int]:
    x, i = operands(name, arr, indices)
    if get_aval(i).dtype not in dtypes.integer_dtypes:
        raise TypeError(f"{name} indices must be of integer type, got {get_aval(i).dtype}")
    if axis is None:
        if get_aval(i).ndim != 1:
            raise ValueError(f"{name} indices must be 1D if axis=None, got shape "
                             f"{get_aval(i).shape}")
        return ops.reshape(x, (get_aval(x).size,)), i, 0
    rank = get_aval(x).ndim
    if get_aval(i).ndim != rank:
        raise ValueError(f"indices and arr must have the same number of dimensions; {rank} vs. "
                         f"{get_aval(i).ndim}")
    return x, i, canonical_axis(axis, rank)


def _aligned_index(x: Any, i: Any, axis: int) -> tuple[Any, ...]:
    """The index arrays that take the elements at `i` along the axis, of each row its own."""
    shape, own = get_aval(x).shape, get_aval(i).shape
    index: list[Any] = []
    for d, (n, m) in enumerate(zip(shape, own, strict=True)):
        if d == axis:
            index.append(i)
        elif n == 1:
            index.append(np.zeros((1,) * len(own), np.int32))
        else:
            size = [1] * len(own)
            size[d] = n
            if m not in (1, n):
                raise ValueError("Incompatible shapes for broadcasting: "
                                 f"shapes={[shape, own]}")
            index.append(np.arange(n, dtype=np.int32).reshape(size))
    return tuple(index)


@array_function(static_argnames=("axis", "mode", "fill_value", "wrap_negative_indices"))
def take_along_axis(arr: Any, indices: Any, axis: int | None = -1, mode: Any = None,
                    fill_value: Any = None, *, wrap_negative_indices: bool = True) -> Any:
    """Elements of `arr` along an axis, at indices that each row has its own of.

    Args:
      arr: array; without `axis`, it is flattened first.
      indices: integers of the same rank; the other axes broadcast against those of `arr`.
      mode, fill_value: for indices out of bounds, as in `x.at[i].get`; "fill" by default.

    Raises:
      TypeError: `indices` are no integers.
      ValueError: the ranks differ.

    >>> import pyjx as jax
    >>> x = jax.numpy.array([[3, 1, 2], [6, 5, 4]])
    >>> jax.numpy.take_along_axis(x, jax.numpy.array([[1], [2]]), 1).tolist()
    [[1], [4]]
    """
    x, i, axis = _aligned("take_along_axis", arr, indices, axis)
    options = _options("fill" if mode is None else mode, fill_value, False, False,
                       wrap_negative_indices)
    pattern, values = parse(get_aval(x).shape, _aligned_index(x, i, axis))
    return read(x, pattern, values, options)


def put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None, inplace: bool = True, *,
                   mode: Any = None) -> Any:
    """The array with `values` at the indices along an axis; see `take_along_axis`.

    Raises:
      ValueError: `inplace` is true, which immutable arrays cannot be.
    """
    if inplace:
        raise ValueError("jax.numpy.put_along_axis cannot modify arrays in-place, because JAX "
                         "arrays are immutable. Pass inplace=False to instead return an updated "
                         "array.")
    check_arraylike("put_along_axis", values)
    shape = get_aval(as_operand(arr)).shape
    x, i, axis = _aligned("put_along_axis", arr, indices, axis)
    x = _values_of(x)
    update: Any = IndexUpdateRef(x, _aligned_index(x, i, axis))
    out = update.set(values, mode=mode)
    return ops.reshape(out, shape)


__all__ = [
    "IndexUpdateHelper", "IndexUpdateRef", "canonical_axis", "getitem", "put_along_axis", "reader",
    "take", "take_along_axis",
]
