"""Sorting, and the largest elements."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pyjx.core import dtypes
from pyjx.core.arithmetic import size
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.explicit import agreed, entries_of, mesh_of, whole_along
from pyjx.core.integers import as_axis, as_bool, as_int
from pyjx.core.jaxpr import JaxprEqn
from pyjx.core.primitive import ANY_WAY_IF_SMALL, Primitive, register
from pyjx.engine.axes import batch_along, broadcast_axis, moveaxis
from pyjx.engine.tangents import Zero
from pyjx.engine.types import BatchDims, Dims, Params, Rule, Tangents, Value, Values
from pyjx.lax.common import operand as _operand
from pyjx.lax.convert import full_like
from pyjx.lax.creation import broadcasted_iota
from pyjx.lax.elementwise import NUMBER_OR_BOOL, ORDERED, check_kinds, neg
from pyjx.lax.indexing import GatherDimensionNumbers, GatherScatterMode, gather
from pyjx.lax.joining import slice_in_dim
from pyjx.lax.shapes import reshape, rev


def take_along(x: ArrayLike, indices: ArrayLike, axis: int) -> Any:
    """`x[..., indices[...], ...]` along `axis`, for indices that are known to be in range."""
    aval = get_aval(indices)
    if aval.size == 0:
        return full_like(x, 0, shape=aval.shape)  # of its weak type too
    others = tuple([i for i in range(aval.ndim) if i != axis])
    numbers = GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(axis,),
                                     start_index_map=(axis,), operand_batching_dims=others,
                                     start_indices_batching_dims=others)
    places = reshape(indices, (*aval.shape, 1))
    return gather(x, places, numbers, (1,) * aval.ndim, mode=GatherScatterMode.PROMISE_IN_BOUNDS)


# -- sort ------------------------------------------------------------------------------------------


def _sort_shape(*avals: ShapedArray, dimension: int, is_stable: bool, num_keys: int
                ) -> list[ShapedArray]:
    if any(a.shape != avals[0].shape for a in avals):
        shapes = " ".join([str(a.shape) for a in avals])
        raise TypeError(f"Arguments to sort must have equal shapes, got: {shapes}")
    if dimension >= avals[0].ndim:
        raise ValueError(f"sort: dimension {dimension} is out of range for operands of shape "
                         f"{avals[0].shape}.")
    if not 1 <= num_keys <= len(avals):
        raise ValueError(f"sort: {num_keys=} must be between 1 and the number of operands, "
                         f"{len(avals)}.")
    check_kinds("sort", (NUMBER_OR_BOOL,) * num_keys, avals[:num_keys])
    return list(avals)


def _sort_jvp(primals: Values, tangents: Tangents, *, dimension: int, is_stable: bool, num_keys: int
              ) -> tuple[Any, Tangents]:
    shape = get_aval(primals[0]).shape
    places = broadcasted_iota(np.uint32, shape, dimension)
    *outs, order = sort_p.bind(*primals, places, dimension=dimension, is_stable=is_stable,
                               num_keys=num_keys)
    return outs, [
        g if type(g) is Zero else take_along(g, order, dimension) for g in tangents]


def _sort_batch(operands: Values, dims: Dims, *, dimension: int, is_stable: bool, num_keys: int
                ) -> tuple[Values, Dims]:
    dim, along = next(d for d in dims if d is not None), batch_along(operands, dims)
    moved = [broadcast_axis(x, along, dim) if d is None else moveaxis(x, d, dim)
             for x, d in zip(operands, dims, strict=True)]
    outs = sort_p.bind(*moved, dimension=dimension if dimension < dim else dimension + 1,
                       is_stable=is_stable, num_keys=num_keys)
    return outs, [dim] * len(outs)


def _sort_sharding(outs: Any, *xs: ShapedArray, dimension: int, **params: Any) -> list[Any]:
    mesh = mesh_of(xs)
    given = agreed(xs, "Arguments to sort must have equal shardings, got: "
                   f"{' '.join([str(x.place.sharding_along(mesh, x.ndim)) for x in xs])}.")
    for x in xs:
        whole_along(x, dimension, "Arguments to sort must be unsharded over the sorting dimension. "
                    f"Got arg sharding={x.place.sharding} and sorting dimension={dimension}")
    return [given] * len(xs)


def _sort_arithmetic(eqn: JaxprEqn) -> tuple[float, float]:
    n = eqn.invars[0].aval.shape[eqn.params["dimension"]]
    return size(eqn.invars[0]) * math.log2(max(n, 2)), 0.0


sort_p = register(Primitive("sort", compiled=ANY_WAY_IF_SMALL, arithmetic=_sort_arithmetic,
                            shape_rule=_sort_shape, sharding_rule=_sort_sharding,
                            jvp=_sort_jvp, batch=_sort_batch, multiple_results=True,
                            keeps_nans=True, asked=True))


def sort(operand: Value | Values, dimension: int = -1, is_stable: bool = True,
         num_keys: int = 1) -> Any:
    """Sort in ascending order along an axis.

    NaN comes last, -0.0 and 0.0 are equal, complex numbers are ordered by their real parts, then
    by their imaginary parts.

    Args:
      operand: an array, or several of one shape, which are reordered together.
      dimension: the axis.
      is_stable: whether equal elements must keep their order.
      num_keys: how many of the operands, from the first, decide about the order.

    Returns:
      The sorted array, or a tuple of them.

    Raises:
      TypeError: there is no operand, or their shapes differ.
      ValueError: the axis is out of range, or `num_keys` is.

    >>> import pyjx as jax
    >>> jax.lax.sort(jax.numpy.array([3, 1, 2])).tolist()
    [1, 2, 3]
    """
    is_stable = as_bool("sort", "is_stable", is_stable)
    if isinstance(operand, (list, tuple)):
        if len(operand) == 0:
            raise TypeError("Sort requires at least one operand")
        operand = [_operand("sort", x, i) for i, x in enumerate(operand)]
        if not 1 <= as_int("sort", "num_keys", num_keys) <= len(operand):
            raise ValueError(f"sort: {num_keys=} must be between 1 and {len(operand)=}")
        axis = as_axis("sort", "dimension", dimension, get_aval(operand[0]).ndim)
        return tuple(sort_p.bind(*operand, dimension=axis, is_stable=is_stable, num_keys=num_keys))
    operand = _operand("sort", operand)
    axis = as_axis("sort", "dimension", dimension, get_aval(operand).ndim)
    if as_int("sort", "num_keys", num_keys) != 1:
        raise ValueError(f"sort: {num_keys=} must equal 1 for a single operand.")
    return sort_p.bind(operand, dimension=axis, is_stable=is_stable, num_keys=1)[0]


def sort_key_val(keys: Any, values: Any, dimension: int = -1, is_stable: bool = True
                 ) -> tuple[Array, Array]:
    """Sort `keys` along an axis, and reorder `values`, an array of the same shape, like them.

    Args:
      keys: an array.
      values: an array of the same shape.
      dimension: the axis, from the front or, negative, from the back.
      is_stable: whether equal keys stay in their order.

    Raises:
      TypeError: the shapes differ.
      ValueError: the axis is out of range.

    >>> import pyjx as jax
    >>> import numpy as np
    >>> k, v = jax.lax.sort_key_val(np.array([3, 1]), np.array([10, 20]))
    >>> k.tolist(), v.tolist()
    ([1, 3], [20, 10])
    """
    keys, values = sort((keys, values), dimension, is_stable, 1)
    return keys, values


# -- top_k -----------------------------------------------------------------------------------------


def _top_k_shape(x: ShapedArray, *, axis: int, is_stable: bool, k: int) -> list[ShapedArray]:
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        raise ValueError("top_k is not compatible with complex inputs.")
    check_kinds("top_k", (ORDERED,), (x,))
    if k < 0:
        raise ValueError(f"k argument to top_k must be nonnegative, got {k}")
    if not 0 <= axis < x.ndim:
        raise ValueError(f"top_k: axis {axis} is out of bounds for array of dimension {x.ndim}")
    if x.shape[axis] < k:
        raise ValueError("k argument to top_k must be no larger than size along axis; got "
                         f"{k=} with shape={list(x.shape)} and {axis=}")
    shape = x.shape[:axis] + (k,) + x.shape[axis + 1:]
    return [x.update(shape=shape), x.update(shape=shape, dtype=np.dtype(np.int32))]


def _choice_sharding(x: ShapedArray, axis: int) -> list[Any]:
    whole_along(x, axis, "The input should be unsharded over the axis along which to compute the "
                f"top_k values. Got input type={x.str_short()} and axis={axis}")
    return [entries_of(x)] * 2


def _choice_jvp(primitive: Primitive, axis_of: Callable[[Params, int], int]) -> Rule:
    def jvp(primals: Values, tangents: Values, **params: Any) -> tuple[Values, Tangents]:
        (x,), (g,) = primals, tangents
        values, indices = primitive.bind(x, **params)
        tangent = take_along(g, indices, axis_of(params, get_aval(x).ndim))
        return [values, indices], [tangent, Zero.of_primal(indices)]

    return jvp


def _top_k_batch(operands: Values, dims: BatchDims, *, axis: int, is_stable: bool, k: int
                 ) -> tuple[Values, Dims]:
    (x,), (d,) = operands, dims
    outs = top_k_p.bind(x, axis=axis if axis < d else axis + 1, is_stable=is_stable, k=k)
    return outs, [d, d]


top_k_p = register(Primitive("top_k", sharding_rule=lambda outs, x, *, axis, **_: _choice_sharding(
                                 x, axis), shape_rule=_top_k_shape, batch=_top_k_batch,
                             arithmetic=lambda eqn: (size(eqn.invars[0]), 0.0),
                             keeps_nans=True, multiple_results=True))
top_k_p.define(jvp=_choice_jvp(top_k_p, lambda params, ndim: params["axis"]))


def top_k(operand: ArrayLike, k: int, *, axis: int = -1, is_stable: bool = True) -> list[Any]:
    """The `k` largest elements along an axis, in descending order, and their positions.

    NaN counts as larger than any number. Of equal elements the first comes first.

    Args:
      operand: an array of any dtype but complex.
      k: how many.
      axis: the axis.
      is_stable: whether equal elements must keep their order.

    Returns:
      Values and positions (int32), with `k` elements along the axis.

    Raises:
      ValueError: `k` is negative or larger than the axis, the axis is out of range, or the operand
        is complex.

    >>> import pyjx as jax
    >>> values, indices = jax.lax.top_k(jax.numpy.array([9., 3., 6.]), 2)
    >>> values.tolist(), indices.tolist()
    ([9.0, 6.0], [0, 2])
    """
    operand = _operand("top_k", operand)
    axis = as_axis("top_k", "axis", axis, get_aval(operand).ndim)
    k = as_int("top_k", "k", k)
    return _top_k(operand, axis, as_bool("top_k", "is_stable", is_stable), k)


def _top_k(x: Value, axis: int, is_stable: bool, k: Any) -> list[Any]:
    """Of a symbolic `k`, all sorted, from the last one on; sorting the reversed array puts equal
    ones in order."""
    if type(k) is int:
        return list(top_k_p.bind(x, axis=axis, is_stable=is_stable, k=k))
    places = broadcasted_iota(np.int32, get_aval(x).shape, axis)
    reverse = [rev(y, (axis,)) for y in (x, places)]
    ordered = sort(reverse, dimension=axis, num_keys=1)
    return [slice_in_dim(rev(y, (axis,)), 0, k, axis=axis) for y in ordered]


# -- approx_max_k, approx_min_k --------------------------------------------------------------------


def _approx_axis(axis: int, ndim: int) -> int:
    return as_axis("approx_top_k", "reduction_dimension", axis, ndim)


def _approx_shape(x: ShapedArray, *, aggregate_to_topk: bool, is_max_k: bool, k: int,
                  recall_target: float, reduction_dimension: int,
                  reduction_input_size_override: int) -> list[ShapedArray]:
    if k <= 0:
        raise ValueError(f"approx_top_k: k must be positive, got {k}")
    if x.ndim == 0:
        raise TypeError(f"approx_top_k operand must have >= 1 dimension, got {x.shape}")
    axis = _approx_axis(reduction_dimension, x.ndim)
    size = x.shape[axis]
    if size < k:
        raise ValueError("approx_top_k: k must be smaller than the size of reduction_dim "
                         f"{size}, got {k}")
    if not dtypes.issubdtype(x.dtype, np.floating):
        raise ValueError(
            f"approx_top_k: operand must be a floating type, got {dtypes.name(x.dtype)}")
    if not 0 < recall_target <= 1:
        raise ValueError(f"approx_top_k: recall_target must be in (0, 1], got {recall_target}")
    # Without aggregation the result may hold more candidates than k. The computation is exact,
    # and its candidates are all the elements.
    kept = k if aggregate_to_topk else size
    shape = x.shape[:axis] + (kept,) + x.shape[axis + 1:]
    return [x.update(shape=shape), x.update(shape=shape, dtype=np.dtype(np.int32))]


def _approx_exact(x: Value, *, aggregate_to_topk: bool, is_max_k: bool, k: int,
                  recall_target: float, reduction_dimension: int,
                  reduction_input_size_override: int) -> list[Any]:
    aval = get_aval(x)
    axis = _approx_axis(reduction_dimension, aval.ndim)
    if not aggregate_to_topk:
        return [x, broadcasted_iota(np.int32, aval.shape, axis)]
    if is_max_k:
        return _top_k(x, axis, True, k)
    values, indices = _top_k(neg(x), axis, True, k)
    return [neg(values), indices]


def _approx_batch(operands: Values, dims: BatchDims, *, reduction_dimension: int, **params: Any
                  ) -> tuple[Values, Dims]:
    (x,), (d,) = operands, dims
    axis = _approx_axis(reduction_dimension, get_aval(x).ndim - 1)
    outs = approx_top_k_p.bind(x, reduction_dimension=axis if axis < d else axis + 1, **params)
    return outs, [d, d]


approx_top_k_p = register(Primitive(
    "approx_top_k", shape_rule=_approx_shape, batch=_approx_batch, decomposition=_approx_exact,
    keeps_nans=True, multiple_results=True, sharding_rule=lambda outs, x, **params: (
        _choice_sharding(x, _approx_axis(params["reduction_dimension"], x.ndim)))))
approx_top_k_p.define(jvp=_choice_jvp(
    approx_top_k_p, lambda params, ndim: _approx_axis(params["reduction_dimension"], ndim)))


def _approx(operand: Value, is_max_k: bool, k: int, reduction_dimension: int, recall_target: float,
            reduction_input_size_override: int, aggregate_to_topk: bool) -> list[Any]:
    name = "approx_max_k" if is_max_k else "approx_min_k"
    values, indices = approx_top_k_p.bind(
        _operand(name, operand), aggregate_to_topk=as_bool(
            name, "aggregate_to_topk", aggregate_to_topk), is_max_k=is_max_k,
        k=as_int(name, "k", k), recall_target=float(recall_target),
        reduction_dimension=as_int(name, "reduction_dimension", reduction_dimension),
        reduction_input_size_override=as_int(
            name, "reduction_input_size_override", reduction_input_size_override),
    )
    return [values, indices]


def approx_max_k(operand: ArrayLike, k: int, reduction_dimension: int = -1,
                 recall_target: float = 0.95, reduction_input_size_override: int = -1,
                 aggregate_to_topk: bool = True) -> list[Any]:
    """The `k` largest elements along an axis and their positions, where some may be missed.

    Args:
      operand: a floating array.
      k: how many.
      reduction_dimension: the axis.
      recall_target: the expected share of the true `k` largest elements in the result. Here the
        result is exact.
      reduction_input_size_override: the size of the axis in a larger array of which this one is a
        part; for the choice of the number of candidates.
      aggregate_to_topk: if false, the candidates are returned without the last selection; there
        may be more than `k`.

    Returns:
      Values and positions (int32).

    Raises:
      ValueError: `k` is not positive or larger than the axis; the operand is not floating.
      TypeError: the operand is a scalar.

    >>> import pyjx as jax
    >>> values, indices = jax.lax.approx_max_k(jax.numpy.array([1., 3., 2.]), 2)
    >>> values.tolist(), indices.tolist()
    ([3.0, 2.0], [1, 2])
    """
    return _approx(operand, True, k, reduction_dimension, recall_target,
                   reduction_input_size_override, aggregate_to_topk)


def approx_min_k(operand: ArrayLike, k: int, reduction_dimension: int = -1,
                 recall_target: float = 0.95, reduction_input_size_override: int = -1,
                 aggregate_to_topk: bool = True) -> list[Any]:
    """The `k` smallest elements along an axis and their positions, where some may be missed.

    Arguments, results and errors are those of `approx_max_k`.

    Args:
      operand: an array of floats.
      k: how many.
      reduction_dimension: the axis.
      recall_target: the share of the k smallest that is to be found, on TPUs.
      reduction_input_size_override: the size of the axis of the whole, where this is a part of it;
        -1 if it is none.
      aggregate_to_topk: whether the candidates are reduced to k; otherwise there may be more.

    >>> import pyjx as jax
    >>> values, indices = jax.lax.approx_min_k(jax.numpy.array([1., 3., 2.]), 2)
    >>> values.tolist(), indices.tolist()
    ([1.0, 2.0], [0, 2])
    """
    return _approx(operand, False, k, reduction_dimension, recall_target,
                   reduction_input_size_override, aggregate_to_topk)
