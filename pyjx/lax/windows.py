"""Reductions over sliding windows, and the scatter that is their reverse."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from pyjx import lax, tree_util
from pyjx.core import dtypes
from pyjx.core.arithmetic import (
    FIRST,
    TOGETHER,
    Runs,
    combined,
    reduction,
    reduction_by_function,
    size,
)
from pyjx.core.array_type import Array
from pyjx.core.avals import ShapedArray, cotangent_aval, get_aval
from pyjx.core.explicit import Entries, entries_of, resized
from pyjx.core.integers import as_ints, max_dim
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.primitive import AS_PROGRAMS, Primitive, register
from pyjx.core.records import Record
from pyjx.core.scalars import greatest, least, scalar_constant
from pyjx.core.specs import reshard_first
from pyjx.engine.axes import all_at_front, at_front, batch_along
from pyjx.engine.batching import batch_flat
from pyjx.engine.forward import jvp_flat
from pyjx.engine.moves import constant_beside
from pyjx.engine.tangents import full_aval, is_undefined_primal
from pyjx.engine.types import Dims, Operand, Params, Rule, Tangent, Tangents, Value, Values
from pyjx.errors import ShardingTypeError
from pyjx.lax.common import operand as _operand
from pyjx.lax.convolution_shapes import named_pads, padding_pairs
from pyjx.lax.reductions import initial_scalar, known_value, pointwise, trace_reducer

_resized = resized("reduce_window")

Ints = tuple[int, ...]
Padding = tuple[tuple[int, int], ...]


# -- shapes ----------------------------------------------------------------------------------------


def dilated(n: int, dilation: int) -> int:
    """The size of an axis with `dilation - 1` holes between its elements."""
    return 0 if n == 0 else (n - 1) * dilation + 1


def reduce_window_shape_tuple(operand_shape: Sequence[int], window_dimensions: Sequence[int],
                              window_strides: Sequence[int], padding: Sequence[tuple[int, int]],
                              base_dilation: Sequence[int] | None = None,
                              window_dilation: Sequence[int] | None = None) -> tuple[int, ...]:
    """The number of windows along each axis.

    Args:
      operand_shape: the shape of what is reduced.
      window_dimensions: the sizes of the window, one for each axis.
      window_strides: how far it moves each time.
      padding: a pair (low, high) for each axis.
      base_dilation, window_dilation: the distances at which the elements of operand and window are
        set; None for 1.

    Raises:
      TypeError: one of the arguments has another rank than `operand_shape`, or is not positive.

    >>> import pyjx as jax
    >>> jax.lax.reduce_window_shape_tuple((4, 6), (2, 2), (2, 1), ((0, 0), (1, 0)))
    (2, 6)
    """
    name = "reduce_window_shape_tuple"
    shape = as_ints(name, "operand_shape", operand_shape)
    window = as_ints(name, "window_dimensions", window_dimensions)
    strides = as_ints(name, "window_strides", window_strides)
    base, holes = [
        None if dilation is None else as_ints(name, what, dilation)
        for what, dilation in (("base_dilation", base_dilation),
                               ("window_dilation", window_dilation))]
    pads = padding_pairs(name, "padding", padding)
    windows = Windows(window, strides, pads, base, holes)
    windows.check(name, shape)
    return windows.counts(shape)


class Windows(Record):
    """How windows lie over an operand: the parameters of operations on them."""

    window_dimensions: Ints
    window_strides: Ints
    padding: Padding
    base_dilation: Ints | None = None
    window_dilation: Ints | None = None

    def axes(self, shape: Ints) -> list[tuple[int, int, int, tuple[int, int], int, int]]:
        """For each axis of an operand its size, and all that holds of it."""
        ones = (1,) * len(shape)
        return list(zip(
            shape, self.window_dimensions, self.window_strides, self.padding,
            self.base_dilation or ones, self.window_dilation or ones, strict=True))

    def counts(self, shape: Ints) -> Ints:
        """How many windows there are along each axis of an operand."""
        return tuple([
            max_dim((dilated(n, base) + low + high - dilated(window, hole)) // stride + 1, 0)
            for n, window, stride, (low, high), base, hole in self.axes(shape)])

    def check(self, name: str, shape: Ints) -> None:
        """Raise TypeError unless they fit an operand of this shape."""
        window = self.window_dimensions
        if len(window) != len(shape):
            raise TypeError(f"{name} got the wrong number of window_dimensions for operand: got "
                            f"operand shape {shape} with window_dimensions {window}.")
        for what, values in zip(self._fields[1:], self[1:], strict=True):
            if values is not None and len(values) != len(shape):
                raise TypeError(f"{name} got inconsistent {what} and window_dimensions: got {what} "
                                f"{values} and window_dimensions {window}.")
        for what, sizes in zip(self._fields[:2], self[:2], strict=True):
            if any(n <= 0 for n in sizes):
                raise TypeError(
                    f"{name} {what} must have every element be strictly positive, got {sizes}.")
        for dilation in self[3:]:
            if dilation is not None and any(d <= 0 for d in dilation):
                raise TypeError(f"{name}: All dilations must be positive, got {dilation}.")


def _windows_shape(name: str) -> Callable[..., ShapedArray]:
    def shape_rule(x: ShapedArray, **params: Any) -> ShapedArray:
        windows = Windows(**params)
        windows.check(name, x.shape)
        return ShapedArray(windows.counts(x.shape), x.dtype, x.weak_type)

    return shape_rule


def _window_params(params: Params) -> dict[str, Any]:
    """The parameters of windows with a batch axis in front, along which windows are of size 1."""
    wide = dict(params)
    for key in ("window_dimensions", "window_strides", "base_dilation", "window_dilation"):
        if key in params:
            wide[key] = (1, *params[key])
    wide["padding"] = ((0, 0), *params["padding"])
    return wide


def _windows_batch(primitive: Primitive) -> Rule:
    return lambda operands, dims, **params: (
        primitive.bind(*all_at_front(operands, dims), **_window_params(params)), 0)


def _windows_sharding(out: Any, *operands: ShapedArray, **params: Any) -> Any:
    """Windows of arrays are cut as these are, all alike."""
    xs = [a for a in operands if a.ndim == len(params["window_dimensions"])]
    if len({entries_of(a) for a in xs}) > 1:
        raise ShardingTypeError("reduce_window operands must be cut alike, got "
                                f"{', '.join([a.str_short(True) for a in xs])}. "
                                f"{reshard_first('one of them')}")
    if isinstance(out, list):
        return [_resized(o, xs[0]) for o in out]
    return _resized(out, xs[0])


def _places_sharding(x: ShapedArray, source: ShapedArray) -> Entries:
    """What windows put into an array is cut as this is, or not at all."""
    if any([e not in (None, own) for e, own in zip(entries_of(source), entries_of(x), strict=True)
            ]):
        raise ShardingTypeError("select_and_scatter source must be cut as the operand is, got "
                                f"operand {x.str_short(True)} and source {source.str_short(True)}. "
                                f"{reshard_first()}")
    return entries_of(x)


# -- windows one element at a time -----------------------------------------------------------------


def _elements(x: Value, init: Value, **params: Any) -> list[Any]:
    """For each place in the window, the elements that stand there, an array with one a window."""
    aval = get_aval(x)
    windows = Windows(**params)
    axes, counts = windows.axes(aval.shape), windows.counts(aval.shape)
    strides = windows.window_strides
    if 0 in counts:
        return [lax.full(counts, 0, aval.dtype)] * int(np.prod(windows.window_dimensions))
    padded = lax.pad(x, init, [(low, high, base - 1) for _, _, _, (low, high), base, _ in axes])
    out = []
    for place in itertools.product(*map(range, windows.window_dimensions)):
        start = [i * axis[-1] for i, axis in zip(place, axes, strict=True)]
        limit = [i + (n - 1) * s + 1 for i, n, s in zip(start, counts, strides, strict=True)]
        out.append(lax.slice(padded, start, limit, strides))
    return out


# -- reduce_window_sum, reduce_window_max, reduce_window_min ---------------------------------------

def _reducing(name: str, **known: Any) -> Primitive:
    primitive = register(Primitive(
        name, compiled=AS_PROGRAMS, arithmetic=reduction, shape_rule=_windows_shape(name),
        sharding_rule=_windows_sharding, **known))
    primitive.define(batch=_windows_batch(primitive))
    return primitive


reduce_window_sum_p = _reducing("reduce_window_sum", linear=TOGETHER)
reduce_window_max_p = _reducing("reduce_window_max", keeps_nans=True)
reduce_window_min_p = _reducing("reduce_window_min", keeps_nans=True)


def _window_sum_transpose(ct: Value, x: Operand, *, window_dimensions: Ints, window_strides: Ints,
                          padding: Padding, base_dilation: Ints, window_dilation: Ints) -> Tangents:
    # An element is in those windows that start up to one window before it: the sum of their
    # cotangents is a sum over windows of the cotangents, which lie `window_strides` apart.
    shape, counts = x.aval.shape, get_aval(ct).shape
    if 0 in shape or 0 in counts:
        return (full_aval(cotangent_aval(x.aval), 0),)
    config = []
    for n, window, hole, stride, base, (low, _), windows in zip(
        shape, window_dimensions, window_dilation, window_strides, base_dilation, padding,
        counts, strict=True,
    ):
        reach = dilated(window, hole) - 1
        before = reach - low
        after = dilated(n, base) + low - dilated(windows, stride)
        config.append((before, after, stride - 1))
    spread = lax.pad(ct, scalar_constant(0, x.aval.dtype), config)
    ones = (1,) * len(shape)
    return (reduce_window_sum_p.bind(
        spread, window_dimensions=window_dimensions, window_strides=base_dilation,
        padding=((0, 0),) * len(shape), base_dilation=ones, window_dilation=window_dilation,
    ),)


reduce_window_sum_p.define(transpose=_window_sum_transpose)


def _choice_jvp(primitive: Primitive, select: str, identity: Callable[[Any], Any]) -> Rule:
    """The tangent of an extremum is that of the first element in the window that attains it."""

    def jvp(primals: Values, tangents: Values, **params: Any) -> tuple[Value, Any]:
        (x,), (g,) = primals, tangents
        out = primitive.bind(x, **params)
        prefer = getattr(lax, f"{select}_p")
        if all(d == 1 for d in (*params["base_dilation"], *params["window_dilation"])):
            return out, select_and_gather_add_p.bind(g, x, select_prim=prefer, **params)
        dtype = get_aval(x).dtype
        values = _elements(x, scalar_constant(identity(dtype), dtype), **params)
        best, tangent = values[0], None
        for value, t in zip(values, _elements(g, scalar_constant(0, dtype), **params),
                            strict=True):
            if tangent is None:
                tangent = t
                continue
            stays = prefer.bind(best, value)
            best, tangent = lax.select(stays, best, value), lax.select(stays, tangent, t)
        return out, tangent

    return jvp


reduce_window_max_p.define(jvp=_choice_jvp(reduce_window_max_p, "ge", least))
reduce_window_min_p.define(jvp=_choice_jvp(reduce_window_min_p, "le", greatest))


# -- select_and_gather_add, select_and_scatter_add -------------------------------------------------


def _gather_shape(tangents: ShapedArray, x: ShapedArray, *, select_prim: Primitive, **params: Any
                  ) -> ShapedArray:
    if tangents.shape != x.shape:
        raise TypeError("select_and_gather_add tangents and operand shapes must match, "
                        f"got {tangents.shape} and {x.shape}.")
    return _windows_shape("select_and_gather_add")(tangents, **params)


def _gather_transpose(ct: Tangent, tangents: Operand, x: Operand, *, base_dilation: Ints,
                      window_dilation: Ints, **params: Any) -> Sequence[Any]:
    assert is_undefined_primal(tangents)
    return select_and_scatter_add_p.bind(ct, x, **params), None


# For each window, the element of the first operand at the place where the second one is extreme.
select_and_gather_add_p = register(Primitive(
    "select_and_gather_add", arithmetic=reduction, shape_rule=_gather_shape,
    transpose=_gather_transpose, linear=FIRST, sharding_rule=_windows_sharding))


select_and_gather_add_p.define(batch=_windows_batch(select_and_gather_add_p))


def _scatter_shape(source: ShapedArray, x: ShapedArray, *, select_prim: Primitive | None,
                   **params: Any) -> ShapedArray:
    windows = Windows(**params)
    windows.check("select_and_scatter_add", x.shape)
    counts = windows.counts(x.shape)
    if source.shape != counts:
        raise TypeError("select_and_scatter_add source must have one element a window: expected "
                        f"shape {counts}, got {source.shape}.")
    return ShapedArray(x.shape, source.dtype)


def _scatter_transpose(ct: Tangent, source: Operand, x: Operand, **params: Any) -> Sequence[Any]:
    assert is_undefined_primal(source)
    ones = (1,) * len(params["window_dimensions"])
    return select_and_gather_add_p.bind(
        ct, x, **params, base_dilation=ones, window_dilation=ones), None


# Each element of the first operand is added where the second one is extreme in its window.
select_and_scatter_add_p = register(Primitive(
    "select_and_scatter_add",
    arithmetic=lambda eqn: (combined(size(eqn.invars[0]), eqn) + size(eqn.invars[0]), 0.0),
    shape_rule=_scatter_shape, transpose=_scatter_transpose,
    linear=FIRST, sharding_rule=lambda out, source, x, **_: _places_sharding(x, source)))
select_and_scatter_add_p.define(batch=_windows_batch(select_and_scatter_add_p))


# -- select_and_scatter: with any functions --------------------------------------------------------


def _select_and_scatter_shape(x: ShapedArray, source: ShapedArray, init: ShapedArray, *,
                              select_jaxpr: ClosedJaxpr, select_consts: tuple[Any, ...],
                              scatter_jaxpr: ClosedJaxpr, scatter_consts: tuple[Any, ...],
                              **params: Any) -> ShapedArray:
    _scatter_shape(source, x, select_prim=None, **params)
    if init.shape:
        raise TypeError(f"select_and_scatter init_value must be a scalar, got {init}.")
    return ShapedArray(x.shape, x.dtype, x.weak_type)


def _fold_places(x: Value, source: Value, init: Value, *, select_jaxpr: ClosedJaxpr,
                 scatter_jaxpr: ClosedJaxpr, window_dimensions: Ints, window_strides: Ints,
                 padding: Padding, **_: Any) -> Array:
    """`select_and_scatter` as one step for each place in the window: for derivatives."""
    shape, counts = get_aval(x).shape, get_aval(source).shape
    ones = (1,) * len(shape)
    params: dict[str, Any] = {
        "window_dimensions": window_dimensions, "window_strides": window_strides,
        "padding": padding, "base_dilation": ones, "window_dilation": ones}
    values = _elements(x, scalar_constant(0, get_aval(x).dtype), **params)
    inside = _elements(lax.full(shape, True), np.False_, **params)
    best, found, where = values[0], inside[0], lax.full(counts, 0, np.int32)
    for i, (value, valid) in enumerate(zip(values[1:], inside[1:], strict=True), 1):
        prefers, = pointwise(select_jaxpr, [best, value])
        stays = lax.bitwise_or(lax.bitwise_not(valid), lax.bitwise_and(found, prefers))
        best = lax.select(stays, best, value)
        where = lax.select(stays, where, lax.full(counts, i, np.int32))
        found = lax.bitwise_or(found, valid)
    sizes = [n + low + high for n, (low, high) in zip(shape, padding, strict=True)]
    out = constant_beside(lax.broadcast(init, sizes), get_aval(source))
    for i, place in enumerate(itertools.product(*map(range, window_dimensions))):
        config = [(p, m - p - dilated(n, s), s - 1)
                  for p, m, n, s in zip(place, sizes, counts, window_strides, strict=True)]
        here = lax.bitwise_and(found, lax.eq(where, lax.full(counts, i, np.int32)))
        spread = lax.pad(source, scalar_constant(0, get_aval(source).dtype), config)
        added, = pointwise(scatter_jaxpr, [out, spread])
        out = lax.select(lax.pad(here, np.False_, config), added, out)
    return lax.pad(out, init, [(-low, -high, 0) for low, high in padding])


def _select_and_scatter_jvp(primals: Values, tangents: Tangents, **params: Any
                            ) -> tuple[Value, Tangent]:
    (out,), (tangent,) = jvp_flat(lambda *args: [_fold_places(*args, **params)], primals, tangents)
    return out, tangent


def _select_and_scatter_batch(operands: Values, dims: Dims, **params: Any
                              ) -> tuple[Value, int | None]:
    x, source, init = operands
    along = batch_along(operands, dims)
    if dims[2] is not None:
        (out,), (dim,) = batch_flat(lambda *args: [_fold_places(*args, **params)], operands, dims,
                                    along)
        return out, dim
    return select_and_scatter_p.bind(
        at_front(x, dims[0], along), at_front(source, dims[1], along), init,
        **_window_params(params)), 0


# For each window, the place of the element that `select_jaxpr` prefers to all others; there
# `scatter_jaxpr` combines what is in the result, at first `init`, with the window's `source`.
select_and_scatter_p = register(Primitive(
    "select_and_scatter", shape_rule=_select_and_scatter_shape, jvp=_select_and_scatter_jvp,
    batch=_select_and_scatter_batch, asked=True,
    arithmetic=lambda eqn: [
        Runs(eqn.params["select_jaxpr"], combined(size(eqn.invars[1]), eqn)),
        Runs(eqn.params["scatter_jaxpr"], size(eqn.invars[1]))],
    sharding_rule=lambda out, x, source, init, **_: _places_sharding(x, source)))


# -- reduce_window: any monoid ---------------------------------------------------------------------


def _reduce_window_shape(*avals: ShapedArray, jaxpr: ClosedJaxpr, consts: tuple[Any, ...],
                         **params: Any) -> list[ShapedArray]:
    operands, inits = avals[:len(avals) // 2], avals[len(avals) // 2:]
    if any(a.shape for a in inits):
        raise TypeError("reduce_window expected init_values to be scalars but init_values have "
                        f"shapes {[a.shape for a in inits]}.")
    if any(a.shape != operands[0].shape for a in operands):
        raise TypeError("All input arrays to reduce_window must have the same shape, "
                        f"got {[a.shape for a in operands]}.")
    if [a.dtype for a in operands] != [a.dtype for a in inits]:
        raise TypeError("reduce_window got inconsistent dtypes for operands and init_values: got "
                        f"operand dtypes {[a.dtype for a in operands]} and init_value dtypes "
                        f"{[a.dtype for a in inits]}.")
    shape = _windows_shape("reduce_window")(operands[0], **params).shape
    return [ShapedArray(shape, a.dtype) for a in operands]


def _fold_elements(jaxpr: ClosedJaxpr, args: Values, **params: Any) -> list[Any]:
    """`reduce_window` as one step for each place in the window: for derivatives.

    As where XLA runs it, what is no element of the operand is left out.
    """
    n = len(args) // 2
    if not params["window_dimensions"]:
        return list(args[:n])
    columns = [_elements(x, v, **params) for x, v in zip(args[:n], args[n:], strict=True)]
    shape = get_aval(columns[0][0]).shape
    total = [constant_beside(lax.broadcast(v, shape), get_aval(x))
             for x, v in zip(args[:n], args[n:], strict=True)]
    known = _elements_known(get_aval(args[0]).shape, shape, **params)
    for row, given in zip(zip(*columns, strict=True), known, strict=True):
        after = pointwise(jaxpr, [*total, *row])
        total = after if given.all() else [
            lax.select(given, new, old) for new, old in zip(after, total, strict=True)]
    return total


def _elements_known(shape: Ints, counts: Ints, **params: Any) -> Iterator[np.ndarray]:
    """For each place in the window, in which windows an element of the operand stands there."""
    windows, at = Windows(**params), []
    for count, axis in zip(counts, windows.axes(shape), strict=True):
        size, width, stride, (low, _), base, hole = axis
        index = np.arange(width)[:, None] * hole + np.arange(count) * stride - low
        at.append((index >= 0) & (index % base == 0) & (index < size * base))
    for place in itertools.product(*map(range, windows.window_dimensions)):
        yield functools.reduce(np.logical_and.outer, [a[i] for a, i in zip(at, place, strict=True)])


def _reduce_window_jvp(primals: Values, tangents: Tangents, *, jaxpr: ClosedJaxpr,
                       consts: tuple[Any, ...], **params: Any) -> tuple[Values, Tangents]:
    return jvp_flat(lambda *args: _fold_elements(jaxpr, args, **params), primals, tangents)


def _reduce_window_batch(operands: Values, dims: Dims, *, jaxpr: ClosedJaxpr,
                         consts: tuple[Any, ...], **params: Any) -> tuple[Values, Dims]:
    n = len(operands) // 2
    if not params["window_dimensions"]:
        return operands[:n], dims[:n]
    along = batch_along(operands, dims)
    if any(d is not None for d in dims[n:]):
        return batch_flat(lambda *args: _fold_elements(jaxpr, args, **params), operands, dims,
                          along)
    xs = [at_front(x, d, along) for x, d in zip(operands[:n], dims[:n], strict=True)]
    outs = reduce_window_p.bind(*xs, *operands[n:], jaxpr=jaxpr, consts=consts,
                                **_window_params(params))
    return outs, [0] * n


reduce_window_p = register(Primitive(
    "reduce_window", compiled=AS_PROGRAMS, shape_rule=_reduce_window_shape,
    arithmetic=reduction_by_function, jvp=_reduce_window_jvp, batch=_reduce_window_batch,
    multiple_results=True, asked=True, sharding_rule=_windows_sharding))


def _window_monoid(computation: Callable[..., Any], operand: Value, init: Value
                   ) -> Primitive | None:
    """The primitive for a function and its identity, if there is one."""
    value = known_value(init)
    dtype = get_aval(operand).dtype
    if value is None or dtype == np.bool_:
        return None
    if computation is lax.add and value == 0:
        return reduce_window_sum_p
    if not dtypes.issubdtype(dtype, np.complexfloating):
        if computation is lax.max and value == least(dtype):
            return reduce_window_max_p
        if computation is lax.min and value == greatest(dtype):
            return reduce_window_min_p
    return None


def reduce_window(operand: Any, init_value: Any, computation: Callable[[Any, Any], Any],
                  window_dimensions: Sequence[int], window_strides: Sequence[int] | None = None,
                  padding: str | Sequence[tuple[int, int]] = "VALID",
                  base_dilation: Sequence[int] | None = None,
                  window_dilation: Sequence[int] | None = None) -> Any:
    """Combine the elements of each position of a sliding window with a function.

    Args:
      operand: an array, or a tree of arrays of one shape.
      init_value: a scalar for each, the identity of `computation`; also stands for the padding.
      computation: `(accumulated, element) -> accumulated`, on scalars or trees of them.
      window_dimensions: the size of the window along each axis.
      window_strides: the step of the window along each axis; 1 by default.
      padding: `'VALID'`, `'SAME'`, `'SAME_LOWER'` or a pair (low, high) for each axis.
      base_dilation: the distance at which the operand's elements are laid out; 1 by default.
      window_dilation: the distance between the elements of a window; 1 by default.

    Returns:
      The operand's tree, of arrays with one element for each position of the window.

    Raises:
      TypeError: one of the arguments does not fit the operand's rank, is not positive, or the
        dtypes of operands and initial values differ.
      ValueError: `operand` and `init_value` differ in structure.

    >>> import pyjx as jax
    >>> x = jax.numpy.array([3., 1., 2., 5.])
    >>> jax.lax.reduce_window(x, 0., jax.lax.add, (2,), (2,)).tolist()
    [4.0, 7.0]
    """
    flat, tree = tree_util.tree_flatten(operand)
    inits, init_tree = tree_util.tree_flatten(init_value)
    if tree != init_tree:
        raise ValueError("reduce_window: Operands must have the same tree structure as "
                         f"init_values: {tree} vs. {init_tree}")
    if not flat:
        raise ValueError("reduce_window must have at least one operand.")
    flat = [_operand("reduce_window", x, i) for i, x in enumerate(flat)]
    inits = [_operand("reduce_window (init_value)", x, i) for i, x in enumerate(inits)]
    avals = [get_aval(x) for x in flat]
    inits = [initial_scalar(v, a.dtype) for v, a in zip(inits, avals, strict=True)]
    params = _canonical_windows(avals[0], window_dimensions, window_strides, padding,
                                base_dilation, window_dilation)
    if len(flat) == 1 and get_aval(inits[0]).dtype == avals[0].dtype:
        primitive = _window_monoid(computation, flat[0], inits[0])
        if primitive is not None:
            return tree_util.tree_unflatten(tree, [primitive.bind(flat[0], **params)])
    jaxpr, out_tree = trace_reducer("reduce_window", computation, avals, tree)
    if out_tree != tree:
        raise ValueError("reduce_window output must have the same tree structure as the operands "
                         f"{tree} vs. {out_tree}")
    outs = reduce_window_p.bind(*flat, *inits, jaxpr=jaxpr, consts=(), **params)
    return tree_util.tree_unflatten(tree, outs)


def _canonical_windows(aval: ShapedArray, window_dimensions: Sequence[int],
                       window_strides: Sequence[int] | None, padding: Any,
                       base_dilation: Sequence[int] | None, window_dilation: Sequence[int] | None
                       ) -> dict[str, Any]:
    """The primitive's parameters, checked, with the defaults filled in."""
    window = as_ints("reduce_window", "window_dimensions", window_dimensions)
    ones = (1,) * len(window)
    strides, base, holes = [
        ones if values is None else as_ints("reduce_window", what, values)
        for what, values in (("window_strides", window_strides), ("base_dilation", base_dilation),
                             ("window_dilation", window_dilation))]
    pads = None if isinstance(padding, str) else padding_pairs("reduce_window", "padding", padding)
    Windows(window, strides, ((0, 0),) * len(window) if pads is None else pads, base, holes).check(
        "reduce_window", aval.shape)
    if pads is None:
        reach = [dilated(n, d) for n, d in zip(window, holes, strict=True)]
        pads = tuple(named_pads("reduce_window", aval.shape, reach, strides, padding))
    return Windows(window, strides, pads, base, holes)._asdict()
