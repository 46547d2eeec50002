"""Where two pytrees, or the types of their leaves, differ: sentences for errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pyjx.core.avals import ShapedArray
from pyjx.tree_util import flatten_one_level_with_keys, tree_flatten_with_path, tree_unflatten

Path = tuple[Any, ...]
Place = Callable[[Path], str]  # how a component with this path is called

_leaf = object()  # in the place of a leaf


def tree_differences(ours: Place, theirs: Place, our_tree: Any, their_tree: Any) -> list[str]:
    """A sentence for each place where two trees differ."""
    a, b = [tree_unflatten(t, [_leaf] * t.num_leaves) for t in (our_tree, their_tree)]
    return list(_differences(ours, theirs, (), a, b))


def _differences(ours: Place, theirs: Place, path: Path, a: Any, b: Any) -> Iterator[str]:
    def differ(what: tuple[str, str], why: str) -> str:
        return f"{ours(path)} is a {what[0]} but {theirs(path)} is a {what[1]}, so {why}"

    if type(a) is not type(b):
        yield differ((_kind(a), _kind(b)), "their Python types differ")
        return
    if a is _leaf:
        return
    (x, own), (y, other) = _node(a), _node(b)
    if len(x) != len(y):
        if type(a) in (tuple, list):
            yield differ((f"{type(a).__name__} of length {len(x)}",
                          f"{type(b).__name__} of length {len(y)}"), "the lengths do not match")
            return
        keys = ""
        if isinstance(a, dict):
            keys = f", with the symmetric difference of key sets: {set(a) ^ set(b)}"
        yield differ((_with_children(a, len(x)), _with_children(b, len(y))),
                     f"the numbers of children do not match{keys}")
    elif x.keys() != y.keys() or own != other:
        yield differ((f"{type(a)} with pytree metadata {own}",
                      f"{type(b)} with pytree metadata {other}"),
                     "the pytree node metadata does not match")
    else:
        for key in x:
            yield from _differences(ours, theirs, (*path, key), x[key], y[key])


def _node(x: Any) -> tuple[dict[Any, Any], Any]:
    """The children by their keys, and what else the node is made of."""
    children, metadata = flatten_one_level_with_keys(x)
    found = dict(children)
    if isinstance(x, dict):
        return found, tuple(x)
    return found, list(found) if metadata is None else metadata


def _kind(x: Any) -> str:
    return "pytree leaf" if x is _leaf else f"{type(x)}"


def _with_children(x: Any, n: int) -> str:
    return f"{type(x)} with {n} child{'ren' if n != 1 else ''}"


def type_differences(ours: Place, theirs: Place, tree: Any, our_avals: Sequence[ShapedArray],
                     their_avals: Sequence[ShapedArray]) -> list[str]:
    """A sentence for each leaf of two equal trees whose types differ."""
    paths = tree_flatten_with_path(tree_unflatten(tree, list(range(tree.num_leaves))))[0]
    sentences = []
    for (path, _), a, b in zip(paths, our_avals, their_avals, strict=True):
        if not a.same_type(b):
            kinds = [kind for kind, x, y in (
                ("dtypes", a.dtype, b.dtype), ("shapes", a.shape, b.shape),
                ("shardings", a.explicit_sharding, b.explicit_sharding)) if x != y]
            sentences.append(
                f"{ours(path)} has type {a.str_short()} but {theirs(path)} has type "
                f"{b.str_short()}, so the {' and the '.join(kinds)} do not match")
    return sentences


def in_full(sentences: Sequence[str]) -> str:
    """One sentence, or a list of several."""
    if len(sentences) == 1:
        return f"{sentences[0][0].upper()}{sentences[0][1:]}."
    return "\n".join([f"  * {s};" for s in sentences])[:-1] + "."
