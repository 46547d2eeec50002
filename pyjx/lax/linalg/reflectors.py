"""QR decomposition, and products of the Householder reflections that it is made of."""

from __future__ import annotations

from functools import partial, reduce
from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core import dtypes
from pyjx.core.arithmetic import QR, REFLECTED, REFLECTORS
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.explicit import along_batch
from pyjx.core.primitive import Primitive, register
from pyjx.engine.primitives import cast
from pyjx.engine.tangents import Zero
from pyjx.engine.types import Tangents, Value, Values
from pyjx.lax.common import operand
from pyjx.lax.linalg.general_systems import lu, solve
from pyjx.lax.linalg.matrices import (
    adjoint,
    by_columns,
    check_operands,
    conjugate,
    corner,
    define_leading,
    elements,
    identity_like,
    is_complex,
    lower_triangle,
    of_elements,
    of_few_rows,
    product,
    spread_rows,
    typed,
    upper_triangle,
    weak_as_operands,
)
from pyjx.lax.linalg.triangular import triangular_solve

_INT = np.dtype(np.int32)

# -- reflections -----------------------------------------------------------------------------------


@weak_as_operands
def _geqrf_shape(x: ShapedArray) -> list[ShapedArray]:
    check_operands("qr", (x,), (2,))
    m, n = x.shape[-2:]
    return [typed(x, m, n), typed(x, min(m, n))]


@weak_as_operands
def _geqp3_shape(x: ShapedArray, order: ShapedArray, *, use_magma: bool | None
                 ) -> list[ShapedArray]:
    packed, taus = _geqrf_shape(x)
    return [packed, typed(x, x.shape[-1], dtype=_INT), taus]


# -- of few rows and columns -----------------------------------------------------------------------


def _reflect(rows: list[list[Value]], k: int) -> Value:
    """Reflect the rows from k on so that column k is zero below the diagonal, where the vector of
    the reflection stands then; its scale. Signs and what needs no reflection are as LAPACK's."""
    head, *below = [row[k] for row in rows[k:]]
    if not below and not is_complex(head):
        return lax.full_like(head, 0)
    parts = [y for x in (head, *below) for y in ([lax.real(x), lax.imag(x)] if is_complex(x)
                                                 else [x])]
    zero, one = lax.full_like(parts[0], 0), lax.full_like(parts[0], 1)
    under = reduce(lax.max, map(lax.abs, parts[1:]))
    none = lax.eq(under, zero)
    # Scaled, so that no square overflows.
    size = lax.select(none, one, lax.max(lax.abs(parts[0]), under))
    head, *below = [_divided(x, size) for x in (head, *below)]
    length = lax.sqrt(reduce(lax.add, [lax.square(lax.div(y, size)) for y in parts]))
    bits = lax.bitcast_convert_type(parts[0], np.dtype(f"i{get_aval(zero).dtype.itemsize}"))
    negative = lax.lt(bits, lax.full_like(bits, 0))
    length = lax.select(none, one, lax.select(negative, length, lax.neg(length)))
    tall = cast(length, get_aval(head).dtype)
    first = lax.sub(head, tall)
    tau = _or_zero(none, _divided(lax.sub(tall, head), length))
    square = lax.add(lax.square(lax.real(first)), lax.square(lax.imag(first))) if is_complex(
        first) else first
    vector = [_or_zero(none, _divided(lax.mul(x, conjugate(first)) if is_complex(x) else x, square))
              for x in below]
    on_diagonal = cast(lax.select(  # an infinite column is as long
        lax.eq(size, lax.full_like(size, np.inf)), lax.select(negative, size, lax.neg(size)),
        lax.mul(length, size)), get_aval(head).dtype)
    for row, x in zip(rows[k:], [lax.select(none, rows[k][k], on_diagonal), *vector],
                      strict=True):
        row[k] = x
    for j in range(k + 1, len(rows[0])):
        column = _reflected_column([row[j] for row in rows[k:]], vector, conjugate(tau), none)
        for row, x in zip(rows[k:], column, strict=True):
            row[j] = x
    return tau


def _divided(x: Value, by: Value) -> Value:
    """Numbers divided by real ones."""
    return lax.complex(lax.div(lax.real(x), by), lax.div(lax.imag(x), by)) if is_complex(x) \
        else lax.div(x, by)


def _or_zero(zero: Value, x: Value) -> Value:
    return lax.select(zero, lax.full_like(x, 0), x)


def _reflected_column(column: list[Value], vector: list[Value], tau: Value, none: Value
                      ) -> list[Value]:
    """A column by I - tau v v^H, where `vector` is v without its first element, which is 1."""
    head, *below = column
    along = reduce(lax.add, [lax.mul(conjugate(v), x) for v, x in zip(vector, below, strict=True)],
                   head)
    along = _or_zero(none, lax.mul(tau, along))
    return [lax.sub(head, along), *[lax.sub(x, lax.mul(v, along))
                                    for v, x in zip(vector, below, strict=True)]]


