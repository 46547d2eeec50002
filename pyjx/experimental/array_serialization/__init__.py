"""Arrays in files, by TensorStore: a package that has to be installed beside this one."""

from __future__ import annotations

from pyjx.lazy import attach

FAMILIES: dict[str, str] = {}

SUBMODULES = "pytree_serialization pytree_serialization_utils serialization tensorstore_impl"

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES, SUBMODULES)
