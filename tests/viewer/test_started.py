"""What is started here and waited for there, and calls that only tell XLA something."""

from __future__ import annotations

from pyjx.viewer.document import program

ASYNC = """HloModule m, is_scheduled=true

%taken (p0: f32[48,64,64], p1: s32[]) -> f32[1,64,64] {
  %p0 = f32[48,64,64]{2,1,0} parameter(0)
  %p1 = s32[] parameter(1)
  %zero = s32[] constant(0)
  ROOT %s = f32[1,64,64]{2,1,0} dynamic-slice(%p0, %p1, %zero, %zero), \
dynamic_slice_sizes={1,64,64}
}

%put (q0: f32[48,64,64], q1: f32[64,64], q2: s32[]) -> f32[48,64,64] {
  %q0 = f32[48,64,64]{2,1,0} parameter(0)
  %q1 = f32[64,64]{1,0} parameter(1)
  %b = f32[1,64,64]{2,1,0} bitcast(%q1)
  %q2 = s32[] parameter(2)
  %none = s32[] constant(0)
  ROOT %u = f32[48,64,64]{2,1,0} dynamic-update-slice(%q0, %b, %q2, %none, %none)
}

%async (r0: f32[64,64], r1: f32[48,64,64], r2: s32[]) -> f32[48,64,64] {
  %r0 = f32[64,64]{1,0} parameter(0)
  %r1 = f32[48,64,64]{2,1,0} parameter(1)
  %r2 = s32[] parameter(2)
  ROOT %f = f32[48,64,64]{2,1,0} fusion(%r1, %r0, %r2), kind=kLoop, calls=%other
}

%other (o0: f32[48,64,64], o1: f32[64,64], o2: s32[]) -> f32[48,64,64] {
  %o0 = f32[48,64,64]{2,1,0} parameter(0)
  %o1 = f32[64,64]{1,0} parameter(1)
  %c = f32[1,64,64]{2,1,0} bitcast(%o1)
  %o2 = s32[] parameter(2)
  %no = s32[] constant(0)
  ROOT %v = f32[48,64,64]{2,1,0} dynamic-update-slice(%o0, %c, %o2, %no, %no)
}

ENTRY %main (a: f32[48,64,64], i: s32[]) -> f32[48,64,64] {
  %a = f32[48,64,64]{2,1,0} parameter(0)
  %i = s32[] parameter(1)
  %fusion-start = ((f32[48,64,64]{2,1,0}, s32[]), f32[1,64,64]{2,1,0}, u32[]) \
fusion-start(%a, %i), kind=kLoop, calls=%taken
  %fusion-done = f32[1,64,64]{2,1,0} fusion-done(%fusion-start)
  %x = f32[64,64]{1,0} bitcast(%fusion-done)
  %stack = f32[48,64,64]{2,1,0} custom-call(), custom_call_target="AllocateBuffer"
  %fusion-start.1 = ((f32[48,64,64]{2,1,0}, f32[64,64]{1,0}, s32[]), f32[48,64,64]{2,1,0}, \
u32[]) fusion-start(%stack, %x, %i), kind=kLoop, calls=%put
  %fusion-done.1 = f32[48,64,64]{2,1,0} fusion-done(%fusion-start.1)
  %async-start = ((f32[64,64]{1,0}, f32[48,64,64]{2,1,0}, s32[]), f32[48,64,64]{2,1,0}, u32[]) \
async-start(%x, %fusion-done.1, %i), calls=%async
  ROOT %async-done = f32[48,64,64]{2,1,0} async-done(%async-start)
}
"""
PART = 4 * 64 * 64


def test_what_is_started_touches_what_it_does_and_writes_in_place():
    found = program(hlo=ASYNC)
    form = found["forms"][0]
    rows = {t.removeprefix("ROOT ").partition(" ")[0]: i
            for i, t in enumerate(form["text"].split("\n"))}
    moved = {name: form["traffic"][row] for name, row in rows.items()}
    assert moved["%fusion-start"] == moved["%fusion-start.1"] == 2 * PART + 4
    assert moved["%async-start"] == moved["%f"] == 2 * PART + 4
    assert moved["%stack"] == 0
    # The stack that is allocated is written twice in place, so there is one besides the argument.
    assert max(form["memory"]["live"]) == 2 * 48 * PART + PART + 4
    assert {"%fusion-start", "%fusion-start.1", "%f"} == {
        name for name, row in rows.items() if row in form["fused"]}
    names = {found["strings"][o] for o, *_ in found["costs"]["time"]["operations"]}
    assert names == {"dynamic-slice", "dynamic-update-slice"}


def test_marks_for_the_compiler_move_nothing():
    text = """HloModule m

ENTRY %main (a: f32[64]) -> f32[64] {
  %a = f32[64]{0} parameter(0)
  %s = f32[64]{0} custom-call(%a), custom_call_target="Sharding", sharding={replicated}
  %r = f32[64]{0} custom-call(%s), custom_call_target="x", custom_call_has_side_effect=true
  ROOT %l = f32[64]{0} custom-call(%r), custom_call_target="LayoutConstraint"
}
"""
    form = program(hlo=text)["forms"][0]
    assert form["traffic"][0] == 2 * 256 and max(form["memory"]["live"]) == 2 * 256
