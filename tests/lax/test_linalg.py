"""Decompositions against NumPy and SciPy: all dtypes, sizes and forms, and what is refused."""

import numpy as np
import pytest
import scipy.linalg as sl

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.core.evaluation import all_eqns
from pyjx.core.jaxpr import Literal
from pyjx.lax import linalg
from pyjx.lax.linalg.general_systems import _eliminated
from pyjx.lax.linalg.reflectors import _reflected, geqrf_p
from pyjx.lax.linalg.spectral import _by_polar_factors

DTYPES = ["float32", "float64", "complex64", "complex128"]
SQUARE = [(5, 5), (3, 4, 4), (2, 1, 3, 3), (1, 1), (0, 0), (2, 0, 0), (0, 3, 3)]
SHAPES = [(5, 5), (3, 6, 4), (3, 4, 6), (1, 1), (0, 0), (2, 0), (0, 3), (0, 4, 3)]
rng = np.random.default_rng(0)
by_polar_factors = jax.jit(_by_polar_factors, static_argnames=("full_matrices", "compute_uv"))


def reseed():
    """Each test has the same numbers, whichever run before it."""
    rng.bit_generator.state = np.random.default_rng(0).bit_generator.state


@pytest.fixture(autouse=True)
def wide():
    reseed()
    with jax.enable_x64(True):
        yield


def random(dtype, *shape):
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def adjoint(x):
    return np.conj(np.swapaxes(np.asarray(x), -1, -2))


def positive(dtype, *shape):
    x = random(dtype, *shape)
    return (x @ adjoint(x) + 5 * np.eye(shape[-1])).astype(dtype)


def close(x, y, scale=1.0):
    x, y = np.asarray(x), np.asarray(y)
    single = {x.dtype, y.dtype} & {np.dtype(np.float32), np.dtype(np.complex64)}
    tol = scale * (2e-4 if single else 1e-10)
    np.testing.assert_allclose(x, y, rtol=tol, atol=tol)


def unitary(x):
    x = np.asarray(x)
    close(adjoint(x) @ x, np.broadcast_to(np.eye(x.shape[-1]), (*x.shape[:-2], *x.shape[-1:] * 2)))


def both(fun, *args):
    """Eagerly and compiled."""
    outs = fun(*args)
    for x, y in zip(jax.tree_util.tree_leaves(outs),
                    jax.tree_util.tree_leaves(jax.jit(fun)(*args)), strict=True):
        assert x.dtype == y.dtype
        close(x, y)
    return outs


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SQUARE)
def test_square_matrices(dtype, shape):
    a, h = random(dtype, *shape), positive(dtype, *shape)
    factor = both(linalg.cholesky, h)
    assert factor.dtype == dtype
    close(factor, np.linalg.cholesky(h))
    close(linalg.cholesky(np.tril(h), symmetrize_input=False), np.linalg.cholesky(h))
    v, w = map(np.asarray, both(linalg.eigh, h))
    close(w, np.linalg.eigvalsh(h))
    close((v * w[..., None, :]) @ adjoint(v), h, 10)
    v, w = linalg.eigh(np.triu(h), lower=False, symmetrize_input=False)
    close(w, np.linalg.eigvalsh(h))
    w, u, v = map(np.asarray, both(linalg.eig, a))
    close(a @ v, v * w[..., None, :], 5)
    close(adjoint(u) @ a, w[..., :, None] * adjoint(u), 5)
    t, z = map(np.asarray, both(linalg.schur, a))
    close(z @ t @ adjoint(z), a, 5)
    unitary(z)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_rectangular_matrices(dtype, shape):
    a = random(dtype, *shape)
    k = min(shape[-2:])
    factors, pivots, order = both(linalg.lu, a)
    left = np.tril(np.asarray(factors)[..., :k], -1) + np.eye(shape[-2], k)
    moved = np.take_along_axis(a, np.asarray(order)[..., None], -2)
    close(left @ np.triu(np.asarray(factors)[..., :k, :]), moved)
    np.testing.assert_array_equal(
        linalg.lu_pivots_to_permutation(pivots, shape[-2]), order)
    for full in (True, False):
        q, r = linalg.qr(a, full_matrices=full)
        assert q.shape == np.linalg.qr(a, "complete" if full else "reduced")[0].shape
        close(np.asarray(q) @ np.asarray(r), a)
        unitary(q)
        q, r, p = linalg.qr(a, full_matrices=full, pivoting=True)
        close(np.asarray(q) @ np.asarray(r),
              np.take_along_axis(a, np.asarray(p)[..., None, :], -1))
        for algorithm in (None, linalg.SvdAlgorithm.QR):
            found = linalg.svd(a, full_matrices=full, algorithm=algorithm)
            check_svd(a, found, full)
        s, u, vh = by_polar_factors(a, full_matrices=full, compute_uv=True)
        check_svd(a, (u, s, vh), full)
    close(linalg.svd(a, compute_uv=False), np.linalg.svd(a, compute_uv=False))


