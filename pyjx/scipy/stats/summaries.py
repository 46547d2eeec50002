"""Samples: their modes, ranks and standard errors, and densities as mixtures of normal
distributions about their points, `gaussian_kde`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import methodcaller
from typing import Any, NamedTuple

from pyjx import lax, nn, random
from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike, KeyLike
from pyjx.core.avals import get_aval
from pyjx.numpy import reductions
from pyjx.numpy.operands import along, canonical_axis, is_complex, numpy_function
from pyjx.numpy.promotion import (
    any_ranks,
    check_arraylike,
    promote_dtypes_inexact,
    promote_inexact,
    strong,
)
from pyjx.numpy.ufuncs import as_array
from pyjx.scipy.special.normal import ndtr_of
from pyjx.tree_util import register_pytree_node_class

# -- summaries -------------------------------------------------------------------------------------


class ModeResult(NamedTuple):
    """The most frequent values, and how often they occur."""

    mode: Any
    count: Any


def _check_policy(name: str, nan_policy: str, allowed: tuple[str, ...]) -> None:
    if nan_policy not in ("propagate", "omit", "raise"):
        raise ValueError(f"Illegal nan_policy value {nan_policy!r}: {nan_policy} is not supported; "
                         "expected one of {'propagate', 'omit', 'raise'}")
    if nan_policy not in allowed:
        raise NotImplementedError(f"Logic for `nan_policy` of {nan_policy} is not implemented in "
                                  f"{name}.")


@numpy_function(static_argnames=("axis", "nan_policy", "keepdims"))
@any_ranks
def mode(a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False
         ) -> ModeResult:
    """The most frequent value along an axis, the smallest of several, and its count.

    Args:
      a: array.
      axis: int, or None to flatten.
      nan_policy: "propagate": nan is a value like others, and the largest.
      keepdims: whether the axis stays, with size 1.

    Returns:
      A named tuple `(mode, count)`. Along an empty axis they are nan and 0.

    Raises:
      NotImplementedError: another `nan_policy`.

    >>> import pyjx as jax
    >>> [int(y) for y in jax.scipy.stats.mode(jax.numpy.array([2, 4, 1, 1]))]
    [1, 2]
    """
    check_arraylike("mode", a)
    _check_policy("mode", nan_policy, ("propagate",))
    x = as_array(a)
    ndim = max(x.ndim, 1)
    x, place = along(x if x.ndim else x.reshape(1), axis)
    if x.shape[place] == 0:
        shape = (*x.shape[:place], *x.shape[place + 1:])
        values, counts = jnp.full(shape, math.nan, float), jnp.zeros(shape)
    else:
        ordered = jnp.moveaxis(jnp.sort(x, place), place, -1)
        size = ordered.shape[-1]
        index = jnp.arange(size)
        # the length of the run of equal values up to each place, nan being one of them
        differs = (ordered[..., 1:] != ordered[..., :-1]) & ~(
            jnp.isnan(ordered[..., 1:]) & jnp.isnan(ordered[..., :-1]))
        begins = jnp.concatenate([jnp.ones_like(ordered[..., :1], bool), differs], -1)
        starts = jnp.maximum.accumulate(jnp.where(begins, index, 0), axis=-1)
        lengths = index - starts + 1
        best = jnp.argmax(lengths, -1)[..., None]
        values = jnp.take_along_axis(ordered, best, -1)[..., 0]
        counts = jnp.take_along_axis(lengths, best, -1)[..., 0]
        if is_complex(x):
            values = strong(values)
    if keepdims:
        axes = tuple(range(ndim)) if axis is None else (place,)
        values, counts = jnp.expand_dims(values, axes), jnp.expand_dims(counts, axes)
    return ModeResult(values, counts)


@numpy_function(static_argnames=("method", "axis", "nan_policy"))
def rankdata(a: ArrayLike, method: str = "average", *, axis: int | None = None,
             nan_policy: str = "propagate") -> Array:
    """The ranks of the elements, from 1.

    Args:
      a: array.
      method: what equal elements get: the "average", "min" or "max" of their ranks, "dense" ranks
        without gaps, or "ordinal" ranks in order of place.
      axis: int, or None for the ranks among all elements, flattened.
      nan_policy: "propagate": a slice with nan gives nan.

    Returns:
      An array of the default float dtype.

    Raises:
      NotImplementedError: another `nan_policy`.
      ValueError: an unknown method.

    >>> import pyjx as jax
    >>> jax.scipy.stats.rankdata(jax.numpy.array([0, 2, 2, 5])).tolist()
    [1.0, 2.5, 2.5, 4.0]
    """
    check_arraylike("rankdata", a)
    _check_policy("rankdata", nan_policy, ("propagate",))
    if method not in (known := ("average", "min", "max", "dense", "ordinal")):
        raise ValueError(f"unknown method '{method}'; there are {known}")
    x = as_array(a)
    x, place = along(x, axis)
    x = jnp.moveaxis(x, place, -1)
    order = jnp.argsort(x, -1)
    ordered = jnp.take_along_axis(x, order, -1)
    size = x.shape[-1]
    index = jnp.broadcast_to(jnp.arange(size), x.shape)
    back = jnp.argsort(order, -1)
    if method == "ordinal" or size == 0:
        ranks = index + 1
    else:
        differs = ordered[..., 1:] != ordered[..., :-1]
        edge = jnp.ones_like(ordered[..., :1], bool)
        begins = jnp.concatenate([edge, differs], -1)
        first = jnp.maximum.accumulate(jnp.where(begins, index, 0), axis=-1)
        ends = jnp.concatenate([differs, edge], -1)
        last = jnp.flip(jnp.minimum.accumulate(
            jnp.flip(jnp.where(ends, index, size), -1), axis=-1), -1)
        ranks = {"min": lambda: first + 1, "max": lambda: last + 1,
                 "dense": lambda: jnp.cumsum(begins, -1),
                 "average": lambda: (first + last) / 2 + 1}[method]()
    ranks = jnp.take_along_axis(ranks, back, -1)
    ranks = jnp.where(jnp.isnan(x).any(-1, keepdims=True), math.nan, ranks.astype(float))
    return jnp.moveaxis(ranks, -1, place)


@numpy_function(static_argnames=("axis", "ddof", "nan_policy", "keepdims"))
def sem(a: ArrayLike, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *,
        keepdims: bool = False) -> Array:
    """The standard error of the mean: the standard deviation over the root of the number.

    Args:
      a: array.
      axis: int, or None for all elements.
      ddof: what is taken from the number of elements in the variance.
      nan_policy: "propagate", or "omit" to leave out nan.
      keepdims: whether the axis stays, with size 1.

    Raises:
      NotImplementedError: `nan_policy` is "raise".

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.sem(jax.numpy.array([2.0, 4.0, 1.0, 1.0]))), 4)
    0.7071
    """
    check_arraylike("sem", a)
    _check_policy("sem", nan_policy, ("propagate", "omit"))
    x = as_array(promote_inexact("sem", a))
    where = ~jnp.isnan(x) if nan_policy == "omit" else None
    size = (reductions.count_of(get_aval(x), *((tuple(range(x.ndim)), ()) if axis is None
                                               else ((canonical_axis(axis, x.ndim),), ())))
            if where is None else where.sum(axis, keepdims=keepdims))
    deviation = jnp.std(x, axis, ddof=ddof, keepdims=keepdims, where=where)
    return deviation / jnp.sqrt(jnp.asarray(size, x.dtype))


# -- kernel densities ------------------------------------------------------------------------------


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

    dataset: Any
    weights: Any

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
        kde.__setstate__(children)
        return kde

    def __reduce__(self) -> Any:
        return methodcaller("tree_unflatten", None, self.tree_flatten()[0]), (type(self),)

    def __setstate__(self, state: dict[str, Any] | Sequence[Any]) -> None:
        names = ("neff", "dataset", "weights", "covariance", "inv_cov")
        values = [state[name] for name in names] if isinstance(state, dict) else state
        self.neff, self.dataset, self.weights, self.covariance, self.inv_cov = values

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
    norm = math.log(2 * math.pi) * len(dataset) / 2 + jnp.log(jnp.diagonal(factor)).sum()
    return nn.logsumexp(-(gaps * gaps).sum(0) / 2, 0, b=weights[:, None]) - norm
