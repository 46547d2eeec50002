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
from pyjx.core.evaluation import eval_jaxpr, jaxpr_as_fun
from pyjx.core.jaxpr import ClosedJaxpr, DebugInfo, JaxprEqn, Var
from pyjx.core.primitive import Holding, Primitive
from pyjx.core.trace import trace_to_jaxpr
from pyjx.engine.batching import BatchTrace
from pyjx.engine.calls import call_eqn, standing_for
from pyjx.engine.functions import name_of
from pyjx.engine.holders import with_all_consts
from pyjx.engine.residuals import CutEqn, Policy, kept_by
from pyjx.engine.subjaxprs import batch_jaxpr, in_front, part_of, selected, with_outputs
from pyjx.engine.types import Dims, Flags, Params, Value, Values

FlatRule = Callable[..., tuple[list[Any], list[Any]]]  # of arguments: residuals, results


def _batched(trace: BatchTrace, jaxpr: ClosedJaxpr, dims: Dims) -> ClosedJaxpr:
    """The program of a batch, whose results have their batch axes in front."""
    front = in_front((True,) * len(jaxpr.out_avals))
    return batch_jaxpr(jaxpr, tuple(dims), trace.axis, front).jaxpr


def _forward_rule(name: str, forward: Callable[[Params], ClosedJaxpr], batch_axis: Any,
                  **ways: Any) -> Primitive:
    """A primitive that stands for the program that `forward` makes of its parameters."""
    def inline(*args: Value, **params: Any) -> list[Any]:
        closed = forward(params)
        return eval_jaxpr(closed.jaxpr, closed.consts, *args)

    return standing_for(name, forward, Holding(stands_for=forward, **ways), own_rules=True,
                        decomposition=inline, batch_axis=batch_axis)


def _traced(rule: FlatRule, avals: Sequence[Any]) -> tuple[ClosedJaxpr, int]:
    """The program of a rule, and the number of its residuals."""
    n_res = 0

    def flat(*args: Any) -> list[Any]:
        nonlocal n_res
        residuals, outs = rule(*args)
        n_res = len(residuals)
        return [*residuals, *outs]

    return trace_to_jaxpr(flat, avals, DebugInfo("custom_vjp fwd", name_of(rule))), n_res


# -- the function in the place of its rule ---------------------------------------------------------


def bind_remat_opt(fwd: FlatRule, fun: Callable[..., list[Any]], args: Values
                   ) -> tuple[list[Any], list[Any]]:
    """What `fwd` gives for `args`: residuals, and the results of `fun`."""
    avals = list(map(get_aval, args))
    rule, n_res = _traced(fwd, avals)
    primal = trace_to_jaxpr(fun, avals, DebugInfo("custom_vjp", name_of(fun)))
    (rule, primal), consts = with_all_consts([rule, primal])
    results = remat_opt_p.bind(*consts, *args, fwd=rule, fun=primal, num_res=n_res)
    return results[:n_res], results[n_res:]


def _opt_dce(eqn: JaxprEqn, used: Flags) -> JaxprEqn:
    """The function, where no residual is used."""
    n_res = eqn.params["num_res"]
    if any(used[:n_res]):
        return eqn
    fun = part_of(eqn.params["fun"], used[n_res:], (True,) * len(eqn.invars))
    return call_eqn(eqn, fun, fun.debug_info.func_name, eqn.invars, selected(eqn.outvars, used))


def _opt_batch(trace: BatchTrace, operands: Values, dims: Dims, *, fwd: ClosedJaxpr,
               fun: ClosedJaxpr, num_res: int) -> Any:
    (fwd, fun), consts = with_all_consts([_batched(trace, p, dims) for p in (fwd, fun)])
    outs = remat_opt_p.bind(*consts, *operands, fwd=fwd, fun=fun, num_res=num_res)
    return outs, [0] * len(outs)


remat_opt_p = _forward_rule(
    "remat_opt", lambda params: params["fwd"], dce=_opt_dce, batch_axis=_opt_batch)


# -- a rule for the first time and one for the second ----------------------------------------------


def bind_custom_remat(fwd: FlatRule, rem: FlatRule, args: Values) -> tuple[list[Any], list[Any]]:
    """Residuals of `rem`, and the results of `fwd`."""
    avals = list(map(get_aval, args))
    first, n_saved = _traced(fwd, avals)
    second, n_res = _traced(lambda *inputs: rem(inputs[:n_saved], *inputs[n_saved:]),
                            [*first.out_avals[:n_saved], *avals])
    (first, second), consts = with_all_consts([first, second])
    results = custom_remat_p.bind(
        *consts, *args, fwd=first, rem=second, num_saved=n_saved, num_consts=len(consts))
    return results[:n_res], results[n_res:]


@derived
def _chained(fwd: ClosedJaxpr, rem: ClosedJaxpr, num_saved: int, num_consts: int) -> ClosedJaxpr:
    """From (constants, arguments) to (residuals, results, saved values), by one rule after the
    other."""
    n_res = len(rem.out_avals) - len(fwd.out_avals) + num_saved
    second = with_outputs(rem, tuple(range(n_res)))

    def fun(*args: Any) -> list[Any]:
        results = jaxpr_as_fun(fwd)(*args)
        saved, outs = results[:num_saved], results[num_saved:]
        residuals = jaxpr_as_fun(second)(*args[:num_consts], *saved, *args[num_consts:])
        return [*residuals, *outs, *saved]

    return trace_to_jaxpr(fun, fwd.in_avals, fwd.debug_info)


def _both_rules(params: Params) -> ClosedJaxpr:
    return _chained(*[params[name] for name in ("fwd", "rem", "num_saved", "num_consts")])


def _remat_forward(params: Params) -> ClosedJaxpr:
    program = _both_rules(params)
    return with_outputs(program, tuple(range(len(program.out_avals) - params["num_saved"])))


def _remat_cut(eqn: JaxprEqn, policy: Policy, needed: Flags) -> CutEqn:
    if kept_by(policy, eqn):
        return CutEqn(eqn, selected(eqn.outvars, needed), None)
    program = _both_rules(eqn.params)
    n, n_consts = len(eqn.outvars), eqn.params["num_consts"]
    saved = [Var(a) for a in program.out_avals[n:]]
    inputs = [*eqn.invars[:n_consts], *saved, *eqn.invars[n_consts:]]
    again = part_of(eqn.params["rem"], needed, (True,) * len(inputs))
    name = program.debug_info.func_name
    return CutEqn(call_eqn(eqn, program, name, eqn.invars, [*eqn.outvars, *saved]), saved,
                  call_eqn(eqn, again, name, inputs, selected(eqn.outvars, needed)))


def _remat_batch(trace: BatchTrace, operands: Values, dims: Dims, *, fwd: ClosedJaxpr,
                 rem: ClosedJaxpr, num_saved: int, num_consts: int) -> Any:
    later = [*dims[:num_consts], *[0] * num_saved, *dims[num_consts:]]
    (fwd, rem), consts = with_all_consts(
        [_batched(trace, fwd, dims), _batched(trace, rem, later)])
    outs = custom_remat_p.bind(
        *consts, *operands, fwd=fwd, rem=rem, num_saved=num_saved,
        num_consts=len(consts) + num_consts)
    return outs, [0] * len(outs)


custom_remat_p = _forward_rule(
    "custom_remat", _remat_forward, cut=_remat_cut, batch_axis=_remat_batch)
