"""Bessel functions. DLMF is the NIST Digital Library of Mathematical Functions."""

from __future__ import annotations

import math
import operator
from functools import partial
from typing import Any

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.trace import concrete_or_error
from pyjx.numpy.operands import numpy_function
from pyjx.numpy.promotion import promote_args_as_floats
from pyjx.scipy.special.operands import in_single, reals, weak_as
from pyjx.transforms.custom_jvp import custom_jvp

# The coefficients of (x^2/4)^k in I_1'(x), after DLMF 10.25.2
_I1_SLOPE = [(2 * k + 1) / (2 * math.factorial(k) * math.factorial(k + 1)) for k in range(14)]


@custom_jvp
@in_single
def _i0(x: Array) -> Array:
    return jnp.exp(jnp.abs(x)) * lax.bessel_i0e(x)


@custom_jvp
@in_single
def _i1(x: Array) -> Array:
    return jnp.exp(jnp.abs(x)) * lax.bessel_i1e(x)


def _i1_slope(out: Array, x: Array) -> Array:
    # I_1'(x) = I_0(x) - I_1(x)/x; near 0, where that cancels in the derivatives, its power series
    small = jnp.abs(x) < 2
    near, far = jnp.where(small, x, 0), jnp.where(small, 2, x)
    series = weak_as(lax.polynomial(near * near / 4, _I1_SLOPE), x)
    return jnp.where(small, series, _i0(far) - out / far)


_i0.defjvps(lambda g, out, x: g * _i1(x))
_i1.defjvps(lambda g, out, x: g * _i1_slope(out, x))


@numpy_function
def i0(x: ArrayLike) -> Array:
    """The modified Bessel function I_0 (DLMF 10.25.2), for real x.

    Args:
      x: real numbers, an array or a number; integers become floats.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.special.i0(1.0)), 4)
    1.2661
    """
    return _i0(*reals("i0", x))


@numpy_function
def i0e(x: ArrayLike) -> Array:
    """e^-|x| I_0(x), which does not overflow.

    Args:
      x: real numbers, an array or a number; integers become floats.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.special.i0e(1.0)), 4)
    0.4658
    """
    return lax.bessel_i0e(*promote_args_as_floats("i0e", x))


@numpy_function
def i1(x: ArrayLike) -> Array:
    """The modified Bessel function I_1 (DLMF 10.25.2), for real x.

    Args:
      x: real numbers, an array or a number; integers become floats.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.special.i1(1.0)), 4)
    0.5652
    """
    return _i1(*reals("i1", x))


@numpy_function
def i1e(x: ArrayLike) -> Array:
    """e^-|x| I_1(x), which does not overflow.

    Args:
      x: real numbers, an array or a number; integers become floats.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.special.i1e(1.0)), 4)
    0.2079
    """
    return lax.bessel_i1e(*promote_args_as_floats("i1e", x))


@numpy_function(static_argnames=("v", "n_iter"))
def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """The Bessel functions J_0, ..., J_v of the first kind (DLMF 10.2.2) at real z.

    By the recurrence J_(k-1) = 2k/z J_k - J_(k+1) downwards from k = n_iter (DLMF 10.6.1), scaled
    so that J_0 + 2 J_2 + 2 J_4 + ... = 1 (Miller's algorithm, DLMF 3.6.3).

    Args:
      z: array of real dtype; integers become floats.
      v: the highest order, an int.
      n_iter: where the recurrence starts: above v and |z| + 4 |z|^(1/3); the result is nan where it
        does not reach so far.

    Returns:
      An array of shape (v + 1, *z.shape).

    Raises:
      TypeError: `v` is no integer.
      ValueError: `z` is complex, or `v` is below -1 or not below `n_iter`.

    >>> import pyjx as jax
    >>> [round(y, 4) for y in jax.scipy.special.bessel_jn(jax.numpy.array(1.0), v=1).tolist()]
    [0.7652, 0.4401]
    """
    z, = reals("bessel_jn", z)
    v = concrete_or_error(operator.index, v,
                          "The error arose in jax.scipy.special.bessel_jn argument `v`.")
    if not -1 <= v < n_iter:
        raise ValueError(f"bessel_jn: expected n_iter > v >= -1, got n_iter={n_iter} and v={v}.")
    out = _orders(z, v, n_iter)
    size = jnp.abs(z)
    return jnp.where(size + 4 * jnp.cbrt(size) > n_iter, math.nan, out)


@partial(custom_jvp, nondiff_argnums=(1, 2))
def _orders(z: Array, v: int, n_iter: int) -> Array:
    zero = z == 0
    inverse = 1 / jnp.where(zero, 1, z)

    def step(carry: Any, each: Any) -> Any:
        (above, this, norm), (twice, weight) = carry, each
        below = twice * inverse * this - above
        norm = norm + weight * below
        # the recurrence grows: scaled down before it overflows
        scale = jnp.where(jnp.abs(below) > 1e20, 1e-20, 1).astype(z.dtype)
        return (this * scale, below * scale, norm * scale), (below, scale)

    start = jnp.zeros_like(z), jnp.full_like(z, 1e-20), jnp.zeros_like(z)
    k = jnp.arange(n_iter, 0, -1)  # J_(k-1) counts in the norm where k - 1 is even
    each = [x.astype(z.dtype) for x in (2 * k, jnp.where(k == 1, 1, 2 * (k % 2)))]
    first = n_iter - v - 1  # of the steps whose values are kept
    carry, _ = lax.scan(lambda c, x: (step(c, x)[0], None), start, [x[:first] for x in each])
    (_, _, norm), (values, scales) = lax.scan(step, carry, [x[first:] for x in each], unroll=v < 8)
    # what was scaled after a value was kept applies to that value too
    out = jnp.flip(values * lax.cumprod(scales, reverse=True), 0) / norm[None]
    at_zero = (jnp.arange(v + 1) == 0).reshape(v + 1, *[1] * z.ndim)
    return jnp.where(zero[None], at_zero.astype(z.dtype), out)


@_orders.defjvp
def _orders_jvp(v: int, n_iter: int, primals: Any, tangents: Any) -> tuple[Array, Array]:
    # J_n' = (J_(n-1) - J_(n+1))/2, where J_(-1) = -J_1 (DLMF 10.6.1)
    (z,), (dz,) = primals, tangents
    # computed apart, as what XLA makes a part of padding, of a gradient say, takes no vectors
    y = lax.optimization_barrier(_orders(z, v + 1, max(n_iter, v + 2)))
    return y[:-1], (jnp.concatenate([-y[1:2], y[:v]]) - y[1:]) / 2 * dz
