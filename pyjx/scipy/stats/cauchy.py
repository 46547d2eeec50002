"""The Cauchy distribution: density 1/(pi (1 + y^2) scale), y = (x - loc)/scale."""

from __future__ import annotations

import math

from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike
from pyjx.lazy import directory
from pyjx.numpy.dispatch import numpy_function
from pyjx.numpy.operands import is_complex
from pyjx.scipy.special.operands import floats, strong_of_arrays
from pyjx.transforms.custom_jvp import custom_jvp

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]
__dir__ = directory(__name__, __all__)


def _cotangent(q: Array) -> Array:
    """cot(pi q) for q in [0, 1], infinite at both ends; complex q are ordered as by NumPy."""
    if is_complex(q):
        return jnp.where((q >= 0) & (q <= 1), 1 / jnp.tan(math.pi * q), math.nan)
    upper = q > 0.5
    rest = jnp.where(upper, 1 - q, q)
    size = 1 / jnp.tan(math.pi * jnp.where(rest >= 0, rest, math.nan))
    return jnp.where(upper, -size, size)


@custom_jvp
def _probability(y: Array) -> Array:
    """The distribution function of real y: 1/2 + arctan(y)/pi, which cancels far below 0."""
    far = y < -1
    turned = jnp.arctan(jnp.where(far, -1 / y, y))
    return jnp.where(far, turned, turned + math.pi / 2) / math.pi


_probability.defjvps(lambda g, out, y: g / (math.pi * (1 + y * y)))


@numpy_function
@strong_of_arrays
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.cauchy.logpdf(0.5)), 3)
    -1.368
    """
    x, loc, scale = floats("cauchy.logpdf", x, loc, scale)
    y = (x - loc) / scale
    return -jnp.log1p(y * y) - jnp.log(scale) - math.log(math.pi)


@numpy_function
@strong_of_arrays
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.cauchy.pdf(0.5)), 3)
    0.255
    """
    return jnp.exp(logpdf(x, loc, scale))


@numpy_function
@strong_of_arrays
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values up to x.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.cauchy.cdf(0.5)), 3)
    0.648
    """
    x, loc, scale = floats("cauchy.cdf", x, loc, scale)
    if is_complex(x):
        return 0.5 + jnp.arctan((x - loc) / scale) / math.pi
    return _probability((x - loc) / scale)


@numpy_function
@strong_of_arrays
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `cdf`.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.cauchy.logcdf(0.5)), 3)
    -0.435
    """
    return jnp.log(cdf(x, loc, scale))


@numpy_function
@strong_of_arrays
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values above x: 1 - `cdf`.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.cauchy.sf(0.5)), 3)
    0.352
    """
    x, loc, scale = floats("cauchy.sf", x, loc, scale)
    if is_complex(x):
        return 0.5 + jnp.arctan((loc - x) / scale) / math.pi
    return _probability((loc - x) / scale)


@numpy_function
@strong_of_arrays
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.cauchy.logsf(0.5)), 3)
    -1.043
    """
    return jnp.log(sf(x, loc, scale))


@numpy_function
@strong_of_arrays
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantiles: the inverse of `cdf`.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.cauchy.ppf(0.25)), 3)
    -1.0
    """
    q, loc, scale = floats("cauchy.ppf", q, loc, scale)
    return loc - scale * _cotangent(q)


@numpy_function
@strong_of_arrays
def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `sf`.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.cauchy.isf(0.25)), 3)
    1.0
    """
    q, loc, scale = floats("cauchy.isf", q, loc, scale)
    return loc + scale * _cotangent(q)
