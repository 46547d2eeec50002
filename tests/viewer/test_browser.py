"""The page in a real browser."""

from __future__ import annotations

import base64
import re

import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import viewer
from tests.viewer.browsing import browser, row, settled, viewed  # noqa: F401

pytestmark = pytest.mark.browser


def layer(w, x):
    return jnp.tanh(x @ w)


def loss(ws, x):
    def step(c, _):
        return jnp.sin(c) * 2.0, None

    for w in ws:
        x = layer(w, x)
    return jnp.sum(jax.lax.scan(step, x, None, length=3)[0])


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "loss.html"
    ws = [jnp.ones((4, 4)) for _ in range(3)]
    viewer.show(jax.value_and_grad(loss), ws, jnp.ones((2, 4))).save(path)
    return path


@pytest.fixture
def page(browser, file):  # noqa: F811
    page = viewed(browser, file)
    yield page
    assert not page.errors
    page.close()


def test_hovering_shows_source_cost_and_relatives(page):
    page.keyboard.press("o")
    row(page, 1, "dot_general").hover()
    page.wait_for_selector(".pane:nth-child(2) .row.linked")
    linked = page.locator(".pane:nth-child(2) .row.linked").all_inner_texts()
    assert linked and all("dot_general" in text for text in linked)
    details = page.inner_text("#operation")
    assert "f32[2,4]" in details and "FLOPs" in details and "64" in details
    assert "return jnp.tanh(x @ w)" in page.inner_text("#operation .here")
    assert "x = layer(w, x)" in page.inner_text("#operation .callers")
    assert "StableHLO" in page.inner_text("#operation .kin")


def test_what_is_decomposed_has_relatives(browser, tmp_path):  # noqa: F811
    view = viewer.show(jax.grad(lambda x: jnp.arcsin(x) * 3.0), 0.5, optimised=False)
    view.save(tmp_path / "arcsin.html")
    page = viewed(browser, tmp_path / "arcsin.html")
    row(page, 1, "one_minus_square").hover()
    page.wait_for_selector(".pane:nth-child(2) .row.linked")
    assert "asin" not in " ".join(
        page.locator(".pane:nth-child(2) .row.linked").all_inner_texts())
    assert not page.errors
    page.close()


def test_figures_say_what_they_are_of(browser, tmp_path):  # noqa: F811
    text = jax.jit(lambda x: jax.lax.while_loop(lambda x: x[0] < 9, jnp.sin, x)).lower(
        jnp.ones(8)).as_text()
    for partitions, replicas, manual, told in (
            (1, 1, False, ""), (4, 1, False, ", on all 4 devices together"),
            (1, 4, False, ", on one of 4 devices"),
            (4, 1, True, ", of shard_map on one of 4 devices")):
        path = tmp_path / "figures.html"
        given = text.replace("num_partitions = 1", f"num_partitions = {partitions}").replace(
            "num_replicas = 1", f"num_replicas = {replicas}")
        if manual:
            given = given.replace("stablehlo.sine", "sdy.manual_computation")
        path.write_text(viewer.page("f", stablehlo=given))
        page = viewed(browser, path)
        assert page.locator("#figures dt").all_inner_texts() == [
            f"FLOPs counted here, loops of unknown length once, of branches the dearest{told}",
            f"Peak memory, estimated{told}"]
        assert page.locator(".pane .count").get_attribute("title").endswith(
            "operations, loops of unknown length once, of branches the dearest")
        page.close()


def test_what_is_computed_again_to_fit_counts(browser, tmp_path):  # noqa: F811
    traced = jax.jit(jnp.sin).trace(jnp.ones(8))
    twice = jax.jit(lambda x: jnp.sin(x) + jnp.sin(x + 1)).lower(jnp.ones(8)).as_text()
    for budget, told in ((None, "8"), ("1MiB", "32")):
        (tmp_path / "budget.html").write_text(viewer.page(
            "f", jaxpr=traced, stablehlo=twice, memory=traced.memory(budget)))
        page = viewed(browser, tmp_path / "budget.html")
        assert page.locator("#figures dd").first.inner_text() == told
        page.close()


