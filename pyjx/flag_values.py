"""Values of the traced flags, as one object: what a compiled function is keyed by.

There is one for each set of values, so it is compared by identity. Nothing here keeps one alive, or
the values that it holds, such as devices: whoever is keyed by it does.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, Protocol
from weakref import WeakValueDictionary


class Flag(Protocol):
    @property
    def default(self) -> Any: ...


class FlagValues:
    """Values of some traced flags, by flag. Equal ones are one object; make it by `flag_values`."""

    __slots__ = ("__weakref__", "_latest", "by_flag")

    def __init__(self, by_flag: Mapping[Any, Any]) -> None:
        self.by_flag = by_flag
        self._latest: tuple[FlagValues | None, FlagValues | None] = None, None

    def with_one(self, flag: Flag, value: Any) -> FlagValues:
        """These values but for that of one flag."""
        return flag_values({**self.by_flag, flag: value})

    def without(self, flag: Flag) -> FlagValues:
        """These values without that of one flag."""
        return flag_values({k: v for k, v in self.by_flag.items() if k is not flag})

    def over(self, below: FlagValues) -> FlagValues:
        """What holds where these override others: all values that are not the defaults."""
        latest, found = self._latest
        if latest is not below:
            merged = {**below.by_flag, **self.by_flag}
            found = flag_values({k: v for k, v in merged.items() if v != k.default})
            found = None if found is self else found  # a cycle would have to wait for the collector
            self._latest = below, found
        return self if found is None else found


_interned: WeakValueDictionary[frozenset[tuple[Any, Any]], FlagValues] = WeakValueDictionary()
_lock = threading.Lock()


def flag_values(by_flag: Mapping[Any, Any]) -> FlagValues:
    key = frozenset(by_flag.items())
    found = _interned.get(key)
    if found is None:
        with _lock:
            found = _interned.get(key)
            if found is None:
                found = _interned[key] = FlagValues(by_flag)
    return found
