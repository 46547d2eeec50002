"""Kernels, interpreted: users' own kinds beside the same functions without kernels."""

import functools

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.core.nested import all_eqns
from pyjx.experimental import checkify
from pyjx.experimental import pallas as pl
from pyjx.experimental.pallas import mosaic_calls
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


def test_functions_that_are_traced_in_kernels_know_their_grid():
    @jax.jit
    def place(x):
        return x + 10 * pl.program_id(0) + pl.num_programs(0)

    def kernel(x_ref, o_ref):
        o_ref[...] = place(x_ref[...])

    one = pl.BlockSpec((1,), lambda i: (i,))
    for n in (2, 3):
        run = call(kernel, struct(n), grid=n, in_specs=[one], out_specs=one)
        np.testing.assert_array_equal(run(jnp.zeros(n)), n + 10 * np.arange(n))


def test_words_hold_several_numbers():
    low, high = normal(3, 4), normal(3, 4)
    words = pltpu.pack_elementwise([low, high], packed_dtype=jnp.bfloat16)
    assert words.dtype == "uint32"
    for index, x in enumerate((low, high)):
        got = pltpu.unpack_elementwise(words, index=index, packed_dtype=jnp.bfloat16,
                                       unpacked_dtype="float32")
        np.testing.assert_array_equal(got, x.astype("bfloat16").astype("float32"))
    with pytest.raises(ValueError, match=r"must match the packing factor \(4\), got 2"):
        pltpu.pack_elementwise([low, high], packed_dtype="int8")
    with pytest.raises(ValueError, match="Only f32 -> bf16 and int -> int are supported"):
        pltpu.pack_elementwise([low] * 4, packed_dtype="int8")
    with pytest.raises(ValueError, match="Index 2 is out of bounds for packing factor 2"):
        pltpu.unpack_elementwise(words, index=2, packed_dtype=jnp.bfloat16,
                                 unpacked_dtype="float32")


def test_rounding_by_random_bits_is_right_on_average():
    bits = jnp.asarray(rng.integers(0, 2**32, 4000, dtype="uint32"))
    x = jnp.full(4000, -1.003)
    got = np.asarray(pltpu.stochastic_round(x, bits, target_dtype=jnp.bfloat16), "float32")
    assert {*got.tolist()} == {-1.0, -1.0078125}
    np.testing.assert_allclose(got.mean(), -1.003, atol=5e-4)
    ends = jnp.array([np.inf, -np.inf, np.nan])
    np.testing.assert_array_equal(pltpu.stochastic_round(
        ends, jnp.full(3, 0xFFFF, "uint32"), target_dtype=jnp.bfloat16).astype("float32"), ends)


@pytest.mark.parametrize(("equation", "sizes", "plain"), [
    ("a(bc)->abc", {"b": 2}, lambda x: x.reshape(6, 2, 4)),
    ("(ab)c->b(ac)", {"a": 3}, lambda x: x.reshape(3, 2, 8).swapaxes(0, 1).reshape(2, 24)),
    ("ab->(ba)", {}, lambda x: x.T.reshape(48))])
def test_axes_are_split_and_joined(equation, sizes, plain):
    np.testing.assert_array_equal(pltpu.einshape(equation, X, **sizes), plain(X))


@pytest.mark.parametrize(("equation", "sizes", "said"), [
    ("a(bc)->abc", {}, "Ambiguous split"), ("abc->abc", {}, "LHS has 3 groups but input has 2"),
    ("a(bc)->abd", {"b": 2}, "Unknown dimension d in RHS"), ("ab->a", {}, "has other axes behind"),
    ("a(bc)->abc", {"b": 3}, "Cannot split size 8 with known sizes 3")])
def test_mistakes_of_splits(equation, sizes, said):
    with pytest.raises(ValueError, match=said):
        pltpu.einshape(equation, X, **sizes)


