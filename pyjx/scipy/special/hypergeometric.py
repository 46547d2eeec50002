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
from pyjx.core.array_type import Array
from pyjx.numpy.creation import of_list
from pyjx.numpy.dispatch import numpy_function
from pyjx.scipy.special.gammas import sign_of_gamma
from pyjx.scipy.special.operands import in_single, partials, reals
from pyjx.transforms.custom_jvp import custom_jvp

MAX_TERMS = 4000


def _product(factors: Sequence[Array]) -> Array:
    return functools.reduce(operator.mul, factors)


def _series(upper: Sequence[Array], lower: Sequence[Array], x: Array) -> Array:
    """The sum of (a_1)_k ... / ((b_1)_k ...) x^k/k! over k (DLMF 16.2.1)."""
    eps = dtypes.finfo(x.dtype).eps

    def body(s: Any) -> Any:
        k, term, total, _ = s
        term = term * (_product([a + k for a in upper]) * x
                       / (_product([b + k for b in lower]) * (k + 1)))
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
        change = (-ratio / bottoms[place - len(upper)] if below
                  else _product([x, *others]) / bottom)
        slope = slope * ratio + term * change
        term, total = term * ratio, total + slope
        return k + 1, term, slope, total, jnp.abs(slope) > eps / 4 * jnp.abs(total)

    zero = jnp.zeros_like(x)
    start = (jnp.zeros((), x.dtype), jnp.ones_like(x), zero, zero, x == x)
    return lax.while_loop(lambda s: (s[0] < MAX_TERMS) & jnp.any(s[4]), body, start)[3]


def _ends(a: Array) -> Array:
    """Whether a is 0, -1, -2, ...: the series is a polynomial."""
    return (a <= 0) & (a == jnp.floor(a))


def _gamma_ratio(above: Sequence[Array], below: Sequence[Array]) -> Array:
    """The product of the gamma functions of the first numbers over that of the others."""
    log = sum([lax.lgamma(x) for x in above]) - sum([lax.lgamma(x) for x in below])
    return _product([sign_of_gamma(x) for x in above]
                    + [jnp.where(_ends(x), 0, sign_of_gamma(x)) for x in below]) * jnp.exp(log)


# -- 1F1 -------------------------------------------------------------------------------------------


def _large_argument(a: Array, b: Array, x: Array) -> Array:
    """e^-x M(a, b, x) for large x: Gamma(b)/Gamma(a) x^(a-b) 2F0 (DLMF 13.7.1)."""
    term = total = jnp.ones_like(x)
    for k in range(30):
        following = term * ((1 - a + k) * (b - a + k) / ((k + 1) * x))
        term = jnp.where(jnp.abs(following) < jnp.abs(term), following, 0)
        total = total + term
    return _gamma_ratio([b], [a]) * jnp.exp((a - b) * jnp.log(x)) * total


@custom_jvp
@in_single
def _hyp1f1(a: Array, b: Array, x: Array) -> Array:
    # M(a, b, x) = e^x M(b - a, b, -x), DLMF 13.2.39: without cancellation for x < 0
    limit = 60 if dtypes.finfo(x.dtype).eps > 1e-10 else 200
    finite = _ends(a)
    turned = (x < 0) & ~finite
    size = jnp.where(turned, -x, x)
    order = jnp.where(turned, b - a, a)
    large = (size > limit) & ~finite & ~_ends(order)
    near = _series([jnp.where(large, 0, order)], [b], jnp.where(large, 0, size))
    far = _large_argument(jnp.where(large, order, 1), b, jnp.where(large, size, limit))
    near = jnp.where(turned, jnp.exp(jnp.minimum(x, 0)) * near, near)
    out = jnp.where(large, jnp.where(turned, far, jnp.exp(x) * far), near)
    out = jnp.where(jnp.isnan(a + b + x), math.nan, out)
    early = finite & (a >= b)  # it ends before the pole
    return jnp.where(_ends(b) & ~early, math.inf, out)


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
def hyp1f1(a: Any, b: Any, x: Any) -> Array:
    """Kummer's confluent hypergeometric function M(a, b, x) = 1F1(a; b; x) (DLMF 13.2.2).

    The sum of (a)_k/(b)_k x^k/k!, for real arguments. There are derivatives in all of them; those
    in a and b are for |x| < 80.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.special.hyp1f1(1.0, 1.0, 1.0)), 4)
    2.7183
    """
    return _hyp1f1(*reals("hyp1f1", *map(of_list, (a, b, x))))


