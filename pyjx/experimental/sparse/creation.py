"""Sparse arrays of any format: empty, with a diagonal, random; and dense ones from them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyjx import numpy as jnp
from pyjx import random
from pyjx.core import dtypes
from pyjx.core.array_type import Array, DTypeLike, KeyLike
from pyjx.core.avals import ShapedArray, is_valid_value
from pyjx.core.primitive import Primitive, register
from pyjx.engine.types import TreeDef
from pyjx.experimental.sparse.bcoo.array import BCOO
from pyjx.experimental.sparse.bcsr import BCSR
from pyjx.experimental.sparse.formats import JAXSparse
from pyjx.experimental.sparse.matrices import COO, CSC, CSR
from pyjx.random.base import check_key
from pyjx.transforms.vmap import vmap
from pyjx.tree_util import tree_flatten, tree_unflatten


def _todense(*buffers: Any, tree: TreeDef) -> Array:
    arr = tree_unflatten(tree, buffers)
    return arr.todense() if isinstance(arr, JAXSparse) else arr  # type: ignore[no-any-return]


def _todense_shape(*avals: ShapedArray, tree: TreeDef) -> ShapedArray:
    arr = tree_unflatten(tree, avals)
    return ShapedArray(arr.shape, arr.data.dtype) if isinstance(arr, JAXSparse) else arr


# The operation on the buffers of any array, dense ones included: so `sparsify` finds it on what it
# has made sparse.
todense_p = register(Primitive("todense", shape_rule=_todense_shape, decomposition=_todense))


def todense(arr: Any) -> Any:
    """A sparse array with all its elements; a dense one as it is.

    Args:
      arr: sparse array of any format, or dense array.

    >>> from pyjx.experimental import sparse
    >>> sparse.todense(sparse.eye(2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if not isinstance(arr, JAXSparse):
        if not is_valid_value(arr):
            return arr
        arr = jnp.asarray(arr)
    buffers, tree = tree_flatten(arr)
    return todense_p.bind(*buffers, tree=tree)


_FORMATS: dict[str, Any] = {"bcsr": BCSR, "bcoo": BCOO, "coo": COO, "csr": CSR, "csc": CSC}


def _format(name: str) -> Any:
    if name not in _FORMATS:
        raise ValueError(f"sparse_format={name!r} not recognized; must be one of {list(_FORMATS)}")
    return _FORMATS[name]


def empty(shape: Sequence[int], dtype: DTypeLike | None = None, index_dtype: DTypeLike = "int32",
          sparse_format: str = "bcoo", **kwds: Any) -> Any:
    """A sparse array without elements.

    Args:
      shape: its shape.
      dtype: its dtype, float32 or float64 by default.
      index_dtype: dtype of the indices.
      sparse_format: one of `bcoo`, `bcsr`, `coo`, `csr`, `csc`.
      kwds: what else the format takes: `nse`, `n_batch`, `n_dense`.

    Raises:
      ValueError: there is no such format, or the shape does not fit it.

    >>> from pyjx.experimental import sparse
    >>> sparse.empty((2, 3))
    BCOO(float32[2, 3], nse=0)
    """
    return _format(sparse_format)._empty(shape, dtype=dtype, index_dtype=index_dtype, **kwds)


def eye(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None,
        index_dtype: DTypeLike = "int32", sparse_format: str = "bcoo", **kwds: Any) -> Any:
    """A sparse matrix with ones on a diagonal.

    Args:
      N: number of rows.
      M: number of columns, as many by default.
      k: which diagonal: 0 for the main one, positive above it.
      dtype: its dtype, float32 or float64 by default.
      index_dtype: dtype of the indices.
      sparse_format: one of `bcoo`, `bcsr`, `coo`, `csr`, `csc`.
      kwds: what else the format takes: `n_batch`, `n_dense`.

    Raises:
      ValueError: there is no such format.

    >>> from pyjx.experimental import sparse
    >>> sparse.eye(3, k=1).indices.tolist()
    [[0, 1], [1, 2]]
    """
    N = operator.index(N)
    M = N if M is None else operator.index(M)
    return _format(sparse_format)._eye(N, M, operator.index(k), dtype=dtype,
                                       index_dtype=index_dtype, **kwds)


def random_bcoo(key: KeyLike, shape: Sequence[int], *, dtype: DTypeLike = np.float64,
                indices_dtype: Any = None, nse: float = 0.2, n_batch: int = 0, n_dense: int = 0,
                unique_indices: bool = True, sorted_indices: bool = False,
                generator: Callable[..., Any] = random.uniform, **kwds: Any) -> BCOO:
    """A BCOO array with random elements at random places.

    Args:
      key: random key.
      shape: of the array.
      dtype: of the elements.
      indices_dtype: of the indices, the default integers' by default.
      nse: how many elements are stored for each batch or, if less than 1, what part of them.
      n_batch: number of batch dimensions.
      n_dense: number of dense dimensions.
      unique_indices: whether no place is drawn twice.
      sorted_indices: whether the indices are sorted.
      generator: makes the elements from a key, a shape and a dtype.
      kwds: what else `generator` is given.

    Raises:
      ValueError: the numbers do not fit the shape.

    >>> import pyjx as jax
    >>> from pyjx.experimental import sparse
    >>> sparse.random_bcoo(jax.random.key(0), (4, 5))
    BCOO(float32[4, 5], nse=4)
    """
    check_key("random_bcoo", key)
    shape = tuple(shape)
    n_batch, n_dense = operator.index(n_batch), operator.index(n_dense)
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > len(shape):
        raise ValueError(f"Invalid n_batch={n_batch}, n_dense={n_dense} for shape={shape}")
    n_sparse = len(shape) - n_batch - n_dense
    batch, sizes = shape[:n_batch], shape[n_batch:n_batch + n_sparse]
    n_batches, room = math.prod(batch), math.prod(sizes)
    if not 0 <= nse < 1:
        stored = operator.index(nse) if not isinstance(nse, float) else math.ceil(nse)
    else:
        stored = math.ceil(nse * room)
    if not 0 <= stored <= room:
        raise ValueError(f"got nse={nse}, expected to be between 0 and {room}")
    index_dtype = jnp.dtype(indices_dtype or dtypes.default_int_dtype())

    def places(key: KeyLike) -> Any:
        if not sizes:
            return jnp.empty((stored, 0), index_dtype)
        flat = random.choice(key, room, (stored,), replace=not unique_indices)
        return jnp.column_stack(jnp.unravel_index(flat.astype(index_dtype), sizes))

    keys = random.split(key, n_batches + 1)
    indices = vmap(places)(keys[1:]).reshape(*batch, stored, n_sparse).astype(index_dtype)
    data = generator(keys[0], shape=(*batch, stored, *shape[n_batch + n_sparse:]),
                     dtype=dtypes.canonicalize_dtype(dtype), **kwds)
    mat = BCOO((data, indices), shape=shape)
    return mat.sort_indices() if sorted_indices else mat


def _normal(rng: np.random.RandomState) -> Callable[[Sequence[int], Any], Any]:
    """A maker of arrays of normally distributed elements."""
    return lambda shape, dtype: np.asarray(rng.standard_normal(tuple(shape))).astype(dtype)


def rand_sparse(rng: np.random.RandomState, nse: float = 0.5,
                post: Callable[[Any], Any] = lambda x: x, rand_method: Callable[..., Any] = _normal
               ) -> Callable[[Sequence[int], Any], Any]:
    """A maker of dense arrays most of whose elements are zero.

    Args:
      rng: NumPy's generator.
      nse: how many elements are not zero or, if less than 1, what part of them.
      post: what is applied to the array.
      rand_method: `rand_method(rng)` makes arrays of a shape and a dtype, whose elements are kept.

    Returns:
      A function of a shape and a dtype.

    >>> import numpy as np
    >>> make = rand_sparse(np.random.RandomState(0), nse=3)
    >>> int((make((4, 5), np.float32) != 0).sum())
    3
    """
    def make(shape: Sequence[int], dtype: DTypeLike | None) -> Any:
        size = int(np.prod(shape))
        count = min(int(nse * size) if 0 < nse < 1 else int(nse), size)
        flat = np.zeros(size, dtype)
        places = rng.choice(size, count, replace=False)
        flat[places] = np.asarray(rand_method(rng)((count,), dtype))
        return post(flat.reshape(shape))

    return make
