"""jax.scipy.linalg against SciPy's."""

import math

import numpy as np
import pytest
import scipy.linalg as sl

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.scipy import linalg
from tests.lax.test_linalg import DTYPES, adjoint, close, positive, random, reseed, unitary


@pytest.fixture(autouse=True)
def wide():
    reseed()
    with jax.enable_x64(True):
        yield


def all_close(got, want, scale=1.0):
    assert len(got) == len(want)
    for x, y in zip(got, want, strict=True):
        close(x, y, scale)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 5, 12])
def test_functions_of_matrices(dtype, n):
    a = random(dtype, n, n)
    for scale in (1e-3, 0.3, 1, 6):
        close(linalg.expm(a * dtype_of(scale, a)), sl.expm(a * dtype_of(scale, a)), 20)
    close(linalg.expm(np.triu(a), upper_triangular=True), sl.expm(np.triu(a)), 20)
    all_close(linalg.expm_frechet(a, a), [sl.expm(a), a @ sl.expm(a)], 100)
    regular = (a + 2 * n * np.eye(n)).astype(dtype)
    root = np.asarray(linalg.sqrtm(regular))
    close(root @ root, regular, 10)
    p = positive(dtype, n, n)
    close(linalg.sqrtm(p), sl.sqrtm(p), 10)
    batch = np.stack([p, p + np.eye(n, dtype=dtype)])
    close(linalg.sqrtm(batch), [sl.sqrtm(x) for x in batch], 10)
    if a.dtype.itemsize == 8 * (1 + (a.dtype.kind == "c")):  # close eigenvalues lose digits
        close(linalg.funm(a, jnp.sin), sl.sinm(a), 1e5)
        f, error = linalg.funm(a, jnp.exp, disp=False)
        close(f, sl.expm(a), 1e5)
        assert 0 < error < 1e-8


def dtype_of(x, like):
    return like.dtype.type(x)


def test_edges_of_functions():
    assert np.isnan(linalg.expm(np.full((2, 2), 1e6))).all()
    assert np.isnan(linalg.expm(np.eye(2) * 100, max_squarings=2)).all()
    both = np.asarray(linalg.expm(np.stack([np.eye(2), np.full((2, 2), 1e9)])))
    close(both[0], np.eye(2) * np.e)
    assert np.isnan(both[1]).all()
    assert linalg.expm(np.zeros((0, 0))).shape == (0, 0)
    nan = jnp.full((2, 2), jnp.nan)
    assert np.isnan(jax.jvp(linalg.expm, (nan,), (nan,))).all()
    np.testing.assert_array_equal(linalg.sqrtm(np.zeros((2, 2))), np.zeros((2, 2)))
    assert linalg.sqrtm(np.zeros((0, 0))).shape == (0, 0)
    close(linalg.funm(np.eye(2), jnp.exp), np.eye(2) * np.e)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (5, 5)])
def test_decompositions(dtype, shape):
    a = random(dtype, *shape)
    m, k = shape[0], min(shape)
    all_close(linalg.lu(a), sl.lu(a))
    all_close(linalg.lu(a, permute_l=True), sl.lu(a, permute_l=True))
    all_close(linalg.lu_factor(a), sl.lu_factor(a))
    for mode in ("full", "economic", "r"):
        for pivoting in (False, True):
            all_close(linalg.qr(a, mode=mode, pivoting=pivoting),
                      sl.qr(a, mode=mode, pivoting=pivoting))
    for side in ("left", "right"):
        for method in ("qdwh", "svd"):
            all_close(linalg.polar(a, side, method=method), sl.polar(a, side), 10)
    for pivoting in (False, True):
        for conjugate in (False, True):
            for mode, given in (("left", (random(dtype, k, 3), random(dtype, k))),
                                ("right", (random(dtype, 3, m), random(dtype, m)))):
                for c in given:
                    all_close(linalg.qr_multiply(a, c, mode, pivoting, conjugate),
                              sl.qr_multiply(a, c, mode, pivoting, conjugate), 5)
    close(linalg.svd(a, compute_uv=False), sl.svd(a, compute_uv=False))


