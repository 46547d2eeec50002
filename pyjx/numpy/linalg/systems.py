"""Systems of linear equations, inverses and pseudo-inverses."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, DTypeLike
from pyjx.core.avals import entries, get_aval
from pyjx.core.integers import as_int
from pyjx.lax import linalg
from pyjx.lax.common import broadcast_shapes
from pyjx.lax.elementwise import real_dtype, stretch
from pyjx.lax.linalg.general_systems import solve as solve_matrices
from pyjx.lax.linalg.matrices import (
    adjoint,
    identity_like,
    product,
    spread_columns,
    spread_rows,
    symmetrized,
    transposed,
)
from pyjx.numpy import creation, ufuncs
from pyjx.numpy.linalg.decompositions import check_square, matrices, svd
from pyjx.numpy.manipulation import broadcast_to, moved
from pyjx.numpy.operands import numpy_function
from pyjx.numpy.promotion import convert, narrowed, operands, promote_dtypes_inexact, strong
from pyjx.numpy.statistics import squared
from pyjx.runtime.operations import body_of
from pyjx.transforms.custom_jvp import custom_jvp

_svd = body_of(svd)


def solved(a: ArrayLike, b: ArrayLike) -> Any:
    """The x with a x = b, for square matrices and matrices whose batch axes broadcast."""
    (*batch, n, _), (*sides, _, k) = get_aval(a).shape, get_aval(b).shape
    if not batch and sides:  # all right-hand sides are columns for one matrix
        b = moved(b, -2, 0)
        shape = get_aval(b).shape
        x = solve_matrices(a, lax.reshape(b, (n, math.prod(shape[1:]))))
        return moved(lax.reshape(x, shape), 0, -2)
    lead = broadcast_shapes(tuple(batch), tuple(sides))
    return solve_matrices(stretch(a, (*lead, n, n)), stretch(b, (*lead, n, k)))


@numpy_function
def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """The x with a x = b, by LU decomposition.

    Unlike NumPy's, a singular matrix gives infinities or NaN and no error.

    Args:
      a: matrices `[..., n, n]`.
      b: one vector `[n]`, or matrices `[..., n, k]`; the batch axes broadcast.

    Returns:
      x, `[..., n]` or `[..., n, k]`.

    Raises:
      ValueError: `a` is not square, or the shapes do not fit.
      TypeError: the dtype is none of those that LAPACK has, such as float16.

    >>> import pyjx as jax
    >>> a = jax.numpy.array([[2.0, 0.0], [0.0, 4.0]])
    >>> jax.numpy.linalg.solve(a, jax.numpy.array([2.0, 2.0])).tolist()
    [1.0, 0.5]
    """
    a, b = promote_dtypes_inexact(*operands("jnp.linalg.solve", a, b))
    x, y = get_aval(a), get_aval(b)
    if x.ndim < 2:
        raise ValueError(f"left hand array must be at least two dimensional; got a.shape={x.shape}")
    check_square("solve", a)
    if not y.ndim:
        raise ValueError("solve: b must be at least one dimensional; got b.shape=()")
    if y.ndim > 1 and y.shape == x.shape[:-1] and y.shape[-2] != x.shape[-1]:
        raise ValueError(f"Invalid shapes for solve: {x.shape}, {y.shape}. A batch of vectors is "
                         "taken as a matrix: use solve(a, b[..., None]).squeeze(-1).")
    if y.shape[-2:][0] != x.shape[-1]:  # the only axis of a vector, the rows of matrices
        raise ValueError("solve: inconsistent size for core dimension: the number of rows of b "
                         f"must be that of a, got shapes {x.shape} and {y.shape}")
    if y.ndim == 1:
        return lax.squeeze(solved(a, lax.expand_dims(b, (1,))), (x.ndim - 1,))
    return solved(a, b)


@numpy_function
def inv(a: ArrayLike) -> Array:
    """The inverse of matrices `[..., n, n]`.

    Unlike NumPy's, a singular matrix gives infinities or NaN and no error.

    Returns:
      An array (..., n, n) of a float or complex dtype. A singular matrix gives infinities or nan,
      and no error.

    Raises:
      ValueError: the matrices are not square.
      TypeError: the dtype is none of those that LAPACK has, such as float16.

    >>> import pyjx as jax
    >>> jax.numpy.linalg.inv(jax.numpy.array([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]

    To solve equations, `solve` is faster and more exact.

    >>> a, b = jax.numpy.array([[2.0, 0.0], [0.0, 4.0]]), jax.numpy.ones(2)
    >>> jax.numpy.linalg.solve(a, b).tolist()
    [0.5, 0.25]
    """
    a = strong(matrices("inv", a))
    check_square("inv", a)
    return solve_matrices(a, identity_like(a))


# -- least squares ---------------------------------------------------------------------------------


def default_rtol(shape: tuple[int, ...], dtype: DTypeLike, factor: float = 1.0) -> float:
    """How small a singular value must be beside the largest to be taken for zero."""
    return factor * max(shape[-2:]) * float(dtypes.finfo(real_dtype(dtype)).eps)


@partial(custom_jvp, nondiff_argnums=(2,))
def _pinv(a: ArrayLike, rtol: ArrayLike, hermitian: bool) -> Any:
    u, s, vh = _svd(a, full_matrices=False, hermitian=hermitian)
    if not get_aval(s).shape[-1]:
        return transposed(a)
    largest = lax.reduce_max(s, (get_aval(s).ndim - 1,))
    cutoff = ufuncs.multiply(rtol, largest)
    cutoff = lax.expand_dims(cutoff, (get_aval(cutoff).ndim,))
    kept = lax.gt(s, stretch(convert(cutoff, get_aval(s).dtype), get_aval(s).shape))
    one, zero = lax.full_like(s, 1), lax.full_like(s, 0)
    inverse = lax.select(kept, lax.div(one, lax.select(kept, s, one)), zero)
    v = adjoint(vh)
    inverse = lax.convert_element_type(spread_rows(inverse, get_aval(v).shape), get_aval(v).dtype)
    return product(lax.mul(v, inverse), adjoint(u))


@_pinv.defjvp
def _pinv_jvp(hermitian: bool, primals: tuple[ArrayLike, ArrayLike],
              tangents: tuple[ArrayLike, ArrayLike]) -> Any:
    # dP = -P dA P + P P^H dA^H (I - A P) + (I - P A) dA^H P^H P, as long as the rank stays
    # (Golub and Pereyra, The differentiation of pseudo-inverses, 1973, eq. 4.12).
    (a, rtol), (da, _) = primals, tangents
    p = _pinv(a, rtol, hermitian)
    if hermitian:  # what the decomposition reads is the Hermitian part
        a, da = symmetrized(a), symmetrized(da)
    ph, dah = adjoint(p), adjoint(da)
    right, left = product(product(p, ph), dah), product(dah, product(ph, p))
    dp = lax.neg(product(product(p, da), p))
    dp = lax.add(dp, lax.sub(right, product(product(right, a), p)))
    return p, lax.add(dp, lax.sub(left, product(p, product(a, left))))


@numpy_function(static_argnames=("hermitian",))
def pinv(a: ArrayLike, rtol: Any = None, hermitian: bool = False, *,
         rcond: ArrayLike | None = None) -> Array:
    """The pseudo-inverse of Moore and Penrose.

    Args:
      a: matrices `[..., m, n]`.
      rtol: singular values up to `rtol` times the largest are taken for zero; an array for each
        matrix, or a number. By default 10 times max(m, n) times the precision of the dtype, where
        NumPy takes 1e-15.
      hermitian: whether `a` is Hermitian, so that eigenvalues tell the singular ones.
      rcond: another name of `rtol`.

    Returns:
      Matrices `[..., n, m]`.

    Raises:
      ValueError: `rtol` and `rcond` are both given.
      TypeError: the dtype is none of those that LAPACK has, such as float16.

    >>> import pyjx as jax
    >>> jax.numpy.linalg.pinv(jax.numpy.array([[2.0, 0.0], [0.0, 0.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    a = matrices("pinv", a)
    aval = get_aval(a)
    if aval.ndim < 2:
        raise ValueError(f"pinv: expected matrices [..., m, n], got shape {aval.shape}")
    if rtol is not None and rcond is not None:
        raise ValueError("pinv: only one of rtol and rcond may be specified.")
    rtol = rcond if rtol is None else rtol
    if rtol is None:
        rtol = default_rtol(aval.shape, aval.dtype, 10.0)
    rtol = creation.of_list(rtol)
    batch = broadcast_shapes(aval.shape[:-2], np.shape(rtol))
    if batch != aval.shape[:-2]:
        a = broadcast_to(a, (*batch, *aval.shape[-2:]))
    return _pinv(a, rtol, hermitian)


@numpy_function
def _least_squares(a: ArrayLike, b: ArrayLike, rcond: ArrayLike | None
                   ) -> tuple[Any, Any, Any, Any]:
    shape = get_aval(a).shape
    u, s, vh = linalg.svd(a, full_matrices=False)
    if 0 in shape:
        kept = lax.eq(s, s)
    else:
        default = default_rtol(shape, get_aval(a).dtype)
        rtol: Any = default
        if rcond is not None:
            rtol = ufuncs.where(ufuncs.less(rcond, 0), default, rcond)
        cutoff = ufuncs.multiply(rtol, lax.reduce_max(s, (0,)))
        kept = lax.ge(s, stretch(convert(cutoff, get_aval(s).dtype), get_aval(s).shape))
        kept = lax.bitwise_and(kept, lax.gt(s, lax.full_like(s, 0)))
    rank = lax.reduce_sum(lax.convert_element_type(kept, dtypes.default_int_dtype()), (0,))
    one, zero = lax.full_like(s, 1), lax.full_like(s, 0)
    inverse = lax.select(kept, lax.div(one, lax.select(kept, s, one)), zero)
    turned = product(adjoint(u), b)
    scale = lax.convert_element_type(spread_columns(inverse, get_aval(turned).shape),
                                     get_aval(a).dtype)
    x = product(adjoint(vh), lax.mul(turned, scale))
    residuals = lax.reduce_sum(squared(lax.sub(b, product(a, x))), (0,))
    return x, residuals, rank, s


def lstsq(a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, numpy_resid: bool = False
          ) -> tuple[Array, Array, Array, Array]:
    """The x of least length for which |a x - b| is least, by singular values.

    Args:
      a: a matrix `[m, n]`.
      b: `[m]` or `[m, k]`.
      rcond: singular values below `rcond` times the largest are taken for zero; by default, and
        for a negative number, max(m, n) times the precision of the dtype.
      numpy_resid: whether to return no residuals where NumPy returns none: for a matrix whose rank
        is below n, or with m <= n. This needs the values, so it does not work under `jit`.

    Returns:
      (x, residuals, rank, singular values): `[n]` or `[n, k]`, the sums of squares of a x - b, an
      integer, and `[min(m, n)]`.

    Raises:
      TypeError: `a` is no matrix, or the dtype is none of those that LAPACK has.
      ValueError: the numbers of rows differ.

    >>> import pyjx as jax
    >>> a, b = jax.numpy.array([[1.0], [1.0]]), jax.numpy.array([1.0, 3.0])
    >>> x, residuals, rank, s = jax.numpy.linalg.lstsq(a, b)
    >>> jax.numpy.round(x, 3).tolist(), int(rank)
    ([2.0], 1)
    """
    a, b = map(narrowed, promote_dtypes_inexact(*operands("jnp.linalg.lstsq", a, b)))
    x, y = get_aval(a), get_aval(b)
    if x.ndim != 2:
        raise TypeError(f"{x.ndim}-dimensional array given. Array must be two-dimensional")
    if y.ndim not in (1, 2):
        raise TypeError(f"lstsq: {y.ndim}-dimensional array given. Array must be one or "
                        f"two-dimensional, got b of shape {y.shape}")
    if x.shape[0] != y.shape[0]:
        raise ValueError("Leading dimensions of input arrays must match, got shapes "
                         f"{x.shape} and {y.shape}")
    sides = b if y.ndim == 2 else lax.expand_dims(b, (1,))
    found, residuals, rank, s = _least_squares(a, sides, rcond)
    if numpy_resid and (x.shape[0] <= x.shape[1] or int(rank) < x.shape[1]):
        residuals = lax.full((0,), 0, get_aval(s).dtype)
    return (found if y.ndim == 2 else lax.squeeze(found, (1,))), residuals, rank, s


# -- tensors ---------------------------------------------------------------------------------------


@numpy_function(static_argnames=("ind",))
def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """The inverse of the linear map from the last axes to the first ones.

    Args:
      a: an array, the product of whose first `ind` sizes is that of the others.
      ind: how many axes are the first ones.

    Returns:
      An array of shape `a.shape[ind:] + a.shape[:ind]`.

    Raises:
      ValueError: `ind` is not positive, or the products of sizes differ.

    >>> import pyjx as jax
    >>> jax.numpy.linalg.tensorinv(jax.numpy.eye(6).reshape(2, 3, 6)).shape
    (6, 2, 3)
    """
    (a,) = operands("tensorinv", a)
    shape, ind = get_aval(a).shape, as_int("tensorinv", "ind", ind)
    if ind <= 0:
        raise ValueError(f"ind must be a positive integer; got ind={ind}")
    n = math.prod(shape[:ind])
    if n != math.prod(shape[ind:]):
        raise ValueError("tensorinv is only possible when the product of the first `ind` "
                         "dimensions equals that of the remaining dimensions. got arr.shape="
                         f"{shape} with ind={ind}.")
    found = body_of(inv)(lax.reshape(a, (n, n)))
    return lax.reshape(found, (*shape[ind:], *shape[:ind]))


@numpy_function(static_argnames=("axes",))
def tensorsolve(a: ArrayLike, b: ArrayLike, axes: tuple[int, ...] | None = None) -> Array:
    """The x with `tensordot(a, x, x.ndim) == b`.

    Args:
      a: an array whose first axes are those of `b`.
      b: an array.
      axes: axes of `a` to move to its end before.

    Returns:
      x, of the shape of the last axes of `a`.

    Raises:
      ValueError: the shapes do not fit.

    >>> import pyjx as jax
    >>> a = jax.numpy.eye(6).reshape(2, 3, 6)
    >>> jax.numpy.linalg.tensorsolve(a, jax.numpy.ones((2, 3))).shape
    (6,)
    """
    a, b = promote_dtypes_inexact(*operands("tensorsolve", a, b))
    if axes is not None:
        a = moved(a, tuple(entries(axes)), tuple(range(-len(axes), 0)))
    shape, given = get_aval(a).shape, get_aval(b).shape
    if shape[:len(given)] != given:
        raise ValueError("After moving axes to end, leading shape of a must match shape of b. got "
                         f"a.shape={shape}, b.shape={given}")
    rest = shape[len(given):]
    n = math.prod(given)
    if math.prod(rest) != n:
        raise ValueError("Input arrays must have prod(a.shape[:b.ndim]) == prod(a.shape[b.ndim:]); "
                         f"got a.shape={shape}, b.ndim={len(given)}.")
    x = solve_matrices(lax.reshape(a, (n, n)), lax.reshape(b, (n, 1)))
    return lax.reshape(x, rest)
