"""Loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lowering.builder import Block, in_avals, rule
from lowering.module import constant_operand, emit_jaxpr
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
    b.raw(f"{head} = stablehlo.while({pairs}) : {tensor_types(avals)}")
    b.raw("cond {")
    _region(b, cond, [*cond_consts, *state])
    b.raw("} do {")
    _region(b, body, [*body_consts, *state])
    b.raw("}")
    return [f"{result}#{i}" for i in range(count)] if count > 1 else [result]


def _region(b: Block, closed: ClosedJaxpr, operands: Sequence[str]) -> None:
    jaxpr = closed.jaxpr
    with b.region():
        consts = [constant_operand(b, c, v.aval)
                  for c, v in zip(closed.consts, jaxpr.constvars, strict=True)]
        names = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *operands], strict=True))
        outs = emit_jaxpr(b, jaxpr, names)
        types = tensor_types([v.aval for v in jaxpr.outvars])
        b.raw(f"stablehlo.return {', '.join(outs)} : {types}")
