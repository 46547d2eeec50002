"""What is in the memory of the host, on pages."""

import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.memory import Space
from pyjx.viewer import document, hlo, stablehlo
from pyjx.viewer.hlo import hlo_listing
from pyjx.viewer.jaxprs import jaxpr_listing
from pyjx.viewer.listing import Places
from pyjx.viewer.memory import memory
from pyjx.viewer.stablehlo import stablehlo_listing

MOVED = """HloModule jit_f, is_scheduled=true

ENTRY %main (x: f32[1000]) -> f32[1000] {
  %x = f32[1000]{0:T(1024)} parameter(0), metadata={op_name="x"}
  %tanh = f32[1000]{0:T(1024)} tanh(%x)
  %copy-start = (f32[1000]{0:T(1024)S(5)}, f32[1000]{0:T(1024)}, u32[]{:S(2)}) copy-start(%tanh)
  %copy-done = f32[1000]{0:T(1024)S(5)} copy-done(%copy-start)
  %sine = f32[1000]{0:T(1024)} sine(%x)
  %copy-start.1 = (f32[1000]{0:T(1024)}, f32[1000]{0:T(1024)S(5)}, u32[]{:S(2)}) \
copy-start(%copy-done)
  %copy-done.1 = f32[1000]{0:T(1024)} copy-done(%copy-start.1)
  ROOT %add = f32[1000]{0:T(1024)} add(%copy-done.1, %sine)
}
"""
STACKED = """HloModule jit_f, is_scheduled=true

ENTRY %main (x: f32[1,1000], i: s32[]) -> f32[1,1000] {
  %x = f32[1,1000]{1,0:T(8,128)} parameter(0)
  %i = s32[]{:T(128)} parameter(1)
  %stack = f32[6,1000]{1,0:T(8,128)S(5)} custom-call(), custom_call_target="AllocateBuffer"
  %put = ((f32[6,1000]{1,0:T(8,128)S(5)}, f32[1,1000]{1,0:T(8,128)}, s32[]{:T(128)}, \
s32[]{:T(128)}), f32[6,1000]{1,0:T(8,128)S(5)}, u32[]{:S(2)}) \
dynamic-update-slice-start(%stack, %x, %i, %i)
  %put.1 = f32[6,1000]{1,0:T(8,128)S(5)} dynamic-update-slice-done(%put)
  %take = ((f32[6,1000]{1,0:T(8,128)S(5)}, s32[]{:T(128)}, s32[]{:T(128)}), \
f32[1,1000]{1,0:T(8,128)}, u32[]{:S(2)}) dynamic-slice-start(%put.1, %i, %i), \
dynamic_slice_sizes={1,1000}
  ROOT %take.1 = f32[1,1000]{1,0:T(8,128)} dynamic-slice-done(%take)
}
"""


def moved(x):
    kept = jax.device_put(jnp.tanh(x), Space.Host)
    y = jnp.sin(x)
    return jax.device_put(kept, Space.Device) + y


def stacked(xs):
    _, kept = lax.scan(lambda c, x: (c, jax.device_put(jnp.tanh(x), Space.Host)), 0.0, xs)
    return lax.scan(lambda c, x: (c + jax.device_put(x, Space.Device), None), xs[0], kept)[0]


def for_tpu(fun, *shape):
    traced = jax.jit(fun).trace(jax.ShapeDtypeStruct(shape, "float32"))
    return traced, traced.lower(lowering_platforms=("tpu",)).as_text(debug_info=True)


@pytest.mark.parametrize("text", [MOVED, STACKED])
def test_copies_in_hlo_cross_and_what_is_on_the_host_takes_no_memory(text):
    listing = hlo_listing(text, Places(), "HLO")
    assert [*listing.to_host.values()] == [4000.0, 4000.0]
    assert memory(listing, hlo.FREE).peak == pytest.approx(16000 if text is MOVED else 8000, abs=8)


@pytest.mark.parametrize(("fun", "shape", "peak"), [(moved, (1000,), 16000),
                                                    (stacked, (6, 1000), 36000)])
def test_placements_in_jaxprs_and_stablehlo(fun, shape, peak):
    traced, text = for_tpu(fun, *shape)
    for listing, free in ((jaxpr_listing(traced.jaxpr, Places()), frozenset()),
                          (stablehlo_listing(text, Places()), stablehlo.FREE)):
        assert [*listing.to_host.values()] == [4000.0, 4000.0]
        assert memory(listing, free).peak == pytest.approx(peak, abs=100), listing.title


def test_arguments_on_the_host():
    listing = stablehlo_listing("""module @m {
  func.func public @main(%arg0: tensor<1000xf32> {mhlo.memory_kind = "pinned_host"}, \
%arg1: tensor<10xf32>) -> tensor<1000xf32> {
    %0 = stablehlo.custom_call @annotate_device_placement(%arg0) {\
has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "device"}} : \
(tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
}""", Places())
    assert [*listing.to_host.values()] == [4000.0]
    assert memory(listing, stablehlo.FREE).peak == 4040


def test_transfers_are_of_the_line_that_says_so():
    traced, text = for_tpu(moved, 1000)
    page = document.program(jaxpr=traced, stablehlo=text, hlo=MOVED)
    first = moved.__code__.co_firstlineno
    lines = {number: amount for _, number, amount, *_ in page["costs"]["crossing"]["lines"]}
    assert lines == {first + 1: 4000.0, first + 3: 4000.0}
