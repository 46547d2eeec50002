"""Collectives: operations that read a value at all positions of named axes.

`vmap(f, axis_name="i")` names an axis, and inside `f` each example may read those at the other
positions on it. An operation over names goes to the interpreter of the innermost of them, whose
rule `own` makes that axis a positional one; other interpreters take the operation for the one on
each example that it is. Here are the reductions over axes and what tells about them; `exchanges`
holds the operations that move values.

    psum    the sum over the axes; transposed, the sum of the cotangents
    pmax    the maximum; its tangent is the mean of those at the places where it is attained

Over axes of a mesh along which types say what varies, a reduction takes what varies and gives what
does not: the sum is `psum_invariant`, and its transpose `pvary`, which takes the one for the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core import dtypes
from pyjx.core.arithmetic import TOGETHER
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import ShapedArray, SymbolicDim, get_aval
from pyjx.core.effects import Effects, NamedAxisEffect
from pyjx.core.forbidden import check_collective, no_collectives
from pyjx.core.named_axes import find_frame, named_axes
from pyjx.core.primitive import (
    Primitive,
    preduced_p,
    pvary_p,
    reduced_vary_cast_p,
    register,
    vary,
    vary_unreduced_cast_p,
)
from pyjx.core.specs import NO_AXES
from pyjx.core.value_texts import in_short
from pyjx.engine.axes import reduce_sum_p, reduced_shape, reduced_sharding, stretched_along
from pyjx.engine.batching import BatchTrace
from pyjx.engine.primitives import cast
from pyjx.engine.rules import jvp_by_result, jvp_zero, unbatched_dims
from pyjx.engine.types import AxisName, Dims, Operand, Params, Value, Values
from pyjx.lax.common import accepted, host_converted, operand
from pyjx.lax.elementwise import like
from pyjx.lax.reductions import reduce_max_p, reduce_min_p
from pyjx.tree_util import tree_map

Axes = tuple[Any, ...]  # names of axes, and positions of axes where an operation takes both
Groups = tuple[tuple[int, ...], ...] | None

# -- names -----------------------------------------------------------------------------------------


def is_position(axis: Any) -> bool:
    """Whether an axis is given by its position; everything but an integer is a name."""
    return hasattr(axis, "__index__")


def as_axes(axis_name: AxisName) -> Axes:
    """One name, or several, as a tuple.

    Raises:
      TypeError: one of them, such as an array, is not hashable.
    """
    axes = tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)
    for name in axes:
        if hasattr(name, "aval"):
            raise TypeError(f"axis_name must be the name of an axis, got {in_short(name)}. The "
                            "array comes first, as in psum(x, 'i').")
    hash(axes)
    return axes


def bound_names(function: str, axis_name: AxisName) -> Axes:
    """The names of axes around here that `axis_name` gives.

    Raises:
      NameError: there is no axis of such a name here.
      ValueError: a name is given twice.
    """
    names = as_axes(axis_name)
    for name in names:
        try:
            find_frame(name)
        except NameError as error:
            raise NameError(f"{function}: {error}") from None
    _check_distinct(function, names)
    return names


def _check_distinct(function: str, axes: Axes) -> None:
    if len(set(axes)) != len(axes):
        raise ValueError(f"{function}: duplicate value in axes: {axes}")


def size_of(names: Axes) -> int:
    """How many positions there are on the axes of these names."""
    return math.prod([find_frame(name).axis.size for name in names])


def checked_groups(function: str, groups: Any, names: Axes) -> Groups:
    """`axis_index_groups` as tuples; they must part the positions on the axes.

    Raises:
      TypeError: they are no sequences of integers.
      ValueError: a position is in no group, or in two.
    """
    if groups is None:
        return None
    try:
        groups = tuple([tuple([int(i) for i in group]) for group in groups])
    except TypeError:
        raise TypeError(f"{function}: axis_index_groups must be a list of lists of integers, got "
                        f"{groups!r}") from None
    if sorted([i for group in groups for i in group]) != list(range(size_of(names))):
        raise ValueError(f"{function}: axis_index_groups must cover all indices exactly once, got "
                         f"{groups} for {size_of(names)} positions on {names}")
    return groups  # type: ignore[no-any-return]


# -- primitives over names -------------------------------------------------------------------------


def check_allowed(operation: str, names: Axes) -> None:
    """Raise ForbiddenCollectiveError where the user forbids collectives across one of these axes of
    a mesh."""
    if no_collectives.value:
        check_collective(operation, "acts on axis '{}'",
                         [n for n in names if not is_position(n) and is_manual((n,))])


def bind_checked(primitive: Primitive, x: Value, params: Params,
                 typed: frozenset[Any] = NO_AXES) -> Array:
    """Apply a primitive whose shape rule is to see the operand of one example, which varies along
    the axes that are `typed`."""
    x = varied(operand(primitive.name, x), typed)
    primitive.out_avals((get_aval(x),), params)
    return primitive.bind(x, **params)


def varied(x: Value, typed: frozenset[Any]) -> Value:
    """The operand of a collective, taken for one that varies along its axes.

    Raises:
      ValueError: it is reduced along some. Operations on parts take such a value for one that
        varies, but a collective would take what is one value for one of each device.
    """
    aval = get_aval(x)
    if not aval.place.mat.reduced.isdisjoint(typed):
        raise ValueError(
            f"pvary cannot accept args which are reduced. Got {aval.str_short(True)} and axes="
            f"{set(typed)}. A reduced value is the same on all devices: take it as it is or, where "
            "each device's copy is to count, cast it before: jax.lax.pcast(..., to='varying').")
    return vary(x, typed)


def typed_names(names: Axes) -> frozenset[Any]:
    """The names of those axes, of a mesh, along which types say what varies."""
    return frozenset([n for n in names if find_frame(n).axis.varies])


def is_manual(names: Axes) -> bool:
    """Whether the axes of these names are of a mesh, whose devices are told what to do."""
    return all([find_frame(n).axis.varies is not None for n in names])


def check_ungrouped(primitive: Primitive, groups: Groups) -> None:
    """Raise NotImplementedError for groups on the axis of a vmap."""
    if groups is not None:
        raise NotImplementedError(
            f"{primitive}: axis_index_groups not supported in vmap collectives. Make the mapped "
            "axis two axes, one of which is the group, and map over both.")


def raise_unmanual(primitive: Primitive, names: Axes) -> None:
    """Raise NameError for an operation that is to run where its axes are not those of a mesh."""
    bound_names(primitive.name, names)
    if not is_manual(names):
        raise NameError(f"{primitive}: the axes {list(names)} belong to a function that has "
                        "returned")


# -- reductions ------------------------------------------------------------------------------------


def _moved(axes: Axes, d: int) -> Axes:
    """The axes of one example, in the batch whose batch axis is `d`."""
    return tuple([unbatched_dims(d, (a,))[0] if is_position(a) else a for a in axes])


def _reduction(name: str, over_positions: Primitive, repeated: Callable[[Value, int], Value],
               *kinds: Any, **rules: Any) -> Primitive:
    """A reduction over axes, each given by its name or its position.

    Args:
      name: of the primitive.
      over_positions: the reduction of an array over some of its axes.
      repeated: the reduction of so many times the same value.
      kinds: which dtypes the operand may have; all if there are none.
      rules: more rules.
    """

    def shape_rule(x: ShapedArray, *, axes: Axes, axis_index_groups: Groups) -> ShapedArray:
        if kinds:
            accepted(name, x, kinds, "subtypes of number")
        positions = tuple([a for a in axes if is_position(a)])
        out = x.update(shape=reduced_shape(name, x, positions))
        return out.varying(x.place.mat.varying.difference(axes))  # type: ignore[no-any-return]

    def batch(operands: Values, dims: Dims, *, axes: Axes, axis_index_groups: Groups) -> Any:
        (x,), (d,) = operands, dims
        assert d is not None
        moved = _moved(axes, d)
        out_dim = d - sum([is_position(a) and a < d for a in moved])
        return primitive.bind(x, axes=moved, axis_index_groups=axis_index_groups), out_dim

    def batch_axis(trace: BatchTrace, operands: Values, dims: Dims, *, axes: Axes,
                   axis_index_groups: Groups) -> Any:
        own = trace.axis.name
        if own not in axes or is_position(own):
            return batch(operands, dims, axes=axes, axis_index_groups=axis_index_groups)
        check_ungrouped(primitive, axis_index_groups)
        (x,), (d,) = operands, dims
        if d is None:
            x = repeated(x, trace.axis.size)
            axes = tuple([a for a in axes if a != own])
        else:
            axes = tuple([d if a == own else b for a, b in zip(axes, _moved(axes, d), strict=True)])
        return (primitive.bind(x, axes=axes, axis_index_groups=None) if axes else x), None

    def effects(params: Params) -> Effects:
        return frozenset([NamedAxisEffect(a) for a in params["axes"] if not is_position(a)])

    def decomposition(x: Any, *, axes: Axes, axis_index_groups: Groups) -> Any:
        positions = tuple([a for a in axes if is_position(a)])
        names = tuple([a for a in axes if not is_position(a)])
        if positions:
            x = over_positions.bind(x, axes=positions, out_sharding=None)
        if not names:
            return x
        raise_unmanual(primitive, names)
        return all_reduce_p.bind(x, axes=names, axis_index_groups=axis_index_groups,
                                 reducer=over_positions.name)

    primitive = register(Primitive(
        name, shape_rule=shape_rule, batch=batch, batch_axis=batch_axis,
        sharding_rule=lambda out, x, axes, **_: reduced_sharding(
            out, x, axes=tuple([a for a in axes if is_position(a)])),
        decomposition=decomposition, effects=effects, **rules))
    return primitive


# A reduction over axes of a mesh: what the collectives below are made of on devices.
all_reduce_p = register(Primitive(
    "all_reduce", shape_rule=lambda x, **_: x,
    effects=lambda params: frozenset(map(NamedAxisEffect, params["axes"]))))


def _psum_transpose(ct: Value, x: Operand, *, axes: Axes, axis_index_groups: Groups) -> Any:
    names = tuple([a for a in axes if not is_position(a)])
    if names:
        ct = psum_p.bind(ct, axes=names, axis_index_groups=axis_index_groups)
    return (stretched_along(ct, x.aval.shape, axes),)


def times(x: Value, n: int) -> Array:
    """The sum of so many times the same value."""
    return lax.mul(x, like(x, host_converted(n, get_aval(x).dtype)))


psum_p: Primitive = _reduction("psum", reduce_sum_p, times, np.number)
psum_p.linear = TOGETHER
psum_p.define(transpose=_psum_transpose)

# The same over axes of a mesh along which types say what varies: cotangents do not.
psum_invariant_p: Primitive = _reduction(
    "psum_invariant", reduce_sum_p, times, np.number,
    printed=lambda params: [("axes", params["axes"])])
psum_invariant_p.linear = TOGETHER
psum_invariant_p.define(
    transpose=lambda ct, x, axes, axis_index_groups: (vary(ct, frozenset(axes)),))


pvary_p.define(
    transpose=lambda ct, x, *, axes: (psum_invariant_p.bind(
        vary(ct, frozenset(axes)), axes=axes, axis_index_groups=None),),
    batch=lambda operands, dims, axes: (pvary_p.bind(*operands, axes=axes), dims[0]),
    physical=lambda avals, x, axes: pvary_p.bind(x, axes=axes))


# Over a mesh, the sum that an unreduced value is yet to go through.


def _unreduced_psum_shape(x: ShapedArray, *, axes: Axes) -> ShapedArray:
    mat = x.place.mat
    return x.varying(mat.varying, mat.unreduced.difference(axes))  # type: ignore[no-any-return]


unreduced_psum_p: Primitive = register(Primitive(
    "unreduced_psum", shape_rule=_unreduced_psum_shape, linear=TOGETHER,
    batch_axis=lambda trace, operands, dims, axes: (
        unreduced_psum_p.bind(*operands, axes=axes), dims[0]),
    effects=lambda params: frozenset(map(NamedAxisEffect, params["axes"])),
    transpose=lambda ct, x, axes: (preduced_p.bind(ct, axes=axes),)))

preduced_p.define(transpose=lambda ct, x, axes: (unreduced_psum_p.bind(ct, axes=axes),))
reduced_vary_cast_p.define(
    transpose=lambda ct, x, axes: (
        vary_unreduced_cast_p.bind(vary(ct, frozenset(axes)), axes=axes),))
vary_unreduced_cast_p.define(
    transpose=lambda ct, x, axes: (reduced_vary_cast_p.bind(ct, axes=axes),))


def is_unreduced(function: str, x: Value, typed: frozenset[Any]) -> bool:
    """Whether a value is yet to be summed over these axes.

    Raises:
      ValueError: over some of them it is.
    """
    aval = get_aval(x)
    found = aval.place.mat.unreduced & typed
    if found and found != typed:
        raise ValueError(
            f"jax.lax.{function} can only accept axis_name which corresponds to one of varying, "
            "unreduced, reduced or invarying state of the input. Got input type: "
            f"{aval.str_short()}, axes: {tuple(sorted(map(str, typed)))}. Call it once for each.")
    return bool(found)


def sum_over(x: Value, *, axes: Axes, axis_index_groups: Groups) -> Array:
    """The sum over axes given by names and positions."""
    names = tuple([a for a in axes if not is_position(a)])
    typed = typed_names(names)
    if not typed:
        return psum_p.bind(x, axes=axes, axis_index_groups=axis_index_groups)
    _check_ungrouped_types("psum", axis_index_groups)
    rest = tuple([a for a in axes if a not in typed])
    if rest:
        x = psum_p.bind(x, axes=rest, axis_index_groups=None)
    if is_unreduced("psum", x, typed):
        return unreduced_psum_p.bind(x, axes=tuple([a for a in axes if a in typed]))
    return psum_invariant_p.bind(varied(x, typed), axes=tuple([a for a in axes if a in typed]),
                                 axis_index_groups=None)


def _check_ungrouped_types(function: str, groups: Sequence[Sequence[int]] | None) -> None:
    if groups is not None:
        raise NotImplementedError(
            f"{function}: axis_index_groups are not supported with the types of shard_map, which "
            "do not say what varies from group to group. Pass check_vma=False to it.")


pmax_p: Primitive = _reduction("pmax", reduce_max_p, lambda x, n: x, keeps_nans=True)
pmin_p: Primitive = _reduction("pmin", reduce_min_p, lambda x, n: x, keeps_nans=True)


def _extremum_tangent(g: Value, ans: Value, x: Value, **params: Any) -> Array:
    # the mean of the tangents at the places where the extremum is attained
    places = lax.eq(x, stretched_along(ans, get_aval(x).shape, params["axes"]))
    weights = lax.convert_element_type(places, get_aval(g).dtype)
    return lax.div(sum_over(lax.mul(g, weights), **params), sum_over(weights, **params))


pmax_p.define(jvp=jvp_by_result(pmax_p, _extremum_tangent))
pmin_p.define(jvp=jvp_by_result(pmin_p, _extremum_tangent))


def _checked(function: str, axis_name: AxisName, axis_index_groups: Sequence[Sequence[int]] | None
            ) -> Params:
    """The parameters of a reduction."""
    axes = tuple([a.__index__() if is_position(a) else a for a in as_axes(axis_name)])
    _check_distinct(function, axes)
    names = bound_names(function, [a for a in axes if not is_position(a)])
    if axis_index_groups is not None and len(names) < len(axes):
        raise ValueError(f"{function}: axis_index_groups only supported for reductions over just "
                         f"named axes, got {axes}")
    groups = checked_groups(function, axis_index_groups, names)
    return {"axes": axes, "axis_index_groups": groups}


def _is_host_value(x: Any) -> bool:
    return isinstance(x, (int, float, complex, np.generic, np.ndarray))


def psum(x: Any, axis_name: AxisName, *, axis_index_groups: Sequence[Sequence[int]] | None = None
        ) -> Any:
    """The sum over named axes.

    Args:
      x: a pytree of arrays. A Python number or NumPy array is the same at all positions, and the
        result is one too: `psum(1, "i")` is the size of the axis, known while tracing.
      axis_name: the name of the axis, or a tuple of them, among which positions of axes may be.
      axis_index_groups: a list of lists that part the positions on the axis: the sums are within
        these. Not supported on the axes of vmap.

    Returns:
      A pytree like `x`. Bools are summed as integers.

    Raises:
      NameError: there is no such axis here.

    >>> import pyjx as jax
    >>> jax.vmap(lambda x: x / jax.lax.psum(x, "i"), axis_name="i")(jax.numpy.ones(4)).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    params = _checked("psum", axis_name, axis_index_groups)
    named = not any(map(is_position, params["axes"]))

    def total(leaf: Any) -> Any:
        leaf = operand("psum", leaf)
        if get_aval(leaf).dtype == np.bool_:
            leaf = lax.convert_element_type(leaf, np.dtype(np.int32))
        if not params["axes"]:
            return leaf
        if named and _is_host_value(leaf):
            return leaf * _group_size(params)
        check_allowed("psum", params["axes"])
        psum_p.out_avals((get_aval(leaf),), params)
        return sum_over(leaf, **params)

    return tree_map(total, x)


