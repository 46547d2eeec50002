# Written by `python -m pyjx.cli.stubs` from the table of pyjx.lax.

from pyjx.lax import linalg as linalg
from pyjx.lax.loops import while_loop as while_loop
from pyjx.lax.loops import while_p as while_p
from pyjx.lax.conditionals import cond as cond
from pyjx.lax.conditionals import cond_p as cond_p
from pyjx.lax.conditionals import platform_dependent as platform_dependent
from pyjx.lax.conditionals import switch as switch
from pyjx.lax.fori import fori_loop as fori_loop
from pyjx.lax.mapping import associative_scan as associative_scan
from pyjx.lax.mapping import map as map
from pyjx.lax.scans import scan as scan
from pyjx.lax.scans import scan_p as scan_p
from pyjx.lax.linear_solves import custom_linear_solve as custom_linear_solve
from pyjx.lax.linear_solves import custom_root as custom_root
from pyjx.lax.linear_solves import linear_solve_p as linear_solve_p
from pyjx.lax.foreign_calls import composite as composite
from pyjx.lax.common import broadcast_shapes as broadcast_shapes
from pyjx.core.dtypes import dtype as dtype
from pyjx.runtime.resharding import sharding_constraint_p as sharding_constraint_p
from pyjx.runtime.resharding import with_sharding_constraint as with_sharding_constraint
from pyjx.runtime.device_put import device_put_p as device_put_p
from pyjx.engine.primitives import iota_p as iota_p
from pyjx.engine.primitives import optimization_barrier_p as optimization_barrier_p
from pyjx.engine.axes import broadcast_in_dim as broadcast_in_dim
from pyjx.engine.axes import broadcast_in_dim_p as broadcast_in_dim_p
from pyjx.engine.axes import reduce_sum as reduce_sum
from pyjx.engine.axes import reduce_sum_p as reduce_sum_p
from pyjx.engine.axes import transpose as transpose
from pyjx.engine.axes import transpose_p as transpose_p
from pyjx.lax.elementwise import RoundingMethod as RoundingMethod
from pyjx.lax.elementwise import add as add
from pyjx.lax.elementwise import add_p as add_p
from pyjx.lax.elementwise import ceil as ceil
from pyjx.lax.elementwise import ceil_p as ceil_p
from pyjx.lax.elementwise import div as div
from pyjx.lax.elementwise import div_p as div_p
from pyjx.lax.elementwise import floor as floor
from pyjx.lax.elementwise import floor_p as floor_p
from pyjx.lax.elementwise import integer_pow as integer_pow
from pyjx.lax.elementwise import integer_pow_p as integer_pow_p
from pyjx.lax.elementwise import mul as mul
from pyjx.lax.elementwise import mul_p as mul_p
from pyjx.lax.elementwise import neg as neg
from pyjx.lax.elementwise import neg_p as neg_p
from pyjx.lax.elementwise import nextafter as nextafter
from pyjx.lax.elementwise import nextafter_p as nextafter_p
from pyjx.lax.elementwise import one_minus_square as one_minus_square
from pyjx.lax.elementwise import one_minus_square_p as one_minus_square_p
from pyjx.lax.elementwise import polynomial as polynomial
from pyjx.lax.elementwise import polynomial_p as polynomial_p
from pyjx.lax.elementwise import reciprocal as reciprocal
from pyjx.lax.elementwise import round as round
from pyjx.lax.elementwise import round_p as round_p
from pyjx.lax.elementwise import square as square
from pyjx.lax.elementwise import square_p as square_p
from pyjx.lax.elementwise import sub as sub
from pyjx.lax.elementwise import sub_p as sub_p
from pyjx.lax.transcendental import AccuracyMode as AccuracyMode
from pyjx.lax.transcendental import Tolerance as Tolerance
from pyjx.lax.transcendental import acos as acos
from pyjx.lax.transcendental import acos_p as acos_p
from pyjx.lax.transcendental import acosh as acosh
from pyjx.lax.transcendental import acosh_p as acosh_p
from pyjx.lax.transcendental import asin as asin
from pyjx.lax.transcendental import asin_p as asin_p
from pyjx.lax.transcendental import asinh as asinh
from pyjx.lax.transcendental import asinh_p as asinh_p
from pyjx.lax.transcendental import atan as atan
from pyjx.lax.transcendental import atan2 as atan2
from pyjx.lax.transcendental import atan2_p as atan2_p
from pyjx.lax.transcendental import atan_p as atan_p
from pyjx.lax.transcendental import atanh as atanh
from pyjx.lax.transcendental import atanh_p as atanh_p
from pyjx.lax.transcendental import cbrt as cbrt
from pyjx.lax.transcendental import cbrt_p as cbrt_p
from pyjx.lax.transcendental import cos as cos
from pyjx.lax.transcendental import cos_p as cos_p
from pyjx.lax.transcendental import cosh as cosh
from pyjx.lax.transcendental import cosh_p as cosh_p
from pyjx.lax.transcendental import exp as exp
from pyjx.lax.transcendental import exp2 as exp2
from pyjx.lax.transcendental import exp2_p as exp2_p
from pyjx.lax.transcendental import exp_p as exp_p
from pyjx.lax.transcendental import expm1 as expm1
from pyjx.lax.transcendental import expm1_p as expm1_p
from pyjx.lax.transcendental import log as log
from pyjx.lax.transcendental import log1p as log1p
from pyjx.lax.transcendental import log1p_p as log1p_p
from pyjx.lax.transcendental import log2 as log2
from pyjx.lax.transcendental import log2_p as log2_p
from pyjx.lax.transcendental import log_p as log_p
from pyjx.lax.transcendental import logistic as logistic
from pyjx.lax.transcendental import logistic_p as logistic_p
from pyjx.lax.transcendental import pow as pow
from pyjx.lax.transcendental import pow_p as pow_p
from pyjx.lax.transcendental import rsqrt as rsqrt
from pyjx.lax.transcendental import rsqrt_p as rsqrt_p
from pyjx.lax.transcendental import sin as sin
from pyjx.lax.transcendental import sin_p as sin_p
from pyjx.lax.transcendental import sinh as sinh
from pyjx.lax.transcendental import sinh_p as sinh_p
from pyjx.lax.transcendental import sqrt as sqrt
from pyjx.lax.transcendental import sqrt_p as sqrt_p
from pyjx.lax.transcendental import tan as tan
from pyjx.lax.transcendental import tan_p as tan_p
from pyjx.lax.transcendental import tanh as tanh
from pyjx.lax.transcendental import tanh_p as tanh_p
from pyjx.lax.compare import abs as abs
from pyjx.lax.compare import abs_p as abs_p
from pyjx.lax.compare import clamp as clamp
from pyjx.lax.compare import clamp_p as clamp_p
from pyjx.lax.compare import eq as eq
from pyjx.lax.compare import eq_p as eq_p
from pyjx.lax.compare import eq_to_p as eq_to_p
from pyjx.lax.compare import ge as ge
from pyjx.lax.compare import ge_p as ge_p
from pyjx.lax.compare import gt as gt
from pyjx.lax.compare import gt_p as gt_p
from pyjx.lax.compare import is_finite as is_finite
from pyjx.lax.compare import is_finite_p as is_finite_p
from pyjx.lax.compare import le as le
from pyjx.lax.compare import le_p as le_p
from pyjx.lax.compare import le_to_p as le_to_p
from pyjx.lax.compare import lt as lt
from pyjx.lax.compare import lt_p as lt_p
from pyjx.lax.compare import lt_to_p as lt_to_p
from pyjx.lax.compare import max as max
from pyjx.lax.compare import max_p as max_p
from pyjx.lax.compare import min as min
from pyjx.lax.compare import min_p as min_p
from pyjx.lax.compare import ne as ne
from pyjx.lax.compare import ne_p as ne_p
from pyjx.lax.compare import rem as rem
from pyjx.lax.compare import rem_p as rem_p
from pyjx.lax.compare import select as select
from pyjx.lax.compare import select_n as select_n
from pyjx.lax.compare import select_n_p as select_n_p
from pyjx.lax.compare import sign as sign
from pyjx.lax.compare import sign_p as sign_p
from pyjx.lax.bitwise import and_p as and_p
from pyjx.lax.bitwise import bitwise_and as bitwise_and
from pyjx.lax.bitwise import bitwise_not as bitwise_not
from pyjx.lax.bitwise import bitwise_or as bitwise_or
from pyjx.lax.bitwise import bitwise_xor as bitwise_xor
from pyjx.lax.bitwise import clz as clz
from pyjx.lax.bitwise import clz_p as clz_p
from pyjx.lax.bitwise import mulhi as mulhi
from pyjx.lax.bitwise import mulhi_p as mulhi_p
from pyjx.lax.bitwise import not_p as not_p
from pyjx.lax.bitwise import or_p as or_p
from pyjx.lax.bitwise import population_count as population_count
from pyjx.lax.bitwise import population_count_p as population_count_p
from pyjx.lax.bitwise import shift_left as shift_left
from pyjx.lax.bitwise import shift_left_p as shift_left_p
from pyjx.lax.bitwise import shift_right_arithmetic as shift_right_arithmetic
from pyjx.lax.bitwise import shift_right_arithmetic_p as shift_right_arithmetic_p
from pyjx.lax.bitwise import shift_right_logical as shift_right_logical
from pyjx.lax.bitwise import shift_right_logical_p as shift_right_logical_p
from pyjx.lax.bitwise import xor_p as xor_p
from pyjx.lax.collectives import axis_index as axis_index
from pyjx.lax.collectives import axis_index_p as axis_index_p
from pyjx.lax.collectives import axis_size as axis_size
from pyjx.lax.collectives import pcast as pcast
from pyjx.lax.collectives import pmax as pmax
from pyjx.lax.collectives import pmax_p as pmax_p
from pyjx.lax.collectives import pmean as pmean
from pyjx.lax.collectives import pmin as pmin
from pyjx.lax.collectives import pmin_p as pmin_p
from pyjx.lax.collectives import psum as psum
from pyjx.lax.collectives import psum_p as psum_p
from pyjx.lax.exchanges import all_gather as all_gather
from pyjx.lax.exchanges import all_gather_p as all_gather_p
from pyjx.lax.exchanges import all_to_all as all_to_all
from pyjx.lax.exchanges import all_to_all_p as all_to_all_p
from pyjx.lax.exchanges import pbroadcast as pbroadcast
from pyjx.lax.exchanges import ppermute as ppermute
from pyjx.lax.exchanges import ppermute_p as ppermute_p
from pyjx.lax.exchanges import pshuffle as pshuffle
from pyjx.lax.exchanges import psum_scatter as psum_scatter
from pyjx.lax.exchanges import psum_scatter_start as psum_scatter_start
from pyjx.lax.exchanges import pswapaxes as pswapaxes
from pyjx.lax.ragged_exchange import ragged_all_to_all as ragged_all_to_all
from pyjx.lax.ragged_exchange import ragged_all_to_all_p as ragged_all_to_all_p
from pyjx.lax.convert import complex as complex
from pyjx.lax.convert import complex_p as complex_p
from pyjx.lax.convert import conj as conj
from pyjx.lax.convert import conj_p as conj_p
from pyjx.lax.convert import convert_element_type as convert_element_type
from pyjx.lax.convert import convert_element_type_p as convert_element_type_p
from pyjx.lax.convert import copy_p as copy_p
from pyjx.lax.convert import full as full
from pyjx.lax.convert import full_like as full_like
from pyjx.lax.convert import imag as imag
from pyjx.lax.convert import imag_p as imag_p
from pyjx.lax.convert import optimization_barrier as optimization_barrier
from pyjx.lax.convert import real as real
from pyjx.lax.convert import real_p as real_p
from pyjx.lax.convert import reduce_precision as reduce_precision
from pyjx.lax.convert import reduce_precision_p as reduce_precision_p
from pyjx.lax.convert import stop_gradient as stop_gradient
from pyjx.lax.convert import stop_gradient_p as stop_gradient_p
from pyjx.lax.special import bessel_i0e as bessel_i0e
from pyjx.lax.special import bessel_i0e_p as bessel_i0e_p
from pyjx.lax.special import bessel_i1e as bessel_i1e
from pyjx.lax.special import bessel_i1e_p as bessel_i1e_p
from pyjx.lax.special import digamma as digamma
from pyjx.lax.special import digamma_p as digamma_p
from pyjx.lax.special import erf as erf
from pyjx.lax.special import erf_inv as erf_inv
from pyjx.lax.special import erf_inv_p as erf_inv_p
from pyjx.lax.special import erf_p as erf_p
from pyjx.lax.special import erfc as erfc
from pyjx.lax.special import erfc_p as erfc_p
from pyjx.lax.special import lgamma as lgamma
from pyjx.lax.special import lgamma_p as lgamma_p
from pyjx.lax.special import polygamma as polygamma
from pyjx.lax.special import polygamma_p as polygamma_p
from pyjx.lax.special import zeta as zeta
from pyjx.lax.special import zeta_p as zeta_p
from pyjx.lax.incomplete import betainc as betainc
from pyjx.lax.incomplete import igamma as igamma
from pyjx.lax.incomplete import igamma_grad_a as igamma_grad_a
from pyjx.lax.incomplete import igamma_grad_a_p as igamma_grad_a_p
from pyjx.lax.incomplete import igamma_p as igamma_p
from pyjx.lax.incomplete import igammac as igammac
from pyjx.lax.incomplete import igammac_p as igammac_p
from pyjx.lax.incomplete import random_gamma_grad as random_gamma_grad
from pyjx.lax.incomplete import random_gamma_grad_p as random_gamma_grad_p
from pyjx.lax.incomplete import regularized_incomplete_beta_p as regularized_incomplete_beta_p
from pyjx.lax.contractions import DotAlgorithm as DotAlgorithm
from pyjx.lax.contractions import DotAlgorithmPreset as DotAlgorithmPreset
from pyjx.lax.contractions import DotDimensionNumbers as DotDimensionNumbers
from pyjx.lax.contractions import Precision as Precision
from pyjx.lax.contractions import PrecisionLike as PrecisionLike
from pyjx.lax.contractions import batch_matmul as batch_matmul
from pyjx.lax.contractions import dot as dot
from pyjx.lax.contractions import dot_general as dot_general
from pyjx.lax.contractions import dot_general_p as dot_general_p
from pyjx.lax.contractions import scaled_dot as scaled_dot
from pyjx.lax.ragged import RaggedDotDimensionNumbers as RaggedDotDimensionNumbers
from pyjx.lax.ragged import ragged_dot as ragged_dot
from pyjx.lax.ragged import ragged_dot_general as ragged_dot_general
from pyjx.lax.convolution import conv as conv
from pyjx.lax.convolution import conv_general_dilated as conv_general_dilated
from pyjx.lax.convolution import conv_general_dilated_local as conv_general_dilated_local
from pyjx.lax.convolution import conv_general_dilated_p as conv_general_dilated_p
from pyjx.lax.convolution import conv_general_dilated_patches as conv_general_dilated_patches
from pyjx.lax.convolution import conv_general_shape_tuple as conv_general_shape_tuple
from pyjx.lax.convolution import conv_transpose as conv_transpose
from pyjx.lax.convolution import conv_transpose_shape_tuple as conv_transpose_shape_tuple
from pyjx.lax.convolution import conv_with_general_padding as conv_with_general_padding
from pyjx.lax.convolution_shapes import ConvDimensionNumbers as ConvDimensionNumbers
from pyjx.lax.convolution_shapes import ConvGeneralDilatedDimensionNumbers as ConvGeneralDilatedDimensionNumbers
from pyjx.lax.convolution_shapes import conv_dimension_numbers as conv_dimension_numbers
from pyjx.lax.convolution_shapes import conv_general_permutations as conv_general_permutations
from pyjx.lax.convolution_shapes import conv_shape_tuple as conv_shape_tuple
from pyjx.lax.convolution_shapes import padtype_to_pads as padtype_to_pads
from pyjx.lax.reductions import argmax as argmax
from pyjx.lax.reductions import argmax_p as argmax_p
from pyjx.lax.reductions import argmin as argmin
from pyjx.lax.reductions import argmin_p as argmin_p
from pyjx.lax.reductions import reduce as reduce
from pyjx.lax.reductions import reduce_and as reduce_and
from pyjx.lax.reductions import reduce_and_p as reduce_and_p
from pyjx.lax.reductions import reduce_max as reduce_max
from pyjx.lax.reductions import reduce_max_p as reduce_max_p
from pyjx.lax.reductions import reduce_min as reduce_min
from pyjx.lax.reductions import reduce_min_p as reduce_min_p
from pyjx.lax.reductions import reduce_or as reduce_or
from pyjx.lax.reductions import reduce_or_p as reduce_or_p
from pyjx.lax.reductions import reduce_p as reduce_p
from pyjx.lax.reductions import reduce_prod as reduce_prod
from pyjx.lax.reductions import reduce_prod_p as reduce_prod_p
from pyjx.lax.reductions import reduce_xor as reduce_xor
from pyjx.lax.reductions import reduce_xor_p as reduce_xor_p
from pyjx.lax.windows import reduce_window as reduce_window
from pyjx.lax.windows import reduce_window_max_p as reduce_window_max_p
from pyjx.lax.windows import reduce_window_min_p as reduce_window_min_p
from pyjx.lax.windows import reduce_window_p as reduce_window_p
from pyjx.lax.windows import reduce_window_shape_tuple as reduce_window_shape_tuple
from pyjx.lax.windows import reduce_window_sum_p as reduce_window_sum_p
from pyjx.lax.windows import select_and_gather_add_p as select_and_gather_add_p
from pyjx.lax.windows import select_and_scatter_add_p as select_and_scatter_add_p
from pyjx.lax.windows import select_and_scatter_p as select_and_scatter_p
from pyjx.lax.cumulative import cumlogsumexp as cumlogsumexp
from pyjx.lax.cumulative import cumlogsumexp_p as cumlogsumexp_p
from pyjx.lax.cumulative import cummax as cummax
from pyjx.lax.cumulative import cummax_p as cummax_p
from pyjx.lax.cumulative import cummin as cummin
from pyjx.lax.cumulative import cummin_p as cummin_p
from pyjx.lax.cumulative import cumprod as cumprod
from pyjx.lax.cumulative import cumprod_p as cumprod_p
from pyjx.lax.cumulative import cumsum as cumsum
from pyjx.lax.cumulative import cumsum_p as cumsum_p
from pyjx.lax.sorting import approx_max_k as approx_max_k
from pyjx.lax.sorting import approx_min_k as approx_min_k
from pyjx.lax.sorting import approx_top_k_p as approx_top_k_p
from pyjx.lax.sorting import sort as sort
from pyjx.lax.sorting import sort_key_val as sort_key_val
from pyjx.lax.sorting import sort_p as sort_p
from pyjx.lax.sorting import top_k as top_k
from pyjx.lax.sorting import top_k_p as top_k_p
from pyjx.lax.shapes import bitcast_convert_type as bitcast_convert_type
from pyjx.lax.shapes import bitcast_convert_type_p as bitcast_convert_type_p
from pyjx.lax.shapes import broadcast as broadcast
from pyjx.lax.shapes import broadcast_to_rank as broadcast_to_rank
from pyjx.lax.shapes import collapse as collapse
from pyjx.lax.shapes import expand_dims as expand_dims
from pyjx.lax.shapes import reshape as reshape
from pyjx.lax.shapes import reshape_p as reshape_p
from pyjx.lax.shapes import rev as rev
from pyjx.lax.shapes import rev_p as rev_p
from pyjx.lax.shapes import squeeze as squeeze
from pyjx.lax.shapes import squeeze_p as squeeze_p
from pyjx.lax.shapes import tile as tile
from pyjx.lax.shapes import tile_p as tile_p
from pyjx.lax.joining import concatenate as concatenate
from pyjx.lax.joining import concatenate_p as concatenate_p
from pyjx.lax.joining import index_in_dim as index_in_dim
from pyjx.lax.joining import pad as pad
from pyjx.lax.joining import pad_p as pad_p
from pyjx.lax.joining import slice as slice
from pyjx.lax.joining import slice_in_dim as slice_in_dim
from pyjx.lax.joining import slice_p as slice_p
from pyjx.lax.joining import split as split
from pyjx.lax.joining import split_p as split_p
from pyjx.lax.joining import stack as stack
from pyjx.lax.joining import stack_p as stack_p
from pyjx.lax.joining import unstack as unstack
from pyjx.lax.joining import unstack_p as unstack_p
from pyjx.lax.fourier import FftType as FftType
from pyjx.lax.fourier import fft as fft
from pyjx.lax.fourier import fft_p as fft_p
from pyjx.lax.staging import after_all as after_all
from pyjx.lax.staging import after_all_p as after_all_p
from pyjx.lax.staging import broadcast_like as broadcast_like
from pyjx.lax.staging import create_token as create_token
from pyjx.lax.staging import create_token_p as create_token_p
from pyjx.lax.staging import dce_sink as dce_sink
from pyjx.lax.staging import dce_sink_p as dce_sink_p
from pyjx.lax.staging import shape_as_value as shape_as_value
from pyjx.lax.staging import stage as stage
from pyjx.lax.staging import stage_p as stage_p
from pyjx.lax.creation import broadcasted_iota as broadcasted_iota
from pyjx.lax.creation import empty as empty
from pyjx.lax.creation import iota as iota
from pyjx.lax.random_bits import RandomAlgorithm as RandomAlgorithm
from pyjx.lax.random_bits import rng_bit_generator as rng_bit_generator
from pyjx.lax.random_bits import rng_bit_generator_p as rng_bit_generator_p
from pyjx.lax.random_bits import rng_uniform as rng_uniform
from pyjx.lax.random_bits import rng_uniform_p as rng_uniform_p
from pyjx.lax.slicing import dynamic_index_in_dim as dynamic_index_in_dim
from pyjx.lax.slicing import dynamic_slice as dynamic_slice
from pyjx.lax.slicing import dynamic_slice_in_dim as dynamic_slice_in_dim
from pyjx.lax.slicing import dynamic_slice_p as dynamic_slice_p
from pyjx.lax.slicing import dynamic_update_index_in_dim as dynamic_update_index_in_dim
from pyjx.lax.slicing import dynamic_update_slice as dynamic_update_slice
from pyjx.lax.slicing import dynamic_update_slice_in_dim as dynamic_update_slice_in_dim
from pyjx.lax.slicing import dynamic_update_slice_p as dynamic_update_slice_p
from pyjx.lax.slicing import index_take as index_take
from pyjx.lax.indexing import GatherDimensionNumbers as GatherDimensionNumbers
from pyjx.lax.indexing import GatherScatterMode as GatherScatterMode
from pyjx.lax.indexing import ScatterDimensionNumbers as ScatterDimensionNumbers
from pyjx.lax.indexing import gather as gather
from pyjx.lax.indexing import gather_p as gather_p
from pyjx.lax.indexing import scatter_add as scatter_add
from pyjx.lax.indexing import scatter_add_p as scatter_add_p
from pyjx.lax.indexing import scatter_sub as scatter_sub
from pyjx.lax.indexing import scatter_sub_p as scatter_sub_p
from pyjx.lax.scattering import scatter as scatter
from pyjx.lax.scattering import scatter_apply as scatter_apply
from pyjx.lax.scattering import scatter_max as scatter_max
from pyjx.lax.scattering import scatter_max_p as scatter_max_p
from pyjx.lax.scattering import scatter_min as scatter_min
from pyjx.lax.scattering import scatter_min_p as scatter_min_p
from pyjx.lax.scattering import scatter_mul as scatter_mul
from pyjx.lax.scattering import scatter_mul_p as scatter_mul_p
from pyjx.lax.scattering import scatter_p as scatter_p

