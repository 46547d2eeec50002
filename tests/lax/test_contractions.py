"""dot_general: precision in all spellings, bad input, and the forms that rules give."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pyjx as jax
from pyjx import lax

X = np.ones((2, 3), np.float32)
Y = np.ones((3, 4), np.float32)
MATMUL = (((1,), (0,)), ((), ()))
HIGH = lax.Precision.HIGH
PRESET = lax.DotAlgorithmPreset


def _precision(precision: Any) -> Any:
    closed = jax.make_jaxpr(lambda x, y: lax.dot_general(x, y, MATMUL, precision))(X, Y)
    return closed.jaxpr.eqns[0].params["precision"]


@pytest.mark.parametrize("given, want", [
    (None, None),
    ("high", (HIGH, HIGH)),
    ("tensorfloat32", (HIGH, HIGH)),
    ("bfloat16_3x", (HIGH, HIGH)),
    ("fastest", (lax.Precision.DEFAULT,) * 2),
    ("bfloat16", (lax.Precision.DEFAULT,) * 2),
    ("float32", (lax.Precision.HIGHEST,) * 2),
    (HIGH, (HIGH, HIGH)),
    (("high", "default"), (HIGH, lax.Precision.DEFAULT)),
    ((HIGH, lax.Precision.HIGHEST), (HIGH, lax.Precision.HIGHEST)),
    ("BF16_BF16_F32", PRESET.BF16_BF16_F32),
    (PRESET.F32_F32_F32, PRESET.F32_F32_F32),
])
def test_precision_spellings(given: Any, want: Any) -> None:
    assert _precision(given) == want


@pytest.mark.parametrize("given", ["foo", 3, ("high",), (HIGH, None), (PRESET.DEFAULT,) * 2])
def test_bad_precision(given: Any) -> None:
    with pytest.raises(ValueError, match="Precision argument must be one of"):
        lax.dot_general(X, Y, MATMUL, given)


def test_precision_names() -> None:
    assert lax.Precision("float32") is lax.Precision.HIGHEST
    assert lax.Precision(None) is lax.Precision.DEFAULT
    assert (str(HIGH), repr(HIGH)) == ("HIGH", "Precision.HIGH")


def test_default_precision() -> None:
    with jax.default_matmul_precision("float32"):
        assert _precision(None) == (lax.Precision.HIGHEST,) * 2
    with jax.default_matmul_precision("BF16_BF16_F32"):
        assert _precision(None) is PRESET.BF16_BF16_F32


@pytest.mark.parametrize("preset, dtype, want", [
    ("F16_F16_F16", np.float32, np.float32),
    ("F32_F32_F32", np.float32, np.float32),
    ("F64_F64_F64", np.float32, np.float32),
    ("BF16_BF16_F32", ml_dtypes.bfloat16, ml_dtypes.bfloat16),
    ("BF16_BF16_F32_X3", np.float32, np.float32),
    ("BF16_BF16_F32_X6", np.float16, np.float16),
])
def test_algorithms_on_cpu(preset: str, dtype: Any, want: Any) -> None:
    out = lax.dot(X.astype(dtype), Y.astype(dtype), precision=preset)
    assert out.dtype == want
    np.testing.assert_allclose(np.asarray(out).astype(np.float32), X @ Y)


def test_algorithm_unknown_to_cpu() -> None:
    with pytest.raises(ValueError, match="'TF32_TF32_F32' is not supported by dot_general on CPU"):
        lax.dot(X, Y, precision="TF32_TF32_F32")


def test_presets() -> None:
    assert PRESET.BF16_BF16_F32.accumulation_type is np.float32
    assert PRESET.F16_F16_F16.supported_lhs_types == (np.float16,)
    assert PRESET.DEFAULT.supported_rhs_types is None
    bf16 = ml_dtypes.bfloat16
    assert PRESET.BF16_BF16_F32.supported_output_types(bf16, bf16) == (np.float32, bf16)
    assert PRESET.BF16_BF16_F32.supported_output_types(np.float32, bf16) == (np.float32,)
    assert lax.DotAlgorithm(np.float32, np.float32, np.float32).num_primitive_operations == 1


@pytest.mark.parametrize("x, y, dims, text", [
    ((2, 3), (4, 5), (((1,), (0,)), ((), ())),
     r"contracting dimensions to have the same shape, got \(3,\) and \(4,\)"),
    ((2, 3), (3, 5), (((1,), (0,)), ((0,), ())), "equal numbers of lhs_batch and rhs_batch"),
    ((2, 3), (3, 5), (((1,), (0,)), ((0,), (1,))),
     "batch dimensions to have the same shape, .* Axis 0 of the first .* axis 1 of the second, .* "
     "are taken together"),
    ((2, 3), (3, 5), (((2,), (0,)), ((), ())), "lhs dimension numbers to be nonnegative"),
    ((2, 3), (3, 5), (((-1,), (0,)), ((), ())), "lhs dimension numbers to be nonnegative"),
    ((2, 3), (3, 5), (((1,), (3,)), ((), ())), "rhs dimension numbers to be nonnegative"),
    ((2, 3), (3, 5), (((1, 1), (0, 0)), ((), ())), "lhs contracting dimensions to be distinct"),
    ((2, 3), (2, 3), (((1,), (1,)), ((0, 0), (0, 0))), "lhs batch dimensions to be distinct"),
    ((2, 3), (2, 3), (((0,), (0,)), ((0,), (0,))), "disjoint from contracting dimensions"),
])
def test_bad_dimension_numbers(x: Any, y: Any, dims: Any, text: str) -> None:
    with pytest.raises(TypeError, match=f"dot_general requires .*{text}"):
        lax.dot_general(np.ones(x), np.ones(y), dims)


def test_bad_shapes() -> None:
    with pytest.raises(ValueError, match=r"jax.lax.dot: got lhs_shape=\(2, 3\).* must be equal"):
        lax.dot(X, X)
    with pytest.raises(ValueError, match=r"jax.lax.dot: dimension_numbers must be specified"):
        lax.dot(X[None], X)
    with pytest.raises(ValueError, match="must be at least 2D, got 1, 1"):
        lax.batch_matmul(X[0], X[0])
    with pytest.raises(ValueError, match="must have same ndim, got 2, 3"):
        lax.batch_matmul(X, Y[None])


@pytest.mark.parametrize("x, y, preferred, want", [
    ("float32", "bfloat16", None, "float32"),
    ("bfloat16", "float16", None, "bfloat16"),
    ("int8", "uint8", None, "int8"),
    ("int8", "uint8", "int32", "int32"),
    ("int32", "float32", None, "float32"),
    ("float32", "complex64", None, "complex64"),
    ("float32", "float32", "bfloat16", "bfloat16"),
    ("int32", "int32", "float32", "float32"),
    ("float8_e4m3fn", "float8_e5m2", "float32", "float32"),
])
def test_result_dtypes(x: str, y: str, preferred: Any, want: str) -> None:
    out = lax.dot(X.astype(x), Y.astype(y), preferred_element_type=preferred)
    assert out.dtype == want
    np.testing.assert_allclose(np.asarray(out).astype(np.complex64), X @ Y)


def test_narrow_preferred_type() -> None:
    with pytest.raises(TypeError, match="must not be narrower than the original type"):
        lax.dot(X.astype(int), Y.astype(int), preferred_element_type="int8")
    for narrow in ("bool", "float16"):
        with pytest.raises(TypeError, match="must not be narrower than the original type"):
            lax.dot(X.astype(int), Y.astype(int), preferred_element_type=narrow)
    assert lax.dot(X, Y, preferred_element_type="bfloat16").dtype == "bfloat16"


def _dims(fun: Any, *args: Any) -> list[Any]:
    eqns = jax.make_jaxpr(fun)(*args).jaxpr.eqns
    return [e.params.get("dimension_numbers", e.primitive.name) for e in eqns]


def test_batched_forms() -> None:
    """A batch of one operand is one more free axis; of both, one more batch axis."""
    xs, ys = np.ones((7, 2, 3), np.float32), np.ones((3, 4, 7), np.float32)
    assert _dims(jax.vmap(lax.dot, (0, None)), xs, Y) == [(((2,), (0,)), ((), ()))]
    assert _dims(jax.vmap(lax.dot, (None, 2)), X, ys) == [(((1,), (0,)), ((), ())), "transpose"]
    assert _dims(jax.vmap(lax.dot, (0, 2)), xs, ys) == [(((2,), (0,)), ((0,), (2,)))]


def test_gradient_of_preferred_type() -> None:
    x, y = X.astype(ml_dtypes.bfloat16), Y.astype(ml_dtypes.bfloat16)
    out, pull = jax.vjp(lambda a, b: lax.dot(a, b, preferred_element_type=np.float32), x, y)
    dx, dy = pull(out)
    assert (out.dtype, dx.dtype, dy.dtype) == (np.float32, x.dtype, y.dtype)
    np.testing.assert_allclose(np.asarray(dx, np.float32), 12 * X)


def test_scaled_dot() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(5, 2, 8)), rng.normal(size=(5, 8, 3))
    sx, sy = rng.normal(size=(5, 2, 2)), rng.normal(size=(5, 4, 3))
    out = lax.scaled_dot(x, y, lhs_scale=sx, rhs_scale=sy, preferred_element_type=np.float32)
    want = (x * np.repeat(sx, 4, 2)) @ (y * np.repeat(sy, 2, 1))
    np.testing.assert_allclose(out, want, rtol=1e-4, atol=1e-5)
    assert lax.scaled_dot(x, y).dtype == ml_dtypes.bfloat16
    with pytest.raises(TypeError, match="the sizes of lhs_scale must divide those of lhs"):
        lax.scaled_dot(x, y, lhs_scale=np.ones((5, 2, 3)))
    with pytest.raises(TypeError, match="must be bfloat16 or float32, got float16"):
        lax.scaled_dot(x, y, preferred_element_type=np.float16)


def test_ragged_dot_offset() -> None:
    x, y = np.ones((5, 3), np.float32), np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
    sizes = np.array([1, 2, 2])
    for offset in (0, 1):
        out = lax.ragged_dot(x, y, sizes, group_offset=np.array([offset]))
        want = np.zeros((5, 4))
        for i in range(2):
            start = sizes[:offset + i].sum()
            want[start:start + sizes[offset + i]] = y[i].sum(0)
        np.testing.assert_allclose(out, want)


def test_bad_ragged_dot() -> None:
    x, y = np.ones((4, 3), np.float32), np.ones((4, 3, 5), np.float32)
    with pytest.raises(TypeError, match=r"group_sizes.dtype is subtype of np.integer"):
        lax.ragged_dot(x, y, np.ones(4))
    with pytest.raises(TypeError, match="expected rhs group dimension size to be 2, got 4"):
        lax.ragged_dot(x, y, np.ones(2, int))
    with pytest.raises(TypeError, match="contracting dimensions to have the same shape"):
        lax.ragged_dot(X.T, y, np.ones(4, int))


@pytest.mark.filterwarnings("error")
def test_real_operands_beside_complex_ones_have_real_cotangents():
    a, b = np.ones((2, 2), np.complex64), np.ones((2, 2), np.float32)
    dims = (((1,), (0,)), ((), ()))
    x, y = jax.grad(lambda a, b: lax.real(lax.dot_general(a, b, dims)).sum(), (0, 1))(a, b)
    assert x.dtype == np.complex64 and y.dtype == np.float32
