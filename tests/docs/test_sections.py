"""The documentation of functions of arrays: what they take, what they give, an example."""

from __future__ import annotations

import importlib
import inspect
import re

import pytest

import pyjx.numpy as jnp
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


@pytest.mark.parametrize("package", PACKAGES)
def test_what_is_returned_is_more_than_an_array(package):
    for name, function in functions(package):
        returns = re.search(r"Returns:\n\s+(.+)", function.__doc__)[1]
        assert not re.match(r"(An array|Several arrays|A value of type \S+)\.$", returns), name


OTHERS = ("lax", "lax.linalg", "random", "nn.initializers", "scipy.cluster.vq", "scipy.fft",
          "scipy.integrate", "scipy.linalg", "scipy.ndimage", "scipy.optimize", "scipy.signal",
          "scipy.sparse.linalg", "scipy.special", "scipy.stats")
ENTRY = re.compile(r"^ +((?:\*{0,2}\w+, )*\*{0,2}\w+): \S", re.MULTILINE)


def arguments(function):
    """The names that the section `Args` describes."""
    text = function.__doc__.partition("Args:\n")[2]
    text = re.split(r"\n\n *\S", text)[0]
    return {name.lstrip("*") for entry in ENTRY.findall(text) for name in entry.split(", ")}


@pytest.mark.parametrize("package", PACKAGES + OTHERS)
def test_every_argument_is_described(package):
    """With an example, too. Those of NumPy's ufuncs are the operands."""
    lacking = {name: given - arguments(function) for name, function in functions(package)
               if (given := {*inspect.signature(function).parameters}) - arguments(function)
               and not isinstance(function, jnp.ufunc)}
    assert lacking == {}
    assert [name for name, function in functions(package) if ">>>" not in function.__doc__] == []
