"""Sorting and searching in sorted arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, DTypeLike
from pyjx.core.avals import get_aval
from pyjx.numpy import ufuncs
from pyjx.numpy.dispatch import numpy_function
from pyjx.numpy.manipulation import moved
from pyjx.numpy.operands import canonical_axis
from pyjx.numpy.promotion import (
    convert,
    literal,
    narrowed,
    numbers,
    operands,
    promote_dtypes,
    promote_dtypes_complex,
    strong,
)
from pyjx.runtime.operations import body_of
from pyjx.transforms.vmap import vmap


def _check_kind(name: str, kind: object, order: object, stable: object) -> None:
    if kind is not None:
        raise TypeError(f"'kind' argument to {name} is not supported. Use stable=True or "
                        "stable=False to specify sort stability.")
    if order is not None:
        raise TypeError(f"'order' argument to {name} is not supported.")
    if not isinstance(stable, (bool, np.bool_)):
        # np.argsort hands None on, and sorts the values as NumPy's where that is refused.
        raise TypeError(f"{name}: stable must be a bool, got {stable!r}.")


def _along_axis(name: str, a: ArrayLike, axis: int | Sequence[int] | None) -> tuple[Any, int]:
    """The array to sort and its axis; None flattens."""
    a = numbers(name, a)
    if axis is None:
        return lax.reshape(a, (get_aval(a).size,)), 0
    return a, canonical_axis(axis, get_aval(a).ndim)


@numpy_function(static_argnames=("axis", "kind", "order", "stable", "descending"))
def sort(a: ArrayLike, axis: int | None = -1, *, kind: None = None, order: None = None,
         stable: bool = True, descending: bool = False) -> Array:
    """The elements in ascending order along an axis; nan last.

    Args:
      a: array.
      axis: int, or None to flatten.
      stable: whether equal elements keep their order.
      descending: whether the largest come first.
      kind: without effect; `stable` says whether equal elements keep their order.
      order: not supported, must be None: arrays have no fields.

    Returns:
      An array of the argument's shape; of its dtype, but that `sort_complex` gives complex numbers.

    >>> import pyjx as jax
    >>> jax.numpy.sort(jax.numpy.array([3, 1, 2])).tolist()
    [1, 2, 3]

    To sort by other numbers, take what `argsort` of these gives.

    >>> names, ages = jax.numpy.array([10, 20, 30]), jax.numpy.array([3, 1, 2])
    >>> names[jax.numpy.argsort(ages)].tolist()
    [20, 30, 10]
    """
    _check_kind("sort", kind, order, stable)
    a, axis = _along_axis("sort", a, axis)
    out = lax.sort(a, dimension=axis, is_stable=stable)
    return lax.rev(out, (axis,)) if descending else out


@numpy_function(static_argnames=("axis", "kind", "order", "stable", "descending", "dtype"))
def argsort(a: ArrayLike, axis: int | None = -1, *, kind: None = None, order: None = None,
            stable: bool = True, descending: bool = False, dtype: DTypeLike | None = None) -> Array:
    """The indices that sort an array along an axis; arguments as for `sort`.

    `dtype` is the integer dtype of the result.

    Args:
      a: an array.
      axis: the axis; None flattens the array.
      kind: without effect; `stable` says whether equal elements keep their order.
      order: not supported, must be None: arrays have no fields.
      stable: whether equal elements keep their order.
      descending: whether the largest comes first.
      dtype: of the result, an integer one.

    Returns:
      An array of integers of the argument's shape.

    >>> import pyjx as jax
    >>> jax.numpy.argsort(jax.numpy.array([3, 1, 2])).tolist()
    [1, 2, 0]
    """
    _check_kind("argsort", kind, order, stable)
    a, axis = _along_axis("argsort", a, axis)
    if dtype is None:
        dtype = dtypes.default_int_dtype()
    else:
        dtype = dtypes.check_and_canonicalize_user_dtype(dtype, "argsort")
    index = lax.broadcasted_iota(dtype, get_aval(a).shape, axis)
    if descending:  # reversed before and after, equal elements keep their order
        a, index = lax.rev(a, (axis,)), lax.rev(index, (axis,))
    index = lax.sort((a, index), dimension=axis, is_stable=stable, num_keys=1)[1]
    return lax.rev(index, (axis,)) if descending else index


@numpy_function(static_argnames=("axis", "batch_size"))
def lexsort(keys: Any, axis: int = -1, *, batch_size: int | None = 16) -> Array:
    """The indices that sort by several keys, the last one first.

    Args:
      keys: sequence of arrays of one shape, or an array of which they are the slices.
      axis: int.
      batch_size: without effect on the result.

    Returns:
      An array of integers of the shape of one key.

    >>> import pyjx as jax
    >>> jax.numpy.lexsort((jax.numpy.array([1, 0, 1]), jax.numpy.array([2, 2, 1]))).tolist()
    [2, 1, 0]
    """
    if np.ndim(keys) == 0 if hasattr(keys, "ndim") else not isinstance(keys, Iterable):
        raise TypeError("lexsort: need sequence of keys with len > 0 in lexsort, got a scalar")
    parts = list(lax.unstack(keys)) if hasattr(keys, "ndim") else list(keys)
    if not parts:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    parts = operands("lexsort", *parts)
    shapes = {get_aval(x).shape for x in parts}
    if len(shapes) > 1:
        raise ValueError("all keys need to be the same shape")
    shape = shapes.pop()
    if not shape:
        return lax.full((), 0, dtypes.default_int_dtype())
    axis = canonical_axis(axis, len(shape))
    index = lax.broadcasted_iota(dtypes.default_int_dtype(), shape, axis)
    return lax.sort((*parts[::-1], index), dimension=axis, num_keys=len(parts))[-1]


@numpy_function
def sort_complex(a: ArrayLike) -> Array:
    """The elements as complex numbers, sorted by real part, then by imaginary part.

    Returns:
      An array of the argument's shape; of its dtype, but that `sort_complex` gives complex numbers.

    >>> import pyjx as jax
    >>> jax.numpy.sort_complex(jax.numpy.array([2.0, 1.0])).tolist()
    [(1+0j), (2+0j)]
    """
    (a,) = operands("sort_complex", a)
    return lax.sort(strong(narrowed(a))) if get_aval(a).dtype in dtypes.complex_dtypes else \
        strong(narrowed(*promote_dtypes_complex(lax.sort(a))))  # real numbers are sorted sooner


# -- the k smallest --------------------------------------------------------------------------------


def _kth(name: str, a: ArrayLike, kth: int, axis: int) -> tuple[Any, int]:
    """The array with the axis to partition last, and kth counted from the front."""
    (a,) = operands(name, a)
    if get_aval(a).dtype in dtypes.complex_dtypes:
        raise NotImplementedError(f"jnp.{name} for complex dtype is not implemented.")
    a = moved(a, axis, -1)
    return a, canonical_axis(kth, get_aval(a).shape[-1])


def _negated(a: ArrayLike) -> Any:
    """An array that is largest where `a` is smallest; twice, it is `a`."""
    if dtypes.issubdtype(get_aval(a).dtype, np.inexact):
        return lax.neg(a)
    return lax.bitwise_not(a)  # of an integer -a - 1, which does not overflow


@numpy_function(static_argnames=("kth", "axis"))
def partition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """The elements along an axis, those before place `kth` none larger, those behind none smaller.

    Returns:
      An array of the argument's shape; of its dtype, but that `sort_complex` gives complex numbers.

    >>> import pyjx as jax
    >>> int(jax.numpy.partition(jax.numpy.array([3, 1, 2]), 1)[1])
    2
    """
    a, kth = _kth("partition", a, kth, axis)
    size = get_aval(a).shape[-1]
    low = _negated(lax.top_k(_negated(a), kth + 1)[0])
    high = lax.top_k(a, size - kth - 1)[0]
    return moved(lax.concatenate([low, high], get_aval(a).ndim - 1), -1, axis)


@numpy_function(static_argnames=("kth", "axis"))
def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """The indices that partition an array; see `partition`.

    Returns:
      An array of integers of the argument's shape.

    >>> import pyjx as jax
    >>> int(jax.numpy.argpartition(jax.numpy.array([3, 1, 2]), 1)[1])
    2
    """
    a, kth = _kth("argpartition", a, kth, axis)
    low = lax.top_k(_negated(a), kth + 1)[1]
    size = get_aval(a).shape[-1]

    def followed(low: Array) -> Any:
        """The indices of a row, those given first: the rank of each of the others is counted."""
        free = lax.full((size,), 1, np.int32).at[low].set(0, mode="promise_in_bounds")
        rank = ufuncs.where(ufuncs.equal(free, 1), ufuncs.add(lax.cumsum(free), kth), size)
        order = lax.full((size,), 0, np.int32).at[rank].set(
            lax.iota(np.int32, size), mode="drop", unique_indices=True)
        return lax.dynamic_update_slice_in_dim(order, low, 0, 0)

    for _ in get_aval(a).shape[:-1]:
        followed = vmap(followed)
    return moved(convert(followed(low), np.dtype(np.int32), get_aval(a).weak_type), -1, axis)


@numpy_function(static_argnames=("k", "axis", "mode", "sorted"))
def top_k(a: ArrayLike, k: int, /, *, axis: int = -1, mode: str = "largest", sorted: bool = True
          ) -> list[Any] | tuple[Any, Any]:
    """The k largest elements along an axis, and their indices.

    Args:
      a: array.
      k: int, at most the size of the axis.
      axis: int.
      mode: "largest" or "smallest".
      sorted: without effect: they always come in order.

    Returns:
      A list of two arrays, with `k` elements along the axis: the values, in descending order, and
      their positions.

    Raises:
      ValueError: another mode, or `k` out of range.

    >>> import pyjx as jax
    >>> values, indices = jax.numpy.top_k(jax.numpy.array([3, 1, 2]), 2)
    >>> values.tolist(), indices.tolist()
    ([3, 2], [0, 2])
    """
    if mode not in ("largest", "smallest"):
        raise ValueError(f"mode must be 'largest' or 'smallest', got {mode!r}")
    (a,) = operands("top_k", a)
    axis = canonical_axis(axis, get_aval(a).ndim)
    if mode == "largest":
        values, indices = lax.top_k(a, k, axis=axis)
        return [values, indices]
    values, indices = lax.top_k(_negated(a), k, axis=axis)
    return _negated(values), indices


# -- searching in sorted arrays --------------------------------------------------------------------


def _less(x: ArrayLike, y: ArrayLike) -> Any:
    """x < y in the order in which nan is the largest."""
    if not dtypes.issubdtype(get_aval(x).dtype, np.inexact):
        return lax.lt(x, y)
    return lax.bitwise_or(ufuncs.less(x, y), lax.bitwise_and(lax.eq(x, x), lax.ne(y, y)))


def _bisected(a: ArrayLike, v: ArrayLike, right: bool, dtype: DTypeLike) -> Any:
    """For each v, the number of elements of the sorted `a` that are less (or equal)."""
    size = get_aval(a).shape[0]
    one, whole = literal(1, dtype), literal(size, dtype)

    def stepped(_: object, state: tuple[Any, Any]) -> tuple[Any, Any]:
        """So many elements are before v, and the next `step` are where the last of them is."""
        place, step = state
        further = lax.add(place, step)
        last = lax.sub(lax.min(further, whole), one)
        there = jnp.indexing.take(a, last, axis=0, mode="clip")
        before = lax.bitwise_not(_less(v, there)) if right else _less(there, v)
        found = lax.bitwise_and(lax.le(further, whole), before)
        return lax.select(found, further, place), lax.shift_right_logical(step, one)

    steps = size.bit_length() if type(size) is int else 31
    state = lax.full_like(v, 0, dtype), literal(2**(steps - 1), dtype)
    # A loop, as XLA takes a time for steps in line that doubles with each.
    return lax.fori_loop(0, steps, stepped, state)[0]


def _compared(a: ArrayLike, v: ArrayLike, right: bool, dtype: DTypeLike) -> Any:
    size, shape = get_aval(a).shape[0], get_aval(v).shape
    wide = (*shape, size)
    x = lax.broadcast_in_dim(a, wide, (len(shape),))
    y = lax.broadcast_in_dim(v, wide, range(len(shape)))
    before = lax.bitwise_not(_less(y, x)) if right else _less(x, y)
    return lax.reduce_sum(convert(before, dtype), (len(shape),))


def _merged(a: ArrayLike, v: ArrayLike, right: bool, dtype: DTypeLike) -> Any:
    """The place of each v in the sorted array of both, less the number of v's before it."""
    size, count = get_aval(a).shape[0], get_aval(v).size
    flat = lax.reshape(v, (count,))
    both = [a, flat] if right else [flat, a]  # equal elements keep this order
    merged = lax.concatenate(both, 0)
    index = lax.iota(dtype, size + count)
    order = lax.sort((merged, index), dimension=0, num_keys=1)[1]
    place = lax.sort((order, index), dimension=0, num_keys=1)[1]
    start = size if right else 0
    mine = lax.slice_in_dim(place, start, start + count)
    rank = lax.sort((lax.sort((flat, lax.iota(dtype, count)), dimension=0, num_keys=1)[1],
                     lax.iota(dtype, count)), dimension=0, num_keys=1)[1]
    return lax.reshape(lax.sub(mine, rank), get_aval(v).shape)


