"""Powers. What is computed depends on the exponent: a known integer, integers, or real numbers."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from pyjx import lax as ops
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import aval_makers, get_aval
from pyjx.core.trace import Tracer, eager_trace, state
from pyjx.guards import guard
from pyjx.lax.elementwise import stretch
from pyjx.numpy.operands import alias, constant_like, dtype_of, filled_like, is_inexact, is_integer
from pyjx.numpy.promotion import (
    common_shape,
    convert,
    operands,
    promote_args_inexact,
    promote_args_numeric,
    promote_dtypes_numeric,
    promote_shapes,
)
from pyjx.numpy.ufuncs import absolute, as_array
from pyjx.runtime.array import ArrayImpl
from pyjx.runtime.operations import body_of, op_jit


@op_jit(static_argnames=("exponent",))
def _integer_power(x: ArrayLike, exponent: int) -> Any:
    (x,) = promote_dtypes_numeric(*operands("power", x))
    return as_array(x) if exponent == 1 else ops.integer_pow(x, exponent)


@op_jit
def _scalar_power(x: ArrayLike, y: ArrayLike) -> Any:
    """x to the power of one integer, which takes no part in the promotion."""
    out = ops.pow(x, y)
    return convert(out, dtype_of(out), get_aval(x).weak_type)


@op_jit
def _power(x1: ArrayLike, x2: ArrayLike) -> Any:
    x, y = operands("power", x1, x2)
    if is_inexact(x) and is_integer(y):  # the derivative at x = 0 needs to know that y is whole
        dtype = dtype_of(x)
        # A float that outlives the flag of 64-bit types stays as wide as it is.
        weak = dtypes.canonicalize_dtype(dtype) == dtype and dtypes.lattice_result_type(x, y)[1]
        return ops.pow(*promote_shapes("power", convert(x, dtype, weak), y))
    x, y = promote_args_numeric("power", x, y)
    return ops.pow(x, y) if is_inexact(x) else _int_power(x, y)


def _int_power(x: ArrayLike, y: ArrayLike) -> Any:
    """x ** y for integers of n bits, modulo 2^n.

    x is squared once for each of the lowest k bits of y. With y = 2^k e + rest and z = x^(2^k),
    the rest of the power is z^e. It is 0^e for even x, as 2^k >= n; for odd x, z - 1 is a multiple
    of 2^(k + 2), whose fourth power vanishes, so the binomial series has four terms.
    """
    shape = common_shape("power", [get_aval(x).shape, get_aval(y).shape])
    base, y = stretch(x, shape), stretch(y, shape)
    zero, one = constant_like(y, 0), constant_like(y, 1)
    signed = dtypes.issubdtype(dtype_of(y), np.signedinteger)
    out, power = filled_like(y, 1, dtype_of(y)), base
    width = dtypes.itemsize_bits(dtype_of(y))
    steps = max(width.bit_length() - 1, width // 4 - 2)
    for step in range(steps):
        bit = ops.bitwise_and(y, constant_like(y, 2**step))
        out = ops.select(ops.ne(bit, zero), ops.mul(out, power), out)
        power = ops.mul(power, power)
    out = ops.mul(out, _high_power(power, ops.shift_right_logical(y, constant_like(y, steps))))
    if not signed:
        return out
    # 1 / x^|y|, rounded towards zero: 0, but for x = 1 and x = -1.
    keeps = ops.eq(body_of(absolute)(base), one)
    return ops.select(ops.bitwise_or(ops.ge(y, zero), keeps), out, stretch(zero, shape))


def _high_power(z: ArrayLike, e: ArrayLike) -> Any:
    """z ** e for the z of `_int_power`: 1 + e w + C(e, 2) w^2 + C(e, 3) w^3, with w = z - 1."""
    zero, one = constant_like(e, 0), constant_like(e, 1)
    width = dtypes.itemsize_bits(dtype_of(e))
    third = (2**(width + 1) + 1) // 3  # the inverse of 3 modulo 2^n
    pairs = ops.mul(ops.shift_right_logical(e, one), ops.bitwise_or(ops.sub(e, one), one))
    triples = ops.mul(ops.mul(pairs, ops.sub(e, constant_like(e, 2))), constant_like(e, third))
    w = ops.sub(z, one)
    series = ops.mul(w, ops.add(e, ops.mul(w, ops.add(pairs, ops.mul(w, triples)))))
    even = ops.bitwise_and(ops.eq(z, zero), ops.ne(e, zero))
    return ops.select(even, ops.full_like(e, 0), ops.add(series, one))


def power(x1: ArrayLike, x2: Any, /) -> Array:
    """x1 to the power of x2, elementwise.

    An exponent that is one known integer is part of the program, the power a few multiplications,
    and the dtype that of x1. Integers to integer powers stay integers.

    Raises:
      TypeError: integers to a power that is one known negative integer.

    >>> import pyjx as jax
    >>> jax.numpy.power(jax.numpy.arange(3), 2).tolist()
    [0, 1, 4]
    """
    if type(x2) is int:
        if isinstance(x1, Tracer):
            return body_of(_integer_power)(x1, x2)
        return _integer_power(x1, x2)
    if isinstance(x2, Tracer) or bool(getattr(x2, "shape", ())):
        return _power(x1, x2)
    if type(x2) is ArrayImpl and is_integer(x2) and _is_known_float(x1):
        return _scalar_power(x1, x2)  # one program for all exponents, which need not be read
    try:
        exponent = operator.index(x2)
    except TypeError:
        return _power(x1, x2)
    return _integer_power(x1, exponent)


def _is_known_float(x: Any) -> bool:
    return (type(x) in aval_makers and not isinstance(x, Tracer)
            and dtype_of(x) in dtypes.floating_dtypes
            and state.dynamic is eager_trace)


pow = alias("pow", power, guard)


@op_jit
def float_power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x to the power of y, elementwise. Integers become floats.

    >>> import pyjx as jax
    >>> jax.numpy.float_power(jax.numpy.arange(3), 2).tolist()
    [0.0, 1.0, 4.0]
    """
    return ops.pow(*promote_args_inexact("float_power", x, y))
