"""The primitive of linear functions whose transpose is given: `linear_call`.

Its operands are what `callee` closes over, what `transpose` closes over, residuals and linear
arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyjx.core.evaluation import eval_jaxpr
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, Var
from pyjx.core.primitive import Primitive, register
from pyjx.engine.batching import BatchTrace, batch_flat
from pyjx.engine.forward import jvp_flat
from pyjx.engine.tangents import Zero, instantiate
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
    if any(type(t) is not Zero for t in tangents[:n]):  # the function itself, then
        return outs, jvp_flat(lambda *xs: _apply(*xs, **params), primals, tangents)[1]
    return outs, linear_call_p.bind(*primals[:n], *map(instantiate, tangents[n:]), **params)


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


def _batch(trace: BatchTrace, operands: Values, dims: Dims, **params: Any) -> Any:
    return batch_flat(lambda *xs: _apply(*xs, **params), operands, dims, trace.axis)


linear_call_p = register(Primitive(
    "linear_call", shape_rule=_shape, jvp=_jvp, batch_axis=_batch, transpose=_transpose,
    decomposition=_apply, multiple_results=True, cached=False, linear=True,
    effects=lambda params: params["callee"].effects, own_rules=True, runs=_runs,
))