def test_a_kernel_of_one_core():
    one = pltpu.TensorCoreMesh(axis_name="core", num_cores=1)
    assert pltpu.create_tensorcore_mesh("core", num_cores=1) == one
    assert dict(one.shape) == {"core": 1}

    @pl.kernel(out_type={"twice": X}, mesh=one, interpret=True,
               scratch_types=[pltpu.VMEM(X.shape, X.dtype)])
    def twice(x_ref, out_refs, space_ref):
        pltpu.touch(x_ref)
        pltpu.sync_copy(x_ref, space_ref)
        out_refs["twice"][...] = space_ref[...] * 2

    np.testing.assert_array_equal(twice(X)["twice"], X * 2)
    with pytest.raises(NotImplementedError, match="Kernels of one core are there"):
        pl.kernel(lambda: None, mesh=pltpu.TensorCoreMesh(axis_name="core", num_cores=2))


def test_a_context_interprets_all_kernels():
    with pytest.raises(ValueError, match="Only interpret mode"):
        pl.pallas_call(double, X)(X)
    with pltpu.force_tpu_interpret_mode():
        np.testing.assert_array_equal(pl.pallas_call(double, X)(X), X * 2)


# -- kernels for TPUs ------------------------------------------------------------------------------


def for_tpus(f, *args):
    """The StableHLO of a function with kernels; its compiler's bindings check their modules."""
    return jax.jit(f).trace(*args).lower(lowering_platforms=("tpu",)).as_text()


def compiled(kernel, *shapes, out=None, **options):
    args = [jax.ShapeDtypeStruct(shape, "float32") for shape in shapes]
    return for_tpus(pl.pallas_call(kernel, args[0] if out is None else out, **options), *args)


def test_kernels_of_users_kinds_have_forms_for_tpus(monkeypatch):
    monkeypatch.setitem(call.keywords, "interpret", False)
    for name, (kernel, args, _) in KERNELS.items():
        if name not in ("stencil", "histogram", "prefix sum", "top two", "pipelined"):
            text = for_tpus(lambda *args, kernel=kernel: kernel(*args), *args)
            assert "stablehlo.custom_call @tpu_custom_call" in text, name
            assert 'kernel_name = "kernel"' in text, name


def test_the_module_of_a_kernel():
    text = mosaic_calls.module_text(jax.make_jaxpr(pl.pallas_call(
        double, struct(16, 128), grid=(2,), in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0))))(jnp.ones((16, 128))).eqns[0].params)
    assert [line.split(" loc(")[0].strip() for line in text.splitlines()] == [
        "module @double {",
        "func.func @double(%arg0: i32, %arg1: memref<8x128xf32, #tpu.memory_space<vmem>>, "
        "%arg2: memref<8x128xf32, #tpu.memory_space<vmem>>) attributes {dimension_semantics = "
        "[#tpu.dimension_semantics<arbitrary>], scalar_prefetch = 0 : i64, scratch_operands = 0 : "
        "i64, tpu.core_type = #tpu.core_type<tc>, iteration_bounds = array<i64: 2>, window_params "
        "= [{transform_indices = @transform_0, window_bounds = array<i64: 8, 128>}, "
        "{transform_indices = @transform_1, window_bounds = array<i64: 8, 128>}]} {",
        "%1 = arith.constant 0 : index", "%2 = arith.constant 0 : index",
        "%3 = vector.load %arg1[%1, %2] : memref<8x128xf32, #tpu.memory_space<vmem>>, "
        "vector<8x128xf32>",
        "%4 = arith.constant 2.000000e+00 : f32",
        "%5 = vector.broadcast %4 : f32 to vector<8x128xf32>",
        "%6 = arith.mulf %3, %5 : vector<8x128xf32>",
        "%7 = arith.constant 0 : index", "%8 = arith.constant 0 : index",
        "tpu.vector_store %arg2[%7, %8], %6 {strides = array<i32>} : "
        "memref<8x128xf32, #tpu.memory_space<vmem>>, vector<8x128xf32>,",
        "return", "}",
        "func.func @transform_0(%arg0: i32) -> (i32, i32) {", "%1 = arith.constant 0 : i32",
        "return %arg0, %1 : i32, i32", "}",
        "func.func @transform_1(%arg0: i32) -> (i32, i32) {", "%1 = arith.constant 0 : i32",
        "return %arg0, %1 : i32, i32", "}", "}"]


