"""Kernels as they are compiled for TPUs: their modules, and what has no form there."""

import functools
import re

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.core.evaluation import all_eqns
from pyjx.experimental import pallas as pl
from pyjx.experimental.pallas import mosaic_calls
from pyjx.experimental.pallas import tpu as pltpu
from pyjx.experimental.pallas.mosaic_calls import FORMULAS
from pyjx.runtime.costs import arithmetic
from tests.experimental.kernels import (
    KERNELS,
    X,
    agree,
    call,
    compiled,
    double,
    for_tpus,
    normal,
    pipeline,
    struct,
)


def formula(name):
    return FORMULAS[getattr(lax, f"{name}_p")]


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
        "func.func @main(%arg0: i32, %arg1: memref<8x128xf32, #tpu.memory_space<vmem>>, "
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

    assert "tpu_custom_call" in for_tpus(pl.pallas_call(kernel, out), x)


@pytest.mark.parametrize("name", ["erf", "erfc", "expm1", "tan"])
def test_formulas_of_kernels(name):
    x = jnp.concatenate([jnp.linspace(-4, 4, 2001), jnp.array([0.0, -0.0, 1e-6, -1e-3, 30, -30])])
    x = x[abs(abs(x) - np.pi / 2) > 0.1] if name == "tan" else x
    want = np.asarray(getattr(lax, name)(x))
    atol = 0 if name == "erfc" else 3e-7
    np.testing.assert_allclose(formula(name)(x[x < 9]), want[x < 9], 2e-5, atol)
    narrow = x.astype("bfloat16")
    np.testing.assert_array_equal(formula(name)(narrow), formula(name)(
        narrow.astype("float32")).astype("bfloat16"))


@pytest.mark.parametrize("name", ["acos", "asin", "atan", "cbrt", "erf_inv", "sinh"])
def test_formulas_of_inverse_functions(name):
    x = np.concatenate([np.linspace(-1, 1, 2001), [-0.0, 1e-6, -1e-3]]).astype("float32")
    if name in ("atan", "cbrt", "sinh"):
        x = np.concatenate([x * 30, x, np.float32([np.inf, -np.inf, 1e30, -1e-30, np.nan])])
        x = x[abs(x) < 88] if name == "sinh" else x
    want = np.asarray(getattr(lax, name)(x.astype("float64")))
    atol = 3e-7 if name == "acos" else 0
    np.testing.assert_allclose(formula(name)(jnp.asarray(x)), want, 2e-6, atol)


def test_the_formula_of_angles():
    edges = [0.0, -0.0, 1.0, -1.0, 1e-20, -1e30, np.inf, -np.inf, 0.3]
    y, x = [np.float32(v).ravel() for v in np.meshgrid(edges, edges)]
    got = formula("atan2")(jnp.asarray(y), jnp.asarray(x))
    np.testing.assert_allclose(got, np.arctan2(y, x), 1e-6)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(np.arctan2(y, x)))
    assert np.isnan(formula("atan2")(jnp.float32(np.nan), jnp.float32(1)))


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint32"])
@pytest.mark.parametrize("name", ["clz", "population_count"])
def test_formulas_of_bits(name, dtype):
    info = np.iinfo(dtype)
    x = jnp.asarray([0, 1, 2, 3, 77, info.max, info.min, info.max - 5], dtype)
    got = formula(name)(x)
    np.testing.assert_array_equal(got, getattr(lax, name)(x))
    assert got.dtype == dtype


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"])
def test_formulas_of_cumulative_operations(name, reverse):
    for x in (jnp.sin(jnp.arange(35.0)).reshape(5, 7), jnp.arange(7) - 3, jnp.ones((1, 3))):
        if name == "cumlogsumexp" and x.dtype == np.int32:
            continue
        for axis in range(x.ndim):
            got = formula(name)(x, axis=axis, reverse=reverse)
            np.testing.assert_allclose(got, getattr(lax, name)(x, axis, reverse), 1e-5)
            assert got.dtype == x.dtype


@pytest.mark.parametrize("x", [jnp.array([[3.0, 9.0, 3.0, -np.inf], [np.nan, 1.0, np.inf, 1.0]]),
                               jnp.array([[2, 7, 7, -1]]), jnp.full((1, 3), -np.inf)])
def test_the_formula_of_the_greatest(x):
    for got, want in zip(formula("top_k")(x, k=3, axis=1), lax.top_k(x, 3), strict=True):
        np.testing.assert_array_equal(got, want)


