"""`gaussian_kde`: densities as mixtures of normal distributions about the points of a sample."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pyjx import lax, nn, random
from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike, KeyLike
from pyjx.numpy.promotion import any_ranks, check_arraylike, promote_dtypes_inexact
from pyjx.scipy.special.normal import ndtr_of
from pyjx.tree_util import register_pytree_node_class


@register_pytree_node_class
class gaussian_kde:
    """The density of a sample, smoothed by a Gaussian kernel.

    Args:
      dataset: real array of shape (n,) or (d, n): n points of dimension d.
      bw_method: the factor from the sample's covariance to that of the kernel: "scott" (by default,
        neff^(-1/(d + 4))), "silverman" ((neff (d + 2)/4)^(-1/(d + 4))), a scalar, or a function of
        this object that gives one.
      weights: array of shape (n,); equal by default.

    Objects are pytrees.

    Raises:
      NotImplementedError: `dataset` is complex, or a list.
      ValueError: it is not of such a shape, has less than two points, or the weights do not match.

    >>> import pyjx as jax
    >>> kde = jax.scipy.stats.gaussian_kde(jax.numpy.array([0.0, 1.0, 2.0]))
    >>> round(float(kde(1.0)[0]), 4)
    0.3182
    """

    neff: Any
    dataset: Any
    weights: Any
    covariance: Any
    inv_cov: Any

    __slots__ = ("covariance", "dataset", "inv_cov", "neff", "weights")

    @any_ranks
    def __init__(self, dataset: Any, bw_method: str | Any | Callable[[Any], Any] | None = None,
                 weights: Array | None = None) -> None:
        check_arraylike("gaussian_kde", dataset)
        points = jnp.atleast_2d(dataset)
        if jnp.issubdtype(points.dtype, jnp.complexfloating):
            raise NotImplementedError("gaussian_kde does not support complex data")
        if points.size <= 1 or points.ndim > 2:
            raise ValueError("`dataset` input should have multiple elements, and at most two axes; "
                             f"got shape {points.shape}")
        n = points.shape[1]
        if weights is None:
            (points,) = promote_dtypes_inexact(points)
            weights = jnp.full(n, 1 / n, points.dtype)
        else:
            check_arraylike("gaussian_kde", weights)
            points, weights = promote_dtypes_inexact(points, jnp.atleast_1d(weights))
            if weights.ndim != 1:
                raise ValueError("`weights` input should be one-dimensional.")
            if len(weights) != n:
                raise ValueError("`weights` input should be of length n")
            weights = weights / weights.sum()
        self.dataset, self.weights = points, weights
        self.neff = 1 / (weights * weights).sum()
        spread = jnp.atleast_2d(jnp.cov(points, rowvar=True, bias=False, aweights=weights))
        factor = self._factor(bw_method)
        self.covariance = spread * factor ** 2
        self.inv_cov = jnp.linalg.inv(spread) / factor ** 2

    def _factor(self, bw_method: Any) -> Any:
        if bw_method is None or bw_method == "scott":
            return self.neff ** (-1 / (self.d + 4))
        if bw_method == "silverman":
            return (self.neff * (self.d + 2) / 4) ** (-1 / (self.d + 4))
        if callable(bw_method):
            return bw_method(self)
        if isinstance(bw_method, str) or jnp.ndim(bw_method) != 0:
            raise ValueError("`bw_method` should be 'scott', 'silverman', a scalar, or a callable. "
                             f"got {bw_method!r}")
        return bw_method

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        """The arrays, as children of a pytree."""
        return (self.neff, self.dataset, self.weights, self.covariance, self.inv_cov), None

    @classmethod
    def tree_unflatten(cls, aux_data: None, children: Any) -> gaussian_kde:
        """The object of these arrays."""
        kde = object.__new__(cls)
        kde.neff, kde.dataset, kde.weights, kde.covariance, kde.inv_cov = children
        return kde

    @property
    def d(self) -> int:
        """The dimension of the points."""
        return int(self.dataset.shape[0])

    @property
    def n(self) -> int:
        """The number of points."""
        return int(self.dataset.shape[1])

    def evaluate(self, points: ArrayLike) -> Array:
        """The density at points, an array of shape (d, m) or (m,): shape (m,).

        Raises:
          ValueError: the points are of another dimension.
        """
        return jnp.exp(self.logpdf(points))

    __call__ = evaluate

    def pdf(self, x: ArrayLike) -> Array:
        """The density, as `evaluate` gives it."""
        return self.evaluate(x)

    def logpdf(self, x: ArrayLike) -> Array:
        """The logarithm of the density at points; arguments as for `evaluate`."""
        check_arraylike("logpdf", x)
        return _log_mixture(self.dataset, self.weights, self.covariance, self._reshaped(x))

    def _reshaped(self, given: ArrayLike) -> Array:
        points: Array = jnp.atleast_2d(given)
        if jnp.issubdtype(points.dtype, jnp.complexfloating):
            raise NotImplementedError("gaussian_kde does not support complex coordinates")
        d, m = points.shape
        if d != self.d:
            if d == 1 and m == self.d:
                return points.reshape(self.d, 1)
            raise ValueError(f"points have dimension {d}, dataset has dimension {self.d}")
        return points

    def integrate_gaussian(self, mean: Array, cov: Any) -> Array:
        """The integral of the density times that of a normal distribution.

        Args:
          mean: array of shape (d,).
          cov: array of shape (d, d).
        """
        mean = jnp.atleast_1d(jnp.squeeze(mean))
        cov = jnp.atleast_2d(cov)
        if mean.shape != (self.d,):
            raise ValueError(f"mean does not have dimension {self.d}")
        if cov.shape != (self.d, self.d):
            raise ValueError(f"covariance does not have dimension {self.d}")
        log = _log_mixture(self.dataset, self.weights, self.covariance + cov, mean[:, None])
        return jnp.exp(log)[0]

    def integrate_box_1d(self, low: Any, high: Any) -> Array:
        """The probability of the interval from low to high, for d = 1.

        Raises:
          ValueError: d is not 1.
        """
        if self.d != 1:
            raise ValueError("integrate_box_1d() only handles 1D pdfs")
        if jnp.ndim(low) != 0 or jnp.ndim(high) != 0:
            raise ValueError("the limits of integration in integrate_box_1d must be scalars")
        sigma = jnp.sqrt(self.covariance[0, 0])
        low, high = ((jnp.asarray(x, self.dataset.dtype) - self.dataset[0]) / sigma
                     for x in (low, high))
        return ((ndtr_of(high) - ndtr_of(low)) * self.weights).sum()

    def integrate_kde(self, other: gaussian_kde) -> Array:
        """The integral of the product of this density with another one.

        Raises:
          ValueError: the dimensions differ.
        """
        if other.d != self.d:
            raise ValueError("KDEs are not the same dimensionality")
        log = _log_mixture(self.dataset, self.weights, self.covariance + other.covariance,
                           other.dataset)
        return (jnp.exp(log) * other.weights).sum()

    def resample(self, key: KeyLike, shape: Any = ()) -> Array:
        """Samples of the density: an array of shape (d, *shape).

        Args:
          key: a random key.
          shape: tuple of ints.
        """
        index_key, noise_key = random.split(key)
        index = random.choice(index_key, self.n, shape=shape, p=self.weights)
        noise = random.normal(noise_key, (*index.shape, self.d), self.dataset.dtype)
        factor = lax.linalg.cholesky(self.covariance).astype(noise.dtype)
        return self.dataset[:, index] + jnp.einsum("ij,...j->i...", factor, noise)

    def integrate_box(self, low_bounds: ArrayLike, high_bounds: ArrayLike, maxpts: Any = None
                     ) -> Any:
        """Not there: raises NotImplementedError."""
        raise NotImplementedError("only 1D box integrations are supported; use `integrate_box_1d`")

    def set_bandwidth(self, bw_method: Any = None) -> Any:
        """Not there, as arrays do not change: raises NotImplementedError."""
        raise NotImplementedError("dynamically changing the bandwidth method is not supported; "
                                  "make a new gaussian_kde")


@any_ranks
def _log_mixture(dataset: Array, weights: Array, covariance: Array, points: Array) -> Array:
    """log of the sum of w_i N(points - dataset_i; 0, C), for C = L L^T."""
    dataset, weights, covariance, points = promote_dtypes_inexact(dataset, weights, covariance,
                                                                  points)
    factor = lax.linalg.cholesky(covariance)
    scaled = [lax.linalg.triangular_solve(factor, x, left_side=True, lower=True)
              for x in (dataset, points)]
    gaps = scaled[0][:, :, None] - scaled[1][:, None, :]
    norm = (math.log(2 * math.pi) * len(dataset) / 2
            + jnp.log(jnp.diagonal(factor)).sum())
    return nn.logsumexp(-(gaps * gaps).sum(0) / 2, 0, b=weights[:, None]) - norm
