"""Samplers: the numbers that JAX gives for the same key, their distributions, and bad input."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from scipy import stats

import pyjx as jax
from pyjx import jaxlib_api, random
from pyjx import numpy as jnp

KEY = random.key(42)


# What JAX gives for the key of the seed 42.
FIGURES: list[tuple[Any, Any]] = [
    (lambda k: random.uniform(k, (3,)), [0.48870957, 0.6797972, 0.6162715]),
    (lambda k: random.uniform(k, (2,), "bfloat16"), [0.6328125, 0.84375]),
    (lambda k: random.uniform(k, (2,), "float16", -1.0, 3.0), [-0.6953125, -0.23828125]),
    (lambda k: random.normal(k, (3,)), [-0.028304616, 0.46713185, 0.29570296]),
    (lambda k: random.normal(k, (2,), "complex64"),
     [0.05368746 + 0.42833984j, -0.34389618 + 0.5650095j]),
    (lambda k: random.randint(k, (5,), 0, 100), [44, 14, 71, 69, 9]),
    (lambda k: random.randint(k, (5,), -100, 100, "int8"), [-56, 14, -29, 69, 9]),
    (lambda k: random.permutation(k, 8), [7, 4, 2, 5, 3, 6, 0, 1]),
    (lambda k: random.bernoulli(k, 0.3, (3,)), [False, False, False]),
    (lambda k: random.exponential(k, (3,)), [0.6708175, 1.1388006, 0.95782]),
    (lambda k: random.gumbel(k, (3,)), [0.3340934, 0.95201945, 0.72553056]),
    (lambda k: random.gumbel(k, (3,), mode="high"), [0.399258, -0.12997562, 0.043095414]),
    (lambda k: random.laplace(k, (3,)), [0.022839652, -0.44565356, -0.2646729]),
    (lambda k: random.logistic(k, (3,)), [-0.045169413, 0.7528398, 0.47375232]),
    (lambda k: random.cauchy(k, (3,)), [-0.03548463, 0.6337261, 0.38244057]),
    (lambda k: random.truncated_normal(k, -1.0, 2.0, (3,)), [0.14770006, 0.5684449, 0.4210255]),
    (lambda k: random.rademacher(k, (6,)), [1, -1, -1, -1, 1, -1]),
    (lambda k: random.categorical(k, jnp.arange(4.0), shape=(3,)), [3, 3, 3]),
    (lambda k: random.choice(k, 10, (4,), replace=False), [7, 4, 2, 5]),
    (lambda k: random.choice(k, 10, (4,)), [4, 4, 1, 9]),
    (lambda k: random.choice(k, 5, (4,), p=jnp.array([0.1, 0.2, 0.3, 0.2, 0.2])), [2, 2, 2, 2]),
    (lambda k: random.bits(k, (2,), "uint16"), [5026, 12505]),
]


@pytest.mark.parametrize("sampler, want", FIGURES)
def test_figures(sampler: Any, want: Any) -> None:
    got = np.asarray(sampler(KEY))
    np.testing.assert_allclose(got.astype(np.complex128), want, rtol=2e-6)


@pytest.mark.parametrize("sampler, want", FIGURES[:6])
def test_same_under_jit_and_raw(sampler: Any, want: Any) -> None:
    raw = random.PRNGKey(42)
    eager = np.asarray(sampler(KEY))
    for got in (sampler(raw), jax.jit(sampler)(KEY), jax.jit(sampler)(raw)):
        np.testing.assert_allclose(np.asarray(got).astype(np.complex128), eager, rtol=2e-6)


FIGURES_IN_SEQUENCE: list[tuple[Any, Any]] = [
    (lambda k: random.bits(k, (3,)), [2465931498, 430176367, 255383827]),
    (lambda k: random.bits(k, (5,), "uint8"), [45, 179, 215, 3, 244]),
    (lambda k: random.bits(k, (5,), "uint16"), [8426, 37627, 63599, 6563, 55571]),
    (lambda k: random.normal(k, (3,)), [0.18693547, -1.2806505, -1.5593132]),
    (lambda k: random.permutation(k, 8), [6, 0, 3, 7, 2, 5, 4, 1]),
    (lambda k: random.key_data(random.split(k, 3)),
     [[3134548294, 3733159049], [3746501087, 894150801], [801545058, 2363201431]]),
]


@pytest.mark.parametrize("sampler, want", FIGURES_IN_SEQUENCE)
def test_not_partitionable(sampler: Any, want: Any) -> None:
    with jax.threefry_partitionable(False):
        np.testing.assert_allclose(np.asarray(sampler(KEY)), want, rtol=2e-6)


@pytest.mark.parametrize("sampler, cdf", [
    (lambda k, n: random.uniform(k, n, minval=-2.0, maxval=3.0), stats.uniform(-2, 5).cdf),
    (random.normal, stats.norm.cdf),
    (random.exponential, stats.expon.cdf),
    (random.gumbel, stats.gumbel_r.cdf),
    (lambda k, n: random.gumbel(k, n, mode="high"), stats.gumbel_r.cdf),
    (random.laplace, stats.laplace.cdf),
    (random.logistic, stats.logistic.cdf),
    (random.cauchy, stats.cauchy.cdf),
    (lambda k, n: random.truncated_normal(k, -1.0, 2.0, n), stats.truncnorm(-1, 2).cdf),
])
def test_distribution(sampler: Any, cdf: Any) -> None:
    x = np.asarray(sampler(random.key(7), (10_000,)), np.float64)
    assert stats.kstest(x, cdf).pvalue > 1e-3


def test_randint_is_uniform_and_within_bounds() -> None:
    x = np.asarray(random.randint(random.key(3), (12_000,), -3, 3))
    counts = np.bincount(x + 3, minlength=6)
    assert len(counts) == 6
    assert stats.chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_randint_reaches_both_ends(dtype: str) -> None:
    info = np.iinfo(dtype)
    if info.bits < 32:
        x = np.asarray(random.randint(KEY, (1 << 20,), int(info.min), int(info.max) + 1, dtype))
        assert (x.min(), x.max()) == (info.min, info.max)
    assert random.randint(KEY, (4,), 5, 5, dtype).tolist() == [5] * 4


# What JAX gives for the key of the seed 42: whose probabilities are added in another order draws
# some neighbours instead.
@pytest.mark.parametrize("p, count, total", [
    (jnp.full(3000, 1 / 3000), 100000, 150080108),
    (jnp.array([0.1, 0.2, 0.3, 0.1, 0.3], "float16"), 20000, 46086),
])
def test_choice_adds_probabilities_as_jax_does(p: Any, count: int, total: int) -> None:
    assert random.choice(KEY, len(p), (count,), p=p).sum() == total


# What JAX gives for the key of the seed 42: bounds that are no integers are so in the default
# integer dtype, whose numbers may lie beyond the dtype's own.
@pytest.mark.parametrize("dtype, low, high, want", [
    ("int2", 0.5, 7.9, [0, 0, 1, 1, 1, 1]),
    ("int8", 0, 300.5, [68, 18, 55, 65, 13, 107]),
    ("uint32", 0, 5e9, [977810629, 1236381715, 780371127, 1127988417, 475579021, 870292843]),
])
def test_randint_of_bounds_that_are_no_integers(dtype: str, low: Any, high: Any, want: Any) -> None:
    assert random.randint(KEY, (6,), low, high, dtype).tolist() == want
    assert random.randint(KEY, (6,), low, jnp.float32(high), dtype).tolist() == want


def test_randint_bounds_broadcast() -> None:
    x = random.randint(KEY, (50, 3), jnp.arange(3), jnp.arange(3) + 1)
    np.testing.assert_array_equal(x, np.broadcast_to(np.arange(3), (50, 3)))


def test_bernoulli_with_small_probability() -> None:
    p = 1e-9
    assert not bool(random.bernoulli(KEY, p, (1000,), mode="high").any())
    x = np.asarray(random.bernoulli(KEY, jnp.array([[0.1], [0.9]]), (2, 5000)))
    np.testing.assert_allclose(x.mean(1), [0.1, 0.9], atol=0.03)


def test_categorical_follows_logits() -> None:
    p = np.array([0.1, 0.2, 0.7], np.float32)
    x = np.asarray(random.categorical(KEY, jnp.log(p), shape=(20_000,)))
    assert stats.chisquare(np.bincount(x), 20_000 * p / p.sum()).pvalue > 1e-3
    assert random.categorical(KEY, jnp.zeros((4, 3)), axis=0).shape == (3,)
    assert random.categorical(KEY, jnp.zeros((4, 3)), shape=(2, 4)).shape == (2, 4)
    without = np.asarray(random.categorical(KEY, jnp.zeros((2, 5)), shape=(5, 2), replace=False))
    np.testing.assert_array_equal(np.sort(without, 0), np.repeat(np.arange(5)[:, None], 2, 1))


def test_permutation_of_arrays() -> None:
    x = jnp.arange(12).reshape(3, 4)
    rows = np.asarray(random.permutation(KEY, x))
    assert sorted(map(tuple, rows)) == sorted(map(tuple, np.asarray(x)))
    columns = np.asarray(random.permutation(KEY, x, axis=1))
    assert sorted(map(tuple, columns.T)) == sorted(map(tuple, np.asarray(x).T))
    each = np.asarray(random.permutation(KEY, x, axis=1, independent=True))
    np.testing.assert_array_equal(np.sort(each, 1), x)
    keys = random.split(KEY, 5)
    assert random.permutation(KEY, keys).shape == (5,)


def test_numbers_stand_for_ranges() -> None:
    for number in (np.int8(5), jnp.uint8(5), np.int64(5)):
        drawn = random.permutation(KEY, number)
        assert drawn.dtype == jnp.arange(5).dtype
        np.testing.assert_array_equal(drawn, random.permutation(KEY, 5))
    np.testing.assert_array_equal(random.choice(KEY, 5.7, (4,)), random.choice(KEY, 5, (4,)))
    assert random.choice(KEY, True, (3,)).tolist() == [0, 0, 0]


def test_modes_matter_where_they_are_used() -> None:
    assert random.choice(KEY, 5, mode="none") == random.choice(KEY, 5)
    with pytest.raises(ValueError, match="Must provide valid mode for choice"):
        random.choice(KEY, 5, (2,), False, jnp.ones(5), mode="none")


def test_choice_shapes() -> None:
    a = jnp.arange(12.0).reshape(3, 4)
    assert random.choice(KEY, a, (2, 5), axis=1).shape == (3, 2, 5)
    assert random.choice(KEY, a).shape == (4,)
    assert random.choice(KEY, 5, (0,)).shape == (0,)
    assert random.choice(KEY, a, (2, 0), axis=1).shape == (2, 0)
    keys = random.choice(KEY, random.split(KEY, 3), (0,))
    assert (keys.shape, keys.dtype) == ((0,), KEY.dtype)
    p = jnp.array([0.0, 0.5, 0.0, 0.5])
    assert sorted(random.choice(KEY, 4, (2,), replace=False, p=p).tolist()) == [1, 3]


def test_vmap_is_a_loop() -> None:
    keys = random.split(KEY, 4)
    for fun in (random.normal, lambda k: random.randint(k, (2,), 0, 9),
                lambda k: random.permutation(k, 6), lambda k: random.key_data(random.split(k))):
        batched = jax.vmap(fun)(keys)
        for i in range(4):
            np.testing.assert_array_equal(batched[i], fun(keys[i]))
    scales = jax.vmap(lambda s: random.uniform(KEY, (3,), maxval=s))(jnp.arange(1.0, 3.0))
    np.testing.assert_allclose(scales[1], 2 * scales[0], rtol=1e-6)


def test_gradients_through_samples() -> None:
    noise = random.normal(KEY, (3,))
    grad = jax.grad(lambda s: (s * random.normal(KEY, (3,))).sum())(2.0)
    np.testing.assert_allclose(grad, noise.sum(), rtol=1e-6)
    low = jax.grad(lambda a: random.uniform(KEY, (3,), minval=a).sum())(-1.0)
    u = (np.asarray(random.uniform(KEY, (3,), minval=-1.0)) + 1) / 2
    np.testing.assert_allclose(low, (1 - u).sum(), rtol=1e-5)


@pytest.mark.parametrize(("shape", "low", "high", "result"), [
    ((), (1,), (1,), (1,)), ((), (1, 1), (), (1, 1)), ((), (), (1, 1), ()),
    ((2,), (), (1, 2), (2,)), ((2,), (2,), (1, 1, 1), (2,)), ((2, 3), (3,), (1, 2, 1), (2, 3)),
    ((0,), (), (1, 0), (0,)),
])
def test_bounds_may_have_more_axes_of_size_one(
        shape: tuple[int, ...], low: tuple[int, ...], high: tuple[int, ...],
        result: tuple[int, ...]) -> None:
    def draw(k: Any, low: Any, high: Any) -> Any:
        return random.uniform(k, shape, minval=low, maxval=high)

    low_bounds, high_bounds = jnp.full(low, 0.25), jnp.full(high, 2.0)
    plain = random.uniform(KEY, shape, minval=0.25, maxval=2.0)
    drawn = draw(KEY, low_bounds, high_bounds)
    assert drawn.shape == result
    np.testing.assert_array_equal(drawn, np.reshape(plain, result))
    mapped = jax.vmap(draw)(KEY[None], low_bounds[None], high_bounds[None])
    np.testing.assert_array_equal(mapped, drawn[None])


@pytest.mark.parametrize("call, error, text", [
    (lambda: random.normal(KEY, (2,), int), ValueError,
     "dtype argument to `normal` must be a float or complex dtype, got int32"),
    (lambda: random.uniform(KEY, (2,), "complex64"), ValueError,
     "dtype argument to `uniform` must be a float dtype, got complex64"),
    (lambda: random.randint(KEY, (2,), 0, 5, float), TypeError,
     "randint only accepts integer dtypes, got float32"),
    (lambda: random.randint(KEY, (2,), jnp.zeros(3, int), 5), ValueError,
     "Incompatible shapes for broadcasting"),
    (lambda: random.bits(KEY, (2,), float), ValueError,
     "dtype argument to `bits` must be an unsigned int dtype, got float32"),
    (lambda: random.normal(KEY, (2,), "float4_e2m1fn"), TypeError,
     "uniform only accepts 8-, 16-, 32-, or 64-bit dtypes"),
    (lambda: random.normal(random.split(KEY)), ValueError,
     r"normal accepts a single key, but was given a key array of shape \(2,\) != \(\)"),
    (lambda: random.normal(random.split(random.PRNGKey(0))), ValueError,
     r"but was given a key array of shape \(2, 2\) != \(\). Use jax.vmap for batching"),
    (lambda: random.normal(None), TypeError, "unexpected PRNG key type <class 'NoneType'>"),
    (lambda: random.normal(3), TypeError, "expected key_data to have ndim, shape, and dtype"),
    (lambda: random.normal(jnp.zeros(2)), TypeError, "expected key_data.dtype = uint32"),
    (lambda: random.bernoulli(KEY, 1), TypeError, "`p` must have a floating dtype, got int32"),
    (lambda: random.bernoulli(KEY, mode="x"), ValueError, "got mode='x'"),
    (lambda: random.gumbel(KEY, mode="z"), ValueError, "Must provide valid mode for gumbel"),
    (lambda: random.choice(KEY, 0), ValueError, "a must be greater than 0"),
    (lambda: random.choice(KEY, 5, (6,), replace=False), ValueError,
     r"Cannot take a larger sample \(size 6\) than population \(size 5\)"),
    (lambda: random.choice(KEY, 5, p=jnp.ones(3)), ValueError, "p must be None or a 1D vector"),
    (lambda: random.choice(KEY, 5, 3), TypeError, "must be a sequence, got 3"),
    (lambda: random.choice(KEY, 5j), TypeError, "a scalar of dtype complex64"),
    (lambda: random.categorical(KEY, 1.0), IndexError, "axis -1 is out of bounds"),
    (lambda: random.choice(KEY, [1, 2]), TypeError, "choice requires ndarray or scalar"),
    (lambda: random.permutation(KEY, 2.5), TypeError, "x must be an integer or at least"),
    (lambda: random.permutation(KEY, jnp.ones((2, 3)), axis=2), ValueError, "out of bounds"),
    (lambda: random.uniform(KEY, (-1,)), TypeError, "uniform shape must have every element be non"),
    (lambda: random.normal(KEY, -1), TypeError, "normal shape must have every element be nonneg"),
    (lambda: random.gamma(KEY, 2.0, (2, -1)), TypeError, "gamma shape must have every element be"),
    (lambda: random.dirichlet(KEY, jnp.ones(2), (-1,)), TypeError, "dirichlet shape must have"),
    (lambda: random.uniform(KEY, (2,), minval=jnp.zeros(3)), TypeError,
     r"uniform got incompatible shapes for broadcasting: \(2,\), \(3,\)"),
    (lambda: random.uniform(KEY, (2,), minval=jnp.zeros((1, 2))), TypeError,
     r"uniform got incompatible shapes for broadcasting: \(2,\), \(1, 2\)"),
    (lambda: random.uniform(KEY, (1, 2), maxval=jnp.ones((2, 2))), ValueError,
     r"uniform: Incompatible shapes for broadcasting: shapes=\[\(1, 2\), \(2, 2\)\]"),
    (lambda: random.uniform(KEY, (), minval=jnp.zeros(2)), ValueError, r"shapes=\[\(\), \(2,\)\]"),
    (lambda: random.uniform(KEY, (2,), maxval=jnp.ones((2, 1))), ValueError, r"shapes=\[\(2,\), "),
    (lambda: random.beta(KEY, jnp.ones(2), jnp.ones(3)), ValueError,
     r"beta: Incompatible shapes for broadcasting: shapes=\[\(2,\), \(3,\)\], those of the param"),
    (lambda: random.beta(KEY, jnp.ones(2), jnp.ones(3), (4,)), ValueError,
     r"broadcasting: shapes=\[\(4,\), \(2,\), \(3,\)\], those of the result"),
    (lambda: random.multivariate_normal(KEY, jnp.ones((2, 3)), jnp.ones((4, 3, 3))), ValueError,
     r"Incompatible shapes for broadcasting: shapes=\[\(2,\), \(4,\)\]"),
    (lambda: random.multivariate_normal(KEY, jnp.ones((2, 3)), jnp.ones((2, 3, 3)), (3,)),
     ValueError, r"Incompatible shapes for broadcasting: shapes=\[\(3,\), \(2,\), \(2,\)\]"),
    (lambda: random.poisson(KEY, jnp.ones(2), (3,)), ValueError,
     r"poisson: Incompatible shapes for broadcasting: shapes=\[\(3,\), \(2,\)"),
    (lambda: random.categorical(KEY, jnp.ones((2, 3)), shape=(3,)), ValueError,
     "categorical: shape must broadcast"),
    (lambda: random.uniform(KEY, (2.0,)), TypeError, "Shapes must be 1D sequences"),
    (lambda: random.categorical(KEY, jnp.ones(3), shape=(4,), replace=False), ValueError,
     "cannot exceed number of categories"),
])
def test_bad_input(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize(("draw", "given", "said"), [
    (random.bernoulli, (), " p. The order of the arguments is bernoulli(key, p, shape, mode)"),
    (random.poisson, (), " lam. The order of the arguments is poisson(key, lam, shape, dtype)"),
    (random.gamma, (), " a. The order of the arguments is gamma(key, a, shape, dtype)"),
    (random.beta, (2.0,), " b. The order of the arguments is beta(key, a, b, shape, dtype)"),
    (random.multinomial, (2.0,), " p. The order of the arguments is multinomial(key, n, p)"),
    (random.weibull_min, (2.0,), "weibull_min(key, scale, concentration, shape, dtype)"),
    (random.generalized_normal, (), "generalized_normal(key, p, shape, dtype)"),
    (random.orthogonal, (), "orthogonal(key, n, shape, dtype, m)"),
    (random.ball, (3,), "ball(key, d, p, shape, dtype)"),
    (random.exponential, (2.0,), "The order of the arguments is exponential(key, shape, dtype)"),
    (random.normal, (2.0,), "as dtype. The order of the arguments is normal(key, shape, dtype)"),
    (random.randint, (0, 9), "(3,) of type <class 'tuple'>. The order of the arguments is randint"),
    (random.uniform, ((), float), "uniform(key, shape, dtype, minval, maxval)"),
])
def test_a_shape_in_the_place_of_another_argument(draw: Any, given: Any, said: str) -> None:
    with pytest.raises(TypeError, match=" The order of the arguments is ") as caught:
        draw(KEY, *given, (3,))
    assert said in str(caught.value) and str(caught.value).endswith(": a shape is shape=(3,).")
    assert "asarray" not in str(caught.value)


def test_what_is_no_shape_is_not_taken_for_one() -> None:
    with pytest.raises(TypeError, match="Make an array of it"):
        random.gamma(KEY, [1.0, 2.0])
    assert random.bernoulli(KEY, shape=(3,)).shape == random.exponential(KEY, shape=(3,)).shape


@pytest.mark.optimized
def test_draws_are_what_the_functions_give_of_uniform_numbers() -> None:
    u = random.uniform(KEY, (64, 5), minval=np.nextafter(np.float32(-1), np.float32(0)))
    inverse = jax.lax.erf_inv(u)
    assert (inverse == jax.jit(lambda x: jax.lax.erf_inv(x))(u)).all()
    assert (random.normal(KEY, (64, 5)) == np.float32(np.sqrt(2)) * inverse).all()


def test_bits_are_kept_apart_from_what_rounds_on_cpu() -> None:
    def barriers(draw: Any, platform: str) -> int:
        lowered = jax.jit(draw).trace(KEY).lower(lowering_platforms=(platform,))
        keys = r"tensor<(\d+x)?2xui32>"
        return len(re.findall(rf"optimization_barrier %[\w#]+ : (?!{keys})", lowered.as_text()))

    assert barriers(lambda key: random.normal(key, (4,)), "cpu") == 1
    assert barriers(lambda key: random.normal(key, (4,)), "tpu") == 0
    assert barriers(jax.vmap(random.normal, axis_size=3, in_axes=None), "cpu") == 0  # one number
    assert barriers(lambda key: jax.vmap(random.normal)(random.split(key, 3)), "cpu") == 1
    for draw in (random.uniform, random.bernoulli, random.bits):
        assert barriers(lambda key, draw=draw: draw(key, shape=(4,)), "cpu") == 0


def test_words_are_kept_apart_where_they_are_made_in_sequence() -> None:
    with jax.threefry_partitionable(False):
        text = jax.jit(lambda key: random.normal(key, (4,))).lower(KEY).as_text()
    lines = text.splitlines()
    _, first, second = [i for i, line in enumerate(lines) if re.search(r"barrier %[\w#]+ :", line)]
    together = next(i for i, line in enumerate(lines)
                    if "stablehlo.concatenate" in line and "tensor<2xui32>, tensor<2xui32>" in line)
    assert first < second < together


def _splits(key: Any, n: int) -> Any:
    for _ in range(n):
        key, _ = random.split(key)
    return key


def _folds(key: Any, n: int) -> Any:
    for i in range(n):
        key = random.fold_in(key, i)
    return key


def _folds_of_draws(key: Any, n: int) -> Any:
    x = jnp.uint32(0)
    for _ in range(n):
        key = random.fold_in(key, x)
        x = random.bits(key)
    return x


def _draws(key: Any, n: int) -> Any:
    x = jnp.float32(0)
    for i in range(n):
        key, a, b = random.split(key, 3)
        x = x + random.uniform(a, (i + 1,)).sum() * random.normal(b) - random.randint(a, (), 0, i)
    return x


def _branches(key: Any, n: int) -> Any:
    x = jnp.float32(0)
    for _ in range(n):
        key, sub = random.split(key)
        x = jax.lax.cond(x > 0.5, random.uniform, random.normal, sub)
    return x


def _in_a_loop(key: Any, n: int) -> Any:
    return jax.lax.fori_loop(0, 3, lambda i, k: _folds(random.fold_in(k, i), n), key)


def _over_keys(key: Any, n: int) -> Any:
    return jax.vmap(lambda k: random.uniform(_splits(k, n)))(random.split(key, 7))


@pytest.mark.parametrize("chain", [_splits, _folds, _folds_of_draws, _draws, _branches, _in_a_loop,
                                   _over_keys])
def test_what_is_compiled_of_chains_of_draws_grows_with_their_length(chain: Any) -> None:
    def rounds(n: int) -> tuple[int, int]:
        """How often the cipher's step is in one loop at most, and in all."""
        text = jax.jit(lambda key: chain(key, n)).lower(KEY).compile().as_text()
        counts = [len(re.findall(r"= u32\[\S* xor\(", part)) for part in text.split("\n\n")]
        return max(counts), sum(counts)

    (largest, total), (largest_of_twice, total_of_twice) = rounds(4), rounds(8)
    if chain is _in_a_loop and jaxlib_api.HAS_OLDER_CPU_EMITTERS:
        # These look through barriers in the body of a loop, which is linear in its length then.
        assert largest_of_twice <= 2 * largest < 240
    else:
        assert largest_of_twice <= largest < 100
    assert total_of_twice < 2.5 * total


