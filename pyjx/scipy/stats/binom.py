"""The binomial distribution: probability binom(n, k) p^k (1-p)^(n-k), of k - loc."""

from __future__ import annotations

import math

from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike
from pyjx.lazy import directory
from pyjx.numpy.dispatch import numpy_function
from pyjx.scipy.special.gammas import betaln_of
from pyjx.scipy.special.logarithms import xlog1py_of, xlogy_of
from pyjx.scipy.special.operands import weak_as
from pyjx.scipy.stats.parameters import nan_unless, reals

__all__ = ["logpmf", "pmf"]
__dir__ = directory(__name__, __all__)


@numpy_function
def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k, interpolated between whole numbers.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.binom.logpmf(2, 5, 0.3)), 3)
    -1.175
    """
    k, n, p, loc = reals("binom.logpmf", k, n, p, loc)
    k = nan_unless((n >= 0) & (p >= 0) & (p <= 1), k)
    k = k - loc
    outside = (k < 0) | (k >= n + 1)
    k = jnp.where(outside, 0, k)
    ways = -jnp.log(n + 1) - betaln_of(n - k + 1, k + 1)
    log = ways + xlogy_of(k, p) + xlog1py_of(n - k, -p)
    return weak_as(jnp.where(outside, -math.inf, log), k, n, p, loc)


@numpy_function
def pmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of k.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.binom.pmf(2, 5, 0.3)), 3)
    0.309
    """
    return jnp.exp(logpmf(k, n, p, loc))
