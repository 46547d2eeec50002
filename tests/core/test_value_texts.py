"""Values as error messages show them."""

import os
import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax, random
from pyjx.core.value_texts import shortened, shortened_lines, without_numbers


def test_long_texts_lose_their_middle():
    assert shortened("a" * 98) == repr("a" * 98)
    assert shortened("a" * 99 + "b") == f"'{'a' * 47}...{'a' * 47}b'"


@pytest.mark.parametrize(("value", "text"), [
    ([*range(10**4)], "[0, 1, 2, 3, 4, 5, ...]"), (np.zeros((200, 3)), "float64[200,3]"),
    ([[*range(10**4)]], "[[0, 1, 2, 3, 4, 5, ...]]"), (np.zeros(2), "array([0., 0.])"),
    (dict.fromkeys(range(100)), "{0: None, 1: None, 2: None, 3: None, 4: None, 5: None, ...}"),
    (np.ones((4, 5)), "float64[4,5]"), ((1, "a"), "(1, 'a')")], ids=range(7))
def test_large_values_are_shown_by_what_they_are(value, text):
    assert shortened(value) == text


def test_messages_of_any_length_are_shortened():
    assert shortened_lines("a\n" * 100 + "b" * 300) == "a\n" * 100 + "b" * 300
    few, many = [shortened_lines("\n".join(["x" * 700] * n)) for n in (3, 500)]
    assert [len(line) for line in few.split("\n")] == [600] * 3
    assert many.split("\n")[8] == "  ... (486 lines more)"
    assert len(many) < 10_000


class Unspeakable:
    def __repr__(self):
        raise RuntimeError("no")


@pytest.mark.parametrize("value", [
    *[type(name, (), {})() for name in ("array", "deque", "dict", "list", "str", "int")],
    Unspeakable(), [Unspeakable()], 10**5000], ids=range(9))
def test_any_value_can_be_shown(value):
    assert type(value).__name__ in shortened(value)


@pytest.mark.parametrize("name", ["array", "deque"])
def test_classes_named_as_those_of_python_in_messages(name):
    with pytest.raises(TypeError, match=f"{name} object> of .* is not a valid JAX type"):
        jax.vmap(lambda x: x)(type(name, (), {})())


X = np.arange(6, dtype=np.float32).reshape(2, 3)
X_ = jnp.asarray(X)
KEY = random.key(0)
TREE = {f"layer_{i}": {"w": X, "b": X} for i in range(300)}
LACKING = {**TREE, "layer_7": {"w": X}}


@pytest.mark.parametrize("elements", [
    [1, None], [1j, 2, None], [np.complex64(1j)], [np.bool_(1), True], [Fraction(1, 2), Decimal(3)],
    ["1", "2.5"], [b"1", 2], ["b", "a"], ["1", "a"]])
def test_objects_that_are_numbers_are_made_so(elements):
    x = np.array(elements, object)
    made = eval(without_numbers(x).partition("one of numbers: ")[2][:-1], {"np": np, "x": x})
    assert made.dtype.kind in "fci" and jnp.asarray(made).shape == x.shape


@pytest.mark.parametrize("elements", [
    [X_, 1], [X_, X_[0]], [1.0, "a"], [{"a": 1}], [jnp.float32(1), "a"]])
def test_of_other_objects_one_is_shown(elements):
    x = np.empty(len(elements), object)
    x[:] = elements
    said = without_numbers(x)
    assert "no number of Python's or NumPy's. Give its elements apart: x.tolist() is a list" in said
    assert jax.tree.structure(x.tolist()) == jax.tree.structure(elements)


@jax.custom_vjp
def of_tree(p):
    return p["layer_0"]["w"].sum()


of_tree.defvjp(lambda p: (of_tree(p), None), lambda _, ct: (LACKING,))


def halved(p):
    return jax.tree.map(lambda x: x.astype("float16"), p)


