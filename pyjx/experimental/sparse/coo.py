"""COO: matrices of which some elements are stored with their row and column."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike, DTypeLike
from pyjx.core.avals import get_aval
from pyjx.core.trace import concrete_or_error
from pyjx.core.tracebacks import api_boundary
from pyjx.engine.types import Value
from pyjx.experimental.sparse.base import JAXSparse, defined_by, diagonal_length
from pyjx.experimental.sparse.bcoo.conversion import TRACED_NSE, count_stored
from pyjx.experimental.sparse.util import added_at, as_index_dtype, buffers_of, is_stored
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
class COO(JAXSparse):
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

    data: Array
    row: Array
    col: Array

    def __init__(self, args: tuple[Any, Any, Any], *, shape: Sequence[int],
                 rows_sorted: bool = False, cols_sorted: bool = False) -> None:
        self.data, self.row, self.col = map(jnp.asarray, args)
        self._rows_sorted = rows_sorted
        self._cols_sorted = cols_sorted
        super().__init__(args, shape=as_matrix_shape("COO", shape))

    @property
    def nse(self) -> int:  # type: ignore[override]
        return self.data.size

    @property
    def dtype(self) -> Any:  # type: ignore[override]
        return self.data.dtype

    @property
    def _info(self) -> COOInfo:
        return COOInfo(self.shape, self._rows_sorted, self._cols_sorted)

    @property
    def _bufs(self) -> tuple[Array, Array, Array]:
        return self.data, self.row, self.col

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
        return self._bufs, self._info._asdict()

    @classmethod
    def tree_unflatten(cls, aux_data: dict[str, Any], children: Sequence[Any]) -> COO:
        self = object.__new__(cls)
        self.data, self.row, self.col = children
        self.shape = aux_data["shape"]
        self._rows_sorted = aux_data["rows_sorted"]
        self._cols_sorted = aux_data["cols_sorted"]
        return self

    def __matmul__(self, other: Any) -> Array:
        return product(self, other, coo_matvec, coo_matmat)


def product(mat: Any, other: Any, matvec: Callable[..., Any], matmat: Any, **options: Any) -> Array:
    """The product of a matrix with a dense vector or matrix, with the dtype of both."""
    if isinstance(other, JAXSparse):
        raise NotImplementedError("matmul between two sparse objects.")
    other = jnp.asarray(other)
    data, other = promote_dtypes(mat.data, other)
    children, aux = mat.tree_flatten()
    mat = mat.tree_unflatten(aux, (data, *children[1:]))
    if other.ndim not in (1, 2):
        raise NotImplementedError(f"matmul with object of shape {other.shape}")
    return (matvec if other.ndim == 1 else matmat)(mat, other, **options)  # type: ignore[no-any-return]


def check_product(name: str, shape: tuple[int, ...], other: Any, ndim: int, transpose: bool
                  ) -> None:
    """Raise unless `other` has `ndim` axes of which the first is as long as a row of the matrix."""
    aval = get_aval(other)
    n = shape[0] if transpose else shape[1]
    if aval.ndim != ndim or aval.shape[0] != n:
        what = "a vector" if ndim == 1 else "a matrix"
        of = " transposed" if transpose else ""
        raise TypeError(f"{name}: a matrix of shape {shape}{of} is multiplied by {what} whose "
                        f"first axis has length {n}, got shape {aval.shape}.")


def times_rows(data: Value, row: ArrayLike, col: ArrayLike, other: Any, n_rows: int,
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


def stored_count(name: str, cls: str, mat: Any, nse: Any) -> int:
    """The number of elements to store: `nse`, or how many are not zero."""
    if nse is None:
        nse = count_stored(mat, n_batch=0, n_dense=0)
    return concrete_or_error(operator.index, nse, TRACED_NSE.format(name=name, cls=cls))  # type: ignore[no-any-return]


@api_boundary
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
    mat = jnp.asarray(mat)
    shape = as_matrix_shape("COO", mat.shape)
    data, row, col = coo_fromdense_p.bind(mat, nse=stored_count("coo_fromdense", "COO", mat, nse),
                                          index_dtype=as_index_dtype("coo_fromdense", index_dtype))
    return COO((data, row, col), shape=shape, rows_sorted=True)


# -- coo_todense, coo_matvec, coo_matmat -----------------------------------------------------------


def _todense(data: ArrayLike, row: ArrayLike, col: ArrayLike, *, spinfo: COOInfo) -> Array:
    return added_at(spinfo.shape, (row, col), data)  # type: ignore[no-any-return]


def _product(data: ArrayLike, row: ArrayLike, col: ArrayLike, other: Any, *, spinfo: COOInfo,
             transpose: bool) -> Array:
    n, m = spinfo.shape  # padding, which is at (0, 0), may make flags of order untrue
    if transpose:
        return times_rows(data, col, row, other, m)  # type: ignore[no-any-return]
    return times_rows(data, row, col, other, n)  # type: ignore[no-any-return]


coo_todense_p = defined_by("coo_todense", _todense, "spinfo")
coo_matvec_p = defined_by("coo_matvec", _product, "spinfo", "transpose")
coo_matmat_p = defined_by("coo_matmat", _product, "spinfo", "transpose")


@api_boundary
def coo_todense(mat: COO) -> Array:
    """The matrix with all its elements.

    >>> from pyjx.experimental import sparse
    >>> sparse.coo_todense(sparse.eye(2, sparse_format="coo")).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return coo_todense_p.bind(*buffers_of("coo_todense", COO, mat), spinfo=mat._info)  # type: ignore[no-any-return]


@api_boundary
def coo_matvec(mat: COO, v: ArrayLike, transpose: bool = False) -> Array:
    """The product of a COO matrix, or of its transpose, with a vector.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental import sparse
    >>> sparse.coo_matvec(sparse.eye(2, 3, sparse_format="coo"), jnp.ones(3)).tolist()
    [1.0, 1.0]
    """
    buffers = buffers_of("coo_matvec", COO, mat)
    v = jnp.asarray(v)
    check_product("coo_matvec", mat.shape, v, 1, transpose)
    return coo_matvec_p.bind(*buffers, v, spinfo=mat._info, transpose=bool(transpose))  # type: ignore[no-any-return]


@api_boundary
def coo_matmat(mat: COO, B: ArrayLike, *, transpose: bool = False) -> Array:
    """The product of a COO matrix, or of its transpose, with a matrix.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental import sparse
    >>> sparse.coo_matmat(sparse.eye(2, 3, sparse_format="coo"), jnp.ones((3, 1))).tolist()
    [[1.0], [1.0]]
    """
    buffers = buffers_of("coo_matmat", COO, mat)
    B = jnp.asarray(B)
    check_product("coo_matmat", mat.shape, B, 2, transpose)
    return coo_matmat_p.bind(*buffers, B, spinfo=mat._info, transpose=bool(transpose))  # type: ignore[no-any-return]
