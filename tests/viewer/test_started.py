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


CHAIN = """HloModule m, is_scheduled=true, num_partitions=8

%start (s: bf16[32,256]) -> (bf16[32,256], bf16[256,256], u32[]) {
  %s = bf16[32,256]{1,0} parameter(0)
  %gather.0 = bf16[256,256]{1,0} all-gather(%s), channel_id=1, dimensions={0}, \
frontend_attributes={chain_id="0"}
  ROOT %begun = (bf16[32,256]{1,0}, bf16[256,256]{1,0}, u32[]{:S(2)}) custom-call(%gather.0), \
custom_call_target="AsyncCollectiveStart"
}

%meanwhile (c: bf16[32,256], b: bf16[256,256], f: u32[], x: bf16[128,256], w: bf16[256,256]) -> \
(bf16[128,256], bf16[32,256], bf16[256,256], bf16[256,256], u32[]) {
  %x = bf16[128,256]{1,0} parameter(3)
  %w = bf16[256,256]{1,0} parameter(4)
  %product = bf16[128,256]{1,0} convolution(%x, %w), dim_labels=bf_io->bf
  %c = bf16[32,256]{1,0} parameter(0)
  %b = bf16[256,256]{1,0} parameter(1)
  %gather.1 = bf16[256,256]{1,0} all-gather(%c), channel_id=1, dimensions={0}, \
frontend_attributes={chain_id="0"}
  %f = u32[]{:S(2)} parameter(2)
  ROOT %all = (bf16[128,256]{1,0}, bf16[32,256]{1,0}, bf16[256,256]{1,0}, bf16[256,256]{1,0}, \
u32[]{:S(2)}) tuple(%product, %c, %b, %gather.1, %f)
}

%end (d: bf16[32,256], e: bf16[256,256], g: u32[]) -> bf16[256,256] {
  %d = bf16[32,256]{1,0} parameter(0)
  %e = bf16[256,256]{1,0} parameter(1)
  %gather.2 = bf16[256,256]{1,0} all-gather(%d), channel_id=1, dimensions={0}, \
frontend_attributes={chain_id="0"}
  %g = u32[]{:S(2)} parameter(2)
  ROOT %ended = bf16[256,256]{1,0} custom-call(%d, %e, %gather.2, %g), \
custom_call_target="AsyncCollectiveDone"
}

ENTRY %main (part: bf16[32,256], y: bf16[128,256], v: bf16[256,256]) -> bf16[256,256] {
  %part = bf16[32,256]{1,0} parameter(0)
  %y = bf16[128,256]{1,0} parameter(1)
  %v = bf16[256,256]{1,0} parameter(2)
  %async-start = (bf16[32,256]{1,0}, bf16[256,256]{1,0}, u32[]{:S(2)}) fusion(%part), \
kind=kCustom, output_to_operand_aliasing={{0}: (0, {})}, calls=%start
  %g0 = bf16[32,256]{1,0} get-tuple-element(%async-start), index=0
  %g1 = bf16[256,256]{1,0} get-tuple-element(%async-start), index=1
  %g2 = u32[]{:S(2)} get-tuple-element(%async-start), index=2
  %fusion = (bf16[128,256]{1,0}, bf16[32,256]{1,0}, bf16[256,256]{1,0}, bf16[256,256]{1,0}, \
u32[]{:S(2)}) fusion(%g0, %g1, %g2, %y, %v), kind=kOutput, output_to_operand_aliasing={{1}: \
(0, {}), {2}: (1, {}), {3}: (1, {}), {4}: (2, {})}, calls=%meanwhile
  %h0 = bf16[32,256]{1,0} get-tuple-element(%fusion), index=1
  %h1 = bf16[256,256]{1,0} get-tuple-element(%fusion), index=3
  %h2 = u32[]{:S(2)} get-tuple-element(%fusion), index=4
  ROOT %async-done = bf16[256,256]{1,0} fusion(%h0, %h1, %h2), kind=kCustom, \
output_to_operand_aliasing={{}: (1, {})}, calls=%end
}
"""


def test_a_move_that_several_fusions_continue_counts_once():
    found = program(hlo=CHAIN, balance=240.0)
    form = found["forms"][0]
    moved = {t.removeprefix("ROOT ").partition(" ")[0]: traffic
             for t, traffic in zip(form["text"].split("\n"), form["traffic"], strict=True)}
    part, whole, results = (2 * 256 * n for n in (32, 256, 128))
    assert moved["%async-start"] == moved["%gather.0"] == part + whole
    assert moved["%fusion"] == moved["%product"] == whole + 2 * results
    later = ("%begun", "%gather.1", "%gather.2", "%ended", "%async-done")
    assert not any([moved[name] for name in later])
    crossing, time = ([(found["strings"][o], amount) for o, amount, *_ in table["operations"]]
                      for table in map(found["costs"].get, ("crossing", "time")))
    assert crossing == [("all-gather", whole)]
    assert [name for name, _ in time] == ["convolution", "all-gather"]


def test_parts_that_arrive_side_by_side_are_their_whole():
    found = program(hlo="""HloModule m, is_scheduled=true

ENTRY %main (p: bf16[2,512,1024]) -> bf16[2,512,1024] {
  %p = bf16[2,512,1024]{2,1,0} parameter(0)
  %slice-start = ((bf16[2,512,1024]{2,1,0}), bf16[1,512,1024]{2,1,0:S(1)}, s32[]{:S(2)}) \
slice-start(%p), slice={[0:1], [0:512], [0:1024]}
  %slice-start.1 = ((bf16[2,512,1024]{2,1,0}), bf16[1,512,1024]{2,1,0:S(1)}, s32[]{:S(2)}) \
slice-start(%p), slice={[1:2], [0:512], [0:1024]}
  %slice-done = bf16[1,512,1024]{2,1,0:S(1)} slice-done(%slice-start)
  %slice-done.1 = bf16[1,512,1024]{2,1,0:S(1)} slice-done(%slice-start.1)
  %both = bf16[2,512,1024]{2,1,0:S(1)} custom-call(%slice-done, %slice-done.1), \
custom_call_target="ConcatBitcast"
  ROOT %n = bf16[2,512,1024]{2,1,0} negate(%both)
}
""")
    form, whole = found["forms"][0], 2 * 2 * 512 * 1024
    assert form["traffic"][0] == 4 * whole  # twice read and written, as parts and to negate them
    assert {found["strings"][o] for o, *_ in found["costs"]["time"]["operations"]} == {
        "slice-start", "negate"}
