"""Programs for each device, inside the program of all: Shardy's manual computations, and the
collectives over axes of the mesh, inside one or among groups of devices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any

import numpy as np

from lowering.builder import Block, in_avals, out_aval
from lowering.module import call_closed, write_in_place
from lowering.reductions import IDENTITIES, combining
from lowering.rules import rule
from lowering.shapes import reshape, transpose
from lowering.shardings import axes_text, lying_as, sharding_text, spec_text
from lowering.types import results_of, tensor_type, tensor_types
from pyjx.core.avals import ShapedArray
from pyjx.core.jaxpr import JaxprEqn
from pyjx.core.specs import PartitionSpec

# -- collectives -----------------------------------------------------------------------------------

# Devices have the numbers of their places in the mesh, the last axis of which varies fastest.

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


def _reducing(b: Block, head: str, reducer: str, x: ShapedArray, out: ShapedArray) -> str:
    """A collective that reduces elements."""
    return combining(b, head, IDENTITIES[reducer][0], x.dtype,
                     f": ({tensor_type(x)}) -> {tensor_type(out)}")


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


def _moveaxis(b: Block, x: str, aval: ShapedArray, source: int, target: int
              ) -> tuple[str, ShapedArray]:
    order = [i for i in range(aval.ndim) if i != source]
    order.insert(target, source)
    out = ShapedArray(tuple([aval.shape[i] for i in order]), aval.dtype)
    return x if source == target else transpose(b, x, aval, order), out


@rule("all_gather")
def _all_gather(b: Block, eqn: JaxprEqn, x: str) -> str:
    params, aval, out = eqn.params, eqn.invars[0].aval, out_aval(eqn)
    at = params["all_gather_dimension"]
    groups = _groups(b, params["axis_name"], params["axis_index_groups"])
    if not params["tiled"]:
        wide = ShapedArray((*aval.shape[:at], 1, *aval.shape[at:]), aval.dtype)
        x, aval = reshape(b, x, aval, wide.shape), wide
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
    return reshape(b, x, part, out.shape)


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


# -- manual computations ---------------------------------------------------------------------------


@contextmanager
def manual_axes(b: Block, mesh: Any, names: frozenset[Any]) -> Iterator[None]:
    """A context in which lines are of the program of each device along these axes, and those that
    are manual already."""
    around = b.module.manual
    b.module.manual = mesh, names if around is None else names | around[1]
    try:
        yield
    finally:
        b.module.manual = around


def position_along(b: Block, mesh: Any, name: Any, out: ShapedArray) -> str:
    """Where a device stands along an axis, by its number, which is known only where all axes are
    manual."""
    others = free_axes(b)
    if others:
        sharding = spec_text(b.module.meshes, mesh, PartitionSpec(), 0)
        return _on_each(b, mesh, others, [], [], [out], [[], [sharding]],
                        lambda _: [position_along(b, mesh, name, out)])[0]
    i = mesh.axis_names.index(name)
    stride = math.prod(mesh.axis_sizes[i + 1:])
    number = ShapedArray((), np.dtype(np.uint32))
    x = b.line(f"stablehlo.partition_id : {tensor_type(number)}")
    if stride > 1:
        x = b.binary("stablehlo.divide", x, b.constant(stride, number), number)
    x = b.binary("stablehlo.remainder", x, b.constant(mesh.axis_sizes[i], number), number)
    return b.convert(x, number, out)


def free_axes(b: Block) -> frozenset[Any]:
    """The axes that are not manual where some are."""
    manual = b.module.manual
    return frozenset() if manual is None else frozenset(manual[0].axis_names) - manual[1]


def on_first_along(b: Block, names: frozenset[Any], operands: Sequence[str], avals: Sequence[Any],
                   body: Callable[[Sequence[str]], Any]) -> None:
    """Lines that only the first device along these axes, which are all that are not manual, goes
    through, with the whole values."""
    assert b.module.manual is not None
    mesh = b.module.manual[0]
    shardings = [spec_text(b.module.meshes, mesh, PartitionSpec(), a.ndim)
                 for a in avals]
    index = ShapedArray((), np.dtype(np.int32))

    def on_first(args: Sequence[str]) -> list[str]:
        place = _steps_from_first(b, mesh, names, index)
        b.opening(f'"stablehlo.case"({place}) ({{')  # what is out of bounds takes the last branch
        with b.region():
            body(args)
            b.raw("stablehlo.return")
        b.opening("}, {")
        with b.region():
            b.raw("stablehlo.return")
        b.raw(f"}}) : ({tensor_type(index)}) -> ()")
        return []

    _on_each(b, mesh, names, operands, avals, [], [shardings, []], on_first)


def _on_each(b: Block, mesh: Any, names: frozenset[Any], operands: Sequence[str],
             avals: Sequence[Any], outs: Sequence[Any], shardings: Sequence[Sequence[str]],
             body: Callable[[Sequence[str]], Sequence[str]],
             parts: Sequence[Any] = (), out_parts: Sequence[Any] = ()) -> Sequence[str]:
    """The results of what each device along these axes does with its parts: `body` takes and gives
    names of these, which are of the types `parts` and `out_parts`, if not of those of the whole."""
    parts, out_parts = parts or avals, out_parts or outs
    head, results = results_of(b.name, len(outs))
    args = [b.name() for _ in operands]
    typed = ", ".join([f"{n}: {tensor_type(a)}" for n, a in zip(args, parts, strict=True)])
    texts = [", ".join(s) for s in shardings]
    b.opening(f"{head}sdy.manual_computation({', '.join(operands)}) in_shardings=[{texts[0]}] "
              f"out_shardings=[{texts[1]}] manual_axes={axes_text(mesh, names)} ({typed}) {{")
    with b.isolated(args, parts), manual_axes(b, mesh, names):
        values = body(args)
        end = f" {', '.join(values)} : {tensor_types(out_parts)}" if values else ""
        b.raw(f"sdy.return{end}")
    b.raw(f"}} : ({tensor_types(avals)}) -> ({tensor_types(outs)})")
    return results


def _steps_from_first(b: Block, mesh: Any, names: frozenset[Any], index: ShapedArray) -> str:
    """The sum of a device's positions along these axes: 0 on the first one."""
    return reduce(lambda x, y: b.binary("stablehlo.add", x, y, index),
                  [position_along(b, mesh, n, index) for n in mesh.axis_names if n in names])