def test_pipelines_copy_blocks_one_program_ahead():
    far = pl.BlockSpec(memory_space=pl.ANY)
    run = functools.partial(pl.pallas_call, pipeline((2, 2), 8, 128, 128), struct(16, 128),
                            in_specs=[far, far], out_specs=far)
    x, y = jnp.ones((16, 256)), jnp.arange(256 * 128.0).reshape(256, 128) / 1e4
    (text,) = modules(run(), x, y)
    assert text.count("tpu.enqueue_dma") == 5 and text.count("tpu.wait_dma2") == 3
    watched = run(interpret=pltpu.InterpretParams(detect_races=True))(x, y)
    np.testing.assert_allclose(watched, x @ y, 1e-5)


def test_formulas_of_moves():
    x = jnp.arange(12.0).reshape(3, 4)
    config = [(1, 2, 0), (0, 1, 0)]
    np.testing.assert_array_equal(formula("pad")(x, 9.0, padding_config=config),
                                  lax.pad(x, 9.0, config))
    np.testing.assert_array_equal(formula("rev")(x, dimensions=(0, 1)), lax.rev(x, (0, 1)))
    with pytest.raises(NotImplementedError, match="pad takes no elements off"):
        formula("pad")(x, 9.0, padding_config=[(-1, 0, 0), (0, 0, 0)])


def test_bools_in_references():
    def kernel(m_ref, x_ref, o_ref, space_ref):
        space_ref[...] = m_ref[...] & (x_ref[...] > 0)
        o_ref[...] = space_ref[...]

    run = pl.pallas_call(kernel, struct(8, 128, dtype="bool"),
                         scratch_shapes=[pltpu.VMEM((8, 128), "bool")])
    (text,) = modules(run, jnp.ones((8, 128), bool), jnp.ones((8, 128)))
    assert text.count("memref<8x128xi32") >= 3 and "memref<8x128xi1" not in text
    assert text.count("arith.fptosi") == 2 and text.count("arith.cmpi ne") == 2
    outer = for_tpus(run, struct(8, 128, dtype="bool"), struct(8, 128))
    assert "(tensor<8x128xi32>, tensor<8x128xf32>) -> tensor<8x128xi32>" in outer


def test_grids_of_traced_sizes():
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] * pl.num_programs(1)

    def run(n, x):
        rows = pl.BlockSpec((8, 128), lambda j, i: (i, 0))
        return pl.pallas_call(kernel, x, grid=(1, n), in_specs=[rows], out_specs=rows,
                              input_output_aliases={0: 0})(x)

    (text,) = modules(run, 2, jnp.ones((16, 128)))
    assert "iteration_bounds = array<i64: 1, -9223372036854775808>" in text
    assert "tpu.iteration_bound 1 : i32" in text
    outer = for_tpus(run, struct(dtype="int32"), struct(16, 128))
    assert "(tensor<i32>, tensor<16x128xf32>) -> tensor<16x128xf32>" in outer
    assert "operand_index = 1" in outer  # the alias is of the array


def test_blocks_that_begin_at_any_element():
    both = pl.BlockSpec((pl.Element(8, (0, 2)), pl.Element(128)), lambda i: (4 * i, 0))
    (text,) = modules(pl.pallas_call(double, struct(32, 128), grid=4, in_specs=[both], out_specs=(
        pl.BlockSpec((8, 128), lambda i: (i, 0)))), jnp.ones((30, 128)))
    assert text.count("window_kind = #tpu.element_window<[0, 0],[2, 0]>") == 1


def test_maxima_of_unsigned_integers():
    (text,) = modules(pl.pallas_call(
        lambda x_ref, o_ref: o_ref.set(jnp.max(x_ref[...], 0, keepdims=True)),
        struct(1, 128, dtype="uint32")), jnp.ones((8, 128), "uint32"))
    assert "multi_reduction <maxsi>" in text and text.count("arith.xori") == 2
    assert "maxui" not in text


def test_formulas_of_tests_and_places():
    x = jnp.array([[1.0, 3.0, 3.0], [np.nan, 0.0, 5.0], [0.0, 0.0, 0.0]])
    for name in ("argmax", "argmin"):
        got = formula(name)(x, axes=(1,), index_dtype=np.dtype("int32"))
        np.testing.assert_array_equal(got, getattr(jnp, name)(x, 1))
    for name, f in (("reduce_or", jnp.any), ("reduce_and", jnp.all)):
        np.testing.assert_array_equal(formula(name)(x > 0, axes=(1,)), f(x > 0, 1))


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


