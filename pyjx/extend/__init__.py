"""What libraries build on: primitives, jaxprs, interpreters, backends."""

from __future__ import annotations

from pyjx.lazy import attach

FAMILIES: dict[str, str] = {}

SUBMODULES = (
    "backend core ifrt_programs linear_util lowering mlir pallas random sharding source_info_util "
    "xla"
)

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES, SUBMODULES)
