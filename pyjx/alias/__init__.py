"""pyjx under the name `jax`. `import pyjx.as_jax` puts it in force.

From then on `jax` and `jax.x.y` are the modules `pyjx` and `pyjx.x.y` themselves, here and in the
processes that this one starts. What libraries import of JAX's internals (`jax._src`) is
`pyjx.compat`. A package jax that is installed stays as it is, unused.

Libraries that serve several array packages choose by name: of the namespace, which is then
`jax.numpy`, and of the module of a value's class. What is public has the names of jax's modules, as
pickles hold these; other modules, and the spec of `numpy`, keep the names of pyjx.

The environment variable PYJX_AS_JAX may hold the version of JAX that programs are told, such as
0.10.2; else it is the one that pyjx follows.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import sys
import threading
from collections.abc import Iterable
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pyjx
from pyjx import compat, jax_imports, lazy, version
from pyjx.compat import pickles
from pyjx.engine.forward import LinearizeTracer
from pyjx.engine.linearize import LinearTracer
from pyjx.guards import guard
from pyjx.states import states

__all__ = ["VARIABLE", "install", "install_when_asked", "told_version"]

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
    if below == "experimental.sparse._base":  # where pickles have the class of all sparse arrays
        return "pyjx.experimental.sparse"
    return f"pyjx.{below}" if below else "pyjx"


class SameModule(Loader):
    """A loader that gives the module object of another name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = lazy.loaded(self.name)
        self.spec = module.__spec__
        show_as_jax(module)
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec  # `import` has put the spec of the other name there

    def get_code(self, fullname: str) -> CodeType | None:
        """What `python -m` runs."""
        spec = importlib.util.find_spec(self.name)
        get_code = getattr(spec and spec.loader, "get_code", None)
        return get_code and get_code(self.name)  # type: ignore[no-any-return]


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
        if found is None and same in sys.modules:  # a view, which its package has made meanwhile
            found = sys.modules[same].__spec__
        if found is None:
            return None
        spec = ModuleSpec(name, SameModule(same), origin=found.origin)
        spec.submodule_search_locations = found.submodule_search_locations
        spec.has_location = found.has_location
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
    """Let libraries find jax's names where they look for them: in `sys.modules`, too."""
    for name in ("core", "dtypes", "errors", "lax", "numpy", "tree_util"):
        importlib.import_module(f"jax.{name}")
    _ = pyjx.dtypes.TypePromotionError  # which nobody names before it is raised
    pyjx.numpy.__name__ = "jax.numpy"
    for array in (LinearizeTracer, LinearTracer):  # which jax's modules do not show
        if array.__module__.startswith("pyjx."):
            array.__module__ = f"jax.{array.__module__.removeprefix('pyjx.')}"
            importlib.import_module(array.__module__)
    pickles.write_as_jax()
    lazy.hears_names.append(name_as_jax)
    lazy.hears_modules.append(LoadedClasses())
    lazy.hears_modules[-1]()
    for module in [m for name, m in list(sys.modules.items()) if name.partition(".")[0] == "pyjx"]:
        show_as_jax(module)


def _is_public(package: str, name: str, value: Any) -> bool:
    """Whether a package has the value under a name, which may not have been used yet."""
    module, original = lazy.tables.get(package, {}).get(name, (package, name))
    return module in sys.modules and lazy.own_dictionary(sys.modules[module]).get(original) is value


def name_as_jax(package: str, name: str, value: Any) -> None:
    """Let a public class or function be one of jax's module, for pickles."""
    below = package.removeprefix("pyjx")
    if re.match(_OWN, below) or (below == ".core" and name not in _OF_CORE):
        return
    if isinstance(value, ModuleType):
        return show_as_jax(value)
    own = getattr(value, "__module__", None)
    called = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    if isinstance(own, str) and own.partition(".")[0] == "pyjx":
        if f"jax{below}" not in sys.modules:
            sys.modules[f"jax{below}"] = sys.modules[package]
            show_as_jax(sys.modules[package])
        if called == name or _is_public(package, str(called), value):
            pickles.move(value, f"jax{below}")
        elif isinstance(value, (type, FunctionType)):
            pickles.move(value, f"jax{below}", name)


class LoadedClasses:
    """Lets the public classes of each module be of jax's as soon as it has been loaded: objects are
    of classes that nobody has named. What else objects hold, and modules that others fill, too.

    Modules load in several threads. The lock is let go before anything is named: that may load
    others, which a thread that waits for the lock may be loading."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.told: set[str] = set()
        self.homes: set[str] = set()
        self.waiting: dict[str, list[tuple[str, str, str]]] = {name: [] for name in pickles.HELD}

    def __call__(self) -> None:
        for module, names in self.ready():
            self.name(module, names)

    def ready(self) -> list[tuple[str, list[tuple[str, str, str]]]]:
        """The modules that have loaded since it was asked, and what is public of them, where."""
        with self.lock:
            for package in set(lazy.tables) - self.told:
                self.told.add(package)
                for name, (module, original) in lazy.tables[package].items():
                    self.waiting.setdefault(module, []).append((package, name, original))
            for home in set(lazy.filled) - self.homes:
                self.homes.add(home)
                self.waiting.setdefault(home, [])
            come = [m for m in list(self.waiting) if lazy.is_ready(sys.modules.get(m))]
            return [(m, self.waiting.pop(m, [])) for m in come]

    def name(self, module: str, names: list[tuple[str, str, str]]) -> None:
        """Let what objects hold of a module be of jax's."""
        pickles.move_held(module)
        own = lazy.own_dictionary(sys.modules[module])
        for package, name, original in names:
            if isinstance(own.get(original), type):
                name_as_jax(package, name, own[original])
        for view in lazy.filled.get(module, ()):
            show_as_jax(sys.modules[view])


# Whose names are not jax's.
_OWN = (r"\.((alias|cli|compat|configuration|engine|inspect|not_yet|parallel|runtime|tools"
        r"|transforms|viewer)\b|core\.|experimental\.pallas\.rest\b)")

# What `jax.core` has; other names of that module here are those of `jax.extend.core`.
_OF_CORE = ("AbstractValue", "ShapedArray", "Trace", "ensure_compile_time_eval", "eval_context",
            "eval_jaxpr", "max_dim", "min_dim")


def show_as_jax(module: ModuleType) -> None:
    """`name_as_jax` for what a module has by now."""
    own = lazy.own_dictionary(module)
    if type(module) is ModuleType and module.__name__ in lazy.tables:
        module.__class__ = lazy.Named
    for name in own.get("__all__", ()):
        if name in own:
            name_as_jax(module.__name__, name, own[name])


def install_when_asked() -> None:
    """`install` when somebody imports `jax`; the processes that this one starts find it, too.

    Raises:
      ValueError: PYJX_AS_JAX is no version that pyjx can stand for.
    """
    told_version()
    reach_children()
    jax_imports.answer_when_asked()


@guard
def install() -> None:
    """Make pyjx answer to the name `jax`.

    Raises:
      ImportError: jax has been imported already.
    """
    told = told_version()
    for flag in states.values():  # variables that a program has set before it imports jax
        flag.read_environment()
    jax_imports.answer_with(Alias())
    for module in (pyjx, version):
        lazy.own_dictionary(module).update(__version__=told, __version_info__=version.numbers(told))
    sys.modules["jax"] = pyjx
    lazy.own_dictionary(pyjx)["_src"] = compat  # which programs read of `jax` without importing it
    show_jax_names()
    reach_children()
