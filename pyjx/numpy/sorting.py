"""Sorting, searching in sorted arrays, and quantiles."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, AxisLike, DTypeLike
from pyjx.core.avals import get_aval
from pyjx.core.layouts import ShardingLike
from pyjx.lax.elementwise import stretch
from pyjx.numpy import reductions, ufuncs
from pyjx.numpy.manipulation import moved
from pyjx.numpy.operands import along, canonical_axes, canonical_axis, numpy_function
from pyjx.numpy.promotion import (
    any_ranks,
    convert,
    literal,
    narrowed,
    numbers,
    operands,
    promote_dtypes,
    promote_dtypes_complex,
    promote_dtypes_inexact,
    size_literal,
    strong,
)
from pyjx.numpy.statistics import present
from pyjx.runtime.operations import body_of
from pyjx.runtime.resharding import in_auto_mode
from pyjx.transforms.vmap import vmap

# -- sorting and searching -------------------------------------------------------------------------


def _check_kind(name: str, kind: object, order: object, stable: object) -> None:
    if kind is not None:
        raise TypeError(f"'kind' argument to {name} is not supported. Use stable=True or "
                        "stable=False to specify sort stability.")
    if order is not None:
        raise TypeError(f"'order' argument to {name} is not supported.")
    if not isinstance(stable, (bool, np.bool_)):
        # np.argsort hands None on, and sorts the values as NumPy's where that is refused.
        raise TypeError(f"{name}: stable must be a bool, got {stable!r}.")


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
    a, axis = along(numbers("sort", a), axis)
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
    a, axis = along(numbers("argsort", a), axis)
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
      ValueError: another `side` or `method`, or `a` or `sorter` of another rank than 1.

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
        raise ValueError(f"a should be 1-dimensional, got shape {get_aval(a).shape}")
    if sorter is not None:
        (sorter,) = operands("searchsorted", sorter)
        if not dtypes.issubdtype(get_aval(sorter).dtype, np.integer):
            raise TypeError("searchsorted: sorter: Indexer must have integer or boolean type, got "
                            f"indexer with type {get_aval(sorter).dtype}")
        if get_aval(sorter).ndim != 1:
            raise ValueError("searchsorted: sorter must be an array of rank 1, got shape "
                             f"{get_aval(sorter).shape}")
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
        raise ValueError(f"digitize: bins must be a 1-dimensional array; got "
                         f"bins={get_aval(bins).str_short()}")
    size = get_aval(bins).shape[0]
    dtype = _place_dtype(size)
    if not size:
        return lax.full(get_aval(x).shape, 0, dtype)
    side = "left" if right else "right"
    options = {"side": side, "method": "scan" if method is None else method}
    up = body_of(searchsorted)(bins, x, **options)
    down = lax.sub(literal(size, dtype), body_of(searchsorted)(lax.rev(bins, (0,)), x, **options))
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


# -- quantiles -------------------------------------------------------------------------------------

_methods = ("linear", "lower", "higher", "midpoint", "nearest")
_static = ("axis", "overwrite_input", "method", "keepdims")


def _check(name: str, a: ArrayLike, q: ArrayLike, out: object, overwrite_input: bool, method: str,
           weights: ArrayLike | None) -> tuple[Any, Any, Any]:
    if out is not None or overwrite_input:
        raise ValueError(f"jax.numpy.{name} does not support overwrite_input=True or out != None: "
                         "arrays are immutable. Use what the function returns.")
    a, q = operands(name, a, q)
    if weights is None:
        (a,) = promote_dtypes_inexact(a)
    else:
        (weights,) = operands(name, weights)
        if get_aval(weights).dtype in dtypes.complex_dtypes:
            raise ValueError(f"{name}: Weights cannot be complex types. Give jnp.real(weights).")
        a, weights = promote_dtypes_inexact(a, weights)
    a = narrowed(a)
    if get_aval(q).dtype in dtypes.complex_dtypes:
        raise TypeError(f"{name}: q must be real, got dtype {get_aval(q).dtype}")
    if get_aval(a).dtype in dtypes.complex_dtypes:
        raise ValueError(f"jax.numpy.{name}: quantile does not support complex input, as the "
                         "operation is poorly defined. Give jnp.real(a) or jnp.abs(a).")
    if weights is not None:
        if method != "inverted_cdf":
            raise NotImplementedError(f"{method} doesn't support weights. Only method "
                                      "'inverted_cdf' supports weights.")
    elif method not in (*_methods, "inverted_cdf"):
        raise ValueError(f"{name}: method can only be 'linear', 'lower', 'higher', 'midpoint', "
                         f"'nearest' or 'inverted_cdf', got {method!r}")
    if get_aval(q).ndim > 1:
        raise ValueError(f"{name}: q must be have rank <= 1, got shape {get_aval(q).shape}. Give "
                         "q.ravel() and reshape the result.")
    return a, q, weights


def _spread(weights: ArrayLike | None, shape: tuple[int, ...], axis: AxisLike,
            axes: tuple[int, ...]) -> Any:
    """Weights of each element, given as such or as those along the axes of the quantiles."""
    own = get_aval(weights).shape
    if own == shape:
        return weights
    if axis is None:
        raise ValueError(f"Weights shape must match 'a' shape when axis is None. Got {own} and "
                         f"{shape}.")
    if own != tuple([shape[i] for i in axes]):
        raise ValueError(f"Weights shape {own} must match reduction axes "
                         f"{tuple([shape[i] for i in axes])}, or the shape of 'a', {shape}.")
    order = sorted(range(len(axes)), key=axes.__getitem__)
    return lax.broadcast_in_dim(lax.transpose(weights, order), shape, sorted(axes))


def _flattened(x: ArrayLike, axes: tuple[int, ...]) -> Any:
    """`x` with the axes merged into one, the last."""
    shape = get_aval(x).shape
    x = moved(x, axes, tuple(range(len(shape) - len(axes), len(shape))))
    if len(axes) == 1:
        return x
    kept = get_aval(x).shape[:len(shape) - len(axes)]
    return lax.reshape(x, (*kept, math.prod([shape[i] for i in axes])))


@any_ranks
def _quantile(name: str, a: ArrayLike, q: ArrayLike, axis: AxisLike, out: object,
              overwrite_input: bool, method: str, keepdims: bool, skip_nan: bool,
              weights: ArrayLike | None) -> Any:
    a, q, weights = _check(name, a, q, out, overwrite_input, method, weights)
    ndim = get_aval(a).ndim
    axes = canonical_axes(axis, ndim)
    given = get_aval(a).dtype
    # Between elements of 16 bits there are places that only single precision tells apart.
    dtype = np.dtype(np.float32) if dtypes.itemsize_bits(given) == 16 else given
    a = a if given == dtype else convert(a, dtype)
    q = q if get_aval(q).dtype == dtype else convert(q, dtype)
    if weights is not None:
        weights = _flattened(_spread(convert(weights, dtype), get_aval(a).shape, axis, axes), axes)
    x = _flattened(a, axes)
    last = get_aval(x).ndim - 1
    sound = present(x)
    if not skip_nan:  # one nan makes the whole slice nan
        sound = reductions.restore_axes(lax.reduce_and(sound, (last,)), (last,), last + 1)
    if not skip_nan or get_aval(x).weak_type:  # which the result, and its derivative, is not
        x = reductions.masked(sound, x, np.nan)
    if skip_nan and not get_aval(x).shape[last]:
        found = lax.full((*get_aval(x).shape[:last], *get_aval(q).shape), np.nan, dtype)
    elif method == "inverted_cdf":
        found = _by_weights(x, q, weights, skip_nan)
    else:
        x = lax.sort(x, dimension=last, is_stable=False)
        found = _interpolated(x, q, method, skip_nan)
    # The axes of the quantiles come first, then those of `a` that are left.
    found = moved(found, -1, 0) if get_aval(q).ndim else found
    if keepdims and axes:
        extra = get_aval(q).ndim
        found = reductions.restore_axes(found, tuple([i + extra for i in axes]), ndim + extra)
    return convert(found, given)


def _interpolated(x: ArrayLike, q: ArrayLike, method: str, skip_nan: bool) -> Any:
    """The quantiles of slices along the last axis, sorted; quantiles go along the last axis."""
    aval = get_aval(x)
    last, dtype = aval.ndim - 1, aval.dtype
    many = get_aval(q).ndim
    lead = aval.shape[:last]
    size = size_literal(aval.shape[-1], dtype)
    if skip_nan:
        size = body_of(reductions.sum)(present(x), last, dtype=dtype, keepdims=bool(many))
        q = stretch(q, (*lead, get_aval(q).shape[0])) if many else q
    top = ufuncs.subtract(size, literal(1.0, dtype))
    place = lax.mul(q, top)  # of strong type, as `top` is
    low, high = lax.floor(place), lax.ceil(place)
    weight = lax.sub(place, low)
    low_value, high_value = (
        _taken(x, ufuncs.maximum(ufuncs.minimum(i, top), literal(0.0, dtype)), skip_nan)
        for i in (low, high))
    if method == "linear":
        rest = ufuncs.subtract(literal(1.0, dtype), weight)
        return ufuncs.add(ufuncs.multiply(low_value, rest), ufuncs.multiply(high_value, weight))
    if method == "lower":
        return low_value
    if method == "higher":
        return high_value
    if method == "nearest":
        return ufuncs.where(ufuncs.less_equal(weight, literal(0.5, dtype)), low_value, high_value)
    return lax.mul(lax.add(low_value, high_value), literal(0.5, dtype))


def _taken(x: ArrayLike, place: ArrayLike, per_slice: bool) -> Any:
    """The elements at `place` along the last axis, which each slice has of its own or all share."""
    index = convert(place, dtypes.default_int_dtype())
    last = get_aval(x).ndim - 1
    if not per_slice:
        return jnp.indexing.take(x, index, axis=last, mode="clip")
    shape = get_aval(x).shape[:last]
    single = get_aval(index).shape == shape
    if single:
        index = lax.reshape(index, (*shape, 1))
    out = jnp.indexing.take_along_axis(x, index, axis=last)
    return lax.squeeze(out, (last,)) if single else out


def _by_weights(x: ArrayLike, q: ArrayLike, weights: ArrayLike | None, skip_nan: bool) -> Any:
    """The least values whose cumulative weight is at least q of the total."""
    aval = get_aval(x)
    last, dtype = aval.ndim - 1, aval.dtype
    if weights is None:
        weights = lax.full(aval.shape, 1, dtype)
    if skip_nan:
        weights = reductions.masked(present(x), weights, 0)
    x, weights = lax.sort((x, weights), dimension=last, num_keys=1)
    total = lax.cumsum(weights, last)
    levels = q if get_aval(q).ndim else lax.reshape(q, (1,))
    count, n = get_aval(levels).shape[0], aval.shape[-1]
    shape = (*aval.shape[:-1], count, n)
    running = lax.broadcast_in_dim(total, shape, (*range(last), last + 1))
    whole = lax.slice_in_dim(running, n - 1, n, axis=last + 1)
    level = lax.broadcast_in_dim(levels, (*shape[:-1], 1), (last,))
    below = lax.lt(running, stretch(lax.mul(level, whole), shape))
    index = body_of(reductions.sum)(below, last + 1)
    out = _taken(x, ufuncs.minimum(index, n - 1), True)
    return out if get_aval(q).ndim else lax.squeeze(out, (last,))


@numpy_function(static_argnames=_static)
def quantile(a: ArrayLike, q: ArrayLike, axis: AxisLike = None, out: None = None,
             overwrite_input: bool = False, method: str = "linear", keepdims: bool = False, *,
             weights: ArrayLike | None = None) -> Array:
    """The values below which given shares of the elements lie; nan if one element is nan.

    Args:
      a: array of real numbers.
      q: share or one-dimensional array of shares, from 0 to 1.
      axis: int or sequence of ints; all axes by default.
      out, overwrite_input: not supported.
      method: between two elements, "linear" interpolates, "lower" and "higher" take one of them,
        "nearest" the nearer one, "midpoint" their mean; "inverted_cdf" takes the least element
        with the share.
      keepdims: whether the axes stay, with size 1.
      weights: of the elements, or one for each along the axes; with "inverted_cdf" only.

    Returns:
      Array with the axis of `q`, if it has one, in front of the axes of `a` that are left.

    Raises:
      ValueError: complex numbers, an unknown method, or `q` of more than one axis.

    >>> import pyjx as jax
    >>> float(jax.numpy.quantile(jax.numpy.array([1.0, 2.0, 4.0]), 0.75))
    3.0
    """
    return _quantile("quantile", a, q, axis, out, overwrite_input, method, keepdims, False, weights)


@numpy_function(static_argnames=_static)
def nanquantile(a: ArrayLike, q: ArrayLike, axis: AxisLike = None, out: None = None,
                overwrite_input: bool = False, method: str = "linear", keepdims: bool = False, *,
                weights: ArrayLike | None = None) -> Array:
    """The quantiles of the elements that are not nan; arguments as for `quantile`.

    Returns:
      A float array: the axes of `q`, then those that are not reduced, or with size 1 where they are
      if `keepdims`.

    >>> import pyjx as jax
    >>> float(jax.numpy.nanquantile(jax.numpy.array([1.0, float("nan"), 3.0]), 0.5))
    2.0
    """
    return _quantile("nanquantile", a, q, axis, out, overwrite_input, method, keepdims, True,
                     weights)


def _share(name: str, a: ArrayLike, q: ArrayLike) -> Any:
    """The percentages as parts of one; `a` is checked first, as the first argument."""
    _, q = operands(name, a, q)
    (q,) = promote_dtypes_inexact(q)
    return ufuncs.divide(q, 100)


@numpy_function(static_argnames=(*_static, "out_sharding"))
def percentile(a: ArrayLike, q: ArrayLike, axis: AxisLike = None, out: None = None,
               overwrite_input: bool = False, method: str = "linear", keepdims: bool = False, *,
               weights: ArrayLike | None = None, out_sharding: ShardingLike = None) -> Array:
    """The values below which given percentages of the elements lie; otherwise as `quantile`.

    Returns:
      A float array: the axes of `q`, then those that are not reduced, or with size 1 where they are
      if `keepdims`.

    >>> import pyjx as jax
    >>> float(jax.numpy.percentile(jax.numpy.array([1.0, 2.0, 4.0]), 75))
    3.0
    """
    if out_sharding is not None:
        return in_auto_mode(lambda a, q, weights: percentile(
            a, q, axis, out, overwrite_input, method, keepdims, weights=weights),
            out_sharding, "percentile")(a, q, weights)
    return _quantile("percentile", a, _share("percentile", a, q), axis, out, overwrite_input,
                     method, keepdims, False, weights)


@numpy_function(static_argnames=_static)
def nanpercentile(a: ArrayLike, q: ArrayLike, axis: AxisLike = None, out: None = None,
                  overwrite_input: bool = False, method: str = "linear", keepdims: bool = False, *,
                  weights: ArrayLike | None = None) -> Array:
    """The percentiles of the elements that are not nan; otherwise as `quantile`.

    Returns:
      A float array: the axes of `q`, then those that are not reduced, or with size 1 where they are
      if `keepdims`.

    >>> import pyjx as jax
    >>> float(jax.numpy.nanpercentile(jax.numpy.array([1.0, float("nan"), 3.0]), 50))
    2.0
    """
    return _quantile("nanpercentile", a, _share("nanpercentile", a, q), axis, out,
                     overwrite_input, method, keepdims, True, weights)


@numpy_function(static_argnames=("axis", "overwrite_input", "keepdims"))
def median(a: ArrayLike, axis: AxisLike = None, out: None = None, overwrite_input: bool = False,
           keepdims: bool = False) -> Array:
    """The middle element, or the mean of the two middle ones; nan if one element is nan.

    Returns:
      A float array without the axes that are reduced, or with size 1 there if `keepdims`.

    Raises:
      ValueError: there are no elements.

    >>> import pyjx as jax
    >>> float(jax.numpy.median(jax.numpy.array([1.0, 5.0, 2.0])))
    2.0
    """
    (a,) = operands("median", a)
    shape = get_aval(a).shape
    if 0 in [shape[i] for i in canonical_axes(axis, len(shape))]:
        raise ValueError("jax.numpy.median reduction axis must be non-empty")
    return _quantile("median", a, 0.5, axis, out, overwrite_input, "midpoint", keepdims, False,
                     None)


@numpy_function(static_argnames=("axis", "overwrite_input", "keepdims"))
def nanmedian(a: ArrayLike, axis: AxisLike = None, out: None = None, overwrite_input: bool = False,
              keepdims: bool = False) -> Array:
    """The median of the elements that are not nan.

    Returns:
      A float array without the axes that are reduced, or with size 1 there if `keepdims`.

    >>> import pyjx as jax
    >>> float(jax.numpy.nanmedian(jax.numpy.array([1.0, float("nan"), 3.0])))
    2.0
    """
    return _quantile("nanmedian", a, 0.5, axis, out, overwrite_input, "midpoint", keepdims, True,
                     None)
