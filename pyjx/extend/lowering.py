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
        return jaxlib_api.mlir_context_class()
    if name == "upstream_dialects":
        return jaxlib_api.mlir_dialects()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