__all__ = [
    "linalg",
    "while_loop",
    "while_p",
    "cond",
    "cond_p",
    "platform_dependent",
    "switch",
    "fori_loop",
    "associative_scan",
    "map",
    "scan",
    "scan_p",
    "custom_linear_solve",
    "custom_root",
    "linear_solve_p",
    "composite",
    "broadcast_shapes",
    "dtype",
    "sharding_constraint_p",
    "with_sharding_constraint",
    "device_put_p",
    "iota_p",
    "optimization_barrier_p",
    "broadcast_in_dim",
    "broadcast_in_dim_p",
    "reduce_sum",
    "reduce_sum_p",
    "transpose",
    "transpose_p",
    "RoundingMethod",
    "add",
    "add_p",
    "ceil",
    "ceil_p",
    "div",
    "div_p",
    "floor",
    "floor_p",
    "integer_pow",
    "integer_pow_p",
    "mul",
    "mul_p",
    "neg",
    "neg_p",
    "nextafter",
    "nextafter_p",
    "one_minus_square",
    "one_minus_square_p",
    "polynomial",
    "polynomial_p",
    "reciprocal",
    "round",
    "round_p",
    "square",
    "square_p",
    "sub",
    "sub_p",
    "AccuracyMode",
    "Tolerance",
    "acos",
    "acos_p",
    "acosh",
    "acosh_p",
    "asin",
    "asin_p",
    "asinh",
    "asinh_p",
    "atan",
    "atan2",
    "atan2_p",
    "atan_p",
    "atanh",
    "atanh_p",
    "cbrt",
    "cbrt_p",
    "cos",
    "cos_p",
    "cosh",
    "cosh_p",
    "exp",
    "exp2",
    "exp2_p",
    "exp_p",
    "expm1",
    "expm1_p",
    "log",
    "log1p",
    "log1p_p",
    "log2",
    "log2_p",
    "log_p",
    "logistic",
    "logistic_p",
    "pow",
    "pow_p",
    "rsqrt",
    "rsqrt_p",
    "sin",
    "sin_p",
    "sinh",
    "sinh_p",
    "sqrt",
    "sqrt_p",
    "tan",
    "tan_p",
    "tanh",
    "tanh_p",
    "abs",
    "abs_p",
    "clamp",
    "clamp_p",
    "eq",
    "eq_p",
    "eq_to_p",
    "ge",
    "ge_p",
    "gt",
    "gt_p",
    "is_finite",
    "is_finite_p",
    "le",
    "le_p",
    "le_to_p",
    "lt",
    "lt_p",
    "lt_to_p",
    "max",
    "max_p",
    "min",
    "min_p",
    "ne",
    "ne_p",
    "rem",
    "rem_p",
    "select",
    "select_n",
    "select_n_p",
    "sign",
    "sign_p",
    "and_p",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "clz",
    "clz_p",
    "mulhi",
    "mulhi_p",
    "not_p",
    "or_p",
    "population_count",
    "population_count_p",
    "shift_left",
    "shift_left_p",
    "shift_right_arithmetic",
    "shift_right_arithmetic_p",
    "shift_right_logical",
    "shift_right_logical_p",
    "xor_p",
    "axis_index",
    "axis_index_p",
    "axis_size",
    "pcast",
    "pmax",
    "pmax_p",
    "pmean",
    "pmin",
    "pmin_p",
    "psum",
    "psum_p",
    "all_gather",
    "all_gather_p",
    "all_to_all",
    "all_to_all_p",
    "pbroadcast",
    "ppermute",
    "ppermute_p",
    "pshuffle",
    "psum_scatter",
    "psum_scatter_start",
    "pswapaxes",
    "ragged_all_to_all",
    "ragged_all_to_all_p",
    "complex",
    "complex_p",
    "conj",
    "conj_p",
    "convert_element_type",
    "convert_element_type_p",
    "copy_p",
    "full",
    "full_like",
    "imag",
    "imag_p",
    "optimization_barrier",
    "real",
    "real_p",
    "reduce_precision",
    "reduce_precision_p",
    "stop_gradient",
    "stop_gradient_p",
    "bessel_i0e",
    "bessel_i0e_p",
    "bessel_i1e",
    "bessel_i1e_p",
    "digamma",
    "digamma_p",
    "erf",
    "erf_inv",
    "erf_inv_p",
    "erf_p",
    "erfc",
    "erfc_p",
    "lgamma",
    "lgamma_p",
    "polygamma",
    "polygamma_p",
    "zeta",
    "zeta_p",
    "betainc",
    "igamma",
    "igamma_grad_a",
    "igamma_grad_a_p",
    "igamma_p",
    "igammac",
    "igammac_p",
    "random_gamma_grad",
    "random_gamma_grad_p",
    "regularized_incomplete_beta_p",
    "DotAlgorithm",
    "DotAlgorithmPreset",
    "DotDimensionNumbers",
    "Precision",
    "PrecisionLike",
    "batch_matmul",
    "dot",
    "dot_general",
    "dot_general_p",
    "scaled_dot",
    "RaggedDotDimensionNumbers",
    "ragged_dot",
    "ragged_dot_general",
    "conv",
    "conv_general_dilated",
    "conv_general_dilated_local",
    "conv_general_dilated_p",
    "conv_general_dilated_patches",
    "conv_general_shape_tuple",
    "conv_transpose",
    "conv_transpose_shape_tuple",
    "conv_with_general_padding",
    "ConvDimensionNumbers",
    "ConvGeneralDilatedDimensionNumbers",
    "conv_dimension_numbers",
    "conv_general_permutations",
    "conv_shape_tuple",
    "padtype_to_pads",
    "argmax",
    "argmax_p",
    "argmin",
    "argmin_p",
    "reduce",
    "reduce_and",
    "reduce_and_p",
    "reduce_max",
    "reduce_max_p",
    "reduce_min",
    "reduce_min_p",
    "reduce_or",
    "reduce_or_p",
    "reduce_p",
    "reduce_prod",
    "reduce_prod_p",
    "reduce_xor",
    "reduce_xor_p",
    "reduce_window",
    "reduce_window_max_p",
    "reduce_window_min_p",
    "reduce_window_p",
    "reduce_window_shape_tuple",
    "reduce_window_sum_p",
    "select_and_gather_add_p",
    "select_and_scatter_add_p",
    "select_and_scatter_p",
    "cumlogsumexp",
    "cumlogsumexp_p",
    "cummax",
    "cummax_p",
    "cummin",
    "cummin_p",
    "cumprod",
    "cumprod_p",
    "cumsum",
    "cumsum_p",
    "approx_max_k",
    "approx_min_k",
    "approx_top_k_p",
    "sort",
    "sort_key_val",
    "sort_p",
    "top_k",
    "top_k_p",
    "bitcast_convert_type",
    "bitcast_convert_type_p",
    "broadcast",
    "broadcast_to_rank",
    "collapse",
    "expand_dims",
    "reshape",
    "reshape_p",
    "rev",
    "rev_p",
    "squeeze",
    "squeeze_p",
    "tile",
    "tile_p",
    "concatenate",
    "concatenate_p",
    "index_in_dim",
    "pad",
    "pad_p",
    "slice",
    "slice_in_dim",
    "slice_p",
    "split",
    "split_p",
    "stack",
    "stack_p",
    "unstack",
    "unstack_p",
    "FftType",
    "fft",
    "fft_p",
    "after_all",
    "after_all_p",
    "broadcast_like",
    "create_token",
    "create_token_p",
    "dce_sink",
    "dce_sink_p",
    "shape_as_value",
    "stage",
    "stage_p",
    "broadcasted_iota",
    "empty",
    "iota",
    "RandomAlgorithm",
    "rng_bit_generator",
    "rng_bit_generator_p",
    "rng_uniform",
    "rng_uniform_p",
    "dynamic_index_in_dim",
    "dynamic_slice",
    "dynamic_slice_in_dim",
    "dynamic_slice_p",
    "dynamic_update_index_in_dim",
    "dynamic_update_slice",
    "dynamic_update_slice_in_dim",
    "dynamic_update_slice_p",
    "index_take",
    "GatherDimensionNumbers",
    "GatherScatterMode",
    "ScatterDimensionNumbers",
    "gather",
    "gather_p",
    "scatter_add",
    "scatter_add_p",
    "scatter_sub",
    "scatter_sub_p",
    "scatter",
    "scatter_apply",
    "scatter_max",
    "scatter_max_p",
    "scatter_min",
    "scatter_min_p",
    "scatter_mul",
    "scatter_mul_p",
    "scatter_p",
]
