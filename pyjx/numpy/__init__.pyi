# Written by `python -m pyjx.cli.stubs` from the table of pyjx.numpy.

from pyjx.numpy import fft as fft
from pyjx.numpy import linalg as linalg
from numpy import character as character
from numpy import complexfloating as complexfloating
from numpy import dtype as dtype
from numpy import e as e
from numpy import euler_gamma as euler_gamma
from numpy import flexible as flexible
from numpy import floating as floating
from numpy import generic as generic
from numpy import get_printoptions as get_printoptions
from numpy import inexact as inexact
from numpy import inf as inf
from numpy import integer as integer
from numpy import iterable as iterable
from numpy import nan as nan
from numpy import newaxis as newaxis
from numpy import number as number
from numpy import object_ as object_
from numpy import pi as pi
from numpy import signedinteger as signedinteger
from numpy import unsignedinteger as unsignedinteger
from numpy.exceptions import ComplexWarning as ComplexWarning
from pyjx.numpy.types import __array_api_version__ as __array_api_version__
from pyjx.numpy.types import __array_namespace_info__ as __array_namespace_info__
from pyjx.numpy.types import can_cast as can_cast
from pyjx.numpy.types import isdtype as isdtype
from pyjx.numpy.types import isscalar as isscalar
from pyjx.numpy.types import issubdtype as issubdtype
from pyjx.numpy.types import ndim as ndim
from pyjx.numpy.types import promote_types as promote_types
from pyjx.numpy.types import result_type as result_type
from pyjx.numpy.types import shape as shape
from pyjx.numpy.types import size as size
from pyjx.core.dtypes import finfo as finfo
from pyjx.core.dtypes import iinfo as iinfo
from pyjx.runtime.array import Array as ndarray
from pyjx.numpy.scalar_types import bfloat16 as bfloat16
from pyjx.numpy.scalar_types import bool as bool
from pyjx.numpy.scalar_types import bool_ as bool_
from pyjx.numpy.scalar_types import cdouble as cdouble
from pyjx.numpy.scalar_types import complex128 as complex128
from pyjx.numpy.scalar_types import complex64 as complex64
from pyjx.numpy.scalar_types import complex_ as complex_
from pyjx.numpy.scalar_types import csingle as csingle
from pyjx.numpy.scalar_types import double as double
from pyjx.numpy.scalar_types import float16 as float16
from pyjx.numpy.scalar_types import float32 as float32
from pyjx.numpy.scalar_types import float4_e2m1fn as float4_e2m1fn
from pyjx.numpy.scalar_types import float64 as float64
from pyjx.numpy.scalar_types import float6_e2m3fn as float6_e2m3fn
from pyjx.numpy.scalar_types import float6_e3m2fn as float6_e3m2fn
from pyjx.numpy.scalar_types import float8_e3m4 as float8_e3m4
from pyjx.numpy.scalar_types import float8_e4m3 as float8_e4m3
from pyjx.numpy.scalar_types import float8_e4m3b11fnuz as float8_e4m3b11fnuz
from pyjx.numpy.scalar_types import float8_e4m3fn as float8_e4m3fn
from pyjx.numpy.scalar_types import float8_e4m3fnuz as float8_e4m3fnuz
from pyjx.numpy.scalar_types import float8_e5m2 as float8_e5m2
from pyjx.numpy.scalar_types import float8_e5m2fnuz as float8_e5m2fnuz
from pyjx.numpy.scalar_types import float8_e8m0fnu as float8_e8m0fnu
from pyjx.numpy.scalar_types import float_ as float_
from pyjx.numpy.scalar_types import int1 as int1
from pyjx.numpy.scalar_types import int16 as int16
from pyjx.numpy.scalar_types import int2 as int2
from pyjx.numpy.scalar_types import int32 as int32
from pyjx.numpy.scalar_types import int4 as int4
from pyjx.numpy.scalar_types import int64 as int64
from pyjx.numpy.scalar_types import int8 as int8
from pyjx.numpy.scalar_types import int_ as int_
from pyjx.numpy.scalar_types import single as single
from pyjx.numpy.scalar_types import uint as uint
from pyjx.numpy.scalar_types import uint1 as uint1
from pyjx.numpy.scalar_types import uint16 as uint16
from pyjx.numpy.scalar_types import uint2 as uint2
from pyjx.numpy.scalar_types import uint32 as uint32
from pyjx.numpy.scalar_types import uint4 as uint4
from pyjx.numpy.scalar_types import uint64 as uint64
from pyjx.numpy.scalar_types import uint8 as uint8
from pyjx.numpy.ufuncs import abs as abs
from pyjx.numpy.ufuncs import absolute as absolute
from pyjx.numpy.ufuncs import acos as acos
from pyjx.numpy.ufuncs import acosh as acosh
from pyjx.numpy.ufuncs import add as add
from pyjx.numpy.ufuncs import angle as angle
from pyjx.numpy.ufuncs import arccos as arccos
from pyjx.numpy.ufuncs import arccosh as arccosh
from pyjx.numpy.ufuncs import arcsin as arcsin
from pyjx.numpy.ufuncs import arcsinh as arcsinh
from pyjx.numpy.ufuncs import arctan as arctan
from pyjx.numpy.ufuncs import arctanh as arctanh
from pyjx.numpy.ufuncs import asin as asin
from pyjx.numpy.ufuncs import asinh as asinh
from pyjx.numpy.ufuncs import atan as atan
from pyjx.numpy.ufuncs import atanh as atanh
from pyjx.numpy.ufuncs import bitwise_and as bitwise_and
from pyjx.numpy.ufuncs import bitwise_count as bitwise_count
from pyjx.numpy.ufuncs import bitwise_invert as bitwise_invert
from pyjx.numpy.ufuncs import bitwise_left_shift as bitwise_left_shift
from pyjx.numpy.ufuncs import bitwise_not as bitwise_not
from pyjx.numpy.ufuncs import bitwise_or as bitwise_or
from pyjx.numpy.ufuncs import bitwise_right_shift as bitwise_right_shift
from pyjx.numpy.ufuncs import bitwise_xor as bitwise_xor
from pyjx.numpy.ufuncs import cbrt as cbrt
from pyjx.numpy.ufuncs import ceil as ceil
from pyjx.numpy.ufuncs import clip as clip
from pyjx.numpy.ufuncs import conj as conj
from pyjx.numpy.ufuncs import conjugate as conjugate
from pyjx.numpy.ufuncs import cos as cos
from pyjx.numpy.ufuncs import cosh as cosh
from pyjx.numpy.ufuncs import deg2rad as deg2rad
from pyjx.numpy.ufuncs import degrees as degrees
from pyjx.numpy.ufuncs import divide as divide
from pyjx.numpy.ufuncs import divmod as divmod
from pyjx.numpy.ufuncs import equal as equal
from pyjx.numpy.ufuncs import exp as exp
from pyjx.numpy.ufuncs import exp2 as exp2
from pyjx.numpy.ufuncs import expm1 as expm1
from pyjx.numpy.ufuncs import fabs as fabs
from pyjx.numpy.ufuncs import floor as floor
from pyjx.numpy.ufuncs import floor_divide as floor_divide
from pyjx.numpy.ufuncs import fmax as fmax
from pyjx.numpy.ufuncs import fmin as fmin
from pyjx.numpy.ufuncs import fmod as fmod
from pyjx.numpy.ufuncs import greater as greater
from pyjx.numpy.ufuncs import greater_equal as greater_equal
from pyjx.numpy.ufuncs import imag as imag
from pyjx.numpy.ufuncs import invert as invert
from pyjx.numpy.ufuncs import iscomplex as iscomplex
from pyjx.numpy.ufuncs import iscomplexobj as iscomplexobj
from pyjx.numpy.ufuncs import isfinite as isfinite
from pyjx.numpy.ufuncs import isinf as isinf
from pyjx.numpy.ufuncs import isnan as isnan
from pyjx.numpy.ufuncs import isneginf as isneginf
from pyjx.numpy.ufuncs import isposinf as isposinf
from pyjx.numpy.ufuncs import isreal as isreal
from pyjx.numpy.ufuncs import isrealobj as isrealobj
from pyjx.numpy.ufuncs import left_shift as left_shift
from pyjx.numpy.ufuncs import less as less
from pyjx.numpy.ufuncs import less_equal as less_equal
from pyjx.numpy.ufuncs import log as log
from pyjx.numpy.ufuncs import log10 as log10
from pyjx.numpy.ufuncs import log1p as log1p
from pyjx.numpy.ufuncs import log2 as log2
from pyjx.numpy.ufuncs import logical_and as logical_and
from pyjx.numpy.ufuncs import logical_not as logical_not
from pyjx.numpy.ufuncs import logical_or as logical_or
from pyjx.numpy.ufuncs import logical_xor as logical_xor
from pyjx.numpy.ufuncs import maximum as maximum
from pyjx.numpy.ufuncs import minimum as minimum
from pyjx.numpy.ufuncs import mod as mod
from pyjx.numpy.ufuncs import multiply as multiply
from pyjx.numpy.ufuncs import negative as negative
from pyjx.numpy.ufuncs import not_equal as not_equal
from pyjx.numpy.ufuncs import positive as positive
from pyjx.numpy.ufuncs import rad2deg as rad2deg
from pyjx.numpy.ufuncs import radians as radians
from pyjx.numpy.ufuncs import real as real
from pyjx.numpy.ufuncs import reciprocal as reciprocal
from pyjx.numpy.ufuncs import remainder as remainder
from pyjx.numpy.ufuncs import right_shift as right_shift
from pyjx.numpy.ufuncs import sign as sign
from pyjx.numpy.ufuncs import sin as sin
from pyjx.numpy.ufuncs import sinh as sinh
from pyjx.numpy.ufuncs import sqrt as sqrt
from pyjx.numpy.ufuncs import square as square
from pyjx.numpy.ufuncs import subtract as subtract
from pyjx.numpy.ufuncs import tan as tan
from pyjx.numpy.ufuncs import tanh as tanh
from pyjx.numpy.ufuncs import true_divide as true_divide
from pyjx.numpy.ufuncs import trunc as trunc
from pyjx.numpy.ufuncs import where as where
from pyjx.numpy.rounding import around as around
from pyjx.numpy.rounding import rint as rint
from pyjx.numpy.rounding import round as round
from pyjx.numpy.universal import frompyfunc as frompyfunc
from pyjx.numpy.universal import ufunc as ufunc
from pyjx.numpy.vectorization import apply_along_axis as apply_along_axis
from pyjx.numpy.vectorization import apply_over_axes as apply_over_axes
from pyjx.numpy.vectorization import vectorize as vectorize
from pyjx.numpy.powers import float_power as float_power
from pyjx.numpy.powers import pow as pow
from pyjx.numpy.powers import power as power
from pyjx.numpy.floats import allclose as allclose
from pyjx.numpy.floats import arctan2 as arctan2
from pyjx.numpy.floats import array_equal as array_equal
from pyjx.numpy.floats import array_equiv as array_equiv
from pyjx.numpy.floats import atan2 as atan2
from pyjx.numpy.floats import copysign as copysign
from pyjx.numpy.floats import frexp as frexp
from pyjx.numpy.floats import gcd as gcd
from pyjx.numpy.floats import heaviside as heaviside
from pyjx.numpy.floats import hypot as hypot
from pyjx.numpy.floats import i0 as i0
from pyjx.numpy.floats import isclose as isclose
from pyjx.numpy.floats import lcm as lcm
from pyjx.numpy.floats import ldexp as ldexp
from pyjx.numpy.floats import logaddexp as logaddexp
from pyjx.numpy.floats import logaddexp2 as logaddexp2
from pyjx.numpy.floats import modf as modf
from pyjx.numpy.floats import nan_to_num as nan_to_num
from pyjx.numpy.floats import nextafter as nextafter
from pyjx.numpy.floats import signbit as signbit
from pyjx.numpy.floats import sinc as sinc
from pyjx.numpy.floats import spacing as spacing
from pyjx.numpy.window_functions import bartlett as bartlett
from pyjx.numpy.window_functions import blackman as blackman
from pyjx.numpy.window_functions import hamming as hamming
from pyjx.numpy.window_functions import hanning as hanning
from pyjx.numpy.window_functions import kaiser as kaiser
from pyjx.numpy.edits import choose as choose
from pyjx.numpy.edits import delete as delete
from pyjx.numpy.edits import extract as extract
from pyjx.numpy.edits import fill_diagonal as fill_diagonal
from pyjx.numpy.edits import insert as insert
from pyjx.numpy.edits import piecewise as piecewise
from pyjx.numpy.edits import place as place
from pyjx.numpy.edits import put as put
from pyjx.numpy.edits import select as select
from pyjx.numpy.edits import trim_zeros as trim_zeros
from pyjx.numpy.flat_indices import packbits as packbits
from pyjx.numpy.flat_indices import ravel_multi_index as ravel_multi_index
from pyjx.numpy.flat_indices import unpackbits as unpackbits
from pyjx.numpy.flat_indices import unravel_index as unravel_index
from pyjx.numpy.files import array_repr as array_repr
from pyjx.numpy.files import array_str as array_str
from pyjx.numpy.files import fromfile as fromfile
from pyjx.numpy.files import fromiter as fromiter
from pyjx.numpy.files import fromstring as fromstring
from pyjx.numpy.files import load as load
from pyjx.numpy.files import printoptions as printoptions
from pyjx.numpy.files import save as save
from pyjx.numpy.files import savez as savez
from pyjx.numpy.files import set_printoptions as set_printoptions
from pyjx.numpy.polynomials import poly as poly
from pyjx.numpy.polynomials import polyadd as polyadd
from pyjx.numpy.polynomials import polyder as polyder
from pyjx.numpy.polynomials import polydiv as polydiv
from pyjx.numpy.polynomials import polyfit as polyfit
from pyjx.numpy.polynomials import polyint as polyint
from pyjx.numpy.polynomials import polymul as polymul
from pyjx.numpy.polynomials import polysub as polysub
from pyjx.numpy.polynomials import polyval as polyval
from pyjx.numpy.polynomials import roots as roots
from pyjx.numpy.polynomials import vander as vander
from pyjx.numpy.creation import array as array
from pyjx.numpy.creation import asarray as asarray
from pyjx.numpy.creation import astype as astype
from pyjx.numpy.creation import copy as copy
from pyjx.numpy.creation import empty as empty
from pyjx.numpy.creation import empty_like as empty_like
from pyjx.numpy.creation import from_dlpack as from_dlpack
from pyjx.numpy.creation import frombuffer as frombuffer
from pyjx.numpy.creation import full as full
from pyjx.numpy.creation import full_like as full_like
from pyjx.numpy.creation import ones as ones
from pyjx.numpy.creation import ones_like as ones_like
from pyjx.numpy.creation import zeros as zeros
from pyjx.numpy.creation import zeros_like as zeros_like
from pyjx.numpy.ranges import arange as arange
from pyjx.numpy.grids import c_ as c_
from pyjx.numpy.grids import fromfunction as fromfunction
from pyjx.numpy.grids import geomspace as geomspace
from pyjx.numpy.grids import index_exp as index_exp
from pyjx.numpy.grids import indices as indices
from pyjx.numpy.grids import ix_ as ix_
from pyjx.numpy.grids import linspace as linspace
from pyjx.numpy.grids import logspace as logspace
from pyjx.numpy.grids import meshgrid as meshgrid
from pyjx.numpy.grids import mgrid as mgrid
from pyjx.numpy.grids import ogrid as ogrid
from pyjx.numpy.grids import r_ as r_
from pyjx.numpy.grids import s_ as s_
from pyjx.numpy.diagonals import diag as diag
from pyjx.numpy.diagonals import diag_indices as diag_indices
from pyjx.numpy.diagonals import diag_indices_from as diag_indices_from
from pyjx.numpy.diagonals import diagflat as diagflat
from pyjx.numpy.diagonals import diagonal as diagonal
from pyjx.numpy.diagonals import eye as eye
from pyjx.numpy.diagonals import identity as identity
from pyjx.numpy.diagonals import mask_indices as mask_indices
from pyjx.numpy.diagonals import tri as tri
from pyjx.numpy.diagonals import tril as tril
from pyjx.numpy.diagonals import tril_indices as tril_indices
from pyjx.numpy.diagonals import tril_indices_from as tril_indices_from
from pyjx.numpy.diagonals import triu as triu
from pyjx.numpy.diagonals import triu_indices as triu_indices
from pyjx.numpy.diagonals import triu_indices_from as triu_indices_from
from pyjx.numpy.indexing import put_along_axis as put_along_axis
from pyjx.numpy.indexing import take as take
from pyjx.numpy.indexing import take_along_axis as take_along_axis
from pyjx.numpy.reductions import all as all
from pyjx.numpy.reductions import amax as amax
from pyjx.numpy.reductions import amin as amin
from pyjx.numpy.reductions import any as any
from pyjx.numpy.reductions import argmax as argmax
from pyjx.numpy.reductions import argmin as argmin
from pyjx.numpy.reductions import count_nonzero as count_nonzero
from pyjx.numpy.reductions import cumprod as cumprod
from pyjx.numpy.reductions import cumsum as cumsum
from pyjx.numpy.reductions import cumulative_prod as cumulative_prod
from pyjx.numpy.reductions import cumulative_sum as cumulative_sum
from pyjx.numpy.reductions import max as max
from pyjx.numpy.reductions import mean as mean
from pyjx.numpy.reductions import min as min
from pyjx.numpy.reductions import minmax as minmax
from pyjx.numpy.reductions import prod as prod
from pyjx.numpy.reductions import ptp as ptp
from pyjx.numpy.reductions import sum as sum
from pyjx.numpy.manipulation import atleast_1d as atleast_1d
from pyjx.numpy.manipulation import atleast_2d as atleast_2d
from pyjx.numpy.manipulation import atleast_3d as atleast_3d
from pyjx.numpy.manipulation import broadcast_arrays as broadcast_arrays
from pyjx.numpy.manipulation import broadcast_shapes as broadcast_shapes
from pyjx.numpy.manipulation import broadcast_to as broadcast_to
from pyjx.numpy.manipulation import expand_dims as expand_dims
from pyjx.numpy.manipulation import flip as flip
from pyjx.numpy.manipulation import fliplr as fliplr
from pyjx.numpy.manipulation import flipud as flipud
from pyjx.numpy.manipulation import matrix_transpose as matrix_transpose
from pyjx.numpy.manipulation import moveaxis as moveaxis
from pyjx.numpy.manipulation import permute_dims as permute_dims
from pyjx.numpy.manipulation import ravel as ravel
from pyjx.numpy.manipulation import reshape as reshape
from pyjx.numpy.manipulation import roll as roll
from pyjx.numpy.manipulation import rollaxis as rollaxis
from pyjx.numpy.manipulation import rot90 as rot90
from pyjx.numpy.manipulation import squeeze as squeeze
from pyjx.numpy.manipulation import swapaxes as swapaxes
from pyjx.numpy.manipulation import transpose as transpose
from pyjx.numpy.joining import append as append
from pyjx.numpy.joining import array_split as array_split
from pyjx.numpy.joining import block as block
from pyjx.numpy.joining import column_stack as column_stack
from pyjx.numpy.joining import concat as concat
from pyjx.numpy.joining import concatenate as concatenate
from pyjx.numpy.joining import dsplit as dsplit
from pyjx.numpy.joining import dstack as dstack
from pyjx.numpy.joining import hsplit as hsplit
from pyjx.numpy.joining import hstack as hstack
from pyjx.numpy.joining import repeat as repeat
from pyjx.numpy.joining import resize as resize
from pyjx.numpy.joining import split as split
from pyjx.numpy.joining import stack as stack
from pyjx.numpy.joining import tile as tile
from pyjx.numpy.joining import unstack as unstack
from pyjx.numpy.joining import vsplit as vsplit
from pyjx.numpy.joining import vstack as vstack
from pyjx.numpy.contractions import cross as cross
from pyjx.numpy.contractions import dot as dot
from pyjx.numpy.contractions import inner as inner
from pyjx.numpy.contractions import kron as kron
from pyjx.numpy.contractions import matmul as matmul
from pyjx.numpy.contractions import matvec as matvec
from pyjx.numpy.contractions import outer as outer
from pyjx.numpy.contractions import tensordot as tensordot
from pyjx.numpy.contractions import trace as trace
from pyjx.numpy.contractions import vdot as vdot
from pyjx.numpy.contractions import vecdot as vecdot
from pyjx.numpy.contractions import vecmat as vecmat
from pyjx.numpy.einstein import einsum as einsum
from pyjx.numpy.einstein import einsum_path as einsum_path
from pyjx.numpy.padding import pad as pad
from pyjx.numpy.differences import convolve as convolve
from pyjx.numpy.differences import correlate as correlate
from pyjx.numpy.differences import diff as diff
from pyjx.numpy.differences import ediff1d as ediff1d
from pyjx.numpy.differences import gradient as gradient
from pyjx.numpy.differences import interp as interp
from pyjx.numpy.differences import trapezoid as trapezoid
from pyjx.numpy.differences import unwrap as unwrap
from pyjx.numpy.histograms import bincount as bincount
from pyjx.numpy.histograms import histogram as histogram
from pyjx.numpy.histograms import histogram2d as histogram2d
from pyjx.numpy.histograms import histogram_bin_edges as histogram_bin_edges
from pyjx.numpy.histograms import histogramdd as histogramdd
from pyjx.numpy.statistics import average as average
from pyjx.numpy.statistics import corrcoef as corrcoef
from pyjx.numpy.statistics import cov as cov
from pyjx.numpy.statistics import nanargmax as nanargmax
from pyjx.numpy.statistics import nanargmin as nanargmin
from pyjx.numpy.statistics import nancumprod as nancumprod
from pyjx.numpy.statistics import nancumsum as nancumsum
from pyjx.numpy.statistics import nanmax as nanmax
from pyjx.numpy.statistics import nanmean as nanmean
from pyjx.numpy.statistics import nanmin as nanmin
from pyjx.numpy.statistics import nanprod as nanprod
from pyjx.numpy.statistics import nanstd as nanstd
from pyjx.numpy.statistics import nansum as nansum
from pyjx.numpy.statistics import nanvar as nanvar
from pyjx.numpy.statistics import std as std
from pyjx.numpy.statistics import var as var
from pyjx.numpy.sorting import argpartition as argpartition
from pyjx.numpy.sorting import argsort as argsort
from pyjx.numpy.sorting import digitize as digitize
from pyjx.numpy.sorting import isin as isin
from pyjx.numpy.sorting import lexsort as lexsort
from pyjx.numpy.sorting import median as median
from pyjx.numpy.sorting import nanmedian as nanmedian
from pyjx.numpy.sorting import nanpercentile as nanpercentile
from pyjx.numpy.sorting import nanquantile as nanquantile
from pyjx.numpy.sorting import partition as partition
from pyjx.numpy.sorting import percentile as percentile
from pyjx.numpy.sorting import quantile as quantile
from pyjx.numpy.sorting import searchsorted as searchsorted
from pyjx.numpy.sorting import sort as sort
from pyjx.numpy.sorting import sort_complex as sort_complex
from pyjx.numpy.sorting import top_k as top_k
from pyjx.numpy.setops import argwhere as argwhere
from pyjx.numpy.setops import compress as compress
from pyjx.numpy.setops import flatnonzero as flatnonzero
from pyjx.numpy.setops import intersect1d as intersect1d
from pyjx.numpy.setops import nonzero as nonzero
from pyjx.numpy.setops import setdiff1d as setdiff1d
from pyjx.numpy.setops import setxor1d as setxor1d
from pyjx.numpy.setops import union1d as union1d
from pyjx.numpy.setops import unique as unique
from pyjx.numpy.setops import unique_all as unique_all
from pyjx.numpy.setops import unique_counts as unique_counts
from pyjx.numpy.setops import unique_inverse as unique_inverse
from pyjx.numpy.setops import unique_values as unique_values

