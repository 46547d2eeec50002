"""BCOO arrays: every operation against the dense one, in all layouts."""

from __future__ import annotations

from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.sparse

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.experimental import sparse

M = np.array([[0, 1, 0, 2], [3, 0, 0, 0], [0, 4, 5, 0]], np.float32)
M3 = np.stack([M, 2 * M[::-1]])
LAYOUTS = [(0, 0), (1, 0), (0, 1), (1, 1)]  # n_batch, n_dense


def bcoo(x: Any, n_batch: int = 0, n_dense: int = 0, nse: int | None = None) -> sparse.BCOO:
    return sparse.BCOO.fromdense(jnp.asarray(x), n_batch=n_batch, n_dense=n_dense, nse=nse)


def with_duplicates() -> sparse.BCOO:
    """Unsorted, one place twice, one out of bounds, with data that is not zero there."""
    return sparse.BCOO((jnp.arange(1.0, 6.0), jnp.array([[2, 1], [0, 1], [2, 1], [0, 3], [3, 4]])),
                       shape=(3, 4))


DUPLICATES = np.array([[0, 2, 0, 4], [0, 0, 0, 0], [0, 4, 0, 0]], np.float32)


def check(got: Any, want: Any, **options: Any) -> None:
    if isinstance(got, sparse.BCOO):
        sparse.BCOO((got.data, got.indices), shape=got.shape)  # its buffers go together
        got = got.todense()
    want = np.asarray(want)
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_allclose(np.asarray(got), want, **options)


@pytest.mark.parametrize("dtype", ["float32", "int32", "complex64", "bool", ml_dtypes.bfloat16])
def test_there_and_back(dtype: Any) -> None:
    for n_batch, n_dense in LAYOUTS:
        x = M3.astype(dtype)
        mat = bcoo(x, n_batch, n_dense)
        assert (mat.n_batch, mat.n_sparse, mat.n_dense) == (n_batch, 3 - n_batch - n_dense, n_dense)
        assert mat.dtype == x.dtype and mat.indices_sorted and mat.unique_indices
        np.testing.assert_array_equal(np.asarray(mat.todense()), x)


def test_how_many_are_stored() -> None:
    assert bcoo(M).nse == 5
    assert bcoo(M, n_batch=1).nse == 2
    assert bcoo(M, n_dense=1).nse == 3
    more = bcoo(M, nse=7)
    assert more.indices[5:].tolist() == [[3, 4], [3, 4]] and more.data[5:].tolist() == [0, 0]
    assert bcoo(M, nse=3).data.tolist() == [1, 2, 3]
    assert bcoo(np.zeros((2, 3))).nse == 0
    check(bcoo(np.zeros((0, 3), np.float32)), np.zeros((0, 3), np.float32))
    with pytest.raises(jax.errors.ConcretizationTypeError, match="nse argument of bcoo_fromdense"):
        jax.jit(sparse.BCOO.fromdense)(M)


