"""Writes the stubs of the packages whose names load when they are used (`pyjx.lazy`).

    python -m pyjx.cli.stubs
"""

from __future__ import annotations

import importlib
import os

PACKAGES = ("pyjx", "pyjx.core", "pyjx.lax", "pyjx.nn", "pyjx.numpy", "pyjx.random")


def stub(package: str) -> str:
    """The text of the package's `__init__.pyi`."""
    module = importlib.import_module(package)
    sources = {}
    for source, names in module.FAMILIES.items():
        for entry in names.split():
            public, _, name = entry.partition("=")
            sources[public] = source, name or public
    lines = [f"# Written by `python -m pyjx.cli.stubs` from the table of {package}.", ""]
    for public in module.__all__:  # submodules come first
        source, name = sources.get(public, (package, public))
        lines.append(f"from {source} import {name} as {public}")
    if package == "pyjx":
        lines += ["", "__version__: str", "__version_info__: tuple[int, int, int]"]
    # A name that differs from that in its module is exported for being listed.
    lines += ["", "__all__ = [", *[f'    "{public}",' for public in module.__all__], "]"]
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
