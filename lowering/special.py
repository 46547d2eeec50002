"""Loops of special functions."""

from __future__ import annotations

from lowering.builder import Block, in_avals, rule
from lowering.module import emit_jaxpr
from lowering.types import tensor_types
from pyjx.core.jaxpr import ClosedJaxpr, JaxprEqn


@rule("iterate")
def _iterate(b: Block, eqn: JaxprEqn, *operands: str) -> list[str]:
    count = len(operands)
    result = b.name()
    state = [b.name() for _ in operands]
    pairs = ", ".join([f"{s} = {x}" for s, x in zip(state, operands, strict=True)])
    types = tensor_types(in_avals(eqn))
    b.raw(f"{result}:{count} = stablehlo.while({pairs}) : {types}")
    b.raw("cond {")
    _region(b, eqn.params["cond"], state)
    b.raw("} do {")
    _region(b, eqn.params["body"], state)
    b.raw("}")
    return [f"{result}#{i}" for i in range(count)]


def _region(b: Block, closed: ClosedJaxpr, state: list[str]) -> None:
    jaxpr = closed.jaxpr
    with b.region():
        outs = emit_jaxpr(b, jaxpr, dict(zip(jaxpr.invars, state, strict=True)))
        types = tensor_types([v.aval for v in jaxpr.outvars])
        b.raw(f"stablehlo.return {', '.join(outs)} : {types}")
