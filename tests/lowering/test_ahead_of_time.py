"""Programs compiled for accelerators that are not here, by their plugins: `pytest -m aot`.

What runs on CPU is no proof that XLA's compiler for another platform takes the text, or that its
custom calls are registered with the operands that they have.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import configuration, inspect, jaxlib_api
from pyjx.experimental import io_callback
from pyjx.experimental import pallas as pl
from pyjx.experimental.pallas import tpu as pltpu
from pyjx.experimental.pallas.ops.tpu.flash_attention import flash_attention
from pyjx.runtime import backends
from pyjx.runtime.foreign_functions import register_targets
from pyjx.runtime.lower import lower_closed
from tests.op_table import Sample, families
from tests.refused import REFUSED, Refusal, refusal

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
H200 = H100.replace("84978434048", "150754820096").replace("H100 80GB HBM3", "H200").replace(
    "memory_bandwidth: 3352320000000", "memory_bandwidth: 4800000000000")
# For each kind of device its platform, the name of a topology, and options.
TOPOLOGIES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "h100": ("cuda", "", {"topology": "1x1x1", "target_config": H100}),
    "h200": ("cuda", "", {"topology": "1x1x1", "target_config": H200}),
    "v5e": ("tpu", "v5e:2x2", {}),
    "v6e": ("tpu", "v6e:2x2", {}),
}


@pytest.fixture(scope="module", params=TOPOLOGIES)
def device(request: Any) -> Iterator[Any]:
    """A platform, and a device of it to compile for."""
    platform, name, options = TOPOLOGIES[request.param]
    if backends.plugin_library(platform) is None:
        pytest.skip(f"the plugin of {platform} is not installed")
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    topology = jaxlib_api.make_topology(backends.load_compiler(platform), name, options)
    with configuration.platforms("cpu"):  # constants are made there, and no device is looked for
        yield platform, topology._make_compile_only_devices()[0]


def compiled(fun: Any, args: Any, device: Any) -> Any:
    """The program of a function, and what the device's compiler makes of it."""
    platform, target = device
    program = lower_closed(jax.make_jaxpr(fun)(*args), "f", platform=platform, keep_unused=True)
    register_targets(program.custom_calls, platform)
    options = jaxlib_api.CompileOptions()
    options.device_assignment = jaxlib_api.DeviceAssignment.create(np.array([[target.id]]))
    return program, jaxlib_api.compile_only(target.client, program.text,
                                            jaxlib_api.DeviceList((target,)), options)


# -- the op table ----------------------------------------------------------------------------------


def _gradient(sample: Sample) -> Any:
    """The gradient of the sum of a sample's results, by the arguments that it is checked for."""
    argnums = tuple([i for i, x in enumerate(sample.args)
                     if np.issubdtype(np.asarray(x).dtype, np.inexact)]
                    if sample.diff is True else sample.diff or ())

    def total(*args: Any) -> Any:
        outs = [x for x in jax.tree.leaves(sample.fun(*args)) if np.issubdtype(x.dtype, np.inexact)]
        return sum([jnp.real(x).astype(np.float32).sum() for x in outs], jnp.float32(0))

    return jax.grad(total, argnums) if argnums else lambda *args: ()


def _together(samples: list[Sample], derivative: bool) -> Any:
    """One program of several samples: compilers take most of their time to begin."""
    functions = [_gradient(s) if derivative else s.fun for s in samples]
    return lambda *args: [f(*a) for f, a in zip(functions, args, strict=True)]


CHUNKS = [(family[0].primitive, family[i:i + 10])
          for family in families() for i in range(0, len(family), 10)]


@pytest.mark.parametrize("derivative", [False, True], ids=["value", "gradient"])
@pytest.mark.parametrize("samples", [chunk for _, chunk in CHUNKS], ids=[n for n, _ in CHUNKS])
def test_op_table(samples: list[Sample], derivative: bool, device: Any) -> None:
    taken = [s for s in samples if refusal(s, device[0]) is None]
    try:
        compiled(_together(taken, derivative), [s.args for s in taken], device)
    except Exception:
        for s in taken:  # which of them
            try:
                compiled(_together([s], derivative), [s.args], device)
            except Exception as error:
                raise AssertionError(f"{s.primitive} {s.id}") from error
        raise


@pytest.mark.parametrize("row", REFUSED, ids=[f"{r.platform} {r.primitive}" for r in REFUSED])
def test_what_is_refused(row: Refusal, device: Any) -> None:
    if row.platform != device[0] or not row.applies:
        return
    messages = []
    for sample in [s for family in families() for s in family]:
        if refusal(sample, row.platform) is row:
            try:
                compiled(sample.fun, sample.args, device)
            except Exception as error:
                messages.append(str(error))
    assert messages
    assert all(row.message in message for message in messages)


