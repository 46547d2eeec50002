"""Types whose values say themselves how `vmap` maps them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.interpreters import batching

vmap_module: Any = sys.modules["pyjx.transforms.vmap"]


class Along:
    def __init__(self, axis: int) -> None:
        self.axis = axis

    def __repr__(self) -> str:
        return f"Along({self.axis})"


class Table:
    """Values with a scale, which is the same for all examples."""

    def __init__(self, values: Any, scale: Any) -> None:
        self.values, self.scale = values, scale

    def total(self) -> Any:
        return self.values.sum() * self.scale


class Shaped(Table):
    """One that says its shape."""

    @property
    def shape(self) -> Any:
        return self.values.shape


class Pair:
    """Of a table and of an array."""

    def __init__(self, table: Any, array: Any) -> None:
        self.table, self.array = table, array


X = np.arange(6.0, dtype="float32").reshape(2, 3)
ROW, COLUMN = jnp.ones(3), jnp.arange(2.0)


@pytest.fixture(params=[True, False], ids=["pytrees", "leaves"])
def registered(request: Any) -> Iterator[tuple[Any, Any]]:
    """Types that are mapped by `Along` and by ints."""
    class Tree(Table):
        pass

    class ShapedTree(Shaped):
        pass

    if request.param:
        for kind in (Tree, ShapedTree):
            jax.tree_util.register_pytree_node(
                kind, lambda t: ((t.values,), t.scale), lambda scale, leaves, k=kind: k(
                    *leaves, scale))
    batching.register_vmappable(
        Tree, Along, int,
        lambda cont, get_idx, t, along: Tree(cont(t.values, along.axis), t.scale),
        lambda cont, size, t, along: Tree(cont(size, t.values, along.axis), t.scale), None)
    batching.register_vmappable(
        ShapedTree, int, int,
        lambda cont, get_idx, t, axis: ShapedTree(cont(t.values, axis), t.scale),
        lambda cont, size, t, axis: ShapedTree(cont(size, t.values, axis), t.scale), None)
    yield Tree, ShapedTree
    batching.unregister_vmappable(Tree)
    batching.unregister_vmappable(ShapedTree)


def test_arguments_and_results(registered: Any) -> None:
    tree, _ = registered
    f = jax.vmap(lambda t, x: (tree(t.values * x, t.scale), t.total()), (Along(1), 0),
                 (Along(0), 0))
    table, totals = f(tree(X, 2.0), jnp.arange(3.0))
    assert type(table) is tree and table.scale == 2.0
    np.testing.assert_array_equal(table.values, (X * np.arange(3)).T)
    np.testing.assert_array_equal(totals, 2 * X.sum(0))
    back = jax.vmap(lambda x: tree(x, 5), out_axes=Along(-1))(X)
    assert back.scale == 5 and back.values.tolist() == X.T.tolist()
    inside = jax.vmap(lambda d: {"b": d["a"]}, ({"a": Along(0)},), {"b": Along(1)}, axis_size=2)(
        {"a": tree(X, 1)})
    np.testing.assert_array_equal(inside["b"].values, X.T)
    same = jax.vmap(lambda x: tree(ROW, 1), out_axes=Along(1))(X)
    np.testing.assert_array_equal(same.values, np.ones((3, 2)))


def test_ints(registered: Any) -> None:
    _, tree = registered
    for axes in ((0, 0), (1, 1), (-1, -1), ((1,), 1)):
        out = jax.vmap(lambda t: tree(t.values * 2, t.scale), *axes)(tree(X, 1))
        np.testing.assert_array_equal(out.values, 2 * X)
    shared = jax.vmap(lambda t, x: (t, t.total() * x), (None, 0), (None, 0))(tree(X, 1), ROW)
    np.testing.assert_array_equal(shared[0].values, X)
    np.testing.assert_array_equal(shared[1], np.full(3, X.sum()))
    np.testing.assert_array_equal(jax.vmap(lambda x, t: t.total() + x)(COLUMN, t=tree(X, 1)),
                                  X.sum(1) + COLUMN)
    summed = jax.vmap(lambda t: t, out_axes=None, sum_match=True)(tree(X, 1))
    np.testing.assert_array_equal(summed.values, X.sum(0))


def test_nested_and_in_other_transformations(registered: Any) -> None:
    tree, shaped = registered

    def double(t: Any) -> Any:
        return shaped(t.values * 2, t.scale)

    np.testing.assert_array_equal(
        jax.vmap(jax.vmap(double, 0, 0), 1, 1)(shaped(X, 1)).values, 2 * X)
    np.testing.assert_array_equal(
        jax.vmap(jax.vmap(double), 1)(shaped(X, 1)).values, 2 * X.T)
    f = jax.vmap(lambda t, x: tree(jnp.sin(t.values) * x, 1), (Along(1), 0), Along(0))
    want = f(tree(X, 1), ROW).values
    np.testing.assert_allclose(jax.jit(lambda x: f(tree(x, 1), ROW).values)(X), want)
    g = jax.grad(lambda x: (jax.vmap(Table.total, Along(1), axis_size=3)(tree(x, 1)) ** 2).sum())
    np.testing.assert_allclose(g(X), np.broadcast_to(2 * X.sum(0), X.shape))


def test_compiled_functions_of_them(registered: Any) -> None:
    tree, _ = registered
    if jax.tree.leaves(tree(1, 1)) != [1]:
        pytest.skip("arguments of compiled functions are pytrees")
    f = jax.vmap(jax.jit(lambda t: tree(t.values + 1, t.scale)), Along(1), Along(0), axis_size=3)
    for call in (f, jax.jit(f)):
        np.testing.assert_array_equal(call(tree(X, 3)).values, X.T + 1)


def test_parts_that_are_mappable_and_numbers_of_examples(registered: Any) -> None:
    tree, _ = registered
    batching.register_vmappable(
        Pair, Along, int,
        lambda cont, get_idx, p, along: Pair(cont(p.table, along), get_idx()),
        lambda cont, size, p, along: Pair(cont(size, p.table, along), cont(size, p.array, 0)), None)
    try:
        out = jax.vmap(lambda p, x: Pair(p.table, p.array * 10 + x), (Along(1), 0), Along(0))(
            Pair(tree(X, 1), None), jnp.arange(3))
    finally:
        batching.unregister_vmappable(Pair)
    assert out.array.tolist() == [0, 11, 22]
    np.testing.assert_array_equal(out.table.values, X.T)


def test_types_with_elements_of_another_type() -> None:
    batching.register_vmappable(
        Table, Along, int, lambda cont, get_idx, t, along: cont(t.values, along.axis),
        lambda cont, size, x, along: x, None)
    try:
        out = jax.vmap(lambda x, y: x.sum() + y, (Along(1), 0))(Table(X, 1), ROW)
    finally:
        batching.unregister_vmappable(Table)
    np.testing.assert_array_equal(out, X.sum(0) + 1)


def test_types_that_are_registered_while_the_function_runs(monkeypatch: Any) -> None:
    monkeypatch.setattr(vmap_module, "mappables", {})

    def f(x: Any) -> Any:
        batching.register_vmappable(
            Table, int, int, lambda cont, get_idx, t, axis: t,
            lambda cont, size, t, axis: Table(cont(size, t.values, axis), size), None)
        return Table(x, None)

    out = jax.vmap(f, out_axes=1)(X)
    assert out.scale == 2 and out.values.tolist() == X.T.tolist()


def test_errors(registered: Any) -> None:
    tree, shaped = registered
    with pytest.raises(ValueError, match=r"inconsistent sizes .* axis 1 of a part of an argument, "
                                         r"an array of shape \(2, 3\), has size 3.* say 7"):
        jax.vmap(lambda t, x: x, (Along(1), 0))(tree(X, 1), jnp.zeros(7))
    with pytest.raises(ValueError, match=r"an array of shape \(2, 3\), which cannot be .* axis 5"):
        jax.vmap(lambda t, x: x, (Along(5), 0))(tree(X, 1), COLUMN)
    with pytest.raises(TypeError, match=r"in_axes: Along\(0\) is no axis of an array, which "
                                        r"argument t\['a'\] is"):
        jax.vmap(lambda t: t, ({"a": Along(0)},))({"a": X})
    with pytest.raises(ValueError, match=r"out_axes: Along\(0\) is no axis of an array"):
        jax.vmap(lambda x: x, out_axes=Along(0))(X)
    with pytest.raises(ValueError, match=r"inconsistent sizes(.|\n)*size 2: axis 0 of argument t"):
        jax.vmap(lambda t, x: x)(shaped(X, 1), ROW)
    with pytest.raises(ValueError, match=r"out_axes.*axis spec None but output was batched on"):
        jax.vmap(lambda t: t, out_axes=None)(shaped(X, 1))
    with pytest.raises(TypeError, match="vmap in_axes must be an int, None, or "):
        jax.vmap(lambda t: t, in_axes=("first",))


def test_a_type_that_is_registered_no_more() -> None:
    batching.register_vmappable(Table, Along, int, lambda *_: None, lambda *_: None, None)
    assert batching.is_vmappable(Table(X, 1))
    batching.unregister_vmappable(Table)
    assert not batching.is_vmappable(Table(X, 1))
    with pytest.raises(TypeError, match="vmap in_axes must be an int, None, or "):
        jax.vmap(lambda t: t, in_axes=(Along(0),))
    with pytest.raises(TypeError, match="is not a valid JAX type"):
        jax.vmap(lambda t: t)(Table(X, 1))
    with pytest.raises(KeyError):
        batching.unregister_vmappable(Table)
