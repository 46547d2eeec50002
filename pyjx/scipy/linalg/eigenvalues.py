"""Eigenvalues of Hermitian and of tridiagonal matrices."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import ArrayLike
from pyjx.core.avals import get_aval
from pyjx.lax import linalg
from pyjx.lax.linalg.matrices import adjoint, product, symmetrized
from pyjx.numpy.operands import numpy_function
from pyjx.scipy.linalg.operands import arrays, stretched
from pyjx.transforms.custom_jvp import custom_jvp


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
