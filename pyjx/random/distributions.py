"""Distributions that are functions of normal, uniform and exponential numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, DTypeLike, KeyLike
from pyjx.core.avals import get_aval
from pyjx.core.dtypes import DType
from pyjx.core.integers import as_int, as_sizes
from pyjx.core.layouts import ShardingLike
from pyjx.engine.types import Value
from pyjx.lax.elementwise import stretch
from pyjx.random.base import check_key, on_key, placed_result, split_traced
from pyjx.random.samplers import (
    as_array,
    constant,
    drawn,
    float_dtype,
    inexact_dtype,
    integer_dtype,
    joint_shape,
    normal_floats,
    result_shape,
    signs,
    total,
    unit_floats,
)


def arrays(dtype: DTypeLike, shape: tuple[int, ...], *params: Any) -> list[Any]:
    """Parameters in the result's dtype and shape."""
    return [stretch(as_array(p, dtype), shape) if get_aval(p).shape or shape == ()
            else lax.broadcast(as_array(p, dtype), shape) for p in params]


def exponential_floats(key: KeyLike, shape: tuple[int, ...], dtype: DTypeLike) -> Any:
    return -lax.log1p(-unit_floats(key, shape, dtype))


# -- of normal numbers -----------------------------------------------------------------------------


# A float32 number, as in JAX: of it no half-precision number is made, so sigma must be given then.
_ONE = np.float32(1.0)


@on_key("shape", "dtype")
def _lognormal(key: KeyLike, sigma: Array, *, shape: tuple[int, ...], dtype: DType) -> Array:
    (sigma,) = arrays(dtype, shape, sigma)
    return lax.exp(normal_floats(key, shape, dtype) * sigma)


def lognormal(key: KeyLike, sigma: ArrayLike = _ONE, shape: Sequence[int] | None = None,
              dtype: Any = None, *, out_sharding: ShardingLike = None) -> Array:
    """exp(sigma x) with x normal.

    Args:
      key: a key.
      sigma: standard deviation of the logarithm; it broadcasts to `shape`.
      shape: of the result, by default that of `sigma`.
      dtype: a float or complex dtype; a half-precision one needs a `sigma` that promotes to it.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    >>> import pyjx as jax
    >>> jax.random.lognormal(jax.random.key(0), 0.5, (3,)).shape
    (3,)
    """
    return drawn(_lognormal, key, shape, dtype, out_sharding, sigma, kind=inexact_dtype)


def maxwell_floats(key: KeyLike, shape: tuple[int, ...], dtype: DTypeLike) -> Any:
    x = normal_floats(key, (*shape, 3), dtype)
    return lax.sqrt(total(x * x, (len(shape),)))


@on_key("shape", "dtype")
def _maxwell(key: KeyLike, *, shape: tuple[int, ...], dtype: DType) -> Array:
    return maxwell_floats(key, shape, dtype)


def maxwell(key: KeyLike, shape: Sequence[int] = (), dtype: Any = None, *,
            out_sharding: ShardingLike = None) -> Array:
    """The length of a vector of three normal numbers: density ~ x^2 exp(-x^2 / 2) for x >= 0.

    Args:
      key: a key, as `key` and `split` make them; the same key gives the same numbers.
      shape: of the result, a tuple; () for a single number.
      dtype: a float dtype; by default the default one, float32 unless 64-bit types are on.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    >>> import pyjx as jax
    >>> jax.random.maxwell(jax.random.key(0), (3,)).shape
    (3,)
    """
    return drawn(_maxwell, key, shape, dtype, out_sharding)


@on_key("shape", "dtype")
def _double_sided_maxwell(key: KeyLike, loc: Array, scale: Array, *, shape: tuple[int, ...],
                          dtype: DType) -> Array:
    maxwell_key, sign_key = split_traced(key)
    x = signs(sign_key, shape, dtype) * maxwell_floats(maxwell_key, shape, dtype)
    return jnp.add(jnp.multiply(x, scale), loc)


def double_sided_maxwell(key: KeyLike, loc: ArrayLike, scale: ArrayLike,
                         shape: Sequence[int] = (), dtype: Any = None) -> Array:
    """loc + scale s x with x from `maxwell` and s a random sign.

    Args:
      loc, scale: parameters.
      shape: leading axes of the result; those of the parameters follow.
      dtype: of x; the result has the dtype to which it is promoted with the parameters.
      key: a key, as `key` and `split` make them; the same key gives the same numbers.

    >>> import pyjx as jax
    >>> jax.random.double_sided_maxwell(jax.random.key(0), 0., 1., (3,)).shape
    (3,)
    """
    wrapped, _ = check_key("double_sided_maxwell", key)
    dtype = float_dtype(dtype, "double_sided_maxwell")
    params = result_shape("double_sided_maxwell", None, loc, scale)
    shape = (*(as_sizes("double_sided_maxwell", "shape", shape) or params), *params)
    return _double_sided_maxwell(wrapped, loc, scale, shape=shape, dtype=dtype)


