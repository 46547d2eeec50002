"""Hypergeometric functions. DLMF is the NIST Digital Library of Mathematical Functions."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike
from pyjx.numpy.creation import of_list
from pyjx.numpy.operands import numpy_function
from pyjx.scipy.special.gammas import is_pole, sign_of_gamma
from pyjx.scipy.special.operands import in_single, partials, reals
from pyjx.transforms.custom_jvp import custom_jvp

MAX_TERMS = 4000


def _product(factors: Sequence[Array]) -> Array:
    return functools.reduce(operator.mul, factors)


def _series(upper: Sequence[Array], lower: Sequence[Array], x: Array) -> Array:
    """The sum of (a_1)_k ... / ((b_1)_k ...) x^k/k! over k (DLMF 16.2.1).

    A polynomial ends before the zeros of what it is divided by, or the sum has a pole.
    """
    eps = dtypes.finfo(x.dtype).eps

    def body(s: Any) -> Any:
        k, term, total, _ = s
        bottom = _product([b + k for b in lower]) * (k + 1)
        term = term * (_product([a + k for a in upper]) * x / jnp.where(bottom == 0, 1, bottom))
        total = total + term
        return k + 1, term, total, jnp.abs(term) > eps / 4 * jnp.abs(total)

    one = jnp.ones_like(x)
    start = (jnp.zeros((), x.dtype), one, one, x == x)
    return lax.while_loop(lambda s: (s[0] < MAX_TERMS) & jnp.any(s[3]), body, start)[2]


def _slope(upper: Sequence[Array], lower: Sequence[Array], x: Array, place: int) -> Array:
    """The derivative of the sum in its parameter number `place`, those above first.

    The terms have the ratios r_k, and their derivatives u_k = u_(k-1) r_k + t_(k-1) r_k'.
    """
    eps = dtypes.finfo(x.dtype).eps
    below = place >= len(upper)

    def body(s: Any) -> Any:
        k, term, slope, total, _ = s
        tops, bottoms = [a + k for a in upper], [b + k for b in lower]
        bottom = _product(bottoms) * (k + 1)
        ratio = _product(tops) * x / bottom
        others = [f for i, f in enumerate(tops) if i != place]
        change = -ratio / bottoms[place - len(upper)] if below else _product([x, *others]) / bottom
        slope = slope * ratio + term * change
        term, total = term * ratio, total + slope
        return k + 1, term, slope, total, jnp.abs(slope) > eps / 4 * jnp.abs(total)

    zero = jnp.zeros_like(x)
    start = (jnp.zeros((), x.dtype), jnp.ones_like(x), zero, zero, x == x)
    return lax.while_loop(lambda s: (s[0] < MAX_TERMS) & jnp.any(s[4]), body, start)[3]


def _gamma_ratio(above: Sequence[Array], below: Sequence[Array], power: Any = 0) -> Array:
    """The product of the gamma functions of the first numbers over that of the others, times
    exp(power), which may be beyond what the dtype holds."""
    log = power + sum([lax.lgamma(x) for x in above]) - sum([lax.lgamma(x) for x in below])
    return _product([sign_of_gamma(x) for x in above]
                    + [jnp.where(is_pole(x), 0, sign_of_gamma(x)) for x in below]) * jnp.exp(log)


# -- 1F1 -------------------------------------------------------------------------------------------


def _large_argument(a: Array, b: Array, x: Array, power: Array) -> Array:
    """e^(power-x) M(a, b, x) for large x: Gamma(b)/Gamma(a) x^(a-b) 2F0 (DLMF 13.7.1)."""
    term = total = jnp.ones_like(x)
    for k in range(30):
        following = term * ((1 - a + k) * (b - a + k) / ((k + 1) * x))
        term = jnp.where(jnp.abs(following) < jnp.abs(term), following, 0)
        total = total + term
    return _gamma_ratio([b], [a], power + (a - b) * jnp.log(x)) * total


@custom_jvp
@in_single
def _hyp1f1(a: Array, b: Array, x: Array) -> Array:
    # M(a, b, x) = e^x M(b - a, b, -x), DLMF 13.2.39: without cancellation for x < 0
    limit, most = (60, 85) if dtypes.finfo(x.dtype).eps > 1e-10 else (200, 700)
    finite = is_pole(a)
    turned = (x < 0) & ~finite
    size = jnp.where(turned, -x, x)
    order = jnp.where(turned, b - a, a)
    asymptotic = (size > jnp.abs((1 - order) * (b - order))) | (size > most)
    large = (size > limit) & asymptotic & ~finite & ~is_pole(order)
    near = _series([jnp.where(large, 0, order)], [b], jnp.where(large, 0, size))
    far = _large_argument(jnp.where(large, order, 1), b, jnp.where(large, size, limit),
                          jnp.where(turned, 0, x))
    decay = jnp.exp(jnp.minimum(x, 0))
    near = jnp.where(turned, jnp.where(decay == 0, 0, decay * near), near)
    out = jnp.where(large, far, near)
    out = jnp.where(jnp.isnan(a + b + x), math.nan, out)
    early = finite & (a >= b)  # it ends before the pole
    return jnp.where(is_pole(b) & ~early, math.inf, out)


def _hyp1f1_slope(place: int) -> Any:
    @in_single
    def partial(out: Array, a: Array, b: Array, x: Array) -> Array:
        turned = x < 0
        order, size = jnp.where(turned, b - a, a), jnp.abs(x)
        in_order = _slope([order], [b], size, 0)
        if place == 0:
            return jnp.where(turned, -jnp.exp(jnp.minimum(x, 0)) * in_order, in_order)
        in_b = _slope([order], [b], size, 1)
        return jnp.where(turned, jnp.exp(jnp.minimum(x, 0)) * (in_order + in_b), in_b)

    return partial


# dM/dx = a/b M(a + 1, b + 1, x), DLMF 13.3.15
partials(_hyp1f1, _hyp1f1_slope(0), _hyp1f1_slope(1),
         lambda out, a, b, x: a / b * _hyp1f1(a + 1, b + 1, x))


@numpy_function
def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Kummer's confluent hypergeometric function M(a, b, x) = 1F1(a; b; x) (DLMF 13.2.2).

    The sum of (a)_k/(b)_k x^k/k!, for real arguments. There are derivatives in all of them; those
    in a and b are for |x| < 80.

    Args:
      a, b: the parameters; they broadcast with `x`.
      x: real numbers, an array or a number.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.special.hyp1f1(1.0, 1.0, 1.0)), 4)
    2.7183
    """
    return _hyp1f1(*reals("hyp1f1", *map(of_list, (a, b, x))))


