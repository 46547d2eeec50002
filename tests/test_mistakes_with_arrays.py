"""Mistakes with arrays and functions of arrays: the error says what was given and a cure that, when
it is followed, does what was meant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import random
from pyjx.experimental import sparse
from tests.test_planted_mistakes import mistake

KEY, V = random.key(0), jnp.ones(3)
MATRIX = scipy.sparse.csr_matrix(np.eye(3, dtype=np.float32))


# What is no array, and the cure, whose value is then taken.
NO_ARRAYS: list[tuple[Any, str]] = [
    (range(1, 5, 2), "Make an array of it: jnp.arange(1, 5, 2)."),
    ({1, 2}, "Make an array of it: jnp.asarray(list(x))."),
    ((y for y in [1, 2]), "Make an array of it: jnp.asarray(list(x))."),
    ([1, 2], "Make an array of it by jnp.asarray."),
    ([V, jnp.ones((2, 2)), 1.0], "jnp.concatenate([jnp.asarray(y).ravel() for y in x])."),
    ([[1, 2], [3]], "jnp.concatenate([jnp.asarray(y).ravel() for y in x])."),
    ({"a": V}, "jax.tree.map(f, x) computes f of each of its leaves."),
    (MATRIX, "Make an array of it: x.toarray()."),
]


@pytest.mark.filterwarnings("ignore:Python iterable type")  # C++ is about to take none
@pytest.mark.parametrize(("x", "cure"), NO_ARRAYS)
def test_what_is_no_array_is_told_how_one_is_made_of_it(x: Any, cure: str) -> None:
    for call in (jnp.sum, lambda x: random.permutation(KEY, x), lambda x: random.poisson(KEY, x)):
        assert cure in mistake(lambda call=call: call(x))
    expression = cure.removesuffix(".").rpartition(": ")[2].removeprefix("Make an array of it by ")
    if not expression.startswith("jax.tree"):
        made: Any = eval(expression, {"jnp": jnp, "x": x})
        jnp.sum(made(x) if callable(made) else made)


@pytest.mark.parametrize("x", [["a"], "a", None, [[1, [2]], [3]], object()])
def test_of_what_no_array_is_made_there_is_no_word(x: Any) -> None:
    for call in (jnp.sum, lambda x: random.permutation(KEY, x), lambda x: random.bernoulli(KEY, x)):
        said = mistake(lambda call=call: call(x))
        assert "asarray" not in said and "concatenate" not in said


def test_functions_are_given_sparse_matrices_of_arrays() -> None:
    for transform in (jax.jit, jax.vmap):
        said = mistake(lambda transform=transform: transform(lambda m, x: m @ x)(MATRIX, V))
        assert "jax.experimental.sparse.BCOO.from_scipy_sparse(x)." in said
    matrix = sparse.BCOO.from_scipy_sparse(MATRIX)
    assert jax.jit(lambda m, x: m @ x)(matrix, V).tolist() == [1, 1, 1]


@pytest.mark.filterwarnings("ignore:Python iterable type")
def test_iterators_of_arrays_are_joined() -> None:
    for join in (jnp.stack, jnp.vstack):
        assert join(V for _ in range(2)).shape == (2, 3)
    assert "Need at least one array to stack." in mistake(lambda: jnp.stack(iter(())))


@pytest.mark.parametrize("call", [
    lambda: V * "a", lambda: "a" * V, lambda: jnp.float32(2) * "a",
    lambda: jax.jit(lambda x: x * "a")(V)])
def test_texts_are_repeated_by_integers_alone(call: Callable[[], Any]) -> None:
    said = mistake(call)
    assert "unsupported operand type(s) for *" in said and "'str'" in said
    assert jnp.int32(2) * "a" == "aa"
    assert "repeat" not in mistake(lambda: V * [1])


@pytest.mark.parametrize("use", [
    list, round, lambda x: next(iter(x)), lambda x: list(reversed(x))])
def test_leaked_values_are_no_rows(use: Callable[[Any], Any]) -> None:
    for x in (jnp.zeros(0, int), jnp.arange(3), jnp.int32(2)):
        kept: list[Any] = []
        jax.jit(kept.append)(x)
        assert "unexpected tracer" in mistake(lambda kept=kept: use(kept[0]))


def test_methods_are_named_as_they_are_called() -> None:
    assert "Array.astype() missing" in mistake(lambda: V.astype())
    assert "Array.copy() takes" in mistake(lambda: V.copy(1))
    assert "A shape is for x.reshape(3, 1)." in mistake(lambda: V.view(3, 1))
