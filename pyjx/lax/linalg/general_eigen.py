"""Eigenvalues and eigenvectors of matrices that need not be Hermitian, and simpler forms of them by
unitary similarity: Schur, Hessenberg, tridiagonal.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from pyjx import lax
from pyjx.core.arithmetic import EIG, HESSENBERG, SCHUR, TRIDIAGONAL
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.explicit import along_batch
from pyjx.core.frames import warn
from pyjx.core.primitive import Primitive, register
from pyjx.engine.primitives import cast
from pyjx.engine.types import Tangents, Value, Values
from pyjx.lax.common import operand
from pyjx.lax.elementwise import complex_dtype
from pyjx.lax.linalg.general_systems import solve
from pyjx.lax.linalg.matrices import (
    adjoint,
    check_member,
    check_operands,
    check_square,
    define_leading,
    diagonal,
    identity_like,
    product,
    spread_columns,
    spread_rows,
    transposed,
    typed,
    typed_real,
    weak_as_operands,
)


class EigImplementation(enum.Enum):
    """What computes eigenvalues on GPU; elsewhere it is LAPACK."""

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


@weak_as_operands
def _shape(x: ShapedArray, *, compute_left_eigenvectors: bool, compute_right_eigenvectors: bool,
           enable_eigvec_derivs: bool, implementation: EigImplementation | None
           ) -> list[ShapedArray]:
    check_operands("eig", (x,), (2,))
    n = check_square("input to eig", x)
    dtype = complex_dtype(x.dtype)
    vectors = typed(x, n, n, dtype=dtype)
    count = compute_left_eigenvectors + compute_right_eigenvectors
    return [typed(x, n, dtype=dtype), *[vectors] * count]


def _jvp(primals: Values, tangents: Tangents, *, compute_left_eigenvectors: bool,
         compute_right_eigenvectors: bool, enable_eigvec_derivs: bool, **params: Any
         ) -> tuple[Values, Tangents]:
    # With C = V^-1 dA V: dw = diag(C)
    (x,), (dx,) = primals, tangents
    left, right = compute_left_eigenvectors, compute_right_eigenvectors
    if (left or right) and not enable_eigvec_derivs:
        raise NotImplementedError(
            "Derivatives of non-symmetric eigenvectors are only valid under assumptions on the "
            "input that JAX cannot check (see the enable_eigvec_derivs argument to "
            "jax.lax.linalg.eig). Pass enable_eigvec_derivs=True to jax.lax.linalg.eig to opt in. "
            "Eigenvalues alone, as jnp.linalg.eigvals gives them, have derivatives in any case.")
    w, *found, v = eig_p.bind(x, compute_left_eigenvectors=left, compute_right_eigenvectors=True,
                              enable_eigvec_derivs=enable_eigvec_derivs, **params)
    dx = cast(dx, get_aval(w).dtype)
    if not left and not right:  # the diagonal alone takes no product of matrices
        terms = lax.mul(solve(v, dx), transposed(v))
        return [w], [lax.reduce_sum(terms, (get_aval(terms).ndim - 1,))]
    inner = solve(v, product(dx, v))
    outs, douts = [w], [diagonal(inner)]
    if left:  # the right eigenvectors of the adjoint, whose eigenvalues are the conjugates
        (u,) = found
        outs.append(u)
        douts.append(_turned(u, lax.conj(w), solve(u, product(adjoint(dx), u))))
    if right:
        outs.append(v)
        douts.append(_turned(v, w, inner))
    return outs, douts


def _turned(v: Value, w: Value, inner: Value) -> Array:
    """The tangent of normalized eigenvectors.

    dV = V (F * C), where F_ij = 1 / (w_j - w_i) and 0 on the diagonal, but for a multiple of each
    vector: such that its length stays 1, and its largest component real, as LAPACK has it.
    """
    shape = get_aval(v).shape
    axis = (len(shape) - 2,)
    eye = identity_like(v)
    gaps = lax.sub(spread_rows(w, shape), spread_columns(w, shape))
    weights = lax.sub(lax.integer_pow(lax.add(gaps, eye), -1), eye)
    dv = product(v, lax.mul(weights, inner))
    size = lax.abs(v)
    largest = lax.argmax(size, axis[0], "int32")
    places = lax.broadcasted_iota("int32", shape, axis[0])
    chosen = cast(lax.eq(places, spread_rows(largest, shape)), get_aval(v).dtype)

    def pick(x: Value) -> Array:
        return lax.reduce_sum(lax.mul(chosen, x), axis)

    along = lax.real(lax.reduce_sum(lax.mul(lax.conj(v), dv), axis))
    turn = lax.div(lax.imag(pick(dv)), lax.real(pick(v)))
    return lax.sub(dv, lax.mul(v, spread_rows(lax.complex(along, turn), shape)))


eig_p = register(Primitive("eig", arithmetic=EIG,
                           sharding_rule=along_batch(2),
                           shape_rule=_shape, multiple_results=True, jvp=_jvp))
define_leading(eig_p)


def eig(x: ArrayLike, *, compute_left_eigenvectors: bool = True,
        compute_right_eigenvectors: bool = True, enable_eigvec_derivs: bool = False,
        implementation: EigImplementation | None = None, use_magma: bool | None = None
       ) -> tuple[Array, ...]:
    """The eigenvalues and eigenvectors of square matrices, x V = V diag(w); not on TPU.

    The derivatives of the eigenvalues hold where these differ.

    Args:
      x: matrices `[..., n, n]`, real or complex.
      compute_left_eigenvectors: whether to return U with U^H x = diag(w) U^H.
      compute_right_eigenvectors: whether to return V.
      enable_eigvec_derivs: whether eigenvectors may be differentiated. Their derivatives are those
        of vectors of length 1 whose largest component is real; a function that depends on
        another choice of them has none.
      implementation: an `EigImplementation`; the platform's best by default.
      use_magma: deprecated: whether it is `EigImplementation.MAGMA` or `LAPACK`.

    Returns:
      (w, U, V), or (w, V), (w, U) or (w,): complex. Vectors are columns. NaN where the algorithm
      does not converge.

    Raises:
      TypeError: the dtype is not float32, float64, complex64 or complex128, or the rank below 2.
      ValueError: the matrices are not square, or the implementation is another platform's.

    >>> import pyjx as jax
    >>> w, u, v = jax.lax.linalg.eig(jax.numpy.array([[2.0, 0.0], [0.0, 1.0]]))
    >>> w.tolist()
    [(2+0j), (1+0j)]
    """
    if use_magma is not None:
        warn("use_magma is deprecated, please use implementation=EigImplementation.MAGMA instead.",
             DeprecationWarning)
        implementation = EigImplementation.MAGMA if use_magma else EigImplementation.LAPACK
    check_member("eig", "implementation", implementation, EigImplementation)
    return tuple(eig_p.bind(
        operand("eig", x), compute_left_eigenvectors=bool(compute_left_eigenvectors),
        compute_right_eigenvectors=bool(compute_right_eigenvectors),
        enable_eigvec_derivs=bool(enable_eigvec_derivs), implementation=implementation))


# -- schur -----------------------------------------------------------------------------------------


@weak_as_operands
def _schur_shape(x: ShapedArray, *, compute_schur_vectors: bool, sort_eig_vals: bool,
                 select_callable: Any) -> list[ShapedArray]:
    check_operands("schur", (x,), (2,))
    n = check_square("input to schur", x)
    return [typed(x, n, n)] * (2 if compute_schur_vectors else 1)


schur_p = register(Primitive("schur", arithmetic=SCHUR,
                             sharding_rule=along_batch(2), shape_rule=_schur_shape,
                             multiple_results=True))


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
                                  arithmetic=HESSENBERG, shape_rule=_hessenberg_shape,
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
                                   arithmetic=TRIDIAGONAL, shape_rule=_tridiagonal_shape,
                                   multiple_results=True))

for _p in (schur_p, hessenberg_p, tridiagonal_p):
    define_leading(_p)


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
