"""Linear functions with transposes that the user gives: `linear_call`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyjx.core.avals import get_aval
from pyjx.core.trace import trace_to_jaxpr
from pyjx.core.tracebacks import api_boundary
from pyjx.engine.functions import FlatFun, check_values, flatten
from pyjx.engine.linear_calls import linear_call_p


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
