"""Pytrees as libraries take them apart: their registry, and leaves beside their structure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from pyjx.engine.types import TreeDef
from pyjx.jaxlib_api import pytree
from pyjx.jaxlib_pytrees import treedef_of
from pyjx.tree_util import flatten_one_level, is_tree_node, tree_flatten, tree_structure

default_registry = pytree.default_registry()
none_leaf_registry = default_registry


class _RegistryEntry(NamedTuple):
    """How an object of one type is taken apart into children and what else it holds, and made."""

    to_iter: Callable[[Any], tuple[Iterable[Any], Any]]
    from_iter: Callable[[Any, Iterable[Any]], Any]


class Nodes:
    """The types that are nodes of trees."""

    def __contains__(self, kind: type) -> bool:
        return is_tree_node(kind)

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


class FlatTree:
    """The leaves of a pytree, and its structure.

    >>> pair = pack((nones(2), nones(1)))
    >>> [group.vals for group in pair.update("abc").unpack()]
    [('a', 'b'), ('c',)]
    """

    __slots__ = ("tree", "vals")

    def __init__(self, vals: Sequence[Any], tree: TreeDef) -> None:
        self.vals = tuple(vals)
        self.tree = tree
        if len(self.vals) != tree.num_leaves:
            raise ValueError(f"FlatTree: {len(self.vals)} leaves for a tree of {tree.num_leaves}.")

    def update(self, new_vals: Sequence[Any]) -> FlatTree:
        """The same tree with other leaves."""
        return FlatTree(tuple(new_vals), self.tree)

    def unflatten(self) -> Any:
        """The pytree itself."""
        return self.tree.unflatten(self.vals)

    def unpack(self) -> tuple[FlatTree, ...]:
        """The trees of the children of the root."""
        rest = iter(self.vals)
        return tuple([FlatTree([next(rest) for _ in range(child.num_leaves)], child)
                      for child in self.tree.children()])

    def __len__(self) -> int:
        return len(self.vals)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.vals)

    def __repr__(self) -> str:
        return repr(self.unflatten())


def flatten(tree: Any) -> FlatTree:
    """A pytree as its leaves and its structure."""
    return FlatTree(*tree_flatten(tree))


def nones(n: int) -> FlatTree:
    """A tuple of `n` leaves that tell nothing."""
    return FlatTree((None,) * n, tree_structure((0,) * n))


def pack(trees: Sequence[FlatTree]) -> FlatTree:
    """The tuple of some trees."""
    vals = [x for t in trees for x in t.vals]
    return FlatTree(vals, tree_structure(tuple([t.tree.unflatten((0,) * len(t)) for t in trees])))
