"""Systems of linear equations with general matrices, by their LU decomposition."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core.array_type import ArrayLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.explicit import Entries, agreed, along_batch, entries_of
from pyjx.core.linearity import LAST
from pyjx.core.primitive import Primitive, register
from pyjx.engine.axes import at_front, batch_along, moveaxis
from pyjx.engine.tangents import UndefinedPrimal, Zero, add_tangents
from pyjx.engine.types import Dims, Operand, Tangent, Tangents, Value, Values
from pyjx.errors import ShardingTypeError
from pyjx.lax.linalg.matrices import (
    alike,
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
from pyjx.lax.linalg.pivoted_factors import eliminated, lu
from pyjx.lax.linalg.triangular_systems import triangular_solve


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
