"""Iterative solvers: against direct ones, over pytrees, with preconditioners and derivatives."""

from functools import partial

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.experimental import sparse
from pyjx.scipy.sparse.linalg import bicgstab, cg, gmres

rng = np.random.default_rng(0)
SOLVERS = {
    "cg": cg, "bicgstab": bicgstab, "gmres": gmres,
    "incremental": partial(gmres, solve_method="incremental"),
    "restarted": partial(gmres, restart=4, maxiter=500),
}


def system(name, n=12, dtype=np.float64):
    root = rng.normal(size=(n, n))
    if np.dtype(dtype).kind == "c":
        root = root + 1j * rng.normal(size=(n, n))
    A = root @ root.conj().T / n + 3 * np.eye(n) if name == "cg" else root / 3 + 3 * np.eye(n)
    b = rng.normal(size=n) + (1j * rng.normal(size=n) if np.dtype(dtype).kind == "c" else 0)
    return A.astype(dtype), b.astype(dtype)


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("preconditioned", [False, True])
def test_solves(name, dtype, preconditioned):
    single = np.dtype(dtype) in (np.float32, np.complex64)
    with jax.enable_x64(not single):
        A, b = system(name, dtype=dtype)
        M = (lambda x: x / np.diag(A)) if preconditioned else None
        solve = partial(SOLVERS[name], M=M, tol=1e-6 if single else 1e-11)
        want = np.linalg.solve(A, b)
        tolerance = 1e-4 if single else 1e-8
        for x, info in (solve(A, b), solve(lambda x: jnp.asarray(A) @ x, b),
                        jax.jit(lambda A, b: solve(A, b))(A, b), solve(A, b, jnp.asarray(want))):
            assert info is None or int(info) == 0
            assert x.dtype == dtype
            np.testing.assert_allclose(x, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", SOLVERS)
def test_the_solution_holds_what_the_operator_makes_of_b(name):
    """A complex or wider A, or M, beside a real or narrower b."""
    solve = SOLVERS[name]
    A, b = system(name, dtype=np.complex64)
    want = np.linalg.solve(A, b.real)
    for x, _ in (solve(A, b.real), solve(lambda x: A @ x, b.real), jax.jit(solve)(A, b.real),
                 solve(A, b.real, jnp.zeros(12))):
        assert x.dtype == np.complex64
        np.testing.assert_allclose(x, want, 1e-4, 1e-4)
    found = jax.grad(lambda b: jnp.sum(jnp.abs(solve(A, b)[0])))(jnp.asarray(b.real))
    wanted = jax.grad(lambda b: jnp.sum(jnp.abs(jnp.linalg.solve(A, b.astype(A.dtype)))))(b.real)
    np.testing.assert_allclose(found, wanted, 1e-3, 1e-3)
    real = system(name, dtype=np.float32)
    x, _ = solve(*real, M=lambda x: x * jnp.complex64(1))
    np.testing.assert_allclose(x, np.linalg.solve(*real), 1e-4, 1e-4)
    assert solve(real[0], real[1].astype(jnp.bfloat16))[0].dtype == np.float32
    with jax.enable_x64(True):
        A, b = system(name)
        np.testing.assert_allclose(solve(A, b.astype(np.float32), tol=1e-10)[0],
                                   np.linalg.solve(A, b.astype(np.float32)), 1e-7)


@pytest.mark.parametrize("name", SOLVERS)
def test_derivatives(name):
    with jax.enable_x64(True):
        A, b = system(name)
        solve = partial(SOLVERS[name], tol=1e-13)

        def total(A, b):
            return jnp.sin(solve(lambda x: A @ x, b)[0]).sum()

        def exact(A, b):
            return jnp.sin(jnp.linalg.solve(A, b)).sum()

        got, want = (jax.jit(jax.grad(f, argnums=(0, 1)))(A, b) for f in (total, exact))
        if name == "cg":  # the derivative is of symmetric matrices
            got, want = [((g[0] + g[0].T) / 2, g[1]) for g in (got, want)]
        for x, y in zip(got, want, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-7, atol=1e-9)
        tangents = rng.normal(size=b.shape)
        np.testing.assert_allclose(jax.jvp(lambda b: solve(A, b)[0], (b,), (tangents,))[1],
                                   np.linalg.solve(A, tangents), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", SOLVERS)
def test_pytrees(name):
    A, b = system(name, 6, np.float32)

    def apply(x):
        y = A @ jnp.concatenate([x["a"], x["b"].ravel()])
        return {"a": y[:2], "b": y[2:].reshape(2, 2)}

    x, _ = SOLVERS[name](apply, {"a": b[:2], "b": b[2:].reshape(2, 2)})
    np.testing.assert_allclose(np.concatenate([x["a"], x["b"].ravel()]), np.linalg.solve(A, b),
                               rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", SOLVERS)
def test_batches(name):
    A, _ = system(name, 6, np.float32)
    several = rng.normal(size=(3, 6)).astype(np.float32)
    x = jax.vmap(lambda b: SOLVERS[name](A, b)[0])(several)
    np.testing.assert_allclose(x, np.linalg.solve(A, several.T).T, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", SOLVERS)
def test_special_systems(name):
    solve = SOLVERS[name]
    assert solve(lambda x: x, jnp.zeros(3))[0].tolist() == [0, 0, 0]
    np.testing.assert_allclose(solve(lambda x: x, jnp.arange(3.0))[0], [0, 1, 2], atol=1e-6)
    np.testing.assert_allclose(solve(2.0 * np.eye(1, dtype=np.float32), np.array([3.0]))[0], [1.5])
    assert solve(lambda x: x, jnp.arange(3))[0].dtype == np.float32
    x = solve(np.diag([1.0, 2.0, 3.0]), jnp.ones(3), maxiter=0)[0]
    assert x.tolist() == [0, 0, 0]


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("kind", [sparse.BCOO, sparse.BCSR, sparse.COO, sparse.CSR])
def test_sparse_matrices(name, kind):
    A, b = system(name, dtype=np.float32)
    matrix, want = kind.fromdense(A), np.linalg.solve(A, b)
    for solve in (SOLVERS[name], jax.jit(SOLVERS[name])):
        np.testing.assert_allclose(solve(matrix, b)[0], want, rtol=1e-3, atol=1e-3)
    with pytest.raises(ValueError, match="be a square matrix, but has shape"):
        SOLVERS[name](kind.fromdense(A[:3]), b)


def test_refuses():
    with pytest.raises(TypeError, match="either a function or ndarray"):
        cg([[1.0]], jnp.ones(1))
    with pytest.raises(ValueError, match="square matrix"):
        cg(jnp.ones((2, 3)), jnp.ones(3))
    with pytest.raises(ValueError, match="matching tree structure"):
        cg(lambda x: x, jnp.ones(3), x0=(jnp.ones(3),))
    with pytest.raises(ValueError, match="matching shapes"):
        cg(lambda x: x, jnp.ones(3), x0=jnp.ones(4))
    with pytest.raises(ValueError, match="invalid solve_method"):
        gmres(lambda x: x, jnp.ones(3), solve_method="other")
