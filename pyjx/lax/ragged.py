"""Products of which one axis is divided into groups of sizes that are data.

The groups lie one after the other along the ragged axis of lhs: group i begins where group i - 1
ends. What lies after the last group takes no part.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core import dtypes, records
from pyjx.core.arithmetic import EACH
from pyjx.core.array_type import Array, ArrayLike, DTypeLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.explicit import resolved_sharding
from pyjx.core.layouts import ShardingLike
from pyjx.core.primitive import Primitive, register
from pyjx.engine.axes import at_front, batch_along, moveaxis
from pyjx.engine.rules import jvp_bilinear
from pyjx.engine.tangents import first_is_linear
from pyjx.engine.types import Dims, Operand, Tangent, Value, Values
from pyjx.lax.common import operand
from pyjx.lax.contractions import (
    PrecisionLike,
    axis_tuple,
    axis_tuples,
    canonicalize_precision,
    dot_general_p,
    dot_shape,
    other_axes,
    preferred_dtype,
    product_dtype,
)
from pyjx.transforms.linearize import linear_transpose


class RaggedDotDimensionNumbers(records.Value):
    """The axes of `ragged_dot_general`.

    `dot_dimension_numbers` are those of `dot_general`; `lhs_ragged_dimensions` is the one ragged
    axis of lhs; `rhs_group_dimensions` is the axis of rhs that has one entry a group, or empty.
    """

    dot_dimension_numbers: Any
    lhs_ragged_dimensions: Any
    rhs_group_dimensions: Any

    __slots__ = ("dot_dimension_numbers", "lhs_ragged_dimensions", "rhs_group_dimensions")

    def __init__(self, dot_dimension_numbers: object, lhs_ragged_dimensions: object,
                 rhs_group_dimensions: object) -> None:
        records.filled(
            self, dot_dimension_numbers=dot_dimension_numbers,
            lhs_ragged_dimensions=lhs_ragged_dimensions, rhs_group_dimensions=rhs_group_dimensions)

    def __setstate__(self, state: dict[str, Any]) -> None:
        records.filled(self, **state)  # jax pickles it so

    def __repr__(self) -> str:
        shown = [f"{name}={value!r}" for name, value in self._fields().items()]
        return f"RaggedDotDimensionNumbers({', '.join(shown)})"


def _canonical(dims: object) -> RaggedDotDimensionNumbers:
    if isinstance(dims, tuple) and len(dims) == 3:
        dims = RaggedDotDimensionNumbers(*dims)
    if not isinstance(dims, RaggedDotDimensionNumbers):
        raise TypeError("ragged_dot_general: ragged_dot_dimension_numbers must be "
                        f"RaggedDotDimensionNumbers, got {dims!r}")
    name = "ragged_dot_general"
    return RaggedDotDimensionNumbers(
        axis_tuples(name, dims.dot_dimension_numbers),
        axis_tuple(name, dims.lhs_ragged_dimensions), axis_tuple(name, dims.rhs_group_dimensions))


def _check_axis(which: str, axis: int, side: str, ndim: int) -> None:
    if not 0 <= axis < ndim:
        raise TypeError(
            f"ragged_dot_general requires {which} dimension numbers to be nonnegative and less "
            f"than the number of axes of the {side} value, got {axis} for {side} of rank {ndim}.")


class _Axes:
    """The axes of a ragged product, sorted out."""

    __slots__ = ("group", "lhs_batch", "lhs_contract", "mode", "outer", "ragged",
                 "rhs_batch", "rhs_contract")

    def __init__(self, dims: RaggedDotDimensionNumbers, lhs_ndim: int) -> None:
        (self.lhs_contract, self.rhs_contract), (self.lhs_batch, self.rhs_batch) = (
            dims.dot_dimension_numbers)
        if len(dims.lhs_ragged_dimensions) != 1:
            raise TypeError("ragged_dot_general expects exactly one lhs ragged dimension, got "
                            f"{dims.lhs_ragged_dimensions}.")
        r = self.ragged = dims.lhs_ragged_dimensions[0]
        _check_axis("lhs ragged", r, "lhs", lhs_ndim)
        free = other_axes(lhs_ndim, self.lhs_contract, self.lhs_batch)
        batch = list(self.lhs_batch)
        # `outer` are the axes of lhs over which the sizes may differ, in their order there.
        if r in self.lhs_contract:
            self.mode = "contracting"
            self.outer = batch + list(self.lhs_contract[:self.lhs_contract.index(r)])
        elif r in self.lhs_batch:
            self.mode = "batch"
            self.outer = batch[:batch.index(r)]
        else:
            self.mode = "noncontracting"
            self.outer = batch + free[:free.index(r)]
        groups = dims.rhs_group_dimensions
        self.group = groups[0] if groups else None
        got = (f" Got rhs_group_dimensions {groups} and lhs_ragged_dimensions "
               f"{dims.lhs_ragged_dimensions}, a {self.mode} dimension.")
        if self.mode == "noncontracting":
            if len(groups) != 1:
                raise TypeError("ragged_dot_general requires exactly one rhs group dimension when "
                                f"lhs ragged dimension is noncontracting.{got}")
        elif groups:
            raise TypeError("ragged_dot_general requires zero group dimensions in the rhs when "
                            f"lhs ragged dimension is contracting or batch.{got}")


def _ragged_shape(lhs: ShapedArray, rhs: ShapedArray, group_sizes: ShapedArray, *,
                  ragged_dot_dimension_numbers: RaggedDotDimensionNumbers, precision: PrecisionLike,
                  preferred_element_type: dtypes.DType, group_offset: Value | None = None,
                  out_sharding: ShardingLike = None) -> ShapedArray:
    axes = _Axes(ragged_dot_dimension_numbers, lhs.ndim)
    if not dtypes.issubdtype(group_sizes.dtype, np.integer):
        raise TypeError(
            "ragged_dot_general requires that group_sizes.dtype is subtype of np.integer.")
    if not group_sizes.shape:
        raise TypeError("ragged_dot_general expected rank of group_sizes to be >=1, got a scalar. "
                        "It has one size for each group.")
    groups = group_sizes.shape[-1]
    outer = tuple([lhs.shape[d] for d in axes.outer])
    if group_sizes.shape[:-1] not in ((), outer):
        whole = f", or {(*outer, groups)}" if outer else ""
        raise TypeError(f"expected group_sizes to have shape {(groups,)}, got {group_sizes.shape}."
                        f"\nragged_dot_general takes the sizes of the {groups} groups{whole}.")
    flat = rhs
    dims = ragged_dot_dimension_numbers.dot_dimension_numbers
    if axes.group is not None:
        _check_axis("rhs group", axes.group, "rhs", rhs.ndim)
        if axes.group in (*axes.rhs_contract, *axes.rhs_batch):
            raise TypeError(
                "ragged_dot_general requires rhs group dimension numbers to be distinct from "
                f"contracting and batch dimensions. Got {axes.group} for rhs_contracting of "
                f"{axes.rhs_contract} and rhs_batch of {axes.rhs_batch}.")
        if rhs.shape[axes.group] != groups:
            raise TypeError("ragged_dot_general expected rhs group dimension size to be "
                            f"{groups}, got {rhs.shape[axes.group]}.")
        g = axes.group
        flat = rhs.update(shape=rhs.shape[:g] + rhs.shape[g + 1:])
        below = [tuple([d - (d > g) for d in ds]) for ds in (axes.rhs_contract, axes.rhs_batch)]
        dims = ((axes.lhs_contract, below[0]), (axes.lhs_batch, below[1]))
    shape = dot_shape(lhs, flat, dims)
    if axes.mode == "contracting":
        shape = (groups, *shape)
    dtype = product_dtype("ragged_dot_general", lhs, rhs, preferred_element_type)
    return ShapedArray(shape, dtype)


def _in_group(lhs: ShapedArray, starts: Value, ends: Value, axes: _Axes) -> Array:
    """For each group and element of lhs, whether the element is in the group."""
    groups = get_aval(ends).shape[-1]
    shape = (groups, *lhs.shape)
    dtype = get_aval(ends).dtype
    position = lax.broadcasted_iota(dtype, shape, axes.ragged + 1)
    places = [0] + ([d + 1 for d in axes.outer] if get_aval(ends).ndim > 1 else [])

    def spread(x: Value) -> Array:
        x = moveaxis(x, get_aval(x).ndim - 1, 0)
        order = sorted(range(len(places)), key=places.__getitem__)
        return lax.broadcast_in_dim(lax.transpose(x, order), shape, sorted(places))

    return lax.bitwise_and(lax.le(spread(starts), position), lax.lt(position, spread(ends)))


def _by_masking(lhs: Value, rhs: Value, group_sizes: Value, *,
                ragged_dot_dimension_numbers: RaggedDotDimensionNumbers, precision: PrecisionLike,
                preferred_element_type: dtypes.DType, group_offset: Value | None = None,
                out_sharding: ShardingLike = None) -> Array:
    """The product as one `dot_general` of rhs and lhs with all but a group's elements zero."""
    aval = get_aval(lhs)
    axes = _Axes(ragged_dot_dimension_numbers, aval.ndim)
    sizes = lax.convert_element_type(group_sizes, np.int32) if dtypes.itemsize_bits(
        get_aval(group_sizes).dtype) < 32 else group_sizes
    last = get_aval(sizes).ndim - 1
    ends = lax.cumsum(sizes, last)
    starts = lax.sub(ends, sizes)
    if group_offset is not None and axes.group is not None:
        count = get_aval(rhs).shape[axes.group]
        starts, ends = [lax.dynamic_slice_in_dim(x, group_offset, count, last)
                        for x in (starts, ends)]
    mask = _in_group(aval, starts, ends, axes)
    if axes.mode == "batch":
        mask = lax.reduce_or(mask, (0,))
        parted = lax.select(mask, lhs, lax.full_like(lhs, 0))
        shift = 0
    else:
        wide = lax.broadcast_in_dim(lhs, get_aval(mask).shape, range(1, aval.ndim + 1))
        parted = lax.select(mask, wide, lax.full_like(wide, 0))
        shift = 1
    lc, lb = [tuple([d + shift for d in ds]) for ds in (axes.lhs_contract, axes.lhs_batch)]
    rc, rb = tuple(axes.rhs_contract), tuple(axes.rhs_batch)
    if axes.group is not None:
        lc, rc = (*lc, 0), (*rc, axes.group)
    out = dot_general_p.bind(parted, rhs, dimension_numbers=((lc, rc), (lb, rb)),
                             precision=precision, preferred_element_type=preferred_element_type,
                             out_sharding=out_sharding)
    return moveaxis(out, len(lb), 0) if axes.mode == "contracting" else out


