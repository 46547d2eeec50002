"""Products of BCOO and dense arrays that sum over shared dimensions.

An element of the sparse array at (i, j) meets the slice of the dense one at j, which is gathered,
and their product is added to the result at i: the work is that for the elements stored, and no
dense form of the sparse array is made. Derivatives are those of a gather, a product and a scatter:
with respect to the elements, `bcoo_dot_general_sampled`.

A batch dimension that is summed over becomes a sparse one first, so that the sum is part of the
scatter; one that is not is mapped over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array
from pyjx.core.avals import get_aval
from pyjx.core.brief import shortened
from pyjx.core.integers import as_ints
from pyjx.core.tracebacks import api_boundary
from pyjx.experimental.sparse.base import JAXSparse
from pyjx.experimental.sparse.bcoo.array import BCOO, properties
from pyjx.experimental.sparse.bcoo.conversion import columns
from pyjx.experimental.sparse.bcoo.layout import batch_to_sparse
from pyjx.experimental.sparse.bcoo.sparse_contractions import bcoo_spdot_general
from pyjx.experimental.sparse.primitives import defined_by
from pyjx.experimental.sparse.util import SparseInfo, added_at, over_batch, stretched

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
    for kind, left, right in (("contracting", lc, rc), ("batch", lb, rb)):
        if len(left) != len(right):
            raise TypeError(f"dot_general requires equal numbers of {kind} dimensions, got {left} "
                            f"and {right}.")
        if any([not 0 <= d < len(lhs) for d in left] + [not 0 <= d < len(rhs) for d in right]):
            raise TypeError(f"dot_general requires {kind} dimensions to be non-negative and less "
                            f"than the number of axes, got {left} and {right} for shapes {lhs} and "
                            f"{rhs}.")
        sizes = tuple([lhs[d] for d in left]), tuple([rhs[d] for d in right])
        if sizes[0] != sizes[1]:
            raise TypeError(f"dot_general requires {kind} dimensions to have the same shape, got "
                            f"{sizes[0]} and {sizes[1]}.")
    for side, used in (("lhs", (*lc, *lb)), ("rhs", (*rc, *rb))):
        if len(set(used)) < len(used):
            raise TypeError(f"dot_general requires {side} batch and contracting dimensions to be "
                            f"distinct, got {used}.")
    return (lc, rc), (lb, rb)


def accumulation_dtype(*operand_dtypes: Any) -> Any:
    """The dtype that products are added in: float32 for narrower floats."""
    dtype = dtypes.result_type(*operand_dtypes)
    narrow = dtypes.issubdtype(dtype, jnp.floating) and dtype.itemsize < 4
    return jnp.dtype(jnp.float32) if narrow else dtype


# -- bcoo_dot_general ------------------------------------------------------------------------------


def _product(data: Any, indices: Any, rhs: Any, n_summed: int, summed: tuple[int, ...],
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


def _dot_general(data: Any, indices: Any, rhs: Any, *, dimension_numbers: DimensionNumbers,
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

    def one(data: Any, indices: Any, rhs: Any) -> Any:
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


@api_boundary
def bcoo_dot_general(lhs: Any, rhs: Any, *, dimension_numbers: Any, precision: Any = None,
                     preferred_element_type: Any = None, out_sharding: Any = None) -> Any:
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


def _sampled(A: Any, B: Any, indices: Any, *, dimension_numbers: DimensionNumbers) -> Array:
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

    def arranged(x: Any, side: int, summed: Sequence[int]) -> Any:
        """`x` with its dimensions in the product's order, then those that are summed over."""
        dims = [pair[side] for pair in product]
        x = jnp.transpose(x, [*[d for d in dims if d is not None], *summed])
        return jnp.expand_dims(x, [i for i, d in enumerate(dims[:n_batch]) if d is None])

    def one(A: Any, B: Any, indices: Any) -> Any:
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


@api_boundary
def bcoo_dot_general_sampled(A: Any, B: Any, indices: Any, *, dimension_numbers: Any) -> Array:
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