def test_keys_do_what_hovering_does(page):
    page.keyboard.press("1")
    for _ in range(2):
        page.keyboard.press("ArrowDown")
    active = settled(page).get_attribute(".pane:nth-child(1) .tree", "aria-activedescendant")
    assert active == "f0r2"
    assert page.get_attribute(f"#{active}", "aria-selected") == "true"
    page.keyboard.press("o")
    shown = page.inner_text("#operation h3 >> nth=0")
    assert page.inner_text(f"#{active} .op") in shown
    page.keyboard.press("2")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "StableHLO"


def test_bodies_fold(page):
    scan = row(page, 1, "scan[")
    scan.click()
    page.wait_for_selector(".pane:nth-child(1) .row.selected")
    before = page.locator(".pane:nth-child(1) .row").count()
    assert scan.get_attribute("aria-expanded") == "true"
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector('.pane:nth-child(1) .row.selected[aria-expanded="false"]')
    assert page.locator(".pane:nth-child(1) .row").count() < before
    page.keyboard.press("ArrowRight")
    page.wait_for_selector('.pane:nth-child(1) .row.selected[aria-expanded="true"]')
    assert page.locator(".pane:nth-child(1) .row").count() == before


def test_search_goes_from_match_to_match(page):
    page.keyboard.press("/")
    page.keyboard.type("tanh")
    total = int(page.inner_text("#found"))
    assert total > 5
    page.keyboard.press("Enter")
    assert page.inner_text("#found") == f"1 of {total}"
    page.wait_for_selector(".row.selected")
    assert "tanh" in page.inner_text(".row.selected")
    page.keyboard.press("Shift+Enter")
    assert page.inner_text("#found") == f"{total} of {total}"
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("no such thing")
    assert page.inner_text("#found") == "none"


def test_memory_and_calls(page):
    page.keyboard.press("m")
    chart = settled(page).locator("#memory .chart")
    assert "the peak" in chart.get_attribute("aria-valuetext")
    chart.focus()
    page.keyboard.press("Home")
    settled(page)
    assert chart.get_attribute("aria-valuenow") == "1"
    page.locator("#memory .largest .link").first.click()
    page.wait_for_selector(".row.selected")
    page.keyboard.press("g")
    page.click("[data-kind=calls]")
    page.select_option("#graph select", "0")
    nodes = page.locator("#graph [data-row]")
    assert "scan" in " ".join(nodes.all_text_contents())
    nodes.last.focus()
    page.keyboard.press("Enter")
    assert "scan" in settled(page).inner_text(".pane:nth-child(1) .row.selected")


def current(page):
    """The form and the row that are selected."""
    return page.evaluate("[viewer.selected[0].index, viewer.selected[1]]")


