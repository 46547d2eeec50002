"""Entropies, logistic functions, power transformations, softmax."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from pyjx import lax, nn
from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike, AxisLike
from pyjx.numpy.operands import is_complex, numpy_function
from pyjx.numpy.promotion import promote_args_as_floats
from pyjx.scipy.special.operands import (
    floats,
    in_single,
    partials,
    reals,
    strong_of_arrays,
    strong_throughout,
    weak_as,
)
from pyjx.transforms.custom_jvp import custom_jvp


@custom_jvp
def xlogy_of(x: Array, y: Array) -> Array:
    return jnp.where((x == 0) & (y == y), 0, x * jnp.log(y))


@custom_jvp
def xlog1py_of(x: Array, y: Array) -> Array:
    return jnp.where((x == 0) & (y == y), 0, x * jnp.log1p(y))


partials(xlogy_of, lambda out, x, y: jnp.log(y), lambda out, x, y: x / y)
partials(xlog1py_of, lambda out, x, y: jnp.log1p(y), lambda out, x, y: x / (1 + y))


def log_probability(p: Array) -> Array:
    """log(p), with no slope where p is 0, which is outside a distribution's support."""
    outside = p == 0
    return jnp.where(outside, -math.inf, jnp.log(jnp.where(outside, 1, p)))


@numpy_function
def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """x log(y), which is 0 for x = 0 whatever y is, unless that is nan.

    Args:
      x, y: arrays or numbers, which broadcast.

    >>> import pyjx as jax
    >>> float(jax.scipy.special.xlogy(0.0, 0.0))
    0.0
    """
    return xlogy_of(*floats("xlogy", x, y))


@numpy_function
def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """x log(1 + y), which is 0 for x = 0 whatever y is, unless that is nan.

    Args:
      x, y: arrays or numbers, which broadcast.

    >>> import pyjx as jax
    >>> float(jax.scipy.special.xlog1py(0.0, -1.0))
    0.0
    """
    return xlog1py_of(*floats("xlog1py", x, y))


@numpy_function
def entr(x: ArrayLike) -> Array:
    """The elementwise entropy -x log(x): 0 at 0, -inf below.

    Args:
      x: real numbers, an array or a number; integers become floats.

    >>> import pyjx as jax
    >>> float(jax.scipy.special.entr(1.0))
    -0.0
    """
    (x,) = reals("entr", x)
    return _entr(x)


@custom_jvp
def _entr(x: Array) -> Array:
    return jnp.where(x < 0, -math.inf, -xlogy_of(x, x))


partials(_entr, lambda out, x: jnp.where(x < 0, 0, -1 - jnp.log(jnp.where(x < 0, 1, x))))


def _by_cases(p: Array, q: Array, inside: Callable[[Array, Array], Array], edge: Array | int,
              outside: float = math.inf) -> Array:
    """`inside` where p and q are positive, `edge` where p = 0 and q >= 0, `outside` elsewhere."""
    positive = (p > 0) & (q > 0)
    out = inside(jnp.where(positive, p, 1), jnp.where(positive, q, 1))
    out = jnp.where(positive, out, jnp.where((p == 0) & (q >= 0), edge, outside))
    return jnp.where(jnp.isnan(p) | jnp.isnan(q), math.nan, out)


def _log_ratio(p: Array, q: Array) -> Array:
    ratio, excess = p / q, (p - q) / q
    near = jnp.abs(excess) < 0.5
    far = jnp.where((ratio > 0) & (ratio < math.inf), jnp.log(ratio), jnp.log(p) - jnp.log(q))
    return jnp.where(near, jnp.log1p(jnp.where(near, excess, 0)), far)


def _divergence(p: Array, q: Array) -> Array:
    # With d = p/q - 1: q ((1 + d) log(1 + d) - d) = q sum of (-d)^k/(k (k - 1)) over k >= 2
    excess = (p - q) / q
    near = jnp.abs(excess) < 0.1
    d = jnp.where(near, excess, 0)
    series = d * d * lax.polynomial(d, [(-1) ** k / (k * (k - 1)) for k in range(2, 18)])
    return jnp.where(near, q * series, p * _log_ratio(p, q) - (p - q))


@custom_jvp
def _rel_entr(p: Array, q: Array) -> Array:
    return _by_cases(p, q, lambda p, q: p * _log_ratio(p, q), 0)


@custom_jvp
def _kl_div(p: Array, q: Array) -> Array:
    return _by_cases(p, q, _divergence, q)


partials(_rel_entr,
         lambda out, p, q: _by_cases(p, q, lambda p, q: _log_ratio(p, q) + 1, 0, 0),
         lambda out, p, q: _by_cases(p, q, lambda p, q: -p / q, 0, 0))
partials(_kl_div,
         lambda out, p, q: _by_cases(p, q, _log_ratio, 0, 0),
         lambda out, p, q: _by_cases(
             p, q, lambda p, q: jnp.where(q < math.inf, (q - p) / q, 1), 1, 0))


