"""Distributions of vectors: counts, parts of a whole, and normal ones."""

from __future__ import annotations

import math
from typing import Any

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array
from pyjx.core.avals import get_aval
from pyjx.numpy.operands import is_integer, numpy_function
from pyjx.numpy.promotion import operands, promote_dtypes_numeric
from pyjx.numpy.ufuncs import as_array
from pyjx.scipy.special.logarithms import xlogy_of
from pyjx.scipy.stats.distribution import Distribution, of_one_dtype, reals


def _unless_singular(name: str, *args: Any) -> list[Any]:
    if args[3] is not None:
        raise NotImplementedError("allow_singular argument of multivariate_normal.logpdf")
    return [*of_one_dtype(name, *args[:3]), None]


dirichlet = Distribution(
    "dirichlet",
    "The Dirichlet distribution: density of x the product of x_i^(alpha_i - 1), over B(alpha).",
    "x, alpha", "x, alpha",
    setup="x, alpha = jax.numpy.array([0.3, 0.7]), jax.numpy.array([2.0, 3.0])")


@dirichlet("logpdf", 0.568, arrays=of_one_dtype)
def _(x: Array, alpha: Array) -> Array:
    """The logarithm of the density; -inf outside the simplex.

    Args:
      x: array of shape (n, ...) whose sums over the first axis are 1, or (n - 1, ...) without the
        last part.
      alpha: array of shape (n,).

    Raises:
      ValueError: the shapes are others.
    """
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


dirichlet.derived(pdf=1.764)

multinomial = Distribution(
    "multinomial",
    "The multinomial distribution: probability n!/(x_1! x_2! ...) p_1^x_1 p_2^x_2 ...",
    "x, n, p", "x, 3, p",
    setup="x, p = jax.numpy.array([1, 2]), jax.numpy.array([0.25, 0.75])")


@multinomial("logpmf", -0.863, arrays=operands)
def _(x: Array, n: Array, p: Array) -> Array:
    """The logarithm of the probability of the counts x.

    Args:
      x: array of shape (..., k) of the counts.
      n: array of shape (...): the number of draws. It is -inf where the counts have another sum.
      p: array of shape (..., k): the probabilities.

    Raises:
      ValueError: x or n are no integers.
    """
    x, n = promote_dtypes_numeric(x, n)
    if not is_integer(x):
        raise ValueError("multinomial: x and n must be of integer type; they are the counts and "
                         f"the number of draws. Got {get_aval(x).dtype}; convert them by astype.")
    (p,) = reals("multinomial.logpmf", p)
    counts, p = jnp.broadcast_arrays(as_array(x).astype(p.dtype), p)
    total = as_array(n).astype(p.dtype)
    log = lax.lgamma(total + 1) + (xlogy_of(counts, p) - lax.lgamma(counts + 1)).sum(-1)
    return jnp.where(counts.sum(-1) == total, log, -math.inf)


multinomial.derived(pmf=0.422)

multivariate_normal = Distribution(
    "multivariate_normal",
    "The multivariate normal distribution: density det(2 pi C)^(-1/2) e^(-(x-m)^T C^-1 (x-m)/2).",
    "x, mean, cov", "x, mean, 1.0",
    setup="x, mean = jax.numpy.ones(2), jax.numpy.zeros(2)")


@multivariate_normal("logpdf", -2.838, parameters="x, mean, cov, allow_singular=None",
                     arrays=_unless_singular,
                     compiled=numpy_function(static_argnames=("allow_singular",)))
def _(x: Array, mean: Array, cov: Array) -> Array:
    """The logarithm of the density, by the Cholesky factor of the covariance.

    Args:
      x: array of shape (..., n).
      mean: array of shape (..., n), or a scalar for n = 1.
      cov: array of shape (..., n, n), or a scalar: that times the identity.
      allow_singular: not supported.

    Raises:
      NotImplementedError: `allow_singular` is given.
      ValueError: the shape of `cov` does not match.
    """
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


multivariate_normal.derived(pdf=0.059)
