"""On few numbers a CPU computes products, factorizations and loops in other ways: by the same
equations as the operations' own rules, which the flag brings back."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import jaxlib_api, lax
from pyjx.configuration import small_kernels
from pyjx.engine import decompose
from pyjx.jaxlib_api import SMALL_CALLS
from pyjx.lax.linalg.matrices import FEW
from pyjx.runtime import compile
from tests.test_ops import leaves

DTYPES = ("float32", "float64", "complex64", "complex128")


@pytest.fixture(autouse=True)
def cpu() -> None:
    if jax.default_backend() != "cpu":
        pytest.skip("for CPUs alone")


def both(f: Callable[..., Any], *args: Any) -> tuple[list[np.ndarray], list[np.ndarray], str, str]:
    """The results and texts with and without the flag."""
    found = []
    with jax.enable_x64(True):
        for on in (True, False):
            with small_kernels(on):
                lowered = jax.jit(lambda *xs: f(*xs)).lower(*args)
                found.append((leaves(lowered.compile()(*args)), lowered.as_text()))
    return found[0][0], found[1][0], found[0][1], found[1][1]


def drawn(dtype: str, *shape: int) -> np.ndarray:
    rng = np.random.default_rng(sum(shape))
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype[0] == "c" else x).astype(dtype)


def definite(dtype: str, *shape: int) -> np.ndarray:
    x = drawn(dtype, *shape)
    return (x @ x.conj().swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1])).astype(dtype)


# -- products --------------------------------------------------------------------------------------

SPECS = {
    "ij,jk->ik": ((4, 5), (5, 6)), "bij,bkj->bik": ((7, 3, 4), (7, 9, 4)),
    "ijk,jkl->il": ((3, 2, 2), (2, 2, 30)), "i,i->": ((3,), (3,)), "bi,i->b": ((5, 3), (3,)),
    "ji,jk->ki": ((8, 8), (8, 8)), "abij,abjk->abik": ((2, 3, 4, 4), (2, 3, 4, 1)),
    "bij,bjk->bik": ((0, 3, 4), (0, 4, 2)),
}


@pytest.mark.parametrize("dtype", [*DTYPES, "int32", "int64"])
def test_products(dtype: str) -> None:
    args = [[(drawn("float64", *shape) * 3).astype(jnp.dtype(dtype)) for shape in shapes]
            for shapes in SPECS.values()]
    def products(*args: Any) -> Any:
        return [jnp.einsum(spec, *xs) for spec, xs in zip(SPECS, args, strict=True)]

    def in_loop(*args: Any) -> Any:  # one product alone stays what it is
        return lax.fori_loop(0, 1, lambda _, __: products(*args), products(*args))

    got, want, text, plain = both(in_loop, *args)
    body = text.partition("stablehlo.while")[2]
    assert "stablehlo.dot_general" not in body and "stablehlo.dot_general" in plain
    for g, w in zip(got, want, strict=True):
        assert g.dtype == w.dtype
        tolerance = 8 * float(jnp.finfo(dtype).eps) if jnp.issubdtype(dtype, np.inexact) else 0
        np.testing.assert_allclose(g.astype(complex), w.astype(complex), rtol=tolerance,
                                   atol=tolerance * 30)


@pytest.mark.parametrize(("shapes", "stays"), [
    (((8, 9, 9), (8, 9, 9)), True), (((8, 3, 9), (8, 9, 3)), True), (((8, 0, 0), (8, 0, 3)), True),
    (((4, 4), (4, 4)), True), (((7, 4, 4), (7, 4, 4)), True), (((8, 4, 4), (8, 4, 4)), False),
    (((20_000, 3), (3, 3)), True), (((8, 200, 8), (8, 8, 8)), True), (((8, 8, 8), (8, 8, 1)), True),
    (((8, 4, 4), (8, 4, 1)), False)])
def test_others_stay(shapes: tuple[tuple[int, ...], ...], stays: bool) -> None:
    got, want, text, _ = both(jnp.matmul, *[drawn("float32", *shape) for shape in shapes])
    assert ("stablehlo.dot_general" in text) == stays
    np.testing.assert_allclose(got[0], want[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("dtype", "out"), [
    ("float32", "int32"), ("bfloat16", "float32"), ("int32", "float32"), ("float16", "int64")])
def test_products_in_another_dtype_stay(dtype: str, out: str) -> None:
    x = np.full((8, 1, 2), 1.6).astype(jnp.dtype(dtype))
    got, want, text, _ = both(lambda x: lax.dot_general(
        x, x, (((2,), (2,)), ((0,), (0,))), preferred_element_type=out), x)
    assert "stablehlo.dot_general" in text
    np.testing.assert_array_equal(got, want)


def test_an_algorithm_is_the_users_choice() -> None:
    x = drawn("float32", 8, 3, 3)
    _, _, text, _ = both(lambda x: lax.dot_general(
        x, x, (((2,), (1,)), ((0,), (0,))), precision="BF16_BF16_F32"), x)
    assert "stablehlo.dot_general" in text


def test_many_systems_are_for_lapack() -> None:
    """Else the program takes many times as long to compile."""
    def f(a: Any, b: Any) -> Any:
        for _ in range(6):
            b = jnp.linalg.solve(a + b, b)
        return b

    text = jax.jit(f).lower(definite("float32", 8, 4, 4), drawn("float32", 8, 4, 4)).as_text()
    assert "lapack_sgetrf" in text


# -- factorizations and systems --------------------------------------------------------------------

SOLVES = [dict(zip(("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal"), flags,
                   strict=True)) for flags in product((False, True), repeat=5)]


def of_matrices(a: Any, b: Any, wide: Any) -> Any:
    return (jnp.linalg.cholesky(a), jnp.linalg.solve(a, b), jnp.linalg.inv(a),
            lax.linalg.lu(wide), lax.linalg.lu(jnp.swapaxes(wide, -1, -2)))


def of_triangles(a: Any, b: Any, wide: Any) -> Any:
    return [lax.linalg.triangular_solve(
        a, b if params["left_side"] else jnp.swapaxes(b, -1, -2), **params) for params in SOLVES]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("f", "n", "left"), [
    (of_matrices, 1, ""), (of_matrices, 2, ""), (of_matrices, 3, ""), (of_matrices, 4, "getrf"),
    (of_triangles, 3, ""), (of_triangles, 5, ""), (of_triangles, 9, "trsm")])
def test_matrices(f: Callable[..., Any], n: int, left: str, dtype: str,
                  monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a batch, as LAPACK computes them."""
    monkeypatch.setattr(decompose, "MOST_ELEMENTS", 10_000)  # all of them in one program
    args = definite(dtype, 2, 4, n, n), drawn(dtype, 2, 4, n, n + 1), drawn(dtype, 8, n, n + 1)
    got, want, text, plain = both(f, *args)
    assert set(re.findall("lapack_.([a-z]+)", text)) == ({left} if left else set())
    assert "lapack_" in plain
    eps = float(np.finfo(dtype).eps)
    for g, w in zip(got, want, strict=True):
        assert g.dtype == w.dtype and g.shape == w.shape
        np.testing.assert_allclose(g, w, rtol=0, atol=200 * eps * np.abs(w).max(initial=1))


