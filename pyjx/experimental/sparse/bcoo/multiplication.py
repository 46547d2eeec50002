"""Elementwise products of BCOO arrays with dense and with sparse ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core.array_type import Array
from pyjx.core.avals import get_aval
from pyjx.core.tracebacks import api_boundary
from pyjx.experimental.sparse.bcoo.array import BCOO
from pyjx.experimental.sparse.bcoo.conversion import as_row, columns, in_bounds
from pyjx.experimental.sparse.bcoo.layout import bcoo_update_layout
from pyjx.experimental.sparse.util import over_batch
from pyjx.runtime.operations import op_jit


@api_boundary
def bcoo_multiply_dense(sp_mat: BCOO, v: Any) -> Array:
    """The elements of the product of a BCOO array and a dense one.

    Args:
      sp_mat: BCOO array.
      v: array that broadcasts to the shape of `sp_mat`.

    Returns:
      The data of a BCOO array with the indices of `sp_mat`.

    Raises:
      NotImplementedError: the product would have a larger shape than `sp_mat`.
      ValueError: the shapes do not broadcast.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental import sparse
    >>> sparse.bcoo_multiply_dense(sparse.eye(2), jnp.array([3., 4.])).tolist()
    [3.0, 4.0]
    """
    v = jnp.asarray(v)
    shape = lax.broadcast_shapes(sp_mat.shape, v.shape)
    if shape != sp_mat.shape:
        raise NotImplementedError(
            "multiplication between sparse and dense is only implemented for cases where the "
            f"output shape matches the sparse matrix shape. Got shape={sp_mat.shape}, "
            f"v.shape={v.shape}")
    return data_times(sp_mat, v, "multiply")


def data_times(mat: BCOO, v: Any, operation: str) -> Array:
    """The data of `mat` with the elements of `v` at its indices, multiplied or divided by them."""
    return _data_times(mat, v, operation=operation)  # type: ignore[no-any-return]


@op_jit(trees=True, static_argnames=("operation",))
def _data_times(mat: BCOO, v: Any, *, operation: str) -> Any:
    fun = getattr(jnp, operation)
    if not get_aval(v).ndim:
        return fun(mat.data, v)
    n_batch, _n_sparse, _n_dense, _ = mat._properties()
    v = v.reshape(*[1] * (mat.ndim - v.ndim), *v.shape)
    outside = 1 if operation == "divide" else 0

    def one(data: Any, indices: Any, v: Any) -> Any:
        cols = tuple([jnp.where(c < n, 0, 1) if v.shape[i] == 1 else c for i, (c, n) in enumerate(
            zip(columns(indices), mat.shape[n_batch:], strict=False))])
        taken = v.at[cols].get(mode="fill", fill_value=outside) if cols else v[None]
        return fun(data, taken)

    return over_batch(one, n_batch, mat.data, mat.indices, v)


@api_boundary
def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """The elementwise product of two BCOO arrays.

    Args:
      lhs, rhs: BCOO arrays of one rank, whose shapes broadcast to each other.

    Returns:
      BCOO array with the smaller number of batch dimensions and of dense ones. Where the indices of
      an operand are known to be different, it stores an element for each of the other's; else one
      for each pair of elements of the two, which costs as much.

    Raises:
      TypeError: the ranks differ.

    >>> from pyjx.experimental import sparse
    >>> sparse.bcoo_multiply_sparse(sparse.eye(2), 3 * sparse.eye(2)).todense().tolist()
    [[3.0, 0.0], [0.0, 3.0]]
    """
    if lhs.ndim != rhs.ndim:
        raise TypeError("bcoo_multiply_sparse: arrays must have same number of dimensions, got "
                        f"{lhs.shape}, {rhs.shape}")
    lax.broadcast_shapes(lhs.shape, rhs.shape)
    n_batch, n_dense = min(lhs.n_batch, rhs.n_batch), min(lhs.n_dense, rhs.n_dense)
    return _product(  # type: ignore[no-any-return]
        *[bcoo_update_layout(x, n_batch=n_batch, n_dense=n_dense) for x in (lhs, rhs)])


@op_jit(trees=True)
def _product(lhs: BCOO, rhs: BCOO) -> Any:
    n_batch, n_sparse, _n_dense, _ = lhs._properties()
    shape = np.broadcast_shapes(lhs.shape, rhs.shape)
    left, right = (x.shape[n_batch:n_batch + n_sparse] for x in (lhs, rhs))
    sizes = shape[n_batch:n_batch + n_sparse]
    common = [i for i in range(n_sparse) if left[i] == right[i]]
    # an element meets at most one of an operand whose common columns are all different
    least = tuple(np.minimum(left, right)) if common and lhs.nse and rhs.nse else None
    one_left = lhs.unique_indices and left == least
    one_right = rhs.unique_indices and right == least

    def partners(x: Any, xi: Any, y: Any, yi: Any) -> tuple[Any, Any]:
        other = _partner(xi, left, yi, right, common)
        indices = jnp.where((other < yi.shape[0])[:, None], xi, jnp.array(sizes, xi.dtype))
        return x * y.at[other].get(mode="fill", fill_value=0), indices

    def swapped(x: Any, xi: Any, y: Any, yi: Any) -> tuple[Any, Any]:
        other = _partner(yi, right, xi, left, common)
        indices = jnp.where((other < xi.shape[0])[:, None], yi, as_row(sizes, yi))
        return x.at[other].get(mode="fill", fill_value=0) * y, indices

    def pairs(x: Any, xi: Any, y: Any, yi: Any) -> tuple[Any, Any]:
        n, m = xi.shape[0], yi.shape[0]
        meet = in_bounds(xi, left)[:, None] & in_bounds(yi, right)[None]
        for i in common:
            meet &= xi[:, None, i] == yi[None, :, i]
        places, others = jnp.nonzero(meet, size=n * m, fill_value=(n, m))
        found = (places < n)[:, None]
        x, y = (a.at[at].get(mode="fill", fill_value=0) for a, at in ((x, places), (y, others)))
        chosen = [xi[places, i] if left[i] == sizes[i] else yi[others, i] for i in range(n_sparse)]
        indices = jnp.stack(chosen, -1) if chosen else jnp.zeros((n * m, 0), xi.dtype)
        return x * y, jnp.where(found, indices, as_row(sizes, indices))

    if one_right and (not one_left or lhs.nse <= rhs.nse):
        fun, known = partners, lhs
    elif one_left:
        fun, known = swapped, rhs
    else:
        fun, known = pairs, None
    data, indices = over_batch(fun, n_batch, lhs.data, lhs.indices, rhs.data, rhs.indices)
    return BCOO._of(data, indices, shape, unique_indices=bool(known and known.unique_indices))


def _partner(xi: Any, left: tuple[int, ...], yi: Any, right: tuple[int, ...], common: list[int]
             ) -> Any:
    """For each row of `xi` which row of `yi` has the same `common` columns; else their number.

    Sorted together, equal rows are neighbours, and the one that is of `yi` comes first.
    """
    n, m = xi.shape[0], yi.shape[0]
    inside = in_bounds(yi, right)
    columns_of = [jnp.concatenate([jnp.where(inside, yi[:, i], right[i]), xi[:, i]])
                  for i in common]
    *keys, origin = lax.sort((*columns_of, lax.iota(np.int32, n + m)), num_keys=len(common),
                             is_stable=True)
    place = lax.iota(np.int32, n + m)
    last = lax.cummax(jnp.where(origin < m, place, -1))
    same = last >= 0
    for key in keys:
        same &= key == key[last]
    found = jnp.where(same, origin[last], m)
    rows = jnp.where(origin < m, n, origin - m)
    partner = jnp.zeros(n, np.int32).at[rows].set(found, mode="drop")
    return jnp.where(in_bounds(xi, left), partner, m)
