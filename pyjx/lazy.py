"""Names and modules that load when they are first used.

Public names stand in tables of their packages (PEP 562). Type checkers do not run `__getattr__`, so
each such package has a stub, `__init__.pyi`, made from the same table: `python -m pyjx.cli.stubs`
writes the stubs anew.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, cast

from pyjx.guards import ASKED, guard, guard_classes
from pyjx.jax_imports import users_name
from pyjx.not_yet import ImportHint, lacking

_dictionary = vars(ModuleType)["__dict__"]

# What hears of each public name of a package as it is used first: the package, the name, the value.
hears_names: list[Callable[[str, str, Any], None]] = []

# What hears that a module has been loaded because it was asked for, and others by it.
hears_modules: list[Callable[[], None]] = []

# The public names of each module: the module that defines each, and its name there.
tables: dict[str, dict[str, tuple[str, str]]] = {}

# The modules that others fill, by these.
filled: dict[str, list[str]] = {}


class ModuleOfTable:
    """Finds and loads the module which a table shows by another name than its own, such as the
    bindings of MLIR."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._spec = module.__spec__

    @staticmethod
    def find_spec(fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        package, _, name = fullname.rpartition(".")
        if name not in tables.get(package, ()):
            return None
        value = getattr(sys.modules[package], name)
        if not isinstance(value, ModuleType):
            return None
        return ModuleSpec(fullname, cast("Any", ModuleOfTable(value)))  # which is all it needs

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # `import` has put the spec of the other name there


sys.meta_path += [ModuleOfTable, ImportHint()]


def is_ready(module: ModuleType | None) -> bool:
    """Whether it has been loaded, to its end."""
    return module is not None and not getattr(
        getattr(module, "__spec__", None), "_initializing", False)


def loaded(name: str) -> ModuleType:
    """The module of that name; it is imported when a name of it is used."""
    was_ready = is_ready(sys.modules.get(name))
    module = importlib.import_module(name)
    if not was_ready:
        for hear in hears_modules:
            hear()
    return module


def told(package: str, name: str, value: Any) -> None:
    """Tells who hears of it that a public name of a package is used first."""
    for hear in hears_names:
        hear(package, name, value)


class _Deferred:
    """What stands for a module: its names are those of the module, which is loaded for them."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # whoever walks over what a file holds wants none of it
            raise AttributeError(name)
        return getattr(loaded(self._name), name)


def deferred(name: str) -> Any:
    """A module that is large, optional or seldom wanted, at the top of the file that uses it. It is
    loaded when something of it is used.

    Raises:
      ImportError: when something of it is used, if there is no such module.

    >>> calendar = deferred("calendar")
    >>> calendar.isleap(2024)
    True
    """
    return _Deferred(name)


def own_dictionary(module: ModuleType) -> dict[str, Any]:
    """The dictionary of a module as it is now: for a `Package`, the names that were used so far."""
    return cast("dict[str, Any]", _dictionary.__get__(module))


class Named(ModuleType):
    """A module that is pickled by its name."""

    def __reduce__(self) -> tuple[Any, ...]:  # libraries that pickle functions know modules alone
        return importlib.import_module, (users_name(self.__name__),)


class Package(Named):
    """A package whose names load when they are used, and all of them when its `__dict__` is asked
    for: libraries that wrap `jax.numpy` walk through that.

    >>> import pyjx.nn
    >>> _ = own_dictionary(pyjx.nn).pop("glu", None)  # as if it had not been used so far
    >>> "glu" in own_dictionary(pyjx.nn), "glu" in vars(pyjx.nn)
    (False, True)
    """

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        for name in self.__all__:
            getattr(self, name)
        return own_dictionary(self)

    def __setattr__(self, name: str, value: Any) -> None:
        """Where a function has the name of a module below, the import of that changes nothing."""
        if isinstance(value, ModuleType) and value.__name__ == f"{self.__name__}.{name}":
            families = own_dictionary(self).get("FAMILIES", {})
            if name in " ".join(families.values()).split():
                return
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:  # the one of modules reads `__dict__`
        return cast("list[str]", own_dictionary(self)["__dir__"]())


def place_of_table(name: str, file: str | None) -> ModuleSpec:
    """What `importlib` says of a module without a file: its place is that of its table."""
    spec = ModuleSpec(name, None, origin=file, is_package=True)
    spec.has_location = True
    return spec


class FilledModule(Package):
    """A module whose names another one, its `home`, makes when the first of them is asked for."""

    def __init__(self, name: str, home: str) -> None:
        super().__init__(name)
        self.__spec__ = place_of_table(name, sys.modules[name.rpartition(".")[0]].__file__)
        self.home = home
        filled.setdefault(home, []).append(name)
        sys.modules[name] = self

    def __getattr__(self, name: str) -> Any:
        # Whoever walks over all modules asks for their files and the like.
        if name == "__all__" or not (name.startswith("__") or "__all__" in own_dictionary(self)):
            loaded(self.home)
            return getattr(self, name)
        raise lacking(self.__name__, name)

    def __dir__(self) -> list[str]:
        own = [name for name in own_dictionary(self) if name.startswith("__")]
        return sorted({*self.__all__, *own})


guard(FilledModule)


def directory(module: str, names: Iterable[str], **later: Callable[[], Any]
              ) -> Callable[[], list[str]]:
    """`__dir__` for a module that is no package: its public names, and not what it imports. Called
    at the end of it, when they are there, but for those that are made `later`, when they are used;
    other names of JAX's are refused from then on.

    >>> directory("pyjx.lazy", ["attach"])()[-1]
    'attach'
    """
    own = own_dictionary(sys.modules[module])
    own.setdefault("__getattr__", refuse(module, **later))
    tables[module] = {name: (module, name) for name in names}
    for name in names:
        guard(own.get(name))
    guard_classes(module, own)

    return lambda: sorted({*names, *[name for name in own if name.startswith("__")]})


def refuse(module: str, **later: Callable[[], Any]) -> Callable[[str], Any]:
    """`__getattr__` for a module that is no package, and lacks names that JAX's has."""
    def missing(name: str) -> Any:
        if name in later:
            value = guard(later[name]())
            told(module, name, value)
            return value
        raise AttributeError(name) if name == ASKED else lacking(module, name)

    guard(missing)
    return missing


def attach(package: str, families: Mapping[str, str], submodules: str = "",
           describe: Callable[[Any, str], None] | None = None, first: str = ""
           ) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` for a package, which becomes a `Package`: that is set
    as the `__class__` of the module.

    Args:
      package: its name.
      families: for each module, the names it defines, separated by spaces. `public=name` exports
        a name under another one.
      submodules: names of modules of the package, separated by spaces.
      describe: what completes the documentation of a function, given it and its name.
      first: a module that loads before any of the names.
    """
    source = {}
    for module, names in families.items():
        for entry in names.split():
            public, _, name = entry.partition("=")
            source[public] = module, name or public
    tables[package] = source  # all of it, as other threads read it
    modules = submodules.split()

    def getattribute(name: str) -> Any:
        if first and first not in sys.modules:
            loaded(first)
        module, original = source.get(name, ("", ""))
        if name in modules:
            value: Any = loaded(f"{package}.{name}")
        elif module:
            value = getattr(loaded(module), original)
            guard(value)
            guard_classes(module, own_dictionary(sys.modules[module]))
            setattr(sys.modules[package], name, value)
        else:
            raise lacking(package, name)
        told(package, name, value)
        if describe is not None and module.startswith("pyjx.") and callable(value) and not (
                isinstance(value, type)):
            describe(value, name)
        return value

    def directory() -> list[str]:
        own = own_dictionary(sys.modules[package])
        return sorted({*source, *modules, *[name for name in own if name.startswith("__")]})

    sys.modules[package].__class__ = Package
    guard(getattribute)

    return getattribute, directory, [*modules, *source]


def views(package: str, modules: Mapping[str, tuple[str, Mapping[str, str]]]) -> str:
    """The public modules of a package that only show names of others: they have no file, unless
    they have been imported.

    Args:
      package: its name.
      modules: for each module, whose name below the package may have dots, its documentation and
        its names, as `attach` takes them.

    Returns:
      The names of those that are directly in the package, for its own table.

    >>> import pyjx.interpreters.ad
    >>> pyjx.interpreters.ad.Zero.__name__
    'Zero'
    """
    for below, (doc, families) in modules.items():
        name = f"{package}.{below}"
        module = sys.modules.get(name)
        if module is None:
            module = sys.modules[name] = ModuleType(name, doc)
            own_dictionary(module).update(
                __path__=[], __spec__=place_of_table(name, sys.modules[package].__file__))
        inner = {m[len(below) + 1:].partition(".")[0]: None
                 for m in modules if m.startswith(f"{below}.")}
        own = " ".join(families.values()).split()  # a function may have the name of a module below
        table = families, " ".join([m for m in inner if m not in own])
        shown = dict(zip(("__getattr__", "__dir__", "__all__"), attach(name, *table), strict=True))
        own_dictionary(module).update(shown, FAMILIES=families, SUBMODULES=table[1])
    return " ".join([name for name in modules if "." not in name])
