"""Programs of what operations are made of: one for all uses with the same types and parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyjx import configuration
from pyjx.core.bounded import BoundedDict
from pyjx.core.contents import are_plain, params_key
from pyjx.core.effects import is_replaced
from pyjx.core.jaxpr import ClosedJaxpr, JaxprEqn
from pyjx.core.trace import trace_to_jaxpr
from pyjx.engine.discharge import pure
from pyjx.engine.own_types import on_parts

_programs = BoundedDict(4096, "decompositions")


def traced(fun: Callable[..., Any], avals: Sequence[Any], params: Mapping[str, Any],
           multiple_results: bool = False) -> ClosedJaxpr:
    """The program of `fun(*operands, **params)` for operands of these types.

    It is kept by the function itself, as an operation may get another one, unless a parameter is
    something of the user's, which is to go with its operation, or has no key.
    """
    def flat(*args: Any) -> Any:
        out = fun(*args, **params)
        return out if multiple_results else [out]

    def program_of() -> ClosedJaxpr:
        closed = trace_to_jaxpr(flat, avals)
        # What is decomposed is compiled, which takes arrays alone.
        return pure(on_parts(closed)).jaxpr if is_replaced(closed.effects) else closed

    given = params_key(params) if are_plain(params) else None
    if given is None:
        return program_of()
    key = fun, multiple_results, tuple(avals), given, configuration.trace_context()
    program = _programs.get(key)
    if program is None:
        program = _programs[key] = program_of()
    return program  # type: ignore[no-any-return]


def decomposition_of(eqn: JaxprEqn) -> ClosedJaxpr | None:
    """The program of the operations that one is made of; None if nobody has said."""
    fun = eqn.primitive.decomposition
    return None if fun is None else program_of(eqn, fun)


def program_of(eqn: JaxprEqn, fun: Callable[..., Any]) -> ClosedJaxpr:
    """The program of a function that computes what an equation does."""
    avals = [v.aval for v in eqn.invars]
    if eqn.primitive.batch_axis is None:  # it reads no axes of a mesh: its types have been checked
        avals = [a.placed(manual_axis_type=None) for a in avals]
    return traced(fun, avals, eqn.params, eqn.primitive.multiple_results)
