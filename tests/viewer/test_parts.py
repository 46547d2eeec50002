"""Functions and scopes: those of the user's program in each ranking, whatever XLA calls its own."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import configuration, lax
from pyjx.experimental import pallas as pl
from pyjx.viewer.document import program
from tests.eight import elsewhere, needs_eight, run_with_eight
from tests.viewer.test_ranking import HLO, parts

MATRIX = jax.ShapeDtypeStruct((64, 64), np.float32)
COLUMNS, ROWS = jax.P(None, "x"), jax.P("x", None)


def document(fun, *args, outline="off", **options):
    with configuration.outline(outline), configuration.cache(False):
        traced = jax.jit(fun).trace(*args)
        lowered = traced.lower()
        return program(jaxpr=traced.jaxpr, stablehlo=lowered.as_text(debug_info=True),
                       hlo=lowered.compile().as_text(), **options)


def ends(found, by):
    """The amounts of parts by their last names."""
    return {path.rpartition("/")[2].rpartition(".")[2]: amount
            for path, amount in parts(found, by).items()}


def row_of(found, by, name):
    """The text of the row that a part leads to."""
    labels = [found["strings"][n].rpartition(".")[2] for n in found["scopes"]["label"]]
    (row,) = [row for node, _, row in found["costs"][by]["parts"] if labels[node] == name]
    return found["forms"][0]["text"].split("\n")[row]


def sharded(f, given, made):
    mesh = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    return jax.shard_map(f, mesh=mesh, in_specs=given, out_specs=made, check_vma=False)


def block(w, x):
    for i in range(8):
        x = jnp.sin(x @ w) + float(i) * x
    return x


def layers(w, x, end=lambda x: x):
    for i in range(6):
        with jax.named_scope(f"layer_{i}"):
            x = end(block(w, x))
    return x


@pytest.mark.parametrize("outline", ["on", "off"])
def test_repeated_layers_make_arrays_each(outline):
    """To XLA they are one function, with the names of one of them."""
    found = document(layers, MATRIX, MATRIX, outline=outline)
    amounts = ends(found, "array")
    assert [amounts.get(f"layer_{i}") for i in range(6)] == [64 * 64 * 4] * 6


@needs_eight
@pytest.mark.parametrize("outline", ["on", "off"])
def test_what_crosses_is_of_each_layer(outline):
    def network(w, x):
        return layers(w, x, lambda x: x - lax.pmean(x, "x"))

    found = document(sharded(network, (jax.P(), ROWS), ROWS), MATRIX, MATRIX, outline=outline)
    amounts = ends(found, "crossing")
    assert [amounts.get(f"layer_{i}") for i in range(6)] == pytest.approx([8 * 64 * 4] * 6)
    assert "psum" in row_of(found, "crossing", "layer_5")


@needs_eight
def test_what_crosses_as_a_tuple_is_of_the_function_that_moves_it():
    def turned(x):
        return lax.all_to_all(x, "x", 1, 0, tiled=True)

    found = document(sharded(turned, (ROWS,), ROWS), MATRIX)
    assert ends(found, "crossing")["turned"] == 8 * 64 * 4
    assert "all_to_all" in row_of(found, "crossing", "turned")


@needs_eight
def test_what_crosses_for_other_shardings_is_of_the_function_too():
    mesh = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))

    def resharded(x):
        y = lax.with_sharding_constraint(x * 2, jax.NamedSharding(mesh, ROWS))
        return lax.with_sharding_constraint(jnp.sin(y), jax.NamedSharding(mesh, COLUMNS)) + 1

    found = document(resharded, MATRIX)
    whole = sum(row[2] for row in found["costs"]["crossing"]["lines"])
    assert ends(found, "crossing")["resharded"] == whole > 0


@elsewhere
def test_with_eight_devices():
    run_with_eight(__file__, "-k", "crosses")


def test_what_xla_makes_of_two_operations_is_in_the_scope_of_one():
    """It has the names of both."""
    text = HLO.replace('op_name="jit(f)/neg"', 'op_name="jit(f)/second/neg;jit(f)/first/abs"')
    found = program(hlo=text)
    assert set(ends(found, "array")) == {"second", ""}
    name = found["forms"][0]["name"][found["forms"][0]["text"].split("\n").index(
        "ROOT %h = f32[64]{0} negate(%g)")]
    assert found["strings"][name] == "jit(f)/second/neg"


def test_arrays_without_names_in_hlo_are_of_the_functions_of_their_lines():
    """An older XLA gives its operations the file and the line alone."""
    def inner(x):
        return jnp.sin(x @ x)

    line = inner.__code__.co_firstlineno + 1
    text = f"""HloModule m, is_scheduled=true

