"""Gather: slices at an array of positions. Scatter, its counterpart, is in `scattering`.

The operation is that of the StableHLO specification: each vector along the last axis of the
indices is where a window of the operand starts, `start_index_map` says along which axes; the
windows' axes become the `offset_dims` of the result, without those that are collapsed or batched.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.explicit import Entries, entries_of, one_entry
from pyjx.core.integers import as_ints, as_shape
from pyjx.core.linearity import FIRST
from pyjx.core.open_sums import ShardingTypeError, cotangent_aval
from pyjx.core.primitive import Primitive, register
from pyjx.core.records import Record
from pyjx.engine.axes import moveaxis
from pyjx.engine.tangents import Zero, full_aval
from pyjx.engine.types import Dims, Operand, Tangent, Tangents, Value, Values
from pyjx.lax.nary import operand as _operand

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
                f"Invalid {name} set in {op} op; valid range is [0, {bound}); got: {a}."
            )
    if len(set(axes)) != len(axes):
        raise TypeError(f"{name} in {op} op must not repeat; got: {axes}.")


def check_disjoint(op: str, name: str, axes: Axes, other_name: str, other: Axes) -> None:
    if not set(axes).isdisjoint(other):
        raise TypeError(
            f"{name} and {other_name} in {op} op must be disjoint; got: {axes} and {other}."
        )


def check_numbers(function: str, dnums: Any) -> None:
    """Raise TypeError unless each field of the dimension numbers holds integers."""
    for name, axes in zip(dnums._fields, dnums, strict=True):
        as_ints(function, f"dimension_numbers.{name}", axes)


def check_indices(op: str, indices: ShapedArray) -> None:
    if not dtypes.issubdtype(indices.dtype, np.integer):
        raise ValueError(f"{op}: indices must have an integer type, got {indices.str_short()}")
    if indices.ndim == 0:
        raise TypeError(
            f"{op} index leaf dimension must be within [0, rank(indices) + 1). rank(indices) is 0 "
            f"and {op.lower()} index leaf dimension is -1."
        )


def check_index_map(op: str, name: str, title: str, axes: Axes, x: ShapedArray,
                    indices: ShapedArray) -> None:
    """Check the axes of the operand that the components of an index vector count along.

    `name` is that of the parameter, and `title` what the error of a wrong axis calls it.
    """
    if len(axes) != indices.shape[-1]:
        raise TypeError(
            f"{op} op has {len(axes)} elements in {name} and the bound of dimension "
            f"index_vector_dim={indices.ndim - 1} of indices is {indices.shape[-1]}. These two "
            "numbers must be equal."
        )
    for i, a in enumerate(axes):
        if not 0 <= a < x.ndim:
            raise TypeError(f"{op} op: Invalid {title}; domain is [0, {x.ndim}), got: {i}->{a}.")
    if len(set(axes)) != len(axes):
        raise TypeError(f"{name} in {op.lower()} op must not repeat; got: {axes}.")


def check_batching(op: str, x: ShapedArray, operand_dims: Axes, indices: ShapedArray,
                   name: str, indices_dims: Axes) -> None:
    """Check the axes along which operand and indices are batched together."""
    if len(operand_dims) != len(indices_dims):
        raise TypeError(
            f"{op} op requires equal numbers of operand_batching_dims and {name}, got "
            f"{operand_dims} and {indices_dims}."
        )
    check_axes(op.lower(), "operand_batching_dims", operand_dims, x.ndim)
    check_axes(op.lower(), name, indices_dims, indices.ndim - 1, increasing=False)
    sizes = tuple([x.shape[a] for a in operand_dims])
    indices_sizes = tuple([indices.shape[a] for a in indices_dims])
    if sizes != indices_sizes:
        raise TypeError(
            f"{op} op requires operand batching dimensions and indices batching dimensions to have "
            f"the same shape, got {sizes} and {indices_sizes}."
        )


def as_mode(function: str, mode: Any) -> GatherScatterMode:
    """`GatherScatterMode.from_any`; the error names the function."""
    try:
        return GatherScatterMode.from_any(mode)
    except ValueError as error:
        raise ValueError(f"{function}: {error}") from None


def with_tuples(function: str, kind: type, dnums: Any) -> Any:
    """Dimension numbers that can be hashed, whatever sequences they were made with."""
    if not isinstance(dnums, tuple) or len(dnums) != len(kind._fields):  # type: ignore
        raise TypeError(
            f"{function}: dimension_numbers must be {kind.__name__}, got {dnums!r}"
        )
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
        raise TypeError(
            "All components of the offset index in a gather op must either be a offset dimension "
            "or explicitly collapsed/batching; got "
            f"len(slice_sizes)={len(slice_sizes)}, output_slice_sizes={offset_dims}, "
            f"collapsed_slice_dims={collapsed}, operand_batching_dims={batching}."
        )
    windows, batch = iter(window), iter(indices.shape[:-1])
    shape = tuple([next(windows) if i in offset_dims else next(batch) for i in range(rank)])
    return x.update(shape=shape)


def _check_slice_sizes(x: ShapedArray, slice_sizes: Axes, collapsed: Axes, batching: Axes
                       ) -> None:
    if len(slice_sizes) != x.ndim:
        raise TypeError(
            "Gather op must have one slice size for every input dimension; got: "
            f"len(slice_sizes)={len(slice_sizes)}, input_shape.rank={x.ndim}"
        )
    for i, (size, n) in enumerate(zip(slice_sizes, x.shape, strict=True)):
        if not 0 <= size <= n:
            raise TypeError(f"Slice size at index {i} in gather op is out of range, must be "
                            f"within [0, {n} + 1), got {size}.")
    for what, axes in (("collapse", collapsed), ("batch", batching)):
        for i, a in enumerate(axes):
            if slice_sizes[a] != 1:
                raise TypeError(
                    f"Gather op can only {what} slice dims with bound 1, but bound is "
                    f"{slice_sizes[a]} for index {a} at position {i}."
                )


def _gather_jvp(primals: Values, tangents: Tangents, **params: Any) -> tuple[Value, Tangent]:
    out = gather_p.bind(*primals, **params)
    g = tangents[0]
    if type(g) is Zero:
        return out, Zero.of_primal(out)
    if params["mode"] is GatherScatterMode.FILL_OR_DROP:
        params["fill_value"] = 0
    return out, gather_p.bind(g, primals[1], **params)


def _gather_transpose(ct: Tangent, x: Operand, indices: Operand, *,
                      dimension_numbers: GatherDimensionNumbers, slice_sizes: Axes,
                      unique_indices: bool, indices_are_sorted: bool, mode: GatherScatterMode,
                      fill_value: ArrayLike) -> Tangents:
    zeros = full_aval(cotangent_aval(x.aval).update(dtype=get_aval(ct).dtype, weak_type=False), 0)
    return _gather_accumulate(
        (zeros, None), ct, x, indices, dimension_numbers=dimension_numbers,
        slice_sizes=slice_sizes, unique_indices=unique_indices,
        indices_are_sorted=indices_are_sorted, mode=mode, fill_value=fill_value)


def _gather_accumulate(totals: Tangents, ct: Tangent, x: Operand, indices: Operand, *,
                       dimension_numbers: GatherDimensionNumbers, slice_sizes: Axes,
                       unique_indices: bool, indices_are_sorted: bool, mode: GatherScatterMode,
                       fill_value: ArrayLike) -> Tangents:
    return lax.scatter_add(
        totals[0], indices, ct, lax.ScatterDimensionNumbers(*dimension_numbers),
        indices_are_sorted=indices_are_sorted, unique_indices=unique_indices, mode=mode,
    ), None


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
                 ) -> Value:
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
    message = (
        "Use `.at[...].get(out_sharding=)` to provide output PartitionSpec for the gather "
        "indexing as out sharding could not be resolved unambiguously (or would require "
        f"collectives on inputs). Got operand={x!r}, indices={indices!r}")
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
    "gather", moves=True, shape_rule=_gather_shape, sharding_rule=_gather_sharding, jvp=_gather_jvp,
    transpose=_gather_transpose, accumulate=_gather_accumulate, batch=_gather_batch, linear=FIRST,
    asked=True,
))


def gather(
    operand: ArrayLike, start_indices: ArrayLike, dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int], *, unique_indices: bool = False, indices_are_sorted: bool = False,
    mode: str | GatherScatterMode | None = None, fill_value: ArrayLike | None = None,
) -> Array:
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
        aval = get_aval(_operand("gather (fill_value)", fill_value))
        if aval.shape:
            raise TypeError(f"gather: fill_value must be a scalar, got shape {aval.shape}")
        fill_value = np.asarray(fill_value)[()]
    return gather_p.bind(
        _operand("gather", operand), _operand("gather", start_indices, 1),
        dimension_numbers=with_tuples("gather", GatherDimensionNumbers, dimension_numbers),
        slice_sizes=as_shape("gather", "slice_sizes", slice_sizes),
        unique_indices=bool(unique_indices), indices_are_sorted=bool(indices_are_sorted),
        mode=mode, fill_value=fill_value,
    )
