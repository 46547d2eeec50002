"""Each name of `jax._src.test_util`, once."""

import os
import subprocess
import sys
import unittest
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import configuration
from pyjx.compat import test_util as jtu


class Case(jtu.JaxTestCase):
    """Run by tests, not by pytest itself."""

    __test__ = False


def suite(test: Any) -> unittest.TestSuite:
    """A function, maybe a decorated one, as the only test of a case."""
    return jtu.JaxTestLoader().loadTestsFromTestCase(type("Decorated", (Case,), {"test": test}))


def happens(test: Any) -> unittest.TestResult:
    """What becomes of it."""
    result = unittest.TestResult()
    suite(test).run(result)
    return result


def raises(error: type[Exception], call: Callable[[], object]) -> bool:
    with pytest.raises(error):
        call()
    return True


def printed(stream: Callable[[], Any], write: Callable[[], object]) -> str:
    with stream() as text:
        write()
    return text()


def counted(context: Callable[[], Any], happen: Callable[[], object]) -> int:
    with context() as count:
        happen()
    return count()


def within(context: Any, ask: Callable[[], Any]) -> Any:
    with context:
        return ask()


def drawn(sampler: Callable[..., Any], *args: Any) -> np.ndarray:
    return sampler(np.random.RandomState(0), *args)((40,), np.float32)


def in_old_mesh(call: Callable[[], Any]) -> Any:
    with pytest.warns(DeprecationWarning, match="with mesh"):
        return call()


def entered() -> tuple[str, ...]:
    """The axes of the mesh whose `with` statement this is in."""
    return configuration.entered_mesh.value.axis_names


def rank() -> str:
    return jax.config.jax_numpy_rank_promotion


def with_rank_promotion_restored(call: Callable[[], bool]) -> bool:
    before = rank()
    try:
        return call()
    finally:
        jax.config.update("jax_numpy_rank_promotion", before)


def heard(listening: Callable[..., Any], happen: Callable[[], object]) -> list[str]:
    names: list[str] = []
    with listening(lambda name, *_, **__: names.append(name)):
        happen()
    return names


def devices_of_a_process(count: int) -> str:
    """How many there are in a process that asks for so many."""
    program = (f"from pyjx.compat import test_util as jtu; jtu.request_cpu_devices({count}); "
               "import pyjx; print(pyjx.device_count())")
    env = {k: v for k, v in os.environ.items()
           if k not in ("JAX_NUM_CPU_DEVICES", "XLA_FLAGS", "EIGHT_DEVICES")}
    return subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True,
                          check=True).stdout.strip()


@jax.custom_jvp
def other_derivative(x: Any) -> Any:
    """The sine with the derivative of its negative."""
    return jnp.sin(x)


other_derivative.defjvps(lambda t, ans, x: -t * jnp.cos(x))

CPU = ["cpu"]
KEYS = [{"testcase_name": "a b", "x": 1}]
VALUE = np.float32([1, 2])

