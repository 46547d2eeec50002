"""Convolutions: spellings of axes and padding, sizes, and bad input."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import pyjx as jax
from pyjx import lax
from pyjx import numpy as jnp
from pyjx.inspect.numpy_interpreter import Account, evaluate
from tests.ops.convolution import convolve

_rng = np.random.default_rng(0)
X = _rng.normal(size=(2, 3, 8, 8)).astype(np.float32)
K = _rng.normal(size=(4, 3, 3, 3)).astype(np.float32)


@pytest.mark.parametrize("padding, low_high", [
    ("SAME", [(1, 1), (1, 1)]), ("same", [(1, 1), (1, 1)]), ("VALID", [(0, 0), (0, 0)]),
    ("SAME_LOWER", [(1, 1), (1, 1)]), ([(1, 2), (0, 3)], [(1, 2), (0, 3)]),
    (np.array([[1, 2], [0, 3]]), [(1, 2), (0, 3)]),
])
def test_padding(padding: Any, low_high: Any) -> None:
    out = lax.conv_general_dilated(X, K, (1, 1), padding)
    np.testing.assert_allclose(out, convolve(X, K, (1, 1), low_high), rtol=1e-4, atol=1e-4)


def test_padtype_to_pads() -> None:
    sizes = ((8, 7, 1), (3, 2, 4), (1, 2, 3))
    assert lax.padtype_to_pads(*sizes, "SAME") == [(1, 1), (0, 1), (1, 2)]
    assert lax.padtype_to_pads(*sizes, "SAME_LOWER") == [(1, 1), (1, 0), (2, 1)]
    assert lax.padtype_to_pads(*sizes, "valid") == [(0, 0)] * 3
    with pytest.raises(RuntimeError, match=r"Unrecognized padding .* got x{30,40}\.\.\.x{30,40}\."):
        lax.padtype_to_pads((3,), (2,), (1,), "x" * 999)
    with pytest.raises(RuntimeError, match=r"Unrecognized padding type: .* got FOO"):
        lax.padtype_to_pads(*sizes, "FOO")


@pytest.mark.parametrize("spec", [
    ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NHWC"), ("HWNC", "IOHW", "CWNH"),
])
def test_dimension_numbers(spec: tuple[str, str, str]) -> None:
    def arranged(x: np.ndarray, names: str, target: str) -> np.ndarray:
        return np.transpose(x, [names.index(c) for c in target])

    out = lax.conv_general_dilated(
        arranged(X, "NCHW", spec[0]), arranged(K, "OIHW", spec[1]), (2, 1), [(1, 0), (2, 1)],
        dimension_numbers=spec)
    want = arranged(convolve(X, K, (2, 1), [(1, 0), (2, 1)]), "NCHW", spec[2])
    np.testing.assert_allclose(out, want, rtol=1e-4, atol=1e-4)


def test_specs() -> None:
    dn = lax.conv_dimension_numbers((2, 8, 8, 3), (3, 3, 3, 4), ("NHWC", "HWIO", "NHWC"))
    assert dn == lax.ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    assert lax.conv_dimension_numbers(X.shape, K.shape, dn) == dn
    assert lax.conv_dimension_numbers(X.shape, K.shape, None).rhs_spec == (0, 1, 2, 3)


def test_shapes() -> None:
    last = ("NHWC", "HWIO", "NHWC")
    shapes = (2, 8, 8, 3), (3, 3, 3, 4)
    assert lax.conv_general_shape_tuple(*shapes, (1, 1), "SAME", last) == (2, 8, 8, 4)
    assert lax.conv_shape_tuple(X.shape, K.shape, (1, 1), [(0, 0), (1, 1)]) == (2, 4, 6, 8)
    for count, error in ((99, ValueError), (0, ValueError), (1.5, TypeError)):
        with pytest.raises(error, match="conv_shape_tuple: batch_group_count must be"):
            lax.conv_shape_tuple(X.shape, K.shape, (1, 1), "SAME", count)  # type: ignore[arg-type]
    assert lax.conv_transpose_shape_tuple(*shapes, (2, 2), "SAME", last) == (2, 16, 16, 4)
    assert lax.conv_transpose_shape_tuple(*shapes, (2, 2), "VALID", last) == (2, 17, 17, 4)


@pytest.mark.parametrize("padding", ["SAME", "VALID", [(1, 2), (0, 0)]])
@pytest.mark.parametrize("strides", [(1, 1), (2, 2), (3, 4)])
def test_conv_transpose_is_the_derivative(padding: Any, strides: Any) -> None:
    """With transpose_kernel it is the transpose of a convolution of the result's size."""
    if padding != "VALID" and strides == (3, 4):
        return  # then several sizes of input have this result
    kernel = np.transpose(K, (2, 3, 1, 0))  # HWIO: from 3 to 4 features
    y = _rng.normal(size=(2, 5, 6, 4)).astype(np.float32)
    consistent = not isinstance(padding, str)
    up = lax.conv_transpose(y, kernel, strides, padding, transpose_kernel=True,
                            use_consistent_padding=consistent)
    down = lambda x: lax.conv_general_dilated(  # noqa: E731
        x, kernel, strides, padding, dimension_numbers=("NHWC", "HWIO", "NHWC"))
    x = np.zeros(up.shape, np.float32)
    assert jax.eval_shape(down, x).shape == y.shape
    _, pull = jax.vjp(down, x)
    np.testing.assert_allclose(up, pull(y)[0], rtol=1e-4, atol=1e-4)


