"""Dtypes and weak types of results where arguments are of several, with 64-bit types on."""

from functools import partial

import numpy as np
import pytest
from scipy.linalg import hessenberg, polar, schur
from scipy.special import expit, spence

import pyjx as jax
import pyjx.numpy as jnp

pytestmark = pytest.mark.usefixtures("x64")


@pytest.fixture
def x64():
    with jax.enable_x64(True):
        yield


def ones(dtype, weak=False):
    return jax.ShapeDtypeStruct((2,), jnp.dtype(dtype), weak_type=weak)


def typed(fun, *args):
    return [f"{x.dtype}{'*' if x.weak_type else ''}"
            for x in jax.tree.leaves(jax.eval_shape(fun, *args))]


first = np.array([0])
UNSAFE = "ignore:scatter inputs:FutureWarning"


@pytest.mark.parametrize(("fun", "x", "y", "want"), [
    (lambda x, y: jnp.logaddexp.at(x, first, y[:1], inplace=False), "int8", "float16", "float16"),
    (lambda x, y: jnp.maximum.at(x, first, y[:1], inplace=False), "int32", "float32", "float32"),
    (lambda x, y: jnp.maximum.at(x, first, 1.5, inplace=False), "int32", "bool", "float64"),
    (lambda x, y: jnp.logical_and.at(x, first, y[:1], inplace=False), "int8", "int8", "bool"),
    (lambda x, y: jnp.add.at(x, first, y[:1], inplace=False), "bool", "bool", "bool"),
    (lambda x, y: jnp.histogram(x, 3, weights=y)[0], "int32", "float16", "float16"),
    (lambda x, y: jnp.cov(x, aweights=y), "bool", "int64", "float32"),
    (lambda x, y: jnp.cov(x, aweights=y), "float16", "int8", "float16"),
    (lambda x, y: jnp.quantile(x, 0.5, weights=y, method="inverted_cdf"), "float16", "float64",
     "float64"),
    (lambda x, y: jnp.unravel_index(x, y)[0], "uint8", "int64", "int64"),
    (lambda x, y: jnp.bitwise_or.reduce(x, initial=y[0]), "int32", "float32", "int32"),
    (lambda x, y: jnp.dot(x, y, preferred_element_type="float32"), "complex64", "bool", "float32"),
    (lambda x, y: jnp.einsum("i,i", x, y, preferred_element_type="int32"), "complex64", "int8",
     "int32"),
    (lambda x, y: jax.nn.softmax(x, where=y), "int32", "bool", "float64"),
    (lambda x, y: jax.nn.log_softmax(x, where=y), "bool", "bool", "float64"),
    (lambda x, y: jax.nn.standardize(x, mean=y, variance=y), "int8", "float16", "float16"),
    (lambda x, y: jax.nn.standardize(x, mean=y, variance=y), "int8", "int8", "float64*"),
    (lambda x, y: jax.scipy.special.sph_harm_y(np.array([1]), np.array([0]), x, y, n_max=1),
     "float32", "float16", "complex128"),
    (lambda x, y: jax.scipy.stats.norm.ppf(x, y), "float32", "float32", "float64"),
    (lambda x, y: jax.scipy.stats.norm.isf(x, y), "float32", "int32", "float64"),
    (lambda x, y: jnp.sum(x, promote_integers=False), "bool", "bool", "int32"),
    (lambda x, y: jnp.var(x, dtype=y.dtype), "float32", "int32", "float64*"),
    (lambda x, y: jnp.nanvar(x, dtype=y.dtype), "float32", "int32", "int32"),
    (lambda x, y: jax.nn.logsumexp(x, where=y), "bool", "bool", "float64"),
    (lambda x, y: jnp.unwrap(x, period=y[0]), "bool", "bool", "float64"),
    (lambda x, y: jnp.convolve(x, x, preferred_element_type=y.dtype), "int8", "int32", "int32"),
    (lambda x, y: jnp.correlate(x, x, preferred_element_type=y.dtype), "bool", "int8", "int8"),
], ids=range(27))
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_dtypes_of_two(fun, x, y, want):
    assert typed(fun, ones(x), ones(y)) == [want]


