"""Text of programs that is damaged, or leads to itself: pages show what can be read of it."""

from __future__ import annotations

import random
import re

import pytest

import pyjx as jax
from pyjx import numpy as jnp
from pyjx import viewer
from pyjx.viewer.hlo import hlo_listing
from pyjx.viewer.listing import Places


def test_values_of_damaged_text_that_read_each_other():
    """Chains of copies and of updates in place are followed to their ends, which these have not."""
    text = """HloModule m, is_scheduled=true

%put (p: f32[4]) -> f32[4] {
  %a = f32[4] bitcast(%b)
  %b = f32[4] bitcast(%a)
  ROOT %c = f32[4] dynamic-update-slice(%a, %b, %b)
}

%test (p: (s32[])) -> pred[] {
  %k = s32[] copy(%l)
  %l = s32[] copy(%k)
  ROOT %r = pred[] compare(%k, %l), direction=LT
}

%body (p: (s32[])) -> (s32[]) {
  %m = s32[] copy(%m)
  ROOT %o = (s32[]) tuple(%m)
}

ENTRY %main (x: f32[4]) -> f32[4] {
  %x = f32[4] parameter(0)
  %w = (s32[]) while(%x), condition=%test, body=%body
  ROOT %y = f32[4] fusion(%x), kind=kLoop, calls=%put
}
"""
    listing = hlo_listing(text, Places(), "HLO")
    assert not listing.exact and not listing.in_place.get(listing.operation.index("fusion"))


FUSION = """HloModule m, is_scheduled=true

%f (p: f32[4]) -> f32[4] {
  %p = f32[4] parameter(0)
  ROOT %y = f32[4] fusion(%p), kind=kLoop, calls=%f
}

ENTRY %main (x: f32[4]) -> f32[4] {
  %x = f32[4] parameter(0)
  ROOT %y = f32[4] fusion(%x), kind=kLoop, calls=%f
}
"""
LOCATION = """module @m {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.sine %arg0 : tensor<4xf32> loc(#loc1)
    return %0 : tensor<4xf32>
  }
}
#loc1 = loc(callsite(#loc1 at #loc1))
"""
FUNCTION = """module @m {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = call @main(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
"""
FRAMES = """HloModule m, is_scheduled=true

FileNames
1 "a.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1}

StackFrames
1 {file_location_id=1}

ENTRY %main (x: f32[4]) -> f32[4] {
  %x = f32[4] parameter(0)
  ROOT %y = f32[4] sine(%x), metadata={op_name="y" stack_frame_id=1}
}
"""


@pytest.mark.parametrize("text", [FUSION, LOCATION, FUNCTION, FRAMES], ids=[
    "a fusion holds itself", "a location leads to itself", "a function calls itself",
    "a place has no line"])
def test_pages_of_text_that_leads_to_itself_or_nowhere(text):
    form = "hlo" if text.startswith("HloModule") else "stablehlo"
    assert str(viewer.page("p", **{form: text})).startswith("<!doctype html>")


def layered(x, weights):
    x, each = jax.lax.scan(lambda x, w: (jnp.tanh(x @ w),) * 2, x, weights)
    x = jax.lax.fori_loop(0, 5, lambda i, x: x.at[i].add(jax.jit(jnp.sin)(x)[0]), x)
    return jax.lax.cond(x[0, 0] > 0, jnp.sort, lambda x: -x, x), each.sum(), jnp.fft.fft(x)


def damaged(text, chance):
    """The text with a few lines deleted, put elsewhere, cut, or with other names or numbers."""
    lines = text.splitlines()
    for _ in range(chance.randint(1, 4)):
        i, how = chance.randrange(len(lines)), chance.randrange(5)
        at, own = chance.randrange(len(lines[i]) + 1), re.findall(r"[%#@][\w.\-]+", lines[i])
        if how == 0 and len(lines) > 9:
            del lines[i]
        elif how == 1:
            lines.insert(chance.randrange(len(lines)), lines[i])
        elif how == 2 and own:
            name = chance.choice(re.findall(r"[%#@][\w.\-]+", text))
            lines[i] = lines[i].replace(chance.choice(own), name)
        elif how == 3:
            lines[i] = lines[i][:at] + lines[i][at + chance.randint(1, 8):]
        else:
            lines[i] = re.sub(r"\d+", str(chance.choice([0, 1, -1, 10**12])), lines[i], count=2)
    return "\n".join(lines)


@pytest.mark.parametrize(("form", "count"), [("stablehlo", 30), ("hlo", 30)])
def test_pages_of_damaged_text(form, count):
    lowered = jax.jit(layered).lower(jnp.ones((8, 8)), jnp.ones((5, 8, 8)))
    text = lowered.as_text(debug_info=True) if form == "stablehlo" else lowered.compile().as_text()
    chance = random.Random(0)
    for _ in range(count):
        given = damaged(text, chance)
        try:
            viewer.page("p", **{form: given})
        except ValueError as error:  # nothing of it can be read
            assert "expected a jaxpr, StableHLO text or HLO text" in str(error), given
