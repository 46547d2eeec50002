"""Gradient accumulators: what backward rules given by `defvjp_with_accums` add cotangents to."""

from __future__ import annotations

from typing import Any

from pyjx.core.avals import AbstractValue, get_aval
from pyjx.engine.functions import check_values
from pyjx.engine.tangents import Zero, add_tangents, materialized


class ValAccum:
    """The sum of what is added to it, a cotangent of the type `aval`.

    >>> from pyjx.core.avals import get_aval
    >>> total = ValAccum(get_aval(1.0))
    >>> total.accum(2.0)
    >>> total.accum(3.0)
    >>> float(total.freeze())
    5.0
    """

    __slots__ = ("aval", "val")

    def __init__(self, aval: Any, val: Any = None) -> None:
        self.aval = aval
        self.val = Zero(aval) if val is None else val

    def accum(self, x: Any) -> None:
        """Add a cotangent.

        Raises:
          TypeError: it is not an array.
          ValueError: it is of another shape.
        """
        if type(x) is Zero:
            return
        check_values([x])
        found = get_aval(x)
        if found.shape != self.aval.shape:
            raise ValueError(f"Expected cotangent type {self.aval.str_short()} but got "
                             f"{found.str_short()}")
        self.val = add_tangents(self.val, x)

    def freeze(self) -> Any:
        """The sum."""
        return materialized(self.val)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.aval})"


class NullAccum:
    """Takes the cotangents of an argument that is not differentiated, and forgets them."""

    __slots__ = ("aval",)

    def __init__(self, aval: AbstractValue) -> None:
        self.aval = aval

    def accum(self, x: Any) -> None:
        """Nothing is kept."""

    def freeze(self) -> Any:
        """Zero."""
        return materialized(Zero(self.aval))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.aval})"
