"""Calls of nested jaxprs: private functions, written once."""

from __future__ import annotations

from typing import Any

from lowering.builder import Block
from lowering.locations import Scope
from lowering.module import KEEP_CALL, call_closed
from lowering.rules import rule
from pyjx.core.jaxpr import JaxprEqn


@rule("jit")
def _jit(b: Block, eqn: JaxprEqn, *operands: str) -> Any:
    closed, name = eqn.params["jaxpr"], eqn.params["name"]
    debug = closed.debug_info
    function = debug.func_name.rpartition(".")[2], debug.func_filename
    return call_closed(b, closed, name, operands, scope=Scope("", function))


@rule("outlined_call")
def _outlined_call(b: Block, eqn: JaxprEqn, *operands: str) -> Any:
    return call_closed(b, eqn.params["jaxpr"], eqn.params["name"], operands, scope=b.scope,
                       attributes=KEEP_CALL)


@rule("custom_lin")
def _custom_lin(b: Block, eqn: JaxprEqn, *operands: str) -> Any:
    raise TypeError("can't apply forward-mode autodiff (jvp) to a custom_vjp function.")
