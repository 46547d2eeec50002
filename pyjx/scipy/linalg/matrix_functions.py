"""Functions of matrices: exponential, square root, any."""

from __future__ import annotations

from collections.abc import Callable
from math import comb, factorial
from typing import Any

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import get_aval
from pyjx.lax import linalg
from pyjx.lax.elementwise import real_dtype
from pyjx.lax.linalg.general_systems import solve
from pyjx.lax.linalg.matrices import (
    MATRIX_DTYPES,
    adjoint,
    diagonal,
    identity_like,
    is_complex,
    on_diagonal,
    product,
    spread_columns,
    spread_rows,
    transposed,
    upper_triangle,
)
from pyjx.numpy.operands import numpy_function
from pyjx.runtime.operations import body_of
from pyjx.scipy.linalg.factors import complex_form
from pyjx.scipy.linalg.operands import array, arrays, as_complex
from pyjx.transforms.linearize import jvp

# -- the exponential -------------------------------------------------------------------------------

# The degree of the rational approximation, and up to which 1-norm it is precise (Higham, The
# scaling and squaring method for the matrix exponential revisited, 2005, table 2.3).
_DEGREES = {np.dtype(np.float32): (7, 3.925724783138660), np.dtype(np.float64): (
    13, 5.371920351148152)}