@pytest.mark.parametrize("shape, data, indices, message", [
    ((3,), (5,), (5, 2), "2 sparse dimensions"),
    ((3, 4), (3,), (5, 2), "Invalid data.shape"),
    ((3, 4), (5,), (2,), "nse, n_sparse"),
    ((2, 3, 4), (5, 5), (5, 5, 2), "data batch dimensions"),
    ((3, 4, 2), (5, 3), (5, 2), "data dense dimensions"),
])
def test_buffers_that_do_not_fit(shape: Any, data: Any, indices: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sparse.BCOO((np.zeros(data), np.zeros(indices, int)), shape=shape)


def test_indices_must_be_integers() -> None:
    with pytest.raises(TypeError, match="indices must be integers"):
        sparse.BCOO((np.zeros(2), np.zeros((2, 1))), shape=(3,))


def test_repr() -> None:
    assert repr(bcoo(M3, 1, 1)) == "BCOO(float32[2, 3, 4], nse=3, n_batch=1, n_dense=1)"
    assert repr(jax.tree.map(lambda x: None, bcoo(M))) == "BCOO(<invalid>)"


def test_duplicates_and_order() -> None:
    mat = with_duplicates()
    check(mat, DUPLICATES)
    ordered = mat.sort_indices()
    assert ordered.data.tolist() == [2, 4, 1, 3, 5] and ordered.indices_sorted
    once = mat.sum_duplicates()
    assert (once.data.tolist(), once.nse, once.unique_indices) == ([2, 4, 4], 3, True)
    assert mat.sum_duplicates(nse=2).indices.tolist() == [[0, 1], [0, 3]]
    padded = sparse.bcoo_sum_duplicates(mat, nse=6)
    assert padded.indices[3:].tolist() == [[3, 4]] * 3
    check(padded, DUPLICATES)
    zeros = sparse.BCOO((mat.data.at[0].set(0), mat.indices), shape=mat.shape)
    assert sparse.bcoo.bcoo_eliminate_zeros(zeros).nse == 3
    with pytest.raises(ValueError, match="nse must be specified"):
        jax.jit(sparse.bcoo_sum_duplicates)(mat)
    check(jax.jit(lambda m: m.sum_duplicates(nse=4))(mat), DUPLICATES)


def test_extract() -> None:
    got = sparse.bcoo_extract(with_duplicates(), M)
    assert got.data.tolist() == [4, 1, 0, 2, 0]  # what occurs again is zero
    got = sparse.bcoo_extract(with_duplicates(), M, assume_unique=True)
    assert got.data.tolist() == [4, 1, 4, 2, 0]
    with pytest.raises(ValueError, match="shape mismatch"):
        sparse.bcoo_extract(with_duplicates(), M.T)
    with pytest.raises(TypeError, match="BCOO"):
        sparse.bcoo_extract(M, M)  # type: ignore[arg-type]


def test_layouts() -> None:
    for n_batch, n_dense in LAYOUTS:
        mat = bcoo(M3, n_batch, n_dense)
        for to in [(0, 0), (2, 0), (0, 2), (1, 1)]:
            got = mat.update_layout(n_batch=to[0], n_dense=to[1], on_inefficient=None)
            assert (got.n_batch, got.n_dense) == to
            check(got, M3)
    with pytest.raises(sparse.SparseEfficiencyError, match="increasing n_batch from 0 to 1"):
        bcoo(M).update_layout(n_batch=1)
    with pytest.warns(sparse.SparseEfficiencyWarning, match="increasing n_dense"):
        bcoo(M).update_layout(n_dense=1, on_inefficient="warn")
    with pytest.raises(ValueError, match="cannot be larger than"):
        bcoo(M).update_layout(n_batch=2, n_dense=1)


SPARSE, SPARSE_BATCH, SPARSE_DENSE = bcoo(M3[:1]), bcoo(M3 + 1, 1), bcoo(M3, 0, 1)

REARRANGED = {
    "transpose": ((0, 0), lambda x: sparse.bcoo_transpose(x, permutation=(2, 0, 1)),
                  lambda x: x.transpose(2, 0, 1)),
    "transpose_batch": ((1, 0), lambda x: x.transpose((0, 2, 1)), lambda x: x.transpose(0, 2, 1)),
    "reshape": ((0, 0), lambda x: x.reshape(4, 6), lambda x: x.reshape(4, 6)),
    "reshape_batch": ((1, 0), lambda x: x.reshape(2, 12), lambda x: x.reshape(2, 12)),
    "reshape_dense": ((0, 1), lambda x: x.reshape(6, 2, 2), lambda x: x.reshape(6, 2, 2)),
    "reshape_order": ((0, 0), lambda x: x.reshape(4, 6, order="F"),
                      lambda x: x.reshape(4, 6, order="F")),
    "squeeze": ((1, 0), lambda x: sparse.bcoo_squeeze(x[:1], dimensions=(0,)), lambda x: x[0]),
    "broadcast": ((0, 0), lambda x: sparse.bcoo_broadcast_in_dim(
        x, shape=(2, 2, 3, 4), broadcast_dimensions=(1, 2, 3)), lambda x: np.stack([x, x])),
    "broadcast_dense": ((0, 1), lambda x: sparse.bcoo_broadcast_in_dim(
        x, shape=(2, 3, 4, 2), broadcast_dimensions=(0, 1, 2)), lambda x: np.stack([x, x], -1)),
    "rev": ((1, 1), lambda x: sparse.bcoo_rev(x, (0, 1, 2)), lambda x: x[::-1, ::-1, ::-1]),
    "concatenate_batch": ((1, 0), lambda x: sparse.bcoo_concatenate([x, x], dimension=0),
                          lambda x: np.concatenate([x, x])),
    "concatenate": ((1, 0), lambda x: sparse.bcoo_concatenate([x, x], dimension=1),
                    lambda x: np.concatenate([x, x], 1)),
    "sum": ((1, 1), lambda x: sparse.bcoo_reduce_sum(x, axes=(0, 1)), lambda x: x.sum((0, 1))),
    "sum_dense": ((1, 1), lambda x: sparse.bcoo_reduce_sum(x, axes=(2,)), lambda x: x.sum(2)),
    "sum_sparse": ((0, 0), lambda x: x.sum(1), lambda x: x.sum(1)),
    "sum_all": ((1, 0), lambda x: x.sum(), lambda x: x.sum()),
    "slice": ((0, 0), lambda x: sparse.bcoo_slice(
        x, start_indices=(0, 1, 0), limit_indices=(2, 3, 4), strides=(1, 1, 2)),
        lambda x: x[:, 1:3, ::2]),
    "slice_batch": ((1, 1), lambda x: x[1:, 1:, 1:3], lambda x: x[1:, 1:, 1:3]),
    "slice_small": ((0, 0), lambda x: x[:1, 1:2, :2], lambda x: x[:1, 1:2, :2]),
    "dynamic_slice": ((1, 0), lambda x: sparse.bcoo_dynamic_slice(x, (-1, 2, 1), (1, 2, 3)),
                      lambda x: x[1:, 1:, 1:]),
    "index": ((0, 0), lambda x: x[1], lambda x: x[1]),
    "index_array": ((1, 0), lambda x: x[:, jnp.array([0, 2, 0])], lambda x: x[:, [0, 2, 0]]),
    "index_first": ((0, 0), lambda x: x[jnp.array([1, 0, -1])], lambda x: x[[1, 0, -1]]),
    "multiply": ((0, 0), lambda x: x * M3[:, :1], lambda x: x * M3[:, :1]),
    "divide": ((1, 0), lambda x: x / (M + 1), lambda x: x / (M + 1)),
    "multiply_sparse": ((1, 0), lambda x: x * SPARSE_BATCH, lambda x: x * (M3 + 1)),
    "multiply_stretched": ((0, 0), lambda x: x * SPARSE, lambda x: x * M3[:1]),
    "add": ((1, 0), lambda x: x + SPARSE_BATCH, lambda x: x + M3 + 1),
    "subtract": ((0, 1), lambda x: 2 * x - SPARSE_DENSE, lambda x: x),
    "add_dense": ((0, 0), lambda x: 1 * M3 + x, lambda x: 2 * x),
    "power": ((0, 0), lambda x: -abs(x) ** 3, lambda x: -abs(x) ** 3),
    "astype": ((0, 0), lambda x: x.astype("int32"), lambda x: x.astype("int32")),
}


@pytest.mark.parametrize("name", REARRANGED)
def test_operation(name: str) -> None:
    (n_batch, n_dense), fun, of_dense = REARRANGED[name]
    mat = bcoo(M3, n_batch, n_dense)
    check(fun(mat), of_dense(M3), rtol=1e-6)
    compiled = jax.jit(fun)(mat)
    check(compiled, of_dense(M3), rtol=1e-6)
    padded = bcoo(M3, n_batch, n_dense, nse=mat.nse + 2)
    check(fun(padded), of_dense(M3), rtol=1e-6)


def test_what_is_out_of_bounds_never_counts() -> None:
    mat, x = with_duplicates(), DUPLICATES
    check(mat.sum(), x.sum())
    check(mat.sum(0), x.sum(0))
    check(mat.reshape(2, 6), x.reshape(2, 6))
    check(sparse.bcoo_concatenate([mat, mat], dimension=1), np.concatenate([x, x], 1))
    check(mat[:, 2:], x[:, 2:])
    check(mat.T @ M, x.T @ M)
    check(mat * jnp.full((3, 4), jnp.inf).at[2, 0].set(1), np.where(x, np.inf, 0).astype("f"))
    column = sparse.BCOO((jnp.ones(2), jnp.array([[1, 1], [0, 2]])), shape=(1, 4))
    check(sparse.bcoo_squeeze(column, dimensions=(0,)), np.array([0, 0, 1, 0], np.float32))


DOTS = [  # layout, contracting and batch dimensions of a [2, 3, 4] array, dense other operand
    ((0, 0), ((2,), (0,)), ((), ()), (4, 5)),
    ((0, 0), ((0, 2), (1, 0)), ((), ()), (4, 2)),
    ((0, 0), ((0, 1, 2), (0, 1, 2)), ((), ()), (2, 3, 4)),
    ((0, 0), ((), ()), ((), ()), (2,)),
    ((1, 0), ((2,), (0,)), ((), ()), (4,)),
    ((1, 0), ((0,), (1,)), ((), ()), (3, 2)),
    ((1, 0), ((2,), (1,)), ((0,), (0,)), (2, 4)),
    ((1, 0), ((0, 1), (0, 1)), ((), ()), (2, 3)),
    ((2, 0), ((2,), (2,)), ((1, 0), (1, 0)), (2, 3, 4)),
    ((2, 0), ((0,), (0,)), ((1,), (1,)), (2, 3)),
    ((1, 1), ((1,), (0,)), ((0,), (1,)), (3, 2, 2)),
    ((0, 1), ((0,), (0,)), ((), ()), (2, 3)),
]


@pytest.mark.parametrize("layout, summed, batch, other", DOTS)
def test_dot_general(layout: Any, summed: Any, batch: Any, other: Any) -> None:
    mat, numbers = bcoo(M3, *layout), (summed, batch)
    y = np.random.RandomState(0).randn(*other).astype("f")
    want = lax.dot_general(M3, y, numbers)
    got = sparse.bcoo_dot_general(mat, y, dimension_numbers=numbers)
    check(got, want, rtol=1e-5, atol=1e-6)
    swapped = (summed[::-1], batch[::-1])
    got = sparse.bcoo_dot_general(y, mat, dimension_numbers=swapped)
    check(got, lax.dot_general(y, M3, swapped), rtol=1e-5, atol=1e-6)


def test_dot_general_refuses() -> None:
    def dot(x: Any, y: Any, summed: Any, batch: Any = ((), ())) -> Any:
        return sparse.bcoo_dot_general(x, y, dimension_numbers=(summed, batch))

    with pytest.raises(TypeError, match="contracting dimensions to have the same shape"):
        dot(bcoo(M), M, ((1,), (0,)))
    with pytest.raises(NotImplementedError, match="contracting over dense dimensions"):
        dot(bcoo(M, n_dense=1), M, ((1,), (1,)))
    with pytest.raises(NotImplementedError, match="must be among the batch dimensions"):
        dot(bcoo(M), M, ((1,), (1,)), ((0,), (0,)))
    with pytest.raises(NotImplementedError, match="only supports contraction of sparse"):
        dot(bcoo(M, 1), bcoo(M, 1), ((0,), (0,)))
    with pytest.raises(ValueError, match="unused batch dims on rhs"):
        dot(bcoo(M), bcoo(M3, 1), ((1,), (2,)))


def test_narrow_floats_add_up_in_float32() -> None:
    x = np.full((1, 600), 1, ml_dtypes.bfloat16)
    got = bcoo(x) @ jnp.ones(600, jnp.bfloat16)
    assert got.dtype == jnp.bfloat16 and float(got[0]) == 600
    by = sparse.bcoo_dot_general(bcoo(M), M.T.astype(ml_dtypes.bfloat16), dimension_numbers=(
        ((1,), (0,)), ((), ())), preferred_element_type=jnp.float16)
    check(by, (M @ M.T).astype(np.float16))


def test_sampled() -> None:
    a, b = np.random.RandomState(0).randn(2, 3, 4), np.random.RandomState(1).randn(2, 4, 5)
    a, b = a.astype("f"), b.astype("f")
    full = a @ b
    numbers = (((2,), (1,)), ((0,), (0,)))
    for n_batch, n_sparse in [(0, 3), (1, 2), (0, 1), (2, 1), (1, 1), (0, 2), (0, 0)]:
        sizes = full.shape[n_batch:n_batch + n_sparse]
        indices = np.stack([np.random.RandomState(2).randint(0, n + 1, (*full.shape[:n_batch], 4))
                            for n in sizes] or [np.zeros((4, 0))], -1 if sizes else 0)
        indices = indices.reshape(*full.shape[:n_batch], 4, n_sparse).astype(int)
        got = sparse.bcoo_dot_general_sampled(a, b, indices, dimension_numbers=numbers)
        want = sparse.bcoo_extract_p.bind(jnp.asarray(indices), jnp.asarray(full),
                                          assume_unique=True)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_operators() -> None:
    mat, v = bcoo(M), np.arange(4.0, dtype="f")
    check(mat @ v, M @ v)
    check(np.arange(3.0, dtype="f") @ mat, np.arange(3.0, dtype="f") @ M)
    check(mat @ bcoo(M.T), M @ M.T)
    check(np.float32(2) * mat, 2 * M)
    check(mat * 1j, M * np.complex64(1j))
    assert len(mat) == 3 and len(list(mat)) == 3 and mat.size == 12 and mat.T.shape == (4, 3)
    check(mat + mat, 2 * M)
    for refused in (lambda: mat > 0, lambda: mat == mat, lambda: 1 / mat, lambda: 2 ** mat,
                    lambda: mat + 1, lambda: mat - M, lambda: mat ** 0.5):
        with pytest.raises(NotImplementedError):
            refused()
    with pytest.raises(TypeError, match="unhashable"):
        hash(mat)
    with pytest.raises(TypeError):
        jnp.sin(mat)  # type: ignore[arg-type]


def test_gather_refuses_modes() -> None:
    rows = lax.GatherDimensionNumbers((1,), (0,), (0,))
    with pytest.raises(NotImplementedError, match="mode='clip' not yet supported"):
        sparse.bcoo_gather(bcoo(M), jnp.array([[0]]), rows, (1, 4), mode="clip")


def test_convolution() -> None:
    x, k = np.array([0, 1, 0, 2, 3], "f"), np.array([1, 0, 4], "f")
    for padding in ("SAME", "VALID", [(2, 3)]):
        got = sparse.bcoo_conv_general_dilated(
            bcoo(x[None, None]), bcoo(k[None, None]), window_strides=(1,), padding=padding)
        want = lax.conv_general_dilated(x[None, None], k[None, None], (1,), padding)
        check(got, want)
        for left, right in ((x[None, None], bcoo(k[None, None], n_batch=1)),
                            (bcoo(x[None, None], n_batch=2), k[None, None])):
            check(sparse.bcoo_conv_general_dilated(
                left, right, window_strides=(1,), padding=padding), want)
    row = bcoo(x[None, None])
    slope = jax.grad(lambda k: sparse.bcoo_conv_general_dilated(
        row, k, window_strides=(1,), padding="VALID").todense().sum())(k[None, None])
    np.testing.assert_array_equal(slope, [[[1, 3, 5]]])  # of the element that is zero, too
    check(sparse.sparsify(jnp.convolve)(bcoo(x), k), np.convolve(x, k))
    with pytest.raises(TypeError, match="lhs or rhs must be a BCOO array"):
        sparse.bcoo_conv_general_dilated(x[None, None], k[None, None], window_strides=(1,),
                                         padding="SAME")
    with pytest.raises(NotImplementedError, match="non-unit window_strides"):
        sparse.bcoo_conv_general_dilated(bcoo(x[None, None]), bcoo(k[None, None]),
                                         window_strides=(2,), padding="SAME")


def test_batches_stored_once() -> None:
    """A batch dimension of length 1 of a buffer stands for all batches."""
    indices = np.array([[[0, 1], [2, 3]]])  # the same places in both batches
    mat = sparse.BCOO((np.array([[1, 2], [3, 4]], "f"), indices), shape=(2, 3, 4))
    x = np.asarray(mat.todense())
    assert x[1, 0, 1] == 3 and x[0, 2, 3] == 2
    check(mat @ M[0], x @ M[0])
    check(mat.sum(0), x.sum(0))
    check(mat[1:], x[1:])
    check(mat.update_layout(n_batch=0), x)
    check(mat * M, x * M)
    check(mat.reshape(2, 12), x.reshape(2, 12))
    check(mat.sum_duplicates(), x)
    check(mat + mat.sum_duplicates(), 2 * x)
    wide = sparse.bcoo_broadcast_in_dim(bcoo(M[:1], 1), shape=(3, 4), broadcast_dimensions=(0, 1))
    assert wide.data.shape == (1, 2)
    check(wide, np.broadcast_to(M[:1], (3, 4)))
    check(wide.T if wide.n_batch == 0 else wide @ M.T, np.broadcast_to(M[:1], (3, 4)) @ M.T)


def test_nothing_stored() -> None:
    none, x = bcoo(np.zeros((3, 4), np.float32)), np.zeros((3, 4), np.float32)
    assert none.nse == 0
    check(none @ M.T, x @ M.T)
    check(none + bcoo(M), M)
    check(none * bcoo(M), x)
    check(none.sum(0), x.sum(0))
    check(none.sum_duplicates(), x)
    check(none[1:], x[1:])
    check(none @ bcoo(M).T, x @ M.T)
    check(sparse.bcoo_extract(none, M), x)
    empty = bcoo(np.zeros((0, 4), np.float32))
    check(empty @ M.T, np.zeros((0, 3), np.float32))


def test_scipy() -> None:
    matrix = scipy.sparse.csc_matrix(M)
    mat = sparse.BCOO.from_scipy_sparse(matrix, index_dtype="int16")
    assert mat.indices.dtype == np.int16
    check(mat, M)
    with pytest.raises(NotImplementedError):
        sparse.BCOO.from_scipy_sparse(matrix, n_batch=1)


@pytest.mark.parametrize("unique", [(True, True), (True, False), (False, True), (False, False)])
def test_products_of_sparse_arrays_store_what_can_meet(unique):
    left, right = M3.reshape(-1, M3.shape[-1]), (M3 + 1).reshape(-1, M3.shape[-1])
    a, b = (sparse.BCOO((m.data, m.indices), shape=m.shape, unique_indices=u) for m, u in zip(
        map(sparse.BCOO.fromdense, (left, right)), unique, strict=True))
    for x, y, want in ((a, b, left * right), (b, a, left * right), (a, b[:1], left * right[:1])):
        got = sparse.bcoo_multiply_sparse(x, y)
        np.testing.assert_allclose(got.todense(), want, rtol=1e-6)
    counts = {(True, True): min(a.nse, b.nse), (True, False): b.nse, (False, True): a.nse}
    assert sparse.bcoo_multiply_sparse(a, b).nse == counts.get(unique, a.nse * b.nse)


@pytest.mark.parametrize("left", [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (2, 0)])
@pytest.mark.parametrize("right", [(0, 0), (0, 1), (1, 1), (0, 2)])
def test_products_of_arrays_of_other_layouts(left, right):
    column = np.array([[2.0], [3.0], [0.0]], np.float32)
    for x, y in ((M, column), (column, M), (M, M)):
        a = sparse.BCOO.fromdense(x, n_batch=left[0], n_dense=left[1])
        b = sparse.BCOO.fromdense(y, n_batch=right[0], n_dense=right[1])
        np.testing.assert_array_equal(sparse.bcoo_multiply_sparse(a, b).todense(), x * y)
        np.testing.assert_array_equal((a * b).todense(), x * y)


def test_repeated_and_outer_indices_in_products_of_sparse_arrays():
    indices = np.array([[0, 0], [0, 0], [4, 5], [3, 2]])
    a = sparse.BCOO((np.arange(1.0, 5.0, dtype=np.float32), indices), shape=(4, 5))
    dense = np.arange(20, dtype=np.float32).reshape(4, 5) + 1
    b = sparse.BCOO.fromdense(dense, nse=25)
    np.testing.assert_allclose(sparse.bcoo_multiply_sparse(a, b).todense(), a.todense() * dense)
    np.testing.assert_allclose(sparse.bcoo_multiply_sparse(b, a).todense(), a.todense() * dense)
    none = sparse.BCOO.fromdense(np.zeros((4, 5), np.float32))
    assert not sparse.bcoo_multiply_sparse(none, b).todense().any()
    np.testing.assert_allclose((a @ b.T).todense(), a.todense() @ dense.T)
    np.testing.assert_allclose((b.T @ a).todense(), dense.T @ a.todense())


@pytest.mark.parametrize("test", [
    test_layouts, test_extract, test_duplicates_and_order, test_convolution, test_nothing_stored,
    test_what_is_out_of_bounds_never_counts, test_sampled,
    test_repeated_and_outer_indices_in_products_of_sparse_arrays,
    *[partial(test_operation, name) for name in ("rev", "reshape", "slice", "dynamic_slice")],
    *[partial(test_there_and_back, dtype) for dtype in ("bool", "float32")]])
def test_flags_that_forbid_promotion_let_inner_operations_pass(test: Any) -> None:
    with jax.numpy_rank_promotion("raise"), jax.numpy_dtype_promotion("strict"):
        test()


@pytest.mark.parametrize("shape, dims, n_batch, n_dense", [
    ((3, 4), (0,), 0, 0), ((4, 3), (1,), 0, 0), ((2, 4, 3, 5), (0, 2), 1, 0),
    ((3, 4, 2), (0, 2), 0, 1), ((3, 0), (0,), 0, 0)])
def test_sparse_dimensions_are_made_longer(shape, dims, n_batch, n_dense):
    sizes = [shape[d] for d in dims]
    dense = jnp.arange(1., 1 + np.prod(sizes)).reshape(sizes).at[0].set(0)
    mat = sparse.BCOO.fromdense(dense, n_batch=n_batch, n_dense=n_dense, nse=3)
    out = sparse.bcoo_broadcast_in_dim(mat, shape=shape, broadcast_dimensions=dims)
    np.testing.assert_array_equal(out.todense(), jax.lax.broadcast_in_dim(dense, shape, dims))


def test_products_broadcast_both_operands():
    dense = jnp.arange(15.).reshape(3, 5)
    mat, row = sparse.BCOO.fromdense(dense), sparse.BCOO.fromdense(dense[0], nse=7)
    for product in (lambda x: x[:, 1:2] * x[1:2], lambda x: jnp.outer(x[:, 2], x[1])):
        want, got = product(dense), sparse.sparsify(product)(mat)
        np.testing.assert_array_equal(got.todense(), want)
        assert got.nse <= dense.size
    np.testing.assert_array_equal((mat[:, 1:2] * mat[1:2]).todense(), dense[:, 1:2] * dense[1:2])
    outer = sparse.sparsify(jax.grad(lambda x: jnp.outer(x, x).sum()))(row)
    np.testing.assert_allclose(getattr(outer, "todense", lambda: outer)(), 2 * dense[0].sum())
