"""Sparse arrays under jit, derivatives and vmap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.experimental import sparse
from tests.experimental.sparse.test_bcoo import M3, M, bcoo, check

V = np.arange(1.0, 5.0, dtype="f")


def test_a_pytree_under_jit_and_in_loops() -> None:
    mat = bcoo(M)
    out = jax.jit(lambda m: (m, 2 * m))(mat)[1]
    assert isinstance(out, sparse.BCOO) and out.indices_sorted
    check(out, 2 * M)
    doubled = jax.lax.fori_loop(0, 3, lambda i, m: 2 * m, mat)
    check(doubled, 8 * M)


def test_programs_show_the_operation() -> None:
    text = str(jax.make_jaxpr(lambda m, v: m @ v)(bcoo(M), V))
    assert "bcoo_dot_general[" in text and "lhs_spinfo=SparseInfo(shape=(3, 4)" in text
    assert "bcoo_todense[" in str(jax.make_jaxpr(lambda m: m.todense())(bcoo(M)))


def test_derivatives_by_the_data() -> None:
    mat = bcoo(M)

    def product(data: Any, v: Any) -> Any:
        return jnp.sin(sparse.BCOO((data, mat.indices), shape=M.shape) @ v).sum()

    def dense(x: Any, v: Any) -> Any:
        return jnp.sin(x @ v).sum()

    for transform in (jax.grad, lambda f, argnums: jax.jit(jax.grad(f, argnums))):
        by_data, by_v = transform(product, (0, 1))(mat.data, V)
        want, want_v = jax.grad(dense, (0, 1))(M, V)
        np.testing.assert_allclose(by_data, want[np.nonzero(M)], rtol=1e-5)
        np.testing.assert_allclose(by_v, want_v, rtol=1e-5)
    np.testing.assert_allclose(jax.hessian(lambda v: (mat @ v).sum() ** 2)(V),
                               jax.hessian(lambda v: (M @ v).sum() ** 2)(V), rtol=1e-5)
    tangent = jax.jvp(lambda v: mat @ v, (V,), (V,))[1]
    np.testing.assert_allclose(tangent, M @ V, rtol=1e-6)


def test_linear_in_the_dense_operand() -> None:
    (back,) = jax.linear_transpose(lambda v: bcoo(M) @ v, V)(np.ones(3, "f"))
    np.testing.assert_allclose(back, M.sum(0))
    spd = bcoo(np.diag(V) + np.eye(4, dtype="f"))
    g = jax.grad(lambda b: jax.scipy.sparse.linalg.cg(lambda x: spd @ x, b)[0].sum())(V)
    np.testing.assert_allclose(g, 1 / (V + 1), rtol=1e-4)


def test_vmap_of_sparse_arguments() -> None:
    mat = bcoo(M3, n_batch=1)
    shapes = []

    def fun(m: Any, v: Any) -> Any:
        shapes.append((m.shape, m.n_batch))
        return m @ v

    check(jax.vmap(fun, in_axes=(0, None))(mat, V), M3 @ V)
    assert shapes == [((3, 4), 0)]
    check(jax.vmap(lambda m: m * 2)(mat), 2 * M3)
    swapped = jax.vmap(lambda m: m, in_axes=1)(bcoo(M3, n_batch=2))
    check(swapped, M3.swapaxes(0, 1))
    rows = jax.vmap(lambda m: m)(sparse.BCSR.fromdense(M3, n_batch=1))
    assert rows.shape == M3.shape
    np.testing.assert_array_equal(rows.todense(), M3)
    check(jax.vmap(lambda m, v: m @ v, in_axes=(None, 0))(bcoo(M), M), M @ M.T)
    many = jax.vmap(lambda s: {"m": bcoo(M) * s})(jnp.arange(2.0))["m"]
    assert many.n_batch == 1
    check(many, M * np.arange(2.0, dtype="f")[:, None, None])


def test_vmap_refuses_axes_that_are_no_batch_dimensions() -> None:
    with pytest.raises(ValueError, match="Cannot map in_axis=0 for BCOO array with n_batch=0"):
        jax.vmap(lambda m: m)(bcoo(M))
    with pytest.raises(ValueError, match="cannot add out_axis=1"):
        jax.vmap(lambda m: m, out_axes=1)(bcoo(M3, n_batch=1))


def test_vmap_of_operations() -> None:
    got = jax.vmap(lambda x: sparse.BCOO.fromdense(x, nse=5))(M3)
    check(got, M3)
    check(jax.vmap(lambda m: m.sum_duplicates(nse=5))(got), M3)
    check(jax.vmap(lambda m: m.T)(got), M3.swapaxes(1, 2))


def test_sparse_grad_checks_argnums() -> None:
    def product(m: Any, v: Any) -> Any:
        return (m @ v).sum()

    with pytest.raises(ValueError, match=r"argnums=\(0, 0\) names an argument twice"):
        sparse.grad(product, argnums=(0, 0))(bcoo(M), V)
    with pytest.raises(ValueError, match=r"but got value -5 for len\(args\) == 2"):
        sparse.grad(product, argnums=-5)(bcoo(M), V)


def test_sparse_grad() -> None:
    mat = bcoo(M)
    g = sparse.grad(lambda m, v: (m @ v).sum())(mat, V)
    assert isinstance(g, sparse.BCOO) and g.indices.tolist() == mat.indices.tolist()
    np.testing.assert_allclose(g.data, V[np.nonzero(M)[1]])
    value, (by_m, by_v) = sparse.value_and_grad(lambda m, v: (m @ v).sum(), (0, 1))(mat, V)
    np.testing.assert_allclose(value, (M @ V).sum())
    np.testing.assert_allclose(by_v, M.sum(0))
    assert by_m.nse == 5
    g, aux = sparse.grad(lambda m: ((m @ V).sum(), 3), has_aux=True)(mat)
    assert aux == 3 and g.nse == 5
    tree = sparse.grad(lambda x: (x["a"] @ x["b"]).sum())({"a": mat, "b": V})
    assert isinstance(tree["a"], sparse.BCOO)
    np.testing.assert_allclose(tree["b"], M.sum(0))
    for cls in (sparse.BCSR, sparse.CSR, sparse.CSC, sparse.COO):
        g = sparse.grad(lambda m: (m @ V).sum())(cls.fromdense(M))
        np.testing.assert_allclose(g.todense(), np.where(M, V, 0))


@pytest.mark.parametrize("transform", [sparse.jacfwd, sparse.jacrev, sparse.jacobian])
def test_sparse_jacobians(transform: Any) -> None:
    jac = transform(lambda m: m @ V)(bcoo(M))
    assert jac.shape == (3, 3, 4) and jac.n_batch == 1
    want = np.where(M[None] != 0, jax.jacfwd(lambda m: m @ V)(M), 0)
    np.testing.assert_allclose(jac.todense(), want)
    np.testing.assert_allclose(transform(lambda v: bcoo(M) @ v)(V), M)


def test_vmap_of_arrays_whose_batches_share_a_buffer() -> None:
    one = bcoo(M)
    data = jnp.stack([one.data, 2 * one.data])
    shared = sparse.BCOO((data, one.indices[None]), shape=(2, *M.shape))
    np.testing.assert_allclose(jax.vmap(lambda m: m @ V)(shared), np.stack([M @ V, 2 * M @ V]))
    with pytest.raises(ValueError, match=r"Cannot map in_axis=-3 for BCOO array with n_batch=1"):
        jax.vmap(lambda m: m @ V, in_axes=-3)(shared)
    with pytest.raises(ValueError, match="got axis spec None but output was batched on axis 0"):
        jax.vmap(lambda m: m, out_axes=None)(shared)
    with pytest.raises(ValueError, match=r"one axis had size 2: axis 0 of argument m of type BCOO"):
        jax.vmap(lambda m, x: x)(shared, jnp.zeros(3))
