"""The normal distribution within [a, b], in y = (x - loc)/scale."""

from __future__ import annotations

import math
from typing import Any

from pyjx import numpy as jnp
from pyjx.core.array_type import Array
from pyjx.lazy import directory
from pyjx.nn.complements import log1mexp
from pyjx.numpy.dispatch import numpy_function
from pyjx.scipy.special.normal import log_ndtr_of, ndtr_of
from pyjx.scipy.stats.parameters import nan_unless, reals

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]
__dir__ = directory(__name__, __all__)


def _log_mass(a: Array, b: Array) -> Array:
    """The logarithm of the probability of [a, b] under the normal distribution, for a < b."""
    # turned to the left tail, where differences of probabilities do not cancel
    right = a > 0
    low, high = jnp.where(right, -b, a), jnp.where(right, -a, b)
    across = high > 0
    top = log_ndtr_of(jnp.where(across, 0, high))
    bottom = log_ndtr_of(jnp.minimum(low, jnp.where(across, -1, high)))
    tail = top + log1mexp(jnp.where(top > bottom, top - bottom, 0))
    middle = jnp.log1p(-ndtr_of(jnp.where(across, low, -1)) - ndtr_of(jnp.where(across, -high, -1)))
    return jnp.where(across, middle, tail)


def _checked(y: Array, a: Array, b: Array, out: Array) -> Array:
    return jnp.where((a < b) & ~jnp.isnan(y), out, math.nan)


@numpy_function
def logpdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
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
def pdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.truncnorm.pdf(0.5, -1.0, 2.0)), 3)
    0.43
    """
    return jnp.exp(logpdf(x, a, b, loc, scale))


@numpy_function
def cdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of values up to x.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.truncnorm.cdf(0.5, -1.0, 2.0)), 3)
    0.651
    """
    return jnp.exp(logcdf(x, a, b, loc, scale))


@numpy_function
def logcdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
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
def sf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of values above x: 1 - `cdf`.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.truncnorm.sf(0.5, -1.0, 2.0)), 3)
    0.349
    """
    return jnp.exp(logsf(x, a, b, loc, scale))


@numpy_function
def logsf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
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
