"""Functions that round to whole numbers, or to a number of decimals."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from pyjx import lax as ops
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike
from pyjx.lax.elementwise import coefficient
from pyjx.numpy.division import int_floor_divide
from pyjx.numpy.operands import (
    alias,
    as_bool,
    constant_like,
    dtype_of,
    filled_like,
    is_complex,
    is_inexact,
)
from pyjx.numpy.promotion import convert, no_out, operands
from pyjx.numpy.ufuncs import as_array, as_default_float
from pyjx.runtime.operations import op_jit


@op_jit
def rint(x: ArrayLike, /) -> Array:
    """x rounded to whole numbers, halves to even ones. Integers become floats.

    >>> import pyjx as jax
    >>> jax.numpy.rint(jax.numpy.array([0.5, 1.5, 2.6])).tolist()
    [0.0, 2.0, 3.0]
    """
    (x,) = operands("rint", x)
    return _of_parts(_to_even, as_default_float(x))


def _of_parts(function: Callable[[Any], Any], x: ArrayLike) -> Any:
    """A function of real numbers, of both parts of complex ones."""
    if is_complex(x):
        return ops.complex(function(ops.real(x)), function(ops.imag(x)))
    return function(x)


def _to_even(x: ArrayLike) -> Any:
    return ops.round(x, ops.RoundingMethod.TO_NEAREST_EVEN)


def _round_integers(x: ArrayLike, step: int) -> Any:
    """Integers rounded to multiples of `step`, halves to even multiples."""
    if step > np.iinfo(dtype_of(x)).max:
        return filled_like(x, 0)
    unit = constant_like(x, step)
    quotient = int_floor_divide(x, unit)
    rest = ops.sub(x, ops.mul(quotient, unit))
    missing = ops.sub(unit, rest)
    odd = ops.bitwise_and(quotient, constant_like(x, 1))
    up = ops.bitwise_or(ops.gt(rest, missing), ops.bitwise_and(ops.eq(rest, missing), as_bool(odd)))
    return ops.mul(ops.add(quotient, convert(up, dtype_of(x))), unit)


@op_jit(static_argnames=("decimals",))
def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """Values rounded to a number of decimals, halves to even digits.

    Args:
      a: array.
      decimals: how many digits to keep after the point; negative ones count before it.
      out: must be None.

    Returns:
      An array of the argument's shape and dtype.

    Raises:
      ValueError: the array is boolean.

    >>> import pyjx as jax
    >>> jax.numpy.round(jax.numpy.array([0.5, 1.5, 2.6])).tolist()
    [0.0, 2.0, 3.0]
    """
    no_out("round", out)
    (x,) = operands("round", a)
    decimals = operator.index(decimals)
    if not is_inexact(x):
        if dtype_of(x) == np.bool_:
            raise ValueError("round: booleans have no decimals; expected numbers, got dtype bool. "
                             "Convert the array, or leave it as it is.")
        if decimals >= 0:
            return as_array(x)
        return _round_integers(x, 10 ** min(-decimals, 20))  # which no integer of 64 bits reaches
    return _of_parts(lambda part: _round_floats(part, decimals), x)


around = alias("around", round, op_jit(static_argnames=("decimals",)))


def _round_floats(x: ArrayLike, decimals: int) -> Any:
    if decimals == 0:
        return _to_even(x)
    dtype = dtype_of(x)
    if decimals > math.log10(float(dtypes.finfo(dtype).max)):
        return as_array(x)  # it has no digits so far behind the point
    narrow = dtype in dtypes.floating_dtypes and dtype.itemsize < 4
    wide = convert(x, np.dtype(np.float32)) if narrow else x
    factor = coefficient(wide, 10.0 ** max(decimals, -400))  # 10**-400 is 0
    rounded = ops.div(_to_even(ops.mul(wide, factor)), factor)
    return convert(rounded, dtype) if narrow else rounded
