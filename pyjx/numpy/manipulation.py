"""Shapes and axes: reshape, transpose, squeeze, broadcast, flip, roll."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, AxisLike
from pyjx.core.avals import canonical_shape, get_aval, shape_error
from pyjx.core.explicit import check_out_sharding, permuted_sharding, resolved_sharding, whole_along
from pyjx.core.integers import check_decided
from pyjx.core.layouts import ShardingLike
from pyjx.core.scalars import scalar_constant
from pyjx.core.trace import Tracer, is_concrete
from pyjx.engine.axes import check_permutation, transpose_p
from pyjx.errors import ConcretizationTypeError
from pyjx.lax.common import broadcast_shapes as _common_shape
from pyjx.lax.elementwise import stretch
from pyjx.numpy import ufuncs
from pyjx.numpy.operands import (
    all_axes,
    as_tuple,
    canonical_axes,
    canonical_axis,
    dtype_of,
    is_inexact,
    numpy_function,
)
from pyjx.numpy.patterns import roomy
from pyjx.numpy.promotion import convert, fitted, operands, spread
from pyjx.runtime.array import ArrayImpl
from pyjx.runtime.operations import body_of
from pyjx.runtime.resharding import placed

# -- reshape ---------------------------------------------------------------------------------------


def concrete_shape(shape: Any) -> tuple[int, ...]:
    """The tuple of ints that a shape argument stands for."""
    if isinstance(shape, Tracer) or (isinstance(shape, (tuple, list))
                                     and any(isinstance(d, Tracer) for d in shape)):
        raise shape_error(shape)
    try:
        return as_tuple(shape)
    except TypeError:
        raise shape_error(shape) from None


def inferred_shape(old: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...]:
    """`new` with an entry of -1 replaced so that the size is that of `old`."""
    size = math.prod(old)
    unknown = [i for i, n in enumerate(new) if n == -1]
    if len(unknown) > 1:
        raise TypeError(f"can only specify one unknown axis size with a `-1` value, got {new}")
    if unknown:
        known = -math.prod(new)
        if known == 0 or size % known:
            check_decided(old, new, size, known)
            raise TypeError(
                f"cannot reshape array of shape {old} (size {size}) into shape {new} because the "
                f"product of specified axis sizes ({known}) does not evenly divide {size}")
        i = unknown[0]
        new = (*new[:i], size // known, *new[i + 1:])
    elif math.prod(new) != size:
        raise TypeError(f"cannot reshape array of shape {old} (size {size}) into shape {new} "
                        f"(size {math.prod(new)})")
    return new


def _as_tuple(shape: Any, order: Any) -> str:
    sizes = (*shape, order) if isinstance(shape, (tuple, list)) else (shape, order)
    return f" If the last one is a size, give the shape as one tuple: {sizes}."


def _same_ints(given: Any, old: tuple[int, ...]) -> bool:
    """Whether an argument says the sizes, or the axes, that there are."""
    kind = type(given)
    if kind is not tuple:
        given = (given,) if kind is int else tuple(given) if kind is list else None
    try:
        return given == old and all([type(n) is int for n in given])
    except ConcretizationTypeError:  # of what is traced
        return False


def of_shape(a: Any = None, shape: object = None, *rest: Any) -> Any:
    """`a`, where it is an array that has this shape already."""
    return a if type(a) is ArrayImpl and not rest and _same_ints(shape, a.shape) else None


def of_new_shape(a: Any = None, shape: object = None, *rest: Any) -> Any:
    """As `of_shape`, also where the size of a vector is left open."""
    if type(a) is not ArrayImpl or rest:
        return None
    old = a.shape
    open_size = len(old) == 1 and _same_ints(shape, (-1,))
    return a if open_size or _same_ints(shape, old) else None


@numpy_function(static_argnames=("shape", "order", "copy", "out_sharding"), known=True,
                unchanged=of_new_shape)
def reshape(a: ArrayLike, shape: SupportsIndex | Sequence[SupportsIndex], order: str = "C", *,
            copy: bool | None = None, out_sharding: ShardingLike = None) -> Array:
    """The array with another shape and the same elements in the same order.

    Args:
      a: array.
      shape: int or sequence of ints; one may be -1 and follows from the others.
      order: "C" to read and write with the last index changing fastest, "F" with the first one.
      copy: True makes a copy in any case; otherwise the compiler decides.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    Returns:
      An array. Inside `jit` it is a NumPy array if `a` is one, so that its values remain known,
      unless a copy or a sharding is asked for.

    Raises:
      TypeError: the sizes differ.

    >>> import pyjx as jax
    >>> jax.numpy.reshape(jax.numpy.arange(6), (2, -1)).tolist()
    [[0, 1, 2], [3, 4, 5]]
    >>> jax.numpy.arange(6).reshape(3, -1).shape
    (3, 2)
    """
    (a,) = operands("reshape", a)
    old = get_aval(a).shape
    try:
        new = inferred_shape(old, concrete_shape(shape))
    except TypeError as error:
        if isinstance(order, str):
            raise
        raise TypeError(f"{str(error).removesuffix('.')}.{_as_tuple(shape, order)}") from None
    if (type(a) is np.ndarray and not copy and out_sharding is None and order in ("C", "F")
            and min(new, default=0) >= 0):
        return a.reshape(new, order=order)  # type: ignore
    if order == "C":
        x: Any = a
        if new != old or out_sharding is not None or not isinstance(a, Tracer):
            x = lax.reshape(a, new, out_sharding=out_sharding)
    elif order == "F":
        back = tuple(range(len(new)))[::-1]
        if out_sharding is not None:
            out_sharding = permuted_sharding(resolved_sharding(out_sharding, new, "reshape"), back)
        x = lax.reshape(a, new[::-1], tuple(range(len(old)))[::-1], out_sharding=out_sharding)
        x = lax.transpose(x, back)
    elif order == "A":
        raise NotImplementedError("np.reshape order=A is not implemented.")
    else:
        hint = " The orders are 'C' and 'F'." if isinstance(order, str) else _as_tuple(shape, order)
        raise ValueError(f"Unexpected value for 'order' argument: {order}.{hint}")
    return lax.copy_p.bind(x) if copy else x


@numpy_function(static_argnames=("order", "out_sharding"))
def ravel(a: ArrayLike, order: str = "C", *, out_sharding: ShardingLike = None) -> Array:
    """The elements as a one-dimensional array.

    Args:
      a: an array.
      order: "C" to read with the last index changing fastest, "F" with the first one.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    Returns:
      A one-dimensional array.

    >>> import pyjx as jax
    >>> jax.numpy.ravel(jax.numpy.array([[1, 2], [3, 4]]), order="F").tolist()
    [1, 3, 2, 4]
    """
    if order == "K":
        raise NotImplementedError("Ravel not implemented for order='K'.")
    if order not in ("A", "C", "F"):
        hint = f"From an axis on it is x.reshape(*x.shape[:{order}], -1)." if (
            str(order).isdigit()) else "The orders are 'C' and 'F'."
        raise ValueError(f"Unexpected value for 'order' argument: {order}. {hint}")
    (a,) = operands("ravel", a)
    return body_of(reshape)(a, (get_aval(a).size,), order, out_sharding=out_sharding)


# -- the order of axes -----------------------------------------------------------------------------


def permuted(a: ArrayLike, permutation: tuple[int, ...]) -> Any:
    """`a` with its axes in another order; itself if the order is the old one."""
    if permutation == all_axes(len(permutation)) and len(permutation) == get_aval(a).ndim:
        return a
    return transpose_p.bind(a, permutation=permutation)


def _in_order(a: Any = None, axes: object = None, *rest: Any) -> Any:
    """`a`, where it is an array whose axes are in this order already."""
    if type(a) is ArrayImpl and not rest:
        old = all_axes(a.ndim)
        return a if _same_ints(old[::-1] if axes is None else axes, old) else None
    return None


@numpy_function(static_argnames=("axes",), unchanged=_in_order)
def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """The array with its axes in another order, by default reversed.

    Args:
      a: array.
      axes: axis i of the result is `axes[i]` of `a`.

    Returns:
      An array of the same elements, whose axes are in another order. It is a new one, not a view.

    Raises:
      TypeError: `axes` is not a permutation of the axes.

    >>> import pyjx as jax
    >>> jax.numpy.transpose(jax.numpy.ones((2, 3, 4)), (1, 2, 0)).shape
    (3, 4, 2)
    """
    a = ufuncs.as_array(*operands("transpose", a))
    ndim = get_aval(a).ndim
    if axes is None:
        return permuted(a, all_axes(ndim)[::-1])
    order = tuple([canonical_axis(i, ndim) for i in as_tuple(axes)])
    check_permutation(order, get_aval(a).shape, as_tuple(axes))
    return permuted(a, order)


@numpy_function(static_argnames=("axes",), unchanged=_in_order)
def permute_dims(a: ArrayLike, /, axes: Sequence[int]) -> Array:
    """The array with its axes in another order: axis i of the result is `axes[i]` of `a`.

    Returns:
      An array of the same elements, whose axes are in another order. It is a new one, not a view.

    >>> import pyjx as jax
    >>> jax.numpy.permute_dims(jax.numpy.ones((2, 3, 4)), (1, 2, 0)).shape
    (3, 4, 2)
    """
    return body_of(transpose)(a, axes)


@numpy_function
def matrix_transpose(x: ArrayLike, /) -> Array:
    """The array with its last two axes exchanged.

    Returns:
      An array (..., n, m) of an array (..., m, n).

    >>> import pyjx as jax
    >>> jax.numpy.matrix_transpose(jax.numpy.ones((2, 3, 4))).shape
    (2, 4, 3)
    """
    return with_last_two_exchanged(*operands("matrix_transpose", x))


def with_last_two_exchanged(x: ArrayLike) -> Any:
    """The transposes of matrices.

    Raises:
      ValueError: there are none.
    """
    ndim = get_aval(x).ndim
    if ndim < 2:
        raise ValueError("x must be at least two-dimensional for matrix_transpose; got "
                         f"ndim={ndim}")
    return permuted(x, (*range(ndim - 2), ndim - 1, ndim - 2))


@numpy_function(static_argnames=("axis1", "axis2"))
def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """The array with two axes exchanged.

    Returns:
      An array of the same elements, whose axes are in another order. It is a new one, not a view.

    >>> import pyjx as jax
    >>> jax.numpy.swapaxes(jax.numpy.ones((2, 3, 4)), 0, -1).shape
    (4, 3, 2)
    """
    (a,) = operands("swapaxes", a)
    ndim = get_aval(a).ndim
    order = list(range(ndim))
    i, j = canonical_axis(axis1, ndim), canonical_axis(axis2, ndim)
    order[i], order[j] = order[j], order[i]
    return permuted(a, tuple(order))


def moved(a: ArrayLike, source: Any, destination: int | Sequence[int]) -> Any:
    """`a` with the axes `source` moved to the positions `destination`."""
    ndim = get_aval(a).ndim
    source, destination = as_tuple(source), as_tuple(destination)
    if len(source) != len(destination):
        raise ValueError(f"Inconsistent number of elements: {len(source)} vs {len(destination)}")
    source, destination = canonical_axes(source, ndim), canonical_axes(destination, ndim)
    order = [i for i in range(ndim) if i not in source]
    for new, old in sorted(zip(destination, source, strict=True)):
        order.insert(new, old)
    return permuted(a, tuple(order))


@numpy_function(static_argnames=("source", "destination"))
def moveaxis(a: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """The array with some axes moved to other positions; the others keep their order.

    Returns:
      An array of the same elements, whose axes are in another order. It is a new one, not a view.

    Raises:
      ValueError: the numbers of axes and of positions differ, or one is out of bounds.

    >>> import pyjx as jax
    >>> jax.numpy.moveaxis(jax.numpy.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    (a,) = operands("moveaxis", a)
    return moved(a, source, destination)


@numpy_function(static_argnames=("axis", "start"))
def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """The array with one axis moved in front of the axis `start`.

    Args:
      a: an array.
      axis: the axis that moves.
      start: the axis before which it comes.

    Returns:
      An array of the same elements, whose axes are in another order. It is a new one, not a view.

    >>> import pyjx as jax
    >>> jax.numpy.rollaxis(jax.numpy.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    (a,) = operands("rollaxis", a)
    ndim = get_aval(a).ndim
    axis = canonical_axis(axis, ndim)
    start = operator.index(start)
    if not -ndim <= start <= ndim:
        raise ValueError(f"start={start} must satisfy {-ndim}<=start<={ndim}")
    start += ndim if start < 0 else 0
    return moved(a, axis, start - 1 if start > axis else start)


# -- axes of size 1 --------------------------------------------------------------------------------


@numpy_function(static_argnames=("axis",))
def squeeze(a: ArrayLike, axis: AxisLike = None) -> Array:
    """The array without axes of size 1.

    Args:
      a: array.
      axis: the axes to remove; by default all of size 1.

    Returns:
      An array with the same elements and fewer axes.

    Raises:
      ValueError: an axis has another size.

    >>> import pyjx as jax
    >>> jax.numpy.squeeze(jax.numpy.ones((1, 3, 1)), axis=0).shape
    (3, 1)
    """
    (a,) = operands("squeeze", a)
    shape = get_aval(a).shape
    axes = (tuple([i for i, n in enumerate(shape) if n == 1]) if axis is None
            else _different_axes(axis, len(shape)))
    return lax.squeeze(a, axes)


def _different_axes(axis: AxisLike, ndim: int) -> tuple[int, ...]:
    try:
        return canonical_axes(axis, ndim)
    except ValueError as error:
        if isinstance(error, IndexError):  # one is out of bounds
            raise
        raise ValueError(f"squeeze: dimensions are not unique: {error}") from None


@numpy_function(static_argnames=("axis",))
def expand_dims(a: ArrayLike, axis: int | Sequence[int]) -> Array:
    """The array with new axes of size 1 at the positions `axis` of the result.

    Returns:
      An array with one axis more for each one named.

    Raises:
      ValueError: a position is out of bounds or named twice.

    >>> import pyjx as jax
    >>> jax.numpy.expand_dims(jax.numpy.ones((3,)), (0, 2)).shape
    (1, 3, 1)
    """
    (a,) = operands("expand_dims", a)
    return with_new_axes(a, as_tuple(axis))


def with_new_axes(a: ArrayLike, axes: tuple[int, ...]) -> Any:
    """`a` with new axes of size 1."""
    ndim = get_aval(a).ndim + len(axes)
    return lax.expand_dims(a, [canonical_axis(i, ndim) for i in axes])


def _each(name: str, at_least: Callable[[ArrayLike], ArrayLike], arys: tuple[Any, ...]) -> Any:
    if len(arys) == 1:
        return at_least(*operands(name, *arys))
    return tuple([jnp.asarray(at_least(x)) for x in operands(name, *arys)])


def at_least_1d(x: ArrayLike) -> Any:
    return with_new_axes(x, (0,)) if not get_aval(x).ndim else x


def at_least_2d(x: ArrayLike) -> Any:
    ndim = get_aval(x).ndim
    return x if ndim >= 2 else with_new_axes(x, (0,) if ndim else (0, 1))


def at_least_3d(x: ArrayLike) -> Any:
    ndim = get_aval(x).ndim
    return x if ndim >= 3 else with_new_axes(x, ((0, 1, 2), (0, 2), (2,))[ndim])


@numpy_function
def atleast_1d(*arys: Any) -> Any:
    """The array with at least one axis; for several arrays a tuple of them.

    Returns:
      An array, or of several arguments a tuple of arrays.

    >>> import pyjx as jax
    >>> jax.numpy.atleast_1d(3.0).shape
    (1,)
    """
    return _each("atleast_1d", at_least_1d, arys)


@numpy_function
def atleast_2d(*arys: Any) -> Any:
    """The array with at least two axes, new ones in front; for several arrays a tuple of them.

    Returns:
      An array, or of several arguments a tuple of arrays.

    >>> import pyjx as jax
    >>> jax.numpy.atleast_2d(jax.numpy.ones(3)).shape
    (1, 3)
    """
    return _each("atleast_2d", at_least_2d, arys)


@numpy_function
def atleast_3d(*arys: Any) -> Any:
    """The array with at least three axes; for several arrays a tuple of them.

    Shape (n,) becomes (1, n, 1) and shape (m, n) becomes (m, n, 1).

    Returns:
      An array, or of several arguments a tuple of arrays.

    >>> import pyjx as jax
    >>> jax.numpy.atleast_3d(jax.numpy.ones((2, 3))).shape
    (2, 3, 1)
    """
    return _each("atleast_3d", at_least_3d, arys)


# -- broadcasting ----------------------------------------------------------------------------------


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape to which shapes broadcast by NumPy's rules.

    Args:
      *shapes: tuples of ints, or single ints.

    Returns:
      A tuple of Python ints, also where arguments are traced.

    Raises:
      ValueError: two of them differ along an axis where neither is 1.

    >>> import pyjx as jax
    >>> jax.numpy.broadcast_shapes((2, 1), (3,), 1)
    (2, 3)
    """
    return _common_shape(*[canonical_shape(s) for s in shapes])


@numpy_function
def broadcast_arrays(*args: Any) -> tuple[Array, ...]:
    """The arrays stretched to their common shape.

    Returns:
      A tuple of arrays of one shape.

    Raises:
      ValueError: the shapes do not broadcast.

    >>> import pyjx as jax
    >>> [x.shape for x in jax.numpy.broadcast_arrays(jax.numpy.ones((2, 1)), jax.numpy.ones(3))]
    [(2, 3), (2, 3)]
    """
    arrays = operands("broadcast_arrays", *args)
    shape = _common_shape(*[get_aval(x).shape for x in arrays])
    return tuple([spread(x, shape) for x in arrays])


@numpy_function(static_argnames=("shape", "out_sharding"), unchanged=of_shape)
def broadcast_to(array: ArrayLike, shape: SupportsIndex | Sequence[SupportsIndex], *,
                 out_sharding: ShardingLike = None) -> Array:
    """The array stretched to `shape` by NumPy's rules.

    Returns:
      An array of that shape.

    Raises:
      ValueError: the array's shape does not fit.

    >>> import pyjx as jax
    >>> jax.numpy.broadcast_to(jax.numpy.arange(2), (2, 2)).tolist()
    [[0, 1], [0, 1]]
    """
    (array,) = operands("broadcast_to", array)
    shape = concrete_shape(shape)
    if out_sharding is not None:
        check_out_sharding(out_sharding, "broadcast_to")
        return placed(fitted(array, shape), out_sharding)
    return fitted(array, shape)


# -- flip and roll ---------------------------------------------------------------------------------


def flipped(m: ArrayLike, axis: AxisLike) -> Any:
    """`m` reversed along the given axes, None for all."""
    return lax.rev(m, canonical_axes(axis, get_aval(m).ndim))


@numpy_function(static_argnames=("axis",))
def flip(m: ArrayLike, axis: AxisLike = None) -> Array:
    """The array with the elements in reverse order along the given axes, by default all.

    Args:
      m: an array.
      axis: the axis or axes; None for all.

    Returns:
      An array of the shape and dtype of the argument.

    >>> import pyjx as jax
    >>> jax.numpy.flip(jax.numpy.array([1, 2, 3])).tolist()
    [3, 2, 1]
    """
    return flipped(operands("flip", m)[0], axis)


@numpy_function
def fliplr(m: ArrayLike) -> Array:
    """The array reversed along its second axis.

    Args:
      m: an array of two axes or more.

    Returns:
      An array of the shape and dtype of the argument.

    >>> import pyjx as jax
    >>> jax.numpy.fliplr(jax.numpy.array([[1, 2]])).tolist()
    [[2, 1]]
    """
    return flipped(operands("fliplr", m)[0], 1)


@numpy_function
def flipud(m: ArrayLike) -> Array:
    """The array reversed along its first axis.

    Args:
      m: an array of one axis or more.

    Returns:
      An array of the shape and dtype of the argument.

    >>> import pyjx as jax
    >>> jax.numpy.flipud(jax.numpy.array([[1], [2]])).tolist()
    [[2], [1]]
    """
    return flipped(operands("flipud", m)[0], 0)


@numpy_function(static_argnames=("k", "axes"))
def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """The array turned by 90 degrees `k` times, from the first axis towards the second.

    Args:
      m: an array.
      k: the number of quarter turns, from the first of the axes to the second one.
      axes: the two axes of the plane.

    Returns:
      An array of the dtype of the argument; of an odd number of quarter turns the two axes have
      changed their sizes.

    >>> import pyjx as jax
    >>> jax.numpy.rot90(jax.numpy.array([[1, 2], [3, 4]])).tolist()
    [[2, 4], [1, 3]]
    """
    (m,) = operands("rot90", m)
    ndim = get_aval(m).ndim
    if ndim < 2:
        raise ValueError("rot90 requires its first argument to have ndim at least two, but got "
                         f"shape {get_aval(m).shape}, which has ndim {ndim}")
    first, second = (canonical_axis(i, ndim) for i in axes)
    if first == second:
        raise ValueError("Axes must be different")
    k %= 4
    if k == 0:
        return m
    if k == 2:
        return flipped(m, (first, second))
    order = list(range(ndim))
    order[first], order[second] = order[second], order[first]
    if k == 1:
        return permuted(flipped(m, second), tuple(order))
    return flipped(permuted(m, tuple(order)), second)


@numpy_function(static_argnames=("axis",))
def roll(a: Array, shift: Any, axis: AxisLike = None) -> Array:
    """The elements moved along axes by `shift` places; those moved out at the end return in front.

    Args:
      a: array.
      shift: int, or one int an axis; may be an array.
      axis: the axes; by default the array is rolled as if it were flat.

    Returns:
      An array of the shape and dtype of the argument.

    Raises:
      ValueError: `shift` has more than one axis, or there are neither as many shifts as axes nor
        one for all, nor one axis for all shifts.

    >>> import pyjx as jax
    >>> jax.numpy.roll(jax.numpy.arange(5), 2).tolist()
    [3, 4, 0, 1, 2]
    """
    if isinstance(shift, (list, tuple)):
        (a,), steps = operands("roll", a), list(shift)
    else:
        a, shift = operands("roll", a, shift)
        steps = list(np.atleast_1d(shift)) if is_concrete(shift) else (
            list(lax.unstack(shift)) if get_aval(shift).ndim else [shift])
    if any(isinstance(step, (list, tuple)) or np.ndim(step) for step in steps):
        raise ValueError("'shift' and 'axis' arguments to roll must be scalars or 1D arrays")
    aval = get_aval(a)
    for i in range(aval.ndim) if axis is None else [i for i in as_tuple(axis)
                                                    if -aval.ndim <= i < aval.ndim]:
        whole_along(aval, i, f"roll: `a` cannot be sharded on the axis being rolled over. Got arr "
                    f"type={aval.str_short()} and axis={axis}")
    if axis is None:
        flat = lax.reshape(a, (aval.size,))
        return lax.reshape(_rolled(flat, [(0, step) for step in steps]), aval.shape)
    axes = [canonical_axis(i, aval.ndim) for i in as_tuple(axis)]
    count = max(len(axes), len(steps))
    if not axes or not steps:
        return a
    if min(len(axes), len(steps)) not in (1, count):
        raise ValueError(f"Incompatible shapes for broadcasting: shapes=[({len(steps)},), "
                         f"({len(axes)},)]")
    return _rolled(a, [(axes[i % len(axes)], steps[i % len(steps)]) for i in range(count)])


def _rolled(a: ArrayLike, moves: Sequence[tuple[int, Any]]) -> Any:
    """`a` rolled along each axis by the sum of the known steps that go with it, and by that of the
    others of each dtype."""
    by_kind: dict[Any, list[Any]] = {}
    for axis, step in moves:
        kind = None if is_concrete(step) else dtype_of(step)
        by_kind.setdefault((axis, kind), []).append(step)
    for (axis, kind), steps in by_kind.items():
        a = _rolled_along(a, steps, axis, kind is None)
    return a


def _rolled_along(a: ArrayLike, steps: list[Any], axis: int, known: bool) -> Any:
    size = get_aval(a).shape[axis]
    if not size:
        return a
    if known:
        total = sum(map(int, steps)) % size
        return a if not total else lax.concatenate(
            [lax.slice_in_dim(a, size - total, size, axis=axis),
             lax.slice_in_dim(a, 0, size - total, axis=axis)], axis)

    step = lax.stack(steps) if len(steps) > 1 else steps[0]
    if is_inexact(step) or dtype_of(step) == np.bool_:  # towards zero, as int(step)
        step = convert(step, dtypes.default_int_dtype())
    step = ufuncs.remainder(roomy(step), size)
    whole = stretch(scalar_constant(size, get_aval(step).dtype), ())
    if len(steps) > 1:
        step = lax.reduce(step, scalar_constant(0, get_aval(step).dtype), lambda x, y: lax.select(
            y < whole - x, x + y, y - (whole - x)), (0,))  # x + y mod `whole`, without overflow
    return lax.dynamic_slice_in_dim(lax.concatenate([a, a], axis), lax.sub(whole, step), size, axis)