@pytest.mark.parametrize("f", [
    jnp.abs, jnp.sign, jnp.round, lambda x: jnp.isfinite(x).astype(int), jax.nn.gelu,
    lambda x: jnp.isnan(x).astype(int), lambda x: lax.shift_left(x.astype(int), 40),
    lambda x: jnp.argmax(x > 0, 1)[:, None], lambda x: x ** x.astype(int), jax.nn.silu,
    jax.nn.softmax, jax.nn.log_softmax, jax.nn.elu, jnp.floor, jnp.rint, jnp.sin, jnp.tan,
    jnp.expm1, jnp.cumsum,
    lambda x: jnp.clip(x, -1, 1), lambda x: x ** 3, lambda x: x ** 0.5, lambda x: x @ x.T,
    lambda x: jnp.argmax(x, 1)[:, None],
    lambda x: jnp.any(x > 0, 1, keepdims=True).astype(int),
    lambda x: jnp.where(x > 0, x, -x), lambda x: jnp.roll(x, 1, 0), lambda x: x[:, :64],
    lambda x: jnp.concatenate([x, x], 1), lambda x: jnp.tile(x, (2, 1)), jnp.transpose,
    lambda x: x.astype("bfloat16").astype("float32"), lambda x: x + jnp.arange(128.0),
    lambda x: jax.nn.gelu(x, approximate=False), lambda x: x.astype(int) // 3 % 2,
    lambda x: jnp.max(x, 0, keepdims=True), lambda x: jnp.mean(x, 1, keepdims=True),
    lambda x: x.astype("bfloat16") @ x.astype("bfloat16").T, lambda x: x.reshape(4, 256),
    lambda x: lax.fori_loop(0, 3, lambda i, c: c * x + i, x),
    lambda x: lax.while_loop(lambda c: jnp.sum(c) < 9, lambda c: c + x, x),
    lambda x: lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x),
    lambda x: lax.switch(x[0, 0].astype(int), [jnp.sin, jnp.cos, jnp.abs], x)])
def test_operations_have_forms_for_tpus(f):
    x = struct(8, 128)
    out = jax.eval_shape(f, x)

    def kernel(x_ref, o_ref):
        o_ref[...] = f(x_ref[...])

    run = functools.partial(for_tpus, pl.pallas_call(kernel, out), x)
    if f is jnp.cumsum:
        with pytest.raises(NotImplementedError, match=r"'cumsum' of float32\[1024\] has no"):
            run()
    else:
        assert "tpu_custom_call" in run()


@pytest.mark.parametrize("name", ["erf", "erfc", "expm1", "tan"])
def test_formulas_of_kernels(name):
    x = jnp.concatenate([jnp.linspace(-4, 4, 2001), jnp.array([0.0, -0.0, 1e-6, -1e-3, 30, -30])])
    x = x[abs(abs(x) - np.pi / 2) > 0.1] if name == "tan" else x
    want = np.asarray(getattr(lax, name)(x))
    atol = 0 if name == "erfc" else 3e-7
    np.testing.assert_allclose(mosaic_calls.FORMULAS[name](x[x < 9]), want[x < 9], 2e-5, atol)
    narrow = x.astype("bfloat16")
    np.testing.assert_array_equal(mosaic_calls.FORMULAS[name](narrow), mosaic_calls.FORMULAS[name](
        narrow.astype("float32")).astype("bfloat16"))


def test_formulas_of_tests_and_places():
    x = jnp.array([[1.0, 3.0, 3.0], [np.nan, 0.0, 5.0], [0.0, 0.0, 0.0]])
    for name in ("argmax", "argmin"):
        got = mosaic_calls.FORMULAS[name](x, axes=(1,), index_dtype=np.dtype("int32"))
        np.testing.assert_array_equal(got, getattr(jnp, name)(x, 1))
    for name, f in (("reduce_or", jnp.any), ("reduce_and", jnp.all)):
        np.testing.assert_array_equal(mosaic_calls.FORMULAS[name](x > 0, axes=(1,)), f(x > 0, 1))


