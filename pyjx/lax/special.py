"""Special functions: error function and Bessel functions; what all special functions share.

Their definitions are those of the NIST Digital Library of Mathematical Functions (DLMF).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from pyjx.core import dtypes
from pyjx.core.arithmetic import transcendental
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import get_aval
from pyjx.core.primitive import AS_PROGRAMS, DEAR
from pyjx.core.scalars import scalar_constant
from pyjx.engine.axes import broadcast_in_dim
from pyjx.engine.primitives import cast
from pyjx.engine.tangents import full_aval
from pyjx.engine.types import Value
from pyjx.lax.common import operand
from pyjx.lax.compare import abs, gt, le, select, sign
from pyjx.lax.elementwise import (
    FLOATING,
    add,
    coefficient,
    differentiate,
    differentiate_by_result,
    div,
    elementwise,
    integer_pow,
    like,
    mul,
    neg,
    square,
    sub,
)
from pyjx.lax.reductions import reduce_or
from pyjx.lax.transcendental import accurate, exp, rsqrt

if TYPE_CHECKING:
    from pyjx.lax.transcendental import AccuracyMode, Tolerance

# -- what they share -------------------------------------------------------------------------------


def constant(x: Value, value: float) -> Array:
    """An array like `x`, filled with `value`."""
    return full_aval(get_aval(x).strip_weak_type(), value)


def where(condition: Value, x: Value, value: float) -> Array:
    """`x`, but `value` where the condition holds."""
    return select(condition, constant(x, value), x)


def in_single(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The function of arrays of one shape, computed in float32 for dtypes that are narrower."""

    def wrapped(*xs: Value) -> Array:
        shape = max([get_aval(x).shape for x in xs], key=len)
        xs = tuple([x if get_aval(x).shape == shape else broadcast_in_dim(x, shape, ())
                    for x in xs])
        dtype = get_aval(xs[0]).dtype
        if dtype.itemsize >= 4:
            return fun(*xs)
        single = np.dtype(np.float32)
        return cast(fun(*[cast(x, single) for x in xs]), dtype)

    return wrapped


def any_of(x: Value) -> Array:
    return reduce_or(x, tuple(range(get_aval(x).ndim)))


def no_derivative(message: str) -> Callable[..., NoReturn]:
    """The rule of an operand in which there is no derivative."""

    def rule(*_: Any, **__: Any) -> NoReturn:
        raise ValueError(message)

    return rule


# -- error function --------------------------------------------------------------------------------

erf_p = elementwise("erf", FLOATING, arithmetic=transcendental, cost=DEAR)
erfc_p = elementwise("erfc", FLOATING, arithmetic=transcendental)
erf_inv_p = elementwise("erf_inv", FLOATING, arithmetic=transcendental, compiled=AS_PROGRAMS)


def _bell(g: Value, x: Value, scale: float) -> Array:
    # e^(-28^2) is 0 in every dtype; beyond, its own derivatives are 0 rather than 0 times infinity
    near = select(gt(abs(x), like(x, 28)), full_aval(get_aval(x), 28), x)
    factor = scalar_constant(scale / math.sqrt(math.pi), get_aval(x).dtype)
    return mul(factor, mul(g, exp(neg(square(near)))))


# d erf(x) = 2/sqrt(pi) e^(-x^2) dx
differentiate(erf_p, lambda g, x: _bell(g, x, 2))
# d erfc(x) = -2/sqrt(pi) e^(-x^2) dx
differentiate(erfc_p, lambda g, x: _bell(g, x, -2))
# d erf_inv(x) = sqrt(pi)/2 e^(erf_inv(x)^2) dx
differentiate_by_result(
    erf_inv_p,
    lambda g, ans, x: mul(coefficient(x, math.sqrt(math.pi) / 2), mul(g, exp(square(ans)))))


def erf(x: ArrayLike) -> Array:
    """The error function, 2/sqrt(pi) times the integral of e^(-t^2) from 0 to x (DLMF 7.2.1).

    Args:
      x: an array or a number, of a floating dtype.

    Raises:
      TypeError: `x` is not of a floating dtype.

    >>> import pyjx as jax
    >>> float(jax.lax.erf(0.0))
    0.0
    """
    return erf_p.bind(operand("erf", x))


