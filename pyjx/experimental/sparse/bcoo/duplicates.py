"""BCOO arrays in order: sorted indices, each of them once, no zeros."""

from __future__ import annotations

import operator
from typing import Any

from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import get_aval
from pyjx.core.trace import is_concrete
from pyjx.core.tracebacks import api_boundary
from pyjx.engine.types import Value
from pyjx.experimental.sparse.base import defined_by, function
from pyjx.experimental.sparse.bcoo.array import BCOO, properties
from pyjx.experimental.sparse.bcoo.conversion import canonical, in_bounds, sorted_rows
from pyjx.experimental.sparse.util import SparseInfo, added_at, over_batch
from pyjx.runtime.operations import op_jit


def _sort_indices(data: Array, indices: Array, *, spinfo: SparseInfo) -> list[Array]:
    def one(data: Value, indices: Value) -> tuple[Any, Any]:
        places, indices, _ = sorted_rows(indices)
        return data[places], indices

    n_batch = get_aval(indices).ndim - 2
    return list(over_batch(one, n_batch, data, indices))


bcoo_sort_indices_p = defined_by("bcoo_sort_indices", _sort_indices, "spinfo",
                                 multiple_results=True)


@function
@api_boundary
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

    def one(data: Value, indices: ArrayLike) -> tuple[Any, Any]:
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
    def one(indices: ArrayLike) -> Any:
        _, rows, first = sorted_rows(canonical(indices, sizes), sizes)
        return (first & in_bounds(rows, sizes)).sum()

    return over_batch(one, get_aval(indices).ndim - 2, indices).max(initial=0)  # type: ignore[no-any-return]


@function
@api_boundary
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
        sizes = mat.shape[mat.n_batch:mat.n_batch + mat.n_sparse]
        nse = int(_count_different(mat.indices, sizes=sizes))
    data, indices = bcoo_sum_duplicates_p.bind(
        jnp.asarray(mat.data), jnp.asarray(mat.indices), spinfo=mat._info,
        nse=operator.index(nse))
    return BCOO._of(data, indices, mat.shape, True, True)


@op_jit(trees=True)
def _without_zeros(mat: BCOO) -> BCOO:
    n_batch, n_sparse, n_dense, _ = mat._properties()
    data, indices = mat.data, mat.indices
    zero = data == 0
    if n_dense:
        zero = zero.all(tuple(range(n_batch + 1, data.ndim)))
    sizes = jnp.array(mat.shape[n_batch:n_batch + n_sparse], indices.dtype)
    return BCOO._of(data, jnp.where(zero[..., None], sizes, indices), mat.shape)


@function
@api_boundary
def bcoo_eliminate_zeros(mat: BCOO, nse: int | None = None) -> BCOO:
    """As `bcoo_sum_duplicates`, without the elements that are stored as zero.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental import sparse
    >>> M = sparse.BCOO((jnp.array([0., 2.]), jnp.array([[0], [1]])), shape=(2,))
    >>> sparse.bcoo.bcoo_eliminate_zeros(M).nse
    1
    """
    return bcoo_sum_duplicates(_without_zeros(mat), nse=nse)
