"""Partial evaluation: a function of known and unknown values, whose unknown part is recorded; and
derivatives and batches of functions of flat values, as libraries ask for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import wraps
from typing import Any

from pyjx.compat.rule_tables import RuleTable, axis_of
from pyjx.core import source_info
from pyjx.core.avals import AbstractValue, get_aval
from pyjx.core.effects import join_effects
from pyjx.core.evaluation import eval_jaxpr, jaxpr_as_fun
from pyjx.core.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, JaxprEqn, Literal, Var, no_debug_info
from pyjx.core.name_stack import transform_name_stack
from pyjx.core.named_axes import Axis
from pyjx.core.passes import dce as dead_code
from pyjx.core.primitive import Holding, Primitive, nothing_held
from pyjx.core.scalars import literal_types
from pyjx.core.trace import Trace, Tracer, new_level, trace_to_jaxpr
from pyjx.engine.axes import at_front, broadcast_axis
from pyjx.engine.axes import moveaxis as move
from pyjx.engine.batching import batch_flat, match_axis
from pyjx.engine.custom_derivative_calls import (
    called_function,
    custom_jvp_call_p,
    custom_vjp_call_p,
    record_call,
)
from pyjx.engine.forward import JVPTracer, jvp_flat
from pyjx.engine.linearize import linearize_flat, record_flat
from pyjx.engine.logs import logging
from pyjx.engine.subjaxprs import batched_aval
from pyjx.engine.subjaxprs import jvp_jaxpr as forward_of
from pyjx.engine.tangents import Zero, is_undefined_primal
from pyjx.engine.tangents import instantiate as array_of
from pyjx.extend.linear_util import EqualStore, Store, WrappedFun


class PartialVal(tuple[Any, Any]):
    """A value that is known, `(None, value)`, or one of which the type is, `(aval, None)`."""

    __slots__ = ()

    def __new__(cls, xs: tuple[Any, Any]) -> PartialVal:
        return tuple.__new__(cls, xs)

    @classmethod
    def known(cls, const: Any) -> PartialVal:
        return cls((None, const))

    @classmethod
    def unknown(cls, aval: AbstractValue) -> PartialVal:
        return cls((aval, None))

    def is_known(self) -> bool:
        return self[0] is None

    def get_known(self) -> Any:
        """The value, or None."""
        return self[1] if self.is_known() else None

    def get_aval(self) -> Any:
        """The type."""
        return get_aval(self[1]) if self.is_known() else self[0]


class JaxprTracer(Tracer):
    """An unknown value: a variable of the program of the unknown part."""

    __slots__ = ("_var", "recipe")

    def __init__(self, trace: JaxprTrace, pval: PartialVal | Var, recipe: JaxprEqn | None = None
                 ) -> None:
        var = pval if isinstance(pval, Var) else Var(pval.get_aval())
        super().__init__(trace, var.aval)
        self._var = var
        self.recipe = recipe  # the equation that gives it; None for an argument

    @property
    def parents(self) -> Sequence[Any]:
        """The variables that it is computed from."""
        return () if self.recipe is None else [v for v in self.recipe.invars if isinstance(v, Var)]

    @property
    def pval(self) -> PartialVal:
        return PartialVal.unknown(self.aval)

    def is_known(self) -> bool:
        return False


class JaxprTrace(Trace):
    """Records operations that have an unknown operand. All others go to the interpreters outside,
    and calls are taken apart, so that what is known in them is computed. Of a `custom_jvp` function
    the program has what it computes; a `custom_vjp` function is in it with its rules."""

    def __init__(self) -> None:
        self.eqns: list[JaxprEqn] = []
        self.consts: dict[int, tuple[Var, Any]] = {}

    def atom(self, x: Any) -> Any:
        """The variable or literal for an operand."""
        if isinstance(x, JaxprTracer) and x._trace is self:
            return x._var
        self.check_outer(x)
        if type(x) in literal_types:
            return Literal(x)
        return self.consts.setdefault(id(x), (Var(get_aval(x)), x))[0]

    def process(self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]
                ) -> Any:
        self.check_alive(operands)
        if primitive.is_call:
            closed = params["jaxpr"]
            return eval_jaxpr(closed.jaxpr, closed.consts, *operands)
        if primitive is custom_jvp_call_p:
            return called_function(params["call_jaxpr"])(*operands)
        if primitive is custom_vjp_call_p and not isinstance(params["call_jaxpr"], ClosedJaxpr):
            return record_call(primitive, operands, params)
        if primitive in custom_partial_eval_rules:
            return custom_partial_eval_rules[primitive](self, *operands, **params)
        invars = [self.atom(x) for x in operands]
        avals = tuple([v.aval for v in invars])
        out = primitive.out_avals(avals, params)
        outvars = [Var(a) for a in (out if primitive.multiple_results else [out])]
        effects = primitive.effects_of(avals, params)
        eqn = JaxprEqn(primitive, invars, outvars, params, effects, source_info.current())
        self.eqns.append(eqn)
        results = [JaxprTracer(self, v, eqn) for v in outvars]
        return results if primitive.multiple_results else results[0]


def trace_to_jaxpr_nounits(fun: Callable[..., Any], pvals: Sequence[PartialVal],
                           instantiate: Any = False) -> tuple[Jaxpr, list[PartialVal], list[Any]]:
    """Run a function of flat values, some of which are unknown.

    Args:
      fun: a wrapped function, or any that takes and gives sequences of arrays.
      pvals: for each argument its value or its type.
      instantiate: which known results the program is to give all the same: a flag, or one a result.

    Returns:
      The program of the unknown part, from its constants and the unknown arguments to the unknown
      results; for each result its value or its type; the constants.
    """
    trace = JaxprTrace()
    invars = [Var(p.get_aval()) for p in pvals if not p.is_known()]
    unknown = iter(invars)
    with new_level(trace):
        args = [p.get_known() if p.is_known() else JaxprTracer(trace, next(unknown)) for p in pvals]
        outs = list(getattr(fun, "call_wrapped", fun)(*args))
        wanted = [instantiate] * len(outs) if isinstance(instantiate, bool) else instantiate
        results: list[PartialVal] = []
        outvars = []
        for x, given in zip(outs, wanted, strict=True):
            if given or (isinstance(x, JaxprTracer) and x._trace is trace):
                outvars.append(trace.atom(x))
                results.append(PartialVal.unknown(outvars[-1].aval))
            else:
                trace.check_outer(x)
                results.append(PartialVal.known(x))
    debug = getattr(fun, "debug_info", None) or no_debug_info
    jaxpr = Jaxpr([v for v, _ in trace.consts.values()], invars, outvars, trace.eqns,
                  join_effects(trace.eqns), debug)
    live = dead_code.dce(ClosedJaxpr(jaxpr, [x for _, x in trace.consts.values()]))
    return live.jaxpr, results, list(live.consts)


def partial_eval_jaxpr_nounits(jaxpr: ClosedJaxpr, unknowns: Sequence[bool], instantiate: Any
                               ) -> tuple[ClosedJaxpr, ClosedJaxpr, list[bool], list[Any]]:
    """A program as two: one of the known inputs, which gives the known results and, behind them,
    residuals; and one of the residuals and the unknown inputs.

    Returns:
      Both, which results are unknown, and the types of the residuals.
    """
    avals = jaxpr.in_avals
    found: list[Any] = []

    def known(*args: Any) -> list[Any]:
        values = iter(args)
        pvals = [PartialVal.unknown(a) if unknown else PartialVal.known(next(values))
                 for a, unknown in zip(avals, unknowns, strict=True)]
        staged, results, residuals = trace_to_jaxpr_nounits(
            jaxpr_as_fun(jaxpr), pvals, instantiate)
        found[:] = [staged, [not p.is_known() for p in results], len(residuals)]
        return [*[p.get_known() for p in results if p.is_known()], *residuals]

    known_avals = [a for a, unknown in zip(avals, unknowns, strict=True) if not unknown]
    first = trace_to_jaxpr(known, known_avals)
    staged, out_unknowns, count = found
    types = first.out_avals[len(first.out_avals) - count:]
    second = staged.replace(constvars=[], invars=[*staged.constvars, *staged.invars])
    return first, ClosedJaxpr(second, []), out_unknowns, types


def trace_to_jaxpr_dynamic(fun: Callable[..., Any], in_avals: Sequence[Any], **options: Any
                           ) -> tuple[Jaxpr, list[Any], list[Any]]:
    """Record a wrapped function: the program, the types of its results, its constants."""
    debug: DebugInfo = getattr(fun, "debug_info", None) or no_debug_info
    closed = trace_to_jaxpr(getattr(fun, "call_wrapped", fun), in_avals, debug)
    return closed.jaxpr, closed.out_avals, list(closed.consts)


def abstract_eval_fun(fun: Callable[..., Any], *avals: Any, debug_info: Any = None, **params: Any
                      ) -> list[Any]:
    """The types of a function's results."""
    return trace_to_jaxpr(lambda *xs: fun(*xs, **params), avals).out_avals


