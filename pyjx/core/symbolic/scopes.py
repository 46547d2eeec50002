"""Scopes: the variables of expressions that may meet, and what is known of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyjx.core.frames import own_line
from pyjx.core.symbolic.expressions import (
    CONSTANT,
    FLOORDIV,
    MAX,
    MIN,
    MOD,
    DimExpr,
    Factor,
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

# -- scopes ----------------------------------------------------------------------------------------

KEPT = 4096  # bounds that a scope remembers


class Constraint:
    """What a user says of the variables: `difference == 0`, or `difference >= 0`. `place` is the
    line that asks for it, where it is the answer to a question of the program's."""

    __slots__ = ("difference", "is_equality", "place", "text")

    def __init__(self, text: str, difference: Any, is_equality: bool) -> None:
        self.text = text
        self.place = ""
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
            raise ValueError(f"Invalid mixing of symbolic scopes {when}.\nExpected "
                             f"{self._described(mine)}\nand found {other._described(theirs)}\nMake "
                             "both shapes by one `symbolic_shape`, or with `scope=` the same.")

    def _described(self, d: Any) -> str:
        name = f"'{d}'" if isinstance(d, DimExpr) else d
        return f"for {name} scope {id(self)} created at {own_line(self._made) or '?'}"

    def __reduce__(self) -> Any:
        return SymbolicScope, (tuple([c.text for c in self.constraints]),)

    def __str__(self) -> str:
        lines = [f"{id(self)} created at {own_line(self._made) or '?'}"]
        if self.constraints:
            lines[0] += " with constraints:"
        return "\n".join([*lines, *[f"  {c.text}" for c in self.constraints]])

    __repr__ = __str__


# -- between which numbers an expression lies ------------------------------------------------------

Interval = tuple[float, float]

DEPTH = 3  # how many inequalities are combined
ANYTHING: Interval = (-math.inf, math.inf)


def bounds(scope: SymbolicScope, terms: Terms) -> Interval:
    """An interval that holds all values of a sum; it may be too large, and never too small."""
    return _Reasoning(scope).bounds(terms, DEPTH)


def _product(one: Interval, other: Interval) -> Interval:
    ends = [0 if a == 0 or b == 0 else a * b for a in one for b in other]
    return min(ends), max(ends)


def _quotient(a: float, b: float) -> float:
    """floor(a / b) for b > 0, of ints exactly."""
    if math.isinf(a):
        return a
    if math.isinf(b):
        return 0 if a >= 0 else -1
    return a // b


def _common(terms: Terms) -> Monomial:
    """The monomial that divides all terms of a sum; of one term nothing."""
    if len(terms) < 2:
        return CONSTANT
    first, *others = map(dict, terms)
    return tuple([(f, e) for f, e in
                  [(f, min([e, *[o.get(f, 0) for o in others]])) for f, e in first.items()] if e])


def _an_extremum(terms: Terms) -> Factor | None:
    """An operation `max` or `min` that a sum is linear in, if there is one."""
    return next((factor for monomial in terms for factor, exponent in monomial
                 if factor.kind in (MAX, MIN) and factor.operands and exponent == 1), None)


def _replaced(terms: Terms, factor: Factor, d: Any) -> Terms:
    """The terms of a sum with a dimension in the place of a factor."""
    total: Terms = {}
    for monomial, c in terms.items():
        rest = divided(monomial, ((factor, 1),))
        merged(total, {monomial: 1} if rest is None else
               {multiplied(m, rest): n for m, n in terms_of(d).items()}, c)
    return total


