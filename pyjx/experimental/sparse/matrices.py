"""COO, CSR and CSC: matrices whose elements are stored with both coordinates, or row by row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike, DTypeLike
from pyjx.core.avals import get_aval
from pyjx.core.primitive import Primitive
from pyjx.experimental.sparse.bcoo.buffers import number_to_store
from pyjx.experimental.sparse.formats import (
    Buffered,
    JAXSparse,
    added_at,
    as_index_dtype,
    buffers_of,
    defined_by,
    diagonal_length,
    is_stored,
    with_data,
)
from pyjx.numpy.promotion import promote_dtypes
from pyjx.tree_util import register_pytree_node_class


class COOInfo(NamedTuple):
    """What is known of a COO matrix besides its buffers."""

    shape: tuple[int, ...]
    rows_sorted: bool = False
    cols_sorted: bool = False


def as_matrix_shape(name: str, shape: Sequence[int]) -> tuple[int, int]:
    shape = tuple(shape)
    if len(shape) != 2:
        raise ValueError(f"{name} must have ndim=2; got shape={shape}")
    return shape


@register_pytree_node_class
class COO(Buffered):
    """A matrix in coordinate format.

    Args:
      args: the data, the rows and the columns, vectors of one length. Elements at the same place
        add up, those out of bounds do not count.
      shape: of the matrix.
      rows_sorted, cols_sorted: whether the elements are known to be in the order of the rows, or
        of the columns.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental import sparse
    >>> M = sparse.COO.fromdense(jnp.array([[0., 1.], [2., 0.]]))
    >>> (M @ jnp.array([3., 4.])).tolist()
    [4.0, 6.0]
    """

    _buffers = ("data", "row", "col")
    data: Array
    row: Array
    col: Array
    _rows_sorted: bool
    _cols_sorted: bool

    def __init__(self, args: tuple[Any, Any, Any], *, shape: Sequence[int],
                 rows_sorted: bool = False, cols_sorted: bool = False) -> None:
        super().__init__(args, shape=as_matrix_shape("COO", shape), _rows_sorted=rows_sorted,
                         _cols_sorted=cols_sorted)

    @property
    def _known(self) -> dict[str, Any]:
        return {"spinfo": COOInfo(self.shape, self._rows_sorted, self._cols_sorted)}

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
                 ) -> COO:
        """The matrix of the elements of `mat` that are not zero; see `coo_fromdense`."""
        return coo_fromdense(mat, nse=nse, index_dtype=index_dtype)

    def _sort_indices(self) -> COO:
        """The elements in the order of the rows, then of the columns."""
        row, col, place = lax.sort(
            (self.row, self.col, lax.iota(np.int32, self.data.shape[0])), num_keys=2)
        return COO((self.data[place], row, col), shape=self.shape, rows_sorted=True)

    @classmethod
    def _empty(cls, shape: Sequence[int], *, dtype: DTypeLike | None = None,
               index_dtype: DTypeLike = "int32") -> COO:
        none = jnp.empty(0, index_dtype)
        return cls((jnp.empty(0, dtype), none, none), shape=as_matrix_shape("COO", shape),
                   rows_sorted=True, cols_sorted=True)

    @classmethod
    def _eye(cls, N: int, M: int, k: int, *, dtype: DTypeLike | None = None,
             index_dtype: DTypeLike = "int32") -> COO:
        first = jnp.arange(diagonal_length(N, M, k), dtype=index_dtype)
        return cls((jnp.ones(first.shape, dtype), first + max(0, -k), first + max(0, k)),
                   shape=(N, M), rows_sorted=True, cols_sorted=True)

    def todense(self) -> Array:
        return coo_todense(self)

    def transpose(self, axes: Sequence[int] | None = None) -> COO:
        """The matrix with rows for columns."""
        if axes is not None:
            raise NotImplementedError("axes argument to transpose()")
        return COO((self.data, self.col, self.row), shape=self.shape[::-1],
                   rows_sorted=self._cols_sorted, cols_sorted=self._rows_sorted)

    def tree_flatten(self) -> tuple[tuple[Array, Array, Array], dict[str, Any]]:
        return self._bufs, self._known["spinfo"]._asdict()

    @classmethod
    def tree_unflatten(cls, aux_data: dict[str, Any], children: Sequence[Any]) -> COO:
        shape, rows, cols = [aux_data[name] for name in COOInfo._fields]
        return cls._of(*children, shape, _rows_sorted=rows, _cols_sorted=cols)

    def __matmul__(self, other: Any) -> Array:
        return product(self, other, coo_matvec, coo_matmat)


def product(mat: Any, other: Any, matvec: Callable[..., Any], matmat: Any, **options: Any) -> Array:
    """The product of a matrix with a dense vector or matrix, with the dtype of both."""
    if isinstance(other, JAXSparse):
        raise NotImplementedError("matmul between two sparse objects.")
    other = jnp.asarray(other)
    data, other = promote_dtypes(mat.data, other)
    mat = with_data(mat, data)
    if other.ndim not in (1, 2):
        raise NotImplementedError(f"matmul with object of shape {other.shape}")
    return (matvec if other.ndim == 1 else matmat)(mat, other, **options)  # type: ignore[no-any-return]


def _times(primitive: Primitive, kind: type, ndim: int, mat: Any, other: Any, transpose: Any
           ) -> Array:
    """The product that is `primitive` of a matrix in the format `kind`, or of its transpose, and an
    array of `ndim` axes of which the first is as long as a row."""
    buffers = buffers_of(primitive.name, kind, mat)
    other = jnp.asarray(other)
    n = mat.shape[0] if transpose else mat.shape[1]
    if other.ndim != ndim or other.shape[0] != n:
        what = "a vector" if ndim == 1 else "a matrix"
        of = " transposed" if transpose else ""
        raise TypeError(f"{primitive}: a matrix of shape {mat.shape}{of} is multiplied by {what} "
                        f"whose first axis has length {n}, got shape {other.shape}.")
    return primitive.bind(*buffers, other, **mat._known, transpose=bool(transpose))  # type: ignore[no-any-return]


def times_rows(data: Array, row: ArrayLike, col: ArrayLike, other: Any, n_rows: int,
               is_sorted: bool = False) -> Any:
    """For every element a_ij that is stored, a_ij times row j of `other`, added to row i."""
    taken = jnp.asarray(other).at[col].get(mode="fill", fill_value=0)
    terms = data.reshape(-1, *[1] * (taken.ndim - 1)) * taken
    return added_at((n_rows, *taken.shape[1:]), (row,), terms, indices_are_sorted=is_sorted)


# -- coo_fromdense ---------------------------------------------------------------------------------


def stored_elements(mat: Any, *, nse: int, index_dtype: DTypeLike | None) -> list[Array]:
    """The elements that are not zero, padded with zeros, with their rows and columns."""
    row, col = jnp.nonzero(mat, size=nse)
    stored = jnp.arange(nse) < is_stored(mat).sum()
    data = jnp.where(stored, mat[row, col], jnp.zeros((), mat.dtype))
    return [data, row.astype(index_dtype), col.astype(index_dtype)]


coo_fromdense_p = defined_by("coo_fromdense", stored_elements, "nse", "index_dtype",
                             multiple_results=True)


def _from_dense(primitive: Primitive, kind: type, mat: Any, nse: Any, index_dtype: Any,
                **known: bool) -> Any:
    """The matrix that is `primitive` of a dense one in the format `kind`: of `nse` elements, or of
    as many as are not zero."""
    name, mat = primitive.name, jnp.asarray(mat)
    shape = as_matrix_shape(kind.__name__, mat.shape)
    nse = number_to_store(name, kind, mat, nse)
    buffers = primitive.bind(mat, nse=nse, index_dtype=as_index_dtype(name, index_dtype))
    return kind(tuple(buffers), shape=shape, **known)


def coo_fromdense(mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
                 ) -> COO:
    """The COO matrix of the elements of a dense one that are not zero.

    Args:
      mat: matrix.
      nse: how many elements to store, as many as there are by default; needed where `mat` is
        traced.
      index_dtype: dtype of rows and columns.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental import sparse
    >>> sparse.coo_fromdense(jnp.eye(2))
    COO(float32[2, 2], nse=2)
    """
    return _from_dense(coo_fromdense_p, COO, mat, nse, index_dtype, rows_sorted=True)  # type: ignore[no-any-return]


# -- coo_todense, coo_matvec, coo_matmat -----------------------------------------------------------


def _coo_todense(data: ArrayLike, row: ArrayLike, col: ArrayLike, *, spinfo: COOInfo) -> Array:
    return added_at(spinfo.shape, (row, col), data)  # type: ignore[no-any-return]


def _coo_product(data: Array, row: ArrayLike, col: ArrayLike, other: Any, *, spinfo: COOInfo,
             transpose: bool) -> Array:
    n, m = spinfo.shape  # padding, which is at (0, 0), may make flags of order untrue
    if transpose:
        return times_rows(data, col, row, other, m)  # type: ignore[no-any-return]
    return times_rows(data, row, col, other, n)  # type: ignore[no-any-return]


coo_todense_p = defined_by("coo_todense", _coo_todense, "spinfo")
coo_matvec_p = defined_by("coo_matvec", _coo_product, "spinfo", "transpose")
coo_matmat_p = defined_by("coo_matmat", _coo_product, "spinfo", "transpose")


def coo_todense(mat: COO) -> Array:
    """The matrix with all its elements.

    >>> from pyjx.experimental import sparse
    >>> sparse.coo_todense(sparse.eye(2, sparse_format="coo")).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return coo_todense_p.bind(*buffers_of("coo_todense", COO, mat), **mat._known)  # type: ignore[no-any-return]


