"""Keys of what programs are made of: of a jaxpr a structural key, which hashes its equations and
what they hold, so that two which were traced apart have equal keys where they compute the same; of
parameters one that tells apart what == does not: 1 and True, and the two zeros of floats."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from pyjx.core.bounded import BoundedDict
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, Var, jaxprs_in_params


class _NoKeyError(Exception):
    """A parameter that only its identity can tell from others."""


class Contents:
    """A key that is hashed once.

    `plain` says that the program holds neither constants nor functions of the user's, which would
    live as long as something is kept by the key.
    """

    __slots__ = ("_hash", "_parts", "plain")

    def __init__(self, parts: Hashable, plain: bool) -> None:
        self._parts = parts
        self.plain = plain
        self._hash = hash(parts)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is Contents and self._hash == other._hash
                                 and self._parts == other._parts)


def contents(closed: ClosedJaxpr) -> Contents | None:
    """A key of what a program computes, whatever its derivatives are; None where it has none.

    It holds the program's constants by identity: who keeps the key keeps the program.
    """
    found = closed.contents
    if found is None:
        try:
            found = Contents((_jaxpr_key(closed.jaxpr), tuple(map(id, closed.consts))),
                             not closed.consts and _is_plain(closed.jaxpr))
        except _NoKeyError:
            found = False
        closed.contents = found
    return found or None


def params_key(params: Mapping[str, Any]) -> Hashable | None:
    """A key of the parameters of an operation, in which programs stand as their contents; None
    where there is none."""
    try:
        return tuple([(name, _value_key(value)) for name, value in params.items()])
    except _NoKeyError:
        return None


def places(params: dict[str, Any]) -> Hashable:
    """A key of where the operations were made that the programs among parameters hold."""
    return tuple([(eqn.source_info.traceback, places(eqn.params))
                  for jaxpr in jaxprs_in_params(params) for eqn in jaxpr.eqns])


_known = BoundedDict(1024, "programs by their contents")


def deduplicated(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A program of the same contents that was traced before; this one where there is none, or where
    it is not plain: the derivatives of its operations may be others."""
    key = contents(closed)
    if key is None or not key.plain:
        return closed
    return _known.setdefault(key, closed)  # type: ignore[no-any-return]


def _is_plain(jaxpr: Jaxpr) -> bool:
    return not any([e.primitive.holder.stands_for is not None or not are_plain(e.params)
                    for e in jaxpr.eqns])


def are_plain(params: Mapping[str, Any]) -> bool:
    """Whether parameters hold neither constants nor functions, in programs among them neither."""
    return all(map(_is_plain_value, params.values()))


def _is_plain_value(value: Any) -> bool:
    if type(value) is ClosedJaxpr:
        found = contents(value)
        return found is not None and found.plain
    if type(value) is Jaxpr:
        return _is_plain(value)
    if type(value) is tuple or type(value) is list:
        return all(map(_is_plain_value, value))
    return isinstance(value, type) or not callable(value)


def kept_with(params: Mapping[str, object]) -> dict[Hashable, Any]:
    """What is kept with the first program among the parameters of an operation."""
    for value in params.values():
        if type(value) is tuple and value:
            value = value[0]
        if type(value) is ClosedJaxpr:
            if value.derived is None:
                value.derived = {}
            if kept_with not in value.derived:
                value.derived[kept_with] = BoundedDict(64, "operations that hold programs")
            return value.derived[kept_with]  # type: ignore[no-any-return]
    return {}


def copied(value: Any) -> Any:
    """Parameters whose programs are others: what is kept with a program must not hold it."""
    if type(value) is dict:
        return {name: copied(x) for name, x in value.items()}
    if type(value) is ClosedJaxpr:
        return value.replace()
    return type(value)(map(copied, value)) if type(value) in (tuple, list) else value


def _closed_key(closed: ClosedJaxpr) -> Hashable:
    found = contents(closed)
    if found is None:
        raise _NoKeyError
    return found


def _jaxpr_key(jaxpr: Jaxpr) -> Hashable:
    numbers: dict[Any, int] = {}

    def made(variables: Sequence[Any]) -> Hashable:
        for v in variables:
            numbers[v] = len(numbers)
        return tuple([v.aval for v in variables])

    def read(atoms: Sequence[Any]) -> Hashable:
        return tuple([numbers[a] if isinstance(a, Var) else (type(a.val), a.key) for a in atoms])

    parts: list[Hashable] = [made(jaxpr.constvars), made(jaxpr.invars)]
    for eqn in jaxpr.eqns:
        primitive, params = eqn.primitive, eqn.params
        rule = primitive.holder.stands_for
        parts.append((primitive, read(eqn.invars), made(eqn.outvars),
                      _value_key(params) if rule is None else _closed_key(rule(params))))
    return *parts, read(jaxpr.outvars)


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
    if isinstance(value, (np.ndarray, np.generic)):
        return kind, value.dtype, value.shape, value.tobytes()
    try:
        hash(value)
    except TypeError:
        raise _NoKeyError from None
    return kind, value
