"""pyjx under the name `jax`. `import pyjx.as_jax` puts it in force.

From then on `jax` and `jax.x.y` are the modules `pyjx` and `pyjx.x.y` themselves, here and in the
processes that this one starts. What libraries import of JAX's internals (`jax._src`) is
`pyjx.compat`. A package jax that is installed stays as it is, unused.

Programs tell libraries apart by name: of a namespace (`xp.__name__ == "jax.numpy"`) and of the
module that a value's class is from. So public modules and the classes of tracers bear jax's names.
Their specs, and the classes that pickles hold, keep those of pyjx.

The environment variable PYJX_AS_JAX may hold the version of JAX that programs are told, such as
0.10.2; else it is the one that pyjx follows.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Iterable
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution
from pathlib import Path
from types import ModuleType
from typing import Any

import pyjx
from pyjx import compat, jax_imports, version
from pyjx.core.trace import Tracer

__all__ = ["VARIABLE", "install", "told_version"]

VARIABLE = "PYJX_AS_JAX"
_STAND_IN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "path")


def told_version(asked: str | None = None) -> str:
    """The version of JAX that programs are told; `asked` is what PYJX_AS_JAX holds.

    Raises:
      ValueError: it is no version that pyjx can stand for.

    >>> told_version("0.10.2")
    '0.10.2'
    """
    asked = os.environ.get(VARIABLE) if asked is None else asked
    if asked in (None, "", "0", "1"):
        return version.FOLLOWED
    try:
        told, newest = version.numbers(asked), version.numbers(version.FOLLOWED)
        fits = version.numbers(version.OLDEST) <= told and told[:2] <= newest[:2]
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"{VARIABLE} is 1, 0 or a version of JAX from {version.OLDEST} to "
                         f"{version.FOLLOWED}, got {asked!r}.")
    return asked


def module_name(name: str) -> str:
    """The module of pyjx that `name`, a module of jax, is.

    >>> module_name("jax.numpy"), module_name("jax._src.core")
    ('pyjx.numpy', 'pyjx.compat.core')
    """
    _, _, below = name.partition(".")
    first, _, rest = below.partition(".")
    if first == "_src":
        return compat.module_of(rest) if rest else "pyjx.compat"
    return f"pyjx.{below}" if below else "pyjx"


def jax_name(name: str) -> str:
    """`name`, of pyjx or of something in it, as jax has it.

    >>> jax_name("pyjx.numpy")
    'jax.numpy'
    """
    return f"jax{name.removeprefix('pyjx')}"


class SameModule(Loader):
    """A loader that gives the module object of another name, and `shown` to it as its name."""

    def __init__(self, name: str, shown: str) -> None:
        self.name = name
        self.shown = shown
        self.spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self.name)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec  # `import` has put the spec of the other name there
        module.__name__ = self.shown


class JaxDistribution(Distribution):
    """What `importlib.metadata` says of jax."""

    def read_text(self, filename: str) -> str | None:
        if filename in ("METADATA", "PKG-INFO"):
            return f"Metadata-Version: 2.1\nName: jax\nVersion: {version.__version__}\n"
        return None

    def locate_file(self, path: Any) -> Any:
        return Path(_STAND_IN) / path


class Alias:
    """Finds the modules and the distribution of the name `jax`."""

    def find_spec(self, name: str) -> ModuleSpec | None:
        same = module_name(name)
        found = importlib.util.find_spec(same)
        if found is None:
            return None
        shown = jax_name(same) if name == jax_name(same) else same
        spec = ModuleSpec(name, SameModule(same, shown), origin=found.origin)
        spec.submodule_search_locations = found.submodule_search_locations
        return spec

    def find_distributions(self, name: str | None) -> Iterable[Distribution]:
        return (JaxDistribution(),) if name in (None, "jax") else ()


def reach_children() -> None:
    """Let the processes that this one starts find pyjx as jax, too."""
    os.environ.setdefault(VARIABLE, "1")
    if _STAND_IN not in sys.path:
        sys.path.insert(1, _STAND_IN)
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if _STAND_IN not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (_STAND_IN, *paths)))


def show_jax_names() -> None:
    """Call by jax's names what is loaded already; `sys.modules` has it, as after `import jax`."""
    pyjx.__name__ = "jax"
    for name in ("core", "errors", "lax", "numpy", "tree_util"):
        importlib.import_module(f"jax.{name}")
    kinds: list[type] = [Tracer]
    for kind in kinds:
        kind.__module__ = jax_name(kind.__module__)
        kinds += kind.__subclasses__()


def install() -> None:
    """Make pyjx answer to the name `jax`.

    Raises:
      ImportError: jax has been imported already.
    """
    told = told_version()
    jax_imports.answer_with(Alias())
    for module in (pyjx, version):
        vars(module).update(__version__=told, __version_info__=version.numbers(told))
    sys.modules["jax"] = pyjx
    vars(pyjx)["_src"] = compat  # which programs read of `jax` without importing it
    show_jax_names()
    reach_children()