ENTRY %main (a: f32[64,64]) -> f32[64,64] {{
  %a = f32[64,64] parameter(0)
  %d = f32[64,64] dot(%a, %a), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, \
metadata={{op_name="jit(f)/dot_general" source_file="{__file__}" source_line={line}}}
  ROOT %s = f32[64,64] sine(%d)
}}
"""
    found = program(jaxpr=jax.make_jaxpr(lambda x: inner(x))(jnp.ones((64, 64))), hlo=text)
    assert ends(found, "array")["inner"] == 64 * 64 * 4
    assert ends(found, "time")["inner"] == pytest.approx(1.0)


def test_a_small_array_is_not_as_large_as_its_relatives():
    """Layers of different sizes are one line, whose operations are relatives of all."""
    def network(ws, x):
        for i, w in enumerate(ws):
            with jax.named_scope(f"layer_{i}"):
                x = jnp.tanh(x @ w)
        return x

    widths = [16, 64, 32, 16]
    found = document(network, [jax.ShapeDtypeStruct(s, np.float32) for s in pairwise(
        widths)], jax.ShapeDtypeStruct((8, 16), np.float32))
    amounts = ends(found, "array")
    assert [amounts[f"layer_{i}"] for i in range(3)] == [8 * 4 * n for n in widths[1:]]


@pytest.mark.parametrize("interpret", [True, "code"])
def test_a_kernel_is_of_the_function_that_calls_it(interpret):
    rows = pl.BlockSpec((16, 64), lambda i: (i, 0))

    def kernel(x, y):
        y[...] = jnp.tanh(x[...]) * 2.0

    def called(x):
        return pl.pallas_call(kernel, grid=(4,), in_specs=[rows], out_specs=rows, out_shape=MATRIX,
                              interpret=interpret is True)(x)

    def whole(x):
        return called(x) + 1.0

    traced = jax.jit(whole).trace(MATRIX)
    if interpret is True:
        with configuration.cache(False):
            hlo = traced.lower().compile().as_text()
    else:
        line = called.__code__.co_firstlineno + 1
        hlo = f"""HloModule m, is_scheduled=true

ENTRY %main (a: f32[64,64]) -> f32[64,64] {{
  %a = f32[64,64] parameter(0)
  ROOT %k = f32[64,64] custom-call(%a), custom_call_target="tpu_custom_call", \
metadata={{op_name="jit(whole)/pallas_call" source_file="{__file__}" source_line={line}}}
}}
"""
    found = program(jaxpr=traced.jaxpr, hlo=hlo)
    for by in ("time", "array"):
        assert ends(found, by)["called"] > 0.6 * ends(found, by)["whole"] > 0
        assert "" not in ends(found, by)


def test_scopes_with_slashes_and_calls_in_their_names():
    def encoder(x):
        with jax.named_scope("encoder/layer0"):
            x = jnp.sin(x @ x)
        with jax.named_scope("encoder/layer1"):
            x = jnp.sin(x @ x)
        with jax.named_scope("f(x)"):
            return jnp.sum(x @ x)

    for fun in (encoder, jax.grad(encoder)):
        paths = [path.partition(".encoder/")[2] for path in parts(document(fun, MATRIX))]
        assert {"encoder", "encoder/layer0", "encoder/layer1", "f(x)"} <= set(paths)


def test_operations_that_become_others_are_no_scopes_of_text():
    def power(w, x):
        with jax.named_scope("scope"):
            y = (x @ w) ** 3
        with jax.named_scope("svd"):
            return y @ w

    jnp.linalg.svd(jnp.eye(3))  # what else the process has done does not count
    with configuration.cache(False):
        lowered = jax.jit(power).lower(MATRIX, MATRIX)
        found = program(stablehlo=lowered.as_text(debug_info=True),
                        hlo=lowered.compile().as_text())
    assert {"scope", "svd"} <= {*ends(found, "time")} - {"integer_pow"} == {*ends(found, "time")}


def test_nothing_is_ranked_where_sizes_are_symbols():
    n, = jax.export.symbolic_shape("n")
    traced = jax.jit(lambda x: jnp.sum(x * 2)).trace(jax.ShapeDtypeStruct((n, 4), np.float32))
    found = program(jaxpr=traced.jaxpr, stablehlo=traced.lower().as_text(debug_info=True))
    assert all(table == [] for by in found["costs"].values() for table in by.values())
