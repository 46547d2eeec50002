"""Devices that are described, and compiling for them."""

import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.experimental import topologies
from pyjx.runtime import backends


def test_attached_devices():
    topology = topologies.get_attached_topology()
    assert topology.devices == jax.devices()
    assert isinstance(topology.devices[0], topologies.Device)
    with pytest.raises(RuntimeError, match="nowhere"):
        topologies.get_attached_topology("nowhere")


def test_platforms_without_topologies():
    with pytest.raises(NotImplementedError, match="topology not implemented for cpu"):
        topologies.get_topology_desc("x", platform="cpu")
    if backends.plugin_library("tpu") is None:
        with pytest.raises(RuntimeError, match="plugin of tpu is not installed"):
            topologies.get_topology_desc("v5e:2x2")


def test_meshes():
    topology = topologies.TopologyDescription(jax.devices()[:1])
    mesh = topologies.make_mesh(topology, (1, 1), ("x", "y"))
    assert mesh.axis_names == ("x", "y") and mesh.devices.shape == (1, 1)
    with pytest.raises(ValueError, match="Number of devices 1 must equal"):
        topologies.make_mesh(topology, (2,), ("x",))


def test_bytes_of_topologies():
    try:
        data = topologies.TopologyDescription(jax.devices()).serialize()
    except NotImplementedError:
        data = b""
    assert isinstance(data, bytes)
    with pytest.raises((NotImplementedError, ValueError)):
        topologies.TopologyDescription.deserialize(b"none")


@pytest.mark.aot
def test_compiling_for_a_described_device():
    if backends.plugin_library("tpu") is None:
        pytest.skip("libtpu is not installed")
    topology = topologies.get_topology_desc("v5e:2x2", "tpu")
    assert len(topology.devices) == 4
    program = jax.jit(lambda x: jnp.sin(x) @ x).trace(jax.ShapeDtypeStruct((8, 8), "float32")
                                                       ).lower(lowering_platforms=("tpu",))
    compiled = program.compile(device_assignment=topology.devices[:1])
    assert compiled.as_text().startswith("HloModule")
    assert compiled.cost_analysis()["flops"] > 0 and compiled.memory_analysis() is not None
    with pytest.raises(RuntimeError, match="which is not attached"):
        compiled(jnp.ones((8, 8)))
