"""How the source is laid out: sizes of files and functions, imports, names of modules."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Callable, Sized

import pytest

from pyjx.cli import stubs
from pyjx.core import primitive
from tests import sources
from tests.sources import PATHS, ROOT

TESTS = sorted((ROOT / "tests").rglob("*.py"))
MAX_LINES = 800
MAX_FUNCTION_LINES = 60


def length(function: ast.FunctionDef) -> int:
    """Lines of the function without its doc string."""
    first = function.body[0]
    doc = first.end_lineno - first.lineno + 1 if sources.documented(function) else 0
    return function.end_lineno - function.lineno + 1 - doc


@pytest.mark.parametrize("module", sources.modules())
def test_sizes_of_functions(module: str) -> None:
    assert not {node.name: length(node) for node in sources.modules()[module].nodes
                if isinstance(node, sources.FUNCTIONS) and length(node) > MAX_FUNCTION_LINES}


def test_sizes_of_files() -> None:
    lines = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8").count("\n")
             for path in PATHS + TESTS}
    assert not {path: n for path, n in lines.items() if n > MAX_LINES}


def silent_imports() -> dict[str, str]:
    """Imports inside functions that have no comment, statements and calls of `import_module`."""
    return {place: text for place, text in sources.imports_inside_functions().items()
            if "#" not in text}


def test_imports_inside_functions_say_why() -> None:
    assert not [place for place, text in silent_imports().items()
                if "import_module(" not in text and "__import__(" not in text]


def files_in_circles() -> list[str]:
    return [name for circle in sources.circles() for name in circle]


def homes_of_operations() -> list[str]:
    return [name for names in sources.homes().values() for name in names]


def test_the_reading_order_is_short_and_true() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    order = text.partition("## Reading order\n")[2].partition("\nThen, by need:")[0]
    files = re.findall(r"`(\w+/\w+\.py)`", order)
    paths = [ROOT / name if name.startswith("lowering/") else ROOT / "pyjx" / name
             for name in files]
    lines = sum(path.read_text(encoding="utf-8").count("\n") for path in paths)
    assert 0 < len(files) <= 15 and lines <= 4000, (files, lines)


# How much of each there may be. A bound falls with what goes; it rises with a new capability alone,
# by what that takes: 77,115 with small programs on CPUs, 328 for functions that jax exports.
BOUNDS: list[tuple[Callable[[], float | Sized], float]] = [
