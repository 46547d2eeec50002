"""The logistic distribution: density e^-y/((1 + e^-y)^2 scale), y = (x - loc)/scale."""

from __future__ import annotations

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import get_aval
from pyjx.lazy import directory
from pyjx.numpy.dispatch import numpy_function
from pyjx.numpy.operands import is_complex
from pyjx.scipy.special.logarithms import logit_of
from pyjx.scipy.special.operands import floats, strong_of_arrays, strong_throughout

__all__ = ["cdf", "isf", "logpdf", "pdf", "ppf", "sf"]
__dir__ = directory(__name__, __all__)


@numpy_function
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.logistic.logpdf(0.5)), 3)
    -1.448
    """
    x, loc, scale = floats("logistic.logpdf", x, loc, scale)
    y = (x - loc) / scale
    y = jnp.where(jnp.real(y) < 0, -y, y) if is_complex(y) else jnp.abs(y)  # the density is even
    log = -y - 2 * jnp.log1p(jnp.exp(-y)) - jnp.log(scale)
    # As JAX has it, whichever is the array
    return strong_throughout(log) if get_aval(log).shape else log


@numpy_function
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.logistic.pdf(0.5)), 3)
    0.235
    """
    return jnp.exp(logpdf(x, loc, scale))


@numpy_function
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values up to x.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.logistic.cdf(0.5)), 3)
    0.622
    """
    x, loc, scale = floats("logistic.cdf", x, loc, scale)
    return lax.logistic((x - loc) / scale)


@numpy_function
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values above x: 1 - `cdf`.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.logistic.sf(0.5)), 3)
    0.378
    """
    x, loc, scale = floats("logistic.sf", x, loc, scale)
    return lax.logistic((loc - x) / scale)


@numpy_function
@strong_of_arrays
def ppf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantiles: the inverse of `cdf`.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.logistic.ppf(0.5)), 3)
    0.0
    """
    x, loc, scale = floats("logistic.ppf", x, loc, scale)
    return logit_of(x) * scale + loc


@numpy_function
@strong_of_arrays
def isf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `sf`.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.logistic.isf(0.5)), 3)
    0.0
    """
    x, loc, scale = floats("logistic.isf", x, loc, scale)
    return logit_of(x) * -scale + loc
