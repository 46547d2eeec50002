"""`python -m pyjx install-alias|uninstall-alias`: `import jax` gives pyjx in a whole environment.

Two files go to the folder of installed packages: a `.pth` file, which Python reads as it starts,
and a module with a finder that loads `pyjx.as_jax` when somebody asks for jax. They do nothing
unless the environment variable PYJX_AS_JAX is set. An installed jax is not touched.
"""

from __future__ import annotations

import sysconfig
from collections.abc import Sequence
from pathlib import Path

NAMES = ("pyjx_as_jax.pth", "_pyjx_as_jax.py")

_PTH = "import _pyjx_as_jax\n"
_FINDER = '''"""Written by `python -m pyjx install-alias`: pyjx as jax where PYJX_AS_JAX is set."""

import os
import sys


class _Finder:
    @classmethod
    def _alias(cls):
        if cls in sys.meta_path:
            sys.meta_path.remove(cls)
        import pyjx.as_jax
        from pyjx.jax_imports import JaxFinder
        return JaxFinder

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name == "jax" or name.startswith("jax."):
            return cls._alias().find_spec(name, path, target)

    @classmethod
    def find_distributions(cls, context=None):
        asked = getattr(context, "name", None)
        return cls._alias().find_distributions(context) if asked == "jax" else ()


if os.environ.get("PYJX_AS_JAX", "") not in ("", "0"):
    sys.meta_path.insert(0, _Finder)
'''


def folder() -> Path:
    """Where this Python has its installed packages."""
    return Path(sysconfig.get_path("purelib"))


def install(arguments: Sequence[str]) -> int:
    """Write the files and say so."""
    place = folder()
    try:
        for name, text in zip(NAMES, (_PTH, _FINDER), strict=True):
            (place / name).write_text(text, encoding="utf-8")
    except OSError as error:
        print(f"install-alias: cannot write to {place}: {error.strerror}")
        return 1
    print(f"wrote {' and '.join(NAMES)} to {place}\n"
          "`import jax` gives pyjx in every process of this environment where PYJX_AS_JAX=1 is "
          "set.\nAn installed jax stays as it is. `python -m pyjx uninstall-alias` undoes this.")
    return 0


def uninstall(arguments: Sequence[str]) -> int:
    """Remove the files and say so."""
    place = folder()
    found = [place / name for name in NAMES if (place / name).exists()]
    for path in found:
        path.unlink()
    print(f"removed {' and '.join([path.name for path in found])} from {place}" if found
          else f"there is no alias in {place}")
    return 0
