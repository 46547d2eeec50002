"""Lowering: the rules of primitives that build MLIR operations."""

from __future__ import annotations

from pyjx.lazy import attach

FAMILIES: dict[str, str] = {
    "pyjx.compat.hi_types": "lowerable_effects",
    "pyjx.compat.lowering_rules": (
        "core_call_lowering emit_python_callback jaxpr_subcomp lower_fun lower_jaxpr_to_fun "
        "register_lowering"
    ),
    "pyjx.compat.mlir_contexts": (
        "AxisContext DEVICE_TO_DEVICE_TYPE LoweringParameters LoweringResult LoweringRule "
        "LoweringRuleContext ModuleContext RECV_FROM_HOST_TYPE SEND_TO_HOST_TYPE SPMDAxisContext "
        "ShapePolyLoweringState ShardingContext TokenSet"
    ),
    "pyjx.compat.mlir_values": (
        "ConstantHandler Token Value aval_to_ir_type aval_to_ir_types dense_int_array "
        "dense_int_elements dtype_to_ir_type flatten_ir_types flatten_ir_values i32_attr i64_attr "
        "ir ir_attribute ir_constant ir_constants ir_tree_registry ir_type_handlers "
        "lower_jaxpr_to_module make_ir_context merge_mlir_modules module_to_bytecode "
        "module_to_string register_constant_handler shape_tensor token_type "
        "unflatten_ir_values_like_types"
    ),
    "pyjx.core.meshes": "Mesh",
}

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES)
