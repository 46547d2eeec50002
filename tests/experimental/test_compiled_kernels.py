"""Kernels of users' kinds, of sizes that TPUs have, compiled for TPUs that are not here."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.experimental import pallas as pl
from pyjx.experimental import topologies
from pyjx.experimental.pallas import tpu as pltpu
from pyjx.experimental.pallas.ops.tpu import flash_attention, matmul, megablox
from pyjx.experimental.pallas.ops.tpu import splash_attention as splash
from pyjx.experimental.pallas.ops.tpu.paged_attention import paged_attention
from pyjx.runtime import backends
from pyjx.sharding import NamedSharding
from pyjx.sharding import PartitionSpec as P
from tests.experimental.kernels import pipeline, struct

pytestmark = [pytest.mark.aot, pytest.mark.skipif(
    not backends.plugin_library("tpu"), reason="libtpu is not installed")]
ROWS = pl.BlockSpec((8, 256), lambda i: (i, 0))
FAR = pl.BlockSpec(memory_space=pl.ANY)


def rows(f):
    """A kernel of one function of eight rows at a time."""
    def kernel(x_ref, o_ref):
        o_ref[...] = f(x_ref[...])

    return pl.pallas_call(kernel, struct(64, 256), grid=8, in_specs=[ROWS], out_specs=ROWS)


def greatest(x_ref, o_ref, i_ref):
    o_ref[...], i_ref[...] = lax.top_k(x_ref[...], 8)


def histogram(x_ref, o_ref):
    @pl.when(pl.program_id(0) == 0)
    def _():
        o_ref[...] = jnp.zeros_like(o_ref)

    bins = lax.broadcasted_iota("int32", (8, 256, 16), 2)
    o_ref[...] += jnp.sum((x_ref[...][:, :, None] == bins).astype("int32"), (0, 1))[None]


def decayed(x_ref, o_ref, last_ref):
    @pl.when(pl.program_id(0) == 0)
    def _():
        last_ref[...] = jnp.zeros_like(last_ref)

    def step(i, h):
        h = h * 0.9 + x_ref[pl.ds(i, 1), :]
        o_ref[pl.ds(i, 1), :] = h
        return h

    last_ref[...] = lax.fori_loop(0, 8, step, last_ref[...])


def quantised(a_ref, b_ref, scale_ref, o_ref):
    product = lax.dot_general(a_ref[...], b_ref[...], (((1,), (0,)), ((), ())),
                              preferred_element_type="int32")
    o_ref[...] = product.astype("float32") * scale_ref[...]


def drawn(seed_ref, o_ref):
    pltpu.prng_seed(seed_ref[0], pl.program_id(0))
    o_ref[...] = pltpu.prng_random_bits((8, 256))


def stencil(x_ref, o_ref):
    o_ref[...] = x_ref[0:8] + x_ref[1:9] + x_ref[2:10]


def flash(q, k, v):
    return jax.grad(lambda *xs: flash_attention.flash_attention(*xs, causal=True).astype(
        "float32").sum(), (0, 1, 2))(q, k, v)


def near(q, k, v):
    mask = splash.MultiHeadMask([splash.LocalMask((512, 512), (200, 0), 0)] * 4)
    attend = splash.make_splash_mha_single_device(mask, attn_logits_soft_cap=30.0)
    return jax.grad(lambda *xs: jax.vmap(attend)(*xs).astype("float32").sum(), (0, 1, 2))(q, k, v)


X = struct(64, 256)
HEADS = [struct(2, 4, 512, 128, dtype="bfloat16")] * 3
PROGRAMS = {
    "softmax": (rows(jax.nn.softmax), X),
    "rms norm": (rows(lambda x: x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)), X),
    "layer norm": (rows(lambda x: (x - x.mean(-1, keepdims=True)) / jnp.sqrt(
        x.var(-1, keepdims=True) + 1e-5)), X),
    "prefix sum": (rows(lambda x: jnp.cumsum(x, -1)), X),
    "gelu": (rows(jax.nn.gelu), X),
    "angles": (rows(lambda x: jnp.arctan2(x, x + 1)), X),
    "mask": (rows(lambda x: jnp.where(jnp.isnan(x), 0, x)), X),
    "stencil": (pl.pallas_call(stencil, struct(64, 256), grid=8, in_specs=[pl.BlockSpec(
        (pl.Element(16), pl.Element(256)), lambda i: (i * 8, 0))], out_specs=ROWS),
        struct(80, 256)),
    "top": (pl.pallas_call(
        greatest, [struct(64, 8), struct(64, 8, dtype="int32")], grid=8, in_specs=[ROWS],
        out_specs=[pl.BlockSpec((8, 8), lambda i: (i, 0))] * 2), X),
    "histogram": (pl.pallas_call(
        histogram, struct(1, 16, dtype="int32"), grid=8, in_specs=[ROWS],
        out_specs=pl.BlockSpec((1, 16), lambda i: (0, 0))), struct(64, 256, dtype="int32")),
    "scan": (pl.pallas_call(decayed, struct(64, 256), grid=8, in_specs=[ROWS], out_specs=ROWS,
                            scratch_shapes=[pltpu.VMEM((1, 256), "float32")]), X),
    "quantised": (pl.pallas_call(quantised, struct(128, 128)), struct(128, 256, dtype="int8"),
                  struct(256, 128, dtype="int8"), struct(1, 128)),
    "pipelined": (pl.pallas_call(pipeline((4, 2), 128, 128, 128), struct(512, 128),
                                 in_specs=[FAR, FAR], out_specs=FAR),
                  struct(512, 256), struct(256, 128)),
    "bits": (pl.pallas_call(drawn, struct(64, 256, dtype="int32"), grid=8, out_specs=ROWS,
                            in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM)]),
             struct(1, dtype="int32")),
    "flash": (flash, *HEADS), "splash": (near, *HEADS),
    "product": (lambda x, y: matmul.matmul(x, y, block_shape=(256, 256)), struct(512, 512),
                struct(512, 512)),
    "paged": (lambda *xs: paged_attention(*xs, pages_per_compute_block=4), struct(8, 8, 128),
              struct(8, 64, 16, 128), struct(8, 64, 16, 128), struct(8, dtype="int32"),
              struct(8, 16, dtype="int32")),
    "groups": (megablox.gmm, struct(512, 256, dtype="bfloat16"),
               struct(4, 256, 128, dtype="bfloat16"), struct(4, dtype="int32")),
}


def mesh_of(target, count):
    devices = topologies.get_topology_desc(target, "tpu").devices
    return jax.sharding.Mesh(np.array(devices[:count]), ("x",))


@pytest.mark.parametrize("target", ["v5e:2x2", "v6e:2x2"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_compile(name, target):
    program, *args = PROGRAMS[name]
    here = NamedSharding(mesh_of(target, 1), P())
    given = [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=here) for a in args]
    assert jax.jit(lambda *xs: program(*xs)).lower(*given).compile() is not None


@pytest.mark.parametrize("target", ["v5e:2x2", "v6e:2x2"])
def test_a_ring_compiles(target):
    mesh = mesh_of(target, 4)

    def kernel(x_ref, o_ref, sent, came):
        right = (lax.axis_index("x") + 1) % 4
        barrier = pltpu.get_barrier_semaphore()
        pl.semaphore_signal(barrier, device_id=right)
        pl.semaphore_wait(barrier)
        pltpu.async_remote_copy(x_ref, o_ref, sent, came, right).wait()

    call = pl.pallas_call(kernel, struct(8, 128), in_specs=[FAR], out_specs=FAR,
                          scratch_shapes=[pltpu.SemaphoreType.DMA] * 2,
                          compiler_params=pltpu.CompilerParams(collective_id=0))
    run = jax.shard_map(call, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    x = jax.ShapeDtypeStruct((32, 128), "float32", sharding=NamedSharding(mesh, P("x")))
    assert jax.jit(run).lower(x).compile() is not None
