"""The Poisson distribution: probability mu^k e^-mu/k!, of k - loc."""

from __future__ import annotations

import math

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike
from pyjx.lazy import directory
from pyjx.numpy.dispatch import numpy_function
from pyjx.scipy.special.logarithms import xlogy_of
from pyjx.scipy.special.operands import strong_of_arrays
from pyjx.scipy.stats.parameters import nan_unless, reals

__all__ = ["cdf", "entropy", "logpmf", "pmf"]
__dir__ = directory(__name__, __all__)


@numpy_function
def logpmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.poisson.logpmf(2, 3.0)), 3)
    -1.496
    """
    k, mu, loc = reals("poisson.logpmf", k, mu, loc)
    k = nan_unless(mu >= 0, k)
    k = k - loc
    outside = (k < 0) | (k > jnp.floor(k))
    k = jnp.where(outside, 0, k)
    return jnp.where(outside, -math.inf, xlogy_of(k, mu) - lax.lgamma(k + 1) - mu)


@numpy_function
def pmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of k.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.poisson.pmf(2, 3.0)), 3)
    0.224
    """
    return jnp.exp(logpmf(k, mu, loc))


@numpy_function
@strong_of_arrays
def cdf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of values up to k.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.poisson.cdf(2, 3.0)), 3)
    0.423
    """
    k, mu, loc = reals("poisson.cdf", k, mu, loc)
    k = nan_unless(mu >= 0, k)
    k = jnp.floor(k - loc)
    return jnp.where(k < 0, 0, lax.igammac(jnp.maximum(k, 0) + 1, mu))


@numpy_function
def entropy(mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The entropy, in units of e.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.poisson.entropy(3.0)), 3)
    1.931
    """
    mu, loc = reals("poisson.entropy", mu, loc)
    # the sum over k; for large mu, of which it would need many, the asymptotic series
    limit, terms = (80, 180) if mu.dtype == np.float64 else (20, 64)
    small = jnp.where(mu < limit, mu, limit)[..., None]
    k = np.arange(terms, dtype=mu.dtype).reshape(*[1] * mu.ndim, terms)
    factorials = np.array([math.lgamma(i + 1) for i in range(terms)], mu.dtype).reshape(k.shape)
    log = xlogy_of(k, small) - factorials - small
    near = -(jnp.exp(log) * jnp.where(log > -math.inf, log, 0)).sum(-1)
    r = 1 / jnp.where(mu < limit, limit, mu)
    series = lax.polynomial(r, (0.0, -1 / 12, -1 / 24, -19 / 360, -9 / 80))
    far = (math.log(2 * math.pi * math.e) - jnp.log(r)) / 2 + series
    return jnp.where(mu >= 0, jnp.where(mu < limit, near, far), math.nan)
