"""The bound on the memory of compiled programs."""

import gc
import threading

import numpy as np
import pytest

import pyjx as jax
from pyjx.runtime import programs

LIMIT = 3_000_000


@pytest.fixture(autouse=True)
def _limit():
    jax.config.update("jax_pyjx_programs_max_bytes", LIMIT)
    yield
    jax.config.update("jax_pyjx_programs_max_bytes", 4 << 30)


def test_programs_beyond_the_bound_go():
    f = jax.jit(lambda x: x * 2 + 1)
    kept = f.lower(np.ones(3)).compile()
    for _ in range(2):
        for n in range(1, 40):
            np.testing.assert_array_equal(f(np.ones(n, np.float32)), np.full(n, 3.0))
            assert programs.loaded_bytes() <= LIMIT
    assert kept(np.ones(3, np.float32)).tolist() == [3.0] * 3


def test_a_function_takes_its_programs_with_it():
    jax.clear_caches()
    gc.collect()
    before = programs.loaded_bytes()
    f = jax.jit(lambda x: x * 3 + 1)
    f(np.ones(3))
    jax.grad(f)(1.0)
    assert programs.loaded_bytes() > before
    del f
    gc.collect()
    assert programs.loaded_bytes() == before


def test_without_a_bound():
    jax.config.update("jax_pyjx_programs_max_bytes", -1)
    f = jax.jit(lambda x: x * 5 + 1)
    for n in range(1, 20):
        f(np.ones(n))
    assert programs.loaded_bytes() > LIMIT


def test_a_program_that_is_compiled_again_counts_once():
    f = jax.jit(lambda x: x * 11 + 1)
    f(np.ones(3))
    once = programs.loaded_bytes()
    for _ in range(3):
        jax.numpy.sin(np.ones(17, np.float32))
        jax.clear_caches()
        f(np.ones(3))
    gc.collect()
    assert programs.loaded_bytes() <= once + (1 << 19)


def test_threads():
    functions = [jax.jit(lambda x, k=k: x * k + 1) for k in range(4)]
    errors = []

    def work(k):
        try:
            for n in range(1, 12):
                f = functions[(k + n) % 4]
                np.testing.assert_array_equal(f(np.ones(n, np.float32)),
                                              np.full(n, (k + n) % 4 + 1.0))
                if n == 6:
                    jax.clear_caches()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    assert programs.loaded_bytes() <= LIMIT


def test_signatures_of_a_function_are_bounded(monkeypatch):
    monkeypatch.setattr(programs, "TRACES", 4)
    f = jax.jit(lambda x: x * 7)
    for n in range(10):
        jax.eval_shape(f, np.ones(n))
    assert len(f._jit_spec.traces) == 4
