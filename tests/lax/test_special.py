"""Special functions where they are hard: at zeros, poles and ends."""

import numpy as np
import pytest
from scipy import special

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax


def test_lgamma_vanishes_at_one_and_two_and_is_precise_beside():
    assert np.asarray(lax.lgamma(jnp.array([1.0, 2.0]))).tolist() == [0, 0]
    x = np.float32([1.001, 0.999, 1.1, 1.999, 2.001, 1.9])
    np.testing.assert_allclose(lax.lgamma(jnp.asarray(x)), special.gammaln(np.float64(x)),
                               rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("low", "high"), [
    (1e-3, 0.5), (0.5, 3), (3, 12), (12, 1e3), (1e3, 1e30), (-0.5, -1e-3), (-2, -0.5), (-30, -2),
])
def test_lgamma_against_scipy(dtype, low, high):
    rng = np.random.default_rng(0)
    x = np.sign(low) * np.exp(rng.uniform(*sorted(np.log(np.abs([low, high]))), 2000))
    x = x.astype(dtype)
    with jax.enable_x64(True):
        got = np.asarray(lax.lgamma(jnp.asarray(x)))
    assert got.dtype == dtype
    want = special.gammaln(np.float64(x))
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(got, want, rtol=8 * eps, atol=16 * eps)


def test_lgamma_at_poles_and_infinities():
    x = jnp.array([0.0, -0.0, -1.0, -7.0, -1e20, jnp.inf, -jnp.inf, jnp.nan])
    assert str(np.asarray(lax.lgamma(x)).tolist()) == "[inf, inf, inf, inf, inf, inf, inf, nan]"
    assert lax.lgamma(jnp.array(1.5, jnp.bfloat16)).dtype == jnp.bfloat16


def test_the_gamma_functions_agree_for_small_parameters():
    assert abs(float(lax.igammac(1e-20, 1e-20))) < 1e-7
    assert float(lax.igamma(0.0, 1e-20)) == 1


def test_lgamma_is_infinite_at_integers_where_stirlings_series_overflows():
    most = [float(jnp.finfo(d).min) for d in ("bfloat16", "float16", "float32")]
    assert np.isinf(lax.lgamma(jnp.array([-1e36, -1e38, *most]))).all()
    with jax.enable_x64(True):
        assert np.isinf(lax.lgamma(jnp.array([-1e306, np.finfo(np.float64).min]))).all()


def test_incomplete_gamma_functions_of_small_parameters_are_probabilities():
    """Their product of rounded factors may be the next number above 1."""
    a, x = jnp.meshgrid(jnp.logspace(-37, -5, 33), jnp.array([1e-37, 1e-7, 0.1, 0.5, 0.9]))
    assert float(lax.igamma(a, x).max()) <= 1
    assert float(lax.igammac(a, x).min()) >= 0
    assert not np.isnan(jax.scipy.stats.gamma.logsf(0.5, 1e-37))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lgamma_where_its_parts_meet(dtype):
    x = np.array([4.5, 9.5, -3.5, -8.5, 1.5, 2.5, -0.5], dtype)
    with jax.enable_x64(True):
        got = np.asarray(lax.lgamma(jnp.asarray(x)))
    np.testing.assert_allclose(got, special.gammaln(np.float64(x)), rtol=8 * np.finfo(dtype).eps)


def test_igamma_far_below_its_parameter_is_precise():
    a, x = np.float32(18.082216), np.float32(0.13973711)
    np.testing.assert_allclose(lax.igamma(a, x), special.gammainc(np.float64(a), np.float64(x)),
                               rtol=2e-5)


def test_derivatives_of_gamma_samples_are_of_strong_type():
    weak = jnp.broadcast_to(0.3, (2,))
    assert not lax.random_gamma_grad(weak, weak).weak_type


def test_all_derivatives_of_the_error_functions_vanish_at_infinity():
    for function in (lax.erf, lax.erfc):
        for _ in range(3):
            function = jax.grad(function)
            assert float(function(jnp.inf)) == float(function(-jnp.inf)) == 0
            assert np.isnan(function(jnp.nan))


@pytest.mark.parametrize("function", [lax.igamma, lax.igammac])
def test_second_derivatives_of_incomplete_gamma_functions_keep_weak_types(function):
    slope = jax.grad(function, 1)
    for argnum in (0, 1):
        assert jax.grad(slope, argnum)(2.0, 3.0).weak_type
    assert not jax.grad(slope, 1)(2.0, np.float32(3)).weak_type
    assert float(slope(2.0, jnp.inf)) == float(jax.grad(slope, 1)(2.0, jnp.inf)) == 0
