"""BCSR, batched compressed row format: the class and its operations.

Its rows are a BCOO array's with sorted indices: operations but for the simplest ones are those of
BCOO arrays, after the places of the rows' starts became row numbers.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike, DTypeLike
from pyjx.core.avals import get_aval
from pyjx.core.integers import as_ints, as_shape
from pyjx.core.layouts import ShardingLike
from pyjx.experimental.sparse.bcoo.array import BCOO, properties
from pyjx.experimental.sparse.bcoo.buffers import (
    bcoo_eliminate_zeros,
    bcoo_extract_p,
    bcoo_fromdense,
    bcoo_sum_duplicates,
    check_layout,
    number_to_store,
)
from pyjx.experimental.sparse.bcoo.products import (
    DimensionNumbers,
    bcoo_dot_general_p,
    canonical_numbers,
)
from pyjx.experimental.sparse.bcoo.shapes import bcoo_broadcast_in_dim, bcoo_concatenate
from pyjx.experimental.sparse.formats import (
    Batched,
    JAXSparse,
    SparseInfo,
    as_index_dtype,
    batched_format,
    binary,
    defined_by,
    item,
    over_batch,
    reflected,
)
from pyjx.experimental.sparse.matrices import csr_product, rows_of, suits_library
from pyjx.guards import guard
from pyjx.jaxlib_api import Sharding
from pyjx.lax.contractions import PrecisionLike
from pyjx.runtime.operations import op_jit


def _check(data: Array, indices: Array, indptr: Array, shape: tuple[int, ...]) -> None:
    """Raise ValueError unless the buffers go with the shape."""
    n_batch = indices.ndim - 1
    if n_batch < 0 or len(shape) < n_batch + 2:
        raise ValueError(f"BCSR: indices of shape {indices.shape} have {n_batch} batch dimensions; "
                         f"besides these there must be two sparse ones, got shape={shape}.")
    properties(data.shape, (*indices.shape, 2), shape)
    if indptr.ndim != n_batch + 1 or indptr.shape[-1] != shape[n_batch] + 1:
        raise ValueError("indptr shape must match the matrix shape plus 1.")
    if any([n not in (1, full) for n, full in zip(indptr.shape[:-1], shape, strict=False)]):
        raise ValueError(f"indptr batch dimensions not compatible: they are {indptr.shape[:-1]} "
                         f"for shape={shape}, n_batch={n_batch}")


@batched_format
class BCSR(Batched):
    """An array of which some elements are stored row by row.

    Its dimensions are, in this order, `n_batch` batch, two sparse and `n_dense` dense ones.

    Args:
      args: the data, `[*batch, nse, *dense]`, the columns of the elements, `[*batch, nse]`, and the
        place of the first element of each row, followed by the number of elements,
        `[*batch, rows + 1]`.
      shape: that of the whole array.
      indices_sorted: whether the columns of each row are known to be in order.
      unique_indices: whether the columns of each row are known to be different.

    Raises:
      ValueError: the shapes do not go together.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental import sparse
    >>> M = sparse.BCSR.fromdense(jnp.array([[0., 1.], [2., 3.]]))
    >>> M, M.indptr.tolist(), (M @ jnp.ones(2)).tolist()
    (BCSR(float32[2, 2], nse=3), [0, 1, 3], [1.0, 5.0])
    """

    _buffers = ("data", "indices", "indptr")
    n_sparse = 2
    data: Array
    indptr: Array

    def __init__(self, args: tuple[Any, Any, Any], *, shape: Sequence[int],
                 indices_sorted: bool = False, unique_indices: bool = False) -> None:
        super().__init__(args, shape=shape, indices_sorted=indices_sorted,
                         unique_indices=unique_indices)
        _check(self.data, self.indices, self.indptr, self.shape)

    @property
    def nse(self) -> int:  # type: ignore[override]
        return self.indices.shape[-1]

    @property
    def n_batch(self) -> int:
        return self.indices.ndim - 1

    # -- making ------------------------------------------------------------------------------------

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32,
                  n_dense: int = 0, n_batch: int = 0) -> BCSR:
        """The sparse array of the elements of `mat` that are not zero; see `bcsr_fromdense`."""
        return bcsr_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense,
                              n_batch=n_batch)

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """The same array by rows.

        Args:
          arr: BCOO array with two sparse dimensions.

        Raises:
          NotImplementedError: it has another number of them.
        """
        if arr.n_sparse != 2:
            raise NotImplementedError("BCSR.from_bcoo requires n_sparse=2; got "
                                      f"arr.n_sparse={arr.n_sparse}")
        return _from_bcoo(arr if arr.indices_sorted else arr.sort_indices())  # type: ignore[no-any-return]

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: DTypeLike | None = None, n_dense: int = 0,
                          n_batch: int = 0) -> BCSR:
        """The array of a matrix of `scipy.sparse`.

        Raises:
          NotImplementedError: batch or dense dimensions are asked for.
        """
        if n_dense or n_batch:
            raise NotImplementedError("BCSR from_scipy_sparse with nonzero n_dense/n_batch.")
        mat = mat.tocsr()
        indices, indptr = (jnp.asarray(x) for x in (mat.indices, mat.indptr))
        if index_dtype is not None:
            indices, indptr = indices.astype(index_dtype), indptr.astype(index_dtype)
        return cls((jnp.asarray(mat.data), indices, indptr), shape=mat.shape)

    @classmethod
    def _empty(cls, shape: Sequence[int], *, dtype: DTypeLike | None = None,
               index_dtype: DTypeLike = "int32", n_dense: int = 0, n_batch: int = 0, nse: int = 0
              ) -> BCSR:
        shape = tuple(shape)
        if min(n_dense, n_batch, nse) < 0 or len(shape) - n_dense - n_batch != 2:
            raise ValueError("BCSR sparse.empty: must have 2 sparse dimensions, got "
                             f"shape={shape}, n_dense={n_dense}, n_batch={n_batch}, nse={nse}.")
        batch, (rows, cols) = shape[:n_batch], shape[n_batch:n_batch + 2]
        return cls((jnp.zeros((*batch, nse, *shape[n_batch + 2:]), dtype),
                    jnp.full((*batch, nse), cols, index_dtype),
                    jnp.zeros((*batch, rows + 1), index_dtype)), shape=shape,
                   indices_sorted=True, unique_indices=True)

    @classmethod
    def _eye(cls, N: int, M: int, k: int, *, dtype: Any = None, index_dtype: Any = "int32",
             n_batch: int = 0, n_dense: int = 0) -> BCSR:
        return cls.from_bcoo(BCOO._eye(N, M, k, dtype=dtype, index_dtype=index_dtype,
                                       n_batch=n_batch, n_dense=n_dense))

    # -- methods -----------------------------------------------------------------------------------

    def todense(self) -> Array:
        """The same array with all elements."""
        return bcsr_todense(self)

    def to_bcoo(self) -> BCOO:
        """The same array with a row number for each element."""
        return _to_bcoo(self)  # type: ignore[no-any-return]

    def transpose(self, *args: Any, **kwargs: Any) -> BCSR:
        raise NotImplementedError("Transpose is not implemented.")

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """The array with sorted columns of which each occurs once in a row.

        Args:
          nse: how many elements to store, as many as there are by default; needed where it is
            traced.
          remove_zeros: whether elements that are zero are left out.
        """
        if remove_zeros:
            return bcsr_eliminate_zeros(self, nse=nse)
        return bcsr_sum_duplicates(self, nse=nse)

    __getitem__ = item
    __matmul__ = binary(operator.matmul)
    __rmatmul__ = reflected(operator.matmul)


# -- conversions -----------------------------------------------------------------------------------


def _pairs(indices: ArrayLike, indptr: ArrayLike, n_rows: int, n_cols: int) -> Any:
    """Row and column of each element; those that belong to no row are out of bounds."""
    aval = get_aval(indices)
    rows = over_batch(lambda x: rows_of(x, aval.shape[-1]), get_aval(indptr).ndim - 1, indptr)
    rows, indices = jnp.broadcast_arrays(rows.astype(aval.dtype), indices)
    return jnp.stack([rows, jnp.where(rows < n_rows, indices, n_cols)], -1)


@op_jit(trees=True)
def _to_bcoo(mat: BCSR) -> Any:
    return BCOO._of(mat.data, _pairs(mat.indices, mat.indptr, *mat._sparse_shape), mat.shape,
                    mat.indices_sorted, mat.unique_indices)


def row_starts(rows: Array, n_rows: int, dtype: DTypeLike) -> Any:
    """The place of the first element of each row, and of what follows the last one, in `rows`,
    which are in order."""
    counts = jnp.zeros(n_rows + 1, dtype).at[rows + 1].add(1, mode="drop")
    return jnp.cumsum(counts, dtype=dtype)


@op_jit(trees=True)
def _from_bcoo(mat: BCOO) -> Any:
    n_rows = mat.shape[mat.n_batch]
    rows, cols = mat.indices[..., 0], mat.indices[..., 1]
    indptr = over_batch(lambda x: row_starts(x, n_rows, cols.dtype), mat.n_batch, rows)
    return BCSR._of(mat.data, cols, indptr, mat.shape)


def _fromdense(mat: ArrayLike, *, nse: int, n_batch: int, n_dense: int, index_dtype: DTypeLike
              ) -> list[Array]:
    sparse = bcoo_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense,
                            index_dtype=index_dtype)
    rows = _from_bcoo(sparse)
    return [rows.data, rows.indices, rows.indptr]


bcsr_fromdense_p = defined_by("bcsr_fromdense", _fromdense, "nse", "n_batch", "n_dense",
                              "index_dtype", multiple_results=True)


def bcsr_fromdense(mat: ArrayLike, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0,
                   index_dtype: DTypeLike = np.int32) -> BCSR:
    """The BCSR array of the elements of a dense one that are not zero.

    Args:
      mat: array.
      nse: number of elements to store for each batch, by default as many as the fullest one has;
        needed where `mat` is traced.
      n_batch: number of batch dimensions.
      n_dense: number of dense dimensions.
      index_dtype: dtype of the indices.

    Raises:
      ConcretizationTypeError: `mat` is traced and `nse` is missing.
      ValueError: there are not two sparse dimensions.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental import sparse
    >>> sparse.bcsr_fromdense(jnp.array([[0, 5], [0, 7]])).indices.tolist()
    [1, 1]
    """
    mat = jnp.asarray(mat)
    n_batch, n_dense = operator.index(n_batch), operator.index(n_dense)
    if mat.ndim - n_batch - n_dense != 2:
        raise ValueError("bcsr_fromdense: must have 2 sparse dimensions.")
    check_layout("bcsr_fromdense", mat.ndim, n_batch, n_dense)
    nse_int = number_to_store("bcsr_fromdense", BCSR, mat, nse, n_batch, n_dense)
    data, indices, indptr = bcsr_fromdense_p.bind(
        mat, nse=nse_int, n_batch=n_batch, n_dense=n_dense,
        index_dtype=as_index_dtype("bcsr_fromdense", index_dtype))
    return BCSR._of(data, indices, indptr, mat.shape)


def _todense(data: Array, indices: Array, indptr: Array, *, spinfo: SparseInfo) -> Array:
    return _to_bcoo(BCSR._of(data, indices, indptr, *spinfo)).todense()  # type: ignore[no-any-return]


bcsr_todense_p = defined_by("bcsr_todense", _todense, "spinfo")


def bcsr_todense(mat: BCSR) -> Array:
    """The array with all its elements.

    >>> from pyjx.experimental import sparse
    >>> sparse.bcsr_todense(sparse.eye(2, sparse_format="bcsr")).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return bcsr_todense_p.bind(*mat._bufs, spinfo=mat._info)  # type: ignore[no-any-return]


