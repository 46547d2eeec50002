"""Arrays joined and cut: concatenate, stack, split, tile, repeat."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, SupportsIndex

import numpy as np

from pyjx import configuration, lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, AxisLike, DTypeLike
from pyjx.core.avals import AbstractRef, ShapedArray, SymbolicDim, get_aval
from pyjx.core.explicit import entries_of
from pyjx.core.integers import as_ints, as_truncated_int, index
from pyjx.core.layouts import ShardingLike
from pyjx.core.trace import Tracer, concrete_or_error
from pyjx.core.value_texts import ARRAYS, shortened
from pyjx.errors import ARRAY_OF_STATIC
from pyjx.lax.joining import check_no_dict, how_to_join
from pyjx.numpy.manipulation import (
    at_least_1d,
    at_least_2d,
    at_least_3d,
    concrete_shape,
    moved,
    permuted,
    with_new_axes,
)
from pyjx.numpy.operands import along, as_tuple, canonical_axis, numpy_function
from pyjx.numpy.promotion import convert, no_out, operands, promote_dtypes
from pyjx.runtime.array import ArrayImpl
from pyjx.runtime.operations import body_of, op_jit
from pyjx.runtime.resharding import in_auto_mode

# -- joining ---------------------------------------------------------------------------------------


Axes = tuple[int, ...]


def _is_one_array(arrays: object) -> bool:
    """Whether what is to be joined is an array. One of another library is a sequence: what its
    class says of its rank may mean something else."""
    return hasattr(arrays, "ndim") and (isinstance(arrays, (Array, np.ndarray, np.generic))
                                        or hasattr(arrays, "__jax_array__"))


def _given(name: str, arrays: Any) -> list[Any]:
    """The arrays of a sequence, or the slices of an array."""
    if _is_one_array(arrays):
        if not arrays.ndim:
            raise TypeError(f"{name}: expected a sequence of arrays, got a scalar")
        return list(lax.unstack(*operands(name, arrays))) if arrays.shape[0] else []
    check_no_dict(name, arrays)
    return operands(name, *arrays)


def parts_of(name: str, arrays: Any, dtype: DTypeLike | None = None) -> list[Any]:
    """The arrays of a sequence, or the slices of an array, with their common dtype."""
    parts = _given(name, arrays)
    if dtype is not None:
        dtype = _dtype_of_joined(name, dtype)
        return [convert(x, dtype) for x in parts]
    if not parts:
        return parts
    first = parts[0]
    if isinstance(first, Tracer) and not first.aval.weak_type:
        aval = first.aval
        if all(isinstance(x, Tracer) and x.aval.dtype == aval.dtype
                and not x.aval.weak_type for x in parts):
            return parts
    return promote_dtypes(*parts)


def _axis(name: str, axis: Any, ndim: int) -> int:
    try:
        return canonical_axis(axis, ndim)
    except TypeError as error:
        if isinstance(axis, tuple) or np.ndim(axis):
            raise TypeError(f"{name}: axis must be an integer, but an array or a tuple was given. "
                            f"{ARRAYS.format(name)}") from None
        raise error


def joined(name: str, parts: list[Any], axis: AxisLike) -> Any:
    """The parts, of one dtype, one after the other along `axis`."""
    if not parts:
        raise ValueError("Need at least one array to concatenate.")
    ndim = get_aval(parts[0]).ndim
    if not ndim:
        raise ValueError("Zero-dimensional arrays cannot be concatenated. " + (
            ARRAYS.format(name) if hasattr(axis, "__len__") else
            how_to_join(list(map(get_aval, parts)))))
    axis = _axis(name, axis, ndim)
    if len(parts) == 1:
        return parts[0]
    return lax.concatenate(parts, axis)


def _rows_joined(name: str, array: ArrayLike, shape_of: Callable[[Axes], Axes], axis: int | None,
                 dtype: DTypeLike) -> Any:
    """The slices of an array along its first axis, each reshaped, one after the other along `axis`
    (None: the second one, if there are two): no slice is taken, so that they may be cut."""
    (x,) = operands(name, array)
    if dtype is not None:
        x = convert(x, dtype)
    count, *own = get_aval(x).shape
    row = shape_of(tuple(own))
    if not row:
        raise ValueError("Zero-dimensional arrays cannot be concatenated.")
    axis = min(1, len(row) - 1) if axis is None else _axis(name, axis, len(row))
    if row != tuple(own):
        x = lax.reshape(x, (count, *row))
    return lax.reshape(moved(x, 0, axis), (*row[:axis], count * row[axis], *row[axis + 1:]))


# What makes of each slice of an array a part to join.
_ROW_SHAPES: dict[str, Callable[[Axes], Axes]] = {
    "hstack": lambda row: row or (1,),
    "vstack": lambda row: (*(1,) * (2 - len(row)), *row),
    "dstack": lambda row: (*(1,) * (2 - len(row)), *row, *(1,) * (len(row) < 3)),
    "column_stack": lambda row: (*row, *(1,) * (2 - len(row))),
}


def _one_part(arrays: object = (), axis: int | Sequence[int] = 0, *rest: Any) -> Any:
    """The array, of one that is joined with no other."""
    if isinstance(arrays, (list, tuple)) and len(arrays) == 1 and not rest:
        (part,) = arrays
        if type(part) is ArrayImpl and type(axis) is int and -part.ndim <= axis < part.ndim:
            return part
    return None


@numpy_function(static_argnames=("axis", "dtype"), unchanged=_one_part)
def concatenate(arrays: Any, axis: int | None = 0, dtype: Any = None) -> Array:
    """The arrays joined along an axis.

    Args:
      arrays: sequence of arrays whose shapes differ along `axis` only, or one array, whose slices
        along the first axis are joined.
      axis: int; None flattens the arrays first.
      dtype: of the result; by default the common dtype.

    Returns:
      An array whose size along the axis is the sum of theirs, of the dtype to which they promote.

    Raises:
      TypeError: the shapes do not fit together.
      ValueError: there are no arrays, or they have no axes.

    >>> import pyjx as jax
    >>> jax.numpy.concatenate([jax.numpy.arange(2), jax.numpy.arange(3)]).tolist()
    [0, 1, 0, 1, 2]
    """
    if _is_one_array(arrays) and arrays.ndim > 1 and arrays.shape[0] and axis is not None:
        if dtype is not None:
            dtype = _dtype_of_joined("concatenate", dtype)
        return _rows_joined("concatenate", arrays, lambda row: row, axis, dtype)
    parts = parts_of("concatenate", arrays, dtype)
    if axis is None:
        parts, axis = [lax.reshape(x, (get_aval(x).size,)) for x in parts], 0
    return joined("concatenate", parts, axis)


@numpy_function(static_argnames=("axis",), unchanged=_one_part)
def concat(arrays: Array | np.ndarray | Sequence[ArrayLike], /, *, axis: int | None = 0) -> Array:
    """The arrays joined along an axis: `concatenate` as in the array API standard.

    Returns:
      An array whose size along the axis is the sum of theirs, of the dtype to which they promote.

    >>> import pyjx as jax
    >>> jax.numpy.concat([jax.numpy.arange(2), jax.numpy.arange(2)]).tolist()
    [0, 1, 0, 1]
    """
    return body_of(concatenate)(arrays, axis)


@numpy_function(static_argnames=("axis", "dtype"))
def stack(arrays: Any, axis: int = 0, out: None = None, dtype: DTypeLike | None = None) -> Array:
    """The arrays, of one shape, joined along a new axis.

    Args:
      arrays: sequence of arrays, or one array, whose slices along the first axis are stacked.
      axis: position of the new axis in the result.
      out: not supported.
      dtype: of the result; by default the common dtype.

    Returns:
      An array with one axis more than each argument, whose size is their number, of the dtype to
      which they promote.

    Raises:
      ValueError: there are no arrays, or the shapes differ.

    >>> import pyjx as jax
    >>> jax.numpy.stack([jax.numpy.arange(2), jax.numpy.arange(2)], axis=1).tolist()
    [[0, 0], [1, 1]]

    `concatenate` joins along an axis that there is, `stack` along a new one.

    >>> x = jax.numpy.ones((2, 3))
    >>> jax.numpy.stack([x, x]).shape, jax.numpy.concatenate([x, x]).shape
    ((2, 2, 3), (4, 3))
    """
    if type(axis) is not int and np.ndim(axis):  # the arrays are given one by one
        _axis("stack", axis, 1)
    no_out("stack", out)
    one = _is_one_array(arrays)
    if one and arrays.ndim and arrays.shape[0]:
        (x,) = operands("stack", arrays)
        if dtype is not None:
            x = convert(x, dtypes.check_and_canonicalize_user_dtype(dtype, "stack"))
        return moved(x, 0, _axis("stack", axis, arrays.ndim))
    parts = parts_of("stack", arrays, dtype)
    if not parts:
        raise ValueError("Need at least one array to stack.")
    shapes = [get_aval(x).shape for x in parts]
    if any([s != shapes[0] for s in shapes]) and len({*map(len, shapes)}) == 1:
        raise ValueError("All input arrays must have the same shape. Got "
                         f"{', '.join(map(str, shapes))}.")
    return lax.stack(parts, _axis("stack", axis, len(shapes[0]) + 1))


@numpy_function(static_argnames=("axis",))
def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The slices of an array along an axis.

    Returns:
      A tuple of arrays without the axis.

    >>> import pyjx as jax
    >>> [int(x) for x in jax.numpy.unstack(jax.numpy.arange(3))]
    [0, 1, 2]
    """
    (x,) = operands("unstack", x)
    if not get_aval(x).ndim:
        raise ValueError("Unstack requires arrays with rank > 0, however a scalar array was "
                         "passed.")
    return tuple(lax.unstack(x, canonical_axis(axis, get_aval(x).ndim)))


