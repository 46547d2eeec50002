"""The primitive of linear functions whose transpose is given: `linear_call`.

Its operands are what `callee` closes over, what `transpose` closes over, residuals and linear
arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyjx.core.evaluation import eval_jaxpr
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, Var
from pyjx.core.linearity import LAST
from pyjx.core.named_axes import Axis
from pyjx.core.primitive import Primitive, register
from pyjx.engine.batching import BatchTrace, match_axis
from pyjx.engine.forward import jvp_flat
from pyjx.engine.subjaxprs import batch_jaxpr
from pyjx.engine.tangents import Zero, add_tangents, instantiate
from pyjx.engine.types import Dims, Operand, Params, Tangents, Value, Values


def _apply(*operands: Value, callee: Jaxpr, transpose: Jaxpr, num_consts: tuple[int, int],
           num_res: int) -> list[Any]:
    ours, theirs = num_consts
    return eval_jaxpr(callee, operands[:ours], *operands[ours + theirs:])


def _shape(*avals: Any, callee: Jaxpr, **_: Any) -> Sequence[Any]:
    return callee.out_avals


def _runs(params: Params) -> ClosedJaxpr:
    """The function, as a program that takes what the transpose closes over as well."""
    callee: Jaxpr = params["callee"]
    theirs = [Var(v.aval) for v in params["transpose"].constvars]
    return ClosedJaxpr(callee.replace(
        constvars=[], invars=[*callee.constvars, *theirs, *callee.invars]), [])


def _jvp(primals: Values, tangents: Tangents, *, num_consts: tuple[int, int], num_res: int,
         **params: Any) -> Any:
    params = {"num_consts": num_consts, "num_res": num_res, **params}
    n = sum(num_consts) + num_res
    outs = linear_call_p.bind(*primals, **params)
    out_tangents: list[Any] = [Zero.of_primal(x) for x in outs]
    linear = tangents[n:]
    if any(type(t) is not Zero for t in tangents[:n]):  # of what it closes over: by the function
        still = [*tangents[:n], *map(Zero.of_primal, primals[n:])]
        out_tangents = jvp_flat(lambda *xs: _apply(*xs, **params), primals, still)[1]
    if any(type(t) is not Zero for t in linear):
        out_tangents = list(map(add_tangents, out_tangents, linear_call_p.bind(
            *primals[:n], *map(instantiate, linear), **params)))
    return outs, out_tangents


def _transpose(cts: Tangents, *operands: Operand, callee: Jaxpr, transpose: Jaxpr,
               num_consts: tuple[int, int], num_res: int) -> list[Any]:
    ours, theirs = num_consts
    n = ours + theirs + num_res
    outs = linear_call_p.bind(
        *operands[ours:ours + theirs], *operands[:ours], *operands[ours + theirs:n],
        *map(instantiate, cts), callee=transpose, transpose=callee, num_consts=(theirs, ours),
        num_res=num_res,
    )
    return [None] * n + list(outs)


def _batched(jaxpr: Jaxpr, dims: Sequence[int | None], axis: Axis) -> tuple[Jaxpr, list[Any]]:
    """The program for all examples, its results along their first axis, and constants that come
    before its own."""
    closed = ClosedJaxpr(jaxpr.replace(constvars=[], invars=jaxpr.all_invars), [])
    batched, _ = batch_jaxpr(closed, tuple(dims), axis, (0,) * len(jaxpr.outvars))
    n = len(batched.consts) + len(jaxpr.constvars)
    inputs = batched.jaxpr.all_invars
    return batched.jaxpr.replace(constvars=inputs[:n], invars=inputs[n:]), list(batched.consts)


def _batch(trace: BatchTrace, operands: Values, dims: Dims, *, callee: Jaxpr, transpose: Jaxpr,
           num_consts: tuple[int, int], num_res: int) -> Any:
    """Linear operands and results are mapped, all of them: what is the same for all examples has
    the sum of their cotangents."""
    ours, theirs = num_consts
    both, n = ours + theirs, ours + theirs + num_res
    axis = trace.axis
    linear = [match_axis(x, d, 0, axis) for x, d in zip(operands[n:], dims[n:], strict=True)]
    residuals = dims[both:n]
    run, run_consts = _batched(callee, [*dims[:ours], *residuals, *[0] * len(linear)], axis)
    back, back_consts = _batched(
        transpose, [*dims[ours:both], *residuals, *[0] * len(callee.outvars)], axis)
    outs = linear_call_p.bind(
        *run_consts, *operands[:ours], *back_consts, *operands[ours:n], *linear, callee=run,
        transpose=back, num_consts=(len(run.constvars), len(back.constvars)), num_res=num_res)
    return outs, [0] * len(outs)


linear_call_p = register(Primitive(
    "linear_call", shape_rule=_shape, jvp=_jvp, batch_axis=_batch, transpose=_transpose,
    decomposition=_apply, multiple_results=True, cached=False, linear=LAST,
    effects=lambda params: params["callee"].effects, own_rules=True, runs=_runs,
))
