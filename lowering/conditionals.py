"""One of several programs."""

from __future__ import annotations

from lowering.builder import Block
from lowering.module import write_in_place
from lowering.rules import rule
from lowering.types import tensor_type, tensor_types
from pyjx.core.jaxpr import JaxprEqn


@rule("cond")
def _cond(b: Block, eqn: JaxprEqn, index: str, *operands: str) -> list[str]:
    branches = eqn.params["branches"]
    count = len(eqn.outvars)
    out_types = tensor_types([v.aval for v in eqn.outvars])
    result = b.name()
    head = f"{result}:{count} = " if count > 1 else f"{result} = " if count else ""
    b.opening(f'{head}"stablehlo.case"({index}) ({{')
    for i, branch in enumerate(branches):
        if i:
            b.opening("}, {")
        with b.region(scope=b.scope.inside(eqn, f"cond/branch_{i}_fun")):
            outs = write_in_place(b, branch, operands)
            values = f" {', '.join(outs)} : {out_types}" if outs else ""
            b.raw(f"stablehlo.return{values}")
    b.raw(f"}}) : ({tensor_type(eqn.invars[0].aval)}) -> ({out_types})")
    return [f"{result}#{i}" for i in range(count)] if count > 1 else [result] * count
