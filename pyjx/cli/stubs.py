"""Writes the stubs of the packages whose names load when they are used (`pyjx.lazy`).

    python -m pyjx.cli.stubs
"""

from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path

import pyjx
from pyjx.lazy import FilledModule, Package, own_dictionary, tables
from pyjx.not_yet import TABLES, stand_ins

ROOT = Path(pyjx.__file__).parent
_FILES = sorted(ROOT.rglob("__init__.py"))
for _path in [p for p in _FILES if "attach(__name__" in p.read_text(encoding="utf-8")]:
    importlib.import_module(".".join(("pyjx", *_path.parent.relative_to(ROOT).parts)))
# The packages whose names a table says, those that have no file too.
PACKAGES = tuple(sorted([
    name for name, module in sys.modules.items()
    if name.split(".")[0] == "pyjx" and isinstance(module, Package)
    and "FAMILIES" in own_dictionary(module)]))
# The modules that others make; they have no file either.
MADE = tuple(sorted(
    [name for name, module in sys.modules.items() if isinstance(module, FilledModule)]))


def stub(name: str) -> str:
    """The text of the stub of a package or of a module that another one makes."""
    return _functions(name) if name in MADE else _table(name)


def _functions(name: str) -> str:
    """The stub of a module of functions that are compiled: their signatures."""
    module = sys.modules[name]
    lines = [f"# Written by `python -m pyjx.cli.stubs` from {module.home}.", "",
             "from pyjx.core.array_type import Array, ArrayLike",
             "from pyjx.numpy.operands import numpy_function"]
    for public in module.__all__:
        parameters = ", ".join([
            f"{p.name}: ArrayLike" + (" = ..." if p.default is not p.empty else "")
            for p in inspect.signature(getattr(module, public)).parameters.values()])
        lines += ["", "@numpy_function", f"def {public}({parameters}) -> Array: ..."]
    return "\n".join(lines) + "\n"


def _table(package: str) -> str:
    """The stub of a package: where its names are defined."""
    module, sources = sys.modules[package], tables[package]
    lines = [f"# Written by `python -m pyjx.cli.stubs` from the table of {package}.", ""]
    missing = {*TABLES, *stand_ins.names()}
    absent = [public for public in module.__all__ if f"{package}.{public}" in missing]
    refused = [public for public in module.__all__ if sources.get(public, ("",))[0] in missing]
    if absent:
        lines.append("from types import ModuleType as _ModuleType")
    if refused:
        lines.append("from typing import Any as _Any")
    for public in module.__all__:  # submodules come first
        if public in absent or public in refused:
            continue
        source, name = sources.get(public, (package, public))
        lines.append(f"from {source} import {name} as {public}")
    if absent:
        lines += ["", *[f"{public}: _ModuleType" for public in absent],
                  *[f"{public}: _Any" for public in refused]]
    if package == "pyjx":
        lines += ["", "__version__: str", "__version_info__: tuple[int, int, int]"]
    # A name that differs from that in its module is exported for being listed.
    lines += ["", "__all__ = [", *[f'    "{public}",' for public in module.__all__], "]"]
    return "\n".join(lines) + "\n"


def stub_path(name: str) -> Path:
    place = ROOT.joinpath(*name.split(".")[1:])
    holds = any(other.startswith(f"{name}.") for other in PACKAGES)
    return place / "__init__.pyi" if place.is_dir() or holds else place.with_suffix(".pyi")


def write_stubs() -> None:
    for name in (*PACKAGES, *MADE):
        path = stub_path(name)
        path.parent.mkdir(exist_ok=True)
        path.write_text(stub(name), encoding="utf-8")


if __name__ == "__main__":
    write_stubs()