def _extract(indices: ArrayLike, indptr: ArrayLike, mat: Any) -> Array:
    n_batch = get_aval(indices).ndim - 1
    shape = get_aval(mat).shape
    pairs = _pairs(indices, indptr, *shape[n_batch:n_batch + 2])
    return bcoo_extract_p.bind(pairs, mat, assume_unique=True)  # type: ignore[no-any-return]


bcsr_extract_p = defined_by("bcsr_extract", _extract)


def bcsr_extract(indices: ArrayLike, indptr: ArrayLike, mat: Any) -> Array:
    """The elements of a dense array at the places of those of a BCSR array.

    Args:
      indices, indptr: buffers of the BCSR array.
      mat: array of its shape.

    Returns:
      The data of that BCSR array.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental import sparse
    >>> M = sparse.eye(2, sparse_format="bcsr")
    >>> sparse.bcsr_extract(M.indices, M.indptr, jnp.array([[1., 2.], [3., 4.]])).tolist()
    [1.0, 4.0]
    """
    return bcsr_extract_p.bind(jnp.asarray(indices), jnp.asarray(indptr), jnp.asarray(mat))  # type: ignore[no-any-return]


# -- operations ------------------------------------------------------------------------------------


def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """The array with sorted columns, each once in a row, its elements being added.

    Args:
      mat: BCSR array.
      nse: how many elements to store for each batch, as many as there are by default; needed where
        `mat` is traced.

    >>> from pyjx.experimental import sparse
    >>> sparse.bcsr_sum_duplicates(sparse.eye(2, sparse_format="bcsr"), nse=3)
    BCSR(float32[2, 2], nse=3)
    """
    return BCSR.from_bcoo(bcoo_sum_duplicates(mat.to_bcoo(), nse=nse))


