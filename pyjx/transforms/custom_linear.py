"""Linear functions with transposes that the user gives: `linear_call` and its primitive.

Its operands are residuals, among them what the two programs close over, and linear arguments."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any

from pyjx.core.avals import get_aval
from pyjx.core.evaluation import jaxpr_as_fun
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.linearity import LAST
from pyjx.core.primitive import Holding, Primitive, register
from pyjx.core.trace import trace_to_jaxpr
from pyjx.engine.batching import BatchTrace, match_axis
from pyjx.engine.forward import jvp_flat
from pyjx.engine.functions import FlatFun, check_values, flatten
from pyjx.engine.holders import with_all_consts
from pyjx.engine.subjaxprs import batch_jaxpr
from pyjx.engine.tangents import Zero, add_tangents, instantiate
from pyjx.engine.types import Dims, Operand, Tangents, Value, Values


def _bind(callee: ClosedJaxpr, transpose: ClosedJaxpr, num_res: int, *operands: Value) -> list[Any]:
    programs, consts = with_all_consts([callee, transpose])
    return linear_call_p.bind(  # type: ignore[no-any-return]
        *consts, *operands, callee=programs[0], transpose=programs[1],
        num_res=len(consts) + num_res)


def _jvp(primals: Values, tangents: Tangents, *, callee: ClosedJaxpr, transpose: ClosedJaxpr,
         num_res: int) -> Any:
    outs = _bind(callee, transpose, num_res, *primals)
    out_tangents: list[Any] = [Zero.of_primal(x) for x in outs]
    linear = tangents[num_res:]
    if any(type(t) is not Zero for t in tangents[:num_res]):  # by the function
        still = [*tangents[:num_res], *map(Zero.of_primal, primals[num_res:])]
        out_tangents = jvp_flat(jaxpr_as_fun(callee), primals, still)[1]
    if any(type(t) is not Zero for t in linear):
        out_tangents = list(map(add_tangents, out_tangents, _bind(
            callee, transpose, num_res, *primals[:num_res], *map(instantiate, linear))))
    return outs, out_tangents


def _transpose(cts: Tangents, *operands: Operand, callee: ClosedJaxpr, transpose: ClosedJaxpr,
               num_res: int) -> list[Any]:
    outs = _bind(transpose, callee, num_res, *operands[:num_res], *map(instantiate, cts))
    return [None] * num_res + outs


def _batch(trace: BatchTrace, operands: Values, dims: Dims, *, callee: ClosedJaxpr,
           transpose: ClosedJaxpr, num_res: int) -> Any:
    """Linear operands and results are mapped, all of them: what is the same for all examples has
    the sum of their cotangents."""
    axis, n = trace.axis, num_res
    linear = [match_axis(x, d, 0, axis) for x, d in zip(operands[n:], dims[n:], strict=True)]
    places = [(0,) * len(program.out_avals) for program in (transpose, callee)]
    run, back = [batch_jaxpr(program, (*dims[:n], *ins), axis, outs).jaxpr for program, ins, outs
                 in zip((callee, transpose), places, places[::-1], strict=True)]
    return _bind(run, back, n, *operands[:n], *linear), places[1]


linear_call_p = register(Primitive(
    "linear_call", shape_rule=lambda *avals, callee, **_: callee.out_avals, jvp=_jvp,
    batch_axis=_batch, transpose=_transpose, multiple_results=True, cached=False, linear=LAST,
    decomposition=lambda *operands, callee, **_: jaxpr_as_fun(callee)(*operands),
    effects=lambda params: params["callee"].effects, own_rules=True,
    holder=Holding(runs=itemgetter("callee")),
))


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
    return flat.unflatten(_bind(callee, transposed, n, *operands))
