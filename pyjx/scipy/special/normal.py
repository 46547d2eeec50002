"""The error function and its relatives; the normal distribution function and its inverse.

DLMF is the NIST Digital Library of Mathematical Functions.
"""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike
from pyjx.numpy.operands import is_complex, numpy_function
from pyjx.numpy.promotion import any_ranks, promote_args_as_floats, promote_args_inexact, strong
from pyjx.numpy.ufuncs import as_array
from pyjx.scipy.special import coefficients as parts
from pyjx.scipy.special.operands import floats, in_single, partials, reals, strongly
from pyjx.transforms.custom_jvp import custom_jvp

_ROOT_HALF = math.sqrt(0.5)
_ROOT_PI = math.sqrt(math.pi)
_ROOT_TWO_PI = math.sqrt(2 * math.pi)


def exp_square(x: Array) -> Array:
    """e^(x^2), where x^2 is not rounded: x = k/16 + r, and x^2 = (k/16)^2 + r (x + k/16)."""
    near = jnp.round(x * 16) / 16
    square, rest = near * near, (x - near) * (x + near)
    total = square + rest
    out = jnp.exp(total)
    # e^d = 1 + d for what the sum lost
    return jnp.where(out < math.inf, out + out * (rest - (total - square)), out)


@numpy_function
def erf(x: ArrayLike) -> Array:
    """The error function, 2/sqrt(pi) times the integral of e^(-t^2) from 0 to x (DLMF 7.2.1).

    `x` is real, unlike in SciPy.

    Args:
      x: real numbers, an array or a number; integers become floats.

    >>> import pyjx as jax
    >>> float(jax.scipy.special.erf(0.0))
    0.0
    """
    return lax.erf(*promote_args_as_floats("erf", x))


@numpy_function
def erfc(x: ArrayLike) -> Array:
    """The complementary error function, 1 - erf(x) (DLMF 7.2.2), for real x.

    Args:
      x: real numbers, an array or a number; integers become floats.

    >>> import pyjx as jax
    >>> float(jax.scipy.special.erfc(0.0))
    1.0
    """
    return lax.erfc(*promote_args_as_floats("erfc", x))


@numpy_function
def erfinv(x: ArrayLike) -> Array:
    """The inverse of `erf` on [-1, 1].

    Args:
      x: real numbers, an array or a number; integers become floats.

    >>> import pyjx as jax
    >>> float(jax.scipy.special.erfinv(0.0))
    0.0
    """
    return lax.erf_inv(*promote_args_as_floats("erfinv", x))


@numpy_function
def erfcinv(y: ArrayLike) -> Array:
    """The inverse of `erfc` on [0, 2], precise for small y too.

    Args:
      y: numbers from 0 to 2.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.special.erfcinv(0.5)), 4)
    0.4769
    """
    (y,) = reals("erfcinv", y)
    return 0 - ndtri_of(y / 2) * _ROOT_HALF  # not -0 at 1


# -- scaled functions ------------------------------------------------------------------------------


def _erfcx_above(size: Array) -> Array:
    """e^(x^2) erfc(x) for x >= 0."""
    return parts.evaluate(parts.ERFCX, 1 - 6 / (size + 3)) / (1 + 2 * size)


@custom_jvp
@in_single
def _erfcx(x: Array) -> Array:
    upper = _erfcx_above(jnp.abs(x))
    # erfc(-x) = 2 - erfc(x)
    return jnp.where(x < 0, 2 * exp_square(jnp.clip(x, -30, 0)) - upper, upper)


# (2k - 1)!!/2^k, DLMF 7.12.1
_FAR = [0.0, *[math.prod(range(1, 2 * k, 2)) / 2 ** k for k in range(1, 22)]]


def _beside_limit(out: Array, x: Array, far: Array, limit: float, sign: int) -> Array:
    """2 x out - limit, a difference that cancels where x is `far`, and is the limit times a series
    in 1/x^2 there."""
    inverse = 1 / jnp.where(far, x, 8)
    terms = _FAR[:8 if x.dtype == np.float32 else None]
    series = limit * lax.polynomial(sign * inverse * inverse, terms)
    return jnp.where(far, series, 2 * jnp.where(far, 0, x) * out - limit)


