"""Sets of values, and where arrays are not zero.

The size of the results depends on values. Without `size` it is found on the host, and the arguments
must be known; with `size` the functions can be traced.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes, integers
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import get_aval
from pyjx.core.explicit import entries_of
from pyjx.core.specs import reshard_first
from pyjx.core.trace import concrete_or_error, is_concrete
from pyjx.engine.primitives import cast
from pyjx.lax.elementwise import stretch
from pyjx.numpy import creation, indexing, ufuncs
from pyjx.numpy.manipulation import moved
from pyjx.numpy.operands import along, canonical_axis
from pyjx.numpy.promotion import convert, literal, no_out, operands, promote_dtypes
from pyjx.runtime.operations import body_of, op_jit


def _known(name: str, x: object) -> Any:
    """`x`, an array or the size of the result; ConcretizationTypeError if it is traced."""
    return concrete_or_error(
        None, x, f"The size argument of jnp.{name} must be statically specified to use jnp.{name} "
        "within JAX transformations.", "" if getattr(x, "ndim", 0) else None)


# -- nonzero ---------------------------------------------------------------------------------------


def _true_places(mask: ArrayLike, size: int, fill: ArrayLike) -> Any:
    """The flat indices of the first `size` true elements, then `fill`."""
    count, dtype = get_aval(mask).size, dtypes.default_int_dtype()
    flat = lax.reshape(mask, (count,))
    rank: Any = lax.cumsum(convert(flat, dtype))
    if type(count) is int and size * _PLACES_SEARCHED < count:
        # The k-th true element is where the count of true elements first reaches k.
        place = body_of(jnp.searchsorted)(rank, lax.iota(dtype, size) + 1, method="scan_unrolled")
        return ufuncs.where(place < count, convert(place, dtype), literal(fill, dtype))
    # Each true element tells its place to its rank, all others to a place beyond the result.
    found = lax.full((size + 1,), fill, dtype)
    return found.at[ufuncs.where(flat, ufuncs.minimum(rank - 1, size), size)].set(
        lax.iota(dtype, count), mode="promise_in_bounds", wrap_negative_indices=False)[:size]


# A search takes one place as long as a scatter takes this many elements.
_PLACES_SEARCHED = 8


def _size(name: str, size: object) -> Any:
    known = integers.index(_known(name, size))
    if known < 0:
        raise ValueError(f"{name}: size must be a positive integer; got size={known}. 0 will do, "
                         "too.")
    return known


def nonzero(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> tuple[Array, ...]:
    """The indices of the elements that are not zero: one array for each axis.

    Args:
      a: array of at least one axis.
      size: number of indices to return; needed where `a` is traced.
      fill_value: what to return for missing ones, or one value for each axis; 0 by default.

    Returns:
      A tuple of arrays of integers, one for each axis. Their size must be given as `size` where the
      argument is traced.

    Raises:
      ConcretizationTypeError: `a` is traced and `size` is missing.

    >>> import pyjx as jax
    >>> [i.tolist() for i in jax.numpy.nonzero(jax.numpy.array([0, 5, 6]))]
    [[1, 2]]

    While tracing the number of places is part of the shape, so it is given; the rest is filled.

    >>> places = jax.jit(lambda x: jax.numpy.nonzero(x, size=3, fill_value=-1)[0])
    >>> places(jax.numpy.array([0, 5, 6])).tolist()
    [1, 2, -1]
    """
    (a,) = operands("nonzero", a)
    aval = get_aval(a)
    if not aval.ndim:
        raise ValueError("Calling nonzero on 0d arrays is not allowed. Use jnp.atleast_1d"
                         "(scalar).nonzero() instead.")
    dtype = dtypes.default_int_dtype()
    fills = fill_value if isinstance(fill_value, tuple) else (fill_value,) * aval.ndim
    if len(fills) != aval.ndim:
        raise ValueError("nonzero: fill_value tuple must have length equal to number of axes "
                         f"({aval.ndim}); got {len(fills)}")
    kind = dtypes.result_type(dtype, *[fill for fill in fills if fill is not None])
    if size is None:
        found = np.asarray(_known("nonzero", a)).nonzero()
        return tuple([creation.asarray(i.astype(kind)) for i in found])
    size = _size("nonzero", size)
    cut = tuple([axis for axis, entry in enumerate(entries_of(aval)) if entry is not None])
    if cut:
        raise ValueError(f"Cannot apply nonzero over sharded axes {cut}: got an array of type "
                         f"{aval.str_short()}. {reshard_first()}")
    mask = cast(a, np.dtype(bool))
    flat = _true_places(mask, size, -1)
    missing = lax.lt(flat, literal(0, dtype))
    out = []
    for axis, fill in enumerate(fills):
        step = math.prod(aval.shape[axis + 1:])
        index = ufuncs.remainder(ufuncs.floor_divide(flat, max(step, 1)), max(aval.shape[axis], 1))
        fill = convert(0 if fill is None else fill, kind)
        if get_aval(fill).ndim:
            raise ValueError("nonzero: fill_value must be a scalar or tuple of scalars; got "
                             f"{fill_value}")
        out.append(ufuncs.where(missing, fill, convert(index, kind)))
    return tuple(out)


def compress(condition: Any, a: ArrayLike, axis: int | None = None, *, size: int | None = None,
             fill_value: ArrayLike = 0, out: None = None) -> Array:
    """The slices of `a` along `axis` where `condition` holds.

    Args:
      condition: 1-dimensional; what goes beyond the axis must be false. Without `size` its values
        must be known.
      a: array.
      axis: None for the flattened array.
      size: number of slices of the result; the surplus is left out, what lacks is `fill_value`.
      fill_value: what stands in the places that `size` adds.
      out: not supported, must be None.

    Returns:
      A one-dimensional array of as many elements as are True, or of `size` elements: the latter is
      needed where the condition is traced.

    Raises:
      ValueError: the condition is not 1-dimensional.
      NotImplementedError: `out` is given; arrays are immutable.

    >>> import pyjx as jax
    >>> jax.numpy.compress(jax.numpy.array([True, False, True]), jax.numpy.arange(3)).tolist()
    [0, 2]
    """
    no_out("compress", out)
    condition, a, fill_value = operands("compress", condition, a, fill_value)
    if get_aval(condition).ndim != 1:
        raise ValueError("jnp.compress: condition must be a 1D array, got shape "
                         f"{get_aval(condition).shape}.")
    a, axis = along(a, axis)
    n = min(get_aval(condition).shape[0], get_aval(a).shape[axis])
    if size is not None and not 0 <= size <= n:
        raise ValueError("jnp.compress: size must be positive and not greater than the size of the "
                         f"array axis, or of the condition; got size={size}, and at most {n} "
                         "elements")
    if is_concrete(condition) and np.asarray(concrete_or_error(None, condition))[n:].any():
        raise ValueError("jnp.compress: condition contains entries that are out of bounds")
    aval = get_aval(a)
    (where,) = nonzero(condition[:n], size=size, fill_value=aval.shape[axis])
    found = indexing.take(a, where, axis, mode="clip")
    if size is None:
        return found
    missing = lax.ge(where, literal(aval.shape[axis], get_aval(where).dtype))
    shape = get_aval(found).shape
    return lax.select(lax.broadcast_in_dim(missing, shape, (axis,)),
                      stretch(convert(fill_value, aval.dtype), shape), found)


def flatnonzero(a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
               ) -> Array:
    """The indices of the elements that are not zero in the flattened array; see `nonzero`.

    Returns:
      A one-dimensional array of integers, whose size must be given as `size` where the argument is
      traced.

    >>> import pyjx as jax
    >>> jax.numpy.flatnonzero(jax.numpy.array([[0, 5], [6, 0]])).tolist()
    [1, 2]
    """
    (a,) = operands("flatnonzero", a)
    return nonzero(lax.reshape(a, (get_aval(a).size,)), size=size, fill_value=fill_value)[0]


def argwhere(a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
            ) -> Array:
    """The indices of the elements that are not zero, as the rows of a matrix; see `nonzero`.

    Returns:
      An array of integers (n, ndim), n of which must be given as `size` where the argument is
      traced.

    >>> import pyjx as jax
    >>> jax.numpy.argwhere(jax.numpy.array([[0, 5], [6, 0]])).tolist()
    [[0, 1], [1, 0]]
    """
    (a,) = operands("argwhere", a)
    if not get_aval(a).ndim:
        one = get_aval(nonzero(lax.reshape(a, (1,)), size=size, fill_value=fill_value)[0])
        return lax.full((one.shape[0], 0), 0, one.dtype)
    return lax.stack(list(nonzero(a, size=size, fill_value=fill_value)), 1)


# -- unique ----------------------------------------------------------------------------------------


class _UniqueAllResult(NamedTuple):
    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class _UniqueCountsResult(NamedTuple):
    values: Any
    counts: Any


class _UniqueInverseResult(NamedTuple):
    values: Any
    inverse_indices: Any


def _unique(ar: ArrayLike, axis: int | None, equal_nan: bool, size: int | None,
            fill_value: ArrayLike | None, with_index: bool, with_inverse: bool
            ) -> tuple[Any, Any, Any, Any]:
    """Values, first indices, inverse and counts of the slices along `axis`; of the second and the
    third those that are asked for."""
    (ar,) = operands("unique", ar)
    if dtypes.is_extended(get_aval(ar).dtype):
        raise TypeError(f"jnp.unique: expected an array of numbers, got dtype {get_aval(ar).dtype}")
    whole = axis is None
    shape = get_aval(ar).shape
    x = lax.reshape(ar, (get_aval(ar).size,)) if whole else moved(ar, axis, 0)
    if size is None and not (is_concrete(x) and get_aval(x).size):
        _known("unique", x)
    values, first, inverse, counts = _sorted_unique(x, equal_nan, size, fill_value, with_index,
                                                  with_inverse)
    if not whole:
        values = moved(values, 0, canonical_axis(axis, len(shape)))
    elif with_inverse and len(shape) != 1:
        inverse = lax.reshape(inverse, shape)
    return values, first, inverse, counts


def _sorted_unique(x: ArrayLike, equal_nan: bool, size: int | None, fill_value: ArrayLike | None,
                   with_index: bool, with_inverse: bool) -> tuple[Any, Any, Any, Any]:
    aval = get_aval(x)
    n = aval.shape[0]
    dtype = dtypes.default_int_dtype()
    padded = size is not None and fill_value is not None
    weak = aval.weak_type and not padded and aval.dtype not in dtypes.complex_dtypes
    if size is not None:
        size = _size("unique", size)
    if not n or not aval.size or (size == 0 and not with_inverse):
        found = 1 if n and not aval.size else 0  # slices without elements are equal
        size = found if size is None else size
        if size and size > found and fill_value is None:
            raise ValueError("jnp.unique: for zero-sized input with nonzero size argument, "
                             "fill_value must be specified")
        fill = 0 if fill_value is None else fill_value
        values = convert(lax.full((size, *aval.shape[1:]), fill, aval.dtype), aval.dtype, weak)
        first = lax.full((size,), 0, dtype)
        counts = ufuncs.where(lax.eq(lax.iota(dtype, size), literal(0, dtype)), n, first) \
            if found else first
        return values, first, lax.full((n,), 0, dtype), convert(counts, dtype)
    runs = _runs(x, equal_nan, with_index or with_inverse, with_inverse)
    if size is None:
        size = int(runs.total)
    fill = 0 if fill_value is None else operands("unique", fill_value)[0]
    values, first, counts = _first_of_each(
        runs.ordered, runs.order, runs.starts, fill, size, fill_value is None)
    return convert(values, aval.dtype, weak), first, runs.inverse, counts


def _with_one_nan(x: ArrayLike) -> Any:
    """The same values but for complex numbers of which one part is nan, which would come between
    others in ascending order: nan in both parts."""
    if get_aval(x).dtype not in dtypes.complex_dtypes:
        return x
    return lax.select(lax.ne(x, x), lax.full_like(x, complex(math.nan, math.nan)), x)


class _Runs(NamedTuple):
    """Slices in ascending order, in which equal ones are runs."""

    ordered: Any
    order: Any  # where each was, if asked for
    starts: Any  # whether it is the first of a run
    inverse: Any  # which run each slice belongs to, in the order in which they were; or None
    total: Any  # how many runs there are


@op_jit(static_argnames=("equal_nan", "with_order", "with_inverse"))
def _runs(x: ArrayLike, equal_nan: bool, with_order: bool, with_inverse: bool) -> _Runs:
    aval, dtype = get_aval(x), dtypes.default_int_dtype()
    n = aval.shape[0]
    columns = list(lax.unstack(lax.reshape(_with_one_nan(x), (n, aval.size // n)), 1))
    place = lax.iota(dtype, n)
    alone = not with_order and aval.ndim == 1 and dtypes.issubdtype(aval.dtype, np.integer)
    *_, order = (place,) if alone else lax.sort((*columns, place), num_keys=len(columns))
    ordered = lax.sort(x) if alone else indexing.take(x, order, axis=0)
    before = lax.slice_in_dim(ordered, 0, n - 1)
    after = lax.slice_in_dim(ordered, 1, n)
    differs = lax.ne(before, after)
    if equal_nan and dtypes.issubdtype(aval.dtype, np.inexact):
        both = lax.bitwise_and(lax.ne(before, before), lax.ne(after, after))
        differs = lax.bitwise_and(differs, lax.bitwise_not(both))
    differs = lax.reduce_or(differs, tuple(range(1, aval.ndim))) if aval.ndim > 1 else differs
    starts = lax.concatenate([lax.full((1,), True, np.dtype(bool)), differs], 0)
    inverse = None
    if with_inverse:
        rank = lax.sub(lax.cumsum(convert(starts, dtype)), lax.full((n,), 1, dtype))
        inverse = lax.sort((order, rank), dimension=0, num_keys=1)[1]
    return _Runs(ordered, order, starts, inverse, lax.reduce_sum(convert(starts, dtype), (0,)))


@op_jit(static_argnames=("size", "least"))
def _first_of_each(ordered: ArrayLike, order: ArrayLike, starts: ArrayLike, fill: ArrayLike,
                   size: int, least: bool) -> tuple[Any, Any, Any]:
    """The values of `size` runs, where each first occurs, and how often; what is missing is `fill`
    or, with `least`, the least value."""
    aval, dtype = get_aval(ordered), dtypes.default_int_dtype()
    n = aval.shape[0]
    place = _true_places(starts, size + 1, n)
    ends, place = lax.slice_in_dim(place, 1, size + 1), lax.slice_in_dim(place, 0, size)
    missing = lax.ge(place, literal(n, dtype))
    clipped = lax.min(place, literal(n - 1, dtype))
    values = indexing.take(ordered, clipped, axis=0)
    fill = indexing.take(ordered, np.int32(0), axis=0) if least else convert(fill, aval.dtype)
    wide = lax.broadcast_in_dim(missing, get_aval(values).shape, (0,))
    values = ufuncs.where(wide, fill, values)
    first = indexing.take(order, lax.select(missing, lax.full_like(place, 0), clipped), axis=0)
    counts = lax.select(missing, lax.full_like(place, 0), lax.sub(ends, place))
    return values, first, counts


def unique(ar: ArrayLike, return_index: bool = False, return_inverse: bool = False,
           return_counts: bool = False, axis: int | None = None, *, equal_nan: bool = True,
           size: int | None = None, fill_value: ArrayLike | None = None, sorted: bool = True
          ) -> Any:
    """The different values of an array, in ascending order.

    Args:
      ar: array.
      return_index, return_inverse, return_counts: whether to return as well the index where each
        value first occurs, for each element the index of its value, and how often each occurs.
      axis: compare the slices along this axis; by default the elements.
      equal_nan: whether all nan are one value.
      size: number of values to return; needed where `ar` is traced.
      fill_value: what to return for missing ones; by default the least value.
      sorted: without effect: values always come in order.

    Returns:
      A one-dimensional array in ascending order (or an array along `axis`), and behind it an array
      for each of `return_index`, `return_inverse` and `return_counts`. `size` must be given where
      the argument is traced.

    Raises:
      ConcretizationTypeError: `ar` is traced and `size` is missing.

    >>> import pyjx as jax
    >>> jax.numpy.unique(jax.numpy.array([3, 1, 3])).tolist()
    [1, 3]

    While tracing the number of elements is given: what is missing is the least one again, or
    `fill_value`.

    >>> kinds = jax.jit(lambda x: jax.numpy.unique(x, size=3, fill_value=0))
    >>> kinds(jax.numpy.array([5, 7, 5])).tolist()
    [5, 7, 0]
    """
    values, first, inverse, counts = _unique(
        ar, axis, equal_nan, size, fill_value, return_index, return_inverse)
    wanted = [x for x, want in ((first, return_index), (inverse, return_inverse),
                                (counts, return_counts)) if want]
    return (values, *wanted) if wanted else values


def unique_all(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
              ) -> Any:
    """The different values, their first indices, the inverse and the counts; see `unique`.

    Returns:
      A named tuple of arrays. `size` must be given where the argument is traced.

    >>> import pyjx as jax
    >>> jax.numpy.unique_all(jax.numpy.array([3, 1, 3])).counts.tolist()
    [1, 2]
    """
    return _UniqueAllResult(*_unique(x, None, False, size, fill_value, True, True))


def unique_counts(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
                 ) -> Any:
    """The different values and how often each occurs; see `unique`.

    Returns:
      A named tuple of arrays. `size` must be given where the argument is traced.

    >>> import pyjx as jax
    >>> jax.numpy.unique_counts(jax.numpy.array([3, 1, 3])).counts.tolist()
    [1, 2]
    """
    values, _, _, counts = _unique(x, None, False, size, fill_value, False, False)
    return _UniqueCountsResult(values, counts)


def unique_inverse(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
                  ) -> Any:
    """The different values and for each element the index of its value; see `unique`.

    Returns:
      A named tuple of arrays. `size` must be given where the argument is traced.

    >>> import pyjx as jax
    >>> jax.numpy.unique_inverse(jax.numpy.array([3, 1, 3])).inverse_indices.tolist()
    [1, 0, 1]
    """
    values, _, inverse, _ = _unique(x, None, False, size, fill_value, False, True)
    return _UniqueInverseResult(values, inverse)


def unique_values(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
                 ) -> Array:
    """The different values; see `unique`.

    Returns:
      A one-dimensional array in ascending order, whose size must be given as `size` where arguments
      are traced.

    >>> import pyjx as jax
    >>> jax.numpy.unique_values(jax.numpy.array([3, 1, 3])).tolist()
    [1, 3]
    """
    return _unique(x, None, False, size, fill_value, False, False)[0]


for _function in (unique_all, unique_counts, unique_inverse, unique_values):
    vars(_function)["other_name"] = "unique"  # which its messages begin with


# -- set operations --------------------------------------------------------------------------------


def _flat(name: str, *arrays: Any) -> list[Any]:
    parts = promote_dtypes(*operands(name, *arrays))
    return [lax.reshape(x, (get_aval(x).size,)) for x in parts]


def union1d(ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None,
            fill_value: ArrayLike | None = None) -> Array:
    """The values that are in one of two arrays, in order; `size`, `fill_value` as for `unique`.

    Returns:
      A one-dimensional array in ascending order, whose size must be given as `size` where arguments
      are traced.

    >>> import pyjx as jax
    >>> jax.numpy.union1d(jax.numpy.array([1, 2]), jax.numpy.array([2, 3])).tolist()
    [1, 2, 3]
    """
    return unique(lax.concatenate(_flat("union1d", ar1, ar2), 0), size=size, fill_value=fill_value)


def _chosen(name: str, values: ArrayLike, mask: ArrayLike, size: int | None, fill_value: Any,
            fill_with_first: bool = False) -> Any:
    """The values where the mask is true; missing ones are 0 by default.

    With `fill_with_first` they are the first by default, and others are promoted with the values.
    """
    aval = get_aval(values)
    if size is None:
        found = np.asarray(_known(name, mask)).nonzero()[0]
        place = creation.asarray(found.astype(dtypes.default_int_dtype()))
        return convert(indexing.take(values, place, axis=0), aval.dtype, aval.weak_type)
    size = _size(name, size)
    values = convert(values, aval.dtype)
    count = get_aval(values).size
    promoted = fill_with_first and fill_value is not None and size > 0
    if not count:
        kept = lax.full((size,), 0 if fill_value is None or promoted else fill_value,
                        get_aval(values).dtype)
        return ufuncs.where(lax.full((size,), False), kept, fill_value) if promoted else kept
    place = _true_places(mask, size, count)
    dtype = get_aval(place).dtype
    kept = indexing.take(values, lax.min(place, literal(count - 1, dtype)), axis=0)
    there = lax.lt(place, literal(count, dtype))
    if promoted:
        return ufuncs.where(there, kept, fill_value)
    fill = convert(0 if fill_value is None else fill_value, get_aval(values).dtype)
    if fill_with_first and fill_value is None and size:
        first = indexing.take(kept, np.int32(0), axis=0)
        fill = ufuncs.where(indexing.take(there, np.int32(0), axis=0), first, fill)
    return ufuncs.where(there, kept, fill)


def setdiff1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, *,
              size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The values of `ar1` that are not in `ar2`, in order.

    Args:
      assume_unique: the values of `ar1` are different, and are returned in their order.
      size, fill_value: as for `unique`; missing values are 0 by default.
      ar1, ar2: arrays, which are flattened.

    Returns:
      A one-dimensional array in ascending order, whose size must be given as `size` where arguments
      are traced.

    >>> import pyjx as jax
    >>> jax.numpy.setdiff1d(jax.numpy.array([3, 1, 2]), jax.numpy.array([2])).tolist()
    [1, 3]
    """
    x, y = [lax.reshape(a, (get_aval(a).size,)) for a in operands("setdiff1d", ar1, ar2)]
    # As in JAX, complex numbers that are sorted have no weak type.
    is_sorted = not assume_unique
    weak = get_aval(x).weak_type and not (is_sorted and get_aval(x).dtype in dtypes.complex_dtypes)
    if is_sorted:
        if size is None:
            _known("setdiff1d", x)
            x = unique(x)
        else:
            x = _in_order(x)
    keep = jnp.isin(x, y, invert=True)
    if is_sorted and size is not None:
        keep = lax.bitwise_and(keep, lax.bitwise_not(_as_before(x)))
    out = _chosen("setdiff1d", x, keep, size, fill_value)
    return convert(out, get_aval(out).dtype, weak)