def test_each_key_does_what_the_help_says(page):
    press = page.keyboard.press
    told = set(page.locator("#keys kbd").all_text_contents())
    tried = set()

    def key(name, text=None):
        tried.add(text or name)
        press(name)
        settled(page)

    for name, panel in zip("comgp", ("costs", "operation", "memory", "graph", "passes"),
                           strict=True):
        key(name)
        assert page.locator(f"#{panel}").is_visible(), name
        assert page.locator(".panel:visible").count() == 1
    key("?", "?")
    assert page.locator("#keys").is_visible()
    key("Escape", "Esc")
    assert page.locator("#keys").is_hidden()
    key("1")
    page.locator(".pane:nth-child(1) .tree").press("Home")
    key("ArrowDown", "↓")
    assert current(page) == [0, 1]
    key("ArrowUp", "↑")
    assert current(page) == [0, 0]
    rows = page.locator(".pane:nth-child(1) .row")
    before = rows.count()
    key("ArrowLeft", "←")
    assert rows.count() == 1
    key("ArrowRight", "→")
    assert rows.count() == before
    key("f")
    assert rows.count() == 1
    key("u")
    assert rows.count() > 1
    key("Enter")  # folds, as there is nothing that is called
    assert rows.count() == 1
    key("Enter")
    row(page, 1, "tanh").click()
    for name in "23":
        key(name)
        label = page.evaluate("document.activeElement.getAttribute('aria-label')")
        assert label == ("StableHLO", "Optimised HLO")[int(name) - 2]
        assert current(page)[0] == int(name) - 1
        press("1")
        settled(page)
    first = current(page)
    key("]")
    assert current(page)[0] == 0 and current(page) != first
    key("[")
    assert current(page) == first
    key("t")
    assert page.get_attribute("html", "data-theme") == "light"
    key("/")
    page.keyboard.type("layer")
    key("ArrowDown", "↓")
    assert page.evaluate("document.activeElement.closest('#hits') !== null")
    key("Enter")
    assert page.inner_text("#found").startswith("1 of ")
    press("/")
    key("Shift+Enter", "Shift")
    assert page.inner_text("#found").split(" of ")[0] != "1"
    key("Escape", "Esc")
    assert page.evaluate("document.activeElement.getAttribute('role')") == "tree"
    assert told <= tried, told - tried


def test_costs_of_no_line_are_shown_as_such(browser, tmp_path):  # noqa: F811
    hlo = re.sub(", metadata={[^}]*}", "", jax.jit(jnp.sin).lower(1.0).compile().as_text())
    (tmp_path / "bare.html").write_text(viewer.page("bare", hlo=hlo))
    page = viewed(browser, tmp_path / "bare.html")
    for part, text in ((1, "of no line"), (2, "of no function")):
        entry = page.locator(f".tables section:nth-child({part}) .cost-link", has_text=text)
        assert entry.count() == 1 and "100" in entry.inner_text()
        entry.click()
        assert "sin" in settled(page).inner_text(".row.selected")
    assert not page.errors
    page.close()


def test_costs_are_the_whole(page):
    assert "of no" not in page.inner_text("#costs")


def focused(page):
    return page.evaluate("document.activeElement.getAttribute('aria-label')")


def test_keys_need_no_press_on_a_form(page):
    for name, wanted in (("ArrowDown", [0, 1]), ("ArrowDown", [0, 2]), ("Home", [0, 0])):
        page.keyboard.press(name)
        assert current(page) == wanted and focused(page) == "jaxpr"


@pytest.mark.parametrize("chosen", [
    "#costs [data-row]", "#costs section:nth-child(2) [data-row]", "#operation [data-row]",
    "#memory .largest [data-row]"])
@pytest.mark.parametrize("by", ["press", "key"])
def test_keys_are_for_what_was_gone_to(page, chosen, by):
    row(page, 1, "dot_general").click()
    page.keyboard.press(chosen[1])
    link = page.locator(chosen).first
    if by == "press":
        link.click()
    else:
        link.focus()
        page.keyboard.press("Enter")
    form, at = current(page)
    assert focused(page) == ("jaxpr", "StableHLO", "Optimised HLO")[form]
    page.keyboard.press("u")
    settled(page)
    page.keyboard.press("ArrowDown")
    assert current(page) == [form, at + 1]


def test_f_and_u_are_for_the_forms_wherever_the_focus_is(page):
    rows = page.locator(".pane:nth-child(1) .row")
    page.locator("#theme").focus()
    page.keyboard.press("f")
    settled(page)
    assert rows.count() == 1
    page.locator("#tab-costs").focus()
    page.keyboard.press("ArrowRight")  # which is for the tabs
    assert page.locator("#operation").is_visible()
    page.keyboard.press("u")
    settled(page)
    assert rows.count() > 1


def test_forms_that_are_left_out_get_no_keys(page):
    page.click("#shown [data-form='0']")
    page.keyboard.press("ArrowDown")
    assert current(page) == [1, 1] and focused(page) == "StableHLO"


