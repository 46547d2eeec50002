"""What programs hold, as keys: equal where two of them, traced apart, compute the same."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var


class _NoKeyError(Exception):
    """A parameter that only its identity can tell from others."""


def contents(closed: ClosedJaxpr) -> Hashable | None:
    """A key of what a program computes, whatever its derivatives are; None where it has none.

    It holds the program's constants by identity: who keeps the key keeps the program.
    """
    try:
        return _closed_key(closed)
    except _NoKeyError:
        return None


def _closed_key(closed: ClosedJaxpr) -> Hashable:
    return _jaxpr_key(closed.jaxpr), tuple(map(id, closed.consts))


def _jaxpr_key(jaxpr: Jaxpr) -> Hashable:
    numbers: dict[Any, int] = {}

    def made(variables: Sequence[Any]) -> Hashable:
        for v in variables:
            numbers[v] = len(numbers)
        return tuple([v.aval for v in variables])

    def read(atoms: Sequence[Any]) -> Hashable:
        return tuple([numbers[a] if isinstance(a, Var) else _literal_key(a) for a in atoms])

    parts: list[Hashable] = [made(jaxpr.constvars), made(jaxpr.invars)]
    for eqn in jaxpr.eqns:
        primitive, params = eqn.primitive, eqn.params
        stands_for = None if primitive.lowered_as is None else primitive.lowered_as(params)
        parts.append((primitive, read(eqn.invars), made(eqn.outvars),
                      _value_key(params) if stands_for is None else _closed_key(stands_for)))
    return *parts, read(jaxpr.outvars)


def _literal_key(literal: Literal) -> Hashable:
    return type(literal.val), literal.key


def _value_key(value: Any) -> Hashable:
    kind = type(value)
    if kind is ClosedJaxpr:
        return _closed_key(value)
    if kind is Jaxpr:
        return _jaxpr_key(value)
    if kind is tuple or kind is list:
        return kind, tuple(map(_value_key, value))
    if kind is dict:
        return tuple([(name, _value_key(v)) for name, v in value.items()])
    if kind is float or kind is complex:  # zeros have signs
        return kind, repr(value)
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.tobytes()
    try:
        hash(value)
    except TypeError:
        raise _NoKeyError from None
    return kind, value
