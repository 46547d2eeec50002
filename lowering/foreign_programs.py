"""Calls of programs that are StableHLO already."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lowering.builder import Block, in_avals
from lowering.locations import Locations
from lowering.rules import rule
from lowering.types import tensor_type
from pyjx.core.jaxpr import JaxprEqn


class ForeignFunction:
    """A function of a module whose text comes from elsewhere."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def text(self, places: Locations | None = None) -> str:
        return self._text


def add_functions(b: Block, functions: Sequence[tuple[str, str]], name: str) -> str:
    """Add functions, given by their names and texts, to the module under names that are free there.
    The new name of the first is returned."""
    fresh = {own: b.module.fresh_name(f"{name}.{own}") for own, _ in functions}

    def renamed(match: re.Match[str]) -> str:
        return f"@{fresh.get(match[1], match[1])}"

    for _, text in functions:
        b.module.functions.append(ForeignFunction(  # type: ignore[arg-type]
            re.sub(r"@([A-Za-z_][\w.$-]*)", renamed, text)))
    return fresh[functions[0][0]]


@rule("call_exported")
def _call_exported(b: Block, eqn: JaxprEqn, *operands: str) -> list[str]:
    avals, outs = in_avals(eqn), [v.aval for v in eqn.outvars]
    program = eqn.params["program"].for_call(tuple(avals), b.module.platform)
    key = program, b.module.platform
    function = b.module.foreign.get(key)
    if function is None:
        function = b.module.foreign[key] = add_functions(b, program.functions, program.name)
        b.module.custom_calls.update(program.custom_calls)
    given = [b.line(f"stablehlo.convert {x} : ({tensor_type(a)}) -> {t}")
             if t != tensor_type(a) else x
             for x, a, t in zip(operands, avals, program.in_types, strict=True)]
    kept = [given[i] for i in program.kept]
    types = [program.in_types[i] for i in program.kept]
    results = b.multi(f"func.call @{function}({', '.join(kept)}) : ({', '.join(types)}) -> "
                      f"({', '.join(program.out_types)})", len(outs))
    return [b.line(f"stablehlo.convert {y} : ({t}) -> {tensor_type(a)}")
            if t != tensor_type(a) else y
            for y, a, t in zip(results, outs, program.out_types, strict=True)]

