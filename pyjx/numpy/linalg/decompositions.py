"""Decompositions of matrices, and their eigenvalues and singular values.

The results are named tuples where NumPy's are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from pyjx import lax
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import get_aval
from pyjx.lax import linalg
from pyjx.lax.linalg.matrices import adjoint, spread_columns, take_rows, transposed
from pyjx.lax.linalg.reflectors import geqrf_p
from pyjx.lax.linalg.spectral import subset_bounds
from pyjx.numpy.operands import numpy_function
from pyjx.numpy.promotion import narrowed, operands, promote_dtypes_inexact
from pyjx.runtime.operations import op_jit


class EigResult(NamedTuple):
    """Eigenvalues, and eigenvectors as columns."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """Eigenvalues in ascending order, and eigenvectors as columns."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """A unitary and an upper triangular matrix."""

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """Left singular vectors as columns, singular values, right singular vectors as rows."""

    U: Array
    S: Array
    Vh: Array


def matrices(name: str, a: ArrayLike) -> Any:
    """The operand of the function `name` with an inexact dtype that the flags allow."""
    return narrowed(wide_matrices(name, a))


def wide_matrices(name: str, a: ArrayLike) -> Any:
    """`matrices` that stay of 64 bits where an array is, whatever the flags say."""
    return promote_dtypes_inexact(*operands(f"jnp.linalg.{name}", a))[0]


def check_square(name: str, a: ArrayLike) -> None:
    """Raise ValueError unless the operand's last two axes have one size.

    The name is written as messages have it that users match on.
    """
    shape = get_aval(a).shape
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ValueError(f"Argument to {name} must have shape [..., n, n], got {shape}.")


@op_jit(static_argnames=("upper", "symmetrize_input"), lists=True)
def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """The Cholesky decomposition a = L L^H, or a = U^H U.

    Unlike NumPy's, a matrix that is not positive definite gives NaN and no error.

    Args:
      a: Hermitian positive definite matrices, `[..., n, n]`.
      upper: whether to return U, the adjoint of L.
      symmetrize_input: whether to take (a + a^H) / 2 for `a`. If not, only the lower triangle
        is read, for U as well.

    Returns:
      A triangular matrix, of the shape of `a`.

    Raises:
      ValueError: the matrices are not square.
      TypeError: the dtype is none of those that LAPACK has, such as float16.

    >>> import pyjx as jax
    >>> jax.numpy.linalg.cholesky(jax.numpy.array([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    a = matrices("cholesky", a)
    check_square("linalg.cholesky", a)
    factor = linalg.cholesky(a, symmetrize_input=symmetrize_input)
    return adjoint(factor) if upper else factor


_QR_MODES = ("reduced", "complete", "full", "r", "raw")


@op_jit(static_argnames=("mode",), lists=True)
def qr(a: ArrayLike, mode: str = "reduced") -> Any:
    """The QR decomposition a = Q R.

    Args:
      a: matrices `[..., m, n]`.
      mode: `reduced` (also called `full`): Q is `[..., m, k]` and R `[..., k, n]`, where
        k = min(m, n); `complete`: `[..., m, m]` and `[..., m, n]`; `r`: only R; `raw`: LAPACK's
        reflections `[..., n, m]` and their scales `[..., k]`.

    Returns:
      A named tuple (Q, R), or R.

    Raises:
      ValueError: there is no such mode.
      TypeError: the rank is below 2, or the dtype none of those that LAPACK has.

    >>> import pyjx as jax
    >>> q, r = jax.numpy.linalg.qr(jax.numpy.array([[0.0, 1.0], [2.0, 3.0]]))
    >>> jax.numpy.abs(r).tolist()
    [[2.0, 3.0], [0.0, 1.0]]
    """
    a = matrices("qr", a)
    if mode not in _QR_MODES:
        raise ValueError(f"Unsupported QR decomposition mode '{mode}'; there are {_QR_MODES}")
    if mode == "raw":
        packed, taus = geqrf_p.bind(a)
        return QRResult(transposed(packed), taus)
    q, r = linalg.qr(a, full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


@numpy_function(static_argnames=("full_matrices", "compute_uv", "hermitian", "subset_by_index"))
def svd(a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False,
        subset_by_index: tuple[int, int] | None = None) -> Any:
    """The singular value decomposition a = U diag(S) Vh.

    Args:
      a: matrices `[..., m, n]`.
      full_matrices: whether U and Vh are square; else they have min(m, n) columns and rows.
      compute_uv: whether to return U and Vh.
      hermitian: whether `a` is Hermitian, so that its eigenvalues tell the singular ones.
      subset_by_index: (start, end): only those singular values, in descending order.

    Returns:
      A named tuple (U, S, Vh), or S: real and in descending order.

    Raises:
      ValueError: `subset_by_index` is out of range, or goes with full matrices.
      TypeError: the rank is below 2, or the dtype none of those that LAPACK has.

    >>> import pyjx as jax
    >>> jax.numpy.linalg.svd(jax.numpy.array([[3.0, 0.0], [0.0, -4.0]])).S.tolist()
    [4.0, 3.0]
    >>> x = jax.numpy.arange(6.0).reshape(2, 3)
    >>> u, s, vh = jax.numpy.linalg.svd(x, full_matrices=False)
    >>> bool(jax.numpy.allclose((u * s) @ vh, x, atol=1e-5))
    True
    """
    a = wide_matrices("svd", a)
    if hermitian:
        return _svd_of_hermitian(a, compute_uv, subset_by_index)
    found = linalg.svd(a, full_matrices=full_matrices, compute_uv=compute_uv,
                       subset_by_index=subset_by_index)
    return SVDResult(*found) if compute_uv else found


def _svd_of_hermitian(a: ArrayLike, compute_uv: bool, subset: Any) -> Any:
    """From a = V diag(w) V^H: the singular values are |w|, in another order."""
    v, w = linalg.eigh(a)
    sizes = lax.abs(w)
    axis = get_aval(w).ndim - 1
    bounds = subset_bounds("svd", subset, get_aval(w).shape[-1])
    places = lax.broadcasted_iota("int32", get_aval(w).shape, axis)
    keys, order = lax.sort((lax.neg(sizes), places), dimension=axis, num_keys=1)
    s = lax.neg(keys)
    if bounds is not None:
        s, order = (lax.slice_in_dim(x, *bounds, axis=axis) for x in (s, order))
    if not compute_uv:
        return s
    rows = adjoint(v)
    one = lax.full_like(w, 1)
    signs = lax.convert_element_type(lax.select(lax.lt(w, lax.full_like(w, 0)), lax.neg(one), one),
                                     get_aval(v).dtype)
    signed = lax.mul(rows, spread_columns(signs, get_aval(v).shape))
    u = transposed(take_rows(transposed(v), order))
    return SVDResult(u, s, take_rows(signed, order))


@numpy_function
def svdvals(x: ArrayLike, /) -> Array:
    """The singular values of matrices `[..., m, n]`, in descending order.

    Returns:
      A real array (..., min(m, n)), in descending order.

    >>> import pyjx as jax
    >>> jax.numpy.linalg.svdvals(jax.numpy.array([[3.0, 0.0], [0.0, -4.0]])).tolist()
    [4.0, 3.0]
    """
    return linalg.svd(wide_matrices("svdvals", x), full_matrices=False, compute_uv=False)


# -- eigenvalues -----------------------------------------------------------------------------------


def _eigh(name: str, a: ArrayLike, triangle: str | None, symmetrize_input: bool) -> tuple[Any, Any]:
    if triangle not in (None, "L", "U"):
        raise ValueError(f"UPLO must be one of None, 'L', or 'U', got {triangle}")
    a = matrices(name, a)
    check_square("linalg.eigh", a)
    return linalg.eigh(a, lower=triangle != "U", symmetrize_input=symmetrize_input)


@op_jit(static_argnames=("UPLO", "symmetrize_input"), lists=True)
def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """The eigenvalues and eigenvectors of Hermitian matrices.

    Where eigenvalues coincide, the derivative of the eigenvectors is not finite.

    Args:
      a: Hermitian matrices, `[..., n, n]`.
      UPLO: `L` or `U`: which triangle is read where `symmetrize_input` is false; by default `L`.
      symmetrize_input: whether to take (a + a^H) / 2 for `a`; NumPy reads one triangle.

    Returns:
      A named tuple (eigenvalues, eigenvectors): real, in ascending order; and unitary matrices.

    Raises:
      ValueError: the matrices are not square, or `UPLO` is another one.
      TypeError: the dtype is none of those that LAPACK has, such as float16.

    >>> import pyjx as jax
    >>> jax.numpy.linalg.eigh(jax.numpy.array([[2.0, 0.0], [0.0, 1.0]])).eigenvalues.tolist()
    [1.0, 2.0]
    >>> a = jax.numpy.array([[2.0, 1.0], [1.0, 2.0]])
    >>> values, vectors = jax.numpy.linalg.eigh(a)
    >>> bool(jax.numpy.allclose((vectors * values) @ vectors.T, a, atol=1e-5))
    True
    """
    v, w = _eigh("eigh", a, UPLO, symmetrize_input)
    return EighResult(w, v)


@op_jit(static_argnames=("UPLO", "symmetrize_input"), lists=True)
def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """The eigenvalues of Hermitian matrices, in ascending order; arguments as for `eigh`.

    Returns:
      A real array (..., n), in ascending order.

    >>> import pyjx as jax
    >>> jax.numpy.linalg.eigvalsh(jax.numpy.array([[2.0, 0.0], [0.0, 1.0]])).tolist()
    [1.0, 2.0]
    """
    return _eigh("eigvalsh", a, UPLO, symmetrize_input)[1]


@numpy_function
def eig(a: ArrayLike) -> EigResult:
    """The eigenvalues and right eigenvectors of square matrices; not on TPU.

    The results are complex for real matrices too, as NumPy's are only where they need be.
    Eigenvalues can be differentiated, eigenvectors by `jax.lax.linalg.eig` only.

    Args:
      a: matrices `[..., n, n]`.

    Returns:
      A named tuple (eigenvalues, eigenvectors): `[..., n]`, in no order, and `[..., n, n]`, of
      which column i belongs to eigenvalue i.

    Raises:
      ValueError: the matrices are not square.
      TypeError: the rank is below 2, or the dtype none of those that LAPACK has.

    >>> import pyjx as jax
    >>> jax.numpy.linalg.eig(jax.numpy.array([[2.0, 0.0], [0.0, 1.0]])).eigenvalues.tolist()
    [(2+0j), (1+0j)]
    """
    w, v = linalg.eig(wide_matrices("eig", a), compute_left_eigenvectors=False)
    return EigResult(w, v)


@numpy_function
def eigvals(a: ArrayLike) -> Array:
    """The eigenvalues of square matrices, complex and in no order; not on TPU.

    Returns:
      A complex array (..., n), in no order.

    >>> import pyjx as jax
    >>> jax.numpy.linalg.eigvals(jax.numpy.array([[2.0, 0.0], [0.0, 1.0]])).tolist()
    [(2+0j), (1+0j)]
    """
    (w,) = linalg.eig(wide_matrices("eigvals", a), compute_left_eigenvectors=False,
                      compute_right_eigenvectors=False)
    return w
