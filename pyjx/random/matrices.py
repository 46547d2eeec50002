"""Samplers that need linear algebra: orthogonal matrices, and normal vectors with covariances."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array
from pyjx.core.avals import get_aval
from pyjx.core.dtypes import DType
from pyjx.core.integers import as_int, as_sizes
from pyjx.engine.types import Value
from pyjx.random.base import check_key, on_key, placed_result
from pyjx.random.samplers import float_dtype, joint_shape, normal_floats


@on_key("shape", "wide", "dtype")
def _orthogonal(key: Value, *, shape: tuple[int, ...], wide: bool, dtype: DType) -> Value:
    z = normal_floats(key, shape, dtype)
    q, r = jnp.linalg.qr(z)
    # The signs of r's diagonal make the factorization unique, and q uniform (Mezzadri 2007).
    q = q * jnp.expand_dims(jnp.sign(jnp.linalg.diagonal(r)), -2)
    return jnp.matrix_transpose(q) if wide else q


def orthogonal(key: Any, n: int, shape: Sequence[int] = (), dtype: Any = None,
               m: int | None = None, *, out_sharding: Any = None) -> Array:
    """Matrices from the uniform distribution over the orthogonal (or unitary) ones.

    Args:
      key: a key.
      n, m: rows and columns; m is n by default. Of a matrix that is not square the rows, or the
        columns, whichever there are fewer of, are orthonormal.
      shape: of the array of matrices.
      dtype: float or complex, of 32 bits at least.

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
        raise ValueError(f"orthogonal: negative dimensions are not allowed, got {n} and {m}")
    dtype = dtypes.check_and_canonicalize_user_dtype(float if dtype is None else dtype,
                                                     "orthogonal")
    if not dtypes.issubdtype(dtype, np.inexact):
        raise ValueError("dtype argument to `orthogonal` must be a float or complex dtype, got "
                         f"{dtypes.name(dtype)}")
    batch = (shape,) if isinstance(shape, int) else shape
    full = (*as_sizes("orthogonal", "shape", batch), max(rows, columns), min(rows, columns))
    return placed_result(
        _orthogonal(wrapped, shape=full, wide=rows < columns, dtype=dtype),
        out_sharding, "orthogonal")


# Factors of a covariance C: matrices A with A A^T = C.


def _by_svd(covariance: Value) -> Value:
    u, s, _ = jnp.linalg.svd(covariance)
    return u * jnp.sqrt(jnp.expand_dims(s, -2))


def _by_eigh(covariance: Value) -> Value:
    w, v = jnp.linalg.eigh(covariance)
    return v * jnp.sqrt(jnp.expand_dims(w, -2))


_FACTORS: dict[str, Callable[[Value], Any]] = {
    "svd": _by_svd, "eigh": _by_eigh, "cholesky": jnp.linalg.cholesky}


@on_key("shape", "dtype", "method")
def _multivariate_normal(key: Value, mean: Value, covariance: Value, *, shape: tuple[int, ...],
                         dtype: DType, method: str) -> Value:
    factor = _FACTORS[method](covariance)
    full = (*shape, get_aval(mean).shape[-1])
    z = normal_floats(key, full, dtype)
    return jnp.broadcast_to(mean, full) + jnp.einsum("...ij,...j->...i", factor, z)


def multivariate_normal(key: Any, mean: Any, cov: Any, shape: Sequence[int] | None = None,
                        dtype: Any = None, method: str = "cholesky", *, out_sharding: Any = None
                        ) -> Array:
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