def close_jaxpr(jaxpr: Jaxpr) -> ClosedJaxpr:
    """A program without constants, closed."""
    return ClosedJaxpr(jaxpr, [])


def convert_constvars_jaxpr(jaxpr: Jaxpr) -> Jaxpr:
    """The program with its constants as its first inputs."""
    return jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars])


def dce_jaxpr(jaxpr: Jaxpr, used_outputs: Sequence[bool], instantiate: Any = False
              ) -> tuple[Jaxpr, list[bool]]:
    """The program with the results that are used and what they need, and which inputs it keeps.

    Args:
      instantiate: inputs to keep though nothing needs them: a flag, or one for each input.
    """
    live = dead_code.dce_jaxpr(jaxpr, used_outputs)
    used = dead_code.used_variables(live)
    forced = [instantiate] * len(jaxpr.invars) if isinstance(instantiate, bool) else instantiate
    kept = [v in used or force for v, force in zip(jaxpr.invars, forced, strict=True)]
    invars = [v for v, keep in zip(jaxpr.invars, kept, strict=True) if keep]
    return live.replace(invars=invars), kept


def dce_jaxpr_consts(jaxpr: Jaxpr, used_outputs: Sequence[bool], instantiate: Any = False
                     ) -> tuple[Jaxpr, list[bool], list[bool]]:
    """As `dce_jaxpr`, without the constants that nothing needs; which of them it keeps comes
    second."""
    live, kept = dce_jaxpr(jaxpr, used_outputs, instantiate)
    used = dead_code.used_variables(live)
    consts = [v in used for v in jaxpr.constvars]
    constvars = [v for v, keep in zip(jaxpr.constvars, consts, strict=True) if keep]
    return live.replace(constvars=constvars), consts, kept


