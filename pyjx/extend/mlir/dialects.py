"""The dialects of MLIR that jaxlib has bindings for."""

from __future__ import annotations

from typing import Any

from pyjx import jaxlib_api
from pyjx.lazy import directory

__all__ = [name for name in (
    "arith", "builtin", "chlo", "func", "math", "memref", "mpmd", "scf", "sdy", "sparse_tensor",
    "stablehlo", "vector") if jaxlib_api.has_submodule(f"mlir.dialects.{name}")]
__dir__ = directory(__name__, __all__)


def __getattr__(name: str) -> Any:
    if name in __all__:
        return jaxlib_api.submodule(f"mlir.dialects.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
