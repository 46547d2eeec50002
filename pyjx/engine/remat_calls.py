"""Rematerialization: `remat2`, a call whose backward pass computes again what its policy does not
save."""

from __future__ import annotations

import re
from typing import Any

from lowering.rules import rules_for
from pyjx import configuration
from pyjx.core.avals import is_ref_type
from pyjx.core.derived import derived_structure
from pyjx.core.evaluation import jaxpr_as_fun
from pyjx.core.jaxpr import ClosedJaxpr, JaxprEqn, Var
from pyjx.core.name_stack import NameStack
from pyjx.core.primitive import Primitive, register
from pyjx.core.source_info import SourceInfo
from pyjx.engine.barriers import optimization_barrier_p
from pyjx.engine.calls import call, define_call
from pyjx.engine.origins import origin
from pyjx.engine.residuals import Recompute, linearize_saving
from pyjx.engine.subjaxprs import LinearizedJaxpr, selected
from pyjx.engine.types import Dims, Flags, Params
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
_BARRIER = SourceInfo(None, NameStack().extend("remat2"))


@derived_structure
def _behind_barrier(closed: ClosedJaxpr, flags: Flags) -> ClosedJaxpr:
    """The program with inputs, those with a flag, that XLA may not see through: so it cannot find
    that what is computed here has been computed in the forward pass."""
    jaxpr = closed.jaxpr
    given = [Var(v.aval) if flag else v for v, flag in zip(jaxpr.invars, flags, strict=True)]
    barrier = JaxprEqn(optimization_barrier_p, selected(given, flags),
                       selected(jaxpr.invars, flags), {}, frozenset(), _BARRIER)
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
    return {**params, "prevent_cse": flags,
            "differentiated": linear or params["differentiated"]}


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


def _printed(params: Params) -> list[tuple[str, Any]]:
    policy = re.sub(r"\b0x[0-9a-f]+", "0xXXXXXXXXXXXX", str(params["policy"]))
    return [(key, policy if key == "policy" else params[key]) for key in sorted(params)]


remat_p = define_call(register(Primitive(
    "remat2", multiple_results=True, cached=False, impl=_run, printed=_printed,
)), _derive_remat, _linearized, _with_barrier)
