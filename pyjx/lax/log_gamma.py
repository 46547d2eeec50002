"""The logarithm of the gamma function, precise also where it vanishes: at 1 and 2.

Arguments between -1/2 and a bound are brought to [3/2, 5/2) by the recurrence
Gamma(y + 1) = y Gamma(y), where a series about 2 serves (DLMF 5.7.3 with z = y - 2):

    log Gamma(2 + z) = (1 - gamma) z + sum_k (-1)^k (zeta(k) - 1) z^k / k,  k = 2, 3, ...

Above the bound it is Stirling's series (DLMF 5.11.1), below -1/2 the reflection formula (5.5.3).
"""

from __future__ import annotations

import math

import numpy as np

from pyjx.core.avals import get_aval
from pyjx.engine.types import Value
from pyjx.lax.bitwise import bitwise_or
from pyjx.lax.compare import clamp, eq, ge, lt, select
from pyjx.lax.elementwise import (
    RoundingMethod,
    abs,
    add,
    floor,
    integer_pow,
    mul,
    neg,
    round,
    sub,
)
from pyjx.lax.incomplete import constant, in_single, where
from pyjx.lax.nary import like
from pyjx.lax.transcendental import log


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


def _polynomial(x: Value, coefficients: Value) -> Value:
    total = constant(x, 0)
    for c in reversed(coefficients):
        total = add(mul(total, x), like(x, c))
    return total


# (-1)^k pi^(2k+1) / (2k+1)!: sin(pi r)/r in r^2, for |r| <= 1/2
_SINE_OF_HALF_TURNS = [(-1) ** k * math.pi ** (2 * k + 1) / math.factorial(2 * k + 1)
                       for k in range(11)]


def _recurrence(y: Value, terms: int, steps: int) -> tuple[Value, Value, Value]:
    """For y in [-1/2, 5/2 + steps): log Gamma of the number in [3/2, 5/2), whether that is above y,
    and the product of the numbers in between."""
    n = floor(sub(y, like(y, 1.5)))  # how far it is from [3/2, 5/2)
    z = sub(y, add(n, like(y, 2)))
    near_two = mul(z, _polynomial(z, _ABOUT_TWO[:terms]))
    one = constant(y, 1)
    below = lt(n, like(n, 0))
    factor = select(below, y, one)
    factor = mul(factor, select(lt(n, like(n, -1)), add(y, like(y, 1)), one))
    for k in range(1, steps + 1):
        factor = mul(factor, select(lt(n, like(n, k)), one, sub(y, like(y, k))))
    return near_two, below, abs(factor)


def _by_stirling(y: Value, log_y: Value, terms: int) -> Value:
    inverse = integer_pow(y, -1)
    series = mul(inverse, _polynomial(mul(inverse, inverse), _STIRLING[:terms]))
    # (y - 1/2) log y - y without the difference of infinities
    main = mul(sub(y, like(y, 0.5)), sub(log_y, like(y, 1)))
    return add(main, add(like(y, 0.5 * math.log(2 * math.pi) - 0.5), series))


@in_single
def log_gamma(x: Value) -> Value:
    """log |Gamma(x)|."""
    single = get_aval(x).dtype == np.float32
    bound, terms, steps, stirling, sine = (4.5, 13, 2, 4, 7) if single else (9.5, 29, 7, 7, 11)
    reflected = lt(x, like(x, -0.5))
    y = select(reflected, sub(like(x, 1), x), x)
    large = ge(y, like(y, bound))
    near_two, below, factor = _recurrence(y, terms, steps)
    log_of_one = log(select(large, y, factor))
    low = add(near_two, select(below, neg(log_of_one), log_of_one))
    positive = select(large, _by_stirling(y, log_of_one, stirling), low)
    # |Gamma(x) Gamma(1 - x) sin(pi x)| = pi
    safe = clamp(like(x, -1e30), x, like(x, 0))
    rest = sub(safe, round(safe, RoundingMethod.TO_NEAREST_EVEN))
    size = abs(mul(rest, _polynomial(mul(rest, rest), _SINE_OF_HALF_TURNS[:sine])))
    negative = sub(sub(like(x, math.log(math.pi)), log(size)), positive)
    # Numbers below -1e30 are poles, as all integers, but `positive` may have overflowed by then.
    infinite = bitwise_or(eq(x, like(x, np.inf)),
                          bitwise_or(eq(x, like(x, 0)), lt(x, like(x, -1e30))))
    return where(infinite, select(reflected, negative, positive), np.inf)