def _group_size(params: Params) -> int:
    groups: Groups = params["axis_index_groups"]
    return size_of(params["axes"]) if groups is None else len(groups[0])


def pmean(x: Any, axis_name: AxisName, *, axis_index_groups: Sequence[Sequence[int]] | None = None
         ) -> Any:
    """The mean over named axes; arguments as for `psum`. Of integers it is a float.

    Args:
      x: an array, or a tree of arrays.
      axis_name: the name of a mapped axis (`axis_name=` of `vmap`, an axis of a mesh in
        `shard_map`), or a tuple of names.
      axis_index_groups: lists of positions on the axis, each position in one of them: values are
        combined within a group. None is one group.

    >>> import pyjx as jax
    >>> jax.vmap(lambda x: x - jax.lax.pmean(x, "i"), axis_name="i")(jax.numpy.arange(3)).tolist()
    [-1.0, 0.0, 1.0]
    """
    params = _checked("pmean", axis_name, axis_index_groups)
    positions = [a for a in params["axes"] if is_position(a)]
    names = {**params, "axes": tuple([a for a in params["axes"] if not is_position(a)])}

    def mean(leaf: Any) -> Any:
        total = psum(leaf, axis_name, axis_index_groups=axis_index_groups)
        shape = get_aval(leaf).shape
        count = math.prod([_group_size(names), *[shape[a] for a in positions]])
        if _is_host_value(total):
            return total / count
        aval = get_aval(total)
        total = cast(total, dtypes.to_inexact_dtype(aval.dtype), aval.weak_type)
        return lax.div(total, like(total, count))

    return tree_map(mean, x)


