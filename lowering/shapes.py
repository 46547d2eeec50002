"""Arrangement of elements: reshaping, broadcasting, slicing, joining."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lowering.builder import OF_TWO_BITS, Block, in_avals, out_aval
from lowering.rules import rule
from lowering.types import int_list, tensor_type, tensor_types
from pyjx.core.avals import ShapedArray
from pyjx.core.integers import max_dim
from pyjx.core.jaxpr import JaxprEqn


def reshape(b: Block, x: str, aval: ShapedArray, shape: Sequence[int]) -> str:
    if aval.shape == tuple(shape):
        return x
    out = ShapedArray(shape, aval.dtype)
    return b.line(f"stablehlo.reshape {x} : ({tensor_type(aval)}) -> {tensor_type(out)}")


def transpose(b: Block, x: str, aval: ShapedArray, permutation: Sequence[int]) -> str:
    out = ShapedArray([aval.shape[i] for i in permutation], aval.dtype)
    return b.line(f"stablehlo.transpose {x}, dims = {int_list(permutation)} : "
                  f"({tensor_type(aval)}) -> {tensor_type(out)}")


def slice_(b: Block, x: str, aval: ShapedArray, starts: Sequence[int], limits: Sequence[int],
           strides: Sequence[int] | None = None) -> str:
    strides = strides or [1] * aval.ndim
    sizes = [(limit - start + step - 1) // step
             for start, limit, step in zip(starts, limits, strides, strict=True)]
    ranges = ", ".join([
        f"{start}:{limit}" if step == 1 else f"{start}:{limit}:{step}"
        for start, limit, step in zip(starts, limits, strides, strict=True)])
    out = ShapedArray(sizes, aval.dtype)
    return b.line(f"stablehlo.slice {x} [{ranges}] : ({tensor_type(aval)}) -> {tensor_type(out)}")


# How many parts one operation on a CPU has at most, and how many a group of more: XLA's time grows
# with the square of their number. Barriers keep it from making one operation of all groups again.
_MOST, _GROUP = 256, 64


def _apart(b: Block, xs: Sequence[str], avals: Sequence[Any]) -> list[str]:
    return b.multi(f"stablehlo.optimization_barrier {', '.join(xs)} : {tensor_types(avals)}",
                   len(xs))


def concatenate(b: Block, xs: Sequence[str], avals: Sequence[Any], out: Any, axis: int) -> str:
    if out.dtype in OF_TWO_BITS:
        xs, avals = b.in_bytes(xs, avals)
        joined = out.update(dtype=avals[0].dtype)
        return b.convert(concatenate(b, xs, avals, joined, axis), joined, out)
    if b.module.platform == "cpu" and len(xs) > _MOST:
        groups = range(0, len(xs), _GROUP)
        joined = [out.update(shape=(*out.shape[:axis], sum([a.shape[axis] for a in avals[
            i:i + _GROUP]]), *out.shape[axis + 1:])) for i in groups]
        xs = _apart(b, [concatenate(b, xs[i:i + _GROUP], avals[i:i + _GROUP], aval, axis)
                        for i, aval in zip(groups, joined, strict=True)], joined)
        return concatenate(b, xs, joined, out, axis)
    return b.line(f"stablehlo.concatenate {', '.join(xs)}, dim = {axis} : "
                  f"({tensor_types(avals)}) -> {tensor_type(out)}")


@rule("transpose")
def _transpose(b: Block, eqn: JaxprEqn, x: str) -> str:
    return transpose(b, x, eqn.invars[0].aval, eqn.params["permutation"])


@rule("broadcast_in_dim")
def _broadcast_in_dim(b: Block, eqn: JaxprEqn, x: str) -> str:
    aval, out = eqn.invars[0].aval, out_aval(eqn)
    return b.broadcast(x, aval, out, eqn.params["broadcast_dimensions"])


@rule("reshape")
def _reshape(b: Block, eqn: JaxprEqn, x: str) -> str:
    aval, order = eqn.invars[0].aval, eqn.params["dimensions"]
    if order is not None:
        x = transpose(b, x, aval, order)
        aval = aval.update(shape=[aval.shape[i] for i in order])
    return reshape(b, x, aval, eqn.params["new_sizes"])


@rule("squeeze")
def _squeeze(b: Block, eqn: JaxprEqn, x: str) -> str:
    return reshape(b, x, eqn.invars[0].aval, out_aval(eqn).shape)


@rule("rev")
def _rev(b: Block, eqn: JaxprEqn, x: str) -> str:
    dims = int_list(eqn.params["dimensions"])
    return b.line(f"stablehlo.reverse {x}, dims = {dims} : {tensor_type(out_aval(eqn))}")


@rule("concatenate")
def _concatenate(b: Block, eqn: JaxprEqn, *xs: str) -> str:
    return concatenate(b, xs, in_avals(eqn), out_aval(eqn), eqn.params["dimension"])


# Parts that are chosen between, and elements from which on the longer program pays.
_FEW, _MANY = 8, 4096
_CHOSEN = frozenset(map(np.dtype, ("float32", "float64", "int32", "int64", "uint32", "uint64")))


def _chosen_along_last(b: Block, xs: Sequence[str], aval: ShapedArray, out: ShapedArray) -> str:
    """Few parts along a new last axis, each where the index is its own.

    XLA's code for a concatenation on CPU takes a branch for each element; this has vectors.
    """
    dims = range(aval.ndim)
    places = out.update(dtype=np.dtype(np.int32))
    index = b.iota(places, aval.ndim)
    joined = b.broadcast(xs[-1], aval, out, dims)
    for i, x in reversed(list(enumerate(xs[:-1]))):
        own = b.compare("EQ", index, b.constant(i, places), places, "SIGNED")
        joined = b.select(own, b.broadcast(x, aval, out, dims), joined, out)
    return joined


@rule("stack")
def _stack(b: Block, eqn: JaxprEqn, *xs: str) -> str:
    axis, aval, out = eqn.params["axis"], eqn.invars[0].aval, out_aval(eqn)
    if (b.module.platform == "cpu" and axis == aval.ndim and 1 < len(xs) <= _FEW
            and aval.dtype in _CHOSEN and all([type(d) is int for d in aval.shape])
            and out.size > _MANY):
        return _chosen_along_last(b, xs, aval, out)
    part = aval.update(shape=(*aval.shape[:axis], 1, *aval.shape[axis:]))
    dims = [i for i in range(part.ndim) if i != axis]
    parts = [b.broadcast(x, aval, part, dims) for x in xs]
    return concatenate(b, parts, [part] * len(parts), out, axis)


def _parts(b: Block, x: str, aval: ShapedArray, axis: int, sizes: Sequence[int]) -> list[str]:
    if b.module.platform == "cpu" and len(sizes) > _MOST:
        groups = [sizes[i:i + _GROUP] for i in range(0, len(sizes), _GROUP)]
        avals = [aval.update(shape=(*aval.shape[:axis], sum(group), *aval.shape[axis + 1:]))
                 for group in groups]
        runs = _apart(b, _parts(b, x, aval, axis, list(map(sum, groups))), avals)
        return [part for run, a, group in zip(runs, avals, groups, strict=True)
                for part in _parts(b, run, a, axis, group)]
    starts, limits = [0] * aval.ndim, list(aval.shape)
    parts, end = [], 0
    for size in sizes:
        starts[axis], limits[axis] = end, end + size
        parts.append(slice_(b, x, aval, starts, limits))
        end += size
    return parts


@rule("unstack")
def _unstack(b: Block, eqn: JaxprEqn, x: str) -> list[str]:
    axis, aval = eqn.params["axis"], eqn.invars[0].aval
    part = aval.update(shape=(*aval.shape[:axis], 1, *aval.shape[axis + 1:]))
    shape = aval.shape[:axis] + aval.shape[axis + 1:]
    return [reshape(b, p, part, shape) for p in _parts(b, x, aval, axis, [1] * aval.shape[axis])]


@rule("split")
def _split(b: Block, eqn: JaxprEqn, x: str) -> list[str]:
    return _parts(b, x, eqn.invars[0].aval, eqn.params["axis"], eqn.params["sizes"])


@rule("tile")
def _tile(b: Block, eqn: JaxprEqn, x: str) -> str:
    aval, reps = eqn.invars[0].aval, eqn.params["reps"]
    apart = [n for pair in zip(reps, aval.shape, strict=True) for n in pair]
    spread = aval.update(shape=apart)
    x = b.broadcast(x, aval, spread, range(1, 2 * aval.ndim, 2))
    return reshape(b, x, spread, out_aval(eqn).shape)


# Elements of the last axis that are at least so far apart are written one by one on CPU.
FAR_APART = 8


@rule("pad")
def _pad(b: Block, eqn: JaxprEqn, x: str, value: str) -> str:
    config, aval = eqn.params["padding_config"], eqn.invars[0].aval
    if b.module.partitions == 1:
        if b.module.platform == "cpu" and _far_apart(config, aval.shape):
            return _written(b, x, aval, value, config[-1], out_aval(eqn))
        return pad(b, x, aval, value, config)[0]
    # XLA's partitioner aborts the process at a pad of negative widths.
    x, wide = pad(b, x, aval, value, [(max(m, 0), max(n, 0), i) for m, n, i in config])
    starts = [max(-low, 0) for low, _, _ in config]
    limits = [s + n for s, n in zip(starts, out_aval(eqn).shape, strict=True)]
    return slice_(b, x, wide, starts, limits) if wide.shape != out_aval(eqn).shape else x


def pad(b: Block, x: str, aval: ShapedArray, value: str,
        config: Sequence[tuple[int, int, int]]) -> tuple[str, ShapedArray]:
    """`stablehlo.pad` with (low, high, interior) for each axis, left out if it does nothing."""
    if all(c == (0, 0, 0) for c in config):
        return x, aval
    scalar = ShapedArray((), aval.dtype)
    if aval.dtype in OF_TWO_BITS:
        (x, value), (wide, _) = b.in_bytes([x, value], [aval, scalar])
        x, out = pad(b, x, wide, value, config)
        return b.convert(x, out, out.update(dtype=aval.dtype)), out.update(dtype=aval.dtype)
    low, high, interior = (int_list([c[i] for c in config]) for i in range(3))
    out = ShapedArray([n + m + k + max_dim(n - 1, 0) * i
                       for n, (m, k, i) in zip(aval.shape, config, strict=True)], aval.dtype)
    return b.line(
        f"stablehlo.pad {x}, {value}, low = {low}, high = {high}, interior = {interior} : "
        f"({tensor_types((aval, scalar))}) -> {tensor_type(out)}"), out


def _far_apart(config: Sequence[tuple[Any, Any, int]], shape: tuple[int, ...]) -> bool:
    """Whether a pad does nothing but to spread the elements of the last axis far."""
    if not config or any([c != (0, 0, 0) for c in config[:-1]]):
        return False
    n, (low, high, inside) = shape[-1], config[-1]
    return all([type(size) is int for size in (n, low, high, inside)]) \
        and inside + 1 >= FAR_APART and n > 1 and min(low, high) >= 0 \
        and low + n * (inside + 1) < 2**31


def _written(b: Block, x: str, aval: ShapedArray, value: str, last: tuple[int, int, int],
             out: ShapedArray) -> str:
    """A pad as writes into an array of the value: XLA for CPU computes for each place of a pad
    which element is there, with a division."""
    low, _, inside = last
    axis = aval.ndim - 1
    at, scalar = ShapedArray(aval.shape[axis:], np.int32), ShapedArray((), aval.dtype)
    places = b.binary("stablehlo.multiply", b.iota(at, 0), b.constant(inside + 1, at), at)
    places = b.plus(places, low, at)
    head = (f'"stablehlo.scatter"({b.broadcast(value, scalar, out, ())}, {places}, {x}) <{{'
            "indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<"
            f"update_window_dims = {int_list(range(axis))}, inserted_window_dims = [{axis}], "
            f"scatter_dims_to_operand_dims = [{axis}], index_vector_dim = 1>, "
            "unique_indices = true}>")
    return b.with_region(head, [scalar, scalar], lambda old, new: ([new], [scalar]),
                         f": ({tensor_types((out, at, aval))}) -> {tensor_type(out)}", 1)[0]


@rule("bitcast_convert_type")
def _bitcast_convert_type(b: Block, eqn: JaxprEqn, x: str) -> str:
    aval, out = eqn.invars[0].aval, out_aval(eqn)
    if aval.dtype == out.dtype:
        return x
    return b.line(f"stablehlo.bitcast_convert {x} : ({tensor_type(aval)}) -> {tensor_type(out)}")


@rule("iota")
def _iota(b: Block, eqn: JaxprEqn) -> str:
    return b.iota(out_aval(eqn), eqn.params["dimension"])


@rule("slice")
def _slice(b: Block, eqn: JaxprEqn, x: str) -> str:
    params = eqn.params
    return slice_(b, x, eqn.invars[0].aval, params["start_indices"], params["limit_indices"],
                  params["strides"])


@rule("dynamic_slice")
def _dynamic_slice(b: Block, eqn: JaxprEqn, x: str, *starts: str) -> str:
    if not starts:
        return x
    return b.line(
        f"stablehlo.dynamic_slice {', '.join((x, *starts))}, "
        f"sizes = {int_list(eqn.params['slice_sizes'])} : ({tensor_types(in_avals(eqn))}) -> "
        f"{tensor_type(out_aval(eqn))}")


@rule("dynamic_update_slice")
def _dynamic_update_slice(b: Block, eqn: JaxprEqn, x: str, update: str, *starts: str) -> str:
    if not starts:
        return update
    return b.line(
        f"stablehlo.dynamic_update_slice {', '.join((x, update, *starts))} : "
        f"({tensor_types(in_avals(eqn))}) -> {tensor_type(out_aval(eqn))}")


@rule("dim_as_value")
def _dim_as_value(b: Block, eqn: JaxprEqn) -> str:
    return b.constant(eqn.params["dim"], eqn.outvars[0].aval)
