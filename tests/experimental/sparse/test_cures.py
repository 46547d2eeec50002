"""What errors of sparse arrays say is to be written, and that it serves."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.experimental import sparse
from tests.mistakes import mistake

M = jnp.array([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0]])
A, CSR = sparse.BCOO.fromdense(M), sparse.CSR.fromdense(np.eye(2))
KEY = jax.random.key(0)


def rows(a: Any) -> Any:
    return jax.vmap(lambda row: row @ jnp.ones(3))(a)


@pytest.mark.parametrize(("call", "cure", "cured"), [
    (lambda: sparse.BCOO(M), "sparse.BCOO.fromdense(x) makes one of a dense array.",
     lambda: sparse.BCOO.fromdense(M)),
    (lambda: rows(A), "BCOO.fromdense(x, n_batch=1) has one.",
     lambda: rows(sparse.BCOO.fromdense(M, n_batch=1))),
    (lambda: CSR + 1, ".__add__: x.todense() has this operation.", lambda: CSR.todense() + 1),
    (lambda: M - A, "x + -y adds the negative one.", lambda: M + -A),
    (lambda: sparse.BCSR.fromdense(M)[0], "sparse.todense(x), has this operation.",
     lambda: sparse.todense(sparse.BCSR.fromdense(M))[0]),
    (lambda: sparse.random_bcoo((3, 3), KEY), "The key comes first: random_bcoo(key, ...).",
     lambda: sparse.random_bcoo(KEY, (3, 3))),
    (lambda: sparse.grad(rows)(sparse.BCOO.fromdense(M, n_batch=1)), "The function is rows at ",
     lambda: sparse.grad(lambda a: rows(a).sum())(sparse.BCOO.fromdense(M, n_batch=1))),
])
def test_what_is_said_serves(call: Callable[[], Any], cure: str, cured: Callable[[], Any]) -> None:
    assert cure in mistake(call)
    cured()
