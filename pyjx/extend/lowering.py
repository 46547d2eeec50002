"""What libraries that write lowering rules build on."""

from __future__ import annotations

from typing import Any

from pyjx import jaxlib_api
from pyjx.compat.mlir_contexts import LoweringRuleContext
from pyjx.lazy import directory

__all__ = ["JaxIrContext", "LoweringRuleContext", "upstream_dialects"]  # noqa: F822
__dir__ = directory(__name__, __all__)


def __getattr__(name: str) -> Any:
    if name == "JaxIrContext":
        return jaxlib_api.mlir_bindings().ir.Context
    if name == "upstream_dialects":
        registry = jaxlib_api.mlir_bindings().ir.DialectRegistry()
        jaxlib_api.submodule("mlir._mlir_libs._jax_mlir_ext").register_dialects(registry)
        return registry
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
