"""Products that sum over shared axes: dot, matmul, tensordot, inner, outer, kron, trace, cross.

All but the elementwise ones are one `dot_general`, whose operands may be of different dtypes: their
common dtype is the dtype of the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, DTypeLike
from pyjx.core.avals import get_aval
from pyjx.core.explicit import entries_of, one_entry
from pyjx.core.layouts import ShardingLike
from pyjx.core.scalars import check_int_fits
from pyjx.core.trace import Tracer
from pyjx.engine.moves import made_to_lie
from pyjx.errors import UnexpectedTracerError
from pyjx.jaxlib_api import NamedSharding
from pyjx.lax.common import broadcast_shapes
from pyjx.lax.contractions import (
    DotDimensionNumbers,
    PrecisionLike,
    canonicalize_precision,
    dot_general_p,
    result_sharding,
    takes_real_part,
)
from pyjx.lax.elementwise import stretch
from pyjx.numpy.manipulation import moved, permuted, with_new_axes
from pyjx.numpy.operands import as_tuple, canonical_axis, filled_like, is_integer, numpy_function
from pyjx.numpy.promotion import convert, no_out, operands, promote_dtypes, promote_shapes, strong
from pyjx.numpy.reductions import promoted_integer
from pyjx.numpy.ufuncs import multiply
from pyjx.runtime.operations import op_jit

Axes = tuple[int, ...]
_dot_options = ("precision", "preferred_element_type", "out_sharding")


def contract(name: str, a: ArrayLike, b: ArrayLike, dimension_numbers: DotDimensionNumbers,
             precision: PrecisionLike, preferred: DTypeLike | None,
             out_sharding: ShardingLike = None) -> Any:
    """`dot_general` with the common dtype of `a` and `b`, or `preferred`, as the result's."""
    weak = False
    if preferred is None:
        x, y = get_aval(a), get_aval(b)
        if x.dtype == y.dtype and not (x.weak_type and y.weak_type):
            preferred = x.dtype
        else:
            preferred, weak = dtypes.result_type(a, b, return_weak_type_flag=True)
    else:
        preferred = dtypes.check_and_canonicalize_user_dtype(preferred, name)
        if takes_real_part(preferred, get_aval(a).dtype, get_aval(b).dtype):
            common = dtypes.to_complex_dtype(preferred)
            a, b = convert(a, common), convert(b, common)
            product = contract(name, a, b, dimension_numbers, precision, None, out_sharding)
            return convert(lax.real(product), preferred)
    precision = canonicalize_precision(precision)
    if out_sharding is not None:
        out_sharding = result_sharding(get_aval(a), get_aval(b), dimension_numbers, out_sharding,
                                       name)
    try:
        out = dot_general_p.bind(a, b, dimension_numbers=dimension_numbers, precision=precision,
                                 preferred_element_type=preferred, out_sharding=out_sharding)
    except UnexpectedTracerError:
        raise
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None
    return convert(out, preferred, weak)


@op_jit(static_argnames=_dot_options)
def dot(a: ArrayLike, b: ArrayLike, *, precision: PrecisionLike = None,
        preferred_element_type: DTypeLike | None = None, out_sharding: ShardingLike = None
       ) -> Array:
    """The product that sums over the last axis of `a` and the second last (or only) one of `b`.

    Args:
      a, b: arrays; with a scalar it is the elementwise product.
      precision: what accelerators compute with: None, a `lax.Precision`, its name, or a pair.
      preferred_element_type: dtype to accumulate in and of the result.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    Returns:
      An array of the axes of `a` but the last, then those of `b` but the last but one, of the dtype
      to which the two promote.

    Raises:
      TypeError: the sizes of the two axes differ.

    >>> import pyjx as jax
    >>> jax.numpy.dot(jax.numpy.array([[1, 2], [3, 4]]), jax.numpy.array([1, 1])).tolist()
    [3, 7]
    """
    a, b = operands("dot", a, b)
    m, n = get_aval(a).ndim, get_aval(b).ndim
    if not m or not n:
        dims: Any = (((), ()), ((), ()))
    else:
        dims = (((m - 1,), (max(n - 2, 0),)), ((), ()))
    return contract("dot", a, b, dims, precision, preferred_element_type, out_sharding)


