"""`sparsify`: functions of dense arrays on sparse ones."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.experimental import sparse
from tests.experimental.sparse.test_bcoo import DUPLICATES, M3, M, bcoo, check, with_duplicates

FUNCTIONS = {
    "elementwise": lambda x: -jnp.tanh(jnp.sqrt(abs(x))) * 2,
    "products": lambda x: jnp.einsum("ij,kj->ik", x * M + x, M),
    "norm": jnp.linalg.norm,
    "sums": lambda x: x.sum(0, keepdims=True) + x[:1],
    "stack": lambda x: jnp.stack([x, 2 * x]),
    "concatenate": lambda x: jnp.concatenate([x, x], 1)[:, 2:],
    "jit": lambda x: jax.jit(lambda y: {"y": y * 2})(x)["y"],
    "cond": lambda x: lax.cond(x.sum() > 0, lambda y: y * 2, lambda y: y.T.T, x),
    "while": lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2),
                                      (0, x))[1],
    "while_flags": lambda x: lax.fori_loop(0, 2, lambda i, y: y.T.T, x),
    "scan": lambda x: lax.scan(lambda c, a: (c * a, c.sum()), x, jnp.arange(1.0, 4.0))[0],
    "checkpoint": jax.checkpoint(lambda x: jnp.sin(x) * 3),
    "squeeze": lambda x: jnp.squeeze(x[None], 0) / 2,
    "dynamic": lambda x: lax.dynamic_slice(x, (1, 0), (2, 3)),
    "dense": lambda x: jnp.cos(sparse.todense(x)),
    "converted": lambda x: (x / 2).astype("int32"),
}


@jax.custom_jvp
def scaled(x: Any) -> Any:
    return 3 * x


scaled.defjvp(lambda primals, tangents: (scaled(*primals), 3 * tangents[0]))


@jax.custom_vjp
def halved(x: Any) -> Any:
    return x / 2


halved.defvjp(lambda x: (x / 2, None), lambda _, g: (g / 2,))
FUNCTIONS |= {"custom_jvp": scaled, "custom_vjp": halved}


@pytest.mark.parametrize("use_tracer", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_agrees_with_the_dense_function(name: str, use_tracer: bool) -> None:
    fun = FUNCTIONS[name]
    got = sparse.sparsify(fun, use_tracer=use_tracer)(bcoo(M))
    check(got, fun(M) if name not in ("dense",) else np.cos(M), rtol=1e-5)


def test_under_jit_and_with_duplicates() -> None:
    fun = FUNCTIONS["elementwise"]
    check(jax.jit(sparse.sparsify(fun))(with_duplicates()), fun(DUPLICATES), rtol=1e-5)
    check(sparse.sparsify(jnp.square)(with_duplicates()), DUPLICATES ** 2)


def test_scan_over_batches() -> None:
    def fun(x: Any) -> Any:
        return lax.scan(lambda c, row: (c + row.sum(), row * 2), 0.0, x)

    total, rows = sparse.sparsify(fun)(bcoo(M3, n_batch=1))
    assert float(total) == M3.sum()
    check(rows, 2 * M3)
    with pytest.raises(NotImplementedError, match="sparse rule for scan with x values"):
        sparse.sparsify(fun)(bcoo(M3))


@pytest.mark.parametrize("use_tracer", [False, True])
def test_refuses_dense_results(use_tracer: bool) -> None:
    sparsify = partial(sparse.sparsify, use_tracer=use_tracer)
    for fun in (jnp.cos, jnp.exp, lambda x: x > 0):
        with pytest.raises(NotImplementedError, match="because it would result in dense output"):
            sparsify(fun)(bcoo(M))
    for fun in (jnp.max, lambda x: x ** 0.5, jax.nn.relu, lambda x: x ** 0):
        with pytest.raises(NotImplementedError, match=r"sparse rule for .* is not implemented"):
            sparsify(fun)(bcoo(M))
    with pytest.raises(NotImplementedError, match="Division by a sparse array"):
        sparsify(lambda x: 1 / x)(bcoo(M))
    with pytest.raises(NotImplementedError, match="silent densification"):
        sparsify(lambda x: x + 1)(bcoo(M))
    for smaller in () if use_tracer else (1.0, jnp.ones(4), jnp.ones((3, 1))):
        with pytest.raises(NotImplementedError, match="silent densification"):
            sparsify(lambda x, y: x + y)(bcoo(M), smaller)
    np.testing.assert_array_equal(sparsify(lambda x, y: x + y)(bcoo(M), jnp.ones((3, 4))), M + 1)


def test_smaller_dense_operands() -> None:
    def fun(x: Any, row: Any, column: Any) -> Any:
        wide = row + column  # read twice, and by a dense operation
        return {"row": x * row, "column": column * x, "ratio": x / (row + 1), "wide": wide,
                "twice": x * wide * jnp.broadcast_to(row, (3, 4)), "row alone": row[None] + 0.0}

    row, column = jnp.arange(4.0), jnp.arange(3.0)[:, None]
    got = sparse.sparsify(fun)(bcoo(M), row, column)
    for name, want in fun(M, row, column).items():
        check(got[name], want, rtol=1e-6)
    jaxpr = str(jax.make_jaxpr(sparse.sparsify(lambda x, row: x * row))(bcoo(M), row))
    assert "[3,4]" not in jaxpr  # no dense array of the whole shape is made


def test_trees_and_arguments() -> None:
    @sparse.sparsify
    def fun(x: Any, n: int, *, other: Any) -> Any:
        return {"x": x * n, "y": x @ other, "z": (1, None)}

    out = fun(bcoo(M), 2, other=M.T)
    check(out["x"], 2 * M)
    check(out["y"], M @ M.T)
    assert int(out["z"][0]) == 1
    assert fun.__name__ == "fun"
    check(sparse.sparsify(lambda x: x)(M), M)


def test_the_same_indices_stay() -> None:
    got = sparse.sparsify(lambda x: x + x * 2 - x * x)(bcoo(M))
    assert got.nse == 5 and got.unique_indices
    check(got, M + 2 * M - M * M)


def test_rows() -> None:
    rows = sparse.BCSR.fromdense(M)
    np.testing.assert_allclose(sparse.sparsify(lambda x: jnp.sin(x) @ M.T)(rows),
                               np.sin(M) @ M.T, rtol=1e-5)
    np.testing.assert_array_equal(
        sparse.sparsify(lambda x: jnp.concatenate([x, -x]))(rows).todense(),
        np.concatenate([M, -M]))
    with pytest.raises(NotImplementedError, match="sparse rule for mul is not implemented"):
        sparse.sparsify(lambda x: x * 2)(rows)


def test_tracer() -> None:
    seen = []
    sparse.sparsify(lambda x: seen.append(x) or x, use_tracer=True)(bcoo(M))
    (tracer,) = seen
    assert isinstance(tracer, sparse.SparseTracer) and tracer.shape == M.shape
    assert repr(tracer) == "SparseTracer<float32[3,4]>" and tracer.full_lower() is tracer
    with pytest.raises(jax.errors.UnexpectedTracerError):
        tracer + 1


def test_gradients_inside() -> None:
    for fun in (lambda x: (x * x).sum(), lambda x: (x ** 3).sum(), lambda x: (x @ M.T @ M).sum()):
        grad = jax.grad(fun)
        check(sparse.sparsify(grad)(bcoo(M)), grad(M))


@pytest.mark.parametrize("exponent", [0, -2])
def test_powers_that_are_not_sparse(exponent: int) -> None:
    with pytest.raises(NotImplementedError, match="integer_pow with non-positive exponent "
                       f"{exponent} is not implemented because it would result in dense output"):
        sparse.sparsify(lambda x: lax.integer_pow(x, exponent))(bcoo(M))


def test_keyword_arguments_are_as_they_are_given():
    matrix = sparse.BCOO.fromdense(jnp.arange(6.).reshape(2, 3))
    assert sparse.sparsify(jnp.sum)(matrix, axis=1).todense().tolist() == [3, 12]
    doubled = sparse.sparsify(lambda a, *, twice, by: (a * by if twice else a))
    assert doubled(matrix, twice=True, by=2).todense().tolist() == [[0, 2, 4], [6, 8, 10]]
    product = sparse.sparsify(lambda a, *, by, at: a * by["it"] * at)
    out = product(matrix, by={"it": matrix}, at=jnp.float32(2))
    assert out.todense().tolist() == [[0, 2, 8], [18, 32, 50]]