# Each name of the module, in a call that gives something true.
HELPERS: dict[str, Callable[[], Any]] = {
    "BufferDonationTestCase": lambda: raises(
        AssertionError, lambda: jtu.BufferDonationTestCase().assertDeleted(jnp.ones(1))),
    "JIT_IMPLEMENTATION": lambda: all(f(abs)(-1) == 1 for f in jtu.JIT_IMPLEMENTATION),
    "JaxTestCase": lambda: jtu.JaxTestCase().assertAllClose(VALUE, jnp.array(VALUE)) is None,
    "JaxTestLoader": lambda: suite(lambda self: None).countTestCases() == 1,
    "MeshSpec": lambda: jtu.MeshSpec == list[tuple[str, int]],
    "NUMPY_SCALAR_SHAPE": lambda: list(jtu.NUMPY_SCALAR_SHAPE) == [],
    "NUM_GENERATED_CASES": lambda: jtu.NUM_GENERATED_CASES.value == 10,
    "PYTHON_SCALAR_SHAPE": lambda: len(jtu.PYTHON_SCALAR_SHAPE) == 0,
    "SKIP_SLOW_TESTS": lambda: not jtu.SKIP_SLOW_TESTS.value,
    "ScalarShape": lambda: isinstance(jtu.NUMPY_SCALAR_SHAPE, jtu.ScalarShape),
    "TEST_NUM_THREADS": lambda: jtu.TEST_NUM_THREADS.value == 0,
    "assert_dot_precision": lambda: raises(
        AssertionError, lambda: jtu.assert_dot_precision("highest", jnp.dot, VALUE, VALUE)),
    "assert_dot_preferred_element_type": lambda: raises(
        AssertionError, lambda: jtu.assert_dot_preferred_element_type(
            np.float16, jnp.dot, VALUE, VALUE)),
    "assert_global_configs_unchanged": lambda: with_rank_promotion_restored(lambda: raises(
        AssertionError, lambda: within(
            jtu.assert_global_configs_unchanged(),
            lambda: jax.config.update("jax_numpy_rank_promotion", "raise")))),
    "assert_num_jit_and_pmap_compilations": lambda: raises(AssertionError, lambda: within(
        jtu.assert_num_jit_and_pmap_compilations(2), lambda: jax.jit(lambda x: x + 8)(1))),
    "capture_stderr": lambda: printed(
        jtu.capture_stderr, lambda: print("some", file=sys.stderr)) == "some\n",
    "capture_stdout": lambda: printed(
        jtu.capture_stdout, lambda: print("some")) == "some\n",
    "check_close": lambda: raises(AssertionError, lambda: jtu.check_close(VALUE, VALUE + 1)),
    "check_eq": lambda: raises(AssertionError, lambda: jtu.check_eq(VALUE, VALUE + 1)),
    "check_grads": lambda: raises(
        AssertionError, lambda: jtu.check_grads(other_derivative, (VALUE,), 1)),
    "check_jvp": lambda: raises(AssertionError, lambda: jtu.check_jvp(
        jnp.sin, partial(jax.jvp, jnp.cos), (VALUE,))),
    "check_raises": lambda: raises(AssertionError, lambda: jtu.check_raises(
        lambda: int("a"), ValueError, "other")),
    "check_raises_regexp": lambda: raises(AssertionError, lambda: jtu.check_raises_regexp(
        lambda: int("a"), ValueError, "invalid .* base 11")),
    "check_vjp": lambda: raises(AssertionError, lambda: jtu.check_vjp(
        jnp.sin, partial(jax.vjp, other_derivative), (VALUE,))),
    "complex_plane_sample": lambda: jtu.complex_plane_sample(np.complex64, 1, 2).shape == (7, 5),
    "count_events": lambda: counted(
        jtu.count_events("/a"), lambda: jax.monitoring.record_event("/a")) == 1,
    "count_jit_and_pmap_lowerings": lambda: counted(
        jtu.count_jit_and_pmap_lowerings, lambda: jax.jit(lambda x: x).lower(1)) == 1,
    "count_jit_compilation_cache_miss": lambda: counted(
        jtu.count_jit_compilation_cache_miss, lambda: jax.jit(lambda x: x * 21)(1)) == 1,
    "count_jit_tracing_cache_miss": lambda: counted(
        jtu.count_jit_tracing_cache_miss, lambda: jax.jit(lambda x: x).trace(1)) == 1,
    "count_pjit_cpp_cache_miss": lambda: counted(
        jtu.count_pjit_cpp_cache_miss, lambda: jax.jit(lambda x: x)(1)) == 1,
    "count_primitive_compiles": lambda: counted(
        jtu.count_primitive_compiles, lambda: jax.jit(lambda x: x * 22)(1)) == 0,
    "create_mesh": lambda: jtu.create_mesh((1,), ("x",), iota_order=True).axis_names == ("x",),
    "default_gradient_tolerance": lambda: jtu.default_gradient_tolerance[VALUE.dtype] == 2e-3,
    "default_tolerance": lambda: jtu.default_tolerance()[VALUE.dtype] == 1e-6,
    "device_kind_match": lambda: jtu.device_kind_match(["gpu", "c.u"]) == "c.u",
    "device_supports_buffer_donation": lambda: not happens(
        jtu.device_supports_buffer_donation()(lambda self: None)).skipped,
    "device_under_test": lambda: jtu.device_under_test() == "cpu",
    "dtype_str": lambda: jtu.dtype_str(ml_dtypes.bfloat16) == "bfloat16",
    "dtypes": lambda: jtu.dtypes.numeric == [np.float32, np.int32, np.uint32, np.complex64],
    "format_shape_dtype_string": lambda: jtu.format_shape_dtype_string(3, np.int8) == "int8[3,]",
    "fwd_bwd_jaxprs": lambda: len(jtu.fwd_bwd_jaxprs(jnp.sin, 1.0)) == 2,
    "get_tpu_version": lambda: raises(ValueError, jtu.get_tpu_version),
    "global_config_context": lambda: within(
        jtu.global_config_context(jax_numpy_rank_promotion="warn"), rank) == "warn",
    "ignore_warning": lambda: within(
        jtu.ignore_warning(message="a"), lambda: warnings.warn("ab", stacklevel=1)) is None,
    "is_asan": lambda: not jtu.is_asan(),
    "is_cloud_tpu": lambda: not jtu.is_cloud_tpu(),
    "is_cuda_compute_capability_at_least":
        lambda: not jtu.is_cuda_compute_capability_at_least("8.0"),
    "is_cuda_compute_capability_equal": lambda: not jtu.is_cuda_compute_capability_equal("8.0"),
    "is_cuda_version_at_least": lambda: not jtu.is_cuda_version_at_least(1, 0),
    "is_device_cuda": lambda: not jtu.is_device_cuda(),
    "is_device_oneapi": lambda: not jtu.is_device_oneapi(),
    "is_device_rocm": lambda: not jtu.is_device_rocm(),
    "is_device_tpu": lambda: not jtu.is_device_tpu(),
    "is_device_tpu_at_least": lambda: not jtu.is_device_tpu_at_least(2),
    "is_gil_disabled": lambda: jtu.is_gil_disabled() == (not getattr(
        sys, "_is_gil_enabled", lambda: True)()),
    "is_msan": lambda: not jtu.is_msan(),
    "is_optimized_build": lambda: jtu.is_optimized_build(),
    "is_running_under_pytest": lambda: jtu.is_running_under_pytest(),
    "is_sanitized": lambda: not jtu.is_sanitized(),
    "is_sequence": lambda: jtu.is_sequence("ab") and not jtu.is_sequence(1),
    "is_tsan": lambda: not jtu.is_tsan(),
    "is_valid_shape": lambda: jtu.is_valid_shape(jtu.PYTHON_SCALAR_SHAPE, np.float64),
    "iter_eqns": lambda: [*jtu.iter_eqns(jax.make_jaxpr(jnp.sin)(1.0).jaxpr)],
    "jaxlib_version": lambda: jtu.jaxlib_version() >= (0, 7, 2),
    "join_tolerance": lambda: jtu.join_tolerance(None, 1)[VALUE.dtype] == 1,
    "named_cases_from_sampler": lambda: [*jtu.named_cases_from_sampler(lambda _: KEYS)] == KEYS,
    "num_float_bits": lambda: jtu.num_float_bits(np.float16) == 16,
    "numpy_version": lambda: jtu.numpy_version() == jtu.parse_version(np.__version__),
    "parameterized_filterable": lambda: happens(
        jtu.parameterized_filterable(kwargs=KEYS)(lambda self, x: None)).wasSuccessful(),
    "parse_version": lambda: raises(ValueError, lambda: jtu.parse_version("a")),
    "pattern_search": lambda: jtu.pattern_search(["B", "b+"], "abc") == "b+",
    "promote_like_jnp": lambda: jtu.promote_like_jnp(np.add)(1, VALUE).dtype == VALUE.dtype,
    "pytest_mark_if_available": lambda: jtu.pytest_mark_if_available("gpu")(
        type("Marked", (), {})).pytestmark[0].name == "gpu",
    "rand_bool": lambda: set(drawn(jtu.rand_bool)) == {0, 1},
    "rand_default": lambda: 1 < drawn(jtu.rand_default).std() < 5,
    "rand_fullrange": lambda: np.nanmax(drawn(jtu.rand_fullrange)) > 1e30,
    "rand_indices_unique_along_axis": lambda: jtu.rand_indices_unique_along_axis(
        np.random.RandomState(0))(3, (3,), 0, allow_negative=False).sum() == 3,
    "rand_int": lambda: set(drawn(jtu.rand_int, 3)) == {0, 1, 2},
    "rand_like": lambda: jtu.rand_like(np.random.RandomState(0), VALUE).dtype == VALUE.dtype,
    "rand_nonzero": lambda: drawn(jtu.rand_nonzero).all(),
    "rand_not_small": lambda: abs(drawn(jtu.rand_not_small, 20)).min() >= 20,
    "rand_positive": lambda: drawn(jtu.rand_positive).min() >= 1,
    "rand_small": lambda: abs(drawn(jtu.rand_small)).max() < 0.01,
    "rand_small_positive": lambda: 0 < drawn(jtu.rand_small_positive).max() < 1e-4,
    "rand_some_equal": lambda: len(set(drawn(jtu.rand_some_equal))) < 40,
    "rand_some_inf": lambda: np.isinf(drawn(jtu.rand_some_inf)).any(),
    "rand_some_inf_and_nan": lambda: np.isnan(drawn(jtu.rand_some_inf_and_nan)).any(),
    "rand_some_nan": lambda: np.isnan(drawn(jtu.rand_some_nan)).any(),
    "rand_some_zero": lambda: (drawn(jtu.rand_some_zero) == 0).any(),
    "rand_uniform": lambda: 2 <= drawn(jtu.rand_uniform, 2, 3).mean() <= 3,
    "rand_unique_int": lambda: len(set(drawn(jtu.rand_unique_int, 50))) == 40,
    "register_event_duration_listener": lambda: heard(
        jtu.register_event_duration_listener, lambda: jax.jit(lambda x: x + 9).trace(1)),
    "request_cpu_devices": lambda: devices_of_a_process(3) == "3",
    "run_on_devices": lambda: happens(jtu.run_on_devices("tpu")(lambda self: None)).skipped,
    "sample_product": lambda: happens(
        jtu.sample_product(x=[1, 2])(lambda self, x: None)).testsRun == 2,
    "sample_product_testcases": lambda: jtu.sample_product_testcases(x=[1]) == [{"x": 1}],
    "sanitize_test_name": lambda: jtu.sanitize_test_name("a.b") == "a_b",
    "set_env": lambda: within(jtu.set_env(PYJX_MINE="1"), lambda: os.environ["PYJX_MINE"]) == "1",
    "skip_on_devices": lambda: happens(jtu.skip_on_devices("cpu")(lambda self: None)).skipped,
    "skip_on_flag": lambda: happens(
        jtu.skip_on_flag("jax_enable_x64", False)(lambda self: None)).skipped,
    "skip_under_pytest": lambda: happens(jtu.skip_under_pytest("a")(lambda self: None)).skipped,
    "strict_promotion_if_dtypes_match": lambda: within(
        jtu.strict_promotion_if_dtypes_match([np.int8, "int8"]),
        lambda: jax.config.jax_numpy_dtype_promotion) == "strict",
    "supported_dtypes": lambda: np.float32 in jtu.supported_dtypes(),
    "test_device_matches": lambda: jtu.test_device_matches(CPU),
    "thread_local_config_context": lambda: within(
        jtu.thread_local_config_context(jax_numpy_rank_promotion="warn"), rank) == "warn",
    "thread_unsafe_test": lambda: jtu.thread_unsafe_test()(lambda: 3)() == 3,
    "thread_unsafe_test_class": lambda: jtu.thread_unsafe_test_class()(Case) is Case,
    "to_default_dtype": lambda: jtu.to_default_dtype([1]).dtype == np.int32,
    "tolerance": lambda: [jtu.tolerance(d) for d in (np.int8, np.float32)] == [0, 1e-6],
    "with_config": lambda: jtu.with_config(jax_numpy_rank_promotion="warn")(rank)() == "warn",
    "with_explicit_mesh": lambda: jtu.with_explicit_mesh((1,), ("x",))(
        lambda mesh: mesh.axis_names)() == ("x",),
    "with_global_config": lambda: jtu.with_global_config(
        jax_numpy_rank_promotion="warn")(rank)() == "warn",
    "with_jax_dtype_defaults": lambda: jtu.with_jax_dtype_defaults(
        np.ones, False)(2).dtype == np.float64,
    "with_mesh": lambda: in_old_mesh(
        lambda: within(jtu.with_mesh([("x", 1)]), entered)) == ("x",),
    "with_mesh_from_kwargs": lambda: in_old_mesh(
        lambda: jtu.with_mesh_from_kwargs(lambda mesh: entered())(mesh=[("x", 1)])) == ("x",),
}


def test_the_table_has_all_helpers():
    assert sorted(jtu.__all__) == sorted(HELPERS)


@pytest.mark.parametrize("name", HELPERS)
def test_a_helper_does_what_it_says(name):
    assert HELPERS[name]()
