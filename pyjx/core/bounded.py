"""A dict of bounded size, for caches with a key for each shape."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from contextlib import suppress
from functools import wraps
from typing import Any, TypeVar, cast
from weakref import WeakValueDictionary

F = TypeVar("F", bound=Callable[..., Any])

_all: WeakValueDictionary[int, BoundedDict] = WeakValueDictionary()  # by id


class BoundedDict(dict[Any, Any]):
    """A dict that forgets what was put in first when there is too much; `what` it holds is for
    those who read how much is kept.

    Looking up costs what it costs in any dict.

    >>> cache = BoundedDict(2)
    >>> for n in range(4):
    ...     cache[n] = str(n)
    ...
    >>> dict(cache)
    {2: '2', 3: '3'}
    """

    __slots__ = ("__weakref__", "capacity", "what")

    def __init__(self, capacity: int, what: str = "") -> None:
        super().__init__()
        self.capacity = capacity
        self.what = what
        _all[id(self)] = self

    def __setitem__(self, key: Any, value: Any) -> None:
        if len(self) >= self.capacity and key not in self:
            with suppress(RuntimeError, StopIteration):  # another thread was faster
                self.pop(next(iter(self)), None)
        super().__setitem__(key, value)

    # Those of dict put in by themselves.
    setdefault = MutableMapping.setdefault  # type: ignore[assignment]
    update = MutableMapping.update  # type: ignore[assignment]


_MISSING = object()


def kept(capacity: int, what: str = "facts that the library derives") -> Callable[[F], F]:
    """Keep what a function gives, for so many of its arguments, which are positional and hashable.

    >>> @kept(2)
    ... def squared(n):
    ...     print("computing")
    ...     return n * n
    ...
    >>> squared(3) + squared(3)
    computing
    18
    """

    def decorate(fun: F) -> F:
        known = BoundedDict(capacity, what)

        @wraps(fun)
        def of(*key: Any) -> Any:
            found = known.get(key, _MISSING)
            if found is _MISSING:
                found = known[key] = fun(*key)
            return found

        return cast(F, of)

    return decorate


def sizes() -> dict[str, tuple[int, int]]:
    """How many entries all dicts of this class have, and how many they may have, by what they
    hold."""
    found: dict[str, tuple[int, int]] = {}
    for cache in _all_now():
        entries, capacity = found.get(cache.what, (0, 0))
        found[cache.what] = entries + len(cache), capacity + cache.capacity
    return found


def clear_all() -> None:
    """Empty all dicts of this class."""
    for cache in _all_now():
        cache.clear()


def _all_now() -> list[BoundedDict]:
    # A list of references is made at once, whatever dicts other threads make meanwhile.
    return [cache for reference in _all.valuerefs() if (cache := reference()) is not None]
