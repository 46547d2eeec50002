"""jax.numpy.linalg against NumPy's."""

from functools import partial

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from tests.lax.test_linalg import (
    DTYPES,
    SHAPES,
    SQUARE,
    adjoint,
    both,
    close,
    positive,
    random,
    reseed,
)

linalg = jnp.linalg
ORDERS = [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf]


@pytest.fixture(autouse=True)
def wide():
    reseed()
    with jax.enable_x64(True):
        yield


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SQUARE)
def test_square_matrices(dtype, shape):
    a = (random(dtype, *shape) + 3 * np.eye(shape[-1])).astype(dtype)
    b = random(dtype, *shape[:-1], 2)
    for name in ("inv", "det", "slogdet"):
        got, want = both(getattr(linalg, name), a), getattr(np.linalg, name)(a)
        for x, y in zip(jax.tree_util.tree_leaves(got), want if name == "slogdet" else [want],
                        strict=True):
            assert x.dtype == y.dtype
            close(x, y)
    close(both(linalg.solve, a, b), np.linalg.solve(a, b))
    for x, y in zip(linalg.slogdet(a, method="qr"), np.linalg.slogdet(a), strict=True):
        close(x, y)
    h = positive(dtype, *shape)
    close(both(linalg.cholesky, h), np.linalg.cholesky(h))
    for symmetrize in (True, False):
        close(linalg.cholesky(h, upper=True, symmetrize_input=symmetrize),
              adjoint(np.linalg.cholesky(h)))
    # the lower triangle is read, whichever is returned
    close(linalg.cholesky(np.tril(h), upper=True, symmetrize_input=False),
          adjoint(np.linalg.cholesky(h)))
    h = (a + adjoint(a)).astype(dtype)
    close(both(linalg.eigvalsh, h), np.linalg.eigvalsh(h))
    close(linalg.eigvalsh(np.triu(h), "U", symmetrize_input=False), np.linalg.eigvalsh(h))
    w, v = map(np.asarray, linalg.eigh(h))
    close(h @ v, v * w[..., None, :], 10)
    w, v = map(np.asarray, linalg.eig(a))
    close(a @ v, v * w[..., None, :], 10)
    close(np.sum(linalg.eigvals(a), -1), np.trace(a, axis1=-2, axis2=-1), 10)
    u, s, vh = map(np.asarray, linalg.svd(h, hermitian=True))
    close((u * s[..., None, :]) @ vh, h, 10)
    close(s, np.linalg.svd(h, compute_uv=False), 10)
    for n in (0, 1, 3, -2):
        close(linalg.matrix_power(a, n), np.linalg.matrix_power(a, n))


def test_pseudo_inverses_by_several_cutoffs():
    a, cutoffs = np.diag([1.0, 0.1, 0.01]).astype(np.float32), np.array([1e-3, 0.05, 0.5])
    expected = [np.linalg.pinv(a, rcond=c) for c in cutoffs]
    close(both(linalg.pinv, a, cutoffs), expected)
    close(linalg.pinv(a[None], cutoffs), expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_rectangular_matrices(dtype, shape):
    a = random(dtype, *shape)
    for mode in ("reduced", "complete"):
        q, r = map(np.asarray, linalg.qr(a, mode))
        close(q @ r, a)
    assert linalg.qr(a, "r").shape == np.linalg.qr(a, "r").shape
    for x, y in zip(linalg.qr(a, "raw"), np.linalg.qr(a, "raw"), strict=True):
        close(x, y)
    close(both(linalg.svdvals, a), np.linalg.svd(a, compute_uv=False))
    close(both(linalg.pinv, a), np.linalg.pinv(a, rcond=1e-5))
    for name in ("matrix_norm", "vector_norm"):
        close(getattr(linalg, name)(a), getattr(np.linalg, name)(a))
    if a.size:
        np.testing.assert_array_equal(both(linalg.matrix_rank, a), np.linalg.matrix_rank(a))
        close(linalg.cond(a), np.linalg.cond(a), 100)
        for order in ORDERS:
            close(linalg.norm(a, order, axis=(-2, -1), keepdims=True),
                  np.linalg.norm(a, order, axis=(-2, -1), keepdims=True))
        for order in (None, 0, 1, 2, 3, 0.5, -1, np.inf, -np.inf):
            close(linalg.norm(a, order, axis=0), np.linalg.norm(a, order, axis=0))


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (5, 5)])
def test_least_squares(shape):
    for dtype in DTYPES:
        a = random(dtype, *shape)
        for b in (random(dtype, shape[0], 3), random(dtype, shape[0])):
            got = linalg.lstsq(a, b, numpy_resid=True)
            for x, y in zip(got, np.linalg.lstsq(a, b, rcond=None), strict=True):
                close(np.asarray(x).ravel(), np.asarray(y).ravel(), 10)
    a = np.ones((5, 3))
    close(linalg.lstsq(a, np.arange(5.0))[0], np.full(3, 2 / 3))
    assert linalg.lstsq(a, np.arange(5.0), 2.0)[2] == 0