@pytest.mark.parametrize(("fun", "x", "y", "want"), [
    (lambda x, y: jnp.choose(0, [x, y], mode="clip"), "int64*", "int64", "int64"),
    (lambda x, y: jnp.place(x, np.array([True, False]), y, inplace=False), "int64*", "int64",
     "int64*"),
    (lambda x, y: jnp.setdiff1d(x, y, size=2), "complex128*", "bool", "complex128"),
    (lambda x, y: jnp.compress(y, x, size=2), "int64*", "bool", "int64"),
    (lambda x, y: x.view(y.dtype), "complex128*", "float64", "float64"),
    (lambda x, y: jnp.trapezoid(x, dx=np.float16(1)), "float64*", "bool", "float64"),
    (lambda x, y: jnp.polyfit(x, y, 1), "float64*", "float32", "float64"),
    (lambda x, y: jnp.logaddexp.outer(x, y), "complex128*", "int32", "complex128*"),
    (lambda x, y: jax.lax.reduce(x, 1.0, jax.lax.add, (0,)), "float64*", "bool", "float64*"),
    (lambda x, y: jax.lax.polynomial(2, y), "bool", "int64", "int64"),
    (lambda x, y: x + 1, "float16*", "bool", "float16*"),
    (lambda x, y: jnp.cov(x, aweights=y), "int64*", "bfloat16", "bfloat16"),
    (lambda x, y: jnp.polyfit(y, x, 1), "float64*", "float32", "float32"),
    (lambda x, y: jnp.pad(x, 1, "linear_ramp"), "int64*", "bool", "int64*"),
    (lambda x, y: jnp.take(x, np.arange(0)), "int64*", "bool", "int64*"),
    (lambda x, y: jnp.unwrap(x[:0], period=y[0]), "int64*", "int64", "int64"),
    (lambda x, y: jnp.add.reduceat(x, first, dtype=int), "int64*", "bool", "int64"),
    (lambda x, y: jnp.add.reduceat(x, first), "int64*", "bool", "int64*"),
    (lambda x, y: jax.lax.dot(x, x, preferred_element_type=y.dtype), "complex128*", "float64",
     "float64*"),
    (lambda x, y: jax.lax.fori_loop(x[0], y[0], lambda i, c: i, y[0]), "int64*", "int64",
     "int64*"),
    (lambda x, y: jax.scipy.special.gamma(x[0]), "complex128*", "bool", "complex128"),
    (lambda x, y: jax.scipy.special.logit(x), "complex128*", "bool", "complex128"),
    (lambda x, y: jax.scipy.stats.mode(x)[0], "complex128*", "bool", "complex128"),
    (lambda x, y: jax.scipy.stats.mode(x)[0], "float64*", "bool", "float64*"),
], ids=range(24))
def test_weak_types_of_two(fun, x, y, want):
    assert typed(fun, ones(x.strip("*"), x.endswith("*")), ones(y)) == [want]


def test_what_is_put_into_arrays_that_cannot_hold_it():
    x = jnp.zeros((2, 2), int)
    for call in (lambda: jnp.place(x, x == 0, 1.5, inplace=False),
                 lambda: jnp.put(x, first, 1.5, inplace=False),
                 lambda: jnp.fill_diagonal(x, 1.5, inplace=False)):
        with pytest.warns(FutureWarning, match="cannot safely cast"):
            assert call().dtype == x.dtype


@pytest.mark.parametrize("full_like", [jnp.full_like, jax.lax.full_like])
def test_complex_numbers_that_fill_what_is_weak(full_like):
    with pytest.warns(np.exceptions.ComplexWarning):
        assert full_like(1, 2 + 3j).tolist() == 2
    with pytest.raises(TypeError, match="take its real part"):
        full_like(jnp.arange(2), 2 + 3j)


def test_strict_promotion_is_of_what_users_combine():
    """What is computed with indices and masks inside of a function is none of their business."""
    x, truths = jnp.arange(3.0), np.array([True, False, True])
    with jax.numpy_dtype_promotion("strict"):
        first = jnp.zeros(1, "int8")
        assert jax.jit(lambda i: jnp.delete(x, i, assume_unique_indices=True))(first).size == 2
        assert jnp.insert(x, first, 5.0).tolist() == [5, 0, 1, 2]
        assert jnp.place(x, truths, x, inplace=False).tolist() == [0, 1, 1]
        assert jax.jit(jnp.roll)(x, True).tolist() == [2, 0, 1]
        assert jnp.arange(2).at[0].set(True).tolist() == [1, 1]
        z = jnp.array([1, 2j, 3])
        assert jnp.corrcoef(z, z[::-1]).dtype == jnp.polyfit(z, z, 1).dtype == z.dtype
        with pytest.raises(ValueError, match="promotion path"):
            x.at[0].set(True)


def test_values_in_other_dtypes():
    truths = jnp.array([True, False, True])
    for dtype in ("int8", "int32", "float32", "complex64"):
        got = jnp.convolve(truths, truths, preferred_element_type=dtype)
        assert got.tolist() == [1, 0, 2, 0, 1]
    assert jnp.convolve(jnp.array([2**62, 1]), jnp.array([1, 2]),
                        preferred_element_type=int).tolist() == [2**62, 2**63 + 1 - 2**64, 2]
    x = jnp.array([1.0, 2.0, 6.0])
    # In whole numbers: (-2)**2 + (-1)**2 + 3**2 is 14, divided by 3 or 2.
    assert float(jnp.var(x, dtype=int)) == 4 and float(jnp.var(x + 0.5, dtype="int8")) == 4
    assert float(jnp.var(x, dtype=int, where=truths)) == 6
    assert float(jnp.var(x, dtype=int, ddof=1)) == 7
    assert np.isnan(jnp.var(x, dtype=int, ddof=3))
    assert float(jnp.nanvar(x, dtype=int)) == 4
    assert float(jnp.nanvar(x, dtype=int, ddof=0.5)) == 5
    assert jnp.nanvar(x, dtype="uint8").dtype == "uint8"
    assert jnp.nanvar(1.5, where=truths).tolist()[::2] == [0, 0]
    assert jnp.unwrap(truths, period=True).tolist() == [1, 1, 1]
    assert truths.at[1].apply(lambda v: v + 1).tolist() == [True, True, True]
    assert isinstance(jnp.pad(1, 1, "linear_ramp"), jax.Array)
    with pytest.raises(TypeError, match="sqrt does not accept"):
        jnp.nanstd(x, dtype=int)