def coo_matvec(mat: COO, v: ArrayLike, transpose: bool = False) -> Array:
    """The product of a COO matrix, or of its transpose, with a vector.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental import sparse
    >>> sparse.coo_matvec(sparse.eye(2, 3, sparse_format="coo"), jnp.ones(3)).tolist()
    [1.0, 1.0]
    """
    return _times(coo_matvec_p, COO, 1, mat, v, transpose)


def coo_matmat(mat: COO, B: ArrayLike, *, transpose: bool = False) -> Array:
    """The product of a COO matrix, or of its transpose, with a matrix.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental import sparse
    >>> sparse.coo_matmat(sparse.eye(2, 3, sparse_format="coo"), jnp.ones((3, 1))).tolist()
    [[1.0], [1.0]]
    """
    return _times(coo_matmat_p, COO, 2, mat, B, transpose)


class _Compressed(Buffered):
    """Elements in order along one axis, with the place where each row along it starts."""

    _buffers = ("data", "indices", "indptr")
    data: Array
    indices: Array
    indptr: Array

    def __init__(self, args: tuple[Any, Any, Any], *, shape: Sequence[int]) -> None:
        super().__init__(args, shape=as_matrix_shape(type(self).__name__, shape))

    @property
    def _known(self) -> dict[str, Any]:
        return {"shape": self.shape}

    _along: ClassVar[int]  # the axis in whose order the elements are

    @classmethod
    def _empty(cls, shape: Sequence[int], *, dtype: DTypeLike | None = None,
               index_dtype: DTypeLike = "int32") -> Any:
        shape = as_matrix_shape(cls.__name__, shape)
        return cls((jnp.empty(0, dtype), jnp.empty(0, index_dtype),
                    jnp.zeros(shape[cls._along] + 1, index_dtype)), shape=shape)

    @classmethod
    def _diagonal(cls, n_rows: int, n_cols: int, k: int, dtype: DTypeLike, index_dtype: DTypeLike
                  ) -> tuple[Array, Array, Array]:
        length = diagonal_length(n_rows, n_cols, k)
        starts = np.clip(np.arange(n_rows + 1) - max(0, -k), 0, length)
        return (jnp.ones(length, dtype), jnp.arange(length, dtype=index_dtype) + max(0, k),
                jnp.array(starts, index_dtype))

    def transpose(self, axes: Sequence[int] | None = None) -> CSR | CSC:
        """The matrix with rows for columns."""
        if axes is not None:
            raise NotImplementedError("axes argument to transpose()")
        return (CSC if isinstance(self, CSR) else CSR)(self._bufs, shape=self.shape[::-1])


