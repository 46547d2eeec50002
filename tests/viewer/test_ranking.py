"""What costs most: shares of time, largest arrays, what crosses between devices; by line, part and
operation."""

from __future__ import annotations

import re

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from emit_hlo import tables
from pyjx import configuration, inspect
from pyjx.viewer.document import program
from pyjx.viewer.hlo import hlo_listing
from pyjx.viewer.jaxprs import changes
from pyjx.viewer.listing import Places, name_parts
from pyjx.viewer.ranking import costs, ranked


def heavy(w, x):
    return x @ w


def light(x):
    return x + 1.0


def model(w, x):
    y = heavy(w, x)
    for _ in range(3):
        y = light(y)
    return jax.lax.scan(lambda c, _: (jnp.sin(c) * 2.0, None), y[0], None, length=7)[0]


W, X = (jax.ShapeDtypeStruct(s, np.float32) for s in ((512, 512), (64, 512)))


def forms(fun, *args, **options):
    """The documents of a function as jaxpr alone, as StableHLO alone, and as compiled."""
    traced = jax.jit(fun).trace(*args)
    lowered = traced.lower()
    with configuration.cache(False):
        hlo = lowered.compile().as_text()
    return [program(jaxpr=traced.jaxpr), program(stablehlo=lowered.as_text(debug_info=True)),
            program(jaxpr=traced.jaxpr, hlo=hlo, **options)]


def line_of(fun, offset=1):
    return fun.__code__.co_firstlineno + offset


def lines(document, by="time"):
    return [row[1] for row in document["costs"][by]["lines"]]


def parts(document, by="time"):
    """Amounts of the nodes by their paths; what is of none by ""."""
    labels = [document["strings"][n] for n in document["scopes"]["label"]]
    parents = document["scopes"]["parent"]
    paths = []
    for label, parent in zip(labels, parents, strict=True):
        paths.append(label if parent < 0 else f"{paths[parent]}/{label}")
    return {paths[node] if node >= 0 else "": amount
            for node, amount, _ in document["costs"][by]["parts"]}


def test_the_dearest_line_comes_first():
    for document in forms(model, W, X):
        found = document["costs"]["time"]["lines"]
        assert found[0][1] == line_of(heavy) and found[0][2] > 0.6
        assert sum([row[2] for row in found]) <= 1.0001
        form, row = document["forms"][-1], found[0][4]
        assert "dot" in form["text"].split("\n")[row]
        name, share, count, _ = document["costs"]["time"]["operations"][0]
        assert "dot" in document["strings"][name] and share > 0.6 and count == 1


def test_functions_of_the_library_are_of_the_line_that_calls_them():
    """`tanh` has a derivative that is a function where there is much to compute."""
    def bent(x):
        return jnp.sum(jnp.tanh(x))

    document = forms(jax.grad(bent), jax.ShapeDtypeStruct((64, 256), np.float32))[1]
    form = document["forms"][0]
    assert "@tanh_grad" in form["text"]
    assert lines(document)[0] == line_of(bent)
    assert document["costs"]["time"]["lines"][0][2] == pytest.approx(1.0)


def test_each_row_has_its_share_with_what_it_runs():
    for document in forms(model, W, X):
        form = document["forms"][-1]
        assert form["share"][0] == 1.0 and max(form["share"]) == 1.0
        text = form["text"].split("\n")
        dot = next(i for i, t in enumerate(text) if "dot_general" in t or " dot(" in t)
        assert form["share"][dot] > 0.6


def test_functions_hold_what_they_call():
    document = forms(model, W, X)[0]
    found = parts(document)
    outer = next(path for path in found if path.endswith("/model"))
    assert found[f"{outer}/heavy"] + found[f"{outer}/light"] <= found[outer] + 1e-9
    assert found[f"{outer}/heavy"] > 0.6 and not any("<module>" in path for path in found)


