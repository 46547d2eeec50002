"""Kernels, interpreted: users' own kinds beside the same functions without kernels."""

import functools

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.experimental import checkify
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


# -- kernels of users' kinds -----------------------------------------------------------------------

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


def pipelined(x, y):
    """A product whose blocks a pipeline within the kernel brings."""
    def kernel(x_ref, y_ref, o_ref):
        o_ref[...] = jnp.zeros_like(o_ref)

        def body(a_ref, b_ref, c_ref):
            c_ref[...] += a_ref[...] @ b_ref[...]

        pltpu.emit_pipeline(
            body, grid=(3, 2), in_specs=[pl.BlockSpec((2, 4), lambda i, k: (i, k)),
                                         pl.BlockSpec((4, 10), lambda i, k: (k, 0))],
            out_specs=[pl.BlockSpec((2, 10), lambda i, k: (i, 0))])(x_ref, y_ref, o_ref)

    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    return call(kernel, struct(6, 10), in_specs=[anywhere, anywhere], out_specs=anywhere)(x, y)


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


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_of_users_kinds(name):
    kernel, args, plain = KERNELS[name]
    want = plain(*args)
    agree(kernel(*args), want)
    agree(jax.jit(kernel)(*args), want)
    several = [jnp.stack([x, x]) for x in args]
    agree(jax.vmap(kernel)(*several), jax.vmap(plain)(*several))


@pytest.mark.parametrize("name", ["softmax", "rms norm", "product", "attention", "prefix sum"])
def test_derivatives_are_those_of_what_a_kernel_computes(name):
    kernel, args, plain = KERNELS[name]
    weights = normal(*plain(*args).shape)
    every = tuple(range(len(args)))

    def slopes(f):
        return jax.grad(lambda *args: jnp.sum(f(*args) * weights), every)(*args)

    agree(slopes(kernel), slopes(plain))
    agree(jax.jvp(kernel, args, args), jax.jvp(plain, args, args))


def test_rules_of_users_stand_around_kernels():
    @jax.custom_vjp
    def f(x):
        return softmax(x)

    f.defvjp(lambda x: (softmax(x), x), lambda x, ct: (ct * 3,))
    np.testing.assert_array_equal(jax.grad(lambda x: f(x).sum())(X), np.full((6, 8), 3))


# -- what blocks, grids and references are ---------------------------------------------------------


