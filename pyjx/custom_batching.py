"""Functions with batching rules that the user gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyjx import tree_util
from pyjx.lax.mapping import map as map_sequentially
from pyjx.lazy import directory
from pyjx.transforms.custom_vmap import custom_vmap as custom_vmap

__all__ = ["custom_vmap", "sequential_vmap"]


def sequential_vmap(f: Callable[..., Any]) -> custom_vmap:
    """A function whose `vmap` is a loop over the examples, `lax.map`, in place of one operation on
    all of them.

    Args:
      f: the function; arguments and results are pytrees of arrays.

    Returns:
      A `custom_vmap` function. It may be differentiated, before and after it is mapped.

    Raises:
      NameError: when it is mapped, if `f` has a collective over the axis that is mapped.

    >>> import numpy as np, pyjx as jax
    >>> from pyjx.custom_batching import sequential_vmap
    >>> jax.vmap(sequential_vmap(lambda x: x + 1))(np.arange(3)).tolist()
    [1, 2, 3]
    """
    function = custom_vmap(f)
    function.takes_points = True

    @function.def_vmap
    def rule(axis_size: int, in_batched: Any, *args: Any) -> Any:
        leaves, treedef = tree_util.tree_flatten(args)
        batched = tree_util.tree_leaves(in_batched)
        if not any(batched):
            out = f(*args)
            return out, tree_util.tree_map(lambda _: False, out)

        def one(examples: list[Any]) -> Any:
            given = iter(examples)
            return function(*treedef.unflatten([
                next(given) if b else x for x, b in zip(leaves, batched, strict=True)]))

        outs = map_sequentially(one, [x for x, b in zip(leaves, batched, strict=True) if b])
        return outs, tree_util.tree_map(lambda _: True, outs)

    return function


__dir__ = directory(__name__, __all__)
