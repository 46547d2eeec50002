"""Arguments that are pytree prefixes of others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyjx import tree_util


def is_none(x: Any) -> bool:
    """Whether None is a leaf of prefixes, where it says something."""
    return x is None


def broadcast_argument(name: str, prefix: Any, tree: Any,
                       is_leaf: Callable[[Any], bool] | None = is_none) -> list[Any]:
    """What an argument called `name`, a pytree prefix of `tree`, says of each of its leaves.

    Raises:
      ValueError: it is no prefix; the message says where and why.

    >>> broadcast_argument("axes", (0, None), (1, [2, 3]))
    [0, None, None]
    """
    values, treedef = tree_util.tree_flatten(prefix, is_leaf)
    try:
        subtrees = treedef.flatten_up_to(tree)
    except ValueError:
        errors = tree_util.prefix_errors(prefix, tree, is_leaf)
        detail = f"\n{errors[0](name)}" if errors else ""
        raise ValueError(f"{name} specification must be a tree prefix of the corresponding value."
                         f"{detail}") from None
    return [value for value, subtree in zip(values, subtrees, strict=True)
            for _ in range(tree_util.tree_structure(subtree).num_leaves)]