def test_scopes_are_parts_where_there_are_some():
    def network(w, x):
        for i in range(3):
            with jax.named_scope(f"layer_{i}"):
                x = jnp.tanh(x @ w) if i == 1 else jnp.tanh(x)
        return jnp.sum(x)

    for document in forms(jax.grad(network), W, X)[::2]:
        found = parts(document)
        outer = next(path for path in found if path.endswith(".network"))
        assert found[f"{outer}/layer_1"] > 0.5 > found[f"{outer}/layer_0"] > 0
        assert found[outer] == pytest.approx(max(found.values()))
        assert not any("jvp" in path or "while" in path for path in found)


def attention(x):
    return jax.nn.softmax(x @ x) @ x


@jax.custom_vjp
def bent(x):
    return jnp.sin(x @ x) @ x


bent.defvjp(lambda x: (jnp.sin(x @ x) @ x, x), lambda x, g: (jnp.cos(g @ x.T) @ x,))
CUT = jax.shard_map(lambda x: jnp.sin(x @ x), mesh=jax.make_mesh((1,), ("i",)),
                    in_specs=jax.P(), out_specs=jax.P(), check_vma=False)


@pytest.mark.parametrize("made", [lambda x: x, lambda f: jax.grad(lambda x: jnp.sum(f(x)))])
@pytest.mark.parametrize("part", [
    attention, jax.jit(attention), jax.jit(jax.jit(bent)), bent, jax.checkpoint(attention), CUT,
    jax.jit(jax.checkpoint(attention))], ids=lambda f: type(f).__name__)
def test_scopes_hold_what_is_called_in_them(part, made):
    """Also where the function that is called is written once, for all who call it."""
    def inner(x):
        with jax.named_scope("first"):
            x = part(x)
        with jax.named_scope("second"):
            x = part(x)
            with jax.named_scope("deep"):
                return part(x)

    matrix = jax.ShapeDtypeStruct((128, 128), np.float32)
    for document in forms(made(inner), matrix)[::2]:
        found = {path[path.find(next(filter(path.count, ("first", "second")), "")):]: amount
                 for path, amount in parts(document).items()}
        assert found["first"] == pytest.approx(1 / 3, abs=0.03)
        assert found["second"] == pytest.approx(2 / 3, abs=0.03)
        assert found["second/deep"] == pytest.approx(1 / 3, abs=0.03)


def test_scopes_around_calls_of_calls_are_not_all_of_their_products():
    def twice(f):
        def inner(x):
            with jax.named_scope("first"):
                x = f(x)
            with jax.named_scope("second"):
                return f(x)

        return jax.jit(inner)

    f = jax.jit(jnp.sin)
    for _ in range(14):
        f = twice(f)
    document = program(jaxpr=jax.make_jaxpr(f)(1.0))
    assert len(document["scopes"]["label"]) < 2000
    assert sum(share for path, share in parts(document).items() if "/" not in path) == \
        pytest.approx(1.0, abs=0.01)


def test_what_was_traced_for_another_program_is_in_the_scope_of_its_call():
    """The frames of its operations are those of the first program."""
    part = jax.jit(attention)
    jax.make_jaxpr(lambda x: part(x))(jnp.ones((64, 64)))

    def later(x):
        with jax.named_scope("block"):
            return part(x)

    found = parts(program(jaxpr=jax.jit(later).trace(jnp.ones((64, 64))).jaxpr))
    (path,) = [path for path in found if path.endswith("later/block")]
    assert found[path] == pytest.approx(1.0)


def test_repeated_layers_are_told_apart():
    """To XLA they are one function."""
    def layer(w, x):
        for i in range(12):
            x = jnp.sin(x @ w) + float(i) * x
        return x

    def network(w, x):
        for i in range(6):
            with jax.named_scope(f"layer_{i}"):
                x = layer(w, x)
        return x

    with configuration.outline("on"):
        traced = jax.jit(network).trace(*[jax.ShapeDtypeStruct((64, 64), np.float32)] * 2)
        lowered = traced.lower()
        with configuration.cache(False):
            hlo = lowered.compile().as_text()
    assert "@layer" in lowered.as_text()
    found = parts(program(jaxpr=traced.jaxpr, hlo=hlo))
    layers = [amount for path, amount in found.items() if path.rpartition("/")[2][:6] == "layer_"]
    assert len(layers) == 6 and layers == pytest.approx([1 / 6] * 6, abs=0.01)


