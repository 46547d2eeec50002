"""Forms of programs as rows: text, nesting, cost, links, memory."""

from __future__ import annotations

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import configuration, export, lax
from pyjx.experimental import pallas as pl
from pyjx.lax.windows import select_and_scatter_p
from pyjx.sharding import AbstractMesh, AxisType
from pyjx.sharding import PartitionSpec as P
from pyjx.viewer.document import program
from pyjx.viewer.graphs import call_graph, dot
from pyjx.viewer.hlo import FREE, hlo_listing
from pyjx.viewer.jaxprs import jaxpr_listing
from pyjx.viewer.links import links, signature
from pyjx.viewer.listing import HEAD, UNKNOWN, Listing, Places
from pyjx.viewer.memory import memory
from pyjx.viewer.ranking import arrays
from pyjx.viewer.stablehlo import stablehlo_listing


def model(x, y):
    x, sums = jax.lax.scan(lambda c, _: (jnp.sin(c) * y, jnp.sum(c)), x, None, length=3)
    x = jax.lax.cond(sums[0] > 0, lambda a: a + 1, lambda a: a @ a, x)
    return jax.lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] @ s[1]), (0, x))[1]


@pytest.fixture(scope="module")
def forms() -> tuple[list[Listing], Places]:
    traced = jax.jit(model).trace(jnp.ones((4, 4)), 2.0)
    lowered = traced.lower()
    places = Places()
    with configuration.cache(False):  # an entry names the sources of who made it
        hlo = lowered.compile().as_text()
    return [jaxpr_listing(traced.jaxpr, places),
            stablehlo_listing(lowered.as_text(debug_info=True), places),
            hlo_listing(hlo, places, "HLO")], places


def row_of(listing: Listing, operation: str) -> int:
    return listing.operation.index(operation)


def test_each_form_has_its_functions_and_operations(forms):
    listings, _ = forms
    for listing, wanted in zip(listings, ("dot_general", "stablehlo.dot_general", "dot"),
                               strict=True):
        assert listing.kind[0] == HEAD and listing.depth[0] == 0
        assert wanted in listing.operation
        assert all(o < row for row, read in enumerate(listing.operands) for o in read)


def root(x_ref, out_ref):
    out_ref[...] = jnp.sqrt(x_ref[...]) * 2.0


@pytest.mark.parametrize("size", [1, 4, 32])
def test_kernels_count_as_often_as_the_grid_says(size):
    rows = pl.BlockSpec((8, 128), lambda i: (i, 0))
    x = jnp.ones((8 * size, 128))
    for interpret in (True, False):
        call = pl.pallas_call(root, out_shape=x, interpret=interpret, grid=size, in_specs=[rows],
                              out_specs=rows)
        listing = jaxpr_listing(jax.jit(call).trace(x).jaxpr, Places())
        assert listing.flops[0] == 2 * 8 * 128 * size
        assert listing.traffic[0] == 2 * 8 * 128 * 4 * size  # what is between stays in the kernel