@on_key("shape", "dtype")
def _wald(key: KeyLike, mean: Array, *, shape: tuple[int, ...], dtype: DType) -> Array:
    normal_key, uniform_key = split_traced(key)
    (mean,) = arrays(dtype, shape, mean)
    two = constant(2, dtype)
    y = lax.square(normal_floats(normal_key, shape, dtype))
    z = unit_floats(uniform_key, shape, dtype)
    mean2 = lax.square(mean)
    root = lax.sqrt(4 * mean * y + mean2 * lax.square(y))
    x = mean + mean2 * y / two - mean / two * root
    return lax.select(z <= mean / (mean + x), x, mean2 / x)


def wald(key: KeyLike, mean: ArrayLike, shape: Sequence[int] | None = None,
         dtype: DTypeLike | None = None, *, out_sharding: ShardingLike = None) -> Array:
    """Inverse Gaussian random numbers with shape parameter 1 and the given mean.

    By Michael, Schucany and Haas, "Generating random variates using transformations with multiple
    roots" (1976).

    Args:
      key: a key, as `key` and `split` make them; the same key gives the same numbers.
      mean: the mean, positive; it broadcasts to `shape`.
      shape: of the result, by default that of `mean`.
      dtype: a float dtype; by default the default one, float32 unless 64-bit types are on.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    >>> import pyjx as jax
    >>> jax.random.wald(jax.random.key(0), 2., (3,)).shape
    (3,)
    """
    return drawn(_wald, key, shape, dtype, out_sharding, mean)


# -- of uniform and exponential numbers ------------------------------------------------------------


@on_key("shape", "dtype")
def _pareto(key: KeyLike, b: Array, *, shape: tuple[int, ...], dtype: DType) -> Array:
    (b,) = arrays(dtype, shape, b)
    return lax.exp(exponential_floats(key, shape, dtype) / b)


def pareto(key: KeyLike, b: ArrayLike, shape: Sequence[int] | None = None,
           dtype: DTypeLike | None = None, *, out_sharding: ShardingLike = None) -> Array:
    """Pareto random numbers: density b / x^(b + 1) for x >= 1.

    Args:
      key: a key, as `key` and `split` make them; the same key gives the same numbers.
      b: the exponent, positive; it broadcasts to `shape`.
      shape: of the result, by default that of `b`.
      dtype: a float dtype; by default the default one, float32 unless 64-bit types are on.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    >>> import pyjx as jax
    >>> bool((jax.random.pareto(jax.random.key(0), 2., (30,)) >= 1).all())
    True
    """
    return drawn(_pareto, key, shape, dtype, out_sharding, b)


@on_key("shape", "dtype")
def _rayleigh(key: KeyLike, scale: Array, *, shape: tuple[int, ...], dtype: DType) -> Array:
    (scale,) = arrays(dtype, shape, scale)
    log_u = lax.log(unit_floats(key, shape, dtype))
    return scale * lax.sqrt(log_u * -2)


def rayleigh(key: KeyLike, scale: ArrayLike, shape: Sequence[int] | None = None,
             dtype: DTypeLike | None = None, *, out_sharding: ShardingLike = None) -> Array:
    """Rayleigh random numbers: density ~ x exp(-x^2 / (2 scale^2)) for x >= 0.

    Args:
      key: a key, as `key` and `split` make them; the same key gives the same numbers.
      scale: where the density is largest, positive; it broadcasts to `shape`.
      shape: of the result, by default that of `scale`.
      dtype: a float dtype; by default the default one, float32 unless 64-bit types are on.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    >>> import pyjx as jax
    >>> jax.random.rayleigh(jax.random.key(0), 2., (3,)).shape
    (3,)
    """
    return drawn(_rayleigh, key, shape, dtype, out_sharding, scale)


@on_key("shape", "dtype")
def _weibull_min(key: KeyLike, scale: Array, concentration: Array, *, shape: tuple[int, ...],
                 dtype: DType) -> Array:
    x = exponential_floats(key, shape, dtype)
    return jnp.multiply(jnp.power(x, jnp.divide(1.0, concentration)), scale)


def weibull_min(key: KeyLike, scale: ArrayLike, concentration: ArrayLike,
                shape: Sequence[int] = (), dtype: Any = None) -> Array:
    """Weibull random numbers: scale x^(1 / concentration) with x from `exponential`.

    Args:
      scale, concentration: parameters; the result broadcasts and promotes x with them.
      shape, dtype: of x.
      key: a key, as `key` and `split` make them; the same key gives the same numbers.

    >>> import pyjx as jax
    >>> jax.random.weibull_min(jax.random.key(0), 1., 2., (3,)).shape
    (3,)
    """
    wrapped, _ = check_key("weibull_min", key)
    dtype = float_dtype(dtype, "weibull_min")
    shape = as_sizes("weibull_min", "shape", shape)
    return _weibull_min(wrapped, scale, concentration, shape=shape, dtype=dtype)


