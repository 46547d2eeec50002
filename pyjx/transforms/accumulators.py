"""Gradient accumulators: what backward rules add cotangents to, where they do not return them."""

from __future__ import annotations

from typing import Any

from pyjx.core.avals import AbstractValue, ShapedArray, get_aval
from pyjx.engine.functions import check_values
from pyjx.engine.tangents import Zero, add_tangents
from pyjx.tree_util import tree_map


class GradAccum:
    """Where a backward rule puts the cotangent of an operand, which is of the type `aval`."""

    aval: Any

    def __init__(self, aval: AbstractValue) -> None:
        self.aval = aval

    def accum(self, x: Any) -> None:
        """Add a cotangent."""
        raise NotImplementedError(f"{type(self).__name__} must override accum")

    def freeze(self) -> Any:
        """The sum; nothing is added any more."""
        raise NotImplementedError(f"{type(self).__name__} must override freeze")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.aval})"


class NullAccum(GradAccum):
    """For an operand whose cotangent nobody asks for."""

    def accum(self, x: Any) -> None:
        """Nothing is kept."""

    def freeze(self) -> Any:
        return Zero(self.aval)


class ValAccum(GradAccum):
    """A sum that is a value.

    >>> import pyjx as jax
    >>> from pyjx.experimental.hijax import ValAccum
    >>> total = ValAccum(jax.typeof(1.0))
    >>> total.accum(2.0)
    >>> total.accum(3.0)
    >>> float(total.freeze())
    5.0
    """

    val: Any

    def __init__(self, aval: AbstractValue, val: Any = None) -> None:
        super().__init__(aval)
        self.val = val

    def accum(self, x: Any) -> None:
        """Add a cotangent.

        Raises:
          TypeError: it is not an array.
          ValueError: it is of another shape.
        """
        if is_nothing(self.aval, x):
            return
        self.val = x if self.val is None else tree_map(add_tangents, self.val, x)

    def freeze(self) -> Any:
        return Zero(self.aval) if self.val is None else self.val


def is_nothing(aval: Any, x: Any) -> bool:
    """Whether a cotangent stands for zeros; raises unless it is one of the type."""
    if x is None or type(x) is Zero:
        return True
    if type(aval) is ShapedArray:
        check_values([x])
        found = get_aval(x)
        if found.shape != aval.shape:
            raise ValueError(
                f"Expected cotangent type {aval.str_short()} but got {found.str_short()}")
    return False
