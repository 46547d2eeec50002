"""Short texts for values that a record must not hold, and names for the parameters of a function.

No code of the user's runs for them: no `__repr__`, no properties.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from pyjx.core.trace import Tracer
from pyjx.jaxlib_api import ArrayImpl, PjitFunction
from pyjx.runtime.signature import Parameters, parameters_of_code

_LONGEST = 60  # characters of one value
_MOST = 6  # elements of a container
_DEEPEST = 3
_PLAIN = (bool, float, complex, type(None), type(Ellipsis))


def brief(x: Any, depth: int = 0) -> str:
    """A text of bounded length for any value, made without running code of its class.

    >>> brief((1, {"a": 2.5}))
    "(1, {'a': 2.5})"
    """
    kind = type(x)
    if kind in _PLAIN:
        return repr(x)
    if kind is int:
        return repr(x) if x.bit_length() <= 128 else f"<int of {x.bit_length()} bits>"
    if kind in (str, bytes):
        return repr(x) if len(x) <= _LONGEST else f"{x[:_LONGEST]!r}..."
    # By the type, as `isinstance` would ask proxies for what they stand for.
    if issubclass(kind, (np.ndarray, np.generic, ArrayImpl, Tracer)):
        return f"{x.dtype}[{','.join(map(str, x.shape))}]"
    if issubclass(kind, np.dtype):
        return str(x)
    if issubclass(kind, type):
        return _name(x)
    if issubclass(kind, (FunctionType, BuiltinFunctionType, MethodType, partial, PjitFunction)):
        return _function(x, depth)
    if depth >= _DEEPEST:
        return f"<{_name(kind)}>"
    if kind in (tuple, list, set, frozenset):
        return _sequence(x, depth)
    if kind is dict:
        items = [f"{brief(k, depth + 1)}: {brief(v, depth + 1)}" for k, v in _first(x.items())]
        return "{" + ", ".join(items) + (", ..." if len(x) > _MOST else "") + "}"
    return _object(x, depth)


def _first(items: Any) -> list[Any]:
    return [item for item, _ in zip(items, range(_MOST), strict=False)]


def _sequence(x: Any, depth: int) -> str:
    texts = [brief(v, depth + 1) for v in _first(x)]
    if type(x) in (set, frozenset):
        texts.sort()
    inside = ", ".join(texts) + (", ..." if len(x) > _MOST else "")
    if type(x) is tuple:
        return f"({inside},)" if len(x) == 1 else f"({inside})"
    if type(x) is list:
        return f"[{inside}]"
    return f"{type(x).__name__}({{{inside}}})"


def _function(x: Any, depth: int) -> str:
    if isinstance(x, partial):
        given = [brief(v, depth + 1) for v in _first(x.args)]
        given += [f"{k}={brief(v, depth + 1)}" for k, v in _first(x.keywords.items())]
        return f"partial({', '.join([brief(x.func, depth + 1), *given])})"
    name = getattr(x, "__qualname__", None) or getattr(x, "__name__", type(x).__name__)
    code = getattr(x, "__code__", None)
    return f"{name} ({place_of(code)})" if code is not None else str(name)


def _object(x: Any, depth: int) -> str:
    """The fields of a named tuple or a data class, the name of an enumeration's member; else the
    name of the class alone."""
    kind = type(x)
    name = _name(kind)
    fields = _of_class(kind, "_fields") if issubclass(kind, tuple) else None
    if type(fields) is tuple:
        return _fields(name, list(zip(fields, tuple.__iter__(x), strict=False)), depth)
    declared = _of_class(kind, "__dataclass_fields__")
    if type(declared) is not dict and not issubclass(kind, Enum):
        return f"<{name}>"
    held = object.__getattribute__(x, "__dict__") if kind.__dictoffset__ else {}
    if type(declared) is dict:
        return _fields(name, [(f, held[f]) for f in declared if f in held], depth)
    return f"{name}.{held['_name_']}"


def _of_class(kind: type, name: str) -> Any:
    """What a class or one that it inherits from defines, looked up without its metaclass."""
    return next((vars(c)[name] for c in kind.__mro__ if name in vars(c)), None)


def _name(kind: type) -> str:
    return type.__dict__["__qualname__"].__get__(kind)  # type: ignore[no-any-return]


def _fields(name: str, pairs: list[tuple[str, Any]], depth: int) -> str:
    texts = [f"{f}={brief(v, depth + 1)}" for f, v in pairs[:_MOST]]
    return f"{name}({', '.join(texts)}{', ...' if len(pairs) > _MOST else ''})"


def place_of(code: CodeType) -> str:
    """`file.py:12`, where a function is defined."""
    return f"{code.co_filename}:{code.co_firstlineno}"


class Source:
    """What a callable is made of, as far as a record may hold it.

    Attributes:
      made: what kind of callable it is: `function`, `partial`, `method`, `wrapper` or `object`.
      code: of the innermost function of the user's; None for what is not written in Python.
      skipped: how many of its first parameters are already given.
      captured: names and short texts of what it has with it: the values of its closure and its
        defaults, the arguments of a partial, the object of a method.
    """

    __slots__ = ("captured", "code", "made", "skipped")

    def __init__(self, made: str, code: CodeType | None, skipped: int,
                 captured: tuple[tuple[str, str], ...]) -> None:
        self.made = made
        self.code = code
        self.skipped = skipped
        self.captured = captured

    def parameters(self) -> Parameters | None:
        """The names of its parameters."""
        if self.code is None:
            return None
        p = parameters_of_code(self.code)
        n = self.skipped
        return Parameters(p.positional[n:], p.every[n:], p.variadic, p.keywords) if n else p


def source_of(fun: Callable[..., Any]) -> Source:
    """What `fun` is made of."""
    made, skipped = "", 0
    captured: list[tuple[str, str]] = []
    while True:
        if type(fun) is FunctionType:
            inner = fun.__dict__.get("__wrapped__")
            if inner is None or not callable(inner):
                known = {name for name, _ in captured}
                captured += [pair for pair in _captured_by(fun) if pair[0] not in known]
                return Source(made or "function", fun.__code__, skipped, tuple(captured))
            made, fun = made or "wrapper", inner
        elif isinstance(fun, partial):
            made = made or "partial"
            captured += [(f"argument {i}", brief(x)) for i, x in enumerate(fun.args)]
            captured += [(k, brief(x)) for k, x in fun.keywords.items()]
            skipped += len(fun.args)
            fun = fun.func
        elif type(fun) is MethodType:
            made = made or "method"
            captured.append(("self", brief(fun.__self__)))
            skipped += 1
            fun = fun.__func__
        else:
            inner = getattr(fun, "__wrapped__", None)
            if inner is None:
                call = type(fun).__call__
                code = call.__code__ if type(call) is FunctionType else None
                captured.append(("self", brief(fun)))
                return Source(made or "object", code, skipped + 1, tuple(captured))
            made, fun = made or "wrapper", inner


def _captured_by(fun: FunctionType) -> list[tuple[str, str]]:
    captured = []
    if fun.__closure__:
        for name, cell in zip(fun.__code__.co_freevars, fun.__closure__, strict=True):
            try:
                captured.append((name, brief(cell.cell_contents)))
            except ValueError:  # not set yet
                continue
    if fun.__defaults__:
        names = fun.__code__.co_varnames[:fun.__code__.co_argcount][-len(fun.__defaults__):]
        captured += [(n, brief(x)) for n, x in zip(names, fun.__defaults__, strict=True)]
    if fun.__kwdefaults__:
        captured += [(n, brief(x)) for n, x in fun.__kwdefaults__.items()]
    return captured
