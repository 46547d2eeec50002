"""Products of updates with the elements of an array at an array of positions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import get_aval
from pyjx.core.linearity import FIRST
from pyjx.engine.tangents import Zero, full_aval, is_undefined_primal, zeros_like
from pyjx.engine.types import Operand, Params, Tangent, Tangents, Value, Values
from pyjx.lax.bitwise import bitwise_or
from pyjx.lax.compare import ne, select
from pyjx.lax.convert import full
from pyjx.lax.creation import iota
from pyjx.lax.elementwise import add, mul
from pyjx.lax.indexing import (
    GatherScatterMode,
    ScatterDimensionNumbers,
    call_scatter,
    gathered,
    scatter_add,
    scatter_as,
    scatter_primitive,
)
from pyjx.lax.joining import concatenate, slice_in_dim
from pyjx.lax.mapping import associative_scan
from pyjx.lax.shapes import reshape, rev
from pyjx.lax.sorting import sort_key_val, take_along


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
    others = mul(_products_before(places, factors, False),
                 _products_before(places, factors, True))
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
            "scatter_mul is linear in its updates only with unique_indices=True."
        )
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
