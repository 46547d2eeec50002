"""NumPy's functions for arrays on any device. Names load their module when they are first used."""

from __future__ import annotations

from pyjx.documentation import describe
from pyjx.lazy import attach

# Public names by module; `public=name` exports a name under another one.
FAMILIES: dict[str, str] = {
    "numpy": (
        "character complexfloating dtype e euler_gamma "
        "flexible floating generic get_printoptions inexact inf integer iterable nan newaxis "
        "number object_ pi signedinteger unsignedinteger"),
    "numpy.exceptions": "ComplexWarning",
    "pyjx.numpy.types": (
        "__array_api_version__ __array_namespace_info__ can_cast isdtype isscalar issubdtype ndim "
        "promote_types result_type shape size"),
    "pyjx.core.dtypes": "finfo iinfo",
    "pyjx.runtime.array": "ndarray=Array",
    "pyjx.numpy.scalar_types": (
        "bfloat16 bool bool_ cdouble complex128 complex64 complex_ csingle double float16 float32 "
        "float4_e2m1fn float64 float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 "
        "float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz "
        "float8_e8m0fnu float_ int1 int16 int2 int32 int4 int64 int8 int_ single uint uint1 uint16 "
        "uint2 uint32 uint4 uint64 uint8"),
    "pyjx.numpy.ufuncs": (
        "abs absolute acos acosh add angle arccos arccosh arcsin arcsinh arctan arctanh "
        "asin asinh atan atanh bitwise_and bitwise_count bitwise_invert bitwise_left_shift "
        "bitwise_not bitwise_or bitwise_right_shift bitwise_xor cbrt ceil clip conj conjugate cos "
        "cosh deg2rad degrees divide divmod equal exp exp2 expm1 fabs floor "
        "floor_divide fmax fmin fmod greater greater_equal imag invert iscomplex iscomplexobj "
        "isfinite isinf isnan isneginf isposinf isreal isrealobj left_shift less less_equal log "
        "log10 log1p log2 logical_and logical_not logical_or logical_xor maximum minimum mod "
        "multiply negative not_equal positive rad2deg radians real reciprocal remainder "
        "right_shift sign sin sinh sqrt square subtract tan tanh true_divide trunc where"),
    "pyjx.numpy.rounding": "around rint round",
    "pyjx.numpy.universal": "frompyfunc ufunc",
    "pyjx.numpy.vectorization": "apply_along_axis apply_over_axes vectorize",
    "pyjx.numpy.powers": "float_power pow power",
    "pyjx.numpy.floats": (
        "allclose arctan2 array_equal array_equiv atan2 copysign frexp gcd heaviside hypot i0 "
        "isclose lcm ldexp logaddexp logaddexp2 modf nan_to_num nextafter signbit sinc spacing"),
    "pyjx.numpy.window_functions": "bartlett blackman hamming hanning kaiser",
    "pyjx.numpy.edits": (
        "choose delete extract fill_diagonal insert piecewise place put select trim_zeros"),
    "pyjx.numpy.flat_indices": "packbits ravel_multi_index unpackbits unravel_index",
    "pyjx.numpy.files": (
        "array_repr array_str fromfile fromiter fromstring load printoptions save savez "
        "set_printoptions"),
    "pyjx.numpy.polynomials": (
        "poly polyadd polyder polydiv polyfit polyint polymul polysub polyval roots vander"),
    "pyjx.numpy.creation": (
        "array asarray astype copy empty empty_like from_dlpack frombuffer "
        "full full_like ones ones_like zeros zeros_like"),
    "pyjx.numpy.ranges": "arange",
    "pyjx.numpy.grids": (
        "c_ fromfunction geomspace index_exp indices ix_ linspace logspace meshgrid mgrid ogrid r_ "
        "s_"),
    "pyjx.numpy.diagonals": (
        "diag diag_indices diag_indices_from diagflat diagonal eye identity mask_indices tri tril "
        "tril_indices tril_indices_from triu triu_indices triu_indices_from"),
    "pyjx.numpy.indexing": "put_along_axis take take_along_axis",
    "pyjx.numpy.reductions": (
        "all amax amin any argmax argmin count_nonzero cumprod cumsum cumulative_prod "
        "cumulative_sum max mean min minmax prod ptp sum"),
    "pyjx.numpy.manipulation": (
        "atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_shapes broadcast_to "
        "expand_dims flip fliplr flipud matrix_transpose moveaxis permute_dims ravel reshape roll "
        "rollaxis rot90 squeeze swapaxes transpose"),
    "pyjx.numpy.joining": (
        "append array_split block column_stack concat concatenate dsplit dstack hsplit hstack "
        "repeat resize split stack tile unstack vsplit vstack"),
    "pyjx.numpy.contractions": (
        "cross dot inner kron matmul matvec outer tensordot trace vdot vecdot vecmat"),
    "pyjx.numpy.einstein": "einsum einsum_path",
    "pyjx.numpy.padding": "pad",
    "pyjx.numpy.differences": (
        "convolve correlate diff ediff1d gradient interp trapezoid unwrap"),
    "pyjx.numpy.histograms": "bincount histogram histogram2d histogram_bin_edges histogramdd",
    "pyjx.numpy.statistics": (
        "average corrcoef cov nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmin "
        "nanprod nanstd nansum nanvar std var"),
    "pyjx.numpy.sorting": (
        "argpartition argsort digitize isin lexsort median nanmedian nanpercentile nanquantile "
        "partition percentile quantile searchsorted sort sort_complex top_k"),
    "pyjx.numpy.setops": (
        "argwhere compress flatnonzero intersect1d nonzero setdiff1d setxor1d union1d unique "
        "unique_all unique_counts unique_inverse unique_values"),
}

SUBMODULES = "fft linalg"

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES, SUBMODULES, describe=describe)
