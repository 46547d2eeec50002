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
