"""Indexing: `x[i]`, `x.at[i]`, `take`.

On concrete arrays each pattern of an index (see `patterns`) is one compiled program of the array
and the index's values, so `x[0]` and `x[5]`, or `x[0:8]` and `x[8:16]`, share it. While tracing,
integers and slices that are known make static slices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import numpy as np

from pyjx import configuration
from pyjx import lax as ops
from pyjx import numpy as jnp
from pyjx.core import dtypes, frames
from pyjx.core.array_type import Array, ArrayLike, DTypeLike
from pyjx.core.avals import ShapedArray, aval_makers, get_aval, is_valid_value
from pyjx.core.bounded import BoundedDict
from pyjx.core.integers import as_bool, max_dim, min_dim
from pyjx.core.layouts import ShardingLike
from pyjx.core.records import Record
from pyjx.core.scalars import is_minus_zero, scalar_constant
from pyjx.core.trace import eager_trace, state
from pyjx.errors import InconclusiveDimensionOperation
from pyjx.guards import guard_methods
from pyjx.lax.common import broadcast_shapes
from pyjx.lax.indexing import GatherScatterMode
from pyjx.numpy.operands import along, canonical_axis, refuse_in_place
from pyjx.numpy.patterns import (
    APART,
    ARRAY,
    BOOL,
    FULL,
    INTEGER,
    NEW,
    Entry,
    Plan,
    Slice,
    as_index,
    check_bounds,
    check_fits,
    index_dtype,
    make_plan,
    offset,
    parse,
    roomy,
    stretched_along,
    wrapped,
)
from pyjx.numpy.promotion import as_operand, check_arraylike, convert, no_out, operands
from pyjx.runtime.array import ArrayImpl
from pyjx.runtime.operations import op_jit
from pyjx.runtime.resharding import in_auto_mode
from pyjx.transforms.arguments import wraps


class Options(Record):
    """What `at[]` and `take` let users choose."""

    mode: Any = None
    fill_value: Any = None
    indices_are_sorted: bool = False
    unique_indices: bool = False
    wrap_negative_indices: bool = True


_default = Options()
_UNCHECKED_MODES = (None, ops.GatherScatterMode.PROMISE_IN_BOUNDS)  # of reading


# -- reading ---------------------------------------------------------------------------------------


def _with_axes(x: ArrayLike, pattern: tuple[Entry, ...]
               ) -> tuple[Any, tuple[Entry, ...], tuple[int, ...]]:
    """`x` with the axes that the pattern makes, the pattern on it, and those axes."""
    if NEW not in pattern and BOOL not in pattern and APART not in pattern:
        return x, pattern, ()
    made = tuple([i for i, e in enumerate(pattern) if e in (NEW, BOOL, APART)])
    plain = tuple([FULL if e == NEW else ARRAY if e == BOOL else e for e in pattern])
    return ops.expand_dims(x, made), plain, made


def read(x: ArrayLike, pattern: tuple[Entry, ...], values: Iterable[ArrayLike],
         options: Options = _default) -> Any:
    """The elements of `x` at an index, in operations on values of any kind."""
    x, pattern, _ = _with_axes(x, pattern)
    shape = get_aval(x).shape
    supply = iter(values)
    bound: list[Any] = [None if e == FULL else next(supply) for e in pattern]
    _check_not_empty(shape, pattern, bound, (INTEGER, ARRAY))
    if ARRAY not in pattern and options.mode in _clamping and all(type(v) is int for v in values):
        clamped = _clamped(shape, pattern, bound, options.mode)
        if clamped == bound or options.mode is not None:
            return _static_read(x, shape, pattern, clamped)
        # out of bounds: the program clamps, so that checkify sees it
    if options.mode in _clamping and all(e != ARRAY or not get_aval(v).shape
                                    for e, v in zip(pattern, bound, strict=True)):
        return _dynamic_read(x, shape, pattern, bound, options)
    return _gather(x, shape, pattern, bound, options)


_clamping = (None, ops.GatherScatterMode.PROMISE_IN_BOUNDS, ops.GatherScatterMode.CLIP)


def _clamped(shape: tuple[int, ...], pattern: tuple[Entry, ...], bound: list[Any],
             mode: str | GatherScatterMode | None) -> list[Any]:
    """The values of a pattern with its integers moved into the array."""
    clamped = list(bound)
    for axis, (n, entry, value) in enumerate(zip(shape, pattern, bound, strict=True)):
        if entry == INTEGER and not _is_inside(value, n):
            if mode is not ops.GatherScatterMode.CLIP:
                check_fits(value)
            clamped[axis] = min_dim(max(value, 0), n - 1)
    return clamped


def _is_inside(value: int, n: int) -> bool:
    """Whether an axis is known to have element `value`."""
    try:
        return 0 <= value < n
    except InconclusiveDimensionOperation:
        return False


def _check_not_empty(shape: tuple[int, ...], pattern: tuple[Entry, ...], bound: list[Any],
                     entries: tuple[Entry, ...]) -> None:
    """Raise IndexError where a scalar, or one of the `entries`, names an element of an axis that
    has none."""
    if 0 in shape:
        for axis, (n, entry, value) in enumerate(zip(shape, pattern, bound, strict=True)):
            scalar = entry == ARRAY and not get_aval(value).shape
            if n == 0 and (scalar or entry in entries) and get_aval(value).size:
                raise IndexError(f"index is out of bounds for axis {axis} with size 0")


def _extent(entry: Slice) -> int:
    """How many elements a slice spans."""
    if type(entry.size) is not int:
        return max_dim((entry.size - 1) * abs(entry.step) + 1, 0)
    return (entry.size - 1) * abs(entry.step) + 1 if entry.size else 0


def _stride(entry: Slice) -> int:
    """The step of a slice in memory; of one of a single element 1."""
    return abs(entry.step) if entry.size not in (0, 1) else 1


def _first(entry: Slice, start: Array) -> Any:
    """Where the span of a slice begins."""
    return start if entry.step > 0 or not entry.size else start + (entry.size - 1) * entry.step


def _static_read(x: ArrayLike, shape: tuple[int, ...], pattern: tuple[Entry, ...], bound: list[Any]
                 ) -> Any:
    starts, limits, strides = [], [], []
    for n, entry, value in zip(shape, pattern, bound, strict=True):
        if entry == FULL:
            start, limit, stride = 0, n, 1
        elif entry == INTEGER:
            start, limit, stride = value, value + 1, 1
        else:
            start = _first(entry, value)
            limit, stride = start + _extent(entry), _stride(entry)
        starts.append(start)
        limits.append(limit)
        strides.append(stride)
    if any(starts) or tuple(limits) != shape or any(s != 1 for s in strides):
        x = ops.slice(x, starts, limits, strides if any(s != 1 for s in strides) else None)
    return _finish_read(x, pattern)


def _finish_read(x: ArrayLike, pattern: tuple[Entry, ...]) -> Any:
    """Turn the axes of slices with negative step, and drop those of integers."""
    turned = [i for i, e in enumerate(pattern) if type(e) is Slice and e.step < 0
              and e.size not in (0, 1)]
    if turned:
        x = ops.rev(x, turned)
    dropped = [i for i, e in enumerate(pattern) if e in (INTEGER, ARRAY, APART)]
    return ops.squeeze(x, dropped) if dropped else x


def _dynamic_read(x: ArrayLike, shape: tuple[int, ...], pattern: tuple[Entry, ...],
                  bound: list[Any], options: Options) -> Any:
    dtype = index_dtype([v for v in bound if v is not None], shape)
    starts, sizes, strides = [], [], []
    for n, entry, value in zip(shape, pattern, bound, strict=True):
        stride = 1
        if entry == FULL:
            start, size = 0, n
        elif type(entry) is Slice:
            size = _extent(entry)
            start = wrapped(value, n, dtype, True) if entry.wraps else value
            if entry.step < 0 and size:
                start = offset(value, scalar_constant((entry.size - 1) * entry.step, dtype), dtype)
            stride = _stride(entry)
        else:
            start, size = value, 1
            if entry == ARRAY:
                start = wrapped(value, n, dtype, options.wrap_negative_indices)
        starts.append(as_index(start, dtype))
        sizes.append(size)
        strides.append(stride)
    x = ops.dynamic_slice(x, starts, sizes, allow_negative_indices=False)
    if any(s != 1 for s in strides):
        x = ops.slice(x, [0] * len(sizes), sizes, strides)
    return _finish_read(x, pattern)


def _gather(x: ArrayLike, shape: tuple[int, ...], pattern: tuple[Entry, ...], bound: list[Any],
            options: Options) -> Any:
    plan = make_plan(shape, pattern, bound, options.wrap_negative_indices)
    if 0 in plan.shape:
        return convert(ops.full(plan.shape, 0, get_aval(x).dtype), get_aval(x).dtype,
                       get_aval(x).weak_type)
    numbers = ops.GatherDimensionNumbers(offset_dims=plan.offset_dims,
                                         collapsed_slice_dims=plan.collapsed,
                                         start_index_map=plan.indexed)
    mode = options.mode
    out = ops.gather(x, plan.indices, numbers, plan.slice_sizes,
                     indices_are_sorted=options.indices_are_sorted or plan.single,
                     unique_indices=options.unique_indices or plan.single,
                     mode=ops.GatherScatterMode.PROMISE_IN_BOUNDS if mode is None else mode,
                     fill_value=options.fill_value)
    return ops.rev(out, plan.reversed_dims) if plan.reversed_dims else out


# -- writing ---------------------------------------------------------------------------------------


def write(method: str, x: ArrayLike, y: Any, pattern: tuple[Entry, ...],
          values: Iterable[ArrayLike], options: Options = _default, function: Any = None) -> Any:
    """`x` with the elements at an index set to, or combined with, `y`."""
    if method == "divide" or method == "power":
        factors = write("multiply", jnp.ones_like(x), y, pattern, values, options)
        return getattr(jnp, method)(x, factors)
    old = get_aval(x)
    wide, pattern, made = _with_axes(x, pattern)
    shape = get_aval(wide).shape
    supply = iter(values)
    bound: list[Any] = [None if e == FULL else next(supply) for e in pattern]
    _check_not_empty(shape, pattern, bound, (INTEGER,))
    plan = make_plan(shape, pattern, bound, options.wrap_negative_indices)
    mode = ops.GatherScatterMode.FILL_OR_DROP if options.mode is None else options.mode
    numbers = ops.ScatterDimensionNumbers(update_window_dims=plan.offset_dims,
                                          inserted_window_dims=plan.collapsed,
                                          scatter_dims_to_operand_dims=plan.indexed)
    flags: dict[str, Any] = {"indices_are_sorted": options.indices_are_sorted or plan.single,
             "unique_indices": options.unique_indices or plan.single, "mode": mode}
    if 0 in plan.shape or 0 in shape:
        return x
    if method == "apply":
        kept = wraps(function, lambda v: convert(made, old.dtype) if is_valid_value(
            made := function(v)) else made)
        out = ops.scatter_apply(
            wide, plan.indices, kept, numbers, update_shape=plan.shape, **flags)
    else:
        dtype = _common_dtype(y, old)
        # What is set is cast once; what is combined is computed in the dtype of both.
        kind = old if method == "set" or dtype == old.dtype else old.update(
            dtype=dtype, weak_type=False)
        y = _update(y, kind, plan)
        out = _scatters[method](convert(wide, kind.dtype, kind.weak_type), plan.indices, y, numbers,
                                **flags)
        out = convert(out, old.dtype, old.weak_type)
    return ops.squeeze(out, made) if made else out


_scatters: dict[str, Callable[..., Any]] = {
    "set": lambda *args, **flags: ops.scatter(*args, **flags),
    "add": lambda *args, **flags: ops.scatter_add(*args, **flags),
    "subtract": lambda *args, **flags: ops.scatter_sub(*args, **flags),
    "multiply": lambda *args, **flags: ops.scatter_mul(*args, **flags),
    "min": lambda *args, **flags: ops.scatter_min(*args, **flags),
    "max": lambda *args, **flags: ops.scatter_max(*args, **flags),
}


def _common_dtype(y: ArrayLike, x: ShapedArray) -> Any:
    """The dtype of both together. Warns where the array, however weak, can't hold the values."""
    dtype, _ = dtypes.lattice_result_type(y, _StandsFor(x))
    if dtype != x.dtype and (not x.weak_type or dtypes.lattice_result_type(
            y, _StandsFor(x.strip_weak_type()))[0] != x.dtype):
        frames.warn(
            "scatter inputs have incompatible types: cannot safely cast value from "
            f"dtype={get_aval(y).dtype.name} to dtype={x.dtype.name} with "
            f"jax_numpy_dtype_promotion={configuration.numpy_dtype_promotion.value}. In future "
            "JAX releases this will result in an error.", FutureWarning)
    return dtype