@guard
def bcsr_eliminate_zeros(mat: BCSR, nse: int | None = None) -> BCSR:
    """As `bcsr_sum_duplicates`, without the elements that are stored as zero."""
    return BCSR.from_bcoo(bcoo_eliminate_zeros(mat.to_bcoo(), nse=nse))


def _dot_general(data: Array, indices: Array, indptr: Array, rhs: Any, *,
                 dimension_numbers: DimensionNumbers, preferred_element_type: np.dtype[Any],
                 lhs_spinfo: SparseInfo) -> Array:
    if dimension_numbers == (((1,), (0,)), ((), ())) and len(lhs_spinfo.shape) == 2 and (
            preferred_element_type == data.dtype and suits_library(data, indices, indptr, rhs)):
        return csr_product(data, indices, indptr, rhs)
    mat = _to_bcoo(BCSR._of(data, indices, indptr, *lhs_spinfo))
    spinfo = SparseInfo(mat.shape, False, mat.unique_indices)
    return bcoo_dot_general_p.bind(  # type: ignore[no-any-return]
        mat.data, mat.indices, rhs, dimension_numbers=dimension_numbers,
        preferred_element_type=preferred_element_type, lhs_spinfo=spinfo)


bcsr_dot_general_p = defined_by("bcsr_dot_general", _dot_general, "dimension_numbers",
                                "preferred_element_type", "lhs_spinfo")