def test_general_padding_and_conv() -> None:
    a = lax.conv(X, K, (2, 2), "SAME")
    b = lax.conv_with_general_padding(X, K, (2, 2), [(0, 1), (0, 1)], None, None)
    np.testing.assert_allclose(a, b, rtol=1e-5)
    c = lax.conv_with_general_padding(X, K, (1, 1), [(0, 1), (0, 1)], (2, 1), (1, 2))
    want = convolve(X, K, (1, 1), [(0, 1), (0, 1)], (2, 1), (1, 2))
    np.testing.assert_allclose(c, want, rtol=1e-4, atol=1e-4)


_ONES = (1, 1)


@pytest.mark.parametrize("args, options, error, text", [
    ((_ONES, "FOO"), {}, RuntimeError, "Unrecognized padding type"),
    (((1,), "SAME"), {}, ValueError, "window and window_strides must have the same number"),
    (((0, 1), "VALID"), {}, ValueError, "window_strides must be positive"),
    ((1, "SAME"), {}, TypeError, "window_strides must be a sequence of integers"),
    ((_ONES, 1), {}, ValueError, r"a string or a sequence of \(low, high\) pairs, got 1"),
    ((_ONES, [(0, 0)]), {}, TypeError, "Wrong number of explicit pads"),
    ((_ONES, [(0, 0), (-4, -5)]), {}, ValueError, "Negative padding is larger than the size"),
    ((_ONES, "SAME"), {"lhs_dilation": (2, 2)}, ValueError, "String padding is not implemented"),
    ((_ONES, [(0, 0)] * 2), {"rhs_dilation": (0, 1)}, ValueError, "rhs_dilation must be positive"),
    ((_ONES, "SAME"), {"feature_group_count": 2}, ValueError, "2 does not divide 3"),
    ((_ONES, "SAME"), {"feature_group_count": 3}, ValueError, "3 // 3 != 3"),
    ((_ONES, "SAME"), {"feature_group_count": 0}, ValueError, "must be a positive integer, got 0"),
    ((_ONES, "SAME"), {"batch_group_count": 3}, ValueError, "3 does not divide 2"),
    ((_ONES, "SAME"), {"dimension_numbers": 3}, TypeError, "must be tuple/list or None"),
    ((_ONES, "SAME"), {"dimension_numbers": ("NCHW", "OIHW")}, TypeError, "must be length 3"),
    ((_ONES, "SAME"), {"dimension_numbers": (1, 2, 3)}, TypeError, "must be strings"),
    ((_ONES, "SAME"), {"dimension_numbers": ("NHW", "HWIO", "NHWC")}, TypeError, "len equal to"),
    ((_ONES, "SAME"), {"dimension_numbers": ("NHWW", "HWIO", "NHWC")}, TypeError, "exactly once"),
    ((_ONES, "SAME"), {"dimension_numbers": ("NCXW", "OIHW", "NCHW")}, TypeError, "same set of"),
])
def test_bad_input(args: Any, options: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        lax.conv_general_dilated(X, K, *args, **options)


def test_bad_operands() -> None:
    with pytest.raises(TypeError, match="same dtypes, got float32, int32"):
        lax.conv_general_dilated(X, K.astype(int), _ONES, "SAME")
    with pytest.raises(TypeError, match="lhs and rhs ndim to be equal, got 4 and 3"):
        lax.conv_general_dilated(X, K[0], _ONES, "SAME")
    with pytest.raises(ValueError, match="Invalid padding mode: FOO"):
        lax.conv_transpose(X, K, (2, 2), "FOO")


@pytest.mark.parametrize("dtype, preferred, text", [
    ("float32", "bfloat16", "must not be narrower"), ("float32", "int32", "is incompatible with"),
    ("int32", "int8", "must not be narrower"), ("int32", "uint32", "must have the same signedness"),
    ("float32", "complex64", "is incompatible with"),
])
def test_bad_preferred_type(dtype: str, preferred: str, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        lax.conv_general_dilated(X.astype(dtype), K.astype(dtype), _ONES, "SAME",
                                 preferred_element_type=preferred)


@pytest.mark.parametrize("dtype, preferred", [
    ("bfloat16", "float32"), ("int8", "int32"), ("uint8", "int32"), ("int8", "float32"),
])
def test_preferred_type(dtype: str, preferred: str) -> None:
    out = lax.conv_general_dilated(jax.numpy.asarray(X, dtype), jax.numpy.asarray(K, dtype), _ONES,
                                   "SAME", preferred_element_type=preferred)
    assert out.dtype == preferred


def test_a_batch_of_nothing():
    conv = partial(lax.conv, window_strides=(1,), padding="SAME")
    out = jax.vmap(conv, in_axes=(0, 1))(np.zeros((0, 2, 3, 5), "f4"), np.zeros((4, 0, 3, 2), "f4"))
    assert out.shape == (0, 2, 4, 5) and out.dtype == "float32"


IN_NUMPY: list[tuple[Any, Any, dict[str, Any]]] = [
    ((2, 4, 9), (6, 2, 3), {"window_strides": (2,), "padding": ((1, 2),), "lhs_dilation": (2,),
                            "rhs_dilation": (2,), "feature_group_count": 2}),
    ((4, 2, 7, 6), (4, 2, 3, 2), {"window_strides": (1, 2), "padding": "SAME",
                                  "batch_group_count": 2}),
    ((2, 7, 6, 3), (3, 2, 3, 5), {"window_strides": (1, 2), "padding": ((-1, 2), (0, -1)),
                                  "dimension_numbers": ("NHWC", "HWIO", "NHWC")}),
    ((1, 1, 2), (1, 1, 5), {"window_strides": (1,), "padding": "VALID"}),
    ((1, 3), (2, 3), {"window_strides": (), "padding": ()}),
]


@pytest.mark.parametrize("x, k, options", IN_NUMPY)
@pytest.mark.parametrize("dtype", ["float64", "int8", "bfloat16", "complex128"])
def test_convolutions_in_numpy(x: Any, k: Any, options: Any, dtype: str) -> None:
    wide = {"int8": "int32", "bfloat16": "float32"}.get(dtype, dtype)
    rng = np.random.default_rng(0)
    x, k = (rng.integers(-9, 9, s).astype(np.float64) for s in (x, k))
    with jax.enable_x64(True):
        x, k = jnp.asarray(x, dtype), jnp.asarray(k, dtype)
        jaxpr = jax.make_jaxpr(lambda x, k: lax.conv_general_dilated(
            x, k, preferred_element_type=wide, **options))(x, k)
        want = np.asarray(lax.conv_general_dilated(x, k, preferred_element_type=wide, **options))
    account = Account()
    (got,) = evaluate(jaxpr.jaxpr, jaxpr.consts, [x, k], account)
    assert not account.others and got.shape == want.shape
    np.testing.assert_array_equal(got, want)
