"""Each program trains, infers or solves something with a library that was written for jax, and
prints figures. They are those that jax gives (`figures.json`).

`PYJX_ORACLE_PYTHON=python-with-jax python -m tests.ecosystem.record` makes that file anew.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.installed import skip_without

HERE = Path(__file__).parent
PROGRAMS = sorted((HERE / "programs").glob("*.py"))
# What a program imports, where that is not the name behind `use_`.
MODULES = {"flax_linen": "flax", "flax_nnx": "flax", "mjx": "mujoco",
           "tfp": "tensorflow_probability"}
TOLERANCE = 1e-3


def run(program: Path, *command: str, arguments: tuple[str, ...] = (), path: str = ""
        ) -> dict[str, Any]:
    """The figures that a program prints at its end; `path` is where it finds modules besides."""
    paths = [path, str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONWARNINGS": "ignore",
                   "XLA_FLAGS": "", "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    done = subprocess.run([*command, str(program), *arguments], env=environment,
                          capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


def flat(x: Any) -> list[Any]:
    return [leaf for item in x for leaf in flat(item)] if isinstance(x, list) else [x]


def same(a: Any, b: Any) -> bool:
    if isinstance(a, float) or isinstance(b, float):
        return abs(a - b) <= TOLERANCE * max(1e-3, abs(a))
    return bool(a == b)


@pytest.mark.ecosystem
@pytest.mark.parametrize("program", PROGRAMS, ids=[p.stem for p in PROGRAMS])
def test_figures_are_those_of_jax(program: Path) -> None:
    name = program.stem.removeprefix("use_")
    package = MODULES.get(name, name)
    skip_without(package)
    expected = json.loads((HERE / "figures.json").read_text(encoding="utf-8"))[name]
    found = run(program, sys.executable, "-m", "pyjx")
    assert found.keys() == expected.keys()
    differ = {key: (expected[key], found[key]) for key in expected
              if len(flat(expected[key])) != len(flat(found[key]))
              or not all(map(same, flat(expected[key]), flat(found[key])))}
    assert not differ