def _coefficients(degree: int) -> list[float]:
    """b_k of the polynomial p with exp(x) = p(x) / p(-x), scaled to integers."""
    scale = factorial(2 * degree) // factorial(degree)
    return [float(scale * comb(degree, k) * factorial(2 * degree - k) // factorial(2 * degree))
            for k in range(degree + 1)]


def _odd_and_even(a: ArrayLike, degree: int) -> tuple[Any, Any]:
    """The terms of p with odd and with even powers."""
    b = [np.asarray(x, get_aval(a).dtype)[()] for x in _coefficients(degree)]
    eye = identity_like(a)
    powers = [eye, product(a, a)]
    while 2 * len(powers) <= min(degree, 7):
        powers.append(product(powers[-1], powers[1]))

    def combined(numbers: list[Any]) -> Any:
        total = lax.mul(powers[0], numbers[0])
        for power, number in zip(powers[1:], numbers[1:], strict=False):
            total = lax.add(total, lax.mul(power, number))
        return total

    if degree <= 7:
        return product(a, combined(b[1::2])), combined(b[0::2])
    zero = np.zeros((), get_aval(a).dtype)[()]
    high_odd, high_even = combined([zero, *b[9::2]]), combined([zero, *b[8::2]])
    return (product(a, lax.add(product(powers[3], high_odd), combined(b[1:9:2]))),
            lax.add(product(powers[3], high_even), combined(b[0:8:2])))


@numpy_function(static_argnames=("upper_triangular", "max_squarings"))
def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """The exponential of matrices, by a rational approximation and repeated squaring.

    Args:
      A: matrices `[..., n, n]`, of float32, float64, complex64 or complex128.
      upper_triangular: whether they are upper triangular.
      max_squarings: the result is NaN where more squarings were needed, that is where the 1-norm
        is above about 5 times 2 to this power.

    Raises:
      ValueError: the matrices are not square.
      TypeError: another dtype.

    >>> import pyjx as jax
    >>> jax.numpy.round(jax.scipy.linalg.expm(jax.numpy.zeros((2, 2)))).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    a = array("expm", A)
    aval = get_aval(a)
    if aval.ndim < 2 or aval.shape[-1] != aval.shape[-2]:
        raise ValueError(f"Expected A to be a (batched) square matrix, got A.shape={aval.shape}.")
    if aval.dtype not in MATRIX_DTYPES:
        raise TypeError(f"A.dtype={aval.dtype} is not supported.")
    if not aval.size:
        return a
    real = real_dtype(aval.dtype)
    degree, largest = _DEGREES[real]
    batch = aval.shape[:-2]
    norm = lax.reduce_max(lax.reduce_sum(lax.abs(lax.stop_gradient(a)), (aval.ndim - 2,)),
                          (len(batch),))
    doublings = lax.ceil(lax.log2(lax.div(norm, lax.full_like(norm, largest))))
    doublings = lax.max(doublings, lax.full_like(norm, 0))
    most = lax.full_like(norm, max_squarings)
    over = lax.gt(doublings, most)
    doublings = lax.select(lax.le(doublings, most), doublings, lax.full_like(norm, 0))
    count = lax.convert_element_type(doublings, np.int32)

    def spread(x: ArrayLike) -> Any:
        return lax.broadcast_in_dim(x, aval.shape, range(len(batch)))

    scale = lax.convert_element_type(lax.exp2(lax.neg(doublings)), aval.dtype)
    odd, even = _odd_and_even(lax.mul(a, spread(scale)), degree)
    below, above = lax.sub(even, odd), lax.add(even, odd)
    if upper_triangular:
        result = linalg.triangular_solve(below, above, left_side=True)
    else:
        result = solve(below, above)

    def square_once(state: Any) -> Any:
        step, x = state
        wanted = spread(lax.lt(lax.broadcast(step, batch), count))
        return step + np.int32(1), lax.select(wanted, product(x, x), x)

    _, result = lax.while_loop(lambda state: state[0] < jnp.max(count), square_once,
                               (np.int32(0), result), max_steps=max(int(max_squarings), 1))
    return lax.select(spread(over), lax.full_like(result, np.nan), result)


@numpy_function(static_argnames=("method", "compute_expm"))
def expm_frechet(A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool = True
                ) -> Any:
    """The exponential of matrices and its derivative in a direction.

    Args:
      A: matrices `[..., n, n]`.
      E: the directions, of the same shape.
      method: means nothing; the derivative is that of the algorithm of `expm`.
      compute_expm: whether to return the exponential.

    Returns:
      (exponential, derivative), or the derivative.

    Raises:
      ValueError: the matrices are not square, or the shapes differ.

    >>> import pyjx as jax
    >>> zero, e = jax.numpy.zeros((2, 2)), jax.numpy.array([[0.0, 1.0], [0.0, 0.0]])
    >>> jax.scipy.linalg.expm_frechet(zero, e, compute_expm=False).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    a, e = arrays("expm_frechet", A, E)
    for name, x in (("A", a), ("E", e)):
        shape = get_aval(x).shape
        if len(shape) < 2 or shape[-1] != shape[-2]:
            raise ValueError(f"expected {name} to be a (batched) square matrix, got {name}.shape="
                             f"{shape}")
    if get_aval(a).shape != get_aval(e).shape:
        raise ValueError("expected A and E to be the same shape, got A.shape="
                         f"{get_aval(a).shape} E.shape={get_aval(e).shape}")
    out = jvp(body_of(expm), (a,), (e,))
    return out if compute_expm else out[1]


# -- by the Schur form -----------------------------------------------------------------------------


def _complex_schur(a: Array) -> tuple[Any, Any]:
    """The complex Schur form, of real matrices by the real one: real eigenvalues have the imaginary
    part 0, and no rounding error, whose sign would choose the branch of a root or logarithm."""
    if not is_complex(a):
        a = lax.convert_element_type(a, np.finfo(dtypes.to_complex_dtype(a.dtype)).dtype)
    form, z = linalg.schur(a)
    return (form, z) if is_complex(form) else complex_form(form, z)


def _sums_to_diagonal(left: ArrayLike, right: ArrayLike, offset: Any) -> Any:
    """The elements [i, i + offset] of left @ right, and anything beyond the last one."""
    shape = get_aval(right).shape
    n, axis = shape[-1], len(shape) - 2
    columns = transposed(right)
    moved = lax.dynamic_slice_in_dim(lax.concatenate([columns, columns], axis), offset, n, axis)
    return lax.reduce_sum(lax.mul(left, moved), (axis + 1,))


def _on_diagonal(x: ArrayLike, offset: Any) -> Any:
    """The elements [i, i + offset], and zeros beyond the last one."""
    shape = get_aval(x).shape
    here = _is_at(shape, offset)
    return lax.reduce_sum(lax.select(here, x, lax.full_like(x, 0)), (len(shape) - 1,))


def _is_at(shape: tuple[int, ...], offset: Any) -> Any:
    rows, columns = (lax.broadcasted_iota(np.int32, shape, len(shape) + i) for i in (-2, -1))
    return lax.eq(lax.sub(columns, rows), lax.broadcast(offset, shape))


def _by_diagonals(values: ArrayLike, form: Any, element: Callable[..., Any]) -> Any:
    """An upper triangular function of an upper triangular matrix, one diagonal after the other.

    `values` is its diagonal, and `element(F, offset, f_i, f_j, t_i, t_j)` gives its elements
    [i, i + offset] from those nearer the diagonal.
    """
    shape = get_aval(form).shape
    n = shape[-1]
    result = lax.select(on_diagonal(shape), spread_columns(values, shape), lax.full_like(form, 0))
    if n < 2:
        return result
    own = diagonal(form)
    axis = len(shape) - 2

    def later(x: ArrayLike, offset: Any) -> Any:
        return lax.dynamic_slice_in_dim(lax.concatenate([x, x], axis), offset, n, axis)

    def fill(offset: Any, result: Any) -> Any:
        offset = lax.convert_element_type(offset, np.int32)
        new = element(result, offset, values, later(values, offset), own, later(own, offset))
        return lax.select(_is_at(shape, offset), spread_columns(new, shape), result)

    return lax.fori_loop(np.int32(1), np.int32(n), fill, result)


@numpy_function(static_argnames=("blocksize",))
def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:
    """The principal square root of matrices, by the complex Schur form; on CPU only.

    (Bjorck and Hammarling, A Schur method for the square root of a matrix, 1983.)

    Args:
      A: matrices `[..., n, n]`.
      blocksize: only 1 is supported.

    Returns:
      Complex matrices, where SciPy's are real if they can be. A singular matrix may have no root;
      it gives NaN.

    Raises:
      ValueError: the matrices are not square.
      NotImplementedError: `blocksize` is not 1.

    >>> import pyjx as jax
    >>> root = jax.scipy.linalg.sqrtm(jax.numpy.array([[4.0, 0.0], [0.0, 9.0]]))
    >>> jax.numpy.round(root.real).tolist()
    [[2.0, 0.0], [0.0, 3.0]]
    """
    if blocksize != 1:
        raise NotImplementedError("Blocked version is not implemented yet.")
    form, z = _complex_schur(array("sqrtm", A))

    def element(root: Any, offset: Any, r_i: Any, r_j: Any, t_i: Any, t_j: Any) -> Any:
        # T_ij = R_ii R_ij + R_ij R_jj + sum of R_ik R_kj between
        rest = lax.sub(_on_diagonal(form, offset), _sums_to_diagonal(root, root, offset))
        total = lax.add(r_i, r_j)
        zero = lax.full_like(total, 0)
        both = lax.bitwise_and(lax.eq(total, zero), lax.eq(rest, zero))
        return lax.div(rest, lax.select(both, lax.full_like(total, 1), total))

    root = _by_diagonals(lax.sqrt(diagonal(form)), form, element)
    return product(product(z, root), adjoint(z))


@numpy_function(static_argnames=("func", "disp"))
def funm(A: ArrayLike, func: Callable[[Any], Any], disp: bool = True) -> Any:
    """A function of matrices, by the complex Schur form and Parlett's recurrence; on CPU only.

    Args:
      A: a matrix `[n, n]`, of an inexact dtype.
      func: the function of complex numbers, elementwise.
      disp: whether to return no estimate of the error; SciPy prints a warning where it is large.

    Returns:
      A complex matrix; without `disp` also an estimate of the relative error, which is large where
      eigenvalues are close.

    Raises:
      ValueError: the matrix is not square.

    >>> import pyjx as jax
    >>> a = jax.numpy.array([[0.0, 1.0], [0.0, 2.0]])
    >>> jax.numpy.round(jax.scipy.linalg.funm(a, lambda x: x ** 3).real).tolist()
    [[0.0, 4.0], [0.0, 8.0]]
    """
    a = array("funm", A)
    shape = get_aval(a).shape
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"funm: expected square array_like input, got shape {shape}")
    form, z = _complex_schur(a)
    real = real_dtype(get_aval(form).dtype)

    def element(f: Any, offset: Any, f_i: Any, f_j: Any, t_i: Any, t_j: Any) -> Any:
        # F T = T F at [i, j], where F_ij is still zero in both products
        rest = lax.sub(_sums_to_diagonal(f, form, offset), _sums_to_diagonal(form, f, offset))
        gap = lax.sub(t_i, t_j)
        return lax.div(rest, lax.select(lax.eq(gap, lax.full_like(gap, 0)),
                                        lax.full_like(gap, 1), gap))

    values = as_complex(jnp.asarray(func(diagonal(form))))
    f = _by_diagonals(values, form, element)
    out = product(product(z, f), adjoint(z))
    if disp:
        return out
    eps = float(dtypes.finfo(real).eps)
    n = shape[0]
    own = diagonal(form)
    gaps = lax.abs(lax.sub(spread_columns(own, shape), spread_rows(own, shape)))
    smallest = jnp.min(jnp.where(on_diagonal(shape), np.inf, gaps), initial=1.0)
    smallest = jnp.where(smallest == 0, eps, smallest)
    size = jnp.max(jnp.sum(lax.abs(upper_triangle(form, 1)), 0), initial=0.0)
    error = jnp.clip(jnp.maximum(eps, eps / smallest * size), None, 1.0) if n else jnp.array(eps)
    finite = jnp.all(jnp.isfinite(out))
    return out, lax.convert_element_type(jnp.where(finite, error, np.inf), real)