_search = {"scan": _bisected, "scan_unrolled": _bisected, "sort": _merged,
           "compare_all": _compared}


@numpy_function(static_argnames=("side", "method"))
def searchsorted(a: ArrayLike, v: ArrayLike, side: str = "left", sorter: Any = None, *,
                 method: str = "scan") -> Array:
    """Where to insert values into a sorted array so that it stays sorted.

    Args:
      a: one-dimensional array in ascending order.
      v: array of values.
      side: "left" for the first such place, "right" for the last.
      sorter: indices that sort `a`, if it is not in order.
      method: "scan" and "scan_unrolled" bisect, "sort" sorts both together, "compare_all" compares
        each value with each element.

    Returns:
      An array of integers of the shape of `v`, from 0 to the size of `a`.

    Raises:
      ValueError: another `side` or `method`, or `a` of more than one axis.

    >>> import pyjx as jax
    >>> jax.numpy.searchsorted(jax.numpy.array([1, 3, 5]), jax.numpy.array([0, 3, 9])).tolist()
    [0, 1, 3]
    """
    a, v = promote_dtypes(*operands("searchsorted", a, v))
    if side not in ("left", "right"):
        raise ValueError(f"invalid argument {side=}, expected 'left' or 'right'")
    if method not in _search:
        raise ValueError(f"invalid argument {method=}, expected one of {sorted(_search)}")
    if get_aval(a).ndim != 1:
        raise ValueError("a should be 1-dimensional")
    if sorter is not None:
        (sorter,) = operands("searchsorted", sorter)
        if not dtypes.issubdtype(get_aval(sorter).dtype, np.integer):
            raise TypeError("searchsorted: sorter: Indexer must have integer or boolean type, got "
                            f"indexer with type {get_aval(sorter).dtype}")
        a = jnp.indexing.take(a, sorter, axis=0)
    dtype = _place_dtype(get_aval(a).size)
    if not get_aval(a).size:
        return lax.full(get_aval(v).shape, 0, dtype)
    return _search[method](a, v, side == "right", dtype)


