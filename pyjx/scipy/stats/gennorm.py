"""The generalized normal distribution: density beta e^(-|x|^beta)/(2 Gamma(1/beta))."""

from __future__ import annotations

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike
from pyjx.lazy import directory
from pyjx.numpy.dispatch import numpy_function
from pyjx.scipy.stats.parameters import nan_unless, reals

__all__ = ["cdf", "logpdf", "pdf"]
__dir__ = directory(__name__, __all__)


@numpy_function
def logpdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The logarithm of the density.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.gennorm.logpdf(0.5, 3.0)), 3)
    -0.705
    """
    x, beta = reals("gennorm.logpdf", x, beta)
    beta = nan_unless(beta > 0, beta)
    return jnp.log(beta / 2) - lax.lgamma(1 / beta) - jnp.abs(x) ** beta


@numpy_function
def pdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The density.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.gennorm.pdf(0.5, 3.0)), 3)
    0.494
    """
    return jnp.exp(logpdf(x, beta))


@numpy_function
def cdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The probability of values up to x.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.gennorm.cdf(0.5, 3.0)), 3)
    0.772
    """
    x, beta = reals("gennorm.cdf", x, beta)
    beta = nan_unless(beta > 0, beta)
    tail = lax.igammac(1 / beta, jnp.abs(x) ** beta) / 2
    return jnp.where(x < 0, tail, 1 - tail)
