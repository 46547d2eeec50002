"""The names that libraries import beyond the public ones exist under the alias."""

from __future__ import annotations

import importlib
import weakref
from functools import partial
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


def test_caches_know_the_flags_that_traces_depend_on():
    util = importlib.import_module("pyjx.compat.util")
    calls: list[Any] = []

    def note(x: Any, *args: Any) -> int:
        calls.append(args)
        return len(calls)

    for cache in (util.memoize, util.cache(), util.weakref_lru_cache,
                  util.weakref_lru_cache(maxsize=None)):
        calls.clear()
        noted, key = cache(note), jax.tree_util.Partial(note)
        assert [noted(key), noted(key), noted(key, 3), noted(key, 3)] == [1, 1, 2, 2]
        with jax.enable_x64(True):
            assert [noted(key), noted(key)] == [3, 3]
        assert noted(key) == 1 and noted.cache_info().misses == 3
        noted.cache_clear()
        assert noted(key) == 4
    calls.clear()
    noted = util.cache(max_size=1, trace_context_in_key=False)(note)
    with jax.enable_x64(True):
        assert noted(0) == 1
    assert [noted(0), noted(1), noted(0)] == [1, 2, 3]
    by_size = util.cache(trace_context_in_key=lambda: len(calls))(note)
    assert [by_size(0), by_size(0)] == [4, 5]


def test_a_weak_cache_keeps_no_argument_alive():
    util = importlib.import_module("pyjx.compat.util")

    class Program:
        pass

    names = util.weakref_lru_cache(lambda program, suffix: type(program).__name__ + suffix)
    program = Program()
    assert names(program, "s") == "Programs"
    gone = weakref.ref(program)
    del program
    assert gone() is None and names.cache_info().currsize == 0
    with pytest.raises(TypeError, match="weak reference"):
        names(1, "s")


def test_names_of_functions_and_modules():
    util = importlib.import_module("pyjx.compat.util")

    @util.set_module("elsewhere")
    class Thing:
        pass

    assert Thing.__module__ == "elsewhere"
    assert util.fun_qual_name(partial(Thing.__init__, 1)) == "object.__init__"
    assert util.canonicalize_axis_tuple(None, 2) == (0, 1)
    assert util.canonicalize_axis_tuple(-1, 2) == (1,)
    assert util.canonicalize_axis_tuple((0, 0), 2, allow_duplicate=True) == (0, 0)
    with pytest.raises(ValueError, match=r"repeated axis: \(0, -2\)"):
        util.canonicalize_axis_tuple((0, -2), 2)
    assert util.split_list_checked([1, 2, 3], [1, 2]) == [[1], [2, 3]]
    with pytest.raises(AssertionError):
        util.split_list_checked([1, 2, 3], [1, 1])
