"""Linear functions with transposes that the user gives: `linear_call` and its primitive.

Its operands are what `callee` closes over, what `transpose` closes over, residuals and linear
arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyjx.core.avals import get_aval
from pyjx.core.evaluation import eval_jaxpr
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, Var
from pyjx.core.linearity import LAST
from pyjx.core.named_axes import Axis
from pyjx.core.primitive import Holding, Primitive, register
from pyjx.core.trace import trace_to_jaxpr
from pyjx.core.tracebacks import api_boundary
from pyjx.engine.batching import BatchTrace, match_axis
from pyjx.engine.forward import jvp_flat
from pyjx.engine.functions import FlatFun, check_values, flatten
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
    effects=lambda params: params["callee"].effects, own_rules=True,
    holder=Holding(runs=_runs),
))


@api_boundary
def linear_call(fun: Callable[..., Any], fun_transpose: Callable[..., Any], residual_args: Any,
                linear_args: Any) -> Any:
    """Call a linear function whose transpose is given.

    Args:
      fun: `(residual_args, linear_args) -> output`, linear in its second argument.
      fun_transpose: `(residual_args, cotangent of the output) -> cotangent of linear_args`.
      residual_args, linear_args: pytrees of arrays.

    Raises:
      TypeError: the result of `fun_transpose` has not the structure of `linear_args`.

    >>> import pyjx as jax
    >>> from pyjx.transforms.custom_linear import linear_call
    >>> f = lambda x: linear_call(lambda r, x: x / r, lambda r, ct: ct / r, 2.0, x)
    >>> float(f(3.0)), float(jax.linear_transpose(f, 1.0)(3.0)[0])
    (1.5, 1.5)
    """
    operands, in_tree = flatten((residual_args, linear_args))
    linear, linear_tree = flatten(linear_args)
    check_values(operands)
    n = len(operands) - len(linear)
    flat = FlatFun(fun, in_tree)
    avals = [get_aval(x) for x in operands]
    callee = trace_to_jaxpr(flat, avals)
    backward = FlatFun(fun_transpose, flatten((residual_args, flat.unflatten(callee.out_avals)))[1])
    transposed = trace_to_jaxpr(
        backward, [*avals[:n], *[a.to_tangent_aval() for a in callee.out_avals]])
    if backward.out_tree != linear_tree:
        raise TypeError(
            "linear_call: transpose function's output structure must match that of linear inputs, "
            f"got output structure {backward.out_tree} and input structure {linear_tree}."
        )
    outs = linear_call_p.bind(
        *callee.consts, *transposed.consts, *operands, callee=callee.jaxpr,
        transpose=transposed.jaxpr, num_consts=(len(callee.consts), len(transposed.consts)),
        num_res=n,
    )
    return flat.unflatten(outs)