_matrix_dims = (((1,), (0,)), ((), ()))


@op_jit(static_argnames=_dot_options)
def matmul(a: ArrayLike, b: ArrayLike, *, precision: PrecisionLike = None,
           preferred_element_type: DTypeLike | None = None, out_sharding: ShardingLike = None
          ) -> Array:
    """The matrix product, of the last two axes; those before them are broadcast.

    Args:
      a: array of shape (..., m, k) or (k,).
      b: array of shape (..., k, n) or (k,).
      precision: what accelerators compute with: None, a `lax.Precision`, its name, or a pair.
      preferred_element_type: dtype to accumulate in and of the result.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    Returns:
      Array of shape (..., m, n), without m or n where an operand has one axis.

    Raises:
      TypeError: the sizes of the summed axes differ.
      ValueError: an operand is a scalar, or the other axes do not broadcast.

    >>> import pyjx as jax
    >>> jax.numpy.matmul(jax.numpy.array([[1, 2], [3, 4]]), jax.numpy.array([1, 1])).tolist()
    [3, 7]
    """
    if not (isinstance(a, Tracer) and isinstance(b, Tracer)):
        a, b = operands("matmul", a, b)
    x, y = get_aval(a), get_aval(b)
    if x.ndim == 2 and y.ndim == 2:
        return contract("matmul", a, b, _matrix_dims, precision, preferred_element_type,
                        out_sharding)
    for i, aval in enumerate((x, y)):
        if not aval.ndim:
            raise ValueError(f"matmul input operand {i} must have ndim at least 1, but it has ndim "
                             "0. A number is multiplied by with *.")
    if y.ndim <= 2:
        dims = (((x.ndim - 1,), (0,)), ((), ()))
        return contract("matmul", a, b, dims, precision, preferred_element_type, out_sharding)
    return _batched_matmul(a, b, precision, preferred_element_type, out_sharding)


def _batched_matmul(a: ArrayLike, b: ArrayLike, precision: PrecisionLike,
                    preferred: DTypeLike | None, out_sharding: ShardingLike) -> Any:
    x, y = get_aval(a), get_aval(b)
    core_a, core_b = min(x.ndim, 2), min(y.ndim, 2)
    rank = max(x.ndim - core_a, y.ndim - core_b)
    skip_a, skip_b = rank - (x.ndim - core_a), rank - (y.ndim - core_b)
    # Axes of the batch that both have, or that only one has (with size 1, it is dropped), or that
    # come back at the end, because a batch of one is no batch.
    shared, only_a, only_b, drop_a, drop_b, ones = [], [], [], [], [], []
    for i in range(rank):
        m = x.shape[i - skip_a] if i >= skip_a else None
        n = y.shape[i - skip_b] if i >= skip_b else None
        if m is not None and m == n:
            if m == 1 and out_sharding is None:
                ones.append(i)
                drop_a.append(i - skip_a)
                drop_b.append(i - skip_b)
            else:
                shared.append(i)
        elif n is None or (n == 1 and m is not None):
            only_a.append(i)
            drop_b += [i - skip_b] if n == 1 else []
        elif m is None or m == 1:
            only_b.append(i)
            drop_a += [i - skip_a] if m == 1 else []
        else:
            raise ValueError(f"Incompatible types for matmul arguments: {x.str_short()} and "
                             f"{y.str_short()}. Axis {i - skip_a} of the one has size {m}, axis "
                             f"{i - skip_b} of the other size {n}: sizes of a batch must be equal, "
                             "or 1.")
    a = lax.squeeze(a, drop_a) if drop_a else a
    b = lax.squeeze(b, drop_b) if drop_b else b
    in_a, in_b = sorted([*shared, *only_a]), sorted([*shared, *only_b])
    batch = (tuple([in_a.index(i) for i in shared]), tuple([in_b.index(i) for i in shared]))
    summed = ((len(in_a) + core_a - 1,), (len(in_b) + core_b - 2 if core_b == 2 else len(in_b),))
    out = contract("matmul", a, b, (summed, batch), precision, preferred, out_sharding)
    row, column = [rank] * (core_a == 2), [rank + 1] * (core_b == 2)
    order = [*shared, *only_a, *row, *only_b, *column]  # of the result's axes
    out = permuted(out, tuple([order.index(i) for i in sorted(order)]))
    return lax.expand_dims(out, ones) if ones else out