@register_pytree_node_class
class CSR(_Compressed):
    """A matrix whose elements are stored row by row.

    Args:
      args: the data, the columns of the elements, and the place of the first element of each row,
        followed by the number of elements.
      shape: of the matrix.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental import sparse
    >>> M = sparse.CSR.fromdense(jnp.array([[0., 1.], [2., 3.]]))
    >>> M.indptr.tolist(), (M @ jnp.ones(2)).tolist()
    ([0, 1, 3], [1.0, 5.0])
    """

    _along = 0

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
                 ) -> CSR:
        """The matrix of the elements of `mat` that are not zero; see `csr_fromdense`."""
        return csr_fromdense(mat, nse=nse, index_dtype=index_dtype)

    @classmethod
    def _eye(cls, N: int, M: int, k: int, *, dtype: Any = None, index_dtype: Any = "int32") -> CSR:
        return cls(cls._diagonal(N, M, k, dtype, index_dtype), shape=(N, M))

    def todense(self) -> Array:
        return csr_todense(self)

    def __matmul__(self, other: Any) -> Array:
        return product(self, other, csr_matvec, csr_matmat)


@register_pytree_node_class
class CSC(_Compressed):
    """A matrix whose elements are stored column by column.

    Args:
      args: the data, the rows of the elements, and the place of the first element of each column,
        followed by the number of elements.
      shape: of the matrix.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental import sparse
    >>> M = sparse.CSC.fromdense(jnp.array([[0., 1.], [2., 3.]]))
    >>> M.data.tolist(), M.indices.tolist()
    ([2.0, 1.0, 3.0], [1, 0, 1])
    """

    _along = 1

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
                 ) -> CSC:
        """The matrix of the elements of `mat` that are not zero; see `csr_fromdense`."""
        return csr_fromdense(jnp.asarray(mat).T, nse=nse, index_dtype=index_dtype).T

    @classmethod
    def _eye(cls, N: int, M: int, k: int, *, dtype: Any = None, index_dtype: Any = "int32") -> CSC:
        return cls(cls._diagonal(M, N, -k, dtype, index_dtype), shape=(N, M))

    def todense(self) -> Array:
        return csr_todense(self.T).T

    def __matmul__(self, other: Any) -> Array:
        def of_transpose(room: Any) -> Any:
            return lambda mat, other: room(mat.T, other, transpose=True)

        return product(self, other, of_transpose(csr_matvec), of_transpose(csr_matmat))