@pytest.mark.parametrize("batch", [(16,), (9,), (3, 15)])
def test_batches_are_one_kernel_each(batch: tuple[int, ...],
                                     monkeypatch: pytest.MonkeyPatch) -> None:
    """A block of matrices after the other, of which the last two may overlap."""
    monkeypatch.setattr(decompose, "MOST_ELEMENTS", 10_000)  # all of them in one program
    a, b = definite("float32", *batch, 4, 4), drawn("float32", *batch, 4, 2)
    got, want, text, plain = both(lambda a, b: (
        jnp.linalg.cholesky(a), jnp.linalg.solve(a, b), jnp.linalg.inv(a), jnp.linalg.qr(a),
        jnp.linalg.det(a), jnp.linalg.eigvalsh(a[..., :3, :3])), a, b)
    assert ("xla_cpu_small_call" in text) == SMALL_CALLS and "xla_cpu_small_call" not in plain
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_more_rows_in_loops(dtype: str) -> None:
    a, b = definite(dtype, 8, 8), drawn(dtype, 8, 3)

    def f(a: Any, b: Any) -> Any:
        return lax.fori_loop(0, 3, lambda _, b: jax.scipy.linalg.cho_solve(
            (jnp.linalg.cholesky(a + b @ b.conj().T), True), b), b)

    got, want, text, plain = both(f, a, b)
    assert "lapack" not in text and "lapack" in plain
    np.testing.assert_allclose(got[0], want[0], rtol=0,
                               atol=100 * np.finfo(dtype).eps * np.abs(want[0]).max())


