"""Division rounded down: quotients and remainders of promoted operands."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyjx import lax as ops
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import get_aval
from pyjx.core.scalars import is_scalar_constant
from pyjx.lax.elementwise import stretch
from pyjx.numpy.operands import constant_like, dtype_of, filled_like, is_inexact


def _wrong_sign(rem: ArrayLike, y: Array) -> Any:
    """Where the remainder of truncated division is not 0 and has not the sign of the divisor."""
    zero = constant_like(rem, 0)
    if is_scalar_constant(y) and y:
        return ops.gt(rem, zero) if y < 0 else ops.lt(rem, zero)
    signs = (ops.ne(ops.sign(rem), ops.sign(y)) if is_inexact(rem)
             else ops.lt(ops.bitwise_xor(rem, y), zero))
    return ops.bitwise_and(ops.ne(rem, zero), signs)


def _less_one(x: ArrayLike, where: ArrayLike | None) -> Any:
    return ops.select(where, ops.sub(x, constant_like(x, 1)), x)


def _float_floor_divide(x: ArrayLike, y: Array) -> Any:
    """With r = fmod(x, y), (x - r) / y is a whole number up to rounding."""
    rem = ops.rem(x, y)
    whole = ops.sub(x, rem)
    if not is_scalar_constant(y) or y == 0:
        shape = get_aval(rem).shape
        by_zero = stretch(ops.eq(y, constant_like(y, 0)), shape)
        whole = ops.select(by_zero, stretch(x, shape), whole)
    return ops.round(_less_one(ops.div(whole, y), _wrong_sign(rem, y)))


def _exponent(y: Any) -> int | None:
    """k where an integer is the constant 2**k: programs shift by it, and keep its lower bits."""
    if is_scalar_constant(y) and y > 0 and not int(y) & int(y) - 1:
        return int(y).bit_length() - 1
    return None


def int_floor_divide(x: ArrayLike, y: Any) -> Any:
    if dtypes.issubdtype(dtype_of(x), np.unsignedinteger):
        return ops.div(x, y)
    if (exponent := _exponent(y)) is not None:
        return ops.shift_right_arithmetic(x, constant_like(x, exponent))
    div = ops.div(x, y)
    if is_scalar_constant(y) and y:
        return _less_one(div, _wrong_sign(ops.rem(x, y), y))
    inexact = ops.ne(ops.mul(div, y), x)  # no second division
    return _less_one(div, ops.bitwise_and(inexact, ops.ne(ops.sign(x), ops.sign(y))))


def nonzero_divisor(y: ArrayLike) -> Any:
    """Integers with 1 in place of 0, so that the remainder is 0."""
    if is_scalar_constant(y):
        return y if y else constant_like(y, 1)
    return ops.select(ops.eq(y, constant_like(y, 0)), filled_like(y, 1), y)


def floor_remainder(x: ArrayLike, y: Array) -> Any:
    if is_inexact(x):
        rem = ops.rem(x, y)
        return ops.select(_wrong_sign(rem, y), ops.add(rem, y), rem)
    unsigned = dtypes.issubdtype(dtype_of(x), np.unsignedinteger)
    if not unsigned and (exponent := _exponent(y)) is not None:
        return ops.bitwise_and(x, constant_like(x, (1 << exponent) - 1))
    if is_scalar_constant(y):
        y = nonzero_divisor(y)
        rem = ops.rem(x, y)
    else:  # which takes less than XLA's remainder, and shares the division with the quotient
        rem = ops.sub(x, ops.mul(ops.div(x, y), y))
    if not unsigned:
        rem = ops.select(_wrong_sign(rem, y), ops.add(rem, y), rem)
    if is_scalar_constant(y):
        return rem
    return ops.select(ops.eq(y, constant_like(y, 0)), filled_like(rem, 0), rem)


def floor_quotient(x: Array, y: Array) -> Any:
    return _float_floor_divide(x, y) if is_inexact(x) else int_floor_divide(x, y)
