"""Programs for each device, inside the program of all: Shardy's manual computations."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from lowering.builder import Block, in_avals
from lowering.module import call_closed, emit_jaxpr, write_in_place
from lowering.rules import rule
from lowering.shardings import axes_text, manual_sharding_text, sharding_text
from lowering.types import tensor_type, tensor_types
from pyjx.core import dtypes
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
    args = [b.name() for _ in operands]
    typed = ", ".join([f"{n}: {tensor_type(a)}" for n, a in zip(args, avals, strict=True)])
    b.opening(f"sdy.manual_computation({', '.join(operands)}) in_shardings="
              f"[{', '.join(shardings)}] out_shardings=[] manual_axes={axes_text(mesh, names)} "
              f"({typed}) {{")
    index = ShapedArray((), np.dtype(np.int32))
    with b.region(), manual_axes(b, mesh, names):
        places = [position_along(b, mesh, n, index) for n in mesh.axis_names if n in names]
        place = places[0]
        for other in places[1:]:
            place = b.binary("stablehlo.add", place, other, index)
        b.opening(f'"stablehlo.case"({place}) ({{')  # what is out of bounds takes the last branch
        with b.region():
            body(args)
            b.raw("stablehlo.return")
        b.opening("}, {")
        with b.region():
            b.raw("stablehlo.return")
        b.raw(f"}}) : ({tensor_type(index)}) -> ()")
        b.raw("sdy.return")
    b.raw(f"}} : ({tensor_types(avals)}) -> ()")


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
            ", ".join([manual_sharding_text(b.module.meshes, mesh, spec,
                                            getattr(aval, "ndim", 0), free)  # a token has none
                       for spec, aval in zip(params[key], avals, strict=True)])
            for key, avals in (("in_specs", in_avals(eqn)), ("out_specs", outs))]
        given = _still_open(b, operands, params["in_specs"], in_avals(eqn), mesh)
        head, results = _results(b, len(outs))
        args = [b.name() for _ in given]
        jaxpr = closed.jaxpr
        typed = ", ".join([f"{n}: {tensor_type(v.aval)}"
                           for n, v in zip(args, jaxpr.invars, strict=True)])
        b.opening(
            f"{head}sdy.manual_computation({', '.join(given)}) in_shardings=[{shardings[0]}] "
            f"out_shardings=[{shardings[1]}] manual_axes={axes_text(mesh, names)} ({typed}) {{")
        with b.isolated(args, jaxpr.in_avals):
            values = emit_jaxpr(b, jaxpr, dict(zip(jaxpr.invars, args, strict=True)))
            end = f" {', '.join(values)} : {tensor_types(jaxpr.out_avals)}" if values else ""
            b.raw(f"sdy.return{end}")
        b.raw(f"}} : ({tensor_types(in_avals(eqn))}) -> ({tensor_types(outs)})")
        return results


@rule("open_sum")
def _open_sum(b: Block, eqn: JaxprEqn, x: str) -> str:
    """A constraint; of complex numbers, which XLA cannot make parts of, one for each half."""
    sharding, aval = eqn.params["sharding"], eqn.outvars[0].aval
    if not b.module.spread:
        return x
    text = sharding_text(b.module.meshes, sharding, aval.ndim)

    def opened(part: str, of: ShapedArray) -> str:
        return b.line(f"sdy.sharding_constraint {part} {text} : {tensor_type(of)}")

    if not dtypes.issubdtype(aval.dtype, np.complexfloating):
        return opened(x, aval)
    real = aval.update(dtype=dtypes.to_floating_dtype(aval.dtype))
    kind, half = tensor_type(aval), tensor_type(real)
    whole = sharding_text(b.module.meshes, sharding.update(
        spec=sharding.spec.update(unreduced=frozenset(), unreduced_kind=None)), aval.ndim)
    halves = []
    for op in ("real", "imag"):
        part = b.line(f"stablehlo.{op} {x} : ({kind}) -> {half}")
        part = b.line(f"sdy.sharding_constraint {part} {whole} : {half}")
        halves.append(opened(part, real))
    head, results = _results(b, 1)
    args = [b.name() for _ in halves]
    b.opening(f"{head}sdy.manual_computation({', '.join(halves)}) in_shardings=[{text}, {text}] "
              f"out_shardings=[{text}] manual_axes="
              f"{axes_text(sharding.mesh, sharding.spec.unreduced)} "
              f"({args[0]}: {half}, {args[1]}: {half}) {{")
    with b.isolated(args, [real, real]):
        out = b.line(f"stablehlo.complex {', '.join(args)} : {kind}")
        b.raw(f"sdy.return {out} : {kind}")
    b.raw(f"}} : ({half}, {half}) -> ({kind})")
    return results[0]


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
