"""LU decomposition with exchanges of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core import dtypes
from pyjx.core.arithmetic import of_matrix
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.explicit import along_batch
from pyjx.core.integers import as_int
from pyjx.core.jaxpr import JaxprEqn
from pyjx.core.primitive import Primitive, Unrolled, register
from pyjx.engine.rules import jvp_zero
from pyjx.engine.tangents import Zero
from pyjx.engine.types import Tangents, Value, Values
from pyjx.lax.common import operand
from pyjx.lax.linalg.matrices import (
    FEW,
    batch_leading,
    check_operands,
    choose,
    corner,
    elements,
    identity_like,
    is_complex,
    kept,
    lower_triangle,
    minus_product,
    of_elements,
    of_few_rows,
    product,
    take_rows,
    typed,
    upper_triangle,
    weak_as_operands,
)
from pyjx.lax.linalg.triangular_systems import triangular_solve
from pyjx.lax.sorting import take_along

_INT = np.dtype(np.int32)

# -- pivots ----------------------------------------------------------------------------------------


@weak_as_operands
def _permutation_shape(pivots: ShapedArray, *, permutation_size: int) -> ShapedArray:
    if pivots.dtype != _INT:
        raise TypeError("lu_pivots_to_permutation does not accept dtype "
                        f"{dtypes.name(pivots.dtype)} at position 0. Accepted dtypes at position "
                        "0 are subtypes of int32.")
    if pivots.ndim < 1:
        raise TypeError("Input 0 to lu_pivots_to_permutation must have rank at least 1, but got "
                        f"shape={pivots.shape}")
    if permutation_size < pivots.shape[-1]:
        raise ValueError(f"Output permutation size {permutation_size} has to exceed the trailing "
                         f"dimension of the pivots. Got pivots size {pivots.shape[-1]}")
    return ShapedArray((*pivots.shape[:-1], permutation_size), _INT)


def _exchanged(pivots: Value, *, permutation_size: int) -> Array:
    """Start with the rows in order and do one exchange after the other."""
    *batch, steps = get_aval(pivots).shape
    shape = (*batch, permutation_size)
    axis = len(batch)
    rows = lax.broadcasted_iota(_INT, shape, axis)
    if not steps or 0 in shape:
        return rows

    def exchange(step: Any, order: Any) -> Any:
        there = lax.dynamic_slice_in_dim(pivots, step, 1, axis)
        mine = lax.dynamic_slice_in_dim(order, step, 1, axis)
        other = take_along(order, there, axis)
        order = lax.select(lax.eq(rows, lax.broadcast_in_dim(there, shape, range(axis + 1))),
                           lax.broadcast_in_dim(mine, shape, range(axis + 1)), order)
        return lax.dynamic_update_slice_in_dim(order, other, step, axis)

    if type(steps) is not int:
        return lax.fori_loop(0, steps, exchange, rows)
    return lax.fori_loop(np.int32(0), np.int32(steps), exchange, rows)


def exchange(rows: list[list[Value]], k: int, other: Value) -> None:
    """Exchange row k, which is a list of its elements, for one behind whose number is `other`."""
    top = rows[k]
    for i in range(k + 1, len(rows)):
        here = lax.eq(other, lax.full_like(other, i))
        top, rows[i] = ([choose(here, x, y) for x, y in zip(*pair, strict=True)]
                        for pair in ((rows[i], top), (rows[k], rows[i])))
    rows[k] = top


def _exchanged_one_by_one(pivots: Value, *, permutation_size: int) -> Value:
    axis = get_aval(pivots).ndim - 1
    steps = [lax.slice_in_dim(pivots, k, k + 1, axis=axis) for k in range(
        get_aval(pivots).shape[-1])]
    rows: list[list[Value]] = [[lax.full_like(steps[0], i)] for i in range(permutation_size)]
    for k, other in enumerate(steps):
        exchange(rows, k, other)
    return lax.concatenate([row for row, in rows], axis)


def _are_few(eqn: JaxprEqn, repeated: int) -> bool:
    size, steps = eqn.params["permutation_size"], eqn.invars[0].aval.shape[-1]
    return type(size) is int and type(steps) is int and 0 < steps <= size <= FEW["lu"][repeated > 0]


lu_pivots_to_permutation_p = register(Primitive(
    "lu_pivots_to_permutation", sharding_rule=along_batch(1),
    unrolled=Unrolled(_are_few, _exchanged_one_by_one),
    shape_rule=_permutation_shape, decomposition=_exchanged))
lu_pivots_to_permutation_p.define(
    jvp=jvp_zero(lu_pivots_to_permutation_p), batch=batch_leading(lu_pivots_to_permutation_p))


def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
    """The permutation of rows that a sequence of exchanges makes.

    Args:
      pivots: int32 `[..., k]`: row i was exchanged with row `pivots[i]`, for i = 0, 1, ... in turn.
      permutation_size: the number of rows.

    Returns:
      int32 `[..., permutation_size]`: which row of the matrix before is at each place after.

    Raises:
      TypeError: the pivots are not int32.
      ValueError: there are more pivots than rows.

    >>> import pyjx as jax
    >>> jax.lax.linalg.lu_pivots_to_permutation(jax.numpy.array([2, 2]), 3).tolist()
    [2, 0, 1]
    """
    size = as_int("lu_pivots_to_permutation", "permutation_size", permutation_size)
    return lu_pivots_to_permutation_p.bind(operand("lu_pivots_to_permutation", pivots),
                                           permutation_size=size)


# -- factors ---------------------------------------------------------------------------------------


@weak_as_operands
def _getrf_shape(x: ShapedArray) -> list[ShapedArray]:
    check_operands("lu", (x,), (2,))
    m, n = x.shape[-2:]
    return [typed(x, m, n), typed(x, min(m, n), dtype=_INT)]


@weak_as_operands
def _lu_shape(x: ShapedArray) -> list[ShapedArray]:
    return [*_getrf_shape(x), typed(x, x.shape[-2], dtype=_INT)]


def _factors_and_permutation(x: Value) -> list[Value]:
    factors, pivots = getrf_p.bind(x)
    return [factors, pivots, lu_pivots_to_permutation(pivots, get_aval(x).shape[-2])]


def _lu_jvp(primals: Values, tangents: Values) -> tuple[Values, Tangents]:
    # P A = L U. The first min(m, n) rows and columns give F = L1^-1 P dA1 U1^-1, and with its
    # triangles it is dU = triu(F) U, dL = P dA U^-1 - L triu(F) where m >= n, and
    # dL = L tril(F, -1), dU = L^-1 P dA - tril(F, -1) U elsewhere (de Hoog, Anderssen and Lukas,
    # Differentiation of matrix functionals using triangular factorization, 2011).
    (x,), (dx,) = primals, tangents
    factors, pivots, order = lu_p.bind(x)
    m, n = get_aval(x).shape[-2:]
    k = min(m, n)
    square = corner(factors, k, k)
    moved = take_rows(dx, order)
    if m >= n:
        scaled = triangular_solve(square, moved)
        inner = triangular_solve(square, corner(scaled, k, k), left_side=True, lower=True,
                                 unit_diagonal=True)
        inner = upper_triangle(inner)
        below = lax.sub(scaled, product(_unit_lower(factors), inner))
        above = _widened(product(inner, upper_triangle(square)), m, n)
    else:
        scaled = triangular_solve(square, moved, left_side=True, lower=True, unit_diagonal=True)
        inner = lower_triangle(triangular_solve(square, corner(scaled, k, k)), -1)
        below = _widened(product(_unit_lower(square), inner), m, n)
        above = lax.sub(scaled, product(inner, upper_triangle(factors)))
    both = lax.add(lower_triangle(below, -1), upper_triangle(above))
    return [factors, pivots, order], [both, Zero.of_primal(pivots), Zero.of_primal(order)]


def _unit_lower(factors: Value) -> Array:
    """L, from both factors in one matrix."""
    return lax.add(lower_triangle(factors, -1), identity_like(factors))


def _widened(x: Array, m: int, n: int) -> Array:
    """Matrices with rows and columns of zeros behind those that they have."""
    *batch, rows, columns = get_aval(x).shape
    if (rows, columns) == (m, n):
        return x
    padding = [(0, 0, 0)] * len(batch) + [(0, m - rows, 0), (0, n - columns, 0)]
    return lax.pad(x, np.zeros((), get_aval(x).dtype)[()], padding)


def eliminated(rows: list[list[Value]], k: int) -> Value:
    """Bring the row whose element k is largest to row k, and subtract of those below what makes
    their element k zero, which stands there in its place by how much; the number of that row."""
    sizes = [lax.add(lax.abs(lax.real(x)), lax.abs(lax.imag(x))) if is_complex(x) else lax.abs(x)
             for x in [row[k] for row in rows[k:]]]
    best, other = sizes[0], lax.full_like(sizes[0], k, _INT)
    for i, size in enumerate(sizes[1:], k + 1):
        larger = lax.gt(size, best)
        best = lax.select(larger, size, best)
        other = lax.select(larger, lax.full_like(size, i, _INT), other)
    exchange(rows, k, other)
    pivot = rows[k][k]
    divisor = lax.select(lax.eq(pivot, lax.full_like(pivot, 0)), lax.full_like(pivot, 1), pivot)
    for i in range(k + 1, len(rows)):
        factor = lax.div(rows[i][k], divisor)
        rows[i][k + 1:] = [minus_product(x, factor, y)
                           for x, y in zip(rows[i][k + 1:], rows[k][k + 1:], strict=True)]
        rows[i][k] = factor
    kept(rows)
    return other


def _factors_by_elements(x: Value) -> list[Value]:
    rows, axis = elements(x), get_aval(x).ndim - 2
    pivots = [lax.squeeze(eliminated(rows, k), (axis,)) for k in range(min(get_aval(x).shape[-2:]))]
    return [of_elements(rows), lax.concatenate(pivots, axis)]


# LAPACK's part, without the permutation.
getrf_p = register(Primitive("getrf", sharding_rule=along_batch(2),
                             unrolled=of_few_rows("lu", _factors_by_elements, several=True),
                             shape_rule=_getrf_shape, multiple_results=True))
getrf_p.define(batch=batch_leading(getrf_p))

lu_p = register(Primitive("lu", arithmetic=of_matrix(lambda m, n, out: m * n**2 - n**3 / 3),
                          sharding_rule=along_batch(2),
                          shape_rule=_lu_shape, multiple_results=True, jvp=_lu_jvp,
                          decomposition=_factors_and_permutation))
lu_p.define(batch=batch_leading(lu_p))


def lu(x: ArrayLike) -> tuple[Array, Array, Array]:
    """The LU decomposition with exchanges of rows, P x = L U.

    Args:
      x: matrices `[..., m, n]`, real or complex.

    Returns:
      (lu, pivots, permutation): U in the upper triangle of `lu` and L, whose diagonal is 1, below
      it; int32 `[..., min(m, n)]`, which row was exchanged with row 0, 1, ... in turn; and int32
      `[..., m]`, the same as a permutation: `x[permutation] = L U`.

    Raises:
      TypeError: the dtype is not float32, float64, complex64 or complex128, or the rank below 2.

    >>> import pyjx as jax
    >>> lu, pivots, permutation = jax.lax.linalg.lu(jax.numpy.array([[1.0, 2.0], [2.0, 8.0]]))
    >>> lu.tolist(), permutation.tolist()
    ([[2.0, 8.0], [0.5, -2.0]], [1, 0])
    """
    return tuple(lu_p.bind(operand("lu", x)))