@pytest.mark.parametrize("dtype", DTYPES)
def test_elimination_in_loops(dtype: str) -> None:
    """As far as it compiles in time, with rows that are exchanged and a matrix that is singular."""
    n = FEW["lu"][1]
    for a in (drawn(dtype, n, n), np.eye(n, dtype=dtype)[::-1] * 2, np.ones((n, n), dtype)):
        got, want, text, _ = both(lambda a: lax.fori_loop(0, 1, lambda _, __: (
            *lax.linalg.lu(a), jnp.linalg.solve(a, a[:, :2])), (*lax.linalg.lu(a), a[:, :2])), a)
        assert "lapack" not in text.partition("stablehlo.while")[2].partition("func.func")[0]
        for g, w in zip(got, want, strict=True):
            np.testing.assert_allclose(g, w, rtol=0, atol=1e4 * np.finfo(dtype).eps)


def test_large_batches_run_in_threads() -> None:
    """So they are many kernels, as before jaxlib 0.12 all are."""
    for count, one in ((1 << 14, SMALL_CALLS), (1 << 15, False)):
        x = jax.ShapeDtypeStruct((count, 3, 3), np.float32)
        for f in (jnp.linalg.cholesky, jnp.linalg.qr, jnp.linalg.inv):
            text = jax.jit(f).lower(x).as_text()
            assert ("xla_cpu_small_call" in text) == one and "lapack" not in text


QR_SHAPES = [(1, 1), (2, 2), (3, 3), (4, 4), (4, 2), (2, 4), (4, 1), (1, 3)]
COLUMNS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "drawn": lambda x: x, "zero": lambda x: 0 * x, "a head of -0": lambda x: np.where(
        np.arange(x.size).reshape(x.shape), x, -0.0),
    "a triangle": np.triu, "no first column": lambda x: x * (np.arange(x.shape[-1]) > 0),
    "a real head": lambda x: np.where(np.arange(x.shape[-2])[:, None] > 0, x, x.real),
    "large": lambda x: x * 1e30, "small": lambda x: x * 1e-30,
    "far below": lambda x: x * 1e-25 ** (np.arange(x.shape[-2])[:, None] > 0),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "n"), QR_SHAPES)
def test_reflections(m: int, n: int, dtype: str) -> None:
    """With LAPACK's signs, and no reflection where it has none."""
    x = np.stack([np.asarray(made(drawn(dtype, m, n)), dtype) for made in COLUMNS.values()])
    got, want, text, plain = both(lambda x: (
        jnp.linalg.qr(x, "raw"), jnp.linalg.qr(x), jnp.linalg.qr(x, "complete")), x)
    assert "lapack" in plain and "lapack" not in text
    eps = float(np.finfo(dtype).eps)
    for g, w in zip(got, want, strict=True):
        assert g.dtype == w.dtype and g.shape == w.shape
        size = np.abs(w).max(tuple(range(1, w.ndim)), keepdims=True)
        size[size == 0] = 1
        # What is below a head far larger cancels in what follows.
        exact = [name != "far below" for name in COLUMNS]
        np.testing.assert_allclose((g / size)[exact], (w / size)[exact], rtol=0, atol=50 * eps)
    for q, r in (got[2:4], got[4:]):
        size = np.abs(x).max((1, 2), keepdims=True, initial=float(np.finfo(dtype).tiny))
        np.testing.assert_allclose(q @ (r / size), x / size, rtol=0, atol=20 * eps)
        unit = np.broadcast_to(np.eye(q.shape[-1]), (len(x), *q.shape[-1:] * 2))
        np.testing.assert_allclose(q.conj().swapaxes(-1, -2) @ q, unit, rtol=0, atol=20 * eps)


