"""Linear systems and eigenvectors of sparse matrices."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import spsolve as solve_on_host

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.arithmetic import LAST
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.primitive import Primitive, register
from pyjx.engine.tangents import UndefinedPrimal, Zero
from pyjx.engine.types import Dims, Operand, Tangent, Values
from pyjx.experimental.sparse.bcsr import row_starts
from pyjx.experimental.sparse.formats import JAXSparse
from pyjx.experimental.sparse.matrices import rows_of, times_rows
from pyjx.lax.callbacks import in_turn, pure_callback
from pyjx.runtime.abstract import ShapeDtypeStruct
from pyjx.runtime.jit import jit


def _solve_on_host(data: Array, indices: ArrayLike, indptr: Array, b: Array) -> Any:
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


def _spsolve_jvp(primals: list[Array], tangents: list[Any], **params: Any) -> tuple[Any, Tangent]:
    # A dx = db - dA x
    data, indices, indptr, b = primals
    change, _, _, db = tangents
    x = spsolve_p.bind(*primals, **params)
    right: Any = db
    if type(change) is not Zero:
        rows = rows_of(indptr, get_aval(data).shape[0])
        moved = times_rows(change, rows, indices, x, get_aval(b).shape[0], True)
        right = lax.neg(moved) if type(db) is Zero else lax.sub(db, moved)
    return x, spsolve_p.bind(data, indices, indptr, right, **params)


def _transposed(data: Array, indices: Array, indptr: Array) -> tuple[Any, Any, Any]:
    """The buffers of the transpose of a CSR matrix."""
    n = get_aval(indptr).shape[0] - 1
    rows = rows_of(indptr, get_aval(data).shape[0])
    order = jnp.argsort(indices, stable=True)
    return data[order], rows[order].astype(indices.dtype), row_starts(indices, n, indptr.dtype)


def _spsolve_transpose(ct: Tangent, data: Operand, indices: Operand, indptr: Operand, b: Operand,
                       **params: Any) -> Any:
    if type(data) is UndefinedPrimal:
        raise TypeError("spsolve is not linear in its matrix.")
    return [None, None, None, spsolve_p.bind(*_transposed(data, indices, indptr), ct, **params)]


def _spsolve_batch(operands: Values, dims: Dims, **params: Any) -> tuple[Array, int]:
    b = operands[3]
    if dims[3] is not None and all(d is None for d in dims[:3]):  # more columns of one system
        columns = jnp.moveaxis(b, dims[3], -1)
        x = spsolve_p.bind(*operands[:3], columns.reshape(columns.shape[0], -1), **params)
        return x.reshape(columns.shape), columns.ndim - 1
    (x,), _ = in_turn(lambda *xs: [spsolve_p.bind(*xs, **params)], operands, dims)
    return x, 0


spsolve_p = register(Primitive("spsolve", shape_rule=_spsolve_shape, decomposition=_spsolve,
                               jvp=_spsolve_jvp, transpose=_spsolve_transpose, linear=LAST,
                               batch=_spsolve_batch))


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


def lobpcg_standard(A: Any, X: Any, m: int = 100, tol: float | None = None
                    ) -> tuple[Array, Array, Array]:
    """The largest eigenvalues of a symmetric matrix and their eigenvectors.

    By the method of Knyazev (Toward the optimal preconditioned eigensolver, 2001) without a
    preconditioner: in each step the matrix is restricted to the space of the current vectors, their
    residuals and the directions of the step before, on an orthonormal basis of it.

    Args:
      A: matrix `[n, n]`, dense or sparse, or a function that multiplies one with a matrix `[n, k]`.
        It must be symmetric and positive definite.
      X: matrix `[n, k]` to start from, with 5 k < n.
      m: maximal number of steps.
      tol: relative error of the residuals at which the iteration ends, by default the precision of
        the dtype; it is multiplied by 10 n.

    Returns:
      `(theta, U, i)`: the eigenvalues in descending order, the eigenvectors as columns, and the
      number of steps.

    Raises:
      TypeError: the dtype is no real floating one.
      ValueError: the shapes do not fit, or A times X has another dtype than X.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental.sparse.linalg import lobpcg_standard
    >>> A = jnp.diag(jnp.arange(1.0, 21.0))
    >>> theta, _, _ = lobpcg_standard(A, jnp.eye(20)[:, :2] + 0.1)
    >>> bool(jnp.allclose(theta, jnp.array([20.0, 19.0]), rtol=1e-3))
    True
    """
    X = jnp.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"expected X to be a matrix, got shape {X.shape}.")
    n, k = X.shape
    if not dtypes.issubdtype(X.dtype, jnp.floating):
        raise TypeError(f"lobpcg_standard: X must be of a real floating dtype, got {X.dtype}.")
    if k == 0:
        raise ValueError("expected search dim > 0 (got 0)")
    if 5 * k >= n:
        raise ValueError(f"expected search dim * 5 < matrix dim (got {k * 5}, {n})")
    limit = float(dtypes.finfo(X.dtype).eps if tol is None else tol)
    if callable(A) and not isinstance(A, JAXSparse):
        return _of_function(A, X, operator.index(m), limit)  # type: ignore[no-any-return]
    A = A if isinstance(A, JAXSparse) else jnp.asarray(A)
    if A.shape != (n, n):
        raise ValueError(f"expected A to be square and to fit X, got {A.shape} and {X.shape}.")
    if jnp.promote_types(A.dtype, X.dtype) != X.dtype:
        raise ValueError(f"A, X must have same dtypes (were {A.dtype}, {X.dtype})")
    return _of_matrix(A, X, operator.index(m), limit)  # type: ignore[no-any-return]


@partial(jit, static_argnums=(0, 2, 3))
def _of_function(A: Callable[..., Any], X: Array, m: int, tol: float) -> Any:
    def product(x: Array) -> Any:
        y = jnp.asarray(A(x))
        if y.dtype != x.dtype:
            raise ValueError(f"A, X must have same dtypes (were {y.dtype}, {x.dtype})")
        if y.shape != x.shape:
            raise ValueError(f"A must be ({x.shape[0]}, {x.shape[0]}) matrix A, got output "
                             f"{y.shape} of {x.shape}")
        return y

    return _lobpcg(product, X, m, tol)


@partial(jit, static_argnums=(2, 3))
def _of_matrix(A: ArrayLike, X: Array, m: int, tol: float) -> Any:
    if isinstance(A, JAXSparse):
        return _lobpcg(lambda x: A @ x, X, m, tol)
    return _lobpcg(lambda x: _product(A, x), X, m, tol)


def _product(a: ArrayLike, b: Any) -> Any:
    return jnp.matmul(a, b, precision=lax.Precision.HIGHEST)


def _restricted(A: Callable[..., Any], S: Any, k: int) -> tuple[Any, Any, Any, Any]:
    """The `k` largest eigenvalues of A restricted to the orthonormal columns of S; the eigenvectors
    there and in the whole space, and what A makes of these."""
    AS = A(S)
    T = _product(S.T, AS)
    theta, V = jnp.linalg.eigh((T + T.T) / 2)
    theta, V = theta[::-1][:k], V[:, ::-1][:, :k]
    return theta, V, _product(S, V), _product(AS, V)


def _lobpcg(A: Callable[..., Any], X: Array, m: int, tol: float) -> Any:
    n, k = X.shape

    def is_converged(theta: Any, X: Any, AX: Any) -> Any:
        residual = jnp.linalg.norm(AX - theta[None] * X, axis=0)
        # ten roundings in each of the n products that a residual is the sum of
        noise = 10 * n * (jnp.linalg.norm(AX, axis=0) + jnp.abs(theta))
        return (residual <= tol * noise).all()

    def goes_on(state: Any) -> Any:
        i, *_, done = state
        return (i < m) & ~done

    def step(state: Any) -> Any:
        i, theta, X, P, AX, _ = state
        # twice, as the residuals are small beside what they have in common with X
        S, _ = jnp.linalg.qr(jnp.concatenate([X, P, AX - theta[None] * X], 1))
        S, _ = jnp.linalg.qr(S)
        theta, V, X, AX = _restricted(A, S, k)
        return i + 1, theta, X, _product(S[:, k:], V[k:]), AX, is_converged(theta, X, AX)

    X, _ = jnp.linalg.qr(X)
    theta, _, X, AX = _restricted(A, X, k)
    # One step in any case: the start may be of other eigenvectors than the largest.
    i, theta, X, *_ = lax.while_loop(goes_on, step, (
        jnp.zeros((), jnp.int32), theta, X, jnp.zeros_like(X), AX, jnp.zeros((), bool)))
    return theta, X, i