def _stacked(name: str, at_least: Callable[[Any], Any], axis: int | None, tup: Any, dtype: Any
             ) -> Any:
    """The arrays joined along `axis` (None: the second one, if there are two)."""
    if dtype is not None:
        dtype = _dtype_of_joined(name, dtype)
    if _is_one_array(tup) and tup.ndim and tup.shape[0]:
        return _rows_joined(name, tup, _ROW_SHAPES[name], axis, dtype)
    parts = [at_least(x) for x in _given(name, tup)]
    if dtype is not None:
        parts = [convert(x, dtype) for x in parts]
    elif parts:
        parts = promote_dtypes(*parts)
    if axis is None:
        axis = 1 if parts and get_aval(parts[0]).ndim > 1 else 0
    return joined(name, parts, axis)


def _dtype_of_joined(name: str, dtype: DTypeLike) -> Any:
    try:
        return dtypes.check_and_canonicalize_user_dtype(dtype, name)
    except (TypeError, ValueError) as error:
        if isinstance(dtype, (list, tuple)) or hasattr(dtype, "aval"):
            raise type(error)(f"{name}: dtype must be a dtype, not an array or a sequence. "
                              f"{ARRAYS.format(name)} {error}"
                              ) from None
        raise


@numpy_function(static_argnames=("dtype",))
def vstack(tup: Array | np.ndarray | Sequence[ArrayLike], dtype: Any = None) -> Array:
    """The arrays as rows of one: joined along the first of at least two axes.

    Returns:
      An array of two axes at least (for `dstack` three), of the dtype to which the arguments
      promote; of vectors `hstack` makes a vector.

    >>> import pyjx as jax
    >>> jax.numpy.vstack([jax.numpy.arange(2), jax.numpy.arange(2)]).tolist()
    [[0, 1], [0, 1]]
    """
    return _stacked("vstack", at_least_2d, 0, tup, dtype)


