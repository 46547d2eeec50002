"""Products, and parts of matrices, along the last axes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from pyjx.core.array_type import Array, ArrayLike, DTypeLike
from pyjx.core.avals import get_aval
from pyjx.core.bounded import kept
from pyjx.lax.contractions import PrecisionLike
from pyjx.lax.elementwise import by_squaring
from pyjx.lax.linalg.matrices import identity_like
from pyjx.numpy import contractions
from pyjx.numpy.diagonals import diagonal as _diagonal
from pyjx.numpy.linalg.systems import inv
from pyjx.numpy.manipulation import matrix_transpose as _matrix_transpose
from pyjx.numpy.operands import canonical_axes, numpy_function
from pyjx.numpy.promotion import operands, promote_dtypes
from pyjx.runtime.operations import body_of

_matmul = body_of(contractions.matmul)
_dot_options = ("precision", "preferred_element_type")


@numpy_function
def matrix_transpose(x: ArrayLike, /) -> Array:
    """Matrices with rows and columns exchanged: the last two axes.

    Returns:
      An array (..., n, m) of an array (..., m, n).

    >>> import pyjx as jax
    >>> jax.numpy.linalg.matrix_transpose(jax.numpy.ones((2, 3, 4))).shape
    (2, 4, 3)
    """
    (x,) = operands("jnp.linalg.matrix_transpose", x)
    if get_aval(x).ndim < 2:
        raise ValueError("matrix_transpose requires at least 2 dimensions; got "
                         f"ndim={get_aval(x).ndim}")
    return body_of(_matrix_transpose)(x)


@numpy_function(static_argnames=("offset",))
def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """A diagonal of matrices `[..., m, n]`: the main one, or one above (below) it.

    Args:
      x: an array (..., m, n).
      offset: which diagonal: 0 is the main one, positive ones are above it.

    Returns:
      An array (..., n), with the diagonals along its last axis.

    >>> import pyjx as jax
    >>> jax.numpy.linalg.diagonal(jax.numpy.array([[1, 2], [3, 4]])).tolist()
    [1, 4]
    """
    (x,) = operands("jnp.linalg.diagonal", x)
    return body_of(_diagonal)(x, offset=offset, axis1=-2, axis2=-1)


@numpy_function(static_argnames=("offset", "dtype"))
def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """The sum of a diagonal of matrices `[..., m, n]`.

    Args:
      x: an array (..., m, n).
      offset: which diagonal: 0 is the main one, positive ones are above it.
      dtype: of the result; None for the one that follows from the arguments.

    Returns:
      An array (...), without the last two axes.

    >>> import pyjx as jax
    >>> int(jax.numpy.linalg.trace(jax.numpy.array([[1, 2], [3, 4]])))
    5
    """
    (x,) = operands("jnp.linalg.trace", x)
    canonical_axes((-2, -1), get_aval(x).ndim)
    return body_of(contractions.trace)(x, offset, -2, -1, dtype)


@numpy_function(static_argnames=_dot_options)
def matmul(x1: ArrayLike, x2: ArrayLike, /, *, precision: PrecisionLike = None,
           preferred_element_type: DTypeLike | None = None) -> Array:
    """The matrix product, as `jax.numpy.matmul`.

    Returns:
      An array (..., n, m) of the dtype to which the arguments promote.

    >>> import pyjx as jax
    >>> jax.numpy.linalg.matmul(jax.numpy.ones((2, 3)), jax.numpy.ones((3, 4))).shape
    (2, 4)
    """
    x1, x2 = operands("jnp.linalg.matmul", x1, x2)
    return _matmul(x1, x2, precision=precision, preferred_element_type=preferred_element_type)


@numpy_function(static_argnames=("axis", *_dot_options))
def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, precision: PrecisionLike = None,
           preferred_element_type: DTypeLike | None = None) -> Array:
    """The products of vectors along an axis, `x1` conjugated, as `jax.numpy.vecdot`.

    Returns:
      An array without the axis, of the shape to which the others are broadcast.

    >>> import pyjx as jax
    >>> int(jax.numpy.linalg.vecdot(jax.numpy.array([1, 2]), jax.numpy.array([3, 4])))
    11
    """
    x1, x2 = operands("jnp.linalg.vecdot", x1, x2)
    return body_of(contractions.vecdot)(x1, x2, axis=axis, precision=precision,
                                       preferred_element_type=preferred_element_type)


@numpy_function
def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The products of all pairs of elements of two vectors.

    Returns:
      An array (m, n) of the products of m and n elements.

    Raises:
      ValueError: an argument is no vector; `jax.numpy.outer` flattens it.

    >>> import pyjx as jax
    >>> jax.numpy.linalg.outer(jax.numpy.array([1, 2]), jax.numpy.array([3, 4])).tolist()
    [[3, 4], [6, 8]]
    """
    x1, x2 = operands("jnp.linalg.outer", x1, x2)
    a, b = get_aval(x1), get_aval(x2)
    if a.ndim != 1 or b.ndim != 1:
        raise ValueError("Input arrays must be one-dimensional, but they are "
                         f"x1.ndim={a.ndim} x2.ndim={b.ndim}")
    return body_of(contractions.outer)(x1, x2)


