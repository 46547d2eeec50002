"""Between which numbers an expression lies, from what its scope knows of the variables."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyjx.core.symbolic.expressions import (
    CONSTANT,
    FLOORDIV,
    MAX,
    MIN,
    MOD,
    Factor,
    Monomial,
    Terms,
    add_to,
    divided,
    merged,
    multiplied,
    terms_of,
)

if TYPE_CHECKING:
    from pyjx.core.symbolic.scopes import SymbolicScope

Interval = tuple[float, float]

DEPTH = 3  # how many inequalities are combined
ANYTHING: Interval = (-math.inf, math.inf)


def bounds(scope: SymbolicScope, terms: Terms) -> Interval:
    """An interval that holds all values of a sum; it may be too large, and never too small."""
    return _Reasoning(scope).bounds(terms, DEPTH)


def _product(one: Interval, other: Interval) -> Interval:
    ends = [_times(a, b) for a in one for b in other]
    return min(ends), max(ends)


def _times(a: float, b: float) -> float:
    return 0 if a == 0 or b == 0 else a * b


def _sum(one: Interval, other: Interval) -> Interval:
    return one[0] + other[0], one[1] + other[1]


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
            total = _sum(total, _product((coefficient, coefficient), self._monomial(monomial)))
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
