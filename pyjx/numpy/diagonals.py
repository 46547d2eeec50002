"""Diagonals and triangles of matrices: made, taken, and where they lie."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, SupportsIndex

import numpy as np

from pyjx import lax as ops
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, DTypeLike
from pyjx.core.avals import SymbolicDim, get_aval
from pyjx.core.explicit import entries_of
from pyjx.core.integers import as_int, as_sizes, max_dim, min_dim
from pyjx.core.layouts import DeviceLike
from pyjx.core.trace import Tracer, concrete_or_error, eager_trace, state
from pyjx.engine.axes import broadcast_in_dim, transpose
from pyjx.engine.tangents import full_aval
from pyjx.engine.types import Value
from pyjx.numpy.creation import array, asarray, of_host
from pyjx.numpy.indexing import getitem
from pyjx.numpy.operands import canonical_axis, is_integer
from pyjx.numpy.promotion import check_arraylike, convert, operands, strong
from pyjx.numpy.ranges import arange
from pyjx.runtime.device_put import device_put
from pyjx.runtime.operations import op_jit
from pyjx.transforms.custom_jvp import custom_jvp

_user_dtype = dtypes.check_and_canonicalize_user_dtype


def _mask(shape: tuple[int, ...], k: ArrayLike, compare: str) -> Any:
    """`compare(row + k, column)`, as a host array or, traced or for a traced `k`, of iotas."""
    if state.dynamic is eager_trace and isinstance(k, int):
        return getattr(np, compare)(np.arange(shape[0])[:, None] + k, np.arange(shape[1]))
    int32 = np.dtype(np.int32)
    rows = ops.add(ops.broadcasted_iota(int32, shape, 0), convert(k, int32))
    columns = ops.broadcasted_iota(int32, shape, 1)
    return (ops.eq if compare == "equal" else ops.ge)(rows, columns)


def _static_int(name: str, argument: str, x: object) -> int:
    if type(x) is int:
        return x
    known = concrete_or_error(None, x, f"'{argument}' argument of jnp.{name}()")
    return as_int(name, argument, known)


def _diagonal(name: str, k: ArrayLike) -> Any:
    """Which diagonal is meant: an int, or a traced integer."""
    if not isinstance(k, Tracer):
        return _offset(name, k)
    if k.ndim or not is_integer(k):
        raise TypeError(f"{name}: k must be an integer, got an array of type {k.aval.str_short()}")
    return k


def _offset(name: str, k: ArrayLike) -> Any:
    """A diagonal's number, which is no truth value and fits the dtype of indices."""
    if type(k) is bool:
        raise TypeError(f"{name}: offset must be an integer, got {k}")
    return _as_index(name, _static_int(name, "k", k))


def _as_index(name: str, k: int) -> int:
    dtype = dtypes.default_int_dtype()
    limits = np.iinfo(dtype)
    if not limits.min <= k <= limits.max:
        raise OverflowError(f"{name}: Python int {k} too large to convert to {dtype}, the dtype of "
                            "the numbers of diagonals.")
    return k


def _matrix(mask: ArrayLike, dtype: DTypeLike) -> Any:
    return array(mask, dtype) if isinstance(mask, np.ndarray) else convert(mask, dtype)


