"""Dimension expressions: polynomials over variables and over quotients, remainders and extrema.

An expression is a sum of terms, each an integer times a monomial; a monomial is a product of
powers of factors; a factor is a variable or an operation on expressions that no polynomial says,
such as `floordiv(n, 2)`. The sum is kept canonical, so expressions that are always equal as
polynomials have the same terms.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable, Mapping
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from pyjx.core import dtypes
from pyjx.core.array_type import DTypeLike
from pyjx.core.avals import ShapedArray, SymbolicDim
from pyjx.core.frames import is_internal, is_of_foundation
from pyjx.core.integers import max_dim, min_dim
from pyjx.core.primitive import Primitive, register
from pyjx.core.records import Shared
from pyjx.core.trace import eager_trace, state
from pyjx.errors import InconclusiveDimensionOperation
from pyjx.guards import guard

if TYPE_CHECKING:
    from pyjx.core.symbolic.scopes import SymbolicScope

FLOORDIV, MOD, MAX, MIN = "floordiv", "mod", "max", "min"

SEE = ("\nThis error arises for comparison operations with shapes that\nare non-constant, and the "
       "result of the operation cannot be represented as\na boolean value for all values of the "
       "symbolic dimensions involved.\n")


class Factor:
    """A variable, or an operation on two expressions."""

    __slots__ = ("key", "kind", "operands", "text")

    def __init__(self, kind: str, operands: tuple[Any, ...] = ()) -> None:
        self.kind = kind  # the variable's name, or the operation's
        self.operands = operands
        self.text = f"{kind}({', '.join(map(str, operands))})" if operands else kind
        self.key = bool(operands), self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Factor) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return self.text


# Factors with their exponents, in the order of their keys.
Monomial = tuple[tuple[Factor, int], ...]
Terms = dict[Monomial, int]

CONSTANT: Monomial = ()
# What no size reaches where nothing else is known: values of dimensions are 32 bits wide.
MOST = 2 ** 31 - 1
MOST_TERMS = 4096  # of a product: more says that something goes wrong


def _order(monomial: Monomial) -> Any:
    return sum([e for _, e in monomial]), [(f.key, e) for f, e in reversed(monomial)]


def multiplied(one: Monomial, other: Monomial) -> Monomial:
    """The product of two monomials."""
    powers = dict(one)
    for factor, exponent in other:
        powers[factor] = powers.get(factor, 0) + exponent
    return tuple(sorted(powers.items(), key=lambda pair: pair[0].key))


def divided(monomial: Monomial, divisor: Monomial) -> Monomial | None:
    """The quotient of two monomials, if it is one."""
    powers = dict(monomial)
    for factor, exponent in divisor:
        left = powers.get(factor, 0) - exponent
        if left < 0:
            return None
        if left:
            powers[factor] = left
        else:
            powers.pop(factor)
    return tuple(powers.items())


def terms_of(d: Any) -> Terms:
    """The terms of an expression or of an int."""
    return dict(d.terms) if isinstance(d, DimExpr) else {CONSTANT: int(d)} if d else {}


def add_to(total: Terms, d: Any, times: int = 1) -> Terms:
    """Add `times * d` to the terms of a sum, which are returned."""
    return merged(total, terms_of(d), times)


def merged(total: Terms, terms: Mapping[Monomial, int], times: int = 1) -> Terms:
    """Add the terms of another sum, `times` over, to those of a sum, which are returned."""
    for monomial, coefficient in terms.items():
        new = total.get(monomial, 0) + times * coefficient
        if new:
            total[monomial] = new
        else:
            total.pop(monomial, None)
    return total


def made(scope: SymbolicScope, terms: Mapping[Monomial, int]) -> Any:
    """The expression with these terms: an int where it is constant."""
    found = scope.normalized(terms) if scope.equations else terms
    if not found:
        return 0
    if len(found) == 1 and CONSTANT in found:
        return found[CONSTANT]
    return DimExpr(scope, found)


def variable(scope: SymbolicScope, name: str) -> Any:
    """The dimension variable of this name."""
    return made(scope, {((Factor(name), 1),): 1})


def is_symbolic_dim(p: Any) -> bool:
    """Whether `p` is a dimension whose size is an expression.

    >>> from pyjx import export
    >>> list(map(export.is_symbolic_dim, export.symbolic_shape("n, 3")))
    [True, False]
    """
    return isinstance(p, SymbolicDim)


def _operand(self: DimExpr, other: Any) -> Any:
    """`other` as a dimension of the same scope; None where it is none."""
    if isinstance(other, DimExpr):
        self.scope.check_same(other.scope, self, other)
        return other
    if isinstance(other, (int, np.integer)):
        return int(other)
    return None


def _to_value(self: DimExpr, other: Any, op: Callable[[Any, Any], Any], swapped: bool) -> Any:
    """An operation with what is no dimension: one of numbers, and not of dimensions."""
    if not isinstance(other, (float, complex, np.ndarray, np.generic)):
        return NotImplemented
    value = self.__jax_array__()
    return op(other, value) if swapped else op(value, other)


def _arithmetic(op: Callable[[Any, Any], Any], compute: Callable[[Any, Any, Any], Any]
                ) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    """An operator of dimensions, and the one with its operands swapped."""

    def straight(self: DimExpr, other: Any) -> Any:
        d = _operand(self, other)
        return _to_value(self, other, op, False) if d is None else compute(self.scope, self, d)

    def swapped(self: DimExpr, other: Any) -> Any:
        d = _operand(self, other)
        return _to_value(self, other, op, True) if d is None else compute(self.scope, d, self)

    return straight, swapped


def added(scope: SymbolicScope, x: Any, y: Any) -> Any:
    return made(scope, add_to(terms_of(x), y))


def subtracted(scope: SymbolicScope, x: Any, y: Any) -> Any:
    return made(scope, add_to(terms_of(x), y, -1))


def times(scope: SymbolicScope, x: Any, y: Any) -> Any:
    left, right = terms_of(x), terms_of(y)
    if len(left) * len(right) > MOST_TERMS:
        raise ValueError(f"A product of {len(left)} and {len(right)} terms is too large for a "
                         "dimension.")
    total: Terms = {}
    for m, c in left.items():
        merged(total, {multiplied(m, n): d for n, d in right.items()}, c)
    return made(scope, total)


def _is_multiple(divisor: Terms, term: tuple[Monomial, int]) -> tuple[Monomial, int] | None:
    """The quotient of a term and the first term of a divisor, if there is one."""
    lead = max(divisor, key=_order)
    quotient = divided(term[0], lead)
    if quotient is None or term[1] % divisor[lead]:
        return None
    return quotient, term[1] // divisor[lead]


def division(scope: SymbolicScope, x: Any, y: Any) -> tuple[Any, Any]:
    """`(q, r)` with x = q * y + r, where all that y divides is in q."""
    divisor, rest = terms_of(y), terms_of(x)
    quotient: Terms = {}
    for _ in range(64):
        for term in sorted(rest.items(), key=lambda t: _order(t[0]), reverse=True):
            part = _is_multiple(divisor, term)
            if part is not None and (len(divisor) == 1 or term[0] == max(rest, key=_order)):
                break
        else:
            break
        quotient[part[0]] = quotient.get(part[0], 0) + part[1]
        add_to(rest, times(scope, y, made(scope, {part[0]: part[1]})), -1)
    return made(scope, {m: c for m, c in quotient.items() if c}), made(scope, rest)


def _operation(scope: SymbolicScope, kind: str, x: Any, y: Any) -> Any:
    return made(scope, {((Factor(kind, (x, y)), 1),): 1})


def divmod_(scope: SymbolicScope, x: Any, y: Any) -> tuple[Any, Any]:
    """`(x // y, x % y)`.

    Raises:
      ZeroDivisionError: y is 0.
    """
    if type(y) is int and y == 0:
        raise ZeroDivisionError(f"Division of the dimension {x} by zero.")
    if type(x) is int and type(y) is int:
        return divmod(x, y)
    quotient, rest = division(scope, x, y)
    if len(terms_of(y)) > 1 and not (type(rest) is int and rest == 0):
        quotient, rest = 0, x  # half a long division says nothing
    if type(y) is int:
        low, high = scope.bounds(rest)
        if low > -np.inf and high < np.inf and low // y == high // y:  # the same everywhere
            turns = int(low // y)
            return added(scope, quotient, turns), subtracted(scope, rest, turns * y)
        # floordiv(k x, k y) = floordiv(x, y)
        constant = terms_of(rest).get(CONSTANT, 0)
        turns = constant // y
        quotient, rest = added(scope, quotient, turns), subtracted(scope, rest, turns * y)
    elif type(rest) is int and rest == 0:
        return quotient, 0
    elif scope.bounds(rest)[0] >= 0 and scope.bounds(subtracted(scope, y, rest))[0] > 0:
        return quotient, rest
    return (added(scope, quotient, _operation(scope, FLOORDIV, rest, y)),
            _operation(scope, MOD, rest, y))


def floor_divided(scope: SymbolicScope, x: Any, y: Any) -> Any:
    return divmod_(scope, x, y)[0]


def remainder(scope: SymbolicScope, x: Any, y: Any) -> Any:
    return divmod_(scope, x, y)[1]


def maximum(scope: SymbolicScope, x: Any, y: Any) -> Any:
    """The larger one of two dimensions; an operation where it is not known which."""
    low, high = scope.bounds(subtracted(scope, x, y))
    return x if low >= 0 else y if high <= 0 else _operation(scope, MAX, *_sorted(x, y))


def minimum(scope: SymbolicScope, x: Any, y: Any) -> Any:
    low, high = scope.bounds(subtracted(scope, x, y))
    return y if low >= 0 else x if high <= 0 else _operation(scope, MIN, *_sorted(x, y))


def _sorted(*operands: Any) -> list[Any]:
    return sorted(operands, key=lambda d: (type(d) is int, str(d)))


COMPUTE: dict[str, Callable[[Any, Any, Any], Any]] = {
    FLOORDIV: floor_divided, MOD: remainder, MAX: maximum, MIN: minimum,
}


def _whole_numbers(values: np.ndarray[Any, Any]) -> list[int]:
    """The numbers among these that may be sizes."""
    if values.dtype.kind not in "iuf":
        return []
    return [int(n) for n in np.unique(values[(values >= 0) & (values <= MOST)]) if n == int(n)]


def _refuse(d: DimExpr, what: str) -> None:
    """Raise InconclusiveDimensionOperation where a user's function does this with a size while what
    sizes are taken for is noted: of what comes of it nothing can be noted."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and is_of_foundation(frame.f_code.co_filename):
        if frame.f_globals.get("__name__") == "weakref":  # as a value of a table is collected
            return
        frame = frame.f_back
    if frame is not None and not is_internal(frame.f_code.co_filename) and (
            state.dynamic is not eager_trace):
        raise InconclusiveDimensionOperation(
            f"The size '{d._own_text()}', which is not known, {what}: what comes of that would be "
            "taken for all sizes.\nCompare it, as by `n in (5, 7)`, or jit the function without "
            "`dynamic`.")


