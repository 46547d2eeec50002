"""Systems of linear equations, with general matrices by their LU decomposition, and
with tridiagonal ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core.arithmetic import LAST
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.explicit import Entries, agreed, along_batch, entries_of
from pyjx.core.primitive import Primitive, register
from pyjx.engine.axes import at_front, batch_along, moveaxis
from pyjx.engine.tangents import UndefinedPrimal, Zero, add_tangents
from pyjx.engine.types import Dims, Operand, Tangent, Tangents, Value, Values
from pyjx.errors import ShardingTypeError
from pyjx.lax.common import operand
from pyjx.lax.linalg.matrices import (
    alike,
    as_column,
    batch_leading,
    check_operands,
    check_square,
    element,
    minus_product,
    of_few_rows,
    part,
    product,
    take_rows,
    transposed,
    weak_as_operands,
)
from pyjx.lax.linalg.matrices import (
    conjugate as conjugated,
)
from pyjx.lax.linalg.triangular import eliminated, lu, triangular_solve

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
    if type(right) is Zero:
        return x, Zero.of_primal(x)
    return x, solve_p.bind(a, factors, order, right, **params)


def _transpose(ct: Tangent, a: Operand, factors: Operand, order: Operand, b: Operand, *,
               transpose: bool, conjugate: bool) -> Any:
    if any([type(x) is UndefinedPrimal for x in (a, factors, order)]):
        raise TypeError("The function is not linear: the solution of a system of equations is "
                        "linear in the right-hand side only.")
    if type(ct) is Zero:
        return [None, None, None, Zero(b.aval)]
    return [None, None, None, solve_p.bind(a, factors, order, ct, transpose=not transpose,
                                           conjugate=conjugate)]


def _batch(operands: Values, dims: Dims, **params: Any) -> tuple[Value, int]:
    *matrix, b = operands
    *matrix_dims, b_dim = dims
    if all([d is None for d in matrix_dims]):  # all examples are columns for one matrix
        assert b_dim is not None
        place = get_aval(b).ndim - 2
        b = moveaxis(b, b_dim, place)
        shape = get_aval(b).shape
        merged = lax.reshape(b, (*shape[:-2], shape[-2] * shape[-1]))
        return lax.reshape(solve_p.bind(*matrix, merged, **params), shape), place
    along = batch_along(operands, dims)
    return solve_p.bind(*[at_front(x, d, along) for x, d in zip(operands, dims, strict=True)],
                        **params), 0


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
                                f"{b.str_short()}. Call jax.reshard on them before.")
    return agreed([a, b], "solve: matrices and right-hand sides must be cut alike along their "
                          f"batches. Got types {a.str_short()} and {b.str_short()}.")


# Takes the matrix beside its factors, so that derivatives are solutions of the same system.
solve_p = register(Primitive(
    "solve", sharding_rule=_sharding,
    shape_rule=_shape, jvp=_jvp, transpose=_transpose, batch=_batch, linear=LAST,
    unrolled=of_few_rows("lu", _by_elimination),
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
    if any([type(x) is UndefinedPrimal for x in (dl, d, du)]):
        raise TypeError("tridiagonal_solve is not linear in its matrix.")
    if type(ct) is Zero:
        return [None, None, None, Zero(b.aval)]
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
    "tridiagonal_solve", shape_rule=_tridiagonal_shape, jvp=_tridiagonal_jvp,
    transpose=_tridiagonal_transpose, decomposition=_eliminated, linear=LAST,
))
tridiagonal_solve_p.define(batch=batch_leading(tridiagonal_solve_p))


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
