# Written by `python -m pyjx.cli.stubs` from the table of pyjx.extend.core.primitives.

from pyjx.compat.open_primitives import call_p as call_p
from pyjx.compat.open_primitives import closed_call_p as closed_call_p
from pyjx.compat.open_primitives import create_call_primitive as create_call_primitive
from pyjx.compat.open_primitives import empty2_p as empty2_p
from pyjx.compat.open_primitives import eval_jaxpr_transpose as eval_jaxpr_transpose
from pyjx.compat.open_primitives import register_call_primitive_rules as register_call_primitive_rules
from pyjx.compat.open_primitives import xla_pmap_p as xla_pmap_p
from pyjx.engine.calls import jit_p as jit_p
from pyjx.engine.primitives import name_p as name_p
from pyjx.engine.custom_derivative_calls import custom_jvp_call_p as custom_jvp_call_p
from pyjx.engine.custom_derivative_calls import custom_lin_p as custom_lin_p
from pyjx.engine.custom_derivative_calls import custom_vjp_call_p as custom_vjp_call_p
from pyjx.engine.discharge import get_p as get_p
from pyjx.engine.discharge import swap_p as swap_p
from pyjx.engine.remat_calls import remat_p as remat_p
from pyjx.engine.tangents import add_any_p as add_jaxvals_p
from pyjx.lax import abs_p as abs_p
from pyjx.lax import acos_p as acos_p
from pyjx.lax import acosh_p as acosh_p
from pyjx.lax import add_p as add_p
from pyjx.lax import after_all_p as after_all_p
from pyjx.lax import all_gather_p as all_gather_p
from pyjx.lax import all_to_all_p as all_to_all_p
from pyjx.lax import and_p as and_p
from pyjx.lax import approx_top_k_p as approx_top_k_p
from pyjx.lax import argmax_p as argmax_p
from pyjx.lax import argmin_p as argmin_p
from pyjx.lax import asin_p as asin_p
from pyjx.lax import asinh_p as asinh_p
from pyjx.lax import atan2_p as atan2_p
from pyjx.lax import atan_p as atan_p
from pyjx.lax import atanh_p as atanh_p
from pyjx.lax import axis_index_p as axis_index_p
from pyjx.lax import bessel_i0e_p as bessel_i0e_p
from pyjx.lax import bessel_i1e_p as bessel_i1e_p
from pyjx.lax import bitcast_convert_type_p as bitcast_convert_type_p
from pyjx.lax import broadcast_in_dim_p as broadcast_in_dim_p
from pyjx.lax import cbrt_p as cbrt_p
from pyjx.lax import ceil_p as ceil_p
from pyjx.lax import clamp_p as clamp_p
from pyjx.lax import clz_p as clz_p
from pyjx.lax import complex_p as complex_p
from pyjx.lax import concatenate_p as concatenate_p
from pyjx.lax import cond_p as cond_p
from pyjx.lax import conj_p as conj_p
from pyjx.lax import conv_general_dilated_p as conv_general_dilated_p
from pyjx.lax import convert_element_type_p as convert_element_type_p
from pyjx.lax import copy_p as copy_p
from pyjx.lax import cos_p as cos_p
from pyjx.lax import cosh_p as cosh_p
from pyjx.lax import create_token_p as create_token_p
from pyjx.lax import cumlogsumexp_p as cumlogsumexp_p
from pyjx.lax import cummax_p as cummax_p
from pyjx.lax import cummin_p as cummin_p
from pyjx.lax import cumprod_p as cumprod_p
from pyjx.lax import cumsum_p as cumsum_p
from pyjx.lax import device_put_p as device_put_p
from pyjx.lax import digamma_p as digamma_p
from pyjx.lax import div_p as div_p
from pyjx.lax import dot_general_p as dot_general_p
from pyjx.lax import dynamic_slice_p as dynamic_slice_p
from pyjx.lax import dynamic_update_slice_p as dynamic_update_slice_p
from pyjx.lax import eq_p as eq_p
from pyjx.lax import eq_to_p as eq_to_p
from pyjx.lax import erf_inv_p as erf_inv_p
from pyjx.lax import erf_p as erf_p
from pyjx.lax import erfc_p as erfc_p
from pyjx.lax import exp2_p as exp2_p
from pyjx.lax import exp_p as exp_p
from pyjx.lax import expm1_p as expm1_p
from pyjx.lax import fft_p as fft_p
from pyjx.lax import floor_p as floor_p
from pyjx.lax import gather_p as gather_p
from pyjx.lax import ge_p as ge_p
from pyjx.lax import gt_p as gt_p
from pyjx.lax import igamma_grad_a_p as igamma_grad_a_p
from pyjx.lax import igamma_p as igamma_p
from pyjx.lax import igammac_p as igammac_p
from pyjx.lax import imag_p as imag_p
from pyjx.lax import integer_pow_p as integer_pow_p
from pyjx.lax import iota_p as iota_p
from pyjx.lax import is_finite_p as is_finite_p
from pyjx.lax import le_p as le_p
from pyjx.lax import le_to_p as le_to_p
from pyjx.lax import lgamma_p as lgamma_p
from pyjx.lax import linear_solve_p as linear_solve_p
from pyjx.lax import log1p_p as log1p_p
from pyjx.lax import log2_p as log2_p
from pyjx.lax import log_p as log_p
from pyjx.lax import logistic_p as logistic_p
from pyjx.lax import lt_p as lt_p
from pyjx.lax import lt_to_p as lt_to_p
from pyjx.lax import max_p as max_p
from pyjx.lax import min_p as min_p
from pyjx.lax import mul_p as mul_p
from pyjx.lax import ne_p as ne_p
from pyjx.lax import neg_p as neg_p
from pyjx.lax import nextafter_p as nextafter_p
from pyjx.lax import not_p as not_p
from pyjx.lax import one_minus_square_p as one_minus_square_p
from pyjx.lax import or_p as or_p
from pyjx.lax import pad_p as pad_p
from pyjx.lax import pmax_p as pmax_p
from pyjx.lax import pmin_p as pmin_p
from pyjx.lax import polygamma_p as polygamma_p
from pyjx.lax import polynomial_p as polynomial_p
from pyjx.lax import population_count_p as population_count_p
from pyjx.lax import pow_p as pow_p
from pyjx.lax import ppermute_p as ppermute_p
from pyjx.lax import psum_p as psum_p
from pyjx.lax import ragged_all_to_all_p as ragged_all_to_all_p
from pyjx.lax import real_p as real_p
from pyjx.lax import reduce_and_p as reduce_and_p
from pyjx.lax import reduce_max_p as reduce_max_p
from pyjx.lax import reduce_min_p as reduce_min_p
from pyjx.lax import reduce_or_p as reduce_or_p
from pyjx.lax import reduce_p as reduce_p
from pyjx.lax import reduce_precision_p as reduce_precision_p
from pyjx.lax import reduce_prod_p as reduce_prod_p
from pyjx.lax import reduce_sum_p as reduce_sum_p
from pyjx.lax import reduce_window_max_p as reduce_window_max_p
from pyjx.lax import reduce_window_min_p as reduce_window_min_p
from pyjx.lax import reduce_window_p as reduce_window_p
from pyjx.lax import reduce_window_sum_p as reduce_window_sum_p
from pyjx.lax import reduce_xor_p as reduce_xor_p
from pyjx.lax import regularized_incomplete_beta_p as regularized_incomplete_beta_p
from pyjx.lax import rem_p as rem_p
from pyjx.lax import reshape_p as reshape_p
from pyjx.lax import rev_p as rev_p
from pyjx.lax import rng_bit_generator_p as rng_bit_generator_p
from pyjx.lax import rng_uniform_p as rng_uniform_p
from pyjx.lax import round_p as round_p
from pyjx.lax import rsqrt_p as rsqrt_p
from pyjx.lax import scan_p as scan_p
from pyjx.lax import scatter_add_p as scatter_add_p
from pyjx.lax import scatter_max_p as scatter_max_p
from pyjx.lax import scatter_min_p as scatter_min_p
from pyjx.lax import scatter_mul_p as scatter_mul_p
from pyjx.lax import scatter_p as scatter_p
from pyjx.lax import select_and_gather_add_p as select_and_gather_add_p
from pyjx.lax import select_and_scatter_add_p as select_and_scatter_add_p
from pyjx.lax import select_and_scatter_p as select_and_scatter_p
from pyjx.lax import select_n_p as select_n_p
from pyjx.lax import sharding_constraint_p as sharding_constraint_p
from pyjx.lax import shift_left_p as shift_left_p
from pyjx.lax import shift_right_arithmetic_p as shift_right_arithmetic_p
from pyjx.lax import shift_right_logical_p as shift_right_logical_p
from pyjx.lax import sign_p as sign_p
from pyjx.lax import sin_p as sin_p
from pyjx.lax import sinh_p as sinh_p
from pyjx.lax import slice_p as slice_p
from pyjx.lax import sort_p as sort_p
from pyjx.lax import sqrt_p as sqrt_p
from pyjx.lax import square_p as square_p
from pyjx.lax import squeeze_p as squeeze_p
from pyjx.lax import stop_gradient_p as stop_gradient_p
from pyjx.lax import sub_p as sub_p
from pyjx.lax import tan_p as tan_p
from pyjx.lax import tanh_p as tanh_p
from pyjx.lax import top_k_p as top_k_p
from pyjx.lax import transpose_p as transpose_p
from pyjx.lax import while_p as while_p
from pyjx.lax import xor_p as xor_p
from pyjx.lax import zeta_p as zeta_p
from pyjx.lax.linalg import cholesky_p as cholesky_p
from pyjx.lax.linalg import eig_p as eig_p
from pyjx.lax.linalg import eigh_p as eigh_p
from pyjx.lax.linalg import hessenberg_p as hessenberg_p
from pyjx.lax.linalg import householder_product_p as householder_product_p
from pyjx.lax.linalg import lu_p as lu_p
from pyjx.lax.linalg import qr_p as qr_p
from pyjx.lax.linalg import schur_p as schur_p
from pyjx.lax.linalg import svd_p as svd_p
from pyjx.lax.linalg import triangular_solve_p as triangular_solve_p
from pyjx.lax.linalg import tridiagonal_p as tridiagonal_p
from pyjx.lax.linalg import tridiagonal_solve_p as tridiagonal_solve_p
from pyjx.lax.random_bits import threefry2x32_p as threefry2x32_p
from pyjx.random.gamma_samplers import random_gamma_p as random_gamma_p
from pyjx.random.keys import random_bits_p as random_bits_p
from pyjx.random.keys import random_fold_in_p as random_fold_in_p
from pyjx.random.keys import random_seed_p as random_seed_p
from pyjx.random.keys import random_split_p as random_split_p

