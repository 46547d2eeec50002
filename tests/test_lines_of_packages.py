"""Which line is the user's in a program of installed packages: the one that calls them."""

from __future__ import annotations

import importlib.util
import sys

import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import inspect


@pytest.fixture
def layers(tmp_path):
    """A module of layers, as a package that pip installed has it."""
    folder = tmp_path / "site-packages" / "layers_of_a_package"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(
        "import jax\nimport jax.numpy as jnp\n\n\ndef logs(x):\n    return jnp.log(x) @ x.T\n\n\n"
        "def picked(x, i):\n    return x[i] * 2\n\n\njitted = jax.jit(lambda x: x * 2)\n"
        .replace("jax", "pyjx"))
    name = "layers_of_a_package"
    spec = importlib.util.spec_from_file_location(name, folder / "__init__.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules[name]


def line_here(of):
    return f"test_lines_of_packages.py:{of.__code__.co_firstlineno + 1}"


def test_a_bad_value_and_its_package(layers):
    def two(x):
        x = layers.logs(x) + 1
        return layers.logs(x)

    found = inspect.find(two, -jnp.ones((2, 2)))
    assert found.line.start_line == two.__code__.co_firstlineno + 1
    assert found.package_line.function_name == "logs"
    assert f"{line_here(two)} (" in str(found)
    assert "\n  by layers_of_a_package/__init__.py:6 (logs)" in str(found)
    assert inspect.find(jnp.log, -1.0).package_line is None


def test_costs_memory_and_traces(layers):
    def two(x):
        return layers.logs(x).sum()

    traced = jax.jit(two).trace(jnp.ones((300, 300)))
    assert {line_here(two)} == {row.name.rpartition("/")[2] for row in traced.cost().by_line}
    assert line_here(two) in str(traced.memory()) and "layers_of" not in str(traced.memory())

    def calls():
        return layers.jitted(jnp.ones(3))

    calls()
    assert layers.jitted.explain().traces[0].caller.endswith(line_here(calls))


def test_bounds_checks(layers):
    def picks(i):
        return layers.picked(jnp.arange(4.0), i)

    with pytest.raises(IndexError) as raised:
        jax.debug.bounds_check(picks)(9)
    assert f"{line_here(picks)} (" in str(raised.value)
