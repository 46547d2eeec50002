"""The warning of large captured constants."""

import warnings

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp

BIG = jnp.ones(1000)
ROWS = np.ones((30, 30), np.float32)


def f(x):
    return x + BIG.sum() + ROWS


@pytest.fixture(autouse=True)
def _limits():
    jax.config.update("jax_captured_constants_warn_bytes", 1000)
    yield
    jax.config.update("jax_captured_constants_warn_bytes", 2000000000)
    jax.config.update("jax_captured_constants_report_frames", 0)


@pytest.mark.parametrize("use", [
    lambda: jax.jit(f)(1.0), lambda: jax.jit(f).lower(1.0), lambda: jax.jit(jax.jit(f))(1.0),
    lambda: jax.jit(jax.vmap(f))(np.ones(2)),
], ids=["call", "lower", "nested", "vmap"])
def test_large_constants_warn(use):
    jax.clear_caches()
    with pytest.warns(UserWarning, match=r"^A large amount of constants were captured during "
                                         r"lowering \(7\.60KB total\)") as caught:
        use()
    assert len(caught) == 1
    assert "JAX_CAPTURED_CONSTANTS_REPORT_FRAMES=-1" in str(caught[0].message)


def test_a_report_of_where_they_are_used():
    jax.config.update("jax_captured_constants_report_frames", 1)
    for fun in (f, jax.jit(f)):
        jax.clear_caches()
        with pytest.warns(UserWarning) as caught:
            jax.jit(lambda x, fun=fun: fun(x) * 2)(1.0)
        lines = str(caught[0].message).splitlines()
        assert lines[2] == "Largest 2 allocation(s):"
        assert lines[3].endswith("float32[1000], 4.00KB captured at:")
        first = f.__code__.co_firstlineno
        assert f"test_captured.py:{first + 1}:" in lines[4] and lines[4].endswith("(f)")
        assert "float32[30,30], 3.60KB" in lines[6]


def test_as_many_bytes_as_the_limit_warn():
    jax.clear_caches()
    jax.config.update("jax_captured_constants_warn_bytes", 7600)
    with pytest.warns(UserWarning, match="A large amount of constants"):
        jax.jit(f)(1.0)


@pytest.mark.parametrize("limit", [-1, 7601])
def test_smaller_ones_do_not(limit):
    jax.clear_caches()
    jax.config.update("jax_captured_constants_warn_bytes", limit)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jax.jit(f)(1.0)
        jax.jit(lambda x: x + np.float32(3))(1.0)
