"""What suites of sparse arrays, written for JAX, are built on."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import pyjx as jax
from pyjx import lax
from pyjx import numpy as jnp
from pyjx.compat import test_util as jtu
from pyjx.compat.test_util import sparse as sptu
from pyjx.experimental import sparse
from pyjx.experimental.sparse import test_util as public


def rng() -> np.random.RandomState:
    return np.random.RandomState(0)


@pytest.fixture
def case() -> sptu.SparseTestCase:
    made = sptu.SparseTestCase()
    made.setUp()
    return made


def test_the_public_module_has_what_needs_absl():
    assert public.SparseTestCase is sptu.SparseTestCase and public.rand_bcoo is sptu.rand_bcoo
    with pytest.raises(AttributeError, match="no_such"):
        _ = public.no_such


def test_layouts():
    assert len(list(sptu.iter_sparse_layouts((2, 3)))) == 6
    assert [tuple(x) for x in sptu.iter_sparse_layouts((2, 3), 1)] == [(1, 0, 1), (1, 1, 0),
                                                                       (2, 0, 0)]
    assert [tuple(x) for x in sptu.iter_bcsr_layouts((2, 3, 4))] == [(0, 1, 2), (1, 0, 2)]
    assert list(sptu.iter_subsets("ab")) == [(), ("a",), ("b",), ("a", "b")]


@pytest.mark.parametrize("layout", list(sptu.iter_sparse_layouts((2, 4, 3))))
def test_sparse_arrays_at_random(layout: Any) -> None:
    shape, (n_batch, n_dense, n_sparse) = (2, 4, 3), layout
    made = sptu.rand_bcoo(rng(), nse=2, n_batch=n_batch, n_dense=n_dense)(shape, np.float32)
    assert sptu.is_sparse(made) and made.shape == shape and made.dtype == "float32"
    assert (made.n_batch, made.n_dense, made.n_sparse) == (n_batch, n_dense, n_sparse)
    cut = shape[n_batch:n_batch + n_sparse]
    assert made.nse == min(2, int(np.prod(cut)))
    assert (made.todense() != 0).sum() == made.data.size  # no place is there twice
    if n_sparse == 2:
        rows = sptu.rand_bcsr(rng(), nse=0.5, n_batch=n_batch, n_dense=n_dense)(shape, np.int8)
        assert isinstance(rows, sparse.BCSR) and rows.nse == -(-np.prod(cut) // 2)
        assert rows.indptr.shape == (*shape[:n_batch], cut[0] + 1)


@pytest.mark.parametrize("method", [jtu.rand_default, jtu.rand_positive])
def test_dense_arrays_most_of_whose_elements_are_zero(method: Any) -> None:
    made = public.rand_sparse(rng(), nse=3, rand_method=method, post=jnp.asarray)((4, 5), np.int32)
    assert isinstance(made, jax.Array) and made.dtype == "int32" and (made != 0).sum() <= 3
    if method is jtu.rand_positive:
        assert made.min() == 0 < made.max()


def test_equivalent_arrays(case: sptu.SparseTestCase):
    mat = sptu.rand_bcoo(rng(), nse=3)((4, 5), np.float32)
    case.assertSparseArraysEquivalent(mat, mat * 1)
    for other in (mat * 2, mat.todense(), sparse.BCSR.from_bcoo(mat.sort_indices()),
                  sparse.BCOO((mat.data, mat.indices), shape=(4, 6))):
        with pytest.raises(AssertionError):
            case.assertSparseArraysEquivalent(mat, other)
    near = sparse.BCOO((mat.data + 0.01, mat.indices), shape=mat.shape)
    case.assertSparseArraysEquivalent(mat, near, atol=0.1)


Check = Callable[[sptu.SparseTestCase], Callable[..., None]]
CHECKS: list[Check] = [lambda c: c._CheckAgainstDense, lambda c: c._CheckGradsSparse,
                       lambda c: c._CheckBatchingSparse]


def arguments(draw: np.random.RandomState, n_batch: int = 0) -> Callable[[], list[Any]]:
    dense = jtu.rand_default(draw)
    return lambda: [sptu.rand_bcoo(draw, n_batch=n_batch)((3, 4), np.float32),
                    dense((4, 2), np.float32)]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("n_batch", [0, 1])
def test_right_functions_pass(case: sptu.SparseTestCase, check: Check, n_batch: int) -> None:
    with jax.default_matmul_precision("float32"):
        check(case)(operator.matmul, sparse.sparsify(operator.matmul), arguments(rng(), n_batch),
                    atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("check", CHECKS)
def test_wrong_functions_fail(case: sptu.SparseTestCase, check: Check) -> None:
    with pytest.raises(AssertionError):
        check(case)(operator.matmul, lambda x, y: 2 * (x @ y), arguments(rng()))


def test_wrong_derivatives_fail(case: sptu.SparseTestCase):
    @jax.custom_jvp
    def identity(x: Any) -> Any:
        return x

    identity.defjvp(lambda primals, tangents: (primals[0], 2 * tangents[0]))

    def wrong(x: Any, y: Any) -> Any:
        return x @ identity(y)

    case._CheckAgainstDense(operator.matmul, wrong, arguments(rng()), tol=1e-4)
    check = partial(case._CheckGradsSparse, operator.matmul, wrong, arguments(rng()),
                    atol=1e-4, rtol=1e-4)
    check()  # with regard to the first argument
    for mode in ("fwd", "rev"):
        for argnums in (1, (0, 1)):
            with pytest.raises(AssertionError):
                check(argnums=argnums, modes=[mode])


def test_what_differs_compiled_or_mapped_fails(case: sptu.SparseTestCase):
    def other_in_traces(x: Any) -> Any:
        return x if jax.core.is_concrete(x.data) else 2 * x

    def made() -> list[Any]:
        return [sptu.rand_bcoo(rng())((3, 4), np.float32)]

    case._CheckAgainstDense(lambda x: x, other_in_traces, made, check_jit=False)
    with pytest.raises(AssertionError):
        case._CheckAgainstDense(lambda x: x, other_in_traces, made)
    batched = partial(case._CheckBatchingSparse, lax.neg, sparse.sparsify(lax.neg),
                      lambda: [sptu.rand_bcoo(rng(), n_batch=1)((3, 4), np.float32)])
    for bdims in ([0], [1], None):
        batched(bdims=bdims, batch_size=2, check_jit=True)
    assert set(case._random_bdims(0, 0)) == {0} and case._random_bdims(5)[0] in range(6)
