"""What XLA makes in loops under the name of the loop, and times of loops that are one kernel."""

from __future__ import annotations

import re

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import configuration, inspect, jaxlib_api, lax
from pyjx.viewer.document import program

MATRIX, VECTOR = (jax.ShapeDtypeStruct(s, np.float32) for s in ((256, 256), (256,)))


def power(a, v):
    def step(v, _):
        return a @ v, None

    return lax.scan(step, v, None, length=20)[0]


def iteration(a, v):
    def step(_, v):
        v = a @ v
        return v / jnp.linalg.norm(v)

    return lax.fori_loop(0, 50, step, v)


def conjugate(a, b):
    def step(s, _):
        x, r, p, rs = s
        moved = a @ p
        along = rs / (p @ moved)
        r = r - along * moved
        new = r @ r
        return (x + along * p, r, r + (new / rs) * p, new), new

    return lax.scan(step, (jnp.zeros_like(b), b, b, b @ b), None, length=20)[0][0]


def read_by_others(a, v):
    def step(v, _):
        z = a @ v
        z = jnp.sin(z.reshape(16, 16)).T
        return jnp.tanh(z).reshape(256), z.sum()

    return lax.scan(step, v, None, length=20)


def document(fun, *args, **options):
    traced = jax.jit(fun).trace(*(args or (MATRIX, VECTOR)))
    lowered = traced.lower()
    with configuration.cache(False):
        hlo = lowered.compile().as_text()
    return program(jaxpr=traced.jaxpr, stablehlo=lowered.as_text(debug_info=True), hlo=hlo,
                   **options)


@pytest.mark.parametrize(("fun", "line"), [
    (power, 2), (iteration, 2), (conjugate, 3), (read_by_others, 2)])
def test_a_product_in_a_loop_is_of_its_own_line(fun, line):
    """On a CPU XLA makes it anew, and gives it the name of the loop."""
    found = document(fun)
    best = found["costs"]["time"]["lines"][0]
    assert best[1] == fun.__code__.co_firstlineno + line and best[2] > 0.9
    labels = [found["strings"][n] for n in found["scopes"]["label"]]
    parts = {labels[node]: amount for node, amount, _ in found["costs"]["time"]["parts"]}
    assert parts[f"{fun.__name__}.<locals>.step"] > 0.9
    for form in found["forms"][:2]:
        product = max(range(len(form["share"])), key=lambda row: form["flops"][row] * (
            "dot_general" in form["text"].split("\n")[row].partition("loc(")[0]))
        assert form["share"][product] > 0.9


@pytest.mark.parametrize("measured", [False, True])
def test_products_into_which_a_transpose_was_folded_are_those_of_the_program(measured):
    """XLA gives them the name of the transpose."""
    def loss(ws, x):
        for i, w in enumerate(ws):
            with jax.named_scope(f"layer_{i}"):
                x = jnp.tanh(x @ w)
        return jnp.sum(x ** 2)

    weights = [jax.ShapeDtypeStruct(s, np.float32) for s in ((256, 128), (128, 256), (256, 128))]
    seconds = {"dot": 1.0, "dot.1": 1.0, "dot.2": 1.0} if measured else None
    found = document(jax.grad(loss), weights, MATRIX, measured=seconds)
    for form in found["forms"]:
        names = [found["strings"][n] for n in form["name"]]
        rows = [(name, share) for kind, name, share in zip(
            form["kind"], names, form["share"], strict=True) if kind == 0]
        least = 0.03 if jaxlib_api.JAXLIB_VERSION < (0, 8) else 0  # it tells no positions in a line
        assert sum(share for name, share in rows if name.endswith("/transpose")) <= least
        made = [name for name, share in rows if name.endswith("dot_general")]
        assert {f"jit(loss)/transpose(jvp(layer_{i}))/dot_general" for i in range(3)} <= {*made}


def test_products_of_one_line_are_told_apart():
    """The backward pass has two, of as much arithmetic, of which XLA makes one anew."""
    def loss(a, v):
        return power(a, v).sum()

    found = document(jax.grad(loss))
    for form in found["forms"][:2]:
        products = [share for share, flops, text in zip(
            form["share"], form["flops"], form["text"].split("\n"), strict=True)
            if "dot_general" in text and "while" not in text and 0 < flops < 1e6]
        assert len(products) == 3 and min(products) > 0.2


def test_slices_of_a_loop_are_the_loops():
    def outputs(ws, c):
        return lax.scan(lambda c, w: (jnp.tanh(w * c), None), jnp.zeros(256) + c, ws)[0]

    found = document(outputs)
    jaxpr = found["forms"][0]
    text = jaxpr["text"].split("\n")
    (loop, zeros) = (next(i for i, t in enumerate(text) if name in t)
                     for name in ("scan[", "broadcast_in_dim"))
    assert jaxpr["share"][loop] > 0.99 > 0.1 > jaxpr["share"][zeros]


