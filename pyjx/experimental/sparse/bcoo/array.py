"""`BCOO`: batched coordinate format, the class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike, DTypeLike
from pyjx.experimental.sparse.formats import (
    ArithmeticOperators,
    Batched,
    batched_format,
    diagonal_length,
    functions,
)


class BCOOProperties(NamedTuple):
    n_batch: int
    n_sparse: int
    n_dense: int
    nse: int


def properties(data_shape: Sequence[int], indices_shape: Sequence[int], shape: Sequence[int]
               ) -> BCOOProperties:
    """What the shapes of the buffers say of an array of shape `shape`.

    Raises:
      ValueError: they do not go together.
    """
    if len(indices_shape) < 2:
        raise ValueError(f"BCOO: indices must have the shape (*batch, nse, n_sparse), got "
                         f"{tuple(indices_shape)}.")
    *index_batch, nse, n_sparse = indices_shape
    n_batch = len(index_batch)
    n_dense = len(shape) - n_batch - n_sparse
    if n_dense < 0:
        raise ValueError(f"BCOO: indices of shape {tuple(indices_shape)} have {n_batch} batch and "
                         f"{n_sparse} sparse dimensions, more than shape={tuple(shape)} has.")
    dense = tuple(shape[n_batch + n_sparse:])
    batch = tuple(shape[:n_batch])
    data_shape = tuple(data_shape)
    if len(data_shape) != n_batch + 1 + n_dense or data_shape[n_batch] != nse:
        raise ValueError(f"Invalid data.shape={data_shape} for nse={nse}, n_batch={n_batch}, "
                         f"n_dense={n_dense}")
    if data_shape[n_batch + 1:] != dense:
        raise ValueError(f"data dense dimensions not compatible for data.shape={data_shape}, "
                         f"shape={tuple(shape)}, n_dense={n_dense}")
    for name, got in (("data", data_shape[:n_batch]), ("indices", tuple(index_batch))):
        if any([n not in (1, full) for n, full in zip(got, batch, strict=True)]):
            raise ValueError(f"{name} batch dimensions not compatible: they are {got} for "
                             f"shape={tuple(shape)}, n_batch={n_batch}")
    return BCOOProperties(n_batch, n_sparse, n_dense, nse)


@batched_format
class BCOO(ArithmeticOperators, Batched):
    """An array of which some elements are stored with their coordinates.

    Its dimensions are, in this order, `n_batch` batch, `n_sparse` sparse and `n_dense` dense ones.
    For each batch `nse` blocks of shape `shape[n_batch + n_sparse:]` are stored. What is not
    stored is zero; blocks with the same coordinates add up, and those whose coordinates are out of
    bounds do not count, so they serve as padding.

    Args:
      args: the data, `[*batch, nse, *dense]`, and the indices, integers of shape
        `[*batch, nse, n_sparse]`. A batch dimension of either may be 1, for all batches.
      shape: that of the whole array.
      indices_sorted: whether the indices of each batch are known to be in lexicographic order.
      unique_indices: whether the indices of each batch are known to be different.

    Raises:
      ValueError: the shapes do not go together.
      TypeError: the indices are no integers.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental import sparse
    >>> M = sparse.BCOO.fromdense(jnp.array([[0., 1., 0.], [2., 0., 3.]]))
    >>> M
    BCOO(float32[2, 3], nse=3)
    >>> (M @ jnp.ones(3)).tolist()
    [1.0, 5.0]
    """

    _buffers = ("data", "indices")
    data: Array

    def __init__(self, args: tuple[Any, Any], *, shape: Sequence[int],
                 indices_sorted: bool = False, unique_indices: bool = False) -> None:
        super().__init__(args, shape=shape, indices_sorted=indices_sorted,
                         unique_indices=unique_indices)
        if not jnp.issubdtype(self.indices.dtype, jnp.integer):
            raise TypeError(f"BCOO: indices must be integers, got {self.indices.dtype}.")
        properties(self.data.shape, self.indices.shape, self.shape)

    @property
    def nse(self) -> int:  # type: ignore[override]
        return self.indices.shape[-2]

    @property
    def n_batch(self) -> int:
        return self.indices.ndim - 2

    @property
    def n_sparse(self) -> int:
        return self.indices.shape[-1]

    def _properties(self) -> BCOOProperties:
        return BCOOProperties(self.n_batch, self.n_sparse, self.n_dense, self.nse)

    # -- making ------------------------------------------------------------------------------------

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32,
                  n_dense: int = 0, n_batch: int = 0) -> BCOO:
        """The sparse array of the elements of `mat` that are not zero; see `bcoo_fromdense`."""
        return functions["bcoo_fromdense"](mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense,
                                     n_batch=n_batch)  # type: ignore[no-any-return]

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: DTypeLike | None = None, n_dense: int = 0,
                          n_batch: int = 0) -> BCOO:
        """The array of a matrix of `scipy.sparse`.

        Raises:
          NotImplementedError: batch or dense dimensions are asked for.
        """
        if n_dense or n_batch:
            raise NotImplementedError("BCOO.fromscipy with nonzero n_dense/n_batch")
        mat = mat.tocoo()
        indices = jnp.column_stack((jnp.asarray(mat.row), jnp.asarray(mat.col)))
        if index_dtype is not None:
            indices = indices.astype(index_dtype)
        return cls((jnp.asarray(mat.data), indices), shape=mat.shape)

    @classmethod
    def _empty(cls, shape: Sequence[int], *, dtype: DTypeLike | None = None,
               index_dtype: DTypeLike = "int32", n_dense: int = 0, n_batch: int = 0, nse: int = 0
              ) -> BCOO:
        shape = tuple(shape)
        n_sparse = len(shape) - n_dense - n_batch
        if n_sparse < 0 or n_dense < 0 or n_batch < 0 or nse < 0:
            raise ValueError(f"Invalid inputs: shape={shape}, n_dense={n_dense}, "
                             f"n_batch={n_batch}, nse={nse}")
        batch, sizes = shape[:n_batch], shape[n_batch:n_batch + n_sparse]
        data = jnp.zeros((*batch, nse, *shape[n_batch + n_sparse:]), dtype)
        indices = jnp.broadcast_to(jnp.array(sizes, index_dtype), (*batch, nse, n_sparse))
        return cls((data, indices), shape=shape, indices_sorted=True, unique_indices=True)

    @classmethod
    def _eye(cls, N: int, M: int, k: int, *, dtype: Any = None, index_dtype: Any = "int32",
             n_batch: int = 0, n_dense: int = 0) -> BCOO:
        n_sparse = 2 - n_batch - n_dense
        if n_sparse < 0 or n_batch < 0 or n_dense < 0:
            raise ValueError(f"Invalid inputs: shape=({N}, {M}), n_dense={n_dense}, "
                             f"n_batch={n_batch}")
        length = diagonal_length(N, M, k)
        if not length:
            return cls._empty((N, M), dtype=dtype, index_dtype=index_dtype, n_batch=n_batch,
                              n_dense=n_dense)
        if n_batch == 0 and n_dense < 2:
            rows = jnp.arange(max(0, -k), max(0, -k) + length, dtype=index_dtype)
            if n_dense == 0:
                return cls((jnp.ones(length, dtype), jnp.column_stack([rows, rows + k])),
                           shape=(N, M), indices_sorted=True, unique_indices=True)
            data = jnp.zeros((length, M), dtype).at[jnp.arange(length), rows + k].set(1)
            return cls((data, rows[:, None]), shape=(N, M), indices_sorted=True,
                       unique_indices=True)
        return cls._eye_of_batches(N, M, k, dtype, index_dtype, n_batch, n_dense)

    @classmethod
    def _eye_of_batches(cls, N: int, M: int, k: int, dtype: DTypeLike, index_dtype: DTypeLike,
                        n_batch: int, n_dense: int) -> BCOO:
        """One element for each batch."""
        ones = jnp.eye(N, M, k, dtype)
        if n_batch == 1 and n_dense == 0:
            rows = jnp.arange(N)
            inside = (rows + k >= 0) & (rows + k < M)
            indices = jnp.where(inside, rows + k, M).astype(index_dtype)[:, None, None]
            data = inside.astype(ones.dtype)[:, None]
        else:
            indices = jnp.zeros((*(N, M)[:n_batch], 1, 0), index_dtype)
            data = ones.reshape(*(N, M)[:n_batch], 1, *(N, M)[n_batch:])
        return cls((data, indices), shape=(N, M), indices_sorted=True, unique_indices=True)

    # -- methods -----------------------------------------------------------------------------------

    def todense(self) -> Array:
        """The same array with all elements."""
        return functions["bcoo_todense"](self)  # type: ignore[no-any-return]

    def transpose(self, axes: Sequence[int] | None = None) -> BCOO:
        """The array with its dimensions in another order, reversed by default."""
        perm = range(self.ndim)[::-1] if axes is None else axes
        return functions["bcoo_transpose"](self, permutation=perm)  # type: ignore[no-any-return]

    def sort_indices(self) -> BCOO:
        """The array with the indices of each batch in lexicographic order."""
        return functions["bcoo_sort_indices"](self)  # type: ignore[no-any-return]

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """The array with sorted indices of which each occurs once.

        Args:
          nse: how many to store, as many as there are by default; needed where it is traced.
          remove_zeros: whether elements that are zero are left out.
        """
        if remove_zeros:
            return functions["bcoo_eliminate_zeros"](self, nse=nse)  # type: ignore[no-any-return]
        return functions["bcoo_sum_duplicates"](self, nse=nse)  # type: ignore[no-any-return]

    def update_layout(self, *, n_batch: int | None = None, n_dense: int | None = None,
                      on_inefficient: str | None = "error") -> BCOO:
        """The array with other numbers of batch and dense dimensions; see `bcoo_update_layout`."""
        return functions["bcoo_update_layout"](self, n_batch=n_batch, n_dense=n_dense,
                                         on_inefficient=on_inefficient)  # type: ignore[no-any-return]