def _extremum(primitive: Primitive, x: ArrayLike, axis_name: AxisName,
              axis_index_groups: Sequence[Sequence[int]] | None) -> Any:
    params = _checked(primitive.name, axis_name, axis_index_groups)
    typed = typed_names(tuple([a for a in params["axes"] if not is_position(a)]))
    if typed:
        _check_ungrouped_types(primitive.name, axis_index_groups)

    def extremum(leaf: Any) -> Any:
        if not params["axes"]:
            return leaf
        check_allowed(primitive.name, params["axes"])
        return bind_checked(primitive, leaf, params, typed)

    return tree_map(extremum, x)


def pmax(x: Any, axis_name: AxisName, *, axis_index_groups: Sequence[Sequence[int]] | None = None
        ) -> Any:
    """The maximum over named axes; arguments as for `psum`.

    Args:
      x: an array, or a tree of arrays.
      axis_name: the name of a mapped axis (`axis_name=` of `vmap`, an axis of a mesh in
        `shard_map`), or a tuple of names.
      axis_index_groups: lists of positions on the axis, each position in one of them: values are
        combined within a group. None is one group.

    >>> import pyjx as jax
    >>> jax.vmap(lambda x: jax.lax.pmax(x, "i"), axis_name="i")(jax.numpy.arange(3)).tolist()
    [2, 2, 2]
    """
    return _extremum(pmax_p, x, axis_name, axis_index_groups)