def test_copies_and_semaphores_for_tpus():
    def kernel(x_ref, o_ref, space_ref, sems, sem):
        rows = x_ref.at[pl.ds(8 * pl.program_id(0), 8)]
        copy = pltpu.make_async_copy(rows, space_ref, sems.at[1])
        copy.start()
        copy.wait()
        pl.semaphore_signal(sem, 2)
        pl.semaphore_wait(sem, 1)
        pl.run_scoped(lambda ref: ref.set(space_ref[...]), pltpu.VMEM((8, 128), "float32"))
        o_ref[...] = space_ref[...] * pl.semaphore_read(sem).astype("float32")

    options = {
        "grid": 2, "in_specs": [pl.BlockSpec(memory_space=pl.ANY)],
        "out_specs": pl.BlockSpec((8, 128), lambda i: (i, 0)),
        "scratch_shapes": [pltpu.VMEM((8, 128), "float32"), pltpu.SemaphoreType.DMA((2,)),
                           pltpu.SemaphoreType.REGULAR]}
    assert "tpu_custom_call" in compiled(kernel, (16, 128), **options)
    x = normal(16, 128)
    np.testing.assert_array_equal(call(kernel, x, **options)(x)[:8], x[:8])


TABLE = np.arange(1024.0, dtype="float32").reshape(8, 128) ** 2
NO_FORMS = [
    (lambda x_ref, o_ref: o_ref.set(jnp.sort(x_ref[...])), {}, "'sort' of float32\\[8,128\\] has"),
    (lambda x_ref, o_ref: o_ref.set(x_ref[...] + TABLE), {},
     "holds the array float32\\[8, 128\\]. Pass it as an argument."),
    (lambda x_ref, o_ref: o_ref.set(x_ref[...]), {
        "in_specs": [pl.BlockSpec(memory_space=pl.ANY)]}, "in ANY is neither read nor written"),
    (lambda x_ref, o_ref: o_ref.set(x_ref[...]), {
        "in_specs": [pl.BlockSpec((pl.Element(8), 128), lambda: (0, 0))]}, "begin at any element"),
    (lambda x_ref, o_ref: o_ref.set(lax.scan(lambda c, r: (c, r), 0, x_ref[...])[1]), {},
     "a scan in a kernel takes and gives no stacked arrays"),
    (lambda x_ref, o_ref: o_ref.set(jnp.dot(x_ref[...], x_ref[...].T, precision="high")),
     {"out": struct(8, 8)}, "products of the precision"),
    (lambda x_ref, o_ref: o_ref.set(x_ref[...] > 0), {"out": struct(8, 128, dtype="bool")},
     "references hold no bools"),
    (lambda x_ref, o_ref: o_ref.set(lax.reduce_precision(x_ref[...], 8, 7)), {},
     "'reduce_precision' of"),
]


def modules(run, *args):
    """The texts of the modules of a function's kernels."""
    return [mosaic_calls.module_text(eqn.params) for eqn in all_eqns(jax.make_jaxpr(run)(*args))
            if eqn.primitive is pl.pallas_call_p]


def test_copies_are_waited_for_where_they_were_begun():
    def kernel(x_ref, o_ref):
        pltpu.sync_copy(x_ref, o_ref, add=True)
        pltpu.sync_copy(x_ref, o_ref)

    (text,) = modules(pl.pallas_call(kernel, struct(8, 128)), jnp.ones((8, 128)))
    assert text.count("enqueue_dma") == text.count("wait_dma2") == 1
    out = call(lambda x_ref, o_ref: pltpu.sync_copy(x_ref, o_ref, add=True), X,
               input_output_aliases={0: 0})(X)
    np.testing.assert_array_equal(out, 2 * X)


def test_kernels_with_side_effects_stay():
    params = pltpu.CompilerParams(has_side_effects=True)
    run = pl.pallas_call(double, struct(8, 128), compiler_params=params)
    assert "tpu_custom_call" in for_tpus(lambda x: (run(x), x)[1], jnp.ones((8, 128)))


