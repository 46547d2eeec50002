"""From shapes to the values of the variables in their expressions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyjx.core.records import Record
from pyjx.core.symbolic.expressions import DimExpr, Factor, made, subtracted
from pyjx.core.symbolic.scopes import SymbolicScope


class Solution(Record):
    """A variable: (size of an argument's axis - rest) / coefficient."""

    name: str
    argument: int
    axis: int
    coefficient: int
    rest: Any  # in variables that were solved before


def expressions_in(avals: Sequence[Any]) -> Iterator[tuple[int, int, DimExpr]]:
    """The expressions among dimensions: (argument, axis, expression)."""
    for i, aval in enumerate(avals):
        for axis, d in enumerate(aval.shape):
            if isinstance(d, DimExpr):
                yield i, axis, d


def scope_of(avals: Sequence[Any]) -> SymbolicScope | None:
    """The scope of the dimensions of types; None where all are ints.

    Raises:
      ValueError: there are two.
    """
    scope: SymbolicScope | None = None
    seen: Any = None
    for _, _, d in expressions_in(avals):
        if scope is None:
            scope, seen = d.scope, d
        scope.check_same(d.scope, seen, d)
    return scope


def variables_in(avals: Sequence[Any]) -> list[str]:
    """The names of all variables in types, sorted."""
    names: set[str] = set()
    for _, _, d in expressions_in(avals):
        names |= d.variables()
    return sorted(names)


def solve(avals: Sequence[Any]) -> list[Solution]:
    """How each variable follows from the sizes of arguments, in an order in which it can.

    Raises:
      ValueError: one does not follow from an expression that is linear in it.
    """
    left = list(expressions_in(avals))
    known: set[str] = set()
    solutions: list[Solution] = []
    progress = True
    while progress:
        progress = False
        for i, axis, d in list(left):
            unknown = d.variables() - known
            if not unknown:
                left.remove((i, axis, d))
            elif len(unknown) == 1:
                name = unknown.pop()
                found = _solved(d, name)
                if found is not None:
                    known.add(name)
                    solutions.append(Solution(name, i, axis, *found))
                    left.remove((i, axis, d))
                    progress = True
    missing = set(variables_in(avals)) - known
    if missing:
        names = ", ".join(sorted(map(repr, missing)))
        specs = ", ".join([f"'{d}' (argument {i}, axis {axis})" for i, axis, d in left])
        raise ValueError(
            f"Cannot solve for values of dimension variables {{{names}}}. We can only solve linear "
            f"uni-variate constraints. Unprocessed specifications: {specs}. Give each variable an "
            "argument with a dimension that is the variable itself.")
    return solutions


def _solved(d: DimExpr, name: str) -> tuple[int, Any] | None:
    """d = coefficient * name + rest."""
    own = ((Factor(name), 1),)
    coefficient = dict(d.terms).get(own)
    if coefficient is None:
        return None
    rest = subtracted(d.scope, d, made(d.scope, {own: coefficient}))
    if isinstance(rest, DimExpr) and name in rest.variables():
        return None
    return coefficient, rest


