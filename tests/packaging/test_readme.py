"""The program and the commands in README.md do what it says."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder with the programs that the README shows."""
    for program in blocks("python"):
        name = program.splitlines()[0].removeprefix("# ")
        (tmp_path / name).write_text(program)
    return tmp_path


def run(folder: Path, *arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_program_runs(model: Path) -> None:
    out = run(model, "model.py")
    assert out.startswith("{ lambda ; a:f32[3] b:f32[8,3] c:f32[8]. let")
    assert "name=step" in out


def test_emit_hlo_shows_it(model: Path) -> None:
    program, *arguments = shlex.split(blocks("sh")[2])
    assert program == ".venv/bin/emit-hlo"
    out = run(model, "-m", "emit_hlo", *arguments)
    assert out.startswith("module @jit_loss") and "stablehlo.tanh" in out


def test_explain_says_what_is_shown(model: Path) -> None:
    def lines(text: str) -> list[str]:
        """Without what differs from run to run."""
        return re.sub(r"\d[\d.]* (ms|s)\b|\(compiled\)|\(disk\)|\(\d from disk\)", "", text
                      ).splitlines()

    (shown,) = re.findall(r"^```\n(step, defined .*?)^```$", README, re.DOTALL | re.MULTILINE)
    assert lines(run(model, "train.py").replace(f"{model}{os.sep}", "")) == lines(shown)


def test_what_it_links_to_is_there() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README) + re.findall(r"`((?:examples|benchmarks)/\S+?)`",
                                                                README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


PACKAGES = ("pyjx", "pyjx.numpy", "pyjx.lax", "pyjx.nn", "pyjx.nn.initializers", "pyjx.random")


def test_the_status_table_is_true() -> None:
    """What it says is there is there, and what it says is not yet there is not."""
    names = {p: set(dir(importlib.import_module(p))) for p in PACKAGES}
    rows = re.findall(r"^\| (.*?) \| (.*?) ?\| ?(.*?) ?\|$", README, re.MULTILINE)[2:]
    wrong = []
    for part, there, missing in rows:
        package = names.get(f"pyjx.{part.strip('`')}") or set.union(*names.values())
        wrong += [n for n in re.findall(r"`(\w+)`", there) if n not in package]
        wrong += [n for n in re.findall(r"`(\w+)`", missing) if n in package]
    assert len(rows) > 12 and wrong == []