def test_degrees_of_freedom():
    x = jnp.array([1.0, 2.0, 6.0])
    for ddof, expected in ((0.5, 4.0), (1.5, 7.0)):  # as many as are whole: 14 / 3 and 14 / 2
        given = partial(jnp.var, x, dtype=int)
        assert float(given(ddof=ddof)) == float(jax.jit(given)(ddof=ddof)) == expected
    for ddof in (np.array([0, 1]), jnp.array([0, 1])):
        assert jnp.var(x, ddof=ddof).tolist() == pytest.approx([14 / 3, 7])
        assert jnp.std(x, correction=ddof).shape == (2,)
    assert float(jnp.var(x, ddof=0, correction=1)) == 7
    with pytest.raises(TypeError, match=r"var\(ddof=...\) requires"):
        jnp.var(x, ddof=[0, 1])


def test_weights_of_observations_are_positive():
    x = jnp.array([1.0, 2.0, 4.0])
    assert jnp.cov(x, aweights=jnp.array([-1.0, 2.0, 3.0])) == jnp.cov(
        x, aweights=jnp.array([1.0, 2.0, 3.0]))


@pytest.mark.filterwarnings(UNSAFE)
def test_real_parts_as_booleans():
    x = jnp.array([1j, 2.0])
    for call in (lambda: jax.lax.convert_element_type(x, bool), lambda: jnp.array(x, bool),
                 lambda: jnp.zeros(2, bool).at[:].set(x)):
        with pytest.warns(np.exceptions.ComplexWarning):
            assert call().tolist() == [False, True]
    assert x.astype(bool).all() and jnp.array(np.array(x), bool).all() and jnp.any(x[:1])
    assert jnp.cumsum(x[:1], dtype=bool).all() and jnp.nonzero(x)[0].tolist() == [0, 1]


def test_sums_and_products_at_places_of_booleans():
    false, true, place = jnp.zeros(1, bool), jnp.ones(1, bool), np.zeros(1, int)
    many = np.zeros(256, int)
    assert jnp.add.at(false, many, np.ones(256, bool), inplace=False).tolist() == [True]
    for value in (256, 0.5, -1):
        assert jnp.add.at(false, place, np.array([value]), inplace=False).tolist() == [True]
        assert jnp.add.at(true, place, np.array([value]), inplace=False).tolist() == [True]
        assert jnp.multiply.at(true, place, np.array([value]), inplace=False).tolist() == [True]
    assert jnp.multiply.at(true, place, np.array([0]), inplace=False).tolist() == [False]


def test_least_of_large_unsigned_integers():
    x = jnp.array([2**64 - 1, 5], "uint64")
    assert int(jnp.min(x, initial=9, where=x > 9)) == 9
    assert jnp.bincount(jnp.array([1, 1], "uint8")).tolist() == [0, 2]


def test_fills_that_are_traced():
    fill = jax.jit(lambda v: jnp.extract(jnp.array([True, False]), jnp.arange(2), size=2,
                                         fill_value=v))
    assert fill(7).tolist() == [0, 7]
    nan = jax.jit(lambda x, v: jnp.nan_to_num(x, nan=v))
    assert nan(jnp.nan, jnp.arange(2.0)).tolist() == [0, 1]


def test_sizes_that_are_traced():
    assert [i.item() for i in jax.jit(jnp.unravel_index)(-1, jnp.array([2, 3]))] == [1, 2]
    assert [i.item() for i in jnp.unravel_index(np.uint8(9), np.array([2, 3], np.uint8))] == [1, 2]
    assert jnp.delete(jnp.arange(3), True).tolist() == [0, 2]


def test_numbers_in_strings():
    assert jnp.float32("1.5") == 1.5
    with pytest.raises((TypeError, ValueError)):
        jnp.bfloat16("a")


def test_what_has_no_type_is_refused():
    with pytest.raises(ValueError, match="dtype must be specified"):
        jax.lax.iota(None, 3)
    with pytest.raises(TypeError, match="q must be real"):
        jnp.quantile(jnp.arange(3.0), 1j)
    with pytest.raises(ValueError, match="cannot safely cast"):
        jax.random.beta(jax.random.key(0), 1j, 1.0)


def test_strict_promotion_is_of_the_operands_and_not_of_results_so_far():
    count = jnp.broadcast_to(jnp.asarray(2), (3,))
    with jax.numpy_dtype_promotion("strict"):
        assert jnp.logical_and.at(jnp.array([3, 2], "int8"), first, 1, inplace=False).all()
        got = jnp.logaddexp.at(jnp.array([1, 1], "int8"), first, jnp.int8(1), inplace=False)
        np.testing.assert_allclose(got, [1 + np.log(2), 1], rtol=1e-6)
        assert jnp.cov(jnp.array([1.0, 2.0, 4.0], "float32"), fweights=count).dtype == "float32"
        assert jax.scipy.special.sph_harm_y(
            jnp.array([1]), jnp.broadcast_to(0, (1,)), jnp.array([0.5]), jnp.array([0.5]),
            n_max=1).dtype == "complex128"


