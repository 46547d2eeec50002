"""Determinants, and their logarithms."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, DTypeLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.explicit import along_batch
from pyjx.core.primitive import Primitive, register
from pyjx.core.scalars import scalar_constant
from pyjx.engine.tangents import Zero
from pyjx.engine.types import Tangent, Tangents, Value, Values
from pyjx.lax.linalg.general_systems import lu, solve
from pyjx.lax.linalg.matrices import (
    check_operands,
    check_square,
    define_leading,
    diagonal,
    is_complex,
    on_diagonal,
    spread_columns,
    take_rows,
    typed,
    typed_real,
)
from pyjx.lax.linalg.reflectors import geqrf_p
from pyjx.lax.linalg.triangular import triangular_solve
from pyjx.transforms.custom_jvp import custom_jvp


def _sign_of_order(pivots: ArrayLike, dtype: DTypeLike) -> Any:
    """1 or -1: whether the number of exchanges of rows is even."""
    aval = get_aval(pivots)
    axis = aval.ndim - 1
    moved = lax.ne(pivots, lax.broadcasted_iota(aval.dtype, aval.shape, axis))
    count = lax.reduce_sum(lax.convert_element_type(moved, np.int32), (axis,))
    odd = lax.bitwise_and(count, np.int32(1))
    return lax.convert_element_type(lax.sub(np.int32(1), lax.mul(np.int32(2), odd)), dtype)


# -- the determinant -------------------------------------------------------------------------------


def _det_shape(x: ShapedArray) -> ShapedArray:
    check_operands("det", (x,), (2,))
    check_square("input to det", x)
    return typed(x)


def _det(x: Value) -> Array:
    factors, pivots, _ = lu(x)
    values = diagonal(factors)
    signed = _sign_of_order(pivots, get_aval(x).dtype)
    return lax.mul(lax.reduce_prod(values, (get_aval(values).ndim - 1,)), signed)


def _factors_with_rank(x: Value, *factored: Value) -> tuple[Value, ...]:
    """Factors of matrices, of A H where one of a batch lacks a rank before its last column; and
    whether they are those of A H, for each matrix."""
    others, _ = _products_of(factored)
    turned = lax.reduce_or(lax.eq(others, lax.full_like(others, 0)), range(get_aval(others).ndim))
    found = lax.cond(turned, lambda: tuple(lu(_reflected(x))), lambda: tuple(factored))
    return *found, lax.broadcast(turned, get_aval(others).shape)


# An operation of its own, so that vmap maps it as one of a batch: a branch for each matrix would
# factor all of them twice.
factors_with_rank_p = register(Primitive(
    "factors_with_rank", multiple_results=True, decomposition=_factors_with_rank,
    sharding_rule=along_batch(2), shape_rule=lambda x, *factored: (
        *factored, typed(x, dtype=np.bool_))))
define_leading(factors_with_rank_p)


def _det_jvp(primals: Values, tangents: Values) -> tuple[Value, Tangent]:
    # d det A = tr(adj(A) dA), and adj(A) = s adj(U) L^-1 P with the sign s of the exchanges. With
    # U = [[V, u], [0, d]] it is adj(U) = det(V) W^-1 D, where W = [[V, u], [0, 1]] and D
    # multiplies all rows but the last by d: nothing is divided by d, so a matrix that lacks one
    # rank has its derivative, where V has all of its own. Where not, A H is taken for A.
    (x,), (dx,) = primals, tangents
    factored = lu(x)
    out = lax.mul(*_products_of(factored))
    *factored, turned = factors_with_rank_p.bind(x, *factored)
    all_turned = lax.reduce_or(turned, range(get_aval(turned).ndim))  # or none
    dx = lax.cond(all_turned, _reflected, lambda dx: dx, dx)
    factors, _, order = factored
    aval = get_aval(factors)
    others, last = _products_of(factored)
    is_last = _is_last(get_aval(x).shape[:-1])
    singular = lax.eq(others, lax.full_like(others, 0))
    replaced = lax.bitwise_or(spread_columns(is_last, aval.shape),
                              lax.broadcast_in_dim(singular, aval.shape, range(aval.ndim - 2)))
    triangle = lax.select(lax.bitwise_and(on_diagonal(aval.shape), replaced),
                          lax.full_like(factors, 1), factors)
    y = triangular_solve(factors, take_rows(dx, order), left_side=True, lower=True,
                         unit_diagonal=True)
    last = spread_columns(last, get_aval(x).shape[:-1])
    factor = lax.select(is_last, lax.full_like(last, 1), last)
    y = lax.mul(y, spread_columns(factor, aval.shape))
    scale = lax.select(turned, lax.neg(others), others)
    return out, lax.mul(scale, _trace(triangular_solve(triangle, y, left_side=True)))


def _is_last(shape: tuple[int, ...]) -> Array:
    places = lax.broadcasted_iota(np.int32, shape, len(shape) - 1)
    return lax.eq(places, scalar_constant(shape[-1] - 1, np.int32))


def _products_of(factored: Sequence[Value]) -> tuple[Value, Value]:
    """The product of all pivots but the last, with the sign of the exchanges, and the last one."""
    factors, pivots, _ = factored
    values = diagonal(factors)
    is_last = _is_last(get_aval(values).shape)
    one, axis = lax.full_like(values, 1), (get_aval(values).ndim - 1,)
    others = lax.reduce_prod(lax.select(is_last, one, values), axis)
    last = lax.reduce_prod(lax.select(is_last, values, one), axis)
    return lax.mul(others, _sign_of_order(pivots, get_aval(factors).dtype)), last


def _reflected(x: Value) -> Array:
    """A H with H = I - 2 v v^T / v^T v, whose determinant is -1. As v lies along no axis, a matrix
    A H that lacks one rank has its last column among the span of the others."""
    shape, dtype = get_aval(x).shape, get_aval(x).dtype
    v = lax.sin(lax.add(lax.iota(np.float32, shape[-1]), np.float32(1)))
    v = lax.convert_element_type(v, dtype)
    size = lax.reduce_sum(lax.mul(v, v), (0,))
    scaled = lax.mul(v, lax.broadcast(lax.div(lax.full_like(size, 2), size), v.shape))
    v, scaled = (lax.broadcast_in_dim(y, shape, (len(shape) - 1,)) for y in (v, scaled))
    along = lax.reduce_sum(lax.mul(x, v), (len(shape) - 1,))
    return lax.sub(x, lax.mul(spread_columns(along, shape), scaled))


def _trace(x: Value) -> Array:
    values = diagonal(x)
    return lax.reduce_sum(values, (get_aval(values).ndim - 1,))


det_p = register(Primitive("det", sharding_rule=along_batch(2),
                           shape_rule=_det_shape, decomposition=_det, jvp=_det_jvp))
define_leading(det_p)


def _minor(rows: Sequence[Sequence[Any]], i: int, j: int) -> Any:
    """The determinant of columns i and j of two rows."""
    first, second = rows
    return lax.sub(lax.mul(first[i], second[j]), lax.mul(first[j], second[i]))


def _cross(a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
    return [_minor((a, b), i, j) for i, j in ((1, 2), (2, 0), (0, 1))]


def _rows(x: ArrayLike) -> list[list[Any]]:
    """The elements of the last two axes."""
    aval = get_aval(x)

    def at(i: int, j: int) -> Any:
        start = (0,) * (aval.ndim - 2) + (i, j)
        stop = (*aval.shape[:-2], i + 1, j + 1)
        return lax.reshape(lax.slice(x, start, stop), aval.shape[:-2])

    return [[at(i, j) for j in range(aval.shape[-1])] for i in range(aval.shape[-2])]


@custom_jvp
def _det_of_three(x: ArrayLike) -> Any:
    # By elimination of the first column with its greatest element: minors of rows nearly parallel
    # would cancel. Rows in turn are an even permutation, so there is no sign.
    rows = _rows(x)
    sizes = [lax.abs(row[0]) for row in rows]
    second = lax.gt(sizes[1], lax.max(sizes[0], sizes[2]))
    third = lax.gt(sizes[2], sizes[0])

    def turned(i: int) -> list[Any]:
        return [lax.select(second, b, lax.select(third, c, a)) for a, b, c in zip(
            rows[i], rows[(i + 1) % 3], rows[(i + 2) % 3], strict=True)]

    pivot, *others = turned(0), turned(1), turned(2)
    nothing = lax.eq(pivot[0], lax.full_like(pivot[0], 0))
    divisor = lax.select(nothing, lax.full_like(pivot[0], 1), pivot[0])
    left = []
    for row in others:
        factor = lax.div(row[0], divisor)
        left.append([lax.sub(a, lax.mul(factor, p)) for a, p in zip(row, pivot, strict=True)])
    return lax.mul(pivot[0], _minor(left, 1, 2))


def _cofactor_sum(g: Any, out: Any, x: ArrayLike) -> Any:
    # d det A = sum of C dA with the cofactors C, which are the cross products of two rows
    a, b, c = _rows(x)
    cofactors = [*_cross(b, c), *_cross(c, a), *_cross(a, b)]
    steps = [step for row in _rows(g) for step in row]
    return functools.reduce(lax.add, map(lax.mul, cofactors, steps))


_det_of_three.defjvps(_cofactor_sum)


def det(x: ArrayLike) -> Any:
    """The determinants of matrices `[..., n, n]`; those of up to 3 rows by their elements."""
    aval = get_aval(x)
    n = aval.shape[-1]
    if type(n) is not int or not 1 <= n <= 3:
        return det_p.bind(x)
    check_square("input to det", aval)
    if n == 3:
        return _det_of_three(x)
    rows = _rows(x)
    return rows[0][0] if n == 1 else _minor(rows, 0, 1)


# -- its sign and logarithm ------------------------------------------------------------------------


def slogdet(x: ArrayLike, method: str) -> list[Any]:
    """The signs and logarithms; those of up to 2 rows by `lu` in any float dtype."""
    dtype = get_aval(x).dtype
    small = method == "lu" and get_aval(x).shape[-1] in (1, 2)
    if not small or dtype not in (np.float16, dtypes.bfloat16):
        return slogdet_p.bind(x, method=method)  # type: ignore[no-any-return]
    wide = slogdet_p.bind(lax.convert_element_type(x, np.float32), method=method)
    return [lax.convert_element_type(y, dtype) for y in wide]


def _slogdet_shape(x: ShapedArray, *, method: str) -> list[ShapedArray]:
    check_operands("slogdet", (x,), (2,))
    weak = x.weak_type and method == "lu" and check_square("input to slogdet", x) in (1, 2)
    return [typed(x).update(weak_type=weak), typed_real(x).update(weak_type=weak)]


def _slogdet(x: Value, *, method: str) -> list[Value]:
    dtype = get_aval(x).dtype
    if method == "lu":
        factors, pivots, _ = lu(x)
        values, sign = diagonal(factors), _sign_of_order(pivots, dtype)
    else:
        packed, taus = geqrf_p.bind(x)
        values, sign = diagonal(packed), _sign_of_reflections(taus)
    axis = (get_aval(values).ndim - 1,)
    sign = lax.mul(sign, lax.reduce_prod(lax.sign(values), axis))
    return [sign, lax.reduce_sum(lax.log(lax.abs(values)), axis)]


def _sign_of_reflections(taus: Value) -> Array:
    # The determinant of the unitary I - t v v^H is 1 - t |v|^2 = -t / conj(t).
    one = lax.full_like(taus, 1)
    each = lax.neg(lax.div(taus, lax.conj(taus)) if is_complex(taus) else one)
    kept = lax.select(lax.eq(taus, lax.full_like(taus, 0)), one, each)
    return lax.reduce_prod(kept, (get_aval(taus).ndim - 1,))


def _slogdet_jvp(primals: Values, tangents: Values, *, method: str) -> tuple[Values, Tangents]:
    # d log det A = tr(A^-1 dA), whose imaginary part turns the sign
    (x,), (dx,) = primals, tangents
    sign, logarithm = slogdet_p.bind(x, method=method)
    change = _trace(solve(x, dx))
    if not get_aval(sign).weak_type:
        change = lax.convert_element_type(change, get_aval(change).dtype)
    if not is_complex(x):
        return [sign, logarithm], [Zero.of_primal(sign), change]
    turn = lax.complex(lax.full_like(logarithm, 0), lax.imag(change))
    return [sign, logarithm], [lax.mul(sign, turn), lax.real(change)]


slogdet_p = register(Primitive("slogdet", sharding_rule=along_batch(2),
                               shape_rule=_slogdet_shape, multiple_results=True,
                               decomposition=_slogdet, jvp=_slogdet_jvp))
define_leading(slogdet_p)
