"""Scatter: updates of the windows of an operand at an array of positions.

The counterpart of gather: with the same dimension numbers, gather reads the windows that scatter
writes. The variants differ in how an update meets the value that is there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyjx.core.arithmetic import FIRST, FIRST_AND_THIRD
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import ShapedArray, cotangent_aval, get_aval, is_valid_value
from pyjx.core.contents import deduplicated
from pyjx.core.evaluation import eval_jaxpr
from pyjx.core.explicit import sharding_of_sums
from pyjx.core.integers import as_sizes
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.primitive import Primitive
from pyjx.core.scalars import scalar_constant
from pyjx.core.trace import Tracer, trace_to_jaxpr
from pyjx.core.value_texts import shortened
from pyjx.engine.axes import at_front, broadcast_in_dim
from pyjx.engine.batching import batch_flat
from pyjx.engine.forward import jvp_flat
from pyjx.engine.tangents import Zero, full_aval, instantiate, is_undefined_primal, zeros_like
from pyjx.engine.types import Operand, Params, Rule, Tangent, Tangents, Value, Values
from pyjx.errors import ShardingTypeError
from pyjx.lax.bitwise import bitwise_or
from pyjx.lax.common import operand as _operand
from pyjx.lax.compare import eq, max, min, ne, select
from pyjx.lax.convert import convert_element_type, full
from pyjx.lax.creation import iota
from pyjx.lax.elementwise import add, div, mul
from pyjx.lax.indexing import (
    GatherScatterMode,
    ScatterDimensionNumbers,
    aval_of,
    call_scatter,
    gathered,
    positions,
    scatter_add,
    scatter_as,
    scatter_params,
    scatter_primitive,
)
from pyjx.lax.joining import concatenate, slice_in_dim
from pyjx.lax.mapping import associative_scan
from pyjx.lax.shapes import reshape, rev
from pyjx.lax.sorting import sort_key_val, take_along
from pyjx.runtime.signature import debug_info_of
from pyjx.tree_util import tree_structure

# -- derivatives -----------------------------------------------------------------------------------


def _extremum_jvp(primitive: Primitive) -> Rule:
    def jvp(primals: Values, tangents: Tangents, **params: Any) -> tuple[Value, Tangent]:
        # The mean of the tangents of all those, operand and updates, that are the extremum.
        out = primitive.bind(*primals, **params)
        x, indices, updates = primals
        g, _, g_updates = tangents
        shape = get_aval(updates).shape
        dtype = g.aval.dtype if type(g) is Zero else get_aval(g).dtype
        chosen = convert_element_type(eq(x, out), dtype)
        chosen_updates = convert_element_type(
            eq(updates, gathered(out, indices, shape, params)), dtype)
        count = scatter_as(scatter_add, chosen, indices, chosen_updates, params)
        total = scatter_as(scatter_add, mul(instantiate(g), chosen), indices,
                      mul(instantiate(g_updates), chosen_updates), params)
        # Where none is, for nan is not equal to itself, the tangent is 0.
        return out, div(total, max(count, full_aval(get_aval(count), 1)))

    return jvp


def _replace_jvp(primals: Values, tangents: Tangents, **params: Any) -> tuple[Value, Tangent]:
    if params["update_jaxpr"] is not None:
        return _apply_jvp(primals, tangents, **params)
    x, indices, updates = primals
    g, _, g_updates = tangents
    shape = get_aval(updates).shape
    dnums = params["dimension_numbers"]
    count = math.prod([shape[a] for a in positions(shape, dnums)])
    if params["unique_indices"] or count <= 1 or type(g_updates) is Zero:
        out = scatter_p.bind(*primals, **params)
        return out, scatter_p.bind(instantiate(g), indices, instantiate(g_updates), **params)
    # Where several updates meet, one of them wins; which one is not defined. To find out, numbers
    # from 1 are scattered in their stead. Value and tangent are then made of what has won.
    places = positions(shape, dnums)
    numbers = add(iota(np.int32, count), np.int32(1))
    numbers = broadcast_in_dim(reshape(numbers, [shape[a] for a in places]), shape, places)
    none = full_aval(get_aval(x).update(dtype=np.int32, weak_type=False), 0)
    winners = scatter_p.bind(none, indices, numbers, **params)
    untouched = eq(winners, none)
    won = eq(gathered(winners, indices, shape, params), numbers)

    def merge(x: Value, updates: Value) -> Any:
        return scatter_as(scatter_add, select(untouched, x, zeros_like(x)), indices,
                     select(won, updates, zeros_like(updates)), params)

    return merge(x, updates), merge(instantiate(g), g_updates)


def _replace_transpose(ct: Value, x: Operand, indices: Operand, updates: Operand, **params: Any
                       ) -> Sequence[Any]:
    aval = aval_of(updates)
    ct_x = ct_updates = None
    if is_undefined_primal(x):
        zeros = full_aval(cotangent_aval(aval).update(dtype=get_aval(ct).dtype), 0)
        ct_x = scatter_p.bind(ct, indices, zeros, **params)
    if is_undefined_primal(updates):
        places = positions(aval.shape, params["dimension_numbers"])
        if not params["unique_indices"] and math.prod([aval.shape[a] for a in places]) > 1:
            raise NotImplementedError(
                "scatter transpose is only implemented where unique_indices=True")
        ct_updates = gathered(ct, indices, aval.shape, params)
    return ct_x, None, ct_updates


def _apply_jvp(primals: Values, tangents: Tangents, **params: Any) -> tuple[Value, Tangent]:
    """The derivative of scatter_apply, whose updates have no influence."""
    x, indices, updates = primals
    out = scatter_p.bind(*primals, **params)
    g = tangents[0]
    if type(g) is Zero:
        return out, Zero.of_primal(out)
    if not params["unique_indices"]:
        raise NotImplementedError("scatter_apply JVP not implemented for indices that may repeat: "
                                  "pass unique_indices=True if they do not.")
    shape = get_aval(updates).shape
    jaxpr, consts, size = params["update_jaxpr"], params["update_consts"], math.prod(shape)

    def fun(x: Value) -> list[Any]:
        flat = reshape(x, (size,))
        zeros = zeros_like(flat)
        (y,), (d,) = batch_flat(lambda *a: eval_jaxpr(jaxpr, consts, *a), [flat, zeros],
                                [0, 0], size)
        return [reshape(at_front(y, d, size), shape)]

    windows = [gathered(a, indices, shape, params) for a in (x, g)]
    _, (tangent,) = jvp_flat(fun, windows[:1], windows[1:])
    return out, scatter_as(scatter, g, indices, instantiate(tangent), params)


# -- the primitives --------------------------------------------------------------------------------


scatter_p = scatter_primitive("scatter", "scatter", moves=True, jvp=_replace_jvp,
                              transpose=_replace_transpose, linear=FIRST_AND_THIRD)
scatter_min_p = scatter_primitive("scatter-min", "scatter_min", keeps_nans=True)
scatter_max_p = scatter_primitive("scatter-max", "scatter_max", keeps_nans=True)
for _p in (scatter_min_p, scatter_max_p):
    _p.define(jvp=_extremum_jvp(_p))


def scatter(operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike,
            dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
            unique_indices: bool = False, mode: str | GatherScatterMode | None = None) -> Array:
    """The operand with its windows at an array of positions replaced by the updates.

    `operand.at[...].set(...)` is simpler, and uses this operation where it is needed.

    Args:
      operand: an array.
      scatter_indices: an array of integers; each vector along its last axis is a position.
      updates: for each position a window, of the operand's dtype. Where windows overlap, one of
        them wins; which one is not defined.
      dimension_numbers: how the axes of operand, indices and updates belong together.
      indices_are_sorted: the caller says that the positions are in order.
      unique_indices: the caller says that no two windows overlap.
      mode: `drop` (the default), `clip` or `promise_in_bounds`: see `GatherScatterMode`.

    Raises:
      TypeError: the shapes, dtypes and dimension numbers do not go together.
      ValueError: the indices are not integers, or there is no such mode.

    >>> import pyjx as jax
    >>> lax, jnp = jax.lax, jax.numpy
    >>> dnums = lax.ScatterDimensionNumbers(
    ...     update_window_dims=(), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
    >>> lax.scatter(jnp.zeros(3), jnp.array([[2], [0]]), jnp.array([1., 2.]), dnums).tolist()
    [2.0, 0.0, 1.0]
    """
    return call_scatter(scatter_p, None, operand, scatter_indices, updates, dimension_numbers,
                        indices_are_sorted, unique_indices, mode)


def scatter_min(operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike,
                dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
                unique_indices: bool = False, mode: str | GatherScatterMode | None = None) -> Array:
    """The lesser of the operand's windows and the updates. Arguments and errors as for `scatter`.

    Args:
      operand: an array.
      scatter_indices: an array of integers; each vector along its last axis is a position.
      updates: for each position a window, of the operand's dtype. Where windows overlap, all count.
      dimension_numbers: how the axes of operand, indices and updates belong together, a
        `ScatterDimensionNumbers`.
      indices_are_sorted: the caller says that the positions are in order.
      unique_indices: the caller says that no two windows overlap.
      mode: what is done with windows that reach outside: "drop" (the default), "clip" or
        "promise_in_bounds".

    >>> import pyjx as jax
    >>> lax, jnp = jax.lax, jax.numpy
    >>> dnums = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_min(jnp.ones(3), jnp.array([[2], [2]]), jnp.array([3., 0.]), dnums).tolist()
    [1.0, 1.0, 0.0]
    """
    return call_scatter(scatter_min_p, min, operand, scatter_indices, updates, dimension_numbers,
                        indices_are_sorted, unique_indices, mode)


def scatter_max(operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike,
                dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
                unique_indices: bool = False, mode: str | GatherScatterMode | None = None) -> Array:
    """The greater of the operand's windows and the updates. Arguments and errors as for `scatter`.

    Args:
      operand: an array.
      scatter_indices: an array of integers; each vector along its last axis is a position.
      updates: for each position a window, of the operand's dtype. Where windows overlap, all count.
      dimension_numbers: how the axes of operand, indices and updates belong together, a
        `ScatterDimensionNumbers`.
      indices_are_sorted: the caller says that the positions are in order.
      unique_indices: the caller says that no two windows overlap.
      mode: what is done with windows that reach outside: "drop" (the default), "clip" or
        "promise_in_bounds".

    >>> import pyjx as jax
    >>> lax, jnp = jax.lax, jax.numpy
    >>> dnums = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_max(jnp.ones(3), jnp.array([[2], [2]]), jnp.array([3., 0.]), dnums).tolist()
    [1.0, 1.0, 3.0]
    """
    return call_scatter(scatter_max_p, max, operand, scatter_indices, updates, dimension_numbers,
                        indices_are_sorted, unique_indices, mode)


def scatter_apply(operand: ArrayLike, scatter_indices: ArrayLike, func: Callable[[Any], Any],
                  dimension_numbers: ScatterDimensionNumbers, *, update_shape: Sequence[int] = (),
                  indices_are_sorted: bool = False, unique_indices: bool = False,
                  mode: str | GatherScatterMode | None = None) -> Array:
    """The operand with `func` applied to each element of its windows, once for each window.

    Args:
      operand: an array.
      scatter_indices: as for `scatter`.
      func: a function from scalar to scalar, of the operand's dtype.
      dimension_numbers: as for `scatter`.
      update_shape: the shape that updates would have.
      indices_are_sorted: as for `scatter`.
      unique_indices: as for `scatter`; only then there is a derivative.
      mode: as for `scatter`.

    Raises:
      TypeError: the shapes and dimension numbers do not go together, or `func` does not return a
        scalar of the operand's dtype, or depends on other traced values.
      ValueError: the indices are not integers, or there is no such mode.

    >>> import pyjx as jax
    >>> lax, jnp = jax.lax, jax.numpy
    >>> dnums = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_apply(jnp.ones(3), jnp.array([[2], [2]]), lambda x: 2 * x, dnums,
    ...                   update_shape=(2,)).tolist()
    [1.0, 1.0, 4.0]
    """
    operand = _operand("scatter_apply", operand)
    aval = get_aval(operand)
    if aval.place.is_open:
        raise ShardingTypeError("scatter_apply is a non-linear operation and cannot accept input "
                                f"that is unreduced. Got {aval.str_short()}. Sum it before.")
    closed = _traced(func, ShapedArray((), aval.dtype))
    sizes = as_sizes("scatter_apply", "update_shape", update_shape)
    unused = full_aval(ShapedArray(
        sizes, aval.dtype, sharding=sharding_of_sums(aval, len(sizes)),
        manual_axis_type=aval.place.mat), 0)
    return scatter_p.bind(
        operand, _operand("scatter_apply", scatter_indices, 1), unused,
        **scatter_params("scatter_apply", dimension_numbers, indices_are_sorted, unique_indices,
                         mode),
        update_jaxpr=closed.jaxpr, update_consts=tuple(closed.consts))


def _traced(func: Callable[[Any], Any], scalar: ShapedArray) -> ClosedJaxpr:
    if not callable(func):
        raise TypeError(f"scatter_apply: func must be a function, got {func!r}")
    wanted = f"scatter_apply: func must return a value of type {scalar.str_short()}, got"

    def flat(x: Any, _: Any) -> list[Any]:
        if not is_valid_value(result := func(x)):
            raise TypeError(f"{wanted} {shortened(result)}.")
        return [_operand("scatter_apply", result)]

    closed = deduplicated(trace_to_jaxpr(
        flat, (scalar, scalar), debug_info_of("scatter_apply", func, tree_structure((0,)))))
    out = closed.out_avals[0]
    if out.shape or out.dtype != scalar.dtype:
        raise TypeError(f"{wanted} {out.str_short()}.")
    if any(isinstance(c, Tracer) or get_aval(c).shape for c in closed.consts):
        raise TypeError("scatter_apply: func may depend on its argument and on concrete scalars "
                        "only, not on arrays or traced values.")
    consts = [scalar_constant(c, get_aval(c).dtype) for c in closed.consts]
    return ClosedJaxpr(closed.jaxpr, consts)


# -- products of updates with elements -------------------------------------------------------------


def _product_jvp(primals: Values, tangents: Tangents, **params: Any) -> tuple[Value, Tangent]:
    out = scatter_mul_p.bind(*primals, **params)
    x, indices, updates = primals
    g, _, g_updates = tangents
    tangent: Any = Zero.of_primal(out)
    if type(g) is not Zero:
        tangent = scatter_mul_p.bind(g, indices, updates, **params)
    if type(g_updates) is not Zero:
        others = _other_factors(x, indices, updates, params)
        terms = mul(g_updates, others)
        start = zeros_like(out) if type(tangent) is Zero else tangent
        tangent = scatter_as(scatter_add, start, indices, terms, params)
    return out, tangent


def _other_factors(x: Value, indices: Value, updates: Value, params: Params) -> Array:
    """For each update the product of all else that is multiplied at its place.

    Nothing is divided, so derivatives of any order are right where updates are zero: with the
    updates sorted by their places it is the product of those before and those after it.
    """
    shape = get_aval(updates).shape
    own = gathered(x, indices, shape, params)
    if params["unique_indices"]:
        return own
    n = math.prod(shape)
    numbers = reshape(add(iota(np.int32, get_aval(x).size), np.int32(1)), get_aval(x).shape)
    places = reshape(gathered(numbers, indices, shape, params), (n,))  # 0: a dropped update
    order = iota(np.int32, n)
    places, permutation = sort_key_val(places, order)
    _, back = sort_key_val(permutation, order)
    factors = take_along(reshape(updates, (n,)), permutation, 0)
    others = mul(_products_before(places, factors, False), _products_before(places, factors, True))
    return mul(own, reshape(take_along(others, back, 0), shape))


def _products_before(places: Value, factors: Array, reverse: bool) -> Array:
    """For each of the factors the product of those before it, or after it, at the same place."""
    if get_aval(factors).size == 0:
        return factors
    if reverse:
        places, factors = rev(places, (0,)), rev(factors, (0,))
    one = full_aval(get_aval(factors).update(shape=(1,)), 1)
    first = concatenate([full((1,), True), ne(
        slice_in_dim(places, 1, None), slice_in_dim(places, 0, -1))], 0)
    before = concatenate([one, slice_in_dim(factors, 0, -1)], 0)
    before = select(first, full_aval(get_aval(before), 1), before)

    def joined(left: tuple[Value, Value], right: tuple[Value, Value]) -> tuple[Value, Value]:
        (starts_left, product), (starts_right, factor) = left, right
        return (bitwise_or(starts_left, starts_right),
                select(starts_right, factor, mul(product, factor)))

    products = associative_scan(joined, (first, before))[1]
    return rev(products, (0,)) if reverse else products


def _product_transpose(ct: Value, x: Operand, indices: Operand, updates: Operand, **params: Any
                       ) -> Any:
    if is_undefined_primal(x):
        return scatter_mul_p.bind(ct, indices, updates, **params), None, None
    if not params["unique_indices"]:
        raise NotImplementedError(
            "scatter_mul is linear in its updates only with unique_indices=True.")
    return None, None, gathered(mul(ct, x), indices, updates.aval.shape, params)


scatter_mul_p = scatter_primitive("scatter-mul", "scatter_mul", jvp=_product_jvp,
                                  transpose=_product_transpose, linear=FIRST)


def scatter_mul(operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike,
                dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
                unique_indices: bool = False, mode: str | GatherScatterMode | None = None) -> Array:
    """The operand with its windows times the updates. Arguments and errors as for `scatter`.

    It has derivatives in the updates also where indices repeat: an extension of the interface.

    Args:
      operand: an array.
      scatter_indices: an array of integers; each vector along its last axis is a position.
      updates: for each position a window, of the operand's dtype. Where windows overlap, all count.
      dimension_numbers: how the axes of operand, indices and updates belong together, a
        `ScatterDimensionNumbers`.
      indices_are_sorted: the caller says that the positions are in order.
      unique_indices: the caller says that no two windows overlap.
      mode: what is done with windows that reach outside: "drop" (the default), "clip" or
        "promise_in_bounds".

    >>> import pyjx as jax
    >>> lax, jnp = jax.lax, jax.numpy
    >>> dnums = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_mul(jnp.ones(3), jnp.array([[2], [2]]), jnp.array([3., 2.]), dnums).tolist()
    [1.0, 1.0, 6.0]
    """
    return call_scatter(scatter_mul_p, mul, operand, scatter_indices, updates, dimension_numbers,
                        indices_are_sorted, unique_indices, mode)
