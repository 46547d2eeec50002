"""What libraries build on: primitives, jaxprs, interpreters, backends."""

from __future__ import annotations

from pyjx import jaxlib_api
from pyjx.lazy import attach, views

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
        "pyjx.lax": (
            "abs_p acos_p acosh_p add_p after_all_p all_gather_p all_to_all_p and_p "
            "approx_top_k_p argmax_p argmin_p asin_p asinh_p atan2_p atan_p atanh_p axis_index_p "
            "bessel_i0e_p bessel_i1e_p bitcast_convert_type_p broadcast_in_dim_p cbrt_p ceil_p "
            "clamp_p clz_p complex_p concatenate_p cond_p conj_p conv_general_dilated_p "
            "convert_element_type_p copy_p cos_p cosh_p create_token_p cumlogsumexp_p cummax_p "
            "cummin_p cumprod_p cumsum_p device_put_p digamma_p div_p dot_general_p "
            "dynamic_slice_p dynamic_update_slice_p eq_p eq_to_p erf_inv_p erf_p erfc_p exp2_p "
            "exp_p expm1_p fft_p floor_p gather_p ge_p gt_p igamma_grad_a_p igamma_p igammac_p "
            "imag_p integer_pow_p iota_p is_finite_p le_p le_to_p lgamma_p linear_solve_p log1p_p "
            "log2_p log_p logistic_p lt_p lt_to_p max_p min_p mul_p ne_p neg_p nextafter_p not_p "
            "one_minus_square_p or_p pad_p pmax_p pmin_p polygamma_p polynomial_p "
            "population_count_p pow_p ppermute_p psum_p ragged_all_to_all_p real_p reduce_and_p "
            "reduce_max_p reduce_min_p reduce_or_p reduce_p reduce_precision_p reduce_prod_p "
            "reduce_sum_p reduce_window_max_p reduce_window_min_p reduce_window_p "
            "reduce_window_sum_p reduce_xor_p regularized_incomplete_beta_p rem_p reshape_p rev_p "
            "rng_bit_generator_p rng_uniform_p round_p rsqrt_p scan_p scatter_add_p scatter_max_p "
            "scatter_min_p scatter_mul_p scatter_p select_and_gather_add_p "
            "select_and_scatter_add_p select_and_scatter_p select_n_p sharding_constraint_p "
            "shift_left_p shift_right_arithmetic_p shift_right_logical_p sign_p sin_p sinh_p "
            "slice_p sort_p sqrt_p square_p squeeze_p stop_gradient_p sub_p tan_p tanh_p top_k_p "
            "transpose_p while_p xor_p zeta_p"),
        "pyjx.lax.linalg": (
            "cholesky_p eig_p eigh_p hessenberg_p householder_product_p lu_p qr_p schur_p svd_p "
            "triangular_solve_p tridiagonal_p tridiagonal_solve_p"),
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