@pytest.mark.parametrize(("pivots", "size", "want"), [
    ([3, 7, 9], 4, [3, 0, 0, 0]),
    ([-1, 2], 4, [3, 2, 1, 0]),
    ([1, 0, 0], 4, [2, 1, 0, 3]),
    ([3, 17, -1, 0, -20, 1, 2], 9, [0, 5, 6, 3, 0, 8, 8, 7, 2]),
])
def test_pivots_that_lapack_never_gives_are_indices_as_others(pivots, size, want):
    assert linalg.lu_pivots_to_permutation(np.int32(pivots), size).tolist() == want


def check_svd(a, found, full):
    u, s, vh = map(np.asarray, found)
    want = np.linalg.svd(a, full_matrices=full)
    assert [x.shape for x in (u, s, vh)] == [x.shape for x in want]
    close(s, want[1])
    k = s.shape[-1]
    close((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], a)
    unitary(u)
    unitary(adjoint(vh))


@pytest.mark.parametrize("dtype", DTYPES)
def test_polar_factors_of_matrices_that_lack_ranks(dtype):
    for a in (random(dtype, 5, 1) @ random(dtype, 1, 4), np.zeros((4, 4), dtype)):
        s, u, vh = by_polar_factors(a, full_matrices=True, compute_uv=True)
        check_svd(a, (u, s, vh), True)


def test_the_limit_of_polar_factors_of_known_sizes_is_a_number():
    eqns = all_eqns(jax.make_jaxpr(linalg.qdwh)(np.eye(3)))
    assert not [e for e in eqns if e.primitive.name == "mul"
                and all([type(v) is Literal for v in e.invars])]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5, 5), (6, 4), (1, 1)])
def test_qdwh(dtype, shape):
    a = random(dtype, *shape)
    u, h, steps, converged = both(linalg.qdwh, a)
    want = sl.polar(a)
    close(u, want[0], 5)
    close(h, want[1], 5)
    assert converged and 0 < steps <= 7
    _, _, steps, converged = linalg.qdwh(a, max_iterations=1)
    assert steps == 1 and (not converged or shape == (1, 1))
    u, h, *_ = linalg.qdwh(a, dynamic_shape=(shape[0], shape[1] - 1))
    assert not np.any(np.asarray(u)[:, -1])


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
@pytest.mark.parametrize("conjugate", [True, False])
def test_triangular_solve(dtype, left, lower, transpose, conjugate):
    for batch in ((), (3,), (0,)):
        for unit in (True, False):
            a = random(dtype, *batch, 4, 4) + 3 * np.eye(4, dtype=dtype)
            b = random(dtype, *batch, *((4, 2) if left else (2, 4)))
            x = np.asarray(both(lambda a, b, unit=unit: linalg.triangular_solve(
                a, b, left_side=left, lower=lower, transpose_a=transpose, conjugate_a=conjugate,
                unit_diagonal=unit), a, b))
            op = np.tril(a) if lower else np.triu(a)
            if unit:
                op = op * (1 - np.eye(4)) + np.eye(4)
            op = np.swapaxes(op, -1, -2) if transpose else op
            op = np.conj(op) if conjugate else op
            close(op @ x if left else x @ op, b, 10)
    vector = random(dtype, 4)
    x = linalg.triangular_solve(a := np.eye(4, dtype=dtype) * 2, vector, left_side=left)
    assert x.shape == (4,)
    close(x, vector / 2)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_triangular_systems_of_dtypes_that_lapack_lacks(dtype):
    a, b = jax.numpy.array([[2, 0], [1, 4]], dtype), jax.numpy.array([[2, 4], [5, 2]], dtype)
    x = linalg.triangular_solve(a, b, left_side=True, lower=True)
    assert x.dtype == dtype and x.tolist() == [[1, 2], [1, 0]]
    x = jax.scipy.linalg.cho_solve((a, True), jax.numpy.array([4, 18], dtype))
    assert x.dtype == dtype and x.tolist() == [0.5, 1]


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(6,), (2, 3), (1,), (2,), (0,), (0, 3)])
def test_tridiagonal_solve(dtype, shape):
    dl, d, du = random(dtype, *shape), random(dtype, *shape) + 4, random(dtype, *shape)
    b = random(dtype, *shape, 2)
    found = [linalg.tridiagonal_solve(dl, d, du, b, perturb_singular=p) for p in (False, True)]
    found.append(both(linalg.tridiagonal_solve, dl, d, du, b))
    if shape[-1]:
        found.append(_eliminated(dl, d, du, b, perturb_singular=False))
    for x in found:
        for i in np.ndindex(*shape[:-1]):
            matrix = np.diag(d[i]) + np.diag(dl[i][1:], -1) + np.diag(du[i][:-1], 1)
            close(matrix @ np.asarray(x)[i], b[i])


