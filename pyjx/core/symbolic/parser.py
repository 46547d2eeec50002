"""The text of dimensions, shapes and constraints.

    shape      = [ "(" ] [ dimension { "," dimension } [ "," ] ] [ ")" ]
    dimension  = "..." | "_" | sum
    sum        = product { ("+" | "-") product }
    product    = power { ("*" | "//" | "%") power }
    power      = ("+" | "-") power | atom [ ("^" | "**") integer ]
    atom       = integer | name | "(" sum ")" | operation "(" sum { "," sum } ")"
    operation  = "floordiv" | "mod" | "max" | "min" | "non_negative"
"""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from pyjx.core.symbolic.expressions import COMPUTE

if TYPE_CHECKING:
    from pyjx.core.symbolic.scopes import SymbolicScope

_TOKEN = re.compile(r"\s*(\d+|[^\W\d]\w*|\.\.\.|//|\*\*|[-+*%^(),])")
_IN_PRODUCTS = {"*": operator.mul, "//": operator.floordiv, "%": operator.mod}
_OPERATIONS = {"floordiv": 2, "mod": 2, "max": 2, "min": 2, "non_negative": 1}
MOST_DIGITS = 18
MOST_DEPTH = 32
MOST_LENGTH = 1 << 16
MOST_POWER = 64


