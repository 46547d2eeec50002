"""Spherical harmonics. DLMF is the NIST Digital Library of Mathematical Functions."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from pyjx import configuration, lax
from pyjx import numpy as jnp
from pyjx.core.array_type import Array
from pyjx.core.trace import concrete_or_error


def _legendre(n: Array, m: Array, theta: Array, n_max: int) -> Array:
    """The associated Legendre functions of cos(theta) that spherical harmonics hold, for m >= 0.

    By recurrences of the normalized functions, first over m = k and then over n (DLMF 14.10.3):
    P(m, m) = -sqrt((2m + 1)/(2m)) sin(theta) P(m - 1, m - 1),
    P(k, m) = sqrt((4k^2 - 1)/(k^2 - m^2)) (cos(theta) P(k - 1, m) - s P(k - 2, m)),
    s^2 = ((k - 1)^2 - m^2)/(4 (k - 1)^2 - 1).
    """
    cos, sin = jnp.cos(theta), jnp.sin(theta)

    def step(carry: Any, k: Any) -> Any:
        diagonal, before, this, out = carry
        diagonal = jnp.where(k <= m, diagonal * (-jnp.sqrt(1 + 0.5 / k) * sin), diagonal)
        above = k > m
        factor = jnp.sqrt((4 * k * k - 1) / jnp.where(above, k * k - m * m, 1))
        j = k - 1
        rest = jnp.sqrt(jnp.where(above, j * j - m * m, 0) / jnp.maximum(4 * j * j - 1, 1))
        following = factor * (cos * this - rest * before)
        before, this = (jnp.where(above, this, 0),
                        jnp.where(above, following, jnp.where(k == m, diagonal, 0)))
        return (diagonal, before, this, jnp.where(k == n, this, out)), None

    first = jnp.full_like(theta, math.sqrt(0.25 / math.pi))
    this = jnp.where(m == 0, first, 0)
    start = first, jnp.zeros_like(theta), this, jnp.where(n == 0, this, 0)
    orders = jnp.asarray(np.arange(1, n_max + 1), theta.dtype)
    return lax.scan(step, start, orders)[0][3]


def sph_harm_y(n: Any, m: Any, theta: Any, phi: Any, diff_n: int | None = None,
               n_max: int | None = None) -> Array:
    """The spherical harmonics of degree n and order m (DLMF 14.30.1), of complex dtype.

    Unlike in SciPy there is `n_max`, and no derivatives (`diff_n`) but those of `jax.grad`.

    Args:
      n, m: arrays of integers with 0 <= |m| <= n.
      theta: polar angle, in [0, pi].
      phi: azimuth, in [0, 2 pi].
      diff_n: None.
      n_max: the largest n, an int; needed where `n` is traced. Larger elements of n count as it.

    Returns:
      An array of the common shape of the arguments.

    Raises:
      NotImplementedError: `diff_n` is given.

    >>> import pyjx as jax
    >>> Y = jax.scipy.special.sph_harm_y(*map(jax.numpy.array, ([0], [0], [0.5], [0.5])))
    >>> round(float(Y[0].real), 4)
    0.2821
    """
    if diff_n is not None:
        raise NotImplementedError("sph_harm_y: diff_n is not supported; use jax.grad.")
    degree, order, theta, phi = jnp.broadcast_arrays(*map(jnp.asarray, (n, m, theta, phi)))
    if n_max is None:
        n_max = int(np.max(concrete_or_error(
            np.asarray, n, "The `n_max` argument of `jnp.scipy.special.sph_harm` must be "
            "statically specified to use `sph_harm` within JAX transformations."), initial=0))
    n_max = operator.index(n_max)
    with configuration.numpy_dtype_promotion("standard"):
        dtype = jnp.promote_types(jnp.result_type(theta, phi), jnp.result_type(float))
    theta, phi = theta.astype(dtype), phi.astype(dtype)
    degree = jnp.clip(degree, 0, n_max).astype(dtype)
    size = jnp.abs(order).astype(dtype)
    real = _legendre(degree, size, theta, n_max)
    # Y(n, -m) = (-1)^m conj(Y(n, m)), DLMF 14.30.6
    odd = (order < 0) & (order % 2 != 0)
    angle = order.astype(dtype) * phi
    real = jnp.where(odd, -real, real)
    return lax.complex(real * jnp.cos(angle), real * jnp.sin(angle))