@pytest.mark.parametrize("dtype", DTYPES)
def test_reflections_and_reductions(dtype):
    a, c = random(dtype, 6, 4), random(dtype, 6, 3)
    packed, taus = geqrf_p.bind(a)
    q = np.asarray(linalg.qr(a)[0])
    for left in (True, False):
        for transpose in (True, False):
            x = c if left else c.T
            op = adjoint(q) if transpose else q
            want = op @ x if left else x @ op
            close(linalg.ormqr(packed, taus, x, left=left, transpose=transpose), want)
            close(_reflected(packed, taus, x, left=left, transpose=transpose), want)
    close(linalg.householder_product(packed, taus), q[:, :4])
    s = random(dtype, 5, 5)
    close(np.triu(linalg.hessenberg(s)[0], -1), sl.hessenberg(s))
    s = s + adjoint(s)
    for lower in (True, False):
        _, d, e, _ = linalg.tridiagonal(s, lower=lower)
        close(sl.eigvalsh_tridiagonal(np.asarray(d), np.asarray(e)), np.linalg.eigvalsh(s), 10)
    assert [x.shape for x in linalg.tridiagonal(s[:1, :1])] == [(1, 1), (1,), (0,), (0,)]


def test_what_fails_is_nan():
    good = positive("float32", 3, 3)
    out = np.asarray(linalg.cholesky(np.stack([good, -good])))
    assert np.isfinite(out[0]).all()
    np.testing.assert_array_equal(np.isnan(out[1]), np.tril(np.ones((3, 3), bool)))
    singular = linalg.lu(np.zeros((2, 2)))[0]
    assert np.isfinite(np.asarray(singular)).all()
    assert np.isnan(np.asarray(linalg.eigh(np.full((2, 2), np.nan))[1])).all()
    assert np.isnan(np.asarray(linalg.svd(np.full((2, 2), np.nan))[1])).all()
    assert np.isnan(np.asarray(linalg.cholesky(-np.eye(2, dtype=np.complex64)))[0, 0].imag)


def test_subsets():
    h, a = positive("float64", 5, 5), random("float64", 6, 4)
    v, w = linalg.eigh(h)
    some = linalg.eigh(h, subset_by_index=(1, 3))
    close(some[1], w[1:3])
    close(some[0], v[:, 1:3])
    u, s, vh = linalg.svd(a, full_matrices=False)
    some = linalg.svd(a, full_matrices=False, subset_by_index=(0, 2))
    for x, y in zip(some, (u[:, :2], s[:2], vh[:2]), strict=True):
        close(x, y)
    close(linalg.svd(a, compute_uv=False, subset_by_index=(1, 4)), s[1:4])
    assert linalg.svd(a, subset_by_index=(0, 4))[0].shape == (6, 6)


