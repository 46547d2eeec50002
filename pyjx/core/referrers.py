"""Who keeps a value alive: the way from it to a variable of a module, for the error of leaks."""

from __future__ import annotations

import gc
import sys
from collections import deque
from collections.abc import Iterator
from types import CellType, FrameType, FunctionType, ModuleType
from typing import Any

_MOST = 24  # objects that are looked at: for each of them the whole heap is walked


def referrers(x: Any, ignored: tuple[Any, ...] = ()) -> list[str]:
    """A line for each object on the way from `x` to a variable of a module, or to the last one that
    was found. What is in `ignored` is not looked at.

    >>> referrers(object())  # which nobody keeps
    []
    """
    ways: dict[int, tuple[Any, Any, str]] = {}  # how one came to an object
    seen = {id(x), *map(id, ignored)}
    queue: deque[Any] = deque([x])
    last, end = x, None
    while queue and end is None and len(seen) < _MOST:
        current = queue.popleft()
        for holder, how in _holders(current, seen):
            if holder is None:
                last, end = current, f"{_shown(current)} is referred to by {how}"
                break
            seen.add(id(holder))
            ways[id(holder)] = holder, current, how
            queue.append(holder)
            last = holder
    lines = [end] if end else []
    while id(last) in ways:
        _, inner, how = ways[id(last)]
        lines.append(f"{_shown(inner)} is referred to by {how}")
        last = inner
    return lines[::-1]


def _shown(x: Any) -> str:
    return f"<{type(x).__name__} {id(x)}>"


def _holders(x: Any, seen: set[int]) -> Iterator[tuple[Any, str]]:
    """What refers to `x`, and how; None in the place of a module, which has it in a variable."""
    for holder in gc.get_referrers(x):
        if isinstance(holder, (FrameType, ModuleType)) or id(holder) in seen:
            continue
        if type(holder) is dict:
            key = next((k for k, v in holder.items() if v is x), None)
            module = sys.modules.get(str(holder.get("__name__")))
            if module is not None and getattr(module, "__dict__", None) is holder:
                yield None, f"{module.__name__}.{key}"
                return
            owner = next((o for o in gc.get_referrers(holder)
                          if getattr(o, "__dict__", None) is holder), None)
            yield (holder, f"{_shown(holder)}[{key!r}]") if owner is None else (
                owner, f"{_shown(owner)}.{key}")
        elif isinstance(holder, (list, tuple)):
            at = next((i for i, v in enumerate(holder) if v is x), None)
            yield holder, f"{_shown(holder)}[{at}]"
        elif isinstance(holder, CellType):
            yield from _closures(holder)
        else:
            names = [name for name in _attributes(holder) if getattr(holder, name, None) is x]
            yield holder, _shown(holder) + (f".{names[0]}" if names else "")


def _closures(cell: CellType) -> Iterator[tuple[Any, str]]:
    """The functions that have a variable of an enclosing one."""
    for closure in gc.get_referrers(cell):
        for function in gc.get_referrers(closure) if type(closure) is tuple else ():
            if isinstance(function, FunctionType) and id(function.__closure__) == id(closure):
                name = function.__code__.co_freevars[[c is cell for c in closure].index(True)]
                yield function, (f"{_shown(function)} ({function.__qualname__}), which closes over "
                                 f"the variable {name}")


def _attributes(x: Any) -> list[str]:
    slots = [getattr(cls, "__slots__", ()) for cls in type(x).__mro__]
    own = getattr(x, "__dict__", None)
    return [*(own if isinstance(own, dict) else ()),
            *[name for names in slots for name in ((names,) if isinstance(names, str) else names)]]
