"""Exponential, sine and cosine integrals, Fresnel integrals, the dilogarithm.

DLMF is the NIST Digital Library of Mathematical Functions.
"""

from __future__ import annotations

import math
from typing import Any

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike
from pyjx.numpy.creation import of_list
from pyjx.numpy.operands import is_complex, numpy_function
from pyjx.numpy.promotion import strong
from pyjx.scipy.special import coefficients as parts
from pyjx.scipy.special.coefficients import evaluate
from pyjx.scipy.special.operands import floats, in_single, partials, reals, strongly
from pyjx.transforms.custom_jvp import custom_jvp

_GAMMA = 0.57721566490153286  # Euler's constant

# -- exponential integrals -------------------------------------------------------------------------


@custom_jvp
@strongly
@in_single
def _exp1(x: Array) -> Array:
    near, far = jnp.minimum(x, 1), jnp.maximum(x, 1)
    inside = near * evaluate(parts.E1_NEAR, 2 * near - 1) - (jnp.log(near) + _GAMMA)
    outside = jnp.exp(-far) / far * evaluate(parts.E1_FAR, 1 - 8 / (far + 3))
    return jnp.where(x > 1, outside, inside)


_exp1.defjvps(lambda g, out, x: lax.mul(g, strong(jnp.where(x < 0, math.nan, -jnp.exp(-x) / x))))


@numpy_function
def exp1(x: ArrayLike) -> Array:
    """The exponential integral E_1, that of e^-t/t from x to infinity (DLMF 6.2.1), for x >= 0.

    It is nan for negative x.

    Args:
      x: real numbers, an array or a number; integers become floats.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.special.exp1(1.0)), 4)
    0.2194
    """
    return _exp1(*reals("exp1", x))


@custom_jvp
@strongly
@in_single
def _expi(x: Array) -> Array:
    near, far = jnp.clip(x, 0, 6), jnp.maximum(x, 20)
    middle = jnp.clip(x, 6, 20)
    inside = near * evaluate(parts.EI_NEAR, near / 3 - 1) + (jnp.log(near) + _GAMMA)
    place = (2 / middle - 13 / 60) * (60 / 7)
    between = jnp.exp(middle) / middle * evaluate(parts.EI_MIDDLE, place)
    tail = evaluate(parts.EI_FAR, 40 / far - 1)
    outside = jnp.where(far > 80, jnp.exp(far - jnp.log(far)), jnp.exp(far) / far) * tail
    above = jnp.where(x < 6, inside, jnp.where(x < 20, between, outside))
    above = jnp.where(x == math.inf, math.inf, above)
    below = -_exp1(jnp.maximum(-x, 0))
    return jnp.where(jnp.isnan(x), x, jnp.where(x > 0, above, below))


_expi.defjvps(lambda g, out, x: lax.mul(g, jnp.exp(x) / x))


@numpy_function
def expi(x: ArrayLike) -> Array:
    """The exponential integral Ei, the principal value of that of e^t/t up to x (DLMF 6.2.5).

    Args:
      x: real numbers, an array or a number; integers become floats.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.special.expi(1.0)), 4)
    1.8951
    """
    return _expi(*reals("expi", x))


def _expn_fraction(n: Array, x: Array) -> Array:
    # E_n(x) e^x = 1/(x + n - 1 n/(x + n + 2 - 2 (n+1)/(x + n + 4 - ...))), DLMF 8.19.17,
    # contracted, by Lentz's method; for x >= 1
    eps = dtypes.finfo(x.dtype).eps

    def body(s: Any) -> Any:
        k, c, d, h, active = s
        numerator = -k * (n + k - 1)
        b = x + n + 2 * k
        d = 1 / (b + numerator * d)
        c = b + numerator / c
        factor = c * d
        h = jnp.where(active, h * factor, h)
        return k + 1, c, d, h, active & (jnp.abs(factor - 1) > eps)

    d = 1 / (x + n)
    start = (jnp.ones((), x.dtype), jnp.full_like(x, 1e30), d, d, x == x)
    *_, h, _ = lax.while_loop(lambda s: (s[0] < 1000) & jnp.any(s[-1]), body, start)
    return h * jnp.exp(-x)


