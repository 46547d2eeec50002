"""Forward mode: pushes tangents along with primals."""

from __future__ import annotations

from typing import Any, ClassVar

from pyjx.core import source_info
from pyjx.core.array_type import ArrayLike
from pyjx.core.avals import get_aval
from pyjx.core.evaluation import jaxpr_as_fun
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.primitive import Primitive
from pyjx.core.references import is_ref
from pyjx.core.scalars import as_recorded, literal_types
from pyjx.core.trace import DynamicJaxprTracer, Trace, Tracer, eager_trace, new_level, state
from pyjx.engine.discharge import (
    Box,
    RefBox,
    bind_discharged,
    holds_state,
    rules_take_refs,
    without_own_refs,
)
from pyjx.engine.functions import made_in, source_of
from pyjx.engine.rules import forward_rule
from pyjx.engine.tangents import Zero, materialized, zero_tangent
from pyjx.engine.types import FlatFunction, Params, Tangent, Tangents, Value, Values
from pyjx.errors import UnexpectedTracerError


class JVPTracer(Tracer):
    """A primal with its tangent."""

    __slots__ = ("primal", "tangent")

    def __init__(self, trace: JVPTrace, primal: Any, tangent: Tangent | Box | RefBox) -> None:
        self._trace = trace
        self.aval = primal.aval if type(primal) is DynamicJaxprTracer else get_aval(primal)
        self.primal = primal
        self.tangent = tangent

    def to_concrete_value(self) -> Any:
        primal = self.primal
        return primal.to_concrete_value() if isinstance(primal, Tracer) else primal

    def full_lower(self) -> Any:
        """The primal, of a value whose tangent is zero."""
        if type(self.tangent) is not Zero:
            return self
        return self.primal.full_lower() if isinstance(self.primal, Tracer) else self.primal

    def get_referent(self) -> Any:
        return self.primal.get_referent() if isinstance(self.primal, Tracer) else self

    def __repr__(self) -> str:
        # By str, as an array in an f-string shows its values, however many they are.
        return f"JVPTracer(primal={self.primal!s}, tangent={self.tangent!s})"

    def _origin_msg(self) -> str:
        outer = self.primal._origin_msg() if isinstance(self.primal, Tracer) else ""
        return outer + made_in(self._trace.fun, "differentiated")


class LinearizeTracer(JVPTracer):
    """A primal whose tangent is a variable of a linear program."""

    __slots__ = ()

    def __repr__(self) -> str:
        tangent = get_aval(self.tangent).str_short(short_dtypes=True)
        return f"GradTracer(primal={self.primal!s}, typeof(tangent)={tangent})"


class CustomVJPException(UnexpectedTracerError):
    """A function with a custom derivative was differentiated by a value that it closes over.

    Ways out: let the value be an argument of the function, or close over it through
    `jax.closure_convert`; `jax.lax.stop_gradient(value)`, where it has no derivative.
    """

    def __init__(self, primitive: Primitive, whose: str = "") -> None:
        kind = primitive.name.removesuffix("_call")
        rules = "jvp rule" if kind == "custom_jvp" else "fwd and bwd rules"
        rule = "custom JVP" if kind == "custom_jvp" else "custom VJP"
        super().__init__(
            f"Detected differentiation of a {kind} function with respect to a closed-over value. "
            f"That isn't supported because the {rule} rule only specifies how to differentiate the "
            f"{kind} function with respect to explicit input parameters. Try passing the "
            f"closed-over value into the {kind} function as an argument, and adapting the {kind} "
            f"{rules}.{whose}")


def whose_call(fun: Any) -> str:
    """The sentence that names the function of a call, which may have been recorded."""
    name = fun.debug_info.func_name if isinstance(fun, ClosedJaxpr) else source_of(fun)
    return f" The function is {name}."


def refuse_captured_tangents(primitive: Primitive, fun: Any, outs: Values) -> None:
    """Raise if what a custom function without traced arguments gave is under differentiation."""
    for out in outs:
        x: Any = out
        while isinstance(x, Tracer):
            if isinstance(x, JVPTracer):
                raise CustomVJPException(primitive, whose_call(fun))
            x = getattr(x, "val", None)  # that of a batch


