"""Products and convolutions of BCOO arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, DTypeLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.integers import as_ints
from pyjx.core.layouts import ShardingLike
from pyjx.core.value_texts import shortened
from pyjx.engine.types import Value
from pyjx.experimental.sparse.bcoo.array import BCOO, properties
from pyjx.experimental.sparse.bcoo.buffers import (
    as_row,
    batch_to_sparse,
    bcoo_sum_duplicates,
    bcoo_update_layout,
    columns,
    in_bounds,
)
from pyjx.experimental.sparse.formats import (
    JAXSparse,
    SparseInfo,
    added_at,
    defined_by,
    over_batch,
    stretched,
)
from pyjx.lax.contractions import PrecisionLike, dot_shape
from pyjx.runtime.operations import op_jit


class _Contraction(NamedTuple):
    """A sum over columns of the indices of two unbatched arrays."""

    left_sizes: tuple[int, ...]
    right_sizes: tuple[int, ...]
    left_summed: list[int]
    left_free: list[int]
    right_summed: list[int]
    right_free: list[int]
    dtype: dtypes.DType

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
                 summed: tuple[Sequence[int], Sequence[int]], dtype: dtypes.DType) -> _Contraction:
    left_sizes, right_sizes = left.shape[n_left:], right.shape[n_right:]
    left_summed, right_summed = [d - n_left for d in summed[0]], [d - n_right for d in summed[1]]
    return _Contraction(left_sizes, right_sizes, left_summed,
                        [i for i in range(len(left_sizes)) if i not in left_summed], right_summed,
                        [j for j in range(len(right_sizes)) if j not in right_summed], dtype)


def _spdot_general(lhs_data: Any, lhs_indices: Any, rhs_data: Any, rhs_indices: Any, *,
                   lhs_spinfo: SparseInfo, rhs_spinfo: SparseInfo, dimension_numbers: Any,
                   preferred_element_type: DTypeLike) -> list[Any]:
    summed, (lb, rb) = dimension_numbers
    n_left, n_right = get_aval(lhs_indices).ndim - 2, get_aval(rhs_indices).ndim - 2
    dtype = preferred_element_type or dtypes.result_type(lhs_data.dtype, rhs_data.dtype)
    one = _contraction(lhs_spinfo, rhs_spinfo, n_left, n_right, summed, dtype)
    order = [*lb, *[d for d in range(n_left) if d not in lb]]
    other = [*rb, *[d for d in range(n_right) if d not in rb]]

    def front(x: Value, y: Value) -> tuple[Any, Any]:
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


def bcoo_spdot_general(lhs: BCOO, rhs: BCOO, numbers: Any, preferred_element_type: DTypeLike | None
                      ) -> BCOO:
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


DimensionNumbers = tuple[tuple[tuple[int, ...], tuple[int, ...]],
                         tuple[tuple[int, ...], tuple[int, ...]]]


class Axes(NamedTuple):
    """The dimensions of an operand by what happens to them."""

    batch: tuple[int, ...]
    summed: tuple[int, ...]
    free: tuple[int, ...]


def axes_of(ndim: int, summed: Sequence[int], batch: Sequence[int]) -> Axes:
    return Axes(tuple(batch), tuple(summed),
                tuple([d for d in range(ndim) if d not in summed and d not in batch]))


def canonical_numbers(name: str, dimension_numbers: Any, lhs: tuple[int, ...],
                      rhs: tuple[int, ...]) -> DimensionNumbers:
    """The dimension numbers as tuples.

    Raises:
      TypeError: they do not fit the shapes `lhs` and `rhs`.
    """
    try:
        (lc, rc), (lb, rb) = dimension_numbers
    except (TypeError, ValueError):
        raise TypeError(f"{name}: dimension_numbers must be ((lhs_contracting, rhs_contracting), "
                        f"(lhs_batch, rhs_batch)), got {dimension_numbers!r}.") from None
    lc, rc, lb, rb = (as_ints(name, "dimension_numbers", x) for x in (lc, rc, lb, rb))
    dot_shape(ShapedArray(lhs, np.dtype(np.float32)), ShapedArray(rhs, np.dtype(np.float32)),
              ((lc, rc), (lb, rb)))
    return (lc, rc), (lb, rb)


def accumulation_dtype(*operand_dtypes: Any) -> Any:
    """The dtype that products are added in: float32 for narrower floats."""
    dtype = dtypes.result_type(*operand_dtypes)
    narrow = dtypes.issubdtype(dtype, jnp.floating) and dtype.itemsize < 4
    return jnp.dtype(jnp.float32) if narrow else dtype


# -- bcoo_dot_general ------------------------------------------------------------------------------


def _product(data: Array, indices: Array, rhs: Any, n_summed: int, summed: tuple[int, ...],
             free: tuple[int, ...], sizes: tuple[int, ...], is_sorted: bool) -> Any:
    """For one batch: `rhs` has its `n_summed` shared dimensions in front, which the columns
    `summed` of the indices are coordinates of; the columns `free` are coordinates of the result,
    whose sparse dimensions have the lengths `sizes`."""
    cols = columns(indices)
    dense, others = get_aval(data).shape[1:], get_aval(rhs).shape[n_summed:]
    if n_summed:
        rows = rhs.at[tuple([cols[i] for i in summed])].get(mode="fill", fill_value=0)
        if not free:
            return lax.dot_general(data, rows, (((0,), (0,)), ((), ())))
        terms = data.reshape(*data.shape, *[1] * len(others)) * rows.reshape(
            data.shape[0], *[1] * len(dense), *others)
    elif not free:
        return lax.dot_general(data.sum(0), rhs, (((), ()), ((), ())))
    else:
        terms = lax.dot_general(data, rhs, (((), ()), ((), ())))
    return added_at((*sizes, *dense, *others), tuple([cols[i] for i in free]), terms,
                    indices_are_sorted=is_sorted and free == tuple(range(len(free))))


def _dot_general(data: Any, indices: Array, rhs: Any, *, dimension_numbers: DimensionNumbers,
                 preferred_element_type: Any, lhs_spinfo: SparseInfo) -> Array:
    (lc, rc), (lb, rb) = dimension_numbers
    shape = lhs_spinfo.shape
    is_sorted = lhs_spinfo.indices_sorted
    n_batch, n_sparse, _, _ = properties(get_aval(data).shape, get_aval(indices).shape, shape)
    out_dtype = preferred_element_type or dtypes.result_type(data.dtype, rhs.dtype)
    dtype = accumulation_dtype(out_dtype)
    data, rhs = data.astype(dtype), rhs.astype(dtype)

    mapped = [d for d in range(n_batch) if d not in lc]
    added = [d for d in range(n_batch) if d in lc]
    if added:
        mat = batch_to_sparse(BCOO._of(data, indices, shape), added)
        data, indices, is_sorted = mat.data, mat.indices, False
    # the dimensions that the columns of the indices stand for now
    sparse_dims = [*added, *range(n_batch, n_batch + n_sparse)]
    order = [*lb, *[d for d in mapped if d not in lb]]
    perm = [mapped.index(d) for d in order]
    data = jnp.moveaxis(data, perm, range(len(order)))
    indices = jnp.moveaxis(indices, perm, range(len(order)))

    right = axes_of(get_aval(rhs).ndim, rc, rb)
    rhs = jnp.transpose(rhs, (*right.batch, *right.summed, *right.free))
    rhs = rhs.reshape(*rhs.shape[:len(lb)], *[1] * (len(order) - len(lb)), *rhs.shape[len(lb):])
    free = tuple([i for i, d in enumerate(sparse_dims) if d not in lc])
    sizes = tuple([shape[sparse_dims[i]] for i in free])

    def one(data: Array, indices: Array, rhs: Value) -> Any:
        return _product(data, indices, rhs, len(rc), tuple([sparse_dims.index(d) for d in lc]),
                        free, sizes, is_sorted)

    out = over_batch(one, len(order), data, indices, rhs)
    # a free batch dimension may be stored once for all
    out = stretched(out, tuple([shape[d] for d in order]))
    return out.astype(out_dtype)  # type: ignore[no-any-return]


bcoo_dot_general_p = defined_by("bcoo_dot_general", _dot_general, "dimension_numbers",
                                "preferred_element_type", "lhs_spinfo")


def _check_sparse_side(mat: BCOO, summed: Sequence[int], batch: Sequence[int]) -> None:
    n_batch, n_sparse, _, _ = mat._properties()
    if any([d >= n_batch + n_sparse for d in summed]):
        raise NotImplementedError("bcoo_dot_general: contracting over dense dimensions.")
    if any([d >= n_batch for d in batch]):
        raise NotImplementedError(
            "bcoo_dot_general batch dimensions must be among the batch dimensions in the sparse "
            f"representation.\ngot lhs_batch={tuple(batch)}, n_batch={n_batch}")


def _sparse_dense(mat: BCOO, rhs: Any, numbers: DimensionNumbers, preferred: Any) -> Array:
    _check_sparse_side(mat, numbers[0][0], numbers[1][0])
    if preferred is None:
        preferred = dtypes.result_type(mat.dtype, rhs.dtype)
    return bcoo_dot_general_p.bind(  # type: ignore[no-any-return]
        jnp.asarray(mat.data), jnp.asarray(mat.indices), rhs, dimension_numbers=numbers,
        preferred_element_type=jnp.dtype(preferred), lhs_spinfo=mat._info)


def bcoo_dot_general(lhs: Any, rhs: Any, *, dimension_numbers: Any, precision: PrecisionLike = None,
                     preferred_element_type: DTypeLike | None = None,
                     out_sharding: ShardingLike = None) -> Any:
    """The product that `lax.dot_general` computes, of operands of which at least one is sparse.

    Args:
      lhs, rhs: BCOO or dense arrays.
      dimension_numbers: `((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))`. Contracting
        dimensions of a BCOO array are sparse or batch dimensions, batch dimensions are such ones.
      precision: not used.
      preferred_element_type: dtype of the result.
      out_sharding: not used on one device.

    Returns:
      A dense array, or a BCOO array where both operands are sparse.

    Raises:
      TypeError: the dimensions do not fit the shapes.
      NotImplementedError: they are of another kind than above.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental import sparse
    >>> numbers = (((1,), (0,)), ((), ()))
    >>> sparse.bcoo_dot_general(sparse.eye(2), jnp.ones(2), dimension_numbers=numbers).tolist()
    [1.0, 1.0]
    """
    for name, x in (("lhs", lhs), ("rhs", rhs)):
        if isinstance(x, JAXSparse) and not isinstance(x, BCOO):
            raise TypeError(f"bcoo_dot_general: {name} must be a BCOO or a dense array, got "
                            f"{shortened(x)}.")
    left = lhs if isinstance(lhs, BCOO) else jnp.asarray(lhs)
    right = rhs if isinstance(rhs, BCOO) else jnp.asarray(rhs)
    numbers = canonical_numbers("bcoo_dot_general", dimension_numbers, left.shape, right.shape)
    if isinstance(left, BCOO):
        if isinstance(right, BCOO):
            return bcoo_spdot_general(left, right, numbers, preferred_element_type)
        return _sparse_dense(left, right, numbers, preferred_element_type)
    if not isinstance(right, BCOO):
        return lax.dot_general(left, right, numbers, precision, preferred_element_type)
    (lc, rc), (lb, rb) = numbers
    out = _sparse_dense(right, left, ((rc, lc), (rb, lb)), preferred_element_type)
    n = len(lb)
    n_right = right.ndim - n - len(rc)
    return jnp.moveaxis(out, range(n, n + n_right), range(out.ndim - n_right, out.ndim))


# -- bcoo_dot_general_sampled ----------------------------------------------------------------------


def _sampled(A: Any, B: Any, indices: ArrayLike, *, dimension_numbers: DimensionNumbers) -> Array:
    (ac, bc), (ab, bb) = dimension_numbers
    *_, n_sparse = get_aval(indices).shape
    n_batch = get_aval(indices).ndim - 2
    left, right = axes_of(A.ndim, ac, ab), axes_of(B.ndim, bc, bb)
    dtype = dtypes.result_type(A.dtype, B.dtype)
    wide = accumulation_dtype(dtype)
    A, B = A.astype(wide), B.astype(wide)
    # Each dimension of the product, as one of A, of B, or of both.
    product: list[tuple[int | None, int | None]] = [
        *zip(ab, bb, strict=True), *[(d, None) for d in left.free],
        *[(None, d) for d in right.free]]
    chosen, rest = product[n_batch:n_batch + n_sparse], product[n_batch + n_sparse:]

    def arranged(x: Value, side: int, summed: Sequence[int]) -> Any:
        """`x` with its dimensions in the product's order, then those that are summed over."""
        dims = [pair[side] for pair in product]
        x = jnp.transpose(x, [*[d for d in dims if d is not None], *summed])
        return jnp.expand_dims(x, [i for i, d in enumerate(dims[:n_batch]) if d is None])

    def one(A: Any, B: Any, indices: Array) -> Any:
        cols = columns(indices)
        used = [tuple([cols[i] for i, pair in enumerate(chosen) if pair[side] is not None])
                for side in (0, 1)]
        A, B = (x.at[at].get(mode="fill", fill_value=0) if at else x
                for x, at in zip((A, B), used, strict=True))
        if all(used) and not rest:  # a sum over what is gathered, without storing that
            return (A * B).sum(tuple(range(1, A.ndim)), dtype=wide)
        both = [pair for pair in rest if None not in pair]
        n_rows = [int(bool(at)) for at in used]
        # the dense batch dimensions follow the rows, the summed dimensions are the last ones
        batch = [tuple(range(n, n + len(both))) for n in n_rows]
        if all(used):
            batch = [(0, *b) for b in batch]
        summed = [tuple(range(x.ndim - len(ac), x.ndim)) for x in (A, B)]
        out = lax.dot_general(A, B, ((summed[0], summed[1]), (batch[0], batch[1])))
        if used[1] and not used[0]:
            n_free = len([pair for pair in rest if pair[1] is None])
            out = jnp.moveaxis(out, len(both) + n_free, 0)
        elif used[0] and not used[1] and both:
            out = jnp.moveaxis(out, len(both), 0)
        elif not any(used):
            out = jnp.broadcast_to(out, (get_aval(indices).shape[0], *out.shape))
        return out

    data = over_batch(one, n_batch, arranged(A, 0, ac), arranged(B, 1, bc), indices)
    return data.astype(dtype)  # type: ignore[no-any-return]