def _ragged_transpose(ct: Tangent, lhs: Operand, rhs: Operand, group_sizes: Operand, **params: Any
                      ) -> Any:
    if first_is_linear("ragged_dot_general", lhs, rhs):
        pull = linear_transpose(lambda x: _by_masking(x, rhs, group_sizes, **params), lhs.aval)
        return pull(ct)[0], None, None
    pull = linear_transpose(lambda y: _by_masking(lhs, y, group_sizes, **params), rhs.aval)
    return None, pull(ct)[0], None


def _ragged_batch(operands: Values, dims: Dims, *,
                  ragged_dot_dimension_numbers: RaggedDotDimensionNumbers, **params: Any
                  ) -> tuple[Value, int | None]:
    """One more batch axis, in front."""
    along = batch_along(operands, dims)
    lhs, rhs = [at_front(x, d, along) for x, d in zip(operands[:2], dims[:2], strict=True)]
    sizes, d = operands[2], dims[2]
    if d is not None or get_aval(sizes).ndim > 1:
        sizes = at_front(sizes, d, along)
        outer = _Axes(ragged_dot_dimension_numbers, get_aval(lhs).ndim - 1).outer
        if d is not None and get_aval(sizes).ndim == 2 and outer:  # the same for all of them
            shape = [get_aval(lhs).shape[i + 1] for i in outer]
            full = (get_aval(lhs).shape[0], *shape, get_aval(sizes).shape[1])
            sizes = lax.broadcast_in_dim(sizes, full, (0, len(full) - 1))
    (lc, rc), (lb, rb) = ragged_dot_dimension_numbers.dot_dimension_numbers
    lc, rc, lb, rb, ragged, group = [tuple([i + 1 for i in ds]) for ds in (
        lc, rc, lb, rb, ragged_dot_dimension_numbers.lhs_ragged_dimensions,
        ragged_dot_dimension_numbers.rhs_group_dimensions)]
    moved = RaggedDotDimensionNumbers(((lc, rc), ((0, *lb), (0, *rb))), ragged, group)
    out = ragged_dot_general_p.bind(lhs, rhs, sizes, ragged_dot_dimension_numbers=moved, **params)
    contracting = ragged[0] in lc
    return out, 1 if contracting else 0


