"""Compilation: options, errors, foreign functions."""

import numpy as np
import pytest

import pyjx as jax
from pyjx import jaxlib_api
from pyjx.jaxlib_api import JaxRuntimeError
from pyjx.runtime import cache, foreign_functions
from pyjx.runtime import compile as compiler
from pyjx.runtime.compile import compile, compile_options
from pyjx.runtime.device_put import device_put

pytestmark = pytest.mark.smoke

ADD = """module @m { func.func public @main(%a: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.add %a, %a : tensor<3xf32>
  return %0 : tensor<3xf32> } }"""


def run(executable, *args):
    results = executable.execute_sharded([device_put(a) for a in args])
    return [np.asarray(r[0]) for r in results.disassemble_into_single_device_arrays()]


def test_runs():
    (out,) = run(compile(ADD), np.arange(3, dtype=np.float32))
    np.testing.assert_array_equal(out, [0, 2, 4])


def test_compiler_options():
    compile(ADD, compiler_options={"xla_cpu_enable_fast_math": True})
    with pytest.raises(JaxRuntimeError, match="No such compile option: 'xla_foo'"):
        compile(ADD, compiler_options={"xla_foo": True})
    with pytest.raises(TypeError, match="compiler_options: the value of 'xla_foo' is a str"):
        compile(ADD, compiler_options={"xla_foo": object()})
    with pytest.raises(TypeError, match="the name of an option is a str, got 3"):
        compile(ADD, compiler_options={3: True})


def test_options_are_kept():
    from pyjx.runtime.backends import default_device

    devices = (default_device(),)
    assert compile_options(devices) is compile_options(devices)
    with pytest.raises(ValueError, match="2 replicas of 1 partitions need 2 devices, got 1"):
        compile_options(devices, num_replicas=2)


def width(monkeypatch, f, *shapes, features="sse avx512f avx512_vpopcntdq", platform="cpu"):
    """How many bits the vectors of a program have, on a processor of these features."""
    monkeypatch.setattr(jaxlib_api, "WIDE_VECTORS", True)
    monkeypatch.setattr(cache, "cpu_facts", lambda: ("model name : x", f"flags : {features}"))
    text = jax.jit(f).lower(*map(jax.numpy.ones, shapes)).as_text()
    return compiler._wide_vectors(text, platform).get("xla_cpu_prefer_vector_width")


def test_vectors_are_as_wide_as_the_processor_likes_them(monkeypatch):
    assert width(monkeypatch, jax.numpy.exp, 8) == 512
    assert width(monkeypatch, jax.numpy.exp, 8, features="sse avx512f") is None
    assert width(monkeypatch, jax.numpy.exp, 8, platform="tpu") is None
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_prefer_vector_width=128")
    assert width(monkeypatch, jax.numpy.exp, 8) is None


def test_wide_vectors_are_for_programs_of_functions(monkeypatch):
    def two(x):
        return jax.numpy.log(jax.numpy.exp(x) + 1).T

    assert width(monkeypatch, lambda x: x[::2] * 2 - x.sum(), 8) == 512
    assert width(monkeypatch, lambda x: x.T + 1, (4, 5)) is None
    assert width(monkeypatch, lambda x: jax.lax.pad(x, 0.0, [(0, 0, 1)]), 8) is None
    assert width(monkeypatch, lambda x: x.at[x.astype(int)].add(1), 8) is None
    assert width(monkeypatch, jax.numpy.linalg.inv, (9, 9)) is None
    assert width(monkeypatch, two, (4, 5)) is None
    assert width(monkeypatch, jax.grad(lambda x: jax.numpy.vdot(x, jax.numpy.sin(x))), 8) == 512
    assert width(monkeypatch, jax.grad(lambda x: jax.numpy.vdot(x, x @ x)), (8, 8)) is None
    assert width(monkeypatch, lambda x: jax.numpy.log1p(jax.numpy.expm1(two(x))), (4, 5)) == 512
    assert width(monkeypatch, lambda x, m: jax.numpy.exp(x) + m.T.sum(), 100, (4, 5)) == 512
    assert width(monkeypatch, lambda x, m: jax.numpy.exp(x) + m.T.sum(), 3, (4, 5)) is None


def test_error_of_a_text_that_does_not_parse():
    with pytest.raises(JaxRuntimeError) as raised:
        compile("module @m { foo }")
    assert "error:" in str(raised.value)
    assert "forward incompatibility" not in str(raised.value)


def test_lapack_is_registered_when_it_is_called():
    text = """module @m { func.func public @main(%a: tensor<2x2xf32>)
        -> (tensor<2x2xf32>, tensor<i32>) {
      %1:2 = stablehlo.custom_call @lapack_spotrf_ffi(%a) {api_version = 4 : i32,
        backend_config = {uplo = 76 : ui8}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
        result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>]}
        : (tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<i32>)
      return %1#0, %1#1 : tensor<2x2xf32>, tensor<i32> } }"""
    out, info = run(compile(text), np.array([[4, 0], [0, 9]], np.float32))
    np.testing.assert_allclose(np.tril(out), [[2, 0], [0, 3]])
    assert info == 0


@pytest.mark.parametrize("found", [(), ("jax_cuda12_plugin",)])
@pytest.mark.parametrize("said", [
    "No FFI handler registered for cusolver_getrf_ffi on a platform CUDA",
    "No registered implementation for custom call to cusolver_getrf_ffi for platform CUDA"])
def test_what_has_the_functions_of_gpus_is_told(monkeypatch, said, found):
    monkeypatch.setattr(foreign_functions.importlib.util, "find_spec",
                        lambda name: name in found or None)
    monkeypatch.setattr(foreign_functions.backends, "plugin_library",
                        lambda name: "/xla_cuda12/plugin.so")
    error = str(compiler._cleaned(JaxRuntimeError(said)))
    cure = f"pip install jax-cuda12-plugin=={jaxlib_api.JAXLIB_RELEASE}"
    assert error.startswith(said) and error.endswith(cure) != bool(found)