def _place_dtype(size: int) -> Any:
    """The dtype of places in an array of this size: int32, also where 64-bit types are on."""
    return np.dtype(np.int32 if size < 2**31 - 1 else np.int64)


@numpy_function(static_argnames=("right", "method"))
def digitize(x: ArrayLike, bins: Any, right: bool = False, *, method: str | None = None) -> Array:
    """The number of the bin in which each value lies.

    Args:
      x: array.
      bins: one-dimensional array, ascending or descending.
      right: whether a bin includes its right edge and not its left one.
      method: as for `searchsorted`.

    Returns:
      An array of integers of the shape of `x`.

    >>> import pyjx as jax
    >>> jax.numpy.digitize(jax.numpy.array([0.5, 2.5]), jax.numpy.array([0, 1, 2])).tolist()
    [1, 3]
    """
    x, bins = operands("digitize", x, bins)
    if get_aval(bins).ndim != 1:
        raise ValueError(f"digitize: bins must be a 1-dimensional array; got bins={bins}")
    size = get_aval(bins).shape[0]
    dtype = _place_dtype(size)
    if not size:
        return lax.full(get_aval(x).shape, 0, dtype)
    side = "left" if right else "right"
    options = {"side": side, "method": method or "scan"}
    up = body_of(searchsorted)(bins, x, **options)
    down = lax.sub(literal(size, dtype), body_of(searchsorted)(
        lax.rev(bins, (0,)), x, **options))
    first, last = (lax.squeeze(lax.slice_in_dim(bins, i, i + 1), (0,)) for i in (0, size - 1))
    return ufuncs.where(ufuncs.greater_equal(last, first), up, down)


