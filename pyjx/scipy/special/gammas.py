"""The gamma function and its relatives: beta functions, factorials, polygamma and zeta functions.

DLMF is the NIST Digital Library of Mathematical Functions.
"""

from __future__ import annotations

import math
import operator
from fractions import Fraction
from typing import Any

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import get_aval
from pyjx.core.integers import as_truncated_int
from pyjx.core.trace import concrete_or_error
from pyjx.numpy.operands import is_complex, is_integer, numpy_function
from pyjx.numpy.promotion import operands, promote_args_as_floats, promote_dtypes_as_floats, strong
from pyjx.numpy.ufuncs import as_array
from pyjx.scipy.special.operands import floats, in_single, partials, reals, weak_as
from pyjx.transforms.custom_jvp import custom_jvp

# The coefficients B_2k/(2k (2k-1)) of Stirling's series (DLMF 5.11.1), in 1/x^(2k-1).
_STIRLING = (
    1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400,
)


@numpy_function
def gammaln(x: ArrayLike) -> Array:
    """The logarithm of |Gamma(x)|, for real x.

    Args:
      x: real numbers, an array or a number; integers become floats.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.special.gammaln(5.0)), 4)
    3.1781
    """
    return lax.lgamma(*promote_args_as_floats("gammaln", x))


@numpy_function
def digamma(x: ArrayLike) -> Array:
    """The logarithmic derivative of the gamma function, for real x.

    Args:
      x: real numbers, an array or a number; integers become floats.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.special.digamma(1.0)), 4)
    -0.5772
    """
    return lax.digamma(*promote_args_as_floats("digamma", x))


def sign_of_gamma(x: Array) -> Array:
    """`gammasgn` of an array of real dtype."""
    floor = jnp.floor(x)
    half = floor / 2
    below = jnp.where(half == jnp.floor(half), 1, -1).astype(x.dtype)
    below = jnp.where((floor == x) | jnp.isnan(x), math.nan, below)
    return jnp.where(x == 0, jnp.copysign(jnp.ones_like(x), x), jnp.where(x > 0, 1, below))


@numpy_function
def gammasgn(x: ArrayLike) -> Array:
    """The sign of Gamma(x): 1 or -1; nan at -1, -2, ...

    Args:
      x: real numbers, an array or a number; integers become floats.

    >>> import pyjx as jax
    >>> float(jax.scipy.special.gammasgn(-0.5))
    -1.0
    """
    return sign_of_gamma(*reals("gammasgn", x))


@custom_jvp
@in_single
def gamma_of(x: Array) -> Array:
    """`gamma` of an array of real dtype."""
    return sign_of_gamma(x) * jnp.exp(lax.lgamma(x))


gamma_of.defjvps(lambda g, out, x: g * (out * lax.digamma(x)))


@numpy_function
def gamma(x: ArrayLike) -> Array:
    """The gamma function (DLMF 5.2.1), for real or complex x; nan at -1, -2, ...

    Args:
      x: an array or a number; integers become floats.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.special.gamma(5.0)), 3)
    24.0
    """
    (x,) = floats("gamma", x)
    return strong(jnp.exp(_loggamma(x))) if is_complex(x) else gamma_of(x)


def _loggamma(z: Array) -> Array:
    """The principal branch of log Gamma(z) for complex z.

    Stirling's series (DLMF 5.11.1) of z + 8, brought back by log Gamma(z) = log Gamma(z+1) - log z.
    Where Re z < 0 by DLMF 5.5.3, in which log sin(pi z) = -i pi (z - 1/2) + log1p(-e^(2 i pi z))
    - log 2 continues analytically through the upper half-plane.
    """
    real = jnp.real(z)
    left, lower = real < 0, jnp.signbit(jnp.imag(z))
    z = jnp.where(lower, jnp.conj(z), z)
    right = jnp.where(left, 1 - z, z)
    far = right + 8
    total = (far - 0.5) * jnp.log(far) - far + math.log(2 * math.pi) / 2
    total = total + lax.polynomial(1 / (far * far), _STIRLING) / far
    for k in range(8):
        total = total - jnp.log(right + k)
    turn = jnp.exp(2j * math.pi * lax.complex(real - jnp.round(real), jnp.imag(z)))
    log_sine = -1j * math.pi * (z - 0.5) + jnp.log1p(-turn) - math.log(2)
    total = jnp.where(left, math.log(math.pi) - log_sine - total, total)
    return jnp.where(lower, jnp.conj(total), total)


