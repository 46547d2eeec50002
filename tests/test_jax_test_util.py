"""`jax._src.test_util`, on which test suites written for JAX are built."""

import os
import subprocess
import sys
import textwrap
import threading
import unittest
import warnings
from importlib import import_module
from types import SimpleNamespace
from typing import ClassVar

import ml_dtypes
import numpy as np
import pytest
from absl.testing import parameterized

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.compat import module_of
from pyjx.compat import test_util as jtu
from pyjx.compat.test_util import platforms


class Case(jtu.JaxTestCase):
    """Run by tests, not by pytest itself."""

    __test__ = False


def run(case: type[unittest.TestCase]) -> unittest.TestResult:
    result = unittest.TestResult()
    jtu.JaxTestLoader().loadTestsFromTestCase(case).run(result)
    return result


def faults(case: type[unittest.TestCase]) -> dict[str, str]:
    """The last line of each failure of a test case, by test."""
    result = run(case)
    return {test.id().rpartition(".")[2]: text.strip().splitlines()[-1]
            for test, text in result.failures + result.errors}


class Comparing(Case):
    def test_near(self):
        self.assertAllClose(np.float32([1, np.nan]), jnp.array([1 + 1e-7, jnp.nan]))
        self.assertAllClose({"a": [1.0, (2,)]}, {"a": (1.0, [2])})
        self.assertAllClose(np.ones(2), jnp.ones(2))  # 64 bits as 32, where they are off
        self.assertArraysEqual(jnp.ones(2, "bfloat16"), np.ones(2, ml_dtypes.bfloat16))

    def test_far(self):
        self.assertAllClose(np.float32(1), np.float32(1.001))

    def test_tolerances_by_dtype(self):
        self.assertAllClose(np.float32(1), np.float32(1.001), rtol={np.float32: 0.01})

    def test_dtypes(self):
        self.assertAllClose(np.int32(1), np.float32(1))

    def test_wide_dtypes(self):
        self.assertAllClose(np.ones(2), jnp.ones(2), canonicalize_dtypes=False)

    def test_shapes(self):
        self.assertArraysAllClose(np.ones(2), np.ones(3))

    def test_lengths(self):
        self.assertAllClose([1], [1, 2])

    def test_equal(self):
        self.assertArraysEqual(np.float32([0]), np.float32([1e-9]))

    def test_texts(self):
        self.assertMultiLineStrippedEqual("""
            one
              two

            three""", "one\n two \nthree\n")

    def test_other_texts(self):
        self.assertMultiLineStrippedEqual("one", "two")

    def test_words(self):
        self.assertMultiLineStrippedEqual("one two", "one\ntwo")

    def test_lists_and_numbers(self):
        self.assertArraysEqual([1, 2], np.int32([1, 2]))
        self.assertArraysEqual((1.0, 2.0), [1.0, 2.0])
        self.assertArraysEqual(1.0, np.ones((2, 3), np.float32))
        self.assertArraysEqual(1, 1.0, check_dtypes=False)
        self.assertArraysEqual("a", "a")
        self.assertDtypesMatch([1.0], np.float64(1), canonicalize_dtypes=False)
        self.assertDtypesMatch(None, None)

    def test_lists(self):
        self.assertArraysEqual([1, 2], [1, 3])

    def test_kinds_of_lists(self):
        self.assertArraysEqual([1, 2], [1.0, 2.0])

    def test_ranks(self):
        self.assertArraysEqual(np.ones((1, 3)), np.ones(3))

    def test_keys(self):
        key = jax.random.key(0)
        self.assertDtypesMatch(key, jax.random.split(key))
        with self.assertRaisesRegex(TypeError, "key_data"):
            self.assertArraysEqual(key, key)
        with self.assertRaisesRegex(TypeError, "key_data"):
            self.assertAllClose(key, key)

    def test_kinds_of_keys(self):
        self.assertDtypesMatch(jax.random.key(0), jax.random.key(0, impl="rbg"))

    def test_keys_and_numbers(self):
        self.assertArraysEqual(jax.random.key(0), np.uint32([0, 0]))

    def test_objects(self):
        objects = np.array([1, None])
        for dtype in (True, False):
            with self.assertRaisesRegex(TypeError, "allow_object_dtype"):
                self.assertArraysEqual(objects, objects, check_dtypes=dtype)
        self.assertArraysEqual(objects, objects, allow_object_dtype=True)

    def test_no_tolerance(self):
        self._CheckAgainstNumpy(lambda x: x, lambda x: x * 1.001, lambda: [np.float32(1)],
                                tol=1, rtol=0, atol=0)

    def test_no_tolerance_compiled(self):
        self._CompileAndCheck(
            lambda x: x * 1.001 if isinstance(x, jax.core.Tracer) else x,
            lambda: [jnp.float32(1)], tol=1, rtol=0, atol=0)


