"""Jaxprs among the parameters of equations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from operator import is_
from typing import Any

from pyjx.core.derived import derived_structure
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, jaxprs_in_params
from pyjx.core.primitive import Primitive

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


def all_eqns(jaxpr: Jaxpr | ClosedJaxpr) -> Iterator[JaxprEqn]:
    """The equations of a program, each before those of the programs that it holds."""
    for eqn in jaxpr.eqns:
        yield eqn
        if eqn.params and holds_jaxprs(eqn):
            for inner in jaxprs_in_params(eqn.params):
                yield from all_eqns(inner)


def program_of(primitive: Primitive, params: dict[str, Any]) -> ClosedJaxpr | None:
    """The program whose results on its operands are those of an operation, if it has one."""
    rule = primitive.holder.runs or primitive.holder.stands_for
    return None if rule is None else rule(params)


def within(eqn: JaxprEqn) -> AbstractContextManager[Any]:
    """The context in which programs that an equation holds are traced anew."""
    rule = eqn.primitive.holder.within
    return nullcontext() if rule is None else rule(eqn.params)


def map_jaxprs(params: dict[str, Any], closed: Callable[[ClosedJaxpr], ClosedJaxpr],
               jaxpr: Callable[[Jaxpr], Jaxpr]) -> dict[str, Any]:
    """The parameters with each jaxpr replaced by what the functions give for it; the same ones if
    these give back what they get."""
    mapped = dict(params)
    for name, value in params.items():  # in one frame, as programs are nested deeply
        if isinstance(value, ClosedJaxpr):
            mapped[name] = closed(value)
        elif isinstance(value, Jaxpr):
            mapped[name] = jaxpr(value)
        elif type(value) in (tuple, list) and any([isinstance(v, _JAXPRS) for v in value]):
            parts = []
            for v in value:
                parts.append(closed(v) if isinstance(v, ClosedJaxpr)
                             else jaxpr(v) if isinstance(v, Jaxpr) else v)
            if not all(map(is_, parts, value)):
                mapped[name] = type(value)(parts)
    return params if all(map(is_, mapped.values(), params.values())) else mapped
