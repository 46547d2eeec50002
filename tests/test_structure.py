"""How the source is laid out: sizes of files and functions, imports, names of modules."""

from __future__ import annotations

import ast
import importlib
import json
import pkgutil
import re
from collections import Counter
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


def test_every_file_that_architecture_names_is_there() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    there = {path.name for path in ROOT.rglob("*.py")}
    users = {"lowering.py"}
    assert set(re.findall(r"(?<![\w/])\w+\.py\b", text)) - there <= users


# How much of each there may be. A bound falls with what goes; it rises with a new capability alone,
# by what that takes, as its commit says.
BOUNDS: list[tuple[Callable[[], float | Sized], float]] = [
    (sources.code_lines, 94_249),
    (lambda: PATHS, 497),
    (sources.small_with_one_importer, 15),
    (sources.circles, 0),
    (files_in_circles, 0),
    (sources.imports_inside_functions, 29),
    (silent_imports, 25),
    (lambda: max(sources.homes().values(), key=len), 7),
    (homes_of_operations, 30),
    (sources.percent_typed_any, 14.2),
    (lambda: primitive.RULE_KINDS, 18),
    (sources.repeated_names, 49),
]


@pytest.mark.parametrize(("measure", "bound"), BOUNDS)
def test_the_house_does_not_grow(measure: Callable[[], float | Sized], bound: float) -> None:
    found = measure()
    assert (len(found) if isinstance(found, Sized) else found) <= bound, found


@pytest.mark.parametrize("package", stubs.PACKAGES)
def test_no_module_has_the_name_of_a_public_function(package: str) -> None:
    """Importing `pyjx.lax.f` would put the module in the place of the function `lax.f`."""
    module = importlib.import_module(package)
    modules = {info.name for info in pkgutil.iter_modules(module.__path__)}
    public = {entry.partition("=")[0]
              for names in module.FAMILIES.values() for entry in names.split()}
    assert not modules & public


# What functools caches: nothing that users' functions or programs are made into.
FACTS = {
    "the machine": "clusters._metadata clusters._pod_and_job cache._usable cache._umask "
                   "cache._host_cpu cache.cpu_facts meshes.empty_mesh "
                   "sharding.single_device_sharding",
    "dtypes": "dtypes._issubdtype dtypes.short_dtype_name dtypes._above dtypes._join "
              "dtypes._own_finfo",
    "files": "comparison._statement_at comparison._statements stand_ins.modules",
    "texts": "links.signature quantities.hlo_arrays quantities.tensors",
    "the library": "operations._options documentation._entry "
                   "normal._weideman coefficients._shortened",
}


def test_functools_caches_facts_alone() -> None:
    """All else is in tables that are bounded, and that `clear_caches` empties."""
    cached = {f"{module.path.stem}.{node.name}" for module in sources.modules().values()
              for node in module.nodes if isinstance(node, sources.FUNCTIONS)
              if any([re.match(r"(functools\.)?(lru_)?cache\b", ast.unparse(decorator))
                      for decorator in node.decorator_list])}
    assert cached == set(" ".join(FACTS.values()).split())


def test_the_changelog_says_nothing_twice() -> None:
    """Merges leave copies of lines that both sides have changed."""
    words = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split()
    runs = Counter(zip(*[words[i:] for i in range(10)], strict=False))
    assert [" ".join(run) for run, n in runs.items() if n > 1] == []


def test_a_thread_that_has_a_lock_may_take_it_again() -> None:
    """The collector may run a finalizer there, and that may call anything."""
    plain = [(module.path.name, line.strip()) for module in sources.modules().values()
             for line in module.text.splitlines() if "threading.Lock()" in line]
    assert [name for name, _ in plain] == ["programs.py"], plain  # what others wait for, once


def imported(tree: ast.AST) -> set[str]:
    """What the code of a file imports, or asks for in a way that imports it."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(node.module or "")
        elif isinstance(node, ast.Call) and node.args:
            called = ast.unparse(node.func).rpartition(".")[2]
            name = node.args[0].value if isinstance(node.args[0], ast.Constant) else ""
            if called in ("importorskip", "import_module", "__import__") or (
                    called in ("find_spec", "skip_without") and "." in str(name)):
                found.add(str(name))
    return found


def test_tests_import_nothing_that_imports_jax() -> None:
    """They would import it in the place of pyjx, or be refused. What needs it runs in a process of
    its own, and `tests.installed` finds it without importing it."""
    libraries = {"jax", *json.loads((ROOT / "tests" / "ecosystem" / "imports.json").read_text())}
    assert {"flax", "optax"} < libraries
    run_apart = ("ecosystem/programs/", "files/libraries", "files/make", "files/objects",
                 "notebooks/run_cells", "oracle/forward", "test_not_yet")
    found = {f"{path.relative_to(ROOT)}: {name}" for path in TESTS
             if not any([f"tests/{part}" in str(path) for part in run_apart])
             for name in imported(ast.parse(path.read_text(encoding="utf-8")))
             if name.partition(".")[0] in libraries}
    assert not found
