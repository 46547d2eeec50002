"""`debug.inspect_array_sharding` inside programs over meshes."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.sharding import NamedSharding
from pyjx.sharding import PartitionSpec as P

X = np.ones((8, 4), np.float32)


@pytest.fixture
def seen():
    return []


@pytest.fixture
def look(seen):
    return lambda x: jax.debug.inspect_array_sharding(x, callback=seen.append)


def test_what_the_partitioner_chose_is_told(mesh, seen, look):
    @jax.jit
    def f(x):
        look(jnp.sin(x))
        look(x.T)
        look(x.sum())
        look(lax.with_sharding_constraint(x, NamedSharding(mesh, P("y", "x"))))
        return x

    x = jax.device_put(X, NamedSharding(mesh, P("x", "y")))
    for _ in range(2):  # once, when it is compiled
        f(x)
    assert [s.spec for s in seen] == [P("x", "y"), P("y", "x"), P(), P("y", "x")]
    assert all(s.mesh is mesh for s in seen)


def test_it_is_told_in_a_loop_and_in_a_derivative(mesh, seen, look):
    def f(x):
        def body(c, _):
            look(c)
            return c * 2, None
        return lax.scan(body, x, None, length=3)[0].sum()

    jax.jit(jax.grad(f))(jax.device_put(X, NamedSharding(mesh, P("x"))))
    assert [s.spec for s in seen] == [P("x")]


def test_it_is_told_again_where_the_disk_has_the_program(mesh, seen, look):
    x = jax.device_put(X, NamedSharding(mesh, P("x")))
    for _ in range(2):
        jax.clear_caches()
        jax.jit(lambda x: look(x) or x * 3)(x)
    assert [s.spec for s in seen] == [P("x")] * 2


def test_an_array_is_told_at_once(mesh, seen, look):
    x = jax.device_put(X, NamedSharding(mesh, P("y")))
    look(x)
    assert seen == [x.sharding]