def prune_closed_jaxpr_outputs(jaxpr: ClosedJaxpr, used_outputs: Sequence[bool]) -> ClosedJaxpr:
    """The program with some of its results."""
    outvars = [v for v, used in zip(jaxpr.jaxpr.outvars, used_outputs, strict=True) if used]
    return ClosedJaxpr(jaxpr.jaxpr.replace(outvars=outvars), jaxpr.consts)


def move_binders_to_back(closed_jaxpr: ClosedJaxpr, to_move: Sequence[bool]) -> ClosedJaxpr:
    """The program with the marked inputs behind the others."""
    pairs = list(zip(closed_jaxpr.jaxpr.invars, to_move, strict=True))
    invars = [*[v for v, move in pairs if not move], *[v for v, move in pairs if move]]
    return ClosedJaxpr(closed_jaxpr.jaxpr.replace(invars=invars), closed_jaxpr.consts)


# -- rules of primitives ---------------------------------------------------------------------------

# `(trace, *tracers, **params) -> results`, in place of recording the equation.
custom_partial_eval_rules: dict[Primitive, Callable[..., Any]] = {}
# What libraries put here is not asked for: rematerialization is a cut of programs, which takes an
# operation as one, and what holds programs is cut itself.
partial_eval_jaxpr_custom_rules: dict[Primitive, Callable[..., Any]] = {}


