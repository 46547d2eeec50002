"""The stages of a jitted function: traced, lowered, compiled."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import configuration, jaxlib_api, stages
from pyjx.core.check import check_jaxpr
from pyjx.experimental.pjit import pjit
from pyjx.experimental.shard_map import shard_map

pytestmark = pytest.mark.smoke

ROOT = Path(__file__).parents[2]


def program(a, b):
    return {"s": jnp.sin(a) * b + 1, "n": None}


@pytest.fixture
def x():
    return jnp.arange(3.0)


@pytest.fixture
def f():
    return jax.jit(program)


@pytest.fixture
def lowered(f, x):
    return f.lower(x, 2.0)


def equal(actual, expected):
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=1e-6)


# -- traced ----------------------------------------------------------------------------------------


def test_traced(f, x):
    traced = f.trace(x, 2.0)
    assert isinstance(traced, stages.Traced)
    assert traced.fun_name == "program"
    assert traced.out_info["s"] == jax.ShapeDtypeStruct((3,), np.float32)
    assert traced.out_avals["s"].shape == (3,)
    assert traced.out_info["n"] is None
    assert traced.in_avals[0][1].weak_type
    assert traced.in_tree.num_leaves == 2
    assert traced.out_tree.num_leaves == 1
    assert not traced.effects
    assert traced.donate_argnums == ()
    assert traced.lojax.jaxpr is traced.jaxpr
    check_jaxpr(traced.jaxpr)
    assert traced.jaxpr.debug_info.arg_names == ("a", "b")
    assert traced.jaxpr.debug_info.result_paths == ("result['s']",)


def test_args_info(x):
    info = jax.jit(program, donate_argnums=1).trace(x, b=x).args_info
    assert info == ((stages.ArgInfo(jax.typeof(x), False),),
                    {"b": stages.ArgInfo(jax.typeof(x), True)})
    (first, second), _ = jax.jit(program, donate_argnums=1).trace(x, x).args_info
    assert (first.donated, second.donated) == (False, True)
    assert first.shape == (3,)
    assert first.dtype == np.float32
    assert "donated=True" in repr(second)


def test_captured_constants_as_an_argument(x):
    traced = jax.jit(lambda a: a + x).trace(1.0)
    consts, fun = traced.closure_convert()
    equal(fun(consts, 2.0), [2, 3, 4])
    equal(fun([x * 10], 2.0), [2, 12, 22])
    with pytest.raises(TypeError, match="was traced for arguments"):
        fun(consts, 1.0, 2.0)
    consts, converted = traced.with_consts_as_arg()
    assert not converted.jaxpr.consts
    equal(converted.lower().compile()(consts, 2.0), [2, 3, 4])
    assert traced.physicalize().jaxpr.in_avals == traced.jaxpr.in_avals


@pytest.mark.parametrize("platform", ["cpu", "tpu", "cuda"])
def test_lowering_for_another_platform(f, x, platform):
    assert "stablehlo.sine" in f.trace(x, 1.0).lower(lowering_platforms=(platform,)).as_text()


def test_names_of_platforms_to_lower_for():
    traced = jax.jit(jnp.linalg.eigh).trace(jnp.eye(3))
    on_cuda = traced.lower(lowering_platforms=("cuda",)).as_text()
    for name in ("gpu", "CUDA"):
        assert traced.lower(lowering_platforms=(name,)).as_text() == on_cuda
    with pytest.raises(ValueError, match=r"lower: unknown platform 'gpus'; .* cpu, cuda, gpu"):
        traced.lower(lowering_platforms=("gpus",))
    assert traced.lower(lowering_platforms="cuda").as_text() == on_cuda


# -- lowered ---------------------------------------------------------------------------------------


def test_text_in_each_dialect(lowered):
    assert lowered.as_text().startswith("module @jit_program")
    assert lowered.as_text("stablehlo") == lowered.as_text()
    assert lowered.as_text("hlo").startswith("HloModule jit_program")
    assert str(lowered.compiler_ir()).startswith("module @jit_program")
    assert "sine" in lowered.compiler_ir("hlo").as_hlo_text()
    for get in (lowered.as_text, lowered.compiler_ir):
        with pytest.raises(ValueError, match="unknown dialect: nonsense"):
            get("nonsense")


def test_debug_info_names_lines(lowered):
    text = lowered.as_text(debug_info=True)
    jaxlib_api.parse_module(text)
    assert re.search(r'loc\("program"\(".*test_stages.py":\d+:\d+\)\)', text)
    assert 'loc("jit(program)/sin"' in text
    assert "loc(" not in lowered.as_text()
    hlo = lowered.as_text("hlo", debug_info=True)
    assert 'op_name="jit(program)/sin"' in hlo
    assert "op_name" not in lowered.as_text("hlo")


def test_round_trip(lowered, x):
    """Text -> parse -> print -> compile."""
    from pyjx.runtime.compile import compile

    module = jaxlib_api.parse_module(lowered.as_text())
    again = str(module)
    assert str(jaxlib_api.parse_module(again)) == again
    loaded = compile(again)
    outs = loaded.execute_sharded([x, jnp.float32(2)])
    out = outs.disassemble_into_single_device_arrays()[0][0]
    equal(out, np.sin(x) * 2 + 1)


def test_cost_of_the_lowered_program(lowered):
    costs = lowered.cost_analysis()
    assert costs["flops"] >= 6
    assert costs["transcendentals"] == 3


def test_lowering_of_structs_and_keywords(f, x):
    s = jax.ShapeDtypeStruct
    compiled = f.lower(s((3,), "float32"), b=s((), "float32")).compile()
    equal(compiled(x, b=np.float32(2))["s"], np.sin(x) * 2 + 1)
    with pytest.raises(TypeError, match="at path a"):
        f.lower("text", 1.0)


def test_lowering_within_a_trace(f, x):
    @jax.jit
    def outer(a):
        with pytest.raises(TypeError, match="closes over values"):
            jax.jit(lambda b: a * b).lower(1.0)
        return a

    outer(x)


def test_text_is_the_same_in_every_process():
    code = """
