"""The operations: thin public functions over the primitives, one file a family.

Names load their family when they are first used.
"""

from __future__ import annotations

from pyjx.lazy import attach

# Public names by family.
FAMILIES: dict[str, str] = {
    "pyjx.lax.loops": "while_loop while_p",
    "pyjx.lax.conditionals": "cond cond_p platform_dependent switch",
    "pyjx.lax.fori": "fori_loop",
    "pyjx.lax.mapping": "associative_scan map",
    "pyjx.lax.scans": "scan scan_p",
    "pyjx.lax.linear_solves": "custom_linear_solve custom_root linear_solve_p",
    "pyjx.lax.foreign_calls": "composite",
    "pyjx.lax.common": "broadcast_shapes",
    "pyjx.core.dtypes": "dtype",
    "pyjx.runtime.resharding": "sharding_constraint_p with_sharding_constraint",
    "pyjx.runtime.device_put": "device_put_p",
    "pyjx.engine.primitives": "iota_p optimization_barrier_p",
    "pyjx.engine.axes": (
        "broadcast_in_dim broadcast_in_dim_p reduce_sum reduce_sum_p transpose transpose_p"),
    "pyjx.lax.elementwise": (
        "RoundingMethod add add_p ceil ceil_p div div_p floor floor_p integer_pow integer_pow_p "
        "mul mul_p neg neg_p nextafter nextafter_p one_minus_square one_minus_square_p polynomial "
        "polynomial_p reciprocal round round_p square square_p sub sub_p"),
    "pyjx.lax.transcendental": (
        "AccuracyMode Tolerance acos acos_p acosh acosh_p asin asin_p asinh asinh_p atan atan2 "
        "atan2_p atan_p atanh atanh_p cbrt cbrt_p cos cos_p cosh cosh_p exp exp2 exp2_p exp_p "
        "expm1 expm1_p log log1p log1p_p log2 log2_p log_p logistic logistic_p pow pow_p rsqrt "
        "rsqrt_p sin sin_p sinh sinh_p sqrt sqrt_p tan tan_p tanh tanh_p"),
    "pyjx.lax.compare": (
        "abs abs_p clamp clamp_p eq eq_p eq_to_p ge ge_p gt gt_p is_finite is_finite_p le le_p "
        "le_to_p lt lt_p lt_to_p max max_p min min_p ne ne_p rem rem_p select select_n select_n_p "
        "sign sign_p"),
    "pyjx.lax.bitwise": (
        "and_p bitwise_and bitwise_not bitwise_or bitwise_xor clz clz_p mulhi mulhi_p not_p or_p "
        "population_count population_count_p shift_left shift_left_p shift_right_arithmetic "
        "shift_right_arithmetic_p shift_right_logical shift_right_logical_p xor_p"),
    "pyjx.lax.collectives": (
        "axis_index axis_index_p axis_size pcast pmax pmax_p pmean pmin pmin_p psum psum_p"),
    "pyjx.lax.exchanges": (
        "all_gather all_gather_p all_to_all all_to_all_p pbroadcast ppermute ppermute_p pshuffle "
        "psum_scatter psum_scatter_start pswapaxes"),
    "pyjx.lax.ragged_exchange": "ragged_all_to_all ragged_all_to_all_p",
    "pyjx.lax.convert": (
        "complex complex_p conj conj_p convert_element_type convert_element_type_p copy_p full "
        "full_like imag imag_p optimization_barrier real real_p "
        "reduce_precision reduce_precision_p stop_gradient stop_gradient_p"),
    "pyjx.lax.special": (
        "bessel_i0e bessel_i0e_p bessel_i1e bessel_i1e_p digamma digamma_p erf erf_inv erf_inv_p "
        "erf_p erfc erfc_p lgamma lgamma_p polygamma polygamma_p zeta zeta_p"),
    "pyjx.lax.incomplete": (
        "betainc igamma igamma_grad_a igamma_grad_a_p igamma_p igammac igammac_p "
        "random_gamma_grad random_gamma_grad_p regularized_incomplete_beta_p"),
    "pyjx.lax.contractions": (
        "DotAlgorithm DotAlgorithmPreset DotDimensionNumbers Precision PrecisionLike batch_matmul "
        "dot dot_general dot_general_p scaled_dot"),
    "pyjx.lax.ragged": "RaggedDotDimensionNumbers ragged_dot ragged_dot_general",
    "pyjx.lax.convolution": (
        "conv conv_general_dilated conv_general_dilated_local conv_general_dilated_p "
        "conv_general_dilated_patches conv_general_shape_tuple conv_transpose "
        "conv_transpose_shape_tuple conv_with_general_padding"),
    "pyjx.lax.convolution_shapes": (
        "ConvDimensionNumbers ConvGeneralDilatedDimensionNumbers conv_dimension_numbers "
        "conv_general_permutations conv_shape_tuple padtype_to_pads"),
    "pyjx.lax.reductions": (
        "argmax argmax_p argmin argmin_p reduce reduce_and reduce_and_p reduce_max reduce_max_p "
        "reduce_min reduce_min_p reduce_or reduce_or_p reduce_p reduce_prod reduce_prod_p "
        "reduce_xor reduce_xor_p"),
    "pyjx.lax.windows": (
        "reduce_window reduce_window_max_p reduce_window_min_p reduce_window_p "
        "reduce_window_shape_tuple reduce_window_sum_p select_and_gather_add_p "
        "select_and_scatter_add_p select_and_scatter_p"),
    "pyjx.lax.cumulative": (
        "cumlogsumexp cumlogsumexp_p cummax cummax_p cummin cummin_p cumprod cumprod_p cumsum "
        "cumsum_p"),
    "pyjx.lax.sorting": (
        "approx_max_k approx_min_k approx_top_k_p sort sort_key_val sort_p top_k top_k_p"),
    "pyjx.lax.shapes": (
        "bitcast_convert_type bitcast_convert_type_p broadcast broadcast_to_rank collapse "
        "expand_dims reshape reshape_p rev rev_p squeeze squeeze_p tile tile_p"),
    "pyjx.lax.joining": (
        "concatenate concatenate_p index_in_dim pad pad_p slice slice_in_dim slice_p split "
        "split_p stack stack_p unstack unstack_p"),
    "pyjx.lax.fourier": "FftType fft fft_p",
    "pyjx.lax.staging": (
        "after_all after_all_p broadcast_like create_token create_token_p dce_sink dce_sink_p "
        "shape_as_value stage stage_p"),
    "pyjx.lax.creation": "broadcasted_iota empty iota",
    "pyjx.lax.random_bits": (
        "RandomAlgorithm rng_bit_generator rng_bit_generator_p rng_uniform rng_uniform_p"),
    "pyjx.lax.slicing": (
        "dynamic_index_in_dim dynamic_slice dynamic_slice_in_dim dynamic_slice_p "
        "dynamic_update_index_in_dim dynamic_update_slice dynamic_update_slice_in_dim "
        "dynamic_update_slice_p index_take"),
    "pyjx.lax.indexing": (
        "GatherDimensionNumbers GatherScatterMode ScatterDimensionNumbers gather gather_p "
        "scatter_add scatter_add_p scatter_sub scatter_sub_p"),
    "pyjx.lax.scattering": (
        "scatter scatter_apply scatter_max scatter_max_p scatter_min scatter_min_p scatter_mul "
        "scatter_mul_p scatter_p"),
}

SUBMODULES = "linalg"

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES, SUBMODULES)
