"""Bad calls of every public function of `pyjx.lax`, for `test_bad_input`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import pyjx as jax
from pyjx import lax
from pyjx.sharding import PartitionSpec, SingleDeviceSharding


class Bad(NamedTuple):
    """A call that must fail, and what its error must mention besides the function."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    says: str = ""
    error: Any = (TypeError, ValueError)


def bad(*args: Any, says: str = "", error: Any = (TypeError, ValueError), **kwargs: Any) -> Bad:
    return Bad(args, kwargs, says, error)


def array(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.ones(shape, dtype)


F32, F16, C64 = array(3), array(3, dtype=np.float16), array(3, dtype=np.complex64)
I32, U8, BOOL = array(3, dtype=np.int32), array(3, dtype=np.uint8), array(3, dtype=bool)
F4, MATRIX, SCALAR = array(4), array(2, 3), np.float32(1)
ONE = np.int32(1)

# Objects that are no arrays.
OBJECTS: tuple[Any, ...] = (
    "a", None, {}, {1}, object(), len, np.array(["a"]), np.array([None]), np.array([{}, 1]),
    np.array(["2020-01-01"], "datetime64[D]"),
)
# Objects that are no integers, and no sequences of integers.
NOT_INT: tuple[Any, ...] = (1.5, "x", None, {}, (0,), np.float32(1))
NOT_INTS: tuple[Any, ...] = (("x",), (1.5,), (None,), {"a": 1}, "ab", 2.5)

CALLS: dict[str, list[Bad]] = {}

# -- elementwise -----------------------------------------------------------------------------------


def unary(names: str, *wrong: np.ndarray, **kwargs: Any) -> None:
    for name in names.split():
        CALLS[name] = [bad(x) for x in (*OBJECTS, [1.0])] + [
            bad(x, says=x.dtype.name) for x in wrong] + [bad(says=""), bad(F32, F32, F32)]


def binary(names: str, good: np.ndarray, *wrong: np.ndarray) -> None:
    other = I32 if good.dtype == np.float32 else F32
    long = np.concatenate([good, good])
    for name in names.split():
        CALLS[name] = [
            *[bad(x, good, says="position 0") for x in OBJECTS],
            *[bad(good, x, says="position 1") for x in OBJECTS],
            *[bad(x, x, says=x.dtype.name) for x in wrong],
            bad(good, other, says="dtypes"), bad(other, good, says="dtypes"),
            bad(good, long, says="(3,), (6,)"), bad(MATRIX.astype(good.dtype), long, says="(2, 3)"),
            bad(good), bad(good, good, good, good),
        ]


unary("acos acosh asin asinh atan atanh cbrt cos cosh exp exp2 expm1 log log1p log2 logistic rsqrt "
      "sin sinh sqrt tan tanh", I32, BOOL, U8)
unary("bessel_i0e bessel_i1e ceil digamma erf erf_inv erfc floor is_finite lgamma round", I32, BOOL,
      C64)
unary("integer_pow reciprocal", BOOL)
unary("neg one_minus_square sign square", BOOL)
unary("abs", BOOL, U8)
unary("real imag", F32, I32)
unary("conj", I32, BOOL, F16)
unary("bitwise_not", F32, C64)
unary("clz population_count", F32, C64, BOOL)
CALLS["stop_gradient"] = [bad("a"), bad([F32, object()]), bad({"x": len}),
                          bad(np.array(["a"])), bad()]
CALLS["with_sharding_constraint"] = [
    bad(F32, "x", error=TypeError, says="'x'"),
    bad(F32, PartitionSpec("x"), error=RuntimeError, says="non-empty mesh"),
    bad("a", SingleDeviceSharding(jax.devices()[0]), says="position 0"),
]
CALLS["optimization_barrier"] = [bad("a", says="position 0"), bad([F32, "a"], says="position 1"),
                                 bad({"x": object()})]
for _name in ("cbrt", "cos", "exp", "erfc", "tanh"):
    CALLS[_name] += [bad(F32, accuracy="low", says="accuracy"), bad(F32, accuracy=3)]
CALLS["round"] += [bad(F32, 3, says="rounding_method"), bad(F32, "up", says="rounding_method")]
CALLS["integer_pow"] = [
    *[bad(x, 2) for x in OBJECTS], bad(BOOL, 2, says="bool"), bad(I32, -1, says="negative"),
    *[bad(F32, y, says="y") for y in NOT_INT], bad(F32),
]
CALLS["reciprocal"] += [bad(I32, says="negative")]

binary("add sub mul div", F32, BOOL)
binary("rem", F32, BOOL, C64)
binary("atan2 complex nextafter", F32, I32, BOOL)
CALLS["complex"] += [bad(F16, F16, says="float16"), bad(C64, C64, says="complex64")]
CALLS["mul"] += [bad(F32, F32, out_dtype="nope", says="nope")]
binary("eq ne max min", F32)
binary("ge gt le lt", F32, C64)
binary("bitwise_and bitwise_or bitwise_xor", I32, F32, C64)
binary("shift_left shift_right_arithmetic shift_right_logical mulhi", I32, F32, BOOL)
binary("igamma igammac igamma_grad_a random_gamma_grad zeta polygamma", F32, I32, C64, BOOL)
CALLS["pow"] = [
    *[bad(x, F32) for x in OBJECTS], *[bad(F32, x, says="position 1") for x in OBJECTS],
    bad(I32, I32, says="int32"), bad(BOOL, F32, says="bool"), bad(F32, F16, says="float16"),
    bad(F32, BOOL, says="bool"), bad(F32, F4, says="(3,), (4,)"),
]
CALLS["betainc"] = [
    *[bad(x, F32, F32) for x in OBJECTS], *[bad(F32, F32, x) for x in OBJECTS],
    bad(I32, I32, I32, says="int32"), bad(F32, F32, F16, says="float16"),
    bad(F32, F4, F32, says="(4,)"), bad(F32, F32),
]
CALLS["polynomial"] = [
    *[bad(x, [1.0]) for x in OBJECTS], *[bad(F32, [1.0, x]) for x in OBJECTS],
    bad(F32, "ab"), bad(F32, 1.0, says="coeffs"), bad(F32, None),
    bad(BOOL, [1.0], says="bool"), bad(F32, [F4, F4], says="(4,)"),
]
CALLS["clamp"] = [
    *[bad(x, F32, SCALAR) for x in OBJECTS], *[bad(SCALAR, x, SCALAR) for x in OBJECTS],
    *[bad(SCALAR, F32, x) for x in OBJECTS], bad(F4, F32, SCALAR, says="min"),
    bad(SCALAR, F32, F4, says="max"), bad(I32, F32, F32, says="int32"), bad(SCALAR, F32),
]
CALLS["select"] = [
    *[bad(x, F32, F32) for x in OBJECTS], *[bad(BOOL, x, F32) for x in OBJECTS],
    *[bad(BOOL, F32, x) for x in OBJECTS], bad(F32, F32, F32, says="float32"),
    bad(BOOL, F32, I32, says="int32"), bad(BOOL, F32, F4, says="(4,)"),
    bad(array(4, dtype=bool), F32, F32, says="which"), bad(BOOL, F32),
]
CALLS["select_n"] = [
    *[bad(x, F32, F32) for x in OBJECTS], *[bad(BOOL, x, F32) for x in OBJECTS],
    bad(BOOL, says="case"), bad(BOOL, F32, F32, F32, says="which"),
    bad(F32, F32, F32, says="which"),
    bad(BOOL, F32, I32, says="int32"), bad(BOOL, F32, F4, says="cases"),
]

# -- dtypes and constants --------------------------------------------------------------------------

BAD_DTYPES: tuple[Any, ...] = ("nope", "S4", object, "datetime64[D]", 3, {})
CALLS["convert_element_type"] = [
    *[bad(x, "int32") for x in OBJECTS], *[bad(F32, d) for d in BAD_DTYPES],
    bad(F32, None, says="new_dtype"),
]
CALLS["bitcast_convert_type"] = [
    *[bad(x, "int32") for x in OBJECTS], *[bad(F32, d) for d in BAD_DTYPES],
    bad(F32, bool, says="bool"), bad(F32, "complex64", says="complex64"),
    bad(array(3, dtype=np.int8), "int32", says="(3,)"),
]
CALLS["dtype"] = [bad(object()), bad({}), bad("nope"), bad([])]
CALLS["full"] = [
    *[bad((2,), x, says="fill_value") for x in OBJECTS], bad((2,), F32, says="fill_value"),
    *[bad(s, 1.0, says="shape") for s in NOT_INTS], bad((-1,), 1.0, says="shape"),
    bad(None, 1.0, says="shape"), *[bad((2,), 1.0, d) for d in BAD_DTYPES],
]
CALLS["full_like"] = [
    *[bad(x, 1.0) for x in OBJECTS if not isinstance(x, np.ndarray)],
    *[bad(F32, x, says="fill_value") for x in OBJECTS], bad(F32, F32, says="fill_value"),
    bad(1.0, F32, says="fill_value"), *[bad(F32, 1.0, d) for d in BAD_DTYPES],
    *[bad(F32, 1.0, None, s, says="shape") for s in NOT_INTS],
    bad(F32, 1.0, shape=(-1,), says="shape"), bad(1.0, 1.0, shape=(-1,), says="shape"),
]
CALLS["empty"] = [*[bad(s, "float32", says="shape") for s in NOT_INTS],
                  bad((-1,), "float32", says="shape"), *[bad((2,), d) for d in BAD_DTYPES]]
CALLS["iota"] = [
    *[bad(d, 3) for d in BAD_DTYPES], bad(bool, 3, says="bool"),
    *[bad("int32", n, says="size") for n in NOT_INT], bad("int32", -1, says="shape"),
]
CALLS["broadcasted_iota"] = [
    *[bad(d, (2,), 0) for d in BAD_DTYPES], bad(bool, (2,), 0, says="bool"),
    *[bad("int32", s, 0, says="shape") for s in NOT_INTS], bad("int32", (-1,), 0, says="shape"),
    bad("int32", (2,), 1, says="dimension"), bad("int32", (2,), -1, says="dimension"),
    *[bad("int32", (2,), n, says="dimension") for n in NOT_INT],
]
CALLS["fft"] = [
    *[bad(x, "FFT", (3,)) for x in OBJECTS], *[bad(C64, "FFT", n) for n in NOT_INTS],
    bad(C64, "FFTT", (3,)), bad(C64, None, (3,)), bad(C64, "FFT", (4,)), bad(C64, "FFT", (3, 3)),
    bad(C64, "RFFT", (3,), says="rfft"), bad(F32, "IRFFT", (3,), says="IRFFT"),
    bad(array(3, dtype=np.float16), "RFFT", (3,)),
]
CALLS["broadcast_like"] = [
    *[bad(x, F32) for x in OBJECTS], *[bad(F32, x) for x in OBJECTS],
    bad(F32, F4, says="float32[3]"), bad(MATRIX, F32, says="(2, 3)"),
]
CALLS["stage"] = [*[bad(x) for x in OBJECTS], bad([1.0]), bad()]
CALLS["shape_as_value"] = [bad(s, says="shape") for s in NOT_INTS]
CALLS["create_token"] = [bad(1, 2)]
CALLS["after_all"] = [bad(x, says="tokens") for x in (*OBJECTS, F32, 1.0)]
CALLS["dce_sink"] = [bad(x) for x in ("a", object(), len, ["a"])]
CALLS["reduce_precision"] = [
    *[bad(x, 5, 2) for x in OBJECTS], bad(I32, 5, 2, says="int32"), bad(C64, 5, 2, says="complex"),
    bad(F32, 0, 2, says="exponent_bits"), bad(F32, 5, -1, says="mantissa_bits"),
    *[bad(F32, n, 2, says="exponent_bits") for n in NOT_INT],
    *[bad(F32, 5, n, says="mantissa_bits") for n in NOT_INT],
]

# -- shapes ----------------------------------------------------------------------------------------

CALLS["reshape"] = [
    *[bad(x, (3,)) for x in OBJECTS], *[bad(F32, s, says="new_sizes") for s in NOT_INTS],
    bad(F32, (4,), says="new_sizes"), bad(F32, (-1,), says="new_sizes"),
    bad(MATRIX, (6,), (0, 0), says="dimensions"), bad(MATRIX, (6,), (0, 2), says="dimensions"),
    *[bad(MATRIX, (6,), s, says="dimensions") for s in NOT_INTS],
]
CALLS["collapse"] = [*[bad(x, 0) for x in OBJECTS], bad(MATRIX, 1, 0, says="dimension"),
                     *[bad(MATRIX, n, says="start_dimension") for n in NOT_INT if n is not None],
                     bad(MATRIX, 0, "x", says="stop_dimension")]
CALLS["squeeze"] = [
    *[bad(x, (0,)) for x in OBJECTS], bad(F32, (0,), says="dimensions"),
    bad(array(1), (1,), says="axis 1"), bad(array(1), (0, 0), says="dimensions"),
    *[bad(array(1), s, says="dimensions") for s in NOT_INTS], bad(array(1), None),
]
CALLS["expand_dims"] = [
    *[bad(x, (0,)) for x in OBJECTS], bad(F32, (2,), says="axis 2"), bad(F32, (0, 0), says="axis"),
    *[bad(F32, s, says="dimensions") for s in NOT_INTS], bad(F32, 0, says="dimensions"),
]
CALLS["broadcast"] = [*[bad(x, (2,)) for x in OBJECTS], bad(F32, (-1,), says="sizes"),
                      *[bad(F32, s, says="sizes") for s in NOT_INTS]]
CALLS["broadcast_to_rank"] = [*[bad(x, 2) for x in OBJECTS],
                              *[bad(F32, n, says="rank") for n in NOT_INT]]
CALLS["broadcast_in_dim"] = [
    *[bad(x, (3,), (0,)) for x in OBJECTS],
    *[bad(F32, s, (0,), says="shape") for s in NOT_INTS],
    *[bad(F32, (3,), s, says="broadcast_dimensions") for s in NOT_INTS],
    bad(F32, (3,), (), says="broadcast_dimensions"), bad(F32, (4,), (0,), says="shape"),
    bad(F32, (3,), (1,), says="broadcast_dimensions"), bad(SCALAR, (-1,), (), says="shape"),
    bad(F32, (3,), (-1,), says="broadcast_dimensions"),
    bad(MATRIX, (2, 3), (1, 0), says="broadcast_dimensions"),
]
CALLS["broadcast_shapes"] = [bad((2,), (3,), says="shapes"), bad((2, 3), (3, 2)), bad((2,), "ab"),
                             bad((2,), (1.5,)), bad(2.5, (1,)), bad((2,), None), bad(("x",), (1,))]
CALLS["transpose"] = [
    *[bad(x, (0,)) for x in OBJECTS], bad(MATRIX, (0,), says="permutation"),
    bad(MATRIX, (0, 0), says="permutation"), bad(MATRIX, (1, 2), says="permutation"),
    bad(MATRIX, (-1, 0), says="permutation"),
    *[bad(MATRIX, s, says="permutation") for s in NOT_INTS],
]
CALLS["rev"] = [
    *[bad(x, (0,)) for x in OBJECTS], bad(F32, (1,), says="dimensions"),
    bad(F32, (-1,), says="dimensions"), bad(F32, (0, 0), says="dimensions"),
    *[bad(F32, s, says="dimensions") for s in NOT_INTS], bad(F32, 0, says="dimensions"),
]
CALLS["tile"] = [*[bad(x, (2,)) for x in OBJECTS], bad(F32, (2, 2), says="reps"),
                 bad(F32, (-1,), says="reps"), *[bad(F32, s, says="reps") for s in NOT_INTS]]
CALLS["pad"] = [
    *[bad(x, 0.0, [(0, 0, 0)]) for x in OBJECTS], *[bad(F32, x, [(0, 0, 0)]) for x in OBJECTS],
    bad(F32, np.int32(0), [(0, 0, 0)], says="padding_value"),
    bad(F32, F32, [(0, 0, 0)], says="padding_value"), bad(F32, 0.0, [], says="padding_config"),
    bad(F32, 0.0, [(0, 0)], says="padding_config"), bad(F32, 0.0, [(0, 0, -1)], says="interior"),
    bad(F32, 0.0, [(-2, -2, 0)], says="padding_config"), bad(F32, 0.0, 3, says="padding_config"),
    bad(F32, 0.0, [(0, 0, 0.5)], says="padding_config"), bad(F32, 0.0, "abc"),
]

# -- joining ---------------------------------------------------------------------------------------

for _name, _axis in (("concatenate", "dimension"), ("stack", "axis")):
    CALLS[_name] = [
        *[bad([F32, x], 0, says="position 1") for x in OBJECTS], bad([], 0), bad(3, 0),
        bad([F32, I32], 0, says="int32"), bad([F32, MATRIX], 0, says="dimensions"),
        bad([F32, F32], 2, says=_axis), bad([F32, F32], -3, says=_axis),
        *[bad([F32, F32], n, says=_axis) for n in NOT_INT], bad([SCALAR, SCALAR], 1, says=_axis),
    ]
CALLS["concatenate"] += [bad([MATRIX, array(2, 4)], 0, says="dimension 0")]
CALLS["stack"] += [bad([F32, F4], 0, says="(3,), (4,)")]
CALLS["unstack"] = [*[bad(x) for x in OBJECTS], bad(F32, 1, says="axis"), bad(SCALAR, says="axis"),
                    *[bad(F32, n, says="axis") for n in NOT_INT]]
CALLS["split"] = [
    *[bad(x, (1, 2)) for x in OBJECTS], bad(F32, (1, 1), says="sizes"),
    bad(F32, (4, -1), says="izes"), bad(F32, (3,), 1, says="axis"),
    *[bad(F32, s, says="sizes") for s in NOT_INTS],
    *[bad(F32, (3,), n, says="axis") for n in NOT_INT],
]

# -- slices ----------------------------------------------------------------------------------------

CALLS["slice"] = [
    *[bad(x, (0,), (1,)) for x in OBJECTS], bad(F32, (0, 0), (1,), says="start_indices"),
    bad(F32, (0,), (1, 1), says="limit_indices"), bad(F32, (0,), (4,), says="limit_indices"),
    bad(F32, (2,), (1,), says="limit_indices"), bad(F32, (-1,), (1,), says="start_indices"),
    bad(F32, (0,), (1,), (0,), says="strides"), bad(F32, (0,), (1,), (1, 1), says="strides"),
    *[bad(F32, s, (1,), says="start_indices") for s in NOT_INTS],
    *[bad(F32, (0,), s, says="limit_indices") for s in NOT_INTS],
    *[bad(F32, (0,), (1,), s, says="strides") for s in NOT_INTS],
]
CALLS["slice_in_dim"] = [
    *[bad(x, 0, 1) for x in OBJECTS], bad(F32, 0, 4, says="limit_indices"),
    bad(F32, 0, 1, 0, says="strides"), bad(F32, 0, 1, -1, says="strides"),
    bad(F32, 0, 1, 1, 1, says="axis 1"), bad(F32, "x", 1, says="start_index"),
    bad(F32, 0, 1.5, says="limit_index"), bad(F32, 0, 1, "x", says="stride"),
    *[bad(F32, 0, 1, 1, n, says="axis") for n in NOT_INT],
]
CALLS["index_in_dim"] = [
    *[bad(x, 0) for x in OBJECTS], bad(F32, 3, says="index 3", error=IndexError),
    bad(F32, -4, says="index -4", error=IndexError), bad(F32, 0, 1, says="axis 1"),
    *[bad(F32, n, says="index") for n in NOT_INT], *[bad(F32, 0, n, says="axis") for n in NOT_INT],
]
BAD_STARTS: tuple[Any, ...] = (
    (0, 0), (), (0.5,), ("x",), (None,), (BOOL,), (I32,), (F32,), F32, array(2, dtype=np.int32),
    array(1, 1, dtype=np.int32), ONE, "x", None, 3, 1.5, {}, (object(),), np.array(["a"]),
)
CALLS["dynamic_slice"] = [
    *[bad(x, (0,), (1,)) for x in OBJECTS], *[bad(F32, s, (1,)) for s in BAD_STARTS],
    *[bad(F32, (0,), s, says="slice_sizes") for s in NOT_INTS],
    bad(F32, (0,), (4,), says="slice_sizes"), bad(F32, (0,), (-1,), says="slice_sizes"),
    bad(F32, (0,), (1, 1), says="slice_sizes"),
    bad(MATRIX, (np.int8(0), np.int16(0)), (1, 1), says="same type"),
    bad(MATRIX, (0, 0), (1, 1), allow_negative_indices=(True,), says="allow_negative_indices"),
    bad(MATRIX, (0, 0), (1, 1), allow_negative_indices=3, says="allow_negative_indices"),
]
CALLS["dynamic_slice_in_dim"] = [
    *[bad(x, 0, 1) for x in OBJECTS], bad(F32, 0.5, 1), bad(F32, "x", 1), bad(F32, I32, 1),
    bad(F32, 0, 4, says="slice_sizes"), bad(F32, 0, -1, says="slice_sizes"),
    bad(F32, 0, 1, 1, says="axis 1"), *[bad(F32, 0, n, says="slice_size") for n in NOT_INT],
    *[bad(F32, 0, 1, n, says="axis") for n in NOT_INT],
]
CALLS["dynamic_index_in_dim"] = [
    *[bad(x, 0) for x in OBJECTS], bad(F32, 0.5), bad(F32, "x"), bad(F32, I32), bad(F32, None),
    bad(F32, 0, 1, says="axis 1"), *[bad(F32, 0, n, says="axis") for n in NOT_INT],
]
CALLS["dynamic_update_slice"] = [
    *[bad(x, F32, (0,)) for x in OBJECTS], *[bad(F32, x, (0,)) for x in OBJECTS],
    *[bad(F32, F32, s) for s in BAD_STARTS], bad(F32, MATRIX, (0,), says="update"),
    bad(F32, F4, (0,), says="update"), bad(F32, I32, (0,), says="int32"),
]
CALLS["dynamic_update_slice_in_dim"] = [
    *[bad(x, F32, 0, 0) for x in OBJECTS], *[bad(F32, x, 0, 0) for x in OBJECTS],
    bad(F32, F4, 0, 0, says="update"), bad(F32, I32, 0, 0, says="int32"), bad(F32, F32, 0.5, 0),
    bad(F32, F32, "x", 0), bad(F32, F32, 0, 1, says="axis 1"),
    *[bad(F32, F32, 0, n, says="axis") for n in NOT_INT],
]
CALLS["dynamic_update_index_in_dim"] = [
    *[bad(x, SCALAR, 0, 0) for x in OBJECTS], *[bad(F32, x, 0, 0) for x in OBJECTS],
    bad(F32, MATRIX, 0, 0), bad(F32, ONE, 0, 0, says="int32"), bad(F32, SCALAR, 0.5, 0),
    bad(F32, SCALAR, 0, 1, says="axis 1"), *[bad(F32, SCALAR, 0, n, says="axis") for n in NOT_INT],
]
CALLS["index_take"] = [
    *[bad(x, (I32,), (0,)) for x in OBJECTS], *[bad(F32, (x,), (0,)) for x in OBJECTS],
    bad(F32, (F32,), (0,), says="integer"), bad(F32, (I32,), (1,), says="axis 1"),
    bad(F32, 3, (0,)),
    bad(F32, (I32, I32), (0,), says="idxs"), bad(F32, (), (), says="idxs"),
    bad(MATRIX, (I32, np.int32(0)), (0, 1), says="idxs"),
    bad(MATRIX, (I32, array(4, dtype=np.int32)), (0, 1), says="idxs"),
    *[bad(F32, (I32,), s, says="axes") for s in NOT_INTS],
]

# -- gather and scatter ----------------------------------------------------------------------------

_COLUMN = array(2, 1, dtype=np.int32)
_G = lax.GatherDimensionNumbers((), (0,), (0,))
_S = lax.ScatterDimensionNumbers((), (0,), (0,))


def _gather_numbers(**fields: Any) -> Any:
    return _G._replace(**fields)


def _scatter_numbers(**fields: Any) -> Any:
    return _S._replace(**fields)


CALLS["gather"] = [
    *[bad(x, _COLUMN, _G, (1,)) for x in OBJECTS], *[bad(F32, x, _G, (1,)) for x in OBJECTS],
    bad(F32, _COLUMN.astype(np.float32), _G, (1,), says="indices"),
    bad(F32, ONE, _G, (1,), says="ind"), bad(F32, _COLUMN, _G, (4,), says="lice size"),
    bad(F32, _COLUMN, _G, (-1,), says="lice size"),
    bad(F32, _COLUMN, _G, (1, 1), says="slice_sizes"),
    bad(F32, _COLUMN, _G, (2,), says="collapse"),
    bad(F32, _COLUMN, _G, (1,), mode="nope", says="nope"),
    bad(F32, _COLUMN, _G, (1,), mode=3, says="mode"),
    *[bad(F32, _COLUMN, _G, s, says="slice_sizes") for s in NOT_INTS],
    bad(F32, _COLUMN, None, (1,), says="dimension_numbers"),
    bad(F32, _COLUMN, (0, 1), (1,), says="dimension_numbers"),
    bad(F32, _COLUMN, _gather_numbers(offset_dims=(0,)), (1,), says="offset"),
    bad(F32, _COLUMN, _gather_numbers(offset_dims=(1, 0)), (1,), says="offset_dims"),
    bad(F32, _COLUMN, _gather_numbers(offset_dims=(7,)), (1,), says="ffset"),
    bad(F32, _COLUMN, _gather_numbers(collapsed_slice_dims=(1,)), (1,),
        says="collapsed_slice_dims"),
    bad(F32, _COLUMN, _gather_numbers(start_index_map=(0, 0)), (1,), says="start_index_map"),
    bad(F32, _COLUMN, _gather_numbers(start_index_map=(3,)), (1,), says="start_index_map"),
    bad(F32, _COLUMN, _gather_numbers(start_index_map=("x",)), (1,), says="dimension_numbers"),
    bad(F32, _COLUMN, _gather_numbers(operand_batching_dims=(0,)), (1,), says="batching"),
    bad(F32, _COLUMN, _G, (1,), mode="fill", fill_value="x", says="fill_value"),
    bad(F32, _COLUMN, _G, (1,), mode="fill", fill_value=F32, says="fill_value"),
]


def _scatters(name: str) -> None:
    updates = array(2)
    CALLS[name] = [
        *[bad(x, _COLUMN, updates, _S) for x in OBJECTS],
        *[bad(F32, x, updates, _S) for x in OBJECTS], *[bad(F32, _COLUMN, x, _S) for x in OBJECTS],
        bad(F32, updates.reshape(2, 1), updates, _S, says="indices"),
        bad(F32, ONE, updates, _S, says="ind"), bad(F32, _COLUMN, array(2, dtype=int), _S),
        bad(F32, _COLUMN, array(2, 2), _S, says="pdates"),
        bad(F32, _COLUMN, F32, _S, says="pdates"),
        bad(F32, _COLUMN, updates, None, says="dimension_numbers"),
        bad(F32, _COLUMN, updates, (1, 2), says="dimension_numbers"),
        bad(F32, _COLUMN, updates, _S, mode="nope", says="nope"),
        bad(F32, _COLUMN, array(2, 4), lax.ScatterDimensionNumbers((1,), (), (0,)), says="pdates"),
        bad(F32, _COLUMN, updates, _scatter_numbers(inserted_window_dims=()), says="window"),
        bad(F32, _COLUMN, updates, _scatter_numbers(inserted_window_dims=(5,)), says="inserted"),
        bad(F32, _COLUMN, updates, _scatter_numbers(scatter_dims_to_operand_dims=(5,)),
            says="scatter_dims_to_operand_dims"),
        bad(F32, _COLUMN, updates, _scatter_numbers(operand_batching_dims=(0,)), says="batching"),
    ]


for _name in ("scatter", "scatter_add", "scatter_sub", "scatter_mul", "scatter_min",
              "scatter_max"):
    _scatters(_name)
CALLS["scatter_apply"] = [
    *[bad(x, _COLUMN, lax.neg, _S, update_shape=(2,)) for x in OBJECTS],
    *[bad(F32, x, lax.neg, _S, update_shape=(2,)) for x in OBJECTS],
    bad(F32, _COLUMN, None, _S, update_shape=(2,), says="func"),
    bad(F32, _COLUMN, lambda x: "a", _S, update_shape=(2,)),
    bad(F32, _COLUMN, lambda x: F32, _S, update_shape=(2,), says="func"),
    bad(F32, _COLUMN, lambda x: ONE, _S, update_shape=(2,), says="func"),
    bad(F32, _COLUMN, lax.neg, _S, update_shape=(3,), says="pdates"),
    *[bad(F32, _COLUMN, lax.neg, _S, update_shape=s, says="update_shape") for s in NOT_INTS],
    bad(F32, _COLUMN, lax.neg, _S, update_shape=(2,), mode="nope", says="nope"),
]

# -- reductions ------------------------------------------------------------------------------------


def reduction(name: str, good: np.ndarray, *wrong: np.ndarray) -> None:
    CALLS[name] = [
        *[bad(x, (0,)) for x in OBJECTS], *[bad(x, (0,), says=x.dtype.name) for x in wrong],
        bad(good, (1,), says="axes"), bad(good, (-1,), says="axes"), bad(good, (0, 0), says="axes"),
        *[bad(good, a, says="axes") for a in NOT_INTS], bad(good, 0, says="axes"),
        bad(good, None, says="axes"), bad(good),
    ]


reduction("reduce_sum", F32, BOOL)
reduction("reduce_prod", F32, BOOL)
reduction("reduce_max", F32)
reduction("reduce_min", F32)
for _name in ("reduce_and", "reduce_or", "reduce_xor"):
    reduction(_name, I32, F32, C64)
for _name in ("argmax", "argmin"):
    CALLS[_name] = [
        *[bad(x, 0, "int32") for x in OBJECTS], bad(F32, 1, "int32", says="axis"),
        bad(F32, -1, "int32", says="axis"), *[bad(F32, n, "int32", says="axis") for n in NOT_INT],
        bad(F32, 0, "float32", says="index_dtype"), bad(C64, 0, "int32", says="complex64"),
        *[bad(F32, 0, d) for d in BAD_DTYPES], bad(array(0), 0, "int32", says="(0,)"),
    ]
CALLS["reduce"] = [
    *[bad(x, 0.0, lax.add, (0,)) for x in OBJECTS], *[bad(F32, x, lax.add, (0,)) for x in OBJECTS],
    bad(F32, F32, lax.add, (0,), says="init"), bad(F32, ONE, lambda x, y: x, (0,), says="dtype"),
    bad(F32, (0.0, 0.0), lax.add, (0,), says="init_values"), bad(F32, 0.0, None, (0,)),
    bad(F32, 0.0, lax.add, (1,), says="(1,)"), bad(F32, 0.0, lax.add, (0, 0), says="(0, 0)"),
    *[bad(F32, 0.0, lax.add, a, says="dimensions") for a in NOT_INTS], bad([], [], lax.add, (0,)),
    bad(F32, 0.0, lambda x, y: "a", (0,), says="computation"),
    bad(F32, 0.0, lambda x, y: (x, y), (0,), says="computation"),
    bad(F32, 0.0, lambda x, y: ONE, (0,), says="computation"),
    bad((F32, F4), (0.0, 0.0), lambda x, y: x, (0,), says="shapes"),
]
for _name in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"):
    CALLS[_name] = [
        *[bad(x) for x in OBJECTS], bad(BOOL, says="bool"), bad(F32, 1, says="axis"),
        bad(F32, -1, says="axes"), bad(SCALAR, says="axis"),
        *[bad(F32, n, says="axis") for n in NOT_INT],
    ]
CALLS["cumlogsumexp"] += [bad(I32, says="int32")]

WINDOW = (F32, 0.0, lax.add)
CALLS["reduce_window"] = [
    *[bad(x, 0.0, lax.add, (2,)) for x in OBJECTS], *[bad(F32, x, lax.add, (2,)) for x in OBJECTS],
    bad(F32, F32, lax.add, (2,), says="init"), bad(F32, ONE, lambda x, y: x, (2,), says="dtype"),
    bad(F32, (0.0, 0.0), lax.add, (2,), says="init_values"), bad(F32, 0.0, None, (2,)),
    bad([], [], lax.add, (2,)), bad((F32, F4), (0.0, 0.0), lambda x, y: x, (2,), says="shape"),
    bad(*WINDOW, (2, 2), says="window_dimensions"), bad(*WINDOW, (0,), says="window_dimensions"),
    *[bad(*WINDOW, s, says="window_dimensions") for s in NOT_INTS],
    bad(*WINDOW, (2,), (0,), says="window_strides"),
    bad(*WINDOW, (2,), (1, 1), says="window_strides"),
    *[bad(*WINDOW, (2,), s, says="window_strides") for s in NOT_INTS],
    bad(*WINDOW, (2,), None, "NOPE", says="NOPE"), bad(*WINDOW, (2,), None, 3, says="padding"),
    bad(*WINDOW, (2,), None, ((0, 0), (0, 0)), says="padding"),
    bad(*WINDOW, (2,), None, ((0,),), says="padding"),
    bad(*WINDOW, (2,), None, (("x", 0),), says="padding"),
    bad(*WINDOW, (2,), None, "SAME", (0,), says="dilation"),
    bad(*WINDOW, (2,), None, "SAME", (1,), (-1,), says="dilation"),
    *[bad(*WINDOW, (2,), None, "SAME", s, says="base_dilation") for s in NOT_INTS],
    *[bad(*WINDOW, (2,), None, "SAME", None, s, says="window_dilation") for s in NOT_INTS],
    bad(F32, 0.0, lambda x, y: (x, y), (2,), says="computation"),
]
CALLS["reduce_window_shape_tuple"] = [
    bad((3,), (2, 2), (1,), ((0, 0),), says="window_dimensions"),
    bad((3,), (2,), (0,), ((0, 0),), says="window_strides"),
    bad((3,), (2,), (1,), ((0,),), says="padding"), bad((3,), (2,), (1,), "NOPE", says="padding"),
    bad((3,), (2,), (1,), ((0, 0),), (0,), says="dilation"),
    bad(3, (2,), (1,), ((0, 0),), says="operand_shape"),
    *[bad((3,), s, (1,), ((0, 0),), says="window_dimensions") for s in NOT_INTS],
]

# -- sorting ---------------------------------------------------------------------------------------

CALLS["sort"] = [
    *[bad(x) for x in OBJECTS], *[bad((F32, x)) for x in OBJECTS], bad(()), bad((F32, F4)),
    bad(F32, 1, says="axis 1"), bad(F32, -2, says="axis -2"),
    bad((F32, F32), num_keys=0, says="num_keys"),
    bad((F32, F32), num_keys=3, says="num_keys"), bad((F32, F32), num_keys="x", says="num_keys"),
    *[bad(F32, n, says="dimension") for n in NOT_INT], bad(SCALAR, says="axis"),
]
CALLS["sort_key_val"] = [
    *[bad(x, F32) for x in OBJECTS], *[bad(F32, x) for x in OBJECTS], bad(F32, F4),
    bad(F32, F32, 1, says="axis 1"), *[bad(F32, F32, n, says="dimension") for n in NOT_INT],
]
CALLS["top_k"] = [
    *[bad(x, 1) for x in OBJECTS], bad(F32, 4, says="k argument"), bad(F32, -1, says="k argument"),
    bad(C64, 1, says="complex"), bad(SCALAR, 1, says="axis"), bad(F32, 1, axis=1, says="axis 1"),
    *[bad(F32, n, says=" k ") for n in NOT_INT],
    *[bad(F32, 1, axis=n, says="axis") for n in NOT_INT],
]
for _name in ("approx_max_k", "approx_min_k"):
    CALLS[_name] = [
        *[bad(x, 1) for x in OBJECTS], bad(F32, 0, says="k must"), bad(F32, 4, says="k must"),
        bad(I32, 1, says="float"), bad(SCALAR, 1, says="dimension"), bad(F32, 1, 1, says="axis 1"),
        bad(F32, 1, -1, 0.0, says="recall_target"), bad(F32, 1, -1, 1.5, says="recall_target"),
        bad(F32, 1, -1, "x", says="recall_target"), *[bad(F32, n, says=" k ") for n in NOT_INT],
        *[bad(F32, 1, n, says="reduction_dimension") for n in NOT_INT],
        bad(F32, 1, reduction_input_size_override="x", says="reduction_input_size_override"),
    ]

# -- contractions ----------------------------------------------------------------------------------

_LHS, _RHS = array(2, 3), array(3, 4)
_DOT = (((1,), (0,)), ((), ()))
BAD_PRECISIONS: tuple[Any, ...] = ("nope", 3, ("highest",), {}, ("high", "nope"))
CALLS["dot_general"] = [
    *[bad(x, _RHS, _DOT) for x in OBJECTS], *[bad(_LHS, x, _DOT) for x in OBJECTS],
    *[bad(_LHS, _RHS, d, says="dimension_numbers") for d in (None, 3, (), ((1,), (0,)), "ab")],
    *[bad(_LHS, _RHS, (((s,), (0,)), ((), ())), says="dimension_numbers")
      for s in ("x", 1.5, None)],
    bad(_LHS, _RHS, (((2,), (0,)), ((), ())), says="lhs"),
    bad(_LHS, _RHS, (((-1,), (0,)), ((), ())), says="lhs"),
    bad(_LHS, _RHS, (((1,), (1,)), ((), ())), says="contracting"),
    bad(_LHS, _RHS, (((1, 1), (0, 0)), ((), ())), says="distinct"),
    bad(_LHS, _RHS, (((1,), (0,)), ((1,), (0,))), says="batch"),
    bad(_LHS, _RHS, (((), ()), ((0,), (0,))), says="batch"),
    bad(_LHS, _RHS, (((), ()), ((0,), ())), says="batch"),
    *[bad(_LHS, _RHS, _DOT, p, says="recision") for p in BAD_PRECISIONS],
    *[bad(_LHS, _RHS, _DOT, None, d) for d in BAD_DTYPES],
    bad(array(2, 3, dtype=np.int32), array(3, 4, dtype=np.int32), _DOT, None, "int8",
        says="preferred_element_type"),
]
CALLS["dot"] = [
    *[bad(x, F32) for x in OBJECTS], *[bad(F32, x) for x in OBJECTS], bad(F32, F4, says="(3,)"),
    bad(SCALAR, F32, says="lhs_shape"), bad(array(2, 2, 2), MATRIX, says="lhs_shape"),
    *[bad(F32, F32, precision=p, says="recision") for p in BAD_PRECISIONS],
    *[bad(F32, F32, preferred_element_type=d) for d in BAD_DTYPES],
]
CALLS["batch_matmul"] = [
    *[bad(x, MATRIX) for x in OBJECTS], *[bad(MATRIX, x) for x in OBJECTS],
    bad(F32, F32, says="2D"),
    bad(array(2, 2, 2), MATRIX, says="ndim"), bad(MATRIX, MATRIX, says="contracting"),
    bad(array(2, 3, 4), array(3, 4, 5), says="batch"),
    *[bad(_LHS, _RHS, p, says="recision") for p in BAD_PRECISIONS],
]
CALLS["scaled_dot"] = [
    *[bad(x, _RHS) for x in OBJECTS], *[bad(_LHS, x) for x in OBJECTS], bad(_LHS, _LHS),
    bad(F32, F32),
    *[bad(_LHS, _RHS, lhs_scale=x) for x in OBJECTS if x is not None],
    bad(_LHS, _RHS, lhs_scale=array(2, 2), says="lhs_scale"),
    bad(_LHS, _RHS, rhs_scale=F32, says="rhs_scale"),
    bad(_LHS, _RHS, preferred_element_type="int32", says="preferred_element_type"),
    bad(_LHS, _RHS, preferred_element_type="nope", says="preferred_element_type"),
]

_ROWS, _STACK, _SIZES = array(4, 3), array(2, 3, 5), array(2, dtype=np.int32)
_RAGGED = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
_RAGGED_CALLS = [
    *[((x, _STACK, _SIZES), "") for x in OBJECTS], *[((_ROWS, x, _SIZES), "") for x in OBJECTS],
    *[((_ROWS, _STACK, x), "") for x in OBJECTS], ((_ROWS, _STACK, array(2)), "group_sizes"),
    ((_ROWS, _STACK, np.int32(1)), "group_sizes"), ((_ROWS, _STACK, I32), "group"),
    ((_ROWS, _STACK[:, :2], _SIZES), "contracting"), ((F32, _STACK, _SIZES), ""),
    ((_ROWS, F32, _SIZES), ""),
]
CALLS["ragged_dot"] = [
    *[bad(*args, says=says) for args, says in _RAGGED_CALLS],
    *[bad(_ROWS, _STACK, _SIZES, p, says="recision") for p in BAD_PRECISIONS],
    *[bad(_ROWS, _STACK, _SIZES, group_offset=x, says="group_offset") for x in ("a", 1.5, _SIZES)],
]
CALLS["ragged_dot_general"] = [
    *[bad(*args, _RAGGED, says=says) for args, says in _RAGGED_CALLS],
    *[bad(_ROWS, _STACK, _SIZES, d, says="dimension_numbers")
      for d in (None, 3, (1, 2), (None, (0,), (0,)), _RAGGED._replace(lhs_ragged_dimensions="x"))],
    bad(_ROWS, _STACK, _SIZES, _RAGGED._replace(lhs_ragged_dimensions=(5,)), says="ragged"),
    bad(_ROWS, _STACK, _SIZES, _RAGGED._replace(lhs_ragged_dimensions=()), says="ragged"),
    bad(_ROWS, _STACK, _SIZES, _RAGGED._replace(rhs_group_dimensions=(5,)), says="group"),
    bad(_ROWS, _STACK, _SIZES, _RAGGED._replace(rhs_group_dimensions=()), says="group"),
    *[bad(_ROWS, _STACK, _SIZES, _RAGGED, None, d) for d in BAD_DTYPES],
]

# -- convolutions ----------------------------------------------------------------------------------

_X, _K = array(1, 3, 8), array(4, 3, 2)


def convolution(name: str, *middle: Any, x: np.ndarray = _X, k: np.ndarray = _K) -> None:
    """Bad calls of a function of input, kernel, strides, padding, and `middle`."""
    n = x.ndim - 2
    CALLS[name] = [
        *[bad(o, k, (1,) * n, "VALID", *middle) for o in OBJECTS],
        *[bad(x, o, (1,) * n, "VALID", *middle) for o in OBJECTS],
        bad(x, k[0], (1,) * n, "VALID", *middle), bad(F32, F32, (), "VALID", *middle),
        bad(SCALAR, SCALAR, (), "VALID", *middle),
        *[bad(x, k, s, "VALID", *middle, says="strides")
          for s in (*NOT_INTS, (1, 1), (0,) * n, (-1,) * n, None, 2)],
        *[bad(x, k, (1,) * n, p, *middle, says="adding")
          for p in ("NOPE", None, 3, [(0, 0)] * (n + 1), [(0,)] * n, [("x", 0)] * n)],
        *[bad(x, k, (1,) * n, "VALID", *middle, precision=p, says="recision")
          for p in BAD_PRECISIONS],
    ]


convolution("conv")
convolution("conv_with_general_padding", None, None)
convolution("conv_general_dilated")
convolution("conv_transpose", x=array(1, 8, 3), k=array(2, 3, 4))
convolution("conv_general_dilated_local", (2,), k=array(4, 6, 7))
CALLS["conv"] += [bad(_X, array(4, 2, 2), (1,), "VALID", says="feature"),
                  bad(_X, array(4, 3, 2, dtype=np.int32), (1,), "VALID", says="int32")]
CALLS["conv_transpose"] += [
    bad(array(1, 8, 3), array(2, 3, 4), (1,), "VALID", rhs_dilation=(0,), says="dilation"),
    bad(array(1, 8, 3), array(2, 3, 4), (1,), "VALID", rhs_dilation=("x",), says="dilation"),
    bad(array(1, 8, 3), array(2, 3, 4), (1,), "VALID", dimension_numbers=("A", "B", "C")),
]
BAD_NUMBERS: tuple[Any, ...] = (
    3, "NCH", ("NCH",), ("NCH", "OIH", 3), ("NCHW", "OIHW", "NCHW"), ("NNH", "OIH", "NCH"),
    ("NCH", "OIW", "NCH"), ("NCH", "OIH", "NHH"), {},
    lax.ConvDimensionNumbers((0, 1, 3), (0, 1, 2), (0, 1, 2)),
    lax.ConvDimensionNumbers((0, 1), (0, 1, 2), (0, 1, 2)),
    lax.ConvDimensionNumbers((0, 0, 1), (0, 1, 2), (0, 1, 2)),
    lax.ConvDimensionNumbers((0, 1, 2), ("x", 1, 2), (0, 1, 2)),
    lax.ConvDimensionNumbers((0, 1, 2), (0, 1, 2), (0, 1, -1)),
)
CALLS["conv_general_dilated"] += [
    *[bad(_X, _K, (1,), "VALID", dimension_numbers=d, says="dimension_numbers")
      for d in BAD_NUMBERS],
    *[bad(_X, _K, (1,), [(0, 0)], s, says="lhs_dilation") for s in (*NOT_INTS, (0,), (1, 1))],
    *[bad(_X, _K, (1,), "VALID", None, s, says="rhs_dilation") for s in (*NOT_INTS, (0,), (1, 1))],
    *[bad(_X, _K, (1,), "VALID", feature_group_count=n, says="feature_group_count")
      for n in (0, -1, 2, "x", None, 1.5)],
    *[bad(_X, _K, (1,), "VALID", batch_group_count=n, says="batch_group_count")
      for n in (0, -1, 2, "x", None, 1.5)],
    bad(_X, _K.astype(np.float16), (1,), "VALID", says="float16"),
    bad(_X, array(4, 2, 2), (1,), "VALID", says="feature"),
    bad(_X, _K, (1,), [(-9, -9)], says="adding"),
    *[bad(_X, _K, (1,), "VALID", preferred_element_type=d) for d in BAD_DTYPES],
]
CALLS["conv_general_dilated_patches"] = [
    *[bad(o, (2,), (1,), "VALID") for o in OBJECTS],
    bad(_X, (2, 2), (1,), "VALID", says="filter_shape"),
    *[bad(_X, s, (1,), "VALID", says="filter_shape") for s in NOT_INTS],
    bad(_X, (-1,), (1,), "VALID", says="filter_shape"),
    bad(_X, (2,), (0,), "VALID", says="strides"),
    bad(_X, (2,), (1,), "NOPE", says="adding"), bad(F32, (2,), (1,), "VALID"),
]
CALLS["conv_general_dilated_local"] += [
    *[bad(_X, array(4, 6, 7), (1,), "VALID", s, says="filter_shape") for s in NOT_INTS],
    bad(_X, array(4, 6, 6), (1,), "VALID", (2,)), bad(_X, array(4, 5, 7), (1,), "VALID", (2,)),
]
CALLS["conv_dimension_numbers"] = [
    bad((1, 3), (1, 3, 8), None, says="ndim"), bad(3, (1,), None), bad(None, None, None),
    *[bad((1, 3, 8), (4, 3, 2), d, says="dimension_numbers") for d in BAD_NUMBERS],
]
CALLS["conv_general_permutations"] = [
    bad(d,
        says="dimension_numbers")
    for d in (3, None, ("NCH",), ("NCH", "OIH", 3), *BAD_NUMBERS[5:8])]
CALLS["conv_shape_tuple"] = [
    bad((1, 3, 8), (4, 3, 2), (1,), [(0, 0), (0, 0)], says="pads"),
    bad((1, 3, 8), (4, 3, 2), (1,), [(-9, 0)], says="adding"),
    bad((1, 3, 8), (4, 3, 2), (1,), "NOPE", says="NOPE"),
    bad((1, 3, 8), (4, 3, 2), (1,), None, says="pads"),
    bad((1, 3, 8), (4, 3, 2), (1, 1), [(0, 0)], says="strides"),
    bad((1, 3, 8), (4, 3, 2), (0,), [(0, 0)], says="strides"),
    bad((1, 3, 8), (4, 3), (1,), [(0, 0)], says="rhs_shape"),
    bad((1, 3, 8), (4, 3, 2), (1,), [(0, 0)], 0, says="batch_group_count"),
]
CALLS["padtype_to_pads"] = [
    bad((8,), (2,), (1,), "NOPE", says="NOPE"), bad((8,), (2,), (1,), 3, says="padding"),
    bad((8,), (2, 2), (1,), "SAME", says="window_shape"),
    bad((8,), (2,), (0,), "SAME", says="strides"),
    bad(8, (2,), (1,), "SAME", says="in_shape"),
    bad((8,), ("x",), (1,), "SAME", says="window_shape"),
]
_NHC = ("NHC", "HIO", "NHC")
for _name in ("conv_general_shape_tuple", "conv_transpose_shape_tuple"):
    CALLS[_name] = [
        bad((1, 8, 3), (2, 3, 4), (0,), "VALID", _NHC, says="strides"),
        bad((1, 8, 3), (2, 3, 4), (1, 1), "VALID", _NHC, says="strides"),
        bad((1, 8, 3), (2, 3, 4), ("x",), "VALID", _NHC, says="strides"),
        bad((1, 8, 3), (2, 3, 4), (1,), "NOPE", _NHC, says="NOPE"),
        bad((1, 8, 3), (2, 3, 4), (1,), None, _NHC, says="adding"),
        bad((1, 8), (2, 3, 4), (1,), "VALID", _NHC, says="lhs_shape"),
        bad((1, 8, 3), (2, 3), (1,), "VALID", _NHC, says="rhs_shape"),
        bad((1, 8, 3), (2, 3, 4), (1,), "VALID", ("NHC",), says="dimension_numbers"),
    ]

# -- random bits -----------------------------------------------------------------------------------

_KEY = np.zeros(4, np.uint32)
CALLS["rng_bit_generator"] = [
    *[bad(x, (2,)) for x in OBJECTS], bad(F32, (2,), says="key"), bad(_KEY[:3], (2,), says="key"),
    *[bad(_KEY, s, says="shape") for s in NOT_INTS], bad(_KEY, (-1,), says="shape"),
    bad(_KEY, (2,), "float32", says="dtype"), *[bad(_KEY, (2,), d) for d in BAD_DTYPES],
    bad(_KEY, (2,), algorithm=9, says="algorithm"),
    bad(_KEY, (2,), algorithm="x", says="algorithm"),
]
CALLS["rng_uniform"] = [
    *[bad(x, 1.0, (2,)) for x in OBJECTS], *[bad(0.0, x, (2,)) for x in OBJECTS],
    bad(0.0, 1, (2,), says="dtypes"), bad(F32, 1.0, (2,), says="scalars"),
    bad(0j, 1j, (2,), says="complex"), *[bad(0.0, 1.0, s, says="shape") for s in NOT_INTS],
    bad(0.0, 1.0, (-1,), says="shape"),
]

# -- control flow ----------------------------------------------------------------------------------


def _same(*args: Any) -> Any:
    return args[0]


def _positive(x: Any) -> Any:
    return lax.gt(x, 0.0)


_CONTROL_FLOW = {
    "while_loop": [
        bad(None, _same, 1.0, says="cond_fun"), bad(_positive, 3, 1.0, says="body_fun"),
        bad(lambda x: x, _same, 1.0, says="cond_fun"), bad(lambda x: "a", _same, 1.0),
        bad(lambda x: (True, True), _same, 1.0, says="cond_fun"),
        bad(lambda x: lax.gt(x, F32), _same, F32, says="cond_fun"),
        bad(_positive, lambda x: (x, x), 1.0, says="body_fun"),
        bad(_positive, lambda x: ONE, 1.0, says="body_fun"),
        bad(_positive, lambda x: F32, 1.0, says="body_fun"), bad(_positive, lambda x: "a", 1.0),
        bad(_positive, _same, 1.0, max_steps=-1, says="max_steps"),
        *[bad(_positive, _same, 1.0, max_steps=n, says="max_steps") for n in NOT_INT
          if n is not None],
        *[bad(lambda x: True, _same, x) for x in OBJECTS if x is not None and type(x) is not dict],
    ],
    "fori_loop": [
        bad(0, 3, None, 1.0), bad(0.5, 3, _same, 1.0), bad(0, "x", _same, 1.0),
        bad(I32, 3, _same, 1.0), bad(0, 3, lambda i, x: (x, x), 1.0),
        bad(0, 3, lambda i, x: F32, 1.0), bad(0, 3, lambda i, x: x, "a"),
    ],
    "scan": [
        bad(None, 1.0, F32), bad(lambda c, x: c, 1.0, F32), bad(lambda c, x: (F32, x), 1.0, F32),
        bad(lambda c, x: ((c, c), x), 1.0, F32), bad(lambda c, x: (c, x), 1.0, (F32, F4)),
        bad(lambda c, x: (c, x), 1.0, F32, 4, says="length"),
        bad(lambda c, x: (c, x), 1.0, None, says="length"), bad(lambda c, x: (c, x), 1.0, SCALAR),
        bad(lambda c, x: (c, x), 1.0, F32, unroll=-1, says="unroll"),
        bad(lambda c, x: (c, x), 1.0, F32, length="x", says="length"),
        bad(lambda c, x: (c, x), "a", F32), bad(lambda c, x: (c, x), 1.0, "a"),
        bad(lambda c, x: (c, "a"), 1.0, F32),
    ],
    "cond": [
        bad(F32, _same, _same, 1.0), bad("a", _same, _same, 1.0), bad(None, _same, _same, 1.0),
        bad(True, None, _same, 1.0), bad(True, _same, 3, 1.0), bad(1j, _same, _same, 1.0),
        bad(True, _same, lambda x: (x, x), 1.0), bad(True, _same, lambda x: F32, 1.0),
        bad(True, _same, lambda x: ONE, 1.0), bad(True, _same, _same, "a"),
    ],
    "switch": [
        bad(0.5, [_same, _same], 1.0), bad(I32, [_same, _same], 1.0), bad("a", [_same], 1.0),
        bad(0, [], 1.0), bad(0, [_same, None], 1.0), bad(0, 3, 1.0),
        bad(0, [_same, lambda x: (x, x)], 1.0), bad(0, [_same, lambda x: F32], 1.0),
        bad(0, [_same, _same], "a"),
    ],
    "map": [bad(None, F32), bad(_same, "a"), bad(_same, SCALAR), bad(_same, (F32, F4)),
            bad(_same, F32, batch_size="x"), bad(_same, SCALAR, batch_size=2)],
    "associative_scan": [
        bad(None, F32), bad(lax.add, (F32, F4)), bad(lax.add, F32, axis=1),
        bad(lax.add, F32, axis="x"), bad(lax.add, "a"), bad(lax.add, SCALAR),
    ],
}
_CONTROL_FLOW["custom_linear_solve"] = [
    bad(3, F32, lambda f, b: b, says="matvec"), bad(_same, F32, None, says="solve"),
    bad(_same, F32, lambda f, b: b, 3, says="transpose_solve"),
    bad(_same, "a", lambda f, b: b), bad(_same, F32, lambda f, b: "a"),
    bad(lambda x: (x, x), F32, lambda f, b: b, says="matvec() output shapes must match b"),
    bad(lambda x: [x], F32, lambda f, b: b, says="structure"),
    bad(_same, F32, lambda f, b: F4, says="solve() output shapes"),
    bad(_same, F32, lambda f, b: b, has_aux=True, says="auxiliary"),
    bad(_same, F32, lambda f, b: b, lambda f, b: F4, says="transpose_solve() output shapes"),
]
_CONTROL_FLOW["custom_root"] = [
    bad(3, F32, lambda f, x: x, lambda g, y: y),
    bad(_same, F32, None, lambda g, y: y, says="solve"),
    bad(_same, F32, lambda f, x: x, None, says="tangent_solve"),
    bad(_same, "a", lambda f, x: x, lambda g, y: y),
    bad(lambda x: (x, x), F32, lambda f, x: x, lambda g, y: y, says="f() output"),
    bad(_same, F32, lambda f, x: (x, x), lambda g, y: y, says="solve() output"),
    bad(_same, F32, lambda f, x: x, lambda g, y: (y, y), says="tangent_solve() output"),
    bad(_same, F32, lambda f, x: x, lambda g, y: y, has_aux=True, says="auxiliary"),
]
_CONTROL_FLOW["platform_dependent"] = [
    bad(F32), bad(F32, cpu=3, says="'cpu'"), bad(F32, default=3, says="'default'"),
    bad(F32, gpu=_same, says="cuda"), bad(),
]
_CONTROL_FLOW["composite"] = [
    bad(None, "my.op", says="decomposition"), bad(_same, "my.op", "x", says="version"),
    bad(_same), bad(),
]
CALLS.update({name: calls for name, calls in _CONTROL_FLOW.items() if name in dir(lax)})

# -- collectives -----------------------------------------------------------------------------------

_LEAVES = [x for x in OBJECTS if x is not None and type(x) is not dict]
_UNBOUND = {"says": "unbound axis name", "error": NameError}

for _name in ("psum", "pmean", "pmax", "pmin"):
    CALLS[_name] = [
        *[bad(x, 0) for x in _LEAVES], bad(F32, "i", says="i", error=NameError),
        bad(F32, None, **_UNBOUND), bad(F32, (0, "i"), **_UNBOUND), bad(F32, 1, says="(1,)"),
        bad(F32, (0, 0), says="duplicate"), bad(F32, 0, axis_index_groups=[[0]], says="named"),
    ]
CALLS["axis_index"] = CALLS["axis_size"] = [
    bad("i", **_UNBOUND), bad(None, **_UNBOUND), bad(("i", "j"), **_UNBOUND), bad(0, **_UNBOUND)]
CALLS["pcast"] = [bad(F32, "i", to="varying", says="shard_map"), bad(F32, "i"),
                  bad(F32, "i", to="x", says="'x'")]
CALLS |= {
    name: [bad(F32, axis, *more, **_UNBOUND) for axis in ("i", None, ("i", "j"), 0)]
    for name, more in {
        "all_gather": (), "psum_scatter": (), "all_to_all": (0, 0), "pswapaxes": (0,),
        "ppermute": ([(0, 1)],), "pshuffle": ([0],), "pbroadcast": (0,),
    }.items()
}
CALLS["ragged_all_to_all"] = [
    bad(F32, F32, ONE, ONE, ONE, ONE, axis_name="i", **_UNBOUND), bad(F32, F32, axis_name="i"),
    bad(F32, F32, ONE, ONE, ONE, ONE, axis_name=None, **_UNBOUND),
]
