"""Bad calls: elementwise, dtypes and constants."""

from __future__ import annotations

from typing import Any

import numpy as np

import pyjx as jax
from pyjx.sharding import PartitionSpec, SingleDeviceSharding
from tests.lax.bad_calls.calls import (
    BAD_DTYPES,
    BOOL,
    C64,
    F4,
    F16,
    F32,
    I32,
    MATRIX,
    NOT_INT,
    NOT_INTS,
    OBJECTS,
    SCALAR,
    U8,
    Bad,
    array,
    bad,
)

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
    CALLS[_name] += [bad(F32, accuracy="low", says="accuracy", error=NotImplementedError),
                     bad(F32, accuracy=3, error=NotImplementedError)]
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
