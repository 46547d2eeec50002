"""`jax._src.util`: functions that are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["HashablePartial"]


class HashablePartial:
    """A partial application that equals those of the same function and arguments.

    >>> HashablePartial(lambda x, y: x + y, 1)(2)
    3
    """

    def __init__(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        self.f, self.args, self.kwargs = f, args, kwargs

    def _parts(self) -> Iterator[Any]:
        yield from (self.f.__code__, self.args, tuple(self.kwargs.items()))

    def __eq__(self, other: object) -> bool:
        return type(other) is HashablePartial and [*self._parts()] == [*other._parts()]

    def __hash__(self) -> int:
        return hash(tuple(self._parts()))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.f(*self.args, *args, **self.kwargs, **kwargs)