def double(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2


def test_blocks_that_stick_out_have_no_known_values_there():
    rows = pl.BlockSpec((4, 8), lambda i: (i, 0))
    run = call(double, X, grid=2, in_specs=[rows], out_specs=rows)
    np.testing.assert_array_equal(run(X), X * 2)

    def copy(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    out = call(copy, struct(8, 8), grid=2, in_specs=[rows], out_specs=rows)(X)
    assert np.isnan(out[6:]).all() and not np.isnan(out[:6]).any()


@pytest.mark.parametrize(("dtype", "value"), [
    ("float32", np.nan), ("bfloat16", np.nan), ("int8", -128), ("uint8", 0), ("bool", False)])
def test_what_nobody_writes(dtype, value):
    out = call(lambda o_ref: None, struct(2, dtype=dtype))()
    np.testing.assert_array_equal(np.asarray(out, "float32"), np.full(2, value, "float32"))


@pytest.mark.parametrize("grid", [(0,), (2, 0), ()])
def test_grids_without_programs_and_with_one(grid):
    out = call(lambda o_ref: o_ref.set(jnp.ones(2)), struct(2), grid=grid)()
    np.testing.assert_array_equal(out, [np.nan] * 2 if grid else [1, 1])


def test_the_last_axis_runs_fastest():
    def kernel(o_ref, count_ref):
        i, j = pl.program_id(0), pl.program_id(1)
        count_ref[0] = jnp.where(i + j == 0, 0, count_ref[0] + 1)
        o_ref[i, j] = count_ref[0]

    out = call(kernel, struct(2, 3, dtype="int32"), grid=(2, 3),
               scratch_shapes=[pltpu.SMEM((1,), "int32")])()
    np.testing.assert_array_equal(out, np.arange(6).reshape(2, 3))


def test_grids_may_be_traced():
    def kernel(o_ref):
        o_ref[pl.program_id(0)] = pl.num_programs(0)

    def f(n):
        return call(kernel, struct(4, dtype="int32"), grid=(n,), input_output_aliases={})()

    np.testing.assert_array_equal(jax.jit(f)(2)[:2], [2, 2])


def test_a_result_with_the_memory_of_an_argument_has_its_values():
    def kernel(x_ref, o_ref):
        o_ref[0] = x_ref[0] * 10

    out = call(kernel, X, input_output_aliases={0: 0})(X)
    np.testing.assert_array_equal(out, jnp.concatenate([X[:1] * 10, X[1:]]))


def test_what_is_written_to_a_result_is_read_of_the_argument_with_its_memory():
    def kernel(n_ref, x_ref, o_ref):
        o_ref[...] = x_ref[...] + n_ref[0]

    spec = pltpu.PrefetchScalarGridSpec(
        1, grid=(3,), in_specs=[pl.BlockSpec((1, 8), lambda i, n_ref: (0, 0))],
        out_specs=pl.BlockSpec((1, 8), lambda i, n_ref: (i % 2, 0)))
    out = call(kernel, X, grid_spec=spec, input_output_aliases={1: 0})(jnp.array([1.0]), X)
    np.testing.assert_allclose(out, jnp.concatenate([X[:1] + 2, X[:1] + 2, X[2:]]), rtol=1e-6)


def test_trees_of_arguments_and_results():
    def kernel(refs, o_refs):
        o_refs["sum"][...] = refs["x"][...] + refs["y"][...]

    assert float(call(kernel, {"sum": struct()})({"x": 1.0, "y": 2.0})["sum"]) == 3
    assert call(lambda x_ref: None, ())(X) == ()


def test_scoped_space_and_checks():
    def kernel(x_ref, o_ref):
        @pl.with_scoped(pltpu.VMEM((2,), "float32"), sem=pltpu.SemaphoreType.REGULAR)
        def body(x, space_ref, sem):
            space_ref[...] = x
            pl.semaphore_signal(sem, 3)
            pl.semaphore_wait(sem, 1)
            o_ref[...] = space_ref[...] + pl.semaphore_read(sem)

        body(x_ref[...])
        pl.debug_check(jnp.sum(x_ref[...]) < 4, "too much")

    run = call(kernel, struct(2))
    np.testing.assert_array_equal(run(jnp.ones(2)), [3, 3])
    with pl.enable_debug_checks(True):
        error, _ = checkify.checkify(run)(3 * jnp.ones(2))
    assert "too much" in error.get()


def test_operations_on_registers():
    x = jnp.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(
        pltpu.roll(x, 1, 1, stride=1, stride_axis=0), [np.roll(r, 1 + k) for k, r in enumerate(x)])
    assert pltpu.bitcast(x.astype("bfloat16").repeat(2, 0), "float32").shape == (3, 4)


    def kernel(x_ref, o_ref):
        x = pltpu.load(x_ref, mask=x_ref[...] > 0)
        pltpu.store(o_ref, x, mask=x > 5)

    out = call(kernel, struct(3, 4))(x)
    np.testing.assert_array_equal(out, np.where(x > 5, x, np.nan))


def test_a_context_interprets_all_kernels():
    with pltpu.force_tpu_interpret_mode():
        np.testing.assert_array_equal(pl.pallas_call(double, X)(X), X * 2)


# -- mistakes --------------------------------------------------------------------------------------


def bad(kernel=double, out=X, x=X, **options):
    return lambda: call(kernel, out, **options)(x)


MISTAKES = [
    (bad(in_specs=[pl.BlockSpec((2,), lambda: (0,))]),
     r"Block shape for args\[0\] .* same number of dimensions as the array shape \(6, 8\)"),
    (bad(grid=3, in_specs=[pl.BlockSpec((2, 8), lambda i: i)], out_specs=ROWS),
     r"Index map function <lambda> at .* for args\[0\] must return 2 values"),
    (bad(grid=3, in_specs=[pl.BlockSpec((2, 8), lambda i: (i / 2, 0))], out_specs=ROWS),
     r"must return integer scalars. Output\[0\] has type float32\[\]"),
    (bad(lambda x_ref, o_ref: 3), r"should return None. It returns a PyTree: PyTreeDef\(\*\)"),
    (bad(grid=3, in_specs=[ROWS, ROWS], out_specs=ROWS),
     "Pytree for `in_specs` and `inputs` do not match. There are 1 mismatches"),
    (bad(grid=3, in_specs=[ROWS], out_specs=[ROWS]), "Pytree for `out_specs` and `out_shape`"),
    (bad(lambda x_ref, o_ref: o_ref.set(X)), r"captures constants \[f32\[6,8\]\]. You should pass"),
    (bad(input_output_aliases={1: 0}), r"'1:0' with input index 1 outside the range \[0, 1\)"),
    (bad(out=struct(2), input_output_aliases={0: 0}), "They share memory: give both one type"),
    (bad(out=3), "Invalid out_shape type: <class 'int'>. Give a jax.ShapeDtypeStruct"),
    (bad(grid=2, grid_spec=pl.GridSpec()), r"`grid` must be `\(\)`. It is 2"),
    (lambda: pl.program_id(0), "program_id: there is no grid here"),
    (bad(lambda x_ref, o_ref: o_ref.set(x_ref[...] + pl.program_id(1)), grid=2),
     r"Axis 1 is out of bounds for grid \(2,\)"),
    (lambda: pl.pallas_call(double, X)(X), "Only interpret mode is supported on CPU backend."),
]


@pytest.mark.parametrize(("run", "said"), MISTAKES, ids=range(len(MISTAKES)))
def test_mistakes(run, said):
    with pytest.raises(ValueError, match=said):
        run()
