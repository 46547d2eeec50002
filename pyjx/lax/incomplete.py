"""The incomplete gamma and beta functions, and their derivatives in the shape parameter.

Series and continued fractions run until every element has converged. DLMF is the NIST Digital
Library of Mathematical Functions; Lentz's method is that of Press et al., Numerical Recipes,
3rd edition, section 5.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import get_aval
from pyjx.engine.forward import jvp_flat
from pyjx.engine.primitives import cast
from pyjx.engine.rules import jvp_by_operand, refused
from pyjx.engine.tangents import Zero, full_aval
from pyjx.engine.types import Tangent, Values
from pyjx.lax.common import broadcast_shapes, check_same_dtypes, operand
from pyjx.lax.compare import abs, clamp, gt, min, select, sign
from pyjx.lax.elementwise import (
    FLOATING,
    add,
    broadcast_operands,
    elementwise,
    in_single,
    integer_pow,
    like,
    mul,
    neg,
    operands,
    sub,
)
from pyjx.lax.loops import while_loop
from pyjx.lax.special import any_of, constant, digamma, erfc, lgamma, where
from pyjx.lax.transcendental import exp, log, log1p, sqrt

MAX_ITERATIONS = 10_000
LARGE = 1e5  # from here on the gamma functions take their asymptotic form


def _epsilon(x: Array) -> Array:
    return like(x, dtypes.finfo(get_aval(x).dtype).eps)


def _tiny(x: Array) -> float:
    # far from underflow, and so is its inverse from overflow
    return 1e-30 if get_aval(x).dtype == np.float32 else 1e-200


def _until_converged(step: Callable[..., Any], *init: Array, at_once: int = 1) -> list[Any]:
    """Iterate `step(n, *state) -> (active, *state)` from n = 1 until no element is active.

    An iteration reads and writes all arrays and asks whether any element is active, which costs as
    much as a short step: so it may take some `at_once`, the last of which tells what is active.
    """
    first = init[0]

    def cond(n: Array, active: Array, *state: Array) -> Array:
        return (n < MAX_ITERATIONS) & any_of(active)

    def body(n: Array, active: Array, *state: Array) -> Values:
        after: Any = state
        for _ in range(at_once):
            still, *after = step(cast(n, get_aval(first).dtype), *after)
            n = n + 1
        return [n, active & still, *[
            b if a is b else select(active, b, a) for a, b in zip(state, after, strict=True)]]

    active = first == first
    first_state: Any = [np.int32(1), active, *init]
    done = while_loop(lambda s: cond(*s), lambda s: body(*s), first_state)
    return done[2:]  # type: ignore[no-any-return]


# -- gamma -----------------------------------------------------------------------------------------


def _gamma_series(a: Array, x: Array) -> Array:
    # DLMF 8.7.1: P(a, x) = x^a e^-x / Gamma(a + 1) S, where S = sum_n x^n / ((a+1) ... (a+n)).
    def step(n: Array, a: Array, x: Array, term: Array, total: Array) -> Values:
        after = term * (x / (a + n))
        total = total + after
        return after > _epsilon(a) * total, a, x, after, total

    one = constant(x, 1)
    *_, total = _until_converged(step, a, x, one, one, at_once=3)
    return total


def _gamma_series_slope(a: Array, x: Array) -> tuple[Array, Array]:
    """`_gamma_series` and its derivative in a."""
    # The derivative of the n-th term t_n in a is -t_n sum_{k<=n} 1 / (a+k).
    def step(n: Array, a: Array, x: Array, term: Array, slope: Array, total: Array,
             total_slope: Array) -> Values:
        k = a + n
        after = term * (x / k)
        slope = slope * (x / k) - after / k
        total, total_slope = total + after, total_slope + slope
        eps = _epsilon(a)
        active = (after > eps * total) | (abs(slope) > eps * abs(total_slope))
        return active, a, x, after, slope, total, total_slope

    zero, one = constant(x, 0), constant(x, 1)
    *_, total, slope = _until_converged(step, a, x, one, zero, one, zero)
    return total, slope


def _gamma_fraction(a: Array, x: Array) -> Array:
    # DLMF 8.9.2, contracted: Q(a, x) = x^a e^-x / Gamma(a) h, where
    # h = 1/(x+1-a - 1(1-a)/(x+3-a - 2(2-a)/(x+5-a - ...))), by Lentz's method.
    def step(n: Array, a: Array, x: Array, c: Array, d: Array, h: Array) -> Values:
        numerator = n * (a - n)
        b = x - a + (2 * n + 1)
        d = integer_pow(numerator * d + b, -1)
        c = b + numerator / c
        factor = c * d
        return abs(factor - 1) > _epsilon(a), a, x, c, d, h * factor

    d = integer_pow(x - a + 1, -1)
    *_, h = _until_converged(step, a, x, constant(x, 1 / _tiny(x)), d, d, at_once=3)
    return h


def _gamma_fraction_slope(a: Array, x: Array) -> tuple[Array, Array]:
    """`_gamma_fraction` and its derivative in a; so stands one next to each quantity."""
    def step(n: Array, a: Array, x: Array, c: Array, dc: Array, d: Array, dd: Array, h: Array,
             dh: Array) -> Values:
        numerator, d_numerator = n * (a - n), n
        b = x - a + (2 * n + 1)  # and its derivative is -1
        t = numerator * d + b
        dt = d_numerator * d + numerator * dd - 1
        d, dd = _inverse(t, dt)
        ratio = numerator / c
        dc = d_numerator / c - ratio * dc / c - 1
        c = b + ratio
        factor, d_factor = c * d, dc * d + c * dd
        change = h * d_factor
        dh, h = dh * factor + change, h * factor
        eps = _epsilon(a)
        active = (abs(factor - 1) > eps) | (abs(change) > eps * abs(dh))
        return active, a, x, c, dc, d, dd, h, dh

    b = x - a + 1
    d, dd = _inverse(b, constant(x, -1))
    c, zero = constant(x, 1 / _tiny(x)), constant(x, 0)
    *_, h, dh = _until_converged(step, a, x, c, zero, d, dd, d, dd)
    return h, dh


def _inverse(x: Array, dx: Array) -> tuple[Array, Array]:
    # d(1/x) = -dx / x^2
    y = integer_pow(x, -1)
    return y, -(dx * (y * y))


def _gamma_density(a: Array, x: Array) -> Array:
    # x^a e^-x / Gamma(a + 1); for large a by Stirling's series (DLMF 5.11.1), where the large
    # parts of the exponent cancel: a log x - x - log Gamma(a+1)
    #   = -a (m - log(1+m)) - log(2 pi a)/2 - 1/(12 a) + 1/(360 a^3) - ..., m = (x - a)/a

    small = exp(a * log(x) - x - lgamma(a + 1))
    exponent = -(a * _excess_of((x - a) / a, x / a) + _stirling_rest(a))
    large = exp(exponent) / sqrt(2 * math.pi * a)
    return select(a > 10, large, small)


def _stirling_rest(a: Array) -> Array:
    # 1/(12 a) - 1/(360 a^3) + ..., DLMF 5.11.1
    r = integer_pow(a, -1)
    r2 = r * r
    tail = like(a, 0)
    for c in (1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12):
        tail = tail * r2 + c
    return tail * r


def _excess_of(m: Array, ratio: Array) -> Array:
    # m - log(1 + m); far below 0, ratio = 1 + m is not rounded as m is
    return select(m < -0.5, m - log(ratio), _excess(m))


def _excess(m: Array) -> Array:
    # m - log(1 + m), near 0 by its series m^2/2 - m^3/3 + m^4/4 - ...
    series = constant(m, 0)
    for k in range(11, 1, -1):
        series = series * m + (-1) ** k / k
    return select(abs(m) < 0.02, m * m * series, m - log1p(m))


def _deviation(a: Array, x: Array) -> Array:
    """(x - a)/a, for large a; where P is 0 or 1 anyway it is kept from being extreme."""
    m = (x - a) / a
    return clamp(like(m, -0.9), m, like(m, 9))


def _upper_for_large(a: Array, x: Array) -> Array:
    # DLMF 8.12.4: Q(a, x) = erfc(eta sqrt(a/2)) / 2 + R, where eta^2 / 2 = m - log(1 + m),
    # m = (x - a)/a, with the first terms of R = e^(-a eta^2/2) / sqrt(2 pi a) (c_0 + ...),
    # c_0 = -1/3 + eta/12 - 2 eta^2/135 + ...; R is negligible where eta is not small.

    m = _deviation(a, x)
    half_square = _excess(m)
    eta = sqrt(2 * half_square) * sign(m)
    c0 = like(a, 0)
    for c in (1 / 864, -2 / 135, 1 / 12, -1 / 3):
        c0 = c0 * eta + c
    rest = exp(-(a * half_square)) * c0 / sqrt(2 * math.pi * a)
    return 0.5 * erfc(eta * sqrt(0.5 * a)) + rest


def _gamma_domain(a: Array, x: Array) -> tuple[Array, Array, tuple[Array, Array],
                                               tuple[Array, Array]]:
    """Which arguments the series is for, and arguments that are harmless for it and the fraction.

    Returns whether the series applies, `a`, and `a` and `x` for the series and for the fraction.
    """
    inside = (x > 0) & (a > 0)
    finite = (x < np.inf) & (a < np.inf)
    regular = inside & finite & (a < LARGE)
    by_series = (x < 1) | (x < a)
    safe_a = select(regular, a, constant(a, 1))
    for_series = select(regular & by_series, x, constant(x, 0.01))
    for_fraction = select(regular & ~by_series, x, constant(x, 100))
    return (by_series, safe_a, (select(by_series, safe_a, constant(a, 1)), for_series),
            (select(by_series, constant(a, 0.5), safe_a), for_fraction))


def _invalid(a: Array, x: Array) -> Array:
    nan = (a != a) | (x != x)
    return nan | ((x < 0) | (a < 0))


def _gamma_parts(a: Array, x: Array) -> tuple[Array, Array, Array]:
    """Whether the series applies, P(a, x) by the series and Q(a, x) by the fraction."""
    by_series, safe, (a_series, x_series), (a_fraction, x_fraction) = _gamma_domain(a, x)
    total = _gamma_series(a_series, x_series)
    h = _gamma_fraction(a_fraction, x_fraction)
    density = _gamma_density(safe, select(by_series, x_series, x_fraction))
    # Where `a` is small the product is 1 but for rounding.
    return by_series, min(density * total, like(x, 1)), density * a_fraction * h


def _gamma_limits(a: Array, x: Array, p: Array, at_zero: float, at_infinity: float) -> Array:
    """P or Q where an argument is 0 or infinite, or outside the domain."""
    p = where(a == np.inf, p, at_zero)
    p = where(x == np.inf, p, at_infinity)
    p = where(a == 0, p, at_infinity)
    p = where(x == 0, p, at_zero)
    both_zero = (a == 0) & (x == 0)
    both_infinite = (a == np.inf) & (x == np.inf)
    bad = _invalid(a, x) | (both_zero | both_infinite)
    return where(bad, p, np.nan)


@in_single
def lower_gamma(a: Array, x: Array) -> Array:
    """P(a, x), DLMF 8.2.4."""
    by_series, p, q = _gamma_parts(a, x)
    p = select(by_series, p, 1 - q)
    p = select(a < LARGE, p, 1 - _upper_for_large(a, x))
    return _gamma_limits(a, x, p, 0.0, 1.0)


@in_single
def upper_gamma(a: Array, x: Array) -> Array:
    """Q(a, x) = 1 - P(a, x), DLMF 8.2.4."""
    by_series, p, q = _gamma_parts(a, x)
    q = select(by_series, 1 - p, q)
    q = select(a < LARGE, q, _upper_for_large(a, x))
    return _gamma_limits(a, x, q, 1.0, 0.0)


def _slope_per_density(a: Array, x: Array) -> tuple[Array, Array, Array]:
    """(dP/da) / (x^a e^-x / Gamma(a+1)), and the arguments made harmless."""
    by_series, safe, (a_series, x_series), (a_fraction, x_fraction) = _gamma_domain(a, x)
    total, total_slope = _gamma_series_slope(a_series, x_series)
    h, h_slope = _gamma_fraction_slope(a_fraction, x_fraction)
    # d log(x^a e^-x / Gamma(a+1)) / da = log x - psi(a+1); of Q's factor, log x - psi(a).
    lower = total * (log(x_series) - digamma(a_series + 1)) + total_slope
    upper = h * (log(x_fraction) - digamma(a_fraction)) + h_slope
    safe_x = select(by_series, x_series, x_fraction)
    return select(by_series, lower, -(a_fraction * upper)), safe, safe_x


def _outside(a: Array, x: Array, value: Array) -> Array:
    """0 at the ends of the range of x, and nan outside the domain."""
    value = where((x == 0) | (x == np.inf), value, 0.0)
    return where(_invalid(a, x) | (a == 0), value, np.nan)


def _large_sample_slope(a: Array, x: Array) -> Array:
    # Along a quantile eta sqrt(a) is constant (DLMF 8.12.4), eta^2 / 2 = r - 1 - log r, r = x/a:
    # dx/da = r log(r) / (r - 1) + ...; near r = 1 the next term is 1/(6 a) (Cornish and Fisher).
    m = (x - a) / a
    log_ratio = select(m < -0.5, log(x) - log(a), log1p(m))
    level = m == 0
    around = 1 - 0.5 * m  # log(1 + m) / m, and its slope, at m = 0
    slope = select(level, around, log_ratio / select(level, constant(m, 1), m))
    return x * (slope + 1 / 6 / a) / a


@in_single
def lower_gamma_slope(a: Array, x: Array) -> Array:
    """dP(a, x)/da."""
    slope, safe_a, safe_x = _slope_per_density(a, x)
    slope = slope * _gamma_density(safe_a, safe_x)
    # dP/da = -dP/dx dx/da along a quantile
    ratio = 1 + _deviation(a, x)  # x/a
    large = -(_gamma_density(a, x) / ratio * _large_sample_slope(a, x))
    return _outside(a, x, select(a < LARGE, slope, large))


@in_single
def gamma_sample_slope(a: Array, x: Array) -> Array:
    """dx/da of a sample x of the gamma distribution, from P(a, x) = const: -(dP/da) / (dP/dx)."""
    slope, safe_a, safe_x = _slope_per_density(a, x)
    # dP/dx = x^(a-1) e^-x / Gamma(a)
    slope = -(slope * (safe_x / safe_a))
    return _outside(a, x, select(a < LARGE, slope, _large_sample_slope(a, x)))


# -- beta ------------------------------------------------------------------------------------------


def _beta_fraction(a: Array, b: Array, x: Array, y: Array, above: Array) -> Array:
    """I_x(a, b) / (x^a y^b / B(a, b)), for y = 1 - x and above = a y - b x >= 0.

    The even part of the fraction DLMF 8.17.22, in the form of DiDonato and Morris (1992),
    equation 9, whose terms are products of what is not rounded near 0.
    """
    tiny = _tiny(x)

    def nonzero(v: Array) -> Array:
        return where(abs(v) < tiny, v, tiny)

    def step(n: Array, a: Array, b: Array, x: Array, y: Array, above: Array, c: Array, d: Array,
             h: Array) -> Values:
        before = (a + (n - 1)) / (a + 2 * n - 1)
        after = (a + n) / (a + 2 * n + 1)
        both = (a + b + (n - 1)) / (a + 2 * n - 1)
        rest = n * (b - n) * x
        alpha = before * both * x * rest
        beta = n + rest / (a + 2 * n - 1) + after * (1 + above + n * (1 + y))
        d = integer_pow(nonzero(beta + alpha * d), -1)
        c = nonzero(beta + alpha / c)
        factor = c * d
        active = abs(factor - 1) > _epsilon(x)
        return active, a, b, x, y, above, c, d, h * factor

    first = a / (a + 1) * (1 + above)
    *_, h = _until_converged(step, a, b, x, y, above, first, constant(x, 0), first)
    return integer_pow(h, -1)


def _beta_deviance(a: Array, b: Array, x: Array) -> tuple[Array, Array]:
    # With n = a+b: -a log(x n/a) - b log((1-x) n/b) = a e(d/a) + b e(-d/b), d = x b - (1-x) a,
    # where e(m) = m - log(1+m): the large parts cancel (Loader 2000). And d.
    n, y = a + b, 1 - x
    d = x * b - y * a
    low = a * _excess_of(d / a, x * n / a)
    high = b * _excess_of(-(d / b), y * n / b)
    return low + high, d


def _gamma_rest(a: Array) -> Array:
    # log Gamma(a) - ((a - 1/2) log a - a + log(2 pi)/2)
    small = where(a > 10, a, 1.0)
    leading = (small - 0.5) * log(small) - small
    near = lgamma(small) - (leading + math.log(2 * math.pi) / 2)
    return select(a > 10, _stirling_rest(a), near)


def _beta_density(a: Array, b: Array, deviance: Array) -> Array:
    # x^a (1-x)^b / B(a, b), by Stirling's formula for the three gamma functions
    n = a + b
    rest = _gamma_rest(n) - (_gamma_rest(a) + _gamma_rest(b))
    scale = sqrt(a * (b / n) * (1 / (2 * math.pi)))
    return scale * exp(rest - deviance)


def _beta_for_large(a: Array, b: Array, deviance: Array, d: Array) -> Array:
    # DLMF 8.18.9 with its first term: eta^2 (a+b)/2 is the deviance, and
    # c_0 = 1/eta - sqrt(x0 (1-x0)) / (x-x0), x0 = a/(a+b), or (1 - 2 x0)/(3 sqrt(x0 (1-x0))) at x0.
    root, n = sqrt(deviance), a + b
    spread = sqrt(a) * sqrt(b / n)
    level = root < 0.01
    at_mean = (b / n - a / n) / (3 * spread)
    away = sign(d) / (where(level, root, 1.0) * math.sqrt(2)) - spread / where(d == 0, d, 1.0)
    c0 = select(level, at_mean, away) * (1 / math.sqrt(2 * math.pi))
    return 0.5 * erfc(-(sign(d) * root)) + exp(-deviance) * c0


def _beta_inside(a: Array, b: Array, x: Array) -> Array:
    """I_x(a, b) for 0 < x < 1 and parameters that are positive and finite."""
    one = like(x, 1)
    single = get_aval(x).dtype == np.float32
    deviance, d = _beta_deviance(a, b, x)
    limit = like(x, 1e5 if single else 1e8)
    large = (a > limit) & (b > limit)
    # The fraction is for x up to the mean; beyond it I_x(a, b) = 1 - I_{1-x}(b, a).
    # (The sign of d, a difference of products, may differ between two compilations of it.)
    swap = x > a / (a + b)
    above = select(swap, d, -d)
    above = where(large | (above < 0), above, 0.0)
    rest = 1 - x
    s, t = where(large, select(swap, b, a), 1.0), where(large, select(swap, a, b), 1.0)
    y, z = where(large, select(swap, rest, x), 0.5), where(large, select(swap, x, rest), 0.5)
    fraction = _beta_fraction(s, t, y, z, above)
    value = _beta_density(s, t, deviance) * fraction
    value = select(swap, 1 - value, value)
    return clamp(like(x, 0), select(large, _beta_for_large(a, b, deviance, d), value), one)


@in_single
def incomplete_beta(a: Array, b: Array, x: Array) -> Array:
    """I_x(a, b), DLMF 8.17.2."""
    valid = (a >= 0) & (b >= 0) & (x >= 0) & (x <= 1)
    regular = (x > 0) & (x < 1) & (a > 0) & (a < np.inf) & (b > 0) & (b < np.inf)
    value = _beta_inside(select(regular, a, constant(a, 1)), select(regular, b, constant(b, 1)),
                         select(regular, x, constant(x, 0.5)))
    value = where((a == 0) | (b == np.inf), value, 1.0)
    value = where((b == 0) | (a == np.inf), value, 0.0)
    value = where(x == 1, where(x == 0, value, 0.0), 1.0)
    contrary = ((a == 0) & (b == 0)) | ((a == np.inf) & (b == np.inf))
    return where(~valid | contrary, value, np.nan)


# -- the operations --------------------------------------------------------------------------------

def _density(a: Array, x: Array) -> Array:
    # dP(a, x)/dx = e^-x x^(a-1) / Gamma(a), DLMF 8.8.13; 0 at infinity, as at the largest number
    largest = float(dtypes.finfo(get_aval(x).dtype).max)
    x = select(gt(x, like(x, largest)), full_aval(get_aval(x), largest), x)
    return exp(sub(sub(mul(sub(a, like(a, 1)), log(x)), x), lgamma(a)))


igamma_p = elementwise("igamma", FLOATING, FLOATING, decomposition=lower_gamma)
igammac_p = elementwise("igammac", FLOATING, FLOATING, decomposition=upper_gamma)
igamma_grad_a_p = elementwise("igamma_grad_a", FLOATING, FLOATING, decomposition=lower_gamma_slope)
random_gamma_grad_p = elementwise("random_gamma_grad", FLOATING, FLOATING,
                                  decomposition=gamma_sample_slope)
igamma_p.define(jvp=jvp_by_operand(
    igamma_p, lambda g, a, x: mul(g, igamma_grad_a(a, x)),
    lambda g, a, x: mul(g, _density(a, x))))
# Q = 1 - P
igammac_p.define(jvp=jvp_by_operand(
    igammac_p, lambda g, a, x: neg(mul(g, igamma_grad_a(a, x))),
    lambda g, a, x: neg(mul(g, _density(a, x)))))
# d/dx dP/da = d/da dP/dx = (log x - psi(a)) dP/dx
igamma_grad_a_p.define(jvp=jvp_by_operand(
    igamma_grad_a_p,
    refused("igamma_grad_a gradient with respect to a is not supported"),
    lambda g, a, x: mul(g, mul(_density(a, x), sub(log(x), digamma(a))))))


def _sample_slope_rule(i: int) -> Callable[..., Tangent]:
    """The rule of an operand: there is no formula, so what computes the number is differentiated,
    which gives the slope at each element; the tangent times it is linear."""

    def rule(g: Array, *operands: Array) -> Tangent:
        units = [full_aval(get_aval(v), 1) if j == i else Zero.of_primal(v)
                 for j, v in enumerate(operands)]
        _, (slope,) = jvp_flat(lambda a, x: [gamma_sample_slope(a, x)], operands, units)
        return mul(g, slope)

    return rule


random_gamma_grad_p.define(jvp=jvp_by_operand(
    random_gamma_grad_p, _sample_slope_rule(0), _sample_slope_rule(1)))


def igamma(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized lower incomplete gamma function P(a, x) (DLMF 8.2.4), for a, x >= 0.

    The integral of t^(a-1) e^-t from 0 to x, divided by Gamma(a).

    Args:
      a: the parameter, positive: an array or a number of a floating dtype.
      x: the end of the integral, not negative, of the same dtype. Shapes are equal, but for axes of
        size 1; one may be a scalar. Nothing is promoted.

    Raises:
      TypeError: the dtypes differ or are not floating; the shapes do not broadcast.

    >>> import pyjx as jax
    >>> round(float(jax.lax.igamma(1.0, 1.0)), 4)
    0.6321
    """
    return igamma_p.bind(*operands("igamma", a, x))