def _in_order(x: ArrayLike) -> Any:
    """The elements of a vector in ascending order, what is nan at the end."""
    if get_aval(x).dtype not in dtypes.complex_dtypes:
        return lax.sort(x)
    return lax.sort((_with_one_nan(x), x), dimension=0, num_keys=1)[1]


def _neighbors(x: ArrayLike) -> tuple[Any, Any]:
    """All elements but the first, and those before them."""
    n = get_aval(x).shape[0]
    return lax.slice_in_dim(x, min(n, 1), n), lax.slice_in_dim(x, 0, max(n - 1, 0))


def _as_before(x: ArrayLike, one_nan: ArrayLike = True) -> Any:
    """Whether each element of a sorted vector equals the one before; nan does where `one_nan`."""
    here, before = _neighbors(x)
    equal = lax.eq(here, before)
    if one_nan is not False and dtypes.issubdtype(get_aval(x).dtype, np.inexact):
        nan = lax.bitwise_and(lax.ne(here, here), lax.ne(before, before))
        nan = nan if one_nan is True else lax.bitwise_and(nan, one_nan)
        equal = lax.bitwise_or(equal, nan)
    first = lax.full((min(get_aval(x).shape[0], 1),), False, np.dtype(bool))
    return lax.concatenate([first, equal], 0)


