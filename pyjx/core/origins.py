"""Where a value of a program that is being recorded came from, as messages say it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyjx import configuration
from pyjx.core.frames import user_frames
from pyjx.core.jaxpr import DebugInfo, JaxprEqn, Var

if TYPE_CHECKING:
    from pyjx.core.trace import DynamicJaxprTrace

_MOST_LINES = 5


def origin(trace: DynamicJaxprTrace, var: Var, eqn: JaxprEqn | None) -> str:
    """Which arguments a value depends on, and the operation that made it; of a constant, that it
    is one."""
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
    return text + ("\nTo have an error where the value leaks, use jax.checking_leaks() or "
                   "JAX_CHECK_TRACER_LEAKS=1.")


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
        places.append(str(f))
        if debug.func_src_info.startswith(
                f"{f.function_name.rpartition('.')[2]} at {f.file_name}:"):
            break
    return places or ["unknown"]
