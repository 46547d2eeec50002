"""The multivariate normal distribution: density det(2 pi C)^(-1/2) e^(-(x-m)^T C^-1 (x-m)/2)."""

from __future__ import annotations

import math
from typing import Any

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike
from pyjx.lazy import directory
from pyjx.numpy.dispatch import numpy_function
from pyjx.numpy.promotion import promote_dtypes_as_floats
from pyjx.numpy.ufuncs import as_array

__all__ = ["logpdf", "pdf"]
__dir__ = directory(__name__, __all__)


@numpy_function(static_argnames=("allow_singular",))
def logpdf(x: Any, mean: Any, cov: Any, allow_singular: None = None) -> Array:
    """The logarithm of the density, by the Cholesky factor of the covariance.

    Args:
      x: array of shape (..., n).
      mean: array of shape (..., n), or a scalar for n = 1.
      cov: array of shape (..., n, n), or a scalar: that times the identity.
      allow_singular: not supported.

    Raises:
      NotImplementedError: `allow_singular` is given.
      ValueError: the shape of `cov` does not match.

    >>> import pyjx as jax
    >>> jnp = jax.numpy
    >>> round(float(jax.scipy.stats.multivariate_normal.logpdf(jnp.ones(2), jnp.zeros(2), 1.0)), 3)
    -2.838
    """
    if allow_singular is not None:
        raise NotImplementedError("allow_singular argument of multivariate_normal.logpdf")
    x, mean, cov = [as_array(a) for a in promote_dtypes_as_floats(x, mean, cov)]
    if not mean.ndim:
        return -(x - mean) ** 2 / cov / 2 - (math.log(2 * math.pi) + jnp.log(cov)) / 2
    n = mean.shape[-1]
    if x.ndim and x.shape[-1] != n and 1 not in (x.shape[-1], n):
        raise ValueError("multivariate_normal.logpdf got incompatible shapes: the last axes of x "
                         f"and mean must be of one size, got {x.shape} and {mean.shape}")
    y = x - mean
    if not cov.ndim:
        square = lax.reduce_sum(y * y, (y.ndim - 1,)) / cov  # which keeps a weak type
        return -square / 2 - n / 2 * (math.log(2 * math.pi) + jnp.log(cov))
    if cov.ndim < 2 or cov.shape[-2:] != (n, n):
        raise ValueError("multivariate_normal.logpdf got incompatible shapes: expected a scalar or "
                         f"(..., {n}, {n}) for cov, got {cov.shape}")
    factor = lax.linalg.cholesky(cov)
    if cov.ndim == 2:  # all rows at once: z L^T = y
        y = jnp.broadcast_to(y, (*y.shape[:-1], n))
        rows = y.reshape(math.prod(y.shape[:-1]), n)
        rows = lax.linalg.triangular_solve(factor, rows, lower=True, transpose_a=True)
        y = rows.reshape(y.shape)
    else:
        batch = jnp.broadcast_shapes(y.shape[:-1], cov.shape[:-2])
        y = lax.linalg.triangular_solve(
            jnp.broadcast_to(factor, (*batch, n, n)), jnp.broadcast_to(y, (*batch, n))[..., None],
            left_side=True, lower=True)[..., 0]
    half = jnp.log(jnp.diagonal(factor, axis1=-1, axis2=-2)).sum(-1)
    return -(y * y).sum(-1) / 2 - n / 2 * math.log(2 * math.pi) - half


@numpy_function
def pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array:
    """The density; arguments as for `logpdf`.

    >>> import pyjx as jax
    >>> jnp = jax.numpy
    >>> round(float(jax.scipy.stats.multivariate_normal.pdf(jnp.ones(2), jnp.zeros(2), 1.0)), 3)
    0.059
    """
    return jnp.exp(logpdf(x, mean, cov))
