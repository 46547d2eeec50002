"""Modules of JAX's internals that libraries import: how they are found, what their functions do."""

from __future__ import annotations

import importlib
import subprocess
import sys
import types
from collections import OrderedDict
from typing import Any

import pytest

import pyjx as jax
from pyjx import compat
from pyjx import numpy as jnp
from pyjx.compat.given_members import give
from pyjx.core.trace import Trace
from pyjx.runtime import clusters as launchers
from tests.test_internals import find


def module(name: str) -> Any:
    return importlib.import_module(compat.module_of(name))


def test_a_module_is_found_in_its_package_however_it_is_imported():
    program = """
import pyjx.as_jax
import jax
from jax._src.nn import functions, initializers
import jax._src.lax.lax as module
from jax._src.lax import lax
from jax._src.lax import control_flow, linalg
from jax._src.numpy import lax_numpy, vectorize
from jax._src.state.types import AbstractRef
from jax._src.lib import xla_client as xc
assert functions.relu is jax.nn.relu and initializers is jax.nn.initializers
assert lax is module is jax.lax and control_flow.scan is jax.lax.scan
assert linalg is jax.lax.linalg and lax_numpy is jax.numpy
assert vectorize.__name__.endswith("compat.numpy.vectorize") and callable(jax.numpy.vectorize)
assert not any(hasattr(x, n) for x, n in ((jax.nn, "functions"), (jax.lax, "control_flow")))
assert xc.OpSharding
try:
    from jax._src.nn import no_such
except ImportError:
    print("done")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "done\n", done.stderr


def test_a_walk_over_all_modules_imports_none():
    program = ("import sys, pyjx.compat\n"
               "for module in sys.modules.values(): getattr(module, '__file__', None)")
    subprocess.run([sys.executable, "-c", program], check=True)


def test_what_jaxlib_asks_for_with_each_array_is_looked_up_once():
    program = """
import pyjx.as_jax
import jax
from jax._src import sharding_impls
f = jax.jit(lambda x: x + 1)
float(f(f(1.0)))
looked_up = []
type(sharding_impls).__getattr__ = lambda module, name: looked_up.append(name)
print(float(f(2.0)), looked_up)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "3.0 []\n", done.stderr


def test_a_launcher_of_a_library_is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(launchers, "CLUSTERS", launchers.CLUSTERS)
    monkeypatch.delenv("JAX_COORDINATOR_PORT", raising=False)
    ClusterEnv = find("jax._src.clusters.ClusterEnv")
    given = dict.fromkeys(
        ("coordinator_address", "num_processes", "process_id", "local_device_ids"))
    asked: list[int] = []

    class Own(ClusterEnv):
        name = "own"
        opt_in_only_method = True

        @classmethod
        def is_env_present(cls) -> bool:
            return True

        @classmethod
        def get_coordinator_address(cls, timeout_secs: Any, override_coordinator_port: Any) -> str:
            asked.append(timeout_secs + 1)
            return f"host:{override_coordinator_port or 99}"

        @classmethod
        def get_process_count(cls) -> int:
            return 4

        @classmethod
        def get_process_id(cls) -> int:
            return 2

    class OwnHosts(Own):
        name = "hosts"

        @classmethod
        def get_local_process_id(cls) -> int:
            return 1

    class OwnHost(Own):
        name = "host"

        @classmethod
        def get_local_process_id(cls) -> None:
            return None

    found = launchers.completed(given, "own", 1)
    assert asked == [2]  # once, so host and port are of one answer
    assert found == {"coordinator_address": "host:99", "num_processes": 4, "process_id": 2,
                     "local_device_ids": None}
    assert launchers.completed(given, "host", 1) == found
    monkeypatch.setenv("JAX_COORDINATOR_PORT", "7")
    hosts = launchers.completed(given, "hosts", 1)
    assert hosts["coordinator_address"] == "host:7" and hosts["local_device_ids"] == [1]
    assert launchers.detect(None) is None or launchers.detect(None).name not in ("own", "hosts")
    with pytest.raises(NotImplementedError, match="must implement get_process_id"):
        ClusterEnv.get_process_id()


def test_what_is_kept_for_a_backward_pass():
    kept = module("ad_checkpoint").saved_residuals(lambda x, y: jnp.sin(x) * y, 1.0, 2.0)
    assert [aval.str_short() for aval, _ in kept] == ["float32[]"] * 3
    assert kept[0][1] == "from the argument y" and kept[1][1].startswith("output of sin from")


@pytest.mark.parametrize("tree", [
    (1, 2), [1], {"b": 1, "a": 2}, None, OrderedDict(z=1), jax.tree_util.Partial(max, 1),
])
def test_types_of_trees_are_taken_apart_and_made(tree):
    registry = module("tree_util")._registry
    entry = registry[type(tree)]
    children, rest = entry.to_iter(tree)
    made = entry.from_iter(rest, iter(children))
    assert jax.tree.structure(made) == jax.tree.structure(tree)
    assert jax.tree.leaves(made) == jax.tree.leaves(tree)
    assert type(tree) in registry and registry.get(type(tree)) is not None


def test_a_library_makes_keys_of_its_own():
    class Key:
        seed = 3

    core = module("random.core")
    asked = core._check_prng_key

    def check(name, key, **options):
        return asked(name, jax.random.key(key.seed) if isinstance(key, Key) else key, **options)

    core._check_prng_key = check
    try:
        for draw in (jax.random.uniform, jax.random.split, jax.random.bits,
                     lambda k: jax.random.gamma(k, 2.0)):
            assert jnp.array_equal(draw(Key()), draw(jax.random.key(3)))
    finally:
        core._check_prng_key = asked
    with pytest.raises(TypeError, match="unexpected PRNG key type"):
        jax.random.uniform(Key())


def test_leaves_are_of_no_type_of_trees():
    registry = module("tree_util")._registry
    assert int not in registry and registry.get(int, 3) == 3
    with pytest.raises(KeyError):
        registry[int]


def test_versions_of_cuda_are_asked_of_the_plugin(monkeypatch: pytest.MonkeyPatch):
    for name in ("jax_cuda13_plugin", "jax_cuda12_plugin"):
        monkeypatch.setitem(sys.modules, name, None)  # not installed
    assert module("lib").cuda_versions is None
    package, versions = [types.ModuleType(name) for name in ("jax_cuda12_plugin", "_versions")]
    package.__path__ = []
    monkeypatch.setitem(sys.modules, "jax_cuda12_plugin", package)
    monkeypatch.setitem(sys.modules, "jax_cuda12_plugin._versions", versions)
    assert module("lib").cuda_versions is versions


def test_classes_get_what_libraries_ask_for():
    def program(x: Any) -> Any:
        return x

    assert jax.jit(program)._fun is program  # type: ignore[attr-defined]
    assert not jax.lax.sin_p.call_primitive and not jax.lax.sin_p.map_primitive
    with pytest.raises(TypeError, match="Trace has a member 'main' already"):
        give(Trace, main=None)