@guard
class DimExpr(Shared, SymbolicDim):
    """A dimension that is an expression in variables, each of which stands for an int >= 1."""

    __slots__ = ("_hash", "_text", "scope", "terms")

    __array_priority__ = 1000  # NumPy's values ask the methods below, and not for their elements

    def __init__(self, scope: SymbolicScope, terms: Mapping[Monomial, int]) -> None:
        self.scope = scope
        self.terms: tuple[tuple[Monomial, int], ...] = tuple(
            sorted(terms.items(), key=lambda t: _order(t[0]), reverse=True))
        self._text = ""
        # Python's hashes of -1 and -2 are the same: n - 1 and n - 2 would be compared as keys.
        self._hash = hash(tuple([(monomial, 2 * c + 1) for monomial, c in self.terms]))

    __add__, __radd__ = _arithmetic(operator.add, added)
    __sub__, __rsub__ = _arithmetic(operator.sub, subtracted)
    __mul__, __rmul__ = _arithmetic(operator.mul, times)
    __floordiv__, __rfloordiv__ = _arithmetic(operator.floordiv, floor_divided)
    __mod__, __rmod__ = _arithmetic(operator.mod, remainder)
    __divmod__, __rdivmod__ = _arithmetic(divmod, divmod_)

    def __truediv__(self, other: Any) -> Any:
        return self.__jax_array__() / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / self.__jax_array__()

    def __pow__(self, power: Any, modulo: Any = None) -> Any:
        if modulo is not None:
            raise NotImplementedError("Powers of dimensions modulo another one.")
        if not isinstance(power, (int, np.integer)):
            return self.__jax_array__() ** power
        if not 0 <= power <= MOST_TERMS:
            raise ValueError(f"A dimension to the power of {power} is none.")
        result: Any = 1
        for _ in range(int(power)):
            result = self * result
        return result

    def __rpow__(self, base: Any) -> Any:
        return base ** self.__jax_array__()

    def __neg__(self) -> Any:
        return -1 * self

    def __pos__(self) -> Any:
        return self

    def __hash__(self) -> int:
        if self.scope.assumed is not None:
            _refuse(self, "is looked up in a dict or a set")
        return self._hash

    def __eq__(self, other: object) -> bool:
        """Whether the two are always equal; what depends on the variables is False."""
        if type(other) is type(self):  # asked at the end of the process too, when names are gone
            if self.terms == other.terms and self.scope is other.scope:
                return True
            if self.scope is not other.scope:
                return False
        elif not isinstance(other, (int, np.integer)):
            if self.scope.assumed is not None and isinstance(other, (float, np.ndarray)):
                any([self == n for n in _whole_numbers(np.asarray(other))])  # which notes them
            return NotImplemented
        difference = subtracted(self.scope, self, other)
        low, high = self.scope.bounds(difference)
        if low <= 0 <= high and low < high and self.scope.assumed is not None:
            self.scope.assumed[difference.terms] = difference
        return low == high == 0

    def __ge__(self, other: Any) -> bool:
        return self._decide(">=", self, other, self, other, 0)

    def __gt__(self, other: Any) -> bool:
        return self._decide(">", self, other, self, other, 1)

    def __le__(self, other: Any) -> bool:
        return self._decide("<=", self, other, other, self, 0)

    def __lt__(self, other: Any) -> bool:
        return self._decide("<", self, other, other, self, 1)

    def _decide(self, name: str, x: Any, y: Any, greater: Any, lesser: Any, least: int) -> bool:
        """Whether `greater - lesser >= least`, for the comparison `x name y`."""
        d = _operand(self, y)
        if d is None:
            return NotImplemented
        difference = subtracted(self.scope, int(greater) if type(greater) is not DimExpr
                                else greater, int(lesser) if type(lesser) is not DimExpr
                                else lesser)
        low, high = self.scope.bounds(difference)
        if low >= least:
            return True
        if high < least:
            return False
        if type(y) is int and abs(y) >= MOST:
            return name[0] == ("<" if y > 0 else ">")
        raise InconclusiveDimensionOperation(
            f"Symbolic dimension comparison '{x}' {name} '{y}' is inconclusive.\n"
            f"Using symbolic scope {self.scope}{SEE}\n"
            f"It holds for some values only: '{difference}' is between {low} and {high}. Say more "
            "of the variables by `constraints=` of `symbolic_shape`, such as "
            f"\"{greater} >= {lesser + least}\".", (difference - least, False))

    def maximum(self, other: Any) -> Any:
        return maximum(self.scope, self, _operand(self, other))

    def minimum(self, other: Any) -> Any:
        return minimum(self.scope, self, _operand(self, other))

    def __bool__(self) -> bool:
        return self != 0

    def __int__(self) -> int:
        raise InconclusiveDimensionOperation(
            f"Symbolic dimension '{self}' used in a context that requires a constant. Shapes take "
            f"it as it is; in the program its value is jnp.asarray(n).{SEE}")

    def __jax_array__(self) -> Any:
        return self.as_scalar()

    def as_scalar(self, dtype: DTypeLike | None = None) -> Any:
        """The value, traced; by default a weak integer."""
        return dim_as_value(self, dtype)

    @property
    def aval(self) -> ShapedArray:
        """The type of its value."""
        return ShapedArray((), dtypes.python_scalar_dtype(int), True)

    def variables(self) -> set[str]:
        """The names of the variables in it."""
        names: set[str] = set()
        for monomial, _ in self.terms:
            for factor, _ in monomial:
                if factor.operands:
                    for d in factor.operands:
                        names |= d.variables() if isinstance(d, DimExpr) else set()
                else:
                    names.add(factor.kind)
        return names

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        """The expression with its variables replaced: ints, or what computes as they do."""
        total: Any = 0
        for monomial, coefficient in self.terms:
            product: Any = None
            for factor, exponent in monomial:
                value = _factor_value(factor, values)
                for _ in range(exponent):
                    product = value if product is None else product * value
            if product is None:
                total = total + coefficient
            else:
                total = total + (product if coefficient == 1 else product * coefficient)
        return total

    def _own_text(self) -> str:
        """The text, whoever asks for it."""
        if not self._text:
            self._text = _written(self.terms)
        return self._text

    def __str__(self) -> str:
        if self.scope.assumed is not None and self.scope.is_unnamed:
            _refuse(self, "is asked for its text")
        return self._own_text()

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        if self.scope.assumed is not None and self.scope.is_unnamed:  # by the caller, too
            _refuse(self, "is asked for its text")
        try:
            return format(self._own_text(), spec)
        except ValueError:
            raise InconclusiveDimensionOperation(
                f"Symbolic dimension '{self._own_text()}' used in a context that requires a "
                f"constant: the format {spec!r} is of numbers, and {{}} shows it.{SEE}") from None

    def __reduce__(self) -> Any:
        return _remade, (self.scope, str(self))


