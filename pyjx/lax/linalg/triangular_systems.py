"""Systems of linear equations whose matrices are triangular."""

from __future__ import annotations

from typing import Any

from pyjx import lax
from pyjx.core.arithmetic import LAST, of_matrix
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.explicit import along_batch
from pyjx.core.primitive import Primitive, register
from pyjx.engine.axes import at_front, moveaxis
from pyjx.engine.tangents import UndefinedPrimal, Zero, add_tangents
from pyjx.engine.types import Dims, Operand, Tangent, Tangents, Value, Values
from pyjx.lax.common import check_same_dtypes, operand
from pyjx.lax.elementwise import INEXACT, check_kinds
from pyjx.lax.linalg.matrices import (
    alike,
    check_square,
    conjugate,
    element,
    is_complex,
    lower_triangle,
    minus_product,
    of_few_rows,
    product,
    transposed,
    upper_triangle,
    weak_as_operands,
)


@weak_as_operands
def _shape(a: ShapedArray, b: ShapedArray, *, left_side: bool, lower: bool, transpose_a: bool,
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


def _jvp(primals: Values, tangents: Tangents, *, left_side: bool, lower: bool, transpose_a: bool,
         conjugate_a: bool, unit_diagonal: bool) -> tuple[Value, Tangent]:
    # op(a) x = b gives op(a) dx = db - op(da) x, where da counts in its triangle only
    (a, b), (da, db) = primals, tangents
    params = {"left_side": left_side, "lower": lower, "transpose_a": transpose_a,
              "conjugate_a": conjugate_a, "unit_diagonal": unit_diagonal}
    x = triangular_solve_p.bind(a, b, **params)
    right = db
    if type(da) is not Zero:
        offset = 1 if unit_diagonal else 0
        da = lower_triangle(da, -offset) if lower else upper_triangle(da, offset)
        da = transposed(da) if transpose_a else da
        da = lax.neg(conjugate(da) if conjugate_a else da)
        right = add_tangents(db, product(da, x) if left_side else product(x, da))
    if type(right) is Zero:
        return x, Zero.of_primal(x)
    return x, triangular_solve_p.bind(a, right, **params)


def _transpose(ct: Tangent, a: Operand, b: Operand, *, transpose_a: bool, **params: Any
               ) -> Any:
    if type(a) is UndefinedPrimal:
        raise TypeError("triangular_solve is not linear in its matrix.")
    if type(ct) is Zero:
        return [None, Zero(b.aval)]
    return [None, triangular_solve_p.bind(a, ct, transpose_a=not transpose_a, **params)]


def _batch(operands: Values, dims: Dims, *, left_side: bool, **params: Any) -> tuple[Value, int]:
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
    shape = get_aval(b).shape
    merged = (*shape[:place], shape[place] * shape[place + 1], *shape[place + 2:])
    x = triangular_solve_p.bind(a, lax.reshape(b, merged), left_side=left_side, **params)
    return lax.reshape(x, shape), place


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
    "triangular_solve", arithmetic=of_matrix(lambda m, n, out: out * n),
    unrolled=of_few_rows("triangular_solve", _by_substitution),
    sharding_rule=along_batch(2),
    shape_rule=_shape, jvp=_jvp, transpose=_transpose, batch=_batch,
    linear=LAST,
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
