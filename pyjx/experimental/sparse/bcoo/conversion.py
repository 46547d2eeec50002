"""From dense arrays to BCOO and back: the elements at given coordinates, and sums at them.

`bcoo_todense` is a scatter that adds, `bcoo_extract` a gather; each is the other's transpose, which
follows from those two operations.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike, DTypeLike
from pyjx.core.avals import get_aval
from pyjx.core.trace import concrete_or_error
from pyjx.core.tracebacks import api_boundary
from pyjx.engine.types import Value
from pyjx.experimental.sparse.base import defined_by, function
from pyjx.experimental.sparse.bcoo.array import BCOO, properties
from pyjx.experimental.sparse.util import (
    SparseInfo,
    added_at,
    as_index_dtype,
    is_stored,
    over_batch,
    stretched,
)
from pyjx.runtime.operations import op_jit

TRACED_NSE = (
    "The error arose for the nse argument of {name}. In order for {cls}.fromdense() to be used in "
    "traced/compiled code, you must pass a concrete value to the nse (number of stored elements) "
    "argument."
)


def columns(indices: Value) -> tuple[Any, ...]:
    """Indices `[nse, n_sparse]` as one vector for each sparse dimension."""
    return tuple([indices[:, i] for i in range(get_aval(indices).shape[1])])


def in_bounds(indices: Value, sizes: Any) -> Any:
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

    def one(data: Value, indices: ArrayLike) -> Any:
        if n_sparse == 0:
            return data.any(0) if data.dtype == bool else data.sum(0, dtype=data.dtype)
        return added_at(inner, columns(indices), data, indices_are_sorted=spinfo.indices_sorted,
                        unique_indices=spinfo.unique_indices)

    return stretched(over_batch(one, n_batch, data, indices), shape[:n_batch])  # type: ignore[no-any-return]


bcoo_todense_p = defined_by("bcoo_todense", _todense, "spinfo")


@function
@api_boundary
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


def check_layout(name: str, ndim: int, n_batch: int, n_dense: int) -> None:
    """Raise ValueError unless an array of rank `ndim` can have such a layout."""
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > ndim:
        raise ValueError(f"{name}: n_batch={n_batch} and n_dense={n_dense} must be non-negative, "
                         f"and their sum no more than the number of dimensions, {ndim}.")


@function
@api_boundary
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
    nse_int = concrete_or_error(
        operator.index, count_stored(mat, n_batch=n_batch, n_dense=n_dense) if nse is None else nse,
        TRACED_NSE.format(name="bcoo_fromdense", cls="BCOO"))
    data, indices = bcoo_fromdense_p.bind(mat, nse=nse_int, n_batch=n_batch, n_dense=n_dense,
                                          index_dtype=as_index_dtype("bcoo_fromdense", index_dtype))
    return BCOO._of(data, indices, mat.shape, indices_sorted=True, unique_indices=True)


# -- bcoo_extract ----------------------------------------------------------------------------------


def sorted_rows(indices: Value, sizes: tuple[int, ...] | None = None) -> tuple[Any, Any, Any]:
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


def canonical(indices: ArrayLike, sizes: Any) -> Any:
    """The indices, with the sizes in place of all that are out of bounds."""
    return jnp.where(in_bounds(indices, sizes)[..., None], indices, as_row(sizes, indices))


def _extract(indices: ArrayLike, arr: Any, *, assume_unique: bool) -> Array:
    *batch, _, n_sparse = get_aval(indices).shape
    n_batch = len(batch)
    sizes = get_aval(arr).shape[n_batch:n_batch + n_sparse]
    dense = get_aval(arr).shape[n_batch + n_sparse:]

    def one(indices: ArrayLike, arr: Any) -> Any:
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


@api_boundary
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
