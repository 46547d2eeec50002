"""Calls of nested jaxprs: private functions, written once."""

from __future__ import annotations

from typing import Any

from lowering.builder import Block, rule
from lowering.module import KEEP_CALL, call_closed, emit_jaxpr
from pyjx.core.jaxpr import JaxprEqn


@rule("jit")
def _jit(b: Block, eqn: JaxprEqn, *operands: str) -> Any:
    return call_closed(b, eqn.params["jaxpr"], eqn.params["name"], operands)


@rule("outlined_call")
def _outlined_call(b: Block, eqn: JaxprEqn, *operands: str) -> Any:
    return call_closed(b, eqn.params["jaxpr"], eqn.params["name"], operands,
                       attributes=KEEP_CALL)


@rule("custom_jvp_call")
@rule("custom_vjp_call")
def _custom_call(b: Block, eqn: JaxprEqn, *operands: str) -> Any:
    """The function, inline: XLA knows of no derivatives."""
    called = eqn.params["call_jaxpr"]
    if called.consts:
        return call_closed(b, called, "custom_call", operands)
    return tuple(emit_jaxpr(b, called.jaxpr, dict(zip(called.jaxpr.invars, operands, strict=True))))


@rule("custom_lin")
def _custom_lin(b: Block, eqn: JaxprEqn, *operands: str) -> Any:
    raise TypeError("can't apply forward-mode autodiff (jvp) to a custom_vjp function.")
