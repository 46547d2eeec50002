"""Decompositions of matrices, and eigenvalues of Hermitian and of tridiagonal ones."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import get_aval
from pyjx.lax import linalg
from pyjx.lax.elementwise import real_dtype
from pyjx.lax.linalg.matrices import (
    adjoint,
    check_rows_as_columns,
    conjugate,
    corner,
    identity_like,
    lower_triangle,
    product,
    spread_columns,
    spread_rows,
    symmetrized,
    transposed,
    upper_triangle,
)
from pyjx.lax.linalg.reflectors import geqp3_p, geqrf_p
from pyjx.lax.linalg.spectral import unitary_factor
from pyjx.numpy.operands import numpy_function
from pyjx.numpy.promotion import convert
from pyjx.scipy.linalg.operands import array, arrays, as_complex, stretched, wide_array
from pyjx.transforms.custom_jvp import custom_jvp

# -- Cholesky --------------------------------------------------------------------------------------


def _cholesky(a: ArrayLike, lower: bool) -> Any:
    a = wide_array("cholesky", a)
    check_rows_as_columns("linalg.cholesky", get_aval(a))
    # SciPy reads the triangle that it returns.
    factor = linalg.cholesky(a if lower else adjoint(a), symmetrize_input=False)
    return factor if lower else adjoint(factor)


@numpy_function(static_argnames=("lower", "overwrite_a", "check_finite"))
def cholesky(a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
             ) -> Array:
    """The Cholesky decomposition: U with U^H U = a, or L with L L^H = a.

    A matrix that is not positive definite gives NaN and no error.

    Args:
      a: Hermitian positive definite matrices `[..., n, n]`; only one triangle is read.
      lower: whether to return L, from the lower triangle, or U.
      overwrite_a, check_finite: mean nothing.

    Raises:
      ValueError: the matrices are not square.
      TypeError: the dtype is none of those that LAPACK has, such as float16.

    >>> import pyjx as jax
    >>> jax.scipy.linalg.cholesky(jax.numpy.array([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 1.0], [0.0, 2.0]]
    """
    return _cholesky(a, lower)


def cho_factor(a: ArrayLike, lower: bool = False, overwrite_a: bool = False,
               check_finite: bool = True) -> tuple[Array, bool]:
    """The Cholesky decomposition for `cho_solve`: the factor, and whether it is the lower one.

    The other triangle is zero, where SciPy's holds anything.

    Args:
      a, lower: as for `cholesky`.
      overwrite_a, check_finite: mean nothing.

    >>> import pyjx as jax
    >>> c, lower = jax.scipy.linalg.cho_factor(jax.numpy.array([[4.0, 2.0], [2.0, 5.0]]))
    >>> lower
    False
    """
    return cholesky(a, lower=lower), lower


# -- LU --------------------------------------------------------------------------------------------


@numpy_function(static_argnames=("overwrite_a", "check_finite"))
def lu_factor(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True
             ) -> tuple[Array, Array]:
    """The LU decomposition for `lu_solve`: (lu, pivots), as `jax.lax.linalg.lu` returns them.

    Args:
      a: matrices `[..., m, n]`.
      overwrite_a, check_finite: mean nothing.

    >>> import pyjx as jax
    >>> lu, pivots = jax.scipy.linalg.lu_factor(jax.numpy.array([[1.0, 2.0], [2.0, 8.0]]))
    >>> lu.tolist(), pivots.tolist()
    ([[2.0, 8.0], [0.5, -2.0]], [1, 1])
    """
    factors, pivots, _ = linalg.lu(wide_array("lu_factor", a))
    return factors, pivots


@numpy_function(static_argnames=("permute_l", "overwrite_a", "check_finite"))
def lu(a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True
       ) -> Any:
    """The LU decomposition a = P L U.

    Args:
      a: matrices `[..., m, n]`.
      permute_l: whether to return P L in place of both.
      overwrite_a, check_finite: mean nothing.

    Returns:
      (P, L, U) or (P L, U): `[..., m, m]`, `[..., m, k]` and `[..., k, n]`, k = min(m, n). The
      permutation is real.

    Raises:
      TypeError: the rank is below 2, or the dtype none of those that LAPACK has.

    >>> import pyjx as jax
    >>> p, l, u = jax.scipy.linalg.lu(jax.numpy.array([[1.0, 2.0], [2.0, 8.0]]))
    >>> p.tolist(), l.tolist(), u.tolist()
    ([[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.5, 1.0]], [[2.0, 8.0], [0.0, -2.0]])
    """
    a = array("lu", a)
    factors, _, order = linalg.lu(a)
    *batch, m, n = get_aval(a).shape
    k = min(m, n)
    left = corner(factors, m, k)
    left = lax.add(lower_triangle(left, -1), identity_like(left))
    right = upper_triangle(corner(factors, k, n))
    # Row i of P^T has its one at place order[i].
    shape = (*batch, m, m)
    rows = lax.broadcasted_iota(np.int32, shape, len(batch))
    chosen = lax.eq(rows, spread_rows(order, shape))
    if permute_l:
        return product(lax.convert_element_type(chosen, get_aval(a).dtype), left), right
    return lax.convert_element_type(chosen, real_dtype(get_aval(a).dtype)), left, right


# -- QR --------------------------------------------------------------------------------------------


@numpy_function(static_argnames=("overwrite_a", "lwork", "mode", "pivoting", "check_finite"))
def qr(a: ArrayLike, overwrite_a: bool = False, lwork: Any = None, mode: str = "full",
       pivoting: bool = False, check_finite: bool = True) -> tuple[Array, ...]:
    """The QR decomposition a = Q R.

    Args:
      a: matrices `[..., m, n]`.
      mode: `full`: Q is `[..., m, m]`; `economic`: it has min(m, n) columns; `r`: only R is
        returned, as for `full`. SciPy's `raw` is not there.
      pivoting: whether to exchange columns so that the diagonal of R decreases; not on TPU.
      overwrite_a, lwork, check_finite: mean nothing.

    Returns:
      (Q, R), or (R,); with `pivoting` the order p of columns too: `a[:, p] = Q R`.

    Raises:
      ValueError: there is no such mode.
      TypeError: the rank is below 2, or the dtype none of those that LAPACK has.

    >>> import pyjx as jax
    >>> q, r = jax.scipy.linalg.qr(jax.numpy.array([[0.0, 1.0], [2.0, 3.0]]))
    >>> jax.numpy.abs(r).tolist()
    [[2.0, 3.0], [0.0, 1.0]]
    """
    if mode not in ("full", "r", "economic"):
        raise ValueError(f"Unsupported QR decomposition mode '{mode}'; there are 'full', 'r' "
                         "and 'economic'")
    q, *rest = linalg.qr(array("qr", a), pivoting=pivoting, full_matrices=mode != "economic")
    return tuple(rest) if mode == "r" else (q, *rest)


@numpy_function(static_argnames=("mode", "pivoting", "conjugate", "overwrite_a", "overwrite_c"))
def qr_multiply(a: ArrayLike, c: ArrayLike, mode: str = "right", pivoting: bool = False,
                conjugate: bool = False, overwrite_a: bool = False, overwrite_c: bool = False
                ) -> tuple[Array, ...]:
    """The product of `c` with Q of the QR decomposition a = Q R, without making Q.

    Args:
      a: a matrix `[m, n]`, or several; Q has k = min(m, n) columns.
      c: `[k, p]` for Q c, `[p, m]` for c Q, whose batch axes are broadcast with those of `a`; or a
        vector.
      mode: `left` for Q c, `right` for c Q.
      pivoting: whether to exchange columns of `a`; not on TPU.
      conjugate: whether to take the conjugate of Q.
      overwrite_a, overwrite_c: mean nothing.

    Returns:
      (product, R), and with `pivoting` the order of columns.

    Raises:
      ValueError: there is no such mode, or the shapes do not fit.

    >>> import pyjx as jax
    >>> a = jax.numpy.array([[0.0, 1.0], [2.0, 3.0]])
    >>> qc, r = jax.scipy.linalg.qr_multiply(a, jax.numpy.eye(2), mode="left")
    >>> jax.numpy.allclose(qc @ r, a).tolist()
    True
    """
    if mode not in ("left", "right"):
        raise ValueError(f"mode must be 'right' or 'left', got {mode!r}")
    a, c = arrays("qr_multiply", a, c)
    if get_aval(a).ndim < 2 or not get_aval(c).ndim:
        raise ValueError("qr_multiply: expected matrices and a vector or matrix, got shapes "
                         f"{get_aval(a).shape} and {get_aval(c).shape}")
    m, n = get_aval(a).shape[-2:]
    k, left = min(m, n), mode == "left"
    vector = get_aval(c).ndim == 1
    if vector:
        c = lax.expand_dims(c, (1 if left else 0,))
    size, wanted = (get_aval(c).shape[-2], k) if left else (get_aval(c).shape[-1], m)
    if size != wanted:
        text = ("Q @ c", f"Q has {k} columns", "rows") if left else (
            "c @ Q", f"Q has {m} rows", "columns")
        raise ValueError(f"Array shapes are not compatible for {text[0]} operation: a has shape "
                         f"{get_aval(a).shape} so {text[1]}, but c has {size} {text[2]} (expected "
                         f"{wanted}).")
    a, c = stretched(a, c)
    if pivoting:
        free = lax.full((*get_aval(a).shape[:-2], n), 0, np.int32)
        packed, *order, taus = geqp3_p.bind(a, free, use_magma=None)
    else:
        packed, *order, taus = geqrf_p.bind(a)
    c = _conjugated(c, conjugate)
    if left and m > k:  # the rest of Q's columns meet zeros
        padding = [(0, 0, 0)] * (get_aval(c).ndim - 2) + [(0, m - k, 0), (0, 0, 0)]
        c = lax.pad(c, np.zeros((), get_aval(c).dtype)[()], padding)
    out = linalg.ormqr(corner(packed, m, k), taus, c, left=left)
    if not left:
        out = lax.slice_in_dim(out, 0, k, axis=get_aval(out).ndim - 1)
    out = _conjugated(out, conjugate)
    if vector:
        out = lax.squeeze(out, (get_aval(out).ndim - (1 if left else 2),))
    return (out, upper_triangle(corner(packed, k, n)), *order)


def _conjugated(x: ArrayLike, wanted: bool) -> Any:
    return conjugate(x) if wanted else x


# -- singular values, polar ------------------------------------------------------------------------


@numpy_function(static_argnames=("full_matrices", "compute_uv", "overwrite_a", "check_finite",
                                 "lapack_driver"))
def svd(a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True,
        overwrite_a: bool = False, check_finite: bool = True, lapack_driver: str = "gesdd") -> Any:
    """The singular value decomposition a = U diag(s) V^H: (U, s, V^H), or s.

    Args:
      a: matrices `[..., m, n]`.
      full_matrices: whether U and V^H are square; else they have min(m, n) columns and rows.
      compute_uv: whether to return U and V^H.
      overwrite_a, check_finite, lapack_driver: mean nothing.

    >>> import pyjx as jax
    >>> u, s, vh = jax.scipy.linalg.svd(jax.numpy.array([[3.0, 0.0], [0.0, -4.0]]))
    >>> s.tolist()
    [4.0, 3.0]
    """
    return linalg.svd(wide_array("svd", a), full_matrices=full_matrices, compute_uv=compute_uv)


@numpy_function(static_argnames=("side", "method", "eps", "max_iterations"))
def polar(a: ArrayLike, side: str = "right", *, method: str = "qdwh", eps: float | None = None,
          max_iterations: int | None = None) -> tuple[Array, Array]:
    """The polar decomposition a = U P, or a = P U.

    Args:
      a: matrices `[..., m, n]`.
      side: where P stands.
      method: `qdwh`, an iteration (see `jax.lax.linalg.qdwh`), for matrices whose P is not the
        larger of both possible ones, or `svd`, which serves for the others too.
      eps, max_iterations: of the iteration: its tolerance, and at most how many steps.

    Returns:
      (U, P): with orthonormal columns or rows; and Hermitian without negative eigenvalues.

    Raises:
      ValueError: there is no such side or method, or the rank is below 2.

    >>> import pyjx as jax
    >>> u, p = jax.scipy.linalg.polar(jax.numpy.array([[0.0, -2.0], [3.0, 0.0]]))
    >>> jax.numpy.round(u).tolist(), jax.numpy.round(p).tolist()
    ([[0.0, -1.0], [1.0, 0.0]], [[3.0, 0.0], [0.0, 2.0]])
    """
    a = array("polar", a)
    if get_aval(a).ndim < 2:
        raise ValueError("The input `a` must be at least a 2-D array.")
    if side not in ("right", "left"):
        raise ValueError(f"The argument `side` must be either 'right' or 'left', got {side!r}.")
    if method not in ("qdwh", "svd"):
        raise ValueError(f"Unknown polar decomposition method {method}. There are 'qdwh' and "
                         "'svd'.")
    right = side == "right"
    m, n = get_aval(a).shape[-2:]
    if method == "svd" or (m < n if right else m > n):
        u, s, vh = linalg.svd(a, full_matrices=False)
        scale = lax.convert_element_type(s, get_aval(a).dtype)
        if right:
            p = product(adjoint(vh), lax.mul(spread_columns(scale, get_aval(vh).shape), vh))
        else:
            p = product(lax.mul(u, spread_rows(scale, get_aval(u).shape)), adjoint(u))
        return product(u, vh), p
    # a = P U is a^H = U^H P
    u, _, _ = unitary_factor(a if right else adjoint(a), max_iterations, eps)
    p = symmetrized(product(adjoint(u), a if right else adjoint(a)))
    return (u if right else adjoint(u)), p


# -- Schur and Hessenberg --------------------------------------------------------------------------


@numpy_function(static_argnames=("output",))
def schur(a: ArrayLike, output: str = "real") -> tuple[Array, Array]:
    """The Schur decomposition a = Z T Z^H; on CPU only.

    Args:
      a: matrices `[..., n, n]`.
      output: `real` or `complex`: what T and Z are for a real matrix.

    Returns:
      (T, Z). A real T may have blocks of two rows on its diagonal.

    Raises:
      ValueError: there is no such output, or the matrices are not square.

    >>> import pyjx as jax
    >>> t, z = jax.scipy.linalg.schur(jax.numpy.array([[1.0, 2.0], [0.0, 3.0]]))
    >>> t.tolist()
    [[1.0, 2.0], [0.0, 3.0]]
    """
    if output not in ("real", "complex"):
        raise ValueError("Expected 'output' to be either 'real' or 'complex', got "
                         f"output={output!r}.")
    a = wide_array("schur", a)
    form, z = linalg.schur(as_complex(a) if output == "complex" else a)
    return form, z


@numpy_function(static_argnames=("check_finite",))
def rsf2csf(T: ArrayLike, Z: Any, check_finite: bool = True) -> tuple[Array, Array]:
    """The complex Schur form of matrices from the real one.

    One rotation takes each block of two rows on the diagonal to an upper triangular one.

    Args:
      T, Z: matrices `[..., n, n]`, as `schur` returns them; their leading axes broadcast.
      check_finite: means nothing.

    Returns:
      (T, Z), complex, T upper triangular if T was no more than a real Schur form.

    Raises:
      ValueError: the matrices are not square, or their shapes differ.

    >>> import pyjx as jax
    >>> t, z = jax.scipy.linalg.schur(jax.numpy.array([[0.0, 1.0], [-1.0, 0.0]]))
    >>> t, z = jax.scipy.linalg.rsf2csf(t, z)
    >>> jax.numpy.round(jax.numpy.diag(t)).tolist()
    [1j, -1j]
    """
    form, z = arrays("rsf2csf", T, Z)
    for name, x in (("T", form), ("Z", z)):
        shape = get_aval(x).shape
        if len(shape) < 2 or shape[-1] != shape[-2]:
            raise ValueError(f"Input '{name}' must be square.")
    if get_aval(form).shape[-1] != get_aval(z).shape[-1]:
        raise ValueError(f"Input array shapes must match: Z: {get_aval(z).shape} vs. T: "
                         f"{get_aval(form).shape}")
    return complex_form(*stretched(form, z))


def complex_form(form: Any, z: ArrayLike) -> tuple[Any, Any]:
    """`rsf2csf` of matrices of one shape."""
    aval = get_aval(form)
    form, z = as_complex(form), as_complex(z)
    dtype = get_aval(form).dtype
    n, row, column = aval.shape[-1], aval.ndim - 2, aval.ndim - 1
    rows, columns = (lax.broadcasted_iota(np.int32, aval.shape, axis) for axis in (row, column))

    def rotate(step: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
        form, z = state
        first = np.int32(n - 2) - lax.convert_element_type(step, np.int32)
        second = first + np.int32(1)
        turn = _rotation(form, first)
        pair = product(turn, lax.dynamic_slice_in_dim(form, first, 2, row))
        turned = lax.dynamic_update_slice_in_dim(form, pair, first, row)
        form = lax.select(lax.ge(columns, lax.broadcast(first, aval.shape)), turned, form)
        back = adjoint(turn)
        turned, z = (lax.dynamic_update_slice_in_dim(
            x, product(lax.dynamic_slice_in_dim(x, first, 2, column), back), first, column)
            for x in (form, z))
        form = lax.select(lax.le(rows, lax.broadcast(second, aval.shape)), turned, form)
        below = lax.bitwise_and(lax.eq(rows, lax.broadcast(second, aval.shape)),
                                lax.eq(columns, lax.broadcast(first, aval.shape)))
        return lax.select(below, lax.full_like(form, 0), form), z

    if n > 1:
        form, z = lax.fori_loop(np.int32(0), np.int32(n - 1), rotate, (form, z))
    return convert(form, dtype, aval.weak_type), convert(z, dtype, aval.weak_type)


def _rotation(form: Any, first: ArrayLike) -> Any:
    """What makes rows `first` and the next of matrices upper triangular on the diagonal."""
    *batch, _, _ = get_aval(form).shape
    axis = len(batch)
    block = lax.dynamic_slice_in_dim(lax.dynamic_slice_in_dim(form, first, 2, axis), first, 2,
                                     axis + 1)
    (a, b), (c, d) = [[lax.index_in_dim(lax.index_in_dim(block, i, axis, False), j, axis, False)
                       for j in range(2)] for i in range(2)]
    half = (a - d) / 2
    root = lax.sqrt(half * half + b * c)
    # An eigenvalue less d: the larger one, which does not cancel, or that above the real axis.
    against = lax.lt(lax.real(half * lax.conj(root)), lax.full_like(lax.real(half), 0))
    shift = half + lax.select(against, lax.neg(root), root)
    size = lax.sqrt(lax.abs(shift) ** 2 + lax.abs(c) ** 2)
    eps = dtypes.finfo(get_aval(form).dtype).eps
    coupled = lax.abs(c) > eps * (lax.abs(a) + lax.abs(d))
    safe = lax.select(coupled, size, lax.full_like(size, 1))
    one, zero = lax.full_like(shift, 1), lax.full_like(shift, 0)
    cosine, sine = (lax.select(coupled, x / lax.convert_element_type(safe, x.dtype), y)
                    for x, y in ((shift, one), (c, zero)))
    turn = lax.stack([lax.conj(cosine), sine, lax.neg(sine), cosine], axis)
    return lax.reshape(turn, (*batch, 2, 2))


@numpy_function(static_argnames=("calc_q", "overwrite_a", "check_finite"))
def hessenberg(a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False,
               check_finite: bool = True) -> Any:
    """The reduction a = Q H Q^H to Hessenberg matrices, zero below the diagonal beside the main
    one; on CPU only.

    Args:
      a: matrices `[..., n, n]`.
      calc_q: whether to return Q.
      overwrite_a, check_finite: mean nothing.

    Returns:
      H, or (H, Q).

    Raises:
      ValueError: the matrices are not square.

    >>> import pyjx as jax
    >>> jax.scipy.linalg.hessenberg(jax.numpy.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    a = array("hessenberg", a)
    if get_aval(a).shape[-2:] in ((0, 0), (1, 1)):
        return (a, identity_like(a)) if calc_q else a
    packed, taus = linalg.hessenberg(a)
    *batch, n, _ = get_aval(a).shape
    form = upper_triangle(packed, -1)
    if not calc_q:
        return form
    start, stop = [0] * len(batch), list(batch)
    below = lax.slice(packed, (*start, 1, 0), (*stop, n, n - 1))
    q = linalg.householder_product(below, taus)
    padding = [(0, 0, 0)] * len(batch) + [(1, 0, 0), (1, 0, 0)]
    q = lax.pad(q, np.zeros((), get_aval(a).dtype)[()], padding)
    first = lax.broadcasted_iota(np.int32, (*batch, n, n), len(batch))
    one = lax.bitwise_and(lax.eq(first, np.int32(0)), lax.eq(transposed(first), np.int32(0)))
    return form, lax.select(one, lax.full_like(q, 1), q)


# -- eigenvalues -----------------------------------------------------------------------------------


@numpy_function(static_argnames=("lower", "eigvals_only", "overwrite_a", "overwrite_b", "turbo",
                                 "eigvals", "type", "check_finite"))
def eigh(a: ArrayLike, b: ArrayLike | None = None, lower: bool = True, eigvals_only: bool = False,
         overwrite_a: bool = False, overwrite_b: bool = False, turbo: bool = True,
         eigvals: None = None, type: int = 1, check_finite: bool = True) -> Any:
    """The eigenvalues and eigenvectors of Hermitian matrices, or of pairs of them.

    Args:
      a: Hermitian matrices `[..., n, n]`.
      b: Hermitian positive definite matrices `[..., n, n]`; the identity by default.
      lower: which triangle to read where the matrices are not quite Hermitian: none alone, the
        mean of both is taken.
      eigvals_only: whether to return no eigenvectors.
      type: 1 for a v = w b v, 2 for a b v = w v, 3 for b a v = w v.
      eigvals: not supported.
      overwrite_a, overwrite_b, turbo, check_finite: mean nothing.

    Returns:
      (w, v), eigenvalues in ascending order and eigenvectors as columns; or w.

    Raises:
      ValueError: the matrices are not square, or there is no such type.
      NotImplementedError: `eigvals` is given.

    >>> import pyjx as jax
    >>> a, b = jax.numpy.diag(jax.numpy.array([2.0, 8.0])), 2 * jax.numpy.eye(2)
    >>> jax.numpy.round(jax.scipy.linalg.eigh(a, b, eigvals_only=True)).tolist()
    [1.0, 4.0]
    """
    if eigvals is not None:
        raise NotImplementedError("Only the eigvals=None case of eigh is implemented.")
    if type not in (1, 2, 3):
        raise ValueError(f"eigh: type must be 1, 2, or 3. Got {type}.")
    given = arrays("eigh", a) if b is None else arrays("eigh", a, b)
    for name, x in zip("ab", given, strict=False):
        shape = get_aval(x).shape
        if len(shape) < 2 or shape[-1] != shape[-2]:
            raise ValueError(f"Argument {name} to linalg.eigh must have shape [..., n, n], got "
                             f"{shape}.")
    if b is None:
        v, w = linalg.eigh(given[0], lower=lower)
        return w if eigvals_only else (w, v)
    a, b = stretched(*given)
    factor = linalg.cholesky(b)
    solve = partial(linalg.triangular_solve, factor, lower=True)
    if type == 1:  # L^-1 a L^-H
        inner = solve(solve(a, left_side=True), transpose_a=True, conjugate_a=True)
    else:  # L^H a L
        inner = product(product(adjoint(factor), a), factor)
    v, w = linalg.eigh(symmetrized(inner), symmetrize_input=False)
    if eigvals_only:
        return w
    if type == 3:
        return w, product(factor, v)
    return w, solve(v, left_side=True, transpose_a=True, conjugate_a=True)


# -- tridiagonal matrices --------------------------------------------------------------------------


def _dense(d: ArrayLike, e: ArrayLike) -> Any:
    above = jnp.diag(e, 1)
    dtype = get_aval(above).dtype
    matrix = jnp.diag(lax.convert_element_type(d, dtype))
    return lax.add(matrix, lax.add(above, adjoint(above)))


def _count_below(d: ArrayLike, squares: Any, x: ArrayLike) -> Any:
    """How many eigenvalues are below each x: as many as the factors of T - x I have negative
    pivots (Sylvester's law of inertia)."""
    tiny = lax.full_like(x, dtypes.finfo(get_aval(x).dtype).tiny)

    def step(carry: Any, row: Any) -> Any:
        pivot, count = carry
        here, square = row
        pivot = here - x - square / pivot
        pivot = lax.select(lax.lt(lax.abs(pivot), tiny), lax.neg(tiny), pivot)
        return (pivot, count + lax.convert_element_type(pivot < 0, np.int32)), None

    start = (lax.full_like(x, 1), lax.full_like(x, 0, np.int32))
    return lax.scan(step, start, (d, squares))[0][1]


@partial(custom_jvp, nondiff_argnums=(2,))
def _eigenvalues(d: ArrayLike, e: ArrayLike, bounds: tuple[int, int]) -> Any:
    """The eigenvalues number `bounds[0]` to `bounds[1]`, each between bounds that bisection
    brings together."""
    sizes = lax.abs(e)
    zero = lax.full((1,), 0, get_aval(d).dtype)
    squares = lax.concatenate([zero, sizes * sizes], 0)
    reach = lax.concatenate([zero, sizes], 0) + lax.concatenate([sizes, zero], 0)
    # Gershgorin's circles
    low, high = jnp.min(d - reach), jnp.max(d + reach)
    margin = dtypes.finfo(get_aval(d).dtype).eps * (1 + jnp.maximum(lax.abs(low), lax.abs(high)))
    numbers = lax.iota(np.int32, bounds[1] - bounds[0]) + np.int32(bounds[0])
    shape = get_aval(numbers).shape
    state = (lax.broadcast(low - margin, shape), lax.broadcast(high + margin, shape))
    steps = dtypes.finfo(get_aval(d).dtype).nmant + 4

    def halve(_: Any, state: Any) -> Any:
        low, high = state
        middle = (low + high) / 2
        above = _count_below(d, squares, middle) > numbers
        return lax.select(above, low, middle), lax.select(above, middle, high)

    low, high = lax.fori_loop(np.int32(0), np.int32(steps), halve, state)
    return (low + high) / 2


@_eigenvalues.defjvp
def _eigenvalues_jvp(bounds: tuple[int, int], primals: Any, tangents: Any) -> Any:
    # dw_i = v_i^H dT v_i
    (d, e), (dd, de) = primals, tangents
    v, _ = linalg.eigh(_dense(d, e))
    v = v[:, bounds[0]:bounds[1]]
    moved = product(_dense(dd, de), v)
    return _eigenvalues(d, e, bounds), jnp.sum(jnp.real(jnp.conj(v) * moved), 0)


@numpy_function(static_argnames=("eigvals_only", "select", "select_range", "tol"))
def eigh_tridiagonal(d: ArrayLike, e: ArrayLike, *, eigvals_only: bool = False, select: str = "a",
                     select_range: tuple[int, int] | None = None, tol: float | None = None,
                     key: ArrayLike | None = None) -> Any:
    """The eigenvalues, and eigenvectors, of a Hermitian tridiagonal matrix.

    Eigenvalues alone are found by bisection, in memory that grows with n; with eigenvectors the
    whole matrix is made.

    Args:
      d: the diagonal, `[n]`.
      e: the one above it, `[n - 1]`; complex numbers are conjugated below.
      eigvals_only: whether to return no eigenvectors.
      select: `a` for all eigenvalues, `i` for those with the numbers of `select_range`. SciPy's
        `v` is not there, as the size of its result depends on values.
      select_range: the first and the last number, counted from 0 in ascending order.
      tol, key: mean nothing: the result is as precise as the dtype allows.

    Returns:
      w, in ascending order, or (w, v) with eigenvectors as columns.

    Raises:
      TypeError: the dtypes differ or are none of floats, or the shapes do not fit.
      ValueError: there is no such selection.
      NotImplementedError: `select` is `v`.

    >>> import pyjx as jax
    >>> d, e = jax.numpy.array([2.0, 2.0]), jax.numpy.array([1.0])
    >>> jax.numpy.round(jax.scipy.linalg.eigh_tridiagonal(d, e, eigvals_only=True)).tolist()
    [1.0, 3.0]
    """
    d, e = (jnp.asarray(x) for x in (d, e))
    x, y = get_aval(d), get_aval(e)
    floats = (np.float32, np.float64, np.complex64, np.complex128)
    if x.dtype not in floats or y.dtype not in floats:
        raise TypeError("Only float32 and float64 inputs are supported as inputs to "
                        f"jax.scipy.linalg.eigh_tridiagonal, got {x.dtype} and {y.dtype}")
    # the diagonal of a Hermitian matrix is real
    if x.dtype != y.dtype and np.promote_types(x.dtype, np.complex64) != y.dtype:
        raise TypeError("eigh_tridiagonal: diagonal and off-diagonal values must have same dtype, "
                        f"got {x.dtype} and {y.dtype}")
    if x.ndim != 1 or y.shape != (max(x.shape[0] - 1, 0),):
        raise TypeError("eigh_tridiagonal: expected diagonals of shapes [n] and [n - 1], got "
                        f"{x.shape} and {y.shape}")
    d = lax.real(d) if x.dtype.kind == "c" else d
    bounds = _selected(select, select_range, x.shape[0])
    if not eigvals_only:
        v, w = linalg.eigh(_dense(d, e))
        return w[bounds[0]:bounds[1]], v[:, bounds[0]:bounds[1]]
    return d[bounds[0]:bounds[1]] if x.shape[0] <= 1 else _eigenvalues(d, e, bounds)


def _selected(select: str, chosen: Any, n: int) -> tuple[int, int]:
    if select == "v":
        raise NotImplementedError("eigh_tridiagonal(..., select='v') is not implemented")
    if select not in ("a", "i"):
        raise ValueError(f"'select must have a value in {{'a', 'i', 'v'}}, got {select!r}.")
    if select == "a":
        return 0, n
    if chosen is None:
        raise ValueError("for select='i', select_range must be specified.")
    first, last = (int(i) for i in chosen)
    if first > last:
        raise ValueError("Got empty index range in select_range.")
    if first < 0 or last >= n:
        raise ValueError(f"eigh_tridiagonal: select_range {tuple(chosen)} is out of range for "
                         f"{n} eigenvalues.")
    return first, last + 1
