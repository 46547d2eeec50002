"""Variance, averages, quantiles, covariance and histograms against NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from tests.numpy.agreement import agrees, bools, complexes, floats, ints

x, y, i, c, w = floats(3, 4), floats(3, 4), ints(3, 4), complexes(3, 4), floats(4) ** 2 + 0.1
nan = x.copy()
nan[0, 1] = nan[2, 3] = np.nan


@pytest.mark.parametrize("name", ["var", "std"])
@pytest.mark.parametrize("kwargs", [
    {}, {"axis": 0}, {"axis": (0, 1), "keepdims": True}, {"ddof": 1}, {"axis": 1, "ddof": 1.5},
])
def test_variance(name, kwargs):
    for values in (x, i, c):
        agrees(name, values, **kwargs)


def test_variance_options():
    mask = bools(3, 4)
    mask[:, 0] = True
    agrees("var", x, where=mask)
    agrees("std", x, axis=1, where=mask)
    known = x.mean(1, keepdims=True)
    np.testing.assert_allclose(jnp.var(x, axis=1, mean=known), x.var(1), rtol=1e-5)
    np.testing.assert_allclose(jnp.var(x, correction=1), x.var(ddof=1), rtol=1e-5)
    assert jnp.var(jnp.ones(3, jnp.bfloat16)).dtype == jnp.bfloat16
    assert np.isnan(jnp.var(x, ddof=20))
    with pytest.raises(ValueError, match=r"ddof and correction can't be provided simultaneously."):
        jnp.var(x, ddof=1, correction=1)
    with pytest.raises(ValueError, match="does not yet support real dtype parameters"):
        jnp.var(c, dtype=jnp.float32)


def test_average():
    agrees("average", x, axis=1)
    agrees("average", x, 1, w)
    agrees("average", x, weights=y ** 2)
    agrees("average", x, 0, returned=True)
    with pytest.raises(ValueError, match="Axis must be specified"):
        jnp.average(x, weights=w)


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "nearest", "midpoint",
                                    "inverted_cdf"])
def test_methods_of_quantiles(method):
    agrees("quantile", x, 0.3, axis=1, method=method)
    agrees("quantile", x, 0.8, method=method)


@pytest.mark.parametrize("name, args, kwargs", [
    ("quantile", (x, np.array([0.1, 0.5], np.float32)), {"axis": 0}),
    ("quantile", (x, 0.4), {"axis": (0, 1), "keepdims": True}),
    ("percentile", (x, 30), {}), ("percentile", (x, 75.0), {"axis": 1}), ("median", (x,), {}),
    ("median", (x, 0), {}), ("median", (i, 1), {"keepdims": True}), ("nanmedian", (nan,), {}),
    ("nanmedian", (nan, 0), {}), ("nanquantile", (nan, 0.4), {"axis": 0}),
    ("nanquantile", (nan, np.array([0.2, 0.6], np.float32)), {"axis": 1}),
    ("nanpercentile", (nan, 40), {}), ("median", (nan, 1), {}),
])
def test_quantiles(name, args, kwargs):
    agrees(name, *args, tol=1e-4, **kwargs)


def test_weighted_quantiles():
    weights = np.array([1, 1, 2, 1, 1], np.float32)
    values = np.array([1, 2, 3, 4, 5], np.float32)
    got = jnp.quantile(values, 0.5, weights=weights, method="inverted_cdf")
    assert float(got) == 3.0


@pytest.mark.parametrize("kwargs", [
    {}, {"rowvar": False}, {"bias": True}, {"ddof": 0}, {"fweights": np.array([1, 2, 1, 3])},
    {"aweights": w}, {"fweights": np.array([1, 2, 1, 3]), "aweights": w},
])
def test_covariance(kwargs):
    agrees("cov", x, tol=1e-4, **kwargs)


def test_correlation():
    agrees("corrcoef", x, tol=1e-4)
    agrees("corrcoef", x, y, tol=1e-4)
    agrees("cov", x, y, tol=1e-4)
    agrees("cov", c, tol=1e-4)


@pytest.mark.parametrize("kwargs", [
    {}, {"bins": 3}, {"bins": 3, "range": (-1, 1)}, {"bins": 3, "weights": y},
    {"bins": np.array([-1.0, 0.0, 0.5, 2.0])}, {"density": True},
])
def test_histogram(kwargs):
    agrees("histogram", x, **kwargs)


def test_counts():
    dup = np.array([3, 1, 3, 2, 1, 1])
    np.testing.assert_array_equal(jnp.bincount(dup), np.bincount(dup))
    np.testing.assert_array_equal(jnp.bincount(dup, minlength=6), np.bincount(dup, minlength=6))
    np.testing.assert_array_equal(jax.jit(lambda x: jnp.bincount(x, length=3))(dup), [0, 3, 1])
    assert jnp.bincount(dup, minlength=6, length=3).tolist() == [0, 3, 1]
    for got, expected in zip(jnp.histogram2d(x.ravel(), y.ravel(), 3),
                             np.histogram2d(x.ravel(), y.ravel(), 3), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=2e-7)
    with pytest.raises(TypeError, match="x argument to bincount must have an integer type"):
        jnp.bincount(w)


def test_derivatives():
    np.testing.assert_allclose(jax.grad(jnp.var)(w), 2 * (w - w.mean()) / 4, rtol=1e-4, atol=1e-5)
    grad = jax.grad(jnp.median)(jnp.array([3.0, 1.0, 2.0]))
    np.testing.assert_array_equal(grad, [0, 0, 1])


@pytest.mark.parametrize("name", ["cov", "corrcoef"])
def test_covariances_are_no_integers(name):
    with pytest.raises(ValueError, match="dtype must be a subclass of float or complex"):
        getattr(jnp, name)(jnp.ones((2, 3)), dtype="int8")


def test_quantiles_have_the_float_dtype_of_the_array():
    with jax.enable_x64(True):
        assert jnp.median(jnp.array([1], "int32")).dtype == np.float32
        assert jnp.quantile(jnp.ones(2, "float32"), jnp.array([0.5])).dtype == np.float32
    assert jnp.percentile(jnp.ones(2, "bfloat16"), jnp.array(5.0)).dtype == jnp.bfloat16


def test_quantiles_over_no_axes():
    x = jnp.array([1.0, 2.0])
    assert jnp.median(x, ()).tolist() == [1.0, 2.0]
    assert jnp.quantile(x, jnp.array([0.1, 0.2]), ()).tolist() == [[1.0, 2.0], [1.0, 2.0]]


def test_bounds_of_histograms_may_be_traced():
    v = np.arange(5, dtype=np.float32)

    def edges(low, high):
        return (jnp.histogram(v, 3, range=(low, high))[1],
                jnp.histogram_bin_edges(v, 3, range=[low, high]),
                jnp.histogram_bin_edges(v, 3, range=jnp.stack([low, high])),
                jnp.histogramdd(v[:, None], 3, range=[(low, high)])[1][0],
                jnp.histogram2d(v, v, 3, range=[(low, high), None])[1])

    for got in jax.jit(edges)(0.0, 6.0):
        assert got.tolist() == [0, 2, 4, 6]
    for got in jax.vmap(edges, (None, 0))(0.0, jnp.array([3.0, 6.0])):
        assert got.tolist() == [[0, 1, 2, 3], [0, 2, 4, 6]]


@pytest.mark.parametrize("limits", [3, (1, 2, 3), ((1, 2), (3, 4)), np.ones((2, 2)), np.ones(())],
                         ids=repr)
def test_bounds_of_histograms_are_two_numbers(limits):
    with pytest.raises(ValueError, match="`range` must be either None or a sequence of scalars"):
        jnp.histogram(np.ones(3), 3, range=limits)


def test_histogram_promotes_its_weights():
    counts, _ = jnp.histogram(jnp.arange(3), weights=jnp.arange(3))
    assert counts.dtype == np.float32


def test_quantiles_of_nothing():
    x = jnp.zeros((3, 0))
    assert np.isnan(jnp.nanmedian(x, 1)).tolist() == [True] * 3
    assert np.isnan(jnp.nanmedian(x)) and jnp.nanmedian(x, 1, keepdims=True).shape == (3, 1)
    assert jnp.nanquantile(x, jnp.array([0.1, 0.2]), 1).shape == (2, 3)
    assert jnp.nanpercentile(x.astype(int), 5, 1).dtype == np.float32
    assert jnp.nanmedian(x, 0).shape == jnp.median(x, 0).shape == (0,)
    for axis in (None, 1, (0, 1)):
        with pytest.raises(ValueError, match="reduction axis must be non-empty"):
            jnp.median(x, axis)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_quantiles_of_short_floats_are_rounded_once(dtype):
    x, q = jnp.array([1, 2, 3, 5.5], dtype), np.array([0.3, 0.1, 0.77], np.float32)
    want = np.quantile(np.asarray(x, np.float32), q).astype(dtype)
    for fun, share in ((jnp.quantile, q), (jnp.nanquantile, q), (jnp.percentile, 100 * q)):
        got = fun(x, share)
        assert got.dtype == dtype and got.tolist() == want.tolist()


def test_derivatives_without_nan():
    x = np.array([1.0, np.nan, 3.0], np.float32)
    assert jax.grad(jnp.nanvar)(x).tolist() == [-1, 0, 1]
    assert jax.grad(jnp.nanstd)(x).tolist() == [-0.5, 0, 0.5]
    assert jax.grad(jnp.nanvar)(x[:2]).tolist() == [0, 0]
    kept = jax.grad(lambda x: jnp.nanvar(x, where=np.array([True, True, False])))(x)
    assert kept.tolist() == [0, 0, 0]


def test_weights_are_refused_before_the_rank_of_the_shares():
    with pytest.raises(NotImplementedError, match="linear doesn't support weights"):
        jnp.quantile(jnp.ones(3), jnp.ones((2, 2)), weights=jnp.ones(3))


def test_places_of_samples_are_counted():
    with pytest.raises(TypeError, match="got 5 samples y along axis 0 and 4 places x"):
        jnp.trapezoid(jnp.ones(5), jnp.ones(4))
    assert jnp.trapezoid(jnp.ones(5), jnp.arange(2.0)) == 4  # one distance for all, as in NumPy


def test_coordinates_of_different_lengths():
    with pytest.raises(ValueError, match=r"vectors of the same length, got shapes \(5,\) and \(4,"):
        jnp.histogram2d(jnp.ones(5), jnp.ones(4))


def test_coordinates_of_different_shapes():
    with pytest.raises(TypeError, match="Cannot concatenate"):
        jnp.histogram2d(jnp.ones(2), 1.0)


def test_edges_are_as_precise_as_the_weights():
    with jax.enable_x64(True):
        x = jnp.ones(3, np.float32)
        counts, edges = jnp.histogram(x, weights=jnp.ones(3, np.float64))
    assert counts.dtype == edges.dtype == np.float64


def test_cov_with_any_degrees_of_freedom():
    np.testing.assert_allclose(jnp.cov(jnp.array([1.0, 2.0, 3.0]), ddof=0.5), 0.8)


def test_cov_of_no_observations_is_nan():
    for options in ({}, {"bias": True}, {"ddof": -2}):
        assert np.isnan(jnp.cov(jnp.zeros((2, 0)), **options)).all()


def test_weak_types_of_slopes_between_places():
    weak = jnp.broadcast_to(0.3, (2,))
    assert jnp.gradient(weak, weak).weak_type
    assert not jnp.gradient(weak, jnp.ones(2)).weak_type


def test_integrals_over_nothing():
    for x, axis, want in ((jnp.ones(0), 0, 0), (jnp.ones((2, 0)), 1, [0, 0]),
                          (jnp.ones((0, 2)), 0, [0, 0])):
        assert jnp.trapezoid(x, x, axis=axis).tolist() == want
        assert jnp.trapezoid(x, axis=axis).tolist() == want


def test_booleans_are_neither_rounded_nor_subtracted():
    with pytest.raises(ValueError, match="bool"):
        jnp.round(jnp.ones(0, bool))
    with pytest.raises(TypeError, match="bool"):
        jnp.ediff1d(jnp.ones(2, bool))


@pytest.mark.parametrize("call", [
    lambda x: jnp.cov(x, aweights=x[0]), lambda x: jnp.heaviside(x, x[0]),
    lambda x: jnp.gcd(x.astype(int), x[0].astype(int)), lambda x: jnp.polyadd(x[0], x[:, 0]),
    lambda x: jnp.trapezoid(x, x[0]), lambda x: jnp.quantile(x, x[0] / 9, axis=0),
    lambda x: jnp.geomspace(x, x + 1, 3), lambda x: jnp.geomspace(1, x, 3),
    lambda x: jax.scipy.special.owens_t(x, x),
    lambda x: jax.scipy.signal.welch(x[0], nperseg=2)[1],
    lambda x: jax.scipy.signal.istft(x, nperseg=4)[1], lambda x: jax.scipy.stats.mode(x)[0],
    lambda x: jax.scipy.stats.gaussian_kde(x[0])(x[1]),
])
def test_broadcasting_inside_is_no_matter_of_the_flag(call):
    x = jnp.arange(1.0, 10.0).reshape(3, 3)
    want = call(x)
    with jax.numpy_rank_promotion("raise"):
        np.testing.assert_array_equal(call(x), want)


def test_weights_of_points_become_floats():
    points = np.array([[0.0], [1.0], [1.0]])
    for dtype in (bool, int, np.float16):
        counts, _ = jnp.histogramdd(points, bins=2, weights=np.array([1, 0, 1], dtype))
        assert counts.dtype == np.float32
        assert counts.tolist() == [1, 1]


def test_rules_for_bins_are_refused():
    with pytest.raises(NotImplementedError, match="string values for `bins` not implemented"):
        jnp.histogram(np.ones(3), bins="auto")


def test_ranks_of_the_ends_of_a_range():
    with jax.numpy_rank_promotion("raise"):
        assert jnp.linspace(jnp.ones(2), 2, 3).shape == (3, 2)
        with pytest.raises(ValueError, match="could not be broadcast together for linspace"):
            jnp.linspace(jnp.ones(2), jnp.ones((2, 2)), 3)


def test_bad_dtypes_of_deviations_point_at_the_call():
    with pytest.raises(ValueError, match="must be inexact") as caught:
        jnp.std(np.ones(3), dtype=int)
    assert len(caught.traceback) == 1


def test_numbers_of_parts_need_no_representation():
    class Two:
        def __int__(self):
            return 2

        def __repr__(self):
            raise RuntimeError

    assert len(jnp.split(np.ones(4), Two())) == 2


@pytest.mark.parametrize("shape, axis", [
    ((4,), 0), ((3, 4), 0), ((4,), 1), ((2, 4), 1), ((1, 3, 4), 0), ((2, 2, 4), 1), ((3,), -1),
    ((2, 3, 3), -1), ((), 1), ((5, 1, 1, 1), -1)])
def test_trapezoid_with_an_array_of_distances(shape, axis):
    y = np.arange(24.0).reshape(2, 3, 4)
    dx = np.arange(1.0, np.prod(shape, dtype=int) + 1).reshape(shape)
    agrees("trapezoid", y, None, dx, axis)


def test_trapezoid_of_infinite_ends():
    for y in ([np.inf, 1, 2], [1, np.inf], [np.inf, -np.inf], [1, np.nan, 2], [np.inf], []):
        y = np.float32(y)
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(jnp.trapezoid(y), np.trapezoid(y))
    assert "slice_sizes" not in (text := str(jax.make_jaxpr(jnp.trapezoid)(jnp.ones(9))))
    assert "f32[8]" not in text, "neighbours are added in pairs"


@pytest.mark.parametrize("shape", [(9,), (5000,), (2, 3000)])
def test_trapezoid_is_linear_in_samples_however_many(shape):
    y = jnp.ones(shape)
    (back,) = jax.linear_transpose(jnp.trapezoid, y)(jnp.ones(shape[:-1]))
    np.testing.assert_array_equal(back, y.at[..., jnp.array([0, -1])].set(0.5))


@pytest.mark.parametrize("y, x, axis", [
    ((2, 3, 4), (3,), 1), ((2, 3, 4), (2,), 0), ((2, 3, 4), (2, 3, 4), 0), ((2, 3, 4), (3, 4), -2),
    ((4,), (2, 4), -1), ((0, 3), (3,), 1), ((3, 0), (0,), 1), ((1, 3), (1,), 0)])
def test_trapezoid_at_places(y, x, axis):
    agrees("trapezoid", np.arange(np.prod(y), dtype=float).reshape(y),
           np.arange(np.prod(x), dtype=float).reshape(x) ** 2, 1.0, axis)


@pytest.mark.parametrize("name", ["cov", "corrcoef"])
@pytest.mark.parametrize("rowvar", [True, False])
@pytest.mark.filterwarnings("ignore")
def test_one_row_is_one_observation(name, rowvar):
    row = np.array([[1.0, 5.0, 2.0]], np.float32)
    for x in (row, row.T, row[0], row[0, 0]):
        assert getattr(jnp, name)(x, rowvar=rowvar).shape == getattr(np, name)(
            x, rowvar=rowvar).shape
    for x, y in ((row.T, row[0]), (row.T, row.T)):
        want = getattr(np, name)(x, y, rowvar=False)
        np.testing.assert_allclose(getattr(jnp, name)(x, y, rowvar=False), want, rtol=1e-5)


@pytest.mark.parametrize("shape, axis", [((5000,), 0), ((2, 2500), 1), ((2500, 2), 0)])
def test_trapezoid_of_many_samples(shape, axis):
    """A sum less half of the ends, unless that overflows or is not finite."""
    for value, places in itertools.product([2.5, np.inf, -np.inf, np.nan, 3e38], [0, -1, 7]):
        y = np.ones(shape, np.float32)
        np.moveaxis(y, axis, 0)[places] = value
        np.moveaxis(y, axis, 0)[9:12] = -1e36
        want = np.trapezoid(y.astype(np.float64), axis=axis).astype(np.float32)
        np.testing.assert_allclose(jnp.trapezoid(y, axis=axis), want, rtol=1e-6)
        both = jax.vmap(lambda y: jnp.trapezoid(y, axis=axis))(np.stack([y, np.ones_like(y)]))
        np.testing.assert_allclose(both, np.stack([want, np.full_like(want, shape[axis] - 1)]),
                                   rtol=1e-6)
        slopes = jnp.moveaxis(jax.grad(lambda y: jnp.trapezoid(y, axis=axis).sum())(y), axis, 0)
        assert (slopes[1:-1] == 1).all() and (slopes[0] == 0.5).all() and (slopes[-1] == 0.5).all()


def test_trapezoid_of_complex_and_of_large_samples():
    assert complex(jnp.trapezoid(jnp.arange(4) * 1j)) == 4.5j
    large = np.float32(3e38)
    np.testing.assert_allclose(jnp.trapezoid(np.array([large, 0, large]), dx=0.1), 3e37, rtol=1e-6)
    assert float(jnp.trapezoid(np.array([large, -large, 0, 0, large]), dx=0.1)) == 0
    slopes = jax.grad(jnp.trapezoid)(jnp.array([np.inf, 1.0, 2.0]))
    np.testing.assert_array_equal(slopes, [0.5, 1, 0.5])
    assert [float(jnp.trapezoid(jnp.ones(n))) for n in range(4)] == [0, 0, 1, 2]


@pytest.mark.parametrize("shape", [(), (3,), (3, 0), (3, 2, 2)])
def test_points_of_histograms_have_two_axes(shape):
    with pytest.raises(ValueError, match=r"sample must be an array of shape \(points, coord.* got"):
        jnp.histogramdd(jnp.ones(shape))
