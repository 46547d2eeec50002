"""Numbers that tell about matrices: determinants, ranks, condition numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

from pyjx.core.array_type import Array
from pyjx.lax.linalg import determinants
from pyjx.numpy.dispatch import numpy_function
from pyjx.numpy.linalg.decompositions import check_square, matrices


class SlogdetResult(NamedTuple):
    """The sign of a determinant, and the logarithm of its absolute value."""

    sign: Array
    logabsdet: Array


@numpy_function
def det(a: Any) -> Array:
    """The determinants of matrices `[..., n, n]`.

    A matrix whose rank is one too low has its derivative.

    Raises:
      ValueError: the matrices are not square.
      TypeError: the dtype is none of those that LAPACK has, such as float16.

    >>> import pyjx as jax
    >>> float(jax.numpy.linalg.det(jax.numpy.array([[1.0, 2.0], [3.0, 4.0]])))
    -2.0
    """
    a = matrices("det", a)
    check_square("det", a)
    return determinants.det(a)


@numpy_function(static_argnames=("method",))
def slogdet(a: Any, *, method: str | None = None) -> SlogdetResult:
    """The sign and the logarithm of the absolute value of determinants, which may overflow.

    Args:
      a: matrices `[..., n, n]`.
      method: `lu` or `qr`, the decomposition to use; by default `lu`.

    Returns:
      A named tuple (sign, logabsdet): det(a) = sign * exp(logabsdet). A singular matrix has the
      sign 0 and the logarithm -inf.

    Raises:
      ValueError: the matrices are not square, or there is no such method.
      TypeError: the dtype is none of those that LAPACK has, such as float16.

    >>> import pyjx as jax
    >>> sign, logarithm = jax.numpy.linalg.slogdet(jax.numpy.array([[2.0, 0.0], [0.0, -0.5]]))
    >>> float(sign), float(logarithm)
    (-1.0, 0.0)
    """
    a = matrices("slogdet", a)
    check_square("slogdet", a)
    method = "lu" if method is None else method
    if method not in ("lu", "qr"):
        raise ValueError(f"Unknown slogdet method '{method}'. Supported methods are 'lu' (`None`), "
                         "and 'qr'.")
    return SlogdetResult(*determinants.slogdet_p.bind(a, method=method))