def test_a_case_compares_values_shapes_and_dtypes():
    found = faults(Comparing)
    assert set(found) == {"test_far", "test_dtypes", "test_wide_dtypes", "test_shapes",
                          "test_lengths", "test_equal", "test_other_texts", "test_words",
                          "test_lists", "test_kinds_of_lists", "test_ranks", "test_kinds_of_keys",
                          "test_keys_and_numbers", "test_no_tolerance",
                          "test_no_tolerance_compiled"}
    assert "key<fry> != key<rbg>" in found["test_kinds_of_keys"]
    assert "dtype('int32') != dtype('float32')" in found["test_dtypes"]
    assert "dtype('float64') != dtype('float32')" in found["test_wide_dtypes"]


def test_tolerances():
    assert jtu.tolerance(np.float32, 0) == 0 and jtu.tolerance(np.float32, {np.int8: 1}) == 1e-6
    joined = jtu.join_tolerance(None, {np.float32: 0.5})
    assert joined.keys() == jtu.default_tolerance().keys()
    assert [t for t in joined.values() if t] == [joined[np.dtype(np.float32)]] == [0.5]
    assert jtu.join_tolerance({np.float32: 0.5}, {"float32": 0.1, "float64": 0.2}) == {
        np.dtype(np.float32): 0.5, np.dtype(np.float64): 0.2}
    assert set(jtu.join_tolerance(0.1, 0.2).values()) == {0.2}


def test_tolerances_are_the_same_on_all_platforms(monkeypatch):
    monkeypatch.setenv("JAX_TEST_DUT", "tpu")
    assert jtu.tolerance(np.float32) == jtu.tolerance(np.complex64) == 1e-6
    assert jtu.default_gradient_tolerance[np.dtype(np.float32)] == 2e-3


def test_leaves_are_equal():
    jtu.check_eq([jnp.ones(2), {"a": 1}], [np.ones(2), {"a": np.int8(1)}])
    with pytest.raises(AssertionError, match="here"):
        jtu.check_eq([jnp.ones(2)], [np.float32([1, 1.0000001])], "here")
    with pytest.raises(ValueError):
        jtu.check_eq([1], (1,))


class Functions(Case):
    def test_good(self):
        args = jtu.rand_default(self.rng())((3,), np.float32)
        self._CheckAgainstNumpy(np.sin, jnp.sin, lambda: [args])
        self._CompileAndCheck(jnp.sin, lambda: [args])

    def test_wrong(self):
        self._CheckAgainstNumpy(np.cos, jnp.sin, lambda: [np.float32(1)])

    def test_wrong_compiled(self):
        self._CompileAndCheck(
            lambda x: -x if isinstance(x, jax.core.Tracer) else x, lambda: [jnp.ones(3)])

    def test_new_shapes(self):
        sizes = iter(range(1, 9))
        self._CompileAndCheck(jnp.sin, lambda: [jnp.ones(next(sizes))])

    def test_new_operations(self):
        places = iter(range(9))
        self._CompileAndCheck(lambda x: jax.lax.slice(x, (0,), (next(places),)),
                              lambda: [jnp.ones(9)])

    def test_new_operations_of_numpy(self):
        sizes = iter(range(1, 9))
        self._CompileAndCheck(lambda x: jnp.sin(x[:next(sizes)]).sum() * 0, lambda: [jnp.ones(9)])

    def test_new_functions(self):
        for f in (lambda x: jax.jit(lambda y: y * 2)(x),
                  lambda x: jax.vmap(jax.jit(lambda y: y * 2))(x),
                  jax.grad(lambda x: jax.jit(lambda y: (y * y).sum())(x)),
                  jax.grad(lambda x: jax.checkpoint(lambda y: jnp.sin(y).sum())(x)),
                  lambda x: jax.lax.scan(lambda c, y: (c + y, c), 0.0, x)):
            self._CompileAndCheck(f, lambda: [jnp.ones(3)])

    def test_promotion_is_strict(self):
        with self.assertRaisesRegex(ValueError, "promotion"):
            _ = jnp.ones(2, "int32") + jnp.ones(2)
        with self.assertRaises(ValueError):
            _ = jnp.ones(2) + jnp.ones((2, 2))

    @jtu.with_config(jax_numpy_dtype_promotion="standard", jax_numpy_rank_promotion="allow")
    def test_promotion_is_asked_for(self):
        self.assertEqual((jnp.ones(2, "int32") + jnp.ones((2, 2))).dtype, np.float32)

    def test_counts(self):
        f = jax.jit(lambda x: x * 3)
        self.assertCacheMisses(lambda: f(1.0), cpp=1, tracing=1, lowering=1)
        self.assertCacheMisses(lambda: f(2.0), cpp=0, tracing=0, lowering=0)
        with jtu.assert_num_jit_and_pmap_compilations(1):
            f(1)

    def test_wrong_counts(self):
        self.assertCacheMisses(lambda: jax.jit(lambda x: x - 7)(1.0), tracing=0)


