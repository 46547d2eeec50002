"""Arguments that are pytree prefixes of others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyjx import tree_util


def is_none(x: Any) -> bool:
    """Whether None is a leaf of prefixes, where it says something."""
    return x is None


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
