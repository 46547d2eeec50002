"""Iterative solvers of linear systems A x = b, where A is a function or a matrix.

They work on the vector of all elements of a pytree, and are differentiated by the equation that
they solve, through `lax.custom_linear_solve`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pyjx import configuration, lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import get_aval
from pyjx.flatten_util import ravel_pytree
from pyjx.lax.agreement import trace_function
from pyjx.numpy.operands import is_inexact
from pyjx.numpy.promotion import convert
from pyjx.tree_util import PyTree, tree_flatten, tree_leaves, tree_map, tree_structure

Linear = Callable[[Any], Any]


def _inner(x: Array, y: Array) -> Array:
    """The inner product of vectors; the first is conjugated."""
    return jnp.vdot(x, y, precision=lax.Precision.HIGHEST)


def _square(x: Array) -> Array:
    return jnp.real(_inner(x, x))


def _norm(x: Array) -> Array:
    return jnp.sqrt(_square(x))


def _as_function(A: Any, what: str) -> Linear:
    if callable(A):
        return A
    if not hasattr(A, "shape") or not hasattr(A, "__matmul__"):
        raise TypeError(f"{what}: linear operator must be either a function or ndarray: {A!r}")
    if len(A.shape) != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"{what}: linear operator must be a square matrix, but has shape: "
                         f"{tuple(A.shape)}")
    if isinstance(A, Array) or hasattr(A, "__array__"):
        return partial(jnp.matmul, A, precision=lax.Precision.HIGHEST)
    return A.__matmul__  # a sparse matrix, say


def _operands(name: str, A: Linear | ArrayLike, b: PyTree, x0: PyTree, M: Linear | ArrayLike | None
             ) -> tuple[Linear, Any, Any, Linear]:
    """A and M as functions of pytrees, b and x0 as pytrees of arrays of one dtype each."""
    are_arrays = [not callable(given) for given in (A, M)]
    A = _as_function(A, "A")
    M = (lambda x: x) if M is None else _as_function(M, "M")
    b = tree_map(jnp.asarray, b)
    x0 = tree_map(jnp.zeros_like, b) if x0 is None else tree_map(jnp.asarray, x0)
    if tree_structure(x0) != tree_structure(b):
        raise ValueError(f"x0 and b must have matching tree structure: {tree_structure(x0)} vs "
                         f"{tree_structure(b)}")
    shapes = [tree_map(jnp.shape, tree_leaves(x)) for x in (x0, b)]
    if shapes[0] != shapes[1]:
        raise ValueError(f"arrays in x0 and b must have matching shapes: {shapes[0]} vs "
                         f"{shapes[1]}")
    leaves, tree = tree_flatten(b)

    def traced(fun: Linear, of: str) -> Any:
        return trace_function(name, of, fun, tree, list(map(get_aval, leaves)))

    if configuration.numpy_dtype_promotion.value == "strict":
        traced(A, "A")  # raises where A and b as they are given do not go together
        any_dtypes = configuration.numpy_dtype_promotion("standard")
        A, M = [any_dtypes(fun) if is_array else fun
                for fun, is_array in zip((A, M), are_arrays, strict=True)]
    # what the solvers compute in holds all, also what A makes of b, as a complex matrix does
    made = [traced(A, "A"), traced(M, "M")]
    given = [tree_leaves(x0), leaves, *[y.closed.out_avals for y in made if y.out_tree == tree]]
    common = tree.unflatten([dtypes.to_inexact_dtype(dtypes.result_type(*xs))
                             for xs in zip(*given, strict=True)])
    x0, b = [tree_map(lambda x, d: x.astype(d), x, common) for x in (x0, b)]
    return _of_same_dtypes(A), b, x0, _of_same_dtypes(M)


def _of_same_dtypes(fun: Linear) -> Linear:
    """The function, whose results have the dtypes of what it is given."""
    def same(x: PyTree) -> Any:
        y = fun(x)
        return tree_map(lambda y, x: y.astype(x.dtype), y, x) if (
            tree_structure(y) == tree_structure(x)) else y

    return same


# A solver of vectors: (A, M, b, x0, size) -> x
_Solver = Callable[[Linear, Linear, Array, Array], Array]


def _solve(name: str, solver: _Solver, A: Linear | ArrayLike, b: PyTree, x0: PyTree,
           M: Linear | ArrayLike | None, symmetric: bool) -> Any:
    given = b
    A, b, x0, M = _operands(name, A, b, x0, M)

    def solve(matvec: Linear, rhs: PyTree) -> Any:
        vector, unravel = ravel_pytree(rhs)
        start = ravel_pytree(x0)[0]

        def flat(fun: Linear) -> Callable[[Array], Array]:
            return lambda v: ravel_pytree(fun(unravel(v)))[0]

        return unravel(solver(flat(matvec), flat(M), vector, start))

    real = not any(jnp.issubdtype(x.dtype, jnp.complexfloating) for x in tree_leaves(b))
    x = lax.custom_linear_solve(A, b, solve=solve, transpose_solve=solve,
                                symmetric=symmetric and real)
    return tree_map(_as_weak_as, x, given)


def _as_weak_as(x: PyTree, b: PyTree) -> Any:
    """The solution of a weak type where the right-hand side, which is inexact, is of one."""
    return convert(x, x.dtype, is_inexact(b) and get_aval(b).weak_type)


def _length(b: PyTree) -> Any:
    return sum(jnp.asarray(x).size for x in tree_leaves(b))


# -- conjugate gradients ---------------------------------------------------------------------------


def _cg(A: Linear, M: Linear, b: PyTree, x0: PyTree, *, tol: Any, atol: Any, maxiter: Any) -> Array:
    """Hestenes and Stiefel's method, with a preconditioner: Saad, Iterative Methods for Sparse
    Linear Systems, 2nd edition, algorithm 9.1."""
    limit = jnp.maximum(tol ** 2 * _square(b), atol ** 2)

    def going(s: PyTree) -> Any:
        _, r, _, _, k = s
        return (_square(r) > limit) & (k < maxiter)

    def body(s: PyTree) -> Any:
        x, r, gamma, p, k = s
        Ap = A(p)
        alpha = (gamma / jnp.real(_inner(p, Ap))).astype(x.dtype)
        x, r = x + alpha * p, r - alpha * Ap
        z = M(r)
        following = jnp.real(_inner(r, z))
        return x, r, following, z + (following / gamma).astype(x.dtype) * p, k + 1

    r = b - A(x0)
    p = M(r)
    return lax.while_loop(going, body, (x0, r, jnp.real(_inner(r, p)), p, 0))[0]


def cg(A: Linear | ArrayLike, b: PyTree, x0: PyTree = None, *, tol: ArrayLike = 1e-5,
       atol: ArrayLike = 0.0, maxiter: int | None = None, M: Linear | ArrayLike | None = None
      ) -> tuple[Any, None]:
    """Solve A x = b by conjugate gradients, for a Hermitian, positive definite A.

    Args:
      A: a linear function from pytrees like `b` to such, or a square matrix, which may be sparse.
      b: pytree of arrays. The solution has the dtype that holds both `b` and `A` of it.
      x0: where to start, a pytree like `b`; zeros by default.
      tol, atol: it ends when the norm of the residual is at most max(tol * norm(b), atol).
      maxiter: the most iterations; ten times the number of unknowns by default.
      M: an approximation of the inverse of A, as a function or matrix: a preconditioner.

    Returns:
      `(x, None)`. The derivatives are those of the solution, which takes as good a solve each.

    Raises:
      TypeError: `A` is neither a function nor a matrix.
      ValueError: it is no square one, or `x0` is not like `b`.

    >>> import pyjx as jax
    >>> x, _ = jax.scipy.sparse.linalg.cg(lambda x: 2 * x, jax.numpy.array([2.0, 4.0]))
    >>> x.tolist()
    [1.0, 2.0]
    """
    maxiter = 10 * _length(b) if maxiter is None else maxiter
    solver = partial(_cg, tol=tol, atol=atol, maxiter=maxiter)
    return _solve("cg", solver, A, b, x0, M, True), None


# -- stabilized biconjugate gradients --------------------------------------------------------------


def _bicgstab(A: Linear, M: Linear, b: PyTree, x0: PyTree, *, tol: Any, atol: Any,
              maxiter: Any) -> Array:
    """Van der Vorst's method: Saad, algorithm 7.7, preconditioned from the right."""
    limit = jnp.maximum(tol ** 2 * _square(b), atol ** 2)
    shadow = b - A(x0)
    tiny = dtypes.finfo(b.dtype).eps ** 2

    def going(s: PyTree) -> Any:
        _, r, *_, broken, k = s
        return (_square(r) > limit) & (k < maxiter) & ~broken

    def body(s: PyTree) -> Any:
        x, r, p, q, alpha, omega, rho, _, k = s
        following = _inner(shadow, r)
        beta = following / rho * (alpha / omega)
        p = r + beta * (p - omega * q)
        phat = M(p)
        q = A(phat)
        alpha = following / _inner(shadow, q)
        half = r - alpha * q
        done = _square(half) < limit
        shat = M(half)
        t = A(shat)
        tt = _inner(t, t)
        omega = jnp.where(tt == 0, 0, _inner(t, half) / jnp.where(tt == 0, 1, tt))
        x = jnp.where(done, x + alpha * phat, x + alpha * phat + omega * shat)
        r = jnp.where(done, half, half - omega * t)
        broken = (jnp.abs(following) <= tiny * tiny * _square(shadow)) | (omega == 0) | (alpha == 0)
        return x, r, p, q, alpha, omega, following, broken, k + 1

    one = jnp.ones((), b.dtype)
    zeros = jnp.zeros_like(b)
    start = (x0, shadow, zeros, zeros, one, one, one, jnp.zeros((), bool), 0)
    return lax.while_loop(going, body, start)[0]


