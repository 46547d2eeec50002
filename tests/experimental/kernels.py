"""Kernels of users' kinds, each beside the same function without kernels."""

import functools

import numpy as np

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.experimental import pallas as pl
from pyjx.experimental.pallas import tpu as pltpu

rng = np.random.default_rng(0)


def struct(*shape, dtype="float32"):
    return jax.ShapeDtypeStruct(shape, dtype)


def normal(*shape):
    return jnp.asarray(rng.standard_normal(shape), "float32")


call = functools.partial(pl.pallas_call, interpret=True)
ROWS = pl.BlockSpec((2, 8), lambda i: (i, 0))
SMALL = pl.BlockSpec((1, 8), lambda i: (0, 0))


def softmax(x):
    def kernel(x_ref, o_ref):
        e = jnp.exp(x_ref[...] - jnp.max(x_ref[...], -1, keepdims=True))
        o_ref[...] = e / jnp.sum(e, -1, keepdims=True)

    return call(kernel, x, grid=3, in_specs=[ROWS], out_specs=ROWS)(x)


def rms_norm(x, scale):
    def kernel(x_ref, scale_ref, o_ref):
        x = x_ref[...]
        o_ref[...] = x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * scale_ref[...]

    return call(kernel, x, grid=3, in_specs=[ROWS, SMALL], out_specs=ROWS)(x, scale)


def product(x, y):
    def kernel(x_ref, y_ref, o_ref, total_ref):
        @pl.when(pl.program_id(2) == 0)
        def _():
            total_ref[...] = jnp.zeros_like(total_ref)

        total_ref[...] += x_ref[...] @ y_ref[...]

        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
        def _():
            o_ref[...] = total_ref[...]

    return call(
        kernel, struct(6, 10), grid=(3, 2, 2), scratch_shapes=[pltpu.VMEM((2, 5), jnp.float32)],
        in_specs=[pl.BlockSpec((2, 4), lambda i, j, k: (i, k)),
                  pl.BlockSpec((4, 5), lambda i, j, k: (k, j))],
        out_specs=pl.BlockSpec((2, 5), lambda i, j, k: (i, j)))(x, y)


def quantised_product(x, y):
    scale = jnp.max(jnp.abs(y)) / 127
    small = jnp.round(y / scale).astype("int8")

    def kernel(x_ref, y_ref, scale_ref, o_ref):
        o_ref[...] = x_ref[...] @ (y_ref[...].astype("float32") * scale_ref[0])

    scalar = pl.BlockSpec(memory_space=pltpu.SMEM)
    whole = pl.BlockSpec((8, 10), lambda i: (0, 0))
    return call(kernel, struct(6, 10), grid=3, in_specs=[ROWS, whole, scalar],
                out_specs=pl.BlockSpec((2, 10), lambda i: (i, 0)))(x, small, scale[None])


def attention(q, k, v):
    """Online softmax over blocks of keys."""
    def kernel(q_ref, k_ref, v_ref, o_ref, top_ref, sum_ref):
        step = pl.program_id(1)

        @pl.when(step == 0)
        def _():
            top_ref[...] = jnp.full_like(top_ref, -jnp.inf)
            sum_ref[...] = jnp.zeros_like(sum_ref)
            o_ref[...] = jnp.zeros_like(o_ref)

        scores = q_ref[...] @ k_ref[...].T
        top = jnp.maximum(top_ref[...], jnp.max(scores, -1, keepdims=True))
        e, shrink = jnp.exp(scores - top), jnp.exp(top_ref[...] - top)
        sum_ref[...] = sum_ref[...] * shrink + jnp.sum(e, -1, keepdims=True)
        o_ref[...] = o_ref[...] * shrink + e @ v_ref[...]
        top_ref[...] = top

        @pl.when(step == pl.num_programs(1) - 1)
        def _():
            o_ref[...] /= sum_ref[...]

    rows = pl.BlockSpec((2, 8), lambda i, j: (i, 0))
    keys = pl.BlockSpec((3, 8), lambda i, j: (j, 0))
    column = pltpu.VMEM((2, 1), "float32")
    return call(kernel, q, grid=(3, 2), in_specs=[rows, keys, keys], out_specs=rows,
                scratch_shapes=[column, column])(q, k, v)


def gathered(x, rows):
    """Rows by an array that is fetched before."""
    def kernel(rows_ref, x_ref, o_ref):
        o_ref[...] = x_ref[...] * (rows_ref[pl.program_id(0)] + 1)

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=(4,),
        in_specs=[pl.BlockSpec((None, 8), lambda i, rows_ref: (rows_ref[i], 0))],
        out_specs=pl.BlockSpec((pl.squeezed, 8), lambda i, rows_ref: (i, 0)))
    return call(kernel, struct(4, 8), grid_spec=spec)(rows, x)


def stencil(x):
    """Each row between its neighbours, by blocks that overlap, of an array with edges of NaN."""
    def kernel(x_ref, o_ref):
        x = jnp.nan_to_num(x_ref[...])
        o_ref[...] = x[:-2] - 2 * x[1:-1] + x[2:]

    window = pl.BlockSpec((pl.Element(4, (1, 1)), 8), lambda i: (2 * i, 0))
    return call(kernel, x, grid=3, in_specs=[window], out_specs=ROWS)(x)


