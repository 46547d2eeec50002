"""`jax._src.tree_util`: pytrees."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import pyjx.tree_util
from pyjx.jaxlib_api import pytree
from pyjx.jaxlib_pytrees import treedef_of
from pyjx.tree_util import flatten_one_level, tree_structure

__all__ = ["default_registry", "none_leaf_registry"]

default_registry = pytree.default_registry()
none_leaf_registry = default_registry


class _RegistryEntry(NamedTuple):
    """How an object of one type is taken apart into children and what else it holds, and made."""

    to_iter: Callable[[Any], tuple[Iterable[Any], Any]]
    from_iter: Callable[[Any, Iterable[Any]], Any]


class Nodes:
    """The types that are nodes of trees."""

    def __contains__(self, kind: type) -> bool:
        return pyjx.tree_util.is_tree_node(kind)

    def __getitem__(self, kind: type) -> Any:
        entry = self.get(kind)
        if entry is None:
            raise KeyError(kind)
        return entry

    def get(self, kind: type, default: object = None) -> Any:
        if kind not in self:
            return default

        def from_iter(rest: Any, children: Iterable[Any]) -> Any:
            leaves = [*children]
            structures = [tree_structure(0)] * len(leaves)
            return treedef_of(default_registry, (kind, rest), structures).unflatten(leaves)

        return _RegistryEntry(flatten_one_level, from_iter)


_registry = Nodes()


def __getattr__(name: str) -> Any:
    return getattr(pyjx.tree_util, name)