@pytest.mark.parametrize(("call", "path"), [
    (lambda: jax.jvp(lambda p: p, (TREE,), (LACKING,)), "At [0]['layer_7'] the first is"),
    (lambda: jax.linearize(lambda p: p, TREE)[1](LACKING), "['layer_7'] the first is"),
    (lambda: jax.linear_transpose(lambda p: p, TREE)(LACKING), "['layer_7'] the first is"),
    (lambda: jax.grad(of_tree)(TREE), "At [0]['layer_7'] the first is"),
    (lambda: jax.vmap(lambda p: p, ({**TREE, "layer_7": "a"},))(TREE), "in_axes[0]['layer_0']"),
    (lambda: jax.jit(lambda p: p).lower(TREE).compile()(LACKING), "p['layer_7'] was a <class"),
    (lambda: jax.jit(lambda p: p).lower(TREE).compile()(LACKING), "of key sets: {'b'}. Give"),
    (lambda: lax.reduce(TREE, LACKING, lambda a, b: a, (0,)), "At ['layer_7'] the first is"),
    (lambda: lax.custom_root(lambda p: LACKING, TREE, lambda f, x: x, lambda g, y: y),
     "At ['layer_7'] the first is"),
    (lambda: lax.associative_scan(lambda a, b: LACKING, TREE), "At ['layer_7'] the first is"),
    (lambda: lax.scan(lambda c, _: (halved(c), None), TREE, None, length=2), "lines more)"),
    (lambda: lax.cond(X[0, 0] > 0, lambda: TREE, lambda: halved(TREE)), "lines more)"),
], ids=range(12))
def test_large_trees_are_shown_by_where_they_differ(call, path):
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    message = str(caught.value)
    assert path in message
    assert "Did you mean" not in message
    assert len("\n".join([message, *caught.value.__notes__])) < 2500


@pytest.mark.parametrize("call", [
    lambda: jax.grad(lambda x: x, argnums=list(range(10**5)))(1.0),
    lambda: jnp.broadcast_to(X, jnp.zeros(10**5, int)), lambda: jnp.zeros(jnp.ones((10**4, 4))),
    lambda: lax.broadcasted_iota(int, jnp.zeros(10**5, int), 0), lambda: jnp.tile(X, [2] * 10**4),
    lambda: lax.broadcast(X, jnp.zeros(10**5, int)), lambda: random.normal(KEY, np.ones((9999, 9))),
    lambda: jnp.sum(X, axis=jnp.zeros(10**5, int)), lambda: jnp.split(X, jnp.zeros(10**5, int)),
    lambda: lax.cond("a" * 10**5, lambda: 1, lambda: 2), lambda: X_.reshape(np.ones(999)),
    lambda: jax.jit(lambda x: x, donate_argnums=tuple(range(10**5)))(X), lambda: X_[:, "a" * 10**5],
    lambda: lax.scan(lambda c, x: (c, x), 0, [*range(10**5)]), lambda: jax.make_mesh(X_, ("a",)),
    lambda: jnp.load("a" * 10**5),
], ids=range(16))
def test_large_values_are_not_written_out(call):
    with pytest.raises((TypeError, ValueError, OSError)) as caught:
        call()
    assert len("\n".join([str(caught.value), *caught.value.__notes__])) < 1500


def test_many_axes_and_arrays_as_flags():
    with pytest.raises(TypeError, match="Arrays have at most 1000 axes, got 30002 sizes"):
        jnp.expand_dims(X, tuple(range(30000)))
    with pytest.raises(TypeError, match="linspace: endpoint must be True or False, got Array"):
        jnp.linspace(0, 1, 3, endpoint=X_[0])


def test_many_parts_may_be_given_as_arrays():
    assert len(lax.split(jnp.arange(300), np.full(100, 3))) == 100
    assert len(jnp.split(jnp.arange(300), np.arange(1, 300))) == 300


# -- which leaf, and which argument, it is ---------------------------------------------------------


OTHER = {**TREE, "layer_7": {"b": X, "w": jnp.ones((3, 4))}}