def test_determinants_of_three_rows_that_are_nearly_parallel():
    rng = np.random.default_rng(0)
    u, _, v = np.linalg.svd(rng.normal(size=(200, 3, 3)))
    a = ((u * [1, 1e-2, 1e-4]) @ v).astype(np.float32)
    want = np.linalg.det(a.astype(np.float64))
    np.testing.assert_allclose(np.median(abs(linalg.det(a) / want - 1)), 0, atol=2e-5)
    slopes = jax.vmap(jax.grad(linalg.det))(a)
    cofactors = np.linalg.inv(a.astype(np.float64)).swapaxes(-1, -2) * want[:, None, None]
    np.testing.assert_allclose(slopes, cofactors, atol=1e-5 * abs(cofactors).max())
    for order in ([0, 1, 2], [1, 2, 0], [1, 0, 2], [2, 1, 0], [0, 2, 1]):
        permuted = np.diag([2.0, 3, 5])[order]
        assert round(float(linalg.det(permuted)), 4) == round(np.linalg.det(permuted), 4)
    assert linalg.det(jnp.diag(jnp.array([1, jnp.inf, 2]))) == jnp.inf
    singular = jax.grad(linalg.det)(jnp.diag(jnp.array([1.0, 0, 2])))
    np.testing.assert_array_equal(singular, np.diag([0, 2, 0]))


def test_least_squares_of_zeros():
    x, residuals, rank, s = linalg.lstsq(jnp.zeros((3, 2)), jnp.ones((3, 2)))
    np.testing.assert_array_equal(x, np.zeros((2, 2)))
    assert residuals.tolist() == [3, 3] and rank == 0 and s.tolist() == [0, 0]


def test_norms_of_nothing_and_of_zeros():
    for shape in (0, 0), (0, 3), (3, 0):
        empty = np.zeros(shape)
        for order in (None, 1, -1, 2, -2, np.inf, -np.inf):
            try:
                want = np.linalg.norm(empty, order)
            except ValueError:
                with pytest.raises(ValueError, match=r"zero-size array"):
                    linalg.norm(jnp.array(empty), order)
            else:
                assert linalg.norm(jnp.array(empty), order) == want
    with pytest.raises(ValueError, match="zero-size array"):
        linalg.norm(jnp.zeros(0), -np.inf)
    # half of the cotangent goes to the 0 that norms begin with, as in JAX
    for order in (1, np.inf):
        np.testing.assert_allclose(jax.grad(linalg.norm)(jnp.zeros((3, 3)), order), 1 / 6)


def test_how_right_hand_sides_are_taken():
    a, b = random("float64", 2, 3, 3) + 3 * np.eye(3), random("float64", 4, 1, 3, 2)
    close(linalg.solve(a, b), np.linalg.solve(a, b))
    close(linalg.solve(a[0], b), np.linalg.solve(a[0], b))
    vector = b[0, 0, :, 0]
    close(linalg.solve(a, vector), np.linalg.solve(a, vector))
    with pytest.raises(ValueError, match="Invalid shapes for solve"):
        linalg.solve(a, b[:2, 0, :, 0])
    text = str(jax.make_jaxpr(linalg.solve)(a[0], vector))
    assert text.count("\n") < 9


