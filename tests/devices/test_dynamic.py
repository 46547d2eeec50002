"""Functions of many sizes over eight devices: padded dimensions are cut over a mesh."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.sharding import NamedSharding
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