def test_loops_and_calls_count_as_often_as_they_run():
    def often(x):
        small = jax.jit(jnp.sin)
        y = small(small(x))
        return jax.lax.fori_loop(0, 98, lambda i, c: jnp.cos(c), y)

    for document in forms(often, jax.ShapeDtypeStruct((1000,), np.float32))[:2]:
        found = {document["strings"][o].removeprefix("stablehlo."): share for o, share, *_ in
                 document["costs"]["time"]["operations"]}
        sine, cosine = (next(v for k, v in found.items() if k.startswith(n)) for n in ("si", "co"))
        if len(document["forms"][0]["text"]) and document["forms"][0]["title"] == "jaxpr":
            assert cosine / sine == pytest.approx(98 / 2)


def test_of_branches_the_dearest_counts():
    def either(x):
        return jax.lax.cond(x[0, 0] > 0, lambda a: a @ a @ a, lambda a: a + 1.0, x)

    for document in forms(either, jax.ShapeDtypeStruct((256, 256), np.float32))[:2]:
        found = document["costs"]["time"]["operations"]
        operations = [document["strings"][o] for o, *_ in found]
        assert operations[0] == "dot_general" and "add" not in operations
        assert found[0][1] > 0.9  # both products


HLO = """HloModule m, is_scheduled=true

%two (p: f32[64]) -> f32[64] {
  %p = f32[64]{0} parameter(0)
  %s = f32[64]{0} add(%p, %p), metadata={op_name="jit(f)/add" source_file="f.py" source_line=1}
  ROOT %m = f32[64]{0} add(%s, %s), metadata={op_name="jit(f)/add" source_file="f.py" source_line=2}
}

%sum (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %z = f32[] add(%x, %y)
}

ENTRY %main (a: f32[64]) -> f32[64] {
  %a = f32[64]{0} parameter(0)
  %f = f32[64]{0} fusion(%a), kind=kLoop, calls=%two
  %g = f32[64]{0} all-reduce(%f), replica_groups={}, to_apply=%sum, \
metadata={op_name="jit(f)/psum" source_file="f.py" source_line=3}
  ROOT %h = f32[64]{0} negate(%g), metadata={op_name="jit(f)/neg" source_file="f.py" source_line=4}
}
"""


def test_measured_times_come_before_estimates():
    document = program(hlo=HLO, measured={"f": 3.0, "g": 0.0, "h": 1.0})
    assert document["measured"]
    found = {row[1]: row[2] for row in document["costs"]["time"]["lines"]}
    assert found == pytest.approx({1: 0.375, 2: 0.375, 4: 0.25})  # a fusion's is of what it does
    estimated = {row[1]: row[2] for row in program(hlo=HLO)["costs"]["time"]["lines"]}
    assert 3 in estimated and sum(estimated.values()) == pytest.approx(1.0)


def test_rows_of_a_fusion_share_its_time():
    def fused(x, y):
        return jnp.tanh(x + y) * y - x

    document = forms(fused, *[jax.ShapeDtypeStruct((1024, 1024), np.float32)] * 2)[-1]
    form = document["forms"][-1]
    text = form["text"].split("\n")
    shares = {name: form["share"][row] for row, line in enumerate(text) if form["depth"][row] == 2
              for name in ("add", "tanh", "multiply", "subtract") if f" {name}(" in line}
    # the operands and the result of each, as if it were alone
    assert shares == pytest.approx({"add": 3 / 11, "tanh": 2 / 11, "multiply": 3 / 11,
                                    "subtract": 3 / 11}, abs=1e-4)
    measured = program(hlo=HLO, measured={"f": 3.0, "h": 1.0})["forms"][0]
    rows = [line.split()[0] for line in measured["text"].split("\n")]
    assert [measured["share"][rows.index(name)] for name in ("%f", "%s", "ROOT")] == [
        0.75, 0.375, 0.375]


