"""What padding does to operations on places: slices, joins, indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core.array_type import Array
from pyjx.core.avals import SymbolicDim, get_aval
from pyjx.core.dtypes import DType
from pyjx.core.evaluation import bind_eqn
from pyjx.core.jaxpr import JaxprEqn
from pyjx.dynamic.padded import SIZE, Dim, Padded, Padding, equal, rule
from pyjx.dynamic.whole_arrays import Results, shifted, take
from pyjx.engine.types import Value
from pyjx.lax.convolution_shapes import dilated
from pyjx.lax.indexing import GatherScatterMode, ScatterDimensionNumbers


def _is_dim(n: Any) -> bool:
    return isinstance(n, SymbolicDim)


def _arange(n: int) -> Any:
    return jnp.arange(n, dtype=SIZE)


# -- slices ----------------------------------------------------------------------------------------


@rule(lax.slice_p)
def _slice(p: Padding, eqn: JaxprEqn, x: Padded) -> Results:
    starts, strides = eqn.params["start_indices"], eqn.params["strides"]
    strides = strides or (1,) * len(starts)
    counts, val = p.rooms(eqn.outvars[0].aval.shape), x.val
    whole: list[Any] = [slice(None)] * len(starts)
    for d, (start, stride, count) in enumerate(zip(starts, strides, counts, strict=True)):
        stop = start + (count - 1) * stride + 1 if count else start
        if not _is_dim(start) and stop <= x.room[d]:
            whole[d] = slice(start, stop, stride)
    limits = [n if s.stop is None else s.stop for s, n in zip(whole, x.room, strict=True)]
    val = lax.slice(val, [s.start or 0 for s in whole], limits, [s.step or 1 for s in whole])
    for d, s in enumerate(whole):
        if s.stop is None:
            val = take(val, d, p.size(starts[d]) + strides[d] * _arange(counts[d]))
    return [(val, {d: v for d, v in x.fills.items()
                   if equal(starts[d], 0) and strides[d] == 1
                   and equal(eqn.params["limit_indices"][d], x.shape[d])})]


@rule(lax.split_p)
def _split(p: Padding, eqn: JaxprEqn, x: Padded) -> Results:
    axis, start, outs = eqn.params["axis"], 0, []
    for n in eqn.params["sizes"]:
        if not any(map(_is_dim, eqn.params["sizes"])):
            outs.append(lax.slice_in_dim(x.val, start, start + n, axis=axis))
        else:
            outs.append(take(x.val, axis, p.size(start) + _arange(p.room(n))))
        start = start + n
    return outs


def _starts(p: Padding, shape: Sequence[Any], sizes: Sequence[Any], starts: Sequence[Padded]
            ) -> list[Any]:
    """Where a window of these sizes begins: as near as it fits into the true sizes."""
    return [0 if equal(n, size) else jnp.clip(
        s.val, 0, jnp.asarray(p.size(n - size)).astype(get_aval(s.val).dtype))
        for n, size, s in zip(shape, sizes, starts, strict=True)]


@rule(lax.dynamic_slice_p)
def _dynamic_slice(p: Padding, eqn: JaxprEqn, x: Padded, *starts: Padded) -> Results:
    sizes, val = eqn.params["slice_sizes"], x.val
    places = _starts(p, x.shape, sizes, starts)
    moved = [d for d, n in enumerate(sizes) if _is_dim(n) and not equal(n, x.shape[d])]
    now = [0 if d in moved or type(s) is int else s for d, s in enumerate(places)]
    counts = [x.room[d] if d in moved or equal(n, x.shape[d]) else p.room(n)
              for d, n in enumerate(sizes)]
    val = lax.dynamic_slice(val, now, counts)
    for d in moved:
        val = take(val, d, places[d].astype(SIZE) + _arange(p.room(sizes[d])))
    return [val]


@rule(lax.dynamic_update_slice_p)
def _dynamic_update(p: Padding, eqn: JaxprEqn, x: Padded, update: Padded, *starts: Padded
                    ) -> Results:
    """Behind the true end of an update the array stays as it is."""
    places = _starts(p, x.shape, update.shape, starts)
    moved = [d for d in update.padded if not equal(update.shape[d], x.shape[d])]
    if not moved:
        return [lax.dynamic_update_slice(x.val, update.val, places)]
    val, inside = update.val, None
    for d, place in enumerate(places):
        index = _arange(x.room[d]) - jnp.asarray(place).astype(SIZE)
        if not equal(update.shape[d], x.shape[d]):
            val = take(val, d, index)
            here = lax.broadcast_in_dim((index >= 0) & (index < p.size(update.shape[d])),
                                        x.room, (d,))
            inside = here if inside is None else inside & here
    return [lax.select(inside, val, x.val)]


# -- joins -----------------------------------------------------------------------------------------


@rule(lax.concatenate_p)
def _concatenate(p: Padding, eqn: JaxprEqn, *xs: Padded) -> Results:
    """What stands behind a padded part is moved to its true place."""
    axis, out = eqn.params["dimension"], eqn.outvars[0].aval
    if not any([axis in x.padded for x in xs[:-1]]):
        return bind_eqn(eqn, [x.val for x in xs])
    index, start, val = _arange(p.room(out.shape[axis])), xs[0].shape[axis], None
    for x in xs:
        if val is None:
            val = take(x.val, axis, index)
            continue
        own = index - p.size(start)
        here = lax.broadcast_in_dim(own >= 0, get_aval(val).shape, (axis,))
        val = lax.select(here, take(x.val, axis, own), val)
        start = start + x.shape[axis]
    return [val]


@rule(lax.pad_p)
def _pad(p: Padding, eqn: JaxprEqn, x: Padded, value: Padded) -> Results:
    """The padding gets the number that is put around the array."""
    config, out = list(eqn.params["padding_config"]), p.rooms(eqn.outvars[0].aval.shape)
    grown = [d for d, c in enumerate(config) if not all([equal(n, 0) for n in c])]
    x = p.masked(x, grown, value.val)
    for d, (low, high, holes) in enumerate(config):
        if _is_dim(holes):
            p.refuse("the distance of its elements is symbolic")
        if _is_dim(low):
            x = shifted(p, x, d, low, holes + 1, value.val)
            config[d] = 0, out[d] - x.room[d], 0
        elif _is_dim(high) or d in x.padded:
            config[d] = low, out[d] - low - dilated(x.room[d], holes + 1), holes
    return [(lax.pad(x.val, value.val, config), {} if grown else x.fills)]


# -- gather and scatter ----------------------------------------------------------------------------


def _last(p: Padding, x: Padded, axes: Sequence[int], window: Sequence[Dim], dtype: DType) -> Any:
    """For each component of an index vector the last place where a window fits."""
    return jnp.asarray([p.size(x.shape[a] - window[a]) for a in axes], dtype)


@rule(lax.gather_p)
def _gather(p: Padding, eqn: JaxprEqn, x: Padded, indices: Padded) -> Results:
    params, window = dict(eqn.params), eqn.params["slice_sizes"]
    numbers, mode = params["dimension_numbers"], params["mode"]
    index, axes = indices.val, numbers.start_index_map
    if any([a in x.padded or _is_dim(window[a]) for a in axes]):
        index = _wide(index)
        last = _last(p, x, axes, window, get_aval(index).dtype)
        fits = (index >= 0) & (index <= last)
        if mode in (GatherScatterMode.CLIP, GatherScatterMode.PROMISE_IN_BOUNDS):
            index = jnp.clip(index, 0, last)  # as XLA does, and so without padding
        else:  # out of the padded array is out of the true one
            index = jnp.where(fits, index, jnp.asarray(max(x.room), get_aval(index).dtype))
    sizes, moved = list(p.rooms(window)), []
    left_out = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    for d in [d for d, n in enumerate(window) if _is_dim(n) and not equal(n, x.shape[d])]:
        axis = numbers.offset_dims[len([k for k in range(d) if k not in left_out])]
        index, _, axes = _an_index_each(d, sizes[d], _wide(index), numbers.start_index_map)
        left_out.add(d)
        numbers = numbers._replace(
            offset_dims=tuple([a + (a < axis) for a in numbers.offset_dims if a != axis]),
            collapsed_slice_dims=tuple(sorted((*numbers.collapsed_slice_dims, d))),
            start_index_map=axes, start_indices_batching_dims=tuple([
                a + 1 for a in numbers.start_indices_batching_dims]))
        sizes[d] = 1
        moved.append(axis)
    params.update(slice_sizes=tuple(sizes), dimension_numbers=numbers)
    out = bind_eqn(eqn.replace(params=params), [x.val, index])[0]
    for axis in reversed(moved):
        out = jnp.moveaxis(out, 0, axis)
    return [out]


def _wide(index: Array) -> Any:
    """Indices that any size fits."""
    return index if get_aval(index).dtype.itemsize >= SIZE.itemsize else index.astype(SIZE)


def _an_index_each(d: int, room: int, index: Value, axes: tuple[int, ...]
                   ) -> tuple[Any, Any, tuple[int, ...]]:
    """Indices, along a first axis, for each element that windows have along dimension d of an
    array; which element it is; and what dimensions the indices' components count along."""
    rank = get_aval(index).ndim
    offsets = _arange(room).astype(get_aval(index).dtype).reshape(-1, *[1] * rank)
    if d in axes:
        return index + offsets * np.asarray([a == d for a in axes]), offsets, axes
    shape = (room, *get_aval(index).shape)
    return jnp.concatenate([jnp.broadcast_to(index, shape), jnp.broadcast_to(
        offsets, (*shape[:-1], 1))], -1), offsets, (*axes, d)