# -- callbacks -------------------------------------------------------------------------------------


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
    program, executable = compiled(*_callbacks()[name], device)
    assert executable is not None
    if device[0] == "tpu":
        channels = [c for call in program.host_calls for c in
                    (*call.transfers.send_channels, *call.transfers.receive_channels)]
        assert len(set(channels)) == len(channels) and min(channels) > 1


def _softmax(x_ref: Any, o_ref: Any) -> None:
    e = jnp.exp(x_ref[...] - jnp.max(x_ref[...], -1, keepdims=True))
    o_ref[...] = e / jnp.sum(e, -1, keepdims=True)


def _total(x_ref: Any, y_ref: Any, o_ref: Any, total_ref: Any) -> None:
    @pl.when(pl.program_id(2) == 0)
    def _() -> None:
        total_ref[...] = jnp.zeros_like(total_ref)

    total_ref[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)

    @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
    def _() -> None:
        o_ref[...] = total_ref[...].astype(o_ref.dtype)


def _copied(x_ref: Any, o_ref: Any, rows_ref: Any, sem: Any) -> None:
    copy = pltpu.make_async_copy(x_ref.at[pl.ds(8 * pl.program_id(0), 8)], rows_ref, sem)
    copy.start()
    copy.wait()
    o_ref[...] = jax.nn.gelu(rows_ref[...])


def _kernels() -> dict[str, tuple[Any, tuple[Any, ...]]]:
    rows = pl.BlockSpec((8, 256), lambda i: (i, 0))
    x, square = np.ones((16, 256), np.float32), np.ones((256, 256), "bfloat16")
    heads = np.ones((1, 2, 256, 128), np.float32)
    cut = [pl.BlockSpec((128, 128), lambda i, j, k: (i, k)),
           pl.BlockSpec((128, 128), lambda i, j, k: (k, j))]
    softmax = pl.pallas_call(_softmax, x, grid=2, in_specs=[rows], out_specs=rows)
    return {
        "softmax": (softmax, (x,)), "batch": (jax.vmap(softmax), (np.stack([x, x]),)),
        "product": (pl.pallas_call(
            _total, square, grid=(2, 2, 2), in_specs=cut,
            out_specs=pl.BlockSpec((128, 128), lambda i, j, k: (i, j)),
            scratch_shapes=[pltpu.VMEM((128, 128), "float32")]), (square, square)),
        "copies": (pl.pallas_call(
            _copied, x, grid=2, in_specs=[pl.BlockSpec(memory_space=pl.ANY)], out_specs=rows,
            scratch_shapes=[pltpu.VMEM((8, 256), "float32"), pltpu.SemaphoreType.DMA]), (x,)),
        "attention": (jax.grad(lambda *qkv: flash_attention(*qkv, causal=True).sum(), (0, 1, 2)),
                      (heads, heads, heads)),
    }


@pytest.mark.parametrize("name", _kernels())
def test_kernels_compile(name: str, device: Any) -> None:
    if device[0] != "tpu":
        pytest.skip("kernels are compiled for TPUs alone")
    fun, args = _kernels()[name]
    assert compiled(fun, args, device)[1] is not None
    program = inspect.trace(fun, *args, platform="tpu:v5e")
    assert "func.func" in program.emit("mosaic") and "tpu_custom_call" in program.hlo_opt


@pytest.mark.parametrize("name", _callbacks())
def test_programs_with_callbacks_are_looked_at(name: str, device: Any) -> None:
    """By a user, who has no client: nothing is called, and nothing runs."""
    fun, args = _callbacks()[name]
    kind = {"cuda": "cuda:h100", "tpu": "tpu:v5e"}[device[0]]
    program = inspect.trace(fun, *args, platform=kind)
    assert ("send(" if device[0] == "tpu" else "callback") in program.hlo_opt
    assert program.memory is not None
    with pytest.raises(RuntimeError, match="It can be looked at"):
        program.compiled()(*args)


@pytest.mark.skipif(not backends.plugin_library("tpu"), reason="libtpu is not installed")
def test_budgets_are_told_as_they_were_met():
    """With what is on the host, which the platform of this process would not have put there."""
    def loss(ws, x):
        return jnp.mean(jax.lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, ws)[0] ** 2)

    given = [jax.ShapeDtypeStruct(s, np.float32) for s in ((24, 1024, 1024), (16384, 1024))]
    program = inspect.trace(jax.jit(jax.grad(loss), memory_budget="700MiB"), *given,
                            platform="tpu:v5e")
    text = program.emit("memory")
    assert "device_put" in text and "within 700.0 MiB" in text
    assert "more than the memory_budget" not in text and "f32[24,16384,1024]" not in text
    assert program.emit("html")
