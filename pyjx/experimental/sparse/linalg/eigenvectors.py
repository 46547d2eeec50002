"""Eigenvectors of symmetric matrices, by iteration."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.tracebacks import api_boundary
from pyjx.engine.types import Value
from pyjx.experimental.sparse.base import JAXSparse
from pyjx.runtime.jit import jit


@api_boundary
def lobpcg_standard(A: Value, X: Value, m: int = 100, tol: float | None = None
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
def _of_function(A: Callable[..., Any], X: Value, m: int, tol: float) -> Any:
    def product(x: Value) -> Any:
        y = jnp.asarray(A(x))
        if y.dtype != x.dtype:
            raise ValueError(f"A, X must have same dtypes (were {y.dtype}, {x.dtype})")
        if y.shape != x.shape:
            raise ValueError(f"A must be ({x.shape[0]}, {x.shape[0]}) matrix A, got output "
                             f"{y.shape} of {x.shape}")
        return y

    return _lobpcg(product, X, m, tol)


@partial(jit, static_argnums=(2, 3))
def _of_matrix(A: ArrayLike, X: ArrayLike, m: int, tol: float) -> Any:
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


def _lobpcg(A: Callable[..., Any], X: Value, m: int, tol: float) -> Any:
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
