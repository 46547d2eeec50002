"""Where the structures of two pytrees differ, and in what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyjx.tree_util import all_leaves, flatten_one_level_with_keys, tree_unflatten

Path = tuple[Any, ...]
Difference = tuple[Path, str, str, str]  # where, what the one is, what the other is, and why

_leaf = object()  # in the place of a leaf of a structure


def structure_differences(one: Any, other: Any) -> Iterator[Difference]:
    """Each place where two structures differ; of their leaves no types are known.

    >>> from pyjx.tree_util import tree_structure
    >>> [(path, *rest)] = structure_differences(tree_structure(1), tree_structure([1]))
    >>> rest
    ['pytree leaf', "<class 'list'>", 'their Python types differ']
    """
    return _differences((), *[tree_unflatten(t, [_leaf] * t.num_leaves) for t in (one, other)])


def _differences(path: Path, one: Any, other: Any) -> Iterator[Difference]:
    if all_leaves([one, other]):
        return
    kind = type(one)
    if kind is not type(other):
        yield path, _kind(one), _kind(other), "their Python types differ"
        return
    (items, data), (others, other_data) = [
        (list(pairs), data) for pairs, data in map(flatten_one_level_with_keys, (one, other))]
    if len(items) != len(others):
        if kind in (tuple, list):
            sizes = [f"{kind.__name__} of length {len(pairs)}" for pairs in (items, others)]
            yield path, *sizes, "the lengths do not match"  # type: ignore[misc]
        else:
            sizes = [f"{kind} with {len(pairs)} child{'' if len(pairs) == 1 else 'ren'}"
                     for pairs in (items, others)]
            unshared = _unshared([key for key, _ in items], [key for key, _ in others])
            yield (path, *sizes,  # type: ignore[misc]
                   f"the numbers of children do not match{unshared}")
    elif data != other_data:
        yield (path, f"{kind} with pytree metadata {data}",
               f"{kind} with pytree metadata {other_data}",
               "the pytree node metadata does not match")
    else:
        for (key, child), (_, other_child) in zip(items, others, strict=True):
            yield from _differences((*path, key), child, other_child)


def _kind(x: Any) -> str:
    return "pytree leaf" if x is _leaf else f"{type(x)}"


def _unshared(keys: Sequence[Any], others: Sequence[Any]) -> str:
    """The keys that one of two nodes has, where they are keys and no names of attributes."""
    unshared = [key for key in keys if key not in others] + [key for key in others
                                                             if key not in keys]
    if not all([hasattr(key, "key") for key in unshared]):
        return ""
    shown = " ".join([repr(key.key) for key in unshared])
    return f", with the symmetric difference of key sets: {{{shown}}}" if shown else ""
