"""Objects beside devices, which are those of this process."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from pyjx.experimental.colocated_python.func import colocated_python
from pyjx.lazy import directory

__all__ = ["colocated_python_class"]
__dir__ = directory(__name__, __all__)


class _Method:
    """A method whose object is made when one of its methods is called."""

    def __init__(self, name: str, method: Callable[..., Any]) -> None:
        self.name = name
        self.method = method

    def __get__(self, this: Any, owner: type | None = None) -> Any:
        if this is None:
            return self.method

        @functools.wraps(self.method)
        def call(*args: Any, **kwargs: Any) -> Any:
            return getattr(this._made(), self.name)(*args, **kwargs)

        return colocated_python(call)


def colocated_python_class(cls: type) -> type:
    """A class whose objects live beside devices: in this process.

    Its public methods, which take and return pytrees of arrays, are functions as `colocated_python`
    gives them; nothing else of an object is to be seen. An object of `cls` is made when one of its
    methods is called for the first time.

    Raises:
      TypeError: `cls` is no class.

    >>> import pyjx as jax
    >>> from pyjx.experimental import colocated_python
    >>> @colocated_python.colocated_python_class
    ... class Counter:
    ...     def __init__(self, start):
    ...         self.n = start
    ...
    ...     def add(self, x):
    ...         self.n = self.n + x
    ...         return self.n
    >>> counter = Counter(5)
    >>> print(counter.add(jax.numpy.array(1)), counter.add(jax.numpy.array(1)))
    6 7
    """
    if not isinstance(cls, type):
        raise TypeError(f"colocated_python_class expects a class, got {cls!r}.")

    @functools.wraps(cls.__init__)  # type: ignore[misc]
    def start(this: Any, *args: Any, **kwargs: Any) -> None:
        this._made = functools.cache(lambda: cls(*args, **kwargs))

    methods = {name: _Method(name, method)
               for name, method in inspect.getmembers(cls, inspect.isfunction)
               if not name.startswith("_")}
    named = {"__doc__": cls.__doc__, "__module__": cls.__module__, "__qualname__": cls.__qualname__}
    return type(cls.__name__, (), {**named, **methods, "__init__": start})