@numpy_function(static_argnames=("axes", *_dot_options))
def tensordot(a: ArrayLike, b: ArrayLike, axes: int | Sequence[int] | Sequence[Sequence[int]] = 2,
              *, precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None,
              out_sharding: ShardingLike = None) -> Array:
    """The product that sums over given axes of `a` and `b`.

    Args:
      a, b: arrays.
      axes: how many of the last axes of `a` and the first of `b`; or a pair, the axes of each.
      precision, preferred_element_type: as for `dot`.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    Returns:
      An array: the axes of `a` that are not summed over, then those of `b`.

    Raises:
      TypeError: `axes` does not fit the operands.

    >>> import pyjx as jax
    >>> jax.numpy.tensordot(jax.numpy.ones((2, 3, 4)), jax.numpy.ones((3, 4, 5))).shape
    (2, 5)
    """
    a, b = operands("tensordot", a, b)
    m, n = get_aval(a).ndim, get_aval(b).ndim
    if not isinstance(axes, (tuple, list)):
        if type(axes) is not int:
            raise _tensordot_axes(axes)
        count = axes
        if count > min(m, n):
            raise TypeError(f"Number of tensordot axes (axes {count}) exceeds input ranks "
                            f"({get_aval(a).shape} and {get_aval(b).shape})")
        summed: Any = (tuple(range(m - count, m)), tuple(range(count)))
    elif len(axes) == 2:
        if isinstance(axes[0], (tuple, list)) != isinstance(axes[1], (tuple, list)):
            raise TypeError("tensordot requires both axes lists to be either ints, tuples or "
                            f"lists, got {axes[0]} and {axes[1]}")
        first, second = as_tuple(axes[0]), as_tuple(axes[1])
        if len(first) != len(second):
            raise TypeError("tensordot requires axes lists to have equal length, got "
                            f"{axes[0]} and {axes[1]}.")
        summed = (tuple([canonical_axis(i, m) for i in first]),
                  tuple([canonical_axis(i, n) for i in second]))
    else:
        raise _tensordot_axes(axes)
    return contract("tensordot", a, b, (summed, ((), ())), precision, preferred_element_type,
                    out_sharding)


def _tensordot_axes(axes: int | Sequence[int] | Sequence[Sequence[int]]) -> TypeError:
    return TypeError("tensordot axes argument must be an int, a pair of ints, or a pair of "
                     f"lists/tuples of ints. Got {axes!r}.")


def _conjugated(x: ArrayLike) -> Any:
    return lax.conj(x) if get_aval(x).dtype in dtypes.complex_dtypes else x


@numpy_function(static_argnames=("precision", "preferred_element_type"))
def vdot(a: ArrayLike, b: ArrayLike, *, precision: PrecisionLike = None,
         preferred_element_type: DTypeLike | None = None) -> Array:
    """The sum of products of the flattened arrays, `a` conjugated.

    Returns:
      An array of no axes.

    >>> import pyjx as jax
    >>> int(jax.numpy.vdot(jax.numpy.array([1, 2]), jax.numpy.array([3, 4])))
    11
    """
    a, b = operands("vdot", a, b)
    a = lax.reshape(_conjugated(a), (get_aval(a).size,))
    b = lax.reshape(b, (get_aval(b).size,))
    return contract("vdot", a, b, (((0,), (0,)), ((), ())), precision, preferred_element_type)