def _product_by_elements(a: Value, taus: Value) -> Value:
    """The last reflection first, as it turns what is left of the unit matrix."""
    m, n = get_aval(a).shape[-2:]
    given, axis = elements(a), get_aval(a).ndim - 2
    zero, one = lax.full_like(given[0][0], 0), lax.full_like(given[0][0], 1)
    rows: list[list[Value]] = [[one if i == j else zero for j in range(n)] for i in range(m)]
    for k in reversed(range(get_aval(taus).shape[-1])):
        tau = lax.expand_dims(lax.slice_in_dim(taus, k, k + 1, axis=axis), (axis,))
        none = lax.eq(tau, lax.full_like(tau, 0))
        vector = [row[k] for row in given[k + 1:]]
        for j in range(k + 1, n):
            column = _reflected_column([row[j] for row in rows[k:]], vector, tau, none)
            for row, x in zip(rows[k:], column, strict=True):
                row[j] = x
        rows[k][k] = lax.sub(one, tau)
        for row, v in zip(rows[k + 1:], vector, strict=True):
            row[k] = lax.neg(_or_zero(none, lax.mul(tau, v)))
    return of_elements(rows)


# LAPACK's parts of the decomposition, without and with exchanges of columns.
geqrf_p = register(Primitive("geqrf", arithmetic=REFLECTORS,
                             sharding_rule=along_batch(2),
                             shape_rule=_geqrf_shape, multiple_results=True, unrolled=of_few_rows(
                                 "qr", partial(by_columns, column=_reflect), several=True)))
geqp3_p = register(Primitive("geqp3", arithmetic=REFLECTORS,
                             sharding_rule=along_batch(2),
                             shape_rule=_geqp3_shape, multiple_results=True))


@weak_as_operands
def _householder_shape(a: ShapedArray, taus: ShapedArray) -> ShapedArray:
    check_operands("householder_product", (a, taus), (2, 1))
    m, n = a.shape[-2:]
    if m < n:
        raise ValueError("The first argument to householder_product must have at least as many "
                         f"rows as columns, got shape {(m, n)}")
    if taus.shape[-1] > min(m, n):
        raise ValueError("The second argument to householder_product must not have more rows than "
                         "the minimum of the first argument's rows and columns.")
    return ShapedArray(a.shape, a.dtype)


householder_product_p = register(Primitive("householder_product", arithmetic=REFLECTORS,
                                           unrolled=of_few_rows("qr", _product_by_elements),
                                           sharding_rule=along_batch(2),
                                           shape_rule=_householder_shape))

for _p in (geqrf_p, geqp3_p, householder_product_p):
    define_leading(_p)


def householder_product(a: ArrayLike, taus: ArrayLike) -> Array:
    """The product of Householder reflections H_1 H_2 ... H_k, or its first columns.

    H_i is I - tau_i v_i v_i^H, where v_i is zero above element i, 1 there, and column i of `a`
    below.

    Args:
      a: `[..., m, n]` with m >= n.
      taus: `[..., k]` with k <= n.

    Returns:
      The first n columns of the product, `[..., m, n]`.

    Raises:
      TypeError: the dtypes differ or are none of float32, float64, complex64 and complex128.
      ValueError: there are more columns than rows, or more scales than columns.

    >>> import pyjx as jax
    >>> a, taus = jax.numpy.array([[1.0], [1.0]]), jax.numpy.array([1.0])
    >>> jax.lax.linalg.householder_product(a, taus).tolist()
    [[0.0], [-1.0]]
    """
    return householder_product_p.bind(operand("householder_product", a),
                                      operand("householder_product", taus, 1))


# -- qr --------------------------------------------------------------------------------------------


@weak_as_operands
def _qr_shape(x: ShapedArray, *, pivoting: bool, full_matrices: bool, use_magma: bool | None
              ) -> list[ShapedArray]:
    check_operands("qr", (x,), (2,))
    m, n = x.shape[-2:]
    k = m if full_matrices else min(m, n)
    out = [typed(x, m, k), typed(x, k, n)]
    return [*out, typed(x, n, dtype=_INT)] if pivoting else out


