"""`python -m pyjx install-alias|uninstall-alias`: `import jax` gives pyjx in a whole environment.

Two files go to the folder of installed packages: a `.pth` file, which Python reads as it starts,
and a module with a finder that loads `pyjx.as_jax` when somebody asks for jax. They do nothing
unless the environment variable PYJX_AS_JAX is set. Editors and type checkers run no finder: for
them a folder `jax-stubs` says that each public module of jax is pyjx's. An installed jax is not
touched.
"""

from __future__ import annotations

import importlib
import pkgutil
import shutil
import sysconfig
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from pyjx import lazy
from pyjx.not_yet import stand_ins

NAMES = ("pyjx_as_jax.pth", "_pyjx_as_jax.py")
STUBS = "jax-stubs"
VERSIONS = ("__version__", "__version_info__")  # which `import *` leaves out

_FIRST = "# Written by `python -m pyjx install-alias`.\n"

_PTH = "import _pyjx_as_jax\n"
_FINDER = '''"""Written by `python -m pyjx install-alias`: pyjx as jax where PYJX_AS_JAX is set."""

import os
import sys


class _Finder:
    @classmethod
    def _withdraw(cls):
        if cls in sys.meta_path:
            sys.meta_path.remove(cls)

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name == "jax" or name.startswith("jax."):
            cls._withdraw()
            from pyjx.jax_imports import first_spec
            return first_spec(name)

    @classmethod
    def find_distributions(cls, context=None):
        if getattr(context, "name", None) != "jax":
            return ()
        cls._withdraw()
        import pyjx.as_jax
        from pyjx.jax_imports import JaxFinder
        return JaxFinder.find_distributions(context)


if os.environ.get("PYJX_AS_JAX", "") not in ("", "0"):
    sys.meta_path.insert(0, _Finder)
'''


def folder() -> Path:
    """Where this Python has its installed packages."""
    return Path(sysconfig.get_path("purelib"))


def public_modules(name: str = "pyjx") -> Iterator[str]:
    """The names of the modules that users may import, from `name` on."""
    yield name
    module = importlib.import_module(name)
    files = pkgutil.iter_modules(getattr(module, "__path__", ()), f"{name}.")
    known = {*[found.name for found in files], *lazy.tables, *chain(*lazy.filled.values())}
    for below in sorted({f"{name}.{x}" for x in getattr(module, "__all__", ())} & known):
        yield from public_modules(below)


def write_stubs(place: Path) -> None:
    """A stub package: each module of jax has what the same one of pyjx has, and those that are
    not there yet have any name."""
    texts = {name: f"from {name} import *\n" for name in public_modules()}
    texts["pyjx"] += "".join([f"from pyjx import {x} as {x}\n" for x in VERSIONS])
    texts.update(dict.fromkeys(
        stand_ins.names(), "from typing import Any\n\ndef __getattr__(name: str) -> Any: ...\n"))
    for name, text in texts.items():
        stub = place.joinpath(STUBS, *name.split(".")[1:], "__init__.pyi")
        stub.parent.mkdir(parents=True, exist_ok=True)
        stub.write_text(f"{_FIRST}{text}", encoding="utf-8")


def stubs_of(place: Path) -> Path | None:
    """The folder of stubs there, if it was written here."""
    stub = place / STUBS / "__init__.pyi"
    written = stub.exists() and stub.read_text(encoding="utf-8").startswith(_FIRST)
    return place / STUBS if written else None


def install(arguments: Sequence[str]) -> int:
    """Write the files and say so."""
    place = folder()
    written = list(NAMES)
    try:
        for name, text in zip(NAMES, (_PTH, _FINDER), strict=True):
            (place / name).write_text(text, encoding="utf-8")
        if stubs_of(place) or not (place / STUBS).exists():
            write_stubs(place)
            written.append(STUBS)
    except OSError as error:
        print(f"install-alias: cannot write to {place}: {error.strerror}")
        return 1
    print(f"wrote {', '.join(written)} to {place}\n"
          "`import jax` gives pyjx in every process of this environment where PYJX_AS_JAX=1 is "
          "set.\nAn installed jax stays as it is. `python -m pyjx uninstall-alias` undoes this.")
    return 0


def uninstall(arguments: Sequence[str]) -> int:
    """Remove the files and say so."""
    place = folder()
    found = [place / name for name in NAMES if (place / name).exists()]
    for path in found:
        path.unlink()
    stubs = stubs_of(place)
    if stubs:
        shutil.rmtree(stubs)
        found.append(stubs)
    print(f"removed {', '.join([path.name for path in found])} from {place}" if found
          else f"there is no alias in {place}")
    return 0
