"""One of several programs."""

from __future__ import annotations

from collections.abc import Sequence

from lowering.builder import Block, out_aval
from lowering.module import write_in_place
from lowering.rules import rule
from lowering.types import tensor_type, tensor_types
from pyjx.core.jaxpr import JaxprEqn


def branch_of(platforms: Sequence[tuple[str, ...] | None], platform: str) -> int:
    """Which of the branches serves a platform, from those of each; None stands for all others.

    Raises:
      NotImplementedError: none does.
    """
    for i, own in enumerate(platforms):
        if own is None or platform in own:
            return i
    raise NotImplementedError(
        f"MLIR translation rule for primitive 'platform_index(platforms={tuple(platforms)})' not "
        f"found for platform {platform}: platform_dependent has no branch for it. Give it one, "
        "or a default.")


@rule("platform_index")
def _platform_index(b: Block, eqn: JaxprEqn) -> str:
    return b.constant(branch_of(eqn.params["platforms"], b.module.platform), out_aval(eqn))


@rule("cond")
def _cond(b: Block, eqn: JaxprEqn, index: str, *operands: str) -> list[str]:
    branches = eqn.params["branches"]
    platforms = eqn.params.get("branches_platforms")
    if platforms is not None:
        return write_in_place(b, branches[branch_of(platforms, b.module.platform)], operands)
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
