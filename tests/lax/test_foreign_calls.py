"""ffi_call: jaxlib's own foreign functions, and one that is compiled here."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import jaxlib_api

S = jax.ShapeDtypeStruct
F32 = np.float32


@pytest.fixture(scope="module", autouse=True)
def registered():
    for name in ("lapack_spotrf_ffi", "lapack_dpotrf_ffi"):
        jax.ffi.register_ffi_target(f"my_{name}", jaxlib_api.lapack_targets()[name])


def cholesky(x, **options):
    """The lower factor of matrices, which LAPACK stores column by column."""
    batch = x.shape[:-2]
    n = len(batch)
    matrix = (*range(n), n + 1, n)
    call = jax.ffi.ffi_call(
        "my_lapack_spotrf_ffi", (S(x.shape, x.dtype), S(batch, np.int32)), input_layouts=[matrix],
        output_layouts=[matrix, None], input_output_aliases={0: 0}, **options)
    out, info = call(x, uplo=np.uint8(ord("L")))
    return jnp.tril(out), info


def matrices(*shape):
    a = np.random.default_rng(0).standard_normal((*shape, 3, 3)).astype(F32)
    return a @ np.swapaxes(a, -1, -2) + 3 * np.eye(3, dtype=F32)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_call(wrap):
    a = matrices()
    out, info = wrap(cholesky)(a)
    np.testing.assert_allclose(out, np.linalg.cholesky(a), rtol=1e-5)
    assert info == 0


@pytest.mark.parametrize("method", [
    "sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized"])
def test_vmap(method):
    a = matrices(4)
    out, info = jax.vmap(lambda x: cholesky(x, vmap_method=method))(a)
    np.testing.assert_allclose(out, np.linalg.cholesky(a), rtol=1e-5)
    assert info.shape == (4,)


def test_jaxlibs_own_functions_are_registered():
    with jax.enable_x64(True):
        call = jax.ffi.ffi_call("lapack_dpotrf_ffi", (S((2, 2), float), S((), np.int32)))
        out, info = call(jnp.eye(2), uplo=np.uint8(ord("L")))
    assert info == 0 and out.shape == (2, 2)


def test_results_of_64_bits_need_no_flag():
    text = jax.jit(jax.ffi.ffi_call("t", S((3,), np.int64))).lower().as_text()
    assert "-> tensor<3xi64>" in text


def test_keys_are_their_data():
    key = jax.random.key(0)
    f = jax.ffi.ffi_call("t", [S((3,), key.dtype), S((), F32)], input_layouts=[(1, 0)],
                         vmap_method="broadcast_all")
    keys = jax.random.split(key, (4, 2))
    assert [x.dtype for x in jax.eval_shape(f, keys)] == [key.dtype, F32]
    text = jax.jit(f).lower(keys).as_text()
    assert "(tensor<4x2x2xui32>) -> (tensor<3x2xui32>, tensor<f32>)" in text
    assert "operand_layouts = [dense<[2, 0, 1]>" in text
    text = jax.jit(jax.vmap(f)).lower(jax.random.split(key, (5, 4, 2))).as_text()
    assert "(tensor<5x4x2x2xui32>) -> (tensor<5x3x2xui32>, tensor<5xf32>)" in text


def test_text():
    f = jax.ffi.ffi_call("some_target", S((2,), F32), has_side_effect=True)
    text = jax.jit(lambda x: f(x, flag=True, number=3, real=0.5, name="a \"b\"", wide=np.int8(1),
                               array=np.arange(2, dtype=np.int64), inner={"k": 1})).lower(
        np.zeros(2, F32)).as_text()
    assert "a = i8" in jax.jit(lambda x: f(x, a=np.dtype("int8"))).lower(np.zeros(2, F32)).as_text()
    for part in ("@some_target", "flag = true", "number = 3 : i64", "real = 5.000000e-01 : f64",
                 r'name = "a \"b\""', "wide = 1 : i8", "tensor<2xi64>", "inner = {k = 1 : i64}",
                 "has_side_effect = true"):
        assert part in text, part
    old = jax.ffi.ffi_call("old_target", S((2,), F32), custom_call_api_version=2,
                           legacy_backend_config="opaque")
    text = jax.jit(old).lower(np.zeros(2, F32)).as_text()
    assert "api_version = 2" in text and 'backend_config = "opaque"' in text


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda x: jax.ffi.ffi_call("t", S((2,), F32), vmap_method="each"), ValueError, "vmap_method"),
    (lambda x: jax.ffi.ffi_call("t", S((2,), F32), legacy_backend_config="x"), ValueError,
     "requires custom_call_api_version < 4"),
    (lambda x: jax.ffi.ffi_call("t", S((2,), F32), custom_call_api_version=2)(x, a=1), ValueError,
     "requires custom_call_api_version 4"),
    (lambda x: jax.ffi.ffi_call("t", 3), ValueError, "'shape' and 'dtype'.*Got 3 at position 0"),
    (lambda x: jax.ffi.ffi_call("t", [S((2,), F32), None]), ValueError, "None at position 1"),
    (lambda x: jax.ffi.ffi_call(3, S((2,), F32)), TypeError, "target_name must be the name"),
    (lambda x: jax.ffi.ffi_call("t", S((2,), F32), custom_call_api_version=7), ValueError,
     "must be 1, 2, 3 or 4, got 7"),
    (lambda x: jax.ffi.ffi_call("t", S((2,), F32))(x, a=object()), TypeError, "attribute 'a'"),
    (lambda x: jax.ffi.ffi_call("t", S((2,), F32), input_layouts=[(0, 1)])(x), ValueError,
     "order of 1 axes"),
    (lambda x: jax.ffi.ffi_call("t", S((2,), F32), input_layouts=[None] * 2)(x), ValueError,
     "an entry for each of the 1 arrays"),
    (lambda x: jax.ffi.ffi_call("t", S((2,), F32), input_output_aliases={1: 0})(x), ValueError,
     r"mapping '1:0' with input index 1 outside the range \[0, 1\)"),
    (lambda x: jax.ffi.ffi_call("t", S((2,), F32), input_output_aliases={0: 1})(x), ValueError,
     r"mapping '0:1' with output index 1 outside the range \[0, 1\)"),
    (lambda x: jax.ffi.ffi_call("t", S((2,), F32), input_output_aliases=[0])(x), TypeError,
     "must be a dictionary"),
    (lambda x: jax.ffi.ffi_call("t", S((3,), F32), input_output_aliases={0: 0})(x), ValueError,
     "cannot share its memory"),
    (lambda x: jax.grad(lambda x: jax.ffi.ffi_call("t", S((2,), F32))(x).sum())(x), ValueError,
     "FFI call to `t` cannot be differentiated"),
    (lambda x: jax.vmap(jax.ffi.ffi_call("t", S((), F32)))(x), NotImplementedError,
     "ffi_call primitive when vmap_method"),
    (lambda x: jax.ffi.ffi_call("nobody_knows_it", S((2,), F32))(x), jax.errors.JaxRuntimeError,
     "nobody_knows_it"),
])
def test_mistakes(call, error, message):
    with pytest.raises(error, match=message):
        call(jnp.zeros(2))


def test_capsules():
    capsule = jax.ffi.pycapsule(ctypes.CDLL(None).strlen)
    assert "xla._CUSTOM_CALL_TARGET" in repr(capsule)


SOURCE = r"""
#include "xla/ffi/api/ffi.h"
namespace ffi = xla::ffi;
ffi::Error Scale(float by, ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  for (size_t i = 0; i < x.element_count(); ++i) y->typed_data()[i] = by * x.typed_data()[i];
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(ScaleHandler, Scale,
    ffi::Ffi::Bind().Attr<float>("by").Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no C++ compiler")
def test_a_function_of_ones_own(tmp_path):
    source, library = tmp_path / "scale.cc", tmp_path / "scale.so"
    source.write_text(SOURCE)
    subprocess.run(["g++", "-std=c++17", "-O1", "-shared", "-fPIC", f"-I{jax.ffi.include_dir()}",
                    str(source), "-o", str(library)], check=True)
    handler = ctypes.CDLL(str(library)).ScaleHandler
    jax.ffi.register_ffi_target("scale_by", jax.ffi.pycapsule(handler))

    @jax.custom_jvp
    def scale(x):
        return jax.ffi.ffi_call("scale_by", S(x.shape, x.dtype), vmap_method="broadcast_all")(
            x, by=F32(3))

    scale.defjvp(lambda primals, tangents: (scale(*primals), 3 * tangents[0]))
    x = jnp.arange(4.0)
    np.testing.assert_array_equal(jax.jit(scale)(x), 3 * x)
    np.testing.assert_array_equal(jax.vmap(scale)(x), 3 * x)
    np.testing.assert_array_equal(jax.grad(lambda x: scale(x).sum())(x), [3, 3, 3, 3])
