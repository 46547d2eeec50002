"""Numbers that tell about vectors and matrices: norms, determinants, ranks, condition numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pyjx import lax
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, AxisLike
from pyjx.core.avals import get_aval
from pyjx.lax import linalg
from pyjx.lax.linalg import determinants
from pyjx.numpy import reductions, ufuncs
from pyjx.numpy.linalg.decompositions import check_square, matrices, svd
from pyjx.numpy.linalg.systems import default_rtol, inv
from pyjx.numpy.manipulation import moved
from pyjx.numpy.operands import canonical_axes, numpy_function
from pyjx.numpy.powers import power
from pyjx.numpy.promotion import (
    check_promotion,
    convert,
    literal,
    operands,
    promote_dtypes_inexact,
    strong,
)
from pyjx.numpy.statistics import squared
from pyjx.runtime.operations import body_of, op_jit

# -- norms -----------------------------------------------------------------------------------------

Axes = tuple[int, ...]
_sum = body_of(reductions.sum)
_max = body_of(reductions.max)
_min = body_of(reductions.min)


def _of_vectors(x: ArrayLike, order: float | str | None, axes: Axes, keepdims: bool) -> Any:
    """The norm along one axis, or along several as if they were one."""
    if order is None or order == 2:
        return lax.sqrt(_sum(squared(x), axes, keepdims=keepdims))
    if isinstance(order, str):
        hint = (f"Use '{order.replace('inf', 'jax.numpy.inf')}' instead." if order in
                ("inf", "-inf") else " It is a number or infinity, such as jax.numpy.inf.")
        raise ValueError(f"Invalid order '{order}' for vector norm.{hint}")
    sizes = ufuncs.absolute(x)
    dtype = get_aval(sizes).dtype
    if order == np.inf:
        return _max(sizes, axes, keepdims=keepdims, initial=0)
    if order == -np.inf:
        return _min(sizes, axes, keepdims=keepdims)
    if order == 0:
        different = lax.ne(x, lax.full_like(x, 0))
        return _sum(different, axes, dtype=dtype, keepdims=keepdims)
    if order == 1:
        return _sum(sizes, axes, keepdims=keepdims)
    exponent = literal(order, dtype) if isinstance(order, (int, float)) else order
    total = _sum(power(sizes, exponent), axes, keepdims=keepdims)
    return power(total, ufuncs.divide(literal(1.0, dtype), exponent))


def norm_of_matrices(x: ArrayLike, order: Any) -> Any:
    """The norm along the last two axes."""
    rows, columns = -2, -1
    if order is None or order in ("f", "fro"):
        return lax.sqrt(_sum(squared(x), (rows, columns)))
    if order in (1, -1, np.inf, -np.inf):
        sums = _sum(lax.abs(x), rows if order in (1, -1) else columns)
        return _max(sums, -1, initial=0) if order > 0 else _min(sums, -1)
    if order in (2, -2, "nuc"):
        s = linalg.svd(x, full_matrices=False, compute_uv=False)
        if order == "nuc":
            return _sum(s, -1)
        return _max(s, -1, initial=0) if order == 2 else _min(s, -1)
    raise ValueError(f"Invalid order '{order}' for matrix norm. The orders are 'fro', 'nuc', 1, "
                     "-1, 2, -2, jax.numpy.inf and -jax.numpy.inf.")


def _of_matrices(x: ArrayLike, order: float | str | None, axes: Axes, keepdims: bool) -> Any:
    if len(set(axes)) != 2:
        raise ValueError(f"Improper number of axes for norm: {axes=}")
    out = norm_of_matrices(moved(x, axes, (-2, -1)), order)
    return reductions.restore_axes(out, tuple(sorted(axes)), get_aval(x).ndim) if keepdims else out


def _inexact(x: ArrayLike) -> Any:
    """The operand with an inexact dtype, and no weak type: norms have none."""
    (x,) = promote_dtypes_inexact(x)
    return strong(x)


@op_jit(static_argnames=("ord", "axis", "keepdims"))
def norm(x: ArrayLike, ord: float | str | None = None, axis: AxisLike = None, keepdims: bool = False
        ) -> Array:
    """The norm of vectors or of matrices.

    Args:
      x: array.
      ord: of vectors: a number p for the root of order p of the sum of sizes to the power p; inf
        and -inf for the largest and the smallest size; 0 for the number of elements that are not
        zero; 2 by default. Of matrices: `fro` (the default), `nuc` (the sum of singular values),
        1, -1, inf, -inf (the largest and smallest sums of sizes over columns and rows), 2, -2
        (the largest and smallest singular value).
      axis: an axis along which vectors lie, or two for matrices. By default all elements of a
        vector or matrix; with `ord` None, all elements of any array.
      keepdims: whether the axes stay, with size 1.

    Raises:
      ValueError: there is no such norm, or another number of axes.
      TypeError: `x` is no array.

    >>> import pyjx as jax
    >>> float(jax.numpy.linalg.norm(jax.numpy.array([3.0, 4.0])))
    5.0
    >>> jax.numpy.linalg.norm(jax.numpy.array([[3.0, 4.0], [6.0, 8.0]]), axis=1).tolist()
    [5.0, 10.0]
    """
    x = _inexact(*operands("jnp.linalg.norm", x))
    ndim = get_aval(x).ndim
    if axis is None and ord is None:
        return _of_vectors(x, None, tuple(range(ndim)), keepdims)
    axes = tuple(range(ndim)) if axis is None else canonical_axes(axis, ndim)
    if len(axes) == 1:
        return _of_vectors(x, ord, axes, keepdims)
    if len(axes) == 2:
        return _of_matrices(x, ord, axes, keepdims)
    cure = ("Pass one axis to compute a vector-norm, or two axes to compute a matrix-norm."
            if ndim else "Of a number it is jnp.abs(x).")
    raise ValueError(f"Improper number of axes for norm: axis={axes}. {cure}")


@numpy_function(static_argnames=("keepdims", "ord"))
def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False,
                ord: float | str | None = "fro") -> Array:
    """The norm of matrices `[..., m, n]`; `ord` as for `norm`.

    >>> import pyjx as jax
    >>> float(jax.numpy.linalg.matrix_norm(jax.numpy.array([[3.0, 0.0], [0.0, 4.0]])))
    5.0
    """
    x = _inexact(*operands("jnp.linalg.matrix_norm", x))
    return _of_matrices(x, ord, canonical_axes((-2, -1), get_aval(x).ndim), keepdims)


@numpy_function(static_argnames=("axis", "keepdims", "ord"))
def vector_norm(x: ArrayLike, /, *, axis: AxisLike = None, keepdims: bool = False,
                ord: float | str | None = 2) -> Array:
    """The norm of vectors; of the elements along several axes as of one vector.

    Args:
      x: array.
      axis: int or sequence of ints; all axes by default.
      keepdims: whether the axes stay, with size 1.
      ord: as for `norm`.

    Returns:
      An array of the dtype of `x`, real ones for complex ones. Of integers and booleans, `ord` 1
      gives integers of at least the default size, an infinite one those of `x`, and others floats
      of the default dtype.

    >>> import pyjx as jax
    >>> float(jax.numpy.linalg.vector_norm(jax.numpy.array([[3.0, 0.0], [0.0, 4.0]])))
    5.0
    """
    (x,) = operands("jnp.linalg.vector_norm", x)
    if ord is None or ord == 2:  # a sum of squares, which of integers is of the default dtype
        x = ufuncs.as_default_float(x)
    elif ord not in (1, np.inf, -np.inf):  # those of integers are integers
        x = _inexact(x)
    return _of_vectors(strong(x), ord, canonical_axes(axis, get_aval(x).ndim), keepdims)


# -- determinants, ranks and condition numbers -----------------------------------------------------


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
def cond(x: ArrayLike, p: float | str | None = None) -> Array:
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
