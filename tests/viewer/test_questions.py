"""What users ask of a program: each is answered within two clicks."""

from __future__ import annotations

import subprocess
import sys

import pytest

import pyjx as jax
import pyjx.numpy as jnp
from emit_hlo.tables import PASSES
from pyjx import viewer
from tests.viewer.browsing import browser, opened, row, settled, viewed  # noqa: F401

pytestmark = pytest.mark.browser


def attention(w, x):
    scores = x @ x.T
    return jax.nn.softmax(scores) @ x @ w


def mlp(w1, w2, x):
    return jnp.tanh(x @ w1) @ w2


def loss(params, x):
    x = attention(params["w"], x)
    x = mlp(params["w1"], params["w2"], x)
    return jnp.mean(jnp.sin(x))


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "loss.html"
    params = {k: jax.ShapeDtypeStruct(s, jnp.float32)
              for k, s in {"w": (128, 128), "w1": (128, 800), "w2": (800, 128)}.items()}
    viewer.show(jax.grad(loss), params, jax.ShapeDtypeStruct((1000, 128), jnp.float32)).save(path)
    return path


class Clicks:
    """A page on which at most two clicks are made."""

    def __init__(self, page):
        self.page, self.left = page, 2

    def on(self, target):
        assert self.left, "a third click"
        self.left -= 1
        (self.page.locator(target).first if isinstance(target, str) else target).click()
        settled(self.page)

    def text(self, selector):
        return self.page.inner_text(selector)


@pytest.fixture
def page(browser, file):  # noqa: F811
    page = viewed(browser, file, width=1280)
    yield Clicks(page)
    assert not page.errors
    page.close()


LINE = ".tables section:nth-child(1) .cost-link"
PART = ".tables section:nth-child(2) .cost-link"
KIND = ".tables section:nth-child(3) .cost-link"


def test_which_line_is_slow_and_what_bounds_it(page):
    assert "return jnp.tanh(x @ w1) @ w2" in page.text(LINE)  # without a click
    page.on(LINE)
    page.on("#tab-operation")
    assert "return jnp.tanh(x @ w1) @ w2" in page.text("#operation .here")
    assert "bound by arithmetic" in page.text("#operation .facts")


def test_which_line_makes_the_largest_buffer(page):
    page.on("[data-by=array]")
    assert "3.81 MiB" in page.text(LINE)
    assert "scores" in page.text(LINE)
    page.on(LINE)
    assert "[1000,1000]" in page.text(".row.selected")


def test_which_layer_is_slow(page):
    parts = page.page.locator(PART).all_inner_texts()
    names = [text.split()[-1] for text in parts]
    assert names.index("loss") < names.index("mlp") < names.index("attention")
    page.on(page.page.locator(PART, has_text="attention"))
    assert "f32" in page.text(".row.selected")


def test_which_functions_make_the_largest_array(browser, tmp_path):  # noqa: F811
    """Also that around all others, if it makes one."""
    def inner(x):
        return x[:8] @ x

    def outer(x):
        return jnp.sin(inner(x) @ x)

    viewer.show(lambda x: outer(x), jnp.ones((64, 64))).save(tmp_path / "outer.html")
    page = Clicks(viewed(browser, tmp_path / "outer.html"))
    assert page.text(PART).endswith("outer")  # what does nothing but call it is left out
    page.on("[data-by=array]")
    texts = page.page.locator(PART).all_inner_texts()
    assert [text.split()[0:3:2] for text in texts[-2:]] == [["2.00", "outer"], ["2.00", "inner"]]
    page.on(page.page.locator(PART, has_text="outer").last)
    assert "f32[8,64]" in page.text(".pane:nth-child(1) .row.selected")
    page.page.close()


def test_what_is_not_known(browser, tmp_path):  # noqa: F811
    n, = jax.export.symbolic_shape("n")
    traced = jax.jit(lambda x: jnp.sum(x * 2)).trace(jax.ShapeDtypeStruct((n, 4), jnp.float32))
    text = viewer.page("sum", jaxpr=traced.jaxpr, stablehlo=traced.lower().as_text(debug_info=True))
    (tmp_path / "sum.html").write_text(text, encoding="utf-8")
    page = Clicks(viewed(browser, tmp_path / "sum.html"))
    for by in ("array", "crossing"):
        page.on(f"[data-by={by}]")
        assert page.page.locator(".tables .hint").all_inner_texts() == ["Not known."] * 3
    page.page.close()


def test_where_a_transpose_comes_from(page):
    page.on(page.page.locator(".pane:nth-child(1) .row", has_text="transpose[permutation").last)
    facts = page.text("#operation .facts")
    assert "the backward pass of a derivative" in facts
    assert " @ " in page.text("#operation .here")
    page.on("#operation .kin .link")  # what became of it
    assert page.text(".row.selected")


