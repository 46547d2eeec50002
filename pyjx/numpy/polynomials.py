"""Polynomials in one variable: arrays of coefficients, that of the highest power first."""

from __future__ import annotations

import operator
from functools import cache
from typing import Any

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import get_aval
from pyjx.core.dimensions import max_dim
from pyjx.core.trace import concrete_or_error
from pyjx.numpy.operands import dtype_of
from pyjx.numpy.promotion import (
    any_ranks,
    check_arraylike,
    convert,
    operands,
    promote_dtypes,
    promote_dtypes_inexact,
)
from pyjx.runtime.operations import op_jit
from pyjx.transforms.custom_jvp import custom_jvp


def _coefficients(name: str, *arrays: Any) -> list[Any]:
    check_arraylike(name, *arrays)
    parts = operands(name, *arrays)
    for x in parts:
        if get_aval(x).ndim == 0:
            raise ValueError(f"{name}: coefficients must be arrays of rank 1, got a scalar")
    return parts


# -- arithmetic ------------------------------------------------------------------------------------


def _aligned(name: str, a1: ArrayLike, a2: ArrayLike) -> tuple[Any, Any]:
    """Both in the shape of the longer one, which the shorter one's coefficients broadcast to.

    Raises:
      ValueError: they do not.
    """
    a1, a2 = promote_dtypes(*_coefficients(name, a1, a2))
    shapes = get_aval(a1).shape, get_aval(a2).shape
    count, *rest = longer = shapes[0] if shapes[0][0] >= shapes[1][0] else shapes[1]

    def padded(a: ArrayLike) -> Any:
        rows = get_aval(a).shape[0]
        try:
            a = jnp.broadcast_to(a, (rows, *rest))
        except ValueError:
            raise ValueError(
                f"{name}: coefficients of shape {get_aval(a).shape} do not broadcast to the last "
                f"{rows} of those of shape {tuple(longer)}.") from None
        return jnp.pad(a, [(count - rows, 0), *[(0, 0)] * len(rest)]) if rows < count else a

    return padded(a1), padded(a2)


@op_jit
@any_ranks
def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The sum of two polynomials.

    >>> import pyjx as jax
    >>> jax.numpy.polyadd(jax.numpy.array([1, 2]), jax.numpy.array([1, 0, 0])).tolist()
    [1, 1, 2]
    """
    return lax.add(*_aligned("polyadd", a1, a2))


@op_jit
@any_ranks
def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The difference of two polynomials.

    >>> import pyjx as jax
    >>> jax.numpy.polysub(jax.numpy.array([1, 0, 0]), jax.numpy.array([1, 2])).tolist()
    [1, -1, -2]
    """
    return jnp.subtract(*_aligned("polysub", a1, a2))


def _without_leading_zeros(name: str, p: Array, kept: int) -> Any:
    """The coefficients from the first that is not zero on; at least `kept` of them."""
    known = concrete_or_error(
        np.asarray, p, f"The error occurred in jnp.{name}() with trim_leading_zeros=True, which "
        "needs values that are known: leave it out under jit.")
    places = np.flatnonzero(known)
    first = places[0] if len(places) else len(known)
    return p[min(first, max(len(known) - kept, 0)):]


def polymul(a1: Any, a2: Any, *, trim_leading_zeros: bool = False) -> Array:
    """The product of two polynomials. Integers become floats.

    Args:
      a1, a2: arrays of rank 1.
      trim_leading_zeros: whether zeros in front are left out first; the values must be known.

    >>> import pyjx as jax
    >>> jax.numpy.polymul(jax.numpy.array([1, 1]), jax.numpy.array([1, -1])).tolist()
    [1.0, 0.0, -1.0]
    """
    a1, a2 = promote_dtypes_inexact(*_coefficients("polymul", a1, a2))
    if trim_leading_zeros:
        a1, a2 = (_without_leading_zeros("polymul", a, 1) for a in (a1, a2))
    a1, a2 = (jnp.zeros(1, dtype_of(a)) if not get_aval(a).size else a for a in (a1, a2))
    return jnp.convolve(a1, a2, mode="full")