class _Joined(NamedTuple):
    """The elements of two vectors in ascending order, the first one's before equal ones of the
    other."""

    values: Any
    order: Any  # where each was in the vectors, one after the other
    equal: Any  # whether each equals the one before


@op_jit(static_argnames=("one_nan",))
def _joined(x: ArrayLike, y: ArrayLike, one_nan: bool) -> _Joined:
    """With `one_nan` all nan of the same vector are equal."""
    values = lax.concatenate([x, y], 0)
    keys, order = lax.sort((_with_one_nan(values), lax.iota(dtypes.default_int_dtype(),
                                                            get_aval(values).size)),
                           dimension=0, num_keys=1)
    of_one = lax.eq(*_neighbors(_is_second(order, get_aval(x).size))) if one_nan else False
    return _Joined(indexing.take(values, order, axis=0), order, _as_before(keys, of_one))


def _is_second(order: ArrayLike, n: int) -> Any:
    """Whether an element is of the second vector, where the first has `n`."""
    return lax.ge(order, literal(n, get_aval(order).dtype))


def _first_of_own(equal: ArrayLike) -> Any:
    """For each sorted element where the run that it is in begins."""
    dtype = dtypes.default_int_dtype()
    place = lax.iota(dtype, get_aval(equal).shape[0])
    return lax.cummax(lax.select(equal, lax.full_like(place, 0), place))