def _by_reflections(x: Value, *, pivoting: bool, full_matrices: bool, use_magma: bool | None
                    ) -> Values:
    *batch, m, n = get_aval(x).shape
    order: list[Value] = []
    if pivoting:
        free = lax.full((*batch, n), 0, _INT)
        packed, places, taus = geqp3_p.bind(x, free, use_magma=use_magma)
        order = [places]
    else:
        packed, taus = geqrf_p.bind(x)
    k = m if full_matrices else min(m, n)
    if m < n:
        q = householder_product(corner(packed, m, m), taus)
    elif full_matrices and m > n:
        q = householder_product(_with_zero_columns(packed, m - n), taus)
    else:
        q = householder_product(packed, taus)
    return [q, upper_triangle(corner(packed, k, n)), *order]


def _qr_jvp(primals: Values, tangents: Values, **params: Any) -> tuple[Values, Tangents]:
    # With B = Q^H dA and C = B1 R1^-1, of the first min(m, n) columns: dQ = Q W and dR = B - W R,
    # where W is the skew matrix with C's elements below the diagonal, and the imaginary part of
    # those on it. A Q with fewer columns than rows has what leaves their space besides,
    # (dA1 - Q B1) R1^-1 (Roberts and Roberts, QR and LQ decomposition matrix backpropagation
    # algorithms for square, wide, and deep matrices, 2020).
    (x,), (dx,) = primals, tangents
    q, r, *order = qr_p.bind(x, **params)
    m, n = get_aval(x).shape[-2:]
    k, p = min(m, n), get_aval(q).shape[-1]
    if order:
        dx = _columns_in_order(dx, order[0])
    turned = product(adjoint(q), dx)
    square = corner(r, k, k)
    first = corner(turned, p, k)
    inner = triangular_solve(square, first)
    below = _with_zero_columns(lower_triangle(inner, -1), p - k)
    skew = lax.sub(below, adjoint(below))
    if is_complex(x):
        phases = lax.mul(identity_like(inner), inner)
        phases = lax.mul(lax.sub(phases, conjugate(phases)), np.asarray(0.5, get_aval(x).dtype)[()])
        skew = lax.add(skew, _with_zero_columns(phases, p - k))
    dq = product(q, skew)
    if m > p:
        outside = lax.sub(corner(dx, m, k), product(q, first))
        dq = lax.add(dq, triangular_solve(square, outside))
    elif p > k > 0:
        dq = _with_outer_columns(q, dq, k)
    dr = upper_triangle(lax.sub(turned, product(skew, r)))
    return [q, r, *order], [dq, dr, *[Zero.of_primal(places) for places in order]]


def _with_outer_columns(q: Value, dq: Value, k: int) -> Array:
    """`dq` with the derivative of the columns of Q that no column of R stands for.

    Q is I - V T V^H, where the columns of V are the reflections' vectors and T is triangular. So
    with Q = (Q1 Q2) = (Q11 Q12; Q21 Q22), E = (I; 0) and X = (I - Q11)^-H Q21^H these columns are
    Q2 = (0; I) + (E - Q1) X, a function of the first ones. Where a reflection is none, I - Q11 is
    singular, and they stay as they are.
    """
    q1, d1, outer = _columns(q, 0, k), _columns(dq, 0, k), _columns(dq, k)
    step = lax.sub(identity_like(q1), q1)
    matrix = adjoint(_rows(step, 0, k))
    pivots = lax.abs(lax.mul(lu(lax.stop_gradient(matrix))[0], identity_like(matrix)))
    least = lax.reduce_min(lax.reduce_sum(pivots, (get_aval(q).ndim - 1,)), (get_aval(q).ndim - 2,))
    eps = float(dtypes.finfo(get_aval(least).dtype).eps)
    regular = lax.gt(least, lax.full_like(least, eps ** 0.5))
    matrix = lax.select(_spread(regular, matrix), matrix, identity_like(matrix))
    x = solve(matrix, adjoint(_rows(q1, k)))
    dx = solve(matrix, lax.add(adjoint(_rows(d1, k)), product(adjoint(_rows(d1, 0, k)), x)))
    moved = lax.sub(product(step, dx), product(d1, x))
    return lax.concatenate([d1, lax.select(_spread(regular, outer), moved, outer)],
                           get_aval(q).ndim - 1)


def _rows(x: Value, start: int, stop: int | None = None) -> Array:
    return lax.slice_in_dim(x, start, stop, axis=-2)


def _columns(x: Value, start: int, stop: int | None = None) -> Array:
    return lax.slice_in_dim(x, start, stop, axis=-1)


def _spread(flags: Value, like: Value) -> Array:
    """A flag for each matrix as one for each element."""
    shape = get_aval(like).shape
    return lax.broadcast_in_dim(flags, shape, range(len(shape) - 2))


def _with_zero_columns(x: Array, count: int) -> Array:
    """Matrices with so many columns of zeros behind their own."""
    if not count:
        return x
    aval = get_aval(x)
    padding = [(0, 0, 0)] * (aval.ndim - 1) + [(0, count, 0)]
    return lax.pad(x, np.zeros((), aval.dtype)[()], padding)