def test_what_crosses_between_devices(page, browser, tmp_path):  # noqa: F811
    page.on("[data-by=crossing]")
    assert "Nothing crosses." in page.text(".tables")
    mesh = jax.make_mesh((1,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    total = jax.shard_map(lambda x: jax.lax.psum(jnp.sin(x), "d"), mesh=mesh,
                          in_specs=jax.P("d"), out_specs=jax.P())
    text = viewer.page("sum", jaxpr=jax.make_jaxpr(total)(jnp.ones(1000)))
    (tmp_path / "sum.html").write_text(text, encoding="utf-8")
    other = Clicks(viewed(browser, tmp_path / "sum.html"))
    other.on("[data-by=crossing]")
    assert "3.91 KiB" in other.text(LINE) and "lax.psum(jnp.sin(x)" in other.text(LINE)
    other.on(LINE)
    assert "psum" in other.text(".row.selected")
    other.page.close()


def test_why_a_function_was_compiled_twice(page, browser, tmp_path):  # noqa: F811
    (tmp_path / "twice.py").write_text(
        "import pyjx as jax\nf = jax.jit(lambda x: x + 1)\nf(1.0)\nf(jax.numpy.ones(3))\n")
    subprocess.run([sys.executable, "-m", "pyjx", "report", "-o", tmp_path / "report.html",
                    tmp_path / "twice.py"], check=True)
    report = Clicks(opened(browser, tmp_path / "report.html"))
    report.on("#functions + p + table a")
    assert report.text("tr:target td:first-child") == "<lambda>"
    assert "f32[] -> f32[3]" in report.text("tr:target + tr")
    assert not report.page.errors
    report.page.close()


@pytest.mark.parametrize("width", [700, 900])
def test_wide_tables_of_the_report_scroll_by_themselves(browser, tmp_path, width):  # noqa: F811
    name = "a_function_of_some_name"
    (tmp_path / "named.py").write_text(
        f"import pyjx as jax\n@jax.jit\ndef {name}(x):\n  return x\n"
        f"jax.jit(lambda x: {name}(x)).lower(1.0)\n{name}(1.0)\n{name}(jax.numpy.ones(3))\n")
    subprocess.run([sys.executable, "-m", "pyjx", "report", "-o", tmp_path / "report.html",
                    tmp_path / "named.py"], check=True)
    report = opened(browser, tmp_path / "report.html", width=width)
    assert "no program" in report.inner_text("#compilations + p + table")
    assert report.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert report.evaluate("[...document.querySelectorAll('table')].some("
                           "(t) => t.scrollWidth > t.clientWidth)")
    report.close()


def test_what_is_alive_at_the_peak(page):
    page.on("#tab-memory")
    assert "3.05 MiB" in page.text("#memory .largest .link")
    page.on("#memory .largest .link")
    assert page.text(".pane:nth-child(3) .row.selected")


def test_what_xla_made_of_a_line(page):
    page.on(row(page.page, 1, "dot_general"))
    page.page.wait_for_selector(".pane:nth-child(3) .row.linked")
    assert "Optimised HLO" in page.text("#operation .kin")


def test_who_reads_a_value(page):
    page.on(row(page.page, 1, "tanh"))
    assert "Read by" in page.text("#operation .kin")
    assert page.page.locator(".pane:nth-child(1) .row.user").count() >= 1


def test_what_a_pass_does(page):
    page.on("#tab-passes")
    page.on(page.page.locator("#passes .link", has_text="decompose"))
    assert page.text("#passes .diff").startswith(PASSES["decompose"])
    for step in page.page.locator("#passes .link").all():
        assert step.get_attribute("title") == PASSES[step.inner_text().split()[0]]
    removed = page.page.locator("#passes .removed").all_inner_texts()
    assert any("tanh_grad" in text or "integer_pow" in text or "custom_jvp" in text
               for text in removed)


def test_how_data_flows_through_a_function(page):
    page.on("#tab-graph")
    nodes = page.page.locator("#graph .node")
    before = nodes.count()
    assert any("mlp" in text for text in nodes.all_text_contents())
    page.on(page.page.locator("#graph .node:not(.open)", has_text="mlp"))
    assert nodes.count() > before
    assert any("return jnp.tanh(x @ w1) @ w2" in text for text in nodes.all_text_contents())
    assert page.page.locator("#graph path").count() > 2


@pytest.mark.parametrize(("query", "kind", "wanted"), [
    ("scores", "line", "scores = x @ x.T"), ("mlp", "function", "mlp")])
def test_where_a_variable_or_a_function_is(page, query, kind, wanted):
    page.page.keyboard.press("/")
    page.page.keyboard.type(query)
    hit = page.page.locator("#hits .link", has_text=wanted).first
    assert kind in hit.inner_text()
    page.on(hit)
    total = int(page.text("#found").split(" of ")[1])
    assert total > 3 and page.page.locator("#hits").is_hidden()
    page.on("#tab-operation")
    line = page.text("#operation .origin")
    assert wanted in line


@pytest.mark.parametrize("optimised", [False, True])
def test_where_a_function_in_a_named_scope_is(browser, tmp_path, optimised):  # noqa: F811
    def scoped(params, x):
        with jax.named_scope("mlp_block"):
            return jnp.sum(mlp(params["w1"], params["w2"], x)) + jnp.sum(x)

    params = {"w1": jnp.ones((128, 800)), "w2": jnp.ones((800, 128))}
    viewer.show(scoped, params, jnp.ones((64, 128)), optimised=optimised).save(
        tmp_path / "scoped.html")
    opened = viewed(browser, tmp_path / "scoped.html")
    opened.keyboard.press("/")
    opened.keyboard.type("mlp")
    hits = opened.locator("#hits .link", has_text="function")
    assert hits.all_inner_texts() == ["function mlp_block", "function mlp"]
    hits.last.click()
    found = [opened.evaluate("([f, r]) => viewer.panes[f].form.operation(r)", pair) for pair in
             opened.evaluate("viewer.search.found.map(([form, row]) => [form.index, row])")]
    assert found.count("dot_general") == 2 and not [name for name in found if "reduce" in name]
    assert not opened.errors
    opened.close()


def test_which_operation_a_value_is_of(page):
    page.page.keyboard.press("/")
    name = page.text(".pane:nth-child(1) .row >> nth=2").split(":")[0].strip()
    page.page.keyboard.type(name)
    page.on(page.page.locator("#hits .link", has_text="jaxpr").first)
    assert page.text(".row.selected").startswith(f"{name}:")