class JVPTrace(Trace):
    """Runs operations on primals and pushes tangents along."""

    __slots__ = ("fun", "linear_trace")

    tracer: ClassVar[type[JVPTracer]] = JVPTracer

    def __init__(self, fun: FlatFunction, linear_trace: Any = None) -> None:
        self.fun = fun  # for messages
        self.linear_trace = linear_trace

    def primal_and_tangent(self, x: ArrayLike) -> tuple[Any, Any]:
        """Primal and tangent of any value; one of an outer trace is constant here."""
        if type(x) is self.tracer and x._trace is self:
            return x.primal, x.tangent
        self.check_outer(x)
        return x, zero_tangent(get_aval(x))

    def join(self, primal: Any, tangent: Tangent) -> Any:
        return primal if type(tangent) is Zero else self.tracer(self, primal, tangent)

    def join_all(self, primitive: Primitive, params: Params, primals: Values, tangents: Tangents
                ) -> list[Any]:
        """The results of a primitive with several; its rule may be one that the user gave."""
        for x in (*primals, *tangents):
            if isinstance(x, JVPTracer) and x._trace.level >= self.level:
                raise CustomVJPException(primitive, whose_call(
                    params["call_jaxpr"]) if "call_jaxpr" in params else "")
        return [self.join(p, t) for p, t in zip(primals, tangents, strict=True)]

    def make_ref(self, primitive: Primitive, operands: tuple[Value, ...], params: Params) -> Any:
        pairs = [self.primal_and_tangent(x) for x in operands]
        ref = self.parent.make_ref(primitive, tuple([p for p, _ in pairs]), params)
        tangent = pairs[0][1] if pairs else Zero(ref.aval.inner_aval.to_tangent_aval())
        if type(tangent) in literal_types:  # what a reference holds is an array
            tangent = materialized(tangent)
        return self.tracer(self, ref, Box(tangent))

    def differentiates_refs(self, operands: tuple[Value, ...]) -> bool:
        """Whether references among the operands have tangents here."""
        return any([is_ref(x) and isinstance(self.primal_and_tangent(x)[1], Box) for x in operands])

    def run_program(self, primitive: Primitive, operands: tuple[Value, ...], params: Params
                    ) -> list[Any]:
        """The results of a call, operation by operation: rules that a user gave find in it the
        references that they take, with their tangents."""
        if primitive.holder.runs is None:
            raise NotImplementedError(
                f"'{primitive}' holds a function with a derivative rule of its own, which takes a "
                "reference that is differentiated. Read the reference before, or write it behind.")
        return jaxpr_as_fun(primitive.holder.runs(params))(*operands)

    def process(self, primitive: Primitive, operands: tuple[Value, ...], params: Params) -> Any:
        if not self.alive:
            self.check_alive(operands)
        if primitive.effects is not None and holds_state(primitive, params):
            if not rules_take_refs(primitive, operands, params):
                return bind_discharged(primitive, operands, params)
            if not primitive.own_rules and self.differentiates_refs(operands):
                return self.run_program(primitive, operands, params)
            params = without_own_refs(params)
        kind = self.tracer
        primals = []
        tangents = []
        for x in operands:
            if type(x) is kind and x._trace is self:
                primal = x.primal
                tangent = x.tangent
                if type(primal) in literal_types:  # 64-bit types may have been switched since
                    primal = as_recorded(primal, x.aval)
                if type(tangent) in literal_types:
                    tangent = as_recorded(tangent, x.aval)
            else:
                primal, tangent = self.primal_and_tangent(x)
            primals.append(primal)
            tangents.append(tangent)
        if primitive.asked:
            primitive.check_operands(operands, params)
        if self.linear_trace is not None and primitive.holder.linearize is not None:
            out, tangent_out = primitive.holder.linearize(
                self.linear_trace, primals, tangents, **params)
            if not primitive.multiple_results:
                return self.join(out, tangent_out)
            return self.join_all(primitive, params, out, tangent_out)
        rule = primitive.jvp or forward_rule(primitive)
        if rule is None:
            if primitive.decomposition is not None:
                return primitive.decomposition(*operands, **params)
            raise NotImplementedError(f"Differentiation rule for '{primitive}' not implemented")
        if primitive.multiple_results:
            out, tangent_out = rule(primals, tangents, **params)
            return self.join_all(primitive, params, out, tangent_out)
        if state.dynamic is eager_trace:
            out, tangent_out = rule(primals, tangents, **params)
        else:  # what the rule records has one source: the operation that the user wrote
            out, tangent_out = source_info.from_here(rule, primals, tangents, **params)
        return out if type(tangent_out) is Zero else kind(self, out, tangent_out)


class LinearizeTrace(JVPTrace):
    """A forward mode whose tangents are the variables of `linear_trace`, in which primitives that
    have a `linearize` rule record."""

    __slots__ = ()

    tracer = LinearizeTracer


def jvp_flat(fun: FlatFunction, primals: Values, tangents: Tangents, aux: list[Any] | None = None
            ) -> tuple[list[Any], list[Any]]:
    """Outputs and tangents (symbolic zeros where they are zero) of a function on flat values.

    `aux` is a list that `fun` fills with more results, which lose their tangents and may be
    anything.
    """
    trace = JVPTrace(fun)
    with new_level(trace):
        outs = fun(*[p if type(t) is Zero else
                     JVPTracer(trace, p, RefBox(t) if is_ref(t) else t)
                     for p, t in zip(primals, tangents, strict=True)])
        pairs = [trace.primal_and_tangent(x) for x in outs]
        if aux:
            aux[:] = [trace.primal_and_tangent(x)[0] if isinstance(x, Tracer) else x for x in aux]
    return [p for p, _ in pairs], [t for _, t in pairs]
