"""Samples of decompositions of matrices and of systems of equations.

Factors that are determined up to signs or phases only are multiplied together again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg as sl

import pyjx.numpy as jnp
from pyjx.lax import linalg
from pyjx.lax.linalg.determinants import det_p, factors_with_rank_p, slogdet_p
from pyjx.lax.linalg.general_systems import getrf_p, solve
from pyjx.lax.linalg.reflectors import geqp3_p, geqrf_p
from tests.op_table import Sample
from tests.ops.reductions import complexes, floats

TOL: Any = {"rtol": 2e-4, "atol": 2e-4}


def adjoint(x: Any) -> Any:
    return jnp.conj(jnp.swapaxes(x, -1, -2))


def positive(n: int, kind: Any = floats) -> np.ndarray:
    x = kind(n, n)
    return (x @ x.conj().T + n * np.eye(n)).astype(x.dtype)


def regular(n: int, kind: Any = floats) -> np.ndarray:
    return (kind(n, n) + 3 * np.eye(n)).astype(kind(1).dtype)


def hermitian(n: int, kind: Any = floats) -> np.ndarray:
    x = kind(n, n)
    return (x + x.conj().T + np.diag(np.arange(n) * 4)).astype(x.dtype)


def rebuilt_eigh(x: Any) -> Any:
    v, w = linalg.eigh(x)
    return w, (v * w[..., None, :] ** 2) @ adjoint(v)


def rebuilt_svd(x: Any) -> Any:
    u, s, vh = linalg.svd(x, full_matrices=False)
    return s, (u * s[..., None, :] ** 2) @ vh


def rebuilt_qr(x: Any, **options: Any) -> Any:
    q, r, *order = linalg.qr(x, full_matrices=False, **options)
    return (q @ (r @ adjoint(r)), *order)


def squared_svd(x: np.ndarray) -> Any:
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    return s, (u * s ** 2) @ vh


def squared_qr(x: np.ndarray) -> Any:
    q, r = np.linalg.qr(x)
    return (q @ (r @ r.conj().T),)


def rebuilt_eig(x: Any) -> Any:
    w, u, v = linalg.eig(x)
    return jnp.sum(w, -1), v * w[..., None, :] - x @ v, adjoint(u) @ x - w[..., None] * adjoint(u)


def rebuilt_schur(x: Any) -> Any:
    t, z = linalg.schur(x)
    return z @ t @ adjoint(z)


def exchanged(pivots: np.ndarray, n: int) -> np.ndarray:
    rows = np.arange(n, dtype=np.int32)
    for i, j in enumerate(pivots):
        rows[[i, j]] = rows[[j, i]]
    return rows


def reflections(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    packed, taus = np.linalg.qr(x, "raw")
    return np.ascontiguousarray(packed.T), taus


def dense(dl: np.ndarray, d: np.ndarray, du: np.ndarray) -> np.ndarray:
    return np.diag(d) + np.diag(dl[1:], -1) + np.diag(du[:-1], 1)


def updated(r: np.ndarray, w: np.ndarray) -> np.ndarray:
    return np.linalg.cholesky(r.T @ r + np.outer(w, w)).T


upper = np.triu(positive(4))
tall, taus = reflections(floats(5, 3))
diagonals = floats(6), floats(6) + 5, floats(6)
pivots = np.array([2, 1, 3], np.int32)


def solved(**options: Any) -> Any:
    def fun(a: Any, b: Any) -> Any:
        return linalg.triangular_solve(a, b, **options)

    return fun


SAMPLES = [
    Sample("cholesky", linalg.cholesky, (positive(5),), np.linalg.cholesky, **TOL),
    Sample("cholesky", linalg.cholesky, (positive(3, complexes),), np.linalg.cholesky, **TOL,
           id="complex"),
    Sample("cholesky_update", linalg.cholesky_update, (upper, floats(4)), updated, **TOL),
    Sample("eig", rebuilt_eig, (floats(4, 4),),
           lambda x: (np.trace(x).astype(np.complex64), 0j * x, 0j * x), diff=False, **TOL),
    Sample("eig", lambda x: linalg.eig(x, compute_left_eigenvectors=False,
                                       compute_right_eigenvectors=False,
                                       enable_eigvec_derivs=True)[0],
           (np.diag([1.0, 4, 9]).astype(np.float32) + floats(3, 3) / 9,), **TOL, id="values"),
    Sample("eigh", rebuilt_eigh, (hermitian(4),),
           lambda x: (np.linalg.eigvalsh(x), x @ x), rtol=1e-3, atol=1e-3),
    Sample("eigh", rebuilt_eigh, (hermitian(3, complexes),),
           lambda x: (np.linalg.eigvalsh(x), x @ x), rtol=1e-3, atol=1e-3, id="complex"),
    Sample("getrf", lambda x: tuple(getrf_p.bind(x)), (regular(4),),
           lambda x: tuple(sl.lu_factor(x)), diff=False, **TOL),
    Sample("lu", lambda x: linalg.lu(x)[:2], (regular(4),), lambda x: tuple(sl.lu_factor(x)),
           **TOL),
    Sample("lu", lambda x: linalg.lu(x)[0], (floats(5, 3),), **TOL, id="tall"),
    Sample("lu", lambda x: linalg.lu(x)[0], (complexes(3, 5),), **TOL, id="wide"),
    Sample("lu_pivots_to_permutation", lambda p: linalg.lu_pivots_to_permutation(p, 5), (pivots,),
           lambda p: exchanged(p, 5)),
    Sample("geqrf", lambda x: tuple(geqrf_p.bind(x)), (floats(5, 3),), reflections, diff=False,
           **TOL),
    Sample("geqp3", lambda x, free: tuple(geqp3_p.bind(x, free, use_magma=None))[1],
           (np.diag([1, 3, 2]).astype(np.float32), np.zeros(3, np.int32)),
           lambda x, _: np.array([1, 2, 0], np.int32), diff=False, **TOL),
    Sample("qr", rebuilt_qr, (floats(5, 3),), squared_qr, **TOL),
    Sample("qr", rebuilt_qr, (complexes(3, 5),), squared_qr, **TOL, id="wide"),
    Sample("qr", lambda x: rebuilt_qr(x, pivoting=True)[0], (floats(4, 4),), **TOL, id="pivoting"),
    Sample("householder_product", linalg.householder_product, (tall, taus),
           lambda a, t: sl.lapack.sorgqr(a, t)[0], diff=False, **TOL),
    Sample("ormqr", linalg.ormqr, (tall, taus, floats(5, 2)),
           lambda a, t, c: sl.lapack.sormqr("L", "N", a, t, c, 64)[0], diff=False, **TOL),
    Sample("schur", rebuilt_schur, (floats(4, 4),), lambda x: x, diff=False, **TOL),
    Sample("hessenberg", lambda x: jnp.triu(linalg.hessenberg(x)[0], -1), (floats(4, 4),),
           sl.hessenberg, diff=False, **TOL),
    Sample("tridiagonal", lambda x: linalg.tridiagonal(x)[1], (hermitian(4),), diff=False, **TOL),
    Sample("svd", rebuilt_svd, (floats(5, 3),), squared_svd, **TOL),
    Sample("svd", rebuilt_svd, (complexes(3, 4),), squared_svd, **TOL, id="complex"),
    Sample("svd", lambda x: linalg.svd(x, compute_uv=False), (floats(3, 4),),
           lambda x: np.linalg.svd(x, compute_uv=False), **TOL, id="values"),
    Sample("symmetric_product", lambda a, c: linalg.symmetric_product(a, c, alpha=2.0, beta=3.0),
           (floats(3, 4), hermitian(3)), lambda a, c: 2 * a @ a.T + 3 * c, **TOL),
    Sample("triangular_solve", solved(left_side=True, lower=True), (regular(4), floats(4, 2)),
           lambda a, b: sl.solve_triangular(a, b, lower=True), **TOL),
    Sample("triangular_solve", solved(transpose_a=True, conjugate_a=True),
           (regular(3, complexes), complexes(2, 3)),
           lambda a, b: b @ np.linalg.inv(np.triu(a).conj().T), **TOL, id="right"),
    Sample("triangular_solve", solved(left_side=True, unit_diagonal=True, conjugate_a=True),
           (complexes(3, 3) / 4, complexes(3, 2)),
           lambda a, b: sl.solve_triangular(a.conj(), b, unit_diagonal=True), **TOL, id="unit"),
    Sample("tridiagonal_solve", linalg.tridiagonal_solve, (*diagonals, floats(6, 2)),
           lambda dl, d, du, b: np.linalg.solve(dense(dl, d, du), b), **TOL),
    Sample("solve", solve, (regular(4), floats(4, 2)), np.linalg.solve, **TOL),
    Sample("solve", solve, (regular(3, complexes), complexes(3, 1)), np.linalg.solve, **TOL,
           id="complex"),
    Sample("det", det_p.bind, (regular(4),), np.linalg.det, rtol=1e-3, atol=1e-3),
    Sample("det", det_p.bind, (complexes(3, 3),), np.linalg.det, **TOL, id="complex"),
    Sample("factors_with_rank", lambda x: factors_with_rank_p.bind(x, *linalg.lu(x))[0],
           (regular(4),), lambda x: sl.lu_factor(x)[0], diff=False, **TOL),
    Sample("slogdet", lambda x: tuple(slogdet_p.bind(x, method="lu")), (complexes(4, 4),),
           np.linalg.slogdet, **TOL),
    Sample("slogdet", lambda x: tuple(slogdet_p.bind(x, method="qr")), (regular(4),),
           np.linalg.slogdet, **TOL, id="qr"),
]
