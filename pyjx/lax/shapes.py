"""Operations that arrange elements anew without computing with them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pyjx.core import dtypes
from pyjx.core.arithmetic import TOGETHER
from pyjx.core.array_type import Array, ArrayLike, DTypeLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.dtypes import DType
from pyjx.core.explicit import (
    Entries,
    batched_sharding,
    entries_of,
    mesh_of,
    permuted_sharding,
    resolved_sharding,
    sharding_for,
    whole_along,
)
from pyjx.core.integers import as_axis, as_int, as_ints, as_shape, as_sizes
from pyjx.core.layouts import ShardingLike
from pyjx.core.meshes import AbstractMesh, Mesh
from pyjx.core.primitive import CHEAP, Primitive, register
from pyjx.core.scalars import is_scalar_constant
from pyjx.core.specs import axes_of, spec_to_give
from pyjx.engine.axes import broadcast_in_dim, moveaxis, reduce_sum, reduced_sharding, transpose
from pyjx.engine.functions import with_at
from pyjx.engine.primitives import stands_for_constant
from pyjx.engine.recording import unless_idle
from pyjx.engine.rules import jvp_zero, unbatched_dims
from pyjx.engine.types import BatchDims, Rule, Tangent, Value, Values
from pyjx.errors import ShardingTypeError
from pyjx.jaxlib_api import Sharding
from pyjx.lax.common import operand as _operand


def is_array(x: Any) -> bool:
    """Whether `x` is an array of pyjx or a tracer of one, and no value of Python or NumPy."""
    return not (isinstance(x, np.ndarray) or is_scalar_constant(x) or stands_for_constant(x))


def linear_primitive(name: str, shape_rule: Rule, transposed: Rule, **facts: Any) -> Primitive:
    """A primitive that moves its only operand; `transposed(ct, aval, **params)`."""
    return register(Primitive(name, moves=True, shape_rule=shape_rule, linear=TOGETHER,
                              transpose=lambda ct, x, **params: (transposed(ct, x.aval, **params),),
                              **facts))


def insert(values: tuple[Any, ...], position: int, value: Any) -> tuple[Any, ...]:
    """The tuple with one more value, which comes to stand at `position`."""
    return (*values[:position], value, *values[position:])


# -- reshape ---------------------------------------------------------------------------------------


def _reshape_shape(x: ShapedArray, *, new_sizes: tuple[int, ...],
                   dimensions: tuple[int, ...] | None, sharding: Sharding | None = None
                  ) -> ShapedArray:
    if any(n < 0 for n in new_sizes):
        raise TypeError(f"reshape new_sizes must all be positive, got {new_sizes}.")
    if math.prod(new_sizes) != x.size:
        raise TypeError(f"reshape total size must be unchanged, got new_sizes {new_sizes} (total "
                        f"size {math.prod(new_sizes)}) for shape {x.shape} (total size {x.size}).")
    if dimensions is not None and sorted(dimensions) != list(range(x.ndim)):
        raise TypeError("reshape dimensions must be a permutation of operand dimensions, got "
                        f"dimensions {dimensions} for shape {x.shape}.")
    return x.update(shape=new_sizes)


def _reshape_transpose(ct: Tangent, aval: ShapedArray, *, new_sizes: tuple[int, ...],
                       dimensions: tuple[int, ...] | None, sharding: Sharding | None = None
                      ) -> Array:
    sharding = sharding_for(aval, get_aval(ct))
    if dimensions is None:
        return reshape(ct, aval.shape, out_sharding=sharding)
    inverse = np.argsort(dimensions).tolist()
    return transpose(reshape(ct, [aval.shape[i] for i in dimensions],
                             out_sharding=permuted_sharding(sharding, dimensions)), inverse)


def _reshape_batch(operands: Values, dims: BatchDims, *, new_sizes: tuple[int, ...],
                   dimensions: tuple[int, ...] | None, sharding: Sharding | None = None
                   ) -> tuple[Value, int]:
    x = moveaxis(operands[0], dims[0], 0)
    if dimensions is not None:
        dimensions = (0, *[i + 1 for i in dimensions])
    size = get_aval(x).shape[0]
    return reshape_p.bind(
        x, new_sizes=(size, *new_sizes), dimensions=dimensions,
        sharding=batched_sharding(sharding, 0, get_aval(x), 0)
    ), 0


def _reshape_sharding(out: ShapedArray, x: ShapedArray, *, dimensions: Any, **params: Any
                      ) -> Entries:
    """Axes of size 1 come and go; beyond that, axes that follow each other become one, or one
    becomes several."""
    if not any(entries_of(x)):
        return (None,) * out.ndim
    found = None if dimensions is not None else _regrouped(x, out.shape)
    if found is None:
        raise ShardingTypeError("This reshape is not supported. Please specify the sharding of the "
                                "output via the `out_sharding` argument of jax.lax.reshape. Got "
                                f"operand type: {x.str_short()}, new sizes: {out.shape}. Give it "
                                f"as {spec_to_give()}.")
    return found


def _regrouped(x: ShapedArray, sizes: tuple[int, ...]) -> Entries | None:
    mesh, entries = mesh_of([x]), entries_of(x)
    old = [(n, e) for n, e in zip(x.shape, entries, strict=True) if n != 1]
    new = [n for n in sizes if n != 1]
    same = 0
    while same < min(len(old), len(new)) and old[same][0] == new[same]:
        same += 1
    back = 0
    while back < min(len(old), len(new)) - same and old[-1 - back][0] == new[-1 - back]:
        back += 1
    merged, parts = old[same:len(old) - back], new[same:len(new) - back]
    middle: list[Any] | None = []
    if len(parts) == 1:
        middle = _merged_entry([e for _, e in merged])
    elif len(merged) == 1:
        middle = _split_entry(mesh, axes_of((merged[0][1],)), parts)
    elif merged or parts:
        return None
    if middle is None:
        return None
    given = iter([*[e for _, e in old[:same]], *middle, *[e for _, e in old[len(old) - back:]]])
    return tuple([None if n == 1 else next(given) for n in sizes])


def _merged_entry(entries: Sequence[Any]) -> list[Any] | None:
    """The entry of the axis that axes become, of which the first ones alone may be cut."""
    cut = [e for e in entries if e is not None]
    return [tuple(axes_of(cut))] if cut == list(entries[:len(cut)]) else None


def _split_entry(mesh: Mesh | AbstractMesh, axes: Sequence[Any], sizes: Sequence[int]
                ) -> list[Any] | None:
    """The entries of the axes that one becomes which is cut along `axes`, the largest parts
    first."""
    out: list[Any] = []
    left = list(axes)
    for n in sizes:
        taken: list[Any] = []
        while left and n % mesh.shape[left[0]] == 0:
            n //= mesh.shape[left[0]]
            taken.append(left.pop(0))
        out.append(tuple(taken))
        if left and n != 1:
            return None
    return None if left else out


reshape_p = linear_primitive("reshape", _reshape_shape, _reshape_transpose, cost=CHEAP)
reshape_p.define(sharding_rule=_reshape_sharding)
reshape_p.define(batch=_reshape_batch, record=unless_idle(
    lambda aval, new_sizes, dimensions, sharding: (
        aval.shape == new_sizes and dimensions is None and sharding is None)))


def axis_in_two(x: Value, axis: int, size: int) -> Array:
    """`x` with an axis made two, the first of which has the size given."""
    shape = get_aval(x).shape
    rest = shape[axis] // size if size else 0
    return reshape(x, (*shape[:axis], size, rest, *shape[axis + 1:]))


def axes_in_one(x: Value, axis: int) -> Array:
    """`x` with an axis and the one after it made one."""
    shape = get_aval(x).shape
    return reshape(x, (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2:]))


def reshape(operand: Any, new_sizes: Any, dimensions: Sequence[int] | None = None, *,
            out_sharding: ShardingLike = None) -> Array:
    """The same elements in another shape, in row-major order.

    Args:
      operand: an array.
      new_sizes: the shape of the result, whose size is that of the operand.
      dimensions: the order in which the operand's axes are read; from first to last by default.
      out_sharding: how the result is spread over devices.

    Raises:
      TypeError: the sizes differ, one is negative, or `dimensions` is no permutation.

    >>> import pyjx as jax
    >>> jax.lax.reshape(jax.numpy.arange(6), (2, 3)).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    operand = _operand("reshape", operand)
    new_sizes = as_shape("reshape", "new_sizes", new_sizes)
    shape = get_aval(operand).shape
    if dimensions is not None:
        dimensions = as_ints("reshape", "dimensions", dimensions)
        if dimensions == tuple(range(len(shape))):
            dimensions = None
    if out_sharding is not None:
        out_sharding = resolved_sharding(out_sharding, new_sizes, "reshape")
        _check_open_sums(out_sharding, get_aval(operand))
    elif dimensions is None and shape == new_sizes and is_array(operand):
        return operand
    return reshape_p.bind(
        operand, new_sizes=new_sizes, dimensions=dimensions, sharding=out_sharding)


