"""The examples in the docstrings are true, and every public function has one."""

from __future__ import annotations

import codeop
import doctest
import functools
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import GenericAlias
from typing import Any

import numpy as np
import pytest

import lowering
import pyjx as jax
from pyjx.cli import stubs


def module_names() -> list[str]:
    names = []
    for package in (jax, lowering):
        names.append(package.__name__)
        for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            # Importing `as_jax` changes what `import jax` means in this process.
            if not info.name.endswith(("__main__", "as_jax")):
                names.append(info.name)
    return sorted({*names, *stubs.PACKAGES, *stubs.MADE})  # those that have no file, too


@pytest.fixture(autouse=True)
def defaults() -> Iterator[None]:
    """Examples are written for the default flags and NumPy's default printing."""
    with jax.enable_x64(False), np.printoptions(), np.errstate(all="ignore"):
        np.set_printoptions(precision=8, linewidth=75, suppress=False)
        yield


@functools.cache
def public_places() -> set[str]:
    """Where what users reach is defined: those examples must run when they are copied."""
    text = Path(__file__).with_name("public_names.txt").read_text(encoding="utf-8")
    places = set()
    for line in re.findall(r"^jax[.\w]*$", text, re.MULTILINE):
        name = line.replace("jax", "pyjx", 1)
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue  # not there yet
        places.add(name)
        for public in dir(module):
            value = getattr(module, public)
            if not inspect.ismodule(value) and hasattr(value, "__qualname__"):
                places.add(f"{value.__module__}.{value.__qualname__}")
    return places


@pytest.mark.parametrize("name", module_names())
def test_examples(name: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # for examples that write files
    module = importlib.import_module(name)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    for test in doctest.DocTestFinder().find(module, name, extraglobs={"jax": jax}):
        if test.name in public_places():
            test.globs = {"__name__": "__main__"}
        waiting: list[str] = []  # at a prompt an empty line ends a definition
        for line in re.findall(r"^ *(?:>>> |\.\.\. ?)(.*)$", test.docstring or "", re.MULTILINE):
            waiting.append(line)
            if codeop.compile_command("\n".join(waiting)) is not None:
                waiting = []
        assert waiting == [], f"{test.name}: a line of `...` is to end this"
        runner.run(test, out=report.append)
    assert runner.failures == 0, "".join(report)


def public_functions() -> dict[str, Any]:
    """The functions that a module's table exports, by the name under which users find them."""
    found = {}
    scipy = [name for name in stubs.PACKAGES if name.startswith("pyjx.scipy.")]
    for name in ("pyjx", "pyjx.lax", "pyjx.nn", "pyjx.numpy", "pyjx.random", *scipy):
        module = importlib.import_module(name)
        for entry in " ".join(module.FAMILIES.values()).split():
            public = entry.partition("=")[0]
            value = getattr(module, public)
            # A type alias that can be called is no function.
            if callable(value) and not isinstance(value, (type, GenericAlias)) \
                    and not public.endswith("_p"):
                found[f"{name}.{public}"] = value
    for name in importlib.import_module("pyjx.scipy.stats").SUBMODULES.split():
        distribution = importlib.import_module(f"pyjx.scipy.stats.{name}")
        for public in distribution.__all__:
            found[f"{distribution.__name__}.{public}"] = getattr(distribution, public)
    return found


@pytest.mark.parametrize("name", sorted(public_functions()))
def test_public_function_has_an_example(name: str) -> None:
    """It has one, which is true; wrapped functions are not found by their module's test."""
    function = public_functions()[name]
    doc = inspect.getdoc(function) or ""
    assert doc.strip(), f"{name} has no docstring"
    assert ">>> " in doc, f"{name} has no example"
    if inspect.isfunction(function) and not hasattr(function, "__wrapped__"):
        return
    test = doctest.DocTestParser().get_doctest(doc, {}, name, None, None)
    report: list[str] = []
    results = doctest.DocTestRunner().run(test, out=report.append)
    assert results.failed == 0, "".join(report)