class _Reasoning:
    """Intervals of factors, and inequalities that remove monomials from a sum."""

    def __init__(self, scope: SymbolicScope) -> None:
        self.scope = scope
        self._factors: dict[Factor, Interval] = {}

    def bounds(self, terms: Terms, depth: int) -> Interval:
        low, high = self._by_intervals(terms)
        if not depth or (low == high):
            return low, high
        shared = _common(terms)
        if shared:  # m (p + q) lies between the products of what m and p + q lie between
            rest = {divided(m, shared) or CONSTANT: c for m, c in terms.items()}
            return _product(self._monomial(shared), self.bounds(rest, depth))
        for known in self._inequalities(terms):
            low, high = self._with(known, terms, depth, low, high)
            if low == high:
                break
        extremum = _an_extremum(terms)
        if extremum is not None:  # one of its operands stands in its place
            ends = [self.bounds(_replaced(terms, extremum, d), depth - 1)
                    for d in extremum.operands]
            low = max(low, min([end[0] for end in ends]))
            high = min(high, max([end[1] for end in ends]))
        return low, high

    def _with(self, known: Terms, terms: Terms, depth: int, low: float, high: float) -> Interval:
        """Better bounds from `known >= 0`: e = k known + r >= r, or e = r - k known <= r."""
        for monomial, c in known.items():
            e = terms.get(monomial)
            if monomial == CONSTANT or e is None:
                continue
            same = (c > 0) == (e > 0)
            scaled = {m: n * abs(c) for m, n in terms.items()}
            merged(scaled, known, -abs(e) if same else abs(e))
            rest_low, rest_high = self.bounds(scaled, depth - 1)
            if same and rest_low > -math.inf:
                low = max(low, -_quotient(-rest_low, abs(c)))
            if not same and rest_high < math.inf:
                high = min(high, _quotient(rest_high, abs(c)))
        return low, high

    def _by_intervals(self, terms: Terms) -> Interval:
        total: Interval = (0, 0)
        for monomial, coefficient in terms.items():
            low, high = _product((coefficient, coefficient), self._monomial(monomial))
            total = total[0] + low, total[1] + high
        return total

    def _monomial(self, monomial: Monomial) -> Interval:
        product: Interval = (1, 1)
        for factor, exponent in monomial:
            interval = self._factor(factor)
            power: Interval = (1, 1)
            for _ in range(min(exponent, 64)):
                power = _product(power, interval)
            if exponent % 2 == 0 and power[0] < 0:
                power = 0, power[1]
            product = _product(product, power)
        return product

    def _factor(self, factor: Factor) -> Interval:
        found = self._factors.get(factor)
        if found is None:
            if not factor.operands:
                return self.scope.variable_bounds(factor.kind)
            self._factors[factor] = ANYTHING  # to inequalities that speak of it themselves
            found = self._factors[factor] = self._operation(factor)
        return found

    def _operation(self, factor: Factor) -> Interval:
        x, y = [self.bounds(terms_of(d), 1) for d in factor.operands]
        if factor.kind == MAX:
            return max(x[0], y[0]), max(x[1], y[1])
        if factor.kind == MIN:
            return min(x[0], y[0]), min(x[1], y[1])
        if y[0] <= 0:
            return ANYTHING
        if factor.kind == MOD:
            return 0, y[1] - 1 if x[0] < 0 else min(x[1], y[1] - 1)
        ends = [_quotient(a, b) for a in x for b in y]
        return min(ends), max(ends)

    def _inequalities(self, terms: Terms) -> Iterator[Terms]:
        """What is known to be >= 0 of the scope's variables, and of the operations in a sum."""
        for monomial in terms:
            for factor, _ in monomial:
                if factor.operands:
                    yield from self._of_operation(factor)
        yield from self.scope.inequalities

    def _of_operation(self, factor: Factor) -> Iterator[Terms]:
        x, y = factor.operands
        own: Terms = {((factor, 1),): 1}
        if factor.kind in (MAX, MIN):
            sign = 1 if factor.kind == MAX else -1
            for d in (x, y):
                yield {m: sign * c for m, c in add_to(dict(own), d, -1).items()}
            return
        if self.bounds(terms_of(y), 1)[0] <= 0:
            return
        if factor.kind == MOD:  # 0 <= r < y, and r <= x where x >= 0
            yield add_to(add_to({m: -c for m, c in own.items()}, y), -1)
            if self.bounds(terms_of(x), 1)[0] >= 0:
                yield add_to({m: -c for m, c in own.items()}, x)
        elif factor.kind == FLOORDIV:  # y q <= x <= y q + y - 1
            # An equation may have a name for y q, which would hide what it says of q.
            product = {multiplied(m, ((factor, 1),)): c for m, c in terms_of(y).items()}
            yield add_to({m: -c for m, c in product.items()}, x)
            yield add_to(add_to(add_to(dict(product), y), -1), x, -1)
