"""Distributions and summaries against SciPy's."""

import importlib

import numpy as np
import pytest
from scipy import stats as reference

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.scipy import stats

rng = np.random.default_rng(0)


def uniform(low, high):
    return rng.uniform(low, high, 200)


def whole(low, high):
    return np.floor(uniform(low, high))


# The values and the shape parameters of each distribution.
CONTINUOUS = {
    "norm": (uniform(-8, 8),), "cauchy": (uniform(-30, 30),), "expon": (uniform(-2, 9),),
    "gumbel_l": (uniform(-5, 3),), "gumbel_r": (uniform(-3, 9),), "laplace": (uniform(-9, 9),),
    "logistic": (uniform(-20, 20),), "uniform": (uniform(-1, 3),),
    "chi2": (uniform(-1, 15), uniform(0.5, 9)), "gamma": (uniform(-1, 9), uniform(0.3, 9)),
    "beta": (uniform(-0.2, 1.5), uniform(0.3, 5), uniform(0.3, 5)),
    "pareto": (uniform(0, 9), uniform(0.3, 5)), "t": (uniform(-9, 9), uniform(0.3, 30)),
    "truncnorm": (uniform(-4, 5), uniform(-3, 0), uniform(0.1, 4)),
    "gennorm": (uniform(-3, 3), uniform(0.5, 4)), "vonmises": (uniform(-3, 3), uniform(0.1, 9)),
    "wrapcauchy": (uniform(0, 7), uniform(0.1, 0.9)),
}
DISCRETE = {
    "bernoulli": (whole(-1, 3), uniform(0, 1)),
    "binom": (whole(-2, 12), whole(1, 10), uniform(0, 1)),
    "betabinom": (whole(-2, 12), whole(1, 10), uniform(0.3, 5), uniform(0.3, 5)),
    "geom": (whole(-2, 12), uniform(0.05, 0.95)),
    "nbinom": (whole(-2, 12), whole(1, 10), uniform(0.05, 0.95)),
    "poisson": (whole(-2, 12), uniform(0.1, 9)),
}
PLAIN = ("gennorm", "vonmises", "wrapcauchy")  # they have no loc and scale
CASES = [(name, function) for name in (*CONTINUOUS, *DISCRETE)
         for function in importlib.import_module(f"pyjx.scipy.stats.{name}").__all__]


def arguments(name, function):
    own = np.random.default_rng(len(name) * 97 + len(function))  # alike in whatever order
    uniform = lambda low, high: own.uniform(low, high, 200)  # noqa: E731
    values, *shapes = (CONTINUOUS | DISCRETE)[name]
    if function == "entropy":
        values = None
    elif function in ("ppf", "isf"):
        values = uniform(-0.1, 1.1)
        if name in ("gumbel_l", "gumbel_r", "logistic", "pareto"):
            values = uniform(0, 1)
    args = [] if values is None else [values, ]
    args += shapes
    if name in CONTINUOUS and name not in PLAIN:
        args += [uniform(-0.5, 0.5), uniform(0.8, 1.5)]
    elif name in DISCRETE and not (name == "bernoulli" and function in ("cdf", "ppf")):
        args += [np.floor(uniform(-1, 2))]
    return args


def spread(function, args, eps):
    """How far values move when the last bit of an argument does."""
    args = [np.float64(x) for x in args]
    value = function(*args)
    moved = [function(*args[:i], x * (1 + eps), *args[i + 1:]) for i, x in enumerate(args)]
    return np.nan_to_num(np.max([abs(m - value) for m in moved], axis=0), nan=0, posinf=0)


