"""Functions with batching rules that the user gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyjx import lax, tree_util
from pyjx.transforms.custom_vmap import custom_vmap as custom_vmap


def sequential_vmap(f: Callable[..., Any]) -> custom_vmap:
    """A function whose `vmap` is a loop over the examples.

    >>> import numpy as np, pyjx as jax
    >>> from pyjx.custom_batching import sequential_vmap
    >>> jax.vmap(sequential_vmap(lambda x: x + 1))(np.arange(3)).tolist()
    [1, 2, 3]
    """
    function = custom_vmap(f)

    @function.def_vmap
    def rule(axis_size: int, in_batched: Any, *args: Any) -> Any:
        leaves, treedef = tree_util.tree_flatten(args)
        batched = tree_util.tree_leaves(in_batched)

        def one(i: int) -> Any:
            return function(*treedef.unflatten([
                lax.index_in_dim(x, i, keepdims=False) if b else x
                for x, b in zip(leaves, batched, strict=True)
            ]))

        outs = [one(i) for i in range(axis_size)]
        stacked = tree_util.tree_map(lambda *xs: lax.stack(xs), *outs)
        return stacked, tree_util.tree_map(lambda _: True, stacked)

    return function
