"""Public names that load their module when they are first used (PEP 562).

Type checkers do not run `__getattr__`, so each such package has a stub, `__init__.pyi`, made from
the same table: `python -m pyjx.lazy` writes the stubs anew.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any


def attach(package: str, families: Mapping[str, str], submodules: str = ""
           ) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for a package.

    Args:
      package: its name.
      families: for each module, the names it defines, separated by spaces. `public=name` exports
        a name under another one.
      submodules: names of modules of the package, separated by spaces.
    """
    source: dict[str, tuple[str, str]] = {}
    for module, names in families.items():
        for entry in names.split():
            public, _, name = entry.partition("=")
            source[public] = module, name or public
    modules = frozenset(submodules.split())

    def getattribute(name: str) -> Any:
        if name in modules:
            return importlib.import_module(f"{package}.{name}")
        try:
            module, original = source[name]
        except KeyError:
            raise AttributeError(f"module {package!r} has no attribute {name!r}") from None
        value = getattr(importlib.import_module(module), original)
        setattr(sys.modules[package], name, value)
        return value

    def directory() -> list[str]:
        return sorted({*source, *modules, *vars(sys.modules[package])})

    return getattribute, directory


PACKAGES = ("pyjx", "pyjx.lax", "pyjx.nn", "pyjx.numpy", "pyjx.random")


def stub(package: str) -> str:
    """The text of the package's `__init__.pyi`."""
    module = importlib.import_module(package)
    lines = [f"# Written by `python -m pyjx.lazy` from the table in {package}/__init__.py.", ""]
    for name in getattr(module, "SUBMODULES", "").split():
        lines.append(f"from {package} import {name} as {name}")
    for source, names in sorted(module.FAMILIES.items()):
        for entry in names.split():
            public, _, name = entry.partition("=")
            lines.append(f"from {source} import {name or public} as {public}")
    if package == "pyjx":
        lines += ["", "__version__: str", "__version_info__: tuple[int, int, int]"]
    return "\n".join(lines) + "\n"


def stub_path(package: str) -> str:
    module = importlib.import_module(package)
    assert module.__file__ is not None
    return os.path.join(os.path.dirname(module.__file__), "__init__.pyi")


def write_stubs() -> None:
    for package in PACKAGES:
        with open(stub_path(package), "w", encoding="utf-8") as file:
            file.write(stub(package))


if __name__ == "__main__":
    write_stubs()
