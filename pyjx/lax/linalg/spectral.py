"""Spectral decompositions: eigenvalues and eigenvectors of Hermitian matrices, singular values and
vectors, and the polar decomposition by QDWH.
"""

from __future__ import annotations

import enum
from functools import reduce
from itertools import combinations
from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core import dtypes
from pyjx.core.arithmetic import EIGH, SVD
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.explicit import along_batch
from pyjx.core.integers import as_int, max_dim, min_dim
from pyjx.core.primitive import OF_SYMMETRIC, Primitive, register
from pyjx.engine.primitives import cast
from pyjx.engine.types import Tangents, Value, Values
from pyjx.lax.common import operand
from pyjx.lax.elementwise import real_dtype
from pyjx.lax.linalg.matrices import (
    MATRIX_DTYPES,
    adjoint,
    alike,
    check_member,
    check_operands,
    check_rows_as_columns,
    choose,
    conjugate,
    corner,
    define_leading,
    diagonal,
    element,
    elements,
    identity_like,
    inexact_operand,
    is_complex,
    of_elements,
    of_few_rows,
    part,
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
from pyjx.lax.linalg.triangular import cholesky, triangular_solve

# -- eigenvalues of Hermitian matrices -------------------------------------------------------------


class EighImplementation(enum.Enum):
    """How eigenvalues of Hermitian matrices are computed."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


@weak_as_operands
def _eigh_shape(x: ShapedArray, *, lower: bool, sort_eigenvalues: bool, subset_by_index: None,
               algorithm: EighImplementation | None) -> list[ShapedArray]:
    check_rows_as_columns("linalg.eigh", x)
    check_operands("eigh", (x,), (2,))
    return [ShapedArray(x.shape, x.dtype), typed_real(x, x.shape[-1])]


def _eigh_jvp(primals: Values, tangents: Tangents, **params: Any) -> tuple[Values, Tangents]:
    # With C = V^H dA V: dw = diag(C) and dV = V (F * C), where F_ij = 1 / (w_j - w_i) and 0 on the
    # diagonal (Giles, An extended collection of matrix derivative results, 2008, 3.1).
    (x,), (dx,) = primals, tangents
    v, w = eigh_p.bind(x, **params)
    shape = get_aval(x).shape
    inner = product(adjoint(v), dx, v)
    eye = identity_like(w, shape)
    gaps = lax.sub(spread_rows(w, shape), spread_columns(w, shape))
    weights = lax.sub(lax.integer_pow(lax.add(gaps, eye), -1), eye)
    dv = product(v, lax.mul(cast(weights, get_aval(x).dtype), inner))
    dw = diagonal(inner)
    return [v, w], [dv, real_part(dw)]


# Sweeps by which what is left below the diagonal is no longer seen, of three rows and columns.
_SWEEPS = {4: 6, 8: 8}  # by bytes of an element of the eigenvalues


def _by_rotations(x: Value, *, lower: bool, **params: Any) -> tuple[Value, Value]:
    """Jacobi's method (Golub and Van Loan, 8.5): rotations, each of which makes an element below
    the diagonal zero. Eigenvalues always ascend."""
    shape, dtype = get_aval(x).shape, get_aval(x).dtype
    *_, n = shape

    def sweep(_: Any, state: tuple[Value, Value]) -> tuple[Value, Value]:
        a, v = map(elements, state)
        for p, q in combinations(range(n), 2):
            _rotate(a, v, p, q)
        return of_elements(a), of_elements(v)

    x = x if lower else adjoint(x)
    # Scaled, so that no product of small elements is zero; NaN where one is not finite.
    size = reduce(lax.max, [lax.abs(element(x, i, j)) for i in range(n) for j in range(i + 1)])
    zero = lax.full_like(size, 0)
    divisor = lax.select(lax.eq(size, zero), lax.full_like(size, 1), size)
    state: tuple[Value, Value] = lax.div(*alike(x, cast(divisor, dtype))), identity_like(x)
    if n == 2:
        state = sweep(0, state)
    elif n > 2:
        state = lax.fori_loop(0, _SWEEPS[real_dtype(dtype).itemsize], sweep, state)
    a, v = state
    pairs = [(real_part(element(a, i, i)), part(v, (0, n), (i, i + 1))) for i in range(n)]
    for i in range(n):
        for j in range(n - 1 - i):
            (w, left), (u, right) = pairs[j:j + 2]
            above = lax.gt(w, u)
            pairs[j:j + 2] = [(choose(above, s, t), choose(above, y, z)) for s, t, y, z in (
                (u, w, right, left), (w, u, left, right))]
    values, vectors = zip(*pairs, strict=True)
    w = lax.mul(*alike(lax.concatenate(values, len(shape) - 1), size))
    v = lax.add(*alike(lax.concatenate(vectors, len(shape) - 1), cast(lax.mul(size, zero), dtype)))
    return v, lax.squeeze(w, (len(shape) - 2,))


def _rotate(a: list[list[Value]], v: list[list[Value]], p: int, q: int) -> None:
    """Make the element q, p of a Hermitian matrix, of which what is below the diagonal counts, zero
    by columns p and q of its eigenvectors."""
    low = a[q][p]
    size = lax.abs(low)
    one, zero = lax.full_like(size, 1), lax.full_like(size, 0)
    there = lax.gt(size, zero)
    divisor = lax.select(there, size, one)
    ratio = lax.div(lax.sub(real_part(a[q][q]), real_part(a[p][p])), lax.add(divisor, divisor))
    root = lax.add(lax.abs(ratio), lax.sqrt(lax.add(one, lax.square(ratio))))
    t = lax.div(lax.select(lax.lt(ratio, zero), lax.neg(one), one), root)
    t = lax.select(there, t, zero)
    cosine = lax.div(one, lax.sqrt(lax.add(one, lax.square(t))))
    sine = lax.mul(t, cosine)
    dtype = get_aval(low).dtype
    c = cast(cosine, dtype)
    s = lax.mul(cast(sine, dtype), lax.select(
        there, lax.div(low, cast(divisor, dtype)), lax.full_like(low, 1))) \
        if is_complex(low) else lax.select(lax.lt(low, zero), lax.neg(sine), sine)

    def rotated(x: Value, y: Value) -> tuple[Value, Value]:
        return (lax.sub(lax.mul(c, x), lax.mul(s, y)),
                lax.add(lax.mul(conjugate(s), x), lax.mul(c, y)))

    by = cast(lax.mul(t, size), dtype)
    a[p][p], a[q][q] = lax.sub(a[p][p], by), lax.add(a[q][q], by)
    a[q][p] = lax.full_like(low, 0)
    for r in range(len(a)):
        if r not in (p, q):
            x, y = rotated(*[a[r][k] if r > k else conjugate(a[k][r]) for k in (p, q)])
            for k, z in ((p, x), (q, y)):
                i, j, z = (r, k, z) if r > k else (k, r, conjugate(z))
                a[i][j] = z
        v[r][p], v[r][q] = rotated(v[r][p], v[r][q])


_unrolled = of_few_rows("eigh", _by_rotations, several=True)


eigh_p = register(Primitive("eigh", arithmetic=EIGH,
                            sharding_rule=along_batch(2),
                            unrolled=_unrolled._replace(when=lambda eqn, repeated: (
                                eqn.params["algorithm"] is None
                                and _unrolled.when(eqn, repeated))),
                            shape_rule=_eigh_shape, multiple_results=True, jvp=_eigh_jvp,
                            derivative=OF_SYMMETRIC))
define_leading(eigh_p)


def subset_bounds(name: str, subset: Any, n: int) -> tuple[int, int] | None:
    """The bounds of a range of values, or None for all of them.

    Raises:
      ValueError: it is no range in [0, n].
    """
    if subset is None:
        return None
    start, end = (int(i) for i in subset)
    if not 0 <= start <= end <= n:
        raise ValueError(f"{name}: expected subset_by_index=(start, end) with 0 <= start <= end <= "
                         f"{n}, got {tuple(subset)}.")
    return None if (start, end) == (0, n) else (start, end)


def eigh(x: ArrayLike, *, lower: bool = True, symmetrize_input: bool = True,
         sort_eigenvalues: bool = True, subset_by_index: tuple[int, int] | None = None,
         implementation: EighImplementation | None = None) -> tuple[Array, Array]:
    """The eigenvalues and eigenvectors of Hermitian matrices, x V = V diag(w).

    Where eigenvalues coincide, the derivative of the eigenvectors is not finite.

    Args:
      x: Hermitian matrices, `[..., n, n]`; integers become floats.
      lower: which triangle to read where `symmetrize_input` is false.
      symmetrize_input: whether to take (x + x^H) / 2 for `x`.
      sort_eigenvalues: whether they must be in ascending order.
      subset_by_index: (start, end): only those eigenvalues, in ascending order, and their vectors.
      implementation: an `EighImplementation`; the platform's best by default.

    Returns:
      (V, w): unitary matrices whose columns are eigenvectors, and real eigenvalues. NaN where the
      algorithm does not converge.

    Raises:
      ValueError: the matrices are not square, or the subset is out of range.
      TypeError: the dtype is not float32, float64, complex64 or complex128.
      NotImplementedError: the platform has not the implementation.

    >>> import pyjx as jax
    >>> v, w = jax.lax.linalg.eigh(jax.numpy.array([[2.0, 0.0], [0.0, 1.0]]))
    >>> w.tolist()
    [1.0, 2.0]
    """
    check_member("eigh", "implementation", implementation, EighImplementation)
    x = inexact_operand("eigh", x)
    params: dict[str, Any] = {"lower": bool(lower),
                              "sort_eigenvalues": bool(sort_eigenvalues),
                              "subset_by_index": None, "algorithm": implementation}
    if symmetrize_input:
        _eigh_shape(get_aval(x), **params)
        x = symmetrized(x)
    v, w = eigh_p.bind(x, **params)
    shape = get_aval(v).shape
    bounds = subset_bounds("eigh", subset_by_index, shape[-1])
    if bounds is None:
        return v, w
    start, end = bounds
    axis = len(shape) - 1
    return (lax.slice_in_dim(v, start, end, axis=axis),
            lax.slice_in_dim(w, start, end, axis=axis - 1))


# -- the polar decomposition -----------------------------------------------------------------------

# Weights up to this one are for the step by the Cholesky decomposition, which is cheaper.
_LARGE_WEIGHT = 100.0
_MOST_COLUMNS = 1 << 16  # what a symbol may stand for: more take steps that are not needed
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
    if max_steps is not None and max_steps < 0:
        raise ValueError(f"max_iterations must not be negative, got {max_steps}")
    tolerance = float(dtypes.finfo(real_dtype(aval.dtype)).eps if eps is None else eps)
    n = max_dim(aval.shape[-1], 1)
    # The largest singular value is taken for up to n times what it is.
    most = n if type(n) is int else _MOST_COLUMNS
    weights = _weights(tolerance / most, tolerance, _MAX_STEPS)[:max_steps]
    scale = lax.convert_element_type(_bound(x), aval.dtype)
    u = lax.div(x, lax.broadcast_in_dim(scale, aval.shape, range(aval.ndim - 2)))
    for a, b, c in weights:
        u = (_step_by_qr if c > _LARGE_WEIGHT else _step_by_cholesky)(u, a, b, c)
    gram = product(adjoint(u), u)
    off = lax.abs(lax.sub(gram, identity_like(gram)))
    off = lax.sqrt(lax.reduce_sum(lax.mul(off, off), (aval.ndim - 2, aval.ndim - 1)))
    limit = 10 * tolerance * n if type(n) is int else lax.mul(
        10 * tolerance, lax.convert_element_type(n, get_aval(off).dtype))
    return u, len(weights), lax.lt(off, lax.full_like(off, limit))


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


def _vector_tangents(s: Value, u: Value, vh: Value, inner: Value, dx: Value) -> tuple[Value, Value]:
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


svd_p = register(Primitive("svd", arithmetic=SVD,
                           sharding_rule=along_batch(2),
                           shape_rule=_shape, multiple_results=True, jvp=_jvp,
                           decomposition=_by_polar_factors))
define_leading(svd_p)


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
