"""Products of matrices with their own transposes."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.primitive import Primitive, register
from pyjx.lax.common import operand
from pyjx.lax.linalg.matrices import (
    check_operands,
    lower_triangle,
    product,
    transposed,
    upper_triangle,
    weak_as_operands,
)


@weak_as_operands
def _shape(a: ShapedArray, c: ShapedArray, *, alpha: float, beta: float) -> ShapedArray:
    check_operands("symmetric_product", (a, c), (2, 2), real=True)
    n = a.shape[-2]
    if c.shape[-2:] != (n, n):
        raise ValueError("symmetric_update expects a rectangular matrix of shape (n, m) and a "
                         f"square matrix of shape (n, n). Got shapes {a.shape} and {c.shape}.")
    return ShapedArray(c.shape, c.dtype)


def _by_products(a: ArrayLike, c: ArrayLike, *, alpha: float, beta: float) -> Any:
    dtype = get_aval(a).dtype
    out = lax.mul(product(a, transposed(a)), np.asarray(alpha, dtype)[()])
    return out if beta == 0 else lax.add(out, lax.mul(c, np.asarray(beta, dtype)[()]))


symmetric_product_p = register(Primitive("symmetric_product", shape_rule=_shape,
                                         decomposition=_by_products))


def symmetric_product(a_matrix: Any, c_matrix: Any, *, alpha: float = 1.0, beta: float = 0.0,
                      symmetrize_output: bool = False) -> Array:
    """alpha a a^T + beta c.

    Args:
      a_matrix: `[..., n, m]`, of float32 or float64.
      c_matrix: symmetric, `[..., n, n]`, of the same dtype.
      alpha, beta: numbers.
      symmetrize_output: whether to take the lower triangle of the result for both.

    Raises:
      TypeError: the dtypes differ or are others.
      ValueError: the shapes do not fit.

    >>> import pyjx as jax
    >>> a = jax.numpy.array([[1.0], [2.0]])
    >>> jax.lax.linalg.symmetric_product(a, jax.numpy.eye(2), beta=1.0).tolist()
    [[2.0, 2.0], [2.0, 5.0]]
    """
    out = symmetric_product_p.bind(
        operand("symmetric_product", a_matrix), operand("symmetric_product", c_matrix, 1),
        alpha=float(alpha), beta=float(beta))
    if not symmetrize_output:
        return out
    return lax.add(lower_triangle(out), upper_triangle(transposed(out), 1))
