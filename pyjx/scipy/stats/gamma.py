"""The gamma distribution: density y^(a-1) e^-y/(Gamma(a) scale), y = (x - loc)/scale >= 0."""

from __future__ import annotations

import math

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike
from pyjx.lazy import directory
from pyjx.numpy.dispatch import numpy_function
from pyjx.scipy.special.logarithms import log_probability, xlogy_of
from pyjx.scipy.special.operands import strong_of_arrays, strong_of_first
from pyjx.scipy.stats.parameters import nan_unless, reals

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]
__dir__ = directory(__name__, __all__)


def _inside(x: Array, a: Array, loc: Array, scale: Array) -> tuple[Array, Array]:
    """What is not above 0, where no slope is, and y elsewhere."""
    y = (x - loc) / scale
    outside = (y <= 0) & (a > 0)
    return outside, jnp.where(outside, 1, jnp.where(y < 0, 0, y))


@numpy_function
@strong_of_arrays
def logpdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.gamma.logpdf(1.5, 3.0)), 3)
    -1.382
    """
    x, a, loc, scale = reals("gamma.logpdf", x, a, loc, scale)
    x = nan_unless((a > 0) & (scale > 0), x)
    y = (x - loc) / scale
    outside = y < 0
    y = jnp.where(outside, 1, y)
    log = xlogy_of(a - 1, y) - y - lax.lgamma(a) - jnp.log(scale)
    return jnp.where(outside, -math.inf, log)


@numpy_function
@strong_of_arrays
def pdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.gamma.pdf(1.5, 3.0)), 3)
    0.251
    """
    return jnp.exp(logpdf(x, a, loc, scale))


@numpy_function
@strong_of_first
def cdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values up to x.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.gamma.cdf(1.5, 3.0)), 3)
    0.191
    """
    x, a, loc, scale = reals("gamma.cdf", x, a, loc, scale)
    x = nan_unless((a > 0) & (scale > 0), x)
    outside, y = _inside(x, a, loc, scale)
    return jnp.where(outside, 0, lax.igamma(a, y))


@numpy_function
@strong_of_first
def logcdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `cdf`.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.gamma.logcdf(1.5, 3.0)), 3)
    -1.655
    """
    return log_probability(cdf(x, a, loc, scale))


@numpy_function
def sf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values above x: 1 - `cdf`.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.gamma.sf(1.5, 3.0)), 3)
    0.809
    """
    x, a, loc, scale = reals("gamma.sf", x, a, loc, scale)
    x = nan_unless((a > 0) & (scale > 0), x)
    outside, y = _inside(x, a, loc, scale)
    return jnp.where(outside, 1, lax.igammac(a, y))


@numpy_function
def logsf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.gamma.logsf(1.5, 3.0)), 3)
    -0.212
    """
    return log_probability(sf(x, a, loc, scale))
