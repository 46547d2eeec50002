"""Structures of pytrees as JSON's values, and pytrees that come later."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import Future
from typing import Any

from pyjx.export.trees import (
    register_pytree_node_serialization,
    tree_from_data,
    tree_to_data,
)
from pyjx.lazy import directory
from pyjx.tree_util import tree_flatten, tree_unflatten

__all__ = ["deserialize_pytreedef", "register_pytree_node_serialization",
           "serialize_pytreedef"]
__dir__ = directory(__name__, __all__)

def serialize_pytreedef(node: Any) -> dict[str, Any]:
    """A pytree of texts and None as JSON's values.

    Raises:
      ValueError: a type of its nodes has no serialization.

    >>> deserialize_pytreedef(serialize_pytreedef({"a": ["x", None]}))
    {'a': ['x', None]}
    """
    leaves, tree = tree_flatten(node)
    return {"tree": tree_to_data(tree), "leaves": leaves}

def deserialize_pytreedef(pytreedef_repr: dict[str, Any]) -> Any:
    """The pytree that `serialize_pytreedef` made the values of."""
    if "tree" not in pytreedef_repr:
        raise ValueError("deserialize_pytreedef: the structure was written by another package, in "
                         "a form of its own; read the arrays by their specs")
    return tree_unflatten(tree_from_data(pytreedef_repr["tree"]), pytreedef_repr["leaves"])

class PyTreeFuture:
    """A pytree that comes later.

    Attributes:
      pytree: its structure, with types in the place of arrays.
    """

    def __init__(self, future: Future[Any], pytree: Any = None) -> None:
        self._future = future
        self.pytree = pytree

    def done(self) -> bool:
        """Whether it is there."""
        return self._future.done()

    def result(self, *args: Any, **kw: Any) -> Any:
        """Wait for it."""
        return self._future.result(*args, **kw)

    def __await__(self) -> Generator[Any, None, Any]:
        while not self._future.done():
            yield
        return self.result()

    def __repr__(self) -> str:
        return f"PyTreeFuture(done={self.done()}, pytree={self.pytree})"
