"""Systems of linear equations whose matrices are tridiagonal."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.linearity import LAST
from pyjx.core.primitive import Primitive, register
from pyjx.engine.axes import moveaxis
from pyjx.engine.tangents import UndefinedPrimal, Zero, add_tangents
from pyjx.engine.types import Operand, Tangent, Tangents, Value, Values
from pyjx.lax.common import operand
from pyjx.lax.linalg.matrices import (
    as_column,
    batch_leading,
    check_operands,
    weak_as_operands,
)


@weak_as_operands
def _shape(dl: ShapedArray, d: ShapedArray, du: ShapedArray, b: ShapedArray, *,
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
    for part, by in ((dl, 1), (d, 0), (du, -1)):
        if type(part) is not Zero:
            moved = _shifted(x, by) if by else x
            term = lax.mul(lax.broadcast_in_dim(part, shape, range(len(shape) - 1)), moved)
            total = term if total is None else lax.add(total, term)
    return total


def _jvp(primals: Values, tangents: Tangents, **params: Any) -> tuple[Value, Tangent]:
    # A dx = db - dA x
    dl, d, du, _ = primals
    change_l, change, change_u, db = tangents
    x = tridiagonal_solve_p.bind(*primals, **params)
    moved = _multiplied(change_l, change, change_u, x)
    right = db if moved is None else add_tangents(db, lax.neg(moved))
    return x, tridiagonal_solve_p.bind(dl, d, du, right, **params)


def _transpose(ct: Tangent, dl: Operand, d: Operand, du: Operand, b: Operand, **params: Any
               ) -> Any:
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
    "tridiagonal_solve", shape_rule=_shape, jvp=_jvp, transpose=_transpose,
    decomposition=_eliminated, linear=LAST,
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
