"""The normal distribution within [a, b], in y = (x - loc)/scale."""

from __future__ import annotations

import math

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike
from pyjx.lazy import directory
from pyjx.numpy.dispatch import numpy_function
from pyjx.scipy.special.normal import tail_of
from pyjx.scipy.special.operands import in_single, partials, strongly
from pyjx.scipy.stats.parameters import nan_unless, reals
from pyjx.transforms.custom_jvp import custom_jvp

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]
__dir__ = directory(__name__, __all__)

_ROOT_HALF = math.sqrt(0.5)


@custom_jvp
@strongly
@in_single
def _log_mass(a: Array, b: Array) -> Array:
    """The logarithm of the probability of [a, b] under the normal distribution, for a < b."""
    # turned to the left tail, where differences of probabilities do not cancel
    right = a > 0
    low, high = jnp.where(right, -b, a), jnp.where(right, -a, b)
    near = high > -0.5
    mass = (lax.erf(high * _ROOT_HALF) - lax.erf(low * _ROOT_HALF)) / 2
    # Elsewhere Phi(x) is e^(-x^2/2) times the tail: the larger exponential is taken out.
    square = high * high / 2
    tail = tail_of(high)
    lost = jnp.exp(jnp.where(near, -low * low, (high - low) * (high + low)) / 2) * tail_of(low)
    log = jnp.log(jnp.where(near, mass, tail - lost)) - jnp.where(near, 0, square)
    # what is near 1 is known by what is missing
    return jnp.where(near & (mass > 0.5), jnp.log1p(-lost - tail * jnp.exp(-square)), log)


def _at_end(x: Array, log_mass: Array, a: Array, b: Array) -> Array:
    """The density at an end of [a, b]."""
    density = jnp.exp(-x * x / 2 - log_mass) / math.sqrt(2 * math.pi)
    return jnp.where(a >= b, 0, density)


partials(_log_mass, lambda out, a, b: -_at_end(a, out, a, b),
         lambda out, a, b: _at_end(b, out, a, b))


def _checked(y: Array, a: Array, b: Array, out: Array) -> Array:
    return jnp.where((a < b) & (y == y), out, math.nan)


@numpy_function
def logpdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
          ) -> Array:
    """The logarithm of the density.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.truncnorm.logpdf(0.5, -1.0, 2.0)), 3)
    -0.844
    """
    x, a, b, loc, scale = reals("truncnorm.logpdf", x, a, b, loc, scale)
    x = nan_unless(scale > 0, x)
    y = (x - loc) / scale
    log = -(y * y) / 2 - math.log(2 * math.pi) / 2 - jnp.log(scale) - _log_mass(a, b)
    return _checked(y, a, b, jnp.where((y < a) | (y > b), -math.inf, log))


@numpy_function
def pdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
       ) -> Array:
    """The density.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.truncnorm.pdf(0.5, -1.0, 2.0)), 3)
    0.43
    """
    return jnp.exp(logpdf(x, a, b, loc, scale))


@numpy_function
def cdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
       ) -> Array:
    """The probability of values up to x.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.truncnorm.cdf(0.5, -1.0, 2.0)), 3)
    0.651
    """
    return jnp.exp(logcdf(x, a, b, loc, scale))


@numpy_function
def logcdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
          ) -> Array:
    """The logarithm of `cdf`.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.truncnorm.logcdf(0.5, -1.0, 2.0)), 3)
    -0.429
    """
    x, a, b, loc, scale = reals("truncnorm.logcdf", x, a, b, loc, scale)
    x = nan_unless(scale > 0, x)
    y = (x - loc) / scale
    y = jnp.clip(y, a, b)
    log = jnp.where(y == a, -math.inf, _log_mass(a, jnp.where(y == a, b, y)) - _log_mass(a, b))
    return _checked(y, a, b, jnp.minimum(log, 0))


@numpy_function
def sf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values above x: 1 - `cdf`.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.truncnorm.sf(0.5, -1.0, 2.0)), 3)
    0.349
    """
    return jnp.exp(logsf(x, a, b, loc, scale))


@numpy_function
def logsf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
         ) -> Array:
    """The logarithm of `sf`.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.truncnorm.logsf(0.5, -1.0, 2.0)), 3)
    -1.052
    """
    x, a, b, loc, scale = reals("truncnorm.logsf", x, a, b, loc, scale)
    x = nan_unless(scale > 0, x)
    y = (x - loc) / scale
    y = jnp.clip(y, a, b)
    log = jnp.where(y == b, -math.inf, _log_mass(jnp.where(y == b, a, y), b) - _log_mass(a, b))
    return _checked(y, a, b, jnp.minimum(log, 0))