def test_tensors():
    a = random("float64", 24, 24).reshape(4, 6, 8, 3)
    close(linalg.tensorinv(a), np.linalg.tensorinv(a))
    a, b = random("float64", 2, 3, 6), random("float64", 2, 3)
    close(linalg.tensorsolve(a, b), np.linalg.tensorsolve(a, b))
    close(linalg.tensorsolve(np.moveaxis(a, 2, 0), b, axes=(0,)), np.linalg.tensorsolve(a, b))


def test_chains():
    shapes = [(3, 7), (7, 2), (2, 5), (5, 4)]
    parts = [random("float64", *s) for s in shapes]
    close(linalg.multi_dot(parts), np.linalg.multi_dot(parts))
    ends = [parts[0][0], *parts[1:3], parts[3][:, 0]]
    close(linalg.multi_dot(ends), np.linalg.multi_dot(ends))
    # 7 x 2 by 2 x 5 costs least last of all
    assert "f64[3,2] = dot_general" in str(jax.make_jaxpr(linalg.multi_dot)(parts))


def test_products_and_parts():
    a, v = random("complex128", 2, 3, 4), random("complex128", 4)
    close(linalg.diagonal(a, offset=1), np.linalg.diagonal(a, offset=1))
    close(linalg.trace(a, offset=-1), np.linalg.trace(a, offset=-1))
    close(linalg.matrix_transpose(a), np.swapaxes(a, 1, 2))
    close(linalg.vecdot(a, v), np.linalg.vecdot(a, v))
    close(linalg.outer(v, v), np.outer(v, v))
    close(linalg.matmul(a, v), a @ v)
    close(linalg.tensordot(a, v, axes=1), np.tensordot(a, v, 1))
    x = random("float64", 3, 5)
    close(linalg.cross(x, x[::-1], axis=0), np.cross(x, x[::-1], axis=0))


def test_conditions_of_singular_matrices():
    assert linalg.cond(np.zeros((2, 2))) == np.inf
    assert np.isnan(linalg.cond(np.array([[np.nan, 0], [0, 1]])))
    assert linalg.matrix_rank(np.zeros(3)) == 0
    assert linalg.matrix_rank(np.ones(3)) == 1
    assert linalg.matrix_rank(np.diag([1.0, 1e-3]), rtol=1e-2) == 1
    # A tolerance that is given is compared with the values themselves, as in JAX.
    assert [int(linalg.matrix_rank(np.diag([4.0, 2.0, 0.4]), rtol=r)) for r in (0.3, 1, 3)] == [
        3, 2, 1]
    assert linalg.matrix_rank(np.zeros((2, 0, 3)), tol=0.5).tolist() == [0, 0]
    assert linalg.matrix_rank(np.zeros((2, 0, 3))).tolist() == [0, 0]


def test_integers_become_floats():
    with jax.enable_x64(True):
        assert linalg.matrix_rank(np.ones(3)).dtype == np.int32
        assert linalg.vector_norm(np.ones(3, np.int32)).dtype == np.float64
    with jax.enable_x64(False):
        x = np.array([[2, 1], [1, 3]])
        for name in ("inv", "det", "cholesky", "eigvalsh", "norm", "pinv", "cond"):
            assert getattr(linalg, name)(x).dtype == np.float32
        assert linalg.eigvals(x).dtype == np.complex64
        assert linalg.matrix_power(x, 3).dtype == np.int32
        assert linalg.matrix_rank(x).dtype == np.int32


def test_results_are_named():
    x = positive("float64", 3, 3)
    for fun, name, fields in (
            (linalg.eig, "EigResult", ("eigenvalues", "eigenvectors")),
            (linalg.eigh, "EighResult", ("eigenvalues", "eigenvectors")),
            (linalg.qr, "QRResult", ("Q", "R")), (linalg.svd, "SVDResult", ("U", "S", "Vh")),
            (linalg.slogdet, "SlogdetResult", ("sign", "logabsdet"))):
        for out in (fun(x), jax.jit(fun)(x)):
            assert type(out).__name__ == name and out._fields == fields