@rule(lax.scatter_p, lax.scatter_add_p, lax.scatter_mul_p, lax.scatter_min_p, lax.scatter_max_p,
      lax.scatter_sub_p)
def _scatter(p: Padding, eqn: JaxprEqn, x: Padded, indices: Padded, updates: Padded) -> Results:
    """Updates of padded indices, and those beyond the true sizes, fall away."""
    params, numbers = dict(eqn.params), eqn.params["dimension_numbers"]
    window = _window(x, updates, numbers)
    axes, index = numbers.scatter_dims_to_operand_dims, indices.val
    dims = [d for d in indices.padded if d < len(indices.shape) - 1]
    parts = [d for d, n in enumerate(window) if _is_dim(n) and not equal(n, x.shape[d])]
    if not axes and not parts:
        if {*dims} - {*numbers.scatter_indices_batching_dims}:
            p.refuse("it writes the same elements several times")
        return bind_eqn(eqn, [x.val, index, updates.val])
    index = _wide(index)
    dtype = get_aval(index).dtype
    last = _last(p, x, axes, window, dtype)
    if params["mode"] is GatherScatterMode.CLIP:
        index = jnp.clip(index, 0, last)
    fits = jnp.all((index >= 0) & (index <= last), axis=-1, keepdims=True)
    if dims:  # by one more component, as a window without indices has none
        room = *get_aval(index).shape[:-1], 1
        fits &= p.inside(Padded(jnp.zeros(room, bool), indices.aval), dims)
    val = updates.val
    for d in parts:
        numbers, index, fits, val = _by_elements(p, d, window[d], numbers, index, fits, val)
    params.update(dimension_numbers=numbers, unique_indices=False, indices_are_sorted=False,
                  mode=GatherScatterMode.FILL_OR_DROP)
    index = jnp.where(fits, index, jnp.asarray(max(x.room), dtype))
    return bind_eqn(eqn.replace(params=params), [x.val, index, val])


