"""softmax, logsumexp, one_hot, standardize against SciPy and formulas."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from scipy import special

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import nn

rng = np.random.RandomState(0)
x = rng.randn(3, 4).astype(np.float32)
y = rng.randn(3, 4).astype(np.float32)
mask = np.array([[1, 0, 1, 1], [0, 1, 1, 0], [1, 1, 1, 1]], bool)


@pytest.mark.parametrize("axis", [-1, 0, (0, 1), None])
def test_softmax(axis):
    np.testing.assert_allclose(nn.softmax(x, axis), special.softmax(x, axis), rtol=1e-5)
    np.testing.assert_allclose(nn.log_softmax(x, axis), special.log_softmax(x, axis), rtol=1e-5)
    np.testing.assert_allclose(nn.logsumexp(x, axis), special.logsumexp(x, axis), rtol=1e-5)


@pytest.mark.parametrize(("shape", "of_mask"), [((4,), (3, 4)), ((1, 4), (3, 4)), ((3, 1), (3, 4)),
                                                ((2, 1, 4), (3, 1)), ((), (4,)), ((4,), (0, 4))])
def test_a_mask_with_more_rows_than_what_it_is_of(shape, of_mask):
    row, mask = np.linspace(-1, 2, math.prod(shape)).reshape(shape), np.zeros(of_mask, bool)
    mask[..., ::2] = mask[:1] = True
    row, mask = np.broadcast_arrays(row, mask)
    powers = np.where(mask, np.exp(row), 0)
    with np.errstate(divide="ignore"):
        for f, want in ((nn.softmax, powers / powers.sum(-1, keepdims=True)),
                        (nn.log_softmax, np.log(powers / powers.sum(-1, keepdims=True)))):
            given = np.linspace(-1, 2, math.prod(shape), dtype=np.float32).reshape(shape)
            np.testing.assert_allclose(f(given, where=mask), want, rtol=1e-5)
            np.testing.assert_allclose(jax.jit(f)(given, where=mask), want, rtol=1e-5)
            slopes = jax.grad(lambda x, f=f: jnp.where(mask, f(x, where=mask), 0).sum())(given)
            assert slopes.shape == shape and np.isfinite(slopes).all()


def test_softmax_does_not_overflow():
    big = np.array([1000.0, 0.0, -1000.0], np.float32)
    np.testing.assert_array_equal(nn.softmax(big), [1, 0, 0])
    assert float(nn.logsumexp(big)) == 1000
    assert float(nn.logsumexp(jnp.full(3, -jnp.inf))) == -np.inf
    assert nn.softmax(jnp.ones(3, jnp.bfloat16)).dtype == jnp.bfloat16


def test_masks():
    inside = np.where(mask, np.exp(x), 0)
    expected = inside / inside.sum(1, keepdims=True)
    np.testing.assert_allclose(nn.softmax(x, where=mask), expected, rtol=1e-5)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(nn.log_softmax(x, where=mask), np.log(expected), rtol=1e-5)
    np.testing.assert_allclose(nn.logsumexp(x, 1, where=mask), np.log(inside.sum(1)), rtol=1e-5)
    np.testing.assert_allclose(nn.logmeanexp(x, 1, where=mask),
                               np.log(inside.sum(1) / mask.sum(1)), rtol=1e-5)


def test_logsumexp_of_truth_values_is_of_the_type_of_the_weights():
    flags = jnp.array([True, False])
    for given, b, dtype in [(flags, None, "float32"), (flags, jnp.float16(2), "float16"),
                            (True, jnp.bfloat16(2), "bfloat16"), (flags, 2, "float32")]:
        out = nn.logsumexp(given, b=b, where=True)
        assert out.dtype == dtype and not out.weak_type
        assert nn.logsumexp(given, b=jnp.float16(2)).dtype == "float16"


def test_logsumexp_options():
    got = nn.logsumexp(x, 1, b=y, return_sign=True)
    expected = special.logsumexp(x, 1, b=y, return_sign=True)
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4)
    assert nn.logsumexp(x, 1, keepdims=True).shape == (3, 1)
    with jax.enable_x64(True):
        truth = jnp.array([True, False])
        assert nn.logsumexp(truth, b=truth).dtype == "float32"
        assert nn.logsumexp(truth, b=truth, where=truth).dtype == "float64"
    np.testing.assert_allclose(nn.logmeanexp(x), np.log(np.exp(x).mean()), rtol=1e-5)


def test_derivatives():
    p = special.softmax(x, -1)
    grad = jax.grad(lambda x: jnp.sum(nn.log_softmax(x) * y))(x)
    np.testing.assert_allclose(grad, y - p * y.sum(1, keepdims=True), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(jax.grad(nn.logsumexp)(x), special.softmax(x), rtol=1e-5)
    grad = jax.grad(lambda x: jnp.sum(nn.softmax(x, where=mask) ** 2))(x)
    assert np.isfinite(grad).all()


def test_one_hot():
    np.testing.assert_array_equal(nn.one_hot(np.array([0, 2, 5, -1]), 3),
                                  [[1, 0, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]])
    assert nn.one_hot(np.array([0, 2]), 3, axis=0).shape == (3, 2)
    assert nn.one_hot(1, 3, dtype=jnp.int32).dtype == jnp.int32
    np.testing.assert_array_equal(nn.one_hot([1, 0], 2), [[0, 1], [1, 0]])
    with pytest.raises(ValueError, match="axis 4 is out of bounds"):
        nn.one_hot(np.array([0]), 3, axis=4)


@pytest.mark.parametrize("algorithm", ["fast", "stable"])
def test_standardize(algorithm):
    expected = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(nn.standardize(x, algorithm=algorithm), expected, rtol=1e-4,
                               atol=1e-5)
    got = nn.standardize(x, mean=0.5, variance=2.0, epsilon=0.0)
    np.testing.assert_allclose(got, (x - 0.5) / np.sqrt(2), rtol=1e-5)


def _attention(q, k, v, allowed=None):
    logits = np.einsum("btnh,bsnh->bnts", q, k) / np.sqrt(q.shape[-1])
    if allowed is not None:
        logits = np.where(allowed, logits, -1e30)
    return np.einsum("bnts,bsnh->btnh", special.softmax(logits, -1), v)


def test_attention():
    q = rng.randn(2, 5, 3, 4).astype(np.float32)
    k, v = rng.randn(2, 2, 6, 3, 4).astype(np.float32)
    attend = nn.dot_product_attention
    np.testing.assert_allclose(attend(q, k, v), _attention(q, k, v), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(attend(q[0], k[0], v[0]), _attention(q, k, v)[0], rtol=1e-4,
                               atol=1e-5)
    row, column = np.ogrid[:5, :6]
    np.testing.assert_allclose(attend(q, k, v, is_causal=True),
                               _attention(q, k, v, column <= row), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(attend(q, k, v, local_window_size=(1, 2)),
                               _attention(q, k, v, (column >= row - 1) & (column <= row + 2)),
                               rtol=1e-4, atol=1e-5)
    lengths = np.array([6, 2])
    inside = (np.arange(6) < lengths[:, None])[:, None, None]
    np.testing.assert_allclose(attend(q, k, v, key_value_seq_lengths=lengths),
                               _attention(q, k, v, inside), rtol=1e-4, atol=1e-5)
    two = np.concatenate([q, q], 2)[:, :, :2]
    np.testing.assert_allclose(attend(two, k[:, :, :1], v[:, :, :1]),
                               _attention(two, k[:, :, [0, 0]], v[:, :, [0, 0]]), rtol=1e-4,
                               atol=1e-5)
    with pytest.raises(ValueError, match="must be a multiple of key/value heads"):
        attend(q, k[:, :, :2], v[:, :, :2])
    with pytest.raises(ValueError, match="Unsupported implementation option"):
        attend(q, k, v, implementation="no")


def test_scaled_matmul():
    a, b = rng.randn(2, 3, 8), rng.randn(2, 5, 8)
    p, q = rng.rand(2, 3, 2), rng.rand(2, 5, 4)
    expected = np.einsum("bmk,bnk->bmn", a * np.repeat(p, 4, 2), b * np.repeat(q, 2, 2))
    got = nn.scaled_matmul(*[z.astype(np.float32) for z in (a, b, p, q)])
    np.testing.assert_allclose(got, expected, rtol=1e-4)


@pytest.mark.parametrize("mode, step", [("mxfp8", 0.1), ("mxfp4", 0.3), ("nvfp4", 0.3)])
def test_scaled_dot_general(mode, step):
    rng = np.random.RandomState(0)  # the bound is for these numbers, whichever tests ran before
    a, b = rng.randn(4, 64).astype(np.float32), rng.randn(64, 3).astype(np.float32)
    dims = (((1,), (0,)), ((), ()))
    configs = [nn.get_scaled_dot_general_config(mode)] * 3
    got = np.asarray(nn.scaled_dot_general(a, b, dims, configs=configs))
    assert np.abs(got - a @ b).max() < step * 8
    assert np.abs(got - a @ b).max() > 0
    np.testing.assert_allclose(nn.scaled_dot_general(a, b, dims), a @ b, rtol=1e-4, atol=1e-5)
    with pytest.raises(TypeError, match=r"of the lhs value, got .* for lhs of rank 1"):
        nn.scaled_dot_general(jnp.ones(3), b, (((1,), (0,)), ((), ())), configs=configs)
    with pytest.raises(ValueError, match="not a multiple of the block size"):
        nn.scaled_dot_general(a[:, :40], b[:40], dims, configs=configs)


def test_scaled_dot_general_derivative():
    a, b = rng.randn(2, 1, 32, 64).astype(np.float32)
    configs = [nn.get_scaled_dot_general_config("mxfp8")] * 3
    dims = (((2,), (2,)), ((0,), (0,)))
    grad = jax.grad(lambda a: jnp.sum(nn.scaled_dot_general(a, b, dims, configs=configs)))(a)
    np.testing.assert_allclose(grad, np.broadcast_to(b.sum(1, keepdims=True), a.shape), atol=0.6)
    with pytest.raises(ValueError, match="Unsupported mode: no"):
        nn.get_scaled_dot_general_config("no")


@pytest.mark.parametrize("shape", [(), (6,), (5, 6), (1, 6), (3, 5, 6), (1, 3, 1, 1)])
def test_attention_broadcasts_biases_and_masks(shape):
    q, k, v = [rng.randn(2, n, 3, 4).astype(np.float32) for n in (5, 6, 6)]
    bias = rng.randn(*shape).astype(np.float32) if shape else np.float32(2)
    full = np.broadcast_to(bias, (2, 3, 5, 6))
    attend = jax.nn.dot_product_attention
    want = attend(q, k, v, full, full > 0)
    np.testing.assert_allclose(attend(q, k, v, bias, bias > 0), want, rtol=1e-6)
    np.testing.assert_allclose(attend(q[0], k[0], v[0], bias, bias > 0), want[0], rtol=1e-6)
    wide = np.tile(q, (1, 1, 2, 1))  # two heads of queries for each of the keys
    if 3 not in shape:
        full = np.broadcast_to(bias, (2, 6, 5, 6))
        np.testing.assert_allclose(attend(wide, k, v, bias, bias > 0),
                                   attend(wide, k, v, full, full > 0), rtol=1e-6)


def test_attention_takes_lists():
    x = [[[1.0, 2.0]], [[3.0, 4.0]]]
    mask = [[[True, False], [True, True]]]
    np.testing.assert_array_equal(
        jax.nn.dot_product_attention(x, x, x, mask=mask),
        jax.nn.dot_product_attention(*[jnp.array(x)] * 3, mask=jnp.array(mask)))


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4)])
def test_attention_without_leading_axes(shape):
    x = jnp.asarray(np.random.default_rng(0).standard_normal(shape), "float32")
    whole = jnp.reshape(x, (1,) * (4 - x.ndim) + shape)
    want, sums = jax.nn.dot_product_attention(whole, whole, whole, return_residual=True)
    got, residual = jax.nn.dot_product_attention(x, x, x, return_residual=True)
    assert got.shape == shape and residual.shape == shape[:-1]
    np.testing.assert_array_equal(got, want.reshape(shape))
    np.testing.assert_array_equal(residual, sums.reshape(shape[:-1]))
    np.testing.assert_array_equal(jax.nn.dot_product_attention(x, whole, whole), got)
    with pytest.raises(ValueError, match="query ndim should be 4, but got 5"):
        jax.nn.dot_product_attention(*[jnp.ones((1, 1, 2, 3, 4))] * 3)


def test_bad_attention():
    q, k = np.ones((2, 5, 3, 4), np.float32), np.ones((2, 6, 3, 4), np.float32)
    attend = jax.nn.dot_product_attention
    for name in ("bias", "mask"):
        for shape in ((7,), (4, 5, 6), (2, 6, 5, 6), (1, 1, 1, 5, 6)):
            with pytest.raises(ValueError, match=rf"{name} must broadcast .* \(2, 3, 5, 6\); got"):
                attend(q, k, k, **{name: np.ones(shape, bool)})
    for name in ("query_seq_lengths", "key_value_seq_lengths"):
        for lengths, text in ((3, "ndim should be 1"), (np.ones(2), "dtype should be int32"),
                              (np.array([1, 2, 3]), r"shape should be \(2,\)")):
            with pytest.raises(ValueError, match=f"{name} {text}"):
                attend(q, k, k, **{name: lengths})
        np.testing.assert_array_equal(attend(q, k, k, **{name: [3, 5]}),
                                      attend(q, k, k, **{name: np.array([3, 5])}))


@pytest.mark.parametrize(("shapes", "said"), [
    ([(2, 4, 8), (2, 4, 3, 8), (2, 4, 3, 8)], "query shape should be [2, None, None, 8]: but got"),
    ([(2, 4, 3, 7), (2, 4, 3, 8), (2, 4, 3, 8)], "query shape should be [2, None, None, 8]: but"),
    ([(2, 4, 3, 8), (4, 3, 8), (2, 4, 3, 8)], "value shape should be [1, 4, 3, 8]: but got (2, 4"),
    ([(2, 4, 3, 8), (2, 4, 3, 8), (4, 3, 8)], "value shape should be [2, 4, 3, 8]: but got (1, 4"),
])
def test_attention_names_the_operand_that_is_unlike_the_key(shapes, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        jax.nn.dot_product_attention(*map(jnp.ones, shapes))


@pytest.mark.parametrize("at", [0, 1, 2])
def test_attention_takes_one_dtype(at):
    arrays = [jnp.ones((1, 2, 1, 3))] * 3
    arrays[at] = arrays[at].astype("float16")
    with pytest.raises(ValueError, match="dtype should be float"):
        jax.nn.dot_product_attention(*arrays)
    with pytest.raises(ValueError, match="mask dtype should be bool, but got float32"):
        jax.nn.dot_product_attention(*[arrays[at]] * 3, mask=jnp.ones((1, 1, 2, 2)))


@pytest.mark.parametrize(("fun", "reference"), [
    (nn.softmax, lambda x, axis: special.softmax(x, axis)),
    (nn.log_softmax, lambda x, axis: special.log_softmax(x, axis)),
    (nn.logsumexp, lambda x, axis: special.logsumexp(x, axis, keepdims=True)),
    (nn.logmeanexp, lambda x, axis: np.log(np.exp(x).mean(axis, keepdims=True))),
    (nn.standardize, lambda x, axis: (x - x.mean(axis, keepdims=True))
     / np.sqrt(x.var(axis, keepdims=True) + 1e-5)),
])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_named_axes(fun, reference, wrap):
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    for axis, places in (("i", 0), (("i", 0), (0, 1)), ((-1, "i"), (0, 1))):
        got = jax.vmap(wrap(lambda x, axis=axis: fun(x, axis=axis)), axis_name="i")(x)
        want = np.broadcast_to(reference(x, places), x.shape)
        np.testing.assert_allclose(got, want if got.ndim == 2 else want[:, 0], rtol=1e-5,
                                   atol=1e-6)
        slope = jax.vmap(jax.grad(lambda x, axis=axis: jnp.sum(fun(x, axis=axis) ** 2)),
                         axis_name="i")(x)
        whole = jax.grad(lambda x, axis=axis: jnp.sum(jax.vmap(
            lambda x: fun(x, axis=axis), axis_name="i")(x) ** 2))(x)
        np.testing.assert_allclose(slope, whole, rtol=1e-4, atol=1e-5)


def test_one_hot_over_a_named_axis():
    x = np.array([[0, 2], [1, 1], [2, 0]])
    got = jax.vmap(lambda x: nn.one_hot(x, 3, axis="i", dtype=jnp.float16), axis_name="i")(x)
    assert got.dtype == np.float16
    np.testing.assert_array_equal(got, x == np.arange(3)[:, None])
    with pytest.raises(ValueError, match="match the size of axis i, but 4 != 3"):
        jax.vmap(lambda x: nn.one_hot(x, 4, axis="i"), axis_name="i")(x)


def test_results_of_weak_arrays_are_not_weak():
    x = jnp.broadcast_to(0.5, (2,))
    for function in (jax.nn.softmax, jax.nn.log_softmax, jax.nn.standardize):
        assert x.weak_type and not function(x).weak_type
        assert jax.grad(lambda x, f=function: jnp.sum(f(x)))(x).weak_type


@pytest.mark.parametrize("fun", [jax.nn.log_softmax, jax.nn.logsumexp, jax.nn.logmeanexp])
def test_the_shift_against_overflow_is_not_differentiated(fun):
    def total(x):
        return jnp.sum(fun(x))

    jaxpr = jax.make_jaxpr(jax.grad(total))(jnp.ones((2, 3)))
    names = {e.primitive.name for e in jaxpr.jaxpr.eqns}
    assert "reduce_max" in names
    assert "eq" not in names  # which elements are the largest, that is


def test_classes_are_integers():
    for _ in range(2):  # compiled once, told twice
        with pytest.warns(DeprecationWarning, match="should be integer-typed; got dtype=float32"):
            nn.one_hot(np.array([0, 1], np.float32), 2)


@pytest.mark.parametrize("row", [[40.0, 0, 1], [0.0, 0, 1], [3.0, 3, 3], [-200.0, 0, 30, 31]])
def test_slopes_of_softmax_in_its_tails(row):
    row = np.array(row, np.float32)
    p = special.softmax(row.astype(float))
    want = -np.outer(p, p)
    np.fill_diagonal(want, p * np.array([np.delete(p, i).sum() for i in range(len(p))]))
    for jacobian in (jax.jacfwd, jax.jacrev):
        np.testing.assert_allclose(jacobian(nn.softmax)(row), want, rtol=2e-6, atol=1e-38)


def test_logsumexp_of_terms_without_weight():
    def f(x, b):
        return nn.logsumexp(jnp.array(x), b=jnp.array(b))

    slope = jax.grad(f, 1)
    np.testing.assert_allclose(slope([0.0, 0.0], [0.0, 1.0]), [1, 1])
    np.testing.assert_allclose(slope([2.0, 1.0, -np.inf], [0.0, 2.0, 0.0]), [np.e / 2, 0.5, 0],
                               rtol=1e-6)
    assert f([np.inf, np.nan, 500.0, 1.0], [0.0, 0.0, 0.0, 1.0]) == 1
    np.testing.assert_array_equal(jax.grad(f)([np.inf, np.nan, 500.0, 1.0], [0.0, 0.0, 0.0, 1.0]),
                                  [0, 0, 0, 1])
    assert np.isnan(f([np.nan, 1.0], [1.0, 1.0])) and f([1.0, 1.0], [0.0, 0.0]) == -np.inf


@pytest.mark.parametrize("sign", [False, True])
def test_slopes_of_logsumexp_of_a_row_without_weights(sign):
    def f(x, b):
        out = nn.logsumexp(x, axis=1, b=b, return_sign=sign)
        out = out[0] if sign else out
        return jnp.where(jnp.isfinite(out), out, 0).sum() + out[0]

    b = jnp.array([[0.0, 0.0], [1.0, 0.0]])
    np.testing.assert_array_equal(jax.grad(f)(jnp.ones((2, 2)), b), b)
    mixed = jax.jacrev(jax.grad(lambda x: nn.logsumexp(x, b=b[1])))(jnp.zeros(2))
    np.testing.assert_array_equal(mixed, np.zeros((2, 2)))
    slope = jax.jacrev(jax.grad(lambda b, x: nn.logsumexp(x, b=b)), 1)(b[1], jnp.zeros(2))
    np.testing.assert_allclose(slope, [[0, 0], [-1, 1]], atol=1e-6)


def test_scales_of_attention_are_real():
    q = jnp.ones((1, 2, 1, 4))
    with pytest.raises(TypeError, match="scale must be a real number, got 1j"):
        nn.dot_product_attention(q, q, q, scale=1j)


@pytest.mark.parametrize(("scale", "error", "words"), [
    (np.ones(2), ValueError, r"of nvfp4 must be one number, got an array of the shape \(2,\)"),
    ("x", TypeError, "global_scale")])
def test_the_scale_of_all_of_an_array_is_one_number(scale, error, words):
    with pytest.raises(error, match=f"get_scaled_dot_general_config.*{words}"):
        nn.get_scaled_dot_general_config("nvfp4", scale)


def test_products_of_rounded_arrays_have_three_configurations():
    configs = [nn.get_scaled_dot_general_config("mxfp8")] * 2
    x = jnp.ones((2, 32))
    with pytest.raises(ValueError, match=r"configs must be three, .* got 2"):
        nn.scaled_dot_general(x, x, (((1,), (1,)), ((), ())), configs=configs)


def test_weights_of_another_shape_are_a_value_error():
    with pytest.raises(ValueError, match=r"logsumexp: Incompatible shapes .*\[\(3,\), \(2,\)\]"):
        jax.nn.logsumexp(jnp.ones(3), b=jnp.ones(2))
