"""The Dirichlet distribution: density of x the product of x_i^(alpha_i - 1), over B(alpha)."""

from __future__ import annotations

import math
from typing import Any

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike
from pyjx.lazy import directory
from pyjx.numpy.dispatch import numpy_function
from pyjx.numpy.promotion import promote_dtypes_as_floats
from pyjx.numpy.ufuncs import as_array
from pyjx.scipy.special.logarithms import xlogy_of

__all__ = ["logpdf", "pdf"]
__dir__ = directory(__name__, __all__)


@numpy_function
def logpdf(x: Any, alpha: Any) -> Array:
    """The logarithm of the density; -inf outside the simplex.

    Args:
      x: array of shape (n, ...) whose sums over the first axis are 1, or (n - 1, ...) without the
        last part.
      alpha: array of shape (n,).

    Raises:
      ValueError: the shapes are others.

    >>> import pyjx as jax
    >>> x, alpha = jax.numpy.array([0.3, 0.7]), jax.numpy.array([2.0, 3.0])
    >>> round(float(jax.scipy.stats.dirichlet.logpdf(x, alpha)), 3)
    0.568
    """
    x, alpha = [as_array(a) for a in promote_dtypes_as_floats(x, alpha)]
    if alpha.ndim != 1:
        raise ValueError(f"`alpha` must be one-dimensional; got alpha.shape={alpha.shape}")
    if x.ndim == 0 or x.shape[0] not in (alpha.shape[0], alpha.shape[0] - 1):
        raise ValueError("`x` must have either the same number of entries as `alpha` or one entry "
                         f"fewer; got x.shape={x.shape}, alpha.shape={alpha.shape}")
    if x.shape[0] != alpha.shape[0]:
        x = jnp.concatenate([x, 1 - x.sum(0, keepdims=True)])
    norm = lax.lgamma(alpha).sum() - lax.lgamma(alpha.sum())
    inside = (jnp.all(x >= 0, 0) & jnp.all(x <= 1, 0)
              & (jnp.abs(x.sum(0) - 1) < 20 * dtypes.finfo(x.dtype).eps * x.shape[0]))
    weights = (alpha - 1).reshape(-1, *[1] * (x.ndim - 1))
    log = xlogy_of(jnp.broadcast_to(weights, x.shape), jnp.where(x >= 0, x, 0.5)).sum(0) - norm
    return jnp.where(inside, log, -math.inf)


@numpy_function
def pdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """The density; arguments as for `logpdf`.

    >>> import pyjx as jax
    >>> x, alpha = jax.numpy.array([0.3, 0.7]), jax.numpy.array([2.0, 3.0])
    >>> round(float(jax.scipy.stats.dirichlet.pdf(x, alpha)), 3)
    1.764
    """
    return jnp.exp(logpdf(x, alpha))