def bicgstab(A: Linear | ArrayLike, b: PyTree, x0: PyTree = None, *, tol: ArrayLike = 1e-5,
             atol: ArrayLike = 0.0, maxiter: int | None = None, M: Linear | ArrayLike | None = None
            ) -> tuple[Any, None]:
    """Solve A x = b by stabilized biconjugate gradients, for any invertible A.

    Arguments, result and errors are those of `cg`.

    Args:
      A: a linear function from pytrees like `b` to such, or a square matrix, which may be sparse.
      b: a pytree of arrays.
      x0: where to start, a pytree like `b`; zeros by default.
      tol, atol: it ends when the norm of the residual is at most max(tol * norm(b), atol).
      maxiter: the most iterations; ten times the number of unknowns by default.
      M: an approximation of the inverse of A, as a function or matrix: a preconditioner.

    >>> import pyjx as jax
    >>> A = jax.numpy.array([[2.0, 1.0], [0.0, 2.0]])
    >>> x, _ = jax.scipy.sparse.linalg.bicgstab(A, jax.numpy.array([3.0, 2.0]))
    >>> x.round(4).tolist()
    [1.0, 1.0]
    """
    maxiter = 10 * _length(b) if maxiter is None else maxiter
    solver = partial(_bicgstab, tol=tol, atol=atol, maxiter=maxiter)
    return _solve("bicgstab", solver, A, b, x0, M, False), None


