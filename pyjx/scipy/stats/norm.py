"""The normal distribution: density e^(-y^2/2)/(sqrt(2 pi) scale), y = (x - loc)/scale."""

from __future__ import annotations

import math

from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike
from pyjx.lazy import directory
from pyjx.numpy.dispatch import numpy_function
from pyjx.scipy.special.normal import log_ndtr_of, ndtr_of, ndtri_of
from pyjx.scipy.special.operands import floats, strong_of_arrays, weak_as
from pyjx.scipy.stats.parameters import reals

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]
__dir__ = directory(__name__, __all__)


@numpy_function
@strong_of_arrays
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.norm.logpdf(0.5)), 3)
    -1.044
    """
    x, loc, scale = floats("norm.logpdf", x, loc, scale)
    y = (x - loc) / scale
    # that of a scale and of its negative is the same
    size = jnp.log(scale * scale) / 2 if jnp.iscomplexobj(scale) else jnp.log(jnp.abs(scale))
    size = weak_as(size.astype(y.dtype), scale)
    return -(y * y) / 2 - size - math.log(2 * math.pi) / 2


@numpy_function
@strong_of_arrays
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.norm.pdf(0.5)), 3)
    0.352
    """
    return jnp.exp(logpdf(x, loc, scale))


@numpy_function
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values up to x.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.norm.cdf(0.5)), 3)
    0.691
    """
    x, loc, scale = reals("norm.cdf", x, loc, scale)
    return ndtr_of((x - loc) / scale)


@numpy_function
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `cdf`.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.norm.logcdf(0.5)), 3)
    -0.369
    """
    x, loc, scale = reals("norm.logcdf", x, loc, scale)
    return log_ndtr_of((x - loc) / scale)


@numpy_function
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values above x: 1 - `cdf`.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.norm.sf(0.5)), 3)
    0.309
    """
    x, loc, scale = reals("norm.sf", x, loc, scale)
    return ndtr_of((loc - x) / scale)


@numpy_function
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.norm.logsf(0.5)), 3)
    -1.176
    """
    x, loc, scale = reals("norm.logsf", x, loc, scale)
    return log_ndtr_of((loc - x) / scale)


@numpy_function
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantiles: the inverse of `cdf`, of the default float dtype.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.norm.ppf(0.25)), 3)
    -0.674
    """
    q, loc, scale = reals("norm.ppf", q, loc, scale)
    return jnp.asarray(ndtri_of(q) * scale + loc, float)


@numpy_function
def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `sf`, of the default float dtype.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.norm.isf(0.25)), 3)
    0.674
    """
    q, loc, scale = reals("norm.isf", q, loc, scale)
    return jnp.asarray(ndtri_of(q) * -scale + loc, float)