def new_eqn_recipe(trace: JaxprTrace, in_tracers: Sequence[Any], out_tracers: Sequence[Any],
                   primitive: Primitive, params: dict[str, Any], effects: Any, source_info: Any,
                   ctx: Any = None) -> JaxprEqn:
    """Record the equation that gives `out_tracers`, for rules of libraries; it is returned."""
    eqn = JaxprEqn(primitive, [trace.atom(x) for x in in_tracers], [t._var for t in out_tracers],
                   params, effects, source_info)
    trace.eqns.append(eqn)
    return eqn


def _read_dce(primitive: Primitive) -> Callable[..., Any] | None:
    rule = primitive.holder.dce
    if rule is None:
        return None
    return getattr(rule, "__wrapped__", None) or _dce_of(rule)


def _dce_of(rule: Callable[..., JaxprEqn]) -> Callable[..., tuple[list[bool], JaxprEqn | None]]:
    def dce(used_outputs: Sequence[bool], *live_ins_and_eqn: Any
            ) -> tuple[list[bool], JaxprEqn | None]:
        eqn = live_ins_and_eqn[-1]
        if not any(used_outputs) and not eqn.effects:
            return [False] * len(eqn.invars), None
        distinct = [Var(v.aval) for v in eqn.invars]  # it may read one variable twice
        new = rule(eqn.replace(distinct), tuple(used_outputs))
        given: dict[Any, Any] = dict(zip(distinct, eqn.invars, strict=True))
        return [v in new.invars for v in distinct], new.replace([given[v] for v in new.invars])

    return dce


def _holding_of(primitive: Primitive) -> Holding:
    """What may be changed of what the primitive does by programs."""
    if primitive.holder is nothing_held:
        primitive.holder = Holding()
    return primitive.holder


def _write_dce(primitive: Primitive, rule: Callable[..., Any] | None) -> None:
    if rule is None:
        _holding_of(primitive).dce = None
        return
    given = rule
    takes_live = given.__code__.co_argcount > 2 if hasattr(given, "__code__") else True

    @wraps(given)
    def dce(eqn: JaxprEqn, used: Sequence[bool]) -> JaxprEqn:
        live = [[True] * len(eqn.invars)] if takes_live else []
        found = given(list(used), *live, eqn)[1]
        return eqn if found is None else found  # type: ignore[no-any-return]

    _holding_of(primitive).dce = dce


# `(used_outputs, live_ins, eqn) -> (used_inputs, eqn or None)`.
dce_rules = RuleTable(_read_dce, _write_dce)


def dce_jaxpr_call_rule(used_outputs: Sequence[bool], live_ins: Sequence[bool], eqn: JaxprEqn
                        ) -> tuple[list[bool], JaxprEqn | None]:
    """The rule of operations that hold a program, their parameter `call_jaxpr`."""
    if not any(used_outputs) and not eqn.effects:
        return [False] * len(eqn.invars), None
    program = eqn.params["call_jaxpr"]
    live, kept = dce_jaxpr(program.jaxpr, used_outputs)
    inner = ClosedJaxpr(live, program.consts) if isinstance(program, ClosedJaxpr) else live
    invars = [v for v, keep in zip(eqn.invars, kept, strict=True) if keep]
    outvars = [v for v, used in zip(eqn.outvars, used_outputs, strict=True) if used]
    return kept, eqn.replace(invars, outvars, params={**eqn.params, "call_jaxpr": inner},
                             effects=live.effects)


