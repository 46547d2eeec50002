"""A loop for decompositions: they are only lowered, never differentiated or batched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.primitive import Primitive
from pyjx.core.trace import trace_to_jaxpr


def _iterate_shape(*avals: ShapedArray, cond: ClosedJaxpr, body: ClosedJaxpr
                   ) -> Sequence[ShapedArray]:
    return avals


iterate_p = Primitive("iterate", shape_rule=_iterate_shape, multiple_results=True)


def iterate(cond: Callable[..., Any], body: Callable[..., Sequence[Any]], *init: Any) -> list[Any]:
    """`state = body(*state)` for as long as `cond(*state)`, a boolean scalar, holds.

    The two functions may not read arrays from outside: these belong to the state.
    """
    avals = [get_aval(x).strip_weak_type() for x in init]
    outs: list[Any] = iterate_p.bind(
        *init, cond=trace_to_jaxpr(lambda *xs: [cond(*xs)], avals),
        body=trace_to_jaxpr(lambda *xs: body(*xs), avals),
    )
    return outs
