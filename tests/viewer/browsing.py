"""A real browser, where there is one: `pip install '.[browser]'` and `playwright install chromium`,
or a chromium on PATH, or the one that PYJX_BROWSER names."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

playwright = pytest.importorskip("playwright.sync_api")

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as p:
        path = os.environ.get("PYJX_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
        if path is None and not Path(p.chromium.executable_path).exists():
            pytest.skip("no chromium here")
        browser = p.chromium.launch(executable_path=path)
        yield browser
        browser.close()


def opened(browser, file, width=1500, height=900, **options):
    """A page, which keeps its errors and what it asks the network for in `errors`."""
    page = browser.new_page(viewport={"width": width, "height": height}, **options)
    page.errors = []
    page.on("pageerror", lambda e: page.errors.append(str(e)))
    page.on("console", lambda m: page.errors.append(m.text) if m.type == "error" else None)
    page.on("request", lambda r: page.errors.append(r.url)
            if not r.url.startswith("file:") else None)
    page.goto(file.as_uri())
    return page


def viewed(browser, file, **options):
    """The viewer's page, when it is ready."""
    page = opened(browser, file, **options)
    page.wait_for_selector("[data-ready]", state="attached")
    return page


def row(page, form, text):
    return page.locator(f".pane:nth-child({form}) .row", has_text=text).first


def settled(page):
    """The page, when it has drawn, which it does before the next frame."""
    page.evaluate("new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
    return page
