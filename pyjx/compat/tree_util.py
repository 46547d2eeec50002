"""`jax._src.tree_util`: pytrees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyjx.tree_util
from pyjx.jaxlib_api import pytree
from pyjx.tree_util import (
    all_leaves,
    flatten_one_level_with_keys,
    tree_leaves_with_path,
    tree_unflatten,
)

__all__ = [
    "default_registry", "equality_errors", "equality_errors_pytreedef", "generate_key_paths",
    "none_leaf_registry", "tree_leaves_checked",
]

default_registry = pytree.default_registry()
none_leaf_registry = default_registry


class Nodes:
    """The types that are nodes of trees."""

    def __contains__(self, kind: type) -> bool:
        return pyjx.tree_util.is_tree_node(kind)


_registry = Nodes()

generate_key_paths = tree_leaves_with_path


def tree_leaves_checked(treedef_expected: Any, tree: Any) -> list[Any]:
    """The leaves of a tree, which is to have the structure that is given.

    Raises:
      ValueError: it has another one.
    """
    leaves, structure = pyjx.tree_util.tree_flatten(tree)
    if structure != treedef_expected:
        raise ValueError(f"The tree is to have the structure {treedef_expected}, and has "
                         f"{structure}.")
    return leaves  # type: ignore[no-any-return]


Difference = tuple[tuple[Any, ...], str, str, str]  # where, the one, the other, what differs


def equality_errors(tree1: Any, tree2: Any, is_leaf: Any = None) -> Iterator[Difference]:
    """In what the structures of two trees differ: key path, both sides, and an explanation.

    >>> for path, one, other, why in equality_errors({"a": [1]}, {"a": [1, 2]}):
    ...     print(pyjx.tree_util.keystr(path), one, other, why, sep=", ")
    ['a'], list of length 1, list of length 2, the lengths do not match
    """
    return _differences((), tree1, tree2, is_leaf)


def equality_errors_pytreedef(tree1: Any, tree2: Any) -> Iterator[Difference]:
    """As `equality_errors`, of structures."""
    leaf = object()
    one, other = [tree_unflatten(tree, [leaf] * tree.num_leaves) for tree in (tree1, tree2)]
    return _differences((), one, other, None)


def _differences(path: tuple[Any, ...], one: Any, other: Any, is_leaf: Any) -> Iterator[Difference]:
    if all_leaves([one, other], is_leaf):
        return
    kind, other_kind = type(one), type(other)
    if kind is not other_kind:
        yield path, str(kind), str(other_kind), "their Python types differ"
        return
    (items, meta), (other_items, other_meta) = [
        (list(children), data) for children, data in map(flatten_one_level_with_keys, (one, other))]
    keys, other_keys = [{key for key, _ in pairs} for pairs in (items, other_items)]
    if len(items) != len(other_items):
        if kind in (list, tuple):
            named = [f"{kind.__name__} of length {len(tree)}" for tree in (one, other)]
            yield path, named[0], named[1], "the lengths do not match"
            return
        counted = [f"{kind} with {len(pairs)} child{'' if len(pairs) == 1 else 'ren'}"
                   for pairs in (items, other_items)]
        unshared = {getattr(key, "key", key) for key in keys ^ other_keys}
        yield (path, counted[0], counted[1], "the numbers of children do not match"
               + (f", with the symmetric difference of key sets: {unshared}" if unshared else ""))
    elif meta != other_meta:
        named = [f"{kind} with pytree metadata {data}" for data in (meta, other_meta)]
        yield path, named[0], named[1], "the pytree node metadata does not match"
    else:
        for (key, child), (_, other_child) in zip(items, other_items, strict=True):
            yield from _differences((*path, key), child, other_child, is_leaf)


def __getattr__(name: str) -> Any:
    return getattr(pyjx.tree_util, name)