@numpy_function
@strong_of_arrays
def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """The elementwise relative entropy p log(p/q).

    It is 0 where p = 0 and q >= 0, and inf outside of p, q >= 0.

    Args:
      p, q: arrays or numbers that are not negative, such as probabilities; they broadcast.

    >>> import pyjx as jax
    >>> float(jax.scipy.special.rel_entr(0.0, 0.5))
    0.0
    """
    return _rel_entr(*reals("rel_entr", p, q))


@numpy_function
@strong_of_arrays
def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """The terms p log(p/q) - p + q of the Kullback-Leibler divergence.

    It is q where p = 0 and q >= 0, and inf outside of p, q >= 0.

    Args:
      p, q: arrays or numbers that are not negative, such as probabilities; they broadcast.

    >>> import pyjx as jax
    >>> float(jax.scipy.special.kl_div(0.0, 0.5))
    0.5
    """
    p, q = reals("kl_div", p, q)
    return weak_as(_kl_div(p, q), p, q)


# -- logistic functions ----------------------------------------------------------------------------


@custom_jvp
@in_single
def logit_of(x: Array) -> Array:
    if is_complex(x):
        return jnp.log(x / (1 - x))
    # near 1/2 the ratio x/(1 - x) is near 1: there it is 2 artanh(2x - 1), by its series
    odds = 2 * x - 1
    square = odds * odds
    terms = (2.0, 0.66660078, 0.40873059) if x.dtype == np.float32 else [
        2 / (2 * k + 1) for k in range(10)]
    return jnp.where(square < 0.02, odds * lax.polynomial(square, terms), jnp.log(x / (1 - x)))


logit_of.defjvps(lambda g, out, x: g / (x * (1 - x)))


@numpy_function
def logit(x: ArrayLike) -> Array:
    """The inverse of `expit`, log(x/(1 - x)).

    Args:
      x: numbers from 0 to 1.

    >>> import pyjx as jax
    >>> float(jax.scipy.special.logit(0.5))
    0.0
    """
    (x,) = floats("logit", x)
    return strong_throughout(logit_of(x)) if x.ndim else logit_of(x)


@numpy_function
def expit(x: ArrayLike) -> Array:
    """The logistic function 1/(1 + e^-x).

    Args:
      x: an array or a number; integers become floats.

    >>> import pyjx as jax
    >>> float(jax.scipy.special.expit(0.0))
    0.5
    """
    return lax.logistic(*promote_args_as_floats("expit", x))


@custom_jvp
def _power_transform(log_x: Array, power: Array) -> Array:
    # (x^c - 1)/c, whose limit at c = 0 is log x, and its derivative there log(x)^2/2
    level = power == 0
    return jnp.where(level, log_x, jnp.expm1(power * log_x) / jnp.where(level, 1, power))


partials(_power_transform, lambda out, log_x, power: jnp.exp(power * log_x),
         lambda out, log_x, power: jnp.where(
             power == 0, log_x * log_x / 2,
             (log_x * jnp.exp(power * log_x) - out) / jnp.where(power == 0, 1, power)))


@numpy_function
def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """The Box-Cox transformation (x^lmbda - 1)/lmbda, log(x) where lmbda = 0.

    Args:
      x: real numbers, an array or a number.
      lmbda: the power; it broadcasts with `x`.

    >>> import pyjx as jax
    >>> float(jax.scipy.special.boxcox(3.0, 2.0))
    4.0
    """
    x, power = floats("boxcox", x, lmbda)
    return _power_transform(jnp.log(x), power)


@numpy_function
def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """The Box-Cox transformation of 1 + x, precise for small x.

    Args:
      x: real numbers, an array or a number.
      lmbda: the power; it broadcasts with `x`.

    >>> import pyjx as jax
    >>> float(jax.scipy.special.boxcox1p(2.0, 2.0))
    4.0
    """
    x, power = floats("boxcox1p", x, lmbda)
    return _power_transform(jnp.log1p(x), power)


# -- softmax ---------------------------------------------------------------------------------------


@numpy_function(static_argnames=("axis",))
def softmax(x: ArrayLike, /, *, axis: AxisLike = None) -> Array:
    """exp(x) divided by its sum over the given axes; all axes by default.

    Args:
      x: an array.
      axis: the axis or axes that are summed over; None for all.

    >>> import pyjx as jax
    >>> jax.scipy.special.softmax(jax.numpy.array([1.0, 1.0])).tolist()
    [0.5, 0.5]
    """
    return nn.softmax(x, axis)


@numpy_function(static_argnames=("axis",))
def log_softmax(x: ArrayLike, /, *, axis: AxisLike = None) -> Array:
    """The logarithm of `softmax`.

    Args:
      x: an array.
      axis: the axis or axes that are summed over; None for all.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.special.log_softmax(jax.numpy.array([1.0, 1.0]))[0]), 4)
    -0.6931
    """
    return nn.log_softmax(x, axis)
