"""Methods and properties that values of a library's own type have, beside those of arrays.

Tracers get a name when a class of a type is made that has it: what nobody asked for costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any

from pyjx.core.avals import ShapedArray
from pyjx.core.trace import Tracer


class _Member:
    """What the class of a type has for its values."""

    def __set_name__(self, owner: type, name: str) -> None:
        _give_tracers(name)


class aval_method(_Member):
    """A method that values of a type have, `fun(value, *args)`: an attribute of the type's class.

    >>> import pyjx as jax
    >>> from pyjx.experimental import hijax
    >>> class Celsius(hijax.AbstractValue):
    ...     scaled = hijax.aval_method(lambda self, by: f"{by} times")
    >>> jax.core.Tracer(None, Celsius()).scaled(3)
    '3 times'
    """

    fun: Callable[..., Any]

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun


class aval_property(_Member):
    """A property that values of a type have, `fget(value)`: an attribute of the type's class."""

    fget: Callable[..., Any]

    def __init__(self, fget: Callable[..., Any]) -> None:
        self.fget = fget


class _OfType:
    """What a tracer has by a name: a member of its type or, without one, what tracers had."""

    __slots__ = ("_had", "_name")

    def __init__(self, name: str, had: Any) -> None:
        self._name = name
        self._had = had

    def __get__(self, tracer: Any, cls: type) -> Any:
        if tracer is not None and type(tracer.aval) is not ShapedArray:
            own = getattr(type(tracer.aval), self._name, None)
            if type(own) is aval_method:
                return MethodType(own.fun, tracer)
            if type(own) is aval_property:
                return own.fget(tracer)
        if self._had is None:
            raise AttributeError(f"{cls.__name__!r} object has no attribute {self._name!r}")
        return self._had.__get__(tracer, cls)


def _give_tracers(name: str) -> None:
    """Let tracers ask their type for a name, unless it is what they themselves are made of."""
    if name in Tracer.__slots__ or name.startswith("__"):
        return
    getattr(Tracer, name, None)  # what is put in its place when first used is so now
    had = vars(Tracer).get(name)
    if type(had) is not _OfType:
        setattr(Tracer, name, _OfType(name, had))