def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """The quotient of two polynomials and the remainder. Integers become floats.

    Args:
      u, v: arrays of rank 1.
      trim_leading_zeros: whether zeros in front of the remainder are left out; the values must be
        known. Otherwise it has as many coefficients as `u`.

    >>> import pyjx as jax
    >>> q, r = jax.numpy.polydiv(jax.numpy.array([1.0, 2.0, 3.0]), jax.numpy.array([1.0, 1.0]))
    >>> q.tolist(), r.tolist()
    ([1.0, 1.0], [0.0, 0.0, 2.0])
    """
    quotient, remainder = _divided(*_coefficients("polydiv", u, v))
    if trim_leading_zeros:
        remainder = _without_leading_zeros("polydiv", remainder, 0)
    return quotient, remainder


@op_jit
def _divided(u: ArrayLike, v: Array) -> tuple[Any, Any]:
    u, v = promote_dtypes_inexact(u, v)
    weak = get_aval(u).weak_type
    u, v = (convert(x, dtype_of(u)) for x in (u, v))
    n = get_aval(v).shape[0]
    steps = get_aval(u).shape[0] - n + 1
    if steps < 1:
        return jnp.zeros(1, dtype_of(u)), jnp.asarray(u)

    def step(rest: Any, k: ArrayLike) -> tuple[Any, Any]:
        part = lax.dynamic_slice_in_dim(rest, k, n)
        factor = part[0] / v[0]
        return lax.dynamic_update_slice_in_dim(rest, part - factor * v, k, 0), factor

    rest, quotient = lax.scan(step, u, jnp.arange(steps))
    return quotient, convert(rest, dtype_of(rest), weak)


# -- calculus --------------------------------------------------------------------------------------


def _falling(top: int, count: int, m: int) -> np.ndarray:
    """k (k - 1) ... (k - m + 1) for the powers k from `top` down, `count` of them."""
    powers = np.arange(top, top - count, -1, dtype=np.float64)
    return np.prod([powers - i for i in range(m)], axis=0)


@op_jit(static_argnames=("m",))
def polyder(p: Any, m: int = 1) -> Array:
    """The derivative of order m of a polynomial. Integers become floats.

    Raises:
      ValueError: m is negative.

    >>> import pyjx as jax
    >>> jax.numpy.polyder(jax.numpy.array([1, 2, 3])).tolist()
    [2.0, 2.0]
    """
    (p,) = promote_dtypes_inexact(*_coefficients("polyder", p))
    m = operator.index(m)
    if m < 0:
        raise ValueError("Order of derivative must be positive")
    if m == 0:
        return jnp.asarray(p)
    count = get_aval(p).shape[0]
    factors = _falling(count - 1, max(count - m, 0), m).astype(dtype_of(p))
    return p[:max(count - m, 0)] * factors


@op_jit(static_argnames=("m",))
def polyint(p: ArrayLike, m: int = 1, k: Any = None) -> Array:
    """The integral of order m of a polynomial. Integers become floats.

    Args:
      p: array of rank 1.
      m: how often it is integrated.
      k: the constants of integration, one for each; zeros by default.

    Raises:
      ValueError: m is negative, or there is another number of constants.

    >>> import pyjx as jax
    >>> jax.numpy.polyint(jax.numpy.array([2, 2]), k=3).tolist()
    [1.0, 2.0, 3.0]
    """
    m = operator.index(m)
    p, k = promote_dtypes_inexact(*operands("polyint", p, 0 if k is None else k))
    (p,) = _coefficients("polyint", p)
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    k = jnp.atleast_1d(k)
    if get_aval(k).ndim != 1 or (get_aval(k).shape[0] not in (1, m) and m > 0):
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or m.")
    if m == 0:
        return jnp.asarray(p)
    count = get_aval(p).shape[0]
    # The constant i is integrated m - 1 - i times more.
    every = jnp.concatenate([p, jnp.broadcast_to(k, (m,))])
    powers = np.concatenate([_falling(count + m - 1, count, m),
                             [_falling(m - 1 - i, 1, m - 1 - i)[0] if i < m - 1 else 1.0
                              for i in range(m)]])
    return every / powers.astype(dtype_of(every))


# -- values and roots ------------------------------------------------------------------------------


@op_jit(static_argnames=("unroll",))
@any_ranks
def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int | None = None) -> Array:
    """The values of a polynomial, by Horner's rule: (... (p_0 x + p_1) x + ...) + p_n.

    Args:
      p: array of coefficients; those along further axes are for several polynomials.
      x: array of points, which broadcasts against each coefficient.
      unroll: how many steps of the loop stand in line; by default 16.

    >>> import pyjx as jax
    >>> jax.numpy.polyval(jax.numpy.array([1, 2, 3]), 2).item()
    11
    """
    p, x = promote_dtypes(*operands("polyval", p, x))
    (p,) = _coefficients("polyval", p)
    p = jnp.asarray(p)
    shape = jnp.broadcast_shapes(get_aval(p).shape[1:], get_aval(x).shape)
    if shape != get_aval(x).shape:
        x = jnp.broadcast_to(x, shape)
    return _horner(16 if unroll is None else unroll)(p, x)