def test_reflections_of_what_is_not_finite() -> None:
    for bad in (np.nan, np.inf):
        x = drawn("float32", 20, 3, 3)
        x[5, 1, 0] = bad
        got, want, _, _ = both(jnp.linalg.qr, x)
        for g, w in zip(got, want, strict=True):
            assert np.isnan(g[5][np.isnan(w[5])]).all() and not np.isfinite(g[5]).all()
            np.testing.assert_allclose(np.delete(g, 5, 0), np.delete(w, 5, 0), atol=1e-5)


@pytest.mark.parametrize(("mode", "shape"), [
    ("reduced", (4, 3)), ("complete", (4, 3)), ("reduced", (3, 3)), ("reduced", (2, 4))])
def test_derivatives_of_reflections(mode: str, shape: tuple[int, int]) -> None:
    """By finite differences, in a loop of which a product with Q is carried."""
    def f(x: Any) -> Any:
        def step(_: Any, x: Any) -> Any:
            q, r = jnp.linalg.qr(x, mode)
            return x + jnp.sin(q[:, :1]) * jnp.cos(r[:1])

        return jnp.sum(lax.fori_loop(0, 3, step, x) ** 2)

    with jax.enable_x64(True):
        x, v = drawn("float64", *shape), drawn("float64", *shape[::-1]).T
        slope = jax.jit(jax.grad(lambda x: f(x)))(x)
        step = 1e-5
        change = (jax.jit(f)(x + step * v) - jax.jit(f)(x - step * v)) / (2 * step)
        np.testing.assert_allclose(np.sum(slope * v), change, rtol=1e-7)
        with small_kernels(False):
            np.testing.assert_allclose(slope, jax.jit(jax.grad(lambda x: f(x)))(x), rtol=1e-10)


def test_one_matrix_is_for_lapack_but_in_loops() -> None:
    a, b = definite("float32", 3, 3), drawn("float32", 3, 2)
    alone = jax.jit(jnp.linalg.solve).lower(a, b).as_text()
    looped = jax.jit(lambda a, b: lax.fori_loop(0, 9, lambda _, b: jnp.linalg.solve(a, b), b)
                     ).lower(a, b).as_text()
    assert "lapack_sgetrf" in alone and "custom_call" not in looped


EDGES = {
    "singular": [[0.0, 0.0], [0.0, 1.0]], "of rank one": [[1.0, 2.0], [2.0, 4.0]],
    "a zero pivot": [[0.0, 1.0], [0.0, 2.0]], "zeros": [[0.0, 0.0], [0.0, 0.0]],
    "infinite": [[np.inf, 1.0], [1.0, 2.0]], "indefinite": [[1.0, 2.0], [2.0, 1.0]],
    "to be exchanged": [[1e-20, 1.0], [1.0, 1.0]],
}


@pytest.mark.parametrize("name", EDGES)
def test_edges(name: str) -> None:
    a = np.broadcast_to(EDGES[name], (8, 2, 2))
    got, want, _, _ = both(lambda a, b: (jnp.linalg.cholesky(a), lax.linalg.lu(a),
                                         jnp.linalg.solve(a, b)), a, np.ones((8, 2, 1)))
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-15)


def test_a_nan_goes_into_all_that_depends_on_it() -> None:
    a = np.broadcast_to([[1.0, np.nan], [np.nan, 3.0]], (8, 2, 2))
    factor, x = jax.jit(lambda a: (jnp.linalg.cholesky(a), jnp.linalg.solve(a, a)))(a)
    assert np.isnan(np.tril(factor)[:, [0, 1, 1], [0, 0, 1]]).all() and np.isnan(x).all()


