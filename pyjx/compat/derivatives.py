"""Derivatives of functions of flat values, as libraries ask for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr
from pyjx.core.trace import eval_jaxpr
from pyjx.engine.forward import JVPTracer, jvp_flat
from pyjx.engine.linearize import linearize_flat, record_flat
from pyjx.engine.subjaxprs import jvp_jaxpr as forward_of
from pyjx.engine.tangents import Zero, is_undefined_primal
from pyjx.engine.tangents import instantiate as array_of
from pyjx.extend.linear_util import WrappedFun


def jvp(fun: WrappedFun, has_aux: bool = False, instantiate: bool = True,
        transform_stack: bool = True) -> WrappedFun:
    """The forward derivative of a wrapped function: of primals and tangents, it gives both. With
    `has_aux` the function gives a pair, of which the second one comes along, as a third result."""
    return fun.wrap(_pushed, (has_aux, instantiate), None)


def _pushed(call: Callable[..., Any], has_aux: bool, instantiate: bool, primals: Sequence[Any],
            tangents: Sequence[Any]) -> tuple[Any, ...]:
    aux: list[Any] = []

    def run(*args: Any) -> Sequence[Any]:
        outs = call(*args)
        if has_aux:
            outs, aux[:] = outs
        return outs  # type: ignore[no-any-return]

    outs, pushed = jvp_flat(run, list(primals), list(tangents))
    pushed = list(map(array_of, pushed)) if instantiate else pushed
    if not has_aux:
        return outs, pushed
    return outs, pushed, [x.primal if type(x) is JVPTracer else x for x in aux]


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
                  primals_in: Sequence[Any], cts_in: Sequence[Any]) -> list[Any]:
    """The cotangents of the linear inputs of a program, which are undefined primals."""
    linear = [is_undefined_primal(x) for x in primals_in]
    args = [x.aval if is_undefined_primal(x) else x for x in primals_in]
    _, program, dependent = record_flat(
        lambda *xs: eval_jaxpr(jaxpr, consts, *xs), args, linear, [False] * len(jaxpr.outvars))
    cts = iter(program.backward([c for c, d in zip(cts_in, dependent, strict=True) if d]))
    return [next(cts) if lin else Zero(v.aval.to_tangent_aval())
            for v, lin in zip(jaxpr.invars, linear, strict=True)]
