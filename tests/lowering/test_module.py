"""Whole modules: functions, constants, donation, locations; every text verifies."""

import re

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from lowering import lower
from lowering.rules import rule
from pyjx import configuration, jaxlib_api
from pyjx.core.avals import ShapedArray
from pyjx.core.primitive import Primitive
from pyjx.core.trace import trace_to_jaxpr
from pyjx.engine.decompose import decompose
from pyjx.runtime.lower import lower_closed

v = np.arange(4, dtype=np.float32)


def module_of(f, *args, platform="cpu", **options):
    closed = decompose(jax.make_jaxpr(f)(*args), platform)
    text = lower(closed, "f", platform=platform, **options).text
    jaxlib_api.parse_module(text)
    return text


def module_of_optimized(f, *args):
    return lower_closed(jax.make_jaxpr(f)(*args), "f").text


def functions(text):
    return re.findall(r"func\.func (?:public|private) @(\w+)", text)


def test_pure_and_deterministic():
    closed = jax.make_jaxpr(lambda a: jnp.where(a > 0, jnp.tanh(a), a).sum())(v)
    assert lower(closed, "f").text == lower(closed, "f").text
    assert lower(closed, "f").text == module_of(lambda a: jnp.where(a > 0, jnp.tanh(a), a).sum(), v)


def test_text_of_a_small_program():
    assert module_of(lambda a: jnp.sin(a) * 2.0, v) == """\
module @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.sine %arg0 : tensor<4xf32>
    %1 = stablehlo.constant dense<2.000000e+00> : tensor<4xf32>
    %2 = stablehlo.multiply %0, %1 : tensor<4xf32>
    return %2 : tensor<4xf32>
  }
}
"""


@pytest.mark.parametrize("f", [
    lambda: None, lambda: 1.0, lambda: (1, True, 2j, np.float16(3)), lambda a=1.0: (),
])
def test_modules_without_arguments_or_results(f):
    module_of(f)


def test_names_of_modules_are_cleaned():
    closed = jax.make_jaxpr(lambda a: a)(1.0)
    for name in ("<lambda>", "a b", "weird-name.1", "ünï", ""):
        jaxlib_api.parse_module(lower(closed, name).text)


def test_nested_functions_are_written_once():
    g = jax.jit(lambda a: jnp.sin(a) * 2)
    text = module_of(lambda a: g(g(a)) + g(a), v)
    assert len(functions(text)) == 2
    assert text.count("stablehlo.sine") == 1
    assert len(re.findall(r"call @", text)) == 3
    assert jax.jit(lambda x: x).lower(1.0).as_text().startswith("module @jit__lambda ")


def test_functions_of_one_name():
    def named(k):
        def layer(a):
            return jnp.sin(a) * k

        return jax.jit(layer)

    text = module_of(lambda a: named(2.0)(a) + named(3.0)(a) + jax.jit(lambda main: main)(a), v)
    assert functions(text)[:3] == ["main", "layer", "layer_0"]


def test_deeply_nested_functions():
    def f(a, n):
        return a if n == 0 else jax.jit(lambda b: f(jnp.sin(b), n - 1))(a)

    text = module_of(lambda a: f(a, 5), v)
    assert len(functions(text)) == 6


def test_constants():
    large, small = np.arange(100, dtype=np.float32), np.arange(2, dtype=np.float32)
    closed = jax.make_jaxpr(lambda a: (a + large.sum() + large[0], large * 2, small * 3))(1.0)
    closed = trace_to_jaxpr(lambda a: [a * large, a * small[:1]], [ShapedArray((1,), np.float32)])
    lowered = lower(closed, "f")
    jaxlib_api.parse_module(lowered.text)
    assert len(lowered.const_args) == 1
    assert lowered.const_args[0] is large
    assert "%arg0: tensor<100xf32>, %arg1: tensor<1xf32>" in lowered.text


def test_equal_constants_of_one_block_are_written_once():
    text = module_of(lambda a: a * 2.0 + jnp.sin(a) * 2.0 + 2.0, v)
    assert text.count("stablehlo.constant") == 1
    assert module_of(lambda a: a * 0.0 + a * -0.0, v).count("stablehlo.constant") == 2


def test_donation():
    closed = jax.make_jaxpr(lambda a, b, c: (b.sum(), a + 1, b.reshape(2, 2)))(v, v, v)
    lowered = lower(closed, "f", donated=(True, True, True))
    jaxlib_api.parse_module(lowered.text)
    assert "%arg0: tensor<4xf32> {tf.aliasing_output = 1 : i32}" in lowered.text
    assert "%arg1: tensor<4xf32> {jax.buffer_donor = true}" in lowered.text
    assert lowered.unused_donations == [ShapedArray((4,), np.float32)]
    assert "tf.aliasing" not in lower(closed, "f").text


def test_donated_arguments_of_equal_types_get_a_result_each():
    closed = jax.make_jaxpr(lambda a, b: (a + 1, b + 1))(v, v)
    text = lower(closed, "f", donated=(True, True)).text
    assert re.findall(r"aliasing_output = (\d)", text) == ["0", "1"]