@pytest.mark.parametrize("n", [3, 4])
def test_as_accurate_as_lapack(n: int) -> None:
    """Residuals of ill-conditioned systems: Hilbert's matrices, and rows of unlike sizes."""
    hilbert = 1 / (np.arange(n)[:, None] + np.arange(n) + 1.0)
    a = np.stack([hilbert, *(hilbert * 10.0 ** np.arange(n)[:, None] * s for s in range(1, 8))])
    b = np.ones((8, n, 1))
    got, want, _, _ = both(lambda a, b: (jnp.linalg.solve(a, b), jnp.linalg.cholesky(a)),
                           a.astype(np.float32), b.astype(np.float32))
    wide = a.astype(np.float32).astype(np.float64)

    def residual(x: np.ndarray) -> Any:
        return np.abs(wide @ x - b).max((1, 2)) / np.abs(wide).max((1, 2)) / np.abs(x).max((1, 2))

    assert (residual(got[0]) <= 4 * residual(want[0]) + 1e-7).all()
    assert np.abs(got[1][0] @ got[1][0].T - wide[0]).max() < 1e-6


REDUCTIONS: dict[str, tuple[Callable[..., Any], tuple[int, ...], bool]] = {
    "sums of rows": (lambda x: x.sum(-1), (64, 3), True),
    "of matrices": (lambda x: x.sum((1, 2)), (70, 2, 4), True),
    "of nine": (lambda x: x.sum(-1), (64, 9), False),
    "of few": (lambda x: x.sum(-1), (63, 3), False),
    "along the first axis": (lambda x: x.sum(0), (3, 64), False),
    "of nothing": (lambda x: x.sum(-1), (64, 0), False), "of one": (jnp.sum, (64, 1), False),
    "extrema": (lambda x: (x.max(-1), x.min(-1)), (8, 8, 5), True),
    "extrema of six": (lambda x: x.max(-1), (64, 6), False),
    "norms": (lambda x: jnp.linalg.norm(x, axis=-1), (64, 3), True),
    "in a loop": (lambda x: lax.fori_loop(0, 3, lambda _, x: x + x.sum(), x), (3,), True),
    "of no rows, in a loop": (lambda x: lax.fori_loop(
        0, 3, lambda _, x: x + x.sum(-1, keepdims=True), x), (0, 9), False),
    "of a gradient": (jax.grad(lambda x: jnp.sum(jax.nn.softmax(x)[:, 0])), (64, 4), True),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "complex64"])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_few(name: str, dtype: str) -> None:
    f, shape, unrolls = REDUCTIONS[name]
    if dtype == "complex64" and ("extrema" in name or "gradient" in name):
        return
    x = np.asarray(drawn("float64", *shape) * 9, jnp.dtype(dtype))
    got, want, text, plain = both(f, x)
    of_floats = {"complex64": name == "norms", "bfloat16": "extrema" not in name}.get(dtype, True)
    assert (text.count("stablehlo.reduce") < plain.count("stablehlo.reduce")) == (
        unrolls and of_floats)
    for g, w in zip(got, want, strict=True):
        assert g.dtype == w.dtype and g.shape == w.shape
        np.testing.assert_allclose(np.asarray(g, complex), np.asarray(w, complex),
                                   rtol=2e-2 if dtype == "bfloat16" else 1e-5, atol=1e-5)


def test_nans_of_extrema_of_few() -> None:
    x = np.ones((64, 3), np.float32)
    x[5, 1] = np.nan
    assert np.isnan(jax.jit(lambda x: x.max(-1))(x)).nonzero()[0].tolist() == [5]