@pytest.mark.parametrize(("call", "leaf"), [
    (lambda: jax.jvp(lambda p: p, (TREE,), (OTHER,)), "tangents[0]['layer_7']['w']"),
    (lambda: jax.vjp(lambda p: p, TREE)[1](OTHER), "cotangent['layer_7']['w']"),
    (lambda: jax.linearize(lambda p: p, TREE)[1](OTHER), "arguments[0]['layer_7']['w']"),
    (lambda: jax.tree.map(lambda a, b: a + b, TREE, OTHER), "tree['layer_7']['w']"),
    (lambda: jax.tree.map(lambda a: a @ jnp.ones(3), OTHER), "tree['layer_7']['w']"),
    (lambda: jax.device_put({"a": X, "b": [X[0]]}, jax.NamedSharding(
        jax.make_mesh((1,), ("d",)), jax.P(None, "d"))), "x['b'][0]"),
    (lambda: jax.jit(lambda x: jax.device_put(x, jax.NamedSharding(
        jax.make_mesh((1,), ("d",)), jax.P(None, "d"))))({"a": X, "b": [X[0]]}), "x['b'][0]"),
    (lambda: lax.with_sharding_constraint({"a": X, "b": [X[0]]}, jax.NamedSharding(jax.make_mesh(
        (1,), ("d",), (jax.sharding.AxisType.Auto,)), jax.P(None, "d"))), "x['b'][0]"),
    (lambda: jax.reshard({"a": X, "b": [X[0]]}, jax.NamedSharding(
        jax.make_mesh((1,), ("d",)), jax.P(None, "d"))), "xs['b'][0]"),
])
def test_which_leaf_of_a_tree_it_is_of_is_noted_once(call, leaf):
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert [n for n in caught.value.__notes__ if n.startswith("The leaf")] == [
        f"The leaf is {leaf}."]


def _refused(x):
    raise TypeError("refused")


@pytest.mark.parametrize(("call", "notes"), [
    (lambda: lax.stop_gradient({"a": X, "b": "s"}), []),
    (lambda: jax.device_put({"a": X, "b": ["s"]}), []),
    (lambda: jax.tree.map(_refused, 1), []),
    (lambda: jax.tree.map(lambda t: jax.tree.map(_refused, t), [{}, {"q": 1}],
                          is_leaf=lambda t: isinstance(t, dict)), ["The leaf is tree[1]."]),
    (lambda: jax.tree.map(_refused, [(), {1: None, 2: {"q": 1}}]),
     ["The leaf is tree[1][2]['q']."]),
    (lambda: jax.tree.map(lambda x: 0, {"a": 1}, is_leaf=_refused), []),
])
def test_no_leaf_is_told_but_of_the_users_tree_map_and_where_no_path_is_told(call, notes):
    with pytest.raises(TypeError) as caught:
        call()
    assert [n for n in caught.value.__notes__ if n.startswith("The leaf")] == notes


def test_an_error_of_many_leaves_flattens_no_tree_again():
    asked = []
    with pytest.raises(TypeError):
        jax.tree.map(_refused, [1] * 5, is_leaf=asked.append)
    assert len(asked) == 6


def test_names_of_files_are_shortened_once_and_not_in_errors_of_the_user():
    long = "a" * 10**4
    for call, name in ((lambda: jnp.load(long), f"{'a' * 48}...{'a' * 49}"),
                       (lambda: os.stat(long), long)):
        with pytest.raises(OSError, match="too long") as caught:
            jax.jit(lambda: jax.jit(call)())()  # noqa: B023  called here
        assert caught.value.filename == name


def test_of_several_trees_it_is_said_which_one_differs():
    for i in range(2):
        trees = [{"a": 1}, {"a": 1}]
        trees[i] = {"b": 1}
        with pytest.raises(ValueError, match=rf"The full tree is rest\[{i}\]\."):
            jax.tree.map(max, {"a": 1}, *trees)


def _taken(x, y=1.0, *further):
    return x