def test_a_case_runs_functions_compiled_and_not():
    found = faults(Functions)
    assert set(found) == {"test_wrong", "test_wrong_compiled", "test_new_shapes",
                          "test_new_operations", "test_new_operations_of_numpy",
                          "test_wrong_counts"}


def test_events_are_counted_in_this_thread():
    f = jax.jit(lambda x: x * 5)
    with jtu.count_events("/mine/step")() as steps, jtu.count_pjit_cpp_cache_miss() as misses:
        jax.monitoring.record_event("/mine/step")
        jax.monitoring.record_event_duration_secs("/mine/step", 0.5)
        jax.monitoring.record_event("/mine/other")
        for elsewhere in (lambda: jax.monitoring.record_event("/mine/step"), lambda: f(True)):
            thread = threading.Thread(target=elsewhere)
            thread.start()
            thread.join()
        f(1.0), f(1.0), f(2)
        assert steps() == misses() == 2
    jax.monitoring.record_event("/mine/step")
    assert steps() == 2
    with jtu.count_primitive_compiles() as compiled:
        jnp.sin(jnp.ones((2, 3, 7)))
        f(jnp.ones(7))
    assert compiled() == 1


def test_durations_are_listened_to():
    heard = []
    with jtu.register_event_duration_listener(lambda name, seconds, **_: heard.append(name)):
        jax.monitoring.record_event_duration_secs("/mine/step", 0.5)
    jax.monitoring.record_event_duration_secs("/mine/step", 0.5)
    assert heard == ["/mine/step"]


class Cases(Case):
    seen: ClassVar[list[object]] = []

    @jtu.sample_product([{"a": 1, "b": 2}, {"a": 3, "b": 4}], c=[5, 6])
    def test_product(self, a, b, c):
        self.seen.append((a, b, c))

    @jtu.sample_product(n=range(1000))
    def test_many(self, n):
        self.seen.append(n)

    @jtu.parameterized_filterable(kwargs=[{"x": 1, "y": "a b"}, {"x": 2, "y": "c"}])
    def test_named(self, x, y):
        self.seen.append(self._testMethodName)

    @jtu.parameterized_filterable(kwargs=[{"x": 1}, {"x": 2}], one_containing="x_2",
                                  testcase_name=lambda case: f"x={case['x']}")
    def test_one(self, x):
        self.seen.append((self._testMethodName, x))

    @jtu.parameterized_filterable(kwargs=({"testcase_name": f"a b={n}", "n": n} for n in (1, 2)))
    def test_given(self, n):
        self.seen.append(self._testMethodName)


def test_parameters_of_tests():
    assert not faults(Cases)
    drawn = [n for n in Cases.seen if isinstance(n, int)]
    assert [t for t in Cases.seen if not isinstance(t, int)] == [
        "test_given_a_b_1", "test_given_a_b_2", "test_named_x_1_y_a_b", "test_named_x_2_y_c",
        ("test_one", 2), (3, 4, 5), (3, 4, 6), (1, 2, 5), (1, 2, 6)]
    assert drawn == [521, 737, 740, 660, 411, 678, 626, 513, 859, 136]  # as JAX draws
    assert len(drawn) == jtu.NUM_GENERATED_CASES.value