import pyjx as jax, pyjx.numpy as jnp
def f(t, x):
    g = jax.jit(lambda v: jnp.tanh(v) @ t["w"] + t["b"])
    for _ in range(4):
        x = g(x)
    return {"loss": jnp.mean(x ** 2), "last": jnp.where(x > 0, x, 0.0)}
t = {"w": jnp.ones((4, 4)), "b": jnp.ones(4)}
lowered = jax.jit(jax.value_and_grad(lambda t, x: f(t, x)["loss"])).lower(t, jnp.ones((2, 4)))
print(lowered.as_text()); print(lowered.as_text(debug_info=True))
"""
    texts = set()
    for seed in ("0", "1", "77"):
        env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed}
        texts.add(subprocess.run([sys.executable, "-c", code], env=env, capture_output=True,
                                 text=True, check=True).stdout)
    assert len(texts) == 1


# -- compiled --------------------------------------------------------------------------------------


def test_compiled_call(lowered, x):
    compiled = lowered.compile()
    for _ in range(3):
        equal(compiled(x, 2.0)["s"], np.sin(x) * 2 + 1)
        equal(compiled.call(np.ones(3, np.float32), np.float32(2))["s"], np.sin(np.ones(3)) * 2 + 1)
        assert compiled(x, 2.0)["n"] is None
    with jax.disable_jit():
        equal(compiled(x, 2.0)["s"], np.sin(x) * 2 + 1)


def test_compiled_call_of_another_signature(lowered, x):
    compiled = lowered.compile()
    compiled(x, 2.0)
    for args in ((x,), ([x], 2.0), (x, 2.0, 1.0)):
        with pytest.raises(TypeError, match="does not match the input pytree"):
            compiled(*args)
    with pytest.raises(TypeError, match=r"Argument 'a' compiled with float32\[3\] and called with "
                                        r"float32\[4\]"):
        compiled(jnp.arange(4.0), 2.0)
    with pytest.raises(TypeError, match=r"float32\[3\] and called with int32\[3\]"):
        compiled(jnp.arange(3), 2.0)
    with pytest.raises(TypeError, match=r"Argument 'b'"):
        compiled(x, jnp.ones(3))


def test_compiled_call_within_transformations(lowered, x):
    compiled = lowered.compile()
    for transformed in (jax.jit(lambda a: compiled(a, 2.0)["s"]),
                        jax.grad(lambda a: compiled(a, 2.0)["s"].sum())):
        with pytest.raises(TypeError, match="Cannot apply JAX transformations"):
            transformed(x)
    equal(jax.jit(lambda a: a + compiled(x, 2.0)["s"])(0.0), np.sin(x) * 2 + 1)


def test_compiled_with_static_and_unused_arguments_and_constants(x):
    f = jax.jit(lambda a, n: a * int(n), static_argnums=1)
    compiled = f.lower(x, 3).compile()
    equal(compiled(x), x * 3)
    equal(compiled(x, 3), x * 3)
    named = jax.jit(lambda n, a: a * int(n), static_argnames="n").lower(n=3, a=x).compile()
    equal(named(a=x), x * 3)
    unused = jax.jit(lambda a, b: b + x).lower(x, x).compile()
    for _ in range(2):
        equal(unused(x, x), x * 2)


def test_compiler_options_of_one_compilation(lowered, x):
    compiled = lowered.compile({"xla_cpu_enable_fast_math": True})
    equal(compiled(x, 2.0)["s"], np.sin(x) * 2 + 1)
    with pytest.raises(jaxlib_api.JaxRuntimeError, match="xla_nonsense"):
        lowered.compile({"xla_nonsense": True})
    with pytest.raises(TypeError, match="xla_cpu_enable_fast_math"):
        lowered.compile({"xla_cpu_enable_fast_math": object()})


def test_analyses(lowered):
    compiled = lowered.compile()
    assert compiled.as_text().startswith("HloModule jit_program")
    assert compiled.cost_analysis()["flops"] > 0
    assert compiled.memory_analysis().output_size_in_bytes == 12
    assert compiled.runtime_executable().hlo_modules()
    sharding = compiled.input_shardings[0][0]
    assert sharding.device_set == {jax.devices()[0]}
    assert compiled.output_shardings["s"] == sharding
    assert compiled.out_info["s"].sharding == sharding
    assert compiled.input_formats is not None
    assert compiled.output_formats is not None


def test_donation_of_a_compiled_function():
    compiled = jax.jit(lambda a: a + 1, donate_argnums=0).lower(jnp.ones(4)).compile()
    a = jnp.ones(4) * 2
    equal(compiled(a), [3, 3, 3, 3])
    assert a.is_deleted()
    assert compiled.donate_argnums == (0,)


def test_other_static_arguments_are_refused():
    compiled = jax.jit(lambda x, n: x * n, static_argnums=1).lower(1.0, 3).compile()
    assert float(compiled(2.0)) == float(compiled(2.0, 3)) == 6.0
    with pytest.raises(TypeError, match="compiled for the static arguments"):
        compiled(2.0, 4)


def test_lines_in_the_text_of_programs_on_disk(cache_folder):
    def text(line):
        names = {"jnp": jnp}
        source = "\n" * line + "def f(x):\n    return jnp.sin(x) * 3"
        exec(compile(source, "moved.py", "exec"), names)
        return jax.jit(names["f"]).lower(1.0).compile().as_text()

    def lines(text):
        return {int(n) for n in re.findall(r'moved\.py" source_line=(\d+)', text)} or {
            int(n) for n in re.findall(r"line=(\d+)", text)}

    assert 12 in lines(text(10))
    assert 22 in lines(text(20))
    with configuration.compilation_cache_include_metadata_in_key(True):
        assert 22 in lines(text(20))
        assert 32 in lines(text(30))


def test_names_in_the_text_of_programs_on_disk(cache_folder):
    def names(f):
        return set(re.findall(r'op_name="([^"]*)"', jax.jit(f).lower(2.0).compile().as_text()))

    def named(x):
        with jax.named_scope("mine"):
            return jnp.sin(x) * 5

    def plain(x):
        return jnp.sin(x) * 5

    plain.__name__ = "named"
    assert any("mine" in n for n in names(named))
    assert not any("mine" in n for n in names(plain))  # the same program but for names
    assert any("mine" in n for n in names(named))


def test_programs_on_disk_that_write_references_have_their_text(cache_folder):
    def text():
        def add(ref, x):
            ref[...] += x
            return ref[...] * 7

        return jax.jit(add).lower(jax.new_ref(jnp.zeros(3)), jnp.ones(3)).compile().as_text()

    assert text().splitlines()[0] == text().splitlines()[0]  # arguments, results, aliases


def test_compiler_options_are_those_of_the_whole_program(x):
    inner = jax.jit(jnp.sin, compiler_options={"xla_embed_ir_in_executable": True})
    np.testing.assert_allclose(jax.vmap(inner)(x), np.sin(x), rtol=1e-6)
    with pytest.raises(ValueError, match=r"can only be passed to top-level `jax\.jit`"):
        jax.jit(lambda x: inner(x) + 1)(x)


def test_what_was_traced_can_be_called(x):
    traced = jax.jit(lambda a, n, *, b: {"r": a * n + b}, static_argnames="n").trace(x, n=3, b=1.0)
    np.testing.assert_allclose(traced(x, b=2.0)["r"], x * 3 + 2.0)
    np.testing.assert_allclose(jax.grad(lambda a: traced(a, b=0.0)["r"].sum())(x), 3)
    with pytest.raises(TypeError, match="was traced for arguments"):
        traced(x)


@pytest.mark.parametrize("call", [
    lambda: jax.jit(jnp.sin, backend="cpu"), lambda: jax.jit(jnp.sin, device=jax.devices()[0]),
    lambda: pjit(jnp.sin), lambda: shard_map(jnp.sin, jax.make_mesh((1,), "a"), (), ())])
def test_older_ways_to_say_where_it_runs_warn(call):
    with pytest.warns(DeprecationWarning, match="deprecated") as seen:
        call()
    assert [w.filename for w in seen] == [__file__]
