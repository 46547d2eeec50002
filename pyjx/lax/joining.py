"""Operations that cut arrays, pad them, join them and take them apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyjx import configuration
from pyjx.core import dtypes
from pyjx.core.arithmetic import FIRST, FIRST_TWO, TOGETHER
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.explicit import Entries, entries_of, mesh_of, resized, whole_along
from pyjx.core.integers import as_axis, as_int, as_shape, index, max_dim
from pyjx.core.primitive import CHEAP, Primitive, register
from pyjx.core.scalars import scalar_constant
from pyjx.core.specs import reshard_first
from pyjx.core.trace import is_concrete
from pyjx.engine.axes import all_at_front, at_front, broadcast_in_dim, moveaxis, reduce_sum
from pyjx.engine.rules import jvp_linear, unbatched_dims
from pyjx.engine.tangents import instantiate, is_undefined_primal
from pyjx.engine.types import BatchDims, Dims, Operand, Tangent, Value, Values
from pyjx.errors import ShardingTypeError
from pyjx.lax.common import all_weak, check_same_dtypes
from pyjx.lax.common import operand as _operand
from pyjx.lax.compare import select
from pyjx.lax.convert import full
from pyjx.lax.elementwise import sub
from pyjx.lax.shapes import insert, is_array, linear_primitive, squeeze

# -- slice -----------------------------------------------------------------------------------------


def _slice_shape(x: ShapedArray, *, start_indices: tuple[int, ...],
                 limit_indices: tuple[int, ...], strides: tuple[int, ...] | None) -> ShapedArray:
    for name, values in (("start_indices", start_indices), ("limit_indices", limit_indices),
                         ("strides", strides)):
        if values is not None and len(values) != x.ndim:
            raise TypeError(f"slice {name} must have length equal to the number of dimensions of "
                            f"the operand, got {name} {values} for operand shape {x.shape}.")
    steps = strides or (1,) * x.ndim
    if any(s <= 0 for s in steps):
        raise TypeError(f"slice strides must be positive, got {strides}.")
    if any(s < 0 for s in start_indices):
        raise TypeError("slice start_indices must be greater than or equal to zero, "
                        f"got start_indices of {start_indices}.")
    if any(limit > n for limit, n in zip(limit_indices, x.shape, strict=True)):
        raise TypeError("slice limit_indices must be less than or equal to operand shape, got "
                        f"limit_indices {limit_indices} for operand shape {x.shape}.")
    if any(s > limit for s, limit in zip(start_indices, limit_indices, strict=True)):
        raise TypeError("slice limit_indices must be greater than or equal to start_indices, got "
                        f"start_indices {start_indices} and limit_indices {limit_indices}.")
    return x.update(shape=tuple([
        -((start - limit) // step)
        for start, limit, step in zip(start_indices, limit_indices, steps, strict=True)]))


def _slice_transpose(ct: Value, aval: ShapedArray, *, start_indices: tuple[int, ...],
                     limit_indices: tuple[int, ...], strides: tuple[int, ...] | None) -> Array:
    config = []
    steps = strides or (1,) * aval.ndim
    for n, start, step, kept in zip(aval.shape, start_indices, steps, get_aval(ct).shape,
                                    strict=True):
        end = start + (step * (kept - 1) + 1 if kept else 0)
        config.append((start, n - end, step - 1))
    return pad(ct, scalar_constant(0, get_aval(ct).dtype), config)


def _slice_batch(operands: Values, dims: BatchDims, *, start_indices: tuple[int, ...],
                 limit_indices: tuple[int, ...], strides: tuple[int, ...] | None
                 ) -> tuple[Value, int]:
    (x,), (d,) = operands, dims
    return slice_p.bind(
        x, start_indices=insert(start_indices, d, 0),
        limit_indices=insert(limit_indices, d, get_aval(x).shape[d]),
        strides=None if strides is None else insert(strides, d, 1),
    ), d


slice_p = linear_primitive("slice", _slice_shape, _slice_transpose, cost=CHEAP, rearranges=True)
slice_p.define(sharding_rule=resized("slicing"))
slice_p.define(batch=_slice_batch)


def slice(operand: ArrayLike, start_indices: Sequence[int], limit_indices: Sequence[int],
          strides: Sequence[int] | None = None) -> Array:
    """The part of the operand from `start_indices` up to `limit_indices`.

    Args:
      operand: an array.
      start_indices: for each axis the first position; not negative.
      limit_indices: for each axis the position after the last one, at most its size.
      strides: for each axis how far apart the positions are; 1 by default.

    Raises:
      TypeError: there is not one number for each axis, or one is out of range.

    >>> import pyjx as jax
    >>> jax.lax.slice(jax.numpy.arange(9), (1,), (8,), (3,)).tolist()
    [1, 4, 7]
    """
    return slice_p.bind(_operand("slice", operand),
                        start_indices=as_shape("slice", "start_indices", start_indices),
                        limit_indices=as_shape("slice", "limit_indices", limit_indices),
                        strides=None if strides is None else as_shape("slice", "strides", strides))


def slice_in_dim(operand: ArrayLike, start_index: int | None, limit_index: int | None,
                 stride: int = 1, axis: int = 0) -> Array:
    """The part of the operand from `start_index` up to `limit_index` along one axis.

    Negative positions count from the end; None stands for the ends.

    Args:
      operand: an array.
      start_index, limit_index: where the part begins, and what it does not reach: Python ints or
        None.
      stride: each how many-th element is taken.
      axis: the axis.

    Raises:
      ValueError: the axis is out of range.
      TypeError: a position is out of range.

    >>> import pyjx as jax
    >>> jax.lax.slice_in_dim(jax.numpy.arange(5), -2, None).tolist()
    [3, 4]
    """
    shape = get_aval(_operand("slice_in_dim", operand)).shape
    name = "slice_in_dim"
    axis = as_axis(name, "axis", axis, len(shape))
    n = shape[axis]
    start = 0 if start_index is None else as_int(name, "start_index", start_index)
    limit = n if limit_index is None else as_int(name, "limit_index", limit_index)
    starts, limits, steps = [0] * len(shape), list(shape), [1] * len(shape)
    starts[axis] = start + n if start < 0 else start
    limits[axis] = limit + n if limit < 0 else limit
    steps[axis] = as_int(name, "stride", stride)
    return slice(operand, starts, limits, steps)


def index_in_dim(operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """The slice of size 1 at a static position along one axis, without that axis if wanted.

    Args:
      operand: an array.
      index: a Python int; a negative one counts from the end.
      axis: the axis.
      keepdims: whether the axis stays, with size 1.

    Raises:
      ValueError: the axis is out of range.
      IndexError: the position is out of range.

    >>> import pyjx as jax
    >>> int(jax.lax.index_in_dim(jax.numpy.arange(5), -1, keepdims=False))
    4
    """
    shape = get_aval(_operand("index_in_dim", operand)).shape
    axis = as_axis("index_in_dim", "axis", axis, len(shape))
    index, n = as_int("index_in_dim", "index", index), shape[axis]
    if not -n <= index < n:
        raise IndexError(
            f"index_in_dim: index {index} is out of bounds for axis {axis} with size {n}")
    index %= n
    out = slice_in_dim(operand, index, index + 1, 1, axis)
    return out if keepdims else squeeze(out, (axis,))


# -- pad -------------------------------------------------------------------------------------------

PaddingConfig = tuple[tuple[int, int, int], ...]


def _pad_shape(x: ShapedArray, value: ShapedArray, *, padding_config: PaddingConfig) -> ShapedArray:
    if value.shape:
        raise ValueError(f"pad: padding_value must be a scalar; got np.shape(padding_value)="
                         f"{value.shape}")
    if x.dtype != value.dtype:
        raise TypeError("pad operand and padding_value must be same dtype: got "
                        f"{dtypes.name(x.dtype)} and {dtypes.name(value.dtype)}. Give "
                        "padding_value that of operand, as in jnp.asarray(y, x.dtype).")
    if len(padding_config) != x.ndim:
        raise ValueError("pad: length of padding_config must equal the number of axes of operand, "
                         f"got padding_config {padding_config} for operand shape {x.shape}")
    if any(i < 0 for _, _, i in padding_config):
        raise ValueError("pad: interior padding in padding_config must be nonnegative, got "
                         f"padding_config {padding_config}")
    shape = tuple([low + high + n + max_dim(n - 1, 0) * inside
                   for n, (low, high, inside) in zip(x.shape, padding_config, strict=True)])
    if any(n < 0 for n in shape):
        raise ValueError(
            f"pad: Dimension size after padding is not at least 0, got result shape {shape}, "
            f"for padding_config {padding_config} and operand shape {x.shape}")
    return ShapedArray(shape, x.dtype, x.weak_type and value.weak_type)


def _pad_transpose(ct: Value, x: Operand, value: Operand, *, padding_config: PaddingConfig
                   ) -> Sequence[Any]:
    shape = x.aval.shape if is_undefined_primal(x) else get_aval(x).shape
    zero = scalar_constant(0, get_aval(ct).dtype)
    cropped = pad(ct, zero, [(-low, -high, 0) for low, high, _ in padding_config])
    steps = [inside + 1 for _, _, inside in padding_config]
    back = slice(cropped, [0] * len(shape), get_aval(cropped).shape, steps)
    ct_value = None
    if is_undefined_primal(value):  # it has the rest of the cotangent
        axes = range(len(shape))
        ct_value = sub(reduce_sum(ct, axes), reduce_sum(back, axes))
    return back if is_undefined_primal(x) else None, ct_value


def _pad_batch(operands: Values, dims: Any, *, padding_config: PaddingConfig) -> tuple[Value, int]:
    (x, value), (d, d_value) = operands, dims
    if d_value is None:
        return pad_p.bind(x, value, padding_config=insert(padding_config, d, (0, 0, 0))), d
    size = get_aval(value).shape[d_value]
    x = at_front(x, d, size)
    config = ((0, 0, 0), *padding_config)
    aval = get_aval(x)
    padded = pad(x, scalar_constant(0, aval.dtype), config)
    shape = get_aval(padded).shape
    inside = pad(full(aval.shape, True), np.bool_(False), config)
    return select(inside, padded, broadcast_in_dim(value, shape, (0,))), 0


pad_p = register(Primitive("pad", moves=True, shape_rule=_pad_shape,
                           sharding_rule=resized("padding"),
                           transpose=_pad_transpose, batch=_pad_batch, linear=FIRST + FIRST_TWO))
pad_p.define(jvp=jvp_linear(pad_p))


def pad(operand: ArrayLike, padding_value: Any, padding_config: Sequence[tuple[int, int, int]]
       ) -> Array:
    """The operand with padding around and between its elements.

    Args:
      operand: an array.
      padding_value: a scalar of the operand's dtype.
      padding_config: for each axis how much padding comes before, after, and between any two
        elements. Where the first two are negative, elements are removed.

    Raises:
      TypeError: the dtypes differ.
      ValueError: `padding_value` is no scalar, or the configuration does not fit the operand.

    >>> import pyjx as jax
    >>> jax.lax.pad(jax.numpy.arange(1, 4), 0, [(1, 0, 1)]).tolist()
    [0, 1, 0, 2, 0, 3]
    """
    try:
        config = tuple([(index(low), index(high), index(inside))
                        for low, high, inside in padding_config])
    except (TypeError, ValueError) as error:
        if type(error) not in (TypeError, ValueError):  # a traced value
            raise
        raise TypeError("pad: padding_config must be a sequence of triples of integers "
                        f"(low, high, interior), got {padding_config!r}") from None
    operand, padding_value = _operand("pad", operand), _operand("pad", padding_value, 1)
    if get_aval(operand).place.is_open and not get_aval(padding_value).place.is_open and (
            not is_concrete(padding_value) or np.any(np.asarray(padding_value) != 0)):
        raise ShardingTypeError("lhs is unreduced while rhs is not. `pad` operation does not allow "
                                "this, as each device would add the padding value. Pad by 0, or "
                                f"reduce lhs before. Got {get_aval(operand).str_short()}.")
    return pad_p.bind(operand, padding_value, padding_config=config)


# -- concatenate -----------------------------------------------------------------------------------


def _where_they_fit(xs: Sequence[ShapedArray]) -> str:
    """Along which dimension these can be concatenated, if along another one."""
    for i in range(xs[0].ndim):
        if len({x.shape[:i] + x.shape[i + 1:] for x in xs}) == 1:
            return f" They fit along dimension {i}."
    return ""


def how_to_join(xs: Sequence[ShapedArray]) -> str:
    """How these, which are scalars or have different numbers of dimensions, can be joined."""
    ranks = {x.ndim for x in xs}
    if ranks == {0}:
        return "Join them along a new axis, as in stack((a, b))."
    return ("x[None] and x[:, None] have a new axis of size 1; jnp.broadcast_to(x, shape) has axes "
            "of the sizes that are needed.") if 0 not in ranks else (
        "jnp.hstack joins vectors and scalars." if ranks == {0, 1} else
        "jnp.full(shape, x) makes an array of a scalar.")


def _concatenate_shape(*xs: ShapedArray, dimension: int) -> ShapedArray:
    first = xs[0]
    shapes = ", ".join([str(x.shape) for x in xs]) if any(x is not first for x in xs) else None
    if any(x.ndim != first.ndim for x in xs):
        raise TypeError("concatenate: Cannot concatenate arrays with different numbers of "
                        f"dimensions: got {shapes}. {how_to_join(xs)}")
    if not 0 <= dimension < first.ndim:
        raise TypeError(f"concatenate dimension out of bounds: dimension {dimension} for shapes "
                        f"{', '.join([str(x.shape) for x in xs])}.")
    rest = first.shape[:dimension] + first.shape[dimension + 1:]
    if any(x.shape[:dimension] + x.shape[dimension + 1:] != rest for x in xs):
        raise TypeError(
            "Cannot concatenate arrays with shapes that differ in dimensions other than the one "
            f"being concatenated: concatenating along dimension {dimension} for shapes {shapes}."
            f"{_where_they_fit(xs)}")
    check_same_dtypes("concatenate", *xs)
    size = sum([x.shape[dimension] for x in xs])
    return ShapedArray(insert(rest, dimension, size), first.dtype, all_weak(xs))


def _concatenate_transpose(ct: Value, *xs: Operand, dimension: int) -> Sequence[Any]:
    shapes = [x.aval.shape if is_undefined_primal(x) else get_aval(x).shape for x in xs]
    ends = np.cumsum([s[dimension] for s in shapes]).tolist()
    return [
        slice_in_dim(ct, end - s[dimension], end, axis=dimension)
        if is_undefined_primal(x) else None
        for x, s, end in zip(xs, shapes, ends, strict=True)]


def _joined_sharding(xs: Sequence[ShapedArray]) -> Entries:
    """All operands are cut alike; where no mesh is set those count that tell of one."""
    if configuration.abstract_mesh.value is None:
        xs = [x for x in xs if x.place.sharding is not None]
    entries = entries_of(xs[0])
    if any([entries_of(x) != entries for x in xs]):
        mesh = mesh_of(xs)
        raise ShardingTypeError(
            "All operands should have the same sharding. Got shardings "
            f"{', '.join([str(x.place.sharding_along(mesh, x.ndim)) for x in xs])}. "
            f"{reshard_first('one of them')}")
    return entries


concatenate_p: Primitive = register(Primitive(
    "concatenate", moves=True, rearranges=True, shape_rule=_concatenate_shape, linear=TOGETHER,
    sharding_rule=lambda out, *xs, dimension: _joined_sharding(xs),
    transpose=_concatenate_transpose, batch=lambda operands, dims, *, dimension: (
        concatenate_p.bind(*all_at_front(operands, dims), dimension=dimension + 1), 0)))


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


def check_no_dict(name: str, arrays: object) -> None:
    """Raise TypeError for a dict, of which Python takes the keys."""
    if isinstance(arrays, dict):
        raise TypeError(f"{name}: expected a sequence of arrays, got a dict. Give d.values().")


def _sequence(name: str, operands: Values) -> list[Any]:
    check_no_dict(name, operands)
    try:
        xs = list(operands)
    except TypeError:
        raise TypeError(f"{name}: operands must be a sequence of arrays, got "
                        f"{type(operands)}") from None
    return [_operand(name, x, i) for i, x in enumerate(xs)]


# -- stack, unstack, split -------------------------------------------------------------------------


def _stack_shape(*xs: ShapedArray, axis: int) -> ShapedArray:
    first = xs[0]
    if any(x.ndim != first.ndim for x in xs):
        raise ValueError("Cannot stack arrays with different numbers of dimensions: got "
                         f"{', '.join([str(x.shape) for x in xs])}. {how_to_join(xs)}")
    if any(x.shape != first.shape for x in xs):
        raise ValueError("Cannot stack arrays of different shapes: got "
                         f"{', '.join([str(x.shape) for x in xs])}.")
    check_same_dtypes("stack", *xs)
    return ShapedArray(insert(first.shape, axis, len(xs)), first.dtype, all_weak(xs))


def _stack_transpose(ct: Tangent, *xs: Operand, axis: int) -> Sequence[Any]:
    parts = unstack_p.bind(ct, axis=axis)
    return [p if is_undefined_primal(x) else None for p, x in zip(parts, xs, strict=True)]


def _stack_batch(operands: Values, dims: Dims, *, axis: int) -> tuple[Value, int | None]:
    return stack_p.bind(*all_at_front(operands, dims), axis=axis + 1), 0


stack_p = register(Primitive(
    "stack", moves=True, rearranges=True, shape_rule=_stack_shape, transpose=_stack_transpose,
    batch=_stack_batch, linear=TOGETHER,
    sharding_rule=lambda out, *xs, axis: insert(_joined_sharding(xs), axis, None)))


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
    "unstack", moves=True, rearranges=True, shape_rule=_unstack_shape,
    sharding_rule=_unstack_sharding, batch=_unstack_batch, multiple_results=True, linear=TOGETHER,
    transpose=lambda cts, x, *, axis: (stack_p.bind(*map(instantiate, cts), axis=axis),),
))


def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
    """The slices of `x` along an axis, without that axis.

    Args:
      x: an array.
      axis: the axis that goes.

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
        raise ValueError(f"split: Sum of sizes {sum(sizes)} must be equal to dimension {axis} of "
                         f"the operand shape {list(x.shape)}")
    before, after = x.shape[:axis], x.shape[axis + 1:]
    return [x.update(shape=(*before, n, *after)) for n in sizes]