__all__ = [
    "call_p",
    "closed_call_p",
    "create_call_primitive",
    "empty2_p",
    "eval_jaxpr_transpose",
    "register_call_primitive_rules",
    "xla_pmap_p",
    "jit_p",
    "name_p",
    "custom_jvp_call_p",
    "custom_lin_p",
    "custom_vjp_call_p",
    "get_p",
    "swap_p",
    "remat_p",
    "add_jaxvals_p",
    "abs_p",
    "acos_p",
    "acosh_p",
    "add_p",
    "after_all_p",
    "all_gather_p",
    "all_to_all_p",
    "and_p",
    "approx_top_k_p",
    "argmax_p",
    "argmin_p",
    "asin_p",
    "asinh_p",
    "atan2_p",
    "atan_p",
    "atanh_p",
    "axis_index_p",
    "bessel_i0e_p",
    "bessel_i1e_p",
    "bitcast_convert_type_p",
    "broadcast_in_dim_p",
    "cbrt_p",
    "ceil_p",
    "clamp_p",
    "clz_p",
    "complex_p",
    "concatenate_p",
    "cond_p",
    "conj_p",
    "conv_general_dilated_p",
    "convert_element_type_p",
    "copy_p",
    "cos_p",
    "cosh_p",
    "create_token_p",
    "cumlogsumexp_p",
    "cummax_p",
    "cummin_p",
    "cumprod_p",
    "cumsum_p",
    "device_put_p",
    "digamma_p",
    "div_p",
    "dot_general_p",
    "dynamic_slice_p",
    "dynamic_update_slice_p",
    "eq_p",
    "eq_to_p",
    "erf_inv_p",
    "erf_p",
    "erfc_p",
    "exp2_p",
    "exp_p",
    "expm1_p",
    "fft_p",
    "floor_p",
    "gather_p",
    "ge_p",
    "gt_p",
    "igamma_grad_a_p",
    "igamma_p",
    "igammac_p",
    "imag_p",
    "integer_pow_p",
    "iota_p",
    "is_finite_p",
    "le_p",
    "le_to_p",
    "lgamma_p",
    "linear_solve_p",
    "log1p_p",
    "log2_p",
    "log_p",
    "logistic_p",
    "lt_p",
    "lt_to_p",
    "max_p",
    "min_p",
    "mul_p",
    "ne_p",
    "neg_p",
    "nextafter_p",
    "not_p",
    "one_minus_square_p",
    "or_p",
    "pad_p",
    "pmax_p",
    "pmin_p",
    "polygamma_p",
    "polynomial_p",
    "population_count_p",
    "pow_p",
    "ppermute_p",
    "psum_p",
    "ragged_all_to_all_p",
    "real_p",
    "reduce_and_p",
    "reduce_max_p",
    "reduce_min_p",
    "reduce_or_p",
    "reduce_p",
    "reduce_precision_p",
    "reduce_prod_p",
    "reduce_sum_p",
    "reduce_window_max_p",
    "reduce_window_min_p",
    "reduce_window_p",
    "reduce_window_sum_p",
    "reduce_xor_p",
    "regularized_incomplete_beta_p",
    "rem_p",
    "reshape_p",
    "rev_p",
    "rng_bit_generator_p",
    "rng_uniform_p",
    "round_p",
    "rsqrt_p",
    "scan_p",
    "scatter_add_p",
    "scatter_max_p",
    "scatter_min_p",
    "scatter_mul_p",
    "scatter_p",
    "select_and_gather_add_p",
    "select_and_scatter_add_p",
    "select_and_scatter_p",
    "select_n_p",
    "sharding_constraint_p",
    "shift_left_p",
    "shift_right_arithmetic_p",
    "shift_right_logical_p",
    "sign_p",
    "sin_p",
    "sinh_p",
    "slice_p",
    "sort_p",
    "sqrt_p",
    "square_p",
    "squeeze_p",
    "stop_gradient_p",
    "sub_p",
    "tan_p",
    "tanh_p",
    "top_k_p",
    "transpose_p",
    "while_p",
    "xor_p",
    "zeta_p",
    "cholesky_p",
    "eig_p",
    "eigh_p",
    "hessenberg_p",
    "householder_product_p",
    "lu_p",
    "qr_p",
    "schur_p",
    "svd_p",
    "triangular_solve_p",
    "tridiagonal_p",
    "tridiagonal_solve_p",
    "threefry2x32_p",
    "random_gamma_p",
    "random_bits_p",
    "random_fold_in_p",
    "random_seed_p",
    "random_split_p",
]
