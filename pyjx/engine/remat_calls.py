"""Rematerialization: `remat2`, a call whose backward pass computes again what its policy does not
save, and `name`, which names values for policies."""

from __future__ import annotations

import re
from typing import Any

from pyjx import configuration
from pyjx.core.derived import derived_structure
from pyjx.core.jaxpr import ClosedJaxpr, JaxprEqn, Var
from pyjx.core.primitive import Primitive, register
from pyjx.core.source_info import no_source_info
from pyjx.engine.barriers import optimization_barrier_p
from pyjx.engine.calls import call, define_call
from pyjx.engine.linearize import LinearTrace
from pyjx.engine.origins import origin
from pyjx.engine.residuals import Recompute, linearize_saving
from pyjx.engine.subjaxprs import (
    LinearizedJaxpr,
    linear_flags,
    negated,
    nonzero_flags,
    selected,
    transpose_with_log,
    with_cotangents,
    with_zeros,
    without_tracers,
)
from pyjx.engine.tangents import Zero
from pyjx.engine.types import Dims, Flags, Operand, Params, Tangents, Values


def nothing_saveable(*_: Any, **__: Any) -> Any:
    """A policy that saves nothing: all is computed again from the arguments."""
    return Recompute


# -- lowering --------------------------------------------------------------------------------------


def _lowered_as(params: Params) -> ClosedJaxpr:
    closed, prevent_cse = params["jaxpr"], params["prevent_cse"]
    if not params["differentiated"]:
        return closed  # type: ignore[no-any-return]
    if isinstance(prevent_cse, bool):
        prevent_cse = (prevent_cse,) * len(closed.invars)
    return _behind_barrier(closed, prevent_cse) if any(prevent_cse) else closed


@derived_structure
def _behind_barrier(closed: ClosedJaxpr, flags: Flags) -> ClosedJaxpr:
    """The program with inputs, those with a flag, that XLA may not see through: so it cannot find
    that what is computed here has been computed in the forward pass."""
    jaxpr = closed.jaxpr
    given = [Var(v.aval) if flag else v for v, flag in zip(jaxpr.invars, flags, strict=True)]
    barrier = JaxprEqn(optimization_barrier_p, selected(given, flags),
                       selected(jaxpr.invars, flags), {}, frozenset(), no_source_info)
    return ClosedJaxpr(jaxpr.replace(invars=given, eqns=[barrier, *jaxpr.eqns]), closed.consts)


def _run(*args: Any, **params: Any) -> list[Any]:
    closed = _lowered_as(params)
    return call(closed, closed.debug_info.func_name, *args)


# -- derivatives -----------------------------------------------------------------------------------


def _derived(params: Params, origins: Dims) -> Params:
    flags = params["prevent_cse"]
    if isinstance(flags, bool):
        return params
    return {**params, "prevent_cse": tuple([i is None or flags[i] for i in origins])}


def _linearize(trace: LinearTrace, primals: Values, tangents: Tangents, **params: Any) -> Any:
    """The function now, with what the policy saves; the rest of it in the linear part."""
    closed: ClosedJaxpr = params["jaxpr"]
    nonzero = nonzero_flags(tangents)
    if not any(nonzero):
        outs = remat_p.bind(*primals, **params)
        return outs, [Zero.of_primal(o) for o in outs]
    parts = linearize_saving(closed, nonzero, params["policy"] or nothing_saveable)
    if configuration.log_checkpoint_residuals.value:
        _log_residuals(parts, len(closed.outvars))
    known, consts = without_tracers(parts.known)
    places = [*[None] * len(consts), *range(len(primals))]
    results = remat_p.bind(*consts, *primals, **{**_derived(params, places), "jaxpr": known})
    n = len(closed.outvars)
    linear, consts = without_tracers(parts.linear)
    operands = [*consts, *results[n:], *[primals[i] for i in parts.forwarded],
                *[t for t in tangents if type(t) is not Zero]]
    before = [None] * (len(consts) + len(results) - n)
    after = [None] * (len(operands) - len(before) - len(parts.forwarded))
    out_tangents = trace.record(remat_p, operands, {
        **_derived(params, [*before, *parts.forwarded, *after]), "jaxpr": linear,
        "differentiated": True})
    return results[:n], with_zeros(out_tangents, parts.nonzero, closed.out_avals)


def _log_residuals(parts: LinearizedJaxpr, n_out: int) -> None:
    import logging  # slow to load, and seldom wanted

    known = parts.known.jaxpr
    lines = ["remat-decorated function saving inputs with shapes:",
             *[f"  {known.invars[i].aval.str_short()}" for i in parts.forwarded]]
    saved = known.outvars[n_out:]
    if saved:
        lines.append("and saving these intermediates:")
        lines += [f"  {v.aval.str_short()} from {origin(known, v)[1]}" for v in saved]
    logging.getLogger(__name__).warning("\n".join(lines))


def _transpose(cts: Tangents, *operands: Operand, **params: Any) -> list[Any]:
    linear = linear_flags(operands)
    pulled = transpose_with_log(params["jaxpr"], linear, nonzero_flags(cts))
    closed, consts = without_tracers(pulled.jaxpr)
    known = [i for i, lin in enumerate(linear) if not lin]
    given = [ct for ct in cts if type(ct) is not Zero]
    origins = [*[None] * len(consts), *known, *[None] * len(given)]
    outs = remat_p.bind(*consts, *selected(operands, negated(linear)), *given,
                        **{**_derived(params, origins), "jaxpr": closed})
    pulled.write_log(outs)
    return with_cotangents(operands, pulled.nonzero, iter(outs))


def _printed(params: Params) -> list[tuple[str, Any]]:
    policy = re.sub(r"\b0x[0-9a-f]+", "0xXXXXXXXXXXXX", str(params["policy"]))
    return [(key, policy if key == "policy" else params[key]) for key in sorted(params)]


remat_p = define_call(register(Primitive(
    "remat2", multiple_results=True, cached=False, impl=_run, lowered_as=_lowered_as,
    linearize=_linearize, transpose=_transpose, printed=_printed,
)), _derived)


# -- names -----------------------------------------------------------------------------------------


def _name_jvp(primals: Values, tangents: Tangents, *, name: str) -> Any:
    (x,), (t,) = primals, tangents
    return name_p.bind(x, name=name), t


def _name_batch(operands: Values, dims: Dims, *, name: str) -> Any:
    return name_p.bind(operands[0], name=name), dims[0]


name_p = register(Primitive(
    "name", shape_rule=lambda x, name: x, jvp=_name_jvp, batch=_name_batch,
    transpose=lambda ct, x, name: [ct], impl=lambda x, name: x,
    decomposition=lambda x, name: x, linear=True,
))
