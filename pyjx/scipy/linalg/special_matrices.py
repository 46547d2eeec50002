"""Matrices with a pattern: given by a few of their elements, or by their size alone."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, DTypeLike
from pyjx.core.avals import SymbolicDim, get_aval
from pyjx.core.integers import as_int, max_dim, min_dim
from pyjx.engine.types import Value
from pyjx.lax.linalg.matrices import conjugate
from pyjx.numpy.operands import numpy_function
from pyjx.numpy.promotion import operands, promote_dtypes, promote_dtypes_inexact, strong
from pyjx.scipy import special

# -- given by vectors ------------------------------------------------------------------------------


def _vector(name: str, x: ArrayLike) -> Any:
    """The operand with one axis at least."""
    (x,) = operands(name, x)
    return x if get_aval(x).ndim else lax.broadcast(x, (1,))


def _gathered(elements: Any, places: np.ndarray) -> Any:
    """Matrices `[..., m, n]` of elements along the last axis, at places that are known."""
    if not places.size:
        return lax.full((*get_aval(elements).shape[:-1], *places.shape), 0,
                        get_aval(elements).dtype)
    return jnp.take(elements, places, axis=-1, mode="clip")


def _of_size(n: Any) -> Any:
    """What computes arrays of n elements: NumPy, if n is a number."""
    return np if isinstance(n, int) else jnp


def _places(n: Any) -> Any:
    return _of_size(n).arange(n)


def _joined(*parts: Any) -> Any:
    """Vectors one behind the other, their batch axes broadcast."""
    shapes = [get_aval(x).shape for x in parts]
    lead = lax.broadcast_shapes(*[s[:-1] for s in shapes])
    return lax.concatenate([jnp.broadcast_to(x, (*lead, s[-1]))
                            for x, s in zip(parts, shapes, strict=True)], len(lead))


@numpy_function
def toeplitz(c: Value, r: Any = None) -> Array:
    """Matrices whose elements are equal along each diagonal.

    Args:
      c: the first column, `[..., m]`.
      r: the first row, `[..., n]`, whose first element is not used; by default the conjugate of
        `c`.

    Returns:
      Matrices `[..., m, n]`.

    >>> import pyjx as jax
    >>> jax.scipy.linalg.toeplitz(jax.numpy.array([1, 2, 3])).tolist()
    [[1, 2, 3], [2, 1, 2], [3, 2, 1]]
    """
    if r is not None:
        c, r = operands("toeplitz", c, r)
    c = _vector("toeplitz", c)
    r = conjugate(c) if r is None else _vector("toeplitz", r)
    c, r = map(strong, promote_dtypes(c, r))
    m, n = get_aval(c).shape[-1], get_aval(r).shape[-1]
    # behind c[m - 1], ..., c[0] come r[1], ..., r[n - 1]
    elements = _joined(jnp.flip(c, -1), r[..., 1:])
    return _gathered(elements, m - 1 - _places(m)[:, None] + _places(n))


@numpy_function
def hankel(c: Value, r: Any = None) -> Array:
    """Matrices whose elements are equal along each diagonal from the right to the left.

    Args:
      c: the first column, `[..., m]`.
      r: the last row, `[..., n]`, whose first element is not used; by default zeros.

    Returns:
      Matrices `[..., m, n]`.

    >>> import pyjx as jax
    >>> jax.scipy.linalg.hankel(jax.numpy.array([1, 2, 3])).tolist()
    [[1, 2, 3], [2, 3, 0], [3, 0, 0]]
    """
    (c,) = operands("hankel", c)
    if not get_aval(c).ndim:
        raise ValueError("hankel: c must be at least 1-dimensional, got a scalar.")
    r = lax.full_like(c, 0) if r is None else _vector("hankel", r)
    c, r = map(strong, promote_dtypes(c, r))
    m, n = get_aval(c).shape[-1], get_aval(r).shape[-1]
    return _gathered(_joined(c, r[..., 1:]), _places(m)[:, None] + _places(n))


@numpy_function
def circulant(c: ArrayLike) -> Array:
    """Matrices `[..., n, n]` whose columns are the first one, `[..., n]`, turned round.

    Args:
      c: the first column, an array (..., n).

    >>> import pyjx as jax
    >>> jax.scipy.linalg.circulant(jax.numpy.array([1, 2, 3])).tolist()
    [[1, 3, 2], [2, 1, 3], [3, 2, 1]]
    """
    c = _vector("circulant", c)
    n = get_aval(c).shape[-1]
    return _gathered(c, (_places(n)[:, None] - _places(n)) % max(n, 1))


@numpy_function
def companion(a: Array) -> Array:
    """Matrices whose eigenvalues are the roots of polynomials.

    Args:
      a: coefficients `[..., n]`, those of the highest powers first.

    Returns:
      Matrices `[..., n - 1, n - 1]`, with `-a[1:] / a[0]` as the first row.

    Raises:
      ValueError: there are fewer than two coefficients.

    >>> import pyjx as jax
    >>> jax.scipy.linalg.companion(jax.numpy.array([1.0, -3.0, 2.0])).tolist()
    [[3.0, -2.0], [1.0, 0.0]]
    """
    a = promote_dtypes_inexact(_vector("companion", a))[0]
    shape = get_aval(a).shape
    n = shape[-1] - 1
    if n < 1:
        raise ValueError("The length of `a` along the last axis must be at least 2; got shape "
                         f"{shape}.")
    row = -a[..., 1:] / a[..., :1]
    below = jnp.broadcast_to(jnp.eye(n - 1, n, dtype=get_aval(a).dtype), (*shape[:-1], n - 1, n))
    return lax.concatenate([row[..., None, :], below], len(shape) - 1)


@numpy_function
def fiedler(a: Array) -> Array:
    """Matrices `[..., n, n]` of the distances of pairs of elements of `a`, `[..., n]`.

    Args:
      a: an array (..., n).

    >>> import pyjx as jax
    >>> jax.scipy.linalg.fiedler(jax.numpy.array([1, 4])).tolist()
    [[0, 3], [3, 0]]
    """
    a = _vector("fiedler", a)
    return jnp.abs(a[..., :, None] - a[..., None, :])


@numpy_function
def fiedler_companion(a: Array) -> Array:
    """Pentadiagonal matrices whose eigenvalues are the roots of polynomials (Fiedler, A note on
    companion matrices, 2003).

    Args:
      a: coefficients `[..., n]`, those of the highest powers first.

    Returns:
      Matrices `[..., n - 1, n - 1]`.

    Raises:
      ValueError: there is no coefficient.

    >>> import pyjx as jax
    >>> jax.scipy.linalg.fiedler_companion(jax.numpy.array([1.0, -3.0, 2.0])).tolist()
    [[3.0, -2.0], [1.0, 0.0]]
    """
    a = promote_dtypes_inexact(_vector("fiedler_companion", a))[0]
    shape = get_aval(a).shape
    if not shape[-1]:
        raise ValueError("fiedler_companion requires the last axis of 'a' to have nonzero length, "
                         f"but got an array of shape {shape}.")
    n = shape[-1] - 1
    b = -a[..., 1:] / a[..., :1]
    # Which of [0, 1, b_1, ..., b_n] is where: b_(i+1), b_(i+2) and 1 around the diagonal of even
    # rows i, and 1 two places before it in odd ones.
    i, j, where = _places(n)[:, None], _places(n), _of_size(n).where
    even = where(j == (i - 1).clip(0), i + 2, where(j == i + 1, i + 3, j == i + 2))
    places = where(i % 2, j == (i - 2).clip(0), even)
    zero, one = (jnp.broadcast_to(jnp.asarray(x, get_aval(b).dtype), (*shape[:-1], 1))
                 for x in (0, 1))
    # Without zeros and ones the matrix is of the type of b.
    whole = b if n in (0, 1) else _gathered(_joined(zero, one, b), places)
    return lax.reshape(whole, (*shape[:-1], n, n))


@numpy_function
def leslie(f: Any, s: ArrayLike) -> Array:
    """Matrices that age populations by one step (Leslie, On the use of matrices in certain
    population mathematics, 1945).

    Args:
      f: how many are born by each age, `[..., n]`: the first row.
      s: which part of each age but the last survives, `[..., n - 1]`: below the diagonal.

    Returns:
      Matrices `[..., n, n]`.

    Raises:
      ValueError: the lengths do not fit, or there is one age only.

    >>> import pyjx as jax
    >>> jax.scipy.linalg.leslie(jax.numpy.array([0.0, 2.0]), jax.numpy.array([0.5])).tolist()
    [[0.0, 2.0], [0.5, 0.0]]
    """
    f, s = promote_dtypes(_vector("leslie", f), _vector("leslie", s))
    shape, other = get_aval(f).shape, get_aval(s).shape
    n = shape[-1]
    if other[-1] != n - 1:
        raise ValueError("Incorrect lengths for f and s. The length of s along the last axis must "
                         f"be one less than the length of f; got f shape {shape} and s shape "
                         f"{other}.")
    if n < 2:
        raise ValueError("The length of f along the last axis must be at least 2; got shape "
                         f"{shape}.")
    zero = lax.full_like(f[..., :1], 0)
    i, j, where = _places(n)[:, None], _places(n), _of_size(n).where
    places = where(i == 0, j, where(j == i - 1, n + j, 2 * n - 1))
    return _gathered(_joined(f, s, zero), places)


@numpy_function(static_argnames=("n", "mode"))
def convolution_matrix(a: Array, n: int, mode: str = "full") -> Array:
    """The matrix A with `A @ v == convolve(a, v, mode)` for vectors of n elements.

    Args:
      a: `[..., m]`.
      n: the number of columns.
      mode: `full`, `same` or `valid`, as for `jax.numpy.convolve`.

    Raises:
      ValueError: `n` is not positive, or there is no such mode.

    >>> import pyjx as jax
    >>> jax.scipy.linalg.convolution_matrix(jax.numpy.array([1, 2]), 2).tolist()
    [[1, 0], [2, 1], [0, 2]]
    """
    n = as_int("convolution_matrix", "n", n)
    if n <= 0:
        raise ValueError(f"n must be a positive integer; got {n}.")
    a = strong(operands("convolution_matrix", a)[0])
    if not get_aval(a).ndim:
        raise ValueError("convolution_matrix: a must have at least one axis, got a scalar.")
    m = get_aval(a).shape[-1]
    if mode not in ("full", "valid", "same"):
        raise ValueError(f"mode must be one of 'full', 'valid', 'same'; got {mode!r}.")
    if not m:
        raise ValueError("convolution_matrix: `a` must have at least one element.")
    first, rows = 0, m + n - 1
    if mode == "same":
        rows = max_dim(m, n)
        first = (min_dim(m, n) - 1) // 2
    elif mode == "valid":
        rows = max_dim(m, n) - min_dim(m, n) + 1
        first = min_dim(m, n) - 1
    places = first + _places(rows)[:, None] - _places(n)
    zero = lax.full_like(a[..., :1], 0)
    return _gathered(_joined(a, zero), _of_size(rows).where(
        (places >= 0) & (places < m), places, m))


@numpy_function
def block_diag(*arrs: Any) -> Array:
    """A matrix with matrices along its diagonal, and zeros elsewhere.

    Args:
      arrs: matrices, vectors for one row, or numbers.

    Raises:
      ValueError: an array has more than two axes.

    >>> import pyjx as jax
    >>> jax.scipy.linalg.block_diag(jax.numpy.ones((1, 2)), 3.0).tolist()
    [[1.0, 1.0, 0.0], [0.0, 0.0, 3.0]]
    """
    blocks = promote_dtypes(*operands("block_diag", *(arrs or (np.zeros((1, 0), np.float32),))))
    for i, x in enumerate(blocks):
        if get_aval(x).ndim > 2:
            raise ValueError("Arguments to jax.scipy.linalg.block_diag must have at most 2 "
                             f"dimensions, got {get_aval(x).str_short()} at argument {i}.")
    blocks = [jnp.atleast_2d(x) for x in blocks]
    width = sum([get_aval(x).shape[1] for x in blocks])
    rows, start = [], 0
    for x in blocks:
        end = start + get_aval(x).shape[1]
        zero = np.zeros((), get_aval(x).dtype)[()]
        rows.append(lax.pad(x, zero, ((0, 0, 0), (start, width - end, 0))))
        start = end
    return lax.concatenate(rows, 0)


# -- given by their size ---------------------------------------------------------------------------


def _size(name: str, n: ArrayLike) -> int:
    n = as_int(name, "n", n)
    if n < 0:
        raise ValueError(f"{name}: n must not be negative, got {n}")
    return n


def _choices(n: Any, k: Any) -> Any:
    """How many ways there are to choose k of n things: exact integers, where they are known."""
    return np.vectorize(comb, "O")(n, k) if isinstance(n, np.ndarray) else special.comb(n, k)


def _constant(x: Any, dtype: DTypeLike | None = None) -> Array:
    return jnp.asarray(x if dtype else x.astype(float), dtype or dtypes.default_float_dtype())


def hilbert(n: int) -> Array:
    """The matrix `[n, n]` with the elements 1 / (i + j + 1).

    Args:
      n: the number of rows.

    >>> import pyjx as jax
    >>> jax.scipy.linalg.hilbert(2).tolist()[0]
    [1.0, 0.5]
    """
    i = _places(_size("hilbert", n))
    return _constant(1.0 / (1.0 + i[:, None] + i))


def invhilbert(n: int) -> Array:
    """The inverse of the Hilbert matrix, by its formula in binomial coefficients.

    Args:
      n: the number of rows.

    >>> import pyjx as jax
    >>> jax.scipy.linalg.invhilbert(2).tolist()
    [[4.0, -6.0], [-6.0, 12.0]]
    """
    n = _size("invhilbert", n)
    i, j = _places(n)[:, None], _places(n)
    return _constant((-1) ** (i + j) * (i + j + 1) * _choices(n + i, n - j - 1)
                     * _choices(n + j, n - i - 1) * _choices(i + j, i) ** 2)


_KINDS = ("symmetric", "lower", "upper")


def _of_kind(name: str, kind: str | None, lower: Any, symmetric: Any) -> Any:
    kind = "symmetric" if kind is None else kind
    if kind not in _KINDS:
        raise ValueError(f"{name}: expected kind to be one of: {list(_KINDS)}; got {kind}")
    return symmetric if kind == "symmetric" else lower if kind == "lower" else lower.T


def pascal(n: int, kind: str | None = None) -> Array:
    """The matrix `[n, n]` of binomial coefficients.

    Args:
      n: the size.
      kind: `symmetric` (the default): C(i + j, i); `lower`: C(i, j); or `upper`: C(j, i).

    Raises:
      ValueError: there is no such kind.

    >>> import pyjx as jax
    >>> jax.scipy.linalg.pascal(3).tolist()
    [[1.0, 1.0, 1.0], [1.0, 2.0, 3.0], [1.0, 3.0, 6.0]]
    """
    j = _places(_size("pascal", n))
    i = j[:, None]
    return _constant(_of_kind("pascal", kind, _choices(i, j), _choices(i + j, i)))


def invpascal(n: int, kind: str | None = None) -> Array:
    """The inverse of the matrix that `pascal` returns.

    Args:
      n: the number of rows.
      kind: as for `pascal`: "symmetric", "lower" or "upper".

    >>> import pyjx as jax
    >>> jax.scipy.linalg.invpascal(2).tolist()
    [[2.0, -1.0], [-1.0, 1.0]]
    """
    j = _places(_size("invpascal", n))
    i = j[:, None]
    lower = (-1) ** (i + j) * _choices(i, j)
    return _constant(_of_kind("invpascal", kind, lower, lower.T @ lower))


def dft(n: int, scale: str | None = None, *, dtype: DTypeLike | None = None) -> Array:
    """The matrix of the discrete Fourier transform, exp(-2 pi i j k / n).

    Args:
      n: the size.
      scale: `sqrtn` to divide by the root of n, `n` to divide by n.
      dtype: complex, of the result.

    Raises:
      ValueError: there is no such scale, or the dtype is not complex.

    >>> import pyjx as jax
    >>> jax.numpy.round(jax.scipy.linalg.dft(2).real).tolist()
    [[1.0, 1.0], [1.0, -1.0]]
    """
    if scale not in (None, "sqrtn", "n"):
        raise ValueError(f"scale must be None, 'sqrtn', or 'n'; got {scale!r}.")
    i = _places(_size("dft", n if isinstance(n, SymbolicDim) else int(n)))
    count = max_dim(n, 1)
    matrix = _of_size(n).exp(-2j * np.pi * (i[:, None] * i % count) / count)
    matrix = matrix / {None: 1.0, "sqrtn": (count * 1.0) ** 0.5, "n": count}[scale]
    wide = dtypes.to_complex_dtype(dtypes.default_float_dtype())
    if dtype is not None and not dtypes.issubdtype(dtype, np.complexfloating):
        raise ValueError(f"dft: dtype must be a complex one; got {np.dtype(dtype).name}.")
    return _constant(matrix, wide if dtype is None else dtype)


def hadamard(n: int, dtype: DTypeLike | None = int) -> Array:
    """The Hadamard matrix of ones and minus ones, whose size is a power of 2 (Sylvester's).

    Args:
      n: the number of rows, a power of two.
      dtype: of the result.

    Raises:
      ValueError: the size is another number.

    >>> import pyjx as jax
    >>> jax.scipy.linalg.hadamard(2).tolist()
    [[1, 1], [1, -1]]
    """
    n = as_int("hadamard", "n", n)
    if n < 1 or int(n) & (n - 1):
        raise ValueError(f"n must be a positive power of 2; got {n}.")
    matrix = np.ones((1, 1))
    while matrix.shape[0] < n:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return jnp.asarray(matrix, dtypes.check_and_canonicalize_user_dtype(dtype, "hadamard"))


def helmert(n: int, full: bool = False) -> Array:
    """Helmert's matrix, whose rows are orthonormal contrasts (Lancaster, The Helmert matrices,
    1965).

    Args:
      n: the number of columns.
      full: whether to return the first row too, all of whose elements are equal.

    Raises:
      ValueError: `n` is not positive.

    >>> import pyjx as jax
    >>> jax.numpy.round(jax.scipy.linalg.helmert(2) * 2 ** 0.5).tolist()
    [[1.0, -1.0]]
    """
    n = as_int("helmert", "n", n)
    if n < 1:
        raise ValueError(f"n must be a positive integer; got {n}.")
    rows, columns, where = _places(n)[:, None], _places(n), _of_size(n).where
    length = _of_size(n).sqrt(where(rows, rows * (rows + 1), n))
    matrix = where(rows == 0, 1, where(columns < rows, 1, where(
        columns == rows, -rows, 0))) / length
    return _constant(matrix if full else matrix[1:])
