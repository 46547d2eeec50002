"""Compiled programs over meshes as bytes."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.experimental.serialize_executable import deserialize_and_load, serialize
from pyjx.sharding import Mesh, NamedSharding
from pyjx.sharding import PartitionSpec as P

X = np.random.default_rng(0).normal(size=(8, 4)).astype("f4")


@pytest.fixture
def compiled(mesh):
    f = jax.jit(lambda x, unused: jnp.sin(x).sum(0), in_shardings=NamedSharding(mesh, P("x", "y")),
                out_shardings=NamedSharding(mesh, P("y")))
    return f.lower(X, X).compile()


def test_shardings_come_along(compiled, mesh):
    for _ in range(2):  # one that was read is written again
        compiled = deserialize_and_load(*serialize(compiled))
    x = jax.device_put(X, NamedSharding(mesh, P("x", "y")))
    out = compiled(x, x)
    np.testing.assert_allclose(out, np.sin(X).sum(0), rtol=2e-5, atol=2e-6)
    assert out.sharding == compiled.output_shardings == NamedSharding(mesh, P("y"))


def test_one_that_the_disk_had(compiled, mesh):
    jax.clear_caches()
    f = jax.jit(lambda x: jnp.sin(x).sum(1))
    x = jax.device_put(X, NamedSharding(mesh, P("x")))
    for _ in range(2):
        loaded = deserialize_and_load(*serialize(f.lower(x).compile()))
        np.testing.assert_allclose(loaded(x), np.sin(X).sum(1), rtol=2e-5, atol=2e-6)
        jax.clear_caches()


def test_on_other_devices(compiled):
    devices = jax.devices()[::-1]
    there = NamedSharding(Mesh(np.array(devices).reshape(4, 2), ("x", "y")), P("x", "y"))
    x = jax.device_put(X, there)
    loaded = deserialize_and_load(*serialize(compiled), execution_devices=devices)
    np.testing.assert_allclose(loaded(x, x), np.sin(X).sum(0), rtol=2e-5, atol=2e-6)


def test_another_number_of_devices_is_refused(compiled):
    with pytest.raises(ValueError, match="compiled for 8 devices, here are 4"):
        deserialize_and_load(*serialize(compiled), execution_devices=jax.devices()[:4])
