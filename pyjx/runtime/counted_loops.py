"""How often loops run that count from one number to another, whichever form they are read in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple


class Carried(NamedTuple):
    """A value that a loop carries, by its position."""

    position: int


class Number(NamedTuple):
    """A number, and the name of its type: `uint8`, `ui8`, `u8`."""

    value: int
    type: str

    def reaches(self, other: int) -> bool:
        """Whether another number is one of the type."""
        bits, signed = int("".join(filter(str.isdigit, self.type))), self.type[0] != "u"
        return -(1 << bits - 1) * signed <= other < 1 << bits - signed


# A number, what is carried, or an operation and its operands; None for others.
Known = Number | Carried | tuple[Any, ...] | None

_TURNED = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE"}
_SIGNS = {"add": 1, "sub": -1, "subtract": -1}


def trips(test: Known, carried: Sequence[tuple[Any, Any]], before: Callable[[Any], Known],
          inside: Callable[[Any], Known]) -> float | None:
    """How often a loop runs that counts from one number to another; None for other loops, such as
    those whose numbers begin again behind the largest one.

    Args:
      test: what is known of its test.
      carried: of all that it carries the values before it and at the end of its body.
      before, inside: give what is known of these two. They are asked of few.

    >>> i, same, (zero, one, three, ten) = Carried(0), lambda x: x, [
    ...     Number(n, "i32") for n in (0, 1, 3, 10)]
    >>> trips(("LT", i, ten), [(zero, ("stablehlo.add", three, i))], same, same)
    4.0
    >>> trips(("le", Carried(1), i), [(three, ("sub", i, one)), (zero, Carried(1))], same, same)
    4.0
    """
    def start(x: Known) -> Number | None:
        found = before(carried[x.position][0]) if isinstance(x, Carried) and \
            x.position < len(carried) else None
        return found if isinstance(found, Number) else None

    def number(x: Known) -> int | None:
        """A number, or what is carried and stays one."""
        first = start(x)
        if first is not None and isinstance(x, Carried):
            return first.value if inside(carried[x.position][1]) == x else None
        return x.value if isinstance(x, Number) else None

    match test:
        case (str(asked), i, limit):
            asked = asked.upper()
            if number(i) is not None:
                i, limit, asked = limit, i, _TURNED.get(asked, asked)
            first, last = start(i), number(limit)
            if first is not None and last is not None and isinstance(i, Carried):
                match inside(carried[i.position][1]):
                    case (str(made), a, b):
                        sign = _SIGNS.get(made.rpartition(".")[2], 0)
                        a, b = (b, a) if sign == 1 and a != i else (a, b)
                        step = sign * (number(b) or 0)
                        found = _steps(asked, last - first.value, step) if a == i else None
                        return found if found is not None and first.reaches(
                            first.value + int(found) * step) else None
    return None


def _steps(asked: str, distance: int, step: int) -> float | None:
    """How many steps there are until a test fails that compares with a number so far away."""
    if step < 0:
        asked, distance, step = _TURNED.get(asked, asked), -distance, -step
    if step and asked == "LT":
        return float(max(-(-distance // step), 0))
    if step and asked == "LE":
        return float(max(distance // step + 1, 0))
    return distance / step if step and asked == "NE" and distance >= 0 == distance % step else None