def _expn_series(n: Array, x: Array) -> Array:
    # DLMF 8.19.8: E_n(x) = (-x)^(n-1)/(n-1)! (psi(n) - log x) - sum_(k != n-1) (-x)^k/(k! (1-n+k))
    # for 0 < x <= 1
    total = jnp.zeros_like(x)
    term = jnp.ones_like(x)
    for k in range(12 if dtypes.finfo(x.dtype).eps > 1e-10 else 20):
        pole = n == k + 1
        total = total + jnp.where(pole, 0, term / jnp.where(pole, 1, n - 1 - k))
        term = term * (-x / (k + 1))
    size = jnp.exp((n - 1) * jnp.log(x) - lax.lgamma(n))
    odd = jnp.mod(n - 1, 2) != 0
    return total + size * (lax.digamma(n) - jnp.log(x)) * jnp.where(odd, -1, 1)


@custom_jvp
@in_single
def _expn(n: Array, x: Array) -> Array:
    regular = (n >= 1) & (x > 0) & (x < math.inf)
    order = jnp.where(regular, n, 1)
    inside = _expn_series(order, jnp.where(regular & (x <= 1), x, 1))
    outside = _expn_fraction(order, jnp.where(regular & (x > 1), x, 2))
    out = jnp.where(x <= 1, inside, outside)
    # E_n(0) = 1/(n - 1), E_0(x) = e^-x/x
    out = jnp.where(x == 0, jnp.where(n > 1, 1 / jnp.where(n > 1, n - 1, 1), math.inf), out)
    out = jnp.where(n == 0, jnp.exp(-x) / jnp.abs(x), out)  # infinity at -0.0, too
    out = jnp.where(x == math.inf, 0, out)
    return jnp.where((n < 0) | (x < 0) | jnp.isnan(n + x), math.nan, out)


def _expn_slope(out: Array, n: Array, x: Array) -> Array:
    # dE_n/dx = -E_(n-1), DLMF 8.19.13; E_0 = e^-x / x
    first = -jnp.exp(-x) * (1 + 1 / x) / x
    return jnp.where(n == 0, first, -_expn(jnp.maximum(n - 1, 0), x))


partials(_expn, None, _expn_slope)


@numpy_function
def expn(n: ArrayLike, x: ArrayLike) -> Array:
    """The exponential integral E_n, that of e^(-x t)/t^n from 1 to infinity (DLMF 8.19.3).

    Args:
      n: array of non-negative integers, of any dtype; fractions are dropped. There is no
        derivative in it.
      x: array of real dtype; the result is nan for negative x.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.special.expn(2, 1.0)), 4)
    0.1485
    """
    n, x = reals("expn", *map(of_list, (n, x)))
    return _expn(lax.stop_gradient(jnp.trunc(n)), x)


# -- sine and cosine integrals ---------------------------------------------------------------------


@custom_jvp
@strongly
@in_single
def _sici(x: Array) -> tuple[Array, Array]:
    # DLMF 6.2.19, 6.2.20: Si = pi/2 - f cos - g sin, Ci = f sin - g cos
    size = jnp.abs(x)
    near, far = jnp.minimum(size, 4), jnp.maximum(size, 4)
    t = near * near / 8 - 1
    sine_near = near * evaluate(parts.SINE_NEAR, t)
    cosine_near = _GAMMA + jnp.log(near) + near * near * evaluate(parts.COSINE_NEAR, t)
    end = far == math.inf
    far = jnp.where(end, 4, far)
    t = 1 - 16 / (far + 4)
    f = evaluate(parts.SINE_COSINE_F, t) / far
    g = evaluate(parts.SINE_COSINE_G, t) / (far * far)
    sin, cos = jnp.sin(far), jnp.cos(far)
    sine = jnp.where(size > 4, math.pi / 2 - f * cos - g * sin, sine_near)
    cosine = jnp.where(size > 4, f * sin - g * cos, cosine_near)
    sine = jnp.copysign(jnp.where(end, math.pi / 2, sine), x)
    return sine, jnp.where(end, jnp.where(x > 0, 0, math.nan), cosine)


_sici.defjvps(lambda g, out, x: (lax.mul(g, jnp.sinc(x / math.pi)), lax.mul(g, jnp.cos(x) / x)))


@numpy_function
def sici(x: ArrayLike) -> tuple[Array, Array]:
    """The sine and cosine integrals Si(x) and Ci(x) (DLMF 6.2.9, 6.2.11).

    Ci of a negative number is the real part, Ci(-x).

    Args:
      x: real numbers, an array or a number; integers become floats.

    >>> import pyjx as jax
    >>> [round(float(y), 4) for y in jax.scipy.special.sici(1.0)]
    [0.9461, 0.3374]
    """
    return _sici(*reals("sici", x))


