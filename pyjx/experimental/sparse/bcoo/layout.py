"""The layout of a BCOO array: which of its dimensions are batch, sparse and dense."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from pyjx import numpy as jnp
from pyjx.core.avals import get_aval
from pyjx.core.frames import warn
from pyjx.core.tracebacks import api_boundary
from pyjx.engine.types import Value
from pyjx.experimental.sparse.base import function
from pyjx.experimental.sparse.bcoo.array import BCOO
from pyjx.experimental.sparse.util import (
    SparseEfficiencyError,
    SparseEfficiencyWarning,
    stretched,
)
from pyjx.runtime.operations import op_jit


@function
@api_boundary
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
        raise SparseEfficiencyError(
            f"{text} To disable this error, set the on_inefficient argument of bcoo_update_layout "
            "to 'warn' or None.")
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

    def flat(x: Value) -> Any:
        batch = [n if d in dims else x.shape[d] for d, n in enumerate(mat.shape[:n_batch])]
        x = jnp.moveaxis(stretched(x, tuple(batch)), dims, range(len(kept), n_batch))
        return x.reshape(*x.shape[:len(kept)], total * nse, *x.shape[n_batch + 1:])

    data, indices = flat(mat.data), flat(mat.indices)
    if as_index:
        places = np.repeat(np.indices(sizes).reshape(len(sizes), total).T, nse, 0)
        more = jnp.array(places, indices.dtype)
        more = jnp.broadcast_to(more, (*indices.shape[:-1], len(sizes)))
        indices = jnp.concatenate([more, indices], -1)
    shape = mat.shape if as_index else tuple(
        [n for d, n in enumerate(mat.shape) if d not in dims])
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
        data = jnp.where(column == at, jnp.expand_dims(data, old + axis),
                         jnp.zeros((), data.dtype))
    batch = indices.shape[:old]
    indices = indices.reshape(*batch, *[1] * n, *indices.shape[old:])[..., n:]
    indices = jnp.broadcast_to(indices, (*batch, *sizes, *indices.shape[n_batch:]))
    return BCOO._of(data, indices, mat.shape)
