"""Arrays in files, by TensorStore: a package that has to be installed beside this one."""

from __future__ import annotations

from pyjx.lazy import attach, views

MODULES: dict[str, tuple[str, dict[str, str]]] = {
    "pytree_serialization_utils": ("Structures of pytrees as JSON's values.", {
        "pyjx.experimental.array_serialization.pytree_serialization":
            "deserialize_pytreedef serialize_pytreedef",
        "pyjx.export.trees": "register_pytree_node_serialization",
    }),
}

FAMILIES: dict[str, str] = {}

SUBMODULES = f"{views(__name__, MODULES)} pytree_serialization serialization tensorstore_impl"

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES, SUBMODULES)
