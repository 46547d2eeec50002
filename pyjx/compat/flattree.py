"""Leaves of pytrees beside their structure, by which JAX says what is what among flat values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyjx.tree_util import tree_flatten, tree_structure

__all__ = ["FlatTree", "flatten", "nones", "pack"]


class FlatTree:
    """The leaves of a pytree, and its structure.

    >>> pair = pack((nones(2), nones(1)))
    >>> [group.vals for group in pair.update("abc").unpack()]
    [('a', 'b'), ('c',)]
    """

    __slots__ = ("tree", "vals")

    def __init__(self, vals: Sequence[Any], tree: Any) -> None:
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
