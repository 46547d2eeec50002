"""The beta distribution: density y^(a-1) (1-y)^(b-1)/(B(a, b) scale) of y = (x - loc)/scale."""

from __future__ import annotations

import math

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike
from pyjx.lazy import directory
from pyjx.numpy.dispatch import numpy_function
from pyjx.scipy.special.gammas import betaln_of
from pyjx.scipy.special.logarithms import log_probability, xlog1py_of, xlogy_of
from pyjx.scipy.special.operands import strong_of_arrays, weak_as
from pyjx.scipy.stats.parameters import nan_unless, reals

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]
__dir__ = directory(__name__, __all__)


@numpy_function
@strong_of_arrays
def logpdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
          ) -> Array:
    """The logarithm of the density.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.beta.logpdf(0.3, 2.0, 3.0)), 3)
    0.568
    """
    x, a, b, loc, scale = reals("beta.logpdf", x, a, b, loc, scale)
    x = nan_unless((a > 0) & (b > 0) & (scale > 0), x)
    y = (x - loc) / scale
    outside = (y < 0) | (y > 1)
    y = jnp.where(outside, 0.5, y)
    log = xlogy_of(a - 1, y) + xlog1py_of(b - 1, -y) - betaln_of(a, b) - jnp.log(scale)
    return weak_as(jnp.where(outside, -math.inf, log), x, a, b, loc, scale)


@numpy_function
def pdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
       ) -> Array:
    """The density.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.beta.pdf(0.3, 2.0, 3.0)), 3)
    1.764
    """
    return jnp.exp(logpdf(x, a, b, loc, scale))


@numpy_function
@strong_of_arrays
def cdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
       ) -> Array:
    """The probability of values up to x.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.beta.cdf(0.3, 2.0, 3.0)), 3)
    0.348
    """
    x, a, b, loc, scale = reals("beta.cdf", x, a, b, loc, scale)
    x = nan_unless((a > 0) & (b > 0) & (scale > 0), x)
    return lax.betainc(a, b, jnp.clip((x - loc) / scale, 0, 1))


@numpy_function
@strong_of_arrays
def logcdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
          ) -> Array:
    """The logarithm of `cdf`.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.beta.logcdf(0.3, 2.0, 3.0)), 3)
    -1.055
    """
    return log_probability(cdf(x, a, b, loc, scale))


@numpy_function
@strong_of_arrays
def sf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values above x: 1 - `cdf`.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.beta.sf(0.3, 2.0, 3.0)), 3)
    0.652
    """
    x, a, b, loc, scale = reals("beta.sf", x, a, b, loc, scale)
    x = nan_unless((a > 0) & (b > 0) & (scale > 0), x)
    return lax.betainc(b, a, 1 - jnp.clip((x - loc) / scale, 0, 1))


@numpy_function
@strong_of_arrays
def logsf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
         ) -> Array:
    """The logarithm of `sf`.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.beta.logsf(0.3, 2.0, 3.0)), 3)
    -0.428
    """
    return log_probability(sf(x, a, b, loc, scale))