def pmin(x: Any, axis_name: AxisName, *, axis_index_groups: Sequence[Sequence[int]] | None = None
        ) -> Any:
    """The minimum over named axes; arguments as for `psum`.

    Args:
      x: an array, or a tree of arrays.
      axis_name: the name of a mapped axis (`axis_name=` of `vmap`, an axis of a mesh in
        `shard_map`), or a tuple of names.
      axis_index_groups: lists of positions on the axis, each position in one of them: values are
        combined within a group. None is one group.

    >>> import pyjx as jax
    >>> jax.vmap(lambda x: jax.lax.pmin(x, "i"), axis_name="i")(jax.numpy.arange(3)).tolist()
    [0, 0, 0]
    """
    return _extremum(pmin_p, x, axis_name, axis_index_groups)


# -- positions and sizes ---------------------------------------------------------------------------


axis_index_p: Primitive = register(Primitive(
    "axis_index", shape_rule=lambda axis_name: ShapedArray((), np.dtype(np.int32)),
    batch_axis=lambda trace, operands, dims, *, axis_name: (
        lax.iota(np.int32, trace.axis.size), 0),
    effects=lambda params: frozenset({NamedAxisEffect(params["axis_name"])}),
))
axis_index_p.define(jvp=jvp_zero(axis_index_p))