def test_integers_become_floats():
    with jax.enable_x64(False):
        x = np.array([[4, 2], [2, 5]])
        assert linalg.cholesky(x).dtype == np.float32
        assert linalg.eigh(x)[1].dtype == np.float32


half = np.eye(3, dtype=np.float16)
matrix, rows = np.eye(3), np.ones((4, 3))


@pytest.mark.parametrize("call, error, message", [
    (lambda: linalg.cholesky(rows), ValueError, r"must have shape \[..., n, n\]"),
    (lambda: linalg.cholesky(matrix[0]), ValueError, r"got shape \(3,\)"),
    (lambda: linalg.cholesky(half), TypeError, "does not accept dtype float16"),
    (lambda: linalg.eigh(rows), ValueError, r"must have shape \[..., n, n\]"),
    (lambda: linalg.lu(matrix[0]), TypeError, "rank at least 2"),
    (lambda: linalg.lu(np.eye(3, dtype=int)), TypeError, "does not accept dtype int64"),
    (lambda: linalg.qr(half), TypeError, "qr does not accept dtype float16"),
    (lambda: linalg.svd(matrix[0]), TypeError, "rank at least 2"),
    (lambda: linalg.svd(matrix, subset_by_index=(0, 2)), ValueError, "cannot both be set"),
    (lambda: linalg.svd(matrix, subset_by_index=(2, 9), full_matrices=False), ValueError, "0 <= "),
    (lambda: linalg.svd(matrix, algorithm="QR"), TypeError, "SvdAlgorithm.QR"),
    (lambda: linalg.svd(matrix, algorithm=linalg.SvdAlgorithm.JACOBI), NotImplementedError,
     "not implemented on CPU"),
    (lambda: linalg.eigh(matrix, implementation=linalg.EighImplementation.QDWH),
     NotImplementedError, "not implemented on CPU"),
    (lambda: linalg.eig(matrix, implementation=linalg.EigImplementation.MAGMA), ValueError,
     "not implemented on CPU"),
    (lambda: linalg.eig(rows), ValueError, "must be a square matrix"),
    (lambda: linalg.schur(matrix, sort_eig_vals=True), NotImplementedError, "sort"),
    (lambda: linalg.hessenberg(np.zeros((0, 0))), ValueError, "Hessenberg"),
    (lambda: linalg.tridiagonal(rows), ValueError, "square matrix"),
    (lambda: linalg.householder_product(rows.T, np.ones(3)), ValueError, "as many rows"),
    (lambda: linalg.householder_product(rows, np.ones(5)), ValueError, "must not have more rows"),
    (lambda: linalg.ormqr(rows, np.ones(3), matrix), ValueError, "same number of rows"),
    (lambda: linalg.triangular_solve(rows, rows), ValueError, "must be a square matrix"),
    (lambda: linalg.triangular_solve(matrix, rows, left_side=True), ValueError, "Incompatible"),
    (lambda: linalg.triangular_solve(matrix, np.eye(3, dtype=int)), TypeError, "int64"),
    (lambda: linalg.triangular_solve(matrix, np.stack([matrix] * 2)), TypeError, "batch"),
    (lambda: linalg.tridiagonal_solve(*[np.ones(3)] * 3, rows), TypeError, "leading ndim-1"),
    (lambda: linalg.lu_pivots_to_permutation(np.ones(3), 3), TypeError, "float64"),
    (lambda: linalg.lu_pivots_to_permutation(np.zeros(3, np.int32), 2), ValueError, "exceed"),
    (lambda: linalg.cholesky_update(np.stack([matrix] * 2), np.ones((2, 3))), TypeError, "rank"),
    (lambda: linalg.cholesky_update(matrix, np.ones(2)), ValueError, "same size"),
    (lambda: linalg.symmetric_product(rows, matrix), ValueError, "square matrix"),
    (lambda: linalg.qdwh(rows.T), ValueError, "M >= N"),
    (lambda: linalg.qdwh(np.stack([matrix] * 2)), ValueError, "expected a matrix"),
])
def test_what_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_use_magma_warns():
    with pytest.warns(DeprecationWarning, match="use_magma"), pytest.raises(ValueError):
        linalg.eig(matrix, use_magma=True)


