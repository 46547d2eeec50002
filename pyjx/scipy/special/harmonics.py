"""Spherical harmonics. DLMF is the NIST Digital Library of Mathematical Functions."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from pyjx import configuration, lax
from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.trace import concrete_or_error
from pyjx.numpy.promotion import any_ranks
from pyjx.transforms.linearize import jvp


def _normalized(k: Array, m: Array) -> tuple[Array, Array, Array]:
    """The factors of `_advance` for the functions that spherical harmonics hold.

    P(m, m) = -sqrt((2m + 1)/(2m)) sin P(m - 1, m - 1),
    P(k, m) = sqrt((4k^2 - 1)/(k^2 - m^2)) (cos P(k - 1, m) - s P(k - 2, m)),
    s^2 = ((k - 1)^2 - m^2)/(4 (k - 1)^2 - 1).
    """
    above = k > m
    factor = jnp.sqrt((4 * k * k - 1) / jnp.where(above, k * k - m * m, 1))
    j = k - 1
    rest = jnp.sqrt(jnp.where(above, j * j - m * m, 0) / jnp.maximum(4 * j * j - 1, 1))
    return -jnp.sqrt(1 + 0.5 / k), factor, factor * rest


def _plain(k: Array, m: Array) -> tuple[Array, Array, Array]:
    """The factors of `_advance` for the functions themselves, which are beyond a dtype's range only
    where their values are.

    P(m, m) = -(2m - 1) sin P(m - 1, m - 1),
    (k - m) P(k, m) = (2k - 1) cos P(k - 1, m) - (k + m - 1) P(k - 2, m).
    """
    rise = jnp.where(k > m, k - m, 1)
    return 1 - 2 * k, (2 * k - 1) / rise, (k + m - 1) / rise


def _advance(factors: Any, state: tuple[Any, Any, Any], k: Array, m: Array, cos: Any, sin: Any
             ) -> tuple[Array, Array, Array]:
    """One step of the recurrences of associated Legendre functions, to degree k: first over m = k
    and then over k (DLMF 14.10.3).

    Args:
      factors: `_normalized` or `_plain`.
      state: the diagonal, which is P(k - 1, k - 1) or, from k = m + 1 on, P(m, m); P(k - 2, m);
        and P(k - 1, m). They are 0 where the order is above the degree.
      m: orders, at least 0.
    """
    diagonal, before, this = state
    turn, rise, rest = factors(k, m)
    diagonal = jnp.where(k <= m, diagonal * (turn * sin), diagonal)
    above = k > m
    following = rise * cos * this - rest * before
    return (diagonal, jnp.where(above, this, 0),
            jnp.where(above, following, jnp.where(k == m, diagonal, 0)))


NORM = math.sqrt(0.25 / math.pi)  # the normalized function of degree 0


def _start(m: ArrayLike, cos: Array, first: float = NORM) -> tuple[Array, Array, Array]:
    """The state at degree 0."""
    diagonal = jnp.full_like(cos, first)
    return diagonal, jnp.zeros_like(cos), jnp.where(m == 0, diagonal, 0)


def _legendre(n: Array, m: Array, theta: Array, n_max: int) -> Array:
    """The associated Legendre functions of cos(theta) that spherical harmonics hold, for m >= 0."""
    cos, sin = jnp.cos(theta), jnp.abs(jnp.sin(theta))  # sqrt(1 - cos^2), as in SciPy

    def step(carry: Any, k: Any) -> Any:
        state, out = carry
        state = _advance(_normalized, state, k, m, cos, sin)
        return (state, jnp.where(k == n, state[2], out)), None

    start = _start(m, cos)
    degrees = jnp.asarray(np.arange(1, n_max + 1), theta.dtype)
    return lax.scan(step, (start, jnp.where(n == 0, start[2], 0)), degrees)[0][1]


def _checked(m: ArrayLike, n: Any, z: Any, name: str) -> tuple[int, Array]:
    """The largest degree, and the points.

    Raises:
      NotImplementedError: m and n differ.
      ValueError: they are negative, or z is no vector.
      TypeError: z is not of dtype float32 or float64.
    """
    m, n = (concrete_or_error(int, value, f"Argument {said} of {name}.")
            for said, value in (("m", m), ("n", n)))
    z = jnp.asarray(z)
    if z.dtype not in (np.float32, np.float64):
        raise TypeError(f"z.dtype={z.dtype} is not supported: {name} takes float32 and float64. "
                        "Convert it: z.astype(jnp.float32).")
    if z.ndim != 1:
        raise ValueError(f"z must be a 1D array. {name} got shape {z.shape}; use z.ravel().")
    if m != n:
        raise NotImplementedError(f"Computations for m!=n are not yet supported. {name} got m={m} "
                                  f"and n={n}; pass the larger one for both.")
    if n < 0:
        raise ValueError(f"{name}: m and n must not be negative, got {n}.")
    return n, z


@any_ranks
def _table(factors: Any, n: int, z: Array, s: Array, first: float = 1.0, bare: int = 0) -> Array:
    """The functions of order m <= n and degree l <= n at each z, at [m, l, i].

    Args:
      factors: `_normalized` or `_plain`.
      s: sqrt(1 - z^2).
      first: the function of degree 0.
      bare: so many of the factors s, of which a function has m, are left out.
    """
    m = jnp.asarray(np.arange(n + 1)[:, None], z.dtype)
    cos = jnp.broadcast_to(z, (n + 1, *z.shape))

    def step(state: Any, k: Any) -> Any:
        state = _advance(factors, state, k, m, cos, jnp.where(k > bare, s, 1))
        return state, state[2]

    start = _start(m, cos, first)
    rows = lax.scan(step, start, jnp.asarray(np.arange(1, n + 1), z.dtype))[1]
    return jnp.concatenate([start[2][None], rows]).transpose(1, 0, 2)


def lpmn_values(m: int, n: int, z: ArrayLike, is_normalized: bool) -> Array:
    """The associated Legendre functions of the first kind, of all orders and degrees up to n.

    JAX deprecates it; `sph_harm_y` serves spherical harmonics.

    Args:
      m, n: the largest order and the largest degree, the same int.
      z: a vector of float32 or float64 in [-1, 1].
      is_normalized: whether each is multiplied by what makes spherical harmonics orthonormal.

    Returns:
      An array of shape (n + 1, n + 1, len(z)): the function of order i and degree j at [i, j].
      Those beyond the range of the dtype are infinite or nan, as are those of higher degree.

    Raises:
      NotImplementedError: m and n differ.
      ValueError: they are negative, or z is no vector.
      TypeError: z has another dtype.

    >>> import pyjx as jax
    >>> p = jax.scipy.special.lpmn_values(1, 1, jax.numpy.array([0.0]), is_normalized=False)
    >>> p.shape, round(float(p[1, 1, 0]), 4)
    ((2, 2, 1), -1.0)
    """
    n, z = _checked(m, n, z, "lpmn_values")
    s = jnp.sqrt((1 - z) * (1 + z))
    return _table(_normalized, n, z, s, NORM) if is_normalized else _table(_plain, n, z, s)


def lpmn(m: int, n: int, z: ArrayLike) -> tuple[Array, Array]:
    """The associated Legendre functions of the first kind and their derivatives, of all orders and
    degrees up to n.

    JAX deprecates it.

    Args:
      m, n: the largest order and the largest degree, the same int.
      z: a vector of float32 or float64 in [-1, 1].

    Returns:
      Two arrays of shape (n + 1, n + 1, len(z)): of order i and degree j at [i, j].
      Those beyond the range of the dtype are infinite or nan, as are those of higher degree.

    Raises:
      NotImplementedError: m and n differ.
      ValueError: they are negative, or z is no vector.
      TypeError: z has another dtype.

    >>> import pyjx as jax
    >>> p, dp = jax.scipy.special.lpmn(1, 1, jax.numpy.array([0.0]))
    >>> dp.shape, round(float(dp[0, 1, 0]), 4)
    ((2, 2, 1), 1.0)
    """
    n, z = _checked(m, n, z, "lpmn")
    # P = s^m Q with polynomials Q, so P' = s^m Q' - m z s^(m - 2) Q, which is finite where s is 0
    # but for m = 1. The powers are in the tables, as Q alone soon is out of range.
    s = jnp.sqrt((1 - z) * (1 + z))
    p, inner = jvp(lambda z: _table(_plain, n, z, s), (z,), (jnp.ones_like(z),))
    return p, inner - _outer_slope(n, z, s)


@any_ranks
def _outer_slope(n: int, z: Array, s: Array) -> Array:
    """m z s^(m - 2) Q, where s^m Q are the functions."""
    m = np.arange(n + 1)[:, None, None]
    q = _table(_plain, n, z, s, bare=2)
    present = (m > 0) & (m <= np.arange(n + 1)[:, None])
    return jnp.where(present, m.astype(z.dtype) * z * jnp.where(m == 1, q / s, q), 0)


def sph_harm_y(n: ArrayLike, m: ArrayLike, theta: ArrayLike, phi: ArrayLike,
               diff_n: int | None = None, n_max: int | None = None) -> Array:
    """The spherical harmonics of degree n and order m (DLMF 14.30.1), of complex dtype.

    Unlike in SciPy there is `n_max`, and no derivatives (`diff_n`) but those of `jax.grad`.

    Args:
      n, m: arrays of integers with 0 <= |m| <= n; the value is 0 for others, as in SciPy.
      theta: polar angle, in [0, pi]; others count as the one of the same cosine there.
      phi: azimuth, in [0, 2 pi].
      diff_n: None.
      n_max: the largest n, an int; needed where `n` is traced. Larger elements of n count as it.

    Returns:
      An array of the common shape of the arguments.

    Raises:
      NotImplementedError: `diff_n` is given.
      TypeError: `n` or `m` are no integers.

    >>> import pyjx as jax
    >>> Y = jax.scipy.special.sph_harm_y(*map(jax.numpy.array, ([0], [0], [0.5], [0.5])))
    >>> round(float(Y[0].real), 4)
    0.2821
    """
    if diff_n is not None:
        raise NotImplementedError("sph_harm_y: diff_n is not supported; use jax.grad.")
    degree, order, theta, phi = jnp.broadcast_arrays(*map(jnp.asarray, (n, m, theta, phi)))
    for name, x in (("n", degree), ("m", order)):
        if jnp.issubdtype(x.dtype, jnp.inexact):
            raise TypeError(f"sph_harm_y: {name} must be integers, got dtype {x.dtype}.")
    if n_max is None:
        n_max = int(np.max(concrete_or_error(
            np.asarray, n, "The `n_max` argument of `jnp.scipy.special.sph_harm` must be "
            "statically specified to use `sph_harm` within JAX transformations.", ""), initial=0))
    n_max = operator.index(n_max)
    if n_max < 0:
        raise ValueError(f"sph_harm_y: n_max must not be negative, got {n_max}")
    with configuration.numpy_dtype_promotion("standard"):
        dtype = jnp.promote_types(jnp.result_type(theta, phi), jnp.result_type(float))
    theta, phi = theta.astype(dtype), phi.astype(dtype)
    negative = degree < 0
    degree = jnp.clip(degree, 0, n_max).astype(dtype)
    size = jnp.abs(order).astype(dtype)
    real = _legendre(degree, size, theta, n_max)
    # Y(n, -m) = (-1)^m conj(Y(n, m)), DLMF 14.30.6
    odd = (order < 0) & (order % 2 != 0)
    angle = order.astype(dtype) * phi
    real = jnp.where(negative, 0, jnp.where(odd, -real, real))
    return lax.complex(real * jnp.cos(angle), real * jnp.sin(angle))