def _batched_dot(name: str, a: ArrayLike, b: ArrayLike, core_a: int, core_b: int, sum_a: int,
                 sum_b: int, precision: PrecisionLike = None,
                 preferred: DTypeLike | None = None) -> Any:
    """The sum over one of the last (core) axes of each, those before them broadcast."""
    x, y = get_aval(a), get_aval(b)
    for i, (aval, core) in enumerate(((x, core_a), (y, core_b))):
        if aval.ndim < core:
            raise ValueError(f"{name}: input {i} must have at least {core} dimensions, got shape "
                             f"{aval.shape}")
    m, n = x.shape[sum_a], y.shape[sum_b]
    if m != n:
        raise ValueError(f"{name}: axes must match; got shapes {x.shape} and {y.shape} with "
                         f"axis=-1: inconsistent size for core dimension, {n} vs {m}")
    lead = broadcast_shapes(x.shape[:x.ndim - core_a], y.shape[:y.ndim - core_b])
    ones = [i for i, size in enumerate(lead) if size == 1]  # a batch of one is no batch
    a, b = (lax.squeeze(_with_lead(z, lead, core), ones) for z, core in ((a, core_a), (b, core_b)))
    k = len(lead) - len(ones)
    a, b = _cut_alike(name, a, b, k)
    batch = (tuple(range(k)), tuple(range(k)))
    dims = (((k + core_a + sum_a,), (k + core_b + sum_b,)), batch)
    return lax.expand_dims(contract(name, a, b, dims, precision, preferred), ones)


def _cut_alike(name: str, a: ArrayLike, b: ArrayLike, k: int) -> list[Any]:
    """Two arrays of one batch, their first `k` axes; one that was stretched is cut as the other."""
    avals = get_aval(a), get_aval(b)
    known = [v.place.sharding for v in avals if v.place.sharding is not None]
    if not known:
        return [a, b]
    inputs = ", ".join([v.str_short(True) for v in avals])
    lead = [one_entry(along, f"{name} got batches that are cut differently: {inputs}.")
            for along in zip(*[entries_of(v)[:k] for v in avals], strict=True)]
    out = []
    for x, aval in zip((a, b), avals, strict=True):
        entries = (*lead, *entries_of(aval)[k:])
        if entries != entries_of(aval):
            spec = aval.place.spec.update(partitions=entries)
            x = made_to_lie(x, NamedSharding(known[0].mesh, spec))
        out.append(x)
    return out


def _with_lead(x: ArrayLike, lead: Axes, core: int) -> Any:
    shape = get_aval(x).shape
    return stretch(x, (*lead, *shape[len(shape) - core:]))


@numpy_function(static_argnames=("axis", "precision", "preferred_element_type"))
def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, precision: PrecisionLike = None,
           preferred_element_type: DTypeLike | None = None) -> Array:
    """The sum of products along an axis, `x1` conjugated; the other axes are broadcast.

    Returns:
      An array without the axis, of the shape to which the others are broadcast.

    >>> import pyjx as jax
    >>> jax.numpy.vecdot(jax.numpy.array([[1, 2], [3, 4]]), jax.numpy.array([1, 1])).tolist()
    [3, 7]
    """
    x1, x2 = operands("jnp.vecdot", x1, x2)
    a, b = get_aval(x1), get_aval(x2)
    if not a.ndim or not b.ndim:
        raise ValueError("vecdot: inputs must have at least one dimension, got shapes "
                         f"{a.shape} and {b.shape}")
    if axis != -1:
        x1, x2 = (moved(x, axis, -1) for x in (x1, x2))
    return _batched_dot("vecdot", _conjugated(x1), x2, 1, 1, -1, -1, precision,
                        preferred_element_type)


