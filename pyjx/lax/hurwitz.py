"""The derivative of the Hurwitz zeta function in its exponent.

DLMF is the NIST Digital Library of Mathematical Functions.
"""

from __future__ import annotations

import math

from pyjx.engine.types import Value
from pyjx.lax.compare import lt
from pyjx.lax.elementwise import add, div, mul, neg, sub
from pyjx.lax.incomplete import in_single, where
from pyjx.lax.nary import like
from pyjx.lax.transcendental import exp, log

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
