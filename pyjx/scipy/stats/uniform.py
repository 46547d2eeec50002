"""The uniform distribution over [loc, loc + scale]."""

from __future__ import annotations

import math

from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike
from pyjx.lazy import directory
from pyjx.numpy.dispatch import numpy_function
from pyjx.scipy.special.operands import floats
from pyjx.scipy.stats.parameters import nan_unless, reals

__all__ = ["cdf", "logpdf", "pdf", "ppf"]
__dir__ = directory(__name__, __all__)


@numpy_function
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.uniform.logpdf(0.5)), 3)
    0.0
    """
    x, loc, scale = floats("uniform.logpdf", x, loc, scale)
    x = nan_unless(scale > 0, x)
    outside = (x < loc) | (x > loc + scale)
    log = jnp.where(outside, -math.inf, jnp.log(1 / scale))
    return jnp.where(jnp.isnan((x - loc) / scale), math.nan, log)


@numpy_function
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.uniform.pdf(0.5)), 3)
    1.0
    """
    return jnp.exp(logpdf(x, loc, scale))


@numpy_function
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values up to x.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.uniform.cdf(0.5)), 3)
    0.5
    """
    x, loc, scale = reals("uniform.cdf", x, loc, scale)
    x = nan_unless(scale > 0, x)
    return jnp.clip((x - loc) / scale, 0, 1)


@numpy_function
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantiles: the inverse of `cdf`.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.uniform.ppf(0.25)), 3)
    0.25
    """
    q, loc, scale = floats("uniform.ppf", q, loc, scale)
    q = nan_unless(scale > 0, q)
    return jnp.where((q >= 0) & (q <= 1), loc + scale * q, math.nan)
