"""Functions for sparse arrays of all formats."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from pyjx import numpy as jnp
from pyjx.core.array_type import Array, DTypeLike
from pyjx.core.avals import ShapedArray, is_valid_value
from pyjx.core.primitive import Primitive, register
from pyjx.core.tracebacks import api_boundary
from pyjx.engine.types import TreeDef
from pyjx.experimental.sparse.base import JAXSparse
from pyjx.experimental.sparse.bcoo.array import BCOO
from pyjx.experimental.sparse.bcsr import BCSR
from pyjx.experimental.sparse.coo import COO
from pyjx.experimental.sparse.csr import CSC, CSR
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


@api_boundary
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
        raise ValueError(f"sparse_format={name!r} not recognized; must be one of "
                         f"{list(_FORMATS)}")
    return _FORMATS[name]


@api_boundary
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


@api_boundary
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
