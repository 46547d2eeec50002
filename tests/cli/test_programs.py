"""`python -m pyjx FILE|-m MODULE|-c CODE`, and the alias in a whole environment."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyjx.cli import alias_files
from tests.typing.checking import reported_by_mypy

ROOT = Path(__file__).resolve().parent.parent.parent


def python(*arguments: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    given = {k: v for k, v in os.environ.items() if k not in ("PYJX_AS_JAX", "PYTHONPATH")}
    return subprocess.run([sys.executable, *arguments], cwd=cwd, capture_output=True, text=True,
                          env={**given, "PYTHONPATH": str(ROOT), **env}, timeout=300)


def run(*arguments: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return python("-m", "pyjx", *arguments, cwd=cwd, **env)


def test_a_file_runs_as_python_runs_it(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("import jax\n")
    (tmp_path / "train.py").write_text(
        "import sys, beside, pyjx, jax.numpy as jnp\n"
        "assert beside.jax is pyjx and jnp is pyjx.numpy\n"
        "assert sys.modules['__main__'].__dict__ is globals()\n"
        "print(__name__, __file__, sys.argv, sys.path[0], float(jnp.sin(0.)))\n")
    done = run("sub/../train.py", "-m", "x", cwd=tmp_path)
    (tmp_path / "sub").mkdir()
    done = run("sub/../train.py", "-m", "x", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    place = os.path.abspath(tmp_path / "train.py")
    assert done.stdout == (f"__main__ {place} ['sub/../train.py', '-m', 'x'] "
                           f"{os.path.realpath(tmp_path)} 0.0\n")


def test_a_module_runs_as_python_runs_it(tmp_path: Path) -> None:
    package = tmp_path / "tool"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text(
        "import sys, jax\nfrom . import __name__ as name\n"
        "print(name, __name__, __spec__.name, sys.argv[1:], jax.__spec__.name)\n")
    done = run("-m", "tool", "a", cwd=tmp_path)
    assert done.stdout == "tool __main__ tool.__main__ ['a'] pyjx\n", done.stderr
    done = run("-m", "no_such", cwd=tmp_path)
    assert done.returncode == 1
    assert "No module named no_such" in done.stderr


@pytest.mark.parametrize("code,status,error", [
    ("import sys; sys.exit(3)", 3, ""),
    ("import sys; print(sys.argv); 1 / 0", 1,
     'Traceback (most recent call last):\n  File "<string>", line 1, in <module>\n'
     "ZeroDivisionError: division by zero\n"),
    ("raise SystemExit('over')", 1, "over\n"),
])
def test_code_ends_as_python_ends_it(code: str, status: int, error: str, tmp_path: Path) -> None:
    done = run("-c", code, "a", cwd=tmp_path)
    assert done.returncode == status
    assert done.stderr == error
    if "argv" in code:
        assert done.stdout == "['-c', 'a']\n"


@pytest.mark.parametrize("command", [["-m", "pyjx"], ["-m", "pyjx", "report"], ["-m", "emit_hlo"]])
def test_flags_whose_variables_a_program_sets_before_it_imports_jax(
        command: list[str], tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import os\n"
        "os.environ.update(JAX_ENABLE_X64='1', JAX_NUM_CPU_DEVICES='3')\n"
        "import jax\n"
        "os.environ['JAX_DEBUG_NANS'] = '1'\n"
        "import jax.numpy\n"
        "print(jax.numpy.ones(2).dtype, len(jax.devices()), jax.config.jax_debug_nans)\n"
        "f = jax.numpy.sin\n")
    program = ["program.py"] if "emit_hlo" not in command else ["program.py:f", "f32[2]"]
    done = python(*command, *program, cwd=tmp_path)
    assert "float64 3 False\n" in done.stdout + done.stderr, done.stderr


def test_processes_that_a_program_starts_find_pyjx_too(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import multiprocessing, subprocess, sys\n"
        "def name(_):\n"
        "    import jax\n"
        "    return jax.__spec__.name\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        print(pool.map(name, [0]))\n"
        "    code = 'import jax; print(jax.__spec__.name)'\n"
        "    sys.exit(subprocess.call([sys.executable, '-c', code]))\n")
    done = run("program.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == ["['pyjx']", "pyjx"]


def test_an_argument_that_is_neither_command_nor_file(tmp_path: Path) -> None:
    done = run("nothing.py", cwd=tmp_path)
    assert done.returncode == 2
    assert "there is no command 'nothing.py', and no file of that name" in done.stderr
    assert run("-c", cwd=tmp_path).returncode == 2


def test_the_alias_of_an_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                     capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(alias_files, "folder", lambda: tmp_path)
    assert alias_files.install([]) == 0
    assert str(tmp_path) in capsys.readouterr().out
    assert {p.name for p in tmp_path.iterdir()} == {*alias_files.NAMES, "jax-stubs"}
    for name in ("numpy", "numpy/linalg", "experimental/sparse"):
        stub = (tmp_path / "jax-stubs" / name / "__init__.pyi").read_text(encoding="utf-8")
        assert f"from pyjx.{name.replace('/', '.')} import *" in stub
    site = f"import site; site.addsitedir({str(tmp_path)!r})\n"
    look = ("import sys; early = 'pyjx' in sys.modules\n"
            "import importlib.metadata as m\n"
            "try: found = m.version('jax')\n"
            "except m.PackageNotFoundError: found = None\n"
            "try: import jax.numpy; print(early, jax.__spec__.name, found)\n"
            "except ImportError: print(early, None, found)\n")
    done = python("-c", site + look, cwd=tmp_path, PYJX_AS_JAX="0.10.2")
    assert done.stdout == "False pyjx 0.10.2\n", done.stderr
    for asks in ("import jax.numpy", "m.version('jax')", "import pyjx.as_jax"):
        code = f"{site}import importlib.metadata as m\n{asks}"
        done = python("-c", code, cwd=tmp_path, PYJX_AS_JAX="yes")
        assert [line for line in done.stderr.splitlines() if line.startswith("  File ")] == [
            '  File "<string>", line 3, in <module>'], done.stderr
        assert "ValueError: PYJX_AS_JAX is 1, 0 or a version" in done.stderr
    done = python("-c", site + look, cwd=tmp_path)
    assert "pyjx" not in done.stdout
    assert alias_files.uninstall([]) == 0
    assert [p.name for p in tmp_path.iterdir() if p.name != "__pycache__"] == []
    assert alias_files.uninstall([]) == 0
    assert "there is no alias" in capsys.readouterr().out


def names_of_jax() -> dict[str, list[str]]:
    """The public names of each module of jax."""
    found: dict[str, list[str]] = {}
    text = (ROOT / "tests" / "public_names.txt").read_text(encoding="utf-8")
    for paragraph in text.split("\n\n")[1:]:
        module, *names = paragraph.split()
        found[module] = names
    return found


def test_the_stubs_know_every_public_name(tmp_path: Path) -> None:
    """As a type checker reads them: a stub that is not there, or lacks a name, is an error."""
    alias_files.write_stubs(tmp_path)
    (tmp_path / "jax-stubs").rename(tmp_path / "jax")  # as it is found on a path
    known = names_of_jax()
    assert len(known) > 100
    lines = ["from jax import __version__, __version_info__"]
    for module, names in known.items():
        try:
            there = importlib.import_module(module.replace("jax", "pyjx", 1))
        except ImportError:
            continue
        shown = [name for name in names if hasattr(there, name)]
        lines += [f"import {module}", *[f"from {module} import {name} as _{len(lines)}_{i}"
                                        for i, name in enumerate(shown)]]
    program = tmp_path / "program.py"
    program.write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "mypy.ini").write_text(
        f"[mypy]\nmypy_path = {tmp_path}:{ROOT}\nfollow_imports = silent\n", encoding="utf-8")
    found = reported_by_mypy("--config-file", str(tmp_path / "mypy.ini"), "--cache-dir",
                             str(tmp_path / "cache"), str(program))
    assert [line for line in found if ": error: " in line] == []


def test_stubs_of_others_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alias_files, "folder", lambda: tmp_path)
    theirs = tmp_path / "jax-stubs" / "__init__.pyi"
    theirs.parent.mkdir()
    theirs.write_text("Array: object\n", encoding="utf-8")
    assert alias_files.install([]) == alias_files.uninstall([]) == 0
    assert theirs.read_text(encoding="utf-8") == "Array: object\n"
    assert [p.name for p in theirs.parent.iterdir()] == ["__init__.pyi"]