@pytest.mark.parametrize("fun, x", [
    (linalg.pinv, random("float64", 5, 3)),
    (lambda x: linalg.lstsq(x, np.ones(5))[0], random("float64", 5, 3)),
    (linalg.cond, random("float64", 3, 3)), (lambda x: linalg.norm(x, "nuc"), np.diag([1.0, 2])),
    (lambda x: linalg.norm(x, 3), random("float64", 4)),
    (lambda x: linalg.norm(x, 2), random("float64", 4, 3)),
    (lambda x: linalg.matrix_power(x, -3), random("float64", 3, 3) + 3 * np.eye(3)),
    (lambda x: linalg.svd(x + x.T, hermitian=True).S, random("float64", 3, 3)),
    (lambda x: linalg.slogdet(x, method="qr")[1], random("complex128", 3, 3)),
])
def test_derivatives(fun, x):
    t = random(x.dtype, *x.shape)
    out, pushed = jax.jvp(fun, (x,), (t,))
    slope = (np.asarray(fun(x + 1e-6 * t)) - np.asarray(fun(x - 1e-6 * t))) / 2e-6
    close(pushed, slope, 1e5)
    ct = random(out.dtype, *out.shape)
    (pulled,) = jax.vjp(fun, x)[1](ct)
    close(np.sum(np.real(pulled * t)), np.sum(np.real(ct * pushed)), 100)
    again = jax.jvp(lambda x: jax.jvp(fun, (x,), (t,))[1], (x,), (t,))[1]
    slope = (np.asarray(jax.jvp(fun, (x + 1e-5 * t,), (t,))[1])
             - np.asarray(jax.jvp(fun, (x - 1e-5 * t,), (t,))[1])) / 2e-5
    close(again, slope, 1e6 * (1 + np.max(np.abs(slope))))
    close(jax.vmap(fun, 1)(np.stack([x, x + t], 1)), [fun(x), fun(x + t)], 100)


half, square, tall = np.eye(3, dtype=np.float16), np.eye(3), np.ones((4, 3))


@pytest.mark.parametrize("call, error, message", [
    (lambda: linalg.inv(tall), ValueError, r"must have shape \[..., n, n\]"),
    (lambda: linalg.det(square[0]), ValueError, r"must have shape \[..., n, n\]"),
    (lambda: linalg.cholesky([[1.0]]), TypeError, "requires ndarray or scalar arguments"),
    (lambda: linalg.solve(half, half), TypeError, "float16"),
    (lambda: linalg.solve(square, tall), ValueError, "number of rows"),
    (lambda: linalg.solve(square[0], square[0]), ValueError, "at least two dimensional"),
    (lambda: linalg.solve(square, 1.0), ValueError, "at least one dimensional"),
    (lambda: linalg.eigh(square, "l"), ValueError, "UPLO must be one of"),
    (lambda: linalg.qr(square, "x"), ValueError, "Unsupported QR decomposition mode"),
    (lambda: linalg.slogdet(square, method="x"), ValueError, "Unknown slogdet method"),
    (lambda: linalg.norm(square, "x"), ValueError, "Invalid order 'x' for matrix norm"),
    (lambda: linalg.norm(square, 3), ValueError, "Invalid order '3' for matrix norm"),
    (lambda: linalg.norm(square[0], "fro"), ValueError, "Invalid order 'fro' for vector norm"),
    (lambda: linalg.norm(square[0], "inf"), ValueError, "jax.numpy.inf"),
    (lambda: linalg.norm(np.ones((2, 2, 2)), 2), ValueError, "Improper number of axes"),
    (lambda: linalg.norm(square, axis=(1, 1)), ValueError, "duplicate value"),
    (lambda: linalg.cond(np.zeros((0, 0))), ValueError, "must not be empty"),
    (lambda: linalg.matrix_rank(square, 1.0, tol=1.0), ValueError, "only one of tol or rtol"),
    (lambda: linalg.pinv(square, 1.0, rcond=1.0), ValueError, "only one of rtol and rcond"),
    (lambda: linalg.lstsq(square[0], square[0]), TypeError, "must be two-dimensional"),
    (lambda: linalg.lstsq(square, tall), ValueError, "Leading dimensions"),
    (lambda: linalg.matrix_power(square, 1.5), TypeError, "exponent must be an integer"),
    (lambda: linalg.matrix_power(tall, 2), TypeError, "must be square"),
    (lambda: linalg.multi_dot([square]), ValueError, "at least two arrays"),
    (lambda: linalg.multi_dot([tall, tall]), ValueError, "must match first dimension"),
    (lambda: linalg.multi_dot([square, square[0], square]), ValueError, "two-dimensional"),
    (lambda: linalg.tensorinv(square, ind=0), ValueError, "positive integer"),
    (lambda: linalg.tensorinv(tall, ind=1), ValueError, "only possible when"),
    (lambda: linalg.tensorsolve(tall, square[0]), ValueError, "leading shape of a"),
    (lambda: linalg.outer(tall, square[0]), ValueError, "one-dimensional"),
    (lambda: linalg.cross(tall[:, :2], tall[:, :2]), ValueError, "3-dimensional vectors"),
    (lambda: linalg.diagonal(square[0]), ValueError, "at least two dimensions"),
])
def test_what_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_the_rank_for_several_tolerances():
    matrix = jnp.array([[[1.0, 0.0], [0.0, 0.1]]] * 3)
    assert jnp.linalg.matrix_rank(matrix, jnp.array([[0.01], [0.5]])).tolist() == [[2] * 3, [1] * 3]


