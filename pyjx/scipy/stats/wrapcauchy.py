"""The wrapped Cauchy distribution over [0, 2 pi]: density (1-c^2)/(2 pi (1+c^2-2c cos(x)))."""

from __future__ import annotations

import math

from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike
from pyjx.lazy import directory
from pyjx.numpy.dispatch import numpy_function
from pyjx.scipy.stats.parameters import reals

__all__ = ["logpdf", "pdf"]
__dir__ = directory(__name__, __all__)


@numpy_function
def logpdf(x: ArrayLike, c: ArrayLike) -> Array:
    """The logarithm of the density.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.wrapcauchy.logpdf(0.5, 0.5)), 3)
    -1.138
    """
    x, c = reals("wrapcauchy.logpdf", x, c)
    log = jnp.log((1 - c * c) / (2 * math.pi)) - jnp.log1p(c * c - 2 * c * jnp.cos(x))
    log = jnp.where((x < 0) | (x > 2 * math.pi), -math.inf, log)
    return jnp.where((c > 0) & (c < 1), log, math.nan)


@numpy_function
def pdf(x: ArrayLike, c: ArrayLike) -> Array:
    """The density.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.wrapcauchy.pdf(0.5, 0.5)), 3)
    0.321
    """
    return jnp.exp(logpdf(x, c))