@in_single
def _erfcx_slope(out: Array, x: Array) -> Array:
    # d (e^(x^2) erfc(x)) = (2 x e^(x^2) erfc(x) - 2/sqrt(pi)) dx
    return _beside_limit(out, x, x > 8, 2 / _ROOT_PI, -1)


_erfcx.defjvps(lambda g, out, x: g * _erfcx_slope(out, x))


@numpy_function
def erfcx(x: Array) -> Array:
    """The scaled complementary error function, e^(x^2) erfc(x), for real or complex x.

    Complex values are `wofz(1j * x)`.

    Args:
      x: an array or a number; integers become floats.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.special.erfcx(10.0)), 5)
    0.05614
    """
    x = strong(*floats("erfcx", x))
    return _wofz(1j * x) if is_complex(x) else _erfcx(x)


@custom_jvp
@in_single
def _dawsn(x: Array) -> Array:
    size = jnp.abs(x)
    near, far = jnp.minimum(size, 4), jnp.maximum(size, 4)
    inside = near * parts.evaluate(parts.DAWSON_NEAR, near * near / 8 - 1)
    outside = parts.evaluate(parts.DAWSON_FAR, 2 * (4 / far) ** 2 - 1) / (2 * far)
    return jnp.copysign(jnp.where(size > 4, outside, inside), x)


@in_single
def _dawsn_slope(out: Array, x: Array) -> Array:
    # D'(x) = 1 - 2 x D(x), DLMF 7.10.4
    return -_beside_limit(out, x, jnp.abs(x) > 8, 1, 1)


_dawsn.defjvps(lambda g, out, x: g * _dawsn_slope(out, x))


@numpy_function
def dawsn(x: ArrayLike) -> Array:
    """Dawson's integral, e^(-x^2) times the integral of e^(t^2) from 0 to x (DLMF 7.2.5).

    `x` is real, unlike in SciPy.

    Args:
      x: real numbers, an array or a number; integers become floats.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.special.dawsn(1.0)), 4)
    0.5381
    """
    (x,) = reals("dawsn", x)
    return _dawsn(strong(x))


@functools.cache
def _weideman(terms: int) -> tuple[float, tuple[float, ...]]:
    """L and the coefficients a_1, a_2, ... of the rational series for w(z) of J. A. C. Weideman,
    Computation of the complex error function, SIAM J. Numer. Anal. 31 (1994), 1497-1518."""
    size = 2 * terms
    scale = math.sqrt(terms / math.sqrt(2))
    angle = np.arange(1 - size, size) * (np.pi / size)
    t = scale * np.tan(angle / 2)
    values = np.concatenate([[0.0], np.exp(-t * t) * (scale * scale + t * t)])
    a = np.fft.fft(np.fft.fftshift(values)).real / (2 * size)
    return scale, tuple(a[1:terms + 1].tolist())


@custom_jvp
def _wofz(z: Array) -> Array:
    # for Im z >= 0: w(z) = 2 p(Z)/(L - iz)^2 + 1/(sqrt(pi) (L - iz)), Z = (L + iz)/(L - iz);
    # elsewhere w(z) = 2 e^(-z^2) - w(-z), DLMF 7.4.3
    scale, a = _weideman(24 if z.dtype == np.complex64 else 44)
    below = jnp.imag(z) < 0
    iz = 1j * jnp.where(below, -z, z)
    below_line = scale - iz
    series = lax.polynomial((scale + iz) / below_line, a)
    upper = (2 * series / below_line + 1 / _ROOT_PI) / below_line
    out = jnp.where(below, 2 * jnp.exp(-z * z) - upper, upper)
    # On the real line w(x) = e^(-x^2) + 2i/sqrt(pi) D(x), whose real part may be far smaller.
    x = jnp.real(z)
    on_line = lax.complex(jnp.exp(-x * x), 2 / _ROOT_PI * _dawsn(x))
    return jnp.where(jnp.imag(z) == 0, on_line, out)


# w'(z) = -2 z w(z) + 2i/sqrt(pi), DLMF 7.10.2
_wofz.defjvps(lambda g, out, z: g * (2j / _ROOT_PI - 2 * z * out))


@numpy_function
def wofz(z: ArrayLike) -> Array:
    """The Faddeeva function w(z) = e^(-z^2) erfc(-iz) (DLMF 7.2.3), of complex dtype.

    Args:
      z: complex numbers, an array or a number; real ones become complex.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.special.wofz(1j).real), 4)
    0.4276
    """
    (z,) = floats("wofz", z)
    return strong(_wofz(z if is_complex(z) else lax.complex(*_parts(z))))