@pytest.mark.parametrize("mode", ["left", "right"])
@pytest.mark.parametrize("pivoting", [False, True])
def test_products_with_q_of_several(mode, pivoting):
    a, c = random(np.float32, 3, 1, 5, 4), random(np.float32, 2, *((4, 5) if mode == "left"
                                                                   else (6, 5)))
    got = linalg.qr_multiply(a, c, mode, pivoting)
    for i, j in np.ndindex(3, 2):
        all_close([x[i, j] for x in got], sl.qr_multiply(a[i, 0], c[j], mode, pivoting), 5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 5])
def test_similar_matrices(dtype, n):
    a = random(dtype, n, n)
    form, z = map(np.asarray, linalg.rsf2csf(*linalg.schur(a)))
    close(z @ form @ adjoint(z), a, 10)
    assert not np.tril(form, -1).any()
    unitary(z)
    if a.dtype.kind == "f":
        close(np.diag(form), np.diag(sl.rsf2csf(*sl.schur(a))[0]), 10)
    form, z = map(np.asarray, linalg.schur(a, output="complex"))
    close(z @ form @ adjoint(z), a.astype(form.dtype), 10)
    h, q = map(np.asarray, linalg.hessenberg(a, calc_q=True))
    close(q @ h @ adjoint(q), a, 5)
    unitary(q)
    close(linalg.hessenberg(a), h)
    if n > 2:  # smaller ones SciPy leaves as they are
        all_close((h, q), sl.hessenberg(a, calc_q=True), 5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_systems(dtype):
    n = 5
    a, p = random(dtype, n, n) + 3 * np.eye(n, dtype=dtype), positive(dtype, n, n)
    sides = (random(dtype, n, 3), random(dtype, n))
    for b in sides:
        for kind in ("gen", "pos", "sym", "her"):
            close(linalg.solve(p, b, assume_a=kind), np.linalg.solve(p, b))
        close(linalg.solve(np.tril(p), b, lower=True, assume_a="pos"), np.linalg.solve(p, b))
        for lower in (False, True):
            close(linalg.cho_solve(linalg.cho_factor(p, lower=lower), b), np.linalg.solve(p, b))
            for trans in (0, 1, 2, "N", "T", "C"):
                close(linalg.solve_triangular(a, b, trans=trans, lower=lower),
                      sl.solve_triangular(a, b, trans=trans, lower=lower), 5)
        for trans in (0, 1, 2):
            close(linalg.lu_solve(linalg.lu_factor(a), b, trans=trans),
                  sl.lu_solve(sl.lu_factor(a), b, trans=trans), 5)
    batch = np.stack([p, 2 * p])
    vectors = np.stack([sides[1], sides[1]])
    want = np.linalg.solve(batch, vectors[..., None])[..., 0]
    with pytest.warns(FutureWarning, match="batched 1D solves"):
        close(linalg.cho_solve(linalg.cho_factor(batch), vectors), want)
    with pytest.warns(FutureWarning, match="batched 1D solves"):
        close(linalg.lu_solve(linalg.lu_factor(batch), vectors), want)
    for lower in (False, True):
        close(linalg.cholesky(p, lower=lower), sl.cholesky(p, lower=lower))
    close(linalg.det(a), sl.det(a))
    close(linalg.inv(a), sl.inv(a))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", ["schur", "eigen"])
def test_sylvester(dtype, method):
    for m, n in ((4, 4), (5, 2), (1, 3)):
        a, b, c = random(dtype, m, m), random(dtype, n, n) + 9 * np.eye(n), random(dtype, m, n)
        b = b.astype(dtype)
        x = np.asarray(linalg.solve_sylvester(a, b, c, method=method))
        assert x.dtype == c.dtype
        close(a @ x + x @ b, c, 20)
        x = linalg.solve_sylvester(np.stack([a, a]), b, c, method=method)
        assert x.shape == (2, m, n)
    assert linalg.solve_sylvester(a, b[:0, :0], c[:, :0], method=method).shape == (m, 0)
    eye = np.eye(2, dtype=dtype)
    assert np.isnan(linalg.solve_sylvester(eye, -eye, eye, method=method)).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", [1, 2, 3])
def test_pairs_of_hermitian_matrices(dtype, kind):
    a, b = random(dtype, 4, 4), positive(dtype, 4, 4)
    a = a + adjoint(a)
    w, v = map(np.asarray, linalg.eigh(a, b, type=kind))
    close(w, sl.eigh(a, b, type=kind, eigvals_only=True), 20)
    close(linalg.eigh(a, b, type=kind, eigvals_only=True), w)
    left = {1: a, 2: a @ b, 3: b @ a}[kind] @ v
    close(left, (b @ v if kind == 1 else v) * w, 50)


@pytest.mark.parametrize("dtype", DTYPES)
def test_tridiagonal_matrices(dtype):
    d, e = random(dtype, 20).real, random(dtype, 19)
    dense = np.diag(d) + np.diag(e, 1) + np.diag(np.conj(e), -1)
    want = np.linalg.eigvalsh(dense)
    close(linalg.eigh_tridiagonal(d, e, eigvals_only=True), want)
    close(linalg.eigh_tridiagonal(d, e, eigvals_only=True, select="i", select_range=(3, 7)),
          want[3:8])
    w, v = map(np.asarray, linalg.eigh_tridiagonal(d, e))
    close(dense @ v, v * w, 10)
    np.testing.assert_array_equal(linalg.eigh_tridiagonal(d[:1], e[:0], eigvals_only=True), d[:1])
    assert not linalg.eigh_tridiagonal(d[:0], e[:0], eigvals_only=True).size


def test_patterns_of_vectors():
    for dtype in DTYPES:
        c, r = random(dtype, 5), random(dtype, 4)
        close(linalg.toeplitz(c), sl.toeplitz(c))
        close(linalg.toeplitz(c, r), sl.toeplitz(c, r))
        close(linalg.hankel(c), sl.hankel(c))
        close(linalg.hankel(c, r), sl.hankel(c, r))
        close(linalg.leslie(c, r), sl.leslie(c, r))
        for name in ("circulant", "companion"):
            close(getattr(linalg, name)(c), getattr(sl, name)(c))
            stacked = np.stack([c, 2 * c])
            close(getattr(linalg, name)(stacked), [getattr(sl, name)(x) for x in stacked])
        for n in (1, 3, 5, 8):
            for mode in ("full", "same", "valid"):
                close(linalg.convolution_matrix(c, n, mode), sl.convolution_matrix(c, n, mode))
    for n in range(2, 9):
        a = np.arange(1.0, n + 1)
        close(linalg.fiedler_companion(a), sl.fiedler_companion(a))
        close(linalg.fiedler(a ** 2), sl.fiedler(a ** 2))
    blocks = np.ones((2, 3)), np.ones((1, 1)), np.arange(4.0), np.zeros((0, 2))
    close(linalg.block_diag(*blocks), sl.block_diag(*blocks))
    assert linalg.toeplitz(np.zeros(0)).shape == (0, 0)


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_patterns_of_sizes(n):
    for name in ("hilbert", "invhilbert", "helmert", "pascal", "dft"):
        close(getattr(linalg, name)(n), getattr(sl, name)(n))
    close(linalg.helmert(n, full=True), sl.helmert(n, full=True))
    for kind in ("symmetric", "lower", "upper"):
        close(linalg.pascal(n, kind), sl.pascal(n, kind))
        close(linalg.invpascal(n, kind), sl.invpascal(n, kind))
    for scale in ("sqrtn", "n"):
        close(linalg.dft(n, scale), sl.dft(n, scale))
    np.testing.assert_array_equal(linalg.hadamard(8), sl.hadamard(8))


ONES = jnp.ones


@pytest.mark.parametrize("make", [
    linalg.hilbert, linalg.dft, lambda n: linalg.dft(n, "sqrtn"), lambda n: linalg.dft(n, "n"),
    linalg.pascal, lambda n: linalg.pascal(n, "lower"), lambda n: linalg.invpascal(n, "upper"),
    linalg.invpascal, linalg.invhilbert, linalg.helmert, lambda n: linalg.helmert(n, True),
    lambda n: linalg.leslie(ONES(n + 1) * 3, ONES(n)), lambda n: linalg.fiedler_companion(ONES(n)),
    lambda n: linalg.convolution_matrix(ONES(n), 3, "same"),
    lambda n: linalg.convolution_matrix(ONES(n), 3, "valid"),
    lambda n: linalg.convolution_matrix(jnp.arange(n), 3)])
def test_patterns_of_symbolic_sizes(make):
    rows = jax.ShapeDtypeStruct(jax.export.symbolic_shape("n"), "float64")
    exported = jax.export.export(jax.jit(lambda x: make(x.shape[0])))(rows)
    for n in (1, 6):
        got = exported.call(np.ones(n))
        assert got.dtype == make(n).dtype
        np.testing.assert_allclose(got, make(n), rtol=1e-11, atol=1e-11)


def test_a_size_that_must_be_known_is_named():
    rows = jax.ShapeDtypeStruct(jax.export.symbolic_shape("n"), "float64")
    with pytest.raises(jax.errors.InconclusiveDimensionOperation, match="requires a constant"):
        jax.export.export(jax.jit(lambda x: linalg.hadamard(x.shape[0])))(rows)


@pytest.mark.parametrize("shape", [(), (2,), (3, 3)])
def test_sylvester_names_the_shapes(shape):
    with pytest.raises(ValueError, match=r"Sylvester equation:\n.*\n.*\nC: \("):
        linalg.solve_sylvester(ONES((2, 2)), ONES((2, 2)), ONES(shape))


def test_lists_are_taken():
    rows = [[4.0, 2.0], [2.0, 5.0]]
    for name in ("cholesky", "expm", "sqrtm"):
        close(getattr(linalg, name)(rows), getattr(sl, name)(np.array(rows)))


@pytest.mark.parametrize("fun, x", [
    (linalg.expm, random("float64", 4, 4) * 3), (linalg.expm, random("complex128", 3, 3)),
    (lambda x: linalg.cho_solve(linalg.cho_factor(x @ x.T + jnp.eye(4)), np.ones(4)),
     random("float64", 4, 4)),
    (lambda x: linalg.lu_solve(linalg.lu_factor(x), np.ones(4), trans=1), random("float64", 4, 4)),
    (lambda x: linalg.solve(x @ x.T + jnp.eye(4), np.ones((4, 2)), assume_a="pos"),
     random("float64", 4, 4)),
    (lambda x: linalg.eigh(x + x.T, 3 * np.eye(4))[0], random("float64", 4, 4)),
    (lambda x: linalg.polar(x)[0], random("float64", 4, 4)),
    (lambda x: linalg.eigh_tridiagonal(x[0], x[1, :3], eigvals_only=True),
     random("float64", 2, 4)),
    (linalg.toeplitz, random("complex128", 4)),
])
def test_derivatives(fun, x):
    t = random(x.dtype, *x.shape)
    out, pushed = jax.jvp(fun, (x,), (t,))
    slope = (np.asarray(fun(x + 1e-6 * t)) - np.asarray(fun(x - 1e-6 * t))) / 2e-6
    close(pushed, slope, 1e5 * (1 + np.max(np.abs(slope))))
    ct = random(out.dtype, *out.shape)
    (pulled,) = jax.vjp(fun, x)[1](ct)
    close(np.sum(np.real(pulled * t)), np.sum(np.real(ct * pushed)), 100)
    close(jax.vmap(fun)(np.stack([x, x + t])), [fun(x), fun(x + t)], 100)


square, tall = np.eye(3), np.ones((4, 3))


@pytest.mark.parametrize("call, error, message", [
    (lambda: linalg.expm(tall), ValueError, "square matrix"),
    (lambda: linalg.expm(square.astype(np.float16)), TypeError, "float16 is not supported"),
    (lambda: linalg.expm_frechet(square, tall), ValueError, "expected E"),
    (lambda: linalg.sqrtm(square, blocksize=2), NotImplementedError, "Blocked version"),
    (lambda: linalg.funm(tall, jnp.sin), ValueError, "square array_like"),
    (lambda: linalg.solve(square, square, assume_a="x"), ValueError, "assume_a"),
    (lambda: linalg.solve(square, tall), ValueError, "rows"),
    (lambda: linalg.solve_triangular(square, tall), ValueError, "3 rows"),
    (lambda: linalg.solve_triangular(square, square, trans=3), ValueError, "Invalid 'trans'"),
    (lambda: linalg.lu_solve(linalg.lu_factor(square), square, trans="T"), ValueError, "'trans'"),
    (lambda: linalg.cho_solve((square, True), tall), ValueError, "3 rows"),
    (lambda: linalg.solve_sylvester(tall, tall, tall), ValueError, "Incompatible shapes"),
    (lambda: linalg.solve_sylvester(square, square, square, method="x"), ValueError, "method x"),
    (lambda: linalg.qr(square, mode="raw"), ValueError, "Unsupported QR"),
    (lambda: linalg.qr_multiply(square, square, mode="x"), ValueError, "mode must be"),
    (lambda: linalg.qr_multiply(tall, tall, mode="left"), ValueError, "Q has 3 columns"),
    (lambda: linalg.polar(square, "x"), ValueError, "side"),
    (lambda: linalg.schur(square, "x"), ValueError, "output"),
    (lambda: linalg.rsf2csf(square, np.eye(2)), ValueError, "must match"),
    (lambda: linalg.eigh(square, eigvals=(0, 1)), NotImplementedError, "eigvals=None"),
    (lambda: linalg.eigh(square, square, type=4), ValueError, "1, 2, or 3"),
    (lambda: linalg.eigh_tridiagonal(np.ones(3), np.ones(3)), TypeError, r"\[n - 1\]"),
    (lambda: linalg.eigh_tridiagonal(np.ones(3, "f8"), np.ones(2, "c8")), TypeError, "same dtype"),
    (lambda: linalg.eigh_tridiagonal(np.ones(3, "c8"), np.ones(2, "f4")), TypeError, "same dtype"),
    (lambda: linalg.eigh_tridiagonal(np.ones(3), np.ones(2), select="v", select_range=(0, 1)),
     NotImplementedError, "select='v'"),
    (lambda: linalg.eigh_tridiagonal(np.ones(3), np.ones(2), select="i"), ValueError,
     "must be specified"),
    (lambda: linalg.hadamard(3), ValueError, "power of 2"),
    (lambda: linalg.helmert(0), ValueError, "positive integer"),
    (lambda: linalg.pascal(3, "x"), ValueError, "kind"),
    (lambda: linalg.dft(3, "x"), ValueError, "scale must be"),
    (lambda: linalg.dft(3, dtype=int), ValueError, "must be a complex"),
    (lambda: linalg.leslie(np.ones(3), np.ones(3)), ValueError, "one less"),
    (lambda: linalg.companion(np.ones(1)), ValueError, "at least 2"),
    (lambda: linalg.convolution_matrix(np.ones(2), 0), ValueError, "positive integer"),
    (lambda: linalg.convolution_matrix(np.ones(2), 2, "x"), ValueError, "mode must be"),
    (lambda: linalg.block_diag(np.ones((2, 2, 2))), ValueError, "at most 2"),
])
def test_what_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_weak_types_of_products_and_forms():
    weak, strong = jnp.broadcast_to(0.5, (2, 2)), jnp.ones((2, 2))
    for fun in (linalg.qr_multiply, linalg.rsf2csf):
        assert all(x.weak_type for x in fun(weak, weak))
        assert not any(x.weak_type for x in fun(weak, strong))
    assert linalg.fiedler_companion(weak).weak_type
    assert linalg.fiedler_companion(jnp.ones((3, 1))).shape == (3, 0, 0)


@pytest.mark.parametrize("shape", [(3, 4), (1, 4), (4, 4)])
def test_vectors_in_a_batch(shape):
    count = 3 if shape[0] == 3 else 1 if shape[0] == 4 else 2
    matrices = np.stack([np.eye(4) * (i + 2.0) for i in range(count)])
    b = np.arange(math.prod(shape), dtype=float).reshape(shape)
    want = b / (np.arange(count) + 2.0)[:, None]
    pivots = np.broadcast_to(np.arange(4, dtype=np.int32), (count, 4))
    for name, solve in {
            "solve_triangular": lambda: linalg.solve_triangular(matrices, b),
            "cho_solve": lambda: linalg.cho_solve((np.sqrt(matrices), True), b),
            "lu_solve": lambda: linalg.lu_solve((matrices, pivots), b)}.items():
        with pytest.warns(FutureWarning, match=f"{name}: batched 1D solves with b.ndim > 1 are"):
            np.testing.assert_allclose(solve(), want, rtol=1e-6)
    np.testing.assert_allclose(linalg.solve(matrices, b, assume_a="pos"), want, rtol=1e-6)


def test_right_hand_sides_of_a_batch_of_one_may_be_matrices():
    a, b = np.eye(3)[None] * 2, np.arange(6.0).reshape(3, 2)
    pivots = np.arange(3, dtype=np.int32)[None]
    for solution in (linalg.solve_triangular(a, b), linalg.lu_solve((a, pivots), b),
                     linalg.cho_solve((a ** 0.5, True), b), linalg.solve(a, b, assume_a="pos")):
        np.testing.assert_allclose(solution, b[None] / 2, rtol=1e-6)


@pytest.mark.parametrize("lower", [False, True])
def test_derivatives_by_elements_of_positive_matrices(lower):
    a, b = positive("float64", 3, 3), random("float64", 3)
    got = jax.grad(lambda a: linalg.solve(a, b, lower=lower, assume_a="pos")[0])(a)
    np.testing.assert_allclose(got, jax.grad(lambda a: jnp.linalg.solve(a, b)[0])(a), rtol=1e-6)


@pytest.mark.parametrize("shape", [(12, 12), (40, 40), (30, 20)])
@pytest.mark.parametrize("condition", [1.0, 1e3, 7e6])
def test_polar_factors_of_ill_conditioned_matrices(shape, condition):
    u, _, v = np.linalg.svd(random("float64", *shape), full_matrices=False)
    a = ((u * np.linspace(condition, 1, shape[1])) @ v).astype(np.float32)
    q, h, _, converged = map(np.asarray, jax.lax.linalg.qdwh(a))
    assert converged
    np.testing.assert_allclose(q.T @ q, np.eye(shape[1]), atol=1e-5)
    np.testing.assert_allclose(q @ h, a, atol=1e-5 * condition)
    assert not jax.lax.linalg.qdwh(a, max_iterations=1)[3] or condition == 1


@pytest.mark.parametrize("seed", range(6))
def test_functions_at_negative_eigenvalues(seed):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(6, 6)) * 2
    a[0] = [-3.0, 0, 0, 0, 0, 0]  # at least one
    for x in (a, a.astype(np.float32)):
        tol = 1e-8 if x.dtype == np.float64 else 2e-2
        for name, got in (("sqrtm", linalg.sqrtm(x)),
                          ("funm", linalg.funm(x, lambda z: z ** -0.5))):
            want = sl.sqrtm(a) if name == "sqrtm" else sl.funm(a, lambda z: z ** -0.5)
            np.testing.assert_allclose(got, want, atol=tol * abs(want).max())


