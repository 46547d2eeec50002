"""The beta-binomial distribution: k - loc has probability binom(n, k) B(k+a, n-k+b)/B(a, b)."""

from __future__ import annotations

import math

from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike
from pyjx.lazy import directory
from pyjx.numpy.dispatch import numpy_function
from pyjx.scipy.special.gammas import betaln_of
from pyjx.scipy.special.operands import strong_of, weak_as
from pyjx.scipy.stats.parameters import nan_unless, reals

__all__ = ["logpmf", "pmf"]
__dir__ = directory(__name__, __all__)


@numpy_function
@strong_of("k", "loc")
def logpmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.betabinom.logpmf(2, 5, 2.0, 3.0)), 3)
    -1.435
    """
    k, n, a, b, loc = reals("betabinom.logpmf", k, n, a, b, loc)
    k = nan_unless((n >= 0) & (a > 0) & (b > 0), k)
    k = jnp.floor(k) - loc
    outside = (k < 0) | (k > n)
    k = jnp.where(outside, 0, k)
    ways = -jnp.log(n + 1) - betaln_of(n - k + 1, k + 1)
    log = ways + betaln_of(k + a, n - k + b) - betaln_of(a, b)
    return weak_as(jnp.where(outside, -math.inf, log), k, n, a, b, loc)


@numpy_function
def pmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of k.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.betabinom.pmf(2, 5, 2.0, 3.0)), 3)
    0.238
    """
    return jnp.exp(logpmf(k, n, a, b, loc))