def test_what_an_index_is_a_multiple_of_is_told_to_tpus():
    def kernel(at_ref, x_ref, o_ref):
        rows = pl.ds(pl.multiple_of(at_ref[0], 8), 8)
        o_ref[rows] = pl.reciprocal(x_ref[rows])

    run = pl.pallas_call(kernel, struct(32, 128))
    (text,) = modules(run, jnp.array([8]), jnp.ones((32, 128)))
    assert text.count("tpu.assume_multiple") == 1
    with pltpu.force_tpu_interpret_mode():
        out = run(jnp.array([8]), jnp.full((32, 128), 4.0))
    np.testing.assert_array_equal(out[8:16], np.full((8, 128), 0.25))
    assert pl.multiple_of(8, 8) == 8 and pl.multiple_of(jnp.int32(8), (2, 4)) == 8


def test_bools_are_compared_by_and_or_and_exclusive_or():
    def kernel(x_ref, y_ref, o_ref):
        x, y = x_ref[...] > 0, y_ref[...] > 0
        for k, compare in enumerate([lax.eq, lax.ne, lax.lt, lax.le, lax.gt, lax.ge]):
            o_ref[k] = jnp.where(compare(x, y), 1, 0)

    (text,) = modules(pl.pallas_call(kernel, struct(6, 8, 128, dtype="int32")),
                      jnp.ones((8, 128)), jnp.ones((8, 128)))
    ops = re.findall(r"arith.(cmpi|xori|andi)", text)
    assert ops.count("andi") == 4 and "cmpi" not in ops


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
    (call,) = eqn.primitive.holder.stands_for(eqn.params).eqns
    assert arithmetic(call).amounts == ((2048, 2048) if estimate is None else (7, 3))
    assert ("cost_estimate" in for_tpus(run, jnp.ones((16, 128)))) is (estimate is not None)


def test_compiled_kernels_have_no_derivative():
    with pytest.raises(NotImplementedError, match=r"kernel double has no .* by jax.custom_vjp"):
        jax.jit(jax.grad(lambda x: pl.pallas_call(double, x)(x).sum())).trace(X)


def test_kernels_are_compiled_for_tpus_alone():
    with pytest.raises(NotImplementedError, match="kernels are not compiled for cuda"):
        jax.jit(pl.pallas_call(double, X)).trace(X).lower(lowering_platforms=("cuda",))


def test_what_devices_send_to_each_other():
    mesh = jax.sharding.AbstractMesh((4, 2), ("x", "y"), (jax.sharding.AxisType.Auto,) * 2)

    def kernel(x_ref, o_ref, sent, came):
        barrier = pltpu.get_barrier_semaphore()
        left = {"x": lax.axis_index("x") - 1}
        pl.semaphore_signal(barrier, device_id=left)
        pl.semaphore_wait(barrier)
        pltpu.async_remote_copy(x_ref, o_ref, sent, came, left).wait()

    call = pl.pallas_call(kernel, struct(8, 128), scratch_shapes=[pltpu.SemaphoreType.DMA] * 2,
                          compiler_params=pltpu.CompilerParams(collective_id=3))
    both = jax.sharding.PartitionSpec(("x", "y"))
    closed = jax.make_jaxpr(jax.shard_map(call, mesh=mesh, in_specs=both, out_specs=both,
                                          check_vma=False))(jnp.ones((64, 128)))
    (params,) = [e.params for e in all_eqns(closed) if e.primitive is pl.pallas_call_p]
    lines = mosaic_calls.module_text(params, mesh).splitlines()
    (signal,) = [line for line in lines if "tpu.sem_signal" in line]
    (copy,) = [line for line in lines if "tpu.enqueue_dma" in line]
    assert " device_id %" in signal and "source_semaphore(%arg2" in copy and " device_id(%" in copy
    assert sum("tpu.wait_dma2" in line for line in lines) == 2
    assert sum("tpu.device_id" in line for line in lines) == 3
    assert any("tpu.sem_barrier" in line for line in lines)
    alone, whole = jax.sharding.Mesh(jax.devices()[:1], ("x",)), jax.sharding.PartitionSpec()
    text = for_tpus(jax.shard_map(call, mesh=alone, in_specs=whole, out_specs=whole,
                                  check_vma=False), jnp.ones((8, 128)))
    assert "has_communication" in text