# -- 2F1 -------------------------------------------------------------------------------------------


def _degree(a: Array, b: Array) -> Array:
    """The degree of the polynomial that the series of F(a, b; c; x) is; infinite if it is none."""
    return jnp.minimum(*[jnp.where(is_pole(y), -y, math.inf) for y in (a, b)])


def _almost_integral(x: Array) -> Array:
    return jnp.abs(x - jnp.round(x)) < math.sqrt(float(dtypes.finfo(x.dtype).eps))


def _about_one(a: Array, b: Array, c: Array, rest: Array) -> Array:
    """F(a, b; c; 1 - rest) by two series in `rest` (DLMF 15.8.4), where c - a - b is no integer."""
    gap = c - a - b
    first = _gamma_ratio([c, gap], [c - a, c - b]) * _series([a, b], [1 - gap], rest)
    scale = _gamma_ratio([c, -gap], [a, b], gap * jnp.log(rest))
    return first + scale * _series([c - a, c - b], [1 + gap], rest)


def _about_one_with_logarithm(a: Array, b: Array, m: Array, rest: Array) -> Array:
    """F(a, b; a + b + m; 1 - rest) for m = 0, 1, 2, ... (DLMF 15.8.10)."""
    eps = dtypes.finfo(rest.dtype).eps
    sign = 1 - 2 * (m % 2)
    finite = _gamma_ratio([jnp.maximum(m, 1), a + b + m], [a + m, b + m])
    infinite = -sign * _gamma_ratio([a + b + m], [a, b, m + 1], m * jnp.log(rest))

    def body(s: Any) -> Any:
        k, term, other, bracket, total, _ = s
        change = other * bracket
        total = total + jnp.where(k < m, term, 0) + change
        term = term * (a + k) * (b + k) * rest / ((k + 1) * jnp.where(k + 1 < m, k + 1 - m, 1))
        other = other * (a + m + k) * (b + m + k) * rest / ((k + 1) * (k + m + 1))
        bracket = bracket - 1 / (k + 1) - 1 / (k + m + 1) + 1 / (a + m + k) + 1 / (b + m + k)
        going = (k < m) | (jnp.abs(change) + jnp.abs(other) > eps / 4 * jnp.abs(total))
        return k + 1, term, other, bracket, total, going

    one = jnp.ones_like(rest)
    bracket = (jnp.log(rest) - lax.digamma(one) - lax.digamma(m + 1) + lax.digamma(a + m)
               + lax.digamma(b + m))
    start = (jnp.zeros((), rest.dtype), finite * one, infinite * one, bracket,
             jnp.zeros_like(rest), rest == rest)
    return lax.while_loop(lambda s: (s[0] < MAX_TERMS) & jnp.any(s[5]), body, start)[4]