def test_what_was_chosen_in_the_search_leaves_it_there(page):
    page.keyboard.press("/")
    page.keyboard.type("layer")
    for name in ("ArrowDown", "Enter"):
        page.keyboard.press(name)
    assert page.inner_text("#found").startswith("1 of ")
    page.keyboard.press("Enter")
    assert page.inner_text("#found").startswith("2 of ")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.getAttribute('role')") == "tree"


OVERLAPS = """() => {
  const found = [];
  const box = (e) => e.getBoundingClientRect();
  const pairs = (all) => all.flatMap((a, i) => all.slice(i + 1).map((b) => [a, b]));
  const apart = (elements, name) => pairs(elements).forEach(([a, b]) => {
    const [p, q] = [box(a), box(b)];
    if (Math.min(p.right, q.right) - Math.max(p.left, q.left) > 1 &&
        Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top) > 1) {
      found.push(`${name}: ${a.textContent.slice(0, 20)} on ${b.textContent.slice(0, 20)}`);
    }
  });
  const inside = (outer, inner, name) => {
    const [p, q] = [box(outer), box(inner)];
    if (q.width && (q.left < p.left - 1 || q.right > p.right + 1)) {
      found.push(`${name}: ${inner.textContent.slice(0, 30)} leaves its place`);
    }
  };
  const seen = (selector) =>
    [...document.querySelectorAll(selector)].filter((e) => e.checkVisibility());
  apart(seen(".bar, .dock, .forms"), "parts");
  apart(seen(".pane"), "panes");
  apart(seen(".bar > *"), "bar");
  apart(seen(".tabs > *"), "tabs");
  apart(seen(".panel:not([hidden]) > *"), "panel");
  apart(seen(".tables > *"), "tables");
  for (const pane of seen(".pane")) {
    apart([...pane.querySelectorAll("header > *")], "header");
    pane.querySelectorAll("header > *").forEach((e) => inside(pane, e, "header"));
    pane.querySelectorAll(".row").forEach((e) => inside(pane, e, "row"));
    pane.querySelectorAll(".row").forEach((e) => apart([...e.children], "row"));
  }
  for (const e of seen(".bar > *, .tabs > *, .panel > *")) inside(document.body, e, "page");
  for (const e of seen("#hits, #hits *")) inside(document.body, e, "hits");
  if (document.documentElement.scrollWidth > innerWidth) found.push("the page scrolls sideways");
  return found;
}"""


@pytest.mark.parametrize("width", [700, 900, 1180, 1280, 1400, 1920])
def test_nothing_overlaps(browser, file, width):  # noqa: F811
    page = viewed(browser, file, width=width, height=800)
    assert page.evaluate(OVERLAPS) == []
    row(page, 1, "dot_general").click()
    for key in "omgpc":
        page.keyboard.press(key)
        assert settled(page).evaluate(OVERLAPS) == [], key
    page.fill("#query", "layer")
    assert page.locator("#hits").is_visible() and settled(page).evaluate(OVERLAPS) == []
    assert not page.errors
    page.close()


@pytest.mark.parametrize("width", [900, 1200, 1400, 1920])
def test_all_figures_are_seen(browser, tmp_path, width):  # noqa: F811
    file = tmp_path / "sum.html"
    file.write_text(viewer.page("sum", jaxpr=jax.make_jaxpr(jnp.sum)(jnp.ones(3)), cost={
        f"{name} by XLA, on one device": 12345.0 for name in ("flops", "bytes accessed", "peak")}))
    page = viewed(browser, file, width=width)
    assert page.inner_text("#forms .count") == "1 operation"
    below = page.evaluate("""() => [...document.querySelectorAll(".figures div")].map((e) =>
      e.getBoundingClientRect().bottom - $("figures").getBoundingClientRect().bottom)""")
    assert len(below) == 5 and max(below) < 1
    page.set_viewport_size({"width": 1280 if width == 1920 else 1920, "height": 900})
    assert settled(page).evaluate("$('figures').scrollHeight - $('figures').clientHeight") == 0
    page.close()


