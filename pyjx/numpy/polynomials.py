"""Polynomials in one variable: arrays of coefficients, that of the highest power first. The one
nearest to points and the roots of one are found by linear algebra."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import get_aval
from pyjx.core.bounded import kept
from pyjx.core.integers import as_int, max_dim
from pyjx.core.trace import concrete_or_error
from pyjx.numpy.operands import dtype_of
from pyjx.numpy.promotion import (
    any_ranks,
    check_arraylike,
    convert,
    operands,
    promote_dtypes,
    promote_dtypes_inexact,
    strong,
)
from pyjx.numpy.ufuncs import as_default_float
from pyjx.runtime.operations import body_of, op_jit
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
            raise ValueError(f"{name}: coefficients of shape {get_aval(a).shape} do not broadcast "
                             f"to the last {rows} of those of shape {tuple(longer)}.") from None
        return jnp.pad(a, [(count - rows, 0), *[(0, 0)] * len(rest)]) if rows < count else a

    return padded(a1), padded(a2)


@op_jit
@any_ranks
def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The sum of two polynomials.

    Returns:
      The coefficients, as many as the longer argument has.

    >>> import pyjx as jax
    >>> jax.numpy.polyadd(jax.numpy.array([1, 2]), jax.numpy.array([1, 0, 0])).tolist()
    [1, 1, 2]
    """
    return lax.add(*_aligned("polyadd", a1, a2))


@op_jit
@any_ranks
def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The difference of two polynomials.

    Returns:
      The coefficients, as many as the longer argument has.

    >>> import pyjx as jax
    >>> jax.numpy.polysub(jax.numpy.array([1, 0, 0]), jax.numpy.array([1, 2])).tolist()
    [1, -1, -2]
    """
    return jnp.subtract(*_aligned("polysub", a1, a2))


def _without_leading_zeros(name: str, p: Array, kept: int) -> Any:
    """The coefficients from the first that is not zero on; at least `kept` of them."""
    known = concrete_or_error(
        np.asarray, p, f"The error occurred in jnp.{name}() with trim_leading_zeros=True, which "
        "needs values that are known: leave it out under jit.", "")
    places = np.flatnonzero(known)
    first = places[0] if len(places) else len(known)
    return p[min(first, max(len(known) - kept, 0)):]


def polymul(a1: Any, a2: Any, *, trim_leading_zeros: bool = False) -> Array:
    """The product of two polynomials. Integers become floats.

    Args:
      a1, a2: arrays of rank 1.
      trim_leading_zeros: whether zeros in front are left out first; the values must be known.

    Returns:
      The coefficients: as many as both arguments have together, less one.

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

    Returns:
      A pair of arrays: the quotient and the remainder.

    >>> import pyjx as jax
    >>> q, r = jax.numpy.polydiv(jax.numpy.array([1.0, 2.0, 3.0]), jax.numpy.array([1.0, 1.0]))
    >>> q.tolist(), r.tolist()
    ([1.0, 1.0], [0.0, 0.0, 2.0])
    """
    parts = _coefficients("polydiv", u, v)
    if get_aval(parts[1]).ndim != 1:
        raise TypeError("polydiv: v must be an array of rank 1, got shape "
                        f"{get_aval(parts[1]).shape}.")
    quotient, remainder = _divided(*parts)
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

    def step(rest: Array, k: ArrayLike) -> tuple[Any, Any]:
        part = lax.dynamic_slice_in_dim(rest, k, n)
        factor = part[0] / v[0]
        return lax.dynamic_update_slice_in_dim(rest, part - factor * v, k, 0), factor

    rest, quotient = lax.scan(step, u, jnp.arange(steps))
    return quotient, convert(rest, dtype_of(rest), weak)


# -- calculus --------------------------------------------------------------------------------------


def _falling(top: int, count: int, m: int) -> Any:
    """k (k - 1) ... (k - m + 1) for the powers k from `top` down, `count` of them."""
    if type(count) is int and top ** m > np.iinfo(np.int32).max:
        powers: Any = top - np.arange(count) * 1.0
    else:  # XLA counts powers as it goes, where it would read others from memory
        powers = top - jnp.arange(count)
    return math.prod([powers - i for i in range(m)])


@op_jit(static_argnames=("m",))
def polyder(p: Any, m: int = 1) -> Array:
    """The derivative of order m of a polynomial. Integers become floats.

    Args:
      p: the coefficients, of the highest power first.
      m: how many times it is differentiated, a Python int.

    Returns:
      The coefficients, `m` fewer than those of the argument.

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
    left = max_dim(count - m, 0)
    try:
        return p[:left] * _falling(count - 1, left, m).astype(dtype_of(p))
    except ValueError:
        raise ValueError("polyder: p must be one polynomial's coefficients, an array of rank 1, "
                         f"got shape {get_aval(p).shape}. For several, use jax.vmap.") from None