__all__ = [
    "fft",
    "linalg",
    "character",
    "complexfloating",
    "dtype",
    "e",
    "euler_gamma",
    "flexible",
    "floating",
    "generic",
    "get_printoptions",
    "inexact",
    "inf",
    "integer",
    "iterable",
    "nan",
    "newaxis",
    "number",
    "object_",
    "pi",
    "signedinteger",
    "unsignedinteger",
    "ComplexWarning",
    "__array_api_version__",
    "__array_namespace_info__",
    "can_cast",
    "isdtype",
    "isscalar",
    "issubdtype",
    "ndim",
    "promote_types",
    "result_type",
    "shape",
    "size",
    "finfo",
    "iinfo",
    "ndarray",
    "bfloat16",
    "bool",
    "bool_",
    "cdouble",
    "complex128",
    "complex64",
    "complex_",
    "csingle",
    "double",
    "float16",
    "float32",
    "float4_e2m1fn",
    "float64",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float_",
    "int1",
    "int16",
    "int2",
    "int32",
    "int4",
    "int64",
    "int8",
    "int_",
    "single",
    "uint",
    "uint1",
    "uint16",
    "uint2",
    "uint32",
    "uint4",
    "uint64",
    "uint8",
    "abs",
    "absolute",
    "acos",
    "acosh",
    "add",
    "angle",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctanh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "bitwise_and",
    "bitwise_count",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "cbrt",
    "ceil",
    "clip",
    "conj",
    "conjugate",
    "cos",
    "cosh",
    "deg2rad",
    "degrees",
    "divide",
    "divmod",
    "equal",
    "exp",
    "exp2",
    "expm1",
    "fabs",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "greater",
    "greater_equal",
    "imag",
    "invert",
    "iscomplex",
    "iscomplexobj",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "isrealobj",
    "left_shift",
    "less",
    "less_equal",
    "log",
    "log10",
    "log1p",
    "log2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "mod",
    "multiply",
    "negative",
    "not_equal",
    "positive",
    "rad2deg",
    "radians",
    "real",
    "reciprocal",
    "remainder",
    "right_shift",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "subtract",
    "tan",
    "tanh",
    "true_divide",
    "trunc",
    "where",
    "around",
    "rint",
    "round",
    "frompyfunc",
    "ufunc",
    "apply_along_axis",
    "apply_over_axes",
    "vectorize",
    "float_power",
    "pow",
    "power",
    "allclose",
    "arctan2",
    "array_equal",
    "array_equiv",
    "atan2",
    "copysign",
    "frexp",
    "gcd",
    "heaviside",
    "hypot",
    "i0",
    "isclose",
    "lcm",
    "ldexp",
    "logaddexp",
    "logaddexp2",
    "modf",
    "nan_to_num",
    "nextafter",
    "signbit",
    "sinc",
    "spacing",
    "bartlett",
    "blackman",
    "hamming",
    "hanning",
    "kaiser",
    "choose",
    "delete",
    "extract",
    "fill_diagonal",
    "insert",
    "piecewise",
    "place",
    "put",
    "select",
    "trim_zeros",
    "packbits",
    "ravel_multi_index",
    "unpackbits",
    "unravel_index",
    "array_repr",
    "array_str",
    "fromfile",
    "fromiter",
    "fromstring",
    "load",
    "printoptions",
    "save",
    "savez",
    "set_printoptions",
    "poly",
    "polyadd",
    "polyder",
    "polydiv",
    "polyfit",
    "polyint",
    "polymul",
    "polysub",
    "polyval",
    "roots",
    "vander",
    "array",
    "asarray",
    "astype",
    "copy",
    "empty",
    "empty_like",
    "from_dlpack",
    "frombuffer",
    "full",
    "full_like",
    "ones",
    "ones_like",
    "zeros",
    "zeros_like",
    "arange",
    "c_",
    "fromfunction",
    "geomspace",
    "index_exp",
    "indices",
    "ix_",
    "linspace",
    "logspace",
    "meshgrid",
    "mgrid",
    "ogrid",
    "r_",
    "s_",
    "diag",
    "diag_indices",
    "diag_indices_from",
    "diagflat",
    "diagonal",
    "eye",
    "identity",
    "mask_indices",
    "tri",
    "tril",
    "tril_indices",
    "tril_indices_from",
    "triu",
    "triu_indices",
    "triu_indices_from",
    "put_along_axis",
    "take",
    "take_along_axis",
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "max",
    "mean",
    "min",
    "minmax",
    "prod",
    "ptp",
    "sum",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "expand_dims",
    "flip",
    "fliplr",
    "flipud",
    "matrix_transpose",
    "moveaxis",
    "permute_dims",
    "ravel",
    "reshape",
    "roll",
    "rollaxis",
    "rot90",
    "squeeze",
    "swapaxes",
    "transpose",
    "append",
    "array_split",
    "block",
    "column_stack",
    "concat",
    "concatenate",
    "dsplit",
    "dstack",
    "hsplit",
    "hstack",
    "repeat",
    "resize",
    "split",
    "stack",
    "tile",
    "unstack",
    "vsplit",
    "vstack",
    "cross",
    "dot",
    "inner",
    "kron",
    "matmul",
    "matvec",
    "outer",
    "tensordot",
    "trace",
    "vdot",
    "vecdot",
    "vecmat",
    "einsum",
    "einsum_path",
    "pad",
    "convolve",
    "correlate",
    "diff",
    "ediff1d",
    "gradient",
    "interp",
    "trapezoid",
    "unwrap",
    "bincount",
    "histogram",
    "histogram2d",
    "histogram_bin_edges",
    "histogramdd",
    "average",
    "corrcoef",
    "cov",
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
    "std",
    "var",
    "argpartition",
    "argsort",
    "digitize",
    "isin",
    "lexsort",
    "median",
    "nanmedian",
    "nanpercentile",
    "nanquantile",
    "partition",
    "percentile",
    "quantile",
    "searchsorted",
    "sort",
    "sort_complex",
    "top_k",
    "argwhere",
    "compress",
    "flatnonzero",
    "intersect1d",
    "nonzero",
    "setdiff1d",
    "setxor1d",
    "union1d",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
]