def test_of_what_runs_on_several_devices_one_counts():
    mesh = AbstractMesh((4,), ("i",), (AxisType.Auto,))
    shards = jax.shard_map(jnp.sin, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
    form = program(jaxpr=jax.make_jaxpr(shards)(jnp.ones(8)))["forms"][0]
    assert (form["flops"][0], form["devices"], form["byOne"]) == (2, 4, "shard_map")
    assert program(jaxpr=jax.make_jaxpr(jnp.sin)(jnp.ones(8)))["forms"][0]["devices"] == 1


def test_of_symbolic_sizes_nothing_is_known():
    """Neither of their operations nor of what holds and calls them."""
    def f(x):
        inner = jax.jit(lambda x: x @ jnp.ones((4, 2)))
        return (lax.cond(jnp.array(True), inner, lambda x: x[:, :2], x).sum() + inner(x).sum(),
                jnp.sin(jnp.ones(3)))

    x = jax.ShapeDtypeStruct(export.symbolic_shape("n, 4"), "float32")
    traced = jax.jit(f).trace(x)
    known = program(jaxpr=traced.jaxpr, stablehlo=traced.lower().as_text())
    for form in known["forms"]:
        rows = dict(zip([known["strings"][i] for i in form["operation"]],
                        zip(form["flops"], form["traffic"], strict=True), strict=True))
        prefix = "" if form["title"] == "jaxpr" else "stablehlo."
        sine = rows["sin" if form["title"] == "jaxpr" else "stablehlo.sine"]
        assert sine == (3, 24) and form["unsized"] and not any(form["share"])
        assert rows[f"{prefix}dot_general"] == (-1, -1) and form["flops"][0] == -1
        assert not prefix or rows["stablehlo.case"] == (-1, -1)
        assert min(form["graph"]["flops"]) == -1
    assert not known["costs"]["time"]["lines"] and "not known FLOPs" in dot(
        traced.jaxpr, calls=True)
    sized = program(jaxpr=jax.make_jaxpr(f)(jnp.ones((3, 4))))["forms"][0]
    assert not sized["unsized"] and min(sized["flops"]) >= 0


@pytest.mark.parametrize(("f", "n"), [
    (lambda x: lax.reduce_window(x, 0.0, lax.add, (3,), (1,)), 98 * 2),
    (lambda x: lax.reduce_window(x, 0.0, lambda a, b: a + b * 2, (3,), (1,)), 98 * 2 * 2),
    (lambda x: lax.reduce_window(x, 0.0, lax.add, (199,), (1,), ((99, 99),)), 99),
    (lambda x: lax.reduce_window(x, 0.0, lax.add, (199,), (1,), ((99, 99),)).sum(), 99 + 99),
    (lambda x: lax.reduce(x, 0.0, lambda a, b: a + b * 2, (0,)), 99 * 2),
    (lambda x: lax.reduce(x[:0], 0.0, lambda a, b: a + b * 2, (0,)), 0),
    (jnp.sum, 99), (jnp.max, 99)])
def test_all_forms_count_what_combines_elements(f, n):
    traced = jax.jit(f).trace(jnp.ones(100))
    lowered = traced.lower()
    listings = [jaxpr_listing(traced.jaxpr, Places()),
                stablehlo_listing(lowered.as_text(), Places()),
                hlo_listing(lowered.compile().as_text(), Places(), "HLO")]
    # XLA may sum parts of an array first, each padded to one size
    assert [listing.flops[0] for listing in listings] == [n, n, pytest.approx(n, rel=0.3)]


def test_each_function_of_an_operation_counts_as_often_as_that_one_runs():
    preferred = jax.make_jaxpr(lambda a, b: a * 2 >= b + 1)(1.0, 1.0)
    added = jax.make_jaxpr(lambda a, b: a + b * 2)(1.0, 1.0)

    def f(x):
        return select_and_scatter_p.bind(
            x, jnp.ones((14, 14)), jnp.float32(0), select_jaxpr=preferred, select_consts=(),
            scatter_jaxpr=added, scatter_consts=(), window_dimensions=(3, 3),
            window_strides=(1, 1), padding=((0, 0), (0, 0)))

    traced = jax.jit(f).trace(jnp.ones((16, 16)))
    lowered = traced.lower()
    for listing in (jaxpr_listing(traced.jaxpr, Places()),
                    stablehlo_listing(lowered.as_text(), Places()),
                    hlo_listing(lowered.as_text("hlo"), Places(), "HLO")):
        assert listing.flops[0] == 14 * 14 * (8 * 3 + 2)
    assert traced.cost().total.flops == 14 * 14 * (8 * 3 + 2)


@pytest.mark.parametrize("f", [
    lambda x: x.at[jnp.array([1, 1, 2])].add(1.0), lambda x: x.at[jnp.array([1, 2])].set(1.0),
    lambda x: x.at[jnp.array([1, 2])].apply(lambda v: jnp.sin(v) * 2 + 1), lax.cumlogsumexp,
    jax.grad(lambda x: jnp.sum(jnp.sort(x) * lax.cummax(x))), jax.checkpoint(jnp.tanh)])
def test_jaxprs_count_as_cost_does(f):
    traced = jax.jit(f).trace(jnp.ones(100))
    total = traced.cost().total
    assert jaxpr_listing(traced.jaxpr, Places()).flops[0] == total.flops + total.transcendentals


def test_sums_over_devices_add_each_of_their_operands():
    listing = hlo_listing("""HloModule m

%sum (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %z = f32[] add(%x, %y)
}

ENTRY %main (a: f32[64], b: f32[8]) -> (f32[64], f32[8]) {
  %a = f32[64]{0} parameter(0)
  %b = f32[8]{0} parameter(1)
  ROOT %g = (f32[64]{0}, f32[8]{0}) all-reduce(%a, %b), replica_groups={}, to_apply=%sum
}
""", Places(), "HLO")
    assert listing.flops[0] == 64 + 8


def test_bodies_lie_below_their_operation(forms):
    (jaxpr, stablehlo, hlo), _ = forms
    for listing, loop, inside in ((jaxpr, "scan", "sin"),
                                  (stablehlo, "stablehlo.while", "stablehlo.sine")):
        row = row_of(listing, loop)
        assert row < row_of(listing, inside) < listing.ends()[row]
    loop = row_of(hlo, "while")
    assert "fusion" in hlo.operation[loop:hlo.ends()[loop]]


def test_loops_count_as_often_as_they_run(forms):
    (jaxpr, stablehlo, _), _ = forms
    assert jaxpr.flops[row_of(jaxpr, "scan")] == 3 * (16 + 16 + 15)
    assert jaxpr.flops[row_of(jaxpr, "cond")] == 2 * 4**3  # the dearest branch
    assert stablehlo.flops[row_of(stablehlo, "stablehlo.case")] == 2 * 4**3
    assert jaxpr.flops[row_of(jaxpr, "dot_general")] == 2 * 4**3
    never = jaxpr_listing(jax.make_jaxpr(lambda x: jax.lax.fori_loop(
        0, 0, lambda i, c: jnp.sin(c), x))(jnp.ones(3)), Places())
    assert never.flops[0] == 0


def test_operations_of_one_origin_are_linked(forms):
    listings, places = forms
    linked = [groups for groups, _ in links(listings, places)]
    for names in (("sin", "stablehlo.sine", "sine"),
                  ("dot_general", "stablehlo.dot_general", "dot")):
        found = [{numbers[row] for row, operation in enumerate(listing.operation)
                  if operation == name} - {UNKNOWN}
                 for listing, numbers, name in zip(listings, linked, names, strict=True)]
        assert found[0] and found[0] == found[1] and found[2] <= found[0]
        assert found[2], names


def normed(x):
    return x / jnp.sqrt(jnp.sum(x * x))


def test_callers_tell_operations_of_one_line_apart():
    traced = jax.jit(lambda x: normed(normed(x) + 1.0)).trace(jnp.ones(4))
    places = Places()
    listings = [jaxpr_listing(traced.jaxpr, places),
                stablehlo_listing(traced.lower().as_text(debug_info=True), places)]
    linked = [groups for groups, _ in links(listings, places)]
    roots = [[numbers[row] for row, name in enumerate(listing.operation) if "sqrt" in name]
             for listing, numbers in zip(listings, linked, strict=True)]
    assert roots[0] == roots[1] and len(set(roots[0])) == 2
    inner = jax.jit(normed)  # written once
    traced = jax.jit(lambda x: inner(inner(x) + 1.0)).trace(jnp.ones(4))
    listings = [jaxpr_listing(traced.jaxpr, places),
                stablehlo_listing(traced.lower().as_text(debug_info=True), places)]
    first, second = (
        {numbers[row] for row, name in enumerate(listing.operation) if "sqrt" in name}
        for listing, (numbers, _) in zip(listings, links(listings, places), strict=True))
    assert first == second != {UNKNOWN}


def test_places_are_those_of_the_source(forms):
    listings, places = forms
    line = model.__code__.co_firstlineno + 1
    for listing, name in zip(listings, ("sin", "stablehlo.sine", "sine"), strict=True):
        position = places.position(listing.place[row_of(listing, name)])
        assert position is not None and position[:2] == (__file__, line)


def test_names_are_those_of_the_printed_jaxpr():
    block = jax.jit(lambda x: jnp.tanh(x) * 2)
    closed = jax.make_jaxpr(lambda x: block(block(x)) + block(x))(1.0)
    listing = jaxpr_listing(closed, Places())
    printed = " ".join(str(closed).split())
    for text, operation in zip(listing.text, listing.operation, strict=True):
        if operation and operation != "jit":
            assert text in printed, text
    calls = [row for row, name in enumerate(listing.operation) if name == "jit"]
    assert len(calls) == 3 and len({tuple(listing.calls[row]) for row in calls}) == 1


def test_signature_is_what_stands_behind_the_last_jit():
    assert signature("jit(f)/jvp(block)/jit(f)/transpose(jvp())/mul") == ("mul", "transpose jvp")
    assert signature("jit(f)/while/body/sin") == ("sin", "")
    assert signature("sin") == ("sin", "")
    assert signature("jit(step)/transpose(jvp(block))") == ("block", "transpose jvp")


HLO = """HloModule m, is_scheduled=true

%double (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  ROOT %sum = f32[8]{0} add(%p, %p)
}

ENTRY %main (a: f32[8], b: f32[8]) -> f32[8] {
  %a = f32[8]{0} parameter(0)
  %b = f32[8]{0} parameter(1)
  %c = f32[8]{0} call(%a), to_apply=%double, metadata={op_name="jit(f)/{a}" source_file="f.py" \
source_line=7}
  %d = f32[16]{0} concatenate(%b, %c), dimensions={0}
  %t = (f32[8]{0}, f32[16]{0}) tuple(%c, %d)
  %e = f32[16]{0} get-tuple-element(%t), index=1
  %f = f32[8]{0} slice(%e), slice={[0:8]}
  ROOT %g = f32[8]{0} call(%f), to_apply=%double
}
"""


def test_hlo_text():
    places = Places()
    listing = hlo_listing(HLO, places, "HLO")
    assert listing.text[0].startswith("ENTRY %main")  # the entry comes first
    call = listing.operation.index("call")
    assert listing.name[call] == "jit(f)/{a}" and places.position(listing.place[call]) == (
        "f.py", 7, 0)
    assert "metadata" not in listing.text[call]
    (head,) = listing.calls[call]
    assert listing.name[head] == "double" and listing.flops[call] == 8
    assert listing.flops[0] == 16
    assert call_graph(listing).edges == [(0, 1, 2)]


def test_memory_is_that_of_live_values():
    found = memory(hlo_listing(HLO, Places(), "HLO"), FREE)
    assert found.arguments == 64
    # c is 32 bytes, d 64 beside it, f 32 when c has gone, the call's own sum and then g.
    live = [b - 64 for b in found.live]
    assert live == [32, 32, 96, 96, 96, 96, 64, 64]
    assert found.peak == 64 + 96 and [b for _, b in found.largest] == [64, 32]


ACCELERATOR = """HloModule m, is_scheduled=true

%narrowed (p: f32[64,32]) -> bf16[64,32] {
  %p = f32[64,32]{1,0:T(8,128)} parameter(0)
  ROOT %c = bf16[64,32]{1,0:T(8,128)(2,1)} convert(f32[64,32]{1,0:T(8,128)} %p)
}

ENTRY %main (a: f32[64,32]) -> f32[64,32] {
  %a = f32[64,32]{1,0:T(8,128)} parameter(0), sharding={devices=[2,1]<=[2]}
  %start = (f32[64,32]{1,0:T(8,128)S(1)}, f32[64,32]{1,0}, u32[]{:S(2)}) copy-start(%a)
  %done = f32[64,32]{1,0:T(8,128)S(1)} copy-done(%start)
  %f = bf16[64,32]{1,0:T(8,128)(2,1)} fusion(%done), kind=kLoop, calls=%narrowed, \
backend_config={"bounds":["8","128"]}
  %g = (f32[64,64]{1,0}, s8[1024]{0}) custom-call(%f, %f), custom_call_target="__cublas$gemm", \
metadata={op_name="jit(f)/dot_general"}, backend_config={"gemm_backend_config":\
{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"]},"text":"a \\"quoted\\" } brace"}}
  ROOT %h = f32[64,64]{1,0} get-tuple-element(%g), index=0, control-predecessors={%f}
}
"""


def test_hlo_of_accelerators():
    listing = hlo_listing(ACCELERATOR, Places(), "HLO")
    assert listing.operation[1:] == [
        "parameter", "copy-start", "copy-done", "fusion", "parameter", "convert", "custom-call",
        "get-tuple-element", ""]
    fusion, product = listing.operation.index("fusion"), listing.operation.index("custom-call")
    assert listing.depth[fusion + 1] == 2 and list(listing.operands[product]) == [fusion] * 2
    assert listing.flops[product] == 2 * 64 * 64 * 32
    assert listing.name[product] == "jit(f)/dot_general"
    found = memory(listing, FREE)
    assert found.arguments == 4 * 64 * 32  # not those of fusions
    assert found.largest == [(product, 4 * 64 * 64 + 1024), (fusion, 2 * 64 * 32)]


def test_cost_of_matrix_products_and_reductions():
    a = jax.ShapeDtypeStruct((3, 4, 5), np.float32)
    b = jax.ShapeDtypeStruct((3, 5, 6), np.float32)
    lowered = jax.jit(lambda a, b: jnp.sum(a @ b)).lower(a, b)
    wanted = 2 * 3 * 4 * 5 * 6 + 3 * 4 * 6 - 1
    assert stablehlo_listing(lowered.as_text(), Places()).flops[0] == wanted
    assert hlo_listing(lowered.as_text("hlo"), Places(), "HLO").flops[0] == wanted


@pytest.mark.parametrize("options", [
    {},
    {"padding": "SAME"},
    {"padding": [(3, 1), (-1, 2)], "window_strides": (2, 3)},
    {"padding": [(2, 2), (0, 1)], "lhs_dilation": (4, 1), "rhs_dilation": (1, 2)},
    {"feature_group_count": 3, "lhs_dilation": (3, 2), "padding": [(1, 1), (0, 0)]},
])
def test_cost_of_convolutions(options):
    """The products of numbers with numbers: none with what padding and dilation put between."""
    x = jax.ShapeDtypeStruct((2, 8, 9, 3), np.float32)
    k = jax.ShapeDtypeStruct((3, 2, 3 // options.get("feature_group_count", 1), 6), np.float32)
    options = {"window_strides": (1, 1), "padding": "VALID", **options}

    def convolved(x, k):
        return jax.lax.conv_general_dilated(
            x, k, dimension_numbers=("NHWC", "HWIO", "NHWC"), **options)

    traced = jax.jit(convolved).trace(x, k)
    lowered = traced.lower()
    wanted = jaxpr_listing(traced.jaxpr, Places()).flops[0]
    ones = convolved(*(jax.numpy.ones(a.shape) for a in (x, k)))
    assert wanted == 2 * ones.sum()  # as each product is 1
    assert stablehlo_listing(lowered.as_text(), Places()).flops[0] == wanted
    assert hlo_listing(lowered.as_text("hlo"), Places(), "HLO").flops[0] == wanted


ROWS = jax.ShapeDtypeStruct((1000, 64), np.float32)
PART = jax.ShapeDtypeStruct((3, 64), np.float32)
AT = jax.ShapeDtypeStruct((3, 1), np.int32)
FROM = lax.GatherDimensionNumbers((1,), (0,), (0,))
INTO = lax.ScatterDimensionNumbers((1,), (0,), (0,))
SAFE = "promise_in_bounds"


@pytest.mark.parametrize(("f", "args", "moved"), [
    (lambda x: lax.slice(x, (3, 0), (6, 64)), (ROWS,), 2 * 768),
    (lambda x, i: lax.dynamic_slice_p.bind(x, i, i, slice_sizes=(3, 64)),
     (ROWS, np.int32(0)), 2 * 768 + 8),
    (lambda x, u, i: lax.dynamic_update_slice_p.bind(x, u, i, i),
     (ROWS, PART, np.int32(0)), 2 * 768 + 8),
    (lambda x, i: lax.gather(x, i, FROM, (1, 64), mode=SAFE), (ROWS, AT), 2 * 768 + 12),
    (lambda x, i, u: lax.scatter(x, i, u, INTO, mode=SAFE), (ROWS, AT, PART), 3 * 768 + 12),
    (lambda x, i, u: lax.scatter_add(x, i, u, INTO, mode=SAFE), (ROWS, AT, PART), 3 * 768 + 12)])
def test_what_touches_a_part_of_a_buffer_moves_that_part(f, args, moved):
    """In all forms, and as XLA counts it."""
    traced = jax.jit(f).trace(*args)
    lowered = traced.lower()
    cost = traced.cost()
    listings = [jaxpr_listing(traced.jaxpr, Places()),
                stablehlo_listing(lowered.as_text(), Places()),
                hlo_listing(lowered.as_text("hlo"), Places(), "HLO")]
    found = [cost.total.bytes, *[listing.traffic[0] for listing in listings]]
    assert found == pytest.approx([moved] * 4, abs=4)  # an index that is read twice is written once
    assert cost.xla()["bytes"] == pytest.approx(moved, abs=4)


@pytest.mark.parametrize(("f", "moved"), [
    (lambda ref, u: ref.__setitem__(slice(0, 10), u), 2 * 40),
    (lambda ref, u: jax.ref.addupdate(ref, slice(0, 10), u), 3 * 40),
    (lambda ref, u: jax.ref.swap(ref, slice(0, 10), u), 4 * 40)])
def test_what_stores_in_a_reference_reads_what_it_adds_to_or_gives(f, moved):
    def stored(x, u):
        ref = jax.new_ref(x)
        out = f(ref, u)
        return ref[...], out

    traced = jax.jit(stored).trace(np.ones(1000, "f4"), np.ones(10, "f4"))
    found = {c.name: c.bytes for c in traced.cost().by_operation}
    assert found.get("swap", found.get("addupdate")) == moved
    listing = jaxpr_listing(traced.jaxpr, Places())
    assert listing.traffic[listing.operation.index("new_ref") + 1] == moved


def test_what_is_its_operand_moves_nothing():
    traced = jax.jit(lambda x: jax.ad_checkpoint.checkpoint_name(
        lax.stop_gradient(jnp.copy(x)), "x") * 2).trace(ROWS)
    rows = {c.name: c.bytes for c in traced.cost().by_operation}
    assert rows["copy"] == rows["stop_gradient"] == rows["name"] == 0
    assert rows["mul"] == 4 + 2 * 256_000
    assert jaxpr_listing(traced.jaxpr, Places()).traffic[0] == sum(rows.values())


FUSIONS = """HloModule m, is_scheduled=true

%taken (p: f32[1000,64], i: s32[]) -> f32[64] {
  %p = f32[1000,64]{1,0} parameter(0)
  %i = s32[] parameter(1)
  %s = f32[1,64]{1,0} dynamic-slice(%p, %i, %i), dynamic_slice_sizes={1,64}
  ROOT %b = f32[64]{0} bitcast(%s)
}

%put (p: f32[1000,64], u: f32[64], i: s32[]) -> f32[1000,64] {
  %u = f32[64]{0} parameter(1)
  %p = f32[1000,64]{1,0} parameter(0)
  %i = s32[] parameter(2)
  %s = f32[1,64]{1,0} dynamic-slice(%p, %i, %i), dynamic_slice_sizes={1,64}
  %b = f32[1,64]{1,0} bitcast(%u)
  %a = f32[1,64]{1,0} add(%s, %b)
  ROOT %d = f32[1000,64]{1,0} dynamic-update-slice(%p, %a, %i, %i)
}

%two (p: f32[1000,64], u: f32[1,64], i: s32[]) -> (f32[1000,64], f32[1,64]) {
  %p = f32[1000,64]{1,0} parameter(0)
  %u = f32[1,64]{1,0} parameter(1)
  %i = s32[] parameter(2)
  %d = f32[1000,64]{1,0} dynamic-update-slice(%p, %u, %i, %i)
  %n = f32[1,64]{1,0} negate(%u)
  ROOT %t = (f32[1000,64]{1,0}, f32[1,64]{1,0}) tuple(%d, %n)
}

%new (z: f32[], u: f32[1,64], i: s32[]) -> f32[1000,64] {
  %z = f32[] parameter(0)
  %w = f32[1000,64]{1,0} broadcast(%z), dimensions={}
  %u = f32[1,64]{1,0} parameter(1)
  %i = s32[] parameter(2)
  ROOT %d = f32[1000,64]{1,0} dynamic-update-slice(%w, %u, %i, %i)
}

%read (p: f32[1000,64], u: f32[1,64], i: s32[]) -> f32[1000,64] {
  %p = f32[1000,64]{1,0} parameter(0)
  %u = f32[1,64]{1,0} parameter(1)
  %i = s32[] parameter(2)
  %d = f32[1000,64]{1,0} dynamic-update-slice(%p, %u, %i, %i)
  ROOT %n = f32[1000,64]{1,0} negate(%d)
}

ENTRY %main (p: f32[1000,64], v: f32[1,64], z: f32[], i: s32[]) -> f32[1000,64] {
  %p = f32[1000,64]{1,0} parameter(0)
  %v = f32[1,64]{1,0} parameter(1)
  %z = f32[] parameter(2)
  %i = s32[] parameter(3)
  %f1 = f32[64]{0} fusion(%p, %i), kind=kLoop, calls=%taken
  %f2 = f32[1000,64]{1,0} fusion(%p, %f1, %i), kind=kLoop, calls=%put
  %f3 = (f32[1000,64]{1,0}, f32[1,64]{1,0}) fusion(%f2, %v, %i), kind=kLoop, calls=%two
  %f4 = f32[1000,64]{1,0} fusion(%z, %v, %i), kind=kLoop, calls=%new
  ROOT %f5 = f32[1000,64]{1,0} fusion(%f4, %v, %i), kind=kLoop, calls=%read
}
"""


def test_fusions_move_what_those_inside_touch():
    listing = hlo_listing(FUSIONS, Places(), "HLO")
    row = 256  # bytes; a table has a thousand
    assert [t for t, name in zip(listing.traffic, listing.operation, strict=True)
            if name == "fusion"] == [
        2 * row + 4, 3 * row + 4, 3 * row + 4,
        4 + 1001 * row + 4, 2001 * row + 4]  # into a table made there, and what reads all of it


def test_what_starts_a_move_makes_its_results_alone():
    listing = hlo_listing("""HloModule m, is_scheduled=true

%sum (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %z = f32[] add(%x, %y)
}

ENTRY %main (a: f32[784,512]) -> f32[200,512] {
  %a = f32[784,512]{1,0} parameter(0)
  %s = (f32[784,512]{1,0}, f32[200,512]{1,0:S(1)}, s32[]{:S(2)}) slice-start(%a), \
slice={[0:200], [0:512]}
  %t = f32[200,512]{1,0:S(1)} slice-done(%s)
  %c = (f32[200,512]{1,0}, f32[200,512]{1,0:S(1)}, u32[]{:S(2)}) copy-start(%t)
  %d = f32[200,512]{1,0} copy-done(%c)
  %g = (f32[200,512]{1,0}, f32[400,512]{1,0}) all-gather-start(%d), dimensions={0}
  %h = f32[400,512]{1,0} all-gather-done(%g)
  %r = f32[200,512]{1,0} all-reduce-start(%d), to_apply=%sum
  ROOT %e = f32[200,512]{1,0} all-reduce-done(%r)
}
""", Places(), "HLO")
    part = 4 * 200 * 512
    found = {name: (listing.size[row], listing.traffic[row])
             for row, name in enumerate(listing.operation) if name.endswith(("-start", "-done"))}
    assert found == {
        "slice-start": (part, 2 * part), "copy-start": (part, 2 * part),
        "all-gather-start": (2 * part, 3 * part), "all-reduce-start": (part, 2 * part),
        "slice-done": (part, 0), "copy-done": (part, 0), "all-gather-done": (2 * part, 0),
        "all-reduce-done": (part, 0)}
    assert memory(listing, FREE).peak == 4 * 784 * 512 + 3 * part  # d beside h
    assert max(arrays(listing, [1.0] * len(listing), FREE)) == 2 * part


def fixed(x):
    x = lax.scan(lambda c, _: (c @ x, None), x, None, length=5)[0]
    return lax.while_loop(lambda s: s[0] > -3, lambda s: (s[0] - 2, s[1] @ x), (4, x))[1]


def nested(x):
    def outer(s):
        i, y = lax.while_loop(lambda s: s[0] < 9, lambda s: (s[0] + 4, s[1] @ x), s)
        return i + 1, y

    return lax.while_loop(lambda s: s[0] < 3, outer, (0, x))[1]


@pytest.mark.parametrize("f", [fixed, lambda x: lax.fori_loop(
    0, 3, lambda _, x: lax.fori_loop(-1, 2, lambda _, x: x @ x, x), x)])
def test_all_forms_count_loops_that_count_as_often_as_they_run(f):
    """One from 4 to -2 in steps of 2."""
    traced = jax.jit(f).trace(jnp.ones((40, 40)))
    lowered = traced.lower()
    listings = [jaxpr_listing(traced.jaxpr, Places()),
                stablehlo_listing(lowered.as_text(), Places()),
                hlo_listing(lowered.as_text("hlo"), Places(), "HLO"),
                hlo_listing(lowered.compile().as_text(), Places(), "Optimised HLO")]
    for listing in listings:
        assert listing.flops[listing.entry] == pytest.approx((5 + 4) * 2 * 40**3, rel=1e-3)
        assert listing.exact
    cost = traced.cost()
    assert cost.exact and cost.total.flops == pytest.approx((5 + 4) * 2 * 40**3, rel=1e-3)


def test_a_loop_whose_number_another_one_changes_counts_once():
    lowered = jax.jit(nested).lower(jnp.ones((40, 40)))
    for listing in (jaxpr_listing(jax.make_jaxpr(nested)(jnp.ones((40, 40))), Places()),
                    stablehlo_listing(lowered.as_text(), Places()),
                    hlo_listing(lowered.as_text("hlo"), Places(), "HLO")):
        loops = [row for row, name in enumerate(listing.operation) if name.endswith("while")]
        assert [listing.bodies[row].times for row in loops] == [(1.0,), (1.0,)]
        assert not listing.exact


@pytest.mark.parametrize("test", [
    lambda i, x: i < x[0, 0], lambda i, x: (i < 9) & (x[0, 0] > 0), lambda i, x: x[0, 0] < 9])
def test_pages_say_that_other_loops_count_once(test):
    def f(x):
        return lax.while_loop(lambda s: test(*s), lambda s: (s[0] + 1, s[1] @ x), (0.0, x))[1]

    traced = jax.jit(f).trace(jnp.ones((40, 40)))
    lowered = traced.lower()
    forms = program(jaxpr=traced.jaxpr, stablehlo=lowered.as_text(),
                    hlo=lowered.as_text("hlo"))["forms"]
    for form in forms:
        assert not form["exact"] and form["flops"][0] == pytest.approx(2 * 40**3, rel=1e-3)


PRINTED = """module @jit_f attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=8]>
  func.func private @region(%arg0: tensor<f32>) -> tensor<f32> {
    return %arg0 : tensor<f32>
  }
  func.func public @main(%arg0: tensor<8x4xf32>, %arg1: tensor<4x3xf32>) -> (tensor<8x3xf32>) {
    %0 = stablehlo.dot %arg0, %arg1 : (tensor<8x4xf32>, tensor<4x3xf32>) -> tensor<8x3xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1:2 = stablehlo.while(%iterArg = %0, %iterArg_0 = %c) : tensor<8x3xf32>, tensor<i32>
    cond {
      %c_1 = stablehlo.constant dense<10> : tensor<i32>
      %3 = stablehlo.compare LT, %iterArg_0, %c_1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %3 : tensor<i1>
    } do {
      %3 = stablehlo.tanh %iterArg : tensor<8x3xf32> loc(#loc1)
      %c_1 = stablehlo.constant dense<1> : tensor<i32>
      %4 = stablehlo.add %iterArg_0, %c_1 : tensor<i32>
      stablehlo.return %3, %4 : tensor<8x3xf32>, tensor<i32>
    } loc(#loc1)
    %cst = stablehlo.constant dense<0.0> : tensor<f32>
    %2:2 = stablehlo.reduce(%1#0 init: %cst), (%1#0 init: %cst) across dimensions = [0] : \
(tensor<8x3xf32>, tensor<8x3xf32>, tensor<f32>, tensor<f32>) -> (tensor<3xf32>, tensor<3xf32>)
     reducer(%arg2: tensor<f32>, %arg4: tensor<f32>) (%arg3: tensor<f32>, %arg5: tensor<f32>)  {
      %3 = stablehlo.add %arg2, %arg4 : tensor<f32>
      %4 = stablehlo.add %arg3, %arg5 : tensor<f32>
      stablehlo.return %3, %4 : tensor<f32>, tensor<f32>
    }
    return %1#0 : tensor<8x3xf32>
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc1 = loc("jit(f)/while"("f.py":3:1))
"""


def test_text_as_mlir_prints_it():
    places = Places()
    listing = stablehlo_listing(PRINTED, places)
    entry, ends = listing.entry, listing.ends()
    assert "@main" in listing.text[entry] and listing.text[0].startswith("sdy.mesh")
    flops = dict(zip(listing.operation, listing.flops, strict=True))
    assert flops["stablehlo.dot"] == 2 * 8 * 4 * 3
    assert flops["stablehlo.while"] == 10 * (24 + 1) + 11 and flops["stablehlo.reduce"] == 2 * 21
    assert listing.flops[entry] == 192 + 261 + 42
    loop = row_of(listing, "stablehlo.while")
    assert loop < row_of(listing, "stablehlo.tanh") < ends[loop]
    assert places.position(listing.place[loop]) == ("f.py", 3, 1)
    assert listing.size[loop] == 4 * 24 + 4
    assert listing.size[row_of(listing, "stablehlo.reduce")] == 24
    assert ends[entry] == len(listing) and not listing.depth[entry]
    (form,) = program(stablehlo=PRINTED)["forms"]
    assert (form["entry"], form["devices"], form["byOne"]) == (entry, 8, "")


def test_what_is_composed_counts_as_what_it_is_made_of():
    f = lax.composite(lambda x: jnp.sin(x) * x, "my.f")
    listing = stablehlo_listing(jax.jit(lambda x: f(x) + 1).lower(jnp.ones(8)).as_text(), Places())
    assert listing.flops[listing.entry] == 24


def test_hlo_says_of_how_many_devices_it_is():
    text = HLO.replace("HloModule m,", "HloModule m, num_partitions=8,")
    before = text.replace(", is_scheduled=true", "")
    copies = before.replace("num_partitions", "replica_count")
    for given, by_one in ((text, "all"), (before, ""), (copies, "all")):
        (form,) = program(hlo=given)["forms"]
        assert (form["devices"], form["byOne"]) == (8, by_one)


def test_a_loop_in_the_generic_form_counts_once():
    listing = stablehlo_listing("""module {
  func.func @main(%arg0: tensor<f32>) -> tensor<f32> {
    %0 = "stablehlo.while"(%arg0) ({
    ^bb0(%arg1: tensor<f32>):
      %1 = "stablehlo.compare"(%arg1, %arg1) : (tensor<f32>, tensor<f32>) -> tensor<i1>
      "stablehlo.return"(%1) : (tensor<i1>) -> ()
    }, {
    ^bb0(%arg1: tensor<f32>):
      %1 = "stablehlo.sine"(%arg1) : (tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%1) : (tensor<f32>) -> ()
    }) : (tensor<f32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}
""", Places())
    assert listing.flops[listing.entry] == 2 and not listing.exact


def test_operands_that_are_not_there_cost_nothing():
    """As in text from which lines were taken."""
    found = program(hlo="""HloModule m

%f (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(3)
  ROOT %d = f32[8]{0} dynamic-update-slice()
}

ENTRY %main (a: f32[8]) -> f32[8] {
  %a = f32[8]{0} parameter(0)
  %s = f32[2]{0} slice(%gone), slice={[0:2]}
  %w = (s32[], f32[8]) while(), condition=%gone, body=%gone
  ROOT %x = f32[8]{0} fusion(%a), kind=kLoop, calls=%f
}
""")["forms"][0]
    assert found["traffic"][0] == 8 + 36 + 32  # of what is known: the results
