"""Shardings over the empty mesh, as types have where none is set, leave values where they are."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.sharding import NamedSharding
from pyjx.sharding import PartitionSpec as P


def of_type(x):
    return jax.typeof(x).sharding


ONES = np.ones(3, np.float32)
USES = {
    "zeros": lambda x: 1 + jnp.zeros(3, out_sharding=of_type(x)),
    "device": lambda x: jnp.ones(3, device=of_type(x)),
    "full": lambda x: jax.lax.full((3,), 1.0, sharding=of_type(x)),
    "full_like": lambda x: jax.lax.full_like(x, 1.0, sharding=of_type(x)),
    "arange": lambda x: 1 + 0.0 * jnp.arange(3, out_sharding=of_type(x)),
    "device_put": lambda x: jax.device_put(x, of_type(x)),
    "random": lambda x: 1 + 0 * jax.random.normal(jax.random.key(0), (3,),
                                                  out_sharding=of_type(x)),
    "einsum": lambda x: jnp.einsum("i,j->i", x, x, out_sharding=of_type(x)) / 3,
    "dot": lambda x: jnp.dot(x, jnp.eye(3), out_sharding=of_type(x)),
    "reshape": lambda x: jnp.reshape(x[None], 3, out_sharding=of_type(x)),
    "at": lambda x: x.at[jnp.arange(3)].get(out_sharding=of_type(x)),
}


@pytest.mark.parametrize("name", USES)
def test_values_stay(name):
    for call in (USES[name], jax.jit(USES[name])):
        out = call(jnp.asarray(ONES))
        np.testing.assert_allclose(out, ONES, rtol=1e-6)
        assert out.sharding == jnp.asarray(ONES).sharding


def test_described_arguments():
    x = jnp.asarray(ONES)
    struct = jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=of_type(x))
    assert jax.jit(lambda x: x * 2).lower(struct).compile()(x).tolist() == [2, 2, 2]


def test_constraints_want_a_mesh():
    x = jnp.asarray(ONES)
    empty = NamedSharding(of_type(x).mesh, P(None))
    for call in (lambda: jax.lax.with_sharding_constraint(x, empty),
                 lambda: jax.jit(lambda x: x, in_shardings=empty)(x),
                 lambda: jax.jit(lambda x: x, out_shardings=empty)(x)):
        with pytest.raises(ValueError, match="got an empty NamedSharding"):
            call()
    with pytest.raises(ValueError, match="have a non-empty mesh"):
        jax.sharding.reshard(x, empty)