def _window(x: Padded, updates: Padded, numbers: ScatterDimensionNumbers) -> list[Any]:
    sizes = iter([updates.shape[a] for a in numbers.update_window_dims])
    left_out = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    return [1 if d in left_out else next(sizes) for d in range(len(x.shape))]


def _by_elements(p: Padding, d: int, size: Dim, numbers: ScatterDimensionNumbers, index: Value,
                 fits: Value, val: Value) -> tuple[Any, Any, Any, Any]:
    """A scatter with an index for each element that a window has along dimension d of the array:
    those behind its true end fall away."""
    left_out = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    kept = [k for k in range(d) if k not in left_out]
    axis = numbers.update_window_dims[len(kept)]
    val = jnp.moveaxis(val, axis, 0)
    index, offsets, axes = _an_index_each(d, get_aval(val).shape[0], index,
                                          numbers.scatter_dims_to_operand_dims)
    windows = tuple([a + (a < axis) for a in numbers.update_window_dims if a != axis])
    numbers = numbers._replace(
        update_window_dims=windows, scatter_dims_to_operand_dims=axes,
        inserted_window_dims=tuple(sorted((*numbers.inserted_window_dims, d))),
        scatter_indices_batching_dims=tuple([
            a + 1 for a in numbers.scatter_indices_batching_dims]))
    return numbers, index, fits & (offsets < p.size(size)), val
