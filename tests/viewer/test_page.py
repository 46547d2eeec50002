"""The page: one file that holds all it needs; graphs; notebooks."""

from __future__ import annotations

import base64
import json
import re
import zlib

import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import inspect, viewer


def loss(w, x):
    return jnp.sum(jnp.tanh(x @ w))


def deep(ws, x):
    for w in ws:
        x = jnp.tanh(jax.nn.silu(x @ w)) + x
    return (x**2).mean()


@pytest.fixture(scope="module")
def view():
    return viewer.show(jax.grad(loss), jnp.ones((3, 4)), jnp.ones((2, 3)))


def test_page_is_one_file_without_network(view):
    text = view.html
    assert text.startswith("<!doctype html>") and text.rstrip().endswith("</html>")
    assert not re.search(r"""(?:src|href)\s*=\s*["']?(?!#)|@import|url\(|https?://""", text)
    assert "default-src 'none'" in text


def document(page: str):
    (data,) = re.findall(r'<script id="program" type="[^"]*">([^<]*)</script>', page)
    return json.loads(zlib.decompress(base64.b64decode(data)))


def test_page_holds_the_forms_and_the_source(view):
    data = document(view.html)
    assert [f["title"] for f in data["forms"]] == ["jaxpr", "StableHLO", "Optimised HLO"]
    line = loss.__code__.co_firstlineno + 1
    assert data["source"][__file__][str(line)] == "    return jnp.sum(jnp.tanh(x @ w))"
    for form in data["forms"]:
        rows = form["text"].count("\n") + 1
        for column in ("depth", "kind", "operation", "shape", "name", "place", "group", "site",
                       "size", "flops", "traffic"):
            assert len(form[column]) == rows, column


def test_page_is_the_same_each_time():
    closed = jax.make_jaxpr(loss)(jnp.ones((3, 4)), jnp.ones((2, 3)))
    assert viewer.page("a", jaxpr=closed) == viewer.page("a", jaxpr=closed)


def test_both_curves_are_there_with_a_budget(view):
    """As `memory()` expects them, with what is computed again."""
    assert document(view.html)["budget"] is None
    args = [jnp.ones((64, 64))] * 8, jnp.ones((512, 64))
    free = jax.jit(jax.grad(deep)).trace(*args).memory().peaks[0]
    bounded = jax.jit(jax.grad(deep), memory_budget=int(0.7 * free))
    memory = bounded.trace(*args).memory()
    shown = document(viewer.show(bounded, *args, optimised=False).html)["budget"]
    assert shown["bytes"] == memory.budget == int(0.7 * free)
    assert (max(shown["before"]), max(shown["after"])) == memory.peaks
    assert "f32[512,64]" in shown["largest"][0] and shown["again"]


def test_titles_and_programs_cannot_end_the_script():
    closed = jax.make_jaxpr(jax.named_call(lambda x: x * 2, name="</script><b>"))(1.0)
    text = viewer.page("</title><script>alert()</script>", jaxpr=closed)
    assert "<script>alert" not in text
    assert text.count("</script>") == 2


def test_figures_are_shown():
    closed = jax.make_jaxpr(jnp.sin)(1.0)
    page = viewer.page("sin", jaxpr=closed, cost={"XLA's FLOPs": 3.0, "compiled": "12 ms"})
    assert document(page)["figures"] == [["XLA's FLOPs", 3.0], ["compiled", "12 ms"]]


@pytest.mark.parametrize("given", [{}, {"stablehlo": ""}, {"hlo": "nothing"}])
def test_a_page_of_nothing_is_refused(given):
    with pytest.raises(ValueError, match="page: expected a jaxpr, StableHLO text or HLO text"):
        viewer.page("none", **given)


def test_notebooks_get_a_frame(view, tmp_path):
    frame = view._repr_html_()
    assert frame.startswith('<iframe srcdoc="&lt;!doctype html&gt;') and "sandbox" in frame
    view.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == view.html


def test_graphs_of_operations_and_calls():
    step = jax.jit(lambda x: jnp.sin(x) * 2)
    traced = jax.jit(lambda x: step(x) + step(x + 1)).trace(1.0)
    for program in (traced.jaxpr, traced.lower().as_text(), traced.lower().compile().as_text()):
        graph = viewer.dot(program)
        assert graph.startswith("digraph program {") and graph.endswith("}")
        nodes = set(re.findall(r"^\s*(n\d+) \[", graph, re.M))
        assert set(re.findall(r"\bn\d+\b", graph)) == nodes
        assert graph.count("{") == graph.count("}")
    assert 'n0 -> n1 [label="x2"];' in viewer.dot(traced.jaxpr, calls=True)


def test_graphs_of_other_text_are_refused():
    with pytest.raises(ValueError, match="dot: expected a jaxpr, StableHLO text or HLO text"):
        viewer.dot("x = 3")


@pytest.mark.parametrize(("trace", "form"), [
    (inspect.trace, "TracedProgram"), (lambda f, x: jax.jit(f).trace(x), "Traced")])
def test_what_was_traced_is_its_jaxpr(trace, form):
    traced = trace(lambda x: jnp.sin(x) * 2, 1.0)
    assert type(traced).__name__ == form
    assert viewer.dot(traced) == viewer.dot(traced.jaxpr)
    assert viewer.page("p", jaxpr=traced) == viewer.page("p", jaxpr=traced.jaxpr)
    assert [p.name for p in inspect.passes(traced)] == [p.name for p in inspect.passes(
        traced.jaxpr)]


@pytest.mark.parametrize("call", [
    viewer.dot, lambda x: viewer.page("p", jaxpr=x), lambda x: list(inspect.passes(x))])
@pytest.mark.parametrize("given", [loss, 3, jax.jit(loss), ["a"]])
def test_what_is_no_program_is_refused(call, given):
    with pytest.raises(TypeError, match=r"must be a jaxpr, such as .*trace\(x\)\.jaxpr, got"):
        call(given)
