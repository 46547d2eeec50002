"""Singular values and singular vectors, and the polar decomposition by QDWH."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core import dtypes
from pyjx.core.arithmetic import of_matrix
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.explicit import along_batch
from pyjx.core.integers import as_int, min_dim
from pyjx.core.primitive import Primitive, register
from pyjx.engine.primitives import cast
from pyjx.engine.types import Tangents, Value, Values
from pyjx.lax.common import operand
from pyjx.lax.linalg.cholesky_factors import cholesky
from pyjx.lax.linalg.matrices import (
    MATRIX_DTYPES,
    adjoint,
    batch_leading,
    check_member,
    check_operands,
    corner,
    diagonal,
    identity_like,
    product,
    real_part,
    spread_columns,
    spread_rows,
    symmetrized,
    typed,
    typed_real,
    weak_as_operands,
)
from pyjx.lax.linalg.reflectors import qr
from pyjx.lax.linalg.symmetric_eigen import eigh, subset_bounds
from pyjx.lax.linalg.triangular_systems import triangular_solve
from pyjx.lax.nary import real_dtype

# -- the polar decomposition -----------------------------------------------------------------------

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


# -- singular values -------------------------------------------------------------------------------


class SvdAlgorithm(enum.Enum):
    """How singular values are computed."""

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


@weak_as_operands
def _shape(x: ShapedArray, *, full_matrices: bool, compute_uv: bool, subset_by_index: None,
           algorithm: SvdAlgorithm | None) -> list[ShapedArray]:
    check_operands("svd", (x,), (2,))
    m, n = x.shape[-2:]
    k = min_dim(m, n)
    s = typed_real(x, k)
    if not compute_uv:
        return [s]
    return [s, typed(x, m, m if full_matrices else k), typed(x, n if full_matrices else k, n)]


def _jvp(primals: Values, tangents: Values, *, full_matrices: bool, compute_uv: bool,
         **params: Any) -> tuple[Values, Tangents]:
    # With C = U^H dA V: ds = Re diag(C). With F_ij = 1 / (s_j^2 - s_i^2), 0 on the diagonal,
    # dU = U (F * (C S + S C^H)) + (I - U U^H) dA V S^-1 and
    # dV = V (F * (S C + C^H S)) + (I - V V^H) dA^H U S^-1 (Townsend, Differentiating the singular
    # value decomposition, 2016); of a complex matrix the phases of U take the imaginary part of
    # C's diagonal.
    (x,), (dx,) = primals, tangents
    m, n = get_aval(x).shape[-2:]
    if compute_uv and full_matrices and m != n:
        raise NotImplementedError(
            "Singular value decomposition JVP not implemented for full matrices: the last vectors "
            f"of {m} x {n} matrices are no function of the matrix. Use full_matrices=False.")
    s, u, vh = svd_p.bind(x, full_matrices=False, compute_uv=True, **params)
    inner = product(adjoint(u), dx, adjoint(vh))
    ds = diagonal(inner)
    ds = real_part(ds)
    if not compute_uv:
        return [s], [ds]
    return [s, u, vh], [ds, *_vector_tangents(s, u, vh, inner, dx)]


def _vector_tangents(s: Value, u: Value, vh: Value, inner: Value, dx: Value
                     ) -> tuple[Value, Value]:
    dtype = get_aval(u).dtype
    shape = get_aval(inner).shape
    m, n = get_aval(dx).shape[-2:]
    k = shape[-1]
    rows, columns = spread_columns(s, shape), spread_rows(s, shape)  # s_i and s_j
    gaps = lax.mul(lax.add(columns, rows), lax.sub(columns, rows))
    eye = identity_like(gaps)
    weights = cast(lax.sub(lax.integer_pow(lax.add(gaps, eye), -1), eye), dtype)
    rows, columns = cast(rows, dtype), cast(columns, dtype)
    right = lax.mul(inner, columns)  # C S
    left = lax.mul(rows, inner)  # S C
    turn_u = lax.mul(weights, lax.add(right, adjoint(right)))
    turn_v = lax.mul(weights, lax.add(left, adjoint(left)))
    inverse = lax.integer_pow(s, -1)
    if dtype.kind == "c":
        phases = lax.mul(lax.sub(inner, adjoint(inner)), np.asarray(0.5, dtype)[()])
        phases = lax.mul(identity_like(inner), phases)
        turn_u = lax.add(turn_u, lax.mul(phases, cast(spread_rows(inverse, shape), dtype)))
    du = product(u, turn_u)
    dvh = product(adjoint(turn_v), vh)
    if m > k:  # what leaves the space of the columns of U
        moved = product(dx, adjoint(vh))
        moved = lax.sub(moved, product(u, product(adjoint(u), moved)))
        du = lax.add(du, lax.mul(moved, cast(spread_rows(inverse, get_aval(u).shape), dtype)))
    if n > k:
        moved = product(adjoint(u), dx)
        moved = lax.sub(moved, product(product(moved, adjoint(vh)), vh))
        dvh = lax.add(dvh, lax.mul(cast(spread_columns(inverse, get_aval(vh).shape), dtype), moved))
    return du, dvh


def _by_polar_factors(x: Value, *, full_matrices: bool, compute_uv: bool, **params: Any) -> Values:
    """From the polar decomposition x = Q H and H = V diag(s) V^H: the left vectors are Q V."""
    m, n = get_aval(x).shape[-2:]
    k = min_dim(m, n)
    if not k:
        return _of_nothing(x, full_matrices, compute_uv)
    if m < n:
        s, *vectors = _by_polar_factors(adjoint(x), full_matrices=full_matrices,
                                        compute_uv=compute_uv)
        return [s, *[adjoint(v) for v in reversed(vectors)]]
    q, _, _ = unitary_factor(x)
    v, s = eigh(product(adjoint(q), x))
    axis = get_aval(s).ndim - 1
    s = lax.max(lax.rev(s, (axis,)), lax.full_like(s, 0))
    if not compute_uv:
        return [s]
    v = lax.rev(v, (axis + 1,))
    # Where singular values vanish, so do columns of Q V: QR decomposition makes others.
    u, r = qr(product(q, v), full_matrices=full_matrices)
    scales = diagonal(corner(r, k, k))
    sizes = lax.abs(scales)
    none = lax.eq(sizes, lax.full_like(sizes, 0))
    phases = lax.select(none, lax.full_like(scales, 1), lax.sign(scales))
    shape = get_aval(u).shape
    if shape[-1] > k:
        padding = [(0, 0, 0)] * axis + [(0, m - k, 0)]
        phases = lax.pad(phases, np.ones((), get_aval(x).dtype)[()], padding)
    return [s, lax.mul(u, spread_rows(phases, shape)), adjoint(v)]


def _of_nothing(x: Value, full_matrices: bool, compute_uv: bool) -> Values:
    """The factors of matrices without elements: those that have some are the identity."""
    avals = _shape(get_aval(x), full_matrices=full_matrices, compute_uv=compute_uv,
                   subset_by_index=None, algorithm=None)
    return [identity_like(x, a.shape) if i else lax.full(a.shape, 0, a.dtype)
            for i, a in enumerate(avals)]


svd_p = register(Primitive("svd", arithmetic=of_matrix(lambda m, n, out: 4 * m * n**2 + 22 * n**3),
                           sharding_rule=along_batch(2),
                           shape_rule=_shape, multiple_results=True, jvp=_jvp,
                           decomposition=_by_polar_factors))
svd_p.define(batch=batch_leading(svd_p))


def svd(x: ArrayLike, *, full_matrices: bool = True, compute_uv: bool = True,
        subset_by_index: tuple[int, int] | None = None, algorithm: SvdAlgorithm | None = None
        ) -> Any:
    """The singular value decomposition x = U diag(s) V^H.

    Where singular values coincide, or vanish, the derivatives of the vectors are not finite.

    Args:
      x: matrices `[..., m, n]`, real or complex.
      full_matrices: whether U is `[..., m, m]` and V^H `[..., n, n]`; else they have min(m, n)
        columns and rows.
      compute_uv: whether to return U and V^H.
      subset_by_index: (start, end): only those singular values, in descending order, and their
        vectors.
      algorithm: an `SvdAlgorithm`; the platform's best by default.

    Returns:
      (U, s, V^H), or s: real, not negative, in descending order. NaN where the algorithm does not
      converge.

    Raises:
      TypeError: the dtype is not float32, float64, complex64 or complex128, or the rank below 2.
      ValueError: the subset is out of range, or `full_matrices` is true beside it.
      NotImplementedError: the platform has not the algorithm.

    >>> import pyjx as jax
    >>> u, s, vh = jax.lax.linalg.svd(jax.numpy.array([[3.0, 0.0], [0.0, -4.0]]))
    >>> s.tolist()
    [4.0, 3.0]
    """
    check_member("svd", "algorithm", algorithm, SvdAlgorithm)
    x = operand("svd", x)
    shape = get_aval(x).shape
    bounds = subset_bounds("svd", subset_by_index, min_dim(*shape[-2:]) if len(shape) > 1 else 0)
    if bounds is not None and full_matrices and compute_uv:
        raise ValueError("full_matrices and subset_by_index cannot both be set")
    s, *vectors = svd_p.bind(x, full_matrices=bool(full_matrices), compute_uv=bool(compute_uv),
                             subset_by_index=None, algorithm=algorithm)
    if bounds is not None:
        axis = len(shape) - 2
        s = lax.slice_in_dim(s, *bounds, axis=axis)
        vectors = [lax.slice_in_dim(v, *bounds, axis=axis + 1 - i) for i, v in enumerate(vectors)]
    if not compute_uv:
        return s
    u, vh = vectors
    return u, s, vh
