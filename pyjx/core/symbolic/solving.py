"""From shapes to the values of the variables in their expressions, and what has to hold of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pyjx.core.records import Record
from pyjx.core.symbolic.expressions import DimExpr, Factor, made, subtracted
from pyjx.core.symbolic.scopes import SymbolicScope

# -- values of variables ---------------------------------------------------------------------------


class Solution(Record):
    """A variable: (size of an argument's axis - rest) / coefficient."""

    name: str
    argument: int
    axis: int
    coefficient: int
    rest: Any  # in variables that were solved before


def solved(solutions: Iterable[Solution], avals: Sequence[Any]) -> dict[str, Any]:
    """The values of variables for arguments of these types."""
    values: dict[str, Any] = {}
    for s in solutions:
        rest = s.rest.evaluate(values) if isinstance(s.rest, DimExpr) else s.rest
        values[s.name] = (avals[s.argument].shape[s.axis] - rest) // s.coefficient
    return values


def expressions_in(avals: Sequence[Any]) -> Iterator[tuple[int, int, DimExpr]]:
    """The expressions among dimensions: (argument, axis, expression)."""
    for i, aval in enumerate(avals):
        for axis, d in enumerate(getattr(aval, "shape", ())):
            if isinstance(d, DimExpr):
                yield i, axis, d


def scope_of(avals: Sequence[Any], function: str = "", paths: Sequence[str] = ()
             ) -> SymbolicScope | None:
    """The scope of the dimensions of a function's arguments; None where all are ints.

    Args:
      avals: arrays or types; what has no shape has no dimensions.
      function, paths: what a message calls the function and its arguments.

    Raises:
      ValueError: there are two.
    """
    scope: SymbolicScope | None = None
    seen = ""
    for i, _, d in expressions_in(avals):
        if scope is None:
            scope, seen = d.scope, f"'{d}' ({_path(paths, i)})"
        if scope is not d.scope:
            scope.check_same(d.scope, seen, f"'{d}' ({_path(paths, i)})",
                             f"when exporting {function}")
    return scope


def _path(paths: Sequence[str], i: int) -> str:
    return paths[i] if paths else f"argument {i}"


def written_shape(shape: Sequence[Any]) -> str:
    """A shape whose dimensions are written as in a specification."""
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def specifications(avals: Sequence[Any], paths: Sequence[str]) -> str:
    """The shapes of the arguments that have dimensions other than ints."""
    symbolic = sorted({i for i, _, _ in expressions_in(avals)})
    found = [f"{_path(paths, i)}.shape = {written_shape(avals[i].shape)}" for i in symbolic]
    return f"Using the following polymorphic shapes specifications: {','.join(found)}."


def variables_in(avals: Sequence[Any]) -> list[str]:
    """The names of all variables in types, sorted."""
    names: set[str] = set()
    for _, _, d in expressions_in(avals):
        names |= d.variables()
    return sorted(names)


def constraints_in(avals: Sequence[Any]) -> dict[str, str]:
    """What is said of the variables in types, and the place that asked for it."""
    return {c.text: c.place for *_, d in expressions_in(avals) for c in d.scope.constraints}


class UnexpectedDimVar(ValueError):
    """A constraint speaks of a variable that is in no argument's shape.

    Ways out: name a variable of the arguments' shapes, or leave the constraint out.
    """


def solve(avals: Sequence[Any], paths: Sequence[str] = ()) -> list[Solution]:
    """How each variable follows from the sizes of arguments, in an order in which it can.

    Args:
      avals: the types of the arguments.
      paths: what a message calls them.

    Raises:
      UnexpectedDimVar: a constraint has a variable that the types do not have.
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
        specs = ", ".join([f"'{d}' for dimension size {_path(paths, i)}.shape[{axis}]"
                           for i, axis, d in left])
        raise ValueError(f"Cannot solve for values of dimension variables {{{names}}}. We can only "
                         f"solve linear uni-variate constraints. {specifications(avals, paths)} "
                         f"Unprocessed specifications: {specs}. Give each variable an argument "
                         "with a dimension that is the variable itself.")
    _check_constraints(scope_of(avals), known)
    return solutions


def _check_constraints(scope: SymbolicScope | None, known: set[str]) -> None:
    for c in scope.constraints if scope is not None else ():
        variables = c.difference.variables() if isinstance(c.difference, DimExpr) else set()
        if unknown := sorted(variables - known):
            raise UnexpectedDimVar(
                f"Encountered dimension variable '{unknown[0]}' that is not appearing in the "
                f"shapes of the function arguments, in the constraint '{c.text}'. The variables "
                f"there are {sorted(known)}: take the constraint out, or give the variable an "
                "argument.")


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


# -- what has to hold ------------------------------------------------------------------------------

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