def test_a_test_without_cases_fails():
    for decorate in (lambda: jtu.sample_product(a=[]), lambda: jtu.sample_product([], b=[1]),
                     lambda: jtu.parameterized_filterable(kwargs=[])):
        with pytest.raises(parameterized.NoTestsError):
            type("Made", (Case,), {"test": decorate()(lambda self: None)})
    with pytest.raises(AssertionError, match=r"contains 'z'; there are x_1, x_2\."):
        jtu.parameterized_filterable(kwargs=[{"x": 1}, {"x": 2}], one_containing="z")
    one = run(type("Made", (Case,), {"test": jtu.sample_product()(lambda self: None)}))
    assert one.testsRun == 1 and one.wasSuccessful()


def test_names_of_tests():
    assert jtu.sanitize_test_name("_a=1, b=(2, 'x')-c\\d") == "_a_1_b_2_x_-c\\d"


def test_a_product_is_not_made_whole(monkeypatch):
    monkeypatch.setenv("JAX_NUM_GENERATED_CASES", "3")
    cases = jtu.sample_product_testcases(**dict.fromkeys("abcd", range(10**4)))
    assert len(cases) == 3 and all(set(case) == set("abcd") for case in cases)
    assert jtu.sample_product_testcases(a=range(4), b=range(3)) == [
        {"a": 2, "b": 2}, {"a": 1, "b": 2}, {"a": 0, "b": 0}]


def test_cases_are_drawn_one_by_one():
    cases = list(jtu.named_cases_from_sampler(lambda choose: [
        {"testcase_name": f"_{a}_{b}", "a": a, "b": b} for a in choose([1, 2]) for b in choose("xy")
    ]))
    assert sorted((case["a"], case["b"]) for case in cases) == [
        (1, "x"), (1, "y"), (2, "x"), (2, "y")]
    numbers = jtu.named_cases_from_sampler(lambda choose: [
        {"testcase_name": f"_{n}", "n": n} for n in choose(range(100))])
    assert [case["n"] for case in numbers] == [51, 92, 14, 71, 60, 20, 82, 86, 74, 87]  # as in JAX
    with pytest.raises(RuntimeError, match="one case at a time, got 2"):
        list(jtu.named_cases_from_sampler(lambda _: [{"testcase_name": n} for n in "ab"]))


SAMPLERS = [getattr(jtu, name) for name in jtu.__dict__ if name.startswith("rand_")
            and name not in ("rand_int", "rand_indices_unique_along_axis", "rand_like")]


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda s: s.__name__)
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint8, np.complex64,
                                   ml_dtypes.bfloat16])
def test_samples_have_the_shape_and_the_dtype(sampler, dtype):
    for shape in [(), (0,), (2, 3), 4]:
        drawn = sampler(np.random.RandomState(0))(shape, dtype)
        assert type(drawn) is np.ndarray and drawn.dtype == dtype
        assert drawn.shape == ((shape,) if shape == 4 else shape)
        again = sampler(np.random.RandomState(0))(shape, dtype)
        np.testing.assert_array_equal(drawn.astype(complex), again.astype(complex))


