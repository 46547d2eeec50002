"""Functions that say themselves how they are cut."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.experimental.custom_partitioning import (
    BATCHING,
    ArrayMapping,
    CompoundFactor,
    SdyShardingRule,
    custom_partitioning,
)
from pyjx.sharding import NamedSharding
from pyjx.sharding import PartitionSpec as P


def test_each_device_runs_what_the_partition_says(mesh):
    asked = []

    @custom_partitioning
    def f(x):
        return jnp.sin(x)

    def partition(mesh, arg_shapes, result_shape):
        asked.append((arg_shapes[0].sharding.spec, result_shape.sharding.spec, result_shape.shape))
        return (mesh, lambda x: jnp.sin(x) + 100 * jax.lax.axis_index("x"),
                result_shape.sharding, (arg_shapes[0].sharding,))

    f.def_partition(partition, sharding_rule="... i -> ... i")
    x = jax.device_put(np.arange(8, dtype="f4"), NamedSharding(mesh, P("x")))
    for _ in range(2):
        out = jax.jit(f)(x)
        assert out.sharding == x.sharding
        np.testing.assert_allclose(out, np.sin(np.arange(8)) + 100 * (np.arange(8) // 2), rtol=1e-6)
    assert asked[0] == (P("x"), P("x"), (8,))
    np.testing.assert_allclose(f(jnp.arange(8.)), np.sin(np.arange(8)), rtol=1e-6)  # one device


def test_matrix_products_with_a_sum_over_devices(mesh):
    @custom_partitioning
    def product(a, b):
        return a @ b

    def partition(mesh, arg_shapes, result_shape):
        rows, columns = NamedSharding(mesh, P(None, "x")), NamedSharding(mesh, P("x", None))
        return (mesh, lambda a, b: jax.lax.psum(a @ b, "x"), NamedSharding(mesh, P()),
                (rows, columns))

    product.def_partition(partition, sharding_rule="i k, k j -> i j", reduction_factors=("k",))
    a, b = (np.random.RandomState(i).randn(8, 8).astype("f4") for i in range(2))
    given = [jax.device_put(m, NamedSharding(mesh, P("x"))) for m in (a, b)]
    text = jax.jit(product).lower(*given).as_text()
    assert ("#sdy.op_sharding_rule<([i, j], [j, k])->([i, k]) {i=8, j=8, k=8} reduction={j}, "
            in text)
    np.testing.assert_allclose(jax.jit(product)(*given), a @ b, rtol=1e-5, atol=1e-6)


def test_trees_static_arguments_and_constants(mesh):
    offset = np.arange(64, dtype="f4")

    def partition(n, mesh, arg_shapes, result_shape):
        (given,) = arg_shapes
        cut = jax.tree.map(lambda s: NamedSharding(mesh, P("y")), given)
        return (mesh, lambda t: (t["a"] * n, t["b"] + offset[0]),
                (NamedSharding(mesh, P("y")),) * 2, (cut,))

    f = custom_partitioning(lambda n, t: (t["a"] * n, t["b"] + offset[0]), static_argnums=(0,))
    f.def_partition(partition, sharding_rule="i, j -> i, j")
    tree = {"a": jax.device_put(np.ones(8, "f4"), NamedSharding(mesh, P("x"))), "b": jnp.ones(4)}
    a, b = jax.jit(lambda t: f(3, t))(tree)
    assert a.tolist() == [3] * 8 and b.tolist() == [1] * 4


def test_rules():
    rule = SdyShardingRule((ArrayMapping(BATCHING, CompoundFactor("i", "j")),),
                           (ArrayMapping(BATCHING, "i", "j"),))
    assert rule.text([(2, 3, 8)], [(2, 3, 4, 2)]) == (
        "#sdy.op_sharding_rule<([i, j, kl])->([i, j, k, l]) {i=2, j=3, k=4, l=2}, custom>")
    with pytest.raises(ValueError, match="must specify its size"):
        SdyShardingRule((ArrayMapping(CompoundFactor("i", "j")),), ())
    with pytest.raises(ValueError, match="at least two factors"):
        CompoundFactor("i")
    with pytest.raises(ValueError, match="There is no -> in rule"):
        custom_partitioning(lambda x: x).def_partition(lambda *a: None, sharding_rule="i j")
    with pytest.raises(AttributeError, match="No definition for partition"):
        custom_partitioning(lambda x: x)(1.)


@pytest.mark.parametrize(("rule", "text", "fun"), [
    ("i ->", "([i])->([])", lambda x: x.sum()),
    ("i -> ,", "([i])->([], [])", lambda x: (x.sum(), x.min())),
    (" -> i", "([])->([i])", lambda x: x + jnp.arange(8))])
def test_rules_of_scalars(mesh, rule, text, fun):
    x = np.float32(1) if rule[0] == " " else np.ones(8, "f4")
    args = [jax.device_put(x, NamedSharding(mesh, P()))]
    f = custom_partitioning(fun)
    f.def_partition(lambda mesh, args, results: (
        mesh, fun, jax.tree.map(lambda r: r.sharding, results), tuple(a.sharding for a in args)),
        sharding_rule=rule)
    assert f"#sdy.op_sharding_rule<{text} " in jax.jit(f).lower(*args).as_text()
    np.testing.assert_array_equal(jax.jit(f)(*args), fun(*args))


def test_rules_of_other_numbers_of_values(mesh):
    f = custom_partitioning(lambda x: x)
    f.def_partition(lambda *args: None, sharding_rule="i -> i, i")
    with pytest.raises(ValueError, match="Sharding rule has 2 results, but the operation has 1 re"):
        jax.jit(f).lower(jax.device_put(np.ones(8, "f4"), NamedSharding(mesh, P("x"))))


def test_it_has_no_derivative(mesh):
    f = custom_partitioning(lambda x: x * 2)
    f.def_partition(lambda mesh, a, r: (mesh, lambda x: x * 2, r.sharding, (a[0].sharding,)),
                    sharding_rule="i -> i")
    with pytest.raises(NotImplementedError, match="custom_partitioning"):
        jax.grad(lambda x: f(x).sum())(jnp.ones(3))


@pytest.mark.parametrize("rule", [None, "i -> i"])
def test_parts_make_the_whole_result(mesh, rule):
    x = jax.device_put(np.ones(8, "f4"), NamedSharding(mesh, P("x")))
    f = custom_partitioning(lambda x: x * 2)
    f.def_partition(lambda mesh, args, result: (
        mesh, (lambda x: x * 2) if rule is None else lambda x: x[:0],
        result.sharding, (args[0].sharding,)), sharding_rule=rule)
    with pytest.raises(Exception, match=r"Mismatch in result shapes. \['float32\[\d\]'\] vs "
                                        r"\['float32\[8\]'\]: .*'i -> i', says which"):
        jax.jit(f)(x)
    g = custom_partitioning(lambda x: x * 2)
    g.def_partition(lambda mesh, args, result: (
        mesh, lambda x: x * 2, result.sharding, (args[0].sharding,)), sharding_rule="i -> i")
    np.testing.assert_array_equal(jax.jit(g)(x), 2 * np.ones(8))