HERMITIAN = {
    "drawn": lambda x: x, "graded": lambda x: x * 10.0 ** np.subtract.outer([0, 6, 3], [6, 0, 3])[
        :x.shape[-1], :x.shape[-1]], "near together": lambda x: np.eye(x.shape[-1]) + 1e-6 * x,
    "of rank one": lambda x: x[..., :1] * x[..., :1].conj().swapaxes(-1, -2),
    "large": lambda x: x * 1e30, "small": lambda x: x * 1e-33, "zero": lambda x: 0 * x,
    "diagonal": lambda x: x * np.eye(x.shape[-1]),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_eigenvectors(n: int, dtype: str) -> None:
    for made in HERMITIAN.values():
        x = drawn(dtype, 40, n, n)
        x = np.asarray(made(x + x.conj().swapaxes(-1, -2)), dtype)
        x = np.tril(x) + np.tril(x, -1).conj().swapaxes(-1, -2)
        with jax.enable_x64(True):
            got, want, text, plain = both(jnp.linalg.eigh, x)
        (w, v), wide = got, x.astype(complex)
        assert "lapack" in plain and "lapack" not in text
        assert w.dtype == want[0].dtype and v.dtype == want[1].dtype
        bound = 20 * np.finfo(dtype).eps * np.abs(wide).max()
        np.testing.assert_allclose(w, want[0], rtol=0, atol=bound)
        np.testing.assert_allclose(wide @ v, v * w[:, None], rtol=0, atol=bound)
        np.testing.assert_allclose(v.conj().swapaxes(-1, -2) @ v,
                                   np.broadcast_to(np.eye(n), x.shape), atol=1e-5
                                   if np.finfo(dtype).bits == 32 else 1e-14)
        assert (np.diff(w) >= 0).all()


def test_eigenvectors_of_what_is_not_finite_or_not_alone() -> None:
    for bad in (np.nan, np.inf):
        x = np.broadcast_to(np.eye(3, dtype=np.float32), (8, 3, 3)).copy()
        x[2, 2, 2] = bad
        w, v = jax.jit(jnp.linalg.eigh)(x)
        assert np.isnan(w[2]).all() and np.isnan(v[2]).all()
        assert np.isfinite(np.delete(w, 2, 0)).all()
    x = drawn("float32", 8, 4, 4)
    for f, y in ((jnp.linalg.eigh, x), (jnp.linalg.eigh, x[0, :3, :3]), (
            lambda x: lax.linalg.eigh(x, implementation=lax.linalg.EighImplementation.QR),
            x[:, :2, :2])):
        assert "lapack" in jax.jit(f).lower(y).as_text()
    upper = np.triu(x[:, :3, :3]) + np.tril(np.full((3, 3), np.nan, np.float32), -1)
    v, w = jax.jit(lambda x: lax.linalg.eigh(x, lower=False, symmetrize_input=False))(upper)
    whole = np.triu(upper) + np.triu(upper, 1).swapaxes(-1, -2)
    np.testing.assert_allclose(whole @ v, v * w[:, None], atol=1e-5)


# -- scatters --------------------------------------------------------------------------------------

TABLES: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "added": (lambda x, i, v: x.at[i].add(v), (9,)),
    "subtracted": (lambda x, i, v: x.at[i].subtract(v), (9,)),
    "multiplied": (lambda x, i, v: x.at[i].multiply(v), (9,)),
    "least": (lambda x, i, v: x.at[i].min(v), (9,)), "most": (lambda x, i, v: x.at[i].max(v), (9,)),
    "set": (lambda x, i, v: x.at[i].set(v), (9,)),
    "set, clipped": (lambda x, i, v: x.at[i].set(v, mode="clip"), (9,)),
    "rows": (lambda x, i, v: x.at[i].add(v), (9, 3)),
    "columns": (lambda x, i, v: x.at[:, i].set(v), (3, 9)),
    "elements of a matrix": (lambda x, i, v: x.at[i, i[::-1]].add(v), (9, 9)),
    "a grid": (lambda x, i, v: x.at[jnp.ix_(i[:2], i[1:])].add(2.0), (9, 9)),
    "applied": (lambda x, i, v: x.at[i].apply(jnp.sin), (9,)),
    "segments": (lambda x, i, v: x + jax.ops.segment_sum(v, i, 9), (9,)),
    "exchanged": (lambda x, i, v: x.at[i].set(x[i[::-1]]), (9,)),
    "one read for all": (lambda x, i, v: x.at[i].add(x[2] * v), (9,)),
    "mapped": (lambda x, i, v: jax.vmap(lambda y: y.at[i].add(y[0]))(x), (2, 9)),
}


def n_scatters(text: str) -> int:
    return text.count('"stablehlo.scatter"')