def _inside(a: Array, b: Array, c: Array, x: Array, rest: Array) -> Array:
    """F(a, b; c; x) for 0 <= x < 1, and of polynomials for every x; rest is 1 - x.

    Near 1 by functions of 1 - x. Where c - a - b is almost an integer those cancel, so it is taken
    for the integer.
    """
    whole = jnp.round(c - a - b)
    endless = _degree(a, b) == math.inf
    near = (rest < 0.25) & (rest > 0) & endless
    integral = near & _almost_integral(c - a - b)
    plain = near & ~integral
    out = _series([jnp.where(near, 0, a), b], [c], jnp.where(near | ((x >= 1) & endless), 0, x))
    about_one = _about_one(*[jnp.where(plain, y, safe) for y, safe in (
        (a, 0.5), (b, 0.5), (c, 1.5), (rest, 0.25))])
    # F(a, b; c; x) = (1 - x)^(c - a - b) F(c - a, c - b; c; x), DLMF 15.8.1
    below = whole < 0
    first, second, m, distance = (jnp.where(integral, y, safe) for y, safe in (
        (jnp.where(below, c - a, a), 0.5), (jnp.where(below, c - b, b), 0.5), (jnp.abs(whole), 0),
        (rest, 0.25)))
    by_logarithm = (_about_one_with_logarithm(first, second, m, distance)
                    * jnp.exp(jnp.where(below, -m, 0) * jnp.log(distance)))
    return jnp.where(plain, about_one, jnp.where(integral, by_logarithm, out))


@custom_jvp
@in_single
def _hyp2f1(a: Array, b: Array, c: Array, z: Array) -> Array:
    x = jnp.where(jnp.isinf(z), jnp.sign(z) * 1e6, z)
    gap = c - a - b
    degree, other_degree = _degree(a, b), _degree(c - a, c - b)
    # By DLMF 15.8.1: as (1 - x)^(c - a - b) F(c - a, c - b; c; x) where that is a polynomial, and
    # for x < 0 as (1 - x)^-a F(a, c - b; c; x/(x - 1)), of which a <= b goes to a finite limit.
    real = (x < 1) | (gap == jnp.round(gap))
    ended = (other_degree < degree) & ~is_pole(c) & ((x < 0) | _almost_integral(gap)) & real
    finite = ended | (degree < math.inf)
    turned = (x < 0) & ~finite
    whole = jnp.where(turned, 1 - x, 1)
    a, b = jnp.minimum(a, b), jnp.maximum(a, b)
    inner = _inside(jnp.where(ended, c - a, a), jnp.where(ended | turned, c - b, b), c,
                    jnp.where(turned, x / -whole, x), jnp.where(turned, 1 / whole, 1 - x))
    out = jnp.where(turned, jnp.exp(-a * jnp.log(whole)) * inner, inner)
    half = jnp.power(jnp.where(ended, jnp.abs(1 - x), 1), gap / 2)  # all of it may underflow
    odd = (x > 1) & (gap % 2 == 1)
    out = jnp.where(ended, half * inner * jnp.where(odd, -half, half), out)
    at_one = jnp.where(gap > 0, _gamma_ratio([c, jnp.where(gap > 0, gap, 1)], [c - a, c - b]),
                       math.inf)
    out = jnp.where((x == 1) & (degree == math.inf), at_one,
                    jnp.where((x > 1) & ~finite, math.inf, out))
    power = jnp.where(ended, gap + other_degree, jnp.where(finite, degree, -jnp.minimum(a, b)))
    far = jnp.where(power > 0, jnp.sign(out) * math.inf, jnp.where(power < 0, 0, out))
    out = jnp.where(jnp.isinf(z) & (finite | (z < 0)), far, out)
    early = (is_pole(a) & (a >= c)) | (is_pole(b) & (b >= c))
    out = jnp.where(is_pole(c) & ~early, math.inf, out)
    return jnp.where(jnp.isnan(a + b + c + z), math.nan, jnp.where(x == 0, 1, out))


def _hyp2f1_slope(place: int) -> Any:
    return in_single(lambda out, a, b, c, x: _slope([a, b], [c], x, place))


# dF/dx = ab/c F(a + 1, b + 1; c + 1; x), DLMF 15.5.1
partials(_hyp2f1, _hyp2f1_slope(0), _hyp2f1_slope(1), _hyp2f1_slope(2),
         lambda out, a, b, c, x: a * b / c * _hyp2f1(a + 1, b + 1, c + 1, x))


@numpy_function
def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Array:
    """Gauss's hypergeometric function 2F1(a, b; c; x) (DLMF 15.2.1).

    The sum of (a)_k (b)_k/(c)_k x^k/k!, continued to x < -1, for real arguments; inf for x > 1
    unless it, or its product with a power of 1 - x, is a polynomial. Far from 0 half of the digits
    are right where c - a - b, or for x < 0 b - a, is almost an integer. The derivatives in a, b
    and c are for |x| < 1.

    Args:
      a, b, c: the parameters; they broadcast with `x`.
      x: real numbers, an array or a number.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.special.hyp2f1(1.0, 1.0, 2.0, 0.5)), 4)
    1.3863
    """
    return _hyp2f1(*reals("hyp2f1", *map(of_list, (a, b, c, x))))
