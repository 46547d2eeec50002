"""Values of the traced flags, as one object: what a compiled function is keyed by.

There is one for each set of values, so it is compared by identity. Nothing here keeps one alive, or
the values that it holds, such as devices: whoever is keyed by it does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol
from weakref import WeakValueDictionary, ref


class Flag(Protocol):
    @property
    def default(self) -> Any: ...


Reference = Callable[[], "FlagValues | None"]


def _nothing() -> None:
    return None


class FlagValues:
    """Values of some traced flags, by flag. Equal ones are one object; make it by `flag_values`."""

    __slots__ = ("__weakref__", "_latest", "by_flag")

    def __init__(self, by_flag: Mapping[Any, Any]) -> None:
        self.by_flag = by_flag
        self._latest: tuple[Reference, Reference] = _nothing, _nothing

    def with_one(self, flag: Flag, value: Any) -> FlagValues:
        """These values but for that of one flag."""
        return flag_values({**self.by_flag, flag: value})

    def without(self, flag: Flag) -> FlagValues:
        """These values without that of one flag."""
        return flag_values({k: v for k, v in self.by_flag.items() if k is not flag})

    def over(self, below: FlagValues) -> FlagValues:
        """What holds where these override others: all values that are not the defaults."""
        latest, found = self._latest
        kept = found() if latest() is below else None
        if kept is None:
            merged = {**below.by_flag, **self.by_flag}
            kept = flag_values({k: v for k, v in merged.items() if v != k.default})
            self._latest = ref(below), ref(kept)
        return kept


_interned: WeakValueDictionary[frozenset[tuple[Any, Any]], FlagValues] = WeakValueDictionary()
_lock = threading.RLock()  # the collector may run a finalizer here that enters a context of a flag


def flag_values(by_flag: Mapping[Any, Any]) -> FlagValues:
    key = frozenset(by_flag.items())
    found = _interned.get(key)
    if found is None:
        made = FlagValues(by_flag)
        with _lock:
            found = _interned.setdefault(key, made)
    return found
