"""Collectives over axes of the mesh: inside a manual computation, among groups of devices.

Devices have the numbers of their places in the mesh, the last axis of which varies fastest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lowering.builder import Block, out_aval
from lowering.manual import position_along
from lowering.reductions import combined
from lowering.rules import rule
from lowering.types import tensor_type
from pyjx.core.avals import ShapedArray
from pyjx.core.jaxpr import JaxprEqn

_CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"


def _groups(b: Block, axes: Sequence[Any], index_groups: Any = None) -> Any:
    """The devices that take part in a collective over axes, a row a group, in their order there."""
    manual = b.module.manual
    missing = [a for a in axes if manual is None or a not in manual[1]]
    if missing:
        raise NameError(f"Found an unbound axis name: {missing[0]}. The axes {list(axes)} belong "
                        "to a function that has returned.")
    assert manual is not None
    names, sizes = manual[0].axis_names, manual[0].axis_sizes
    inside = [names.index(a) for a in axes]
    outside = [i for i in range(len(names)) if i not in inside]
    ids = np.arange(int(np.prod(sizes))).reshape(sizes).transpose(*outside, *inside)
    groups = ids.reshape(-1, int(np.prod([sizes[i] for i in inside])))
    if index_groups is None:
        return groups
    width = max(map(len, index_groups))
    rows = [[*row[list(g)], *[-1] * (width - len(g))] for row in groups for g in index_groups]
    return np.array(rows)


def _numbers(name: str, array: Any) -> str:
    shape = "x".join(map(str, array.shape))
    return f"{name} = dense<{array.tolist()}> : tensor<{shape}xi64>"


def _taking_part(groups: Any) -> str:
    return f"{_CHANNEL}, {_numbers('replica_groups', groups)}"


_REDUCERS = {"reduce_sum": "stablehlo.add", "reduce_max": "stablehlo.maximum",
             "reduce_min": "stablehlo.minimum"}


def _reducing(b: Block, head: str, reducer: str, x: ShapedArray, out: ShapedArray) -> str:
    """An operation with a region that reduces two elements to one."""
    op, scalar = _REDUCERS[reducer], ShapedArray((), x.dtype)
    return b.with_region(head, [scalar, scalar],
                         lambda left, right: ([combined(b, op, left, right, scalar)], [scalar]),
                         f": ({tensor_type(x)}) -> {tensor_type(out)}", 1)[0]


@rule("all_reduce")
def _all_reduce(b: Block, eqn: JaxprEqn, x: str) -> str:
    groups = _groups(b, eqn.params["axes"], eqn.params["axis_index_groups"])
    return _reduced(b, eqn, x, groups, eqn.params["reducer"])


@rule("unreduced_psum")
def _unreduced_psum(b: Block, eqn: JaxprEqn, x: str) -> str:
    return _reduced(b, eqn, x, _groups(b, eqn.params["axes"]), "reduce_sum")


def _reduced(b: Block, eqn: JaxprEqn, x: str, groups: Any, reducer: str) -> str:
    if groups.shape[1] == 1:
        return x
    head = f'"stablehlo.all_reduce"({x}) <{{{_taking_part(groups)}, use_global_device_ids}}>'
    return _reducing(b, head, reducer, eqn.invars[0].aval, out_aval(eqn))


@rule("preduced", "pvary", "reduced_vary_cast", "vary_unreduced_cast")
def _cast(b: Block, eqn: JaxprEqn, x: str) -> str:
    return x


@rule("axis_index")
def _axis_index(b: Block, eqn: JaxprEqn) -> str:
    name = eqn.params["axis_name"]
    _groups(b, (name,))
    assert b.module.manual is not None
    mesh, out = b.module.manual[0], out_aval(eqn)
    return b.constant(0, out) if mesh.shape[name] == 1 else position_along(b, mesh, name, out)


@rule("ppermute")
def _ppermute(b: Block, eqn: JaxprEqn, x: str) -> str:
    groups = _groups(b, eqn.params["axis_name"])
    aval = out_aval(eqn)
    pairs = np.array([(row[s], row[t]) for row in groups for s, t in eqn.params["perm"]],
                     int).reshape(-1, 2)
    if not len(pairs):
        return b.constant(0, aval)
    if groups.shape[1] == 1:
        return x
    return b.line(f'"stablehlo.collective_permute"({x}) <{{{_CHANNEL}, '
                  f"{_numbers('source_target_pairs', pairs)}}}> : ({tensor_type(aval)}) -> "
                  f"{tensor_type(aval)}")


def _reshape(b: Block, x: str, aval: ShapedArray, shape: Sequence[int]) -> tuple[str, ShapedArray]:
    out = ShapedArray(tuple(shape), aval.dtype)
    if out.shape == aval.shape:
        return x, out
    return b.line(f"stablehlo.reshape {x} : ({tensor_type(aval)}) -> {tensor_type(out)}"), out


def _moveaxis(b: Block, x: str, aval: ShapedArray, source: int, target: int
              ) -> tuple[str, ShapedArray]:
    order = [i for i in range(aval.ndim) if i != source]
    order.insert(target, source)
    out = ShapedArray(tuple([aval.shape[i] for i in order]), aval.dtype)
    if source == target:
        return x, out
    return b.line(f"stablehlo.transpose {x}, dims = [{', '.join(map(str, order))}] : "
                  f"({tensor_type(aval)}) -> {tensor_type(out)}"), out


@rule("all_gather")
def _all_gather(b: Block, eqn: JaxprEqn, x: str) -> str:
    params, aval, out = eqn.params, eqn.invars[0].aval, out_aval(eqn)
    at = params["all_gather_dimension"]
    groups = _groups(b, params["axis_name"], params["axis_index_groups"])
    if not params["tiled"]:
        x, aval = _reshape(b, x, aval, (*aval.shape[:at], 1, *aval.shape[at:]))
    if groups.shape[1] == 1:
        return x
    return b.line(
        f'"stablehlo.all_gather"({x}) <{{all_gather_dim = {at} : i64, {_taking_part(groups)}, '
        f"use_global_device_ids}}> : ({tensor_type(aval)}) -> {tensor_type(out)}")


@rule("reduce_scatter")
def _reduce_scatter(b: Block, eqn: JaxprEqn, x: str) -> str:
    params, aval, out = eqn.params, eqn.invars[0].aval, out_aval(eqn)
    at = params["scatter_dimension"]
    groups = _groups(b, params["axis_name"], params["axis_index_groups"])
    shape = list(aval.shape)
    shape[at] //= groups.shape[1]
    part = ShapedArray(tuple(shape), aval.dtype)
    if groups.shape[1] > 1:
        head = (f'"stablehlo.reduce_scatter"({x}) <{{{_taking_part(groups)}, scatter_dimension = '
                f"{at} : i64, use_global_device_ids}}>")
        x = _reducing(b, head, "reduce_sum", aval, part)
    return _reshape(b, x, part, out.shape)[0]


@rule("all_to_all")
def _all_to_all(b: Block, eqn: JaxprEqn, x: str) -> str:
    params, aval = eqn.params, eqn.invars[0].aval
    split, concat, tiled = params["split_axis"], params["concat_axis"], params["tiled"]
    groups = _groups(b, params["axis_name"], params["axis_index_groups"])
    n = groups.shape[1]
    if not tiled:  # the axis of targets in front becomes that of sources
        x, aval = _moveaxis(b, x, aval, split, 0)
        split = at = 0
    else:
        at = concat
    out = list(aval.shape)
    out[split] //= n
    out[at] *= n
    result = ShapedArray(tuple(out), aval.dtype)
    if n > 1:
        x = b.line(
            f'"stablehlo.all_to_all"({x}) <{{{_taking_part(groups)}, concat_dimension = {at} : '
            f"i64, split_count = {n} : i64, split_dimension = {split} : i64}}> : "
            f"({tensor_type(aval)}) -> {tensor_type(result)}")
    return x if tiled else _moveaxis(b, x, result, 0, concat)[0]