def _equals_any(x: ArrayLike, y: ArrayLike) -> Any:
    """Whether each element of `x` is in the vector `y`, which is gone through for each."""
    shape = get_aval(x).shape
    wide = (*shape, *get_aval(y).shape)
    same = lax.eq(lax.broadcast_in_dim(x, wide, range(len(shape))),
                  lax.broadcast_in_dim(y, wide, (len(shape),)))
    return convert(lax.reduce_or(same, (len(shape),)), dtypes.bool_dtype)


def _looked_up(x: ArrayLike, y: ArrayLike) -> Any:
    """Whether each element of `x` is in the vector `y`, which is sorted."""
    y = lax.sort(y)
    place = ufuncs.minimum(searchsorted(y, x), get_aval(y).size - 1)
    return convert(lax.eq(jnp.indexing.take(y, place), x), dtypes.bool_dtype)


_METHODS = ("compare_all", "binary_search", "sort", "auto")


def isin(element: ArrayLike, test_elements: ArrayLike, assume_unique: bool = False,
         invert: bool = False, *, method: str = "auto") -> Array:
    """Whether each element is among `test_elements`.

    Args:
      element: array.
      test_elements: array.
      invert: whether to answer the opposite.
      assume_unique: without effect.
      method: "compare_all" compares all pairs, "binary_search" and "sort" sort the second array;
        "auto" chooses by its size.

    Returns:
      A boolean array of the shape of the first argument.

    Raises:
      ValueError: the method is another one.

    >>> import pyjx as jax
    >>> jax.numpy.isin(jax.numpy.array([1, 2, 3]), jax.numpy.array([1, 3])).tolist()
    [True, False, True]
    """
    if method not in _METHODS:
        raise ValueError(f"isin: {method=} is not implemented; options are {_METHODS}.")
    x, y = promote_dtypes(*operands("isin", element, test_elements))
    count = get_aval(y).size
    y = lax.reshape(y, (count,))
    if method == "auto":  # a symbolic size may be large
        method = "compare_all" if type(count) is int and count <= 128 else "sort"
    found = _equals_any(x, y) if not count or method == "compare_all" else _looked_up(x, y)
    return lax.bitwise_not(found) if invert else found
