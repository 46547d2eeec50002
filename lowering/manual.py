"""Programs for each device, inside the program of all: Shardy's manual computations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from lowering.builder import Block, in_avals
from lowering.module import call_closed, emit_jaxpr, write_in_place
from lowering.rules import rule
from lowering.shardings import axes_text, manual_sharding_text
from lowering.types import tensor_type, tensor_types
from pyjx.core.jaxpr import JaxprEqn


@contextmanager
def manual_axes(b: Block, mesh: Any, names: frozenset[Any]) -> Iterator[frozenset[Any]]:
    """A context in which lines are of the program of each device along these axes, and those that
    are manual already; gives all of them."""
    around = b.module.manual
    names = names if around is None else names | around[1]
    b.module.manual = mesh, names
    try:
        yield names
    finally:
        b.module.manual = around


@rule("shard_map")
def _shard_map(b: Block, eqn: JaxprEqn, *operands: str) -> Any:
    params = eqn.params
    mesh, names, closed = params["mesh"], params["newly_manual_axes"], params["jaxpr"]
    with manual_axes(b, mesh, names) as manual:
        if b.module.partitions == 1:
            if mesh.size > 1:
                raise NotImplementedError(
                    f"shard_map over {mesh} is lowered for one device, as programs of symbolic "
                    "shapes are. Give the shapes as numbers.")
            return write_in_place(b, closed, operands)
        free = manual != frozenset(mesh.axis_names)
        outs = [v.aval for v in eqn.outvars]
        shardings = [
            ", ".join([manual_sharding_text(b.module.meshes, mesh, spec, aval.ndim, free)
                       for spec, aval in zip(params[key], avals, strict=True)])
            for key, avals in (("in_specs", in_avals(eqn)), ("out_specs", outs))]
        head, results = _results(b, len(outs))
        args = [b.name() for _ in operands]
        jaxpr = closed.jaxpr
        typed = ", ".join([f"{n}: {tensor_type(v.aval)}"
                           for n, v in zip(args, jaxpr.invars, strict=True)])
        b.opening(
            f"{head}sdy.manual_computation({', '.join(operands)}) in_shardings=[{shardings[0]}] "
            f"out_shardings=[{shardings[1]}] manual_axes={axes_text(mesh, names)} ({typed}) {{")
        with b.region():
            values = emit_jaxpr(b, jaxpr, dict(zip(jaxpr.invars, args, strict=True)))
            end = f" {', '.join(values)} : {tensor_types(jaxpr.out_avals)}" if values else ""
            b.raw(f"sdy.return{end}")
        b.raw(f"}} : ({tensor_types(in_avals(eqn))}) -> ({tensor_types(outs)})")
        return results


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
