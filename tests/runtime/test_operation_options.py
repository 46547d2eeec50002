"""Single operations are compiled by other options than programs, to nearly the same values."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import jaxlib_api
from pyjx.runtime.programs import operation_options

pytestmark = pytest.mark.optimized
older_emitters = pytest.mark.skipif(
    not jaxlib_api.HAS_OLDER_CPU_EMITTERS, reason="this jaxlib has one kind of emitters")

FUNCTIONS = {
    "exp": jnp.exp, "log": jnp.log, "sin": jnp.sin, "tanh": jnp.tanh, "sqrt": jnp.sqrt,
    "log1p": jnp.log1p, "expm1": jnp.expm1, "floor": jnp.floor, "sum": jnp.sum, "max": jnp.max,
    "cumsum": jnp.cumsum, "sort": jnp.sort, "softmax": jax.nn.softmax, "gelu": jax.nn.gelu,
    "std": jnp.std, "any": jnp.any, "power": lambda x: x**2.5,
    "where": lambda x: jnp.where(x > 0, x, 0), "transpose": jnp.transpose, "cbrt": jnp.cbrt,
    "tan": jnp.tan, "arctan": jnp.arctan, "gather": lambda x: x[jnp.array([2, 0])],
    "pad": lambda x: jnp.pad(x, 1), "mod": lambda x: x % 3, "logsumexp": jax.nn.logsumexp,
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_values_are_those_of_compiled_programs(name, dtype):
    rng = np.random.default_rng(0)
    x = jnp.asarray(np.concatenate([rng.standard_normal((20, 17)), rng.uniform(-30, 30, (9, 17))]),
                    dtype)
    function = FUNCTIONS[name]
    eager = np.asarray(function(x))
    compiled = np.asarray(jax.jit(lambda x: function(x))(x))
    assert eager.tobytes() == compiled.tobytes()


@pytest.mark.parametrize("n", [5, 33, 37, 100, 1000])
def test_sums_differ_by_roundings_at_most(n):
    x = jnp.asarray(np.random.default_rng(n).standard_normal(n), "float32")
    for name in ("sum", "std", "softmax", "logsumexp", "cumsum", "arctan", "exp", "log1p"):
        eager, compiled = FUNCTIONS[name](x), jax.jit(FUNCTIONS[name])(x)
        np.testing.assert_allclose(eager, compiled, rtol=1e-6, atol=1e-6, err_msg=name)


def options(function, dtype, size=4, platform="cpu"):
    traced = jax.jit(function).trace(jax.ShapeDtypeStruct((size, size), dtype))
    return dict(operation_options(traced.jaxpr, platform))


def has_older_emitters(*args):
    return "xla_cpu_use_fusion_emitters" in options(*args)


@older_emitters
def test_programs_for_the_older_emitters():
    assert has_older_emitters(lambda x: jnp.max(x * 2), "float32")
    assert not has_older_emitters(lambda x: jnp.max(x * 2), "float32", 1000)
    assert has_older_emitters(jnp.exp, "float32", 1000)
    assert has_older_emitters(jnp.sort, "bfloat16")
    assert has_older_emitters(lambda x: x.T, "float32")
    assert not has_older_emitters(lambda x: x.T, "float32", 1000)
    assert not has_older_emitters(jnp.tan, "float32")
    assert not has_older_emitters(lambda x: x * x, "float16")
    assert not has_older_emitters(lambda x: x * x, "complex64")


def test_loops_are_not_unrolled_whole():
    assert options(jnp.tan, "float16", 1000)["xla_backend_optimization_level"] == 1
    assert options(jnp.exp, "float32", 32)["xla_backend_optimization_level"] == 1


def _pairs(x):
    return jax.lax.reduce((x, x), (0, 1), lambda a, b: (a[0] + b[0], a[1] * b[1]), (0,))


SUMS = [
    lambda x: x @ x, jnp.sum, jnp.prod, lambda x: jnp.std(x, 1), jax.nn.softmax, jax.nn.logsumexp,
    lambda x: jax.lax.conv(x[None, None], x[None, None], (1, 1), "SAME"), _pairs,
    lambda x: jax.lax.reduce(x, 0, lambda a, b: a * 1 + b, (1,))]


@pytest.mark.parametrize("function", SUMS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "complex64"])
@pytest.mark.parametrize("n", [7, 33, 128])
def test_what_adds_up_has_the_bits_of_programs(function, dtype, n):
    assert not options(function, dtype, n)
    x = jnp.asarray(np.random.default_rng(0).standard_normal((n, n)), dtype)
    outside, inside = function(x), jax.jit(lambda x: function(x))(x)
    for a, b in zip(jax.tree.leaves(outside), jax.tree.leaves(inside), strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


# XLA reads its flags once; then they are taken away, as nothing is compiled quickly beside flags.
OTHER_PROCESSOR = '''
import os
import numpy as np
import pyjx as jax, pyjx.numpy as jnp
jnp.ones(3) + 1
del os.environ["XLA_FLAGS"]
for i, function in enumerate([jnp.sum, jnp.std, jnp.nansum, jax.nn.logsumexp, jnp.prod]):
    for dtype in "float32", "bfloat16":
        x = jnp.asarray(np.random.default_rng(0).standard_normal((29, 17)), dtype)
        inside = jax.jit(lambda x: function(x))(x)
        if np.asarray(function(x)).tobytes() != np.asarray(inside).tobytes():
            print(i, dtype)
'''


@pytest.mark.parametrize("flag", ["--xla_cpu_prefer_vector_width=128", "--xla_cpu_max_isa=AVX2",
                                  "--xla_cpu_prefer_vector_width=512"])
def test_what_adds_up_has_the_bits_of_programs_on_other_processors(run_python, flag):
    assert run_python(OTHER_PROCESSOR, XLA_FLAGS=flag) == ""


@pytest.mark.parametrize("function", [jnp.sum, _pairs])
def test_sums_of_integers_and_extremes_are_compiled_quickly(function):
    assert options(function, "int32")["xla_backend_optimization_level"] == 1
    assert options(jnp.max, "float32")["xla_backend_optimization_level"] == 1


def test_programs_with_floats_of_8_bits_get_no_options():
    for dtype in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz"):
        assert not options(lambda x: x // x, dtype)


def test_other_platforms_and_the_flags_of_the_user(monkeypatch):
    assert options(jnp.exp, "float32")
    assert not options(jnp.exp, "float32", platform="cuda")
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_use_fusion_emitters=true")
    assert not options(jnp.exp, "float32")
    monkeypatch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=3")
    assert not options(jnp.exp, "float32")
