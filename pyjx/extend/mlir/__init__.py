"""The bindings of MLIR, and what jaxlib does with modules."""

from __future__ import annotations

import importlib
from typing import Any

from pyjx import jaxlib_api
from pyjx.core.avals import ShapedArray
from pyjx.lazy import directory

_OF_JAXLIB = ("deserialize_portable_artifact", "hlo_to_stablehlo", "refine_polymorphic_shapes",
              "serialize_portable_artifact")

__all__ = [*_OF_JAXLIB, "dialects", "ir", "lower_with_sharding_in_types",
           "passmanager"]
__dir__ = directory(__name__, __all__)


def __getattr__(name: str) -> Any:
    if name in _OF_JAXLIB:
        return getattr(jaxlib_api.submodule("_jax").mlir, name)
    if name in ("ir", "passmanager"):
        return jaxlib_api.submodule(f"mlir.{name}")
    if name == "dialects":
        return importlib.import_module("pyjx.extend.mlir.dialects")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def lower_with_sharding_in_types(ctx: Any, op: Any, aval: ShapedArray) -> Any:
    """The value of an operation, which a lowering rule built, with the sharding that its type
    has: a type without one leaves it as it is. pyjx makes constraints of the shardings of types
    before programs are lowered, so there is nothing to add."""
    return op