def test_complex_schur_forms_are_batched():
    form = np.array([[1.0, 2, 3], [0, 4, 5], [0, -1.5, 4]])
    eye = np.eye(3)
    for t, z in ((form, eye), (np.stack([form, 2 * form]), np.stack([eye, eye])),
                 (np.stack([form, 2 * form]), eye), (form, np.stack([eye, eye]))):
        s, q = map(np.asarray, linalg.rsf2csf(t, z))
        assert s.shape == q.shape == np.broadcast_shapes(t.shape, z.shape)
        np.testing.assert_allclose(np.tril(s, -1), 0, atol=1e-12)
        np.testing.assert_allclose(q @ s @ q.conj().swapaxes(-1, -2), np.broadcast_to(t, s.shape),
                                   atol=1e-12)
    with pytest.raises(ValueError, match="must match"):
        linalg.rsf2csf(form, np.eye(2))
    general = np.arange(9.0).reshape(3, 3) + eye  # what is left of it is SciPy's, too
    np.testing.assert_allclose(abs(linalg.rsf2csf(general, eye)[0]),
                               abs(sl.rsf2csf(general, eye)[0]), atol=1e-12)


def test_convolution_matrices_are_of_vectors():
    with pytest.raises(ValueError, match="convolution_matrix: a must have at least one axis"):
        linalg.convolution_matrix(2.0, 2)


@pytest.mark.parametrize("flag", [[True], np.ones(3)])
def test_several_values_are_no_flag(flag):
    with pytest.raises(TypeError, match="eigh: eigvals_only must be True or False, got"):
        linalg.eigh(jnp.eye(2), eigvals_only=flag)
    assert linalg.eigh(jnp.eye(2), eigvals_only=np.array(True)).shape == (2,)


@pytest.mark.parametrize("factor", [linalg.polar, jax.lax.linalg.qdwh])
def test_numbers_of_steps_are_not_negative(factor):
    with pytest.raises(ValueError, match="max_iterations must not be negative, got -1"):
        factor(jnp.eye(2), max_iterations=-1)
