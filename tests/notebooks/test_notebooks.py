"""The notebooks are what their sources say, run in Colab's runtime, and print what jax prints."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
NOTEBOOKS = sorted((EXAMPLES / "notebooks").glob("*.ipynb"))
NAMES = [path.stem for path in NOTEBOOKS]
NUMBER = re.compile(r"-?\b\d+\.?\d*(?:e[+-]?\d+)?\b")
EIGHT = {"JAX_NUM_CPU_DEVICES": "8", "JAX_PLATFORMS": "cpu", "XLA_FLAGS": ""}


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    pytest.importorskip("jupytext")
    spec = importlib.util.spec_from_file_location("make_notebooks", EXAMPLES / "make_notebooks.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_notebooks_are_made_of_their_sources(maker: ModuleType) -> None:
    repository = maker.repository()
    made = {source.stem: maker.notebook(source, repository) for source in maker.sources()}
    assert sorted(made) == NAMES
    stale = [n for n, text in made.items()
             if (EXAMPLES / "notebooks" / f"{n}.ipynb").read_text(encoding="utf-8") != text]
    assert not stale, "run python examples/make_notebooks.py"


def test_a_repository_gives_a_badge(maker: ModuleType) -> None:
    (title, *_) = json.loads(maker.notebook(EXAMPLES / "quickstart.py", "someone/pyjx"))["cells"]
    assert ("(https://colab.research.google.com/github/someone/pyjx/blob/main/"
            "examples/notebooks/quickstart.ipynb)") in "".join(title["source"])


def test_no_link_leads_nowhere(maker: ModuleType) -> None:
    """Where setup.cfg names no repository there is no link to one."""
    texts = [path.read_text(encoding="utf-8") for path in NOTEBOOKS]
    assert "_owner_" not in maker.repository()
    assert maker.repository() or not any("colab.research.google.com" in text for text in texts)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_what_every_notebook_has(path: Path) -> None:
    stored = json.loads(path.read_text(encoding="utf-8"))
    title, first, *rest = stored["cells"]
    assert title["cell_type"] == "markdown" and title["source"][0].startswith("# ")
    assert "setup_tpu()" in "".join(first["source"])
    assert stored["metadata"]["accelerator"] == "TPU"
    code = [cell for cell in [first, *rest] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


@pytest.mark.notebooks
@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_it_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a kernel of its own, on eight devices."""
    nbformat, nbclient = (pytest.importorskip(name) for name in ("nbformat", "nbclient"))
    for name, value in {**EIGHT, "PYTHONPATH": str(ROOT)}.items():
        monkeypatch.setenv(name, value)
    nbclient.NotebookClient(
        nbformat.read(path, as_version=4), timeout=900,
        resources={"metadata": {"path": str(tmp_path)}}).execute()


@pytest.mark.notebooks
def test_the_first_cell_installs_pyjx_and_changes_nothing(tmp_path: Path) -> None:
    """On a fresh environment with the versions of this one, from an archive of this tree, after it
    has said that it finds none."""
    pytest.importorskip("build")
    kept = ("jaxlib", "ml_dtypes", "numpy", "opt_einsum", "scipy")
    before = {name: metadata.version(name) for name in kept}
    python = tmp_path / "venv" / "bin" / "python"
    env = {**os.environ, **EIGHT, "PYTHONPATH": ""}
    for command in (
            [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(ROOT)],
            [sys.executable, "-m", "venv", str(tmp_path / "venv")],
            [python, "-m", "pip", "install", "-q", *(f"{n}=={v}" for n, v in before.items())]):
        subprocess.run(command, check=True, env=env, cwd=tmp_path)
    first = "".join(json.loads(NOTEBOOKS[0].read_text(encoding="utf-8"))["cells"][1]["source"])
    lost = subprocess.run([python, "-c", first], cwd=tmp_path, env=env, capture_output=True,
                          text=True)
    assert lost.returncode == 1 and "SOURCE = 'pyjx.zip'" in lost.stderr
    (archive,) = tmp_path.glob("*.whl")
    first = first.replace('SOURCE = ""', f"SOURCE = {str(archive)!r}")
    show = ("\nfrom importlib.metadata import version\nimport pyjx\nprint(pyjx.__file__)\n"
            f"print({{n: version(n) for n in {kept!r}}})")
    done = subprocess.run([python, "-c", first + show], cwd=tmp_path, env=env,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    *said, place, after = done.stdout.splitlines()
    assert said[0].startswith("CPU: pyjx") and said[1] == "8 devices: cpu"
    assert Path(place).is_relative_to(tmp_path)
    assert after == str(before)


def values(source: Path, folder: Path, python: str, *arguments: str) -> list[str]:
    """What the cells print, in a process of their own."""
    done = subprocess.run(
        [python, str(Path(__file__).with_name("run_cells.py")), str(source), *arguments],
        cwd=folder, capture_output=True, text=True,
        env={**os.environ, **EIGHT, "PYTHONPATH": "" if arguments else str(ROOT)})
    assert done.returncode == 0, done.stderr[-3000:]
    return [re.sub(r"\s+", " ", re.sub(r"([\[\]])", r" \1 ", text)).strip()
            for text in json.loads(done.stdout)]


@pytest.mark.notebooks
@pytest.mark.skipif("PYJX_ORACLE_PYTHON" not in os.environ,
                    reason="PYJX_ORACLE_PYTHON does not name a Python with jax")
@pytest.mark.parametrize("name", NAMES)
def test_it_prints_what_jax_does(name: str, tmp_path: Path) -> None:
    """Words are the same, and numbers to rounding."""
    source = EXAMPLES / f"{name}.py"
    ours = values(source, tmp_path, sys.executable)
    theirs = values(source, tmp_path, os.environ["PYJX_ORACLE_PYTHON"], "jax")
    compared = 0
    for our, their in zip([o for o in ours if o], [t for t in theirs if t], strict=True):
        assert NUMBER.sub("#", our) == NUMBER.sub("#", their)
        got, want = (np.array(NUMBER.findall(text), float) for text in (our, their))
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-5, err_msg=our)
        compared += len(want)
    assert compared
