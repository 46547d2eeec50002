"""The operations: thin public functions over the primitives, one file a family.

Names load their family when they are first used.
"""

from __future__ import annotations

import importlib
from typing import Any

# Public names by family.
_FAMILIES: dict[str, str] = {
    "pyjx.transforms.structural": "broadcast_in_dim broadcast_in_dim_p reduce_sum_p transpose_p",
}

_MODULE_OF = {name: module for module, names in _FAMILIES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(module), name)
    return value


def __dir__() -> list[str]:
    return sorted(_MODULE_OF)