def test_sizes_that_are_truth_values_or_floats():
    small = jnp.array([1, 2], "int8")
    for size, dtype in ((True, "int8"), (np.bool_(True), "int64"), (jnp.array([True]), "int8"),
                        (3.0, "float64")):
        (index,) = jnp.unravel_index(small, size)
        assert index.dtype == dtype and index.weak_type is isinstance(size, float)
    assert jnp.unravel_index(jnp.array([True]), jnp.array([True]))[0].dtype == "int32"
    assert [i.item() for i in jnp.unravel_index(3, [2.0, 2.0])] == [1.0, 1.0]
    mixed = jnp.unravel_index(3, (np.int8(2), 3))
    assert [i.item() for i in mixed] == [1, 0] and mixed[0].dtype == "int8"
    assert [i.item() for i in jax.jit(lambda n: jnp.unravel_index(3, (n, 2)))(2)] == [1, 1]


def test_determinants_of_small_matrices_of_any_float_dtype():
    for dtype in ("float16", "bfloat16"):
        x = jnp.array([[2, 3], [1, 5]], dtype)
        assert jnp.linalg.det(x) == 7 and jnp.linalg.det(x).dtype == dtype
        with pytest.raises(TypeError, match="det does not accept"):
            jnp.linalg.det(jnp.zeros((4, 4), dtype))


def test_decompositions_of_weak_numbers():
    weak = jnp.where(np.eye(2, dtype=bool), 2, 0)
    for x in (weak, jnp.eye(2, dtype=bool)):
        assert typed(jax.lax.linalg.cholesky, x) == ["float64*"]
        assert typed(jax.lax.linalg.eigh, x) == ["float64*", "float64*"]
    assert typed(jax.lax.linalg.qdwh, jnp.eye(2))[2] == "int64*"
    assert typed(jax.scipy.signal.istft, jnp.ones((3, 2), "int64")) == ["float64", "float64"]
    assert typed(jax.scipy.signal.istft, jnp.ones((3, 2), "int32")) == ["float32", "float32"]


def test_cotangents_of_weak_arguments():
    weak, strong = ones("float64", weak=True), ones("float64")
    stats = jax.scipy.stats

    def cotangents(fun, *args):
        return typed(lambda *xs: (lambda y, back: back(y))(*jax.vjp(fun, *xs)), *args)

    for fun in (stats.norm.logpdf, stats.cauchy.cdf, stats.laplace.pdf, stats.logistic.ppf):
        assert cotangents(fun, weak) == ["float64"]
    assert cotangents(stats.norm.logpdf, weak, weak) == ["float64", "float64"]
    for fun in (stats.chi2.cdf, stats.gamma.cdf, stats.bernoulli.pmf):
        assert cotangents(fun, weak, weak) == ["float64", "float64*"]
        assert cotangents(fun, weak, strong) == ["float64*", "float64"]
    for fun in (stats.bernoulli.pmf, stats.geom.pmf):
        assert typed(lambda k, p, fun=fun: fun(k, p, 1), ones(bool), ones(bool)) == ["float64"]
    square = jax.ShapeDtypeStruct((2, 2), jnp.dtype("float64"), weak_type=True)
    for fun in (jnp.linalg.inv, jnp.linalg.norm, jnp.linalg.matrix_norm, jnp.linalg.vector_norm):
        assert cotangents(fun, square) == ["float64*"]


def test_jacobians_of_results_that_have_none_are_zeros_of_their_dtypes():
    x = jnp.array([1.0, 2.0])
    jacobian = jax.jacfwd(lambda x: (jnp.argsort(x), jnp.argmax(x)))(x)
    assert [y.dtype for y in jacobian] == ["int64", "int64"]
    assert [y.shape for y in jacobian] == [(2, 2), (2,)] and not jnp.any(jacobian[0])
    with pytest.raises(TypeError, match=r"jacfwd: .* dtype bool, which have no derivative"):
        jax.jacfwd(lambda x: x > 1)(x)


def test_weak_types_of_matrices_and_rotations():
    weak, square = ones("float64", weak=True), jax.ShapeDtypeStruct((3, 3), "float64",
                                                                    weak_type=True)
    for mode in ("maximum", "minimum", "mean", "median"):
        assert typed(lambda x, mode=mode: jnp.pad(x, 1, mode), weak) == ["float64*"]
    assert typed(jnp.linalg.slogdet, square) == ["float64", "float64"]
    assert typed(lambda x: jnp.linalg.slogdet(x[:2, :2]), square) == ["float64*", "float64*"]
    assert typed(lambda x: jax.jvp(jnp.linalg.slogdet, (x,), (x,)), square) == ["float64"] * 4
    assert typed(lambda x: jax.scipy.linalg.convolution_matrix(x, 2), weak) == ["float64"]
    turned = jax.scipy.linalg.schur(jnp.broadcast_to(1j, (2, 2)), output="complex")
    assert [x.weak_type for x in turned] == [False, False]
    rotation = jax.scipy.spatial.transform.Rotation
    for form, want in (("as_quat", "*"), ("as_rotvec", "*"), ("magnitude", "*"),
                       ("as_matrix", "")):
        assert typed(lambda x, form=form: getattr(rotation.from_quat(jnp.tile(x, 2)), form)(),
                     weak) == ["float64" + want]
    assert typed(lambda x: rotation.from_euler("x", x[0]).quat, weak) == ["float64"]


