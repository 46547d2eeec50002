"""What is installed and what is shipped: nothing is missing from wheel and sdist."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
import sys
import tarfile
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("emit_hlo", "lowering", "pyjx")
SHIPPED = (*PACKAGES, ".ci", "benchmarks", "examples", "tests")
AT_TOP = (".pre-commit-config.yaml", ".ruff.toml", "ARCHITECTURE.md", "CHANGELOG.md",
          "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "MANIFEST.in", "README.md", "SECURITY.md",
          "pyproject.toml", "setup.cfg", "tox.ini")

setup_cfg = configparser.ConfigParser()
setup_cfg.read(ROOT / "setup.cfg")


def files_of(*folders: str) -> set[str]:
    """The files in these folders, without what tools leave there or make."""
    found = set()
    for folder in folders:
        for path in (ROOT / folder).rglob("*"):
            inside = path.relative_to(ROOT / folder).parts
            if path.is_file() and not any(p[0] == "." or p == "__pycache__" for p in inside):
                found.add(path.relative_to(ROOT).as_posix())
    return found


def build(tmp_path: Path, *command: str) -> None:
    """Run a command of setuptools on a copy of the tree."""
    tree = tmp_path / "tree"
    for name in files_of(*SHIPPED) | set(AT_TOP):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tree / name)
    done = subprocess.run([sys.executable, "-c", "import setuptools; setuptools.setup()", *command],
                          cwd=tree, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_stubs_and_markers_are_package_data() -> None:
    """Only recent versions of setuptools take them without being told."""
    patterns = [
        (package, pattern) for package, listed in setup_cfg["options.package_data"].items()
        for pattern in re.split(r"[,\s]+", listed.strip())]
    data = [name for name in files_of(*PACKAGES) if not name.endswith(".py")]
    assert any(name.endswith(".pyi") for name in data)
    assert [n for n in data if not any(is_listed(n, *p) for p in patterns)] == []


def is_listed(name: str, package: str, pattern: str) -> bool:
    """Whether a pattern, which stands for files in one package or in each, names a file."""
    if package == "*":
        return fnmatch(os.path.basename(name), pattern)
    return fnmatch(name, f"{package.replace('.', '/')}/{pattern}")


def test_what_is_installed(tmp_path: Path) -> None:
    pytest.importorskip("setuptools")
    build(tmp_path, "-q", "build_py", "--build-lib", str(tmp_path / "lib"))
    installed = {p.relative_to(tmp_path / "lib").as_posix()
                 for p in (tmp_path / "lib").rglob("*") if p.is_file()}
    assert installed == files_of(*PACKAGES)


def test_what_is_shipped(tmp_path: Path) -> None:
    """An unpacked sdist holds all that README's commands need."""
    pytest.importorskip("setuptools")
    build(tmp_path, "-q", "sdist", "--formats=gztar", "--dist-dir", str(tmp_path))
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        shipped = {m.name.partition("/")[2]: m for m in tar.getmembers() if m.isfile()}
    assert sorted((files_of(*SHIPPED) | set(AT_TOP)) - set(shipped)) == []
    assert shipped[".ci/run"].mode & 0o100
    assert not [name for name in shipped if "__pycache__" in name]


def test_the_same_sources_give_the_same_bytes(tmp_path: Path) -> None:
    """Whenever they are built, wherever, and with whichever permissions."""
    setuptools = pytest.importorskip("setuptools")
    if int(setuptools.__version__.partition(".")[0]) < 71:
        pytest.importorskip("wheel")
    built = []
    for attempt, mask in ((1, 0o022), (2, 0o077)):
        tree, out = tmp_path / str(attempt) / "tree", tmp_path / str(attempt) / "out"
        out.mkdir(parents=True)
        for name in files_of(".ci", "lowering") | set(AT_TOP) | {
                "pyjx/__init__.py", "pyjx/version.py", "pyjx/py.typed"}:
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tree / name)
            (tree / name).chmod((0o777 if name == ".ci/run" else 0o666) & ~mask)
            os.utime(tree / name, (1e9 * attempt, 1e9 * attempt))
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", "import sys; sys.path.insert(0, '.ci')\n"
             "import backend as b; out = sys.argv[1]; b.build_sdist(out); b.build_wheel(out)",
             str(out)], cwd=tree, capture_output=True, text=True, umask=mask)
        assert done.returncode == 0, done.stderr
        built.append({p.name: p.read_bytes() for p in out.iterdir()})
    assert len(built[0]) == 2 and built[0] == built[1]
    assert all(f"-{version()}" in name for name in built[0])


def version() -> str:
    (found,) = re.findall(r'^PYJX_VERSION = "(.*?)"',
                          (ROOT / "pyjx/version.py").read_text(encoding="utf-8"), re.MULTILINE)
    return str(found)


# -- the package lowering beside a module of the user's by that name -------------------------------


def python(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder that has a file `lowering.py`."""
    (tmp_path / "lowering.py").write_text(
        "import pyjx\ndef double(x):\n    return 2 * x\n"
        "if __name__ == '__main__':\n    print(pyjx.jit(double)(3))\n")
    return subprocess.run([sys.executable, *arguments], cwd=tmp_path, text=True,
                          capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)})


@pytest.mark.parametrize("arguments", [
    ("-c", "import pyjx; print(pyjx.jit(lambda x: 2 * x)(3))"),
    ("-c", "import pyjx.numpy as jnp; print(jnp.multiply(2, 3))"),
    ("lowering.py",),
    ("-m", "lowering"),
])
def test_a_file_of_that_name_is_passed_over(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = python(tmp_path, *arguments)
    assert (done.stdout, done.stderr) == ("6\n", "")


def test_emit_hlo_takes_such_a_file(tmp_path: Path) -> None:
    done = python(tmp_path, "-m", "emit_hlo", "lowering.py:double", "f32[2]",
                  "--emit", "jaxpr")
    assert done.returncode == 0, done.stderr
    assert "mul 2.0:f32[] a" in done.stdout


def test_such_a_module_that_is_imported_already_is_named(tmp_path: Path) -> None:
    done = python(tmp_path, "-c", "import lowering")
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: pyjx has a package of the name `lowering`")
    assert str(tmp_path / "lowering.py") in last
    assert last.endswith("Rename it.")


def test_such_a_module_that_is_imported_later_is_told() -> None:
    import lowering

    with pytest.raises(AttributeError, match=r"pyjx's package .* a module of your own needs anoth"):
        lowering.double  # noqa: B018