@pytest.mark.parametrize("single", [True, False], ids=["single", "double"])
@pytest.mark.parametrize(("name", "function"), CASES, ids=[f"{n}.{f}" for n, f in CASES])
def test_values(name, function, single):
    dtype = np.float32 if single else np.float64
    args = [x.astype(dtype) for x in arguments(name, function)]
    with np.errstate(all="ignore"):
        want = getattr(getattr(reference, name), function)(*[np.float64(x) for x in args])
    with jax.enable_x64(not single):
        call = getattr(getattr(stats, name), function)
        got = np.asarray(call(*map(jnp.asarray, args)))
        if single:
            np.testing.assert_allclose(jax.jit(jax.vmap(call))(*args), got, rtol=1e-5)
    assert got.dtype == dtype
    tolerance = 2e-4 if single else 1e-10
    with np.errstate(all="ignore"):
        near = 4 * spread(getattr(getattr(reference, name), function), args, np.finfo(dtype).eps) \
            if name in CONTINUOUS else 0
        close = abs(got - want) <= tolerance * abs(want) + tolerance / 20 + near
    same = close | (got == want) | (np.isnan(got) & np.isnan(want))
    assert same.all(), (got[~same], want[~same])


@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_derivatives_are_finite_and_right(name):
    function = "logpdf" if name in CONTINUOUS else "logpmf"
    call = getattr(getattr(stats, name), function)
    values, *shapes = (CONTINUOUS | DISCRETE)[name]
    with jax.enable_x64(True):
        points = [jnp.asarray(x[:20]) for x in (values, *shapes)]
        places = [j for j in range(len(points)) if name in CONTINUOUS or (
            j and (name, j) not in (("binom", 1), ("betabinom", 1)))]
        for j in places:
            slopes = jax.jit(jax.vmap(jax.grad(call, argnums=j)))(*points)
            ends = [call(*points[:j], points[j] + step, *points[j + 1:]) for step in (-1e-6, 1e-6)]
            with np.errstate(invalid="ignore"):
                want = (np.asarray(ends[1]) - np.asarray(ends[0])) / 2e-6
            inside = np.isfinite(want)
            np.testing.assert_allclose(slopes[inside], want[inside], rtol=1e-4, atol=1e-6)


def test_integers_become_floats():
    assert stats.norm.logpdf(1).dtype == np.float32
    assert stats.poisson.pmf(jnp.arange(3), 2).dtype == np.float32
    assert float(stats.binom.pmf(2, 4, 0.5)) == pytest.approx(0.375)


def test_tails_do_not_underflow():
    assert float(stats.norm.logcdf(-50.0)) == pytest.approx(reference.norm.logcdf(-50), rel=1e-6)
    for method in ("pdf", "logcdf", "sf"):  # where (x - loc)/scale is none
        function = getattr(stats.truncnorm, method)
        assert np.isnan(function(1.0, -1.0, 2.0, loc=np.nan))
        assert np.isnan(function(np.inf, -1.0, 2.0, scale=np.inf))
    assert np.isnan(stats.uniform.pdf(np.inf, loc=np.inf))
    assert float(stats.truncnorm.logpdf(31.0, 30.0, 40.0)) == pytest.approx(
        reference.truncnorm.logpdf(31, 30, 40), rel=1e-5)
    assert float(stats.cauchy.cdf(-1e6)) == pytest.approx(reference.cauchy.cdf(-1e6), rel=1e-6)
    assert float(stats.expon.logcdf(1e-6)) == pytest.approx(reference.expon.logcdf(1e-6), rel=1e-6)
    assert float(stats.poisson.entropy(1e4)) == pytest.approx(
        0.5 * np.log(2 * np.pi * np.e * 1e4) - 1 / 12e4, rel=1e-6)


@pytest.mark.parametrize("dtype, rtol", [(np.float32, 3e-6), (np.float64, 1e-10)])
def test_the_entropy_of_poisson_where_its_series_begins(dtype, rtol):
    mu = np.concatenate([np.linspace(0.5, 25, 50), [79.5, 80.5, 120]])
    k = np.arange(400)
    p = reference.poisson.pmf(k, mu[:, None])
    log = np.where(p > 0, reference.poisson.logpmf(k, mu[:, None]), 0)
    with jax.enable_x64(True):
        got = stats.poisson.entropy(mu.astype(dtype))
    assert got.dtype == dtype
    np.testing.assert_allclose(got, -(p * log).sum(1), rtol=rtol)


