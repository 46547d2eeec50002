"""Rematerialization: `remat2`, a call whose backward pass computes again what its policy does not
save, and the calls of forward rules that have a say in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from lowering.rules import rules_for
from pyjx import configuration
from pyjx.core import source_info
from pyjx.core.avals import get_aval, is_ref_type
from pyjx.core.derived import derived, derived_structure
from pyjx.core.evaluation import jaxpr_as_fun
from pyjx.core.jaxpr import Atom, ClosedJaxpr, DebugInfo, Jaxpr, JaxprEqn, Var
from pyjx.core.name_stack import NameStack
from pyjx.core.primitive import Holding, Primitive, register
from pyjx.core.printer import without_address
from pyjx.core.source_info import SourceInfo
from pyjx.core.trace import trace_to_jaxpr
from pyjx.engine.batching import BatchTrace
from pyjx.engine.calls import call, call_eqn, define_call, standing_for
from pyjx.engine.functions import name_of
from pyjx.engine.holders import with_all_consts
from pyjx.engine.primitives import name_p, optimization_barrier_p
from pyjx.engine.residuals import CutEqn, Policy, Recompute, kept_by, linearize_saving
from pyjx.engine.subjaxprs import (
    LinearizedJaxpr,
    batch_jaxpr,
    in_front,
    part_of,
    selected,
    with_outputs,
)
from pyjx.engine.types import Dims, Flags, Params, Values
from pyjx.lazy import deferred

logging = deferred("logging")  # slow to load, and seldom wanted


def nothing_saveable(*_: Any, **__: Any) -> Any:
    """A policy that saves nothing: all is computed again from the arguments."""
    return Recompute


# -- lowering --------------------------------------------------------------------------------------


def _with_barrier(params: Params) -> ClosedJaxpr:
    closed, prevent_cse = _named(params["jaxpr"]), params["prevent_cse"]
    if not params["differentiated"]:
        return closed
    if isinstance(prevent_cse, bool):
        prevent_cse = (prevent_cse,) * len(closed.invars)
    prevent_cse = tuple([flag and not is_ref_type(a)
                         for flag, a in zip(prevent_cse, closed.in_avals, strict=True)])
    return _behind_barrier(closed, prevent_cse) if any(prevent_cse) else closed


@derived_structure
def _named(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with the name that its operations have in profiles."""
    jaxpr = closed.jaxpr
    return ClosedJaxpr(jaxpr.replace(eqns=[
        e.replace(source_info=SourceInfo(e.source_info.traceback, _NAME + e.source_info.name_stack))
        for e in jaxpr.eqns]), closed.consts)


_NAME = NameStack().extend("checkpoint")
_BARRIER = NameStack().extend("remat2")


@derived_structure
def _behind_barrier(closed: ClosedJaxpr, flags: Flags) -> ClosedJaxpr:
    """The program with inputs, those with a flag, that XLA may not see through: so it cannot find
    that what is computed here has been computed in the forward pass."""
    jaxpr = closed.jaxpr
    given = [Var(v.aval) if flag else v for v, flag in zip(jaxpr.invars, flags, strict=True)]
    first = jaxpr.eqns[0].source_info.traceback if jaxpr.eqns else None
    barrier = JaxprEqn(optimization_barrier_p, selected(given, flags), selected(
        jaxpr.invars, flags), {}, frozenset(), SourceInfo(first, _BARRIER))
    return ClosedJaxpr(jaxpr.replace(invars=given, eqns=[barrier, *jaxpr.eqns]), closed.consts)


def _run(*args: Any, **params: Any) -> list[Any]:
    if _is_python(params["jaxpr"]):
        return jaxpr_as_fun(params["jaxpr"])(*args)
    closed = _with_barrier(params)
    return call(closed, closed.debug_info.func_name, *args)


@derived_structure
def _is_python(closed: ClosedJaxpr) -> bool:
    """Whether an operation is computed by a function of Python's alone, as those of libraries are
    that have no lowering rule: it cannot be compiled."""
    rules = rules_for("cpu")
    return any([p.own_impl is not None and rules[p.name] is None and p.decomposition is None
                and p.holder.stands_for is None for p in {e.primitive for e in closed.eqns}])


# -- derivatives -----------------------------------------------------------------------------------


def _derive_remat(params: Params, origins: Dims, linear: bool) -> Params:
    flags = params["prevent_cse"]
    if not isinstance(flags, bool):
        flags = tuple([i is None or flags[i] for i in origins])
    return {**params, "prevent_cse": flags, "differentiated": linear or params["differentiated"]}