class Parser:
    """Reads one text, from its start."""

    def __init__(self, scope: SymbolicScope, text: str, like: Sequence[Any] | None = None) -> None:
        self.scope = scope
        self.text = text
        self.like = like
        self._dimensions: list[Any] = []
        self._depth = 0
        if len(text) > MOST_LENGTH:
            raise ValueError(f"A symbolic shape of {len(text)} characters is too long.")
        self._tokens: list[tuple[str, int]] = []
        place, end = 0, len(text.rstrip())
        while place < end:
            found = _TOKEN.match(text, place)
            if found is None:
                self._tokens.append((text[place:].lstrip()[:1], place))
                break
            self._tokens.append((found[1], found.start(1)))
            place = found.end()
        self._tokens.append(("", len(text)))
        self._at = 0

    @property
    def token(self) -> str:
        return self._tokens[self._at][0]

    def take(self, *wanted: str) -> str:
        """The next token, if it is one of these; else an empty text."""
        token = self.token
        if token not in wanted:
            return ""
        self._at += 1
        return token

    def fail(self, expected: str) -> NoReturn:
        token, place = self._tokens[self._at]
        raise ValueError(
            f"syntax error in symbolic shape {self.text!r} in dimension {len(self._dimensions)}: "
            f"expecting {expected} but found {repr(token) if token else 'the end'}. Parsed "
            f"{self.text[:place]!r}, remaining {self.text[place:]!r}.")

    def shape(self) -> tuple[Any, ...]:
        closing = ")" if self._is_enclosed() and self.take("(") else ""
        while self.token and self.token != closing:
            self._one_dimension()
            if not self.take(","):
                break
        if closing and not self.take(closing):
            self.fail("one of ',', ')' or an operator")
        if self.token:
            self.fail("one of ',' or an operator")
        if self.like is not None and len(self._dimensions) != len(self.like):
            raise ValueError(f"symbolic shape {self.text!r} has {len(self._dimensions)} "
                             f"dimensions, for an argument of shape {tuple(self.like)}.")
        return tuple(self._dimensions)

    def _is_enclosed(self) -> bool:
        """Whether the first parenthesis is closed by the last token."""
        tokens = [t for t, _ in self._tokens[:-1]]
        if tokens[:1] != ["("] or tokens[-1:] != [")"]:
            return False
        depth = 0
        for i, token in enumerate(tokens):
            depth += (token == "(") - (token == ")")
            if not depth:
                return i == len(tokens) - 1
        return False

    def _one_dimension(self) -> None:
        done = len(self._dimensions)
        if self.take("..."):
            if self.like is None:
                raise ValueError(f"symbolic shape {self.text!r} has a placeholder '...', which "
                                 "stands for the dimensions of `like`, and there is none.")
            if self.token == ",":
                self.fail("the end behind '...'")
            for known in self.like[done:]:
                self._append_known(known)
        elif self.take("_"):
            if self.like is None or done >= len(self.like):
                raise ValueError(f"symbolic shape {self.text!r} has a placeholder '_' in "
                                 f"dimension {done}, which `like` does not have.")
            self._append_known(self.like[done])
        else:
            size = self.sum()
            if self.like is not None and done < len(self.like):
                known = self.like[done]
                if type(size) is int and type(known) is int and size != known:
                    raise ValueError(
                        f"syntax error in symbolic shape {self.text!r} in dimension {done}: "
                        f"different size {size} for known dimension; like={tuple(self.like)}.")
            self._dimensions.append(size)

    def _append_known(self, size: Any) -> None:
        if size is None:
            raise ValueError(
                f"syntax error in symbolic shape {self.text!r} in dimension "
                f"{len(self._dimensions)}: unexpected placeholder for unknown dimension; "
                f"like={tuple(self.like or ())}. Write a variable in its place.")
        self._dimensions.append(size)

    def dimension(self) -> Any:
        """The whole text as one dimension."""
        d = self.sum()
        if self.token:
            self.fail("an operator")
        return d

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise ValueError(f"symbolic shape {self.text[:80]!r} is nested too deeply.")

    def sum(self) -> Any:
        self._deeper()
        try:
            total = self._product()
            while sign := self.take("+", "-"):
                part = self._product()
                total = total + part if sign == "+" else total - part
        except ZeroDivisionError:
            raise ValueError(f"symbolic shape {self.text!r} divides by zero.") from None
        self._depth -= 1
        return total

    def _product(self) -> Any:
        result = self._power()
        while op := self.take(*_IN_PRODUCTS):
            result = _IN_PRODUCTS[op](result, self._power())
        return result

    def _power(self) -> Any:
        if sign := self.take("+", "-"):
            self._deeper()
            operand = self._power()
            self._depth -= 1
            return -1 * operand if sign == "-" else operand
        base = self._atom()
        if self.take("^", "**"):
            if not self.token.isdecimal():
                self.fail("an integer")
            exponent = self._integer()
            if exponent > MOST_POWER:
                raise ValueError(f"symbolic shape {self.text[:80]!r}: the exponent {exponent} is "
                                 "too large.")
            return base ** exponent
        return base

    def _integer(self) -> int:
        digits = self.token
        if len(digits) > MOST_DIGITS:
            raise ValueError(f"symbolic shape {self.text[:80]!r}: an integer is too large.")
        self._at += 1
        return int(digits)

    def _atom(self) -> Any:
        token = self.token
        if token.isdecimal():
            return self._integer()
        if self.take("("):
            inner = self.sum()
            if not self.take(")"):
                self.fail("')'")
            return inner
        if not (token[:1].isalpha() or token[:1] == "_"):
            self.fail("an integer, a name or '('")
        self._at += 1
        if token in _OPERATIONS and self.token == "(":
            return self._operation(token)
        return self.scope.variable(token)

    def _operation(self, name: str) -> Any:
        self._at += 1
        operands = [self.sum()]
        while self.take(","):
            operands.append(self.sum())
        if not self.take(")") or len(operands) != _OPERATIONS[name]:
            self.fail(f"')' behind {_OPERATIONS[name]} operands of {name}")
        if name == "non_negative":
            return COMPUTE["max"](self.scope, operands[0], 0)
        return COMPUTE[name](self.scope, *operands)


_COMPARISON = re.compile("==|>=|<=")


def parse_constraint(scope: SymbolicScope, text: str) -> tuple[Any, str, Any]:
    """The sides of a comparison, and which it is.

    Raises:
      ValueError: it is none, or a side cannot be read.
    """
    found = _COMPARISON.findall(text)
    if len(found) != 1:
        raise ValueError("Constraint parsing error: must contain one of '==' or '>=' or '<=', got "
                         f"{text!r}")
    first, second = text.split(found[0])
    return Parser(scope, first).dimension(), found[0], Parser(scope, second).dimension()
