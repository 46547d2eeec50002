"""Linear programs without the values they keep, compared by structure.

The functions that `vjp` and `linearize` return are pytrees, whose leaves are the residuals: what
the linear program keeps from the forward pass. What remains, the program with holes for them, is
compared by structure, so that a jitted function that takes such a function as argument is traced
once for all functions of the same form.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyjx.core.jaxpr import Literal
from pyjx.core.trace import literal_types
from pyjx.engine.linearize import Hole, LinearProgram, LinearVar
from pyjx.engine.tangents import Zero
from pyjx.engine.types import TreeDef


class LinearForm:
    """A linear program without its residuals, and the trees and avals of its ends.

    Equality is that of structure: the same operations, wired in the same way.
    """

    __slots__ = ("_key", "in_avals", "in_tree", "name", "out_avals", "out_tree", "program")

    def __init__(self, program: LinearProgram, in_tree: TreeDef, out_tree: TreeDef,
                 in_avals: Sequence[Any], out_avals: Sequence[Any], name: str) -> None:
        self.program = program
        self.in_tree = in_tree
        self.out_tree = out_tree
        self.in_avals = in_avals
        self.out_avals = out_avals
        self.name = name
        self._key: Any = None

    @property
    def key(self) -> Any:
        if self._key is None:
            self._key = (self.in_tree, self.out_tree, tuple(self.in_avals),
                         tuple(self.out_avals), *_program_key(self.program))
        return self._key

    def __call__(self, residuals: Sequence[Any]) -> LinearProgram:
        """The program with its residuals."""
        return self.program.filled(residuals)

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is LinearForm and self.key == other.key)

    def __hash__(self) -> int:
        return hash(self.key)


def _program_key(program: LinearProgram) -> tuple[Any, ...]:
    numbers: dict[LinearVar, int] = {}

    def number(x: Any) -> Any:
        if type(x) is LinearVar:
            return numbers.setdefault(x, len(numbers))
        if type(x) is Hole:
            return "hole", x.index
        if type(x) in literal_types:
            return Literal(x).key
        return x if x is None or type(x) is Zero else id(x)

    ins = tuple([number(v) for v in program.invars])
    eqns = []
    for eqn in program.eqns:
        primitive, operands, results, params, _ = eqn
        try:
            key = tuple(params.items())
            hash(key)
        except TypeError:
            key = (id(eqn),)  # type: ignore[assignment]
        eqns.append((primitive, tuple([number(x) for x in operands]), key,
                     tuple([(number(v), v.aval) for v in results])))
    return ins, tuple(eqns), tuple([number(x) for x in program.outs])
