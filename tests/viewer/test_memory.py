"""Memory over time, in all forms of a program."""

from __future__ import annotations

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import configuration, lax
from pyjx.viewer import stablehlo
from pyjx.viewer.hlo import FREE, hlo_listing
from pyjx.viewer.jaxprs import jaxpr_listing
from pyjx.viewer.listing import Places
from pyjx.viewer.memory import memory
from pyjx.viewer.stablehlo import stablehlo_listing

LOOP = """HloModule m, is_scheduled=true

%body (b: (f32[8], s32[])) -> (f32[8], s32[]) {
  ROOT %b = (f32[8]{0}, s32[]) parameter(0)
}

%more (c: (f32[8], s32[])) -> pred[] {
  %c = (f32[8]{0}, s32[]) parameter(0)
  ROOT %no = pred[] constant(false)
}

%loop (t: (f32[8], s32[])) -> (f32[8], s32[]) {
  %t = (f32[8]{0}, s32[]) parameter(0)
  ROOT %w = (f32[8]{0}, s32[]) while(%t), condition=%more, body=%body
}

ENTRY %main (a: f32[8]) -> f32[8] {
  %a = f32[8]{0} parameter(0)
  %x = f32[8]{0} negate(%a)
  %n = s32[] constant(0)
  %s = (f32[8]{0}, s32[]) tuple(%x, %n)
  %l = (f32[8]{0}, s32[]) call(%s), to_apply=%loop
  ROOT %r = f32[8]{0} get-tuple-element(%l), index=0
}
"""


def test_loops_write_in_place():
    found = memory(hlo_listing(LOOP, Places(), "HLO"), FREE)
    assert found.peak == 32 + 32 and found.live[-1] == 32 + 32


@pytest.mark.parametrize("count", [7, 8])  # these fold below a row of their own
def test_what_a_call_needs_does_not_depend_on_how_many_parameters_it_has(count):
    inner, outer = ([f"  %{x}{k} = f32[1000]{{0}} parameter({k})" for k in range(count)]
                    for x in "pa")
    text = "\n".join([
        "HloModule m, is_scheduled=true\n", "%called () -> f32[1000] {", *inner,
        "  %b = f32[1000000]{0} broadcast(%p0)", "  %c = f32[1000000]{0} negate(%b)",
        "  ROOT %s = f32[1000]{0} slice(%c), slice={[0:1000]}", "}\n",
        "ENTRY %main () -> f32[1000] {", *outer, "  ROOT %r = f32[1000]{0} call("
        f"{', '.join([f'%a{k}' for k in range(count)])}), to_apply=%called", "}\n"])
    assert memory(hlo_listing(text, Places(), "HLO"), FREE).peak == count * 4000 + 2 * 4_000_000


def test_programs_that_do_not_run_need_no_memory():
    def solved(b):
        return lax.custom_linear_solve(
            lambda v: v, b, lambda _, b: b * 2,
            lambda _, b: jnp.sum(jnp.sin(jnp.ones((1000, 1000)) * b[0]), axis=0))

    listing = jaxpr_listing(jax.make_jaxpr(solved)(jnp.ones(1000)), Places())
    assert memory(listing, frozenset()).peak == 8000


def stacked(c, ws):
    def step(c, w):
        c = jnp.tanh(c @ w)
        return c, c

    return lax.scan(step, c, ws)


def rewritten(x, y):
    return lax.fori_loop(0, 9, lambda i, x: x.at[i].set(jnp.sin(x[i + 1] + y)), x + 1)


def kept(x, y):
    x += 1
    return x.at[0].set(y).sum() + x.sum()


SQUARE = jax.ShapeDtypeStruct((500, 500), np.float32)


@pytest.mark.parametrize(("f", "args", "options"), [
    (stacked, [jax.ShapeDtypeStruct(s, np.float32) for s in ((64, 64), (500, 64, 64))], {}),
    (jax.grad(lambda c, ws: stacked(c, ws)[0].sum(), (0, 1)),
     [jax.ShapeDtypeStruct(s, np.float32) for s in ((64, 64), (500, 64, 64))], {}),
    (rewritten, [SQUARE, 1.0], {}), (kept, [SQUARE, 1.0], {}),
    (lambda x, y: x + y, [SQUARE, SQUARE], {"donate_argnums": 0}),
    (lambda x, y, z: (x + y, y * z), [SQUARE] * 3, {"donate_argnums": (0, 2)})])
def test_memory_is_as_xla_has_it_where_values_take_the_places_of_others(f, args, options):
    traced = jax.jit(f, **options).trace(*args)
    lowered = traced.lower()
    with configuration.cache(False):
        compiled = lowered.compile()
    xla = compiled.memory_analysis()
    wanted = (xla.argument_size_in_bytes + xla.output_size_in_bytes + xla.temp_size_in_bytes
              - xla.alias_size_in_bytes)
    found = [memory(hlo_listing(compiled.as_text(), Places(), "Optimised HLO"), FREE).peak,
             memory(stablehlo_listing(lowered.as_text(), Places()), stablehlo.FREE).peak]
    assert found == pytest.approx([wanted] * 2, rel=0.01)
    if f in (stacked, rewritten, kept) or options:
        listing = jaxpr_listing(traced.jaxpr, Places(), donated=traced.donate_argnums)
        assert memory(listing, frozenset()).peak == pytest.approx(wanted, rel=0.01)


def test_what_a_loop_stacks_is_beside_what_it_carries_in_a_donated_place():
    traced = jax.jit(stacked, donate_argnums=0).trace(*[
        jax.ShapeDtypeStruct(s, np.float32) for s in ((200, 200), (2, 200, 200))])
    for listing, free in (
            (stablehlo_listing(traced.lower().as_text(), Places()), stablehlo.FREE),
            (jaxpr_listing(traced.jaxpr, Places(), donated=traced.donate_argnums), frozenset())):
        found = memory(listing, free)
        assert found.live[-1] == pytest.approx(160_000 * 5, rel=0.01)


def test_what_is_written_into_an_argument_is_a_copy_unless_it_is_donated():
    x = jax.ShapeDtypeStruct((1000,), np.float32)
    within = jax.jit(lambda x: x.at[0].set(1.0))
    for f, options, wanted in (
            (lambda x: (x.at[0].set(1.0), x), {}, 8000), (lambda x: (within(x), x), {}, 8000),
            (lambda x: x.at[0].set(1.0).at[1].set(2.0), {}, 8000),
            (lambda x: x.at[0].set(1.0).at[1].set(2.0), {"donate_argnums": 0}, 4000)):
        traced = jax.jit(f, **options).trace(x)
        lowered = traced.lower()
        listings = [(hlo_listing(lowered.as_text("hlo"), Places(), "HLO"), FREE),
                    (stablehlo_listing(lowered.as_text(), Places()), stablehlo.FREE),
                    (jaxpr_listing(traced.jaxpr, Places(), donated=traced.donate_argnums),
                     frozenset())]
        for listing, free in listings:
            assert memory(listing, free).peak == pytest.approx(wanted, abs=60), listing.title
    both = hlo_listing("""HloModule m, is_scheduled=true

ENTRY %main (x: f32[1000], u: f32[1], i: s32[]) -> (f32[1000], f32[1000]) {
  %x = f32[1000]{0} parameter(0)
  %u = f32[1]{0} parameter(1)
  %i = s32[] parameter(2)
  %d = f32[1000]{0} dynamic-update-slice(%x, %u, %i)
  ROOT %r = (f32[1000]{0}, f32[1000]{0}) tuple(%d, %x)
}
""", Places(), "HLO")
    assert memory(both, FREE).peak == 8008