def _linearized(closed: ClosedJaxpr, nonzero: Flags, params: Params) -> LinearizedJaxpr:
    """The function with what the policy saves; the rest of it in the linear part."""
    parts = linearize_saving(closed, nonzero, params["policy"] or nothing_saveable)
    if configuration.log_checkpoint_residuals.value:
        _log_residuals(parts, len(closed.outvars))
    return parts


def _log_residuals(parts: LinearizedJaxpr, n_out: int) -> None:
    known = parts.known.jaxpr
    lines = ["remat-decorated function saving inputs with shapes:",
             *[f"  {known.invars[i].aval.str_short()}" for i in parts.forwarded]]
    saved = known.outvars[n_out:]
    if saved:
        lines.append("and saving these intermediates:")
        lines += [f"  {v.aval.str_short()} from {origin(known, v)[1]}" for v in saved]
    logging.getLogger(__name__).warning("\n".join(lines))


remat_p = define_call(register(Primitive(
    "remat2", multiple_results=True, cached=False, impl=_run,
    printed=partial(without_address, "policy"),
)), _derive_remat, _linearized, _with_barrier)


# -- where values come from, in words: for lists of what backward passes keep ----------------------


_Place = tuple[int, ...]


def origin(jaxpr: Jaxpr, v: Atom) -> tuple[_Place, str]:
    """Where a value of a program comes from: constants come first, then arguments, then results."""
    if v in jaxpr.invars:
        i = jaxpr.invars.index(v)  # type: ignore[arg-type]
        names = jaxpr.debug_info.arg_names
        return (1, i), f"from the argument {names[i] if names else i}"
    for i, eqn in enumerate(jaxpr.eqns):
        if v not in eqn.outvars:
            continue
        where = source_info.summarize(eqn.source_info)
        if eqn.primitive.holder.runs is not None and not eqn.primitive.is_call:
            place, text = _inside(jaxpr, eqn, eqn.outvars.index(v))
            return (place if place[0] < 2 else (2, i, *place)), text
        for j, e in enumerate(jaxpr.eqns):
            if e.primitive is name_p and v in (*e.outvars, *e.invars):
                where = source_info.summarize(e.source_info)
                return (2, j), f"named '{e.params['name']}' from {where}"
        what = (f"jitted function '{eqn.params['name']}'" if eqn.primitive.is_call
                else eqn.primitive.name)
        return (2, i, eqn.outvars.index(v)), f"output of {what} from {where}"
    return (0, 0), "from a constant"


def _inside(jaxpr: Jaxpr, eqn: JaxprEqn, position: int) -> tuple[_Place, str]:
    """The origin of a result of a call, such as the forward pass of a `checkpoint` function."""
    assert eqn.primitive.holder.runs is not None
    called = eqn.primitive.holder.runs(eqn.params).jaxpr
    v = called.outvars[position]
    if v in called.invars:
        return origin(jaxpr, eqn.invars[called.invars.index(v)])
    return origin(called, v)


# -- forward rules that rematerialization treats in a way of their own -----------------------------
# A forward rule gives residuals and the results of its function. `remat_opt` is one that has the
# function beside it: where a program does not read the residuals, because it computes them again,
# dead code elimination puts the function in its place. `custom_remat` is a pair of rules:
#     fwd(*args) -> (saved, outs)
#     rem(saved, *args) -> (residuals, outs)
# Rematerialization keeps what the first one saves and runs the second one again; elsewhere the
# second follows the first at once.


FlatRule = Callable[..., tuple[list[Any], list[Any]]]  # of arguments: residuals, results


def _batched(trace: BatchTrace, jaxpr: ClosedJaxpr, dims: Dims) -> ClosedJaxpr:
    """The program of a batch, whose results have their batch axes in front."""
    front = in_front((True,) * len(jaxpr.out_avals))
    return batch_jaxpr(jaxpr, tuple(dims), trace.axis, front).jaxpr


def _forward_rule(name: str, forward: Callable[[Params], ClosedJaxpr], batch_axis: Any,
                  **ways: Any) -> Primitive:
    """A primitive that stands for the program that `forward` makes of its parameters."""
    return standing_for(
        name, forward, Holding(stands_for=forward, **ways), own_rules=True, batch_axis=batch_axis,
        decomposition=lambda *args, **params: jaxpr_as_fun(forward(params))(*args))


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
    (fwd, rem), consts = with_all_consts([_batched(trace, fwd, dims), _batched(trace, rem, later)])
    outs = custom_remat_p.bind(*consts, *operands, fwd=fwd, rem=rem, num_saved=num_saved,
                               num_consts=len(consts) + num_consts)
    return outs, [0] * len(outs)


custom_remat_p = _forward_rule(
    "custom_remat", _remat_forward, cut=_remat_cut, batch_axis=_remat_batch)