def rows_of(indptr: Array, nse: int) -> Any:
    """The row of each of `nse` elements; beyond the last one, what is out of bounds."""
    starts = jnp.zeros(nse + 1, get_aval(indptr).dtype).at[indptr[1:]].add(1, mode="drop")
    return jnp.cumsum(starts[:nse])


# -- csr_fromdense ---------------------------------------------------------------------------------


def _csr_fromdense(mat: ArrayLike, *, nse: int, index_dtype: DTypeLike) -> list[Array]:
    data, _, col = stored_elements(mat, nse=nse, index_dtype=index_dtype)
    lengths = jnp.minimum(jnp.cumsum(is_stored(mat).sum(1)), nse)
    indptr = jnp.concatenate([jnp.zeros(1, lengths.dtype), lengths])
    return [data, col, indptr.astype(index_dtype)]


csr_fromdense_p = defined_by("csr_fromdense", _csr_fromdense, "nse", "index_dtype",
                             multiple_results=True)


def csr_fromdense(mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
                 ) -> CSR:
    """The CSR matrix of the elements of a dense one that are not zero.

    Args:
      mat: matrix.
      nse: how many elements to store, as many as there are by default; needed where `mat` is
        traced.
      index_dtype: dtype of the indices.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental import sparse
    >>> sparse.csr_fromdense(jnp.eye(2))
    CSR(float32[2, 2], nse=2)
    """
    return _from_dense(csr_fromdense_p, CSR, mat, nse, index_dtype)  # type: ignore[no-any-return]


# -- csr_todense, csr_matvec, csr_matmat -----------------------------------------------------------