def igammac(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized upper incomplete gamma function 1 - P(a, x) (DLMF 8.2.4), for a, x >= 0.

    Args:
      a: the parameter, positive: an array or a number of a floating dtype.
      x: the end of the integral, not negative, of the same dtype. Shapes are equal, but for axes of
        size 1; one may be a scalar. Nothing is promoted.

    Raises:
      TypeError: the dtypes differ or are not floating; the shapes do not broadcast.

    >>> import pyjx as jax
    >>> round(float(jax.lax.igammac(1.0, 1.0)), 4)
    0.3679
    """
    return igammac_p.bind(*operands("igammac", a, x))


def igamma_grad_a(a: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of `igamma(a, x)` in a.

    Args:
      a: the parameter, positive: an array or a number of a floating dtype.
      x: the end of the integral, not negative, of the same dtype. Shapes are equal, but for axes of
        size 1; one may be a scalar. Nothing is promoted.

    Raises:
      TypeError: the dtypes differ or are not floating; the shapes do not broadcast.

    >>> import pyjx as jax
    >>> round(float(jax.lax.igamma_grad_a(1.0, 1.0)), 3)
    -0.432
    """
    return igamma_grad_a_p.bind(*operands("igamma_grad_a", a, x))


_halves = frozenset((np.dtype(np.float16), np.dtype(dtypes.bfloat16)))


def random_gamma_grad(a: ArrayLike, x: ArrayLike) -> Any:
    """The derivative in a of a sample x of the gamma distribution with shape a.

    It is that of the sample at a fixed quantile: -(dP/da) / (dP/dx), with P = `igamma`.

    Args:
      a: the parameter of the distribution: an array or a number of a floating dtype.
      x: a sample of it, of the same dtype. Shapes are equal, but for axes of size 1; one may be a
        scalar. Nothing is promoted.

    Raises:
      TypeError: the dtypes are not floating, or they differ and that of `a` is not of 16 bits; the
        shapes do not broadcast.

    >>> import pyjx as jax
    >>> round(float(jax.lax.random_gamma_grad(1.0, 1.0)), 3)
    1.174
    """
    shapes = [get_aval(operand("random_gamma_grad", v, i)).shape for i, v in enumerate((a, x))]
    try:
        broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError("random_gamma_grad: Incompatible shapes for broadcasting: "
                         f"shapes={shapes}") from None
    if get_aval(a).dtype in _halves:  # which is computed in float32: any number goes with it
        x = cast(x, get_aval(a).dtype)
    a, x = operands("random_gamma_grad", a, x)
    if get_aval(a).ndim:  # samples are of strong type
        a, x = cast(a, get_aval(a).dtype), cast(x, get_aval(x).dtype)
    return random_gamma_grad_p.bind(a, x)


def _betainc_slope(g: Array, a: Array, b: Array, x: Array) -> Array:
    # dI/dx = x^(a-1) (1-x)^(b-1) / B(a, b), DLMF 8.17.2
    one = like(x, 1)
    log_beta = sub(add(lgamma(a), lgamma(b)), lgamma(add(a, b)))
    exponent = add(mul(sub(b, one), log1p(neg(x))), mul(sub(a, one), log(x)))
    return mul(g, exp(sub(exponent, log_beta)))


_NO_BETA = refused("Betainc gradient with respect to a and b not supported.")
regularized_incomplete_beta_p = elementwise("regularized_incomplete_beta", FLOATING, FLOATING,
                                            FLOATING, decomposition=incomplete_beta)
regularized_incomplete_beta_p.define(jvp=jvp_by_operand(
    regularized_incomplete_beta_p, _NO_BETA, _NO_BETA, _betainc_slope))


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularized incomplete beta function I_x(a, b) (DLMF 8.17.2), for x in [0, 1].

    The integral of t^(a-1) (1-t)^(b-1) from 0 to x, divided by that from 0 to 1.

    Args:
      a, b: the parameters, positive: arrays or numbers of a floating dtype.
      x: the end of the integral, of the same dtype. Shapes are equal, but for axes of size 1; one
        may be a scalar. Nothing is promoted.

    Raises:
      TypeError: the dtypes differ or are not floating; the shapes do not broadcast.
      ValueError: the derivative in a or b is asked for.

    >>> import pyjx as jax
    >>> round(float(jax.lax.betainc(1.0, 1.0, 0.25)), 4)
    0.25
    """
    a, b, x = operand("betainc", a), operand("betainc", b, 1), operand("betainc", x, 2)
    check_same_dtypes("betainc", get_aval(a), get_aval(b), get_aval(x))
    a, b, x = broadcast_operands("regularized_incomplete_beta", a, b, x)
    return regularized_incomplete_beta_p.bind(a, b, x)