def _remade(scope: SymbolicScope, text: str) -> Any:
    return scope.parse(text)


def _factor_value(factor: Factor, values: Mapping[str, Any]) -> Any:
    if not factor.operands:
        return values[factor.kind]
    x, y = [d.evaluate(values) if isinstance(d, DimExpr) else d for d in factor.operands]
    return VALUE_OF[factor.kind](x, y)


VALUE_OF: dict[str, Callable[[Any, Any], Any]] = {
    FLOORDIV: operator.floordiv, MOD: operator.mod, MAX: max_dim, MIN: min_dim,
}


def _written(terms: Iterable[tuple[Monomial, int]]) -> str:
    parts: list[str] = []
    for monomial, coefficient in terms:
        sign = "-" if coefficient < 0 else "+"
        size = abs(coefficient)
        names = [f.text if e == 1 else f"{f.text}^{e}" for f, e in monomial]
        text = "*".join([str(size), *names] if size != 1 or not names else names)
        parts.append(f"{sign} {text}" if parts or sign == "-" else text)
    return " ".join(parts)


# -- dimensions as values: integers that operations take -------------------------------------------


def _value_shape(*, dim: Any, dtype: Any) -> ShapedArray:
    if dtype is None:
        return ShapedArray((), dtypes.python_scalar_dtype(int), True)
    return ShapedArray((), dtype)


def _no_value(*, dim: Any, dtype: Any) -> NoReturn:
    raise NotImplementedError(
        "Evaluation rule for 'dim_as_value' is not implemented. It seems that you are using shape "
        f"polymorphism outside jax.export: the dimension {dim} has no value here.")


dim_as_value_p = register(Primitive("dim_as_value", shape_rule=_value_shape, impl=_no_value))


def dim_as_value(dim: Any, dtype: Any = None) -> Any:
    """A dimension as a traced scalar of a dtype, by default a weak integer."""
    return dim_as_value_p.bind(dim=dim, dtype=dtype)
