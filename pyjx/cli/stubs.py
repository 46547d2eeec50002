"""Writes the stubs of the packages whose names load when they are used (`pyjx.lazy`).

    python -m pyjx.cli.stubs
"""

from __future__ import annotations

import importlib
from pathlib import Path

import pyjx
from pyjx.not_yet import TABLES

ROOT = Path(pyjx.__file__).parent
# The packages whose `__init__.py` attaches its names.
PACKAGES = tuple(sorted(
    ".".join(("pyjx", *path.parent.relative_to(ROOT).parts)) for path in ROOT.rglob("__init__.py")
    if "attach(__name__" in path.read_text(encoding="utf-8")
))


def stub(package: str) -> str:
    """The text of the package's `__init__.pyi`."""
    module = importlib.import_module(package)
    sources = {}
    for source, names in module.FAMILIES.items():
        for entry in names.split():
            public, _, name = entry.partition("=")
            sources[public] = source, name or public
    lines = [f"# Written by `python -m pyjx.cli.stubs` from the table of {package}.", ""]
    absent = [public for public in module.__all__ if f"{package}.{public}" in TABLES]
    if absent:
        lines.append("from types import ModuleType as _ModuleType")
    for public in module.__all__:  # submodules come first
        if public in absent:
            continue
        source, name = sources.get(public, (package, public))
        lines.append(f"from {source} import {name} as {public}")
    if absent:
        lines += ["", *[f"{public}: _ModuleType" for public in absent]]
    if package == "pyjx":
        lines += ["", "__version__: str", "__version_info__: tuple[int, int, int]"]
    # A name that differs from that in its module is exported for being listed.
    lines += ["", "__all__ = [", *[f'    "{public}",' for public in module.__all__], "]"]
    return "\n".join(lines) + "\n"


def stub_path(package: str) -> Path:
    return ROOT.joinpath(*package.split(".")[1:], "__init__.pyi")


def write_stubs() -> None:
    for package in PACKAGES:
        stub_path(package).write_text(stub(package), encoding="utf-8")


if __name__ == "__main__":
    write_stubs()
