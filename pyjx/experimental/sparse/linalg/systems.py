"""Systems of equations with a sparse matrix, solved on the host.

The module loads SciPy's solvers, which takes long: it is loaded with the name `spsolve`.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import spsolve as solve_on_host

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.linearity import LAST
from pyjx.core.primitive import Primitive, register
from pyjx.core.tracebacks import api_boundary
from pyjx.engine.tangents import UndefinedPrimal, Zero
from pyjx.engine.types import Dims, Operand, Tangent, Tangents, Value, Values
from pyjx.experimental.sparse.coo import times_rows
from pyjx.experimental.sparse.csr import rows_of
from pyjx.lax.callbacks import pure_callback
from pyjx.runtime.abstract import ShapeDtypeStruct


def _solve_on_host(data: Array, indices: ArrayLike, indptr: Array, b: Value) -> Any:
    wide = np.result_type(data.dtype, np.float64)
    n = len(indptr) - 1
    matrix = csr_matrix((np.asarray(data, wide), indices, indptr), (n, n))
    x = solve_on_host(matrix, np.asarray(b, wide))
    return np.asarray(x).reshape(b.shape).astype(b.dtype)


def _spsolve_shape(data: ShapedArray, indices: ShapedArray, indptr: ShapedArray, b: ShapedArray, *,
                   tol: float, reorder: int) -> ShapedArray:
    if data.dtype != b.dtype:
        raise ValueError(f"data types do not match: data.dtype={data.dtype} b.dtype={b.dtype}")
    if not dtypes.issubdtype(b.dtype, np.inexact):
        raise TypeError(f"spsolve: the dtype must be a floating or complex one, got {b.dtype}.")
    for name, aval in (("indices", indices), ("indptr", indptr)):
        if not dtypes.issubdtype(aval.dtype, np.integer):
            raise TypeError(f"spsolve: {name} must be integers, got {aval.dtype}.")
    if (data.ndim, indices.shape, indptr.ndim) != (1, data.shape, 1):
        raise ValueError("spsolve: data, indices and indptr must be vectors, the first two of one "
                         f"length, got {data.shape}, {indices.shape} and {indptr.shape}.")
    if b.ndim not in (1, 2) or b.shape[0] != indptr.shape[0] - 1:
        raise ValueError(f"spsolve: b must have a row for each of the {indptr.shape[0] - 1} rows "
                         f"of the matrix, got {b.shape}.")
    return ShapedArray(b.shape, b.dtype)


def _spsolve(data: ArrayLike, indices: ArrayLike, indptr: ArrayLike, b: ArrayLike, *, tol: float,
             reorder: int) -> Array:
    aval = get_aval(b)
    return pure_callback(  # type: ignore[no-any-return]
        _solve_on_host, ShapeDtypeStruct(aval.shape, aval.dtype), data, indices, indptr, b,
        vmap_method="sequential")


def _spsolve_jvp(primals: Values, tangents: Tangents, **params: Any) -> tuple[Any, Tangent]:
    # A dx = db - dA x
    data, indices, indptr, b = primals
    change, _, _, db = tangents
    x = spsolve_p.bind(*primals, **params)
    right: Any = db
    if type(change) is not Zero:
        rows = rows_of(indptr, get_aval(data).shape[0])
        moved = times_rows(change, rows, indices, x, get_aval(b).shape[0], True)
        right = lax.neg(moved) if type(db) is Zero else lax.sub(db, moved)
    if type(right) is Zero:
        return x, Zero.of_primal(x)
    return x, spsolve_p.bind(data, indices, indptr, right, **params)


def _transposed(data: Array, indices: Array, indptr: Array) -> tuple[Any, Any, Any]:
    """The buffers of the transpose of a CSR matrix."""
    n = get_aval(indptr).shape[0] - 1
    rows = rows_of(indptr, get_aval(data).shape[0])
    order = jnp.argsort(indices, stable=True)
    counts = jnp.zeros(n + 1, indptr.dtype).at[indices + 1].add(1)
    return data[order], rows[order].astype(indices.dtype), jnp.cumsum(counts, dtype=indptr.dtype)


def _spsolve_transpose(ct: Tangent, data: Operand, indices: Operand, indptr: Operand, b: Operand,
                       **params: Any) -> Tangents:
    if type(data) is UndefinedPrimal:
        raise TypeError("spsolve is not linear in its matrix.")
    if type(ct) is Zero:
        return [None, None, None, Zero(b.aval)]
    return [None, None, None, spsolve_p.bind(*_transposed(data, indices, indptr), ct, **params)]


def _spsolve_batch(operands: Values, dims: Dims, **params: Any) -> tuple[Array, int]:
    b = operands[3]
    if dims[3] is not None and all(d is None for d in dims[:3]):  # more columns of one system
        columns = jnp.moveaxis(b, dims[3], -1)
        x = spsolve_p.bind(*operands[:3], columns.reshape(columns.shape[0], -1), **params)
        return x.reshape(columns.shape), columns.ndim - 1
    mapped = [jnp.moveaxis(x, d, 0) for x, d in zip(operands, dims, strict=True) if d is not None]

    def one(examples: list[Any]) -> Array:
        given = iter(examples)
        return spsolve_p.bind(  # type: ignore[no-any-return]
            *[x if d is None else next(given) for x, d in zip(operands, dims, strict=True)],
            **params)

    return lax.map(one, mapped), 0


spsolve_p = register(Primitive("spsolve", shape_rule=_spsolve_shape, decomposition=_spsolve,
                               jvp=_spsolve_jvp, transpose=_spsolve_transpose, linear=LAST,
                               batch=_spsolve_batch))


@api_boundary
def spsolve(data: ArrayLike, indices: ArrayLike, indptr: ArrayLike, b: ArrayLike, tol: float = 1e-6,
            reorder: int = 1) -> Array:
    """The x with A x = b, for a sparse matrix A.

    It is solved on the host, by SciPy.

    Args:
      data, indices, indptr: the buffers of A in CSR format.
      b: vector, or matrix whose columns are solved for.
      tol, reorder: not used by this solver.

    Returns:
      x, of the shape of `b`.

    Raises:
      TypeError: the dtypes are not inexact, or the indices no integers.
      ValueError: the dtypes of `data` and `b` differ, or the shapes do not fit.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental import sparse
    >>> M = sparse.CSR.fromdense(jnp.array([[2., 0.], [1., 4.]]))
    >>> sparse.linalg.spsolve(M.data, M.indices, M.indptr, jnp.array([2., 9.])).tolist()
    [1.0, 2.0]
    """
    values = [jnp.asarray(x) for x in (data, indices, indptr, b)]
    return spsolve_p.bind(*values, tol=float(tol), reorder=operator.index(reorder))  # type: ignore[no-any-return]