# -- generalized minimal residuals -----------------------------------------------------------------


def _rotation(a: Array, b: Array) -> tuple[Array, Array]:
    """The unitary 2x2 matrix that takes (a, b) to (norm, 0), and that norm."""
    size = jnp.sqrt(jnp.abs(a) ** 2 + jnp.abs(b) ** 2)
    safe = jnp.where(size == 0, 1, size).astype(a.dtype)
    c, s = jnp.where(size == 0, 1, a / safe), b / safe
    rows = jnp.stack([jnp.stack([jnp.conj(c), jnp.conj(s)]), jnp.stack([-s, c])])
    return rows, size.astype(a.dtype)


def _gmres_cycle(A: Linear, M: Linear, x: Array, r: Array, size: Array, limit: Any, restart: int
                 ) -> Array:
    """One cycle from the preconditioned residual r: Saad, algorithms 6.9 and 6.10.

    The basis V of the Krylov space is orthogonalized twice. Q, the product of the rotations, brings
    the Hessenberg matrix to the triangle R; |Q[k, 0]| norm(r) is the residual after k steps.
    """
    dtype, m = x.dtype, restart
    eps = dtypes.finfo(dtype).eps

    def going(s: PyTree) -> Any:
        k, _, _, Q, exhausted = s
        return (k < m) & ~exhausted & (jnp.abs(Q[k, 0]) * size > limit)

    def body(s: PyTree) -> Any:
        k, V, R, Q, _ = s
        w = M(A(V[:, k]))
        before = _norm(w)
        h = jnp.zeros(m + 1, dtype)
        for _ in range(2):
            part = jnp.conj(V.T) @ w
            w, h = w - V @ part, h + part
        rest = _norm(w)
        exhausted = rest <= eps * before
        following = jnp.where(exhausted, 0, w / jnp.where(exhausted, 1, rest).astype(dtype))
        V = lax.dynamic_update_slice(V, following[:, None], (0, k + 1))
        t = Q @ h.at[k + 1].set(jnp.where(exhausted, 0, rest).astype(dtype))
        rows, top = _rotation(t[k], t[k + 1])
        turned = rows @ lax.dynamic_slice(Q, (k, 0), (2, m + 1))
        Q = lax.dynamic_update_slice(Q, turned, (k, 0))
        column = jnp.where(jnp.arange(m) == k, top, jnp.where(jnp.arange(m) < k, t[:m], 0))
        # a column of zeros, of a singular matrix, takes no part
        column = jnp.where((jnp.arange(m) == k) & (top == 0), 1, column)
        R = lax.dynamic_update_slice(R, column[:, None], (0, k))
        return k + 1, V, R, Q, exhausted

    V = jnp.zeros((x.size, m + 1), dtype).at[:, 0].set(
        r / jnp.where(size == 0, 1, size).astype(dtype))
    start = (jnp.asarray(0), V, jnp.eye(m, dtype=dtype), jnp.eye(m + 1, dtype=dtype),
             jnp.zeros((), bool))
    k, V, R, Q, _ = lax.while_loop(going, body, start)
    rhs = jnp.where(jnp.arange(m) < k, Q[:m, 0] * size.astype(dtype), 0)
    y = lax.linalg.triangular_solve(R, rhs[:, None], left_side=True)[:, 0]
    return x + V[:, :m] @ y


