"""How the source is laid out: sizes of files and functions, imports, names of modules."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyjx.cli import stubs

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted(
    path for package in ("emit_hlo", "pyjx", "lowering") for path in (ROOT / package).rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
MAX_LINES = 800
MAX_FUNCTION_LINES = 60
MAX_FUNCTION_IMPORTS = 40


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            yield node


def length(function: ast.FunctionDef) -> int:
    """Lines of the function without its doc string."""
    first = function.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    doc = first.end_lineno - first.lineno + 1 if documented else 0
    return function.end_lineno - function.lineno + 1 - doc


@pytest.mark.parametrize("path", SOURCES, ids=[str(p.relative_to(ROOT)) for p in SOURCES])
def test_sizes_of_functions(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    long = {f.name: length(f) for f in functions(ast.parse(text))
            if length(f) > MAX_FUNCTION_LINES}
    assert not long


def test_sizes_of_files() -> None:
    lines = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8").count("\n")
             for path in SOURCES + TESTS}
    assert not {path: n for path, n in lines.items() if n > MAX_LINES}


def function_imports() -> dict[str, str]:
    """Imports inside functions, and the line of each."""
    found = {}
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        for function in functions(ast.parse(text)):
            for node in ast.walk(function):
                if isinstance(node, (ast.Import, ast.ImportFrom)):
                    found[f"{path.relative_to(ROOT)}:{node.lineno}"] = "\n".join(
                        lines[node.lineno - 2:node.end_lineno])
    return found


def test_imports_inside_functions_are_few_and_say_why() -> None:
    found = function_imports()
    assert len(found) <= MAX_FUNCTION_IMPORTS, "\n".join(found)
    silent = [place for place, text in found.items() if "#" not in text]
    assert not silent, "these do not say why they stand in a function:\n" + "\n".join(silent)


@pytest.mark.parametrize("package", stubs.PACKAGES)
def test_no_module_has_the_name_of_a_public_function(package: str) -> None:
    """Importing `pyjx.lax.f` would put the module in the place of the function `lax.f`."""
    module = importlib.import_module(package)
    modules = {info.name for info in pkgutil.iter_modules(module.__path__)}
    public = {entry.partition("=")[0]
              for names in module.FAMILIES.values() for entry in names.split()}
    assert not modules & public