def test_forms_before_have_the_time_of_what_became_of_them():
    """What XLA fuses costs less than the operations by themselves."""
    traced = jax.jit(model).trace(W, X)
    lowered = traced.lower()
    with configuration.cache(False):
        hlo = lowered.compile().as_text()
    document = program(jaxpr=traced.jaxpr, stablehlo=lowered.as_text(debug_info=True), hlo=hlo)
    jaxpr, stablehlo, compiled = document["forms"]
    for form in (jaxpr, stablehlo):
        assert form["share"][0] == pytest.approx(1.0, abs=0.02)
        (dot,) = [i for i, t in enumerate(form["text"].split("\n")) if "dot_general" in t]
        found = {document["strings"][n]: s for n, s, *_ in document["costs"]["time"]["operations"]}
        assert form["share"][dot] == pytest.approx(found["dot"], abs=1e-4)
    alone = program(jaxpr=traced.jaxpr)["forms"][0]
    assert alone["share"] != jaxpr["share"] and compiled["share"][0] == 1.0


def test_lines_are_the_whole():
    text = """HloModule m, is_scheduled=true

%moved (p: f32[64,64]) -> f32[64,64] {
  %p = f32[64,64]{1,0} parameter(0)
  %t = f32[64,64]{1,0} transpose(%p), dimensions={1,0}
  ROOT %c = f32[64,64]{1,0} copy(%t)
}

ENTRY %main (a: f32[64,64], b: f32[64,64]) -> f32[64,64] {
  %a = f32[64,64]{1,0} parameter(0)
  %b = f32[64,64]{1,0} parameter(1)
  %f = f32[64,64]{1,0} fusion(%a), kind=kLoop, calls=%moved
  %n = f32[64,64]{1,0} negate(%b)
  ROOT %s = f32[64,64]{1,0} sine(%f), metadata={op_name="jit(f)/sin" source_file="f.py" \
source_line=5}
}
"""
    for measured in (None, {"f": 2.0, "s": 1.0, "n": 1.0}):
        found = program(hlo=text, measured=measured)["costs"]["time"]["lines"]
        shares = {line: share for _, line, share, *_ in found}
        assert sum(shares.values()) == pytest.approx(1.0) and set(shares) == {5, 0}
        assert shares[0] == pytest.approx(0.25 if measured else 1 / 3)  # that which no line reads


def test_what_the_compiler_made_is_of_the_line_that_needs_it():
    text = """HloModule m, is_scheduled=true

%narrow (p: f32[64]) -> bf16[64] {
  %p = f32[64]{0} parameter(0)
  %q = f32[64]{0} fusion(%p), kind=kLoop, calls=%same
  %s = f32[64]{0} sine(%q), metadata={op_name="jit(f)/sin" source_file="f.py" source_line=5}
  ROOT %c = bf16[64]{0} convert(%s)
}

%same (r: f32[64]) -> f32[64] {
  %r = f32[64]{0} parameter(0)
  ROOT %b = f32[64]{0} bitcast(%r)
}

ENTRY %main (a: f32[64]) -> bf16[64] {
  %a = f32[64]{0} parameter(0)
  %start = (f32[64]{0:S(1)}, f32[64]{0}, u32[]) copy-start(%a)
  %done = f32[64]{0:S(1)} copy-done(%start)
  ROOT %f = bf16[64]{0} fusion(%done), kind=kLoop, calls=%narrow
}
"""
    document = program(hlo=text)
    assert [row[1:3] for row in document["costs"]["time"]["lines"]] == [[5, pytest.approx(1.0)]]
    names = {document["strings"][o] for o, *_ in document["costs"]["time"]["operations"]}
    assert names == {"copy-start", "sine", "convert"}  # not the end of a copy, nor a view


