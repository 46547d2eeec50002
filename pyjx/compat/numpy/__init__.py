"""`jax._src.numpy`: the names of `jax.numpy`; modules below it are in the table of `pyjx.compat`.

A package of its own, because importing a module sets an attribute of the package that it is in:
`einsum` and `fft` are modules here, and functions there.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pyjx.numpy
from pyjx.compat import MODULES


def __getattr__(name: str) -> Any:
    module = MODULES.get(f"numpy.{name}")
    return import_module(module) if module else getattr(pyjx.numpy, name)
