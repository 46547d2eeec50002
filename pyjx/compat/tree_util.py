"""`jax._src.tree_util`: pytrees."""

from __future__ import annotations

from typing import Any

import pyjx.tree_util
from pyjx.jaxlib_api import pytree

default_registry = pytree.default_registry()
none_leaf_registry = default_registry


class Nodes:
    """The types that are nodes of trees."""

    def __contains__(self, kind: type) -> bool:
        return pyjx.tree_util.is_tree_node(kind)


_registry = Nodes()


def __getattr__(name: str) -> Any:
    return getattr(pyjx.tree_util, name)
