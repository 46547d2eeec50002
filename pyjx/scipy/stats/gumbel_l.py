"""The left-skewed Gumbel distribution: density e^(y - e^y)/scale, y = (x - loc)/scale."""

from __future__ import annotations

import math

from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike
from pyjx.lazy import directory
from pyjx.nn.activations import log1mexp
from pyjx.numpy.dispatch import numpy_function
from pyjx.scipy.stats.parameters import nan_unless, reals

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]
__dir__ = directory(__name__, __all__)


@numpy_function
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.gumbel_l.logpdf(0.5)), 3)
    -1.149
    """
    x, loc, scale = reals("gumbel_l.logpdf", x, loc, scale)
    x = nan_unless(scale > 0, x)
    y = (x - loc) / scale
    # both terms are infinite at the end, where the density is 0
    return jnp.where(y == math.inf, -math.inf, y - jnp.exp(y) - jnp.log(scale))


@numpy_function
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.gumbel_l.pdf(0.5)), 3)
    0.317
    """
    return jnp.exp(logpdf(x, loc, scale))


@numpy_function
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values up to x.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.gumbel_l.cdf(0.5)), 3)
    0.808
    """
    x, loc, scale = reals("gumbel_l.cdf", x, loc, scale)
    x = nan_unless(scale > 0, x)
    return -jnp.expm1(-jnp.exp((x - loc) / scale))


@numpy_function
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `cdf`.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.gumbel_l.logcdf(0.5)), 3)
    -0.214
    """
    x, loc, scale = reals("gumbel_l.logcdf", x, loc, scale)
    x = nan_unless(scale > 0, x)
    return log1mexp(jnp.exp((x - loc) / scale))


@numpy_function
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values above x: 1 - `cdf`.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.gumbel_l.sf(0.5)), 3)
    0.192
    """
    return jnp.exp(logsf(x, loc, scale))


@numpy_function
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.gumbel_l.logsf(0.5)), 3)
    -1.649
    """
    x, loc, scale = reals("gumbel_l.logsf", x, loc, scale)
    x = nan_unless(scale > 0, x)
    return -jnp.exp((x - loc) / scale)


@numpy_function
def ppf(p: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantiles: the inverse of `cdf`.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.gumbel_l.ppf(0.25)), 3)
    -1.246
    """
    p, loc, scale = reals("gumbel_l.ppf", p, loc, scale)
    p = nan_unless(scale > 0, p)
    return loc + scale * jnp.log(-jnp.log1p(-p))