def bcsr_dot_general(lhs: Any, rhs: Any, *, dimension_numbers: Any, precision: PrecisionLike = None,
                     preferred_element_type: DTypeLike | None = None,
                     out_sharding: ShardingLike = None) -> Array:
    """The product that `lax.dot_general` computes, of a BCSR array and a dense one.

    Args:
      lhs: BCSR array.
      rhs: dense array.
      dimension_numbers: `((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))`.
      precision: not used.
      preferred_element_type: dtype of the result.
      out_sharding: not used on one device.

    Raises:
      NotImplementedError: `lhs` is dense, `rhs` is sparse, or dense dimensions are summed over.
      TypeError: the dimensions do not fit the shapes.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental import sparse
    >>> M, numbers = sparse.eye(2, sparse_format="bcsr"), (((1,), (0,)), ((), ()))
    >>> sparse.bcsr_dot_general(M, jnp.ones(2), dimension_numbers=numbers).tolist()
    [1.0, 1.0]
    """
    if not isinstance(lhs, BCSR) or isinstance(rhs, JAXSparse):
        raise NotImplementedError("bcsr_dot_general currently implemented for BCSR lhs and ndarray "
                                  "rhs.")
    rhs = jnp.asarray(rhs)
    numbers = canonical_numbers("bcsr_dot_general", dimension_numbers, lhs.shape, rhs.shape)
    (lc, _), (lb, _) = numbers
    if any([d >= lhs.n_batch + 2 for d in lc]):
        raise NotImplementedError("bcsr_dot_general: contracting over dense dimensions.")
    if any([d >= lhs.n_batch for d in lb]):
        raise NotImplementedError("bcsr_dot_general batch dimensions must be among the batch "
                                  "dimensions in the sparse representation.")
    dtype = preferred_element_type
    if dtype is None:
        dtype = jnp.result_type(lhs.data, rhs)
    return bcsr_dot_general_p.bind(  # type: ignore[no-any-return]
        *lhs._bufs, rhs, dimension_numbers=numbers, preferred_element_type=jnp.dtype(dtype),
        lhs_spinfo=lhs._info)


def bcsr_broadcast_in_dim(mat: BCSR, *, shape: Sequence[int], broadcast_dimensions: Sequence[int],
                          sharding: Sharding | None = None) -> BCSR:
    """The array with further dimensions along which it is the same.

    Those in front of the sparse dimensions are batch dimensions, those behind the first dense one
    dense. Arguments and errors are those of `bcoo_broadcast_in_dim`.

    >>> from pyjx.experimental import sparse
    >>> M = sparse.eye(2, sparse_format="bcsr")
    >>> sparse.bcsr_broadcast_in_dim(M, shape=(3, 2, 2), broadcast_dimensions=(1, 2))
    BCSR(float32[3, 2, 2], nse=2, n_batch=1)
    """
    new = as_shape("bcsr_broadcast_in_dim", "shape", shape)
    dims = as_ints("bcsr_broadcast_in_dim", "broadcast_dimensions", broadcast_dimensions)
    wide = bcoo_broadcast_in_dim(mat.to_bcoo(), shape=new, broadcast_dimensions=dims,
                                 sharding=sharding)
    if wide.n_sparse != 2:
        raise NotImplementedError("BCSR: cannot add sparse dimensions.")
    return _from_bcoo(wide)  # type: ignore[no-any-return]


def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """BCSR arrays joined along a batch or a sparse dimension.

    Arguments and errors are those of `bcoo_concatenate`.

    >>> from pyjx.experimental import sparse
    >>> M = sparse.eye(2, sparse_format="bcsr")
    >>> sparse.bcsr_concatenate([M, M], dimension=0).indptr.tolist()
    [0, 1, 2, 3, 4]
    """
    operands = list(operands)
    if not all([isinstance(x, BCSR) for x in operands]):
        raise ValueError("bcsr_concatenate: expected operands to be a sequence of BCSR arrays. "
                         f"Got {operands}")
    joined = bcoo_concatenate([x.to_bcoo() for x in operands], dimension=dimension)
    return BCSR.from_bcoo(joined)

