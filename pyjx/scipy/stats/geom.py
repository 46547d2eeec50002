"""The geometric distribution: probability p (1-p)^(k-1) for k = 1, 2, ..., of k - loc."""

from __future__ import annotations

import math

from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike
from pyjx.lazy import directory
from pyjx.numpy.dispatch import numpy_function
from pyjx.scipy.special.logarithms import xlog1py_of
from pyjx.scipy.special.operands import strong_of_first
from pyjx.scipy.stats.parameters import reals

__all__ = ["logpmf", "pmf"]
__dir__ = directory(__name__, __all__)


@numpy_function
@strong_of_first
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k, interpolated between whole numbers.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.geom.logpmf(2, 0.3)), 3)
    -1.561
    """
    k, p, loc = reals("geom.logpmf", k, p, loc)
    k = k - loc
    outside = k <= 0
    log = xlog1py_of(jnp.where(outside, 1, k) - 1, -p) + jnp.log(p)
    log = jnp.where(outside, -math.inf, log)
    return jnp.where((p > 0) & (p <= 1), log, math.nan)


@numpy_function
@strong_of_first
def pmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of k.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.geom.pmf(2, 0.3)), 3)
    0.21
    """
    return jnp.exp(logpmf(k, p, loc))
