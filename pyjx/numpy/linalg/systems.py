"""Systems of linear equations, inverses and pseudo-inverses."""

from __future__ import annotations

import math
from typing import Any

from pyjx import lax
from pyjx.core.array_type import Array
from pyjx.core.avals import get_aval
from pyjx.lax.common import broadcast_shapes
from pyjx.lax.linalg.general_systems import solve as solve_matrices
from pyjx.lax.linalg.matrices import identity_like
from pyjx.numpy.dispatch import numpy_function
from pyjx.numpy.linalg.decompositions import check_square, matrices
from pyjx.numpy.manipulation import moved
from pyjx.numpy.promotion import operands, promote_dtypes_inexact, stretch


def solved(a: Any, b: Any) -> Any:
    """The x with a x = b, for square matrices and matrices whose batch axes broadcast."""
    (*batch, n, _), (*sides, m, k) = get_aval(a).shape, get_aval(b).shape
    if n != m:
        raise ValueError(f"solve: the number of rows of b must be that of a, got shapes "
                         f"{get_aval(a).shape} and {get_aval(b).shape}")
    if not batch and sides:  # all right-hand sides are columns for one matrix
        b = moved(b, -2, 0)
        shape = get_aval(b).shape
        x = solve_matrices(a, lax.reshape(b, (n, math.prod(shape[1:]))))
        return moved(lax.reshape(x, shape), 0, -2)
    lead = broadcast_shapes(tuple(batch), tuple(sides))
    return solve_matrices(stretch(a, (*lead, n, n)), stretch(b, (*lead, n, k)))


@numpy_function
def solve(a: Any, b: Any) -> Array:
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
    if y.ndim == x.ndim - 1 and y.ndim > 1 and y.shape[-2:] != (x.shape[-1], y.shape[-1]):
        raise ValueError(f"Invalid shapes for solve: {x.shape}, {y.shape}. A batch of vectors is "
                         "taken as a matrix: use solve(a, b[..., None]).squeeze(-1).")
    if y.ndim == 1:
        return lax.squeeze(solved(a, lax.expand_dims(b, (1,))), (x.ndim - 1,))
    return solved(a, b)


@numpy_function
def inv(a: Any) -> Array:
    """The inverse of matrices `[..., n, n]`.

    Unlike NumPy's, a singular matrix gives infinities or NaN and no error.

    Raises:
      ValueError: the matrices are not square.
      TypeError: the dtype is none of those that LAPACK has, such as float16.

    >>> import pyjx as jax
    >>> jax.numpy.linalg.inv(jax.numpy.array([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    a = matrices("inv", a)
    check_square("inv", a)
    return solve_matrices(a, identity_like(a))
