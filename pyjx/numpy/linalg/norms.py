"""Norms of vectors and of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import get_aval
from pyjx.lax import linalg
from pyjx.numpy import reductions, ufuncs
from pyjx.numpy.axes import canonical_axes
from pyjx.numpy.dispatch import numpy_function
from pyjx.numpy.manipulation import moved
from pyjx.numpy.powers import power
from pyjx.numpy.promotion import literal, operands, promote_dtypes_inexact, strong
from pyjx.numpy.reductions import restore_axes
from pyjx.numpy.statistics import squared
from pyjx.runtime.operations import body_of, op_jit

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
    return restore_axes(out, tuple(sorted(axes)), get_aval(x).ndim) if keepdims else out


def _inexact(x: ArrayLike) -> Any:
    """The operand with an inexact dtype, and no weak type: norms have none."""
    (x,) = promote_dtypes_inexact(x)
    return strong(x)


@op_jit(static_argnames=("ord", "axis", "keepdims"))
def norm(x: ArrayLike, ord: float | str | None = None,
         axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Array:
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
    raise ValueError(f"Improper number of axes for norm: axis={axes}. Pass one axis to compute a "
                     "vector-norm, or two axes to compute a matrix-norm.")


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
def vector_norm(x: ArrayLike, /, *, axis: int | Sequence[int] | None = None, keepdims: bool = False,
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
