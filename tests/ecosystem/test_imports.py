"""Every module of a library that imports with jax imports here.

`imports.json` has the libraries, each with the modules that fail with jax, too. It is made anew by
`PYJX_ORACLE_PYTHON=python-with-jax python -m tests.ecosystem.record`.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.ecosystem.test_programs import HERE, run

WALK = HERE / "walk.py"
FAIL_WITH_JAX: dict[str, list[str]] = json.loads(
    (HERE / "imports.json").read_text(encoding="utf-8"))


def lacks_another(library: str, missing: str) -> bool:
    """Whether a module failed because something is not installed that it needs besides."""
    return missing != "" and missing.partition(".")[0] not in ("jax", "pyjx", library)


@pytest.mark.ecosystem
@pytest.mark.parametrize("library", sorted(FAIL_WITH_JAX))
def test_every_module_that_imports_with_jax_imports(library: str) -> None:
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    failed: dict[str, Any] = run(WALK, sys.executable, "-m", "pyjx", arguments=(library,))
    known = FAIL_WITH_JAX[library]
    assert not {name: said for name, (_, missing, said) in failed.items()
                if name not in known and not lacks_another(library, missing)}


def test_libraries_are_walked(tmp_path: Path) -> None:
    package = tmp_path / "made_up"
    package.mkdir()
    for name, text in {"__init__": "", "right": "import jax\n", "test_skipped": "1 / 0\n",
                       "wrong": "from jax import no_such\n", "exits": "raise SystemExit\n",
                       "lacks": "import no_such_package.module\n"}.items():
        (package / f"{name}.py").write_text(text, encoding="utf-8")
    failed = run(WALK, sys.executable, "-m", "pyjx", arguments=("made_up",), path=str(tmp_path))
    assert {name: said[:2] for name, said in failed.items()} == {
        "made_up.wrong": ["ImportError", ""], "made_up.exits": ["SystemExit", ""],
        "made_up.lacks": ["ModuleNotFoundError", "no_such_package"]}
    assert lacks_another("made_up", "no_such_package")
    assert not lacks_another("made_up", "jax.no_such") and not lacks_another("made_up", "")