@numpy_function
def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Matrices times vectors: shapes (..., m, n) and (..., n) give (..., m).

    Returns:
      An array (..., m): the product of (..., m, n) and (..., n).

    >>> import pyjx as jax
    >>> jax.numpy.matvec(jax.numpy.array([[1, 2], [3, 4]]), jax.numpy.array([1, 1])).tolist()
    [3, 7]
    """
    x1, x2 = operands("matvec", x1, x2)
    return _batched_dot("matvec", x1, x2, 2, 1, -1, -1)


@numpy_function
def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Vectors, conjugated, times matrices: shapes (..., n) and (..., n, m) give (..., m).

    Returns:
      An array (..., m): the product of (..., n) and (..., n, m).

    >>> import pyjx as jax
    >>> jax.numpy.vecmat(jax.numpy.array([1, 1]), jax.numpy.array([[1, 2], [3, 4]])).tolist()
    [4, 6]
    """
    x1, x2 = operands("vecmat", x1, x2)
    return _batched_dot("vecmat", _conjugated(x1), x2, 1, 2, -1, -2)


@numpy_function(static_argnames=("precision", "preferred_element_type"))
def inner(a: ArrayLike, b: ArrayLike, *, precision: PrecisionLike = None,
          preferred_element_type: DTypeLike | None = None) -> Array:
    """The product that sums over the last axes of both; with a scalar, the elementwise product.

    Returns:
      An array: the axes of `a` but the last, then those of `b` but the last.

    >>> import pyjx as jax
    >>> jax.numpy.inner(jax.numpy.ones((2, 3)), jax.numpy.ones((4, 3))).shape
    (2, 4)
    """
    a, b = operands("inner", a, b)
    m, n = get_aval(a).ndim, get_aval(b).ndim
    if not m or not n:
        if preferred_element_type is not None:
            dtype = dtypes.check_and_canonicalize_user_dtype(preferred_element_type, "inner")
            a, b = convert(a, dtype), convert(b, dtype)
        return multiply(a, b)
    return contract("inner", a, b, (((m - 1,), (n - 1,)), ((), ())), precision,
                    preferred_element_type)


@numpy_function
def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """The products of all pairs of elements: shape (a.size, b.size).

    Returns:
      An array (m, n) of the products of m and n elements: arguments are flattened.

    >>> import pyjx as jax
    >>> jax.numpy.outer(jax.numpy.array([1, 2]), jax.numpy.array([3, 4])).tolist()
    [[3, 4], [6, 8]]
    """
    no_out("outer", out)
    a, b = promote_dtypes(*operands("outer", a, b))
    m, n = get_aval(a).size, get_aval(b).size
    column = lax.broadcast_in_dim(lax.reshape(a, (m,)), (m, n), (0,))
    row = lax.broadcast_in_dim(lax.reshape(b, (n,)), (m, n), (1,))
    return (lax.bitwise_and if get_aval(a).dtype == dtypes.bool_dtype else lax.mul)(column, row)


@numpy_function
def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """The Kronecker product: `a` with each element replaced by its product with all of `b`.

    Returns:
      An array whose sizes are the products of those of the arguments.

    >>> import pyjx as jax
    >>> jax.numpy.kron(jax.numpy.array([1, 2]), jax.numpy.array([1, 10])).tolist()
    [1, 10, 2, 20]
    """
    a, b = promote_dtypes(*operands("kron", a, b))
    m, n = get_aval(a).ndim, get_aval(b).ndim
    rank = max(m, n)
    a = with_new_axes(a, tuple(range(rank - m)))
    b = with_new_axes(b, tuple(range(rank - n)))
    old_a, old_b = get_aval(a).shape, get_aval(b).shape
    shape = tuple([n for pair in zip(old_a, old_b, strict=True) for n in pair])
    wide_a = lax.broadcast_in_dim(a, shape, tuple(range(0, 2 * rank, 2)))
    wide_b = lax.broadcast_in_dim(b, shape, tuple(range(1, 2 * rank, 2)))
    return lax.reshape(lax.mul(wide_a, wide_b),
                       tuple([i * j for i, j in zip(old_a, old_b, strict=True)]))


