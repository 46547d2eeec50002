"""`jax._src.export._export`: functions as StableHLO for other processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyjx.export
from pyjx.export import Exported
from pyjx.export.exported import call_exported_p

__all__ = ["call", "call_exported", "call_exported_p"]


def call(exported: Exported) -> Callable[..., Any]:
    """The exported function, to be called.

    >>> import pyjx as jax
    >>> call(jax.export.export(jax.jit(lambda x: x + 1))(1.0))(2.0).item()
    3.0
    """
    return exported.call


call_exported = call


def __getattr__(name: str) -> Any:
    return getattr(pyjx.export, name)
