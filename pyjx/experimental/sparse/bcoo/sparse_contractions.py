"""Products of two BCOO arrays, which are BCOO arrays themselves.

The number of pairs that meet is not known when the program is compiled. Where the right operand is
small as a dense array, and the result has fewer elements than there are pairs, all of them are
stored, as sums of the right one's rows. Otherwise every pair of stored elements is a candidate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.avals import get_aval
from pyjx.core.dtypes import DType
from pyjx.experimental.sparse.bcoo.array import BCOO
from pyjx.experimental.sparse.bcoo.conversion import in_bounds
from pyjx.experimental.sparse.bcoo.duplicates import bcoo_sum_duplicates
from pyjx.experimental.sparse.primitives import defined_by
from pyjx.experimental.sparse.util import SparseInfo, added_at, over_batch


class _Contraction(NamedTuple):
    """A sum over columns of the indices of two unbatched arrays."""

    left_sizes: tuple[int, ...]
    right_sizes: tuple[int, ...]
    left_summed: list[int]
    left_free: list[int]
    right_summed: list[int]
    right_free: list[int]
    dtype: DType

    @property
    def sizes(self) -> tuple[int, ...]:
        return (*[self.left_sizes[i] for i in self.left_free], *self.width)

    @property
    def width(self) -> list[int]:
        """What the right operand brings to the shape of the result."""
        return [self.right_sizes[j] for j in self.right_free]

    def pairs(self, x: Any, xi: Any, y: Any, yi: Any) -> tuple[Any, Any]:
        """An element for each pair of elements."""
        n, m = x.shape[0], y.shape[0]
        inside = in_bounds(xi, self.left_sizes)[:, None] & in_bounds(yi, self.right_sizes)[None]
        meet = inside
        for i, j in zip(self.left_summed, self.right_summed, strict=True):
            meet &= xi[:, None, i] == yi[None, :, j]
        data = jnp.where(meet, lax.dot_general(x, y, (((), ()), ((), ()))),
                         jnp.zeros((), self.dtype))
        cols = [*[jnp.broadcast_to(xi[:, None, i], (n, m)) for i in self.left_free],
                *[jnp.broadcast_to(yi[:, j], (n, m)) for j in self.right_free]]
        index_dtype = dtypes.result_type(xi.dtype, yi.dtype)
        cols = [jnp.where(inside, c, size).astype(index_dtype)
                for c, size in zip(cols, self.sizes, strict=True)]
        indices = jnp.stack(cols, -1) if cols else jnp.zeros((n, m, 0), index_dtype)
        return data.reshape(n * m), indices.reshape(n * m, len(self.sizes))

    def rows(self, x: Any, xi: Any, y: Any, yi: Any) -> tuple[Any, Any]:
        """All elements of the result, as sums of rows of the right operand."""
        zero, sizes = jnp.zeros((), self.dtype), self.sizes
        shape = (*[self.right_sizes[j] for j in self.right_summed], *self.width)
        places = tuple([yi[:, j] for j in (*self.right_summed, *self.right_free)])
        dense = added_at(shape, places, jnp.where(in_bounds(yi, self.right_sizes), y, zero))
        taken = jnp.broadcast_to(dense, (x.shape[0], *dense.shape))
        if self.left_summed:
            taken = dense.at[tuple([xi[:, i] for i in self.left_summed])].get(
                mode="fill", fill_value=0)
        x = jnp.where(in_bounds(xi, self.left_sizes), x, zero)
        terms = jnp.expand_dims(x, range(1, taken.ndim)) * taken
        if self.left_free:
            out = added_at(sizes, tuple([xi[:, i] for i in self.left_free]), terms)
        else:
            out = terms.sum(0, dtype=self.dtype)
        indices = jnp.indices(sizes, dtypes.result_type(xi.dtype, yi.dtype))
        return out.reshape(-1), indices.reshape(len(sizes), math.prod(sizes)).T


def _contraction(left: SparseInfo, right: SparseInfo, n_left: int, n_right: int,
                 summed: tuple[Sequence[int], Sequence[int]], dtype: DType) -> _Contraction:
    left_sizes, right_sizes = left.shape[n_left:], right.shape[n_right:]
    left_summed, right_summed = [d - n_left for d in summed[0]], [d - n_right for d in summed[1]]
    return _Contraction(
        left_sizes, right_sizes, left_summed,
        [i for i in range(len(left_sizes)) if i not in left_summed], right_summed,
        [j for j in range(len(right_sizes)) if j not in right_summed], dtype)


def _spdot_general(lhs_data: Any, lhs_indices: Any, rhs_data: Any, rhs_indices: Any, *,
                   lhs_spinfo: SparseInfo, rhs_spinfo: SparseInfo, dimension_numbers: Any,
                   preferred_element_type: Any) -> list[Any]:
    summed, (lb, rb) = dimension_numbers
    n_left, n_right = get_aval(lhs_indices).ndim - 2, get_aval(rhs_indices).ndim - 2
    dtype = preferred_element_type or dtypes.result_type(lhs_data.dtype, rhs_data.dtype)
    one = _contraction(lhs_spinfo, rhs_spinfo, n_left, n_right, summed, dtype)
    order = [*lb, *[d for d in range(n_left) if d not in lb]]
    other = [*rb, *[d for d in range(n_right) if d not in rb]]

    def front(x: Any, y: Any) -> tuple[Any, Any]:
        """Both with the common batch dimensions, then the left one's, then the right one's."""
        k, more_left, more_right = len(lb), len(order) - len(lb), len(other) - len(rb)
        x = jnp.moveaxis(x, order, range(n_left))
        y = jnp.moveaxis(y, other, range(n_right))
        return (x.reshape(*x.shape[:n_left], *[1] * more_right, *x.shape[n_left:]),
                y.reshape(*y.shape[:k], *[1] * more_left, *y.shape[k:]))

    x, y = front(lhs_data.astype(dtype), rhs_data.astype(dtype))
    xi, yi = front(lhs_indices, rhs_indices)
    n_batch = len(order) + len(other) - len(lb)
    n, m, room = x.shape[-1], y.shape[-1], math.prod(one.sizes)
    if n * m > max(room, math.prod(one.right_sizes)) and math.prod(one.width) <= m:
        return [*over_batch(one.rows, n_batch, x, xi, y, yi)]
    data, indices = over_batch(one.pairs, n_batch, x, xi, y, yi)
    if n * m > room:
        batch = (*[lhs_spinfo.shape[d] for d in order],
                 *[rhs_spinfo.shape[d] for d in other[len(rb):]])
        mat = bcoo_sum_duplicates(BCOO._of(data, indices, (*batch, *one.sizes)), nse=room)
        data, indices = mat.data, mat.indices
    return [data, indices]


bcoo_spdot_general_p = defined_by(
    "bcoo_spdot_general", _spdot_general, "lhs_spinfo", "rhs_spinfo", "dimension_numbers",
    "preferred_element_type", multiple_results=True)


def bcoo_spdot_general(lhs: BCOO, rhs: BCOO, numbers: Any, preferred_element_type: Any) -> BCOO:
    """`bcoo_dot_general` of two BCOO arrays.

    Raises:
      NotImplementedError: dense dimensions, or sums over others than sparse ones.
      ValueError: batch dimensions of the right operand would come after sparse ones of the left.
    """
    (lc, rc), (lb, rb) = numbers
    if lhs.n_dense or rhs.n_dense:
        raise NotImplementedError("bcoo_spdot_general: dense dimensions are not supported.")
    if any([d < lhs.n_batch for d in lc]) or any([d < rhs.n_batch for d in rc]):
        raise NotImplementedError("bcoo_spdot_general only supports contraction of sparse indices.")
    if any([d >= lhs.n_batch for d in lb]) or any([d >= rhs.n_batch for d in rb]):
        raise NotImplementedError("bcoo_spdot_general: batch_dims must correspond to batch "
                                  "dimensions of the sparse representation.")
    if rhs.n_batch > len(rb) and lhs.n_sparse > len(lc):
        raise ValueError("bcoo_spdot_general: cannot have unused batch dims on rhs with unused "
                         "sparse dims on lhs.")
    dtype = preferred_element_type and jnp.dtype(preferred_element_type)
    data, indices = bcoo_spdot_general_p.bind(
        jnp.asarray(lhs.data), jnp.asarray(lhs.indices), jnp.asarray(rhs.data),
        jnp.asarray(rhs.indices), lhs_spinfo=lhs._info, rhs_spinfo=rhs._info,
        dimension_numbers=numbers, preferred_element_type=dtype)
    left = [d for d in range(lhs.ndim) if d not in lc and d not in lb]
    right = [d for d in range(rhs.ndim) if d not in rc and d not in rb]
    shape = (*[lhs.shape[d] for d in (*lb, *left)], *[rhs.shape[d] for d in right])
    return BCOO._of(data, indices, shape)
