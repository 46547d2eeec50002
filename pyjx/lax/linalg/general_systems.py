"""The LU decomposition with exchanges of rows, and systems of linear equations: with general
matrices by it, and with tridiagonal ones.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core import dtypes
from pyjx.core.arithmetic import LAST, LU, TRIDIAGONAL_SOLVE
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.explicit import Entries, agreed, along_batch, entries_of
from pyjx.core.integers import as_int
from pyjx.core.jaxpr import JaxprEqn
from pyjx.core.primitive import ON_PURPOSE, Primitive, Unrolled, register
from pyjx.core.specs import reshard_first
from pyjx.engine.axes import all_at_front, moveaxis
from pyjx.engine.rules import jvp_zero
from pyjx.engine.tangents import Zero, add_tangents
from pyjx.engine.types import Dims, Operand, Tangent, Tangents, Value, Values
from pyjx.errors import ShardingTypeError
from pyjx.lax.common import operand
from pyjx.lax.linalg.matrices import (
    FEW,
    alike,
    as_column,
    by_columns,
    check_operands,
    check_square,
    choose,
    corner,
    define_leading,
    element,
    identity_like,
    is_complex,
    kept,
    lower_triangle,
    minus_product,
    of_few_rows,
    part,
    product,
    take_rows,
    transposed,
    typed,
    upper_triangle,
    weak_as_operands,
)
from pyjx.lax.linalg.matrices import conjugate as conjugated
from pyjx.lax.linalg.triangular import triangular_solve
from pyjx.lax.shapes import axes_in_one
from pyjx.lax.sorting import take_along

# -- pivots ----------------------------------------------------------------------------------------

_INT = np.dtype(np.int32)


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
        there = _from_the_front(lax.dynamic_slice_in_dim(pivots, step, 1, axis), permutation_size)
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


def _from_the_front(pivots: Value, size: Any) -> Value:
    """The numbers of rows, of which negative ones count from the last row, as indices do. One
    beyond the rows reads the last or first of them, and nothing is written there."""
    return lax.select(lax.lt(pivots, lax.full_like(pivots, 0)),
                      lax.add(pivots, lax.full_like(pivots, size)), pivots)


def _exchanged_one_by_one(pivots: Value, *, permutation_size: int) -> Value:
    axis = get_aval(pivots).ndim - 1
    pivots = _from_the_front(pivots, permutation_size)
    near = lax.clamp(np.int32(0), pivots, np.int32(permutation_size - 1))
    steps = [[lax.slice_in_dim(x, k, k + 1, axis=axis) for x in (pivots, near)] for k in range(
        get_aval(pivots).shape[-1])]
    numbers = [lax.full_like(steps[0][0], i) for i in range(permutation_size)]
    rows = numbers
    for k, (there, read) in enumerate(steps):
        other = rows[0]
        for number, row in zip(numbers, rows, strict=True):
            other = lax.select(lax.eq(read, number), row, other)
        rows = [lax.select(lax.eq(there, number), rows[k], row)
                for number, row in zip(numbers, rows, strict=True)]
        rows[k] = lax.select(lax.eq(there, numbers[k]), rows[k], other)
    return lax.concatenate(rows, axis)


def _are_few(eqn: JaxprEqn, repeated: int) -> bool:
    size, steps = eqn.params["permutation_size"], eqn.invars[0].aval.shape[-1]
    return type(size) is int and type(steps) is int and 0 < steps <= size <= FEW["lu"][repeated > 0]


lu_pivots_to_permutation_p = register(Primitive(
    "lu_pivots_to_permutation", sharding_rule=along_batch(1),
    unrolled=Unrolled(_are_few, _exchanged_one_by_one),
    shape_rule=_permutation_shape, decomposition=_exchanged))
lu_pivots_to_permutation_p.define(jvp=jvp_zero(lu_pivots_to_permutation_p))
define_leading(lu_pivots_to_permutation_p)


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


# -- LU decomposition ------------------------------------------------------------------------------


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


# LAPACK's part, without the permutation.
getrf_p = register(Primitive("getrf", arithmetic=LU, sharding_rule=along_batch(2),
                             unrolled=of_few_rows("lu", partial(by_columns, column=eliminated),
                                                  several=True),
                             shape_rule=_getrf_shape, multiple_results=True))
define_leading(getrf_p)

lu_p = register(Primitive("lu", arithmetic=LU,
                          sharding_rule=along_batch(2),
                          shape_rule=_lu_shape, multiple_results=True, jvp=_lu_jvp,
                          decomposition=_factors_and_permutation))
define_leading(lu_p)


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


# -- general matrices ------------------------------------------------------------------------------


def solve_factored(factors: Any, order: Any, b: ArrayLike, *, transpose: bool = False,
                   conjugate: bool = False) -> Any:
    """The x with op(A) x = b, where P A = L U: `factors` and `order` are as `lu` returns them."""
    options = {"left_side": True, "transpose_a": transpose, "conjugate_a": conjugate}
    if not transpose:
        x = triangular_solve(factors, take_rows(b, order), lower=True, unit_diagonal=True,
                             **options)
        return triangular_solve(factors, x, **options)
    x = triangular_solve(factors, b, **options)
    x = triangular_solve(factors, x, lower=True, unit_diagonal=True, **options)
    places = lax.broadcasted_iota(np.int32, get_aval(order).shape, get_aval(order).ndim - 1)
    return take_rows(x, lax.sort_key_val(order, places)[1])


@weak_as_operands
def _shape(a: ShapedArray, factors: ShapedArray, order: ShapedArray, b: ShapedArray, *,
           transpose: bool, conjugate: bool) -> ShapedArray:
    n = check_square("input to solve", a)
    if b.ndim != a.ndim or b.shape[:-2] != a.shape[:-2] or b.shape[-2] != n:
        raise ValueError(f"Incompatible shapes for arguments to solve: {a.shape} and {b.shape}.")
    return ShapedArray(b.shape, b.dtype)


def _jvp(primals: Values, tangents: Tangents, **params: Any) -> tuple[Value, Tangent]:
    # op(A) dx = db - op(dA) x, by the same factors, which have no derivatives of their own
    a, factors, order, b = primals
    da, _, _, db = tangents
    x = solve_p.bind(a, factors, order, b, **params)
    right = db
    if type(da) is not Zero:
        da = transposed(da) if params["transpose"] else da
        da = conjugated(da) if params["conjugate"] else da
        right = add_tangents(db, lax.neg(product(da, x)))
    return x, solve_p.bind(a, factors, order, right, **params)


def _transpose(ct: Tangent, a: Operand, factors: Operand, order: Operand, b: Operand, *,
               transpose: bool, conjugate: bool) -> Any:
    return [None, None, None, solve_p.bind(a, factors, order, ct, transpose=not transpose,
                                           conjugate=conjugate)]


def _batch(operands: Values, dims: Dims, **params: Any) -> tuple[Value, int]:
    *matrix, b = operands
    *matrix_dims, b_dim = dims
    if all([d is None for d in matrix_dims]):  # all examples are columns for one matrix
        assert b_dim is not None
        place = get_aval(b).ndim - 2
        b = moveaxis(b, b_dim, place)
        x = solve_p.bind(*matrix, axes_in_one(b, place), **params)
        return lax.reshape(x, get_aval(b).shape), place
    return solve_p.bind(*all_at_front(operands, dims), **params), 0


def _by_elimination(a: Value, factors: Value, order: Value, b: Value, *, transpose: bool,
                    conjugate: bool) -> Value:
    """The solution without factors, which are not made where nothing else reads them."""
    n, columns = get_aval(b).shape[-2:]
    a = conjugated(a) if conjugate else a
    rows = [[element(a, j, i) if transpose else element(a, i, j) for j in range(n)]
            + [part(b, (i, i + 1), (0, columns))] for i in range(n)]
    for k in range(n):
        eliminated(rows, k)
    for i in reversed(range(n)):
        x = rows[i].pop()
        for j in range(i + 1, n):
            x = minus_product(x, rows[i][j], rows[j][n])
        rows[i].append(lax.div(*alike(x, rows[i][i])))
    return lax.concatenate([row[n] for row in rows], get_aval(b).ndim - 2)


_of_matrices = along_batch(2)


def _sharding(out: ShapedArray, a: ShapedArray, factors: ShapedArray, order: ShapedArray,
              b: ShapedArray, **params: Any) -> Entries:
    """Columns may be cut, as each is a right-hand side of its own; rows may not."""
    _of_matrices(out, a)
    if entries_of(b)[-2] is not None:
        raise ShardingTypeError("solve: right-hand sides must be whole along their rows. Got type="
                                f"{b.str_short()}. {reshard_first('them')}")
    return agreed([a, b], "solve: matrices and right-hand sides must be cut alike along their "
                          f"batches. Got types {a.str_short()} and {b.str_short()}.")


# Takes the matrix beside its factors, so that derivatives are solutions of the same system.
solve_p = register(Primitive(
    "solve", sharding_rule=_sharding,
    shape_rule=_shape, jvp=_jvp, transpose=_transpose, batch=_batch, linear=LAST,
    unrolled=of_few_rows("lu", _by_elimination), derivative=ON_PURPOSE,
    decomposition=lambda a, factors, order, b, **params: solve_factored(factors, order, b,
                                                                        **params),
))


def solve(a: ArrayLike, b: ArrayLike) -> Any:
    """The x with a x = b, for matrices `[..., n, n]` and `[..., n, k]` of one batch and dtype."""
    factors, _, order = lu(lax.stop_gradient(a))
    return solve_p.bind(a, factors, order, b, transpose=False, conjugate=False)


# -- tridiagonal matrices --------------------------------------------------------------------------


@weak_as_operands
def _tridiagonal_shape(dl: ShapedArray, d: ShapedArray, du: ShapedArray, b: ShapedArray, *,
                       perturb_singular: bool) -> ShapedArray:
    check_operands("tridiagonal_solve", (dl, d, du, b), (1, 1, 1, 2))
    if not dl.shape == d.shape == du.shape:
        raise TypeError("tridiagonal_solve requires that all diagonal arguments have the same "
                        f"shape, got {dl.shape}, {d.shape} and {du.shape}.")
    if b.shape[:-1] != d.shape:
        raise TypeError("tridiagonal_solve requires that the leading ndim-1 dimensions of b equal "
                        f"the dimensions of the diagonal arguments, got {b.shape} and {d.shape}.")
    return ShapedArray(b.shape, b.dtype)


def _shifted(x: Value, by: int) -> Array:
    """Rows moved down (up, for a negative number), with zeros where none comes from."""
    aval = get_aval(x)
    padding = [(0, 0, 0)] * (aval.ndim - 2) + [(by, -by, 0), (0, 0, 0)]
    return lax.pad(x, np.zeros((), aval.dtype)[()], padding)


def _multiplied(dl: Tangent, d: Tangent, du: Tangent, x: Value) -> Any:
    """The product of the matrix with x; a diagonal may be a symbolic zero."""
    shape = get_aval(x).shape
    total: Any = None
    for diagonal, by in ((dl, 1), (d, 0), (du, -1)):
        if type(diagonal) is not Zero:
            moved = _shifted(x, by) if by else x
            term = lax.mul(lax.broadcast_in_dim(diagonal, shape, range(len(shape) - 1)), moved)
            total = term if total is None else lax.add(total, term)
    return total


def _tridiagonal_jvp(primals: Values, tangents: Tangents, **params: Any) -> tuple[Value, Tangent]:
    # A dx = db - dA x
    dl, d, du, _ = primals
    change_l, change, change_u, db = tangents
    x = tridiagonal_solve_p.bind(*primals, **params)
    moved = _multiplied(change_l, change, change_u, x)
    right = db if moved is None else add_tangents(db, lax.neg(moved))
    return x, tridiagonal_solve_p.bind(dl, d, du, right, **params)


def _tridiagonal_transpose(ct: Tangent, dl: Operand, d: Operand, du: Operand, b: Operand,
                           **params: Any) -> Any:
    below, above = (lax.squeeze(_shifted(as_column(x), by), (get_aval(x).ndim,))
                    for x, by in ((du, 1), (dl, -1)))
    return [None, None, None, tridiagonal_solve_p.bind(below, d, above, ct, **params)]


def _eliminated(dl: Value, d: Value, du: Value, b: Value, *, perturb_singular: bool) -> Array:
    """Gaussian elimination without exchanges of rows (the algorithm of Thomas)."""
    if perturb_singular:
        raise NotImplementedError("tridiagonal_solve: perturb_singular=True is not supported on "
                                  "this platform.")
    axis = get_aval(d).ndim - 1
    first = [moveaxis(x, axis, 0) for x in (dl, d, du, b)]
    width = get_aval(b).shape[-1]

    def wide(x: Value) -> Array:
        return lax.broadcast_in_dim(x, (*get_aval(x).shape, width), range(get_aval(x).ndim))

    def down(carry: Any, row: Any) -> Any:
        above, right = carry
        below, here, over, side = row
        pivot = lax.sub(here, lax.mul(below, above))
        right = lax.div(lax.sub(side, lax.mul(wide(below), right)), wide(pivot))
        above = lax.div(over, pivot)
        return (above, right), (above, right)

    def up(x: ArrayLike, row: Any) -> Any:
        above, right = row
        x = lax.sub(right, lax.mul(wide(above), x))
        return x, x

    zeros = [lax.full(get_aval(x).shape[1:], 0, get_aval(x).dtype) for x in (first[1], first[3])]
    _, rows = lax.scan(down, tuple(zeros), tuple(first))
    _, x = lax.scan(up, zeros[1], rows, reverse=True)
    return moveaxis(x, 0, axis)


tridiagonal_solve_p = register(Primitive(
    "tridiagonal_solve", arithmetic=TRIDIAGONAL_SOLVE, shape_rule=_tridiagonal_shape,
    jvp=_tridiagonal_jvp, transpose=_tridiagonal_transpose, decomposition=_eliminated, linear=LAST,
))
define_leading(tridiagonal_solve_p)


def tridiagonal_solve(dl: Any, d: ArrayLike, du: Any, b: ArrayLike, *,
                      perturb_singular: bool = False) -> Array:
    """The x with A x = b, where the matrix A has elements on three diagonals only.

    Args:
      dl: the diagonal below the main one, `[..., n]`; its first element is not used.
      d: the main diagonal, `[..., n]`.
      du: the diagonal above it, `[..., n]`; its last element is not used.
      b: `[..., n, k]`.
      perturb_singular: whether to change pivots that are almost zero by a little, so that singular
        systems have a finite solution; not on TPU.

    Returns:
      x, `[..., n, k]`.

    Raises:
      TypeError: the dtypes differ or are none of float32, float64, complex64 and complex128, or
        the shapes do not fit.

    >>> import pyjx as jax
    >>> ones, b = jax.numpy.ones(3), jax.numpy.array([[4.0], [8.0], [8.0]])
    >>> x = jax.lax.linalg.tridiagonal_solve(ones, 2 * ones, ones, b)
    >>> (jax.numpy.abs(x[:, 0] - jax.numpy.arange(1.0, 4.0)) < 1e-5).tolist()
    [True, True, True]
    """
    values = [operand("tridiagonal_solve", x, i) for i, x in enumerate((dl, d, du, b))]
    return tridiagonal_solve_p.bind(*values, perturb_singular=bool(perturb_singular))
