"""The von Mises distribution: density e^(kappa cos(x))/(2 pi I_0(kappa))."""

from __future__ import annotations

import math

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike
from pyjx.lazy import directory
from pyjx.numpy.dispatch import numpy_function
from pyjx.scipy.stats.parameters import nan_unless, reals

__all__ = ["logpdf", "pdf"]
__dir__ = directory(__name__, __all__)


@numpy_function
def logpdf(x: ArrayLike, kappa: ArrayLike) -> Array:
    """The logarithm of the density.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.vonmises.logpdf(0.5, 2.0)), 3)
    -0.907
    """
    x, kappa = reals("vonmises.logpdf", x, kappa)
    x = nan_unless(kappa >= 0, x)
    return kappa * (jnp.cos(x) - 1) - jnp.log(2 * math.pi * lax.bessel_i0e(kappa))


@numpy_function
def pdf(x: ArrayLike, kappa: ArrayLike) -> Array:
    """The density.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.vonmises.pdf(0.5, 2.0)), 3)
    0.404
    """
    return jnp.exp(logpdf(x, kappa))