def test_what_is_drawn():
    def rng():
        return np.random.RandomState(0)

    shape = (50, 20)
    near = np.float32([5.292157, 1.2004716])
    np.testing.assert_allclose(jtu.rand_default(rng())((2,), np.float32), near)
    assert (jtu.rand_positive(rng())(shape, np.float32) >= 1).all()
    assert (abs(jtu.rand_not_small(rng())(shape, np.float32)) >= 10).all()
    assert (jtu.rand_nonzero(rng())(shape, np.int8) != 0).all()
    drawn = jtu.rand_int(rng(), 3, 6)(shape, np.int8)
    assert set(drawn.ravel()) == {3, 4, 5}
    assert sorted(jtu.rand_unique_int(rng())((2, 3), np.int32).ravel()) == list(range(6))
    drawn = jtu.rand_uniform(rng(), 2, 3)(shape, np.float64)
    assert 2 <= drawn.min() < 2.01 and 2.99 < drawn.max() <= 3
    some = jtu.rand_some_inf(rng())(shape, np.float32)
    assert 0.07 < (some == np.inf).mean() < 0.13 and 0.07 < (some == -np.inf).mean() < 0.13
    nan = jtu.rand_some_nan(rng())(shape, np.float32)
    assert 0.07 < np.isnan(nan).mean() < 0.13 and 0.3 < np.signbit(nan[np.isnan(nan)]).mean() < 0.7
    assert 0.4 < (jtu.rand_some_zero(rng())(shape, np.float32) == 0).mean() < 0.6
    for sampler in (jtu.rand_some_inf, jtu.rand_some_inf_and_nan):
        assert np.isfinite(sampler(rng())(shape, np.complex64)).all()
    assert 0.15 < np.isnan(jtu.rand_some_nan(rng())(shape, np.complex64)).mean() < 0.25
    drawn = jtu.rand_some_equal(rng())(shape, np.float32)
    assert 0.4 < (drawn == drawn[0, 0]).mean() < 0.6
    indices = jtu.rand_indices_unique_along_axis(rng())(dim=5, shape=(4, 3), axis=0)
    assert indices.shape == (4, 3) and all(len(set(column % 5)) == 4 for column in indices.T)
    for negative in (True, False):
        indices = jtu.rand_indices_unique_along_axis(rng())(5, (3, 200), 0, allow_negative=negative)
        assert indices.max() == 4 and indices.min() == (-5 if negative else 0)
    with pytest.raises(ValueError, match="larger sample"):
        jtu.rand_indices_unique_along_axis(rng())(2, (3,), 0)
    assert len(set(jtu.rand_fullrange(rng())((4096,), np.uint8))) == 256
    like = jtu.rand_like(rng(), {"a": np.ones(2, np.float32)})
    np.testing.assert_allclose(like["a"], near / 3, rtol=1e-6)


# What JAX's samplers draw.
DRAWN = [
    (jtu.rand_nonzero, np.int8, [5, 1, 2, 6]), (jtu.rand_positive, np.int8, [2, 2, 2, 2]),
    (jtu.rand_int, np.int8, [44, 10, 12, 47]), (jtu.rand_int, np.uint8, [172, 10, 127, 140]),
    (lambda rng: jtu.rand_int(rng, 3), np.float32, [0, 1, 0, 1]),
    (jtu.rand_unique_int, np.int8, [2, 3, 1, 0]),
    (jtu.rand_fullrange, np.int8, [-84, 10, 127, -116]),
    (jtu.rand_some_equal, np.uint8, [176, 40, 176, 224]),
    (jtu.rand_some_zero, np.int8, [5, -2, 2, 0]),
    (jtu.rand_some_inf, ml_dtypes.bfloat16, [-0.310546875, 1.234375, 0.431640625, 4.375]),
    (jtu.rand_some_inf, np.complex64, [5.292157 + 5.602674j, 1.2004716 - 2.9318337j,
                                       2.936214 + 2.8502653j, 6.7226796 - 0.45407162j]),
    (jtu.rand_some_nan, np.complex64, [5.602674 + 2.2831132j, -2.9318337 + 0.36502504j,
                                       2.8502653 + 1.3315897j, -0.45407162 + 1.0010229j]),
]


@pytest.mark.parametrize(("sampler", "dtype", "drawn"), DRAWN)
def test_the_same_is_drawn_as_by_jax(sampler, dtype, drawn):
    np.testing.assert_array_equal(sampler(np.random.RandomState(0))((4,), dtype),
                                  np.array(drawn, dtype))


def test_a_draw_can_be_scaled_and_changed():
    draw = jtu.rand_default(np.random.RandomState(0))
    np.testing.assert_allclose(draw((2,), np.float32, scale=10), [17.640524, 4.001572], rtol=1e-6)
    assert (draw((9,), np.float32, post=lambda x: x * 0 + 4) == 4).all()
    all_bits = jtu.rand_fullrange(np.random.RandomState(0))
    assert (all_bits((9,), np.int8, post=lambda x: x | 1) % 2 == 1).all()


