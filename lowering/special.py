"""Loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lowering.builder import Block, in_avals
from lowering.module import write_in_place
from lowering.rules import rule
from lowering.types import tensor_types
from pyjx.core.jaxpr import ClosedJaxpr, JaxprEqn


@rule("while")
def _while(b: Block, eqn: JaxprEqn, *operands: str) -> list[str]:
    n_cond, n_body = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
    n = n_cond + n_body
    return _loop(b, eqn.params["cond_jaxpr"], operands[:n_cond], eqn.params["body_jaxpr"],
                 operands[n_cond:n], operands[n:], in_avals(eqn)[n:])


def _loop(b: Block, cond: ClosedJaxpr, cond_consts: Sequence[str], body: ClosedJaxpr,
          body_consts: Sequence[str], init: Sequence[str], avals: Sequence[Any]) -> list[str]:
    """A while operation; the constants of its regions are values from outside."""
    if not init:
        return []
    count = len(init)
    result = b.name()
    state = [b.name() for _ in init]
    pairs = ", ".join([f"{s} = {x}" for s, x in zip(state, init, strict=True)])
    head = f"{result}:{count}" if count > 1 else result
    b.raw(f"{head} = stablehlo.while({pairs}) : {tensor_types(avals)} cond {{")
    _region(b, cond, [*cond_consts, *state])
    b.raw("} do {")
    _region(b, body, [*body_consts, *state])
    b.raw("}")
    return [f"{result}#{i}" for i in range(count)] if count > 1 else [result]


def _region(b: Block, closed: ClosedJaxpr, operands: Sequence[str]) -> None:
    with b.region():
        outs = write_in_place(b, closed, operands)
        b.raw(f"stablehlo.return {', '.join(outs)} : {tensor_types(closed.out_avals)}")
