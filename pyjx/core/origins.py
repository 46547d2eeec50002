"""Where a value of a program that is being recorded came from, and who keeps it, as messages say
it."""

from __future__ import annotations

import gc
import sys
from collections import deque
from collections.abc import Iterator
from types import CellType, FrameType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from pyjx import configuration
from pyjx.core.frames import user_frames
from pyjx.core.jaxpr import DebugInfo, JaxprEqn, Var

if TYPE_CHECKING:
    from pyjx.core.trace import DynamicJaxprTrace

_MOST_LINES = 5


def origin(trace: DynamicJaxprTrace, var: Var, eqn: JaxprEqn | None) -> str:
    """Which arguments a value depends on, and the operation that made it; of a constant, that it
    is one; of a value that leaked, that."""
    if not trace.alive:
        return leaked_origin(trace, eqn)
    debug = trace.debug_info
    positions, sources = _progenitors(trace, var)
    text = (f"\nThe error occurred while tracing the function {debug.func_src_info} for "
            f"{debug.traced_for}.")
    if positions:
        text += (" This concrete value was not available in Python because it depends on "
                 f"{_arguments(debug, positions)}.")
    elif eqn is None:
        return text + (" The value is a constant of the program; use NumPy for arrays whose values "
                       "Python needs.")
    elif sources:
        lines = [f"\n  `{e.primitive.name}` at {_places(debug, e)[0]}" for e in sources]
        return text + ("\nThe value depends on no argument. It is traced because of operations on "
                       f"these lines:{''.join(lines[:_MOST_LINES])}"
                       + "\n  ..." * (len(lines) > _MOST_LINES))
    if eqn is None:
        return text
    first, *others = _places(debug, eqn)
    called = "".join([f"\n  called at {where}" for where in others])
    return f"{text} The value came from the operation `{eqn.primitive.name}` at {first}.{called}"


def leaked_origin(trace: DynamicJaxprTrace, eqn: JaxprEqn | None) -> str:
    """Which function a value escaped from, and the operation that made it."""
    debug = trace.debug_info
    text = (f"\nThe function being traced when the value leaked was {debug.func_src_info} traced "
            f"for {debug.traced_for}.")
    if eqn is not None:
        first, *others = _places(debug, eqn)
        text += (f"\nThe leaked intermediate value was created on line {first} by the operation "
                 f"`{eqn.primitive.name}`." + "".join([f"\n  called at {w}" for w in others]))
    return text


def _progenitors(trace: DynamicJaxprTrace, var: Var) -> tuple[list[int], list[JaxprEqn]]:
    """What `var` is computed of: positions of arguments, and equations without operands."""
    needed, sources = {var}, []
    for eqn in reversed(trace.eqns):
        if not needed.isdisjoint(eqn.outvars):
            operands = [x for x in eqn.invars if isinstance(x, Var)]
            needed.update(operands)
            if not operands:
                sources.append(eqn)
    return [i for i, v in enumerate(trace.invars) if v in needed], sources[::-1]


def _arguments(debug: DebugInfo, positions: list[int]) -> str:
    """The arguments at the positions, by name where they have names."""
    names = debug.arg_names or ()
    if max(positions) >= len(names):
        return "the values of the arguments"
    *others, last = [names[i] for i in positions]
    if not others:
        return f"the value of the argument {last}"
    return f"the values of the arguments {', '.join(others)}{',' * (len(others) > 1)} and {last}"


def _places(debug: DebugInfo, eqn: JaxprEqn) -> list[str]:
    """Where an equation was made, and the calls that led there from the traced function."""
    limit = max(1, configuration.tracer_error_num_traceback_frames.value)
    places = []
    for f in user_frames(eqn.source_info.traceback, limit):
        if f.file_name == "<frozen runpy>":  # which runs a module that was named
            break
        places.append(str(f))
        if debug.func_src_info.startswith(
                f"{f.function_name.rpartition('.')[2]} at {f.file_name}:"):
            break
    return places or ["unknown"]


# -- the way from a value to a variable of a module, for the error of leaks ------------------------

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
    last, named, end = x, None, None
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
            if named is None and isinstance(holder, FunctionType):  # all behind it is Python's
                named = holder
    lines = [end] if end else []
    last = last if end or named is None else named
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
