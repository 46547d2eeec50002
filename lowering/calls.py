"""Calls of nested jaxprs: private functions, written once."""

from __future__ import annotations

from typing import Any

from lowering.builder import Block, rule
from lowering.module import KEEP_CALL, call_closed
from pyjx.core.jaxpr import JaxprEqn


@rule("jit")
def _jit(b: Block, eqn: JaxprEqn, *operands: str) -> Any:
    return call_closed(b, eqn.params["jaxpr"], eqn.params["name"], operands)


@rule("outlined_call")
def _outlined_call(b: Block, eqn: JaxprEqn, *operands: str) -> Any:
    return call_closed(b, eqn.params["jaxpr"], eqn.params["name"], operands,
                       attributes=KEEP_CALL)
