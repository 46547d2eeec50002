"""Numbers that tell about matrices: determinants, ranks, condition numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pyjx import lax
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import get_aval
from pyjx.lax import linalg
from pyjx.lax.linalg import determinants
from pyjx.numpy import ufuncs
from pyjx.numpy.dispatch import numpy_function
from pyjx.numpy.linalg.decompositions import check_square, matrices, svd
from pyjx.numpy.linalg.norms import norm_of_matrices
from pyjx.numpy.linalg.systems import default_rtol, inv
from pyjx.numpy.promotion import check_promotion, convert, operands
from pyjx.runtime.operations import body_of


class SlogdetResult(NamedTuple):
    """The sign of a determinant, and the logarithm of its absolute value."""

    sign: Array
    logabsdet: Array


@numpy_function
def det(a: ArrayLike) -> Array:
    """The determinants of matrices `[..., n, n]`.

    A matrix whose rank is one too low has its derivative.

    Returns:
      An array (...) of a float or complex dtype.

    Raises:
      ValueError: the matrices are not square.
      TypeError: the matrices have more than three rows, and the dtype is none of those that LAPACK
        has, such as float16.

    >>> import pyjx as jax
    >>> float(jax.numpy.linalg.det(jax.numpy.array([[1.0, 2.0], [3.0, 4.0]])))
    -2.0
    """
    a = matrices("det", a)
    check_square("det()", a)
    return determinants.det(a)


@numpy_function(static_argnames=("method",))
def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """The sign and the logarithm of the absolute value of determinants, which may overflow.

    Args:
      a: matrices `[..., n, n]`.
      method: `lu` or `qr`, the decomposition to use; by default `lu`.

    Returns:
      A named tuple (sign, logabsdet): det(a) = sign * exp(logabsdet). A singular matrix has the
      sign 0 and the logarithm -inf.

    Raises:
      ValueError: the matrices are not square, or there is no such method.
      TypeError: the matrices have more than two rows, or the method is `qr`, and the dtype is none
        of those that LAPACK has, such as float16.

    >>> import pyjx as jax
    >>> sign, logarithm = jax.numpy.linalg.slogdet(jax.numpy.array([[2.0, 0.0], [0.0, -0.5]]))
    >>> float(sign), float(logarithm)
    (-1.0, 0.0)
    """
    a = matrices("slogdet", a)
    check_square("slogdet()", a)
    method = "lu" if method is None else method
    if method not in ("lu", "qr"):
        raise ValueError(f"Unknown slogdet method '{method}'. Supported methods are 'lu' (`None`), "
                         "and 'qr'.")
    return SlogdetResult(*determinants.slogdet(a, method))


@numpy_function(static_argnames=("hermitian",))
def matrix_rank(M: ArrayLike, rtol: ArrayLike | None = None, *, hermitian: bool = False,
                tol: ArrayLike | None = None) -> Array:
    """The number of singular values that are not taken for zero.

    Args:
      M: matrices `[..., m, n]`; a vector or number has the rank 1, or 0 where all is zero.
      rtol: singular values up to this number are taken for zero. As in JAX it is compared with
        them itself, not, as in NumPy, times the largest. By default it is max(m, n) times the
        precision of the dtype times the largest.
      hermitian: whether `M` is Hermitian, so that eigenvalues tell the singular ones.
      tol: another name of `rtol`.

    Returns:
      Integers `[...]`.

    Raises:
      ValueError: `rtol` and `tol` are both given.
      TypeError: the dtype is none of those that LAPACK has, such as float16.

    >>> import pyjx as jax
    >>> int(jax.numpy.linalg.matrix_rank(jax.numpy.ones((2, 3))))
    1
    """
    if rtol is not None and tol is not None:
        raise ValueError("matrix_rank: only one of tol or rtol may be specified.")
    rtol = tol if rtol is None else rtol
    m = matrices("matrix_rank", M)
    aval = get_aval(m)
    integer = dtypes.default_int_dtype()
    if aval.ndim < 2:
        zero = lax.eq(m, lax.full_like(m, 0))
        return lax.convert_element_type(
            lax.bitwise_not(lax.reduce_and(zero, tuple(range(aval.ndim)))), np.dtype(np.int32))
    if rtol is None and not (aval.shape[-1] and aval.shape[-2]):
        return lax.full(aval.shape[:-2], 0, integer)
    s = body_of(svd)(m, full_matrices=False, compute_uv=False, hermitian=hermitian)
    size = get_aval(s)
    if rtol is None:
        largest = lax.reduce_max(s, (size.ndim - 1,))
        rtol = ufuncs.multiply(largest, default_rtol(aval.shape, aval.dtype))
    (cutoff,) = operands("matrix_rank", rtol)
    check_promotion(s, cutoff)
    cutoff = lax.expand_dims(cutoff, (get_aval(cutoff).ndim,))
    above = ufuncs.greater(s, convert(cutoff, size.dtype))
    return lax.reduce_sum(lax.convert_element_type(above, integer), (get_aval(above).ndim - 1,))


@numpy_function(static_argnames=("p",))
def cond(x: ArrayLike, p: ArrayLike | None = None) -> Array:
    """The condition number: the norm of a matrix times that of its inverse.

    Args:
      x: matrices `[..., m, n]`.
      p: the norm, as for `norm`. None and 2 are the largest singular value by the smallest, -2 the
        smallest by the largest; the others are for square matrices.

    Returns:
      Real numbers `[...]`: infinity for a singular matrix, where NaN is in none of its elements.

    Raises:
      ValueError: there are no matrices, or they have no elements, or there is no such norm.

    >>> import pyjx as jax
    >>> float(jax.numpy.linalg.cond(jax.numpy.array([[4.0, 0.0], [0.0, 2.0]])))
    2.0
    """
    x = matrices("cond", x)
    aval = get_aval(x)
    if aval.ndim < 2:
        raise ValueError("jnp.linalg.cond: input array must be at least 2D; got arr.shape="
                         f"{aval.shape}")
    if not aval.shape[-1] or not aval.shape[-2]:
        raise ValueError("jnp.linalg.cond: input array must not be empty; got arr.shape="
                         f"{aval.shape}")
    if p is None or p in (2, -2):
        s = linalg.svd(x, full_matrices=False, compute_uv=False)
        axis = get_aval(s).ndim - 1
        first, last = (lax.index_in_dim(s, i, axis, keepdims=False) for i in (0, -1))
        ratio = lax.div(last, first) if p == -2 else lax.div(first, last)
    else:
        if aval.shape[-1] != aval.shape[-2]:
            raise ValueError(f"jnp.linalg.cond: for {p=}, array must be square; got arr.shape="
                             f"{aval.shape}")
        ratio = lax.mul(norm_of_matrices(x, p), norm_of_matrices(body_of(inv)(x), p))
    has_nan = lax.reduce_or(ufuncs.isnan(x), (aval.ndim - 2, aval.ndim - 1))
    lost = lax.bitwise_and(ufuncs.isnan(ratio), lax.bitwise_not(has_nan))
    return lax.select(lost, lax.full_like(ratio, np.inf), ratio)