@pytest.mark.parametrize("args", [
    (np.array([0.2, 0.3, 0.5]), np.array([1.0, 2.0, 3.5])),
    (np.array([0.2, 0.3]), np.array([1.0, 2.0, 3.5])),
    (np.array([[0.2, 0.1], [0.3, 0.4], [0.5, 0.5]]), np.array([1.0, 2.0, 3.5])),
])
def test_dirichlet(args):
    np.testing.assert_allclose(stats.dirichlet.logpdf(*args), reference.dirichlet.logpdf(*args),
                               rtol=1e-5)
    np.testing.assert_allclose(stats.dirichlet.pdf(*args), reference.dirichlet.pdf(*args),
                               rtol=1e-5)


def test_dirichlet_outside_and_refused():
    assert float(stats.dirichlet.logpdf(np.array([0.5, 0.6]), np.ones(2))) == -np.inf
    with pytest.raises(ValueError, match="one-dimensional"):
        stats.dirichlet.logpdf(np.ones(2) / 2, np.ones((2, 2)))
    with pytest.raises(ValueError, match="same number of entries"):
        stats.dirichlet.logpdf(np.ones(5) / 5, np.ones(2))


def test_multinomial():
    x, n, p = np.array([[1, 2, 0], [1, 1, 1]]), np.array([3, 4]), np.array([0.2, 0.3, 0.5])
    np.testing.assert_allclose(stats.multinomial.logpmf(x, n, p),
                               reference.multinomial.logpmf(x, n, p), rtol=1e-5)
    np.testing.assert_allclose(stats.multinomial.pmf(x, n, p), reference.multinomial.pmf(x, n, p),
                               rtol=1e-5)


def test_multivariate_normal():
    x, mean = rng.normal(size=(5, 3)), rng.normal(size=3)
    root = rng.normal(size=(3, 3))
    cov = root @ root.T + np.eye(3)
    for args in ((x, mean, cov), (x, mean, 2.0), (x[0], mean, cov)):
        np.testing.assert_allclose(stats.multivariate_normal.logpdf(*args),
                                   reference.multivariate_normal.logpdf(*args), rtol=1e-4)
        np.testing.assert_allclose(stats.multivariate_normal.pdf(*args),
                                   reference.multivariate_normal.pdf(*args), rtol=1e-4)
    np.testing.assert_allclose(stats.multivariate_normal.logpdf(x[:, 0], 0.5, 2.0),
                               reference.multivariate_normal.logpdf(x[:, 0], 0.5, 2.0), rtol=1e-4)
    slope = jax.jit(jax.grad(lambda c: stats.multivariate_normal.logpdf(x[0], mean, c)))(cov)
    assert np.isfinite(slope).all()
    with pytest.raises(ValueError, match="incompatible shapes"):
        stats.multivariate_normal.logpdf(x, mean, cov[:2])
    with pytest.raises(NotImplementedError):
        stats.multivariate_normal.logpdf(x, mean, cov, allow_singular=True)


# -- summaries -------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1, -1, None])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_mode(axis, keepdims, dtype):
    x = rng.integers(0, 4, (6, 9)).astype(dtype)
    got = stats.mode(x, axis, keepdims=keepdims)
    want = reference.mode(x, axis, keepdims=keepdims)
    np.testing.assert_array_equal(got.mode, want.mode)
    np.testing.assert_array_equal(got.count, want.count)


