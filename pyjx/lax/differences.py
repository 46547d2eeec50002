"""Where two pytrees, or the types of their leaves, differ: sentences for errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyjx.core.avals import ShapedArray
from pyjx.core.differences import Path, structure_differences
from pyjx.core.open_sums import closed_alike
from pyjx.tree_util import tree_flatten_with_path, tree_unflatten

Place = Callable[[Path], str]  # how a component with this path is called


def tree_differences(ours: Place, theirs: Place, our_tree: Any, their_tree: Any) -> list[str]:
    """A sentence for each place where two structures differ."""
    return [f"{ours(path)} is a {one} but {theirs(path)} is a {other}, so {why}"
            for path, one, other, why in structure_differences(our_tree, their_tree)]


def type_differences(ours: Place, theirs: Place, tree: Any, our_avals: Sequence[ShapedArray],
                     their_avals: Sequence[ShapedArray]) -> list[str]:
    """A sentence for each leaf of two equal trees whose types differ."""
    paths = tree_flatten_with_path(tree_unflatten(tree, list(range(tree.num_leaves))))[0]
    sentences = []
    for (path, _), a, b in zip(paths, our_avals, their_avals, strict=True):
        open_apart = not closed_alike(a, b)
        if not a.same_type(b) or open_apart:
            kinds = [kind for kind, x, y in (
                ("dtypes", a.dtype, b.dtype), ("shapes", a.shape, b.shape),
                ("shardings", a.explicit_sharding, b.explicit_sharding),
                ("manual axis types", open_apart, False)) if x != y]
            sentences.append(
                f"{ours(path)} has type {a.str_short()} but {theirs(path)} has type "
                f"{b.str_short()}, so the {' and the '.join(kinds)} do not match")
    return sentences


def in_full(sentences: Sequence[str]) -> str:
    """One sentence, or a list of several."""
    if len(sentences) == 1:
        return f"{sentences[0][0].upper()}{sentences[0][1:]}."
    return "\n".join([f"  * {s};" for s in sentences])[:-1] + "."