def eye(N: SupportsIndex | SymbolicDim, M: Value | None = None, k: Any = 0,
        dtype: DTypeLike | None = None, *, device: DeviceLike = None) -> Array:
    """The N x M matrix (by default square) with ones on diagonal `k` and zeros elsewhere.

    Args:
      N, M: ints.
      k: an integer, which may be traced; diagonals above the main one have positive numbers.
      dtype: by default the default float dtype.
      device: device or sharding.

    Returns:
      An array (N, M) of zeros and ones.

    Raises:
      ValueError: N or M is negative, or k is no scalar integer.
      TypeError: N or M is no integer, or k no number at all.

    >>> import pyjx as jax
    >>> jax.numpy.eye(2, k=1).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    dtype = dtypes.default_float_dtype() if dtype is None else _user_dtype(dtype, "eye")
    n = _static_int("eye", "N", N)
    m = n if M is None else _static_int("eye", "M", M)
    if n < 0 or m < 0:
        raise ValueError(f"negative dimensions are not allowed, got {n} and {m}")
    if type(k) is not int:
        (k,) = operands("eye", k)
        if np.ndim(k) or not (is_integer(k) or type(k) is bool):
            raise ValueError(f"eye: k must be a scalar integer; got {get_aval(k).str_short()}")
        k = k if isinstance(k, Tracer) else int(k)
    if state.dynamic is eager_trace and isinstance(k, int) and dtype.kind in "biufc":
        if k == 0:  # in less time than by NumPy's function
            host = np.zeros((n, m), dtype)
            host.reshape(-1)[:m * min(n, m):m + 1] = 1
        else:
            host = np.eye(n, m, k, dtype)
        out = of_host(host, dtype)
    else:
        k = max(-n, min(k, m)) if isinstance(k, int) else k  # those beyond are all alike
        out = _matrix(_mask((n, m), k, "equal"), dtype)
    return out if device is None else device_put(out, device)


def identity(n: SupportsIndex, dtype: DTypeLike | None = None) -> Array:
    """The n x n identity matrix.

    Args:
      n: the number of rows and columns.
      dtype: of the result; None for the default float dtype.

    Returns:
      An array (n, n) of zeros and ones.

    >>> import pyjx as jax
    >>> jax.numpy.identity(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return eye(n, dtype=None if dtype is None else _user_dtype(dtype, "identity"))


def tri(N: int, M: int | None = None, k: ArrayLike = 0, dtype: DTypeLike | None = None) -> Array:
    """The N x M matrix (by default square) with ones on and below diagonal `k`.

    Args:
      N: the number of rows.
      M: that of columns; by default as many.
      k: up to which diagonal there are ones: 0 is the main one, positive ones are above it.
      dtype: of the result; None for the default float dtype.

    Returns:
      An array (N, M) of zeros and ones.

    >>> import pyjx as jax
    >>> jax.numpy.tri(2).tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    dtype = dtypes.default_float_dtype() if dtype is None else _user_dtype(dtype, "tri")
    rows, columns = as_sizes("tri", "shape", (N, N if M is None else M))
    return _matrix(_mask((rows, columns), _diagonal("tri", k), "greater_equal"), dtype)


_FAR = 2**30  # a diagonal beyond any matrix, to which a row's number can be added


def _triangle(name: str, m: ArrayLike, k: int, keep_lower: bool) -> Any:
    (m,) = operands(name, m)
    aval = get_aval(m)
    if aval.ndim < 2:
        raise ValueError(f"Argument to jax.numpy.{name} must be at least 2D")
    rows, columns = aval.shape[-2:]
    k = max(-_FAR, min(_offset(name, k), _FAR))
    lower = _mask((rows, columns), k if keep_lower else k - 1, "greater_equal")
    if aval.ndim > 2:
        lower = broadcast_in_dim(lower, aval.shape, (aval.ndim - 2, aval.ndim - 1))
    zeros = full_aval(aval, 0)
    return ops.select(lower, m, zeros) if keep_lower else ops.select(lower, zeros, m)


@op_jit(static_argnames=("k",))
def tril(m: ArrayLike, k: int = 0) -> Array:
    """The matrices (last two axes) with zeros above diagonal `k`.

    Args:
      m: an array of two axes or more; the triangle is that of the last two.
      k: the diagonal at which it ends: 0 is the main one, positive ones are above it.

    Returns:
      An array of the shape and dtype of the argument.

    Raises:
      ValueError: the rank is less than 2.

    >>> import pyjx as jax
    >>> jax.numpy.tril(jax.numpy.ones((2, 2))).tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    return _triangle("tril", m, k, True)


@op_jit(static_argnames=("k",))
def triu(m: ArrayLike, k: int = 0) -> Array:
    """The matrices (last two axes) with zeros below diagonal `k`.

    Args:
      m: an array of two axes or more; the triangle is that of the last two.
      k: the diagonal at which it ends: 0 is the main one, positive ones are above it.

    Returns:
      An array of the shape and dtype of the argument.

    Raises:
      ValueError: the rank is less than 2.

    >>> import pyjx as jax
    >>> jax.numpy.triu(jax.numpy.ones((2, 2))).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    return _triangle("triu", m, k, False)


def _symbolic_indices(n: Any, m: Any, k: int, keep_lower: bool) -> tuple[Array, Array]:
    lower = _mask((n, m), k if keep_lower else k - 1, "greater_equal")
    size = n * m - _number_above(n, m, k + 1) if keep_lower else _number_above(n, m, k)
    return jnp.nonzero(lower if keep_lower else ops.bitwise_not(lower),  # type: ignore[return-value]
                       size=max_dim(size, 0))  # which cannot be seen of each size


def _number_above(n: Array, m: Array, k: int) -> Any:
    """How many elements of an n x m matrix are on and above diagonal `k`."""
    if k < 0:  # all but those of the transpose above its diagonal -k
        return n * m - _number_above(m, n, 1 - k)
    longest = max_dim(m - k, 0)
    rows = min_dim(n, longest)  # of longest, longest - 1, ... elements
    return rows * longest - rows * (rows - 1) // 2


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Row and column indices of the elements on and below diagonal `k` of an n x m matrix.

    Args:
      n: the number of rows.
      k: the diagonal at which the triangle ends: 0 is the main one, positive ones are above it.
      m: the number of columns; by default as many as rows.

    Returns:
      A tuple of one-dimensional arrays of integers, one for each axis, by which to index an array.

    >>> import pyjx as jax
    >>> [i.tolist() for i in jax.numpy.tril_indices(2)]
    [[0, 1, 1], [0, 0, 1]]
    """
    return _triangle_indices(np.tril_indices, n, k, m)


def _triangle_indices(of_numpy: Any, n: Any, k: Any, m: Any) -> tuple[Array, Array]:
    """What NumPy's function gives, of symbolic sizes too."""
    if isinstance(n, SymbolicDim) or isinstance(m, SymbolicDim):
        return _symbolic_indices(n, n if m is None else m, k, of_numpy is np.tril_indices)
    name = of_numpy.__name__
    n, k, m = [concrete_or_error(None, x, f"{argument} argument of jnp.{name}")
               for argument, x in (("n", n), ("k", k), ("m", m))]
    as_sizes(name, "shape", (n, n if m is None else m))
    found = of_numpy(n, _as_index(name, operator.index(k)), m)
    return tuple([array(i, dtypes.default_int_dtype()) for i in found])  # type: ignore[return-value]


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Row and column indices of the elements on and above diagonal `k` of an n x m matrix.

    Args:
      n: the number of rows.
      k: the diagonal at which the triangle ends: 0 is the main one, positive ones are above it.
      m: the number of columns; by default as many as rows.

    Returns:
      A tuple of one-dimensional arrays of integers, one for each axis, by which to index an array.

    >>> import pyjx as jax
    >>> [i.tolist() for i in jax.numpy.triu_indices(2)]
    [[0, 0, 1], [0, 1, 1]]
    """
    return _triangle_indices(np.triu_indices, n, k, m)


def _matrix_shape(name: str, arr: ArrayLike) -> tuple[int, int]:
    (arr,) = operands(name, arr)
    shape = get_aval(arr).shape
    if len(shape) != 2:
        raise ValueError("Only 2-D inputs are accepted")
    return shape[0], shape[1]


def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """`tril_indices` for the shape of a matrix.

    Returns:
      A tuple of one-dimensional arrays of integers, one for each axis, by which to index an array.

    >>> import pyjx as jax
    >>> [i.tolist() for i in jax.numpy.tril_indices_from(jax.numpy.ones((2, 2)))]
    [[0, 1, 1], [0, 0, 1]]
    """
    n, m = _matrix_shape("tril_indices_from", arr)
    return tril_indices(n, k, m)


def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """`triu_indices` for the shape of a matrix.

    Returns:
      A tuple of one-dimensional arrays of integers, one for each axis, by which to index an array.

    >>> import pyjx as jax
    >>> [i.tolist() for i in jax.numpy.triu_indices_from(jax.numpy.ones((2, 2)))]
    [[0, 0, 1], [0, 1, 1]]
    """
    n, m = _matrix_shape("triu_indices_from", arr)
    return triu_indices(n, k, m)


def diag_indices(n: SupportsIndex, ndim: SupportsIndex = 2) -> tuple[Array, ...]:
    """The indices of the main diagonal of an array with `ndim` axes of size `n`.

    Args:
      n: the number of indices.
      ndim: the number of axes of the array that they are for.

    Returns:
      A tuple of one-dimensional arrays of integers, one for each axis, by which to index an array.

    >>> import pyjx as jax
    >>> [i.tolist() for i in jax.numpy.diag_indices(2)]
    [[0, 1], [0, 1]]
    """
    n, ndim = _static_int("diag_indices", "n", n), _static_int("diag_indices", "ndim", ndim)
    if n < 0 or ndim < 0:
        raise ValueError(f"n and ndim arguments to diag_indices must be nonnegative, got {n} and "
                         f"{ndim}")
    return (arange(n),) * ndim


def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """The indices of the main diagonal of an array, whose axes are of one size.

    Returns:
      A tuple of one-dimensional arrays of integers, one for each axis, by which to index an array.

    >>> import pyjx as jax
    >>> [i.tolist() for i in jax.numpy.diag_indices_from(jax.numpy.ones((2, 2)))]
    [[0, 1], [0, 1]]
    """
    check_arraylike("diag_indices_from", arr)
    shape = get_aval(operands("diag_indices_from", arr)[0]).shape
    if len(shape) < 2:
        raise ValueError("input array must be at least 2-d")
    if len(set(shape)) != 1:
        raise ValueError("All dimensions of input must be of equal length")
    return diag_indices(shape[0], len(shape))


def mask_indices(n: int, mask_func: Callable[[Array, int], ArrayLike], k: int = 0, *,
                 size: int | None = None) -> tuple[Array, ...]:
    """The indices where `mask_func(ones((n, n)), k)` is not zero.

    Args:
      n: the number of rows and columns.
      mask_func: a function of an array and `k`, such as `triu`.
      k: what the function is given.
      size: the number of indices, which must be given where they are not known while tracing.

    Returns:
      A tuple of one-dimensional arrays of integers, one for each axis, by which to index an array.

    >>> import pyjx as jax
    >>> [i.tolist() for i in jax.numpy.mask_indices(2, jax.numpy.triu)]
    [[0, 0, 1], [0, 1, 1]]
    """
    return jnp.nonzero(mask_func(jnp.ones((n, n)), k), size=size)  # type: ignore[no-any-return]


@op_jit(static_argnames=("offset", "axis1", "axis2"))
def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The elements on a diagonal of two axes, along a new last axis.

    Args:
      a: an array of two axes or more.
      offset: which diagonal: 0 is the main one, positive ones are above it.
      axis1, axis2: the axes of the matrices.

    Returns:
      An array whose last axis is the diagonal, in the place of the two axes.

    Raises:
      ValueError: the rank is less than 2.
      TypeError: the axes are equal.

    >>> import pyjx as jax
    >>> jax.numpy.diagonal(jax.numpy.arange(4).reshape(2, 2)).tolist()
    [0, 3]
    """
    (x,) = operands("diagonal", a)
    rank = get_aval(x).ndim
    if rank < 2:
        raise ValueError("diagonal requires an array of at least two dimensions.")
    one, two = canonical_axis(axis1, rank), canonical_axis(axis2, rank)
    if one == two:
        raise TypeError("diagonal: transpose permutation isn't a permutation of operand "
                        f"dimensions: axis1 and axis2 cannot be the same, got {axis1} and {axis2}.")
    x = strong(x)
    x = transpose(x, [i for i in range(rank) if i not in (one, two)] + [one, two])
    n, m = get_aval(x).shape[-2:]
    size = max_dim(min_dim(n, m - offset) if offset >= 0 else min_dim(n + offset, m), 0)
    if type(n) is int and type(m) is int:  # every (m + 1)th element of the rows in a row
        start = offset if offset >= 0 else -offset * m
        x = ops.reshape(asarray(x), (*get_aval(x).shape[:-2], n * m))
        stop = start + (size - 1) * (m + 1) + 1 if size else 0
        return ops.slice_in_dim(x, start if size else 0, stop, m + 1, axis=-1)
    i = ops.iota(np.int32, size)
    rows, columns = (i, i + np.int32(offset)) if offset >= 0 else (i - np.int32(offset), i)
    return getitem(asarray(x), (Ellipsis, rows, columns))


# Up to how many rows a matrix is made by padding: that counts no operations, so XLA's client runs
# the program in the calling thread. Loops over what is padded take no vectors, if it is fused.
_FEW_ROWS = 128


@op_jit(static_argnames=("k",))
def _diag_matrix(v: ArrayLike, k: int) -> Any:
    aval = get_aval(v)
    (n,) = aval.shape
    if type(n) is not int or not n or any(entries_of(aval)):
        return _selected(v, k)
    return _spread(v, k) if n + abs(k) <= _FEW_ROWS else _selected_by_diagonal(v, k)


def _selected(v: ArrayLike, k: int) -> Any:
    size = get_aval(v).shape[0] + abs(k)
    v = ops.pad(v, _zero_of(v), ((max(0, -k), max(0, k), 0),))
    columns = broadcast_in_dim(v, (size, size), (0,))
    return ops.select(_mask((size, size), k, "equal"), columns, full_aval(get_aval(columns), 0))


def _spread(v: ArrayLike, k: int) -> Any:
    """The rows in a row: elements of `v` with a row of zeros between any two."""
    n = get_aval(v).shape[0]
    size = n + abs(k)
    before = k if k >= 0 else -k * size
    after = size * size - before - n - (n - 1) * size
    return ops.reshape(ops.pad(v, _zero_of(v), ((before, after, size),)), (size, size))


def _zero_of(v: ArrayLike) -> Any:
    return full_aval(get_aval(v).update(shape=(), sharding=None), 0)


# Tangents are spread, so cotangents are read on the diagonal alone.
_selected_by_diagonal = custom_jvp(_selected, nondiff_argnums=(1,))
_selected_by_diagonal.defjvp(lambda k, v, dv: (_selected_by_diagonal(*v, k), _spread(dv[0], k)))


def diag(v: ArrayLike, k: int = 0) -> Array:
    """The matrix with a vector on diagonal `k`, or the diagonal `k` of a matrix.

    Returns:
      A vector of a matrix, and a matrix of a vector.

    Raises:
      ValueError: the rank is neither 1 nor 2.

    >>> import pyjx as jax
    >>> jax.numpy.diag(jax.numpy.array([1, 2])).tolist()
    [[1, 0], [0, 2]]
    """
    (v,) = operands("diag", v)
    rank = get_aval(v).ndim
    k = _static_int("diag", "k", k)
    if rank == 1:
        return _diag_matrix(v, k)
    if rank == 2:
        return diagonal(v, k)
    raise ValueError("diag input must be 1d or 2d")


def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """The matrix with the elements of an array on diagonal `k`.

    Returns:
      A square matrix.

    >>> import pyjx as jax
    >>> jax.numpy.diagflat(jax.numpy.array([1, 2])).tolist()
    [[1, 0], [0, 2]]
    """
    v = strong(*operands("diagflat", v))
    return _diag_matrix(ops.reshape(asarray(v), (get_aval(v).size,)), k)
