"""`python -m pyjx doctor`: what it finds, and its exit status."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pyjx as jax
from pyjx.__main__ import main
from pyjx.cli import alias_files, doctor
from pyjx.jax_imports import JaxFinder
from pyjx.version import PYJX_VERSION

ROOT = Path(__file__).parents[2]


def run(*arguments, **environment):
    env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run([sys.executable, "-m", "pyjx", *arguments], env=env, text=True,
                          capture_output=True, timeout=120, check=False)


@pytest.mark.smoke
def test_a_working_installation(tmp_path):
    found = run("doctor", PYJX_CACHE_DIR=str(tmp_path / "cache"), JAX_PLATFORMS="cpu",
                JAX_NO_SUCH_FLAG="1", JAX_DEBUG_NANS="1")
    assert found.returncode == 0, found.stderr
    lines = found.stdout.splitlines()
    assert [line for line in lines if line[0] != " "] == [
        "versions", "the name jax", "backends", "cache", "flags", "self-test", "everything works"]
    text = found.stdout
    assert f"  pyjx        {jax.__version__}\n" in text
    assert "  cpu   in use: 1 x cpu\n" in text or "  cpu  in use: 1 x cpu\n" in text
    assert f"  folder    {tmp_path / 'cache'}\n" in text
    assert "jax_debug_nans      True\n" in text
    assert "JAX_NO_SUCH_FLAG    1 (no flag reads this variable)\n" in text
    for step in ("trace", "grad", "compile", "run"):
        assert any(line.strip().startswith(step) and "ok, " in line for line in lines)


def test_it_says_what_import_jax_gives():
    found = json.loads(run("doctor", "--json", JAX_PLATFORMS="cpu").stdout)["the name jax"]
    assert set(found) == {"package jax", "import jax", "install-alias"}
    assert "pyjx by `python -m pyjx FILE`, or `import pyjx.as_jax` first" in found["import jax"]
    report = json.loads(run("doctor", "--json", JAX_PLATFORMS="cpu", PYJX_AS_JAX="1").stdout)
    assert report["flags"]["PYJX_AS_JAX"] == "1"
    assert "PYJX_AS_JAX is set, which counts after `python -m pyjx install-alias`" in \
        report["the name jax"]["import jax"]
    code = "import pyjx.as_jax; from pyjx.cli import doctor; print(doctor.name_of_jax([]))"
    told = run("-c", code, PYJX_AS_JAX="0.10.2").stdout
    assert "'import jax': 'pyjx, told as jax 0.10.2'" in told


def test_it_says_what_the_alias_gives_in_this_environment(monkeypatch, tmp_path):
    for name in alias_files.NAMES:
        (tmp_path / name).touch()
    monkeypatch.setattr(alias_files, "folder", lambda: tmp_path)
    monkeypatch.setattr(JaxFinder, "answer", None)
    monkeypatch.delenv("PYJX_AS_JAX", raising=False)
    assert "PYJX_AS_JAX=1 is set, which it is not" in doctor.name_of_jax([])["import jax"]
    monkeypatch.setenv("PYJX_AS_JAX", "1")
    assert doctor.name_of_jax([])["import jax"].endswith(", as PYJX_AS_JAX is set")


def test_versions_of_jax_that_it_cannot_be_are_told_in_a_line(tmp_path):
    said = "PYJX_AS_JAX is 1, 0 or a version of JAX from 0.7.2 to 0.12.0, got '0.5.0'."
    found = run("-c", "import jax", PYJX_AS_JAX="0.5.0")
    assert (found.returncode, found.stderr) == (2, f"python -m pyjx: {said}\n")
    assert f"problem: {said}" in run("doctor", PYJX_AS_JAX="0.5.0", JAX_PLATFORMS="cpu").stdout


def test_what_is_broken_makes_the_status_1(tmp_path):
    (tmp_path / "file").write_text("")
    found = run("doctor", "--json", PYJX_CACHE_DIR=str(tmp_path / "file" / "cache"),
                JAX_PLATFORMS="cpu")
    report = json.loads(found.stdout)
    assert found.returncode == 1
    assert report["cache"] == {"state": "cannot be used",
                               "folder": str(tmp_path / "file" / "cache")}
    (problem,) = report["problems"]
    assert problem.startswith("the disk cache cannot be used: ")
    assert all(step["ok"] and step["seconds"] > 0 for step in report["self-test"].values())


def test_a_backend_that_cannot_start():
    found = run("doctor", JAX_PLATFORMS="no_such_platform")
    assert found.returncode == 1
    assert "problem: Unable to initialize backend 'no_such_platform'" in found.stdout
    assert "everything works" not in found.stdout


def test_a_failing_step(monkeypatch):
    def broken(*args, **kwargs):
        raise FloatingPointError("broken")

    monkeypatch.setattr(doctor.jax, "value_and_grad", lambda f: broken)
    problems = []
    found = doctor.self_test(problems)
    assert found["trace"]["ok"] and not found["grad"]["ok"] and "compile" not in found
    assert problems == ["self-test, grad: FloatingPointError: broken"]


def test_the_cache_may_be_off():
    with_cache = jax.config.jax_pyjx_cache
    jax.config.update("jax_pyjx_cache", False)
    try:
        problems = []
        assert doctor.disk_cache(problems) == {"state": "switched off"} and not problems
    finally:
        jax.config.update("jax_pyjx_cache", with_cache)


def test_commands(capsys):
    assert main(["--version"]) == 0
    versions = re.fullmatch(r"pyjx (.+), jaxlib (.+), Python (.+)\n", capsys.readouterr().out)
    assert versions and versions[1] == PYJX_VERSION
    assert main(["--help"]) == 0
    assert "  doctor          say what is installed" in capsys.readouterr().out
    assert main(["no-such"]) == 2
    assert "there is no command 'no-such'" in capsys.readouterr().err
    assert main([]) == 2
    capsys.readouterr()
    assert main(["explain", "TracerArrayConversionError", "jax_enable_x64"]) == 2
    assert "expected one name, got TracerArrayConversionError jax_e" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["explain"], ["--help"], ["--version"]])
def test_that_nobody_reads_the_output_is_no_error(arguments):
    read, write = os.pipe()
    os.close(read)
    found = subprocess.run([sys.executable, "-m", "pyjx", *arguments], stdout=write, timeout=120,
                           env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE,
                           check=False)
    os.close(write)
    assert (found.returncode, found.stderr) == (0, b"")