def test_batches_have_a_result_each_where_results_have_an_arguments_memory(monkeypatch):
    def kernel(w_ref, x_ref, o_ref):
        o_ref[0] = x_ref[0] + w_ref[0]

    run = pl.pallas_call(kernel, struct(8, 128), input_output_aliases={1: 0})
    text = for_tpus(jax.vmap(run, (0, None)), jnp.ones((3, 8, 128)), jnp.ones((8, 128)))
    assert "output_operand_alias" in text and "tensor<3x8x128xf32>) -> tensor<3x8x128xf32>" in text


@pytest.mark.parametrize("interpret", [True, False])
def test_wide_types_change_nothing_of_a_grid(interpret):
    def kernel(x_ref, o_ref):
        @pl.when(pl.program_id(0) == 1)
        def _():
            o_ref[...] = x_ref[...] * 2

        @pl.loop(0, 2)
        def _(i):
            o_ref[pl.ds(i, 1)] = x_ref[pl.ds(i, 1)]

    rows = pl.BlockSpec((8, 128), lambda i: (i, 0))
    run = pl.pallas_call(kernel, struct(16, 128), grid=2, in_specs=[rows], out_specs=rows,
                         interpret=interpret)
    with jax.enable_x64(True):
        x = jnp.ones((16, 128), "float32")
        if interpret:
            np.testing.assert_array_equal(run(x)[8:], [[1] * 128] * 2 + [[2] * 128] * 6)
        else:
            assert "tpu_custom_call" in for_tpus(run, x)


def test_sizes_and_indices_of_other_integers():
    table = np.array([20, 1], "uint8")

    def kernel(table_ref, x_ref, o_ref):
        o_ref[...] = x_ref[...]

    spec = pltpu.PrefetchScalarGridSpec(
        1, grid=(2,), in_specs=[pl.BlockSpec((32,), lambda i, table_ref: (table_ref[i],))],
        out_specs=pl.BlockSpec((32,), lambda i, table_ref: (i,)))
    x = jnp.arange(704.0)
    out = call(kernel, struct(64), grid_spec=spec)(table, x)
    np.testing.assert_array_equal(out, np.r_[640:672, 32:64])

    def counted(n):
        return call(lambda o_ref: o_ref.set(1, pl.program_id(0)), struct(3, dtype="int32"),
                    grid=(n,))()

    np.testing.assert_array_equal(jax.jit(counted)(np.uint32(2))[:2], [1, 1])


def test_pipelines_of_elements():
    def kernel(x_ref, o_ref):
        def body(a_ref, b_ref):
            b_ref[...] = a_ref[...]

        pltpu.emit_pipeline(
            body, grid=(3,), in_specs=[pl.BlockSpec((pl.Element(2),), lambda i: (i,))],
            out_specs=[pl.BlockSpec((2,), lambda i: (i,))])(x_ref, o_ref)

    np.testing.assert_array_equal(call(kernel, struct(6))(jnp.arange(6.0)), [0, 1, 1, 2, 2, 3])


@pytest.mark.parametrize(("kernel", "options", "said"), NO_FORMS, ids=range(len(NO_FORMS)))
def test_what_has_no_form_for_tpus(kernel, options, said):
    with pytest.raises(NotImplementedError, match=f"pallas_call for TPU: .*{said}"):
        compiled(kernel, (8, 128), **options)


def test_batches_of_compiled_kernels_are_one_kernel(monkeypatch):
    """The one of all examples, interpreted, gives what a batch gives."""
    for name in ("product", "attention", "softmax"):
        kernel, args, _ = KERNELS[name]
        monkeypatch.setitem(call.keywords, "interpret", False)
        several = [jnp.stack([x, 2 * x]) for x in args[:1]] + list(args[1:])
        places = [0] + [None] * len(args[1:])
        traced = jax.make_jaxpr(jax.vmap(lambda *xs, kernel=kernel: kernel(*xs), places))(*several)
        (eqn,) = traced.eqns
        assert eqn.params["grid_mapping"].grid[0] == 2
        outs = eqn.primitive.bind(*several, **{**eqn.params, "interpret": True})
        monkeypatch.setitem(call.keywords, "interpret", True)
        agree(outs[0], jax.vmap(kernel, places)(*several))
        text = for_tpus(lambda *xs, traced=traced: jax.core.eval_jaxpr(
            traced.jaxpr, traced.consts, *xs), *several)
        assert text.count("@tpu_custom_call") == 1


