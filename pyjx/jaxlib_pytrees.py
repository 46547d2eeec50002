"""jaxlib's pytrees: what its versions call otherwise, or do not have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pyjx.jaxlib_api import pytree

if TYPE_CHECKING:
    class PyTreeDef:
        """The structure of a pytree, as jaxlib's class is to type checkers."""

        num_leaves: int
        num_nodes: int

        def unflatten(self, leaves: Iterable[Any], /) -> Any: ...
        def flatten_up_to(self, tree: Any, /) -> list[Any]: ...
        def compose(self, inner: PyTreeDef, /) -> PyTreeDef: ...
        def walk(self, node: Callable[..., Any], leaf: Callable[..., Any] | None,
                 leaves: Iterable[Any], /) -> Any: ...
        def from_iterable_tree(self, tree: Any, /) -> Any: ...
        def children(self) -> list[PyTreeDef]: ...
        def node_data(self) -> Any: ...  # of a leaf none
else:
    PyTreeDef = pytree.PyTreeDef

# By what C++ flattens the arguments of compiled functions: nodes as everywhere, and arrays that are
# data with a type of their own (keys), of which it knows the data.
of_calls = pytree.PyTreeRegistry()
of_calls.__module__ = __name__  # so that what refers to it is pickled with its name
of_calls.__name__ = "of_calls"
all_leaves = pytree.all_leaves
treedef_tuple = getattr(pytree, "treedef_tuple", None) or pytree.tuple


def treedef_of(registry: Any, node_data: tuple[type, Any], children: Sequence[Any]) -> PyTreeDef:
    """The structure of a node with these children; the inverse of `node_data()`, `children()`."""
    treedef: Any = pytree.PyTreeDef
    if hasattr(treedef, "from_node_data_and_children"):
        return treedef.from_node_data_and_children(registry, node_data, children)
    # Before 0.8 by the form in which structures are pickled: one entry a node, children first.
    kind, data = node_data
    custom = None
    number = _NODE_KINDS.get(kind)
    if number is None:
        is_tuple = issubclass(kind, tuple) and hasattr(kind, "_fields")
        number, data, custom = (
            3, kind, None) if is_tuple else (_registered.get(kind, _CUSTOM), data, kind)
    entries = [e for c in children for e in c.__getstate__()[1]]
    n_leaves = sum([c.num_leaves for c in children])
    made = treedef.__new__(treedef)
    made.__setstate__((registry, [*entries, (number, len(children), data, custom, n_leaves,
                                             len(entries) + 1)]))
    return made


_NODE_KINDS: dict[type, int] = {type(None): 1, tuple: 2, list: 4, dict: 5}
_CUSTOM, _DATACLASS = 6, 7
_registered: dict[type, int] = {}  # the kinds of classes, of which the registry does not tell


def register_node(registry: Any, typ: type, flatten: Any, unflatten: Any, flatten_with_keys: Any
                  ) -> None:
    """Make a class a node, by functions."""
    registry.register_node(typ, flatten, unflatten, flatten_with_keys)
    of_calls.register_node(typ, flatten, unflatten)
    _registered[typ] = _CUSTOM


def register_dataclass_node(registry: Any, typ: type, data_fields: list[str],
                            meta_fields: list[str]) -> None:
    """Make a class a node, by names of attributes."""
    registry.register_dataclass_node(typ, data_fields, meta_fields)
    of_calls.register_dataclass_node(typ, data_fields, meta_fields)
    _registered[typ] = _DATACLASS


def one_level_with_keys(registry: Any, tree: Any) -> tuple[list[tuple[Any, Any]], Any] | None:
    """The children of a node, each with its key, and the metadata; None of a leaf."""
    cls = type(tree)
    if isinstance(tree, tuple) and hasattr(cls, "_fields") and cls not in _registered:
        # C++ of jaxlib < 0.12 repeats the first field's name
        return [(pytree.GetAttrKey(f), x) for f, x in zip(cls._fields, tree, strict=True)], cls
    result = registry.flatten_one_level_with_keys(tree)
    return None if result is None else (list(result[0]), result[1])


def is_node(registry: Any, typ: type) -> bool:
    if hasattr(registry, "is_node"):
        return registry.is_node(typ)
    return (typ in _registered or typ in (tuple, list, dict, type(None))
            or (issubclass(typ, tuple) and hasattr(typ, "_fields")))
