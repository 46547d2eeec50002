"""The primitives of forward rules that rematerialization is to treat in a way of their own.

A forward rule gives residuals and the results of its function. `remat_opt` is one that has the
function beside it: where a program does not read the residuals, because it computes them again,
dead code elimination puts the function in its place. `custom_remat` is a pair of rules:
    fwd(*args) -> (saved, outs)
    rem(saved, *args) -> (residuals, outs)
Rematerialization keeps what the first one saves and runs the second one again; elsewhere the second
follows the first at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyjx.core.avals import get_aval
from pyjx.core.derived import derived
from pyjx.core.effects import Effects
from pyjx.core.jaxpr import ClosedJaxpr, DebugInfo, JaxprEqn, Var
from pyjx.core.primitive import Primitive, register
from pyjx.core.trace import eval_jaxpr, jaxpr_as_fun, trace_to_jaxpr
from pyjx.engine.batching import BatchTrace
from pyjx.engine.calls import call, call_eqn
from pyjx.engine.functions import name_of
from pyjx.engine.residuals import CutEqn, Policy, is_saved
from pyjx.engine.subjaxprs import (
    batch_jaxpr,
    consts_as_inputs,
    in_front,
    part_of,
    selected,
    without_tracers,
)
from pyjx.engine.types import Dims, Flags, Params, Value, Values

FlatRule = Callable[..., tuple[list[Any], list[Any]]]  # of arguments: residuals, results


def _batched(trace: BatchTrace, jaxpr: ClosedJaxpr, dims: Dims) -> tuple[ClosedJaxpr, Values]:
    """The program of a batch, whose results have their batch axes in front, and the constants that
    it takes as leading inputs."""
    front = in_front((True,) * len(jaxpr.out_avals))
    return without_tracers(batch_jaxpr(jaxpr, tuple(dims), trace.axis, front).jaxpr)


def _forward_rule(name: str, forward: Callable[[Params], ClosedJaxpr], **rules: Any) -> Primitive:
    """A primitive that stands for the program that `forward` makes of its parameters."""
    def run(*args: Value, **params: Any) -> list[Any]:
        closed = forward(params)
        return call(closed, closed.debug_info.func_name, *args)

    def inline(*args: Value, **params: Any) -> list[Any]:
        closed = forward(params)
        return eval_jaxpr(closed.jaxpr, closed.consts, *args)

    def effects(params: Params) -> Effects:
        return forward(params).effects  # type: ignore[no-any-return]

    return register(Primitive(
        name, multiple_results=True, cached=False, impl=run, decomposition=inline,
        shape_rule=lambda *avals, **params: forward(params).out_avals, effects=effects,
        lowered_as=forward, **rules))


def _traced(rule: FlatRule, avals: Sequence[Any], fun: Callable[..., Any] | None = None
            ) -> tuple[ClosedJaxpr, int]:
    """The program of a rule, followed by the results of `fun`; and the number of its residuals."""
    n_res = 0

    def flat(*args: Any) -> list[Any]:
        nonlocal n_res
        residuals, outs = rule(*args)
        n_res = len(residuals)
        return [*residuals, *outs, *(() if fun is None else fun(*args))]

    return trace_to_jaxpr(flat, avals, DebugInfo("custom_vjp fwd", name_of(rule))), n_res


# -- the function in the place of its rule ---------------------------------------------------------


def bind_remat_opt(fwd: FlatRule, fun: Callable[..., list[Any]], args: Values
                   ) -> tuple[list[Any], list[Any]]:
    """What `fwd` gives for `args`: residuals, and the results of `fun`."""
    closed, n_res = _traced(fwd, [get_aval(x) for x in args], fun)
    results = remat_opt_p.bind(
        *closed.consts, *args, jaxpr=consts_as_inputs(closed), num_res=n_res)
    return results[:n_res], results[n_res:]


def _opt_forward(params: Params) -> ClosedJaxpr:
    """The program of the rule; `jaxpr` has the results of the function behind its results."""
    jaxpr: ClosedJaxpr = params["jaxpr"]
    n = _num_fwd(**params)
    used = tuple([i < n for i in range(len(jaxpr.out_avals))])
    return part_of(jaxpr, used, (True,) * len(jaxpr.in_avals))


def _num_fwd(jaxpr: ClosedJaxpr, num_res: int) -> int:
    return (len(jaxpr.out_avals) + num_res) // 2


def _opt_dce(eqn: JaxprEqn, used: Flags) -> JaxprEqn:
    """The function, where no residual is used."""
    jaxpr: ClosedJaxpr = eqn.params["jaxpr"]
    n_res = eqn.params["num_res"]
    if any(used[:n_res]):
        return eqn
    outputs = (False,) * _num_fwd(jaxpr, n_res) + used[n_res:]
    part = part_of(jaxpr, outputs, (True,) * len(eqn.invars))
    return call_eqn(eqn, part, part.debug_info.func_name, eqn.invars,
                    selected(eqn.outvars, used))


def _opt_batch(trace: BatchTrace, operands: Values, dims: Dims, *, jaxpr: ClosedJaxpr,
               num_res: int) -> Any:
    batched, consts = _batched(trace, jaxpr, dims)
    outs = remat_opt_p.bind(*consts, *operands, jaxpr=batched, num_res=num_res)
    return outs, [0] * len(outs)


remat_opt_p = _forward_rule("remat_opt", _opt_forward, dce=_opt_dce, batch_axis=_opt_batch)


# -- a rule for the first time and one for the second ----------------------------------------------


def bind_custom_remat(fwd: FlatRule, rem: FlatRule, args: Values) -> tuple[list[Any], list[Any]]:
    """Residuals of `rem`, and the results of `fwd`."""
    avals = [get_aval(x) for x in args]
    first, n_saved = _traced(fwd, avals)

    def both(*inputs: Any) -> list[Any]:
        saved, given = inputs[:n_saved], inputs[n_saved:]
        outs = jaxpr_as_fun(first)(*given)
        residuals, again = rem(saved, *given)
        return [*outs, *residuals, *again]

    closed = trace_to_jaxpr(both, [*first.out_avals[:n_saved], *avals], first.debug_info)
    results = custom_remat_p.bind(
        *closed.consts, *args, jaxpr=consts_as_inputs(closed), num_consts=len(closed.consts),
        num_saved=n_saved, num_outs=len(first.out_avals) - n_saved)
    n_res = len(results) - len(first.out_avals) + n_saved
    return results[:n_res], results[n_res:]


def _first_rule(jaxpr: ClosedJaxpr, num_consts: int, num_saved: int, num_outs: int) -> ClosedJaxpr:
    """From (constants, arguments) to (saved values, results)."""
    n = num_saved + num_outs
    inputs = [not num_consts <= i < num_consts + num_saved for i in range(len(jaxpr.in_avals))]
    return part_of(jaxpr, tuple([i < n for i in range(len(jaxpr.out_avals))]), tuple(inputs))


def _second_rule(jaxpr: ClosedJaxpr, wanted: Flags) -> ClosedJaxpr:
    """From (constants, saved values, arguments) to (residuals, results), those that are wanted."""
    before = (False,) * (len(jaxpr.out_avals) - len(wanted))
    return part_of(jaxpr, before + wanted, (True,) * len(jaxpr.in_avals))


@derived
def _in_turn(jaxpr: ClosedJaxpr, num_consts: int, num_saved: int, num_outs: int) -> ClosedJaxpr:
    """From (constants, arguments) to (residuals, results, saved values), by one rule after the
    other."""
    first = _first_rule(jaxpr, num_consts, num_saved, num_outs)
    n_res = len(jaxpr.out_avals) - num_saved - 2 * num_outs
    second = _second_rule(jaxpr, (True,) * n_res + (False,) * num_outs)

    def fun(*args: Any) -> list[Any]:
        results = jaxpr_as_fun(first)(*args)
        saved, outs = results[:num_saved], results[num_saved:]
        residuals = jaxpr_as_fun(second)(*args[:num_consts], *saved, *args[num_consts:])
        return [*residuals, *outs, *saved]

    return trace_to_jaxpr(fun, first.in_avals, jaxpr.debug_info)


def _both_rules(params: Params) -> ClosedJaxpr:
    counts = [params[name] for name in ("num_consts", "num_saved", "num_outs")]
    return _in_turn(params["jaxpr"], *counts)


def _remat_forward(params: Params) -> ClosedJaxpr:
    program = _both_rules(params)
    n = len(program.out_avals) - params["num_saved"]
    used = tuple([i < n for i in range(len(program.out_avals))])
    return part_of(program, used, (True,) * len(program.in_avals))


def _remat_cut(eqn: JaxprEqn, policy: Policy, needed: Flags) -> CutEqn:
    if is_saved(policy, eqn):
        return CutEqn(eqn, selected(eqn.outvars, needed), None)
    program = _both_rules(eqn.params)
    n, n_consts = len(eqn.outvars), eqn.params["num_consts"]
    saved = [Var(a) for a in program.out_avals[n:]]
    again = _second_rule(eqn.params["jaxpr"], needed)
    inputs = [*eqn.invars[:n_consts], *saved, *eqn.invars[n_consts:]]
    name = program.debug_info.func_name
    return CutEqn(call_eqn(eqn, program, name, eqn.invars, [*eqn.outvars, *saved]), saved,
                  call_eqn(eqn, again, name, inputs, selected(eqn.outvars, needed)))


def _remat_batch(trace: BatchTrace, operands: Values, dims: Dims, *, jaxpr: ClosedJaxpr,
                 num_consts: int, num_saved: int, num_outs: int) -> Any:
    batched, consts = _batched(
        trace, jaxpr, [*dims[:num_consts], *[0] * num_saved, *dims[num_consts:]])
    outs = custom_remat_p.bind(
        *consts, *operands, jaxpr=batched, num_consts=len(consts) + num_consts,
        num_saved=num_saved, num_outs=num_outs)
    return outs, [0] * len(outs)


custom_remat_p = _forward_rule(
    "custom_remat", _remat_forward, cut=_remat_cut, batch_axis=_remat_batch)
