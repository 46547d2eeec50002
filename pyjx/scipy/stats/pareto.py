"""The Pareto distribution: density b/(y^(b+1) scale) for y >= 1, y = (x - loc)/scale."""

from __future__ import annotations

import math

from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike
from pyjx.lazy import directory
from pyjx.nn.activations import log1mexp
from pyjx.numpy.dispatch import numpy_function
from pyjx.scipy.special.operands import floats, strong_of_arrays, strong_of_first
from pyjx.scipy.stats.parameters import nan_unless, reals

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]
__dir__ = directory(__name__, __all__)


def _exponent(x: Array, b: Array, loc: Array, scale: Array) -> Array:
    """-log of the probability of values above x; at the edge with the slope from the right,
    where b is finite."""
    y = (x - loc) / scale
    outside = (y < 1) | ((y == 1) & (b == math.inf))
    return jnp.where(outside, 0, b * jnp.log(jnp.where(outside, 1, y)))


@numpy_function
@strong_of_arrays
def logpdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.pareto.logpdf(1.5, 2.0)), 3)
    -0.523
    """
    x, b, loc, scale = reals("pareto.logpdf", x, b, loc, scale)
    x = nan_unless((b > 0) & (scale > 0), x)
    y = (x - loc) / scale
    outside = y < 1
    log = jnp.log(b / scale) - (b + 1) * jnp.log(jnp.where(outside, 1, y))
    return jnp.where(outside, -math.inf, log)


@numpy_function
@strong_of_arrays
def pdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.pareto.pdf(1.5, 2.0)), 3)
    0.593
    """
    return jnp.exp(logpdf(x, b, loc, scale))


@numpy_function
@strong_of_first
def cdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values up to x.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.pareto.cdf(1.5, 2.0)), 3)
    0.556
    """
    x, b, loc, scale = reals("pareto.cdf", x, b, loc, scale)
    x = nan_unless((b > 0) & (scale > 0), x)
    return -jnp.expm1(-_exponent(x, b, loc, scale))


@numpy_function
def logcdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `cdf`.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.pareto.logcdf(1.5, 2.0)), 3)
    -0.588
    """
    x, b, loc, scale = reals("pareto.logcdf", x, b, loc, scale)
    x = nan_unless((b > 0) & (scale > 0), x)
    outside = (x - loc) / scale < 1
    exponent = _exponent(jnp.where(outside, loc + 2 * scale, x), b, loc, scale)
    return jnp.where(outside, -math.inf, log1mexp(exponent))


@numpy_function
@strong_of_arrays
def sf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values above x: 1 - `cdf`.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.pareto.sf(1.5, 2.0)), 3)
    0.444
    """
    return jnp.exp(logsf(x, b, loc, scale))


@numpy_function
@strong_of_arrays
def logsf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.pareto.logsf(1.5, 2.0)), 3)
    -0.811
    """
    x, b, loc, scale = reals("pareto.logsf", x, b, loc, scale)
    x = nan_unless((b > 0) & (scale > 0), x)
    return -_exponent(x, b, loc, scale)


@numpy_function
@strong_of_arrays
def ppf(q: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantiles: the inverse of `cdf`.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.pareto.ppf(0.25, 2.0)), 3)
    1.155
    """
    q, b, loc, scale = floats("pareto.ppf", q, b, loc, scale)
    q = nan_unless((b > 0) & (scale > 0), q)
    valid = (q >= 0) & (q <= 1)
    value = loc + scale * jnp.exp(-jnp.log1p(-jnp.where(valid, q, 0)) / b)
    return jnp.where(valid, value, math.nan)
