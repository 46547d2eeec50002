"""What libraries import of JAX beyond its public names, over pyjx's own ideas.

Under the alias `jax._src` is this package. A module of JAX's internals whose names one module of
pyjx has is that module (`MODULES`); the others are here. `jax.extend` and `jax.interpreters` are
tables of the names that these modules define.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import pyjx.compat.members  # noqa: F401  # which classes get by it

# Modules of `jax._src` that are modules of pyjx, by their names there.
MODULES = {
    "ad_util": "pyjx.lax.convert",
    "api_util": "pyjx.api_util",
    "array": "pyjx.runtime.array",
    "compiler": "pyjx.runtime.compile",
    "config": "pyjx.configuration",
    "earray": "pyjx.experimental.earray",
    "flatten_util": "pyjx.flatten_util",
    "interpreters": "pyjx.interpreters",
    "lax": "pyjx.lax",
    "lax.control_flow": "pyjx.lax",
    "lax.lax": "pyjx.lax",
    "lax.linalg": "pyjx.lax.linalg",
    "layout": "pyjx.experimental.layout",
    "mesh_utils": "pyjx.experimental.mesh_utils",
    "nn": "pyjx.nn",
    "nn.functions": "pyjx.nn",
    "numpy": "pyjx.numpy",
    "numpy.array_methods": "pyjx.compat.array_methods",
    "numpy.einsum": "pyjx.numpy",
    "numpy.index_tricks": "pyjx.numpy.grids",
    "numpy.lax_numpy": "pyjx.numpy",
    "numpy.ufuncs": "pyjx.numpy",
    "numpy.util": "pyjx.numpy.promotion",
    "numpy.vectorize": "pyjx.compat.vectorize",
    "ops": "pyjx.ops",
    "ops.scatter": "pyjx.ops",
    "partition_spec": "pyjx.core.specs",
    "prng": "pyjx.extend.random",
    "public_test_util": "pyjx.test_util",
    "random": "pyjx.random",
    "random.core": "pyjx.compat.random_core",
    "sharding": "pyjx.runtime.sharding",
    "source_info_util": "pyjx.extend.source_info_util",
    "state": "pyjx.ref",
    "state.types": "pyjx.core.avals",
    "typing": "pyjx.core.array_type",
}


def module_of(name: str) -> str:
    """The module of pyjx that is `jax._src.<name>`.

    >>> module_of("lax.linalg"), module_of("core"), module_of("interpreters.ad")
    ('pyjx.lax.linalg', 'pyjx.compat.core', 'pyjx.interpreters.ad')
    >>> module_of("nn"), module_of("nn.functions"), module_of("nn.initializers")
    ('pyjx.compat.nn', 'pyjx.nn', 'pyjx.nn.initializers')
    """
    return f"pyjx.compat.{name}" if name in _packages else _listed(name)


def _listed(name: str) -> str:
    """The module that the table says: that of the longest beginning that is in it, and the rest."""
    known, rest = name, ""
    while known and known not in MODULES:
        known, _, last = known.rpartition(".")
        rest = f".{last}{rest}"
    return MODULES.get(known, "pyjx.compat") + rest


def names_of(package: str, names: str) -> Callable[[str], Any]:
    """The `__getattr__` of a package of `jax._src`: modules of the table, else a module's names.

    >>> import pyjx.numpy
    >>> find = names_of("numpy", "pyjx.numpy")
    >>> find("index_tricks").__name__, find("sin") is pyjx.numpy.sin
    ('pyjx.numpy.grids', True)
    """
    def find(name: str) -> Any:
        if name.startswith("__") and name != "__all__":  # whoever walks over all modules asks
            raise AttributeError(f"module 'jax._src.{package}' has no attribute {name!r}")
        below = f"{package}.{name}"
        if below in MODULES or below in _packages:
            return importlib.import_module(module_of(below))
        return getattr(importlib.import_module(names), name)

    return find


def _above() -> Iterator[str]:
    """The packages that modules of the table are in, and that have no file here."""
    for name in MODULES:
        parts = name.split(".")
        for n in range(1, len(parts)):
            package = ".".join(parts[:n])
            if not _listed(package).startswith("pyjx.compat."):
                yield package


def _package(name: str) -> ModuleType:
    """A package of `jax._src` with the names of one of pyjx, and the modules of the table below.

    It is a module of its own, because importing a module sets an attribute of the package that it
    is in: `jax._src.nn.functions` is none of `jax.nn`.

    >>> from pyjx.compat import nn
    >>> nn.functions.relu is nn.relu
    True
    """
    module = ModuleType(f"pyjx.compat.{name}", f"`jax._src.{name}`.")
    module.__spec__ = ModuleSpec(module.__name__, None, is_package=True)
    module.__path__ = []
    module.__getattr__ = names_of(name, _listed(name))  # type: ignore[method-assign]
    return module


_packages = {name: _package(name) for name in _above()}
sys.modules.update({module.__name__: module for module in _packages.values()})


def __getattr__(name: str) -> ModuleType:
    try:
        return importlib.import_module(module_of(name))
    except ModuleNotFoundError as error:
        if error.name != module_of(name):
            raise
        raise AttributeError(f"module 'jax._src' has no attribute {name!r} here: pyjx has the "
                             "internals of JAX that libraries use") from None
