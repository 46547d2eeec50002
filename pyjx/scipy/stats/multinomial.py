"""The multinomial distribution: probability n!/(x_1! x_2! ...) p_1^x_1 p_2^x_2 ..."""

from __future__ import annotations

import math

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import get_aval
from pyjx.lazy import directory
from pyjx.numpy.dispatch import numpy_function
from pyjx.numpy.operands import is_integer
from pyjx.numpy.promotion import operands, promote_dtypes_numeric
from pyjx.numpy.ufuncs import as_array
from pyjx.scipy.special.logarithms import xlogy_of
from pyjx.scipy.stats.parameters import reals

__all__ = ["logpmf", "pmf"]
__dir__ = directory(__name__, __all__)


@numpy_function
def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """The logarithm of the probability of the counts x.

    Args:
      x: array of shape (..., k) of the counts.
      n: array of shape (...): the number of draws. It is -inf where the counts have another sum.
      p: array of shape (..., k): the probabilities.

    Raises:
      ValueError: x or n are no integers.

    >>> import pyjx as jax
    >>> x, p = jax.numpy.array([1, 2]), jax.numpy.array([0.25, 0.75])
    >>> round(float(jax.scipy.stats.multinomial.logpmf(x, 3, p)), 3)
    -0.863
    """
    x, n = promote_dtypes_numeric(*operands("multinomial.logpmf", x, n))
    if not is_integer(x):
        raise ValueError("multinomial: x and n must be of integer type; they are the counts and "
                         f"the number of draws. Got {get_aval(x).dtype}; convert them by astype.")
    (p,) = reals("multinomial.logpmf", p)
    counts, p = jnp.broadcast_arrays(as_array(x).astype(p.dtype), p)
    total = as_array(n).astype(p.dtype)
    log = lax.lgamma(total + 1) + (xlogy_of(counts, p) - lax.lgamma(counts + 1)).sum(-1)
    return jnp.where(counts.sum(-1) == total, log, -math.inf)


@numpy_function
def pmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """The probability of the counts x; arguments as for `logpmf`.

    >>> import pyjx as jax
    >>> x, p = jax.numpy.array([1, 2]), jax.numpy.array([0.25, 0.75])
    >>> round(float(jax.scipy.stats.multinomial.pmf(x, 3, p)), 3)
    0.422
    """
    return jnp.exp(logpmf(x, n, p))