@pytest.mark.parametrize(("lowered", "called", "told"), [
    (((X, 1.0), {}), ((X,), {}), "argument y is missing"),
    (((X,), {"y": 1.0}), ((X,), {"z": 1.0}),
     "argument y is missing; argument z is new"),
    (((X, 1.0, 2.0), {}), ((X, 1.0, 2.0, 3.0), {}), "argument further[1] is new"),
    ((({"a": X}, 1.0), {}), (({"b": X}, 1.0), {}), "x was a <class 'dict'> with keys ('a',) and is "
     "now a <class 'dict'> with keys ('b',), so the pytree node metadata does not match"),
    (((X, 1.0), {}), ((X,), {"y": 1.0}),
     "what was given by position is now given by name, or the other way round"),
    ((({"a": X, "b": X}, 1.0), {}), (({"a": X}, 1.0), {}),
     "x was a <class 'dict'> with 2 children and is now a <class 'dict'> with 1 child, so the "
     "numbers of children do not match, with the symmetric difference of key sets: {'b'}"),
    (((TREE,), {}), (({**TREE, "layer_7": X},), {}),
     "x['layer_7'] was a <class 'dict'> and is now a pytree leaf, so their Python types differ"),
    ((([X] * 5,), {}), (([[X]] * 5,), {}), "differ, and 2 differences more"),
])
def test_what_was_compiled_for_other_arguments_names_those(lowered, called, told):
    compiled = jax.jit(_taken).lower(*lowered[0], **lowered[1]).compile()
    with pytest.raises(TypeError, match="Function compiled with input pytree does") as caught:
        compiled(*called[0], **called[1])
    assert f"{told}. Give it" in str(caught.value)
    assert f"with. _taken at {__file__}:" in str(caught.value)


def test_symbolic_sizes_are_told_without_classes_of_the_library():
    (n,) = jax.export.symbolic_shape("n")
    for f, told in ((lambda x: range(x.shape[0]), "a symbolic size cannot be interpreted as an"),
                    (lambda x: "a" * x.shape[0], "multiply sequence by a symbolic size. It is"),
                    (lambda x: [1][x.shape[0]], "slices, not a symbolic size. It is known when"),
                    (lambda x: np.sqrt(x.shape[0]), "sqrt method. It is known when .* jnp.sqrt")):
        with pytest.raises(TypeError, match=told):
            jax.export.export(jax.jit(f))(jax.ShapeDtypeStruct((n,), "float32"))
    m, n = jax.export.symbolic_shape("m, n")
    both, rows = "n is x.shape[0], and m is x.shape[1].", "m is x.shape[1]."
    for sized, whose in ((lambda x, y: range(x.shape[0]), both),
                         (lambda x, y: [1][y["a"].shape[1] // 2],
                          "m is y['a'].shape[0], and n is y['a'].shape[1]."),
                         (lambda x, y: np.sqrt(x.shape[0]), both),
                         (lambda x, y: (lambda k: range(k))(x.shape[1]), rows)):
        told = "do, and lax.fori_loop(0, n, ...)." + f" Here {whose}" * bool(whose)
        with pytest.raises(TypeError, match=f"{re.escape(told)}(\n|$)"):
            jax.export.export(jax.jit(sized))(*[
                jax.ShapeDtypeStruct((n, m), "float32"),
                {"a": jax.ShapeDtypeStruct((m, n), "float32")}])
    for other in (lambda x: x.shape[0](), lambda x: max("a", x.shape[0]),
                  lambda x: "a" + x.shape[0], lambda x: Path(x.shape[0])):
        with pytest.raises(TypeError) as caught:
            jax.export.export(jax.jit(other))(jax.ShapeDtypeStruct((n,), "float32"))
        assert "known when the program runs" not in str(caught.value)


def test_axes_of_outputs_are_told_without_classes_of_the_library():
    with pytest.raises(ValueError, match=r"has a value of type\n    <class 'jax.Array'>"):
        jax.vmap(lambda x: x, out_axes=(0, 1))(X)