def test_the_pseudo_inverse_of_hermitian_matrices_depends_on_the_hermitian_part():
    rng = np.random.RandomState(0)
    a, da = rng.randn(3, 3), rng.randn(3, 3)
    with jax.enable_x64(True):
        pinv = partial(jnp.linalg.pinv, hermitian=True)
        slope = jax.jvp(pinv, (a,), (da,))[1]
        np.testing.assert_allclose(
            slope, (pinv(a + 1e-6 * da) - pinv(a - 1e-6 * da)) / 2e-6, rtol=1e-5, atol=1e-5)


ADJUGATES = {
    "first pivot": np.diag([0.0, 1, 2, 3]), "second pivot": np.diag([1.0, 0, 2, 3]),
    "last pivot": np.diag([1.0, 2, 3, 0]), "two ranks less": np.diag([0.0, 0, 2, 3]),
    "nilpotent": np.diag([1.0, 1, 1], 1), "its transpose": np.diag([1.0, 1, 1], -1),
    "nothing": np.zeros((4, 4)), "ones": np.ones((5, 5)), "regular": np.diag([1.0, 2, 3, 4]),
    "first column": np.tril(np.ones((5, 5))) @ np.diag([0.0, 1, 2, 1, 1]),
    "complex": np.diag([0, 1j, 2, 3 + 1j]),
}


@pytest.mark.parametrize("name", ADJUGATES)
def test_slope_of_det_of_singular_matrices(name):
    a = ADJUGATES[name]
    n = len(a)
    want = np.array([[(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1))
                      for j in range(n)] for i in range(n)])
    a = a.astype(np.complex64 if name == "complex" else np.float32)
    slope = jax.grad(jnp.linalg.det, holomorphic=name == "complex")
    batched = jax.vmap(slope)(jnp.stack([a, jnp.eye(n, dtype=a.dtype)]))
    for found in (slope(a), jax.jit(slope)(a), batched[0],
                  jax.jacfwd(jnp.linalg.det, holomorphic=name == "complex")(a)):
        np.testing.assert_allclose(found, want, atol=2e-6)
    np.testing.assert_allclose(batched[1], np.eye(n), atol=2e-6)


def test_gradients_of_a_batch_of_determinants_factor_it_twice_only_where_one_lacks_a_rank():
    matrices = np.stack([np.eye(4, dtype=np.float32), np.diag(np.float32([0, 1, 2, 3]))])
    mapped = jax.jit(jax.vmap(jax.grad(jnp.linalg.det)))
    assert "stablehlo.case" in mapped.lower(matrices).as_text()
    np.testing.assert_allclose(mapped(matrices), [np.eye(4), np.diag([6.0, 0, 0, 0])], atol=1e-5)
