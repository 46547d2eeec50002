"""Distributions with parameters: their distribution functions, derivatives, and bad input."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import stats

import pyjx as jax
from pyjx import numpy as jnp
from pyjx import random
from pyjx.jaxlib_api import JAXLIB_VERSION
from pyjx.random.discrete import _stirling_rest

KEY = random.key(42)
N = (8000,)

CONTINUOUS = {
    "gamma": (lambda: random.gamma(KEY, 2.5, N), stats.gamma(2.5)),
    "gamma-small": (lambda: random.gamma(KEY, 0.3, N), stats.gamma(0.3)),
    "gamma-approximate": (lambda: random.gamma(KEY, 0.7, N, method="approximate"),
                          stats.gamma(0.7)),
    "loggamma": (lambda: jnp.exp(random.loggamma(KEY, 1.5, N)), stats.gamma(1.5)),
    "beta": (lambda: random.beta(KEY, 2.0, 0.5, N), stats.beta(2, 0.5)),
    "chisquare": (lambda: random.chisquare(KEY, 3.0, N), stats.chi2(3)),
    "f": (lambda: random.f(KEY, 3.0, 7.0, N), stats.f(3, 7)),
    "t": (lambda: random.t(KEY, 3.0, N), stats.t(3)),
    "generalized_normal": (lambda: random.generalized_normal(KEY, 1.5, N), stats.gennorm(1.5)),
    "lognormal": (lambda: random.lognormal(KEY, 0.5, N), stats.lognorm(0.5)),
    "maxwell": (lambda: random.maxwell(KEY, N), stats.maxwell()),
    "pareto": (lambda: random.pareto(KEY, 2.0, N), stats.pareto(2)),
    "rayleigh": (lambda: random.rayleigh(KEY, 2.0, N), stats.rayleigh(scale=2)),
    "triangular": (lambda: random.triangular(KEY, -1.0, 0.5, 4.0, N),
                   stats.triang(0.3, -1, 5)),
    "wald": (lambda: random.wald(KEY, 2.0, N), stats.invgauss(2)),
    "weibull_min": (lambda: random.weibull_min(KEY, 2.0, 1.5, N), stats.weibull_min(1.5, scale=2)),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name: str) -> None:
    sample, want = CONTINUOUS[name]
    assert stats.kstest(np.asarray(sample(), np.float64), want.cdf).pvalue > 1e-3


DISCRETE = {
    "poisson": (lambda: random.poisson(KEY, 3.0, N), stats.poisson(3)),
    "poisson-large": (lambda: random.poisson(KEY, 40.0, N), stats.poisson(40)),
    "poisson-approximate": (lambda: random.poisson(KEY, 9.0, N, method="approximate"),
                            stats.poisson(9)),
    "binomial": (lambda: random.binomial(KEY, 12, 0.3, N), stats.binom(12, 0.3)),
    "binomial-large": (lambda: random.binomial(KEY, 200, 0.7, N), stats.binom(200, 0.7)),
    "geometric": (lambda: random.geometric(KEY, 0.3, N), stats.geom(0.3)),
}


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete(name: str) -> None:
    sample, want = DISCRETE[name]
    x = np.asarray(sample(), np.int64)
    low, high = int(want.ppf(0.01)), int(want.ppf(0.99))
    values = np.arange(low, high + 1)
    observed = np.array([*[(x == v).sum() for v in values], (x < low).sum(), (x > high).sum()])
    expected = len(x) * np.array([*want.pmf(values), want.cdf(low - 1), want.sf(high)])
    kept = expected > 1
    rest = observed[kept] * expected[kept].sum() / observed[kept].sum()
    assert stats.chisquare(rest, expected[kept]).pvalue > 1e-3


# What JAX gives for the key of the seed 11.
@pytest.mark.parametrize("sample, want", [
    (lambda k: random.lognormal(k, jnp.array([0.5, 1.0, 2.5])), [0.6679195, 0.12488528, 4.53903]),
    (lambda k: random.lognormal(k, 0.5, (2,), "complex64"),
     [0.89183754 + 0.08862871j, 0.15099815 - 0.8025384j]),
    (lambda k: random.pareto(k, jnp.array([0.5, 1.0, 2.5])), [1.6014262, 1.0191044, 1.6819551]),
    (lambda k: random.rayleigh(k, jnp.array([0.5, 1.0, 2.5])), [0.8836523, 2.820199, 1.9944466]),
])
def test_figures(sample: Any, want: Any) -> None:
    np.testing.assert_allclose(sample(random.key(11)), want, rtol=1e-5)


@pytest.mark.parametrize("sample, want", [
    (lambda k: random.gamma(k, 2.5, (4,)), [2.36774921, 1.03779495, 0.63276452, 3.86515236]),
    (lambda k: random.beta(k, 2.0, 0.5, (4,)), [0.99414152, 0.93812376, 0.99538559, 0.99976379]),
    (lambda k: random.dirichlet(k, jnp.array([0.5, 1.0, 3.0])),
     [0.28113723, 0.10233574, 0.61652702]),
    (lambda k: random.t(k, 3.0, (4,)), [0.25338012, 1.84081066, 1.14949107, 2.73849344]),
    (lambda k: random.f(k, 3.0, 7.0, (4,)), [0.62224895, 0.41344142, 2.35123277, 1.27540469]),
    (lambda k: jax.vmap(lambda k: random.gamma(k, 2.5, (2,)))(random.split(k, 2)),
     [[1.69861972, 4.33048296], [1.48960911, 1.94460297]]),
])
def test_figures_of_loops_with_the_platforms_generator(sample: Any, want: Any) -> None:
    np.testing.assert_allclose(sample(random.key(11, impl="rbg")), want, rtol=1e-5)


# What JAX gives, to the last bit: sums are taken in float32, binomial numbers are drawn in the
# dtype of the parameters.
@pytest.mark.optimized  # to the last bit of the exponential that users have
@pytest.mark.skipif(JAXLIB_VERSION < (0, 10), reason="XLA rounded otherwise")
@pytest.mark.parametrize("sample, want", [
    (lambda k: random.dirichlet(k, jnp.array([0.5, 1.0, 3.0]), (2,), jnp.bfloat16),
     [[0.1630859375, 0.2294921875, 0.60546875], [0.019287109375, 0.515625, 0.46875]]),
    (lambda k: random.maxwell(k, (4,), jnp.bfloat16), [1.625, 2.03125, 0.95703125, 1.0859375]),
    (lambda k: random.double_sided_maxwell(k, 0.3, 2.0, (4,), jnp.bfloat16),
     [-2.671875, 3.796875, -4.4375, 1.703125]),
    (lambda k: random.ball(k, 3, shape=(1,), dtype=jnp.float16),
     [[0.76318359375, 0.0380859375, -0.0017938613891601562]]),
    (lambda k: random.f(k, jnp.bfloat16(3.7), jnp.bfloat16(5.3), (8,), jnp.bfloat16),
     [0.98046875, 1.4765625, 3.234375, 1.34375, 2.265625, 0.8046875, 0.66015625, 1.046875]),
    (lambda k: random.binomial(k, 20.0, 0.3, (8,), jnp.bfloat16), [5, 7, 11, 5, 9, 7, 4, 4]),
    (lambda k: random.binomial(k, 100.0, 0.6, (8,), jnp.float16),
     [62, 62, 60, 58, 66, 68, 65, 58]),
    (lambda k: random.gumbel(k, (8,), jnp.float16, mode="high")[:4],
     [0.92578125, 0.1986083984375, 0.55810546875, -0.268310546875]),
])
def test_figures_in_half_precision(sample: Any, want: Any) -> None:
    np.testing.assert_array_equal(np.asarray(sample(random.key(11)), np.float64), want)


def test_signs_as_booleans_are_true() -> None:
    signs = random.rademacher(KEY, (4,), bool)
    assert signs.dtype == np.bool_
    assert signs.all()


@pytest.mark.parametrize("sample", [
    lambda x: random.gamma(KEY, x), lambda x: random.beta(KEY, x, x),
    lambda x: random.t(KEY, x), lambda x: random.pareto(KEY, x),
    lambda x: random.binomial(KEY, 9, x), lambda x: random.dirichlet(KEY, x[None]),
    lambda x: random.triangular(KEY, 0.0, x, 1.0),
    lambda x: random.multinomial(KEY, 9, x[None]),
])
def test_the_default_dtype_is_the_default_float(sample: Any) -> None:
    assert sample(jnp.asarray(0.5, jnp.float16)).dtype == np.float32
    with jax.enable_x64(True):
        assert sample(jnp.asarray(0.5, jnp.float32)).dtype == np.float64


def test_exact_poisson_numbers_need_threefry() -> None:
    key = random.key(0, impl="rbg")
    with pytest.raises(NotImplementedError, match="only implemented for the threefry2x32 RNG"):
        random.poisson(key, 2.0, (3,))
    assert random.poisson(key, 2.0, (3,), method="approximate").shape == (3,)


def test_same_for_any_form_of_call() -> None:
    a = jnp.array([0.5, 2.0, 30.0])
    eager = random.gamma(KEY, a)
    np.testing.assert_array_equal(jax.jit(random.gamma)(KEY, a), eager)
    keys = random.split(KEY, 3)
    batched = jax.vmap(lambda k: random.poisson(k, a))(keys)
    for i in range(3):
        np.testing.assert_array_equal(batched[i], random.poisson(keys[i], a))


def test_gamma_derivative() -> None:
    """d x / d a keeps the value of the distribution function at x."""
    for a in (0.4, 2.0, 9.0):
        x = float(random.gamma(KEY, a))
        slope = jax.grad(lambda v: random.gamma(KEY, v))(a)
        h = 1e-4
        rise = (stats.gamma(a + h).cdf(x) - stats.gamma(a - h).cdf(x)) / (2 * h)
        np.testing.assert_allclose(slope, -rise / stats.gamma(a).pdf(x), rtol=1e-3)
        log_slope = jax.grad(lambda v: random.loggamma(KEY, v))(a)
        log_x = float(random.loggamma(KEY, a))
        rise = (stats.gamma(a + h).cdf(np.exp(log_x)) - stats.gamma(a - h).cdf(np.exp(log_x)))
        want = -rise / (2 * h) / stats.gamma(a).pdf(np.exp(log_x)) / np.exp(log_x)
        np.testing.assert_allclose(log_slope, want, rtol=1e-3)


def test_dirichlet() -> None:
    alpha = np.array([0.5, 1.0, 4.0])
    x = np.asarray(random.dirichlet(KEY, jnp.array(alpha), (4000,)))
    np.testing.assert_allclose(x.sum(-1), 1, rtol=1e-5)
    np.testing.assert_allclose(x.mean(0), alpha / alpha.sum(), atol=0.02)
    assert random.dirichlet(KEY, jnp.ones((2, 3))).shape == (2, 3)


def test_ball() -> None:
    for p in (1, 1.5, 2):
        x = np.asarray(random.ball(KEY, 2, p, (4000,)))
        radius = (np.abs(x) ** p).sum(-1) ** (1 / p)
        assert radius.max() <= 1
        assert stats.kstest(radius**2, stats.uniform.cdf).pvalue > 1e-3


def test_double_sided_maxwell() -> None:
    x = np.asarray(random.double_sided_maxwell(KEY, 1.0, 2.0, N))
    assert stats.kstest(np.abs(x - 1) / 2, stats.maxwell.cdf).pvalue > 1e-3
    assert abs((x > 1).mean() - 0.5) < 0.03


def test_binomial_of_endlessly_many_trials_ends() -> None:
    x = jax.random.binomial(jax.random.key(0), jnp.inf, jnp.array([0, 0.5, 1, 2, jnp.nan]))
    np.testing.assert_array_equal(x, [0, np.inf, np.inf, np.nan, np.nan])


def test_binomial_at_the_limits() -> None:
    nan, inf = np.nan, np.inf
    np.testing.assert_array_equal(random.binomial(KEY, 5.0, jnp.array([0.0, 1.0])), [0, 5])
    np.testing.assert_array_equal(
        random.binomial(KEY, jnp.array([nan, -1.0, inf, 0.0]), 0.3), [nan, nan, inf, 0])


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2"])
def test_binomial_ends_for_parameters_of_few_bits(dtype: str) -> None:
    x = random.binomial(random.key(7), jnp.array(5.0, dtype), jnp.array(0.4, dtype), (5,), dtype)
    assert x.tolist() == ([0, 3, 0, 0, 2] if dtype == "float8_e5m2" else [1, 3, 1, 1, 2])
    many = random.binomial(random.key(7), 200, 0.5, (400,), dtype)
    assert abs(float(many.astype(float).mean()) - 100) < 10


def test_multinomial() -> None:
    p = np.array([0.2, 0.3, 0.0, 0.5])
    x = np.asarray(random.multinomial(KEY, 50, jnp.array(p), shape=(2000,)))
    assert x.shape == (2000, 4)
    np.testing.assert_array_equal(x.sum(-1), 50)
    np.testing.assert_allclose(x.mean(0), 50 * p, atol=0.5)
    assert random.multinomial(KEY, 9, jnp.array(p), dtype=int).dtype == np.int32


@pytest.mark.parametrize("call, error, text", [
    (lambda: random.gamma(KEY, 2, dtype=int), ValueError, "`gamma` must be a float dtype"),
    (lambda: random.gamma(KEY, 2.0, method="z"), ValueError, "method argument to `gamma` must be"),
    (lambda: random.gamma(KEY, jnp.ones(3), (2,)), ValueError, "Incompatible shapes"),
    (lambda: random.gamma(KEY, jnp.ones(3), (1,)), ValueError, "must equal the shape argument"),
    (lambda: random.beta(KEY, jnp.ones(2), jnp.ones(3)), ValueError, "Incompatible shapes"),
    (lambda: random.dirichlet(KEY, 1.0), ValueError, "requires alpha.ndim >= 1"),
    (lambda: random.geometric(KEY, 0.5, dtype=float), ValueError, "must be an int dtype"),
    (lambda: random.poisson(KEY, 0.5, dtype=float), ValueError, "must be an int dtype"),
    (lambda: random.lognormal(KEY, dtype="float16"), jax.dtypes.TypePromotionError,
     "type float32 to float16"),
    (lambda: random.lognormal(KEY, dtype=int), ValueError, "must be a float or complex dtype"),
    (lambda: random.lognormal(KEY, 1j), jax.dtypes.TypePromotionError, "complex64 to float32"),
    (lambda: random.beta(KEY, jnp.asarray(1j), 2.0), jax.dtypes.TypePromotionError,
     "complex64 to float32"),
    (lambda: random.lognormal(KEY, jnp.ones(2), dtype="float16"), jax.dtypes.TypePromotionError,
     "cannot safely cast argument of type float32 to float16"),
    (lambda: random.ball(KEY, 3.0), TypeError, "cannot be interpreted as an integer"),
    (lambda: random.generalized_normal(KEY, jnp.ones(2), (2,)), ValueError, "a scalar p"),
])
def test_bad_input(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_permutations_of_ranges_have_one_axis():
    with pytest.raises(ValueError, match="out of"):
        random.permutation(random.key(0), 5, 1)


def test_parameters_broadcast_and_promote() -> None:
    x = random.weibull_min(KEY, jnp.ones((3, 1)), jnp.ones(2), dtype="float16")
    assert x.shape == (3, 2) and x.dtype == np.float32
    assert random.double_sided_maxwell(KEY, 1j, 2.0).dtype == np.complex64
    for sample in (random.rayleigh, random.t, random.pareto):
        with pytest.raises(jax.dtypes.TypePromotionError, match="cannot safely cast"):
            sample(KEY, jnp.ones(2, complex))


def test_multinomial_is_computed_in_the_dtype_of_its_parameters():
    with jax.enable_x64(True):
        counts = random.multinomial(random.key(0), 9.0, np.float32([0.2, 0.3, 0.5]))
        assert counts.dtype == np.float64 and counts.tolist() == [1, 1, 7]


def test_approximate_poisson_numbers_do_not_depend_on_the_means_dtype() -> None:
    means = np.array([0.5, 18.0, 90.0])

    def draw(dtype: Any, counts: Any = int) -> Any:
        means_ = jnp.asarray(means, dtype)
        return random.poisson(KEY, means_, dtype=counts, method="approximate").tolist()

    assert draw(jnp.bfloat16) == draw(jnp.float16) == draw(jnp.float32)
    with jax.enable_x64(True):
        assert draw(jnp.float16) == draw(jnp.float32) == draw(jnp.float64) == [0, 9, 92]
        assert draw(jnp.float16, jnp.int8) == draw(jnp.float32, jnp.int32) == [0, 20, 93]
        assert draw(jnp.float64, jnp.int8) == [0, 9, 92]


@pytest.mark.parametrize("dtype, want", [
    ("int4", [2, 7, 7, 7]), ("uint4", [2, 15, 15, 15]), ("int8", [2, 32, 52, 127]),
    ("int16", [2, 32, 52, 878]),
])
def test_poisson_numbers_stay_within_their_dtype(dtype: str, want: list[int]) -> None:
    means = jnp.array([1.5, 27.0, 60.0, 900.0])
    assert random.poisson(KEY, means, dtype=dtype).tolist() == want


def test_poisson_numbers_beyond_32_bits() -> None:
    with jax.enable_x64(True):
        counts = random.poisson(KEY, jnp.array([1e10, 1e15]))
    assert counts.tolist() == [10000068608, 999999986991104]


def test_the_approximate_method_computes_in_float32_at_least() -> None:
    for sample in (random.gamma, random.loggamma):
        wide = sample(KEY, 0.3, (64,), method="approximate")
        narrow = sample(KEY, 0.3, (64,), jnp.float16, method="approximate")
        assert narrow.dtype == np.float16
        assert (narrow == wide.astype(np.float16)).all()


def test_the_exponent_of_ball_keeps_its_precision() -> None:
    wide, narrow = [random.ball(KEY, 3, p, (64,), jnp.float16)
                    for p in (np.float32(1.3), np.float16(1.3))]
    assert wide.dtype == narrow.dtype == np.float16
    assert not (wide == narrow).all()


def test_multinomial_is_one_loop_for_any_number_of_outcomes() -> None:
    def size(outcomes: int) -> int:
        draw = jax.jit(lambda key, p: random.multinomial(key, 9, p))
        return len(draw.lower(KEY, jax.ShapeDtypeStruct((outcomes,), np.float32)).as_text())

    assert size(40) < 1.3 * size(3)
    assert random.multinomial(KEY, 9, jnp.ones(0)).shape == (0,)


def test_the_rest_of_stirlings_formula_is_jaxs() -> None:
    rest = _stirling_rest(jnp.array([8.0, 9.0, 10.0, 500.0]))
    assert rest[0] > rest[1]
    assert rest[2] == rest[3]
    assert abs(rest[1] - rest[3]) < 1e-6


def test_the_derivative_of_logarithms_of_gamma_numbers_that_underflow() -> None:
    a = 1e-3
    for seed in range(3):
        draw = partial(random.loggamma, random.key(seed))
        assert draw(a) < -100
        want = (draw(1.002 * a) - draw(0.998 * a)) / (0.004 * a)
        np.testing.assert_allclose(jax.grad(draw)(a), want, rtol=1e-2)


@pytest.mark.parametrize("draw", [
    random.bernoulli, random.beta, random.gamma, random.poisson, random.chisquare, random.rayleigh,
    random.binomial, random.geometric, random.lognormal, random.truncated_normal])
def test_a_list_as_parameter_is_named(draw: Any) -> None:
    others = (1.0,) * (draw in (random.beta, random.binomial, random.truncated_normal))
    with pytest.raises(TypeError, match=rf"^{draw.__name__} requires ndarray or scalar arguments, "
                                        r"got \[0\.5\] of type <class 'list'> at position 1\. "
                                        r"That is the argument \w+\. Make an array"):
        draw(random.key(0), [0.5], *others)


@pytest.mark.parametrize("a", [1e-30, 1e-20, 1e-5, 2.0])
def test_slopes_by_tiny_parameters_are_numbers(a: float) -> None:
    key = random.key(1)
    by_alpha = jax.grad(lambda v: random.dirichlet(key, v)[1])(jnp.array([a, 2.0]))
    assert np.isfinite(by_alpha).all()
    for draw in (random.gamma, random.loggamma, random.chisquare,
                 lambda key, a: random.beta(key, a, 2.0), lambda key, a: random.f(key, a, 2.0)):
        assert np.isfinite(jax.grad(partial(draw, key))(a))