def test_the_graph_folds_and_zooms(page):
    page.keyboard.press("g")
    nodes = page.locator("#graph .node")
    before = nodes.count()
    node = page.locator('#graph .node[aria-expanded="false"]').first
    name = node.get_attribute("data-node")
    node.focus()
    page.keyboard.press("Enter")
    assert settled(page).locator("#graph .node").count() > before
    assert page.evaluate("document.activeElement.dataset.node") == name
    page.keyboard.press("Enter")
    assert settled(page).locator("#graph .node").count() == before
    scale = "viewer.panels.graph.view.scale"
    first = page.evaluate(scale)
    page.click("[aria-label=Larger]")
    assert page.evaluate(scale) > first
    page.hover(".canvas")
    page.mouse.wheel(0, 300)
    assert settled(page).evaluate(scale) < first * 1.4
    x = page.evaluate("viewer.panels.graph.view.x")
    page.mouse.down()
    page.mouse.move(500, 250, steps=4)
    page.mouse.up()
    assert page.evaluate("viewer.panels.graph.view.x") != x
    assert nodes.count() == before  # to move is not to choose
    page.select_option("#graph select", "2")
    assert nodes.count() > 1


def test_forms_can_be_left_out_but_for_one(page):
    for button in page.locator("#shown button").all():
        button.click()
    assert page.locator(".pane:visible").count() == 1


def lightness(page):
    numbers = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g)")
    return sum(map(int, numbers)) / 3


def test_colours_follow_the_system_or_the_switch(browser, file):  # noqa: F811
    page = viewed(browser, file, color_scheme="dark")
    assert lightness(page) < 60
    page.click("#theme")  # light
    assert lightness(page) > 200
    page.click("#theme")  # dark
    assert lightness(page) < 60
    assert not page.errors
    page.close()