def _split_batch(operands: Values, dims: BatchDims, *, sizes: tuple[int, ...], axis: int
                 ) -> tuple[Values, Dims]:
    (axis,) = unbatched_dims(dims[0], (axis,))
    return split_p.bind(operands[0], sizes=sizes, axis=axis), [dims[0]] * len(sizes)


_part_sharding = resized("split")

split_p = register(Primitive(
    "split", moves=True, rearranges=True, shape_rule=_split_shape, batch=_split_batch,
    multiple_results=True, linear=TOGETHER,
    sharding_rule=lambda outs, x, **_: [_part_sharding(o, x) for o in outs],
    transpose=lambda cts, x, *, sizes, axis: (concatenate(map(instantiate, cts), axis),),
))


def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> Sequence[Array]:
    """The operand cut in parts of the given sizes along an axis.

    Args:
      operand: an array.
      sizes: the sizes of the parts, whose sum is that of the axis.
      axis: the axis.

    Raises:
      ValueError: the sizes are negative or do not add up, or the axis is out of range.

    >>> import pyjx as jax
    >>> [p.shape for p in jax.lax.split(jax.numpy.ones(5), (2, 3))]
    [(2,), (3,)]
    """
    operand = _operand("split", operand)
    given: Any = sizes
    if getattr(given, "ndim", 0) == 1 and is_concrete(given):
        given = given.tolist()  # of any number of parts
    return split_p.bind(operand, sizes=as_shape("split", "sizes", given),
                        axis=as_axis("split", "axis", axis, get_aval(operand).ndim))