@on_key("shape", "dtype")
def _triangular(key: KeyLike, left: Array, mode: Array, right: Array, *, shape: tuple[int, ...],
                dtype: DType) -> Array:
    left, mode, right = arrays(dtype, shape, left, mode, right)
    u = unit_floats(key, shape, dtype)
    width = right - left
    peak = (mode - left) / width
    low = lax.sqrt(u * width * (mode - left))
    rest = 1 - u
    high = lax.sqrt(rest * width * (right - mode))
    return lax.select(u < peak, left + low, right - high)


def triangular(key: KeyLike, left: ArrayLike, mode: Any, right: ArrayLike,
               shape: Sequence[int] | None = None, dtype: DTypeLike | None = None, *,
               out_sharding: ShardingLike = None) -> Array:
    """Random numbers in [left, right] with a density that rises linearly to `mode` and falls.

    Args:
      key: a key, as `key` and `split` make them; the same key gives the same numbers.
      left, mode, right: the least number, the one where the density is largest, and the largest
        one; they broadcast to `shape`.
      shape: of the result, by default that to which the three broadcast.
      dtype: a float dtype; by default the default one, float32 unless 64-bit types are on.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    >>> import pyjx as jax
    >>> x = jax.random.triangular(jax.random.key(0), 0., 1., 4., (30,))
    >>> bool((x >= 0).all() and (x <= 4).all())
    True
    """
    return drawn(_triangular, key, shape, dtype, out_sharding, left, mode, right)


@on_key("shape", "dtype")
def _geometric(key: KeyLike, p: Array, *, shape: tuple[int, ...], dtype: DType) -> Array:
    kind = dtypes.to_inexact_dtype(get_aval(p).dtype)
    (p,) = arrays(kind, shape, p)
    u = unit_floats(key, shape, kind)
    one = lax.full_like(u, 1)
    log_u = lax.log(lax.select(u == 0, one, u))
    trials = lax.floor(log_u / lax.log1p(-p))
    return lax.convert_element_type(trials + one, dtype)


def geometric(key: KeyLike, p: ArrayLike, shape: Sequence[int] | None = None,
              dtype: DTypeLike | None = None, *, out_sharding: ShardingLike = None) -> Array:
    """The number of trials up to the first success, each of which has probability `p`.

    Args:
      key: a key, as `key` and `split` make them; the same key gives the same numbers.
      p: the probability of a success, in (0, 1]; it broadcasts to `shape`.
      shape: of the result, by default that of `p`.
      dtype: an integer dtype; by default the default one.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    Raises:
      ValueError: the dtype is not an integer dtype, or `p` does not broadcast to `shape`.

    >>> import pyjx as jax
    >>> bool((jax.random.geometric(jax.random.key(0), 0.3, (30,)) >= 1).all())
    True
    """
    return drawn(_geometric, key, shape, dtype, out_sharding, p, kind=integer_dtype, safe=False)


@on_key("shape", "wide", "dtype")
def _orthogonal(key: KeyLike, *, shape: tuple[int, ...], wide: bool, dtype: DType) -> Array:
    z = normal_floats(key, shape, dtype)
    q, r = jnp.linalg.qr(z)
    # The signs of r's diagonal make the factorization unique, and q uniform (Mezzadri 2007).
    q = q * jnp.expand_dims(jnp.sign(jnp.linalg.diagonal(r)), -2)
    return jnp.matrix_transpose(q) if wide else q


def orthogonal(key: KeyLike, n: int, shape: Sequence[int] = (), dtype: DTypeLike | None = None,
               m: int | None = None, *, out_sharding: ShardingLike = None) -> Array:
    """Matrices from the uniform distribution over the orthogonal (or unitary) ones.

    Args:
      key: a key.
      n, m: rows and columns; m is n by default. Of a matrix that is not square the rows, or the
        columns, whichever there are fewer of, are orthonormal.
      shape: of the array of matrices.
      dtype: float or complex, of 32 bits at least.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    Returns:
      An array of shape `(*shape, n, m)`.

    Raises:
      ValueError: a size is negative, or the dtype is neither float nor complex.
      TypeError: a size is no integer, or the dtype has fewer than 32 bits.

    >>> import pyjx as jax
    >>> x = jax.random.orthogonal(jax.random.key(0), 2)
    >>> bool(jax.numpy.allclose(x @ x.T, jax.numpy.eye(2), atol=1e-6))
    True
    """
    wrapped, _ = check_key("orthogonal", key)
    rows = as_int("orthogonal", "n", n)
    columns = rows if m is None else as_int("orthogonal", "m", m)
    if rows < 0 or columns < 0:
        raise ValueError("orthogonal: negative dimensions are not allowed, got "
                         f"{rows} and {columns}")
    dtype = inexact_dtype(dtype, "orthogonal")
    batch = (shape,) if isinstance(shape, int) else shape
    full = (*as_sizes("orthogonal", "shape", batch), max(rows, columns), min(rows, columns))
    return placed_result(_orthogonal(wrapped, shape=full, wide=rows < columns, dtype=dtype),
                         out_sharding, "orthogonal")


