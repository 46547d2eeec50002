"""Where a value of a program that is being recorded came from, and who keeps it, as messages say
it."""

from __future__ import annotations

import gc
import sys
from types import CellType, FrameType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from pyjx import configuration
from pyjx.core import dtypes
from pyjx.core.frames import is_internal, is_of_foundation, user_frames
from pyjx.core.jaxpr import DebugInfo, JaxprEqn, Var

if TYPE_CHECKING:
    from pyjx.core.trace import DynamicJaxprTrace, DynamicJaxprTracer

_MOST_LINES = 5


def origin(trace: DynamicJaxprTrace, var: Var, eqn: JaxprEqn | None) -> str:
    """Which arguments a value depends on, and the operation that made it; of a constant, that it
    is one; of a value that leaked, that."""
    if not trace.alive:
        return leaked_origin(trace, eqn)
    debug = trace.debug_info
    positions, sources = _progenitors(trace, var)
    text = (f"\nThe error occurred while tracing the function {debug.func_src_info} for "
            f"{_called(debug) or debug.traced_for}.")
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


def _called(debug: DebugInfo) -> str:
    """`eval_shape` or `make_jaxpr`, which share traces with `jit`, if a function is traced by one;
    found as the error arises, in the frames between the two functions of the user's."""
    frame, found = sys._getframe(), ""
    while frame.f_back and frame.f_locals.get("debug_info") is not debug:
        frame = frame.f_back
    while frame.f_back and is_internal(frame.f_code.co_filename):
        found, frame = frame.f_code.co_qualname.partition(".")[0], frame.f_back
    return found if found in ("eval_shape", "make_jaxpr") else ""


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


def is_of_arrays(tracer: DynamicJaxprTracer) -> bool:
    """Whether anything but numbers is among the arguments that a value is computed of: a function
    that computes with arrays cannot have them static."""
    if tracer._eqn is None:
        return False
    avals = [tracer._trace.invars[i].aval for i in _progenitors(tracer._trace, tracer._var)[0]]
    return any([getattr(a, "shape", None) != () or dtypes.is_extended(a.dtype) for a in avals])


def _arguments(debug: DebugInfo, positions: list[int]) -> str:
    """The arguments at the positions, by name where they have names."""
    names = debug.arg_names or ()
    if max(positions) >= len(names):
        return "the values of the arguments"
    named = [names[i] for i in positions if names[i]]
    if not named:  # of a kernel
        return "the place in the grid"
    *others, last = named
    if not others:
        return f"the value of the argument {last}"
    return f"the values of the arguments {', '.join(others)}{',' * (len(others) > 1)} and {last}"


def _places(debug: DebugInfo, eqn: JaxprEqn) -> list[str]:
    """Where an equation was made, and the calls that led there from the traced function."""
    limit = max(1, configuration.tracer_error_num_traceback_frames.value)
    places: list[str] = []
    for f in user_frames(eqn.source_info.traceback):
        if is_of_foundation(f.file_name) and not f.file_name.startswith("<"):
            continue  # such as NumPy's functions, which call the array's methods
        if len(places) == limit or f.file_name == "<frozen runpy>":  # which runs named modules
            break
        places.append(str(f))
        if debug.func_src_info.startswith(
                f"{f.function_name.rpartition('.')[2]} at {f.file_name}:"):
            break
    return places or ["unknown"]


# -- the way from a value to a variable of a module, for the error of leaks ------------------------

_MOST = 16  # objects whose holders are looked for at once, by one walk over the whole heap
_WALKS = 12


def referrers(x: Any, ignored: tuple[Any, ...] = ()) -> list[str]:
    """A line for each object on the way from `x` to a variable of a module, or to the last one that
    was found. What is in `ignored` is not looked at.

    >>> referrers(object())  # which nobody keeps
    []
    """
    way = _way_out(x, {id(x), *map(id, ignored)})
    lines = []
    while len(way) > 1:
        inner, holder, *rest = way
        how, passed = _how(inner, holder, rest)
        lines.append(f"{_shown(inner)} is referred to by {how}")
        way = way[passed:]
    return lines


def _shown(x: Any) -> str:
    return f"<{type(x).__name__} {id(x)}>"


def _way_out(x: Any, seen: set[int]) -> list[Any]:
    """The objects from `x` to the variables of a module, each held by the next; where there are
    none, to the first function, or to the last object that was found."""
    inner_of: dict[int, Any] = {}
    level, last, function = [x], x, None
    for _ in range(_WALKS):
        found = [h for h in gc.get_referrers(*level) if h is not level and id(h) not in seen
                 and not isinstance(h, (FrameType, ModuleType))]
        if not found:
            break
        end = next((h for h in found if _module(h)), None)
        held, level = set(map(id, level)), found[:_MOST] if end is None else [end]
        for holder in level:
            inner_of[id(holder)] = next(o for o in gc.get_referents(holder) if id(o) in held)
            if function is None and isinstance(holder, FunctionType):  # all behind it is Python's
                function = holder
        seen.update(map(id, level))
        last = level[-1]
        if end is not None:
            function = None
            break
        del found  # which would be a holder
    way = [last if function is None else function]
    while id(way[-1]) in inner_of:
        way.append(inner_of[id(way[-1])])
    return way[::-1]


def _module(x: Any) -> str | None:
    """The name of the module whose variables `x` is."""
    name = x.get("__name__") if type(x) is dict else None
    module = sys.modules.get(name) if isinstance(name, str) else None
    return name if getattr(module, "__dict__", None) is x else None


def _how(inner: Any, holder: Any, rest: list[Any]) -> tuple[str, int]:
    """How `holder` holds `inner`, and how many of the objects behind `inner` that tells of."""
    if type(holder) is dict:
        key = next((k for k, v in holder.items() if v is inner), None)
        if name := _module(holder):
            return f"{name}.{key}", 1
        if rest and getattr(rest[0], "__dict__", None) is holder:
            return f"{_shown(rest[0])}.{key}", 2
        return f"{_shown(holder)}[{key!r}]", 1
    if isinstance(holder, CellType) and len(rest) > 1 and isinstance(rest[1], FunctionType):
        closure, function = rest[:2]
        if function.__closure__ is closure:
            name = function.__code__.co_freevars[[c is holder for c in closure].index(True)]
            return (f"{_shown(function)} ({function.__qualname__}), which closes over the "
                    f"variable {name}"), 3
    if isinstance(holder, (list, tuple)):
        return f"{_shown(holder)}[{next((i for i, v in enumerate(holder) if v is inner), None)}]", 1
    names = [name for name in _attributes(holder) if getattr(holder, name, None) is inner]
    return _shown(holder) + (f".{names[0]}" if names else ""), 1


def _attributes(x: Any) -> list[str]:
    slots = [getattr(cls, "__slots__", ()) for cls in type(x).__mro__]
    own = getattr(x, "__dict__", None)
    return [*(own if isinstance(own, dict) else ()),
            *[name for names in slots for name in ((names,) if isinstance(names, str) else names)]]
