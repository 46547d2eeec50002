"""Functions that are called with ever new sizes, where a flag has them run padded."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import configuration as config
from pyjx.runtime.explain import RetraceWarning


def rows(n, m=4):
    return np.random.default_rng(n).normal(size=(n, m)).astype(np.float32)


def ones(n):
    return np.ones(n, "f")


def test_sizes_that_change_twice_become_dynamic_where_a_flag_wants_it():
    fun = jax.jit(lambda x, y: (x * y[:, None]).mean(0))
    with config.dynamic_shapes("auto"):
        for n in range(1, 20):
            x, y = rows(n), np.arange(n, dtype="f")
            np.testing.assert_allclose(fun(x, y), (x * y[:, None]).mean(0), rtol=1e-4, atol=1e-6)
    assert [t.changes != () for t in fun.explain().traces] == [False, True, True]
    assert [b.bounds for b in fun.explain().buckets] == [{"d0": 8}, {"d0": 16}, {"d0": 32}]
    with config.dynamic_shapes("auto"):  # what was of one size may be of another one
        fun = jax.jit(lambda x, y: x.sum() + y.sum())
        for n, m in ((1, 1), (2, 2), (3, 3), (4, 4), (5, 9), (6, 8)):
            assert fun(np.ones(n, "f"), np.ones(m, "f")) == n + m


def test_what_cannot_be_dynamic_is_said_once_and_stays_as_it_was():
    fun = jax.jit(lambda x: jnp.abs(jnp.fft.fft(x)))
    with config.dynamic_shapes("auto"):
        fun(np.ones(1, "f"))
        fun(np.ones(2, "f"))
        with pytest.warns(RetraceWarning, match="cannot run padded.*`fft` at .*test_automatic.py"):
            fun(np.ones(3, "f"))
        for n in (4, 5):
            np.testing.assert_allclose(fun(np.ones(n, "f")), np.abs(np.fft.fft(np.ones(n))),
                                       atol=1e-6)


def test_a_timeout_is_no_reason_to_stay_as_it_was(alarm):
    late = True
    fun = jax.jit(lambda x: alarm() if late and type(x.shape[0]) is not int else x + 1)
    with config.dynamic_shapes("auto"):
        fun(ones(1))
        fun(ones(2))
        with pytest.raises(TimeoutError, match="too slow"):
            fun(ones(3))
        late = False
        fun(ones(3))
    assert fun.explain().buckets


@pytest.mark.parametrize("chosen", [
    lambda x: x.shape[0] == 5, lambda x: x.shape[0] % 2 == 0, lambda x: x.shape[0] in (5, 7),
    lambda x: x.shape == (5,), lambda x: not x.shape[0] % 3, lambda x: x.size == 5,
    lambda x: x.shape[0] == 5.0, lambda x: np.array(5) == x.shape[0],
    lambda x: x.shape[0] in np.array([5.0, 7.5, np.nan]),
])
def test_functions_may_compare_sizes(chosen):
    fun = jax.jit(lambda x: x * 100 if chosen(x) else x)
    with config.dynamic_shapes("auto"):
        for n in range(2, 9):
            np.testing.assert_array_equal(fun(ones(n)), ones(n) * (100 if chosen(ones(n)) else 1))
    assert fun.explain().buckets
    fun = jax.jit(lambda x, y: x * 100 if x.shape == y.shape else x)
    with config.dynamic_shapes("auto"):
        assert [fun(ones(n), ones(5))[0] for n in range(2, 7)] == [1, 1, 1, 100, 1]


@pytest.mark.parametrize(("fun", "reason"), [
    (lambda x: x * {5: 100}.get(x.shape[0], 1), "InconclusiveDimensionOperation: .*looked up"),
    (lambda x: x * 100 if x.shape[0] in {5, 7} else x, "looked up"),
    (lambda x: x * 100 if x.shape in {(5,)} else x, "looked up"),
])
def test_sizes_that_are_looked_up_are_not_padded(fun, reason):
    dynamic = jax.jit(fun)
    with config.dynamic_shapes("auto"):
        for n in range(2, 8):
            if n == 4:
                with pytest.warns(RetraceWarning, match=reason):
                    dynamic(ones(n))
            np.testing.assert_array_equal(dynamic(ones(n)), fun(ones(n)))


def int_sized(x):
    assert isinstance(x.shape[0], int)
    return x.sum()


def test_a_function_that_fails_with_symbolic_sizes_runs_for_each():
    fun = jax.jit(int_sized)
    with config.dynamic_shapes("auto"):
        for _ in range(2):
            assert [fun(ones(n)) for n in (1, 2)] == [1, 2]
            with pytest.warns(RetraceWarning, match="cannot run padded. AssertionError"):
                assert fun(ones(3)) == 3
            assert [fun(ones(n)) for n in (4, 5)] == [4, 5]
            jax.clear_caches()  # it is asked again


def test_what_is_known_of_sizes_is_bounded_and_goes_with_the_caches():
    fun = jax.jit(lambda x, k: x.sum() * k, static_argnums=1)
    with config.dynamic_shapes("auto"):
        for k in (2, 3):
            for n in (1, 2, 3):
                assert fun(ones(n), k) == n * k
        with jax.default_matmul_precision("highest"):  # it is traced to another program
            fun(ones(4), 2)
    known = fun._jit_spec.padded
    assert len(known) == 3
    known.capacity = 3
    with config.dynamic_shapes("auto"):
        fun(ones(1), 4)
    assert len(known) == 3
    jax.clear_caches()
    assert len(known) == 0
