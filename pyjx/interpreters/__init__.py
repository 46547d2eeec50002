"""The interpreters of programs, and the rules that primitives have there."""

from __future__ import annotations

from pyjx.lazy import attach, views

MODULES: dict[str, tuple[str, dict[str, str]]] = {
    "ad": ("Derivatives: tangents, and the rules of primitives.", {
        "pyjx.compat.rule_tables": (
            "defbilinear defjvp defjvp2 deflinear deflinear2 get_primitive_transpose "
            "instantiate_zeros primitive_jvps primitive_transposes zeros_like_aval"),
        "pyjx.compat.partial_evaluation": "backward_pass jvp jvp_jaxpr linearize",
        "pyjx.engine.forward": "JVPTrace JVPTracer",
        "pyjx.engine.tangents": (
            "UndefinedPrimal Zero add_jaxvals=add_tangents add_jaxvals_p=add_any_p add_tangents "
            "is_undefined_primal"),
    }),
    "batching": ("Mapping: the rules of primitives.", {
        "pyjx.compat.rule_tables": (
            "AxisData axis_primitive_batchers defbroadcasting defreducer defvectorized "
            "fancy_primitive_batchers primitive_batchers"),
        "pyjx.compat.partial_evaluation": (
            "batch_jaxpr_axes batch_subtrace bdim_at_front broadcast moveaxis not_mapped "
            "zero_if_mapped"),
        "pyjx.transforms.vmap": "is_vmappable register_vmappable unregister_vmappable",
        "pyjx.engine.batching": "BatchTrace BatchTracer",
    }),
    "mlir": ("Lowering: the rules of primitives that build MLIR operations.", {
        "pyjx.compat.lowering_rules": (
            "core_call_lowering emit_python_callback jaxpr_subcomp lower_fun lower_jaxpr_to_fun "
            "register_lowering lowerable_effects"),
        "pyjx.compat.mlir_values": (
            "AxisContext ConstantHandler DEVICE_TO_DEVICE_TYPE LoweringParameters LoweringResult "
            "LoweringRule LoweringRuleContext ModuleContext RECV_FROM_HOST_TYPE SEND_TO_HOST_TYPE "
            "SPMDAxisContext ShapePolyLoweringState ShardingContext Token TokenSet Value "
            "aval_to_ir_type aval_to_ir_types dense_int_array dense_int_elements dtype_to_ir_type "
            "flatten_ir_types flatten_ir_values i32_attr i64_attr ir ir_attribute ir_constant "
            "ir_constants ir_tree_registry ir_type_handlers lower_jaxpr_to_module make_ir_context "
            "merge_mlir_modules module_to_bytecode module_to_string register_constant_handler "
            "shape_tensor token_type unflatten_ir_values_like_types"),
        "pyjx.core.meshes": "Mesh",
    }),
    "partial_eval": ("Programs: tracing functions, and taking programs apart.", {
        "pyjx.compat.partial_evaluation": (
            "JaxprTracer PartialVal abstract_eval_fun close_jaxpr convert_constvars_jaxpr "
            "custom_partial_eval_rules dce_jaxpr dce_jaxpr_call_rule dce_jaxpr_closed_call_rule "
            "dce_jaxpr_consts dce_rules lower_jaxpr lower_jaxpr2 move_binders_to_back "
            "new_eqn_recipe partial_eval_jaxpr_custom_rules partial_eval_jaxpr_nounits "
            "prune_closed_jaxpr_outputs trace_to_jaxpr_dynamic trace_to_jaxpr_nounits"),
        "pyjx.core.trace": "DynamicJaxprTrace DynamicJaxprTracer",
    }),
    "pxla": ("Programs on several devices.", {
        "pyjx.compat.devices": (
            "MeshComputation MeshExecutable create_compile_options global_aval_to_result_handler "
            "global_avals_to_results_handler global_result_handlers thread_resources"),
        "pyjx.core.meshes": "Mesh",
    }),
    "xla": ("Values as XLA takes them.", {
        "pyjx.compat.values": "Backend canonicalize_dtype_handlers",
        "pyjx.compat.open_primitives": "apply_primitive",
        "pyjx.core.avals": "pytype_aval_mappings=aval_makers",
    }),
}

FAMILIES: dict[str, str] = {}

SUBMODULES = views(__name__, MODULES)

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES, SUBMODULES)