CONTRAST = """(dark) => {
  const light = (c) => {
    const [r, g, b] = c.match(/[\\d.]+/g).map((x) => x / 255)
      .map((x) => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const c = getComputedStyle(e).backgroundColor;
      if (!/rgba\\(.*, 0\\)|transparent/.test(c)) return c;
    }
    return "rgb(255, 255, 255)";
  };
  const low = new Set();
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.checkVisibility() || e.closest("svg, .unseen")) continue;
    const [a, b] = [light(getComputedStyle(e).color), light(ground(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) low.add(`${e.className} ${e.tagName} ${e.textContent.slice(0, 30)} ${ratio}`);
  }
  return [...low];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(browser, file, scheme):  # noqa: F811
    page = viewed(browser, file, color_scheme=scheme)
    row(page, 1, "dot_general").click()
    page.fill("#query", "tanh")
    page.wait_for_selector(".row.match")
    assert page.evaluate(CONTRAST) == []
    page.close()


def test_what_can_be_pressed_has_a_name_and_what_is_referred_to_is_there(page):
    nameless = page.evaluate("""() => [...document.querySelectorAll(
        "button, input, select, [role=tree], [role=slider], [role=separator]")].filter((e) =>
        !(e.getAttribute("aria-label") || e.textContent.trim() || e.labels?.length))
        .map((e) => e.outerHTML)""")
    assert nameless == []
    missing = page.evaluate("""() => [...document.querySelectorAll(
        "[aria-controls], [aria-labelledby], [aria-activedescendant]")].flatMap((e) =>
        ["aria-controls", "aria-labelledby", "aria-activedescendant"]
          .map((a) => e.getAttribute(a)).filter((id) => id && !document.getElementById(id)))""")
    assert missing == []


def test_a_notebook_shows_it_in_a_frame(browser, file, tmp_path):  # noqa: F811
    view = viewer.show(lambda x: jnp.sin(x), 1.0, optimised=False)
    (tmp_path / "notebook.html").write_text(f"<!doctype html>{view._repr_html_()}")
    page = browser.new_page()
    page.goto((tmp_path / "notebook.html").as_uri())
    assert "sin" in page.frame_locator("iframe").locator(".row >> nth=1").inner_text()
    page.close()


def test_only_rows_in_sight_of_100000_are_elements(browser, tmp_path):  # noqa: F811
    steps = "\n".join([f"  %v{i + 1} = f32[] sine(%v{i})" for i in range(100_000)])
    (tmp_path / "chain.html").write_text(viewer.page("chain", hlo=(
        "HloModule chain, is_scheduled=true\n\nENTRY %main (v0: f32[]) -> f32[] {\n"
        f"  %v0 = f32[] parameter(0)\n{steps}\n}}\n")), encoding="utf-8")
    page = viewed(browser, tmp_path / "chain.html")
    assert 20 < page.locator(".row").count() < 100
    page.locator(".tree").focus()
    page.keyboard.press("End")
    page.wait_for_selector("#f0r100002")
    assert page.locator(".row").count() < 100 and not page.errors
    page.close()


COLOURS = """async ([png, boxes]) => {
  const image = new Image();
  image.src = `data:image/png;base64,${png}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width: image.width, height: image.height });
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  return boxes.map(({ x, y, width, height }) => {
    const { data } = context.getImageData(x, y, Math.max(width, 1), Math.max(height, 1));
    const found = {};
    for (let i = 0; i < data.length; i += 4) {
      const colour = `${data[i]} ${data[i + 1]} ${data[i + 2]}`;
      found[colour] = (found[colour] ?? 0) + 4 / data.length;
    }
    return found;
  });
}"""


def colours(browser, page, *selectors):  # noqa: F811
    """For the first element of each selector the share of each colour that one sees there."""
    png = base64.b64encode(page.screenshot()).decode()
    boxes = [page.locator(s).first.bounding_box() for s in selectors]
    blank = browser.new_page()
    found = blank.evaluate(COLOURS, [png, boxes])
    blank.close()
    return found


def colour_of(page, name):
    value = page.evaluate(f"getComputedStyle(document.body).getPropertyValue('--{name}').trim()")
    return " ".join([str(int(value[i:i + 2], 16)) for i in (1, 3, 5)])


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [900, 1280, 1920])
def test_one_sees_heat_and_what_is_chosen(browser, file, scheme, width):  # noqa: F811
    page = viewed(browser, file, width=width, height=800, color_scheme=scheme)
    heat, chosen, linked, ground = (colour_of(page, name) for name in (
        "heat", "accent-soft", "link-soft", "pane"))
    first, last = colours(browser, page, ".cost-link .bar-of", ".cost-link:last-child .bar-of")
    assert first[heat] > 0.7 and last.get(heat, 0) > 0
    row(page, 1, "dot_general").click()
    page.wait_for_selector(".pane:nth-child(2) .row.linked")
    page.mouse.move(5, 5)
    settled(page)
    selected, other, margin, strip = colours(
        browser, page, ".row.selected .code", ".pane:nth-child(2) .row.linked .code",
        ".row:first-child .heat", ".pane:nth-child(2) .ruler")
    assert selected[chosen] > 0.5 and other[linked] > 0.5
    assert margin[heat] > 0.5 and len(strip) > 3  # marks of several kinds
    for key, panel in zip("omgpc", ("operation", "memory", "graph", "passes", "costs"),
                          strict=True):
        page.keyboard.press(key)
        settled(page)
        (seen,) = colours(browser, page, f"#{panel}")
        assert len(seen) > 20 and max(seen.values()) < 0.99, panel  # not blank
    page.keyboard.press("g")
    (canvas,) = colours(browser, page, ".canvas")
    assert 0.2 < canvas[ground] < 0.99
    page.close()
