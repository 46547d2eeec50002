"""The Bernoulli distribution: 1 with probability p, else 0."""

from __future__ import annotations

import math

from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike
from pyjx.lazy import directory
from pyjx.numpy.dispatch import numpy_function
from pyjx.scipy.special.logarithms import xlog1py_of, xlogy_of
from pyjx.scipy.special.operands import strong_of_arrays, strong_of_first, weak_as
from pyjx.scipy.stats.parameters import reals

__all__ = ["cdf", "logpmf", "pmf", "ppf"]
__dir__ = directory(__name__, __all__)


@numpy_function
@strong_of_first
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k, interpolated between 0 and 1.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.bernoulli.logpmf(1, 0.3)), 3)
    -1.204
    """
    k, p, loc = reals("bernoulli.logpmf", k, p, loc)
    k = k - loc
    outside = (k < 0) | (k > 1)
    k = jnp.where(outside, 0, k)
    log = jnp.where(outside, -math.inf, xlogy_of(k, p) + xlog1py_of(1 - k, -p))
    return jnp.where((p >= 0) & (p <= 1), log, math.nan)


@numpy_function
@strong_of_first
def pmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of k.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.bernoulli.pmf(1, 0.3)), 3)
    0.3
    """
    return jnp.exp(logpmf(k, p, loc))


@numpy_function
@strong_of_arrays
def cdf(k: ArrayLike, p: ArrayLike) -> Array:
    """The probability of values up to k.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.bernoulli.cdf(1, 0.3)), 3)
    1.0
    """
    k, p = reals("bernoulli.cdf", k, p)
    valid = (p >= 0) & (p <= 1) & ~jnp.isnan(k)
    return jnp.where(valid, jnp.where(k < 0, 0, jnp.where(k < 1, 1 - p, 1)), math.nan)


@numpy_function
@strong_of_arrays
def ppf(q: ArrayLike, p: ArrayLike) -> Array:
    """The quantiles: the inverse of `cdf`.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.bernoulli.ppf(0.8, 0.3)), 3)
    1.0
    """
    q, p = reals("bernoulli.ppf", q, p)
    valid = (p >= 0) & (p <= 1) & (q >= 0) & (q <= 1)
    value = jnp.where(q == 0, -1, jnp.where(q <= 1 - p, 0, 1)).astype(q.dtype)
    return weak_as(jnp.where(valid, value, math.nan), q, p)
