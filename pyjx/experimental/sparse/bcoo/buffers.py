"""The buffers of BCOO arrays: made of dense arrays and back, sorted, summed, laid out anew."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike, DTypeLike
from pyjx.core.avals import get_aval
from pyjx.core.frames import warn
from pyjx.core.trace import concrete_or_error, is_concrete
from pyjx.experimental.sparse.bcoo.array import BCOO, properties
from pyjx.experimental.sparse.formats import (
    SparseEfficiencyError,
    SparseEfficiencyWarning,
    SparseInfo,
    added_at,
    as_index_dtype,
    defined_by,
    function,
    is_stored,
    over_batch,
    stretched,
)
from pyjx.runtime.operations import op_jit


def columns(indices: Array) -> tuple[Any, ...]:
    """Indices `[nse, n_sparse]` as one vector for each sparse dimension."""
    return tuple([indices[:, i] for i in range(get_aval(indices).shape[1])])


def in_bounds(indices: Array, sizes: Any) -> Any:
    """Which rows of `[..., nse, n_sparse]` are coordinates in an array of shape `sizes`."""
    return ((indices >= 0) & (indices < as_row(sizes, indices))).all(-1)


def as_row(numbers: Any, indices: ArrayLike) -> Array:
    """A number for each sparse dimension, in an array of the dtype and rank of `indices`: a flag
    may forbid that ranks are promoted."""
    aval = get_aval(indices)
    return jnp.expand_dims(jnp.array(numbers, aval.dtype), tuple(range(aval.ndim - 1)))


# -- bcoo_todense ----------------------------------------------------------------------------------


def _todense(data: Array, indices: ArrayLike, *, spinfo: SparseInfo) -> Array:
    shape = spinfo.shape
    n_batch, n_sparse, _n_dense, _ = properties(
        get_aval(data).shape, get_aval(indices).shape, shape)
    inner = shape[n_batch:]

    def one(data: Any, indices: Array) -> Any:
        if n_sparse == 0:
            return data.any(0) if data.dtype == bool else data.sum(0, dtype=data.dtype)
        return added_at(inner, columns(indices), data, indices_are_sorted=spinfo.indices_sorted,
                        unique_indices=spinfo.unique_indices)

    return stretched(over_batch(one, n_batch, data, indices), shape[:n_batch])  # type: ignore[no-any-return]


bcoo_todense_p = defined_by("bcoo_todense", _todense, "spinfo")


@function
def bcoo_todense(mat: BCOO) -> Array:
    """The array with all its elements.

    Args:
      mat: BCOO array.

    Returns:
      Dense array of the same shape and dtype.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental import sparse
    >>> M = sparse.BCOO((jnp.ones(3), jnp.array([[0], [2], [2]])), shape=(4,))
    >>> sparse.bcoo_todense(M).tolist()
    [1.0, 0.0, 2.0, 0.0]
    """
    return bcoo_todense_p.bind(  # type: ignore[no-any-return]
        jnp.asarray(mat.data), jnp.asarray(mat.indices), spinfo=mat._info)


# -- bcoo_fromdense --------------------------------------------------------------------------------


def _fromdense(mat: ArrayLike, *, nse: int, n_batch: int, n_dense: int, index_dtype: DTypeLike
              ) -> list[Array]:
    shape = get_aval(mat).shape
    sparse_end = len(shape) - n_dense
    sizes = shape[n_batch:sparse_end]
    total = math.prod(sizes)
    mask = is_stored(mat)
    if n_dense:
        mask = mask.any(tuple(range(sparse_end, len(shape))))

    def one(mask: Any, mat: Any) -> tuple[Any, Any]:
        places = jnp.nonzero(mask.reshape(total), size=nse, fill_value=total)[0]
        blocks = mat.reshape(total, *shape[sparse_end:])
        data = blocks.at[places].get(mode="fill", fill_value=0)
        indices = [jnp.where(places < total, places // math.prod(sizes[i + 1:]) % n, n)
                   for i, n in enumerate(sizes) if total]
        if not indices:
            indices = [jnp.full((nse,), n) for n in sizes]
        stacked = jnp.stack(indices, -1) if sizes else jnp.zeros((nse, 0))
        return data, stacked.astype(index_dtype)

    return list(over_batch(one, n_batch, mask, mat))


bcoo_fromdense_p = defined_by("bcoo_fromdense", _fromdense, "nse", "n_batch", "n_dense",
                              "index_dtype", multiple_results=True)


@op_jit(static_argnames=("n_batch", "n_dense"))
def count_stored(mat: Any, *, n_batch: int, n_dense: int) -> Array:
    """How many blocks with an element that is not zero the fullest batch has."""
    mask = is_stored(mat)
    ndim = get_aval(mat).ndim
    if n_dense:
        mask = mask.any(tuple(range(ndim - n_dense, ndim)))
    counts = mask.sum(tuple(range(n_batch, ndim - n_dense)))
    return counts.max(initial=0)


def number_to_store(name: str, kind: type, mat: Array, nse: Any, n_batch: int = 0, n_dense: int = 0
                    ) -> int:
    """How many elements the function `name`, which makes an array of a format, is to store."""
    return concrete_or_error(  # type: ignore[no-any-return]
        operator.index, count_stored(mat, n_batch=n_batch, n_dense=n_dense) if nse is None else nse,
        f"The error arose for the nse argument of {name}. In order for {kind.__name__}.fromdense() "
        "to be used in traced/compiled code, you must pass a concrete value to the nse (number of "
        "stored elements) argument.", "" if nse is None else None)


def check_layout(name: str, ndim: int, n_batch: int, n_dense: int) -> None:
    """Raise ValueError unless an array of rank `ndim` can have such a layout."""
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > ndim:
        raise ValueError(f"{name}: n_batch={n_batch} and n_dense={n_dense} must be non-negative, "
                         f"and their sum no more than the number of dimensions, {ndim}.")


@function
def bcoo_fromdense(mat: ArrayLike, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0,
                   index_dtype: DTypeLike = np.int32) -> BCOO:
    """The sparse array of the elements of a dense one that are not zero.

    Args:
      mat: array.
      nse: number of elements to store for each batch: further ones are dropped, missing ones are
        padding. By default as many as the fullest batch has; needed where `mat` is traced.
      n_batch: number of batch dimensions.
      n_dense: number of dense dimensions.
      index_dtype: dtype of the indices.

    Returns:
      BCOO array of the same shape and dtype, with sorted and unique indices.

    Raises:
      ConcretizationTypeError: `mat` is traced and `nse` is missing.
      ValueError: `n_batch` or `n_dense` does not fit.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental import sparse
    >>> M = sparse.bcoo_fromdense(jnp.array([[0, 5], [0, 7]]))
    >>> M.data.tolist(), M.indices.tolist()
    ([5, 7], [[0, 1], [1, 1]])
    """
    mat = jnp.asarray(mat)
    n_batch, n_dense = operator.index(n_batch), operator.index(n_dense)
    check_layout("bcoo_fromdense", mat.ndim, n_batch, n_dense)
    nse_int = number_to_store("bcoo_fromdense", BCOO, mat, nse, n_batch, n_dense)
    data, indices = bcoo_fromdense_p.bind(mat, nse=nse_int, n_batch=n_batch, n_dense=n_dense,
                                          index_dtype=as_index_dtype("bcoo_fromdense", index_dtype))
    return BCOO._of(data, indices, mat.shape, indices_sorted=True, unique_indices=True)


# -- bcoo_extract ----------------------------------------------------------------------------------


def sorted_rows(indices: Array, sizes: tuple[int, ...] | None = None) -> tuple[Any, Any, Any]:
    """Rows `[nse, n_sparse]` in lexicographic order: their places before, the rows, and which of
    them differ from the one before.

    Where all are known to be from 0 up to and including `sizes`, they are sorted by one number
    each, if there are not too many, which is several times as fast.
    """
    nse, n_sparse = get_aval(indices).shape
    places = lax.iota(np.int32, nse)
    first = jnp.ones(min(nse, 1), bool)
    if n_sparse and sizes is not None and math.prod([n + 1 for n in sizes]) < 2 ** 31:
        number = jnp.zeros(nse, np.int32)
        for column, n in zip(columns(indices), sizes, strict=True):
            number = number * (n + 1) + column.astype(np.int32)
        number, places = lax.sort((number, places), num_keys=1)
        return places, indices[places], jnp.concatenate([first, number[1:] != number[:-1]])
    if n_sparse:
        *cols, places = lax.sort((*columns(indices), places), num_keys=n_sparse)
        indices = jnp.stack(cols, -1)
    return places, indices, jnp.concatenate([first, (indices[1:] != indices[:-1]).any(-1)])


def canonical(indices: Array, sizes: Any) -> Any:
    """The indices, with the sizes in place of all that are out of bounds."""
    return jnp.where(in_bounds(indices, sizes)[..., None], indices, as_row(sizes, indices))


def _extract(indices: ArrayLike, arr: Any, *, assume_unique: bool) -> Array:
    *batch, _, n_sparse = get_aval(indices).shape
    n_batch = len(batch)
    sizes = get_aval(arr).shape[n_batch:n_batch + n_sparse]
    dense = get_aval(arr).shape[n_batch + n_sparse:]

    def one(indices: Array, arr: Any) -> Any:
        if n_sparse:
            data = arr.at[columns(indices)].get(mode="fill", fill_value=0)
        else:
            data = jnp.broadcast_to(arr, (get_aval(indices).shape[0], *dense))
        if assume_unique:
            return data
        places, _, first = sorted_rows(canonical(indices, sizes), sizes)
        first = jnp.zeros(first.shape, bool).at[places].set(first)
        return jnp.where(first.reshape(-1, *[1] * len(dense)), data, jnp.zeros((), data.dtype))

    return over_batch(one, n_batch, indices, arr)  # type: ignore[no-any-return]


bcoo_extract_p = defined_by("bcoo_extract", _extract, "assume_unique")


def bcoo_extract(sparr: BCOO, arr: Any, *, assume_unique: bool | None = None) -> BCOO:
    """The elements of a dense array at the indices of a sparse one.

    Args:
      sparr: BCOO array whose indices are taken.
      arr: array of the same shape.
      assume_unique: whether the indices may be taken for unique. Otherwise indices that occur
        again get zero, so that the result adds up to the elements of `arr`. By default what
        `sparr.unique_indices` says.

    Returns:
      BCOO array with the indices of `sparr`; zero where these are out of bounds.

    Raises:
      TypeError: `sparr` is no BCOO array.
      ValueError: the shapes differ.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental import sparse
    >>> sparse.bcoo_extract(sparse.eye(2), jnp.array([[1., 2.], [3., 4.]])).data.tolist()
    [1.0, 4.0]
    """
    if not isinstance(sparr, BCOO):
        raise TypeError("First argument to bcoo_extract should be a BCOO array. "
                        f"Got type(sparr)={type(sparr)}")
    arr = jnp.asarray(arr)
    if arr.shape != sparr.shape:
        raise ValueError(f"shape mismatch: sparr.shape={sparr.shape} a.shape={arr.shape}")
    unique = sparr.unique_indices if assume_unique is None else bool(assume_unique)
    data = bcoo_extract_p.bind(jnp.asarray(sparr.indices), arr, assume_unique=unique)
    return BCOO._of(data, sparr.indices, sparr.shape, sparr.indices_sorted, sparr.unique_indices)


def _sort_indices(data: Array, indices: Array, *, spinfo: SparseInfo) -> list[Array]:
    def one(data: Array, indices: Array) -> tuple[Any, Any]:
        places, indices, _ = sorted_rows(indices)
        return data[places], indices

    n_batch = get_aval(indices).ndim - 2
    return list(over_batch(one, n_batch, data, indices))


bcoo_sort_indices_p = defined_by("bcoo_sort_indices", _sort_indices, "spinfo",
                                 multiple_results=True)


@function
def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """The array with the indices of each batch in lexicographic order.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental import sparse
    >>> M = sparse.BCOO((jnp.array([1., 2.]), jnp.array([[3], [0]])), shape=(4,))
    >>> sparse.bcoo_sort_indices(M).data.tolist()
    [2.0, 1.0]
    """
    data, indices = bcoo_sort_indices_p.bind(
        jnp.asarray(mat.data), jnp.asarray(mat.indices), spinfo=mat._info)
    return BCOO._of(data, indices, mat.shape, True, mat.unique_indices)


# -- bcoo_sum_duplicates ---------------------------------------------------------------------------


def _sum_duplicates(data: Array, indices: ArrayLike, *, spinfo: SparseInfo, nse: int
                   ) -> list[Array]:
    n_batch, n_sparse, _, _ = properties(
        get_aval(data).shape, get_aval(indices).shape, spinfo.shape)
    sizes = spinfo.shape[n_batch:n_batch + n_sparse]

    def one(data: Array, indices: Array) -> tuple[Any, Any]:
        places, rows, first = sorted_rows(canonical(indices, sizes), sizes)
        group = jnp.cumsum(first) - 1
        sums = added_at((nse, *get_aval(data).shape[1:]), (group,), data[places],
                        indices_are_sorted=True)
        padding = jnp.broadcast_to(jnp.array(sizes, rows.dtype), (nse, n_sparse))
        return sums, padding.at[group].set(rows, mode="drop", indices_are_sorted=True)

    return list(over_batch(one, n_batch, data, indices))


bcoo_sum_duplicates_p = defined_by("bcoo_sum_duplicates", _sum_duplicates, "spinfo", "nse",
                                   multiple_results=True)


@op_jit(static_argnames=("sizes",))
def _count_different(indices: ArrayLike, *, sizes: tuple[int, ...]) -> Array:
    """How many different indices in bounds the batch with the most of them has."""
    def one(indices: Array) -> Any:
        _, rows, first = sorted_rows(canonical(indices, sizes), sizes)
        return (first & in_bounds(rows, sizes)).sum()

    return over_batch(one, get_aval(indices).ndim - 2, indices).max(initial=0)  # type: ignore[no-any-return]


@function
def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None) -> BCOO:
    """The array with sorted indices of which each occurs once, its elements being added.

    Args:
      mat: BCOO array.
      nse: how many to store for each batch: further ones are dropped, missing ones are padding. By
        default as many as there are; needed where `mat` is traced.

    Raises:
      ValueError: the array is traced and `nse` is missing.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental import sparse
    >>> M = sparse.BCOO((jnp.ones(3), jnp.array([[2], [0], [2]])), shape=(4,))
    >>> sparse.bcoo_sum_duplicates(M).data.tolist()
    [1.0, 2.0]
    """
    if nse is None:
        if not is_concrete(mat.indices):
            raise ValueError("bcoo_sum_duplicates: nse must be specified when using the function "
                             "within jit, vmap, and other transformations requiring abstract "
                             "evaluation.")
        nse = int(_count_different(mat.indices, sizes=mat._sparse_shape))
    data, indices = bcoo_sum_duplicates_p.bind(jnp.asarray(mat.data), jnp.asarray(mat.indices),
                                               spinfo=mat._info, nse=operator.index(nse))
    return BCOO._of(data, indices, mat.shape, True, True)


@op_jit(trees=True)
def _without_zeros(mat: BCOO) -> BCOO:
    data, indices = mat.data, mat.indices
    zero = data == 0
    if mat.n_dense:
        zero = zero.all(tuple(range(mat.n_batch + 1, data.ndim)))
    sizes = as_row(mat._sparse_shape, indices)
    return BCOO._of(data, jnp.where(zero[..., None], sizes, indices), mat.shape)


@function
def bcoo_eliminate_zeros(mat: BCOO, nse: int | None = None) -> BCOO:
    """As `bcoo_sum_duplicates`, without the elements that are stored as zero.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental import sparse
    >>> M = sparse.BCOO((jnp.array([0., 2.]), jnp.array([[0], [1]])), shape=(2,))
    >>> sparse.bcoo.bcoo_eliminate_zeros(M).nse
    1
    """
    return bcoo_sum_duplicates(_without_zeros(mat), nse=nse)


@function
def bcoo_update_layout(mat: BCOO, *, n_batch: int | None = None, n_dense: int | None = None,
                       on_inefficient: str | None = "error") -> BCOO:
    """The array with other numbers of batch and dense dimensions.

    Fewer batch or dense dimensions cost only further indices. For more of them zeros are stored:
    each batch gets all elements, and each element a dense block.

    Args:
      mat: BCOO array.
      n_batch, n_dense: the numbers in the result, by default those that `mat` has.
      on_inefficient: what to do where zeros would be stored: "error", "warn", or None for neither.

    Raises:
      SparseEfficiencyError: zeros would be stored, and `on_inefficient` is "error".
      ValueError: the numbers do not fit the array.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental import sparse
    >>> sparse.bcoo_update_layout(sparse.eye(2, n_dense=1), n_dense=0)
    BCOO(float32[2, 2], nse=4)
    """
    n_batch = mat.n_batch if n_batch is None else operator.index(n_batch)
    n_dense = mat.n_dense if n_dense is None else operator.index(n_dense)
    if (n_batch, n_dense) == (mat.n_batch, mat.n_dense):
        return mat
    if n_batch < 0:
        raise ValueError(f"n_batch must be non-negative; got {n_batch}")
    if n_dense < 0:
        raise ValueError(f"n_dense must be non-negative; got {n_dense}")
    if n_batch + n_dense > mat.ndim:
        raise ValueError(f"sum of n_batch={n_batch} and n_dense={n_dense} cannot be larger than "
                         f"mat.ndim={mat.ndim}.")
    if on_inefficient not in ("error", "warn", None):
        raise ValueError(f"on_inefficient={on_inefficient!r}; expected one of ['error', 'warn', "
                         "None].")
    if math.prod(mat.shape[mat.n_batch:n_batch]) > 1:
        _report(mat.shape, "n_batch", mat.n_batch, n_batch, on_inefficient)
    if math.prod(mat.shape[mat.ndim - n_dense:mat.ndim - mat.n_dense]) > 1:
        _report(mat.shape, "n_dense", mat.n_dense, n_dense, on_inefficient)
    return _changed(mat, n_batch=n_batch, n_dense=n_dense)  # type: ignore[no-any-return]


def _report(shape: tuple[int, ...], name: str, before: int, after: int,
            on_inefficient: str | None) -> None:
    text = (f"For matrix of shape {shape}, increasing {name} from {before} to {after} results in "
            "inefficient storage.")
    if on_inefficient == "error":
        raise SparseEfficiencyError(f"{text} To disable this error, set the on_inefficient "
                                    "argument of bcoo_update_layout to 'warn' or None.")
    if on_inefficient == "warn":
        warn(text, SparseEfficiencyWarning)


@op_jit(trees=True, static_argnames=("n_batch", "n_dense"))
def _changed(mat: BCOO, *, n_batch: int, n_dense: int) -> Any:
    if n_dense < mat.n_dense:
        mat = _dense_to_sparse(mat, n_dense)
    if n_batch < mat.n_batch:
        mat = batch_to_sparse(mat, range(n_batch, mat.n_batch))
    if n_dense > mat.n_dense:
        mat = _sparse_to_dense(mat, n_dense)
    if n_batch > mat.n_batch:
        mat = _sparse_to_batch(mat, n_batch)
    return mat


def _dense_to_sparse(mat: BCOO, n_dense: int) -> BCOO:
    """Each element of the first dense dimensions gets an index."""
    n_batch, n_sparse, _, nse = mat._properties()
    sizes = mat.shape[n_batch + n_sparse:mat.ndim - n_dense]
    batch = get_aval(mat.indices).shape[:n_batch]
    total = math.prod(sizes)
    data = mat.data.reshape(*mat.data.shape[:n_batch], nse * total, *mat.shape[mat.ndim - n_dense:])
    places = np.indices(sizes).reshape(len(sizes), total).T
    more = jnp.broadcast_to(jnp.array(places, mat.indices.dtype), (*batch, nse, total, len(sizes)))
    old = jnp.broadcast_to(mat.indices[..., None, :], (*batch, nse, total, n_sparse))
    indices = jnp.concatenate([old, more], -1).reshape(*batch, nse * total, n_sparse + len(sizes))
    return BCOO._of(data, indices, mat.shape)


def batch_to_sparse(mat: BCOO, dims: Any, as_index: bool = True) -> BCOO:
    """The batch dimensions `dims` become positions of elements. They get an index each or, without
    `as_index`, are left out of the array."""
    n_batch, _, _, nse = mat._properties()
    dims = list(dims)
    kept = [d for d in range(n_batch) if d not in dims]
    sizes = [mat.shape[d] for d in dims]
    total = math.prod(sizes)

    def flat(x: Array) -> Any:
        batch = [n if d in dims else x.shape[d] for d, n in enumerate(mat.shape[:n_batch])]
        x = jnp.moveaxis(stretched(x, tuple(batch)), dims, range(len(kept), n_batch))
        return x.reshape(*x.shape[:len(kept)], total * nse, *x.shape[n_batch + 1:])

    data, indices = flat(mat.data), flat(mat.indices)
    if as_index:
        places = np.repeat(np.indices(sizes).reshape(len(sizes), total).T, nse, 0)
        more = jnp.array(places, indices.dtype)
        more = jnp.broadcast_to(more, (*indices.shape[:-1], len(sizes)))
        indices = jnp.concatenate([more, indices], -1)
    shape = mat.shape if as_index else tuple([n for d, n in enumerate(mat.shape) if d not in dims])
    return BCOO._of(data, indices, shape)


def _sparse_to_dense(mat: BCOO, n_dense: int) -> BCOO:
    """Each element becomes a block that is zero but for one element."""
    n_batch, n_sparse, old_dense, _ = mat._properties()
    first = mat.ndim - n_dense
    data, indices = mat.data, mat.indices
    n_kept = first - n_batch
    sizes = mat.shape[first:n_batch + n_sparse]
    batch = np.broadcast_shapes(data.shape[:n_batch], indices.shape[:n_batch])
    data, indices = stretched(data, batch), stretched(indices, batch)
    place = data.reshape(*data.shape[:n_batch + 1], *[1] * len(sizes), *data.shape[n_batch + 1:])
    for axis, n in enumerate(sizes):
        column = indices[..., n_kept + axis]
        column = column.reshape(*column.shape, *[1] * (len(sizes) + old_dense))
        at = jnp.arange(n, dtype=indices.dtype)
        behind = len(sizes) - 1 - axis + old_dense
        at = at.reshape(*[1] * (column.ndim - 1 - behind), n, *[1] * behind)
        place = jnp.where(column == at, place, jnp.zeros((), data.dtype))
    return BCOO._of(place, indices[..., :n_kept], mat.shape)


def _sparse_to_batch(mat: BCOO, n_batch: int) -> BCOO:
    """Each batch gets all elements, those that belong to others as zeros."""
    old, _, n_dense, nse = mat._properties()
    n = n_batch - old
    sizes = mat.shape[old:n_batch]
    data, indices = mat.data, mat.indices
    for axis, size in enumerate(sizes):
        column = indices[..., axis]
        column = column.reshape(*column.shape[:old], *[1] * (axis + 1), nse, *[1] * n_dense)
        at = jnp.arange(size, dtype=indices.dtype)
        at = at.reshape(*[1] * (old + axis), size, 1, *[1] * n_dense)
        data = jnp.where(column == at, jnp.expand_dims(data, old + axis), jnp.zeros((), data.dtype))
    batch = indices.shape[:old]
    indices = indices.reshape(*batch, *[1] * n, *indices.shape[old:])[..., n:]
    indices = jnp.broadcast_to(indices, (*batch, *sizes, *indices.shape[n_batch:]))
    return BCOO._of(data, indices, mat.shape)
