"""The documentation of functions of arrays: what they take, what they give, an example."""

from __future__ import annotations

import importlib

import pytest

from pyjx.documentation import _parameters

PACKAGES = ("numpy", "numpy.linalg", "numpy.fft", "nn")


def functions(package):
    module = importlib.import_module(f"pyjx.{package}")
    for name in module.__all__:
        value = getattr(module, name)
        if callable(value) and not isinstance(value, type) and str(
                getattr(value, "__module__", "")).startswith(("pyjx", "jax")):
            yield name, value


@pytest.mark.parametrize("package", PACKAGES)
def test_functions_have_all_sections(package):
    for name, function in functions(package):
        doc = function.__doc__
        places = [doc.find(f"{section}:\n")
                  for section in ("Args", "Returns", "Raises", "Examples")]
        found = [at for at in places if at >= 0]
        assert found == sorted(found) and len(found) - (places[2] >= 0) == 3, name
        assert doc.count("Examples:") == 1 and ">>>" in doc[places[3]:], name


@pytest.mark.parametrize("package", PACKAGES)
def test_sections_that_are_put_in_describe_every_argument(package):
    for name, function in functions(package):
        doc = function.__wrapped__.__doc__ if hasattr(function, "__wrapped__") else None
        if doc is not None and "Args:" not in doc:
            for parameter in _parameters(function):
                assert f"  {parameter}: " in function.__doc__, (name, parameter)