@numpy_function
def loggamma(x: ArrayLike) -> Array:
    """The principal branch of the logarithm of Gamma(x), for real or complex x.

    Real x below 0, where it is complex, give nan; and so does 0.

    Args:
      x: an array or a number; integers become floats.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.special.loggamma(5.0)), 4)
    3.1781
    """
    (x,) = floats("loggamma", x)
    return strong(_loggamma(x)) if is_complex(x) else jnp.where(x > 0, lax.lgamma(x), math.nan)


# -- beta functions --------------------------------------------------------------------------------


def _remainder(x: Array) -> Array:
    """log Gamma(x) less (x - 1/2) log x - x + log(2 pi)/2, for x >= 8."""
    return lax.polynomial(1 / (x * x), _STIRLING[:4 if x.dtype == np.float32 else None]) / x


def is_pole(x: Array) -> Array:
    """Whether x is 0, -1, -2, ...: where Gamma has a pole, and a series with it is a polynomial."""
    return (x <= 0) & (x == jnp.floor(x))


def _reflects(pole: Array, other: Array) -> Array:
    """Whether B has the value (-1)^other B(1 - pole - other, other) at a pole of Gamma(pole): where
    that of Gamma(pole + other) cancels it."""
    return is_pole(pole) & (other == jnp.floor(other)) & (pole + other <= 0)


@custom_jvp
@in_single
def betaln_of(a: Array, b: Array) -> Array:
    """`betaln` of arrays of one real dtype.

    For large arguments the large terms of Stirling's series are cancelled by hand.
    """
    low, high = jnp.minimum(a, b), jnp.maximum(a, b)
    turned = _reflects(low, high) & (high > 0)
    pole = (is_pole(low) | is_pole(high)) & ~turned
    turned_low = jnp.where(turned, 1 - low - high, low)
    low, high = jnp.minimum(turned_low, high), jnp.maximum(turned_low, high)
    of_low = lax.lgamma(low)
    plain = of_low + (lax.lgamma(high) - lax.lgamma(low + high))
    large = low > 8
    q, p = jnp.where(high > 8, high, 8), jnp.where(large, low, 8)
    whole = low + q
    h = low / q
    # log Gamma(q) - log Gamma(low + q) + low log(q) - low, whose last terms go into those of low
    quotient = _remainder(q) - _remainder(jnp.maximum(whole, 8)) - (whole - 0.5) * jnp.log1p(h)
    log = jnp.log(jnp.where(large, p / q, q))
    rest = jnp.where(large, (math.log(2 * math.pi) - jnp.log(q)) / 2 + _remainder(p)
                     + (p - 0.5) * log, of_low - low * (log - 1))
    mixed = (high > 8) & (whole > 8)
    out = jnp.where(mixed, rest + quotient, plain)
    far = jnp.where(low == high, math.nan, jnp.where(low > 0, -math.inf, math.inf))
    out = jnp.where(jnp.isinf(high), far, out)
    return jnp.where(pole & ~jnp.isnan(low + high), math.inf, out)


partials(betaln_of, lambda out, a, b: lax.digamma(a) - lax.digamma(a + b),
         lambda out, a, b: lax.digamma(b) - lax.digamma(a + b))


@numpy_function
def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """The logarithm of |B(a, b)|, of the beta function (DLMF 5.12.1).

    Args:
      a, b: real numbers, arrays or numbers, which broadcast.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.special.betaln(2.0, 3.0)), 4)
    -2.4849
    """
    a, b = floats("betaln", a, b)
    return weak_as(betaln_of(a, b), a, b)


@numpy_function
def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """The beta function Gamma(a) Gamma(b)/Gamma(a + b) (DLMF 5.12.1).

    Args:
      a, b: real numbers, arrays or numbers, which broadcast.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.special.beta(2.0, 3.0)), 4)
    0.0833
    """
    a, b = reals("beta", a, b)
    below = sign_of_gamma(a + b)
    sign = sign_of_gamma(a) * sign_of_gamma(b) * jnp.where(jnp.isnan(below), 1, below)
    for pole, other in ((b, a), (a, b)):
        turned = jnp.where(_reflects(pole, other) & (jnp.mod(other, 2) != 0), -1, 1)
        sign = jnp.where(is_pole(pole), turned.astype(sign.dtype), sign)
    return lax.stop_gradient(sign) * jnp.exp(betaln_of(a, b))


@numpy_function
def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularized incomplete beta function I_x(a, b) (DLMF 8.17.2), for x in [0, 1].

    Args:
      a, b: the parameters, positive; they broadcast with `x`.
      x: the end of the integral, from 0 to 1.

    Raises:
      ValueError: the derivative in a or b is asked for.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.special.betainc(1.0, 1.0, 0.25)), 4)
    0.25
    """
    return lax.betainc(*reals("betainc", a, b, x))


@numpy_function
def gammainc(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized lower incomplete gamma function P(a, x) (DLMF 8.2.4), for a, x >= 0.

    Args:
      a: the parameter, positive; it broadcasts with `x`.
      x: the end of the integral, not negative.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.special.gammainc(1.0, 1.0)), 4)
    0.6321
    """
    return lax.igamma(*promote_args_as_floats("gammainc", a, x))