# Factors of a covariance C: matrices A with A A^T = C.


def _by_svd(covariance: Value) -> Array:
    u, s, _ = jnp.linalg.svd(covariance)
    return u * jnp.sqrt(jnp.expand_dims(s, -2))


def _by_eigh(covariance: Value) -> Array:
    w, v = jnp.linalg.eigh(covariance)
    return v * jnp.sqrt(jnp.expand_dims(w, -2))


_FACTORS: dict[str, Callable[[Value], Any]] = {
    "svd": _by_svd, "eigh": _by_eigh, "cholesky": jnp.linalg.cholesky}


@on_key("shape", "dtype", "method")
def _multivariate_normal(key: KeyLike, mean: Array, covariance: Array, *, shape: tuple[int, ...],
                         dtype: DType, method: str) -> Array:
    factor = _FACTORS[method](covariance)
    full = (*shape, get_aval(mean).shape[-1])
    z = normal_floats(key, full, dtype)
    return jnp.broadcast_to(mean, full) + jnp.einsum("...ij,...j->...i", factor, z)


def multivariate_normal(key: KeyLike, mean: ArrayLike, cov: ArrayLike,
                        shape: Sequence[int] | None = None, dtype: DTypeLike | None = None,
                        method: str = "cholesky", *, out_sharding: ShardingLike = None) -> Array:
    """Normal random vectors with a mean and a covariance.

    Args:
      key: a key.
      mean: vectors, of shape `(..., n)`.
      cov: positive definite matrices, of shape `(..., n, n)`. Where they are only semidefinite, use
        another method than "cholesky".
      shape: of the array of vectors; by default that to which those of `mean` and `cov` broadcast.
      dtype: of the normal numbers that the vectors are made of, a float dtype; by default that to
        which `mean` and `cov` promote.
      method: how `cov` is factored: "cholesky", "eigh" or "svd".
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    Returns:
      An array of shape `(*shape, n)`.

    Raises:
      ValueError: the shapes do not fit, the dtype is no float one, or the method none of these.

    >>> import pyjx as jax, pyjx.numpy as jnp
    >>> jax.random.multivariate_normal(jax.random.key(0), jnp.zeros(2), jnp.eye(2), (3,)).shape
    (3, 2)
    """
    wrapped, _ = check_key("multivariate_normal", key)
    if method not in _FACTORS:
        raise ValueError(f"multivariate_normal: method must be one of {set(_FACTORS)}, got "
                         f"{method!r}")
    mean, cov = jnp.asarray(mean), jnp.asarray(cov)
    if dtype is None:
        dtype = float_dtype(dtypes.to_inexact_dtype(dtypes.result_type(mean, cov)),
                            "multivariate_normal")
        mean, cov = [lax.convert_element_type(x, dtype) for x in (mean, cov)]
    else:
        dtype = float_dtype(dtype, "multivariate_normal")
    for name, x, rank in (("mean", mean, 1), ("cov", cov, 2)):
        if x.ndim < rank:
            raise ValueError(f"multivariate_normal requires {name}.ndim >= {rank}, got "
                             f"{name}.ndim == {x.ndim}")
    n = mean.shape[-1]
    if cov.shape[-2:] != (n, n):
        raise ValueError(f"multivariate_normal requires cov.shape == (..., n, n) for n={n}, but "
                         f"got cov.shape == {cov.shape}.")
    batches = mean.shape[:-1], cov.shape[:-2]
    if shape is None:
        full = joint_shape("multivariate_normal", *batches)
    else:
        full = as_sizes("multivariate_normal", "shape", shape)
        if joint_shape("multivariate_normal", full, *batches,
                       of="the result and of the parameters") != full:
            raise ValueError("multivariate_normal: the shapes of mean and cov must broadcast to "
                             f"the shape argument, got {mean.shape}, {cov.shape} and shape {full}")
    out = _multivariate_normal(wrapped, mean, cov, shape=full, dtype=dtype, method=method)
    return placed_result(out, out_sharding, "multivariate_normal")
