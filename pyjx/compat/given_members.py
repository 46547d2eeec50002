"""Members of classes of pyjx that libraries alone ask for, given as this is imported."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from pyjx.core.meshes import AbstractMesh, AxisType, Mesh
from pyjx.core.primitive import Primitive
from pyjx.core.trace import DynamicJaxprTrace, DynamicJaxprTracer, Trace, Tracer
from pyjx.engine.forward import JVPTrace
from pyjx.jaxlib_api import PjitFunction


def give(owner: type, **members: Any) -> None:
    """Let a class have members that the library itself has no use for.

    Raises:
      TypeError: the class has one of that name already.

    >>> class Own:
    ...     pass
    >>> give(Own, answer=42)
    >>> Own().answer
    42
    """
    for name, member in members.items():
        if name in vars(owner):
            raise TypeError(f"{owner.__name__} has a member {name!r} already.")
        setattr(owner, name, member)


def _is_valid(trace: Trace) -> bool:
    """Whether the function that it watches has not returned yet."""
    return trace.alive


def _invalidate(trace: Trace) -> None:
    """Refuse operations from now on."""
    trace.alive = False


def _same(trace: Trace, val: Any) -> Any:
    """A value as this interpreter sees values; those of outer ones are constants of it."""
    return val


def _recorded(trace: DynamicJaxprTrace, val: Any) -> Any:
    is_own = isinstance(val, DynamicJaxprTracer) and val._trace is trace
    return val if is_own else trace.constant(val)


def _full_raise(trace: Trace, x: Any) -> Any:
    """By its older name, `stage_value` of what may be here.

    Raises:
      UnexpectedTracerError: it is a tracer of an interpreter that has ended, or inside of this.
    """
    if not (isinstance(x, Tracer) and x._trace is trace):
        trace.check_outer(x)
    return x


_any_explicit = property(lambda mesh: AxisType.Explicit in mesh.axis_types)

# `main` is what all tracers of a trace have in common, `requires_low` whether it takes only what
# programs are lowered from.
give(Trace, main=property(lambda trace: trace), requires_low=False, is_valid=_is_valid,
     invalidate=_invalidate, stage_value=_same, full_raise=_full_raise)
give(DynamicJaxprTrace, stage_value=_recorded)
give(JVPTrace, to_primal_tangent_pair=JVPTrace.primal_and_tangent)
give(Primitive, call_primitive=False, map_primitive=False)
give(AbstractMesh, _any_axis_explicit=_any_explicit)
give(Mesh, _any_axis_explicit=_any_explicit)
give(PjitFunction, _fun=property(attrgetter("__wrapped__")))
