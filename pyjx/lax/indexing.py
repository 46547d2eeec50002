"""Gather: slices at an array of positions; and its transpose, which adds to these slices.

The operation is that of the StableHLO specification: each vector along the last axis of the
indices is where a window of the operand starts, `start_index_map` says along which axes; the
windows' axes become the `offset_dims` of the result, without those that are collapsed or batched.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from pyjx.core import dtypes
from pyjx.core.arithmetic import FIRST, FIRST_AND_THIRD, Runs, scale
from pyjx.core.arithmetic import size as n_elements
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import ShapedArray, cotangent_aval, get_aval, is_valid_value
from pyjx.core.bounded import kept
from pyjx.core.explicit import Entries, entries_of, one_entry
from pyjx.core.integers import as_bool, as_ints, as_shape
from pyjx.core.jaxpr import Jaxpr, JaxprEqn
from pyjx.core.primitive import ANY_WAY_IF_SMALL, Primitive, Unrolled, find_primitive, register
from pyjx.core.records import Record
from pyjx.core.scalars import is_minus_zero
from pyjx.core.specs import spec_to_give
from pyjx.core.trace import trace_to_jaxpr
from pyjx.core.value_texts import shortened
from pyjx.engine.axes import at_front, batch_along, moveaxis
from pyjx.engine.tangents import Zero, full_aval, instantiate, is_undefined_primal
from pyjx.engine.types import Dims, Operand, Params, Rule, Tangent, Tangents, Value, Values
from pyjx.errors import ShardingTypeError
from pyjx.jaxlib_api import SMALL_CALLS
from pyjx.lax.common import check_same_dtypes
from pyjx.lax.common import operand as _operand
from pyjx.lax.elementwise import add, neg, sub
from pyjx.lax.joining import slice_in_dim

Axes = tuple[int, ...]


class GatherDimensionNumbers(Record):
    """How the axes of a gather's operand, indices and result belong together.

    Attributes:
      offset_dims: the axes of the result that are axes of the windows, in increasing order.
      collapsed_slice_dims: the axes of the operand, of window size 1, that the result leaves out.
      start_index_map: for each component of an index vector the operand's axis it counts along.
      operand_batching_dims: axes of the operand along which each batch of indices has its own part.
      start_indices_batching_dims: the axes of the indices that belong to these.
    """

    offset_dims: Axes
    collapsed_slice_dims: Axes
    start_index_map: Axes
    operand_batching_dims: Axes = ()
    start_indices_batching_dims: Axes = ()


class GatherScatterMode(enum.Enum):
    """What happens to a window that is not inside the operand.

    CLIP: it is moved until it is. FILL_OR_DROP: gather gives a fill value, scatter does nothing.
    PROMISE_IN_BOUNDS: the caller says that there is none; what else happens is not defined.
    ONE_HOT: as FILL_OR_DROP, and gather gives zeros.
    """

    CLIP = enum.auto()
    FILL_OR_DROP = enum.auto()
    PROMISE_IN_BOUNDS = enum.auto()
    ONE_HOT = enum.auto()

    @staticmethod
    def from_any(s: str | GatherScatterMode | None) -> GatherScatterMode:
        """The mode of this name; None stands for FILL_OR_DROP.

        Raises:
          ValueError: there is no such mode.

        >>> import pyjx as jax
        >>> jax.lax.GatherScatterMode.from_any("clip")
        <GatherScatterMode.CLIP: 1>
        """
        if isinstance(s, GatherScatterMode):
            return s
        mode = _MODES.get(s) if s is None or isinstance(s, str) else None
        if mode is None:
            names = ", ".join([repr(name) for name in _MODES if name])
            raise ValueError(f'Unknown gather mode "{s}". The modes are {names}.')
        return mode


_MODES = {
    None: GatherScatterMode.FILL_OR_DROP, "clip": GatherScatterMode.CLIP,
    "fill": GatherScatterMode.FILL_OR_DROP, "drop": GatherScatterMode.FILL_OR_DROP,
    "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
    "one_hot": GatherScatterMode.ONE_HOT,
}


# -- what gather and scatter check -----------------------------------------------------------------


def check_axes(op: str, name: str, axes: Axes, bound: int, increasing: bool = True) -> None:
    """Raise TypeError unless the axes are distinct, in [0, bound) and, if asked, increasing."""
    if increasing and list(axes) != sorted(axes):
        raise TypeError(f"{name} in {op} op must be sorted; got {axes}")
    for a in axes:
        if not 0 <= a < bound:
            raise TypeError(
                f"Invalid {name} set in {op} op; valid range is [0, {bound}); got: {a}.")
    if len(set(axes)) != len(axes):
        raise TypeError(f"{name} in {op} op must not repeat; got: {axes}.")


def check_disjoint(op: str, name: str, axes: Axes, other_name: str, other: Axes) -> None:
    if not set(axes).isdisjoint(other):
        raise TypeError(
            f"{name} and {other_name} in {op} op must be disjoint; got: {axes} and {other}.")


def check_numbers(function: str, dnums: Any) -> None:
    """Raise TypeError unless each field of the dimension numbers holds integers."""
    for name, axes in zip(dnums._fields, dnums, strict=True):
        as_ints(function, f"dimension_numbers.{name}", axes)


def check_indices(op: str, indices: ShapedArray) -> None:
    if not dtypes.issubdtype(indices.dtype, np.integer):
        raise ValueError(f"{op}: indices must have an integer type, got {indices.str_short()}")
    if indices.ndim == 0:
        raise TypeError(f"{op} index leaf dimension must be within [0, rank(indices) + 1). "
                        f"rank(indices) is 0 and {op.lower()} index leaf dimension is -1.")


def check_index_map(op: str, name: str, title: str, axes: Axes, x: ShapedArray,
                    indices: ShapedArray) -> None:
    """Check the axes of the operand that the components of an index vector count along.

    `name` is that of the parameter, and `title` what the error of a wrong axis calls it.
    """
    if len(axes) != indices.shape[-1]:
        raise TypeError(f"{op} op has {len(axes)} elements in {name} and the bound of dimension "
                        f"index_vector_dim={indices.ndim - 1} of indices is {indices.shape[-1]}. "
                        "These two numbers must be equal.")
    for i, a in enumerate(axes):
        if not 0 <= a < x.ndim:
            raise TypeError(f"{op} op: Invalid {title}; domain is [0, {x.ndim}), got: {i}->{a}.")
    if len(set(axes)) != len(axes):
        raise TypeError(f"{name} in {op.lower()} op must not repeat; got: {axes}.")


def check_batching(op: str, x: ShapedArray, operand_dims: Axes, indices: ShapedArray,
                   name: str, indices_dims: Axes) -> None:
    """Check the axes along which operand and indices are batched together."""
    if len(operand_dims) != len(indices_dims):
        raise TypeError(f"{op} op requires equal numbers of operand_batching_dims and {name}, got "
                        f"{operand_dims} and {indices_dims}.")
    check_axes(op.lower(), "operand_batching_dims", operand_dims, x.ndim)
    check_axes(op.lower(), name, indices_dims, indices.ndim - 1, increasing=False)
    sizes = tuple([x.shape[a] for a in operand_dims])
    indices_sizes = tuple([indices.shape[a] for a in indices_dims])
    if sizes != indices_sizes:
        raise TypeError(f"{op} op requires operand batching dimensions and indices batching "
                        f"dimensions to have the same shape, got {sizes} and {indices_sizes}.")


def as_mode(function: str, mode: Any) -> GatherScatterMode:
    """`GatherScatterMode.from_any`; the error names the function."""
    try:
        return GatherScatterMode.from_any(mode)
    except ValueError as error:
        raise ValueError(f"{function}: {error}") from None


def with_tuples(function: str, kind: type, dnums: Any) -> Any:
    """Dimension numbers that can be hashed, whatever sequences they were made with."""
    if not isinstance(dnums, tuple) or len(dnums) != len(kind._fields):  # type: ignore
        raise TypeError(f"{function}: dimension_numbers must be {kind.__name__}, got {dnums!r}")
    if all(type(f) is tuple for f in dnums):
        return dnums
    return kind(*[as_ints(function, f"dimension_numbers.{name}", f)
                  for name, f in zip(kind._fields, dnums, strict=True)])  # type: ignore


def shifted(axes: Axes) -> Axes:
    """The same axes after one more came in front."""
    return tuple([a + 1 for a in axes])


# -- gather ----------------------------------------------------------------------------------------


def _gather_shape(x: ShapedArray, indices: ShapedArray, *,
                  dimension_numbers: GatherDimensionNumbers, slice_sizes: Axes, **_: Any
                  ) -> ShapedArray:
    check_numbers("gather", dimension_numbers)
    offset_dims, collapsed, index_map, batching, indices_batching = dimension_numbers
    check_indices("Gather", indices)
    rank = len(offset_dims) + indices.ndim - 1
    if list(offset_dims) != sorted(offset_dims):
        raise TypeError(f"offset_dims in gather op must be sorted; got {offset_dims}")
    if len(set(offset_dims)) != len(offset_dims):
        raise TypeError(f"offset_dims in gather op must not repeat; got: {offset_dims}.")
    for i, a in enumerate(offset_dims):
        if not 0 <= a < rank:
            raise TypeError(f"Offset dimension {i} in gather op is out of bounds; got {a}, "
                            f"but should have been in [0, {rank})")
    check_index_map("Gather", "start_index_map", "start_index_map", index_map, x, indices)
    check_axes("gather", "collapsed_slice_dims", collapsed, x.ndim)
    check_disjoint("gather", "collapsed_slice_dims", collapsed, "operand_batching_dims", batching)
    check_disjoint("gather", "start_index_map", index_map, "operand_batching_dims", batching)
    check_batching("Gather", x, batching, indices, "start_indices_batching_dims", indices_batching)
    _check_slice_sizes(x, slice_sizes, collapsed, batching)
    left_out = {*collapsed, *batching}
    window = [n for i, n in enumerate(slice_sizes) if i not in left_out]
    if len(window) != len(offset_dims):
        raise TypeError("All components of the offset index in a gather op must either be a offset "
                        "dimension or explicitly collapsed/batching; got "
                        f"len(slice_sizes)={len(slice_sizes)}, output_slice_sizes={offset_dims}, "
                        f"collapsed_slice_dims={collapsed}, operand_batching_dims={batching}.")
    windows, batch = iter(window), iter(indices.shape[:-1])
    shape = tuple([next(windows) if i in offset_dims else next(batch) for i in range(rank)])
    return x.update(shape=shape)


def _check_slice_sizes(x: ShapedArray, slice_sizes: Axes, collapsed: Axes, batching: Axes) -> None:
    if len(slice_sizes) != x.ndim:
        raise TypeError("Gather op must have one slice size for every input dimension; got: "
                        f"len(slice_sizes)={len(slice_sizes)}, input_shape.rank={x.ndim}")
    for i, (size, n) in enumerate(zip(slice_sizes, x.shape, strict=True)):
        if not 0 <= size <= n:
            raise TypeError(f"Slice size at index {i} in gather op is out of range, must be "
                            f"within [0, {n} + 1), got {size}.")
    for what, axes in (("collapse", collapsed), ("batch", batching)):
        for i, a in enumerate(axes):
            if slice_sizes[a] != 1:
                raise TypeError(f"Gather op can only {what} slice dims with bound 1, but bound is "
                                f"{slice_sizes[a]} for index {a} at position {i}.")


def _gather_jvp(primals: Values, tangents: Tangents, **params: Any) -> tuple[Value, Tangent]:
    out = gather_p.bind(*primals, **params)
    g = tangents[0]
    if params["mode"] is GatherScatterMode.FILL_OR_DROP:
        params["fill_value"] = 0
    return out, gather_p.bind(g, primals[1], **params)


def _gather_transpose(ct: Value, x: Operand, indices: Operand, **params: Any) -> Sequence[Any]:
    zeros = full_aval(cotangent_aval(x.aval).update(dtype=get_aval(ct).dtype, weak_type=False), 0)
    return _gather_accumulate((zeros, None), ct, x, indices, **params)


def _gather_accumulate(totals: Sequence[Any], ct: Value, x: Operand, indices: Operand, *,
                       dimension_numbers: GatherDimensionNumbers, slice_sizes: Axes,
                       fill_value: ArrayLike, **promises: Any) -> Sequence[Any]:
    numbers = ScatterDimensionNumbers(*dimension_numbers)
    return scatter_add(totals[0], indices, ct, numbers, **promises), None


def _gather_batch(operands: Values, dims: Dims, *, dimension_numbers: GatherDimensionNumbers,
                  slice_sizes: Axes, **params: Any) -> tuple[Value, int | None]:
    (x, indices), (d, d_indices) = operands, dims
    offset_dims, collapsed, index_map, batching, indices_batching = dimension_numbers
    if d is not None:
        x = moveaxis(x, d, 0)
        size = get_aval(x).shape[0]
        collapsed, index_map, batching = shifted(collapsed), shifted(index_map), shifted(batching)
    if d_indices is not None:
        indices = moveaxis(indices, d_indices, 0)
        indices_batching = shifted(indices_batching)
    offset_dims = shifted(offset_dims)
    if d_indices is None:  # the batch axis is one more axis of the windows
        offset_dims = (0, *offset_dims)
        slice_sizes = (size, *slice_sizes)
    elif d is not None:
        if size == 0:
            return _no_examples(x, indices, dimension_numbers, slice_sizes), 0
        batching, indices_batching = (0, *batching), (0, *indices_batching)
        slice_sizes = (1, *slice_sizes)
    return gather_p.bind(
        x, indices, dimension_numbers=GatherDimensionNumbers(
            offset_dims, collapsed, index_map, batching, indices_batching
        ), slice_sizes=slice_sizes, **params,
    ), 0


def _no_examples(x: Value, indices: Value, dnums: GatherDimensionNumbers, slice_sizes: Axes
                 ) -> Array:
    one = [ShapedArray(a.shape[1:], a.dtype) for a in (get_aval(x), get_aval(indices))]
    out = _gather_shape(*one, dimension_numbers=dnums, slice_sizes=slice_sizes)
    return full_aval(out.update(shape=(0, *out.shape)), 0)


def _gather_sharding(out: ShapedArray, x: ShapedArray, indices: ShapedArray, *,
                     dimension_numbers: GatherDimensionNumbers, slice_sizes: Axes, **params: Any
                     ) -> Entries:
    """Axes of the operand that are taken whole stay cut as they are, and so do axes that operand
    and indices go along together."""
    dn = dimension_numbers
    given, places = entries_of(x), entries_of(indices)
    entries: list[Any] = [None] * out.ndim
    cut = " and ".join([name for name, of in (("operand", given), ("indices", places)) if any(of)])
    message = (
        "Use `.at[...].get(out_sharding=)` to provide output PartitionSpec for the gather "
        "indexing as out sharding could not be resolved unambiguously (or would require "
        f"collectives on inputs). Got operand={x!r}, indices={indices!r}. Give it as "
        f"{spec_to_give()}, or call jax.reshard on the {cut} before.")
    batch = [i for i in range(out.ndim) if i not in dn.offset_dims]
    clear = all([e is None or i in dn.start_indices_batching_dims for i, e in enumerate(places)])
    taken = iter(dn.offset_dims)
    for i, entry in enumerate(given):
        if i in dn.operand_batching_dims:
            j = dn.start_indices_batching_dims[dn.operand_batching_dims.index(i)]
            entries[batch[j]] = one_entry((entry, places[j]), message)
        elif i in dn.collapsed_slice_dims:
            clear = clear and entry is None
        else:
            entries[next(taken)] = entry
            clear = clear and (entry is None or slice_sizes[i] == x.shape[i])
    if not clear:
        raise ShardingTypeError(message)
    return tuple(entries)


gather_p = register(Primitive(
    "gather", moves=True, compiled=ANY_WAY_IF_SMALL, rearranges=True, shape_rule=_gather_shape,
    sharding_rule=_gather_sharding, jvp=_gather_jvp,
    transpose=_gather_transpose, accumulate=_gather_accumulate, batch=_gather_batch, linear=FIRST,
    asked=True,
))


def gather(operand: ArrayLike, start_indices: ArrayLike, dimension_numbers: GatherDimensionNumbers,
           slice_sizes: Sequence[int], *, unique_indices: bool = False,
           indices_are_sorted: bool = False, mode: str | GatherScatterMode | None = None,
           fill_value: ArrayLike | None = None) -> Array:
    """Slices of the operand at an array of positions.

    Indexing an array in NumPy's way is simpler, and uses this operation where it is needed.

    Args:
      operand: an array.
      start_indices: an array of integers; each vector along its last axis is a position.
      dimension_numbers: how the axes of operand, indices and result belong together.
      slice_sizes: the shape of a slice.
      unique_indices: the caller says that no two slices overlap.
      indices_are_sorted: the caller says that the positions are in order.
      mode: `clip`, `fill`, `promise_in_bounds` (the default) or `one_hot`: see `GatherScatterMode`.
      fill_value: what slices that are not inside the operand consist of, if the mode is `fill`. By
        default nan, the least integer, for unsigned dtypes the greatest, and True.

    Raises:
      TypeError: the shapes, dimension numbers and slice sizes do not go together.
      ValueError: the indices are not integers, or there is no such mode.

    >>> import pyjx as jax
    >>> lax, jnp = jax.lax, jax.numpy
    >>> dnums = lax.GatherDimensionNumbers(
    ...     offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
    >>> lax.gather(jnp.arange(6).reshape(3, 2), jnp.array([[2], [0]]), dnums, (1, 2)).tolist()
    [[4, 5], [0, 1]]
    """
    mode = GatherScatterMode.PROMISE_IN_BOUNDS if mode is None else as_mode("gather", mode)
    if mode is not GatherScatterMode.FILL_OR_DROP:
        fill_value = None
    elif fill_value is not None and not isinstance(fill_value, (int, float, complex, np.number)):
        if not is_valid_value(fill_value):
            raise TypeError(f"gather: fill_value must be a scalar, got {shortened(fill_value)}")
        aval = get_aval(fill_value)
        if aval.shape:
            raise TypeError(f"gather: fill_value must be a scalar, got shape {aval.shape}")
        fill_value = np.asarray(fill_value)[()]
    if is_minus_zero(fill_value):
        fill_value = np.asarray(fill_value)  # as == takes it for another zero, it is no key
    return gather_p.bind(
        _operand("gather", operand), _operand("gather", start_indices, 1),
        dimension_numbers=with_tuples("gather", GatherDimensionNumbers, dimension_numbers),
        slice_sizes=as_shape("gather", "slice_sizes", slice_sizes),
        unique_indices=bool(unique_indices), indices_are_sorted=bool(indices_are_sorted),
        mode=mode, fill_value=fill_value,
    )


# -- scatter ---------------------------------------------------------------------------------------


class ScatterDimensionNumbers(Record):
    """How the axes of a scatter's operand, indices and updates belong together.

    Attributes:
      update_window_dims: the axes of the updates that are axes of the windows, increasing.
      inserted_window_dims: the axes of the operand, of window size 1, that the updates leave out.
      scatter_dims_to_operand_dims: for each component of an index vector the operand's axis that it
        counts along.
      operand_batching_dims: axes of the operand along which each batch of indices has its own part.
      scatter_indices_batching_dims: the axes of the indices that belong to these.
    """

    update_window_dims: Axes
    inserted_window_dims: Axes
    scatter_dims_to_operand_dims: Axes
    operand_batching_dims: Axes = ()
    scatter_indices_batching_dims: Axes = ()


def _window(x: ShapedArray, updates_shape: tuple[int, ...], dnums: ScatterDimensionNumbers
            ) -> tuple[int, ...]:
    """The shape of a window of the operand."""
    sizes = iter([updates_shape[a] for a in dnums.update_window_dims])
    left_out = {*dnums.inserted_window_dims, *dnums.operand_batching_dims}
    return tuple([1 if i in left_out else next(sizes) for i in range(x.ndim)])


def positions(updates_shape: tuple[int, ...], dnums: ScatterDimensionNumbers) -> list[int]:
    """The axes of the updates that are not axes of the windows."""
    return [i for i in range(len(updates_shape)) if i not in dnums.update_window_dims]


def _scatter_shape(name: str) -> Callable[..., ShapedArray]:
    def shape_rule(x: ShapedArray, indices: ShapedArray, updates: ShapedArray, *,
                   dimension_numbers: ScatterDimensionNumbers, **_: Any) -> ShapedArray:
        check_numbers(name, dimension_numbers)
        window_dims, inserted, index_map, batching, indices_batching = dimension_numbers
        check_indices("Scatter", indices)
        check_same_dtypes(name, x, updates)
        rank = len(window_dims) + indices.ndim - 1
        if updates.ndim != rank:
            raise TypeError(f"{name}: Updates tensor must be of rank {rank}; got {updates.ndim}.")
        check_axes("scatter", "update_window_dims", window_dims, updates.ndim)
        check_axes("scatter", "inserted_window_dims", inserted, x.ndim)
        check_disjoint("scatter", "inserted_window_dims", inserted,
                       "operand_batching_dims", batching)
        check_batching("Scatter", x, batching, indices, "scatter_indices_batching_dims",
                       indices_batching)
        size = len(window_dims) + len(inserted) + len(batching)
        if size != x.ndim:
            raise TypeError(
                f"Scatter op has window of size {size}; doesn't match operand of rank {x.ndim}.")
        check_index_map("Scatter", "scatter_dims_to_operand_dims",
                        "scatter_dims_to_operand_dims mapping", index_map, x, indices)
        check_disjoint("scatter", "scatter_dims_to_operand_dims", index_map,
                       "operand_batching_dims", batching)
        _check_sizes(name, x, indices, updates, dimension_numbers)
        return x

    return shape_rule


def _check_sizes(name: str, x: ShapedArray, indices: ShapedArray, updates: ShapedArray,
                 dnums: ScatterDimensionNumbers) -> None:
    left_out = {*dnums.inserted_window_dims, *dnums.operand_batching_dims}
    bounds = [n for i, n in enumerate(x.shape) if i not in left_out]
    for a, bound in zip(dnums.update_window_dims, bounds, strict=True):
        if updates.shape[a] > bound:
            raise TypeError(f"{name}: Bounds of the window dimensions of updates must not exceed "
                            "the bounds of the corresponding dimensions of operand. For dimension "
                            f"{a}, updates bound is {updates.shape[a]}, operand bound is {bound}.")
    for i, a in enumerate(positions(updates.shape, dnums)):
        if updates.shape[a] != indices.shape[i]:
            raise TypeError(
                f"{name}: Bounds of the scatter dimensions of updates must be the same as the "
                "bounds of the corresponding dimensions of scatter indices. For scatter dimension "
                f"{a}, updates bound is {updates.shape[a]}, indices bound is {indices.shape[i]}.")


def _scatter_batch(primitive: Primitive) -> Rule:
    def batch(operands: Values, dims: Dims, *, dimension_numbers: ScatterDimensionNumbers,
              **params: Any) -> tuple[Value, int | None]:
        (x, indices, updates), (d, d_indices, d_updates) = operands, dims
        window_dims, inserted, index_map, batching, indices_batching = dimension_numbers
        along = batch_along(operands, dims)
        x, updates = at_front(x, d, along), at_front(updates, d_updates, along)
        if along.size == 0:
            return x, 0
        window_dims, batching = shifted(window_dims), shifted(batching)
        if d_indices is None:  # the batch axis is one more axis of the windows
            window_dims = (0, *window_dims)
        else:
            indices = at_front(indices, d_indices, along)
            batching, indices_batching = (0, *batching), (0, *shifted(indices_batching))
        dnums = ScatterDimensionNumbers(window_dims, shifted(inserted), shifted(index_map),
                                        batching, indices_batching)
        return primitive.bind(x, indices, updates, dimension_numbers=dnums, **params), 0

    return batch


def gathered(x: Value, indices: Value, updates_shape: tuple[int, ...], params: Params) -> Array:
    """The windows of `x` that a scatter with these parameters writes; zeros for those it drops."""
    dnums = params["dimension_numbers"]
    return gather(
        x, indices, GatherDimensionNumbers(*dnums), _window(get_aval(x), updates_shape, dnums),
        unique_indices=params["unique_indices"], indices_are_sorted=params["indices_are_sorted"],
        mode=params["mode"], fill_value=0,
    )


def scatter_as(scatter: Callable[..., Any], x: Value, indices: Value, updates: Value, params: Params
          ) -> Array:
    """Another scatter with the same parameters."""
    return scatter(x, indices, updates, params["dimension_numbers"], mode=params["mode"],
                   indices_are_sorted=params["indices_are_sorted"],
                   unique_indices=params["unique_indices"])


def aval_of(x: Array) -> ShapedArray:
    return x.aval if is_undefined_primal(x) else get_aval(x)


def _sum_jvp(primitive: Primitive) -> Rule:
    """scatter-add and scatter-sub are linear in operand and updates together."""

    def jvp(primals: Values, tangents: Tangents, **params: Any) -> tuple[Value, Tangent]:
        out = primitive.bind(*primals, **params)
        g, _, g_updates = tangents
        if type(g_updates) is Zero:
            return out, g
        return out, primitive.bind(instantiate(g), primals[1], g_updates, **params)

    return jvp


def _sum_transpose(sign: Callable[[Any], Any]) -> Rule:
    def transpose(ct: Value, x: Operand, indices: Operand, updates: Operand, **params: Any
                  ) -> Sequence[Any]:
        ct_updates = None
        if is_undefined_primal(updates):
            ct_updates = sign(gathered(ct, indices, updates.aval.shape, params))
        return ct if is_undefined_primal(x) else None, None, ct_updates

    return transpose


def _scatter_sharding(out: ShapedArray, x: ShapedArray, indices: ShapedArray, updates: ShapedArray,
                      *, dimension_numbers: ScatterDimensionNumbers, **params: Any) -> Entries:
    """The operand stays cut along axes that are written whole; those that it goes along together
    with indices and updates are cut like any of them; the updates are cut likewise, or not."""
    dn = dimension_numbers
    message = (
        "Use `.at[...].set/add/mul/...(out_sharding=)` to provide output PartitionSpec for the "
        "scatter update as out sharding could not be resolved unambiguously (or would require "
        f"collectives on inputs). Got operand={x!r}, indices={indices!r}, updates={updates!r}. "
        f"Give it as {spec_to_give()}, or call jax.reshard on what is cut before.")
    entries: list[Any] = []
    given, places, written = entries_of(x), entries_of(indices), entries_of(updates)
    allowed: list[Any] = [None] * updates.ndim
    batch = [i for i in range(updates.ndim) if i not in dn.update_window_dims]
    clear = all([e is None or i in dn.scatter_indices_batching_dims for i, e in enumerate(places)])
    window = iter(dn.update_window_dims)
    for i, entry in enumerate(given):
        if i in dn.operand_batching_dims:
            j = dn.scatter_indices_batching_dims[dn.operand_batching_dims.index(i)]
            entry = one_entry((entry, places[j], written[batch[j]]), message)
            allowed[batch[j]] = entry
        elif i in dn.inserted_window_dims:
            clear = clear and entry is None
        else:
            j = next(window)
            allowed[j] = entry
            clear = clear and (entry is None or updates.shape[j] == x.shape[i])
        entries.append(entry)
    if not clear or any([e not in (None, a) for e, a in zip(written, allowed, strict=True)]):
        raise ShardingTypeError(message)
    return tuple(entries)


def _applied(eqn: JaxprEqn) -> list[Runs]:
    """The function of `scatter_apply`, which runs for each element that is updated; of a scatter
    that only moves values, nothing."""
    program = eqn.params["update_jaxpr"]
    return [] if program is None else [Runs(program, n_elements(eqn.invars[2]))]


def scatter_primitive(name: str, function: str, *, moves: bool = False, **rules: Any) -> Primitive:
    """A scatter; with `moves` one whose updates take the place of what is there."""
    p = register(Primitive(
        name, moves=moves, in_place=True, compiled=ANY_WAY_IF_SMALL,
        shape_rule=_scatter_shape(function),
        sharding_rule=_scatter_sharding,
        arithmetic=_applied if moves else lambda eqn: (
            n_elements(eqn.invars[2]) * scale(eqn.invars[2]), 0.0), asked=True,
        unrolled=Unrolled(_are_few, partial(_one_by_one, name)),
        **rules))
    return p.define(batch=_scatter_batch(p))


# Positions in a loop that is one kernel, and in another, and elements of the table. A scatter takes
# 42 ns, and one more for each position; an update of a slice one, or 20 where each is a kernel.
# Where no kernel has barriers, a table that the updates are made of is copied for each of them.
_FEW, _FEWER, _MOST = (32, 4, math.inf) if SMALL_CALLS else (8, 4, 1024)


def _are_few(eqn: JaxprEqn, repeated: int) -> bool:
    """Whether a loop scatters to a few positions. XLA makes an update of a slice of a scatter to
    one, but no kernel of a loop with one to several."""
    (x, _, updates), dnums = [v.aval for v in eqn.invars], eqn.params["dimension_numbers"]
    if not repeated or dnums.operand_batching_dims or not all([
            type(n) is int for n in (*x.shape, *updates.shape)]):
        return False
    count = math.prod([updates.shape[a] for a in positions(updates.shape, dnums)])
    return (1 < count <= (_FEW if repeated > 1 else _FEWER) and x.size <= _MOST
            and updates.size <= 2 * _FEW)  # of which long rows are made anew for each


def _one_by_one(name: str, x: Value, indices: Value, updates: Value, **params: Any) -> Value:
    """In the order of the positions, as a scatter does it."""
    scatter, shape = find_primitive(name), get_aval(updates).shape
    axes = positions(shape, params["dimension_numbers"])
    for place in np.ndindex(*[shape[a] for a in axes]):
        one = indices
        for axis, i in enumerate(place):
            one = slice_in_dim(one, i, i + 1, axis=axis)
        update = updates
        for axis, i in zip(axes, place, strict=True):
            update = slice_in_dim(update, i, i + 1, axis=axis)
        x = scatter.bind(x, one, update, **params)
    return x


scatter_add_p = scatter_primitive("scatter-add", "scatter_add", linear=FIRST_AND_THIRD,
                                  transpose=_sum_transpose(lambda ct: ct))
scatter_sub_p = scatter_primitive("scatter-sub", "scatter_sub", linear=FIRST_AND_THIRD,
                                  transpose=_sum_transpose(neg))
for _p in (scatter_add_p, scatter_sub_p):
    _p.define(jvp=_sum_jvp(_p))


@kept(256)
def _combiner(fun: Callable[..., Any], dtype: dtypes.DType) -> Jaxpr:
    """The jaxpr of how an update meets the value that is there."""
    scalar = ShapedArray((), dtype)
    return trace_to_jaxpr(lambda x, y: [fun(x, y)], (scalar, scalar)).jaxpr


def call_scatter(primitive: Primitive, combine: Callable[..., Any] | None, operand: Value,
                 indices: Value, updates: Value, dimension_numbers: ScatterDimensionNumbers,
                 indices_are_sorted: bool, unique_indices: bool, mode: Any) -> Array:
    """One of the public functions; `combine` says how an update meets the value that is there."""
    name = primitive.name
    operand = _operand(name, operand)
    return primitive.bind(
        operand, _operand(name, indices, 1), _operand(name, updates, 2),
        **scatter_params(name, dimension_numbers, indices_are_sorted, unique_indices, mode),
        update_jaxpr=None if combine is None else _combiner(combine, get_aval(operand).dtype),
        update_consts=(),
    )


def scatter_params(name: str, dimension_numbers: ScatterDimensionNumbers, indices_are_sorted: bool,
                   unique_indices: bool, mode: Any) -> Params:
    """Where the updates go that the function `name` is given."""
    return {
        "dimension_numbers": with_tuples(name, ScatterDimensionNumbers, dimension_numbers),
        "indices_are_sorted": as_bool(name, "indices_are_sorted", indices_are_sorted),
        "unique_indices": as_bool(name, "unique_indices", unique_indices),
        "mode": as_mode(name, mode)}


def scatter_add(operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike,
                dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
                unique_indices: bool = False, mode: str | GatherScatterMode | None = None) -> Array:
    """The operand with the updates added to its windows. Arguments and errors as for `scatter`.

    Args:
      operand: an array.
      scatter_indices: an array of integers; each vector along its last axis is a position.
      updates: for each position a window, of the operand's dtype. Where windows overlap, all count.
      dimension_numbers: how the axes of operand, indices and updates belong together, a
        `ScatterDimensionNumbers`.
      indices_are_sorted: the caller says that the positions are in order.
      unique_indices: the caller says that no two windows overlap.
      mode: what is done with windows that reach outside: "drop" (the default), "clip" or
        "promise_in_bounds".

    >>> import pyjx as jax
    >>> lax, jnp = jax.lax, jax.numpy
    >>> dnums = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_add(jnp.zeros(3), jnp.array([[2], [2]]), jnp.array([1., 2.]), dnums).tolist()
    [0.0, 0.0, 3.0]
    """
    return call_scatter(scatter_add_p, add, operand, scatter_indices, updates, dimension_numbers,
                        indices_are_sorted, unique_indices, mode)


def scatter_sub(operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike,
                dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
                unique_indices: bool = False, mode: str | GatherScatterMode | None = None) -> Array:
    """The operand with the updates taken from its windows. Arguments and errors as for `scatter`.

    Args:
      operand: an array.
      scatter_indices: an array of integers; each vector along its last axis is a position.
      updates: for each position a window, of the operand's dtype. Where windows overlap, all count.
      dimension_numbers: how the axes of operand, indices and updates belong together, a
        `ScatterDimensionNumbers`.
      indices_are_sorted: the caller says that the positions are in order.
      unique_indices: the caller says that no two windows overlap.
      mode: what is done with windows that reach outside: "drop" (the default), "clip" or
        "promise_in_bounds".

    >>> import pyjx as jax
    >>> lax, jnp = jax.lax, jax.numpy
    >>> dnums = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_sub(jnp.zeros(3), jnp.array([[2], [2]]), jnp.array([1., 2.]), dnums).tolist()
    [0.0, 0.0, -3.0]
    """
    return call_scatter(scatter_sub_p, sub, operand, scatter_indices, updates, dimension_numbers,
                        indices_are_sorted, unique_indices, mode)