ragged_dot_general_p = register(Primitive(
    "ragged_dot_general", linear=EACH, shape_rule=_ragged_shape, decomposition=_by_masking,
    asked=True))
ragged_dot_general_p.define(jvp=jvp_bilinear(ragged_dot_general_p, others=1),
                            transpose=_ragged_transpose, batch=_ragged_batch)


def ragged_dot_general(lhs: ArrayLike, rhs: ArrayLike, group_sizes: ArrayLike,
                       ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
                       precision: PrecisionLike = None,
                       preferred_element_type: DTypeLike | None = None,
                       group_offset: ArrayLike | None = None, out_sharding: ShardingLike = None
                      ) -> Array:
    """`dot_general` with groups along one axis of lhs.

    What the groups mean depends on the ragged axis:

    - a free axis of lhs: each group is multiplied by its own part of rhs, along the group axis of
      rhs; the result is that of `dot_general` without this axis.
    - a contracting axis: one product a group; the groups are the first axis of the result.
    - a batch axis: the product, with zeros where no group is.

    Args:
      lhs, rhs: arrays.
      group_sizes: integers (groups,), or with leading axes: those of the batch, and of the axes of
        lhs of the ragged one's kind that stand before it.
      ragged_dot_dimension_numbers: the axes.
      precision, preferred_element_type: as for `dot_general`.
      group_offset: integer scalar; the first group of rhs is the one with this number.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    Raises:
      TypeError: axes, sizes or dtypes do not fit.

    >>> import pyjx as jax
    >>> x, y = jax.numpy.ones((4, 3)), jax.numpy.ones((3, 5))
    >>> dims = jax.lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), [0], [])
    >>> jax.lax.ragged_dot_general(x, x, jax.numpy.array([3, 1]), dims).shape
    (2, 3, 3)
    """
    name = "ragged_dot_general"
    lhs, rhs, group_sizes = [operand(name, x, i) for i, x in enumerate((lhs, rhs, group_sizes))]
    params = {
        "ragged_dot_dimension_numbers": _canonical(ragged_dot_dimension_numbers),
        "precision": canonicalize_precision(precision, name),
        "preferred_element_type": preferred_dtype(preferred_element_type, "ragged_dot_general"),
        "out_sharding": None,
    }
    if out_sharding is not None:
        out = _ragged_shape(*[get_aval(x).placed(sharding=None) for x in (lhs, rhs, group_sizes)],
                            **params)
        params["out_sharding"] = resolved_sharding(out_sharding, out.shape, name)
    if group_offset is not None:
        offset = operand("ragged_dot_general (group_offset)", group_offset)
        aval = get_aval(offset)
        if aval.size != 1 or not dtypes.issubdtype(aval.dtype, np.integer):
            raise TypeError("ragged_dot_general: group_offset must be an integer scalar, got "
                            f"{aval.str_short()}")
        if aval.shape:
            offset = lax.reshape(offset, ())
        return _by_masking(lhs, rhs, group_sizes, group_offset=offset, **params)
    return ragged_dot_general_p.bind(lhs, rhs, group_sizes, group_offset=None, **params)


_MATMUL = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))


def ragged_dot(lhs: ArrayLike, rhs: ArrayLike, group_sizes: ArrayLike,
               precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None,
               group_offset: ArrayLike | None = None, out_sharding: ShardingLike = None) -> Array:
    """Matrix product in which groups of rows have matrices of their own.

    Args:
      lhs: (m, k).
      rhs: (groups, k, n).
      group_sizes: integers (groups,): the first group_sizes[0] rows of lhs are multiplied by
        rhs[0], the next ones by rhs[1], and so on; rows after the last group give zeros.
      precision, preferred_element_type, group_offset: as for `ragged_dot_general`.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    Returns:
      An array (m, n).

    >>> import pyjx as jax
    >>> x, y = jax.numpy.ones((3, 2)), jax.numpy.arange(1., 3.).reshape(2, 1, 1).repeat(2, 1)
    >>> jax.lax.ragged_dot(x, y, jax.numpy.array([1, 2])).tolist()
    [[2.0], [4.0], [4.0]]
    """
    return ragged_dot_general(lhs, rhs, group_sizes, _MATMUL, precision, preferred_element_type,
                              group_offset, out_sharding)
