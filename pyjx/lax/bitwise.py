"""Bits of integers: logic, shifts, counts, and the upper half of products."""

from __future__ import annotations

from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import get_aval
from pyjx.core.primitive import ANY_WAY, CHEAP
from pyjx.engine.rules import jvp_zero
from pyjx.engine.types import Value
from pyjx.lax.common import operand
from pyjx.lax.elementwise import INTEGER, INTEGER_OR_BOOL, add, elementwise, like, mul, operands

and_p = elementwise("and", INTEGER_OR_BOOL, INTEGER_OR_BOOL, cost=CHEAP)
or_p = elementwise("or", INTEGER_OR_BOOL, INTEGER_OR_BOOL, cost=CHEAP)
xor_p = elementwise("xor", INTEGER_OR_BOOL, INTEGER_OR_BOOL, cost=CHEAP)
not_p = elementwise("not", INTEGER_OR_BOOL, cost=CHEAP)
shift_left_p = elementwise("shift_left", INTEGER, INTEGER, compiled=ANY_WAY)
shift_right_arithmetic_p = elementwise("shift_right_arithmetic", INTEGER, INTEGER, compiled=ANY_WAY)
shift_right_logical_p = elementwise("shift_right_logical", INTEGER, INTEGER, compiled=ANY_WAY)
population_count_p = elementwise("population_count", INTEGER, compiled=ANY_WAY)
clz_p = elementwise("clz", INTEGER, compiled=ANY_WAY)


def bitwise_and(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits that x and y both have; "and" of booleans.

    Args:
      x, y: arrays or numbers, both boolean or of one integer dtype. Shapes are equal, but for axes
        of size 1; one may be a scalar. Nothing is promoted.

    Raises:
      TypeError: the dtypes differ or are inexact, or the shapes do not broadcast.

    >>> import pyjx as jax
    >>> int(jax.lax.bitwise_and(6, 3))
    2
    """
    return and_p.bind(*operands("bitwise_and", x, y))


def bitwise_or(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits that x or y have; "or" of booleans. Errors as for `bitwise_and`.

    Args:
      x, y: arrays or numbers, both boolean or of one integer dtype. Shapes are equal, but for axes
        of size 1; one may be a scalar. Nothing is promoted.

    >>> import pyjx as jax
    >>> int(jax.lax.bitwise_or(6, 3))
    7
    """
    return or_p.bind(*operands("bitwise_or", x, y))


def bitwise_xor(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits in which x and y differ. Errors as for `bitwise_and`.

    Args:
      x, y: arrays or numbers, both boolean or of one integer dtype. Shapes are equal, but for axes
        of size 1; one may be a scalar. Nothing is promoted.

    >>> import pyjx as jax
    >>> int(jax.lax.bitwise_xor(6, 3))
    5
    """
    return xor_p.bind(*operands("bitwise_xor", x, y))


def bitwise_not(x: ArrayLike) -> Array:
    """All bits flipped; "not" of booleans.

    Args:
      x: an array or a number, boolean or of an integer dtype.

    Raises:
      TypeError: `x` is of an inexact dtype.

    >>> import pyjx as jax
    >>> int(jax.lax.bitwise_not(6))
    -7
    """
    return not_p.bind(operand("bitwise_not", x))


def shift_left(x: ArrayLike, y: ArrayLike) -> Array:
    """x * 2^y, without the bits that do not fit; 0 where y is not below the number of bits.

    Args:
      x: an array or a number, of an integer dtype.
      y: by how many bits, of the same dtype.

    Raises:
      TypeError: the dtypes differ or are not integer, or the shapes do not broadcast.

    >>> import pyjx as jax
    >>> int(jax.lax.shift_left(3, 2))
    12
    """
    return shift_left_p.bind(*operands("shift_left", x, y))


def shift_right_arithmetic(x: ArrayLike, y: ArrayLike) -> Array:
    """x moved y bits to the right; copies of the sign come in. Errors as for `shift_left`.

    Args:
      x: an array or a number, of an integer dtype.
      y: by how many bits, of the same dtype.

    >>> import pyjx as jax
    >>> int(jax.lax.shift_right_arithmetic(-8, 1))
    -4
    """
    return shift_right_arithmetic_p.bind(*operands("shift_right_arithmetic", x, y))


def shift_right_logical(x: ArrayLike, y: ArrayLike) -> Array:
    """x moved y bits to the right; zeros come in. Errors as for `shift_left`.

    Args:
      x: an array or a number, of an integer dtype.
      y: by how many bits, of the same dtype.

    >>> import pyjx as jax
    >>> int(jax.lax.shift_right_logical(-8, 1))
    2147483644
    """
    return shift_right_logical_p.bind(*operands("shift_right_logical", x, y))


def population_count(x: ArrayLike) -> Array:
    """How many bits of x are set.

    Args:
      x: an array or a number, of an integer dtype.

    Raises:
      TypeError: `x` is not of an integer dtype.

    >>> import pyjx as jax
    >>> int(jax.lax.population_count(7))
    3
    """
    return population_count_p.bind(operand("population_count", x))


def clz(x: ArrayLike) -> Array:
    """How many zeros stand before the first bit of x that is set.

    Args:
      x: an array or a number, of an integer dtype.

    Raises:
      TypeError: `x` is not of an integer dtype.

    >>> import pyjx as jax
    >>> int(jax.lax.clz(1))
    31
    """
    return clz_p.bind(operand("clz", x))


def _mulhi(x: Value, y: Value) -> Array:
    # With halves x = x1 B + x0, y = y1 B + y0, none of whose products overflows
    # (H. S. Warren, Hacker's Delight, 2nd edition, section 8-2).
    dtype = get_aval(x).dtype
    signed = dtypes.iinfo(dtype).min < 0
    half = dtypes.itemsize_bits(dtype) // 2
    down = shift_right_arithmetic if signed else shift_right_logical
    width, mask = like(x, half), like(x, 2**half - 1)
    x0, x1 = bitwise_and(x, mask), down(x, width)
    y0, y1 = bitwise_and(y, mask), down(y, width)
    t = add(mul(x1, y0), shift_right_logical(mul(x0, y0), width))
    s = add(mul(x0, y1), bitwise_and(t, mask))
    return add(mul(x1, y1), add(down(t, width), down(s, width)))


mulhi_p = elementwise("mulhi", INTEGER, INTEGER, decomposition=_mulhi)


def mulhi(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The upper half of the product x y, whose lower half is `mul(x, y)`.

    Args:
      x, y: arrays or numbers of one integer dtype. Shapes are equal, but for axes of size 1; one
        may be a scalar. Nothing is promoted.

    Raises:
      TypeError: the dtypes differ or are not integer, or the shapes do not broadcast.

    >>> import pyjx as jax
    >>> int(jax.lax.mulhi(2**30, 8))
    2
    """
    return mulhi_p.bind(*operands("mulhi", x, y))


for _p in (and_p, or_p, xor_p, not_p, shift_left_p, shift_right_arithmetic_p,
           shift_right_logical_p, population_count_p, clz_p, mulhi_p):
    _p.define(jvp=jvp_zero(_p))
