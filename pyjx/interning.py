"""Objects of which there is one for each key, so that comparing them is comparing identities."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable
from typing import Any


class _Missing:
    __slots__ = ()

    def __repr__(self) -> str:
        return "<not given>"


missing: Any = _Missing()  # the default of arguments that may be None


class Interned:
    """The objects of one kind that somebody holds, by what they are made of.

    All threads get the same one, and one that nobody holds any more goes.

    >>> table = Interned()
    >>> make = lambda *items: set(items)
    >>> pair = table.of((1, 2), make)
    >>> table.of((1, 2), make) is pair
    True
    """

    __slots__ = ("_known", "_lock", "references")

    def __init__(self) -> None:
        self._known: weakref.WeakValueDictionary[Any, Any] = weakref.WeakValueDictionary()
        self._lock = threading.RLock()  # a finalizer may run in a thread that has it
        # What looks objects up all the time reads the references themselves.
        self.references: dict[Any, weakref.ref[Any]] = self._known.data  # type: ignore[attr-defined]

    def of(self, key: Any, make: Callable[..., Any]) -> Any:
        """The object of this key, which is a tuple: that of `make(*key)` where there is none."""
        known = self.references.get(key)
        found = None if known is None else known()
        if found is None:
            with self._lock:
                found = self._known.get(key)
                if found is None:
                    found = self._known[key] = make(*key)
        return found

    def also(self, key: Hashable, found: object) -> None:
        """Let an object be found by another key, too."""
        self._known[key] = found