def test_integers_without_a_bound_are_of_integer_dtypes():
    with pytest.raises(ValueError, match="float32 needs a bound"):
        jtu.rand_int(np.random.RandomState(0))((3,), np.float32)


def test_python_scalars_fit_in_arrays():
    def drawn(dtype):
        sizes = [jtu.rand_fullrange(np.random.RandomState(i))(jtu.PYTHON_SCALAR_SHAPE, dtype)
                 for i in range(20)]
        return min(sizes) < 0, max(sizes).bit_length()

    assert drawn(np.uint32) == (True, 31) and drawn(np.uint8) == (False, 8)
    with jax.enable_x64(True):
        assert drawn(np.uint32) == (False, 32) and drawn(np.uint64)[0]


def test_the_complex_plane():
    sample = jtu.complex_plane_sample(np.complex64, 3, 1)
    facts = np.finfo(np.float32)
    positive = np.float32([facts.tiny, 2, facts.max, np.inf])
    np.testing.assert_allclose(sample.real[0], [*-positive[::-1], 0, *positive], rtol=1e-6)
    np.testing.assert_array_equal(sample.imag[:, 0], [-np.inf, -facts.tiny, 0, facts.tiny, np.inf])
    assert jtu.complex_plane_sample(np.complex128).shape == (23, 23)


def test_scalars_are_drawn():
    draw = jtu.rand_default(np.random.RandomState(0))
    assert type(draw(jtu.NUMPY_SCALAR_SHAPE, np.int16)) is np.int16
    assert type(draw(jtu.PYTHON_SCALAR_SHAPE, np.complex64)) is complex
    assert jtu.format_shape_dtype_string(jtu.PYTHON_SCALAR_SHAPE, np.float32) == "pyfloat32"
    assert not jtu.is_valid_shape(jtu.PYTHON_SCALAR_SHAPE, np.float32)


class Skipped(Case):
    ran: ClassVar[list[str]] = []

    @jtu.skip_on_devices("cpu")
    def test_a(self):
        self.ran.append("a")

    @jtu.run_on_devices("tpu", skip_reason="slow")
    def test_b(self):
        self.ran.append("b")

    @jtu.run_on_devices("cpu")
    def test_c(self):
        self.ran.append("c")

    @jtu.skip_on_flag("jax_enable_x64", False)
    def test_d(self):
        self.ran.append("d")

    @jtu.with_explicit_mesh((1,), ("x",))
    def test_e(self, mesh):
        self.assertEqual(jax.sharding.get_abstract_mesh(), mesh.abstract_mesh)
        self.ran.append("e")

    @jtu.with_explicit_mesh((1000,), ("x",))
    def test_f(self, mesh):
        self.ran.append("f")

    @jtu.device_supports_buffer_donation()
    def test_g(self):
        self.ran.append("g")


def test_tests_that_depend_on_the_device():
    result = run(Skipped)
    assert Skipped.ran == ["c", "e", "g"] and result.wasSuccessful()
    reasons = {test.id().rpartition(".")[2]: reason for test, reason in result.skipped}
    assert reasons["test_b"] == "slow" and "1000" in reasons["test_f"]
    whole = run(jtu.skip_on_devices("cpu")(type("Whole", (Cases,), {})))
    assert whole.skipped and len(whole.skipped) == whole.testsRun


# Kinds of TPUs with the versions and variants that they are, and do not pass for.
TPUS = [("TPU v3", 3, "", "e"), ("TPU v4", 4, "", "i"), ("TPU v4i", 4, "i", "e"),
        ("TPU v5", 5, "p", "e"), ("TPU v5 lite", 5, "e", "p"), ("TPU v6 lite", 6, "e", "p"),
        ("TPU7x", 7, "x", ""), ("TPU8i", 8, "i", "")]


@pytest.mark.parametrize(("kind", "version", "variant", "other"), TPUS)
def test_kinds_of_tpus(kind, version, variant, other, monkeypatch):
    monkeypatch.setenv("JAX_TEST_DUT", "tpu")
    monkeypatch.setattr(platforms.backends, "devices", lambda: [SimpleNamespace(device_kind=kind)])
    assert jtu.get_tpu_version() == version and jtu.is_device_tpu()
    assert jtu.is_device_tpu(version, variant) and not jtu.is_device_tpu(version, other)
    assert jtu.is_device_tpu_at_least(version) and not jtu.is_device_tpu_at_least(version + 1)
    assert not any(jtu.is_device_tpu(n) for n in range(2, 9) if n != version)