@numpy_function(static_argnames=("dtype",))
def hstack(tup: Array | np.ndarray | Sequence[ArrayLike], dtype: Any = None) -> Array:
    """The arrays side by side: joined along the second axis, or the only one.

    Returns:
      An array of two axes at least (for `dstack` three), of the dtype to which the arguments
      promote; of vectors `hstack` makes a vector.

    >>> import pyjx as jax
    >>> jax.numpy.hstack([jax.numpy.arange(2), 5]).tolist()
    [0, 1, 5]
    """
    return _stacked("hstack", at_least_1d, None, tup, dtype)


@numpy_function(static_argnames=("dtype",))
def dstack(tup: Array | np.ndarray | Sequence[ArrayLike], dtype: Any = None) -> Array:
    """The arrays joined along the third of at least three axes.

    Returns:
      An array of two axes at least (for `dstack` three), of the dtype to which the arguments
      promote; of vectors `hstack` makes a vector.

    >>> import pyjx as jax
    >>> jax.numpy.dstack([jax.numpy.arange(2), jax.numpy.arange(2)]).tolist()
    [[[0, 0], [1, 1]]]
    """
    return _stacked("dstack", at_least_3d, 2, tup, dtype)


def _as_column(x: ArrayLike) -> Any:
    ndim = get_aval(x).ndim
    return x if ndim >= 2 else permuted(at_least_2d(x), (1, 0))


