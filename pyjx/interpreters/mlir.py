"""Lowering: the rules of primitives that build MLIR operations."""

from __future__ import annotations

from pyjx.lazy import attach

FAMILIES: dict[str, str] = {
    "pyjx.compat.lowering_rules": (
        "LoweringRuleContext ModuleContext aval_to_ir_type aval_to_ir_types dense_int_array "
        "dense_int_elements dtype_to_ir_type emit_python_callback flatten_ir_types "
        "flatten_ir_values i32_attr i64_attr ir ir_attribute ir_constant lower_fun "
        "make_ir_context module_to_bytecode module_to_string register_lowering"
    ),
}

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES)