def test_the_version_of_what_is_no_tpu(monkeypatch):
    with pytest.raises(ValueError, match="not TPU"):
        jtu.get_tpu_version()
    monkeypatch.setenv("JAX_TEST_DUT", "tpu")
    with pytest.raises(ValueError, match="kind cpu is not supported"):
        jtu.get_tpu_version()


def test_the_maker_of_a_gpu(monkeypatch):
    client = SimpleNamespace(platform="gpu", platform_version="PJRT C API\ncuda 12090")
    monkeypatch.setattr(platforms.backends, "get_backend", lambda: client)
    monkeypatch.setattr(platforms.backends, "devices",
                        lambda: [SimpleNamespace(compute_capability="9.0")])
    assert jtu.is_device_cuda() and not jtu.is_device_rocm() and not jtu.is_device_oneapi()
    assert jtu.is_cuda_compute_capability_equal("9.0")
    assert not jtu.is_cuda_compute_capability_equal("8.9")
    assert [jtu.is_cuda_compute_capability_at_least(c) for c in ("8.9", "9.0", "10.0")] == [
        True, True, False]
    client.platform_version = "oneapi 2025"
    assert jtu.is_device_oneapi() and not jtu.is_device_cuda()
    assert not jtu.is_cuda_compute_capability_at_least("8.0")


def test_the_version_of_cuda(monkeypatch):
    client = SimpleNamespace(platform="gpu", platform_version="PJRT C API\ncuda 12090")
    monkeypatch.setattr(platforms.backends, "get_backend", lambda: client)
    assert jtu.is_cuda_version_at_least(12, 9) and jtu.is_cuda_version_at_least(11, 10)
    assert not jtu.is_cuda_version_at_least(12, 10) and not jtu.is_cuda_version_at_least(13, 0)
    client.platform_version = "PJRT C API\nrocm 60000"
    assert not jtu.is_cuda_version_at_least(1, 0) and jtu.is_device_rocm()


def test_platforms_are_given_in_lists():
    with pytest.raises(AssertionError, match="'cpu'"):
        jtu.test_device_matches("cpu")


def test_dtypes_are_those_that_are_enabled():
    assert jtu.dtypes.all_floating == [ml_dtypes.bfloat16, np.float16, np.float32]
    with jax.enable_x64(True):
        assert jtu.dtypes.floating == [np.float32, np.float64]
        assert jtu.num_float_bits(np.complex128) == 64
    assert jtu.num_float_bits(np.complex128) == 32
    assert jtu.num_float_bits(ml_dtypes.bfloat16) == 16
    with pytest.raises(ValueError):
        jtu.num_float_bits(np.int32)


@pytest.mark.parametrize(("platform", "small", "wide"), [
    ("cpu", {"int4", "uint4"}, True),
    ("gpu", {"float8_e4m3fn", "float8_e5m2"}, True),
    ("tpu", {"int4", "uint4", "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz"}, False),
])
def test_dtypes_are_those_of_the_platform(platform, small, wide, monkeypatch):
    monkeypatch.setenv("JAX_TEST_DUT", platform)
    assert {np.dtype(t).name for t in jtu.supported_dtypes()} == small | {
        "bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "bfloat16", "float16",
        "float32", "complex64"}
    with jax.enable_x64(True):
        assert (np.float64 in jtu.supported_dtypes()) == wide


def test_numpy_as_a_reference():
    assert jtu.promote_like_jnp(np.add)(np.int8(1), np.float32(2)).dtype == np.float32
    assert jtu.promote_like_jnp(np.sin, inexact=True)(np.int32(1)).dtype == np.float32
    assert jtu.with_jax_dtype_defaults(np.ones)(2).dtype == np.float32
    first, second = jtu.with_jax_dtype_defaults(
        lambda: (np.int64(1), np.float64(1)), (True, False))()
    assert first.dtype == np.int32 and second.dtype == np.float64


