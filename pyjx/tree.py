"""Operations on pytrees under short names; `jax.tree_util` has them under long ones, and more."""

from __future__ import annotations

from typing import Any

from pyjx.lazy import deferred, directory
from pyjx.tree_util import tree_all as all
from pyjx.tree_util import tree_broadcast as broadcast
from pyjx.tree_util import tree_flatten as flatten
from pyjx.tree_util import tree_flatten_with_path as flatten_with_path
from pyjx.tree_util import tree_leaves as leaves
from pyjx.tree_util import tree_leaves_with_path as leaves_with_path
from pyjx.tree_util import tree_map as map
from pyjx.tree_util import tree_map_with_path as map_with_path
from pyjx.tree_util import tree_reduce as reduce
from pyjx.tree_util import tree_reduce_associative as reduce_associative
from pyjx.tree_util import tree_structure as structure
from pyjx.tree_util import tree_transpose as transpose
from pyjx.tree_util import tree_unflatten as unflatten

dataclasses = deferred("dataclasses")  # loads inspect


def static(**kwargs: Any) -> Any:
    """A `dataclasses.field` that `register_dataclass` takes as auxiliary data, not as a child.

    Args:
      **kwargs: those of `dataclasses.field`; `static=True` is added to the metadata, unless the
        given metadata says something about it.

    >>> import dataclasses, pyjx as jax
    >>> @jax.tree_util.register_dataclass
    ... @dataclasses.dataclass
    ... class Scale:
    ...     factor: float
    ...     mode: str = jax.tree.static(default="linear")
    ...
    >>> jax.tree.leaves(Scale(2.0))
    [2.0]
    """
    kwargs["metadata"] = {"static": True, **(kwargs.get("metadata") or {})}
    return dataclasses.field(**kwargs)


__all__ = [
    "all", "broadcast", "flatten", "flatten_with_path", "leaves", "leaves_with_path", "map",
    "map_with_path", "reduce", "reduce_associative", "static", "structure", "transpose",
    "unflatten",
]
__dir__ = directory(__name__, __all__)
