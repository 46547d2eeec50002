"""Operations that join arrays and take them apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.explicit import Entries, entries_of, full_sharding, mesh_of, resized, whole_along
from pyjx.core.integers import as_axis, as_int, as_shape
from pyjx.core.linearity import TOGETHER
from pyjx.core.open_sums import ShardingTypeError
from pyjx.core.primitive import Primitive, register
from pyjx.engine.axes import at_front, batch_along, moveaxis
from pyjx.engine.rules import unbatched_dims
from pyjx.engine.tangents import instantiate, is_undefined_primal
from pyjx.engine.types import BatchDims, Dims, Operand, Rule, Tangent, Tangents, Value, Values
from pyjx.lax.common import all_weak, check_same_dtypes
from pyjx.lax.nary import operand as _operand
from pyjx.lax.shapes import insert, is_array, jointly_linear_jvp

# -- concatenate -----------------------------------------------------------------------------------


def _concatenate_shape(*xs: ShapedArray, dimension: int) -> ShapedArray:
    first = xs[0]
    shapes = ", ".join([str(x.shape) for x in xs]) if any(x is not first for x in xs) else None
    if any(x.ndim != first.ndim for x in xs):
        raise TypeError(
            "concatenate: Cannot concatenate arrays with different numbers of dimensions: "
            f"got {shapes}."
        )
    if not 0 <= dimension < first.ndim:
        raise TypeError(
            f"concatenate dimension out of bounds: dimension {dimension} for shapes "
            f"{', '.join([str(x.shape) for x in xs])}."
        )
    rest = first.shape[:dimension] + first.shape[dimension + 1:]
    if any(x.shape[:dimension] + x.shape[dimension + 1:] != rest for x in xs):
        raise TypeError(
            "Cannot concatenate arrays with shapes that differ in dimensions other than the one "
            f"being concatenated: concatenating along dimension {dimension} for shapes {shapes}."
        )
    check_same_dtypes("concatenate", *xs)
    size = sum([x.shape[dimension] for x in xs])
    return ShapedArray(insert(rest, dimension, size), first.dtype, all_weak(xs))


def _concatenate_transpose(ct: Tangent, *xs: Operand, dimension: int) -> Tangents:
    shapes = [x.aval.shape if is_undefined_primal(x) else get_aval(x).shape for x in xs]
    ends = np.cumsum([s[dimension] for s in shapes]).tolist()
    return [
        lax.slice_in_dim(ct, end - s[dimension], end, axis=dimension)
        if is_undefined_primal(x) else None
        for x, s, end in zip(xs, shapes, ends, strict=True)
    ]


def _concatenate_batch(operands: Values, dims: Dims, *, dimension: int) -> tuple[Value, int | None]:
    along = batch_along(operands, dims)
    xs = [at_front(x, d, along) for x, d in zip(operands, dims, strict=True)]
    return concatenate_p.bind(*xs, dimension=dimension + 1), 0


def _joined_sharding(xs: Sequence[ShapedArray]) -> Entries:
    entries = entries_of(xs[0])
    if any([entries_of(x) != entries for x in xs]):
        mesh = mesh_of(xs)
        raise ShardingTypeError(
            "All operands should have the same sharding. Got shardings "
            f"{', '.join([str(full_sharding(mesh, x)) for x in xs])}. Call jax.reshard before.")
    return entries


concatenate_p = register(Primitive(
    "concatenate", moves=True, shape_rule=_concatenate_shape,
    sharding_rule=lambda out, *xs, dimension: _joined_sharding(xs),
    transpose=_concatenate_transpose, batch=_concatenate_batch, linear=TOGETHER,
))
concatenate_p.define(jvp=jointly_linear_jvp(concatenate_p))


def concatenate(operands: Any, dimension: int) -> Array:
    """The operands one after the other along an axis.

    Args:
      operands: a sequence of arrays of one dtype, whose shapes differ along `dimension` only.
      dimension: an axis, counted from the front.

    Raises:
      ValueError: there are no operands.
      TypeError: shapes or dtypes do not agree, or the axis is out of range.

    >>> import pyjx as jax
    >>> jnp = jax.numpy
    >>> jax.lax.concatenate([jnp.arange(2), jnp.arange(3)], 0).tolist()
    [0, 1, 0, 1, 2]
    """
    xs = _sequence("concatenate", operands)
    dimension = as_int("concatenate", "dimension", dimension)
    if not xs:
        raise ValueError("concatenate requires a non-empty sequences of arrays")
    if len(xs) == 1 and is_array(xs[0]):
        return xs[0]
    return concatenate_p.bind(*xs, dimension=dimension)


def _sequence(name: str, operands: Values) -> list[Any]:
    try:
        xs = list(operands)
    except TypeError:
        raise TypeError(
            f"{name}: operands must be a sequence of arrays, got {type(operands)}"
        ) from None
    return [_operand(name, x, i) for i, x in enumerate(xs)]


# -- stack, unstack, split -------------------------------------------------------------------------


def _stack_shape(*xs: ShapedArray, axis: int) -> ShapedArray:
    first = xs[0]
    if any(x.ndim != first.ndim for x in xs):
        raise ValueError(
            "Cannot stack arrays with different numbers of dimensions: got "
            f"{', '.join([str(x.shape) for x in xs])}."
        )
    if any(x.shape != first.shape for x in xs):
        raise ValueError(
            f"Cannot stack arrays of different shapes: got {', '.join([str(x.shape) for x in xs])}."
        )
    check_same_dtypes("stack", *xs)
    return ShapedArray(insert(first.shape, axis, len(xs)), first.dtype, all_weak(xs))


def _stack_transpose(ct: Tangent, *xs: Operand, axis: int) -> Tangents:
    parts = unstack_p.bind(ct, axis=axis)
    return [p if is_undefined_primal(x) else None for p, x in zip(parts, xs, strict=True)]


def _stack_batch(operands: Values, dims: Dims, *, axis: int) -> tuple[Value, int | None]:
    along = batch_along(operands, dims)
    xs = [at_front(x, d, along) for x, d in zip(operands, dims, strict=True)]
    return stack_p.bind(*xs, axis=axis + 1), 0


stack_p = register(Primitive("stack", moves=True, shape_rule=_stack_shape,
                             transpose=_stack_transpose,
                             batch=_stack_batch, linear=TOGETHER,
                             sharding_rule=lambda out, *xs, axis: insert(
                                 _joined_sharding(xs), axis, None)))
stack_p.define(jvp=jointly_linear_jvp(stack_p))


def stack(operands: Any, axis: int = 0) -> Array:
    """The operands side by side along a new axis.

    Args:
      operands: a sequence of arrays of one shape and dtype.
      axis: the new axis, as it is numbered in the result.

    Raises:
      ValueError: there are no operands, their shapes differ, or the axis is out of range.
      TypeError: their dtypes differ.

    >>> import pyjx as jax
    >>> jax.lax.stack([jax.numpy.arange(2)] * 2, axis=1).tolist()
    [[0, 0], [1, 1]]
    """
    xs = _sequence("stack", operands)
    if not xs:
        raise ValueError("stack requires a non-empty sequences of arrays")
    return stack_p.bind(*xs, axis=as_axis("stack", "axis", axis, get_aval(xs[0]).ndim + 1))


def _parts_jvp(primitive: Primitive) -> Rule:
    """The forward rule of an operation that cuts its operand in parts."""

    def jvp(primals: Values, tangents: Tangents, **params: Any) -> tuple[Value, Tangent]:
        return primitive.bind(*primals, **params), primitive.bind(*tangents, **params)

    return jvp


def _unstack_shape(x: ShapedArray, *, axis: int) -> list[ShapedArray]:
    part = x.update(shape=x.shape[:axis] + x.shape[axis + 1:])
    return [part] * x.shape[axis]


def _unstack_batch(operands: Values, dims: BatchDims, *, axis: int) -> tuple[Values, Dims]:
    parts = unstack_p.bind(moveaxis(operands[0], dims[0], 0), axis=axis + 1)
    return parts, [0] * len(parts)


def _unstack_sharding(outs: Any, x: ShapedArray, *, axis: int) -> list[Any]:
    whole_along(x, axis, f"unstack operand cannot be sharded on the unstacking axis {axis}. Got "
                f"operand type={x.str_short()}")
    entries = entries_of(x)
    return [entries[:axis] + entries[axis + 1:]] * len(outs)


unstack_p = register(Primitive(
    "unstack", moves=True, shape_rule=_unstack_shape, sharding_rule=_unstack_sharding,
    batch=_unstack_batch,
    multiple_results=True, linear=TOGETHER,
    transpose=lambda cts, x, *, axis: (stack_p.bind(*map(instantiate, cts), axis=axis),),
))
unstack_p.define(jvp=_parts_jvp(unstack_p))


def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
    """The slices of `x` along an axis, without that axis.

    Raises:
      ValueError: the axis is out of range.

    >>> import pyjx as jax
    >>> [int(e) for e in jax.lax.unstack(jax.numpy.arange(3))]
    [0, 1, 2]
    """
    x = _operand("unstack", x)
    axis = as_axis("unstack", "axis", axis, get_aval(x).ndim)
    return tuple(unstack_p.bind(x, axis=axis)) if get_aval(x).shape[axis] else ()


def _split_shape(x: ShapedArray, *, sizes: tuple[int, ...], axis: int) -> list[ShapedArray]:
    if any(n < 0 for n in sizes):
        raise ValueError(f"Sizes passed to split must be nonnegative, got {list(sizes)}")
    if sum(sizes) != x.shape[axis]:
        raise ValueError(
            f"split: Sum of sizes {sum(sizes)} must be equal to dimension {axis} of the operand "
            f"shape {list(x.shape)}"
        )
    before, after = x.shape[:axis], x.shape[axis + 1:]
    return [x.update(shape=(*before, n, *after)) for n in sizes]


def _split_batch(operands: Values, dims: BatchDims, *, sizes: tuple[int, ...], axis: int
                 ) -> tuple[Values, Dims]:
    (axis,) = unbatched_dims(dims[0], (axis,))
    return split_p.bind(operands[0], sizes=sizes, axis=axis), [dims[0]] * len(sizes)


_part_sharding = resized("split")

split_p = register(Primitive(
    "split", moves=True, shape_rule=_split_shape, batch=_split_batch, multiple_results=True,
    linear=TOGETHER,
    sharding_rule=lambda outs, x, **_: [_part_sharding(o, x) for o in outs],
    transpose=lambda cts, x, *, sizes, axis: (concatenate(map(instantiate, cts), axis),),
))
split_p.define(jvp=_parts_jvp(split_p))


def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> Sequence[Array]:
    """The operand cut in parts of the given sizes along an axis.

    Raises:
      ValueError: the sizes are negative or do not add up, or the axis is out of range.

    >>> import pyjx as jax
    >>> [p.shape for p in jax.lax.split(jax.numpy.ones(5), (2, 3))]
    [(2,), (3,)]
    """
    operand = _operand("split", operand)
    return split_p.bind(operand, sizes=as_shape("split", "sizes", sizes),
                        axis=as_axis("split", "axis", axis, get_aval(operand).ndim))
