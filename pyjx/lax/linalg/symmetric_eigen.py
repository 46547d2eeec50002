"""Eigenvalues and eigenvectors of Hermitian matrices."""

from __future__ import annotations

import enum
from functools import reduce
from itertools import combinations
from typing import Any

from pyjx import lax
from pyjx.core.arithmetic import of_matrix
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.explicit import along_batch
from pyjx.core.primitive import Primitive, register
from pyjx.engine.primitives import cast
from pyjx.engine.types import Tangents, Value, Values
from pyjx.lax.linalg.matrices import (
    adjoint,
    alike,
    batch_leading,
    check_member,
    check_operands,
    check_rows_as_columns,
    choose,
    conjugate,
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
    typed_real,
    weak_as_operands,
)
from pyjx.lax.nary import real_dtype


class EighImplementation(enum.Enum):
    """How eigenvalues of Hermitian matrices are computed."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


@weak_as_operands
def _shape(x: ShapedArray, *, lower: bool, sort_eigenvalues: bool, subset_by_index: None,
           algorithm: EighImplementation | None) -> list[ShapedArray]:
    check_rows_as_columns("linalg.eigh", x)
    check_operands("eigh", (x,), (2,))
    return [ShapedArray(x.shape, x.dtype), typed_real(x, x.shape[-1])]


def _jvp(primals: Values, tangents: Tangents, **params: Any) -> tuple[Values, Tangents]:
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
    v = lax.add(*alike(lax.concatenate(vectors, len(shape) - 1),
                       cast(lax.mul(size, zero), dtype)))
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


eigh_p = register(Primitive("eigh", arithmetic=of_matrix(lambda m, n, out: 9.0 * n**3),
                            sharding_rule=along_batch(2),
                            unrolled=_unrolled._replace(when=lambda eqn, repeated: (
                                eqn.params["algorithm"] is None
                                and _unrolled.when(eqn, repeated))),
                            shape_rule=_shape, multiple_results=True, jvp=_jvp))
eigh_p.define(batch=batch_leading(eigh_p))


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
        _shape(get_aval(x), **params)
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
