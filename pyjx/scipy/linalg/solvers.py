"""Systems of linear equations."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import get_aval
from pyjx.lax import linalg
from pyjx.lax.linalg.general_systems import solve_factored
from pyjx.lax.linalg.matrices import (
    adjoint,
    check_square,
    diagonal,
    is_complex,
    product,
    spread_columns,
    spread_rows,
)
from pyjx.numpy.linalg.invariants import det as numpy_det
from pyjx.numpy.linalg.systems import inv as numpy_inv
from pyjx.numpy.linalg.systems import solve as numpy_solve
from pyjx.numpy.operands import numpy_function
from pyjx.runtime.operations import body_of
from pyjx.scipy.linalg.operands import arrays, as_columns, as_complex, stretched, wide_arrays

_det, _inv, _solve = body_of(numpy_det), body_of(numpy_inv), body_of(numpy_solve)


def _pair(name: str, argument: str, given: Any, maker: str) -> tuple[Any, Any]:
    if hasattr(given, "dtype"):  # a matrix of two rows can be unpacked, too
        raise ValueError(f"{name}: {argument} must be the pair that {maker} returns, got an array "
                         f"of the shape {given.shape}. Give ({argument.replace('_and_', ', ')}).")
    try:
        first, second = given
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {argument} must be the pair that {maker} returns, got "
                          f"{type(given).__name__}: {error}") from None
    return first, second


@numpy_function(static_argnames=("overwrite_a", "check_finite"))
def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The determinants of matrices `[..., n, n]`, as `jax.numpy.linalg.det`.

    Args:
      a: the matrices.
      overwrite_a, check_finite: mean nothing.

    >>> import pyjx as jax
    >>> float(jax.scipy.linalg.det(jax.numpy.array([[1.0, 2.0], [3.0, 4.0]])))
    -2.0
    """
    return _det(a)


