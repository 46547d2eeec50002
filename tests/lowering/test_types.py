"""StableHLO's spelling of types and constants: exact for every dtype."""

import ml_dtypes
import numpy as np
import pytest

from lowering.types import dense_text, element_type, i64_array, int_list, scalar_text, tensor_type
from pyjx import jaxlib_api
from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray, abstract_token

DTYPES = sorted(dtypes.all_dtypes, key=str)
# Not every version of jaxlib knows all of the smallest types.
RARE = ("float4", "float6", "float8_e3", "float8_e4m3", "float8_e8")
COMMON = [d for d in DTYPES if not d.name.startswith(RARE) or d.name == "float8_e4m3fn"]
COMMON = [d for d in COMMON if d.name not in ("int1", "uint1", "int2", "uint2")]


def values_of(dtype):
    """Values whose spelling is delicate."""
    if dtype == np.bool_:
        return np.array([True, False, False, True])
    if dtypes.issubdtype(dtype, np.integer):
        info = dtypes.iinfo(dtype)
        return np.array([int(info.min), int(info.max), 0, 1], dtype)
    if dtypes.issubdtype(dtype, np.complexfloating):
        parts = values_of(np.dtype(np.float32 if dtype == np.complex64 else np.float64))
        out = np.empty((len(parts), len(parts)), dtype)
        out.real, out.imag = parts[:, None], parts
        return out
    info = dtypes.finfo(dtype)
    with np.errstate(all="ignore"):
        special = np.array([0.1, 1 / 3, -2.5, 1, 0.0, -0.0, np.inf, -np.inf, np.nan], np.float64)
        own = np.array([info.max, info.min, info.tiny, info.smallest_subnormal, info.eps], dtype)
        return np.concatenate([special.astype(dtype), own])


def compiled_constant(text, aval):
    """What XLA makes of `dense<text>`."""
    from pyjx.runtime.compile import compile

    t = tensor_type(aval)
    loaded = compile(f"func.func public @main() -> {t} {{\n"
                     f"  %0 = stablehlo.constant dense<{text}> : {t}\n  return %0 : {t}\n}}\n")
    arrays = loaded.execute_sharded([]).disassemble_into_single_device_arrays()
    return np.asarray(arrays[0][0])


def bits(array):
    array = np.ascontiguousarray(array)
    nan = array != array
    if array.dtype.kind == "c":
        return bits(array.real), bits(array.imag)
    return np.where(nan, array.dtype.type(0), array).tobytes(), nan.tolist()


@pytest.mark.parametrize("dtype", COMMON, ids=str)
def test_scalars_are_exact(dtype):
    for value in values_of(dtype).reshape(-1)[:24]:
        out = compiled_constant(scalar_text(value, dtype), ShapedArray((), dtype))
        assert out.dtype == dtype
        assert bits(out) == bits(np.asarray(value, dtype)), value


@pytest.mark.parametrize("dtype", COMMON, ids=str)
@pytest.mark.parametrize("shape", ["all", "column", "splat", "empty"])
def test_arrays_are_exact(dtype, shape):
    values = values_of(dtype).reshape(-1)
    array = {"all": values, "column": values[:4].reshape(2, 1, 2),
             "splat": np.full((3, 2), values[1]), "empty": values[:0].reshape(0, 3)}[shape]
    out = compiled_constant(dense_text(array), ShapedArray(array.shape, dtype))
    assert out.shape == array.shape
    assert bits(out) == bits(array)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_texts_verify(dtype):
    """Also for dtypes that cannot be computed with here."""
    if dtype.name in ("int1", "uint1"):
        pytest.skip("StableHLO has no such type")
    array = values_of(dtype).reshape(-1)[:4]
    t = tensor_type(ShapedArray(array.shape, dtype))
    text = (f"func.func @f() -> {t} {{\n"
            f"  %0 = stablehlo.constant dense<{dense_text(array)}> : {t}\n"
            f"  return %0 : {t}\n}}\n")
    if dtype not in COMMON and jaxlib_api.JAXLIB_VERSION < (0, 10):
        pytest.skip("this jaxlib does not know all small types")
    jaxlib_api.parse_module(text)


def test_python_scalars():
    assert scalar_text(2, np.float32) == "2.000000e+00"
    assert scalar_text(True, np.bool_) == "true"
    assert scalar_text(np.bool_(False), np.bool_) == "false"
    assert scalar_text(-7, np.int8) == "-7"
    assert scalar_text(float("inf"), np.float32) == "0x7F800000"
    assert scalar_text(1j, np.complex64) == "(0.000000e+00, 1.000000e+00)"
    assert scalar_text(0.1, np.float32) == "1.000000e-01"
    assert scalar_text(0.1, np.float64) == "1.000000e-01"
    assert scalar_text(1 / 3, np.float64).startswith("0x")


def test_splats_are_short():
    assert dense_text(np.zeros((100, 100), np.float32)) == "0.000000e+00"
    assert dense_text(np.array([0.0, -0.0], np.float32)) != dense_text(np.zeros(2, np.float32))
    assert dense_text(np.zeros((0, 3), np.int32)) == ""


def test_non_contiguous_arrays():
    a = np.arange(6, dtype=np.int32).reshape(2, 3).T[::-1]
    out = compiled_constant(dense_text(a), ShapedArray(a.shape, np.int32))
    np.testing.assert_array_equal(out, a)


def test_types():
    assert element_type(np.dtype(bool)) == "i1"
    assert element_type(np.dtype(np.uint8)) == "ui8"
    assert element_type(np.dtype(ml_dtypes.bfloat16)) == "bf16"
    assert element_type(np.dtype(ml_dtypes.float8_e4m3fn)) == "f8E4M3FN"
    assert element_type(np.dtype(ml_dtypes.float8_e5m2fnuz)) == "f8E5M2FNUZ"
    assert element_type(np.dtype(ml_dtypes.int4)) == "i4"
    assert element_type(np.dtype(np.complex64)) == "complex<f32>"
    assert tensor_type(ShapedArray((3, 0, 4), np.float64)) == "tensor<3x0x4xf64>"
    assert tensor_type(ShapedArray((), np.int8)) == "tensor<i8>"
    assert tensor_type(abstract_token) == "!stablehlo.token"
    with pytest.raises(TypeError, match="no element type for dtype"):
        element_type(np.dtype("M8[s]"))
    assert int_list((0, 1)) == "[0, 1]"
    assert i64_array((0, 1)) == "array<i64: 0, 1>"
    assert i64_array(()) == "array<i64>"