bcoo_dot_general_sampled_p = defined_by("bcoo_dot_general_sampled", _sampled, "dimension_numbers")


def bcoo_dot_general_sampled(A: Value, B: Value, indices: ArrayLike, *, dimension_numbers: Any
                            ) -> Array:
    """Elements of the product of two dense arrays, without computing the others.

    Args:
      A, B: arrays.
      indices: integers `[*batch, nse, n_sparse]`, as those of a BCOO array of the product's shape.
      dimension_numbers: as for `lax.dot_general`.

    Returns:
      The data of that BCOO array; zero where the indices are out of bounds.

    Raises:
      TypeError: the dimensions do not fit the shapes.
      ValueError: the indices have more columns than the product dimensions.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental import sparse
    >>> A, numbers = jnp.array([[1., 2.], [3., 4.]]), (((1,), (0,)), ((), ()))
    >>> indices = jnp.array([[1, 0]])
    >>> sparse.bcoo_dot_general_sampled(A, A, indices, dimension_numbers=numbers).tolist()
    [15.0]
    """
    A, B, indices = jnp.asarray(A), jnp.asarray(B), jnp.asarray(indices)
    numbers = canonical_numbers("bcoo_dot_general_sampled", dimension_numbers, A.shape, B.shape)
    (ac, _), (ab, _) = numbers
    ndim = A.ndim + B.ndim - len(ab) - 2 * len(ac)
    if indices.ndim < 2 or indices.ndim - 2 + indices.shape[-1] > ndim:
        raise ValueError("bcoo_dot_general_sampled: indices must have the shape (*batch, nse, "
                         f"n_sparse) for a product of rank {ndim}, got {indices.shape}.")
    return bcoo_dot_general_sampled_p.bind(A, B, indices, dimension_numbers=numbers)  # type: ignore[no-any-return]