@pytest.mark.parametrize("places", [(2, 2, -1), (8, 9, 2), (-10, 40, 0)])
@pytest.mark.parametrize("name", TABLES)
def test_scatters_of_few(name: str, places: tuple[int, ...]) -> None:
    """The same bits, also where positions meet or lie outside, and the same slopes."""
    f, shape = TABLES[name]
    x, i = drawn("float64", *shape), np.array(places, np.int32)
    v = drawn("float64", *(3, 3) if len(shape) > 1 and "rows columns".count(name) else (3,))

    def looped(x: Any, v: Any) -> Any:
        return lax.fori_loop(0, 3, lambda _, x: f(x, i, v), x)

    got, want, text, plain = both(looped, x, v)
    np.testing.assert_array_equal(got[0], want[0])
    assert n_scatters(text) > n_scatters(plain) == 1
    if name == "applied":  # which has a derivative of places that do not meet alone
        return
    slope = jax.grad(lambda x, v: jnp.sum(jnp.sin(looped(x, v))), (0, 1))
    got, want, _, _ = both(slope, x, v)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_array_equal(g, w)


@pytest.mark.parametrize("n", [1000, 4000])
def test_a_loop_with_scatters_is_one_kernel_and_copies_no_table(n: int) -> None:
    """Where kernels have no barriers, large tables that are read are for scatters."""
    def f(x: Any, i: Any) -> Any:
        def step(x: Any, i: Any) -> tuple[Any, None]:
            y = x.at[i].add(x[i[0]])
            return y.at[i + 1].set(x[i] + y[i]), None

        return lax.scan(step, x, i)[0]

    x, i = np.ones(n, np.float32), np.arange(40, dtype=np.int32).reshape(10, 4)
    lowered = jax.jit(f).lower(x, i)
    assert n_scatters(lowered.as_text()) == (8 if SMALL_CALLS or n <= 1024 else 2)
    text = lowered.compile().as_text()
    if SMALL_CALLS:
        assert "scatter(" not in text and "xla_cpu_small_call" in text
        assert len(re.findall(rf"f32\[{n}\]\S* copy\(", text)) <= 1  # of the argument
    for g in (lambda x, i: lax.fori_loop(0, 9, lambda _, x: x.at[jnp.sort(i[0])].add(1.0), x),
              lambda x, i: x.at[i[0]].add(1.0)):
        few = jax.jit(lambda x, i, g=g: g(x, i))
        assert n_scatters(few.lower(x, np.tile(i, 3)).as_text()) == 1


# -- loops -----------------------------------------------------------------------------------------