def erfc(x: ArrayLike, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """The complementary error function 1 - erf(x), accurate for large x (DLMF 7.2.2).

    Args:
      x: an array or a number, of a floating dtype.
      accuracy: how exact XLA computes it: None for what it does by itself, an `AccuracyMode`, or a
        `Tolerance`.

    Raises:
      TypeError: `x` is not of a floating dtype.

    >>> import pyjx as jax
    >>> float(jax.lax.erfc(0.0))
    1.0
    """
    return erfc_p.bind(operand("erfc", x), accuracy=accurate("erfc", accuracy))


def erf_inv(x: ArrayLike) -> Array:
    """The number whose error function is x, for x in [-1, 1] (DLMF 7.17.1).

    Args:
      x: an array or a number, of a floating dtype.

    Raises:
      TypeError: `x` is not of a floating dtype.

    >>> import pyjx as jax
    >>> float(jax.lax.erf_inv(0.0))
    0.0
    """
    return erf_inv_p.bind(operand("erf_inv", x))


# -- modified Bessel functions ---------------------------------------------------------------------

# Chebyshev coefficients of e^-x I_0(x) in x/4 - 1 on [0, 8], and of sqrt(x) e^-x I_0(x) in
# 16/x - 1 on [8, inf): the function's values at Chebyshev nodes, transformed with 40 digits.
_I0E_SMALL = (
    0.33839763720473804, -0.3046826723431984, 0.17162090152220878, -0.094901097048047644,
    0.049305284239670708, -0.023737414805899469, 0.010546460394594998, -0.0043243099950505759,
    0.0016394756169413358, -0.00057637557453858237, 0.00018850288509584166,
    -5.7541950100821037e-5, 1.6448448070728897e-5, -4.4167383584587506e-6, 1.1173875391201037e-6,
    -2.6707938539406117e-7, 6.0469950225419189e-8, -1.300025009986248e-8, 2.6598237246823867e-9,
    -5.1897956016352629e-10, 9.6758090353732369e-11, -1.7268262914415557e-11,
    2.9550526631296398e-12, -4.8564467831119295e-13, 7.6761854986049356e-14,
    -1.1685332877993452e-14, 1.715391285555133e-15, -2.4312798465479547e-16,
    3.3307945188222381e-17,
)
_I0E_LARGE = (
    0.40224520550705442, 0.0033691164782556941, 6.889758346916824e-5, 2.8913705208347565e-6,
    2.0489185894690637e-7, 2.2666689904981781e-8, 3.3962320257083863e-9, 4.9406023882249696e-10,
    1.1889147107846438e-11, -3.1499165279632414e-11, -1.3215811840447713e-11,
    -1.7941785315068061e-12, 7.1801244513836662e-13, 3.8527783827421427e-13,
    1.5400862175214098e-14, -4.1505693472872221e-14, -9.5548466988283076e-15,
    3.8116806693526224e-15, 1.7725601330565264e-15, -3.4254856196772191e-16,
    -2.8276239805165835e-16, 3.4612228676974611e-17, 4.46562142029676e-17,
)


def _chebyshev(t: Value, coefficients: tuple[float, ...]) -> Array:
    # Clenshaw's recurrence: b_k = c_k + 2 t b_(k+1) - b_(k+2); the sum is c_0 + t b_1 - b_2.
    eps = float(dtypes.finfo(get_aval(t).dtype).eps)
    used = [c for c in coefficients if math.fabs(c) > eps / 16]
    twice = add(t, t)
    b1 = b2 = like(t, 0)
    for c in reversed(used[1:]):
        b1, b2 = add(sub(mul(twice, b1), b2), like(t, c)), b1
    return add(sub(mul(t, b1), b2), like(t, used[0]))


def _bessel_i0e(x: Value) -> Array:
    size = abs(x)
    eight = like(size, 8)
    is_small = le(size, eight)
    constant = full_aval(get_aval(size), 8)
    near = select(is_small, size, constant)
    far = select(is_small, constant, size)
    small = _chebyshev(sub(mul(near, like(x, 0.25)), like(x, 1)), _I0E_SMALL)
    large = _chebyshev(sub(div(like(x, 16), far), like(x, 1)), _I0E_LARGE)
    return select(is_small, small, mul(large, rsqrt(far)))


bessel_i0e_p = elementwise("bessel_i0e", FLOATING,
                           decomposition=in_single(_bessel_i0e))
bessel_i1e_p = elementwise("bessel_i1e", FLOATING)
# With I_0' = I_1: d (e^-|x| I_0(x)) = (e^-|x| I_1(x) - sign(x) e^-|x| I_0(x)) dx
differentiate_by_result(
    bessel_i0e_p, lambda g, ans, x: mul(g, sub(bessel_i1e(x), mul(sign(x), ans))))


def _bessel_i1e_tangent(g: Value, ans: Value, x: Value) -> Array:
    # I_1'(x) = I_0(x) - I_1(x)/x, which is 1/2 at 0
    aval = get_aval(x)
    eps = dtypes.finfo(aval.dtype).eps
    regular = gt(abs(x), like(x, eps))
    safe = select(regular, x, full_aval(aval, eps))
    slope = sub(bessel_i0e(safe), mul(ans, add(sign(safe), integer_pow(safe, -1))))
    return mul(g, select(regular, slope, full_aval(aval, 0.5)))


differentiate_by_result(bessel_i1e_p, _bessel_i1e_tangent)


def bessel_i0e(x: ArrayLike) -> Array:
    """The modified Bessel function I_0 (DLMF 10.25.2), scaled: e^-|x| I_0(x).

    Args:
      x: an array or a number, of a floating dtype.

    Raises:
      TypeError: `x` is not of a floating dtype.

    >>> import pyjx as jax
    >>> round(float(jax.lax.bessel_i0e(0.0)), 5)
    1.0
    """
    return bessel_i0e_p.bind(operand("bessel_i0e", x))


def bessel_i1e(x: ArrayLike) -> Array:
    """The modified Bessel function I_1 (DLMF 10.25.2), scaled: e^-|x| I_1(x).

    Args:
      x: an array or a number, of a floating dtype.

    Raises:
      TypeError: `x` is not of a floating dtype.

    >>> import pyjx as jax
    >>> float(jax.lax.bessel_i1e(0.0))
    0.0
    """
    return bessel_i1e_p.bind(operand("bessel_i1e", x))