def _parts(x: Array) -> tuple[Array, Array]:
    x = x.astype(np.float64 if x.dtype == np.float64 else np.float32)
    return x, jnp.zeros_like(x)


# -- the normal distribution -----------------------------------------------------------------------


def _check_dtype(x: Array) -> None:
    if x.dtype not in (np.float32, np.float64):
        raise TypeError(f"x.dtype={x.dtype} is not supported, see docstring for supported types: "
                        "expected float32 or float64.")


@numpy_function
def ndtr(x: Array) -> Array:
    """The distribution function of the standard normal distribution: erfc(-x/sqrt(2))/2.

    Args:
      x: real numbers of dtype float32 or float64, an array or a number.

    Raises:
      TypeError: `x` is not of dtype float32 or float64.

    >>> import pyjx as jax
    >>> float(jax.scipy.special.ndtr(0.0))
    0.5
    """
    x = strong(jnp.asarray(x))
    _check_dtype(x)
    return ndtr_of(x)


def ndtr_of(x: Array) -> Array:
    """`ndtr` of an array of any float dtype; of no weak type."""
    return lax.erfc(strong(x) * -_ROOT_HALF) / 2


@custom_jvp
@in_single
def ndtri_of(p: Array) -> Array:
    """`ndtri` of an array of any float dtype."""
    middle = p - 0.5
    tail = jnp.minimum(p, 1 - p)
    eighth = 0.125
    first = math.sqrt(-2 * math.log(eighth))
    square = jnp.minimum(middle * middle, (0.5 - eighth) ** 2)
    inside = middle * parts.evaluate(parts.QUANTILE_MIDDLE, square * (128 / 9) - 1)
    y = jnp.sqrt(-2 * jnp.log(jnp.clip(tail, dtypes.finfo(p.dtype).tiny, eighth)))
    if p.dtype == np.float32:  # without a second logarithm
        low, high = 1 / (first + 6), 1 / (13.25 + 6)
        place = (2 / (high - low)) / (y + 6) - (high + low) / (high - low)
        less = parts.evaluate(parts.QUANTILE_TAIL_SINGLE, place)
    else:
        place = jnp.log(y / first) * (2 / math.log(39 / first)) - 1
        less = parts.evaluate(parts.QUANTILE_TAIL, place)
    outside = jnp.copysign(y - less / y, middle)
    out = jnp.where(tail > eighth, inside, outside)
    out = jnp.where(tail == 0, jnp.copysign(math.inf, middle), out)
    return jnp.where(tail >= 0, out, math.nan)


# dx/dp = 1/phi(x) = sqrt(2 pi) e^(x^2/2)
ndtri_of.defjvps(lambda g, x, p: g * (_ROOT_TWO_PI * jnp.exp(x * x / 2)))


@numpy_function
def ndtri(p: Any) -> Array:
    """The inverse of `ndtr`: the quantiles of the standard normal distribution.

    Args:
      p: probabilities, from 0 to 1, of dtype float32 or float64.

    Raises:
      TypeError: `p` is not of dtype float32 or float64.

    >>> import pyjx as jax
    >>> float(jax.scipy.special.ndtri(0.5))
    0.0
    """
    (p,) = promote_args_inexact("ndtri", p) if isinstance(p, float) else (jnp.asarray(p),)
    p = as_array(p)
    _check_dtype(p)
    return ndtri_of(p)


def tail_of(x: Array) -> Array:
    """e^(x^2/2) times the probability of values beyond |x| in one direction."""
    return _erfcx_above(jnp.abs(x) * _ROOT_HALF) / 2


@custom_jvp
@strongly
@in_single
def log_ndtr_of(x: Array) -> Array:
    """`log_ndtr` of an array of any float dtype."""
    below, half = x < 0, x * x / 2
    tail = tail_of(x)
    # Of which log1p is taken. Where it is -1 but for rounding, x^2/2 is all there is to the result.
    rest = jnp.where(below, jnp.maximum(tail - 1, dtypes.finfo(x.dtype).eps - 1),
                     -tail * jnp.exp(-half))
    return jnp.log1p(rest) - jnp.where(below, half, 0)