def kalman(places: Any, n: int = 4) -> Any:
    """A filter of n states, of which a place shows the first."""
    k = places.shape[-1]
    motion = jnp.eye(n) + 0.1 * jnp.eye(n, k=n // 2)
    seen = jnp.eye(k, n)

    def step(state: Any, place: Any) -> Any:
        mean, cov = state
        mean, cov = motion @ mean, motion @ cov @ motion.T + 0.01 * jnp.eye(n)
        gain = jnp.linalg.solve(seen @ cov @ seen.T + 0.1 * jnp.eye(k), seen @ cov).T
        mean = mean + gain @ (place - seen @ mean)
        return (mean, cov - gain @ seen @ cov), mean

    return lax.scan(step, (jnp.zeros(n), jnp.eye(n)), places)[1]


@pytest.mark.parametrize(("n", "k"), [(8, 4), (12, 2)])
def test_filters_of_more_states_call_no_library(n: int, k: int) -> None:
    got, want, text, plain = both(lambda x: kalman(x, n), drawn("float32", 20, k))
    library = re.compile("lapack|stablehlo.dot_general")
    assert not library.search(text.partition("stablehlo.while")[2])
    assert len(library.findall(plain)) > 4
    np.testing.assert_allclose(got[0], want[0], rtol=1e-4, atol=1e-5)


def test_a_product_alone_in_a_loop_is_for_the_library() -> None:
    x = drawn("float32", 12, 12)
    text = jax.jit(lambda x: lax.fori_loop(0, 3, lambda _, y: jnp.tanh(y @ x), x)).lower(
        x).as_text()
    assert "stablehlo.dot_general" in text


def test_each_loop_is_judged_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """One whose operations on elements are too many stays as it is."""
    def f(a: Any, b: Any) -> Any:
        many = lax.fori_loop(0, 2, lambda _, x: jnp.linalg.solve(a, jnp.linalg.solve(a, x)), b)
        return lax.fori_loop(0, 2, lambda _, x: jnp.linalg.cholesky(a) @ x, many)

    a, b = definite("float32", 3, 3), drawn("float32", 3, 3)
    text = jax.jit(lambda a, b: f(a, b)).lower(a, b).as_text()
    assert "lapack" not in text
    monkeypatch.setattr(decompose, "MOST_ELEMENTS", 120)
    text = jax.jit(lambda a, b: f(a, b)).lower(a, b).as_text()
    assert "getrf" in text and "potrf" not in text


def test_a_loop_is_one_kernel() -> None:
    places = drawn("float32", 500, 2)
    compiled = jax.jit(kalman).lower(places).compile()
    with small_kernels(False):
        plain = jax.jit(lambda x: kalman(x)).lower(places).compile()
    looped = [" while(" in x.as_text().partition("\nENTRY ")[2] for x in (compiled, plain)]
    assert looped == [False, True] and "xla_cpu_small_call" in compiled.as_text()
    np.testing.assert_allclose(compiled(places), plain(places), rtol=1e-4, atol=1e-6)
    slope = jax.grad(lambda x: jnp.sum(jnp.sin(kalman(x))))
    with small_kernels(False):
        want = jax.jit(lambda x: slope(x))(places[:20])
    np.testing.assert_allclose(jax.jit(slope)(places[:20]), want, rtol=2e-4, atol=1e-6)


def test_one_loop_may_be_forced_or_forbidden() -> None:
    name = "xla_cpu_small_while_loop_byte_threshold"
    lowered = jax.jit(lambda x: lax.scan(lambda c, x: (jnp.sin(c) * x, c), x[0], x)).lower(
        np.ones((3000, 8), np.float32))
    texts = [lowered.compile(compiler_options={name: n}).as_text() for n in (0, 1 << 16)]
    assert ["xla_cpu_small_call" in text for text in texts] == [False, True]


def test_the_text_of_a_program_from_disk_is_its_own() -> None:
    """It is compiled anew for it, as it was, whatever the flag says then."""
    places = drawn("float32", 400, 2)
    for _ in range(2):  # the second time from disk, where there is one
        with small_kernels(False):
            plain = jax.jit(lambda x: kalman(x)).lower(places).compile()
        assert " while(" in plain.as_text().partition("\nENTRY ")[2]


def test_flags_of_the_users_go_before(monkeypatch: pytest.MonkeyPatch) -> None:
    option = "xla_cpu_small_while_loop_byte_threshold"
    monkeypatch.setattr(jaxlib_api, "LOOP_BYTES", 100)  # newer versions do so by themselves

    def given(text: str, platform: str = "cpu", keeps_barriers: bool = False) -> dict[str, int]:
        program: Any = SimpleNamespace(text=text, keeps_barriers=keeps_barriers)
        return compile._loops_as_kernels(program, platform)

    assert given("stablehlo.while") == {option: 100}
    assert given("stablehlo.while", keeps_barriers=True) == {option: 0}
    assert not given("stablehlo.add")
    assert not given("stablehlo.while", "tpu")
    monkeypatch.setenv("XLA_FLAGS", f"--xla_backend_extra_options={option}=100")
    assert not given("stablehlo.while")


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("shape", [(3, 1), (3, 3), (2, 2)])
def test_factors_of_infinite_columns_are_those_of_single_matrices(shape, dtype):
    x = np.random.default_rng(0).standard_normal((9, *shape)).astype(dtype)
    x[0, -1, 0] = np.inf
    np.testing.assert_array_equal(jax.numpy.linalg.qr(x)[1][0, 0, 0],
                                  jax.numpy.linalg.qr(x[0])[1][0, 0])
