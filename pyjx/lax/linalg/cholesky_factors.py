"""Cholesky factors of positive definite matrices, and their updates."""

from __future__ import annotations

from typing import Any

from pyjx.core.array_type import Array
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.primitive import Primitive, register
from pyjx.engine.types import Tangent, Tangents, Value, Values
from pyjx.lax.linalg.matrices import (
    batch_leading,
    check_operands,
    half_lower_triangle,
    inexact_operand,
    product,
    symmetrized,
)
from pyjx.lax.linalg.triangular_systems import triangular_solve


def _cholesky_shape(x: ShapedArray) -> ShapedArray:
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError("The input to linalg.cholesky must have shape [..., n, n], got shape "
                         f"{x.shape}")
    check_operands("cholesky", (x,), (2,))
    return ShapedArray(x.shape, x.dtype)


def _cholesky_jvp(primals: Values, tangents: Tangents) -> tuple[Value, Tangent]:
    # dL = L P(L^-1 dA L^-H), where P keeps the lower triangle and half of the diagonal
    # (Murray, Differentiation of the Cholesky decomposition, 2016, eq. 8).
    (x,), (dx,) = primals, tangents
    factor = cholesky_p.bind(x)
    inner = triangular_solve(factor, dx, left_side=False, lower=True, transpose_a=True,
                             conjugate_a=True)
    inner = triangular_solve(factor, inner, left_side=True, lower=True)
    return factor, product(factor, half_lower_triangle(inner))


cholesky_p = register(Primitive("cholesky", shape_rule=_cholesky_shape, jvp=_cholesky_jvp))
cholesky_p.define(batch=batch_leading(cholesky_p))


def cholesky(x: Any, *, symmetrize_input: bool = True) -> Array:
    """The Cholesky decomposition: the lower triangular L with L L^H = x.

    Args:
      x: Hermitian positive definite matrices, `[..., n, n]`; integers become floats.
      symmetrize_input: whether to take (x + x^H) / 2 for `x`. If not, only its lower triangle is
        read.

    Returns:
      L, with zeros above the diagonal; NaN for a matrix that is not positive definite.

    Raises:
      ValueError: the matrices are not square.
      TypeError: the dtype is not float32, float64, complex64 or complex128.

    >>> import pyjx as jax
    >>> jax.lax.linalg.cholesky(jax.numpy.array([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    x = inexact_operand("cholesky", x)
    if symmetrize_input and get_aval(x).ndim > 1:
        _cholesky_shape(get_aval(x))
        x = symmetrized(x)
    return cholesky_p.bind(x)