def bcoo_multiply_dense(sp_mat: BCOO, v: ArrayLike) -> Array:
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
        raise NotImplementedError("multiplication between sparse and dense is only implemented for "
                                  "cases where the output shape matches the sparse matrix shape. "
                                  f"Got shape={sp_mat.shape}, v.shape={v.shape}")
    return data_times(sp_mat, v, "multiply")


def data_times(mat: BCOO, v: Array, operation: str) -> Array:
    """The data of `mat` with the elements of `v` at its indices, multiplied or divided by them."""
    return _data_times(mat, v, operation=operation)  # type: ignore[no-any-return]


@op_jit(trees=True, static_argnames=("operation",))
def _data_times(mat: BCOO, v: Array, *, operation: str) -> Any:
    fun = getattr(jnp, operation)
    if not get_aval(v).ndim:
        return fun(mat.data, v)
    n_batch, _n_sparse, _n_dense, _ = mat._properties()
    v = v.reshape(*[1] * (mat.ndim - v.ndim), *v.shape)
    outside = 1 if operation == "divide" else 0

    def one(data: ArrayLike, indices: Array, v: Any) -> Any:
        cols = tuple([jnp.where(c < n, 0, 1) if v.shape[i] == 1 else c for i, (c, n) in enumerate(
            zip(columns(indices), mat.shape[n_batch:], strict=False))])
        taken = v.at[cols].get(mode="fill", fill_value=outside) if cols else v[None]
        return fun(data, taken)

    return over_batch(one, n_batch, mat.data, mat.indices, v)


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
    return _elementwise_product(  # type: ignore[no-any-return]
        *[bcoo_update_layout(x, n_batch=n_batch, n_dense=n_dense) for x in (lhs, rhs)])