@in_single
def _log_ndtr_slope(x: Array) -> Array:
    # phi(x)/Phi(x), below 0 with e^(x^2/2) taken out of both
    below, tail = x < 0, tail_of(x)
    bell = jnp.exp(-x * x / 2)
    return jnp.where(below, 1, bell) / (_ROOT_TWO_PI * jnp.where(below, tail, 1 - tail * bell))


log_ndtr_of.defjvps(lambda g, out, x: lax.mul(g, strong(_log_ndtr_slope(x))))


@numpy_function(static_argnames=("series_order",))
def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """The logarithm of `ndtr`, without underflow: it is log(erfcx(-x/sqrt(2))/2) - x^2/2.

    Args:
      x: array of dtype float32 or float64.
      series_order: for compatibility; the result is precise whatever it is.

    Raises:
      TypeError: `x` is not of dtype float32 or float64, or `series_order` is no integer.
      ValueError: `series_order` is not in [0, 30].

    >>> import pyjx as jax
    >>> round(float(jax.scipy.special.log_ndtr(-100.0)), 2)
    -5005.52
    """
    if not isinstance(series_order, int):
        raise TypeError("series_order must be a Python integer.")
    if operator.index(series_order) < 0:
        raise ValueError(f"log_ndtr: series_order must be non-negative. Got {series_order}.")
    if operator.index(series_order) > 30:
        raise ValueError(f"log_ndtr: series_order must be <= 30. Got {series_order}.")
    x = jnp.asarray(x)
    _check_dtype(x)
    return log_ndtr_of(x)


# -- Owen's T --------------------------------------------------------------------------------------


@any_ranks
def _owens_integral(h: Array, a: Array) -> Array:
    """T(h, a) for h >= 0 and 0 <= a <= 1 by Gauss's quadrature.

    The integrand e^(-h^2 (1 + x^2)/2)/(1 + x^2) is negligible beyond x = 9/h.
    """
    nodes, weights = np.polynomial.legendre.leggauss(16 if h.dtype == np.float32 else 28)
    reach = 6 if h.dtype == np.float32 else 9
    end = jnp.minimum(a, reach / jnp.maximum(h, 1))
    x = (end / 2)[..., None] * jnp.asarray(1 + nodes, h.dtype)
    y = 1 + x * x
    values = jnp.exp(-0.5 * (h * h)[..., None] * y) / y
    return end / (4 * math.pi) * (values * jnp.asarray(weights, h.dtype)).sum(-1)


@custom_jvp
def _owens_t(h: Array, a: Array) -> Array:
    # For a > 1: T(h, a) = (Q(h) + Q(ah))/2 - Q(h) Q(ah) - T(ah, 1/a), where Q(x) = 1 - Phi(x)
    h, size = jnp.abs(h), jnp.abs(a)
    steep = size > 1
    ah = jnp.where(h == 0, 0, h * size)
    inner = _owens_integral(jnp.where(steep, ah, h), jnp.where(steep, 1 / size, size))
    q, q_ah = ndtr_of(-h), ndtr_of(-ah)
    out = jnp.where(steep, (q + q_ah) / 2 - q * q_ah - inner, inner)
    return jnp.copysign(jnp.where(jnp.isnan(h + size), math.nan, out), a)


# dT/dh = -phi(h) erf(ah/sqrt(2))/2, dT/da = e^(-h^2 (1 + a^2)/2)/(2 pi (1 + a^2))
partials(
    _owens_t,
    lambda out, h, a: jnp.exp(-h * h / 2) * lax.erf(a * h * _ROOT_HALF) / (-2 * _ROOT_TWO_PI),
    lambda out, h, a: jnp.exp(-h * h * (1 + a * a) / 2) / (2 * math.pi * (1 + a * a)))


@numpy_function
def owens_t(h: ArrayLike, a: ArrayLike) -> Array:
    """Owen's T function: 1/(2 pi) times the integral of e^(-h^2 (1 + x^2)/2)/(1 + x^2) from 0 to a.

    The result is of the default float dtype where the arguments are narrower.

    Args:
      h, a: real numbers, arrays or numbers, which broadcast.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.special.owens_t(0.0, 1.0)), 4)
    0.125
    """
    h, a = [x.astype(dtypes.default_float_dtype()) for x in reals("owens_t", h, a)]
    return _owens_t(h, a)