def axis_index(axis_name: AxisName) -> Array:
    """The position on a named axis, an int32; on several, the first of which varies slowest.

    Args:
      axis_name: the name of a mapped axis (`axis_name=` of `vmap`, an axis of a mesh in
        `shard_map`), or a tuple of names.

    Raises:
      NameError: there is no such axis here.

    >>> import pyjx as jax
    >>> jax.vmap(lambda x: x * jax.lax.axis_index("i"), axis_name="i")(jax.numpy.ones(3)).tolist()
    [0.0, 1.0, 2.0]
    """
    names = bound_names("axis_index", axis_name)
    index: Any = None
    for name in names:
        here = vary(axis_index_p.bind(axis_name=name), typed_names((name,)))
        index = here if index is None else lax.add(lax.mul(index, _size_value(name)), here)
    return lax.full((), 0, np.int32) if index is None else index


def _size_value(name: Any) -> Any:
    size = size_of((name,))
    if isinstance(size, SymbolicDim):
        return lax.convert_element_type(size, np.int32)
    return host_converted(size, np.int32)


def axis_size(axis_name: AxisName) -> int:
    """The size of a named axis, or the product of the sizes of several.

    Args:
      axis_name: the name of a mapped axis (`axis_name=` of `vmap`, an axis of a mesh in
        `shard_map`), or a tuple of names.

    Raises:
      NameError: there is no such axis here.

    >>> import pyjx as jax
    >>> jax.vmap(lambda x: x / jax.lax.axis_size("i"), axis_name="i")(jax.numpy.ones(4)).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    return size_of(bound_names("axis_size", axis_name))


def pcast(x: Any, axis_name: AxisName, *, to: str) -> Any:
    """`x` with another type over the axes of a device mesh, whose types say what varies over them.

    Axes of vmap are none of these: an array is of one type there, whether it varies or not.

    Args:
      x: an array, or a tree of arrays.
      axis_name: the name of an axis of the mesh, or a tuple of names.
      to: the type: "varying", "reduced", "unreduced".

    Raises:
      ValueError: there is no such type, or there are axes but no mesh here.

    >>> import pyjx as jax
    >>> jax.lax.pcast(1.0, (), to="varying")
    1.0
    """
    if to not in ("varying", "reduced", "unreduced"):
        if to == "invarying":
            raise ValueError("pcast: Got unexpected `to` value 'invarying'. What varies is made "
                             "the same on all devices by psum, pmax or all_gather(..., "
                             "to='invarying')")
        raise ValueError("pcast: Got unexpected `to` value. Allowed `to` values are 'varying', "
                         f"'reduced' and 'unreduced', got {to!r}")
    if isinstance(axis_name, (set, frozenset)):
        raise TypeError(f"pcast: axis_name={axis_name} must be a tuple or a str. Got {axis_name}")
    names = () if axis_name is None else as_axes(axis_name)
    if not names:
        return x
    _check_distinct("pcast", names)
    mapped = [axis.name for axis in named_axes() if axis.varies is not None]
    for name in names:
        if not mapped:
            raise ValueError(f"pcast should be called under jax.shard_map: {name!r} is no axis of "
                             "a mesh here. Under vmap values need no cast.")
        if name not in mapped:
            raise NameError(f"Found an unbound axis name: {name}. pcast takes axes of a mesh that "
                            f"jax.shard_map maps over, which are {mapped} here.")
    typed = typed_names(names)
    axes = tuple([n for n in names if n in typed])

    def cast_leaf(leaf: Any) -> Any:
        leaf = operand("pcast", leaf)
        if not axes:
            return leaf
        old = _type_along(leaf, axes)
        if (old, to) not in _CASTS:
            raise ValueError(f"Unsupported pcast from={old}, to={to!r}. pcast: {leaf} is {old} "
                             f"along {axes} already." if old == to else
                             f"Unsupported pcast from={old}, to={to!r}. Got {leaf} and axes {axes}")
        return _CASTS[old, to].bind(leaf, axes=axes)

    return tree_map(cast_leaf, x)


_CASTS = {("invarying", "varying"): pvary_p, ("reduced", "varying"): reduced_vary_cast_p,
          ("invarying", "reduced"): preduced_p, ("varying", "unreduced"): vary_unreduced_cast_p}


def _type_along(x: Value, axes: Axes) -> str:
    """What the type of a value says of it along these axes.

    Raises:
      ValueError: not the same of all.
    """
    aval = get_aval(x)
    kinds = (("varying", aval.place.mat.varying), ("unreduced", aval.place.mat.unreduced),
             ("reduced", aval.place.mat.reduced))
    found = {next((kind for kind, named in kinds if axis in named), "invarying") for axis in axes}
    if len(found) > 1:
        raise ValueError(f"pcast: along the axes {axes} the operand {aval.str_short()} is "
                         f"{' and '.join(sorted(found))}. Cast it once for each.")
    return found.pop()
