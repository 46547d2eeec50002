"""The names that libraries import beyond the public ones exist under the alias."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

import pyjx as jax
from pyjx import alias

NAMES = [line for line in Path(__file__).with_name("internals.txt").read_text().splitlines()
         if line and not line.startswith("#")]


def find(name: str) -> Any:
    """What `name` is, the module being the longest prefix that can be imported."""
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(alias.module_name(".".join(parts[:n])))
        except ModuleNotFoundError:
            continue
        for part in parts[n:]:
            found = getattr(found, part)
        return found
    raise ImportError(name)


@pytest.mark.parametrize("name", NAMES)
def test_the_name_exists(name: str) -> None:
    find(name)


@pytest.mark.parametrize("name", [
    n for n in NAMES if n.startswith("jax._src") and n.split(".")[-2] == n.split(".")[-1]])
def test_a_function_is_not_hidden_by_its_module(name: str) -> None:
    assert callable(find(name))


@pytest.mark.parametrize("name", ["jax._src.core.no_such", "jax._src.no_such", "jax.lib.no_such"])
def test_others_are_plainly_unknown(name: str) -> None:
    with pytest.raises((AttributeError, ImportError)):
        find(name)


def test_a_sharding_is_made_canonical_over_an_abstract_mesh():
    canonical = find("jax._src.sharding_impls.canonicalize_sharding")
    mesh, auto = (jax.make_mesh((1,), ("x",), axis_types=(kind,))
                  for kind in (jax.sharding.AxisType.Explicit, jax.sharding.AxisType.Auto))
    along = canonical(jax.NamedSharding(mesh, jax.P("x")), "f")
    assert along == jax.NamedSharding(mesh.abstract_mesh, jax.P("x"))
    assert along.mesh._any_axis_explicit and not auto._any_axis_explicit
    assert canonical(None, "f") is None
    assert canonical(jax.typeof(jax.numpy.ones(3)).sharding, "f") is None
    for error, sharding in [(ValueError, jax.P("x")), (TypeError, "x"),
                            (ValueError, jax.NamedSharding(auto, jax.P("x")))]:
        with pytest.raises(error):
            canonical(sharding, "f")


def test_partial_applications_are_compared():
    partial = find("jax._src.util.HashablePartial")

    def f(x: Any, y: Any) -> Any:
        return x + y

    one, same, other = partial(f, 1), partial(f, 1), partial(f, 2)
    assert one == same != other and hash(one) == hash(same) and one(2) == 3
