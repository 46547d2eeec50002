"""BCSR, COO, CSR, CSC, what makes arrays of any format, random ones, and linear algebra."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.experimental import sparse
from pyjx.experimental.sparse import test_util as sparse_test_util
from pyjx.experimental.sparse.linalg import lobpcg_standard, spsolve
from pyjx.test_util import check_grads
from tests.experimental.sparse.test_bcoo import M3, M, bcoo, check

V = np.arange(1.0, 5.0, dtype="f")


@pytest.mark.parametrize("cls", [sparse.COO, sparse.CSR, sparse.CSC])
@pytest.mark.parametrize("dtype", ["float32", "complex64", "int32"])
def test_matrix_formats(cls: Any, dtype: Any) -> None:
    x = M.astype(dtype)
    mat = cls.fromdense(x, nse=7)
    assert mat.nse == 7 and mat.dtype == x.dtype
    np.testing.assert_array_equal(mat.todense(), x)
    np.testing.assert_array_equal(mat.T.todense(), x.T)
    np.testing.assert_array_equal(mat @ V.astype(dtype), x @ V.astype(dtype))
    np.testing.assert_array_equal(jax.jit(lambda m, y: m.T @ y)(mat, x), x.T @ x)
    assert (mat @ np.ones(4, "float16")).dtype == jnp.result_type(x.dtype, jnp.float16)


def test_dense_arrays_most_of_whose_elements_are_zero():
    def positive(rng: np.random.RandomState) -> Any:
        return lambda shape, dtype: rng.randint(1, 9, shape).astype(dtype)

    make = sparse_test_util.rand_sparse(np.random.RandomState(0), nse=3, post=jnp.asarray,
                                        rand_method=positive)
    made = make((4, 5), np.int32)
    assert isinstance(made, jax.Array) and made.dtype == "int32"
    assert (made != 0).sum() == 3 and made.min() == 0 < made.max()


@pytest.mark.parametrize("cls", [sparse.COO, sparse.CSR, sparse.CSC, sparse.BCSR, sparse.BCOO])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_products_are_transposed(cls: Any, wrap: Any) -> None:
    mat, ct = cls.fromdense(M), np.arange(1.0, 4.0, dtype="f")
    (got,) = jax.linear_transpose(wrap(lambda y: mat @ y), V)(ct)
    np.testing.assert_allclose(got, M.T @ ct)
    check_grads(wrap(lambda y: mat @ jnp.sin(y)), (V,), order=2, rtol=2e-2)


def test_what_a_format_refuses_has_its_own_name() -> None:
    for name in ("sum", "__pos__", "__getitem__"):
        method = getattr(sparse.CSR, name)
        assert (method.__name__, method.__qualname__) == (name, f"JAXSparse.{name}")


def test_matrix_formats_refuse() -> None:
    mat = sparse.CSR.fromdense(M)
    with pytest.raises(NotImplementedError, match="__mul__"):
        mat * 2
    with pytest.raises(NotImplementedError, match="matmul between two sparse objects"):
        mat @ mat
    with pytest.raises(TypeError, match="first axis has length 4"):
        mat @ np.ones(3)
    with pytest.raises(ValueError, match="CSR must have ndim=2"):
        sparse.CSR.fromdense(V)
    with pytest.raises(NotImplementedError, match="axes"):
        mat.transpose((0, 1))


def test_orders_of_elements() -> None:
    assert sparse.CSR.fromdense(M).indptr.tolist() == [0, 2, 3, 5]
    columns = sparse.CSC.fromdense(M)
    assert columns.data.tolist() == [3, 1, 4, 5, 2] and columns.indptr.tolist() == [0, 1, 3, 4, 5]
    back = sparse.COO.fromdense(M).T._sort_indices()
    assert back.row.tolist() == [0, 1, 1, 2, 3] and back.data.tolist() == [3, 1, 4, 5, 2]


@pytest.mark.parametrize("n_batch, n_dense", [(0, 0), (1, 0), (0, 1)])
def test_rows(n_batch: int, n_dense: int) -> None:
    x = M3 if n_batch or n_dense else M
    mat = sparse.BCSR.fromdense(x, n_batch=n_batch, n_dense=n_dense, nse=8)
    np.testing.assert_array_equal(mat.todense(), x)
    check(mat.to_bcoo(), x)
    np.testing.assert_array_equal(sparse.BCSR.from_bcoo(mat.to_bcoo()).todense(), x)
    np.testing.assert_array_equal(mat.sum_duplicates().todense(), x)
    if not n_dense:
        np.testing.assert_allclose(mat @ V, x @ V)
        np.testing.assert_allclose(jax.jit(lambda m: m @ M.T)(mat), x @ M.T)
    wide = sparse.bcsr_broadcast_in_dim(mat, shape=(2, *x.shape),
                                        broadcast_dimensions=range(1, x.ndim + 1))
    np.testing.assert_array_equal(wide.todense(), np.stack([x, x]))
    for d in (0, 1):
        joined = sparse.bcsr_concatenate([mat, mat], dimension=d)
        np.testing.assert_array_equal(joined.todense(), np.concatenate([x, x], d))


def test_rows_from_what_is_unsorted() -> None:
    rows = sparse.BCSR.from_bcoo(bcoo(M).T)
    assert rows.indptr.tolist() == [0, 1, 3, 4, 5] and rows.data.tolist() == [3, 1, 4, 5, 2]
    matrix = sparse.BCSR.from_scipy_sparse(scipy.sparse.coo_matrix(M))
    np.testing.assert_array_equal(matrix.todense(), M)
    with pytest.raises(NotImplementedError, match="n_sparse=2"):
        sparse.BCSR.from_bcoo(bcoo(M, n_batch=1))
    with pytest.raises(ValueError, match="must have 2 sparse dimensions"):
        sparse.BCSR.fromdense(V)
    with pytest.raises(ValueError, match="indptr shape must match"):
        sparse.BCSR((rows.data, rows.indices, rows.indptr[:2]), shape=rows.shape)
    with pytest.raises(NotImplementedError, match="BCSR lhs and ndarray rhs"):
        M.T @ sparse.BCSR.fromdense(M)


@pytest.mark.parametrize("name", ["bcoo", "bcsr", "coo", "csr", "csc"])
def test_eye_and_empty(name: str) -> None:
    for n, m, k in [(3, 3, 0), (3, 4, 1), (4, 3, -2), (2, 5, 3), (3, 3, 7)]:
        mat = sparse.eye(n, m, k, dtype="int32", sparse_format=name)
        np.testing.assert_array_equal(mat.todense(), np.eye(n, m, k, dtype=np.int32))
    none = sparse.empty((2, 3), "complex64", sparse_format=name)
    assert none.nse == 0
    np.testing.assert_array_equal(none.todense(), np.zeros((2, 3), "complex64"))
    with pytest.raises(ValueError, match="not recognized"):
        sparse.eye(3, sparse_format="xyz")


def test_eye_of_layouts() -> None:
    for n_batch, n_dense in [(1, 0), (0, 1), (2, 0), (0, 2), (1, 1)]:
        for k in (0, 1, -1):
            mat = sparse.eye(3, 4, k, n_batch=n_batch, n_dense=n_dense)
            assert (mat.n_batch, mat.n_dense) == (n_batch, n_dense)
            check(mat, np.eye(3, 4, k, dtype="f"))
    padded = sparse.empty((2, 3), nse=4, n_batch=1)
    assert padded.indices.tolist() == [[[3]] * 4] * 2


def test_random() -> None:
    key = jax.random.PRNGKey(0)
    mat = sparse.random_bcoo(key, (3, 4))
    assert mat.indices.tolist() == [[0, 0], [0, 3], [2, 1]]
    np.testing.assert_allclose(mat.data, [0.8423141, 0.18237865, 0.2271781], rtol=1e-6)
    mat = sparse.random_bcoo(key, (3, 4), nse=5, unique_indices=False)
    assert mat.indices.tolist() == [[0, 2], [2, 2], [1, 0], [0, 3], [2, 3]]
    mat = sparse.random_bcoo(key, (3, 4), nse=2, n_dense=1, sorted_indices=True)
    assert mat.indices.tolist() == [[0], [1]] and mat.indices_sorted
    mat = sparse.random_bcoo(key, (3, 4), nse=2, n_batch=1, generator=jax.random.normal)
    assert mat.data.shape == (3, 2)
    with pytest.raises(ValueError, match="expected to be between 0 and 12"):
        sparse.random_bcoo(key, (3, 4), nse=50)


def symmetric(n: int) -> np.ndarray:
    q, _ = np.linalg.qr(np.random.RandomState(0).randn(n, n))
    return (q * np.arange(1.0, n + 1) ** 1.5 @ q.T).astype("f")


@pytest.mark.parametrize("kind", ["dense", "sparse", "function"])
def test_lobpcg(kind: str) -> None:
    a = symmetric(40)
    A: Any = {"dense": a, "sparse": bcoo(a), "function": lambda x: a @ x}[kind]
    theta, U, i = lobpcg_standard(A, np.random.RandomState(1).randn(40, 3).astype("f"), m=200)
    want = np.linalg.eigvalsh(a)[::-1][:3]
    np.testing.assert_allclose(theta, want, rtol=1e-4)
    np.testing.assert_allclose(a @ U, U * theta, atol=0.05)
    np.testing.assert_allclose(U.T @ U, np.eye(3), atol=1e-4)
    assert 0 < int(i) <= 200


def test_lobpcg_refuses() -> None:
    with pytest.raises(ValueError, match=r"search dim \* 5 < matrix dim"):
        lobpcg_standard(np.eye(10, dtype="f"), np.ones((10, 2), "f"))
    with pytest.raises(TypeError, match="floating"):
        lobpcg_standard(np.eye(10), np.ones((10, 1), int))


def test_spsolve() -> None:
    a = np.array([[4, 0, 1], [1, 5, 0], [0, 0, 2]], "f")
    b = np.arange(1.0, 4.0, dtype="f")
    mat = sparse.CSR.fromdense(a)
    buffers = (mat.data, mat.indices, mat.indptr)
    np.testing.assert_allclose(spsolve(*buffers, b), np.linalg.solve(a, b), rtol=1e-5)
    many = np.stack([b, 2 * b])
    np.testing.assert_allclose(jax.jit(jax.vmap(lambda y: spsolve(*buffers, y)))(many),
                               np.linalg.solve(a, many.T).T, rtol=1e-5)

    matrices = np.stack([mat.data, 2 * mat.data, 3 * mat.data])
    every = jax.vmap(jax.vmap(lambda data, y: spsolve(data, *buffers[1:], y), (None, 1)), (0, None))
    np.testing.assert_allclose(
        every(matrices, many.T),
        [[np.linalg.solve(k * a, y) for y in many] for k in (1, 2, 3)], rtol=1e-5)
    check_grads(every, (matrices, many.T), 2, rtol=1e-2, atol=1e-2)

    def loss(data: Any, y: Any) -> Any:
        return jnp.sin(spsolve(data, *buffers[1:], y)).sum()

    def dense(x: Any, y: Any) -> Any:
        return jnp.sin(jnp.linalg.solve(x, y)).sum()

    by_data, by_b = jax.grad(loss, (0, 1))(mat.data, b)
    want, want_b = jax.grad(dense, (0, 1))(a, b)
    np.testing.assert_allclose(by_data, want[np.nonzero(a)], rtol=1e-4)
    np.testing.assert_allclose(by_b, want_b, rtol=1e-4)
    with pytest.raises(ValueError, match="data types do not match"):
        spsolve(*buffers, np.arange(3))


def test_making_dense() -> None:
    check(sparse.todense(bcoo(M)), M)
    check(sparse.todense(M), M)
    np.testing.assert_array_equal(sparse.todense(sparse.CSR.fromdense(M)), M)


@pytest.mark.parametrize("cls", [sparse.BCSR, sparse.CSR])
@pytest.mark.parametrize("index_dtype", ["int32", "int16"])
def test_products_by_rows(cls: Any, index_dtype: str) -> None:
    mat = cls.fromdense(M, nse=9, index_dtype=index_dtype)
    text = jax.jit(lambda m, y: m @ y).lower(mat, V).as_text()
    assert ("cpu_csr_sparse_dense" in text) == (index_dtype == "int32")
    y = np.random.default_rng(0).random((4, 3)).astype("f")
    for product in (lambda m, y: m @ y, jax.jit(lambda m, y: m @ y)):
        np.testing.assert_allclose(product(mat, y), M @ y, rtol=1e-6)
        np.testing.assert_allclose(product(mat, y[:, 0]), M @ y[:, 0], rtol=1e-6)
        assert product(mat, y[:, :0]).shape == (3, 0)
    np.testing.assert_allclose(jax.grad(lambda y: jnp.sum(mat @ y * y[:3]))(y),
                               M.T @ y[:3] + np.pad(M @ y, ((0, 1), (0, 0))), rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(lambda v: mat @ v, 1, 1)(y), M @ y, rtol=1e-6)


@pytest.mark.parametrize("cls", [sparse.BCSR, sparse.CSR])
def test_products_read_nothing_out_of_bounds(cls: Any) -> None:
    mat = cls.fromdense(M)
    for indices, indptr in ((mat.indices + 10**8, mat.indptr), (mat.indices, mat.indptr + 10**8)):
        wrong = cls((mat.data, indices, indptr), shape=mat.shape)
        np.testing.assert_array_equal(wrong @ V, np.zeros(3))


@pytest.mark.parametrize("kind", [sparse.CSR, sparse.CSC])
def test_buffers_of_other_sizes_are_refused(kind):
    ones, three = jnp.ones(3), jnp.arange(3)
    for indices, indptr, words in ((three, three, r"indptr must have shape \(4,\)"),
                                   (three[:2], jnp.arange(4), "vectors of one length")):
        matrix = kind((ones, indices, indptr), shape=(3, 3))
        for call in (lambda m: m @ ones, lambda m: m.todense(), lambda m: m.T @ ones):
            with pytest.raises(ValueError, match=words):
                call(matrix)


@pytest.mark.parametrize("name", ["bcoo", "bcsr", "csr", "coo"])
def test_indices_are_integers(name):
    fromdense = getattr(sparse, f"{name}_fromdense")
    with pytest.raises(TypeError, match=f"{name}_fromdense: index_dtype must be an integer dtype"):
        fromdense(jnp.eye(3), index_dtype=float)
    assert fromdense(jnp.eye(3), index_dtype="uint8").todense().tolist() == np.eye(3).tolist()


@pytest.mark.parametrize("name", ["csr", "coo"])
def test_functions_of_a_format_take_no_other(name):
    other = sparse.BCOO.fromdense(jnp.eye(3))
    for call in (lambda f: f("todense")(other), lambda f: f("matvec")(other, jnp.ones(3)),
                 lambda f: f("matmat")(jnp.eye(3), jnp.eye(3))):
        with pytest.raises(TypeError, match=f"{name}_mat|{name}_todense: mat must be a"):
            call(lambda of: getattr(sparse, f"{name}_{of}"))


def test_lobpcg_stops_at_what_roundings_allow():
    A = jnp.diag(jnp.arange(1.0, 101))
    lowest, highest = jnp.eye(100)[:, :2], jnp.eye(100)[:, -2:]
    theta, _, steps = lobpcg_standard(A, highest)
    assert theta.tolist() == [100, 99] and steps == 1
    theta, _, steps = lobpcg_standard(A, lowest)  # an invariant space, but another one
    assert theta[0] > 2 and steps == 1
    assert lobpcg_standard(0 * A, highest)[2] == 1
    assert lobpcg_standard(A, highest, m=0)[2] == 0
    rng = np.random.default_rng(0)
    B = rng.normal(size=(40, 40))
    theta, _, steps = lobpcg_standard(jnp.array(B @ B.T), jnp.array(rng.normal(size=(40, 2))))
    np.testing.assert_allclose(theta, np.linalg.eigvalsh(B @ B.T)[:-3:-1], rtol=1e-4)
    assert steps < 19


@pytest.mark.parametrize("A, said", [
    (lambda v: v.astype(jnp.float16), "same dtypes"), (lambda v: v * 1j, "same dtypes"),
    (lambda v: v[:3], "got output")])
def test_lobpcg_of_what_is_no_matrix(A, said):
    with pytest.raises(ValueError, match=said):
        lobpcg_standard(A, jnp.ones((40, 2)))


@pytest.mark.parametrize("kind", [sparse.BCOO, sparse.BCSR, sparse.COO, sparse.CSR, sparse.CSC])
def test_types_of_sparse_arrays_say_dtype_and_shape(kind):
    """As eval_shape gives them: with ShapeDtypeStructs in the place of buffers."""
    found = jax.eval_shape(lambda: kind.fromdense(jnp.eye(3), nse=3))
    assert (found.dtype, found.shape, found.nse) == (np.float32, (3, 3), 3)
    assert repr(found) == f"{kind.__name__}(float32[3, 3], nse=3)"
    filled = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), found)
    assert filled.todense().tolist() == np.zeros((3, 3)).tolist()
