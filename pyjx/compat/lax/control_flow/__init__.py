"""`jax._src.lax.control_flow`: the names of `jax.lax`, as in the package above."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pyjx.lax
from pyjx.compat import MODULES


def __getattr__(name: str) -> Any:
    module = MODULES.get(f"lax.control_flow.{name}")
    return import_module(module) if module else getattr(pyjx.lax, name)