@op_jit(static_argnames=("m",))
def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | None = None) -> Array:
    """The integral of order m of a polynomial. Integers become floats.

    Args:
      p: array of rank 1.
      m: how often it is integrated.
      k: the constants of integration, one for each; zeros by default.

    Returns:
      The coefficients, `m` more than those of the argument.

    Raises:
      TypeError: p is of another rank.
      ValueError: m is negative, or there is another number of constants.

    >>> import pyjx as jax
    >>> jax.numpy.polyint(jax.numpy.array([2, 2]), k=3).tolist()
    [1.0, 2.0, 3.0]
    """
    m = operator.index(m)
    p, k = promote_dtypes_inexact(*operands("polyint", p, 0 if k is None else k))
    (p,) = _coefficients("polyint", p)
    if get_aval(p).ndim != 1:
        raise TypeError(f"polyint: p must be an array of rank 1, got shape {get_aval(p).shape}.")
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    k = jnp.atleast_1d(k)
    if get_aval(k).ndim != 1 or (get_aval(k).shape[0] not in (1, m) and m > 0):
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or m.")
    if m == 0:
        return jnp.asarray(p)
    count = get_aval(p).shape[0]
    # The constant i is integrated m - 1 - i times more.
    rest = np.array([math.factorial(m - 1 - i) for i in range(m)], np.float64)
    return jnp.concatenate([y / powers.astype(dtype_of(p)) for y, powers in (
        (p, _falling(count + m - 1, count, m)), (jnp.broadcast_to(k, (m,)), rest))])


# -- values and roots ------------------------------------------------------------------------------


@op_jit(static_argnames=("unroll",))
@any_ranks
def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int | None = None) -> Array:
    """The values of a polynomial, by Horner's rule: (... (p_0 x + p_1) x + ...) + p_n.

    Args:
      p: array of coefficients; those along further axes are for several polynomials.
      x: array of points, which broadcasts against each coefficient.
      unroll: how many steps of the loop stand in line; by default 16.

    Returns:
      An array of the shape of `x`.

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
    steps = 16 if type(get_aval(p).shape[0]) is int else 1  # of symbolic length: not unrolled
    return _horner(steps if unroll is None else unroll)(p, x)


@kept(16)
def _horner(unroll: int) -> Any:
    """The loop of `polyval`, whose derivatives are polynomials too: no step's value is kept."""
    @custom_jvp
    def values(p: Array, x: ArrayLike) -> Any:
        start = lax.full_like(x, 0, dtype_of(p))
        if type(n := get_aval(p).shape[0]) is int and n:  # no 0 x, which may be nan
            start, p = start + p[0], p[1:]
        return lax.scan(lambda y, c: (y * x + c, None), start, p, unroll=unroll)[0]

    def slope(g: Array, out: Array, p: Array, x: ArrayLike) -> Any:
        n, *rest = get_aval(p).shape
        degrees = lax.broadcasted_iota(dtype_of(p), (max_dim(n - 1, 0), *rest), 0)
        return g * values(p[:-1] * jnp.flip(degrees + 1, 0), x)

    values.defjvps(lambda g, out, p, x: values(g, x), slope)
    return values


