"""Triangular matrices: systems of linear equations with them, and the factors of Cholesky of
positive definite matrices, with their updates and products of matrices with their own transposes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core.arithmetic import CHOLESKY, LAST, TRIANGULAR_SOLVE
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.explicit import along_batch
from pyjx.core.primitive import Primitive, register
from pyjx.engine.axes import at_front, moveaxis
from pyjx.engine.primitives import cast
from pyjx.engine.tangents import Zero, add_tangents
from pyjx.engine.types import Dims, Operand, Tangent, Tangents, Value, Values
from pyjx.lax.common import check_same_dtypes, operand
from pyjx.lax.elementwise import INEXACT, check_kinds
from pyjx.lax.linalg.matrices import (
    adjoint,
    alike,
    check_operands,
    check_rows_as_columns,
    check_square,
    choose,
    conjugate,
    define_leading,
    element,
    half_lower_triangle,
    inexact_operand,
    is_complex,
    lower_triangle,
    minus_product,
    of_few_rows,
    part,
    product,
    real_part,
    symmetrized,
    transposed,
    upper_triangle,
    weak_as_operands,
)
from pyjx.lax.shapes import axes_in_one

# -- triangular systems ----------------------------------------------------------------------------


@weak_as_operands
def _solve_shape(a: ShapedArray, b: ShapedArray, *, left_side: bool, lower: bool, transpose_a: bool,
                 conjugate_a: bool, unit_diagonal: bool) -> ShapedArray:
    check_kinds("triangular_solve", (INEXACT, INEXACT), (a, b))
    check_same_dtypes("triangular_solve", a, b)
    if a.ndim < 2:
        raise TypeError("Input 0 to triangular_solve must have rank at least 2, but got "
                        f"shape={a.shape}")
    n = check_square("first input to triangular_solve", a)
    if a.ndim != b.ndim:
        raise TypeError("All inputs to triangular_solve must have the same number of batch "
                        f"dimensions, but got {[a.ndim - 2, b.ndim - 2]} batch dimensions for the "
                        "inputs.")
    if a.shape[:-2] != b.shape[:-2] or b.shape[-2 if left_side else -1] != n:
        raise ValueError("Incompatible shapes for arguments to triangular_solve: "
                         f"{a.shape} and {b.shape}.")
    return ShapedArray(b.shape, b.dtype)


def _solve_jvp(primals: Values, tangents: Tangents, **params: bool) -> tuple[Value, Tangent]:
    # op(a) x = b gives op(a) dx = db - op(da) x, where da counts in its triangle only
    (a, b), (da, db) = primals, tangents
    x = triangular_solve_p.bind(a, b, **params)
    right = db
    if type(da) is not Zero:
        offset = 1 if params["unit_diagonal"] else 0
        da = lower_triangle(da, -offset) if params["lower"] else upper_triangle(da, offset)
        da = transposed(da) if params["transpose_a"] else da
        da = lax.neg(conjugate(da) if params["conjugate_a"] else da)
        right = add_tangents(db, product(da, x) if params["left_side"] else product(x, da))
    return x, triangular_solve_p.bind(a, right, **params)


def _solve_transpose(ct: Tangent, a: Operand, b: Operand, *, transpose_a: bool, **params: Any
                     ) -> Any:
    return [None, triangular_solve_p.bind(a, ct, transpose_a=not transpose_a, **params)]


def _solve_batch(operands: Values, dims: Dims, *, left_side: bool, **params: Any
                 ) -> tuple[Value, int]:
    (a, b), (a_dim, b_dim) = operands, dims
    if a_dim is None:  # the right-hand sides of all examples are columns for one matrix
        return _batch_sides(a, b, b_dim, left_side, params)
    size = get_aval(a).shape[a_dim]
    a, b = at_front(a, a_dim, size), at_front(b, b_dim, size)
    return triangular_solve_p.bind(a, b, left_side=left_side, **params), 0


def _batch_sides(a: Value, b: Value, b_dim: int | None, left_side: bool, params: Any
                 ) -> tuple[Value, int]:
    assert b_dim is not None
    # the batch axis goes next to that of the columns (of the rows, on the right side)
    place = get_aval(b).ndim - (2 if left_side else 3)
    b = moveaxis(b, b_dim, place)
    x = triangular_solve_p.bind(a, axes_in_one(b, place), left_side=left_side, **params)
    return lax.reshape(x, get_aval(b).shape), place


def _by_substitution(a: Value, b: Value, *, left_side: bool, lower: bool, transpose_a: bool,
                     conjugate_a: bool, unit_diagonal: bool) -> Value:
    """One row of x after the other, or column where it stands on the left."""
    n, axis = get_aval(a).shape[-1], get_aval(b).ndim - (2 if left_side else 1)
    a = conjugate(a) if conjugate_a else a
    turned = transpose_a == left_side  # element [i, j] stands at [j, i]
    found: dict[int, Value] = {}
    for i in range(n) if lower != turned else reversed(range(n)):
        total = lax.slice_in_dim(b, i, i + 1, axis=axis)
        for j, x in found.items():
            total = minus_product(total, element(a, j, i) if turned else element(a, i, j), x)
        found[i] = total if unit_diagonal else lax.div(*alike(total, element(a, i, i)))
    return lax.concatenate([found[i] for i in range(n)], axis)


triangular_solve_p = register(Primitive(
    "triangular_solve", arithmetic=TRIANGULAR_SOLVE,
    unrolled=of_few_rows("triangular_solve", _by_substitution),
    sharding_rule=along_batch(2),
    shape_rule=_solve_shape, jvp=_solve_jvp, transpose=_solve_transpose, batch=_solve_batch,
    linear=LAST, asked=True,
))


def triangular_solve(a: ArrayLike, b: ArrayLike, *, left_side: bool = False, lower: bool = False,
                     transpose_a: bool = False, conjugate_a: bool = False,
                     unit_diagonal: bool = False) -> Array:
    """Solve op(a) x = b, or x op(a) = b, for x, where the matrix `a` is triangular.

    Only the triangle of `a` is read. No pivot is checked: a zero on the diagonal gives infinities
    and NaNs.

    Args:
      a: `[..., n, n]`, of a floating or complex dtype.
      b: `[..., n, k]` on the left side, `[..., k, n]` on the right one; or without the axis of k.
      left_side: whether op(a) stands on the left of x.
      lower: whether `a` is lower triangular, else upper.
      transpose_a: whether op transposes.
      conjugate_a: whether op conjugates.
      unit_diagonal: whether to take the diagonal of `a`, which is not read then, as ones.

    Returns:
      x, of the shape and dtype of `b`.

    Raises:
      TypeError: the dtypes differ or are not inexact, or the numbers of batch axes differ.
      ValueError: `a` is not square, or the shapes do not fit.

    >>> import pyjx as jax
    >>> a, b = jax.numpy.array([[2.0, 0.0], [1.0, 1.0]]), jax.numpy.array([2.0, 3.0])
    >>> jax.lax.linalg.triangular_solve(a, b, left_side=True, lower=True).tolist()
    [1.0, 2.0]
    """
    a, b = operand("triangular_solve", a), operand("triangular_solve", b, 1)
    conjugate_a = bool(conjugate_a) and is_complex(a)
    vector = get_aval(b).ndim == get_aval(a).ndim - 1
    axis = get_aval(b).ndim if left_side else get_aval(b).ndim - 1
    if vector:
        b = lax.expand_dims(b, (axis,))
    x = triangular_solve_p.bind(
        a, b, left_side=bool(left_side), lower=bool(lower), transpose_a=bool(transpose_a),
        conjugate_a=conjugate_a, unit_diagonal=bool(unit_diagonal))
    return lax.squeeze(x, (axis,)) if vector else x


# -- Cholesky factors ------------------------------------------------------------------------------


@weak_as_operands
def _cholesky_shape(x: ShapedArray) -> ShapedArray:
    check_rows_as_columns("linalg.cholesky", x)
    check_operands("cholesky", (x,), (2,))
    return ShapedArray(x.shape, x.dtype)


def _cholesky_jvp(primals: Values, tangents: Values) -> tuple[Value, Tangent]:
    # dL = L P(L^-1 dA L^-H), where P keeps the lower triangle and half of the diagonal
    # (Murray, Differentiation of the Cholesky decomposition, 2016, eq. 8). Only the lower triangle
    # of A is read.
    (x,), (dx,) = primals, tangents
    half = half_lower_triangle(dx)
    dx = lax.add(half, adjoint(half))
    factor = cholesky_p.bind(x)
    inner = triangular_solve(factor, dx, left_side=False, lower=True, transpose_a=True,
                             conjugate_a=True)
    inner = triangular_solve(factor, inner, left_side=True, lower=True)
    return factor, product(factor, half_lower_triangle(inner))


def _by_columns(x: Value) -> Value:
    """Each column less its part along those before it, scaled (Golub and Van Loan, 4.2.5)."""
    n = get_aval(x).shape[-1]
    columns: list[Value] = []
    positive: Value = True
    for j in range(n):
        column = part(x, (j, n), (j, j + 1))
        for k, before in enumerate(columns):
            rest = part(before, (j - k, n - k), (0, 1))
            column = minus_product(column, rest, conjugate(element(rest, 0, 0)))
        pivot = real_part(element(column, 0, 0))
        found = lax.gt(pivot, lax.full_like(pivot, 0))
        positive = lax.bitwise_and(positive, found) if j else found
        root = cast(lax.sqrt(pivot), get_aval(x).dtype)
        below = lax.div(*alike(part(column, (1, n - j), (0, 1)), root))
        columns.append(lax.concatenate([root, below], get_aval(x).ndim - 2))
    whole = [lax.pad(c, np.zeros((), get_aval(x).dtype)[()],
                     [*[(0, 0, 0)] * (get_aval(x).ndim - 2), (j, 0, 0), (0, 0, 0)])
             for j, c in enumerate(columns)]
    factor = lax.concatenate(whole, get_aval(x).ndim - 1)
    return lower_triangle(choose(positive, factor, lax.full_like(factor, np.nan)))


cholesky_p = register(Primitive("cholesky", arithmetic=CHOLESKY,
                                sharding_rule=along_batch(2),
                                unrolled=of_few_rows("cholesky", _by_columns),
                                shape_rule=_cholesky_shape, jvp=_cholesky_jvp))
define_leading(cholesky_p)


def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array:
    """The Cholesky decomposition: the lower triangular L with L L^H = x.

    Args:
      x: Hermitian positive definite matrices, `[..., n, n]`; integers become floats.
      symmetrize_input: whether to take (x + x^H) / 2 for `x`. If not, only its lower triangle is
        read.

    Returns:
      L, with zeros above the diagonal; NaN for a matrix that is not positive definite.

    Raises:
      ValueError: the matrices are not square.
      TypeError: the dtype is not float32, float64, complex64 or complex128.

    >>> import pyjx as jax
    >>> jax.lax.linalg.cholesky(jax.numpy.array([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    x = inexact_operand("cholesky", x)
    if symmetrize_input and get_aval(x).ndim > 1:
        _cholesky_shape(get_aval(x))
        x = symmetrized(x)
    return cholesky_p.bind(x)


# -- updates ---------------------------------------------------------------------------------------


@weak_as_operands
def _update_shape(r: ShapedArray, w: ShapedArray) -> ShapedArray:
    check_operands("cholesky_update", (r, w), (2, 1), real=True)
    for i, (aval, rank) in enumerate(((r, 2), (w, 1))):
        if aval.ndim != rank:
            raise TypeError(f"Input {i} to cholesky_update must have a rank of exactly {rank}, but "
                            f"got shape={aval.shape}")
    if r.shape != w.shape * 2:
        raise ValueError("Rank-1 update to Cholesky decomposition takes a square matrix and a "
                         f"vector of the same size as inputs. Got shapes {r.shape} and {w.shape}.")
    return ShapedArray(r.shape, r.dtype)


def _rotated(r: Any, w: Any) -> Array:
    """Rotate each row of R with w so that the element of w below the diagonal vanishes."""
    n = get_aval(w).shape[0]
    zero, one = (np.asarray(x, get_aval(w).dtype)[()] for x in (0, 1))

    def rotate(k: ArrayLike, state: tuple[Any, Any]) -> tuple[Any, Any]:
        r, w = state
        row = lax.dynamic_index_in_dim(r, k, 0, keepdims=False)
        a = lax.dynamic_index_in_dim(row, k, 0, keepdims=False)
        b = lax.dynamic_index_in_dim(w, k, 0, keepdims=False)
        length = lax.sqrt(lax.add(lax.mul(a, a), lax.mul(b, b)))
        still = lax.eq(length, zero)
        safe = lax.select(still, one, length)
        cosine, sine = lax.select(still, one, lax.div(a, safe)), lax.div(b, safe)
        c, s = (lax.broadcast_in_dim(x, (n,), ()) for x in (cosine, sine))
        new = lax.add(lax.mul(c, row), lax.mul(s, w))
        w = lax.sub(lax.mul(c, w), lax.mul(s, row))
        return lax.dynamic_update_index_in_dim(r, new, k, 0), w

    return lax.fori_loop(np.int32(0), np.int32(n), rotate, (r, w))[0] if n else r


cholesky_update_p = register(Primitive("cholesky_update", shape_rule=_update_shape,
                                       decomposition=_rotated))


def cholesky_update(r_matrix: Any, w_vector: Any) -> Array:
    """The Cholesky factor after a change of rank one: the upper triangular R' with
    R'^T R' = R^T R + w w^T, in n rotations (Golub and Van Loan, Matrix Computations, 6.5.4).

    Args:
      r_matrix: R, an upper triangular matrix `[n, n]` of float32 or float64.
      w_vector: w, `[n]`, of the same dtype.

    Returns:
      R', `[n, n]`.

    Raises:
      TypeError: the dtypes differ or are others, or the ranks are.
      ValueError: the matrix is not square, or the vector of another size.

    >>> import pyjx as jax
    >>> r, w = jax.numpy.diag(jax.numpy.array([3.0, 1.0])), jax.numpy.array([4.0, 0.0])
    >>> jax.lax.linalg.cholesky_update(r, w).tolist()
    [[5.0, 0.0], [0.0, 1.0]]
    """
    return cholesky_update_p.bind(operand("cholesky_update", r_matrix),
                                  operand("cholesky_update", w_vector, 1))


# -- symmetric updates -----------------------------------------------------------------------------


@weak_as_operands
def _shape(a: ShapedArray, c: ShapedArray, *, alpha: float, beta: float) -> ShapedArray:
    check_operands("symmetric_product", (a, c), (2, 2), real=True)
    n = a.shape[-2]
    if c.shape[-2:] != (n, n):
        raise ValueError("symmetric_update expects a rectangular matrix of shape (n, m) and a "
                         f"square matrix of shape (n, n). Got shapes {a.shape} and {c.shape}.")
    return ShapedArray(c.shape, c.dtype)


def _by_products(a: ArrayLike, c: ArrayLike, *, alpha: float, beta: float) -> Any:
    dtype = get_aval(a).dtype
    out = lax.mul(product(a, transposed(a)), np.asarray(alpha, dtype)[()])
    return out if beta == 0 else lax.add(out, lax.mul(c, np.asarray(beta, dtype)[()]))


symmetric_product_p = register(Primitive("symmetric_product", shape_rule=_shape,
                                         decomposition=_by_products))


def symmetric_product(a_matrix: Any, c_matrix: Any, *, alpha: float = 1.0, beta: float = 0.0,
                      symmetrize_output: bool = False) -> Array:
    """alpha a a^T + beta c.

    Args:
      a_matrix: `[..., n, m]`, of float32 or float64.
      c_matrix: symmetric, `[..., n, n]`, of the same dtype.
      alpha, beta: numbers.
      symmetrize_output: whether to take the lower triangle of the result for both.

    Raises:
      TypeError: the dtypes differ or are others.
      ValueError: the shapes do not fit.

    >>> import pyjx as jax
    >>> a = jax.numpy.array([[1.0], [2.0]])
    >>> jax.lax.linalg.symmetric_product(a, jax.numpy.eye(2), beta=1.0).tolist()
    [[2.0, 2.0], [2.0, 5.0]]
    """
    out = symmetric_product_p.bind(
        operand("symmetric_product", a_matrix), operand("symmetric_product", c_matrix, 1),
        alpha=float(alpha), beta=float(beta))
    if not symmetrize_output:
        return out
    return lax.add(lower_triangle(out), upper_triangle(transposed(out), 1))