@numpy_function
def gammaincc(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized upper incomplete gamma function 1 - P(a, x) (DLMF 8.2.4), for a, x >= 0.

    Args:
      a: the parameter, positive; it broadcasts with `x`.
      x: the end of the integral, not negative.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.special.gammaincc(1.0, 1.0)), 4)
    0.3679
    """
    return lax.igammac(*promote_args_as_floats("gammaincc", a, x))


@numpy_function(static_argnames=("d",))
def multigammaln(a: Array, d: Any) -> Array:
    """The logarithm of the multivariate gamma function of dimension d (DLMF 35.3.4).

    It is d (d - 1)/4 log(pi) plus the sum of log Gamma(a - i/2) over i = 0, ..., d - 1.

    Args:
      a: array of real dtype.
      d: a number known while the program is traced, whose fraction is cut off.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.special.multigammaln(3.0, 2)), 4)
    1.5502
    """
    d = concrete_or_error(None, d,
                          "The error arose in jax.scipy.special.multigammaln argument `d`.")
    d = as_truncated_int("multigammaln", "d", d)
    a = as_array(promote_dtypes_as_floats(*operands("multigammaln", a), d)[0])
    steps = lax.broadcasted_iota(a.dtype, (1,) * a.ndim + (d,), a.ndim) / 2
    return d * (d - 1) / 4 * math.log(math.pi) + lax.lgamma(a[..., None] - steps).sum(-1)


# -- factorials ------------------------------------------------------------------------------------


@numpy_function(static_argnames=("exact",))
def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """Gamma(n + 1), and 0 for negative n.

    Args:
      n: numbers that are not negative; integers become floats.
      exact: must be False: there are no integers of any size.

    Raises:
      NotImplementedError: `exact` is true.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.special.factorial(4)), 3)
    24.0
    """
    if exact:
        raise NotImplementedError("factorial with exact=True")
    (n,) = floats("factorial", n)
    return jnp.where(n < 0, 0, jnp.exp(lax.lgamma(n + 1)))


def _choose(n: Array, k: Array) -> Array:
    # 1/((n + 1) B(n - k + 1, k + 1)), DLMF 1.2.6 with 5.12.1
    inside = (n >= 0) & (k >= 0) & (k <= n)
    n, k = jnp.where(inside, n, 1), jnp.where(inside, k, 0)
    return jnp.where(inside, jnp.exp(-betaln_of(n - k + 1, k + 1)) / (n + 1), 0)


@numpy_function(static_argnames=("repetition",))
def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:
    """The number of ways to choose k of N things, as a float; 0 unless 0 <= k <= N.

    Args:
      N, k: arrays of real dtype.
      repetition: whether a thing may be chosen more than once.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.special.comb(4, 2)), 3)
    6.0
    """
    n, k = floats("comb", N, k)
    out = _choose(n, k)
    if repetition:  # of no things none can be chosen in one way
        out = jnp.where((n == 0) & (k == 0), 1, _choose(n + k - 1, k))
    return weak_as(out, n, k)


@custom_jvp
@in_single
def _poch(z: Array, m: Array) -> Array:
    end = z + m
    pole, end_pole = is_pole(z), is_pole(end)
    whole = m == jnp.floor(m)
    # both infinite, or far below 0: Gamma(1 - z)/Gamma(1 - z - m) times sines, by DLMF 5.5.3
    reflected = (pole | end_pole | (jnp.maximum(z, end) < -8)) & (jnp.abs(end) < math.inf)
    first, second = jnp.where(reflected, 1 - z, end), jnp.where(reflected, 1 - end, z)
    # For large arguments, whose logarithms agree in most digits, the large terms of Stirling's
    # series are cancelled by hand.
    far = (jnp.minimum(first, second) >= 8) & (end < math.inf)
    wide_first, wide_second = jnp.where(far, first, 8), jnp.where(far, second, 8)
    large = ((wide_second - 0.5) * jnp.log1p(m / wide_second) + m * (jnp.log(wide_first) - 1)
             + (_remainder(wide_first) - _remainder(wide_second)))
    size = jnp.exp(jnp.where(far, large, lax.lgamma(first) - lax.lgamma(second)))
    unlike = reflected & ~(whole | pole | end_pole)
    turns, end_turns = jnp.round(z), jnp.round(end)
    sines = jnp.where(unlike, jnp.sin(math.pi * (z - turns))
                      / jnp.sin(math.pi * jnp.where(unlike, end - end_turns, 0.5)), 1)
    odd = jnp.mod(jnp.where(unlike, turns - end_turns, m), 2) != 0
    sign = jnp.where(reflected, jnp.where(odd, -sines, sines),
                     sign_of_gamma(end) * sign_of_gamma(z))
    out = sign * size
    at_pole = jnp.where(pole, jnp.where(end_pole, out, 0), jnp.where(whole, out, math.inf))
    return jnp.where(m == 0, 1, jnp.where(reflected & ~unlike, at_pole, out))


partials(_poch, lambda out, z, m: out * (lax.digamma(z + m) - lax.digamma(z)),
         lambda out, z, m: out * lax.digamma(z + m))


@numpy_function
def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """The Pochhammer symbol Gamma(z + m)/Gamma(z) (DLMF 5.2.5).

    Args:
      z: where the product begins.
      m: how many factors it has, also a fraction; it broadcasts with `z`.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.special.poch(2.0, 3.0)), 3)
    24.0
    """
    return _poch(*reals("poch", z, m))


# -- polygamma and zeta functions, Bernoulli numbers -----------------------------------------------


@numpy_function
def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """The n-th derivative of `digamma` at x (DLMF 5.15).

    Args:
      n: the order of the derivative, an integer that is not negative; it broadcasts with `x`.
      x: real numbers, an array or a number.

    Raises:
      ValueError: `n` is not of integer dtype.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.special.polygamma(1, 1.0)), 4)
    1.6449
    """
    n, x = operands("polygamma", n, x)
    if not is_integer(n):
        raise ValueError("Argument `n` to polygamma must be of integer type. Got dtype "
                         f"{get_aval(n).dtype}.")
    n, x = reals("polygamma", n, x)
    at_pole = jnp.where(jnp.mod(n, 2) == 0, -math.inf, math.inf).astype(x.dtype)
    of_digamma = jnp.where(x == 0, jnp.copysign(jnp.full_like(x, math.inf), -x), math.nan)
    at_pole = jnp.where(n == 0, of_digamma, at_pole)
    return jnp.where(is_pole(x) & (n >= 0), at_pole, lax.polygamma(n, x))


@numpy_function
def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """The Hurwitz zeta function, the sum of (k + q)^-x over k = 0, 1, ... (DLMF 25.11.1).

    Args:
      x: array, above 1; the result is nan below.
      q: array.

    Raises:
      NotImplementedError: `q` is None, which means Riemann's zeta function.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.special.zeta(2.0, 1.0)), 4)
    1.6449
    """
    if q is None:
        raise NotImplementedError("Riemann zeta function not implemented; pass q != None to "
                                  "compute the Hurwitz Zeta function.")
    x, q = floats("zeta", x, q)
    return jnp.where(is_pole(q) & (x > 1), math.inf, lax.zeta(x, q))


def _bernoulli_numbers(n: int) -> np.ndarray[Any, Any]:
    numbers = np.zeros(n + 1)
    exact = [Fraction(1)]
    for m in range(1, min(n, 30) + 1):  # sum of binom(m + 1, k) B_k over k <= m is 0
        exact.append(-sum((math.comb(m + 1, k) * b for k, b in enumerate(exact)), Fraction(0))
                     / (m + 1))
    numbers[:len(exact)] = [float(b) for b in exact]
    with np.errstate(over="ignore", invalid="ignore"):
        for m in range(32, n + 1, 2):  # B_2k = (-1)^(k+1) 2 (2k)! zeta(2k)/(2 pi)^2k, DLMF 25.6.2
            zetas = [1 + 2.0 ** -k + 3.0 ** -k for k in (m, m - 2)]
            numbers[m] = -numbers[m - 2] * m * (m - 1) / (2 * math.pi) ** 2 * zetas[0] / zetas[1]
    return numbers


def bernoulli(n: int) -> Array:
    """The Bernoulli numbers B_0, ..., B_n (DLMF 24.2.1), with B_1 = -1/2.

    Args:
      n: int.

    Raises:
      TypeError: `n` is no integer.
      ValueError: it is negative.

    >>> import pyjx as jax
    >>> jax.scipy.special.bernoulli(2).round(4).tolist()[:2]
    [1.0, -0.5]
    """
    n = operator.index(n)
    if n < 0:
        raise ValueError(f"bernoulli: n must be a non-negative integer, got {n}.")
    with np.errstate(over="ignore"):
        return jnp.asarray(_bernoulli_numbers(n).astype(dtypes.default_float_dtype()))
