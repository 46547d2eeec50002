"""The Hurwitz zeta function, its derivative in its exponent, and polygamma functions.

DLMF is the NIST Digital Library of Mathematical Functions.
"""

from __future__ import annotations

import math

import numpy as np

from pyjx import lax
from pyjx.core.avals import get_aval
from pyjx.engine.types import Value, Values
from pyjx.lax.bitwise import bitwise_and, bitwise_not, bitwise_or
from pyjx.lax.compare import eq, ge, gt, le, lt, ne, select
from pyjx.lax.elementwise import add, ceil, div, floor, integer_pow, mul, neg, pow, sub
from pyjx.lax.incomplete import any_of, constant, in_single, where
from pyjx.lax.loops import while_loop
from pyjx.lax.nary import like
from pyjx.lax.transcendental import exp, log, log1p

TERMS = 10  # that are added one by one
# B_2j / (2j)!, DLMF 24.2
BERNOULLI = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000,
             1 / 74724249600, -3617 / 10670622842880000)


@in_single
def zeta_slope(s: Value, q: Value) -> Value:
    """d zeta(s, q)/ds for s > 1, by the Euler-Maclaurin formula: DLMF 25.11.5, differentiated."""
    # sum of (q + k)^-s log(q + k)
    total = like(s, 0)
    for k in range(TERMS):
        length = log(add(q, like(q, k)))
        total = add(total, mul(length, exp(neg(mul(s, length)))))
    # a^(1-s)/(s - 1) (log a + 1/(s - 1)), where a = q + TERMS
    a = add(q, like(q, TERMS))
    length = log(a)
    power = exp(neg(mul(s, length)))
    beyond = sub(s, like(s, 1))
    total = add(total, mul(div(mul(a, power), beyond), add(length, div(like(s, 1), beyond))))
    # a^-s (log a c - dc/ds), where c = 1/2 + sum of B_2j/(2j)! (s)_(2j-1) a^(1-2j)
    correction, slope = like(s, 0.5), like(s, 0)
    rising, rate = div(s, a), div(like(s, 1), a)  # (s)_(2j-1) a^(1-2j) and its derivative
    for j, factor in enumerate(BERNOULLI):
        correction = add(correction, mul(like(s, factor), rising))
        slope = add(slope, mul(like(s, factor), rate))
        for i in (2 * j + 1, 2 * j + 2):
            step = div(add(s, like(s, i)), a)
            rising, rate = mul(rising, step), add(mul(rate, step), div(rising, a))
    total = add(total, mul(power, sub(mul(length, correction), slope)))
    return where(lt(s, like(s, 1)), neg(total), math.nan)


# -- the sums themselves ---------------------------------------------------------------------------


def _of_positive(s: Value, q: Value) -> Value:
    """zeta(s, q) for s > 1 and q > 0, by the Euler-Maclaurin formula (DLMF 25.11.5).

    In units of q^-s, so that one power has to be exact: ((q + k)/q)^-s is at most 1.
    """
    terms, rest = (5, 4) if get_aval(q).dtype == np.float32 else (TERMS, len(BERNOULLI))

    def share(k: int) -> Value:
        return exp(neg(mul(s, log1p(div(like(q, k), q)))))

    total = constant(q, 1)
    for k in range(1, terms):
        total = add(total, share(k))
    a = add(q, like(q, terms))
    inverse = integer_pow(a, -1)
    # beyond, where the share is 0, powers of s/a would overflow
    ratio = lax.min(mul(s, inverse), like(s, 1e3))
    correction, rising = like(s, 0.5), ratio
    for j, factor in enumerate(BERNOULLI[:rest]):
        correction = add(correction, mul(like(s, factor), rising))
        for i in (2 * j + 1, 2 * j + 2):
            rising = mul(rising, add(ratio, mul(like(s, i), inverse)))
    less, power = sub(s, like(s, 1)), share(terms)
    total = div(add(total, mul(power, correction)), q)
    integral = div(mul(power, lax.min(div(a, q), like(q, 1e30))), less)
    # q^-s alone underflows for large q, for which the integral is about 1/(s - 1)
    return mul(pow(q, neg(less)), add(total, integral))


def _is_even(s: Value) -> Value:
    half = mul(s, like(s, 0.5))
    return eq(half, floor(half))


def _over_all(s: Value, q: Value) -> Value:
    """The sum of (q + k)^-s for s > 1; below 0, where s is to be whole, of the numbers there too.

    These have the powers of their opposites, but for the sign: they are a sum of all opposites less
    what is beyond the first. A loop adds the three sums, or the first one alone where it is all.
    """
    below = bitwise_and(lt(q, like(q, 0)), ne(q, floor(q)))

    def step(i: Value, total: Value) -> Values:
        first, second = eq(i, np.int32(0)), eq(i, np.int32(1))
        start = select(first, sub(q, floor(q)), select(second, sub(ceil(q), q), sub(like(q, 1), q)))
        part = _of_positive(s, select(below, start, q))
        odd = bitwise_not(_is_even(s))
        # the second sum counts with the sign of the powers, the third one with the opposite sign
        part = select(bitwise_and(bitwise_not(first), eq(odd, second)), neg(part), part)
        return [add(i, np.int32(1)), add(total, select(bitwise_or(first, below), part, zero))]

    zero = constant(q, 0)
    parts = select(any_of(below), np.int32(3), np.int32(1))
    _, total = while_loop(lambda c: lt(c[0], parts), lambda c: step(*c), [np.int32(0), zero])
    return total


@in_single
def hurwitz_zeta(s: Value, q: Value) -> Value:
    """zeta(s, q); at poles infinite for even s, and nan for others, which have both signs there."""
    one = like(s, 1)
    nonpositive, whole = le(q, like(q, 0)), eq(q, floor(q))
    total = _over_all(select(gt(s, one), s, constant(s, 2)), q)
    total = where(eq(q, like(q, np.inf)), total, 0.0)
    unknown = bitwise_and(nonpositive, bitwise_or(whole, ne(s, floor(s))))
    total = where(bitwise_or(bitwise_not(ge(s, one)), unknown), total, math.nan)
    total = where(bitwise_and(bitwise_and(nonpositive, whole), _is_even(s)), total, math.inf)
    return where(eq(s, one), total, math.inf)


@in_single
def polygamma_of(m: Value, x: Value) -> Value:
    """The m-th derivative of psi: (-1)^(m+1) m! zeta(m + 1, x) for m > 0, DLMF 25.11.12."""
    zero, order = like(m, 0), add(m, like(m, 1))
    size = mul(exp(lax.lgamma(order)), hurwitz_zeta(order, x))
    value = select(_is_even(m), neg(size), size)
    value = select(eq(m, zero), lax.digamma(x), value)
    fraction = sub(m, floor(m))  # nan at infinity
    return select(bitwise_and(ge(m, zero), eq(fraction, zero)), value, constant(m, math.nan))
