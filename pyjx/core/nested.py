"""Jaxprs among the parameters of equations."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from operator import is_
from typing import Any

from pyjx.core.derived import derived_structure
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn

_JAXPRS = (ClosedJaxpr, Jaxpr)


def holds_jaxprs(eqn: JaxprEqn) -> bool:
    """Whether a parameter is a jaxpr or a sequence of some.

    It is asked of every equation, so it looks at the first element of a sequence alone.
    """
    for value in eqn.params.values():
        kind = type(value)
        if (kind is tuple or kind is list) and value:
            kind = type(value[0])
        if kind in _JAXPRS:
            return True
    return False


@derived_structure
def holders(closed: ClosedJaxpr) -> tuple[JaxprEqn, ...]:
    """The equations of a program that hold jaxprs."""
    return holders_in(closed.jaxpr)


def holders_in(jaxpr: Jaxpr) -> tuple[JaxprEqn, ...]:
    return tuple([e for e in jaxpr.eqns if e.params and holds_jaxprs(e)])


def within(eqn: JaxprEqn) -> AbstractContextManager[Any]:
    """The context in which programs that an equation holds are traced anew."""
    rule = eqn.primitive.within
    return nullcontext() if rule is None else rule(eqn.params)


def map_jaxprs(params: dict[str, Any], closed: Callable[[ClosedJaxpr], ClosedJaxpr],
               jaxpr: Callable[[Jaxpr], Jaxpr]) -> dict[str, Any]:
    """The parameters with each jaxpr replaced by what the functions give for it; the same ones if
    these give back what they get."""
    mapped = {name: _mapped(value, closed, jaxpr) for name, value in params.items()}
    return params if all(map(is_, mapped.values(), params.values())) else mapped


def _mapped(value: Any, closed: Callable[[ClosedJaxpr], ClosedJaxpr],
            jaxpr: Callable[[Jaxpr], Jaxpr]) -> Any:
    if isinstance(value, ClosedJaxpr):
        return closed(value)
    if isinstance(value, Jaxpr):
        return jaxpr(value)
    if type(value) in (tuple, list) and any([isinstance(v, _JAXPRS) for v in value]):
        parts = [_mapped(v, closed, jaxpr) for v in value]
        return value if all(map(is_, parts, value)) else type(value)(parts)
    return value