def _update(y: Array, x: ShapedArray, plan: Plan) -> Any:
    """The new values as the scatter wants them: of the type `x` and the plan's shape."""
    if x.dtype == np.bool_ and get_aval(y).dtype in dtypes.complex_dtypes:
        y = convert(y, dtypes.to_floating_dtype(get_aval(y).dtype))
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
        fewer = ("" if extra <= 0 else "Cannot broadcast to shape with fewer dimensions: "
                 f"arr_shape={own} shape={plan.shape}. ")
        raise ValueError(
            f"{fewer}Incompatible types for broadcasting: input type="
            f"{name}[{','.join(map(str, own))}] and requested "
            f"type={name}[{','.join(map(str, plan.shape))}]. The values that x.at[index] is set "
            f"to, or combined with, must broadcast to x[index], of shape {plan.shape} here.")
    dims = list(range(len(plan.shape) - len(own), len(plan.shape)))
    y = stretched_along(y, plan.shape, dims)
    return ops.rev(y, plan.reversed_dims) if plan.reversed_dims else y


class _StandsFor:
    """An object with an aval."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval


# -- programs, one for each pattern ----------------------------------------------------------------

_readers = BoundedDict(2048, "functions that read at indices")
_writers = BoundedDict(2048, "functions that write at indices")


def reader(pattern: tuple[Entry, ...], options: Options = _default) -> Callable[..., Any]:
    """The program that reads a pattern: a function of the array and the values."""

    def getitem(x: Array, *values: Any) -> Any:
        return read(x, pattern, values, options)

    fn: Callable[..., Any] = op_jit(getitem)
    _readers[pattern, options] = fn
    return fn


def _writer(method: str, pattern: tuple[Entry, ...], options: Options) -> Callable[..., Any]:
    def scatter(x: Array, y: ArrayLike, *values: Any) -> Any:
        return write(method, x, y, pattern, values, options)

    scatter.__name__ = f"scatter_{method}"
    fn: Callable[..., Any] = op_jit(scatter)
    _writers[method, pattern, options] = fn
    return fn


def _small_ints(values: list[Any]) -> bool:
    """Whether the integers fit int32, the type in which they go to a program."""
    return not values or all([type(v) is not int or -2147483648 <= v <= 2147483647 for v in values])


def getitem(x: Array, index: object, options: Options = _default) -> Any:
    """`x[index]` for an array or tracer, by NumPy's rules, but that

    an integer or index array that is out of bounds reads some element of the array, unless
    the flag `jax_pyjx_strict_indices` is set and the index is known, which raises IndexError; the
    flag `jax_check_static_indices` does so for integers alone.

    Raises:
      IndexError: more indices than axes, or an index of a kind that is none.
      TypeError: a list or a string as index, or an index array of floats.
      NonConcreteBooleanIndexError: a traced mask.
    """
    aval = x.aval
    pattern, values = parse(aval.shape, index, options.wrap_negative_indices)
    if configuration.strict_indices.value:
        check_bounds(aval.shape, pattern, values)
    elif configuration.check_static_indices.value and options.mode in _UNCHECKED_MODES:
        check_bounds(aval.shape, pattern, values, integers_only=True)
    if type(x) is not ArrayImpl or state.dynamic is not eager_trace or (
            aval.place.sharding is not None):  # whose type depends on the values of slices
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

    def __init__(self, array: Array) -> None:
        self.array = array

    def __getitem__(self, index: object) -> IndexUpdateRef:
        return IndexUpdateRef(self.array, index)

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("x.at is not callable: index it, as in x.at[index].set(value).")

    def __setitem__(self, index: object, value: ArrayLike) -> NoReturn:
        raise TypeError("x.at does not support item assignment, as arrays are immutable. Use "
                        "x = x.at[index].set(value), or add, multiply, min, max in place of set.")

    def __getattr__(self, name: str) -> NoReturn:
        cure = ""
        if not name.startswith("_"):
            method = name if hasattr(IndexUpdateRef, name) else "set"
            cure = f": index it first, as in x.at[index].{method}(...)"
        raise AttributeError(f"x.at has no attribute {name!r}{cure}", name=name, obj=self)

    def __repr__(self) -> str:
        return f"_IndexUpdateHelper({self.array!r})"


def _options(mode: str | GatherScatterMode | None, fill_value: ArrayLike | None,
             indices_are_sorted: bool, unique_indices: bool,
             wrap_negative_indices: bool) -> Options:
    if mode is not None:
        mode = ops.GatherScatterMode.from_any(mode)
    if is_minus_zero(fill_value):
        fill_value = np.asarray(fill_value)  # as == takes it for another zero, it is no key
    return Options(mode, fill_value, as_bool("at", "indices_are_sorted", indices_are_sorted),
                   as_bool("at", "unique_indices", unique_indices), bool(wrap_negative_indices))


def _no_operator(symbol: str) -> Any:
    def refuse(self: object, other: object) -> NoReturn:
        raise TypeError(f"unsupported operand type(s) for {symbol}: '_IndexUpdateRef' and "
                        f"'{type(other).__name__}'. x.at[index] is no array: x.at[index].get() is "
                        "one, and for x[index] += y there is x = x.at[index].add(y), as there are "
                        "multiply, divide and power.")

    return refuse


class IndexUpdateRef:
    """`x.at[index]`: reads, and updates that return a new array.

    The methods take `indices_are_sorted` and `unique_indices`, promises that may make them
    faster; `mode`, what to do with indices out of bounds: "fill" or "drop" (updates are dropped),
    "clip", or "promise_in_bounds"; and `wrap_negative_indices`, whether negative indices count
    from the end.
    """

    __slots__ = ("array", "index")
    _made_array = "x.get()"  # as messages say

    def __init__(self, array: Array, index: object) -> None:
        self.array = array
        self.index = index

    def __repr__(self) -> str:
        return f"_IndexUpdateRef({self.array!r}, {self.index!r})"

    __add__, __sub__, __mul__, __truediv__, __pow__ = map(_no_operator, ["+", "-", "*", "/", "**"])
    __iadd__, __isub__, __imul__, __itruediv__, __ipow__ = map(
        _no_operator, ["+=", "-=", "*=", "/=", "**="])

    def get(self, *, indices_are_sorted: bool = False, unique_indices: bool = False,
            mode: str | GatherScatterMode | None = None, fill_value: ArrayLike | None = None,
            out_sharding: ShardingLike = None, wrap_negative_indices: bool = True) -> Any:
        """`x[index]`, where `mode="fill"` gives `fill_value` for indices out of bounds."""
        options = _options(mode, fill_value, indices_are_sorted, unique_indices,
                           wrap_negative_indices)
        if out_sharding is not None:
            return in_auto_mode(lambda x, index: getitem(x, index, options), out_sharding,
                                "x.at[index].get")(as_operand(self.array), self.index)
        return getitem(as_operand(self.array), self.index, options)

    def _write(self, method: str, y: ArrayLike, indices_are_sorted: bool, unique_indices: bool,
               mode: str | GatherScatterMode | None, wrap_negative_indices: bool) -> Any:
        x = self.array
        if mode is None and not indices_are_sorted and not unique_indices and (
                wrap_negative_indices):
            options = _default
        else:
            options = _options(mode, None, indices_are_sorted, unique_indices,
                               wrap_negative_indices)
        if type(y) not in aval_makers:
            try:
                y = jnp.asarray(y)
            except (TypeError, ValueError) as error:
                error.add_note(f"It was given to x.at[index].{method}, which takes an array or a "
                               "number.")
                raise
        if isinstance(y, int) and (type(y) is bool or y >= 2**31) and _holds(x.aval.dtype, y):
            y = x.aval.dtype.type(y)  # which as Python's own has no promotion to the array's dtype
        pattern, values = parse(x.aval.shape, self.index, wrap_negative_indices)
        if configuration.strict_indices.value:
            check_bounds(x.aval.shape, pattern, values)
        if type(x) is not ArrayImpl or state.dynamic is not eager_trace or not (
                _small_ints(values)) or x.aval.place.sharding is not None:
            return write(method, x, y, pattern, values, options)
        fn = _writers.get((method, pattern, options)) or _writer(method, pattern, options)
        return fn(x, y, *values)

    def apply(self, func: Callable[[Any], Any], *, indices_are_sorted: bool = False,
              unique_indices: bool = False, mode: Any = None, out_sharding: ShardingLike = None,
              wrap_negative_indices: bool = True) -> Any:
        """The array with `func` applied to the elements at the index, as often as they occur."""
        if out_sharding is not None:
            return in_auto_mode(lambda x, index: IndexUpdateRef(x, index).apply(
                func, indices_are_sorted=indices_are_sorted, unique_indices=unique_indices,
                mode=mode, wrap_negative_indices=wrap_negative_indices), out_sharding,
                "x.at[index].apply")(self.array, self.index)
        options = _options(mode, None, indices_are_sorted, unique_indices, wrap_negative_indices)
        pattern, values = parse(self.array.aval.shape, self.index, wrap_negative_indices)
        return write("apply", self.array, None, pattern, values, options, func)


def _holds(dtype: DTypeLike, y: int) -> bool:
    """Whether the dtype has the truth value, or the integer that the default one does not have."""
    own = type(y) is bool or y > np.iinfo(dtypes.default_int_dtype()).max
    return own and dtype in dtypes.integer_dtypes and y <= int(dtypes.iinfo(dtype).max)


def _update_method(name: str, method: str, doc: str) -> Any:
    def update(self: IndexUpdateRef, values: ArrayLike, *, indices_are_sorted: bool = False,
               unique_indices: bool = False, mode: str | GatherScatterMode | None = None,
               out_sharding: ShardingLike = None, wrap_negative_indices: bool = True) -> Any:
        if out_sharding is not None:
            return in_auto_mode(lambda x, index, y: update(
                IndexUpdateRef(x, index), y, indices_are_sorted=indices_are_sorted,
                unique_indices=unique_indices, mode=mode,
                wrap_negative_indices=wrap_negative_indices), out_sharding,
                f"x.at[index].{name}")(self.array, self.index, values)
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
guard_methods(IndexUpdateRef)
guard_methods(IndexUpdateHelper)


# -- take ------------------------------------------------------------------------------------------


@op_jit(static_argnames=("axis", "mode", "unique_indices", "indices_are_sorted", "fill_value"))
def take(a: ArrayLike, indices: ArrayLike, axis: int | None = None, out: None = None,
         mode: str | None = None, unique_indices: bool = False, indices_are_sorted: bool = False,
         fill_value: ArrayLike | None = None) -> Array:
    """The elements of `a` at `indices` along `axis`.

    Args:
      a: array; without `axis`, it is flattened first.
      indices: integers, or booleans, which are 0 and 1; negative ones count from the end. None at
        all may be of any dtype.
      out: must be None.
      mode: for indices out of bounds: "fill" (the default) gives `fill_value`, or nan, or for
        integers the least or, if unsigned, the greatest one; "clip" the nearest element, negative
        indices being out of bounds; "wrap" the index modulo the size.
      axis: the axis; None takes from the flattened array.
      unique_indices: the caller says that no index is there twice.
      indices_are_sorted: the caller says that the indices are in ascending order.
      fill_value: with mode "fill", what stands where an index is out of range: by default nan, or
        the largest or least integer.

    Returns:
      An array of the dtype of `a`: the axes of `indices` stand in the place of `axis`.

    Raises:
      ValueError: `indices` are no integers, or the mode is none of these.

    >>> import pyjx as jax
    >>> jax.numpy.take(jax.numpy.arange(5) * 2, jax.numpy.array([1, 3])).tolist()
    [2, 6]
    >>> jax.numpy.take(jax.numpy.arange(3.0), jax.numpy.array([1, 7])).tolist()
    [1.0, nan]
    """
    no_out("take", out)
    x, i = operands("take", a, indices)
    if not get_aval(i).size:
        i = ops.full(get_aval(i).shape, 0, np.int32)
    elif get_aval(i).dtype == np.bool_:
        i = convert(i, np.dtype(np.int32))
    if get_aval(i).dtype not in dtypes.integer_dtypes:
        raise ValueError("take: indices must have an integer type, got "
                         f"{dtypes.name(get_aval(i).dtype)}; jnp.asarray(indices, int) has one")
    x, axis = along(x, axis)
    rank = get_aval(x).ndim
    n = get_aval(x).shape[axis]
    if n == 0 and get_aval(i).size:
        raise IndexError("Cannot do a non-empty jnp.take() from an empty axis: index is out of "
                         f"bounds for axis {axis} with size 0")
    wrap = mode != "clip"
    if mode == "raise":
        raise NotImplementedError("The 'raise' mode to jnp.take is not supported.")
    if mode == "wrap":
        i = jnp.remainder(roomy(i), n)
        mode = "promise_in_bounds"
    elif mode not in (None, "fill", "clip"):
        raise ValueError(f"Invalid mode '{mode}' for np.take. The modes are 'fill', 'clip' and "
                         "'wrap'.")
    options = _options("fill" if mode is None else mode, fill_value, indices_are_sorted,
                       unique_indices, wrap)
    pattern = (FULL,) * axis + (ARRAY,) + (FULL,) * (rank - axis - 1)
    return read(x, pattern, (i,), options)


def _aligned(name: str, arr: ArrayLike, indices: ArrayLike, axis: int | None
            ) -> tuple[Any, Any, int]:
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
        raise ValueError(
            f"indices and arr must have the same number of dimensions; {get_aval(i).ndim} vs. "
            f"{rank}. {name} arguments 'arr' and 'indices' must have same ndim.")
    return x, i, canonical_axis(axis, rank)


def _aligned_index(x: ArrayLike, i: Any, axis: int) -> tuple[Any, ...]:
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
                raise ValueError(f"Incompatible shapes for broadcasting: shapes={[shape, own]}")
            index.append(ops.reshape(ops.iota(np.int32, n), size) if type(n) is not int else
                         np.arange(n, dtype=np.int32).reshape(size))
    return tuple(index)


@op_jit(static_argnames=("axis", "mode", "fill_value", "wrap_negative_indices"))
def take_along_axis(arr: ArrayLike, indices: ArrayLike, axis: int | None = -1,
                    mode: str | GatherScatterMode | None = None,
                    fill_value: ArrayLike | None = None, *,
                    wrap_negative_indices: bool = True) -> Array:
    """Elements of `arr` along an axis, at indices that each row has its own of.

    Args:
      arr: array; without `axis`, it is flattened first.
      indices: integers of the same rank; the other axes broadcast against those of `arr`.
      mode, fill_value: for indices out of bounds, as in `x.at[i].get`; "fill" by default.
      axis: the axis; None takes from the flattened array.
      wrap_negative_indices: whether negative indices count from the end; they are out of range
        otherwise.

    Returns:
      An array of the dtype of `arr`, of the shape of `indices`, but that other axes than `axis` are
      broadcast with those of `arr`.

    Raises:
      TypeError: `indices` are no integers.
      ValueError: the ranks differ.

    >>> import pyjx as jax
    >>> x = jax.numpy.array([[3, 1, 2], [6, 5, 4]])
    >>> jax.numpy.take_along_axis(x, jax.numpy.array([[1], [2]]), 1).tolist()
    [[1], [4]]
    """
    x, i, axis = _aligned("take_along_axis", arr, indices, axis)
    options = _options("fill" if mode is None else mode, fill_value, False, False, True)
    shape, own = get_aval(x).shape, get_aval(i).shape
    window, batch, sizes = [], [], [1] * len(own)
    for d, (n, m) in enumerate(zip(shape, own, strict=True)):
        if d == axis:
            continue
        if m == 1:  # the same index for all of the axis
            window.append(d)
            sizes[d] = n
        elif n == m:
            batch.append(d)
        elif n != 1:
            raise ValueError(f"Incompatible shapes for broadcasting: shapes={[shape, own]}. "
                             f"take_along_axis: indices must be of the size {n} that arr has along "
                             f"axis {d}, or 1, got {m}; along axis {axis} it may have any.")
    if shape[axis] == 0 and 0 not in own:
        raise IndexError(f"index is out of bounds for axis {axis} with size 0")
    if 0 in own:
        return ops.full_like(
            x, 0, shape=tuple([shape[d] if d in window else m for d, m in enumerate(own)]))
    if wrap_negative_indices:
        i = wrapped(i, shape[axis], index_dtype([i], shape), True)
    kept = [d for d in range(len(own)) if d not in window]
    numbers = ops.GatherDimensionNumbers(
        offset_dims=tuple(window), start_index_map=(axis,),
        collapsed_slice_dims=tuple([d for d in range(len(own)) if d not in (*window, *batch)]),
        operand_batching_dims=tuple(batch),
        start_indices_batching_dims=tuple([kept.index(d) for d in batch]))
    return ops.gather(x, ops.reshape(i, (*[own[d] for d in kept], 1)), numbers, sizes,
                      mode=options.mode, fill_value=options.fill_value)


def put_along_axis(arr: ArrayLike, indices: ArrayLike, values: Any, axis: int | None,
                   inplace: bool = True, *, mode: str | GatherScatterMode | None = None) -> Array:
    """The array with `values` at the indices along an axis; see `take_along_axis`.

    Args:
      arr: an array.
      indices: an array of integers with as many axes.
      values: what is put there, which broadcasts to the shape of `indices`.
      axis: the axis; None flattens the array.
      inplace: must be False: arrays do not change.
      mode: for indices out of range, as for `x.at[index].set`: "drop", "clip" or "fill".

    Returns:
      A new array: the argument stays as it is, unlike with NumPy.

    Raises:
      ValueError: `inplace` is true, which immutable arrays cannot be.

    >>> import pyjx as jax
    >>> x, i = jax.numpy.zeros((2, 2)), jax.numpy.array([[0], [1]])
    >>> jax.numpy.put_along_axis(x, i, 5.0, axis=1, inplace=False).tolist()
    [[5.0, 0.0], [0.0, 5.0]]
    """
    if inplace:
        refuse_in_place("put_along_axis")
    check_arraylike("put_along_axis", values)
    shape = get_aval(as_operand(arr)).shape
    x, i, axis = _aligned("put_along_axis", arr, indices, axis)
    x = jnp.asarray(x)
    own, wanted = np.shape(values), get_aval(i).shape
    if len(own) > len(wanted) or any(
            n not in (1, m) for n, m in zip(own[::-1], wanted[::-1], strict=False)):
        raise ValueError("put_along_axis argument 'values' must be broadcastable to 'indices'. Got "
                         f"values.shape={own} and indices.shape={wanted}.")
    update: Any = IndexUpdateRef(x, _aligned_index(x, i, axis))
    out = update.set(values, mode=mode)
    return ops.reshape(out, shape)