def _check_open_sums(sharding: Sharding | None, x: ShapedArray) -> None:
    """Raise ValueError unless sums over the mesh stay open, or closed, as they are."""
    if sharding is None:
        return
    for what, wanted, given in (("unreduced", sharding.spec.unreduced, x.place.spec.unreduced),
                                ("reduced", sharding.spec.reduced, x.place.spec.reduced)):
        if wanted != given:
            raise ValueError(
                f"out_sharding passed to `reshape` must be {what} over the same mesh axes as the "
                f"operand: it cannot contain other {what} axes. Got {sharding.spec} and operand "
                f"type {x.str_short()}. Call jax.reshard before or after it, with "
                f"{spec_to_give()}.")


def collapse(operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """The operand with the axes from `start_dimension` up to `stop_dimension` made one.

    Args:
      operand: an array.
      start_dimension: the first axis of those that become one; a negative one counts from the back.
      stop_dimension: the axis behind the last of them; None for all that follow.

    Raises:
      ValueError: the range runs backwards.

    >>> import pyjx as jax
    >>> jax.lax.collapse(jax.numpy.ones((2, 3, 4)), 1).shape
    (2, 12)
    """
    shape = get_aval(_operand("collapse", operand)).shape
    start = as_int("collapse", "start_dimension", start_dimension)
    if stop_dimension is not None:
        stop_dimension = as_int("collapse", "stop_dimension", stop_dimension)
    low, high, _ = slice(start, stop_dimension).indices(len(shape))
    if high < low:
        raise ValueError(f"Invalid dimension range passed to collapse: {shape}[{low}:{high}]")
    return reshape(operand, (*shape[:low], math.prod(shape[low:high]), *shape[high:]))


# -- squeeze, expand_dims --------------------------------------------------------------------------


def _squeeze_shape(x: ShapedArray, *, dimensions: tuple[int, ...]) -> ShapedArray:
    if any(x.shape[d] != 1 for d in dimensions):
        raise ValueError("squeeze: cannot select an axis to squeeze out which has size not equal "
                         f"to one, got shape={x.shape} and dimensions={dimensions}")
    return x.update(shape=tuple([n for i, n in enumerate(x.shape) if i not in dimensions]))


def _squeeze_batch(operands: Values, dims: BatchDims, *, dimensions: tuple[int, ...]
                   ) -> tuple[Value, int]:
    d = dims[0]
    moved = unbatched_dims(d, dimensions)
    return squeeze_p.bind(operands[0], dimensions=moved), d - sum(i < d for i in moved)


squeeze_p = linear_primitive("squeeze", _squeeze_shape,
                             lambda ct, aval, *, dimensions: reshape(
                                 ct, aval.shape,
                                 out_sharding=sharding_for(aval, get_aval(ct))),
                             cost=CHEAP)
squeeze_p.define(batch=_squeeze_batch, sharding_rule=lambda out, x, *, dimensions: reduced_sharding(
                     out, x, axes=dimensions),
                 record=unless_idle(lambda aval, dimensions: not dimensions))


def squeeze(array: Any, dimensions: Sequence[int]) -> Array:
    """The array without the given axes, whose sizes are 1.

    Args:
      array: an array.
      dimensions: the axes that go, a sequence of ints; negative ones count from the back.

    Raises:
      ValueError: an axis is out of range, given twice, or of another size.

    >>> import pyjx as jax
    >>> jax.lax.squeeze(jax.numpy.ones((1, 3)), (0,)).shape
    (3,)
    """
    array = _operand("squeeze", array)
    ndim = get_aval(array).ndim
    dims = tuple([as_axis("squeeze", "dimensions", d, ndim)
                  for d in as_ints("squeeze", "dimensions", dimensions)])
    if len(set(dims)) != len(dims):
        raise ValueError(f"squeeze: dimensions are not unique: {dims}")
    if not dims and is_array(array):
        return array
    return squeeze_p.bind(array, dimensions=tuple(sorted(dims)))


def expand_dims(array: Any, dimensions: Sequence[int]) -> Array:
    """The array with new axes of size 1, numbered as they are in the result.

    Args:
      array: an array.
      dimensions: the places of the new axes in the result, a sequence of ints; negative ones count
        from the back.

    Raises:
      ValueError: an axis is out of range or given twice.

    >>> import pyjx as jax
    >>> jax.lax.expand_dims(jax.numpy.ones(3), (0, -1)).shape
    (1, 3, 1)
    """
    array = _operand("expand_dims", array)
    shape = get_aval(array).shape
    dimensions = as_ints("expand_dims", "dimensions", dimensions)
    ndim = len(shape) + len(dimensions)
    new = [as_axis("expand_dims", "dimensions", d, ndim) for d in dimensions]
    taken = set(new)
    if len(taken) != len(new):
        raise ValueError(f"repeated axis in lax.expand_dims: {tuple(new)}")
    if not new and is_array(array):
        return array
    kept = [i for i in range(ndim) if i not in taken]
    return broadcast_in_dim(array, with_at([1] * ndim, kept, shape), kept)


def broadcast(operand: Value, sizes: Sequence[int], *, out_sharding: ShardingLike = None) -> Array:
    """The operand repeated along new axes in front.

    Args:
      operand: an array.
      sizes: the sizes of the new axes.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    Raises:
      TypeError: a size is negative.

    >>> import pyjx as jax
    >>> jax.lax.broadcast(jax.numpy.ones(3), (2,)).shape
    (2, 3)
    """
    operand = _operand("broadcast", operand)
    sizes = as_sizes("broadcast", "sizes", sizes)
    shape = get_aval(operand).shape
    dims = range(len(sizes), len(sizes) + len(shape))
    return broadcast_in_dim(operand, (*sizes, *shape), dims, out_sharding=out_sharding)


def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """`x` with axes of size 1 put in front until it has `rank` axes.

    Where it has as many or more, it is returned as it is.

    Args:
      x: an array.
      rank: the number of axes.

    >>> import pyjx as jax
    >>> jax.lax.broadcast_to_rank(jax.numpy.ones(3), 3).shape
    (1, 1, 3)
    """
    ndim = get_aval(_operand("broadcast_to_rank", x)).ndim
    return expand_dims(x, range(as_int("broadcast_to_rank", "rank", rank) - ndim))


# -- rev -------------------------------------------------------------------------------------------


def _rev_shape(x: ShapedArray, *, dimensions: tuple[int, ...]) -> ShapedArray:
    if len(set(dimensions)) != len(dimensions):
        raise TypeError(f"rev dimensions must be unique, got {dimensions}.")
    if any(d < 0 for d in dimensions):
        raise TypeError(f"rev dimensions must have every element be nonnegative, got {dimensions}.")
    if any(d >= x.ndim for d in dimensions):
        raise TypeError("rev dimensions must all be less than operand ndim, got dimensions "
                        f"{dimensions} for operand ndim {x.ndim}.")
    return x


rev_p: Primitive = linear_primitive(
    "rev", _rev_shape, lambda ct, aval, *, dimensions: rev_p.bind(ct, dimensions=dimensions),
    rearranges=True)
rev_p.define(
    batch=lambda operands, dims, *, dimensions: (
        rev_p.bind(operands[0], dimensions=unbatched_dims(dims[0], dimensions)), dims[0]),
    record=unless_idle(lambda aval, dimensions: not dimensions))


def rev(operand: Any, dimensions: Sequence[int]) -> Array:
    """The operand with its elements in reverse order along `dimensions`.

    Args:
      operand: an array.
      dimensions: the axes, a sequence of ints, none of which is negative.

    Raises:
      TypeError: an axis is out of range, negative or given twice.

    >>> import pyjx as jax
    >>> jax.lax.rev(jax.numpy.arange(3), (0,)).tolist()
    [2, 1, 0]
    """
    operand = _operand("rev", operand)
    dims = as_ints("rev", "dimensions", dimensions)
    return operand if not dims and is_array(operand) else rev_p.bind(operand, dimensions=dims)


# -- tile ------------------------------------------------------------------------------------------


def _tile_shape(x: ShapedArray, *, reps: tuple[int, ...]) -> ShapedArray:
    if len(reps) != x.ndim:
        raise TypeError("tile reps length must be equal to the ndim of x, got "
                        f"len(reps)={len(reps)} and x.ndim={x.ndim}.")
    if any(r < 0 for r in reps):
        raise TypeError(f"tile reps must have every element be nonnegative, got {reps}.")
    return x.update(shape=tuple([r * n for r, n in zip(reps, x.shape, strict=True)]))


def _tile_transpose(ct: Tangent, aval: ShapedArray, *, reps: tuple[int, ...]) -> Array:
    apart = [n for pair in zip(reps, aval.shape, strict=True) for n in pair]
    return reduce_sum(reshape(ct, apart), range(0, len(apart), 2))


def _tile_sharding(out: ShapedArray, x: ShapedArray, *, reps: tuple[int, ...]) -> Entries:
    for i, n in enumerate(reps):
        if n != 1:
            whole_along(x, i, f"Operand cannot be sharded on dimension {i} when the tiling is "
                        f"non-trivial. Got input type: {x.str_short()} with reps: {reps}")
    return entries_of(x)


tile_p = linear_primitive("tile", _tile_shape, _tile_transpose)
tile_p.define(sharding_rule=_tile_sharding, batch=lambda operands, dims, *, reps: (
    tile_p.bind(operands[0], reps=insert(reps, dims[0], 1)), dims[0]))


def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """The operand repeated `reps[i]` times along each axis i.

    Args:
      operand: an array.
      reps: one int for each axis.

    Raises:
      TypeError: there is not one number for each axis, or one is negative.

    >>> import pyjx as jax
    >>> jax.lax.tile(jax.numpy.arange(2), (2,)).tolist()
    [0, 1, 0, 1]
    """
    return tile_p.bind(_operand("tile", operand), reps=as_shape("tile", "reps", reps))


# -- bitcast_convert_type --------------------------------------------------------------------------


def _bitcast_shape(x: ShapedArray, *, new_dtype: DType) -> ShapedArray:
    old = x.dtype
    old_bits, new_bits = dtypes.bit_width(old), dtypes.bit_width(new_dtype)
    if old_bits == new_bits:
        shape = x.shape
    elif old_bits > new_bits:
        shape = (*x.shape, old_bits // new_bits)
    elif x.shape and x.shape[-1] * old_bits == new_bits:
        shape = x.shape[:-1]
    else:
        last = x.shape[-1] if x.shape else 1
        raise ValueError(f"bitcast_convert_type: Attempting to convert array of shape {x.shape} "
                         f"from {dtypes.name(old)} of size {old_bits} bits to "
                         f"{dtypes.name(new_dtype)} of size {new_bits}, bits but {last} * "
                         f"{old_bits} != {new_bits}")
    if old != new_dtype and any([d == np.bool_ or dtypes.issubdtype(d, np.complexfloating)
                                 for d in (old, new_dtype)]):
        raise TypeError(
            "lax.bitcast_convert_type does not support bool or complex values unless the operand "
            f"and destination types match. Got operand dtype={dtypes.name(old)}, "
            f"new_dtype={new_dtype!r}. Consider using the arr.view() method instead.")
    return ShapedArray(shape, new_dtype)


def _bitcast_batch(operands: Values, dims: BatchDims, *, new_dtype: DType) -> tuple[Value, int]:
    x = moveaxis(operands[0], dims[0], 0)
    return bitcast_convert_type_p.bind(x, new_dtype=new_dtype), 0


def _bitcast_sharding(out: ShapedArray, x: ShapedArray, **params: Any) -> Entries:
    entries = entries_of(x)
    return entries[:out.ndim] if out.ndim <= x.ndim else (*entries, None)


bitcast_convert_type_p = register(Primitive(
    "bitcast_convert_type", moves=True, shape_rule=_bitcast_shape, batch=_bitcast_batch,
    sharding_rule=_bitcast_sharding,
))
bitcast_convert_type_p.define(jvp=jvp_zero(bitcast_convert_type_p))


def bitcast_convert_type(operand: ArrayLike, new_dtype: DTypeLike | None) -> Array:
    """The operand's bits read as another dtype.

    Where the new dtype is narrower by a factor of k, the result has a new last axis of size k;
    where it is wider, the operand's last axis is of that size and is left out.

    Args:
      operand: an array.
      new_dtype: the dtype that its bits are read as.

    Raises:
      TypeError: the dtypes differ, and one is bool or complex.
      ValueError: the size of the last axis does not fit, or there is no dtype.

    >>> import pyjx as jax
    >>> hex(jax.lax.bitcast_convert_type(jax.numpy.float32(1.0), "uint32"))
    '0x3f800000'
    """
    if new_dtype is None:
        raise ValueError("bitcast_convert_type: dtype must be specified.")
    dtype = dtypes.check_and_canonicalize_user_dtype(new_dtype, "bitcast_convert_type")
    return bitcast_convert_type_p.bind(_operand("bitcast_convert_type", operand), new_dtype=dtype)