@numpy_function(static_argnames=("overwrite_a", "check_finite"))
def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The inverses of matrices `[..., n, n]`, as `jax.numpy.linalg.inv`.

    Args:
      a: the matrices.
      overwrite_a, check_finite: mean nothing.

    >>> import pyjx as jax
    >>> jax.scipy.linalg.inv(jax.numpy.array([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return _inv(a)


def _without_axis(x: ArrayLike, vector: bool) -> Any:
    return lax.squeeze(x, (get_aval(x).ndim - 1,)) if vector else x


@numpy_function(static_argnames=("lower",))
def _cho_solve(factor: Any, b: ArrayLike, lower: bool) -> Any:
    factor, b = arrays("cho_solve", factor, b)
    if get_aval(factor).ndim < 2:
        raise ValueError("cho_solve: the factor must be a matrix, as that of c_and_lower = "
                         f"cho_factor(a), got {get_aval(factor)}")
    b, vector = as_columns(factor, b, "cho_solve")
    factor, b = stretched(factor, b)
    for first in (True, False):
        b = linalg.triangular_solve(factor, b, left_side=True, lower=lower,
                                    transpose_a=lower != first, conjugate_a=lower != first)
    return _without_axis(b, vector)


def cho_solve(c_and_lower: tuple[Any, bool], b: ArrayLike, overwrite_b: bool = False,
              check_finite: bool = True) -> Array:
    """The x with a x = b, by the Cholesky decomposition of `a`.

    Args:
      c_and_lower: what `cho_factor` returns for `a`.
      b: `[..., n]` or `[..., n, k]`.
      overwrite_b, check_finite: mean nothing.

    Raises:
      ValueError: the shapes do not fit.

    >>> import pyjx as jax
    >>> c = jax.scipy.linalg.cho_factor(jax.numpy.array([[4.0, 0.0], [0.0, 1.0]]))
    >>> jax.scipy.linalg.cho_solve(c, jax.numpy.array([4.0, 2.0])).tolist()
    [1.0, 2.0]
    """
    factor, lower = _pair("cho_solve", "c_and_lower", c_and_lower, "cho_factor(a)")
    return _cho_solve(factor, b, bool(lower))


@numpy_function(static_argnames=("trans", "overwrite_b", "check_finite"))
def lu_solve(lu_and_piv: tuple[Any, Any], b: ArrayLike, trans: int = 0, overwrite_b: bool = False,
             check_finite: bool = True) -> Array:
    """The x with a x = b, by the LU decomposition of `a`.

    Args:
      lu_and_piv: what `lu_factor` returns for `a`.
      b: `[..., n]` or `[..., n, k]`.
      trans: 0 for a x = b, 1 for a^T x = b, 2 for a^H x = b.
      overwrite_b, check_finite: mean nothing.

    Raises:
      ValueError: the shapes do not fit, or `trans` is another one.

    >>> import pyjx as jax
    >>> lu = jax.scipy.linalg.lu_factor(jax.numpy.array([[0.0, 4.0], [1.0, 0.0]]))
    >>> jax.scipy.linalg.lu_solve(lu, jax.numpy.array([4.0, 2.0])).tolist()
    [2.0, 1.0]
    """
    factors, pivots = _pair("lu_solve", "lu_and_piv", lu_and_piv, "lu_factor(a)")
    if trans not in (0, 1, 2):
        raise ValueError(f"'trans' value must be 0, 1, or 2, got {trans}")
    factors, b = arrays("lu_solve", factors, b)
    shape = get_aval(factors).shape
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ValueError(f"lu_solve: expected factors of square matrices, got shape {shape}")
    b, vector = as_columns(factors, b, "lu_solve")
    if np.shape(pivots) != shape[:-1]:
        raise ValueError(f"lu_solve: lu_and_piv must be the pair that lu_factor(a) returns, got "
                         f"factors of shape {shape} and pivots of shape {np.shape(pivots)}, which "
                         f"should be {shape[:-1]}.")
    order = linalg.lu_pivots_to_permutation(jnp.asarray(pivots, np.int32), shape[-1])
    factors, b = stretched(factors, b)
    order = jnp.broadcast_to(order, get_aval(factors).shape[:-1])
    x = solve_factored(factors, order, b, transpose=trans > 0, conjugate=trans == 2)
    return _without_axis(x, vector)


_TRANSPOSES = {0: 0, "N": 0, 1: 1, "T": 1, 2: 2, "C": 2}


@numpy_function(static_argnames=("trans", "lower", "unit_diagonal", "overwrite_b", "debug",
                                 "check_finite"))
def solve_triangular(a: ArrayLike, b: ArrayLike, trans: int | str = 0, lower: bool = False,
                     unit_diagonal: bool = False, overwrite_b: bool = False, debug: Any = None,
                     check_finite: bool = True) -> Array:
    """The x with a x = b, where `a` is triangular.

    A zero on the diagonal gives infinities and NaN and no error.

    Args:
      a: matrices `[..., n, n]`, of which one triangle is read.
      b: `[..., n]` or `[..., n, k]`.
      trans: 0 or `N` for a x = b, 1 or `T` for a^T x = b, 2 or `C` for a^H x = b.
      lower: whether `a` is lower triangular, else upper.
      unit_diagonal: whether to take the diagonal of `a` as ones.
      overwrite_b, debug, check_finite: mean nothing.

    Raises:
      ValueError: the shapes do not fit, or `trans` is another one.

    >>> import pyjx as jax
    >>> a = jax.numpy.array([[2.0, 0.0], [1.0, 1.0]])
    >>> jax.scipy.linalg.solve_triangular(a, jax.numpy.array([2.0, 3.0]), lower=True).tolist()
    [1.0, 2.0]
    """
    if trans not in _TRANSPOSES:
        raise ValueError(f"Invalid 'trans' value {trans}; it is one of {list(_TRANSPOSES)}")
    turn = _TRANSPOSES[trans]
    a, b = wide_arrays("solve_triangular", a, b)
    check_square("first input to solve_triangular", get_aval(a))
    b, vector = as_columns(a, b, "solve_triangular")
    a, b = stretched(a, b)
    x = linalg.triangular_solve(a, b, left_side=True, lower=lower, transpose_a=turn > 0,
                                conjugate_a=turn == 2, unit_diagonal=unit_diagonal)
    return _without_axis(x, vector)


_KINDS = ("gen", "sym", "her", "pos")


@numpy_function(static_argnames=("lower", "overwrite_a", "overwrite_b", "debug", "check_finite",
                                 "assume_a"))
def solve(a: ArrayLike, b: ArrayLike, lower: bool = False, overwrite_a: bool = False,
          overwrite_b: bool = False, debug: bool = False, check_finite: bool = True,
          assume_a: str = "gen") -> Array:
    """The x with a x = b.

    A singular matrix gives infinities or NaN and no error.

    Args:
      a: matrices `[..., n, n]`.
      b: one vector `[n]`, or matrices `[..., n, k]`.
      lower: which triangle is read where `a` is assumed to be positive definite.
      assume_a: `pos` for Hermitian positive definite matrices, which are solved by the Cholesky
        decomposition; `gen`, `sym` and `her` for others, solved by LU.
      overwrite_a, overwrite_b, debug, check_finite: mean nothing.

    Raises:
      ValueError: the shapes do not fit, or nothing of the kind can be assumed.

    >>> import pyjx as jax
    >>> a = jax.numpy.array([[4.0, 0.0], [0.0, 16.0]])
    >>> jax.scipy.linalg.solve(a, jax.numpy.array([4.0, 8.0]), assume_a="pos").tolist()
    [1.0, 0.5]
    """
    if assume_a not in _KINDS:
        raise ValueError(f"Expected assume_a to be one of {list(_KINDS)}; got {assume_a!r}")
    if assume_a != "pos":
        return _solve(a, b)
    a, b = arrays("solve", a, b)
    check_square("input to solve", get_aval(a))
    b, vector = as_columns(a, b, "solve", deprecated=False)
    a, b = stretched(a, b)
    return _without_axis(_solve_positive(a, b, lower), vector)


def _solve_positive(a: ArrayLike, b: ArrayLike, lower: bool) -> Any:
    """By the Cholesky decomposition of one triangle, which is not differentiated itself: where an
    element of `a` changes, a x does."""
    known = lax.stop_gradient(a)
    factor = linalg.cholesky(known if lower else adjoint(known), symmetrize_input=False)

    def by_factor(_: Any, x: ArrayLike) -> Any:
        x = linalg.triangular_solve(factor, x, left_side=True, lower=True)
        return linalg.triangular_solve(factor, x, left_side=True, lower=True, transpose_a=True,
                                       conjugate_a=True)

    def by_conjugate(_: Any, x: ArrayLike) -> Any:  # a^T is the conjugate of a
        return jnp.conj(by_factor(_, jnp.conj(x)))

    return lax.custom_linear_solve(lambda x: product(a, x), b, by_factor, by_conjugate)


# -- Sylvester's equation --------------------------------------------------------------------------


def _by_columns(r: ArrayLike, s: ArrayLike, c: ArrayLike) -> Any:
    """The Y with R Y + Y S = C for upper triangular R and S, one column after the other."""
    *batch, m, n = get_aval(c).shape
    axis = len(batch) + 1
    columns = lax.broadcasted_iota(np.int32, (*batch, 1, n), axis)

    def solve_column(k: ArrayLike, y: ArrayLike) -> Any:
        k = lax.convert_element_type(k, np.int32)
        above = lax.dynamic_index_in_dim(s, k, axis)  # column k of S
        value = lax.reduce_sum(lax.select(
            lax.eq(columns, lax.broadcast(k, (*batch, 1, n))), spread_rows(
                diagonal(s), (*batch, 1, n)), lax.full((*batch, 1, n), 0, get_aval(s).dtype)),
            (axis - 1, axis))
        before = product(y, above)  # columns from k on are zero still
        right = lax.sub(lax.dynamic_index_in_dim(c, k, axis), before)
        rows = lax.broadcasted_iota(np.int32, (*batch, m, m), axis)
        on = lax.eq(rows, lax.broadcasted_iota(np.int32, (*batch, m, m), axis - 1))
        shift = lax.broadcast_in_dim(value, (*batch, m, m), range(len(batch)))
        matrix = lax.add(r, lax.select(on, shift, lax.full_like(shift, 0)))
        column = linalg.triangular_solve(matrix, right, left_side=True)
        return lax.dynamic_update_slice_in_dim(y, column, k, axis)

    return lax.fori_loop(np.int32(0), np.int32(n), solve_column, lax.full_like(c, 0))


@numpy_function(static_argnames=("method", "tol"))
def solve_sylvester(A: ArrayLike, B: ArrayLike, C: ArrayLike, *, method: str = "schur",
                    tol: float = 1e-8) -> Array:
    """The X with A X + X B = C.

    Args:
      A: matrices `[..., m, m]`.
      B: matrices `[..., n, n]`.
      C: matrices `[..., m, n]`.
      method: `schur`, by the Schur decompositions of A and B (Bartels and Stewart, Solution of the
        matrix equation AX + XB = C, 1972), on CPU only; or `eigen`, by their eigenvectors, for
        matrices that have enough of these.
      tol: where an eigenvalue of A and one of B have a sum of this size or less, the equation has
        no unique solution, and the result is NaN.

    Returns:
      X, `[..., m, n]`.

    Raises:
      ValueError: the shapes do not fit, or there is no such method.

    >>> import pyjx as jax
    >>> a, c = jax.numpy.array([[1.0, 0.0], [0.0, 3.0]]), jax.numpy.array([[2.0, 2.0], [4.0, 4.0]])
    >>> jax.numpy.round(jax.scipy.linalg.solve_sylvester(a, jax.numpy.eye(2), c), 3).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    a, b, c = arrays("solve_sylvester", A, B, C)
    shapes = [get_aval(x).shape for x in (a, b, c)]
    *_, m, n = (0, 0, *shapes[2])
    if any(len(s) < 2 for s in shapes) or shapes[0][-2:] != (m, m) or shapes[1][-2:] != (n, n):
        raise ValueError("Incompatible shapes for Sylvester equation:\n"
                         f"A: {shapes[0]}\nB: {shapes[1]}\nC: {shapes[2]}")
    if method not in ("schur", "eigen"):
        raise ValueError(f'Unrecognized method {method}. The two valid methods are either "schur" '
                         'or "eigen".')
    if not m * n:
        return c
    real = not is_complex(c)
    a, b, c = (as_complex(x) for x in stretched(a, b, c))
    if method == "schur":
        (r, u), (s, v) = linalg.schur(a), linalg.schur(b)
        first, second = diagonal(r), diagonal(s)
        x = product(product(u, _by_columns(r, s, product(adjoint(u), product(c, v)))), adjoint(v))
    else:
        (first, p), (second, q) = (linalg.eig(x, compute_left_eigenvectors=False) for x in (a, b))
        turned = product(_solve(p, c), q)
        shape = get_aval(turned).shape
        sums = lax.add(spread_columns(first, shape), spread_rows(second, shape))
        x = product(product(p, lax.div(turned, sums)), _inv(q))
    x = lax.real(x) if real else x
    shape = get_aval(x).shape
    sizes = lax.abs(lax.add(spread_columns(first, shape), spread_rows(second, shape)))
    close = lax.le(sizes, lax.full_like(sizes, tol))
    axes = (len(shape) - 2, len(shape) - 1)
    singular = lax.broadcast_in_dim(lax.reduce_or(close, axes), shape, range(len(shape) - 2))
    return lax.select(singular, lax.full_like(x, np.nan), x)