@pytest.mark.parametrize(("name", "count", "strong"), [
    ("beta.logpdf", 5, (0,)), ("beta.pdf", 3, (0,)), ("nbinom.logpmf", 4, (0,)),
    ("betabinom.logpmf", 5, (0, 4)), ("chi2.cdf", 4, (0, 3)), ("chi2.logsf", 4, (0, 3)),
])
def test_which_weak_arrays_make_densities_strong(name, count, strong):
    family, form = name.split(".")
    fun = getattr(getattr(jax.scipy.stats, family), form)
    for place in range(count):
        args = [0.5] * place, [0.5] * (count - place - 1)
        want = "float64" if place in strong else "float64*"
        assert typed(lambda x, args=args: fun(*args[0], x, *args[1]),
                     ones("float64", weak=True)) == [want]


def test_determinants_of_halves_have_logarithms():
    for dtype in ("float16", "bfloat16"):
        sign, logarithm = jnp.linalg.slogdet(jnp.array([[200, 0], [0, -400]], dtype))
        assert sign == -1 and sign.dtype == logarithm.dtype == dtype
        assert abs(float(logarithm) - np.log(80000)) < 0.05
        with pytest.raises(TypeError, match="slogdet does not accept"):
            jnp.linalg.slogdet(jnp.eye(3, dtype=dtype))


def test_integers_that_only_the_array_holds():
    for x64, dtype, value in ((False, "uint32", 2**31), (True, "uint64", 2**63)):
        with jax.enable_x64(x64):
            x = jnp.zeros(3, dtype)
            for y in (x.at[0].set(value), x.at[0].add(value),
                      jax.jit(lambda x, value=value: x.at[0].max(value))(x)):
                assert y.dtype == dtype and y.tolist() == [value, 0, 0]
            with pytest.raises(OverflowError):
                jnp.zeros(3, dtype.removeprefix("u")).at[0].set(value)
            with pytest.raises(OverflowError):
                x.at[0].set(2 * value)


def test_infinity_in_integers_is_the_last_of_them():
    for dtype in ("int8", "uint8", "int64"):
        x = jnp.array([1, 0, 3, 1], dtype)
        highest = jax.lax.reduce_window(x, -np.inf, jax.lax.max, (2,), (1,), "SAME")
        lowest = jax.lax.reduce_window(x, np.inf, jax.lax.min, (2,), (1,), "SAME")
        assert highest.dtype == lowest.dtype == dtype
        assert highest.tolist() == [1, 3, 3, 1] and lowest.tolist() == [0, 0, 1, 1]
        assert jax.lax.reduce(x, -np.inf, jax.lax.max, (0,)) == 3


def test_types_of_densities_and_fits():
    assert typed(lambda x, y, w: jnp.histogram2d(x, y, 3, weights=w)[0], ones("uint8"),
                 ones(bool), ones("bfloat16")) == ["bfloat16"]
    assert typed(lambda x, y, w: jnp.histogram2d(x, y, 3, weights=w)[0],
                 ones("float64", weak=True), ones("uint8"), ones("float16")) == ["float64"]
    assert typed(lambda x, w: jnp.polyfit(x, x, 1, w=w), ones("float16"),
                 ones("uint8")) == ["float32"]
    grid = jax.scipy.interpolate.RegularGridInterpolator
    for method in ("linear", "nearest"):
        fit = lambda v, method=method: grid((np.arange(2.0, dtype="float32"),), v, method)(  # noqa: E731
            np.array([0.5], "float32"))
        assert typed(fit, ones("int64", weak=True))[0].endswith("*") is (method == "nearest")
        assert typed(fit, ones("float16")) == [
            "float32" if method == "linear" else "float16"]
    frequencies, power = jax.scipy.signal.csd(jnp.array([1.0, -1, 1]), None, nperseg=3)
    assert frequencies.dtype == power.dtype == "float64"


def test_shapes_of_pieces_and_means():
    choice = jnp.array([True, False, True])
    assert jnp.piecewise(1, [choice], [2, 3]).tolist() == [2, 3, 2]
    assert jnp.piecewise(jnp.arange(3.0), [choice[:, None]], [lambda x: x, 7]).tolist() == [
        [0, 1, 2], [7, 7, 7], [0, 1, 2]]
    assert jnp.nanvar(2.0, where=True, mean=jnp.array([1.0, 3.0])) == 2