@cache
def _horner(unroll: int) -> Any:
    """The loop of `polyval`, whose derivatives are polynomials too: no step's value is kept."""
    @custom_jvp
    def values(p: Any, x: Any) -> Any:
        start = lax.full_like(x, 0, dtype_of(p))
        return lax.scan(lambda y, c: (y * x + c, None), start, p, unroll=unroll)[0]

    def slope(g: Any, out: Any, p: Any, x: ArrayLike) -> Any:
        n, *rest = get_aval(p).shape
        degrees = lax.broadcasted_iota(dtype_of(p), (max_dim(n - 1, 0), *rest), 0)
        derivative = jnp.flip(jnp.flip(p[:-1], 0) * (degrees + 1), 0)
        return g * values(derivative, x)

    values.defjvps(lambda g, out, p, x: values(g, x), slope)
    return values


def poly(seq_of_zeros: Any) -> Array:
    """The polynomial with given zeros, or the characteristic one of a square matrix.

    Args:
      seq_of_zeros: array of rank 1 of the zeros, or a square matrix, whose eigenvalues these are.

    Returns:
      The coefficients, of which the first is 1; complex for a matrix, where NumPy gives real ones
      if the zeros come in conjugate pairs.

    Raises:
      ValueError: the array has another shape.

    >>> import pyjx as jax
    >>> jax.numpy.poly(jax.numpy.array([1.0, 2.0])).tolist()
    [1.0, -3.0, 2.0]
    """
    (zeros,) = promote_dtypes_inexact(*operands("poly", seq_of_zeros))
    zeros = jnp.atleast_1d(zeros)
    shape = get_aval(zeros).shape
    if len(shape) == 2 and shape[0] == shape[1] and shape[0]:
        zeros = jnp.linalg.eigvals(zeros)
    elif len(shape) != 1:
        raise ValueError("input must be 1d or non-empty square 2d array.")
    if not get_aval(zeros).size:
        return jnp.ones((), dtype_of(zeros))
    return _from_zeros(zeros)


@op_jit
def _from_zeros(zeros: Any) -> Any:
    """p(x) (x - z) = x p(x) - z p(x), one zero after the other."""
    n, dtype = get_aval(zeros).shape[0], dtype_of(zeros)
    start = jnp.zeros(n + 1, dtype).at[0].set(1)
    place = lax.iota(np.int32, n)

    def step(p: Any, each: Any) -> tuple[Any, None]:
        z, degree = each
        # Coefficients that are not there yet do not become nan by an infinite zero.
        return p.at[1:].add(jnp.where(place <= degree, -z * p[:-1], 0)), None

    return lax.scan(step, start, (zeros, place))[0]


@op_jit(static_argnames=("N", "increasing"))
def _vander(x: Array, N: int, increasing: bool) -> Any:
    """Products of ever more factors x: their derivatives are finite where x is zero."""
    column = x[:, None]
    factors = jnp.broadcast_to(column, (get_aval(x).shape[0], max(N - 1, 0)))
    out = jnp.cumprod(jnp.concatenate([jnp.ones_like(column), factors], 1)[:, :N], 1)
    return out if increasing else jnp.flip(out, 1)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Array:
    """The Vandermonde matrix: in its columns the powers of a vector, the highest first.

    Args:
      x: array of rank 1.
      N: the number of columns; by default that of the rows.
      increasing: whether the column of ones comes first.

    Raises:
      ValueError: x has another rank, or N is negative.

    >>> import pyjx as jax
    >>> jax.numpy.vander(jax.numpy.array([1, 2, 3])).tolist()
    [[1, 1, 1], [4, 2, 1], [9, 3, 1]]
    """
    (x,) = operands("vander", x)
    aval = get_aval(x)
    if aval.ndim != 1:
        raise ValueError("x must be a one-dimensional array")
    count = aval.shape[0] if N is None else operator.index(N)
    if count < 0:
        raise ValueError("N must be nonnegative")
    return _vander(x, count, bool(increasing))