def _sine_and_cosine(x: Array) -> tuple[Array, Array]:
    """Those of pi x^2/2. With x = n + r, n whole, x^2 = n^2 + 2nr + r^2; n r is not rounded."""
    whole = jnp.round(x)
    rest = x - whole
    angle = math.pi / 2 * ((whole % 2) ** 2 + 2 * rest * whole % 4 + rest * rest)
    return jnp.sin(angle), jnp.cos(angle)


@custom_jvp
@strongly
@in_single
def _fresnel(x: Array) -> tuple[Array, Array]:
    # DLMF 7.5.3, 7.5.4: S = 1/2 - f cos - g sin, C = 1/2 + f sin - g cos, of pi x^2/2
    size = jnp.abs(x)
    near, far = jnp.minimum(size, 1.6), jnp.maximum(size, 1.6)
    cube = near ** 3
    t = cube * near * (2 / 1.6 ** 4) - 1
    sine_near = cube * evaluate(parts.FRESNEL_SINE, t)
    cosine_near = near * evaluate(parts.FRESNEL_COSINE, t)
    end = far > 1e15
    far = jnp.where(end, 1.6, far)
    u = far * far
    t = 1 - 8 / (u + 1.44)
    f = evaluate(parts.FRESNEL_F, t) / (math.pi * far)
    g = evaluate(parts.FRESNEL_G, t) / (math.pi ** 2 * u * far)
    sin, cos = _sine_and_cosine(far)
    wide = size > 1.6
    sine = jnp.where(wide, 0.5 - f * cos - g * sin, sine_near)
    cosine = jnp.where(wide, 0.5 + f * sin - g * cos, cosine_near)
    return (jnp.copysign(jnp.where(end, 0.5, sine), x),
            jnp.copysign(jnp.where(end, 0.5, cosine), x))


_fresnel.defjvps(lambda g, out, x: tuple([lax.mul(g, y) for y in _sine_and_cosine(x)]))


@numpy_function
def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    """The Fresnel integrals S(x) and C(x), those of sin and cos(pi t^2/2) from 0 to x (DLMF 7.2.7).

    `x` is real, unlike in SciPy.

    Args:
      x: real numbers, an array or a number; integers become floats.

    Raises:
      NotImplementedError: `x` is complex.

    >>> import pyjx as jax
    >>> [round(float(y), 4) for y in jax.scipy.special.fresnel(1.0)]
    [0.4383, 0.7799]
    """
    (x,) = floats("fresnel", x)
    if is_complex(x):
        raise NotImplementedError("fresnel: support for complex-valued inputs is not implemented; "
                                  "expected x of a real dtype.")
    return _fresnel(x)


# -- dilogarithm -----------------------------------------------------------------------------------

# B_2k/(2k + 1)!: Li_2(1 - e^-u) = u - u^2/4 + sum B_2k u^(2k+1)/(2k+1)! over k = 1, 2, ...
_DILOGARITHM = (
    1 / 36, -1 / 3600, 1 / 211680, -1 / 10886400, 1 / 526901760, -691 / 16999766784000,
    1 / 1120863744000, -3617 / 181400588328960000, 43867 / 97072790126247936000,
)


@custom_jvp
@in_single
def _spence(x: Array) -> Array:
    # For x > 2 by that of 1/x (DLMF 25.12.4), below 1/2 by that of 1 - x (DLMF 25.12.6)
    large = x > 2
    y = jnp.where(large, 1 / x, x)
    small = y < 0.5
    rest = jnp.log1p(-jnp.where(small, y, 0))
    log_y = jnp.log(y)
    u = -jnp.where(small, rest, log_y)
    u2 = u * u
    value = u - u2 / 4 + u * u2 * lax.polynomial(u2, _DILOGARITHM)
    product = jnp.where(y == 0, 0, log_y * rest)
    value = jnp.where(small, math.pi ** 2 / 6 - product - value, value)
    value = jnp.where(large, -jnp.log(x) ** 2 / 2 - value, value)
    return jnp.where(x == math.inf, math.nan, value)


def _spence_slope(x: Array) -> Array:
    at_one = x == 1
    return jnp.where(at_one, -1, jnp.log(x) / (1 - jnp.where(at_one, 2, x)))


_spence.defjvps(lambda g, out, x: g * _spence_slope(x))


@numpy_function
def spence(x: ArrayLike) -> Array:
    """Spence's function: the integral of log(t)/(1 - t) from 1 to x, the dilogarithm of 1 - x.

    It is nan for negative x (DLMF 25.12.1).

    Args:
      x: real numbers, an array or a number; integers become floats.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.special.spence(0.0)), 4)
    1.6449
    """
    return _spence(strong(*reals("spence", of_list(x))))
