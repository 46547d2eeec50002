"""The exponential distribution: density e^-y/scale for y >= 0, y = (x - loc)/scale."""

from __future__ import annotations

import math

from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike
from pyjx.lazy import directory
from pyjx.nn.activations import log1mexp
from pyjx.numpy.dispatch import numpy_function
from pyjx.scipy.special.operands import floats
from pyjx.scipy.stats.parameters import nan_unless, reals

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]
__dir__ = directory(__name__, __all__)


def _inside(x: Array, loc: Array, scale: Array) -> Array:
    """y, or 0 below the support, at whose edge the slope is that from the right."""
    y = (x - loc) / scale
    return jnp.where(y < 0, 0, y)


@numpy_function
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.expon.logpdf(0.5)), 3)
    -0.5
    """
    x, loc, scale = reals("expon.logpdf", x, loc, scale)
    x = nan_unless(scale > 0, x)
    y = (x - loc) / scale
    return jnp.where(y < 0, -math.inf, -y - jnp.log(scale))


@numpy_function
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.expon.pdf(0.5)), 3)
    0.607
    """
    return jnp.exp(logpdf(x, loc, scale))


@numpy_function
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values up to x.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.expon.cdf(0.5)), 3)
    0.393
    """
    x, loc, scale = reals("expon.cdf", x, loc, scale)
    x = nan_unless(scale > 0, x)
    return -jnp.expm1(-_inside(x, loc, scale))


@numpy_function
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `cdf`.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.expon.logcdf(0.5)), 3)
    -0.933
    """
    x, loc, scale = reals("expon.logcdf", x, loc, scale)
    x = nan_unless(scale > 0, x)
    y = (x - loc) / scale
    outside = y < 0
    return jnp.where(outside, -math.inf, log1mexp(jnp.where(outside, 1, y)))


@numpy_function
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values above x: 1 - `cdf`.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.expon.sf(0.5)), 3)
    0.607
    """
    return jnp.exp(logsf(x, loc, scale))


@numpy_function
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.expon.logsf(0.5)), 3)
    -0.5
    """
    x, loc, scale = reals("expon.logsf", x, loc, scale)
    x = nan_unless(scale > 0, x)
    return -_inside(x, loc, scale)


@numpy_function
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantiles: the inverse of `cdf`.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.expon.ppf(0.25)), 3)
    0.288
    """
    q, loc, scale = floats("expon.ppf", q, loc, scale)
    q = nan_unless(scale > 0, q)
    valid = (q >= 0) & (q <= 1)
    return jnp.where(valid, loc - scale * jnp.log1p(-jnp.where(valid, q, 0)), math.nan)
