"""Determinants, and their logarithms."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.explicit import along_batch
from pyjx.core.primitive import Primitive, register
from pyjx.engine.tangents import Zero
from pyjx.engine.types import Tangent, Tangents, Value, Values
from pyjx.lax.linalg.general_systems import solve
from pyjx.lax.linalg.matrices import (
    batch_leading,
    check_operands,
    check_square,
    diagonal,
    is_complex,
    on_diagonal,
    spread_columns,
    take_rows,
    typed,
    typed_real,
)
from pyjx.lax.linalg.pivoted_factors import lu
from pyjx.lax.linalg.reflectors import geqrf_p
from pyjx.lax.linalg.triangular_systems import triangular_solve


def _sign_of_order(pivots: Any, dtype: Any) -> Any:
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


def _det(x: Value) -> Value:
    factors, pivots, _ = lu(x)
    values = diagonal(factors)
    signed = _sign_of_order(pivots, get_aval(x).dtype)
    return lax.mul(lax.reduce_prod(values, (get_aval(values).ndim - 1,)), signed)


def _det_jvp(primals: Values, tangents: Tangents) -> tuple[Value, Tangent]:
    # d det A = tr(adj(A) dA), and adj(A) = s adj(U) L^-1 P with the sign s of the exchanges. With
    # U = [[V, u], [0, d]] it is adj(U) = det(V) W^-1 D, where W = [[V, u], [0, 1]] and D
    # multiplies all rows but the last by d: nothing is divided by d, so a matrix that lacks one
    # rank has its derivative. Where V is singular too, it is taken as zero.
    (x,), (dx,) = primals, tangents
    factors, pivots, order = lu(x)
    aval = get_aval(factors)
    values = diagonal(factors)
    places = lax.broadcasted_iota(np.int32, get_aval(values).shape, aval.ndim - 2)
    is_last = lax.eq(places, np.int32(aval.shape[-1] - 1))
    one = lax.full_like(values, 1)
    axis = (aval.ndim - 2,)
    others = lax.reduce_prod(lax.select(is_last, one, values), axis)
    last = lax.reduce_prod(lax.select(is_last, values, one), axis)
    scale = lax.mul(others, _sign_of_order(pivots, aval.dtype))
    singular = lax.eq(others, lax.full_like(others, 0))
    replaced = lax.bitwise_or(spread_columns(is_last, aval.shape),
                              lax.broadcast_in_dim(singular, aval.shape, range(aval.ndim - 2)))
    triangle = lax.select(lax.bitwise_and(on_diagonal(aval.shape), replaced),
                          lax.full_like(factors, 1), factors)
    y = triangular_solve(factors, take_rows(dx, order), left_side=True, lower=True,
                         unit_diagonal=True)
    factor = lax.select(is_last, one, spread_columns(last, get_aval(values).shape))
    y = lax.mul(y, spread_columns(factor, aval.shape))
    trace = _trace(triangular_solve(triangle, y, left_side=True))
    return lax.mul(scale, last), lax.mul(scale, trace)


def _trace(x: Value) -> Value:
    values = diagonal(x)
    return lax.reduce_sum(values, (get_aval(values).ndim - 1,))


det_p = register(Primitive("det", sharding_rule=along_batch(2),
                           shape_rule=_det_shape, decomposition=_det, jvp=_det_jvp))
det_p.define(batch=batch_leading(det_p))


def det(x: Any) -> Any:
    """The determinants of matrices `[..., n, n]`; those of up to 3 rows by their elements."""
    aval = get_aval(x)
    n = aval.shape[-1]
    if type(n) is not int or not 1 <= n <= 3:
        return det_p.bind(x)
    check_square("input to det", aval)

    def at(i: int, j: int) -> Any:
        start = (0,) * (aval.ndim - 2) + (i, j)
        stop = (*aval.shape[:-2], i + 1, j + 1)
        return lax.reshape(lax.slice(x, start, stop), aval.shape[:-2])

    def minor(i: int, j: int) -> Any:  # of the first two rows
        return lax.sub(lax.mul(at(0, i), at(1, j)), lax.mul(at(0, j), at(1, i)))

    if n == 1:
        return at(0, 0)
    if n == 2:
        return minor(0, 1)
    return lax.add(lax.sub(lax.mul(at(2, 0), minor(1, 2)), lax.mul(at(2, 1), minor(0, 2))),
                   lax.mul(at(2, 2), minor(0, 1)))


# -- its sign and logarithm ------------------------------------------------------------------------


def slogdet(x: Any, method: str) -> list[Any]:
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


def _sign_of_reflections(taus: Value) -> Value:
    # The determinant of the unitary I - t v v^H is 1 - t |v|^2 = -t / conj(t).
    one = lax.full_like(taus, 1)
    each = lax.neg(lax.div(taus, lax.conj(taus)) if is_complex(taus) else one)
    kept = lax.select(lax.eq(taus, lax.full_like(taus, 0)), one, each)
    return lax.reduce_prod(kept, (get_aval(taus).ndim - 1,))


def _slogdet_jvp(primals: Values, tangents: Tangents, *, method: str) -> tuple[Values, Tangents]:
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
slogdet_p.define(batch=batch_leading(slogdet_p))