dce_jaxpr_closed_call_rule = dce_jaxpr_call_rule


def lower_jaxpr(jaxpr: ClosedJaxpr) -> ClosedJaxpr:
    """The program on the values that those of libraries' types are made of, which all programs
    here are."""
    return jaxpr


lower_jaxpr2 = lower_jaxpr


# -- derivatives and batches -----------------------------------------------------------------------


def jvp(fun: Callable[..., Any], primals: Sequence[Any] | None = None,
        tangents: Sequence[Any] | None = None, has_aux: bool = False,
        instantiate: bool | Sequence[bool] = True, transform_stack: bool = True) -> Any:
    """The results of a function of flat values, and their tangents.

    Args:
      primals, tangents: of its operands; a tangent may be a symbolic `Zero`. Without them `fun` is
        a wrapped function, and the result the one that takes them.
      has_aux: the function gives a pair, of which the second one comes along, as a third result.
      instantiate: whether tangents that are zero are made arrays: of all results, or of each.
      transform_stack: whether operations say in profiles that they are of a derivative.
    """
    if primals is None or tangents is None:
        return fun.wrap(_pushed, (has_aux, instantiate, transform_stack), None)  # type: ignore[attr-defined]
    return _pushed(fun, has_aux, instantiate, transform_stack, primals, tangents)


def _pushed(call: Callable[..., Any], has_aux: bool, instantiate: bool | Sequence[bool],
            transform_stack: bool, primals: Sequence[Any], tangents: Sequence[Any]
            ) -> tuple[Any, ...]:
    aux: list[Any] = []

    def run(*args: Any) -> Sequence[Any]:
        outs = call(*args)
        if has_aux:
            outs, aux[:] = outs
        return outs  # type: ignore[no-any-return]

    with transform_name_stack("jvp") if transform_stack else nullcontext():
        outs, pushed = jvp_flat(run, list(primals), list(tangents))
    wanted = [instantiate] * len(outs) if isinstance(instantiate, bool) else instantiate
    pushed = [array_of(t) if w else t for t, w in zip(pushed, wanted, strict=True)]
    if not has_aux:
        return outs, pushed
    return outs, pushed, [x.primal if isinstance(x, JVPTracer) else x for x in aux]


def jvp_jaxpr(jaxpr: ClosedJaxpr, nonzeros: Sequence[bool], instantiate: bool | Sequence[bool]
              ) -> tuple[ClosedJaxpr, list[bool]]:
    """The forward derivative of a program, from its inputs and the tangents that are not zero, and
    which results have a tangent."""
    count = len(jaxpr.jaxpr.outvars)
    wanted = (instantiate,) * count if isinstance(instantiate, bool) else tuple(instantiate)
    derived = forward_of(jaxpr, tuple(nonzeros), wanted)
    return derived[0], list(derived[1])


def linearize(traceable: WrappedFun, *primals: Any, **options: Any
              ) -> tuple[list[Any], Callable[..., list[Any]]]:
    """Results of a wrapped function, and the linear map of its derivative there."""
    outs, program = linearize_flat(traceable.call_wrapped, list(primals))
    return outs, lambda *tangents: program.forward(list(tangents))


def backward_pass(jaxpr: Jaxpr, transform_stack: Any, consts: Sequence[Any],
                  primals_in: Sequence[Any], cts_in: Sequence[Any], *, return_logs: bool = False
                  ) -> Any:
    """The cotangents of the linear inputs of a program, which are undefined primals; with
    `return_logs` a pair of them and of what backward rules have logged."""
    linear = [is_undefined_primal(x) for x in primals_in]
    args = [x.aval if is_undefined_primal(x) else x for x in primals_in]
    _, program, dependent = record_flat(
        lambda *xs: eval_jaxpr(jaxpr, consts, *xs), args, linear, [False] * len(jaxpr.outvars))
    named = transform_name_stack("transpose") if transform_stack else nullcontext()
    with logging() as log, named:
        cts = iter(program.backward([c for c, d in zip(cts_in, dependent, strict=True) if d]))
    found = [next(cts) if lin else Zero(v.aval.to_tangent_aval())
             for v, lin in zip(jaxpr.invars, linear, strict=True)]
    return (found, log) if return_logs else found


