# Written by `python -m pyjx.cli.stubs` from the table of pyjx.interpreters.mlir.

from pyjx.compat.lowering_rules import core_call_lowering as core_call_lowering
from pyjx.compat.lowering_rules import emit_python_callback as emit_python_callback
from pyjx.compat.lowering_rules import jaxpr_subcomp as jaxpr_subcomp
from pyjx.compat.lowering_rules import lower_fun as lower_fun
from pyjx.compat.lowering_rules import lower_jaxpr_to_fun as lower_jaxpr_to_fun
from pyjx.compat.lowering_rules import register_lowering as register_lowering
from pyjx.compat.lowering_rules import lowerable_effects as lowerable_effects
from pyjx.compat.mlir_values import AxisContext as AxisContext
from pyjx.compat.mlir_values import ConstantHandler as ConstantHandler
from pyjx.compat.mlir_values import DEVICE_TO_DEVICE_TYPE as DEVICE_TO_DEVICE_TYPE
from pyjx.compat.mlir_values import LoweringParameters as LoweringParameters
from pyjx.compat.mlir_values import LoweringResult as LoweringResult
from pyjx.compat.mlir_values import LoweringRule as LoweringRule
from pyjx.compat.mlir_values import LoweringRuleContext as LoweringRuleContext
from pyjx.compat.mlir_values import ModuleContext as ModuleContext
from pyjx.compat.mlir_values import RECV_FROM_HOST_TYPE as RECV_FROM_HOST_TYPE
from pyjx.compat.mlir_values import SEND_TO_HOST_TYPE as SEND_TO_HOST_TYPE
from pyjx.compat.mlir_values import SPMDAxisContext as SPMDAxisContext
from pyjx.compat.mlir_values import ShapePolyLoweringState as ShapePolyLoweringState
from pyjx.compat.mlir_values import ShardingContext as ShardingContext
from pyjx.compat.mlir_values import Token as Token
from pyjx.compat.mlir_values import TokenSet as TokenSet
from pyjx.compat.mlir_values import Value as Value
from pyjx.compat.mlir_values import aval_to_ir_type as aval_to_ir_type
from pyjx.compat.mlir_values import aval_to_ir_types as aval_to_ir_types
from pyjx.compat.mlir_values import dense_int_array as dense_int_array
from pyjx.compat.mlir_values import dense_int_elements as dense_int_elements
from pyjx.compat.mlir_values import dtype_to_ir_type as dtype_to_ir_type
from pyjx.compat.mlir_values import flatten_ir_types as flatten_ir_types
from pyjx.compat.mlir_values import flatten_ir_values as flatten_ir_values
from pyjx.compat.mlir_values import i32_attr as i32_attr
from pyjx.compat.mlir_values import i64_attr as i64_attr
from pyjx.compat.mlir_values import ir as ir
from pyjx.compat.mlir_values import ir_attribute as ir_attribute
from pyjx.compat.mlir_values import ir_constant as ir_constant
from pyjx.compat.mlir_values import ir_constants as ir_constants
from pyjx.compat.mlir_values import ir_tree_registry as ir_tree_registry
from pyjx.compat.mlir_values import ir_type_handlers as ir_type_handlers
from pyjx.compat.mlir_values import lower_jaxpr_to_module as lower_jaxpr_to_module
from pyjx.compat.mlir_values import make_ir_context as make_ir_context
from pyjx.compat.mlir_values import merge_mlir_modules as merge_mlir_modules
from pyjx.compat.mlir_values import module_to_bytecode as module_to_bytecode
from pyjx.compat.mlir_values import module_to_string as module_to_string
from pyjx.compat.mlir_values import register_constant_handler as register_constant_handler
from pyjx.compat.mlir_values import shape_tensor as shape_tensor
from pyjx.compat.mlir_values import token_type as token_type
from pyjx.compat.mlir_values import unflatten_ir_values_like_types as unflatten_ir_values_like_types
from pyjx.core.meshes import Mesh as Mesh

__all__ = [
    "core_call_lowering",
    "emit_python_callback",
    "jaxpr_subcomp",
    "lower_fun",
    "lower_jaxpr_to_fun",
    "register_lowering",
    "lowerable_effects",
    "AxisContext",
    "ConstantHandler",
    "DEVICE_TO_DEVICE_TYPE",
    "LoweringParameters",
    "LoweringResult",
    "LoweringRule",
    "LoweringRuleContext",
    "ModuleContext",
    "RECV_FROM_HOST_TYPE",
    "SEND_TO_HOST_TYPE",
    "SPMDAxisContext",
    "ShapePolyLoweringState",
    "ShardingContext",
    "Token",
    "TokenSet",
    "Value",
    "aval_to_ir_type",
    "aval_to_ir_types",
    "dense_int_array",
    "dense_int_elements",
    "dtype_to_ir_type",
    "flatten_ir_types",
    "flatten_ir_values",
    "i32_attr",
    "i64_attr",
    "ir",
    "ir_attribute",
    "ir_constant",
    "ir_constants",
    "ir_tree_registry",
    "ir_type_handlers",
    "lower_jaxpr_to_module",
    "make_ir_context",
    "merge_mlir_modules",
    "module_to_bytecode",
    "module_to_string",
    "register_constant_handler",
    "shape_tensor",
    "token_type",
    "unflatten_ir_values_like_types",
    "Mesh",
]
