"""Collectives that move values along named axes: permutations, gathers, scatters, broadcasts.

    ppermute        y[t] = x[s] for each pair (s, t), else 0;  transposed, the pairs turned round
    pbroadcast      y[i] = x[source];       transposed, the sum at the source and 0 elsewhere
    all_gather      y[i] = stack(x);        transposed, reduce_scatter
    reduce_scatter  y[i] = sum(x)[i];       transposed, all_gather
    all_to_all      y[i][j] = x[j][i];      transposed, itself with its axes exchanged

A collective over several names is one over the positions on all of them, the first of which varies
slowest. On the axes of vmap it is made of collectives over each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core.arithmetic import TOGETHER
from pyjx.core.array_type import Array
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.effects import Effects, NamedAxisEffect
from pyjx.core.explicit import Entries, entries_of, whole_along
from pyjx.core.integers import as_axis, as_ints
from pyjx.core.named_axes import find_frame
from pyjx.core.primitive import Primitive, register, vary
from pyjx.core.specs import ManualAxisType
from pyjx.engine.axes import at_front, broadcast_axis, moveaxis, reduce_sum
from pyjx.engine.batching import BatchTrace
from pyjx.engine.types import AxisName, Dims, Operand, Params, Tangent, Value, Values
from pyjx.lax.collectives import (
    Axes,
    axis_index,
    bind_checked,
    bound_names,
    check_allowed,
    check_ungrouped,
    checked_groups,
    is_unreduced,
    raise_unmanual,
    size_of,
    sum_over,
    times,
    typed_names,
)
from pyjx.lax.common import accepted, operand
from pyjx.lax.shapes import axes_in_one, axis_in_two
from pyjx.tree_util import register_pytree_node_class, tree_map

Pairs = tuple[tuple[int, int], ...]


def _effects(params: Params) -> Effects:
    return frozenset(map(NamedAxisEffect, params["axis_name"]))


def _exchange(name: str, *, shape_rule: Callable[..., ShapedArray],
              own: Callable[..., tuple[Value, int | None]], by_axis: Callable[..., Value],
              transpose: Callable[..., Any],
              example: Callable[[Params], Params] = lambda params: params, **rules: Any
             ) -> Primitive:
    """A collective of one operand, linear in it, over the names that are its `axis_name`.

    Args:
      name: of the primitive.
      shape_rule: as for every primitive.
      own: `(x, dim, size, **params) -> (result, dim)`, on a batch over the only axis it names.
      by_axis: `(x, **params) -> result`, made of collectives over one name each.
      transpose: gives the cotangent.
      example: the parameters for a batch in front of what the given ones are for.
      rules: more rules.
    """

    def batch(operands: Values, dims: Dims, **params: Any) -> Any:
        (x,), (d,) = operands, dims
        assert d is not None
        return primitive.bind(moveaxis(x, d, 0), **example(params)), 0

    def batch_axis(trace: BatchTrace, operands: Values, dims: Dims, **params: Any) -> Any:
        names = params["axis_name"]
        if trace.axis.name not in names:
            return batch(operands, dims, **params)
        check_ungrouped(primitive, params.get("axis_index_groups"))
        (x,), (d,) = operands, dims
        if len(names) > 1:
            return trace.value_and_dim(by_axis(trace.join(x, d), **params))
        return own(x, d, trace.axis.size, **params)

    def typed_transpose(ct: Tangent, x: Operand, **params: Any) -> Any:
        open_sums = get_aval(ct).place.mat.unreduced
        return transpose(vary(ct, x.aval.place.mat.varying - open_sums), x, **params)

    primitive = register(Primitive(
        name, shape_rule=shape_rule, batch=batch, batch_axis=batch_axis, linear=TOGETHER,
        transpose=typed_transpose, effects=_effects, **rules))
    return primitive


def _sizes(names: Axes) -> list[int]:
    return [find_frame(name).axis.size for name in names]


def _over(function: str, axis_name: AxisName, axis_index_groups: Sequence[Sequence[int]] | None
         ) -> Params:
    """The parameters of a collective over names: how many positions take part, and which."""
    names = bound_names(function, axis_name)
    check_allowed({"psum_scatter": "reduce_scatter"}.get(function, function), names)
    groups = checked_groups(function, axis_index_groups, names)
    if groups is not None and len({len(group) for group in groups}) > 1:
        raise ValueError(f"{function}: axis_index_groups must all be of one size, got {groups}")
    return {"axis_name": names, "axis_index_groups": groups,
            "axis_size": size_of(names) if groups is None else len(groups[0])}


# -- permutations ----------------------------------------------------------------------------------


def _sources(perm: Pairs, size: int) -> Any:
    """For each position the one that it gets a value from, or `size` where there is none."""
    table = np.full(size, size, np.int32)
    for source, target in perm:
        table[target] = source
    return table


def _ppermute_own(x: Value, d: int | None, size: int, *, axis_name: Axes, perm: Pairs) -> Any:
    full = len(perm) == size
    if full and (d is None or size == 0):
        return x, d
    x = at_front(x, d, size)
    shape = get_aval(x).shape
    numbers = lax.GatherDimensionNumbers(
        offset_dims=tuple(range(1, len(shape))), collapsed_slice_dims=(0,), start_index_map=(0,))
    return lax.gather(
        x, _sources(perm, size)[:, None], numbers, (1, *shape[1:]), unique_indices=full,
        mode="promise_in_bounds" if full else "fill", fill_value=0,
    ), 0


def _ppermute_by_axis(x: Value, *, axis_name: Axes, perm: Pairs) -> Array:
    size = size_of(axis_name)
    source = lax.dynamic_index_in_dim(_sources(perm, size), axis_index(axis_name), keepdims=False)
    out = lax.dynamic_index_in_dim(all_gather(x, axis_name), source, keepdims=False)
    if len(perm) == size:
        return out
    return lax.select(lax.lt(source, np.int32(size)), out, lax.full_like(out, 0))


def _ppermute_transpose(ct: Tangent, x: Operand, *, axis_name: Axes, perm: Pairs) -> Any:
    return (ppermute_p.bind(ct, axis_name=axis_name, perm=tuple([(t, s) for s, t in perm])),)


ppermute_p: Primitive = _exchange(
    "ppermute", moves=True, shape_rule=lambda x, axis_name, perm: x, own=_ppermute_own,
    by_axis=_ppermute_by_axis, transpose=_ppermute_transpose)


def ppermute(x: Any, axis_name: AxisName, perm: Any) -> Any:
    """Values sent from position to position along a named axis.

    Args:
      x: a pytree of arrays.
      axis_name: the name of the axis, or a tuple of them.
      perm: a list of pairs (source, target). Each position is the source of one pair at most, and
        the target of one; those that are no target get zeros.

    Raises:
      NameError: there is no such axis here.
      TypeError: `perm` is no list of pairs of integers.
      ValueError: a position does not exist, or is the source or the target of two pairs.

    >>> import pyjx as jax
    >>> shift = lambda x: jax.lax.ppermute(x, "i", [(0, 1), (1, 2)])
    >>> jax.vmap(shift, axis_name="i")(jax.numpy.array([5, 6, 7])).tolist()
    [0, 5, 6]
    """
    names = bound_names("ppermute", axis_name)
    check_allowed("ppermute", names)
    if not isinstance(perm, (list, tuple)):
        raise TypeError("`perm` passed to `jax.lax.ppermute` must be a list or a tuple. Got perm "
                        f"of type {type(perm)}")
    pairs: Any = tuple([as_ints("ppermute", "each pair of perm", pair) for pair in perm])
    if any([len(pair) != 2 for pair in pairs]):
        raise TypeError(f"ppermute: perm must hold pairs (source, target), got {perm}")
    size = size_of(names)
    for which, at in (("sources", 0), ("targets", 1)):
        positions = [pair[at] for pair in pairs]
        if len(set(positions)) != len(positions):
            raise ValueError(f"ppermute: {which} must be unique, got perm {perm}")
        if any([not 0 <= i < size for i in positions]):
            raise ValueError(f"ppermute: {which} must be in [0, {size}), the positions on "
                             f"{names}, got perm {perm}")
    params, typed = {"axis_name": names, "perm": pairs}, typed_names(names)
    return tree_map(lambda leaf: bind_checked(ppermute_p, leaf, params, typed), x)


def pshuffle(x: Any, axis_name: AxisName, perm: Any) -> Any:
    """Values along a named axis in another order: position i gets the value at `perm[i]`.

    Args:
      x: an array, or a tree of arrays.
      axis_name: the name of a mapped axis.
      perm: a list of ints, a permutation of the positions.

    Raises:
      NameError: there is no such axis here.
      ValueError: `perm` is no permutation of the positions on the axis.

    >>> import pyjx as jax
    >>> turn = lambda x: jax.lax.pshuffle(x, "i", [2, 0, 1])
    >>> jax.vmap(turn, axis_name="i")(jax.numpy.array([5, 6, 7])).tolist()
    [7, 5, 6]
    """
    size = size_of(bound_names("pshuffle", axis_name))
    if set(perm) != set(range(size)) or len(perm) != size:
        raise ValueError(f"`perm` does not represent a permutation: {perm}. pshuffle takes one of "
                         f"the {size} positions on {axis_name!r}")
    return ppermute(x, axis_name, [(int(s), t) for t, s in enumerate(perm)])


# -- broadcasts ------------------------------------------------------------------------------------


def _pbroadcast_own(x: Value, d: int | None, size: int, *, axis_name: Axes, source: int) -> Any:
    return (x if d is None else lax.index_in_dim(x, source, d, keepdims=False)), None


def _pbroadcast_by_axis(x: Array, *, axis_name: Axes, source: int) -> Array:
    sources = np.unravel_index(source, _sizes(axis_name))
    for name, i in zip(axis_name, sources, strict=True):
        x = pbroadcast_p.bind(x, axis_name=(name,), source=int(i))
    return x


def _pbroadcast_transpose(ct: Value, x: Operand, *, axis_name: Axes, source: int) -> Any:
    total = sum_over(ct, axes=axis_name, axis_index_groups=None)
    here = lax.eq(axis_index(axis_name), np.int32(source))
    return (lax.select(here, total, lax.full_like(total, 0)),)


def _pbroadcast_on_devices(x: Value, *, axis_name: Axes, source: int) -> Array:
    raise_unmanual(pbroadcast_p, axis_name)
    return lax.index_in_dim(all_gather(x, axis_name), source, keepdims=False)


def _name_printed(*parameters: str) -> Callable[[Params], list[tuple[str, Any]]]:
    """The rule `printed` that shows one name as it is."""

    def printed(params: Params) -> list[tuple[str, Any]]:
        names = params["axis_name"]
        shown = {**params, "axis_name": names[0] if len(names) == 1 else names}
        return [(p, shown[p]) for p in parameters]

    return printed


pbroadcast_p: Primitive = _exchange(
    "pbroadcast", moves=True, shape_rule=lambda x, axis_name, source: x, own=_pbroadcast_own,
    by_axis=_pbroadcast_by_axis, transpose=_pbroadcast_transpose,
    decomposition=_pbroadcast_on_devices,
    printed=_name_printed("axis_name", "source"))


def pbroadcast(x: Any, axis_name: AxisName, source: Any) -> Any:
    """The value at one position of a named axis, at all of them.

    Args:
      x: a pytree of arrays.
      axis_name: the name of the axis, or a tuple of them.
      source: the position: an integer, or a scalar array, which is clamped to those there are.

    Raises:
      NameError: there is no such axis here.
      ValueError: there is no such position.

    >>> import pyjx as jax
    >>> jax.vmap(lambda x: jax.lax.pbroadcast(x, "i", 1), axis_name="i")(
    ...     jax.numpy.array([5, 6, 7])).tolist()
    [6, 6, 6]
    """
    names = bound_names("pbroadcast", axis_name)
    check_allowed("pbroadcast", names)
    if not isinstance(source, (int, np.integer)):
        return tree_map(lambda leaf: lax.dynamic_index_in_dim(
            all_gather(leaf, names), source, keepdims=False), x)
    size = size_of(names)
    at = int(source)
    if not 0 <= at < size:
        raise ValueError(f"pbroadcast: source must be in [0, {size}), the positions on {names}, "
                         f"got {source}")
    params, typed = {"axis_name": names, "source": at}, typed_names(names)
    return tree_map(lambda leaf: bind_checked(pbroadcast_p, leaf, params, typed), x)


# -- gathers ---------------------------------------------------------------------------------------


def _along_mesh(name: str, x: ShapedArray, taken: Sequence[int], given: Sequence[int],
                tiled: bool) -> Entries:
    """How results lie along Explicit axes: whole along what the positions have parts of, dimensions
    that are `taken` from the operand's and `given` to the result's, else as the operand."""
    for axis in {*taken, *given} if tiled else taken:
        whole_along(x, axis, f"{name} takes or puts parts along axis {axis}, which has to be "
                             f"whole; got {x.str_short(True)}")
    entries = list(entries_of(x))
    if not tiled:
        for axis in taken:
            del entries[axis]
        for axis in given:
            entries.insert(axis, None)
    return tuple(entries)


def _divisible(function: str, what: str, x: ShapedArray, axis: int, size: int, tiled: bool) -> None:
    """Raise ValueError unless the axis has a part for each of `size` positions."""
    n = x.shape[axis]
    if tiled and n % size:
        raise ValueError(f"{function}: the size of {what} ({n}) has to be divisible by the size of "
                         f"the named axis ({size}); the operand's shape is {x.shape}")
    if not tiled and n != size:
        fits = [i for i, other in enumerate(x.shape) if other == size]
        cures = [f". {what}={i} has that size" for i in fits[:1]]
        if n % size == 0:
            cures.append(". With tiled=True the latter need only be divisible by the former")
        raise ValueError(
            f"{function} requires the size of the mapped axis axis_name to equal x.shape[{what}], "
            f"but they are {size} and {n} respectively{''.join(cures)}; the operand's shape is "
            f"{x.shape}")


def _parts(function: str, takes: str | None, gives: str | None,
           check: Callable[[ShapedArray], None] = lambda x: None,
           place: Callable[[ManualAxisType, Axes], tuple[frozenset[Any], ...]] | None = None
           ) -> dict[str, Any]:
    """The rules of an exchange that takes parts of values along the axis that its parameter `takes`
    says, and puts those that come along the one that `gives` says.

    Args:
      function: its name.
      takes, gives: names of parameters.
      check: what is asked of an operand's type.
      place: along which axes of a mesh results vary and sums are open, where not as before.
    """
    def shape_rule(x: ShapedArray, *, axis_size: int, tiled: bool, **params: Any) -> ShapedArray:
        check(x)
        shape = list(x.shape)
        if takes is not None:
            _divisible(function, takes, x, params[takes], axis_size, tiled)
            if tiled:
                shape[params[takes]] //= axis_size
            else:
                del shape[params[takes]]
        if gives is not None:
            if tiled:
                shape[params[gives]] *= axis_size
            else:
                shape.insert(params[gives], axis_size)
        out = x.update(shape=tuple(shape))
        return out if place is None else out.varying(*place(x.place.mat, params["axis_name"]))

    def sharding_rule(out: ShapedArray, x: ShapedArray, *, tiled: bool, **params: Any) -> Entries:
        taken, given = [() if name is None else (params[name],) for name in (takes, gives)]
        return _along_mesh(function, x, taken, given, tiled)

    return {
        "shape_rule": shape_rule, "sharding_rule": sharding_rule,
        "example": lambda params: params | {
            name: params[name] + 1 for name in (takes, gives) if name is not None}}


def _all_gather_own(x: Value, d: int | None, size: int, *, all_gather_dimension: int, tiled: bool,
                    **_: Any) -> Any:
    x = (broadcast_axis(x, size, all_gather_dimension) if d is None
         else moveaxis(x, d, all_gather_dimension))
    return (axes_in_one(x, all_gather_dimension) if tiled else x), None


def _all_gather_by_axis(x: Array, *, all_gather_dimension: int, axis_name: Axes, tiled: bool,
                        **_: Any) -> Array:
    for i, name in enumerate(reversed(axis_name)):
        x = all_gather(x, name, axis=all_gather_dimension, tiled=tiled)
        if i and not tiled:
            x = axes_in_one(x, all_gather_dimension)
    return x


def _all_gather_transpose(ct: Tangent, x: Operand, *, all_gather_dimension: int, **params: Any
                          ) -> Any:
    return (reduce_scatter_p.bind(ct, scatter_dimension=all_gather_dimension, **params),)


all_gather_p: Primitive = _exchange(
    "all_gather", moves=True, own=_all_gather_own, by_axis=_all_gather_by_axis,
    transpose=_all_gather_transpose, **_parts("all_gather", None, "all_gather_dimension"))


def _all_gather_invariant_transpose(ct: Value, x: Operand, *, all_gather_dimension: int,
                                    axis_name: Axes, tiled: bool, **params: Any) -> Any:
    at = axis_index(axis_name)
    if not tiled:
        return (lax.dynamic_index_in_dim(ct, at, all_gather_dimension, keepdims=False),)
    size = x.aval.shape[all_gather_dimension]
    start = lax.mul(at, np.int32(size))
    return (lax.dynamic_slice_in_dim(ct, start, size, all_gather_dimension),)


# What all devices along the axes have got: it does not vary along them, and nor do cotangents.
all_gather_invariant_p: Primitive = _exchange(
    "all_gather_invariant", moves=True, own=_all_gather_own, by_axis=_all_gather_by_axis,
    transpose=_all_gather_invariant_transpose,
    decomposition=lambda x, **params: all_gather_p.bind(x, **params),
    **_parts("all_gather", None, "all_gather_dimension",
             place=lambda mat, axes: (mat.varying.difference(axes),)))


def _ungrouped(params: Params) -> list[tuple[str, Any]]:
    return [(k, v) for k, v in sorted(params.items()) if k != "axis_index_groups"]


def _all_gather_reduced_transpose(ct: Tangent, x: Operand, *, all_gather_dimension: int,
                                  **params: Any) -> Any:
    return (unreduced_reduce_scatter_p.bind(ct, scatter_dimension=all_gather_dimension, **params),)


# The same, whose cotangent each device has a part of the sum of.
all_gather_reduced_p: Primitive = _exchange(
    "all_gather_reduced", own=_all_gather_own, by_axis=_all_gather_by_axis,
    transpose=_all_gather_reduced_transpose, printed=_ungrouped,
    decomposition=lambda x, **params: all_gather_p.bind(x, **params),
    **_parts("all_gather", None, "all_gather_dimension", place=lambda mat, axes: (
        mat.varying.difference(axes), mat.unreduced, mat.reduced.union(axes))))


def all_gather(x: Any, axis_name: AxisName, *,
               axis_index_groups: Sequence[Sequence[int]] | None = None, axis: int = 0,
               tiled: bool = False, to: str = "varying") -> Any:
    """The values at all positions of a named axis, side by side, at all of them.

    Args:
      x: a pytree of arrays.
      axis_name: the name of the axis, or a tuple of them.
      axis_index_groups: a list of lists that part the positions on the axis: values are gathered
        within these. Not supported on the axes of vmap.
      axis: where the values stand in the result: a new axis or, if `tiled`, one of `x` along which
        they are concatenated.
      tiled: whether the values are concatenated rather than stacked.
      to: how the result is typed over the axes of a device mesh.

    Raises:
      NameError: there is no such named axis here.
      ValueError: `axis` is out of bounds, or there is no such `to`.

    >>> import pyjx as jax
    >>> jax.vmap(lambda x: jax.lax.all_gather(x, "i"), axis_name="i")(jax.numpy.arange(2)).tolist()
    [[0, 1], [0, 1]]
    """
    if to not in ("varying", "reduced", "invarying"):
        raise ValueError("all_gather: Got unexpected `to` value. Allowed `to` values are "
                         f"'varying', 'reduced' and 'invarying', got {to!r}")
    params = _over("all_gather", axis_name, axis_index_groups)
    typed = typed_names(params["axis_name"])
    primitive = {"varying": all_gather_p, "invarying": all_gather_invariant_p,
                 "reduced": all_gather_reduced_p}[to if typed else "varying"]

    def gathered(leaf: Any) -> Any:
        if not params["axis_name"]:
            return leaf
        ndim = get_aval(operand("all_gather", leaf)).ndim
        at = as_axis("all_gather", "axis", axis, ndim + (not tiled))
        return bind_checked(
            primitive, leaf, {"all_gather_dimension": at, "tiled": bool(tiled), **params}, typed)

    return tree_map(gathered, x)


# -- scatters --------------------------------------------------------------------------------------


def _reduce_scatter_own(x: Value, d: int | None, size: int, *, scatter_dimension: int, tiled: bool,
                        **_: Any) -> Any:
    x = times(x, size) if d is None else reduce_sum(x, (d,))
    return (axis_in_two(x, scatter_dimension, size) if tiled else x), scatter_dimension


def _reduce_scatter_by_axis(x: Array, *, scatter_dimension: int, axis_name: Axes, tiled: bool,
                            **_: Any) -> Array:
    for name in axis_name:
        x = psum_scatter(x, name, scatter_dimension=scatter_dimension, tiled=True)
    return x if tiled else lax.squeeze(x, (scatter_dimension,))


def _reduce_scatter_transpose(ct: Tangent, x: Operand, *, scatter_dimension: int, **params: Any
                              ) -> Any:
    return (all_gather_p.bind(ct, all_gather_dimension=scatter_dimension, **params),)


def _check_number(x: ShapedArray) -> None:
    accepted("psum_scatter", x, (np.number,), "subtypes of number")


reduce_scatter_p: Primitive = _exchange(
    "reduce_scatter", own=_reduce_scatter_own, by_axis=_reduce_scatter_by_axis,
    transpose=_reduce_scatter_transpose,
    **_parts("psum_scatter", "scatter_dimension", None, _check_number))


def _unreduced_reduce_scatter_transpose(ct: Tangent, x: Operand, *, scatter_dimension: int,
                                        **params: Any) -> Any:
    ct = vary(ct, frozenset(params["axis_name"]))
    return (all_gather_reduced_p.bind(ct, all_gather_dimension=scatter_dimension, **params),)


unreduced_reduce_scatter_p: Primitive = _exchange(
    "unreduced_reduce_scatter", own=_reduce_scatter_own, by_axis=_reduce_scatter_by_axis,
    transpose=_unreduced_reduce_scatter_transpose, printed=_ungrouped,
    decomposition=lambda x, **params: reduce_scatter_p.bind(x, **params),
    **_parts("psum_scatter", "scatter_dimension", None, _check_number, lambda mat, axes: (
        mat.varying.union(axes), mat.unreduced.difference(axes), mat.reduced)))


def psum_scatter(x: Any, axis_name: AxisName, *, scatter_dimension: int = 0,
                 axis_index_groups: Sequence[Sequence[int]] | None = None, tiled: bool = False
                ) -> Any:
    """The sum over a named axis, of which each position keeps its part.

    Args:
      x: a pytree of arrays.
      axis_name: the name of the axis, or a tuple of them.
      scatter_dimension: the axis of `x` that is parted. It is of the named axis' size and goes or,
        if `tiled`, of a multiple of it and stays, with as many elements as each position keeps.
      axis_index_groups: a list of lists that part the positions on the axis: the sums are within
        these. Not supported on the axes of vmap.
      tiled: whether positions keep slices rather than single elements.

    Raises:
      NameError: there is no such axis here.
      ValueError: `scatter_dimension` is out of bounds or of another size.

    >>> import pyjx as jax
    >>> x = jax.numpy.array([[1, 2], [30, 40]])
    >>> jax.vmap(lambda x: jax.lax.psum_scatter(x, "i"), axis_name="i")(x).tolist()
    [31, 42]
    """
    return _psum_scatter("psum_scatter", x, axis_name, scatter_dimension, axis_index_groups, tiled)


def _psum_scatter(name: str, x: Any, axis_name: AxisName, scatter_dimension: int,
                  axis_index_groups: Sequence[Sequence[int]] | None, tiled: bool) -> Any:
    params = _over(name, axis_name, axis_index_groups)

    def scattered(leaf: Any) -> Any:
        ndim = get_aval(operand(name, leaf)).ndim
        at = as_axis(name, "scatter_dimension", scatter_dimension, ndim)
        checked = {"scatter_dimension": at, "tiled": bool(tiled), **params}
        typed = typed_names(params["axis_name"])
        if is_unreduced("psum_scatter", leaf, typed):
            return bind_checked(unreduced_reduce_scatter_p, leaf, checked)
        return bind_checked(reduce_scatter_p, leaf, checked, typed)

    return tree_map(scattered, x)


@register_pytree_node_class
class Future:
    """The result of a collective that has been started: `done` gives it. A pytree of one array."""

    __slots__ = ("_result",)

    def __init__(self, result: Any) -> None:
        self._result = result

    def done(self) -> Any:
        """The result, awaited."""
        return self._result

    def tree_flatten(self) -> tuple[tuple[Any], None]:
        return (self._result,), None

    @classmethod
    def tree_unflatten(cls, aux: None, children: tuple[Any]) -> Future:
        return cls(*children)

    def __repr__(self) -> str:
        return f"Future({self._result!r})"


def psum_scatter_start(x: Any, axis_name: AxisName, *, scatter_dimension: int = 0,
                       axis_index_groups: Sequence[Sequence[int]] | None = None, tiled: bool = False
                      ) -> Any:
    """As `psum_scatter`, but with a `Future` for each array, whose method `done` gives the result.

    What is computed in between may run while the devices exchange their parts. Where the exchange
    begins and ends in the program that is compiled, XLA's scheduler says.

    Args:
      x: an array, or a tree of arrays.
      axis_name: the name of a mapped axis (`axis_name=` of `vmap`, an axis of a mesh in
        `shard_map`), or a tuple of names.
      scatter_dimension: the axis of each array that is cut: position i of the named axis gets part
        i of the sum.
      axis_index_groups: lists of positions on the axis, each position in one of them: values are
        combined within a group. None is one group.
      tiled: False if that axis has the size of the named one, and goes; True if its size is a
        multiple of that, and what is left of it stays.

    >>> import pyjx as jax
    >>> def f(x):
    ...     started = jax.lax.psum_scatter_start(x, "i")
    ...     return jax.numpy.cos(0 * x).sum() + started.done()
    ...
    >>> jax.vmap(f, axis_name="i")(jax.numpy.array([[1, 2], [30, 40]])).tolist()
    [33.0, 44.0]
    """
    return tree_map(Future, _psum_scatter("psum_scatter_start", x, axis_name, scatter_dimension,
                                          axis_index_groups, tiled))


# -- exchanges of all with all ---------------------------------------------------------------------


def _all_to_all_own(x: Value, d: int | None, size: int, *, split_axis: int, concat_axis: int,
                    tiled: bool, **_: Any) -> Any:
    x = at_front(x, d, size)  # the axis of sources, then the example's
    if tiled:
        x = axis_in_two(x, split_axis + 1, size)
    x = moveaxis(x, split_axis + 1, 0)  # the axis of targets, that of sources, the rest
    x = moveaxis(x, 1, concat_axis + 1)
    return (axes_in_one(x, concat_axis + 1) if tiled else x), 0


def _all_to_all_by_axis(x: Any, *, split_axis: int, concat_axis: int, axis_name: Axes,
                        axis_size: int, tiled: bool, **_: Any) -> Array:
    if tiled:
        x = axis_in_two(x, split_axis, axis_size)
    x = moveaxis(x, split_axis, 0)
    rest = get_aval(x).shape[1:]
    x = lax.reshape(x, (*_sizes(axis_name), *rest))
    for i, name in enumerate(axis_name):
        x = all_to_all(x, name, i, i)
    x = moveaxis(lax.reshape(x, (axis_size, *rest)), 0, concat_axis)
    return axes_in_one(x, concat_axis) if tiled else x


def _all_to_all_transpose(ct: Tangent, x: Operand, *, split_axis: int, concat_axis: int,
                          **params: Any) -> Any:
    return (all_to_all_p.bind(ct, split_axis=concat_axis, concat_axis=split_axis, **params),)


all_to_all_p: Primitive = _exchange(
    "all_to_all", moves=True, own=_all_to_all_own, by_axis=_all_to_all_by_axis,
    transpose=_all_to_all_transpose, **_parts("all_to_all", "split_axis", "concat_axis"),
    printed=_name_printed("axis_index_groups", "axis_name", "concat_axis", "split_axis", "tiled"))


def all_to_all(x: Any, axis_name: AxisName, split_axis: int, concat_axis: int, *,
               axis_index_groups: Sequence[Sequence[int]] | None = None, tiled: bool = False
              ) -> Any:
    """Each position sends each position a part of its value, and puts together what it gets.

    Args:
      x: a pytree of arrays.
      axis_name: the name of the axis, or a tuple of them.
      split_axis: the axis of `x` that is parted: of the size of the named axis or, if `tiled`, of a
        multiple of it.
      concat_axis: where the parts stand in the result: as an axis of that size or, if `tiled`,
        concatenated along one of the operand's axes.
      axis_index_groups: a list of lists that part the positions on the axis: the exchange is within
        these. Not supported on the axes of vmap.
      tiled: whether the parts are slices rather than single elements.

    Raises:
      NameError: there is no such named axis here.
      ValueError: an axis is out of bounds, or of another size.

    >>> import pyjx as jax
    >>> x = jax.numpy.array([[1, 2], [3, 4]])
    >>> jax.vmap(lambda x: jax.lax.all_to_all(x, "i", 0, 0), axis_name="i")(x).tolist()
    [[1, 3], [2, 4]]
    """
    params = _over("all_to_all", axis_name, axis_index_groups)

    def exchanged(leaf: Any) -> Any:
        ndim = get_aval(operand("all_to_all", leaf)).ndim
        return bind_checked(all_to_all_p, leaf, {
            "split_axis": as_axis("all_to_all", "split_axis", split_axis, ndim),
            "concat_axis": as_axis("all_to_all", "concat_axis", concat_axis, ndim),
            "tiled": bool(tiled), **params}, typed_names(params["axis_name"]))

    return tree_map(exchanged, x)


def pswapaxes(x: Any, axis_name: AxisName, axis: int, *,
              axis_index_groups: Sequence[Sequence[int]] | None = None) -> Any:
    """A named axis and a positional one of the same size, exchanged; arguments as for `all_to_all`.

    Args:
      x: an array, or a tree of arrays.
      axis_name: the name of a mapped axis.
      axis: the axis of each array, whose size is that of the named one.
      axis_index_groups: lists of positions on the axis, each position in one of them: values are
        combined within a group. None is one group.

    >>> import pyjx as jax
    >>> x = jax.numpy.array([[1, 2], [3, 4]])
    >>> jax.vmap(lambda x: jax.lax.pswapaxes(x, "i", 0), axis_name="i")(x).tolist()
    [[1, 3], [2, 4]]
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)