def test_strict_promotion_is_not_of_the_dtype_that_is_asked_for():
    small, single = jnp.array([1, 2, 4], "int8"), jnp.array([1.0, 2, 4], "float32")
    with jax.numpy_dtype_promotion("strict"):
        assert jnp.var(small, dtype="float16").dtype == "float16"
        assert jnp.linspace(small[0], single[0], 3, dtype="int32").dtype == "int32"
        assert jnp.geomspace(small[0], single[2], 3, dtype="float16").tolist() == [1, 2, 4]
        with pytest.raises(ValueError, match="promotion path"):
            jnp.linspace(small[0], single[0], 3)
        assert jnp.add.reduceat(single, small[:1]).tolist() == [6]
        assert jnp.logical_and.reduce(single, initial=small[0]).tolist() is True
        assert jnp.logical_or.reduce(single, initial=0.0).tolist() is True
        assert jnp.logical_or.reduce(single, initial=False).tolist() is True
        assert jnp.logical_xor.reduce(single > 1, initial=True).tolist() is True
        assert jnp.fft.fftfreq(3, small[1]).dtype == "float64"
        assert jax.scipy.signal.csd(small, small, nperseg=3)[1].dtype == "complex64"
        assert jax.scipy.signal.stft(small, 2, nperseg=3, noverlap=1)[2].dtype == (
            "complex64")


def test_no_truth_value_is_weak():
    weak, number = ones("float64", weak=True), 2.5
    for call in (lambda x: jnp.logical_and.reduce(x, initial=number),
                 lambda x: jnp.logical_or.reduce(x, initial=number),
                 lambda x: jnp.isin(x, x, method="sort")):
        assert typed(call, weak) == ["bool"]
    assert jax.scipy.linalg.leslie(jnp.array([1, 2]), jnp.array([True])).dtype == "int64"


special, stats, signal = jax.scipy.special, jax.scipy.stats, jax.scipy.signal
COUNTS, ODDS = np.array([1, 2], "int8"), np.array([0.25, 0.75], "float32")


@pytest.mark.parametrize(("fun", "x", "y", "want"), [
    (lambda x, y: jax.lax.mul(x, y, out_dtype="float32"), "int8", "float64", "float32"),
    (lambda x, y: jnp.fft.fftfreq(3, x[0]), "complex64", "int8", "float64"),
    (lambda x, y: jnp.fft.fftfreq(3, x[0]), "float8_e5m2", "int8", "float64"),
    (lambda x, y: jnp.var(x, dtype=y.dtype), "float8_e5m2", "bfloat16", "bfloat16"),
    (lambda x, y: jnp.dot(x, y, preferred_element_type="float32"), "complex64", "int4", "float32"),
    (lambda x, y: jnp.einsum("i,i", x, y, preferred_element_type="float32"), "uint4", "complex64",
     "float32"),
    (lambda x, y: jnp.inner(x[0], y, preferred_element_type="float32"), "uint4", "float16",
     "float32"),
    (lambda x, y: jnp.logaddexp2.reduce(x), "int8", "int8", "float64"),
    (lambda x, y: jnp.logaddexp.reduce(x), "int8", "int8", "float32"),
    (lambda x, y: jnp.polyfit(x, y, 1, rcond=0.5), "int32", "float32", "float64"),
    (lambda x, y: jnp.polyfit(x, y, 1, rcond=True), "float32", "int32", "float32"),
    (lambda x, y: jnp.einsum("ii->i", jnp.outer(x, y)), "bool", "bool", "bool"),
    (lambda x, y: stats.multinomial.logpmf(x, 3, y), "int4", "uint4", "float32"),
    (lambda x, y: signal.welch(x, y[0], nperseg=2)[0], "float32", "complex128", "float32"),
    (lambda x, y: signal.welch(x, y[0], nperseg=2)[1], "complex64", "float64", "float32"),
    (lambda x, y: signal.stft(x, y[0], nperseg=2)[1], "bool", "float64", "float64"),
    (lambda x, y: jnp.stack(jax.scipy.linalg.schur(jnp.outer(x, y), "complex")), "bfloat16",
     "bfloat16", "complex64"),
])
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.filterwarnings("ignore:Input data is complex")
def test_dtypes_of_two_beside_the_default(fun, x, y, want):
    assert typed(fun, ones(x), ones(y)) == [want]


@pytest.mark.parametrize(("fun", "x", "y", "want"), [
    (lambda x, y: jax.lax.mul(x, y, out_dtype="int32"), "float64", "float64", "int32*"),
    (lambda x, y: jnp.polyfit(jnp.ones(2, "float32"), jnp.ones(2, "float32"), 1, w=y), "float32",
     "int64", "float32"),
    (lambda x, y: stats.multivariate_normal.logpdf(y[0], y, 1.0), "int64", "int64", "float64*"),
    (lambda x, y: jax.scipy.fft.dctn(x[0]), "int64", "int64", "int64*"),
    *[(lambda x, y, solve=solve: solve(jnp.eye(2, dtype="int8"), x)[0], "complex128", "int64",
       "complex128*") for solve in (jax.scipy.sparse.linalg.cg, jax.scipy.sparse.linalg.gmres,
                                    jax.scipy.sparse.linalg.bicgstab)],
    (lambda x, y: jax.scipy.sparse.linalg.cg(jnp.eye(2), y)[0], "float64", "int64", "float64"),
])
def test_weak_types_of_two_beside_the_default(fun, x, y, want):
    assert typed(fun, ones(x, weak=True), ones(y, weak=True)) == [want]