def prefix_sum(x):
    def kernel(x_ref, o_ref, carry_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            carry_ref[...] = jnp.zeros_like(carry_ref)

        sums = jnp.cumsum(x_ref[...], 0) + carry_ref[...]
        o_ref[...] = sums
        carry_ref[...] = sums[-1:]

    return call(kernel, x, grid=3, in_specs=[ROWS], out_specs=ROWS,
                scratch_shapes={"carry_ref": pltpu.VMEM((1, 8), "float32")})(x)


def histogram(x):
    def kernel(x_ref, o_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        places = jnp.clip(jnp.floor(x_ref[...] + 2), 0, 3).astype(int)
        o_ref[...] += jnp.sum(places.ravel()[:, None] == jnp.arange(4), 0)

    return call(kernel, struct(4, dtype="int32"), grid=3, in_specs=[ROWS],
                out_specs=pl.BlockSpec((4,), lambda i: (0,)))(x)


def top_two(x):
    def kernel(x_ref, values_ref, places_ref):
        values, places = lax.top_k(x_ref[...], 2)
        values_ref[...] = values
        places_ref[...] = places

    two = pl.BlockSpec((2, 2), lambda i: (i, 0))
    return call(kernel, (struct(6, 2), struct(6, 2, dtype="int32")), grid=3, in_specs=[ROWS],
                out_specs=(two, two))(x)


def pipeline(grid, rows, inner, columns):
    """A kernel of a product whose blocks, of such sizes, a pipeline within it brings."""
    def kernel(x_ref, y_ref, o_ref):
        def body(a_ref, b_ref, c_ref):
            @pl.when(pl.program_id(1) == 0)
            def _():
                c_ref[...] = jnp.zeros_like(c_ref)

            c_ref[...] += a_ref[...] @ b_ref[...]

        pltpu.emit_pipeline(
            body, grid=grid, in_specs=[pl.BlockSpec((rows, inner), lambda i, k: (i, k)),
                                       pl.BlockSpec((inner, columns), lambda i, k: (k, 0))],
            out_specs=[pl.BlockSpec((rows, columns), lambda i, k: (i, 0))])(x_ref, y_ref, o_ref)

    return kernel


def pipelined(x, y):
    """A product whose blocks a pipeline within the kernel brings."""
    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    return call(pipeline((3, 2), 2, 4, 10), struct(6, 10), in_specs=[anywhere, anywhere],
                out_specs=anywhere)(x, y)


def copied(x):
    """Rows by asynchronous copies into scratch space, and back."""
    def kernel(x_ref, o_ref):
        def body(row_ref, sem):
            @pl.loop(0, 6)
            def _(i):
                copy = pltpu.make_async_copy(x_ref.at[i], row_ref, sem)
                copy.start()
                copy.wait()
                row_ref[...] *= i
                pltpu.sync_copy(row_ref, o_ref.at[i])

        pl.run_scoped(body, pltpu.VMEM((8,), "float32"), pltpu.SemaphoreType.DMA)

    return call(kernel, x)(x)


X, Y, SCALE, ROWS_OF = normal(6, 8), normal(8, 10), normal(1, 8), jnp.array([3, 0, 5, 3])
KERNELS = {
    "softmax": (softmax, (X,), jax.nn.softmax),
    "rms norm": (rms_norm, (X, SCALE), lambda x, s: x * lax.rsqrt(
        jnp.mean(x * x, -1, keepdims=True) + 1e-6) * s),
    "product": (product, (X, Y), jnp.matmul),
    "quantised": (quantised_product, (X, Y), lambda x, y: x @ (jnp.round(
        y / (s := jnp.max(jnp.abs(y)) / 127)) * s)),
    "attention": (attention, (X, X[::-1], X * 2), lambda q, k, v: jax.nn.softmax(q @ k.T) @ v),
    "gathered": (gathered, (X, ROWS_OF), lambda x, rows: x[rows] * (rows[:, None] + 1)),
    "stencil": (stencil, (X,), lambda x: jnp.pad(x, ((1, 1), (0, 0)))[:-2] - 2 * x + jnp.pad(
        x, ((1, 1), (0, 0)))[2:]),
    "prefix sum": (prefix_sum, (X,), lambda x: jnp.cumsum(x, 0)),
    "histogram": (histogram, (X,), lambda x: jnp.bincount(
        jnp.clip(jnp.floor(x + 2), 0, 3).astype(int).ravel(), length=4)),
    "top two": (top_two, (X,), lambda x: tuple(lax.top_k(x, 2))),
    "pipelined": (pipelined, (X, Y), jnp.matmul),
    "copied": (copied, (X,), lambda x: x * jnp.arange(6.0)[:, None]),
}


def agree(got, want):
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


def double(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2


def for_tpus(f, *args):
    """The StableHLO of a function with kernels; its compiler's bindings check their modules."""
    return jax.jit(f).trace(*args).lower(lowering_platforms=("tpu",)).as_text()


def compiled(kernel, *shapes, out=None, **options):
    args = [jax.ShapeDtypeStruct(shape, "float32") for shape in shapes]
    return for_tpus(pl.pallas_call(kernel, args[0] if out is None else out, **options), *args)
