"""A dict of bounded size, for caches with a key for each shape."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from weakref import WeakValueDictionary

_all: WeakValueDictionary[int, BoundedDict] = WeakValueDictionary()  # by id


class BoundedDict(dict[Any, Any]):
    """A dict that forgets what was put in first when there is too much.

    Looking up costs what it costs in any dict.

    >>> cache = BoundedDict(2)
    >>> for n in range(4):
    ...     cache[n] = str(n)
    >>> dict(cache)
    {2: '2', 3: '3'}
    """

    __slots__ = ("__weakref__", "capacity")

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self.capacity = capacity
        _all[id(self)] = self

    def __setitem__(self, key: Any, value: Any) -> None:
        if len(self) >= self.capacity and key not in self:
            with suppress(RuntimeError, StopIteration):  # another thread was faster
                self.pop(next(iter(self)), None)
        super().__setitem__(key, value)


def sizes() -> tuple[int, int]:
    """How many entries all dicts of this class have, and how many they may have."""
    caches = list(_all.values())
    return sum([len(c) for c in caches]), sum([c.capacity for c in caches])


def clear_all() -> None:
    """Empty all dicts of this class."""
    for cache in list(_all.values()):
        cache.clear()