def test_measured_loops_count_once():
    loop = """HloModule m, is_scheduled=true

%body (b: f32[8]) -> f32[8] {
  %b = f32[8]{0} parameter(0)
  ROOT %n = f32[8]{0} negate(%b)
}

%more (c: f32[8]) -> pred[] {
  %c = f32[8]{0} parameter(0)
  ROOT %no = pred[] constant(false)
}

ENTRY %main (a: f32[8]) -> f32[8] {
  %a = f32[8]{0} parameter(0)
  %w = f32[8]{0} while(%a), condition=%more, body=%body, \
backend_config={"known_trip_count":{"n":"10"}}
  ROOT %r = f32[8]{0} sine(%w)
}
"""
    listing = hlo_listing(loop, Places(), "HLO")
    spent = costs(listing, measured={"n": 3.0, "r": 1.0})
    row = {name: listing.operation.index(name) for name in ("while", "negate", "sine")}
    assert [spent.shares[row[n]] for n in row] == pytest.approx([0.75, 0.75, 0.25])
    assert spent.runs[row["negate"]] == 10


def test_the_largest_array_is_found():
    def wide(x):
        y = x[:, None] * jnp.arange(300.0)
        return jnp.sum(jnp.tanh(y @ y.T), axis=0) + jnp.sum(x)

    for document in forms(wide, jax.ShapeDtypeStruct((700,), np.float32))[:2]:
        found = document["costs"]["array"]["lines"]
        assert found[0][1:3] == [line_of(wide, 2), 4 * 700 * 700]
        assert [line_of(wide), 4 * 300 * 700] in [row[1:3] for row in found]


@pytest.mark.parametrize("loop", [
    lambda c, xs: jax.lax.scan(lambda c, x: (c @ x, c), c, xs),
    jax.jit(lambda c, xs: jax.lax.scan(lambda c, x: (c @ x, c), c, xs)),
    lambda c, xs: jax.lax.map(lambda x: c @ x, xs),
    lambda c, xs: jax.lax.cond(c[0, 0] > 0, lambda: jax.lax.map(lambda x: c @ x, xs), lambda: xs),
    lambda c, xs: jax.lax.scan(jax.checkpoint(lambda c, x: (c @ x, (c, c))), c, xs)])
def test_what_loops_stack_is_an_array_that_they_make(loop):
    for document in forms(loop, jnp.ones((8, 8)), jnp.ones((100, 8, 8))):
        (_, line, size, *_), *_ = document["costs"]["array"]["lines"]
        assert (line, size) == (loop.__code__.co_firstlineno if hasattr(loop, "__code__") else line,
                                100 * 8 * 8 * 4)


