"""Guards against transfers: those that the user asks for pass, and others do not."""

import numpy as np
import pytest

import pyjx as jax
from pyjx import numpy as jnp
from pyjx.sharding import NamedSharding, SingleDeviceSharding
from pyjx.sharding import PartitionSpec as P

PUT = {
    "host to device": lambda mesh: jax.device_put(np.ones(8)),
    "host to mesh": lambda mesh: jax.device_put(np.ones(8), NamedSharding(mesh, P("x"))),
    "a tree": lambda mesh: jax.device_put({"a": np.ones(8), "b": 1.0}, jax.devices()[1]),
}


@pytest.mark.parametrize("what", PUT)
def test_what_is_asked_for_passes(mesh, what):
    with jax.transfer_guard("disallow"):
        out = jax.tree.leaves(PUT[what](mesh))[0]
    np.testing.assert_array_equal(out, np.ones(8))
    with jax.transfer_guard("disallow_explicit"), \
            pytest.raises(jax.errors.JaxRuntimeError, match="Disallowed host-to-device transfer"):
        PUT[what](mesh)


def test_from_device_to_device(mesh):
    x, other = jnp.ones(3), SingleDeviceSharding(jax.devices()[2])
    with jax.transfer_guard("disallow"):
        assert jax.device_put(x, other).sharding == other
    with jax.transfer_guard("disallow_explicit"), \
            pytest.raises(jax.errors.JaxRuntimeError, match="Disallowed device-to-device"):
        jax.device_put(x, other)


def test_others_do_not_pass(mesh):
    cut = jax.jit(lambda x: x + 1, in_shardings=NamedSharding(mesh, P("x")))
    with jax.transfer_guard("disallow"):
        jax.device_put(np.ones(8))  # and then nothing is asked for any more
        for f in (jnp.sin, cut):
            with pytest.raises(jax.errors.JaxRuntimeError, match="Disallowed host-to-device"):
                f(np.ones(8))
