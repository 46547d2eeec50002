"""Values parted into arrays, which a program computes, and the rest, which is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyjx.tree_util import tree_flatten, tree_unflatten


class Parted:
    """A pytree without its arrays.

    Args:
      tree: the value.
      is_array: which of its leaves are arrays.
      arrays: a list that these are appended to, each once.
    """

    __slots__ = ("_rest", "_tree", "places")

    def __init__(self, tree: Any, is_array: Callable[[Any], bool], arrays: list[Any]) -> None:
        known = {id(x): i for i, x in enumerate(arrays)}
        leaves, self._tree = tree_flatten(tree)
        self.places: list[int | None] = []  # of each leaf among the arrays
        for x in leaves:
            if not is_array(x):
                self.places.append(None)
                continue
            if id(x) not in known:
                known[id(x)] = len(arrays)
                arrays.append(x)
            self.places.append(known[id(x)])
        self._rest = [x if at is None else None for x, at in zip(leaves, self.places, strict=True)]

    def _key(self) -> Any:
        return self._tree, self.places, self._rest

    def __eq__(self, other: object) -> bool:
        return type(other) is Parted and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._tree)

    def joined(self, arrays: Sequence[Any]) -> Any:
        """The value with these arrays."""
        return tree_unflatten(self._tree, [x if at is None else arrays[at] for x, at in zip(
            self._rest, self.places, strict=True)])