def test_keys_that_draws_are_made_of_are_made_in_another_loop() -> None:
    text = jax.jit(lambda key: jax.vmap(random.uniform)(random.split(key, 7))).lower(KEY).as_text()
    assert len(re.findall(r"barrier .* : tensor<7x2xui32>", text)) == 1


def test_gamma_numbers_are_one_function_that_is_put_in_its_places() -> None:
    lowered = jax.jit(lambda key: random.beta(key, 1.0, 2.0, (64, 5))).lower(KEY)
    text = lowered.as_text()
    assert text.count("func.func private @random_gamma") == 1
    assert text.count('call @random_gamma(') == 2
    assert set(re.findall(r"func.func private @([a-z]+[a-z0-9_]*?)(?:_\d+)?\(", text)) == {
        "random_gamma", "threefry2x32"}  # no other part is one
    assert "to_apply=%random_gamma" not in lowered.compile().as_text()


@pytest.mark.optimized
def test_a_batch_is_drawn_by_one_program() -> None:
    """And has the bits that it has in a compiled function."""
    def draw(key: Any, mean: Any) -> Any:
        return random.wald(key, mean, (64, 5))

    batch = jax.vmap(draw, (0, None))
    keys = random.split(KEY, 3)
    assert (batch(keys, 1.8) == jax.jit(batch)(keys, 1.8)).all()


def test_bits_with_and_without_the_flag_are_one_operation():
    eqns = jax.make_jaxpr(lambda k: (jax.random.uniform(k), jax.random.bits(k)))(jax.random.key(0))
    names = [sorted(params) for params in _params_of("random_bits", eqns.jaxpr)]
    assert names == [["bit_width", "fused", "partitionable", "shape"]] * 2
    assert "fused=False" not in str(eqns)


def _params_of(name, jaxpr):
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == name:
            yield eqn.params
        elif "jaxpr" in eqn.params:
            yield from _params_of(name, eqn.params["jaxpr"].jaxpr)


def test_arguments_that_no_element_needs_are_looked_at() -> None:
    for axis, error in ((1, ValueError), ("x", TypeError)):
        with pytest.raises(error, match="choice: axis"):
            random.choice(KEY, 5, (3,), axis=axis)  # type: ignore[arg-type]
    for draw in (random.ball, random.generalized_normal):
        with pytest.raises(TypeError, match=f"{draw.__name__} requires a real p, got one of dtype"):
            draw(KEY, 3 if draw is random.ball else 1j, 1j)  # type: ignore[arg-type]