def test_what_crosses_between_devices():
    crossing = program(hlo=HLO)["costs"]["crossing"]
    assert [row[1:3] for row in crossing["lines"]] == [[3, 256.0]]
    mesh = jax.make_mesh((1,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    total = jax.shard_map(lambda x: jax.lax.psum(x, "d"), mesh=mesh, in_specs=jax.P("d"),
                          out_specs=jax.P())
    document = program(jaxpr=jax.make_jaxpr(total)(jnp.ones(8)))
    ((name, amount, *_),) = document["costs"]["crossing"]["operations"]
    assert document["strings"][name].startswith("psum") and amount == 32
    assert program(jaxpr=jax.make_jaxpr(jnp.sin)(1.0))["costs"]["crossing"]["lines"] == []


@pytest.mark.parametrize(("operation", "made"), [
    ("reduce-scatter", 64), ("all-gather", 512), ("all-reduce", 512), ("reduce-scatter", 512)])
def test_what_a_sum_leaves_elsewhere_crosses_too(operation, made):
    given = 64 if operation == "all-gather" else 512
    crossing = program(hlo=f"""HloModule m

ENTRY %main (a: f32[{given}]) -> f32[{made}] {{
  %a = f32[{given}] parameter(0)
  ROOT %r = f32[{made}] {operation}(%a), dimensions={{0}}
}}
""")["costs"]["crossing"]
    assert [row[1] for row in crossing["operations"]] == [4.0 * 512]


MOVED = """  %t = (f32[96], f32[32]) all-reduce(%a, %b), replica_groups={}, to_apply=%sum, AT3"""
STARTED = """  %s = (f32[96], f32[32]) all-reduce-start(%a, %b), replica_groups={}, \
to_apply=%sum, AT3
  %t = (f32[96], f32[32]) all-reduce-done(%s)"""


@pytest.mark.parametrize("how", [MOVED, STARTED])
def test_what_moves_together_is_of_the_line_of_each_array(how):
    text = f"""HloModule m, is_scheduled=true

%sum (x: f32[], y: f32[]) -> f32[] {{
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %z = f32[] add(%x, %y)
}}

ENTRY %main (a: f32[96], b: f32[32]) -> (f32[96], f32[32]) {{
  %a = f32[96] parameter(0)
  %b = f32[32] parameter(1)
{how}
  %u = f32[96] get-tuple-element(%t), index=0, AT3
  %v = f32[32] get-tuple-element(%t), index=1, AT4
  %n = f32[32] negate(%v), AT5
  ROOT %r = (f32[96], f32[32]) tuple(%u, %n)
}}
"""
    document = program(hlo=re.sub(
        r"AT(\d)", r'metadata={op_name="jit(f)/x" source_file="f.py" source_line=\1}', text))
    moves = next(i for i, t in enumerate(document["forms"][0]["text"].split("\n"))
                 if " all-reduce" in t)
    assert [row[1:] for row in document["costs"]["crossing"]["lines"]] == [
        [3, 384.0, 1, moves], [4, 128.0, 1, moves]]
    time = {line: amount for _, line, amount, *_ in document["costs"]["time"]["lines"]}
    assert time[3] == pytest.approx(3 * time[4]) and sum(time.values()) == pytest.approx(1.0)
    names = [document["strings"][name] for name, *_ in document["costs"]["crossing"]["operations"]]
    assert names == [document["strings"][document["forms"][0]["operation"][moves]]]


@pytest.mark.parametrize("lines", [
    """  %s = (f32[8], f32[8], u32[], u32[]) collective-permute-start(%a), AT3
  %t = f32[8] get-tuple-element(%s), index=1, AT4
  %d = f32[8] collective-permute-done(%s), AT5""",
    "  %d = f32[8] all-reduce(%a), AT3\n  %t = f32[8] get-tuple-element(%x), index=0",
    "  %d = f32[8] all-reduce(%a), AT3\n  %x = (f32[8]) all-reduce-done(%w)\n"
    "  %t = f32[8] get-tuple-element(%x), index=0"])
def test_picks_from_what_was_started_or_stands_elsewhere(lines):
    text = f"""HloModule m, is_scheduled=true

ENTRY %main (a: f32[8]) -> f32[8] {{
  %a = f32[8] parameter(0)
{lines}
  ROOT %r = f32[8] add(%t, %d), AT6
}}
"""
    document = program(hlo=re.sub(r"AT(\d)", r'metadata={source_file="f.py" source_line=\1}', text))
    assert [row[1:3] for row in document["costs"]["crossing"]["lines"]] == [[3, 32.0]]


def test_the_users_line_is_the_innermost_outside_of_installed_packages():
    places = Places()
    outer = places.at("model.py", "<module>", 9)
    own = places.at("model.py", "loss", 3, 1, outer)
    foreign = places.at("/lib/site-packages/flax/linear.py", "Dense.__call__", 7, 1, own)
    assert places.own_line(foreign) == ("model.py", 3)
    assert places.functions(foreign) == ["loss"]
    # A call that XLA inlined: its frames, then those that the operation has itself.
    again = places.at("model.py", "<module>", 9, 0, own)
    assert places.functions(places.at("model.py", "layer", 5, 1, again)) == ["layer"]


def test_parts_of_names():
    assert name_parts("jit(f)/while/body/sin") == ["while", "body", "sin"]
    assert name_parts("jit(step)/jvp(block)/jit(step)/transpose(jvp(a))/b/mul") == [
        "transpose(jvp(a))", "b", "mul"]


def test_ranking_of_largest():
    assert ranked(["a", "b", "a"], [1.0, 3.0, 2.0], True) == [("b", 3.0, 1, 1), ("a", 2.0, 2, 2)]


def test_passes_show_what_they_changed():
    closed = jax.make_jaxpr(lambda x: (jnp.sin(x), jax.nn.softmax(x) * 2)[1])(jnp.ones(3))
    found = {step["name"]: step for step in changes(inspect.passes(closed))}
    assert found["physicalize"]["lines"] == []
    dead = found["dce"]
    assert dead["before"] == dead["after"] + 1
    (removed,) = [line for line in dead["lines"] if line.startswith("-")]
    assert "sin" in removed and not any(line.startswith("+") for line in dead["lines"])
    # Variables keep their names, so that what did not change is the same text.
    assert any("custom_jvp_call" in line for line in found["decompose"]["lines"] if line[0] == "-")


def test_passes_say_what_the_command_lists():
    def said(x):
        jax.debug.print("{}", x, ordered=True)
        return x

    over = jax.jit(jnp.sin).trace(jax.device_put(jnp.ones(2), jax.NamedSharding(
        jax.make_mesh((1,), ("x",)), jax.P("x")))).lower()
    with configuration.outline("on"):
        found = {p.name: p.about for steps in [
            inspect.passes(over), inspect.passes(jax.make_jaxpr(said)(1.0)),
            inspect.passes(within_budget())] for p in steps}
    assert found == tables.PASSES


def test_passes_are_those_of_the_program_that_is_lowered():
    def layers(x, length):
        for _ in range(length):
            x = jnp.tanh(x @ x) + jnp.sin(x)
        return x

    for length in (4, 300):  # blocks become functions in long programs alone
        lowered = jax.jit(layers, static_argnums=1).lower(jnp.ones((3, 3)), length)
        last = inspect.passes(lowered)[-1].after
        functions = lowered.as_text().count("func.func private")
        assert (functions > 0) == (length == 300)
        assert (len(last.eqns) < length) == (functions > 0)
    lowered = within_budget()
    last = inspect.passes(lowered)[-1].after
    tanh = [e for e in last.eqns if e.primitive.name == "tanh"]
    assert len(tanh) == lowered.as_text().count("stablehlo.tanh") > 12


def within_budget():
    def loss(ws, x):
        for w in ws:
            x = jnp.tanh(jnp.sin(x @ w) * 2)
        return (x ** 2).sum()

    matrix = jax.ShapeDtypeStruct((64, 64), np.float32)
    return jax.jit(jax.grad(loss), memory_budget="9MiB").lower(
        [matrix] * 12, jax.ShapeDtypeStruct((4096, 64), np.float32))


def stack(c, ws):
    def step(c, w):
        c = jnp.tanh(c @ w)
        return c, c

    return jax.lax.scan(step, c, ws)


def test_a_loop_moves_the_part_of_what_is_stacked_that_each_iteration_touches():
    shapes = [jax.ShapeDtypeStruct(s, np.float32) for s in ((64, 64), (1000, 64, 64))]
    document = forms(stack, *shapes)[-1]
    found = {row[1]: row[2] for row in document["costs"]["time"]["lines"]}
    # a slice and an update of a matrix, 2 of its bytes each, beside a product, 3.2, and `tanh`, 2;
    # and the table that is filled with zeros before, 1
    assert found[line_of(stack, 2)] == pytest.approx(5.2 / 10.2, abs=0.01)
    assert document["forms"][-1]["traffic"][0] == pytest.approx(10_000 * 4 * 64 * 64, rel=0.01)