def test_programs_are_looked_into():
    def f(x):
        return jax.jit(lambda x: jnp.dot(x, x, precision="highest"))(x)

    names = [eqn.primitive.name for eqn in jtu.iter_eqns(jax.make_jaxpr(f)(jnp.ones(3)).jaxpr)]
    assert names == ["jit", "dot_general"]
    jtu.assert_dot_precision(jax.lax.Precision.HIGHEST, f, jnp.ones(3))
    with pytest.raises(AssertionError):
        jtu.assert_dot_precision(None, f, jnp.ones(3))
    fwd, bwd = jtu.fwd_bwd_jaxprs(jnp.sin, 1.0)
    assert [e.primitive.name for e in fwd.eqns] == ["sin", "cos"]
    assert [e.primitive.name for e in bwd.eqns] == ["mul"]


def test_flags_that_are_left_with_other_values():
    with jtu.assert_global_configs_unchanged(), jtu.global_config_context(jax_enable_x64=True):
        pass
    with jtu.global_config_context(jax_enable_x64=False), \
            pytest.raises(AssertionError, match=r"'jax_enable_x64': \(False, True\)"), \
            jtu.assert_global_configs_unchanged():
        jax.config.update("jax_enable_x64", True)


def test_warnings_are_ignored_raised_and_recorded():
    loud = import_module(module_of("test_warning_util"))
    with loud.raise_on_warnings(), pytest.raises(UserWarning, match="late"):
        warnings.warn("late", stacklevel=1)
    with loud.raise_on_warnings(), loud.record_warnings() as seen:
        for _ in range(2):
            warnings.warn("late", stacklevel=1)
        with loud.ignore_warning(message="la"), jtu.ignore_warning(category=DeprecationWarning):
            warnings.warn("late", stacklevel=1)
            warnings.warn("old", DeprecationWarning, stacklevel=1)
    assert [str(warning.message) for warning in seen] == ["late", "late"]


def test_implementations_of_jit_have_names():
    assert [implementation._name for implementation in jtu.JIT_IMPLEMENTATION] == ["jit", "noop"]
    for implementation in jtu.JIT_IMPLEMENTATION:
        assert implementation(lambda x, n: x * n, static_argnums=1)(3, 2) == 6


def test_settings_are_put_back(monkeypatch):
    monkeypatch.setenv("PYJX_MINE", "before")
    with jtu.set_env(PYJX_MINE="now", PYJX_OTHER="there"):
        assert (os.environ["PYJX_MINE"], os.environ["PYJX_OTHER"]) == ("now", "there")
    assert os.environ["PYJX_MINE"] == "before" and "PYJX_OTHER" not in os.environ
    with jtu.global_config_context(jax_enable_x64=True):
        assert jax.config.jax_enable_x64
    assert not jax.config.jax_enable_x64


def test_a_suite_runs_under_the_name_of_jax(tmp_path):
    suite = tmp_path / "suite.py"
    suite.write_text(textwrap.dedent("""
        from absl.testing import absltest
        import jax
        import jax.numpy as jnp
        import numpy as np
        from jax._src import config, core, test_util as jtu
        from jax._src.lax import lax as lax_internal
        from jax._src.numpy import einsum, lax_numpy
        from jax._src.util import safe_map, split_list
        import jax._src.numpy.vectorize

        jax.config.parse_flags_with_absl()

        class SinTest(jtu.JaxTestCase):
            @jtu.sample_product(shape=[(), (3,)], dtype=jtu.dtypes.floating)
            def testSin(self, shape, dtype):
                rng = jtu.rand_default(self.rng())
                self._CheckAgainstNumpy(np.sin, jnp.sin, lambda: [rng(shape, dtype)])

            def testPrint(self):
                with jtu.capture_stdout() as text:
                    jax.debug.print("{}", 3)
                    jax.effects_barrier()
                self.assertEqual(text(), "3\\n")

            def testNames(self):
                assert lax_internal.sin_p is jax.lax.sin_p
                assert lax_numpy.einsum is einsum.einsum is jnp.einsum
                assert jnp.vectorize(lambda x: x)(1) == 1 and callable(jax.lax.fft)
                assert split_list([1, 2, 3], [1]) == [[1], [2, 3]]

        if __name__ == "__main__":
            absltest.main(testLoader=jtu.JaxTestLoader())
    """))
    done = subprocess.run([sys.executable, "-m", "pyjx", str(suite)], capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Ran 4 tests" in done.stderr
