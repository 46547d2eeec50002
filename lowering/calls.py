"""Calls of nested jaxprs: private functions, written once."""

from __future__ import annotations

from typing import Any

from lowering.builder import Block, rule
from lowering.module import call_closed
from pyjx.core.jaxpr import JaxprEqn


@rule("jit")
def _jit(b: Block, eqn: JaxprEqn, *operands: str) -> Any:
    return call_closed(b, eqn.params["jaxpr"], eqn.params["name"], operands)
