"""Gather and scatter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lowering.builder import Block, in_avals, out_aval
from lowering.module import emit_jaxpr
from lowering.reductions import reduce_to
from lowering.rules import rule
from lowering.shapes import reshape
from lowering.types import i64_array, int_list, tensor_type, tensor_types
from pyjx.core import dtypes
from pyjx.core.array_type import DTypeLike
from pyjx.core.avals import ShapedArray
from pyjx.core.jaxpr import JaxprEqn


def _wide_indices(b: Block, indices: str, aval: ShapedArray) -> tuple[str, ShapedArray]:
    """Indices of at least 32 bits: bounds may not fit narrower dtypes."""
    if dtypes.bit_width(aval.dtype) >= 32:
        return indices, aval
    wide = aval.update(dtype=np.int32)
    return b.convert(indices, aval, wide), wide


def _vector(b: Block, values: list[int], aval: ShapedArray) -> str:
    """One number for each component of an index vector, for all of an array of them."""
    limit = int(dtypes.iinfo(aval.dtype).max)
    values = [min(v, limit) for v in values]
    if len(set(values)) == 1:
        return b.constant(values[0], aval)
    vector = b.numbers(values, aval.dtype)
    return b.broadcast(vector, ShapedArray((len(values),), aval.dtype), aval, [aval.ndim - 1])


def _is_signed(dtype: DTypeLike) -> bool:
    return dtypes.issubdtype(dtype, np.signedinteger)


def _in_bounds(b: Block, indices: str, aval: ShapedArray, last: list[int]) -> str:
    """Which index vectors lie between 0 and `last`."""
    signed = _is_signed(aval.dtype)
    kind = "SIGNED" if signed else "UNSIGNED"
    flags = ShapedArray(aval.shape, np.bool_)
    inside = b.compare("LE", indices, _vector(b, last, aval), aval, kind)
    if signed:
        positive = b.compare("GE", indices, b.constant(0, aval), aval, kind)
        inside = b.binary("stablehlo.and", inside, positive, flags)
    if aval.shape[-1] == 1:
        return reshape(b, inside, flags, aval.shape[:-1])
    return reduce_to(b, "stablehlo.and", inside, flags, True, [aval.ndim - 1])


def _default_fill(dtype: DTypeLike) -> Any:
    if dtypes.issubdtype(dtype, np.inexact):
        return np.nan
    if dtype == np.bool_:
        return True
    return dtypes.iinfo(dtype).min if _is_signed(dtype) else dtypes.iinfo(dtype).max


def _fill_value(params: dict[str, Any], dtype: DTypeLike) -> Any:
    if params["mode"].name == "ONE_HOT":
        return 0
    value = params["fill_value"]
    return _default_fill(dtype) if value is None else np.asarray(value).astype(dtype)[()]


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _numbers(indices: ShapedArray, **axes: Sequence[int]) -> str:
    """The attribute for how axes belong together; what names none is left out."""
    return "".join([f"{name} = {int_list(values)}, " for name, values in axes.items() if values]
                   ) + f"index_vector_dim = {indices.ndim - 1}"


@rule("gather")
def _gather(b: Block, eqn: JaxprEqn, x: str, indices: str) -> str:
    params, out = eqn.params, out_aval(eqn)
    aval, indices_aval = in_avals(eqn)
    if not out.size:
        return b.constant(0, out)
    offset_dims, collapsed, index_map, batching, indices_batching = params["dimension_numbers"]
    indices, indices_aval = _wide_indices(b, indices, indices_aval)
    numbers = _numbers(
        indices_aval, offset_dims=offset_dims, collapsed_slice_dims=collapsed,
        operand_batching_dims=batching, start_indices_batching_dims=indices_batching,
        start_index_map=index_map)
    result = b.line(
        f'"stablehlo.gather"({x}, {indices}) <{{dimension_numbers = '
        f"#stablehlo.gather<{numbers}>, "
        f"indices_are_sorted = {_flag(params['indices_are_sorted'])}, "
        f"slice_sizes = {i64_array(params['slice_sizes'])}}}> : "
        f"({tensor_types((aval, indices_aval))}) -> {tensor_type(out)}")
    if params["mode"].name not in ("FILL_OR_DROP", "ONE_HOT") or not index_map:
        return result
    last = [aval.shape[a] - params["slice_sizes"][a] for a in index_map]
    inside = _in_bounds(b, indices, indices_aval, last)
    places = [i for i in range(out.ndim) if i not in offset_dims]
    flags = ShapedArray(indices_aval.shape[:-1], np.bool_)
    inside = b.broadcast(inside, flags, out.update(dtype=np.bool_), places)
    return b.select(inside, result, b.constant(_fill_value(params, out.dtype), out), out)


def _clipped(b: Block, indices: str, aval: ShapedArray, last: list[int]) -> str:
    low = b.constant(0, aval)
    return b.line(f"stablehlo.clamp {low}, {indices}, {_vector(b, last, aval)} : "
                  f"{tensor_type(aval)}")


@rule("scatter", "scatter-add", "scatter-sub", "scatter-mul", "scatter-min", "scatter-max")
def _scatter(b: Block, eqn: JaxprEqn, x: str, indices: str, updates: str) -> str:
    params = eqn.params
    aval, indices_aval, updates_aval = in_avals(eqn)
    if not updates_aval.size:
        return x
    window_dims, inserted, index_map, batching, indices_batching = params["dimension_numbers"]
    indices, indices_aval = _wide_indices(b, indices, indices_aval)
    if params["mode"].name == "CLIP" and index_map:
        sizes = iter([updates_aval.shape[a] for a in window_dims])
        window = [1 if i in inserted or i in batching else next(sizes) for i in range(aval.ndim)]
        indices = _clipped(b, indices, indices_aval, [aval.shape[a] - window[a] for a in index_map])
    numbers = _numbers(
        indices_aval, update_window_dims=window_dims, inserted_window_dims=inserted,
        input_batching_dims=batching, scatter_indices_batching_dims=indices_batching,
        scatter_dims_to_operand_dims=index_map)
    head = (
        f'"stablehlo.scatter"({x}, {indices}, {updates}) <{{'
        f"indices_are_sorted = {_flag(params['indices_are_sorted'])}, "
        f"scatter_dimension_numbers = #stablehlo.scatter<{numbers}>, "
        f"unique_indices = {_flag(params['unique_indices'])}}}>")
    tail = f": ({tensor_types((aval, indices_aval, updates_aval))}) -> {tensor_type(aval)}"
    scalar = ShapedArray((), aval.dtype)

    def combine(old: str, new: str) -> Any:
        jaxpr = params["update_jaxpr"]
        if jaxpr is None:
            return [new], [scalar]
        env = dict(zip(jaxpr.invars, (old, new), strict=True))
        for v, c in zip(jaxpr.constvars, params["update_consts"], strict=True):
            env[v] = b.constant(c, v.aval)
        return emit_jaxpr(b, jaxpr, env), [scalar]

    return b.with_region(head, [scalar, scalar], combine, tail, 1)[0]
