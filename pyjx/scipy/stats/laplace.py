"""The Laplace distribution: density e^-|y|/(2 scale), y = (x - loc)/scale."""

from __future__ import annotations

from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike
from pyjx.lazy import directory
from pyjx.numpy.dispatch import numpy_function
from pyjx.scipy.special.operands import strong_of_arrays
from pyjx.scipy.stats.parameters import nan_unless, reals

__all__ = ["cdf", "logpdf", "pdf"]
__dir__ = directory(__name__, __all__)


@numpy_function
@strong_of_arrays
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.laplace.logpdf(0.5)), 3)
    -1.193
    """
    x, loc, scale = reals("laplace.logpdf", x, loc, scale)
    x = nan_unless(scale > 0, x)
    return -jnp.abs((x - loc) / scale) - jnp.log(2 * scale)


@numpy_function
@strong_of_arrays
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.laplace.pdf(0.5)), 3)
    0.303
    """
    return jnp.exp(logpdf(x, loc, scale))


@numpy_function
@strong_of_arrays
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values up to x.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.laplace.cdf(0.5)), 3)
    0.697
    """
    x, loc, scale = reals("laplace.cdf", x, loc, scale)
    x = nan_unless(scale > 0, x)
    y = (x - loc) / scale
    tail = jnp.exp(-jnp.abs(y)) / 2
    return jnp.where(y < 0, tail, 1 - tail)