# -- 2F1 -------------------------------------------------------------------------------------------


def _inside(a: Array, b: Array, c: Array, x: Array) -> Array:
    """F(a, b; c; x) for 0 <= x < 1, and of polynomials for every x.

    Near 1 by the functions of 1 - x (DLMF 15.8.4), unless c - a - b is an integer.
    """
    gap = c - a - b
    finite = _ends(a) | _ends(b)
    near_one = (x > 0.75) & (x < 1) & (gap != jnp.round(gap)) & ~finite
    rest = jnp.where(near_one, 1 - x, 0)
    ones = jnp.ones_like(x)
    safe = [jnp.where(near_one, y, ones * z) for y, z in ((a, 1.0), (b, 1.0), (c, 2.5))]
    gap_safe = safe[2] - safe[0] - safe[1]
    upper, lower = [safe[2] - safe[0], safe[2] - safe[1]], safe[:2]
    first = _gamma_ratio([safe[2], gap_safe], upper) * _series(lower, [1 - gap_safe], rest)
    second = (_gamma_ratio([safe[2], -gap_safe], lower) * _series(upper, [1 + gap_safe], rest)
              * jnp.where(near_one, jnp.exp(gap_safe * jnp.log(jnp.where(near_one, rest, 1))), 0))
    direct = _series([jnp.where(near_one, 0, a), b], [c],
                     jnp.where(near_one | ((x >= 1) & ~finite), 0, x))
    return jnp.where(near_one, first + second, direct)


@custom_jvp
@in_single
def _hyp2f1(a: Array, b: Array, c: Array, x: Array) -> Array:
    # For x < 0: F(a, b; c; x) = (1 - x)^-a F(a, c - b; c; x/(x - 1)), DLMF 15.8.1
    finite = _ends(a) | _ends(b)
    turned = (x < 0) & ~finite
    whole = jnp.where(turned, 1 - x, 1)
    inner = _inside(a, jnp.where(turned, c - b, b), c, jnp.where(turned, x / -whole, x))
    out = jnp.where(turned, jnp.exp(-a * jnp.log(whole)) * inner, inner)
    gap = c - a - b
    at_one = jnp.where(gap > 0, _gamma_ratio([c, jnp.where(gap > 0, gap, 1)], [c - a, c - b]),
                       math.inf)
    out = jnp.where((x == 1) & ~finite, at_one, jnp.where((x > 1) & ~finite, math.inf, out))
    early = (_ends(a) & (a >= c)) | (_ends(b) & (b >= c))
    out = jnp.where(_ends(c) & ~early, math.inf, out)
    return jnp.where(jnp.isnan(a + b + c + x), math.nan, out)


def _hyp2f1_slope(place: int) -> Any:
    return in_single(lambda out, a, b, c, x: _slope([a, b], [c], x, place))


# dF/dx = ab/c F(a + 1, b + 1; c + 1; x), DLMF 15.5.1
partials(_hyp2f1, _hyp2f1_slope(0), _hyp2f1_slope(1), _hyp2f1_slope(2),
         lambda out, a, b, c, x: a * b / c * _hyp2f1(a + 1, b + 1, c + 1, x))


@numpy_function
def hyp2f1(a: Any, b: Any, c: Any, x: Any) -> Array:
    """Gauss's hypergeometric function 2F1(a, b; c; x) (DLMF 15.2.1).

    The sum of (a)_k (b)_k/(c)_k x^k/k!, continued to x < -1, for real arguments; inf for x > 1
    unless it is a polynomial. Near x = 1 it is less precise where c - a - b is an integer. The
    derivatives in a, b and c are for |x| < 1.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.special.hyp2f1(1.0, 1.0, 2.0, 0.5)), 4)
    1.3863
    """
    return _hyp2f1(*reals("hyp2f1", *map(of_list, (a, b, c, x))))