@numpy_function(static_argnames=("axis",))
def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """The cross products of vectors of three components along an axis.

    Returns:
      An array of the shape to which the arguments are broadcast.

    Raises:
      ValueError: vectors have another number of components.

    >>> import pyjx as jax
    >>> jax.numpy.linalg.cross(jax.numpy.array([1, 0, 0]), jax.numpy.array([0, 1, 0])).tolist()
    [0, 0, 1]
    """
    x1, x2 = operands("jnp.linalg.cross", x1, x2)
    sizes = [get_aval(x).shape[canonical_axes(axis, get_aval(x).ndim)[0]] for x in (x1, x2)]
    if sizes != [3, 3]:
        raise ValueError("Both input arrays must be (arrays of) 3-dimensional vectors, but they "
                         f"have x1.shape[axis]={sizes[0]} and x2.shape[axis]={sizes[1]}")
    return body_of(contractions.cross)(x1, x2, axis=axis)


# -- chains of products ----------------------------------------------------------------------------


@numpy_function(static_argnames=("n",))
def matrix_power(a: Any, n: int) -> Array:
    """Square matrices to an integer power, by repeated squaring.

    Args:
      a: matrices `[..., k, k]`.
      n: an integer; a negative one is for the inverse, with an inexact dtype.

    Returns:
      An array (..., n, n).

    Raises:
      TypeError: `n` is no integer, or the matrices are not square.

    >>> import pyjx as jax
    >>> jax.numpy.linalg.matrix_power(jax.numpy.array([[1, 1], [0, 1]]), 5).tolist()
    [[1, 5], [0, 1]]
    """
    (a,) = operands("jnp.linalg.matrix_power", a)
    shape = get_aval(a).shape
    if len(shape) < 2:
        raise TypeError(f"{len(shape)}-dimensional array given. Array must be at least "
                        "two-dimensional")
    if shape[-1] != shape[-2]:
        raise TypeError(f"Last 2 dimensions of the array must be square, got shape {shape}")
    try:
        n = n.__index__()
    except AttributeError:
        raise TypeError(f"exponent must be an integer, got {n}") from None
    if n < 0:
        a, n = body_of(inv)(a), -n
    return by_squaring(_matmul, a, n) if n else identity_like(a)


@kept(256)
def _best_order(sizes: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Where to cut each chain i..j of matrices, so that the number of multiplications is least.

    Matrix k has `sizes[k]` rows and `sizes[k + 1]` columns (Cormen, Leiserson, Rivest and Stein,
    Introduction to Algorithms, 15.2).
    """
    n = len(sizes) - 1
    cost = [[0] * n for _ in range(n)]
    cut = [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            choices = [(cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                       for k in range(i, j)]
            cost[i][j], cut[i][j] = min(choices)
    return tuple([tuple(row) for row in cut])


@numpy_function(static_argnames=("precision",))
def multi_dot(arrays: Sequence[Any], *, precision: PrecisionLike = None) -> Array:
    """The product of several matrices, in the order that needs the fewest multiplications.

    Args:
      arrays: at least two matrices; the first and the last may be vectors.
      precision: as for `jax.numpy.matmul`.

    Returns:
      An array of the dtype to which the arguments promote: of two axes, or of fewer where the first
      or the last argument is a vector.

    Raises:
      ValueError: there are fewer, one has another number of axes, or the sizes do not fit.

    >>> import pyjx as jax
    >>> one, two, three = (jax.numpy.ones(shape) for shape in ((2, 3), (3, 4), (4,)))
    >>> jax.numpy.linalg.multi_dot([one, two, three]).tolist()
    [12.0, 12.0]
    """
    if getattr(arrays, "ndim", 1) == 0:
        raise TypeError("multi_dot: arrays must be a sequence of arrays, got a scalar")
    if len(arrays) < 2:
        raise ValueError(f"multi_dot requires at least two arrays; got len(arrays)={len(arrays)}")
    arrays = promote_dtypes(*operands("jnp.linalg.multi_dot", *arrays))
    shapes = [get_aval(x).shape for x in arrays]
    ends = (0, len(shapes) - 1)
    if any(len(s) != 2 and not (len(s) == 1 and i in ends) for i, s in enumerate(shapes)):
        raise ValueError("multi_dot: input arrays must all be two-dimensional, except for the "
                         "first and last array which may be 1 or 2 dimensional. Got array shapes "
                         f"{shapes}")
    if any(s[-1] != t[0] for s, t in pairwise(shapes)):
        raise ValueError("multi_dot: last dimension of each array must match first dimension of "
                         f"following array. Got array shapes {shapes}")
    first = shapes[0][0] if len(shapes[0]) == 2 else 1
    last = shapes[-1][1] if len(shapes[-1]) == 2 else 1
    sizes = [first, *[s[0] for s in shapes[1:]], last]
    cut = _best_order(tuple(sizes))

    def multiplied(i: int, j: int) -> Any:
        if i == j:
            return arrays[i]
        k = cut[i][j]
        return _matmul(multiplied(i, k), multiplied(k + 1, j), precision=precision)

    return multiplied(*ends)
