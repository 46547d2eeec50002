"""Loops."""

from __future__ import annotations

from collections.abc import Sequence

from lowering.builder import Block, in_avals
from lowering.locations import Scope
from lowering.module import write_in_place
from lowering.rules import rule
from lowering.types import tensor_types
from pyjx.core.jaxpr import ClosedJaxpr, JaxprEqn


@rule("while")
def _while(b: Block, eqn: JaxprEqn, *operands: str) -> list[str]:
    params = eqn.params
    n_cond, n_body = params["cond_nconsts"], params["body_nconsts"]
    cond_consts, body_consts = operands[:n_cond], operands[n_cond:n_cond + n_body]
    init, avals = operands[n_cond + n_body:], in_avals(eqn)[n_cond + n_body:]
    if not init:
        return []
    count = len(init)
    result = b.name()
    state = [b.name() for _ in init]
    pairs = ", ".join([f"{s} = {x}" for s, x in zip(state, init, strict=True)])
    head = f"{result}:{count}" if count > 1 else result
    b.opening(f"{head} = stablehlo.while({pairs}) : {tensor_types(avals)} cond {{")
    _region(b, params["cond_jaxpr"], [*cond_consts, *state], b.scope.inside(eqn, "while/cond"))
    b.opening("} do {")
    _region(b, params["body_jaxpr"], [*body_consts, *state], b.scope.inside(eqn, "while/body"))
    b.raw("}")
    return [f"{result}#{i}" for i in range(count)] if count > 1 else [result]


def _region(b: Block, closed: ClosedJaxpr, operands: Sequence[str], scope: Scope) -> None:
    with b.region(scope=scope):
        outs = write_in_place(b, closed, operands)
        b.raw(f"stablehlo.return {', '.join(outs)} : {tensor_types(closed.out_avals)}")
