"""What libraries build on: primitives, jaxprs, interpreters, backends."""

from __future__ import annotations

from types import ModuleType

from pyjx import jaxlib_api, lax
from pyjx.lax import linalg
from pyjx.lazy import attach, views


def _primitives_of(package: ModuleType, *others: str) -> str:
    """The names of the primitives of a package, without others that it has."""
    return " ".join(sorted([name for name in package.__all__ if name.endswith("_p")
                            and name not in others]))


MODULES: dict[str, tuple[str, dict[str, str]]] = {
    "backend": ("The clients of the platforms.", {
        "pyjx.extend.bindings": "ifrt_proxy",
        "pyjx.runtime.backends": "get_default_device=default_device",
        "pyjx.runtime.jit": "clear_in_memory_compilation_cache=clear_caches",
        "pyjx.compat.devices": (
            "backend_xla_version backends clear_backends get_backend get_compile_options "
            "register_backend_cache register_backend_factory"),
    }),
    "core": ("Programs and primitives.", {
        "pyjx.core.avals": "AbstractToken Token get_aval is_valid_value",
        "pyjx.core.check": "check_jaxpr",
        "pyjx.compat.contexts": (
            "TraceTag find_top_trace get_opaque_trace_state nonempty_axis_env_DO_NOT_USE "
            "set_current_trace take_current_trace unsafe_am_i_under_a_jit_DO_NOT_USE "
            "unsafe_am_i_under_a_vmap_DO_NOT_USE unsafe_get_axis_names_DO_NOT_USE"),
        "pyjx.core.effects": "Effect Effects no_effects",
        "pyjx.core.jaxpr": (
            "ClosedJaxpr DebugInfo DropVar Jaxpr JaxprEqn Literal Var jaxprs_in_params "
            "new_jaxpr_eqn subjaxprs"),
        "pyjx.core.evaluation": "jaxpr_as_fun",
        "pyjx.core.trace": "concrete_or_error",
        "pyjx.compat.open_primitives": (
            "CallPrimitive Primitive call_impl create_call_primitive eval_jaxpr_transpose "
            "register_call_primitive_rules"),
        "pyjx.compat.values": (
            "array_types gensym mapped_aval primal_dtype_to_tangent_dtype unmapped_aval "
            "valid_jaxtype"),
        "pyjx.errors": "InconclusiveDimensionOperation JaxprTypeError",
    }),
    "core.primitives": ("Primitives that libraries look for in programs.", {
        "pyjx.compat.open_primitives": (
            "call_p closed_call_p create_call_primitive empty2_p eval_jaxpr_transpose "
            "register_call_primitive_rules xla_pmap_p"),
        "pyjx.engine.calls": "jit_p",
        "pyjx.engine.primitives": "name_p",
        "pyjx.engine.custom_derivative_calls": "custom_jvp_call_p custom_lin_p custom_vjp_call_p",
        "pyjx.engine.discharge": "get_p swap_p",
        "pyjx.engine.remat_calls": "remat_p",
        "pyjx.engine.tangents": "add_jaxvals_p=add_any_p",
        "pyjx.lax": _primitives_of(
            lax, "dce_sink_p", "mulhi_p", "optimization_barrier_p", "random_gamma_grad_p",
            "scatter_sub_p", "split_p", "stack_p", "stage_p", "tile_p", "unstack_p"),
        "pyjx.lax.linalg": _primitives_of(
            linalg, "cholesky_update_p", "lu_pivots_to_permutation_p", "ormqr_p",
            "symmetric_product_p"),
        "pyjx.lax.random_bits": "threefry2x32_p",
        "pyjx.random.gamma_samplers": "random_gamma_p",
        "pyjx.random.keys": "random_bits_p random_fold_in_p random_seed_p random_split_p",
    }),
    "ifrt_programs": ("Programs of runtimes that bring their own compiler.", {
        "pyjx.extend.bindings": "ifrt_programs",
    }),
    "lowering": ("What libraries that write lowering rules build on.", {
        "pyjx.compat.mlir_values": "LoweringRuleContext",
        "pyjx.extend.bindings": "JaxIrContext upstream_dialects",
    }),
    "mlir": ("The bindings of MLIR, and what jaxlib does with modules.", {
        "pyjx.extend.bindings": (
            "deserialize_portable_artifact hlo_to_stablehlo ir lower_with_sharding_in_types "
            "passmanager refine_polymorphic_shapes serialize_portable_artifact"),
    }),
    "mlir.dialects": ("The dialects of MLIR that jaxlib has bindings for.", {
        "pyjx.extend.bindings": " ".join([
            name for name in (
                "arith", "builtin", "chlo", "func", "math", "memref", "mpmd", "scf", "sdy",
                "sparse_tensor", "stablehlo", "vector")
            if jaxlib_api.has_submodule(f"mlir.dialects.{name}")]),
    }),
    "sharding": ("Shardings as XLA writes them.", {
        "pyjx.extend.bindings": (
            "get_hlo_sharding_from_serialized_proto get_op_sharding_from_serialized_proto "
            "get_serialized_proto_from_hlo_sharding"),
        "pyjx.jaxlib_api": "GSPMDSharding",
    }),
}

FAMILIES: dict[str, str] = {}

SUBMODULES = f"{views(__name__, MODULES)} linear_util pallas random source_info_util xla"

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES, SUBMODULES)