@pytest.mark.parametrize(("fun", "x", "y", "want"), [
    (lambda x, y: special.gamma(x), "complex64", "int8", "complex64"),
    (lambda x, y: special.owens_t(x, y), "int32", "int32", "float64"),
    (lambda x, y: special.sph_harm_y(y, y, x, y, n_max=2), "float32", "int8", "complex128"),
    (lambda x, y: jnp.angle(x[0]), "bfloat16", "int8", "float64"),
    (lambda x, y: jax.scipy.linalg.sqrtm(jnp.outer(x, x)), "float16", "int8", "complex64"),
    (lambda x, y: jnp.einsum("i,i", x, y, preferred_element_type="float32"), "bfloat16",
     "complex64", "float32"),
    (lambda x, y: jnp.vdot(x, y, preferred_element_type="float32"), "int8", "complex64", "float32"),
    (lambda x, y: jax.scipy.sparse.linalg.gmres(jnp.outer(x, x), x)[0], "complex64", "int8",
     "complex64"),
    (lambda x, y: stats.multinomial.pmf(x, x[0], y), "int8", "float32", "float32"),
])
def test_strict_promotion_within_functions(fun, x, y, want):
    with jax.numpy_dtype_promotion("strict"):
        assert typed(fun, ones(x), ones(y)) == [want]


def test_values_of_operands_of_several_dtypes():
    third, whole = jnp.array([0.5, -2.0], "float32"), jnp.array([3, 4], "int8")
    assert jax.lax.mul(third, whole, out_dtype="float64").tolist() == [1.5, -8]
    slope = jax.grad(lambda x: jax.lax.mul(x, whole, out_dtype="float64").sum())(third)
    assert slope.dtype == "float32" and slope.tolist() == [3, 4]
    turned = jax.grad(lambda x: (jax.lax.mul(x, 1 + 3j, out_dtype="complex64") * (1 - 2j)).real)
    assert float(turned(jnp.float32(2))) == 7
    assert jnp.einsum("ii->i", jnp.array([[True, True], [True, False]])).tolist() == [True, False]
    assert jax.scipy.fft.dctn(3) == 3
    assert jnp.fft.fftfreq(2, 2**33).tolist() == [0, -(2.0 ** -34)]
    assert jnp.gradient(1.0, 2.0, 3.0) == []
    assert jnp.can_cast(np.ones(2, "int8"), "int16")
    with pytest.raises(TypeError, match="'None' not accepted"):
        jnp.can_cast(None, "int32")
    assert jnp.extract(np.array([True]), 2j).weak_type
    want = stats.multinomial.pmf(jnp.array(COUNTS, "float32").astype(int), 3, ODDS)
    assert stats.multinomial.pmf(COUNTS, 3, ODDS) == want
    np.testing.assert_allclose(want, 3 * 0.25 * 0.75 ** 2, rtol=1e-6)
    with pytest.raises(ValueError, match="x and n must be of integer type"):
        stats.multinomial.logpmf(ODDS, 3, ODDS)
    z = np.array([0.3 + 2.5j, -1.6 - 0.7j], "complex64")
    np.testing.assert_allclose(special.gamma(z) * z, special.gamma(z + 1), rtol=1e-4)
    wave = np.sin(np.arange(8.0))
    real = signal.welch(wave, 2.0, nperseg=4)[0]
    np.testing.assert_allclose(signal.welch(wave, 2.0 + 0j, nperseg=4)[0], real)


@pytest.mark.parametrize(("fun", "x", "y", "want"), [
    (jax.lax.random_gamma_grad, "float16", np.int64(1), "float16"),
    (lambda x, y: jnp.einsum("i,j->", x, jnp.broadcast_to(y, (3,))), "float16", 1j, "complex64"),
    (lambda x, y: jnp.unwrap(x, period=y), "float8_e5m2", np.int8(2), "float8_e5m2"),
    (lambda x, y: jax.scipy.signal.stft(x, y, nperseg=2)[1], "float32", np.int64(1), "float64"),
    (lambda x, y: jax.scipy.signal.welch(x, y, nperseg=2)[1], "float32", np.complex128(1),
     "float32"),
    (lambda x, y: jax.lax.polynomial(y, x), "float64", 1.0, "float64"),
    (lambda x, y: jax.lax.polynomial(y, np.arange(2)), "float64", 1.0, "float64*"),
], ids=range(7))
def test_dtypes_beside_values(fun, x, y, want):
    assert typed(lambda x: fun(x, y), ones(x)) == [want]


@pytest.mark.parametrize(("dtype", "order", "want"), [
    ("int64", 1, "int64 5"), ("int64", np.inf, "int64 3"), ("int64", -np.inf, "int64 2"),
    ("int64", 0, "float64 2.0"), ("int64", 3, "float64 3.27"), ("bool", np.inf, "bool 1"),
])
def test_norms_of_whole_numbers(dtype, order, want):
    norm = jnp.linalg.vector_norm(jnp.array([-3, 2], dtype), ord=order)
    assert f"{norm.dtype} {round(norm.tolist(), 2)}" == want


def test_values_that_become_integers():
    ends = jnp.zeros(3, "int4"), jnp.ones(3, "float16")
    assert jnp.linspace(*ends, 3, dtype=int).tolist() == [[0] * 3, [0] * 3, [1] * 3]
    assert jnp.tile(jnp.arange(2), np.bool_(True)).tolist() == [0, 1]