def _columns_in_order(x: Value, order: Value) -> Array:
    """The columns of matrices at positions `[..., n]`, by a product with a permutation."""
    *batch, _, n = get_aval(x).shape
    rows = lax.broadcasted_iota(_INT, (*batch, n, n), len(batch))
    chosen = lax.eq(rows, spread_rows(order, (*batch, n, n)))
    return product(x, lax.convert_element_type(chosen, get_aval(x).dtype))


qr_p = register(Primitive("qr", arithmetic=QR,
                          sharding_rule=along_batch(2),
                          shape_rule=_qr_shape, multiple_results=True, jvp=_qr_jvp,
                          decomposition=_by_reflections))
define_leading(qr_p)


def qr(x: ArrayLike, *, pivoting: bool = False, full_matrices: bool = True,
       use_magma: bool | None = None) -> tuple[Array, ...]:
    """The QR decomposition x = Q R, with Q unitary and R upper triangular.

    Args:
      x: matrices `[..., m, n]`, real or complex.
      pivoting: whether to exchange columns so that the diagonal of R decreases; not on TPU.
      full_matrices: whether Q is `[..., m, m]` and R `[..., m, n]`; else they have min(m, n)
        columns and rows.
      use_magma: on GPU, whether MAGMA computes the decomposition with pivoting.

    Returns:
      (q, r), and with `pivoting` the order p of columns, int32 `[..., n]`: `x[:, p] = q r`.

    Raises:
      TypeError: the dtype is not float32, float64, complex64 or complex128, or the rank below 2.

    >>> import pyjx as jax
    >>> q, r = jax.lax.linalg.qr(jax.numpy.array([[0.0, 1.0], [2.0, 3.0]]))
    >>> jax.numpy.abs(r).tolist()
    [[2.0, 3.0], [0.0, 1.0]]
    """
    return tuple(qr_p.bind(operand("qr", x), pivoting=bool(pivoting),
                           full_matrices=bool(full_matrices), use_magma=use_magma))


# -- products with Q -------------------------------------------------------------------------------


@weak_as_operands
def _ormqr_shape(a: ShapedArray, taus: ShapedArray, c: ShapedArray, *, left: bool, transpose: bool
                 ) -> ShapedArray:
    check_operands("ormqr", (a, taus, c), (2, 1, 2))
    m = a.shape[-2]
    if c.shape[-2 if left else -1] != m:
        which = "rows" if left else "columns"
        raise ValueError(
            f"ormqr with {left=} expects c to have the same number of {which} as the Householder "
            f"matrix a has rows. Got a shape {a.shape} and c shape {c.shape}.")
    if taus.shape[-1] > min(a.shape[-2:]):
        raise ValueError("ormqr expects at most as many scales as the Householder matrix a has "
                         f"rows and columns. Got a shape {a.shape} and taus shape {taus.shape}.")
    return ShapedArray(c.shape, c.dtype)


def _reflected(a: Value, taus: Value, c: Value, *, left: bool, transpose: bool) -> Array:
    """The product with Q as a matrix."""
    m, n = get_aval(a).shape[-2:]
    q = householder_product(_with_zero_columns(corner(a, m, min(m, n)), max(m - n, 0)), taus)
    q = adjoint(q) if transpose else q
    return product(q, c) if left else product(c, q)


ormqr_p = register(Primitive("ormqr", arithmetic=REFLECTED, shape_rule=_ormqr_shape,
                             decomposition=_reflected))
define_leading(ormqr_p)


def ormqr(a: ArrayLike, taus: ArrayLike, c: ArrayLike, *, left: bool = True, transpose: bool = False
         ) -> Array:
    """The product of `c` with the unitary matrix Q of a QR decomposition, without making Q.

    Args:
      a, taus: Q as reflections, as for `householder_product`: `[..., m, k]` and `[..., k]`.
      c: `[..., m, n]` on the left side, `[..., n, m]` on the right one.
      left: whether Q stands on the left of `c`.
      transpose: whether to take the conjugate transpose of Q.

    Returns:
      The product, of the shape of `c`.

    Raises:
      TypeError: the dtypes differ or are none of float32, float64, complex64 and complex128.
      ValueError: the shapes do not fit.

    >>> import pyjx as jax
    >>> a, taus = jax.numpy.array([[1.0], [1.0]]), jax.numpy.array([1.0])
    >>> jax.lax.linalg.ormqr(a, taus, jax.numpy.eye(2)).tolist()
    [[0.0, -1.0], [-1.0, 0.0]]
    """
    return ormqr_p.bind(operand("ormqr", a), operand("ormqr", taus, 1), operand("ormqr", c, 2),
                        left=bool(left), transpose=bool(transpose))