# -- transformations -------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.parametrize("axes", [(0, 0), (1, 2), (2, None), (None, 1), (None, 0)])
def test_batches_of_systems(axes):
    """Along any axis, of the matrices, the right-hand sides or both."""
    a = [random("float64", 4, 4) + 4 * np.eye(4) for _ in range(3)]
    b = [random("float64", 4, 2) for _ in range(3)]
    given = [x[0] if d is None else np.stack(x, d) for x, d in zip((a, b), axes, strict=True)]
    pairs = [tuple(x[0] if d is None else x[i] for x, d in zip((a, b), axes, strict=True))
             for i in range(3)]
    close(jax.vmap(jnp.linalg.solve, axes)(*given), [np.linalg.solve(*p) for p in pairs])
    solve = jax.vmap(lambda a, b: linalg.triangular_solve(a, b, left_side=True), axes)
    close(solve(*given), [np.linalg.solve(np.triu(a), b) for a, b in pairs])
    right = jax.vmap(lambda a, b: linalg.triangular_solve(a, b.T), axes)
    close(right(*given), [b.T @ np.linalg.inv(np.triu(a)) for a, b in pairs])


def test_mapped_right_hand_sides_are_columns():
    a = np.eye(3)
    text = str(jax.make_jaxpr(jax.vmap(lambda b: jnp.linalg.solve(a, b)))(np.ones((5, 3, 2))))
    assert "f64[3,10] = solve" in text


def derivatives_agree(fun, x, order):
    """Forward, reverse and mixed derivatives against differences, on a line through x."""
    t = random(x.dtype, *x.shape)

    def on_line(s):
        leaves = [y for y in jax.tree_util.tree_leaves(fun(x + s * t))
                  if jnp.issubdtype(y.dtype, jnp.inexact)]
        total = 0.0
        for y in leaves:
            weights = 1 + np.arange(y.size).reshape(y.shape)
            total = total + jnp.sum(jnp.real(y * jnp.conj(y)) * weights)
        return total

    g = on_line
    for _ in range(order - 1):
        g = jax.grad(g)
    slope = (float(g(1e-5)) - float(g(-1e-5))) / 2e-5
    close(jax.grad(g)(0.0), np.float64(slope), 1e5 * (1 + abs(slope)))
    close(jax.jvp(g, (0.0,), (1.0,))[1], jax.grad(g)(0.0), 100 * (1 + abs(slope)))


def with_projection(x):
    v, w = linalg.eigh(x + adjoint_of(x))
    return w, v[..., :1] @ adjoint_of(v[..., :1])


def with_dyad(x):
    u, s, vh = linalg.svd(x, full_matrices=False)
    return s, u[..., :1] @ vh[..., :1, :]


def adjoint_of(x):
    return jnp.conj(jnp.swapaxes(x, -1, -2))


FUNCTIONS = {
    "cholesky": lambda x: linalg.cholesky(x @ adjoint_of(x) + jnp.eye(x.shape[-1])),
    "eigh": with_projection,
    "svd": with_dyad,
    "svd values": lambda x: linalg.svd(x, compute_uv=False),
    "lu": lambda x: linalg.lu(x)[0],
    "qr": lambda x: linalg.qr(x, full_matrices=False),
    "full qr": linalg.qr,
    "eig": lambda x: linalg.eig(x, enable_eigvec_derivs=True),
    "solve": lambda x: jnp.linalg.solve(x, np.ones((x.shape[-1], 2))),
    "det": jnp.linalg.det,
    "slogdet": lambda x: jnp.linalg.slogdet(x),
}


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("order", [1, 2, 3])
def test_derivatives(name, dtype, order):
    if name in ("eig", "qr", "full qr") and order == 3:
        order = 2  # far from linear: differences are imprecise
    x = random(dtype, 4, 4) + np.diag([0, 3, 7, 12])
    derivatives_agree(FUNCTIONS[name], x.astype(dtype), order)