not_mapped = None  # where the axis of a value is that all examples share


class ZeroIfMapped:
    """The axis of a result which is first if the result is mapped, and else none."""


zero_if_mapped = ZeroIfMapped()


def moveaxis(x: Any, src: int | None, dst: int, *_: Any) -> Any:
    """`x` with an axis elsewhere."""
    return x if src is None else move(x, src % get_aval(x).ndim, dst % get_aval(x).ndim)


def broadcast(x: Any, sz: int, axis: int, mesh_axis: Any = None) -> Any:
    """`x` repeated along a new axis."""
    return broadcast_axis(x, sz, axis)


def bdim_at_front(x: Any, bdim: int | None, size: int, mesh_axis: Any = None) -> Any:
    """A batch with its axis in front; what all examples share is repeated."""
    return at_front(x, bdim, size)


def batch_subtrace(fun: WrappedFun, *gen_static_args: Any, use_eq_store: bool = False,
                   unk_names: bool = False) -> tuple[WrappedFun, Callable[[], Sequence[Any]]]:
    """A wrapped function on whole batches, and where its results have their axes.

    Args:
      gen_static_args: three: the tag of the interpreter, which nobody reads, the axis, and where
        the operands have it, or a function that gives that.
      use_eq_store: the results of several calls must have it at the same places.
      unk_names: nothing is known of the names of arguments and results.
    """
    if not isinstance(fun, WrappedFun):
        raise TypeError("batch_subtrace: expected a function that is wrapped by "
                        f"linear_util.wrap_init, got {fun!r}.")
    if len(gen_static_args) != 3:
        raise TypeError("batch_subtrace: expected three static arguments (a tag, the axis and "
                        f"where the operands have it), got {len(gen_static_args)}: "
                        f"{gen_static_args}.")
    _, axis_data, in_dims = gen_static_args
    dims = in_dims if callable(in_dims) else tuple(in_dims)
    store = EqualStore() if use_eq_store else Store()
    wrapped = fun.wrap(_mapped, (axis_of(axis_data), dims), store)
    return wrapped.with_unknown_names() if unk_names else wrapped, store


def _mapped(call: Callable[..., Any], dims_of_results: Store, axis: Axis, in_dims: Any,
            *args: Any) -> list[Any]:
    given = in_dims() if callable(in_dims) else in_dims
    outs, dims = batch_flat(call, list(args), list(given), axis)
    dims_of_results.store(dims)
    return outs


def batch_jaxpr_axes(closed_jaxpr: ClosedJaxpr, axis_data: Any, in_axes: Sequence[Any],
                     out_axes_dest: Sequence[Any]) -> tuple[ClosedJaxpr, list[Any]]:
    """A program on whole batches, whose results have their axes where `out_axes_dest` says, and
    where they have them."""
    axis = axis_of(axis_data)
    places: list[Any] = []

    def run(*args: Any) -> list[Any]:
        outs, dims = batch_flat(jaxpr_as_fun(closed_jaxpr), list(args), list(in_axes), axis)
        wanted = [(None if d is None else 0) if w is zero_if_mapped else w
                  for d, w in zip(dims, out_axes_dest, strict=True)]
        places[:] = wanted
        return [match_axis(x, d, w, axis) for x, d, w in zip(outs, dims, wanted, strict=True)]

    avals = [batched_aval(a, d, axis) for a, d in zip(closed_jaxpr.in_avals, in_axes, strict=True)]
    return trace_to_jaxpr(run, avals), places