def poly(seq_of_zeros: ArrayLike) -> Array:
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

    def step(p: Array, each: tuple[Array, Array]) -> tuple[Any, None]:
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


def vander(x: Array, N: int | None = None, increasing: bool = False) -> Array:
    """The Vandermonde matrix: in its columns the powers of a vector, the highest first.

    Args:
      x: array of rank 1.
      N: the number of columns; by default that of the rows.
      increasing: whether the column of ones comes first.

    Returns:
      An array (n, N), whose columns are the powers.

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


def polyfit(x: ArrayLike, y: ArrayLike, deg: int, rcond: float | None = None, full: bool = False,
            w: ArrayLike | None = None, cov: bool | str = False) -> Any:
    """The polynomial of a degree whose squared distances from points are least.

    With V the Vandermonde matrix of x, of columns of length 1, it is the least-squares solution c
    of V c = y, and the covariance of its coefficients a multiple of the inverse of V^T V.

    Args:
      x: array of rank 1.
      y: array of the values at these points; of rank 2 for several polynomials, in columns.
      deg: the degree.
      rcond: singular values less than `rcond` of the greatest count as zero; by default the number
        of points times the precision of the dtype.
      full: whether to return what the solution says too.
      w: array of weights of the distances, of rank 1.
      cov: whether to return the covariance matrix too; "unscaled" for that of distances of
        variance 1, where otherwise it is estimated.

    Returns:
      The coefficients, the highest power first. With `full` a tuple of these, the sums of squared
      distances, the rank, the singular values and `rcond`; with `cov` a pair.

    Raises:
      TypeError, ValueError: a shape or the degree is none of these, or there are too few points to
        estimate the covariance.

    >>> import pyjx as jax
    >>> x = jax.numpy.arange(3.0)
    >>> jax.numpy.polyfit(x, 2 * x + 1, 1).round(3).tolist()
    [2.0, 1.0]
    """
    arrays = operands("polyfit", x, y, *(() if w is None else (w,)))
    # The weak type of the points is of no account; whole ones are of the default dtype.
    both_whole = not any(dtypes.issubdtype(dtype_of(a), np.inexact) for a in arrays[:2])
    values = as_default_float(arrays[1]) if both_whole else arrays[1]
    points = promote_dtypes_inexact(as_default_float(strong(arrays[0])), values)
    arrays = points if w is None else [*points, *promote_dtypes_inexact(arrays[2])]
    deg = as_int("polyfit", "deg", deg)
    shapes = [get_aval(a).shape for a in arrays]
    if deg < 0:
        raise ValueError("expected deg >= 0")
    if len(shapes[0]) != 1:
        raise TypeError("expected 1D vector for x")
    if shapes[0][0] == 0:
        raise TypeError("expected non-empty vector for x")
    if len(shapes[1]) not in (1, 2):
        raise TypeError("expected 1D or 2D array for y")
    if shapes[0][0] != shapes[1][0]:
        raise TypeError("polyfit: expected x and y to have same length, got shapes "
                        f"{shapes[0]} and {shapes[1]}")
    if w is not None and len(shapes[2]) != 1:
        raise TypeError("expected a 1-d array for weights")
    if w is not None and shapes[2][0] != shapes[1][0]:
        raise TypeError("polyfit: expected w and y to have the same length, got shapes "
                        f"{shapes[2]} and {shapes[1]}")
    scaled = bool(cov) and cov != "unscaled"
    if scaled and not full and shapes[0][0] <= deg + 1:
        raise ValueError("the number of data points must exceed order to scale the covariance "
                         "matrix")
    if rcond is None:
        rcond = shapes[0][0] * float(dtypes.finfo(dtype_of(arrays[0])).eps)
    if isinstance(rcond, int | np.integer):
        rcond = float(rcond)
    solution, residuals, rank, singular, covariance = _fit(
        deg, bool(cov) and not full, scaled, rcond, *arrays)
    if full:
        return solution, residuals, rank, singular, jnp.asarray(rcond)
    return (solution, covariance) if cov else solution


@op_jit(static_argnames=("deg", "cov", "scaled"))
def _fit(deg: int, cov: bool, scaled: bool, rcond: Any, x: Array, y: Array,
         w: Array | None = None) -> Any:
    matrix, values = jnp.vander(x, deg + 1), y
    if w is not None:
        matrix = matrix * w[:, None]
        values = values * (w if get_aval(y).ndim == 1 else w[:, None])
    scale = jnp.sqrt(jnp.sum(jnp.abs(matrix) ** 2, 0)).astype(matrix.dtype)
    matrix = matrix / scale[None]
    solution, residuals, rank, singular = jnp.linalg.lstsq(matrix, values, rcond)
    several = get_aval(y).ndim == 2
    solution = solution / (scale[:, None] if several else scale)
    covariance = None
    if cov:
        covariance = jnp.linalg.inv(jnp.dot(matrix.T, matrix)) / jnp.outer(scale, scale)
        covariance = covariance[:, :, None] if several else covariance
        if scaled:
            factor = residuals / (get_aval(x).shape[0] - deg - 1)
            covariance = covariance * (factor[None, None] if several else factor[0])
    return solution, residuals, rank, singular, covariance


def roots(p: Any, *, strip_zeros: bool = True) -> Array:
    """The roots of a polynomial: the eigenvalues of its companion matrix.

    Args:
      p: array of rank 1 of the coefficients, that of the highest power first.
      strip_zeros: whether zeros in front are left out, which needs values that are known while
        tracing. Otherwise there are as many results as there could be roots, and those that are
        missing are nan.

    Returns:
      A complex array.

    Raises:
      ValueError: p has another rank.

    >>> import pyjx as jax
    >>> jax.numpy.roots(jax.numpy.array([1.0, -3.0])).tolist()
    [(3+0j)]
    """
    (p,) = promote_dtypes_inexact(*operands("roots", p))
    p = jnp.atleast_1d(p)
    if get_aval(p).ndim != 1:
        raise ValueError("Input must be a rank-1 array.")
    if get_aval(p).shape[0] < 2:
        return jnp.zeros(0, dtypes.to_complex_dtype(dtype_of(p)))
    if not strip_zeros:
        return _every_root(p)
    known = concrete_or_error(
        np.asarray, p, "The error occurred in the jnp.roots() function. To use this within a "
        "JIT-compiled context, pass strip_zeros=False, but be aware that leading zeros will result "
        "in some returned roots being set to NaN.", "")
    places = np.flatnonzero(known)
    if not len(places) or places[0] == len(known) - 1:
        return jnp.zeros(0, dtypes.to_complex_dtype(dtype_of(p)))
    return _companion_eigenvalues(p[int(places[0]):])


@op_jit
def _companion_eigenvalues(p: Array) -> Any:
    n = get_aval(p).shape[0] - 1
    below = jnp.eye(n, k=-1, dtype=dtype_of(p))
    return jnp.linalg.eigvals(below.at[0].set(-p[1:] / p[0]))


@op_jit
def _every_root(p: ArrayLike) -> Any:
    """The roots of the polynomial with its leading zeros at the end, where they add roots at zero:
    so many are made nan."""
    size = get_aval(p).shape[0]
    leading = jnp.argmax(jnp.append(p != 0, True))
    p = jnp.where(leading == size, 1, p)
    found = body_of(_companion_eigenvalues)(jnp.roll(p, -leading))
    found = found[jnp.argsort(found == 0, stable=True)]
    kept = lax.iota(np.int32, size - 1) < size - 1 - leading
    return jnp.where(kept, found, np.asarray(complex(np.nan, np.nan), dtype_of(found)))
