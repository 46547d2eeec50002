"""The negative binomial distribution: probability binom(k + n - 1, k) p^n (1-p)^k, of k - loc."""

from __future__ import annotations

import math

from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike
from pyjx.lazy import directory
from pyjx.numpy.dispatch import numpy_function
from pyjx.scipy.special.gammas import betaln_of
from pyjx.scipy.special.logarithms import xlog1py_of, xlogy_of
from pyjx.scipy.special.operands import strong_of_arrays, weak_as
from pyjx.scipy.stats.parameters import nan_unless, reals

__all__ = ["logpmf", "pmf"]
__dir__ = directory(__name__, __all__)


@numpy_function
@strong_of_arrays
def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.nbinom.logpmf(2, 5, 0.3)), 3)
    -4.025
    """
    k, n, p, loc = reals("nbinom.logpmf", k, n, p, loc)
    k = nan_unless((n > 0) & (p > 0) & (p <= 1), k)
    k = k - loc
    outside = k < 0
    k = jnp.where(outside, 0, k)
    ways = -betaln_of(n, k + 1) - jnp.log(n + k)
    log = ways + xlogy_of(n, p) + xlog1py_of(k, -p)
    return weak_as(jnp.where(outside, -math.inf, log), k, n, p, loc)


@numpy_function
def pmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of k.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.nbinom.pmf(2, 5, 0.3)), 3)
    0.018
    """
    return jnp.exp(logpmf(k, n, p, loc))