def setxor1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, *,
             size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The values that are in exactly one of two arrays, in order.

    `size` and `fill_value` are as for `unique`; by default missing values are the first one. With
    `assume_unique` what occurs twice in one array counts as if it were in both.

    Returns:
      A one-dimensional array in ascending order, whose size must be given as `size` where arguments
      are traced.

    >>> import pyjx as jax
    >>> jax.numpy.setxor1d(jax.numpy.array([1, 2]), jax.numpy.array([2, 3])).tolist()
    [1, 3]
    """
    x, y = _flat("setxor1d", ar1, ar2)
    found = _joined(x, y, not assume_unique)
    return _chosen("setxor1d", found.values, _single(found, get_aval(x).size, assume_unique),
                   size, fill_value, True)


@op_jit(static_argnames=("n", "assume_unique"))
def _single(found: _Joined, n: int, assume_unique: bool) -> Any:
    """The last of each run whose elements are of one vector, the first of which has `n`; where
    these are taken for different ones the element itself must be the only one."""
    count = get_aval(found.equal).shape[0]
    last = lax.bitwise_not(lax.concatenate([
        lax.slice_in_dim(found.equal, min(count, 1), count),
        lax.full((min(count, 1),), False, np.dtype(bool))], 0))
    if assume_unique:
        return lax.bitwise_and(last, lax.bitwise_not(found.equal))
    second = _is_second(found.order, n)
    first = indexing.take(second, _first_of_own(found.equal), axis=0)
    return lax.bitwise_and(last, lax.eq(first, second))


def intersect1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False,
                return_indices: bool = False, *, size: int | None = None,
                fill_value: ArrayLike | None = None) -> Any:
    """The values that are in both of two arrays, in order.

    Args:
      return_indices: whether to return as well where each value first occurs in the two arrays.
      assume_unique: the values of each array are different; what occurs twice counts as if it were
        in both.
      size, fill_value: as for `unique`; by default missing values are the first one.
      ar1, ar2: arrays, which are flattened.

    Returns:
      A one-dimensional array in ascending order, and with `return_indices` two arrays of the places
      where its elements are first; `size` must be given where arguments are traced.

    >>> import pyjx as jax
    >>> jax.numpy.intersect1d(jax.numpy.array([1, 2]), jax.numpy.array([2, 3])).tolist()
    [2]
    """
    x, y = _flat("intersect1d", ar1, ar2)
    count, other = get_aval(x).size, get_aval(y).size
    found = _joined(x, y, False)
    keep, first, second = _shared(found, count, assume_unique)
    out = _chosen("intersect1d", found.values, keep, size, fill_value, True)
    if not return_indices:
        return out
    return (out, _chosen("intersect1d", first, keep, size, count),
            _chosen("intersect1d", second, keep, size, other))


@op_jit(static_argnames=("n", "assume_unique"))
def _shared(found: _Joined, n: int, assume_unique: bool) -> tuple[Any, Any, Any]:
    """Which elements equal the one before, of the other vector, and the indices of both in theirs;
    `n` is the size of the first vector."""
    order = found.order
    one = literal(1, get_aval(order).dtype)
    place = lax.iota(get_aval(order).dtype, get_aval(order).shape[0])
    before = lax.max(lax.sub(place, one), lax.full_like(place, 0))
    start, keep = before, found.equal
    if not assume_unique:
        second = _is_second(order, n)
        start = _first_of_own(found.equal)
        keep = lax.bitwise_and(keep, lax.ne(second, indexing.take(second, before, axis=0)))
    size = literal(n, get_aval(order).dtype)
    return keep, indexing.take(order, start, axis=0), lax.sub(order, size)
