"""Programs for each device, inside the program of all: Shardy's manual computations."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any

import numpy as np

from lowering.builder import Block, in_avals
from lowering.module import call_closed, emit_jaxpr, write_in_place
from lowering.rules import rule
from lowering.shardings import axes_text, manual_sharding_text, sharding_text
from lowering.types import tensor_type, tensor_types
from pyjx.core.avals import ShapedArray
from pyjx.core.jaxpr import JaxprEqn
from pyjx.core.specs import PartitionSpec


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
        sharding = manual_sharding_text(b.module.meshes, mesh, PartitionSpec(), 0, False)
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
    shardings = [manual_sharding_text(b.module.meshes, mesh, PartitionSpec(), a.ndim, False)
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
    head, results = _results(b, len(outs))
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
            return write_in_place(b, closed, operands)
        free = bool(free_axes(b))
        outs = [v.aval for v in eqn.outvars]
        shardings = [
            [manual_sharding_text(b.module.meshes, mesh, spec, getattr(aval, "ndim", 0), free)
             for spec, aval in zip(params[key], avals, strict=True)]  # a token has no rank
            for key, avals in (("in_specs", in_avals(eqn)), ("out_specs", outs))]
        given = _still_open(b, operands, params["in_specs"], in_avals(eqn), mesh)
        jaxpr = closed.jaxpr
        return _on_each(
            b, mesh, names, given, in_avals(eqn), outs, shardings,
            lambda args: emit_jaxpr(b, jaxpr, dict(zip(jaxpr.invars, args, strict=True))),
            jaxpr.in_avals, jaxpr.out_avals)


@rule("open_sum")
def _open_sum(b: Block, eqn: JaxprEqn, x: str) -> str:
    """A constraint, or the value on the first device along the axes of the sum and zeros on the
    others: before jaxlib 0.9 a constraint leaves it on each, and complex numbers have none."""
    sharding, aval = eqn.params["sharding"], eqn.outvars[0].aval
    if not b.module.spread:
        return x
    if eqn.params["told"]:
        text = sharding_text(b.module.meshes, sharding, aval.ndim)
        return b.line(f"sdy.sharding_constraint {x} {text} : {tensor_type(aval)}")
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
                   f"{manual_sharding_text(b.module.meshes, mesh, spec, a.ndim, False)} : "
                   f"{tensor_type(a)}")
            if spec.unreduced and b.is_argument(x) else x
            for x, spec, a in zip(operands, specs, avals, strict=True)]


@rule("custom_partitioning")
def _custom_partitioning(b: Block, eqn: JaxprEqn, *operands: str) -> Any:
    """The function itself on one device; else XLA asks the partitioner what each device does."""
    closed, rule_of = eqn.params["call"], eqn.params["rule"]
    axes = b.module.meshes.first_axes
    if b.module.partitions == 1 or b.module.manual is not None or axes is None:
        return call_closed(b, closed, "custom_partitioning", operands, scope=b.scope)
    b.module.custom_calls.add("custom_partitioning")
    ins, outs = in_avals(eqn), [v.aval for v in eqn.outvars]
    names = ",".join([f"{name}={size}" for name, size in axes])
    return b.custom_call(
        "CustomSPMDPartitioning", operands, ins, outs, api_version=2,
        config=f"{eqn.params['partitioner'].key};{b.module.platform};{names}",
        sharding_rule="" if rule_of is None else
        rule_of.text([a.shape for a in ins], [a.shape for a in outs]))


def _results(b: Block, count: int) -> tuple[str, Sequence[str]]:
    """The beginning of the line of an operation, and the names of its results."""
    if not count:
        return "", []
    name = b.name()
    if count == 1:
        return f"{name} = ", [name]
    return f"{name}:{count} = ", [f"{name}#{i}" for i in range(count)]
