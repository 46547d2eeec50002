"""Matrices brought to a simpler form by unitary similarity: Schur, Hessenberg, tridiagonal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import ShapedArray
from pyjx.core.explicit import along_batch
from pyjx.core.primitive import Primitive, register
from pyjx.lax.common import operand
from pyjx.lax.linalg.matrices import (
    batch_leading,
    check_operands,
    check_square,
    typed,
    typed_real,
    weak_as_operands,
)

# -- schur -----------------------------------------------------------------------------------------


@weak_as_operands
def _schur_shape(x: ShapedArray, *, compute_schur_vectors: bool, sort_eig_vals: bool,
                 select_callable: Any) -> list[ShapedArray]:
    check_operands("schur", (x,), (2,))
    n = check_square("input to schur", x)
    return [typed(x, n, n)] * (2 if compute_schur_vectors else 1)


schur_p = register(Primitive("schur", sharding_rule=along_batch(2),
                             shape_rule=_schur_shape, multiple_results=True))


def schur(x: ArrayLike, *, compute_schur_vectors: bool = True, sort_eig_vals: bool = False,
          select_callable: Callable[..., Any] | None = None) -> tuple[Array, ...]:
    """The Schur decomposition x = Z T Z^H; on CPU only.

    Args:
      x: matrices `[..., n, n]`, real or complex.
      compute_schur_vectors: whether to return Z.
      sort_eig_vals: not supported.
      select_callable: without effect, as eigenvalues are not sorted.

    Returns:
      (T, Z) or (T,): T upper triangular (of a real matrix, with blocks of two rows on the diagonal
      for pairs of complex eigenvalues), and Z unitary. NaN where the algorithm does not converge.

    Raises:
      TypeError: the dtype is not float32, float64, complex64 or complex128, or the rank below 2.
      ValueError: the matrices are not square.
      NotImplementedError: eigenvalues are to be sorted.

    >>> import pyjx as jax
    >>> t, z = jax.lax.linalg.schur(jax.numpy.array([[1.0, 2.0], [0.0, 3.0]]))
    >>> t.tolist()
    [[1.0, 2.0], [0.0, 3.0]]
    """
    if sort_eig_vals:
        raise NotImplementedError("schur: the sort feature of LAPACK's gees routine is not "
                                  "implemented.")
    return tuple(schur_p.bind(
        operand("schur", x), compute_schur_vectors=bool(compute_schur_vectors),
        sort_eig_vals=False, select_callable=None))


# -- hessenberg ------------------------------------------------------------------------------------


@weak_as_operands
def _hessenberg_shape(x: ShapedArray) -> list[ShapedArray]:
    check_operands("hessenberg", (x,), (2,))
    n = x.shape[-1]
    if x.shape[-2] != n or not n:
        raise ValueError("Argument to Hessenberg reduction must have shape [..., n, n] with n > 0, "
                         f"got shape {x.shape}")
    return [typed(x, n, n), typed(x, n - 1)]


hessenberg_p = register(Primitive("hessenberg", sharding_rule=along_batch(2),
                                  shape_rule=_hessenberg_shape,
                                  multiple_results=True))


def hessenberg(a: ArrayLike) -> tuple[Array, Array]:
    """The reduction a = Q H Q^H to a Hessenberg matrix; on CPU only.

    Args:
      a: matrices `[..., n, n]`, real or complex.

    Returns:
      (packed, taus): H on and above the diagonal below the main one; the reflections that make Q
      below it; and their scales, `[..., n - 1]`.

    Raises:
      TypeError: the dtype is not float32, float64, complex64 or complex128, or the rank below 2.
      ValueError: the matrices are not square, or have no rows.

    >>> import pyjx as jax
    >>> jax.lax.linalg.hessenberg(jax.numpy.array([[1.0, 2.0], [3.0, 4.0]]))[0].tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    packed, taus = hessenberg_p.bind(operand("hessenberg", a))
    return packed, taus


# -- tridiagonal -----------------------------------------------------------------------------------


@weak_as_operands
def _tridiagonal_shape(x: ShapedArray, *, lower: bool) -> list[ShapedArray]:
    check_operands("tridiagonal", (x,), (2,))
    n = x.shape[-1]
    if x.shape[-2] != n or not n:
        raise ValueError("The input to tridiagonal must be a square matrix with at least one row. "
                         f"Got shape {x.shape}.")
    return [typed(x, n, n), typed_real(x, n), typed_real(x, n - 1), typed(x, n - 1)]


tridiagonal_p = register(Primitive("tridiagonal", sharding_rule=along_batch(2),
                                   shape_rule=_tridiagonal_shape,
                                   multiple_results=True))

for _p in (schur_p, hessenberg_p, tridiagonal_p):
    _p.define(batch=batch_leading(_p))


def tridiagonal(a: ArrayLike, *, lower: bool = True) -> tuple[Array, Array, Array, Array]:
    """The reduction a = Q T Q^H of Hermitian matrices to real tridiagonal ones; not on TPU.

    Args:
      a: Hermitian matrices `[..., n, n]`, of which one triangle is read.
      lower: which one.

    Returns:
      (packed, d, e, taus): the reflections that make Q in the triangle; the diagonal of T,
      `[..., n]`; the one beside it, `[..., n - 1]`; and the scales of the reflections.

    Raises:
      TypeError: the dtype is not float32, float64, complex64 or complex128, or the rank below 2.
      ValueError: the matrices are not square, or have no rows.

    >>> import pyjx as jax
    >>> packed, d, e, taus = jax.lax.linalg.tridiagonal(jax.numpy.array([[1.0, 2.0], [2.0, 3.0]]))
    >>> d.tolist(), e.tolist()
    ([1.0, 3.0], [2.0])
    """
    packed, d, e, taus = tridiagonal_p.bind(operand("tridiagonal", a), lower=bool(lower))
    return packed, d, e, taus
