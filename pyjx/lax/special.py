"""Special functions: error function, Bessel functions, the gamma function with its derivatives, and
the Hurwitz zeta function; what all special functions share.

Their definitions are those of the NIST Digital Library of Mathematical Functions (DLMF).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pyjx.core import dtypes
from pyjx.core.arithmetic import transcendental
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import get_aval
from pyjx.core.primitive import AS_PROGRAMS, DEAR
from pyjx.core.scalars import scalar_constant
from pyjx.engine.rules import jvp_by_operand, refused
from pyjx.engine.tangents import full_aval
from pyjx.engine.types import Value, Values
from pyjx.lax.common import operand
from pyjx.lax.compare import abs, clamp, gt, le, min, select, sign
from pyjx.lax.elementwise import (
    FLOATING,
    RoundingMethod,
    add,
    ceil,
    coefficient,
    differentiate,
    differentiate_by_result,
    div,
    elementwise,
    floor,
    horner,
    in_single,
    integer_pow,
    like,
    mul,
    neg,
    operands,
    round,
    square,
    sub,
)
from pyjx.lax.loops import while_loop
from pyjx.lax.reductions import reduce_or
from pyjx.lax.transcendental import AccuracyMode, Tolerance, accurate, exp, log, log1p, pow, rsqrt

# -- what they share -------------------------------------------------------------------------------


def constant(x: Value, value: float) -> Array:
    """An array like `x`, filled with `value`."""
    return full_aval(get_aval(x).strip_weak_type(), value)


def where(condition: Value, x: Value, value: float) -> Array:
    """`x`, but `value` where the condition holds."""
    return select(condition, constant(x, value), x)


def any_of(x: Value) -> Array:
    return reduce_or(x, tuple(range(get_aval(x).ndim)))


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


bessel_i0e_p = elementwise("bessel_i0e", FLOATING, decomposition=in_single(_bessel_i0e))
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


# -- the gamma function ----------------------------------------------------------------------------

# The logarithm is precise also where it vanishes: at 1 and 2. Arguments between -1/2 and a bound
# are brought to [3/2, 5/2) by the recurrence Gamma(y + 1) = y Gamma(y), where a series about 2
# serves (DLMF 5.7.3 with z = y - 2):
#
#     log Gamma(2 + z) = (1 - gamma) z + sum_k (-1)^k (zeta(k) - 1) z^k / k,  k = 2, 3, ...
#
# Above the bound it is Stirling's series (DLMF 5.11.1), below -1/2 the reflection formula (5.5.3).

# -- the logarithm ---------------------------------------------------------------------------------


def _zeta_minus_one(k: int) -> float:
    # the first terms, and the rest by Euler and Maclaurin (DLMF 25.2.9)
    n = 40
    rest = [n ** (1 - k) / (k - 1), -(n**-k) / 2, k * n ** (-k - 1) / 12]
    rest.append(-math.prod(range(k, k + 3)) * n ** (-k - 3) / 720)
    rest.append(math.prod(range(k, k + 5)) * n ** (-k - 5) / 30240)
    return math.fsum([*[i**-k for i in range(2, n + 1)], *rest])


_EULER = 0.57721566490153286
_ABOUT_TWO = [1 - _EULER, *[(-1) ** k * _zeta_minus_one(k) / k for k in range(2, 30)]]
# B_2k / (2k (2k - 1))
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


def _polynomial(x: Array, coefficients: Sequence[float]) -> Array:
    return horner(x, *[like(x, c) for c in coefficients])


# (-1)^k pi^(2k+1) / (2k+1)!: sin(pi r)/r in r^2, for |r| <= 1/2
_SINE_OF_HALF_TURNS = [(-1) ** k * math.pi ** (2 * k + 1) / math.factorial(2 * k + 1)
                       for k in range(11)]


def _recurrence(y: Array, terms: int, steps: int) -> tuple[Array, Array, Array]:
    """For y in [-1/2, 5/2 + steps): log Gamma of the number in [3/2, 5/2), whether that is above y,
    and the product of the numbers in between."""
    n = floor(y - 1.5)  # how far it is from [3/2, 5/2)
    z = y - (n + 2)
    near_two = z * _polynomial(z, _ABOUT_TWO[:terms])
    one = constant(y, 1)
    below = n < 0
    factor = select(below, y, one)
    factor = factor * select(n < -1, y + 1, one)
    for k in range(1, steps + 1):
        factor = factor * select(n < k, one, y - k)
    return near_two, below, abs(factor)


def _by_stirling(y: Array, log_y: Array, terms: int) -> Array:
    inverse = integer_pow(y, -1)
    series = inverse * _polynomial(inverse * inverse, _STIRLING[:terms])
    # (y - 1/2) log y - y without the difference of infinities
    main = (y - 0.5) * (log_y - 1)
    return main + (0.5 * math.log(2 * math.pi) - 0.5 + series)


@in_single
def _log_gamma(x: Array) -> Array:
    """log |Gamma(x)|."""
    single = get_aval(x).dtype == np.float32
    bound, terms, steps, stirling, sine = (4.5, 13, 2, 4, 7) if single else (9.5, 29, 7, 7, 11)
    reflected = x < -0.5
    y = select(reflected, 1 - x, x)
    large = y >= bound
    near_two, below, factor = _recurrence(y, terms, steps)
    log_of_one = log(select(large, y, factor))
    low = near_two + select(below, -log_of_one, log_of_one)
    positive = select(large, _by_stirling(y, log_of_one, stirling), low)
    # |Gamma(x) Gamma(1 - x) sin(pi x)| = pi
    safe = clamp(like(x, -1e30), x, like(x, 0))
    rest = safe - round(safe, RoundingMethod.TO_NEAREST_EVEN)
    size = abs(rest * _polynomial(rest * rest, _SINE_OF_HALF_TURNS[:sine]))
    negative = math.log(math.pi) - log(size) - positive
    # Numbers below -1e30 are poles, as all integers, but `positive` may have overflowed by then.
    infinite = (x == np.inf) | ((x == 0) | (x < -1e30))
    return where(infinite, select(reflected, negative, positive), np.inf)


# -- the Hurwitz zeta function ---------------------------------------------------------------------

_TERMS = 10  # that are added one by one
# B_2j / (2j)!, DLMF 24.2
_BERNOULLI = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000,
             1 / 74724249600, -3617 / 10670622842880000)


@in_single
def _zeta_slope(s: Array, q: Array) -> Array:
    """d zeta(s, q)/ds for s > 1, by the Euler-Maclaurin formula: DLMF 25.11.5, differentiated."""
    # sum of (q + k)^-s log(q + k)
    total = like(s, 0)
    for k in range(_TERMS):
        length = log(q + k)
        total = total + length * exp(-(s * length))
    # a^(1-s)/(s - 1) (log a + 1/(s - 1)), where a = q + _TERMS
    a = q + _TERMS
    length = log(a)
    power = exp(-(s * length))
    beyond = s - 1
    total = total + a * power / beyond * (length + 1 / beyond)
    # a^-s (log a c - dc/ds), where c = 1/2 + sum of B_2j/(2j)! (s)_(2j-1) a^(1-2j)
    correction, slope = like(s, 0.5), like(s, 0)
    rising, rate = s / a, 1 / a  # (s)_(2j-1) a^(1-2j) and its derivative
    for j, factor in enumerate(_BERNOULLI):
        correction = correction + factor * rising
        slope = slope + factor * rate
        for i in (2 * j + 1, 2 * j + 2):
            step = (s + i) / a
            rising, rate = rising * step, rate * step + rising / a
    total = total + power * (length * correction - slope)
    return where(s < 1, -total, math.nan)


def _of_positive(s: Array, q: Array) -> Array:
    """zeta(s, q) for s > 1 and q > 0, by the Euler-Maclaurin formula (DLMF 25.11.5).

    In units of q^-s, so that one power has to be exact: ((q + k)/q)^-s is at most 1.
    """
    terms, rest = (5, 4) if get_aval(q).dtype == np.float32 else (_TERMS, len(_BERNOULLI))

    def share(k: int) -> Array:
        return exp(-(s * log1p(k / q)))

    total = constant(q, 1)
    for k in range(1, terms):
        total = total + share(k)
    a = q + terms
    inverse = integer_pow(a, -1)
    # beyond, where the share is 0, powers of s/a would overflow
    ratio = min(s * inverse, like(s, 1e3))
    correction, rising = like(s, 0.5), ratio
    for j, factor in enumerate(_BERNOULLI[:rest]):
        correction = correction + factor * rising
        for i in (2 * j + 1, 2 * j + 2):
            rising = rising * (ratio + i * inverse)
    less, power = s - 1, share(terms)
    total = (total + power * correction) / q
    integral = power * min(a / q, like(q, 1e30)) / less
    # q^-s alone underflows for large q, for which the integral is about 1/(s - 1)
    return pow(q, -less) * (total + integral)


def _is_even(s: Array) -> Array:
    half = s * 0.5
    return half == floor(half)


def _over_all(s: Array, q: Array) -> Array:
    """The sum of (q + k)^-s for s > 1; below 0, where s is to be whole, of the numbers there too.

    These have the powers of their opposites, but for the sign: they are a sum of all opposites less
    what is beyond the first. A loop adds the three sums, or the first one alone where it is all.
    """
    below = (q < 0) & (q != floor(q))

    def step(i: Array, total: Array) -> Values:
        first, second = i == 0, i == 1
        start = select(first, q - floor(q), select(second, ceil(q) - q, 1 - q))
        part = _of_positive(s, select(below, start, q))
        odd = ~_is_even(s)
        # the second sum counts with the sign of the powers, the third one with the opposite sign
        part = select(~first & (odd == second), -part, part)
        return [i + 1, total + select(first | below, part, zero)]

    zero = constant(q, 0)
    parts = select(any_of(below), np.int32(3), np.int32(1))
    state: Any = [np.int32(0), zero]
    _, total = while_loop(lambda c: c[0] < parts, lambda c: step(*c), state)
    return total  # type: ignore[no-any-return]


@in_single
def _hurwitz_zeta(s: Array, q: Array) -> Array:
    """zeta(s, q); at poles infinite for even s, and nan for others, which have both signs there."""
    nonpositive, whole = q <= 0, q == floor(q)
    total = _over_all(select(s > 1, s, constant(s, 2)), q)
    total = where(q == np.inf, total, 0.0)
    unknown = nonpositive & (whole | (s != floor(s)))
    total = where(~(s >= 1) | unknown, total, math.nan)
    total = where(nonpositive & whole & _is_even(s), total, math.inf)
    return where(s == 1, total, math.inf)


@in_single
def _polygamma(m: Array, x: Array) -> Array:
    """The m-th derivative of psi: (-1)^(m+1) m! zeta(m + 1, x) for m > 0, DLMF 25.11.12."""
    order = m + 1
    size = exp(lgamma(order)) * _hurwitz_zeta(order, x)
    value = select(_is_even(m), -size, size)
    value = select(m == 0, digamma(x), value)
    fraction = m - floor(m)  # nan at infinity
    return select((m >= 0) & (fraction == 0), value, constant(m, math.nan))


# -- the operations --------------------------------------------------------------------------------

lgamma_p = elementwise("lgamma", FLOATING, arithmetic=transcendental, decomposition=_log_gamma)
digamma_p = elementwise("digamma", FLOATING, arithmetic=transcendental)
polygamma_p = elementwise("polygamma", FLOATING, FLOATING, decomposition=_polygamma)
zeta_p = elementwise("zeta", FLOATING, FLOATING, decomposition=_hurwitz_zeta)
# d log |Gamma(x)| = psi(x) dx
differentiate(lgamma_p, lambda g, x: mul(g, digamma(x)))

# d psi(x) = psi'(x) dx
differentiate(digamma_p, lambda g, x: mul(g, polygamma(coefficient(x, 1), x)))
# d/dx psi^(m)(x) = psi^(m+1)(x)
polygamma_p.define(jvp=jvp_by_operand(
    polygamma_p, refused("polygamma gradient with respect to m is not supported"),
    lambda g, m, x: mul(g, polygamma(add(m, like(m, 1)), x))))
# d/dq zeta(s, q) = -s zeta(s + 1, q)
zeta_p.define(jvp=jvp_by_operand(
    zeta_p, lambda g, s, q: mul(g, _zeta_slope(s, q)),
    lambda g, s, q: mul(g, mul(neg(s), zeta(add(s, like(s, 1)), q)))))


def lgamma(x: ArrayLike) -> Array:
    """The logarithm of |Gamma(x)| (DLMF 5.2.1): infinite at 0, -1, -2, ...

    Args:
      x: an array or a number, of a floating dtype.

    Raises:
      TypeError: `x` is not of a floating dtype.

    >>> import pyjx as jax
    >>> round(float(jax.lax.lgamma(5.0)), 4)
    3.1781
    """
    return lgamma_p.bind(operand("lgamma", x))


def digamma(x: ArrayLike) -> Array:
    """The logarithmic derivative of the gamma function, psi(x) (DLMF 5.2.2).

    Args:
      x: an array or a number, of a floating dtype.

    Raises:
      TypeError: `x` is not of a floating dtype.

    >>> import pyjx as jax
    >>> round(float(jax.lax.digamma(1.0)), 4)
    -0.5772
    """
    return digamma_p.bind(operand("digamma", x))


def polygamma(m: ArrayLike, x: ArrayLike) -> Array:
    """The m-th derivative of `digamma` at x (DLMF 5.15).

    Args:
      m: an array of a floating dtype, whose elements are integers.
      x: an array of the same dtype.

    Raises:
      TypeError: the dtypes differ or are not floating; the shapes do not broadcast.

    >>> import pyjx as jax
    >>> round(float(jax.lax.polygamma(1.0, 1.0)), 4)
    1.6449
    """
    return polygamma_p.bind(*operands("polygamma", m, x))


def zeta(x: ArrayLike, q: ArrayLike) -> Array:
    """The Hurwitz zeta function, the sum of (k + q)^-x over k = 0, 1, ... (DLMF 25.11.1).

    Args:
      x: the exponent, an array or a number of a floating dtype.
      q: what is added to k, of the same dtype. Shapes are equal, but for axes of size 1; one may be
        a scalar. Nothing is promoted.

    Raises:
      TypeError: the dtypes differ or are not floating; the shapes do not broadcast.

    >>> import pyjx as jax
    >>> round(float(jax.lax.zeta(2.0, 1.0)), 4)
    1.6449
    """
    return zeta_p.bind(*operands("zeta", x, q))