def _check_buffers(data: Array, indices: Array, indptr: Array, shape: tuple[int, ...]) -> None:
    if data.ndim != 1 or data.shape != indices.shape:
        raise ValueError("CSR, CSC: data and indices must be vectors of one length, got shapes "
                         f"{data.shape} and {indices.shape}.")
    if indptr.shape != (shape[0] + 1,):
        raise ValueError(f"CSR, CSC: indptr must have shape {(shape[0] + 1,)}, which is one more "
                         f"than there are rows (of CSC columns), got {indptr.shape}.")


def _csr_todense(data: Array, indices: Array, indptr: Array, *, shape: tuple[int, ...]) -> Array:
    _check_buffers(data, indices, indptr, shape)
    row = rows_of(indptr, data.shape[0])
    return added_at(shape, (row, indices), data)  # type: ignore[no-any-return]


def _by_elements(data: Array, indptr: Array, indices: Array, other: Any) -> Array:
    row = rows_of(indptr, data.shape[0])
    return times_rows(data, row, indices, other, indptr.shape[0] - 1, True)  # type: ignore[no-any-return]


# What a library may compute on CPU (`lowering/foreign_calls.py`).
_csr_product_p = defined_by("csr_product", _by_elements)
_LIBRARY_DTYPES = frozenset(map(np.dtype, ("int32", "int64", "float32", "float64", "complex64",
                                           "complex128")))


def suits_library(data: object, indices: object, indptr: object, other: Any) -> bool:
    """Whether the types are those that libraries multiply: one of elements, one of indices, and
    known shapes."""
    data, indices, indptr, other = map(get_aval, (data, indices, indptr, other))
    return (data.dtype == other.dtype and data.dtype in _LIBRARY_DTYPES and other.ndim in (1, 2)
            and indices.dtype == indptr.dtype and indices.dtype in (np.int32, np.int64)
            and data.shape == indices.shape
            and all([type(n) is int and n for x in (data, indptr, other) for n in x.shape]))


def csr_product(data: Array, indices: Array, indptr: Array, other: Any) -> Array:
    """The product of the matrix of these buffers, and a vector or matrix. Elements that are out of
    bounds count as zero, as a library would read whatever is there."""
    if not suits_library(data, indices, indptr, other):
        return _by_elements(data, indptr, indices, other)
    within = (indices >= 0) & (indices < other.shape[0])
    return _csr_product_p.bind(  # type: ignore[no-any-return]
        jnp.where(within, data, 0), jnp.clip(indptr, 0, data.shape[0]),
        jnp.where(within, indices, 0), other)


def _csr_times(data: Any, indices: Array, indptr: Any, other: Any, *, shape: tuple[int, ...],
             transpose: bool) -> Array:
    _check_buffers(data, indices, indptr, shape)
    if transpose:
        row = rows_of(indptr, data.shape[0])
        return times_rows(data, indices, row, other, shape[1])  # type: ignore[no-any-return]
    return csr_product(data, indices, indptr, other)


csr_todense_p = defined_by("csr_todense", _csr_todense, "shape")
csr_matvec_p = defined_by("csr_matvec", _csr_times, "shape", "transpose")
csr_matmat_p = defined_by("csr_matmat", _csr_times, "shape", "transpose")


def csr_todense(mat: CSR) -> Array:
    """The matrix with all its elements.

    >>> from pyjx.experimental import sparse
    >>> sparse.csr_todense(sparse.eye(2, sparse_format="csr")).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return csr_todense_p.bind(*buffers_of("csr_todense", CSR, mat), **mat._known)  # type: ignore[no-any-return]


def csr_matvec(mat: CSR, v: ArrayLike, transpose: bool = False) -> Array:
    """The product of a CSR matrix, or of its transpose, with a vector.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental import sparse
    >>> sparse.csr_matvec(sparse.eye(2, 3, sparse_format="csr"), jnp.ones(3)).tolist()
    [1.0, 1.0]
    """
    return _times(csr_matvec_p, CSR, 1, mat, v, transpose)


def csr_matmat(mat: CSR, B: ArrayLike, *, transpose: bool = False) -> Array:
    """The product of a CSR matrix, or of its transpose, with a matrix.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental import sparse
    >>> sparse.csr_matmat(sparse.eye(2, 3, sparse_format="csr"), jnp.ones((3, 1))).tolist()
    [[1.0], [1.0]]
    """
    return _times(csr_matmat_p, CSR, 2, mat, B, transpose)