def test_mode_of_nothing_and_of_nan():
    got = stats.mode(jnp.zeros((0, 3)))
    assert np.isnan(got.mode).all() and got.count.tolist() == [0, 0, 0]
    assert not got.mode.weak_type
    nan = np.nan
    for x in ([1, nan, 1], [nan, 2, nan, 2, 1], [nan, 1, nan], [nan, nan], [1, nan]):
        want = reference.mode(np.array(x, np.float32))
        got = stats.mode(np.array(x, np.float32))
        np.testing.assert_array_equal(got.mode, want.mode)
        assert int(got.count) == want.count
    with pytest.raises(NotImplementedError):
        stats.mode(jnp.ones(3), nan_policy="omit")


@pytest.mark.parametrize("method", ["average", "min", "max", "dense", "ordinal"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_rankdata(method, axis):
    x = rng.integers(0, 5, (6, 9)).astype(np.float32)
    want = reference.rankdata(x, method, axis=axis)
    np.testing.assert_array_equal(stats.rankdata(x, method, axis=axis), want)
    x[0, 0] = np.nan
    got = stats.rankdata(x, method, axis=axis)
    np.testing.assert_array_equal(got, reference.rankdata(x, method, axis=axis))
    assert not got.weak_type
    for dtype in (bool, np.int8, jnp.bfloat16, np.complex64):
        assert stats.rankdata(jnp.zeros(3, dtype), method).dtype == np.float32
    with pytest.raises(ValueError, match="unknown method"):
        stats.rankdata(x, "median")


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("nan_policy", ["propagate", "omit"])
def test_sem(axis, ddof, nan_policy):
    x = rng.normal(size=(6, 9)).astype(np.float32)
    if nan_policy == "omit":
        x[1, 2] = np.nan
    got = stats.sem(x, axis, ddof=ddof, nan_policy=nan_policy)
    np.testing.assert_allclose(got, np.asarray(reference.sem(x, axis, ddof=ddof,
                                                             nan_policy=nan_policy)), rtol=1e-5)


# -- gaussian_kde ----------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("bw_method", [None, "silverman", 0.3, lambda kde: 0.4])
@pytest.mark.parametrize("weighted", [False, True])
def test_gaussian_kde(d, bw_method, weighted):
    data = rng.normal(size=(d, 30)).astype(np.float32)
    weights = rng.uniform(0.1, 1, 30).astype(np.float32) if weighted else None
    points = rng.normal(size=(d, 7)).astype(np.float32)
    got = stats.gaussian_kde(data, bw_method, weights)
    want = reference.gaussian_kde(data, bw_method, weights)
    np.testing.assert_allclose(got.covariance, want.covariance, rtol=1e-4)
    np.testing.assert_allclose(got.inv_cov, want.inv_cov, rtol=1e-4)
    np.testing.assert_allclose(got.neff, want.neff, rtol=1e-5)
    np.testing.assert_allclose(got(points), want(points), rtol=1e-4)
    np.testing.assert_allclose(jax.jit(lambda k, x: k.logpdf(x))(got, points), want.logpdf(points),
                               rtol=1e-4, atol=1e-5)
    mean, cov = np.zeros(d), np.eye(d) * 0.5
    np.testing.assert_allclose(got.integrate_gaussian(mean, cov),
                               want.integrate_gaussian(mean, cov), rtol=1e-4)
    np.testing.assert_allclose(got.integrate_kde(got), want.integrate_kde(want), rtol=1e-4)
    if d == 1:
        np.testing.assert_allclose(got.integrate_box_1d(-0.5, 0.7),
                                   want.integrate_box_1d(-0.5, 0.7), rtol=1e-4)


def test_gaussian_kde_refuses():
    with pytest.raises(ValueError, match="multiple elements"):
        stats.gaussian_kde(jnp.ones(1))
    with pytest.raises(ValueError, match="length n"):
        stats.gaussian_kde(jnp.arange(3.0), weights=jnp.ones(2))
    kde = stats.gaussian_kde(jnp.arange(3.0))
    with pytest.raises(NotImplementedError):
        kde.set_bandwidth("scott")
    with pytest.raises(ValueError, match="dimension"):
        kde(jnp.ones((2, 4)))


def test_gaussian_kde_resamples():
    data = rng.normal(size=(2, 30)).astype(np.float32)
    kde = stats.gaussian_kde(data)
    samples = kde.resample(jax.random.key(0), (4000,))
    assert samples.shape == (2, 4000)
    want = np.cov(data, bias=True) + kde.covariance
    np.testing.assert_allclose(np.cov(samples), want, atol=0.1)
    assert kde.resample(jax.random.key(0)).shape == (2,)


@pytest.mark.parametrize(("name", "function"), [c for c in CASES if c[1] != "entropy"],
                         ids=[f"{n}.{f}" for n, f in CASES if f != "entropy"])
def test_nan_and_bad_parameters_give_nan(name, function):
    shapes = [float(x[0]) for x in (CONTINUOUS | DISCRETE)[name][1:]]
    call = getattr(getattr(stats, name), function)
    assert np.isnan(call(np.nan, *shapes))
    if name in ("bernoulli", "geom", "binom"):
        for p in (-0.1, 1.1):
            assert np.isnan(call(0.0, *shapes[:-1], p))


@pytest.mark.parametrize(("name", "function"), [
    c for c in CASES if c[0] not in ("bernoulli", "cauchy", "logistic", "norm")])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # SciPy's, of scale=0
def test_parameters_outside_their_domain_give_nan(name, function):
    shapes = [float(x[0]) for x in (CONTINUOUS | DISCRETE)[name][1:]]
    args = shapes if function == "entropy" else [0.5, *shapes]
    call = getattr(getattr(stats, name), function)
    want = getattr(getattr(reference, name), function)
    located = name not in PLAIN and name in CONTINUOUS
    complete = [*args, 0.0, 1.0] if located else args
    parameters = range(len(args) - len(shapes), len(complete))
    assert not np.isnan(call(*complete))
    for i, bad in [(i, bad) for i in parameters for bad in (-1.0, 0.0, np.nan)]:
        spoilt = [*complete[:i], bad, *complete[i + 1:]]
        if np.isnan(want(*spoilt)) and not (name == "geom" and bad == 0):  # JAX's choice
            assert np.isnan(call(*spoilt)), spoilt


def test_ends_of_the_support():
    assert float(stats.gumbel_l.pdf(np.inf)) == float(stats.gumbel_r.pdf(-np.inf)) == 0
    assert float(stats.expon.pdf(0.0)) == float(stats.gamma.pdf(0.0, 1.0)) == 1
    assert float(stats.gamma.pdf(-1.0, 1.0)) == float(stats.beta.pdf(2.0, 1.0, 1.0)) == 0
    assert np.isnan(stats.wrapcauchy.pdf(1.0, 1.0)) and np.isnan(stats.pareto.ppf(-0.1, 1.0))


@pytest.mark.parametrize("name, shapes", [
    ("bernoulli", (0.3,)), ("binom", (5, 0.3)), ("poisson", (2.0,)), ("geom", (0.3,)),
    ("nbinom", (4, 0.3)), ("betabinom", (5, 2.0, 3.0))])
def test_there_is_no_probability_between_whole_numbers(name, shapes):
    """As in SciPy; slopes in k are those of the formula."""
    k = np.array([-1.5, -1, -0.25, 0, 0.25, 0.5, 1, 1.5, 2, 4.5, 5, 5.5, 6, np.nan])
    ours, theirs = getattr(stats, name), getattr(reference, name)
    for loc in (0, 1, 0.5, -0.5):
        for function in ("pmf", "logpmf"):
            np.testing.assert_allclose(getattr(ours, function)(k, *shapes, loc),
                                       getattr(theirs, function)(k, *shapes, loc),
                                       rtol=2e-4, atol=1e-6, err_msg=f"{function} {loc}")
            whole = np.arange(-1, 4)
            np.testing.assert_allclose(getattr(ours, function)(whole, *shapes, loc),
                                       getattr(theirs, function)(whole, *shapes, loc),
                                       rtol=2e-4, atol=1e-6)
    assert not np.isnan(jax.grad(lambda k: ours.logpmf(k, *shapes))(1.5))
    if name == "geom":
        assert jax.grad(ours.logpmf)(1.0, 0.3) == pytest.approx(np.log(0.7), rel=1e-6)


@pytest.mark.parametrize(("function", "edge", "args", "slope"), [
    ("expon.cdf", 0.0, (), 1.0), ("expon.sf", 0.0, (), -1.0), ("expon.logsf", 0.0, (), -1.0),
    ("pareto.cdf", 1.0, (1.5,), 1.5), ("pareto.logsf", 1.0, (1.5,), -1.5),
])
def test_slopes_at_the_edge_are_those_inside(function, edge, args, slope):
    name, _, function = function.partition(".")
    call = getattr(getattr(stats, name), function)
    assert jax.grad(call)(edge, *args) == pytest.approx(slope)
    assert jax.grad(call)(edge - 0.5, *args) == 0


@pytest.mark.parametrize(("name", "args"), [
    ("expon", ()), ("pareto", (1.5,)), ("gamma", (1.5,)), ("chi2", (2.0,)), ("beta", (1.5, 2.0))])
@pytest.mark.parametrize("function", ["cdf", "logcdf", "sf", "logsf"])
def test_no_slope_outside(name, args, function):
    call = getattr(getattr(stats, name), function)
    # of beta, the derivatives in the parameters are not there
    argnums = (0,) if name == "beta" else tuple(range(len(args) + 1))
    slopes = jax.jit(jax.grad(call, argnums))
    for x in (-0.5, 1.5) if name == "beta" else (-0.5,):
        assert not np.any(slopes(x, *args))


@pytest.mark.parametrize("name", ["cdf", "logcdf", "sf", "logsf"])
def test_the_normal_distribution_of_a_scalar_is_of_no_weak_type(name):
    assert not getattr(stats.norm, name)(0.5).weak_type


def test_weak_types() -> None:
    weak = jnp.broadcast_to(0.3, (2,))
    for result in (stats.cauchy.pdf(weak), stats.cauchy.isf(weak), stats.geom.pmf(weak, 0.3),
                   stats.bernoulli.cdf(weak, 0.3), stats.beta.cdf(weak, 2.0, 3.0),
                   stats.gamma.logpdf(weak, 2.0), stats.chi2.sf(x=weak, df=2.0)):
        assert not result.weak_type
    for result in (stats.cauchy.pdf(0.3), stats.cauchy.pdf(x=0.3), stats.gamma.sf(weak, 2.0)):
        assert result.weak_type


@pytest.mark.parametrize(("fun", "weak"), [
    (lambda w: stats.bernoulli.ppf(0.3, w), True), (lambda w: stats.bernoulli.ppf(w, w), False),
    (lambda w: stats.binom.logpmf(w, w, w), True), (lambda w: stats.binom.pmf(w, 3, 0.5), True),
    (lambda w: stats.chi2.cdf(0.3, jnp.arange(1, 3)), True),
    (lambda w: stats.chi2.pdf(jnp.arange(1, 3), 0.3), False),
    (lambda w: stats.logistic.pdf(0.3, w), False), (lambda w: stats.logistic.pdf(0.3), True),
    (lambda w: stats.t.logpdf(0.3, w), True), (lambda w: stats.t.pdf(w, 0.3), False),
    (lambda w: jax.jvp(lambda a: stats.gamma.sf(a, 2.0), (0.3,), (1.0,))[1], True),
    (lambda w: jax.grad(stats.norm.logcdf)(0.3), False),
])
def test_weak_types_of_scalars_beside_arrays(fun, weak):
    assert fun(jnp.broadcast_to(0.3, (2,))).weak_type is weak


Z = np.array([0.5 + 0.2j, -0.3 + 1j, 0.25])


@pytest.mark.parametrize(("fun", "want"), [
    ("norm.pdf", np.exp(-Z**2 / 2) / np.sqrt(2 * np.pi)),
    ("cauchy.logpdf", -np.log(np.pi * (1 + Z**2))),
    ("cauchy.cdf", 0.5 + np.arctan(Z) / np.pi),
    ("cauchy.logsf", np.log(0.5 - np.arctan(Z) / np.pi)),
    ("cauchy.ppf", [np.tan(np.pi * (Z[0] - 0.5)), np.nan, -1]),
    ("logistic.pdf", 0.25 / np.cosh(Z / 2)**2),
    ("logistic.cdf", 1 / (1 + np.exp(-Z))),
    ("logistic.isf", np.log((1 - Z) / Z)),
    ("expon.ppf", [-np.log(1 - Z[0]), np.nan, -np.log(0.75)]),
    ("uniform.pdf", [1, 0, 1]),
    ("uniform.ppf", [Z[0], np.nan, Z[2]]),
])
def test_complex_arguments(fun, want):
    """Complex numbers are ordered as NumPy does it: by real, then by imaginary parts."""
    module, name = fun.split(".")
    fun = getattr(getattr(jax.scipy.stats, module), name)
    got = fun(jnp.asarray(Z, "complex64"))
    assert got.dtype == "complex64"
    np.testing.assert_allclose(np.where(np.isnan(got), np.nan, got), want, rtol=3e-5)
    assert fun(0.5 + 0.2j).aval.weak_type
    if name not in ("ppf", "isf"):
        assert fun(jnp.zeros(2), 0.5j).dtype == "complex64"


@pytest.mark.parametrize("scale", [1j, -1j, 2 - 1j, -2 + 1j, -2 + 0j, 0.5j])
def test_the_normal_density_of_complex_scale(scale):
    """Of a scale and of its negative it is the same, by the root with a positive real part."""
    norm = jax.scipy.stats.norm
    want = -((1 - 0.5) / scale)**2 / 2 - (np.log(scale**2) + np.log(2 * np.pi)) / 2
    for given in (scale, jnp.asarray(scale)):
        np.testing.assert_allclose(norm.logpdf(1.0, 0.5, given), want, rtol=1e-5)
        np.testing.assert_allclose(norm.pdf(1.0, 0.5, given), np.exp(want), rtol=1e-5, atol=1e-7)
    got = norm.logpdf(jnp.array([1.0, 2j]), 0.5, -2.0)
    np.testing.assert_allclose(got[0], norm.logpdf(1.0, 0.5, 2.0), rtol=1e-5)


def test_calling_errors_are_those_of_python():
    with pytest.raises(TypeError, match="got multiple values for argument 'k'"):
        stats.bernoulli.pmf(1, p=0.5, k=3)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'k'"):
        stats.bernoulli.pmf(p=0.5)
    with pytest.raises(TypeError, match=r"bernoulli\.pmf requires ndarray or scalar arguments"):
        stats.bernoulli.pmf([0, 1], 0.5)


@pytest.mark.parametrize("scale", [-2.0, 2.0])
def test_the_sign_of_a_scale(scale):
    x = np.array([-2, 0, 1, 5, 1e5], np.float32)
    y = (x.astype(float) - 1) / scale
    stats = jax.scipy.stats
    np.testing.assert_allclose(stats.norm.pdf(x, 1, scale),
                               np.exp(-y * y / 2) / np.sqrt(8 * np.pi), rtol=1e-5)
    for name, want in (("cdf", np.arctan2(1, -y) / np.pi), ("sf", np.arctan2(1, y) / np.pi)):
        np.testing.assert_allclose(getattr(stats.cauchy, name)(x, 1, scale), want, rtol=1e-5)
        np.testing.assert_allclose(getattr(stats.cauchy, f"log{name}")(x, 1, scale), np.log(want),
                                   rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("name", "x", "want"), [
    ("expon.ppf", (1e-30, 3e-8, 0.3, 0.5, 0.75, 0.99), lambda q: -np.log1p(-q)),
    ("expon.cdf", (1e-30, 1e-4, 0.1, 0.7, 3, 100), lambda y: -np.expm1(-y)),
    ("expon.logcdf", (1e-30, 1e-4, 0.1, 0.69, 0.7, 3, 80), reference.expon.logcdf),
    ("gumbel_r.sf", (-9, -1, 0, 2, 9, 60), lambda y: -np.expm1(-np.exp(-y))),
    ("cauchy.cdf", (-1e30, -9, -1, -0.3, 0, 0.3, 1, 9, np.inf),
     lambda y: np.arctan2(1, -y) / np.pi),
    ("logistic.ppf", (1e-30, 0.2, 0.43, 0.44, 0.56, 0.9), lambda q: np.log(q / (1 - q))),
])
def test_both_tails_have_all_digits(name, x, want):
    of, _, name = name.partition(".")
    x = np.array(x, np.float32)
    np.testing.assert_allclose(getattr(getattr(stats, of), name)(x), want(x.astype(float)),
                               rtol=6e-7)
    with jax.enable_x64(True):
        x = x.astype(float)
        np.testing.assert_allclose(getattr(getattr(stats, of), name)(x), want(x), rtol=2e-14)


def test_pareto_of_an_infinite_exponent_at_its_edge():
    of = [getattr(stats.pareto, name)(2.0, jnp.inf, 0.0, 2.0)
          for name in ("cdf", "logcdf", "sf", "logsf")]
    assert [float(value) for value in of] == [0, -np.inf, 1, 0]


def test_truncated_normal_distributions_of_narrow_intervals():
    truncnorm, width = stats.truncnorm, np.float32(1e-10)
    np.testing.assert_allclose(truncnorm.logpdf(np.float32(0), np.float32(0), width),
                               -np.log(width), rtol=1e-6)
    density = reference.truncnorm.pdf(0, -1, 3)
    np.testing.assert_allclose(truncnorm.sf(np.float32(2), np.float32(-1), 2 + np.float32(1e-3)),
                               reference.truncnorm.sf(2, -1, 2 + np.float32(1e-3)), rtol=1e-3)
    np.testing.assert_allclose(
        truncnorm.cdf(width, np.float32(0), np.float32(3)),
        reference.truncnorm.pdf(0, 0, 3) * width, rtol=1e-6)
    slope = jax.grad(lambda x: truncnorm.cdf(x, -1.0, 3.0))(0.0)
    np.testing.assert_allclose(slope, density, rtol=1e-5)
    # with the whole line there is no slope in its ends
    assert jax.grad(truncnorm.logpdf, (1, 2))(0.5, -jnp.inf, jnp.inf) == (0, 0)


@pytest.mark.parametrize("mapped", [False, True])
def test_one_covariance_is_solved_with_once(mapped):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((50, 3)).astype(np.float32)
    cov = np.float32([[2, 0.3, 0.1], [0.3, 1, 0.2], [0.1, 0.2, 1.5]])
    call = stats.multivariate_normal.logpdf
    call = jax.vmap(call, (0, None, None)) if mapped else call
    compiled = jax.jit(call).lower(x, np.zeros(3, np.float32), cov).compile()
    np.testing.assert_allclose(compiled(x, np.zeros(3, np.float32), cov),
                               reference.multivariate_normal.logpdf(x, np.zeros(3), cov),
                               rtol=1e-5)
    assert "f32[50,3,3]" not in compiled.as_text()


def test_multivariate_normal_of_no_dimensions():
    logpdf = jax.scipy.stats.multivariate_normal.logpdf
    assert logpdf(jnp.ones((2, 0)), jnp.zeros(0), jnp.eye(0)).tolist() == [0, 0]
