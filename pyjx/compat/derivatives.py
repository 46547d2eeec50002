"""Derivatives of functions of flat values, as libraries ask for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from pyjx.core.evaluation import eval_jaxpr
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr
from pyjx.core.name_stack import transform_name_stack
from pyjx.engine.forward import JVPTracer, jvp_flat
from pyjx.engine.linearize import linearize_flat, record_flat
from pyjx.engine.logs import logging
from pyjx.engine.subjaxprs import jvp_jaxpr as forward_of
from pyjx.engine.tangents import Zero, is_undefined_primal
from pyjx.engine.tangents import instantiate as array_of
from pyjx.extend.linear_util import WrappedFun


def jvp(fun: Callable[..., Any], primals: Sequence[Any] | None = None,
        tangents: Sequence[Any] | None = None, has_aux: bool = False,
        instantiate: bool | Sequence[bool] = True, transform_stack: bool = True) -> Any:
    """The results of a function of flat values, and their tangents.

    Args:
      primals, tangents: of its operands; a tangent may be a symbolic `Zero`. Without them `fun` is
        a wrapped function, and the result the one that takes them.
      has_aux: the function gives a pair, of which the second one comes along, as a third result.
      instantiate: whether tangents that are zero are made arrays: of all results, or of each.
      transform_stack: whether operations say in profiles that they are of a derivative.
    """
    if primals is None or tangents is None:
        return fun.wrap(_pushed, (has_aux, instantiate, transform_stack), None)  # type: ignore[attr-defined]
    return _pushed(fun, has_aux, instantiate, transform_stack, primals, tangents)


def _pushed(call: Callable[..., Any], has_aux: bool, instantiate: bool | Sequence[bool],
            transform_stack: bool, primals: Sequence[Any], tangents: Sequence[Any]
            ) -> tuple[Any, ...]:
    aux: list[Any] = []

    def run(*args: Any) -> Sequence[Any]:
        outs = call(*args)
        if has_aux:
            outs, aux[:] = outs
        return outs  # type: ignore[no-any-return]

    with transform_name_stack("jvp") if transform_stack else nullcontext():
        outs, pushed = jvp_flat(run, list(primals), list(tangents))
    wanted = [instantiate] * len(outs) if isinstance(instantiate, bool) else instantiate
    pushed = [array_of(t) if w else t for t, w in zip(pushed, wanted, strict=True)]
    if not has_aux:
        return outs, pushed
    return outs, pushed, [x.primal if isinstance(x, JVPTracer) else x for x in aux]


def jvp_jaxpr(jaxpr: ClosedJaxpr, nonzeros: Sequence[bool], instantiate: bool | Sequence[bool]
              ) -> tuple[ClosedJaxpr, list[bool]]:
    """The forward derivative of a program, from its inputs and the tangents that are not zero, and
    which results have a tangent."""
    count = len(jaxpr.jaxpr.outvars)
    wanted = (instantiate,) * count if isinstance(instantiate, bool) else tuple(instantiate)
    derived = forward_of(jaxpr, tuple(nonzeros), wanted)
    return derived[0], list(derived[1])


def linearize(traceable: WrappedFun, *primals: Any, **options: Any
              ) -> tuple[list[Any], Callable[..., list[Any]]]:
    """Results of a wrapped function, and the linear map of its derivative there."""
    outs, program = linearize_flat(traceable.call_wrapped, list(primals))
    return outs, lambda *tangents: program.forward(list(tangents))


def backward_pass(jaxpr: Jaxpr, transform_stack: Any, consts: Sequence[Any],
                  primals_in: Sequence[Any], cts_in: Sequence[Any], *, return_logs: bool = False
                  ) -> Any:
    """The cotangents of the linear inputs of a program, which are undefined primals; with
    `return_logs` a pair of them and of what backward rules have logged."""
    linear = [is_undefined_primal(x) for x in primals_in]
    args = [x.aval if is_undefined_primal(x) else x for x in primals_in]
    _, program, dependent = record_flat(
        lambda *xs: eval_jaxpr(jaxpr, consts, *xs), args, linear, [False] * len(jaxpr.outvars))
    named = transform_name_stack("transpose") if transform_stack else nullcontext()
    with logging() as log, named:
        cts = iter(program.backward([c for c, d in zip(cts_in, dependent, strict=True) if d]))
    found = [next(cts) if lin else Zero(v.aval.to_tangent_aval())
             for v, lin in zip(jaxpr.invars, linear, strict=True)]
    return (found, log) if return_logs else found