@op_jit(trees=True)
def _elementwise_product(lhs: BCOO, rhs: BCOO) -> Any:
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


def _partner(xi: Array, left: tuple[int, ...], yi: Array, right: tuple[int, ...], common: list[int]
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


def bcoo_conv_general_dilated(
    lhs: BCOO | Array, rhs: BCOO | Array, *, window_strides: Any, padding: Any,
    lhs_dilation: Any = None, rhs_dilation: Any = None, dimension_numbers: Any = None,
    feature_group_count: int = 1, batch_group_count: int = 1, precision: Any = None,
    preferred_element_type: DTypeLike | None = None, out_sharding: ShardingLike = None,
) -> BCOO:
    """The convolution of two BCOO arrays, or of one and a dense array, along one dimension.

    Args:
      lhs, rhs: arrays of shape `[1, 1, n]`, at least one a BCOO array.
      window_strides: `(1,)`.
      padding: as for `lax.conv_general_dilated`.
      lhs_dilation, rhs_dilation, feature_group_count, batch_group_count: None or 1.
      dimension_numbers: None, for the layout above.
      precision: not used.
      preferred_element_type: dtype of the result.
      out_sharding: not used on one device.

    Returns:
      BCOO array of shape `[1, 1, m]` that stores an element for each pair of elements.

    Raises:
      NotImplementedError: anything but the above.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental import sparse
    >>> x = sparse.BCOO.fromdense(jnp.array([[[1., 0., 2., 0.]]]))
    >>> k = sparse.BCOO.fromdense(jnp.array([[[3., 4.]]]))
    >>> y = sparse.bcoo_conv_general_dilated(x, k, window_strides=(1,), padding="VALID")
    >>> y.todense().tolist()
    [[[3.0, 8.0, 6.0]]]
    """
    if not (isinstance(lhs, BCOO) or isinstance(rhs, BCOO)):
        raise TypeError("bcoo_conv_general_dilated: lhs or rhs must be a BCOO array, got "
                        f"{type(lhs)} and {type(rhs)}.")
    numbers = lax.conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    if (lhs.ndim != 3 or numbers != lax.conv_dimension_numbers(lhs.shape, rhs.shape, None)):
        raise NotImplementedError("bcoo convolution with other than one spatial dimension, or with "
                                  "dimension_numbers.")
    if lhs.shape[:2] != (1, 1) or rhs.shape[:2] != (1, 1):
        raise NotImplementedError("bcoo convolution with leading dimensions other than (1, 1): "
                                  f"got {lhs.shape} and {rhs.shape}.")
    if any([s != 1 for s in window_strides]):
        raise NotImplementedError("bcoo convolution with non-unit window_strides.")
    for name, dilation in (("lhs", lhs_dilation), ("rhs", rhs_dilation)):
        if dilation is not None and any([d != 1 for d in dilation]):
            raise NotImplementedError(f"bcoo convolution with non-unit {name}_dilation.")
    if (feature_group_count, batch_group_count) != (1, 1):
        raise NotImplementedError("bcoo convolution with groups.")
    pads = padding
    if isinstance(padding, str):
        pads = lax.padtype_to_pads(lhs.shape[2:], rhs.shape[2:], (1,), padding)
    ((low, high),) = pads
    dtype = None if preferred_element_type is None else jnp.dtype(preferred_element_type)
    return _convolved(  # type: ignore[no-any-return]
        _by_column(lhs), _by_column(rhs), low=int(low), high=int(high), dtype=dtype)


def _by_column(x: BCOO | Array) -> BCOO:
    """`[1, 1, n]` as two batch dimensions and a sparse one. All elements of a dense array are
    stored, as derivatives by zeros are not zero."""
    if isinstance(x, BCOO):
        return bcoo_update_layout(x, n_batch=2, n_dense=0)
    return BCOO._of(x, jnp.arange(x.shape[2], dtype=np.int32)[None, None, :, None], x.shape,
                    indices_sorted=True, unique_indices=True)


@op_jit(trees=True, static_argnames=("low", "high", "dtype"))
def _convolved(lhs: BCOO, rhs: BCOO, *, low: int, high: int, dtype: DTypeLike | None) -> Any:
    """x_i k_j is part of the result at i - j + low."""
    (n, m), pairs = (x.shape[2] for x in (lhs, rhs)), lhs.nse * rhs.nse
    length = max(n + low + high - m + 1, 0)
    x, k = lhs.data[..., :, None], rhs.data[..., None, :]
    if dtype is not None:
        x, k = x.astype(dtype), k.astype(dtype)
    i, j = lhs.indices[..., :, None, 0], rhs.indices[..., None, :, 0]
    place = i - j + low
    inside = (i >= 0) & (i < n) & (j >= 0) & (j < m) & (place >= 0) & (place < length)
    data = jnp.where(inside, x * k, jnp.zeros((), dtypes.result_type(x.dtype, k.dtype)))
    place = jnp.where(inside, place, length)
    return BCOO._of(data.reshape(1, 1, pairs), place.reshape(1, 1, pairs, 1), (1, 1, length))
