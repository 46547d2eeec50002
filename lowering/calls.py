"""Calls of nested jaxprs: private functions, written once."""

from __future__ import annotations

import re
from typing import Any

from lowering.builder import Block
from lowering.locations import Scope
from lowering.module import KEEP_CALL, call_closed, captured, write_in_place
from lowering.rules import rule
from lowering.types import quoted, tensor_types
from pyjx.core.jaxpr import JaxprEqn
from pyjx.core.options import Inline


@rule("jit")
def _jit(b: Block, eqn: JaxprEqn, *operands: str) -> Any:
    closed, name = eqn.params["jaxpr"], eqn.params["name"]
    debug = closed.debug_info
    function = debug.func_name.rpartition(".")[2], debug.func_filename
    inline = eqn.params["inline"]
    if inline is Inline.JAX_LATE:
        return write_in_place(b, closed, operands)
    attributes = _XLA_INLINES.get(inline, "") if inline else ""
    return call_closed(b, closed, name, operands, scope=Scope("", function),
                       attributes=attributes)


_XLA_INLINES = {choice: f' {{mhlo.frontend_attributes = {{inlineable = "{choice.value}"}}}}'
                for choice in (Inline.XLA_EARLY, Inline.XLA_LATE)}


@rule("outlined_call")
def _outlined_call(b: Block, eqn: JaxprEqn, *operands: str) -> Any:
    return call_closed(b, eqn.params["jaxpr"], eqn.params["name"], operands, scope=b.scope,
                       attributes=KEEP_CALL)


_COMPOSITE_NAME = r"[a-zA-Z][a-zA-Z0-9_]*([.][a-zA-Z0-9_$]+)+"


@rule("composite")
def _composite(b: Block, eqn: JaxprEqn, *operands: str) -> Any:
    name, closed = eqn.params["name"], eqn.params["call_jaxpr"]
    if not isinstance(name, str) or not re.fullmatch(_COMPOSITE_NAME, name):
        raise ValueError("composite: name must be that of an operation in a namespace, such as "
                         f"'my_namespace.my_op', got {name!r}.")
    jaxpr = closed.jaxpr
    function = b.module.function(closed, name, Scope(name))
    attributes = [f"decomposition = @{function}"]
    if eqn.params["attributes"]:
        pairs = ", ".join([f"{key} = {text}" for key, text in eqn.params["attributes"]])
        attributes.insert(0, f"composite_attributes = {{{pairs}}}")
    if eqn.params["version"]:
        attributes.append(f"version = {eqn.params['version']} : i32")
    results = jaxpr.out_avals
    types = tensor_types(results) if len(results) == 1 else f"({tensor_types(results)})"
    return b.multi(
        f"stablehlo.composite {quoted(name)} {', '.join([*captured(b, closed), *operands])} "
        f"{{{', '.join(attributes)}}} : ({tensor_types([v.aval for v in jaxpr.all_invars])}) -> "
        f"{types}", len(results))


@rule("dce_sink")
def _dce_sink(b: Block, eqn: JaxprEqn, *operands: str) -> Any:
    if eqn.params["prevent_mlir_dce"]:
        b.custom_call("dce_sink", operands, [v.aval for v in eqn.invars], [], has_side_effect=True)
    return ()


@rule("custom_lin")
def _custom_lin(b: Block, eqn: JaxprEqn, *operands: str) -> Any:
    raise TypeError("can't apply forward-mode autodiff (jvp) to a custom_vjp function.")
