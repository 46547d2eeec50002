"""Forward mode: pushes tangents along with primals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyjx.core import source_info
from pyjx.core.avals import get_aval
from pyjx.core.primitive import Primitive
from pyjx.core.trace import Trace, Tracer, eager_trace, raise_leaked, state
from pyjx.engine.tangents import Zero, zero_tangent


class JVPTracer(Tracer):
    """A primal with its tangent."""

    __slots__ = ("primal", "tangent")

    def __init__(self, trace: JVPTrace, primal: Any, tangent: Any) -> None:
        self._trace = trace
        self.aval = get_aval(primal)
        self.primal = primal
        self.tangent = tangent

    def to_concrete_value(self) -> Any:
        primal = self.primal
        return primal.to_concrete_value() if isinstance(primal, Tracer) else primal

    def __repr__(self) -> str:
        if self._trace.linear is None:
            return f"JVPTracer(primal={self.primal}, tangent={self.tangent})"
        tangent = get_aval(self.tangent).str_short(short_dtypes=True)
        return f"GradTracer(primal={self.primal}, typeof(tangent)={tangent})"

    def _origin_msg(self) -> str:
        return self.primal._origin_msg() if isinstance(self.primal, Tracer) else ""


class JVPTrace(Trace):
    """Runs operations on primals and pushes tangents along.

    With a `linear` trace the tangents are its variables, and primitives that have a `linearize`
    rule record in it.
    """

    __slots__ = ("linear",)

    def __init__(self, linear: Any = None) -> None:
        self.linear = linear

    def __repr__(self) -> str:
        return "JVPTrace" if self.linear is None else "LinearizeTrace"

    def split(self, x: Any) -> tuple[Any, Any]:
        """Primal and tangent of any value; one of an outer trace is constant here."""
        if type(x) is JVPTracer and x._trace is self:
            return x.primal, x.tangent
        if isinstance(x, Tracer) and (x._trace.level >= self.level or not x._trace.alive):
            raise_leaked(x)
        return x, zero_tangent(get_aval(x))

    def join(self, primal: Any, tangent: Any) -> Any:
        return primal if type(tangent) is Zero else JVPTracer(self, primal, tangent)

    def process(self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]
                ) -> Any:
        if not self.alive:
            self.check_alive(operands)
        primals = []
        tangents = []
        for x in operands:
            if type(x) is JVPTracer and x._trace is self:
                primals.append(x.primal)
                tangents.append(x.tangent)
            else:
                primal, tangent = self.split(x)
                primals.append(primal)
                tangents.append(tangent)
        if self.linear is not None and primitive.linearize is not None:
            out, tangent_out = primitive.linearize(self.linear, primals, tangents, **params)
            if not primitive.multiple_results:
                return self.join(out, tangent_out)
            return [self.join(p, t) for p, t in zip(out, tangent_out, strict=True)]
        rule = primitive.jvp
        if rule is None:
            if primitive.decomposition is not None:
                return primitive.decomposition(*operands, **params)
            raise NotImplementedError(f"Differentiation rule for '{primitive}' not implemented")
        if primitive.multiple_results:
            out, tangent_out = rule(primals, tangents, **params)
            return [self.join(p, t) for p, t in zip(out, tangent_out, strict=True)]
        if state.dynamic is eager_trace:
            out, tangent_out = rule(primals, tangents, **params)
        else:  # what the rule records has one source: the operation that the user wrote
            here = source_info.thread_state
            saved = here.source
            if saved is None:
                here.source = source_info.current()
            try:
                out, tangent_out = rule(primals, tangents, **params)
            finally:
                here.source = saved
        return out if type(tangent_out) is Zero else JVPTracer(self, out, tangent_out)


def jvp_flat(
    fun: Callable[..., Sequence[Any]], primals: Sequence[Any], tangents: Sequence[Any],
    aux: list[Any] | None = None,
) -> tuple[list[Any], list[Any]]:
    """Outputs and tangents (symbolic zeros where they are zero) of a function on flat values.

    `aux` is a list that `fun` fills with more results, which lose their tangents and may be
    anything.
    """
    trace = JVPTrace()
    saved = state.level
    trace.level = state.level = saved + 1
    trace.alive = True
    try:
        outs = fun(*[p if type(t) is Zero else JVPTracer(trace, p, t)
                     for p, t in zip(primals, tangents, strict=True)])
        pairs = [trace.split(x) for x in outs]
        if aux:
            aux[:] = [trace.split(x)[0] if isinstance(x, Tracer) else x for x in aux]
    finally:
        state.level = saved
        trace.alive = False
    return [p for p, _ in pairs], [t for _, t in pairs]
