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


def test_blocks_that_do_not_fit():
    blocks = pl.BlockSpec((4096, 4096), lambda i: (i, 0))
    call = pl.pallas_call(lambda x_ref, o_ref: o_ref.set(x_ref[...] * 2), struct(8192, 4096),
                          grid=2, in_specs=[blocks], out_specs=blocks)
    x = jax.ShapeDtypeStruct((8192, 4096), "float32",
                             sharding=NamedSharding(mesh_of("v5e:2x2", 1), P()))
    with pytest.raises(jax.errors.JaxRuntimeError, match="Take smaller blocks, or more of it by"):
        jax.jit(call).lower(x).compile()


def test_one_of_several_references_is_copied():
    def kernel(i_ref, x_ref, y_ref, o_ref):
        pltpu.sync_copy(pl.select_ref(i_ref[0], x_ref, y_ref), o_ref)

    call = pl.pallas_call(kernel, struct(8, 128), out_specs=FAR, in_specs=[
        pl.BlockSpec(memory_space=pltpu.SMEM), FAR, FAR])
    x = jax.ShapeDtypeStruct((8, 128), "float32",
                             sharding=NamedSharding(mesh_of("v5e:2x2", 1), P()))
    i = jax.ShapeDtypeStruct((1,), "int32", sharding=x.sharding)
    assert jax.jit(call).lower(i, x, x).compile() is not None


@pytest.mark.parametrize("draw", [
    pltpu.stateful_uniform, pltpu.stateful_normal, pltpu.stateful_bits,
    lambda shape: pltpu.stateful_bernoulli(0.25, shape)])
def test_distributions_compile(draw):
    def kernel(seed_ref, o_ref):
        pltpu.prng_seed(seed_ref[0])
        o_ref[...] = draw(o_ref.shape).astype("float32")

    call = pl.pallas_call(kernel, struct(8, 128), in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM)])
    seed = jax.ShapeDtypeStruct((1,), "int32", sharding=NamedSharding(mesh_of("v5e:2x2", 1), P()))
    assert jax.jit(call).lower(seed).compile() is not None


def of_floats(f):
    return lambda x: f(x) if jnp.issubdtype(x.dtype, jnp.floating) else x


def of_integers(f):
    return lambda x: f(x) if jnp.issubdtype(x.dtype, jnp.integer) else x


def in_all(f):
    """A function whose result has fewer elements, or none, than its argument."""
    return lambda x: jnp.broadcast_to(f(x), x.shape)


OPERATIONS = {
    "arithmetic": lambda x: (x + x) * x - 1, "neg": lambda x: -x, "abs": abs, "sign": jnp.sign,
    "div": lambda x: x // 2 if jnp.issubdtype(x.dtype, jnp.integer) else x / 3,
    "rem": lambda x: lax.rem(x, x + 1), "power": of_floats(lambda x: x ** x),
    "comparisons": lambda x: jnp.where((x > 0) & (x != 3), x, x + x),
    "max": lambda x: jnp.maximum(x, 2), "min": lambda x: jnp.minimum(x, x * 3),
    "clamp": lambda x: lax.clamp(x.dtype.type(1), x, x.dtype.type(7)),
    "masks": lambda x: (x > 1).astype("int8").astype(x.dtype) + (x > 2).astype(x.dtype),
    "bits": of_integers(lambda x: ~x & (x >> 1) ^ (x << (x & 7)) >> (x & 3)),
    "counts": of_integers(lambda x: lax.population_count(x) + lax.clz(x)),
    "sum": in_all(lambda x: jnp.sum(x, 1, keepdims=True, dtype=x.dtype)),
    "sum of columns": in_all(lambda x: jnp.sum(x, 0, keepdims=True, dtype=x.dtype)),
    "sum of all": lambda x: x + jnp.sum(x, dtype=x.dtype),
    "product": in_all(lambda x: jnp.prod(x[:, :4], 1, keepdims=True, dtype=x.dtype)),
    "maximum": in_all(lambda x: jnp.max(x, 1, keepdims=True)),
    "maximum of all": in_all(lambda x: jnp.max(jnp.abs(x))), "minimum": in_all(jnp.min),
    "any": in_all(lambda x: jnp.any(x > 0, 1, keepdims=True)),
    "argmax": in_all(lambda x: jnp.argmax(x, 1)[:, None].astype(x.dtype)),
    "top_k": in_all(lambda x: lax.top_k(x, 2)[0][:, :1]),
    "cumulative": lambda x: jnp.cumsum(x, 1, dtype=x.dtype) + lax.cummax(x, axis=1),
    "moves": lambda x: jnp.pad(x.T[::-1, :120], ((0, 0), (0, 8))),
    "softmax": of_floats(lambda x: jax.nn.softmax(x, -1)), "gelu": of_floats(jax.nn.gelu),
    "silu": of_floats(jax.nn.silu), "round": of_floats(lambda x: jnp.round(x) + jnp.floor(x)),
    "roots": of_floats(lambda x: lax.rsqrt(x) + jnp.sqrt(x)), "sine": of_floats(jnp.sin),
    "finite": of_floats(lambda x: jnp.where(jnp.isfinite(x), x, 0)),
    "variance": in_all(of_floats(lambda x: x.var(-1, keepdims=True))),
    "product with a vector": lambda x: x + lax.dot(x, x[0])[:, None] + lax.dot(x[0], x),
}


@pytest.mark.parametrize("target", ["v5e:2x2", "v6e:2x2"])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "int8", "int16", "int32", "float32",
                                   "bfloat16"])
def test_all_numbers_compile(dtype, target):
    x = jax.ShapeDtypeStruct((128, 128), dtype, sharding=NamedSharding(mesh_of(target, 1), P()))
    for name, f in OPERATIONS.items():
        def kernel(x_ref, o_ref, f=f):
            o_ref[...] = x_ref[...]
            o_ref[...] += f(x_ref[...])

        try:
            jax.jit(pl.pallas_call(kernel, struct(128, 128, dtype=dtype))).lower(x).compile()
        except Exception as error:
            error.add_note(f"of {name}")
            raise


def test_all_conversions_compile():
    here = NamedSharding(mesh_of("v5e:2x2", 1), P())
    kinds = ["bool", "uint8", "uint16", "uint32", "int8", "int16", "int32", "bfloat16", "float32"]

    def kernel(x_ref, *o_refs):
        for o_ref in o_refs:
            o_ref[...] = x_ref[...].astype(o_ref.dtype)

    for dtype in kinds:
        x = jax.ShapeDtypeStruct((32, 128), dtype, sharding=here)
        outs = [struct(32, 128, dtype=kind) for kind in kinds]
        assert jax.jit(pl.pallas_call(kernel, outs)).lower(x).compile() is not None
