"""What has to hold of the sizes of arguments, and what is said where it does not: of sizes that are
known, and of those that a program finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pyjx.core.records import Record
from pyjx.core.symbolic.expressions import DimExpr
from pyjx.core.symbolic.solving import Solution, expressions_in, scope_of, specifications

MOST_VARIABLES = 15  # that a message shows: XLA puts at most 32 sizes into one

_NO_BRACES = str.maketrans("{}", "()")  # which stand for sizes


class Check(Record):
    """Whether two sizes are equal or, if not `equal`, whether the left one is as large."""

    left: Any
    equal: bool
    right: Any
    message: str  # with {0}, {1} and so on for `shown`
    shown: tuple[Any, ...]

    def text(self) -> str:
        """The message for sizes that are known."""
        message = self.message
        for i, value in enumerate(self.shown):
            message = message.replace(f"{{{i}}}", str(value))
        return message


def checks(avals: Sequence[Any], solutions: Sequence[Solution], values: Mapping[str, Any],
           size: Callable[[int, int], Any], paths: Sequence[str]) -> Iterator[Check]:
    """What has to hold of arguments.

    Args:
      avals: their types.
      solutions: how the variables follow from sizes.
      values: the variables, computed so.
      size: the size of an axis of an argument, both by number.
      paths: what messages call the arguments.
    """
    paths = [path.translate(_NO_BRACES) for path in paths]
    start = "Input shapes do not match the polymorphic shapes specification."
    tail = specifications(avals, paths)
    obtained: list[tuple[str, str, Any, Any]] = []  # the variable, where it is from, value, size

    def check(left: Any, equal: bool, right: Any, text: str, *given: Any) -> Check:
        latest = obtained[-MOST_VARIABLES:]
        found = ", ".join([
            f"'{name}' = {{{len(given) + 2 * i}}} {origin} (= {{{len(given) + 2 * i + 1}}})"
            for i, (name, origin, _, _) in enumerate(latest)])
        shown = [x for _, _, *pair in latest for x in pair]
        return Check(left, equal, right,
                     f"{text} {tail}{f' Obtained dimension variables: {found}.' if found else ''}",
                     (*given, *shown))

    for s in solutions:
        whole, spec = size(s.argument, s.axis), avals[s.argument].shape[s.axis]
        if s.coefficient != 1:
            rest = s.rest.evaluate(values) if isinstance(s.rest, DimExpr) else s.rest
            left = (whole if type(rest) is int and not rest else whole - rest) % s.coefficient
            yield check(left, True, 0, f"{start} Division had remainder {{0}} when computing the "
                        f"value of '{s.name}'.", left)
        obtained.append((s.name, f"from specification '{spec}' for dimension "
                         f"{paths[s.argument]}.shape[{s.axis}]", values[s.name], whole))
        yield check(values[s.name], False, 1,
                    f"{start} Expected value >= 1 for dimension variable '{s.name}'.")
    solved = {(s.argument, s.axis) for s in solutions}
    for i, axis, d in expressions_in(avals):
        if (i, axis) not in solved:
            whole, value = size(i, axis), d.evaluate(values)
            yield check(whole, True, value, f"{start} Found inconsistency between dimension size "
                        f"{paths[i]}.shape[{axis}] (= {{0}}) and the specification '{d}' "
                        "(= {1}).", whole, value)
    scope = scope_of(avals)
    for c in scope.constraints if scope is not None else ():
        value = c.difference.evaluate(values) if isinstance(c.difference, DimExpr) else c.difference
        what = "equal" if c.is_equality else "greater or equal"
        yield check(value, c.is_equality, 0, "Input shapes do not match the symbolic shape "
                    f"constraint {c.text}. Expected '{c.difference}' to be {what} to 0, but found "
                    "{0}.", value)