@pytest.mark.parametrize("estimate", [None, pl.CostEstimate(7, 3, 5)])
def test_costs_of_compiled_kernels(estimate):
    rows = pl.BlockSpec((8, 128), lambda i: (i, 0))
    run = pl.pallas_call(lambda x_ref, o_ref: o_ref.set(jnp.exp(2 * x_ref[...])), struct(16, 128),
                         grid=2, in_specs=[rows], out_specs=rows, cost_estimate=estimate)
    (eqn,) = jax.make_jaxpr(run)(jnp.ones((16, 128))).eqns
    cost = eqn.primitive.holder.stands_for(eqn.params).eqns[0].params["cost"]
    assert cost == ((2048, 2048) if estimate is None else (7, 3))
    assert ("cost_estimate" in for_tpus(run, jnp.ones((16, 128)))) is (estimate is not None)


def test_compiled_kernels_have_no_derivative():
    with pytest.raises(NotImplementedError, match=r"kernel double has no .* by jax.custom_vjp"):
        jax.jit(jax.grad(lambda x: pl.pallas_call(double, x)(x).sum())).trace(X)


def test_kernels_are_compiled_for_tpus_alone():
    with pytest.raises(NotImplementedError, match="kernels are not compiled for cuda"):
        jax.jit(pl.pallas_call(double, X)).trace(X).lower(lowering_platforms=("cuda",))


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
    (lambda: jax.jit(lambda y: call(lambda x_ref, o_ref: o_ref.set(y), X)(X))(X),
     r"captures constants \[f32\[6,8\]\]. You should pass"),
    (bad(input_output_aliases={1: 0}), r"'1:0' with input index 1 outside the range \[0, 1\)"),
    (bad(out=struct(2), input_output_aliases={0: 0}), "They share memory: give both one type"),
    (bad(out=3), "Invalid out_shape type: <class 'int'>. Give a jax.ShapeDtypeStruct"),
    (bad(grid=2, grid_spec=pl.GridSpec()), r"`grid` must be `\(\)`. It is 2"),
    (lambda: pl.program_id(0), "program_id: there is no grid here"),
    (bad(lambda x_ref, o_ref: o_ref.set(x_ref[...] + pl.program_id(1)), grid=2),
     r"Axis 1 is out of bounds for grid \(2,\)"),
    (lambda: pl.pallas_call(double, X)(X), "Only interpret mode is supported on CPU backend."),
    (bad(lambda x_ref, o_ref: pl.loop(4, 0, step=-1)(print)), "step must be positive, got -1"),
    (lambda: jax.jit(lambda n: bad(grid=3, in_specs=[pl.BlockSpec((2, 8), lambda i: (n, 0))],
                                   out_specs=ROWS)())(1), "must not capture constants"),
    (lambda: pltpu.roll(X, 1, 0, stride=1), "given both or none"),
    (lambda: compiled(double, (16, 128), in_specs=[pl.BlockSpec((8, 128), lambda: (1, 0))],
                      out_specs=pl.BlockSpec((8, 128), lambda: (1, 0)), out=struct(16, 128)),
     "without a grid each block is the whole array"),
    (lambda: compiled(double, (16, 128), grid=1, compiler_params=pltpu.CompilerParams(
        dimension_semantics=("parallel", "arbitrary"))), "the grid has 1. Give one for each"),
]


@pytest.mark.parametrize(("run", "said"), MISTAKES, ids=range(len(MISTAKES)))
def test_mistakes(run, said):
    with pytest.raises(ValueError, match=said):
        run()