@numpy_function
def column_stack(tup: Any) -> Array:
    """One-dimensional arrays as the columns of a matrix; matrices are taken as they are.

    Returns:
      An array of two axes at least (for `dstack` three), of the dtype to which the arguments
      promote; of vectors `hstack` makes a vector.

    >>> import pyjx as jax
    >>> jax.numpy.column_stack([jax.numpy.arange(2), jax.numpy.arange(2)]).tolist()
    [[0, 0], [1, 1]]
    """
    return _stacked("column_stack", _as_column, 1, tup, None)


@numpy_function(static_argnames=("axis",))
def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """`arr` with `values` behind it along an axis; without one both are flattened.

    Args:
      arr: an array.
      values: an array of the same shape but along `axis`; without an axis of any shape.
      axis: the axis; None flattens both.

    Returns:
      An array whose size along the axis is the sum of theirs, of the dtype to which they promote.

    >>> import pyjx as jax
    >>> jax.numpy.append(jax.numpy.arange(2), 7).tolist()
    [0, 1, 7]
    """
    parts = promote_dtypes(*operands("append", arr, values))
    if axis is None:
        return concatenate(parts, None)
    # `joined` would speak of one sequence of arrays; it refuses scalars
    return joined("append", parts, canonical_axis(axis, get_aval(parts[0]).ndim or 1))


@numpy_function
def block(arrays: Any) -> Array:
    """An array put together from nested lists of blocks.

    The innermost lists are joined along the last axis, those around them along the second last,
    and so on.

    Args:
      arrays: an array, or lists of such, also in one another: innermost ones are joined along the
        last axis.

    Returns:
      An array of the dtype to which the blocks promote.

    >>> import pyjx as jax
    >>> jax.numpy.block([[1, 2], [3, 4]]).tolist()
    [[1, 2], [3, 4]]
    """
    blocks, depth = _joined_blocks(arrays, 0)
    return jnp.ufuncs.as_array(*operands("block", blocks)) if not depth else blocks


def _joined_blocks(arrays: Any, level: int) -> tuple[Any, int]:
    if isinstance(arrays, tuple):
        raise ValueError("jax.numpy.block does not allow tuples, got arrays=" + repr(arrays))
    if not isinstance(arrays, list):
        return operands("block", arrays)[0], level
    if not arrays:
        raise ValueError("jax.numpy.block does not allow empty list arguments")
    blocks = [_joined_blocks(x, level + 1) for x in arrays]
    depths = [depth for _, depth in blocks]
    if len(set(depths)) > 1:
        raise ValueError("Mismatched list depths in jax.numpy.block")
    parts = [x for x, _ in blocks]
    rank = max(depths[0] - level, *[get_aval(x).ndim for x in parts])
    parts = promote_dtypes(*[_at_least(x, rank) for x in parts])
    return joined("block", parts, rank - (depths[0] - level)), depths[0]


def _at_least(x: ArrayLike, rank: int) -> Any:
    missing = rank - get_aval(x).ndim
    return with_new_axes(x, tuple(range(missing))) if missing > 0 else x


# -- cutting ---------------------------------------------------------------------------------------


_MOST_EMPTY = 10_000  # parts of no elements: more come of arrays of data, and take all memory