def test_primitive_without_a_rule():
    bare_p = Primitive("test_no_rule", shape_rule=lambda a: a)
    with pytest.raises(NotImplementedError,
                       match="MLIR translation rule for primitive 'test_no_rule' not found"):
        lower(jax.make_jaxpr(lambda a: bare_p.bind(a))(v), "f")


def test_decompositions():
    def body(a, n):
        for _ in range(n):
            a = jnp.sin(a) * a
        return a

    many_p = Primitive("test_many", shape_rule=lambda a, n: a, decomposition=body)
    pair_p = Primitive("test_pair", shape_rule=lambda a: [a, a], multiple_results=True,
                       decomposition=lambda a: [a * 2, body(a, 10)])
    text = module_of(lambda a: many_p.bind(a, n=1), v)
    assert functions(text) == ["main"]  # short ones stand in place
    text = module_of(lambda a: many_p.bind(a, n=10) + many_p.bind(a * 2, n=10), v)
    assert functions(text) == ["main", "test_many"]
    text = module_of(lambda a: pair_p.bind(a)[1], v)
    assert functions(text) == ["main", "test_pair"]
    # Neither the result that nobody uses nor what only it needs is computed.
    assert "stablehlo.constant" not in module_of_optimized(lambda a: pair_p.bind(a)[1], v)
    np.testing.assert_allclose(jax.jit(lambda a: many_p.bind(a, n=10))(v), body(v, 10), rtol=1e-5)


def test_one_rule_for_each_primitive_and_platform():
    with pytest.raises(ValueError, match="two lowering rules for 'sin'"):
        rule("sin")(lambda b, eqn, a: a)
    with pytest.raises(ValueError, match="two lowering rules for 'cumsum' on cpu"):
        rule("cumsum", platform="cpu")(lambda b, eqn, a: a)
    with pytest.raises(ValueError, match=r"platform is one of cpu, .*, got 'gpu'"):
        rule("test_platform", platform="gpu")


def test_a_rule_for_one_platform():
    special_p = Primitive("test_special", shape_rule=lambda a: a, decomposition=jnp.sin)
    rule("test_special", platform="cpu")(
        lambda b, eqn, a: b.unary("stablehlo.cosine", a, eqn.outvars[0].aval))
    for platform, op in (("cpu", "cosine"), ("cuda", "sine"), ("tpu", "sine")):
        assert f"stablehlo.{op}" in module_of(lambda a: special_p.bind(a), v, platform=platform)


def test_widening_rules_get_operands_of_one_shape():
    text = module_of(lambda a, b: jax.lax.mul(a, 2.0) + jax.lax.max(b, 1.0), v, np.float32(3))
    assert "stablehlo.constant dense<2.000000e+00> : tensor<4xf32>" in text
    assert "stablehlo.constant dense<1.000000e+00> : tensor<f32>" in text


def test_custom_calls():
    factor_p = Primitive("test_potrf", multiple_results=True,
                         shape_rule=lambda a: [a, ShapedArray((), np.int32)])

    @rule("test_potrf")
    def potrf(b, eqn, a):
        return b.custom_call(
            "lapack_spotrf_ffi", [a], [eqn.invars[0].aval], [v.aval for v in eqn.outvars],
            family="lapack", config={"uplo": np.uint8(ord("L"))}, batch_axes=0,
            aliases={0: 0})

    matrix = np.array([[4, 2], [2, 5]], np.float32)
    closed = jax.make_jaxpr(lambda a: factor_p.bind(a))(matrix)
    program = lower(closed, "f")
    jaxlib_api.parse_module(program.text)
    assert program.custom_calls == {"lapack"}
    assert "backend_config = {uplo = 76 : ui8}" in program.text
    assert "operand_layouts = [dense<[0, 1]> : tensor<2xindex>]" in program.text
    factor, info = jax.jit(lambda a: factor_p.bind(a))(matrix)
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(matrix), rtol=1e-6)
    assert info == 0
    assert lower(jax.make_jaxpr(jnp.sin)(v), "f").custom_calls == set()


@pytest.mark.parametrize("platform", ["cpu", "cuda", "tpu"])
def test_platforms(platform):
    module_of(lambda a: jnp.sin(a) + jnp.cumsum(a), v, platform=platform)


def test_outlining_is_switched_by_flag():
    def f(a):
        for _ in range(6):
            for _ in range(8):
                a = jnp.sin(a) * 2 + jnp.cos(a) * a
        return a

    closed = jax.make_jaxpr(f)(v)
    counts = {}
    for mode in ("on", "off"):
        with configuration.outline(mode):
            text = lower_closed(closed, "f").text
            jaxlib_api.parse_module(text)
            counts[mode] = len(functions(text))
    assert counts["off"] == 1
    assert counts["on"] > 1


def test_importing_the_package_by_itself():
    import subprocess
    import sys

    subprocess.run([sys.executable, "-c", "import lowering; lowering.lower"], check=True)
