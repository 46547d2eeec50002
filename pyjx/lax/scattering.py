"""Scatter: updates of the windows of an operand at an array of positions.

The counterpart of gather: with the same dimension numbers, gather reads the windows that scatter
writes. The variants differ in how an update meets the value that is there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core.arithmetic import size
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.bounded import kept
from pyjx.core.contents import shared
from pyjx.core.dtypes import DType
from pyjx.core.evaluation import eval_jaxpr
from pyjx.core.explicit import Entries, entries_of, one_entry, sharding_of_sums
from pyjx.core.integers import as_sizes
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr
from pyjx.core.linearity import FIRST, FIRST_AND_THIRD
from pyjx.core.open_sums import ShardingTypeError, cotangent_aval, is_open
from pyjx.core.primitive import Primitive, register
from pyjx.core.records import Record
from pyjx.core.scalars import scalar_constant
from pyjx.core.trace import Tracer, trace_to_jaxpr
from pyjx.engine.axes import at_front, batch_along, broadcast_in_dim
from pyjx.engine.batching import batch_flat
from pyjx.engine.forward import jvp_flat
from pyjx.engine.tangents import Zero, full_aval, instantiate, is_undefined_primal, zeros_like
from pyjx.engine.types import Dims, Operand, Params, Rule, Tangent, Tangents, Value, Values
from pyjx.lax.common import check_same_dtypes
from pyjx.lax.indexing import (
    Axes,
    GatherDimensionNumbers,
    GatherScatterMode,
    as_mode,
    check_axes,
    check_batching,
    check_disjoint,
    check_index_map,
    check_indices,
    check_numbers,
    gather,
    shifted,
    with_tuples,
)
from pyjx.lax.nary import operand as _operand
from pyjx.lax.shapes import reshape
from pyjx.lax.sorting import take_along


class ScatterDimensionNumbers(Record):
    """How the axes of a scatter's operand, indices and updates belong together.

    Attributes:
      update_window_dims: the axes of the updates that are axes of the windows, increasing.
      inserted_window_dims: the axes of the operand, of window size 1, that the updates leave out.
      scatter_dims_to_operand_dims: for each component of an index vector the operand's axis that it
        counts along.
      operand_batching_dims: axes of the operand along which each batch of indices has its own part.
      scatter_indices_batching_dims: the axes of the indices that belong to these.
    """

    update_window_dims: Axes
    inserted_window_dims: Axes
    scatter_dims_to_operand_dims: Axes
    operand_batching_dims: Axes = ()
    scatter_indices_batching_dims: Axes = ()


def _window(x: ShapedArray, updates_shape: tuple[int, ...], dnums: ScatterDimensionNumbers
            ) -> tuple[int, ...]:
    """The shape of a window of the operand."""
    sizes = iter([updates_shape[a] for a in dnums.update_window_dims])
    left_out = {*dnums.inserted_window_dims, *dnums.operand_batching_dims}
    return tuple([1 if i in left_out else next(sizes) for i in range(x.ndim)])


def _positions(updates_shape: tuple[int, ...], dnums: ScatterDimensionNumbers) -> list[int]:
    """The axes of the updates that are not axes of the windows."""
    return [i for i in range(len(updates_shape)) if i not in dnums.update_window_dims]


def _scatter_shape(name: str) -> Callable[..., ShapedArray]:
    def shape_rule(x: ShapedArray, indices: ShapedArray, updates: ShapedArray, *,
                   dimension_numbers: ScatterDimensionNumbers, **_: Any) -> ShapedArray:
        check_numbers(name, dimension_numbers)
        window_dims, inserted, index_map, batching, indices_batching = dimension_numbers
        check_indices("Scatter", indices)
        check_same_dtypes(name, x, updates)
        rank = len(window_dims) + indices.ndim - 1
        if updates.ndim != rank:
            raise TypeError(f"{name}: Updates tensor must be of rank {rank}; got {updates.ndim}.")
        check_axes("scatter", "update_window_dims", window_dims, updates.ndim)
        check_axes("scatter", "inserted_window_dims", inserted, x.ndim)
        check_disjoint("scatter", "inserted_window_dims", inserted,
                       "operand_batching_dims", batching)
        check_batching("Scatter", x, batching, indices, "scatter_indices_batching_dims",
                       indices_batching)
        size = len(window_dims) + len(inserted) + len(batching)
        if size != x.ndim:
            raise TypeError(
                f"Scatter op has window of size {size}; doesn't match operand of rank {x.ndim}."
            )
        check_index_map("Scatter", "scatter_dims_to_operand_dims",
                        "scatter_dims_to_operand_dims mapping", index_map, x, indices)
        check_disjoint("scatter", "scatter_dims_to_operand_dims", index_map,
                       "operand_batching_dims", batching)
        _check_sizes(name, x, indices, updates, dimension_numbers)
        return x

    return shape_rule


def _check_sizes(name: str, x: ShapedArray, indices: ShapedArray, updates: ShapedArray,
                 dnums: ScatterDimensionNumbers) -> None:
    left_out = {*dnums.inserted_window_dims, *dnums.operand_batching_dims}
    bounds = [n for i, n in enumerate(x.shape) if i not in left_out]
    for a, bound in zip(dnums.update_window_dims, bounds, strict=True):
        if updates.shape[a] > bound:
            raise TypeError(
                f"{name}: Bounds of the window dimensions of updates must not exceed the bounds of "
                f"the corresponding dimensions of operand. For dimension {a}, updates bound is "
                f"{updates.shape[a]}, operand bound is {bound}."
            )
    for i, a in enumerate(_positions(updates.shape, dnums)):
        if updates.shape[a] != indices.shape[i]:
            raise TypeError(
                f"{name}: Bounds of the scatter dimensions of updates must be the same as the "
                "bounds of the corresponding dimensions of scatter indices. For scatter dimension "
                f"{a}, updates bound is {updates.shape[a]}, indices bound is {indices.shape[i]}."
            )


# -- batching --------------------------------------------------------------------------------------


def _scatter_batch(primitive: Primitive) -> Rule:
    def batch(operands: Values, dims: Dims, *, dimension_numbers: ScatterDimensionNumbers,
              **params: Any) -> tuple[Value, int | None]:
        (x, indices, updates), (d, d_indices, d_updates) = operands, dims
        window_dims, inserted, index_map, batching, indices_batching = dimension_numbers
        along = batch_along(operands, dims)
        x, updates = at_front(x, d, along), at_front(updates, d_updates, along)
        if along.size == 0:
            return x, 0
        window_dims, batching = shifted(window_dims), shifted(batching)
        if d_indices is None:  # the batch axis is one more axis of the windows
            window_dims = (0, *window_dims)
        else:
            indices = at_front(indices, d_indices, along)
            batching, indices_batching = (0, *batching), (0, *shifted(indices_batching))
        dnums = ScatterDimensionNumbers(window_dims, shifted(inserted), shifted(index_map),
                                        batching, indices_batching)
        return primitive.bind(x, indices, updates, dimension_numbers=dnums, **params), 0

    return batch


# -- derivatives -----------------------------------------------------------------------------------


def _gathered(x: Value, indices: Value, updates_shape: tuple[int, ...], params: Params) -> Value:
    """The windows of `x` that a scatter with these parameters writes; zeros for those it drops."""
    dnums = params["dimension_numbers"]
    return gather(
        x, indices, GatherDimensionNumbers(*dnums), _window(get_aval(x), updates_shape, dnums),
        unique_indices=params["unique_indices"], indices_are_sorted=params["indices_are_sorted"],
        mode=params["mode"], fill_value=0,
    )


def _bind(scatter: Callable[..., Any], x: Value, indices: Value, updates: Value, params: Params
          ) -> Value:
    """Another scatter with the same parameters."""
    return scatter(
        x, indices, updates, params["dimension_numbers"], mode=params["mode"],
        indices_are_sorted=params["indices_are_sorted"], unique_indices=params["unique_indices"],
    )


def _aval_of(x: Value) -> ShapedArray:
    return x.aval if is_undefined_primal(x) else get_aval(x)


def _sum_jvp(primitive: Primitive) -> Rule:
    """scatter-add and scatter-sub are linear in operand and updates together."""

    def jvp(primals: Values, tangents: Tangents, **params: Any) -> tuple[Value, Tangent]:
        out = primitive.bind(*primals, **params)
        g, _, g_updates = tangents
        if type(g_updates) is Zero:
            return out, g
        return out, primitive.bind(instantiate(g), primals[1], g_updates, **params)

    return jvp


def _sum_transpose(sign: Callable[[Any], Any]) -> Rule:
    def transpose(ct: Tangent, x: Operand, indices: Operand, updates: Operand, **params: Any
                  ) -> Tangents:
        ct_updates = None
        if is_undefined_primal(updates):
            ct_updates = sign(_gathered(ct, indices, updates.aval.shape, params))
        return ct if is_undefined_primal(x) else None, None, ct_updates

    return transpose


def _product_jvp(primals: Values, tangents: Tangents, **params: Any) -> tuple[Value, Tangent]:
    out = scatter_mul_p.bind(*primals, **params)
    x, indices, updates = primals
    g, _, g_updates = tangents
    tangent: Any = Zero.of_primal(out)
    if type(g) is not Zero:
        tangent = scatter_mul_p.bind(g, indices, updates, **params)
    if type(g_updates) is not Zero:
        others = _other_factors(x, indices, updates, params)
        terms = lax.mul(g_updates, others)
        start = zeros_like(out) if type(tangent) is Zero else tangent
        tangent = _bind(scatter_add, start, indices, terms, params)
    return out, tangent


def _other_factors(x: Value, indices: Value, updates: Value, params: Params) -> Value:
    """For each update the product of all else that is multiplied at its place.

    Nothing is divided, so derivatives of any order are right where updates are zero: with the
    updates sorted by their places it is the product of those before and those after it.
    """
    shape = get_aval(updates).shape
    own = _gathered(x, indices, shape, params)
    if params["unique_indices"]:
        return own
    n = math.prod(shape)
    iota = lax.iota(np.int32, n)
    numbers = reshape(lax.add(lax.iota(np.int32, get_aval(x).size), np.int32(1)), get_aval(x).shape)
    places = reshape(_gathered(numbers, indices, shape, params), (n,))  # 0: a dropped update
    places, order = lax.sort_key_val(places, iota)
    _, back = lax.sort_key_val(order, iota)
    factors = take_along(reshape(updates, (n,)), order, 0)
    others = lax.mul(_products_before(places, factors, False),
                     _products_before(places, factors, True))
    return lax.mul(own, reshape(take_along(others, back, 0), shape))


def _products_before(places: Value, factors: Value, reverse: bool) -> Value:
    """For each of the factors the product of those before it, or after it, at the same place."""
    if get_aval(factors).size == 0:
        return factors
    if reverse:
        places, factors = lax.rev(places, (0,)), lax.rev(factors, (0,))
    one = full_aval(get_aval(factors).update(shape=(1,)), 1)
    first = lax.concatenate([lax.full((1,), True), lax.ne(
        lax.slice_in_dim(places, 1, None), lax.slice_in_dim(places, 0, -1))], 0)
    before = lax.concatenate([one, lax.slice_in_dim(factors, 0, -1)], 0)
    before = lax.select(first, full_aval(get_aval(before), 1), before)

    def joined(left: tuple[Value, Value], right: tuple[Value, Value]) -> tuple[Value, Value]:
        (starts_left, product), (starts_right, factor) = left, right
        return (lax.bitwise_or(starts_left, starts_right),
                lax.select(starts_right, factor, lax.mul(product, factor)))

    products = lax.associative_scan(joined, (first, before))[1]
    return lax.rev(products, (0,)) if reverse else products


def _product_transpose(ct: Tangent, x: Operand, indices: Operand, updates: Operand, **params: Any
                       ) -> Tangents:
    if is_undefined_primal(x):
        return scatter_mul_p.bind(ct, indices, updates, **params), None, None
    if not params["unique_indices"]:
        raise NotImplementedError(
            "scatter_mul is linear in its updates only with unique_indices=True."
        )
    return None, None, _gathered(lax.mul(ct, x), indices, updates.aval.shape, params)


def _extremum_jvp(primitive: Primitive) -> Rule:
    def jvp(primals: Values, tangents: Tangents, **params: Any) -> tuple[Value, Tangent]:
        # The mean of the tangents of all those, operand and updates, that are the extremum.
        out = primitive.bind(*primals, **params)
        x, indices, updates = primals
        g, _, g_updates = tangents
        if type(g) is Zero and type(g_updates) is Zero:
            return out, Zero.of_primal(out)
        shape = get_aval(updates).shape
        dtype = g.aval.dtype if type(g) is Zero else get_aval(g).dtype
        chosen = lax.convert_element_type(lax.eq(x, out), dtype)
        chosen_updates = lax.convert_element_type(
            lax.eq(updates, _gathered(out, indices, shape, params)), dtype
        )
        count = _bind(scatter_add, chosen, indices, chosen_updates, params)
        total = _bind(scatter_add, lax.mul(instantiate(g), chosen), indices,
                      lax.mul(instantiate(g_updates), chosen_updates), params)
        # Where none is, for nan is not equal to itself, the tangent is 0.
        return out, lax.div(total, lax.max(count, full_aval(get_aval(count), 1)))

    return jvp


def _replace_jvp(primals: Values, tangents: Tangents, **params: Any) -> tuple[Value, Tangent]:
    if params["update_jaxpr"] is not None:
        return _apply_jvp(primals, tangents, **params)
    x, indices, updates = primals
    g, _, g_updates = tangents
    shape = get_aval(updates).shape
    dnums = params["dimension_numbers"]
    count = math.prod([shape[a] for a in _positions(shape, dnums)])
    if params["unique_indices"] or count <= 1 or type(g_updates) is Zero:
        out = scatter_p.bind(*primals, **params)
        if type(g) is Zero and type(g_updates) is Zero:
            return out, Zero.of_primal(out)
        return out, scatter_p.bind(instantiate(g), indices, instantiate(g_updates), **params)
    # Where several updates meet, one of them wins; which one is not defined. To find out, numbers
    # from 1 are scattered in their stead. Value and tangent are then made of what has won.
    places = _positions(shape, dnums)
    numbers = lax.add(lax.iota(np.int32, count), np.int32(1))
    numbers = broadcast_in_dim(reshape(numbers, [shape[a] for a in places]), shape, places)
    none = full_aval(get_aval(x).update(dtype=np.int32, weak_type=False), 0)
    winners = scatter_p.bind(none, indices, numbers, **params)
    untouched = lax.eq(winners, none)
    won = lax.eq(_gathered(winners, indices, shape, params), numbers)

    def merge(x: Value, updates: Value) -> Any:
        return _bind(scatter_add, lax.select(untouched, x, zeros_like(x)), indices,
                     lax.select(won, updates, zeros_like(updates)), params)

    return merge(x, updates), merge(instantiate(g), g_updates)


def _replace_transpose(ct: Tangent, x: Operand, indices: Operand, updates: Operand, **params: Any
                       ) -> Tangents:
    aval = _aval_of(updates)
    ct_x = ct_updates = None
    if is_undefined_primal(x):
        zeros = full_aval(cotangent_aval(aval).update(dtype=get_aval(ct).dtype), 0)
        ct_x = scatter_p.bind(ct, indices, zeros, **params)
    if is_undefined_primal(updates):
        places = _positions(aval.shape, params["dimension_numbers"])
        if not params["unique_indices"] and math.prod([aval.shape[a] for a in places]) > 1:
            raise NotImplementedError(
                "scatter transpose is only implemented where unique_indices=True"
            )
        ct_updates = _gathered(ct, indices, aval.shape, params)
    return ct_x, None, ct_updates


def _apply_jvp(primals: Values, tangents: Tangents, **params: Any) -> tuple[Value, Tangent]:
    """The derivative of scatter_apply, whose updates have no influence."""
    x, indices, updates = primals
    out = scatter_p.bind(*primals, **params)
    g = tangents[0]
    if type(g) is Zero:
        return out, Zero.of_primal(out)
    if not params["unique_indices"]:
        raise NotImplementedError(
            "scatter_apply JVP not implemented for indices that may repeat: "
            "pass unique_indices=True if they do not."
        )
    shape = get_aval(updates).shape
    jaxpr, consts, size = params["update_jaxpr"], params["update_consts"], math.prod(shape)

    def fun(x: Value) -> list[Any]:
        flat = reshape(x, (size,))
        zeros = zeros_like(flat)
        (y,), (d,) = batch_flat(lambda *a: eval_jaxpr(jaxpr, consts, *a), [flat, zeros],
                                [0, 0], size)
        return [reshape(at_front(y, d, size), shape)]

    windows = [_gathered(a, indices, shape, params) for a in (x, g)]
    _, (tangent,) = jvp_flat(fun, windows[:1], windows[1:])
    return out, _bind(scatter, g, indices, instantiate(tangent), params)


# -- the primitives --------------------------------------------------------------------------------


def _scatter_sharding(out: ShapedArray, x: ShapedArray, indices: ShapedArray,
                      updates: ShapedArray, *, dimension_numbers: ScatterDimensionNumbers,
                      **params: Any) -> Entries:
    """The operand stays cut along axes that are written whole; those that it goes along together
    with indices and updates are cut like any of them; the updates are cut likewise, or not."""
    dn = dimension_numbers
    message = (
        "Use `.at[...].set/add/mul/...(out_sharding=)` to provide output PartitionSpec for the "
        "scatter update as out sharding could not be resolved unambiguously (or would require "
        f"collectives on inputs). Got operand={x!r}, indices={indices!r}, updates={updates!r}")
    entries: list[Any] = []
    given, places, written = entries_of(x), entries_of(indices), entries_of(updates)
    allowed: list[Any] = [None] * updates.ndim
    batch = [i for i in range(updates.ndim) if i not in dn.update_window_dims]
    clear = all([e is None or i in dn.scatter_indices_batching_dims for i, e in enumerate(places)])
    window = iter(dn.update_window_dims)
    for i, entry in enumerate(given):
        if i in dn.operand_batching_dims:
            j = dn.scatter_indices_batching_dims[dn.operand_batching_dims.index(i)]
            entry = one_entry((entry, places[j], written[batch[j]]), message)
            allowed[batch[j]] = entry
        elif i in dn.inserted_window_dims:
            clear = clear and entry is None
        else:
            j = next(window)
            allowed[j] = entry
            clear = clear and (entry is None or updates.shape[j] == x.shape[i])
        entries.append(entry)
    if not clear or any([e not in (None, a) for e, a in zip(written, allowed, strict=True)]):
        raise ShardingTypeError(message)
    return tuple(entries)


def _scatter(name: str, function: str, **rules: Any) -> Primitive:
    moves = name == "scatter"
    p = register(Primitive(
        name, moves=moves, arithmetic=None if moves else lambda eqn: (size(eqn.invars[2]), 0.0),
        shape_rule=_scatter_shape(function), sharding_rule=_scatter_sharding, asked=True, **rules))
    return p.define(batch=_scatter_batch(p))


scatter_p = _scatter("scatter", "scatter", jvp=_replace_jvp, transpose=_replace_transpose,
                     linear=FIRST_AND_THIRD)
scatter_add_p = _scatter("scatter-add", "scatter_add", transpose=_sum_transpose(lambda ct: ct),
                         linear=FIRST_AND_THIRD)
scatter_sub_p = _scatter("scatter-sub", "scatter_sub", linear=FIRST_AND_THIRD,
                         transpose=_sum_transpose(lambda ct: lax.neg(ct)))
scatter_mul_p = _scatter("scatter-mul", "scatter_mul", jvp=_product_jvp,
                         transpose=_product_transpose, linear=FIRST)
scatter_min_p = _scatter("scatter-min", "scatter_min")
scatter_max_p = _scatter("scatter-max", "scatter_max")
for _p in (scatter_add_p, scatter_sub_p):
    _p.define(jvp=_sum_jvp(_p))
for _p in (scatter_min_p, scatter_max_p):
    _p.define(jvp=_extremum_jvp(_p))


@kept(256)
def _combiner(name: str, dtype: DType) -> Jaxpr:
    """The jaxpr of how an update meets the value that is there: a function of `lax`."""
    scalar = ShapedArray((), dtype)
    fun = getattr(lax, name)
    return trace_to_jaxpr(lambda x, y: [fun(x, y)], (scalar, scalar)).jaxpr


def _call(primitive: Primitive, combine: str | None, operand: Value, indices: Value, updates: Value,
          dimension_numbers: ScatterDimensionNumbers, indices_are_sorted: bool,
          unique_indices: bool, mode: Any) -> Value:
    name = primitive.name
    operand = _operand(name, operand)
    return primitive.bind(
        operand, _operand(name, indices, 1), _operand(name, updates, 2),
        dimension_numbers=with_tuples(name, ScatterDimensionNumbers, dimension_numbers),
        indices_are_sorted=bool(indices_are_sorted), unique_indices=bool(unique_indices),
        mode=as_mode(name, mode),
        update_jaxpr=None if combine is None else _combiner(combine, get_aval(operand).dtype),
        update_consts=(),
    )


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
    return _call(scatter_p, None, operand, scatter_indices, updates, dimension_numbers,
                 indices_are_sorted, unique_indices, mode)


def scatter_add(operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike,
                dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
                unique_indices: bool = False, mode: str | GatherScatterMode | None = None) -> Array:
    """The operand with the updates added to its windows. Arguments and errors as for `scatter`.

    >>> import pyjx as jax
    >>> lax, jnp = jax.lax, jax.numpy
    >>> dnums = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_add(jnp.zeros(3), jnp.array([[2], [2]]), jnp.array([1., 2.]), dnums).tolist()
    [0.0, 0.0, 3.0]
    """
    return _call(scatter_add_p, "add", operand, scatter_indices, updates, dimension_numbers,
                 indices_are_sorted, unique_indices, mode)


def scatter_sub(operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike,
                dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
                unique_indices: bool = False, mode: str | GatherScatterMode | None = None) -> Array:
    """The operand with the updates taken from its windows. Arguments and errors as for `scatter`.

    >>> import pyjx as jax
    >>> lax, jnp = jax.lax, jax.numpy
    >>> dnums = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_sub(jnp.zeros(3), jnp.array([[2], [2]]), jnp.array([1., 2.]), dnums).tolist()
    [0.0, 0.0, -3.0]
    """
    return _call(scatter_sub_p, "sub", operand, scatter_indices, updates, dimension_numbers,
                 indices_are_sorted, unique_indices, mode)


def scatter_mul(operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike,
                dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
                unique_indices: bool = False, mode: str | GatherScatterMode | None = None) -> Array:
    """The operand with its windows times the updates. Arguments and errors as for `scatter`.

    It has derivatives in the updates also where indices repeat: an extension of the interface.

    >>> import pyjx as jax
    >>> lax, jnp = jax.lax, jax.numpy
    >>> dnums = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_mul(jnp.ones(3), jnp.array([[2], [2]]), jnp.array([3., 2.]), dnums).tolist()
    [1.0, 1.0, 6.0]
    """
    return _call(scatter_mul_p, "mul", operand, scatter_indices, updates, dimension_numbers,
                 indices_are_sorted, unique_indices, mode)


def scatter_min(operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike,
                dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
                unique_indices: bool = False, mode: str | GatherScatterMode | None = None) -> Array:
    """The lesser of the operand's windows and the updates. Arguments and errors as for `scatter`.

    >>> import pyjx as jax
    >>> lax, jnp = jax.lax, jax.numpy
    >>> dnums = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_min(jnp.ones(3), jnp.array([[2], [2]]), jnp.array([3., 0.]), dnums).tolist()
    [1.0, 1.0, 0.0]
    """
    return _call(scatter_min_p, "min", operand, scatter_indices, updates, dimension_numbers,
                 indices_are_sorted, unique_indices, mode)


def scatter_max(operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike,
                dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
                unique_indices: bool = False, mode: str | GatherScatterMode | None = None) -> Array:
    """The greater of the operand's windows and the updates. Arguments and errors as for `scatter`.

    >>> import pyjx as jax
    >>> lax, jnp = jax.lax, jax.numpy
    >>> dnums = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_max(jnp.ones(3), jnp.array([[2], [2]]), jnp.array([3., 0.]), dnums).tolist()
    [1.0, 1.0, 3.0]
    """
    return _call(scatter_max_p, "max", operand, scatter_indices, updates, dimension_numbers,
                 indices_are_sorted, unique_indices, mode)


def scatter_apply(
    operand: ArrayLike, scatter_indices: ArrayLike, func: Callable[[Any], Any],
    dimension_numbers: ScatterDimensionNumbers, *, update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False, unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
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
    if is_open(aval):
        raise ShardingTypeError(
            "scatter_apply is a non-linear operation and cannot accept input that is unreduced. "
            f"Got {aval.str_short()}. Sum it before.")
    closed = _traced(func, ShapedArray((), aval.dtype))
    sizes = as_sizes("scatter_apply", "update_shape", update_shape)
    unused = full_aval(ShapedArray(
        sizes, aval.dtype, sharding=sharding_of_sums(aval, len(sizes)),
        manual_axis_type=aval.manual_axis_type), 0)
    return scatter_p.bind(
        operand, _operand("scatter_apply", scatter_indices, 1), unused,
        dimension_numbers=with_tuples("scatter_apply", ScatterDimensionNumbers, dimension_numbers),
        indices_are_sorted=bool(indices_are_sorted), unique_indices=bool(unique_indices),
        mode=as_mode("scatter_apply", mode), update_jaxpr=closed.jaxpr,
        update_consts=tuple(closed.consts),
    )


def _traced(func: Callable[[Any], Any], scalar: ShapedArray) -> ClosedJaxpr:
    if not callable(func):
        raise TypeError(f"scatter_apply: func must be a function, got {func!r}")
    closed = shared(
        trace_to_jaxpr(lambda x, _: [_operand("scatter_apply", func(x))], (scalar, scalar)))
    out = closed.out_avals[0]
    if out.shape or out.dtype != scalar.dtype:
        raise TypeError(
            f"scatter_apply: func must return a value of type {scalar.str_short()}, "
            f"got {out.str_short()}."
        )
    if any(isinstance(c, Tracer) or get_aval(c).shape for c in closed.consts):
        raise TypeError("scatter_apply: func may depend on its argument and on concrete scalars "
                        "only, not on arrays or traced values.")
    consts = [scalar_constant(c, get_aval(c).dtype) for c in closed.consts]
    return ClosedJaxpr(closed.jaxpr, consts)
