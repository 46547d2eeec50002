"""The documentation's pages: their code runs and prints what they say, their links are there."""

from __future__ import annotations

import codeop
import doctest
import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import pyjx as jax
from pyjx import errors
from pyjx.runtime import backends

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GENERATED = ("_build", "notebooks", "reference")
PAGES = [p for p in sorted(DOCS.rglob("*.md")) if p.relative_to(DOCS).parts[0] not in GENERATED]
IDS = [p.relative_to(DOCS).as_posix() for p in PAGES]
OF_A_NEW_PROCESS = "devices.md"  # it says how many devices the CPU is
FLAGS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"),
                      re.DOTALL | re.MULTILINE)


def test_the_page_of_many_devices_runs() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "doctest", "-o", "NORMALIZE_WHITESPACE", DOCS / OF_A_NEW_PROCESS],
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", [p for p in PAGES if p.name != OF_A_NEW_PROCESS],
                         ids=[name for name in IDS if name != OF_A_NEW_PROCESS])
def test_its_python_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In order, in one namespace. A block with `# name.py` on top is written to that file, too."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    with np.printoptions(precision=8, linewidth=75), jax.enable_x64(False):
        for number, block in enumerate(blocks(page, "python")):
            if ">>> " in block:
                test = doctest.DocTestParser().get_doctest(
                    block, namespace, f"{page.stem}_{number}", None, None)
                test.globs = namespace  # not a copy: functions see what later blocks define
                runner.run(test, out=report.append, clear_globs=False)
            else:
                named = re.match(r"# (\w+\.py)\n", block)
                if named:
                    (tmp_path / named[1]).write_text(block, encoding="utf-8")
                exec(compile(block, page.name, "exec"), namespace)
    assert runner.failures == 0, "".join(report)


def typed(block: str) -> list[str]:
    """The lines of a block as one types them at a prompt."""
    lines = block.splitlines()
    if ">>> " not in block:
        return lines
    return [line[4:] for line in lines if re.match(r">>> |\.\.\.( |$)", line)]


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=[*IDS, "README.md"])
def test_its_python_can_be_pasted_at_a_prompt(page: Path) -> None:
    """Line by line: a compound statement ends with an empty line. Blocks with `# name.py` on top
    are files."""
    for block in blocks(page, "python"):
        if re.match(r"# (\w+\.py)\n", block):
            continue
        waiting: list[str] = []
        for line in typed(block):
            waiting.append(line)
            if codeop.compile_command("\n".join(waiting)) is not None:
                waiting = []
        assert waiting == [], "a compound statement that nothing ends"


COMMANDS = {"emit-hlo": "emit_hlo"}


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_its_commands_run(page: Path, tmp_path: Path) -> None:
    """Those of pyjx; what installs is for the release to try."""
    for block in blocks(page, "python"):
        named = re.match(r"# (\w+\.py)\n", block)
        if named:
            (tmp_path / named[1]).write_text(block, encoding="utf-8")
    for line in "".join(blocks(page, "sh")).replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words[:3] == ["python", "-m", "pyjx"]:
            command = words[1:]
        elif words and words[0] in COMMANDS:
            command = ["-m", COMMANDS[words[0]], *words[1:]]
        else:
            continue
        done = subprocess.run([sys.executable, *command], cwd=tmp_path, capture_output=True,
                              text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_its_links_are_there(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    missing = []
    for link in re.findall(r"\]\(([^)#\s]+)", text):
        if "://" in link:
            continue
        target = (page.parent / link).resolve()
        inside = target.relative_to(DOCS).parts if target.is_relative_to(DOCS) else ("",)
        if inside[0] in GENERATED or not target.exists():  # both in a checkout and on the site
            missing.append(link)
    assert not missing


def test_every_error_has_a_page() -> None:
    pages = {p.stem for p in (DOCS / "errors").glob("*.md")} - {"index"}
    assert pages == {name for name in errors.__all__ if name[0].isupper()}
    for name in pages:
        text = (DOCS / "errors" / f"{name}.md").read_text(encoding="utf-8")
        assert text.startswith(f"# {name}\n")


def test_the_reading_order_names_files_that_are_there() -> None:
    text = (DOCS / "internals" / "ir.md").read_text(encoding="utf-8")
    files = re.findall(r"`((?:core|engine|lax|lowering|runtime)/\w+\.py)`", text)
    assert len(files) >= 12
    assert [f for f in files if not any((ROOT / base / f).exists() for base in ("pyjx", "."))] == []


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """What makes the pages of the reference."""
    monkeypatch.syspath_prepend(str(DOCS / "extensions"))
    spec = importlib.util.spec_from_file_location("api_pages", DOCS / "extensions" / "api_pages.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_what_is_returned_is_text(pages: ModuleType) -> None:
    """A colon in it begins no list, which the next line would end."""
    text = ("Args:\n  x: an array.\n\nReturns:\n  A function, and what it\n"
            "  is of: a tree, whose\n  leaves stay.")
    assert [line for line in pages.as_rst(text) if line] == [
        "**Args**", "- ``x``: an array.", "**Returns**", "A function, and what it",
        "is of: a tree, whose", "leaves stay."]


def test_every_public_name_is_described(pages: ModuleType) -> None:
    """By its docstring, or in the reference where jaxlib's types have none."""
    names = (ROOT / "tests" / "public_names.txt").read_text(encoding="utf-8")
    bare = []
    for name in re.findall(r"^jax[.\w]*$", names, re.MULTILINE):
        try:
            module = importlib.import_module(name.replace("jax", "pyjx", 1))
        except ImportError:
            continue  # not there yet
        for public in dir(module):
            value = getattr(module, public)
            if public[0] != "_" and callable(value) and not pages.text_of(value, public):
                bare.append(f"{module.__name__}.{public}")
    assert not bare


def test_the_versions_of_libtpu_are_those_that_errors_name() -> None:
    text = (DOCS / "installation.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\d., ]+) \| (0\.0\.\d+) \|$", text, re.MULTILINE)
    told = {jaxlib: libtpu for row, libtpu in rows for jaxlib in row.split(", ")}
    assert told == backends.LIBTPU