@numpy_function(static_argnames=("offset", "axis1", "axis2", "dtype"))
def trace(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1,
          dtype: DTypeLike | None = None, out: None = None) -> Array:
    """The sum of a diagonal of the matrices that two axes span.

    Args:
      a: array of at least two axes.
      offset: which diagonal: 0 the main one, positive above it.
      axis1, axis2: the rows and the columns.
      dtype: of the sum; by default as for `sum`.
      out: not supported, must be None.

    Returns:
      The sums over the diagonals: an array without the two axes. Narrow integers become the default
      integer dtype.

    Raises:
      ValueError: the axes are equal, or `offset` is no integer.

    >>> import pyjx as jax
    >>> int(jax.numpy.trace(jax.numpy.array([[1, 2], [3, 4]])))
    5
    """
    no_out("trace", out)
    (a,) = operands("trace", a)
    if np.ndim(offset):  # an array is static, and so has become a tuple
        raise TypeError(f"trace: offset must be an integer, got {offset}")
    (offset,) = operands("trace", offset)
    if not is_integer(offset):
        raise ValueError(f"trace: k must be a scalar integer; got {get_aval(offset).str_short()}")
    if type(offset) is int:
        check_int_fits(offset, get_aval(offset))
    ndim = get_aval(a).ndim
    if canonical_axis(axis1, ndim) == canonical_axis(axis2, ndim):
        raise ValueError(f"trace: axis1 and axis2 can not be same. {axis1=} and {axis2=}")
    a = moved(a, (axis1, axis2), (-2, -1))
    aval = get_aval(a)
    dtype = (promoted_integer(aval.dtype) if dtype is None
             else dtypes.check_and_canonicalize_user_dtype(dtype, "trace"))
    shape = aval.shape[-2:]
    index = dtypes.default_int_dtype()
    rows = lax.add(lax.broadcasted_iota(index, shape, 0),
                   lax.full(shape, convert(offset, index), index))
    diagonal = lax.eq(rows, lax.broadcasted_iota(index, shape, 1))
    rank = aval.ndim
    mask = lax.broadcast_in_dim(diagonal, aval.shape, (rank - 2, rank - 1))
    kept = lax.select(mask, a, filled_like(a, 0))
    total = lax.reduce_or if dtype == dtypes.bool_dtype else lax.reduce_sum
    return total(convert(kept, dtype), (rank - 2, rank - 1))


@numpy_function(static_argnames=("axisa", "axisb", "axisc", "axis"))
def cross(a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1,
          axis: int | None = None) -> Array:
    """The cross product of vectors of three components.

    Args:
      a, b: arrays of vectors along `axisa` and `axisb`; the other axes are broadcast.
      axisc: where the components stand in the result.
      axis: one axis for all three.
      axisa, axisb: the axes of the vectors in `a` and `b`.

    Returns:
      An array of the dtype to which the arguments promote: its axis of vectors has three
      components.

    Raises:
      ValueError: vectors have other than three components.

    >>> import pyjx as jax
    >>> jax.numpy.cross(jax.numpy.array([1, 0, 0]), jax.numpy.array([0, 1, 0])).tolist()
    [0, 0, 1]
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = promote_dtypes(*operands("cross", a, b))
    a, b = moved(a, axisa, -1), moved(b, axisb, -1)
    if get_aval(a).shape[-1] != 3 or get_aval(b).shape[-1] != 3:
        raise ValueError("Dimension must be 3 for cross product")
    a, b = map(strong, (a, b))
    (a0, a1, a2), (b0, b1, b2) = (lax.unstack(x, get_aval(x).ndim - 1) for x in (a, b))

    def minor(p: ArrayLike, q: ArrayLike, r: ArrayLike, s: ArrayLike) -> Any:
        return lax.sub(_product(p, q), _product(r, s))

    parts = [minor(a1, b2, a2, b1), minor(a2, b0, a0, b2), minor(a0, b1, a1, b0)]
    return lax.stack(parts, canonical_axis(axisc, get_aval(parts[0]).ndim + 1))


def _product(x: ArrayLike, y: ArrayLike) -> Any:
    return lax.mul(*promote_shapes("cross", x, y))
