"""Eigenvalues and eigenvectors of Hermitian matrices."""

from __future__ import annotations

import enum
from typing import Any

from pyjx import lax
from pyjx.core.arithmetic import of_matrix
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.explicit import along_batch
from pyjx.core.primitive import Primitive, register
from pyjx.engine.conversion import cast
from pyjx.engine.types import Tangents, Values
from pyjx.lax.linalg.matrices import (
    adjoint,
    batch_leading,
    check_member,
    check_operands,
    check_rows_as_columns,
    diagonal,
    identity_like,
    inexact_operand,
    product,
    spread_columns,
    spread_rows,
    symmetrized,
    typed_real,
    weak_as_operands,
)


class EighImplementation(enum.Enum):
    """How eigenvalues of Hermitian matrices are computed."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


@weak_as_operands
def _shape(x: ShapedArray, *, lower: bool, sort_eigenvalues: bool, subset_by_index: None,
           algorithm: EighImplementation | None) -> list[ShapedArray]:
    check_rows_as_columns("linalg.eigh", x)
    check_operands("eigh", (x,), (2,))
    return [ShapedArray(x.shape, x.dtype), typed_real(x, x.shape[-1])]


def _jvp(primals: Values, tangents: Tangents, **params: Any) -> tuple[Values, Tangents]:
    # With C = V^H dA V: dw = diag(C) and dV = V (F * C), where F_ij = 1 / (w_j - w_i) and 0 on the
    # diagonal (Giles, An extended collection of matrix derivative results, 2008, 3.1).
    (x,), (dx,) = primals, tangents
    v, w = eigh_p.bind(x, **params)
    shape = get_aval(x).shape
    inner = product(adjoint(v), dx, v)
    eye = identity_like(w, shape)
    gaps = lax.sub(spread_rows(w, shape), spread_columns(w, shape))
    weights = lax.sub(lax.integer_pow(lax.add(gaps, eye), -1), eye)
    dv = product(v, lax.mul(cast(weights, get_aval(x).dtype), inner))
    dw = diagonal(inner)
    return [v, w], [dv, lax.real(dw) if get_aval(dw).dtype.kind == "c" else dw]


eigh_p = register(Primitive("eigh", arithmetic=of_matrix(lambda m, n, out: 9.0 * n**3),
                            sharding_rule=along_batch(2),
                            shape_rule=_shape, multiple_results=True, jvp=_jvp))
eigh_p.define(batch=batch_leading(eigh_p))


def subset_bounds(name: str, subset: Any, n: int) -> tuple[int, int] | None:
    """The bounds of a range of values, or None for all of them.

    Raises:
      ValueError: it is no range in [0, n].
    """
    if subset is None:
        return None
    start, end = (int(i) for i in subset)
    if not 0 <= start <= end <= n:
        raise ValueError(f"{name}: expected subset_by_index=(start, end) with 0 <= start <= end <= "
                         f"{n}, got {tuple(subset)}.")
    return None if (start, end) == (0, n) else (start, end)


def eigh(x: ArrayLike, *, lower: bool = True, symmetrize_input: bool = True,
         sort_eigenvalues: bool = True, subset_by_index: tuple[int, int] | None = None,
         implementation: EighImplementation | None = None) -> tuple[Array, Array]:
    """The eigenvalues and eigenvectors of Hermitian matrices, x V = V diag(w).

    Where eigenvalues coincide, the derivative of the eigenvectors is not finite.

    Args:
      x: Hermitian matrices, `[..., n, n]`; integers become floats.
      lower: which triangle to read where `symmetrize_input` is false.
      symmetrize_input: whether to take (x + x^H) / 2 for `x`.
      sort_eigenvalues: whether they must be in ascending order.
      subset_by_index: (start, end): only those eigenvalues, in ascending order, and their vectors.
      implementation: an `EighImplementation`; the platform's best by default.

    Returns:
      (V, w): unitary matrices whose columns are eigenvectors, and real eigenvalues. NaN where the
      algorithm does not converge.

    Raises:
      ValueError: the matrices are not square, or the subset is out of range.
      TypeError: the dtype is not float32, float64, complex64 or complex128.
      NotImplementedError: the platform has not the implementation.

    >>> import pyjx as jax
    >>> v, w = jax.lax.linalg.eigh(jax.numpy.array([[2.0, 0.0], [0.0, 1.0]]))
    >>> w.tolist()
    [1.0, 2.0]
    """
    check_member("eigh", "implementation", implementation, EighImplementation)
    x = inexact_operand("eigh", x)
    params: dict[str, Any] = {"lower": bool(lower),
                              "sort_eigenvalues": bool(sort_eigenvalues),
                              "subset_by_index": None, "algorithm": implementation}
    if symmetrize_input:
        _shape(get_aval(x), **params)
        x = symmetrized(x)
    v, w = eigh_p.bind(x, **params)
    shape = get_aval(v).shape
    bounds = subset_bounds("eigh", subset_by_index, shape[-1])
    if bounds is None:
        return v, w
    start, end = bounds
    axis = len(shape) - 1
    return (lax.slice_in_dim(v, start, end, axis=axis),
            lax.slice_in_dim(w, start, end, axis=axis - 1))