def _cut(name: str, ary: ArrayLike, indices_or_sections: Any, axis: AxisLike, uneven: bool
        ) -> list[Any]:
    (ary,) = operands(name, ary)
    aval = get_aval(ary)
    axis = canonical_axis(axis, aval.ndim)
    size = aval.shape[axis]
    context = f"in jax.numpy.{name} argument 1"
    where = indices_or_sections
    if hasattr(where, "ndim") and where.ndim:
        where = np.asarray(concrete_or_error(None, where, context)).tolist()
    if isinstance(where, (tuple, list)):
        if isinstance(size, int) and len(where) > max(size, _MOST_EMPTY):
            raise ValueError(f"{name}: indices_or_sections gives {len(where)} positions, more than "
                             f"the {size} of axis {axis}: {shortened(where)}")
        indices = as_ints(name, "indices_or_sections",
                          [concrete_or_error(None, i, context) for i in where])
        cuts = [min(i if i >= 0 else max(i + size, 0), size) for i in indices]
        ends = [0, *cuts, size]
        return list(lax.split(ary, [b - a for a, b in itertools.pairwise(ends)], axis))
    sections = as_truncated_int(name, "indices_or_sections",
                                concrete_or_error(None, where, context))
    part, rest = divmod(size, sections)
    if uneven and isinstance(size, SymbolicDim):
        sizes = [(size + i) // sections for i in range(1, sections)][::-1]
        return list(lax.split(ary, [*sizes, size - sum(sizes)], axis))
    if rest and not uneven:
        raise ValueError(f"array split does not result in an equal division: rest is {rest}. "
                         f"{name} was to cut axis {axis}, of size {size}, in {sections} parts; "
                         "array_split makes parts of different sizes.")
    return list(lax.split(ary, [part + (i < rest) for i in range(sections)], axis))


@numpy_function(static_argnames=("indices_or_sections", "axis"))
def split(ary: ArrayLike, indices_or_sections: ArrayLike | Sequence[int],
          axis: int = 0) -> list[Array]:
    """The array cut into parts along an axis.

    Args:
      ary: array.
      indices_or_sections: the number of equal parts, whose fraction is cut off, or the indices
        where to cut.
      axis: int.

    Returns:
      A list of arrays, which lie behind one another along the axis.

    Raises:
      ValueError: the axis cannot be cut into so many equal parts.

    >>> import pyjx as jax
    >>> [x.tolist() for x in jax.numpy.split(jax.numpy.arange(4), [1, 3])]
    [[0], [1, 2], [3]]
    """
    return _cut("split", ary, indices_or_sections, axis, False)


@numpy_function(static_argnames=("indices_or_sections", "axis"))
def array_split(ary: ArrayLike, indices_or_sections: ArrayLike | Sequence[int],
                axis: int = 0) -> list[Array]:
    """The array cut into parts along an axis, the first ones longer by one if need be.

    Returns:
      A list of arrays, which lie behind one another along the axis.

    >>> import pyjx as jax
    >>> [x.tolist() for x in jax.numpy.array_split(jax.numpy.arange(3), 2)]
    [[0, 1], [2]]
    """
    return _cut("array_split", ary, indices_or_sections, axis, True)


@numpy_function(static_argnames=("indices_or_sections",))
def vsplit(ary: ArrayLike, indices_or_sections: ArrayLike | Sequence[int]) -> list[Array]:
    """The array cut along its first axis; see `split`.

    Returns:
      A list of arrays, which lie behind one another along the axis.

    >>> import pyjx as jax
    >>> [x.shape for x in jax.numpy.vsplit(jax.numpy.ones((4, 2)), 2)]
    [(2, 2), (2, 2)]
    """
    return _cut("vsplit", ary, indices_or_sections, 0, False)


@numpy_function(static_argnames=("indices_or_sections",))
def hsplit(ary: ArrayLike, indices_or_sections: ArrayLike | Sequence[int]) -> list[Array]:
    """The array cut along its second axis, or its only one; see `split`.

    Returns:
      A list of arrays, which lie behind one another along the axis.

    >>> import pyjx as jax
    >>> [x.shape for x in jax.numpy.hsplit(jax.numpy.ones((2, 4)), 2)]
    [(2, 2), (2, 2)]
    """
    (ary,) = operands("hsplit", ary)
    return _cut("hsplit", ary, indices_or_sections, 0 if get_aval(ary).ndim == 1 else 1, False)


@numpy_function(static_argnames=("indices_or_sections",))
def dsplit(ary: ArrayLike, indices_or_sections: ArrayLike | Sequence[int]) -> list[Array]:
    """The array cut along its third axis; see `split`.

    Returns:
      A list of arrays, which lie behind one another along the axis.

    >>> import pyjx as jax
    >>> [x.shape for x in jax.numpy.dsplit(jax.numpy.ones((1, 2, 4)), 2)]
    [(1, 2, 2), (1, 2, 2)]
    """
    return _cut("dsplit", ary, indices_or_sections, 2, False)


# -- repetition ------------------------------------------------------------------------------------


@numpy_function(static_argnames=("reps",))
def tile(A: ArrayLike, reps: int | Sequence[int]) -> Array:
    """The array repeated `reps` times along its axes; missing axes and counts are 1.

    Returns:
      An array whose sizes are those of the argument times `reps`; where one has fewer axes than the
      other, ones are put in front.

    >>> import pyjx as jax
    >>> jax.numpy.tile(jax.numpy.array([1, 2]), (2, 2)).tolist()
    [[1, 2, 1, 2], [1, 2, 1, 2]]
    """
    (x,) = operands("tile", A)
    counts = as_tuple(int(reps) if isinstance(reps, np.bool_) else reps)
    ndim = get_aval(x).ndim
    if len(counts) > ndim:
        x = with_new_axes(x, tuple(range(len(counts) - ndim)))
    return lax.tile(x, (1,) * (ndim - len(counts)) + counts)


@numpy_function(static_argnames=("new_shape",))
def resize(a: ArrayLike, new_shape: SupportsIndex | Sequence[SupportsIndex]) -> Array:
    """The elements repeated, or cut off, to fill `new_shape`.

    Returns:
      An array of the new shape.

    >>> import pyjx as jax
    >>> jax.numpy.resize(jax.numpy.array([1, 2, 3]), (2, 2)).tolist()
    [[1, 2], [3, 1]]
    """
    (a,) = operands("resize", a)
    shape = concrete_shape(new_shape)
    if any(n < 0 for n in shape):
        raise ValueError("all elements of `new_shape` must be non-negative")
    size, old = math.prod(shape), get_aval(a).size
    if not size or not old:
        return lax.full(shape, 0, get_aval(a).dtype)
    flat = lax.reshape(a, (old,))
    if not type(size) is type(old) is int:
        places = jnp.mod(jnp.arange(size), old)
        return lax.reshape(jnp.take(flat, places, mode="clip"), shape)
    if size > old:
        flat = lax.tile(flat, (-(-size // old),))
    return lax.reshape(lax.slice_in_dim(flat, 0, size), shape)


@op_jit(static_argnames=("count", "axis"))
def repeated(a: ArrayLike, count: int, axis: int | None) -> Any:
    """Each slice of `a` along `axis`, or by default each element, repeated `count` times."""
    a, axis = along(a, axis)
    shape = get_aval(a).shape
    kept = [i if i <= axis else i + 1 for i in range(len(shape))]
    wide = lax.broadcast_in_dim(a, (*shape[:axis + 1], count, *shape[axis + 1:]), kept)
    return lax.reshape(wide, (*shape[:axis], shape[axis] * count, *shape[axis + 1:]))


def repeat(a: ArrayLike, repeats: ArrayLike, axis: int | None = None, *,
           total_repeat_length: int | None = None, out_sharding: ShardingLike = None) -> Array:
    """Each slice of the array repeated along an axis.

    Args:
      a: array.
      repeats: how often; an int, or one for each slice.
      axis: int; by default the array is flattened.
      total_repeat_length: size of the result along the axis, needed when `repeats` is traced.
        The result is cut off, or filled with copies of the last slice.
      out_sharding: how the result lies along the Explicit axes of the mesh.

    Returns:
      An array with as many elements along the axis as the repeats have together; without an axis a
      one-dimensional one.

    Raises:
      ConcretizationTypeError: `repeats` is traced and `total_repeat_length` is missing.
      TypeError: `repeats` is no integer, or negative.
      ValueError: `repeats` does not fit the array.

    >>> import pyjx as jax
    >>> jax.numpy.repeat(jax.numpy.array([5, 6]), jax.numpy.array([1, 2])).tolist()
    [5, 6, 6]
    """
    if out_sharding is not None:
        return in_auto_mode(partial(repeat, axis=axis, total_repeat_length=total_repeat_length),
                            out_sharding, "repeat")(a, repeats)
    if not isinstance(repeats, SymbolicDim):
        a, repeats = operands("repeat", a, repeats)
    alike = total_repeat_length is None and isinstance(repeats, int | np.integer | SymbolicDim)
    if not alike or configuration.mesh.value is not None:  # then users say how results lie
        _check_is_whole(get_aval(a), axis)
    if isinstance(repeats, SymbolicDim) and total_repeat_length is None:
        return _repeated_by_size(a, repeats, axis)
    if axis is None and type(repeats) is int and repeats >= 0 and total_repeat_length is None:
        return repeated(a, count=repeats, axis=None)
    a, axis = along(a, axis if get_aval(a).ndim else None)
    if total_repeat_length is None:
        repeats = concrete_or_error(None, repeats, (
            "When jit-compiling jnp.repeat, the total number of repeats must be static. To fix "
            "this, either specify a static value for `repeats`, or pass a static value to "
            "`total_repeat_length`."), ARRAY_OF_STATIC if getattr(repeats, "ndim", 0) else None)
        return _repeat_static(a, np.ravel(np.asarray(repeats)), axis)
    return _repeat_dynamic(a, repeats, axis, index(total_repeat_length))


def _check_is_whole(aval: ShapedArray | AbstractRef, axis: int | None) -> None:
    """Raise ValueError if an array is cut along the axis to repeat slices along."""
    entries = entries_of(aval)
    if any(entries if axis is None else entries[axis:axis + 1 or None]):
        raise ValueError("Please pass sharding to `jnp.repeat` via `out_sharding` parameter: the "
                         f"array of type {aval.str_short()} is cut along the axis that is longer "
                         "in the result.")


def _repeated_by_size(a: ArrayLike, count: Any, axis: int | None) -> Any:
    """The slices of an array, each as often as a symbolic dimension says."""
    (a,) = operands("repeat", a)
    ndim = get_aval(a).ndim
    axis = canonical_axis(axis, ndim) if axis is not None and ndim else None
    return body_of(repeated)(a, count, axis)


def _check_repeats(count: int, size: int) -> None:
    if count not in (1, size):
        raise ValueError(f"repeat: repeats must be broadcastable to the axis, got {count} "
                         f"repeats for {size} slices")


def _repeat_static(a: ArrayLike, repeats: np.ndarray, axis: int) -> Any:
    size = get_aval(a).shape[axis]
    if repeats.size == 1:
        count = operator.index(repeats[0])
        if count < 0:
            raise TypeError(f"repeat: repeats must be nonnegative, got {count}.")
        return repeated(a, count=count, axis=axis)
    _check_repeats(repeats.size, size)

    index = np.repeat(np.arange(size, dtype=np.int32), repeats)
    return jnp.indexing.take(a, index, axis=axis, mode="clip")


def _repeat_dynamic(a: ArrayLike, repeats: ArrayLike, axis: int, total: int) -> Any:
    size = get_aval(a).shape[axis]
    count = get_aval(repeats).size
    _check_repeats(count, size)
    dtype = dtypes.default_int_dtype()
    each = lax.broadcast_in_dim(lax.reshape(convert(repeats, dtype), (count,)), (size,), (0,)) \
        if count == size else lax.broadcast_in_dim(
            lax.reshape(convert(repeats, dtype), ()), (size,), ())
    ends = lax.cumsum(each)  # slice i fills the places up to ends[i]
    place = lax.iota(dtype, total)
    wide = lax.broadcast_in_dim(place, (total, size), (0,))
    index = lax.reduce_sum(convert(lax.ge(wide, lax.broadcast_in_dim(ends, (total, size), (1,))),
                                   dtype), (1,))

    return jnp.indexing.take(a, index, axis=axis, mode="clip")
