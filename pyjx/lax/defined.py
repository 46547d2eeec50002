"""Values that functions define: one of them computes the value, the others its derivatives.

An equation of such a primitive holds the programs of the functions; its operands are what these
close over, which all of them take, and then the operands of the one that is run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyjx.engine.calls import standing_for
from pyjx.engine.holders import with_all_consts


class DefinedValue:
    """A primitive that holds functions.

    Args:
      name: of the primitive.
      functions: a record's type, whose fields are the functions; `solve` is the one that is run. A
        function may be None.
      rules: those that depend on what the functions mean.
    """

    def __init__(self, name: str, functions: Any, **rules: Any) -> None:
        self.functions = functions
        self.primitive = standing_for(name, lambda params: functions(*params["jaxprs"]).solve,
                                      own_rules=True, **rules)

    def bind(self, programs: Any, num_consts: int, operands: Sequence[Any]) -> list[Any]:
        """The results for operands of which so many are what the programs close over; what they
        have for constants comes before these."""
        held, consts = with_all_consts([p for p in programs if p is not None])
        given = iter(held)
        return self.primitive.bind(  # type: ignore[no-any-return]
            *consts, *operands, num_consts=len(consts) + num_consts,
            jaxprs=tuple([None if p is None else next(given) for p in programs]))