def test_numbers_are_padded_by_nothing():
    assert jnp.pad(5, 1, constant_values=jnp.ones(3)) == 5


@pytest.mark.parametrize(("call", "message"), [
    (lambda: jax.lax.random_gamma_grad(jnp.ones(3, "float32"), np.int64(1)), "same dtypes"),
    (lambda: jnp.polyadd(np.array([True]), np.array([True])), "does not accept dtype bool"),
])
def test_operands_that_do_not_go_together(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_positions_of_index_take():
    x = jnp.arange(3.0)
    assert jax.lax.index_take(x, (np.array([True, False]),), (0,)).tolist() == [1, 0]
    with pytest.raises(TypeError, match=r"size and dtype, and not of uint64, got uint64\[1\]"):
        jax.lax.index_take(x, (np.array([1], "uint64"),), (0,))
    with pytest.raises(TypeError, match=r"integers, all of one size and dtype, got int\d+\[\]"):
        jax.lax.index_take(x, (0,), (0,))


@pytest.mark.parametrize(("x64", "number"), [(True, 2**40), (True, -2**63), (False, -2**31)])
def test_large_integers_beside_traced_ones(x64, number):
    with jax.enable_x64(x64):
        x = jnp.arange(2, dtype=int)
        assert jax.jit(lambda x: x + number)(x).tolist() == [number, number + 1]
        with pytest.raises(OverflowError):
            jax.jit(lambda x: x + 2 ** (63 if x64 else 31))(x)


def test_large_integers_are_rounded_to_floats_once():
    number = 2**60 + 2**36 + 1  # as float64 it is halfway between two of float32
    got = jax.jit(lambda x: x + number)(jnp.zeros(1, "float32"))
    assert got.dtype == "float32" and got.tolist() == [2**60 + 2**37]


def test_integers_too_large_for_an_array():
    with jax.enable_x64(False):
        with pytest.raises(OverflowError, match="too large to convert to int32"):
            jax.typeof(2**31)
        x = jnp.ones(3)
        for fun in (jnp.add, jnp.less, jnp.true_divide):
            with pytest.raises(OverflowError):
                fun(x, 2**31)
            with pytest.raises(OverflowError):
                jax.jit(lambda x, fun=fun: fun(x, 2**31))(x)
        convert = jax.lax.convert_element_type
        assert [convert(2**31, d).tolist() for d in ("float32", "uint32", bool, "int32")] == [
            2.0**31, 2**31, True, -2**31]


@pytest.mark.parametrize("call", [
    lambda x, y: jax.nn.elu(y, x), lambda x, y: jax.nn.celu(y, x),
    lambda x, y: jax.nn.squareplus(jnp.array([True]), y),
    lambda x, y: jax.nn.standardize(y, mean=x), lambda x, y: jax.nn.standardize(y, epsilon=x),
    lambda x, y: jnp.linalg.matrix_rank(jnp.outer(x, x), y),
    lambda x, y: jax.scipy.signal.welch(x, y[0], nperseg=2),
    lambda x, y: jax.scipy.signal.stft(x, np.int8(1), nperseg=2),
    lambda x, y: jax.scipy.sparse.linalg.cg(jnp.outer(x, x), y),
])
def test_strict_promotion_of_what_is_converted_first(call):
    x, y = jnp.ones(3, "float32"), jnp.ones(3, "int32")
    call(x, y)
    with jax.numpy_dtype_promotion("strict"), pytest.raises(jax.dtypes.TypePromotionError):
        call(x, y)


def test_strict_densities_of_complex_numbers():
    with jax.numpy_dtype_promotion("strict"):
        assert jax.scipy.stats.norm.pdf(jnp.ones(3, "complex64")).dtype == "complex64"


_MATRIX = np.array([[4, 1, 2], [1, 3, 0], [2, 0, 5]])


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "bool"])
@pytest.mark.parametrize(("f", "reference", "x"), [
    (jax.nn.sigmoid, expit, np.arange(-3, 3)),
    (jax.nn.silu, lambda x: x * expit(x), np.arange(-3, 3)),
    (jax.nn.swish, lambda x: x * expit(x), np.arange(-3, 3)),
    (jax.nn.glu, lambda x: x[:3] * expit(x[3:]), np.arange(-3, 3)),
    (jax.scipy.special.spence, spence, np.arange(4)),
    (lambda x: abs(jax.scipy.linalg.hessenberg(x)), lambda x: abs(hessenberg(x)), _MATRIX),
    (lambda x: jax.scipy.linalg.polar(x)[1], lambda x: polar(x)[1], _MATRIX),
    (lambda x: jnp.diag(jax.scipy.linalg.schur(x)[0]).sort(),
     lambda x: np.sort(np.diag(schur(x)[0])), _MATRIX),
])
def test_integers_where_floats_are_computed_with(f, reference, x, dtype, x64):
    x = np.eye(3, dtype=bool) if dtype == "bool" and x.ndim == 2 else x.astype(dtype)
    with jax.enable_x64(x64):
        got = f(x)
        assert got.dtype == jnp.exp(x).dtype
    np.testing.assert_allclose(got, reference(x.astype(float)), rtol=1e-5, atol=1e-5)
