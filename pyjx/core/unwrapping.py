"""What callables are made of: functions of partials, methods, wrappers and transformations."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from inspect import getattr_static
from types import CodeType, FunctionType, MethodType
from typing import Any

from pyjx.core.frames import is_internal

_TRANSFORMATIONS = frozenset((  # whose wrappers are functions that they define
    "checkify", "checkpoint", "closure_convert", "custom_gradient", "grad", "hessian", "jacfwd",
    "jacrev", "make_jaxpr", "pmap", "shard_map", "sparsify", "value_and_grad", "vectorize", "vmap"))
_DEEPEST = 1000  # layers, as a property may make a new one each time it is asked


def layers(fun: Any) -> list[Any]:
    """A callable, what it is made of, and so on, up to what is made of none: the functions of
    partials and of bound methods, and what others say that they wrap.

    >>> [type(x).__name__ for x in layers(partial(partial(print, 1).__call__, 2))]
    ['partial', 'method-wrapper']
    """
    found: list[Any] = []
    while callable(fun) and len(found) < _DEEPEST and not any([fun is x for x in found]):
        found.append(fun)
        fun = _wrapped_by(fun)
    return found


def _wrapped_by(fun: Any) -> Any:
    if isinstance(fun, partial):
        return fun.func
    if isinstance(fun, MethodType):
        return fun.__func__
    if isinstance(fun, FunctionType):  # of which nothing else is found, in a tenth of the time
        return fun.__dict__.get("__wrapped__")
    if getattr_static(fun, "__wrapped__", None) is not None:  # some objects answer to every name
        with suppress(Exception):  # of a property
            return fun.__wrapped__
    return None


def users_function(fun: Any) -> FunctionType | None:
    """The innermost function of the user's that a callable is made of."""
    return next((x for x in reversed(layers(fun)) if _is_users(x)), None)


def _is_users(x: Any) -> bool:
    return type(x) is FunctionType and not is_internal(x.__code__.co_filename)


def transformations(fun: Any) -> list[str]:
    """The public transformations that a user's function went through, the outermost first, but for
    jit, which is often a decorator; none where no user's function is within."""
    made: list[str] = []
    for x in layers(fun):
        if _is_users(x):
            return made
        if type(x) is FunctionType:
            name = x.__code__.co_qualname.partition(".")[0].lstrip("_")
            made += [name] * (name in _TRANSFORMATIONS)
    return []


def users_place(fun: Any) -> str:
    """Where the user's function is defined that a callable is made of; empty where there is none.
    """
    of_user = users_function(fun)
    return "" if of_user is None else place_of(of_user.__code__)


def place_of(code: CodeType) -> str:
    """`file.py:12`, where a function is defined."""
    return f"{code.co_filename}:{code.co_firstlineno}"
