"""Values that functions define: one of them computes the value, the others its derivatives.

An equation of such a primitive holds the programs of the functions; its operands are what each of
them closes over, one after the other, and then the operands of the one that is run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.engine.calls import standing_for
from pyjx.engine.subjaxprs import with_inputs, without_tracers
from pyjx.engine.types import Params


class DefinedValue:
    """A primitive that holds functions.

    Args:
      name: of the primitive.
      functions: a named tuple's type, whose fields are the functions; `solve` is the one that is
        run. A function may be None, all its entries are empty then.
      rules: those that depend on what the functions mean.
    """

    def __init__(self, name: str, functions: Any, **rules: Any) -> None:
        self.functions = functions
        self.primitive = standing_for(name, self._stands_for, own_rules=True, **rules)

    def parts(self, entries: Sequence[Any], lengths: Sequence[int]) -> tuple[Any, list[Any]]:
        """The entries (operands, tangents, dims) of each function, and those of the operands."""
        parts = []
        start = 0
        for n in lengths:
            parts.append(list(entries[start:start + n]))
            start += n
        return self.functions(*parts), list(entries[start:])

    def bind(self, programs: Any, consts: Any, operands: Sequence[Any]) -> list[Any]:
        """The results; programs that hold tracers get them as operands."""
        split = [(p, ()) if p is None else without_tracers(p) for p in programs]
        given = [[*more, *own] for (_, more), own in zip(split, consts, strict=True)]
        return self.primitive.bind(  # type: ignore[no-any-return]
            *[x for part in given for x in part], *operands,
            const_lengths=tuple(map(len, given)), jaxprs=tuple([p for p, _ in split]))

    def _stands_for(self, params: Params) -> ClosedJaxpr:
        """`solve` as a program that takes the operands of all functions."""
        solve = self.functions(*params["jaxprs"]).solve
        own = self.functions(*params["const_lengths"]).solve
        order: list[Any] = []
        for name, program, n in zip(self.functions._fields, params["jaxprs"],
                                    params["const_lengths"], strict=True):
            if name == "solve":
                order += range(n)
            elif program is not None:
                order += program.in_avals[:n]
        return with_inputs(solve, (*order, *range(own, len(solve.in_avals))))
