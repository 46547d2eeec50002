"""The polar decomposition by QDWH, and singular values by it."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import get_aval
from pyjx.core.integers import as_int
from pyjx.lax.common import operand
from pyjx.lax.linalg.cholesky_factors import cholesky
from pyjx.lax.linalg.matrices import (
    MATRIX_DTYPES,
    adjoint,
    identity_like,
    product,
    symmetrized,
)
from pyjx.lax.linalg.reflectors import qr
from pyjx.lax.linalg.triangular_systems import triangular_solve
from pyjx.lax.nary import real_dtype

# Weights up to this one are for the step by the Cholesky decomposition, which is cheaper.
_LARGE_WEIGHT = 100.0
_MAX_STEPS = 10  # 6 are enough where the smallest singular value is eps times the largest


def _weights(low: float, eps: float, steps: int) -> list[tuple[float, float, float]]:
    """(a, b, c) of each step: the best rational functions x (a + b x^2) / (1 + c x^2) in turn for
    singular values from `low` to 1, which they bring within `eps` of 1 (Nakatsukasa, Bai and Gygi,
    Optimizing Halley's iteration for computing the matrix polar decomposition, 2010, eqs. 3.8 to
    3.10)."""
    out = []
    for _ in range(steps):
        d = np.cbrt(4 * (1 / low**2 - 1) / low**2)
        root = np.sqrt(1 + d)
        a = root + 0.5 * np.sqrt(8 - 4 * d + 8 * (2 / low**2 - 1) / root)
        b = (a - 1) ** 2 / 4
        c = a + b - 1
        out.append((float(a), float(b), float(c)))
        low = min(float(low * (a + b * low**2) / (1 + c * low**2)), 1.0)
        if 1 - low < eps:
            break
    return out


def _number(x: float, like: Any) -> Any:
    return np.asarray(x, get_aval(like).dtype)[()]


def _step_by_qr(u: ArrayLike, a: float, b: float, c: float) -> Any:
    # [sqrt(c) U; I] = [Q1; Q2] R, then U' = b/c U + (a - b/c) / sqrt(c) Q1 Q2^H
    m, n = get_aval(u).shape[-2:]
    eye = identity_like(u, (*get_aval(u).shape[:-2], n, n))
    axis = get_aval(u).ndim - 2
    stacked = lax.concatenate([lax.mul(u, _number(c ** 0.5, u)), eye], axis)
    q, _ = qr(stacked, full_matrices=False)
    above, below = (lax.slice_in_dim(q, *bounds, axis=axis) for bounds in ((0, m), (m, m + n)))
    return lax.add(lax.mul(u, _number(b / c, u)),
                   lax.mul(product(above, adjoint(below)), _number((a - b / c) / c ** 0.5, u)))


def _step_by_cholesky(u: ArrayLike, a: float, b: float, c: float) -> Any:
    # Z = I + c U^H U, then U' = b/c U + (a - b/c) U Z^-1
    gram = lax.mul(product(adjoint(u), u), _number(c, u))
    factor = cholesky(lax.add(gram, identity_like(gram)), symmetrize_input=False)
    solved = triangular_solve(factor, u, lower=True, transpose_a=True, conjugate_a=True)
    solved = triangular_solve(factor, solved, lower=True)
    return lax.add(lax.mul(u, _number(b / c, u)), lax.mul(solved, _number(a - b / c, u)))


def _bound(x: ArrayLike) -> Any:
    """An upper bound of the largest singular value, at least the smallest normal number."""
    sizes = lax.abs(x)
    axis = get_aval(x).ndim - 2
    rows, columns = (lax.reduce_max(lax.reduce_sum(sizes, (i,)), (axis,)) for i in (axis + 1, axis))
    bound = lax.mul(lax.sqrt(rows), lax.sqrt(columns))
    return lax.max(bound, lax.full_like(bound, dtypes.finfo(get_aval(bound).dtype).tiny))


def unitary_factor(x: ArrayLike, max_steps: int | None = None, eps: float | None = None
                   ) -> tuple[Any, int, Any]:
    """U of x = U H for matrices with as many rows as columns at least, the number of steps, and
    for each matrix whether the columns of U are orthonormal."""
    aval = get_aval(x)
    tolerance = float(dtypes.finfo(real_dtype(aval.dtype)).eps if eps is None else eps)
    n = aval.shape[-1]
    # The largest singular value is taken for up to n times what it is.
    weights = _weights(tolerance / max(n, 1), tolerance, _MAX_STEPS)[:max_steps]
    scale = lax.convert_element_type(_bound(x), aval.dtype)
    u = lax.div(x, lax.broadcast_in_dim(scale, aval.shape, range(aval.ndim - 2)))
    for a, b, c in weights:
        u = (_step_by_qr if c > _LARGE_WEIGHT else _step_by_cholesky)(u, a, b, c)
    gram = product(adjoint(u), u)
    off = lax.abs(lax.sub(gram, identity_like(gram)))
    off = lax.sqrt(lax.reduce_sum(lax.mul(off, off), (aval.ndim - 2, aval.ndim - 1)))
    return u, len(weights), lax.lt(off, lax.full_like(off, 10 * max(n, 1) * tolerance))


def qdwh(x: ArrayLike, *, is_hermitian: bool = False, max_iterations: int | None = None,
         eps: float | None = None, dynamic_shape: tuple[int, int] | None = None
         ) -> tuple[Array, Array, Array, Array]:
    """The polar decomposition x = U H by the dynamically weighted iteration of Halley.

    The weights of all steps are known beforehand, for singular values from `eps` times the
    largest: there is no loop that waits for convergence.

    Args:
      x: a matrix `[m, n]` with m >= n, of float32, float64, complex64 or complex128.
      is_hermitian: whether `x` is Hermitian; U is then made so.
      max_iterations: at most so many steps.
      eps: the tolerance, by default that of the dtype.
      dynamic_shape: numbers (m, n) of rows and columns that count; the others are taken as zeros.

    Returns:
      (U, H, steps, converged): the matrix with orthonormal columns, `[m, n]`; the Hermitian one
      without negative eigenvalues, `[n, n]`; and how the iteration ended.

    Raises:
      ValueError: the matrix has more columns than rows, other axes, or another dtype.

    >>> import pyjx as jax
    >>> u, h, steps, converged = jax.lax.linalg.qdwh(jax.numpy.array([[0.0, 2.0], [-3.0, 0.0]]))
    >>> jax.numpy.round(u).tolist(), bool(converged)
    ([[0.0, 1.0], [-1.0, 0.0]], True)
    """
    x = operand("qdwh", x)
    aval = get_aval(x)
    if aval.ndim != 2:
        raise ValueError(f"qdwh: expected a matrix, got shape {aval.shape}")
    if aval.dtype not in MATRIX_DTYPES:
        raise ValueError(f"qdwh: expected float32, float64, complex64 or complex128, got "
                         f"{aval.dtype}")
    m, n = aval.shape
    if m < n:
        raise ValueError("The input matrix of shape M x N must have M >= N.")
    if max_iterations is not None:
        max_iterations = as_int("qdwh", "max_iterations", max_iterations)
    if dynamic_shape is not None:
        x = _cleared(x, dynamic_shape)
    u, steps, settled = unitary_factor(x, max_iterations, eps)
    if is_hermitian and m == n:
        u = symmetrized(u)
    h = symmetrized(product(adjoint(u), x))
    return u, h, lax.full((), steps), settled  # a Python int makes a weak type, as in JAX


def _cleared(x: ArrayLike, shape: tuple[Any, Any]) -> Any:
    """The matrix with zeros beyond the numbers of rows and columns, which may be traced."""
    inside = [lax.lt(lax.broadcasted_iota(np.int32, get_aval(x).shape, axis),
                     lax.broadcast(lax.convert_element_type(size, np.int32), get_aval(x).shape))
              for axis, size in enumerate(shape)]
    return lax.select(lax.bitwise_and(*inside), x, lax.full_like(x, 0))
