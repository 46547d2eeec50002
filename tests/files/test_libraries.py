"""Files of libraries and of NumPy that cross: of jax under the alias, and the other way."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import pyjx
from tests.files import contents

ROOT = Path(pyjx.__file__).parents[1]
KINDS = ("npy", "npz", "objects", "joblib", "safetensors", "msgpack", "orbax", "executable")
ALIAS = [sys.executable, "-m", "pyjx"]


def run(python, *arguments):
    done = subprocess.run([*python, "-m", "tests.files.libraries", *arguments], cwd=ROOT,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1:]


def said(python, folder):
    """What a process says of each kind of files in a folder; nothing of those it cannot read."""
    return json.loads(run(python, "read", str(folder))[0])


@pytest.fixture(scope="module")
def of_jax(tmp_path_factory):
    folder = tmp_path_factory.mktemp("jax")
    for name, data in contents("0.12.0.1").items():
        if name.startswith("file."):
            path = folder / name.removeprefix("file.")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    return said(ALIAS, folder)


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pyjx")
    run(ALIAS, "write", str(folder))
    return folder


def answer(found, kind):
    if kind not in found:
        pytest.skip("its library is not installed")
    return found[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_what_jax_wrote_is_read(of_jax, kind):
    if kind == "executable":
        assert "Those of jax hold its own classes: compile it again, or use" in of_jax[kind]
    else:
        assert answer(of_jax, kind) == ""


def test_what_the_alias_wrote_is_read_there(own):
    assert set(said(ALIAS, own).values()) == {""}


@pytest.mark.oracle
def test_what_the_alias_wrote_is_read_by_jax(own):
    python = os.environ.get("PYJX_ORACLE_PYTHON")
    if not python:
        pytest.skip("PYJX_ORACLE_PYTHON names no Python with jax")
    found = said([python], own)
    assert "UnpicklingError" in found.pop("executable")
    assert {kind: error for kind, error in found.items() if (own / kind).exists() and error} == {}
