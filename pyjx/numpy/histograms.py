"""Histograms and counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import get_aval
from pyjx.core.explicit import abstract_sharding, check_out_sharding
from pyjx.core.integers import as_int, index
from pyjx.core.layouts import ShardingLike
from pyjx.core.specs import PartitionSpec, axes_of, spec_to_give
from pyjx.core.trace import concrete_or_error
from pyjx.errors import ShardingTypeError
from pyjx.numpy import creation, ufuncs
from pyjx.numpy.differences import diff
from pyjx.numpy.grids import linspace
from pyjx.numpy.promotion import convert, operands, promote_dtypes_inexact
from pyjx.numpy.reductions import max as _max
from pyjx.numpy.reductions import min as _min
from pyjx.numpy.reductions import sum as _sum
from pyjx.numpy.sorting import searchsorted
from pyjx.runtime.resharding import in_auto_mode


def _counted(index: Any, weights: ArrayLike | None, size: int, out_sharding: ShardingLike = None
            ) -> Any:
    """The sums of the weights of each index; indices out of range are left out."""
    return lax.full((size,), 0, get_aval(weights).dtype).at[index].add(
        weights, mode="drop", out_sharding=out_sharding)


def bincount(x: ArrayLike, weights: ArrayLike | None = None, minlength: int = 0, *,
             length: int | None = None, out_sharding: ShardingLike = None) -> Array:
    """How often each of the integers 0, 1, ... occurs.

    Args:
      x: one-dimensional array of integers; negative ones count as 0.
      weights: what to add for each element; 1 by default.
      minlength: least size of the result where `length` is not given.
      length: size of the result, needed where `x` is traced; larger integers are left out.
      out_sharding: a copy on each device, or sums that are yet to be taken along all axes of the
        mesh.

    Returns:
      An array (length,): counts are integers, sums of weights have their dtype. Where `x` is
      traced, `length` must be given: what lies beyond is not counted.

    Raises:
      TypeError: `x` is not of integer dtype.
      ValueError: `x` is not one-dimensional.

    >>> import pyjx as jax
    >>> jax.numpy.bincount(jax.numpy.array([1, 2, 2])).tolist()
    [0, 1, 2]
    """
    if out_sharding is not None:
        _check_is_whole(out_sharding)
    (x,) = operands("bincount", x)
    aval = get_aval(x)
    if aval.dtype == np.bool_:
        x = convert(x, np.dtype(np.int32))
    elif not dtypes.issubdtype(aval.dtype, np.integer):
        raise TypeError("x argument to bincount must have an integer type; got "
                        f"{dtypes.name(aval.dtype)}")
    if aval.ndim != 1:
        raise ValueError("only 1-dimensional input supported.")
    minlength = concrete_or_error(
        index, minlength,
        "The error occurred because of argument 'minlength' of jnp.bincount.")
    if length is None:
        host = np.asarray(concrete_or_error(None, x, (
            "The error occurred because of argument 'x' of jnp.bincount. To avoid this error, pass "
            "a static `length` argument."), ""))
        length = max(minlength, int(host.max()) + 1 if host.size else 0)
    else:
        length = concrete_or_error(
            index, length,
            "The error occurred because of argument 'length' of jnp.bincount.")
        if length < 0:
            raise TypeError(f"bincount: length must be nonnegative, got {length}: the shape of the "
                            "result must have every element be nonnegative.")
    if weights is None:
        weights = lax.full(aval.shape, 1, dtypes.default_int_dtype())
    elif get_aval(weights).shape != aval.shape:
        raise ValueError("bincount: type of weights must match type of x. The shape of weights "
                         f"must match shape of x, got {get_aval(weights).shape} and {aval.shape}.")
    return _counted(ufuncs.maximum(x, 0), operands("bincount", weights)[0], length, out_sharding)


def _check_is_whole(out_sharding: Any) -> None:
    check_out_sharding(out_sharding, "bincount")
    spec = out_sharding if isinstance(out_sharding, PartitionSpec) else out_sharding.spec
    mesh = abstract_sharding(out_sharding, "bincount")
    if axes_of(spec) or (spec.unreduced and spec.unreduced != set(mesh.mesh.axis_names)):
        raise ShardingTypeError(
            "out_sharding passed to `jnp.bincount` can only be fully replicated or fully unreduced "
            f"along all mesh axes. Got {out_sharding}; call jax.reshard after it, with "
            f"{spec_to_give()}.")


def _edges(a: ArrayLike, bins: Any, limits: Any) -> Any:
    """The edges of the bins of the values `a`."""
    if isinstance(bins, str):
        cure = "int(bins)" if bins.isdecimal() else "numpy.histogram_bin_edges(a, bins)"
        raise NotImplementedError(
            f"bins must be a number of bins, or their edges, got {bins!r}: string values for "
            f"`bins` not implemented. Give {cure}.")
    (a,) = operands("histogram_bin_edges", a)
    dtype = dtypes.to_inexact_dtype(get_aval(a).dtype)
    if isinstance(bins, (list, tuple)) or np.ndim(bins) == 1:
        return convert(creation.asarray(bins), dtype)
    count = as_int("histogram", "bins", concrete_or_error(
        None, bins, "bins argument of histogram_bin_edges: their number must be static, or give "
        "the edges as an array."))
    if count < -1:
        raise ValueError(f"histogram: bins must not be negative, got {count}. Number of samples, "
                         f"{count + 1}, must be non-negative.")
    if limits is None:
        low, high = (_min(a), _max(a)) if get_aval(a).size else (0, 1)
    else:
        low, high = _bounds(limits)
    low, high = (convert(operands("histogram", x)[0], dtype) for x in (low, high))
    same = ufuncs.equal(low, high)
    low = ufuncs.where(same, ufuncs.subtract(low, 0.5), low)
    high = ufuncs.where(same, ufuncs.add(high, 0.5), high)
    return linspace(low, high, count + 1, dtype=dtype)


def _bounds(limits: Any) -> Sequence[Any]:
    """The least and the largest value; either may be traced."""
    try:
        low, high = limits
        if np.ndim(low) == np.ndim(high) == 0:
            return [float(x) if type(x) is int else x for x in (low, high)]
    except (TypeError, ValueError):  # there are not two
        pass
    raise ValueError("histogram: `range` must be either None or a sequence of scalars, the least "
                     f"and the largest, got {limits}")


def histogram_bin_edges(a: ArrayLike, bins: ArrayLike = 10, range: Any = None,
                        weights: ArrayLike | None = None) -> Array:
    """The edges of the bins that `histogram` uses.

    Args:
      a, bins, range: as for `histogram`.
      weights: without effect: bins are of equal width, or given.

    Returns:
      A float array of one number more than there are bins.

    >>> import pyjx as jax
    >>> jax.numpy.histogram_bin_edges(jax.numpy.array([0.0, 2.0]), bins=2).tolist()
    [0.0, 1.0, 2.0]
    """
    return _edges(a, bins, range)


def histogram(a: ArrayLike, bins: ArrayLike = 10, range: Any = None,
              weights: ArrayLike | None = None, density: bool | None = None,
              out_sharding: ShardingLike = None) -> tuple[Array, Array]:
    """How many values lie in each bin.

    Args:
      a: array.
      bins: number of bins of equal width, or the edges of the bins in ascending order.
      range: (low, high): the outer edges; the least and largest value by default.
      weights: what to add for each element; 1 by default.
      density: whether to divide so that the integral is 1.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    Returns:
      (counts, edges); the last bin includes its right edge.

    >>> import pyjx as jax
    >>> counts, edges = jax.numpy.histogram(jax.numpy.array([0.0, 1.0, 2.0]), bins=2)
    >>> counts.tolist()
    [1.0, 2.0]
    """
    if out_sharding is not None:
        return in_auto_mode(lambda a, bins, weights: histogram(a, bins, range, weights, density),
                            out_sharding, "histogram")(a, bins, weights)
    if weights is None:
        (a,) = promote_dtypes_inexact(*operands("histogram", a))
        weights = creation.ones_like(a)
    else:
        a, weights = operands("histogram", a, weights)
        if get_aval(weights).shape != get_aval(a).shape:
            raise ValueError("weights should have the same shape as a.")
        a, weights = promote_dtypes_inexact(a, weights)
    edges = _edges(a, bins, range)
    size = get_aval(edges).shape[0]
    if not size:
        raise IndexError("histogram: bins must be a number of bins, which is not negative, or one "
                         "edge at least: index is out of bounds for axis 0 with size 0")
    flat = lax.reshape(a, (get_aval(a).size,))
    place = searchsorted(edges, flat, side="right")
    last = lax.squeeze(lax.slice_in_dim(edges, size - 1, size), (0,))
    place = ufuncs.where(ufuncs.equal(flat, last), size - 1, place)
    weights = lax.reshape(weights, (get_aval(weights).size,))
    counts = lax.slice_in_dim(_counted(place, weights, size), 1, size)
    if density:
        counts = ufuncs.divide(ufuncs.divide(counts, diff(edges)), _sum(counts))
    return counts, edges


def histogram2d(x: ArrayLike, y: ArrayLike, bins: Any = 10, range: Sequence[Any] | None = None,
                weights: ArrayLike | None = None, density: bool | None = None
               ) -> tuple[Array, Array, Array]:
    """How many points (x, y) lie in each cell; (counts, edges of x, edges of y).

    Arguments are those of `histogramdd`, with `x` and `y` in place of the sample.

    Returns:
      The counts (or weights) of the bins, the edges along `x`, and those along `y`.

    >>> import pyjx as jax
    >>> x = jax.numpy.array([0.0, 1.0])
    >>> jax.numpy.histogram2d(x, x, bins=2)[0].tolist()
    [[1, 0], [0, 1]]
    """
    x, y = operands("histogram2d", x, y)
    shapes = [get_aval(v).shape for v in (x, y)]
    if len(shapes[0]) == len(shapes[1]) == 1 and shapes[0] != shapes[1]:
        raise ValueError("histogram2d: x and y must be vectors of the same length, got shapes "
                         f"{shapes[0]} and {shapes[1]}.")
    if (isinstance(bins, (list, tuple)) or np.ndim(bins)) and len(bins) not in (1, 2):
        bins = [bins, bins]
    dtype, _ = dtypes.lattice_result_type(x, y)
    rows = [lax.expand_dims(convert(v, dtype), (0,)) for v in (x, y)]
    sample = ufuncs.as_array(lax.concatenate(rows, 0)).T
    counts, edges = histogramdd(sample, bins, range, weights, density)
    return counts, edges[0], edges[1]


def histogramdd(sample: Any, bins: Any = 10, range: Sequence[Any] | None = None,
                weights: ArrayLike | None = None, density: bool | None = None
               ) -> tuple[Array, list[Array]]:
    """How many points of several coordinates lie in each cell.

    Args:
      sample: array of shape (points, coordinates).
      bins: number of bins, or for each coordinate the number or the edges.
      range: for each coordinate (low, high) or None.
      weights: what to add for each point; 1 by default.
      density: whether to divide so that the integral is 1.

    Returns:
      (counts, list of edges).

    >>> import pyjx as jax
    >>> jax.numpy.histogramdd(jax.numpy.array([[0.0], [1.0]]), bins=2)[0].tolist()
    [1, 1]
    """
    (sample,) = operands("histogramdd", sample)
    if len(shape := get_aval(sample).shape) != 2 or not shape[1]:
        raise ValueError("histogramdd: sample must be an array of shape (points, coordinates), got "
                         f"{shape}."
                         + " Points of one coordinate are `sample[:, None]`." * (len(shape) == 1))
    count, dims = shape
    if weights is None:
        (sample,) = promote_dtypes_inexact(sample)
        weights = lax.full((count,), 1, dtypes.default_int_dtype())
    else:
        sample, weights = promote_dtypes_inexact(sample, *operands("histogramdd", weights))
        if get_aval(weights).shape != (count,):
            raise ValueError("should have one weight for each sample.")
    if range is not None and len(range) != dims:
        raise ValueError(f"For sample.shape={(count, dims)}, range must be a sequence of {dims} "
                         f"pairs or Nones; got {range=}")
    per_axis = list(bins) if isinstance(bins, (list, tuple)) or np.ndim(bins) else [bins] * dims
    if len(per_axis) != dims:
        raise ValueError("should be a bin for each dimension.")
    # as rows, since XLA joins rows of cotangents faster than columns
    rows = lax.transpose(sample, (1, 0))
    columns = [lax.squeeze(row, (0,)) for row in lax.split(rows, (1,) * dims)]
    ranges = (None,) * dims if range is None else range
    edges = [_edges(*given) for given in zip(columns, per_axis, ranges, strict=True)]
    sizes = [get_aval(edge).shape[0] - 1 for edge in edges]
    total = int(np.prod(sizes))
    counts = lax.reshape(_counted(_cells(columns, edges, sizes, total), weights, total), sizes)
    return (_density(counts, edges) if density else counts), edges


def _cells(columns: Sequence[Any], edges: Sequence[Any], sizes: Sequence[int], outside: int) -> Any:
    """The number of the cell that each point lies in, or `outside`."""
    cell: Any = 0
    inside: Any = True
    for column, edge, n in zip(columns, edges, sizes, strict=True):
        place = searchsorted(edge, column, side="right")
        last = lax.squeeze(lax.slice_in_dim(edge, n, n + 1), (0,))
        place = ufuncs.subtract(ufuncs.where(ufuncs.equal(column, last), n, place), 1)
        valid = ufuncs.logical_and(ufuncs.greater_equal(place, 0), ufuncs.less(place, n))
        inside = ufuncs.logical_and(inside, valid)
        cell = ufuncs.add(ufuncs.multiply(cell, n), place)
    return ufuncs.where(inside, cell, outside)


def _density(counts: ArrayLike, edges: Sequence[Any]) -> Any:
    """The counts divided by their sum and the volumes of their cells."""
    out = ufuncs.divide(counts, _sum(counts))
    for i, edge in enumerate(edges):
        width = diff(edge)
        shape = [1] * len(edges)
        shape[i] = get_aval(width).size
        out = ufuncs.divide(out, lax.reshape(width, shape))
    return out