def test_only_the_loop_has_its_name():
    for fun in (power, iteration, lambda a, v: jnp.cumsum(a, axis=0) @ v):
        text = jax.jit(fun).lower(MATRIX, VECTOR).as_text(debug_info=True)
        loops = re.findall(r"^ *\} (loc\(#loc\d+\))", text, re.M)
        inside = "".join(re.findall(r"while\(.*\{\n((?:      .*\n|    \} do.*\n)*)", text))
        assert loops and "stablehlo.add" in inside
        assert not any(loop in inside for loop in loops)


CALL = """HloModule m, is_scheduled=true

%body (b: (s32[], f32[64,64])) -> (s32[], f32[64,64]) {
  %b = (s32[], f32[64,64]{1,0}) parameter(0), metadata={op_name="jit(f)/scan" source_file="f.py" \
source_line=2}
  %i = s32[] get-tuple-element(%b), index=0
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one), metadata={op_name="jit(f)/while/body/scan" source_file="f.py" \
source_line=2}
  %x = f32[64,64]{1,0} get-tuple-element(%b), index=1
  %d = f32[64,64]{1,0} dot(%x, %x), lhs_contracting_dims={1}, rhs_contracting_dims={0}, \
metadata={op_name="jit(f)/scan" source_file="f.py" source_line=2}
  %n = f32[64,64]{1,0} negate(%d), metadata={op_name="jit(f)/while/body/neg" source_file="f.py" \
source_line=1}
  ROOT %t = (s32[], f32[64,64]{1,0}) tuple(%next, %n)
}

%test (c: (s32[], f32[64,64])) -> pred[] {
  %c = (s32[], f32[64,64]{1,0}) parameter(0)
  ROOT %no = pred[] constant(false)
}

%loop (p: (s32[], f32[64,64])) -> (s32[], f32[64,64]) {
  %p = (s32[], f32[64,64]{1,0}) parameter(0)
  ROOT %w = (s32[], f32[64,64]{1,0}) while(%p), condition=%test, body=%body, \
metadata={op_name="jit(f)/scan" source_file="f.py" source_line=2}, \
backend_config={"known_trip_count":{"n":"10"}}
}

ENTRY %main (a: f32[64,64]) -> (s32[], f32[64,64]) {
  %a = f32[64,64]{1,0} parameter(0)
  %zero = s32[] constant(0)
  %copy = f32[64,64]{1,0} copy(%a)
  %start = (s32[], f32[64,64]{1,0}) tuple(%zero, %copy)
  ROOT %call = (s32[], f32[64,64]{1,0}) call(%start), to_apply=%loop, \
metadata={op_name="jit(f)/scan" source_file="f.py" source_line=2}
}
"""


def lines(found):
    return {row[1]: row[2] for row in found["costs"]["time"]["lines"]}


def operations(found):
    return {found["strings"][o]: share for o, share, *_ in found["costs"]["time"]["operations"]}


def test_the_time_of_a_loop_that_is_one_kernel_is_of_its_lines():
    found = program(hlo=CALL, measured={"call": 9.0, "copy": 1.0})
    assert lines(found)[1] > 0.89 and sum(lines(found).values()) == pytest.approx(1.0)
    assert operations(found)["dot"] > 0.5
    assert sum(operations(found).values()) == pytest.approx(1.0)


def test_of_branches_those_that_were_measured_count():
    either = """HloModule m, is_scheduled=true

%much (p: f32[64,64]) -> f32[64,64] {
  %p = f32[64,64]{1,0} parameter(0)
  ROOT %d = f32[64,64]{1,0} dot(%p, %p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

%little (q: f32[64,64]) -> f32[64,64] {
  %q = f32[64,64]{1,0} parameter(0)
  ROOT %n = f32[64,64]{1,0} negate(%q)
}

ENTRY %main (c: pred[], a: f32[64,64]) -> f32[64,64] {
  %c = pred[] parameter(0)
  %a = f32[64,64]{1,0} parameter(1)
  %s = f32[64,64]{1,0} sine(%a)
  ROOT %w = f32[64,64]{1,0} conditional(%c, %s, %s), branch_computations={%much, %little}
}
"""
    for branch, seconds in (("n", {"n": 3.0, "s": 1.0}), ("d", {"d": 3.0, "s": 1.0})):
        found = program(hlo=either, measured=seconds)
        name = {"n": "negate", "d": "dot"}[branch]
        assert operations(found) == pytest.approx({name: 0.75, "sine": 0.25})
        form = found["forms"][0]
        row = next(i for i, t in enumerate(form["text"].split("\n")) if f" {name}(" in t)
        assert form["share"][row] == 0.75 and form["share"][0] == 1.0


def test_the_page_and_the_messages_tell_one_thing_of_measured_times():
    traced = inspect.trace(iteration, MATRIX, VECTOR)
    said = inspect.measure(traced, runs=2)
    found = program(jaxpr=traced.jaxpr, hlo=traced.hlo_opt, measured=traced.measured)
    told = {int(line.rpartition(":")[2]) for o in said.operations for line in o.lines}
    assert set(lines(found)) <= told | {0}
    slowest = max(said.operations, key=lambda o: o.seconds)
    assert slowest.lines[0].endswith(f":{iteration.__code__.co_firstlineno + 2}")
    assert sum(lines(found).values()) == pytest.approx(1.0)
    assert found["costs"]["time"]["lines"][0][1] == iteration.__code__.co_firstlineno + 2