def _gmres(A: Linear, M: Linear, b: PyTree, x0: PyTree, *, tol: ArrayLike, atol: ArrayLike,
           restart: int, maxiter: Any, early: bool) -> Array:
    size_b = _norm(b)
    limit = jnp.maximum(tol * size_b, atol)
    # residuals are measured after the preconditioner
    limit = _norm(M(b)) * jnp.minimum(1, limit / jnp.where(size_b == 0, 1, size_b))
    restart = min(restart, b.size)

    def residual(x: Array) -> tuple[Array, Array]:
        r = M(b - A(x))
        return r, _norm(r)

    def going(s: PyTree) -> Any:
        _, k, _, size = s
        return (k < maxiter) & (size > limit)

    def body(s: PyTree) -> Any:
        x, k, r, size = s
        x = _gmres_cycle(A, M, x, r, size, limit if early else 0, restart)
        return x, k + 1, *residual(x)

    return lax.while_loop(going, body, (x0, 0, *residual(x0)))[0]


def gmres(A: Linear | ArrayLike, b: PyTree, x0: PyTree = None, *, tol: ArrayLike = 1e-5,
          atol: ArrayLike = 0.0, restart: int = 20, maxiter: int | None = None,
          M: Linear | ArrayLike | None = None, solve_method: str = "batched") -> tuple[Any, Any]:
    """Solve A x = b by generalized minimal residuals, for any invertible A.

    Args:
      A, b, x0, tol, atol, M: as for `cg`; the preconditioner is on the left.
      restart: the size of the Krylov space; it is restarted when it is full.
      maxiter: the most restarts; ten times the number of unknowns by default.
      solve_method: "incremental" ends a cycle as soon as the residual is small enough, "batched"
        fills the Krylov space each time.

    Returns:
      `(x, info)`: info is 0, or -1 where x is nan.

    Raises:
      ValueError: an unknown `solve_method`; and as `cg`.

    >>> import pyjx as jax
    >>> A = jax.numpy.array([[2.0, 1.0], [0.0, 2.0]])
    >>> x, _ = jax.scipy.sparse.linalg.gmres(A, jax.numpy.array([3.0, 2.0]))
    >>> x.round(4).tolist()
    [1.0, 1.0]
    """
    if solve_method not in ("incremental", "batched"):
        raise ValueError(f"invalid solve_method {solve_method}, must be either 'incremental' or "
                         "'batched'")
    maxiter = 10 * _length(b) if maxiter is None else maxiter
    solver = partial(_gmres, tol=tol, atol=atol, restart=restart, maxiter=maxiter,
                     early=solve_method == "incremental")
    x = _solve("gmres", solver, A, b, x0, M, False)
    failed = jnp.isnan(sum(jnp.abs(y).sum() for y in tree_leaves(x)))
    return x, jnp.where(failed, -1, 0)
