"""Programs compiled for accelerators that are not here, by their plugins: `pytest -m aot`.

What runs on CPU is no proof that XLA's compiler for another platform takes the text, or that its
custom calls are registered with the operands that they have.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import pyjx as jax
from pyjx import jaxlib_api
from pyjx.experimental import io_callback
from pyjx.runtime import backends
from pyjx.runtime.compile import register_targets
from pyjx.runtime.lower import lower_closed
from tests.op_table import Sample
from tests.ops.linalg import SAMPLES
from tests.test_mlir_verify import NOT_ON

pytestmark = pytest.mark.aot

H100 = """gpu_device_info {
  threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152
  shared_memory_per_core: 233472 threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: 3352320000000 l2_cache_size: 52428800 clock_rate_ghz: 1.98
  device_memory_size: 84978434048 shared_memory_per_block_optin: 232448
  cuda_compute_capability { major: 9 minor: 0 feature_extension: ACCELERATED_FEATURES }
  registers_per_core_limit: 65536 registers_per_block_limit: 65536 }
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 8 patch: 0 }
device_description_str: "NVIDIA H100 80GB HBM3"
"""
TOPOLOGIES: dict[str, tuple[str, dict[str, Any]]] = {
    "cuda": ("", {"topology": "1x1x1", "target_config": H100}),
    "tpu": ("v5e:2x2", {}),
}
# libtpu asks no metadata server what machine this is, and may be in several processes.
ENVIRONMENT = {
    "TPU_SKIP_MDS_QUERY": "1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1", "TPU_WORKER_ID": "0",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4", "TPU_WORKER_HOSTNAMES": "localhost",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}


@pytest.fixture(scope="module", params=TOPOLOGIES)
def device(request: Any) -> Any:
    """A device to compile for."""
    platform = request.param
    if backends.plugin_library(platform) is None:
        pytest.skip(f"the plugin of {platform} is not installed")
    os.environ.update(ENVIRONMENT)
    name, options = TOPOLOGIES[platform]
    topology = jaxlib_api.make_topology(backends.load_plugin(platform), name, options)
    return platform, topology._make_compile_only_devices()[0]


@pytest.mark.parametrize("sample", SAMPLES, ids=[f"{s.primitive} {s.id}" for s in SAMPLES])
def test_linear_algebra(sample: Sample, device: Any) -> None:
    platform, target = device
    if platform in NOT_ON.get(sample.id or sample.primitive, NOT_ON.get(sample.primitive, ())):
        return  # tests/test_mlir_verify.py says what happens
    closed = jax.make_jaxpr(sample.fun)(*sample.args)
    program = lower_closed(closed, "f", platform=platform, keep_unused=True)
    register_targets(program.custom_calls, platform)
    options = jaxlib_api.CompileOptions()
    options.device_assignment = jaxlib_api.DeviceAssignment.create(np.array([[target.id]]))
    devices = jaxlib_api.DeviceList((target,))
    compiled = target.client.compile(jaxlib_api.parse_module(program.text), devices, options)
    assert compiled is not None


def _callbacks() -> dict[str, tuple[Any, tuple[Any, ...]]]:
    like = jax.ShapeDtypeStruct((3,), np.float32)

    def pure(x: Any) -> Any:
        return jax.pure_callback(np.sin, like, x)

    def printing(x: Any, ordered: bool = False) -> Any:
        jax.debug.print("{} {}", x, x.sum(), ordered=ordered)
        return x + 1

    def bare(x: Any) -> Any:
        jax.debug.callback(lambda: None)
        return x

    def together(x: Any) -> Any:
        given = io_callback(lambda x: (x, x), (like, like), x, ordered=True)
        return jax.lax.fori_loop(0, 3, lambda i, c: printing(c, True), given[0]) + pure(given[1])

    x = np.ones(3, np.float32)
    return {"pure": (pure, (x,)), "unordered": (printing, (x,)), "without operands": (bare, (x,)),
            "ordered": (lambda x: printing(x, True), (x,)), "together": (together, (x,)),
            "in a branch": (lambda p, x: jax.lax.cond(p, printing, pure, x), (True, x)),
            "mapped": (jax.vmap(printing), (np.ones((2, 3), np.float32),))}


@pytest.mark.parametrize("name", _callbacks())
def test_callbacks(name: str, device: Any) -> None:
    platform, target = device
    fun, args = _callbacks()[name]
    program = lower_closed(jax.make_jaxpr(fun)(*args), "f", platform=platform, keep_unused=True)
    register_targets(program.custom_calls, platform)
    options = jaxlib_api.CompileOptions()
    options.device_assignment = jaxlib_api.DeviceAssignment.create(np.array([[target.id]]))
    devices = jaxlib_api.DeviceList((target,))
    module = jaxlib_api.parse_module(program.text)
    assert target.client.compile(module, devices, options) is not None
    if platform == "tpu":
        channels = [c for call in program.host_calls for c in
                    (*call.transfers.send_channels, *call.transfers.receive_channels)]
        assert len(set(channels)) == len(channels) and min(channels) > 1
