"""Arguments that are pytree prefixes of others, and where two pytrees differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pyjx import tree_util
from pyjx.core.value_texts import shortened_text
from pyjx.tree_util import all_leaves, flatten_one_level_with_keys, keystr, tree_unflatten


def is_none(x: Any) -> bool:
    """Whether None is a leaf of prefixes, where it says something."""
    return x is None


class AnArray:
    """Stands for an array in messages about structures, under its name."""

    __module__, __qualname__ = "jax", "Array"


def broadcast_argument(name: str, prefix: Any, tree: Any,
                       is_leaf: Callable[[Any], bool] | None = is_none, hint: str = ""
                       ) -> list[Any]:
    """What an argument called `name`, a pytree prefix of `tree`, says of each of its leaves.

    Raises:
      ValueError: it is no prefix; the message says where and why, and `hint`.

    >>> broadcast_argument("axes", (0, None), (1, [2, 3]))
    [0, None, None]
    """
    try:
        return tree_util.broadcast_prefix(prefix, tree, is_leaf)
    except ValueError:
        found = [f"\n  {e(name)}" for e in tree_util.prefix_errors(prefix, tree, is_leaf)]
        raise ValueError(
            f"{name} specification must be a tree prefix of the corresponding value; {hint}\n"
            f"  Mismatch details ({len(found)} found):{''.join(found)}") from None


def of_each_with(f: Callable[[Any, Any], Any], of: str, tree: Any, name: str, prefix: Any) -> Any:
    """The tree of what `f` gives of each leaf of a tree, which the user calls `of`, and what the
    argument called `name`, a pytree prefix of it, says of that leaf."""
    leaves, structure = tree_util.tree_flatten(tree)
    given = broadcast_argument(name, prefix, tree)
    return tree_unflatten(structure, tree_util.of_each_leaf(f, of, tree, leaves, given))


# -- where two pytrees differ ----------------------------------------------------------------------

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


def two_structures(words: str, first: Any, second: Any) -> str:
    """Words in which {} stands for each of two structures that differ, and where they do if they
    are too large to be compared at sight."""
    text = words.format(*[shortened_text(str(tree), _SHOWN) for tree in (first, second)])
    if max(first.num_leaves, second.num_leaves) <= _AT_SIGHT:
        return text
    found = [(f"At {keystr(path)} the first" if path else "The first") + f" is a {kind} and the "
             f"second a {other}, so {why}"
             for path, kind, other, why in structure_differences(first, second)]
    return f"{text}. {found[0]}" if found else text


_SHOWN = 100  # characters of a structure, as lines of messages have 600


_AT_SIGHT = 8  # leaves


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
        said = "keys" if kind is dict else "pytree metadata"
        yield (path, f"{kind} with {said} {data}", f"{kind} with {said} {other_data}",
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
    shown = " ".join([repr(key.key) for key in unshared[:16]] + ["..."] * (len(unshared) > 16))
    return f", with the symmetric difference of key sets: {{{shown}}}" if shown else ""
