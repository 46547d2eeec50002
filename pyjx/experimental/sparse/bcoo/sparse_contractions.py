"""Products of two BCOO arrays, which are BCOO arrays themselves.

Every pair of stored elements is a candidate: the work is the product of the numbers of elements of
a batch, as the number of pairs that meet is not known when the program is compiled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.avals import get_aval
from pyjx.experimental.sparse.bcoo.array import BCOO
from pyjx.experimental.sparse.bcoo.conversion import in_bounds
from pyjx.experimental.sparse.bcoo.duplicates import bcoo_sum_duplicates
from pyjx.experimental.sparse.primitives import defined_by
from pyjx.experimental.sparse.util import SparseInfo, over_batch


def _split(shape: Sequence[int], indices: Any, summed: Sequence[int]
           ) -> tuple[list[int], list[int]]:
    """Which columns of the indices are summed over, and which are not."""
    n_batch = get_aval(indices).ndim - 2
    n_sparse = get_aval(indices).shape[-1]
    return ([d - n_batch for d in summed],
            [i for i in range(n_sparse) if n_batch + i not in summed])


def _spdot_general(lhs_data: Any, lhs_indices: Any, rhs_data: Any, rhs_indices: Any, *,
                   lhs_spinfo: SparseInfo, rhs_spinfo: SparseInfo, dimension_numbers: Any,
                   preferred_element_type: Any) -> list[Any]:
    (lc, rc), (lb, rb) = dimension_numbers
    lhs_shape, rhs_shape = lhs_spinfo.shape, rhs_spinfo.shape
    n_left, n_right = get_aval(lhs_indices).ndim - 2, get_aval(rhs_indices).ndim - 2
    left_summed, left_free = _split(lhs_shape, lhs_indices, lc)
    right_summed, right_free = _split(rhs_shape, rhs_indices, rc)
    left_sizes = lhs_shape[n_left:]
    right_sizes = rhs_shape[n_right:]
    sizes = (*[left_sizes[i] for i in left_free], *[right_sizes[i] for i in right_free])
    dtype = preferred_element_type or dtypes.result_type(lhs_data.dtype, rhs_data.dtype)
    lhs_data, rhs_data = lhs_data.astype(dtype), rhs_data.astype(dtype)

    def one(x: Any, xi: Any, y: Any, yi: Any) -> tuple[Any, Any]:
        n, m = x.shape[0], y.shape[0]
        inside = in_bounds(xi, left_sizes)[:, None] & in_bounds(yi, right_sizes)
        meet = inside
        for i, j in zip(left_summed, right_summed, strict=True):
            meet &= xi[:, None, i] == yi[:, j]
        data = jnp.where(meet, lax.dot_general(x, y, (((), ()), ((), ()))), jnp.zeros((), dtype))
        cols = [*[jnp.broadcast_to(xi[:, None, i], (n, m)) for i in left_free],
                *[jnp.broadcast_to(yi[:, j], (n, m)) for j in right_free]]
        index_dtype = dtypes.result_type(xi.dtype, yi.dtype)
        cols = [jnp.where(inside, c, size).astype(index_dtype)
                for c, size in zip(cols, sizes, strict=True)]
        indices = jnp.stack(cols, -1) if cols else jnp.zeros((n, m, 0), index_dtype)
        return data.reshape(n * m), indices.reshape(n * m, len(sizes))

    order = [*lb, *[d for d in range(n_left) if d not in lb]]
    other = [*rb, *[d for d in range(n_right) if d not in rb]]

    def front(x: Any, y: Any) -> tuple[Any, Any]:
        """Both with the common batch dimensions, then the left one's, then the right one's."""
        k, more_left, more_right = len(lb), len(order) - len(lb), len(other) - len(rb)
        x = jnp.moveaxis(x, order, range(n_left))
        y = jnp.moveaxis(y, other, range(n_right))
        return (x.reshape(*x.shape[:n_left], *[1] * more_right, *x.shape[n_left:]),
                y.reshape(*y.shape[:k], *[1] * more_left, *y.shape[k:]))

    x, y = front(lhs_data, rhs_data)
    xi, yi = front(lhs_indices, rhs_indices)
    n_batch = len(order) + len(other) - len(lb)
    data, indices = over_batch(one, n_batch, x, xi, y, yi)
    batch = (*[lhs_shape[d] for d in order], *[rhs_shape[d] for d in other[len(rb):]])
    room = math.prod(sizes)
    if indices.shape[-2] > room:
        mat = bcoo_sum_duplicates(BCOO._of(data, indices, (*batch, *sizes)), nse=room)
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
