"""Scopes: the variables of expressions that may meet, and what is known of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pyjx.core.frames import user_frame
from pyjx.core.symbolic.bounds import Interval, bounds
from pyjx.core.symbolic.expressions import (
    CONSTANT,
    FLOORDIV,
    MOD,
    DimExpr,
    Monomial,
    Terms,
    add_to,
    divided,
    merged,
    multiplied,
    subtracted,
    terms_of,
    variable,
)
from pyjx.core.symbolic.parser import Parser, parse_constraint
from pyjx.jaxlib_api import Traceback

KEPT = 4096  # bounds that a scope remembers


class Constraint:
    """What a user says of the variables: `difference == 0`, or `difference >= 0`."""

    __slots__ = ("difference", "is_equality", "text")

    def __init__(self, text: str, difference: Any, is_equality: bool) -> None:
        self.text = text
        self.difference = difference
        self.is_equality = is_equality


class SymbolicScope:
    """The variables of symbolic dimensions, and constraints on them.

    Dimensions of different scopes do not meet. Variables are ints >= 1.

    Args:
      constraints_str: comparisons by `==`, `>=` or `<=`, such as `"a >= b"` or `"mod(b, 2) == 0"`.

    Raises:
      ValueError: a constraint cannot be read, or is never true.

    >>> from pyjx import export
    >>> scope = export.SymbolicScope(("n >= 8", "mod(n, 4) == 0"))
    >>> n, = export.symbolic_shape("n", scope=scope)
    >>> n > 7, n % 4
    (True, 0)
    """

    def __init__(self, constraints_str: Sequence[str] = ()) -> None:
        if isinstance(constraints_str, str):
            raise ValueError("The symbolic constraints should be a sequence of strings. Got "
                             f"{constraints_str!r}")
        self.constraints: list[Constraint] = []
        self.equations: dict[Monomial, tuple[int, Any]] = {}
        self.inequalities: list[Terms] = []
        self._bounds: dict[Any, Interval] = {}
        self._variables: dict[str, list[float]] = {}
        self._parsed: dict[str, Any] = {}
        # What was taken for other than zero, by its terms, where somebody asks.
        self.assumed: dict[Any, Any] | None = None
        self.is_unnamed = False  # whether nobody knows of the variables, who would know their names
        self._made = Traceback.get_traceback()
        for text in constraints_str:
            self._constrain(str(text))
        self._replace_variables()

    def _replace_variables(self) -> None:
        """Let constraints speak of what variables stand for by `a == ...`, as all shapes do."""
        open_ = [c for c in self.constraints if isinstance(c.difference, DimExpr)]
        meant = {v: self.variable(v) for c in open_ for v in c.difference.variables()}
        equations, self.equations = self.equations, {}  # which are to be checked, not used
        for c in open_:
            c.difference = c.difference.evaluate(meant)
        self.equations = equations

    def _constrain(self, text: str) -> None:
        first, kind, second = parse_constraint(self, text)
        difference = subtracted(self, second, first) if kind == "<=" else \
            subtracted(self, first, second)
        low, high = self.bounds(difference)
        if high < 0 or (kind == "==" and low > 0):
            raise ValueError(f"Unsatisfiable explicit constraint: {text}")
        self.constraints.append(Constraint(text, difference, kind == "=="))
        if isinstance(difference, DimExpr):
            if kind == "==":
                self._equate(first, second, text)
            else:
                self._bound(difference)
        self._bounds.clear()
        self._parsed.clear()

    def _bound(self, difference: DimExpr) -> None:
        terms = dict(difference.terms)
        self.inequalities.append(terms)
        rest = {m: c for m, c in terms.items() if m}
        if len(rest) == 1:  # c v + k >= 0
            (monomial, c), = rest.items()
            if len(monomial) == 1 and monomial[0][1] == 1 and not monomial[0][0].operands:
                k = terms.get(CONSTANT, 0)
                ends = self._variables.setdefault(monomial[0][0].kind, [1, math.inf])
                if c > 0:
                    ends[0] = max(ends[0], -(k // c))
                else:
                    ends[1] = min(ends[1], k // -c)

    def _equate(self, first: Any, second: Any, text: str) -> None:
        """Replace the first side, which is one term, by the second from now on."""
        sides = [(side, other) for side, other in ((first, second), (second, first))
                 if isinstance(side, DimExpr) and len(side.terms) == 1]
        if not sides:
            raise ValueError(f"Invalid equality constraint: {text}. One of its sides must be a "
                             "single term.")
        side, other = sides[0]
        (monomial, coefficient), = side.terms
        self.equations[monomial] = coefficient, other
        if coefficient != 1:  # what is no multiple of the side stays, so both are compared
            both = add_to(terms_of(side), other, -1)
            self.inequalities += both, {m: -c for m, c in both.items()}
        factor, exponent = monomial[0]
        if (len(monomial) == exponent == coefficient == 1 and factor.kind == MOD
                and type(other) is int and type(factor.operands[1]) is int):
            # x mod k = r is k floordiv(x, k) = x - r
            x, k = factor.operands
            quotient = x // k
            if isinstance(quotient, DimExpr):
                (last, _), = [t for t in quotient.terms if t[0] and t[0][0][0].kind == FLOORDIV]
                known = subtracted(self, x, other)
                rest = subtracted(self, quotient, DimExpr(self, {last: 1}))
                self.equations[last] = k, subtracted(self, known, rest * k)

    def normalized(self, terms: Mapping[Monomial, int]) -> Terms:
        """The terms with what the constraints say are equal replaced."""
        total: Terms = dict(terms)
        for _ in range(16):
            for monomial, c in total.items():
                found = self._replaced(monomial, c)
                if found is not None:
                    break
            else:
                return total
            del total[monomial]
            merged(total, found)
        return total

    def _replaced(self, monomial: Monomial, c: int) -> Terms | None:
        for left, (k, right) in self.equations.items():
            rest = divided(monomial, left)
            if rest is not None and c % k == 0:
                return {multiplied(m, rest): n * (c // k) for m, n in terms_of(right).items()}
        return None

    def variable_bounds(self, name: str) -> Interval:
        low, high = self._variables.get(name, (1, math.inf))
        return low, high

    def bounds(self, d: Any) -> Interval:
        """An interval in which a dimension lies."""
        if type(d) is int:
            return d, d
        found = self._bounds.get(d.terms)
        if found is None:
            if len(self._bounds) >= KEPT:
                self._bounds.clear()
            found = self._bounds[d.terms] = bounds(self, dict(d.terms))
        return found

    def parse(self, text: str) -> Any:
        """The dimension that a text stands for."""
        found = self._parsed.get(text)
        if found is None:
            if len(self._parsed) >= KEPT:
                self._parsed.clear()
            found = self._parsed[text] = Parser(self, text).dimension()
        return found

    def variable(self, name: str) -> Any:
        return variable(self, name)

    def check_same(self, other: SymbolicScope, mine: Any, theirs: Any,
                   when: str = "for linear combination") -> None:
        """Raise ValueError where dimensions of two scopes meet: two dimensions, or what a message
        calls them."""
        if self is not other:
            raise ValueError(
                f"Invalid mixing of symbolic scopes {when}.\nExpected "
                f"{self._described(mine)}\nand found {other._described(theirs)}\n"
                "Make both shapes by one `symbolic_shape`, or with `scope=` the same.")

    def _described(self, d: Any) -> str:
        name = f"'{d}'" if isinstance(d, DimExpr) else d
        return f"for {name} scope {id(self)} created at {self._place()}"

    def _place(self) -> str:
        frame = user_frame(self._made)
        return "?" if frame is None else f"{frame.file_name}:{frame.start_line}"

    def __reduce__(self) -> Any:
        return SymbolicScope, (tuple([c.text for c in self.constraints]),)

    def __str__(self) -> str:
        lines = [f"{id(self)} created at {self._place()}"]
        if self.constraints:
            lines[0] += " with constraints:"
        return "\n".join([*lines, *[f"  {c.text}" for c in self.constraints]])

    __repr__ = __str__


