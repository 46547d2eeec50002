"""Activation functions against their formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import nn

pytestmark = [pytest.mark.gpu, pytest.mark.smoke]

x = np.linspace(-4, 4, 33).astype(np.float32) + np.float32(0.01)


def _elu(x, alpha=1.0):
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


FORMULAS = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "sigmoid": special.expit,
    "softplus": lambda x: np.log1p(np.exp(x)),
    "soft_sign": lambda x: x / (abs(x) + 1),
    "silu": lambda x: x * special.expit(x),
    "swish": lambda x: x * special.expit(x),
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "log_sigmoid": special.log_expit,
    "elu": _elu,
    "celu": _elu,
    "selu": lambda x: 1.0507009873554805 * _elu(x, 1.6732632423543772),
    "leaky_relu": lambda x: np.where(x >= 0, x, 0.01 * x),
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "hard_sigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "hard_silu": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hard_swish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "gelu": lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))),
    "squareplus": lambda x: (x + np.sqrt(x * x + 4)) / 2,
    "sparse_plus": lambda x: np.where(x <= -1, 0, np.where(x >= 1, x, (x + 1) ** 2 / 4)),
    "sparse_sigmoid": lambda x: np.clip(x + 1, 0, 2) / 2,
    "tanh": np.tanh,
    "identity": lambda x: x,
}


@pytest.mark.parametrize("name", FORMULAS)
def test_formula_and_derivative(name):
    f, formula = getattr(nn, name), FORMULAS[name]
    np.testing.assert_allclose(f(x), formula(x), rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(jax.jit(f)(x), formula(x), rtol=2e-5, atol=1e-6)
    step = 1e-3
    wide = x.astype(np.float64)
    slope = (formula(wide + step) - formula(wide - step)) / (2 * step)
    got = jax.grad(lambda x: jnp.sum(f(x)))(x)
    np.testing.assert_allclose(got, slope, rtol=2e-3, atol=2e-3)
    half = jnp.asarray(x, jnp.bfloat16)
    assert f(half).dtype == jnp.bfloat16
    np.testing.assert_allclose(jax.vmap(f)(x), f(x), rtol=1e-6)


def test_derivatives_at_kinks():
    assert float(jax.grad(nn.relu)(0.0)) == 0
    assert float(jax.grad(nn.relu6)(6.0)) == 0
    assert float(jax.grad(nn.softplus)(0.0)) == 0.5
    assert np.isnan(nn.relu(np.float32(np.nan)))
    assert float(jax.grad(nn.elu)(-200.0)) == 0
    assert float(jax.grad(nn.elu)(200.0)) == 1


def test_options():
    exact = x / 2 * (1 + special.erf(x / math.sqrt(2)))
    np.testing.assert_allclose(nn.gelu(x, approximate=False), exact, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(nn.elu(x, 0.5), _elu(x, 0.5), rtol=1e-5)
    np.testing.assert_allclose(nn.celu(x, 2.0), np.maximum(x, 0) + 2 * np.expm1(
        np.minimum(x, 0) / 2), rtol=1e-5)
    np.testing.assert_allclose(nn.leaky_relu(x, 0.3), np.where(x >= 0, x, 0.3 * x), rtol=1e-5)
    np.testing.assert_allclose(nn.log1mexp(abs(x)), np.log(-np.expm1(-abs(x))), rtol=1e-4)
    np.testing.assert_allclose(nn.glu(x[:32]), x[:16] * special.expit(x[16:32]), rtol=1e-5)
    with pytest.raises(AssertionError, match="axis size must be divisible by 2"):
        nn.glu(x)
    assert nn.relu(jnp.array([-1, 2])).dtype == jnp.int32


def test_relu_stays_one_call_in_jaxprs():
    text = str(jax.make_jaxpr(nn.relu)(1.0))
    assert "custom_jvp_call[" in text
    assert "name=relu" in text


def test_gelu_has_the_precision_of_its_dtype():
    with jax.enable_x64(True):
        x = 0.7
        inner = np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))
        np.testing.assert_allclose(float(jax.nn.gelu(x)), x / 2 * (1 + inner), rtol=1e-14)


@pytest.mark.parametrize(("name", "x", "dtype"), [
    ("elu", 1, "float32"), ("celu", 1, "float32"), ("selu", 1, "float32"), ("relu6", 1, "float32"),
    ("hard_sigmoid", 1, "float32"), ("hard_silu", True, "float32"), ("sparse_plus", 1, "float32"),
    ("sparse_sigmoid", 1, "float32"), ("softplus", True, "float32"), ("relu", True, "int32"),
    ("hard_tanh", True, "int32"), ("soft_sign", True, "float32"),
])
def test_integers_become_numbers_of_weak_type(name, x, dtype):
    got = getattr(nn, name)(jnp.array([x], type(x) if x is True else "int32"))
    assert got.dtype == dtype and got.weak_type
    half = getattr(nn, name)(jnp.ones(1, "float16"))
    assert half.dtype == np.float16 and not half.weak_type


def test_gelu_is_strong_and_soft_sign_takes_complex_numbers():
    assert not nn.gelu(1.0).weak_type and not nn.gelu(1.0, approximate=False).weak_type
    assert complex(nn.soft_sign(jnp.array(1j))) == 0.5j
    assert complex(nn.hard_tanh(jnp.array(1j))) == 1j
    assert complex(jax.grad(lambda x: jnp.real(nn.relu6(x)))(1 + 0j)) == 1


def test_leaky_relu_of_complex_numbers():
    assert complex(nn.leaky_relu(jnp.array(-1.0 + 0j), 0.5)) == -0.5


@pytest.mark.parametrize("name", ["elu", "selu", "celu", "relu", "sparse_plus", "log1mexp"])
def test_activations_of_complex_numbers(name):
    x = jnp.array([1.0 + 0j, 0.5 + 0j])
    np.testing.assert_allclose(getattr(nn, name)(x), getattr(nn, name)(x.real), atol=1e-6)


def test_logistic_of_half_precision_agrees_with_jax():
    x = jnp.array([-3.0, 0.5, 2.0], jnp.bfloat16)
    want = [0.04736328125, 0.62109375, 0.8828125]
    np.testing.assert_array_equal(np.asarray(jax.lax.logistic(x), np.float32), want)


def test_softplus_has_the_sigmoid_as_derivative():
    x = np.array([-1000.0, -5.0, 0.0, 3.0, 1000.0, np.inf, -np.inf], np.float32)
    slope = jax.vmap(jax.grad(nn.softplus))(x)
    np.testing.assert_allclose(slope, special.expit(x), rtol=1e-6)


def test_types_of_booleans():
    mask = jnp.ones(2, bool)
    assert nn.mish(mask).weak_type and not nn.squareplus(mask).weak_type
    with jax.enable_x64(True):
        assert nn.mish(mask).dtype == "float64" and nn.squareplus(mask).dtype == "float32"
        assert nn.squareplus(mask, jnp.uint32(4)).dtype == "float64"


def test_squareplus_promotes_both_arguments():
    assert nn.squareplus(jnp.arange(2), jnp.bfloat16(4)).dtype == "bfloat16"
    assert nn.squareplus(jnp.bfloat16(1), jnp.float32(4)).dtype == "float32"
    with jax.enable_x64(True):
        assert nn.squareplus(jnp.arange(2), jnp.float32(4)).dtype == "float32"


def test_the_derivatives_of_log1mexp_do_not_overflow():
    twice = jax.vmap(jax.grad(jax.grad(jax.nn.log1mexp)))
    x = np.float32([0.5, 4, 30, 60, 80, 500])
    with np.errstate(over="ignore"):
        want = -np.exp(-np.float64(x)) / np.expm1(-np.float64(x)) ** 2
    np.testing.assert_allclose(twice(x), want, rtol=1e-5, atol=1e-40)
    assert jax.grad(jax.grad(jax.scipy.stats.gumbel_l.logcdf))(5.0) == 0


@pytest.mark.parametrize("name, slope", [
    ("tanh", lambda x: 4 * np.exp(-2 * abs(x)) / (1 + np.exp(-2 * abs(x))) ** 2),
    ("sigmoid", lambda x: np.exp(-abs(x)) / (1 + np.exp(-abs(x))) ** 2)])
def test_slopes_in_the_tails(name, slope):
    x = np.array([0, 1e-3, 3, 9, 12, 17, 30, 40], np.float32)
    x = np.concatenate([x, -x])
    f = getattr(jax.nn, name)
    np.testing.assert_allclose(jax.vmap(jax.grad(f))(x), slope(x.astype(float)), rtol=1e-5)
    for dtype, rtol in ((np.float32, 1e-5), (np.float64, 1e-13), ("float16", 1e-3),
                        ("bfloat16", 5e-3)):  # many numbers, by a series
        with jax.enable_x64():
            many = jnp.array(np.linspace(-7.5, 7.5, 400), dtype)
            many = jnp.concatenate([many, 5 * many]) if dtype != "float16" else many
            want = slope(np.asarray(many, np.float64))
            np.testing.assert_allclose(np.asarray(jax.grad(lambda x: f(x).sum())(many), float),
                                       want, rtol=rtol, atol=1e-6 if dtype == "float16" else 0)
            edges = jax.grad(lambda x: f(x).sum())(jnp.full(400, np.inf, dtype).at[::2].set(-1e4))
            np.testing.assert_array_equal(edges, 0)
    one = jnp.array([np.inf, -np.inf])
    for order in range(3):  # odd and even ones, at 0 and where an exponential is 0
        f = jax.grad(f)
        np.testing.assert_array_equal(jax.vmap(f)(one), [0, 0])
        assert np.isfinite(jax.vmap(f)(x)).all()
        if order == 1:
            np.testing.assert_allclose(f(0.0), 0, atol=1e-7)
    z = jnp.array(0.3 + 0.2j)
    near = (getattr(jax.nn, name)(z + 1e-3) - getattr(jax.nn, name)(z - 1e-3)) / 2e-3
    np.testing.assert_allclose(jax.grad(getattr(jax.nn, name), holomorphic=True)(z), near,
                               rtol=1e-3)


def test_slopes_of_soft_sign_far_out():
    x = np.array([0, 3, 1e3, 1e6, 3e7, np.inf], np.float32)
    for far in (x, -x):
        slopes = jax.vmap(jax.grad(nn.soft_sign))(far)
        np.testing.assert_allclose(slopes, 1 / (1 + x.astype(float)) ** 2, rtol=1e-6)
    assert float(jax.grad(jax.grad(nn.soft_sign))(1.0)) == -0.25


@pytest.mark.parametrize("name, exponentials", [
    ("tanh", 0), ("sigmoid", 1), ("gelu", 0), ("silu", 1), ("glu", 1)])
def test_slopes_take_no_exponential_of_their_own(name, exponentials):
    f = getattr(jax.nn, name)
    both = jax.jit(lambda x, ct: (f(x), jax.vjp(f, x)[1](ct)))
    x = jnp.ones(40_000)
    text = both.lower(x, f(x)).compile().as_text()
    assert text.count(" exponential(") == exponentials
    if not exponentials:
        slopes = jax.jit(jax.grad(lambda x: f(x).sum())).lower(x).as_text()
        assert "stablehlo.exponential" not in slopes


def test_layers_of_sigmoids_keep_two_arrays_each():
    def loss(ws, x):
        for w in ws:
            x = x + jax.nn.sigmoid(x @ w)
        return (x**2).mean()

    ws, x = [jnp.ones((128, 128))] * 12, jnp.ones((512, 128))
    compiled = jax.jit(jax.grad(loss)).lower(ws, x).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 26 * x.nbytes


@pytest.mark.parametrize("function", [jax.nn.softplus, jax.nn.log_sigmoid, jax.nn.mish])
def test_logarithms_of_sums_with_one_ask_nothing(function):
    text = jax.jit(function).lower(jnp.float32(0.5)).as_text()
    assert [text.count(f"stablehlo.{op}") for op in ("is_finite", "and", "compare")] == [0, 0, 0]
    assert jax.grad(jax.grad(jax.nn.softplus))(0.0) == 0.25


@pytest.mark.parametrize("sharding", ["x", 0, ()])
def test_what_is_no_sharding_is_refused(sharding: object) -> None:
    with pytest.raises(TypeError, match=r"argument of jax\.nn\.one_hot only"):
        nn.one_hot(jnp.arange(2), 3, out_sharding=sharding)
    with pytest.raises(TypeError, match="argument of reduce only"):
        jax.lax.reduce(jnp.arange(2), 0, jax.lax.add, (0,), out_sharding=sharding)