@rule("shard_map", "on_parts")
def _shard_map(b: Block, eqn: JaxprEqn, *operands: str) -> Any:
    params = eqn.params
    mesh, names, closed = params["mesh"], params["newly_manual_axes"], params["jaxpr"]
    with manual_axes(b, mesh, names):
        if b.module.partitions == 1:
            if mesh.size > 1:
                raise NotImplementedError(
                    f"shard_map over {mesh} is lowered for one device. Lower it for the mesh.")
            return write_in_place(b, closed, operands, eqn)
        free = bool(free_axes(b))  # along which Shardy may cut what goes in and out
        outs = [v.aval for v in eqn.outvars]
        shardings = [
            [spec_text(b.module.meshes, mesh, spec, ndim, range(ndim) if free else ())
             for spec, aval in zip(params[key], avals, strict=True)
             for ndim in (getattr(aval, "ndim", 0),)]  # a token has no rank
            for key, avals in (("in_specs", in_avals(eqn)), ("out_specs", outs))]
        given = _still_open(b, operands, params["in_specs"], in_avals(eqn), mesh)
        return _on_each(
            b, mesh, names, given, in_avals(eqn), outs, shardings,
            lambda args: write_in_place(b, closed, args, eqn), closed.jaxpr.in_avals,
            closed.out_avals)


@rule("open_sum")
def _open_sum(b: Block, eqn: JaxprEqn, x: str) -> str:
    """A constraint, or the value on the first device along the axes of the sum and zeros on the
    others: before jaxlib 0.9 a constraint leaves it on each, and complex numbers have none."""
    sharding, aval = eqn.params["sharding"], eqn.outvars[0].aval
    if not b.module.spread:
        return x
    if eqn.params["told"]:
        return lying_as(b, x, aval, sharding)
    mesh, names = sharding.mesh, sharding.spec.unreduced
    closed = sharding.spec.update(unreduced=frozenset(), unreduced_kind=None)
    texts = [[sharding_text(b.module.meshes, sharding.update(spec=spec), aval.ndim)]
             for spec in (closed, sharding.spec)]
    index, answer = [ShapedArray((), np.dtype(d)) for d in (np.int32, np.bool_)]

    def on_first(args: Sequence[str]) -> list[str]:
        steps = _steps_from_first(b, mesh, names, index)
        first = b.compare("EQ", steps, b.constant(0, index), index)
        return [b.line(f"stablehlo.select {first}, {args[0]}, {b.constant(0, aval)} : "
                       f"{tensor_type(answer)}, {tensor_type(aval)}")]

    return _on_each(b, mesh, names, [x], [aval], [aval], texts, on_first)[0]


def _still_open(b: Block, operands: Sequence[str], specs: Sequence[Any], avals: Sequence[Any],
                mesh: Any) -> list[str]:
    """The operands, with a constraint where arguments of the program come with open sums, which
    go on inside: Shardy wants an operation between them that says so."""
    return [b.line(f"sdy.sharding_constraint {x} "
                   f"{spec_text(b.module.meshes, mesh, spec, a.ndim)} : "
                   f"{tensor_type(a)}")
            if spec.unreduced and b.is_argument(x) else x
            for x, spec, a in zip(operands, specs, avals, strict=True)]


@rule("custom_partitioning")
def _custom_partitioning(b: Block, eqn: JaxprEqn, *operands: str) -> Any:
    """The function itself on one device; else XLA asks the partitioner what each device does."""
    closed, rule_of = eqn.params["call"], eqn.params["rule"]
    axes = b.module.meshes.first_axes
    if b.module.partitions == 1 or b.module.manual is not None or axes is None:
        return call_closed(b, closed, "custom_partitioning", operands,
                           scope=b.scope.inside(eqn, ""))
    b.module.custom_calls.add("custom_partitioning")
    ins, outs = in_avals(eqn), [v.aval for v in eqn.outvars]
    names = ",".join([f"{name}={size}" for name, size in axes])
    return b.custom_call(
        "CustomSPMDPartitioning", operands, ins, outs, api_version=2,
        config=f"{eqn.params['partitioner'].key};{b.module.platform};{names}",
        sharding_rule="" if rule_of is None else
        rule_of.text([a.shape for a in ins], [a.shape for a in outs]))
