"""Kernels, interpreted: users' own kinds beside the same functions without kernels."""


import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.experimental import checkify
from pyjx.experimental import pallas as pl
from pyjx.experimental.pallas import tpu as pltpu
from tests.experimental.kernels import (
    KERNELS,
    ROWS,
    X,
    agree,
    call,
    compiled,
    double,
    normal,
    rng,
    softmax,
    struct,
)

# -- kernels of users' kinds -----------------------------------------------------------------------


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


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_bytes_are_split_and_joined(dtype):
    x = np.arange(256, dtype="uint8").astype(dtype)
    four, two = pltpu.split_bits(jnp.asarray(x), (4, 2))
    np.testing.assert_array_equal(four.astype("int32") & 15, x.astype("uint8") & 15)
    np.testing.assert_array_equal(two.astype("int32") & 3, x.astype("uint8") >> 4 & 3)
    got = pltpu.unpack_fp6(*pltpu.pack_fp6(jnp.asarray(x)))
    assert got.dtype == "int8"
    np.testing.assert_array_equal(got, x.astype("uint8") & 63)
    np.testing.assert_array_equal(pltpu.join_bits(two_bits=two), x.astype("uint8") >> 4 & 3)
    for run, said in ((lambda: pltpu.split_bits(X, (4,)), "Expected 8-bit array, got float32"),
                      (lambda: pltpu.split_bits(jnp.asarray(x), (3,)), "Unsupported bitwidth: 3"),
                      (lambda: pltpu.split_bits(jnp.asarray(x), (4, 4, 4)), "12 exceeds 8 bits"),
                      (pltpu.join_bits, "At least one bit segment"),
                      (lambda: pltpu.join_bits(four_bits=two), "of 4 bits are expected, got int2")):
        with pytest.raises(ValueError, match=said):
            run()


@pytest.mark.parametrize("place", ["source", "target"])
@pytest.mark.parametrize("watched", [False, True])
def test_one_of_several_references_is_copied(place, watched):
    def kernel(i_ref, x_ref, y_ref, a_ref, b_ref, sem):
        if place == "source":
            copy = pltpu.make_async_copy(pl.select_ref(i_ref[0], x_ref.at[1:3], y_ref.at[2:4]),
                                         a_ref.at[:2], sem)
        else:
            copy = pltpu.make_async_copy(x_ref, pl.select_ref(i_ref[0], a_ref, b_ref), sem)
        copy.start()
        copy.wait()

    run = pl.pallas_call(kernel, (X, X), input_output_aliases={1: 0, 2: 1}, scratch_shapes=[
        pltpu.SemaphoreType.DMA], interpret=pltpu.InterpretParams(detect_races=watched))
    for i in (0, 1, 5, -3):  # beyond the ends it is the end
        a, b = map(np.asarray, run(jnp.array([i]), X, X + 100))
        i = min(max(i, 0), 1)
        expected = [np.array(X), np.array(X + 100)]
        if place == "source":
            expected[0][:2] = X[1:3] if i == 0 else X[2:4] + 100
        else:
            expected[i] = np.asarray(X)
        np.testing.assert_array_equal([a, b], expected)
    with pytest.raises(ValueError, match=r"one shape and dtype are needed, got float32\[6, 8\], "):
        call(lambda x_ref, o_ref: pl.select_ref(0, x_ref, x_ref.at[:1]), X)(X)


def test_programs_show_memories():
    def kernel(x_ref, y_ref, o_ref, space_ref):
        o_ref[...] = x_ref[...]

    text = str(jax.make_jaxpr(pl.pallas_call(
        kernel, X, scratch_shapes=[pltpu.VMEM((8,), "float32")], interpret=True,
        in_specs=[pl.BlockSpec(), pl.BlockSpec(memory_space=pl.ANY)]))(X, X))
    assert ("{ lambda ; d:Ref<default>{f32[6,8]} e:Ref<any>{f32[6,8]} f:Ref<default>{f32[6,8]}\n"
            "          g:Ref<vmem>{f32[8]}. let") in text


def test_keys_are_operands():
    def kernel(key_ref, o_ref):
        o_ref[...] = jax.random.uniform(key_ref[...], o_ref.shape)

    key = jax.random.key(3)
    got = call(kernel, struct(2, 4))(pltpu.to_pallas_key(key))
    np.testing.assert_array_equal(got, jax.random.uniform(key, (2, 4)))
    with pytest.raises(NotImplementedError, match=r"an operand is key<fry>\[\], and kernels for"):
        jax.export.export(jax.jit(pl.pallas_call(kernel, struct(8, 128))), platforms=["tpu"])(key)


def test_sizes_are_numbers():
    (b,) = jax.export.symbolic_shape("b")
    with pytest.raises(NotImplementedError, match=r"args\[0\] is float32\[b,8\], and sizes in"):
        jax.export.export(jax.jit(call(double, X)))(struct(b, 8))
    with pytest.raises(NotImplementedError, match="sizes in kernels are numbers"):
        pl.pallas_export_experimental(True).__enter__()
    with pl.pallas_export_experimental(False):
        pass


def test_convolutions():
    x, k = jax.random.normal(jax.random.key(0), (2, 3, 9)), jnp.arange(24.0).reshape(4, 3, 2)
    expected = jax.lax.conv_general_dilated(x, k[:, :, ::-1], (2,), [(0, 0)]) + 1
    got = pltpu.conv(x, k, jnp.ones_like(expected), dimension_numbers=("NCH", "OIH", "NCH"),
                     window_strides=(2,), window_reversal=(True,))
    np.testing.assert_allclose(got, expected, rtol=1e-6)


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
    (bad(lambda x_ref, o_ref: pl.when(x_ref[0] > 0)(print)),
     r"when: the condition must be one bool, got one of the shape \(8,\). Choose elements by jnp"),
    (bad(lambda x_ref, o_ref: pl.loop(4, 0, step=-1)(print)), "step must be positive, got -1"),
    (lambda: jax.jit(lambda n: bad(grid=3, in_specs=[pl.BlockSpec((2, 8), lambda i: (n, 0))],
                                   out_specs=ROWS)())(1), "must not capture constants"),
    (bad(lambda x_ref, o_ref: pltpu.sync_copy(x_ref, o_ref.at[:, :4])),
     r"src_ref is float32\[6, 8\], and dst_ref float32\[6, 4\]. Copy as large a part"),
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
