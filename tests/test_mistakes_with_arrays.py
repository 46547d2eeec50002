"""Mistakes with arrays and functions of arrays: the error says what was given and a cure that, when
it is followed, does what was meant."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax, random
from pyjx.experimental import sparse
from tests import mistakes
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
    ({"a": V}, "jax.tree.map(f, x) computes f of each of its leaves, and "
     "jax.flatten_util.ravel_pytree(x)[0] is a vector of all."),
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


# What asks an array for a number, and what serves in its place.
ASKED: list[tuple[Callable[[Any], Any], Any, str]] = [
    (lambda x: float(x), V, "x.astype(float)."), (lambda x: int(x), V, "x.astype(int)."),
    (lambda x: int(x), jnp.ones((1, 1)), "x.item()."),
    (lambda x: math.sqrt(x), V, "use jnp.sqrt."),
    (lambda x: range(x), jnp.float32(2), "int(x) is an integer."),
    (lambda x: [1, 2][x], jnp.float32(1), "int(x) is an integer."),
    (lambda x: [1, 2][x], jnp.arange(2), "jnp.asarray([1, 2])[x]."),
    (lambda x: max(x), jnp.ones((2, 2)), "use jnp.max(x)."),
    (lambda x: sorted(x), jnp.ones((2, 2)), "use jnp.sort(x)."),
]


@pytest.mark.parametrize(("call", "x", "cure"), ASKED)
def test_arrays_that_are_asked_for_a_number(call: Any, x: Any, cure: str) -> None:
    assert mistake(lambda: call(x)).partition("\n")[0].endswith(cure)
    if x.ndim and x.size > 1 and "ambiguous" not in mistake(lambda: call(x)):
        assert cure in mistake(lambda: jax.jit(lambda x: call(x))(x))


@pytest.mark.parametrize(("call", "words"), [
    (lambda: jnp.ones(3, 4, 5), "Give shape as one tuple: (3, 4, 5)."),
    (lambda: jnp.ones(3, int(V.size), 5), "Give shape as one tuple."),
    (lambda: jnp.zeros(2, 3, dtype=int), "Give shape as one tuple: (2, 3)."),
    (lambda: jnp.pad(V, 1, "edge", 0), "The arguments are array, pad_width, mode, **kwargs."),
    (lambda: random.choice(KEY, 5, 3), "got 3. Of 3 numbers it is (3,)"),
    (lambda: jnp.transpose(V, 1, 0), "Give axes as one tuple: (1, 0)."),
    (lambda: jnp.tile(V, 2, 3), "Give reps as one tuple: (2, 3)."),
    (lambda: V.squeeze(1, 2), "Give axis as one tuple: (1, 2)."),
    (lambda: jnp.concat(V, V), "The arrays are one sequence, as in concat((a, b))."),
    (lambda: jnp.concat([V, V], 0), "The arguments are arrays, *, axis."),
    (lambda: jnp.moveaxis(V, 0, 1, 2), "The arguments are a, source, destination."),
    (lambda: jax.nn.one_hot(V, 3, -1), "The arguments are x, num_classes, *, dtype, axis"),
    (lambda: random.normal(KEY, 0.0, 1.0, (3,)), "The arguments are key, shape, dtype, *, out"),
    (lambda: random.normal((3,), key=KEY), "The arguments are key, shape, dtype, *, out"),
    (lambda: jnp.linspace(0, 1, step=5), "Did you mean 'num'?"),
    (lambda: jnp.sort(V, reverse=True), "Did you mean 'descending'?"),
    (lambda: lax.convert_element_type(V, "flaot"), "Did you mean 'float32'?"),
    (lambda: V.shape(), "Without brackets it is the value: V.shape."),
    (lambda: V(0), "Use x[index]."), (lambda: V.at[0](1), "Use x.at[index].set(value)."),
    (lambda: "%d" % V, "%s shows an array."),  # noqa: UP031  as users do
    (lambda: f"{V:.2f}", "np.array2string("),
    (lambda: V[1.0:2.0], "slice indices must be integers, got 1.0"),
    (lambda: V @ 2, "A number is multiplied by with *."),
    (lambda: jnp.einsum(V, "i->"), "the subscripts come first"),
    (lambda: jnp.einsum("i,i", [V, V]), "give the operands one by one"),
    (lambda: jnp.meshgrid([V, V]), "Give what it holds one by one, as *x."),
    (lambda: -(V > 0), "take ~x,"), (lambda: (V > 0) - (V > 0), "take x ^ y,"),
    (lambda: V << 1, "Convert floats: jnp.asarray(x, int)."),
    (lambda: lax.sin(1), "Convert integers and booleans: jnp.asarray(x, float)."),
    (lambda: jax.nn.initializers.glorot_uniform()((3, 4), KEY), "The key comes first."),
    (lambda: jnp.ndarray((2,)), "or jnp.zeros(shape)."),
    (lambda: jnp.digitize(V, 2), "got bins=int32[]"),
])
def test_cures_of_arguments(call: Callable[[], Any], words: str) -> None:
    assert words in mistakes.mistake(call)


def test_a_key_that_is_there_is_not_to_be_made() -> None:
    for call in (lambda: random.bernoulli(0.5, KEY), lambda: random.split(3, KEY)):
        said = mistake(call)
        assert "The key comes first" in said and "If that is a seed" not in said
    assert "jax.random.key(1.5)" not in mistake(lambda: random.normal(1.5))


@pytest.mark.parametrize("call", [
    lambda: jnp.arange(3) + 2**70, lambda: jnp.add(V, 2**70), lambda: jnp.full(3, 2**70)])
def test_integers_beyond_64_bits_are_floats(call: Callable[[], Any]) -> None:
    assert "Integers have at most 64 bits. Use a float." in mistake(call)
    assert "Use a float" not in mistake(lambda: random.key(2**70))
    assert "Use a float" not in mistake(lambda: jnp.arange(2**70))


@pytest.mark.parametrize(("f", "x", "words", "unneeded"), [
    (lambda x: float(x) * 2, 1.0, "try using `x.astype(float)`", "static_argnums"),
    (lambda x: int(x.sum()) + 1, V, "try using `x.astype(int)`", "static_argnums"),
    (lambda x: jnp.zeros(int(x)), 1, "static_argnums", "astype"),
    (lambda x: V[:int(x)], 1, "static_argnums", "astype"),
    (lambda x: math.sin(x), 1.0, "use jnp.sin", "astype"),
])
def test_conversions_of_traced_values_have_one_cure(f: Any, x: Any, words: str, unneeded: str
                                                    ) -> None:
    said = mistake(lambda: jax.jit(f)(x))
    assert words in said and unneeded not in said


@pytest.mark.parametrize(("call", "words"), [
    (lambda: jnp.sum(sparse.BCOO.fromdense(jnp.eye(3))), "Make an array of it: x.todense()."),
    (lambda: jnp.sum(V.at[0]), "Make an array of it: x.get()."),
    (lambda: jax.tree.map(jnp.allclose, {"a": V}, {"a": jnp.ones(4)}), "allclose got incompat"),
    (lambda: jnp.zeros(3, "int23"), "Did you mean 'int32'?"),
    (lambda: jax.scipy.stats.norm(0, 1), "is a module, and not callable. It has cdf, "),
    (lambda: jnp.linalg(V), "jnp.linalg is a module, and not callable."),
    (lambda: jnp.linalg.expm(V), "Use jax.scipy.linalg.expm."),
    (lambda: V.set(1), "Use x.at[index].set(values)."),
    (lambda: np.asarray(V).fill(2), "np.array(x) is a copy."),
    (lambda: json.dumps({"loss": V}), "Give x.tolist()"),
])
def test_what_else_there_is(call: Callable[[], Any], words: str) -> None:
    assert words in mistakes.mistake(call)
    with pytest.raises(TypeError) as caught:
        np.zeros(V)  # type: ignore[call-overload]
    assert "int(x)" not in str(caught.value)
