"""Polynomials found by linear algebra: the one nearest to points, and the roots of one."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import get_aval
from pyjx.core.trace import concrete_or_error
from pyjx.numpy.operands import dtype_of
from pyjx.numpy.promotion import operands, promote_dtypes_inexact, strong
from pyjx.numpy.ufuncs import as_default_float
from pyjx.runtime.operations import op_jit


def polyfit(x: ArrayLike, y: ArrayLike, deg: int, rcond: Any = None, full: bool = False,
            w: ArrayLike | None = None, cov: Any = False) -> Any:
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
    deg = operator.index(deg)
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
        rcond = float(shapes[0][0] * dtypes.finfo(dtype_of(arrays[0])).eps)
    if isinstance(rcond, int | np.integer):
        rcond = float(rcond)
    solution, residuals, rank, singular, covariance = _fit(
        deg, bool(cov) and not full, scaled, rcond, *arrays)
    if full:
        return solution, residuals, rank, singular, jnp.asarray(rcond)
    return (solution, covariance) if cov else solution


@op_jit(static_argnames=("deg", "cov", "scaled"))
def _fit(deg: int, cov: bool, scaled: bool, rcond: Any, x: ArrayLike, y: Array,
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
        "in some returned roots being set to NaN.")
    places = np.flatnonzero(known)
    if not len(places):
        return jnp.zeros(0, dtypes.to_complex_dtype(dtype_of(p)))
    if places[0] == len(known) - 1:
        return jnp.zeros(0, dtypes.to_complex_dtype(dtype_of(p)))
    return _roots(p[int(places[0]):])


@op_jit
def _roots(p: Array) -> Any:
    return _companion_eigenvalues(p)


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
    found = _companion_eigenvalues(jnp.roll(p, -leading))
    found = found[jnp.argsort(found == 0, stable=True)]
    kept = lax.iota(np.int32, size - 1) < size - 1 - leading
    return jnp.where(kept, found, np.asarray(complex(np.nan, np.nan), dtype_of(found)))
