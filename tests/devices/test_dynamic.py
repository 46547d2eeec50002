"""Functions of many sizes over eight devices: padded dimensions are cut over a mesh."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.sharding import AxisType, NamedSharding
from pyjx.sharding import PartitionSpec as P

X = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
W = np.eye(4, dtype=np.float32) * 2


@pytest.mark.parametrize("n", [3, 16, 30])
def test_padded_dimensions_are_cut_over_a_mesh(n):
    mesh = jax.make_mesh((8,), ("b",))
    rows, copies = NamedSharding(mesh, P("b")), NamedSharding(mesh, P())
    fun = jax.jit(lambda x, w: (jnp.tanh(x @ w), x.mean(0)), dynamic={"x": ("n", None)},
                  in_shardings=(rows, copies), out_shardings=(rows, copies))
    out, mean = fun(X[:n], W)
    np.testing.assert_allclose(out, np.tanh(X[:n] @ W), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(mean, X[:n].mean(0), rtol=1e-4, atol=1e-6)
    assert out.sharding.spec == (P("b") if n == 16 else P()) and mean.sharding.mesh == mesh


@pytest.mark.parametrize("n", [16, 24])
def test_arguments_that_are_cut_over_a_mesh(n):
    rows = NamedSharding(jax.make_mesh((8,), ("b",)), P("b"))
    fun = jax.jit(lambda x: jnp.tanh(x).sum(0), dynamic={"x": ("n", None)})
    np.testing.assert_allclose(fun(jax.device_put(X[:n], rows)),
                               np.tanh(X[:n]).sum(0), rtol=1e-4, atol=1e-5)


def test_arguments_say_where_a_function_runs():
    fun = jax.jit(lambda x: x * 2, dynamic={"x": ("n", None)})
    device = jax.devices()[3]
    out = fun(jax.device_put(X[:5], device))
    assert out.devices() == {device} and out.shape == (5, 4)


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
def test_buckets_are_such_that_meshes_divide_them(kind):
    rows = NamedSharding(jax.make_mesh((8,), ("b",), axis_types=(kind,)), P("b"))
    options = {"dynamic": {"x": ("n", None)}, "dynamic_policy": [6, 20]}
    fun = jax.jit(lambda x: x * 2, in_shardings=rows, **options)
    for n in (3, 17):
        np.testing.assert_array_equal(fun(X[:n]), 2 * X[:n])
    assert [b.bounds for b in fun.explain().buckets] == [{"n": 8}, {"n": 24}]
    fun = jax.jit(lambda x: x * 2, **options)
    np.testing.assert_array_equal(fun(jax.device_put(X[:16], rows)), 2 * X[:16])


@pytest.mark.parametrize(("fun", "bounds"), [
    (lambda x: x[1:], {"n": 9}), (lambda x: jnp.concatenate([x, x, x]), {"n": 8}),
    (lambda x: x[:x.shape[0] // 2], {"n": 16}), (lambda x: (x, x[1:]), None),
])
def test_buckets_are_such_that_meshes_divide_what_is_computed_of_them(fun, bounds):
    mesh = jax.make_mesh((8,), ("b",))
    rows, copies = NamedSharding(mesh, P("b")), NamedSharding(mesh, P())
    dynamic = jax.jit(fun, in_shardings=copies, out_shardings=rows, dynamic={"x": ("n",)})
    sizes = (8, 5) if bounds else ()
    for n in sizes:
        for x, y in zip(jax.tree.leaves(dynamic(X[:n, 0])), jax.tree.leaves(fun(X[:n, 0])),
                        strict=True):
            np.testing.assert_array_equal(x, y)
    assert [b.bounds for b in dynamic.explain().buckets] == [bounds] * bool(bounds)
    if not bounds:  # no size is such
        with pytest.raises(ValueError, match="divi"):
            dynamic(X[:8, 0])