@pytest.mark.parametrize("name", ["lu", "svd", "qr", "full qr", "svd values"])
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 4, 3)])
def test_derivatives_of_rectangular_matrices(name, shape):
    for dtype in ("float64", "complex128"):
        derivatives_agree(FUNCTIONS[name], random(dtype, *shape), 1)


def test_degenerate_derivatives():
    eye = np.eye(3)
    _, (dv, dw) = jax.jvp(linalg.eigh, (eye,), (np.ones((3, 3)),))
    assert not np.isfinite(np.asarray(dv)).all()
    np.testing.assert_allclose(dw, np.ones(3))
    _, (_, ds, _) = jax.jvp(linalg.svd, (eye,), (np.ones((3, 3)),))
    np.testing.assert_allclose(ds, np.ones(3))
    x = random("float64", 4, 4)
    x[1] = x[0]  # of rank 3
    cofactors = jax.grad(jnp.linalg.det)(x)
    for i in range(4):
        minor = np.delete(np.delete(x, i, 0), 2, 1)
        close(cofactors[i, 2], (-1) ** (i + 2) * np.linalg.det(minor))
    np.testing.assert_array_equal(jax.grad(jnp.linalg.det)(np.ones((4, 4))), np.zeros((4, 4)))


def test_columns_of_q_beyond_those_of_r():
    x, dx = random("complex128", 6, 2), random("complex128", 6, 2)
    step = 1e-6
    moved = [linalg.qr(x + s * dx)[0] for s in (step, -step)]
    _, (dq, _) = jax.jvp(linalg.qr, (x,), (dx,))
    np.testing.assert_allclose(dq, (moved[0] - moved[1]) / (2 * step), atol=1e-7)
    without = np.array([[1.0, 2.0], [0.0, 3.0], [0.0, 0.0]])  # no reflection is needed
    _, (dq, _) = jax.jvp(linalg.qr, (without,), (np.ones((3, 2)),))
    np.testing.assert_allclose(dq + dq.T, np.zeros((3, 3)), atol=1e-12)


@pytest.mark.parametrize("fun", [
    linalg.schur, linalg.hessenberg, linalg.tridiagonal,
    lambda x: linalg.svd(x[:, :2]), lambda x: linalg.eig(x)])
def test_what_has_no_derivative(fun):
    with pytest.raises(NotImplementedError):
        jax.jvp(fun, (random("float64", 3, 3),), (np.ones((3, 3)),))


def test_cholesky_depends_on_the_lower_triangle_alone():
    a = jnp.array([[4.0, 1.0], [1.0, 3.0]])
    factor = lambda x: linalg.cholesky(x, symmetrize_input=False)  # noqa: E731
    above = jnp.array([[0.0, 1.0], [0.0, 0.0]])
    np.testing.assert_array_equal(jax.jvp(factor, (a,), (above,))[1], np.zeros((2, 2)))
    gradient = jax.grad(lambda x: factor(x)[1, 1])(a)
    assert gradient[0, 1] == 0
    step = 1e-3
    moved = [factor(a.at[1, 0].add(s))[1, 1] for s in (step, -step)]
    np.testing.assert_allclose(gradient[1, 0], (moved[0] - moved[1]) / (2 * step), rtol=1e-3)


def test_results_are_weak_where_all_operands_are():
    weak, strong = jnp.broadcast_to(0.5, (2, 2)), jnp.eye(2)
    functions = [linalg.cholesky, linalg.eig, linalg.eigh, linalg.hessenberg, linalg.lu, linalg.qr,
                 linalg.schur, linalg.svd, linalg.tridiagonal]
    for f in functions:
        assert all(x.weak_type for x in jax.tree.leaves(jax.eval_shape(f, weak))), f
        assert not any(x.weak_type for x in jax.tree.leaves(jax.eval_shape(f, strong))), f
    assert jax.eval_shape(linalg.triangular_solve, weak, weak).weak_type
    assert not jax.eval_shape(linalg.triangular_solve, weak, strong).weak_type
    assert jax.eval_shape(jnp.linalg.solve, weak, weak).weak_type
    assert linalg.cholesky(weak + 1j).weak_type
