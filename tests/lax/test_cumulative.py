"""Cumulative reductions: errors, precision, extreme values, the lowering for accelerators."""

from __future__ import annotations

import numpy as np
import pytest

import pyjx as jax
from pyjx import lax

X = np.random.default_rng(0).standard_normal((5, 7)).astype(np.float32)
ALL = [lax.cumsum, lax.cumprod, lax.cummax, lax.cummin, lax.cumlogsumexp]


@pytest.mark.parametrize("f", ALL)
def test_arguments_are_checked(f):
    with pytest.raises(ValueError, match="axis 2 is out of bounds"):
        f(X, 2)
    with pytest.raises(ValueError, match="do not allow negative axes"):
        f(X, -1)
    with pytest.raises(TypeError, match=f"{f.__name__} does not accept dtype bool"):
        f(X > 0)


def test_a_long_sum_keeps_its_precision():
    x = np.full(100_000, 0.1, np.float32)
    want = np.cumsum(x.astype(np.float64))
    np.testing.assert_allclose(lax.cumsum(x), want, rtol=1e-6)


@pytest.mark.parametrize(("dtype", "atol"),
                         [("float32", 2e-6), ("float16", 4e-3), ("bfloat16", 0.02)])
def test_logarithms_of_long_sums_keep_their_precision(dtype, atol):
    x = jax.numpy.asarray(np.random.default_rng(0).normal(size=1000)).astype(dtype)
    want = np.logaddexp.accumulate(np.asarray(x.astype("float32"), np.float64))
    np.testing.assert_allclose(lax.cumlogsumexp(x).astype("float32"), want, rtol=0, atol=atol)


def test_infinities():
    far = np.array([-np.inf, -1000, -1000, 3e38, -3e38], np.float32)
    want = [-np.inf, -1000, np.logaddexp(-1000, -1000), 3e38, 3e38]
    np.testing.assert_allclose(lax.cumlogsumexp(far), want, rtol=1e-6)
    x = np.array([-np.inf, -np.inf, 0, np.inf, 1], np.float32)
    assert lax.cumlogsumexp(x).tolist() == [-np.inf, -np.inf, 0, np.inf, np.inf]
    assert lax.cumsum(x[2:]).tolist() == [0, np.inf, np.inf]
    grad = jax.grad(lambda x: lax.cumlogsumexp(x)[2])(x)
    assert grad.tolist() == [0, 0, 1, 0, 0]


def test_nan_stays():
    x = np.array([1, np.nan, 2], np.float32)
    for f in ALL:
        assert np.isnan(f(x)).tolist() == [False, True, True]


def test_derivatives_at_ties_and_zeros():
    x = np.array([2, 2, 1], np.float32)
    jacobian = jax.jacrev(lax.cummax)(x)
    assert jacobian.tolist() == [[1, 0, 0], [0.5, 0.5, 0], [0.5, 0.5, 0]]
    jacobian = jax.jacfwd(lax.cumprod)(np.array([3, 0, 2], np.float32))
    assert jacobian.tolist() == [[1, 0, 0], [0, 3, 0], [0, 6, 0]]


@pytest.mark.parametrize("f", ALL)
@pytest.mark.parametrize("reverse", [False, True])
def test_doubling_equals_the_loop(f, reverse):
    """The lowering for other platforms, run here."""
    from pyjx.runtime import compile as compiler
    from pyjx.runtime.lower import lower_closed

    def loss(x):
        return jax.jvp(lambda x: f(x, 1, reverse=reverse), (x,), (x,))

    closed = jax.make_jaxpr(loss)(X)
    text = lower_closed(closed, "f", platform="cuda").text
    assert "while" not in text
    device = jax.devices("cpu")[0]
    loaded = compiler.compile(text, devices=(device,), compiler_options=None)
    operand = jax.device_put(X, device)
    for shards, want in zip(loaded.execute_sharded([operand])
                            .disassemble_into_single_device_arrays(), loss(X), strict=True):
        np.testing.assert_allclose(np.asarray(shards[0]), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("fun, want", [(lax.cumprod, [3, 1]), (lax.cummax, [1, 1])])
def test_negative_axes_under_grad(fun, want):
    got = jax.grad(lambda x: fun(x, -1).sum())(np.array([1.0, 2.0], np.float32))
    assert got.tolist() == want


@pytest.mark.parametrize("fun", ALL)
def test_the_axis_is_checked_before_the_dtype(fun):
    with pytest.raises(ValueError, match="axis 0 is out of bounds"):
        fun(np.array(True), 0)


@pytest.mark.parametrize("reverse", [False, True])
def test_the_tangent_of_a_product_that_begins_with_infinity(reverse):
    x = np.float32([np.inf, 2, 3])
    x = x[::-1] if reverse else x
    _, got = jax.jvp(lambda x: lax.cumprod(x, reverse=reverse), (x,), (np.ones_like(x),))
    assert (got[::-1] if reverse else got).tolist() == [1, np.inf, np.inf]


@pytest.mark.parametrize("f", ALL)
@pytest.mark.parametrize("reverse", [False, True])
def test_long_vectors(f, reverse):
    """Several elements are taken in an iteration; what is left of them comes first."""
    x = np.random.default_rng(3).uniform(0.9, 1.1, 107).astype(np.float32)
    whole = f(x[:, None].repeat(2, 1), reverse=reverse)
    assert jax.jit(lambda x: f(x, reverse=reverse)).lower(x).as_text().count("dynamic_slice") == (
        33 if f is lax.cumlogsumexp else 11)  # of the greatest, and of the sums and their factors
    np.testing.assert_array_equal(f(x, reverse=reverse), whole[:, 0])
    _, got = jax.jvp(lambda x: f(x, reverse=reverse), (x,), (x,))
    _, want = jax.jvp(lambda x: f(x, 1, reverse=reverse), (x[None].repeat(2, 0),) * 1,
                      (x[None].repeat(2, 0),))
    np.testing.assert_allclose(got, want[0], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_logs_of_sums_stay_infinite(dtype):
    x = np.array([1, 88, np.inf, -np.inf, np.inf], dtype)
    np.testing.assert_array_equal(lax.cumlogsumexp(x), [1, 88, np.inf, np.inf, np.inf])
    np.testing.assert_allclose(lax.cumlogsumexp(np.array([-np.inf, 1, 2], dtype)),
                               [-np.inf, 1, 2.3132617], rtol=1e-6)


@pytest.mark.parametrize("shape", [(1,), (3, 1), (0, 4)])
def test_nothing_is_written_where_nothing_is_combined(shape):
    traced = jax.jit(lambda x: lax.cumsum(x, len(shape) - 1)).trace(np.ones(shape, np.float32))
    assert "stablehlo" not in traced.lower(lowering_platforms=("tpu",)).as_text()
